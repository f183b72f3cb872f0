// Being told what expired, and what is going to.

import { GRPC_MAX_MESSAGE_BYTES, type CallOptions, type Connection } from './connection.js';
import { TimecacheError, isConnectionLost, isMessageTooLarge } from './errors.js';
import { TimeCacheServiceService as Service } from './gen/timecache/v1/data.js';
import {
  ChangeKind as ChangeKindEnum,
  ExpiryCause as ExpiryCauseEnum,
  WatchStart as WatchStartEnum,
  type ChangeEvent as ChangeEventMessage,
  type ConsumeExpiredResponse,
  type ExpiredEvent as ExpiredEventMessage,
  type WatchChangesResponse,
  type WatchExpiredResponse,
} from './gen/timecache/v1/watch.js';
import type { MessageStream } from './message_stream.js';
import { checkOptions, known, type Names } from './options.js';
import { Backoff, pause } from './timing.js';
import type { GatheredParts } from './types.js';
import {
  type Bytes,
  type Time,
  enumName,
  fromOwnTtl,
  fromTimestamp,
  toBuffer,
  toDuration,
  toUint32,
} from './values.js';

/**
 * Why an entry died: its time was up; the namespace was full; its bucket was killed by hand. EXPIRING: it is not dead,
 * its time will be up at `deathTime`. UNKNOWN: a cause that this client is too old to know.
 */
export type ExpiryCause = 'EXPIRED' | 'EVICTED' | 'ROTATED' | 'EXPIRING' | 'UNKNOWN';

/** An entry that died. */
export interface ExpiredEvent {
  /** The namespace it lived in. */
  namespace: string;
  /** 1 B to 4 KiB. */
  key: Buffer;
  /** Empty with `keysOnly`, and where `parts` or `omittedValueBytes` say so. */
  value: Buffer;
  /** Tells a later put of the same key from the value that died. */
  version: number;
  /** When its time to live last began. */
  putTime: Time;
  /** putTime + ttl. Before it nothing dies but by EVICTED and ROTATED. */
  deadline: Time;
  /** From here on no reader saw it. */
  deathTime: Time;
  /** When the server published it. */
  deliveredAt: Time;
  /** Why it died. Of watchExpiring always EXPIRING, else never. */
  cause: ExpiryCause;
  /** In a consumer group only, else 0: the event's number, for people to read. */
  eventId: number;
  /**
   * In a consumer group only, else 0: the number of this attempt, from 1. One that ended by nack, or was not settled in
   * time, counts; one that ended with its member's stream does not.
   */
  attempt: number;
  /** In a consumer group only, else 0: how often the stream of a member that held it has ended. */
  returns: number;
  /** In a consumer group only, else empty: what names this delivery in a settlement. */
  deliveryToken: Buffer;
  /** In a consumer group only, else empty: what the nack of the last attempt that counted gave as its reason. */
  lastReason: string;
  /** The W3C trace that the entry was to keep (`entryTraceparent`, `traceEntries`); else empty. */
  traceparent: string;
  /** When the key began to be there: the put or other call that created the entry. Changes and renewals kept it. */
  createTime: Time;
  /** The entry's own time to live in ms; undefined: it had the namespace's. */
  ownTtlMs: number | undefined;
  /** The size of a value that was left out as it does not fit into `maxMessageBytes`. Otherwise 0. */
  omittedValueBytes: number;
  /** In place of a value: the parts that came of a gather that was never completed. */
  parts: GatheredParts | undefined;
}

/** With what dies from then on, or with the oldest event that is still retained. */
export type WatchStart = 'NOW' | 'EARLIEST';

/** What every kind of watch can be told. The request id, trace and metadata go with each of its calls. */
export interface CommonWatchOptions extends Pick<CallOptions, 'requestId' | 'traceparent' | 'metadata'> {
  /** 1 to 64 of them. Default: the client's. */
  namespaces?: readonly string[] | undefined;
  /** Leave the values out. */
  keysOnly?: boolean | undefined;
  /** Longest time between two batches of one namespace, in ms on the server's clock: 10 to 3,600,000. Default 1,000. */
  heartbeatIntervalMs?: number | undefined;
  /**
   * Largest message taken; larger values are left out. Default: what the client's channel takes, 64 MiB unless it is set
   * otherwise, into which all fit. A watch whose channel turns out to take less goes on with 4 MiB.
   */
  maxMessageBytes?: number | undefined;
  /** Ends the watch: the iterator throws the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Keep trying when the first attempt finds no server, too. */
  waitForServer?: boolean | undefined;
  /** The first pause between attempts to reconnect, in ms; doubled, and shortened at random by up to half. Default 100. */
  minPauseMs?: number | undefined;
  /** The longest such pause. Default 1,000. */
  maxPauseMs?: number | undefined;
  /**
   * A stream that brings nothing for so long, in ms on this machine's clock, is taken for broken. Several heartbeats
   * are a good value. Default: of a client with several addresses 10,000, or four heartbeats if that is longer;
   * otherwise never; a connection that is dead is noticed within 40 s anyhow.
   */
  silenceMaxMs?: number | undefined;
  /** Told of every break, and of every attempt that fails, before the pause, if there is one. May close the watch. */
  onBreak?: ((error: TimecacheError) => void) | undefined;
}

/** What to watch, and from where on. */
export interface WatchOptions extends CommonWatchOptions {
  /** Where it starts in namespaces without a resume token. Default NOW. */
  start?: WatchStart | undefined;
  /** By namespace, where an earlier watch has stopped: `resumeToken` of the last batch that it has handled. */
  resumeTokens?: Readonly<Record<string, Uint8Array>> | undefined;
  /**
   * End where events are lost: with OUT_OF_RANGE (RESUME_POINT_TRIMMED) in place of a batch with `lost`, with
   * FAILED_PRECONDITION (LOG_CHANGED) or OUT_OF_RANGE (RESUME_POINT_AHEAD) in place of one with `logChanged`.
   */
  failOnLoss?: boolean | undefined;
  /** At most 4 KiB. Default: all keys. */
  keyPrefix?: Bytes | undefined;
}

/** What to watch, and how long before its death it is told. */
export interface WatchExpiringOptions extends CommonWatchOptions {
  /** In ms: 1 to 10 years; less than the ttl by a bucket width or more. */
  leadTimeMs: number;
  /** At most 4 KiB. Default: all keys. */
  keyPrefix?: Bytes | undefined;
}

/** Which changes to watch, in namespaces with changeRetentionMs; `resumeTokens` are those of {@link ChangeBatch}. */
export type WatchChangesOptions = WatchOptions;

/** Which group to be a member of. */
export interface ConsumeOptions extends CommonWatchOptions {
  /** Made with default options if it is not there. */
  group: string;
  /** Where a group starts that is made by this. Default NOW. */
  start?: WatchStart | undefined;
  /** Most events of each namespace that this member holds unsettled: 1 to 65,536. Default 1,000. */
  maxInFlight?: number | undefined;
}

const COMMON_OPTIONS: Names<CommonWatchOptions> = {
  requestId: true,
  traceparent: true,
  metadata: true,
  namespaces: true,
  keysOnly: true,
  heartbeatIntervalMs: true,
  maxMessageBytes: true,
  signal: true,
  waitForServer: true,
  minPauseMs: true,
  maxPauseMs: true,
  silenceMaxMs: true,
  onBreak: true,
};
const WATCH_OPTIONS: Names<WatchOptions> = {
  ...COMMON_OPTIONS,
  start: true,
  resumeTokens: true,
  failOnLoss: true,
  keyPrefix: true,
};
const EXPIRING_OPTIONS: Names<WatchExpiringOptions> = {
  ...COMMON_OPTIONS,
  leadTimeMs: true,
  keyPrefix: true,
};
const CONSUME_OPTIONS: Names<ConsumeOptions> = {
  ...COMMON_OPTIONS,
  group: true,
  start: true,
  maxInFlight: true,
};

const KNOWN_WATCH = {
  expired: known('watch', WATCH_OPTIONS),
  changes: known('watchChanges', WATCH_OPTIONS),
  expiring: known('watchExpiring', EXPIRING_OPTIONS),
  group: known('consume', CONSUME_OPTIONS),
};

/** What the batches of all watches have. */
export interface CommonBatch {
  /** The one that this batch is about. */
  namespace: string;
  /**
   * Everything of this namespace that happened at or before this moment, and passes the filter, has come, or is counted
   * in `lost`. Never goes back, not over a break either, but with `logChanged`. In a group: all of that has been settled,
   * too. Of watchExpiring: all that was in the map then, and going to die within the lead time, has been told.
   */
  watermark: Time;
  /** What this watch missed since the namespace's last batch, or its resume token: exact, with a prefix an upper bound. */
  lost: number;
  /** For `resumeTokens`: brings a later watch behind this batch. Store it when the batch has been handled. */
  resumeToken: Buffer;
  /** Whether this is the namespace's first batch after a break. Nothing is missing, unless `lost` says so. */
  reconnected: boolean;
  /**
   * Whether this is the first batch from another log: the server was restarted with a namespace that is not durable (with
   * any, of watchChanges), or the namespace was made again. The watch goes on with the oldest event of that log; what the
   * old one still had to tell, from after `missedAfter`, is lost, in number unknown.
   */
  logChanged: boolean;
  /** With `logChanged`: the last watermark of the old log, if this watch had one. */
  missedAfter: Time | undefined;
}

/** What died in one namespace, in order of death. */
export interface WatchBatch extends CommonBatch {
  /** May be empty: a heartbeat. */
  events: ExpiredEvent[];
  /** How many of the events come without a value that did not fit. */
  omittedValues: number;
  /**
   * In a group only: what died at or before this moment has been given to a member, by any of the group's streams and
   * fetches, or settled, or counted in `lost`: nothing more comes from before it, but what is given out again. Never goes
   * back, unless the group is moved. 0 while no moment is known.
   */
  deliveredWatermark: Time | undefined;
}

/**
 * What has happened to an entry: a new value, by put, append, combine, gather or putBack; a new deadline; its end before
 * its time, by remove, a combine that came to 0, or a gather that is complete. UNKNOWN: this client is too old to know it.
 */
export type ChangeKind = 'PUT' | 'RENEWED' | 'REMOVED' | 'UNKNOWN';

/** A change of an entry. */
export interface ChangeEvent {
  kind: ChangeKind;
  key: Buffer;
  /** Of a PUT: its value now. Empty with `keysOnly`, and where `parts` or `omittedValueBytes` say so. */
  value: Buffer;
  /** Its version now; of a REMOVED the last one. */
  version: number;
  /** Its deadline now; undefined of a REMOVED. */
  deadline: Time | undefined;
  /** When it happened: the order of the changes of one key, but not of several. */
  time: Time;
  /** In place of a value, for a key that collects the parts of a gather. */
  parts: GatheredParts | undefined;
  /** The size of a value that was left out as it does not fit into `maxMessageBytes`. Otherwise 0. */
  omittedValueBytes: number;
}

/** What has changed in one namespace. Its `resumeToken` is valid until the server stops. */
export interface ChangeBatch extends CommonBatch {
  /** May be empty: a heartbeat. Those of one key are in their order. */
  changes: ChangeEvent[];
}

/** What the calls differ in: the method with its request, and what its messages bring. Internal. */
export interface WatchSource<Batch extends CommonBatch> {
  open(connection: Connection, state: WatchState, signal: AbortSignal): Promise<MessageStream<WatchMessage>>;
  read(message: WatchMessage): Omit<Batch, keyof CommonBatch>;
}

type WatchMessage = Pick<WatchExpiredResponse, 'namespace' | 'watermark'> &
  Partial<
    Pick<WatchExpiredResponse, 'events' | 'lost' | 'resumeToken'> &
      Pick<ConsumeExpiredResponse, 'deliveredWatermark'> &
      Pick<WatchChangesResponse, 'changes'>
  >;

/** What the next request depends on. Internal. */
export interface WatchState {
  readonly maxMessageBytes: number;
  readonly established: boolean;
  readonly positions: ReadonlyMap<string, Position>;
}

/** Where a watch is in a namespace. Internal. */
export interface Position {
  watermark: Time | undefined;
  resumeToken: Buffer;
  broken: boolean;
  logChanged: boolean;
}

/**
 * A watch on the deaths in one or more namespaces: an async iterator of {@link WatchBatch}; or on their changes, of
 * {@link ChangeBatch}. Reconnects by itself, and
 * goes on behind the last batch that it gave: every event comes exactly once, or is counted in `lost`. Only where there
 * is nothing to go on with, as a namespace that is not durable was lost with its server, does it begin anew, with the
 * oldest event that is retained; it then says `logChanged`.
 *
 * A break is: UNAVAILABLE, a server that stops, a connection that is lost, a stream that was reset (ENHANCE_YOUR_CALM),
 * silence, or, once, a message larger than the channel takes. So is UNAUTHENTICATED where the client's token function now gives another token than the one that was
 * refused, as when tokens are replaced; that one is tried at once, and only once. Anything else that the server says ends
 * the watch, which throws it: NOT_FOUND (no such namespace or group), INVALID_ARGUMENT, PERMISSION_DENIED, MAX_WATCHERS at
 * the first attempt, and with `failOnLoss` a loss.
 *
 * In a group, and of watchExpiring, there is no place to go on from: what was given and not settled is given out again,
 * what is going to die is told again.
 *
 * Begins at the first call of next. The first batch of each namespace comes at once: from then on every later death
 * there will be seen. Reads up to 16 messages (of about 1 MiB) ahead; who reads slowly is held up by flow control, and
 * finally told by `lost`.
 */
export class Watcher<Batch extends CommonBatch = WatchBatch> implements AsyncIterableIterator<Batch> {
  readonly #iterator: AsyncGenerator<Batch, undefined>;
  readonly #closed = new AbortController();

  /** Made by the client's watch, watchExpiring, watchChanges and consume. */
  constructor(
    connection: Connection,
    source: WatchSource<Batch>,
    options: CommonWatchOptions & WatchOptions,
  ) {
    this.#iterator = this.#run(connection, source, options);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** The next batch. One call at a time. */
  next(): Promise<IteratorResult<Batch, undefined>> {
    return this.#iterator.next();
  }

  /** Ends the watch, as leaving a `for await` loop does. */
  return(): Promise<IteratorResult<Batch, undefined>> {
    this.close();
    return this.#iterator.return(undefined);
  }

  /** Ends the watch: a next that waits, and every later one, says that it is done. */
  close(): void {
    this.#closed.abort();
  }

  async *#run(
    connection: Connection,
    source: WatchSource<Batch>,
    options: CommonWatchOptions & WatchOptions,
  ): AsyncGenerator<Batch, undefined> {
    const state = {
      maxMessageBytes: options.maxMessageBytes ?? connection.maxMessageBytes,
      established: false,
      positions: new Map<string, Position>(),
    };
    for (const namespace of options.namespaces ?? []) state.positions.set(namespace, newPosition());
    for (const [namespace, token] of Object.entries(options.resumeTokens ?? {})) {
      state.positions.set(namespace, { ...newPosition(), resumeToken: toBuffer(token, 'resumeTokens') });
    }
    const closed = this.#closed.signal;
    const signal = options.signal ? AbortSignal.any([options.signal, closed]) : closed;
    const backoff = new Backoff(options.minPauseMs ?? 100, options.maxPauseMs ?? 1_000);
    const silenceMaxMs = options.silenceMaxMs ?? connection.silenceMaxMs(options.heartbeatIntervalMs);
    // Since the last message: a function that gives ever another token would be asked for ever.
    let hasTriedOtherToken = false;

    for (;;) {
      let stream: MessageStream<WatchMessage> | undefined;
      try {
        signal.throwIfAborted();
        stream = await source.open(connection, state, signal);
        for (;;) {
          const message = await stream.next(silenceMaxMs);
          if (message === undefined) throw new TimecacheError('UNAVAILABLE', 'the server is stopping');
          state.established = true;
          hasTriedOtherToken = false;
          backoff.reset();
          yield { ...accept(message, state.positions), ...source.read(message) } as Batch;
        }
      } catch (thrown) {
        let error = thrown;
        let hasOtherToken = false;
        if (stream && !hasTriedOtherToken && isUnauthenticated(error)) {
          try {
            hasOtherToken = await connection.hasOtherToken(stream.authorization, signal);
            hasTriedOtherToken = hasOtherToken;
          } catch (noToken) {
            error = noToken; // A break: the token may come later.
          }
        }
        if (closed.aborted) return undefined;
        options.signal?.throwIfAborted();
        if (connection.isClosed) throw error;
        if (!options.failOnLoss && beginAnew(error, state.positions)) continue;
        if (isMessageTooLarge(error) && state.maxMessageBytes > GRPC_MAX_MESSAGE_BYTES) {
          state.maxMessageBytes = GRPC_MAX_MESSAGE_BYTES;
        } else if (!hasOtherToken && !(isBreak(error) && (state.established || options.waitForServer))) {
          throw thrown;
        }
        for (const position of state.positions.values()) position.broken = state.established;
        options.onBreak?.(error as TimecacheError);
        if (hasOtherToken) continue; // The server is there.
      } finally {
        stream?.cancel();
      }
      await pause(backoff.next(), signal).catch(() => {}); // The loop looks at the signal.
    }
  }
}

function newPosition(): Position {
  return { watermark: undefined, resumeToken: Buffer.alloc(0), broken: false, logChanged: false };
}

/** The server has refused the token, or does so since its access rules have changed. */
function isUnauthenticated(error: unknown): boolean {
  return error instanceof TimecacheError && error.code === 'UNAUTHENTICATED';
}

/** A server that ends the stream with a reason of its own means it, but where that passes. */
function isBreak(error: unknown): boolean {
  if (!(error instanceof TimecacheError)) return false;
  return (
    isConnectionLost(error) || error.reason === 'MAX_WATCHERS' || error.reason === 'MAX_EXPIRING_WATCHERS'
  );
}

/**
 * Whether the server has refused the token of a namespace, which has another log now, and the watch may begin that one
 * anew. Each time a token goes, so that this comes to an end.
 */
function beginAnew(error: unknown, positions: Map<string, Position>): boolean {
  if (!(error instanceof TimecacheError)) return false;
  if (error.reason !== 'LOG_CHANGED' && error.reason !== 'RESUME_POINT_AHEAD') return false;
  const position = positions.get(error.metadata['namespace'] ?? '');
  if (!position?.resumeToken.length) return false;
  position.resumeToken = Buffer.alloc(0);
  position.logChanged = true;
  return true;
}

function accept(message: WatchMessage, positions: Map<string, Position>): CommonBatch {
  const { namespace } = message;
  const position = positions.get(namespace) ?? newPosition();
  const { broken, logChanged, watermark: missedAfter } = position;
  const watermark = fromTimestamp(message.watermark);
  const resumeToken = message.resumeToken ?? Buffer.alloc(0);
  positions.set(namespace, { watermark, resumeToken, broken: false, logChanged: false });
  return {
    namespace,
    watermark,
    lost: Number(message.lost ?? 0n),
    resumeToken,
    reconnected: broken,
    logChanged,
    missedAfter: logChanged ? missedAfter : undefined,
  };
}

function readEvents(message: WatchMessage): Omit<WatchBatch, keyof CommonBatch> {
  const events = (message.events ?? []).map(fromEvent);
  return {
    events,
    omittedValues: events.reduce((sum, event) => sum + (event.omittedValueBytes > 0 ? 1 : 0), 0),
    deliveredWatermark: message.deliveredWatermark && fromTimestamp(message.deliveredWatermark),
  };
}

function fromChange(change: ChangeEventMessage): ChangeEvent {
  return {
    kind: (enumName(ChangeKindEnum, 'CHANGE_KIND_', change.kind) ?? 'UNKNOWN') as ChangeKind,
    key: change.key,
    value: change.value,
    version: Number(change.version),
    deadline: change.deadline && fromTimestamp(change.deadline),
    time: fromTimestamp(change.time),
    parts: change.parts,
    omittedValueBytes: Number(change.omittedValueBytes),
  };
}

export function fromEvent(event: ExpiredEventMessage): ExpiredEvent {
  return {
    namespace: event.namespace,
    key: event.key,
    value: event.value,
    version: Number(event.version),
    putTime: fromTimestamp(event.putTime),
    deadline: fromTimestamp(event.deadline),
    deathTime: fromTimestamp(event.deathTime),
    deliveredAt: fromTimestamp(event.deliveredAt),
    cause: (enumName(ExpiryCauseEnum, 'EXPIRY_CAUSE_', event.cause) ?? 'UNKNOWN') as ExpiryCause,
    eventId: Number(event.eventId),
    attempt: event.attempt,
    returns: event.returns,
    deliveryToken: event.deliveryToken,
    lastReason: event.lastReason,
    traceparent: event.traceparent,
    createTime: fromTimestamp(event.createTime ?? event.putTime),
    ownTtlMs: fromOwnTtl(event.ownTtl),
    omittedValueBytes: Number(event.omittedValueBytes),
    parts: event.parts,
  };
}

function common(options: CommonWatchOptions, maxMessageBytes: number) {
  return {
    namespaces: [...(options.namespaces ?? [])],
    keysOnly: options.keysOnly ?? false,
    heartbeatInterval: toDuration(options.heartbeatIntervalMs, 'heartbeatIntervalMs'),
    maxMessageBytes: toUint32(maxMessageBytes, 'maxMessageBytes'),
  };
}

function callOptions(
  { requestId, traceparent, metadata }: CommonWatchOptions,
  signal: AbortSignal,
): CallOptions {
  return { requestId, traceparent, metadata, signal };
}

export function startOf(fromEarliest: boolean): WatchStartEnum {
  return fromEarliest ? WatchStartEnum.WATCH_START_EARLIEST : WatchStartEnum.WATCH_START_NOW;
}

function resumingRequest(options: WatchOptions, { positions, maxMessageBytes }: WatchState) {
  const all = [...positions.values()];
  return {
    ...common(options, maxMessageBytes),
    // Namespaces without a token all begin alike: where one needs all of its log, another that has not begun gets
    // more than was asked, never less.
    start: startOf(options.start === 'EARLIEST' || all.some(({ logChanged }) => logChanged)),
    resumeTokens: all.map(({ resumeToken }) => resumeToken).filter((token) => token.length > 0),
    failOnLoss: options.failOnLoss ?? false,
    keyPrefix: toBuffer(options.keyPrefix ?? '', 'keyPrefix'),
  };
}

export function expiredSource(options: WatchOptions): WatchSource<WatchBatch> {
  checkOptions(options, KNOWN_WATCH.expired);
  return {
    open(connection, state, signal) {
      const request = resumingRequest(options, state);
      return connection.serverStream(Service.watchExpired, request, callOptions(options, signal));
    },
    read: readEvents,
  };
}

export function changesSource(options: WatchChangesOptions): WatchSource<ChangeBatch> {
  checkOptions(options, KNOWN_WATCH.changes);
  return {
    open(connection, state, signal) {
      const request = resumingRequest(options, state);
      return connection.serverStream(Service.watchChanges, request, callOptions(options, signal));
    },
    read: ({ changes = [] }) => ({ changes: changes.map(fromChange) }),
  };
}

export function expiringSource(options: WatchExpiringOptions): WatchSource<WatchBatch> {
  checkOptions(options, KNOWN_WATCH.expiring);
  return {
    open(connection, { maxMessageBytes }, signal) {
      const request = {
        ...common(options, maxMessageBytes),
        leadTime: toDuration(options.leadTimeMs, 'leadTimeMs'),
        keyPrefix: toBuffer(options.keyPrefix ?? '', 'keyPrefix'),
      };
      return connection.serverStream(Service.watchExpiring, request, callOptions(options, signal));
    },
    read: readEvents,
  };
}

export function groupSource(options: ConsumeOptions): WatchSource<WatchBatch> {
  checkOptions(options, KNOWN_WATCH.group);
  return {
    open(connection, { established, maxMessageBytes }, signal) {
      const request = {
        ...common(options, maxMessageBytes),
        group: options.group,
        // A group that has to be made again leaves nothing out.
        start: startOf(established || options.start === 'EARLIEST'),
        maxInFlight: toUint32(options.maxInFlight, 'maxInFlight'),
      };
      return connection.serverStream(Service.consumeExpired, request, callOptions(options, signal));
    },
    read: readEvents,
  };
}
