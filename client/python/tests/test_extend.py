"""Workers that keep what they hold, dead letters, scans that go on, streams that are throttled."""

from __future__ import annotations

import asyncio
import pickle
import socket
import threading
import unittest
from datetime import datetime, timedelta, timezone
from typing import Any

import fake
import grpc
from test_watch import await_

import timecached
from timecached import channel, errors
from timecached.extending import Extending
from timecached.types import from_timestamp, to_timestamp
from timecached.v1 import data_pb2, groups_pb2, watch_pb2
from timecached.working import WorkerState

NOW = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=timezone.utc)


def event(event_id: int = 1, attempt: int = 1, **more: Any) -> timecached.ExpiredEvent:
    cause = timecached.ExpiryCause.EXPIRED
    return timecached.ExpiredEvent(
        "default", b"k%d" % event_id, b"v", 1, NOW, NOW, NOW, NOW, cause,
        event_id=event_id, attempt=attempt,
        delivery_token=b"%d %d %d" % (event_id, attempt, more.get("returns", 0)), **more,
    )  # fmt: skip


class ExtendingTest(unittest.TestCase):
    """What is extended, and when."""

    def setUp(self) -> None:
        self.now = 1000.0
        self.state = WorkerState(1, clock=lambda: self.now)
        self.extending = Extending(self.state, timedelta(hours=12))
        self.extending.knows_ack_timeout(timedelta(seconds=30))

    def take(self, *events: timecached.ExpiredEvent) -> None:
        self.state.take(timecached.WatchBatch("default", events, NOW))

    def due(self) -> list[int]:
        return [int(asked.delivery_token.split()[0]) for _, asked in self.extending.due()]

    def test_each_event_is_extended_before_a_third_of_its_time_is_over(self) -> None:
        self.assertEqual(self.extending.pause(), 5)
        self.take(event(1))
        self.now += 4.9
        self.take(event(2))
        self.assertEqual(self.due(), [])
        self.now += 0.1
        self.assertEqual(self.due(), [1])
        self.assertEqual(self.due(), [])
        self.now += 5
        self.assertEqual(self.due(), [1, 2])

    def test_what_waits_for_a_handler_or_for_its_settlement_is_extended(self) -> None:
        self.take(event(1), event(2))
        held = next(iter(self.state.held()))
        self.state.end(held, None)
        self.now += 10
        self.assertEqual(self.due(), [1, 2])
        self.state.end(held, timecached.Nack(1))
        self.now += 10
        self.assertEqual(self.due(), [2])

    def test_an_extension_is_of_the_newest_delivery(self) -> None:
        self.take(event(1))
        self.take(event(1, returns=2))
        self.now += 10
        ((_, asked),) = self.extending.due()
        self.assertEqual(asked, timecached.Settlement(b"1 1 2", timecached.Extend()))

    def test_it_ends_after_extend_max(self) -> None:
        self.take(event(1))
        self.now += 12 * 3600 - 1
        self.assertEqual(self.due(), [1])
        self.now += 10
        self.assertEqual(self.due(), [])
        with self.assertRaises(ValueError):
            Extending(self.state, -1)
        self.assertTrue(Extending(self.state, 0).ended)

    def test_what_is_with_another_worker_is_extended_again_once_it_comes_again(self) -> None:
        stale = timecached.FailedPreconditionError(
            grpc.StatusCode.FAILED_PRECONDITION, "", reason="STALE_ATTEMPT"
        )
        self.take(event(1))
        self.now += 10
        ((held, asked),) = self.extending.due()
        self.assertIsNone(self.extending.answered(held, asked, stale))
        self.now += 10
        self.assertEqual(self.due(), [])
        self.take(event(1, attempt=2))
        self.now += 10
        ((held, asked),) = self.extending.due()
        self.take(event(1, attempt=3))
        self.extending.answered(held, asked, stale)  # Of what is over anyhow.
        self.now += 10
        self.assertEqual(self.due(), [1])

    def test_a_server_that_is_too_old_is_told_once(self) -> None:
        self.take(event(1), event(2))
        self.now += 10
        refused = timecached.InvalidArgumentError(
            grpc.StatusCode.INVALID_ARGUMENT, "action must be set", reason="INVALID_FIELD"
        )
        told = [self.extending.answered(*one, refused) for one in self.extending.due()]
        assert told[0] is not None
        self.assertEqual(told[0].message, "events are not extended any more: action must be set")
        self.assertIsNone(told[1])
        self.assertTrue(self.extending.ended)

    def test_the_ack_timeout_is_read_again(self) -> None:
        extending = Extending(self.state, 60)
        self.assertFalse(extending.wants_ack_timeout())
        self.take(event(1))
        self.assertTrue(extending.wants_ack_timeout())
        extending.knows_ack_timeout(None)
        self.assertEqual((extending.wants_ack_timeout(), extending.pause()), (False, 1))
        self.now += 1
        self.assertTrue(extending.wants_ack_timeout())
        extending.knows_ack_timeout(timedelta(seconds=3))
        self.assertEqual((extending.wants_ack_timeout(), extending.pause()), (False, 0.5))
        self.now += 10
        self.assertTrue(extending.wants_ack_timeout())


class FakeTest(unittest.TestCase):
    """Against a server that does what a test says."""

    def setUp(self) -> None:
        self.data, self.address = fake.serve(self)
        self.errors: list[Any] = []

    def give(self, *events: watch_pb2.ExpiredEvent) -> watch_pb2.ConsumeExpiredResponse:
        return watch_pb2.ConsumeExpiredResponse(namespace="default", events=events)

    def extensions(self) -> int:
        with self.data.lock:
            return sum(s.WhichOneof("action") == "extend" for s in self.data.settled)

    def test_a_worker_keeps_what_its_handler_takes_long_for(self) -> None:
        given = watch_pb2.ExpiredEvent(key=b"a", event_id=7, attempt=1, delivery_token=b"t")
        self.data.streams.put([self.give(given)])

        def handle(event: timecached.ExpiredEvent) -> None:
            await_(lambda: self.extensions() >= 3)

        with timecached.Client(self.address) as client:
            with client.worker("g", handle, on_error=self.errors.append) as worker:
                await_(lambda: worker.counters.acked == 1)
        self.assertGreaterEqual(worker.counters.extended, 3)
        self.assertEqual(self.errors, [])
        self.assertEqual(self.data.settled[0].delivery_token, b"t")
        # The last extension may come after it.
        self.assertIn("ack", [settled.WhichOneof("action") for settled in self.data.settled])

    def test_a_worker_of_asyncio_keeps_what_its_handler_takes_long_for(self) -> None:
        self.data.streams.put([self.give(watch_pb2.ExpiredEvent(key=b"a", event_id=7, attempt=1))])

        async def handle(event: timecached.ExpiredEvent) -> None:
            await asyncio.to_thread(await_, lambda: self.extensions() >= 3)

        async def main() -> None:
            async with timecached.aio.Client(self.address) as client:
                async with client.worker("g", handle, on_error=self.errors.append) as worker:
                    while worker.counters.acked < 1:
                        await asyncio.sleep(0.005)
                self.assertGreaterEqual(worker.counters.extended, 3)

        asyncio.run(asyncio.wait_for(main(), 60))
        self.assertEqual(self.errors, [])

    def test_that_a_handled_event_is_not_settled_is_told(self) -> None:
        given = watch_pb2.ExpiredEvent(namespace="default", key=b"a", event_id=7, attempt=3)
        stale = watch_pb2.SettleResult(error=fake.refusal(9, "STALE_ATTEMPT"))
        self.data.settle = lambda settlement: stale

        async def handle(event: timecached.ExpiredEvent) -> None:
            pass

        async def main() -> None:
            async with timecached.aio.Client(self.address) as client:
                async with client.worker("g", handle, on_error=self.errors.append) as worker:
                    while worker.counters.stale < 1:
                        await asyncio.sleep(0.005)

        self.data.streams.put([self.give(given)])
        with timecached.Client(self.address) as client:
            with client.worker(
                "g", lambda event: timecached.PutBack(), on_error=self.errors.append
            ) as worker:
                await_(lambda: worker.counters.stale == 1)
            self.data.streams.put([self.give(given)])
            with self.assertLogs("timecached") as logged:
                with client.worker("g", lambda event: None) as worker:
                    await_(lambda: worker.counters.stale == 1)
        self.data.streams.put([self.give(given)])
        asyncio.run(asyncio.wait_for(main(), 60))
        where = "namespace 'default', group 'g', key b'a', attempt 3: refused"
        self.assertEqual(
            [error.message for error in self.errors],
            [f"handled, but its {how} was refused: {where}" for how in ("PutBack", "Ack")],
        )
        self.assertEqual(self.errors[0].reason, "STALE_ATTEMPT")
        self.assertIn(where, logged.output[0])

    def pages(self, *names: str, position: bytes = b"") -> list[Any]:
        return [
            data_pb2.ScanResponse(entries=[data_pb2.Entry(key=name.encode())], position=position)
            for name in names
        ]

    def scan(self, **options: Any) -> list[bytes]:
        with timecached.Client(self.address, **options) as client:
            return [entry.key for entry in client.scan("k")]

    def scan_async(self, **options: Any) -> list[bytes]:
        async def main() -> list[bytes]:
            async with timecached.aio.Client(self.address, **options) as client:
                return [entry.key async for entry in client.scan("k")]

        return asyncio.run(main())

    def test_a_scan_goes_on_behind_its_last_page(self) -> None:
        for scan in (self.scan, self.scan_async):
            self.data.scans.clear()
            lost = (grpc.StatusCode.UNAVAILABLE, "broken")
            self.data.streams.put([lost])
            for name in "abcd":  # More breaks than there are attempts without a page.
                self.data.streams.put([*self.pages(name, position=name.encode()), lost])
                # So a server ends a scan that is not read.
                lost = (grpc.StatusCode.DEADLINE_EXCEEDED, "")
            self.data.streams.put(self.pages("e", position=b"e"))
            self.assertEqual(scan(), [b"a", b"b", b"c", b"d", b"e"])
            self.assertEqual(
                [request.position for request in self.data.scans],
                [b"", b"", b"a", b"b", b"c", b"d"],
            )
            self.assertEqual({request.key_prefix for request in self.data.scans}, {b"k"})

    def test_a_scan_that_cannot_go_on_ends(self) -> None:
        lost = (grpc.StatusCode.UNAVAILABLE, "broken")
        refused = (grpc.StatusCode.INVALID_ARGUMENT, "of another server")
        for scan in (self.scan, self.scan_async):
            self.data.streams.put([*self.pages("a"), lost])
            with self.assertRaises(timecached.UnavailableError):
                scan()  # An older server has no positions.
            self.data.streams.put([*self.pages("a", position=b"a"), lost])
            self.data.streams.put([refused])
            with self.assertRaises(timecached.InvalidArgumentError):
                scan()
            self.data.streams.put([*self.pages("a", position=b"a"), lost])
            self.data.streams.put([lost])
            with self.assertRaises(timecached.UnavailableError):
                scan(retry=timecached.RetryPolicy(max_attempts=2))

    def test_a_stream_that_is_throttled_comes_back(self) -> None:
        # So gRPC reports RST_STREAM with ENHANCE_YOUR_CALM.
        calm = (grpc.StatusCode.RESOURCE_EXHAUSTED, "Received RST_STREAM with error code 11")
        batch = watch_pb2.WatchExpiredResponse(namespace="default")
        breaks: list[timecached.TimecacheError] = []

        async def main() -> None:
            async with timecached.aio.Client(self.address) as client:
                async with client.watch(max_pause=0.2) as watcher:
                    await watcher.next(30)
                    self.assertTrue((await watcher.next(30)).reconnected)

        self.data.streams.put([batch, calm])
        self.data.streams.put([batch])
        with timecached.Client(self.address) as client:
            with client.watch(max_pause=0.2, on_break=breaks.append) as watcher:
                watcher.next(30)
                self.assertTrue(watcher.next(30).reconnected)
                self.assertTrue(breaks[0].is_throttled)
                # Not after the shortest pause: its batches come, and it is throttled all the same.
                self.assertEqual(watcher._state.ended(breaks[0], watcher._failover), 0.2)
        self.data.streams.put([batch, calm])
        self.data.streams.put([batch])
        asyncio.run(asyncio.wait_for(main(), 60))

    def test_a_message_that_is_too_large_is_no_throttling(self) -> None:
        message = "CLIENT: Received message larger than max (70000000 vs. 67108864)"
        error = timecached.ResourceExhaustedError(grpc.StatusCode.RESOURCE_EXHAUSTED, message)
        self.assertFalse(error.is_throttled)


class DeadLetterTest(unittest.TestCase):
    def letter(self, **more: Any) -> watch_pb2.ExpiredEvent:
        return watch_pb2.ExpiredEvent(
            namespace="orders", key=b"order:1", value=b"42", version=3, event_id=12, attempt=5,
            put_time=to_timestamp(NOW), **more,
        )  # fmt: skip

    def entry(self, letter: watch_pb2.ExpiredEvent, key: bytes) -> timecached.Entry:
        return timecached.Entry(key, letter.SerializeToString(), 1, NOW, NOW)

    def test_a_letter_is_decoded(self) -> None:
        why = watch_pb2.DeadLetter(
            group="cancel", attempts=5, reason="DEAD_LETTER_REASON_NACKED", time=to_timestamp(NOW),
            reason_text="no card",
        )  # fmt: skip
        entry = self.entry(self.letter(dead_letter=why), b"orders/cancel/12")
        letter = timecached.decode_dead_letter(entry)
        self.assertEqual(
            (letter.event.namespace, letter.event.key, letter.event.text, letter.event.event_id),
            ("orders", b"order:1", "42", 12),
        )
        self.assertEqual(
            (letter.group, letter.attempts, letter.reason, letter.time, letter.reason_text),
            ("cancel", 5, timecached.DeadLetterReason.NACKED, NOW, "no card"),
        )

    def test_a_letter_of_an_older_server_is_decoded(self) -> None:
        letter = timecached.decode_dead_letter(self.entry(self.letter(), b"orders/cancel/12"))
        self.assertEqual(
            (letter.group, letter.attempts, letter.reason, letter.time),
            ("cancel", 5, timecached.DeadLetterReason.UNKNOWN, NOW),
        )

    def test_what_is_no_letter_is_refused(self) -> None:
        for key in (b"orders/cancel", b"orders/cancel/x", b"other/cancel/12"):
            with self.subTest(key), self.assertRaisesRegex(ValueError, "not a dead letter"):
                timecached.decode_dead_letter(self.entry(self.letter(), key))
        broken = timecached.Entry(b"orders/cancel/12", b"\xff", 1, NOW, NOW)
        with self.assertRaisesRegex(ValueError, "not a dead letter"):
            timecached.decode_dead_letter(broken)


class MaybeAppliedTest(unittest.TestCase):
    def refused_address(self) -> str:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            return f"127.0.0.1:{free.getsockname()[1]}"

    def test_a_call_without_a_connection_was_not_done(self) -> None:
        async def main() -> timecached.TimecacheError:
            async with timecached.aio.Client(address) as client:
                with self.assertRaises(timecached.UnavailableError) as caught:
                    await client.put("a", "1")
                return caught.exception

        address = self.refused_address()
        with timecached.Client(address) as client:
            with self.assertRaises(timecached.UnavailableError) as caught:
                client.put("a", "1")
        self.assertFalse(caught.exception.maybe_applied, caught.exception)
        self.assertFalse(asyncio.run(main()).maybe_applied)
        with timecached.Client("no-such-host.invalid:1") as client:
            with self.assertRaises(timecached.UnavailableError) as caught:
                client.put("a", "1")
        self.assertFalse(caught.exception.maybe_applied, caught.exception)

    def test_a_call_whose_connection_breaks_may_have_been_done(self) -> None:
        # Takes a connection, and drops it once a request has come.
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        # What a server says first: SETTINGS, empty, and their acknowledgement.
        hello = bytes([0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0])

        def drop() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                connection.sendall(hello)
                seen = b""
                while b"lost-key" not in seen and (got := connection.recv(65536)):
                    seen += got
                connection.close()

        threading.Thread(target=drop, daemon=True).start()
        with timecached.Client(f"127.0.0.1:{listener.getsockname()[1]}", timeout=10) as client:
            client._endpoints.current._up = True
            with self.assertRaises(timecached.UnavailableError) as caught:
                client.put("lost-key", "1")
        self.assertTrue(caught.exception.maybe_applied, caught.exception)

    def test_it_is_of_all_attempts(self) -> None:
        with timecached.Client(self.refused_address(), batching=False) as client:
            errors = [
                timecached.UnavailableError(grpc.StatusCode.UNAVAILABLE, "reset"),
                timecached.UnavailableError(
                    grpc.StatusCode.UNAVAILABLE, "failed to connect to all addresses"
                ),
            ]

            def attempt(*args: Any) -> Any:
                raise errors.pop(0)

            client._open = attempt  # type: ignore[assignment, method-assign]
            with self.assertRaises(timecached.UnavailableError) as caught:
                client.with_options(
                    repeatable=True, retry=timecached.RetryPolicy(max_attempts=2)
                ).put("a", "1")
        self.assertIn("failed to connect", caught.exception.message)
        self.assertTrue(caught.exception.maybe_applied)

    def test_what_the_server_refuses_was_not_done(self) -> None:
        status = fake.refusal(9, "KEY_EXISTS")
        error = errors.error_from_status(status)
        self.assertFalse(error.maybe_applied)
        self.assertTrue(errors.error_from_status(fake.refusal(13, "INTERNAL_ERROR")).maybe_applied)
        copy = pickle.loads(pickle.dumps(timecached.ClosedError(maybe_applied=True)))
        self.assertTrue(copy.maybe_applied)

    def test_a_dead_connection_is_noticed_within_forty_seconds(self) -> None:
        options = dict(channel._OPTIONS)
        # gRPC has two limits for the answer to a ping, and takes the longer one.
        answer = max(options["grpc.keepalive_timeout_ms"], options["grpc.http2.ping_timeout_ms"])
        self.assertEqual(options["grpc.keepalive_time_ms"] + answer, 40_000)


class ConversionTest(unittest.TestCase):
    def test_a_due_date_goes_on_the_wire(self) -> None:
        put = timecached.Operation.put("a", "1", ttl=5, expire_at=NOW, allow_past=True).message.put
        self.assertEqual(
            (put.ttl.seconds, from_timestamp(put.expire_at), put.allow_past), (5, NOW, True)
        )
        touch = timecached.Operation.touch("a", expire_at=NOW).message.touch
        self.assertEqual((touch.HasField("ttl"), touch.allow_past), (False, False))
        self.assertEqual(from_timestamp(touch.expire_at), NOW)
        with self.assertRaisesRegex(ValueError, "without a time zone"):
            timecached.Operation.put("a", "1", expire_at=datetime(2026, 1, 1))

    def test_statistics_have_what_is_new(self) -> None:
        statistics = groups_pb2.GroupStatistics(returned=1, extended=2, suspects=3, terminated=4)
        group = timecached.admin_types.group_from(groups_pb2.Group(statistics=statistics))
        assert group.statistics is not None
        got = group.statistics
        self.assertEqual((got.returned, got.extended, got.suspects, got.terminated), (1, 2, 3, 4))


if __name__ == "__main__":
    unittest.main()
