"""What it costs to keep each put on other machines before it is answered.

Three brokers of Kafka, a node and a standby, beside Redis Cluster, whose answers wait for a
replica, and etcd. All run for the whole time, on the same cores, and are loaded in turns.
None waits for a disk.
"""

import contextlib
import dataclasses
import time

from .. import clusters, figures, loads, processes, servers
from . import Outcome

NAME = "replicated"
TITLE = "Puts that other machines have: REPLICATED beside MEMORY, Redis Cluster and etcd"
OURS = "REPLICATED"
REDIS = "Redis Cluster"
REDIS_SPLIT = f"{REDIS}, a third to each master"
DEPTH = 100
CALLERS = (16, 256)
BATCH_CALLERS = (16, 64)
KEYS = 1_000_000
READ_KEYS = 100_000
REPLICAS = 1
# Of a node that shares two cores with all that it is measured beside: with the default of
# 1 s heartbeats come too late at times.
LEASE = "10s"
WRITTEN = "timecache_journal_written_bytes_total"
COMMITS = "timecache_journal_commit_seconds_count"
# All are warm when the rate of batches rises by no more from one round to the next.
STILL_RISES = 1.1
OF_MEMORY = 0.15
OF_REDIS_CLUSTER = 5
GETS_OF_MEMORY = 0.9
TAKEOVER_SECONDS = 4
PATIENCE_SECONDS = 600


def _seconds(bench):
    return bench.pick(5, 2)


def _warm_up_rounds(bench):
    return bench.pick(8, 4)


def _entries(bench):
    return bench.pick(10_000_000, 100_000)


def _takeovers(bench):
    return max(1, bench.repeats // 2)


def estimate_seconds(bench):
    turn = 4 * (_seconds(bench) + 1)
    loaded = ((1 + len(BATCH_CALLERS) + len(CALLERS)) * turn +
              len(BATCH_CALLERS) * (_seconds(bench) + 1))
    return (40 + 2 * _warm_up_rounds(bench) * turn + bench.repeats * loaded +
            _takeovers(bench) * bench.pick(200, 30))


def _puts(bench, depth, callers):
    return loads.Load(keys=KEYS, connections=callers, depth=depth,
                      wait_replicas=REPLICAS, seconds=_seconds(bench))


class Loaded:
    """All that is loaded in turns, while the context is open."""

    def __init__(self, bench):
        self._bench = bench
        self._stack = contextlib.ExitStack()

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self._brokers = stack.enter_context(clusters.Brokers(self._bench))
            self._owner = stack.enter_context(
                clusters.Node(self._bench, self._brokers, "node-1", LEASE))
            self._owner.await_ready()
            self._standby = stack.enter_context(
                clusters.Node(self._bench, self._brokers, "node-2", LEASE))
            self._owner.await_standby()
            self._loads = {
                OURS: self._owner,
                "MEMORY": self._owner.create("memory", "memory"),
                REDIS: stack.enter_context(clusters.RedisCluster(self._bench)),
                "etcd": stack.enter_context(clusters.EtcdCluster(self._bench))}
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error):
        return self._stack.__exit__(*error)

    def warm_up(self):
        """Java compiles what runs often. The others get the same."""
        best = 0
        for _ in range(_warm_up_rounds(self._bench)):
            batches, _ = (self.turns("warm up", _puts(self._bench, depth, callers), 1)
                          for depth, callers in ((DEPTH, BATCH_CALLERS[-1]),
                                                 (1, CALLERS[-1])))
            rate = loads.rates(batches[OURS])[0]
            if rate < STILL_RISES * best:
                break
            best = rate

    def fill(self):
        """What is read, but etcd's: its client puts that."""
        for name in (OURS, "MEMORY"):
            loads.fill(self._bench, self._loads[name], READ_KEYS)
        self._loads[REDIS].fill(loads.fill_load(READ_KEYS))

    def turns(self, what, load, repeats=None):
        runs = {name: lambda name=name: self._drive(name, load) for name in self._loads}
        if load.depth > 1:
            # Of each caller, to each master its part: keys are not gathered by node.
            masters = clusters.RedisCluster.MASTERS
            split = dataclasses.replace(load, depth=load.depth // masters,
                                        connections=load.connections * masters)
            runs[REDIS_SPLIT] = lambda: self._drive(REDIS, split)
        return self._bench.turns(what, runs, repeats)

    def _drive(self, name, load):
        if name != OURS:
            return loads.drive(self._bench, self._loads[name], load)
        beside = {"brokers": self._brokers, "standby": self._standby}
        before = {part: server.cpu_seconds() for part, server in beside.items()}
        written, commits = map(self._owner.metric, (WRITTEN, COMMITS))
        done = loads.drive(self._bench, self._owner, load)
        written = self._owner.metric(WRITTEN) - written
        commits = self._owner.metric(COMMITS) - commits
        for part, server in beside.items():
            done[f"{part}_cpu_us_per_operation"] = (
                (server.cpu_seconds() - before[part]) * 1e6 / done["operations"])
        done["written_bytes_per_operation"] = written / done["operations"]
        done["operations_per_commit"] = done["operations"] / max(commits, 1)
        # What it has not read would cost the next one.
        self._owner.await_standby(PATIENCE_SECONDS)
        return done


def _of(runs, figure):
    return [run[figure] for run in runs]


def _compare(rows, what, runs, goals):
    for peer in list(runs)[1:]:
        rows.append(figures.compared(
            f"{OURS} {what}", "operations/s", loads.rates(runs[OURS]), peer,
            loads.rates(runs[peer]), goals.get(peer)))


def _cpu(rows, what, runs):
    used = "server_cpu_us_per_operation"
    for peer in list(runs)[1:]:
        rows.append(figures.compared(f"{OURS} {what}: CPU, of ours the owner's",
                                     "us/operation", _of(runs[OURS], used), peer,
                                     _of(runs[peer], used)))
    for part in ("brokers", "standby"):
        rows.append(figures.alone(f"{OURS} {what}: CPU of the {part}", "us/operation",
                                  _of(runs[OURS], f"{part}_cpu_us_per_operation")))


def _kafka(rows, what, runs):
    rows.append(figures.alone(f"{what}: sent to Kafka for a put of 16 + 64 B", "B",
                              _of(runs[OURS], "written_bytes_per_operation")))
    rows.append(figures.alone(f"{what}: puts of a commit", "puts",
                              _of(runs[OURS], "operations_per_commit")))


def _batches(bench, loaded, rows, data):
    for callers in BATCH_CALLERS:
        what = f"put x {DEPTH}, {callers} callers"
        runs = data[f"batches {callers}"] = loaded.turns(what, _puts(bench, DEPTH, callers))
        _compare(rows, what, runs, {"MEMORY": figures.at_least(OF_MEMORY),
                                    REDIS: figures.at_least(OF_REDIS_CLUSTER)})
        _cpu(rows, what, runs)
        _kafka(rows, what, runs)


def _single(bench, loaded, rows, data):
    for callers in CALLERS:
        what = f"put x 1, {callers} callers"
        runs = data[f"single {callers}"] = loaded.turns(what, _puts(bench, 1, callers))
        _compare(rows, what, runs, {})
        for part in ("p50", "p99"):
            rows.append(figures.compared(
                f"{OURS} {what}: {part}", "us",
                [run["latency_us"][part] for run in runs[OURS]], REDIS,
                [run["latency_us"][part] for run in runs[REDIS]]))
        _cpu(rows, what, runs)
        _kafka(rows, what, runs)


def _gets(bench, loaded, rows, data):
    loaded.fill()
    what = f"get x 1, {CALLERS[0]} callers"
    runs = data["gets"] = loaded.turns(what, loads.Load(
        put_percent=0, keys=READ_KEYS, connections=CALLERS[0], seconds=_seconds(bench)))
    for name in (OURS, "MEMORY", REDIS):
        if misses := sum(_of(runs[name], "misses")):
            raise processes.CommandFailed(f"{name} lacks {misses} keys")
    _compare(rows, what, runs, {"MEMORY": figures.at_least(GETS_OF_MEMORY)})


def _takeover(bench, entries, warm):
    """Seconds from the owner's death until another node serves all that it had."""
    with contextlib.ExitStack() as stack:
        brokers = stack.enter_context(clusters.Brokers(bench))
        owner = stack.enter_context(clusters.Node(bench, brokers, "node-1"))
        owner.await_ready()
        other = clusters.Node(bench, brokers, "node-2")
        if warm:
            stack.enter_context(other)
        loads.fill(bench, owner, entries)
        if warm:
            owner.await_standby(PATIENCE_SECONDS)
        owner.kill()
        began = time.monotonic()
        if not warm:
            stack.enter_context(other)
        other.await_ready(PATIENCE_SECONDS)
        seconds = time.monotonic() - began
        processes.run([bench.programs.ctl, "get", f"key:{entries - 1:012}", "--namespace",
                       other.namespace, "--address", other.address],
                      servers.START_SECONDS)
        return {"seconds": seconds}


def _all_takeovers(bench, rows, data):
    entries = _entries(bench)
    what = f"takeover of {figures.count(entries)} entries"
    runs = data["takeovers"] = bench.turns(what, {
        "a standby": lambda: _takeover(bench, entries, True),
        "a node that starts": lambda: _takeover(bench, entries, False)}, _takeovers(bench))
    for name, goal in (("a standby", figures.at_most(TAKEOVER_SECONDS)),
                       ("a node that starts", None)):
        rows.append(figures.alone(f"{what} by {name}, after kill -9", "s",
                                  _of(runs[name], "seconds"), goal))


def run(bench):
    rows, data = [], {}
    with Loaded(bench) as loaded:
        loaded.warm_up()
        _batches(bench, loaded, rows, data)
        _single(bench, loaded, rows, data)
        _gets(bench, loaded, rows, data)
    _all_takeovers(bench, rows, data)
    return Outcome(rows, data)


def plot(data, canvas):
    cases = {f"put x {DEPTH}\n{callers} callers": data[f"batches {callers}"]
             for callers in BATCH_CALLERS}
    cases |= {f"put x 1\n{callers} callers": data[f"single {callers}"]
              for callers in CALLERS}
    cases[f"get x 1\n{CALLERS[0]} callers"] = data["gets"]
    with canvas.figure(NAME, TITLE, columns=1, width=8) as (axes,):
        series = {}
        for i, runs in enumerate(cases.values()):
            for name, results in runs.items():
                series.setdefault(name, {})[i] = figures.Spread.of(loads.rates(results))
        canvas.bars(axes, list(cases), series)
        axes.set_xlabel("operations per second")
        axes.set_xscale("log")
