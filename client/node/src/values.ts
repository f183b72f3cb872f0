// Bytes, times and numbers: what JavaScript has for them, and what the protos have.

import type { Duration } from './gen/google/protobuf/duration.js';
import type { Timestamp } from './gen/google/protobuf/timestamp.js';

/**
 * A key or a value: a string stands for its UTF-8. Bytes are not copied: leave them as they are until the call is
 * answered. What comes back from the server is a Buffer.
 */
export type Bytes = string | Uint8Array;

/**
 * A moment on the server's clock: milliseconds since 1970-01-01T00:00:00Z, as `new Date(time)` takes them. It has
 * fractions: the server's resolution is a microsecond, which a Date would cut off.
 */
export type Time = number;

/** A value as JSON in UTF-8, for put and all that take {@link Bytes}. TypeError: it has no JSON (undefined). */
export function toJson(value: unknown): Buffer {
  const text = JSON.stringify(value) as string | undefined;
  if (text === undefined) throw new TypeError('the value has no JSON');
  return Buffer.from(text);
}

/** The value that JSON in UTF-8 says. SyntaxError: it is no JSON. The type is the caller's claim. */
export function fromJson<T = unknown>(bytes: Uint8Array): T {
  return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString()) as T;
}

const EMPTY = Buffer.alloc(0);

export function toBuffer(bytes: Bytes, what: string): Buffer {
  if (typeof bytes === 'string') return bytes === '' ? EMPTY : Buffer.from(bytes);
  if (Buffer.isBuffer(bytes)) return bytes;
  if (bytes instanceof Uint8Array) return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  throw new TypeError(`${what} must be a string or a Uint8Array`);
}

/** What a Duration has room for, by its definition. */
const MAX_SECONDS = 315_576_000_000;

/** Rounds to whole nanoseconds; the server rounds up to microseconds. */
export function toDuration(ms: number, what: string): Duration;
export function toDuration(ms: number | undefined, what: string): Duration | undefined;
export function toDuration(ms: number | undefined, what: string): Duration | undefined {
  if (ms === undefined) return undefined;
  if (!Number.isFinite(ms)) throw new TypeError(`${what} must be a finite number of milliseconds`);
  const seconds = Math.trunc(ms / 1000);
  if (Math.abs(seconds) >= MAX_SECONDS) throw new TypeError(`${what} must be less than 10,000 years`);
  const nanos = Math.round((ms - seconds * 1000) * 1e6);
  if (Math.abs(nanos) === 1e9) return { seconds: BigInt(seconds + Math.sign(nanos)), nanos: 0 };
  return { seconds: BigInt(seconds), nanos };
}

export function fromDuration(duration: Duration | undefined): number {
  return fromTimestamp(duration);
}

export function fromTimestamp(time: Timestamp | undefined): Time {
  return time === undefined ? 0 : Number(time.seconds) * 1000 + time.nanos / 1e6;
}

/** An own time to live; undefined: the namespace's. */
export function fromOwnTtl(duration: Duration | undefined): number | undefined {
  return duration && fromDuration(duration);
}

/** To the microsecond, which is the server's resolution. */
export function toTimestamp(time: Time | Date, what?: string): Timestamp;
export function toTimestamp(time: Time | Date | undefined, what?: string): Timestamp | undefined;
export function toTimestamp(moment: Time | Date | undefined, what = 'a time'): Timestamp | undefined {
  if (moment === undefined) return undefined;
  const time = moment instanceof Date ? moment.getTime() : moment;
  if (!Number.isFinite(time))
    throw new TypeError(`${what} must be a Date or a finite number of milliseconds since 1970`);
  const seconds = Math.floor(time / 1000);
  const micros = Math.round((time - seconds * 1000) * 1000);
  return { seconds: BigInt(seconds) + BigInt(Math.floor(micros / 1e6)), nanos: (micros % 1e6) * 1000 };
}

export function toUint64(value: number, what: string): bigint;
export function toUint64(value: number | undefined, what: string): bigint | undefined;
export function toUint64(value: number | undefined, what: string): bigint | undefined {
  if (value === undefined) return undefined;
  if (!Number.isSafeInteger(value) || value < 0)
    throw new TypeError(`${what} must be a non-negative integer`);
  return BigInt(value);
}

export function toUint32(value: number, what: string): number;
export function toUint32(value: number | undefined, what: string): number | undefined;
export function toUint32(value: number | undefined, what: string): number | undefined {
  if (value === undefined) return undefined;
  if (!Number.isInteger(value) || value < 0 || value >= 2 ** 32)
    throw new TypeError(`${what} must be a non-negative integer of 32 bits`);
  return value;
}

export function toInt64(value: number | bigint, what: string): bigint {
  if (typeof value === 'number' && !Number.isSafeInteger(value)) {
    throw new TypeError(`${what} must be an integer: beyond 2^53, a bigint`);
  }
  const big = BigInt(value);
  if (BigInt.asIntN(64, big) !== big) throw new TypeError(`${what} must have 64 bits`);
  return big;
}

/** The value of a generated enum that has this name behind the prefix; undefined: 0, which stands for the default. */
export function enumValue<Enum extends number>(
  values: Record<string, Enum | string>,
  prefix: string,
  name: string | undefined,
  what: string,
): Enum {
  const value = values[prefix + (name ?? 'UNSPECIFIED')];
  if (typeof value !== 'number') throw new TypeError(`${what} cannot be ${name}`);
  return value;
}

/** The name of a value of a generated enum, without the prefix that it shares with the others. */
export function enumName(names: Record<number, string>, prefix: string, value: number): string | undefined {
  const name = names[value];
  if (name === undefined || !name.startsWith(prefix)) return undefined;
  const short = name.slice(prefix.length);
  return short === 'UNSPECIFIED' ? undefined : short;
}

export type Numbers<T> = { [K in keyof T]: T[K] extends bigint ? number : T[K] };

/** The same with a number for each bigint. The protos keep these below 2^53. */
export function numbers<T extends object>(message: T): Numbers<T> {
  return Object.fromEntries(
    Object.entries(message).map(([name, value]) => [name, typeof value === 'bigint' ? Number(value) : value]),
  ) as Numbers<T>;
}
