"""Calls: values, errors, options, retries, security."""

from __future__ import annotations

import asyncio
import concurrent.futures
import hashlib
import io
import pickle
import secrets
import socket
import subprocess
import sys
import tarfile
import threading
import time
import unittest
import unittest.mock
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

import grpc
from google.protobuf import duration_pb2
from google.rpc import error_details_pb2, status_pb2
from server import Server

import timecached
from timecached import Operation, connection
from timecached.types import from_duration, to_duration


class ClientTest(unittest.TestCase):
    server: Server
    client: timecached.Client

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = Server()
        cls.client = timecached.Client(cls.server.address)
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
        self.client.put("json", timecached.encode_json({"total": 42, "ü": [None]}))
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

    def test_a_duration_is_no_text(self) -> None:
        wrong: Any = "5"
        with self.assertRaisesRegex(TypeError, "timedelta or seconds, not '5'"):
            self.client.put("a", "1", ttl=wrong)

    def test_metadata_that_cannot_be_sent_is_refused(self) -> None:
        good: list[tuple[str, str | bytes]] = [("a-b.c_1", "~ value"), ("d-bin", b"\xff")]
        self.client.with_options(metadata=good).get("a")
        wrong: list[tuple[str, str | bytes]] = [
            ("Upper", "x"), ("a b", "x"), ("a", b"x"), ("a", "ü"), ("a", "x\n"), ("b-bin", "x"),
            ("grpc-a", "x"), ("", "x"),
        ]  # fmt: skip
        for pair in wrong:
            with self.subTest(pair), self.assertRaises(ValueError):
                self.client.with_options(metadata=[pair])
        with self.assertRaises(ValueError):
            self.client.with_options(request_id="r\n")

    def test_metadata_of_a_view_takes_the_place_of_its_clients(self) -> None:
        base = self.client.with_options(request_id="all", traceparent="t", metadata=[("x-a", "1")])
        view = base.with_options(request_id="one").namespace("absent")
        self.assertEqual(
            sorted(view._metadata()),
            [("traceparent", "t"), ("x-a", "1"), ("x-request-id", "one")],
        )
        with self.assertRaises(timecached.NotFoundError) as caught:
            view.get("a")
        self.assertEqual(caught.exception.request_id, "one")

    def test_durations_are_exact(self) -> None:
        for given in (timedelta(days=3650, microseconds=1), timedelta(seconds=-1.5)):
            self.assertEqual(from_duration(to_duration(given)), given)
        self.assertEqual(to_duration(0.001).nanos, 1_000_000)
        self.assertEqual((to_duration(-1.5).seconds, to_duration(-1.5).nanos), (-1, -500_000_000))

    def test_errors_have_what_the_server_said(self) -> None:
        client = self.client.with_options(
            request_id="req-7", traceparent="00-" + "1" * 32 + "-" + "2" * 16 + "-01"
        )
        with self.assertRaises(timecached.InvalidArgumentError) as caught:
            client.put("a", "1", ttl=-1)
        error = caught.exception
        self.assertEqual(
            (error.code.name, error.reason, error.field),
            ("INVALID_ARGUMENT", "INVALID_FIELD", "ttl"),
        )
        self.assertEqual(error.reason, timecached.ErrorReason.INVALID_FIELD)
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
        self.assertIsInstance(missed, timecached.FailedPreconditionError)
        self.assertEqual((entry.key, entry.value), (b"x", b"1"))
        self.assertEqual(self.client.execute([]), [])

    def test_an_answer_with_another_number_of_results_is_an_error(self) -> None:
        settlements = [timecached.Settlement(b"t", timecached.Ack())]

        async def main() -> None:
            async def answer(request: Any, **more: Any) -> Any:
                return response

            async with timecached.aio.Client(self.server.address) as client:
                data = client._endpoints.current.stubs.data
                data.Execute = data.SettleExpired = answer
                with self.assertRaisesRegex(timecached.InternalError, "2 results for 1"):
                    await client.execute([Operation.get("a")])
                with self.assertRaisesRegex(timecached.InternalError, "2 results for 1"):
                    await client.settle("g", settlements)

        response: Any = unittest.mock.Mock(results=[None, None])
        with timecached.Client(self.server.address) as client:
            data = client._endpoints.current.stubs.data
            data.Execute = data.SettleExpired = lambda *a, **m: response
            with self.assertRaisesRegex(timecached.InternalError, "2 results for 1"):
                client.execute([Operation.get("a")])
            with self.assertRaisesRegex(timecached.InternalError, "2 results for 1"):
                client.settle("g", settlements)
        asyncio.run(main())

    def test_details_that_a_proxy_has_garbled_are_left_out(self) -> None:
        bad_detail = status_pb2.Status(code=5)
        bad_detail.details.add(
            type_url="type.googleapis.com/google.rpc.ErrorInfo", value=b"\xff\xff"
        )
        endless = status_pb2.Status(code=5)
        endless.details.add().Pack(
            error_details_pb2.RetryInfo(retry_delay=duration_pb2.Duration(seconds=1 << 60))
        )
        garbled = [b"\xff\xff", bad_detail.SerializeToString(), endless.SerializeToString()]

        def fail(request: bytes, context: grpc.ServicerContext) -> None:
            details = garbled[int(request[-1:])]
            context.set_trailing_metadata(
                (("grpc-status-details-bin", details), ("x-request-id", "r-1"))
            )
            context.abort(grpc.StatusCode.NOT_FOUND, "not here")

        class Handler(grpc.GenericRpcHandler):
            def service(self, details: grpc.HandlerCallDetails) -> Any:
                return grpc.unary_unary_rpc_method_handler(fail)

        async def main() -> None:
            async with timecached.aio.Client(f"127.0.0.1:{port}") as client:
                for number in range(len(garbled)):
                    with self.assertRaises(timecached.NotFoundError):
                        await client.get(f"{number}")

        server = grpc.server(concurrent.futures.ThreadPoolExecutor(1))
        server.add_generic_rpc_handlers((Handler(),))
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        self.addCleanup(server.stop, None)
        with timecached.Client(f"127.0.0.1:{port}") as client:
            for number in range(len(garbled)):
                with self.subTest(number):
                    with self.assertRaises(timecached.NotFoundError) as caught:
                        client.get(f"{number}")
                    error = caught.exception
                    self.assertEqual(
                        (error.message, error.reason, error.request_id), ("not here", None, "r-1")
                    )
        asyncio.run(main())

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

    def test_one_name_is_no_list_of_names(self) -> None:
        for wrong in (
            lambda: self.client.watch("orders"),
            lambda: self.client.consume("g", "orders"),
            lambda: self.client.gather("a", "p", "1", expected_names="names"),
            lambda: self.client.update_namespace(
                "default", timecached.NamespaceOptions(), to_default="ttl"
            ),
        ):
            with self.assertRaises(TypeError):
                wrong()

    def test_health_needs_no_right(self) -> None:
        self.assertTrue(self.client.is_serving())

    def test_a_server_without_a_journal_has_no_backup(self) -> None:
        self.assertIsNone(self.client.get_server().journal)
        with self.assertRaises(timecached.FailedPreconditionError) as caught:
            next(iter(self.client.backup_journal()))
        self.assertEqual(caught.exception.reason, "NO_JOURNAL")


class BackupTest(unittest.TestCase):
    def setUp(self) -> None:
        self.server = Server("--journal", "DIRECTORY/journal")
        self.addCleanup(self.server.close)
        with timecached.Client(self.server.address) as client:
            client.create_namespace(
                "orders", timecached.NamespaceOptions(durability=timecached.Durability.SYNC)
            )
            for i in range(3):
                client.namespace("orders").put(f"k{i}", secrets.token_bytes(1 << 20))

    def test_a_backup_is_a_whole_archive(self) -> None:
        with timecached.Client(self.server.address) as client:
            journal = client.get_server().journal
            assert journal is not None
            self.assertEqual(journal.directory, str(self.server.directory / "journal"))
            self.assertGreater(journal.written_bytes, 3 << 20)
            self.assertFalse(journal.disk_full)
            pieces = list(client.backup_journal())
        self.check(pieces)

    def test_a_backup_by_asyncio(self) -> None:
        async def main() -> list[timecached.BackupPiece]:
            async with timecached.aio.Client(self.server.address) as client:
                return [piece async for piece in client.backup_journal()]

        self.check(asyncio.run(main()))

    def check(self, pieces: list[timecached.BackupPiece]) -> None:
        archive = b"".join(piece.data for piece in pieces)
        self.assertEqual({piece.total_bytes for piece in pieces}, {len(archive)})
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            self.assertGreater(sum(member.size for member in tar), 3 << 20)


class ClosedTest(unittest.TestCase):
    """A client that is closed, before a call and during it."""

    def setUp(self) -> None:
        # Connections are taken, and never answered.
        self.mute = socket.socket()
        self.addCleanup(self.mute.close)
        self.mute.bind(("127.0.0.1", 0))
        self.mute.listen()
        self.address = f"127.0.0.1:{self.mute.getsockname()[1]}"

    def test_calls_end_with_it(self) -> None:
        calls: list[Callable[[timecached.Client], object]] = [
            lambda c: c.get("a"),
            lambda c: c.put("a", "1"),
            lambda c: list(c.scan()),
            lambda c: c.watch().next(),
            lambda c: c.pipeline().add(Operation.get("a")).result(20),
        ]
        for call in calls:
            client = timecached.Client(self.address)
            with concurrent.futures.ThreadPoolExecutor() as pool:
                under_way = pool.submit(call, client)
                client.close()
                self.assertIsInstance(under_way.exception(20), timecached.ClosedError)
            with self.assertRaises(timecached.ClosedError):
                call(client)
            client.close()

    def test_calls_of_asyncio_end_with_it(self) -> None:
        async def scan(client: timecached.aio.Client) -> None:
            async for _ in client.scan():
                pass

        async def add(client: timecached.aio.Client) -> None:
            await (await client.pipeline().add(Operation.get("a")))

        calls: list[Callable[[timecached.aio.Client], Coroutine[Any, Any, object]]] = [
            lambda c: c.get("a"),
            lambda c: c.put("a", "1"),
            scan,
            lambda c: c.watch().next(),
            add,
        ]

        async def main() -> None:
            for call in calls:
                client = timecached.aio.Client(self.address)
                under_way = asyncio.create_task(call(client))
                await asyncio.sleep(0)
                await client.close()
                # Before Python 3.11 a task does not know whether it was cancelled.
                ended = (
                    timecached.ClosedError
                    if sys.version_info >= (3, 11)
                    else (timecached.ClosedError, asyncio.CancelledError)
                )
                with self.assertRaises(ended):
                    await asyncio.wait_for(under_way, 20)
                with self.assertRaises(timecached.ClosedError):
                    await asyncio.wait_for(call(client), 20)
                await client.close()

        asyncio.run(main())


class StartingTest(unittest.TestCase):
    """A server that is just starting: calls wait for it a little."""

    def setUp(self) -> None:
        self.server = Server(starts=False)
        self.addCleanup(self.server.close)

    def test_a_call_waits_for_it(self) -> None:
        starting = threading.Thread(target=self.server.start)
        with (
            unittest.mock.patch.object(connection, "PATIENCE", 30.0),
            timecached.Client(self.server.address, timeout=30) as client,
        ):
            check = client._endpoints.current.stubs.health.Check

            def checked(*args: Any, **more: Any) -> Any:
                starting.start()
                return check(*args, **more)

            client._endpoints.current.stubs.health.Check = checked
            self.assertGreater(client.put("a", "1").version, 0)
        starting.join()

    def test_a_call_of_asyncio_waits_for_it(self) -> None:
        async def main() -> None:
            async with timecached.aio.Client(self.server.address, timeout=30) as client:
                put = asyncio.create_task(client.put("a", "1"))
                state = client.channel.get_state()
                while state is not grpc.ChannelConnectivity.TRANSIENT_FAILURE:
                    await client.channel.wait_for_state_change(state)
                    state = client.channel.get_state()
                await asyncio.to_thread(self.server.start)
                self.assertGreater((await put).version, 0)

        with unittest.mock.patch.object(connection, "PATIENCE", 30.0):
            asyncio.run(main())

    def test_who_comes_while_none_waits_fails_at_once(self) -> None:
        turns = connection._Turns()
        self.assertEqual(turns.take(10.0), 0.25)
        self.assertAlmostEqual(turns.take(10.1), 0.15)
        self.assertEqual(turns.take(10.26), 0)
        self.assertEqual(turns.take(11.0), 0.25)
        turns.reset()
        self.assertEqual(turns.take(11.3), 0.25)


class NoServerTest(unittest.TestCase):
    def test_a_call_ends_at_its_deadline(self) -> None:
        with socket.socket() as mute:
            mute.bind(("127.0.0.1", 0))
            mute.listen()
            with timecached.Client(f"127.0.0.1:{mute.getsockname()[1]}", timeout=0.3) as client:
                begin = time.monotonic()
                with self.assertRaises(timecached.DeadlineExceededError) as caught:
                    client.get("a")
                self.assertIsNone(caught.exception.reason)
                self.assertLess(time.monotonic() - begin, 3)

    def test_calls_without_a_server_are_unavailable(self) -> None:
        with timecached.Client("127.0.0.1:1") as client:
            with self.assertRaises(timecached.UnavailableError):
                client.put("a", "1")
            with self.assertRaises(timecached.UnavailableError):
                client.watch().next()
            with self.assertRaises(timecached.UnavailableError):
                client.pipeline().add(Operation.get("a")).result(10)
            with self.assertRaises(timecached.UnavailableError):
                client.worker("g", lambda event: None).wait(10)

    def test_only_what_is_safe_is_repeated(self) -> None:
        retry = timecached.RetryPolicy(max_attempts=4, min_pause=0.001, max_pause=0.002)
        with timecached.Client("127.0.0.1:1", retry=retry, batching=False) as client:
            tried: list[str] = []
            for name in ("Put", "Get", "Append", "Combine", "Gather", "Execute"):
                self.count(client, name, tried)
            calls: dict[str, Callable[[timecached.Client], object]] = {
                "Get": lambda c: c.get("a"), "Put": lambda c: c.put("a", "1"),
                "Append": lambda c: c.append("a", "1"), "Combine": lambda c: c.combine("a", add=1),
                "Gather": lambda c: c.gather("a", "p", "1", expected_parts=2),
                "Execute": lambda c: c.execute([Operation.get("a")]),
            }  # fmt: skip
            for name, call in calls.items():
                tried.clear()
                with self.assertRaises(timecached.UnavailableError):
                    call(client)
                self.assertEqual(len(tried), 4 if name in ("Get", "Execute") else 1, name)
            tried.clear()
            with self.assertRaises(timecached.UnavailableError):
                client.with_options(repeatable=True).put("a", "1")
            self.assertEqual(len(tried), 4)

    def count(self, client: timecached.Client, name: str, tried: list[str]) -> None:
        """Notes each attempt of a call, which goes to no server."""
        method = getattr(client._endpoints.current.stubs.data, name)

        def counted(*args: Any, **more: Any) -> Any:
            tried.append(name)
            return method(*args, **more)

        setattr(client._endpoints.current.stubs.data, name, counted)

    def test_a_task_that_is_cancelled_leaves_its_call(self) -> None:
        async def main() -> None:
            with socket.socket() as mute:
                mute.bind(("127.0.0.1", 0))
                mute.listen()
                async with timecached.aio.Client(f"127.0.0.1:{mute.getsockname()[1]}") as client:
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
        with timecached.Client(server.address, **secured, token="s3cret-token-of-a-test") as client:
            client.put("a", "1")
            self.assertTrue(client.contains("a"))
            with self.assertRaises(timecached.PermissionDeniedError) as denied:
                client.create_namespace("other")
            self.assertEqual(denied.exception.reason, "ACCESS_DENIED")
            self.assertEqual(denied.exception.metadata["principal"], "app")
        tokens = iter(["wrong", "s3cret-token-of-a-test\n"])
        with timecached.Client(server.address, **secured, token=lambda: next(tokens)) as client:
            with self.assertRaises(timecached.UnauthenticatedError):
                client.get("a")
            self.assertIsNotNone(client.get("a"))
        with timecached.Client(server.address, **secured) as client:
            with self.assertRaises(timecached.UnauthenticatedError) as unknown:
                client.get("a")
            self.assertEqual(unknown.exception.reason, "NO_CREDENTIALS")
        with timecached.Client(server.address, token="t") as client:
            with self.assertRaises(timecached.UnavailableError):
                client.get("a")

    def test_what_does_not_go_together_is_refused(self) -> None:
        with self.assertRaises(ValueError):
            timecached.Client("cache.example:7171", token="secret")
        # A name that only looks like a loopback address.
        with self.assertRaises(ValueError):
            timecached.Client("127.cache.example:7171", token="secret")
        for address in ("localhost:1", "127.8.0.1:1", "[::1]:1", "unix:/tmp/socket"):
            timecached.Client(address, token="secret").close()
        with self.assertRaises(ValueError):
            timecached.Client("cache.example:7171", certificate_file="client.crt")
        with self.assertRaises(OSError):
            timecached.Client("cache.example:7171", ca_file="/does/not/exist")
        with self.assertRaisesRegex(ValueError, "/dev/null has no certificate"):
            timecached.Client("cache.example:7171", ca_file="/dev/null")
        for token in ("", "a\nb", "ü"):
            with self.subTest(token), self.assertRaises(ValueError):
                timecached.Client("localhost:1", token=token)
        wrong: Any = b"token"
        with self.assertRaises(TypeError):
            timecached.Client("localhost:1", token=wrong)

    def test_an_address_has_a_port(self) -> None:
        for address in ("", "127.0.0.1", "cache.example", "http://127.0.0.1:7171", "[::1]", "a:"):
            with self.subTest(address), self.assertRaises(ValueError):
                timecached.Client(address)
        wrong: Any = 7171
        with self.assertRaises(TypeError):
            timecached.Client(wrong)
        for address in ("a:1", "[::1]:1", "unix:/a", "dns:///a:1", "ipv4:127.0.0.1:1,127.0.0.2:1"):
            with self.subTest(address):
                timecached.Client(address).close()


if __name__ == "__main__":
    unittest.main()
