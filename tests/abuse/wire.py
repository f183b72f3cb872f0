"""HTTP/2 frames by hand, as no well-behaved library would send them."""

import itertools
import socket
import ssl
import struct
import time

import hpack

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
PATIENCE_SECONDS = 60
SERVICE = "/timecache.v1.TimeCacheService/"
NAMESPACE = "abuse"

DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONT = range(10)
END_STREAM, END_HEADERS = 0x1, 0x4


def frame(kind, flags, stream, body=b""):
    return struct.pack(">I", len(body))[1:] + bytes((kind, flags)) + struct.pack(
        ">I", stream) + body


def settings(pairs=(), ack=False):
    body = b"".join(struct.pack(">HI", key, value) for key, value in pairs)
    return frame(SETTINGS, 1 if ack else 0, 0, body)


def request_headers(path, extra=(), replace=None):
    """The header list of a gRPC call; `replace` changes or (None) drops some."""
    wanted = {
        ":method": "POST", ":scheme": "http", ":path": path, ":authority": "abuse",
        "content-type": "application/grpc", "te": "trailers",
    }
    wanted.update(replace or {})
    return [(k, v) for k, v in wanted.items() if v is not None] + list(extra)


def block(headers):
    """Without a dynamic table: any number of them may be sent in any order."""
    encoder = hpack.Encoder()
    encoder.header_table_size = 0
    # An update of the table's size comes first: cut it off.
    encoder.table_size_changes = []
    return encoder.encode([hpack.NeverIndexedHeaderTuple(k, v) for k, v in headers])


def literal(name, value):
    """One header, neither compressed nor indexed."""
    name, value = name.encode(), value if isinstance(value, bytes) else value.encode()
    return b"\x00" + integer(len(name), 7) + name + integer(len(value), 7) + value


def integer(value, bits, first=0):
    """HPACK's integer with a prefix of so many bits."""
    most = (1 << bits) - 1
    if value < most:
        return bytes((first | value,))
    out, value = bytearray((first | most,)), value - most
    while value >= 128:
        out.append(value % 128 | 128)
        value //= 128
    out.append(value)
    return bytes(out)


def message(body, compressed=False, length=None):
    """gRPC's frame of one message."""
    return struct.pack(">BI", compressed, len(body) if length is None else length) + body


def call_frames(stream, method, body, **headers):
    """A whole unary call."""
    data = message(body)
    out = frame(HEADERS, END_HEADERS, stream,
                block(request_headers(SERVICE + method, **headers)))
    while len(data) > 16384:
        out += frame(DATA, 0, stream, data[:16384])
        data = data[16384:]
    return out + frame(DATA, END_STREAM, stream, data)


_sources = itertools.cycle(f"127.0.0.{host}" for host in range(2, 250))


def next_source():
    """Another address of this machine's each time: the server paces each by itself. The
    honest client has 127.0.0.1."""
    return next(_sources)


class Closed(Exception):
    """The server has closed the connection."""


def client_context(tls):
    """Of {"ca": FILE, "cert": FILE, "key": FILE}; the client's own may be missing."""
    context = ssl.create_default_context(cafile=tls["ca"])
    context.set_alpn_protocols(["h2"])
    if tls.get("cert"):
        context.load_cert_chain(tls["cert"], tls["key"])
    return context


class Wire:
    """One connection. Reads come whole frames; writes go as they are."""

    def __init__(self, address, source=None, greet=True, window=None, tls=None):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection(
            (host, int(port)), PATIENCE_SECONDS, (source, 0) if source else None)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            self.socket = client_context(tls).wrap_socket(
                self.socket, server_hostname="localhost")
        self.buffer = b""
        self.decoder = hpack.Decoder()
        self.decoder.max_allowed_table_size = 1 << 20
        self.decoder.max_header_list_size = 1 << 20
        self.greet = greet
        if greet:
            self.send(PREFACE + settings(() if window is None else ((4, window),)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def close(self):
        self.socket.close()

    def send(self, data):
        """Raises Closed if nobody takes it."""
        try:
            self.socket.sendall(data)
        except OSError as error:
            raise Closed(str(error)) from error

    def read_frame(self, patience=PATIENCE_SECONDS):
        """(kind, flags, stream, body); acknowledges SETTINGS and PING."""
        until = time.monotonic() + patience
        while True:
            if len(self.buffer) >= 9:
                length = int.from_bytes(self.buffer[:3], "big")
                if len(self.buffer) >= 9 + length:
                    kind, flags = self.buffer[3], self.buffer[4]
                    stream = int.from_bytes(self.buffer[5:9], "big") & 0x7FFFFFFF
                    body = self.buffer[9:9 + length]
                    self.buffer = self.buffer[9 + length:]
                    self._answer(kind, flags, body)
                    return kind, flags, stream, body
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError("no frame came")
            self.socket.settimeout(left)
            try:
                data = self.socket.recv(1 << 16)
            except socket.timeout:
                raise TimeoutError("no frame came") from None
            except OSError as error:
                raise Closed(str(error)) from error
            finally:
                self.socket.settimeout(PATIENCE_SECONDS)
            if not data:
                raise Closed("end of stream")
            self.buffer += data

    def wait_for_settings(self):
        """Until both sides have acknowledged the other's: now they hold."""
        acknowledged = theirs = False
        while not (acknowledged and theirs):
            kind, flags, _, _ = self.read_frame()
            if kind == SETTINGS:
                acknowledged |= bool(flags & 1)
                theirs |= not flags & 1

    def _answer(self, kind, flags, body):
        if not self.greet:
            return
        try:
            if kind == SETTINGS and not flags & 1:
                self.socket.sendall(settings(ack=True))
            elif kind == PING and not flags & 1:
                self.socket.sendall(frame(PING, 1, 0, body))
        except OSError:
            pass  # What has come is read all the same.

    def drain(self, patience=PATIENCE_SECONDS):
        """Reads until the server closes: its last GOAWAY's code and words, if any."""
        said = "closed"
        try:
            while True:
                kind, _, _, body = self.read_frame(patience)
                if kind == GOAWAY:
                    code = int.from_bytes(body[4:8], "big")
                    said = f"GOAWAY {code} {body[8:].decode(errors='replace')}".strip()
        except Closed:
            return said
        except TimeoutError:
            return "open" if said == "closed" else said + ", open"

    def result(self, stream=1, patience=PATIENCE_SECONDS):
        """How a call ended: "status N MESSAGE", "reset N", "goaway N" or "closed"."""
        try:
            while True:
                kind, flags, at, body = self.read_frame(patience)
                if kind == GOAWAY:
                    return f"goaway {int.from_bytes(body[4:8], 'big')}"
                if kind == HEADERS:
                    headers = dict(self.decoder.decode(body))
                    if at == stream and "grpc-status" in headers:
                        return (f"status {headers['grpc-status']} "
                                f"{headers.get('grpc-message', '')}").strip()
                    if at == stream and flags & END_STREAM:
                        return f"http {headers.get(':status')}"
                if kind == RST and at == stream:
                    return f"reset {int.from_bytes(body, 'big')}"
        except Closed:
            return "closed"
