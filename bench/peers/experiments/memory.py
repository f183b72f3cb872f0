"""Resident bytes of an entry: how much a fresh server grows as it is filled."""

import time

from .. import figures, loads, servers
from . import Outcome

NAME = "memory"
KEY_BYTES, VALUE_BYTES = 16, 64
TITLE = f"Resident memory of an entry of {KEY_BYTES} B + {VALUE_BYTES} B"
MOST_OVERHEAD_BYTES = 24
MOST_OF_REDIS = 0.5
SETTLE_SECONDS = 1
SERVERS = (servers.Timecached, servers.Redis, servers.Valkey, servers.Memcached)


def _entries(bench):
    return bench.pick(10_000_000, 1_000_000)


def estimate_seconds(bench):
    return bench.repeats * bench.pick(67, 11)


def _bytes_per_entry(bench, kind):
    entries = _entries(bench)
    with kind(bench) as server:
        before = server.resident_bytes()
        loads.fill(bench, server, entries, key_bytes=KEY_BYTES, value_bytes=VALUE_BYTES)
        time.sleep(SETTLE_SECONDS)
        return (server.resident_bytes() - before) / entries


def run(bench):
    runs = bench.turns(f"{_entries(bench):,} entries", {
        kind.name: lambda kind=kind: _bytes_per_entry(bench, kind) for kind in SERVERS})
    ours = runs["timecached"]
    payload = KEY_BYTES + VALUE_BYTES
    rows = [figures.alone("beyond key and value", "B/entry",
                          [value - payload for value in ours],
                          figures.at_most(MOST_OVERHEAD_BYTES))]
    for peer, goal in (("Redis", figures.at_most(MOST_OF_REDIS)), ("Valkey", None),
                       ("memcached", None)):
        rows.append(figures.compared("all of an entry", "B/entry", ours, peer, runs[peer],
                                     goal))
    return Outcome(rows, {"entries": _entries(bench), "bytes_per_entry": runs})


def plot(data, canvas):
    runs = data["bytes_per_entry"]
    with canvas.figure("memory", f"{TITLE}, {data['entries']:,} entries") as axes:
        for i, (name, values) in enumerate(runs.items()):
            canvas.bars(axes, list(runs), {name: {i: figures.Spread.of(values)}})
        canvas.wanted(axes, KEY_BYTES + VALUE_BYTES, "key and value")
        axes.set_xlabel("resident bytes per entry")
