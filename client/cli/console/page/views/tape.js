// The tape: what dies in a namespace, as it dies.
import { button, field, h, replace, setText } from '../dom.js';
import {
  clockTime, count, dateTime, duration, enumText, fromBase64, keyText, rate, shortCount,
  textOf, textToBase64, time, toBase64Url,
} from '../format.js';
import { showsValues, valuesSwitch } from '../value_view.js';
import { lateness, showEvent, valueCell } from './event_text.js';
import { ROWS_MAX, Rows } from './rows.js';
import { TapeStream } from './tape_stream.js';

const RATE_EVERY_MS = 1000;
// Of a value that is kept with its row, in base64: rows times this bounds what a tab takes.
const KEPT_VALUE = 32 * 1024;

const REWINDS = [['10 s', 10], ['1 min', 60], ['10 min', 600], ['1 h', 3600], ['all retained', 0]];
const CAUSES = ['EXPIRED', 'EVICTED', 'ROTATED'];
const STATES = {
  connecting: ['Connecting', ''], open: ['Live', 'ok'], waiting: ['Waiting for the server', 'warn'],
  paused: ['Paused', 'warn'], failed: ['Ended', 'bad'],
};

function tile(label) {
  const value = h('div', { class: 'tile-value' }, '0');
  const note = h('div', { class: 'tile-note' });
  return { value, note, node: h('div', { class: 'tile' }, h('div', { class: 'tile-label' }, label), value, note) };
}

// What is kept of an event. A copy: a part of a text keeps all of it in memory.
function kept(event) {
  if (!showsValues()) return { ...event, value: '', parts: undefined, isLeftOut: true };
  if (!event.value || event.value.length <= KEPT_VALUE) return event;
  return { ...event, value: JSON.parse(JSON.stringify(event.value.slice(0, KEPT_VALUE))), isCut: true };
}

class Tape {
  constructor(root, { name, api, clock }) {
    this.name = name;
    this.clock = clock;
    this.seen = 0;
    this.filtered = 0;
    this.lost = 0;
    this.isLostExact = true;
    this.completeTo = Number.NaN;
    this.latest = 0;
    this.ratePoint = { at: performance.now(), seen: 0 };
    this.contains = '';
    this.cause = '';
    this.stream = new TapeStream(api, name, this);
    this.stream.options.keysOnly = !showsValues();
    this.draw(root);
    this.stream.start();
    this.onVisibility = () => this.followVisibility();
    document.addEventListener('visibilitychange', this.onVisibility);
  }

  // A browser has six connections to the console, for all tabs: those that are not seen leave
  // them, and go on where they were.
  followVisibility() {
    if (document.hidden && this.stream.running) {
      this.stream.stop();
      this.isSuspended = true;
    } else if (!document.hidden && this.isSuspended) {
      this.isSuspended = false;
      this.stream.start();
    }
  }

  // ---- what TapeStream says ----

  event(event) {
    this.seen += 1;
    const late = lateness(event);
    if (late > this.latest) this.latest = late;
    if (this.matches(event)) this.rows.add(kept(event));
    else this.filtered += 1;
  }

  gap(lost, isExact) {
    this.lost += lost;
    this.isLostExact &&= isExact;
    this.rows.add({ gap: `${isExact ? '' : 'at most '}${count(lost)} events were lost here: ${
      'they are no longer retained'}` });
  }

  reset() {
    this.rows.add({ gap: 'Another log begins here: the server kept the one before in memory, or the '
      + 'namespace was deleted. How many events were lost is not known.' });
  }

  watermark(ms) {
    this.completeTo = ms;
    this.rows.schedule();
  }

  state(state, error) {
    const [text, kind] = STATES[state];
    if (error) this.say(error);
    else if (state === 'open') this.problem.hidden = true;
    setText(this.stateNode, text);
    this.stateNode.className = `badge ${kind}`;
    setText(this.pause, this.stream.running ? 'Pause' : 'Resume');
  }

  failed(error) {
    this.state('failed', error);
  }

  say(error) {
    setText(this.problem, error.message);
    this.problem.hidden = false;
  }

  // ---- what it shows ----

  matches(event) {
    if (this.cause && event.cause !== this.cause) return false;
    if (!this.contains) return true;
    return [event.key, event.value ?? ''].some((each) =>
      textOf(fromBase64(each))?.toLowerCase().includes(this.contains));
  }

  draw(root) {
    this.tiles = {
      events: tile('Events'), rate: tile('Rate'), late: tile('Lateness'),
      complete: tile('Complete up to'), lost: tile('Lost'),
    };
    this.stateNode = h('span', { class: 'badge', role: 'status' }, 'Connecting');
    this.pause = button('Pause', () => this.togglePause());
    this.problem = h('p', { class: 'error', role: 'alert', hidden: true });
    const body = h('tbody', { on: { click: (event) => this.open(event) } });
    this.rows = new Rows(body, {
      columns: 5, fill: (row, cells, item) => this.fill(row, cells, item), drawn: () => this.drawTiles(),
    });
    this.body = body;
    replace(root, h('div', { class: 'stack' },
      h('div', { class: 'tiles five' }, Object.values(this.tiles).map(({ node }) => node)),
      h('section', { class: 'card', 'aria-label': 'Tape' },
        h('div', { class: 'card-head' },
          h('div', { class: 'row' }, h('h2', null, 'Tape'), this.stateNode), this.controls()),
        this.filters(), this.problem,
        h('div', { class: 'table-scroll tape', tabindex: '0', role: 'region', 'aria-label': 'Expired entries' },
          h('table', null,
            h('caption', { class: 'visually-hidden' }, 'Expired entries, the latest first'),
            h('thead', null, h('tr', null, ['Died', 'Key', 'Value', 'Cause', 'Late'].map((label) =>
              h('th', { scope: 'col' }, label)))),
            body)))));
    this.drawTiles();
  }

  controls() {
    const back = h('select', { 'aria-label': 'How far to rewind' },
      REWINDS.map(([label, seconds]) => h('option', { value: seconds }, label)));
    // Those that are left out are not sent.
    const values = valuesSwitch(() => {
      this.stream.filter({ keysOnly: !showsValues() });
      this.rows.fillAgain();
    });
    return h('div', { class: 'row' }, values, this.pause, h('div', { class: 'row joined' },
      button('Rewind', () => this.rewind(Number(back.value))), back),
    button('Clear', () => this.clear()));
  }

  filters() {
    const prefix = h('input', {
      type: 'text', autocomplete: 'off', spellcheck: 'false',
      on: { change: () => this.stream.filter({ keyPrefix: textToBase64(prefix.value) }) },
    });
    const contains = h('input', {
      type: 'text', autocomplete: 'off', spellcheck: 'false',
      on: { input: () => this.filter({ contains: contains.value.toLowerCase() }) },
    });
    const cause = h('select', { on: { change: () => this.filter({ cause: cause.value }) } },
      h('option', { value: '' }, 'any'),
      CAUSES.map((name) => h('option', { value: `EXPIRY_CAUSE_${name}` }, name.toLowerCase())));
    return h('div', { class: 'filters' }, field('Key prefix', prefix),
      field('Contains', contains), field('Cause', cause));
  }

  // Of what comes, and of the rows that are there.
  filter(changes) {
    Object.assign(this, changes);
    this.rows.show((item) => item.gap !== undefined || this.matches(item));
  }

  togglePause() {
    this.problem.hidden = true;
    if (this.stream.running) {
      this.stream.stop();
      this.state('paused');
    } else {
      this.stream.start();
    }
  }

  rewind(seconds) {
    this.clear();
    this.problem.hidden = true;
    this.stream.rewind(seconds === 0 ? 0 : Math.max(1, this.clock.now() - seconds * 1000));
  }

  clear() {
    this.seen = 0;
    this.filtered = 0;
    this.lost = 0;
    this.isLostExact = true;
    this.latest = 0;
    this.ratePoint = { at: performance.now(), seen: 0 };
    this.rows.clear();
  }

  open(event) {
    const row = event.target.closest('button')?.closest('tr');
    if (row) showEvent(this.rows.items.get(row));
  }

  fill(row, cells, item) {
    row.className = item.gap === undefined ? '' : 'gap';
    if (item.gap !== undefined) {
      for (const cell of cells) cell.replaceChildren();
      cells[1].colSpan = 4;
      cells[1].textContent = item.gap;
      for (let i = 2; i < cells.length; ++i) cells[i].hidden = true;
      return;
    }
    if (!cells[1].firstElementChild) this.furnish(cells);
    const died = time(item.deathTime);
    cells[0].textContent = clockTime(died);
    cells[0].title = dateTime(died);
    cells[1].firstChild.textContent = keyText(item.key);
    cells[1].firstChild.href = `#/key/${encodeURIComponent(this.name)}/${toBase64Url(item.key)}`;
    cells[2].firstChild.textContent = valueCell(item);
    cells[3].firstChild.textContent = enumText(item.cause, 'EXPIRY_CAUSE');
    cells[3].firstChild.className = item.cause === 'EXPIRY_CAUSE_EXPIRED' ? 'badge' : 'badge warn';
    cells[4].textContent = duration(lateness(item));
  }

  // The elements of a row of an event, which are used again.
  furnish(cells) {
    cells[1].colSpan = 1;
    for (const cell of cells) cell.hidden = false;
    cells[0].className = 'nowrap';
    cells[1].className = 'key';
    cells[1].replaceChildren(h('a', null));
    cells[2].replaceChildren(h('button', { type: 'button', class: 'cell-button', title: 'Show all of it' }));
    cells[3].replaceChildren(h('span', { class: 'badge' }));
    cells[4].className = 'nowrap';
  }

  drawTiles() {
    const { events, rate: perSecond, late, complete, lost } = this.tiles;
    const now = performance.now();
    const passed = now - this.ratePoint.at;
    if (passed >= RATE_EVERY_MS || this.seen === 0) {
      setText(perSecond.value, rate((this.seen - this.ratePoint.seen) * 1000 / passed));
      this.ratePoint = { at: now, seen: this.seen };
    }
    setText(events.value, shortCount(this.seen));
    const notes = [this.rows.passed > 0 && `${shortCount(this.rows.passed)} too fast to draw`,
      this.filtered > 0 && `${shortCount(this.filtered)} filtered out`].filter(Boolean);
    setText(events.note, notes.join(', ') || `the last ${ROWS_MAX} are kept`);
    setText(late.value, this.seen > 0 ? duration(this.latest) : '–');
    setText(late.note, 'at most, so far');
    setText(complete.value, Number.isFinite(this.completeTo) && this.completeTo > 0
      ? clockTime(this.completeTo) : '–');
    setText(complete.note, this.behindText());
    setText(lost.value, `${this.isLostExact ? '' : '≤ '}${shortCount(this.lost)}`);
    setText(lost.note, this.lost > 0 ? 'not retained any more' : 'none');
    lost.node.classList.toggle('bad', this.lost > 0);
  }

  behindText() {
    if (!this.clock.known || !Number.isFinite(this.completeTo)) return '';
    const behind = (this.clock.now() - this.completeTo) / 1000;
    return behind >= 0.01 ? `${duration(Number(behind.toFixed(behind < 1 ? 2 : 0)))} ago` : 'now';
  }

  unmount() {
    document.removeEventListener('visibilitychange', this.onVisibility);
    this.stream.stop();
    this.rows.stop();
  }
}

export function mount(root, { params, api, can, clock }) {
  if (!can('WATCH', params.name)) {
    replace(root, h('p', { class: 'card notice' }, 'You may not watch this namespace.'));
    return () => {};
  }
  const tape = new Tape(root, { name: params.name, api, clock });
  return () => tape.unmount();
}
