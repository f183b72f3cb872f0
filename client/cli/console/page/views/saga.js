// What "Try it" does: orders that are paid, or not, in a namespace of its own. It only makes
// calls and says what happened; try.js draws that.
import { pauseFor } from '../api.js';

export const TTL_SECONDS = 10;
const CUSTOMERS = ['Ada', 'Ben', 'Cleo', 'Dan', 'Eva'];
const PAID = 2;
export const GROUP = 'release-goods';

// How long a newcomer is given to see one thing happen before the next.
const STEP_MS = 1000;
// What the member's work takes.
const WORK_MS = 600;

export function newName() {
  const random = crypto.getRandomValues(new Uint8Array(4));
  return `try-${Array.from(random, (byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}

// The steps, by what `on.step` is told of.
export const STEP = { create: 0, put: 1, pay: 2, wait: 3, settle: 4, remove: 5, done: 6 };

// Runs the saga in the namespace `name`, and ends it with the namespace. `on` is told of
//   step(number)         it has begun
//   order(key, changes)  {state: 'waits' | 'paid' | 'expired' | 'settled', customer, deadline}
//   event(event)         one came to the group's member
// Throws what a call throws; the namespace is gone then, too, if the server can be reached.
export async function runSaga(api, name, on, signal) {
  on.step(STEP.create);
  await api.call('NamespaceService/CreateNamespace', {
    name, options: { ttl: `${TTL_SECONDS}s`, numShards: 1 },
  }, { signal });
  try {
    const member = new AbortController();
    const either = AbortSignal.any([signal, member.signal]);
    const events = new Arrivals(either);
    try {
      await Promise.race([
        consume(api, name, events, either),
        story(api, name, on, events, either),
      ]);
    } finally {
      member.abort();
    }
    on.step(STEP.remove);
  } finally {
    // Not by `signal`, which may be what ended it.
    await removeNamespace(api, name);
  }
  on.step(STEP.done);
}

// One that is gone already is no error.
export async function removeNamespace(api, name) {
  try {
    await api.call('NamespaceService/DeleteNamespace', { name });
  } catch (error) {
    if (error.reason !== 'NAMESPACE_NOT_FOUND') throw error;
  }
}

// Events that wait to be taken.
class Arrivals {
  constructor(signal) {
    this.signal = signal;
    this.events = [];
    this.wake = () => {};
    signal.addEventListener('abort', () => this.wake(), { once: true });
  }

  add(events) {
    this.events.push(...events);
    this.wake();
  }

  async next() {
    while (this.events.length === 0) {
      await new Promise((resolve) => { this.wake = resolve; });
      this.signal.throwIfAborted();
    }
    return this.events.shift();
  }
}

// The group's member. Ends with an error alone.
async function consume(api, name, events, signal) {
  await api.stream('TimeCacheService/ConsumeExpired', {
    namespaces: [name], group: GROUP, start: 'WATCH_START_EARLIEST', maxInFlight: 10,
  }, { signal, retry: true, onMessage: (message) => events.add(message.events) });
}

async function story(api, name, on, events, signal) {
  await pauseFor(STEP_MS, signal);
  on.step(STEP.put);
  const keys = [];
  for (const [index, customer] of CUSTOMERS.entries()) {
    const key = btoa(`order-${index + 1}`);
    await api.call('TimeCacheService/Put', {
      namespace: name, key, value: btoa(JSON.stringify({ customer })),
    }, { signal });
    const { entry } = await api.call('TimeCacheService/Get', { namespace: name, key }, { signal });
    on.order(key, { state: 'waits', customer, deadline: entry.deadline });
    keys.push(key);
    await pauseFor(STEP_MS, signal);
  }
  on.step(STEP.pay);
  await api.call('TimeCacheService/Remove', { namespace: name, key: keys[PAID] }, { signal });
  on.order(keys[PAID], { state: 'paid' });
  await pauseFor(STEP_MS, signal);
  on.step(STEP.wait);
  for (let left = CUSTOMERS.length - 1; left > 0; --left) {
    const event = await events.next();
    if (left === CUSTOMERS.length - 1) on.step(STEP.settle);
    on.event(event);
    on.order(event.key, { state: 'expired' });
    await pauseFor(WORK_MS, signal);
    const { results } = await api.call('TimeCacheService/SettleExpired', {
      namespace: name, group: GROUP,
      settlements: [{ deliveryToken: event.deliveryToken, ack: {} }],
    }, { signal });
    if (results[0].error) throw new Error(results[0].error.message);
    on.order(event.key, { state: 'settled' });
  }
  await pauseFor(STEP_MS, signal);
}
