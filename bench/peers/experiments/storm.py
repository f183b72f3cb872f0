"""Many entries with one deadline and one live watcher: how late each is told of.

NATS counts TTLs in whole seconds from each put: its keys have a deadline each, spread over
the time that filling takes. How late a marker is counts from its own key's.
"""

import json

from .. import figures, servers
from . import Outcome

NAME = "storm"
TITLE = "Entries with one deadline: from death to the event"
LATEST_MS = 500
LEAST_OF_REDIS = 15
REDIS_SETTINGS = ("--notify-keyspace-events", "Ex", *servers.Redis.PATIENT)
# The most that its configuration lets it spend on expiry.
REDIS_EFFORT = ("--hz", "500", "--active-expire-effort", "10")
REDIS, REDIS_HARD = "Redis", "Redis, hz 500, effort 10"
VALKEY, NATS = "Valkey", "NATS KV markers"


def _entries(bench):
    return bench.pick(1_000_000, 200_000)


def estimate_seconds(bench):
    return bench.repeats * bench.pick(120, 70)


def _ours(bench):
    done = bench.run([bench.programs.bench("watch_bench"), "storm", "--json",
                      "--entries", _entries(bench)])
    return json.loads(done.output)


def _redis(bench, settings, kind=servers.Redis):
    with kind(bench, *REDIS_SETTINGS, *settings) as redis:
        done = bench.run([bench.programs.peer_client("redis_storm"), "--port", redis.port,
                          "--entries", _entries(bench),
                          "--lead-ms", bench.pick(15_000, 10_000)])
        return json.loads(done.output)


def _nats(bench):
    with servers.Nats(bench) as nats:
        done = bench.run([bench.programs.peer_client("nats_storm"), "--port", nats.port,
                          "--entries", _entries(bench), "--ttl-s", bench.pick(30, 15)])
        return json.loads(done.output)


def run(bench):
    runs = bench.turns(f"{_entries(bench):,} entries", {
        "timecached": lambda: _ours(bench),
        REDIS: lambda: _redis(bench, ()),
        REDIS_HARD: lambda: _redis(bench, REDIS_EFFORT),
        VALKEY: lambda: _redis(bench, (), servers.Valkey),
        NATS: lambda: _nats(bench)})

    def of(name, figure):
        return [run[figure] for run in runs[name]]
    rows = []
    for what, figure in (("first event", "first_ms"), ("median event", "median_ms")):
        for peer in (REDIS, VALKEY, NATS):
            rows.append(figures.compared(what, "ms late", of("timecached", figure), peer,
                                         of(peer, figure)))
    # The goal is a time, not a ratio.
    late = of("timecached", "last_ms")
    rows.append(figures.alone("last event", "ms late", late, figures.at_most(LATEST_MS)))
    for peer in (REDIS, VALKEY, NATS):
        rows.append(figures.compared("last event", "ms late", late, peer,
                                     of(peer, "last_ms")))
    for peer, goal in ((REDIS, figures.at_least(LEAST_OF_REDIS)), (REDIS_HARD, None),
                       (VALKEY, None)):
        rows.append(figures.compared(
            "events until the last", "events/s", of("timecached", "events_per_second"),
            peer, of(peer, "events_per_second"), goal))
    return Outcome(rows, {"entries": _entries(bench), "runs": runs})


def plot(data, canvas):
    title = f"{TITLE}, {data['entries']:,} entries, one watcher"
    figures_shown = {"first event": "first_ms", "median event": "median_ms",
                     "last event": "last_ms"}
    with canvas.figure("storm", title) as axes:
        series = {
            name: {i: figures.Spread.of(run[figure] for run in runs)
                   for i, figure in enumerate(figures_shown.values())}
            for name, runs in data["runs"].items()}
        canvas.bars(axes, list(figures_shown), series, logarithmic=True)
        axes.set_xlabel("milliseconds after the deadline, log scale")
