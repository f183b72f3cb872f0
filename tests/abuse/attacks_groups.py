"""Consumer groups that keep what nobody settles."""

import threading
import time

from abuse import messages, wire
from abuse.attack import attack
from abuse.attacks_streams import send_all
from abuse.honest import CallFailed, Channel
from abuse.messages import field
from abuse.processes import Honest, expect

NAMESPACES = ("mine-0", "mine-1", "mine-2")
MEMORY_MIB = 256
# What such a namespace may hold of groups' events: max_bytes and retention.
BUDGET_MIB = 8 + 1
# Small namespaces, as a tenant is given them, beside the honest one.
CONFIG = f"""\
listeners:
  - address: 127.0.0.1:0
limits: {{max_memory_bytes: {MEMORY_MIB << 20}}}
log: {{level: info, format: json}}
namespaces:
  - name: abuse
    options: {{ttl: 5s, num_buckets: 101}}
""" + "".join(f"""\
  - name: {name}
    options: {{ttl: 30s, max_bytes: 8MiB, event_retention_bytes: 1MiB, event_retention: 1s}}
""" for name in NAMESPACES)

VALUE = bytes(512 << 10)
BATCH = 12
GET_SERVER = "/timecache.v1.ServerService/GetServer"


def batch(namespace, first):
    """Values that die at once."""
    return field(1, namespace) + b"".join(
        field(2, field(1, field(2, b"key%d" % (first + i)) + field(3, VALUE) +
                       field(4, messages.duration(0.001))))
        for i in range(BATCH))


def accounted_mib(address):
    """What counts towards max_memory_bytes."""
    channel = Channel(address)
    try:
        answer = dict(messages.parse(channel.call(GET_SERVER, b"")))
        return dict(messages.parse(answer[9])).get(1, 0) >> 20
    finally:
        channel.close()


class Writer:
    """Writes into the small namespaces, in turn."""

    def __init__(self, address):
        self.channel = Channel(address)
        self.written, self.no_memory = 0, 0

    def write(self, megabytes):
        until = self.written + 2 * megabytes
        while self.written < until:
            for name in NAMESPACES:
                self._put(name)
            # The deaths are swept, so that max_bytes has room.
            time.sleep(0.1)

    def _put(self, name):
        stream = self.channel.http.get_next_available_stream_id()
        self.channel.http.send_headers(stream, wire.request_headers(wire.SERVICE + "Execute"))
        send_all(self.channel, stream, wire.message(batch(name, self.written)))
        for answer in self.channel.messages(stream):
            self.no_memory += answer.count(b"MAX_MEMORY")
        self.written += BATCH

    def close(self):
        self.channel.close()


def _join(address, name, group, ends):
    """A member that reads all it is given and settles nothing."""
    channel = Channel(address)
    ends.append(channel)
    request = messages.consume(name, group, max_in_flight=65_536)

    def read():
        try:
            for _ in channel.messages(channel.start("ConsumeExpired", request)):
                pass
        except (CallFailed, OSError):
            pass
    threading.Thread(target=read, daemon=True).start()
    return channel


def _attack(world, leave):
    address = world.server.address
    ends = []
    for name in NAMESPACES:
        _join(address, name, "hoard", ends)
    time.sleep(0.5)
    if leave:
        for channel in ends:
            channel.close()
    writer = Writer(address)
    honest = Honest(address)
    try:
        # For a percentile of some hundred calls.
        time.sleep(world.scale(1, 4))
        quiet = honest.check()
        writer.write(world.scale(2 * MEMORY_MIB, 8 * MEMORY_MIB))
        during = honest.check()
    finally:
        honest.stop()
        writer.close()
    accounted = accounted_mib(address)
    rss = world.server.usage()["rss_mib"]
    if not leave:
        for channel in ends:
            channel.close()
    said = (f"{writer.written // 2} MiB died for the groups of {len(NAMESPACES)} namespaces: "
            f"{accounted} MiB accounted, RSS {rss} MiB, honest p99 {during['p99_ms']:.1f} ms "
            f"(quiet {quiet['p99_ms']:.1f})")
    expect(not during["failures"],
           f"{len(during['failures'])} honest calls failed ({during['failures'][:1]}): {said}")
    expect(not writer.no_memory, f"{writer.no_memory} puts had no memory: {said}")
    # The honest client's events and what is dying come on top.
    most = len(NAMESPACES) * 2 * BUDGET_MIB + 16
    expect(accounted <= most, f"more than {most} MiB are kept: {said}")
    return said


@attack(config=CONFIG)
def abandoned_groups(world):
    """Groups that were joined once and left keep no more than their namespaces may."""
    return _attack(world, leave=True)


@attack(config=CONFIG)
def hoarding_members(world):
    """The same with members that stay, and settle nothing that they are given."""
    return _attack(world, leave=False)
