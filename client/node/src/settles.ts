// Calls that settle events of one group at the same time go together. Internal.

import type { CallOptions, Connection } from './connection.js';
import { TimecacheError, withDetails } from './errors.js';
import { TimeCacheServiceService as Service } from './gen/timecache/v1/data.js';
import type { SettleResult, Settlement } from './gen/timecache/v1/watch.js';
import { mismatch } from './operations.js';
import { MAX_SETTLEMENTS } from './settler.js';
import { isTraced } from './tracing.js';

/** While so many requests of a group are under way, the next one gathers. */
const REQUESTS_IN_FLIGHT_MAX = 2;

interface Call {
  readonly settlements: Settlement[];
  readonly deadline: number;
  resolve(results: SettleResult[]): void;
  reject(error: unknown): void;
}

interface Group {
  readonly namespace: string;
  readonly group: string;
  waiting: Call[];
  inFlight: number;
}

/** The calls of a client that settle events. */
export class Settles {
  readonly #groups = new Map<string, Group>();

  constructor(
    private readonly connection: Connection,
    private readonly batching: boolean,
  ) {}

  /** With others, unless the call has a trace or options of its own. */
  async do(
    namespace: string,
    group: string,
    settlements: Settlement[],
    options: CallOptions,
  ): Promise<SettleResult[]> {
    const { batching = this.batching, ...own } = options;
    if (!batching || Reflect.ownKeys(own).length > 0 || isTraced()) {
      const request = { namespace, group, settlements };
      const { results } = await this.connection.unary(Service.settleExpired, request, options, false);
      if (results.length !== settlements.length) throw mismatch();
      return results;
    }
    try {
      return await this.#gather(namespace, group, settlements);
    } catch (error) {
      // With the caller's stack.
      throw error instanceof TimecacheError ? withDetails(error, {}) : error;
    }
  }

  #gather(namespace: string, group: string, settlements: Settlement[]): Promise<SettleResult[]> {
    const key = JSON.stringify([namespace, group]);
    const found = this.#groups.get(key) ?? { namespace, group, waiting: [], inFlight: 0 };
    this.#groups.set(key, found);
    if (found.waiting.length === 0) process.nextTick(() => void this.#send(key, found));
    const deadline = Date.now() + this.connection.timeoutMs;
    return new Promise((resolve, reject) => found.waiting.push({ settlements, deadline, resolve, reject }));
  }

  async #send(key: string, found: Group): Promise<void> {
    const { namespace, group } = found;
    while (found.waiting.length > 0 && found.inFlight < REQUESTS_IN_FLIGHT_MAX) {
      const calls = take(found);
      const settlements = calls.flatMap((call) => call.settlements);
      const timeoutMs = calls[0]!.deadline - Date.now();
      ++found.inFlight;
      try {
        const request = { namespace, group, settlements };
        const { results } = await this.connection.unary(Service.settleExpired, request, { timeoutMs }, false);
        if (results.length !== settlements.length) throw mismatch();
        for (const call of calls) call.resolve(results.splice(0, call.settlements.length));
      } catch (error) {
        for (const { reject } of calls) reject(error);
      }
      --found.inFlight;
    }
    if (found.waiting.length === 0 && found.inFlight === 0) this.#groups.delete(key);
  }
}

function take(found: Group): Call[] {
  let count = 0;
  let size = 0;
  for (const { settlements } of found.waiting) {
    if (size > 0 && count + settlements.length > MAX_SETTLEMENTS) break;
    count += settlements.length;
    ++size;
  }
  return found.waiting.splice(0, size);
}
