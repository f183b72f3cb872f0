// uPlot in the page's colours: lines over time, and bars of deaths.
import uPlot from './vendor/uPlot.esm.js';
import { bytes, duration, shortCount } from './format.js';

const dark = window.matchMedia('(prefers-color-scheme: dark)');
let probe = null;

// The colour of a token such as '--accent' in the theme of now: a canvas knows no tokens.
function colour(token) {
  if (!probe) {
    probe = document.createElement('span');
    probe.hidden = true;
  }
  if (!probe.isConnected) document.body.append(probe);
  probe.style.setProperty('color', `var(${token})`);
  return getComputedStyle(probe).color;
}

function withAlpha(token, alpha) {
  return colour(token).replace(/^rgb\((.*)\)$/, `rgba($1, ${alpha})`);
}

const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';

const FORMATS = {
  count: (value) => shortCount(value),
  rate: (value) => (value !== 0 && Math.abs(value) < 10 ? `${Number(value.toPrecision(2))}/s` : `${shortCount(value)}/s`),
  bytes: (value) => bytes(value),
  seconds: (value) => duration(value),
};

// Steps of an axis of times, in seconds.
const SECONDS = [0.001, 0.01, 0.1].flatMap((unit) => [1, 2, 5].map((n) => n * unit)).concat(
  [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 2 * 3600, 6 * 3600, 12 * 3600],
  [1, 2, 7, 14, 30, 60, 180, 365, 730].map((days) => days * 86400));
// Steps of an axis of bytes: powers of two.
const BYTE_STEPS = Array.from({ length: 50 }, (_, i) => 2 ** i);

function powersOfTen(min, max) {
  const powers = [];
  for (let at = Math.round(Math.log10(min)); at <= Math.round(Math.log10(max)); at += 1) powers.push(10 ** at);
  return powers;
}

function axes(unit, xAxis, log = false) {
  const line = { stroke: colour('--muted'), font: FONT };
  return [{
    ...line, grid: { show: false }, ticks: { stroke: colour('--line'), size: 4 }, size: 30, ...xAxis,
  }, {
    ...line, size: 66, gap: 6, grid: { stroke: colour('--grid'), width: 1 }, ticks: { show: false },
    values: (_, splits) => splits.map((value) => (value === null ? '' : FORMATS[unit](value))),
    ...(log ? { splits: (_, axis, min, max) => powersOfTen(min, max) } : {}),
    ...(unit === 'bytes' ? { incrs: BYTE_STEPS } : {}),
    ...(unit === 'count' ? { incrs: [1, 2, 5, ...Array.from({ length: 12 }, (_, i) => [1, 2, 5].map((n) => n * 10 ** (i + 1))).flat()] } : {}),
  }];
}

class Chart {
  constructor(root, height, options) {
    this.root = root;
    this.height = height;
    this.options = options;
    this.data = null;
    this.plot = null;
    this.redraw = () => {
      this.plot?.destroy();
      this.plot = null;
      this.draw();
    };
    this.observer = new ResizeObserver(() => {
      if (this.plot && root.clientWidth > 0) this.plot.setSize({ width: root.clientWidth, height });
      else this.draw();
    });
    this.observer.observe(root);
    document.addEventListener('themechange', this.redraw);
    dark.addEventListener('change', this.redraw);
  }

  set(data) {
    this.data = data;
    if (this.plot) this.plot.setData(data);
    else this.draw();
  }

  draw() {
    if (!this.data || this.root.clientWidth === 0 || !this.root.isConnected) return;
    this.plot = new uPlot({
      ...this.options(), width: this.root.clientWidth, height: this.height,
    }, this.data, this.root);
    // The root has a name as an image; its legend is no table for screen readers.
    this.plot.root.setAttribute('aria-hidden', 'true');
  }

  stop() {
    this.observer.disconnect();
    document.removeEventListener('themechange', this.redraw);
    dark.removeEventListener('change', this.redraw);
    this.plot?.destroy();
    this.plot = null;
  }
}

function text(unit) {
  return (_, value) => (value === null || value === undefined ? '' : FORMATS[unit](value));
}

const pad = (value) => String(value).padStart(2, '0');

function clock(at) {
  const date = new Date(at * 1000);
  return `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
}

// Lines over the browser's time: series of {label, token, fill, dash}. `unit` is one of
// FORMATS; `log` for values over several orders of magnitude. The data are Ring.window's;
// `range` gives the x axis's [from, to] in seconds since 1970.
export function lineChart(root, { series, unit, log = false, height = 170, range }) {
  root.classList.add('chart');
  return new Chart(root, height, () => ({
    cursor: { sync: { key: 'time', setSeries: false }, y: false, points: { size: 6 }, drag: { x: false, y: false } },
    legend: { live: true }, padding: [10, 12, 0, 0],
    scales: {
      x: { time: true, range: () => range() },
      y: log ? { distr: 3, range: (_, min, max) => (min === null ? [1e-4, 1] : [
        10 ** Math.floor(Math.log10(Math.min(Math.max(min, 1e-6), 1e-3))), 10 ** Math.ceil(Math.log10(Math.max(max, 1e-5)))]) }
        : { range: (_, min, max) => [0, Math.max(max ?? 0, unit === 'bytes' ? 1024 : 1) * 1.08] },
    },
    axes: axes(unit, {
      space: 76,
      values: (_, splits) => splits.map((at) => (at % 60 === 0 ? clock(at).slice(0, 5) : clock(at))),
    }, log),
    series: [{ label: '\u00a0', value: (_, at) => (at === null ? '' : clock(at)) }, ...series.map((each) => ({
      label: each.label, stroke: colour(each.token), width: 1.5, dash: each.dash, spanGaps: Boolean(each.spanGaps),
      fill: each.fill ? withAlpha(each.token, 0.1) : undefined,
      points: each.points ? { show: true, size: 4, fill: colour(each.token) } : { show: false },
      value: text(unit),
    }))],
  }));
}

// Bars over the time ahead, in seconds: data [begins, normal, storms], where a bar is in
// one of the last two. `lengthOf` gives a bar's length in seconds.
export function barChart(root, { label, unit, height = 130, token, lengthOf, range, mark, showX = true }) {
  root.classList.add('chart');
  const bars = (each) => ({
    label: each.label, stroke: colour(each.token), fill: withAlpha(each.token, 0.75), width: 0,
    points: { show: false }, value: text(unit),
    paths: (u, index, from, to) => {
      const fill = new Path2D();
      const zero = u.valToPos(0, 'y', true);
      const [xs, ys] = [u.data[0], u.data[index]];
      for (let i = from; i <= to; i += 1) {
        if (!ys[i]) continue;
        const left = u.valToPos(xs[i], 'x', true);
        const right = u.valToPos(xs[i] + lengthOf(), 'x', true);
        const top = Math.min(u.valToPos(ys[i], 'y', true), zero - devicePixelRatio);
        const gap = right - left > 4 ? Math.min(devicePixelRatio * 1.5, (right - left) * 0.12) : 0;
        fill.rect(left + gap / 2, top, Math.max(right - left - gap, 1), zero - top);
      }
      return { fill, stroke: null, flags: 0 };
    },
  });
  return new Chart(root, height, () => ({
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false }, sync: { key: mark ?? 'deaths' } },
    legend: { live: true }, padding: [10, 24, showX ? 0 : 8, 0],
    scales: {
      x: { time: false, range: () => range() },
      y: { range: (_, min, max) => [0, Math.max(max ?? 0, unit === 'bytes' ? 16 : 1) * 1.06] },
    },
    axes: axes(unit, {
      space: 64, show: showX, incrs: SECONDS,
      values: (_, splits) => splits.map((value) => (value === 0 ? 'now' : `+${duration(value)}`)),
    }),
    series: [{ label: '\u00a0', value: (_, value) => (value === null ? '' : `in ${duration(Math.max(0, value))}`) },
      bars({ label, token }), bars({ label: 'storm', token: '--bad' })],
  }));
}
