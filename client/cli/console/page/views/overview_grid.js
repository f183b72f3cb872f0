// All namespaces as cards with a small wheel each: sorted, filtered, a page at a time. Only
// the wheels that are on the screen ask for their deaths.
import { isAbort } from '../api.js';
import { getWheel, stormsOf } from '../deaths.js';
import { button, h, replace, setText } from '../dom.js';
import { bytes, count, duration, num, rate, seconds, shortCount } from '../format.js';
import { Wheel } from '../wheel.js';
import { createNamespace } from './namespace_create.js';

const PAGE_CARDS = 24;
const WHEEL_BARS = 60;
const WHEEL_MS = 2_000;
// Wheels that ask at the same time.
const CONCURRENT = 3;

const SORTS = [
  ['name', 'Name', (a, b) => (a.name < b.name ? -1 : 1)],
  ['entries', 'Entries', (a, b) => num(b.statistics.entries) - num(a.statistics.entries)],
  ['bytes', 'Bytes', (a, b) => num(b.statistics.bytes) - num(a.statistics.bytes)],
  ['deaths', 'Deaths/s', (a, b) => (b.rates.deaths || 0) - (a.rates.deaths || 0)],
  ['writes', 'Writes/s', (a, b) => (b.rates.writes || 0) - (a.rates.writes || 0)],
  ['violations', 'Late deaths', (a, b) => num(b.statistics.boundViolations) - num(a.statistics.boundViolations)],
];

export function mountGrid({ api, can, clock, sampler, signal, onFocus }) {
  let page = 0;
  let selected = null;
  const cards = new Map();
  const filter = h('input', {
    type: 'search', placeholder: 'Filter by name', 'aria-label': 'Filter by name',
    on: { input: () => { page = 0; draw(); } },
  });
  const sort = h('select', {
    'aria-label': 'Sort by', on: { change: () => { page = 0; draw(); } },
  }, SORTS.map(([id, label]) => h('option', { value: id }, `Sort by ${label.toLowerCase()}`)));
  const back = button('‹', () => { page -= 1; draw(); }, { name: 'Previous page' });
  const next = button('›', () => { page += 1; draw(); }, { name: 'Next page' });
  const where = h('span', { class: 'muted number' });
  const create = can('ADMIN', null) && button('New namespace', () => createNamespace(api));
  const grid = h('div', { class: 'ns-grid' });
  const element = h('section', { class: 'stack', 'aria-label': 'Namespaces' },
    h('div', { class: 'section-head' }, h('h2', null, 'Namespaces'), where,
      h('div', { class: 'grid-tools' }, filter, sort, back, next, create)), grid);

  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const card = cards.get(entry.target.dataset.name);
      if (card) card.visible = entry.isIntersecting && can('READ', card.name);
    }
  });

  function shown() {
    const text = filter.value.trim().toLowerCase();
    const compare = SORTS.find(([id]) => id === sort.value)[2];
    return [...sampler.namespaces.values()].filter((each) => each.name.includes(text)).sort(compare);
  }

  function draw() {
    const all = shown();
    const pages = Math.max(1, Math.ceil(all.length / PAGE_CARDS));
    page = Math.min(Math.max(page, 0), pages - 1);
    const part = all.slice(page * PAGE_CARDS, (page + 1) * PAGE_CARDS);
    const names = new Set(part.map((each) => each.name));
    for (const [name, card] of cards) {
      if (names.has(name)) continue;
      seen.unobserve(card.element);
      card.wheel.stop();
      cards.delete(name);
    }
    for (const namespace of part) {
      if (!cards.has(namespace.name)) {
        const card = makeCard(namespace.name, clock, onFocus);
        cards.set(namespace.name, card);
        seen.observe(card.element);
      }
      cards.get(namespace.name).update(namespace, namespace.name === selected);
    }
    const order = part.map((each) => cards.get(each.name).element);
    if (order.some((each, i) => grid.children[i] !== each) || grid.children.length !== order.length) {
      replace(grid, order.length > 0 ? order : h('p', { class: 'empty' },
        sampler.namespaces.size === 0 ? 'There are no namespaces yet.' : 'No namespace has this in its name.'));
    }
    setText(where, all.length <= PAGE_CARDS ? count(all.length)
      : `${count(page * PAGE_CARDS + 1)}–${count(page * PAGE_CARDS + part.length)} of ${count(all.length)}`);
    back.disabled = page === 0;
    next.disabled = page === pages - 1;
    back.hidden = pages === 1;
    next.hidden = pages === 1;
  }

  async function turnWheels() {
    while (!signal.aborted) {
      const due = [...cards.values()].filter((card) => card.visible
        && performance.now() - card.askedAt > WHEEL_MS).sort((a, b) => a.askedAt - b.askedAt);
      if (due.length === 0 || document.hidden) {
        await new Promise((resolve) => { setTimeout(resolve, 250); });
        continue;
      }
      const lanes = Array.from({ length: CONCURRENT }, async () => {
        for (let card = due.shift(); card; card = due.shift()) {
          const namespace = sampler.namespaces.get(card.name);
          card.askedAt = performance.now();
          if (!namespace || signal.aborted) continue;
          try {
            card.last = await getWheel(api, namespace, { maxBars: WHEEL_BARS, signal, last: card.last });
            card.turn(namespace);
          } catch (error) {
            if (isAbort(error)) return;
            // It says so itself where it matters: the bar at the top, or an empty wheel.
            card.askedAt += 5 * WHEEL_MS;
          }
        }
      });
      await Promise.all(lanes);
    }
  }

  sampler.addEventListener('namespaces', draw, { signal });
  draw();
  turnWheels();
  return {
    element,
    select(name) {
      selected = name;
      draw();
    },
    stop() {
      seen.disconnect();
      for (const card of cards.values()) card.wheel.stop();
    },
  };
}

function makeCard(name, clock, onFocus) {
  const wheel = new Wheel(clock, { small: true });
  const facts = {};
  const fact = (id, label) => {
    facts[id] = h('dd', { class: 'number' });
    return [h('dt', null, label), facts[id]];
  };
  const storm = h('span', { class: 'badge bad', hidden: true });
  const late = h('span', { class: 'badge warn', hidden: true });
  const show = h('button', {
    type: 'button', class: 'wheel-button', 'aria-label': `Show the wheel of ${name}`,
    on: { click: () => onFocus(name) },
  }, wheel.element);
  const element = h('article', { class: 'card ns-card', data: { name } }, show,
    h('div', { class: 'ns-facts' },
      h('h3', null, h('a', { href: `#/ns/${encodeURIComponent(name)}`, title: name }, name)),
      h('dl', null, fact('bytes', 'Bytes'), fact('ttl', 'ttl'), fact('rates', 'In / out')),
      h('div', { class: 'ns-badges' }, storm, late)));
  return {
    name, element, wheel, visible: false, askedAt: -Infinity, last: null,
    update(namespace, isSelected) {
      element.classList.toggle('selected', isSelected);
      const { statistics, options, rates } = namespace;
      setText(facts.bytes, bytes(statistics.bytes));
      setText(facts.ttl, duration(seconds(options.ttl)));
      setText(facts.rates, `${rate(rates.writes)} / ${rate(rates.deaths)}`);
      late.hidden = num(statistics.boundViolations) === 0;
      setText(late, `${shortCount(statistics.boundViolations)} late`);
    },
    turn(namespace) {
      wheel.update(name, this.last, namespace);
      const [first] = stormsOf(this.last).sort((a, b) => a.begin - b.begin);
      storm.hidden = !first;
      if (first) setText(storm, `storm in ${duration(Math.max(0, (first.begin - this.last.now) / 1000))}`);
    },
  };
}
