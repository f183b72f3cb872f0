// A stream of requests, each of several operations: what a pipeline and the calls of a client share. Internal.

import type { ClientDuplexStream, ServiceError } from '@grpc/grpc-js';
import type { CallOptions, Connection } from './connection.js';
import type { Endpoint, Failover } from './endpoints.js';
import { TimecacheError, fromServiceError, isUnsent } from './errors.js';
import {
  TimeCacheServiceService as Service,
  type ExecuteRequest,
  type ExecuteResponse,
  type OperationResult,
} from './gen/timecache/v1/data.js';
import { mismatch, type Operation } from './operations.js';
import { pause, type Backoff } from './timing.js';
import type { CallSpan } from './tracing.js';

const FAR_ANSWER_MS = 2;
/** After which the shortest is taken anew. */
const ANSWERS = 64;

/** An operation without an answer. */
export interface Pending {
  readonly operation: Operation<unknown>;
  /** Its answer is no longer awaited; it is not sent any more. */
  isEnded?: boolean;
  /** An earlier attempt may have done it. */
  maybeApplied: boolean;
}

/** A request without an answer. */
interface Sent<P> {
  readonly batch: P[];
  readonly span: CallSpan;
  /** The stream's when it was sent. */
  readonly answers: number;
  /** By performance.now(). */
  readonly sentAt: number;
}

/** One stream of gRPC, and what was sent on it and has no answer. */
export class RequestStream<P> {
  readonly sent: Sent<P>[] = [];
  /** How many requests were answered. */
  answers = 0;
  /** Whether the server is far, or stores what it answers: the shortest of the last answers took long. */
  isFar = false;
  #shortest = Infinity;
  readonly #losses: number;

  constructor(
    readonly duplex: ClientDuplexStream<ExecuteRequest, ExecuteResponse>,
    readonly endpoint: Endpoint,
  ) {
    this.#losses = endpoint.losses;
  }

  countAnswer(tookMs: number): void {
    this.#shortest = Math.min(this.#shortest, tookMs);
    if (++this.answers % ANSWERS !== 0) return;
    this.isFar = this.#shortest >= FAR_ANSWER_MS;
    this.#shortest = Infinity;
  }

  /** Whether its connection is closed to new streams, and will be to this one. */
  get isLeaving(): boolean {
    return this.endpoint.losses !== this.#losses;
  }
}

/** How operations are grouped. */
export interface StreamLimits {
  readonly batchOperationsMax: number;
  readonly batchBytesMax: number;
  readonly requestsInFlightMax: number;
  /** Where the server is far. Default: as many. */
  readonly farRequestsInFlightMax?: number;
}

/** Whose operations they are. */
export interface StreamOwner<P extends Pending> {
  /** Whether a stream that broke is replaced though nothing waits. */
  readonly keepsOpen: boolean;
  /** Makes the request that does these. */
  seal(batch: P[]): { request: ExecuteRequest; span: CallSpan };
  onResults(batch: P[], results: OperationResult[]): void;
  /** The server has ended what was finished. */
  onFinish?(): void;
  /**
   * A stream broke. Returns which of those that were sent on it and have no answer are to be done again, after a pause,
   * and ends the others. `isUndone`: none was done, and all are to be done on another stream.
   */
  onBreak(stream: RequestStream<P>, error: TimecacheError, isUndone: boolean, pauseMs: number): P[];
  /** There is no stream for these. */
  onNoStream(waiting: P[], error: unknown): void;
}

/**
 * Sends operations in the order in which they were added. What is added in one turn of the event loop goes together;
 * while as many requests as the limits allow are under way, the next one gathers. A stream that broke is replaced.
 */
export class OperationStream<P extends Pending> {
  /** Neither sent nor answered. */
  waiting: P[] = [];
  /** Streams of which an answer, or the end, is to come. */
  readonly streams = new Set<RequestStream<P>>();
  #waitingBytes = 0;
  #current: RequestStream<P> | undefined;
  #isOpening = false; // Or about to.
  #isScheduled = false;
  #isFinished = false; // No more is sent.
  #isEnded = false;
  #failover: Failover | undefined;
  readonly #backoff: Backoff;

  constructor(
    private readonly connection: Connection,
    private readonly owner: StreamOwner<P>,
    private readonly limits: StreamLimits,
    private readonly call: CallOptions,
  ) {
    this.#backoff = connection.backoff();
  }

  add(pending: P): void {
    this.waiting.push(pending);
    this.#waitingBytes += pending.operation.bytes;
    const { batchOperationsMax, batchBytesMax } = this.limits;
    if (this.waiting.length >= batchOperationsMax || this.#waitingBytes >= batchBytesMax) this.flush();
    else this.#schedule();
  }

  /** Takes out what is still waiting. */
  remove(isRemoved: (pending: P) => boolean): void {
    this.#setWaiting(this.waiting.filter((pending) => !isRemoved(pending)));
  }

  /** Sends what was added, as far as the limits allow. */
  flush(): void {
    if (this.#isOpening || this.#isEnded || this.waiting.length === 0) return;
    if (this.#current?.isLeaving) {
      if (this.#current.sent.length > 0) return; // Its answers come first, so that order is kept.
      return this.retire(this.#current);
    }
    if (!this.#current) return void this.open();
    const { sent, duplex, answers } = this.#current;
    while (this.waiting.length > 0 && sent.length < this.#inFlightMax()) {
      const batch = this.#take();
      if (batch.length === 0) return;
      const { request, span } = this.owner.seal(batch);
      sent.push({ batch, span, answers, sentAt: performance.now() });
      duplex.write(request);
    }
  }

  /** Opens a stream, to which the next operations go. */
  async open(): Promise<void> {
    this.#isOpening = true;
    try {
      const { stream: duplex, endpoint } = await this.connection.duplex(Service.pipeline, this.call);
      duplex.on('error', () => {}); // The status says it, too.
      if (this.#isEnded) return duplex.cancel();
      const stream = new RequestStream<P>(duplex, endpoint);
      this.streams.add(stream);
      duplex.on('data', (response: ExecuteResponse) => this.#receive(stream, response));
      // Answers that came before it are handled first.
      duplex.on('status', (status: ServiceError) => setImmediate(() => this.#onStatus(stream, status)));
      this.#current = stream;
      if (this.#isFinished) duplex.end();
    } catch (error) {
      this.#giveUp(error);
    }
    this.#isOpening = false;
    this.flush();
  }

  /** No more goes to a stream. Its answers are still taken. */
  retire(stream: RequestStream<P>): void {
    if (this.#current === stream) this.#current = undefined;
    stream.duplex.end();
    this.flush();
  }

  /** Cancels streams to which no more goes and whose answers are no longer awaited. */
  prune(): void {
    for (const stream of this.streams) {
      const isAwaited = stream.sent.some(({ batch }) => batch.some(({ isEnded }) => !isEnded));
      if (stream === this.#current || stream.sent.length === 0 || isAwaited) continue;
      this.streams.delete(stream);
      stream.duplex.cancel();
    }
  }

  /** Ends the stream in good order, now or once it is open. Nothing waits. */
  finish(): void {
    this.#isFinished = true;
    this.#current?.duplex.end();
  }

  /** Ends it at once, and gives what is left. */
  end(error: unknown): { sent: P[]; waiting: P[] } {
    const { waiting, streams } = this;
    const sent = [...streams].flatMap((stream) => stream.sent);
    this.#isEnded = true;
    this.#setWaiting([]);
    for (const { duplex } of streams) duplex.cancel();
    streams.clear();
    for (const { span } of sent) span.end(error);
    return { sent: sent.flatMap(({ batch }) => batch), waiting };
  }

  #schedule(): void {
    const inFlight = this.#current?.sent.length ?? 0;
    if (this.#isScheduled || this.#isOpening || inFlight >= this.#inFlightMax()) return;
    this.#isScheduled = true;
    const flush = () => {
      this.#isScheduled = false;
      this.flush();
    };
    // With nothing under way at once, behind all that is ready to run; else with what else this turn brings.
    if (inFlight === 0) process.nextTick(flush);
    else setImmediate(flush);
  }

  #inFlightMax(): number {
    const { requestsInFlightMax, farRequestsInFlightMax = requestsInFlightMax } = this.limits;
    return this.#current?.isFar ? farRequestsInFlightMax : requestsInFlightMax;
  }

  #take(): P[] {
    const { batchOperationsMax, batchBytesMax } = this.limits;
    const batch: P[] = [];
    let bytes = 0;
    let count = 0;
    for (const pending of this.waiting) {
      const size = pending.operation.bytes;
      if (!pending.isEnded) {
        if (batch.length === batchOperationsMax || (batch.length > 0 && bytes + size > batchBytesMax)) break;
        batch.push(pending);
        bytes += size;
      }
      this.#waitingBytes -= size;
      ++count;
    }
    this.waiting.splice(0, count);
    return batch;
  }

  #setWaiting(waiting: P[]): void {
    this.waiting = waiting;
    this.#waitingBytes = waiting.reduce((sum, { operation }) => sum + operation.bytes, 0);
  }

  #receive(stream: RequestStream<P>, { results }: ExecuteResponse): void {
    if (!this.streams.has(stream)) return;
    const [sent] = stream.sent;
    if (!sent || sent.batch.length !== results.length) {
      stream.duplex.cancel();
      return void this.#recover(stream, mismatch());
    }
    stream.sent.shift();
    stream.countAnswer(performance.now() - sent.sentAt);
    this.#failover = undefined;
    this.#backoff.reset();
    sent.span.end();
    this.owner.onResults(sent.batch, results);
    // What the answers make their callers add goes with what waits.
    if (this.waiting.length > 0) queueMicrotask(() => this.#schedule());
  }

  #onStatus(stream: RequestStream<P>, status: ServiceError): void {
    if (status.code !== 0) return void this.#recover(stream, fromServiceError(status));
    const isCurrent = this.#current === stream;
    if (stream.sent.length > 0 || (isCurrent && !this.#isFinished))
      return void this.#recover(stream, ended());
    if (this.streams.delete(stream) && isCurrent) this.owner.onFinish?.();
  }

  async #recover(stream: RequestStream<P>, error: TimecacheError): Promise<void> {
    if (!this.streams.delete(stream)) return;
    this.connection.moveOn(stream.endpoint, error);
    const isLost = isUnsent(error);
    // A node that loses the ownership answers what it has read, and does no more.
    const isRefused = isLost || error.reason === 'NOT_OWNER';
    // Neither does a server that stops, or closes an old connection, or no longer takes a token. The next stream may fare
    // better; if it is refused, too, that counts.
    const isReplaced =
      stream.answers > 0 && (error.reason === 'DRAINING' || error.code === 'UNAUTHENTICATED');
    const isUndone = isRefused || isReplaced;
    const pauseMs = isUndone ? 0 : this.#backoff.next();
    for (const { span } of stream.sent) span.end(error); // The next attempt may have other operations.
    const isCurrent = this.#current === stream;
    if (isCurrent) {
      this.#current = undefined;
      this.#isOpening = true;
    }
    const again = this.owner.onBreak(stream, error, isUndone, pauseMs);
    if (this.#isEnded) return;
    this.#setWaiting([...again, ...this.waiting]);
    if (!isCurrent) return this.flush();
    try {
      const { signal } = this.call;
      this.#failover ??= this.connection.failover();
      if (isRefused && !(await this.#failover.again(error, isLost, Infinity, signal))) this.#giveUp(error);
      if (!isUndone && (this.owner.keepsOpen || again.length > 0)) await pause(pauseMs, signal);
    } catch (aborted) {
      this.#giveUp(aborted);
    }
    this.#isOpening = false;
    if (this.owner.keepsOpen && !this.#isEnded) await this.open();
    else this.flush();
  }

  #giveUp(error: unknown): void {
    const { waiting } = this;
    this.#setWaiting([]);
    this.owner.onNoStream(waiting, error);
  }
}

function ended(): TimecacheError {
  return new TimecacheError('UNAVAILABLE', 'the server ended the stream', { maybeApplied: true });
}
