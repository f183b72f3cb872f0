// Working off a consumer group's events.

import { TimecacheError, isConnectionLost, withDetails } from './errors.js';
import { Extender, type Extendable } from './extender.js';
import { checkOptions, known, type Names } from './options.js';
import { ack, nack, toAction, type Settle, type Settlement } from './settle.js';
import { MAX_SETTLEMENTS, Settler } from './settler.js';
import type { CommonWatchOptions, ExpiredEvent, WatchBatch, Watcher, WatchStart } from './watcher.js';
import type { TimecacheClient } from './client.js';
import { UNTRACED, withConsumerSpan, withoutContext } from './tracing.js';

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
   * Most events that this worker holds, from their arrival until they are settled: 1 to 65,536. More than the concurrency
   * hides the round trip of handlers that are quick; of handlers that take long, it makes events wait for them that
   * another worker might have. Default: twice the concurrency.
   */
  maxInFlight?: number | undefined;
  /** Settlements are sent when there are so many, 1 to 4,096. Default 256. */
  settleBatchMax?: number | undefined;
  /** Or when the first has waited for so long, in ms, or no event is left to handle. Default 2. */
  settleLingerMs?: number | undefined;
  /**
   * Delay, in ms, of the nack for a handler that throws, and for a settlement that is refused. Null: as the group's
   * retryDelayMs says. Default 1,000.
   */
  retryDelayMs?: number | null | undefined;
  /** How long a stop tries to settle, in ms, once the last handler has returned. Default 10,000. */
  stopTimeoutMs?: number | undefined;
  /**
   * The worker asks for another ackTimeoutMs for each event that it holds, until it is settled, but for no longer than
   * this, in ms from its arrival: then the event is given to another worker. 0: it never asks; what is not settled
   * within ackTimeoutMs is given out again. Default 12 h.
   */
  extendMaxMs?: number | undefined;
  /** Stops the worker gracefully, as {@link GroupWorker.stop} does. */
  signal?: AbortSignal | undefined;
  /**
   * What went wrong: a break; what a handler threw, and that an event which was handled could not be settled, with the
   * event; a call that failed; last, what `finished` is rejected with. Default: a warning of the process for each of them
   * but breaks.
   */
  onError?: ((error: unknown, event?: ExpiredEvent) => void) | undefined;
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
  /** Given up by terminate. */
  terminated: number;
  /** Settled too late: the event had been given to another member, or was done. */
  stale: number;
  /** Not settled: refused, or not delivered. The event is given out again. */
  unsettled: number;
  /** The sum of what onLoss was told. */
  lost: number;
  /** Events that came without a value that did not fit, each attempt counted. */
  omittedValues: number;
}

/** An event that this worker has, from its arrival until the server knows what became of it. */
interface Held extends Extendable {
  /** With the attempt, returns and token of its newest delivery. */
  event: ExpiredEvent;
  /** Whether its settlement is on its way. */
  isSaid: boolean;
  /** Whether a nack was said: what comes again is to be handled again. */
  isReturned: boolean;
}

/** Most events that the server lets a member hold. */
const MAX_IN_FLIGHT = 65_536;

const EXTEND_MAX_MS = 12 * 60 * 60_000;

const WORKER_OPTIONS: Names<WorkerOptions> = {
  requestId: true,
  traceparent: true,
  metadata: true,
  keysOnly: true,
  maxMessageBytes: true,
  signal: true,
  waitForServer: true,
  minPauseMs: true,
  maxPauseMs: true,
  silenceMaxMs: true,
  group: true,
  start: true,
  concurrency: true,
  maxInFlight: true,
  settleBatchMax: true,
  settleLingerMs: true,
  retryDelayMs: true,
  stopTimeoutMs: true,
  extendMaxMs: true,
  onError: true,
  onLoss: true,
};
const KNOWN = known('a worker', WORKER_OPTIONS);

interface HeldSettlement extends Settlement {
  readonly how: Settle;
  readonly held: Held;
}

/**
 * A member of a consumer group that calls a handler for each event it is given, and settles as the handler says.
 *
 * At least once. An event comes again, perhaps to another worker, when its handler said nack or threw, when the
 * connection broke before it was settled, and when it was not settled within the group's ackTimeoutMs: the worker asks
 * for another one by itself while it holds the event, see {@link WorkerOptions.extendMaxMs}. Events of one key come
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
   * with what ended the worker, or with why settlements did not arrive within stopTimeoutMs. A program need not look at
   * it: onError is told, too.
   */
  readonly finished: Promise<void>;
  readonly #options: WorkerOptions & { concurrency: number; maxInFlight: number };
  /** In place of what failed. */
  readonly #retry: Settle;
  readonly #namespace: string;
  readonly #handler: EventHandler;
  readonly #watcher: Watcher;
  readonly #settler: Settler<HeldSettlement>;
  readonly #extender: Extender;
  readonly #counters: WorkerCounters = {
    handled: 0,
    thrown: 0,
    acked: 0,
    nacked: 0,
    putBack: 0,
    terminated: 0,
    stale: 0,
    unsettled: 0,
    lost: 0,
    omittedValues: 0,
  };
  // Not begun.
  readonly #queue: Held[] = [];
  // By name, every event in the queue or with a handler, or that a handler is done with for good and the server does
  // not know yet. What is given out again meanwhile is not handled twice.
  readonly #held = new Map<string, Held>();
  #stopping = false;
  #running = 0;
  #failure: { error: unknown } | undefined;
  #wakers: (() => void)[] = [];

  /** Made by the client's worker. Begins at once. */
  constructor(client: TimecacheClient, options: WorkerOptions, handler: EventHandler) {
    checkOptions(options, KNOWN);
    if (!options.group) throw new TypeError('group must be given');
    const { concurrency = 4, settleBatchMax = 256, extendMaxMs = EXTEND_MAX_MS } = options;
    if (!(concurrency >= 1)) throw new TypeError('concurrency must be at least 1');
    if (!(settleBatchMax >= 1)) throw new TypeError('settleBatchMax must be at least 1');
    if (!(extendMaxMs >= 0)) throw new TypeError('extendMaxMs must be 0 or more');
    this.#namespace = client.defaultNamespace;
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
      requestId,
      traceparent,
      metadata,
    } = options;
    const call = { requestId, traceparent, metadata, [UNTRACED]: true };
    this.#retry = nack(options.retryDelayMs === null ? undefined : (options.retryDelayMs ?? 1_000));
    toAction(this.#retry); // A TypeError now, not with each event.
    this.#handler = handler;
    this.#options = {
      ...options,
      concurrency,
      maxInFlight: options.maxInFlight ?? Math.min(2 * concurrency, MAX_IN_FLIGHT),
    };
    const settlerOptions = {
      group,
      call,
      batchMax: Math.min(settleBatchMax, MAX_SETTLEMENTS),
      lingerMs: options.settleLingerMs ?? 2,
      minPauseMs: minPauseMs ?? 100,
      maxPauseMs: maxPauseMs ?? 1_000,
    };
    this.#settler = new Settler<HeldSettlement>(client, settlerOptions, {
      onResult: (settlement, error, isRepeated) => this.#settled(settlement, error, isRepeated),
      onDropped: (settlement) => this.#dropped(settlement),
      onError: (error) => this.#report(error),
    });
    this.#extender = new Extender(
      client,
      { group, call, maxMs: extendMaxMs },
      {
        held: () => [...this.#held.values()].filter(({ isSaid }) => !isSaid),
        onError: (error) => this.#report(error),
      },
    );
    this.#watcher = client.consume({
      ...{ group, start, keysOnly, maxMessageBytes, waitForServer, silenceMaxMs, minPauseMs, maxPauseMs },
      ...call,
      maxInFlight: this.#options.maxInFlight,
      onBreak: (error) => this.#loseUnbegun(error),
    });
    const stop = () => this.#requestStop();
    if (signal?.aborted) stop();
    signal?.addEventListener('abort', stop, { once: true });
    this.finished = withoutContext(() => this.#run()).finally(() =>
      signal?.removeEventListener('abort', stop),
    );
    this.finished.catch((error: unknown) => this.#reportEnd(error));
  }

  /**
   * Begins no further event, and waits for the end, as `finished` says. What was given to this worker and not begun goes
   * to others once the running handlers are done and settled.
   */
  stop(): Promise<void> {
    this.#requestStop();
    return this.finished;
  }

  /** What it has done until now. */
  get counters(): WorkerCounters {
    return { ...this.#counters };
  }

  #requestStop(): void {
    this.#stopping = true;
    this.#wake();
  }

  // The first one is what `finished` is rejected with.
  #fail(error: unknown): void {
    this.#failure ??= { error };
    this.#requestStop();
  }

  // A callback that throws ends the worker: there is nobody else to tell.
  #report(error: unknown, event?: ExpiredEvent): void {
    const { onError, group } = this.#options;
    try {
      if (onError) return event ? onError(error, event) : onError(error);
    } catch (thrown) {
      return this.#fail(thrown);
    }
    if (isConnectionLost(error)) return;
    const what = event
      ? `the handler of ${describe(event, group)}`
      : `a worker of the group ${this.#namespace}/${group}`;
    warn(`${what} failed`, error);
  }

  // An event that was handled, and that the server will not take for settled.
  #reportUnsettled({ held, how }: HeldSettlement, error: TimecacheError): void {
    const about = `the ${how.action} of ${describe(held.event, this.#options.group)} was not accepted`;
    const detailed = withDetails(error, { about });
    if (this.#options.onError) this.#report(detailed, held.event);
    else warn(detailed.message);
  }

  // A rejection that nobody looks at would end the program.
  #reportEnd(error: unknown): void {
    if (this.#options.onError) return this.#report(error);
    const why = error instanceof Error ? error.message : String(error);
    warn(`the worker of the group ${this.#namespace}/${this.#options.group} has ended: ${why}`);
  }

  // The stream stays open until the last handler is settled: with its end the server gives out again what is not.
  async #run(): Promise<void> {
    const read = this.#read().catch((error: unknown) => this.#fail(error));
    await this.#until(() => this.#stopping && this.#running === 0);
    let unsettled: { error: unknown } | undefined;
    await this.#settler
      .finish(this.#options.stopTimeoutMs ?? 10_000)
      .catch((error: unknown) => (unsettled = { error }));
    this.#extender.stop();
    this.#watcher.close();
    await read;
    const end = this.#failure ?? unsettled;
    if (end) throw end.error;
  }

  async #read(): Promise<void> {
    let isFirst = true;
    for await (const batch of this.#watcher) {
      if (isFirst || batch.reconnected) this.#extender.begin();
      isFirst = false;
      this.#take(batch);
      await this.#until(() => this.#stopping || this.#held.size < this.#options.maxInFlight);
    }
  }

  #take({ events, lost, omittedValues }: WatchBatch): void {
    this.#counters.lost += lost;
    this.#counters.omittedValues += omittedValues;
    if (lost > 0) this.#options.onLoss?.(lost);
    for (const event of events) {
      const held = this.#held.get(nameOf(event));
      const now = performance.now();
      if (held && !held.isReturned) {
        const { attempt, returns, deliveryToken } = event;
        held.event = { ...held.event, attempt, returns, deliveryToken };
        held.countsFrom = now;
        held.isOver = false;
        continue;
      }
      const fresh: Held = {
        event,
        since: now,
        countsFrom: now,
        isOver: false,
        isSaid: false,
        isReturned: false,
      };
      this.#held.set(nameOf(event), fresh);
      // After a stop it is for others, who get it with the stream's end: until then it must not time out.
      if (!this.#stopping) this.#queue.push(fresh);
    }
    this.#begin();
  }

  // With the stream's end the server has given them out again.
  #loseUnbegun(error: TimecacheError): void {
    for (const { event } of this.#queue.splice(0)) this.#held.delete(nameOf(event));
    this.#report(error);
    // What a new stream would bring is for others.
    if (this.#stopping) this.#watcher.close();
    this.#wake();
  }

  #begin(): void {
    while (!this.#stopping && this.#running < this.#options.concurrency) {
      const held = this.#queue.shift();
      if (!held) return;
      ++this.#running;
      void this.#handle(held);
    }
  }

  async #handle(held: Held): Promise<void> {
    let how: Settle;
    try {
      how = (await withConsumerSpan({ ...held.event }, this.#options.group, this.#handler)) ?? ack();
      if ((how as Settlement['how']).action === 'extend')
        throw new TypeError(
          'a handler settles with ack(), nack(), putBack() or terminate(): its worker extends by itself',
        );
      toAction(how);
    } catch (error) {
      ++this.#counters.thrown;
      how = this.#retry;
      this.#report(error, held.event);
    }
    ++this.#counters.handled;
    this.#settler.add(this.#owe(held, how));
    --this.#running;
    this.#begin();
    if (this.#running === 0) this.#settler.hurry();
    this.#wake();
  }

  // The settlement of the newest delivery.
  #owe(held: Held, how: Settle): HeldSettlement {
    held.isSaid = true;
    held.isReturned = how.action === 'nack';
    return { deliveryToken: held.event.deliveryToken, how, held };
  }

  // The server's answer; returns what to settle in its place, if anything.
  #settled(
    settlement: HeldSettlement,
    error: TimecacheError | undefined,
    isRepeated: boolean,
  ): HeldSettlement | undefined {
    const isSettled = error?.reason === 'EVENT_NOT_UNSETTLED';
    if (error && !isSettled && error.reason !== 'STALE_ATTEMPT') return this.#refused(settlement, error);
    if (error && !isSettled && settlement.how.action !== 'nack') {
      // Perhaps this came to the server before it gave the event to this worker again, as after a restart: then nobody
      // else settles it.
      const { deliveryToken } = settlement.held.event;
      if (!deliveryToken.equals(settlement.deliveryToken)) return this.#owe(settlement.held, settlement.how);
    }
    this.#release(settlement.held);
    // An attempt that was not answered may have settled it.
    if (isRepeated && isSettled) error = undefined;
    if (error) {
      ++this.#counters.stale;
      this.#reportUnsettled(settlement, error);
    } else if (settlement.how.action === 'ack') ++this.#counters.acked;
    else if (settlement.how.action === 'nack') ++this.#counters.nacked;
    else if (settlement.how.action === 'terminate') ++this.#counters.terminated;
    else ++this.#counters.putBack;
    return undefined;
  }

  // The server did not like how it was settled, or has no room for what is put back: then it is tried again later.
  #refused(settlement: HeldSettlement, error: TimecacheError): HeldSettlement | undefined {
    this.#reportUnsettled(settlement, error);
    const { held, how } = settlement;
    if (how.action === 'ack' || how === this.#retry) {
      this.#dropped(settlement);
      return undefined;
    }
    return this.#owe(held, this.#retry);
  }

  #dropped(settlement: HeldSettlement): void {
    ++this.#counters.unsettled;
    this.#release(settlement.held);
  }

  // From here on the event is handled when it comes again.
  #release(held: Held): void {
    const name = nameOf(held.event);
    if (this.#held.get(name) !== held) return;
    this.#held.delete(name);
    this.#wake();
  }

  async #until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.#wakers.push(resolve));
  }

  #wake(): void {
    for (const wake of this.#wakers.splice(0)) wake();
  }
}

/** What an event keeps in every delivery. */
function nameOf({ version, key }: ExpiredEvent): string {
  return `${version}/${key.toString('latin1')}`;
}

/** As logs name it. */
function describe({ namespace, key, attempt }: ExpiredEvent, group: string): string {
  const text = key.toString();
  const name = Buffer.from(text).equals(key) ? JSON.stringify(text) : `0x${key.toString('hex')}`;
  return `${namespace}/${group}, key ${name}, attempt ${attempt},`;
}

function warn(what: string, error?: unknown): void {
  const why = error instanceof Error ? (error.stack ?? error.message) : String(error);
  process.emitWarning(error === undefined ? what : `${what}: ${why}`, { type: 'TimecacheWarning' });
}
