// An expired event as people read it: its value in a line, and all of it in a dialog.
import { dialog, h } from '../dom.js';
import {
  bytes, clockTime, dateTime, duration, enumText, fromBase64, hex, keyText, num, plural, seconds,
  textOf, time, visible,
} from '../format.js';
import { showsValues, valueView } from '../value_view.js';

const HIDDEN = '••••••••';
const PREVIEW_BASE64 = 256;
const PREVIEW_CHARACTERS = 160;

// The text of bytes whose last character may be cut off; null: they are none.
function textOfBeginning(data) {
  for (let cut = 0; cut < 4 && cut <= data.length; ++cut) {
    const text = textOf(data.subarray(0, data.length - cut));
    if (text !== null) return text;
  }
  return null;
}

function bytesPreview(base64) {
  const isCut = base64.length > PREVIEW_BASE64;
  const data = fromBase64(isCut ? base64.slice(0, PREVIEW_BASE64) : base64);
  const text = isCut ? textOfBeginning(data) : textOf(data);
  const line = text === null ? `0x${hex(data.subarray(0, 24))}` : visible(text).replace(/\s+/g, ' ');
  const isLong = isCut || line.length > PREVIEW_CHARACTERS || (text === null && data.length > 24);
  return isLong ? `${line.slice(0, PREVIEW_CHARACTERS)}…` : line;
}

// In a line.
export function valuePreview(event) {
  if (event.parts) {
    const { parts, expectedParts, expectedNames } = event.parts;
    const expected = num(expectedParts) || (expectedNames?.length ?? 0);
    return `${plural(parts?.length ?? 0, 'part')} of ${expected}: ${
      (parts ?? []).slice(0, 8).map((part) => keyText(part.name)).join(', ')}`;
  }
  const omitted = num(event.omittedValueBytes);
  if (omitted > 0) return `(${bytes(omitted)}, too large to be sent)`;
  return bytesPreview(event.value ?? '');
}

// The same as long as values are to be shown: see value_view.js.
export function valueCell(event) {
  if (event.isLeftOut || !showsValues()) return HIDDEN;
  return valuePreview(event) || '(empty)';
}

const DAY_MS = 86_400_000;

// The time of day, of another day with its date.
export function momentText(ms, now) {
  return Math.abs(now - ms) < DAY_MS / 2 ? clockTime(ms, { fraction: false }) : dateTime(ms, { fraction: false });
}

// "3ms": how long after its death an event was published.
export function lateness(event) {
  return (time(event.deliveredAt) - time(event.deathTime)) / 1000;
}

function factsOf(event) {
  const letter = event.deadLetter;
  return [
    ['Namespace', event.namespace],
    ['Cause', enumText(event.cause, 'EXPIRY_CAUSE')],
    ['Version', event.version],
    ['Created', event.createTime && dateTime(time(event.createTime))],
    ['Put', event.putTime && dateTime(time(event.putTime))],
    ['Deadline', event.deadline && dateTime(time(event.deadline))],
    ['Died', dateTime(time(event.deathTime))],
    ['Published', `${dateTime(time(event.deliveredAt))}, ${duration(lateness(event))} late`],
    ['Own TTL', event.ownTtl && duration(seconds(event.ownTtl))],
    ['Event', num(event.eventId) > 0 && event.eventId],
    ['Attempt', num(event.attempt) > 0 && event.attempt],
    ['Last reason', event.lastReason && visible(event.lastReason)],
    ['Trace', event.traceparent],
    ['Group', letter?.group],
    ['Attempts', letter && num(letter.attempts)],
    ['Given up', letter && `${enumText(letter.reason, 'DEAD_LETTER_REASON')} ${dateTime(time(letter.time))}`],
    ['Reason', letter?.reasonText && visible(letter.reasonText)],
  ].filter(([, value]) => value);
}

// All that is known of it.
export function showEvent(event) {
  dialog({
    title: keyText(event.key),
    wide: true,
    body: h('div', { class: 'stack' }, event.isLeftOut
      ? h('p', { class: 'muted' }, 'Its value was not asked for: show values, then look again.') : valueView(event),
      event.isCut && h('p', { class: 'hint' }, 'Only the beginning of its value was kept.'),
      h('dl', { class: 'facts-list' }, factsOf(event).map(([name, value]) =>
        [h('dt', null, name), h('dd', null, String(value))]))),
    buttons: [{ label: 'Close', value: null }],
  });
}
