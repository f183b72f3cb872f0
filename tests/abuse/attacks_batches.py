"""Batches and pipelines: what few bytes make the server do or keep, for others to wait."""

import threading
import time

from abuse import messages, wire
from abuse.attack import attack
from abuse.honest import CallFailed, Channel
from abuse.processes import expect

MIB = 1 << 20
OPERATIONS = 4096
NAMESPACE = "batches"
# In place of processes.CONFIG.
CONFIG = f"""
listeners: [{{address: "127.0.0.1:0"}}]
limits: {{max_memory_bytes: 512MiB}}
namespaces:
  - {{name: {wire.NAMESPACE}, options: {{ttl: 1s, num_buckets: 11}}}}
  - {{name: {NAMESPACE}, options: {{ttl: 1h, max_value_bytes: 16MiB}}}}
log: {{level: info, format: json}}
"""
# Of the cases of Operation.
GET, CONTAINS, TOUCH, GATHER = 2, 4, 5, 8


def operation(kind, *fields):
    """`fields` of its request, from the key on."""
    return messages.field(2, messages.field(kind, b"".join(
        messages.field(number, value) for number, value in fields)))


def batch(operations, namespace=NAMESPACE):
    return messages.field(1, namespace) + b"".join(operations)


def request(key, value):
    return messages.field(1, NAMESPACE) + messages.field(2, key) + messages.field(3, value)


def send(channel, stream, body, end=False):
    """As much at a time as the windows have room for."""
    data, sent, http = wire.message(body), 0, channel.http
    while sent < len(data):
        room = min(http.local_flow_control_window(stream), http.max_outbound_frame_size,
                   len(data) - sent)
        if room > 0:
            sent += room
            http.send_data(stream, data[sent - room:sent],
                           end_stream=end and sent == len(data))
            channel.socket.sendall(http.data_to_send())
        else:
            http.receive_data(channel.socket.recv(1 << 16))


def call(channel, method, body):
    stream = channel.start(method)
    send(channel, stream, body, end=True)
    for _ in channel.messages(stream):
        pass


class Pipeline:
    """A stream of batches on a connection of its own, which reads each answer."""

    def __init__(self, address):
        self.channel = Channel(address)
        self.stream = self.channel.start("Pipeline")
        self.answers = self.channel.messages(self.stream)

    def run(self, body):
        send(self.channel, self.stream, body)
        return next(self.answers)


@attack(config=CONFIG, max_more_mib=128)
def pipeline_results_kept(world):
    """Request n reads a large value at place n: it holds the result of none."""
    value = 230_000
    call(Channel(world.server.address), "Put", request(b"big", b"x" * value))
    contains, get = operation(CONTAINS, (2, b"k")), operation(GET, (2, b"big"))
    pipeline = Pipeline(world.server.address)
    requests = world.scale(1024, 4096)
    for place in range(requests):
        pipeline.run(batch([contains] * place + [get] + [contains] * (requests - 1 - place)))
    kept = world.server.usage()["rss_mib"]
    expect(kept < 128, f"an idle pipeline keeps {kept} MiB")
    return f"{requests} requests that read {value} bytes each at a place of its own"


@attack(config=CONFIG)
def pipeline_requests_kept(world):
    """Idle pipelines that sent a large request each leave gRPC's room to others."""
    large = batch([operation(CONTAINS, (2, b"%06d" % i + b"x" * 4080)) for i in range(4090)])
    pipelines = [Pipeline(world.server.address) for _ in range(world.scale(6, 12))]
    for pipeline in pipelines:
        pipeline.run(large)
    time.sleep(world.scale(1, 5))
    small = batch([operation(CONTAINS, (2, b"k"))])
    for pipeline in pipelines:
        pipeline.run(small)
    return f"{len(pipelines)} idle pipelines after {len(large) // MIB} MiB each"


def abandon(world, body, count, seconds):
    """Sends the batch on so many connections, and closes them while it runs."""
    channels = [Channel(world.server.address) for _ in range(count)]
    for channel in channels:
        send(channel, channel.start("Execute"), body, end=True)
    time.sleep(seconds)
    for channel in channels:
        channel.close()
    before = world.server.usage()["cpu_s"]
    time.sleep(3)
    return world.server.usage()["cpu_s"] - before


def renewals(world, key, value_bytes):
    """Each moves the value to another bucket."""
    channel = Channel(world.server.address)
    call(channel, "Put", request(key, b"x" * value_bytes))
    channel.close()
    return batch([operation(TOUCH, (2, key), (3, messages.duration(3600 + i % 2 * 400)))
                  for i in range(OPERATIONS)])


# Honest calls share the machine with the one thread that takes turns.
@attack(config=CONFIG, max_wait_ms=2_000)
def renewals_of_large_values_abandoned(world):
    """Values that have a segment of their own move with it."""
    body = renewals(world, b"b", 1 << 19)
    spent = abandon(world, body, world.scale(8, 32), 1)
    expect(spent < 2, f"{spent:.1f} s of CPU for calls that are abandoned")
    return f"{OPERATIONS} renewals of a value of 512 KiB in {len(body) >> 10} KiB, abandoned"


@attack(config=CONFIG, max_wait_ms=2_000)
def renewals_of_smaller_values_abandoned(world):
    """Those are copied, in turns, until the call is given up."""
    body = renewals(world, b"m", 100_000)
    spent = abandon(world, body, world.scale(8, 32), 1)
    expect(spent < 2, f"{spent:.1f} s of CPU for calls that are abandoned")
    return f"{OPERATIONS} renewals of a value of 100 kB in {len(body) >> 10} KiB, abandoned"


@attack(config=CONFIG, max_wait_ms=2_000)
def gathers_of_a_key_with_many_parts(world):
    """Each looks for its part among those that the key has."""
    channel = Channel(world.server.address)
    parts = [operation(GATHER, (2, b"join"), (3, b"p%04d" % i), (4, b"x" * 900), (5, 1024))
             for i in range(1023)]
    call(channel, "Execute", batch(parts))
    body = batch([operation(GATHER, (2, b"join"), (3, b"p1022"), (4, b"x" * (i % 3 + 1)),
                            (5, 1024)) for i in range(OPERATIONS)])
    stop, answered = threading.Event(), []

    def send():
        own = Channel(world.server.address)
        while not stop.is_set():
            try:
                call(own, "Execute", body)
                answered.append(1)
            except CallFailed:
                return

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(world.scale(3, 10))
    stop.set()
    for thread in threads:
        thread.join()
    return f"{len(answered)} batches of {OPERATIONS} Gathers on a key with 1,023 parts"
