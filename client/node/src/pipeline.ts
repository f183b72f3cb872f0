// Many operations without waiting for each answer: the fastest way to the server.

import type { CallOptions, Connection } from './connection.js';
import { TimecacheError, isConnectionLost, isUnsent, withDetails } from './errors.js';
import {
  TimeCacheServiceService as Service,
  type ExecuteRequest,
  type OperationResult,
} from './gen/timecache/v1/data.js';
import { isSafe, type Operation } from './operations.js';
import { checkOptions, known, type Names } from './options.js';
import { OperationStream, type Pending, type StreamOwner } from './stream.js';
import { timerMs } from './timing.js';
import { activeContext, beginCall, stamped, type CallSpan } from './tracing.js';

/** How operations are grouped, and how many are under way. */
export interface PipelineOptions extends Pick<
  CallOptions,
  'signal' | 'requestId' | 'traceparent' | 'metadata' | 'repeatable' | 'traceEntries'
> {
  /** Most operations of one request: 1 to 4,096. Default 256. */
  batchOperationsMax?: number | undefined;
  /** Most bytes of them; a larger operation goes alone. Default 1 MiB. */
  batchBytesMax?: number | undefined;
  /** Most requests that were sent and are not answered. Default 16. */
  requestsInFlightMax?: number | undefined;
  /** As many operations may be added and not answered before `ready` waits. Default 8,192. */
  operationsInFlightMax?: number | undefined;
  /** As many bytes of them. Default 8 MiB. */
  bytesInFlightMax?: number | undefined;
  /**
   * The stream ends with DEADLINE_EXCEEDED if no answer comes for so long, in ms, or if after a close the server does not
   * end it. Default: the client's; Infinity: no limit.
   */
  timeoutMs?: number | undefined;
}

const PIPELINE_OPTIONS: Names<PipelineOptions> = {
  signal: true,
  requestId: true,
  traceparent: true,
  metadata: true,
  repeatable: true,
  traceEntries: true,
  batchOperationsMax: true,
  batchBytesMax: true,
  requestsInFlightMax: true,
  operationsInFlightMax: true,
  bytesInFlightMax: true,
  timeoutMs: true,
};
const KNOWN = known('a pipeline', PIPELINE_OPTIONS);

/** Most bytes of a request, without what is not an operation. */
export const MAX_OPERATION_BYTES = (16 << 20) + (64 << 10);
/** Most operations of a request. */
export const MAX_OPERATIONS = 4096;

interface Added extends Pending {
  resolve(result: unknown): void;
  reject(error: unknown): void;
}

/**
 * A stream of operations on one namespace, and of their results. Operations are done in the order in which they were
 * added, and each succeeds or fails by itself. They are grouped into requests: what is added in one turn of the event
 * loop goes together, and while requests are under way, larger ones gather.
 *
 * Every operation that was added is answered, or, when the stream ends before, rejected with the stream's error, whose
 * `maybeApplied` says whether the operation can have been done: it was sent. The stream ends by close, by cancel, by its
 * signal, or by itself: when the server stops (UNAVAILABLE), when the namespace does not exist (NOT_FOUND), when the
 * connection breaks. It does not come back: to go on, make a new one. But it goes on to the owner of a cluster where a
 * node that is not the owner refuses it; on another connection when the server closes one for its age; and, as
 * {@link RetryOptions} says, if all that was sent and not answered is safe to repeat, which is then done again.
 *
 * Memory: who adds many operations waits for `ready` before each, and what is in flight is bounded by the options.
 */
export class Pipeline {
  readonly #options: { operationsInFlightMax: number; bytesInFlightMax: number; timeoutMs: number };
  readonly #connection: Connection;
  readonly #call: Pick<CallOptions, 'traceparent' | 'repeatable'> & { traceEntries: boolean };
  readonly #context = activeContext(); // Requests are a part of what has made the pipeline.
  readonly #namespace: string;
  readonly #signal: AbortSignal | undefined;
  readonly #onAbort = () => this.#end(this.#signal?.reason);
  readonly #stream: OperationStream<Added>;
  #attempts = 0; // That broke since the last answer.
  #operations = 0;
  #bytes = 0;
  // Callers that ready has let go on and that have not added yet, each with an operation as large as the largest so far.
  #admitted = 0;
  #operationBytesMax = 0;
  #lapsing: NodeJS.Immediate | undefined;
  #timer: NodeJS.Timeout | undefined;
  #closing = false;
  #ended: { error: unknown } | undefined;
  #wakers: (() => void)[] = [];

  /** Made by the client's pipeline. */
  constructor(connection: Connection, namespace: string, options: PipelineOptions) {
    checkOptions(options, KNOWN);
    this.#namespace = namespace;
    this.#signal = options.signal;
    this.#connection = connection;
    const { traceparent, repeatable, traceEntries = connection.traceEntries } = options;
    this.#call = { traceparent, repeatable, traceEntries };
    this.#options = {
      operationsInFlightMax: Math.max(options.operationsInFlightMax ?? 8192, 1),
      bytesInFlightMax: options.bytesInFlightMax ?? 8 << 20,
      timeoutMs: options.timeoutMs ?? connection.timeoutMs,
    };
    const limits = {
      batchOperationsMax: Math.min(Math.max(options.batchOperationsMax ?? 256, 1), MAX_OPERATIONS),
      batchBytesMax: Math.min(options.batchBytesMax ?? 1 << 20, MAX_OPERATION_BYTES),
      requestsInFlightMax: Math.max(options.requestsInFlightMax ?? 16, 1),
    };
    const owner: StreamOwner<Added> = {
      keepsOpen: true,
      seal: (batch) => this.#seal(batch),
      onResults: (batch, results) => this.#receive(batch, results),
      onFinish: () => this.#end(undefined),
      onBreak: ({ sent }, error, isUndone) =>
        this.#onBreak(
          sent.flatMap(({ batch }) => batch),
          error,
          isUndone,
        ),
      onNoStream: (waiting, error) => this.#end(error, waiting),
    };
    this.#stream = new OperationStream(connection, owner, limits, options);
    void this.#stream.open();
    this.#signal?.addEventListener('abort', this.#onAbort, { once: true });
    if (this.#signal?.aborted) this.#onAbort();
  }

  /**
   * Takes an operation; the promise has its result, or why it changed nothing. Rejected with a TypeError: larger than
   * any request; with the stream's error: it has ended; with FAILED_PRECONDITION: after close.
   */
  add<Result>(operation: Operation<Result>): Promise<Result> {
    return new Promise<Result>((resolve, reject) => {
      if (this.#ended) throw this.#ended.error ?? closed();
      if (this.#closing) throw closed();
      if (operation.bytes - 256 > MAX_OPERATION_BYTES)
        throw new TypeError('the operation is larger than a request');
      this.#bytes += operation.bytes;
      this.#operationBytesMax = Math.max(this.#operationBytesMax, operation.bytes);
      if (this.#admitted > 0) --this.#admitted;
      if (this.#operations++ === 0) this.#startTimer();
      this.#stream.add({
        operation,
        resolve: resolve as (result: unknown) => void,
        reject,
        maybeApplied: false,
      });
    });
  }

  /**
   * Waits until what is in flight leaves room for one operation, which is to be added in the same turn of the event loop:
   * callers that wait at the same time do not take the same room. Does not reject: the next add tells why the stream has
   * ended.
   */
  async ready(): Promise<void> {
    while (!this.#ended && !this.#hasRoom()) await this.#change();
    if (this.#ended) return;
    ++this.#admitted;
    this.#lapsing ??= setImmediate(() => {
      this.#lapsing = undefined;
      this.#admitted = 0;
      this.#wake();
    });
  }

  /** Sends what has been added, as far as the options allow, without waiting for the turn of the event loop to end. */
  flush(): void {
    this.#stream.flush();
  }

  /** Waits until all that was added is answered; rejects with the stream's error if it has ended before. */
  async drain(): Promise<void> {
    while (!this.#ended && this.#operations > 0) await this.#change();
    if (this.#ended?.error !== undefined) throw this.#ended.error;
  }

  /** Ends the stream in good order: waits as drain does, and for the server's word. May be called again. */
  async close(): Promise<void> {
    this.#closing = true;
    await this.drain();
    this.#stream.finish();
    if (!this.#ended) this.#startTimer(); // The end is an answer, too.
    while (!this.#ended) await this.#change();
    if (this.#ended.error !== undefined) throw this.#ended.error;
  }

  /** Ends the stream at once: what is in flight is rejected with CANCELLED. */
  cancel(): void {
    this.#end(new TimecacheError('CANCELLED', 'the pipeline was cancelled'));
  }

  #seal(batch: Added[]): { request: ExecuteRequest; span: CallSpan } {
    const request: ExecuteRequest = {
      namespace: this.#namespace,
      operations: batch.map(({ operation }) => operation.message),
      atomic: false,
      independent: false,
    };
    const span = beginCall(Service.pipeline.path, request, this.#connection.address, this.#context);
    const { traceEntries, traceparent } = this.#call;
    return {
      request: traceEntries ? stamped(request, traceparent ?? span.sampledTraceparent) : request,
      span,
    };
  }

  #onBreak(sent: Added[], error: TimecacheError, isUndone: boolean): Added[] {
    for (const pending of sent) pending.maybeApplied ||= !isUndone;
    if (!isUndone && !this.#mayRepeat(sent, error)) this.#end(error, sent);
    return sent;
  }

  // Whether what was sent, now or before, is to be done again.
  #mayRepeat(sent: Added[], error: TimecacheError): boolean {
    if (!isConnectionLost(error) || ++this.#attempts >= this.#connection.maxAttempts) return false;
    const before = this.#stream.waiting.filter(({ maybeApplied }) => maybeApplied);
    return (
      !!this.#call.repeatable || [...sent, ...before].every(({ operation }) => isSafe(operation.message))
    );
  }

  #receive(batch: Added[], results: OperationResult[]): void {
    this.#attempts = 0;
    for (const [i, { operation, resolve, reject }] of batch.entries()) {
      this.#bytes -= operation.bytes;
      try {
        resolve(operation.read(results[i]!));
      } catch (error) {
        reject(error);
      }
    }
    this.#operations -= batch.length;
    if (this.#operations === 0) clearTimeout(this.#timer);
    else this.#timer?.refresh();
    this.#wake();
  }

  #hasRoom(): boolean {
    const { operationsInFlightMax, bytesInFlightMax } = this.#options;
    return (
      this.#operations + this.#admitted < operationsInFlightMax &&
      this.#bytes + this.#admitted * this.#operationBytesMax < bytesInFlightMax
    );
  }

  #startTimer(): void {
    clearTimeout(this.#timer);
    const { timeoutMs } = this.#options;
    if (timeoutMs === Infinity) return;
    this.#timer = setTimeout(() => {
      const error = new TimecacheError('DEADLINE_EXCEEDED', `no answer within ${timeoutMs} ms`);
      for (const { endpoint } of this.#stream.streams) this.#connection.moveOn(endpoint, error);
      this.#end(error);
    }, timerMs(timeoutMs));
  }

  // `lost`: those that the stream no longer has.
  #end(error: unknown, lost: Added[] = []): void {
    if (this.#ended) return;
    this.#ended = { error };
    clearTimeout(this.#timer);
    clearImmediate(this.#lapsing);
    this.#signal?.removeEventListener('abort', this.#onAbort);
    const { sent, waiting } = this.#stream.end(error);
    for (const pending of sent) pending.maybeApplied ||= !isUnsent(error);
    for (const { reject, maybeApplied } of [...lost, ...sent, ...waiting])
      reject(withFate(error, maybeApplied));
    this.#operations = 0;
    this.#bytes = 0;
    this.#wake();
  }

  #change(): Promise<void> {
    return new Promise((resolve) => this.#wakers.push(resolve));
  }

  #wake(): void {
    for (const wake of this.#wakers.splice(0)) wake();
  }
}

function withFate(error: unknown, maybeApplied: boolean): unknown {
  if (!(error instanceof TimecacheError) || error.maybeApplied === maybeApplied) return error;
  return withDetails(error, { maybeApplied });
}

function closed(): TimecacheError {
  return new TimecacheError('FAILED_PRECONDITION', 'the pipeline is closed');
}
