/**
 * The client of timecached: a key-value server whose entries expire on schedule and are streamed to subscribers.
 *
 * @packageDocumentation
 */

export type {
  ClusterInfo,
  ClusterNode,
  DeathBar,
  DeathsAhead,
  DeathsOptions,
  Durability,
  Group,
  GroupOptions,
  GroupStatistics,
  JournalStatus,
  LimitPolicy,
  LimitUse,
  MemoryShares,
  Namespace,
  NamespaceOptions,
  NamespaceStatistics,
  NodeRole,
  RestartPolicy,
  ServerInfo,
  TopicSetting,
} from './admin.js';
export {
  TimecacheClient,
  type BackupPiece,
  type DescribeOptions,
  type SettledResults,
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
export { fromJson, toJson, type Bytes, type Time } from './values.js';
export { VirtualClock } from './virtual_clock.js';
export type {
  Watcher,
  CommonWatchOptions,
  ConsumeOptions,
  ExpiredEvent,
  ExpiryCause,
  WatchBatch,
  WatchExpiringOptions,
  WatchOptions,
  WatchStart,
} from './watcher.js';
export type { GroupWorker, EventHandler, WorkerCounters, WorkerOptions } from './worker.js';
