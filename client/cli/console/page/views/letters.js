// Dead letters by the API: read, returned to their namespaces, dropped. As timecachectl dead
// does it: a letter goes once its entry is back, and only if it has not changed meanwhile.
import { textToBase64 } from '../format.js';
import { decodeDeadLetter } from './wire.js';

// What is read at a time, by the size of what comes, in base64.
const READ_BYTES = 16 << 20;
// Of a request of many operations. Its limits are the API's: 4,096, and 16 MiB.
const BATCH_OPERATIONS = 200;
const BATCH_BYTES = 1 << 20;

// Of the keys of letters, in base64.
export const prefixOf = (namespace, group) =>
  textToBase64(group ? `${namespace}/${group}/` : `${namespace}/`);

// Letters with this prefix of a key, from `position` on, until there are `max` or they are large:
// {letters, others, position}. `others` counts entries that are no letters; without a `position`
// there are no more.
export async function readLetters(api, namespace, keyPrefix, { max, position = '', signal }) {
  const page = new AbortController();
  const letters = [];
  let others = 0;
  let size = 0;
  let next = '';
  let full = false;
  try {
    await api.stream('TimeCacheService/Scan', { namespace, keyPrefix, position }, {
      signal: AbortSignal.any([signal, page.signal]),
      onMessage(message) {
        for (const entry of message.entries) {
          const event = decodeDeadLetter(entry.value);
          size += entry.value.length;
          if (event) letters.push({ key: entry.key, version: entry.version, event });
          else others += 1;
        }
        next = message.position;
        // A page is taken whole, as only what follows it can be asked for.
        if (letters.length >= max || size >= READ_BYTES) {
          full = true;
          page.abort();
        }
      },
    });
  } catch (error) {
    if (!full) throw error;
  }
  return { letters, others, position: full ? next : '' };
}

// Calls `execute` with operations of one namespace, as many as one request may have; returns a
// result for each.
async function executeAll(api, namespace, operations, signal) {
  const results = [];
  let batch = [];
  let bytes = 0;
  const send = async () => {
    if (batch.length === 0) return;
    const answer = await api.call('TimeCacheService/Execute',
      { namespace, operations: batch }, { signal });
    results.push(...answer.results);
    batch = [];
    bytes = 0;
  };
  for (const operation of operations) {
    const { put, gather } = operation;
    const size = (put?.value ?? gather?.value ?? '').length;
    if (batch.length >= BATCH_OPERATIONS || bytes + size > BATCH_BYTES) await send();
    batch.push(operation);
    bytes += size;
  }
  await send();
  return results;
}

// What brings the entry of a letter back: a put, or a gather of each of its parts.
function operationsOf({ event }) {
  const { key, ownTtl, traceparent, parts } = event;
  const common = { key, ...(ownTtl && { ttl: ownTtl }), ...(traceparent && { traceparent }) };
  if (!parts) {
    return [{ put: { ...common, value: event.value ?? '', condition: 'PUT_CONDITION_IF_ABSENT' } }];
  }
  const expected = parts.expectedNames?.length
    ? { expectedNames: parts.expectedNames } : { expectedParts: parts.expectedParts };
  return parts.parts.map((part) => ({
    gather: { ...common, ...expected, part: part.name, value: part.value ?? '' },
  }));
}

const removal = ({ key, version }) => ({ remove: { key, ifVersion: version } });

// Removes letters; returns one {letter, error} for each.
export async function dropLetters(api, namespace, letters, signal) {
  const results = await executeAll(api, namespace, letters.map(removal), signal);
  return letters.map((letter, index) => ({ letter, error: results[index].error }));
}

// A put refuses a key that exists; of the parts of a gather the first finds out.
async function existing(api, namespace, letters, signal) {
  const results = await executeAll(api, namespace,
    letters.map(({ event }) => ({ contains: { key: event.key } })), signal);
  return new Set(letters.filter((_, index) => results[index].contains?.contains));
}

// Puts the entries of letters back into their namespaces, then removes the letters; returns one
// {letter, error} for each. With an error the letter stays.
export async function returnLetters(api, namespace, letters, signal) {
  const errors = new Map();
  const byNamespace = Map.groupBy(letters, ({ event }) => event.namespace);
  for (const [origin, theirs] of byNamespace) {
    const gathered = theirs.filter(({ event }) => event.parts);
    for (const letter of await existing(api, origin, gathered, signal)) {
      errors.set(letter, { message: 'its key exists again' });
    }
    const wanted = theirs.filter((letter) => !errors.has(letter));
    const operations = wanted.map(operationsOf);
    const results = await executeAll(api, origin, operations.flat(), signal);
    let at = 0;
    for (const [index, letter] of wanted.entries()) {
      const own = results.slice(at, at += operations[index].length);
      const failed = own.find(({ error }) => error);
      if (failed) errors.set(letter, failed.error);
    }
  }
  const back = letters.filter((letter) => !errors.has(letter));
  for (const { letter, error } of await dropLetters(api, namespace, back, signal)) {
    if (error) errors.set(letter, { message: `its entry is back, but the letter stays: ${error.message}` });
  }
  return letters.map((letter) => ({ letter, error: errors.get(letter) }));
}
