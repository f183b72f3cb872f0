"""HTTP/2: floods of cheap frames, and frames that must not be."""

import struct
import time

from abuse import messages, wire
from abuse.attack import attack
from abuse.processes import expect
from abuse.wire import Closed, frame

PUT_HEADERS = wire.block(wire.request_headers(wire.SERVICE + "Put"))
MAX_STREAM = 0x7FFFFFFF
WRITE_FRAMES = 500


def flood(world, one, count, greeting=b""):
    """Sends frames until all are sent or the server closes: what it said, how many.

    `one(i)` makes the i-th. What the server answers is read now and then.
    """
    began, sent = time.monotonic(), 0
    with world.connect() as connection:
        try:
            connection.send(greeting)
            while sent < count:
                batch = min(WRITE_FRAMES, count - sent)
                connection.send(b"".join(one(sent + i) for i in range(batch)))
                sent += batch
                _read_what_came(connection)
        except Closed:
            pass
        said = connection.drain(patience=0.3)
    return f"{sent:,} in {time.monotonic() - began:.1f} s: {said}"


def _read_what_came(connection):
    connection.socket.setblocking(False)
    try:
        while connection.socket.recv(1 << 20):
            pass
    except OSError:
        pass  # Nothing there now, or nothing any more.
    finally:
        connection.socket.settimeout(wire.PATIENCE_SECONDS)


@attack(max_p99_ratio=0)
def rapid_reset(world):
    """CVE-2023-44487: what it costs meanwhile is bounded by a proxy alone."""
    said = flood(world, lambda i: frame(wire.HEADERS, wire.END_HEADERS, 2 * i + 1, PUT_HEADERS) +
                 frame(wire.RST, 0, 2 * i + 1, struct.pack(">I", 8)),
                 world.scale(20_000, 200_000))
    return f"streams opened and reset, {said}"


@attack(max_p99_ratio=0)
def rapid_reset_with_request(world):
    """As above, with a whole request: the server has begun to work on it."""
    body = messages.put(b"reset", b"x" * 100)
    said = flood(world, lambda i: wire.call_frames(2 * i + 1, "Put", body) +
                 frame(wire.RST, 0, 2 * i + 1, struct.pack(">I", 8)),
                 world.scale(3_000, 50_000))
    return f"whole calls sent and reset, {said}"


@attack(max_p99_ratio=0)
def watches_reset(world):
    body = messages.watch()
    said = flood(world, lambda i: wire.call_frames(2 * i + 1, "WatchExpired", body) +
                 frame(wire.RST, 0, 2 * i + 1, struct.pack(">I", 8)),
                 world.scale(2_000, 30_000))
    return f"watches begun and reset, {said}"


@attack(max_p99_ratio=0)
def too_many_streams(world):
    """More calls at a time than the server says that it takes."""
    said = flood(world, lambda i: frame(wire.HEADERS, wire.END_HEADERS, 2 * i + 1, PUT_HEADERS),
                 world.scale(5_000, 50_000))
    return f"streams opened and left, {said}"


@attack(config="limits: {max_memory_bytes: 256MiB}\n")
def continuation_flood(world):
    """CVE-2024-24549 and its kind: a header block without an end. gRPC 1.51 counts the
    headers of each frame by themselves, and keeps 245 B of each, however many there are."""
    part = wire.literal("a", "b") * 100
    said = flood(world, lambda i: frame(wire.CONT, 0, 1, part), world.scale(5_000, 50_000),
                 greeting=frame(wire.HEADERS, 0, 1, PUT_HEADERS))
    peak = world.server.usage()["peak_mib"]
    expect(peak < 512, f"{peak} MiB at max_memory_bytes 256 MiB")
    return f"CONTINUATION frames of 100 headers, {said}"


@attack()
def empty_continuation_flood(world):
    said = flood(world, lambda i: frame(wire.CONT, 0, 1), world.scale(50_000, 1_000_000),
                 greeting=frame(wire.HEADERS, 0, 1, PUT_HEADERS))
    return f"empty CONTINUATION frames, {said}"


@attack()
def settings_flood(world):
    said = flood(world, lambda i: wire.settings(((4, 65535 + i % 2),)),
                 world.scale(20_000, 200_000))
    return f"SETTINGS frames, {said}"


@attack()
def ping_flood(world):
    said = flood(world, lambda i: frame(wire.PING, 0, 0, struct.pack(">Q", i)),
                 world.scale(20_000, 200_000))
    return f"PING frames, {said}"


@attack()
def ping_flood_unread(world):
    """The answers are not read: they must not pile up in the server."""
    count, sent = world.scale(50_000, 2_000_000), 0
    with world.connect() as connection:
        connection.socket.settimeout(3)
        try:
            while sent < count:
                connection.send(frame(wire.PING, 0, 0, b"unread..") * WRITE_FRAMES)
                sent += WRITE_FRAMES
        except (Closed, TimeoutError):
            pass
        peak = world.server.usage()["rss_mib"]
    return f"{sent:,} PING frames, answers unread: RSS {peak} MiB"


@attack()
def empty_data_flood(world):
    said = flood(world, lambda i: frame(wire.DATA, 0, 1), world.scale(50_000, 500_000),
                 greeting=frame(wire.HEADERS, wire.END_HEADERS, 1, PUT_HEADERS))
    return f"empty DATA frames, {said}"


@attack()
def tiny_data_flood(world):
    """A message in pieces of a byte, as far as the window goes."""
    said = flood(world, lambda i: frame(wire.DATA, 0, 1, b"x"), 60_000,
                 greeting=frame(wire.HEADERS, wire.END_HEADERS, 1, PUT_HEADERS) +
                 frame(wire.DATA, 0, 1, struct.pack(">BI", 0, 65_000)))
    return f"DATA frames of a byte, {said}"


@attack()
def priority_flood(world):
    said = flood(world, lambda i: frame(wire.PRIORITY, 0, 2 * i + 1,
                                        struct.pack(">IB", 2 * i + 3, 255)),
                 world.scale(20_000, 200_000))
    return f"PRIORITY frames, {said}"


@attack()
def window_update_flood(world):
    said = flood(world, lambda i: frame(wire.WINDOW, 0, 0, struct.pack(">I", 1)),
                 world.scale(50_000, 500_000))
    return f"WINDOW_UPDATE frames, {said}"


@attack()
def unknown_frame_flood(world):
    said = flood(world, lambda i: frame(0xEE, 0xFF, i % 100, b"?" * 64),
                 world.scale(20_000, 200_000))
    return f"frames of an unknown type, {said}"


# Frames that must not be, each on a connection of its own.
OPEN = frame(wire.HEADERS, wire.END_HEADERS, 1, PUT_HEADERS)
INVALID = {
    "WINDOW_UPDATE 0": OPEN + frame(wire.WINDOW, 0, 1, bytes(4)),
    "WINDOW_UPDATE overflow": frame(wire.WINDOW, 0, 0, struct.pack(">I", MAX_STREAM)) * 2,
    "WINDOW_UPDATE overflow of a stream":
        OPEN + frame(wire.WINDOW, 0, 1, struct.pack(">I", MAX_STREAM)) * 2,
    "WINDOW_UPDATE of 3 B": frame(wire.WINDOW, 0, 0, bytes(3)),
    "SETTINGS of 5 B": frame(wire.SETTINGS, 0, 0, bytes(5)),
    "SETTINGS on a stream": frame(wire.SETTINGS, 0, 1, bytes(6)),
    "SETTINGS window too large": wire.settings(((4, 0xFFFFFFFF),)),
    "SETTINGS frame size too small": wire.settings(((5, 1),)),
    "SETTINGS ack with a body": frame(wire.SETTINGS, 1, 0, bytes(6)),
    "PING of 7 B": frame(wire.PING, 0, 0, bytes(7)),
    "PING on a stream": frame(wire.PING, 0, 1, bytes(8)),
    "RST_STREAM of 3 B": OPEN + frame(wire.RST, 0, 1, bytes(3)),
    "RST_STREAM of an idle stream": frame(wire.RST, 0, 99, bytes(4)),
    "GOAWAY": frame(wire.GOAWAY, 0, 0, bytes(8)),
    "GOAWAY of 3 B": frame(wire.GOAWAY, 0, 0, bytes(3)),
    "PUSH_PROMISE": frame(wire.PUSH, 4, 1, struct.pack(">I", 2) + PUT_HEADERS),
    "HEADERS on stream 0": frame(wire.HEADERS, 4, 0, PUT_HEADERS),
    "HEADERS on an even stream": frame(wire.HEADERS, 4, 2, PUT_HEADERS),
    "HEADERS on a lower stream": frame(wire.HEADERS, 4, 9, PUT_HEADERS) + OPEN,
    "HEADERS thrice": OPEN * 3,
    "HEADERS padded beyond its end": frame(wire.HEADERS, 4 | 8, 1, b"\xff" + PUT_HEADERS),
    "HEADERS empty": frame(wire.HEADERS, 5, 1),
    "DATA on stream 0": frame(wire.DATA, 0, 0, b"x"),
    "DATA on an idle stream": frame(wire.DATA, 0, 7, b"x"),
    "DATA padded beyond its end": OPEN + frame(wire.DATA, 8, 1, b"\xffx"),
    "DATA behind END_STREAM": OPEN + frame(wire.DATA, 1, 1) + frame(wire.DATA, 0, 1, b"x"),
    "CONTINUATION alone": frame(wire.CONT, 4, 1, PUT_HEADERS),
    "CONTINUATION of another stream":
        frame(wire.HEADERS, 0, 1, PUT_HEADERS) + frame(wire.CONT, 4, 3, b""),
    "PING within a header block":
        frame(wire.HEADERS, 0, 1, PUT_HEADERS) + frame(wire.PING, 0, 0, bytes(8)),
    "a frame of 16 MiB": b"\xff\xff\xff" + bytes((wire.DATA, 0)) + struct.pack(">I", 1),
    "a frame cut short": frame(wire.SETTINGS, 0, 0, bytes(6))[:11],
    "DATA beyond the window": OPEN + frame(wire.DATA, 0, 1, bytes(16384)) * 2_000,
    "the last stream id": frame(wire.HEADERS, 4, MAX_STREAM, PUT_HEADERS) + OPEN,
}


@attack()
def invalid_frames(world):
    ended = {}
    for name, data in INVALID.items():
        with world.connect() as connection:
            try:
                connection.send(data)
                said = connection.drain(patience=0.2)
            except Closed:
                said = "closed"
            ended[said.split()[0]] = ended.get(said.split()[0], 0) + 1
        expect(world.server.alive(), f"the server died of: {name}")
    return f"{len(INVALID)} kinds of invalid frames: {ended}"
