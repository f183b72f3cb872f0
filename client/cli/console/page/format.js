// Between the wire's proto3 JSON and what people read: durations ("1.5s"), times
// (RFC 3339), counts (int64 as text) and bytes (base64).

const UNITS = [['d', 86400], ['h', 3600], ['m', 60], ['s', 1]];

// Seconds of a proto duration ("1.5s"); NaN for none.
export function seconds(duration) {
  return duration ? Number.parseFloat(duration) : Number.NaN;
}

// A proto duration of so many seconds, to the microsecond.
export function protoDuration(value) {
  return `${value.toFixed(6).replace(/\.?0+$/, '')}s`;
}

// "1h 5m", "2.5s", "30ms", "100us": the two largest units of it. Takes seconds.
export function duration(value) {
  if (!Number.isFinite(value)) return '–';
  if (value < 0) return `-${duration(-value)}`;
  if (value === 0) return '0s';
  if (value < 0.001) return `${Math.round(value * 1e6)}us`;
  if (value < 1) return `${trim(value * 1e3)}ms`;
  if (value < 60) return `${trim(value)}s`;
  let rest = Math.round(value);
  const parts = [];
  for (const [unit, size] of UNITS) {
    const count = Math.floor(rest / size);
    if (count > 0) parts.push(`${count}${unit}`);
    else if (parts.length > 0) break;
    rest -= count * size;
    if (parts.length === 2) break;
  }
  return parts.join(' ');
}

// "15m", "1.5h": one unit, for marks on a scale.
export function roughDuration(value) {
  const [unit, size] = UNITS.find(([, each]) => value >= each) ?? ['', 0];
  return size === 0 ? duration(value) : `${Number((value / size).toPrecision(2))}${unit}`;
}

function trim(value) {
  return String(Number(value.toPrecision(3)));
}

// What a person writes for a duration, as the CLI's flags take it: "90s", "1h30m",
// "250ms". Seconds, or NaN.
export function parseDuration(text) {
  const sizes = { d: 86400, h: 3600, m: 60, s: 1, ms: 1e-3, us: 1e-6 };
  const clean = text.trim().replace(/\s+/g, '');
  if (clean === '0') return 0;
  if (!/^(\d+(\.\d+)?(ms|us|d|h|m|s))+$/.test(clean)) return Number.NaN;
  let sum = 0;
  for (const [, number, unit] of clean.matchAll(/(\d+(?:\.\d+)?)(ms|us|d|h|m|s)/g)) {
    sum += Number(number) * sizes[unit];
  }
  return sum;
}

// The inverse of it for inputs: exact, no spaces.
export function durationInput(value) {
  if (!Number.isFinite(value)) return '';
  if (value === 0) return '0s';
  let us = Math.round(value * 1e6);
  let text = '';
  for (const [unit, size] of [['d', 86400e6], ['h', 3600e6], ['m', 60e6], ['s', 1e6], ['ms', 1e3], ['us', 1]]) {
    const count = Math.floor(us / size);
    if (count > 0) text += `${count}${unit}`;
    us -= count * size;
  }
  return text;
}

// Milliseconds since 1970 of a proto timestamp, with the fraction of a millisecond;
// NaN for none.
export function time(timestamp) {
  if (!timestamp) return Number.NaN;
  const whole = Date.parse(timestamp.replace(/\.\d+/, ''));
  const fraction = timestamp.match(/\.(\d+)/);
  return fraction ? whole + Number(`0.${fraction[1]}`) * 1000 : whole;
}

// A proto timestamp of so many milliseconds.
export function protoTime(ms) {
  return new Date(ms).toISOString();
}

const pad = (number, digits = 2) => String(number).padStart(digits, '0');

// "2025-01-31 12:00:00.250", in the browser's zone.
export function dateTime(ms, { fraction = true } = {}) {
  if (!Number.isFinite(ms)) return '–';
  const date = new Date(ms);
  if (Number.isNaN(date.getTime())) return '–';
  return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())} ${
    clockTime(ms, { fraction })}`;
}

// "12:00:00.250".
export function clockTime(ms, { fraction = true } = {}) {
  const date = new Date(ms);
  const text = `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
  return fraction ? `${text}.${pad(date.getMilliseconds(), 3)}` : text;
}

// A number of the wire: int64 comes as text.
export function num(value) {
  return value === undefined || value === null ? 0 : Number(value);
}

const integer = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
const compact = new Intl.NumberFormat('en-US', { notation: 'compact', maximumSignificantDigits: 3 });

// "1,234,567".
export function count(value) {
  return integer.format(num(value));
}

// "1.23M": for tiles and axes.
export function shortCount(value) {
  const number = num(value);
  return Math.abs(number) < 10_000 ? integer.format(number) : compact.format(number);
}

export function rate(value) {
  if (!Number.isFinite(value)) return '–';
  return value > 0 && value < 10 ? `${trim(value)}/s` : `${shortCount(value)}/s`;
}

// "1.5 MiB".
export function bytes(value) {
  let number = num(value);
  for (const unit of ['B', 'KiB', 'MiB', 'GiB', 'TiB']) {
    if (Math.abs(number) < 1024 || unit === 'TiB') return `${trim(number)} ${unit}`;
    number /= 1024;
  }
  return '';
}

// "1 event", "2 events".
export function plural(amount, noun, nouns = `${noun}s`) {
  return `${count(amount)} ${num(amount) === 1 ? noun : nouns}`;
}

// ---- bytes ----

export function fromBase64(text) {
  const binary = atob(text ?? '');
  const data = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i += 1) data[i] = binary.charCodeAt(i);
  return data;
}

const CHUNK = 0x8000;

export function toBase64(data) {
  let binary = '';
  for (let i = 0; i < data.length; i += CHUNK) {
    binary += String.fromCharCode(...data.subarray(i, i + CHUNK));
  }
  return btoa(binary);
}

// As in the page's addresses.
export function toBase64Url(base64) {
  return base64.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

export function fromBase64Url(text) {
  const base64 = text.replaceAll('-', '+').replaceAll('_', '/');
  return base64.padEnd(Math.ceil(base64.length / 4) * 4, '=');
}

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export function textToBase64(text) {
  return toBase64(encoder.encode(text));
}

// The text of UTF-8 bytes, or null if they are none.
export function textOf(data) {
  try {
    return decoder.decode(data);
  } catch {
    return null;
  }
}

// The text of the first so many bytes: a character that is cut off there is left out.
export function textOfBeginning(data, most) {
  if (data.length <= most) return textOf(data);
  for (let end = most; end > most - 4; end -= 1) {
    const text = textOf(data.subarray(0, end));
    if (text !== null) return text;
  }
  return null;
}

// Control and bidirectional characters would hide or reorder what follows them.
const INVISIBLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

export function visible(text) {
  return text.replace(INVISIBLE, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

// A key as people read it: its text on one line, or, of bytes that are none, hex.
export function keyText(base64) {
  const data = fromBase64(base64);
  const text = textOf(data);
  return text === null ? `0x${hex(data)}`
    : visible(text).replaceAll('\n', '\\n').replaceAll('\t', '\\t');
}

// The beginning of it, for rows: a key may have 4 KiB.
export function shortKey(base64, most = 120) {
  const text = keyText(base64);
  return text.length > most ? `${text.slice(0, most)}…` : text;
}

export function hex(data) {
  return Array.from(data, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

// Bytes of pairs of hexadecimal digits, spaces between allowed; null if malformed.
export function fromHex(text) {
  const clean = text.replace(/\s+/g, '').replace(/^0x/i, '');
  if (clean.length % 2 !== 0 || /[^0-9a-f]/i.test(clean)) return null;
  const data = new Uint8Array(clean.length / 2);
  for (let i = 0; i < data.length; i += 1) {
    data[i] = Number.parseInt(clean.slice(2 * i, 2 * i + 2), 16);
  }
  return data;
}

// As `hexdump -C` prints it.
export function hexDump(data) {
  const lines = [];
  for (let i = 0; i < data.length; i += 16) {
    const row = data.subarray(i, i + 16);
    const pairs = Array.from(row, (byte) => byte.toString(16).padStart(2, '0'));
    const left = pairs.slice(0, 8).join(' ').padEnd(23);
    const right = pairs.slice(8).join(' ').padEnd(23);
    const text = Array.from(row, (byte) =>
      (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '.')).join('');
    lines.push(`${i.toString(16).padStart(8, '0')}  ${left}  ${right}  |${text}|`);
  }
  return lines.join('\n');
}

// Indented JSON, or null if the text is not an object or array. Only the spaces between
// its tokens change: a number that JSON.parse would round stays as it is.
export function prettyJson(text) {
  if (!/^\s*[{[]/.test(text)) return null;
  try {
    JSON.parse(text);
  } catch {
    return null;
  }
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[[\]{}:,]|[^\s[\]{}:,"]+/g);
  let indent = '\n';
  let result = '';
  for (const [i, token] of tokens.entries()) {
    const closesEmpty = (tokens[i - 1] === '{' && token === '}') || (tokens[i - 1] === '[' && token === ']');
    if (token === '}' || token === ']') {
      indent = indent.slice(0, -2);
      result += closesEmpty ? token : indent + token;
    } else if (token === ':') {
      result += ': ';
    } else if (token === ',') {
      result += token + indent;
    } else if (token === '{' || token === '[') {
      indent += '  ';
      const isEmpty = tokens[i + 1] === '}' || tokens[i + 1] === ']';
      result += isEmpty ? token : token + indent;
    } else {
      result += token;
    }
  }
  return result;
}

// "EXPIRY_CAUSE_EXPIRED", "EXPIRY_CAUSE" -> "expired"
export function enumText(value, prefix) {
  const text = value ?? '';
  return text.startsWith(`${prefix}_`)
    ? text.slice(prefix.length + 1).toLowerCase().replaceAll('_', ' ') : text;
}
