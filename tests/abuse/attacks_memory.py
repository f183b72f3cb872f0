"""Memory that no account had, and namespaces whose parts are many."""

import random
import threading
import time

from abuse import messages, wire
from abuse.attack import attack
from abuse.attacks_groups import accounted_mib
from abuse.attacks_streams import send_all
from abuse.honest import CallFailed, Channel
from abuse.messages import field
from abuse.processes import expect

NAMESPACES = "/timecache.v1.NamespaceService/"
LIMIT_MIB = 192


def config(limit_mib, *namespaces):
    return f"""\
listeners:
  - address: 127.0.0.1:0
limits: {{max_memory_bytes: {limit_mib << 20}}}
log: {{level: info, format: json}}
namespaces:
  - name: abuse
    options: {{ttl: 5s, num_buckets: 101}}
""" + "".join(f"  - {namespace}\n" for namespace in namespaces)


def call(channel, method, body):
    """A call whose request may be larger than a window."""
    stream = channel.http.get_next_available_stream_id()
    channel.http.send_headers(stream, wire.request_headers(
        method if method.startswith("/") else wire.SERVICE + method))
    send_all(channel, stream, wire.message(body))
    answer = b""
    for answer in channel.messages(stream):
        pass
    return answer


def remove(namespace, keys):
    return field(1, namespace) + b"".join(field(2, field(3, field(2, key))) for key in keys)


class Callers:
    """Threads that call one method all the time."""

    def __init__(self, address, count, method, body):
        self.calls, self.stopped = 0, threading.Event()
        self.threads = [threading.Thread(target=self._run, args=(address, method, body),
                                         daemon=True) for _ in range(count)]
        for thread in self.threads:
            thread.start()

    def _run(self, address, method, body):
        channel = Channel(address)
        while not self.stopped.is_set():
            channel.call(method, body)
            self.calls += 1
        channel.close()

    def stop(self):
        self.stopped.set()
        for thread in self.threads:
            thread.join()


@attack(config=config(2048, "{name: many, options: {ttl: 100ms, num_buckets: 1001, max_ttl: 7d}}"),
        max_more_mib=512)
def statistics_of_many_buckets(world):
    """Each entry has a bucket of its own; statistics of them are asked for all the time."""
    chance, entries = random.Random(1), world.scale(20_000, 500_000)
    channel = Channel(world.server.address)
    for first in range(0, entries, 1_000):
        call(channel, "Execute", messages.execute(
            ((b"%d" % key, b"v" * 8, 3_600 + chance.random() * 86_400 * 6)
             for key in range(first, first + 1_000)), "many"))
    callers = [Callers(world.server.address, 4, NAMESPACES + "GetNamespace",
                       field(1, "many") + field(2, 1)),
               Callers(world.server.address, 2, NAMESPACES + "ListNamespaces", field(3, 1))]
    time.sleep(world.scale(1, 5))
    for each in callers:
        each.stop()
    began = time.monotonic()
    channel.call(NAMESPACES + "DeleteNamespace", field(1, "many"))
    deleted_ms = (time.monotonic() - began) * 1000
    channel.close()
    expect(not world.full or deleted_ms < 5_000, f"the deletion takes {deleted_ms:.0f} ms")
    return f"{sum(each.calls for each in callers):,} statistics of {entries:,} live buckets, " \
           f"deleted in {deleted_ms:.0f} ms"


def _fill(channel, size):
    """Puts values of this size until one is refused; how many batches, and of how many."""
    count = max(1, min(2_000, 1_000_000 // size))
    for batch in range(3_000):
        answer = call(channel, "Execute", messages.execute(
            ((b"%d-%d" % (batch, i), b"x" * size, 3_600) for i in range(count)), "sizes"))
        if any(number == 1 for _, result in messages.parse(answer)
               for number, _ in messages.parse(result)):
            return batch + 1, count
    return 3_000, count


@attack(config=config(LIMIT_MIB, "{name: sizes, options: {ttl: 1h, num_buckets: 1001}}"),
        max_p99_ratio=0, may_disturb=True)
def values_of_changing_sizes(world):
    """Up to MAX_MEMORY with values of one size, which are removed for those of another: what
    the server keeps of the freed ones counts, too. Puts of all are refused meanwhile."""
    # As CONFIGURATION.md divides it: entries and a sixteenth, requests, responses, the process.
    shares_mib = LIMIT_MIB * 17 // 16 + 64 + 32 + 24
    peaks, stopped = [0], threading.Event()

    def look():
        while not stopped.wait(0.1):
            peaks[0] = max(peaks[0], (world.server.usage() or {"rss_mib": 0})["rss_mib"])

    looks = threading.Thread(target=look, daemon=True)
    looks.start()
    channel = Channel(world.server.address)
    sizes = world.scale((200_000, 400, 300_000), (200_000, 60, 20_000, 400, 100_000, 3_000, 300_000))
    for size in sizes:
        batches, count = _fill(channel, size)
        for batch in range(batches):
            call(channel, "Execute",
                 remove("sizes", (b"%d-%d" % (batch, i) for i in range(count))))
    channel.close()
    stopped.set()
    looks.join()
    expect(peaks[0] <= shares_mib, f"RSS {peaks[0]} MiB, of {shares_mib} MiB for all shares")
    return f"filled and emptied with values of {len(sizes)} sizes at {LIMIT_MIB} MiB: " \
           f"RSS {peaks[0]} MiB at most, {shares_mib} for all shares"


@attack(config=config(512), max_p99_ratio=0)
def empty_shards(world):
    """Namespaces of 256 shards, which have had some entries and have none."""
    count = world.scale(50, 500)
    before = world.server.usage()["rss_mib"]
    channel = Channel(world.server.address)
    # ttl 1 ms, 2 buckets, 256 shards.
    made = 0
    try:
        for i in range(count):
            channel.call(NAMESPACES + "CreateNamespace", field(1, f"t-{i}") + field(
                2, field(1, messages.duration(0.001)) + field(2, 2) + field(11, 256)))
            made += 1
    except CallFailed as failed:
        expect("status 8" in str(failed), f"refused: {failed}")
    for i in range(made):
        call(channel, "Execute", messages.execute(
            ((b"%d" % key, b"", 0.001) for key in range(300)), f"t-{i}"))
    time.sleep(2)
    used, more = accounted_mib(world.server.address), world.server.usage()["rss_mib"] - before
    for i in range(made):
        channel.call(NAMESPACES + "DeleteNamespace", field(1, f"t-{i}"))
    channel.close()
    expect(more <= 1.5 * used + 32, f"{more} MiB resident, {used} accounted")
    return f"{made} namespaces of 256 shards that were used and are empty: {more} MiB resident, " \
           f"{used} accounted"
