import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { TimecacheError, VirtualClock, ack, type ExpiredEvent, type WatchBatch } from 'timecached';
import {
  freshNamespace,
  keysOf,
  makeTemporaryDirectory,
  readToEvents,
  readUntil,
  startFixture,
  TestServer,
  type Fixture,
} from './support.js';

let fixture: Fixture;
before(async () => {
  fixture = await startFixture();
});
after(() => fixture.stop());

test('leaving the loop ends a watch', async () => {
  const watcher = (await freshNamespace(fixture.client)).watch();
  for await (const { events } of watcher) {
    assert.deepEqual(events, []);
    break;
  }
  assert.deepEqual(await watcher.next(), { done: true, value: undefined });
});

test('watches, members and workers send the metadata that they are given', async () => {
  const absent = fixture.client.namespace('absent');
  const call = { requestId: 'id-18', metadata: { 'x-other': '1' } };
  const told = { code: 'NOT_FOUND', requestId: 'id-18' };
  await assert.rejects(absent.watch(call).next(), told);
  await assert.rejects(absent.watchExpiring({ leadTimeMs: 1_000, ...call }).next(), told);
  await assert.rejects(absent.consume({ group: 'g', ...call }).next(), told);
  const options = { group: 'g', onError: () => {}, ...call };
  await assert.rejects(absent.worker(options, () => {}).finished, told);
});

test('a watch that cannot be ends with the reason; a signal ends one that waits', async () => {
  await assert.rejects(fixture.client.watch({ namespaces: ['absent'] }).next(), {
    reason: 'NAMESPACE_NOT_FOUND',
  });
  await assert.rejects(fixture.client.watch({ heartbeatIntervalMs: 1 }).next(), { code: 'INVALID_ARGUMENT' });
  const client = await freshNamespace(fixture.client);
  const controller = new AbortController();
  const watcher = client.watch({ signal: controller.signal });
  await watcher.next();
  const next = watcher.next();
  controller.abort(new Error('enough'));
  await assert.rejects(next, { message: 'enough' });
  const closed = client.watch();
  await closed.next();
  const waiting = closed.next();
  closed.close();
  assert.equal((await waiting).done, true);
});

test('a value that does not fit into the channel is left out, and the watch goes on', async () => {
  const client = await freshNamespace(fixture.client, { maxValueBytes: 16 << 20 });
  const small = fixture.server.client({
    namespace: client.defaultNamespace,
    channelOptions: { 'grpc.max_receive_message_length': 4 << 20 },
  });
  const unaware = small.watch({ maxMessageBytes: 64 << 20 });
  await unaware.next();
  const watcher = small.watch();
  await watcher.next();
  await client.put('a', Buffer.alloc(8 << 20));
  const now = await fixture.clock.advance(11_000);
  assert.deepEqual(keysOf(await readUntil(unaware, now)), ['a']);
  unaware.close();
  const batches = await readUntil(watcher, now);
  assert.deepEqual(keysOf(batches), ['a']);
  assert.ok(!batches.some(({ reconnected }) => reconnected));
  assert.equal(
    batches.reduce((sum, batch) => sum + batch.omittedValues, 0),
    1,
  );
  assert.equal(batches.flatMap(({ events }) => events)[0]?.omittedValueBytes, 8 << 20);
  watcher.close();
  small.close();
});

test('a watch over kills and restarts of the server misses nothing in a durable namespace, and tells nothing twice', async () => {
  const journal = makeTemporaryDirectory();
  let server = await TestServer.start(['--journal', journal.path]);
  const { address } = server;
  const client = server.client();
  const clock = new VirtualClock(client);
  await client.createNamespace('durable', { ttlMs: 1_000, numBuckets: 11, durability: 'SYNC' });
  const durable = client.namespace('durable');
  const breaks: TimecacheError[] = [];
  const watcher = durable.watch({ onBreak: (error) => breaks.push(error) });
  await watcher.next();
  const seen: string[] = [];
  let last: WatchBatch | undefined;
  const read = async (until: number) => {
    const batches = await readUntil(watcher, until);
    seen.push(...keysOf(batches));
    last = batches.at(-1)!;
    return batches;
  };
  const rounds = 4;
  for (let round = 0; round < rounds; ++round) {
    for (let i = 0; i < 50; ++i)
      await durable.put(`${round}-${i}`, 'v', { ttlMs: 500 + i * 10, timeoutMs: 20_000 });
    const middle = await clock.advance(700);
    await read(middle);
    await server.stop(round % 2 ? 'SIGTERM' : 'SIGKILL');
    server = await TestServer.start(['--journal', journal.path], address);
    await client.getServer({ timeoutMs: 20_000 }).catch(() => {});
    let now = 0;
    while (now === 0) now = await clock.advance(1_000).catch(() => 0);
    const batches = await read(now);
    assert.ok(batches.some(({ reconnected }) => reconnected));
    assert.ok(batches.every(({ lost, logChanged }) => lost === 0 && !logChanged));
  }
  const expected = Array.from({ length: rounds * 50 }, (_, i) => `${Math.floor(i / 50)}-${i % 50}`);
  assert.deepEqual([...seen].sort(), expected.sort());
  assert.ok(breaks.length >= rounds);
  watcher.close();

  const resumed = durable.watch({ resumeTokens: { durable: last!.resumeToken } });
  await durable.put('after', 'v');
  assert.deepEqual(keysOf(await readUntil(resumed, await clock.advance(2_000))), ['after']);
  resumed.close();
  client.close();
  await server.stop();
  journal.remove();
});

test('watchExpiring and a member go on over a kill of the server of a durable namespace', async () => {
  const journal = makeTemporaryDirectory();
  let server = await TestServer.start(['--journal', journal.path]);
  const client = server.client();
  const clock = new VirtualClock(client);
  await client.createNamespace('durable', { ttlMs: 10_000, numBuckets: 11, durability: 'SYNC' });
  const durable = client.namespace('durable');
  let breaks = 0;
  const onBreak = () => ++breaks;
  const expiring = durable.watchExpiring({ leadTimeMs: 5_000, onBreak });
  const member = durable.consume({ group: 'g', onBreak });
  await expiring.next();
  await member.next();
  /** What the member is given next, but for heartbeats. */
  const given = async () => {
    const batches = await readToEvents(member);
    return { batches, events: batches.flatMap(({ events }) => events) };
  };
  const settle = async (events: readonly ExpiredEvent[]) => {
    const all = events.map(({ deliveryToken }) => ({ deliveryToken, how: ack() }));
    for (const { status } of await durable.settle('g', all)) assert.equal(status, 'fulfilled');
  };

  await durable.put('dead', 'v');
  await clock.advance(5_000);
  await durable.put('dying', 'v');
  assert.deepEqual(keysOf(await readUntil(expiring, await clock.advance(6_500))), ['dead', 'dying']);
  assert.deepEqual(keysOf((await given()).batches), ['dead']);
  await server.stop('SIGKILL');
  server = await TestServer.start(['--journal', journal.path], server.address);
  // What is alive is told again, and what was not settled is given out again.
  const told = await readToEvents(expiring);
  assert.deepEqual([keysOf(told), told.some(({ reconnected }) => reconnected)], [['dying'], true]);
  const again = await given();
  assert.deepEqual(
    [keysOf(again.batches), again.batches.some(({ reconnected }) => reconnected)],
    [['dead'], true],
  );
  await settle(again.events);
  assert.ok(breaks >= 2);

  await durable.put('later', 'v');
  assert.deepEqual(keysOf(await readUntil(expiring, await clock.advance(6_500))), ['later']);
  const next = await given();
  assert.deepEqual(keysOf(next.batches), ['dying']);
  await settle(next.events);
  const all = [...told, ...again.batches, ...next.batches];
  assert.ok(all.every(({ lost, logChanged }) => lost === 0 && !logChanged));
  expiring.close();
  member.close();
  client.close();
  await server.stop();
  journal.remove();
});

test('a restart that forgets the log is told as logChanged', async () => {
  let server = await TestServer.start();
  const client = server.client();
  const watcher = client.watch({ heartbeatIntervalMs: 10 });
  const { watermark } = (await watcher.next()).value!;
  await server.stop('SIGKILL');
  server = await TestServer.start([], server.address);
  const { value } = await watcher.next();
  assert.deepEqual([value?.reconnected, value?.logChanged, value?.missedAfter], [true, true, watermark]);
  watcher.close();
  client.close();
  await server.stop();
});
