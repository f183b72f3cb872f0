"""What an experiment works with: its options, the programs, and turns."""

import dataclasses
import pathlib
import re
import statistics
import sys
import time

from . import processes

QUICK_REPEATS = 2
DEFAULT_REPEATS = 5
TUNING_REPEATS = 3

# Ports, directories and moments in a command line.
OF_ONE_RUN = re.compile(r"(?<=port )\d+|(?<=-p )\d+|(?<=-pid )\d+|(?<=127\.0\.0\.1:)\d+"
                        r"|timecached-bench-\w+|(?<=-unix-ms )\d+|(?<=ttl: )\S+s\b")


@dataclasses.dataclass(frozen=True)
class Programs:
    """Where a release build has its programs."""
    build: pathlib.Path

    @property
    def server(self):
        return self.build / "server/timecached"

    @property
    def ctl(self):
        return self.build / "client/cli/timecachectl"

    def bench(self, name):
        return self.build / "bench" / name

    def peer(self, name):
        """A server that is measured beside: see requirements.txt."""
        return self.build.parent / "peers/bin" / name

    def peer_client(self, name):
        return self.build / "bench/peers/clients" / name


class Bench:
    """One run of the benchmark. Experiments take programs, sizes and turns from it."""

    def __init__(self, programs, quick, repeats):
        self.programs = programs
        self.quick = quick
        self.repeats = repeats
        self.commands = {}
        self.round_trips = []
        self._began = time.monotonic()
        self._where = ""

    def pick(self, full, quick):
        return quick if self.quick else full

    def begin(self, where):
        """From here on progress is told of `where`, and commands and round trips are
        recorded afresh."""
        self._where = where
        self.commands = {}
        self.round_trips = []

    def progress(self, what):
        elapsed = int(time.monotonic() - self._began)
        print(f"{elapsed // 60:3d}:{elapsed % 60:02d} {self._where}: {what}",
              file=sys.stderr, flush=True)

    def record(self, command):
        """Keeps a command line for the report: the first of those that differ only in
        what each run has of its own."""
        line = processes.text(command)
        self.commands.setdefault(OF_ONE_RUN.sub("*", line), line)

    def run(self, command, timeout_seconds=300, sample=None):
        self.record(command)
        return processes.run(command, timeout_seconds, sample)

    def turns(self, what, runs, repeats=None):
        """Runs each of `runs`, a dict of names to functions, in turn: A B A B.

        Returns the results, a list for each name. So whatever else the machine does
        reaches all of them. Before each run it is measured how far the cores are from
        each other: a virtual machine's move.
        """
        repeats = repeats or self.repeats
        results = {name: [] for name in runs}
        for i in range(repeats):
            for name, function in runs.items():
                self.progress(f"{what}: {name}, {i + 1} of {repeats}")
                self.round_trips.append(
                    {"what": what, "name": str(name), "ns": self.core_round_trip_ns()})
                results[name].append(function())
        return results

    def core_round_trip_ns(self):
        """Of a cache line between two cores; 0 where there is one."""
        return int(processes.run([self.programs.bench("core_round_trip")], 60).output)

    def best(self, what, choices, rate, repeats=TUNING_REPEATS):
        """The one of `choices` for which `rate` returns most: so that each server is
        used as it likes best. With --quick it is the first, untried."""
        if self.quick:
            return choices[0]
        rates = self.turns(what, {
            choice: lambda choice=choice: rate(choice) for choice in choices}, repeats)
        best = max(choices, key=lambda choice: statistics.median(rates[choice]))
        self.progress(f"{what}: best with {best}")
        return best
