"""Members of one consumer group in several languages share one stream of events, and what
one puts the others read: byte for byte, every event once.

usage: cross_test.py MEMBERS: JSON, the command of each language's examples/member.
TIMECACHED is the server program. The Python client puts the entries and moves the clock."""

import collections
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time

EVENTS = 400
PATIENCE_SECONDS = 120


class Server:
    def __enter__(self):
        self.log = tempfile.NamedTemporaryFile(prefix="timecached-clients-")
        self.process = subprocess.Popen(
            [os.environ["TIMECACHED"], "--listen", "127.0.0.1:0", "--virtual-clock"],
            stdin=subprocess.DEVNULL, stderr=self.log)
        until = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < until and self.process.poll() is None:
            started = re.search(r"server_started.* address=(\S+)",
                                pathlib.Path(self.log.name).read_text())
            if started:
                self.address = started[1]
                return self
            time.sleep(0.01)
        raise RuntimeError("the server did not start")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.log.close()


class Member:
    """A program that acknowledges what it is given, and prints it."""

    def __init__(self, language, command, *arguments):
        self.language = language
        self.lines = []
        self.process = subprocess.Popen([*shlex.split(command), *arguments], text=True,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            key, value, attempt = line.rstrip("\n").split("\t")
            self.lines.append((key, bytes.fromhex(value), int(attempt)))

    def stop(self):
        self.process.terminate()
        code = self.process.wait(PATIENCE_SECONDS)
        self.reader.join()
        return code


def wait_until(holds, what):
    until = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        if time.monotonic() > until:
            raise AssertionError(f"in vain: {what}")
        time.sleep(0.02)


def value_of(number):
    """Bytes that are no UTF-8, of many lengths."""
    return bytes((number * 7 + i * 31) % 256 for i in range(number % 50)) + b"\xff\x00"


def main():
    commands = json.loads(sys.argv[1])
    # The package of the Python client, as its tests have installed it.
    python = shlex.split(commands["python"])[0] if "python" in commands else None
    if python is not None and os.path.realpath(sys.prefix) == os.path.realpath(sys.base_prefix):
        os.execv(python, [python, "-B", *sys.argv])
    import timecache
    from timecache import testing

    with Server() as server, timecache.Client(server.address) as client:
        clock = testing.VirtualClock(client)
        client.create_namespace("shared", timecache.NamespaceOptions(
            ttl=10, num_buckets=11))
        client.namespace("shared").create_group("all")
        shared = client.namespace("shared")

        def statistics():
            return shared.get_group("all", include_statistics=True).statistics

        members = [
            Member(language, command, server.address, "shared", "all", str(EVENTS))
            for language, command in sorted(commands.items())]
        try:
            wait_until(lambda: statistics().members == len(members), "all are members")
            expected = {f"key-{i}": value_of(i) for i in range(EVENTS)}
            items = list(expected.items())
            for begin in range(0, EVENTS, 20):
                shared.execute([timecache.Operation.put(key, value, ttl=1)
                                for key, value in items[begin:begin + 20]])
                clock.advance(1)
            wait_until(lambda: statistics().acked == EVENTS, "all is acknowledged")
            said = statistics()
        finally:
            codes = {member.language: member.stop() for member in members}
        # A Java machine that SIGTERM ends says so, also after an end in good order.
        ended = {0, 128 + signal.SIGTERM}
        assert ended.issuperset(codes.values()), f"exit codes {codes}"
        assert (said.lost, said.timed_out, said.nacked) == (0, 0, 0), said
        told = collections.Counter(line for member in members for line in member.lines)
        assert told == {(key, value, 1): 1 for key, value in expected.items()}, \
            sorted((told - collections.Counter(
                {(key, value, 1): 1 for key, value in expected.items()})).items())[:5]
        shares = {member.language: len(member.lines) for member in members}
        assert min(shares.values()) > 0, f"one was given nothing: {shares}"
    print(f"clients: {EVENTS} events among {shares}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
