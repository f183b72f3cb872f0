// The last hour: rates, memory, and lateness against its bound, as the sampler has them.
import { lineChart } from '../charts.js';
import { button, h, setText } from '../dom.js';

const RANGES = [['5 min', 300], ['15 min', 900], ['1 h', 3600]];
const RANGE = 'timecached.range';

export function mountCharts(sampler, signal) {
  let length = Number(sessionStorage.getItem(RANGE)) || RANGES[0][1];
  let name = null;
  const range = () => [Date.now() / 1000 - length, Date.now() / 1000];
  const panel = (title, options) => {
    const root = h('div', { role: 'img', 'aria-label': title });
    const heading = h('h2', null, title);
    const note = h('span', { class: 'hint' });
    return {
      root, heading, note, chart: lineChart(root, { ...options, range }),
      element: h('section', { class: 'card' }, h('div', { class: 'card-head' }, heading, note), root),
    };
  };
  const rates = panel('Rates', {
    unit: 'rate',
    series: [{ label: 'writes', token: '--series-1' }, { label: 'reads', token: '--series-3' },
      { label: 'deaths', token: '--series-2', fill: true }],
  });
  const lateness = panel('Lateness of deaths', {
    unit: 'seconds', log: true,
    series: [{ label: 'latest', token: '--series-1', points: true, spanGaps: true },
      { label: 'median', token: '--series-3', spanGaps: true }, { label: 'bound', token: '--bad', dash: [6, 4] }],
  });
  const memory = panel('Memory', {
    unit: 'bytes',
    series: [{ label: 'server', token: '--series-4', fill: true }, { label: 'namespace', token: '--series-1' }],
  });
  const buttons = RANGES.map(([label, value]) => button(label, () => {
    length = value;
    sessionStorage.setItem(RANGE, String(value));
    press();
    draw();
  }));
  const press = () => buttons.forEach((each, i) => each.setAttribute('aria-pressed', String(RANGES[i][1] === length)));
  press();
  const element = h('section', { class: 'stack', 'aria-label': 'The last hour' },
    h('div', { class: 'section-head' }, h('h2', null, 'Last hour'),
      h('span', { class: 'hint grow' }, 'Sampled once a second while this page is open.'),
      h('div', { class: 'segments', role: 'group', 'aria-label': 'Time shown' }, buttons)),
    h('div', { class: 'chart-grid' }, rates.element, lateness.element, memory.element));

  const draw = () => {
    const ring = name && sampler.rings.get(name);
    if (!ring) return;
    rates.chart.set(ring.window(length, ['writes', 'reads', 'deaths']));
    lateness.chart.set(ring.window(length, ['lateness', 'latenessP50', 'bound']));
    // Two rings with times of their own: the server's, and with the namespace's on it.
    const [times, server] = sampler.history.window(length, ['memory']);
    const [ownTimes, own] = ring.window(length, ['memory']);
    const at = new Map(ownTimes.map((each, i) => [Math.round(each), own[i]]));
    memory.chart.set([times, server, times.map((each) => at.get(Math.round(each)) ?? null)]);
  };
  // A chart of an hour need not be drawn more than every few seconds.
  let drawnAt = 0;
  sampler.addEventListener('sample', () => {
    if (document.hidden || performance.now() - drawnAt < (length / 300) * 900) return;
    drawnAt = performance.now();
    draw();
  }, { signal });
  return {
    element,
    focus(next) {
      name = next;
      setText(rates.note, name ?? '');
      setText(lateness.note, name ? `${name}: a sample of its deaths` : '');
      setText(memory.note, name ? `server, ${name}` : '');
      draw();
    },
    stop() {
      for (const each of [rates, lateness, memory]) each.chart.stop();
    },
  };
}
