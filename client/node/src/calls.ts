// Calls of the same time go to the server together, on a stream for each namespace. Internal.

import { randomUUID } from 'node:crypto';
import { checkTimeout, noToken, type CallOptions, type Connection, type UnaryMethod } from './connection.js';
import { TimecacheError, fromStatus, isConnectionLost, withDetails } from './errors.js';
import {
  TimeCacheServiceService as Service,
  type ExecuteRequest,
  type Operation as OperationMessage,
  type OperationResult,
} from './gen/timecache/v1/data.js';
import { isSafe, type Operation } from './operations.js';
import { OperationStream, type RequestStream, type Pending, type StreamOwner } from './stream.js';
import { timerMs } from './timing.js';
import { NO_CALL, UNTRACED, beginCall, stampedOperation, type CallSpan } from './tracing.js';

/** Larger operations go alone: small ones do not wait behind them. */
const SHARED_BYTES_MAX = 64 << 10;
const STREAMS_MAX = 64;
/** A stream that is not used for so long is ended: an open one keeps the process alive. */
const IDLE_MS = 100;
/** How long the server may take to end it. */
const END_MS = 1_000;
/** Of a server that is far, or that stores what it answers, as many requests as it stores together. */
const LIMITS = {
  batchOperationsMax: 256,
  batchBytesMax: 1 << 20,
  requestsInFlightMax: 2,
  farRequestsInFlightMax: 4,
};
/** Request ids and traceparents that an operation may have. */
const GRAPHIC = /^[\x21-\x7e]{1,128}$/;

/** A call that shares a stream. `result` and `failure` are read by who awaited it: an error's stack has its callers. */
class Call implements Pending {
  maybeApplied = false;
  isEnded = false;
  attempts = 0; // That broke.
  result: OperationResult | undefined; // Without one and without a failure it is to be done alone.
  failure: { readonly error: unknown } | undefined;
  requestId: string | undefined; // While it is sent and not answered, and of its result.
  onAbort: (() => void) | undefined;
  #resolve!: () => void;
  readonly done = new Promise<void>((resolve) => (this.#resolve = resolve));

  constructor(
    readonly operation: Operation<unknown>,
    readonly message: OperationMessage,
    readonly options: CallOptions,
    readonly deadline: number,
    readonly span: CallSpan,
  ) {}

  end(result?: OperationResult): void {
    if (this.isEnded) return;
    this.isEnded = true;
    this.result = result;
    if (this.onAbort) this.options.signal?.removeEventListener('abort', this.onAbort);
    this.#resolve();
  }

  fail(error: unknown, maybeApplied = false): void {
    if (this.isEnded) return;
    this.maybeApplied ||= maybeApplied;
    this.failure = { error };
    this.end();
  }
}

/** The calls of a client on one namespace. */
class SharedStream implements StreamOwner<Call> {
  readonly keepsOpen = false;
  useTime = 0;
  readonly #requestId = randomUUID();
  readonly #stream: OperationStream<Call>;

  constructor(
    private readonly calls: Calls,
    private readonly connection: Connection,
    private readonly namespace: string,
  ) {
    this.#stream = new OperationStream(connection, this, LIMITS, { requestId: this.#requestId });
  }

  get isIdle(): boolean {
    const { waiting, streams } = this.#stream;
    return waiting.length === 0 && [...streams].every(({ sent }) => sent.length === 0);
  }

  add(call: Call, now: number): void {
    this.useTime = now;
    const { signal } = call.options;
    if (signal) {
      call.onAbort = () => call.fail(signal.reason);
      signal.addEventListener('abort', call.onAbort, { once: true });
    }
    this.#stream.add(call);
  }

  seal(batch: Call[]): { request: ExecuteRequest; span: CallSpan } {
    const { namespace } = this;
    for (const call of batch) call.requestId = call.message.requestId || this.#requestId;
    const operations = batch.map(({ message }) => message);
    return { request: { namespace, operations, atomic: false, independent: true }, span: NO_CALL };
  }

  onResults(batch: Call[], results: OperationResult[]): void {
    for (let i = 0; i < batch.length; ++i) batch[i]!.end(results[i]);
  }

  onBreak(stream: RequestStream<Call>, error: TimecacheError, isUndone: boolean, pauseMs: number): Call[] {
    const sent = stream.sent.flatMap(({ batch }) => batch).filter(({ isEnded }) => !isEnded);
    if (stream.answers === 0 && error.code === 'UNIMPLEMENTED') {
      this.calls.areShared = false;
      for (const call of [...sent, ...this.#stream.waiting]) call.end();
      this.#stream.remove(() => true);
      return [];
    }
    const again = isUndone ? sent : sent.filter((call) => this.#mayRepeat(call, error, Date.now() + pauseMs));
    for (const call of again) call.requestId = undefined;
    return again;
  }

  // Else the call has failed.
  #mayRepeat(call: Call, error: TimecacheError, time: number): boolean {
    call.maybeApplied ||= error.maybeApplied;
    const { options, operation, deadline, span } = call;
    const isRepeatable = isConnectionLost(error) && (options.repeatable || isSafe(operation.message));
    if (!isRepeatable || ++call.attempts >= this.connection.maxAttempts || time >= deadline) {
      call.fail(error);
      return false;
    }
    span.retry(error, this.connection.address);
    return true;
  }

  onNoStream(waiting: Call[], error: unknown): void {
    for (const call of waiting) call.fail(error);
  }

  /** Ends calls whose time is up. Returns when the next one's is. */
  expire(now: number): number {
    let next = Infinity;
    const isOver = (call: Call) => {
      if (call.deadline <= now) call.fail(this.#lateError(call), call.requestId !== undefined);
      else if (!call.isEnded) next = Math.min(next, call.deadline);
      return call.isEnded;
    };
    this.#stream.remove(isOver);
    for (const stream of this.#stream.streams) {
      let hangs = false;
      for (const { batch, answers } of stream.sent) {
        for (const call of batch) if (!call.isEnded && isOver(call)) hangs ||= stream.answers === answers;
      }
      if (!hangs) continue;
      this.connection.moveOn(stream.endpoint, new TimecacheError('DEADLINE_EXCEEDED', 'no answer'));
      this.#stream.retire(stream);
    }
    this.#stream.prune();
    return next;
  }

  #lateError({ requestId, options }: Call): TimecacheError {
    if (requestId === undefined && this.connection.isTokenAwaited) return noToken();
    const timeoutMs = options.timeoutMs ?? this.connection.timeoutMs;
    return new TimecacheError('DEADLINE_EXCEEDED', `no answer within ${timeoutMs} ms`);
  }

  /** Ends it in good order: it is idle. */
  finish(): void {
    this.#stream.finish();
    setTimeout(() => this.#stream.end(undefined), END_MS).unref();
  }

  close(error: TimecacheError): void {
    const { sent, waiting } = this.#stream.end(error);
    for (const call of sent) call.fail(error, true);
    for (const call of waiting) call.fail(error);
  }
}

/** The calls of a client that are one operation each. */
export class Calls {
  /** Whether the server knows streams of requests. */
  areShared = true;
  #isClosed = false;
  readonly #streams = new Map<string, SharedStream>();
  #timer: NodeJS.Timeout | undefined;
  #wakeTime = Infinity;

  constructor(
    private readonly connection: Connection,
    private readonly batching: boolean,
  ) {}

  /** Does an operation: with others where it may, else by a call of its own. */
  async do<Result>(namespace: string, operation: Operation<Result>, options: CallOptions): Promise<Result> {
    const { connection } = this;
    const { $case } = operation.message.request!;
    const method = Service[$case] as UnaryMethod<object, unknown>;
    const span = UNTRACED in options ? NO_CALL : beginCall(method.path, { namespace }, connection.address);
    let call: Call | undefined;
    try {
      options.signal?.throwIfAborted();
      const { traceparent = span.sampledTraceparent, traceEntries = connection.traceEntries } = options;
      const message = traceEntries ? stampedOperation(operation.message, traceparent) : operation.message;
      const deadline = Date.now() + checkTimeout(options.timeoutMs ?? connection.timeoutMs);
      call = this.#share(namespace, operation, message, options, deadline, span);
      if (call) await call.done;
      if (call?.failure) throw call.failure.error;
      let result = call?.result;
      if (!result || isTooLarge(result)) {
        const request = { ...message.request!.value, namespace };
        const value = await connection.attempts(method, request, options, isSafe(message), span, deadline);
        result = { result: { $case, value } as OperationResult['result'] };
      }
      const read = operation.read(result, call?.requestId);
      span.end();
      return read;
    } catch (thrown) {
      const error = call ? withCall(thrown, call) : thrown;
      span.end(error);
      throw error;
    }
  }

  /** Ends all that is under way. */
  close(error: TimecacheError): void {
    this.#isClosed = true;
    for (const stream of this.#streams.values()) stream.close(error);
    this.#streams.clear();
    clearTimeout(this.#timer);
  }

  // Undefined: it is to be done alone.
  #share(
    namespace: string,
    operation: Operation<unknown>,
    message: OperationMessage,
    options: CallOptions,
    deadline: number,
    span: CallSpan,
  ): Call | undefined {
    const {
      batching = this.batching,
      metadata,
      requestId = '',
      traceparent = span.traceparent ?? '',
    } = options;
    if (!batching || !this.areShared || this.#isClosed || metadata) return undefined;
    if (operation.bytes > SHARED_BYTES_MAX + 256) return undefined;
    let own = message;
    if (requestId || traceparent) {
      if (!GRAPHIC.test(requestId || '-') || !GRAPHIC.test(traceparent || '-')) return undefined;
      own = { ...message, requestId, traceparent };
    }
    const now = Date.now();
    const stream = deadline > now ? this.#streamOf(namespace, now) : undefined;
    if (!stream) return undefined;
    const call = new Call(operation, own, options, deadline, span);
    this.#wakeAt(deadline);
    stream.add(call, now);
    return call;
  }

  // Undefined: there are too many, and all are in use.
  #streamOf(namespace: string, now: number): SharedStream | undefined {
    const known = this.#streams.get(namespace);
    if (known) return known;
    if (this.#streams.size >= STREAMS_MAX) {
      const idle = [...this.#streams].filter(([, { isIdle }]) => isIdle);
      const [oldest] = idle.sort(([, a], [, b]) => a.useTime - b.useTime);
      if (!oldest) return undefined;
      this.#end(...oldest);
    }
    const stream = new SharedStream(this, this.connection, namespace);
    this.#streams.set(namespace, stream);
    this.#wakeAt(now + IDLE_MS);
    return stream;
  }

  #end(namespace: string, stream: SharedStream): void {
    this.#streams.delete(namespace);
    stream.finish();
  }

  // What is awaited keeps the process alive, not this.
  #wakeAt(time: number): void {
    if (time >= this.#wakeTime) return;
    this.#wakeTime = time;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#wake(), timerMs(Math.max(time - Date.now(), 1))).unref();
  }

  #wake(): void {
    this.#wakeTime = Infinity;
    const now = Date.now();
    for (const [namespace, stream] of this.#streams) {
      const next = stream.expire(now);
      if (stream.isIdle && now - stream.useTime >= IDLE_MS) this.#end(namespace, stream);
      else this.#wakeAt(Math.min(next, now + IDLE_MS));
    }
  }
}

// What shares a stream's error, or may have been done by an earlier attempt, says so by an error of its own.
function withCall(error: unknown, { failure, maybeApplied, requestId }: Call): unknown {
  if (!(error instanceof TimecacheError) || (!failure && !maybeApplied)) return error;
  return withDetails(error, { maybeApplied: maybeApplied || (!failure && error.maybeApplied), requestId });
}

// It was not done, as others have filled the answer.
function isTooLarge({ result }: OperationResult): boolean {
  return result?.$case === 'error' && fromStatus(result.value).reason === 'MAX_RESPONSE_BYTES';
}
