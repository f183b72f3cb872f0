// What members of a consumer group do with the events that they are given.

import type { Settlement as SettlementMessage } from './gen/timecache/v1/watch.js';
import { checkOptions, known, type Names } from './options.js';
import type { DueDate } from './types.js';
import { toBuffer, toDuration, toTimestamp } from './values.js';

/** How an event is put back. */
export interface PutBackOptions extends DueDate {
  /** The entry's own time to live, in ms. Default: the one that it had, or else the namespace's. */
  ttlMs?: number | undefined;
}

const PUT_BACK_OPTIONS: Names<PutBackOptions> = { ttlMs: true, expireAt: true, allowPast: true };
const KNOWN = known('putBack', PUT_BACK_OPTIONS);

/** What to do with an event: made by {@link ack}, {@link nack}, {@link putBack} and {@link terminate}. */
export type Settle =
  | { readonly action: 'ack' }
  | { readonly action: 'nack'; readonly delayMs?: number | undefined; readonly reason?: string }
  | { readonly action: 'putBack'; readonly options: PutBackOptions }
  | { readonly action: 'terminate'; readonly reason: string };

/** More time for an event: made by {@link extend}. A worker asks for it by itself. */
export type Extend = { readonly action: 'extend' };

/** Done. Accepted also from an earlier delivery, while the event is unsettled. */
export function ack(): Settle {
  return { action: 'ack' };
}

/**
 * Give it out again, after 0 to 7 days, in ms; without a delay as the group's retryDelayMs says. The reason, for people,
 * of at most 256 B of UTF-8, is the event's `lastReason` when it comes again, and is in its dead letter.
 */
export function nack(delayMs?: number, reason = ''): Settle {
  return { action: 'nack', delayMs, reason };
}

/**
 * Give it up: it becomes a dead letter now, with this reason of at most 256 B, whatever its attempts; in a namespace
 * without a deadLetterNamespace it is settled.
 */
export function terminate(reason = ''): Settle {
  return { action: 'terminate', reason };
}

/**
 * Put it back with its value and a fresh time to live, unless the key is there again: of so many ms, or as the options
 * say. Default: the time to live of its own that it had, or else the namespace's.
 */
export function putBack(how: number | PutBackOptions = {}): Settle {
  const options = typeof how === 'number' ? { ttlMs: how } : how;
  checkOptions(options, KNOWN);
  return { action: 'putBack', options };
}

/** The group's ackTimeoutMs anew, from now on: the attempt goes on. Any number of times. */
export function extend(): Extend {
  return { action: 'extend' };
}

/** One event, settled. */
export interface Settlement {
  /**
   * From the event: of a delivery, or of listUnsettled. One of the latter settles the event whoever holds it; for an
   * extend a member has to hold it.
   */
  deliveryToken: Buffer;
  /** What to do with it. */
  how: Settle | Extend;
}

export function toSettlement({ deliveryToken, how }: Settlement): SettlementMessage {
  return {
    deliveryToken: toBuffer(deliveryToken, 'deliveryToken'),
    action: toAction(how),
  };
}

/** Throws a TypeError for what is no Settle. */
export function toAction(how: Settle | Extend): SettlementMessage['action'] {
  switch (how.action) {
    case 'ack':
      return { $case: 'ack', value: {} };
    case 'nack':
      return {
        $case: 'nack',
        value: { delay: toDuration(how.delayMs, 'delayMs'), reason: how.reason ?? '' },
      };
    case 'terminate':
      return { $case: 'terminate', value: { reason: how.reason } };
    case 'putBack': {
      const { ttlMs, expireAt, allowPast = false } = how.options;
      const ttl = toDuration(ttlMs, 'ttlMs');
      return {
        $case: 'putBack',
        value: { ttl, expireAt: toTimestamp(expireAt, 'expireAt'), allowPast },
      };
    }
    case 'extend':
      return { $case: 'extend', value: {} };
    default:
      throw new TypeError('settle with ack(), nack(), putBack() or terminate()');
  }
}
