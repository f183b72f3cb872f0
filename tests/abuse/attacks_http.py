"""The HTTP port: it must not be a way to stop the server or its probes."""

import collections
import socket
import threading
import time

from abuse.attack import attack
from abuse.processes import expect, wait_until

HTTP = "http: {address: 127.0.0.1:0}\n"
READ_SECONDS = 30


def _connect(world, patience=READ_SECONDS):
    host, port = world.server.started["http"].rsplit(":", 1)
    one = socket.create_connection((host, int(port)), patience)
    return one


def _answer(connection):
    """The status line, or how it ended."""
    data = b""
    try:
        while b"\r\n" not in data:
            part = connection.recv(4096)
            if not part:
                break
            data += part
    except socket.timeout:
        return "silence"
    except ConnectionError:
        return "reset"
    return data.split(b"\r\n")[0].decode(errors="replace") or "closed"


def _ask(world, request=b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"):
    with _connect(world) as connection:
        try:
            connection.sendall(request)
        except ConnectionError:
            return "reset"
        return _answer(connection)


def _probe(world):
    wait_until(lambda: "200" in _ask(world), "the probe is answered")


@attack(config=HTTP)
def http_slow(world):
    """Requests that never end, on as many connections as it has threads, and more."""
    count = world.scale(50, 1_000)
    slow = [_connect(world) for _ in range(count)]
    for connection in slow:
        try:
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: ")
        except ConnectionError:
            pass
    _probe(world)
    for connection in slow:
        connection.close()
    return f"{count} HTTP requests never ended, and a probe is answered"


@attack(config=HTTP)
def http_connections(world):
    count = world.scale(200, 1_000)
    held = [_connect(world) for _ in range(count)]
    threads = world.server.usage()["threads"]
    _probe(world)
    for connection in held:
        connection.close()
    return f"{count} idle HTTP connections: {threads} threads, and a probe is answered"


@attack(config=HTTP)
def http_requests(world):
    """Huge, malformed and pipelined requests."""
    requests = {
        "a line of 1 MiB": b"GET /" + b"a" * (1 << 20) + b" HTTP/1.1\r\n\r\n",
        "10,000 headers": b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 10_000 + b"\r\n",
        "a header of 1 MiB": b"GET / HTTP/1.1\r\na: " + b"b" * (1 << 20) + b"\r\n\r\n",
        "a body of 4 GiB": b"POST /metrics HTTP/1.1\r\nContent-Length: 4294967296\r\n\r\nx",
        "chunks": b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFF\r\nx",
        "a way out": b"GET /../../../../etc/passwd HTTP/1.1\r\nHost: a\r\n\r\n",
        "a range": b"GET /metrics HTTP/1.1\r\nHost: a\r\nRange: bytes=" +
                   b"0-0," * 1000 + b"\r\n\r\n",
        "noise": bytes(range(256)) * 16,
        "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "DELETE": b"DELETE /metrics HTTP/1.1\r\nHost: a\r\n\r\n",
    }
    said = collections.Counter()
    for name, request in requests.items():
        said[" ".join(_ask(world, request).split()[:2])] += 1
        expect(world.server.alive(), f"the server died of: {name}")
    _probe(world)
    return f"{len(requests)} wrong HTTP requests: {dict(said)}"


NAMESPACES = "namespaces: [{name: abuse, options: {ttl: 5s, num_buckets: 101}}, %s]\n"
SCRAPED = HTTP + "listeners: [{address: '127.0.0.1:0'}]\nlog: {level: info, format: json}\n" + \
    NAMESPACES % ", ".join(f"{{name: n{i}}}" for i in range(1_000))


@attack(config=SCRAPED, max_p99_ratio=10)
def http_scrapes(world):
    """/metrics of 1,000 namespaces, by four clients as fast as they can."""
    stopped = threading.Event()
    said = collections.Counter()

    def scrape():
        while not stopped.is_set():
            try:
                with _connect(world) as connection:
                    connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
                    said[_answer(connection).split(" ")[1]] += 1
                    while connection.recv(1 << 16):
                        pass
            except OSError as error:
                said[type(error).__name__] += 1

    expect("200" in _ask(world, b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"),
           "a scrape is answered")
    before, began = world.server.usage()["cpu_s"], time.monotonic()
    threads = [threading.Thread(target=scrape, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(world.scale(2, 10))
    _probe(world)
    stopped.set()
    for thread in threads:
        thread.join()
    took = time.monotonic() - began
    expect(set(said) == {"200"}, f"scrapes were refused: {dict(said)}")
    used = (world.server.usage()["cpu_s"] - before) / took
    return f"scrapes of 1,000 namespaces by four: {dict(said)} in {took:.1f} s, " \
           f"{used:.2f} of a core"
