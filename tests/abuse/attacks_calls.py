"""gRPC: messages that are cut, forged, too large, or very much work."""

import collections
import gzip
import re
import threading
import time

from abuse import messages, wire
from abuse.attack import attack
from abuse.attacks_churn import ACCESS, TOKEN
from abuse.attacks_streams import put_large, send_all
from abuse.honest import CallFailed, Channel
from abuse.processes import expect, wait_until
from abuse.wire import Closed, frame

MIB = 1 << 20


def call(world, data, method="Put", patience=wire.PATIENCE_SECONDS, source=None, **headers):
    """How a call ends whose request's bytes are these, with all window updates."""
    with world.connect(source=source) as connection:
        return send_call(connection, data, method, patience, **headers)


def send_call(connection, data, method="Put", patience=wire.PATIENCE_SECONDS, stream=1,
              **headers):
    connection.send(frame(wire.HEADERS, wire.END_HEADERS, stream, wire.block(
        wire.request_headers(method if method.startswith("/") else wire.SERVICE + method,
                             **headers))))
    return send_body(connection, data, patience, stream)


def send_body(connection, data, patience, of_call=1):
    """Keeps to the windows, as the kernel of a proxy would."""
    window = {0: 65_535, of_call: 65_535}
    initial, sent = 65_535, 0
    try:
        while sent < len(data) or not data:
            room = min(window[0], window[of_call], 16_384, len(data) - sent)
            last = sent + room == len(data)
            if room > 0 or last:
                connection.send(frame(wire.DATA, wire.END_STREAM if last else 0, of_call,
                                      data[sent:sent + room]))
                sent += room
                window = {k: v - room for k, v in window.items()}
                if last:
                    break
                continue
            kind, flags, stream, body = connection.read_frame(patience)
            if kind == wire.WINDOW:
                window[stream] = window.get(stream, 0) + int.from_bytes(body, "big")
            elif kind == wire.SETTINGS and not flags & 1:
                for at in range(0, len(body), 6):
                    if int.from_bytes(body[at:at + 2], "big") == 4:
                        now = int.from_bytes(body[at + 2:at + 6], "big")
                        window[of_call] += now - initial
                        initial = now
            elif kind == wire.HEADERS and stream == of_call:
                headers = dict(connection.decoder.decode(body))
                if "grpc-status" in headers:
                    return f"status {headers['grpc-status']} " \
                           f"{headers.get('grpc-message', '')}"
            elif kind == wire.RST and stream == of_call:
                return f"reset {int.from_bytes(body, 'big')}"
        return connection.result(of_call, patience=patience)
    except Closed:
        return "closed"
    except TimeoutError:
        return "silence"


PUT = messages.put(b"key", b"value")
GZIP = {"extra": [("grpc-encoding", "gzip")]}
MALFORMED = {
    "nothing": (b"", {}),
    "a message cut short": (wire.message(PUT, length=100), {}),
    "a prefix cut short": (b"\x00\x00", {}),
    "a length of 4 GiB": (wire.message(PUT, length=0xFFFFFFFF), {}),
    "two messages": (wire.message(PUT) * 2, {}),
    "no message but bytes": (b"\xff" * 1000, {}),
    "not a protobuf": (wire.message(b"\xff" * 1000), {}),
    "compressed flag without encoding": (wire.message(PUT, compressed=True), {}),
    "compressed flag of 7": (b"\x07" + wire.message(PUT)[1:], {}),
    "bad gzip": (wire.message(b"\x1f\x8b" + b"x" * 100, compressed=True), GZIP),
    "gzip cut short": (wire.message(gzip.compress(PUT)[:-9], compressed=True), GZIP),
    "an unknown encoding":
        (wire.message(PUT, compressed=True), {"extra": [("grpc-encoding", "zap")]}),
    "a content type of JSON": (wire.message(PUT), {"replace": {"content-type":
                                                              "application/json"}}),
    "no content type": (wire.message(PUT), {"replace": {"content-type": None}}),
    "a timeout of nothing": (wire.message(PUT), {"extra": [("grpc-timeout", "0n")]}),
    "no key": (wire.message(messages.field(1, wire.NAMESPACE)), {}),
    "a key of 1 MiB": (wire.message(messages.put(b"k" * MIB, b"")), {}),
    "unknown fields": (wire.message(b"".join(
        messages.field(1000 + i, b"x") for i in range(100_000)) + b"\xff"), {}),
    "groups 10,000 deep": (wire.message(messages.varint(999 << 3 | 3) * 10_000), {}),
    "entries 10,000 deep": (wire.message(b"\x22" * 20_000), {}),
    "bad UTF-8": (wire.message(messages.field(1, b"\xff\xfe") + messages.field(2, b"k")), {}),
    "a negative ttl": (wire.message(messages.put(b"k", b"v") + messages.field(
        4, b"\x08" + b"\xff" * 9 + b"\x01")), {}),
    "a message of 16 MiB + 65 KiB": (wire.message(messages.put(b"k", b"v" * (16 * MIB +
                                                                            (65 << 10)))), {}),
}

# gRPC and protobuf have reasons to take these.
HARMLESS = ("unknown fields", "no content type", "two messages",
            "compressed flag without encoding", "compressed flag of 7", "an unknown encoding",
            "a content type of JSON")


@attack()
def malformed_calls(world):
    said = collections.Counter()
    for name, (data, headers) in MALFORMED.items():
        answer = call(world, data, patience=10, **headers)
        said[" ".join(answer.split()[:2])] += 1
        expect(name in HARMLESS or not answer.startswith("status 0"),
               f"{name} was accepted: {answer}")
        expect(world.server.alive(), f"the server died of: {name}")
    return f"{len(MALFORMED)} malformed calls: {dict(said)}"


@attack()
def unknown_methods(world):
    said = {name: call(world, wire.message(b""), method=name, patience=5).split(" ", 2)[:2]
            for name in ("Nothing", "", "Put/", "../Put", "P" * 4000)}
    expect(all(one[:2] == ["status", "12"] for one in said.values()), f"{said}")
    return f"{len(said)} unknown methods: all UNIMPLEMENTED"


@attack(max_more_mib=64)
def gzip_bomb(world):
    """gRPC 1.51 would unpack it all and then look at the size."""
    size = world.scale(256, 2048) * MIB
    bomb = gzip.compress(bytes(size), 9)
    before = world.server.usage()
    said = [call(world, wire.message(bomb, compressed=True), **GZIP)
            for _ in range(world.scale(4, 20))]
    expect(all(one.startswith("status 12") for one in said), f"compressed calls: {said}")
    after = world.server.usage()
    expect(after["peak_mib"] < before["peak_mib"] + 64, f"it was unpacked: {after}")
    return f"{len(said)} gzip bombs, {len(bomb) // 1024} KiB to {size // MIB} MiB: {said[0]}; " \
           f"peak {before['peak_mib']} -> {after['peak_mib']} MiB, " \
           f"CPU {after['cpu_s'] - before['cpu_s']:.1f} s"


@attack(max_more_mib=1024)
def large_calls(world):
    """The largest that are allowed, and batches beyond it."""
    small = [(b"k%d" % i, b"v" * 4000) for i in range(4_096)]
    batch = call(world, wire.message(messages.execute(small)), method="Execute")
    expect(batch.startswith("status 0"), f"a batch of 4,096: {batch}")
    more = call(world, wire.message(messages.execute([(b"k", b"v")] * 4_097)), method="Execute")
    expect(more.startswith("status 3"), f"a batch of 4,097: {more}")
    huge = call(world, wire.message(messages.execute([(b"k", b"v")] * 1_000_000)),
                method="Execute")
    expect(huge.startswith("status 3"), f"a batch of 1,000,000: {huge}")
    one = call(world, wire.message(messages.put(b"k", b"v" * 16 * MIB)))
    return f"a batch of 4,096 with 16 MiB: {batch}; of 4,097: {more.split()[1]}; of " \
           f"1,000,000: {huge.split()[1]}; a value of 16 MiB: {' '.join(one.split()[:2])}"


@attack(config="limits: {max_memory_bytes: 268435456}\n")
def large_requests_unfinished(world):
    """Many begin a request of 16 MiB and send half: read no further near the limit."""
    count = world.scale(10, 100)
    data = wire.message(b"x" * (16 * MIB))[:8 * MIB]
    held = []
    for _ in range(count):
        connection = world.connect()
        connection.send(frame(wire.HEADERS, wire.END_HEADERS, 1, wire.block(
            wire.request_headers(wire.SERVICE + "Put"))))
        connection.socket.settimeout(1)
        held.append(connection)
        sent = 0
        try:
            while sent < len(data):
                kind, _, stream, body = connection.read_frame(0.05)
                if kind == wire.WINDOW and stream == 0:
                    room = min(int.from_bytes(body, "big"), len(data) - sent)
                    for at in range(sent, sent + room, 16_384):
                        connection.send(frame(wire.DATA, 0, 1,
                                              data[at:min(at + 16_384, sent + room)]))
                    sent += room
        except (TimeoutError, Closed):
            pass
    during = world.server.usage()["rss_mib"]
    for connection in held:
        connection.close()
    expect(during < 400, f"{during} MiB at max_memory_bytes 256 MiB")
    return f"{count} requests of 16 MiB begun and left: RSS {during} MiB meanwhile"


# At full scale from many addresses nine of ten calls failed, before strangers had a bound.
LARGE = {
    "token": TOKEN,
    "max_failed_share": 0.25,
    "config": f"access: {{file: {ACCESS.name}}}\nlimits: {{max_memory_bytes: 256MiB}}\n",
}


@attack(**LARGE)
def large_requests_without_credentials(world):
    """Whole requests of 16 MiB, again and again: gRPC reads each before it asks who calls."""
    said = _large_requests(world, lambda: "127.0.0.2")
    # The address has used up its tokens: its connections wait, or are refused. How many come
    # to an end before is gRPC's doing, and the machine's.
    wait_until(lambda: re.search(r'"connections_(delayed|too_fast)".*"127\.0\.0\.2',
                                 world.server.log_text()),
               f"connections of the address wait: {dict(said)}")
    return _told(said)


@attack(**LARGE)
def large_requests_without_credentials_from_many(world):
    """The same, each from another of 248 addresses."""
    return _told(_large_requests(world, wire.next_source))


@attack(**LARGE)
def large_requests_after_health_checks(world):
    """The same, on connections that have waited, and made a call that needs no credentials."""
    return _told(_large_requests(world, wire.next_source, prepare=_check_and_wait))


# At a time, each on a connection of its own.
LARGE_CALLERS = 20


def _told(said):
    return f"{LARGE_CALLERS} connections with requests of 16 MiB and no credentials: {dict(said)}"


# Longer than a new connection is on probation.
WAIT_SECONDS = 1.2


def _check_and_wait(connection):
    said = send_call(connection, wire.message(b""), "/grpc.health.v1.Health/Check")
    expect(said.startswith("status 0"), f"health: {said}")
    time.sleep(WAIT_SECONDS)


def _large_requests(world, source, prepare=lambda connection: None):
    until = time.monotonic() + world.scale(3, 15)
    data = wire.message(messages.put(b"k", b"v" * (16 * MIB - 100)))
    said = collections.Counter()

    def run():
        while time.monotonic() < until:
            try:
                with world.connect(source=source()) as connection:
                    prepare(connection)
                    how = send_call(connection, data, patience=10, stream=3)
                said[" ".join(how.split()[:2])] += 1
            except (OSError, wire.Closed):
                said["closed"] += 1

    threads = [threading.Thread(target=run) for _ in range(LARGE_CALLERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return said


# What a container of this size has by default for entries: 65 %.
CONTAINER_MIB = 512


@attack(max_p99_ratio=0, may_disturb=True, max_more_mib=CONTAINER_MIB,
        config=f"limits: {{max_memory_bytes: {CONTAINER_MIB * MIB * 65 // 100}}}\n")
def large_values_in_use(world):
    """Clients that put and read values of 1 MiB, more than there is memory for: some puts
    are refused, also the honest client's, until older values have died."""
    count, until = 8, time.monotonic() + world.scale(4, 20)
    said = collections.Counter()

    def run(number):
        channel = Channel(world.server.address)
        i = 0
        while time.monotonic() < until:
            i += 1
            key = b"large%d" % (number * 100 + i % 100)
            for method, body in (("Put", messages.put(key, b"v" * MIB, 15)),
                                 ("Get", messages.get(key))):
                stream = channel.http.get_next_available_stream_id()
                channel.http.send_headers(stream, wire.request_headers(wire.SERVICE + method))
                send_all(channel, stream, wire.message(body))
                try:
                    for _ in channel.messages(stream):
                        pass
                    said[method] += 1
                except CallFailed as error:
                    said[" ".join(str(error).split()[:2])] += 1
        channel.close()

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    peak_mib = world.server.usage()["peak_mib"]
    expect(peak_mib < CONTAINER_MIB, f"RSS {peak_mib} MiB: {dict(said)}")
    return f"{count} clients with values of 1 MiB: {dict(said)}, RSS {peak_mib} MiB at most"


@attack(max_more_mib=512)
def batches_that_copy(world):
    """Renewals that move a value of 1 MiB to another bucket each, 4,096 in a request of
    100 kB. The honest client shares the namespace."""
    put_large(world, b"large", MIB)
    ops = world.scale(400, 4_096)
    batch = messages.field(1, wire.NAMESPACE) + b"".join(
        messages.field(2, messages.field(5, messages.field(2, b"large") + messages.field(
            3, messages.duration(600 + 100 * (i % 2))))) for i in range(ops))
    until = time.monotonic() + world.scale(2, 10)
    done, longest, before = 0, 0, world.server.usage()
    while time.monotonic() < until:
        began = time.monotonic()
        said = call(world, wire.message(batch), method="Execute")
        expect(said.startswith("status 0"), f"a batch of renewals: {said}")
        longest = max(longest, time.monotonic() - began)
        done += 1
    cpu = world.server.usage()["cpu_s"] - before["cpu_s"]
    return f"{done} batches of {ops:,} renewals of 1 MiB: {longest:.1f} s at most, " \
           f"{cpu / done:.1f} s of CPU each"
