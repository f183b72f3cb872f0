// The rows of a table to which more is added than anybody can read: the newest stand on top,
// a bounded number of them. Rows are drawn at animation frames, by a share of the time that
// leaves the page usable, and used again; what came and went between two frames is counted.

export const ROWS_MAX = 500;
// Of the time, drawing takes one in so many parts at most.
const DRAWING_SHARE = 5;

export class Rows {
  // `columns`: how many cells a row has. `fill(row, cells, item)` sets their text; cells that
  // are in use again have that of another item. `drawn()` is called after each drawing.
  constructor(body, { columns, fill, drawn = () => {} }) {
    this.body = body;
    this.columns = columns;
    this.fill = fill;
    this.drawn = drawn;
    this.fresh = [];
    this.passed = 0;
    this.frame = 0;
    this.notBefore = 0;
    this.count = 0;
    this.items = new WeakMap();
  }

  add(item) {
    this.fresh.push(item);
    if (this.fresh.length >= 2 * ROWS_MAX) this.drop(ROWS_MAX);
    this.schedule();
  }

  // Also where nothing was added: what `drawn` shows has changed.
  schedule() {
    this.frame ||= requestAnimationFrame((now) => this.draw(now));
  }

  clear() {
    this.fresh = [];
    this.passed = 0;
    this.count = 0;
    this.body.replaceChildren();
    this.schedule();
  }

  // Hides the rows that are shown of items for which `matches` is false.
  show(matches) {
    for (const row of this.body.rows) row.hidden = !matches(this.items.get(row));
  }

  // What `fill` depends on has changed.
  fillAgain() {
    for (const row of this.body.rows) this.fill(row, row.cells, this.items.get(row));
  }

  stop() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
  }

  drop(count) {
    this.fresh.splice(0, count);
    this.passed += count;
  }

  draw(now) {
    this.frame = 0;
    if (now < this.notBefore) {
      this.schedule();
      return;
    }
    const began = performance.now();
    if (this.fresh.length > ROWS_MAX) this.drop(this.fresh.length - ROWS_MAX);
    const rows = document.createDocumentFragment();
    for (const item of this.fresh) rows.prepend(this.row(item));
    this.fresh = [];
    this.body.prepend(rows);
    this.drawn();
    // A timer comes after the frame: layout and painting count.
    this.notBefore = Infinity;
    setTimeout(() => {
      const until = performance.now();
      this.notBefore = until + (until - began) * (DRAWING_SHARE - 1);
    });
  }

  row(item) {
    let row;
    if (this.count >= ROWS_MAX) {
      row = this.body.lastElementChild;
      row.remove();
    } else {
      ++this.count;
      row = document.createElement('tr');
      for (let i = 0; i < this.columns; ++i) row.append(document.createElement('td'));
    }
    row.hidden = false;
    this.items.set(row, item);
    this.fill(row, row.cells, item);
    return row;
  }
}
