// The recipes against a server on its virtual clock; that their bytes are those of the other clients, the conformance
// scenarios say.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { TimecacheError, type TimecacheClient, type Watcher } from 'timecached';
import {
  Acker,
  EventLog,
  Join,
  Lock,
  SharedArray,
  Table,
  answerOnce,
  mayCall,
  type LockOptions,
} from 'timecached/recipes';
import { freshNamespace, readUntil, startFixture, type Fixture } from './support.js';

const TTL_MS = 10_000;
const WIDTH_MS = 1_000; // Of freshNamespace.

let fixture: Fixture;
before(async () => {
  fixture = await startFixture();
});
after(() => fixture.stop());

function pass(ms: number): Promise<number> {
  return fixture.clock.advance(ms);
}

async function openWatch(client: TimecacheClient, keyPrefix: Buffer | string): Promise<Watcher> {
  const watcher = client.watch({ keyPrefix });
  await watcher.next();
  return watcher;
}

/** All that the watch has of deaths up to now. */
async function readEvents(watcher: Watcher) {
  return (await readUntil(watcher, await fixture.clock.now())).flatMap(({ events }) => events);
}

/** The client whose calls of this name happen, and are not answered. */
function unanswered(client: TimecacheClient, name: 'put' | 'touch' | 'append'): TimecacheClient {
  return new Proxy(client, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property, target);
      if (typeof value !== 'function') return value;
      return async (...args: unknown[]) => {
        const answer: unknown = await value.apply(target, args);
        if (property !== name) return answer;
        throw new TimecacheError('UNAVAILABLE', 'the connection broke', { maybeApplied: true });
      };
    },
  });
}

function hasCode(code: string, reason?: string) {
  return (error: unknown) => {
    assert.ok(error instanceof TimecacheError, String(error));
    assert.deepEqual([error.code, error.reason], [code, reason]);
    return true;
  };
}

/** Contenders for one lock. */
async function contenders(options: LockOptions = {}) {
  const client = await freshNamespace(fixture.client);
  const lock = (owner: string, own: LockOptions = {}) =>
    new Lock(client, 'lock', { ttlMs: TTL_MS, owner, recheckMs: Infinity, ...options, ...own });
  return { client, lock, a: lock('a'), b: lock('b') };
}

test('lock: one has it, and the entry says who', async () => {
  const { client, a, b } = await contenders();
  const token = await a.tryAcquire();
  assert.ok(token);
  assert.equal(await b.tryAcquire(), undefined);
  assert.deepEqual([a.token, b.token, b.remainingMs], [token, undefined, 0]);
  assert.ok(a.remainingMs > 0 && a.remainingMs <= TTL_MS);
  assert.match((await client.getText('lock'))!, /^a [0-9a-f]{32}$/);
});

test('lock: renewals keep the token and the lock', async () => {
  const { a, b } = await contenders();
  const token = await a.tryAcquire();
  for (let i = 0; i < 3; ++i) {
    await pass(TTL_MS - 1_000);
    assert.equal(await a.renew(), true);
    assert.equal(a.token, token);
    assert.equal(await b.tryAcquire(), undefined);
  }
  await pass(TTL_MS - 1_000);
  assert.equal(await a.tryAcquire(), token, 'to ask for it again is to renew it');
  await pass(TTL_MS - 1_000);
  assert.equal(await b.tryAcquire(), undefined);
});

test('lock: who lost it neither renews nor releases', async () => {
  const { a, b } = await contenders();
  const old = await a.tryAcquire();
  await pass(TTL_MS + WIDTH_MS);
  const token = await b.tryAcquire();
  assert.ok(token! > old!);
  assert.equal(await a.renew(), false);
  assert.equal(a.token, undefined);
  assert.equal(await a.release(), false);
  assert.equal(await b.renew(), true);
});

test('lock: released it is free at once for who asks', async () => {
  const { a, b } = await contenders();
  const first = await a.tryAcquire();
  assert.equal(await a.release(), true);
  assert.equal(await a.release(), false);
  const second = await b.tryAcquire();
  assert.ok(second! > first!);
  await pass(TTL_MS - WIDTH_MS);
  assert.equal(await a.tryAcquire(), undefined, 'what is left of the release ends nothing');
});

test('lock: a waiter gets it when the lease ends, or is released', async () => {
  const { client, a, b, lock } = await contenders();
  const first = await a.tryAcquire();
  const waits = b.acquire();
  const standing = await openWatch(client, 'lock');
  await pass(TTL_MS + WIDTH_MS);
  const second = await waits;
  assert.ok(second! > first!);
  standing.close();
  const third = lock('c').acquire({ timeoutMs: 60_000 });
  assert.equal(await b.release(), true);
  await pass(1 + WIDTH_MS);
  assert.ok((await third)! > second!);
});

test('lock: a waiter looks again where no event comes, and gives up', async () => {
  const { client, a, lock } = await contenders();
  await a.tryAcquire();
  assert.equal(await lock('b').acquire({ timeoutMs: 0 }), undefined);
  assert.equal(await lock('b').acquire({ timeoutMs: 20 }), undefined);
  await assert.rejects(lock('b').acquire({ signal: AbortSignal.timeout(5) }), { name: 'TimeoutError' });
  assert.equal(await a.renew(), true);
  const waits = lock('c', { recheckMs: 2 }).acquire();
  await client.remove('lock');
  assert.ok(await waits);
});

test('lock: a loss is reported once, and a release is none', async () => {
  const { client, b, lock } = await contenders();
  const losses: string[] = [];
  const reporting = (what: string, ttlMs = TTL_MS) => {
    let report: () => void;
    const lost = new Promise<void>((resolve) => (report = resolve));
    const onLost = () => {
      losses.push(what);
      report();
    };
    return { lost, lock: lock(what, { ttlMs, onLost }) };
  };
  const found = reporting('found by a call');
  assert.ok(await found.lock.tryAcquire());
  assert.equal(await found.lock.renew(), true);
  await client.remove('lock');
  assert.ok(await b.tryAcquire());
  assert.equal(await found.lock.renew(), false);
  await found.lost;
  assert.equal(await found.lock.tryAcquire(), undefined);
  await b.release();
  // On this machine's clock, whatever the server's says.
  const late = reporting('not renewed', 5);
  assert.ok(await late.lock.tryAcquire());
  await late.lost;
  assert.deepEqual([late.lock.token, late.lock.remainingMs, await late.lock.renew()], [undefined, 0, false]);
  assert.ok(await late.lock.tryAcquire(), 'which takes it over');
  await client.remove('lock');
  const released = reporting('released');
  assert.ok(await released.lock.tryAcquire());
  assert.equal(await released.lock.release(), true);
  assert.equal(await released.lock.renew(), false);
  assert.deepEqual(losses.slice(0, 2), ['found by a call', 'not renewed']);
  assert.ok(!losses.includes('released'));
});

test('lock: an acquisition without an answer is taken over', async () => {
  const { client, b } = await contenders();
  const broken = unanswered(client, 'put');
  let current = broken;
  const facade = new Proxy(client, {
    get: (_, property) => {
      const value: unknown = Reflect.get(current, property, current);
      return typeof value === 'function' ? value.bind(current) : value;
    },
  });
  const a = new Lock(facade, 'lock', { ttlMs: TTL_MS });
  await assert.rejects(a.tryAcquire(), hasCode('UNAVAILABLE'));
  assert.equal(a.token, undefined);
  assert.equal(await b.tryAcquire(), undefined);
  current = client;
  assert.equal(await a.tryAcquire(), (await client.get('lock'))!.version);
  current = broken;
  await assert.rejects(a.release(), hasCode('UNAVAILABLE'));
  assert.ok(a.token);
  const next = await b.tryAcquire();
  assert.ok(next! > a.token);
  current = client;
  assert.equal(await a.release(), false);
  assert.equal(await b.renew(), true);
});

test('mayCall: calls are limited in a window, and refused ones do not make it longer', async () => {
  const client = await freshNamespace(fixture.client);
  for (let i = 0; i < 5; ++i) assert.equal(await mayCall(client, 'alice', 3, 1_000), i < 3);
  assert.equal(await mayCall(client, 'bob', 3, 1_000), true);
  await pass(1_000 + WIDTH_MS);
  assert.equal(await mayCall(client, 'alice', 3, 1_000), true);
  const many = await Promise.all(Array.from({ length: 40 }, () => mayCall(client, 'all', 30, 1_000)));
  assert.equal(many.filter(Boolean).length, 30);
});

test('answerOnce: a request is worked on once', async () => {
  const client = await freshNamespace(fixture.client, { ttlMs: 3_600_000, numBuckets: 3_601 });
  const options = { workTimeMs: 5_000, rememberedMs: 3_600_000 };
  let worked = 0;
  const ask = async (request: string) =>
    String(await answerOnce(client, request, options, () => `answer ${++worked}`));
  assert.equal(await ask('1'), 'answer 1');
  assert.equal(await ask('1'), 'answer 1');
  assert.equal(await ask('2'), 'answer 2');
  await pass(3_600_000 + 1_000);
  assert.equal(await ask('1'), 'answer 3');
  // Meanwhile it comes again; and an empty answer is one.
  await answerOnce(client, '3', options, async () => {
    await assert.rejects(ask('3'), hasCode('ABORTED'));
    return '';
  });
  assert.equal(await ask('3'), '');
  // Work that takes too long says so.
  const late = answerOnce(client, '4', options, async () => {
    await pass(6_000);
    return 'late';
  });
  await assert.rejects(late, hasCode('FAILED_PRECONDITION', 'KEY_NOT_FOUND'));
});

test('table: members are added, found, listed, removed, and expire one by one', async () => {
  const client = await freshNamespace(fixture.client);
  const table = new Table(client, 'online', { ttlMs: TTL_MS });
  const list = async () => (await table.list()).map(String);
  const watcher = await openWatch(client, table.keyPrefix);
  assert.equal(await table.add('bob'), true);
  assert.equal(await table.add('alice'), true);
  assert.equal(await table.add('bob'), false);
  assert.equal(await new Table(client, 'onliner').add('x'), true);
  assert.deepEqual([await table.contains('bob'), await table.contains('carol')], [true, false]);
  assert.deepEqual(await list(), ['alice', 'bob']);
  assert.deepEqual([await table.remove('bob'), await table.remove('bob')], [true, false]);
  await table.add('stays');
  await pass(TTL_MS - 1_000);
  assert.equal(await table.add('stays'), false);
  await pass(1_000 + WIDTH_MS);
  assert.deepEqual(await list(), ['stays']);
  const events = await readEvents(watcher);
  assert.deepEqual(
    events.map(({ key }) => String(table.memberOf(key))),
    ['alice'],
  );
  assert.equal(table.memberOf('onliner/x'), undefined);
  assert.equal(String(table.memberOf('online/x/y')), 'x/y');
  watcher.close();
});

test('array: items are added at the end and removed, and what is done again counts once', async () => {
  const client = await freshNamespace(fixture.client);
  const array = new SharedArray(client, 'hosts');
  const values = async () => (await array.read()).items.map(({ value }) => String(value));
  assert.deepEqual(await array.read(), { items: [], version: 0, storedBytes: 0, compactBytes: 0 });
  await array.remove(7n);
  assert.equal((await array.read()).version, 0, 'a removal makes no array');
  const a = await array.add('a');
  await array.add('');
  await array.add('a');
  assert.deepEqual(await values(), ['a', '', 'a']);
  await array.remove(a);
  await array.remove(a);
  await array.add('a', a); // An attempt that arrives late.
  assert.deepEqual(await values(), ['', 'a']);
  const id = SharedArray.newId();
  const broken = new SharedArray(unanswered(client, 'append'), 'hosts');
  await assert.rejects(broken.add('once', id), hasCode('UNAVAILABLE'));
  await array.add('once', id);
  assert.deepEqual(await values(), ['', 'a', 'once']);
  const before = (await client.get('hosts'))!.deadline;
  await pass(1_000);
  const { compactBytes } = await array.read();
  await array.compact();
  assert.equal((await array.read()).storedBytes, compactBytes);
  assert.equal((await client.get('hosts'))!.deadline, before);
  assert.deepEqual(await values(), ['', 'a', 'once']);
});

test('array: a full entry is compacted once, and another value is no array', async () => {
  const client = await freshNamespace(fixture.client, { maxValueBytes: 256 });
  const array = new SharedArray(client, 'a');
  for (let i = 0; i < 40; ++i) await array.remove(await array.add(`item ${i}`));
  assert.deepEqual((await array.read()).items, []);
  await assert.rejects(
    async () => {
      for (;;) await array.add('item');
    },
    hasCode('FAILED_PRECONDITION', 'VALUE_TOO_LARGE'),
  );
  assert.ok((await array.read()).items.length > 10);
  await client.put('a', 'some text');
  await assert.rejects(array.read(), hasCode('DATA_LOSS'));
  await assert.rejects(array.compact(), hasCode('DATA_LOSS'));
  assert.throws(() => SharedArray.fold(Buffer.from('+1234')), hasCode('DATA_LOSS'));
});

test('array: update changes the whole, and no concurrent change is lost', async () => {
  const client = await freshNamespace(fixture.client);
  const array = new SharedArray(client, 'a');
  await array.update((items) => void items.unshift({ id: SharedArray.newId(), value: 'b' }));
  await array.update((items) => void items.unshift({ id: SharedArray.newId(), value: 'a' }));
  assert.deepEqual(
    (await array.read()).items.map(({ value }) => String(value)),
    ['a', 'b'],
  );
  const overtaken = array.update(async () => void (await array.add('c')));
  await assert.rejects(overtaken, hasCode('ABORTED'));
  const before = (await array.read()).items.length;
  let adding = true;
  const adds = Array.from({ length: 8 }, async (_, i) => {
    for (let j = 0; j < 20; ++j) {
      const id = await array.add(`${i}-${j}`);
      if (j % 2 === 0) await array.remove(id);
    }
  });
  const compacting = (async () => {
    while (adding) await array.compact().catch(() => {});
  })();
  await Promise.all(adds);
  adding = false;
  await compacting;
  assert.equal((await array.read()).items.length, before + 8 * 10);
});

test('join: the last tuple gets the row, and what is not complete in time fails with what came', async () => {
  const client = await freshNamespace(fixture.client);
  const join = new Join(client, 'people', { sources: ['gender', 'age'], ttlMs: TTL_MS });
  const watcher = await openWatch(client, join.keyPrefix);
  const incomplete = async () => (await readEvents(watcher)).map((event) => join.incomplete(event));
  assert.equal(await join.add('7', 'age', '42'), undefined);
  assert.equal(await join.add('7', 'age', '42'), undefined, 'the same again is fine');
  await assert.rejects(join.add('7', 'age', '43'), hasCode('ALREADY_EXISTS', 'PART_EXISTS'));
  const row = await join.add('7', 'gender', 'female');
  assert.deepEqual([String(row?.id), row?.tuples.map(String)], ['7', ['female', '42']]);
  const [first, last] = await client.execute([
    join.operation('8', 'age', '41'),
    join.operation('8', 'gender', 'male'),
  ]);
  assert.deepEqual(first, { status: 'fulfilled', value: undefined });
  assert.ok(last.status === 'fulfilled' && last.value);
  assert.deepEqual(last.value.tuples.map(String), ['male', '41']);
  await join.add('9', 'age', '1');
  await pass(TTL_MS + WIDTH_MS);
  assert.equal(await join.add('9', 'gender', 'male'), undefined, 'too late: it begins anew');
  const [failed, ...others] = await incomplete();
  assert.deepEqual(others, []);
  assert.deepEqual(failed, { id: Buffer.from('9'), tuples: [undefined, Buffer.from('1')] });
  assert.notDeepEqual(Join.id('a', 'bc'), Join.id('ab', 'c'));
  watcher.close();
});

test('acker: a tree is done once, or fails once', async () => {
  const client = await freshNamespace(fixture.client);
  const acker = new Acker(client, 'acks', { ttlMs: TTL_MS });
  const watcher = await openWatch(client, acker.keyPrefix);
  const [a, b, c] = [Acker.newId(), Acker.newId(), Acker.newId()];
  assert.equal(a & 1n, 0n);
  assert.equal(await acker.track('m', [a]), false);
  assert.equal(await acker.ack('m', a, [b, c]), false);
  const pipeline = client.pipeline();
  const acks = [b, c].map((id) => pipeline.add(acker.ackOperation('m', id)));
  await pipeline.close();
  assert.deepEqual(await Promise.all(acks), [false, true]);
  assert.equal(await acker.ack('early', a), false);
  assert.equal(await acker.track('early', [a]), true);
  assert.equal(await acker.track('given up', [a]), false);
  assert.deepEqual([await acker.fail('given up'), await acker.fail('given up')], [true, false]);
  const [tracked] = await client.execute([acker.trackOperation('lost', [a])]);
  assert.deepEqual(tracked, { status: 'fulfilled', value: false });
  await acker.ack('never tracked', a);
  await pass(TTL_MS + WIDTH_MS);
  const failed = async () =>
    (await readEvents(watcher)).flatMap((event) => String(acker.failedRoot(event) ?? []) || []);
  assert.deepEqual(await failed(), ['lost']);
  assert.equal(await acker.ack('lost', a), false, 'too late');
  await pass(TTL_MS + WIDTH_MS);
  assert.deepEqual(await failed(), []);
  watcher.close();
});

test('event log: events come in order, and a reader goes on behind what it has seen', async () => {
  const client = await freshNamespace(fixture.client);
  const log = new EventLog(client, 'log', { chunkMs: 2_000, chunks: 5 });
  const begin = Math.ceil(((await fixture.clock.now()) + 1) / 2_000) * 2_000;
  await fixture.clock.advanceTo(begin);
  const data = ({ events }: { events: { data: Buffer }[] }) => events.map((event) => String(event.data));
  let position = log.positionAt(begin);
  const readNew = async () => {
    const page = await log.readNew(position, await fixture.clock.now());
    assert.equal(page.mayHaveMissed, false);
    position = JSON.parse(JSON.stringify(page.position)) as typeof position; // As it may be stored.
    return data(page);
  };
  for (const second of [1, 0]) await log.append(begin + second * 1_000, String(second));
  assert.deepEqual(await readNew(), ['1', '0']);
  assert.deepEqual(await readNew(), []);
  await pass(2_000);
  await log.append(new Date(begin + 2_000), '2');
  const id = EventLog.newId();
  const broken = new EventLog(unanswered(client, 'append'), 'log', { chunkMs: 2_000, chunks: 5 });
  await assert.rejects(broken.append(begin + 1_500, 'late', id), hasCode('UNAVAILABLE'));
  await log.append(begin + 1_500, 'late', id);
  assert.deepEqual(await readNew(), ['late', '2']);
  assert.deepEqual(data(await log.read(begin, begin + 2_000)), ['0', '1', 'late']);
  assert.deepEqual(data(await log.read(begin + 0.001, begin + 2_000.001)), ['1', 'late', '2']);
  assert.deepEqual(data(await log.read(begin, begin)), []);
  const watcher = await openWatch(client, log.keyPrefix);
  await pass(12_000);
  const page = await log.readNew(position, await fixture.clock.now());
  assert.deepEqual([page.mayHaveMissed, data(page)], [true, []]);
  const [died] = await readEvents(watcher);
  assert.deepEqual(data({ events: EventLog.decode(died!.value) }), ['1', '0', 'late']);
  assert.throws(() => EventLog.decode(died!.value.subarray(0, 30)), hasCode('DATA_LOSS'));
  watcher.close();
});

test('event log: chunks that do not fit into one response are read to the end', async () => {
  const client = await freshNamespace(fixture.client);
  const log = new EventLog(client, 'log', { chunkMs: 2_000, chunks: 5 });
  const begin = Math.ceil((await fixture.clock.now()) / 2_000) * 2_000;
  const large = 'x'.repeat(450_000);
  for (let i = 0; i < 10; ++i) await log.append(begin + i * 1_000, `${i}${large}`);
  const { events } = await log.read(begin, begin + 10_000);
  assert.deepEqual(
    events.map(({ data }) => String(data.subarray(0, 1))),
    [...'0123456789'],
  );
  const full = log.append(begin, large + large);
  await assert.rejects(full, hasCode('FAILED_PRECONDITION', 'VALUE_TOO_LARGE'));
});
