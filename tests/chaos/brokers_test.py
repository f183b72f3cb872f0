"""Brokers start, lose one of them and get it back, and links to them break and heal."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import brokers as module
import kafka_wire
from brokers import PATIENCE_SECONDS, Brokers

SKIPPED = 77  # for ctest


def wait_until(holds, what):
    until = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        if time.monotonic() > until:
            raise AssertionError(f"not within {PATIENCE_SECONDS} s: {what}")
        time.sleep(0.05)


class BrokersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.brokers = cls.enterClassContext(Brokers(links=["node"]))

    def partition(self, topic):
        return self.brokers.metadata().topics[topic][0]

    def wait_until_in_sync(self, topic, nodes):
        wait_until(lambda: set(self.partition(topic).in_sync) == nodes, f"{nodes} in sync")

    def create(self, topic):
        self.brokers.create_topic(topic, retention_ms=-1)
        self.wait_until_in_sync(topic, {1, 2, 3})

    def test_a_killed_broker_is_replaced_and_comes_back(self):
        self.create("killed")
        dead = self.partition("killed").leader
        others = {1, 2, 3} - {dead}
        self.brokers.kill(dead)
        self.assertNotIn(dead, self.brokers.pids)
        wait_until(lambda: self.partition("killed").leader in others, "another leader")
        self.wait_until_in_sync("killed", others)
        self.brokers.start(dead)
        self.brokers.wait_until_ready()
        self.wait_until_in_sync("killed", {1, 2, 3})

    def test_a_paused_broker_is_replaced_and_catches_up(self):
        self.create("paused")
        paused = self.partition("paused").leader
        self.addCleanup(self.brokers.resume, paused)
        self.brokers.pause(paused)
        self.wait_until_in_sync("paused", {1, 2, 3} - {paused})
        self.brokers.resume(paused)
        self.wait_until_in_sync("paused", {1, 2, 3})

    def test_a_link_is_cut_and_healed(self):
        links = self.brokers.links["node"]
        ports = [link.port for link in links]
        addresses = [("127.0.0.1", port) for port in ports]

        def ports_by(address):
            """Of all brokers, as one tells a client that comes by this address."""
            return [port for _, (_, port) in
                    sorted(kafka_wire.metadata(address).brokers.items())]

        self.assertEqual(ports_by(addresses[0]), ports)
        links[0].cut()
        with self.assertRaises(OSError):
            ports_by(addresses[0])
        self.assertEqual(ports_by(addresses[1]), ports)
        links[0].heal()
        self.assertEqual(ports_by(addresses[0]), ports)

    def test_a_topic_that_cannot_be_is_refused(self):
        with self.assertRaisesRegex(kafka_wire.KafkaError, "nonsense"):
            self.brokers.create_topic("refused", nonsense=1)


class DirectoryTest(unittest.TestCase):
    def test_a_later_run_goes_on_with_the_data(self):
        with tempfile.TemporaryDirectory() as directory:
            with Brokers(1, directory) as brokers:
                brokers.create_topic("topic")
            with Brokers(1, directory) as brokers:
                wait_until(lambda: "topic" in brokers.metadata().topics, "the topic")
                wait_until(lambda: brokers.metadata().topics["topic"][0].leader == 1, "a leader")


class ProgramTest(unittest.TestCase):
    def test_it_obeys_and_ends_with_its_input(self):
        with subprocess.Popen(
                [sys.executable, "-B", module.__file__, "--count", "1", "--link", "node",
                 "--set", "min.insync.replicas=1"], text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
            started = json.loads(program.stdout.readline())
            self.assertNotEqual(started["bootstrap"], started["links"]["node"])
            pid = started["pids"]["1"]
            for line in "hold node\n", "heal node\n", "kill 1\n":
                program.stdin.write(line)
                program.stdin.flush()
                said = json.loads(program.stdout.readline())
            self.assertEqual(said["pids"], {})
            with self.assertRaises(ProcessLookupError):
                os.kill(pid, 0)
        self.assertEqual(program.returncode, 0)

    def test_its_brokers_end_with_it(self):
        for number in signal.SIGTERM, signal.SIGKILL:
            with self.subTest(number.name), tempfile.TemporaryDirectory() as directory, \
                    subprocess.Popen(
                        [sys.executable, "-B", module.__file__, "--count", "1", "--directory",
                         directory], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
                pid = json.loads(program.stdout.readline())["pids"]["1"]
                program.send_signal(number)
                program.wait(PATIENCE_SECONDS)
                # Ended, and reaped by whoever has inherited it.
                wait_until(lambda pid=pid: is_gone(pid), "the broker ends")


def is_gone(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
            return stat.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


if __name__ == "__main__":
    if REASON := module.unavailable():
        print(f"brokers: {REASON}")
        sys.exit(1 if os.environ.get("TIMECACHED_ALL_CLIENTS") else SKIPPED)
    unittest.main()
