// A log of recent events, written and read by many clients.

import type { TimecacheClient } from '../client.js';
import { TimecacheError } from '../errors.js';
import { op } from '../operations.js';
import { checkOptions, known, type Names } from '../options.js';
import { toBuffer, type Bytes, type Time } from '../values.js';
import { hasReason, memberKey, prefixOf, randomId } from './common.js';

/** How long events stay. */
export interface EventLogOptions {
  /** The period that the events of one entry cover, in ms: at least 1. Default 10,000. */
  chunkMs?: number | undefined;
  /** How many of them are kept: 2 to 4,096. Default 61. */
  chunks?: number | undefined;
}

/** What has happened. */
export interface LogEvent {
  /** To the microsecond. */
  time: Time;
  /** May be empty. */
  data: Buffer;
  /** Identifies it: unsigned, of 64 bits. */
  id: bigint;
}

/** A reader's position: plain numbers, which may be stored. */
export interface LogPosition {
  /** The newest chunk that was read. */
  chunk: number;
  /** Bytes of it that were read. */
  offset: number;
  /** The same of the chunk before. */
  previousOffset: number;
}

/** What was read. */
export interface LogPage {
  /** Of read by time; of readNew by chunk and, within one, by arrival. */
  events: LogEvent[];
  /** Requested events may have expired. */
  mayHaveMissed: boolean;
}

/** What was read since a position. */
export interface NewEvents extends LogPage {
  /** Behind them. */
  position: LogPosition;
}

const KNOWN = known('an event log', { chunkMs: true, chunks: true } satisfies Names<EventLogOptions>);

/** Of an event before its data: the id, the time in microseconds since 1970, and the data's length; little-endian. */
const HEADER_BYTES = 20;
/** An offset behind every event of a chunk. */
const ALL_OF_IT = Number.MAX_SAFE_INTEGER;
const MAX_OPERATIONS = 4096;

/**
 * Events in chunks of time: the entry NAME/N of the client's namespace has those from N x chunk on, and lives for
 * chunks x chunk. An old chunk expires as any entry; a watch on keyPrefix archives it (decode).
 *
 *     const log = new EventLog(client, 'audit', { chunkMs: 60_000, chunks: 61 });
 *     await log.append(Date.now(), 'alice logged in');
 *     const { events } = await log.read(Date.now() - 3_600_000, Date.now());
 *
 * Guarantee: an event can be read for at least (chunks - 1) x chunk after its time, if it is appended at its time: the
 * clocks of the writers and of the server must agree; their difference shortens this time. Each event comes once, also
 * if append was repeated. readNew gives each event that is appended at most one chunk after its time exactly once, in
 * whatever order writers are; later ones only read gives.
 *
 * An append without an answer may have happened. The client repeats it where its connection was lost; after another
 * error append it again with the same id: readers recognise it by that.
 *
 * Errors: FAILED_PRECONDITION (VALUE_TOO_LARGE): a chunk has room for the namespace's maxValueBytes; take shorter
 * chunks, or several logs. The namespace's maxTtlMs must be at least chunks x chunk. DATA_LOSS: the value of a chunk's
 * key is none.
 *
 * Cost: append is one round trip, and sends the event and 20 B. Reading transfers whole chunks, as many as fit into a
 * response (3 MiB) for each round trip; so readNew transfers at least two chunks.
 */
export class EventLog {
  readonly #client: TimecacheClient;
  readonly #chunkUs: number;
  readonly #chunks: number;
  /** What the keys of its chunks begin with: for the `keyPrefix` of a watch. */
  readonly keyPrefix: Buffer;

  constructor(client: TimecacheClient, name: Bytes, options: EventLogOptions = {}) {
    checkOptions(options, KNOWN);
    this.#client = client;
    this.keyPrefix = prefixOf(name);
    this.#chunkUs = Math.floor((options.chunkMs ?? 10_000) * 1000);
    this.#chunks = options.chunks ?? 61;
  }

  /** Random, not 0. */
  static newId(): bigint {
    return randomId();
  }

  /** Appends an event. To repeat a call without an answer, give it an id. */
  async append(time: Time | Date, data: Bytes, id = EventLog.newId()): Promise<void> {
    const timeUs = toMicros(time);
    const bytes = toBuffer(data, 'data');
    const header = Buffer.alloc(HEADER_BYTES);
    header.writeBigUInt64LE(id, 0);
    header.writeBigInt64LE(BigInt(timeUs), 8);
    header.writeUInt32LE(bytes.length, 16);
    const ttlMs = (this.#chunkUs * this.#chunks) / 1000;
    const record = Buffer.concat([header, bytes]);
    await this.#client.append(this.#keyOf(this.#chunkOf(timeUs)), record, { ttlMs, repeatable: true });
  }

  /** The events from `from` on, before `to`. mayHaveMissed: `from` is more than (chunks - 1) x chunk before `to`. */
  async read(from: Time | Date, to: Time | Date): Promise<LogPage> {
    const [fromUs, toUs] = [toMicros(from), toMicros(to)];
    if (fromUs >= toUs) return { events: [], mayHaveMissed: false };
    const last = this.#chunkOf(toUs - 1);
    const oldest = last - this.#chunks + 1;
    const first = Math.max(this.#chunkOf(fromUs), oldest - 1);
    const events = (await this.#get(first, last))
      .flatMap((value) => decodeFrom(value, 0))
      .map((event) => ({ event, us: toMicros(event.time) }))
      .filter(({ us }) => us >= fromUs && us < toUs)
      .sort((a, b) => a.us - b.us)
      .map(({ event }) => event);
    return { events, mayHaveMissed: this.#chunkOf(fromUs) < oldest };
  }

  /** The position from which readNew starts with the events of this time's chunk. */
  positionAt(time: Time | Date): LogPosition {
    return { chunk: this.#chunkOf(toMicros(time)), offset: 0, previousOffset: ALL_OF_IT };
  }

  /**
   * The events since `position`, up to the chunk of `now`, and the position behind them. mayHaveMissed: the last call
   * was more than (chunks - 1) x chunk ago.
   */
  async readNew(position: LogPosition, now: Time | Date): Promise<NewEvents> {
    const last = Math.max(this.#chunkOf(toMicros(now)), position.chunk);
    const oldest = last - this.#chunks + 1;
    // A chunk more may still live, and the one before the position's may have got late events.
    const first = Math.max(position.chunk - 1, oldest - 1);
    const values = await this.#get(first, last);
    const offsets = new Map([
      [position.chunk, position.offset],
      [position.chunk - 1, position.previousOffset],
    ]);
    const events = values.flatMap((value, i) => decodeFrom(value, offsets.get(first + i) ?? 0));
    const size = (chunk: number) => values[chunk - first]?.length ?? 0;
    const next = { chunk: last, offset: size(last), previousOffset: size(last - 1) };
    return { events, mayHaveMissed: position.chunk < oldest, position: next };
  }

  /** The events in a chunk's value, as of an event that tells of its end. DATA_LOSS: it is no chunk. */
  static decode(value: Buffer): LogEvent[] {
    return decodeFrom(value, 0);
  }

  #chunkOf(timeUs: number): number {
    return Math.floor(timeUs / this.#chunkUs);
  }

  #keyOf(chunk: number): Buffer {
    return memberKey(this.keyPrefix, String(chunk));
  }

  /** The values of these chunks; empty for missing ones. */
  async #get(first: number, last: number): Promise<Buffer[]> {
    const values = Array.from({ length: last - first + 1 }, (): Buffer => Buffer.alloc(0));
    let wanted = [...values.keys()];
    while (wanted.length > 0) {
      const asked = wanted.slice(0, MAX_OPERATIONS);
      const operations = asked.map((i) => op.get(this.#keyOf(first + i)));
      const results = await this.#client.execute(operations, { repeatable: true });
      // What does not fit into this response fits into a later one: each has one at least.
      const omitted: number[] = [];
      for (const [j, result] of results.entries()) {
        const i = asked[j]!;
        if (result.status === 'fulfilled') values[i] = result.value?.value ?? Buffer.alloc(0);
        else if (hasReason(result.reason, 'MAX_RESPONSE_BYTES')) omitted.push(i);
        else throw result.reason;
      }
      wanted = [...omitted, ...wanted.slice(MAX_OPERATIONS)];
    }
    return values;
  }
}

function toMicros(time: Time | Date): number {
  return Math.round((time instanceof Date ? time.getTime() : time) * 1000);
}

/** The events of which a byte lies behind `offset`. */
function decodeFrom(value: Buffer, offset: number): LogEvent[] {
  const events: LogEvent[] = [];
  const ids = new Set<bigint>();
  for (let at = 0; at < value.length;) {
    const begin = at + HEADER_BYTES;
    const end = begin + (begin <= value.length ? value.readUInt32LE(at + 16) : 0);
    if (end > value.length) {
      const what = `the value is no chunk of events: byte ${at} of ${value.length} begins no whole one`;
      throw new TimecacheError('DATA_LOSS', what);
    }
    const id = value.readBigUInt64LE(at);
    // Repeated events were read the first time.
    if (!ids.has(id) && at >= offset) {
      events.push({
        time: Number(value.readBigInt64LE(at + 8)) / 1000,
        data: value.subarray(begin, end),
        id,
      });
    }
    ids.add(id);
    at = end;
  }
  return events;
}
