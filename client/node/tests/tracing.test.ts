// Spans of calls and of handlers, by the SDK of OpenTelemetry, and that none of it need be there.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { before, beforeEach, test } from 'node:test';
import { promisify } from 'node:util';
import * as grpc from '@grpc/grpc-js';
import { ROOT_CONTEXT, SpanKind, SpanStatusCode, TraceFlags, context, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
  type ReadableSpan,
} from '@opentelemetry/sdk-trace-base';
import { nack, op, putBack, withConsumerSpan, type ClientOptions, type ExpiredEvent } from 'timecached';
import type {
  ExecuteRequest,
  ExecuteResponse,
  PutRequest,
  TimeCacheServiceServer,
} from '../src/gen/timecache/v1/data.js';
import type { ExpiredEvent as ExpiredEventMessage } from '../src/gen/timecache/v1/watch.js';
import { serve } from './fake_server.js';
import { eventually } from './support.js';

const SERVICE = 'timecache.v1.TimeCacheService';
const PUT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const exporter = new InMemorySpanExporter();
const tracer = trace.getTracer('test');

before(() => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(
    new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }),
  );
});
beforeEach(() => exporter.reset());

const EVENT: ExpiredEventMessage = {
  namespace: 'default',
  key: Buffer.from('a'),
  value: Buffer.from('12'),
  version: 1n,
  putTime: undefined,
  deadline: undefined,
  deathTime: undefined,
  deliveredAt: undefined,
  createTime: undefined,
  ownTtl: undefined,
  cause: 1,
  eventId: 7n,
  attempt: 2,
  parts: undefined,
  omittedValueBytes: 0n,
  returns: 0,
  deadLetter: undefined,
  deliveryToken: Buffer.from('t'),
  lastReason: '',
  traceparent: PUT,
};

/** A server that notes requests with the traceparents of their calls, and gives one event. */
async function start(failures: Partial<grpc.StatusObject>[] = [], options: ClientOptions = {}) {
  const requests: { traceparent: unknown; request: PutRequest & ExecuteRequest }[] = [];
  const note = (metadata: grpc.Metadata, request: unknown) => {
    requests.push({ traceparent: metadata.get('traceparent')[0], request: request as never });
    return failures.shift();
  };
  const settled: string[] = [];
  const execute = ({ operations }: ExecuteRequest): ExecuteResponse => ({
    results: operations.map(({ request }) => ({
      result: { $case: request!.$case, value: RESULTS[request!.$case] } as never,
    })),
  });
  const calls: Partial<TimeCacheServiceServer> = {
    put: ({ metadata, request }, callback) => {
      const failure = note(metadata, request);
      if (failure) callback(failure);
      else callback(null, { version: 1n, previous: undefined });
    },
    get: ({ metadata, request }, callback) => {
      const failure = note(metadata, request);
      if (failure) callback(failure);
      else callback(null, { entry: undefined });
    },
    execute: ({ metadata, request }, callback) => {
      note(metadata, request);
      callback(null, execute(request));
    },
    pipeline: (stream) => {
      stream.on('data', (request: ExecuteRequest) => {
        note(stream.metadata, request);
        stream.write(execute(request));
      });
      stream.on('end', () => stream.end());
    },
    scan: (stream) => {
      note(stream.metadata, stream.request);
      stream.end();
    },
    consumeExpired: (stream) => {
      stream.write({
        ...{ namespace: 'default', events: [EVENT], watermark: undefined, lost: 0n },
        deliveredWatermark: undefined,
      });
    },
    settleExpired: ({ request }, callback) => {
      settled.push(...request.settlements.map(({ action }) => action!.$case));
      callback(null, { results: request.settlements.map(() => ({ error: undefined, version: 0n })) });
    },
  };
  return { requests, settled, ...(await serve(calls, { batching: false, timeoutMs: 60_000, ...options })) };
}

const RESULTS = {
  put: { version: 1n },
  get: {},
  remove: { removed: false },
  contains: { contains: false },
  touch: { touched: false, version: 0n },
  append: { version: 1n, valueBytes: 1n, created: false },
  combine: { result: 1n, version: 1n, created: false, removed: false },
  gather: { version: 1n, count: 1, duplicate: false },
};

function spans(name: string): ReadableSpan[] {
  return exporter.getFinishedSpans().filter((span) => span.name === name);
}

function one(name: string): ReadableSpan {
  const [span, ...more] = spans(name);
  assert.ok(
    span && more.length === 0,
    exporter
      .getFinishedSpans()
      .map((each) => each.name)
      .join(', '),
  );
  return span;
}

function traceparentOf(span: ReadableSpan): string {
  const { traceId, spanId, traceFlags } = span.spanContext();
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
}

test('a call is a span whose context goes to the server', async () => {
  const { client, requests, stop } = await start();
  await tracer.startActiveSpan('request', async (parent) => {
    await client.put('k', 'v');
    parent.end();
  });
  const span = one(`${SERVICE}/Put`);
  assert.equal(span.kind, SpanKind.CLIENT);
  assert.equal(span.parentSpanContext?.spanId, one('request').spanContext().spanId);
  assert.deepEqual(span.attributes, {
    'rpc.system': 'grpc',
    'rpc.service': SERVICE,
    'rpc.method': 'Put',
    'rpc.grpc.status_code': 0,
    'server.address': '127.0.0.1',
    'server.port': Number(client.address.split(':')[1]),
    'timecached.namespace': 'default',
  });
  assert.equal(requests[0]!.traceparent, traceparentOf(span));
  assert.equal(requests[0]!.request.traceparent, '');
  stop();
});

test('calls that share a stream are spans of their own', async () => {
  const { client, requests, stop } = await start([], { batching: true, traceEntries: true });
  await tracer.startActiveSpan('request', async (parent) => {
    await Promise.all([client.put('k', 'v'), client.get('k')]);
    parent.end();
  });
  const [put, get] = [one(`${SERVICE}/Put`), one(`${SERVICE}/Get`)];
  for (const span of [put, get]) {
    assert.equal(span.parentSpanContext?.spanId, one('request').spanContext().spanId);
    assert.equal(span.attributes['timecached.namespace'], 'default');
  }
  const { operations } = requests[0]!.request;
  assert.deepEqual(
    operations.map(({ traceparent }) => traceparent),
    [traceparentOf(put), traceparentOf(get)],
  );
  assert.equal((operations[0]!.request!.value as PutRequest).traceparent, traceparentOf(put));
  assert.deepEqual([spans(`${SERVICE}/Pipeline`).length, requests[0]!.traceparent], [0, undefined]);
  stop();
});

test("a traceparent of the caller's own stays", async () => {
  const { client, requests, stop } = await start();
  await client.put('k', 'v', { traceparent: PUT });
  await client.put('k', 'v', { traceparent: PUT, traceEntries: true });
  assert.deepEqual(
    requests.map(({ traceparent, request }) => [traceparent, request.traceparent]),
    [
      [PUT, ''],
      [PUT, PUT],
    ],
  );
  stop();
});

test('a call that fails says why, and retries are events', async () => {
  const refused = { code: grpc.status.PERMISSION_DENIED, details: 'no' };
  const broken = { code: grpc.status.UNAVAILABLE, details: 'reset' };
  const { client, stop } = await start([refused, broken, broken]);
  await assert.rejects(client.put('k', 'v'), { code: 'PERMISSION_DENIED' });
  const failed = one(`${SERVICE}/Put`);
  assert.deepEqual(failed.status, { code: SpanStatusCode.ERROR, message: 'PERMISSION_DENIED: no' });
  assert.equal(failed.attributes['rpc.grpc.status_code'], 7);
  assert.equal(failed.attributes['error.type'], 'PERMISSION_DENIED');
  await client.get('k');
  const { events, status } = one(`${SERVICE}/Get`);
  assert.deepEqual(
    events.map(({ name, attributes }) => [name, attributes?.['timecached.attempt']]),
    [
      ['retry', 2],
      ['retry', 3],
    ],
  );
  assert.equal(status.code, SpanStatusCode.UNSET);
  stop();
});

test('entries keep the trace if they are to', async () => {
  const { client, requests, stop } = await start([], { traceEntries: true });
  const own = PUT.replace('b7ad', 'b7ae');
  await client.put('k', 'v');
  await client.execute([
    op.put('k', 'v'),
    op.get('k'),
    op.append('k', 'v', { entryTraceparent: own }),
    op.combine('k', { add: 1 }),
    op.gather('k', 'p', 'v', { expectedParts: 2 }),
  ]);
  await client.put('k', 'v', { traceEntries: false });
  const [put, batch, without] = requests.map(({ request }) => request);
  assert.equal(put!.traceparent, traceparentOf(spans(`${SERVICE}/Put`)[0]!));
  const ofBatch = traceparentOf(one(`${SERVICE}/Execute`));
  assert.deepEqual(
    batch!.operations.map(({ request }) => (request!.value as Partial<PutRequest>).traceparent),
    [ofBatch, undefined, own, ofBatch, ofBatch],
  );
  assert.equal(without!.traceparent, '');
  stop();
});

test('a trace that is not sampled is not kept', async () => {
  const { client, requests, stop } = await start([], { traceEntries: true });
  const unsampled = trace.wrapSpanContext({
    ...{ traceId: '1'.repeat(32), spanId: '2'.repeat(16), traceFlags: TraceFlags.NONE, isRemote: true },
  });
  await context.with(trace.setSpan(ROOT_CONTEXT, unsampled), () => client.put('k', 'v'));
  assert.match(requests[0]!.traceparent as string, /-00$/);
  assert.equal(requests[0]!.request.traceparent, '');
  stop();
});

test('requests of a pipeline are spans of what opened it, and a scan is one', async () => {
  const { client, requests, stop } = await start();
  const pipeline = tracer.startActiveSpan('request', (parent) => {
    parent.end();
    return client.pipeline({ traceEntries: true });
  });
  await Promise.all([pipeline.add(op.put('k', 'v')), pipeline.add(op.put('l', 'v'))]);
  await pipeline.close();
  const span = one(`${SERVICE}/Pipeline`);
  assert.equal(span.parentSpanContext?.spanId, one('request').spanContext().spanId);
  assert.equal(span.attributes['timecached.operations'], 2);
  const [first] = requests[0]!.request.operations;
  assert.equal((first!.request!.value as PutRequest).traceparent, traceparentOf(span));
  for await (const _ of client.scan()) assert.fail();
  assert.equal(requests[1]!.traceparent, traceparentOf(one(`${SERVICE}/Scan`)));
  stop();
});

test('a handler runs in a span that links to the put', async () => {
  const { client, settled, stop } = await start();
  await tracer.startActiveSpan('main', async (main) => {
    const worker = client.worker({ group: 'g' }, async () => {
      await new Promise((resolve) => setImmediate(resolve));
      tracer.startSpan('inner').end();
      return putBack();
    });
    await eventually(() => settled.length > 0);
    await worker.stop();
    main.end();
  });
  const span = one('process default');
  assert.equal(span.kind, SpanKind.CONSUMER);
  assert.equal(span.parentSpanContext, undefined);
  assert.equal(spans(`${SERVICE}/SettleExpired`).length, 0); // What a worker calls by itself has no span.
  assert.equal(one('inner').parentSpanContext?.spanId, span.spanContext().spanId);
  const [link] = span.links;
  assert.equal(`00-${link!.context.traceId}-${link!.context.spanId}-01`, PUT);
  assert.deepEqual(span.attributes, {
    'messaging.system': 'timecached',
    'messaging.operation.name': 'process',
    'messaging.operation.type': 'process',
    'messaging.destination.name': 'default',
    'messaging.consumer.group.name': 'g',
    'messaging.message.body.size': 2,
    'messaging.message.id': '7',
    'timecached.namespace': 'default',
    'timecached.attempt': 2,
    'timecached.cause': 'EXPIRED',
    'timecached.settlement': 'put_back',
  });
  stop();
});

test('a handler that throws is an error', async () => {
  const { client, settled, stop } = await start();
  const worker = client.worker({ group: 'g', onError: () => {} }, () => {
    throw new Error('broken');
  });
  await eventually(() => settled.length > 0);
  await worker.stop();
  const { status, events } = one('process default');
  assert.equal(status.code, SpanStatusCode.ERROR);
  assert.equal(events[0]!.name, 'exception');
  stop();
});

test('who has no worker makes the span', async () => {
  const event = {
    namespace: 'ns',
    value: Buffer.alloc(3),
    cause: 'EXPIRED',
    traceparent: 'x',
  } as ExpiredEvent;
  await tracer.startActiveSpan('job', async (job) => {
    assert.equal(await withConsumerSpan(event, '', () => 5), 5);
    await withConsumerSpan({ ...event, namespace: 'other' }, 'g', () => nack(1, 'later'));
    job.end();
  });
  assert.equal(one('process ns').parentSpanContext?.spanId, one('job').spanContext().spanId);
  assert.equal(one('process ns').links.length, 0);
  assert.equal(one('process other').attributes['timecached.settlement.reason'], 'later');
});

test('it need not be installed', async () => {
  const { client, requests, settled, stop } = await start();
  const program = `
    const { Module } = require('node:module');
    const load = Module._load;
    Module._load = (name, ...more) => {
      if (name.startsWith('@opentelemetry')) throw new Error('not installed');
      return load(name, ...more);
    };
    const { TimecacheClient } = require(${JSON.stringify(require.resolve('timecached'))});
    const client = new TimecacheClient('${client.address}', { traceEntries: true });
    (async () => {
      await client.put('k', 'v');
      const worker = client.worker({ group: 'g' }, () => {});
      while (worker.counters.acked === 0) await new Promise((resolve) => setTimeout(resolve, 5));
      await worker.stop();
      client.close();
      console.log('done');
    })();`;
  const { stdout } = await promisify(execFile)(process.execPath, ['-e', program], { timeout: 60_000 });
  assert.equal(stdout, 'done\n');
  assert.deepEqual(settled, ['ack']);
  assert.equal(requests[0]!.traceparent, undefined);
  stop();
});
