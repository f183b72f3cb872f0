"""Group workers and pipelines."""

from __future__ import annotations

import asyncio
import threading
import unittest
import unittest.mock
from collections.abc import AsyncIterator
from datetime import datetime, timedelta, timezone
from typing import Any

import grpc
from server import Server
from test_watch import await_

import timecached
from timecached import Nack, Operation, testing
from timecached.v1 import watch_pb2
from timecached.working import WorkerState, to_settlement


class Base(unittest.TestCase):
    def setUp(self) -> None:
        self.server = Server()
        self.addCleanup(self.server.close)
        self.client = timecached.Client(self.server.address)
        self.addCleanup(self.client.close)
        self.clock = testing.VirtualClock(self.client)

    def statistics(self) -> timecached.GroupStatistics:
        statistics = self.client.get_group("g", include_statistics=True).statistics
        assert statistics is not None
        return statistics

    def expire(self, count: int) -> None:
        self.client.execute([Operation.put(f"k{i}", "v", ttl=1) for i in range(count)])
        self.clock.advance(2)


class StateTest(unittest.TestCase):
    """What a worker decides, in orders of messages that chance seldom makes."""

    def setUp(self) -> None:
        self.state = WorkerState(retry_delay=1)
        (self.held,) = self.state.take(self.batch(attempt=2))

    def test_a_delivery_after_the_end_of_a_stream_is_another_one(self) -> None:
        self.assertEqual(self.state.take(self.batch(attempt=2, returns=1)), [])
        owed = self.state.end(self.held, Nack(3))
        self.assertEqual(to_settlement(owed.settlement).delivery_token, b"2 1")

    def batch(self, attempt: int, version: int = 1, returns: int = 0) -> timecached.WatchBatch:
        now = datetime.now(timezone.utc)
        event = timecached.ExpiredEvent(
            "default", b"a", b"1", version, now, now, now, now, timecached.ExpiryCause.EXPIRED,
            event_id=7, attempt=attempt, returns=returns,
            delivery_token=b"%d %d" % (attempt, returns),
        )  # fmt: skip
        return timecached.WatchBatch("default", (event,), now)

    def refused(self, reason: str) -> timecached.TimecacheError:
        return timecached.TimecacheError(grpc.StatusCode.NOT_FOUND, "", reason=reason)

    def test_what_is_given_again_to_its_worker_is_settled_again(self) -> None:
        for how in (timecached.Ack(), timecached.PutBack(), timecached.Terminate("no")):
            with self.subTest(how):
                self.setUp()
                owed = self.state.end(self.held, how)
                # A server that was restarted counts attempts anew.
                self.assertEqual(self.state.take(self.batch(attempt=1)), [])
                error = self.refused("STALE_ATTEMPT")
                instead, told = self.state.settled(owed, error, repeated=False)
                assert instead is not None
                self.assertEqual(instead.settlement, timecached.Settlement(b"1 0", how))
                self.assertIsNone(told)
                self.assertEqual(self.state.settled(instead, None, False), (None, None))
                self.assertEqual(self.state.count(), 0)

    def test_what_comes_again_while_it_is_handled_is_settled_by_its_newest_attempt(self) -> None:
        self.assertEqual(self.state.take(self.batch(attempt=3)), [])
        owed = self.state.end(self.held, None)
        self.assertEqual(owed.settlement.delivery_token, b"3 0")
        error = self.refused("EVENT_NOT_UNSETTLED")
        # It was handled, and what its handler said came to nothing.
        self.assertEqual(self.state.settled(owed, error, repeated=False), (None, error))
        self.assertEqual((self.state.count(), self.state.counters.stale), (0, 1))

    def test_an_event_comes_anew_after_its_nack(self) -> None:
        owed = self.state.end(self.held, timecached.Nack(0))
        (again,) = self.state.take(self.batch(attempt=3))
        self.assertEqual(self.state.begin(again).attempt, 3)
        self.assertEqual(self.state.settled(owed, None, repeated=False), (None, None))
        self.assertEqual((self.state.count(), self.state.counters.nacked), (1, 1))

    def test_what_is_refused_is_returned_with_its_newest_attempt(self) -> None:
        owed = self.state.end(self.held, timecached.PutBack())
        self.assertEqual(self.state.take(self.batch(attempt=3)), [])
        error = self.refused("MAX_ENTRIES")
        instead, told = self.state.settled(owed, error, repeated=False)
        assert instead is not None
        self.assertEqual(instead.settlement, timecached.Settlement(b"3 0", Nack(1)))
        self.assertIs(told, error)


class WorkerTest(Base):
    def setUp(self) -> None:
        super().setUp()
        self.client.create_group("g")

    def test_no_more_handlers_run_than_may(self) -> None:
        lock, running, most = threading.Lock(), 0, 0
        three = threading.Barrier(3)

        def handle(event: timecached.ExpiredEvent) -> None:
            nonlocal running, most
            with lock:
                running += 1
                most = max(most, running)
            three.wait(20)
            with lock:
                running -= 1

        with self.client.worker("g", handle, concurrency=3):
            self.expire(30)
            await_(lambda: self.statistics().acked == 30)
        self.assertEqual(most, 3)

    def test_a_stop_finishes_what_is_begun_and_leaves_the_rest_to_others(self) -> None:
        begun, go_on = threading.Event(), threading.Event()
        handled: list[bytes] = []

        def handle(event: timecached.ExpiredEvent) -> None:
            begun.set()
            go_on.wait(20)
            handled.append(event.key)

        worker = self.client.worker("g", handle, concurrency=1).start()
        self.expire(5)
        self.assertTrue(begun.wait(20))
        worker.request_stop()
        with self.assertRaises(TimeoutError):
            worker.wait(0.05)
        go_on.set()
        worker.wait(20)
        self.assertEqual((len(handled), worker.counters.acked), (1, 1))
        self.assertEqual(self.statistics().acked, 1)
        others: list[bytes] = []
        with self.client.worker("g", lambda event: others.append(event.key)):
            await_(lambda: self.statistics().acked == 5)
        self.assertEqual(sorted(handled + others), [b"k%d" % i for i in range(5)])

    def test_what_a_handler_must_not_return_counts_as_failed(self) -> None:
        errors: list[Exception] = []
        wrong: Any = lambda event: "done"  # noqa: E731
        with self.client.worker("g", wrong, on_error=errors.append, retry_delay=100) as worker:
            self.expire(1)
            await_(lambda: self.statistics().nacked == 1)
        self.assertEqual((worker.counters.raised, type(errors[0])), (1, TypeError))

    def test_a_worker_survives_its_handler_and_who_is_told(self) -> None:
        def handle(event: timecached.ExpiredEvent) -> None:
            if event.attempt == 1:
                raise SystemExit(3)

        def told(error: Exception) -> None:
            raise RuntimeError("broken, too")

        with self.assertLogs("timecached") as logged:
            with self.client.worker("g", handle, on_error=told, concurrency=1, retry_delay=0):
                self.expire(2)
                await_(lambda: self.statistics().acked == 2)
        self.assertEqual(len(logged.records), 2)
        with self.assertLogs("timecached") as logged:
            with self.client.worker("g", handle, concurrency=1, retry_delay=0):
                self.expire(1)
                await_(lambda: self.statistics().acked == 3)
        self.assertIn("SystemExit(3)", logged.output[0])
        self.assertIn(
            "namespace 'default', group 'g', key b'k0', attempt 1", logged.records[0].getMessage()
        )

    def test_a_worker_survives_who_is_told_and_exits(self) -> None:
        def handle(event: timecached.ExpiredEvent) -> None:
            if event.attempt == 1:
                raise RuntimeError("broken")

        def told(what: object) -> None:
            raise SystemExit(3)

        self.lose(2)
        with self.assertLogs("timecached") as logged:
            worker = self.client.worker(
                "g", handle, on_error=told, on_break=told, on_loss=told, retry_delay=0
            ).start()
            await_(lambda: worker.counters.acked == 1)
            self.server.kill()
            # on_loss, on_error of the handler, on_break and on_error of the break.
            await_(lambda: len(logged.records) >= 4)
            worker.request_stop()
            worker.wait(30)
        self.assertEqual(
            {record.getMessage() for record in logged.records},
            {"on_loss has failed", "on_error has failed", "on_break has failed"},
        )

    def test_a_token_that_exits_hangs_no_worker(self) -> None:
        exits = threading.Event()

        def token() -> str:
            if exits.is_set():
                raise SystemExit(3)
            return "t"

        def handle(event: timecached.ExpiredEvent) -> None:
            exits.set()

        errors: list[Exception] = []
        with timecached.Client(self.server.address, token=token) as client:
            worker = client.worker("g", handle, on_error=errors.append).start()
            self.expire(1)
            await_(lambda: worker.counters.unsettled == 1)
            worker.request_stop()
            worker.wait(30)
            self.assertEqual(repr(errors[0]), "RuntimeError('SystemExit(3)')")
            worker = client.worker("g", handle)
            with self.assertRaisesRegex(RuntimeError, "SystemExit"):
                worker.wait(30)

    def test_what_nobody_foresaw_ends_a_worker_and_is_raised(self) -> None:
        for name in ("end", "settled"):
            with self.subTest(name):
                worker = self.client.worker("g", lambda event: None, stop_timeout=0.1)
                setattr(worker._state, name, unittest.mock.Mock(side_effect=KeyError(name)))
                worker.start()
                self.expire(1)
                with self.assertRaises(KeyError):
                    worker.wait(30)

    def test_an_answer_of_another_size_is_asked_for_again(self) -> None:
        settle = self.client._endpoints.current.stubs.data.SettleExpired
        answers = iter([watch_pb2.SettleExpiredResponse()])

        def answer(*args: Any, **more: Any) -> Any:
            return next(answers, None) or settle(*args, **more)

        errors: list[Exception] = []
        with unittest.mock.patch.object(
            self.client._endpoints.current.stubs.data, "SettleExpired", answer
        ):
            worker = self.client.worker("g", lambda event: None, on_error=errors.append).start()
            self.expire(1)
            await_(lambda: worker.counters.acked == 1)
            worker.request_stop()
            worker.wait(30)
        self.assertEqual([type(error) for error in errors], [timecached.InternalError])

    def test_a_settlement_that_is_refused_becomes_a_nack(self) -> None:
        errors: list[Exception] = []
        with self.client.worker(
            "g", lambda event: Nack(delay=-1), on_error=errors.append, retry_delay=100
        ):
            self.expire(1)
            await_(lambda: self.statistics().nacked == 1)
        assert isinstance(errors[0], timecached.InvalidArgumentError)
        self.assertEqual(errors[0].field, "nack.delay")

    def test_the_delay_of_a_retry_is_left_to_the_group(self) -> None:
        self.client.update_group("g", timecached.GroupOptions(retry_delay=timedelta(seconds=60)))

        def handle(event: timecached.ExpiredEvent) -> None:
            if event.attempt == 1:
                raise RuntimeError("broken")

        with self.client.worker(
            "g", handle, retry_delay=None, on_error=lambda error: None
        ) as worker:
            self.expire(1)
            await_(lambda: self.statistics().nacked == 1)
            self.clock.advance(59)
            self.assertEqual(self.statistics().backlog, 1)
            self.clock.advance(2)
            await_(lambda: worker.counters.acked == 1)

    def test_what_ends_a_worker_is_raised(self) -> None:
        worker = self.client.worker("g", lambda event: None).start()
        await_(lambda: self.statistics().members == 1)
        self.client.delete_group("g")
        with self.assertRaises(timecached.NotFoundError) as caught:
            worker.wait(20)
        self.assertEqual(caught.exception.reason, "GROUP_NOT_FOUND")

    def lose(self, count: int) -> None:
        """Makes the group lose events."""
        self.client.update_group("g", timecached.GroupOptions(max_backlog_bytes=1 << 20))
        self.client.execute(
            [Operation.put(f"k{i}", b"x" * 600_000, ttl=1) for i in range(count + 1)]
        )
        self.clock.advance(2)

    def test_a_loss_is_told_or_logged(self) -> None:
        self.lose(2)

        def told(lost: int) -> None:
            losses.append(lost)
            raise RuntimeError("broken")

        losses: list[int] = []
        with self.assertLogs("timecached"):
            with self.client.worker("g", lambda event: None, on_loss=told) as worker:
                await_(lambda: self.statistics().acked == 1)
        self.assertEqual((sum(losses), worker.counters.lost), (2, 2))
        self.lose(2)
        with self.assertLogs("timecached") as logged:
            with self.client.worker("g", lambda event: None):
                await_(lambda: self.statistics().acked == 2)
        self.assertIn("has lost 2 events", logged.output[0])

    def test_a_token_that_fails_for_a_while_stops_no_worker(self) -> None:
        broken = threading.Event()

        def token() -> str:
            if broken.is_set():
                raise OSError("no token")
            return "t"

        errors: list[Exception] = []

        def handle(event: timecached.ExpiredEvent) -> None:
            broken.set()

        with timecached.Client(self.server.address, token=token) as client:
            with client.worker("g", handle, on_error=errors.append) as worker:
                self.expire(1)
                await_(lambda: errors)
                broken.clear()
                await_(lambda: worker.counters.acked == 1)
        assert isinstance(errors[0], timecached.UnavailableError)
        self.assertIsInstance(errors[0].__cause__, OSError)

    def test_a_client_that_is_closed_ends_its_worker(self) -> None:
        client = timecached.Client(self.server.address)
        closed = threading.Event()

        def handle(event: timecached.ExpiredEvent) -> None:
            closed.wait(20)

        worker = client.worker("g", handle, on_error=lambda error: None).start()
        self.expire(1)
        await_(lambda: self.statistics().in_flight == 1)
        client.close()
        closed.set()
        with self.assertRaises(timecached.CallCancelledError):
            worker.wait(5)

    def test_a_worker_holds_twice_as_many_events_as_it_has_handlers(self) -> None:
        def held(**options: Any) -> int:
            return self.client.worker("g", lambda event: None, **options)._max_in_flight

        self.assertEqual(held(), 8)
        self.assertEqual(held(concurrency=10), 20)
        self.assertEqual(held(concurrency=10, max_in_flight=5), 5)

    def test_a_token_of_asyncio_may_be_awaited(self) -> None:
        tokens = 0

        async def token() -> str:
            nonlocal tokens
            await asyncio.sleep(0)
            tokens += 1
            return f"t{tokens}"

        async def never() -> str:
            await asyncio.Event().wait()
            raise AssertionError

        async def main() -> None:
            async with timecached.aio.Client(self.server.address, token=token) as client:
                await client.put("a", "1")
                self.assertEqual(await client._metadata(), (("authorization", "Bearer t2"),))
                async with client.pipeline() as pipeline:
                    await (await pipeline.add(Operation.get("a")))
                await client.watch().next(20)
                self.assertEqual([entry.key async for entry in client.scan()], [b"a"])
            self.assertEqual(tokens, 5)
            async with timecached.aio.Client(
                self.server.address, token=never, timeout=0.05
            ) as client:
                with self.assertRaises(timecached.UnavailableError):
                    await client.put("a", "1")
                with self.assertRaises(timecached.UnavailableError):
                    await client.watch().next(20)

        asyncio.run(asyncio.wait_for(main(), 30))
        coroutine_function: Any = token
        with self.assertRaises(TypeError):
            timecached.Client(self.server.address, token=coroutine_function)

    def test_what_no_worker_can_do_is_refused(self) -> None:
        async def coroutine(event: timecached.ExpiredEvent) -> None:
            pass

        wrong: Any = coroutine
        with self.assertRaises(TypeError):
            self.client.worker("g", wrong)
        with self.assertRaises(ValueError):
            self.client.worker("g", lambda event: None, concurrency=0)
        with self.assertRaises(ValueError):
            self.client.worker("g", lambda event: None, retry_delay=-1)

    def test_workers_of_asyncio(self) -> None:
        async def main() -> None:
            async with timecached.aio.Client(self.server.address) as client:
                running = most = 0

                async def handle(event: timecached.ExpiredEvent) -> timecached.Settle | None:
                    nonlocal running, most
                    running += 1
                    most = max(most, running)
                    await asyncio.sleep(0.001)
                    running -= 1
                    if event.attempt == 1 and event.key == b"k1":
                        raise RuntimeError("broken")
                    return None

                async with client.worker("g", handle, concurrency=3, retry_delay=0) as worker:
                    await asyncio.to_thread(self.expire, 30)
                    while worker.counters.acked < 30:
                        await asyncio.sleep(0.005)
                self.assertLessEqual(most, 3)
                self.assertEqual((worker.counters.raised, worker.counters.nacked), (1, 1))

                stuck = asyncio.Event()

                async def wait(event: timecached.ExpiredEvent) -> None:
                    stuck.set()
                    await asyncio.sleep(0.05)

                async def members() -> int:
                    group = await client.get_group("g", include_statistics=True)
                    return group.statistics.members  # type: ignore[union-attr]

                worker = client.worker("g", wait, concurrency=1).start()
                await asyncio.to_thread(self.expire, 3)
                await stuck.wait()
                await worker.stop()
                self.assertEqual(worker.counters.acked, 1)
                # Or the group is deleted while only the one that stopped is in it: the next one
                # would make it anew.
                while await members() != 0:
                    await asyncio.sleep(0.005)
                worker = client.worker("g", wait).start()
                while await members() != 1:
                    await asyncio.sleep(0.005)
                await client.delete_group("g")
                with self.assertRaises(timecached.NotFoundError):
                    await worker.wait()

        asyncio.run(main())

    def test_a_plain_function_is_a_handler_of_asyncio_too(self) -> None:
        handled: list[tuple[bytes, int]] = []

        def handle(event: timecached.ExpiredEvent) -> timecached.Settle | None:
            handled.append((event.key, event.attempt))
            if event.key == b"k1" and event.attempt == 1:
                raise RuntimeError("broken")
            if event.key == b"k2" and event.attempt == 1:
                raise asyncio.CancelledError
            return timecached.PutBack(ttl=1000) if event.key == b"k3" else None

        async def main() -> None:
            async with timecached.aio.Client(self.server.address) as client:
                async with client.worker(
                    "g", handle, retry_delay=0, on_error=errors.append
                ) as worker:
                    await asyncio.to_thread(self.expire, 4)
                    while worker.counters.acked + worker.counters.put_back < 4:
                        await asyncio.sleep(0.005)
                counters = worker.counters
                self.assertEqual(
                    (counters.acked, counters.put_back, counters.nacked, counters.raised),
                    (3, 1, 2, 2),
                )

        errors: list[Exception] = []
        asyncio.run(asyncio.wait_for(main(), 30))
        self.assertEqual(
            sorted(handled),
            [(b"k0", 1), (b"k1", 1), (b"k1", 2), (b"k2", 1), (b"k2", 2), (b"k3", 1)],
        )
        self.assertEqual(len(errors), 2)

    def test_a_worker_of_asyncio_survives_its_handler_and_its_token(self) -> None:
        failing = False

        def token() -> str:
            if failing:
                raise OSError("no token")
            return "t"

        async def main() -> None:
            nonlocal failing

            async def handle(event: timecached.ExpiredEvent) -> None:
                nonlocal failing
                if event.attempt == 1:
                    raise asyncio.CancelledError
                failing = True

            errors: list[Exception] = []
            async with timecached.aio.Client(self.server.address, token=token) as client:
                worker = client.worker("g", handle, retry_delay=0, on_error=errors.append)
                async with worker:
                    await asyncio.to_thread(self.expire, 1)
                    while len(errors) < 2:
                        await asyncio.sleep(0.005)
                    failing = False
                    while worker.counters.acked < 1:
                        await asyncio.sleep(0.005)
            self.assertEqual(worker.counters.raised, 1)

        asyncio.run(asyncio.wait_for(main(), 30))

    def test_a_worker_of_asyncio_ends_with_its_client(self) -> None:
        async def main() -> None:
            closed = asyncio.Event()

            async def handle(event: timecached.ExpiredEvent) -> None:
                await closed.wait()

            client = timecached.aio.Client(self.server.address)
            worker = client.worker("g", handle, on_error=lambda error: None).start()
            await asyncio.to_thread(self.expire, 1)
            await asyncio.to_thread(await_, lambda: self.statistics().in_flight == 1)
            await client.close()
            closed.set()
            with self.assertRaises(timecached.CallCancelledError):
                await asyncio.wait_for(worker.wait(), 5)

        asyncio.run(main())


class PipelineTest(Base):
    def test_results_come_in_order_and_futures_have_errors(self) -> None:
        order: list[int] = []
        with self.client.pipeline(batch_operations_max=7, requests_in_flight_max=2) as pipeline:
            futures = []
            for _ in range(500):
                future = pipeline.add(Operation.combine("n", add=1))
                future.add_done_callback(lambda done: order.append(done.result().result))
                futures.append(future)
            failed = pipeline.add(Operation.put("n", "1", if_absent=True))
        self.assertEqual([future.result().result for future in futures], list(range(1, 501)))
        self.assertEqual(order, list(range(1, 501)))
        self.assertIsInstance(failed.exception(), timecached.FailedPreconditionError)
        with self.assertRaises(ValueError):
            pipeline.add(Operation.get("n"))

    def test_the_end_of_the_stream_is_told_to_all(self) -> None:
        pipeline = self.client.namespace("absent").pipeline()
        future = pipeline.add(Operation.get("a"))
        self.assertIsInstance(future.exception(20), timecached.NotFoundError)
        with self.assertRaises(timecached.NotFoundError):
            pipeline.add(Operation.get("a"))
        with self.assertRaises(timecached.NotFoundError):
            pipeline.close()

    def test_a_server_that_is_gone_ends_it(self) -> None:
        pipeline = self.client.pipeline()
        pipeline.add(Operation.put("a", "1")).result(20)
        self.server.kill()
        with self.assertRaises(timecached.TimecacheError):
            for _ in range(100_000):
                pipeline.add(Operation.put("a", "1")).result(20)
        with self.assertRaises(timecached.TimecacheError):
            pipeline.close()

    def test_a_token_that_fails_ends_it(self) -> None:
        def token() -> str:
            raise OSError("no token")

        with timecached.Client(self.server.address, token=token) as client:
            pipeline = client.pipeline()
            future = pipeline.add(Operation.put("a", "1"))
            self.assertIsInstance(future.exception(20), timecached.UnavailableError)
            with self.assertRaises(timecached.UnavailableError):
                pipeline.close()

    def test_an_end_in_good_order_that_nobody_asked_for_is_an_end(self) -> None:
        with timecached.Client(self.server.address) as client:
            client._endpoints.current.stubs.data.Pipeline = lambda requests, metadata: iter(())
            pipeline = client.pipeline()
            future = pipeline.add(Operation.put("a", "1"))
            self.assertIsInstance(future.exception(20), timecached.UnavailableError)
            with self.assertRaises(timecached.UnavailableError):
                pipeline.add(Operation.put("b", "1"))

    def test_a_stream_without_answers_ends_at_the_timeout(self) -> None:
        cancelled = threading.Event()
        for close_first in (False, True):
            call = unittest.mock.MagicMock()
            call.__iter__.side_effect = lambda: iter(lambda: cancelled.wait(20) and None, None)
            call.cancel.side_effect = cancelled.set
            cancelled.clear()
            with timecached.Client(self.server.address, timeout=0.05) as client:
                client._endpoints.current.stubs.data.Pipeline = (
                    lambda requests, metadata, call=call: call
                )
                pipeline = client.pipeline()
                future = pipeline.add(Operation.put("a", "1"))
                if not close_first:
                    error = future.exception(20)
                    self.assertIsInstance(error, timecached.DeadlineExceededError)
                with self.assertRaises(timecached.DeadlineExceededError):
                    pipeline.close()
                self.assertIsInstance(future.exception(20), timecached.DeadlineExceededError)
                self.assertTrue(cancelled.is_set())

    def test_an_answer_that_cannot_be_read_is_an_error_of_its_operation(self) -> None:
        parse = Operation.parse_result

        def parse_puts(operation: Operation[Any], result: Any) -> Any:
            if operation.kind == "get":
                raise ValueError("unreadable")
            return parse(operation, result)

        async def main() -> list[Any]:
            async with timecached.aio.Client(self.server.address) as client:
                async with client.pipeline() as pipeline:
                    futures = [await pipeline.add(operation) for operation in operations]
            return await asyncio.gather(*futures, return_exceptions=True)

        operations: list[Operation[Any]] = [
            Operation.put("a", "1"),
            Operation.get("a"),
            Operation.put("b", "1"),
        ]
        with unittest.mock.patch.object(Operation, "parse_result", parse_puts):
            with self.client.pipeline() as pipeline:
                futures: list[Any] = [pipeline.add(operation) for operation in operations]
            errors = [future.exception(20) for future in futures]
            answers = asyncio.run(main())
        self.assertIsNone(errors[0] or errors[2])
        self.assertIsInstance(errors[1], timecached.InternalError)
        self.assertIsInstance(answers[1], timecached.InternalError)
        self.assertTrue(answers[0].version and answers[2].version)

    def test_cancel_ends_it_at_once(self) -> None:
        pipeline = self.client.pipeline()
        pipeline.add(Operation.put("a", "1")).result(20)
        pipeline.cancel()
        with self.assertRaises(timecached.CallCancelledError):
            pipeline.add(Operation.put("a", "1"))
        pipeline.close()

    def test_pipelines_of_asyncio(self) -> None:
        async def main() -> None:
            async with timecached.aio.Client(self.server.address) as client:
                async with client.pipeline(
                    batch_operations_max=7, requests_in_flight_max=2
                ) as pipeline:
                    futures = [
                        await pipeline.add(Operation.combine("n", add=1)) for _ in range(500)
                    ]
                    failed = await pipeline.add(Operation.put("n", "1", if_absent=True))
                results = [future.result().result for future in futures]
                self.assertEqual(results, list(range(1, 501)))
                self.assertIsInstance(failed.exception(), timecached.FailedPreconditionError)
                absent = client.namespace("absent").pipeline()
                with self.assertRaises(timecached.NotFoundError):
                    await (await absent.add(Operation.get("a")))
                with self.assertRaises(timecached.NotFoundError):
                    await absent.close()
                gone = client.pipeline()
                await (await gone.add(Operation.get("a")))
                gone.cancel()
                with self.assertRaises(timecached.CallCancelledError):
                    await gone.add(Operation.get("a"))
                await gone.close()

        asyncio.run(main())

    def test_a_stream_of_asyncio_without_answers_ends_at_the_timeout(self) -> None:
        class Call:
            def __init__(self) -> None:
                self.cancelled = asyncio.Event()

            def cancel(self) -> None:
                self.cancelled.set()

            async def __aiter__(self) -> AsyncIterator[Any]:
                await self.cancelled.wait()
                if not self.cancelled.is_set():
                    yield None

        async def main() -> None:
            async with timecached.aio.Client(self.server.address, timeout=0.05) as client:
                client._endpoints.current.stubs.data.Pipeline = lambda requests, metadata: Call()
                for close_first in (False, True):
                    pipeline = client.pipeline()
                    future = await pipeline.add(Operation.put("a", "1"))
                    if not close_first:
                        with self.assertRaises(timecached.DeadlineExceededError):
                            await future
                    with self.assertRaises(timecached.DeadlineExceededError):
                        await pipeline.close()
                    self.assertIsInstance(future.exception(), timecached.DeadlineExceededError)

        asyncio.run(asyncio.wait_for(main(), 30))


if __name__ == "__main__":
    unittest.main()
