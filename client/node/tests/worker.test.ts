import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  TimecacheClient,
  TimecacheError,
  VirtualClock,
  ack,
  decodeDeadLetter,
  extend,
  nack,
  putBack,
  terminate,
  type DeadLetter,
  type ExpiredEvent,
  type Group,
  type GroupWorker,
  type Settlement,
  type WatchBatch,
  type Watcher,
} from 'timecached';
import {
  eventually,
  freshNamespace,
  makeTemporaryDirectory,
  startFixture,
  TestServer,
  type Fixture,
} from './support.js';

let fixture: Fixture;
before(async () => {
  fixture = await startFixture();
});
after(() => fixture.stop());

/** Once the worker is a member, what dies is told to its group. */
async function isMember(client: TimecacheClient, group = 'g', members = 1): Promise<void> {
  await eventually(async () => {
    const found = await client.getGroup(group, { includeStatistics: true }).catch(() => undefined);
    return found?.statistics?.members === members;
  });
}

test('a handler that returns acknowledges, and nack, putBack and errors give events back', async () => {
  const client = await freshNamespace(fixture.client);
  const errors: unknown[] = [];
  const handled: string[] = [];
  const worker = client.worker(
    { group: 'g', retryDelayMs: 3_000, onError: (error) => errors.push(error) },
    async (event) => {
      await Promise.resolve();
      const key = event.key.toString();
      handled.push(`${key} ${event.attempt}`);
      if (event.attempt > 1) return;
      if (key === 'nack') return nack(2_000);
      if (key === 'back') return putBack(1_000);
      if (key === 'throw') throw new Error('broken');
      if (key === 'wrong') return 'ack' as never;
      return key === 'ack' ? ack() : undefined;
    },
  );
  await isMember(client);
  for (const key of ['ack', 'done', 'nack', 'back', 'throw', 'wrong']) await client.put(key, 'v');
  await fixture.clock.advance(11_000);
  await eventually(() => worker.counters.acked + worker.counters.nacked + worker.counters.putBack === 6);
  assert.equal(await client.getText('back'), 'v');
  await fixture.clock.advance(4_000);
  await eventually(() => worker.counters.acked + worker.counters.putBack === 7);
  assert.deepEqual(handled.sort(), [
    'ack 1',
    'back 1',
    'back 1',
    'done 1',
    'nack 1',
    'nack 2',
    'throw 1',
    'throw 2',
    'wrong 1',
    'wrong 2',
  ]);
  assert.deepEqual(errors.map((error) => (error as Error).message).sort(), [
    'broken',
    'settle with ack(), nack(), putBack() or terminate()',
  ]);
  await worker.stop();
  await worker.finished;
  const { statistics } = await client.getGroup('g', { includeStatistics: true });
  assert.deepEqual(
    [statistics?.acked, statistics?.nacked, statistics?.putBack, statistics?.inFlight],
    [5, 3, 2, 0],
  );
  assert.deepEqual(worker.counters.handled, 10);
});

test('an event waits as its group says, comes again with the reason, and is given up with one', async () => {
  const dead = await freshNamespace(fixture.client);
  const client = await freshNamespace(fixture.client, { deadLetterNamespace: dead.defaultNamespace });
  await client.createGroup('g', { retryDelayMs: 20_000, retryMultiplier: 1 });
  const reasons: string[] = [];
  const worker = client.worker({ group: 'g', retryDelayMs: null, onError: () => {} }, (event) => {
    reasons.push(event.lastReason);
    if (event.attempt === 1) return nack(undefined, 'no card');
    if (event.attempt === 2) throw new Error('broken');
    return terminate('stolen card');
  });
  await isMember(client);
  await client.put('a', 'v');
  await fixture.clock.advance(11_000);
  for (const nacked of [1, 2]) {
    await eventually(() => worker.counters.nacked === nacked);
    await fixture.clock.advance(19_000);
    assert.equal(reasons.length, nacked);
    await fixture.clock.advance(1_000);
  }
  await eventually(() => worker.counters.terminated === 1);
  assert.deepEqual(reasons, ['', 'no card', '']);
  await worker.stop();
  await eventually(async () => (await dead.size()).entries === 1);
  for await (const letter of dead.scan()) {
    const { reason, reasonText, attempts } = decodeDeadLetter(letter);
    assert.deepEqual([reason, reasonText, attempts], ['TERMINATED', 'stolen card', 3]);
  }
});

test('as many handlers run at a time as were asked for, and a stop finishes what runs', async () => {
  const client = await freshNamespace(fixture.client);
  let running = 0;
  let most = 0;
  const releases: (() => void)[] = [];
  const worker = client.worker({ group: 'g', concurrency: 3 }, async () => {
    most = Math.max(most, ++running);
    await new Promise<void>((resolve) => releases.push(resolve));
    --running;
  });
  await isMember(client);
  for (let i = 0; i < 10; ++i) await client.put(`k${i}`, 'v');
  await fixture.clock.advance(11_000);
  await eventually(() => running === 3);
  const stopped = worker.stop();
  assert.equal(releases.length, 3);
  for (const release of releases) release();
  await stopped;
  assert.equal(most, 3);
  assert.deepEqual([worker.counters.handled, worker.counters.acked], [3, 3]);
  // The server learns of the stream's end a moment later.
  await eventually(async () => {
    const { statistics } = await client.getGroup('g', { includeStatistics: true });
    return statistics?.acked === 3 && statistics.backlog === 7 && statistics.inFlight === 0;
  });

  const rest = new Set<string>();
  const controller = new AbortController();
  const second = client.worker(
    { group: 'g', signal: controller.signal },
    ({ key }) => void rest.add(key.toString()),
  );
  await eventually(() => rest.size === 7);
  controller.abort();
  await second.finished;
  assert.equal(second.counters.acked, 7);
});

test('what ends a worker rejects its promise', async () => {
  await assert.rejects(fixture.client.namespace('absent').worker({ group: 'g' }, () => {}).finished, {
    reason: 'NAMESPACE_NOT_FOUND',
  });
  const client = await freshNamespace(fixture.client);
  const worker = client.worker({ group: 'g' }, () => {});
  await isMember(client);
  const ended = assert.rejects(worker.finished, { reason: 'GROUP_NOT_FOUND' });
  await client.deleteGroup('g');
  await ended;
  assert.throws(() => client.worker({ group: '' }, () => {}), TypeError);
});

test('a handler that takes longer than ackTimeoutMs keeps its event', async () => {
  const client = await freshNamespace(fixture.client);
  await client.createGroup('g', { ackTimeoutMs: 100, maxAttempts: 2 });
  const attempts: number[] = [];
  let release: (() => void) | undefined;
  const worker = client.worker({ group: 'g', concurrency: 1 }, async ({ attempt }) => {
    attempts.push(attempt);
    await new Promise<void>((resolve) => (release = resolve));
  });
  await isMember(client);
  await client.put('a', 'v');
  await fixture.clock.advance(11_000);
  await eventually(() => release !== undefined);
  const extended = async () => (await client.getGroup('g', { includeStatistics: true })).statistics!.extended;
  for (let i = 0; i < 5; ++i) {
    await fixture.clock.advance(90);
    const before = await extended();
    await eventually(async () => (await extended()) > before);
  }
  release!();
  await eventually(() => worker.counters.acked === 1);
  await worker.stop();
  const { statistics } = await client.getGroup('g', { includeStatistics: true });
  assert.deepEqual([attempts, statistics?.timedOut, statistics?.redelivered], [[1], 0, 0]);
});

test('the end of a member is no attempt, and a letter says why it is one', async () => {
  const dead = await freshNamespace(fixture.client);
  const client = await freshNamespace(fixture.client, { deadLetterNamespace: dead.defaultNamespace });
  await client.createGroup('g', { maxAttempts: 1 });
  const consume = async () => {
    const member = client.consume({ group: 'g' });
    const events: ExpiredEvent[] = [];
    while (events.length === 0) events.push(...(await member.next()).value!.events);
    return { member, event: events[0]! };
  };
  await client.put('a', 'v', { ttlMs: 5_000 });
  await fixture.clock.advance(11_000);
  const first = await consume();
  assert.deepEqual([first.event.attempt, first.event.returns, first.event.ownTtlMs], [1, 0, 5_000]);
  first.member.close();
  const { member, event } = await consume();
  assert.deepEqual([event.attempt, event.returns], [1, 1]);
  const settle = async ({ deliveryToken }: ExpiredEvent, how: Settlement['how']) => {
    const [result] = await client.settle('g', [{ deliveryToken, how }]);
    return result!.status === 'fulfilled' ? undefined : (result!.reason as TimecacheError).reason;
  };
  assert.equal(await settle(first.event, nack()), 'STALE_ATTEMPT');
  assert.equal(await settle(event, extend()), undefined);
  assert.equal(await settle(event, nack()), undefined);
  const letters: DeadLetter[] = [];
  await eventually(async () => {
    for await (const letter of dead.scan()) letters.push(decodeDeadLetter(letter));
    return letters.length > 0;
  });
  const { event: given, group, attempts, reason, time } = letters[0]!;
  assert.deepEqual([`${given.key}`, `${given.value}`, group, attempts, reason], ['a', 'v', 'g', 1, 'NACKED']);
  assert.equal(given.namespace, client.defaultNamespace);
  assert.equal(time, await fixture.clock.now());
  member.close();
});

test('a worker over kills of the server handles every event of a durable namespace', async () => {
  const journal = makeTemporaryDirectory();
  const flags = ['--journal', journal.path];
  let server = await TestServer.start(flags);
  const client = server.client();
  const clock = new VirtualClock(client);
  await client.createNamespace('durable', { ttlMs: 1_000, numBuckets: 11, durability: 'SYNC' });
  const durable = client.namespace('durable');
  const handled = new Map<string, number>();
  let errors = 0;
  const worker: GroupWorker = durable.worker({ group: 'g', onError: () => ++errors }, async ({ key }) => {
    await new Promise((resolve) => setImmediate(resolve));
    handled.set(key.toString(), (handled.get(key.toString()) ?? 0) + 1);
  });
  await isMember(durable);
  for (let round = 0; round < 3; ++round) {
    for (let i = 0; i < 50; ++i) await durable.put(`${round}-${i}`, 'v', { timeoutMs: 20_000 });
    await clock.advance(500);
    const advanced = clock.advance(600).catch(() => 0);
    await eventually(() => handled.size > round * 50);
    await server.stop('SIGKILL');
    await advanced;
    server = await TestServer.start(flags, server.address);
    while ((await clock.advance(1_000).catch(() => 0)) === 0);
    await eventually(() => handled.size === (round + 1) * 50);
  }
  await eventually(async () => {
    const { statistics } = await durable.getGroup('g', { includeStatistics: true });
    return statistics?.backlog === 0 && statistics.inFlight === 0;
  });
  await worker.stop();
  assert.ok(errors >= 3);
  client.close();
  await server.stop();
  journal.remove();
});

/** A client whose workers are given events by the test, and whose calls of settle the test answers. */
function scriptedClient(answer: (settlements: readonly Settlement[]) => void = () => {}) {
  const client = new TimecacheClient('127.0.0.1:1');
  const batches: WatchBatch[] = [];
  let closed = false;
  async function* read() {
    while (!closed) {
      const batch = batches.shift();
      if (batch) yield batch;
      else await new Promise((resolve) => setImmediate(resolve));
    }
  }
  client.consume = () => Object.assign(read(), { close: () => (closed = true) }) as unknown as Watcher;
  const settled: Settlement[] = [];
  client.settle = (_, settlements) =>
    new Promise((resolve) => {
      answer(settlements);
      settled.push(...settlements);
      resolve(settlements.map(() => ({ status: 'fulfilled', value: 0 })));
    });
  const give = (key: string, version: number, attempt: number, returns = 0) => {
    const namespace = 'default';
    const deliveryToken = Buffer.from(`${attempt} ${returns}`);
    const event = {
      namespace,
      key: Buffer.from(key),
      version,
      attempt,
      returns,
      deliveryToken,
    } as ExpiredEvent;
    batches.push({ events: [event], lost: 0, omittedValues: 0 } as unknown as WatchBatch);
  };
  const said = () => settled.map(({ deliveryToken, how }) => [`${deliveryToken}`, how.action]);
  const groupsAckTimeout = (ackTimeoutMs: number) => {
    client.getGroup = async (name) => ({ name, options: { ackTimeoutMs } }) as Group;
  };
  return { client, batches, give, said, settled, groupsAckTimeout };
}

test('an event that comes again before the answer to its nack is handled again', async () => {
  let calls = 0;
  const { client, give, said } = scriptedClient(() => {
    if (++calls === 1) give('a', 1, 2);
  });
  const attempts: number[] = [];
  const worker = client.worker({ group: 'g' }, ({ attempt }) => {
    attempts.push(attempt);
    return attempt === 1 ? nack() : undefined;
  });
  give('a', 1, 1);
  await eventually(() => worker.counters.acked === 1);
  await worker.stop();
  assert.deepEqual(attempts, [1, 2]);
  assert.deepEqual(said(), [
    ['1 0', 'nack'],
    ['2 0', 'ack'],
  ]);
  client.close();
});

test('settlements for which the server has no room now are sent again', async () => {
  let calls = 0;
  const { client, give, said } = scriptedClient(() => {
    if (++calls <= 2)
      throw new TimecacheError('RESOURCE_EXHAUSTED', 'no room', { reason: 'UNREAD_RESPONSES' });
  });
  const worker = client.worker({ group: 'g', minPauseMs: 1, maxPauseMs: 2 }, () => {});
  give('a', 1, 1);
  await eventually(() => worker.counters.acked === 1);
  await worker.stop();
  assert.deepEqual([calls, worker.counters.unsettled], [3, 0]);
  assert.deepEqual(said(), [['1 0', 'ack']]);
  client.close();
});

test('a put back that the server refuses is given back with the newest attempt', async () => {
  const { client, batches, give, said } = scriptedClient();
  const settle = client.settle.bind(client);
  client.settle = async (group, settlements) => {
    const results = await settle(group, settlements);
    if (settlements[0]?.how.action !== 'putBack') return results;
    give('a', 1, 2); // Given out again meanwhile.
    await eventually(() => batches.length === 0);
    const reason = new TimecacheError('RESOURCE_EXHAUSTED', 'full', { reason: 'NAMESPACE_MEMORY' });
    return [{ status: 'rejected', reason }];
  };
  const worker = client.worker({ group: 'g' }, () => putBack());
  give('a', 1, 1);
  await eventually(() => worker.counters.nacked === 1);
  await worker.stop();
  assert.deepEqual(said(), [
    ['1 0', 'putBack'],
    ['2 0', 'nack'],
  ]);
  client.close();
});

test('a worker holds twice as many events as it has handlers, unless it is told otherwise', async () => {
  const { client } = scriptedClient();
  const consume = client.consume.bind(client);
  const asked: (number | undefined)[] = [];
  client.consume = (options) => {
    asked.push(options.maxInFlight);
    return consume(options);
  };
  for (const options of [{}, { concurrency: 10 }, { concurrency: 10, maxInFlight: 5 }]) {
    await client.worker({ group: 'g', ...options }, () => {}).stop();
  }
  assert.deepEqual(asked, [8, 20, 5]);
  client.close();
});

test('the end of a worker whose promise nobody looks at is told to onError, and ends no program', async () => {
  const errors: unknown[] = [];
  const absent = fixture.client.namespace('absent');
  absent.worker({ group: 'g', onError: (error) => errors.push(error) }, () => {});
  await eventually(() => errors.length === 1);
  assert.equal((errors[0] as TimecacheError).reason, 'NAMESPACE_NOT_FOUND');
  const warned = new Promise<Error>((resolve) => process.once('warning', resolve));
  absent.worker({ group: 'unwatched' }, () => {});
  assert.match((await warned).message, /the worker of the group absent\/unwatched has ended: NOT_FOUND/);
});

test('a worker extends what it holds until it is settled, also what waits for a handler', async () => {
  const { client, give, settled, groupsAckTimeout } = scriptedClient();
  groupsAckTimeout(30);
  const releases: (() => void)[] = [];
  const worker = client.worker({ group: 'g', concurrency: 1 }, async ({ attempt, returns }) => {
    await new Promise<void>((resolve) => releases.push(resolve));
    assert.deepEqual([attempt, returns], [2, 3]);
  });
  give('a', 1, 2, 3);
  const extended = () => settled.filter(({ how }) => how.action === 'extend');
  await eventually(() => extended().length >= 3);
  assert.deepEqual(new Set(settled.map((said) => `${said.deliveryToken}`)), new Set(['2 3']));
  releases[0]!();
  await eventually(() => worker.counters.acked === 1);
  assert.equal(settled.at(-1)?.how.action, 'ack');
  assert.equal(`${settled.at(-1)?.deliveryToken}`, '2 3');
  const count = extended().length;
  await new Promise((resolve) => setTimeout(resolve, 50)); // Longer than the group waits.
  assert.equal(extended().length, count);
  await worker.stop();
  client.close();
});

test('a worker extends no longer than it is told, and not at all where that is 0', async () => {
  for (const extendMaxMs of [0, 60]) {
    const { client, give, settled, groupsAckTimeout } = scriptedClient();
    groupsAckTimeout(30);
    let begin = 0;
    const worker = client.worker({ group: 'g', extendMaxMs }, async () => {
      begin = performance.now();
      await new Promise((resolve) => setTimeout(resolve, 150));
    });
    give('a', 1, 1);
    let last = 0;
    const settle = client.settle.bind(client);
    client.settle = (group, settlements) => {
      if (settlements[0]?.how.action === 'extend') last = performance.now();
      return settle(group, settlements);
    };
    await eventually(() => worker.counters.acked === 1);
    const extended = settled.filter(({ how }) => how.action === 'extend').length;
    assert.equal(extended > 0, extendMaxMs > 0);
    assert.ok(last - begin < 140, `${last - begin}`);
    await worker.stop();
    client.close();
  }
});

test('an attempt that has ended, and a server that cannot extend, are asked no more', async () => {
  for (const [code, reason] of [
    ['FAILED_PRECONDITION', 'STALE_ATTEMPT'],
    ['INVALID_ARGUMENT', 'INVALID_FIELD'],
  ] as const) {
    const { client, give, settled, groupsAckTimeout } = scriptedClient();
    groupsAckTimeout(15);
    const refused = new TimecacheError(code, 'no', { reason });
    const settle = client.settle.bind(client);
    client.settle = async (group, settlements) => {
      const results = await settle(group, settlements);
      if (settlements[0]?.how.action !== 'extend') return results;
      return [{ status: 'rejected', reason: refused }];
    };
    const errors: unknown[] = [];
    const options = { group: 'g', onError: (error: unknown) => errors.push(error) };
    const worker = client.worker(options, async () => {
      await eventually(() => settled.length > 0);
      await new Promise((resolve) => setTimeout(resolve, 50));
    });
    give('a', 1, 1);
    await eventually(() => worker.counters.acked === 1);
    assert.deepEqual(
      settled.map(({ how }) => how.action),
      ['extend', 'ack'],
    );
    assert.deepEqual(errors, code === 'INVALID_ARGUMENT' ? [refused] : []);
    await worker.stop();
    client.close();
  }
});

test('an event that was handled and could not be settled is told, with the event', async () => {
  const { client, give } = scriptedClient();
  const stale = new TimecacheError('NOT_FOUND', 'gone', { reason: 'EVENT_NOT_UNSETTLED' });
  client.settle = async () => [{ status: 'rejected', reason: stale }];
  const told: [unknown, ExpiredEvent | undefined][] = [];
  const onError = (error: unknown, event?: ExpiredEvent) => void told.push([error, event]);
  const worker = client.worker({ group: 'g', onError }, () => {});
  give('a', 1, 4);
  await eventually(() => told.length === 1);
  await worker.stop();
  const [error, event] = told[0]!;
  assert.ok(error instanceof TimecacheError && error.cause === stale);
  assert.equal(
    error.message,
    'NOT_FOUND (EVENT_NOT_UNSETTLED): the ack of default/g, key "a", attempt 4, was not accepted: gone',
  );
  assert.deepEqual([`${event?.key}`, event?.attempt], ['a', 4]);
  assert.equal(worker.counters.stale, 1);
  client.close();
});

test('without onError a failing handler is a warning that names namespace, group, key and attempt', async () => {
  const { client, give } = scriptedClient();
  const warned = new Promise<Error>((resolve) => process.once('warning', resolve));
  const worker = client.worker({ group: 'g' }, function billing() {
    throw new Error('no money');
  });
  give('a"b', 1, 2);
  const { name, message } = await warned;
  assert.equal(name, 'TimecacheWarning');
  assert.match(
    message,
    /^the handler of default\/g, key "a\\"b", attempt 2, failed: Error: no money\n +at .*billing/,
  );
  await worker.stop();
  client.close();
});

test('a handler cannot say extend', async () => {
  const { client, give, said } = scriptedClient();
  const errors: unknown[] = [];
  const worker = client.worker(
    { group: 'g', onError: (error) => errors.push(error) },
    () => extend() as never,
  );
  give('a', 1, 1);
  await eventually(() => worker.counters.nacked === 1);
  await worker.stop();
  assert.ok(errors[0] instanceof TypeError);
  assert.deepEqual(said(), [['1 0', 'nack']]);
  client.close();
});

test('what a worker says after its group was deleted does not settle the events of a later one', async () => {
  const client = await freshNamespace(fixture.client);
  let release: (() => void) | undefined;
  const worker = client.worker({ group: 'g' }, () => new Promise<void>((resolve) => (release = resolve)));
  const ended = assert.rejects(worker.finished, { reason: 'GROUP_NOT_FOUND' });
  await isMember(client);
  await client.put('a', 'v');
  await fixture.clock.advance(11_000);
  await eventually(() => release !== undefined);
  await client.deleteGroup('g');
  await client.createGroup('g', {}, { start: 'EARLIEST' });
  const member = client.consume({ group: 'g' });
  let events: ExpiredEvent[] = [];
  while (events.length === 0) ({ events } = (await member.next()).value!);
  release!();
  await ended;
  assert.equal(worker.counters.stale, 1);
  const { statistics } = await client.getGroup('g', { includeStatistics: true });
  assert.deepEqual([statistics?.acked, statistics?.inFlight], [0, 1]);
  member.close();
});

test('a worker whose signal has aborted ends in good order', async () => {
  const client = await freshNamespace(fixture.client);
  const worker = client.worker({ group: 'g', signal: AbortSignal.abort() }, () => {});
  await worker.finished;
  await worker.stop();
});

test('a callback that throws ends the worker, which settles what it can', async () => {
  const client = await freshNamespace(fixture.client);
  const onError = (): never => {
    throw new Error('the log is full');
  };
  const worker = client.worker({ group: 'g', onError }, () => {
    throw new Error('broken');
  });
  const ended = assert.rejects(worker.finished, { message: 'the log is full' });
  await isMember(client);
  await client.put('a', 'v');
  await fixture.clock.advance(11_000);
  await ended;
  assert.deepEqual([worker.counters.thrown, worker.counters.nacked], [1, 1]);
});

test('a stop may wait for the server for as long as it takes', async () => {
  const server = await TestServer.start();
  const client = server.client();
  let release: (() => void) | undefined;
  let failed = 0;
  const options = { group: 'g', stopTimeoutMs: Infinity, onError: () => ++failed };
  const worker = client.worker(options, () => new Promise<void>((resolve) => (release = resolve)));
  await isMember(client);
  await client.put('a', 'v');
  await new VirtualClock(client).advance(60_000);
  await eventually(() => release !== undefined);
  await server.stop('SIGKILL');
  const stopped = worker.stop();
  release!();
  await eventually(() => failed >= 3);
  const again = await TestServer.start([], server.address);
  await stopped;
  client.close();
  await again.stop();
});

test('stops that come at once, also while the server is away, all end', async () => {
  const server = await TestServer.start();
  const client = server.client();
  const worker = client.worker({ group: 'g', stopTimeoutMs: 50 }, () => {});
  const watcher = client.watch();
  await watcher.next();
  await isMember(client);
  await server.stop('SIGKILL');
  await Promise.all([worker.stop(), worker.stop(), watcher.return(), watcher.return()]);
  await worker.stop();
  client.close();
});

test('options of a worker that cannot be are refused', async () => {
  const { client } = fixture;
  for (const options of [
    { concurrency: 0 },
    { concurrency: NaN },
    { settleBatchMax: 0 },
    { retryDelayMs: NaN },
    { extendMaxMs: -1 },
  ]) {
    assert.throws(() => client.worker({ group: 'g', ...options }, () => {}), TypeError);
  }
});
