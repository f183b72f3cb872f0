// What calls fail with.

import { Metadata, status as grpcCodes, type ServiceError } from '@grpc/grpc-js';
import { BadRequest, ErrorInfo, RetryInfo } from './gen/google/rpc/error_details.js';
import { Status } from './gen/google/rpc/status.js';
import type { ErrorReason as Reasons } from './gen/timecache/v1/errors.js';
import { fromDuration } from './values.js';

/** The name of a gRPC status code, such as `NOT_FOUND`. */
export type ErrorCode = Exclude<keyof typeof grpcCodes, 'OK'>;

/**
 * Why the server refused: the names of ErrorReason in errors.proto, which says the code and the metadata of each.
 * A later server may have more of them.
 */
export type ErrorReason =
  Exclude<keyof typeof Reasons, 'ERROR_REASON_UNSPECIFIED' | 'UNRECOGNIZED'> | (string & {});

/** A field of a request that the server refused. */
export interface FieldViolation {
  /** Its path in the request's message, such as `operations[3].put.key`. */
  field: string;
  /** What is wrong with it. */
  description: string;
}

/**
 * What a call failed with. A call that its AbortSignal ended is rejected with the signal's reason instead, and an
 * argument that cannot be sent at all (a key that is a number) with a TypeError.
 *
 * With a `reason` the error is the server's own, without one gRPC's. `maybeApplied` says whether the call can have been
 * done all the same. The message has code and reason, the stack the frames that await the call.
 */
export class TimecacheError extends Error {
  override readonly name = 'TimecacheError';
  /** The gRPC code. */
  readonly code: ErrorCode;
  /** The message without code and reason. */
  readonly description: string;
  /** Why the server refused, for programs. */
  readonly reason: ErrorReason | undefined;
  /** What the server says beside the reason, such as which `namespace`. */
  readonly metadata: Readonly<Record<string, string>>;
  /** The fields that an INVALID_ARGUMENT is about. */
  readonly violations: readonly FieldViolation[];
  /** How long the server says to wait before the call is tried again, in ms. */
  readonly retryDelayMs: number | undefined;
  /** The id under which the server's log has the call: the caller's, its stream's, or one that the server made. */
  readonly requestId: string | undefined;
  /**
   * Whether the request, or an earlier attempt of it, may have reached the server and been done, although this error says
   * nothing of it: the connection broke, the time was up, the call was cancelled. False: it was not done, as the server
   * refused it, or there was no connection to it.
   */
  readonly maybeApplied: boolean;

  /** For tests and mocks; else the client makes them. */
  constructor(
    code: ErrorCode,
    message: string,
    details: Partial<
      Pick<
        TimecacheError,
        'reason' | 'metadata' | 'violations' | 'retryDelayMs' | 'requestId' | 'maybeApplied' | 'cause'
      >
    > = {},
  ) {
    super(
      `${code}${details.reason ? ` (${details.reason})` : ''}: ${message}`,
      details.cause === undefined ? undefined : { cause: details.cause },
    );
    this.code = code;
    this.description = message;
    this.reason = details.reason;
    this.metadata = details.metadata ?? {};
    this.violations = details.violations ?? [];
    this.retryDelayMs = details.retryDelayMs;
    this.requestId = details.requestId;
    this.maybeApplied = details.maybeApplied ?? false;
  }

  /** The path of the first field that the error is about. */
  get field(): string | undefined {
    return this.violations[0]?.field;
  }
}

const TOO_LARGE = 'Received message larger than max';
/** Also of what gRPC refuses to send, or to decompress. */
const ANY_TOO_LARGE = 'larger than';

/** Whether gRPC refused an answer because it is larger than the client's `grpc.max_receive_message_length`. */
export function isMessageTooLarge(error: unknown): boolean {
  return (
    error instanceof TimecacheError &&
    error.code === 'RESOURCE_EXHAUSTED' &&
    error.reason === undefined &&
    error.description.includes(TOO_LARGE)
  );
}

/**
 * Whether the server is stopping, or the connection or the stream broke: gRPC reports that by one of several codes. By
 * RESOURCE_EXHAUSTED where server or proxy reset the stream with ENHANCE_YOUR_CALM.
 */
export function isConnectionLost(error: unknown): boolean {
  if (!(error instanceof TimecacheError)) return false;
  if (error.code === 'UNAVAILABLE') return true;
  if (error.reason !== undefined) return false;
  if (error.code === 'RESOURCE_EXHAUSTED') return !error.description.includes(ANY_TOO_LARGE);
  return ['INTERNAL', 'UNKNOWN', 'CANCELLED'].includes(error.code);
}

/** Whether there was no connection for a call. */
export function isUnsent(error: unknown): boolean {
  return (
    error instanceof TimecacheError &&
    error.code === 'UNAVAILABLE' &&
    error.reason === undefined &&
    !error.maybeApplied
  );
}

/** Codes by which gRPC, or a proxy, ends a call of which it does not know what the server did. */
const UNCERTAIN: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'CANCELLED',
  'UNKNOWN',
  'DEADLINE_EXCEEDED',
  'RESOURCE_EXHAUSTED',
  'ABORTED',
  'INTERNAL',
  'UNAVAILABLE',
  'DATA_LOSS',
]);

// What gRPC says of a call that was given to no connection. Of any other that it ends, the server may know.
const UNSENT =
  /^(No connection established|Name resolution failed|Channel closed before call started|Stream refused by server|Deadline exceeded after (?!.*LB pick: ))/;

/** From what gRPC says of a call. To be made by a function that awaited it: then its stack has the caller's frames. */
export function fromServiceError(error: ServiceError): TimecacheError {
  const metadata = error.metadata ?? new Metadata();
  const [bytes] = metadata.get('grpc-status-details-bin');
  const details = Buffer.isBuffer(bytes) ? decodeDetails(bytes) : {};
  const [requestId] = metadata.get('x-request-id');
  const code = (grpcCodes[error.code] ?? 'UNKNOWN') as ErrorCode;
  return new TimecacheError(code, error.details || error.message, {
    maybeApplied: UNCERTAIN.has(code) && !UNSENT.test(error.details),
    ...details,
    requestId: requestId?.toString(),
  });
}

/** The same error, of a call of which an earlier attempt may have been done, or that is about something in particular. */
export function withDetails(
  error: TimecacheError,
  details: { maybeApplied?: boolean; requestId?: string | undefined; about?: string },
): TimecacheError {
  const { description, reason, metadata, violations, retryDelayMs, maybeApplied, cause } = error;
  return new TimecacheError(error.code, details.about ? `${details.about}: ${description}` : description, {
    ...{ reason, metadata, violations, retryDelayMs },
    requestId: details.requestId ?? error.requestId,
    maybeApplied: details.maybeApplied ?? maybeApplied,
    cause: details.about ? error : cause,
  });
}

/** From what the answer to a batch says of one operation. */
export function fromStatus(status: Status, requestId?: string): TimecacheError {
  return new TimecacheError((grpcCodes[status.code] ?? 'UNKNOWN') as ErrorCode, status.message, {
    ...readDetails(status),
    requestId,
  });
}

// What a proxy has put there may be anything.
function decodeDetails(bytes: Buffer): Partial<TimecacheError> {
  try {
    return readDetails(Status.decode(bytes));
  } catch {
    return {};
  }
}

function readDetails(status: Status): Partial<TimecacheError> {
  const found: { -readonly [K in keyof TimecacheError]?: TimecacheError[K] } = {};
  for (const { typeUrl, value } of status.details) {
    switch (typeUrl.slice(typeUrl.lastIndexOf('/') + 1)) {
      case 'google.rpc.ErrorInfo': {
        const { reason, metadata } = ErrorInfo.decode(value);
        found.reason = reason;
        // The server refuses before it does anything, unless it has lost the ownership while the call waited.
        found.maybeApplied = reason === 'OWNERSHIP_LOST';
        found.metadata = metadata;
        break;
      }
      case 'google.rpc.BadRequest':
        found.violations = BadRequest.decode(value).fieldViolations.map(({ field, description }) => ({
          field,
          description,
        }));
        break;
      case 'google.rpc.RetryInfo':
        found.retryDelayMs = fromDuration(RetryInfo.decode(value).retryDelay);
        break;
    }
  }
  return found;
}
