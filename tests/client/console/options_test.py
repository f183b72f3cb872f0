"""How the console is started, and what it then allows."""

import contextlib
import http.client
import json
import pathlib
import re
import socket
import ssl
import subprocess
import tempfile
import time
import unittest
from unittest import mock

from abuse import certificates
from client.console.http_console import CACHE, SERVER, HttpConsole
from console.world import ENVIRONMENT, PATIENCE_SECONDS, TIMECACHECTL, virtual_server

PROTOS = pathlib.Path(__file__).resolve().parents[3] / "proto/timecache/v1"
# Those of all methods that change nothing: a later one is refused until it is here, and in
# read_only.cc.
READERS = {
    "TimeCacheService": {"Contains", "Size", "Scan", "WatchExpired", "WatchChanges",
                         "WatchExpiring"},
    "GroupService": {"GetGroup", "ListGroups", "ListMembers", "ListUnsettled"},
    "NamespaceService": {"GetDeaths", "GetHotKeys", "GetNamespace", "GetOwners",
                         "ListNamespaces"},
    "ServerService": {"GetCluster", "GetServer", "ListConnections", "ListSlowCalls", "TailCalls",
                      "WhoAmI"},
}


def methods():
    """(service, method, streams requests) of the API."""
    for path in PROTOS.glob("*.proto"):
        service = None
        for line in path.read_text("utf-8").splitlines():
            if found := re.match(r"service (\w+)", line):
                service = found[1]
            if found := re.match(r"  rpc (\w+)\((stream )?", line):
                yield service, found[1], bool(found[2])


def run(*arguments):
    """The exit code and what it says of a console that does not start."""
    done = subprocess.run([TIMECACHECTL, "console", *arguments], stdin=subprocess.DEVNULL,
                          env=ENVIRONMENT, text=True, capture_output=True, check=False,
                          timeout=PATIENCE_SECONDS)
    return done.returncode, done.stdout + done.stderr


class OptionsTest(unittest.TestCase):
    def refused(self, text, *arguments):
        code, said = run(*arguments)
        self.assertEqual(code, 2, said)
        self.assertIn(text, said)

    def test_read_only_refuses_what_changes_something(self):
        server = self.enterContext(virtual_server())
        console = self.enterContext(HttpConsole(server.address, "--read-only"))
        about = console.request("GET", "/api/console", headers=console.auth).json
        self.assertTrue(about["readOnly"])
        seen = 0
        for service, method, streams in methods():
            if streams:
                continue
            seen += 1
            if method in READERS[service]:
                continue
            answer = console.rpc(f"timecache.v1.{service}/{method}", {})
            self.assertEqual(answer.status, 403, method)
            self.assertIn(method, answer.error["message"])
        self.assertGreater(seen, 35)
        for name in ("Check", "Watch"):
            self.assertEqual(console.rpc(f"grpc.health.v1.Health/{name}", {}).status, 403)
        get = {"namespace": "default", "key": "YQ=="}
        self.assertEqual(console.rpc(f"{CACHE}/Get", get).status, 403)
        self.assertEqual(console.rpc(f"{CACHE}/Get", get | {"touch": True}).status, 403)
        self.assertEqual(console.call(f"{CACHE}/Get", get | {"touch": False}), {})
        self.assertEqual(console.call(f"{CACHE}/Size", {"namespace": "default"})["entries"], "0")
        with console.stream(f"{CACHE}/Scan", {"namespace": "default"}) as lines:
            self.assertEqual(lines.next(), {"end": True})

    def test_starts_without_a_server_and_finds_it_later(self):
        with virtual_server() as server:
            address = server.address
        console = self.enterContext(HttpConsole(address))
        self.assertEqual(console.request("GET", "/").status, 200)
        error = console.rpc(f"{SERVER}/GetServer", {})
        self.assertEqual((error.status, error.error["code"]), (503, "UNAVAILABLE"))
        with console.stream(f"{CACHE}/Scan", {"namespace": "default"}) as lines:
            self.assertEqual(lines.next()["error"]["code"], "UNAVAILABLE")
        self.enterContext(virtual_server(listen=address))
        until = time.monotonic() + PATIENCE_SECONDS
        while console.rpc(f"{SERVER}/GetServer", {}).status != 200:
            self.assertLess(time.monotonic(), until)

    def test_calls_the_address_of_several_that_answers(self):
        server = self.enterContext(virtual_server())
        for method in ("Size", "Scan"):
            console = self.enterContext(HttpConsole(f"127.0.0.1:1,{server.address}"))
            request = {"namespace": "default"}
            if method == "Size":
                self.assertEqual(console.call(f"{CACHE}/Size", request)["entries"], "0")
                continue
            # A stream fails once: the page makes it again.
            with console.stream(f"{CACHE}/Scan", request) as lines:
                self.assertEqual(lines.next()["error"]["code"], "UNAVAILABLE")
            with console.stream(f"{CACHE}/Scan", request) as lines:
                self.assertEqual(lines.next(), {"end": True})

    def test_ends_at_once_with_streams_open(self):
        server = self.enterContext(virtual_server())
        with HttpConsole(server.address) as console:
            streams = [self.enterContext(console.stream(
                f"{CACHE}/WatchExpired", {"namespaces": ["default"]})) for _ in range(5)]
            for stream in streams:
                stream.next()
            idle = self.enterContext(console.connect())
            console.process.terminate()
            # Silent streams, and time-outs of seconds, do not hold it up.
            self.assertEqual(console.process.wait(PATIENCE_SECONDS), 0)
            # Reset where the console had not accepted it yet.
            with contextlib.suppress(ConnectionResetError):
                self.assertEqual(idle.recv(1), b"")
            for stream in streams:
                # It ends, in good order or not.
                with contextlib.suppress(http.client.HTTPException, ConnectionError):
                    while stream.raw():
                        pass

    def test_port_in_use_is_named(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            self.refused(f"timecachectl: cannot listen on {address}: the port is in use",
                         "--listen", address)

    def test_other_machines_need_tls_and_a_name(self):
        self.refused("takes TLS: give --tls-certificate and --tls-key", "--listen", "0.0.0.0:0")
        self.refused("takes TLS", "--listen", "192.0.2.1:7173")
        self.refused("takes TLS", "--listen", "console.example:7173")
        self.refused("needs --host", "--listen", "0.0.0.0:0", "--tls-certificate", "a",
                     "--tls-key", "b")
        self.refused("--tls-key", "--tls-certificate", "a")
        for listen in ("7173", "unix:/tmp/a", "127.0.0.1", "127.0.0.1:99999", "127.0.0.1:-1"):
            self.refused("--listen", "--listen", listen)
        self.refused("no certificate", "--tls-certificate", "/dev/null", "--tls-key", "/dev/null")

    def test_tls(self):
        directory = self.enterContext(tempfile.TemporaryDirectory())
        files = certificates.make(directory)
        token = pathlib.Path(directory, "token")
        token.write_text("a-token-of-20-letters\n")
        server = self.enterContext(virtual_server())
        process = self.enterContext(subprocess.Popen(
            [TIMECACHECTL, "--address", server.address, "--json", "console", "--listen",
             "0.0.0.0:0", "--host", "localhost", "--tls-certificate", files["server_cert"],
             "--tls-key", files["server_key"], "--login-token-file", str(token)],
            stdout=subprocess.PIPE, env=ENVIRONMENT))
        self.addCleanup(process.terminate)
        url = json.loads(process.stdout.readline())["url"]
        # What is in a file does not get into a log.
        port = int(re.fullmatch(r"https://localhost:(\d+)/", url)[1])
        trust = ssl.create_default_context(cafile=files["ca"])
        trust.maximum_version = ssl.TLSVersion.TLSv1_3
        connection = http.client.HTTPSConnection("localhost", port, context=trust,
                                                 timeout=PATIENCE_SECONDS)
        self.addCleanup(connection.close)
        auth = {"Authorization": "Bearer a-token-of-20-letters", "Content-Type": "application/json"}
        value = "YWFh" * (1 << 18)
        for path, body in (("Put", {"value": value}), ("Get", {})):
            connection.request("POST", f"/api/rpc/{CACHE}/{path}", json.dumps(
                {"namespace": "default", "key": "YQ=="} | body), auth)
            response = connection.getresponse()
            answer = json.loads(response.read())
            self.assertEqual(response.status, 200, answer)
        self.assertEqual(answer["entry"]["value"], value)
        plain = http.client.HTTPConnection("localhost", port, timeout=PATIENCE_SECONDS)
        self.addCleanup(plain.close)
        with self.assertRaises((ConnectionError, http.client.HTTPException)):
            plain.request("GET", "/")
            plain.getresponse()
        process.terminate()
        self.assertEqual(process.wait(PATIENCE_SECONDS), 0)

    def test_login_token_must_be_long(self):
        with tempfile.NamedTemporaryFile("w") as token:
            for text in ("", "short\n", "a" * 513, "two words of a token"):
                token.seek(0)
                token.truncate()
                token.write(text)
                token.flush()
                self.refused("login token", "--login-token-file", token.name)
        self.refused("/nonexistent", "--login-token-file", "/nonexistent")

    def test_open_hides_the_token_from_other_users(self):
        server = self.enterContext(virtual_server())
        directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        opener = directory / "xdg-open"
        opener.write_text('#!/bin/sh\nls -l "$1" >"$OPENED.part"\ncat "$1" >>"$OPENED.part"\n'
                          'mv "$OPENED.part" "$OPENED"\n')
        opener.chmod(0o700)
        opened = directory / "opened"
        self.enterContext(mock.patch.dict(ENVIRONMENT, {
            "PATH": f"{directory}:/usr/bin:/bin", "OPENED": str(opened),
            "XDG_RUNTIME_DIR": str(directory)}))
        with HttpConsole(server.address, "--open") as console:
            until = time.monotonic() + PATIENCE_SECONDS
            while not opened.exists():
                self.assertLess(time.monotonic(), until)
                time.sleep(0.01)
            text = opened.read_text()
            self.assertTrue(text.startswith("-rw------- "), text)
            self.assertIn(console.url, text)
        self.assertEqual({path.name for path in directory.iterdir()}, {"xdg-open", "opened"})


if __name__ == "__main__":
    unittest.main()
