"""timecached beside Redis, Valkey, NATS, memcached, etcd and bare gRPC, on this machine.

Starts the servers that it needs on free loopback ports, and ends them, whatever happens.
Prints a table; exits with 1 if an experiment failed, and with 0 whether or not what is
wanted was met.
"""

import argparse
import datetime
import pathlib
import sys
import time

from . import bench, experiments, machine, processes, report

SERVERS = ("redis-server", "valkey-server", "nats-server")
PACKAGES = ("redis-tools", "memcached", "etcd-server", "libhiredis0.14", "libgrpc++1.51",
            "libprotobuf32", "librdkafka1", "default-jre-headless", "g++", "python3-matplotlib")
ROOT = pathlib.Path(__file__).resolve().parents[3]

EXAMPLES = """\
examples:
  ./dev bench peers --quick
  ./dev bench peers --json peers.json --plots plots
  ./dev bench peers --only batch,memory --repeat 9
  ./dev bench peers --from peers.json --plots plots     draw again, measure nothing
"""


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("expected a number from 1 up")
    return value


def parse(arguments, all_experiments):
    names = [experiment.NAME for experiment in all_experiments]
    parser = argparse.ArgumentParser(
        prog="./dev bench peers", description=__doc__, epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release",
                        help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true",
                        help=f"small sizes, {bench.QUICK_REPEATS} runs of each: a few "
                             "minutes, and figures to look at rather than to cite")
    parser.add_argument("--only", metavar="NAME[,...]", default=",".join(names),
                        help=f"only these of: {', '.join(names)}")
    parser.add_argument("--repeat", type=positive, metavar="N",
                        help=f"runs of each figure (default {bench.DEFAULT_REPEATS}; "
                             f"{bench.QUICK_REPEATS} with --quick)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE",
                        help="write everything that was measured")
    parser.add_argument("--plots", type=pathlib.Path, metavar="DIR",
                        help="draw SVG plots into this directory")
    parser.add_argument("--from", type=pathlib.Path, metavar="FILE", dest="source",
                        help="take the figures of an earlier --json")
    options = parser.parse_args(arguments)
    wanted = options.only.split(",")
    unknown = sorted(set(wanted) - set(names))
    if unknown:
        parser.error(f"--only {','.join(unknown)}: no such experiment; there are "
                     f"{', '.join(names)}")
    options.chosen = [experiment for experiment in all_experiments
                      if experiment.NAME in wanted]
    return options


def measure(options):
    repeats = options.repeat or (bench.QUICK_REPEATS if options.quick
                                 else bench.DEFAULT_REPEATS)
    run = bench.Bench(bench.Programs(options.build), options.quick, repeats)
    result = {
        "command": processes.text(["./dev", "bench", "peers", *sys.argv[1:]]),
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "machine": machine.describe(),
        "commit": machine.commit(ROOT),
        "versions": {**machine.package_versions(PACKAGES),
                     **machine.program_versions(map(run.programs.peer, SERVERS))},
        "quick": options.quick,
        "repeats": repeats,
        "experiments": [],
    }
    minutes = sum(chosen.estimate_seconds(run) for chosen in options.chosen) / 60
    run.begin("peers")
    run.progress(f"{len(options.chosen)} experiments, about {minutes:.0f} min")
    for i, chosen in enumerate(options.chosen):
        run.begin(f"[{i + 1}/{len(options.chosen)}] {chosen.NAME}")
        run.progress(f"about {chosen.estimate_seconds(run) / 60:.1f} min")
        result["experiments"].append(measure_one(chosen, run))
        if options.json:
            report.write(result, options.json)
    return result


def measure_one(experiment, run):
    """One that fails does not take the others with it."""
    entry = {"name": experiment.NAME, "title": experiment.TITLE, "rows": []}
    began = time.monotonic()
    try:
        outcome = experiment.run(run)
        entry["rows"] = [row.as_json() for row in outcome.rows]
        entry["data"] = outcome.data
    except (processes.CommandFailed, OSError, ValueError, KeyError) as error:
        entry["failed"] = f"{type(error).__name__}: {error}"
        run.progress(entry["failed"])
    entry["core_round_trips"] = run.round_trips
    entry["seconds"] = round(time.monotonic() - began, 1)
    entry["commands"] = list(run.commands.values())
    return entry


def main(arguments):
    all_experiments = experiments.all_experiments()
    options = parse(arguments, all_experiments)
    processes.end_on_signals()
    result = report.read(options.source) if options.source else measure(options)
    print(report.table(result))
    if options.plots:
        # As they are read back, so that a report is drawn the same at any time.
        report.draw(report.plain(result), options.plots, options.chosen)
    return 1 if any(entry.get("failed") for entry in result["experiments"]) else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        print("\ninterrupted: every process was ended", file=sys.stderr)
        sys.exit(130)
