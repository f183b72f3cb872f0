// Which rows of a table are chosen: a checkbox for each, and one for all that are shown.
import { h } from '../dom.js';

export class Selection {
  // `key(item)`: as of the table. `changed()`: after each change.
  constructor(key, changed) {
    this.key = key;
    this.changed = changed;
    this.shown = [];
    this.chosen = new Set();
    this.all = h('input', { type: 'checkbox', 'aria-label': 'Choose all', on: { change: () => this.chooseAll() } });
  }

  // The column of checkboxes. `name(item)` is for screen readers.
  column(name) {
    return {
      label: this.all, class: 'choose', once: true,
      cell: (item) => {
        const key = this.key(item);
        return h('input', {
          type: 'checkbox', 'aria-label': `Choose ${name(item)}`, checked: this.chosen.has(key),
          data: { choose: '' },
          on: { change: (event) => this.choose(key, event.target.checked) },
        });
      },
    };
  }

  choose(key, isChosen) {
    if (isChosen) this.chosen.add(key);
    else this.chosen.delete(key);
    this.follow();
  }

  chooseAll() {
    for (const item of this.shown) {
      if (this.all.checked) this.chosen.add(this.key(item));
      else this.chosen.delete(this.key(item));
    }
    const table = this.all.closest('table');
    for (const box of table.querySelectorAll('[data-choose]')) box.checked = this.all.checked;
    this.follow();
  }

  // What the table shows now: what it does not show is not chosen any more.
  show(items) {
    this.shown = items;
    const there = new Set(items.map(this.key));
    for (const key of this.chosen) if (!there.has(key)) this.chosen.delete(key);
    this.follow();
  }

  // After something was done with them.
  clear() {
    this.chosen.clear();
    for (const box of this.all.closest('table').querySelectorAll('[data-choose]')) box.checked = false;
    this.follow();
  }

  get items() {
    return this.shown.filter((item) => this.chosen.has(this.key(item)));
  }

  follow() {
    this.all.checked = this.shown.length > 0 && this.chosen.size === this.shown.length;
    this.all.indeterminate = this.chosen.size > 0 && !this.all.checked;
    this.changed(this.chosen.size);
  }
}
