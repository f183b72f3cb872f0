"""That all servers get the same load."""

import pathlib
import unittest

from peers import bench, loads


class LoadTest(unittest.TestCase):
    def test_both_clients_are_told_the_same(self):
        load = loads.Load(put_percent=80, keys=1_000, operations=50, depth=10, ttl_ms=250,
                          own_ttl=True)
        ours = load.timecachectl_flags("127.0.0.1:1", "bench", None)
        peers = load.peer_flags("redis", 1, None)
        for flag in ("--connections", "--keys", "--order", "--key-bytes", "--value-bytes",
                     "--operations"):
            with self.subTest(flag=flag):
                self.assertEqual(ours[ours.index(flag) + 1], peers[peers.index(flag) + 1])
        self.assertEqual(ours[ours.index("--mix") + 1], "put=80,get=20")
        self.assertEqual(peers[peers.index("--put-percent") + 1], 80)
        self.assertEqual(ours[ours.index("--ttl") + 1], "250ms")
        self.assertEqual(peers[peers.index("--ttl-ms") + 1], 250)
        self.assertEqual(ours[ours.index("--batch") + 1], 10)
        self.assertEqual(peers[peers.index("--depth") + 1], 10)

    def test_the_ttl_is_left_to_the_namespace(self):
        load = loads.Load(operations=1)
        self.assertNotIn("--ttl", load.timecachectl_flags("a", "b", None))
        self.assertIn("--ttl-ms", load.peer_flags("redis", 1, None))

    def test_a_mix_of_one_kind_names_no_other(self):
        flags = loads.Load(put_percent=0, operations=1).timecachectl_flags("a", "b", None)
        self.assertEqual(flags[flags.index("--mix") + 1], "get=100")

    def test_callers_are_of_one_client(self):
        flags = loads.Load(callers=4, depth=100, owner_routing=True,
                           operations=1).timecachectl_flags("a", "b", None)
        self.assertEqual(flags[flags.index("--callers") + 1], 4)
        self.assertEqual(flags[flags.index("--batch") + 1], 100)
        self.assertIn("--owner-routing", flags)
        self.assertNotIn("--connections", flags)
        self.assertNotIn("--depth", flags)

    def test_atomic_operations_have_the_names_of_each(self):
        load = loads.Load(write="combine", operations=1)
        flags = load.timecachectl_flags("a", "b", None)
        self.assertEqual(flags[flags.index("--mix") + 1], "combine=100")
        flags = load.peer_flags("redis", 1, None)
        self.assertEqual(flags[flags.index("--write") + 1], "incrby")
        self.assertNotIn("--script-sha", flags)
        flags = loads.Load(write="gather", script_sha="17", operations=1).peer_flags(
            "redis", 1, None)
        self.assertEqual(flags[flags.index("--write") + 1], "gather")
        self.assertEqual(flags[flags.index("--script-sha") + 1], "17")
        self.assertNotIn("--write", loads.Load(operations=1).peer_flags("redis", 1, None))


class BenchTest(unittest.TestCase):
    def make(self, repeats, quick=True):
        run = bench.Bench(bench.Programs(pathlib.Path("build")), quick, repeats)
        run.progress = lambda what: None
        run.core_round_trip_ns = lambda: 90
        return run

    def test_runs_take_turns(self):
        order = []
        results = self.make(3).turns("test", {
            "a": lambda: order.append("a") or len(order),
            "b": lambda: order.append("b") or len(order)})
        self.assertEqual(order, ["a", "b"] * 3)
        self.assertEqual(results, {"a": [1, 3, 5], "b": [2, 4, 6]})

    def test_the_distance_of_the_cores_is_measured_before_each_run(self):
        run = self.make(2)
        run.turns("test", {"a": lambda: None, "b": lambda: None})
        self.assertEqual(run.round_trips, [
            {"what": "test", "name": name, "ns": 90} for name in ("a", "b", "a", "b")])

    def test_a_server_is_used_as_it_likes_best(self):
        rates = {100: [1, 9, 1], 1_000: [3, 3, 3], 4_000: [2, 2, 8]}
        best = self.make(1, quick=False).best(
            "test", list(rates), lambda choice: rates[choice].pop())
        self.assertEqual(best, 1_000)

    def test_a_quick_run_tries_nothing_first(self):
        self.assertEqual(self.make(1).best("test", [7, 8], None), 7)

    def test_commands_that_differ_in_their_port_are_kept_once(self):
        run = self.make(1)
        run.record(["redis-benchmark", "-p", 1234, "-n", 10])
        run.record(["redis-benchmark", "-p", 4321, "-n", 10])
        run.record(["redis-benchmark", "-p", 4321, "-n", 20])
        self.assertEqual(list(run.commands.values()),
                         ["redis-benchmark -p 1234 -n 10", "redis-benchmark -p 4321 -n 20"])

    def test_commands_that_differ_in_their_servers_pid_are_kept_once(self):
        run = self.make(1)
        run.record(["redis_group", "--port", 1234, "--server-pid", 77, "--count", 10])
        run.record(["redis_group", "--port", 4321, "--server-pid", 78, "--count", 10])
        self.assertEqual(list(run.commands.values()),
                         ["redis_group --port 1234 --server-pid 77 --count 10"])


if __name__ == "__main__":
    unittest.main()
