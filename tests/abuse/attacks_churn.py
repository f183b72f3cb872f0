"""Connections that bring calls and are closed at once, without credentials."""

import hashlib
import socket
import struct
import tempfile
import threading
import time

from abuse import messages, wire
from abuse.attack import attack
from abuse.processes import expect

CALLS = 100
MANY_CALLS = 1_000
# The honest client comes from 127.0.0.1.
ATTACKER = "127.0.0.2"
RESET_ON_CLOSE = struct.pack("ii", 1, 0)
GOAWAY_BYTES = struct.pack(">II", 0, 0)


def _payload(goaway=False, count=CALLS):
    calls = b"".join(wire.call_frames(1 + 2 * i, "Get", messages.get(b"nothing"))
                     for i in range(count))
    away = wire.frame(wire.GOAWAY, 0, 0, GOAWAY_BYTES)
    return wire.PREFACE + wire.settings() + (away if goaway else b"") + calls


TOKEN = "honest-token"
ACCESS = tempfile.NamedTemporaryFile("w", prefix="timecached-abuse-", suffix=".yaml")
ACCESS.write("principals: [{name: honest, token_sha256: [%s]}]\n"
             "rules: [{principals: [honest], namespaces: [abuse], verbs: [read, write, watch]}]"
             "\n" % hashlib.sha256(TOKEN.encode()).hexdigest())
ACCESS.flush()


class Fresh:
    """Honest clients that come anew, from one address, and make one call each."""

    def __init__(self, world, source):
        self.world, self.source = world, source
        self.times, self.failed = [], []
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while not self.stopped.wait(0.05):
            began = time.monotonic()
            try:
                with self.world.connect(source=self.source) as one:
                    one.send(wire.call_frames(1, "Get", messages.get(b"nothing")))
                    while one.read_frame()[0] not in (wire.HEADERS, wire.RST):
                        pass
            except (OSError, wire.Closed) as error:
                self.failed.append(type(error).__name__)
                continue
            self.times.append((time.monotonic() - began) * 1000)

    def stop(self):
        self.stopped.set()
        self.thread.join()

    def __str__(self):
        times = sorted(self.times) or [0]
        return f"{len(times)} new clients from {self.source or '127.0.0.1'}: " \
               f"{len(self.failed)} turned away, p50 {times[len(times) // 2]:.0f} " \
               f"max {times[-1]:.0f} ms"


def _churn(world, payload, close, read, source=lambda: ATTACKER):
    """Opens, sends, closes, for some seconds; says how many came."""
    host, port = world.server.address.rsplit(":", 1)
    others, neighbours = Fresh(world, None), Fresh(world, ATTACKER)
    came = refused = 0
    until = time.monotonic() + world.scale(1.5, 5)
    while time.monotonic() < until:
        try:
            one = socket.create_connection((host, int(port)), 5, (source(), 0))
            came += 1
            one.sendall(payload)
            if read:
                one.recv(1 << 16)
            close(one)
            one.close()
        except OSError:
            refused += 1
    others.stop()
    neighbours.stop()
    expect(not others.failed, f"new clients of another address: {others}")
    return f"{came} connections, {refused} refused. {others}; {neighbours}"


def _reset(one):
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)


def _finish(one):
    one.shutdown(socket.SHUT_WR)


@attack(max_p99_ratio=10)
def calls_then_reset(world):
    return _churn(world, _payload(), _reset, read=False)


@attack(max_p99_ratio=10)
def calls_then_reset_once_greeted(world):
    """Waits until the server has read some of it."""
    return _churn(world, _payload(), _reset, read=True)


@attack(max_p99_ratio=20)
def many_calls_then_reset(world):
    """Five connections come at once, before any of their calls is found to be in vain."""
    return _churn(world, _payload(count=MANY_CALLS), _reset, read=True)


@attack(max_p99_ratio=10)
def calls_then_fin(world):
    return _churn(world, _payload(), _finish, read=True)


@attack(max_p99_ratio=10)
def calls_after_goaway(world):
    return _churn(world, _payload(goaway=True), _reset, read=True)


@attack(max_p99_ratio=0, may_disturb=True)
def calls_then_reset_from_many(world):
    """From 248 addresses, each of which stays below its pace for long."""
    return _churn(world, _payload(), _reset, read=True, source=wire.next_source)


@attack(max_p99_ratio=10, token=TOKEN, config=f"access: {{file: {ACCESS.name}}}\n")
def calls_without_credentials(world):
    """100 at a time, on a connection that stays, and on another where it was cut."""
    answered = cut = 0
    until = time.monotonic() + world.scale(1.5, 10)
    calls = [b"".join(wire.call_frames(1 + 2 * (at + i), "Get", messages.get(b"nothing"))
                      for i in range(CALLS)) for at in range(0, 20_000, CALLS)]
    while time.monotonic() < until:
        connection = world.connect(source=ATTACKER)
        connection.socket.settimeout(1)
        try:
            for some in calls:
                connection.send(some)
                ends = 0
                while ends < CALLS and time.monotonic() < until:
                    kind, flags, stream, _ = connection.read_frame(patience=1)
                    ends += stream > 0 and (kind == wire.RST or bool(flags & wire.END_STREAM))
                answered += ends
        except (OSError, wire.Closed):
            cut += 1
        connection.close()
    return f"{answered} calls without credentials answered; cut {cut} times"
