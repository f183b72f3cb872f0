"""./dev cluster starts, serves, survives its owner, and stops cleanly."""

import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest

import brokers
import local_cluster
from brokers import PATIENCE_SECONDS, free_ports

SKIPPED = 77  # for ctest
BUILD = pathlib.Path(os.environ.get("TIMECACHED_BUILD", "build/release"))


def get(port, path):
    """Status and text."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


class LocalClusterTest(unittest.TestCase):
    """Its lines are read until one matches."""

    def setUp(self):
        self.port = min(free_ports(1))
        self.program = subprocess.Popen(
            [sys.executable, "-B", local_cluster.__file__, "--build", BUILD, "--port",
             str(self.port)], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(self.program.stdout.close)
        self.addCleanup(self.program.wait)
        self.addCleanup(self.program.terminate)
        self.said = []

    def read_until(self, pattern):
        for line in self.program.stdout:
            self.said.append(line)
            if found := re.search(pattern, line):
                return found
        return self.fail(f"it ended before {pattern}:\n{''.join(self.said)}")

    def control(self, *arguments):
        """Retried: a takeover may go on."""
        addresses = f"127.0.0.1:{self.port},127.0.0.1:{self.port + 10}"
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            result = subprocess.run(
                [BUILD / "client/cli/timecachectl", "--address", addresses, *arguments],
                capture_output=True, text=True, check=False)
            if result.returncode == 0 or time.monotonic() > until:
                self.assertEqual(result.returncode, 0, result.stderr + "".join(self.said))
                return result.stdout
            time.sleep(0.1)

    def init(self, broker, *arguments):
        return subprocess.run(
            [BUILD / "server/timecached", "cluster", "init", "--cluster", "demo",
             "--kafka-brokers", broker, *arguments], capture_output=True, text=True, check=False)

    def check_probes(self):
        """One is ready, and the other says which."""
        probes, until = {}, time.monotonic() + PATIENCE_SECONDS
        for name, port in ("node-1", self.port + 1), ("node-2", self.port + 11):
            status, said = get(port, "/readyz")
            # A standby says who owns once it has heard of it.
            while status != 200 and not re.search(": node-. owns", said) and time.monotonic() < until:
                time.sleep(0.1)
                status, said = get(port, "/readyz")
            probes[status] = name, said
            self.assertIn(f'timecache_cluster_owner{{cluster="demo"}} {int(status == 200)}\n',
                          get(port, "/metrics")[1])
        owner, said = probes[200]
        self.assertEqual(said, "ok\n")
        self.assertEqual(probes[503][1], f"standby: {owner} owns\n")

    def check_init(self, broker):
        """Of topics that exist."""
        found = self.init(broker, "--json")
        self.assertEqual(found.returncode, 0, found.stderr)
        self.assertEqual(json.loads(found.stdout), {
            "cluster": "demo", "made": False, "faults": [],
            "topics": [{"name": "demo.journal", "partitions": 4, "replicas": 3},
                       {"name": "demo.control", "partitions": 1, "replicas": 3}]})
        other = self.init(broker, "--partitions", "8")
        self.assertEqual(other.returncode, 1)
        self.assertRegex(other.stderr, "demo.journal has 4 partitions, not 8")
        unsafe = self.init(broker, "--replication-factor", "1")
        self.assertEqual(unsafe.returncode, 1)
        self.assertRegex(unsafe.stderr, "can lose acknowledged writes")

    def test_a_write_outlives_the_owner_and_ctrl_c_stops_all(self):
        pids = [int(self.read_until(rf"node-{n}: .* process (\d+)")[1]) for n in (1, 2)]
        broker = self.read_until(r"broker 1: (\S+), process (\d+)")
        pids.append(int(broker[2]))
        pids += [int(self.read_until(rf"broker {n}: .* process (\d+)")[1]) for n in (2, 3)]
        owner = int(self.read_until(r"kill -9 (\d+) +the owner")[1])
        self.read_until("Ctrl-C")
        self.check_init(broker[1])
        self.control("put", "greeting", "hello")
        self.check_probes()
        os.kill(owner, signal.SIGKILL)
        self.read_until("node-[12]: ended with signal 9")
        self.assertIn("hello", self.control("get", "greeting"))
        self.read_until("node-[12]: takeover_done")
        pids.append(int(self.read_until(r"node-[12]: started as process (\d+)")[1]))
        self.program.send_signal(signal.SIGINT)
        self.assertEqual(self.program.wait(PATIENCE_SECONDS), 0, "".join(self.said))
        for pid in pids:
            with self.assertRaises(ProcessLookupError):
                os.kill(pid, 0)


if __name__ == "__main__":
    if REASON := brokers.unavailable():
        print(f"local_cluster: {REASON}")
        sys.exit(1 if os.environ.get("TIMECACHED_ALL_CLIENTS") else SKIPPED)
    unittest.main()
