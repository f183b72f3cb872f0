// The events that a group has not settled, the oldest first, and what an operator does with them.
import { button, confirm, field, h, setText } from '../dom.js';
import {
  count, duration, enumText, keyText, num, parseDuration, plural, protoDuration,
  textToBase64, time, visible,
} from '../format.js';
import { showsValues } from '../value_view.js';
import { momentText, showEvent, valueCell } from './event_text.js';
import { KeyedRows } from './keyed_rows.js';
import { tellOutcome } from './outcome.js';
import { Selection } from './selection.js';

// Of one page of ListUnsettled, which is all that is shown: the filter names the others.
const EVENTS_MAX = 1000;
const REASON_MAX = 256;

const STATES = ['READY', 'BLOCKED_BY_KEY', 'IN_FLIGHT', 'DELAYED', 'DEAD_LETTERING'];
const stateText = (state) => enumText(state, 'UNSETTLED_STATE');

const byNumber = (of) => (a, b) => of(b) - of(a);
const ORDERS = {
  age: null,  // As the server lists them.
  key: (a, b) => keyText(a.event.key).localeCompare(keyText(b.event.key)),
  attempt: byNumber(({ event }) => num(event.attempt)),
  member: byNumber(({ memberId }) => num(memberId)),
};

function durationField(label, hint) {
  const input = h('input', { type: 'text', placeholder: hint, autocomplete: 'off' });
  return {
    node: field(label, input),
    // Undefined: nothing was given.
    get value() {
      if (input.value.trim() === '') return undefined;
      const value = parseDuration(input.value);
      if (Number.isNaN(value)) throw new Error(`${label}: give a duration, such as 90s or 1h30m.`);
      return protoDuration(value);
    },
  };
}

function reasonField() {
  const input = h('input', { type: 'text', maxlength: REASON_MAX, autocomplete: 'off' });
  return { node: field('Reason', input, { hint: 'For people; optional.' }), get value() { return input.value; } };
}

// What can be done: `fields()` makes the dialog's, `settlement(fields)` of the API from them.
const ACTIONS = [
  {
    name: 'Settle', done: 'settled', text: 'They are done: no member gets them again.',
    fields: () => ({}), settlement: () => ({ ack: {} }),
  },
  {
    name: 'Deliver again', done: 'are to be delivered again',
    text: 'A member that holds one loses it. It counts as an attempt if a member has it.',
    fields: () => ({ delay: durationField('Delay', 'as the group’s retry delay'), reason: reasonField() }),
    settlement: ({ delay, reason }) => ({ nack: { ...(delay && { delay }), reason } }),
  },
  {
    name: 'Extend', done: 'extended', text: 'The member that holds one gets another ack timeout from now.',
    fields: () => ({}), settlement: () => ({ extend: {} }),
  },
  {
    name: 'Put back', done: 'put back',
    text: 'Their entries live again in the namespace, unless the key exists again; the events are settled.',
    fields: () => ({ ttl: durationField('TTL', 'their own, or the namespace’s') }),
    settlement: ({ ttl }) => ({ putBack: { ...(ttl && { ttl }) } }),
  },
  {
    name: 'Dead-letter', danger: true, done: 'given up',
    text: 'They become dead letters now; without a namespace for these they are settled.',
    fields: () => ({ reason: reasonField() }), settlement: ({ reason }) => ({ terminate: { reason } }),
  },
];

export class Unsettled {
  // `changed()`: after something was settled.
  constructor({ name, group, api, can, clock, changed }) {
    Object.assign(this, { name, group, api, clock, changed });
    this.mayRead = can('READ', name);
    this.maySettle = can('SETTLE', name);
    this.events = [];
    this.options = { prefix: '', state: '', attempts: 0, member: '', order: 'age' };
    this.more = h('p', { class: 'hint' });
    this.total = h('span', { class: 'muted' });
    const key = ({ event }) => event.eventId;
    this.actions = this.maySettle ? ACTIONS.map((action) => button(action.name, () => this.act(action),
      { kind: action.danger ? 'danger' : '', disabled: true })) : [];
    this.selection = new Selection(key, (chosen) => {
      for (const each of this.actions) each.disabled = chosen === 0;
    });
    this.table = new KeyedRows('Unsettled events', this.columns(), {
      key, empty: 'All is settled, or nothing matches.',
    });
    this.element = h('section', { class: 'card', 'aria-label': 'Unsettled events' },
      h('div', { class: 'card-head' }, h('div', { class: 'row' }, h('h2', null, 'Unsettled events'), this.total),
        h('div', { class: 'row' }, this.actions)),
      this.filters(), this.table.element, this.more);
  }

  columns() {
    const since = (text) => (text ? momentText(time(text), this.clock.now()) : '–');
    return [
      ...(this.maySettle ? [this.selection.column(({ event }) => keyText(event.key))] : []),
      { label: 'Key', class: 'key', once: true, cell: (item) => this.keyButton(item) },
      ...(this.mayRead ? [{ label: 'Value', class: 'value-cell', cell: ({ event }) => valueCell(event) }] : []),
      { label: 'Age', class: 'right', cell: ({ event }) => this.ageText(event) },
      { label: 'State', class: 'nowrap', cell: ({ state }) => stateText(state) },
      { label: 'Attempt', class: 'right', cell: ({ event }) => this.attemptText(event) },
      { label: 'Member', class: 'right', cell: (item) => this.memberText(item) },
      { label: 'Since', class: 'nowrap', cell: (item) => since(item.since) },
      { label: 'Due', class: 'nowrap', cell: (item) => since(item.due) },
      { label: 'Last reason', class: 'reason', cell: ({ event }) => visible(event.lastReason) || '–' },
    ];
  }

  keyButton({ event }) {
    return h('button', {
      type: 'button', class: 'cell-button', title: 'Show all of it',
      on: { click: () => showEvent(this.events.find((each) => each.event.eventId === event.eventId).event) },
    }, keyText(event.key));
  }

  ageText(event) {
    return duration(Math.max(0, Math.round((this.clock.now() - time(event.deathTime)) / 1000)));
  }

  attemptText(event) {
    const returns = num(event.returns);
    return `${num(event.attempt)}${returns > 0 ? ` (returned ${returns}×)` : ''}`;
  }

  memberText({ state, memberId }) {
    if (state !== 'UNSETTLED_STATE_IN_FLIGHT') return '–';
    return num(memberId) === 0 ? 'a fetch' : memberId;
  }

  filters() {
    const input = (name, props = {}) => h('input', {
      type: 'text', autocomplete: 'off', spellcheck: 'false', ...props,
      on: { change: (event) => this.filter({ [name]: event.target.value.trim() }) },
    });
    const select = (name, choices) => h('select', {
      on: { change: (event) => this.filter({ [name]: event.target.value }) },
    }, choices.map(([value, label]) => h('option', { value }, label)));
    return h('div', { class: 'filters' },
      field('Key prefix', input('prefix')),
      field('State', select('state', [['', 'any'], ...STATES.map((name) =>
        [`UNSETTLED_STATE_${name}`, stateText(`UNSETTLED_STATE_${name}`)])])),
      field('Attempts, at least', input('attempts', { inputmode: 'numeric' })),
      field('Member', input('member', { inputmode: 'numeric' })),
      field('Order by', select('order', Object.keys(ORDERS).map((name) => [name, name]))));
  }

  filter(changes) {
    const isOther = 'prefix' in changes && changes.prefix !== this.options.prefix;
    Object.assign(this.options, changes);
    if (isOther) this.changed();
    else this.draw();
  }

  async refresh(signal) {
    const isWithValues = this.mayRead && showsValues();
    const answer = await this.api.call('GroupService/ListUnsettled', {
      namespace: this.name, name: this.group, pageSize: EVENTS_MAX,
      keyPrefix: textToBase64(this.options.prefix), includeValues: isWithValues,
    }, { signal });
    this.events = answer.events;
    if (!isWithValues) for (const { event } of this.events) event.isLeftOut = true;
    setText(this.more, answer.nextPageToken === '' ? ''
      : `The oldest ${count(answer.events.length)} are shown; a key prefix names others.`);
    this.draw();
  }

  draw() {
    const { state, attempts, member, order } = this.options;
    const shown = this.events.filter((item) => (!state || item.state === state)
      && num(item.event.attempt) >= (Number(attempts) || 0)
      && (!member || (item.state === 'UNSETTLED_STATE_IN_FLIGHT' && String(item.memberId) === member)));
    if (ORDERS[order]) shown.sort(ORDERS[order]);
    this.table.update(shown);
    this.selection.show(shown);
    setText(this.total, shown.length === this.events.length ? count(shown.length)
      : `${count(shown.length)} of ${count(this.events.length)}`);
  }

  async act(action) {
    const chosen = this.selection.items;
    const fields = action.fields();
    if (!await confirm({
      title: `${action.name}: ${plural(chosen.length, 'event')}`,
      body: h('div', { class: 'stack' }, h('p', null, action.text),
        h('p', { class: 'mono' }, this.namesOf(chosen)), Object.values(fields).map(({ node }) => node)),
      action: action.name,
      danger: action.danger,
      submit: async () => {
        const given = Object.fromEntries(Object.entries(fields).map(([name, { value }]) => [name, value]));
        const { results } = await this.api.call('TimeCacheService/SettleExpired', {
          namespace: this.name, group: this.group,
          settlements: chosen.map(({ event }) =>
            ({ deliveryToken: event.deliveryToken, ...action.settlement(given) })),
        });
        tellOutcome(chosen.length, results.map(({ error }) => error).filter(Boolean), 'event', action.done);
      },
    })) return;
    this.selection.clear();
    this.changed();
  }

  namesOf(items) {
    const shown = items.slice(0, 5).map(({ event }) => keyText(event.key)).join(', ');
    return items.length > 5 ? `${shown}, and ${count(items.length - 5)} more` : shown;
  }
}
