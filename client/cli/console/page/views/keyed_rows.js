// A table that is read anew every few seconds: a row stays the same element as long as its
// item is there, so that what is focused or pressed in it stays so.
import { append, h, setText } from '../dom.js';

export class KeyedRows {
  // Columns of {label, class, cell(item), once}: `cell` returns a text, or a node, which with
  // `once` is made for the row's first item alone. `key(item)`: what stays the same.
  constructor(caption, columns, { key, empty }) {
    this.columns = columns;
    this.key = key;
    this.rows = new Map();
    this.body = h('tbody');
    this.none = h('p', { class: 'empty' }, empty);
    this.element = h('div', { class: 'table-scroll', tabindex: '0', role: 'region', 'aria-label': caption },
      this.table = h('table', { class: 'keyed' },
        h('caption', { class: 'visually-hidden' }, caption),
        h('thead', null, h('tr', null, columns.map((column) =>
          h('th', { scope: 'col', class: column.class }, column.label)))),
        this.body),
      this.none);
  }

  update(items) {
    const before = this.rows;
    this.rows = new Map();
    let next = this.body.firstElementChild;
    for (const item of items) {
      const key = this.key(item);
      const row = before.get(key) ?? this.make();
      before.delete(key);
      this.rows.set(key, row);
      this.fill(row, item);
      if (row === next) next = next.nextElementSibling;
      else this.body.insertBefore(row, next);
    }
    for (const row of before.values()) row.remove();
    this.none.hidden = items.length > 0;
    this.table.hidden = items.length === 0;
  }

  make() {
    return h('tr', null, this.columns.map((column) => h('td', { class: column.class })));
  }

  fill(row, item) {
    for (const [index, column] of this.columns.entries()) {
      const cell = row.cells[index];
      const content = column.once && cell.firstChild ? null : column.cell(item);
      if (content instanceof Node) {
        cell.replaceChildren();
        append(cell, content);
      } else if (content !== null) {
        setText(cell, String(content));
      }
    }
  }
}
