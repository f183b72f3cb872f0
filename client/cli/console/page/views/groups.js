// The consumer groups of a namespace, or one of them.
import { ApiError, poll } from '../api.js';
import { h, replace, setText } from '../dom.js';
import { count, duration, num, time } from '../format.js';
import { valuesSwitch } from '../value_view.js';
import { DeadLetters } from './dead_letters.js';
import { GroupDetail } from './group.js';
import { KeyedRows } from './keyed_rows.js';

const REFRESH_MS = 2000;

const statistic = (name) => (group) => count(group.statistics?.[name]);

class GroupList {
  constructor(root, { name, api, clock, mayRead, changed }) {
    Object.assign(this, { name, api });
    const lag = (group) => {
      const oldest = group.statistics?.oldestUnsettled;
      return oldest ? duration(Math.max(0, Math.round((clock.now() - time(oldest)) / 1000))) : '–';
    };
    this.table = new KeyedRows('Groups', [
      {
        label: 'Group', class: 'nowrap', once: true, cell: (group) => h('a', {
          href: `#/groups/${encodeURIComponent(name)}/${encodeURIComponent(group.name)}`,
        }, group.name),
      },
      { label: 'Members', class: 'right', cell: statistic('members') },
      { label: 'Backlog', class: 'right', cell: statistic('backlog') },
      { label: 'In flight', class: 'right', cell: statistic('inFlight') },
      { label: 'Lag', class: 'right', cell: lag },
      { label: 'Delivered', class: 'right', cell: statistic('delivered') },
      {
        label: 'Settled', class: 'right',
        cell: ({ statistics }) => count(num(statistics?.acked) + num(statistics?.putBack)),
      },
      { label: 'Dead letters', class: 'right', cell: statistic('deadLettered') },
      { label: 'Lost', class: 'right', cell: statistic('lost') },
      { label: 'State', cell: (group) => (group.options?.paused ? 'paused' : 'active') },
    ], { key: (group) => group.name, empty: 'No groups. The first member that names one makes it.' });
    this.letters = h('div');
    replace(root, h('div', { class: 'stack' },
      h('section', { class: 'card', 'aria-label': 'Groups' },
        h('div', { class: 'card-head' }, h('h2', null, 'Consumer groups'),
          mayRead && valuesSwitch(changed)), this.table.element),
      this.letters));
  }

  async refresh(signal) {
    const { groups } = await this.api.call('GroupService/ListGroups',
      { namespace: this.name, includeStatistics: true }, { signal });
    this.table.update(groups);
    return groups.reduce((sum, group) => sum + num(group.statistics?.deadLettered), 0);
  }
}

// The dead letters of what is shown: of a group, of a namespace, or those that this namespace
// keeps for others. Read anew when there are more.
class Letters {
  constructor(place, { params, api, can, sampler, signal }) {
    Object.assign(this, { place, params, api, can, sampler, signal, known: -1, view: null });
  }

  // Null: it has none.
  async store() {
    const { name } = this.params;
    if (!this.can('READ', name)) return null;
    const { namespace } = await this.api.call('NamespaceService/GetNamespace', { name }, { signal: this.signal });
    const store = namespace.options?.deadLetterNamespace;
    if (store) return { store, from: name, group: this.params.group };
    const keeps = [...this.sampler.namespaces.values()].some(({ options }) => options?.deadLetterNamespace === name);
    return keeps && !this.params.group ? { store: name } : null;
  }

  // They are read anew whether or not there are more.
  forget() {
    this.known = -1;
  }

  async refresh(deadLettered) {
    if (!this.view) {
      const which = await this.store();
      if (!which || !this.can('READ', which.store)) return;
      this.view = new DeadLetters({ ...which, api: this.api, can: this.can, signal: this.signal });
      replace(this.place, this.view.element);
    }
    if (deadLettered === this.known) return;
    await this.view.refresh();
    this.known = deadLettered;
  }
}

export function mount(root, { params, api, can, clock, sampler }) {
  if (!can('WATCH', params.name)) {
    replace(root, h('p', { class: 'card notice' }, 'You may not see the groups of this namespace.'));
    return () => {};
  }
  const controller = new AbortController();
  const { signal } = controller;
  const problem = h('p', { class: 'error', role: 'alert', hidden: true });
  const body = h('div');
  replace(root, problem, body);
  const refresh = async () => {
    try {
      const deadLettered = await view.refresh(signal);
      await letters.refresh(deadLettered);
      problem.hidden = true;
    } catch (error) {
      if (signal.aborted) return;
      // That the server is not there the page's bar says.
      if (error instanceof ApiError && !error.isTransient) {
        problem.hidden = false;
        setText(problem, error.message);
      }
      throw error;
    }
  };
  const changed = () => {
    letters.forget();
    refresh().catch(() => {});
  };
  const view = params.group
    ? new GroupDetail(body, { name: params.name, group: params.group, api, can, clock, changed })
    : new GroupList(body, { name: params.name, api, clock, changed, mayRead: can('READ', params.name) });
  const letters = new Letters(view.letters, { params, api, can, sampler, signal });
  poll(refresh, REFRESH_MS, signal);
  return () => controller.abort();
}
