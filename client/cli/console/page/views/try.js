// Try it: a saga of orders, explained step by step while it runs.
import { isAbort } from '../api.js';
import { button, h, replace, setText } from '../dom.js';
import { clockTime, duration, keyText, plural, time } from '../format.js';
import { lateness, valuePreview } from './event_text.js';
import { GROUP, STEP, TTL_SECONDS, newName, runSaga } from './saga.js';

const REDRAW_MS = 100;

const STEPS = (name) => [
  [STEP.create, 'A namespace of its own',
    `Its entries live ${TTL_SECONDS} s. Nothing else on the server is touched.`,
    `timecachectl ns create ${name} --ttl ${TTL_SECONDS}s`],
  [STEP.put, 'Five orders wait for their payment',
    `Each is an entry. What is meant is: if it is not paid within ${TTL_SECONDS} s, release its goods. `
    + 'The program has no timers, and polls nothing.',
    `timecachectl put -n ${name} order-1 '{"customer":"Ada"}'`],
  [STEP.pay, 'One is paid', 'Its entry is removed in time, so it never expires: there is no event.',
    `timecachectl rm -n ${name} order-3`],
  [STEP.wait, 'The others run out of time', 'The bars show what is left to them, by the server’s clock.',
    `timecachectl deaths -n ${name}`],
  [STEP.settle, 'They die, each at its time, and are settled',
    'The event of each, with its value, goes to one member of a consumer group. It releases the goods, then '
    + 'settles the event; had it crashed before that, another member would get the event.',
    `timecachectl watch ${name} --group ${GROUP} --exec ./release.sh`],
  [STEP.remove, 'It cleans up', 'The namespace is deleted, with its group.', `timecachectl ns delete ${name}`],
];

const STATES = {
  waits: ['waits', ''], paid: ['paid', 'ok'], expired: ['expired', 'warn'],
  settled: ['released', 'ok'],
};

class Try {
  constructor(root, { api, clock }) {
    this.api = api;
    this.clock = clock;
    this.area = h('div', { class: 'stack' });
    this.startButton = button('Start', () => this.start(), { kind: 'primary' });
    this.stopButton = button('Stop and clean up', () => this.controller?.abort(), { hidden: true });
    this.result = h('p', { role: 'status' });
    replace(root, h('div', { class: 'stack' },
      h('section', { class: 'card stack' },
        h('p', null, 'A shop holds the goods of an order until it is paid, for some time. What happens if the '
          + 'payment does not come? Watch it for half a minute, on this server.'),
        h('div', { class: 'row' }, this.startButton, this.stopButton, this.result)),
      this.area));
    // A tab that is closed makes no more calls, but for one that outlives it.
    this.leave = () => this.removeAtOnce();
    window.addEventListener('pagehide', this.leave);
  }

  draw(name) {
    this.steps = STEPS(name).map(([, title, text, command]) =>
      h('li', null, h('h3', null, title), h('p', null, text), h('code', null, command)));
    this.orderBody = h('tbody');
    this.tapeBody = h('tbody');
    this.orders = new Map();
    const section = (title, columns, body) => h('section', { class: 'card', 'aria-label': title },
      h('div', { class: 'card-head' }, h('h2', null, title)),
      h('div', { class: 'table-scroll', tabindex: '0', role: 'region', 'aria-label': title },
        h('table', null, h('thead', null, h('tr', null,
          columns.map((column) => h('th', {
            scope: 'col', class: column === 'Customer' && 'customer',
          }, column)))), body)));
    replace(this.area, h('div', { class: 'saga' },
      h('ol', { class: 'steps card' }, this.steps),
      h('div', { class: 'stack' },
        section('Orders', ['Order', 'Customer', 'State', 'Left'], this.orderBody),
        section('Tape', ['Died', 'Key', 'Value', 'Late'], this.tapeBody))));
  }

  async start() {
    this.name = newName();
    this.controller = new AbortController();
    this.settled = 0;
    this.latest = 0;
    this.draw(this.name);
    this.startButton.hidden = true;
    this.stopButton.hidden = false;
    setText(this.result, 'Running.');
    const timer = setInterval(() => this.drawBars(), REDRAW_MS);
    try {
      await runSaga(this.api, this.name, this, this.controller.signal);
      setText(this.result, `Done: ${plural(this.settled, 'order')} expired, each event at most ${
        duration(this.latest)} late, and one was paid. The namespace is gone.`);
    } catch (error) {
      setText(this.result, isAbort(error) ? 'Stopped. The namespace is gone.' : error.message);
    } finally {
      clearInterval(timer);
      this.name = null;
      this.startButton.hidden = false;
      setText(this.startButton, 'Start again');
      this.stopButton.hidden = true;
      this.listChanged();
    }
  }

  listChanged() {
    document.dispatchEvent(new Event('namespaceschange'));
  }

  // ---- what the saga says ----

  step(number) {
    if (number === STEP.put) this.listChanged();
    for (const [index, node] of this.steps.entries()) {
      node.className = index < number ? 'done' : '';
      if (index === number) node.setAttribute('aria-current', 'step');
      else node.removeAttribute('aria-current');
    }
  }

  order(key, changes) {
    let order = this.orders.get(key);
    if (!order) {
      order = { bar: h('progress', { max: TTL_SECONDS, value: TTL_SECONDS, 'aria-label': 'Time left' }) };
      order.badge = h('span', { class: 'badge' });
      order.left = h('span', { class: 'number left' });
      this.orderBody.append(h('tr', null, h('td', { class: 'mono nowrap' }, keyText(key)),
        h('td', { class: 'customer' }, changes.customer), h('td', null, order.badge),
        h('td', null, h('div', { class: 'row joined' }, order.bar, order.left))));
      this.orders.set(key, order);
    }
    Object.assign(order, changes);
    const [text, kind] = STATES[order.state];
    setText(order.badge, text);
    order.badge.className = `badge ${kind}`;
    if (order.state === 'settled') this.settled += 1;
    this.drawBars();
  }

  event(event) {
    this.latest = Math.max(this.latest, lateness(event));
    this.tapeBody.prepend(h('tr', null, h('td', { class: 'nowrap' }, clockTime(time(event.deathTime))),
      h('td', { class: 'mono nowrap' }, keyText(event.key)), h('td', { class: 'value-cell' }, valuePreview(event)),
      h('td', { class: 'nowrap' }, duration(lateness(event)))));
  }

  drawBars() {
    for (const order of this.orders.values()) {
      const left = order.state === 'waits'
        ? Math.max(0, (time(order.deadline) - this.clock.now()) / 1000) : 0;
      order.bar.value = left;
      setText(order.left, order.state === 'waits' ? duration(Number(left.toFixed(1))) : '–');
    }
    if (this.clock.standsStill) {
      setText(this.result,
        'Running. The server’s clock is virtual, and stands still: timecachectl clock advance 11s');
    }
  }

  removeAtOnce() {
    if (!this.name) return;
    fetch('/api/rpc/timecache.v1.NamespaceService/DeleteNamespace', {
      method: 'POST', keepalive: true,
      headers: { authorization: `Bearer ${this.api.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ name: this.name }),
    });
  }

  unmount() {
    this.controller?.abort();
    window.removeEventListener('pagehide', this.leave);
  }
}

export function mount(root, { api, can, clock }) {
  const name = newName();
  const missing = ['ADMIN', 'READ', 'WRITE', 'WATCH', 'SETTLE'].filter((verb) => !can(verb, name));
  if (missing.length > 0) {
    replace(root, h('p', { class: 'card notice' },
      `It makes a namespace of its own, such as ${name}, which you may not do here: you lack ${
        missing.join(', ').toLowerCase()}. Start a server of your own: timecached, then timecachectl console.`));
    return () => {};
  }
  const view = new Try(root, { api, clock });
  return () => view.unmount();
}
