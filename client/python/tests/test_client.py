"""Calls: values, errors, options, retries, security."""

from __future__ import annotations

import asyncio
import hashlib
import pickle
import socket
import subprocess
import time
import unittest
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from server import Server

import timecache
from timecache import Operation
from timecache.types import from_duration, to_duration


class ClientTest(unittest.TestCase):
    server: Server
    client: timecache.Client

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = Server()
        cls.client = timecache.Client(cls.server.address)
        cls.addClassCleanup(cls.server.close)
        cls.addClassCleanup(cls.client.close)

    def test_a_text_stands_for_its_utf_8(self) -> None:
        self.client.put("größe", "größer")
        entry = self.client.get("größe".encode())
        assert entry is not None
        self.assertEqual(
            (entry.key_text, entry.value, entry.text), ("größe", "größer".encode(), "größer")
        )

    def test_json_is_read_and_written(self) -> None:
        self.client.put("json", timecache.encode_json({"total": 42, "ü": [None]}))
        entry = self.client.get("json")
        assert entry is not None
        self.assertEqual(entry.value, '{"total":42,"ü":[null]}'.encode())
        self.assertEqual(entry.json(), {"total": 42, "ü": [None]})

    def test_what_is_neither_bytes_nor_text_is_refused(self) -> None:
        wrong: Any = 5
        with self.assertRaises(TypeError):
            self.client.put("a", wrong)
        with self.assertRaises(TypeError):
            self.client.get(wrong)
        with self.assertRaises(ValueError):
            self.client.put("a", "1", if_absent=True, if_version=1)
        with self.assertRaises(ValueError):
            self.client.combine("a", add=1, xor=1)

    def test_durations_are_exact(self) -> None:
        for given in (timedelta(days=3650, microseconds=1), timedelta(seconds=-1.5)):
            self.assertEqual(from_duration(to_duration(given)), given)
        self.assertEqual(to_duration(0.001).nanos, 1_000_000)
        self.assertEqual((to_duration(-1.5).seconds, to_duration(-1.5).nanos), (-1, -500_000_000))

    def test_errors_have_what_the_server_said(self) -> None:
        client = self.client.with_options(
            request_id="req-7", traceparent="00-" + "1" * 32 + "-" + "2" * 16 + "-01"
        )
        with self.assertRaises(timecache.InvalidArgumentError) as caught:
            client.put("a", "1", ttl=-1)
        error = caught.exception
        self.assertEqual(
            (error.code.name, error.reason, error.field),
            ("INVALID_ARGUMENT", "INVALID_FIELD", "ttl"),
        )
        self.assertEqual(error.reason, timecache.ErrorReason.INVALID_FIELD)
        self.assertEqual(error.request_id, "req-7")
        self.assertIn("INVALID_ARGUMENT (INVALID_FIELD): ", str(error))
        copy = pickle.loads(pickle.dumps(error))
        self.assertEqual((type(copy), copy.field, copy.request_id), (type(error), "ttl", "req-7"))

    def test_execute_gives_errors_as_results(self) -> None:
        self.client.remove("x")
        put, missed, entry = self.client.execute(
            [Operation.put("x", "1"), Operation.put("x", "2", if_absent=True), Operation.get("x")]
        )
        self.assertGreater(put.version, 0)
        self.assertIsInstance(missed, timecache.FailedPreconditionError)
        self.assertEqual((entry.key, entry.value), (b"x", b"1"))
        self.assertEqual(self.client.execute([]), [])

    def test_a_scan_may_be_left(self) -> None:
        namespace = self.client.namespace("scan")
        self.client.create_namespace("scan")
        namespace.execute([Operation.put(f"k{i}", "v") for i in range(3000)])
        scan = namespace.scan()
        first = next(iter(scan))
        scan.close()  # type: ignore[attr-defined]
        self.assertTrue(first.key.startswith(b"k"))
        self.assertEqual(len(set(entry.key for entry in namespace.scan())), 3000)

    def test_every_page_of_namespaces_is_read(self) -> None:
        for i in range(3):
            self.client.create_namespace(f"page-{i}")
        names = [namespace.name for namespace in self.client.list_namespaces()]
        self.assertEqual(
            [name for name in names if name.startswith("page-")], ["page-0", "page-1", "page-2"]
        )


class NoServerTest(unittest.TestCase):
    def test_a_call_ends_at_its_deadline(self) -> None:
        with socket.socket() as mute:
            mute.bind(("127.0.0.1", 0))
            mute.listen()
            with timecache.Client(f"127.0.0.1:{mute.getsockname()[1]}", timeout=0.3) as client:
                begin = time.monotonic()
                with self.assertRaises(timecache.DeadlineExceededError) as caught:
                    client.get("a")
                self.assertIsNone(caught.exception.reason)
                self.assertLess(time.monotonic() - begin, 3)

    def test_calls_without_a_server_are_unavailable(self) -> None:
        with timecache.Client("127.0.0.1:1") as client:
            with self.assertRaises(timecache.UnavailableError):
                client.put("a", "1")
            with self.assertRaises(timecache.UnavailableError):
                client.watch().next()
            with self.assertRaises(timecache.UnavailableError):
                client.pipeline().add(Operation.get("a")).result(10)
            with self.assertRaises(timecache.UnavailableError):
                client.worker("g", lambda event: None).wait(10)

    def test_only_what_is_safe_is_repeated(self) -> None:
        retry = timecache.RetryPolicy(max_attempts=4, min_pause=0.001, max_pause=0.002)
        with timecache.Client("127.0.0.1:1", retry=retry) as client:
            tried: list[str] = []
            for name in ("Put", "Get", "Append", "Combine", "Gather", "Execute"):
                self.count(client, name, tried)
            calls: dict[str, Callable[[timecache.Client], object]] = {
                "Get": lambda c: c.get("a"), "Put": lambda c: c.put("a", "1"),
                "Append": lambda c: c.append("a", "1"), "Combine": lambda c: c.combine("a", add=1),
                "Gather": lambda c: c.gather("a", "p", "1", expected_parts=2),
                "Execute": lambda c: c.execute([Operation.get("a")]),
            }  # fmt: skip
            for name, call in calls.items():
                tried.clear()
                with self.assertRaises(timecache.UnavailableError):
                    call(client)
                self.assertEqual(len(tried), 4 if name == "Get" else 1, name)
            tried.clear()
            with self.assertRaises(timecache.UnavailableError):
                client.with_options(repeatable=True).put("a", "1")
            self.assertEqual(len(tried), 4)

    def count(self, client: timecache.Client, name: str, tried: list[str]) -> None:
        """Notes each attempt of a call, which goes to no server."""
        method = getattr(client._stubs.data, name)

        def counted(*args: Any, **more: Any) -> Any:
            tried.append(name)
            return method(*args, **more)

        setattr(client._stubs.data, name, counted)
        if name != "Execute":
            client._stubs.operations[name.lower()] = counted

    def test_a_task_that_is_cancelled_leaves_its_call(self) -> None:
        async def main() -> None:
            with socket.socket() as mute:
                mute.bind(("127.0.0.1", 0))
                mute.listen()
                async with timecache.aio.Client(f"127.0.0.1:{mute.getsockname()[1]}") as client:
                    with self.assertRaises(TimeoutError):
                        await asyncio.wait_for(client.get("a"), 0.1)

        begin = time.monotonic()
        asyncio.run(main())
        self.assertLess(time.monotonic() - begin, 3)


class SecurityTest(unittest.TestCase):
    def test_tls_with_certificates_and_tokens(self) -> None:
        config = """
listeners:
  - address: 127.0.0.1:PORT
    tls: {certificate_file: DIR/server.crt, key_file: DIR/server.key}
access: {file: DIR/access.yaml}
"""
        server = Server("--config", "DIRECTORY/config.yaml", listens=False, starts=False)
        self.addCleanup(server.close)
        directory = server.directory
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
             "-nodes", "-subj", "/CN=cache.example", "-addext", "subjectAltName=DNS:cache.example",
             "-days", "30", "-keyout", directory / "server.key", "-out", directory / "server.crt"],
            check=True, capture_output=True,
        )  # fmt: skip
        digest = hashlib.sha256(b"s3cret-token-of-a-test").hexdigest()
        (directory / "access.yaml").write_text(
            f'principals:\n  - name: app\n    token_sha256: ["{digest}"]\n'
            'rules:\n  - principals: [app]\n    namespaces: ["default"]\n    verbs: [read, write]\n'
        )
        config = config.replace("PORT", server.address.split(":")[1]).replace("DIR", str(directory))
        (directory / "config.yaml").write_text(config)
        server.start()
        secured: dict[str, Any] = {
            "ca_file": directory / "server.crt",
            "server_name": "cache.example",
        }
        with timecache.Client(server.address, **secured, token="s3cret-token-of-a-test") as client:
            client.put("a", "1")
            self.assertTrue(client.contains("a"))
            with self.assertRaises(timecache.PermissionDeniedError) as denied:
                client.create_namespace("other")
            self.assertEqual(denied.exception.reason, "ACCESS_DENIED")
            self.assertEqual(denied.exception.metadata["principal"], "app")
        tokens = iter(["wrong", "s3cret-token-of-a-test\n"])
        with timecache.Client(server.address, **secured, token=lambda: next(tokens)) as client:
            with self.assertRaises(timecache.UnauthenticatedError):
                client.get("a")
            self.assertIsNotNone(client.get("a"))
        with timecache.Client(server.address, **secured) as client:
            with self.assertRaises(timecache.UnauthenticatedError) as unknown:
                client.get("a")
            self.assertEqual(unknown.exception.reason, "NO_CREDENTIALS")
        with timecache.Client(server.address, token="t") as client:
            with self.assertRaises(timecache.UnavailableError):
                client.get("a")

    def test_what_does_not_go_together_is_refused(self) -> None:
        with self.assertRaises(ValueError):
            timecache.Client("cache.example:7171", token="secret")
        with self.assertRaises(ValueError):
            timecache.Client("cache.example:7171", certificate_file="client.crt")
        with self.assertRaises(OSError):
            timecache.Client("cache.example:7171", ca_file="/does/not/exist")


if __name__ == "__main__":
    unittest.main()
