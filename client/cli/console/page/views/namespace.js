// Namespace: its calendar of deaths, its entries, its options, load and download.
import { ApiError, poll } from '../api.js';
import { button, confirm, field, h, replace, setText, toast } from '../dom.js';
import { bytes, count, duration, enumText, num, plural, rate, seconds, shortCount } from '../format.js';
import { mountBrowse } from './ns_browse.js';
import { mountCalendar } from './ns_calendar.js';
import { mountOptions } from './ns_options.js';
import { mountTransfer } from './ns_transfer.js';

const DESCRIBE_MS = 2_000;

export function mount(root, { params, api, can, clock, info, sampler }) {
  const { name } = params;
  const running = new AbortController();
  const { signal } = running;
  const context = { name, api, can: (verb) => can(verb, name), clock, info, signal, sampler,
    namespace: null, listeners: [] };
  const ring = sampler.focus(name);
  const parts = [];
  const tiles = tileRow();
  const body = h('div', { class: 'stack' });
  const error = h('div', { class: 'card notice', role: 'alert', hidden: true });
  replace(root, h('div', { class: 'stack' }, error, tiles.element, body));

  function fail(failure) {
    error.hidden = false;
    tiles.element.hidden = true;
    body.hidden = true;
    replace(error, h('h2', null, failure.reason === 'NAMESPACE_NOT_FOUND' ? 'There is no such namespace.'
      : failure.code === 'PERMISSION_DENIED' ? 'You may not see this namespace.' : 'The namespace cannot be shown.'),
    h('p', { class: 'muted' }, failure.message),
    failure.code === 'PERMISSION_DENIED' && can('WATCH', name) && h('p', null,
      'You may watch it: ', h('a', { href: `#/tape/${encodeURIComponent(name)}` }, 'Tape')));
  }

  const describe = async () => {
    let namespace;
    try {
      ({ namespace } = await api.call('NamespaceService/GetNamespace', { name, includeStatistics: true }, { signal }));
    } catch (failure) {
      if (failure instanceof ApiError && failure.code !== 'UNAVAILABLE') fail(failure);
      throw failure;
    }
    error.hidden = true;
    tiles.element.hidden = false;
    body.hidden = false;
    context.namespace = namespace;
    tiles.update(namespace, ring);
    if (parts.length === 0) {
      parts.push(mountCalendar(context), mountBrowse(context), mountOptions(context), mountTransfer(context));
      replace(body, parts.map((part) => part.element), dangerZone(context));
    }
    context.listeners.forEach((listen) => listen(namespace));
  };
  context.describe = () => describe().catch(() => {});
  poll(describe, DESCRIBE_MS, signal);
  return () => {
    running.abort();
    sampler.focus(null);
    parts.forEach((part) => part.stop?.());
  };
}

function tileRow() {
  const cells = {};
  const make = (id, label) => {
    cells[id] = [h('div', { class: 'tile-value' }, '–'), h('div', { class: 'tile-note' })];
    return h('div', { class: 'tile' }, h('div', { class: 'tile-label' }, label), cells[id]);
  };
  const element = h('div', { class: 'tiles' }, make('entries', 'Entries'), make('bytes', 'Bytes'),
    make('ttl', 'Time to live'), make('durability', 'Durability'), make('rates', 'Writes'), make('deaths', 'Deaths'),
    make('lateness', 'Lateness (99 %)'), make('events', 'Events kept'));
  const set = (id, value, note) => {
    setText(cells[id][0], value);
    setText(cells[id][1], note ?? '');
  };
  return {
    element,
    update({ options, statistics, bucketWidth }, ring) {
      const limit = (value, format) => (num(value) > 0 ? `of ${format(value)}` : 'no limit');
      set('entries', shortCount(statistics.entries), limit(options.maxEntries, shortCount));
      set('bytes', bytes(statistics.bytes), limit(options.maxBytes, bytes));
      set('ttl', duration(seconds(options.ttl)), `${count(options.numBuckets)} buckets of ${duration(seconds(bucketWidth))}`);
      set('durability', enumText(options.durability, 'DURABILITY'), options.sliding ? 'reads renew (sliding)' : 'reads do not renew');
      set('rates', rate(ring.last('writes')), `${rate(ring.last('reads'))} reads`);
      set('deaths', rate(ring.last('deaths')), `${shortCount(num(statistics.expired) + num(statistics.evicted)
        + num(statistics.rotated))} since the start`);
      set('lateness', seconds(statistics.latenessP99) > 0 ? `≤ ${duration(seconds(statistics.latenessP99))}` : '–',
        num(statistics.boundViolations) > 0 ? `${shortCount(statistics.boundViolations)} beyond the bound`
          : 'none beyond the bound');
      set('events', shortCount(statistics.eventsRetained),
        `${bytes(statistics.eventsRetainedBytes)}, ${plural(statistics.watchers, 'stream')}`);
    },
  };
}

// What cannot be undone, last and apart.
function dangerZone({ name, api, can }) {
  if (!can('ADMIN')) return null;
  const rotate = async () => {
    const sure = await confirm({
      title: 'Kill the oldest bucket?', action: 'Kill it', danger: true,
      body: h('p', null, 'The entries that would die next die now, before their time, and are delivered to the ',
        'watchers and groups with the cause ', h('em', null, 'rotated'), '.'),
      submit: async () => {
        const { entries } = await api.call('NamespaceService/RotateNamespace', { name });
        toast(`${plural(entries ?? 0, 'entry', 'entries')} died.`, 'ok');
      },
    });
    return sure;
  };
  const remove = async () => {
    const typed = h('input', { autocomplete: 'off' });
    const sure = await confirm({
      title: `Delete ${name}?`, action: 'Delete it', danger: true,
      body: [h('p', null, 'All its entries, events, groups and unsettled events are gone. Its entries have no expiry ',
        'events; watchers\' streams end. This cannot be undone.'), field(`Write ${name} to confirm`, typed)],
      submit: async () => {
        if (typed.value.trim() !== name) throw new Error('That is not its name.');
        await api.call('NamespaceService/DeleteNamespace', { name });
      },
    });
    if (!sure) return;
    toast(`${name} is deleted.`, 'ok');
    document.dispatchEvent(new Event('namespaceschange'));
    location.hash = '#/';
  };
  return h('section', { class: 'card' }, h('div', { class: 'card-head' }, h('h2', null, 'Cannot be undone'),
    h('div', { class: 'row' }, button('Kill the oldest bucket', rotate, { kind: 'danger' }),
      button('Delete the namespace', remove, { kind: 'danger' }))));
}

