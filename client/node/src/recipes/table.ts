// A set whose members expire.

import type { TimecacheClient } from '../client.js';
import { checkOptions, known, type Names } from '../options.js';
import type { Bytes } from '../values.js';
import { memberKey, memberOf, prefixOf } from './common.js';

/** How long members stay. */
export interface TableOptions {
  /** How long a member stays without being added again, in ms: 1 to the namespace's maxTtlMs. Default: its ttlMs. */
  ttlMs?: number | undefined;
}

const KNOWN = known('a table', { ttlMs: true } satisfies Names<TableOptions>);

/**
 * A set in the client's namespace: each member is an entry, NAME/MEMBER, so that no second entry needs updating. No
 * name of a table or other structure in a namespace may be another one's name followed by a '/'.
 *
 *     const online = new Table(client, 'online', { ttlMs: 60_000 });
 *     await online.add('alice');
 *     const who = await online.list();
 *
 * Guarantee: add, remove and contains of one member are atomic, from whatever client. list has each member that is in
 * the table during the whole of it exactly once, and others at most once. Members expire one by one, each with an event
 * ({@link Table.memberOf}).
 *
 * An add or remove without an answer may have happened. A repeated call has the same effect; only its result may be
 * wrong because the first attempt was applied.
 *
 * Cost: one round trip and O(1) for each call. list scans: O(entries of the namespace), so give a table whose listing
 * matters a namespace of its own.
 */
export class Table {
  readonly #client: TimecacheClient;
  readonly #ttlMs: number | undefined;
  /** What the keys of its members begin with: for the `keyPrefix` of a watch. */
  readonly keyPrefix: Buffer;

  constructor(client: TimecacheClient, name: Bytes, options: TableOptions = {}) {
    checkOptions(options, KNOWN);
    this.#client = client;
    this.#ttlMs = options.ttlMs;
    this.keyPrefix = prefixOf(name);
  }

  /** Adds a member, or renews its time to live. Whether it is new. */
  async add(member: Bytes): Promise<boolean> {
    const options = { ttlMs: this.#ttlMs, returnPrevious: true };
    return (await this.#client.put(memberKey(this.keyPrefix, member), '', options)).previous === undefined;
  }

  /** Removes a member, without an event. Whether it was in the table. */
  async remove(member: Bytes): Promise<boolean> {
    return (await this.#client.remove(memberKey(this.keyPrefix, member))).removed;
  }

  /** Whether a member is in the table. Never renews it. */
  async contains(member: Bytes): Promise<boolean> {
    return this.#client.contains(memberKey(this.keyPrefix, member));
  }

  /** All members, in bytewise order. */
  async list(): Promise<Buffer[]> {
    const members: Buffer[] = [];
    for await (const { key } of this.#client.scan({ keyPrefix: this.keyPrefix, keysOnly: true })) {
      members.push(key.subarray(this.keyPrefix.length));
    }
    return members.sort(Buffer.compare);
  }

  /** The member whose entry has this key, as that of an event; undefined: the key is not of this table. */
  memberOf(key: Bytes): Buffer | undefined {
    return memberOf(this.keyPrefix, key);
  }
}
