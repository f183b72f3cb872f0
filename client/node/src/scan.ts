// Scans that go on over a broken connection. Internal.

import type { CallOptions, Connection } from './connection.js';
import { TimecacheError, isConnectionLost } from './errors.js';
import { TimeCacheServiceService as Service, type ScanResponse } from './gen/timecache/v1/data.js';
import { pause } from './timing.js';
import { beginCall, type CallSpan } from './tracing.js';
import type { ScanOptions } from './types.js';
import { toBuffer, toUint32 } from './values.js';

/** The pages of a scan, each once. All of it is one span. */
export async function* scanPages(
  connection: Connection,
  namespace: string,
  options: ScanOptions & CallOptions,
): AsyncGenerator<ScanResponse, void, undefined> {
  const span = beginCall(Service.scan.path, { namespace }, connection.address);
  const traceparent = options.traceparent ?? span.traceparent;
  try {
    yield* pagesOf(connection, namespace, { ...options, traceparent }, span);
  } catch (error) {
    span.end(error);
    throw error;
  } finally {
    span.end();
  }
}

async function* pagesOf(
  connection: Connection,
  namespace: string,
  options: ScanOptions & CallOptions,
  span: CallSpan,
): AsyncGenerator<ScanResponse, void, undefined> {
  const request = {
    namespace,
    keyPrefix: toBuffer(options.keyPrefix ?? '', 'keyPrefix'),
    keysOnly: options.keysOnly ?? false,
    maxMessageBytes: toUint32(options.maxMessageBytes ?? connection.maxMessageBytes, 'maxMessageBytes'),
    position: Buffer.alloc(0) as Buffer,
  };
  const end = Date.now() + (options.timeoutMs ?? Infinity);
  let backoff = connection.backoff();
  let attempts = 0; // Since the last page.
  let hasBegun = false; // With no server there it fails as other calls do.
  let isResumable = true;
  let broke: unknown;
  for (;;) {
    const stream = await connection.serverStream(Service.scan, request, {
      ...options,
      timeoutMs: end - Date.now(),
    });
    try {
      for (let page = await stream.next(); page; page = await stream.next()) {
        request.position = page.position;
        isResumable = page.position.length > 0; // Not by a server of an earlier version.
        hasBegun = true;
        attempts = 0;
        backoff = connection.backoff();
        yield page;
      }
      return;
    } catch (error) {
      if (isPositionRefused(error)) throw broke ?? error;
      broke = error;
      hasBegun ||= error instanceof TimecacheError && error.maybeApplied;
      const mayGoOn = hasBegun && isResumable && !connection.isClosed && ++attempts < connection.maxAttempts;
      if (!mayGoOn || !isBreak(error, Date.now() < end)) throw error;
    } finally {
      stream.cancel();
    }
    span.retry(broke, connection.address);
    await pause(backoff.next(), options.signal);
  }
}

/** A scan that is not read for a while is ended by the server's deadline, without details as nobody reads them. */
function isBreak(error: unknown, hasTime: boolean): boolean {
  if (!(error instanceof TimecacheError)) return false;
  return (
    isConnectionLost(error) ||
    (error.code === 'DEADLINE_EXCEEDED' && hasTime) ||
    error.reason === 'UNREAD_RESPONSES'
  );
}

/** It was of a server that has stopped. */
function isPositionRefused(error: unknown): boolean {
  return error instanceof TimecacheError && error.code === 'INVALID_ARGUMENT' && error.field === 'position';
}
