"""etcd, the other store of leases: keys under leases, and leases that expire.

It promises what timecached does not, a replicated log, and pays for it; here it has one
member and does not wait for the disk.
"""

import json

from .. import figures, loads, servers
from . import Outcome

NAME = "etcd"
TITLE = "Keys under leases on etcd (one member, no fsync), unary puts and expiry"
CONNECTIONS = 16
TTL_SECONDS = 5


def _seconds(bench):
    return bench.pick(4, 2)


def _leases(bench):
    return bench.pick(3_000, 1_000)


def estimate_seconds(bench):
    return bench.repeats * (2 * _seconds(bench) + 2 * TTL_SECONDS + bench.pick(6, 3))


def _etcd(bench, *flags):
    with servers.Etcd(bench) as server:
        done = bench.run([bench.programs.peer_client("etcd_load"), "--port", server.port,
                          "--connections", CONNECTIONS, *flags])
        return json.loads(done.output)


def _puts(bench):
    with servers.Timecached(bench) as server:
        return loads.drive(bench, server, loads.Load(
            keys=100_000_000, order="sequential", connections=CONNECTIONS,
            seconds=_seconds(bench)))


def run(bench):
    puts = bench.turns("puts", {
        "timecached": lambda: _puts(bench),
        "etcd": lambda: _etcd(bench, "--seconds", _seconds(bench))})
    expiries = bench.turns(f"{_leases(bench):,} leases expire", {
        "etcd": lambda: _etcd(bench, "--leases", _leases(bench),
                              "--ttl-seconds", TTL_SECONDS)})["etcd"]
    rows = [figures.compared("put x 1, under a lease", "operations/s",
                             loads.rates(puts["timecached"]), "etcd",
                             loads.rates(puts["etcd"]))]
    for figure, unit in (("events_per_second", "events/s"), ("last_after_ttl_ms", "ms")):
        rows.append(figures.peer_alone(
            f"{_leases(bench):,} leases of one key: {figure.replace('_', ' ')}", unit,
            "etcd", [run[figure] for run in expiries]))
    return Outcome(rows, {"puts": puts, "expiries": expiries})


def plot(data, canvas):
    """Two figures need no picture."""
