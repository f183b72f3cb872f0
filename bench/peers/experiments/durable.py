"""What it costs to keep each put: on the disk before the answer, or soon after it.

All servers write to one disk, in turns. SYNC is beside Redis that syncs its AOF before it
answers, and etcd, which syncs its log; ASYNC beside Redis that syncs each second. What
a journal costs who reads, and who keeps nothing, is beside a namespace of durability MEMORY.
"""

import concurrent.futures
import tempfile
import time

from .. import figures, loads, processes, servers
from . import Outcome

NAME = "durable"
TITLE = "Puts that are kept: SYNC, ASYNC and MEMORY beside Redis' AOF and etcd"
CALLERS = (1, 16, 256)
DEPTH = 100
SYNC_OF_REDIS = 3
SYNC_OF_ETCD = 20
ASYNC_OF_MEMORY = 0.7
RECOVERY_SECONDS = 10
# Of a journal that a checkpoint has written again, to that of one without.
RECOVERY_OF_CHECKPOINT = 1.2
# Of MEMORY puts to a server with a journal to those to one without.
WITH_JOURNAL_OF_WITHOUT = 0.98
# A ratio so close to one takes more runs.
WITH_JOURNAL_REPEATS = 7
# While reads are measured: puts a second, in batches, of the keys that are read.
WRITES_PER_SECOND = 50_000
READ_KEYS = 100_000
# One without a pause keeps the checkpointer busy: the journal is rewritten again and again.
REWRITTEN_KEYS = 1_000_000
BYTES_PER_PUT = 16 + 64
# Whose latencies are compared: far below what the server can do.
SINGLE_PER_SECOND = 2_000


def _seconds(bench):
    return bench.pick(4, 2)


def _entries(bench):
    return bench.pick(10_000_000, 1_000_000)


def estimate_seconds(bench):
    single = len(CALLERS) * 3 + 1
    with_journal = 2 * max(bench.repeats, WITH_JOURNAL_REPEATS) * (_seconds(bench) + 1)
    return with_journal + bench.repeats * (
        (single + 8 + 3 * len(BESIDE)) * (_seconds(bench) + 1) + _rewrite_seconds(bench) + bench.pick(150, 25))


def _rewrite_seconds(bench):
    return bench.pick(60, 20)


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


def _reads_under_writes(bench, durability):
    """Gets, one a call, of keys that are put meanwhile."""
    with servers.DurableTimecached(bench, durability) as server:
        loads.fill(bench, server, READ_KEYS)
        seconds = _seconds(bench)
        writes = loads.Load(keys=READ_KEYS, connections=4, depth=DEPTH,
                            rate=WRITES_PER_SECOND, seconds=seconds + 2)
        reads = loads.Load(put_percent=0, keys=READ_KEYS, connections=16, seconds=seconds)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            written = pool.submit(loads.drive, bench, server, writes)
            time.sleep(1)
            done = loads.drive(bench, server, reads)
            done["writes_per_second"] = written.result()["operations_per_second"]
        return done


def _reads(bench, rows, data):
    runs = bench.turns(f"gets under {figures.count(WRITES_PER_SECOND)} puts/s", {
        "SYNC": lambda: _reads_under_writes(bench, "sync"),
        "MEMORY": lambda: _reads_under_writes(bench, "memory")})
    what = f"SYNC get x 1, 16 callers, under {figures.count(WRITES_PER_SECOND)} puts/s"
    rows.append(figures.compared(what, "operations/s", loads.rates(runs["SYNC"]),
                                 "MEMORY", loads.rates(runs["MEMORY"])))
    for part in ("p50", "p99"):
        rows.append(figures.compared(
            f"{what}: {part}", "us", *_sides(runs, lambda run: run["latency_us"][part])))
    rows.append(figures.compared(
        f"{what}: puts meanwhile", "operations/s",
        *_sides(runs, lambda run: run["writes_per_second"])))
    data["reads"] = runs


def _backups(bench, server, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with tempfile.TemporaryDirectory(prefix="timecached-bench-") as directory:
            server.back_up(f"{directory}/backup")


def _beside(bench, durability, work):
    """Latencies of single puts at a fixed rate, alone and beside other work."""
    with servers.DurableTimecached(bench, durability) as server:
        loads.fill(bench, server, REWRITTEN_KEYS)
        seconds = _seconds(bench)
        single = loads.Load(keys=READ_KEYS, connections=16, rate=SINGLE_PER_SECOND,
                            seconds=seconds)
        other = work(bench, server, seconds + 2)
        alone = loads.drive(bench, server, single)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            done = pool.submit(other)
            time.sleep(1)
            beside = loads.drive(bench, server, single)
            done.result()
        return {"alone": alone["latency_us"], "beside": beside["latency_us"]}


def _load_of(durability, **load):
    def work(bench, server, seconds):
        other = server.create("other", durability)
        return lambda: loads.drive(bench, other, loads.Load(seconds=seconds, **load))
    return work


# Each is what a put of this durability has beside it.
BESIDE = {
    "ASYNC put x 1 beside SYNC ones of 16 callers": ("async", _load_of("sync")),
    "SYNC put x 1 beside 50 SYNC ones of 1 MB a second": (
        "sync", _load_of("sync", keys=100, connections=2, value_bytes=1_000_000, rate=50)),
    "SYNC put x 1 beside backups": (
        "sync", lambda bench, server, seconds: lambda: _backups(bench, server, seconds)),
}


def _latencies(bench, rows, data):
    runs = bench.turns(f"{SINGLE_PER_SECOND} puts/s beside other work", {
        what: lambda case=case: _beside(bench, *case) for what, case in BESIDE.items()})
    for what, results in runs.items():
        for part in ("p50", "p99", "p99_9"):
            rows.append(figures.compared(
                f"{what}: {part}", "us", [run["beside"][part] for run in results],
                "alone", [run["alone"][part] for run in results]))
    data["beside"] = runs


def _sides(runs, of):
    return ([of(run) for run in runs["SYNC"]], "MEMORY",
            [of(run) for run in runs["MEMORY"]])


def _with_journal(bench, rows, data):
    """What a journal costs a namespace that is not in it."""
    load = loads.Load(connections=16, depth=DEPTH, seconds=_seconds(bench))
    runs = bench.turns(f"MEMORY put x {DEPTH}", {
        "with": lambda: _put(bench, load, servers.DurableTimecached(bench, "memory")),
        "without": lambda: _put(bench, load, servers.Timecached(bench))},
        max(bench.repeats, WITH_JOURNAL_REPEATS))
    rows.append(figures.compared(
        f"MEMORY put x {DEPTH}, 16 callers, with a journal", "operations/s",
        loads.rates(runs["with"]), "without", loads.rates(runs["without"]),
        figures.at_least(WITH_JOURNAL_OF_WITHOUT)))
    data["with_journal"] = runs


def _rewrites(bench, rows, data):
    """What the journal writes for what is put, with all checkpoints that come."""
    load = loads.Load(connections=16, depth=DEPTH, keys=REWRITTEN_KEYS,
                      seconds=_rewrite_seconds(bench))

    def rewrite(durability):
        with servers.DurableTimecached(bench, durability) as server:
            loads.fill(bench, server, REWRITTEN_KEYS)
            before = server.journal_status()
            done = loads.drive(bench, server, load)
            after = server.journal_status()
            written = after["written_bytes"] - before["written_bytes"]
            done["journal_bytes_per_byte"] = written / (done["operations"] * BYTES_PER_PUT)
            done["checkpoints"] = after["checkpoints"] - before["checkpoints"]
            done["journal_bytes"] = after["disk_bytes"]
            return done
    runs = bench.turns(f"rewriting {figures.count(REWRITTEN_KEYS)} entries",
                       {"SYNC": lambda: rewrite("sync")}, bench.pick(3, 1))["SYNC"]
    what = f"SYNC put x {DEPTH} of {figures.count(REWRITTEN_KEYS)} keys"
    rows.append(figures.alone(f"{what}: written per byte put", "B",
                              [run["journal_bytes_per_byte"] for run in runs]))
    rows.append(figures.alone(f"{what}: checkpoints meanwhile", "",
                              [run["checkpoints"] for run in runs]))
    rows.append(figures.alone(f"{what}: journal at the end", "MiB",
                              [run["journal_bytes"] / 2**20 for run in runs]))
    rows.append(figures.alone(what, "operations/s", loads.rates(runs)))
    data["rewrites"] = runs


def _checkpoint(bench, server, entries):
    """Puts the entries again until the server has written them again, in its own order."""
    part = loads.Load(keys=entries, operations=entries // 8, order="sequential", depth=DEPTH)
    for _ in range(8 * 8):
        loads.drive(bench, server, part)
        if server.journal_status()["checkpoints"] > 0:
            return
    raise processes.CommandFailed("no checkpoint ended while its journal grew eightfold")


def _recovery(bench, server, entries, checkpointed=False):
    """Seconds from the start of a server that has so many entries on its disk."""
    with server:
        loads.fill(bench, server, entries)
        if checkpointed:
            _checkpoint(bench, server, entries)
        if isinstance(server, servers.SavedRedis):
            server.save()
        before = server.resident_bytes()
        server.kill()
        began = time.monotonic()
        server.restart()
        return {"seconds": time.monotonic() - began,
                "peak_of_before": server.peak_bytes() / before}


def _recoveries(bench, rows, data):
    entries = _entries(bench)
    runs = bench.turns(f"recovery of {figures.count(entries)} entries", {
        "timecached": lambda: _recovery(
            bench, servers.DurableTimecached(bench, "async"), entries),
        "timecached, checkpointed": lambda: _recovery(
            bench, servers.DurableTimecached(bench, "async"), entries, True),
        "Redis, AOF": lambda: _recovery(bench, servers.DurableRedis(bench, "everysec"),
                                        entries),
        "Redis, RDB": lambda: _recovery(bench, servers.SavedRedis(bench), entries)},
        bench.pick(3, 1))
    seconds = {name: [run["seconds"] for run in results]
               for name, results in runs.items()}
    for peer in ("Redis, AOF", "Redis, RDB"):
        rows.append(figures.compared(
            f"recovery of {figures.count(entries)} entries", "s", seconds["timecached"],
            peer, seconds[peer]))
    for name in ("timecached", "timecached, checkpointed"):
        rows.append(figures.alone(
            f"recovery of {figures.count(entries)} entries: {name}", "s", seconds[name],
            figures.at_most(RECOVERY_SECONDS)))
    rows.append(figures.compared(
        f"recovery of {figures.count(entries)} entries after a checkpoint", "s",
        seconds["timecached, checkpointed"], "without one", seconds["timecached"],
        figures.at_most(RECOVERY_OF_CHECKPOINT)))
    rows.append(figures.alone(
        f"recovery of {figures.count(entries)} entries: most memory, of what it had before",
        "", [run["peak_of_before"] for run in runs["timecached"]]))
    data["recoveries"] = runs


def run(bench):
    rows, data = [], {}
    _unary(bench, rows, data)
    _batches(bench, rows, data)
    _with_journal(bench, rows, data)
    _reads(bench, rows, data)
    _latencies(bench, rows, data)
    _rewrites(bench, rows, data)
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
