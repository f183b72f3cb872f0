"""The report: as JSON, as a table, and as plots drawn from the JSON alone."""

import dataclasses
import json
import os
import pathlib

from . import machine
from .figures import Spread, number

HEADER = ("", "unit", "timecached", "beside", "", "ratio", "wanted")


def _spread(spread, repeats):
    if spread is None:
        return "-"
    text = number(spread["median"])
    if spread["runs"] > 1:
        text += f" [{number(spread['least'])}, {number(spread['greatest'])}]"
    if spread["runs"] < repeats:
        text += f" of {spread['runs']}"
    return text


def _cells(row, repeats):
    met = {None: "", True: "yes", False: "NO"}[row["met"]]
    return (row["what"], row["unit"], _spread(row["timecached"], repeats),
            row["peer_name"], _spread(row["peer"], repeats) if row["peer"] else "",
            _spread(row["ratio"], repeats) if row["ratio"] else "",
            f"{row['wanted'] or '':8}{met}")


def table(report):
    """All rows, each experiment's under its title."""
    blocks = [f"{machine.line(report['machine'])}\n"
              f"Medians [least, greatest] of {report['repeats']} runs or more, "
              "where no number is given; a ratio is timecached's figure over the other's, "
              "run by run"]
    for experiment in report["experiments"]:
        lines = [f"\n{experiment['title']}"]
        if experiment.get("failed"):
            lines.append(f"  FAILED: {experiment['failed']}")
        if round_trips := experiment.get("core_round_trips"):
            trip = dataclasses.asdict(Spread.of(trip["ns"] for trip in round_trips))
            lines.append("  a cache line from core to core and back, before each run: "
                         f"{_spread(trip, 0)} ns")
        cells = [HEADER, *(_cells(row, report["repeats"]) for row in experiment["rows"])]
        widths = [max(len(row[i]) for row in cells) for i in range(len(HEADER))]
        for row in cells if len(cells) > 1 else ():
            lines.append("  " + "  ".join(
                cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
        blocks.append("\n".join(lines))
    blocks.append(_verdict(report))
    return "\n".join(blocks)


def _verdict(report):
    judged = [(experiment, row) for experiment in report["experiments"]
              for row in experiment["rows"] if row["met"] is not None]
    missed = [f"{experiment['name']}, {row['what']}" for experiment, row in judged
              if not row["met"]]
    text = f"\n{len(judged) - len(missed)} of {len(judged)} wanted figures were met"
    return text + (f"; not: {'; '.join(missed)}" if missed else "")


def write(report, path):
    """Whole or not at all."""
    path = pathlib.Path(path)
    beside = path.with_name(path.name + ".part")
    beside.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    os.replace(beside, path)


def plain(report):
    """As it is after writing and reading: keys are strings, tuples are lists."""
    return json.loads(json.dumps(report))


def read(path):
    return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))


def draw(report, directory, experiments):
    from . import plots  # only where plots are wanted is matplotlib needed
    modules = {experiment.NAME: experiment for experiment in experiments}
    for experiment in report["experiments"]:
        if experiment.get("failed") or experiment["name"] not in modules:
            continue
        subtitle = (f"{machine.line(report['machine'])}. "
                    f"./dev bench peers {'--quick ' if report['quick'] else ''}--only "
                    f"{experiment['name']}: medians of {report['repeats']} runs, with "
                    "least and greatest. "
                    f"timecached {report['commit']}.")
        modules[experiment["name"]].plot(experiment["data"],
                                         plots.Canvas(directory, subtitle))
