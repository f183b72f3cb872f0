// Entries as lines of JSON, in the form of `timecachectl dump` and `load`.
import { fromBase64, fromHex, parseDuration, protoDuration, seconds, textOf, textToBase64, toBase64 } from './format.js';

export const DUMP_VERSION = 3;

// NAME: text, or NAME_base64 for bytes that are none.
function setBytes(to, name, base64) {
  const text = textOf(fromBase64(base64));
  if (text === null) to[`${name}_base64`] = base64;
  else to[name] = text;
  return to;
}

// A parsed Entry of the wire -> the object of its line.
export function toLine(entry) {
  const line = setBytes({}, 'key', entry.key);
  if (entry.parts) {
    line.parts = (entry.parts.parts ?? []).map((part) =>
      setBytes(setBytes({}, 'name', part.name), 'value', part.value ?? ''));
    const names = entry.parts.expectedNames ?? [];
    if (names.length === 0) line.expected_parts = entry.parts.expectedParts;
    else line.expected_names = names.map((name) => setBytes({}, 'name', name));
  } else {
    setBytes(line, 'value', entry.value ?? '');
  }
  line.deadline = entry.deadline;
  if (entry.ownTtl) line.own_ttl = `${seconds(entry.ownTtl)}s`;
  if (entry.traceparent) line.traceparent = entry.traceparent;
  return line;
}

function takeBytes(line, name) {
  const given = [name, `${name}_hex`, `${name}_base64`].filter((each) => typeof line[each] === 'string');
  if (given.length === 0) throw new Error(`no ${name}`);
  if (given.length > 1) throw new Error(`${name} is given twice`);
  const text = line[given[0]];
  if (given[0] === name) return textToBase64(text);
  if (given[0].endsWith('_hex')) {
    const data = fromHex(text);
    if (!data) throw new Error(`${given[0]} is not hexadecimal`);
    return toBase64(data);
  }
  try {
    return toBase64(fromBase64(text));
  } catch {
    throw new Error(`${given[0]} is not base64`);
  }
}

function takeDuration(line, name) {
  if (line[name] === undefined) return undefined;
  const value = parseDuration(String(line[name]));
  if (!(value > 0)) throw new Error(`${name} is not a duration such as "30s"`);
  return protoDuration(value);
}

// A line's text -> {head} (of a dump), {end}, or {operations} of an Execute, more than one
// for a key that collects parts. `deadlines`: 'keep' or 'fresh'. Throws Error with what is
// wrong with the line.
export function fromLine(text, deadlines) {
  let line;
  try {
    line = JSON.parse(text);
  } catch {
    throw new Error('it is not JSON');
  }
  if (line === null || typeof line !== 'object' || Array.isArray(line)) throw new Error('it is not an object');
  if (line.dump) {
    if (!(line.dump.version <= DUMP_VERSION)) throw new Error('it is a dump of a later version');
    return { head: line.dump };
  }
  if (line.dump_end) return { end: line.dump_end };
  const common = { key: takeBytes(line, 'key') };
  const ttl = takeDuration(line, 'ttl') ?? takeDuration(line, 'own_ttl');
  if (ttl) common.ttl = ttl;
  if (typeof line.traceparent === 'string') common.traceparent = line.traceparent;
  if (!line.parts) {
    if (line.deadline !== undefined && deadlines === 'keep') common.expireAt = line.deadline;
    return { operations: [{ put: { ...common, value: takeBytes(line, 'value') } }] };
  }
  const expected = line.expected_names
    ? { expectedNames: line.expected_names.map((each) => takeBytes(each, 'name')) }
    : { expectedParts: line.expected_parts };
  const operations = line.parts.map((part) => ({
    gather: { ...common, ...expected, part: takeBytes(part, 'name'), value: takeBytes(part, 'value') },
  }));
  // A gather takes no deadline: a touch after it gives the one of the dump.
  if (line.deadline !== undefined && deadlines === 'keep') {
    operations.push({ touch: { key: common.key, expireAt: line.deadline } });
  }
  return { operations };
}
