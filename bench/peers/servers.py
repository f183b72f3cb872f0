"""The servers, each in a process of its own, on a free loopback port.

But for those that say so, none writes to disk what it holds: all of it is lost when a
server ends.
"""

import contextlib
import json
import pathlib
import shutil
import socket
import tempfile
import time

from . import processes

HOST = "127.0.0.1"
START_SECONDS = 20
BACKUP_SECONDS = 120


def free_port():
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        return listener.getsockname()[1]


def _wait_for(port, process, log, name):
    """Until it takes connections."""
    give_up = time.monotonic() + START_SECONDS
    while time.monotonic() < give_up:
        if process.poll() is not None:
            break
        with contextlib.suppress(OSError):
            socket.create_connection((HOST, port), timeout=1).close()
            return
        time.sleep(0.02)
    raise processes.CommandFailed(f"{name} did not start:\n{processes.tail(log)}")


class Server:
    """A server while its context is open. Subclasses say how it is started."""
    name = ""

    def __init__(self, bench):
        self.bench = bench
        self.port = free_port()
        self._stack = contextlib.ExitStack()
        self._process = None

    def command(self, directory):
        raise NotImplementedError

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            directory = pathlib.Path(tempfile.mkdtemp(prefix="timecached-bench-"))
            stack.callback(shutil.rmtree, directory, ignore_errors=True)
            self._directory = directory
            self._command = self.command(directory)
            self.bench.record(self._command)
            self._start(stack)
            self._stack = stack.pop_all()
        return self

    def _start(self, stack):
        self.spawn(stack)
        self.await_port()

    def spawn(self, stack):
        output = stack.enter_context(open(self._directory / "log", "wb"))
        self._process = stack.enter_context(
            processes.started(self._command, output, output))

    def await_port(self):
        _wait_for(self.port, self._process, self._directory / "log", self.name)

    def kill(self):
        """As kill -9 does; what it keeps stays."""
        self._process.kill()
        self._process.wait()

    def restart(self):
        """The same again, until it takes connections."""
        self._start(self._stack)

    def __exit__(self, *error):
        return self._stack.__exit__(*error)

    @property
    def address(self):
        return f"{HOST}:{self.port}"

    @property
    def pid(self):
        return self._process.pid

    def resident_bytes(self):
        return processes.resident_bytes(self.pid)

    def peak_bytes(self):
        """Since it was started last."""
        return processes.resident_bytes(self.pid, "VmHWM")

    def cpu_seconds(self):
        return processes.cpu_seconds(self.pid)


class Redis(Server):
    name = "Redis"
    program = "redis-server"
    # It would else cut off a subscriber for whom much waits.
    PATIENT = ("--client-output-buffer-limit", "pubsub 0 0 0")

    def __init__(self, bench, *settings):
        super().__init__(bench)
        self._settings = settings

    def command(self, directory):
        return [self.bench.programs.peer(self.program), "--port", self.port, "--bind", HOST, "--dir", directory,
                "--save", "", "--appendonly", "no", *self._settings]

    def load_command(self, load, timeline):
        return self.bench.programs.peer_client("peer_load"), *load.peer_flags(
            "redis", self.port, timeline)


class Valkey(Redis):
    name = "Valkey"
    program = "valkey-server"


class Nats(Server):
    """With JetStream, whose streams are in memory if they say so."""
    name = "NATS"

    def command(self, directory):
        return [self.bench.programs.peer("nats-server"), "--addr", HOST, "--port",
                self.port, "--jetstream", "--store_dir", directory / "jetstream"]


class Memcached(Server):
    name = "memcached"

    def __init__(self, bench, memory_mib=16_384):
        super().__init__(bench)
        self._memory_mib = memory_mib

    def command(self, directory):
        return ["memcached", "-u", "nobody", "-l", HOST, "-p", self.port, "-U", "0",
                "-m", self._memory_mib, "-c", "2048"]

    def load_command(self, load, timeline):
        return self.bench.programs.peer_client("peer_load"), *load.peer_flags(
            "memcached", self.port, timeline)


class Timecached(Server):
    """With one namespace, whose options are given as the configuration names them."""
    name = "timecached"
    namespace = "bench"

    def __init__(self, bench, **options):
        super().__init__(bench)
        self._options = {"ttl": "1h", **options}

    def configuration(self):
        lines = [f"listeners: [{{address: '{self.address}'}}]", "namespaces:",
                 f"  - name: {self.namespace}", "    options:"]
        lines += [f"      {name}: {value}" for name, value in self._options.items()]
        return "\n".join(lines) + "\n"

    def command(self, directory):
        path = directory / "timecached.yaml"
        path.write_text(self.configuration(), encoding="utf-8")
        return [self.bench.programs.server, "--config", path, "--log-level", "warning"]

    def __enter__(self):
        super().__enter__()
        self.bench.record(["#", "timecached.yaml:", self.configuration()])
        return self

    def load_command(self, load, timeline):
        return self.bench.programs.ctl, *load.timecachectl_flags(
            self.address, self.namespace, timeline)

    def create(self, namespace, durability, *options):
        processes.run([self.bench.programs.ctl, "ns", "create", namespace, "--ttl", "1h",
                       "--durability", durability, *map(str, options),
                       "--address", self.address], START_SECONDS)
        return self.other_namespace(namespace)

    def other_namespace(self, name):
        return OtherNamespace(self, name)


class DurableTimecached(Timecached):
    """It has a journal, in which its namespace is kept if that is of such a durability."""

    def __init__(self, bench, durability):
        super().__init__(bench, durability=durability)

    def back_up(self, to):
        processes.run([self.bench.programs.ctl, "backup", to, "--address", self.address],
                      BACKUP_SECONDS)

    def journal_status(self):
        done = processes.run([self.bench.programs.ctl, "status", "--json", "--address",
                              self.address], START_SECONDS)
        return json.loads(done.output)["journal"]

    def configuration(self):
        return f"journal: {{directory: {self._journal}}}\n" + super().configuration()

    def command(self, directory):
        self._journal = directory / "journal"
        return super().command(directory)

    def journal_bytes(self):
        """Of its records: there is a reserve beside them."""
        return self.journal_status()["disk_bytes"]


class OtherNamespace:
    """Another namespace of a server, for a load of its own."""

    def __init__(self, server, namespace):
        self._server = server
        self._namespace = namespace
        self.name = server.name

    def cpu_seconds(self):
        return self._server.cpu_seconds()

    def load_command(self, load, timeline):
        return self._server.bench.programs.ctl, *load.timecachectl_flags(
            self._server.address, self._namespace, timeline)


class SavedRedis(Redis):
    """What it has saved is there again after a restart."""

    def save(self):
        """All of it, to one file."""
        answer = self._ask(b"SAVE")
        if not answer.startswith(b"+OK"):
            raise processes.CommandFailed(f"Redis did not save: {answer}")

    def restart(self):
        super().restart()
        # It takes connections while it loads.
        while b"LOADING" in self._ask(b"PING"):
            time.sleep(0.01)

    def _ask(self, command):
        with socket.create_connection((HOST, self.port)) as connection:
            connection.sendall(command + b"\r\n")
            return connection.recv(100)


class DurableRedis(SavedRedis):
    """Its AOF has each write, as such: it never becomes an RDB file."""

    def __init__(self, bench, fsync):
        super().__init__(bench, "--appendonly", "yes", "--appendfsync", fsync,
                         "--auto-aof-rewrite-percentage", "0")

    def save(self):
        """It has."""


class Etcd(Server):
    """Without waiting for the disk at each write."""
    name = "etcd"
    flags = ("--unsafe-no-fsync",)

    def command(self, directory):
        peer = f"http://{HOST}:{free_port()}"
        client = f"http://{self.address}"
        return ["etcd", "--data-dir", directory / "data", "--log-level", "error",
                "--listen-client-urls", client, "--advertise-client-urls", client,
                "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                "--initial-cluster", f"default={peer}", *self.flags]


class SyncedEtcd(Etcd):
    """As it comes: a write is on the disk before its answer."""
    flags = ()

    def puts(self, callers, seconds):
        done = self.bench.run([self.bench.programs.peer_client("etcd_load"), "--port",
                               self.port, "--connections", callers, "--seconds", seconds])
        return json.loads(done.output)
