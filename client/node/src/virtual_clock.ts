// The clock of a server that was started with --virtual-clock.

import type { TimecacheClient } from './client.js';
import type { CallOptions } from './connection.js';
import {
  VirtualClockServiceService as Service,
  type AdvanceRequest,
} from './gen/timecache/testing/v1/virtual_clock.js';
import { type Time, fromTimestamp, toDuration, toTimestamp } from './values.js';

/**
 * Moves a virtual server's clock, which stands still until then: a test of "after 30 minutes" takes a millisecond. It
 * starts at 0 and never goes back. UNIMPLEMENTED on a server that runs on the real clock.
 *
 * An advance answers once everything due has been swept and published with a watermark at the new time: a test that
 * reads its watch up to that watermark has seen all. Each call returns the clock's time after it, and may take a minute.
 */
export class VirtualClock {
  readonly #client: TimecacheClient;

  /** Of the client's server. */
  constructor(client: TimecacheClient) {
    this.#client = client;
  }

  /** By so many ms, 0 or more. */
  async advance(ms: number, options: CallOptions = {}): Promise<Time> {
    return this.#advance({ target: { $case: 'by', value: toDuration(ms, 'ms') } }, options);
  }

  /** To a time, now or later. */
  async advanceTo(time: Time, options: CallOptions = {}): Promise<Time> {
    return this.#advance({ target: { $case: 'to', value: toTimestamp(time) } }, options);
  }

  /** What time it is. */
  async now(options: CallOptions = {}): Promise<Time> {
    return fromTimestamp((await this.#client.connection.unary(Service.now, {}, options, true)).now);
  }

  async #advance(request: AdvanceRequest, options: CallOptions): Promise<Time> {
    const call = { ...options, timeoutMs: options.timeoutMs ?? 60_000 };
    return fromTimestamp((await this.#client.connection.unary(Service.advance, request, call, false)).now);
  }
}
