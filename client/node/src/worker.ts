// Working off a consumer group's events.

import { Backoff, pause } from './connection.js';
import { TimecacheError, isConnectionLost } from './errors.js';
import { ack, nack, toAction, type Settle, type Settlement } from './settle.js';
import type { CommonWatchOptions, ExpiredEvent, WatchBatch, Watcher, WatchStart } from './watcher.js';
import type { TimecacheClient } from './client.js';

/** How a worker works. */
export interface WorkerOptions extends Omit<
  CommonWatchOptions,
  'namespaces' | 'onBreak' | 'heartbeatIntervalMs'
> {
  /** Made with default options if it is not there. */
  group: string;
  /** Where a group starts that is made by this. Default NOW. */
  start?: WatchStart | undefined;
  /** Handlers that run at a time. With 1, first attempts are handled in order of death. Default 4. */
  concurrency?: number | undefined;
  /**
   * Most events that this worker holds, from their arrival until they are settled: 1 to 65,536. The last of them must be
   * done within the group's ackTimeoutMs. Default 128.
   */
  maxInFlight?: number | undefined;
  /** Settlements are sent when there are so many, 1 to 4,096. Default 256. */
  settleBatchMax?: number | undefined;
  /** Or when the first has waited for so long, in ms, or no event is left to handle. Default 2. */
  settleLingerMs?: number | undefined;
  /** Delay, in ms, of the nack for a handler that throws, and for a settlement that is refused. Default 1,000. */
  retryDelayMs?: number | undefined;
  /** How long a stop tries to settle, in ms, once the last handler has returned. Default 10,000. */
  stopTimeoutMs?: number | undefined;
  /** Stops the worker gracefully, as {@link GroupWorker.stop} does. */
  signal?: AbortSignal | undefined;
  /** What went wrong and was survived: a break, what a handler threw, a settlement that was refused or did not arrive. */
  onError?: ((error: unknown) => void) | undefined;
  /** The group lost so many events, as it held more than its maxBacklogBytes. */
  onLoss?: ((lost: number) => void) | undefined;
}

/** Handles one event: done where it returns nothing; what throws, or rejects, is given out again after retryDelayMs. */
export type EventHandler = (event: ExpiredEvent) => Promise<Settle | void> | Settle | void;

/** What a worker has done since its start. */
export interface WorkerCounters {
  /** Handlers that have returned, or thrown. */
  handled: number;
  /** Of these, that have thrown. */
  thrown: number;
  /** Settled by ack. */
  acked: number;
  /** Given back by nack, or for one that threw. */
  nacked: number;
  /** Settled by putBack, put or let go. */
  putBack: number;
  /** Settled too late: the event had been given to another member, or was done. */
  stale: number;
  /** Not settled: refused, or not delivered. The event is given out again. */
  unsettled: number;
  /** The sum of what onLoss was told. */
  lost: number;
  /** Events that came without a value that did not fit, each attempt counted. */
  omittedValues: number;
}

const MAX_SETTLEMENTS = 4096;
const MAX_SETTLE_MS = 5_000;

/**
 * A member of a consumer group that calls a handler for each event it is given, and settles as the handler says.
 *
 * At least once. An event comes again, perhaps to another worker, when its handler said nack or threw, when it was not
 * settled within the group's ackTimeoutMs, and when the connection broke before it was settled. Events of one key come
 * one after the other; only an event that timed out or whose connection broke can be with two workers at once. In one
 * worker an event is never with two handlers at once.
 *
 * Reconnects by itself, as a {@link Watcher} does; settlements are sent again until they arrive. What ends the worker is
 * what ends a Watcher: no server at the first attempt (unless `waitForServer`), namespace or group deleted, a request
 * that is refused. Where the namespace is not durable, a server that restarts has forgotten its groups: the worker goes
 * on, in the new group, with the oldest event that is retained.
 */
export class GroupWorker {
  /**
   * Resolved after a stop, once the running handlers have returned and what they said has arrived at the server. Rejected
   * with what ended the worker, or with why settlements did not arrive within stopTimeoutMs. A program that does not
   * look at it ends when the worker fails, as with any promise.
   */
  readonly finished: Promise<void>;
  readonly #options: WorkerOptions & { concurrency: number; maxInFlight: number; retryDelayMs: number };
  readonly #handler: EventHandler;
  readonly #watcher: Watcher;
  readonly #settler: Settler;
  readonly #counters: WorkerCounters = {
    handled: 0,
    thrown: 0,
    acked: 0,
    nacked: 0,
    putBack: 0,
    stale: 0,
    unsettled: 0,
    lost: 0,
    omittedValues: 0,
  };
  // Not begun.
  readonly #queue: ExpiredEvent[] = [];
  // Every event in the queue or with a handler, or that a handler is done with for good and the server does not know
  // yet; its newest attempt, and whether it has been given out again since it was first given, or last settled in vain.
  // What is given out again meanwhile is not handled twice.
  readonly #attempts = new Map<number, { attempt: number; again: boolean }>();
  readonly #stopped = new AbortController();
  #running = 0;
  #wakers: (() => void)[] = [];

  /** Made by the client's worker. Begins at once. */
  constructor(client: TimecacheClient, options: WorkerOptions, handler: EventHandler) {
    if (!options.group) throw new TypeError('group must be given');
    const {
      signal,
      minPauseMs,
      maxPauseMs,
      keysOnly,
      maxMessageBytes,
      waitForServer,
      silenceMaxMs,
      start,
      group,
    } = options;
    this.#handler = handler;
    this.#options = {
      ...options,
      concurrency: Math.max(options.concurrency ?? 4, 1),
      maxInFlight: options.maxInFlight ?? 128,
      retryDelayMs: options.retryDelayMs ?? 1_000,
    };
    this.#settler = new Settler(client, options, {
      onResult: (settlement, error, isRepeated) => this.#settled(settlement, error, isRepeated),
      onDropped: (settlement) => this.#dropped(settlement),
      onError: (error) => options.onError?.(error),
    });
    this.#watcher = client.consume({
      ...{ group, start, keysOnly, maxMessageBytes, waitForServer, silenceMaxMs, minPauseMs, maxPauseMs },
      maxInFlight: this.#options.maxInFlight,
      onBreak: (error) => this.#loseUnbegun(error),
    });
    const stop = () => void this.stop().catch(() => {}); // `finished` has it.
    if (signal?.aborted) stop();
    signal?.addEventListener('abort', stop, { once: true });
    this.finished = this.#run().finally(() => signal?.removeEventListener('abort', stop));
  }

  /**
   * Begins no further event, and waits for the end, as `finished` says. What was given to this worker and not begun goes
   * to others once the running handlers are done and settled.
   */
  stop(): Promise<void> {
    this.#stopped.abort();
    this.#wake();
    return this.finished;
  }

  /** What it has done until now. */
  get counters(): WorkerCounters {
    return { ...this.#counters };
  }

  get #stopping(): boolean {
    return this.#stopped.signal.aborted;
  }

  // The stream stays open until the last handler is settled: with its end the server gives out again what is not.
  async #run(): Promise<void> {
    const reading = this.#read();
    let failure: { error: unknown } | undefined;
    const read = reading.catch((error: unknown) => {
      failure = { error };
      this.#stopped.abort();
      this.#wake();
    });
    await this.#until(() => this.#stopping && this.#running === 0);
    let unsettled: { error: unknown } | undefined;
    await this.#settler
      .finish(this.#options.stopTimeoutMs ?? 10_000)
      .catch((error: unknown) => (unsettled = { error }));
    this.#watcher.close();
    await read;
    const end = failure ?? unsettled;
    if (end) throw end.error;
  }

  async #read(): Promise<void> {
    for await (const batch of this.#watcher) {
      this.#take(batch);
      await this.#until(() => this.#stopping || this.#attempts.size < this.#options.maxInFlight);
    }
  }

  #take({ events, lost, omittedValues }: WatchBatch): void {
    this.#counters.lost += lost;
    this.#counters.omittedValues += omittedValues;
    if (lost > 0) this.#options.onLoss?.(lost);
    for (const event of events) {
      const again = this.#attempts.has(event.eventId);
      if (!again && this.#stopping) continue;
      this.#attempts.set(event.eventId, { attempt: event.attempt, again });
      if (!again) this.#queue.push(event);
    }
    this.#begin();
  }

  // With the stream's end the server has given them out again.
  #loseUnbegun(error: TimecacheError): void {
    for (const { eventId } of this.#queue.splice(0)) this.#attempts.delete(eventId);
    // What a new stream would bring is for others.
    if (this.#stopping) this.#watcher.close();
    this.#wake();
    this.#options.onError?.(error);
  }

  #begin(): void {
    while (!this.#stopping && this.#running < this.#options.concurrency) {
      const event = this.#queue.shift();
      if (!event) return;
      ++this.#running;
      event.attempt = this.#attempts.get(event.eventId)?.attempt ?? event.attempt;
      void this.#handle(event);
    }
  }

  async #handle(event: ExpiredEvent): Promise<void> {
    let how: Settle;
    try {
      how = (await this.#handler(event)) ?? ack();
      toAction(how);
    } catch (error) {
      ++this.#counters.thrown;
      how = nack(this.#options.retryDelayMs);
      this.#options.onError?.(error);
    }
    ++this.#counters.handled;
    const { eventId } = event;
    const attempt = this.#attempts.get(eventId)?.attempt ?? event.attempt;
    // It may come again before the answer to this.
    if (how.action === 'nack') this.#attempts.delete(eventId);
    this.#settler.add({ eventId, attempt, how });
    --this.#running;
    this.#begin();
    if (this.#running === 0) this.#settler.hurry();
    this.#wake();
  }

  // The server's answer; returns what to settle in its place, if anything.
  #settled(
    settlement: Settlement,
    error: TimecacheError | undefined,
    isRepeated: boolean,
  ): Settlement | undefined {
    const isSettled = error?.reason === 'EVENT_NOT_UNSETTLED';
    if (error && !isSettled && error.reason !== 'STALE_ATTEMPT') return this.#refused(settlement, error);
    if (error && settlement.how.action !== 'nack') {
      // Perhaps this came to the server before it gave the event to this worker again, as after a restart: then nobody
      // else settles it.
      const known = this.#attempts.get(settlement.eventId);
      if (known?.again) {
        known.again = false;
        return { ...settlement, attempt: known.attempt };
      }
    }
    this.#forget(settlement);
    // An attempt that was not answered may have settled it.
    if (isRepeated && isSettled) error = undefined;
    if (error) ++this.#counters.stale;
    else if (settlement.how.action === 'ack') ++this.#counters.acked;
    else if (settlement.how.action === 'nack') ++this.#counters.nacked;
    else ++this.#counters.putBack;
    return undefined;
  }

  // The server did not like how it was settled, or has no room for what is put back: then it is tried again later.
  #refused(settlement: Settlement, error: TimecacheError): Settlement | undefined {
    this.#options.onError?.(error);
    const { how, eventId, attempt } = settlement;
    const retry = nack(this.#options.retryDelayMs);
    if (how.action === 'ack' || (how.action === 'nack' && how.delayMs === this.#options.retryDelayMs)) {
      this.#dropped(settlement);
      return undefined;
    }
    this.#forget(settlement);
    return { eventId, attempt, how: retry };
  }

  #dropped(settlement: Settlement): void {
    ++this.#counters.unsettled;
    this.#forget(settlement);
  }

  // From here on the event is handled when it comes again. A nack was forgotten when it was said: what there is now is
  // the event's next attempt.
  #forget({ eventId, how }: Settlement): void {
    if (how.action === 'nack') return;
    this.#attempts.delete(eventId);
    this.#wake();
  }

  async #until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.#wakers.push(resolve));
  }

  #wake(): void {
    for (const wake of this.#wakers.splice(0)) wake();
  }
}

/** Sends settlements in batches, in their order; again while the connection is lost. */
class Settler {
  readonly #pending: Settlement[] = [];
  readonly #patience = new AbortController();
  #sending: Promise<void> | undefined;
  #linger: NodeJS.Timeout | undefined;
  #givenUp: { error: unknown } | undefined;

  constructor(
    private readonly client: TimecacheClient,
    private readonly options: WorkerOptions,
    private readonly callbacks: {
      /** The server's answer, perhaps not to the first call. May return another settlement to try in its place. */
      onResult(
        settlement: Settlement,
        error: TimecacheError | undefined,
        isRepeated: boolean,
      ): Settlement | undefined;
      /** It has not reached the server, or nobody knows. */
      onDropped(settlement: Settlement): void;
      /** A call that failed as a whole. */
      onError(error: unknown): void;
    },
  ) {}

  add(settlement: Settlement): void {
    this.#pending.push(settlement);
    if (this.#pending.length >= this.#batchMax) this.hurry();
    else this.#linger ??= setTimeout(() => this.hurry(), this.options.settleLingerMs ?? 2);
  }

  /** What has been added need not linger. */
  hurry(): void {
    clearTimeout(this.#linger);
    this.#linger = undefined;
    this.#sending ??= this.#send().finally(() => (this.#sending = undefined));
  }

  /** Sends what has been added, and waits for the end; after the timeout nothing is tried a second time. */
  async finish(timeoutMs: number): Promise<void> {
    const timer = setTimeout(() => this.#patience.abort(), timeoutMs);
    this.hurry();
    while (this.#sending) {
      await this.#sending;
      if (this.#pending.length > 0) this.hurry();
    }
    clearTimeout(timer);
    if (this.#givenUp) throw this.#givenUp.error;
  }

  get #batchMax(): number {
    return Math.min(Math.max(this.options.settleBatchMax ?? 256, 1), MAX_SETTLEMENTS);
  }

  // While a call is under way, the next batch gathers.
  async #send(): Promise<void> {
    while (this.#pending.length > 0) await this.#sendBatch(this.#pending.splice(0, this.#batchMax));
  }

  async #sendBatch(batch: Settlement[]): Promise<void> {
    const backoff = new Backoff(this.options.minPauseMs ?? 100, this.options.maxPauseMs ?? 1_000);
    for (let isRepeated = false; ; isRepeated = true) {
      try {
        const timeoutMs = Math.min(this.client.timeoutMs, MAX_SETTLE_MS);
        return this.#tell(
          batch,
          await this.client.settle(this.options.group, batch, { timeoutMs }),
          isRepeated,
        );
      } catch (error) {
        this.callbacks.onError(error);
        const code = error instanceof TimecacheError ? error.code : undefined;
        const mayPass = isConnectionLost(error) || code === 'DEADLINE_EXCEEDED';
        if (mayPass && (await this.#pause(backoff.next()))) continue;
        for (const settlement of batch) this.callbacks.onDropped(settlement);
        if (this.#patience.signal.aborted) this.#givenUp ??= { error };
        return;
      }
    }
  }

  #tell(batch: Settlement[], results: PromiseSettledResult<number>[], isRepeated: boolean): void {
    const instead: Settlement[] = [];
    for (const [i, settlement] of batch.entries()) {
      const result = results[i]!;
      const error = result.status === 'rejected' ? (result.reason as TimecacheError) : undefined;
      const other = this.callbacks.onResult(settlement, error, isRepeated);
      if (other) instead.push(other);
    }
    this.#pending.unshift(...instead);
  }

  // False if there is no time left for another attempt.
  async #pause(ms: number): Promise<boolean> {
    await pause(ms, this.#patience.signal).catch(() => {});
    return !this.#patience.signal.aborted;
  }
}
