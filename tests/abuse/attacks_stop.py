"""What anybody who reaches a port can do to the end of a server, and to its health."""

import json
import os
import struct
import subprocess
import tempfile
import time

from abuse import messages, wire
from abuse.attack import attack
from abuse.attacks_machine import HOUR_SECONDS
from abuse.processes import Server, expect, wait_until
from abuse.wire import Closed

HEALTH = "/grpc.health.v1.Health/"
GRACE_SECONDS = 60
CLOSE_ALL = ("sh", "-c", 'exec "$0" "$@" <&- >&- 2>&-')


def _watch_health(connection, stream=1):
    connection.send(
        wire.frame(wire.HEADERS, wire.END_HEADERS, stream,
                   wire.block(wire.request_headers(HEALTH + "Watch"))) +
        wire.frame(wire.DATA, wire.END_STREAM, stream, wire.message(b"")))


def _stop(server):
    """Seconds until it has ended, and what it says of that."""
    began = time.monotonic()
    server.process.terminate()
    wait_until(lambda: not server.alive(), "the server has ended")
    stopped = [json.loads(line) for line in server.log_text().splitlines()
               if '"server_stopped"' in line]
    expect(len(stopped) == 1, "it does not say how it stopped")
    return time.monotonic() - began, stopped[0]


@attack(alone=True)
def health_watched_at_the_stop(world):
    """By a client that reads, and by one that does not."""
    took = []
    for window in (None, 0):
        server = Server(world.binary, f"grace_period: {GRACE_SECONDS}s\n")
        try:
            with wire.Wire(server.address, window=window) as connection:
                _watch_health(connection)
                while connection.read_frame()[0] != wire.HEADERS:
                    pass
                seconds, stopped = _stop(server)
                expect(not stopped["calls_cancelled"], f"calls were cancelled: {stopped}")
                took.append(seconds)
        finally:
            server.stop()
    expect(max(took) < GRACE_SECONDS, f"the server took {took} s to stop")
    return f"a watch of health at the stop: {took[0]:.1f} s, unread {took[1]:.1f} s, of a " \
           f"grace period of {GRACE_SECONDS} s"


def _answer_pings(connection):
    """Whether the server has closed the connection."""
    try:
        connection.read_frame(patience=0.05)
    except TimeoutError:
        return False
    except (Closed, OSError):
        return True
    return False


def _set_clock(path, offset):
    """In place: the server has mapped it."""
    with open(path, "r+b" if os.path.exists(path) else "wb") as file:
        file.write(struct.pack("<q", offset))


@attack(alone=True)
def clock_back_at_the_stop(world):
    """A call whose request never ends is cut at the end of the grace period, wherever the
    time of day goes meanwhile."""
    directory = tempfile.TemporaryDirectory(prefix="timecached-abuse-")
    clock = os.path.join(directory.name, "clock")
    _set_clock(clock, 0)
    build = os.path.dirname(os.path.dirname(world.binary))
    server = Server(world.binary, "grace_period: 3s\n", environment={
        "LD_PRELOAD": os.path.join(build, "tests", "abuse", "stepped_clock.so"),
        "STEPPED_CLOCK": clock})
    try:
        with wire.Wire(server.address) as connection:
            connection.send(
                wire.frame(wire.HEADERS, wire.END_HEADERS, 1,
                           wire.block(wire.request_headers(wire.SERVICE + "Put"))) +
                wire.frame(wire.DATA, 0, 1, wire.message(b"\x0a", length=1000)))
            connection.send(wire.call_frames(3, "Get", messages.get(b"nothing")))
            while connection.read_frame()[2] != 3:
                pass
            began = time.monotonic()
            server.process.terminate()
            wait_until(lambda: '"drain_started"' in server.log_text(), "the drain has begun")
            time.sleep(1)
            _set_clock(clock, -HOUR_SECONDS)
            # Who does not answer PINGs is cut before.
            wait_until(lambda: _answer_pings(connection) or not server.alive(),
                       "the server has ended")
            took = time.monotonic() - began
    finally:
        server.stop()
        directory.cleanup()
    expect(2.9 < took < HOUR_SECONDS / 2, f"a grace period of 3 s took {took:.1f} s")
    return f"an hour back, with half a request: a grace period of 3 s took {took:.1f} s"


@attack()
def health_watches(world):
    """Without credentials, as many as one address can open."""
    count = world.scale(2_000, 10_000)
    connections, opened = [], 0
    try:
        while opened < count:
            connection = world.connect(source="127.0.0.2")
            connections.append(connection)
            for i in range(500):
                _watch_health(connection, 1 + 2 * i)
            opened += 500
        # Another address gets its own all the same.
        with world.connect(source="127.0.0.3") as other:
            _watch_health(other)
            until = time.monotonic() + wire.PATIENCE_SECONDS
            while (frame := other.read_frame())[0] != wire.DATA:
                expect(time.monotonic() < until, "no answer")
                expect(not frame[1] & wire.END_STREAM or frame[2] != 1,
                       "a watch of health of another address is refused")
        rss = world.server.usage()["rss_mib"]
    except Closed:
        rss = world.server.usage()["rss_mib"]
    for connection in connections:
        connection.close()
    return f"{opened:,} watches of health of one address: RSS {rss} MiB"


@attack(alone=True)
def no_standard_files(world):
    """Standard input, output and error are closed: no connection gets their numbers."""
    server = Server(world.binary, wrapper=CLOSE_ALL, stderr=subprocess.DEVNULL)
    try:
        held = [wire.Wire(server.address) for _ in range(4)]
        files = [os.readlink(f"/proc/{server.pid}/fd/{fd}") for fd in range(3)]
        expect(set(files) == {"/dev/null"}, f"0, 1 and 2 are {files}")
        for connection in held:
            expect(connection.read_frame()[0] == wire.SETTINGS, "it speaks no HTTP/2")
            connection.close()
    finally:
        server.stop()
    return "standard files closed: 0, 1 and 2 are /dev/null"
