"""Watches: resuming over restarts, ends, waiting."""

from __future__ import annotations

import asyncio
import threading
import time
import unittest
from datetime import datetime, timedelta

from server import Server

import timecache
from timecache import testing

DURABLE = timecache.NamespaceOptions(
    ttl=timedelta(seconds=10), num_buckets=11, durability=timecache.Durability.ASYNC
)


def read_to(watcher: timecache.Watcher, now: datetime) -> list[timecache.WatchBatch]:
    """What comes up to a time."""
    batches = [watcher.next(30)]
    while batches[-1].watermark < now:
        batches.append(watcher.next(30))
    return batches


def keys(batches: list[timecache.WatchBatch]) -> list[bytes]:
    return [event.key for batch in batches for event in batch.events]


class RestartTest(unittest.TestCase):
    def setUp(self) -> None:
        self.server = Server("--journal", "DIRECTORY/journal")
        self.addCleanup(self.server.close)
        self.client = timecache.Client(self.server.address)
        self.addCleanup(self.client.close)
        self.clock = testing.VirtualClock(self.client)
        self.client.create_namespace("durable", DURABLE)
        self.client.create_namespace("memory")

    def restart(self, kill: bool = True) -> None:
        self.server.kill() if kill else self.server.stop()
        self.server.start()
        until = time.monotonic() + 30
        while True:
            try:
                self.client.get_server()
                return
            except timecache.UnavailableError:
                if time.monotonic() > until:
                    raise

    def put(self, *names: str) -> None:
        for number, name in enumerate(names):
            self.client.namespace("durable").put(name, name, ttl=number + 1)

    def test_a_watch_goes_on_over_restarts_of_the_server(self) -> None:
        for kill in (True, False):
            breaks: list[timecache.TimecacheError] = []
            with self.client.watch(["durable"], on_break=breaks.append) as watcher:
                watcher.next(30)
                self.put("a", "b", "c")
                seen = read_to(watcher, self.clock.advance(1))
                self.assertEqual(keys(seen), [b"a"])
                self.restart(kill)
                after = read_to(watcher, self.clock.advance(2))
                self.assertEqual(keys(after), [b"b", b"c"])
                self.assertEqual(sum(batch.lost for batch in after), 0)
                self.assertTrue(any(batch.reconnected for batch in after))
                self.assertFalse(any(batch.log_changed for batch in after))
                self.assertTrue(breaks)
            # The token of before the restart is good after it, and for another watch.
            tokens = {"durable": seen[-1].resume_token}
            with self.client.watch(["durable"], resume_tokens=tokens) as again:
                self.assertEqual(keys(read_to(again, self.clock.now())), [b"b", b"c"])

    def test_what_does_not_survive_is_told(self) -> None:
        with self.client.watch(["default"]) as watcher:
            first = watcher.next(30)
            self.restart()
            self.client.put("a", "1", ttl=1)
            batches = read_to(watcher, self.clock.advance(10))
            self.assertTrue(batches[0].log_changed)
            self.assertEqual(batches[0].missed_after, first.watermark)
            self.assertEqual(keys(batches), [b"a"])
            self.assertFalse(any(batch.log_changed for batch in batches[1:]))

    def test_a_watch_of_asyncio_goes_on_too(self) -> None:
        async def main() -> None:
            async with timecache.aio.Client(self.server.address) as client:
                async with client.watch(["durable"]) as watcher:
                    await watcher.next(30)
                    self.put("a", "b", "c")
                    self.clock.advance(1)
                    await asyncio.to_thread(self.restart)
                    now = self.clock.advance(2)
                    batch, seen, lost = await watcher.next(30), [], 0
                    while True:
                        seen += [event.key for event in batch.events]
                        lost += batch.lost
                        if batch.watermark >= now:
                            break
                        batch = await watcher.next(30)
                    self.assertEqual((seen, lost), ([b"a", b"b", b"c"], 0))

        asyncio.run(main())

    def test_a_worker_goes_on_over_restarts_of_the_server(self) -> None:
        self.client.namespace("durable").create_group("g")
        handled: list[bytes] = []
        errors: list[Exception] = []
        client = self.client.namespace("durable")
        with client.worker("g", lambda e: handled.append(e.key), on_error=errors.append) as worker:
            for kill in (True, False):
                handled.clear()
                self.put("a", "b")
                self.clock.advance(1)
                await_(lambda: handled == [b"a"] and self.unsettled() == 0)
                self.restart(kill)
                self.clock.advance(1)
                await_(lambda: handled == [b"a", b"b"] and self.unsettled() == 0)
        self.assertTrue(errors)
        self.assertEqual(worker.counters.unsettled, 0)

    def unsettled(self) -> int:
        group = self.client.namespace("durable").get_group("g", include_statistics=True)
        assert group.statistics is not None
        return group.statistics.backlog + group.statistics.in_flight


def await_(holds: object, timeout: float = 30) -> None:
    assert callable(holds)
    until = time.monotonic() + timeout
    while not holds():
        if time.monotonic() > until:
            raise TimeoutError("in vain")
        time.sleep(0.005)


class EndTest(unittest.TestCase):
    def setUp(self) -> None:
        self.server = Server()
        self.addCleanup(self.server.close)
        self.client = timecache.Client(self.server.address)
        self.addCleanup(self.client.close)

    def test_close_ends_who_waits(self) -> None:
        watcher = self.client.watch()
        watcher.next(30)
        seen: list[timecache.WatchBatch] = []
        thread = threading.Thread(target=lambda: seen.extend(watcher))
        thread.start()
        time.sleep(0.05)
        watcher.close()
        thread.join(10)
        self.assertFalse(thread.is_alive())
        with self.assertRaises(timecache.CallCancelledError):
            watcher.next()

    def test_a_wait_has_a_limit_and_loses_nothing(self) -> None:
        clock = testing.VirtualClock(self.client)
        with self.client.watch() as watcher:
            watcher.next(30)
            with self.assertRaises(TimeoutError):
                watcher.next(0.02)
            self.client.put("a", "1", ttl=1)
            self.assertEqual(keys(read_to(watcher, clock.advance(2))), [b"a"])

    def test_a_wait_of_asyncio_has_a_limit_and_loses_nothing(self) -> None:
        async def main() -> None:
            async with timecache.aio.Client(self.server.address) as client:
                clock = testing.AsyncVirtualClock(client)
                async with client.watch() as watcher:
                    await watcher.next(30)
                    with self.assertRaises(TimeoutError):
                        await watcher.next(0.02)
                    task = asyncio.create_task(watcher.next())
                    await asyncio.sleep(0.02)
                    task.cancel()
                    await asyncio.wait([task])
                    await client.put("a", "1", ttl=1)
                    await clock.advance(2)
                    self.assertEqual([e.key for e in (await watcher.next(30)).events], [b"a"])
                with self.assertRaises(timecache.CallCancelledError):
                    await watcher.next()
                self.assertEqual([batch async for batch in watcher], [])

        asyncio.run(main())

    def test_a_silent_stream_is_broken(self) -> None:
        breaks: list[timecache.TimecacheError] = []
        with self.client.watch(silence_max=1.0, on_break=breaks.append) as watcher:
            watcher.next(30)
            self.assertTrue(watcher.next(30).reconnected)
            self.assertEqual({error.message for error in breaks}, {"the server fell silent"})

    def test_silence_is_noticed_by_who_waits_a_little_at_a_time(self) -> None:
        async def main() -> None:
            async with timecache.aio.Client(self.server.address) as client:
                async with client.watch(silence_max=1.0) as watcher:
                    await watcher.next(30)
                    reconnected = False
                    while not reconnected:
                        self.assertLess(time.monotonic(), until)
                        try:
                            reconnected = (await watcher.next(0.1)).reconnected
                        except TimeoutError:
                            pass

        until = time.monotonic() + 30
        with self.client.watch(silence_max=1.0) as watcher:
            watcher.next(30)
            reconnected = False
            while not reconnected:
                self.assertLess(time.monotonic(), until)
                try:
                    reconnected = watcher.next(0.1).reconnected
                except TimeoutError:
                    pass
        asyncio.run(main())

    def test_a_token_that_fails_for_a_while_ends_no_watch(self) -> None:
        failing = False

        def token() -> str:
            if failing:
                raise OSError("no token")
            return "t"

        breaks: list[timecache.TimecacheError] = []
        with timecache.Client(self.server.address, token=token) as client:
            with client.watch(silence_max=1.0, on_break=breaks.append) as watcher:
                watcher.next(30)
                failing = True
                while not any("no token" in error.message for error in breaks):
                    with self.assertRaises(TimeoutError):
                        watcher.next(0.1)
                failing = False
                self.assertTrue(watcher.next(30).reconnected)

    def test_a_watch_may_wait_for_its_server(self) -> None:
        self.server.stop()
        breaks: list[timecache.TimecacheError] = []
        with self.client.watch(wait_for_server=True, on_break=breaks.append) as watcher:
            with self.assertRaises(TimeoutError):
                watcher.next(0.2)
            self.server.start()
            self.assertEqual(watcher.next(30).namespace, "default")
        self.assertTrue(breaks)

    def test_a_server_that_stops_ends_no_watch(self) -> None:
        with self.client.watch() as watcher:
            watcher.next(30)
            self.server.stop()
            self.server.start()
            batch = watcher.next(30)
            while not batch.reconnected:
                batch = watcher.next(30)
            self.assertTrue(batch.log_changed)


if __name__ == "__main__":
    unittest.main()
