// Many operations without waiting for each answer: the fastest way to the server.

import type { ClientDuplexStream, ServiceError } from '@grpc/grpc-js';
import type { CallOptions, Connection } from './connection.js';
import type { Failover } from './endpoints.js';
import { TimecacheError, fromServiceError, isUnsent, withDetails } from './errors.js';
import {
  TimeCacheServiceService as Service,
  type ExecuteRequest,
  type ExecuteResponse,
} from './gen/timecache/v1/data.js';
import { mismatch, type Operation } from './operations.js';
import { checkOptions, known, type Names } from './options.js';
import { timerMs } from './timing.js';

/** How operations are grouped, and how many are under way. */
export interface PipelineOptions extends Pick<
  CallOptions,
  'signal' | 'requestId' | 'traceparent' | 'metadata'
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

interface Pending {
  operation: Operation<unknown>;
  resolve(result: unknown): void;
  reject(error: unknown): void;
}

/**
 * A stream of operations on one namespace, and of their results. Operations are done in the order in which they were
 * added, and each succeeds or fails by itself. They are grouped into requests: what is added in one turn of the event
 * loop goes together, and while requests are under way, larger ones gather.
 *
 * Every operation that was added is answered, or, when the stream ends before, rejected with the stream's error, whose
 * `maybeApplied` says whether the operation can have been done: it was sent. The stream ends by close, by cancel, by its signal, or by itself: when the server stops
 * (UNAVAILABLE), when the namespace does not exist (NOT_FOUND), when the connection breaks. It does not come back, but
 * goes on to the owner of a cluster where a node that is not the owner refuses it: to go on, make a new one.
 *
 * Memory: who adds many operations waits for `ready` before each, and what is in flight is bounded by the options.
 */
export class Pipeline {
  readonly #options: Required<Omit<PipelineOptions, keyof CallOptions>> & { timeoutMs: number };
  readonly #namespace: string;
  readonly #signal: AbortSignal | undefined;
  readonly #opened: Promise<void>;
  readonly #onAbort = () => this.#end(this.#signal?.reason);
  #stream: ClientDuplexStream<ExecuteRequest, ExecuteResponse> | undefined;
  #leave: (error: TimecacheError) => void = () => {}; // Its node.
  #waiting: Pending[] = [];
  #waitingBytes = 0;
  #sent: Pending[][] = [];
  #operations = 0;
  #bytes = 0;
  // Callers that ready has let go on and that have not added yet, each with an operation as large as the largest so far.
  #admitted = 0;
  #operationBytesMax = 0;
  #lapsing: NodeJS.Immediate | undefined;
  #flushing: NodeJS.Immediate | undefined;
  #timer: NodeJS.Timeout | undefined;
  #closing = false;
  #isFinished = false; // No more is written.
  #ended: { error: unknown } | undefined;
  #wakers: (() => void)[] = [];

  /** Made by the client's pipeline. */
  constructor(connection: Connection, namespace: string, options: PipelineOptions) {
    checkOptions(options, KNOWN);
    this.#namespace = namespace;
    this.#signal = options.signal;
    this.#options = {
      batchOperationsMax: Math.min(Math.max(options.batchOperationsMax ?? 256, 1), MAX_OPERATIONS),
      batchBytesMax: Math.min(options.batchBytesMax ?? 1 << 20, MAX_OPERATION_BYTES),
      requestsInFlightMax: Math.max(options.requestsInFlightMax ?? 16, 1),
      operationsInFlightMax: Math.max(options.operationsInFlightMax ?? 8192, 1),
      bytesInFlightMax: options.bytesInFlightMax ?? 8 << 20,
      timeoutMs: options.timeoutMs ?? connection.timeoutMs,
    };
    this.#opened = this.#open(connection, options);
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
      this.#waiting.push({ operation, resolve: resolve as (result: unknown) => void, reject });
      this.#waitingBytes += operation.bytes;
      this.#bytes += operation.bytes;
      this.#operationBytesMax = Math.max(this.#operationBytesMax, operation.bytes);
      if (this.#admitted > 0) --this.#admitted;
      if (this.#operations++ === 0) this.#startTimer();
      const { batchOperationsMax, batchBytesMax } = this.#options;
      if (this.#waiting.length >= batchOperationsMax || this.#waitingBytes >= batchBytesMax) this.flush();
      else this.#flushing ??= setImmediate(() => this.flush());
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
    clearImmediate(this.#flushing);
    this.#flushing = undefined;
    while (
      this.#stream &&
      this.#waiting.length > 0 &&
      this.#sent.length < this.#options.requestsInFlightMax
    ) {
      const batch = this.#take();
      this.#sent.push(batch);
      this.#stream.write({
        namespace: this.#namespace,
        operations: batch.map(({ operation }) => operation.message),
      });
    }
  }

  /** Waits until all that was added is answered; rejects with the stream's error if it has ended before. */
  async drain(): Promise<void> {
    while (!this.#ended && this.#operations > 0) await this.#change();
    if (this.#ended?.error !== undefined) throw this.#ended.error;
  }

  /** Ends the stream in good order: waits as drain does, and for the server's word. May be called again. */
  async close(): Promise<void> {
    this.#closing = true;
    await this.#opened;
    await this.drain();
    this.#isFinished = true;
    this.#stream?.end();
    if (!this.#ended) this.#startTimer(); // The end is an answer, too.
    while (!this.#ended) await this.#change();
    if (this.#ended.error !== undefined) throw this.#ended.error;
  }

  /** Ends the stream at once: what is in flight is rejected with CANCELLED. */
  cancel(): void {
    this.#end(new TimecacheError('CANCELLED', 'the pipeline was cancelled'));
  }

  async #open(
    connection: Connection,
    options: PipelineOptions,
    failover = connection.failover(),
  ): Promise<void> {
    try {
      const { stream, endpoint } = await connection.duplex(Service.pipeline, options);
      stream.on('error', () => {}); // The status says it, too.
      stream.on('data', (response: ExecuteResponse) => this.#receive(response));
      stream.on('status', (status: ServiceError) => {
        // Answers that came before it are told first.
        setImmediate(() => {
          if (status.code === 0) {
            return this.#end(this.#closing && this.#operations === 0 ? undefined : ended());
          }
          if (this.#ended) return;
          const error = fromServiceError(status);
          connection.moveOn(endpoint, error);
          this.#stream = undefined; // Nothing is written meanwhile.
          void this.#reopen(connection, options, failover, error);
        });
      });
      this.#stream = stream;
      this.#leave = (error) => connection.moveOn(endpoint, error);
      if (this.#isFinished) stream.end();
      if (this.#ended) stream.cancel();
      this.flush();
    } catch (error) {
      this.#end(error);
    }
  }

  async #reopen(
    connection: Connection,
    options: PipelineOptions,
    failover: Failover,
    error: TimecacheError,
  ): Promise<void> {
    try {
      const isLost = isUnsent(error);
      // A node that loses the ownership answers what it has read, and does no more.
      if (!isLost && error.reason !== 'NOT_OWNER') return this.#end(error);
      this.#waiting = [...this.#sent.flat(), ...this.#waiting];
      this.#waitingBytes = this.#waiting.reduce((sum, { operation }) => sum + operation.bytes, 0);
      this.#sent = [];
      if (!(await failover.again(error, isLost, Infinity, this.#signal))) return this.#end(error);
      if (!this.#ended) await this.#open(connection, options, failover);
    } catch (aborted) {
      this.#end(aborted);
    }
  }

  #take(): Pending[] {
    const { batchOperationsMax, batchBytesMax } = this.#options;
    let bytes = 0;
    let size = 0;
    for (const { operation } of this.#waiting) {
      if (size === batchOperationsMax || (size > 0 && bytes + operation.bytes > batchBytesMax)) break;
      bytes += operation.bytes;
      ++size;
    }
    this.#waitingBytes -= bytes;
    return this.#waiting.splice(0, size);
  }

  #receive({ results }: ExecuteResponse): void {
    const batch = this.#sent.shift();
    if (batch?.length !== results.length) return this.#end(mismatch());
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
    // What the answers make their callers add goes with what waits.
    if (this.#waiting.length > 0) this.#flushing ??= setImmediate(() => this.flush());
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
      this.#leave(error);
      this.#end(error);
    }, timerMs(timeoutMs));
  }

  #end(error: unknown): void {
    if (this.#ended) return;
    this.#ended = { error };
    clearTimeout(this.#timer);
    clearImmediate(this.#flushing);
    clearImmediate(this.#lapsing);
    this.#signal?.removeEventListener('abort', this.#onAbort);
    if (error !== undefined) this.#stream?.cancel();
    for (const { reject } of this.#sent.flat()) reject(withFate(error, true));
    for (const { reject } of this.#waiting) reject(withFate(error, false));
    this.#sent = [];
    this.#waiting = [];
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

/** Of an operation that the stream's end left without an answer: a server that refuses to go on may have done it. */
function withFate(error: unknown, isSent: boolean): unknown {
  if (!(error instanceof TimecacheError)) return error;
  const maybeApplied =
    isSent && (error.maybeApplied || error.reason !== undefined || error.code !== 'UNAVAILABLE');
  return maybeApplied === error.maybeApplied ? error : withDetails(error, { maybeApplied });
}

function closed(): TimecacheError {
  return new TimecacheError('FAILED_PRECONDITION', 'the pipeline is closed');
}

function ended(): TimecacheError {
  return new TimecacheError('UNAVAILABLE', 'the server ended the stream', { maybeApplied: true });
}
