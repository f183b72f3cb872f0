// Telling the server what became of a worker's events. Internal.

import type { TimecacheClient } from './client.js';
import type { CallOptions } from './connection.js';
import { TimecacheError, isConnectionLost } from './errors.js';
import type { Settlement } from './settle.js';
import { Backoff, pause, timerMs } from './timing.js';

/** How settlements are sent. */
export interface SettlerOptions {
  group: string;
  /** Of each call. */
  call: Pick<CallOptions, 'requestId' | 'traceparent' | 'metadata'>;
  /** Most settlements of a call. */
  batchMax: number;
  /** How long the first of them waits for more, in ms. */
  lingerMs: number;
  minPauseMs: number;
  maxPauseMs: number;
}

/** What a settler tells. */
export interface SettlerCallbacks<Said extends Settlement> {
  /** The server's answer, perhaps not to the first call. May return another settlement to try in its place. */
  onResult(settlement: Said, error: TimecacheError | undefined, isRepeated: boolean): Said | undefined;
  /** It has not reached the server, or nobody knows. */
  onDropped(settlement: Said): void;
  /** A call that failed as a whole. */
  onError(error: unknown): void;
}

/** Most settlements that the server takes in a call. */
export const MAX_SETTLEMENTS = 4096;
const MAX_SETTLE_MS = 5_000;

/** Sends settlements in batches, in their order; again while the connection is lost. */
export class Settler<Said extends Settlement> {
  readonly #client: TimecacheClient;
  readonly #options: SettlerOptions;
  readonly #callbacks: SettlerCallbacks<Said>;
  readonly #pending: Said[] = [];
  readonly #patience = new AbortController();
  #sending: Promise<void> | undefined;
  #linger: NodeJS.Timeout | undefined;
  #givenUp: { error: unknown } | undefined;

  constructor(client: TimecacheClient, options: SettlerOptions, callbacks: SettlerCallbacks<Said>) {
    this.#client = client;
    this.#options = options;
    this.#callbacks = callbacks;
  }

  add(settlement: Said): void {
    this.#pending.push(settlement);
    if (this.#pending.length >= this.#options.batchMax) this.hurry();
    else this.#linger ??= setTimeout(() => this.hurry(), timerMs(this.#options.lingerMs));
  }

  /** What has been added need not linger. */
  hurry(): void {
    clearTimeout(this.#linger);
    this.#linger = undefined;
    this.#sending ??= this.#send().finally(() => (this.#sending = undefined));
  }

  /** Sends what has been added, and waits for the end; after the timeout nothing is tried a second time. */
  async finish(timeoutMs: number): Promise<void> {
    const timer = setTimeout(() => this.#patience.abort(), timerMs(timeoutMs));
    this.hurry();
    while (this.#sending) {
      await this.#sending;
      if (this.#pending.length > 0) this.hurry();
    }
    clearTimeout(timer);
    if (this.#givenUp) throw this.#givenUp.error;
  }

  // While a call is under way, the next batch gathers.
  async #send(): Promise<void> {
    while (this.#pending.length > 0) await this.#sendBatch(this.#pending.splice(0, this.#options.batchMax));
  }

  async #sendBatch(batch: Said[]): Promise<void> {
    const backoff = new Backoff(this.#options.minPauseMs, this.#options.maxPauseMs);
    for (let isRepeated = false; ; isRepeated = true) {
      try {
        const timeoutMs = Math.min(this.#client.timeoutMs, MAX_SETTLE_MS);
        const { group, call } = this.#options;
        const results = await this.#client.settle(group, batch, { ...call, timeoutMs });
        return this.#takeResults(batch, results, isRepeated);
      } catch (error) {
        this.#callbacks.onError(error);
        if (mayPass(error) && (await this.#pause(backoff.next()))) continue;
        for (const settlement of batch) this.#callbacks.onDropped(settlement);
        if (this.#patience.signal.aborted) this.#givenUp ??= { error };
        return;
      }
    }
  }

  #takeResults(batch: Said[], results: PromiseSettledResult<number>[], isRepeated: boolean): void {
    const instead: Said[] = [];
    for (const [i, settlement] of batch.entries()) {
      const result = results[i]!;
      const error = result.status === 'rejected' ? (result.reason as TimecacheError) : undefined;
      const other = this.#callbacks.onResult(settlement, error, isRepeated);
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

/** RESOURCE_EXHAUSTED is of all of them: the journal's disk is full, or the connection's answers wait to be read. */
function mayPass(error: unknown): boolean {
  const code = error instanceof TimecacheError ? error.code : undefined;
  return isConnectionLost(error) || code === 'DEADLINE_EXCEEDED' || code === 'RESOURCE_EXHAUSTED';
}
