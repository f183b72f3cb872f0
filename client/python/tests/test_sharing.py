"""Plain calls that go together on a stream, of both clients."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import queue
import random
import subprocess
import sys
import threading
import time
import unittest
import unittest.mock
from collections.abc import Callable, Iterator
from typing import Any

import grpc
from fake import refusal
from server import Server

import timecached
from timecached import ErrorReason, aio, duplex, sharing
from timecached.v1 import data_pb2, data_pb2_grpc

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
Behave = Callable[[data_pb2.ExecuteRequest, Any], object]


class Data(data_pb2_grpc.TimeCacheServiceServicer):
    """Answers with each operation's key; ``behave`` may wait or abort before that."""

    def __init__(self, test: unittest.TestCase) -> None:
        self.behave: Behave = lambda request, context: None
        self.has_pipeline = True
        self.answers_each = 1
        self.requests: queue.Queue[data_pb2.ExecuteRequest] = queue.Queue()
        self.streams: list[dict[str, str]] = []
        self.unary: list[tuple[Any, dict[str, str]]] = []
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(64))
        data_pb2_grpc.add_TimeCacheServiceServicer_to_server(self, self._server)  # type: ignore[no-untyped-call]
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()
        test.addCleanup(lambda: self._server.stop(0).wait(20))

    def Pipeline(self, requests: Any, context: Any) -> Iterator[Any]:
        if not self.has_pipeline:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "no such method")
        self.streams.append(dict(context.invocation_metadata()))
        for request in requests:
            self.requests.put(request)
            self.behave(request, context)
            results = [*map(answer_to, request.operations)] * self.answers_each
            yield data_pb2.ExecuteResponse(results=results)

    def Get(self, request: Any, context: Any) -> Any:
        self.unary.append((request, dict(context.invocation_metadata())))
        return data_pb2.GetResponse(entry=data_pb2.Entry(value=request.key))

    def Put(self, request: Any, context: Any) -> Any:
        self.unary.append((request, dict(context.invocation_metadata())))
        return data_pb2.PutResponse(version=len(request.value))

    def next_keys(self) -> list[bytes]:
        """Of the next request's operations."""
        operations = self.requests.get(timeout=60).operations
        return [getattr(each, str(each.WhichOneof("request"))).key for each in operations]


def answer_to(operation: data_pb2.Operation) -> data_pb2.OperationResult:
    if operation.HasField("get"):
        entry = data_pb2.Entry(value=operation.get.key)
        return data_pb2.OperationResult(get=data_pb2.GetResponse(entry=entry))
    return data_pb2.OperationResult(put=data_pb2.PutResponse(version=len(operation.put.value)))


class InLoop:
    """A client for asyncio whose calls block, on an event loop of its own thread."""

    def __init__(self, client: aio.Client, loop: asyncio.AbstractEventLoop) -> None:
        self._client = client
        self._loop = loop

    @staticmethod
    def make(address: Any, **options: Any) -> InLoop:
        loop = asyncio.new_event_loop()
        threading.Thread(target=loop.run_forever, daemon=True).start()

        async def make() -> aio.Client:
            return aio.Client(address, **options)

        return InLoop(asyncio.run_coroutine_threadsafe(make(), loop).result(60), loop)

    def with_options(self, **options: Any) -> InLoop:
        return InLoop(self._client.with_options(**options), self._loop)

    def namespace(self, name: str) -> InLoop:
        return InLoop(self._client.namespace(name), self._loop)

    def begin(self, name: str, *arguments: Any, **options: Any) -> concurrent.futures.Future[Any]:
        call = getattr(self._client, name)(*arguments, **options)
        return asyncio.run_coroutine_threadsafe(call, self._loop)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *arguments, **options: self.begin(name, *arguments, **options).result(60)


class Blocking(unittest.TestCase):
    def setUp(self) -> None:
        self.data = Data(self)
        self.pool = concurrent.futures.ThreadPoolExecutor(64)
        self.addCleanup(self.pool.shutdown)
        self.client = self.make()

    def connect(self, address: Any, **options: Any) -> Any:
        return timecached.Client(address, **options)

    def make(self, **options: Any) -> Any:
        retry = timecached.RetryPolicy(max_attempts=3, min_pause=0.001, max_pause=0.002)
        options = {"timeout": 60, "retry": retry, **options}
        client = self.connect(self.data.address, **options)
        self.addCleanup(client.close)
        return client

    def begin(self, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        return self.pool.submit(call, *arguments, **options)

    def hold(self) -> threading.Event:
        """Until the event is set, messages that come are not answered."""
        go_on = threading.Event()
        self.data.behave = lambda request, context: go_on.wait(60)
        self.addCleanup(go_on.set)
        return go_on

    def hold_one(self) -> tuple[threading.Event, Any]:
        """The same; returns the call whose message is not answered, too."""
        go_on = self.hold()
        first = self.begin(self.client.get, "first")
        self.assertEqual(self.data.next_keys(), [b"first"])
        return go_on, first

    def until_waiting(self, count: int, client: Any = None) -> None:
        """Until so many calls wait for the next message."""
        client = getattr(client or self.client, "_client", client or self.client)
        until = time.monotonic() + 60
        while time.monotonic() < until:
            if sum(len(each.waiting) for each in client._streams._streams.values()) == count:
                return
            time.sleep(0.001)
        self.fail("calls do not wait")

    def test_calls_go_together_while_a_message_is_under_way(self) -> None:
        go_on, first = self.hold_one()
        calls = {key: self.begin(self.client.get, key) for key in ("a", "b", "c")}
        self.until_waiting(3)
        go_on.set()
        self.assertEqual(sorted(self.data.next_keys()), [b"a", b"b", b"c"])
        self.assertEqual(first.result(60).text, "first")
        self.assertEqual([each.result(60).text for each in calls.values()], list(calls))
        self.assertEqual((len(self.data.streams), self.data.unary), (1, []))

    def test_a_message_is_of_independent_calls_of_a_namespace(self) -> None:
        client = self.client.namespace("ns").with_options(request_id="r-1", traceparent=TRACE)
        client.put("a", "12")
        request = self.data.requests.get(timeout=60)
        (operation,) = request.operations
        self.assertEqual((request.namespace, request.independent), ("ns", True))
        self.assertEqual((operation.request_id, operation.traceparent), ("r-1", TRACE))
        self.assertEqual(operation.put.namespace, "")
        self.assertRegex(self.data.streams[0]["x-request-id"], "^[0-9a-f]{32}$")

    def test_what_cannot_go_with_others_goes_alone(self) -> None:
        self.client.put("large", b"v" * sharing.CALL_BYTES_MAX)
        self.client.with_options(metadata=[("x-tenant", "t")]).put("other", "1")
        self.client.with_options(batching=False, request_id="r-1").put("off", "1")
        self.make(batching=False).put("never", "1")
        keys = [request.key for request, _ in self.data.unary]
        self.assertEqual(keys, [b"large", b"other", b"off", b"never"])
        self.assertEqual({request.namespace for request, _ in self.data.unary}, {"default"})
        self.assertEqual(self.data.unary[2][1]["x-request-id"], "r-1")
        self.assertEqual(self.data.streams, [])
        self.client.put("most", b"v" * (sharing.CALL_BYTES_MAX - 100))
        self.assertEqual(self.data.next_keys(), [b"most"])

    def test_a_server_without_pipelines_gets_calls_of_their_own(self) -> None:
        self.data.has_pipeline = False
        self.assertEqual(self.client.put("a", "12").version, 2)
        self.assertEqual(self.client.get("b").text, "b")
        self.assertEqual([request.key for request, _ in self.data.unary], [b"a", b"b"])

    def test_an_answer_that_is_too_large_is_asked_for_alone(self) -> None:
        error = refusal(8, "MAX_RESPONSE_BYTES")
        results = [data_pb2.OperationResult(error=error)]
        with unittest.mock.patch(f"{__name__}.answer_to", lambda operation: results[0]):
            self.assertEqual(self.client.get("a").text, "a")
        self.assertEqual(len(self.data.unary), 1)

    def test_an_error_is_that_of_its_call(self) -> None:
        error = refusal(9, "KEY_EXISTS")
        with unittest.mock.patch(
            f"{__name__}.answer_to", lambda operation: data_pb2.OperationResult(error=error)
        ):
            for given in ("r-1", None):
                with self.assertRaises(timecached.FailedPreconditionError) as caught:
                    self.client.with_options(request_id=given).put("a", "1", if_absent=True)
                self.assertEqual(caught.exception.reason, ErrorReason.KEY_EXISTS)
                expected = given or self.data.streams[0]["x-request-id"]
                self.assertEqual(caught.exception.request_id, expected)
        self.assertEqual(len(self.data.streams), 1)

    def test_a_call_that_is_late_before_it_was_sent_was_not_done(self) -> None:
        go_on, first = self.hold_one()
        with self.assertRaises(timecached.DeadlineExceededError) as caught:
            self.client.with_options(timeout=0.02, request_id="r-1").put("late", "1")
        self.assertFalse(caught.exception.maybe_applied)
        self.assertEqual(caught.exception.request_id, "r-1")
        self.assertEqual(caught.exception.message, "Deadline Exceeded")
        go_on.set()
        self.assertEqual(first.result(60).text, "first")
        self.client.get("next")
        self.assertEqual(self.data.next_keys(), [b"next"])

    def test_a_call_that_is_late_once_it_was_sent_touches_no_other(self) -> None:
        go_on, first = self.hold_one()
        late = self.begin(self.client.with_options(timeout=0.5).put, "late", "1")
        other = self.begin(self.client.put, "other", "123")
        self.until_waiting(2)
        again = self.hold()
        go_on.set()
        self.assertEqual(len(self.data.next_keys()), 2)
        self.assertIsInstance(late.exception(60), timecached.DeadlineExceededError)
        self.assertTrue(late.exception().maybe_applied)
        again.set()
        self.assertEqual(other.result(60).version, 3)
        self.assertEqual(first.result(60).text, "first")

    def test_a_stream_that_hangs_is_left(self) -> None:
        go_on, first = self.hold_one()
        waits = self.begin(self.client.put, "waits", "1")
        self.until_waiting(1)
        with self.assertRaises(timecached.DeadlineExceededError):
            self.client.with_options(timeout=0.05).get("late")
        # What was not sent goes on another stream; what was sent may still be answered.
        self.assertEqual(self.data.next_keys(), [b"waits"])
        go_on.set()
        self.assertEqual((first.result(60).text, waits.result(60).version), ("first", 1))
        self.assertEqual(len(self.data.streams), 2)

    def test_a_stream_that_breaks_fails_only_what_is_not_safe(self) -> None:
        go_on, first = self.hold_one()
        unsafe = self.begin(self.client.put, "unsafe", "1")
        safe = self.begin(self.client.get, "safe")
        self.until_waiting(2)
        broke = threading.Event()

        def break_once(request: Any, context: Any) -> None:
            if not broke.is_set():
                waits.append(self.begin(self.client.put, "waits", "12"))
                self.until_waiting(1)
                broke.set()
                context.abort(grpc.StatusCode.UNAVAILABLE, "Socket closed")

        waits: list[Any] = []
        self.data.behave = break_once
        go_on.set()
        self.assertIsInstance(unsafe.exception(60), timecached.UnavailableError)
        self.assertTrue(unsafe.exception().maybe_applied)
        self.assertEqual((first.result(60).text, safe.result(60).text), ("first", "safe"))
        self.assertEqual(waits[0].result(60).version, 2)
        keys: list[bytes] = []
        while len(keys) < 4:
            keys += self.data.next_keys()
        self.assertEqual(sorted(keys), [b"safe", b"safe", b"unsafe", b"waits"])

    def test_a_stream_that_ended_between_calls_is_replaced(self) -> None:
        self.client.get("a")
        ended = threading.Event()
        client = getattr(self.client, "_client", self.client)
        (stream,) = client._streams._streams.values()
        stream._call.cancel()
        until = time.monotonic() + 60
        while not stream.over and time.monotonic() < until:
            ended.wait(0.001)
        self.assertEqual(self.client.put("b", "1").version, 1)
        self.assertEqual(len(self.data.streams), 2)

    def test_a_token_that_has_expired_is_replaced(self) -> None:
        tokens = iter(["old", "new", "none"])
        client = self.make(token=lambda: next(tokens))
        client.put("a", "1")

        def refuse(request: Any, context: Any) -> None:
            if dict(context.invocation_metadata())["authorization"] == "Bearer old":
                context.abort(grpc.StatusCode.UNAUTHENTICATED, "expired")

        self.data.behave = refuse
        self.assertEqual(client.put("b", "12").version, 2)
        self.data.behave = lambda request, context: context.abort(
            grpc.StatusCode.UNAUTHENTICATED, "unknown"
        )
        with self.assertRaises(timecached.UnauthenticatedError):
            client.put("c", "1")

    def test_a_stream_that_is_too_old_is_replaced(self) -> None:
        self.client.put("a", "1")
        status = refusal(14, "DRAINING").SerializeToString()
        refused: list[str] = []

        def refuse(request: Any, context: Any) -> None:
            stream = dict(context.invocation_metadata())["x-request-id"]
            if not refused or always:
                refused.append(stream)
                context.set_trailing_metadata([("grpc-status-details-bin", status)])
                context.abort(grpc.StatusCode.UNAVAILABLE, "refused")

        always = False
        self.data.behave = refuse
        self.assertEqual(self.client.put("b", "12").version, 2)
        self.assertEqual(len(self.data.streams), 2)
        # That of a server that stops is not.
        always = True
        with self.assertRaises(timecached.UnavailableError) as caught:
            self.client.put("c", "1")
        self.assertEqual(caught.exception.reason, ErrorReason.DRAINING)
        self.assertFalse(caught.exception.maybe_applied)
        self.assertEqual(len(self.data.streams), 3)

    def test_the_longest_idle_stream_is_closed_for_another(self) -> None:
        with unittest.mock.patch.object(sharing, "STREAMS_MAX", 2):
            for name in ("a", "b", "a", "c", "a", "b"):
                self.client.namespace(name).get("k")
            self.assertEqual(len(self.data.streams), 4)
        self.assertEqual(self.data.unary, [])

    def test_without_an_idle_stream_a_call_goes_alone(self) -> None:
        with unittest.mock.patch.object(sharing, "STREAMS_MAX", 1):
            go_on, first = self.hold_one()
            self.assertEqual(self.client.namespace("other").get("alone").text, "alone")
            self.assertEqual(len(self.data.unary), 1)
            go_on.set()
            first.result(60)

    def test_calls_under_way_end_with_the_client(self) -> None:
        _, first = self.hold_one()
        waits = self.begin(self.client.put, "waits", "1")
        self.until_waiting(1)
        self.client.close()
        for call in (first, waits):
            self.assertIsInstance(call.exception(60), timecached.ClosedError)
        self.assertTrue(first.exception().maybe_applied)
        self.assertFalse(waits.exception().maybe_applied)
        with self.assertRaises(timecached.ClosedError):
            self.client.get("a")

    def test_another_number_of_results_ends_the_stream(self) -> None:
        self.data.answers_each = 2
        with self.assertRaisesRegex(timecached.InternalError, "2 results for 1"):
            self.client.put("a", "1")
        self.data.answers_each = 1
        self.assertEqual(self.client.put("a", "1").version, 1)

    def test_a_slow_stream_has_several_messages_in_flight(self) -> None:
        stream = sharing.SharedStream("ns")
        now = [0.0]
        with unittest.mock.patch.object(time, "monotonic", lambda: now[0]):
            for pause, expected in ((0.0001, 1), (0.007, 4), (1.0, 4), (0.001, 1)):
                for _ in range(64):
                    stream.waiting.append(sharing.Call(b"", None, None, None))
                    stream.next_message()
                    now[0] += pause
                    stream.answered(data_pb2.ExecuteResponse(results=[{}]))
                self.assertEqual(stream.in_flight_max, expected)

    def test_with_more_in_flight_answers_are_still_each_its_own(self) -> None:
        self.client.get("k")
        client = getattr(self.client, "_client", self.client)
        (stream,) = client._streams._streams.values()
        with unittest.mock.patch.object(sharing, "_WINDOW", 5):
            calls = [self.begin(self.many, n) for n in range(16)]
            while not all(call.done() for call in calls):
                stream.in_flight_max = 4  # Until it is measured.
                concurrent.futures.wait(calls, 0.001)
            for call in calls:
                call.result(60)

    def many(self, number: int) -> None:
        for i in range(50):
            assert self.client.get(f"{number}/{i}").text == f"{number}/{i}"

    def test_every_call_ends_once_and_has_its_own_answer(self) -> None:
        for seed in range(3):
            self.fuzz(seed)

    def fuzz(self, seed: int) -> None:
        chance = random.Random(seed)
        lock = threading.Lock()

        def behave(request: Any, context: Any) -> None:
            with lock:
                kind, pause = chance.random(), chance.random() * 0.02
            if kind < 0.05:
                context.abort(grpc.StatusCode.UNAVAILABLE, "Socket closed")
            if kind < 0.3:
                threading.Event().wait(pause)

        self.data.behave = behave
        ended: list[str] = []

        def run(number: int) -> None:
            mine = random.Random(seed * 1000 + number)
            for i in range(40):
                timeout = mine.choice([0.002, 0.01, 60, 60])
                key = f"{number}/{i}"
                client = self.client.with_options(timeout=timeout)
                try:
                    if mine.random() < 0.5:
                        self.assertEqual(client.get(key).text, key)
                    else:
                        value = "v" * mine.randrange(1, 1000)
                        self.assertEqual(client.put(key, value).version, len(value))
                    ended.append(key)
                except (timecached.DeadlineExceededError, timecached.UnavailableError):
                    ended.append(key)

        for runner in [self.begin(run, number) for number in range(12)]:
            runner.result(120)
        self.assertEqual(len(ended), 12 * 40)

    def test_with_interceptors_each_call_is_seen(self) -> None:
        client = self.make(interceptors=[self.interceptor()])
        self.assertEqual(client.put("a", "12").version, 2)
        self.assertEqual(client.with_options(batching=True).get("b").text, "b")
        self.assertIn(b"a", [request.key for request, _ in self.data.unary])

    def interceptor(self) -> Any:
        class Seen(grpc.UnaryUnaryClientInterceptor):
            def intercept_unary_unary(self, call: Any, details: Any, request: Any) -> Any:
                return call(details, request)

        return Seen()


class Asyncio(Blocking):
    def connect(self, address: Any, **options: Any) -> Any:
        return InLoop.make(address, **options)

    def interceptor(self) -> Any:
        class Seen(grpc.aio.UnaryUnaryClientInterceptor):
            async def intercept_unary_unary(self, call: Any, details: Any, request: Any) -> Any:
                return await call(details, request)

        return Seen()

    def test_a_task_that_is_cancelled_touches_no_other(self) -> None:
        go_on, first = self.hold_one()
        before = self.client.begin("put", "before", "1")
        other = self.client.begin("put", "other", "12")
        sent = self.client.begin("put", "sent", "1")
        self.until_waiting(3)
        before.cancel()
        self.until_waiting(2)
        again = self.hold()
        go_on.set()
        self.assertEqual(self.data.next_keys(), [b"other", b"sent"])
        sent.cancel()
        again.set()
        self.assertEqual((first.result(60).text, other.result(60).version), ("first", 2))

    def test_what_is_added_in_a_turn_goes_together_and_in_order(self) -> None:
        keys = [b"%d" % i for i in range(20)]

        async def main() -> None:
            await asyncio.gather(*(self.client._client.get(key) for key in keys))

        self.client.get("first")
        self.data.next_keys()
        asyncio.run_coroutine_threadsafe(main(), self.client._loop).result(60)
        self.assertEqual(self.data.next_keys(), keys)

    def test_cancelled_calls_leave_the_others_their_answers(self) -> None:
        chance = random.Random(7)
        self.data.behave = lambda request, context: threading.Event().wait(0.001)

        async def one(number: int) -> bool:
            call = asyncio.ensure_future(self.client._client.get(f"{number}"))
            if chance.random() < 0.3:
                await asyncio.sleep(chance.random() * 0.004)
                call.cancel()
            try:
                self.assertEqual((await call).text, f"{number}")
            except asyncio.CancelledError:
                return False
            return True

        async def main() -> list[bool]:
            return await asyncio.gather(*map(one, range(500)))

        done = asyncio.run_coroutine_threadsafe(main(), self.client._loop).result(60)
        self.assertGreaterEqual(sum(done), 300)


class OtherGrpcTest(unittest.TestCase):
    def test_a_grpcio_without_what_is_needed_gets_calls_of_their_own(self) -> None:
        data = Data(self)
        with unittest.mock.patch.object(duplex, "cygrpc", None):
            with timecached.Client(data.address, timeout=60) as client:
                self.assertEqual(client.put("a", "12").version, 2)
                self.assertEqual(client.put("b", "1").version, 1)
        self.assertEqual(len(data.unary), 2)


class WithServer(unittest.TestCase):
    def test_an_unknown_namespace_is_beside_a_known_one(self) -> None:
        server = Server()
        self.addCleanup(server.close)
        with timecached.Client(server.address) as client:
            absent = client.namespace("absent").with_options(request_id="r-1")
            said = []
            for batching in (True, False, True):
                client.put("a", "1")
                with self.assertRaises(timecached.NotFoundError) as caught:
                    absent.with_options(batching=batching).put("a", "1")
                said.append(vars(caught.exception))
            self.assertEqual(said[0]["request_id"], "r-1")
            self.assertEqual(said[0]["reason"], ErrorReason.NAMESPACE_NOT_FOUND)
            self.assertEqual((said[0], said[2]), (said[1], said[1]))

    def test_a_client_that_is_not_closed_holds_up_no_end(self) -> None:
        server = Server()
        self.addCleanup(server.close)
        program = f"""
import gc, threading, timecached
clients = [timecached.Client("{server.address}") for _ in range(2)]
for client in clients:
    client.put("a", "1")
del client, clients[0]
gc.collect()
for thread in threading.enumerate():
    if thread.name == "timecached-calls":
        thread.join(0.5)
print(threading.active_count())
"""
        done = subprocess.run(
            [sys.executable, "-c", program], env=os.environ, text=True, capture_output=True,
            timeout=60, check=False,
        )  # fmt: skip
        # Its own and that of the client that is left.
        self.assertEqual((done.stdout, done.returncode), ("2\n", 0), done.stderr)

    def test_a_server_that_is_started_again_is_found(self) -> None:
        server = Server()
        self.addCleanup(server.close)
        with timecached.Client(server.address, timeout=20) as client:
            client.put("a", "1")
            for end in (server.stop, server.kill):
                end()
                server.start()
                self.assertGreater(client.put("a", "1").version, 0)


if __name__ == "__main__":
    unittest.main()
