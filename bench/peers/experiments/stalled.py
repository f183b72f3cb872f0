"""One watcher of a hundred reads nothing: what puts and the other watchers feel of it.

One server under one load; turn about the one watcher reads, and does not. What it loses
is counted, and checked: it and each of the others account for every death.
"""

import json

from .. import figures
from . import Outcome

NAME = "stalled"
TITLE = "One watcher of a hundred that does not read"
WATCHERS = 100
# As much as a second half of the same kind differs from a first.
MOST_OF_UNSTALLED = 1.25
SHOWN = (("p99 of puts", "us", "p99_put_us"),
         ("p99 of the others' events", "ms late", "p99_late_ms"),
         ("server's resident memory", "MiB", "resident_mib"))


def _rounds(bench):
    return bench.pick(2, 1)


def _seconds(bench):
    return bench.pick(5, 3)


def estimate_seconds(bench):
    return bench.repeats * (5 + 2 * _rounds(bench) * (_seconds(bench) + 1))


def _measure(bench):
    done = bench.run([bench.programs.bench("watch_bench"), "stall", "--json",
                      "--watchers", WATCHERS, "--rounds", _rounds(bench),
                      "--seconds", _seconds(bench)])
    return json.loads(done.output)


def _of(runs, which, figure):
    """Of all rounds of all runs: a round's two halves lie next to each other."""
    return [half[figure] for run in runs for half in run[which]]


def run(bench):
    runs = bench.turns(f"{WATCHERS} watchers", {"timecached": lambda: _measure(bench)})
    runs = runs["timecached"]
    rows = [figures.compared(f"{what}, one stalled", unit, _of(runs, "one_stalled", figure),
                             "none stalled", _of(runs, "none_stalled", figure),
                             figures.at_most(MOST_OF_UNSTALLED))
            for what, unit, figure in SHOWN]
    # Before anybody had stalled, and at the most afterwards.
    grown = [max(half["resident_mib"] for half in run["one_stalled"]) -
             run["none_stalled"][0]["resident_mib"] for run in runs]
    rows.append(figures.alone("memory that a stall adds, at most", "MiB", grown,
                              figures.at_most(2 * runs[0]["retention_mib"])))
    rows.append(figures.alone("lost by the stalled one, all told", "events",
                              [run["lost_by_stalled"] for run in runs]))
    return Outcome(rows, {"runs": runs})


def plot(data, canvas):
    with canvas.figure("stalled", TITLE, columns=len(SHOWN), width=10,
                       height=2.8) as all_axes:
        names = {"none_stalled": "none stalled", "one_stalled": "one stalled"}
        for axes, (what, unit, figure) in zip(all_axes, SHOWN):
            for i, (which, name) in enumerate(names.items()):
                canvas.bars(axes, list(names.values()), {
                    name: {i: figures.Spread.of(_of(data["runs"], which, figure))}})
            axes.set_xlabel(f"{what}, {unit}")
