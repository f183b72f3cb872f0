// The requests of calls and of batches, and their answers.

import { TimecacheError, fromStatus } from './errors.js';
import {
  PutCondition,
  type AppendResponse,
  type CombineRequest,
  type CombineResponse,
  type GatherResponse,
  type GetResponse,
  type Operation as OperationMessage,
  type OperationResult,
  type PutRequest,
  type PutResponse,
  type RemoveResponse,
  type TouchResponse,
} from './gen/timecache/v1/data.js';
import { checkOptions, known } from './options.js';
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
  type TouchOptions,
} from './types.js';
import { type Bytes, toBuffer, toDuration, toInt64, toTimestamp, toUint32, toUint64 } from './values.js';

/** One of many operations that go to the server together: made by {@link op}, done by execute or a pipeline. */
export interface Operation<Result> {
  /** As it goes on the wire. For the client itself. */
  readonly message: OperationMessage;
  /** At least what it takes of a request, and at most 256 bytes more. */
  readonly bytes: number;
  /**
   * What became of it; throws why nothing did, with the id under which the server's log has it. For the client itself.
   */
  read(result: OperationResult, requestId?: string): Result;
}

type RequestOf = { [R in NonNullable<OperationMessage['request']> as R['$case']]: R['value'] };
type ResponseOf = { [R in NonNullable<OperationResult['result']> as R['$case']]: R['value'] };
type Case = keyof RequestOf & keyof ResponseOf;

class OperationOf<C extends Case, Result> implements Operation<Result> {
  readonly message: OperationMessage;
  readonly bytes: number;

  constructor(
    readonly $case: C,
    value: RequestOf[C],
    bytes: number,
    readonly from: (response: ResponseOf[C], key: Buffer) => Result,
  ) {
    const request = { $case, value } as OperationMessage['request'];
    this.message = { request, requestId: '', traceparent: '' };
    this.bytes = value.key.length + bytes + 256;
  }

  read({ result }: OperationResult, requestId?: string): Result {
    if (result?.$case === 'error') throw fromStatus(result.value, requestId);
    if (result?.$case !== this.$case) throw mismatch();
    return this.from(result.value as ResponseOf[C], this.message.request!.value.key);
  }
}

/**
 * Whether an operation may be repeated. `atomic`: together with others, which a condition that has changed must not make
 * fail another time.
 */
export function isSafe({ request }: OperationMessage, atomic = false): boolean {
  if (!request) return false;
  switch (request.$case) {
    case 'get':
      return true;
    case 'contains':
      return !(atomic && request.value.precondition);
    case 'touch':
      return !(atomic && request.value.ifVersion !== undefined);
    default:
      return request.value.idempotencyId.length > 0;
  }
}

/** The server's answer does not fit the request. */
export function mismatch(): TimecacheError {
  return new TimecacheError(
    'INTERNAL',
    'the answer does not fit the request: is the server of this version?',
    { maybeApplied: true },
  );
}

const KNOWN = {
  put: known('op.put', OPTIONS.put),
  get: known('op.get', OPTIONS.get),
  remove: known('op.remove', OPTIONS.remove),
  contains: known('op.contains', OPTIONS.contains),
  touch: known('op.touch', OPTIONS.touch),
  append: known('op.append', OPTIONS.append),
  combine: known('op.combine', OPTIONS.combine),
  gather: known('op.gather', OPTIONS.gather),
};

/** Makes operations whose options are checked: of the client's calls. */
export const make = {
  put(key: Bytes, value: Bytes, options: PutOptions): Operation<PutResult> {
    const request = {
      namespace: '',
      key: toBuffer(key, 'key'),
      value: toBuffer(value, 'value'),
      ttl: toDuration(options.ttlMs, 'ttlMs'),
      precondition: precondition(options),
      returnPrevious: options.returnPrevious ?? false,
      keepDeadline: options.keepDeadline ?? false,
      expireAt: toTimestamp(options.expireAt, 'expireAt'),
      allowPast: options.allowPast ?? false,
      idempotencyId: toBuffer(options.idempotencyId ?? '', 'idempotencyId'),
      traceparent: options.entryTraceparent ?? '',
    };
    return new OperationOf('put', request, request.value.length, fromPut);
  },
  get(key: Bytes, options: GetOptions): Operation<Entry | undefined> {
    const request = { namespace: '', key: toBuffer(key, 'key'), touch: options.touch };
    return new OperationOf('get', request, 0, fromGet);
  },
  remove(key: Bytes, options: RemoveOptions): Operation<RemoveResult> {
    const request = {
      namespace: '',
      key: toBuffer(key, 'key'),
      ifVersion: toUint64(options.ifVersion, 'ifVersion'),
      returnPrevious: options.returnPrevious ?? false,
      idempotencyId: toBuffer(options.idempotencyId ?? '', 'idempotencyId'),
    };
    return new OperationOf('remove', request, 0, fromRemove);
  },
  contains(key: Bytes, options: PutConditions): Operation<boolean> {
    const request = { namespace: '', key: toBuffer(key, 'key'), precondition: precondition(options) };
    return new OperationOf('contains', request, 0, ({ contains }) => contains);
  },
  touch(key: Bytes, options: TouchOptions): Operation<number | undefined> {
    const request = {
      namespace: '',
      key: toBuffer(key, 'key'),
      ttl: toDuration(options.ttlMs, 'ttlMs'),
      ifVersion: toUint64(options.ifVersion, 'ifVersion'),
      expireAt: toTimestamp(options.expireAt, 'expireAt'),
      allowPast: options.allowPast ?? false,
      namespaceTtl: options.namespaceTtl ?? false,
    };
    return new OperationOf('touch', request, 0, fromTouch);
  },
  append(key: Bytes, value: Bytes, options: AppendOptions): Operation<AppendResult> {
    const request = {
      namespace: '',
      key: toBuffer(key, 'key'),
      value: toBuffer(value, 'value'),
      ttl: toDuration(options.ttlMs, 'ttlMs'),
      precondition: precondition(options),
      touch: options.touch ?? false,
      idempotencyId: toBuffer(options.idempotencyId ?? '', 'idempotencyId'),
      traceparent: options.entryTraceparent ?? '',
    };
    return new OperationOf('append', request, request.value.length, fromAppend);
  },
  combine(key: Bytes, operand: Operand, options: CombineOptions): Operation<CombineResult> {
    const request: CombineRequest = {
      namespace: '',
      key: toBuffer(key, 'key'),
      operand:
        'add' in operand
          ? { $case: 'add', value: toInt64(operand.add, 'add') }
          : { $case: 'xor', value: toInt64(operand.xor, 'xor') },
      initial: toInt64(options.initial ?? 0, 'initial'),
      removeIfZero: options.removeIfZero ?? false,
      touch: options.touch ?? false,
      ttl: toDuration(options.ttlMs, 'ttlMs'),
      ifVersion: toUint64(options.ifVersion, 'ifVersion'),
      idempotencyId: toBuffer(options.idempotencyId ?? '', 'idempotencyId'),
      traceparent: options.entryTraceparent ?? '',
    };
    return new OperationOf('combine', request, 0, fromCombine);
  },
  gather(key: Bytes, part: Bytes, value: Bytes, options: GatherOptions): Operation<GatherResult> {
    const request = {
      namespace: '',
      key: toBuffer(key, 'key'),
      part: toBuffer(part, 'part'),
      value: toBuffer(value, 'value'),
      expectedParts: toUint32(options.expectedParts ?? 0, 'expectedParts'),
      expectedNames: (options.expectedNames ?? []).map((name) => toBuffer(name, 'expectedNames')),
      touch: options.touch ?? false,
      ttl: toDuration(options.ttlMs, 'ttlMs'),
      keepFirst: options.keepFirst ?? false,
      remember: toDuration(options.rememberMs, 'rememberMs'),
      idempotencyId: toBuffer(options.idempotencyId ?? '', 'idempotencyId'),
      traceparent: options.entryTraceparent ?? '',
    };
    const names = request.expectedNames.reduce((sum, name) => sum + name.length + 8, 0);
    return new OperationOf('gather', request, request.part.length + request.value.length + names, fromGather);
  },
};

/** Makes the operations of a batch or a pipeline: each as the client's call of the same name. */
export const op = {
  /** Stores a value. */
  put(key: Bytes, value: Bytes, options: PutOptions = {}): Operation<PutResult> {
    checkOptions(options, KNOWN.put);
    return make.put(key, value, options);
  },
  /** Reads an entry; undefined: a miss. */
  get(key: Bytes, options: GetOptions = {}): Operation<Entry | undefined> {
    checkOptions(options, KNOWN.get);
    return make.get(key, options);
  },
  /** Removes an entry. */
  remove(key: Bytes, options: RemoveOptions = {}): Operation<RemoveResult> {
    checkOptions(options, KNOWN.remove);
    return make.remove(key, options);
  },
  /** Whether an entry is there; with a condition, an error where it does not hold. */
  contains(key: Bytes, options: PutConditions = {}): Operation<boolean> {
    checkOptions(options, KNOWN.contains);
    return make.contains(key, options);
  },
  /** Renews an entry's time to live; its version, or undefined: a miss. */
  touch(key: Bytes, options: TouchOptions = {}): Operation<number | undefined> {
    checkOptions(options, KNOWN.touch);
    return make.touch(key, options);
  },
  /** Appends to a value. */
  append(key: Bytes, value: Bytes, options: AppendOptions = {}): Operation<AppendResult> {
    checkOptions(options, KNOWN.append);
    return make.append(key, value, options);
  },
  /** Adds a number to a value, or xors it with one. */
  combine(key: Bytes, operand: Operand, options: CombineOptions = {}): Operation<CombineResult> {
    checkOptions(options, KNOWN.combine);
    return make.combine(key, operand, options);
  },
  /** Brings one part of what is collected under a key. */
  gather(key: Bytes, part: Bytes, value: Bytes, options: GatherOptions): Operation<GatherResult> {
    checkOptions(options, KNOWN.gather);
    return make.gather(key, part, value, options);
  },
};

function precondition({ ifAbsent, ifPresent, ifVersion }: PutConditions): PutRequest['precondition'] {
  if (Number(!!ifAbsent) + Number(!!ifPresent) + Number(ifVersion !== undefined) > 1) {
    throw new TypeError('at most one of ifAbsent, ifPresent and ifVersion');
  }
  if (ifVersion !== undefined) return { $case: 'ifVersion', value: toUint64(ifVersion, 'ifVersion') };
  if (ifAbsent) return { $case: 'condition', value: PutCondition.PUT_CONDITION_IF_ABSENT };
  if (ifPresent) return { $case: 'condition', value: PutCondition.PUT_CONDITION_IF_PRESENT };
  return undefined;
}

function fromPut({ version, previous }: PutResponse, key: Buffer): PutResult {
  return { version: Number(version), previous: previous && fromEntry(previous, key) };
}

function fromGet({ entry }: GetResponse, key: Buffer): Entry | undefined {
  return entry && fromEntry(entry, key);
}

function fromRemove({ removed, previous }: RemoveResponse, key: Buffer): RemoveResult {
  return { removed, previous: previous && fromEntry(previous, key) };
}

function fromTouch({ touched, version }: TouchResponse): number | undefined {
  return touched ? Number(version) : undefined;
}

function fromAppend({ version, valueBytes, created }: AppendResponse): AppendResult {
  return { version: Number(version), valueBytes: Number(valueBytes), created };
}

function fromCombine({ result, version, created, removed }: CombineResponse): CombineResult {
  return { result, version: Number(version), created, removed };
}

function fromGather({ parts, version, count, duplicate }: GatherResponse): GatherResult {
  return { parts, version: Number(version), count, duplicate };
}
