// The answers of a call, one by one. Internal.

import type { ClientReadableStream } from '@grpc/grpc-js';
import type { Endpoint } from './endpoints.js';
import { TimecacheError } from './errors.js';
import { LATE, withLimit } from './timing.js';

/** A stream that stands, and where. */
export interface OpenStream<T> {
  readonly stream: ClientReadableStream<T>;
  readonly endpoint: Endpoint;
  /** The header with the client's token that it was sent with. */
  readonly authorization: unknown;
}

/** The answers of a call, one by one. gRPC reads up to 16 of them ahead. */
export class MessageStream<T> {
  readonly #open: () => Promise<OpenStream<T>>;
  readonly #fails: (endpoint: Endpoint, error: unknown, isBegun: boolean) => Promise<void>;
  readonly #signal: AbortSignal | undefined;
  readonly #cancel = () => this.#current.stream.cancel();
  #current!: OpenStream<T>;
  #iterator!: AsyncIterator<T>;
  #isBegun = false;

  /** `fails` is told of the stream's end, and throws unless it is to be opened again. */
  constructor(
    first: OpenStream<T>,
    open: () => Promise<OpenStream<T>>,
    fails: (endpoint: Endpoint, error: unknown, isBegun: boolean) => Promise<void>,
    signal?: AbortSignal,
  ) {
    this.#open = open;
    this.#fails = fails;
    this.#signal = signal;
    this.#take(first);
    signal?.addEventListener('abort', this.#cancel, { once: true });
  }

  #take(open: OpenStream<T>): void {
    this.#current = open;
    this.#iterator = open.stream[Symbol.asyncIterator]();
    open.stream.on('error', () => {}); // It reaches who reads, or nobody.
  }

  /** The header with the client's token that the call was sent with. */
  get authorization(): unknown {
    return this.#current.authorization;
  }

  /**
   * The next one; undefined at the end. Ends with UNAVAILABLE if nothing comes for `silenceMs`, and with the signal's
   * reason if it aborts.
   */
  async next(silenceMs = Infinity): Promise<T | undefined> {
    for (;;) {
      try {
        const next = this.#iterator.next();
        const result = silenceMs === Infinity ? await next : await withLimit(next, silenceMs);
        if (result === LATE)
          throw new TimecacheError('UNAVAILABLE', `the server was silent for ${silenceMs} ms`);
        this.#signal?.throwIfAborted();
        this.#isBegun = true;
        return result.done ? undefined : result.value;
      } catch (error) {
        this.#signal?.throwIfAborted();
        await this.#fails(this.#current.endpoint, error, this.#isBegun);
      }
      this.#current.stream.cancel();
      this.#take(await this.#open());
    }
  }

  cancel(): void {
    this.#signal?.removeEventListener('abort', this.#cancel);
    this.#current.stream.cancel();
  }
}
