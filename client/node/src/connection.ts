// The connection to a server, and how calls go over it. Internal, but for the options.

import * as grpc from '@grpc/grpc-js';
import { Calls } from './calls.js';
import { isLocal, makeCredentials, type TlsOptions } from './credentials.js';
import { Endpoint, Endpoints, Failover, splitAddresses } from './endpoints.js';
import { TimecacheError, fromServiceError, isConnectionLost, isUnsent, withDetails } from './errors.js';
import { MessageStream, type OpenStream } from './message_stream.js';
import { checkOptions, known, type Names } from './options.js';
import { Settles } from './settles.js';
import { Backoff, LATE, pause, withLimit } from './timing.js';
import { NO_CALL, UNTRACED, beginCall, stamped, type CallSpan } from './tracing.js';

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
  /** As of the client. Entries keep `traceparent` if that is given, else the trace of the call. */
  traceEntries?: boolean | undefined;
  /** As of the client: of calls that are one operation, and of settle. */
  batching?: boolean | undefined;
}

/**
 * When a call that failed is tried again: only one that is safe to repeat, and only where its connection was lost
 * under way or the server is stopping. Always within the call's timeout.
 *
 * Safe are the calls that change nothing, and get and touch: done twice, they leave the same entry; and changes with an
 * idempotencyId. Not so put, remove, append, combine, gather, settle and fetchExpired: what failed may have been done.
 * What shares a stream (`batching`) is repeated as if it were alone, before what was not sent: order is kept.
 * Execute, and what a pipeline has in flight, is repeated if all its operations are safe; a read among them then sees
 * what later ones have done. Watchers and workers have rules of their own.
 */
export interface RetryOptions {
  /** Attempts in all. Default 3; 1: none is repeated. */
  maxAttempts?: number;
  /** The first pause, in ms. Each is twice the one before, shortened at random by up to half. Default 50. */
  minPauseMs?: number;
  /** The longest pause, in ms. Default 1,000. */
  maxPauseMs?: number;
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
  /**
   * A bearer token, or what gives one for each call, and for each stream that calls share: where it fails, or takes
   * longer than `timeoutMs`, the call fails with UNAVAILABLE. It is asked once more when the server refuses a watch, which goes on if it now gives another
   * token. Not sent in plain text to another machine.
   */
  token?: string | (() => string | Promise<string>);
  /** Send the token in plain text also to another machine: for a proxy that encrypts. */
  allowPlaintextToken?: boolean;
  /**
   * An entry that a put, append, combine or gather makes keeps the trace of the call, if that is sampled: its event then
   * has the `traceparent`, to which the span of a worker's handler is linked. 27 B more of each such entry. Default false.
   */
  traceEntries?: boolean;
  /**
   * Puts, gets, removes, contains, touches, appends, combines and gathers of the same time go together, on a stream for
   * each namespace, in the order in which they were called: a fraction of the cost of as many RPCs. A call goes at once
   * where fewer than two requests are under way, else with the next one; no timer delays it. Its result, error, timeout,
   * signal, request id and trace are its own. One with more than 64 KiB or with `metadata` goes alone, as all do to a
   * server that has no such streams. As many calls wait as are made. Settles of one group without options of their own
   * go together likewise, by an RPC. False: each call is an RPC. Default true.
   */
  batching?: boolean;
  /** Settings of gRPC's that take the place of the client's own. */
  channelOptions?: grpc.ChannelOptions;
}

/** The names of {@link CallOptions}, for the calls that take more than these. */
export const CALL_OPTIONS: Names<CallOptions> = {
  timeoutMs: true,
  signal: true,
  requestId: true,
  traceparent: true,
  metadata: true,
  repeatable: true,
  traceEntries: true,
  batching: true,
};

const CLIENT_OPTIONS: Names<ClientOptions> = {
  namespace: true,
  timeoutMs: true,
  retry: true,
  tls: true,
  token: true,
  allowPlaintextToken: true,
  traceEntries: true,
  batching: true,
  channelOptions: true,
};

const RETRY_OPTIONS: Names<RetryOptions> = { maxAttempts: true, minPauseMs: true, maxPauseMs: true };

const KNOWN_CLIENT = known('a client', CLIENT_OPTIONS);
const KNOWN_RETRY = known('retry', RETRY_OPTIONS);

/** Largest message taken: a value of 16 MiB with its key, or a list of the server's most namespaces. */
const MAX_MESSAGE_BYTES = 64 << 20;
/** What gRPC takes unless it is set otherwise: the least that a request may ask for. */
export const GRPC_MAX_MESSAGE_BYTES = 4 << 20;

const CLUSTER_SILENCE_MS = 10_000;

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

export type UnaryMethod<Request, Response> = grpc.MethodDefinition<Request, Response> & {
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

/** Channels with their credentials, one for each address, shared by all clients that were made from one. */
export class Connection {
  readonly timeoutMs: number;
  /** Largest message that the channel takes, as requests can say it. */
  readonly maxMessageBytes: number;
  /** Whether entries keep the trace of their call. */
  readonly traceEntries: boolean;
  readonly calls: Calls;
  readonly settles: Settles;
  readonly #endpoints: Endpoints;
  readonly #retry: Required<RetryOptions>;
  readonly #token: ClientOptions['token'];
  // What is under way.
  readonly #calls = new Set<{ cancel(): void }>();
  #tokensAwaited = 0;
  #isClosed = false;

  constructor(address: string | readonly string[], options: ClientOptions) {
    checkOptions(options, KNOWN_CLIENT);
    checkOptions(options.retry, KNOWN_RETRY);
    const addresses = splitAddresses(address);
    this.timeoutMs = checkTimeout(options.timeoutMs ?? 5_000);
    const { maxAttempts = 3, minPauseMs = 50, maxPauseMs = 1_000 } = options.retry ?? {};
    this.#retry = { maxAttempts, minPauseMs, maxPauseMs };
    this.#token = options.token;
    this.traceEntries = options.traceEntries ?? false;
    const { batching = true } = options;
    this.calls = new Calls(this, batching);
    this.settles = new Settles(this, batching);
    for (const each of addresses) checkTokenTo(each, options);
    const receiveMax = options.channelOptions?.['grpc.max_receive_message_length'] ?? MAX_MESSAGE_BYTES;
    this.maxMessageBytes = receiveMax < 0 ? MAX_MESSAGE_BYTES : Math.max(receiveMax, GRPC_MAX_MESSAGE_BYTES);
    const credentials = makeCredentials(options.tls);
    const serverName = typeof options.tls === 'object' ? options.tls.serverName : undefined;
    this.#endpoints = new Endpoints(addresses, (address) => {
      checkTokenTo(address, options);
      const client = new grpc.Client(address, credentials, {
        ...CHANNEL_OPTIONS,
        ...(serverName === undefined ? {} : { 'grpc.ssl_target_name_override': serverName }),
        // What is for this machine, as a token in plain text, does not leave it by a proxy that the environment names.
        ...(isLocal(address) ? { 'grpc.enable_http_proxy': 0 } : {}),
        ...options.channelOptions,
      });
      return new Endpoint(address, client);
    });
  }

  /** Where calls go now. */
  get address(): string {
    return this.#endpoints.current.address;
  }

  /** Ends all that is under way. It fails with CANCELLED, as does what comes later. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.calls.close(new TimecacheError('CANCELLED', 'the client is closed'));
    // gRPC would let streams live on.
    for (const call of this.#calls) call.cancel();
    this.#endpoints.close();
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  async #connect(endpoint: Endpoint, deadline: number, signal: AbortSignal | undefined): Promise<boolean> {
    this.#checkOpen();
    const isConnected = await endpoint.connect(deadline, signal, this.#endpoints.size > 1);
    this.#checkOpen();
    return isConnected;
  }

  /** After a call or stream there has failed: the next may go elsewhere. */
  moveOn(from: Endpoint, error: unknown): void {
    if (!this.#isClosed) this.#endpoints.moveOn(from, error);
  }

  /** How long a stream may be silent, unless that is given: a node of a cluster that hangs is left. */
  silenceMaxMs(heartbeatIntervalMs = 0): number {
    return this.#endpoints.size > 1 ? Math.max(CLUSTER_SILENCE_MS, 4 * heartbeatIntervalMs) : Infinity;
  }

  /** Of one call or stream. */
  failover(): Failover {
    return new Failover(this.#endpoints.size);
  }

  #checkOpen(): void {
    if (this.#isClosed) throw new TimecacheError('CANCELLED', 'the client is closed');
  }

  /** Ended by `close`, from now until it ends. */
  #own(call: grpc.ClientUnaryCall | grpc.ClientReadableStream<unknown>): void {
    this.#calls.add(call);
    call.once('status', () => this.#calls.delete(call));
  }

  /** Does a call, in a span. */
  unary<Request, Response>(
    method: UnaryMethod<Request, Response>,
    request: Request,
    call: CallOptions,
    isSafe: boolean,
  ): Promise<Response> {
    const span = UNTRACED in call ? NO_CALL : beginCall(method.path, request, this.address);
    const asked =
      (call.traceEntries ?? this.traceEntries)
        ? stamped(request, call.traceparent ?? span.sampledTraceparent)
        : request;
    const deadline = Date.now() + checkTimeout(call.timeoutMs ?? this.timeoutMs);
    const response = this.attempts(method, asked, call, isSafe, span, deadline);
    return span === NO_CALL ? response : endWith(span, response);
  }

  /** Does the attempts of a call. */
  async attempts<Request, Response>(
    method: UnaryMethod<Request, Response>,
    request: Request,
    call: CallOptions,
    isSafe: boolean,
    span: CallSpan,
    deadline: number,
  ): Promise<Response> {
    const { signal } = call;
    signal?.throwIfAborted();
    const attempts = isSafe || call.repeatable ? this.#retry.maxAttempts : 1;
    const backoff = this.backoff();
    let failover: Failover | undefined;
    let maybeApplied = false; // By an earlier attempt.
    for (let attempt = 1; ;) {
      const endpoint = this.#endpoints.current;
      let connected = false;
      try {
        try {
          connected = await this.#connect(endpoint, deadline, signal);
          const metadata = await this.#metadata(call, deadline, span.traceparent);
          return await this.#attempt(endpoint, method, request, metadata, deadline, signal);
        } catch (thrown) {
          signal?.throwIfAborted();
          const error = this.#explain(thrown);
          if (this.#isClosed) throw error;
          this.moveOn(endpoint, error);
          failover ??= this.failover();
          if (await failover.again(error, isServiceError(thrown) && isUnsent(error), deadline, signal)) {
            span.retry(error, this.address);
            continue;
          }
          if (!connected || attempt++ >= attempts || !isConnectionLost(error)) throw error;
          const ms = backoff.next();
          if (Date.now() + ms >= deadline) throw error;
          maybeApplied ||= (error as TimecacheError).maybeApplied;
          span.retry(error, this.address);
          await pause(ms, signal);
        }
      } catch (error) {
        if (!maybeApplied || !(error instanceof TimecacheError) || error.maybeApplied) throw error;
        throw withDetails(error, { maybeApplied });
      }
    }
  }

  /** Attempts of a call that is safe to repeat. */
  get maxAttempts(): number {
    return this.#retry.maxAttempts;
  }

  /** The pauses between them. */
  backoff(): Backoff {
    return new Backoff(this.#retry.minPauseMs, this.#retry.maxPauseMs);
  }

  #explain(error: unknown): unknown {
    if (!isServiceError(error)) return error;
    const explained = fromServiceError(error);
    if (!this.#isClosed || explained.code !== 'CANCELLED') return explained;
    return new TimecacheError('CANCELLED', 'the client is closed', { maybeApplied: explained.maybeApplied });
  }

  #attempt<Request, Response>(
    endpoint: Endpoint,
    method: UnaryMethod<Request, Response>,
    request: Request,
    metadata: grpc.Metadata,
    deadline: number,
    signal: AbortSignal | undefined,
  ): Promise<Response> {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      this.#checkOpen();
      const cancel = () => call.cancel();
      const call = endpoint.client.makeUnaryRequest(
        method.path,
        method.requestSerialize,
        method.responseDeserialize,
        request,
        metadata,
        { deadline },
        (error, response) => {
          signal?.removeEventListener('abort', cancel);
          if (error) reject(error);
          else resolve(response as Response);
        },
      );
      this.#own(call);
      signal?.addEventListener('abort', cancel, { once: true });
    });
  }

  /** Begins a call whose answers are a stream. Until the first has come it is begun elsewhere where that may do better. */
  async serverStream<Request, Response>(
    method: ServerStreamMethod<Request, Response>,
    request: Request,
    call: CallOptions = {},
  ): Promise<MessageStream<Response>> {
    const deadline = Date.now() + checkTimeout(call.timeoutMs ?? Infinity);
    const { signal } = call;
    const failover = this.failover();
    const open = async (): Promise<OpenStream<Response>> => {
      for (;;) {
        const endpoint = this.#endpoints.current;
        try {
          signal?.throwIfAborted();
          await this.#connect(endpoint, deadline, signal);
          const metadata = await this.#metadata(call, deadline);
          signal?.throwIfAborted();
          this.#checkOpen();
          const stream = endpoint.client.makeServerStreamRequest(
            method.path,
            method.requestSerialize,
            method.responseDeserialize,
            request,
            metadata,
            { deadline },
          );
          this.#own(stream);
          return { stream, endpoint, authorization: metadata.get('authorization')[0] };
        } catch (error) {
          this.moveOn(endpoint, error);
          if (!(await failover.again(error, false, deadline, signal))) throw error;
        }
      }
    };
    const fails = async (endpoint: Endpoint, thrown: unknown, isBegun: boolean) => {
      const error = this.#explain(thrown);
      if (this.#isClosed) throw error;
      this.moveOn(endpoint, error);
      if (isBegun || !(await failover.again(error, isConnectionLost(error), deadline, signal))) throw error;
    };
    return new MessageStream(await open(), open, fails, signal);
  }

  /** Begins a call of two streams. */
  async duplex<Request, Response>(
    method: DuplexMethod<Request, Response>,
    call: CallOptions,
  ): Promise<{ stream: grpc.ClientDuplexStream<Request, Response>; endpoint: Endpoint }> {
    const failover = this.failover();
    for (;;) {
      const endpoint = this.#endpoints.current;
      try {
        await this.#connect(endpoint, Infinity, call.signal);
        const { requestSerialize, responseDeserialize } = method;
        const metadata = await this.#metadata(call);
        this.#checkOpen();
        const stream = endpoint.client.makeBidiStreamRequest(
          method.path,
          requestSerialize,
          responseDeserialize,
          metadata,
        );
        this.#own(stream);
        return { stream, endpoint };
      } catch (error) {
        this.moveOn(endpoint, error);
        if (!(await failover.again(error, false, Infinity, call.signal))) throw error;
      }
    }
  }

  async #metadata(call: CallOptions, deadline = Infinity, spanTraceparent?: string): Promise<grpc.Metadata> {
    const traceparent = call.traceparent ?? spanTraceparent;
    const metadata = new grpc.Metadata();
    for (const [key, value] of Object.entries(call.metadata ?? {})) setMetadata(metadata, key, value);
    if (call.requestId !== undefined) setMetadata(metadata, 'x-request-id', call.requestId);
    if (traceparent !== undefined) setMetadata(metadata, 'traceparent', traceparent);
    if (this.#token !== undefined) {
      const token =
        typeof this.#token === 'string'
          ? this.#token
          : await this.#askToken(this.#token, deadline, call.signal);
      setMetadata(metadata, 'authorization', `Bearer ${token}`);
    }
    return metadata;
  }

  /**
   * Whether the token function gives another token than the one that was sent, and refused. Fails with UNAVAILABLE where
   * none comes.
   */
  async hasOtherToken(authorization: unknown, signal: AbortSignal): Promise<boolean> {
    if (typeof this.#token !== 'function') return false;
    return `Bearer ${await this.#askToken(this.#token, Infinity, signal)}` !== authorization;
  }

  async #askToken(
    ask: () => string | Promise<string>,
    deadline: number,
    signal: AbortSignal | undefined,
  ): Promise<string> {
    const limitMs = Math.min(deadline - Date.now(), this.timeoutMs);
    let cause: unknown;
    ++this.#tokensAwaited;
    try {
      // A function that throws is as one that rejects.
      const token = await withLimit((async () => ask())(), limitMs, signal);
      if (token !== LATE) return token;
    } catch (error) {
      signal?.throwIfAborted();
      cause = error;
    } finally {
      --this.#tokensAwaited;
    }
    throw noToken(cause);
  }

  /** Whether a token is to come, for a call or a stream. */
  get isTokenAwaited(): boolean {
    return this.#tokensAwaited > 0;
  }
}

/** By another call it may come: a watch goes on, as after any break. */
export function noToken(cause?: unknown): TimecacheError {
  const why = cause instanceof Error ? cause.message : String(cause ?? 'it did not come in time');
  return new TimecacheError('UNAVAILABLE', `no token: ${why}`, { cause });
}

async function endWith<Response>(span: CallSpan, response: Promise<Response>): Promise<Response> {
  try {
    const answer = await response;
    span.end();
    return answer;
  } catch (error) {
    span.end(error);
    throw error;
  }
}

function checkTokenTo(address: string, options: ClientOptions): void {
  if (options.token === undefined || options.tls || options.allowPlaintextToken || isLocal(address)) return;
  throw new TypeError(`a token is not sent to ${address} in plain text: use tls, or allowPlaintextToken`);
}

export function checkTimeout(ms: number): number {
  if (typeof ms !== 'number' || Number.isNaN(ms)) throw new TypeError('timeoutMs must be a number');
  return ms;
}

// gRPC's own error would have the value in its message: a token.
function setMetadata(metadata: grpc.Metadata, key: string, value: string | Buffer): void {
  try {
    metadata.set(key, value);
  } catch {
    throw new TypeError(
      `the metadata ${key} cannot be sent: it has characters, or is of a type, that it may not have`,
    );
  }
}

function isServiceError(error: unknown): error is grpc.ServiceError {
  return error instanceof Error && 'code' in error && 'details' in error;
}
