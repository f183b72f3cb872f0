"""A console and its calls, as a browser makes them."""

import http.client
import json
import socket
import time

from console.world import PATIENCE_SECONDS, Console

CACHE = "timecache.v1.TimeCacheService"
SERVER = "timecache.v1.ServerService"
CLOCK = "timecache.testing.v1.VirtualClockService"

SAFE_HEADERS = {
    "Content-Security-Policy":
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


class Answer:
    """A response that was read to its end."""

    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()
        wrong = {name for name, value in SAFE_HEADERS.items() if self.headers[name] != value}
        wrong |= {name for name in self.headers if name.lower().startswith("access-control-")}
        assert not wrong, wrong

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        return self.json["error"]


class Lines:
    """A response of lines, each JSON, as it comes."""

    def __init__(self, connection, response):
        self.connection = connection
        self.response = response

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # As a browser that leaves.
        self.response.close()
        self.connection.close()

    def raw(self):
        return self.response.readline()

    def next(self):
        """The next line that is not empty; None at the end."""
        while True:
            line = self.raw()
            if not line:
                return None
            if line.strip():
                return json.loads(line)


class HttpConsole(Console):
    """A Console that must end well."""

    def __enter__(self):
        super().__enter__()
        self.token = self.url.partition("#token=")[2]
        self.host = self.origin.partition("://")[2]
        self.port = int(self.host.rpartition(":")[2])
        self.auth = {"Authorization": f"Bearer {self.token}"}
        return self

    def __exit__(self, *arguments):
        super().__exit__(*arguments)
        assert self.process.returncode == 0, self.process.returncode

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), PATIENCE_SECONDS)

    def _send(self, method, path, body, headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)
        connection.putrequest(method, path, skip_host="Host" in headers, skip_accept_encoding=True)
        if body is not None:
            headers = {"Content-Length": len(body), "Content-Type": "application/json"} | headers
        for name, value in headers.items():
            if value is not None:
                connection.putheader(name, value)
        connection.endheaders(body)
        return connection, connection.getresponse()

    def request(self, method, path, body=None, headers=None):
        """Without the token, unless headers have it."""
        connection, response = self._send(method, path, body, headers or {})
        try:
            return Answer(response)
        finally:
            connection.close()

    def raw(self, request):
        """The status with which it answers these bytes; 0: by closing the connection."""
        with self.connect() as connection:
            try:
                connection.sendall(request)
                answer = connection.recv(1 << 16)
            except ConnectionError:
                return 0
            return int(answer.split()[1]) if answer else 0

    def rpc(self, method, request, headers=None):
        body = request if isinstance(request, bytes) else json.dumps(request).encode()
        return self.request("POST", f"/api/rpc/{method}", body, self.auth | (headers or {}))

    def call(self, method, request):
        """The response of a call that must succeed."""
        answer = self.rpc(method, request)
        assert answer.status == 200, answer.body
        return answer.json

    def stream(self, method, request):
        connection, response = self._send("POST", f"/api/rpc/{method}",
                                          json.dumps(request).encode(), self.auth)
        if response.status != 200:
            answer = Answer(response)
            connection.close()
            raise AssertionError(answer.body)
        return Lines(connection, response)

    def await_open_calls(self, count):
        """Waits until the server has so many calls of the console, beside this one."""
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            connections = self.call(f"{SERVER}/ListConnections", {})["connections"]
            now = sum(int(each["openCalls"]) for each in connections) - 1
            if now == count:
                return
            assert time.monotonic() < until, f"{now} open calls, and not {count}"
            time.sleep(0.01)
