"""Servers of several processes, each of which has a copy of what is written."""

import binascii
import contextlib
import pathlib
import re
import string
import sys
import time
import urllib.error
import urllib.request

from . import processes, servers

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tests/chaos"))
import brokers as kafka  # pylint: disable=wrong-import-position

NAME = "bench"
# Tests' brokers start fast; these run fast.
JAVA = ("-Xmx512m", "-XX:TieredStopAtLevel=4")
START_SECONDS = 60
POLL_SECONDS = 0.01
OWNED_SLOTS = rf'timecache_cluster_owned_slots{{cluster="{NAME}"}}'
HAS_STANDBY = f'timecache_cluster_ready_standbys{{cluster="{NAME}"}} 1\n'


def _await(holds, what, seconds=START_SECONDS):
    give_up = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > give_up:
            raise processes.CommandFailed(f"{what}: not within {seconds} s")
        time.sleep(POLL_SECONDS)


class Brokers:
    """Three of Kafka, while the context is open, with the topics of a cluster."""

    def __init__(self, bench, partitions=16):
        if reason := kafka.unavailable():
            raise processes.CommandFailed(reason)
        self._bench = bench
        self._partitions = partitions
        self._brokers = kafka.Brokers(3, java=JAVA)

    def __enter__(self):
        try:
            self._brokers.__enter__()
        except RuntimeError as error:  # On a machine that is too busy to start them.
            raise processes.CommandFailed(str(error)) from error
        try:
            self._bench.run([
                self._bench.programs.server, "cluster", "init", "--cluster", NAME,
                "--kafka-brokers", self.bootstrap, "--partitions", self._partitions,
                "--replication-factor", 3])
        except BaseException:
            self._brokers.stop()
            raise
        return self

    def __exit__(self, *_):
        self._brokers.stop()

    @property
    def bootstrap(self):
        return self._brokers.bootstrap

    def cpu_seconds(self):
        return sum(map(processes.cpu_seconds, self._brokers.pids.values()))


class Node(servers.Timecached):
    """Of a cluster, whose namespace is REPLICATED. Its ports open before it serves."""

    def __init__(self, bench, brokers, node, lease="1s", forwards=False):
        super().__init__(bench, durability="replicated")
        self._lease = lease
        self._forwards = forwards
        self._brokers = brokers
        self._node = node
        self._http_port = servers.free_port()

    def configuration(self):
        return "\n".join([
            f"http: {{address: '{servers.HOST}:{self._http_port}'}}",
            "cluster:",
            f"  name: {NAME}",
            f"  node: {self._node}",
            f"  lease: {self._lease}",
            f"  forward_calls: {str(self._forwards).lower()}",
            f"  kafka: {{brokers: [{self._brokers.bootstrap}]}}",
            super().configuration()])

    def _answers(self, path):
        try:
            url = f"http://{servers.HOST}:{self._http_port}{path}"
            with urllib.request.urlopen(url, timeout=5) as answer:
                return answer.read().decode()
        except (urllib.error.URLError, OSError):
            return ""

    def await_ready(self, seconds=START_SECONDS):
        """Until it is the owner, and serves."""
        _await(lambda: self._answers("/readyz"), f"{self._node} serves", seconds)

    def metric(self, name):
        return float(re.search(rf"^{name} (\S+)$", self._answers("/metrics"),
                               re.MULTILINE)[1])

    def await_standby(self, seconds=START_SECONDS):
        """Until another node would take over at once."""
        _await(lambda: HAS_STANDBY in self._answers("/metrics"),
               "a standby that has all of the log", seconds)


def await_balance(nodes):
    """Until no slot moves any more: a move ends the MEMORY namespaces in it."""
    def is_even():
        owned = [node.metric(OWNED_SLOTS) for node in nodes]
        return max(owned) - min(owned) <= 1
    _await(is_even, "slots that are shared evenly")


class RedisCluster:
    """Three masters, each with a replica."""
    name = "Redis Cluster"
    MASTERS = 3
    SLOTS = 16384

    def __init__(self, bench):
        self.bench = bench
        self._stack = contextlib.ExitStack()
        self._nodes = []

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            for _ in range(2 * self.MASTERS):
                self._nodes.append(stack.enter_context(servers.Redis(
                    self.bench, "--cluster-enabled", "yes", "--cluster-port",
                    servers.free_port(), "--repl-diskless-sync-delay", "0")))
            self.bench.run(["redis-cli", "--cluster", "create",
                            *(node.address for node in self._nodes),
                            "--cluster-replicas", "1", "--cluster-yes"])
            for master in self._masters:
                _await(lambda master=master: self._is_replicated(master), self.name)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error):
        return self._stack.__exit__(*error)

    @property
    def _masters(self):
        """In the order of their slots."""
        return self._nodes[:self.MASTERS]

    def _is_replicated(self, master):
        def ask(*words):
            return processes.run(["redis-cli", "-p", master.port, *words],
                                 START_SECONDS).output
        return ("state=online" in ask("info", "replication") and
                "cluster_state:ok" in ask("cluster", "info"))

    def cpu_seconds(self):
        return sum(node.cpu_seconds() for node in self._nodes)

    def _key_prefix(self, index):
        """Of keys that all are in a slot of this master."""
        for letter in string.ascii_letters:
            slot = binascii.crc_hqx(letter.encode(), 0) % self.SLOTS
            if slot * self.MASTERS // self.SLOTS == index:
                return f"{{{letter}}}:"
        raise ValueError(f"no letter has a slot of master {index}")

    def load_command(self, load, timeline, masters=range(MASTERS)):
        """Each connection is to a master, whose keys alone are its: what is sent at once
        is one node's, as if the client had gathered it so."""
        first, *others = (self._masters[index].port for index in masters)
        flags = load.peer_flags("redis", first, timeline)
        for port in others:
            flags += ["--port", port]
        for index in masters:
            flags += ["--key-prefix", self._key_prefix(index)]
        return self.bench.programs.peer_client("peer_load"), *flags

    def fill(self, load):
        """Each master has keys of its own, and gets the load for itself."""
        for index in range(self.MASTERS):
            self.bench.run(self.load_command(load, None, [index]))


class EtcdMember(servers.Etcd):
    """Its ports open once most members are there."""

    def __init__(self, bench, node):
        super().__init__(bench)
        self.node = node
        self.peer = f"http://{servers.HOST}:{servers.free_port()}"
        self.members = []

    def command(self, directory):
        client = f"http://{self.address}"
        return ["etcd", "--name", self.node, "--data-dir", directory / "data",
                "--log-level", "error", "--listen-client-urls", client,
                "--advertise-client-urls", client, "--listen-peer-urls", self.peer,
                "--initial-advertise-peer-urls", self.peer, "--initial-cluster",
                ",".join(f"{member.node}={member.peer}" for member in self.members),
                *self.flags]

    def _start(self, stack):
        self.spawn(stack)


class EtcdCluster:
    """Three members, which do not wait for the disk: neither do Kafka's brokers."""
    name = "etcd"

    def __init__(self, bench):
        self.bench = bench
        self._stack = contextlib.ExitStack()
        self._members = [EtcdMember(bench, f"etcd-{i + 1}") for i in range(3)]
        for member in self._members:
            member.members = self._members

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            for member in self._members:
                stack.enter_context(member)
            for member in self._members:
                member.await_port()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error):
        return self._stack.__exit__(*error)

    def cpu_seconds(self):
        return sum(member.cpu_seconds() for member in self._members)

    def load_command(self, load, timeline):
        flags = ["--connections", load.connections, "--value-bytes", load.value_bytes,
                 "--seconds", load.seconds]
        for member in self._members:
            flags += ["--port", member.port]
        if load.put_percent == 0:
            flags += ["--get-keys", load.keys]
        else:
            flags += ["--depth", load.depth]
        return self.bench.programs.peer_client("etcd_load"), *flags
