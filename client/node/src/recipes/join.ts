// Joins streams by id: Storm's SingleJoinBolt.

import type { TimecacheClient } from '../client.js';
import { op, type Operation } from '../operations.js';
import { checkOptions, known, type Names } from '../options.js';
import type { GatherOptions, GatheredParts } from '../types.js';
import { toBuffer, type Bytes } from '../values.js';
import type { ExpiredEvent } from '../watcher.js';
import { memberKey, memberOf, prefixOf } from './common.js';

/** What is joined. */
export interface JoinOptions {
  /** The streams: 1 to 1,024 different names of 1 to 256 B. All joins of one name must have the same sources. */
  sources: readonly Bytes[];
  /** How long an id waits for its last tuple, from its first one on, in ms. Default: the namespace's ttlMs. */
  ttlMs?: number | undefined;
}

/** A row: a tuple of each source, in the order of {@link JoinOptions}.sources. */
export interface Joined {
  id: Buffer;
  tuples: Buffer[];
}

/** A row that was not complete in time: those tuples that arrived. */
export interface IncompleteJoin {
  id: Buffer;
  tuples: (Buffer | undefined)[];
}

const KNOWN = known('a join', { sources: true, ttlMs: true } satisfies Names<JoinOptions>);

/**
 * Joins tuples of several sources that have the same id; the tuples of an id wait in the entry NAME/ID of the client's
 * namespace.
 *
 *     const join = new Join(client, 'people', { sources: ['gender', 'age'] });
 *     await join.add('7', 'gender', 'female'); // Nothing yet.
 *     const row = await join.add('7', 'age', '42'); // Its tuples are female, 42.
 *
 * Guarantee: each id ends in exactly one of two ways. It is complete: the row is returned to exactly one call, the one
 * that added the last tuple. Or it has failed by time-out: one event has the tuples that arrived
 * ({@link Join.incomplete}). A tuple that arrives after the end starts a new row of the id, which fails alone.
 *
 * Errors: ALREADY_EXISTS (PART_EXISTS): this source has added another tuple for the id, which is kept. The same one
 * again is fine, and changes nothing. GATHER_MISMATCH: a join of this name has other sources.
 *
 * An add without an answer may have happened: add it again. If it completed the row, then the row was lost with the
 * response, and the repetition fails alone, by time-out; so an application that must not lose a row keeps its tuples
 * until the row is handled, as with an {@link Acker}.
 *
 * Cost: one round trip for a tuple, less in a pipeline; O(its size) and, for the last one, O(the row's). A waiting row
 * takes its tuples, the names of all sources, and about 40 B: use short names.
 */
export class Join {
  readonly #client: TimecacheClient;
  readonly #sources: readonly Buffer[];
  readonly #options: GatherOptions;
  /** What the keys of its rows begin with: for the `keyPrefix` of a watch. */
  readonly keyPrefix: Buffer;

  constructor(client: TimecacheClient, name: Bytes, options: JoinOptions) {
    checkOptions(options, KNOWN);
    this.#client = client;
    this.keyPrefix = prefixOf(name);
    this.#sources = options.sources.map((source) => toBuffer(source, 'sources'));
    this.#options = { expectedNames: this.#sources, ttlMs: options.ttlMs };
  }

  /** An id of several fields: two are equal only if all of their fields are. */
  static id(...fields: readonly Bytes[]): Buffer {
    // Each behind its length, so that ('a', 'bc') is not ('ab', 'c').
    const all = fields.map((field) => toBuffer(field, 'field'));
    return Buffer.concat(all.flatMap((field) => [Buffer.from(`${field.length}:`), field]));
  }

  /** Adds a tuple. The row, if this tuple completes it. */
  async add(id: Bytes, source: Bytes, tuple: Bytes): Promise<Joined | undefined> {
    const key = memberKey(this.keyPrefix, id);
    return this.#row(id, (await this.#client.gather(key, source, tuple, this.#options)).parts);
  }

  /** The same for execute or a pipeline. */
  operation(id: Bytes, source: Bytes, tuple: Bytes): Operation<Joined | undefined> {
    const gather = op.gather(memberKey(this.keyPrefix, id), source, tuple, this.#options);
    return { ...gather, read: (result) => this.#row(id, gather.read(result).parts) };
  }

  /**
   * The row whose failure this event of a watch or group reports; undefined for other keys. An eviction or rotation
   * fails a row, too.
   */
  incomplete(event: ExpiredEvent): IncompleteJoin | undefined {
    const id = memberOf(this.keyPrefix, event.key);
    if (event.cause === 'EXPIRING' || !event.parts || !id) return undefined;
    return { id, tuples: this.#sorted(event.parts) };
  }

  #row(id: Bytes, parts: GatheredParts | undefined): Joined | undefined {
    if (!parts) return undefined;
    return { id: toBuffer(id, 'id'), tuples: this.#sorted(parts).map((tuple) => tuple ?? Buffer.alloc(0)) };
  }

  /** In the order of the sources. */
  #sorted({ parts }: GatheredParts): (Buffer | undefined)[] {
    return this.#sources.map((source) => parts.find(({ name }) => name.equals(source))?.value);
  }
}
