"""Workloads with the published figures of three of Twitter's production caches.

Key and value sizes, TTL and share of sets are those of the clusters; time is compressed,
so that what is put expires many times over within a run. Keys are drawn at random from so
many that most die of age before they are overwritten.
"""

import dataclasses
import time

from .. import figures, loads, servers
from . import Outcome

NAME = "twitter"
TITLE = "Twitter's caches, time compressed, each server as fast as it goes"
DEPTH = 100
CONNECTIONS = 16
# A server's memory is steady if its last quarter of a run is not above this much of the
# quarter before.
MOST_GROWTH = 1.1


@dataclasses.dataclass(frozen=True)
class Cluster:
    number: int
    key_bytes: int
    value_bytes: int
    ttl_seconds: int
    put_percent: int
    compression: int
    keys: int
    run_seconds: int

    @property
    def ttl_ms(self):
        return self.ttl_seconds * 1000 // self.compression

    def __str__(self):
        return (f"cluster {self.number}: {self.key_bytes} B + {self.value_bytes} B, "
                f"TTL {self.ttl_seconds} s / {self.compression}, {self.put_percent} % set")


CLUSTERS = (
    Cluster(12, 44, 1030, 300, 80, compression=150, keys=5_000_000, run_seconds=8),
    Cluster(15, 18, 102, 30, 100, compression=30, keys=20_000_000, run_seconds=6),
    Cluster(31, 41, 15, 60, 94, compression=30, keys=20_000_000, run_seconds=8),
)


def _sized(bench):
    """Quick is twice as quick in all."""
    if not bench.quick:
        return CLUSTERS
    return [dataclasses.replace(cluster, compression=cluster.compression * 2,
                                keys=cluster.keys // 2,
                                run_seconds=cluster.run_seconds // 2)
            for cluster in CLUSTERS]


def estimate_seconds(bench):
    return 2 * bench.repeats * sum(cluster.run_seconds + 2 for cluster in _sized(bench))


def _measure(bench, cluster, kind):
    options = {"ttl": f"{cluster.ttl_ms}ms"} if kind is servers.Timecached else {}
    load = loads.Load(put_percent=cluster.put_percent, keys=cluster.keys,
                      key_bytes=cluster.key_bytes, value_bytes=cluster.value_bytes,
                      ttl_ms=cluster.ttl_ms, depth=DEPTH, connections=CONNECTIONS,
                      seconds=cluster.run_seconds)
    memory = []
    with kind(bench, **options) as server:
        began = time.monotonic()

        def sample():
            memory.append((round(time.monotonic() - began, 2), server.resident_bytes()))
        result = loads.drive(bench, server, load, sample)
    result["memory"] = memory
    result["growth"] = _growth(memory)
    return result


def _growth(memory):
    """Greatest of the last quarter over the greatest of the quarter before."""
    quarter = max(1, len(memory) // 4)
    last = max(size for _, size in memory[-quarter:])
    before = max(size for _, size in memory[-2 * quarter:-quarter])
    return last / before


def run(bench):
    rows, clusters = [], []
    for cluster in _sized(bench):
        runs = bench.turns(f"cluster {cluster.number}", {
            kind.name: lambda kind=kind: _measure(bench, cluster, kind)
            for kind in (servers.Timecached, servers.Redis)})
        ours, redis = runs["timecached"], runs["Redis"]
        what = f"cluster {cluster.number}"
        rows.append(figures.compared(what, "operations/s", loads.rates(ours), "Redis",
                                     loads.rates(redis)))
        rows.append(figures.compared(
            f"{what}: memory at the end over before", "ratio",
            [run["growth"] for run in ours], "Redis", [run["growth"] for run in redis]))
        rows.append(figures.alone(f"{what}: is it steady", "ratio",
                                  [run["growth"] for run in ours],
                                  figures.at_most(MOST_GROWTH)))
        clusters.append({"cluster": str(cluster), "runs": runs})
    return Outcome(rows, {"clusters": clusters})


def plot(data, canvas):
    with canvas.figure("twitter", TITLE, columns=len(data["clusters"]),
                       width=10) as all_axes:
        for axes, of in zip(all_axes, data["clusters"]):
            for name, runs in of["runs"].items():
                for i, run in enumerate(runs):
                    seconds, sizes = zip(*run["memory"])
                    axes.plot(seconds, [size / 2**30 for size in sizes],
                              color=canvas.color(name), linewidth=1.2, alpha=0.8,
                              label=name if i == 0 else None)
            title = of["cluster"].replace(": ", "\n", 1).replace(", TTL", ",\nTTL")
            axes.set_title(title, fontsize="small")
            axes.set_ylim(bottom=0)
            axes.set_xlabel("seconds (a line for each run)")
        all_axes[0].set_ylabel("resident memory, GiB")
