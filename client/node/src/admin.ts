// Namespaces, groups and the server, as the client describes them.

import {
  UnsettledState as UnsettledStateEnum,
  type Group as GroupMessage,
  type GroupMember as GroupMemberMessage,
  type GroupOptions as GroupOptionsMessage,
  type GroupPosition as GroupPositionMessage,
  type GroupStatistics as GroupStatisticsMessage,
  type UnsettledEvent as UnsettledEventMessage,
} from './gen/timecache/v1/groups.js';
import {
  Durability as DurabilityEnum,
  LimitPolicy as LimitPolicyEnum,
  RestartPolicy as RestartPolicyEnum,
  type GetDeathsResponse,
  type GetHotKeysResponse,
  type Namespace as NamespaceMessage,
  type NamespaceOptions as NamespaceOptionsMessage,
  type NamespaceStatistics as NamespaceStatisticsMessage,
} from './gen/timecache/v1/namespaces.js';
import {
  CheckpointState as CheckpointStateEnum,
  NodeRole as NodeRoleEnum,
  type ClusterNode as ClusterNodeMessage,
  type Connection as ConnectionMessage,
  type GetClusterResponse,
  type GetServerResponse,
  type JournalStatus as JournalStatusMessage,
  type LimitUse as LimitUseMessage,
  type ListSlowCallsResponse,
  type MemoryShares as MemorySharesMessage,
} from './gen/timecache/v1/server.js';
import { WatchStart as WatchStartEnum } from './gen/timecache/v1/watch.js';
import type { Names } from './options.js';
import {
  type Bytes,
  type Numbers,
  type Time,
  enumName,
  enumValue,
  fromDuration,
  fromTimestamp,
  numbers,
  toBuffer,
  toDuration,
  toTimestamp,
  toUint32,
  toUint64,
} from './values.js';
import { fromEvent, type ExpiredEvent } from './watcher.js';

/** What to do with a put that would pass maxEntries or maxBytes: refuse it, or kill the bucket that dies next. */
export type LimitPolicy = 'REJECT' | 'EVICT_OLDEST';
/** What a namespace survives: nothing, a crash of the process, a loss of power. All but MEMORY need a journal. */
export type Durability = 'MEMORY' | 'ASYNC' | 'SYNC' | 'REPLICATED';
/** What a restart means for the entries of a durable namespace: what was due dies at start, or downtime does not count. */
export type RestartPolicy = 'FIRE' | 'PAUSE';

/**
 * How a namespace behaves. Unset: the default where one is made, no change where one is updated; in an answer all are
 * set. namespaces.proto has more about each.
 */
export interface NamespaceOptions {
  /** Time to live of an entry that brings none of its own. 1 ms to 10 years. Default 30,000. */
  ttlMs?: number | undefined;
  /** An entry lives at most ttl / (numBuckets - 1) too long. 2 to 100,000. Default 101. */
  numBuckets?: number | undefined;
  /** Longest own time to live of an entry. ttl to 10 years. Default 7 days, or ttl if that is longer. */
  maxTtlMs?: number | undefined;
  /** Whether get renews the time to live. Default false. */
  sliding?: boolean | undefined;
  /** Most live entries. 0: no limit. Default 0. */
  maxEntries?: number | undefined;
  /** Most bytes of live keys and values. 0: no limit. Default 0. */
  maxBytes?: number | undefined;
  /** What happens at these two. Default REJECT. */
  limitPolicy?: LimitPolicy | undefined;
  /** Largest value. 1 B to 16 MiB. Default 1 MiB. */
  maxValueBytes?: number | undefined;
  /** How long an event stays readable for watches that start at EARLIEST. 0 to 7 days. Default 5 min. */
  eventRetentionMs?: number | undefined;
  /** The memory for such events. 1 MiB to 64 GiB. Default 64 MiB. */
  eventRetentionBytes?: number | undefined;
  /** Parts of the map with a lock of their own: a power of two from 1 to 256, fixed at creation. Default 16. */
  numShards?: number | undefined;
  /** Where events of groups go that were given out maxAttempts times. Empty: nowhere. Default empty. */
  deadLetterNamespace?: string | undefined;
  /**
   * Partitions, each with entries, events and groups of its own, and its share of the limits: 1 to 64, fixed at
   * creation. Keys of an atomic batch must be in one: those with the same text in {}, as order:{42} and lock:{42}, are.
   * Default: the server's default_partitions, 1.
   */
  numPartitions?: number | undefined;
  /** Most operations a second. 0: no limit. Default 0. */
  maxOperationsPerSecond?: number | undefined;
  /** Memory for the unsettled events of all groups. 0: maxBytes + eventRetentionBytes, or 256 MiB. Default 0. */
  maxBacklogBytes?: number | undefined;
  /** unusedTtlMs of groups that their first member makes. Default 7 days. */
  unusedGroupTtlMs?: number | undefined;
  /** What it survives. Whether it is MEMORY is fixed at creation. Default MEMORY. */
  durability?: Durability | undefined;
  /** What a restart means for its entries. Default FIRE. */
  restartPolicy?: RestartPolicy | undefined;
  /** Longest life of an entry since its createTime, whatever renews it or is put over it. 0: no bound. Default 0. */
  maxLifeMs?: number | undefined;
  /** How long the answer to a call with an idempotencyId is remembered. 0: no call may have one. Default 0. */
  idempotencyWindowMs?: number | undefined;
  /** How many answers are. 1,000 to 1,000,000. Default 100,000. */
  idempotencyMaxIds?: number | undefined;
  /**
   * How long puts, renewals and removals stay readable for watchChanges: 1 ms to 7 days. 0: they are not kept, and cost
   * nothing. Default 0.
   */
  changeRetentionMs?: number | undefined;
  /** Memory for them; beyond it the oldest are dropped. 1 MiB to 64 GiB. Default 64 MiB. */
  changeRetentionBytes?: number | undefined;
}

/** The names of {@link NamespaceOptions}. Internal. */
export const NAMESPACE_OPTIONS: Names<NamespaceOptions> = {
  ttlMs: true,
  numBuckets: true,
  maxTtlMs: true,
  sliding: true,
  maxEntries: true,
  maxBytes: true,
  limitPolicy: true,
  maxValueBytes: true,
  eventRetentionMs: true,
  eventRetentionBytes: true,
  numShards: true,
  numPartitions: true,
  deadLetterNamespace: true,
  maxOperationsPerSecond: true,
  maxBacklogBytes: true,
  unusedGroupTtlMs: true,
  durability: true,
  restartPolicy: true,
  maxLifeMs: true,
  idempotencyWindowMs: true,
  idempotencyMaxIds: true,
  changeRetentionMs: true,
  changeRetentionBytes: true,
};

/** What a namespace holds and has done since it was made: as NamespaceStatistics in namespaces.proto. */
export type NamespaceStatistics = Numbers<
  Omit<NamespaceStatisticsMessage, 'watermark' | 'latenessP50' | 'latenessP99' | 'latenessMax'>
> & {
  /** Everything that died at or before this moment has been published. */
  watermark: Time;
  /** How late events were, in ms: at most this for half of them. */
  latenessP50Ms: number;
  /** At most this for 99 % of them. */
  latenessP99Ms: number;
  /** The latest one. */
  latenessMaxMs: number;
};

/** Which deaths getDeaths counts, and how finely. */
export interface DeathsOptions {
  /** Most bars: 1 to 1,000. Default 60. */
  maxBars?: number | undefined;
  /** Only what dies within this time from now is in bars. Default: all. */
  withinMs?: number | undefined;
}

/** Entries that die after `begin`, and at or before `end`. */
export interface DeathBar {
  begin: Time;
  end: Time;
  entries: number;
  /** Of their keys and values. */
  bytes: number;
}

/** What of a namespace dies when, unless it is renewed, removed or put anew until then. */
export interface DeathsAhead {
  /** What lives then is counted. */
  serverTime: Time;
  /** In order of time, of equal length, from the next death on. */
  bars: DeathBar[];
  /** What dies after the last bar. */
  laterEntries: number;
  laterBytes: number;
}

/** A namespace. */
export interface Namespace {
  /** 1 to 63 characters: a-z, 0-9, and between these also `-` and `.`. */
  name: string;
  /** The options in force. */
  options: Required<NamespaceOptions>;
  /** Where they were asked for. */
  statistics: NamespaceStatistics | undefined;
  /** ttl / (numBuckets - 1): the most that an entry may outlive its ttl, in ms. */
  bucketWidthMs: number;
  /** Of a create or update: what is allowed and probably not meant, a sentence each; for people. Else empty. */
  warnings: string[];
}

/** How a group behaves. Unset: as in {@link NamespaceOptions}. */
export interface GroupOptions {
  /** How long a member has to settle an event before it is given to another. 10 ms to 7 days. Default 30,000. */
  ackTimeoutMs?: number | undefined;
  /** How often an event is given out before it is a dead letter, if there is a place for these. Default 5. */
  maxAttempts?: number | undefined;
  /** Memory for unsettled events; beyond it the oldest are lost. 1 MiB to 64 GiB. Default 256 MiB. */
  maxBacklogBytes?: number | undefined;
  /** How long the group may be without a member before it is deleted. 0: it stays. Default 0. */
  unusedTtlMs?: number | undefined;
  /**
   * How long an event waits after its first attempt that counted, if the nack names no delay, or it was not settled in
   * time; after each further one retryMultiplier times as long, up to maxRetryDelayMs; each shortened at random by up to
   * retryJitterPercent. Defaults: 0, 2, 7 days, 0.
   */
  retryDelayMs?: number | undefined;
  retryMultiplier?: number | undefined;
  maxRetryDelayMs?: number | undefined;
  retryJitterPercent?: number | undefined;
  /** Nothing is given out until this is false again. Default false. */
  paused?: boolean | undefined;
  /** Only events whose keys begin with this are the group's. At most 256 B, fixed when it is made. Default empty: all. */
  keyPrefix?: Bytes | undefined;
  /**
   * The oldest member gets all events, in order of death as far as attempts do not fail; the next one once its stream has
   * ended. fetchExpired is refused. Default false.
   */
  singleActive?: boolean | undefined;
  /**
   * The waits after the first, the second, ... attempt that counted, in place of the schedule above; then the last one
   * again. At most 32, each up to 7 days. Default []: none.
   */
  retryDelaysMs?: readonly number[] | undefined;
}

/** The names of {@link GroupOptions}. Internal. */
export const GROUP_OPTIONS: Names<GroupOptions> = {
  ackTimeoutMs: true,
  maxAttempts: true,
  maxBacklogBytes: true,
  unusedTtlMs: true,
  retryDelayMs: true,
  retryMultiplier: true,
  maxRetryDelayMs: true,
  retryJitterPercent: true,
  paused: true,
  keyPrefix: true,
  singleActive: true,
  retryDelaysMs: true,
};

/** What a group holds and has done since it was made: as GroupStatistics in groups.proto. */
export type GroupStatistics = Numbers<Omit<GroupStatisticsMessage, 'oldestUnsettled' | 'unusedSince'>> & {
  /** When the oldest unsettled event died; undefined: all is settled. */
  oldestUnsettled: Time | undefined;
  /** Since when the group has no member; undefined: it has one. */
  unusedSince: Time | undefined;
};

/** A consumer group. */
export interface Group {
  /** As for a namespace. Unique in its namespace. */
  name: string;
  /** The namespace whose events it shares out. */
  namespace: string;
  /** The options in force. */
  options: Required<GroupOptions>;
  /** Where they were asked for. */
  statistics: GroupStatistics | undefined;
  /** The principal that made it. */
  createdBy: string;
}

/** A limit, and what counts towards it now. `max` 0: no limit. */
export type LimitUse = Numbers<LimitUseMessage>;
/** What holds the memory that the server's limit counts. */
export type MemoryShares = Numbers<MemorySharesMessage>;

/** The journal of a server with durable namespaces: as JournalStatus in server.proto. */
export type JournalStatus = Numbers<
  Omit<JournalStatusMessage, 'waitingBytes' | 'commitTime' | 'commitP99' | 'checkpointState'>
> & {
  /** Changes that wait for the disk. */
  waitingBytes: LimitUse | undefined;
  /** What all commits took together, in ms. */
  commitTimeMs: number;
  /** 99 % of commits took no longer; undefined: there was none. */
  commitP99Ms: number | undefined;
  /** What the journal does to become smaller. */
  checkpointState: 'IDLE' | 'WRITING' | 'WAITING' | undefined;
};

/** The server itself. Limits and journal are undefined for who may not read all namespaces. */
export interface ServerInfo {
  /** Such as "0.1.0". */
  version: string;
  /** When it started, on its own clock. */
  startTime: Time;
  /** When it answered, on the same clock. */
  now: Time;
  /** It has been told to stop. */
  draining: boolean;
  /** Namespaces that there are, in number. */
  namespaces: LimitUse | undefined;
  /** Live entries of all namespaces, in number. Those that died within the last moments may still be counted. */
  entries: LimitUse | undefined;
  /** Their keys and values, in bytes. */
  bytes: LimitUse | undefined;
  /** Streams of watch, watchExpiring and consume, those of workers among them, in number. */
  watchers: LimitUse | undefined;
  /** The memory of all namespaces, with events and backlogs, in bytes. */
  memoryBytes: LimitUse | undefined;
  /** Connections of all listeners, in number. */
  connections: LimitUse | undefined;
  /** What holds the used `memoryBytes`, in bytes. */
  memoryShares: MemoryShares | undefined;
  /** Also undefined if it has none. */
  journal: JournalStatus | undefined;
  /**
   * How far the machine's wall clock is ahead of `now`, in ms; negative: behind it. The server's time is slewed towards
   * it. Undefined with a virtual clock.
   */
  clockOffsetMs: number | undefined;
}

/** What a node of a cluster does: replays the journal, finishes that as the owner, serves, or is silent. */
export type NodeRole = 'STANDBY' | 'TAKING_OVER' | 'OWNER' | 'GONE';

/** A node of a cluster, by its last heartbeat. */
export interface ClusterNode {
  name: string;
  /** `host:port` for clients. */
  address: string;
  /** Such as "0.1.0". */
  version: string;
  /** Undefined: a role that this client is too old to know. */
  role: NodeRole | undefined;
  sinceHeartbeatMs: number;
  /** Messages of the journal that it had not replayed then. */
  lagMessages: number;
  /** Whether it may take over; true of the owner. */
  caughtUp: boolean;
}

/** A partition of the journal with the namespaces in it, where each has an owner of its own. */
export interface ClusterSlot {
  /** The name of the node; empty: none owns it. */
  owner: string;
  /** The one that takes over if the owner is gone; empty: none. */
  standby: string;
  standbyReady: boolean;
  /** Empty: it stays. */
  movesTo: string;
}

/** A setting of a topic that can lose acknowledged writes, or stop the cluster. */
export interface TopicSetting {
  topic: string;
  /** As Kafka names it, such as "min.insync.replicas". */
  setting: string;
  value: string;
  /** In words, such as "2 or more". */
  wanted: string;
}

/** A cluster, as one of its nodes sees it. */
export interface ClusterInfo {
  name: string;
  /** The one that answered. */
  node: string;
  /** By name. */
  nodes: ClusterNode[];
  /** The name of the node that owns; empty: none does, or each slot has its own. */
  owner: string;
  /** The identity of its takeover. */
  claim: number;
  /** When it took over. */
  ownerSince: Time | undefined;
  /** Until the lease of the node that answered ends; negative: since. Undefined unless it owns. */
  leaseLeftMs: number | undefined;
  /** How far its clock is ahead of the brokers'; negative: behind. */
  clockSkewMs: number;
  /** The standby that a handover without a name goes to; empty: none can take over. */
  successor: string;
  /** `host:port` of Kafka's brokers. */
  brokers: string[];
  wrongSettings: TopicSetting[];
  /** What keeps the node that answered from taking over; empty: nothing. */
  waitsFor: string;
  /** By number, where nodes share the ownership; else empty. */
  slots: ClusterSlot[];
}

export function toNamespaceOptions(options: NamespaceOptions): NamespaceOptionsMessage {
  return {
    ttl: toDuration(options.ttlMs, 'ttlMs'),
    numBuckets: toUint32(options.numBuckets, 'numBuckets'),
    maxTtl: toDuration(options.maxTtlMs, 'maxTtlMs'),
    sliding: options.sliding,
    maxEntries: toUint64(options.maxEntries, 'maxEntries'),
    maxBytes: toUint64(options.maxBytes, 'maxBytes'),
    limitPolicy: enumValue(LimitPolicyEnum, 'LIMIT_POLICY_', options.limitPolicy, 'limitPolicy'),
    maxValueBytes: toUint32(options.maxValueBytes, 'maxValueBytes'),
    eventRetention: toDuration(options.eventRetentionMs, 'eventRetentionMs'),
    eventRetentionBytes: toUint64(options.eventRetentionBytes, 'eventRetentionBytes'),
    numShards: toUint32(options.numShards, 'numShards'),
    numPartitions: toUint32(options.numPartitions, 'numPartitions'),
    deadLetterNamespace: options.deadLetterNamespace,
    maxOperationsPerSecond: toUint32(options.maxOperationsPerSecond, 'maxOperationsPerSecond'),
    maxBacklogBytes: toUint64(options.maxBacklogBytes, 'maxBacklogBytes'),
    unusedGroupTtl: toDuration(options.unusedGroupTtlMs, 'unusedGroupTtlMs'),
    durability: enumValue(DurabilityEnum, 'DURABILITY_', options.durability, 'durability'),
    restartPolicy: enumValue(RestartPolicyEnum, 'RESTART_POLICY_', options.restartPolicy, 'restartPolicy'),
    maxLife: toDuration(options.maxLifeMs, 'maxLifeMs'),
    idempotencyWindow: toDuration(options.idempotencyWindowMs, 'idempotencyWindowMs'),
    idempotencyMaxIds: toUint64(options.idempotencyMaxIds, 'idempotencyMaxIds'),
    changeRetention: toDuration(options.changeRetentionMs, 'changeRetentionMs'),
    changeRetentionBytes: toUint64(options.changeRetentionBytes, 'changeRetentionBytes'),
  };
}

function fromNamespaceOptions(options: Partial<NamespaceOptionsMessage>): Required<NamespaceOptions> {
  return {
    ttlMs: fromDuration(options.ttl),
    numBuckets: options.numBuckets ?? 0,
    maxTtlMs: fromDuration(options.maxTtl),
    sliding: options.sliding ?? false,
    maxEntries: Number(options.maxEntries ?? 0),
    maxBytes: Number(options.maxBytes ?? 0),
    limitPolicy: enumName(LimitPolicyEnum, 'LIMIT_POLICY_', options.limitPolicy ?? 0) as LimitPolicy,
    maxValueBytes: options.maxValueBytes ?? 0,
    eventRetentionMs: fromDuration(options.eventRetention),
    eventRetentionBytes: Number(options.eventRetentionBytes ?? 0),
    numShards: options.numShards ?? 0,
    numPartitions: options.numPartitions ?? 0,
    deadLetterNamespace: options.deadLetterNamespace ?? '',
    maxOperationsPerSecond: options.maxOperationsPerSecond ?? 0,
    maxBacklogBytes: Number(options.maxBacklogBytes ?? 0),
    unusedGroupTtlMs: fromDuration(options.unusedGroupTtl),
    durability: enumName(DurabilityEnum, 'DURABILITY_', options.durability ?? 0) as Durability,
    restartPolicy: enumName(
      RestartPolicyEnum,
      'RESTART_POLICY_',
      options.restartPolicy ?? 0,
    ) as RestartPolicy,
    maxLifeMs: fromDuration(options.maxLife),
    idempotencyWindowMs: fromDuration(options.idempotencyWindow),
    idempotencyMaxIds: Number(options.idempotencyMaxIds ?? 0),
    changeRetentionMs: fromDuration(options.changeRetention),
    changeRetentionBytes: Number(options.changeRetentionBytes ?? 0),
  };
}

export function fromNamespace(namespace: NamespaceMessage | undefined, warnings: string[] = []): Namespace {
  return {
    name: namespace?.name ?? '',
    options: fromNamespaceOptions(namespace?.options ?? {}),
    statistics: namespace?.statistics && fromNamespaceStatistics(namespace.statistics),
    bucketWidthMs: fromDuration(namespace?.bucketWidth),
    warnings,
  };
}

function fromNamespaceStatistics(message: NamespaceStatisticsMessage): NamespaceStatistics {
  const { watermark, latenessP50, latenessP99, latenessMax, ...counts } = message;
  return {
    ...numbers(counts),
    watermark: fromTimestamp(watermark),
    latenessP50Ms: fromDuration(latenessP50),
    latenessP99Ms: fromDuration(latenessP99),
    latenessMaxMs: fromDuration(latenessMax),
  };
}

export function fromDeaths(message: GetDeathsResponse): DeathsAhead {
  return {
    serverTime: fromTimestamp(message.serverTime),
    bars: message.bars.map((bar) => ({
      begin: fromTimestamp(bar.begin),
      end: fromTimestamp(bar.end),
      entries: Number(bar.entries),
      bytes: Number(bar.bytes),
    })),
    laterEntries: Number(message.laterEntries),
    laterBytes: Number(message.laterBytes),
  };
}

export function toGroupOptions(options: GroupOptions): GroupOptionsMessage {
  return {
    ackTimeout: toDuration(options.ackTimeoutMs, 'ackTimeoutMs'),
    maxAttempts: toUint32(options.maxAttempts, 'maxAttempts'),
    maxBacklogBytes: toUint64(options.maxBacklogBytes, 'maxBacklogBytes'),
    unusedTtl: toDuration(options.unusedTtlMs, 'unusedTtlMs'),
    retryDelay: toDuration(options.retryDelayMs, 'retryDelayMs'),
    retryMultiplier: toUint32(options.retryMultiplier, 'retryMultiplier'),
    maxRetryDelay: toDuration(options.maxRetryDelayMs, 'maxRetryDelayMs'),
    retryJitterPercent: toUint32(options.retryJitterPercent, 'retryJitterPercent'),
    paused: options.paused,
    keyPrefix: options.keyPrefix === undefined ? undefined : toBuffer(options.keyPrefix, 'keyPrefix'),
    singleActive: options.singleActive,
    retryDelays: (options.retryDelaysMs ?? []).map((ms) => toDuration(ms, 'retryDelaysMs')),
  };
}

/**
 * Where a group begins, or goes on: with what dies from now on, with the oldest event that is retained, with the first
 * retained event that died after a time (1970 or later), or with the event after the batch of a watch that had this token.
 */
export type GroupPosition = 'NOW' | 'EARLIEST' | { time: Time | Date } | { resumeToken: Uint8Array };

export function toPosition(position: GroupPosition): GroupPositionMessage {
  if (position === 'NOW' || position === 'EARLIEST') {
    const value = enumValue(WatchStartEnum, 'WATCH_START_', position, 'the position');
    return { position: { $case: 'start', value } };
  }
  if ('time' in position) return { position: { $case: 'time', value: toTimestamp(position.time, 'time') } };
  return { position: { $case: 'resumeToken', value: toBuffer(position.resumeToken, 'resumeToken') } };
}

/** What seekGroup did. */
export interface SeekResult {
  /** Events that the group is to deliver now, those that it kept included. */
  unsettled: number;
  /** Events that dropUnsettled has dropped. */
  dropped: number;
}

/**
 * What an unsettled event waits for: to be delivered; an earlier event of its key to be settled; a member, or a caller of
 * fetchExpired, to settle it; its next attempt; to become a dead letter.
 */
export type UnsettledState = 'READY' | 'BLOCKED_BY_KEY' | 'IN_FLIGHT' | 'DELAYED' | 'DEAD_LETTERING';

/** An event that a group has not settled, as it was when its page was made. */
export interface UnsettledEvent {
  /**
   * With eventId, attempt (0: not delivered yet), returns, lastReason, and a deliveryToken by which an operator settles
   * it, whoever holds it.
   */
  event: ExpiredEvent;
  /** Undefined: one that this client is too old to know. */
  state: UnsettledState | undefined;
  /** In flight: the id of the {@link GroupMember} that holds it; 0: a caller of fetchExpired. */
  memberId: number;
  /** In flight: since when. */
  since: Time | undefined;
  /** In flight: when it times out. Delayed: when it may be delivered. Dead-lettering: when that is tried next. */
  due: Time | undefined;
}

export function fromUnsettled(message: UnsettledEventMessage): UnsettledEvent {
  return {
    event: fromEvent(message.event!),
    state: enumName(UnsettledStateEnum, 'UNSETTLED_STATE_', message.state) as UnsettledState | undefined,
    memberId: Number(message.memberId),
    since: message.since && fromTimestamp(message.since),
    due: message.due && fromTimestamp(message.due),
  };
}

/** A stream that is a member of a group. */
export interface GroupMember {
  /** In its group, as long as the server runs. Never 0. */
  id: number;
  /** Who called; "anonymous" without access rules. */
  principal: string;
  /** Where from, as gRPC names it: "ipv4:10.0.0.7:41234". */
  peer: string;
  since: Time;
  /** Events that it holds. */
  inFlight: number;
  /** How many it has asked for at most. */
  maxInFlight: number;
  /** How many it may hold now: fewer if it let events time out. */
  window: number;
  /** It let an event time out, and has settled none since. */
  unresponsive: boolean;
  /** Whether it is the one that gets events, in a group that is singleActive; else true. */
  active: boolean;
}

export function fromMember(message: GroupMemberMessage): GroupMember {
  return { ...numbers(message), since: fromTimestamp(message.since) };
}

/** How many hot keys to name. */
export interface HotKeysOptions {
  /** 1 to 64. Default 10. */
  maxKeys?: number | undefined;
}

/** A key, and how it is used. */
export interface HotKey {
  key: Buffer;
  /** Operations on it that change nothing, estimated. */
  readsPerSecond: number;
  /** Others, estimated. */
  writesPerSecond: number;
  /** Of its value, at the last operation of the sample that saw one. */
  valueBytes: number;
}

/** The keys of a namespace that are used most, by a sample of its operations. */
export interface HotKeys {
  /** The most used first. Those of fewer than four operations in the sample are left out. */
  keys: HotKey[];
  /** The time that the sample covers. */
  windowMs: number;
  /** The operations in it. */
  sampled: number;
  /** All operations on the namespace, estimated. */
  operationsPerSecond: number;
}

export function fromHotKeys(message: GetHotKeysResponse): HotKeys {
  return {
    keys: message.keys.map((key) => numbers(key)),
    windowMs: fromDuration(message.window),
    sampled: Number(message.sampled),
    operationsPerSecond: message.operationsPerSecond,
  };
}

/** A pattern of namespaces, and what a caller may do there. */
export interface Permission {
  /** As in the access rules: "orders", "team-a.*", "*". */
  pattern: string;
  /** Such as "READ". */
  verbs: string[];
}

/** A caller, as the server sees it. */
export interface CallerInfo {
  /** Its name; "anonymous" without access rules. */
  principal: string;
  /** Where the call came from, as gRPC names it: "ipv4:10.0.0.7:41234". */
  peer: string;
  /** Empty without access rules, where every caller may do everything. */
  permissions: Permission[];
  /** Whether the server has access rules. */
  accessRules: boolean;
}

/** A connection of a client. */
export interface ConnectionInfo {
  /** As long as the server runs. Never 0. */
  id: number;
  /** Where from: "10.0.0.7:41234", or "unix" with the process: "unix:pid=4711". */
  peer: string;
  since: Time;
  /** Of its last call; empty: it has made none. */
  principal: string;
  /** Calls and streams that are open. */
  openCalls: number;
  /** Calls and streams that have begun. */
  calls: number;
  /** Since its last call began or ended; undefined: it has made none. */
  idleMs: number | undefined;
  /** Of its last call. */
  userAgent: string;
}

export function fromConnection({ idle, ...message }: ConnectionMessage): ConnectionInfo {
  return {
    ...numbers(message),
    since: fromTimestamp(message.since),
    idleMs: idle && fromDuration(idle),
  };
}

/** A call that took long. */
export interface SlowCall {
  /** When it ended. */
  time: Time;
  /** Such as "timecache.v1.TimeCacheService/Put". */
  method: string;
  /** Empty: it is not about one. */
  namespace: string;
  durationMs: number;
  /** The name of its gRPC code: "OK". */
  code: string;
  /** How many it had. */
  operations: number;
  principal: string;
  peer: string;
  /** The client's, or the server's own. */
  requestId: string;
}

/** The server's last calls that took long. */
export interface SlowCalls {
  /** At most 256, the latest first. */
  calls: SlowCall[];
  /** Calls that took longer are among them; undefined: it is turned off. */
  thresholdMs: number | undefined;
}

export function fromSlowCalls({ calls, threshold }: ListSlowCallsResponse): SlowCalls {
  return {
    calls: calls.map(({ duration, ...call }) => ({
      ...numbers(call),
      time: fromTimestamp(call.time),
      durationMs: fromDuration(duration),
    })),
    thresholdMs: threshold && fromDuration(threshold),
  };
}

export function fromGroup(group: GroupMessage | undefined): Group {
  return {
    name: group?.name ?? '',
    namespace: group?.namespace ?? '',
    options: {
      ackTimeoutMs: fromDuration(group?.options?.ackTimeout),
      maxAttempts: group?.options?.maxAttempts ?? 0,
      maxBacklogBytes: Number(group?.options?.maxBacklogBytes ?? 0),
      unusedTtlMs: fromDuration(group?.options?.unusedTtl),
      retryDelayMs: fromDuration(group?.options?.retryDelay),
      retryMultiplier: group?.options?.retryMultiplier ?? 0,
      maxRetryDelayMs: fromDuration(group?.options?.maxRetryDelay),
      retryJitterPercent: group?.options?.retryJitterPercent ?? 0,
      paused: group?.options?.paused ?? false,
      keyPrefix: group?.options?.keyPrefix ?? Buffer.alloc(0),
      singleActive: group?.options?.singleActive ?? false,
      retryDelaysMs: (group?.options?.retryDelays ?? []).map(fromDuration),
    },
    statistics: group?.statistics && fromGroupStatistics(group.statistics),
    createdBy: group?.createdBy ?? '',
  };
}

function fromGroupStatistics(message: GroupStatisticsMessage): GroupStatistics {
  const { oldestUnsettled, unusedSince, ...counts } = message;
  return {
    ...numbers(counts),
    oldestUnsettled: oldestUnsettled && fromTimestamp(oldestUnsettled),
    unusedSince: unusedSince && fromTimestamp(unusedSince),
  };
}

/**
 * The mask of an update that changes the options that are set and gives those that `toDefault` names their defaults;
 * undefined where the options that are set say it all. A list that is empty goes as one that is not set.
 */
export function updateMask(options: object, toDefault: readonly string[]): string[] | undefined {
  const isEmpty = (value: unknown) => Array.isArray(value) && value.length === 0;
  if (toDefault.length === 0 && !Object.values(options).some(isEmpty)) return undefined;
  const set = Object.entries(options).filter(([, value]) => value !== undefined);
  const names = new Set([...set.map(([name]) => name), ...toDefault]);
  const protoName = (name: string) =>
    name.replace(/Ms$/, '').replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return [...names].map((name) => `options.${protoName(name)}`);
}

export function fromServer(server: GetServerResponse): ServerInfo {
  const use = (limit: LimitUseMessage | undefined) => limit && numbers(limit);
  return {
    version: server.version,
    startTime: fromTimestamp(server.startTime),
    now: fromTimestamp(server.now),
    draining: server.draining,
    namespaces: use(server.namespaces),
    entries: use(server.entries),
    bytes: use(server.bytes),
    watchers: use(server.watchers),
    memoryBytes: use(server.memoryBytes),
    connections: use(server.connections),
    memoryShares: server.memoryShares && numbers(server.memoryShares),
    journal: server.journal && fromJournal(server.journal),
    clockOffsetMs: server.clockOffset && fromDuration(server.clockOffset),
  };
}

export function fromCluster(cluster: GetClusterResponse): ClusterInfo {
  return {
    name: cluster.name,
    node: cluster.node,
    nodes: cluster.nodes.map(fromClusterNode),
    owner: cluster.owner,
    claim: Number(cluster.claim),
    ownerSince: cluster.ownerSince && fromTimestamp(cluster.ownerSince),
    leaseLeftMs: cluster.leaseLeft && fromDuration(cluster.leaseLeft),
    clockSkewMs: fromDuration(cluster.clockSkew),
    successor: cluster.successor,
    brokers: cluster.brokers,
    wrongSettings: cluster.wrongSettings.map(({ topic, setting, value, wanted }) => ({
      ...{ topic, setting, value, wanted },
    })),
    waitsFor: cluster.waitsFor,
    slots: cluster.slots.map(({ owner, standby, standbyReady, movesTo }) => ({
      owner,
      standby,
      standbyReady,
      movesTo,
    })),
  };
}

function fromClusterNode(node: ClusterNodeMessage): ClusterNode {
  return {
    name: node.name,
    address: node.address,
    version: node.version,
    role: enumName(NodeRoleEnum, 'NODE_ROLE_', node.role) as NodeRole | undefined,
    sinceHeartbeatMs: fromDuration(node.sinceHeartbeat),
    lagMessages: Number(node.lagMessages),
    caughtUp: node.caughtUp,
  };
}

function fromJournal(journal: JournalStatusMessage): JournalStatus {
  const { waitingBytes, commitTime, commitP99, checkpointState, ...counts } = journal;
  return {
    ...numbers(counts),
    waitingBytes: waitingBytes && numbers(waitingBytes),
    commitTimeMs: fromDuration(commitTime),
    commitP99Ms: commitP99 && fromDuration(commitP99),
    checkpointState: enumName(
      CheckpointStateEnum,
      'CHECKPOINT_STATE_',
      checkpointState,
    ) as JournalStatus['checkpointState'],
  };
}
