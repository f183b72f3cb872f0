// The servers that a client may call, and the one that it calls now. Internal.

import * as grpc from '@grpc/grpc-js';
import { TimecacheError, isConnectionLost } from './errors.js';
import { Backoff, pause, withLimit } from './timing.js';

/** Most addresses of a client. */
export const MAX_ADDRESSES = 16;
/** Most owners that servers named and the caller did not: later ones are not called. */
const MAX_OTHERS = 16;

/** How long a call waits for a connection; */
const CONNECT_PATIENCE_MS = 250;
/** for one to one of several addresses; and, once it was refused, for another attempt. */
const ANSWER_PATIENCE_MS = 1_000;
const REFUSED_PATIENCE_MS = 20;

/** One address, or several: a list, or separated by commas. TypeError: one is none. */
export function splitAddresses(address: string | readonly string[]): string[] {
  const addresses =
    typeof address !== 'string'
      ? [...address]
      : address.includes(',')
        ? address.split(',').map((each) => each.trim())
        : [address];
  if (addresses.length < 1 || addresses.length > MAX_ADDRESSES) {
    throw new TypeError(`${addresses.length} addresses: 1 to ${MAX_ADDRESSES} are allowed`);
  }
  for (const each of addresses) checkAddress(each);
  return addresses;
}

// gRPC would take a port that is not there for 443, and any text for a name that may be found later.
function checkAddress(address: string): void {
  const isTarget = /^(unix|unix-abstract|dns|ipv4|ipv6|xds):/.test(address);
  if (!isTarget && !/^[^/]+:\d{1,5}$/.test(address)) {
    throw new TypeError(`an address is host:port or unix:/path, not ${JSON.stringify(address)}`);
  }
}

/** A channel to one server. */
export class Endpoint {
  // While the server is away, one call a second waits for it, and the others fail at once.
  readonly #backoff = new Backoff(100, 1_000);
  #connecting: Promise<boolean> | undefined;
  #nextAttempt = 0;
  #isWatched = false;
  #losses = 0;

  constructor(
    readonly address: string,
    readonly client: grpc.Client,
  ) {}

  /**
   * Connects if there is no connection, and waits for it for at most 250 ms, and not beyond the deadline. Returns
   * whether there is one; without, the call itself says why. `isOneOfSeveral`: fails with UNAVAILABLE where the call
   * would wait for an answer to its connection attempt.
   */
  async connect(
    deadline: number,
    signal: AbortSignal | undefined,
    isOneOfSeveral: boolean,
  ): Promise<boolean> {
    if (this.#isReady()) return true;
    if (!this.#connecting) {
      if (Date.now() < this.#nextAttempt) return this.#noConnection(isOneOfSeveral);
      this.#connecting = this.#wait(isOneOfSeveral);
    }
    const isConnected = await withLimit(this.#connecting, deadline - Date.now(), signal);
    return isConnected === true || this.#noConnection(isOneOfSeveral);
  }

  #isReady(): boolean {
    return this.client.getChannel().getConnectivityState(true) === grpc.connectivityState.READY;
  }

  /** How often the connection was lost, or closed to new streams, since this was asked for first. */
  get losses(): number {
    if (!this.#isWatched && this.#isReady()) {
      this.#isWatched = true;
      this.client.getChannel().watchConnectivityState(grpc.connectivityState.READY, Infinity, () => {
        this.#isWatched = false;
        ++this.#losses;
      });
    }
    return this.#losses;
  }

  async #wait(isOneOfSeveral: boolean): Promise<boolean> {
    const isConnected = isOneOfSeveral
      ? await this.#waitForOneOfSeveral()
      : await new Promise<boolean>((resolve) =>
          this.client.waitForReady(Date.now() + CONNECT_PATIENCE_MS, (error) => resolve(!error)),
        );
    this.#connecting = undefined;
    if (isConnected) this.#backoff.reset();
    else this.#nextAttempt = Date.now() + this.#backoff.next();
    return isConnected;
  }

  async #waitForOneOfSeveral(): Promise<boolean> {
    const channel = this.client.getChannel();
    let end = Date.now() + ANSWER_PATIENCE_MS;
    for (;;) {
      const state = channel.getConnectivityState(true);
      if (this.#isRefused()) end = Math.min(end, Date.now() + REFUSED_PATIENCE_MS);
      if (state === grpc.connectivityState.READY || state === grpc.connectivityState.SHUTDOWN) {
        return state === grpc.connectivityState.READY;
      }
      const isLate = await new Promise<boolean>((resolve) =>
        channel.watchConnectivityState(state, end, (error) => resolve(error !== undefined)),
      );
      if (isLate) return false;
    }
  }

  #isRefused(): boolean {
    const state = this.client.getChannel().getConnectivityState(false);
    return state === grpc.connectivityState.TRANSIENT_FAILURE || state === grpc.connectivityState.SHUTDOWN;
  }

  #noConnection(isOneOfSeveral: boolean): false {
    if (isOneOfSeveral && !this.#isRefused()) {
      throw new Unreached('UNAVAILABLE', `No connection established to ${this.address}`);
    }
    return false;
  }
}

/** A call was not sent, as there was no connection. */
class Unreached extends TimecacheError {}

/** When a call, or the start of a stream, is tried at another address. */
export class Failover {
  readonly #backoff = new Backoff(20, 100);
  #unreached = 0; // Addresses, one after the other.

  constructor(private readonly addresses: number) {}

  /**
   * Waits, and says whether there is another attempt. `isLost`: another address may not have the error, and nothing was
   * done.
   */
  async again(
    error: unknown,
    isLost: boolean,
    deadline: number,
    signal: AbortSignal | undefined,
  ): Promise<boolean> {
    if (!(error instanceof TimecacheError)) return false;
    if (error.reason === 'NOT_OWNER') {
      this.#unreached = 0;
      const ms = this.#backoff.next();
      if (Date.now() + ms >= deadline) return false;
      await pause(ms, signal);
      return true;
    }
    return (isLost || error instanceof Unreached) && ++this.#unreached < this.addresses;
  }
}

/** All endpoints of a client. They are made when they are first needed, and closed together. */
export class Endpoints {
  readonly #addresses: readonly string[];
  readonly #make: (address: string) => Endpoint;
  readonly #endpoints = new Map<string, Endpoint>();
  #index = 0; // Of the address that was current last.
  #current: Endpoint;

  /** `make` throws for an address that is not to be called. */
  constructor(addresses: readonly string[], make: (address: string) => Endpoint) {
    this.#addresses = addresses;
    this.#make = make;
    this.#current = make(addresses[0]!);
    this.#endpoints.set(addresses[0]!, this.#current);
  }

  /** How many addresses the caller gave. */
  get size(): number {
    return this.#addresses.length;
  }

  /** Where calls go. */
  get current(): Endpoint {
    return this.#current;
  }

  close(): void {
    for (const { client } of this.#endpoints.values()) client.close();
  }

  /**
   * After a call or stream there has failed: makes the owner that the error names current, or the next address, if
   * another may do better. A node that did not answer in time may hang; if it does not, the next one names it.
   */
  moveOn(from: Endpoint, error: unknown): void {
    if (!(error instanceof TimecacheError) || this.#current !== from) return;
    const hangs = this.size > 1 && error.code === 'DEADLINE_EXCEEDED';
    if (!hangs && !isConnectionLost(error)) return;
    const { reason, metadata } = error;
    let next = reason === 'NOT_OWNER' ? this.#owner(metadata['owner_address'] ?? '') : undefined;
    if (next === from) next = undefined;
    for (let i = 0; i < this.size && !next; ++i) {
      this.#index = (this.#index + 1) % this.size;
      next = this.#at(this.#addresses[this.#index]!);
    }
    this.#current = next ?? from;
  }

  #owner(address: string): Endpoint | undefined {
    const index = this.#addresses.indexOf(address);
    if (index >= 0) this.#index = index;
    else if (!this.#endpoints.has(address) && this.#endpoints.size >= this.size + MAX_OTHERS)
      return undefined;
    return this.#at(address);
  }

  #at(address: string): Endpoint | undefined {
    const known = this.#endpoints.get(address);
    if (known) return known;
    try {
      checkAddress(address);
      const made = this.#make(address);
      this.#endpoints.set(address, made);
      return made;
    } catch {
      return undefined;
    }
  }
}
