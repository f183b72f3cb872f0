// What the client does as the server, or a proxy before it, does what it should not.

import assert from 'node:assert/strict';
import { constants } from 'node:http2';
import { test } from 'node:test';
import { Metadata, status } from '@grpc/grpc-js';
import { TimecacheError, decodeDeadLetter, type TimecacheClient } from 'timecached';
import { BadRequest, BadRequest_FieldViolation } from '../src/gen/google/rpc/error_details.js';
import { Status } from '../src/gen/google/rpc/status.js';
import { Entry, type ScanRequest, type ScanResponse } from '../src/gen/timecache/v1/data.js';
import { DeadLetterReason, ExpiredEvent, WatchExpiredResponse } from '../src/gen/timecache/v1/watch.js';
import { frame, none, serve, serveStreams } from './fake_server.js';

test('a watch whose streams are reset with ENHANCE_YOUR_CALM goes on, and so do calls that are safe', async () => {
  const message = frame(
    WatchExpiredResponse.encode({ ...none(WatchExpiredResponse), namespace: 'default' }).finish(),
  );
  const { client, stop } = await serveStreams((stream, count) => {
    if (count > 4) {
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
      return stream.end(frame(Buffer.alloc(0)));
    }
    if (count === 4) return stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    // Without trailers Node would end the stream in good order.
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
    stream.write(message, () => stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM));
  });
  const breaks: string[] = [];
  const watcher = client.watch({ minPauseMs: 1, onBreak: (error) => breaks.push(error.code) });
  for (let i = 0; i < 3; ++i) assert.equal((await watcher.next()).value?.namespace, 'default');
  assert.deepEqual(breaks, ['RESOURCE_EXHAUSTED', 'RESOURCE_EXHAUSTED']);
  watcher.close();
  assert.equal(await client.get('a', { batching: false }), undefined); // At the second attempt.
  stop();
});

/** Entries of these keys, as one page. */
function page(keys: string, position: string): ScanResponse {
  const entries = [...keys].map((key) => ({ ...none(Entry), key: Buffer.from(key) }));
  return { entries, position: Buffer.from(position) };
}

async function keysOf(client: TimecacheClient, seen: string[] = []): Promise<string[]> {
  for await (const { key } of client.scan()) seen.push(key.toString());
  return seen;
}

const lost = { code: status.UNAVAILABLE, details: 'the connection broke' };

test('a scan whose connection breaks goes on behind its last page', async () => {
  const asked: string[] = [];
  const { client, stop } = await serve({
    scan(call) {
      const { position } = call.request as ScanRequest;
      asked.push(position.toString());
      const pages = { '': page('ab', 'p1'), p1: page('cd', 'p2'), p2: page('e', 'p3') };
      if (asked.length === 1) return void call.emit('error', lost); // It is to be begun anew.
      if (asked.length === 3) return void call.emit('error', { code: status.DEADLINE_EXCEEDED, details: '' });
      call.write(pages[`${position}` as '']);
      if (position.toString() === 'p2') return void call.end();
      setImmediate(() => call.emit('error', lost));
    },
  });
  assert.deepEqual(await keysOf(client), ['a', 'b', 'c', 'd', 'e']);
  assert.deepEqual(asked, ['', '', 'p1', 'p1', 'p2']);
  stop();
});

function invalid(field: string) {
  const { code, details } = { code: status.INVALID_ARGUMENT, details: `${field} is wrong` };
  const value = Buffer.from(
    BadRequest.encode({ fieldViolations: [{ ...none(BadRequest_FieldViolation), field }] }).finish(),
  );
  const typeUrl = 'type.googleapis.com/google.rpc.BadRequest';
  const metadata = new Metadata();
  metadata.set(
    'grpc-status-details-bin',
    Buffer.from(Status.encode({ code, message: details, details: [{ typeUrl, value }] }).finish()),
  );
  return { code, details, metadata };
}

test('a scan that cannot go on throws what broke it', async () => {
  let position = 'p1';
  let calls = 0;
  const { client, stop } = await serve({
    scan(call) {
      ++calls;
      if ((call.request as ScanRequest).position.length > 0) {
        // As a server that was started anew says.
        return void call.emit('error', invalid('position'));
      }
      call.write(page('a', position));
      setImmediate(() => call.emit('error', lost));
    },
  });
  const seen: string[] = [];
  await assert.rejects(keysOf(client, seen), { code: 'UNAVAILABLE', description: 'the connection broke' });
  position = ''; // As of a server of an earlier version.
  await assert.rejects(keysOf(client, seen), { code: 'UNAVAILABLE', description: 'the connection broke' });
  assert.deepEqual([seen, calls], [['a', 'a'], 3]);
  stop();
});

test('a scan without progress ends after as many attempts as any call', async () => {
  let calls = 0;
  const retry = { maxAttempts: 4, minPauseMs: 1 };
  const scan = (call: { emit(name: 'error', error: unknown): unknown }) => {
    ++calls;
    call.emit('error', lost);
  };
  const { client, stop } = await serve({ scan }, { retry });
  await assert.rejects(keysOf(client), { code: 'UNAVAILABLE' });
  assert.equal(calls, 4);
  stop();
});

const EVENT = {
  namespace: 'orders',
  key: Buffer.from('o-1'),
  value: Buffer.from('v'),
  eventId: 7n,
  attempt: 5,
};

test('dead letters are decoded, also those of earlier servers', () => {
  const time = { seconds: 1_000n, nanos: 500_000_000 };
  const deadLetter = {
    group: 'billing',
    attempts: 3,
    reason: DeadLetterReason.DEAD_LETTER_REASON_TERMINATED,
    reasonText: 'no card',
    time,
  };
  const encode = (event: object) =>
    Buffer.from(ExpiredEvent.encode({ ...none(ExpiredEvent), ...event }).finish());
  const letter = (value: Buffer, key = 'orders/billing/7') => ({
    key: Buffer.from(key),
    value,
    createTime: 9,
  });

  const decoded = decodeDeadLetter(letter(encode({ ...EVENT, deadLetter }), 'any key'));
  const { event, ...rest } = decoded;
  assert.deepEqual(rest, {
    group: 'billing',
    attempts: 3,
    reason: 'TERMINATED',
    reasonText: 'no card',
    time: 1_000_500,
  });
  assert.deepEqual(
    [event.namespace, `${event.key}`, `${event.value}`, event.eventId],
    ['orders', 'o-1', 'v', 7],
  );

  const old = decodeDeadLetter(letter(encode(EVENT)));
  assert.deepEqual([old.group, old.attempts, old.reason, old.time], ['billing', 5, undefined, 9]);

  for (const key of ['orders/billing/8', 'orders/7', 'other/billing/7', 'orders//7', 'orders/a/b/7']) {
    assert.throws(() => decodeDeadLetter(letter(encode(EVENT), key)), TypeError, key);
  }
  for (const value of [Buffer.alloc(0), Buffer.from('{"total":42}'), encode({ key: EVENT.key })]) {
    assert.throws(() => decodeDeadLetter(letter(value)), TypeError);
  }
});

test('errors of tests and mocks say by default that nothing was done', () => {
  const error = new TimecacheError('UNAVAILABLE', 'away');
  assert.deepEqual([error.message, error.maybeApplied], ['UNAVAILABLE: away', false]);
});
