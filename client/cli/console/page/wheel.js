// The wheel of a namespace's buckets: one turn is a time to live. It turns towards the
// mark at the top, which is now: what comes there dies. A bar's length is the square
// root of its entries, so that a storm does not hide the others.
import { append, h, setText, svg } from './dom.js';
import { bytes, count, duration, plural, roughDuration, shortCount } from './format.js';
import { isIn, stormsOf } from './deaths.js';

const INNER = 112;
const OUTER = 178;
const RIM = 106;
const NOTCHES_MAX = 120;
// A turn that is not to be seen needs no frame.
const LEAST_DEGREES = 0.04;
const REDUCED_MOTION_MS = 1_000;

function point(radius, degrees) {
  const angle = ((degrees - 90) * Math.PI) / 180;
  return `${(radius * Math.cos(angle)).toFixed(2)} ${(radius * Math.sin(angle)).toFixed(2)}`;
}

function sector(from, to, inner, outer) {
  const large = to - from > 180 ? 1 : 0;
  return `M${point(inner, from)}A${inner} ${inner} 0 ${large} 1 ${point(inner, to)}`
    + `L${point(outer, to)}A${outer} ${outer} 0 ${large} 0 ${point(outer, from)}Z`;
}

// One loop for all wheels that are drawn.
const wheels = new Set();
let frame = 0;
let lastReduced = 0;
const reduced = window.matchMedia('(prefers-reduced-motion: reduce)');

function turnAll(at) {
  frame = wheels.size > 0 ? requestAnimationFrame(turnAll) : 0;
  if (reduced.matches) {
    if (at - lastReduced < REDUCED_MOTION_MS) return;
    lastReduced = at;
  }
  for (const wheel of wheels) wheel.turn();
}

export class Wheel {
  // `small`: without labels, and not interactive.
  constructor(clock, { small = false, onSelect } = {}) {
    this.clock = clock;
    this.small = small;
    this.onSelect = onSelect;
    this.deaths = null;
    this.selected = -1;
    this.bars = [];
    this.notches = svg('path', { class: 'wheel-notches' });
    this.barGroup = svg('g');
    this.turning = svg('g', null, this.notches, this.barGroup);
    this.mark = svg('path', { class: 'wheel-mark', d: 'M-8 -198H8L0 -183Z' });
    this.main = svg('text', { class: 'wheel-main', y: small ? 4 : -28 });
    this.sub = svg('text', { class: 'wheel-sub', y: 10 });
    this.note = svg('text', { class: 'wheel-sub', y: 36 });
    this.labels = [[97, 4, 'end'], [0, 96, 'middle'], [-97, 4, 'start']].map(([x, y, anchor]) =>
      svg('text', { class: 'wheel-label', x, y, 'text-anchor': anchor }));
    this.svg = svg('svg', {
      class: ['wheel', small && 'small'], role: small ? null : 'img',
      'aria-hidden': small ? 'true' : null,
      viewBox: small ? '-200 -200 400 400' : '-192 -204 384 396',
      tabindex: small ? null : '0',
      on: small ? {} : { keydown: (event) => this.#key(event), blur: () => this.select(-1),
        pointerleave: () => this.select(-1) },
    }, svg('circle', { class: 'wheel-track', r: (INNER + OUTER) / 2, 'stroke-width': OUTER - INNER }),
    svg('circle', { class: 'wheel-rim', r: RIM }), this.turning, this.mark,
    this.main, !small && [this.sub, this.note, this.labels]);
    this.element = this.svg;
    wheels.add(this);
    if (!frame) frame = requestAnimationFrame(turnAll);
  }

  stop() {
    wheels.delete(this);
  }

  // What getWheel returned.
  update(name, deaths, namespace) {
    this.deaths = deaths;
    this.span = deaths.span;
    const storms = stormsOf(deaths);
    const most = Math.sqrt(Math.max(1, ...deaths.bars.map((bar) => bar.entries)));
    while (this.bars.length < deaths.bars.length) {
      const i = this.bars.length;
      const path = svg('path', { on: this.small ? {} : { pointerenter: () => this.select(i) } });
      this.bars.push(path);
      this.barGroup.append(path);
    }
    for (const [i, path] of this.bars.entries()) {
      const bar = deaths.bars[i];
      if (!bar || bar.entries === 0) {
        path.setAttribute('d', '');
        continue;
      }
      const from = this.#degrees(bar.begin);
      const to = this.#degrees(bar.end);
      const gap = Math.min(0.5, (to - from) * 0.14);
      const length = Math.max(3, ((OUTER - INNER) * Math.sqrt(bar.entries)) / most);
      path.setAttribute('d', sector(from + gap, Math.max(to - gap, from + gap + 0.1), INNER, INNER + length));
      path.setAttribute('class', isIn(storms, bar) ? 'wheel-bar storm' : 'wheel-bar');
      // What dies soon is the most vivid.
      const near = 1 - Math.min(1, Math.max(0, (bar.begin - deaths.now) / 1000 / this.span));
      path.style.setProperty('fill-opacity', (0.35 + 0.65 * near).toFixed(2));
    }
    this.#drawNotches(namespace);
    this.#drawText(name, storms);
    this.turned = Number.NaN;
    this.turn();
  }

  #degrees(at) {
    return Math.min(359.9, ((at - this.deaths.now) / 1000 / this.span) * 360);
  }

  // The buckets' borders on the rim; of more than can be seen, each so many.
  #drawNotches(namespace) {
    const buckets = Math.max(1, (namespace?.options.numBuckets ?? 61) - 1);
    const notches = buckets <= NOTCHES_MAX ? buckets : 60;
    if (this.drawnNotches === notches) return;
    this.drawnNotches = notches;
    let path = '';
    for (let i = 0; i < notches; i += 1) {
      const degrees = (i * 360) / notches;
      path += `M${point(RIM - 4, degrees)}L${point(RIM + 4, degrees)}`;
    }
    this.notches.setAttribute('d', path);
  }

  #drawText(name, storms) {
    const { deaths } = this;
    setText(this.main, shortCount(deaths.entries));
    const first = deaths.bars.find((bar) => bar.entries > 0);
    this.svg.setAttribute('aria-label', deaths.entries === 0
      ? `${name}: no entries` : `${name}: ${plural(deaths.entries, 'entry', 'entries')}, ${bytes(deaths.bytes)}; `
        + `one turn is ${duration(this.span)}${storms.length > 0
          ? `; storm: ${plural(storms[0].entries, 'entry', 'entries')} in ${
            duration((storms[0].begin - deaths.now) / 1000)}` : ''}`);
    if (this.small) return;
    setText(this.sub, deaths.entries === 1 ? 'entry' : 'entries');
    setText(this.note, first ? bytes(deaths.bytes) : 'nothing to die');
    for (const [i, label] of this.labels.entries()) {
      setText(label, `+${roughDuration((this.span * (i + 1)) / 4)}`);
    }
  }

  turn() {
    const { deaths } = this;
    if (!deaths) return;
    const now = this.clock.now();
    const degrees = Math.max(0, ((now - deaths.now) / 1000 / this.span) * 360);
    if (Math.abs(degrees - this.turned) < LEAST_DEGREES) return;
    this.turned = degrees;
    this.turning.setAttribute('transform', `rotate(${(-degrees % 360).toFixed(3)})`);
    // What has passed the mark is dead, though the next answer has yet to say so.
    for (let i = 0; i < deaths.bars.length && deaths.bars[i].begin <= now; i += 1) {
      const dead = deaths.bars[i].end <= now;
      if (dead !== (this.bars[i].style.display === 'none')) {
        this.bars[i].style.setProperty('display', dead ? 'none' : '');
      }
    }
  }

  #key(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step || !this.deaths) return;
    event.preventDefault();
    const { bars } = this.deaths;
    let at = this.selected + step;
    while (at >= 0 && at < bars.length && bars[at].entries === 0) at += step;
    if (at >= 0 && at < bars.length) this.select(at);
  }

  select(at) {
    this.bars[this.selected]?.classList.remove('selected');
    this.selected = at;
    this.bars[at]?.classList.add('selected');
    this.onSelect?.(this.deaths?.bars[at] ?? null);
  }
}

// The line below a wheel: what the pointer or the keyboard has chosen.
export function wheelCaption(clock) {
  const node = h('div', { class: 'wheel-caption number', 'aria-live': 'polite' });
  const show = (bar, rest) => {
    node.replaceChildren();
    if (!bar) {
      append(node, h('span', { class: 'muted' }, rest ?? ''));
      return;
    }
    const ahead = Math.max(0, (bar.begin - clock.now()) / 1000);
    append(node, h('span', null, `in ${duration(ahead)}, within ${duration((bar.end - bar.begin) / 1000)}: `,
      h('strong', null, count(bar.entries)), ` ${bar.entries === 1 ? 'entry' : 'entries'}, ${bytes(bar.bytes)}`));
  };
  return { node, show };
}
