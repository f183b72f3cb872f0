// Keeps events with a worker while it works on them. Internal.

import type { TimecacheClient } from './client.js';
import type { CallOptions } from './connection.js';
import { TimecacheError, isConnectionLost } from './errors.js';
import { extend } from './settle.js';
import { MAX_SETTLEMENTS } from './settler.js';
import { timerMs } from './timing.js';
import type { ExpiredEvent } from './watcher.js';

/** An event that may need more time. Times are those of performance.now. */
export interface Extendable {
  /** Its newest delivery. */
  readonly event: Pick<ExpiredEvent, 'deliveryToken'>;
  /** When the worker was given it. */
  readonly since: number;
  /** From when on its ackTimeoutMs counts. */
  countsFrom: number;
  /** The server gives this attempt no more time: it has ended. */
  isOver: boolean;
}

export interface ExtenderOptions {
  group: string;
  /** Of each call. */
  call: Pick<CallOptions, 'requestId' | 'traceparent' | 'metadata'>;
  /** Longest time that an event is kept. */
  maxMs: number;
}

/** What an extender asks and tells. */
export interface ExtenderCallbacks {
  /** What the worker has, and has not settled. */
  held(): Extendable[];
  /** A call failed, but not by its connection. */
  onError(error: unknown): void;
}

/** How soon the group is asked again where it could not be. */
const RETRY_MS = 1_000;
/** How old its answer may be. */
const FRESH_MS = 60_000;

/**
 * Asks for another ackTimeoutMs for what has had a third of it. Looks three times in that time, so that every event has a
 * third left for the call.
 */
export class Extender {
  readonly #client: TimecacheClient;
  readonly #options: ExtenderOptions;
  readonly #callbacks: ExtenderCallbacks;
  #timer: NodeJS.Timeout | undefined;
  #ackTimeoutMs: number | undefined;
  #askedAt = -Infinity;
  // Since the last success: what lasts is told once.
  #isTold = false;
  #isStopped = false;

  constructor(client: TimecacheClient, options: ExtenderOptions, callbacks: ExtenderCallbacks) {
    this.#client = client;
    this.#options = options;
    this.#callbacks = callbacks;
    this.#isStopped = options.maxMs <= 0;
  }

  /** The group is there, perhaps made anew. */
  begin(): void {
    this.#askedAt = -Infinity;
    this.#schedule(0);
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  #schedule(ms: number): void {
    clearTimeout(this.#timer);
    if (this.#isStopped) return;
    this.#timer = setTimeout(() => void this.#look(), timerMs(ms));
  }

  async #look(): Promise<void> {
    const timer = this.#timer;
    let pauseMs = RETRY_MS;
    try {
      if (performance.now() - this.#askedAt >= FRESH_MS) await this.#ask();
      await this.#extend();
      pauseMs = Math.max(this.#ackTimeoutMs! / 3, 1);
      this.#isTold = false;
    } catch (error) {
      if (!this.#isStopped && !this.#isTold && !isConnectionLost(error)) {
        this.#isTold = true;
        this.#callbacks.onError(error);
      }
    }
    // Unless it has begun anew.
    if (this.#timer === timer) this.#schedule(Math.min(pauseMs, FRESH_MS));
  }

  async #ask(): Promise<void> {
    const { group, call } = this.#options;
    const { options } = await this.#client.getGroup(group, call);
    this.#ackTimeoutMs = options.ackTimeoutMs;
    this.#askedAt = performance.now();
  }

  async #extend(): Promise<void> {
    const now = performance.now();
    const ackTimeoutMs = this.#ackTimeoutMs!;
    const due = this.#callbacks
      .held()
      .filter(
        ({ since, countsFrom, isOver }) =>
          !isOver && now - countsFrom >= ackTimeoutMs / 3 && now - since < this.#options.maxMs,
      );
    for (let i = 0; i < due.length; i += MAX_SETTLEMENTS) {
      await this.#extendBatch(due.slice(i, i + MAX_SETTLEMENTS));
    }
  }

  async #extendBatch(batch: Extendable[]): Promise<void> {
    const { group, call } = this.#options;
    const now = performance.now();
    const asked = batch.map(({ event }) => ({ deliveryToken: event.deliveryToken, how: extend() }));
    const timeoutMs = Math.min(this.#client.timeoutMs, Math.max(this.#ackTimeoutMs! / 3, 1_000));
    const results = await this.#client.settle(group, asked, { ...call, timeoutMs });
    for (const [i, held] of batch.entries()) {
      const result = results[i]!;
      if (result.status === 'fulfilled') {
        held.countsFrom = now;
        continue;
      }
      // It was given again meanwhile: then that attempt goes on.
      if (held.event.deliveryToken.equals(asked[i]!.deliveryToken)) held.isOver = true;
      this.#refused(result.reason);
    }
  }

  // That the attempt has ended is told when the event cannot be settled.
  #refused(error: unknown): void {
    const { code, reason } = error instanceof TimecacheError ? error : {};
    if (reason === 'EVENT_NOT_UNSETTLED' || reason === 'STALE_ATTEMPT') return;
    if (code === 'INVALID_ARGUMENT') this.stop(); // A server of an earlier version.
    this.#callbacks.onError(error);
  }
}
