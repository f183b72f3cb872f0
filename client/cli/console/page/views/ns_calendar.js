// The calendar of coming deaths: how many entries and bytes die when, over a chosen time.
import { ApiError, poll } from '../api.js';
import { barChart } from '../charts.js';
import { getDeaths, isIn, stormsOf, turnOf } from '../deaths.js';
import { button, h, replace, setText, table } from '../dom.js';
import { bytes, count, dateTime, duration, plural } from '../format.js';

const BARS = 100;
const ROWS = 20;
const CALENDAR_MS = 2_000;
const RANGES = [['One ttl', 'ttl'], ['1 min', 60], ['1 h', 3_600], ['1 day', 86_400], ['All', undefined]];

export function mountCalendar(context) {
  const { name, api, signal } = context;
  let within = 'ttl';
  let deaths = null;
  let tableOpen = false;
  let length = 1;
  const entriesRoot = h('div', { role: 'img', 'aria-label': 'Entries by the time of their death' });
  const bytesRoot = h('div', { role: 'img', 'aria-label': 'Bytes by the time of their death' });
  const range = () => [0, deaths?.span ?? 1];
  const entries = barChart(entriesRoot, { label: 'entries', unit: 'count', token: '--series-1', mark: 'calendar',
    lengthOf: () => length, range, height: 150 });
  const sizes = barChart(bytesRoot, { label: 'bytes', unit: 'bytes', token: '--series-3', mark: 'calendar',
    lengthOf: () => length, range, height: 150 });
  const summary = h('p', { class: 'muted number', role: 'status' });
  const rows = h('div');
  const buttons = RANGES.map(([label, value]) => button(label, () => {
    within = value;
    press();
    refresh().catch(() => {});
  }));
  const press = () => buttons.forEach((each, i) => each.setAttribute('aria-pressed', String(RANGES[i][1] === within)));
  press();
  const details = h('details', { on: { toggle: () => {
    tableOpen = details.open;
    drawRows();
  } } }, h('summary', null, 'As a table'), rows);
  const element = h('section', { class: 'card', 'aria-label': 'Calendar' },
    h('div', { class: 'card-head' }, h('h2', null, 'Coming deaths'),
      h('div', { class: 'segments', role: 'group', 'aria-label': 'Time ahead' }, buttons)),
    summary, h('div', { class: 'two-charts' },
      h('div', null, h('h3', null, 'Entries'), entriesRoot), h('div', null, h('h3', null, 'Bytes'), bytesRoot)), details);

  function drawRows() {
    if (!tableOpen || !deaths) return;
    const bars = deaths.bars.filter((bar) => bar.entries > 0);
    // As many rows as can be read: neighbours are added up.
    const each = Math.ceil(bars.length / ROWS) || 1;
    const merged = [];
    for (let i = 0; i < bars.length; i += each) {
      const part = bars.slice(i, i + each);
      merged.push([dateTime(part[0].begin), `in ${duration(Math.max(0, (part[0].begin - deaths.now) / 1000))}`,
        duration((part.at(-1).end - part[0].begin) / 1000),
        count(part.reduce((sum, bar) => sum + bar.entries, 0)), bytes(part.reduce((sum, bar) => sum + bar.bytes, 0))]);
    }
    if (deaths.laterEntries > 0) merged.push(['later', '', '', count(deaths.laterEntries), bytes(deaths.laterBytes)]);
    replace(rows, table('Coming deaths', [{ label: 'From' }, { label: 'Ahead', class: 'right' }, { label: 'Within', class: 'right' },
      { label: 'Entries', class: 'right' }, { label: 'Bytes', class: 'right' }], merged, { empty: 'Nothing is there to die.' }));
  }

  async function refresh() {
    const wanted = within;
    const span = wanted === 'ttl' ? turnOf(context.namespace) : wanted;
    const found = await getDeaths(api, name, { maxBars: BARS, within: span, signal });
    if (wanted !== within) return;
    deaths = found;
    const { bars, now } = deaths;
    deaths.span = span ?? Math.max(1, bars.length > 0 ? (bars.at(-1).end - now) / 1000 : 1);
    length = bars.length > 0 ? (bars[0].end - bars[0].begin) / 1000 : 1;
    const storms = stormsOf(deaths);
    const at = bars.map((bar) => (bar.begin - now) / 1000);
    const split = (id) => [at, bars.map((bar) => (isIn(storms, bar) ? null : bar[id])),
      bars.map((bar) => (isIn(storms, bar) ? bar[id] : null))];
    entries.set(split('entries'));
    sizes.set(split('bytes'));
    setText(summary, `${plural(deaths.entries, 'entry dies', 'entries die')} in all, ${bytes(deaths.bytes)}, unless renewed or removed`
      + `${deaths.laterEntries > 0 ? `; ${count(deaths.laterEntries)} of them after the time shown` : ''}.${
        storms.length > 0 ? ` Largest storm: ${count(storms[0].entries)} in ${
          duration(Math.max(0, (storms[0].begin - now) / 1000))}, ${Math.round(storms[0].factor)} times the mean.` : ''}`);
    drawRows();
  }

  poll(async () => {
    try {
      await refresh();
    } catch (error) {
      if (error instanceof ApiError && error.code === 'PERMISSION_DENIED') element.hidden = true;
      throw error;
    }
  }, CALENDAR_MS, signal);
  return { element, stop: () => { entries.stop(); sizes.stop(); } };
}
