// One entry: what it is, and put, touch and remove, each after a confirmation.
import { button, confirm, dialog, field, h, replace, setText, toast } from '../dom.js';
import { bytes, count, dateTime, duration, durationInput, fromBase64, fromHex, hex, keyText, parseDuration,
  protoDuration, seconds, shortKey, textOf, textToBase64, time, toBase64, toBase64Url } from '../format.js';
import { base64Bytes } from '../scan.js';
import { showsValues, valueView } from '../value_view.js';

// Text that is made anew every half second, while it is in the page.
function liveText(make) {
  const node = h('span', null, make());
  const timer = setInterval(() => {
    if (node.isConnected) setText(node, make());
    else clearInterval(timer);
  }, 500);
  return node;
}

// What is known of an entry, as a list of facts.
export function entryFacts(entry, clock, bucketWidth) {
  const width = seconds(bucketWidth);
  const remaining = liveText(() => {
    const left = (time(entry.deadline) - clock.now()) / 1000;
    return `${left > 0 ? duration(left < 10 ? left : Math.round(left)) : 'over'}${Number.isFinite(width)
      ? `, and up to ${duration(width)} until its bucket dies` : ''}`;
  });
  return h('dl', { class: 'facts-list' }, [
    ['Remaining', remaining],
    ['Deadline', dateTime(time(entry.deadline))],
    ['Put or renewed', dateTime(time(entry.putTime))],
    ['There since', dateTime(time(entry.createTime))],
    ['Time to live', entry.ownTtl ? `${duration(seconds(entry.ownTtl))}, its own` : 'the namespace\'s'],
    ['Version', count(entry.version)],
    !entry.parts && ['Size', bytes(base64Bytes(entry.value))],
    entry.traceparent && ['Trace', entry.traceparent],
  ].filter(Boolean).map(([label, value]) => [h('dt', null, label), h('dd', { class: 'number' }, value)]));
}

// Shows an entry in a dialog. Resolves with whether it was changed.
export async function openEntry(context, key) {
  const { name, api, clock, can } = context;
  const body = h('div', { class: 'stack' }, h('p', { class: 'muted' }, 'Reading …'));
  let changed = false;
  const load = async () => {
    try {
      // Never a renewal, in a sliding namespace either: looking must not change.
      const { entry } = await api.call('TimeCacheService/Get', { namespace: name, key, touch: false });
      if (!entry) {
        replace(body, h('p', null, 'The entry is not there any more.'));
        return;
      }
      const act = (task) => async () => {
        if (!await task()) return;
        changed = true;
        await load();
      };
      replace(body, h('h3', { class: 'mono key-name' }, keyText(key)), entryFacts(entry, clock, context.namespace?.bucketWidth),
        valueView(entry), h('div', { class: 'row' },
          can('WRITE') && [!entry.parts && button('Put a new value', act(() => editEntry(context, { ...entry, key }))),
            button('Touch', act(() => touchEntry(context, key, entry))),
            button('Remove', act(() => removeEntry(context, key, entry)), { kind: 'danger' })],
          h('a', { class: 'button', href: `#/key/${encodeURIComponent(name)}/${toBase64Url(key)}`,
            on: { click: () => body.closest('dialog').close() } }, 'Its life')));
    } catch (error) {
      replace(body, h('p', { class: 'error' }, error.message));
    }
  };
  const closed = dialog({ title: 'Entry', body, wide: true, buttons: [{ label: 'Close', value: null }] });
  await load();
  await closed;
  return changed;
}

export async function touchEntry({ name, api }, key, entry) {
  const ttl = h('input', { placeholder: entry.ownTtl ? durationInput(seconds(entry.ownTtl)) : 'the namespace\'s' });
  return confirm({
    title: 'Touch this entry?', action: 'Touch it',
    body: [h('p', null, h('code', null, shortKey(key)), ' gets a fresh time to live. Its value and version do not change.'),
      field('Its own time to live', ttl, { hint: 'Empty: as it has. As 30s, 15m, 12h, 7d' })],
    submit: async () => {
      const request = { namespace: name, key, ifVersion: entry.version };
      if (ttl.value.trim()) request.ttl = takeDuration(ttl.value);
      await api.call('TimeCacheService/Touch', request);
      toast('Its time to live begins anew.', 'ok');
    },
  });
}

export async function removeEntry({ name, api }, key, entry) {
  return confirm({
    title: 'Remove this entry?', action: 'Remove it', danger: true,
    body: h('p', null, h('code', null, shortKey(key)), ' is gone at once. It has no expiry event: watchers and groups ',
      'do not hear of it.'),
    submit: async () => {
      const request = { namespace: name, key };
      // What was looked at, not what has been put since.
      if (entry) request.ifVersion = entry.version;
      await api.call('TimeCacheService/Remove', request);
      toast('The entry is removed.', 'ok');
    },
  });
}

function takeDuration(text) {
  const value = parseDuration(text);
  if (!(value > 0)) throw new Error(`"${text}" is no duration: write it as 30s, 15m, 12h or 7d.`);
  return protoDuration(value);
}

const ENCODINGS = [['text', 'Text'], ['hex', 'Hex'], ['base64', 'Base64']];

function decode(text, encoding, what) {
  if (encoding === 'text') return textToBase64(text);
  if (encoding === 'hex') {
    const data = fromHex(text);
    if (!data) throw new Error(`${what} is not hexadecimal.`);
    return toBase64(data);
  }
  try {
    return toBase64(fromBase64(text.trim()));
  } catch {
    throw new Error(`${what} is not base64.`);
  }
}

function encodingSelect(label, value) {
  return h('select', { 'aria-label': label, value }, ENCODINGS.map(([id, text]) => h('option', { value: id }, text)));
}

// Puts an entry: a new one, whose key may be given, or with `entry` ({key, value, version,
// ...}) a new value for that. Resolves with whether it was put.
export async function editEntry({ name, api, namespace }, entry, newKey = '') {
  const keyData = fromBase64(entry ? entry.key : newKey);
  const isText = !entry || textOf(fromBase64(entry.value)) !== null;
  const keyIsText = textOf(keyData) !== null;
  // A value that is hidden is not shown by editing it: it is replaced.
  const known = entry && showsValues() ? (isText ? textOf(fromBase64(entry.value)) : hex(fromBase64(entry.value))) : '';
  const key = h('input', { value: keyIsText ? textOf(keyData) : hex(keyData),
    readonly: Boolean(entry), class: 'mono', spellcheck: 'false', autocomplete: 'off' });
  const keyEncoding = encodingSelect('The key is', keyIsText ? 'text' : 'hex');
  keyEncoding.disabled = Boolean(entry);
  const value = h('textarea', { rows: 6, spellcheck: 'false', value: known });
  const valueEncoding = encodingSelect('The value is', isText ? 'text' : 'hex');
  const life = h('select', null, h('option', { value: 'fresh' }, 'The namespace\'s time to live'),
    h('option', { value: 'ttl' }, 'A time to live of its own'), h('option', { value: 'at' }, 'Until a given time'),
    entry && h('option', { value: 'keep' }, 'Keep its deadline'));
  const ttl = h('input', { placeholder: durationInput(seconds(namespace?.options.ttl)) });
  const at = h('input', { type: 'datetime-local', step: 1 });
  const ttlField = field('Time to live', ttl, { hint: 'As 30s, 15m, 12h, 7d' });
  const atField = field('Until', at, { hint: 'In this browser\'s time zone' });
  const showLife = () => {
    ttlField.hidden = life.value !== 'ttl';
    atField.hidden = life.value !== 'at';
  };
  life.addEventListener('change', showLife);
  if (entry) life.value = 'keep';
  showLife();
  const condition = h('select', null, entry && h('option', { value: 'version' }, 'If it is still this version'),
    h('option', { value: 'always' }, 'Always'), h('option', { value: 'PUT_CONDITION_IF_ABSENT' }, 'If the key is not there'),
    h('option', { value: 'PUT_CONDITION_IF_PRESENT' }, 'If the key is there'));
  return confirm({
    title: entry ? 'Put a new value' : 'Put an entry', action: 'Put it',
    body: [
      h('div', { class: 'with-encoding' }, field('Key', key), keyEncoding),
      h('div', { class: 'with-encoding' }, field('Value', value, {
        hint: entry && !showsValues() ? 'The old value is hidden; this replaces it.' : undefined }), valueEncoding),
      h('div', { class: 'form-grid' }, field('Life', life), ttlField, atField, field('Put it', condition)),
    ],
    submit: async () => {
      const request = {
        namespace: name, key: entry ? entry.key : decode(key.value, keyEncoding.value, 'The key'),
        value: decode(value.value, valueEncoding.value, 'The value'),
      };
      if (request.key === '') throw new Error('A key has at least one byte.');
      if (life.value === 'ttl') request.ttl = takeDuration(ttl.value);
      if (life.value === 'keep') request.keepDeadline = true;
      if (life.value === 'at') {
        if (!at.value) throw new Error('Until when?');
        request.expireAt = new Date(at.value).toISOString();
      }
      if (condition.value === 'version') request.ifVersion = entry.version;
      else if (condition.value !== 'always') request.condition = condition.value;
      await api.call('TimeCacheService/Put', request);
      toast('It is put.', 'ok');
    },
  });
}
