"""RPCs through the console: JSON, streams, their ends and their limits."""

import base64
import json
import socket
import unittest

from client.console.http_console import CACHE, CLOCK, SERVER, HttpConsole
from console.world import virtual_server

STREAMS_MAX = 24


def key(text):
    return base64.b64encode(text.encode()).decode()


class RpcTest(unittest.TestCase):
    def setUp(self):
        self.server = self.enterContext(virtual_server())
        self.console = self.enterContext(HttpConsole(self.server.address, "--timeout", "1h"))

    def put(self, name, value="v"):
        return self.console.call(f"{CACHE}/Put", {
            "namespace": "default", "key": key(name), "value": key(value)})

    def get(self, name):
        return self.console.call(f"{CACHE}/Get", {"namespace": "default", "key": key(name)})

    def watch(self, **request):
        return self.console.stream(f"{CACHE}/WatchExpired", {"namespaces": ["default"]} | request)

    def error(self, method, request, status):
        answer = self.console.rpc(method, request)
        self.assertEqual(answer.status, status, answer.body)
        self.assertEqual(answer.headers.get_content_type(), "application/json")
        return answer.error

    def test_messages_are_proto3_json(self):
        self.assertEqual(self.put("a", "<b>&\u2028é"), {"version": "1"})
        entry = self.get("a")["entry"]
        self.assertEqual(base64.b64decode(entry["value"]).decode(), "<b>&\u2028é")
        self.assertEqual(entry["version"], "1")
        self.assertEqual(entry["omittedValueBytes"], "0")
        self.assertEqual(entry["deadline"], "1970-01-01T00:00:30Z")
        about = self.console.request("GET", "/api/console", headers=self.console.auth).json
        self.assertEqual(about.pop("version"), self.console.call(f"{SERVER}/GetServer", {})["version"])
        self.assertEqual(about, {"address": self.server.address, "context": "", "readOnly": False})

    def test_markup_stays_text(self):
        markup = "<img src=x onerror=alert(1)></script>"
        self.put(markup, markup)
        answer = self.console.rpc(f"{CACHE}/Get", {"namespace": "default", "key": key(markup)})
        self.assertNotIn(b"<", answer.body)
        # Each answer is JSON, which no browser takes for a page.
        self.assertIn(markup, self.error(f"{CACHE}/Get", {markup: 1}, 400)["message"])
        self.error(f"{CACHE}/{markup.replace(' ', '%20')}", {}, 501)

    def test_large_values_pass(self):
        value = "x" * (1 << 20)
        self.put("large", value)
        self.assertEqual(base64.b64decode(self.get("large")["entry"]["value"]).decode(), value)
        with self.console.stream(f"{CACHE}/Scan", {"namespace": "default"}) as lines:
            (entry,) = lines.next()["message"]["entries"]
            self.assertEqual(base64.b64decode(entry["value"]).decode(), value)
            self.assertEqual(lines.next(), {"end": True})
            self.assertIsNone(lines.next())

    def test_errors_are_the_servers(self):
        error = self.error(f"{CACHE}/Get", {"namespace": "no", "key": key("a")}, 404)
        self.assertEqual(error, {"code": "NOT_FOUND", "reason": "NAMESPACE_NOT_FOUND",
                                 "message": "namespace no does not exist", "metadata": {}})
        error = self.error(f"{CACHE}/Put", {"namespace": "default", "key": "", "value": ""}, 400)
        self.assertEqual(error["code"], "INVALID_ARGUMENT")
        self.assertIn("key", error["message"])

    def test_malformed_json_names_the_field(self):
        for request, field in ((b'{"namespace": 1}', "namespace"), (b'{"kez": "YQ=="}', "kez"),
                               (b'{"namespace": "a", "key": "*"}', "key"),
                               (b'{"touch": "maybe"}', "touch"), (b'{"key": ["YQ=="]}', "key")):
            error = self.error(f"{CACHE}/Get", request, 400)
            self.assertEqual(error["code"], "INVALID_ARGUMENT")
            self.assertIn(field, error["message"])
        for request in (b"", b"{", b"[]", b"null", b'"a"', b"\xff", b"{}{}", b"[" * 100_000,
                        b'{"a":' * 100_000):
            error = self.error(f"{CACHE}/Put", request, 400)
            self.assertIn("request", error["message"])

    def test_there_are_the_methods_of_the_services_alone(self):
        for method in ("timecache.v1.TimeCacheService/Nothing", "timecache.v1.Nothing/Get", "",
                       "/", "timecache.v1.TimeCacheService.Get", "timecache.v1.TimeCacheService",
                       "timecache.v1.TimeCacheService/Get/", "timecache/v1.TimeCacheService.Get",
                       f"{CACHE}/Pipeline"):
            self.error(method, {}, 501)

    def test_stream_has_what_dies_at_its_time(self):
        with self.watch() as lines:
            self.assertEqual(lines.next()["message"]["events"], [])
            self.put("a")
            self.put("b")
            self.console.call(f"{CLOCK}/Advance", {"by": "60s"})
            keys = []
            while len(keys) < 2:
                keys += [event["key"] for event in lines.next()["message"]["events"]]
            self.assertEqual(sorted(keys), [key("a"), key("b")])

    def test_stream_that_fails_says_why(self):
        with self.console.stream(f"{CACHE}/WatchExpired", {"namespaces": ["no"]}) as lines:
            self.assertEqual(lines.next()["error"]["reason"], "NAMESPACE_NOT_FOUND")
            self.assertIsNone(lines.next())

    def test_silent_stream_has_empty_lines(self):
        with self.watch(heartbeatInterval="60s") as lines:
            lines.next()
            self.assertEqual(lines.raw(), b"\n")

    def test_call_ends_when_the_browser_leaves(self):
        self.console.await_open_calls(0)
        with self.watch() as lines:
            lines.next()
            self.console.await_open_calls(1)
        self.console.await_open_calls(0)
        # A unary call that waits.
        body = json.dumps({"namespace": "default", "group": "g", "maxEvents": 1,
                           "wait": "60s"}).encode()
        with self.console.connect() as connection:
            connection.sendall(
                (f"POST /api/rpc/{CACHE}/FetchExpired HTTP/1.1\r\nHost: localhost\r\n"
                 f"Authorization: Bearer {self.console.token}\r\nContent-Length: {len(body)}\r\n"
                 "Content-Type: application/json\r\n\r\n").encode() + body)
            self.console.await_open_calls(1)
            connection.shutdown(socket.SHUT_RDWR)
        self.console.await_open_calls(0)

    def test_streams_are_bounded_and_leave_room_for_calls(self):
        streams = [self.enterContext(self.watch()) for _ in range(STREAMS_MAX)]
        for stream in streams:
            stream.next()
        request = {"namespaces": ["default"]}
        error = self.error(f"{CACHE}/WatchExpired", request, 503)
        self.assertIn("24 streams", error["message"])
        # Beside others that only hold connections, too.
        for _ in range(200):
            self.enterContext(self.console.connect())
        self.put("a")
        streams[0].__exit__()
        self.console.await_open_calls(STREAMS_MAX - 1)
        # The place is free once the console has noticed, too.
        while self.console.rpc(f"{CACHE}/Scan", {"namespace": "default"}).status != 200:
            pass

    def test_slow_reader_slows_its_stream_alone(self):
        with self.watch() as slow, self.watch() as fast:
            slow.next()
            fast.next()
            value = "x" * (1 << 19)
            got = 0
            for batch in range(12):
                for i in range(10):
                    self.put(f"{batch}-{i}", value)
                self.console.call(f"{CLOCK}/Advance", {"by": "60s"})
                while got < 10 * (batch + 1):
                    got += len(fast.next()["message"]["events"])
            late = 0
            while late < got:
                message = slow.next()["message"]
                late += len(message["events"]) + int(message["lost"])
            self.assertEqual(late, got)


if __name__ == "__main__":
    unittest.main()
