// Decodes a timecache.v1.ExpiredEvent in protobuf's wire format, into the shape that the
// API's JSON has: a dead letter's value is one. Fields by their numbers in watch.proto.
import { fromBase64, textOf, toBase64 } from '../format.js';

const INSTANT = { 1: ['seconds', 'int'], 2: ['nanos', 'int'] };
const PART = { 1: ['name', 'bytes'], 2: ['value', 'bytes'] };
const PARTS = {
  1: ['parts', PART, 'repeated'], 2: ['expectedParts', 'int'],
  3: ['expectedNames', 'bytes', 'repeated'],
};
const LETTER = {
  1: ['group', 'string'], 2: ['attempts', 'int'], 3: ['reason', 'int'],
  4: ['time', INSTANT, 'time'], 5: ['reasonText', 'string'],
};
const EVENT = {
  1: ['namespace', 'string'], 2: ['key', 'bytes'], 3: ['value', 'bytes'],
  4: ['version', 'int'], 5: ['putTime', INSTANT, 'time'], 6: ['deadline', INSTANT, 'time'],
  7: ['deathTime', INSTANT, 'time'], 8: ['deliveredAt', INSTANT, 'time'], 9: ['cause', 'int'],
  12: ['omittedValueBytes', 'int'], 13: ['parts', PARTS], 15: ['createTime', INSTANT, 'time'],
  16: ['ownTtl', INSTANT, 'duration'], 17: ['deadLetter', LETTER], 20: ['traceparent', 'string'],
};

const CAUSES = ['UNSPECIFIED', 'EXPIRED', 'EVICTED', 'ROTATED', 'EXPIRING'];
const REASONS = ['UNSPECIFIED', 'NACKED', 'TIMED_OUT', 'TERMINATED'];

class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }

  get done() {
    return this.at >= this.bytes.length;
  }

  // As a BigInt: versions and times of 64 bits are exact.
  varint() {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      if (this.done) throw new RangeError('ends within a number');
      const byte = this.bytes[this.at++];
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return BigInt.asIntN(64, value);
    }
    throw new RangeError('a number has more than ten bytes');
  }

  take(length) {
    if (length < 0 || length > this.bytes.length - this.at) {
      throw new RangeError('ends within a field');
    }
    this.at += length;
    return this.bytes.subarray(this.at - length, this.at);
  }

  // The value of a field of this wire type.
  value(type) {
    switch (type) {
      case 0: return this.varint();
      case 1: return this.take(8);
      case 2: return this.take(Number(this.varint()));
      case 5: return this.take(4);
      default: throw new RangeError(`no wire type is ${type}`);
    }
  }
}

function fraction(nanos) {
  return nanos === 0 ? '' : `.${String(nanos).padStart(9, '0').replace(/0+$/, '')}`;
}

// {seconds, nanos} as proto3 JSON has it.
function text({ seconds = 0, nanos = 0 }, as) {
  if (as === 'duration') return `${seconds}${fraction(nanos)}s`;
  const date = new Date(seconds * 1000).toISOString();
  return `${date.slice(0, 19)}${fraction(nanos)}Z`;
}

function convert(raw, kind, as) {
  if (kind === 'int') return Number(raw);
  if (!(raw instanceof Uint8Array)) throw new RangeError('a field has another type');
  if (kind === 'bytes') return toBase64(raw);
  if (kind === 'string') return textOf(raw) ?? '';
  const message = decode(raw, kind);
  return as === 'time' || as === 'duration' ? text(message, as) : message;
}

function decode(bytes, fields) {
  const reader = new Reader(bytes);
  const message = {};
  while (!reader.done) {
    const tag = Number(reader.varint());
    const raw = reader.value(tag & 7);
    const [name, kind, as] = fields[tag >> 3] ?? [];
    if (name === undefined) continue;
    const value = convert(raw, kind, as);
    if (as === 'repeated') (message[name] ??= []).push(value);
    else message[name] = value;
  }
  return message;
}

// The event of a dead letter, whose value is given in base64. Null: it is no dead letter.
export function decodeDeadLetter(value) {
  let event;
  try {
    event = decode(fromBase64(value), EVENT);
  } catch {
    return null;
  }
  if (!event.deadLetter || !event.namespace || !event.key) return null;
  event.cause = `EXPIRY_CAUSE_${CAUSES[event.cause ?? 0] ?? 'UNSPECIFIED'}`;
  event.deadLetter.reason = `DEAD_LETTER_REASON_${
    REASONS[event.deadLetter.reason ?? 0] ?? 'UNSPECIFIED'}`;
  return event;
}
