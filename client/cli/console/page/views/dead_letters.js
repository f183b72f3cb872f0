// Dead letters, decoded, and returned to their namespaces or dropped, some or all.
import { button, confirm, h, setText, toast } from '../dom.js';
import { count, dateTime, enumText, keyText, plural, time, visible } from '../format.js';
import { isAbort } from '../api.js';
import { showEvent, valueCell } from './event_text.js';
import { KeyedRows } from './keyed_rows.js';
import { dropLetters, prefixOf, readLetters, returnLetters } from './letters.js';
import { tellOutcome } from './outcome.js';
import { Selection } from './selection.js';

const SHOWN_MAX = 200;
// Of a step of "Return all": what it keeps in memory.
const STEP = 1000;
const KEPT_ERRORS = 100;

export class DeadLetters {
  // Those in the namespace `store`: of the namespace `from`, and of its `group`, if given.
  constructor({ store, from, group, api, can, signal }) {
    Object.assign(this, { store, group, api, signal });
    this.prefix = from ? prefixOf(from, group) : '';
    this.mayChange = can('WRITE', store) && (!from || can('WRITE', from));
    this.note = h('span', { class: 'muted', role: 'status' });
    const key = ({ key: letter }) => letter;
    this.some = [button('Return', () => this.returnChosen(), { kind: 'primary', disabled: true }),
      button('Drop', () => this.dropChosen(), { kind: 'danger', disabled: true })];
    this.all = button('Return all', () => this.returnAll(), { disabled: true });
    this.stop = button('Stop', () => this.running?.abort(), { hidden: true });
    this.selection = new Selection(key, (chosen) => {
      for (const each of this.some) each.disabled = chosen === 0;
    });
    this.table = new KeyedRows('Dead letters', this.columns(), { key, empty: 'No dead letters.' });
    this.element = h('section', { class: 'card', 'aria-label': 'Dead letters' },
      h('div', { class: 'card-head' },
        h('div', { class: 'row' }, h('h2', null, 'Dead letters'),
          h('a', { href: `#/ns/${encodeURIComponent(store)}` }, store), this.note),
        h('div', { class: 'row' }, this.mayChange && [this.some, this.all, this.stop])),
      this.table.element);
  }

  columns() {
    return [
      ...(this.mayChange ? [this.selection.column(({ event }) => keyText(event.key))] : []),
      {
        label: 'Made', class: 'nowrap',
        cell: ({ event }) => dateTime(time(event.deadLetter.time), { fraction: false }),
      },
      {
        label: 'Key', class: 'key', once: true,
        cell: ({ event }) => h('button', {
          type: 'button', class: 'cell-button', title: 'Show all of it', on: { click: () => showEvent(event) },
        }, keyText(event.key)),
      },
      { label: 'Value', class: 'value-cell', cell: ({ event }) => valueCell(event) },
      ...(this.group ? [] : [{
        label: 'From', class: 'nowrap', cell: ({ event }) => `${event.namespace}/${event.deadLetter.group}`,
      }]),
      { label: 'Attempts', class: 'right', cell: ({ event }) => count(event.deadLetter.attempts) },
      {
        label: 'Last attempt', class: 'reason',
        cell: ({ event: { deadLetter } }) => enumText(deadLetter.reason, 'DEAD_LETTER_REASON')
          + (deadLetter.reasonText ? `: ${visible(deadLetter.reasonText)}` : ''),
      },
    ];
  }

  async refresh() {
    const { letters, others, position } = await readLetters(this.api, this.store, this.prefix,
      { max: SHOWN_MAX, signal: this.signal });
    const shown = letters.slice(0, SHOWN_MAX);
    this.table.update(shown);
    this.selection.show(shown);
    this.all.disabled = shown.length === 0;
    const more = position !== '' || letters.length > shown.length;
    setText(this.note, [
      more ? `${count(shown.length)} of them are shown` : count(shown.length),
      others > 0 && `${plural(others, 'entry', 'entries')} that are none`,
    ].filter(Boolean).join(', '));
  }

  async returnChosen() {
    const letters = this.selection.items;
    const returned = await confirm({
      title: `Return ${plural(letters.length, 'dead letter')}`,
      body: 'Their entries live again in their namespaces, with a fresh TTL: the own one that they had, or '
        + 'the namespace’s. A letter stays where its key exists again.',
      action: 'Return',
      submit: async () => {
        const results = await returnLetters(this.api, this.store, letters, this.signal);
        tellOutcome(letters.length, results.map(({ error }) => error).filter(Boolean), 'dead letter', 'returned');
      },
    });
    if (!returned) return;
    this.selection.clear();
    await this.refresh();
  }

  async dropChosen() {
    const letters = this.selection.items;
    const dropped = await confirm({
      title: `Drop ${plural(letters.length, 'dead letter')}`,
      body: 'They are removed for good, with their values.',
      action: 'Drop',
      danger: true,
      submit: async () => {
        const results = await dropLetters(this.api, this.store, letters, this.signal);
        tellOutcome(letters.length, results.map(({ error }) => error).filter(Boolean), 'dead letter', 'dropped');
      },
    });
    if (!dropped) return;
    this.selection.clear();
    await this.refresh();
  }

  async returnAll() {
    if (!await confirm({
      title: 'Return all dead letters',
      body: `All letters of ${this.group ? `the group ${this.group}` : 'this namespace'} are returned, also those `
        + 'that are not shown. It can be stopped. A letter stays where its key exists again.',
      action: 'Return all',
    })) return;
    this.running = new AbortController();
    this.all.hidden = true;
    this.stop.hidden = false;
    try {
      await this.walk(AbortSignal.any([this.running.signal, this.signal]));
    } catch (error) {
      if (!isAbort(error)) toast(error.message, 'bad');
    } finally {
      this.all.hidden = false;
      this.stop.hidden = true;
    }
    if (!this.signal.aborted) await this.refresh();
  }

  // Steps through a scan that goes on where it was: what stays is passed once.
  async walk(signal) {
    let total = 0;
    let failed = 0;
    const errors = [];
    for (let position = ''; ;) {
      const page = await readLetters(this.api, this.store, this.prefix, { max: STEP, position, signal });
      const results = await returnLetters(this.api, this.store, page.letters, signal);
      const own = results.map(({ error }) => error).filter(Boolean);
      total += results.length;
      failed += own.length;
      errors.push(...own.slice(0, KEPT_ERRORS - errors.length));
      setText(this.note, `${count(total - failed)} returned${failed > 0 ? `, ${count(failed)} stay` : ''}`);
      if (page.position === '') break;
      position = page.position;
    }
    tellOutcome(total, errors.concat(Array(failed - errors.length).fill(errors[0])), 'dead letter', 'returned');
  }
}
