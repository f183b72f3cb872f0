// A list that is read often and changed by many clients.

import type { TimecacheClient } from '../client.js';
import { TimecacheError } from '../errors.js';
import { checkOptions, known, type Names } from '../options.js';
import { toBuffer, type Bytes } from '../values.js';
import { hasReason, isPreconditionFailed, randomId } from './common.js';

/** How long an array lives. */
export interface ArrayOptions {
  /** The array's own time to live, in ms. Default: the namespace's. */
  ttlMs?: number | undefined;
  /** Whether add and update renew it; otherwise it counts from the creation. Default true. */
  renew?: boolean | undefined;
}

/** One item of an array. */
export interface ArrayItem {
  /** Unsigned, of 64 bits. */
  id: bigint;
  /** May be empty. */
  value: Bytes;
}

/** What an array holds. */
export interface ArrayContents {
  /** In the order in which they were added. */
  items: (ArrayItem & { value: Buffer })[];
  /** The entry's; 0: there is none. */
  version: number;
  /** The entry's size. */
  storedBytes: number;
  /** Its size after a compaction. */
  compactBytes: number;
}

const KNOWN = known('an array', { ttlMs: true, renew: true } satisfies Names<ArrayOptions>);

// A record is one of these, the id in 8 bytes, and, of what was added, the value's length in 4 bytes and the value.
// Numbers are little-endian.
const ADDED = '+'.charCodeAt(0);
const REMOVED = '-'.charCodeAt(0);
const REMOVED_BYTES = 9;
const ADDED_BYTES = 13;

const MAX_TRIES = 16;

/**
 * The recipe Array: a list under one key of the client's namespace. add and remove append their change to the entry,
 * and readers fold the changes: neither reads nor rewrites the list, and no lock is needed. update changes it as a
 * whole, by version. It expires as a whole; fold reads the value of the event.
 *
 *     const hosts = new SharedArray(client, 'hosts');
 *     const id = await hosts.add('10.0.0.7');
 *     const { items } = await hosts.read();
 *     await hosts.remove(id);
 *
 * Guarantee: no concurrent change is lost. Each item has an id; an id is in the list at most once, where it was first
 * added, so that add and remove may be repeated: the client does so by itself when a connection is lost.
 *
 * An add, remove or update without an answer may have been applied. Repeat add, with the same id and only until the
 * item is removed, and remove; a removed id must not be added again. After an update without an answer, read shows
 * whether it was applied.
 *
 * Errors: FAILED_PRECONDITION (VALUE_TOO_LARGE): the entry is at the namespace's maxValueBytes, also after a
 * compaction, which a change then does, once. DATA_LOSS: the value of the key is no array.
 *
 * Cost: add and remove send the item, or 9 B, and cost O(that), in one round trip. read (one) and compact (two)
 * transfer everything that was appended since the last compaction, 13 B and the value for an item that was added.
 */
export class SharedArray {
  readonly #client: TimecacheClient;
  readonly #key: Buffer;
  readonly #options: ArrayOptions;

  constructor(client: TimecacheClient, key: Bytes, options: ArrayOptions = {}) {
    checkOptions(options, KNOWN);
    this.#client = client;
    this.#key = toBuffer(key, 'key');
    this.#options = { renew: true, ...options };
  }

  /** Random, not 0. */
  static newId(): bigint {
    return randomId();
  }

  /** Adds a value at the end, and returns its id. */
  async add(value: Bytes, id = SharedArray.newId()): Promise<bigint> {
    await this.#append(added({ id, value }), false);
    return id;
  }

  /** Removes an item. An id that is not in the list is fine. */
  async remove(id: bigint): Promise<void> {
    try {
      await this.#append(recordOf(REMOVED, REMOVED_BYTES, id), true);
    } catch (error) {
      if (!hasReason(error, 'KEY_NOT_FOUND')) throw error;
    }
  }

  /** What it holds; nothing, where there is no entry. */
  async read(): Promise<ArrayContents> {
    const entry = await this.#client.get(this.#key);
    return { ...SharedArray.fold(entry?.value ?? Buffer.alloc(0)), version: entry?.version ?? 0 };
  }

  /**
   * Reads the list, lets `change` change it, and stores it if the entry has not changed meanwhile; otherwise starts
   * again, up to 16 times: then ABORTED. `change` may be called several times, and gives new items an id by newId.
   */
  async update(change: (items: ArrayItem[]) => void | Promise<void>): Promise<void> {
    await this.#rewrite(change, this.#options.renew ?? true);
  }

  /**
   * Rewrites the entry without removed items; keeps its deadline. Worth the transfer when storedBytes is a multiple of
   * compactBytes. ABORTED as in update.
   */
  async compact(): Promise<void> {
    await this.#rewrite(() => {}, false);
  }

  /** Decodes an entry's value, as of an event; its version is 0. DATA_LOSS: it is no array. */
  static fold(value: Buffer): ArrayContents {
    const items: (ArrayContents['items'][number] | undefined)[] = [];
    const places = new Map<bigint, number>();
    for (let at = 0; at < value.length;) {
      const kind = value[at];
      const size = kind === ADDED ? ADDED_BYTES : REMOVED_BYTES;
      const end = at + size + (kind === ADDED && at + size <= value.length ? value.readUInt32LE(at + 9) : 0);
      if ((kind !== ADDED && kind !== REMOVED) || end > value.length) throw noArray(value, at);
      const id = value.readBigUInt64LE(at + 1);
      const place = places.get(id);
      // Later records of a removed id are repetitions of earlier calls.
      if (place === undefined) {
        places.set(id, items.length);
        items.push(kind === ADDED ? { id, value: value.subarray(at + size, end) } : undefined);
      } else if (kind === REMOVED) {
        items[place] = undefined;
      }
      at = end;
    }
    const left = items.filter((item) => item !== undefined);
    const compactBytes = left.reduce((sum, item) => sum + ADDED_BYTES + item.value.length, 0);
    return { items: left, version: 0, storedBytes: value.length, compactBytes };
  }

  async #append(record: Buffer, ifPresent: boolean): Promise<void> {
    const { ttlMs, renew } = this.#options;
    // A record that comes twice is folded once.
    const options = { ttlMs, ifPresent, touch: renew && !ifPresent, repeatable: true };
    try {
      await this.#client.append(this.#key, record, options);
    } catch (error) {
      if (!hasReason(error, 'VALUE_TOO_LARGE')) throw error;
      await this.compact();
      await this.#client.append(this.#key, record, options);
    }
  }

  async #rewrite(change: (items: ArrayItem[]) => void | Promise<void>, renew: boolean): Promise<void> {
    for (let i = 0; i < MAX_TRIES; ++i) {
      const { items, version } = await this.read();
      const changed: ArrayItem[] = items;
      await change(changed);
      if (version === 0 && changed.length === 0) return;
      const life = version !== 0 && !renew ? { keepDeadline: true } : { ttlMs: this.#options.ttlMs };
      const condition = version === 0 ? { ifAbsent: true } : { ifVersion: version };
      try {
        await this.#client.put(this.#key, Buffer.concat(changed.map(added)), { ...life, ...condition });
        return;
      } catch (error) {
        if (!isPreconditionFailed(error)) throw error;
      }
    }
    const what = `the array "${String(this.#key)}" was changed ${MAX_TRIES} times while it was to be rewritten`;
    throw new TimecacheError('ABORTED', what);
  }
}

function recordOf(kind: number, size: number, id: bigint): Buffer {
  const record = Buffer.alloc(size, kind);
  record.writeBigUInt64LE(id, 1);
  return record;
}

function added({ id, value }: ArrayItem): Buffer {
  const bytes = toBuffer(value, 'value');
  const record = recordOf(ADDED, ADDED_BYTES, id);
  record.writeUInt32LE(bytes.length, REMOVED_BYTES);
  return Buffer.concat([record, bytes]);
}

function noArray(value: Buffer, at: number): TimecacheError {
  const what = `the value is no array: byte ${at} of ${value.length} begins no whole record`;
  return new TimecacheError('DATA_LOSS', what);
}
