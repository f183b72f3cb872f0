// A rate limit, and an idempotency key.

import type { TimecacheClient } from '../client.js';
import { TimecacheError } from '../errors.js';
import { checkOptions, known, type Names } from '../options.js';
import { toBuffer, type Bytes } from '../values.js';
import { hasReason, memberKey } from './common.js';

const CALLS = Buffer.from('calls/');
const REQUEST = Buffer.from('request/');
/** Stands before each answer: a claim, which has none yet, is empty. */
const ANSWERED = Buffer.from('=');

/**
 * Whether this caller may call once more: `limit` times in a window, from all clients together. The window begins with
 * the caller's first call, lasts `windowMs`, and a bucket width of the namespace longer at most; calls that are refused
 * do not make it longer. The count is the entry `calls/CALLER` of the client's namespace, which must not be `sliding`.
 *
 * One round trip, O(1). A call without an answer may have counted: decide whether to let it pass.
 */
export async function mayCall(
  client: TimecacheClient,
  caller: Bytes,
  limit: number,
  windowMs: number,
): Promise<boolean> {
  // The entry keeps the deadline of the first call.
  const { result } = await client.combine(memberKey(CALLS, caller), { add: 1 }, { ttlMs: windowMs });
  return result <= limit;
}

/** How long a request is worked on, and its answer remembered. */
export interface AnswerOnceOptions {
  /** Longest duration of the work, in ms: after a crash a request is worked on again when it is over. */
  workTimeMs: number;
  /** How long later requests get the same answer, in ms. */
  rememberedMs: number;
}

const KNOWN = known('answerOnce', {
  workTimeMs: true,
  rememberedMs: true,
} satisfies Names<AnswerOnceOptions>);

/**
 * The answer to a request, which is worked on once, however often it comes, and from whatever client: later ones get
 * the same answer for as long as it is remembered. It is the entry `request/REQUEST` of the client's namespace.
 *
 * ABORTED: it is being worked on, now or before a crash less than `workTimeMs` ago; try again. A claim without an
 * answer is such a crash, and so is work that throws, whose error this rejects with. FAILED_PRECONDITION
 * (KEY_NOT_FOUND, VERSION_MISMATCH): the work took longer than `workTimeMs`, and may have been done again.
 *
 * Two round trips for the first request, and for later ones.
 */
export async function answerOnce(
  client: TimecacheClient,
  request: Bytes,
  options: AnswerOnceOptions,
  work: () => Bytes | Promise<Bytes>,
): Promise<Buffer> {
  checkOptions(options, KNOWN);
  const key = memberKey(REQUEST, request);
  const version = await claim(client, key, options.workTimeMs);
  if (version === undefined) {
    const value = (await client.get(key))?.value;
    if (value?.length) return value.subarray(ANSWERED.length);
    throw new TimecacheError('ABORTED', 'the request is being worked on');
  }
  const answer = toBuffer(await work(), 'the answer');
  const value = Buffer.concat([ANSWERED, answer]);
  await client.put(key, value, { ttlMs: options.rememberedMs, ifVersion: version });
  return answer;
}

/** undefined: another has claimed it. */
async function claim(client: TimecacheClient, key: Buffer, ttlMs: number): Promise<number | undefined> {
  try {
    return (await client.put(key, '', { ttlMs, ifAbsent: true })).version;
  } catch (error) {
    if (hasReason(error, 'KEY_EXISTS')) return undefined;
    throw error;
  }
}
