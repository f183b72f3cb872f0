"""TLS: handshakes that never end, and peers that should not be there."""

import socket
import ssl
import tempfile
import time

from abuse import certificates, messages, wire
from abuse.attack import attack
from abuse.processes import Honest, Server, expect
from abuse.wire import Closed, Wire

HELLO = bytes.fromhex("16030100c8010000c40303") + b"\x5a" * 100


class TlsServer:
    """A server that wants a client's certificate, and an honest client that has one."""

    def __init__(self, world):
        self.directory = tempfile.TemporaryDirectory(prefix="timecached-abuse-")
        self.tls = certificates.make(self.directory.name)
        self.server = self.honest = None
        try:
            self.server = Server(world.binary, config=f"""\
listeners:
  - address: 127.0.0.1:0
    tls:
      certificate_file: {self.tls['server_cert']}
      key_file: {self.tls['server_key']}
      client_ca_file: {self.tls['ca']}
namespaces: [{{name: abuse}}]
log: {{level: info, format: json}}
""")
            self.honest = Honest(self.server.address, self.tls)
            self.honest.check()
        except BaseException:
            self.stop()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def connect(self):
        host, port = self.server.address.rsplit(":", 1)
        return socket.create_connection(
            (host, int(port)), wire.PATIENCE_SECONDS, (wire.next_source(), 0))

    def check(self):
        checked = self.honest.check()
        expect(not checked["failures"], f"{checked['failures'][:2]}")
        self.server.expect_alive()
        usage = self.server.usage()
        return f"honest: {checked['calls']} puts+gets, max {checked['max_ms']:.0f} ms; " \
               f"server: RSS {usage['rss_mib']} MiB, {usage['threads']} threads, " \
               f"CPU {usage['cpu_s']:.1f} s"

    def stop(self):
        if self.honest is not None:
            self.honest.stop()
        if self.server is not None:
            self.server.stop()
        self.directory.cleanup()


@attack(alone=True)
def tls_handshakes_never_ended(world):
    with TlsServer(world) as target:
        count = world.scale(50, 1_000)
        slow = [target.connect() for _ in range(count)]
        for connection in slow:
            connection.sendall(HELLO)
        time.sleep(world.scale(0.5, 5))
        said = target.check()
        for connection in slow:
            connection.close()
        return f"{count} TLS handshakes begun and never ended. {said}"


@attack(alone=True)
def tls_handshake_flood(world):
    """Whole handshakes of one address, each of which costs the server a signature."""
    with TlsServer(world) as target:
        count, began = world.scale(100, 1_000), time.monotonic()
        for _ in range(count):
            Wire(target.server.address, "127.0.0.2", tls=target.tls, greet=False).close()
        took = time.monotonic() - began
        return f"{count} TLS handshakes, {count / took:.0f} a second. {target.check()}"


def _refused(target, what, connect):
    """Neither a call's answer nor an open connection comes of it."""
    try:
        with connect() as connection:
            connection.send(wire.PREFACE + wire.settings() +
                            wire.call_frames(1, "Put", messages.put(b"k", b"v")))
            said = connection.result(patience=5)
        expect(said == "closed" or said.startswith("goaway"), f"{what}: {said}")
    except (OSError, Closed):
        pass  # Not even a handshake.
    target.server.expect_alive()


@attack(alone=True)
def tls_strangers(world):
    with TlsServer(world) as target, tempfile.TemporaryDirectory() as other:
        address = target.server.address
        stranger = certificates.make(other)
        ca = target.tls["ca"]
        cases = {
            "plain text": lambda: Wire(address, greet=False),
            "no certificate": lambda: Wire(address, tls={"ca": ca}, greet=False),
            "another CA's certificate": lambda: Wire(
                address, tls={**stranger, "ca": ca}, greet=False),
        }
        for what, connect in cases.items():
            _refused(target, what, connect)
        for version in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
            context = wire.client_context(target.tls)
            context.set_ciphers("ALL:@SECLEVEL=0")
            context.minimum_version = context.maximum_version = version
            try:
                context.wrap_socket(target.connect(), server_hostname="localhost")
                expect(False, f"{version} was accepted")
            except OSError:
                pass
        return f"{', '.join(cases)}, TLS 1.0 and 1.1: refused. {target.check()}"


def _first_call(target, context, session=None):
    """A call over a connection of its own: (what came of it, the session, resumed)."""
    with context.wrap_socket(target.connect(), server_hostname="localhost",
                             session=session) as sock:
        sock.sendall(wire.PREFACE + wire.settings() +
                     wire.call_frames(1, "Put", messages.put(b"k", b"v")))
        # Whatever is answered first, the server's SETTINGS: tickets come before it.
        answered = sock.recv(1 << 14)
        return bool(answered), sock.session, sock.session_reused


@attack(alone=True)
def tls_resumed_after_expiry(world):
    """A session from when the client's certificate was good, brought when it no longer is."""
    seconds = 4
    with TlsServer(world) as target:
        said = []
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            short = certificates.make_short(target.directory.name, target.tls, seconds)
            began = time.monotonic()
            context = wire.client_context(short)
            context.minimum_version = context.maximum_version = version
            answered, session, _ = _first_call(target, context)
            expect(answered, f"{version.name}: no answer with a good certificate")
            # While it is good, too, each connection is a full handshake.
            answered, session, resumed = _first_call(target, context, session)
            expect(answered and not resumed, f"{version.name}: resumed, {answered}")
            time.sleep(max(0, began + seconds + 1.5 - time.monotonic()))
            try:
                answered, _, resumed = _first_call(target, context, session)
                expect(not answered, f"{version.name}: served with an expired certificate, "
                                     f"resumed: {resumed}")
            except (OSError, Closed):
                pass
            said.append(version.name)
        return f"sessions of a certificate that has expired since, {' and '.join(said)}: " \
               f"refused. {target.check()}"
