"""Ten thousand watchers on one server, and a hundred beside as many subscribers of Redis.

A published message has the bytes of an event's key and value; timecached's events carry
a version, their times and a cause besides. An event of timecached is counted from the
death of its entry, which was put before; a message of Redis from its publication.
"""

import json

from .. import figures, servers
from . import Outcome

NAME = "fanout"
TITLE = "Every event to very many"
REDIS = "Redis Pub/Sub"
MANY, SOME = 10_000, 100
EVENTS_OF_A_ROUND = (1, 1_000)
MESSAGE_BYTES = 80
PUBLISHERS = (1, 4, 16)
MOST_IDLE_KIB = 32
TUNING_MESSAGES = 50_000
LEAD_SECONDS = 8
SHOWN = (("delivered in all", "events/s", "events_per_second"),
         ("server CPU", "ns/event", "server_cpu_us_per_event"))


def _entries(bench):
    return bench.pick(2_000_000, 100_000)


def _messages(bench):
    """Fewer than our entries: rates are compared."""
    return bench.pick(200_000, 20_000)


def estimate_seconds(bench):
    return bench.pick(15, 0) + bench.repeats * bench.pick(45, 14)


def _rounds(bench, entries):
    done = bench.run([bench.programs.bench("watch_bench"), "rounds", "--json",
                      "--watchers", MANY, "--entries", entries,
                      "--rounds", bench.pick(5, 2)])
    return json.loads(done.output)


def _ours(bench):
    done = bench.run([bench.programs.bench("watch_bench"), "fanout", "--json",
                      "--watchers", SOME, "--entries", _entries(bench),
                      "--lead-ms", bench.pick(LEAD_SECONDS, 2) * 1000])
    return json.loads(done.output)


def _redis(bench, publishers, messages):
    with servers.Redis(bench, *servers.Redis.PATIENT) as redis:
        done = bench.run([bench.programs.peer_client("redis_pubsub"), "--port", redis.port,
                          "--server-pid", redis.pid, "--subscribers", SOME,
                          "--messages", messages, "--bytes", MESSAGE_BYTES,
                          "--publishers", publishers])
        return json.loads(done.output)


def _many_rows(rounds):
    all_runs = [run for runs in rounds.values() for run in runs]
    yield figures.alone(f"{MANY:,} watchers: an idle one", "KiB",
                        [run["idle_kib_per_watcher"] for run in all_runs],
                        figures.at_most(MOST_IDLE_KIB))
    for entries, runs in rounds.items():
        what = "one event" if entries == 1 else f"{entries:,} events"
        yield figures.alone(f"{MANY:,} watchers: {what} at the last", "ms late",
                            [last for run in runs for last in run["last_ms"]])


def _of(runs, figure):
    factor = 1e3 if figure == "server_cpu_us_per_event" else 1
    return [run[figure] * factor for run in runs]


def run(bench):
    rounds = bench.turns(f"{MANY:,} watchers", {
        entries: lambda entries=entries: _rounds(bench, entries)
        for entries in EVENTS_OF_A_ROUND})
    publishers = bench.best(
        "publishers for Redis", PUBLISHERS,
        lambda number: _redis(bench, number, TUNING_MESSAGES)["events_per_second"])
    runs = bench.turns(f"{SOME} watchers", {
        "timecached": lambda: _ours(bench),
        REDIS: lambda: _redis(bench, publishers, _messages(bench))})
    rows = list(_many_rows(rounds))

    def of(name, figure):
        return _of(runs[name], figure)
    for what, unit, figure in SHOWN:
        rows.append(figures.compared(f"{SOME} watchers: {what}", unit,
                                     of("timecached", figure), REDIS, of(REDIS, figure)))
    return Outcome(rows, {"publishers": publishers, "rounds": rounds, "runs": runs})


def plot(data, canvas):
    with canvas.figure("fanout", TITLE, columns=3, width=10, height=3.2) as all_axes:
        rounds = data["rounds"]
        canvas.bars(all_axes[0], [f"{int(entries):,}" for entries in rounds], {
            "timecached": {i: figures.Spread.of(last for run in runs
                                                for last in run["last_ms"])
                           for i, runs in enumerate(rounds.values())}})
        all_axes[0].set_ylabel("events that die at once")
        all_axes[0].set_xlabel(f"ms until the last of {MANY:,} has all")
        for axes, (what, unit, figure) in zip(all_axes[1:], SHOWN):
            for i, (name, runs) in enumerate(data["runs"].items()):
                canvas.bars(axes, list(data["runs"]), {
                    name: {i: figures.Spread.of(_of(runs, figure))}})
            axes.set_xlabel(f"{SOME} watchers: {what}, {unit}")
        all_axes[1].xaxis.set_major_formatter(lambda value, _: figures.count(value))
