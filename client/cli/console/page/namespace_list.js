// The namespaces in the side bar: all of them, of which only the visible rows are drawn.
import { h, replace, setText } from './dom.js';
import { count } from './format.js';

const ROW_PX = 30;
const OVERSCAN = 8;

export class NamespaceList {
  constructor() {
    this.names = [];
    this.selected = null;
    this.filter = h('input', {
      type: 'search', placeholder: 'Filter namespaces', 'aria-label': 'Filter namespaces',
      on: { input: () => this.draw() },
    });
    this.total = h('span', { class: 'muted' });
    this.rows = h('ul', { class: 'ns-rows' });
    this.scroller = h('div', { class: 'ns-scroll', on: { scroll: () => this.drawRows() } }, this.rows);
    this.element = h('div', { class: 'ns-list' },
      h('div', { class: 'ns-head' }, h('h2', null, 'Namespaces'), this.total),
      this.filter, this.scroller);
  }

  start(sampler, signal) {
    sampler.addEventListener('namespaces', () => {
      const names = [...sampler.namespaces.keys()];
      if (this.shown && names.join() === this.names.join()) return;
      this.names = names;
      this.draw();
    }, { signal });
    // A view that has made or deleted one says so.
    document.addEventListener('namespaceschange', () => sampler.refresh(), { signal });
    const observer = new ResizeObserver(() => this.drawRows());
    observer.observe(this.scroller);
    signal.addEventListener('abort', () => observer.disconnect());
  }

  select(name) {
    this.selected = name;
    const at = this.shown?.indexOf(name) ?? -1;
    const top = at * ROW_PX;
    const { scrollTop, clientHeight } = this.scroller;
    if (at >= 0 && (top < scrollTop || top + ROW_PX > scrollTop + clientHeight)) {
      this.scroller.scrollTop = Math.max(0, top - clientHeight / 2);
    }
    this.drawRows();
  }

  draw() {
    const text = this.filter.value.trim().toLowerCase();
    this.shown = this.names.filter((name) => name.includes(text));
    setText(this.total, text ? `${count(this.shown.length)} of ${count(this.names.length)}`
      : count(this.names.length));
    this.drawRows();
  }

  drawRows() {
    const shown = this.shown ?? [];
    const { scrollTop, clientHeight } = this.scroller;
    const from = Math.max(0, Math.floor(scrollTop / ROW_PX) - OVERSCAN);
    const to = Math.min(shown.length, Math.ceil((scrollTop + clientHeight) / ROW_PX) + OVERSCAN);
    this.rows.style.setProperty('padding-top', `${from * ROW_PX}px`);
    this.rows.style.setProperty('padding-bottom', `${(shown.length - to) * ROW_PX}px`);
    const active = document.activeElement?.dataset?.name;
    replace(this.rows, shown.slice(from, to).map((name, i) =>
      h('li', { 'aria-setsize': shown.length, 'aria-posinset': from + i + 1 },
        h('a', {
          href: `#/ns/${encodeURIComponent(name)}`, data: { name },
          'aria-current': name === this.selected ? 'page' : null,
        }, name))));
    // Drawn anew while the keyboard is in it: the focus stays.
    if (active) this.rows.querySelector(`[data-name="${CSS.escape(active)}"]`)?.focus({ preventScroll: true });
  }
}
