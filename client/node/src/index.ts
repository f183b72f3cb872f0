/**
 * The client of timecached: a key-value server whose entries expire on schedule and are streamed to subscribers.
 *
 * @packageDocumentation
 */

export type {
  CallerInfo,
  ClusterInfo,
  ClusterNode,
  ClusterSlot,
  ConnectionInfo,
  DeathBar,
  DeathsAhead,
  DeathsOptions,
  Durability,
  Group,
  GroupMember,
  GroupOptions,
  GroupPosition,
  GroupStatistics,
  HotKey,
  HotKeys,
  HotKeysOptions,
  JournalStatus,
  LimitPolicy,
  LimitUse,
  MemoryShares,
  Namespace,
  NamespaceOptions,
  NamespaceStatistics,
  NodeRole,
  Permission,
  RestartPolicy,
  SeekResult,
  ServerInfo,
  SlowCall,
  SlowCalls,
  TopicSetting,
  UnsettledEvent,
  UnsettledState,
} from './admin.js';
export {
  TimecacheClient,
  type BackupPiece,
  type DescribeOptions,
  type FetchOptions,
  type FetchedEvents,
  type SettledResults,
  type UnsettledOptions,
  type UpdateOptions,
} from './client.js';
export type { CallOptions, ClientOptions, RetryOptions } from './connection.js';
export type { TlsOptions } from './credentials.js';
export { decodeDeadLetter, type DeadLetter, type DeadLetterReason } from './dead_letter.js';
export {
  TimecacheError,
  isMessageTooLarge,
  type ErrorCode,
  type ErrorReason,
  type FieldViolation,
} from './errors.js';
export { op, type Operation } from './operations.js';
export type { Pipeline, PipelineOptions } from './pipeline.js';
export {
  ack,
  extend,
  nack,
  putBack,
  terminate,
  type Extend,
  type PutBackOptions,
  type Settle,
  type Settlement,
} from './settle.js';
export type {
  AppendOptions,
  AppendResult,
  CombineOptions,
  CombineResult,
  DueDate,
  Entry,
  GatherOptions,
  GatherResult,
  GatheredPart,
  GatheredParts,
  GetOptions,
  Operand,
  PutConditions,
  PutOptions,
  PutResult,
  RemoveOptions,
  RemoveResult,
  ScanOptions,
  SizeResult,
  TouchOptions,
} from './types.js';
export { withConsumerSpan } from './tracing.js';
export { fromJson, toJson, type Bytes, type Time } from './values.js';
export { VirtualClock } from './virtual_clock.js';
export type {
  Watcher,
  ChangeBatch,
  ChangeEvent,
  ChangeKind,
  CommonBatch,
  CommonWatchOptions,
  ConsumeOptions,
  ExpiredEvent,
  ExpiryCause,
  WatchBatch,
  WatchChangesOptions,
  WatchExpiringOptions,
  WatchOptions,
  WatchStart,
} from './watcher.js';
export type { GroupWorker, EventHandler, WorkerCounters, WorkerOptions } from './worker.js';
