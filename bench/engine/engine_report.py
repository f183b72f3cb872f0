#!/usr/bin/env python3
"""Makes tables of the engine's benchmarks: times, ratios, and what is wanted of them.

usage: engine_report.py [--json FILE] RESULT.json...

Each RESULT is what Google Benchmark wrote of one run. A figure is the median of all runs;
a ratio is the median of the ratios within each run. With --json every measurement is
added to FILE as a line.
"""

import argparse
import collections
import json
import statistics
import sys

OPERATIONS = ("put", "get_hit", "get_miss", "overwrite", "remove", "death")
BUCKETS = (2, 3, 11, 101, 1000)
FLAT, LOCKED = "flat_hash_map", "flat_hash_map_locked"
ENGINE, BATCH, STORM = "engine", "engine_batch", "storm"


def read(paths):
    """Runs, each a dict of (operation, peer, entries, buckets) to its counters."""
    runs = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            benchmarks = json.load(file)["benchmarks"]
        run = {}
        for benchmark in benchmarks:
            if benchmark.get("error_occurred"):
                sys.exit(f"{benchmark['name']}: {benchmark['error_message']}")
            parts = benchmark["name"].split("/")
            key = (parts[0], parts[1], int(parts[2]), int(parts[3]))
            run[key] = benchmark
        runs.append(run)
    return runs


class Results:
    def __init__(self, runs):
        self.runs = runs
        self.keys = set().union(*runs)

    def median(self, key, counter="ns_per_op"):
        values = [run[key][counter] for run in self.runs if key in run]
        return statistics.median(values) if values else None

    def ratio(self, slow, fast):
        """How many times faster `fast` is than `slow`."""
        ratios = [run[slow]["ns_per_op"] / run[fast]["ns_per_op"]
                  for run in self.runs if slow in run and fast in run]
        return statistics.median(ratios) if ratios else None

    def entries(self):
        return sorted({key[2] for key in self.keys if key[0] == "get_hit"})


def text(value, digits=0):
    return "-" if value is None else f"{value:,.{digits}f}"


def print_times(results):
    print("\nNanoseconds an operation, one thread, keys of 16 B, values of 64 B; N entries"
          "\nspread over B buckets. (a) absl::flat_hash_map<string, string>, (a+) the same"
          "\nbehind an absl::Mutex, (b) Storm's list of B maps. (a) and (b) take no lock and"
          "\nknow no time; the engine takes one for each operation, for each 64 in batches."
          "\nIn a death, of a bucket of N, each entry is delivered; (a) erases as many.")
    header = (f"{'operation':10}{'N':>12}{'B':>6}{'engine':>9}{'batches':>9}"
              f"{'(a)':>9}{'(a+)':>9}{'(b)':>11}{'(a)/eng':>9}{'(a+)/eng':>9}"
              f"{'(b)/eng':>9}")
    for operation in OPERATIONS:
        print("\n" + header)
        sizes = sorted({key[2] for key in results.keys if key[0] == operation})
        for entries in sizes:
            flat = (operation, FLAT, entries, 1)
            locked = (operation, LOCKED, entries, 1)
            for buckets in BUCKETS:
                engine = (operation, ENGINE, entries, buckets)
                if engine not in results.keys:
                    continue
                batch = (operation, BATCH, entries, buckets)
                storm = (operation, STORM, entries, buckets)
                print(f"{operation:10}{entries:>12,}{buckets:>6}"
                      f"{text(results.median(engine)):>9}"
                      f"{text(results.median(batch)):>9}"
                      f"{text(results.median(flat)):>9}"
                      f"{text(results.median(locked)):>9}"
                      f"{text(results.median(storm)):>11}"
                      f"{text(results.ratio(flat, engine), 2):>9}"
                      f"{text(results.ratio(locked, engine), 2):>9}"
                      f"{text(results.ratio(storm, engine), 1):>9}")


def print_steps(results):
    print("\nHow long a lock is held and a put takes, in microseconds of the thread's own"
          "\nprocessor time, medians of the runs"
          f"\n{'':38}{'99.9 %':>10}{'longest':>12}")
    for key in sorted(results.keys):
        for counter, what in (("held", "a lock held in"), ("put", "a put into")):
            longest = f"{counter}_max_us"
            if any(longest in run.get(key, {}) for run in results.runs):
                name = f"{what} {key[1]}, {key[2]:,}"
                print(f"{name:38}{text(results.median(key, counter + '_p999_us'), 1):>10}"
                      f"{text(results.median(key, longest), 1):>12}")


def print_memory(results):
    print("\nBytes asked from the allocator for an entry, beyond its key and value")
    for key in sorted(results.keys):
        if key[0] != "memory":
            continue
        told = ""
        if key[1] == ENGINE:
            told = f"  (it says {text(results.median(key, 'told_beyond_bytes'), 2)})"
        spread = "one bucket" if key[3] == 1 else f"{key[3]} buckets"
        print(f"{key[1]:16}{key[2]:>12,} in {spread:12}"
              f"{text(results.median(key, 'beyond_bytes'), 2):>9}{told}")


def goals(results):
    """Rows of what is wanted, where, what was measured, and whether that holds."""
    for entries in results.entries():
        for buckets, wanted in ((3, 4), (101, 20)):
            ratio = results.ratio(("put", STORM, entries, buckets),
                                  ("put", ENGINE, entries, buckets))
            yield (f"put >= {wanted} x (b), B = {buckets}", entries, ratio,
                   lambda value, least=wanted: value >= least)
            ratio = results.ratio(("put", STORM, entries, buckets),
                                  ("put", BATCH, entries, buckets))
            yield ("  the same in batches of 64", entries, ratio,
                   lambda value, least=wanted: value >= least)
    for entries in results.entries():
        for peer, name in ((ENGINE, "get hit >= (a), B = 101"),
                           (BATCH, "  the same in batches of 64")):
            ratio = results.ratio(("get_hit", FLAT, entries, 1),
                                  ("get_hit", peer, entries, 101))
            yield name, entries, ratio, lambda value: value >= 1
        ratio = results.ratio(("get_hit", LOCKED, entries, 1),
                              ("get_hit", ENGINE, entries, 101))
        yield "  beside (a) behind a lock", entries, ratio, None
    for operation in ("put", "get_hit", "overwrite"):
        for entries in results.entries():
            ratio = results.ratio((operation, ENGINE, entries, 1000),
                                  (operation, ENGINE, entries, 2))
            yield (f"{operation}: B = 1000 <= 1.2 x B = 2", entries, ratio,
                   lambda value: value <= 1.2)
    for key in sorted(results.keys):
        if key[:2] == ("memory", ENGINE):
            spread = "1 bucket" if key[3] == 1 else f"{key[3]} buckets"
            yield (f"memory <= 24 B an entry, {spread}", key[2],
                   results.median(key, "beyond_bytes"), lambda value: value <= 24)
    for key in sorted(results.keys):
        if key[:2] == ("held", "death"):
            yield ("lock held <= 100 us as a bucket dies", key[2],
                   results.median(key, "held_max_us"), lambda value: value <= 100)


def print_goals(results):
    print(f"\n{'Wanted':42}{'N':>12}{'measured':>10}")
    for name, entries, value, holds in goals(results):
        if value is None:
            continue
        verdict = "" if holds is None else "  yes" if holds(value) else "  NO"
        print(f"{name:42}{entries:>12,}{text(value, 2):>10}{verdict}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", help="add every measurement to this file, a line each")
    parser.add_argument("results", nargs="+")
    arguments = parser.parse_args()
    runs = read(arguments.results)
    if arguments.json:
        with open(arguments.json, "a", encoding="utf-8") as file:
            for run in runs:
                for benchmark in run.values():
                    file.write(json.dumps({"benchmark": "engine", **benchmark}) + "\n")
    # Runs of different programs together make one.
    merged = collections.defaultdict(list)
    for run in runs:
        merged[frozenset(run)].append(run)
    groups = list(merged.values())
    together = []
    for i in range(max(len(group) for group in groups)):
        together.append({})
        for group in groups:
            if i < len(group):
                together[-1].update(group[i])
    results = Results(together)
    print_times(results)
    print_steps(results)
    print_memory(results)
    print_goals(results)


if __name__ == "__main__":
    main()
