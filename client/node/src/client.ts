// A client of a timecached server.

import {
  GROUP_OPTIONS,
  NAMESPACE_OPTIONS,
  fromCluster,
  fromConnection,
  fromDeaths,
  fromGroup,
  fromHotKeys,
  fromMember,
  fromNamespace,
  fromServer,
  fromSlowCalls,
  fromUnsettled,
  toGroupOptions,
  toNamespaceOptions,
  toPosition,
  updateMask,
  type CallerInfo,
  type ClusterInfo,
  type ConnectionInfo,
  type DeathsAhead,
  type DeathsOptions,
  type Group,
  type GroupMember,
  type GroupOptions,
  type GroupPosition,
  type HotKeys,
  type HotKeysOptions,
  type Namespace,
  type NamespaceOptions,
  type SeekResult,
  type ServerInfo,
  type SlowCalls,
  type UnsettledEvent,
} from './admin.js';
import { CALL_OPTIONS, Connection, type CallOptions, type ClientOptions } from './connection.js';
import { fromStatus } from './errors.js';
import { HealthCheckResponse_ServingStatus, HealthService } from './gen/grpc/health/v1/health.js';
import { TimeCacheServiceService as Service } from './gen/timecache/v1/data.js';
import { GroupServiceService as Groups } from './gen/timecache/v1/groups.js';
import { NamespaceServiceService as Namespaces } from './gen/timecache/v1/namespaces.js';
import { ServerServiceService as Server } from './gen/timecache/v1/server.js';
import { isSafe, make, mismatch, type Operation } from './operations.js';
import { checkOptions, known, type Names } from './options.js';
import { Pipeline, type PipelineOptions } from './pipeline.js';
import { scanPages } from './scan.js';
import { toSettlement, type Settlement } from './settle.js';
import { beginCall } from './tracing.js';
import {
  OPTIONS,
  fromEntry,
  type AppendOptions,
  type AppendResult,
  type CombineOptions,
  type CombineResult,
  type Entry,
  type GatherOptions,
  type GatherResult,
  type GetOptions,
  type Operand,
  type PutConditions,
  type PutOptions,
  type PutResult,
  type RemoveOptions,
  type RemoveResult,
  type ScanOptions,
  type SizeResult,
  type TouchOptions,
} from './types.js';
import {
  fromJson,
  fromTimestamp,
  numbers,
  toBuffer,
  toDuration,
  toJson,
  toUint32,
  toUint64,
  type Bytes,
  type Time,
} from './values.js';
import {
  Watcher,
  changesSource,
  expiredSource,
  expiringSource,
  fromEvent,
  groupSource,
  startOf,
  type ChangeBatch,
  type ConsumeOptions,
  type ExpiredEvent,
  type WatchChangesOptions,
  type WatchExpiringOptions,
  type WatchOptions,
  type WatchStart,
} from './watcher.js';
import { GroupWorker, type EventHandler, type WorkerOptions } from './worker.js';

/** How namespaces and groups are described. */
export interface DescribeOptions extends CallOptions {
  /** With their statistics. Those of a namespace lock each of its shards for a moment. */
  includeStatistics?: boolean | undefined;
}

/** How a namespace or group is changed. */
export interface UpdateOptions<Options> extends CallOptions {
  /** Options that take their defaults again. */
  toDefault?: readonly (keyof Options & string)[] | undefined;
}

/** Which events fetchExpired fetches, and how long it waits for them. */
export interface FetchOptions {
  /** Most events. 1 to 8,192. Default 100. */
  maxEvents?: number | undefined;
  /**
   * How long to wait for the first event if there is none, in ms on the server's clock: 0 to 60,000. The call may take so
   * much longer than its timeoutMs. Default 0.
   */
  waitMs?: number | undefined;
  /** Where a group starts that is made by this. Default NOW. */
  start?: WatchStart | undefined;
  /** Leave the values out. */
  keysOnly?: boolean | undefined;
}

/** What fetchExpired was given: each event is to be settled within the group's ackTimeoutMs. */
export interface FetchedEvents {
  /** None where the wait ended without one. */
  events: ExpiredEvent[];
  /** What died at or before this moment has been settled, or is counted in `lost`. */
  watermark: Time;
  /** Events that the group has lost, told to one member or caller: exact. */
  lost: number;
  /** As in {@link WatchBatch}. */
  deliveredWatermark: Time;
}

/** Which unsettled events are listed. */
export interface UnsettledOptions {
  /** Only keys that begin with this. At most 4 KiB. Default: all keys. */
  keyPrefix?: Bytes | undefined;
  /** With values and parts; one that does not fit says its size in `omittedValueBytes`. */
  includeValues?: boolean | undefined;
}

const DESCRIBE_OPTIONS: Names<DescribeOptions> = { ...CALL_OPTIONS, includeStatistics: true };
const DEATHS_OPTIONS: Names<DeathsOptions> = { maxBars: true, withinMs: true };
const FETCH_OPTIONS: Names<FetchOptions> = { maxEvents: true, waitMs: true, start: true, keysOnly: true };
const UNSETTLED_OPTIONS: Names<UnsettledOptions> = { keyPrefix: true, includeValues: true };
const UPDATE_OPTIONS: Names<UpdateOptions<object>> = { ...CALL_OPTIONS, toDefault: true };

const KNOWN = {
  put: known('put', OPTIONS.put, CALL_OPTIONS),
  get: known('get', OPTIONS.get, CALL_OPTIONS),
  remove: known('remove', OPTIONS.remove, CALL_OPTIONS),
  contains: known('contains', OPTIONS.contains, CALL_OPTIONS),
  execute: known('execute', CALL_OPTIONS, { atomic: true }),
  touch: known('touch', OPTIONS.touch, CALL_OPTIONS),
  append: known('append', OPTIONS.append, CALL_OPTIONS),
  combine: known('combine', OPTIONS.combine, CALL_OPTIONS),
  gather: known('gather', OPTIONS.gather, CALL_OPTIONS),
  scan: known('scan', OPTIONS.scan, CALL_OPTIONS),
  fetch: known('fetchExpired', FETCH_OPTIONS, CALL_OPTIONS),
  createGroup: known('createGroup', CALL_OPTIONS, { start: true }),
  seekGroup: known('seekGroup', CALL_OPTIONS, { dropUnsettled: true }),
  unsettled: known('listUnsettled', UNSETTLED_OPTIONS, CALL_OPTIONS),
  hotKeys: known('getHotKeys', CALL_OPTIONS, { maxKeys: true } satisfies Names<HotKeysOptions>),
  describe: known('the call', DESCRIBE_OPTIONS),
  update: known('the call', UPDATE_OPTIONS),
  deaths: known('the call', DEATHS_OPTIONS, CALL_OPTIONS),
  call: known('the call', CALL_OPTIONS),
  group: known('a group', GROUP_OPTIONS),
  namespace: known('a namespace', NAMESPACE_OPTIONS),
};

/** A piece of a backup of the server's journal. */
export interface BackupPiece {
  /** Of all pieces together; in a cluster an estimate, but in the last one. */
  totalBytes: number;
  /** At most 1 MiB, never empty. */
  data: Buffer;
}

/** What became of each operation of a batch, as Promise.allSettled says it. */
export type SettledResults<Operations extends readonly Operation<unknown>[]> = {
  [K in keyof Operations]: Operations[K] extends Operation<infer Result>
    ? PromiseSettledResult<Result>
    : never;
};

/**
 * A client of one server, and of one of its namespaces at a time. Connects at its first call, and again by itself
 * whenever the connection breaks; make one for a process and share it. Every call is one round trip, which calls of the
 * same time share ({@link ClientOptions.batching}), and rejects with a {@link TimecacheError}: UNAVAILABLE (no server
 * there, or it is stopping), NOT_FOUND with the reason NAMESPACE_NOT_FOUND, INVALID_ARGUMENT (see its `violations`),
 * DEADLINE_EXCEEDED (5 s, unless `timeoutMs` says other), and what the calls below name. Calls that are safe to repeat are: see {@link RetryOptions}.
 */
export class TimecacheClient {
  readonly #connection: Connection;
  /** The namespace of calls that name none. */
  readonly defaultNamespace: string;

  /**
   * For the server at `address`: `host:port` or `unix:/path`; of a cluster the addresses of its nodes, up to 16, as a
   * list or separated by commas: calls go to the owner, watches and workers resume there. Does not connect yet: that the
   * server is not there is told by the first call. TypeError: no such address, options that do not go together, or a token that would go over plain
   * text to another machine.
   */
  constructor(address: string | readonly string[], options?: ClientOptions);
  /** @internal */
  constructor(connection: Connection, options?: Pick<ClientOptions, 'namespace'>);
  constructor(target: string | readonly string[] | Connection, options: ClientOptions = {}) {
    this.#connection = target instanceof Connection ? target : new Connection(target, options);
    this.defaultNamespace = options.namespace ?? 'default';
  }

  /** The same client for another namespace, over the same connection. */
  namespace(name: string): TimecacheClient {
    return new TimecacheClient(this.#connection, { namespace: name });
  }

  /**
   * Closes the connection, for all clients that share it. What is under way, watches and workers among it, ends with
   * CANCELLED, as does what comes later. Stop workers before: what they have not settled is given to others. May be
   * called again.
   */
  close(): void {
    this.#connection.close();
  }

  /** Where the server is; of several, the one that calls go to now. */
  get address(): string {
    return this.#connection.address;
  }

  /** Longest duration of a call, in ms. */
  get timeoutMs(): number {
    return this.#connection.timeoutMs;
  }

  /** @internal */
  get connection(): Connection {
    return this.#connection;
  }

  /**
   * Stores a value under a key, with a fresh time to live. A condition that does not hold is FAILED_PRECONDITION
   * (KEY_EXISTS, KEY_NOT_FOUND, VERSION_MISMATCH); a limit that would be passed is RESOURCE_EXHAUSTED.
   */
  async put(key: Bytes, value: Bytes, options: PutOptions & CallOptions = {}): Promise<PutResult> {
    checkOptions(options, KNOWN.put);
    return await this.#connection.calls.do(this.defaultNamespace, make.put(key, value, options), options);
  }

  /** Stores a value as JSON. */
  async putJson(key: Bytes, value: unknown, options: PutOptions & CallOptions = {}): Promise<PutResult> {
    return await this.put(key, toJson(value), options);
  }

  /** Reads an entry; undefined: a miss. */
  async get(key: Bytes, options: GetOptions & CallOptions = {}): Promise<Entry | undefined> {
    checkOptions(options, KNOWN.get);
    return await this.#connection.calls.do(this.defaultNamespace, make.get(key, options), options);
  }

  /** Reads a value as UTF-8; undefined: a miss. */
  async getText(key: Bytes, options: GetOptions & CallOptions = {}): Promise<string | undefined> {
    return (await this.get(key, options))?.value.toString();
  }

  /** Reads a value as JSON; undefined: a miss. SyntaxError: it is no JSON. */
  async getJson<T = unknown>(key: Bytes, options: GetOptions & CallOptions = {}): Promise<T | undefined> {
    const entry = await this.get(key, options);
    return entry && fromJson<T>(entry.value);
  }

  /** Removes an entry, without an expiry event. A miss is `removed: false`, but FAILED_PRECONDITION with ifVersion. */
  async remove(key: Bytes, options: RemoveOptions & CallOptions = {}): Promise<RemoveResult> {
    checkOptions(options, KNOWN.remove);
    return await this.#connection.calls.do(this.defaultNamespace, make.remove(key, options), options);
  }

  /**
   * Whether an entry is there. Never renews its time to live. With a condition FAILED_PRECONDITION where it does not hold,
   * as in put: for an execute that is atomic, of a key that does not change.
   */
  async contains(key: Bytes, options: PutConditions & CallOptions = {}): Promise<boolean> {
    checkOptions(options, KNOWN.contains);
    return await this.#connection.calls.do(this.defaultNamespace, make.contains(key, options), options);
  }

  /** Live entries and bytes of the namespace, exact. */
  async size(options: CallOptions = {}): Promise<SizeResult> {
    checkOptions(options, KNOWN.call);
    const request = { namespace: this.defaultNamespace };
    return numbers(await this.#connection.unary(Service.size, request, options, true));
  }

  /**
   * Gives an entry a fresh time to live. Its version, which stays as it is; undefined: a miss, but FAILED_PRECONDITION
   * with ifVersion.
   */
  async touch(key: Bytes, options: TouchOptions & CallOptions = {}): Promise<number | undefined> {
    checkOptions(options, KNOWN.touch);
    return await this.#connection.calls.do(this.defaultNamespace, make.touch(key, options), options);
  }

  /**
   * Appends to a value, or creates an entry with these bytes. An entry that is there keeps its deadline, unless `touch`
   * is set. FAILED_PRECONDITION: a condition that does not hold, a value that would be too large (VALUE_TOO_LARGE), a
   * key that collects parts (VALUE_KIND_MISMATCH). This call and the next two are never tried again unasked.
   */
  async append(key: Bytes, value: Bytes, options: AppendOptions & CallOptions = {}): Promise<AppendResult> {
    checkOptions(options, KNOWN.append);
    return await this.#connection.calls.do(this.defaultNamespace, make.append(key, value, options), options);
  }

  /**
   * Adds a number to a value, or xors it with one. The value is a decimal number of 64 bits, as `put(key, '10')` stores
   * it. An entry that is there keeps its deadline. FAILED_PRECONDITION: a value that is no number (NOT_A_NUMBER), a sum
   * that has no room (NUMBER_OVERFLOW), ifVersion that does not hold, a key that collects parts.
   */
  async combine(
    key: Bytes,
    operand: Operand,
    options: CombineOptions & CallOptions = {},
  ): Promise<CombineResult> {
    checkOptions(options, KNOWN.combine);
    return await this.#connection.calls.do(
      this.defaultNamespace,
      make.combine(key, operand, options),
      options,
    );
  }

  /**
   * Brings one part of what is collected under a key. Whoever brings the last one gets all, and the key is gone: exactly
   * one caller does. What does not become complete expires with the parts that came. An entry that is there keeps its
   * deadline. The same part again is a `duplicate`; ALREADY_EXISTS (PART_EXISTS): with another value.
   * FAILED_PRECONDITION: something else is expected (GATHER_MISMATCH), the key has a value, the parts would be too large.
   */
  async gather(
    key: Bytes,
    part: Bytes,
    value: Bytes,
    options: GatherOptions & CallOptions,
  ): Promise<GatherResult> {
    checkOptions(options, KNOWN.gather);
    return await this.#connection.calls.do(
      this.defaultNamespace,
      make.gather(key, part, value, options),
      options,
    );
  }

  /**
   * Does many operations in one round trip, each made by {@link op}: a result for each, in their order, as
   * Promise.allSettled gives it. Not a transaction, unless `atomic`: each succeeds or fails by itself; those of one key
   * apply in order. Rejects where none could be tried, or nobody knows. At most 4,096 operations, 16 MiB in all. Repeated,
   * as {@link RetryOptions} says, if all operations are safe to repeat.
   *
   * `atomic`: all or none. If one fails, its result says why, and each of the others is ABORTED (NOT_APPLIED). No other
   * call sees a part of them, and no crash leaves one. At most 128 operations, 1 MiB in all, each on a key of its own;
   * else INVALID_ARGUMENT.
   *
   *     const [a, b] = await client.execute([op.put('a', '1'), op.get('b')]);
   */
  async execute<const Operations extends readonly Operation<unknown>[]>(
    operations: Operations,
    options: CallOptions & { atomic?: boolean | undefined } = {},
  ): Promise<SettledResults<Operations>> {
    checkOptions(options, KNOWN.execute);
    const { atomic = false } = options;
    if (operations.length === 0) return [] as unknown as SettledResults<Operations>;
    const request = {
      namespace: this.defaultNamespace,
      operations: operations.map(({ message }) => message),
      atomic,
      independent: false,
    };
    const isRepeatable = operations.every(({ message }) => isSafe(message, atomic));
    const { results } = await this.#connection.unary(Service.execute, request, options, isRepeatable);
    if (results.length !== operations.length) throw mismatch();
    return operations.map((operation, i): PromiseSettledResult<unknown> => {
      try {
        return { status: 'fulfilled', value: operation.read(results[i]!) };
      } catch (reason) {
        return { status: 'rejected', reason };
      }
    }) as SettledResults<Operations>;
  }

  /** Opens a stream of operations on the namespace. */
  pipeline(options: PipelineOptions = {}): Pipeline {
    return new Pipeline(this.#connection, this.defaultNamespace, options);
  }

  /**
   * Gives each live entry, in no particular order, as an async iterator. An entry that lives through the whole scan comes
   * exactly once, another at most once. Reads pages of 1,000 entries, about 1 MiB; leaving the loop ends the scan. Has no
   * timeout unless one is given. A scan whose connection breaks, or that the server ends as it was read too slowly, goes
   * on behind its last page by itself, with the attempts and pauses of {@link RetryOptions} for each page. It cannot where
   * the server was restarted: then it throws what broke it, and is to be begun anew.
   */
  async *scan(options: ScanOptions & CallOptions = {}): AsyncGenerator<Entry, void, undefined> {
    checkOptions(options, KNOWN.scan);
    for await (const { entries } of scanPages(this.#connection, this.defaultNamespace, options)) {
      for (const entry of entries) yield fromEntry(entry);
    }
  }

  /** Watches what dies: each death exactly once, in order of death, over breaks, too. */
  watch(options: WatchOptions = {}): Watcher {
    const checked = { ...options, namespaces: options.namespaces ?? [this.defaultNamespace] };
    return new Watcher(this.#connection, expiredSource(checked), checked);
  }

  /** Watches what is going to die within a lead time, in time to touch it. */
  watchExpiring(options: WatchExpiringOptions): Watcher {
    const checked = { ...options, namespaces: options.namespaces ?? [this.defaultNamespace] };
    return new Watcher(this.#connection, expiringSource(checked), checked);
  }

  /**
   * Watches puts, renewals and removals, as they happen, in namespaces that keep them (changeRetentionMs); else the watch
   * ends with FAILED_PRECONDITION (NO_CHANGES). For a cache beside the client, or an index. What dies is not among them:
   * {@link TimecacheClient.watch} has it. The log of changes ends with the server (`logChanged`).
   */
  watchChanges(options: WatchChangesOptions = {}): Watcher<ChangeBatch> {
    const checked = { ...options, namespaces: options.namespaces ?? [this.defaultNamespace] };
    return new Watcher(this.#connection, changesSource(checked), checked);
  }

  /**
   * Fetches events of a consumer group of the namespace, without a stream: for jobs and functions that come and go.
   * Answers with the events that are ready, or as soon as there is one, or after `waitMs`. Settle each within the group's
   * ackTimeoutMs; otherwise it is given out again, to any member or caller. Streams and fetches share a group, which is
   * made if it is not there. FAILED_PRECONDITION (SINGLE_ACTIVE); RESOURCE_EXHAUSTED (MAX_WATCHERS): too many calls wait.
   * Never tried again unasked: events of an answer that was lost come again after the ackTimeoutMs.
   */
  async fetchExpired(group: string, options: FetchOptions & CallOptions = {}): Promise<FetchedEvents> {
    checkOptions(options, KNOWN.fetch);
    const { waitMs, maxEvents, start, keysOnly = false } = options;
    const request = {
      namespace: this.defaultNamespace,
      group,
      start: startOf(start === 'EARLIEST'),
      maxEvents: toUint32(maxEvents, 'maxEvents'),
      wait: toDuration(waitMs, 'waitMs'),
      keysOnly,
      maxMessageBytes: this.#connection.maxMessageBytes,
    };
    const timeoutMs = (options.timeoutMs ?? this.timeoutMs) + Math.max(waitMs ?? 0, 0);
    const call = { ...options, timeoutMs };
    const answer = await this.#connection.unary(Service.fetchExpired, request, call, false);
    return {
      events: answer.events.map(fromEvent),
      watermark: fromTimestamp(answer.watermark),
      lost: Number(answer.lost),
      deliveredWatermark: fromTimestamp(answer.deliveredWatermark),
    };
  }

  /**
   * Becomes a member of a consumer group: every event must be settled within the group's ackTimeoutMs, by
   * {@link TimecacheClient.settle}. {@link TimecacheClient.worker} does all that by itself.
   */
  consume(options: ConsumeOptions): Watcher {
    const checked = { ...options, namespaces: options.namespaces ?? [this.defaultNamespace] };
    return new Watcher(this.#connection, groupSource(checked), checked);
  }

  /** Begins to handle the events of a consumer group of the namespace; made if it is not there. */
  worker(options: WorkerOptions, handler: EventHandler): GroupWorker {
    return new GroupWorker(this, options, handler);
  }

  /**
   * Settles events of a consumer group of the namespace, by the tokens of consume, fetchExpired or listUnsettled: a result for each, in their order, as Promise.allSettled gives
   * it. Its value is the new version of what was put back, else 0. Its reason is NOT_FOUND (EVENT_NOT_UNSETTLED: settled
   * already, a dead letter, or lost), FAILED_PRECONDITION (STALE_ATTEMPT: a nack, putBack or extend too late), INVALID_ARGUMENT,
   * or what put may fail with. Rejects where none was settled (NOT_FOUND, GROUP_NOT_FOUND), or nobody knows: then again.
   */
  async settle(
    group: string,
    settlements: readonly Settlement[],
    options: CallOptions = {},
  ): Promise<PromiseSettledResult<number>[]> {
    checkOptions(options, KNOWN.call);
    if (settlements.length === 0) return [];
    const messages = settlements.map(toSettlement);
    const results = await this.#connection.settles.do(this.defaultNamespace, group, messages, options);
    return results.map(({ error, version }) =>
      error?.code
        ? { status: 'rejected', reason: fromStatus(error) }
        : { status: 'fulfilled', value: Number(version) },
    );
  }

  /**
   * Makes a consumer group of the namespace, which begins at `start`, by default NOW. ALREADY_EXISTS (GROUP_EXISTS). A
   * resume token of another log, or one that the log has not reached, as of a watch with failOnLoss.
   */
  async createGroup(
    name: string,
    options: GroupOptions = {},
    call: CallOptions & { start?: GroupPosition | undefined } = {},
  ): Promise<Group> {
    checkOptions(options, KNOWN.group);
    checkOptions(call, KNOWN.createGroup);
    const request = {
      namespace: this.defaultNamespace,
      name,
      options: toGroupOptions(options),
      start: toPosition(call.start ?? 'NOW'),
    };
    return fromGroup((await this.#connection.unary(Groups.createGroup, request, call, false)).group);
  }

  /** Describes a group of the namespace. NOT_FOUND (GROUP_NOT_FOUND). */
  async getGroup(name: string, options: DescribeOptions = {}): Promise<Group> {
    checkOptions(options, KNOWN.describe);
    const { includeStatistics = false } = options;
    const request = { namespace: this.defaultNamespace, name, includeStatistics };
    return fromGroup((await this.#connection.unary(Groups.getGroup, request, options, true)).group);
  }

  /** Describes all groups of the namespace, ordered by name. */
  async listGroups(options: DescribeOptions = {}): Promise<Group[]> {
    checkOptions(options, KNOWN.describe);
    const { includeStatistics = false } = options;
    const groups: Group[] = [];
    let pageToken = '';
    do {
      const request = { namespace: this.defaultNamespace, pageSize: 0, pageToken, includeStatistics };
      const page = await this.#connection.unary(Groups.listGroups, request, options, true);
      groups.push(...page.groups.map(fromGroup));
      pageToken = page.nextPageToken;
    } while (pageToken);
    return groups;
  }

  /** Changes the options of a group that are set; the others stay. */
  async updateGroup(
    name: string,
    options: GroupOptions,
    call: UpdateOptions<GroupOptions> = {},
  ): Promise<Group> {
    checkOptions(options, KNOWN.group);
    checkOptions(call, KNOWN.update);
    const request = {
      group: { name, namespace: this.defaultNamespace, options: toGroupOptions(options), createdBy: '' },
      updateMask: updateMask(options, call.toDefault ?? []),
    };
    return fromGroup((await this.#connection.unary(Groups.updateGroup, request, call, false)).group);
  }

  /** Deletes a group with all that it has not settled. */
  async deleteGroup(name: string, options: CallOptions = {}): Promise<void> {
    checkOptions(options, KNOWN.call);
    const request = { namespace: this.defaultNamespace, name };
    await this.#connection.unary(Groups.deleteGroup, request, options, false);
  }

  /**
   * Moves a group: it goes on with the retained events from `position` on, those that it has settled, too, as first
   * attempts. What members hold comes back: to settle a delivery from before is STALE_ATTEMPT. Events before the position
   * that are not settled stay the group's, with their attempts, unless `dropUnsettled`. NOT_FOUND (GROUP_NOT_FOUND); a
   * resume token of another log, or one that the log has not reached, as of a watch with failOnLoss.
   */
  async seekGroup(
    name: string,
    position: GroupPosition,
    options: CallOptions & { dropUnsettled?: boolean | undefined } = {},
  ): Promise<SeekResult> {
    checkOptions(options, KNOWN.seekGroup);
    const request = {
      namespace: this.defaultNamespace,
      name,
      position: toPosition(position),
      dropUnsettled: options.dropUnsettled ?? false,
    };
    return numbers(await this.#connection.unary(Groups.seekGroup, request, options, false));
  }

  /**
   * Gives the events that a group has not settled, the oldest first, as an async iterator. Each page (100 events, with
   * values at most 1 MiB) is a call, and shows its events as they are then. {@link TimecacheClient.settle} with the token
   * of one settles it, whoever holds it. NOT_FOUND (GROUP_NOT_FOUND).
   */
  async *listUnsettled(
    name: string,
    options: UnsettledOptions & CallOptions = {},
  ): AsyncGenerator<UnsettledEvent, void, undefined> {
    checkOptions(options, KNOWN.unsettled);
    const { keyPrefix = '', includeValues = false } = options;
    let pageToken = '';
    do {
      const request = {
        ...{ namespace: this.defaultNamespace, name, pageSize: 0, pageToken, includeValues },
        keyPrefix: toBuffer(keyPrefix, 'keyPrefix'),
      };
      const page = await this.#connection.unary(Groups.listUnsettled, request, options, true);
      yield* page.events.map(fromUnsettled);
      pageToken = page.nextPageToken;
    } while (pageToken);
  }

  /** Describes the streams that are members of a group, the oldest first. NOT_FOUND (GROUP_NOT_FOUND). */
  async listMembers(name: string, options: CallOptions = {}): Promise<GroupMember[]> {
    checkOptions(options, KNOWN.call);
    const request = { namespace: this.defaultNamespace, name };
    const { members } = await this.#connection.unary(Groups.listMembers, request, options, true);
    return members.map(fromMember);
  }

  /** Makes a namespace. ALREADY_EXISTS (NAMESPACE_EXISTS). */
  async createNamespace(
    name: string,
    options: NamespaceOptions = {},
    call: CallOptions = {},
  ): Promise<Namespace> {
    checkOptions(options, KNOWN.namespace);
    checkOptions(call, KNOWN.call);
    const request = { name, options: toNamespaceOptions(options) };
    const { namespace, warnings } = await this.#connection.unary(
      Namespaces.createNamespace,
      request,
      call,
      false,
    );
    return fromNamespace(namespace, warnings);
  }

  /** Describes a namespace. */
  async getNamespace(name: string, options: DescribeOptions = {}): Promise<Namespace> {
    checkOptions(options, KNOWN.describe);
    const request = { name, includeStatistics: options.includeStatistics ?? false };
    return fromNamespace(
      (await this.#connection.unary(Namespaces.getNamespace, request, options, true)).namespace,
    );
  }

  /** Describes all namespaces, ordered by name: a round trip for each thousand. */
  async listNamespaces(options: DescribeOptions = {}): Promise<Namespace[]> {
    checkOptions(options, KNOWN.describe);
    const { includeStatistics = false } = options;
    const namespaces: Namespace[] = [];
    let pageToken = '';
    do {
      const request = { pageSize: 0, pageToken, includeStatistics };
      const page = await this.#connection.unary(Namespaces.listNamespaces, request, options, true);
      namespaces.push(...page.namespaces.map((namespace) => fromNamespace(namespace)));
      pageToken = page.nextPageToken;
    } while (pageToken);
    return namespaces;
  }

  /** Changes the options of a namespace that are set, while it is in use; the others stay. */
  async updateNamespace(
    name: string,
    options: NamespaceOptions,
    call: UpdateOptions<NamespaceOptions> = {},
  ): Promise<Namespace> {
    checkOptions(options, KNOWN.namespace);
    checkOptions(call, KNOWN.update);
    const request = {
      namespace: { name, options: toNamespaceOptions(options) },
      updateMask: updateMask(options, call.toDefault ?? []),
    };
    const { namespace, warnings } = await this.#connection.unary(
      Namespaces.updateNamespace,
      request,
      call,
      false,
    );
    return fromNamespace(namespace, warnings);
  }

  /** Deletes a namespace with everything in it; its entries make no events. */
  async deleteNamespace(name: string, options: CallOptions = {}): Promise<void> {
    checkOptions(options, KNOWN.call);
    await this.#connection.unary(Namespaces.deleteNamespace, { name }, options, false);
  }

  /** Kills the oldest bucket of a namespace now, and returns how many entries died with it. */
  async rotateNamespace(name: string, options: CallOptions = {}): Promise<number> {
    checkOptions(options, KNOWN.call);
    return Number(
      (await this.#connection.unary(Namespaces.rotateNamespace, { name }, options, false)).entries,
    );
  }

  /** Counts the live entries of a namespace by the time of their death. */
  async getDeaths(name: string, options: DeathsOptions & CallOptions = {}): Promise<DeathsAhead> {
    checkOptions(options, KNOWN.deaths);
    const maxBars = toUint32(options.maxBars ?? 0, 'maxBars');
    const request = { name, maxBars, within: toDuration(options.withinMs, 'withinMs') };
    return fromDeaths(await this.#connection.unary(Namespaces.getDeaths, request, options, true));
  }

  /** Names the keys of a namespace that are used most, by a sample of one in 256 operations of about the last minute. */
  async getHotKeys(name: string, options: HotKeysOptions & CallOptions = {}): Promise<HotKeys> {
    checkOptions(options, KNOWN.hotKeys);
    const request = { name, maxKeys: toUint32(options.maxKeys ?? 0, 'maxKeys') };
    return fromHotKeys(await this.#connection.unary(Namespaces.getHotKeys, request, options, true));
  }

  /** The server itself: version, age, limits and how far they are used. */
  async getServer(options: CallOptions = {}): Promise<ServerInfo> {
    checkOptions(options, KNOWN.call);
    return fromServer(await this.#connection.unary(Server.getServer, {}, options, true));
  }

  /**
   * The cluster as the node that calls go to now sees it, whether it owns or not. FAILED_PRECONDITION (NO_CLUSTER) of a
   * server that is no node.
   */
  async getCluster(options: CallOptions = {}): Promise<ClusterInfo> {
    checkOptions(options, KNOWN.call);
    return fromCluster(await this.#connection.unary(Server.getCluster, {}, options, true));
  }

  /**
   * Makes the owner hand the ownership over to the standby of that name, or to the one that has replayed most. Gives its
   * name once the ownership is released; calls and streams then go on there by themselves. FAILED_PRECONDITION:
   * NO_CLUSTER, or NO_SUCCESSOR (no such standby has caught up, and the owner goes on).
   */
  async handOver(to = '', options: CallOptions = {}): Promise<string> {
    checkOptions(options, KNOWN.call);
    return (await this.#connection.unary(Server.handOver, { to }, options, false)).to;
  }

  /** Who this client is to the server, and what it may do. */
  async whoAmI(options: CallOptions = {}): Promise<CallerInfo> {
    checkOptions(options, KNOWN.call);
    return await this.#connection.unary(Server.whoAmI, {}, options, true);
  }

  /** Describes the connections of all clients, the oldest first. With access rules it takes ADMIN on "*". */
  async listConnections(options: CallOptions = {}): Promise<ConnectionInfo[]> {
    checkOptions(options, KNOWN.call);
    const connections: ConnectionInfo[] = [];
    let pageToken = '';
    do {
      const request = { pageSize: 0, pageToken };
      const page = await this.#connection.unary(Server.listConnections, request, options, true);
      connections.push(...page.connections.map(fromConnection));
      pageToken = page.nextPageToken;
    } while (pageToken);
    return connections;
  }

  /**
   * Closes a connection: its calls end with UNAVAILABLE, and its client may connect again. NOT_FOUND
   * (CONNECTION_NOT_FOUND). Permission as of {@link TimecacheClient.listConnections}.
   */
  async closeConnection(id: number, options: CallOptions = {}): Promise<void> {
    checkOptions(options, KNOWN.call);
    await this.#connection.unary(Server.closeConnection, { id: toUint64(id, 'id') }, options, false);
  }

  /** The last 256 calls that took longer than the server's log.slow_call. Permission as of listConnections. */
  async listSlowCalls(options: CallOptions = {}): Promise<SlowCalls> {
    checkOptions(options, KNOWN.call);
    return fromSlowCalls(await this.#connection.unary(Server.listSlowCalls, {}, options, true));
  }

  /**
   * Reads a backup of the server's journal, a tar archive, piece by piece. Only an iterator that ends without throwing
   * has given all of it. The server waits for who reads slowly, but not longer than 30 s for a piece.
   * FAILED_PRECONDITION (NO_JOURNAL); RESOURCE_EXHAUSTED (MAX_BACKUPS).
   */
  async *backupJournal(options: CallOptions = {}): AsyncGenerator<BackupPiece, void, undefined> {
    checkOptions(options, KNOWN.call);
    const span = beginCall(Server.backupJournal.path, {}, this.address);
    const call = { ...options, traceparent: options.traceparent ?? span.traceparent };
    try {
      const stream = await this.#connection.serverStream(Server.backupJournal, {}, call);
      try {
        for (let piece = await stream.next(); piece; piece = await stream.next()) {
          yield { totalBytes: Number(piece.totalBytes), data: piece.data };
        }
      } finally {
        stream.cancel();
      }
    } catch (error) {
      span.end(error);
      throw error;
    } finally {
      span.end();
    }
  }

  /** Whether the server serves, which needs no right. */
  async isServing(options: CallOptions = {}): Promise<boolean> {
    checkOptions(options, KNOWN.call);
    const { status } = await this.#connection.unary(HealthService.check, { service: '' }, options, true);
    return status === HealthCheckResponse_ServingStatus.SERVING;
  }
}
