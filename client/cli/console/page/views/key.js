// One key's life: what is known of it, from its first put to the settlement of its event.
// It comes from Get, the retained changes and events, and the groups' unsettled events.
import { ApiError, isAbort, poll } from '../api.js';
import { button, field, h, replace, setText } from '../dom.js';
import { clockTime, dateTime, duration, enumText, fromBase64Url, fromHex, keyText, num, plural, seconds,
  textToBase64, time, toBase64, toBase64Url } from '../format.js';
import { base64Bytes } from '../scan.js';
import { editEntry, entryFacts, removeEntry, touchEntry } from './entry.js';
import { valueView } from '../value_view.js';

const ENTRY_MS = 1_000;
const LARGE_BYTES = 64 * 1024;
const LARGE_ROUNDS = 15;
const GROUPS_MS = 3_000;
// What is kept of the events and changes of the key: the latest.
const MAX_MOMENTS = 200;

export function mount(root, { params, api, can, clock, info }) {
  if (!params.key) return mountChoice(root, params.name);
  const { name } = params;
  const key = fromBase64Url(params.key);
  const running = new AbortController();
  const { signal } = running;
  const context = { name, api, can: (verb) => can(verb, name), clock, info, signal, namespace: null };
  const life = { entry: undefined, moments: [], dropped: 0, unsettled: [], groups: null, replayed: false, lost: 0 };

  const entryBox = h('div', { class: 'stack' });
  const bar = lifeBar();
  const timeline = h('ol', { class: 'timeline' });
  const timelineNote = h('p', { class: 'hint', role: 'status' });
  const settle = h('div');
  replace(root, h('div', { class: 'stack' },
    h('section', { class: 'card key-head' }, h('div', { class: 'card-head' }, h('h2', { class: 'mono key-name' }, keyText(key)),
      h('a', { class: 'button', href: `#/key/${encodeURIComponent(name)}` }, 'Another key')), bar.element, entryBox),
    h('div', { class: 'key-grid' },
      h('section', { class: 'card', 'aria-label': 'Life' }, h('div', { class: 'card-head' }, h('h2', null, 'Its life'), timelineNote), timeline),
      h('section', { class: 'card', 'aria-label': 'Settlement' }, h('div', { class: 'card-head' }, h('h2', null, 'Groups')), settle))));

  let drawn = '';
  let drawnEntry = '';
  const draw = () => {
    bar.update(life, clock);
    const moments = momentsOf(life);
    const text = JSON.stringify(moments) + life.replayed;
    if (text !== drawn) {
      drawn = text;
      drawTimeline(timeline, moments);
      setText(timelineNote, `${life.replayed ? '' : 'Reading what is retained … '}${life.dropped > 0
        ? `${plural(life.dropped, 'older moment')} left out. ` : ''}${life.lost > 0 ? `${plural(life.lost, 'event')} of the namespace lost. ` : ''}`);
    }
  };

  function drawEntry() {
    const { entry } = life;
    const text = entry ? `${entry.version} ${entry.deadline} ${entry.parts?.parts?.length}` : String(entry);
    if (text === drawnEntry) return;
    drawnEntry = text;
    if (entry === null) {
      replace(entryBox, h('p', null, h('span', { class: 'badge' }, 'not there'), ' There is no live entry of this key now.'),
        context.can('WRITE') && h('div', { class: 'row' }, button('Put it', () => editEntry(context, null, key))));
      return;
    }
    if (!entry) return;
    replace(entryBox, h('div', { class: 'two-charts' }, entryFacts(entry, clock, context.namespace?.bucketWidth),
      valueView(entry)), context.can('WRITE') && h('div', { class: 'row' },
      !entry.parts && button('Put a new value', () => editEntry(context, { ...entry, key })),
      button('Touch', () => touchEntry(context, key, entry)),
      button('Remove', () => removeEntry(context, key, entry), { kind: 'danger' })));
  }

  function add(moment) {
    life.moments.push(moment);
    if (life.moments.length > MAX_MOMENTS) {
      life.moments.shift();
      life.dropped += 1;
    }
    draw();
  }

  // Get that never renews: looking at a key must not keep it alive. A large value is not
  // read every second.
  let rounds = 0;
  const readEntry = async () => {
    rounds += 1;
    if (life.entry && base64Bytes(life.entry.value) > LARGE_BYTES && rounds % LARGE_ROUNDS !== 0) return;
    const { entry } = await api.call('TimeCacheService/Get', { namespace: name, key, touch: false }, { signal });
    life.entry = entry ?? null;
    drawEntry();
    draw();
  };

  const isDenied = (error) => error instanceof ApiError && error.code === 'PERMISSION_DENIED';

  async function begin() {
    try {
      ({ namespace: context.namespace } = await api.call('NamespaceService/GetNamespace', { name }, { signal }));
    } catch (error) {
      if (isAbort(error)) return;
      if (!isDenied(error)) replace(entryBox, h('p', { class: 'error', role: 'alert' }, error.message));
    }
    if (context.can('READ')) poll(readEntry, ENTRY_MS, signal);
    else replace(entryBox, h('p', { class: 'muted' }, 'You may not read the entry.'));
    if (!context.can('WATCH')) {
      replace(settle, h('p', { class: 'muted' }, 'You may not watch this namespace: its events are not shown.'));
      life.replayed = true;
      return;
    }
    watchDeaths();
    if (seconds(context.namespace?.options.changeRetention) > 0) watchChanges();
    poll(readGroups, GROUPS_MS, signal);
  }

  // Streams of all with this prefix: others that begin with the key are passed over here.
  function watch(method, take, tokens = []) {
    return api.stream(method, () => ({
      namespaces: [name], start: 'WATCH_START_EARLIEST', keyPrefix: key, keysOnly: true, heartbeatInterval: '1s',
      resumeTokens: tokens,
    }), {
      signal, retry: true,
      onMessage: (message) => {
        tokens[0] = message.resumeToken;
        life.lost += num(message.lost);
        take(message);
      },
    }).catch((error) => {
      if (isAbort(error)) return null;
      // Of another log: a restart. What is known stays, and the watch begins anew.
      if (error.reason === 'LOG_CHANGED' || error.code === 'OUT_OF_RANGE') return watch(method, take);
      setText(timelineNote, error.message);
      return null;
    });
  }

  function watchDeaths() {
    watch('TimeCacheService/WatchExpired', (message) => {
      for (const event of message.events ?? []) {
        if (event.key === key) add({ kind: 'death', at: event.deathTime, event });
      }
      // The first message of what is now has a watermark of about now.
      if (!life.replayed && time(message.watermark) > clock.now() - 2_000) {
        life.replayed = true;
        draw();
      }
    });
  }

  function watchChanges() {
    watch('TimeCacheService/WatchChanges', (message) => {
      for (const change of message.changes ?? []) {
        if (change.key === key) add({ kind: 'change', at: change.time, change });
      }
    });
  }

  const readGroups = async () => {
    const { groups = [] } = await api.call('GroupService/ListGroups', { namespace: name }, { signal });
    const found = [];
    for (const group of groups) {
      const { events = [] } = await api.call('GroupService/ListUnsettled',
        { namespace: name, name: group.name, keyPrefix: key, pageSize: 100 }, { signal });
      found.push(...events.filter((each) => each.event.key === key).map((each) => ({ group: group.name, ...each })));
    }
    life.groups = groups;
    life.unsettled = found;
    drawGroups();
    draw();
  };

  function drawGroups() {
    const { groups, unsettled } = life;
    if (groups.length === 0) {
      replace(settle, h('p', { class: 'muted' }, 'The namespace has no groups: its events are only watched.'));
      return;
    }
    replace(settle, h('ul', { class: 'group-list' }, groups.map((group) => {
      const own = unsettled.filter((each) => each.group === group.name);
      return h('li', null, h('div', { class: 'row' },
        h('a', { href: `#/groups/${encodeURIComponent(name)}/${encodeURIComponent(group.name)}` }, group.name),
        own.length > 0 ? h('span', { class: 'badge warn' }, plural(own.length, 'unsettled event'))
          : h('span', { class: 'badge' }, 'nothing unsettled')),
      own.map((each) => unsettledFacts(each, clock)));
    })), h('p', { class: 'hint' }, 'An event that is not listed was settled, is a dead letter, or died before the group was there.'));
  }

  begin();
  const timer = setInterval(draw, 500);
  return () => {
    clearInterval(timer);
    running.abort();
  };
}

function unsettledFacts({ event, state, since, due }, clock) {
  const parts = [enumText(state, 'UNSETTLED_STATE')];
  if (num(event.attempt) > 0) parts.push(`attempt ${event.attempt}`);
  if (num(event.returns) > 0) parts.push(plural(event.returns, 'return'));
  if (since) parts.push(`held since ${clockTime(time(since), { fraction: false })}`);
  if (due) {
    const left = (time(due) - clock.now()) / 1000;
    parts.push(left > 0 ? `due in ${duration(Math.ceil(left))}` : 'due');
  }
  if (event.lastReason) parts.push(`last reason: ${event.lastReason}`);
  return h('p', { class: 'number' }, `Died ${dateTime(time(event.deathTime))}: ${parts.join(', ')}`);
}

// What happened, in order: from the retained changes and events, and the entry as it is.
function momentsOf({ entry, moments, unsettled }) {
  const list = moments.map((moment) => (moment.kind === 'death' ? deathMoment(moment.event) : changeMoment(moment.change)));
  const has = (kind, version) => moments.some((moment) => moment.kind === 'change'
    && moment.change.version === version && enumText(moment.change.kind, 'CHANGE_KIND') === kind);
  const deaths = moments.filter((moment) => moment.kind === 'death').map((moment) => moment.event);
  // A group keeps its events longer than they are retained.
  for (const { event } of unsettled) {
    if (deaths.some((each) => each.deathTime === event.deathTime)) continue;
    deaths.push(event);
    list.push(deathMoment(event));
  }
  for (const event of deaths) {
    if (!has('put', event.version)) list.push(...putMoments(event));
  }
  if (entry) {
    if (!has('put', entry.version)) list.push(...putMoments(entry));
    list.push({ at: time(entry.deadline), kind: 'ahead', title: 'Deadline', text: 'unless it is renewed, put anew or removed until then' });
  }
  for (const { group, event, state } of unsettled) {
    list.push({ at: time(event.deathTime) + 0.001, kind: 'settle', title: `Unsettled in ${group}`,
      text: `${enumText(state, 'UNSETTLED_STATE')}${num(event.attempt) > 0 ? `, attempt ${event.attempt}` : ''}` });
  }
  const seen = new Set();
  return list.filter((each) => {
    const id = `${each.at} ${each.title}`;
    return !seen.has(id) && seen.add(id);
  }).sort((a, b) => a.at - b.at);
}

function putMoments({ createTime, putTime, version, ownTtl }) {
  const own = ownTtl ? `, with ${duration(seconds(ownTtl))} of its own` : '';
  const created = { at: time(createTime), kind: 'put', title: 'Created', text: own.replace(', ', '') };
  return time(putTime) > time(createTime)
    ? [created, { at: time(putTime), kind: 'put', title: 'Put or renewed', text: `version ${version}${own}` }]
    : [{ ...created, text: `version ${version}${own}` }];
}

function changeMoment(change) {
  const kind = enumText(change.kind, 'CHANGE_KIND');
  const title = { put: 'Put', renewed: 'Renewed', removed: 'Removed' }[kind] ?? kind;
  const deadline = change.deadline ? `, deadline ${dateTime(time(change.deadline))}` : '';
  return { at: time(change.time), kind: kind === 'removed' ? 'removed' : 'put', title, text: `version ${change.version}${deadline}` };
}

function deathMoment(event) {
  const after = (time(event.deathTime) - time(event.deadline)) / 1000;
  const late = (time(event.deliveredAt) - time(event.deathTime)) / 1000;
  return {
    at: time(event.deathTime), kind: 'death', title: `Died: ${enumText(event.cause, 'EXPIRY_CAUSE')}`,
    text: `version ${event.version}, ${after >= 0 ? `${duration(after)} after` : `${duration(-after)} before`} its deadline; published ${
      duration(late)} later`,
  };
}

function drawTimeline(node, moments) {
  if (moments.length === 0) {
    replace(node, h('li', { class: 'empty' }, 'Nothing is known of this key: it was not put, or what was is no longer retained.'));
    return;
  }
  let before = null;
  replace(node, moments.map((moment) => {
    const gap = before === null || moment.at - before < 1 ? '' : `+${duration((moment.at - before) / 1000)}`;
    before = moment.at;
    return h('li', { class: `moment ${moment.kind}` }, h('span', { class: 'moment-dot', 'aria-hidden': 'true' }),
      h('div', { class: 'moment-body' }, h('div', { class: 'row' }, h('strong', null, moment.title),
        h('time', { class: 'muted number' }, dateTime(moment.at)), gap && h('span', { class: 'muted number' }, gap)),
      moment.text && h('div', { class: 'muted' }, moment.text)));
  }));
}

// How much of the present life is over.
function lifeBar() {
  const fill = h('div');
  const text = h('span', { class: 'number muted' });
  const element = h('div', { class: 'key-life', hidden: true }, h('div', { class: 'life-bar' }, fill), text);
  return {
    element,
    update({ entry }, clock) {
      element.hidden = !entry;
      if (!entry) return;
      const [from, to, now] = [time(entry.putTime), time(entry.deadline), clock.now()];
      const left = Math.max(0, (to - now) / 1000);
      fill.style.setProperty('width', `${Math.min(100, Math.max(0, ((to - now) / (to - from)) * 100)).toFixed(1)}%`);
      setText(text, left > 0 ? `${duration(left < 10 ? Number(left.toFixed(1)) : Math.round(left))} left of ${duration((to - from) / 1000)}`
        : 'over: it dies with its bucket');
    },
  };
}

// Without a key: which one?
function mountChoice(root, name) {
  const key = h('input', { class: 'mono', required: true, spellcheck: 'false', autocomplete: 'off' });
  const encoding = h('select', { 'aria-label': 'The key is' }, h('option', { value: 'text' }, 'Text'), h('option', { value: 'hex' }, 'Hex'));
  const error = h('p', { class: 'error', role: 'alert', hidden: true });
  replace(root, h('form', { class: 'card stack notice', on: { submit: (event) => {
    event.preventDefault();
    const data = encoding.value === 'hex' ? fromHex(key.value) : null;
    if (encoding.value === 'hex' && !data?.length) {
      error.hidden = false;
      error.textContent = 'The key is not hexadecimal.';
      return;
    }
    const base64 = data ? toBase64(data) : textToBase64(key.value);
    location.hash = `#/key/${encodeURIComponent(name)}/${toBase64Url(base64)}`;
  } } }, h('h2', null, 'The life of a key'),
  h('p', { class: 'muted' }, 'When it was put, renewed and died, how late its event was, and which groups have not settled it: ',
    'as far as the server retains it.'),
  h('div', { class: 'with-encoding' }, field('Key', key), encoding), error,
  h('div', null, h('button', { class: 'button primary', type: 'submit' }, 'Show its life'))));
  key.focus();
  return () => {};
}
