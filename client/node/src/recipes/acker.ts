// Tracks whether all work derived from a message was done in time: Storm's acker.

import type { TimecacheClient } from '../client.js';
import { op, type Operation } from '../operations.js';
import { checkOptions, known, type Names } from '../options.js';
import type { CombineOptions } from '../types.js';
import type { Bytes } from '../values.js';
import type { ExpiredEvent } from '../watcher.js';
import { memberKey, memberOf, prefixOf, randomId } from './common.js';

/** How long trees may take. */
export interface AckerOptions {
  /** How long a tree may take, in ms: 1 to the namespace's maxTtlMs. Default: its ttlMs. */
  ttlMs?: number | undefined;
}

const KNOWN = known('an acker', { ttlMs: true } satisfies Names<AckerOptions>);

/**
 * In the number of a tree that is not tracked yet, or any more. A missing entry counts as this; track takes it away.
 */
const UNTRACKED = 1n;

/**
 * Tracks trees of tuples, each by its root's name: one number for a tree, in the entry NAME/ROOT of the client's
 * namespace, the xor of the ids of all tuples that were emitted or acknowledged, which is 0 when each has been both.
 * Tuples may be acknowledged in any order, also before track.
 *
 *     const acker = new Acker(client, 'acks');
 *     const first = Acker.newId();
 *     await acker.track('message-7', [first]); // The spout, when it emits.
 *     const a = Acker.newId();
 *     await acker.ack('message-7', first, [a]); // A bolt that emitted `a` for it.
 *     await acker.ack('message-7', a); // The last one: true, it is done.
 *
 * Guarantee: a tracked tree ends in one of three ways. It is done: true is returned to exactly one call. It has failed
 * by time-out: its entry expires, exactly once, at most a bucket width after its ttl ({@link Acker.failedRoot}). Or
 * fail has removed it. A lost or late acknowledgement fails its own tree, never another; an acknowledgement after the
 * end creates an entry without a tree, which failedRoot ignores. Ids are random: the probability that a tree counts as
 * done by chance is 2^-63.
 *
 * Calls without an answer:
 * - track may have happened: emit under a new root. The old one, if it is there, fails.
 * - ack may have happened: do not repeat it, since twice is not at all. The tree is done, though no caller received
 *   that, or fails. A root that was tracked, and whose failure has not been delivered when the watermark is beyond its
 *   time, is done.
 *
 * Cost: one round trip and O(1) for a call, less in a pipeline; about 40 B for a tree beside its name.
 */
export class Acker {
  readonly #client: TimecacheClient;
  readonly #options: CombineOptions;
  /** What the keys of its trees begin with: for the `keyPrefix` of a watch. */
  readonly keyPrefix: Buffer;

  constructor(client: TimecacheClient, name: Bytes, options: AckerOptions = {}) {
    checkOptions(options, KNOWN);
    this.#client = client;
    this.keyPrefix = prefixOf(name);
    this.#options = { initial: UNTRACKED, removeIfZero: true, ttlMs: options.ttlMs };
  }

  /** The id of a tuple: random, not 0, and even, because the lowest bit says whether a tree is tracked. */
  static newId(): bigint {
    for (;;) {
      const id = randomId() & ~UNTRACKED;
      if (id !== 0n) return id;
    }
  }

  /**
   * Begins a tree with the tuples that its source emits. True: all of them are acknowledged already. Call it once for
   * each root: do not reuse the name of a root for at least twice the ttl.
   */
  async track(root: Bytes, emitted: readonly bigint[]): Promise<boolean> {
    return this.#combine(root, UNTRACKED, emitted);
  }

  /** A tuple was processed; `emitted` are the tuples derived from it. True: the tree is now done. */
  async ack(root: Bytes, tuple: bigint, emitted: readonly bigint[] = []): Promise<boolean> {
    return this.#combine(root, tuple, emitted);
  }

  /** Gives up a tree. True: it existed, and no event follows. False: it is done, or has failed. */
  async fail(root: Bytes): Promise<boolean> {
    return (await this.#client.remove(memberKey(this.keyPrefix, root))).removed;
  }

  /** track for execute or a pipeline. */
  trackOperation(root: Bytes, emitted: readonly bigint[]): Operation<boolean> {
    return this.#operation(root, UNTRACKED, emitted);
  }

  /** ack for execute or a pipeline. */
  ackOperation(root: Bytes, tuple: bigint, emitted: readonly bigint[] = []): Operation<boolean> {
    return this.#operation(root, tuple, emitted);
  }

  /**
   * The root of the tree whose failure this event of a watch or group reports; undefined for other keys, and for
   * entries of late calls. An eviction or rotation fails a tree, too.
   */
  failedRoot(event: ExpiredEvent): Buffer | undefined {
    const text = event.value.toString('latin1');
    if (event.cause === 'EXPIRING' || !/^-?\d+$/.test(text) || (BigInt(text) & UNTRACKED) !== 0n) {
      return undefined;
    }
    return memberOf(this.keyPrefix, event.key);
  }

  async #combine(root: Bytes, first: bigint, more: readonly bigint[]): Promise<boolean> {
    const operand = { xor: xorOf(first, more) };
    return (await this.#client.combine(memberKey(this.keyPrefix, root), operand, this.#options)).removed;
  }

  #operation(root: Bytes, first: bigint, more: readonly bigint[]): Operation<boolean> {
    const operand = { xor: xorOf(first, more) };
    const combine = op.combine(memberKey(this.keyPrefix, root), operand, this.#options);
    return { ...combine, read: (result) => combine.read(result).removed };
  }
}

/** Signed, as the server takes it. */
function xorOf(first: bigint, more: readonly bigint[]): bigint {
  return BigInt.asIntN(
    64,
    more.reduce((sum, id) => sum ^ id, first),
  );
}
