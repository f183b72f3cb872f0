// The requests of calls and of batches, and their answers.

import { TimecacheError, fromStatus } from './errors.js';
import {
  PutCondition,
  type AppendRequest,
  type AppendResponse,
  type CombineRequest,
  type CombineResponse,
  type GatherRequest,
  type GatherResponse,
  type GetRequest,
  type GetResponse,
  type Operation as OperationMessage,
  type OperationResult,
  type PutRequest,
  type PutResponse,
  type RemoveRequest,
  type RemoveResponse,
  type TouchRequest,
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
  /** What became of it; throws why nothing did. For the client itself. */
  read(result: OperationResult): Result;
}

type RequestOf = { [R in NonNullable<OperationMessage['request']> as R['$case']]: R['value'] };
type ResponseOf = { [R in NonNullable<OperationResult['result']> as R['$case']]: R['value'] };

function makeOperation<Case extends keyof RequestOf & keyof ResponseOf, Result>(
  $case: Case,
  value: RequestOf[Case],
  bytes: number,
  read: (response: ResponseOf[Case]) => Result,
): Operation<Result> {
  return {
    message: { request: { $case, value } as OperationMessage['request'] },
    bytes: value.key.length + bytes + 256,
    read({ result }) {
      if (result?.$case === 'error') throw fromStatus(result.value);
      if (result?.$case !== $case) throw mismatch();
      return read(result.value as ResponseOf[Case]);
    },
  };
}

/** The server's answer does not fit the request. */
export function mismatch(): TimecacheError {
  return new TimecacheError(
    'INTERNAL',
    'the answer does not fit the request: is the server of this version?',
  );
}

const KNOWN = {
  put: known('op.put', OPTIONS.put),
  get: known('op.get', OPTIONS.get),
  remove: known('op.remove', OPTIONS.remove),
  touch: known('op.touch', OPTIONS.touch),
  append: known('op.append', OPTIONS.append),
  combine: known('op.combine', OPTIONS.combine),
  gather: known('op.gather', OPTIONS.gather),
};

/** Makes the operations of a batch or a pipeline: each as the client's call of the same name. */
export const op = {
  /** Stores a value. */
  put(key: Bytes, value: Bytes, options: PutOptions = {}): Operation<PutResult> {
    checkOptions(options, KNOWN.put);
    const request = putRequest('', key, value, options);
    return makeOperation('put', request, request.value.length, (response) => fromPut(response, request.key));
  },
  /** Reads an entry; undefined: a miss. */
  get(key: Bytes, options: GetOptions = {}): Operation<Entry | undefined> {
    checkOptions(options, KNOWN.get);
    const request = getRequest('', key, options);
    return makeOperation('get', request, 0, (response) => fromGet(response, request.key));
  },
  /** Removes an entry. */
  remove(key: Bytes, options: RemoveOptions = {}): Operation<RemoveResult> {
    checkOptions(options, KNOWN.remove);
    const request = removeRequest('', key, options);
    return makeOperation('remove', request, 0, (response) => fromRemove(response, request.key));
  },
  /** Whether an entry is there. */
  contains(key: Bytes): Operation<boolean> {
    const request = { namespace: '', key: toBuffer(key, 'key') };
    return makeOperation('contains', request, 0, (response) => response.contains);
  },
  /** Renews an entry's time to live; its version, or undefined: a miss. */
  touch(key: Bytes, options: TouchOptions = {}): Operation<number | undefined> {
    checkOptions(options, KNOWN.touch);
    return makeOperation('touch', touchRequest('', key, options), 0, fromTouch);
  },
  /** Appends to a value. */
  append(key: Bytes, value: Bytes, options: AppendOptions = {}): Operation<AppendResult> {
    checkOptions(options, KNOWN.append);
    const request = appendRequest('', key, value, options);
    return makeOperation('append', request, request.value.length, fromAppend);
  },
  /** Adds a number to a value, or xors it with one. */
  combine(key: Bytes, operand: Operand, options: CombineOptions = {}): Operation<CombineResult> {
    checkOptions(options, KNOWN.combine);
    return makeOperation('combine', combineRequest('', key, operand, options), 0, fromCombine);
  },
  /** Brings one part of what is collected under a key. */
  gather(key: Bytes, part: Bytes, value: Bytes, options: GatherOptions): Operation<GatherResult> {
    checkOptions(options, KNOWN.gather);
    const request = gatherRequest('', key, part, value, options);
    const names = request.expectedNames.reduce((sum, name) => sum + name.length + 8, 0);
    return makeOperation('gather', request, request.part.length + request.value.length + names, fromGather);
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

export function putRequest(namespace: string, key: Bytes, value: Bytes, options: PutOptions): PutRequest {
  return {
    namespace,
    key: toBuffer(key, 'key'),
    value: toBuffer(value, 'value'),
    ttl: toDuration(options.ttlMs, 'ttlMs'),
    precondition: precondition(options),
    returnPrevious: options.returnPrevious ?? false,
    keepDeadline: options.keepDeadline ?? false,
    expireAt: toTimestamp(options.expireAt, 'expireAt'),
    allowPast: options.allowPast ?? false,
    idempotencyId: toBuffer(options.idempotencyId ?? '', 'idempotencyId'),
  };
}

export function fromPut({ version, previous }: PutResponse, key: Buffer): PutResult {
  return { version: Number(version), previous: previous && fromEntry(previous, key) };
}

export function getRequest(namespace: string, key: Bytes, options: GetOptions): GetRequest {
  return { namespace, key: toBuffer(key, 'key'), touch: options.touch };
}

export function fromGet({ entry }: GetResponse, key: Buffer): Entry | undefined {
  return entry && fromEntry(entry, key);
}

export function removeRequest(namespace: string, key: Bytes, options: RemoveOptions): RemoveRequest {
  return {
    namespace,
    key: toBuffer(key, 'key'),
    ifVersion: toUint64(options.ifVersion, 'ifVersion'),
    returnPrevious: options.returnPrevious ?? false,
    idempotencyId: toBuffer(options.idempotencyId ?? '', 'idempotencyId'),
  };
}

export function fromRemove({ removed, previous }: RemoveResponse, key: Buffer): RemoveResult {
  return { removed, previous: previous && fromEntry(previous, key) };
}

export function touchRequest(namespace: string, key: Bytes, options: TouchOptions): TouchRequest {
  return {
    namespace,
    key: toBuffer(key, 'key'),
    ttl: toDuration(options.ttlMs, 'ttlMs'),
    ifVersion: toUint64(options.ifVersion, 'ifVersion'),
    expireAt: toTimestamp(options.expireAt, 'expireAt'),
    allowPast: options.allowPast ?? false,
    namespaceTtl: options.namespaceTtl ?? false,
  };
}

export function fromTouch({ touched, version }: TouchResponse): number | undefined {
  return touched ? Number(version) : undefined;
}

export function appendRequest(
  namespace: string,
  key: Bytes,
  value: Bytes,
  options: AppendOptions,
): AppendRequest {
  return {
    namespace,
    key: toBuffer(key, 'key'),
    value: toBuffer(value, 'value'),
    ttl: toDuration(options.ttlMs, 'ttlMs'),
    precondition: precondition(options),
    touch: options.touch ?? false,
    idempotencyId: toBuffer(options.idempotencyId ?? '', 'idempotencyId'),
  };
}

export function fromAppend({ version, valueBytes, created }: AppendResponse): AppendResult {
  return { version: Number(version), valueBytes: Number(valueBytes), created };
}

export function combineRequest(
  namespace: string,
  key: Bytes,
  operand: Operand,
  options: CombineOptions,
): CombineRequest {
  return {
    namespace,
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
  };
}

export function fromCombine({ result, version, created, removed }: CombineResponse): CombineResult {
  return { result, version: Number(version), created, removed };
}

export function gatherRequest(
  namespace: string,
  key: Bytes,
  part: Bytes,
  value: Bytes,
  options: GatherOptions,
): GatherRequest {
  return {
    namespace,
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
  };
}

export function fromGather({ parts, version, count, duplicate }: GatherResponse): GatherResult {
  return { parts, version: Number(version), count, duplicate };
}
