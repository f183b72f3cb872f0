// The entries of a namespace: a tree of prefixes from a sample, a list in pages, search.
import { ApiError, isAbort } from '../api.js';
import { button, h, replace, setText } from '../dom.js';
import { bytes, count, dateTime, duration, fromBase64, num, plural, shortKey, textOf, textToBase64, time,
  toBase64Url } from '../format.js';
import { scanPages, summaryOf } from '../scan.js';
import { valuesSwitch } from '../value_view.js';
import { editEntry, openEntry } from './entry.js';
import { mountTree } from './ns_tree.js';

const ROWS = 25;
const MAX_FOUND = 500;
// Entries that are read at a time: a page of the server may have only a few of them.
const READ = 500;
// Keys that a search reads before it asks whether to go on: about 20 MB of JSON.
const MAX_READ = 100_000;
const TICK_MS = 1_000;

export function mountBrowse(context) {
  const { name, api, clock, signal, can } = context;
  if (!can('READ')) return { element: h('p', { class: 'muted' }, 'You may not read its entries.') };
  // The entries of the page of the scan that is shown, and the positions before it.
  let buffer = [];
  let at = 0;
  let positions = [''];
  let nextPosition = null;
  let ended = false;
  let search = { mode: 'prefix', text: '' };
  let loading = null;
  let cells = [];

  const text = h('input', { type: 'search', 'aria-label': 'Search keys', placeholder: 'Search keys', spellcheck: 'false' });
  const mode = h('select', { 'aria-label': 'How to search' },
    h('option', { value: 'prefix' }, 'begins with'), h('option', { value: 'contains' }, 'contains'),
    h('option', { value: 'exact' }, 'is exactly'));
  const stop = button('Stop', () => loading?.abort(), { hidden: true });
  const back = button('‹ Previous', () => turn(-1));
  const next = button('Next ›', () => turn(1));
  const status = h('span', { class: 'muted number', role: 'status' });
  const body = h('tbody');
  const form = h('form', { class: 'row search', role: 'search', on: { submit: (event) => {
    event.preventDefault();
    start({ mode: mode.value, text: text.value });
  } } }, mode, text, h('button', { class: 'button', type: 'submit' }, 'Search'), stop);
  const tree = mountTree(context, (prefix) => {
    mode.value = 'prefix';
    text.value = prefix;
    start({ mode: 'prefix', text: prefix });
  });
  const columns = [['Key', ''], ['Size', 'right'], ['Remaining', 'life-column'], ['Deadline', 'nowrap wide-only'], ['', 'right wide-only']];
  const element = h('section', { class: 'card', 'aria-label': 'Entries' },
    h('div', { class: 'card-head' }, h('h2', null, 'Entries'), h('div', { class: 'row' },
      valuesSwitch(), can('WRITE') && button('Put an entry', () => editEntry(context, null).then(reload), { kind: 'primary' }))),
    h('div', { class: 'browse' }, tree.element,
      h('div', { class: 'browse-list' }, form,
        h('div', { class: 'table-scroll', tabindex: '0', role: 'region', 'aria-label': 'Entries: table' },
          h('table', { class: 'entries' }, h('caption', { class: 'visually-hidden' }, 'Entries'),
            h('thead', null, h('tr', null, columns.map(([label, className]) =>
              h('th', { scope: 'col', class: className }, label || h('span', { class: 'visually-hidden' }, 'Actions'))))), body)),
        h('div', { class: 'row pager' }, back, next, status))));

  function say(message) {
    setText(status, message);
  }

  async function run(task) {
    loading?.abort();
    const own = new AbortController();
    loading = own;
    stop.hidden = false;
    try {
      await task(AbortSignal.any([signal, own.signal]));
    } catch (error) {
      if (isAbort(error)) {
        if (loading === own) say('Stopped.');
      } else if (error instanceof ApiError) {
        say('');
        replace(body, h('tr', null, h('td', { colspan: 5, class: 'error' }, error.message)));
      } else {
        throw error;
      }
    } finally {
      if (loading === own) {
        loading = null;
        stop.hidden = true;
      }
    }
  }

  function start(wanted) {
    search = wanted.text === '' ? { mode: 'prefix', text: '' } : wanted;
    positions = [''];
    nextPosition = null;
    buffer = [];
    at = 0;
    return run({ exact: findExact, contains: findContaining, prefix: load }[search.mode]);
  }

  function reload() {
    tree.sample();
    start(search);
  }

  // The entries after the last of `positions`.
  async function load(own) {
    say('Reading …');
    const found = [];
    let position = null;
    ended = await scanPages(api, {
      namespace: name, keyPrefix: textToBase64(search.mode === 'prefix' ? search.text : ''), position: positions.at(-1),
    }, { signal: own, take: (page) => {
      found.push(...(page.entries ?? []).map(summaryOf));
      position = page.position;
      return found.length < READ;
    } });
    buffer = found;
    nextPosition = position;
    draw();
  }

  async function findExact(own) {
    const key = textToBase64(search.text);
    const { entry } = await api.call('TimeCacheService/Get', { namespace: name, key, touch: false }, { signal: own });
    ended = true;
    buffer = entry ? [summaryOf({ ...entry, key })] : [];
    draw();
  }

  // The server searches by prefix only: the keys come here, and those that fit are kept. It
  // begins after `nextPosition`.
  async function findContaining(own) {
    const found = [];
    let seen = 0;
    const isOn = nextPosition !== null;
    ended = await scanPages(api, { namespace: name, keysOnly: true, position: nextPosition ?? '' }, {
      signal: own, take: (page) => {
        for (const entry of page.entries ?? []) {
          if (textOf(fromBase64(entry.key))?.includes(search.text)) found.push({ ...summaryOf(entry), bytes: Number.NaN });
        }
        seen += page.entries?.length ?? 0;
        nextPosition = page.position;
        say(`${plural(found.length, 'key')} found in ${count(seen)} …`);
        return found.length < MAX_FOUND && seen < MAX_READ;
      },
    });
    at = 0;
    buffer = found;
    draw();
    const all = Math.max(num(context.namespace.statistics.entries), seen);
    say(`${plural(found.length, 'key')} found in ${count(seen)} of ${count(all)} keys${
      isOn ? ' from the last place on' : ''}. ${ended ? '' : 'Next goes on.'}`);
  }

  function turn(step) {
    if (step > 0 && at + ROWS < buffer.length) {
      at += ROWS;
      draw();
    } else if (step > 0 && nextPosition) {
      at = 0;
      if (search.mode === 'contains') {
        run(findContaining);
        return;
      }
      positions.push(nextPosition);
      run(load);
    } else if (step < 0 && at > 0) {
      at = Math.max(0, at - ROWS);
      draw();
    } else if (step < 0 && positions.length > 1) {
      positions.pop();
      at = 0;
      run(load);
    }
  }

  function draw() {
    const shown = buffer.slice(at, at + ROWS);
    cells = [];
    replace(body, shown.map(row), shown.length === 0 && h('tr', null, h('td', { colspan: 5, class: 'empty' },
      search.text ? 'No such key.' : positions.length > 1 ? 'There are no more entries.' : 'There are no entries.')));
    const isPaged = search.mode !== 'exact';
    back.disabled = at === 0 && positions.length === 1;
    next.disabled = at + ROWS >= buffer.length && !(isPaged && !ended && nextPosition);
    if (shown.length === 0) say('');
    else say(`${count(shown.length)} shown, in no order`);
    tick();
  }

  function row(entry) {
    const key = shortKey(entry.key);
    const left = h('span', { class: 'number' });
    const deadline = dateTime(time(entry.deadline), { fraction: false });
    const bar = h('div', { class: 'life-bar', 'aria-hidden': 'true' }, h('div'));
    cells.push({ entry, left, bar: bar.firstElementChild });
    const open = () => openEntry(context, entry.key).then((changed) => changed && reload());
    return h('tr', null,
      h('td', { class: 'key' }, h('button', { type: 'button', class: 'link', on: { click: open } }, key),
        entry.isGather && h('span', { class: 'badge' }, 'gathers'), entry.ownTtl && h('span', { class: 'badge' }, 'own ttl')),
      h('td', { class: 'right' }, Number.isNaN(entry.bytes) ? '–' : bytes(entry.bytes)),
      h('td', { class: 'life-column' }, left, bar, h('span', { class: 'hint narrow-only' }, deadline)),
      h('td', { class: 'nowrap wide-only' }, deadline),
      h('td', { class: 'right wide-only' }, h('a', {
        href: `#/key/${encodeURIComponent(name)}/${toBase64Url(entry.key)}`, 'aria-label': `Life of ${key}`,
      }, 'Life')));
  }

  // What is left of each life that is shown.
  function tick() {
    const now = clock.now();
    for (const { entry, left, bar } of cells) {
      const rest = (time(entry.deadline) - now) / 1000;
      setText(left, rest > 0 ? duration(rest < 10 ? rest : Math.round(rest)) : 'over');
      const whole = (time(entry.deadline) - time(entry.putTime)) / 1000;
      bar.style.setProperty('width', `${Math.min(100, Math.max(0, (rest / whole) * 100)).toFixed(1)}%`);
    }
  }
  const timer = setInterval(tick, TICK_MS);
  start(search);
  return { element, stop: () => clearInterval(timer) };
}

