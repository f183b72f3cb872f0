// One consumer group: what it holds, its members, its unsettled events, and where it is moved.
import { button, confirm, field, h, replace, setText, toast } from '../dom.js';
import {
  count, dateTime, duration, num, parseDuration, plural, protoTime, seconds, shortCount, time,
} from '../format.js';
import { valuesSwitch } from '../value_view.js';
import { KeyedRows } from './keyed_rows.js';
import { Unsettled } from './unsettled.js';

const POSITIONS = [
  ['now', 'with what dies from now on'],
  ['earliest', 'with the oldest event that is retained'],
  ['ago', 'with what died since some time ago'],
];

function memberState(member) {
  if (member.unresponsive) return 'unresponsive';
  return member.active ? 'active' : 'waits';
}

export class GroupDetail {
  constructor(root, { name, group, api, can, clock, changed }) {
    Object.assign(this, { name, group, api, can, clock, changed, paused: false });
    this.tiles = new Map();
    this.facts = h('p', { class: 'hint' });
    this.members = new KeyedRows('Members', [
      { label: 'Member', class: 'right', cell: ({ id }) => id },
      { label: 'Principal', cell: ({ principal }) => principal },
      { label: 'Peer', class: 'nowrap', cell: ({ peer }) => peer },
      { label: 'Since', class: 'nowrap', cell: ({ since }) => dateTime(time(since), { fraction: false }) },
      { label: 'In flight', class: 'right', cell: ({ inFlight }) => count(inFlight) },
      {
        label: 'May hold', class: 'right',
        cell: ({ window, maxInFlight }) => `${count(window)} of ${count(maxInFlight)}`,
      },
      { label: 'State', cell: memberState },
    ], { key: ({ id }) => id, empty: 'No members. Callers that fetch are none.' });
    this.unsettled = new Unsettled({ name, group, api, can, clock, changed });
    this.letters = h('div');
    const mayAdmin = can('ADMIN', name);
    this.pauseButton = button('Pause', () => this.togglePause());
    replace(root, h('div', { class: 'stack' },
      h('div', { class: 'card-head group-head' },
        h('div', { class: 'row' },
          h('a', { href: `#/groups/${encodeURIComponent(name)}` }, '← All groups'), h('h2', null, group)),
        h('div', { class: 'row' }, can('READ', name) && valuesSwitch(changed),
          mayAdmin && [this.pauseButton, button('Seek', () => this.seek())])),
      this.tileArea = h('div', { class: 'tiles' }),
      h('section', { class: 'card', 'aria-label': 'Members' },
        h('div', { class: 'card-head' }, h('h2', null, 'Members'), this.facts), this.members.element),
      this.unsettled.element, this.letters));
  }

  async refresh(signal) {
    const about = { namespace: this.name, name: this.group };
    const [{ group }, { members }] = await Promise.all([
      this.api.call('GroupService/GetGroup', { ...about, includeStatistics: true }, { signal }),
      this.api.call('GroupService/ListMembers', about, { signal }),
      this.unsettled.refresh(signal),
    ]);
    this.members.update(members);
    this.drawFacts(group.options);
    this.drawStatistics(group.statistics);
    return num(group.statistics.deadLettered);
  }

  drawFacts(options) {
    this.paused = options.paused;
    setText(this.pauseButton, this.paused ? 'Go on' : 'Pause');
    setText(this.facts, [
      `ack timeout ${duration(seconds(options.ackTimeout))}`, plural(options.maxAttempts, 'attempt'),
      num(seconds(options.retryDelay)) > 0 && `retry delay ${duration(seconds(options.retryDelay))}`,
      options.singleActive && 'single active', this.paused && 'paused',
    ].filter(Boolean).join(', '));
  }

  drawStatistics(s) {
    const lag = s.oldestUnsettled
      ? duration(Math.max(0, Math.round((this.clock.now() - time(s.oldestUnsettled)) / 1000))) : '–';
    const ended = num(s.nacked) + num(s.timedOut);
    // A note where there is something to say.
    const note = (value, text) => num(value) > 0 && `${count(value)} ${text}`;
    const values = {
      Members: [shortCount(s.members), note(s.unresponsiveMembers, 'unresponsive')],
      'In flight': [shortCount(s.inFlight), note(s.fetched, 'by fetches')],
      Backlog: [shortCount(s.backlog), 'held by no member'],
      Lag: [lag, 'of the oldest event'],
      Settled: [shortCount(num(s.acked) + num(s.putBack)), `of ${shortCount(s.delivered)} deliveries`],
      Failed: [shortCount(ended), `${shortCount(s.timedOut)} timed out`],
      'Dead letters': [shortCount(s.deadLettered), note(s.deadLetterFailures, 'could not be put')],
      Lost: [shortCount(s.lost), note(s.suspects, 'suspects')],
    };
    for (const [label, [value, text]] of Object.entries(values)) this.tile(label, value, text || '');
  }

  tile(label, value, note) {
    let tile = this.tiles.get(label);
    if (!tile) {
      tile = { value: h('div', { class: 'tile-value' }), note: h('div', { class: 'tile-note' }) };
      this.tiles.set(label, tile);
      this.tileArea.append(h('div', { class: 'tile' },
        h('div', { class: 'tile-label' }, label), tile.value, tile.note));
    }
    setText(tile.value, value);
    setText(tile.note, note);
  }

  async togglePause() {
    const paused = !this.paused;
    if (await confirm({
      title: paused ? `Pause ${this.group}` : `Let ${this.group} go on`,
      body: paused ? 'Nothing is delivered until it goes on. Members keep what they hold, and settle it.'
        : 'Events are delivered again.',
      action: paused ? 'Pause' : 'Go on',
      submit: () => this.api.call('GroupService/UpdateGroup', {
        group: { namespace: this.name, name: this.group, options: { paused } }, updateMask: 'options.paused',
      }),
    })) this.changed();
  }

  async seek() {
    const where = h('select', null, POSITIONS.map(([value, label]) => h('option', { value }, label)));
    const ago = h('input', { type: 'text', placeholder: '10m', autocomplete: 'off' });
    const agoField = field('How long ago', ago);
    agoField.hidden = true;
    where.addEventListener('change', () => { agoField.hidden = where.value !== 'ago'; });
    const drop = h('input', { type: 'checkbox' });
    if (await confirm({
      title: `Seek: move ${this.group}`,
      body: h('div', { class: 'stack' },
        h('p', null, 'From then on it delivers the retained events from there on, also those that it has settled, '
          + 'as first attempts. What members hold comes back.'),
        field('It goes on', where), agoField,
        h('label', { class: 'check' }, drop, 'Drop what it has not settled before that')),
      action: 'Move',
      danger: true,
      submit: async () => {
        const { unsettled, dropped } = await this.api.call('GroupService/SeekGroup', {
          namespace: this.name, name: this.group, dropUnsettled: drop.checked,
          position: this.position(where.value, ago.value),
        });
        toast(`Moved: ${count(unsettled)} to deliver, ${count(dropped)} dropped.`, 'ok');
      },
    })) this.changed();
  }

  position(where, ago) {
    if (where === 'now') return { start: 'WATCH_START_NOW' };
    if (where === 'earliest') return { start: 'WATCH_START_EARLIEST' };
    const since = parseDuration(ago);
    if (Number.isNaN(since)) throw new Error('Give a duration, such as 10m or 1h30m.');
    return { time: protoTime(Math.max(0, this.clock.now() - since * 1000)) };
  }
}
