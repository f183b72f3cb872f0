"""Programs in several languages that are clients of one server: for cross_test.py."""

import base64
import json
import shlex
import subprocess
import threading
import time

PATIENCE_SECONDS = 120


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
            self.lines.append(self.parse(line.rstrip("\n")))

    def parse(self, line):
        key, value, attempt = line.split("\t")
        return key, bytes.fromhex(value), int(attempt)

    def stop(self):
        self.process.terminate()
        code = self.process.wait(PATIENCE_SECONDS)
        self.reader.join()
        return code


class CommandLineMember(Member):
    """timecachectl, which is written with the C++ client."""

    def __init__(self, program, address, namespace, group):
        super().__init__("timecachectl", shlex.quote(program), "--address", address, "--json",
                         "--hex", "--key-hex", "watch", namespace, "--group", group,
                         "--max-in-flight", "2")

    def parse(self, line):
        event = json.loads(line)
        return (bytes.fromhex(event["key_hex"]).decode(), bytes.fromhex(event["value_hex"]),
                event["attempt"])


class Peer:
    """A program that does operations as it is told: client/python/tests/peer.py says how."""

    def __init__(self, language, command, *arguments):
        self.name = language
        self.process = subprocess.Popen([*shlex.split(command), *arguments], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, *words):
        self.process.stdin.write(" ".join(words) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer.endswith("\n"), f"{self.name} has ended: {words}"
        return answer[:-1]

    def put(self, key, value):
        assert self.ask("put", to_hex(key), to_hex(value)) == "done"

    def get(self, key):
        answer = self.ask("get", to_hex(key))
        return None if answer == "none" else shown(answer)

    def append(self, key, value):
        return int(self.ask("append", to_hex(key), to_hex(value)))

    def combine(self, key, number):
        return int(self.ask("combine", to_hex(key), str(number)))

    def gather(self, key, part, value, expected):
        answer = self.ask("gather", to_hex(key), to_hex(part), to_hex(value), str(expected))
        return None if answer == "waiting" else pairs_of(answer)

    def expired(self, count):
        pairs = [pair.split("=") for pair in self.ask("expired", str(count)).split()]
        return [(from_hex(key), shown(value)) for key, value in pairs]

    def part_of(self, number):
        """The name of a part that this can bring: any bytes."""
        return bytes([number, 0, 0xff]) + self.name.encode()

    def stop(self):
        self.process.stdin.close()
        return self.process.wait(PATIENCE_SECONDS)


class CommandLinePeer(Peer):
    """timecachectl, once for each operation."""

    def __init__(self, program, address, namespace):
        self.name = "timecachectl"
        self.command = [program, "--address", address, "-n", namespace, "--json", "--hex",
                        "--key-hex"]

    def run(self, *words):
        return subprocess.run([*self.command, *words], text=True, check=False,
                              stdout=subprocess.PIPE, timeout=PATIENCE_SECONDS).stdout

    def put(self, key, value):
        assert json.loads(self.run("put", key.hex(), value.hex()))["version"] > 0

    def get(self, key):
        entry = json.loads(self.run("get", key.hex()))
        return value_of(entry) if entry["found"] else None

    def append(self, key, value):
        return json.loads(self.run("append", key.hex(), value.hex()))["value_bytes"]

    def combine(self, key, number):
        return json.loads(self.run("combine", key.hex(), "--", str(number)))["result"]

    def gather(self, key, part, value, expected):
        result = json.loads(self.run("gather", key.hex(), part.decode(), value.hex(),
                                     "--parts", str(expected)))
        if not result["complete"]:
            return None
        return value_of(result)

    def expired(self, count):
        lines = self.run("watch", "--from-earliest", "--count", str(count)).splitlines()
        events = [json.loads(line) for line in lines]
        return [(bytes_of(event, "key"), value_of(event))
                for event in events if event["type"] == "expired"]

    def part_of(self, number):
        """Its parts have names that are text."""
        return f"{number} größe".encode()

    def stop(self):
        return 0


def to_hex(value):
    return value.hex() or "-"


def from_hex(word):
    return b"" if word == "-" else bytes.fromhex(word)


def pairs_of(answer):
    return [tuple(map(from_hex, pair.split("="))) for pair in answer.split()]


def shown(word):
    """A value, or the parts in its place."""
    if ":" not in word:
        return from_hex(word)
    return [tuple(map(from_hex, part.split(":"))) for part in word.split(",")]


def value_of(entry):
    """The same of an entry or event that timecachectl shows."""
    if "parts" not in entry:
        return bytes_of(entry, "value")
    return [(bytes_of(part, "name"), bytes_of(part, "value")) for part in entry["parts"]]


def bytes_of(shown, field):
    """What timecachectl --json shows: text, where it is, or what its name says."""
    if field + "_hex" in shown:
        return bytes.fromhex(shown[field + "_hex"])
    if field + "_base64" in shown:
        return base64.b64decode(shown[field + "_base64"])
    return shown[field].encode()


def wait_until(holds, what):
    until = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        if time.monotonic() > until:
            raise AssertionError(f"in vain: {what}")
        time.sleep(0.02)
