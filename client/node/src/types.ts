// What calls about entries take and give: plain objects.

import type { Entry as EntryMessage } from './gen/timecache/v1/data.js';
import type { Names } from './options.js';
import { type Bytes, type Time, fromOwnTtl, fromTimestamp } from './values.js';

/** A live entry. */
export interface Entry {
  /** 1 B to 4 KiB. */
  key: Buffer;
  /** Empty where only keys were asked for, and where `parts` or `omittedValueBytes` say so. */
  value: Buffer;
  /** Stands for the value: a renewed time to live leaves it as it is. Grows with every change of one key. Never 0. */
  version: number;
  /** When the time to live last began: the last put or touch. */
  putTime: Time;
  /** putTime + ttl. The entry does not die before it, and at most one bucket width after it. */
  deadline: Time;
  /** When the key began to be there: the put or other call that created the entry. Changes and renewals keep it. */
  createTime: Time;
  /** The entry's own time to live in ms, which a renewal gives it; undefined: the namespace's. */
  ownTtlMs: number | undefined;
  /** In place of a value, where the key collects the parts of a gather. */
  parts: GatheredParts | undefined;
  /** In a scan: the size of a value that was left out as it does not fit into `maxMessageBytes`. Otherwise 0. */
  omittedValueBytes: number;
}

/** What gather has collected under a key. */
export interface GatheredParts {
  /** In the order in which they came. */
  parts: GatheredPart[];
  /** How many complete the key; 0 where `expectedNames` says it. */
  expectedParts: number;
  /** The names that complete the key, in bytewise order. */
  expectedNames: Buffer[];
}

/** One part of what gather has collected. */
export interface GatheredPart {
  /** 1 to 256 B. */
  name: Buffer;
  /** What it was given with; may be empty. */
  value: Buffer;
}

/** At most one of these; what does not hold is FAILED_PRECONDITION, and nothing is changed. */
export interface PutConditions {
  /** Only if the key is not there; else KEY_EXISTS. */
  ifAbsent?: boolean | undefined;
  /** Only if the key is there; else KEY_NOT_FOUND. */
  ifPresent?: boolean | undefined;
  /** Only if the key is there with this version; else KEY_NOT_FOUND or VERSION_MISMATCH. */
  ifVersion?: number | undefined;
}

/** A deadline in place of a time to live: a due date. */
export interface DueDate {
  /**
   * The deadline of this life, in place of now + ttlMs, on the server's clock: after now, and no later than now + the
   * namespace's maxTtlMs. With ttlMs, that is what a later renewal gives.
   */
  expireAt?: Time | Date | undefined;
  /** An expireAt that is not after now is no error: the entry is stored, expires at once, and its event is delivered. */
  allowPast?: boolean | undefined;
}

/** How put stores. */
export interface PutOptions extends PutConditions, DueDate {
  /** The entry's own time to live in ms: 1 to the namespace's maxTtlMs. Default: the namespace's. Not 0. */
  ttlMs?: number | undefined;
  /** Answer with the entry that was replaced. */
  returnPrevious?: boolean | undefined;
  /** An entry that is there keeps its put time, deadline and own time to live. Not together with ttlMs or expireAt. */
  keepDeadline?: boolean | undefined;
  /**
   * Makes the call safe to repeat, so that it is tried again as {@link RetryOptions} says: 1 to 64 B that no other call
   * has. The namespace must have an idempotencyWindowMs. Not together with returnPrevious.
   */
  idempotencyId?: Bytes | undefined;
  /**
   * A W3C traceparent of 55 characters, kept with the entry (26 B) and given with its event, so that the trace of what
   * handles the event can link to this one. `traceEntries` of the client or call does the same with the call's own span.
   * Every put sets it anew; append, combine and gather only that of an entry which they create.
   */
  entryTraceparent?: string | undefined;
}

/** What put did. */
export interface PutResult {
  /** The new entry's. */
  version: number;
  /** The replaced entry, if there was one and `returnPrevious` was set. */
  previous: Entry | undefined;
}

/** How get reads. */
export interface GetOptions {
  /** true: renew the time to live. false: do not, in a sliding namespace, either. Default: if the namespace is sliding. */
  touch?: boolean | undefined;
}

/** How remove removes. */
export interface RemoveOptions {
  /** Remove only this version; else FAILED_PRECONDITION, KEY_NOT_FOUND or VERSION_MISMATCH. */
  ifVersion?: number | undefined;
  /** Answer with the entry that was removed. */
  returnPrevious?: boolean | undefined;
  /** As in {@link PutOptions}. */
  idempotencyId?: Bytes | undefined;
}

/** What remove did. */
export interface RemoveResult {
  /** Whether the key was there. */
  removed: boolean;
  /** The removed entry, if there was one and `returnPrevious` was set. */
  previous: Entry | undefined;
}

/** How touch renews. */
export interface TouchOptions extends DueDate {
  /** The entry's own time to live from now on, in ms. Default: the one that it has. */
  ttlMs?: number | undefined;
  /** The entry has no time to live of its own any more, and follows the namespace's. Not together with ttlMs. */
  namespaceTtl?: boolean | undefined;
  /** Renew only this version; else FAILED_PRECONDITION, KEY_NOT_FOUND or VERSION_MISMATCH. */
  ifVersion?: number | undefined;
}

/** How append appends. */
export interface AppendOptions extends PutConditions {
  /** The own time to live, in ms, of an entry that is created, and with `touch` of one that is there. */
  ttlMs?: number | undefined;
  /** Renew the time to live of an entry that is there. */
  touch?: boolean | undefined;
  /** As in {@link PutOptions}. */
  idempotencyId?: Bytes | undefined;
  /** As in {@link PutOptions}. */
  entryTraceparent?: string | undefined;
}

/** What append did. */
export interface AppendResult {
  /** The entry's new one. */
  version: number;
  /** The value's new length. */
  valueBytes: number;
  /** Whether the key was not there. */
  created: boolean;
}

/** What combine does with the value: add a number, or xor it with one in two's complement. 64 bits, signed. */
export type Operand = { add: number | bigint } | { xor: number | bigint };

/** How combine combines. */
export interface CombineOptions {
  /** What a key that is not there counts as. Default 0. */
  initial?: number | bigint | undefined;
  /** Remove the entry if the result is 0; nothing is created then, either. */
  removeIfZero?: boolean | undefined;
  /** Renew the time to live of an entry that is there. */
  touch?: boolean | undefined;
  /** As in {@link AppendOptions}. */
  ttlMs?: number | undefined;
  /** Only this version; else FAILED_PRECONDITION, KEY_NOT_FOUND or VERSION_MISMATCH. */
  ifVersion?: number | undefined;
  /** As in {@link PutOptions}. */
  idempotencyId?: Bytes | undefined;
  /** As in {@link PutOptions}. */
  entryTraceparent?: string | undefined;
}

/** What combine came to. */
export interface CombineResult {
  /** A bigint, as it has 64 bits. */
  result: bigint;
  /** The entry's new one; 0 if it was removed. */
  version: number;
  /** Whether the key was not there, and is now. */
  created: boolean;
  /** Whether it is not there now, as the result was 0. */
  removed: boolean;
}

/** What is expected under a key: one of the first two with its first part; later ones may leave it out, or say the same. */
export interface GatherOptions {
  /** How many parts complete it, whatever their names: 1 to 1,024. */
  expectedParts?: number | undefined;
  /** The names of the parts that do: 1 to 1,024 distinct ones, in any order. */
  expectedNames?: readonly Bytes[] | undefined;
  /** Renew the time to live of an entry that is there. */
  touch?: boolean | undefined;
  /** As in {@link AppendOptions}. */
  ttlMs?: number | undefined;
  /** A part that has been collected with another value stays, and this one is a duplicate. */
  keepFirst?: boolean | undefined;
  /**
   * How long a key that this part completes takes no parts again, 1 ms to the namespace's maxTtlMs: until then a gather
   * on it is ALREADY_EXISTS (GATHER_COMPLETE).
   */
  rememberMs?: number | undefined;
  /** As in {@link PutOptions}. */
  idempotencyId?: Bytes | undefined;
  /** As in {@link PutOptions}. */
  entryTraceparent?: string | undefined;
}

/** What gather came to. */
export interface GatherResult {
  /** All of them, if this part was the last one: the key is gone then. */
  parts: GatheredParts | undefined;
  /** The entry's; 0 if it is complete. */
  version: number;
  /** How many parts are in. */
  count: number;
  /** Whether it was in, with this value. */
  duplicate: boolean;
}

/** What a namespace holds. */
export interface SizeResult {
  /** Live entries. */
  entries: number;
  /** Bytes of their keys and values. */
  bytes: number;
}

/** What a scan gives. */
export interface ScanOptions {
  /** At most 4 KiB. Default: all keys. */
  keyPrefix?: Bytes | undefined;
  /** Leave the values out. */
  keysOnly?: boolean | undefined;
  /** Largest message taken; larger values are left out. Default: what the client's channel takes, as of a watch. */
  maxMessageBytes?: number | undefined;
}

/** `key`: of an entry in a batch, whose operation says it. */
export function fromEntry(message: EntryMessage, key = message.key): Entry {
  return {
    key: message.key.length > 0 ? message.key : key,
    value: message.value,
    version: Number(message.version),
    putTime: fromTimestamp(message.putTime),
    deadline: fromTimestamp(message.deadline),
    createTime: fromTimestamp(message.createTime ?? message.putTime),
    ownTtlMs: fromOwnTtl(message.ownTtl),
    parts: message.parts,
    omittedValueBytes: Number(message.omittedValueBytes),
  };
}

const CONDITIONS: Names<PutConditions> = { ifAbsent: true, ifPresent: true, ifVersion: true };
const DUE_DATE: Names<DueDate> = { expireAt: true, allowPast: true };

/** What the options of each operation may be. Internal. */
export const OPTIONS = {
  put: {
    ...CONDITIONS,
    ...DUE_DATE,
    ttlMs: true,
    returnPrevious: true,
    keepDeadline: true,
    idempotencyId: true,
    entryTraceparent: true,
  } satisfies Names<PutOptions>,
  get: { touch: true } satisfies Names<GetOptions>,
  contains: CONDITIONS,
  remove: { ifVersion: true, returnPrevious: true, idempotencyId: true } satisfies Names<RemoveOptions>,
  touch: { ...DUE_DATE, ttlMs: true, namespaceTtl: true, ifVersion: true } satisfies Names<TouchOptions>,
  append: {
    ...CONDITIONS,
    ttlMs: true,
    touch: true,
    idempotencyId: true,
    entryTraceparent: true,
  } satisfies Names<AppendOptions>,
  combine: {
    initial: true,
    removeIfZero: true,
    touch: true,
    ttlMs: true,
    ifVersion: true,
    idempotencyId: true,
    entryTraceparent: true,
  } satisfies Names<CombineOptions>,
  gather: {
    expectedParts: true,
    expectedNames: true,
    touch: true,
    ttlMs: true,
    keepFirst: true,
    rememberMs: true,
    idempotencyId: true,
    entryTraceparent: true,
  } satisfies Names<GatherOptions>,
  scan: { keyPrefix: true, keysOnly: true, maxMessageBytes: true } satisfies Names<ScanOptions>,
};
