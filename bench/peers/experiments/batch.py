"""Puts and gets in batches beside Redis and Valkey in pipelines, and single ones beside
these and memcached.

Every entry lives for an hour. timecached's have that from their namespace, which is what
a namespace is for, but in the one case that says "own ttl"; Redis and memcached take it
with each put.
"""

import contextlib
import dataclasses
import json
import pathlib
import tempfile

from .. import figures, loads, servers
from . import Outcome

NAME = "batch"
TITLE = "Puts and gets, a batch at a time; TTL 1 h, timecached's by namespace"
# Of the peer's rate; and of its server CPU one part in so many.
PUTS_OF_PEER = 4
GETS_OF_PEER = 3
CONNECTIONS = (4, 16, 50)
BARE_STREAM = "bare gRPC"
BARE_STREAM_MS = 1_000


def _cases(bench):
    """Depth, keys, operations of a run, whether there is a goal."""
    small, large = bench.pick((1_000_000, 10_000_000), (100_000, 1_000_000))
    return (
        (100, small, bench.pick(3_000_000, 500_000), False),
        (100, large, large, True),
        (10, small, bench.pick(1_000_000, 200_000), False),
        (1, small, bench.pick(300_000, 100_000), False),
    )


def estimate_seconds(bench):
    return bench.pick(60, 8) + bench.repeats * bench.pick(145, 45)


def _best_connections(bench):
    """The number with which Redis does best, at depth 100."""
    keys, operations = bench.pick((1_000_000, 1_000_000), (100_000, 300_000))
    with servers.Redis(bench) as redis:
        loads.fill(bench, redis, keys)

        def both(connections):
            rates = []
            for put_percent in (100, 0):
                load = loads.Load(put_percent=put_percent, keys=keys, depth=100,
                                  connections=connections, operations=operations)
                done = loads.redis_benchmark(bench, redis, load)
                rates.append(done["operations_per_second"])
            # Time for one of each.
            return 1 / sum(1 / rate for rate in rates)
        runs = bench.turns("connections for Redis", {
            number: lambda number=number: both(number) for number in CONNECTIONS},
            bench.pick(3, 1))
    return max(runs, key=lambda number: figures.Spread.of(runs[number]).median), runs


def _drivers(load):
    """Who puts the load on which server: each by the tool that it comes with."""
    own_tool = {servers.Timecached: loads.drive, servers.Redis: loads.redis_benchmark,
                servers.Valkey: loads.redis_benchmark}
    if load.depth == 1:
        own_tool[servers.Memcached] = loads.drive
    return own_tool


def _bare_stream(bench, load):
    """What gRPC delivers alone, a function for turns by its name: a server that reads
    and writes the bytes of such a load and does nothing. It has a core for itself, and
    so has its client."""
    def stream():
        verb = "put" if load.put_percent else "get"
        with tempfile.TemporaryDirectory(prefix="timecached-bench-") as directory:
            path = pathlib.Path(directory) / "service.jsonl"
            bench.run([bench.programs.bench("service_bench"), "--streams",
                       load.connections, "--rounds", 1, "--round-ms", BARE_STREAM_MS,
                       "--json", path])
            lines = path.read_text(encoding="utf-8").splitlines()
        done, = (line for line in map(json.loads, lines)
                 if line["server"] == BARE_STREAM and line["call"] == f"pipeline {verb}")
        return {"operations_per_second": done["calls_per_second"] * load.depth,
                "server_cpu_us_per_operation":
                    done["server_cpu_us_per_call"] / load.depth}
    return {BARE_STREAM: stream}


def _puts(bench, load, others):
    """Into a fresh server each; `others` take their turns."""
    def put(kind, driver):
        with kind(bench) as server:
            return driver(bench, server, load)
    return bench.turns(f"put, {load.keys:,} keys, depth {load.depth}", {
        kind.name: lambda kind=kind, driver=driver: put(kind, driver)
        for kind, driver in _drivers(load).items()} | others)


def _gets(bench, load, others):
    """From servers that have every key; `others` take their turns."""
    drivers = _drivers(load)
    with contextlib.ExitStack() as stack:
        loaded = {kind: stack.enter_context(kind(bench)) for kind in drivers}
        for server in loaded.values():
            bench.progress(f"get, {load.keys:,} keys: filling {server.name}")
            loads.fill(bench, server, load.keys)
        return bench.turns(f"get, {load.keys:,} keys, depth {load.depth}", {
            kind.name: lambda kind=kind, driver=driver: driver(bench, loaded[kind], load)
            for kind, driver in drivers.items()} | others)


def _rows(how, runs, of_peer):
    ours = runs["timecached"]
    for peer in runs:
        if peer == "timecached":
            continue
        yield figures.compared(how, "operations/s", loads.rates(ours), peer,
                               loads.rates(runs[peer]),
                               figures.at_least(of_peer) if of_peer else None)
        cpu = "server_cpu_us_per_operation"
        yield figures.compared(f"{how}: server CPU", "us/operation",
                               [run[cpu] for run in ours], peer,
                               [run[cpu] for run in runs[peer]],
                               figures.at_most(1 / of_peer) if of_peer else None)


def run(bench):
    connections, tried = _best_connections(bench)
    bench.progress(f"Redis does best with {connections} connections: all get as many")
    rows, cases = [], []

    def case(verb, load, runs, of_peer=None):
        what = f"{verb} x {load.depth}" + (", own ttl" if load.own_ttl else "")
        rows.extend(_rows(f"{what}, {figures.count(load.keys)} keys", runs, of_peer))
        cases.append({"what": what, "depth": load.depth, "keys": load.keys, "runs": runs})

    for i, (depth, keys, operations, has_goal) in enumerate(_cases(bench)):
        gets = loads.Load(put_percent=0, keys=keys, depth=depth, connections=connections,
                          operations=operations)
        puts = dataclasses.replace(gets, put_percent=100)
        # What the goals are up against, beside the first.
        case("put", puts, _puts(bench, puts, _bare_stream(bench, puts) if i == 0 else {}),
             PUTS_OF_PEER if has_goal else None)
        if i == 0:
            own = dataclasses.replace(puts, own_ttl=True)
            case("put", own, _puts(bench, own, {}))
        case("get", gets, _gets(bench, gets, _bare_stream(bench, gets) if i == 0 else {}),
             GETS_OF_PEER if has_goal else None)
    return Outcome(rows, {"connections": connections, "connections_tried": tried,
                          "cases": cases})


def plot(data, canvas):
    title = f"{TITLE}, {data['connections']} connections"
    with canvas.figure("batch", title, columns=2, width=10) as all_axes:
        for axes, is_large in zip(all_axes, (True, False)):
            cases = [case for case in data["cases"] if (case["depth"] == 100) == is_large]
            labels = [f"{case['what']}\n{figures.count(case['keys'])} keys"
                      for case in cases]
            series = {}
            for i, case in enumerate(cases):
                for name, runs in case["runs"].items():
                    series.setdefault(name, {})[i] = figures.Spread.of(loads.rates(runs))
            canvas.bars(axes, labels, series)
            axes.set_xlabel("operations per second")
            axes.set_xlim(left=0)
            axes.xaxis.set_major_formatter(lambda value, _: figures.count(value))
