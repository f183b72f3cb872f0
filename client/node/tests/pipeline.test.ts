import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { TimecacheClient, TimecacheError, op } from 'timecached';
import { freshNamespace, startFixture, TestServer, type Fixture } from './support.js';

let fixture: Fixture;
before(async () => {
  fixture = await startFixture();
});
after(() => fixture.stop());

test('operations are done in order, and each is answered', async () => {
  const client = await freshNamespace(fixture.client);
  const pipeline = client.pipeline({ batchOperationsMax: 100, operationsInFlightMax: 500 });
  const results: Promise<bigint>[] = [];
  for (let i = 0; i < 5_000; ++i) {
    await pipeline.ready();
    results.push(pipeline.add(op.combine(`n${i % 7}`, { add: 1 })).then(({ result }) => result));
  }
  const missing = pipeline.add(op.get('absent'));
  const failed = assert.rejects(pipeline.add(op.put('n0', '1', { ifAbsent: true })), {
    reason: 'KEY_EXISTS',
  });
  await pipeline.close();
  assert.equal(await missing, undefined);
  await failed;
  for (const [i, result] of (await Promise.all(results)).entries())
    assert.equal(result, BigInt(Math.floor(i / 7) + 1));
  await assert.rejects(pipeline.add(op.get('a')), { code: 'FAILED_PRECONDITION' });
  await pipeline.close();
});

test('large values go in requests of their own, and ready bounds what is in flight', async () => {
  const client = await freshNamespace(fixture.client, { maxValueBytes: 16 << 20 });
  const pipeline = client.pipeline();
  const values: Promise<unknown>[] = [];
  for (let i = 0; i < 12; ++i) {
    await pipeline.ready();
    values.push(pipeline.add(op.put(`k${i}`, Buffer.alloc(2 << 20, i))));
  }
  values.push(pipeline.add(op.put('largest', Buffer.alloc(16 << 20))));
  await pipeline.drain();
  await Promise.all(values);
  await assert.rejects(pipeline.add(op.put('a', Buffer.alloc(17 << 20))), TypeError);
  const entry = await pipeline.add(op.get('k11'));
  assert.ok(entry?.value.equals(Buffer.alloc(2 << 20, 11)));
  await pipeline.close();
  assert.equal((await client.size()).entries, 13);
});

test('ready bounds what is in flight also where many callers wait for it', async () => {
  const client = await freshNamespace(fixture.client);
  const bytesInFlightMax = 64 << 10;
  const value = Buffer.alloc(8 << 10);
  const pipeline = client.pipeline({ bytesInFlightMax });
  await pipeline.add(op.put('first', value));
  let bytes = 0;
  let most = 0;
  const produce = async (_: unknown, i: number) => {
    await pipeline.ready();
    most = Math.max(most, (bytes += value.length));
    await pipeline.add(op.put(`k${i}`, value));
    bytes -= value.length;
  };
  await Promise.all(Array.from({ length: 200 }, produce));
  assert.ok(most <= bytesInFlightMax + value.length, `${most} bytes were in flight`);
  // A caller that was let go on and adds nothing does not keep its room.
  for (let i = 0; i < 100; ++i) await pipeline.ready();
  await pipeline.close();
});

test('what is in flight is told of the end of the stream, and so is what comes later', async () => {
  const pipeline = fixture.client.namespace('absent').pipeline();
  const notFound = { code: 'NOT_FOUND', reason: 'NAMESPACE_NOT_FOUND' };
  await Promise.all([
    assert.rejects(pipeline.add(op.get('a')), notFound),
    assert.rejects(pipeline.add(op.get('b')), notFound),
  ]);
  await assert.rejects(pipeline.add(op.get('c')), notFound);
  await assert.rejects(pipeline.close(), notFound);

  const cancelled = fixture.client.pipeline();
  const waiting = assert.rejects(cancelled.add(op.get('a')), { code: 'CANCELLED' });
  cancelled.cancel();
  await waiting;

  const controller = new AbortController();
  const aborted = fixture.client.pipeline({ signal: controller.signal });
  await aborted.add(op.get('a'));
  controller.abort(new Error('enough'));
  await assert.rejects(aborted.add(op.get('a')), { message: 'enough' });
});

test('a server that goes away ends the stream', async () => {
  const nobody = new TimecacheClient('127.0.0.1:1');
  await assert.rejects(nobody.pipeline().add(op.get('a')), { code: 'UNAVAILABLE' });
  nobody.close();

  const server = await TestServer.start();
  const client = server.client();
  const pipeline = client.pipeline();
  await pipeline.add(op.put('a', '1'));
  await server.stop('SIGKILL');
  const error = await pipeline.add(op.get('a')).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof TimecacheError && error.reason === undefined, String(error));
  client.close();
});

test('a server that answers nothing within the timeout ends the stream, also one that is being closed', async () => {
  const server = await TestServer.start();
  const client = server.client();
  await client.getServer();
  const answered = client.pipeline({ timeoutMs: 2_000 });
  await answered.add(op.put('a', '1'));
  server.freeze();
  const late = { code: 'DEADLINE_EXCEEDED' };
  const asking = client.pipeline({ timeoutMs: 100 });
  await Promise.all([
    assert.rejects(asking.add(op.get('a')), late),
    assert.rejects(asking.drain(), late),
    // Closed behind the last answer, while one is missing, and without a single operation.
    assert.rejects(answered.close(), { ...late, message: 'DEADLINE_EXCEEDED: no answer within 2000 ms' }),
    assert.rejects(asking.close(), late),
    assert.rejects(client.pipeline({ timeoutMs: 100 }).close(), late),
  ]);
  await assert.rejects(answered.close(), late);
  client.close();
  await server.stop('SIGKILL');
});
