"""What it costs to keep each put: on the disk before the answer, or soon after it.

All servers write to one disk, in turns. SYNC is beside Redis that syncs its AOF before it
answers, and etcd, which syncs its log; ASYNC beside Redis that syncs each second.
"""

import time

from .. import figures, loads, servers
from . import Outcome

NAME = "durable"
TITLE = "Puts that are kept: SYNC, ASYNC and MEMORY beside Redis' AOF and etcd"
CALLERS = (1, 16, 256)
DEPTH = 100
SYNC_OF_REDIS = 3
SYNC_OF_ETCD = 20
ASYNC_OF_MEMORY = 0.7
RECOVERY_SECONDS = 10


def _seconds(bench):
    return bench.pick(4, 2)


def _entries(bench):
    return bench.pick(10_000_000, 1_000_000)


def estimate_seconds(bench):
    single = len(CALLERS) * 3 + 1
    return bench.repeats * ((single + 6) * (_seconds(bench) + 1) + bench.pick(90, 12))


def _put(bench, load, server):
    with server:
        done = loads.drive(bench, server, load)
        if isinstance(server, servers.DurableTimecached):
            done["journal_bytes_per_put"] = server.journal_bytes() / done["operations"]
        return done


def _etcd(bench, callers):
    with servers.SyncedEtcd(bench) as server:
        return server.puts(callers, _seconds(bench))


def _unary(bench, rows, data):
    for callers in CALLERS:
        load = loads.Load(connections=callers, seconds=_seconds(bench))
        runs = bench.turns(f"put x 1, {callers} callers", {
            "SYNC": lambda: _put(bench, load, servers.DurableTimecached(bench, "sync")),
            "Redis": lambda: _put(bench, load, servers.DurableRedis(bench, "always")),
            "etcd": lambda callers=callers: _etcd(bench, callers)})
        for peer in ("Redis", "etcd"):
            rows.append(figures.compared(
                f"SYNC put x 1, {callers} callers", "operations/s",
                loads.rates(runs["SYNC"]), peer, loads.rates(runs[peer])))
        data[f"unary {callers}"] = runs


def _batches(bench, rows, data):
    load = loads.Load(connections=16, depth=DEPTH, seconds=_seconds(bench))
    runs = bench.turns(f"put x {DEPTH}", {
        "SYNC": lambda: _put(bench, load, servers.DurableTimecached(bench, "sync")),
        "Redis always": lambda: _put(bench, load, servers.DurableRedis(bench, "always")),
        "etcd": lambda: _etcd(bench, load.connections),
        "ASYNC": lambda: _put(bench, load, servers.DurableTimecached(bench, "async")),
        "Redis everysec": lambda: _put(bench, load, servers.DurableRedis(bench, "everysec")),
        "MEMORY": lambda: _put(bench, load, servers.Timecached(bench))})

    def row(ours, peer, goal=None):
        rows.append(figures.compared(
            f"{ours} put x {DEPTH}, 16 callers", "operations/s", loads.rates(runs[ours]),
            peer, loads.rates(runs[peer]), goal))
    row("SYNC", "Redis always", figures.at_least(SYNC_OF_REDIS))
    row("SYNC", "etcd", figures.at_least(SYNC_OF_ETCD))
    row("ASYNC", "Redis everysec")
    row("ASYNC", "MEMORY", figures.at_least(ASYNC_OF_MEMORY))
    for ours in ("SYNC", "ASYNC", "MEMORY"):
        rows.append(figures.alone(
            f"{ours} put x {DEPTH}: server CPU", "us/operation",
            [run["server_cpu_us_per_operation"] for run in runs[ours]]))
    rows.append(figures.alone("journal of a put of 16 + 64 B", "B",
                              [run["journal_bytes_per_put"] for run in runs["SYNC"]]))
    data["batches"] = runs


def _recovery(bench, server, entries):
    """Seconds from the start of a server that has so many entries on its disk."""
    with server:
        loads.fill(bench, server, entries)
        server.kill()
        began = time.monotonic()
        server.restart()
        return {"seconds": time.monotonic() - began}


def _recoveries(bench, rows, data):
    entries = _entries(bench)
    runs = bench.turns(f"recovery of {figures.count(entries)} entries", {
        "timecached": lambda: _recovery(
            bench, servers.DurableTimecached(bench, "async"), entries),
        "Redis": lambda: _recovery(bench, servers.DurableRedis(bench, "everysec"),
                                   entries)},
        bench.pick(3, 1))
    seconds = {name: [run["seconds"] for run in results]
               for name, results in runs.items()}
    rows.append(figures.compared(
        f"recovery of {figures.count(entries)} entries", "s", seconds["timecached"],
        "Redis, AOF", seconds["Redis"]))
    rows.append(figures.alone(
        f"recovery of {figures.count(entries)} entries", "s", seconds["timecached"],
        figures.at_most(RECOVERY_SECONDS)))
    data["recoveries"] = runs


def run(bench):
    rows, data = [], {}
    _unary(bench, rows, data)
    _batches(bench, rows, data)
    _recoveries(bench, rows, data)
    return Outcome(rows, data)


def plot(data, canvas):
    with canvas.figure("durable", TITLE, columns=1, width=8) as (axes,):
        labels = [f"put x 1\n{callers} callers" for callers in CALLERS]
        series = {}
        for i, callers in enumerate(CALLERS):
            for name, runs in data[f"unary {callers}"].items():
                series.setdefault(name, {})[i] = figures.Spread.of(loads.rates(runs))
        canvas.bars(axes, labels, series)
        axes.set_xlabel("operations per second")
        axes.set_xscale("log")
