"""What the scenarios of tests/conformance/recipes leave open: waiting, and what goes wrong."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import unittest
from datetime import datetime, timedelta, timezone
from typing import Any
from unittest import mock

import grpc
from server import Server
from test_watch import await_

import timecached
from timecached import aio, recipes, testing


class RecipesTest(unittest.TestCase):
    """Against a server on a clock that stands still, unless a test moves it."""

    server: Server

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = Server()
        cls.addClassCleanup(cls.server.close)

    def setUp(self) -> None:
        self.namespace = self._testMethodName.replace("_", "-")
        self.client = timecached.Client(self.server.address, namespace=self.namespace)
        self.addCleanup(self.client.close)
        self.client.create_namespace(self.namespace)
        self.clock = testing.VirtualClock(self.client)
        self.lost: list[str] = []

    def lock(self, owner: str, **more: Any) -> recipes.Lock:
        return recipes.Lock(self.client, "lock", owner=owner, **more)

    def acquire_in_thread(self, lock: recipes.Lock, tokens: list[int | None]) -> threading.Thread:
        waiter = threading.Thread(target=lambda: tokens.append(lock.acquire(60)), daemon=True)
        waiter.start()
        return waiter

    def test_a_waiter_gets_the_lock_when_the_lease_ends(self) -> None:
        first = self.lock("a").try_acquire()
        assert first is not None
        tokens: list[int | None] = []
        waiter = self.acquire_in_thread(self.lock("b", recheck=60), tokens)
        self.clock.advance(11)
        waiter.join(60)
        assert tokens and tokens[0] is not None
        self.assertGreater(tokens[0], first)

    def test_a_waiter_looks_again_where_no_event_comes(self) -> None:
        self.assertIsNotNone(self.lock("a").try_acquire())
        tokens: list[int | None] = []
        waiter = self.acquire_in_thread(self.lock("b", recheck=0.01), tokens)
        self.client.remove("lock")
        waiter.join(60)
        self.assertIsNotNone(tokens[0])

    def test_a_waiter_gives_up(self) -> None:
        self.assertIsNotNone(self.lock("a").try_acquire())
        self.assertIsNone(self.lock("b").acquire(0))
        self.assertIsNone(self.lock("b").acquire(0.02))

    def test_a_lease_that_is_over_is_lost(self) -> None:
        lost = threading.Event()
        lock = self.lock("a", ttl=0.05, on_lost=lost.set)
        token = lock.try_acquire()
        self.assertTrue(lost.wait(60))
        self.assertEqual((lock.token, lock.remaining), (None, 0))
        self.assertFalse(lock.renew())
        # The server's clock stands: it is still this owner's.
        self.assertIsNone(self.lock("b").try_acquire())
        lost.clear()
        self.assertEqual(lock.try_acquire(), token)
        self.assertTrue(lost.wait(60))

    def test_a_call_finds_the_lease_lost(self) -> None:
        lock = self.lock("a", on_lost=lambda: self.lost.append("a"))
        self.assertIsNotNone(lock.try_acquire())
        self.assertTrue(0 < lock.remaining <= 10)
        self.clock.advance(11)
        self.assertIsNotNone(self.lock("b").try_acquire())
        self.assertFalse(lock.renew())
        self.assertFalse(lock.release())
        self.assertEqual(self.lost, ["a"])

    def test_a_released_lease_is_not_lost(self) -> None:
        lock = self.lock("a", ttl=60, on_lost=lambda: self.lost.append("a"))
        self.assertIsNotNone(lock.try_acquire())
        self.assertTrue(lock.release())
        await_(lambda: "timecached-lock" not in {each.name for each in threading.enumerate()})
        self.assertEqual(self.lost, [])

    def unanswered(self, method: str) -> Any:
        """While it lasts, calls of this method are done, and not answered."""
        call = getattr(timecached.Client, method)

        def lose(*args: Any, **options: Any) -> None:
            call(*args, **options)
            raise timecached.UnavailableError(grpc.StatusCode.UNAVAILABLE, "lost")

        return mock.patch.object(timecached.Client, method, lose)

    def test_an_acquisition_without_an_answer_is_taken_over(self) -> None:
        lock = self.lock("a", ttl=10)
        with self.unanswered("put"), self.assertRaises(timecached.UnavailableError):
            lock.try_acquire()
        self.assertIsNone(lock.token)
        self.assertIsNone(self.lock("b").try_acquire())
        self.clock.advance(9)
        entry = self.client.get("lock")
        assert entry is not None
        self.assertEqual(lock.try_acquire(), entry.version)
        # With a fresh time to live: who takes it over does not know when it began.
        self.clock.advance(9)
        self.assertIsNone(self.lock("b").try_acquire())

    def test_a_release_without_an_answer_is_repeated(self) -> None:
        lock = self.lock("a", on_lost=lambda: self.lost.append("a"))
        token = lock.try_acquire()
        with self.unanswered("put"), self.assertRaises(timecached.UnavailableError):
            lock.release()
        self.assertEqual(lock.token, token)
        other = self.lock("b")
        self.assertIsNotNone(other.try_acquire())
        self.assertFalse(lock.release())
        self.assertIsNone(lock.token)
        self.assertTrue(other.renew())
        self.assertEqual(self.lost, [])

    def test_what_is_added_again_counts_once(self) -> None:
        array, id = recipes.Array(self.client, "array"), recipes.new_id()
        with self.unanswered("append"), self.assertRaises(timecached.UnavailableError):
            array.add("once", id=id)
        array.add("once", id=id)
        self.assertEqual(array.read().items, (recipes.Item(id, b"once"),))

    def test_work_that_raises_leaves_its_claim(self) -> None:
        def answer(work: Any) -> bytes:
            return recipes.answer_once(self.client, "r", work, work_time=5, remembered=60)

        with self.assertRaises(ZeroDivisionError):
            answer(lambda: str(1 // 0))
        with self.assertRaises(timecached.AbortedError):
            answer(lambda: "1")
        self.clock.advance(6)
        self.assertEqual(answer(lambda: "2"), b"2")

    def test_work_that_takes_too_long_says_so(self) -> None:
        def work() -> str:
            self.clock.advance(6)
            return "late"

        with self.assertRaises(timecached.FailedPreconditionError):
            recipes.answer_once(self.client, "r", work, work_time=5, remembered=60)

    def test_changes_of_an_array_at_the_same_time_are_all_kept(self) -> None:
        array = recipes.Array(self.client, "array")

        def change() -> None:
            for number in range(30):
                id = array.add(str(number))
                if number % 3 == 0:
                    array.remove(id)

        threads = [threading.Thread(target=change) for _ in range(4)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            with contextlib.suppress(timecached.AbortedError):
                array.compact()
        self.assertEqual(len(array.read().items), 80)

    def test_a_full_array_is_compacted(self) -> None:
        self.client.update_namespace(
            self.namespace, timecached.NamespaceOptions(max_value_bytes=64)
        )
        array = recipes.Array(self.client, "array")
        for _ in range(20):
            array.remove(array.add("0123456789"))
        array.add("0123456789")
        array.add("0123456789")
        with self.assertRaises(timecached.FailedPreconditionError):
            array.add("0123456789")

    def test_an_array_is_updated_as_a_whole(self) -> None:
        array = recipes.Array(self.client, "array")
        changes: list[int] = []

        def change(items: list[recipes.Item]) -> list[recipes.Item]:
            changes.append(len(items))
            if len(changes) == 1:
                array.add("from another")
            return [*items, recipes.Item(recipes.new_id(), b"last")]

        array.update(change)
        self.assertEqual(changes, [0, 1])
        self.assertEqual([item.value for item in array.read().items], [b"from another", b"last"])

    def test_tuples_and_acknowledgements_in_a_batch(self) -> None:
        join = recipes.Join(self.client, "people", ["gender", "age"])
        acker = recipes.Acker(self.client, "acks")
        id = acker.new_id()
        results = self.client.execute(
            [
                join.operation("7", "age", "42"),
                join.operation("7", "gender", "female"),
                join.operation("8", "height", "2"),
                acker.track_operation("m", [id]),
                acker.ack_operation("m", id),
            ]
        )
        self.assertEqual(results[:2], [None, recipes.Joined(b"7", (b"female", b"42"))])
        self.assertIsInstance(results[2], timecached.InvalidArgumentError)
        self.assertEqual(results[3:], [False, True])

    def test_a_log_is_read_over_several_responses(self) -> None:
        log = recipes.EventLog(self.client, "log", chunk=1, chunks=20)
        start = datetime(1970, 1, 1, tzinfo=timezone.utc)
        position = log.position_at(start)
        for second in range(8):
            log.append(start + timedelta(seconds=second), bytes(900_000))
        end = start + timedelta(seconds=8)
        self.assertEqual(len(log.read(start, end).events), 8)
        page, position = log.read_new(position, end)
        self.assertEqual(len(page.events), 8)
        self.assertEqual(log.read_new(position, end)[0], recipes.Page((), False))
        with self.assertRaises(ValueError):
            log.append(datetime(1970, 1, 1), "no moment")

    def test_asyncio(self) -> None:
        async def run() -> None:
            async with aio.Client(self.server.address, namespace=self.namespace) as client:
                lost = asyncio.Event()
                lock = aio.recipes.Lock(client, "lock", ttl=0.05, on_lost=lost.set)
                self.assertIsNotNone(await lock.acquire())
                await asyncio.wait_for(lost.wait(), 60)
                self.assertFalse(await lock.renew())
                waiter = aio.recipes.Lock(client, "lock", recheck=60)
                waiting = asyncio.create_task(waiter.acquire(60))
                await testing.AsyncVirtualClock(client).advance(1)
                self.assertIsNotNone(await waiting)
                self.assertTrue(await waiter.release())

        asyncio.run(run())
