"""One namespace with ever more watchers: events delivered in all, and what each costs."""

import json

from .. import figures
from . import Outcome

NAME = "watchers"
TITLE = "Watchers of one namespace: every event goes to each"
WATCHERS = (1, 100, 1_000)
MOST_IDLE_KIB = 32


def _events(bench, watchers):
    """Events that die: fewer for more watchers, who get all of them each."""
    most, least = bench.pick((1_000_000, 20_000), (200_000, 5_000))
    return max(least, most // watchers)


def estimate_seconds(bench):
    return bench.repeats * len(WATCHERS) * bench.pick(8, 5)


def _measure(bench, watchers):
    done = bench.run([bench.programs.bench("watch_bench"), "fanout", "--json",
                      "--watchers", watchers, "--entries", _events(bench, watchers)])
    return json.loads(done.output)


def run(bench):
    runs = bench.turns("events", {
        str(watchers): lambda watchers=watchers: _measure(bench, watchers)
        for watchers in WATCHERS})
    rows = []

    def of(watchers, figure):
        return [run[figure] for run in runs[str(watchers)]]
    for watchers in WATCHERS:
        who = "1 watcher" if watchers == 1 else f"{watchers:,} watchers"
        rows.append(figures.alone(f"{who}: delivered in all", "events/s",
                                  of(watchers, "events_per_second")))
    cpu = "server_cpu_us_per_event"
    rows.append(figures.alone("1 watcher: server CPU", "us/event", of(1, cpu)))
    for watchers in WATCHERS[1:]:
        rows.append(figures.compared(f"{watchers:,} watchers: server CPU", "us/event",
                                     of(watchers, cpu), "1 watcher", of(1, cpu),
                                     figures.at_most(1)))
    rows.append(figures.alone(f"an idle watcher of {WATCHERS[-1]:,}", "KiB",
                              of(WATCHERS[-1], "idle_kib_per_watcher"),
                              figures.at_most(MOST_IDLE_KIB)))
    return Outcome(rows, {"runs": runs})


def plot(data, canvas):
    with canvas.figure("watchers", TITLE, columns=2) as all_axes:
        for axes, figure, label in zip(
                all_axes, ("events_per_second", "server_cpu_us_per_event"),
                ("events per second, delivered in all", "server CPU, us per event")):
            canvas.curve(axes, {int(watchers): figures.Spread.of(run[figure] for run in runs)
                                for watchers, runs in data["runs"].items()}, "timecached")
            axes.set_xscale("log")
            axes.set_xlabel("watchers")
            axes.set_ylabel(label)
            axes.set_ylim(bottom=0)
