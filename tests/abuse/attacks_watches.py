"""Watches and scans that make the server work, beside those of others."""

import random
import socket
import threading
import time

from abuse import messages, wire
from abuse.attack import attack
from abuse.attacks_streams import ONE_MESSAGE_WINDOW, ask, send_all
from abuse.honest import Channel
from abuse.processes import expect
from abuse.wire import frame

DAY_SECONDS = 86_400
LARGE_WINDOW = 0x7FFFFFFF

# What an honest client may wait for at most, on a machine that is busy with the
# attacker, too: times its quiet p99, and in all.
MAX_P99_RATIO = 10
MAX_WAIT_MS = 2_000

CONFIG = """\
listeners: [{{address: 127.0.0.1:0}}]
namespaces:
  - {{name: abuse, options: {{ttl: 5s, num_buckets: 101}}}}
{more}
log: {{level: info, format: json}}
"""


def namespaces(*lines):
    return CONFIG.format(more="\n".join(f"  - {line}" for line in lines))


def fill(world, puts, namespace, size=2_000):
    """Puts (key, value[, ttl]) in batches; returns the seconds that it took."""
    began = time.monotonic()
    channel = Channel(world.server.address)
    puts = list(puts)
    try:
        for at in range(0, len(puts), size):
            stream = channel.http.get_next_available_stream_id()
            channel.http.send_headers(stream, wire.request_headers(wire.SERVICE + "Execute"))
            send_all(channel, stream, wire.message(
                messages.execute(puts[at:at + size], namespace)))
            for _ in channel.messages(stream):
                pass
    finally:
        channel.close()
    return time.monotonic() - began


def connect_reader(world):
    """A connection with windows that never close; what comes is for another thread."""
    connection = world.connect(window=LARGE_WINDOW)
    connection.send(frame(wire.WINDOW, 0, 0, (LARGE_WINDOW - 65_535).to_bytes(4, "big")))
    return connection


def read_on(connections):
    """Reads and throws away, until the connections are closed."""
    def run(connection):
        connection.socket.settimeout(None)
        try:
            while connection.socket.recv(1 << 20):
                pass
        except OSError:
            pass
    for connection in connections:
        threading.Thread(target=run, args=(connection,), daemon=True).start()


def close(connections):
    for connection in connections:
        try:
            connection.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        connection.close()


def watch_all(world, count, bodies, method="WatchExpired", each=50):
    connections = []
    for i in range(count):
        if i % each == 0:
            connections.append(connect_reader(world))
        ask(connections[-1], method, next(bodies), stream=2 * (i % each) + 1)
    read_on(connections)
    return connections


def watch_deaths(world, watchers, bodies, deaths):
    """Keeps watches open while so many entries of the namespace storm die."""
    connections = watch_all(world, watchers, bodies)
    ttl = world.scale(2, 6)
    fill(world, ((b"k%d" % i, b"v" * 50, ttl) for i in range(deaths)), "storm")
    time.sleep(ttl + 14)
    close(connections)


def again_and_again(world, count, seconds, method, body, messages_each=None):
    """Keeps so many calls open at a time; each ends by itself, or after so many
    messages. Returns how many ended."""
    each = 10
    until = time.monotonic() + seconds
    done = []

    def run():
        connection = connect_reader(world)
        stream, seen = 1, {}
        try:
            for _ in range(each):
                ask(connection, method, body, stream=stream)
                stream += 2
            while time.monotonic() < until:
                kind, flags, at, _ = connection.read_frame(max(until - time.monotonic(), 0.01))
                if kind == wire.DATA and messages_each:
                    seen[at] = seen.get(at, 0) + 1
                    if seen[at] == messages_each:
                        connection.send(frame(wire.RST, 0, at, (8).to_bytes(4, "big")))
                        flags |= wire.END_STREAM
                if flags & wire.END_STREAM and kind in (wire.DATA, wire.HEADERS):
                    done.append(at)
                    ask(connection, method, body, stream=stream)
                    stream += 2
        except (TimeoutError, wire.Closed):
            pass
        connection.close()

    threads = [threading.Thread(target=run) for _ in range(count // each)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(done)


UNREAD_CONFIG = "limits: {max_memory_bytes: 256MiB}\n" + namespaces(
    "{name: unread, options: {ttl: 600s, num_buckets: 6001, num_shards: 1}}")
# Of the responses that may be unread, what is on its way, and what the heap keeps.
MAX_UNREAD_MIB = 128


@attack(max_p99_ratio=MAX_P99_RATIO, max_wait_ms=MAX_WAIT_MS, config=UNREAD_CONFIG)
def prefixes_unread(world):
    """No two watches filter alike: what died is written for each, and they read their
    first message alone."""
    watches = world.scale(300, 1_000)
    key = b"k" * 1_100
    before = world.server.usage()["rss_mib"]
    connections = []
    for i in range(watches):
        if i % 100 == 0:
            connections.append(world.connect(window=ONE_MESSAGE_WINDOW))
            connections[-1].wait_for_settings()
        ask(connections[-1], "WatchExpired",
            messages.watch(60, ["unread"], prefix=key[:i + 1]), stream=2 * (i % 100) + 1)
    time.sleep(1)
    fill(world, ((key + b"%d" % i, b"v" * 50_000, 1) for i in range(16)), "unread")
    time.sleep(world.scale(3, 6))
    during = world.server.usage()["peak_mib"]
    close(connections)
    expect(during - before <= MAX_UNREAD_MIB, f"RSS {before} -> {during} MiB")
    return f"{watches:,} watches with a prefix each, which do not read the 800 kB that " \
           f"die: RSS {during} MiB at most"


@attack(max_p99_ratio=MAX_P99_RATIO, max_wait_ms=MAX_WAIT_MS,
        config=namespaces("{name: leads, options: {max_bytes: 8MiB}}"), max_more_mib=400)
def expiring_watchers(world):
    """Watches with a lead time, of buckets as many as entries."""
    entries, watchers = world.scale(20_000, 200_000), world.scale(50, 200)
    rng = random.Random(1)
    fill(world, ((b"%d" % i, b"", rng.uniform(DAY_SECONDS, 6.9 * DAY_SECONDS))
                 for i in range(entries)), "leads")
    before = world.server.usage()
    body = messages.expiring(3_600, ["leads"], 7 * DAY_SECONDS, b"zz")
    connections = watch_all(world, watchers, iter(lambda: body, None), "WatchExpiring")
    time.sleep(world.scale(3, 30))
    usage = world.server.usage()
    close(connections)
    more = usage["rss_mib"] - before["rss_mib"]
    expect(more < world.scale(32, 64), f"{watchers} watches with a lead time took {more} MiB")
    return f"{watchers} watches with a lead_time of 7 d on {entries:,} own ttls: " \
           f"{more} MiB, {usage['cpu_s'] - before['cpu_s']:.1f} s of CPU"


@attack(max_p99_ratio=MAX_P99_RATIO, max_wait_ms=MAX_WAIT_MS,
        config=namespaces("{name: storm, options: {ttl: 600s}}"), max_more_mib=512)
def long_prefixes(world):
    """Filters that let nothing pass, and many deaths."""
    watchers, deaths = world.scale(90, 900), world.scale(30_000, 300_000)
    body = messages.watch(3_600, ["storm"], prefix=b"k" + b"z" * 4_000)
    watch_deaths(world, watchers, iter(lambda: body, None), deaths)
    return f"{watchers} watches with prefixes of 4 kB while {deaths:,} died"


@attack(max_p99_ratio=MAX_P99_RATIO, max_wait_ms=MAX_WAIT_MS,
        config=namespaces("{name: storm, options: {ttl: 600s}}"), max_more_mib=512)
def different_prefixes(world):
    """No two watches filter alike."""
    watchers, deaths = world.scale(90, 900), world.scale(30_000, 300_000)
    bodies = (messages.watch(3_600, ["storm"], prefix=b"k%d" % i + b"z" * 9)
              for i in range(watchers))
    watch_deaths(world, watchers, bodies, deaths)
    return f"{watchers} watches with a prefix each while {deaths:,} died"


@attack(max_p99_ratio=MAX_P99_RATIO, max_wait_ms=MAX_WAIT_MS,
        config=namespaces("{name: scanned, options: {ttl: 3600s}}"), max_more_mib=512)
def scans_without_a_match(world):
    entries, scans = world.scale(60_000, 600_000), world.scale(50, 200)
    fill(world, ((b"%d" % i, b"") for i in range(entries)), "scanned")
    body = messages.field(1, "scanned") + messages.field(2, b"zzzz")
    done = again_and_again(world, scans, world.scale(3, 15), "Scan", body)
    return f"{scans} scans at a time of {entries:,} entries for what is not there: {done} ended"


# Thousands of streams that are opened and reset have their own cost.
@attack(max_p99_ratio=2 * MAX_P99_RATIO, max_wait_ms=MAX_WAIT_MS,
        config=namespaces("{name: dead, options: {ttl: 600s, event_retention: 600s}}"),
        max_more_mib=512)
def watches_from_the_earliest(world):
    deaths, watches = world.scale(40_000, 400_000), world.scale(50, 100)
    fill(world, ((b"%d" % i, b"", 0.01) for i in range(deaths)), "dead")
    time.sleep(2)
    body = messages.watch(3_600, ["dead"], earliest=True, prefix=b"zzzz")
    done = again_and_again(world, watches, world.scale(3, 15), "WatchExpired", body,
                           world.scale(1, 3))
    return f"{watches} watches at a time from the earliest of {deaths:,} events, whose " \
           f"prefix lets nothing pass: {done} ended"


@attack(max_p99_ratio=MAX_P99_RATIO, max_wait_ms=MAX_WAIT_MS,
        config=namespaces(*(f"{{name: h{i}, options: {{num_shards: 1}}}}" for i in range(64))),
        max_more_mib=512)
def many_heartbeats(world):
    watchers = world.scale(30, 300)
    body = messages.watch(0.01, [f"h{i}" for i in range(64)])
    before = world.server.usage()
    began = time.monotonic()
    connections = watch_all(world, watchers, iter(lambda: body, None))
    time.sleep(world.scale(3, 15))
    cpu = (world.server.usage()["cpu_s"] - before["cpu_s"]) / (time.monotonic() - began)
    close(connections)
    return f"{watchers} watches of 64 namespaces with heartbeats of 10 ms: " \
           f"{cpu:.2f} of a CPU"
