// Plain calls that share a stream: what becomes of each, whatever becomes of the others, the stream and the server.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';
import * as grpc from '@grpc/grpc-js';
import { TimecacheClient, TimecacheError, ack, op, type ClientOptions } from 'timecached';
import {
  Entry,
  type ExecuteRequest,
  type ExecuteResponse,
  type Operation,
  type OperationResult,
  type TimeCacheServiceServer,
} from '../src/gen/timecache/v1/data.js';
import type { Endpoint } from '../src/endpoints.js';
import { RequestStream } from '../src/stream.js';
import { none, refusal, serve, statusOf } from './fake_server.js';
import { eventually, freshNamespace, startFixture } from './support.js';

type Stream = grpc.ServerDuplexStream<ExecuteRequest, ExecuteResponse>;
interface Got {
  stream: Stream;
  request: ExecuteRequest;
}

const BROKEN = { code: grpc.status.UNAVAILABLE, details: 'the connection broke' };
const TRACE = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

/** What a key's entry is: an answer that is another's has another key in it. */
function entryOf(key: Buffer) {
  return { ...none(Entry), value: Buffer.from(`of ${key}`) };
}

/** Done: a put's version is the number that its value is. */
function resultOf({ request }: Operation): OperationResult {
  if (request!.$case === 'get') {
    return { result: { $case: 'get', value: { entry: entryOf(request!.value.key) } } };
  }
  if (request!.$case !== 'put') return { result: { $case: 'contains', value: { contains: true } } };
  return {
    result: { $case: 'put', value: { version: BigInt(`${request!.value.value}`), previous: undefined } },
  };
}

function answer({ stream, request }: Got): void {
  stream.write({ results: request.operations.map(resultOf) });
}

function fail({ stream }: Got, error: object): void {
  stream.emit('error', error);
}

const keysOf = ({ request }: Got) => request.operations.map(({ request }) => `${request!.value.key}`);

/** A server that notes what it gets on its streams, and the keys of calls that come alone. */
async function start(
  onRequest: (got: Got, count: number) => void = answer,
  options: ClientOptions = {},
  serverOptions: grpc.ServerOptions = {},
  endsStreams = true, // Else what is under way comes first.
) {
  const got: Got[] = [];
  const streams: Stream[] = [];
  const peers = new Set<string>();
  const alone: string[] = [];
  const calls: Partial<TimeCacheServiceServer> = {
    pipeline: (stream) => {
      streams.push(stream);
      peers.add(stream.getPeer());
      stream.on('error', () => {});
      stream.on('data', (request: ExecuteRequest) =>
        onRequest({ stream, request }, got.push({ stream, request })),
      );
      stream.on('end', () => endsStreams && stream.end());
    },
    put: ({ request }, callback) => {
      alone.push(`${request.key}`);
      callback(null, { version: BigInt(`${request.value}`.length), previous: undefined });
    },
    get: ({ request }, callback) => {
      alone.push(`${request.key}`);
      callback(null, { entry: entryOf(request.key) });
    },
  };
  const retry = { maxAttempts: 3, minPauseMs: 1, maxPauseMs: 2 };
  const served = await serve(calls, { timeoutMs: 60_000, retry, ...options }, undefined, serverOptions);
  return { got, streams, peers, alone, ...served };
}

test('calls of one turn go together and in order, and those meanwhile with the next request', async () => {
  const held: Got[] = [];
  const { client, got, streams, alone, stop } = await start((each) => void held.push(each));
  const release = () => held.splice(0).forEach(answer);
  const put = async (i: number) => (await client.put(`k${i}`, `${i}`)).version;
  const first = [0, 1, 2].map(put);
  await eventually(() => got.length === 1);
  const second = put(3);
  await eventually(() => got.length === 2);
  // Two are under way.
  const third = Promise.all([4, 5].map(put));
  const other = client.namespace('other').getText('k6');
  await eventually(() => got.length === 3);
  release();
  assert.deepEqual(await Promise.all([...first, second]), [0, 1, 2, 3]);
  assert.equal(await other, 'of k6');
  await eventually(() => got.length === 4);
  release();
  assert.deepEqual(await third, [4, 5]);
  assert.deepEqual(got.map(keysOf), [['k0', 'k1', 'k2'], ['k3'], ['k6'], ['k4', 'k5']]);
  assert.deepEqual(
    got.map(({ request }) => [request.namespace, request.independent]),
    ['default', 'default', 'other', 'default'].map((namespace) => [namespace, true]),
  );
  assert.deepEqual([streams.length, alone], [2, []]);
  stop();
});

test('a call names itself by its request id and its trace', async () => {
  const refuse = ({ stream, request }: Got) =>
    stream.write({
      results: request.operations.map(() => ({
        result: { $case: 'error', value: statusOf('KEY_EXISTS', grpc.status.FAILED_PRECONDITION) },
      })),
    });
  const { client, got, streams, alone, stop } = await start(refuse);
  const refused = { code: 'FAILED_PRECONDITION', reason: 'KEY_EXISTS', maybeApplied: false };
  const own = { requestId: 'r-1', traceparent: TRACE };
  const puts = [client.put('a', '1', own), client.put('b', '1')];
  await assert.rejects(puts[0]!, { ...refused, requestId: 'r-1' });
  const [id] = streams[0]!.metadata.get('x-request-id');
  await assert.rejects(puts[1]!, { ...refused, requestId: id });
  const [a, b] = got[0]!.request.operations;
  assert.deepEqual([a!.requestId, a!.traceparent, b!.requestId, b!.traceparent], ['r-1', TRACE, '', '']);
  await client.put('c', '1', { requestId: 'not graphic' }); // As the server says.
  assert.deepEqual(alone, ['c']);
  stop();
});

test('some calls go alone', async () => {
  const { client, got, alone, stop } = await start();
  await client.put('large', Buffer.alloc((64 << 10) + 1));
  await client.get('metadata', { metadata: { tenant: 'a' } });
  await client.get('off', { batching: false });
  assert.deepEqual([alone, got.length], [['large', 'metadata', 'off'], 0]);
  await client.put('small', '1'.repeat(10));
  const off = new TimecacheClient(client.address, { batching: false });
  await off.get('never');
  await off.get('shared', { batching: true });
  off.close();
  assert.deepEqual([alone.slice(3), got.map(keysOf)], [['never'], [['small'], ['shared']]]);
  stop();
});

test('what an answer has no room for is asked for again, alone', async () => {
  const full = statusOf('MAX_RESPONSE_BYTES', grpc.status.RESOURCE_EXHAUSTED);
  const { client, alone, stop } = await start(({ stream, request }) =>
    stream.write({
      results: request.operations.map((operation, i) =>
        i === 0 ? resultOf(operation) : { result: { $case: 'error', value: full } },
      ),
    }),
  );
  const texts = await Promise.all(['a', 'b', 'c'].map((key) => client.getText(key)));
  assert.deepEqual(
    [texts, alone],
    [
      ['of a', 'of b', 'of c'],
      ['b', 'c'],
    ],
  );
  stop();
});

test('a server that knows no streams is called as ever', async () => {
  const unimplemented = { code: grpc.status.UNIMPLEMENTED, details: 'unknown method' };
  const { client, streams, alone, stop } = await start((each) => fail(each, unimplemented));
  assert.deepEqual(await Promise.all(['a', 'b'].map((key) => client.getText(key))), ['of a', 'of b']);
  await client.get('c');
  assert.deepEqual([alone, streams.length], [['a', 'b', 'c'], 1]);
  stop();
});

const enough = { message: 'enough' };
const late = (maybeApplied: boolean) => ({ code: 'DEADLINE_EXCEEDED', maybeApplied });

test('what waits and is cancelled, or late, is not sent', async () => {
  const held: Got[] = [];
  const { client, got, streams, stop } = await start((each) => void held.push(each));
  const abort = new AbortController();
  const { signal } = abort;
  const sent: Promise<unknown>[] = [];
  for (const count of [1, 2]) {
    sent.push(client.put(`sent ${count}`, '1'));
    await eventually(() => got.length === count);
  }
  const ends = [
    assert.rejects(client.put('cancelled', '1', { signal }), enough),
    assert.rejects(client.put('late', '1', { timeoutMs: 20 }), late(false)),
  ];
  sent.push(client.put('waits', '1'));
  abort.abort(new Error('enough'));
  await Promise.all([...ends, assert.rejects(client.put('aborted before', '1', { signal }), enough)]);
  held.splice(0).forEach(answer);
  await eventually(() => got.length === 3);
  held.splice(0).forEach(answer);
  await Promise.all(sent);
  assert.deepEqual([got.map(keysOf), streams.length], [[['sent 1'], ['sent 2'], ['waits']], 1]);
  stop();
});

test('what was sent and is cancelled, or late, touches no other; a stream without an answer gets no more', async () => {
  const held: Got[] = [];
  const hold = (each: Got, count: number) => (count === 1 ? answer(each) : void held.push(each));
  const { client, got, streams, stop } = await start(hold, {}, {}, false);
  await client.put('first', '1');
  const abort = new AbortController();
  const stays = client.put('stays', '2');
  const ends = [
    assert.rejects(client.put('cancelled', '1', { signal: abort.signal }), enough),
    assert.rejects(client.put('late', '1', { timeoutMs: 20 }), late(true)),
  ];
  await eventually(() => got.length === 2);
  abort.abort(new Error('enough'));
  await Promise.all(ends);
  const next = client.put('next', '3');
  await eventually(() => got.length === 3);
  held.splice(0).forEach(answer);
  assert.deepEqual([(await stays).version, (await next).version, streams.length], [2, 3, 2]);
  assert.deepEqual(got.slice(1).map(keysOf), [['stays', 'cancelled', 'late'], ['next']]);
  stop();
});

test('a stream that answers is kept, however late single calls are', async () => {
  const held: Got[] = [];
  const { client, got, streams, stop } = await start((each) => void held.push(each));
  const first = client.get('first');
  await eventually(() => got.length === 1);
  const isLate = assert.rejects(client.get('late', { timeoutMs: 200 }), late(true));
  await eventually(() => got.length === 2);
  answer(held.shift()!);
  await first;
  await isLate;
  const next = client.getText('next');
  await eventually(() => got.length === 3);
  held.splice(0).forEach(answer); // Also what is no longer awaited.
  assert.deepEqual([await next, streams.length], ['of next', 1]);
  stop();
});

test('a stream that breaks: what is safe is repeated, what was not sent goes on, in order', async () => {
  const { client, got, stop } = await start((each, count) => {
    if (count === 1) return; // So that the third waits.
    if (count === 2) fail(each, BROKEN);
    else answer(each);
  });
  const unsafe = client.put('a', '1');
  const safe = client.put('b', '2', { idempotencyId: 'b' });
  await eventually(() => got.length === 1);
  const said = client.put('b', '3', { repeatable: true });
  await new Promise((resolve) => setImmediate(resolve));
  const unsent = [client.put('b', '4'), client.get('c')];
  await assert.rejects(unsafe, { code: 'UNAVAILABLE', maybeApplied: true });
  assert.deepEqual([(await safe).version, (await said).version], [2, 3]);
  await Promise.all(unsent);
  assert.deepEqual(got.slice(2).map(keysOf), [['b', 'b', 'b', 'c']]);
  stop();
});

test('a call is repeated as often as it may, and says of a refusal that it may have been done before', async () => {
  const { client, got, stop } = await start((each, count) => {
    if (count <= 3 || count === 4) fail(each, BROKEN);
    else {
      const value = statusOf('KEY_EXISTS', grpc.status.FAILED_PRECONDITION);
      each.stream.write({ results: [{ result: { $case: 'error', value } }] });
    }
  });
  await assert.rejects(client.get('a'), { code: 'UNAVAILABLE', description: 'the connection broke' });
  assert.equal(got.length, 3);
  await assert.rejects(client.put('a', '1', { repeatable: true }), {
    reason: 'KEY_EXISTS',
    maybeApplied: true,
  });
  assert.equal(got.length, 5);
  stop();
});

test('a server that stops has not done what it did not answer', async () => {
  const { client, got, stop } = await start((each, count) =>
    count === 1 ? fail(each, refusal('DRAINING')) : answer(each),
  );
  const sent = [client.put('a', '1'), client.getText('b')];
  await assert.rejects(sent[0]!, { reason: 'DRAINING', maybeApplied: false });
  assert.equal(await sent[1], 'of b');
  assert.deepEqual(got.map(keysOf), [['a', 'b'], ['b']]);
  stop();
});

test('a stream that the server ends behind an answer is replaced without an error', async () => {
  const { client, got, streams, stop } = await start((each, count) =>
    count === 2 ? fail(each, refusal('DRAINING')) : answer(each),
  );
  await client.put('a', '1');
  await Promise.all(['b', 'c'].map((key) => client.put(key, '2')));
  assert.deepEqual([got.map(keysOf), streams.length], [[['a'], ['b', 'c'], ['b', 'c']], 2]);
  const pipeline = client.pipeline();
  await pipeline.add(op.put('d', '3'));
  got.length = 1; // The next one is the second.
  await pipeline.add(op.put('e', '4'));
  await pipeline.close();
  stop();
});

test('a stream whose token is no longer good is replaced by one with another token', async () => {
  const unknown = refusal('UNKNOWN_TOKEN', {}, grpc.status.UNAUTHENTICATED);
  let token = 'a';
  let good = 'a';
  const { client, streams, stop } = await start(
    (each) =>
      each.stream.metadata.get('authorization')[0] === `Bearer ${good}` ? answer(each) : fail(each, unknown),
    { token: () => token },
  );
  await client.put('k', '1');
  token = good = 'b';
  await client.put('k', '2');
  good = 'c';
  await assert.rejects(client.put('k', '3'), { reason: 'UNKNOWN_TOKEN', maybeApplied: false });
  token = 'c';
  await client.put('k', '4');
  assert.deepEqual(
    streams.map(({ metadata }) => metadata.get('authorization')[0]),
    ['a', 'b', 'b', 'c'].map((each) => `Bearer ${each}`),
  );
  stop();
});

test('an answer that does not fit is an error of each call', async () => {
  const { client, stop } = await start(({ stream }) => stream.write({ results: [] }));
  await assert.rejects(client.put('a', '1'), { code: 'INTERNAL', maybeApplied: true });
  stop();
});

test('a client that is closed ends what is under way, and refuses what comes later', async () => {
  const { client, got, stop } = await start(() => {});
  const sent = client.put('sent', '1');
  await eventually(() => got.length === 1);
  const second = client.put('second', '1');
  await eventually(() => got.length === 2);
  const waiting = client.put('waits', '1');
  client.close();
  for (const each of [sent, second]) await assert.rejects(each, { code: 'CANCELLED', maybeApplied: true });
  for (const each of [waiting, client.get('later')])
    await assert.rejects(each, {
      message: 'CANCELLED: the client is closed',
      maybeApplied: false,
    });
  stop();
});

test('a client has at most 64 streams: the longest idle one makes room, and without one a call goes alone', async () => {
  const held: Got[] = [];
  let isHeld = true;
  const { client, got, streams, alone, stop } = await start((each) =>
    isHeld ? void held.push(each) : answer(each),
  );
  const names = Array.from({ length: 64 }, (_, i) => `n${i}`);
  const busy = names.map((name) => client.namespace(name).get('busy'));
  await eventually(() => got.length === 64);
  await client.namespace('more').get('alone');
  assert.deepEqual(alone, ['alone']);
  isHeld = false;
  held.splice(0).forEach(answer);
  await Promise.all(busy);
  await client.namespace('more').get('shared');
  assert.deepEqual([alone.length, streams.length], [1, 65]);
  stop();
});

test('an idle stream is ended: the process may end though the client is not closed', async () => {
  const { client, streams, stop } = await start();
  const ended = new Promise<void>((resolve) =>
    eventually(() => streams.length > 0).then(() => streams[0]!.on('end', resolve)),
  );
  await client.get('a');
  await ended;
  await client.get('b');
  assert.equal(streams.length, 2);
  const program = `
    const { TimecacheClient } = require(${JSON.stringify(require.resolve('timecached'))});
    new TimecacheClient('${client.address}').getText('a').then(console.log);`;
  const { stdout } = await promisify(execFile)(process.execPath, ['-e', program], { timeout: 60_000 });
  assert.equal(stdout, 'of a\n');
  stop();
});

test('a stream leaves a connection that the server closes for its age before it breaks', async () => {
  const age = { 'grpc.max_connection_age_ms': 200, 'grpc.max_connection_age_grace_ms': 10_000 };
  const { client, peers, stop } = await start(answer, {}, age);
  // Not safe to repeat: none may fail.
  while (peers.size < 3) {
    await client.put('k', '1');
    await new Promise((resolve) => setImmediate(resolve));
  }
  stop();
});

test('settles of one group go together while two requests are under way', async () => {
  const held: (() => void)[] = [];
  const got: string[][] = [];
  let refuses = false;
  const { client, stop } = await serve(
    {
      settleExpired: ({ request: { group, settlements } }, callback) => {
        got.push([group, ...settlements.map(({ deliveryToken }) => `${deliveryToken}`)]);
        const results = settlements.map(({ deliveryToken }) => ({
          error: undefined,
          version: BigInt(`${deliveryToken}`),
        }));
        held.push(() => (refuses ? callback(refusal('GROUP_NOT_FOUND')) : callback(null, { results })));
      },
    },
    { timeoutMs: 60_000 },
  );
  const settle = async (group: string, ...tokens: number[]) => {
    const settlements = tokens.map((token) => ({ deliveryToken: Buffer.from(`${token}`), how: ack() }));
    assert.deepEqual(
      await client.settle(group, settlements),
      tokens.map((value) => ({ status: 'fulfilled', value })),
    );
  };
  const release = () => held.splice(0).forEach((each) => each());
  const first = [settle('g', 1), settle('g', 2, 3)];
  await eventually(() => got.length === 1);
  const second = settle('g', 4);
  await eventually(() => got.length === 2);
  const third = [settle('g', 5), settle('h', 6), settle('g', 7)];
  await eventually(() => got.length === 3);
  release();
  await Promise.all([...first, second, third[1]]);
  await eventually(() => got.length === 4);
  release();
  await Promise.all(third);
  assert.deepEqual(got, [
    ['g', '1', '2', '3'],
    ['g', '4'],
    ['h', '6'],
    ['g', '5', '7'],
  ]);
  refuses = true;
  const refused = [settle('g', 8), settle('g', 9)];
  const ends = refused.map((each) =>
    assert.rejects(each, { reason: 'GROUP_NOT_FOUND', maybeApplied: false }),
  );
  await eventually(() => got.length === 5);
  release();
  await Promise.all(ends);
  const alone = { deliveryToken: Buffer.from('10'), how: ack() };
  const own = [
    client.settle('g', [alone], { batching: false }),
    client.settle('g', [alone], { requestId: 'r' }),
  ];
  await eventually(() => got.length === 7);
  refuses = false;
  release();
  await Promise.all(own);
  stop();
});

/** Numbers that look random, the same for a seed. */
function random(seed: number): (limit: number) => number {
  let state = seed;
  return (limit) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
}

test('whatever is cancelled, late or breaks, each call ends once, with its own answer', async () => {
  for (const seed of [1, 2, 3, 4]) await fuzz(random(seed), `seed ${seed}`);
});

async function fuzz(rng: (limit: number) => number, what: string): Promise<void> {
  const done = new Map<string, number>(); // Puts by id.
  const apply = ({ request }: Operation) => {
    if (request?.$case !== 'put') return;
    const id = `${request.value.value}`;
    done.set(id, (done.get(id) ?? 0) + 1);
  };
  const ended = new WeakSet<Stream>();
  const busy = new WeakMap<Stream, Promise<void>>();
  const handle = async ({ stream, request }: Got) => {
    if (ended.has(stream)) return;
    const act = rng(20);
    const end = (error: object) => {
      ended.add(stream);
      stream.emit('error', error);
    };
    if (act === 0) return end(refusal('DRAINING'));
    if (act === 1) return end(BROKEN);
    if (act === 2) return end(refusal('UNKNOWN_TOKEN', {}, grpc.status.UNAUTHENTICATED));
    if (act < 6) await new Promise((resolve) => setTimeout(resolve, rng(12)));
    const full = statusOf('MAX_RESPONSE_BYTES', grpc.status.RESOURCE_EXHAUSTED);
    const results = request.operations.map((operation): OperationResult => {
      if (operation.request!.$case === 'get' && rng(10) === 0)
        return { result: { $case: 'error', value: full } };
      apply(operation);
      return resultOf(operation);
    });
    if (act === 6) return end(BROKEN);
    if (act === 7) return void ended.add(stream); // It hangs.
    stream.write({ results });
  };
  const { client, stop } = await start((each) => {
    const before = busy.get(each.stream) ?? Promise.resolve();
    busy.set(
      each.stream,
      before.then(() => handle(each)),
    );
  });
  const call = async (id: number) => {
    const abort = new AbortController();
    const timeoutMs = rng(4) === 0 ? 1 + rng(15) : 300;
    if (rng(5) === 0) setTimeout(() => abort.abort(new Error('enough')), rng(10));
    const options = { timeoutMs, signal: abort.signal };
    try {
      if (rng(2) === 0) return assert.equal(await client.getText(`${id}`, options), `of ${id}`);
      const idempotencyId = rng(2) === 0 ? `${id}` : undefined;
      const { version } = await client.put(`k${id % 7}`, `${id}`, { ...options, idempotencyId });
      assert.equal(version, id);
      assert.ok(idempotencyId ? done.get(`${id}`)! >= 1 : done.get(`${id}`) === 1, `${id} was not done once`);
    } catch (error) {
      if (abort.signal.aborted && error === abort.signal.reason) return;
      assert.ok(error instanceof TimecacheError && error.code !== 'INTERNAL', String(error));
      if (!error.maybeApplied) assert.equal(done.get(`${id}`), undefined, `${id}: ${error}`);
    }
  };
  let next = 1;
  const caller = async () => {
    while (next < 600) {
      await call(next++);
      if (rng(8) === 0) await new Promise((resolve) => setTimeout(resolve, rng(5)));
    }
  };
  await Promise.all(Array.from({ length: 24 }, caller)).catch((error: unknown) => {
    throw new Error(what, { cause: error });
  });
  stop();
}

test('a namespace that is not there is an error of its calls alone', async () => {
  const { client, stop } = await startFixture();
  const known = await freshNamespace(client);
  const absent = client.namespace('absent');
  const notFound = { code: 'NOT_FOUND', reason: 'NAMESPACE_NOT_FOUND', maybeApplied: false };
  await Promise.all(
    Array.from({ length: 50 }, async (_, i) => {
      await assert.rejects(absent.put(`k${i}`, '1'), notFound);
      await known.put(`k${i}`, `${i}`);
      assert.equal(await known.getText(`k${i}`), `${i}`);
    }),
  );
  // As of calls of their own.
  for (const batching of [true, false]) {
    await assert.rejects(known.put('', '1', { batching }), { reason: 'INVALID_FIELD', field: 'key' });
    await assert.rejects(known.put('k', '1', { ttlMs: -5, batching, requestId: 'r-1' }), {
      ...{ code: 'INVALID_ARGUMENT', reason: 'INVALID_FIELD', field: 'ttl', requestId: 'r-1' },
    });
  }
  await stop();
});

test('a server is far where even the shortest answer took long', () => {
  const stream = new RequestStream<never>(undefined as never, { losses: 0 } as Endpoint);
  const answers = (count: number, tookMs: number) =>
    Array.from({ length: count }, () => stream.countAnswer(tookMs));
  answers(64, 2);
  assert.equal(stream.isFar, true);
  answers(63, 1_000);
  answers(1, 0.1);
  assert.equal(stream.isFar, false);
});
