// A value as text, JSON or hex. Hidden until it is asked for: values may be secrets, and
// screens are shared.
import { button, h, replace, toast } from './dom.js';
import { bytes, fromBase64, hexDump, keyText, num, prettyJson, textOf, textOfBeginning, visible } from './format.js';

// Of a large value only its beginning is drawn.
const MAX_DRAWN = 64 * 1024;
const SHOW = 'timecached.values';

// Whether values are shown at once, which the user chose for this tab.
export function showsValues() {
  return sessionStorage.getItem(SHOW) === 'yes';
}

// A checkbox for that; `change` is called after it.
export function valuesSwitch(change) {
  const box = h('input', {
    type: 'checkbox', checked: showsValues(),
    on: { change: () => {
      sessionStorage.setItem(SHOW, box.checked ? 'yes' : 'no');
      change?.();
    } },
  });
  return h('label', { class: 'check' }, box, 'Show values');
}

// The forms in which the bytes can be read: the one that fits best is the first.
function formsOf(data) {
  const text = textOfBeginning(data, MAX_DRAWN);
  const forms = [];
  const json = text === null ? null : prettyJson(text);
  if (json !== null) forms.push(['JSON', () => visible(json)]);
  if (text !== null) forms.push(['Text', () => visible(text)]);
  forms.push(['Hex', () => hexDump(data.subarray(0, MAX_DRAWN))]);
  return forms;
}

// An element with the value of an entry or event: {value, parts, omittedValueBytes}.
export function valueView({ value, parts, omittedValueBytes }) {
  if (num(omittedValueBytes) > 0) {
    return h('p', { class: 'muted' }, `${bytes(omittedValueBytes)}: too large to be sent here.`);
  }
  if (parts) return partsView(parts);
  const data = fromBase64(value);
  const root = h('div', { class: 'value' });
  const size = h('span', { class: 'muted number' }, bytes(data.length));
  if (data.length === 0) return replace(root, h('span', { class: 'muted' }, 'Empty.'));
  const show = () => {
    const forms = formsOf(data);
    const pre = h('pre', { class: 'value-text', tabindex: '0', 'aria-label': 'Value' });
    const buttons = forms.map(([label, make]) => button(label, () => {
      pre.textContent = make();
      buttons.forEach((each) => each.setAttribute('aria-pressed', String(each.textContent === label)));
    }));
    replace(root, h('div', { class: 'row' },
      h('div', { class: 'segments', role: 'group', 'aria-label': 'Shown as' }, buttons), size,
      button('Copy', () => copy(textOf(data) ?? value), { kind: 'quiet' }),
      button('Hide', hide, { kind: 'quiet' })), pre,
    data.length > MAX_DRAWN && h('p', { class: 'hint' }, `The first ${bytes(MAX_DRAWN)} are shown.`));
    buttons[0].click();
  };
  const hide = () => replace(root, h('div', { class: 'row' }, h('span', { class: 'mono muted', 'aria-hidden': 'true' }, '••••••••'),
    size, button('Show value', show)));
  if (showsValues()) show();
  else hide();
  return root;
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    toast('Copied.');
  } catch {
    toast('The browser did not allow to copy.', 'bad');
  }
}

function partsView(parts) {
  const collected = parts.parts ?? [];
  const names = parts.expectedNames ?? [];
  const expected = names.length || num(parts.expectedParts);
  const missing = names.filter((name) => !collected.some((part) => part.name === name));
  return h('div', { class: 'value' },
    h('p', null, `${collected.length} of ${expected} parts are collected.`),
    h('dl', { class: 'facts-list' }, collected.map((part) =>
      [h('dt', { class: 'mono' }, keyText(part.name)), h('dd', null, valueView(part))])),
    missing.length > 0 && h('p', { class: 'muted' }, `Missing: ${missing.map(keyText).join(', ')}`));
}
