"""A consumer group beside one on a Redis Stream: everything is taken and settled.

timecached's time begins with the death of the entries, Redis's once all are added to its
stream: what that costs is not in its figures. An entry of the stream has the bytes of an
event's key and value.
"""

import json

from .. import figures, servers
from . import Outcome

NAME = "groups"
TITLE = "Consumer groups: every event to one member, and settled by it"
REDIS = "Redis Stream"
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
    return bench.pick(75, 0) + bench.repeats * len(_members(bench)) * bench.pick(11, 6)


def _ours(bench, members, count, events):
    done = bench.run([bench.programs.bench("watch_bench"), "group", "--json",
                      "--members", members, "--entries", events,
                      "--max-in-flight", count,
                      "--lead-ms", bench.pick(LEAD_SECONDS, 2) * 1000])
    return json.loads(done.output)


def _redis(bench, members, count, events):
    with servers.Redis(bench) as redis:
        done = bench.run([bench.programs.peer_client("redis_group"), "--port", redis.port,
                          "--server-pid", redis.pid, "--consumers", members,
                          "--events", events, "--count", count,
                          "--bytes", MESSAGE_BYTES])
        return json.loads(done.output)


MEASURE = {"timecached": _ours, REDIS: _redis}


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
        for what, unit, figure in (
                ("settled", "events/s", "events_per_second"),
                ("server CPU", "us/event", "server_cpu_us_per_event")):
            rows.append(figures.compared(
                f"{who}: {what}", unit, [run[figure] for run in runs["timecached"]],
                REDIS, [run[figure] for run in runs[REDIS]]))
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
