/**
 * Structures that applications build from timecached's operations. They have the keys and bytes that the recipes of the
 * other clients have: a lock that is taken in one language is taken in all.
 *
 * @packageDocumentation
 */

export { Acker, type AckerOptions } from './acker.js';
export { SharedArray, type ArrayContents, type ArrayItem, type ArrayOptions } from './array.js';
export { answerOnce, mayCall, type AnswerOnceOptions } from './calls.js';
export {
  EventLog,
  type EventLogOptions,
  type LogEvent,
  type LogPage,
  type LogPosition,
  type NewEvents,
} from './event_log.js';
export { Join, type IncompleteJoin, type JoinOptions, type Joined } from './join.js';
export { Lock, type AcquireOptions, type LockOptions } from './lock.js';
export { Table, type TableOptions } from './table.js';
