// What members of a consumer group do with the events that they are given.

import type { Settlement as SettlementMessage } from './gen/timecache/v1/watch.js';
import { toDuration, toUint32, toUint64 } from './values.js';

/** What to do with an event: made by {@link ack}, {@link nack} and {@link putBack}. */
export type Settle =
  | { readonly action: 'ack' }
  | { readonly action: 'nack'; readonly delayMs: number }
  | { readonly action: 'putBack'; readonly ttlMs: number | undefined };

/** Done. Accepted also from an earlier attempt, while the event is unsettled. */
export function ack(): Settle {
  return { action: 'ack' };
}

/** Give it out again, after 0 to 7 days, in ms. */
export function nack(delayMs = 0): Settle {
  return { action: 'nack', delayMs };
}

/** Put it back with its value and a fresh time to live, unless the key is there again. Default: the namespace's ttl. */
export function putBack(ttlMs?: number): Settle {
  return { action: 'putBack', ttlMs };
}

/** One event, settled. */
export interface Settlement {
  /** From the event. */
  eventId: number;
  /** From the event. */
  attempt: number;
  /** What to do with it. */
  how: Settle;
}

export function toSettlement({ eventId, attempt, how }: Settlement): SettlementMessage {
  return {
    eventId: toUint64(eventId, 'eventId'),
    attempt: toUint32(attempt, 'attempt'),
    action: toAction(how),
  };
}

/** Throws a TypeError for what is no Settle. */
export function toAction(how: Settle): SettlementMessage['action'] {
  switch (how.action) {
    case 'ack':
      return { $case: 'ack', value: {} };
    case 'nack':
      return { $case: 'nack', value: { delay: toDuration(how.delayMs, 'delayMs') } };
    case 'putBack':
      return { $case: 'putBack', value: { ttl: toDuration(how.ttlMs, 'ttlMs') } };
    default:
      throw new TypeError('settle with ack(), nack() or putBack()');
  }
}
