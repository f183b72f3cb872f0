// What the page remembers of the server: the state of its namespaces now, and an hour of
// samples, one a second. Everything is bounded: an hour of the server, and of the
// MAX_FOCUSED namespaces that were looked at last.
import { ApiError, isAbort, poll } from './api.js';
import { num, seconds, time } from './format.js';

const SAMPLES = 3_600;
const SAMPLE_MS = 1_000;
const MAX_FOCUSED = 8;
const PAGE_SIZE = 1_000;
// The list of all namespaces may take so much of the time, and no more often than this.
const LIST_SHARE = 20;
const LIST_MS = 1_000;
// How long a sample of lateness waits for a death.
const LATENESS_WAIT_MS = 10_000;
const CLUSTER_MS = 2_000;
const NO_CLUSTER_MS = 60_000;

// The last hour of some numbers, by the browser's time: the server's may stand still.
export class Ring {
  constructor(names) {
    this.size = 0;
    this.next = 0;
    this.columns = new Map(['time', ...names].map((name) => [name, new Float64Array(SAMPLES)]));
  }

  // Values that are not given are gaps.
  push(values) {
    for (const [name, column] of this.columns) column[this.next] = values[name] ?? Number.NaN;
    this.columns.get('time')[this.next] = Date.now() / 1000;
    this.next = (this.next + 1) % SAMPLES;
    this.size = Math.min(this.size + 1, SAMPLES);
  }

  // Sets a value of the latest sample.
  amend(name, value) {
    if (this.size > 0) this.columns.get(name)[(this.next + SAMPLES - 1) % SAMPLES] = value;
  }

  last(name) {
    return this.size === 0 ? Number.NaN : this.columns.get(name)[(this.next + SAMPLES - 1) % SAMPLES];
  }

  // [times, values of the first name, ...] of the last so many seconds, as uPlot takes
  // them: gaps are null.
  window(lengthSeconds, names) {
    const from = Date.now() / 1000 - lengthSeconds;
    const times = this.columns.get('time');
    const start = (this.next + SAMPLES - this.size) % SAMPLES;
    const rows = [];
    for (let i = 0; i < this.size; i += 1) {
      const at = (start + i) % SAMPLES;
      if (times[at] >= from) rows.push(at);
    }
    return [rows.map((at) => times[at]), ...names.map((name) => {
      const column = this.columns.get(name);
      return rows.map((at) => (Number.isNaN(column[at]) ? null : column[at]));
    })];
  }
}

// What happened a second between two counts; NaN if the counter began anew.
function rate(before, now, passed) {
  const change = num(now) - num(before);
  return passed > 0 && change >= 0 ? change / passed : Number.NaN;
}

function deathsOf(statistics) {
  return num(statistics.expired) + num(statistics.evicted) + num(statistics.rotated);
}

function readsOf(statistics) {
  return num(statistics.hits) + num(statistics.misses);
}

function writesOf(statistics) {
  return num(statistics.puts) + num(statistics.appends) + num(statistics.combines) + num(statistics.gathers);
}

function ratesBetween(before, now, passed) {
  return {
    writes: rate(writesOf(before), writesOf(now), passed),
    reads: rate(readsOf(before), readsOf(now), passed),
    deaths: rate(deathsOf(before), deathsOf(now), passed),
    violations: rate(before.boundViolations, now.boundViolations, passed),
  };
}

export class Sampler extends EventTarget {
  constructor(api, clock) {
    super();
    this.api = api;
    this.clock = clock;
    // All that the caller may see, by name: {name, options, bucketWidth, statistics, rates}.
    this.namespaces = new Map();
    this.server = null;
    this.cluster = null;
    this.history = new Ring(['entries', 'bytes', 'memory', 'writes', 'reads', 'deaths',
      'commits', 'written', 'commitTime', 'lag']);
    this.rings = new Map();
    this.focused = null;
  }

  start(signal) {
    this.signal = signal;
    poll(() => this.#sample(), SAMPLE_MS, signal);
    this.#listForever();
    this.#clusterForever();
  }

  #tell(name) {
    this.dispatchEvent(new Event(name));
  }

  // The namespace of which an hour is kept, from now on.
  focus(name) {
    this.focused = name;
    if (name === null) return null;
    const ring = this.rings.get(name) ?? new Ring(['entries', 'bytes', 'memory', 'writes',
      'reads', 'deaths', 'lateness', 'latenessP50', 'bound', 'violations']);
    this.rings.delete(name);
    this.rings.set(name, ring);
    if (this.rings.size > MAX_FOCUSED) this.rings.delete(this.rings.keys().next().value);
    return ring;
  }

  async #sample() {
    const { signal } = this;
    const name = this.focused;
    const [server, described] = await Promise.all([
      this.api.call('ServerService/GetServer', {}, { signal }),
      name && this.api.call('NamespaceService/GetNamespace', { name, includeStatistics: true }, { signal })
        .catch((error) => {
          // It is gone, or may not be read: the server's own sample goes on.
          if (error instanceof ApiError && error.code !== 'UNAVAILABLE') return null;
          throw error;
        }),
    ]);
    this.clock.observe(server.now);
    this.#takeServer(server);
    if (described) this.#takeFocused(described.namespace);
    this.#tell('sample');
  }

  #takeServer(server) {
    const at = performance.now();
    const before = this.server?.startTime === server.startTime ? this.server : null;
    const passed = before ? (at - this.serverAt) / 1000 : 0;
    const journal = server.journal;
    const old = before?.journal;
    const commits = journal && old ? num(journal.commits) - num(old.commits) : 0;
    this.history.push({
      entries: server.entries ? num(server.entries.used) : Number.NaN,
      bytes: server.bytes ? num(server.bytes.used) : Number.NaN,
      memory: server.memoryBytes ? num(server.memoryBytes.used) : Number.NaN,
      ...this.totalRates,
      commits: old ? rate(old.commits, journal?.commits, passed) : Number.NaN,
      written: old ? rate(old.writtenBytes, journal?.writtenBytes, passed) : Number.NaN,
      commitTime: commits > 0 ? (seconds(journal.commitTime) - seconds(old.commitTime)) / commits : Number.NaN,
      lag: this.#clusterLag(),
    });
    this.server = server;
    this.serverAt = at;
  }

  #takeFocused(namespace) {
    const ring = this.rings.get(namespace.name);
    if (!ring) return;
    const at = performance.now();
    const { statistics } = namespace;
    const { before } = ring;
    const passed = before ? (at - ring.at) / 1000 : 0;
    ring.push({
      entries: num(statistics.entries), bytes: num(statistics.bytes), memory: num(statistics.memoryBytes),
      bound: seconds(namespace.bucketWidth),
      ...(before ? ratesBetween(before, statistics, passed) : {}),
    });
    ring.before = statistics;
    ring.at = at;
    ring.namespace = namespace;
  }

  // Of a sample of the deaths of the focused namespace, in seconds.
  takeLateness(name, p50, most) {
    this.rings.get(name)?.amend('latenessP50', p50);
    this.rings.get(name)?.amend('lateness', most);
  }

  async #listForever() {
    while (!this.signal.aborted) {
      const begin = performance.now();
      let pause = LIST_MS;
      try {
        await this.#list();
        // 1,000 namespaces with statistics are 2 MB of JSON: so much less often.
        pause = Math.max(LIST_MS, LIST_SHARE * (performance.now() - begin));
      } catch (error) {
        if (isAbort(error)) return;
        if (!(error instanceof ApiError)) throw error;
        pause = 4 * LIST_MS;
      }
      await new Promise((resolve) => {
        this.wake = resolve;
        setTimeout(resolve, document.hidden ? 4 * pause : pause);
      });
    }
  }

  // Lists the namespaces anew now: one has been made, changed or deleted.
  refresh() {
    this.wake?.();
  }

  async #list() {
    const found = new Map();
    const at = performance.now();
    let pageToken = '';
    do {
      const page = await this.api.call('NamespaceService/ListNamespaces',
        { pageSize: PAGE_SIZE, pageToken, includeStatistics: true }, { signal: this.signal });
      for (const namespace of page.namespaces ?? []) {
        const before = this.namespaces.get(namespace.name);
        namespace.at = at;
        namespace.rates = before
          ? ratesBetween(before.statistics, namespace.statistics, (at - before.at) / 1000) : {};
        found.set(namespace.name, namespace);
      }
      pageToken = page.nextPageToken ?? '';
    } while (pageToken !== '');
    const total = { writes: 0, reads: 0, deaths: 0 };
    let known = false;
    for (const { rates } of found.values()) {
      for (const name of Object.keys(total)) {
        if (Number.isFinite(rates[name])) {
          total[name] += rates[name];
          known = true;
        }
      }
    }
    this.totalRates = known ? total : {};
    this.namespaces = found;
    this.#tell('namespaces');
  }

  #clusterLag() {
    const standbys = (this.cluster?.nodes ?? []).filter((node) => node.role === 'NODE_ROLE_STANDBY');
    return standbys.length === 0 ? Number.NaN : Math.min(...standbys.map((node) => num(node.lagMessages)));
  }

  async #clusterForever() {
    while (!this.signal.aborted) {
      let pause = CLUSTER_MS;
      try {
        // The journal of a cluster is a topic, and no topic has a slash in its name.
        if (!this.server) {
          await new Promise((resolve) => { setTimeout(resolve, 500); });
          continue;
        }
        if (!/^[^/]+$/.test(this.server.journal?.directory ?? '')) {
          throw new ApiError({ code: 'FAILED_PRECONDITION', reason: 'NO_CLUSTER' });
        }
        this.cluster = await this.api.call('ServerService/GetCluster', {}, { signal: this.signal });
        this.#tell('cluster');
      } catch (error) {
        if (isAbort(error)) return;
        if (!(error instanceof ApiError)) throw error;
        if (error.code !== 'UNAVAILABLE') {
          this.cluster = null;
          pause = NO_CLUSTER_MS;
        }
      }
      await new Promise((resolve) => { setTimeout(resolve, pause); });
    }
  }
}

// Samples how late the deaths of a namespace are published: opens a watch, takes the
// first message that has deaths, and closes it, so that a namespace of many deaths costs
// one message a round. Needs VERB_WATCH.
export async function sampleLateness(sampler, name, signal) {
  const round = async () => {
    // A browser has six connections to a host, for all of its tabs.
    if (document.hidden) return;
    const enough = new AbortController();
    const timer = setTimeout(() => enough.abort(), LATENESS_WAIT_MS);
    try {
      await sampler.api.stream('TimeCacheService/WatchExpired',
        { namespaces: [name], keysOnly: true, heartbeatInterval: '5s' }, {
          signal: AbortSignal.any([signal, enough.signal]),
          onMessage: (message) => {
            if (enough.signal.aborted) return;
            const late = (message.events ?? [])
              .map((event) => (time(event.deliveredAt) - time(event.deathTime)) / 1000)
              .sort((a, b) => a - b);
            if (late.length === 0) return;
            sampler.takeLateness(name, late[Math.floor(late.length / 2)], late[late.length - 1]);
            enough.abort();
          },
        });
    } catch (error) {
      if (!isAbort(error) || signal.aborted) throw error;
    } finally {
      clearTimeout(timer);
    }
  };
  await poll(round, SAMPLE_MS, signal);
}
