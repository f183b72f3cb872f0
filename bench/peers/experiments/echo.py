"""Unary calls and the Pipeline beside bare gRPC with the same bytes: service_bench."""

import json
import pathlib
import tempfile

from .. import figures
from . import Outcome

NAME = "echo"
TITLE = "timecached beside a bare gRPC echo of the same bytes"
OURS, ECHO = "timecached", "bare gRPC"
LEAST_UNARY, LEAST_PIPELINE = 0.95, 0.6


def _rounds(bench):
    return bench.pick(8 * bench.repeats, 10)


def estimate_seconds(bench):
    return 30 + int(3.5 * _rounds(bench))


def _unit_and_goal(call):
    """A message of the Pipeline, of many operations, is what is counted there."""
    if "pipeline" in call:
        return "messages/s", figures.at_least(LEAST_PIPELINE)
    return "calls/s", figures.at_least(LEAST_UNARY)


def run(bench):
    with tempfile.TemporaryDirectory(prefix="timecached-bench-") as directory:
        path = pathlib.Path(directory) / "service.jsonl"
        bench.progress(f"{_rounds(bench)} rounds of each call")
        bench.run([bench.programs.bench("service_bench"), "--rounds", _rounds(bench),
                   "--json", path], timeout_seconds=1200)
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    cases = {}
    for line in lines:
        call = (f"{line['call']}, {line['connections']} connections"
                f" x {line['calls_in_flight']}")
        cases.setdefault(call, {}).setdefault(line["server"], []).append(
            line["calls_per_second"])
    rows = []
    for call, runs in cases.items():
        unit, goal = _unit_and_goal(call)
        rows.append(figures.compared(call, unit, runs[OURS], ECHO, runs[ECHO], goal))
    return Outcome(rows, {"rounds": lines, "rates": cases})


def plot(data, canvas):
    with canvas.figure("echo", TITLE) as axes:
        labels = list(data["rates"])
        ratios = {i: figures.Spread.of_ratios(runs[OURS], runs[ECHO])
                  for i, runs in enumerate(data["rates"].values())}
        canvas.bars(axes, labels, {OURS: ratios})
        canvas.wanted(axes, 1, "bare gRPC")
        axes.set_xlabel("calls or messages per second, as a share of bare gRPC's")
