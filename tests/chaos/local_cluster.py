"""A cluster of timecached on this machine, to try: three brokers of Kafka and two nodes.

usage: local_cluster.py --build DIRECTORY [--port N] [--nodes N] [--directory D]

./dev cluster calls it. Starts the brokers, makes the topics with `timecached cluster init`,
starts the nodes, prints where they are and what to try, then what happens to them, until
Ctrl-C or SIGTERM, which stops all. A node that ends, or is killed, is started again after some
seconds, as an operator's machine would do. Nodes serve gRPC on --port (7171), + 10 and so on,
and HTTP (/metrics, /readyz) on the port after that. With --directory, data and logs stay
there, and a later run goes on with them."""

import argparse
import ctypes
import json
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

import brokers as kafka
from brokers import HOST, PATIENCE_SECONDS, PR_SET_PDEATHSIG, Brokers

NAME = "demo"
PORTS_BETWEEN_NODES = 10
RESTART_SECONDS = 5
POLL_SECONDS = 0.1
PARTITIONS = 4
# Of the nodes' logs.
SHOWN = {
    "claim_failed", "clock_skewed", "journal_claimed", "lease_late", "lease_renewed",
    "node_fenced", "ownership_released", "ownership_taken", "server_started", "service_ended",
    "standby_caught_up", "takeover_done", "takeover_refused", "term_ended", "term_over",
    "topic_unsafe"}
# Of the fields of a line.
HIDDEN = {"time", "level", "event", "limits", "max_memory_bytes", "max_memory_source",
          "health", "http", "virtual_clock", "version", "grace_period_s"}

libc = ctypes.CDLL(None)


class Node:
    """A process of timecached, and the file of its log."""

    def __init__(self, program, name, port, directory, bootstrap):
        self.name = name
        self.address = f"{HOST}:{port}"
        self.http = f"{HOST}:{port + 1}"
        self.log = directory / f"{name}.log"
        config = directory / f"{name}.yaml"
        # JSON is YAML.
        config.write_text(json.dumps({
            "listeners": [{"address": self.address}],
            "http": {"address": self.http},
            "cluster": {"name": NAME, "node": name, "advertise": self.address,
                        "kafka": {"brokers": bootstrap.split(",")}},
            "namespaces": [{"name": "default",
                            "options": {"ttl": "5m", "durability": "replicated"}}],
            "log": {"format": "json"}}, indent=2) + "\n")
        self.command = [program, "--config", config]
        self.process = None
        self.ended = None  # when that was seen
        self.read = self.log.stat().st_size if self.log.exists() else 0

    def start(self):
        with open(self.log, "ab") as log:
            # Ctrl-C is for this program, which ends the nodes before the brokers.
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, process_group=0,
                preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))
        self.ended = None

    def new_lines(self):
        """Whole ones, that were written since the last call."""
        with open(self.log, "rb") as log:
            log.seek(self.read)
            unread = log.read()
        whole = unread[:unread.rfind(b"\n") + 1]
        self.read += len(whole)
        return whole.decode("utf-8", "replace").splitlines()

    def is_ready(self):
        try:
            with urllib.request.urlopen(f"http://{self.http}/readyz", timeout=1) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False


def say(what):
    print(what, flush=True)


def describe(line):
    """A line of a node's log, in short; None if it is not worth one."""
    try:
        fields = json.loads(line)
    except ValueError:
        return line  # an error before there is a log
    if fields.get("event") not in SHOWN:
        return None
    return " ".join([fields["event"], *(f"{key}={text(value)}" for key, value in fields.items()
                                        if key not in HIDDEN and value != "")])


def text(value):
    return value if isinstance(value, str) else json.dumps(value)


def make_topics(program, bootstrap):
    made = subprocess.run(
        [program, "cluster", "init", "--cluster", NAME, "--kafka-brokers", bootstrap,
         "--partitions", str(PARTITIONS), "--replication-factor", "3"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if made.returncode != 0:
        sys.exit(f"cluster: the topics cannot be made: {made.stdout}")
    say(made.stdout.rstrip())


def follow(nodes, until=lambda: False):
    """Prints what happens, and starts again what has ended."""
    while not until():
        for node in nodes:
            for line in node.new_lines():
                if short := describe(line):
                    say(f"{node.name}: {short}")
            code = node.process.poll()
            if code is None:
                continue
            if node.ended is None:
                node.ended = time.monotonic()
                how = f"signal {-code}" if code < 0 else f"code {code}"
                say(f"{node.name}: ended with {how}; starts again in {RESTART_SECONDS} s")
            elif time.monotonic() > node.ended + RESTART_SECONDS:
                node.start()
                say(f"{node.name}: started as process {node.process.pid}")
        time.sleep(POLL_SECONDS)


def await_owner(nodes):
    """The node that serves, once there is one."""
    until = time.monotonic() + PATIENCE_SECONDS
    owners = []

    def has_owner():
        if any(node.ended for node in nodes):
            sys.exit("cluster: a node does not start: see its last line above")
        if time.monotonic() > until:
            sys.exit(f"cluster: after {PATIENCE_SECONDS} s no node serves: see the logs above")
        owners[:] = [node for node in nodes if node.is_ready()]
        return owners

    follow(nodes, has_owner)
    return owners[0]


def stop(nodes):
    """The owner last: no node takes over meanwhile."""
    for node in sorted(nodes, key=Node.is_ready):
        if node.process is None:
            continue
        node.process.terminate()
        try:
            node.process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            node.process.kill()
            node.process.wait()


def guide(nodes, owner, build, directory, brokers):
    addresses = ",".join(node.address for node in nodes)
    lines = [f"The cluster {NAME!r} runs; data and logs are in {directory}."]
    for node in nodes:
        lines.append(f"  {node.name}: {node.address}, process {node.process.pid}, "
                     f"http://{node.http}/metrics, {'owner' if node is owner else 'standby'}")
    for number, pid in brokers.pids.items():
        lines.append(f"  broker {number}: {HOST}:{brokers.brokers[number].port}, process {pid}")
    lines += [
        "In another terminal:",
        f"  alias tc='{build / 'client/cli/timecachectl'} --address {addresses}'",
        "  tc put greeting hello --ttl 1m",
        "  tc get greeting",
        "  tc watch                what expires, across takeovers",
        "  tc cluster status       who owns, and how far standbys are",
        "  tc cluster handover     the standby takes over, as planned",
        f"  kill -9 {owner.process.pid:<15} the owner dies; it comes back as a standby",
        f"  kill -9 {next(iter(brokers.pids.values())):<15} a broker dies",
        "Ctrl-C stops all of it."]
    return "\n".join(lines)


def check_ports(nodes):
    for address in (a for node in nodes for a in (node.address, node.http)):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, int(address.rpartition(":")[2])))
            except OSError as error:
                sys.exit(f"cluster: {address}: {error.strerror}; choose others with --port N")


def run(arguments, directory):
    program = arguments.build / "server/timecached"
    say("starting three brokers of Kafka")
    with Brokers(3, directory / "kafka") as brokers:
        nodes = [Node(program, f"node-{i + 1}", arguments.port + PORTS_BETWEEN_NODES * i,
                      directory, brokers.bootstrap) for i in range(arguments.nodes)]
        check_ports(nodes)
        make_topics(program, brokers.bootstrap)
        try:
            for node in nodes:
                node.start()
            owner = await_owner(nodes)
            say(guide(nodes, owner, arguments.build, directory, brokers))
            follow(nodes)
        finally:
            say("stopping nodes and brokers")
            stop(nodes)


def main():
    parser = argparse.ArgumentParser(
        prog="./dev cluster", description=__doc__.partition("\n\n")[0],
        epilog=__doc__.rpartition("\n\n")[2])
    parser.add_argument("--build", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, default=7171)
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--directory", type=pathlib.Path)
    arguments = parser.parse_args()
    if reason := kafka.unavailable():
        sys.exit(f"cluster: {reason}")
    # Leaves the blocks of run, as Ctrl-C does.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        if arguments.directory:
            arguments.directory.mkdir(parents=True, exist_ok=True)
            run(arguments, arguments.directory.resolve())
        else:
            with tempfile.TemporaryDirectory(prefix="timecached-") as directory:
                run(arguments, pathlib.Path(directory))
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
