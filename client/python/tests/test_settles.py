"""Calls that settle events of one group at the same time, of both clients."""

from __future__ import annotations

import concurrent.futures
import queue
import time
import unittest
import unittest.mock
from typing import Any

import grpc
from test_sharing import InLoop

import timecached
from timecached import Ack, Settlement, tracing
from timecached.v1 import data_pb2_grpc, watch_pb2


class Data(data_pb2_grpc.TimeCacheServiceServicer):
    """Answers, once it may, with the number that is each token; refuses a request with another."""

    def __init__(self, test: unittest.TestCase) -> None:
        self.requests: queue.Queue[list[str]] = queue.Queue()
        self.answers: queue.Queue[None] = queue.Queue()
        self.results_less = 0
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(16))
        data_pb2_grpc.add_TimeCacheServiceServicer_to_server(self, self._server)  # type: ignore[no-untyped-call]
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()
        test.addCleanup(lambda: self._server.stop(0).wait(20))

    def SettleExpired(self, request: Any, context: Any) -> Any:
        tokens = [each.delivery_token.decode() for each in request.settlements]
        self.requests.put(tokens)
        self.answers.get(timeout=60)
        if not all(token.isdigit() for token in tokens):
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "no number")
        results = [watch_pb2.SettleResult(version=int(token)) for token in tokens]
        return watch_pb2.SettleExpiredResponse(results=results[self.results_less :])

    def answer(self, count: int = 1) -> None:
        for _ in range(count):
            self.answers.put(None)

    def next(self) -> list[str]:
        """The tokens of the next request."""
        return sorted(self.requests.get(timeout=60))


class Blocking(unittest.TestCase):
    package = "timecached"

    def setUp(self) -> None:
        # Another test may have registered an SDK.
        untraced = unittest.mock.patch.object(tracing, "_trace", None)
        untraced.start()
        self.addCleanup(untraced.stop)
        self.data = Data(self)
        self.pool = concurrent.futures.ThreadPoolExecutor(16)
        self.addCleanup(self.pool.shutdown)
        self.addCleanup(self.data.answer, 20)
        self.client = self.connect(self.data.address, timeout=60)
        self.addCleanup(self.client.close)

    def connect(self, address: str, **options: Any) -> Any:
        return timecached.Client(address, **options)

    def settle(self, *tokens: str, client: Any = None, group: str = "g") -> Any:
        settlements = [Settlement(token.encode(), Ack()) for token in tokens]
        return self.pool.submit((client or self.client).settle, group, settlements)

    def until_waiting(self, count: int) -> None:
        """Until so many calls wait for the next request."""
        settles = getattr(self.client, "_client", self.client)._settles
        until = time.monotonic() + 60
        while sum(map(len, settles._waiting.values())) != count:
            self.assertLess(time.monotonic(), until)
            time.sleep(0.001)

    def hold_one(self) -> Any:
        """A call whose request is not answered yet."""
        first = self.settle("1")
        self.assertEqual(self.data.next(), ["1"])
        return first

    def test_calls_for_one_group_share_a_request_and_have_their_own_results(self) -> None:
        first = self.hold_one()
        calls = [self.settle("2", "3"), self.settle("4")]
        self.until_waiting(2)
        other = self.settle("5", group="other")
        self.assertEqual(self.data.next(), ["5"])
        self.data.answer(3)
        self.assertEqual(self.data.next(), ["2", "3", "4"])
        self.assertEqual([each.result(60) for each in calls], [[2, 3], [4]])
        self.assertEqual((first.result(60), other.result(60)), ([1], [5]))
        self.data.answer()
        self.assertEqual(self.settle("6").result(60), [6])

    def test_a_call_that_is_late_leaves_the_others(self) -> None:
        hurried = self.client.with_options(timeout=0.5)
        first = self.hold_one()
        error = self.settle("2", client=hurried).exception(60)
        self.assertIsInstance(error, timecached.DeadlineExceededError)
        self.assertFalse(error.maybe_applied)
        # Enough for a busy machine to send it.
        hurried = self.client.with_options(timeout=3)
        late, other = self.settle("3", client=hurried), self.settle("4")
        self.until_waiting(2)
        self.data.answer()
        self.assertEqual(self.data.next(), ["3", "4"])
        error = late.exception(60)
        self.assertIsInstance(error, timecached.DeadlineExceededError)
        self.assertTrue(error.maybe_applied)
        self.data.answer()
        self.assertEqual((first.result(60), other.result(60)), ([1], [4]))

    def test_a_call_that_the_server_refuses_fails_alone(self) -> None:
        self.hold_one()
        bad, good = self.settle("bad"), self.settle("2")
        self.until_waiting(2)
        self.data.answer(4)
        self.assertIsInstance(bad.exception(60), timecached.InvalidArgumentError)
        self.assertEqual(good.result(60), [2])
        self.assertEqual(self.data.next(), ["2", "bad"])
        self.assertEqual(sorted([self.data.next(), self.data.next()]), [["2"], ["bad"]])

    def test_another_number_of_results_is_an_error_of_each_call(self) -> None:
        self.hold_one()
        calls = [self.settle("2"), self.settle("3")]
        self.until_waiting(2)
        self.data.results_less = 1
        self.data.answer(2)
        errors = [each.exception(60) for each in calls]
        self.assertEqual([type(each) for each in errors], [timecached.InternalError] * 2)
        self.assertIsNot(errors[0], errors[1])

    def test_calls_with_options_of_their_own_go_alone(self) -> None:
        self.hold_one()
        for options in (
            {"batching": False},
            {"timeout": None},
            {"repeatable": True},
            {"request_id": "r-1"},
            {"metadata": [("x-tenant", "t")]},
        ):
            call = self.settle("2", client=self.client.with_options(**options))
            self.assertEqual(self.data.next(), ["2"], options)
            self.data.answer()
        self.settle("9" * (64 << 10))
        self.assertEqual(len(self.data.next()[0]), 64 << 10)
        with unittest.mock.patch(f"{self.package}.settles.is_traced", return_value=True):
            self.settle("3")
            self.assertEqual(self.data.next(), ["3"])
        self.data.answer(3)
        self.assertEqual(call.result(60), [2])

    def test_a_request_has_no_more_settlements_than_the_server_takes(self) -> None:
        self.hold_one()
        calls = [self.settle(*["2"] * 4095), self.settle("3"), self.settle("3")]
        self.until_waiting(3)
        self.data.answer(3)
        self.assertEqual([len(each.result(60)) for each in calls], [4095, 1, 1])
        self.assertLessEqual(max(len(self.data.next()) for _ in range(2)), 4096)

    def test_without_a_thread_for_them_calls_go_alone(self) -> None:
        first = self.hold_one()
        calls = [self.settle("2"), self.settle("3")]
        self.until_waiting(2)
        with unittest.mock.patch(f"{self.package}.settles.Task", side_effect=RuntimeError):
            self.data.answer(3)
            self.assertEqual([each.result(60) for each in [first, *calls]], [[1], [2], [3]])
        self.assertEqual(sorted([self.data.next(), self.data.next()]), [["2"], ["3"]])

    def test_calls_under_way_end_with_the_client(self) -> None:
        calls = [self.hold_one(), self.settle("2")]
        self.until_waiting(1)
        self.client.close()
        for each in calls:
            self.assertIsInstance(each.exception(60), timecached.ClosedError)


class Asyncio(Blocking):
    package = "timecached.aio"

    def connect(self, address: str, **options: Any) -> Any:
        return InLoop.make(address, **options)

    def test_a_task_that_is_cancelled_leaves_the_others(self) -> None:
        first = self.client.begin("settle", "g", [Settlement(b"1", Ack())])
        self.assertEqual(self.data.next(), ["1"])
        gone = self.client.begin("settle", "g", [Settlement(b"2", Ack())])
        other = self.settle("3")
        self.until_waiting(2)
        gone.cancel()
        self.until_waiting(1)
        first.cancel()
        self.assertEqual(self.data.next(), ["3"])
        self.data.answer(2)
        self.assertEqual(other.result(60), [3])


if __name__ == "__main__":
    unittest.main()
