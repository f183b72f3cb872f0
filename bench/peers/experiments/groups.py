"""A consumer group beside one on a Redis Stream, and beside a pull consumer of NATS
JetStream: everything is taken and settled.

timecached's time begins with the death of the entries, that of the others once all are
added to their stream, in memory: what that costs is not in their figures. An entry of the
stream has the bytes of an event's key and value. NATS answers no acknowledgement: its time
ends when it says that none is missing.
"""

import json

from .. import figures, servers
from . import Outcome

NAME = "groups"
TITLE = "Consumer groups: every event to one member, and settled by it"
REDIS, VALKEY, NATS = "Redis Stream", "Valkey Stream", "NATS JetStream"
LEAST_OF_PEER = 1.5
MESSAGE_BYTES = 80
# Events that a member has in hand: those of one XREADGROUP, or max_in_flight.
COUNTS = (1_000, 100, 4_000)
TUNING_MEMBERS, TUNING_EVENTS = 4, 500_000
LEAD_SECONDS = 5


def _members(bench):
    return bench.pick((1, 4, 16), (4,))


def _events(bench):
    return bench.pick(1_000_000, 200_000)


def estimate_seconds(bench):
    return bench.pick(180, 0) + bench.repeats * len(_members(bench)) * bench.pick(40, 15)


def _ours(bench, members, count, events):
    done = bench.run([bench.programs.bench("watch_bench"), "group", "--json",
                      "--members", members, "--entries", events,
                      "--max-in-flight", count,
                      "--lead-ms", bench.pick(LEAD_SECONDS, 2) * 1000])
    return json.loads(done.output)


def _peer(kind, client):
    def measure(bench, members, count, events):
        with kind(bench) as server:
            done = bench.run([bench.programs.peer_client(client), "--port", server.port,
                              "--server-pid", server.pid, "--consumers", members,
                              "--events", events, "--count", count,
                              "--bytes", MESSAGE_BYTES])
            return json.loads(done.output)
    return measure


MEASURE = {"timecached": _ours, REDIS: _peer(servers.Redis, "redis_group"),
           VALKEY: _peer(servers.Valkey, "redis_group"),
           NATS: _peer(servers.Nats, "nats_group")}


def _tuned(bench, name):
    return bench.best(
        f"events that a member has in hand, {name}", COUNTS,
        lambda count: MEASURE[name](bench, TUNING_MEMBERS, count,
                                    TUNING_EVENTS)["events_per_second"])


def run(bench):
    counts = {name: _tuned(bench, name) for name in MEASURE}
    cases, rows = {}, []
    for members in _members(bench):
        runs = cases[members] = bench.turns(f"{members} members", {
            name: lambda members=members, name=name: MEASURE[name](
                bench, members, counts[name], _events(bench)) for name in MEASURE})
        who = "1 member" if members == 1 else f"{members} members"
        for what, unit, figure, goal in (
                ("settled", "events/s", "events_per_second",
                 figures.at_least(LEAST_OF_PEER)),
                ("server CPU", "us/event", "server_cpu_us_per_event", None)):
            for peer in (REDIS, VALKEY, NATS):
                rows.append(figures.compared(
                    f"{who}: {what}", unit, [run[figure] for run in runs["timecached"]],
                    peer, [run[figure] for run in runs[peer]], goal))
    return Outcome(rows, {"counts": counts, "events": _events(bench), "cases": cases})


def plot(data, canvas):
    title = f"{TITLE}, {data['events']:,} events"
    with canvas.figure("groups", title, columns=2) as all_axes:
        for axes, figure, label in zip(
                all_axes, ("events_per_second", "server_cpu_us_per_event"),
                ("events settled per second", "server CPU, us per event")):
            series = {}
            for i, runs in enumerate(data["cases"].values()):
                for name, results in runs.items():
                    series.setdefault(name, {})[i] = figures.Spread.of(
                        run[figure] for run in results)
            canvas.bars(axes, [f"{members} members" if int(members) > 1 else "1 member"
                               for members in data["cases"]], series)
            axes.set_xlabel(label)
        all_axes[0].xaxis.set_major_formatter(lambda value, _: figures.count(value))
