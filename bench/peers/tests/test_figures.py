"""What computes: medians, ratios, goals, and the table of them."""

import unittest

from peers import figures, report


class SpreadTest(unittest.TestCase):
    def test_median_of_odd_and_even_numbers_of_runs(self):
        self.assertEqual(figures.Spread.of([3, 1, 2]), figures.Spread(2, 1, 3, 3))
        self.assertEqual(figures.Spread.of([4, 1, 2, 3]).median, 2.5)

    def test_no_run_has_no_figure(self):
        with self.assertRaises(ValueError):
            figures.Spread.of([])

    def test_ratios_are_taken_run_by_run(self):
        # A machine that is twice as slow in the second turn changes no ratio.
        ratio = figures.Spread.of_ratios([800, 400, 820], [100, 50, 100])
        self.assertEqual((ratio.median, ratio.least, ratio.greatest), (8, 8, 8.2))

    def test_ratios_need_as_many_runs(self):
        with self.assertRaises(ValueError):
            figures.Spread.of_ratios([1, 2], [1])


class GoalTest(unittest.TestCase):
    def test_a_bound_is_met_exactly_at_it(self):
        self.assertTrue(figures.at_least(8).met(figures.Spread.of([8])))
        self.assertFalse(figures.at_least(8).met(figures.Spread.of([7.99])))
        self.assertTrue(figures.at_most(24).met(figures.Spread.of([24])))
        self.assertFalse(figures.at_most(24).met(figures.Spread.of([24.01])))

    def test_the_ratio_is_judged_where_there_is_one(self):
        row = figures.compared("put", "/s", [900], "Redis", [100], figures.at_least(8))
        self.assertTrue(row.met())
        row = figures.alone("overhead", "B", [25], figures.at_most(24))
        self.assertFalse(row.met())
        self.assertIsNone(figures.alone("overhead", "B", [25]).met())


class TextTest(unittest.TestCase):
    def test_numbers_keep_the_digits_that_count(self):
        expected = {0: "0", 0.954: "0.95", 12.34: "12.3", 123.4: "123", 8_000: "8000",
                    43_210: "43.2 k", 1_000_000: "1.00 M", 12_345_678: "12.3 M",
                    2.5e9: "2.50 G"}
        for value, text in expected.items():
            with self.subTest(value=value):
                self.assertEqual(figures.number(value), text)

    def test_round_numbers_are_said_short(self):
        for value, text in {64: "64", 100_000: "100 k", 1_500_000: "1.5 M"}.items():
            with self.subTest(value=value):
                self.assertEqual(figures.count(value), text)

    def test_the_table_says_what_was_missed_and_what_failed(self):
        missed = figures.compared("put x 100", "/s", [700, 710], "Redis", [100, 100],
                                  figures.at_least(8))
        table = report.table({
            "machine": {"cpu": "a CPU", "cores": 2, "memory_gib": 24, "kernel": "Linux"},
            "repeats": 2,
            "experiments": [
                {"name": "batch", "title": "Batches", "rows": [missed.as_json()]},
                {"name": "storm", "title": "Storm", "rows": [], "failed": "Redis did not start"}]})
        line = next(line for line in table.splitlines() if "put x 100" in line)
        self.assertIn("705 [700, 710]", line)
        self.assertIn("7.05 [7, 7.10]", line)
        self.assertRegex(line, r">= 8 +NO$")
        self.assertIn("FAILED: Redis did not start", table)
        self.assertIn("0 of 1 wanted figures were met; not: batch, put x 100", table)


if __name__ == "__main__":
    unittest.main()
