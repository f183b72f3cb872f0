"""What the scenarios of tests/conformance/recipes leave open: waiting, and what goes wrong."""

from __future__ import annotations

import asyncio
import threading
import unittest
from typing import Any

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
