// What recipes have in common: keys of what belongs to one structure, NAME/MEMBER, and random ids. Internal.

import { randomBytes } from 'node:crypto';
import { TimecacheError } from '../errors.js';
import { toBuffer, type Bytes } from '../values.js';

/** What the keys of a structure begin with. */
export function prefixOf(name: Bytes): Buffer {
  return Buffer.concat([toBuffer(name, 'name'), Buffer.from('/')]);
}

/** The key of a member. */
export function memberKey(prefix: Buffer, member: Bytes): Buffer {
  return Buffer.concat([prefix, toBuffer(member, 'member')]);
}

/** The member of a key; undefined: the key is not of this structure. */
export function memberOf(prefix: Buffer, key: Bytes): Buffer | undefined {
  const bytes = toBuffer(key, 'key');
  return bytes.subarray(0, prefix.length).equals(prefix) ? bytes.subarray(prefix.length) : undefined;
}

/** 64 random bits, never 0: two are equal with a probability of 2^-64, also of several processes. */
export function randomId(): bigint {
  for (;;) {
    const id = randomBytes(8).readBigUInt64LE();
    if (id !== 0n) return id;
  }
}

/** The key is there, or not with this version. */
export function isPreconditionFailed(error: unknown): boolean {
  return hasReason(error, 'KEY_EXISTS', 'KEY_NOT_FOUND', 'VERSION_MISMATCH');
}

export function hasReason(error: unknown, ...reasons: string[]): boolean {
  return error instanceof TimecacheError && reasons.includes(error.reason ?? '');
}
