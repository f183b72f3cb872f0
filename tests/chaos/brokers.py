"""A cluster of Kafka brokers on this machine, for tests and trials.

usage: brokers.py [--count N] [--directory D] [--link NAME]... [--set KEY=VALUE]...
       brokers.py --archive

Starts N brokers (3), waits until they answer, prints a line of JSON and runs until its
standard input ends or SIGTERM: {"bootstrap": "HOST:PORT,...", "pids": {"1": PID, ...},
"directory": "D"}. With --directory, data and logs stay there, in D/1 and so on, and a later
run goes on with them. Lines on standard input act on one broker, "kill 1", "pause 1",
"resume 1", "end 1" or "start 1", on a link, "cut NAME", "hold NAME", "heal NAME", or
"replay NAME", which sends the last Produce requests that came by it once more, but for claims
and heartbeats of the node NAME, or on a topic,
"create NAME 1,2 KEY=VALUE...", which makes one of one partition on brokers 1 and 2,
"delete NAME" and "set NAME KEY=VALUE"; each is answered by the line of JSON when it is done.
With --link, "links" has the addresses to give to the node that is to reach the brokers
through it: {"NAME": "HOST:PORT,..."}. "link NAME PORT" makes one to what listens at the port
of this machine: between nodes.

./dev install --kafka fetches the jars that this needs, and calls it with --archive, which
writes down the classes that a broker loads: with them it starts in half the time."""

import argparse
import concurrent.futures
import ctypes
import json
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import kafka_wire
from link import Link, replay

ROOT = pathlib.Path(__file__).resolve().parents[2]
JARS = ROOT / "build/kafka/jars"
ARCHIVE = ROOT / "build/kafka/classes.jsa"
PATIENCE_SECONDS = 300
PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
CLUSTER_ID = "dGltZWNhY2hlZC10ZXN0cw"  # 16 bytes in base64, the same for each run
HOST = "127.0.0.1"

# A compiler that optimises little, and the smallest garbage collector: brokers start sooner
# and take less memory.
JAVA = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData",
        "-Djava.awt.headless=true", "-Dorg.slf4j.simpleLogger.showDateTime=true",
        "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSS")

# Beside those that a cluster needs: small, and quick to see that a broker is gone, which
# takes 9 s by default.
SETTINGS = {
    "auto.create.topics.enable": "false",
    "background.threads": 2,
    "broker.heartbeat.interval.ms": 500,
    "broker.session.timeout.ms": 3000,
    "controller.quorum.election.timeout.ms": 500,
    # By default a broker waits 30 s for a controller that stands still, and is taken for dead by
    # the next one meanwhile.
    "controller.socket.timeout.ms": 2000,
    "group.initial.rebalance.delay.ms": 0,
    "log.cleaner.dedupe.buffer.size": 4 << 20,
    "num.io.threads": 2,
    "num.network.threads": 1,
    "offsets.topic.num.partitions": 1,
    "replica.socket.timeout.ms": 3000,
    "transaction.state.log.num.partitions": 1,
    "unclean.leader.election.enable": "false",
}

# Errors while controllers elect one of them or brokers register.
TRANSIENT = {kafka_wire.REQUEST_TIMED_OUT, kafka_wire.INVALID_REPLICATION_FACTOR,
             kafka_wire.NOT_CONTROLLER}

libc = ctypes.CDLL(None)


def unavailable():
    """Why no brokers can run here; empty if they can."""
    if shutil.which("java") is None:
        return "java is not installed"
    return "" if JARS.is_dir() else "Kafka's jars are not here: ./dev install --kafka"


def free_ports(count):
    """So many ports that nobody listens on now. Below those that the system gives to connections,
    so that they are still free when a broker starts again."""
    ports = set()
    while len(ports) < count:
        with socket.socket() as probe:
            try:
                probe.bind((HOST, port := random.randrange(20_000, 32_000)))
                ports.add(port)
            except OSError:
                pass
    return list(ports)


def addresses(ports):
    return ",".join(f"{HOST}:{port}" for port in ports)


class Broker:
    """One of them: its process, if it runs, and its ports."""

    def __init__(self, node, directory, ports, links, listeners):
        self.node = node
        self.directory = directory / str(node)
        self.port, self.controller_port, *others = ports
        self.links = {name: Link((HOST, port)) for name, port in zip(links, others)}
        # {name: (protocol, port)}
        self.listeners = {name: (protocol, port) for (name, protocol), port in
                          zip(listeners.items(), others[len(links):])}
        self.process = None
        self.paused = False

    @property
    def address(self):
        return HOST, self.port

    @property
    def log(self):
        return self.directory / "log"

    def configure(self, voters, settings):
        listeners = {"BROKER": (self.port, self.port)}
        for i, link in enumerate(self.links.values()):
            listeners[f"LINK{i}"] = link.target[1], link.port
        protocols = dict.fromkeys([*listeners, "CONTROLLER"], "PLAINTEXT")
        for name, (protocol, port) in self.listeners.items():
            listeners[name] = port, port
            protocols[name] = protocol
        lines = {
            "process.roles": "broker,controller",
            "node.id": self.node,
            "controller.quorum.voters": voters,
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "BROKER",
            "listeners": ",".join(
                [f"{name}://{HOST}:{port}" for name, (port, _) in listeners.items()] +
                [f"CONTROLLER://{HOST}:{self.controller_port}"]),
            "advertised.listeners": ",".join(
                f"{name}://{HOST}:{port}" for name, (_, port) in listeners.items()),
            "listener.security.protocol.map": ",".join(
                f"{name}:{protocol}" for name, protocol in protocols.items()),
            "log.dirs": self.directory / "data",
            **settings}
        data = self.directory / "data"
        data.mkdir(parents=True, exist_ok=True)
        (self.directory / "server.properties").write_text(
            "".join(f"{key}={value}\n" for key, value in lines.items()))
        # What `kafka-storage format` writes, in which a process of Java would take a second.
        # Brokers add to it.
        if not (data / "meta.properties").exists():
            (data / "meta.properties").write_text(
                f"version=1\ncluster.id={CLUSTER_ID}\nnode.id={self.node}\n")

    def start(self, java):
        """With these arguments of Java's."""
        with open(self.log, "ab") as log:
            # Ctrl-C is for this program, which ends the broker when it ends.
            self.process = subprocess.Popen(
                ["java", *JAVA, *java, "-cp", f"{JARS}/*", "kafka.Kafka",
                 self.directory / "server.properties"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, process_group=0,
                preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))
        self.paused = False

    def end(self, number):
        """By this signal; returns when the process is gone."""
        process, self.process = self.process, None
        if process is None:
            return
        process.send_signal(number)
        process.send_signal(signal.SIGCONT)
        process.wait(PATIENCE_SECONDS)

    def metadata(self):
        """None if it does not answer; RuntimeError if it has ended by itself."""
        process = self.process
        if process and process.poll() is not None and process is self.process:
            raise RuntimeError(f"broker {self.node} ended with {process.returncode}: "
                               f"{self.log.read_text('utf-8', 'replace')[-3000:]}")
        try:
            return kafka_wire.metadata(self.address)
        except OSError:
            return None


class Brokers:
    """`count` brokers with ids from 1, each a controller, too. They run from the start of a
    `with` block to its end, and end with this process, however it ends.

    settings: Kafka's, for all brokers, before those of SETTINGS. links: names, for each of
    which brokers have a listener that is reached through a Link: a client that is given
    `bootstrap_of(name)` reaches all of them through links[name], a list of one a broker.
    listeners: {name: protocol}, further ones, as {"SASL": "SASL_SSL"}; the settings
    "listener.name.sasl.*" say how they authenticate, `bootstrap_on(name)` where they are.
    Each takes some 150 MiB of memory. Methods may be called by several threads, those for one
    broker by one at a time."""

    def __init__(self, count=3, directory=None, settings=None, links=(), java=("-Xmx256m",),
                 listeners=None):
        self.scratch = None if directory else tempfile.TemporaryDirectory(prefix="kafka-")
        self.directory = pathlib.Path(directory or self.scratch.name).resolve()
        self.java = list(java)
        if ARCHIVE.exists():
            self.java.insert(0, f"-XX:SharedArchiveFile={ARCHIVE}")
        listeners = listeners or {}
        each = 2 + len(links) + len(listeners)
        ports = free_ports(count * each)
        self.brokers = {
            node: Broker(node, self.directory, ports[each * (node - 1):each * node], links,
                         listeners)
            for node in range(1, count + 1)}
        self.bootstrap = addresses(broker.port for broker in self.brokers.values())
        self.links = {name: [broker.links[name] for broker in self.brokers.values()]
                      for name in links}
        replicas = min(count, 3)
        voters = ",".join(f"{node}@{HOST}:{broker.controller_port}"
                          for node, broker in self.brokers.items())
        for broker in self.brokers.values():
            broker.configure(voters, {
                "default.replication.factor": replicas,
                "min.insync.replicas": min(replicas, 2),
                "offsets.topic.replication.factor": replicas,
                "transaction.state.log.replication.factor": replicas,
                "transaction.state.log.min.isr": min(replicas, 2),
                **SETTINGS, **(settings or {})})
        # A broker ends with the thread that has started it: always this one.
        self.starter = concurrent.futures.ThreadPoolExecutor(1)

    def __enter__(self):
        try:
            for node in self.brokers:
                self.start(node)
            self.wait_until_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def bootstrap_of(self, link):
        return addresses(link.port for link in self.links[link])

    def bootstrap_on(self, listener):
        return addresses(broker.listeners[listener][1] for broker in self.brokers.values())

    @property
    def pids(self):
        """{id: process}, of those that run."""
        return {node: broker.process.pid for node, broker in self.brokers.items()
                if broker.process}

    def start(self, node):
        """With the data that it has. Does not wait until it answers."""
        if self.brokers[node].process is None:
            self.starter.submit(self.brokers[node].start, self.java).result()

    def wait_until_ready(self):
        """Until all that run, and are not paused, answer and know each other."""
        nodes = {broker.node for broker in self._running()}
        self._retry(lambda: self._all_know(lambda known: known.brokers.keys() >= nodes),
                    "not all brokers are ready")

    def _running(self):
        return [broker for broker in self.brokers.values()
                if broker.process and not broker.paused]

    def _all_know(self, holds):
        """Whether it holds for the metadata of each that runs."""
        return all((known := broker.metadata()) and holds(known) for broker in self._running())

    def _retry(self, attempt, failure):
        """The first true value of it."""
        until = time.monotonic() + PATIENCE_SECONDS
        while not (value := attempt()):
            if time.monotonic() > until:
                raise RuntimeError(f"after {PATIENCE_SECONDS} s: {failure}; see the logs in "
                                   f"{self.directory}")
            time.sleep(0.05)
        return value

    def kill(self, node):
        """As a machine that fails: SIGKILL."""
        self.brokers[node].end(signal.SIGKILL)

    def end(self, node):
        """As an operator does: SIGTERM, and it hands over its partitions."""
        self.brokers[node].end(signal.SIGTERM)

    def pause(self, node):
        self.brokers[node].process.send_signal(signal.SIGSTOP)
        self.brokers[node].paused = True

    def resume(self, node):
        self.brokers[node].process.send_signal(signal.SIGCONT)
        self.brokers[node].paused = False

    def metadata(self):
        """Of the first broker that answers, by kafka_wire."""
        return self._retry(lambda: next(filter(None, (
            broker.metadata() for broker in self._running())), None), "no broker answers")

    def create_topic(self, name, partitions=1, replicas=-1, brokers=(), **settings):
        """Settings with _ for Kafka's dots: create_topic("a", retention_ms=-1). Waits for a
        controller and for as many brokers as there are to be replicas. All that run know the
        topic then. One that is there stays as it is: a broker sends the request again when
        controllers change, so it cannot tell who has made the topic."""
        settings = {key.replace("_", "."): value for key, value in settings.items()}

        def create():
            for broker in self._running():
                try:
                    kafka_wire.create_topic(broker.address, name, partitions, replicas, settings,
                                            brokers)
                    return True
                except OSError:
                    pass
                except kafka_wire.KafkaError as error:
                    if error.code == kafka_wire.TOPIC_ALREADY_EXISTS:
                        return True
                    if error.code not in TRANSIENT:
                        raise
            return False

        self._retry(create, f"no broker creates {name}")
        self._retry(lambda: self._all_know(lambda known: name in known.topics),
                    f"not all know {name}")

    def delete_topic(self, name):
        """Of which all that run know nothing then."""
        kafka_wire.delete_topic(self._running()[0].address, name)
        self._retry(lambda: self._all_know(lambda known: name not in known.topics),
                    f"not all have forgotten {name}")

    def replay(self, name):
        """To all that run: only a partition's leader now takes what is for it. Not what has the
        name of the link, as a node's claims and heartbeats have: a copy of a claim would end the
        term of whoever owns, each time."""
        for broker in self._running():
            for link in self.links[name]:
                replay([request for request in link.produced if name.encode() not in request],
                       broker.address)

    def set_topic(self, name, setting, value):
        """Of a topic that is there. Brokers learn of it soon after."""
        kafka_wire.set_topic(self._running()[0].address, name, setting, value)

    def stop(self):
        """Kills all. Data and logs stay, if the directory was given."""
        for broker in self.brokers.values():
            broker.end(signal.SIGKILL)
            for link in broker.links.values():
                link.close()
        self.starter.shutdown()
        if self.scratch:
            self.scratch.cleanup()


def make_archive():
    part = ARCHIVE.with_suffix(".part")
    ARCHIVE.unlink(missing_ok=True)
    with Brokers(1, java=[f"-XX:ArchiveClassesAtExit={part}"]) as brokers:
        brokers.create_topic("topic")
        brokers.end(1)
    part.rename(ARCHIVE)


def say(brokers):
    said = {"bootstrap": brokers.bootstrap, "pids": brokers.pids,
            "directory": str(brokers.directory)}
    if brokers.links:
        said["links"] = {name: brokers.bootstrap_of(name) for name in brokers.links}
    print(json.dumps(said), flush=True)


def obey(brokers, action, name, *more):
    if action in ("kill", "pause", "resume", "end", "start"):
        getattr(brokers, action)(int(name))
    elif action in ("cut", "hold", "heal"):
        for link in brokers.links[name]:
            getattr(link, action)()
    elif action == "link":
        brokers.links[name] = [Link((HOST, int(more[0])))]
    elif action == "replay":
        brokers.replay(name)
    elif action == "delete":
        brokers.delete_topic(name)
    elif action == "create":
        brokers.create_topic(name, brokers=[int(broker) for broker in more[0].split(",")],
                             **dict(setting.split("=", 1) for setting in more[1:]))
    elif action == "set":
        brokers.set_topic(name, *more[0].split("=", 1))
    else:
        raise ValueError(f"{action}: not an action")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=3)
    parser.add_argument("--directory")
    parser.add_argument("--link", action="append", default=[])
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--archive", action="store_true")
    arguments = parser.parse_args()
    if reason := unavailable():
        sys.exit(f"brokers: {reason}")
    if arguments.archive:
        make_archive()
        return
    # Leaves the block below.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    settings = dict(setting.split("=", 1) for setting in arguments.set)
    with Brokers(arguments.count, arguments.directory, settings, arguments.link) as brokers:
        say(brokers)
        for line in sys.stdin:
            obey(brokers, *line.split())
            say(brokers)


if __name__ == "__main__":
    main()
