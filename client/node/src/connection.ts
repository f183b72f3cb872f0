// The connection to a server, and how calls go over it. Internal, but for the options.

import * as grpc from '@grpc/grpc-js';
import { TimecacheError, fromServiceError, isConnectionLost } from './errors.js';
import { Backoff, LATE, pause, withLimit } from './timing.js';

/** How one call is done. */
export interface CallOptions {
  /** Longest duration of the call with all its attempts, in ms. Default: the client's; Infinity: no limit. */
  timeoutMs?: number | undefined;
  /** Ends the call, which is then rejected with the signal's reason; what it did is unknown. */
  signal?: AbortSignal | undefined;
  /** Names the call in the server's log: 1 to 128 graphic ASCII characters. */
  requestId?: string | undefined;
  /** The W3C trace that the call belongs to, for the server's log. */
  traceparent?: string | undefined;
  /** More metadata. Keys that end with `-bin` have Buffers. */
  metadata?: Readonly<Record<string, string | Buffer>> | undefined;
  /** Repeat this call, too, as {@link RetryOptions} says, though it is not safe in general. */
  repeatable?: boolean | undefined;
}

/**
 * When a call that failed is tried again: only one that is safe to repeat, and only where its connection was lost
 * under way or the server is stopping. Always within the call's timeout.
 *
 * Safe are the calls that change nothing, and get and touch: done twice, they leave the same entry. Not so put,
 * remove, append, combine, gather, execute and settle: what failed may have been done. Watchers, workers and pipelines
 * have rules of their own.
 */
export interface RetryOptions {
  /** Attempts in all. Default 3; 1: none is repeated. */
  maxAttempts?: number;
  /** The first pause, in ms. Each is twice the one before, shortened at random by up to half. Default 50. */
  minPauseMs?: number;
  /** The longest pause, in ms. Default 1,000. */
  maxPauseMs?: number;
}

/** How a connection is secured. All are PEM; read the files with `fs.readFile`. */
export interface TlsOptions {
  /** Roots that the server's certificate must lead to. Default: Node's. */
  ca?: Buffer | string;
  /** The client's own certificate with its chain, for mutual TLS; with `key`. */
  cert?: Buffer | string;
  /** The private key of `cert`. */
  key?: Buffer | string;
  /** The name that the server's certificate must have. Default: the address's host. */
  serverName?: string;
}

/** What the calls of a client have in common. */
export interface ClientOptions {
  /** The namespace of all calls that name none. Default `default`. */
  namespace?: string;
  /** Longest duration of a call, in ms. Default 5,000. Scans, watches and backups have none. */
  timeoutMs?: number;
  /** Which calls are tried again, and how often. */
  retry?: RetryOptions;
  /** TLS; `true`: with Node's roots. Default: plain text. */
  tls?: boolean | TlsOptions;
  /** A bearer token, or what gives one for each call. Not sent in plain text to another machine. */
  token?: string | (() => string | Promise<string>);
  /** Send the token in plain text also to another machine: for a proxy that encrypts. */
  allowPlaintextToken?: boolean;
  /** Settings of gRPC's that take the place of the client's own. */
  channelOptions?: grpc.ChannelOptions;
}

/** Largest message taken: a value of 16 MiB with its key, or a list of the server's most namespaces. */
const MAX_MESSAGE_BYTES = 64 << 20;
/** What gRPC takes unless it is set otherwise: the least that a request may ask for. */
export const GRPC_MAX_MESSAGE_BYTES = 4 << 20;

/** How long a call waits for a connection. */
const CONNECT_PATIENCE_MS = 250;

const CHANNEL_OPTIONS: grpc.ChannelOptions = {
  'grpc.max_receive_message_length': MAX_MESSAGE_BYTES,
  // A server that is gone without a word is noticed after their sum, also by a watch that is silent for hours.
  'grpc.keepalive_time_ms': 30_000,
  'grpc.keepalive_timeout_ms': 10_000,
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 1_000,
  // Connections are not shared with other clients of the process.
  'grpc.use_local_subchannel_pool': 1,
};

function isLocal(address: string): boolean {
  return /^(unix:|localhost(:|$)|127\.\d+\.\d+\.\d+(:|$)|\[::1\](:|$))/.test(address);
}

function makeCredentials(tls: ClientOptions['tls']): grpc.ChannelCredentials {
  if (!tls) return grpc.credentials.createInsecure();
  const { ca, cert, key } = tls === true ? {} : tls;
  if ((cert === undefined) !== (key === undefined)) throw new TypeError('tls.cert and tls.key go together');
  const pem = (text: Buffer | string | undefined) => (text === undefined ? null : Buffer.from(text));
  return grpc.credentials.createSsl(pem(ca), pem(key), pem(cert));
}

type UnaryMethod<Request, Response> = grpc.MethodDefinition<Request, Response> & {
  requestStream: false;
  responseStream: false;
};
type ServerStreamMethod<Request, Response> = grpc.MethodDefinition<Request, Response> & {
  requestStream: false;
  responseStream: true;
};
type DuplexMethod<Request, Response> = grpc.MethodDefinition<Request, Response> & {
  requestStream: true;
  responseStream: true;
};

/** A channel with its credentials, shared by all clients that were made from one. */
export class Connection {
  readonly address: string;
  readonly timeoutMs: number;
  /** Largest message that the channel takes, as requests can say it. */
  readonly maxMessageBytes: number;
  readonly #client: grpc.Client;
  readonly #retry: Required<RetryOptions>;
  readonly #token: ClientOptions['token'];
  // While the server is away, one call a second waits for it, and the others fail at once.
  readonly #backoff = new Backoff(100, 1_000);
  #connecting: Promise<boolean> | undefined;
  #nextAttempt = 0;

  constructor(address: string, options: ClientOptions) {
    this.address = address;
    this.timeoutMs = options.timeoutMs ?? 5_000;
    this.#retry = { maxAttempts: 3, minPauseMs: 50, maxPauseMs: 1_000, ...options.retry };
    this.#token = options.token;
    if (options.token !== undefined && !options.tls && !options.allowPlaintextToken && !isLocal(address)) {
      throw new TypeError(`a token is not sent to ${address} in plain text: use tls, or allowPlaintextToken`);
    }
    const receiveMax = options.channelOptions?.['grpc.max_receive_message_length'] ?? MAX_MESSAGE_BYTES;
    this.maxMessageBytes = receiveMax < 0 ? MAX_MESSAGE_BYTES : Math.max(receiveMax, GRPC_MAX_MESSAGE_BYTES);
    const serverName = typeof options.tls === 'object' ? options.tls.serverName : undefined;
    this.#client = new grpc.Client(address, makeCredentials(options.tls), {
      ...CHANNEL_OPTIONS,
      ...(serverName === undefined ? {} : { 'grpc.ssl_target_name_override': serverName }),
      ...options.channelOptions,
    });
  }

  close(): void {
    this.#client.close();
  }

  /**
   * To be called before each call: connects if there is no connection, and waits for it for at most 250 ms, and not
   * beyond the deadline. Returns whether there is one; without, the call itself says why.
   */
  async connect(deadline = Infinity): Promise<boolean> {
    const channel = this.#client.getChannel();
    if (channel.getConnectivityState(true) === grpc.connectivityState.READY) return true;
    if (!this.#connecting) {
      if (Date.now() < this.#nextAttempt) return false;
      this.#connecting = new Promise<boolean>((resolve) => {
        this.#client.waitForReady(Date.now() + CONNECT_PATIENCE_MS, (error) => {
          this.#connecting = undefined;
          if (error) this.#nextAttempt = Date.now() + this.#backoff.next();
          else this.#backoff.reset();
          resolve(!error);
        });
      });
    }
    return (await withLimit(this.#connecting, deadline - Date.now())) === true;
  }

  /** Does the attempts of a call. */
  async unary<Request, Response>(
    method: UnaryMethod<Request, Response>,
    request: Request,
    call: CallOptions,
    isSafe: boolean,
  ): Promise<Response> {
    const { signal } = call;
    signal?.throwIfAborted();
    const deadline = Date.now() + (call.timeoutMs ?? this.timeoutMs);
    const attempts = isSafe || call.repeatable ? this.#retry.maxAttempts : 1;
    const backoff = new Backoff(this.#retry.minPauseMs, this.#retry.maxPauseMs);
    for (let attempt = 1; ; ++attempt) {
      const connected = await this.connect(deadline);
      try {
        return await this.#attempt(method, request, await this.#metadata(call), deadline, signal);
      } catch (error) {
        signal?.throwIfAborted();
        if (!connected || attempt >= attempts || !isConnectionLost(error)) throw error;
        const ms = backoff.next();
        if (Date.now() + ms >= deadline) throw error;
        await pause(ms, signal);
      }
    }
  }

  #attempt<Request, Response>(
    method: UnaryMethod<Request, Response>,
    request: Request,
    metadata: grpc.Metadata,
    deadline: number,
    signal: AbortSignal | undefined,
  ): Promise<Response> {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const cancel = () => call.cancel();
      const call = this.#client.makeUnaryRequest(
        method.path,
        method.requestSerialize,
        method.responseDeserialize,
        request,
        metadata,
        { deadline },
        (error, response) => {
          signal?.removeEventListener('abort', cancel);
          if (error) reject(fromServiceError(error));
          else resolve(response as Response);
        },
      );
      signal?.addEventListener('abort', cancel, { once: true });
    });
  }

  /** Begins a call whose answers are a stream. Not repeated. */
  async serverStream<Request, Response>(
    method: ServerStreamMethod<Request, Response>,
    request: Request,
    call: CallOptions = {},
  ): Promise<MessageStream<Response>> {
    const deadline = Date.now() + (call.timeoutMs ?? Infinity);
    const { signal } = call;
    signal?.throwIfAborted();
    await this.connect(deadline);
    const metadata = await this.#metadata(call);
    signal?.throwIfAborted();
    const stream = this.#client.makeServerStreamRequest(
      method.path,
      method.requestSerialize,
      method.responseDeserialize,
      request,
      metadata,
      { deadline },
    );
    return new MessageStream(stream, signal);
  }

  /** Begins a call of two streams. */
  async duplex<Request, Response>(
    method: DuplexMethod<Request, Response>,
    call: CallOptions,
  ): Promise<grpc.ClientDuplexStream<Request, Response>> {
    await this.connect();
    const { requestSerialize, responseDeserialize } = method;
    const metadata = await this.#metadata(call);
    return this.#client.makeBidiStreamRequest(method.path, requestSerialize, responseDeserialize, metadata);
  }

  async #metadata(call: CallOptions): Promise<grpc.Metadata> {
    const metadata = new grpc.Metadata();
    for (const [key, value] of Object.entries(call.metadata ?? {})) metadata.set(key, value);
    if (call.requestId !== undefined) metadata.set('x-request-id', call.requestId);
    if (call.traceparent !== undefined) metadata.set('traceparent', call.traceparent);
    if (this.#token !== undefined) {
      const token = typeof this.#token === 'string' ? this.#token : await this.#token();
      metadata.set('authorization', `Bearer ${token}`);
    }
    return metadata;
  }
}

/** The answers of a call, one by one. gRPC reads up to 16 of them ahead. */
export class MessageStream<T> {
  readonly #stream: grpc.ClientReadableStream<T>;
  readonly #iterator: AsyncIterator<T>;
  readonly #signal: AbortSignal | undefined;
  readonly #cancel = () => this.#stream.cancel();

  constructor(stream: grpc.ClientReadableStream<T>, signal?: AbortSignal) {
    this.#stream = stream;
    this.#signal = signal;
    this.#iterator = stream[Symbol.asyncIterator]();
    stream.on('error', () => {}); // It reaches who reads, or nobody.
    signal?.addEventListener('abort', this.#cancel, { once: true });
  }

  /**
   * The next one; undefined at the end. Ends with UNAVAILABLE if nothing comes for `silenceMs`, and with the signal's
   * reason if it aborts.
   */
  async next(silenceMs = Infinity): Promise<T | undefined> {
    try {
      const next = this.#iterator.next();
      const result = silenceMs === Infinity ? await next : await withLimit(next, silenceMs);
      if (result === LATE)
        throw new TimecacheError('UNAVAILABLE', `the server was silent for ${silenceMs} ms`);
      this.#signal?.throwIfAborted();
      return result.done ? undefined : result.value;
    } catch (error) {
      this.#signal?.throwIfAborted();
      throw error instanceof Error && 'code' in error && 'details' in error
        ? fromServiceError(error as grpc.ServiceError)
        : error;
    }
  }

  cancel(): void {
    this.#signal?.removeEventListener('abort', this.#cancel);
    this.#stream.cancel();
  }
}
