"""What an operation costs with ever more entries and buckets: the engine alone."""

import json

from .. import figures
from . import Outcome

NAME = "scale"
TITLE = "Time of an operation, engine alone, one thread"
OPERATIONS = ("put", "get_hit")
ENGINE, BATCH, FLAT = "engine", "engine_batch", "flat_hash_map"
BUCKETS_AT = 1_000_000
SIZES_AT_BUCKETS = 101
SERIES = {ENGINE: "one by one", BATCH: "batches of 64", FLAT: "absl::flat_hash_map"}


def _most_entries(bench):
    return bench.pick(10_000_000, 1_000_000)


def estimate_seconds(bench):
    return bench.repeats * bench.pick(35, 10)


def _measure(bench):
    operations = "|".join(OPERATIONS)
    chosen = (f"^({operations})/(({ENGINE}|{BATCH})/"
              f"([0-9]+/{SIZES_AT_BUCKETS}|{BUCKETS_AT}/[0-9]+)|{FLAT}/[0-9]+/1)/")
    done = bench.run([bench.programs.bench("engine_bench"),
                      f"--max_entries={_most_entries(bench)}",
                      f"--benchmark_filter={chosen}", "--benchmark_format=json"])
    result = {}
    for benchmark in json.loads(done.output)["benchmarks"]:
        key = "/".join(benchmark["name"].split("/")[:4])
        result[key] = benchmark["ns_per_op"]
    return result


def _points(data, operation, peer):
    """Spreads by entries, at one number of buckets, and by buckets, at one of entries."""
    by_entries, by_buckets = {}, {}
    for key in data["runs"][0]:
        name, of, entries, buckets = key.split("/")
        if (name, of) != (operation, peer):
            continue
        spread = figures.Spread.of(run[key] for run in data["runs"])
        if int(buckets) in (SIZES_AT_BUCKETS, 1):
            by_entries[int(entries)] = spread
        if int(entries) == BUCKETS_AT and peer != FLAT:
            by_buckets[int(buckets)] = spread
    return by_entries, by_buckets


def run(bench):
    runs = bench.turns("all sizes", {"engine": lambda: _measure(bench)})["engine"]
    rows = []
    for operation in OPERATIONS:
        for entries in (1_000, BUCKETS_AT, _most_entries(bench)):
            key = f"{operation}/{{}}/{entries}/{{}}"
            ours = [run[key.format(ENGINE, SIZES_AT_BUCKETS)] for run in runs]
            flat = [run[key.format(FLAT, 1)] for run in runs]
            row = figures.compared(f"{operation}, {figures.count(entries)} entries",
                                   "ns", ours, FLAT, flat)
            if row not in rows:
                rows.append(row)
        few, many = (f"{operation}/{ENGINE}/{BUCKETS_AT}/{buckets}" for buckets in (2, 1000))
        rows.append(figures.compared(f"{operation}, 1000 buckets", "ns",
                                     [run[many] for run in runs], "2 buckets",
                                     [run[few] for run in runs]))
    return Outcome(rows, {"runs": runs})


def _draw(canvas, data, name, title, which, x_label):
    with canvas.figure(name, title, columns=len(OPERATIONS), width=8) as all_axes:
        for axes, operation in zip(all_axes, OPERATIONS):
            for peer, label in SERIES.items():
                points = _points(data, operation, peer)[which]
                canvas.curve(axes, points, label)
            axes.set_xscale("log")
            axes.set_ylim(bottom=0)
            axes.set_title(operation.replace("_", " "), fontsize="medium")
            axes.set_xlabel(x_label)
        all_axes[0].set_ylabel("nanoseconds per operation")


def plot(data, canvas):
    _draw(canvas, data, "scale-entries", f"{TITLE}, {SIZES_AT_BUCKETS} buckets", 0,
          "entries")
    _draw(canvas, data, "scale-buckets", f"{TITLE}, {BUCKETS_AT:,} entries", 1, "buckets")
