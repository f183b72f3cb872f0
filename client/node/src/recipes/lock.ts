// A lock that processes compete for: a lease with a fencing token.

import { randomBytes } from 'node:crypto';
import type { TimecacheClient } from '../client.js';
import { TimecacheError } from '../errors.js';
import { checkOptions, known, type Names } from '../options.js';
import { LATE, timerMs, withLimit } from '../timing.js';
import { toBuffer, type Bytes } from '../values.js';
import { isPreconditionFailed } from './common.js';

/** How a lock is held. */
export interface LockOptions {
  /**
   * Duration of a lease that is not renewed, in ms: 1 to the namespace's maxTtlMs. Another owner gets the lock at most
   * a bucket width of the namespace later. Default 10,000.
   */
  ttlMs?: number | undefined;
  /** This owner's name, for people who read the entry: at most some 100 B. */
  owner?: string | undefined;
  /**
   * Acquire tries at least this often while it waits, in ms, for a lock that ended without an event: removed by hand,
   * or with its namespace. Default 5,000.
   */
  recheckMs?: number | undefined;
  /**
   * Called once for each lease that ends without release: as soon as a call finds it another's, and at the latest when
   * `remainingMs` is over. The lease is then given up: renew is false. Stop the work that the lock protects.
   */
  onLost?: (() => void) | undefined;
}

/** How long acquire waits. */
export interface AcquireOptions {
  /** In ms. Default: no limit. */
  timeoutMs?: number | undefined;
  /** Ends the wait, which then rejects with the signal's reason. A call under way may take the lock all the same. */
  signal?: AbortSignal | undefined;
}

const LOCK_OPTIONS: Names<LockOptions> = { ttlMs: true, owner: true, recheckMs: true, onLost: true };
const KNOWN = {
  lock: known('a lock', LOCK_OPTIONS),
  acquire: known('acquire', { timeoutMs: true, signal: true } satisfies Names<AcquireOptions>),
};

/** The value of a lock that was released. */
const FREE = '';
const SHORTEST_TTL_MS = 1;
/** A lock that changes hands this often while it is asked for is taken. */
const MAX_TRIES = 4;

/** From its acquisition until it is released or lost. */
interface Lease {
  readonly token: number;
  /** By performance.now(). */
  safeUntil: number;
  /** Until it is lost or to be released, where that is reported. */
  timer?: NodeJS.Timeout;
}

/**
 * One contender for a lock, which is an entry of the client's namespace.
 *
 *     const lock = new Lock(client, 'lock/report', { onLost: () => work.abort() });
 *     const token = await lock.acquire({ timeoutMs: 30_000 });
 *     if (token !== undefined) {
 *       await storage.write(report, { fencingToken: token });
 *       await lock.release();
 *     }
 *
 * Guarantee: of two owners, the later one has the larger token. A lease is not mutual exclusion by itself: an owner
 * that is suspended beyond its time to live notices too late, `onLost` or not. What the lock protects must remember the
 * largest token that it has seen, and refuse smaller ones; then only the last owner acts on it. Holds over restarts in
 * a durable namespace; in another one a restart frees the lock, and tokens still grow.
 *
 * Calls without an answer (UNAVAILABLE, DEADLINE_EXCEEDED, CANCELLED, without a `reason`):
 * - An acquisition may have happened. The next tryAcquire of the same Lock finds its own mark in the entry and takes it
 *   over; without one the lock is free after at most `ttlMs`.
 * - A renewal may have happened: the lease lasts at least until `remainingMs` is over. Renew again.
 * - A release may have happened: release again, which is safe. Its loss is not reported any more.
 *
 * Cost: one round trip to acquire a lock that is free, three for one that was just released, two to find it taken; one
 * to renew and to release. A waiter has one watch, and tries when the lock expires. A release writes an empty value
 * that lives 1 ms: the lock is free at once for the next attempt, and waiters receive the expiry at most a bucket width
 * later. So give locks a namespace with narrow buckets (ttl 10 s, 101 buckets: 0.1 s). It must not be `sliding`: reads
 * would renew leases. Waiters are not ordered.
 *
 * Each contender has a Lock of its own, and makes one call of it at a time.
 */
export class Lock {
  readonly #client: TimecacheClient;
  readonly #key: Buffer;
  readonly #ttlMs: number;
  readonly #recheckMs: number;
  readonly #onLost: (() => void) | undefined;
  /** The value of the entry while this Lock has it: no other Lock writes it. */
  readonly #mark: Buffer;
  #lease: Lease | undefined;

  constructor(client: TimecacheClient, key: Bytes, options: LockOptions = {}) {
    checkOptions(options, KNOWN.lock);
    this.#client = client;
    this.#key = toBuffer(key, 'key');
    this.#ttlMs = options.ttlMs ?? 10_000;
    this.#recheckMs = options.recheckMs ?? 5_000;
    this.#onLost = options.onLost;
    this.#mark = Buffer.from(`${options.owner ? `${options.owner} ` : ''}${randomBytes(16).toString('hex')}`);
  }

  /** The lease's fencing token, as last known here. */
  get token(): number | undefined {
    return this.#lease?.token;
  }

  /**
   * How long the lease lasts for certain, in ms, on this machine's clock; 0 when it may be over. Counts from before the
   * last successful call was sent.
   */
  get remainingMs(): number {
    return this.#lease ? Math.max(0, this.#lease.safeUntil - performance.now()) : 0;
  }

  /** The fencing token, or undefined: another owner has the lock. Renews a lease that this Lock has. */
  async tryAcquire(): Promise<number | undefined> {
    for (let i = 0; i < MAX_TRIES; ++i) {
      let token = await this.#put(undefined);
      if (token !== undefined) return token;
      const entry = await this.#client.get(this.#key);
      if (!entry) continue;
      if (entry.value.equals(this.#mark)) token = await this.#takeOver(entry.version);
      else if (entry.value.length === FREE.length) token = await this.#put(entry.version);
      else break;
      if (token !== undefined) return token;
    }
    if (this.#lease) this.#lose(this.#lease);
    return undefined;
  }

  /** The same, but waits for the lock: undefined if that takes longer than `timeoutMs`. */
  async acquire(options: AcquireOptions = {}): Promise<number | undefined> {
    checkOptions(options, KNOWN.acquire);
    const { timeoutMs = Infinity, signal } = options;
    const giveUpAt = performance.now() + timeoutMs;
    signal?.throwIfAborted();
    const token = await this.tryAcquire();
    if (token !== undefined || timeoutMs <= 0) return token;
    const watcher = this.#client.watch({ keyPrefix: this.#key, keysOnly: true });
    try {
      // A lock that ends before the watch is established has no event: so its first batch is a reason to try.
      let stands = false;
      let recheckAt = performance.now() + this.#recheckMs;
      let next = watcher.next();
      for (;;) {
        const now = performance.now();
        if (now >= giveUpAt) return undefined;
        const result = await withLimit(next, Math.min(giveUpAt, recheckAt) - now, signal);
        let mayBeFree = performance.now() >= recheckAt;
        if (result !== LATE) {
          const batch = result.value;
          if (!batch) throw new TimecacheError('CANCELLED', 'the watch for the lock has ended');
          mayBeFree ||= !stands || batch.lost > 0 || batch.logChanged;
          mayBeFree ||= batch.events.some(({ key }) => key.equals(this.#key));
          stands = true;
          next = watcher.next();
          next.catch(() => {}); // Where the lock comes first.
        }
        if (!mayBeFree) continue;
        const token = await this.tryAcquire();
        if (token !== undefined) return token;
        recheckAt = performance.now() + this.#recheckMs;
      }
    } finally {
      watcher.close();
    }
  }

  /**
   * Renews the lease's time to live; its token does not change. False: the lease is not held, or was lost; stop the
   * work that the lock protects.
   */
  async renew(): Promise<boolean> {
    const lease = this.#lease;
    if (!lease) return false;
    const sentAt = performance.now();
    if (!(await this.#touch(lease.token))) this.#lose(lease);
    if (this.#lease !== lease) return false; // Perhaps since its time was over before the answer came.
    lease.safeUntil = sentAt + this.#ttlMs;
    return true;
  }

  /** Frees the lock, if this owner still has it. False: it did not. */
  async release(): Promise<boolean> {
    const lease = this.#lease;
    if (!lease) return false;
    clearTimeout(lease.timer);
    delete lease.timer; // From here on its loss is none.
    let released = true;
    try {
      await this.#client.put(this.#key, FREE, { ttlMs: SHORTEST_TTL_MS, ifVersion: lease.token });
    } catch (error) {
      if (!isPreconditionFailed(error)) throw error;
      released = false;
    }
    if (this.#lease === lease) this.#lease = undefined;
    return released;
  }

  /** undefined: the key is there, or not with this version. */
  async #put(ifVersion: number | undefined): Promise<number | undefined> {
    const sentAt = performance.now();
    const condition = ifVersion === undefined ? { ifAbsent: true } : { ifVersion };
    try {
      const { version } = await this.#client.put(this.#key, this.#mark, { ttlMs: this.#ttlMs, ...condition });
      return this.#own(version, sentAt);
    } catch (error) {
      if (isPreconditionFailed(error)) return undefined;
      throw error;
    }
  }

  /** Of an entry with this Lock's mark: of its lease, or of an acquisition without an answer. */
  async #takeOver(version: number): Promise<number | undefined> {
    const sentAt = performance.now();
    // A renewal, which says from when on its time counts.
    return (await this.#touch(version)) ? this.#own(version, sentAt) : undefined;
  }

  async #touch(ifVersion: number): Promise<boolean> {
    try {
      await this.#client.touch(this.#key, { ifVersion });
      return true;
    } catch (error) {
      if (isPreconditionFailed(error)) return false;
      throw error;
    }
  }

  #own(token: number, sentAt: number): number {
    if (this.#lease && this.#lease.token !== token) this.#lose(this.#lease);
    const lease = (this.#lease ??= { token, safeUntil: 0 });
    lease.safeUntil = sentAt + this.#ttlMs;
    if (this.#onLost && !lease.timer) this.#await(lease);
    return token;
  }

  #await(lease: Lease): void {
    const leftMs = Math.max(0, lease.safeUntil - performance.now());
    const check = () => (performance.now() < lease.safeUntil ? this.#await(lease) : this.#lose(lease));
    lease.timer = setTimeout(check, timerMs(Math.ceil(leftMs))).unref();
  }

  #lose(lease: Lease): void {
    if (this.#lease !== lease) return;
    this.#lease = undefined;
    if (!lease.timer) return; // Nothing is reported, or it is being released.
    clearTimeout(lease.timer);
    delete lease.timer;
    if (this.#onLost) queueMicrotask(this.#onLost);
  }
}
