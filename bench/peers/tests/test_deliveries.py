"""What the experiments with events make of what their programs print."""

import pathlib
import unittest

from peers import bench
from peers.experiments import stalled


class PrintedBench(bench.Bench):
    """Runs nothing: the experiment's programs are replaced."""

    def __init__(self):
        super().__init__(bench.Programs(pathlib.Path("build")), True, 2)

    def progress(self, what):
        pass

    def core_round_trip_ns(self):
        return 90


def half(put_us, late_ms, resident_mib):
    return {"p99_put_us": put_us, "p99_late_ms": late_ms, "resident_mib": resident_mib}


class StalledTest(unittest.TestCase):
    def setUp(self):
        self.before = stalled._measure
        self.addCleanup(setattr, stalled, "_measure", self.before)

    def rows(self, none, one):
        stalled._measure = lambda bench: {
            "none_stalled": none, "one_stalled": one, "retention_mib": 4,
            "lost_by_stalled": 10}
        return {row.what: row for row in stalled.run(PrintedBench()).rows}

    def test_the_halves_of_one_round_are_compared(self):
        rows = self.rows([half(100, 1, 20), half(200, 1, 20)],
                         [half(110, 1, 21), half(220, 1, 22)])
        row = rows["p99 of puts, one stalled"]
        self.assertEqual(row.ratio.runs, 4)
        self.assertAlmostEqual(row.ratio.least, 1.1)
        self.assertAlmostEqual(row.ratio.greatest, 1.1)
        self.assertTrue(row.met())

    def test_memory_counts_from_before_anybody_stalled(self):
        # The second half without one has what the first stall left behind.
        rows = self.rows([half(1, 1, 20), half(1, 1, 33)], [half(1, 1, 32), half(1, 1, 34)])
        row = rows["memory that a stall adds, at most"]
        self.assertEqual(row.ours.median, 14)
        self.assertFalse(row.met())


if __name__ == "__main__":
    unittest.main()
