// What became of events that a group has given up.

import { DeadLetterReason as ReasonEnum, ExpiredEvent as EventMessage } from './gen/timecache/v1/watch.js';
import type { Entry } from './types.js';
import { type Time, enumName, fromTimestamp } from './values.js';
import { fromEvent, type ExpiredEvent } from './watcher.js';

/** How the last attempt ended: by a nack; it was not settled in time; its member gave it up. */
export type DeadLetterReason = 'NACKED' | 'TIMED_OUT' | 'TERMINATED';

/** An event that a group has given up, as a group puts it into its dead letter namespace. */
export interface DeadLetter {
  /** The event, with the namespace that it is of, and the last attempt at it. */
  event: ExpiredEvent;
  /** The group that gave it up. */
  group: string;
  /** Attempts that counted. */
  attempts: number;
  /** How the last of them ended; undefined: an older server wrote the letter, or a newer one has more reasons. */
  reason: DeadLetterReason | undefined;
  /** What the member gave as its reason for the nack or terminate that ended it; may be empty. */
  reasonText: string;
  /** When the letter was made. */
  time: Time;
}

/**
 * Reads a letter: an entry, or an expired event, of a dead letter namespace. TypeError: it is none, as its key or value
 * are of another making, or it was read without its value (`keysOnly`).
 */
export function decodeDeadLetter(letter: Pick<Entry, 'key' | 'value' | 'createTime'>): DeadLetter {
  const message = decode(letter.value);
  const event = fromEvent(message);
  // Servers of before the envelope said the group in the key alone.
  const [namespace, group, eventId, ...more] = letter.key.toString().split('/');
  const isNamed = namespace === event.namespace && eventId === `${event.eventId}` && more.length === 0;
  const { deadLetter } = message;
  if (!event.namespace || event.key.length === 0 || !(deadLetter?.group || (isNamed && group)))
    throw noLetter();
  return {
    event,
    group: deadLetter?.group || group!,
    attempts: deadLetter?.attempts || event.attempt,
    reason: enumName(ReasonEnum, 'DEAD_LETTER_REASON_', deadLetter?.reason ?? 0) as
      DeadLetterReason | undefined,
    reasonText: deadLetter?.reasonText ?? '',
    time: deadLetter?.time ? fromTimestamp(deadLetter.time) : letter.createTime,
  };
}

function decode(value: Uint8Array): EventMessage {
  try {
    return EventMessage.decode(value);
  } catch {
    throw noLetter();
  }
}

function noLetter(): TypeError {
  return new TypeError(
    'this is no dead letter: give an entry of a dead letter namespace, read with its value',
  );
}
