// What calls ask a server for, and how they read its answers: without a server of ours.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as grpc from '@grpc/grpc-js';
import { TimecacheError, op, type Operation } from 'timecached';
import {
  TimeCacheServiceService as Data,
  type ExecuteRequest,
  type TimeCacheServiceServer,
} from '../src/gen/timecache/v1/data.js';
import { GroupServiceService as Groups, type GroupServiceServer } from '../src/gen/timecache/v1/groups.js';
import {
  NamespaceServiceService as Namespaces,
  type NamespaceServiceServer,
} from '../src/gen/timecache/v1/namespaces.js';
import { ServerServiceService as Server, type ServerServiceServer } from '../src/gen/timecache/v1/server.js';
import { serve } from './fake_server.js';

const BROKEN = { code: grpc.status.UNAVAILABLE, details: 'broken' };
const TRACE = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const SECOND = { seconds: 1n, nanos: 0 };

type Answers = Record<string, (object | typeof BROKEN)[]>;

/** Answers each method with the next of its answers, the last one for ever, and notes the requests. */
async function answering(answers: Answers) {
  const requests: { method: string; request: any; deadline: grpc.Deadline }[] = [];
  const answer = (method: string, request: unknown, deadline: grpc.Deadline) => {
    requests.push({ method, request, deadline });
    const all = answers[method] ?? [BROKEN];
    return (all.length > 1 ? all.shift() : all[0])!;
  };
  const implement = (service: grpc.ServiceDefinition) => {
    const calls: grpc.UntypedServiceImplementation = {};
    for (const [name, { requestStream, responseStream }] of Object.entries(service)) {
      if (requestStream) {
        calls[name] = (stream: grpc.ServerDuplexStream<unknown, unknown>) => {
          stream.on('data', (request) => {
            const said = answer(name, request, 0);
            if ('code' in said) stream.emit('error', said);
            else stream.write(said);
          });
          stream.on('end', () => stream.end());
        };
      } else if (responseStream) {
        calls[name] = (stream: grpc.ServerWritableStream<unknown, unknown>) => {
          const said = answer(name, stream.request, 0);
          if ('code' in said) return void stream.emit('error', said);
          stream.write(said);
          stream.end();
        };
      } else {
        calls[name] = (
          call: grpc.ServerUnaryCall<unknown, unknown>,
          callback: grpc.sendUnaryData<unknown>,
        ) => {
          const said = answer(name, call.request, call.getDeadline());
          if ('code' in said) callback(said as grpc.ServiceError);
          else callback(null, said);
        };
      }
    }
    return calls;
  };
  const options = {
    batching: false,
    timeoutMs: 60_000,
    retry: { maxAttempts: 3, minPauseMs: 1, maxPauseMs: 2 },
  };
  const { client, stop } = await serve(implement(Data) as TimeCacheServiceServer, options, (server) => {
    server.addService(Groups, implement(Groups) as GroupServiceServer);
    server.addService(Namespaces, implement(Namespaces) as NamespaceServiceServer);
    server.addService(Server, implement(Server) as ServerServiceServer);
  });
  return { client, requests, last: () => requests.at(-1)!.request, stop };
}

function event(key: string) {
  return {
    ...{ namespace: 'default', key: Buffer.from(key), value: Buffer.alloc(0), version: 1n, cause: 1 },
    ...{ eventId: 7n, attempt: 1, returns: 0, omittedValueBytes: 0n, lastReason: '', traceparent: TRACE },
    deliveryToken: Buffer.from('t'),
  };
}

test('fetchExpired fetches events, and waits beside its timeout; it is not repeated', async () => {
  const answer = { events: [event('a')], watermark: SECOND, lost: 3n, deliveredWatermark: SECOND };
  const { client, requests, last, stop } = await answering({ fetchExpired: [answer, BROKEN] });
  const begin = Date.now();
  const fetched = await client.fetchExpired('g', { maxEvents: 7, waitMs: 30_000, start: 'EARLIEST' });
  assert.deepEqual(last(), {
    ...{ namespace: 'default', group: 'g', start: 2, maxEvents: 7, keysOnly: false },
    ...{ wait: { seconds: 30n, nanos: 0 }, maxMessageBytes: 64 << 20 },
  });
  const limitMs = Number(requests[0]!.deadline) - begin;
  assert.ok(limitMs > 80_000 && limitMs < 100_000, `${limitMs}`);
  assert.deepEqual([fetched.lost, fetched.watermark, fetched.deliveredWatermark], [3, 1000, 1000]);
  assert.deepEqual([fetched.events[0]!.key.toString(), fetched.events[0]!.traceparent], ['a', TRACE]);
  await assert.rejects(client.fetchExpired('g'), { code: 'UNAVAILABLE' });
  assert.deepEqual([requests.length, last().wait, last().maxEvents], [2, undefined, undefined]);
  stop();
});

test('a position is a start, a time or a token', async () => {
  const seekGroup = [{ unsettled: 5n, dropped: 2n }];
  const { client, last, stop } = await answering({ seekGroup, createGroup: [{ group: undefined }] });
  assert.deepEqual(await client.seekGroup('g', 'EARLIEST', { dropUnsettled: true }), {
    unsettled: 5,
    dropped: 2,
  });
  assert.deepEqual(last(), {
    ...{ namespace: 'default', name: 'g', dropUnsettled: true },
    position: { position: { $case: 'start', value: 2 } },
  });
  await client.seekGroup('g', { time: new Date(1000) });
  assert.deepEqual(last().position.position, { $case: 'time', value: SECOND });
  await client.seekGroup('g', { resumeToken: Buffer.from('t') });
  assert.deepEqual(last().position.position, { $case: 'resumeToken', value: Buffer.from('t') });
  await client.createGroup('g');
  assert.deepEqual(last().start.position, { $case: 'start', value: 1 });
  await client.createGroup('g', {}, { start: { time: 1000 } });
  assert.deepEqual(last().start.position, { $case: 'time', value: SECOND });
  await assert.rejects(client.seekGroup('g', { resumeToken: 5 as never }), TypeError);
  stop();
});

test('options of groups, and a list that is cleared', async () => {
  const group = {
    ...{ name: 'g', namespace: 'default', createdBy: '' },
    options: { keyPrefix: Buffer.from('a'), singleActive: true, retryDelays: [SECOND] },
  };
  const { client, last, stop } = await answering({ createGroup: [{ group }], updateGroup: [{ group }] });
  const asked = { keyPrefix: 'a', singleActive: true, retryDelaysMs: [1_000, 60_000] };
  const { options } = await client.createGroup('g', asked);
  assert.deepEqual(last().options.retryDelays, [SECOND, { seconds: 60n, nanos: 0 }]);
  assert.deepEqual([last().options.keyPrefix, last().options.singleActive], [Buffer.from('a'), true]);
  assert.deepEqual(
    [options.keyPrefix, options.singleActive, options.retryDelaysMs],
    [Buffer.from('a'), true, [1_000]],
  );
  await client.updateGroup('g', { retryDelaysMs: [], paused: true });
  assert.deepEqual(last().updateMask, ['options.retry_delays', 'options.paused']);
  await client.updateGroup('g', { retryDelaysMs: [5] });
  assert.equal(last().updateMask, undefined);
  stop();
});

test('unsettled events come from all pages, and members are listed', async () => {
  const first = { event: event('a'), state: 3, memberId: 3n, since: SECOND, due: SECOND };
  const { client, last, stop } = await answering({
    listUnsettled: [
      { events: [first], nextPageToken: 'p' },
      BROKEN,
      { events: [{ event: event('b'), state: 77, memberId: 0n }], nextPageToken: '' },
    ],
    listMembers: [
      {
        members: [
          {
            ...{ id: 1n, principal: 'p', peer: 'ipv4:10.0.0.7:1', since: SECOND, inFlight: 2n },
            ...{ maxInFlight: 10n, window: 1n, unresponsive: true, active: true },
          },
        ],
      },
    ],
  });
  const events = [];
  for await (const each of client.listUnsettled('g', { keyPrefix: 'a', includeValues: true }))
    events.push(each);
  assert.deepEqual(last(), {
    ...{ namespace: 'default', name: 'g', pageSize: 0, pageToken: 'p', includeValues: true },
    keyPrefix: Buffer.from('a'),
  });
  const [a, b] = events;
  assert.deepEqual([a!.state, a!.memberId, a!.since, a!.due], ['IN_FLIGHT', 3, 1000, 1000]);
  assert.deepEqual([b!.event.key.toString(), b!.state, b!.due], ['b', undefined, undefined]);
  const [member] = await client.listMembers('g');
  assert.deepEqual([member!.id, member!.since, member!.window, member!.active], [1, 1000, 1, true]);
  stop();
});

test('a batch may be atomic, and contains takes conditions', async () => {
  const error = {
    ...{ code: grpc.status.ABORTED, message: 'another failed' },
    details: [],
  };
  const { client, last, stop } = await answering({
    execute: [{ results: [{ result: { $case: 'error', value: error } }] }],
    contains: [{ contains: false }],
  });
  const [result] = await client.execute([op.contains('b', { ifVersion: 3 })], { atomic: true });
  assert.equal(last().atomic, true);
  assert.deepEqual(last().operations[0].request.value.precondition, { $case: 'ifVersion', value: 3n });
  assert.ok(result.status === 'rejected' && result.reason instanceof TimecacheError);
  assert.equal(result.reason.code, 'ABORTED');
  await client.contains('a', { ifAbsent: true });
  assert.deepEqual(last().precondition, { $case: 'condition', value: 1 });
  await assert.rejects(client.contains('a', { ifAbsent: true, ifVersion: 1 }), TypeError);
  stop();
});

test('a traceparent is kept with an entry', async () => {
  const { client, requests, stop } = await answering({
    put: [{ version: 1n }],
    append: [{ version: 1n, valueBytes: 1n, created: true }],
    combine: [{ result: 1n, version: 1n, created: true, removed: false }],
    gather: [{ version: 1n, count: 1, duplicate: false }],
  });
  const options = { entryTraceparent: TRACE };
  await client.put('a', '1', options);
  await client.append('a', '1', options);
  await client.combine('a', { add: 1 }, options);
  await client.gather('a', 'p', '1', { expectedParts: 2, ...options });
  assert.deepEqual(
    requests.map(({ request }) => request.traceparent),
    [TRACE, TRACE, TRACE, TRACE],
  );
  stop();
});

test('changes are watched, and the watch resumes', async () => {
  const change = { key: Buffer.from('a'), value: Buffer.from('1'), version: 3n, omittedValueBytes: 0n };
  const batch = {
    ...{ namespace: 'default', watermark: SECOND, lost: 2n, resumeToken: Buffer.from('t') },
    changes: [
      { ...change, kind: 1, time: SECOND, deadline: SECOND },
      { ...change, kind: 3, time: SECOND },
      { ...change, kind: 77, time: SECOND },
    ],
  };
  const { client, requests, stop } = await answering({ watchChanges: [batch, BROKEN, batch] });
  const watcher = client.watchChanges({
    ...{ resumeTokens: { default: Buffer.from('s') }, keyPrefix: 'a', failOnLoss: true, minPauseMs: 1 },
  });
  const first = (await watcher.next()).value!;
  assert.deepEqual(
    first.changes.map(({ kind, deadline }) => [kind, deadline]),
    [
      ['PUT', 1000],
      ['REMOVED', undefined],
      ['UNKNOWN', undefined],
    ],
  );
  assert.deepEqual([first.lost, first.reconnected, first.watermark], [2, false, 1000]);
  assert.equal((await watcher.next()).value!.reconnected, true);
  const tokens = requests.map(({ request }) => String(request.resumeTokens));
  assert.deepEqual([tokens[0], tokens.at(-1)], ['s', 't']);
  assert.deepEqual([requests[0]!.request.failOnLoss, String(requests[0]!.request.keyPrefix)], [true, 'a']);
  watcher.close();
  stop();
});

test('the server is asked', async () => {
  const call = {
    method: 'm',
    namespace: '',
    code: 'OK',
    operations: 1n,
    principal: 'p',
    peer: 'q',
    requestId: 'r',
  };
  const connection = { peer: '10.0.0.7:1', principal: 'p', openCalls: 2n, calls: 9n, userAgent: 'u' };
  const hot = { key: Buffer.from('a'), readsPerSecond: 1.5, writesPerSecond: 0, valueBytes: 9n };
  const { client, last, stop } = await answering({
    getHotKeys: [{ keys: [hot], window: SECOND, sampled: 8n, operationsPerSecond: 34.5 }],
    whoAmI: [
      {
        ...{ principal: 'p', peer: 'q', accessRules: true },
        permissions: [{ pattern: 'team.*', verbs: ['READ', 'WRITE'] }],
      },
    ],
    listSlowCalls: [{ calls: [{ ...call, time: SECOND, duration: SECOND }], threshold: SECOND }],
    listConnections: [
      { connections: [{ ...connection, id: 1n, since: SECOND }], nextPageToken: 'p' },
      { connections: [{ ...connection, id: 2n, since: SECOND, idle: SECOND }], nextPageToken: '' },
    ],
    closeConnection: [{}],
  });
  const { keys, windowMs, sampled } = await client.getHotKeys('ns', { maxKeys: 3 });
  assert.deepEqual(last(), { name: 'ns', maxKeys: 3 });
  assert.deepEqual([keys[0]!.readsPerSecond, keys[0]!.valueBytes, windowMs, sampled], [1.5, 9, 1000, 8]);
  const { permissions, accessRules } = await client.whoAmI();
  assert.deepEqual([permissions, accessRules], [[{ pattern: 'team.*', verbs: ['READ', 'WRITE'] }], true]);
  const { calls, thresholdMs } = await client.listSlowCalls();
  assert.deepEqual([calls[0]!.durationMs, calls[0]!.time, thresholdMs], [1000, 1000, 1000]);
  const connections = await client.listConnections();
  assert.deepEqual(
    connections.map(({ id, since, idleMs, openCalls }) => [id, since, idleMs, openCalls]),
    [
      [1, 1000, undefined, 2],
      [2, 1000, 1000, 2],
    ],
  );
  await client.closeConnection(2);
  assert.deepEqual(last(), { id: 2n });
  stop();
});

test('namespaces have partitions', async () => {
  const { client, last, stop } = await answering({
    createNamespace: [{ namespace: undefined, warnings: [] }],
  });
  await client.createNamespace('ns', { numPartitions: 4 });
  assert.equal(last().options.numPartitions, 4);
  stop();
});

test('namespaces keep changes', async () => {
  const { client, last, stop } = await answering({
    createNamespace: [{ namespace: undefined, warnings: [] }],
  });
  await client.createNamespace('ns', { changeRetentionMs: 1000, changeRetentionBytes: 1 << 20 });
  assert.deepEqual(
    [last().options.changeRetention, last().options.changeRetentionBytes],
    [SECOND, BigInt(1 << 20)],
  );
  stop();
});

const SAFE: Operation<unknown>[] = [
  op.get('a'),
  op.touch('a'),
  op.contains('a'),
  op.put('a', '1', { idempotencyId: '1' }),
  op.remove('a', { idempotencyId: '2' }),
  op.append('a', '1', { idempotencyId: '3' }),
  op.combine('a', { add: 1 }, { idempotencyId: '4' }),
  op.gather('a', 'p', '1', { idempotencyId: '5' }),
];
const UNSAFE: Operation<unknown>[] = [
  op.put('a', '1'),
  op.remove('a'),
  op.append('a', '1'),
  op.combine('a', { add: 1 }),
  op.gather('a', 'p', '1', {}),
];

test('a batch is repeated if all of it is safe', async () => {
  const answers: Answers = { execute: [BROKEN] };
  const { client, requests, stop } = await answering(answers);
  const attempts = async (operations: Operation<unknown>[], atomic = false) => {
    requests.length = 0;
    await assert.rejects(client.execute(operations, { atomic }), { code: 'UNAVAILABLE' });
    return requests.length;
  };
  assert.equal(await attempts(SAFE), 3);
  for (const unsafe of UNSAFE) assert.equal(await attempts([...SAFE, unsafe]), 1);
  // A condition that has changed would make the put fail that was done.
  const put = op.put('a', '1', { idempotencyId: '1' });
  assert.equal(await attempts([put, op.contains('b')], true), 3);
  for (const condition of [op.contains('b', { ifVersion: 1 }), op.touch('b', { ifVersion: 1 })]) {
    assert.equal(await attempts([put, condition], true), 1);
    assert.equal(await attempts([put, condition]), 3);
  }
  answers['execute'] = [BROKEN, { results: [{ result: { $case: 'get', value: {} } }] }];
  assert.equal((await client.execute([op.get('a')]))[0].status, 'fulfilled');
  stop();
});

test('a pipeline does again what is safe, and ends with what is not', async () => {
  const get = { results: [{ result: { $case: 'get', value: {} } }] };
  const put = { results: [{ result: { $case: 'put', value: { version: 1n } } }] };
  const { client, requests, stop } = await answering({
    pipeline: [BROKEN, BROKEN, put, BROKEN, get, BROKEN],
  });
  const pipeline = client.pipeline();
  assert.equal((await pipeline.add(op.put('a', '1', { idempotencyId: '1' }))).version, 1);
  assert.equal(await pipeline.add(op.get('a')), undefined);
  await pipeline.close();
  assert.equal(requests.length, 5);
  const keys = requests.map(({ request }) => (request as ExecuteRequest).operations[0]!.request!.$case);
  assert.deepEqual(keys, ['put', 'put', 'put', 'get', 'get']);
  for (const [operation, attempts] of [
    [op.get('a'), 3],
    [op.put('a', '1'), 1],
    [op.remove('a'), 1],
  ] as [Operation<unknown>, number][]) {
    requests.length = 0;
    const ends = client.pipeline();
    await assert.rejects(ends.add(operation), { code: 'UNAVAILABLE', maybeApplied: true });
    await assert.rejects(ends.close(), { code: 'UNAVAILABLE' });
    assert.equal(requests.length, attempts);
  }
  requests.length = 0;
  const repeatable = client.pipeline({ repeatable: true });
  await assert.rejects(repeatable.add(op.put('a', '1')), { code: 'UNAVAILABLE' });
  assert.equal(requests.length, 3);
  stop();
});
