// Overview: the wheel of one namespace, large; the wheels of the others; rates, memory and
// lateness of the last hour; the journal and the cluster.
import { isAbort, poll } from '../api.js';
import { barChart } from '../charts.js';
import { getWheel, isIn, stormsOf } from '../deaths.js';
import { h, replace, setText } from '../dom.js';
import { bytes, count, duration, num, plural, rate, seconds, shortCount, time } from '../format.js';
import { sampleLateness } from '../sampler.js';
import { Wheel, wheelCaption } from '../wheel.js';
import { mountCharts } from './overview_charts.js';
import { mountGrid } from './overview_grid.js';
import { mountServer } from './overview_server.js';

const WHEEL_BARS = 120;
const STORMS_SHOWN = 5;
const FOCUS = 'timecached.focus';

export function mount(root, { api, can, clock, sampler }) {
  const running = new AbortController();
  const { signal } = running;
  const stops = [() => running.abort()];
  let name = sessionStorage.getItem(FOCUS);
  let loop = null;

  const tiles = tileRow();
  const hero = heroCard(clock);
  stops.push(() => hero.stop());
  const charts = mountCharts(sampler, signal);
  const server = mountServer(sampler, signal);
  const grid = mountGrid({ api, can, clock, sampler, signal, onFocus: (next) => {
    focus(next);
    hero.element.scrollIntoView({ block: 'nearest' });
  } });
  stops.push(() => grid.stop(), () => charts.stop());
  replace(root, h('div', { class: 'stack' }, tiles.element, hero.element, charts.element,
    grid.element, server.element));

  function focus(next) {
    loop?.abort();
    name = next;
    sampler.focus(name);
    charts.focus(name);
    grid.select(name);
    if (name === null) {
      hero.showNothing();
      return;
    }
    sessionStorage.setItem(FOCUS, name);
    loop = new AbortController();
    const each = AbortSignal.any([signal, loop.signal]);
    hero.begin(name);
    followWheel(name, each);
    if (can('WATCH', name)) sampleLateness(sampler, name, each).catch(() => {});
  }

  async function followWheel(which, each) {
    let last = null;
    const round = async () => {
      const namespace = sampler.namespaces.get(which);
      if (!namespace) return;
      try {
        last = await getWheel(api, namespace, { maxBars: WHEEL_BARS, signal: each, last });
        hero.update(namespace, last);
      } catch (error) {
        if (!isAbort(error)) hero.fail(error);
        throw error;
      }
    };
    await poll(round, 1_000, each);
  }

  sampler.addEventListener('sample', () => tiles.update(sampler, name), { signal });
  sampler.addEventListener('namespaces', choose, { signal });

  // The namespace that was looked at last, or the one with most entries.
  function choose() {
    const all = sampler.namespaces;
    if (name !== null && all.has(name) && sampler.focused === name && loop) return;
    if (name === null || !all.has(name)) {
      let most = null;
      for (const each of all.values()) {
        if (!can('READ', each.name)) continue;
        if (!most || num(each.statistics.entries) > num(most.statistics.entries)) most = each;
      }
      name = most ? most.name : null;
    }
    focus(name);
  }

  if (sampler.namespaces.size > 0) choose();
  if (sampler.server) tiles.update(sampler, name);
  stops.push(() => {
    loop?.abort();
    sampler.focus(null);
  });
  return () => stops.forEach((stop) => stop());
}

function tileRow() {
  const cells = new Map();
  const make = (id, label) => {
    const value = h('div', { class: 'tile-value' }, '–');
    const note = h('div', { class: 'tile-note' });
    cells.set(id, { value, note });
    return h('div', { class: 'tile' }, h('div', { class: 'tile-label' }, label), value, note);
  };
  const element = h('div', { class: 'tiles' },
    make('entries', 'Entries'), make('memory', 'Memory'), make('writes', 'Writes'), make('reads', 'Reads'),
    make('deaths', 'Deaths'), make('lateness', 'Lateness'), make('watchers', 'Streams'), make('uptime', 'Up since'));
  const set = (id, value, note = '') => {
    setText(cells.get(id).value, value);
    setText(cells.get(id).note, note);
  };
  const ofMost = (use, format) => (use && num(use.max) > 0 ? `of ${format(use.max)}` : '');
  return {
    element,
    update(sampler, name) {
      const { server, totalRates = {} } = sampler;
      const all = [...sampler.namespaces.values()];
      const sum = (field) => all.reduce((total, each) => total + num(each.statistics[field]), 0);
      const namespaces = plural(all.length, 'namespace');
      set('entries', shortCount(server.entries ? server.entries.used : sum('entries')),
        ofMost(server.entries, shortCount) || namespaces);
      set('memory', bytes(server.memoryBytes ? server.memoryBytes.used : sum('memoryBytes')),
        ofMost(server.memoryBytes, bytes) || 'no limit');
      set('writes', rate(totalRates.writes), 'all namespaces');
      set('reads', rate(totalRates.reads), 'all namespaces');
      set('deaths', rate(totalRates.deaths), 'all namespaces');
      const ring = name && sampler.rings.get(name);
      const late = ring ? lastOf(ring, 'lateness') : Number.NaN;
      const bound = ring ? ring.last('bound') : Number.NaN;
      set('lateness', Number.isFinite(late) ? duration(late) : '–',
        Number.isFinite(bound) ? `${name}: bound ${duration(bound)}` : '');
      set('watchers', server.watchers ? count(server.watchers.used) : count(sum('watchers')),
        server.connections ? plural(server.connections.used, 'connection') : 'watching');
      set('uptime', duration((time(server.now) - time(server.startTime)) / 1000), `version ${server.version}`);
    },
  };
}

// The latest value that is not a gap.
function lastOf(ring, name) {
  const [, values] = ring.window(120, [name]);
  return values.filter((value) => value !== null).at(-1) ?? Number.NaN;
}

function heroCard(clock) {
  const title = h('h2', null, 'Wheel');
  const facts = h('span', { class: 'muted' });
  const open = h('a', { class: 'button', href: '#/' }, 'Open namespace');
  const tape = h('a', { class: 'button', href: '#/' }, 'Tape');
  const caption = wheelCaption(clock);
  const rest = { text: '' };
  const wheel = new Wheel(clock, { onSelect: (bar) => caption.show(bar, rest.text) });
  const entriesRoot = h('div', { role: 'img', 'aria-label': 'Entries by the time of their death' });
  const bytesRoot = h('div', { role: 'img', 'aria-label': 'Bytes by the time of their death' });
  const storms = h('div', { class: 'storms' });
  let deaths = { bars: [], span: 1 };
  const length = () => (deaths.bars.length > 0 ? (deaths.bars[0].end - deaths.bars[0].begin) / 1000 : 1);
  const range = () => [0, deaths.span];
  const entriesChart = barChart(entriesRoot, {
    label: 'entries', unit: 'count', token: '--series-1', lengthOf: length, range, showX: false, height: 124 });
  const bytesChart = barChart(bytesRoot, {
    label: 'bytes', unit: 'bytes', token: '--series-3', lengthOf: length, range, height: 148 });
  const error = h('p', { class: 'error', role: 'alert', hidden: true });
  const element = h('section', { class: 'card hero', 'aria-label': 'Wheel of buckets' },
    h('div', { class: 'card-head' }, h('div', { class: 'row' }, title, facts),
      h('div', { class: 'row' }, tape, open)),
    error,
    h('div', { class: 'hero-body' },
      h('div', { class: 'hero-wheel' }, wheel.element, caption.node),
      h('div', { class: 'hero-side' },
        h('h3', null, 'Entries by the time when they die'), entriesRoot,
        h('h3', null, 'Bytes'), bytesRoot,
        h('h3', null, 'Storms ahead'), storms)));

  return {
    element,
    begin(name) {
      setText(title, name);
      setText(facts, '');
      open.setAttribute('href', `#/ns/${encodeURIComponent(name)}`);
      tape.setAttribute('href', `#/tape/${encodeURIComponent(name)}`);
      open.hidden = false;
      tape.hidden = false;
    },
    showNothing() {
      setText(title, 'No namespace');
      setText(facts, 'There is none whose entries you may see.');
      open.hidden = true;
      tape.hidden = true;
    },
    fail(failure) {
      error.hidden = false;
      setText(error, failure.message);
    },
    update(namespace, next) {
      deaths = next;
      error.hidden = true;
      const { options } = namespace;
      setText(facts, `ttl ${duration(seconds(options.ttl))} in ${count(options.numBuckets)} buckets of ${
        duration(seconds(namespace.bucketWidth))}${options.sliding ? ', sliding' : ''}`);
      rest.text = `One turn is ${duration(next.span)}. ${next.laterEntries > 0
        ? `${plural(next.laterEntries, 'entry dies', 'entries die')} later.` : ''}`;
      wheel.update(namespace.name, next, namespace);
      if (wheel.selected < 0) caption.show(null, rest.text);
      const found = stormsOf(next);
      const at = next.bars.map((bar) => (bar.begin - next.now) / 1000);
      const split = (field) => [at,
        next.bars.map((bar) => (isIn(found, bar) ? null : bar[field])),
        next.bars.map((bar) => (isIn(found, bar) ? bar[field] : null))];
      entriesChart.set(split('entries'));
      bytesChart.set(split('bytes'));
      showStorms(storms, found, next);
    },
    stop() {
      wheel.stop();
      entriesChart.stop();
      bytesChart.stop();
    },
  };
}

function showStorms(node, storms, deaths) {
  if (storms.length === 0) {
    replace(node, h('p', { class: 'muted' }, deaths.entries === 0 ? 'Nothing is there to die.'
      : 'None: deaths are spread evenly enough.'));
    return;
  }
  replace(node, h('ul', { class: 'storm-list' }, [...storms.slice(0, STORMS_SHOWN)].sort((a, b) => a.begin - b.begin).map((storm) =>
    h('li', null, h('span', { class: 'badge bad' }, `in ${duration(Math.max(0, (storm.begin - deaths.now) / 1000))}`),
      h('span', { class: 'number' }, h('strong', null, count(storm.entries)), ' entries, ', bytes(storm.bytes),
        ` within ${duration((storm.end - storm.begin) / 1000)}: ${Math.round(storm.factor)} times the mean`)))),
  storms.length > STORMS_SHOWN && h('p', { class: 'muted' }, `and ${storms.length - STORMS_SHOWN} more`));
}

