"""Connections: very many, very slow, and not HTTP/2 at all."""

import collections
import socket
import time

from abuse import messages, wire
from abuse.attack import attack
from abuse.processes import expect
from abuse.wire import Closed


@attack(max_more_mib=1024, config="limits: {max_new_connections_per_second: 10000}\n")
def idle_connections(world):
    count = world.scale(500, 9_900)
    before = world.server.usage()
    connections = [world.connect() for _ in range(count)]
    for connection in connections:
        connection.read_frame()
    during = world.server.usage()
    for connection in connections:
        connection.close()
    kib = (during["rss_mib"] - before["rss_mib"]) * 1024 / count
    return f"{count} idle connections, {kib:.0f} KiB each"


@attack(max_p99_ratio=0, config="limits: {max_connections: 50}\n", may_disturb=True)
def too_many_connections(world):
    held, refused = [], 0
    for i in range(200):
        connection = world.connect()
        try:
            connection.read_frame()
            held.append(connection)
        except (Closed, TimeoutError):
            refused += 1
            connection.close()
    expect(len(held) <= 50, f"{len(held)} connections live, and 50 are allowed")
    expect(refused >= 150, f"only {refused} of 200 were refused")
    for connection in held:
        connection.close()
    return f"200 connections at max_connections 50: {len(held)} live, {refused} refused"


@attack()
def slow_preface(world):
    count = world.scale(50, 1_000)
    slow = [world.connect(greet=False) for _ in range(count)]
    for byte in wire.PREFACE[:-1]:
        for connection in slow:
            connection.send(bytes((byte,)))
    open_until = time.monotonic()
    said = collections.Counter(connection.drain(patience=0.01) for connection in slow)
    for connection in slow:
        connection.close()
    return f"{count} prefaces byte by byte, the last byte never: {dict(said)} " \
           f"{time.monotonic() - open_until:.0f} s later"


@attack()
def headers_never_ended(world):
    count = world.scale(50, 1_000)
    slow = [world.connect() for _ in range(count)]
    for connection in slow:
        connection.send(wire.frame(wire.HEADERS, 0, 1, wire.literal("a", "b")))
    time.sleep(world.scale(0.5, 5))
    for connection in slow:
        connection.close()
    return f"{count} header blocks begun and never ended"


@attack()
def data_never_ended(world):
    count = world.scale(50, 1_000)
    slow = [world.connect() for _ in range(count)]
    for connection in slow:
        connection.send(
            wire.frame(wire.HEADERS, wire.END_HEADERS, 1,
                       wire.block(wire.request_headers(wire.SERVICE + "Put"))) +
            wire.frame(wire.DATA, 0, 1, wire.message(b"\x0a", length=1000)))
    time.sleep(world.scale(0.5, 5))
    for connection in slow:
        connection.close()
    return f"{count} messages of 1,000 B of which one byte came"


@attack()
def connections_reset(world):
    """Opened and reset by the peer, without a word, as fast as may be."""
    count = world.scale(1_000, 20_000)
    host, port = world.server.address.rsplit(":", 1)
    for _ in range(count):
        with socket.socket() as one:
            one.bind((wire.next_source(), 0))
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                           b"\x01\x00\x00\x00\x00\x00\x00\x00")
            one.connect((host, int(port)))
    return f"{count} connections opened and reset"


# A TLS 1.2 ClientHello's beginning, and other protocols' first words.
GREETINGS = {
    "HTTP/1.1": b"GET / HTTP/1.1\r\nHost: abuse\r\n\r\n",
    "HTTP/1.1 upgrade": b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings"
                        b"\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
    "TLS": bytes.fromhex("16030100c8010000c40303") + b"\x5a" * 194,
    "zeros": b"\x00" * 4096,
    "noise": bytes((i * 197 + i // 7) % 256 for i in range(65536)),
    "wrong preface": wire.PREFACE[:-1] + b"X" * 64,
    "nothing": b"",
}


@attack()
def other_protocols(world):
    said = {}
    for name, greeting in GREETINGS.items():
        with world.connect(greet=False) as connection:
            try:
                connection.send(greeting)
                connection.socket.shutdown(socket.SHUT_WR)
                connection.socket.settimeout(wire.PATIENCE_SECONDS)
                answer = b""
                while data := connection.socket.recv(4096):
                    answer += data
                said[name] = "closed" if len(answer) < 64 else f"{len(answer)} B, closed"
            except (ConnectionError, OSError, Closed):
                said[name] = "reset"
    return f"other protocols: {said}"


@attack()
def half_closed(world):
    """The client ends its side, and the call that was sent is still answered."""
    with world.connect() as connection:
        connection.send(wire.call_frames(1, "Put", messages.put(b"half", b"closed")))
        connection.socket.shutdown(socket.SHUT_WR)
        return f"a connection half closed behind its call: {connection.result()}"
