"""A well-behaved client in a process of its own: puts, gets and a watch.

Standard input: a line asks for a check; its end, for the end. Standard output: a line
of JSON for each check. It goes on by itself meanwhile, and connects again if need be.
"""

import json
import queue
import socket
import sys
import threading
import time

import h2.config
import h2.connection
import h2.events

from abuse import messages, wire

STEP_SECONDS = 0.02
TTL_SECONDS = 0.5
PATIENCE_SECONDS = 60
# The field of ExpiredEvent.
DEATH_TIME = 7


class CallFailed(Exception):
    """A call that ended with an error, or a connection that did."""


class Channel:
    """One connection, one call at a time."""

    def __init__(self, address, tls=None, token=None):
        host, port = address.rsplit(":", 1)
        self.extra = [("authorization", f"Bearer {token}")] if token else []
        self.socket = socket.create_connection((host, int(port)), PATIENCE_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            self.socket = wire.client_context(tls).wrap_socket(
                self.socket, server_hostname="localhost")
        self.scheme = "https" if tls else "http"
        self.http = h2.connection.H2Connection(h2.config.H2Configuration(
            client_side=True, header_encoding="utf-8"))
        self.http.initiate_connection()
        self._flush()

    def close(self):
        self.socket.close()

    def _flush(self):
        self.socket.sendall(self.http.data_to_send())

    def start(self, method, body=None):
        stream = self.http.get_next_available_stream_id()
        self.http.send_headers(stream, wire.request_headers(
            method if method.startswith("/") else wire.SERVICE + method,
            self.extra, {":scheme": self.scheme}))
        if body is not None:
            self.send(stream, body, end=True)
        self._flush()
        return stream

    def send(self, stream, body, end=False):
        self.http.send_data(stream, wire.message(body), end_stream=end)
        self._flush()

    def messages(self, stream):
        """The answers, as they come."""
        buffer = b""
        while True:
            data = self.socket.recv(1 << 16)
            if not data:
                raise CallFailed("connection closed")
            for event in self.http.receive_data(data):
                if isinstance(event, h2.events.DataReceived):
                    self.http.acknowledge_received_data(
                        event.flow_controlled_length, event.stream_id)
                    buffer += event.data
                elif isinstance(event, (h2.events.TrailersReceived,
                                        h2.events.ResponseReceived)):
                    headers = dict(event.headers)
                    if headers.get("grpc-status", "0") != "0":
                        raise CallFailed(f"status {headers['grpc-status']} "
                                         f"{headers.get('grpc-message')}")
                    if headers.get(":status", "200") != "200":
                        raise CallFailed(f"http {headers[':status']}")
                elif isinstance(event, (h2.events.StreamReset,
                                        h2.events.ConnectionTerminated)):
                    raise CallFailed(repr(event))
                elif isinstance(event, h2.events.StreamEnded):
                    self._flush()
                    yield from self._cut(buffer)[0]
                    return
            self._flush()
            whole, buffer = self._cut(buffer)
            yield from whole

    @staticmethod
    def _cut(buffer):
        whole = []
        while len(buffer) >= 5:
            length = int.from_bytes(buffer[1:5], "big")
            if len(buffer) < 5 + length:
                break
            whole.append(buffer[5:5 + length])
            buffer = buffer[5 + length:]
        return whole, buffer

    def call(self, method, body):
        answer = None
        for answer in self.messages(self.start(method, body)):
            pass
        if answer is None:
            raise CallFailed("no answer")
        return answer


class Honest:
    """Two threads: calls, and the watch."""

    def __init__(self, address, tls=None, token=None):
        self.address, self.tls, self.token = address, tls, token
        self.lock = threading.Lock()
        self.latencies_ms, self.failures, self.problems = [], [], []
        self.late_ms = []
        self.events = 0
        self.watched = queue.SimpleQueue()
        self.calls = 0
        for loop in (self._calls, self._watch):
            threading.Thread(target=loop, daemon=True).start()

    def _again(self, what):
        """Connects until the process ends."""
        while True:
            channel = None
            try:
                channel = Channel(self.address, self.tls, self.token)
                what(channel)
            except Exception as error:  # pylint: disable=broad-except
                with self.lock:
                    self.failures.append(f"{type(error).__name__}: {error}"[:200])
                if channel is not None:
                    channel.close()
                time.sleep(STEP_SECONDS)

    def _calls(self):
        self._again(self._call_on)

    def _call_on(self, channel):
        while True:
            self.calls += 1
            key = b"honest%d" % self.calls
            began = time.monotonic()
            channel.call("Put", messages.put(key, key, TTL_SECONDS))
            entry = messages.parse(channel.call("Get", messages.get(key)))
            if not entry:
                # Gone before it was read: right only if its time was up.
                if time.monotonic() - began < TTL_SECONDS:
                    self.problems.append(f"{key} died early")
            elif (2, key) not in messages.parse(entry[0][1]):
                self.problems.append(f"{key} has another value")
            with self.lock:
                self.latencies_ms.append((time.monotonic() - began) * 500)
            time.sleep(STEP_SECONDS)

    def _watch(self):
        self._again(self._watch_on)

    def _watch_on(self, channel):
        for answer in channel.messages(channel.start("WatchExpired", messages.watch())):
            for number, value in messages.parse(answer):
                if number == 2:
                    event = dict(messages.parse(value))
                    key = event[2]
                    if key.startswith(b"honest"):
                        self.events += 1
                        died = messages.seconds(event[DEATH_TIME])
                        self.late_ms.append((time.time() - died) * 1000)
                        self.watched.put(int(key[6:]))

    def check(self):
        """A call that begins now is answered, and its entry's death is told."""
        until = time.monotonic() + PATIENCE_SECONDS
        wanted = self.calls + 2
        alive = False
        while not alive and time.monotonic() < until:
            try:
                alive = self.watched.get(timeout=0.5) >= wanted
            except queue.Empty:
                pass
        with self.lock:
            times = sorted(self.latencies_ms) or [0]
            late = sorted(self.late_ms) or [0]
            answer = {
                "alive": alive, "calls": len(self.latencies_ms), "events": self.events,
                "failures": self.failures, "problems": self.problems,
                "p50_ms": times[len(times) // 2], "p99_ms": times[len(times) * 99 // 100],
                "max_ms": times[-1],
                "late_p99_ms": late[len(late) * 99 // 100], "late_max_ms": late[-1],
            }
            self.latencies_ms, self.failures, self.late_ms = [], [], []
            self.events = 0
        return answer


def main():
    honest = Honest(sys.argv[1], **json.loads(sys.argv[2]))
    for _ in sys.stdin:
        print(json.dumps(honest.check()), flush=True)


if __name__ == "__main__":
    main()
