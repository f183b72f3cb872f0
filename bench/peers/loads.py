"""Puts and gets: one description for all servers, and who carries it out."""

import csv
import dataclasses
import io
import json
import pathlib
import tempfile

from . import processes

MAX_LOAD_SECONDS = 600


@dataclasses.dataclass(frozen=True)
class Load:
    """What `timecachectl bench` and peer_load both understand.

    The peers are told the time to live with every put: they have no other way.
    timecached's puts leave it to their namespace, which must have the same one, unless
    they are to have their `own_ttl`.
    """
    put_percent: int = 100
    # What is done in place of a put: "append", "combine" (adds 1) or "gather" (of three
    # parts); `script_sha` is Redis's for the last one.
    write: str = "put"
    script_sha: str | None = None
    keys: int = 1_000_000
    order: str = "random"
    key_bytes: int = 16
    value_bytes: int = 64
    ttl_ms: int | None = 3_600_000
    own_ttl: bool = False
    depth: int = 1
    connections: int = 16
    operations: int | None = None
    seconds: float | None = None
    rate: int | None = None
    deadline_unix_ms: int | None = None
    # Threads that make calls of one client of ours, in place of connections; a depth is
    # that of a batch then. And whether the client goes to the owners itself.
    callers: int | None = None
    owner_routing: bool = False
    # Of Redis: how many must have a write before it is answered.
    wait_replicas: int | None = None

    def peer_flags(self, protocol, port, timeline):
        flags = ["--protocol", protocol, "--port", port,
                 "--put-percent", self.put_percent]
        if self.deadline_unix_ms:
            flags += ["--deadline-unix-ms", self.deadline_unix_ms]
        elif self.ttl_ms:
            flags += ["--ttl-ms", self.ttl_ms]
        if self.write != "put":
            flags += ["--write", {"combine": "incrby"}.get(self.write, self.write)]
        if self.script_sha:
            flags += ["--script-sha", self.script_sha]
        if self.wait_replicas:
            flags += ["--wait-replicas", self.wait_replicas]
        flags += ["--depth", self.depth]
        return flags + self._common(timeline)

    def timecachectl_flags(self, address, namespace, timeline):
        gets = 100 - self.put_percent
        mix = ",".join(f"{verb}={share}" for verb, share in
                       ((self.write, self.put_percent), ("get", gets)) if share)
        flags = ["bench", "--json", "--address", address, "--namespace", namespace,
                 "--mix", mix]
        if self.own_ttl:
            flags += ["--ttl", f"{self.ttl_ms}ms"]
        # A message of `depth` operations, answered before the next is sent: what a
        # pipeline of that depth is to the peers.
        flags += ["--batch", self.depth]
        if self.callers:
            flags += ["--callers", self.callers]
            flags += ["--owner-routing"] if self.owner_routing else []
        else:
            flags += ["--depth", 1]
        return flags + self._common(timeline)

    def _common(self, timeline):
        flags = [] if self.callers else ["--connections", self.connections]
        flags += ["--keys", self.keys,
                 "--order", self.order, "--key-bytes", self.key_bytes,
                 "--value-bytes", self.value_bytes]
        if self.operations:
            flags += ["--operations", self.operations]
        else:
            flags += ["--seconds", f"{self.seconds:g}"]
        if self.rate:
            flags += ["--rate", self.rate]
        if timeline:
            flags += ["--timeline", timeline]
        return flags


def drive(bench, server, load, sample=None, with_timeline=False):
    """Puts a load on a server. Returns the figures, a dict as the client's JSON."""
    with tempfile.TemporaryDirectory(prefix="timecached-bench-") as directory:
        timeline = pathlib.Path(directory) / "timeline" if with_timeline else None
        cpu_before = server.cpu_seconds()
        done = bench.run(server.load_command(load, timeline), MAX_LOAD_SECONDS, sample)
        figures = json.loads(done.output)
        cpu = server.cpu_seconds() - cpu_before
        if timeline:
            lines = timeline.read_text(encoding="utf-8").splitlines()
            figures["timeline"] = [json.loads(line) for line in lines]
    if figures.get("errors"):
        raise processes.CommandFailed(f"{server.name}: {figures['errors']} operations failed")
    figures["server_cpu_us_per_operation"] = cpu * 1e6 / figures["operations"]
    figures["client_cpu_us_per_operation"] = (
        done.cpu_seconds * 1e6 / figures["operations"])
    return figures


def redis_benchmark(bench, server, load):
    """The same by Redis's own tool, on random keys; the figures that it has."""
    key = "key:__rand_int__"
    if load.put_percent == 100:
        request = ["SET", key, "v" * load.value_bytes, "EX", load.ttl_ms // 1000]
    else:
        request = ["GET", key]
    cpu_before = server.cpu_seconds()
    done = bench.run(
        ["redis-benchmark", "-p", server.port, "-c", load.connections, "-P", load.depth,
         "-n", load.operations, "-r", load.keys, "--csv", *request], MAX_LOAD_SECONDS)
    row = next(csv.DictReader(io.StringIO(done.output)))
    cpu = server.cpu_seconds() - cpu_before
    return {
        "operations": load.operations,
        "operations_per_second": float(row["rps"]),
        "latency_us": {name: float(row[f"{name}_latency_ms"]) * 1e3
                       for name in ("p50", "p99", "max")},
        "server_cpu_us_per_operation": cpu * 1e6 / load.operations,
        "client_cpu_us_per_operation": done.cpu_seconds * 1e6 / load.operations,
    }


def fill(bench, server, keys, **changes):
    """Every key once, in order."""
    return drive(bench, server, fill_load(keys, **changes))


def fill_load(keys, **changes):
    return Load(keys=keys, operations=keys, order="sequential", depth=100, **changes)


def rates(results):
    return [result["operations_per_second"] for result in results]
