"""Watches: resuming over restarts, ends, waiting."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
import unittest
from datetime import datetime, timedelta
from typing import Any

from server import Server

import timecached
from timecached import testing, watching

DURABLE = timecached.NamespaceOptions(
    ttl=timedelta(seconds=10), num_buckets=11, durability=timecached.Durability.ASYNC
)


def read_to(watcher: timecached.Watcher, now: datetime) -> list[timecached.WatchBatch]:
    """What comes up to a time."""
    batches = [watcher.next(30)]
    while batches[-1].watermark < now:
        batches.append(watcher.next(30))
    return batches


def read_to_break(watcher: timecached.Watcher) -> list[timecached.WatchBatch]:
    """What comes up to the first batch after a break."""
    batches = [watcher.next(30)]
    while not batches[-1].reconnected:
        batches.append(watcher.next(30))
    return batches


def keys(batches: list[timecached.WatchBatch]) -> list[bytes]:
    return [event.key for batch in batches for event in batch.events]


class RestartTest(unittest.TestCase):
    def setUp(self) -> None:
        self.server = Server("--journal", "DIRECTORY/journal")
        self.addCleanup(self.server.close)
        self.client = timecached.Client(self.server.address)
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
            except timecached.UnavailableError:
                if time.monotonic() > until:
                    raise

    def put(self, *names: str) -> None:
        for number, name in enumerate(names):
            self.client.namespace("durable").put(name, name, ttl=number + 1)

    def test_a_watch_goes_on_over_restarts_of_the_server(self) -> None:
        for kill in (True, False):
            breaks: list[timecached.TimecacheError] = []
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
            async with timecached.aio.Client(self.server.address) as client:
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
        breaks: list[timecached.TimecacheError] = []
        client = self.client.namespace("durable")
        with client.worker(
            "g",
            lambda e: handled.append(e.key),
            max_pause=0.2,
            on_break=breaks.append,
            on_error=errors.append,
        ) as worker:
            for kill in (True, False):
                handled.clear()
                self.put("a", "b")
                self.clock.advance(1)
                await_(lambda: handled == [b"a"] and self.unsettled() == 0)
                self.restart(kill)
                self.clock.advance(1)
                await_(lambda: handled == [b"a", b"b"] and self.unsettled() == 0)
        self.assertTrue(breaks)
        self.assertLessEqual(set(breaks), set(errors))
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
        self.client = timecached.Client(self.server.address)
        self.addCleanup(self.client.close)

    def test_close_ends_who_waits(self) -> None:
        watcher = self.client.watch()
        watcher.next(30)
        seen: list[timecached.WatchBatch] = []
        thread = threading.Thread(target=lambda: seen.extend(watcher))
        thread.start()
        time.sleep(0.05)
        watcher.close()
        thread.join(10)
        self.assertFalse(thread.is_alive())
        with self.assertRaises(timecached.CallCancelledError):
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
            async with timecached.aio.Client(self.server.address) as client:
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
                with self.assertRaises(timecached.CallCancelledError):
                    await watcher.next()
                self.assertEqual([batch async for batch in watcher], [])

        asyncio.run(main())

    def test_a_silent_stream_is_broken(self) -> None:
        breaks: list[timecached.TimecacheError] = []
        options: dict[str, Any] = {"silence_max": 1.0, "on_break": breaks.append}
        for watcher in (
            self.client.watch(**options),
            self.client.watch_expiring(1, **options),
            self.client.consume("g", **options),
        ):
            breaks.clear()
            with watcher:
                watcher.next(30)
                self.assertTrue(watcher.next(30).reconnected)
                self.assertEqual({error.message for error in breaks}, {"the server fell silent"})

    def test_all_watches_reconnect_as_they_are_told(self) -> None:
        async def main() -> None:
            async with timecached.aio.Client(self.server.address) as client:
                check(client)

        def told(error: timecached.TimecacheError) -> None:
            pass

        def check(client: Any) -> None:
            for watcher in (
                client.watch(**options),
                client.watch_expiring(1, **options),
                client.consume("g", **options),
            ):
                self.assertEqual(watcher._state.reconnecting, watching.Reconnecting(**options))
            state = client.worker("g", print, **options)._watcher._state
            self.assertEqual(
                (state.reconnecting.min_pause, state.reconnecting.max_pause), (0.25, 0.5)
            )
            self.assertEqual((state.reconnecting.silence_max, state._backoff._max), (7.0, 0.5))

        options: dict[str, Any] = {
            "wait_for_server": True,
            "min_pause": 0.25,
            "max_pause": 0.5,
            "silence_max": 7.0,
            "on_break": told,
        }
        check(self.client)
        asyncio.run(main())

    def test_what_is_too_large_for_the_channel_comes_without_its_value(self) -> None:
        self.client.create_namespace(
            "large",
            timecached.NamespaceOptions(max_value_bytes=16 << 20, ttl=timedelta(seconds=10)),
        )
        limit = [("grpc.max_receive_message_length", 4 << 20)]
        value = bytes(5 << 20)

        async def main() -> None:
            async with timecached.aio.Client(
                self.server.address, namespace="large", channel_options=limit
            ) as client:
                self.assertEqual(
                    [entry.omitted_value_bytes async for entry in client.scan()], [len(value)]
                )
                async with client.watch(from_earliest=True) as watcher:
                    while not (events := (await watcher.next(30)).events):
                        await asyncio.to_thread(clock.advance, 20)
                    self.assertEqual(events[0].omitted_value_bytes, len(value))

        clock = testing.VirtualClock(self.client)
        self.client.namespace("large").put("a", value)
        asyncio.run(main())
        with timecached.Client(
            self.server.address, namespace="large", channel_options=limit
        ) as client:
            client.put("b", value)
            self.assertEqual([e.omitted_value_bytes for e in client.scan()], [len(value)])
            with client.consume("g") as member, client.watch_expiring(1) as expiring:
                while not (events := expiring.next(30).events):
                    clock.advance(9)
                self.assertEqual(events[0].omitted_value_bytes, len(value))
                while not (events := member.next(30).events):
                    clock.advance(20)
                self.assertEqual(events[0].omitted_value_bytes, len(value))

    def test_what_is_asked_for_is_what_the_channel_takes(self) -> None:
        for given, asked in (
            ([], 64 << 20),
            ([5 << 20], 5 << 20),
            ([5 << 20, 1 << 30], 1 << 30),
            ([1], 4 << 20),  # The least that the server is to be asked for.
            ([-1], 64 << 20),
        ):
            options = [("grpc.max_receive_message_length", limit) for limit in given]
            with timecached.Client(self.server.address, channel_options=options) as client:
                self.assertEqual(client._max_message_bytes, asked)
                with client.watch() as watcher:
                    watcher.next(30)

    def test_silence_is_noticed_by_who_waits_a_little_at_a_time(self) -> None:
        async def main() -> None:
            async with timecached.aio.Client(self.server.address) as client:
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

        breaks: list[timecached.TimecacheError] = []
        with timecached.Client(self.server.address, token=token) as client:
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
        breaks: list[timecached.TimecacheError] = []
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


class TokenTest(unittest.TestCase):
    """Tokens that are rotated: the server ends the streams of those that it no longer has."""

    def setUp(self) -> None:
        self.server = Server("--config", "DIRECTORY/config.yaml", listens=False, starts=False)
        self.addCleanup(self.server.close)
        self.server.configure(
            "listeners: [{address: 127.0.0.1:PORT}]\naccess: {file: DIRECTORY/access.yaml}\n"
        )
        self.numbers = itertools.count()
        self.token = ""
        self.rotate()
        self.server.start()
        self.operator = timecached.Client(self.server.address, token="operator")
        self.addCleanup(self.operator.close)
        self.clock = testing.VirtualClock(self.operator)
        self.client = timecached.Client(self.server.address, token=lambda: self.token)
        self.addCleanup(self.client.close)
        self.breaks: list[timecached.TimecacheError] = []

    def rotate(self, tell: bool = True) -> str:
        """To a new token; `tell`: clients have it before the server does."""
        token = f"token-{next(self.numbers)}"
        if tell:
            self.token = token
        self.server.allow(
            {"operator": ["read", "write", "watch", "admin"], token: ["read", "watch", "settle"]}
        )
        return token

    def expire(self, key: str) -> datetime:
        self.operator.put(key, "v", ttl=1)
        return self.clock.advance(2)

    def check_breaks(self) -> None:
        self.assertEqual([error.reason for error in self.breaks], ["UNKNOWN_TOKEN"])
        self.breaks.clear()

    def test_a_watch_goes_on_with_the_new_token(self) -> None:
        with self.client.watch(on_break=self.breaks.append) as watcher:
            watcher.next(30)
            for key in ("a", "b"):
                self.assertEqual(keys(read_to(watcher, self.expire(key))), [key.encode()])
                self.rotate()
                batches = read_to_break(watcher)
                self.assertEqual(keys(batches), [])
                self.assertFalse(any(batch.lost or batch.log_changed for batch in batches))
                self.check_breaks()
            self.assertEqual(keys(read_to(watcher, self.expire("c"))), [b"c"])

    def test_other_watches_go_on_with_it_too(self) -> None:
        for watcher in (
            self.client.watch_expiring(5, on_break=self.breaks.append),
            self.client.consume("g", on_break=self.breaks.append),
        ):
            with watcher:
                watcher.next(30)
                self.rotate()
                read_to_break(watcher)
                self.check_breaks()
                self.operator.put("a", "v", ttl=4)
                self.clock.advance(1)
                while not (events := watcher.next(30).events):
                    self.clock.advance(1)
                self.assertEqual(events[0].key, b"a")

    def test_a_watch_of_asyncio_goes_on_with_it(self) -> None:
        async def token() -> str:
            return self.token

        async def main() -> None:
            async with (
                timecached.aio.Client(self.server.address, token=token) as client,
                timecached.aio.Client(self.server.address, token="operator") as operator,
            ):
                async with client.watch(on_break=self.breaks.append) as watcher:
                    await watcher.next(30)
                    self.rotate()
                    while not (await watcher.next(30)).reconnected:
                        pass
                    self.check_breaks()
                    await operator.put("a", "v", ttl=1)
                    await testing.AsyncVirtualClock(operator).advance(2)
                    while not (events := (await watcher.next(30)).events):
                        pass
                    self.assertEqual([event.key for event in events], [b"a"])
                    self.rotate(tell=False)
                    with self.assertRaises(timecached.UnauthenticatedError):
                        while True:
                            await watcher.next(30)

        asyncio.run(main())

    def test_workers_go_on_with_it(self) -> None:
        handled: list[bytes] = []
        with self.client.worker(
            "g",
            lambda event: handled.append(event.key),
            on_break=self.breaks.append,
            on_error=lambda error: None,
        ) as worker:
            await_(lambda: self.members() == 1)
            self.rotate()
            await_(lambda: self.breaks and self.members() == 1)
            self.check_breaks()
            self.expire("a")
            await_(lambda: worker.counters.acked == 1)
        self.assertEqual(handled, [b"a"])

    def members(self) -> int:
        try:
            statistics = self.operator.get_group("g", include_statistics=True).statistics
        except timecached.NotFoundError:
            return 0
        assert statistics is not None
        return statistics.members

    def test_a_token_that_is_just_being_replaced_is_asked_for_again(self) -> None:
        failing = False
        asked: list[str] = []

        def token() -> str:
            if failing:
                raise OSError("no token")
            asked.append(self.token)
            return self.token

        def told(error: timecached.TimecacheError) -> None:
            nonlocal failing
            failing = False
            self.breaks.append(error)

        with timecached.Client(self.server.address, token=token) as client:
            with client.watch(on_break=told) as watcher:
                watcher.next(30)
                failing = True
                self.rotate()
                read_to_break(watcher)
        self.assertIsNone(self.breaks[0].reason)
        self.assertEqual(self.breaks[1].reason, "UNKNOWN_TOKEN")
        self.assertEqual(asked, ["token-0", "token-1"])

    def test_a_token_that_stays_ends_the_watch(self) -> None:
        for token in (self.token, lambda: self.token):
            with timecached.Client(self.server.address, token=token) as client:
                watcher = client.watch(on_break=self.breaks.append)
                watcher.next(30)
                worker = client.worker("g", lambda event: None).start()
                await_(lambda: self.members() == 1)
                new = self.rotate(tell=False)
                for _ in range(2):
                    with self.assertRaises(timecached.UnauthenticatedError):
                        while True:
                            watcher.next(30)
                with self.assertRaises(timecached.UnauthenticatedError):
                    worker.wait(30)
                self.assertEqual(self.breaks, [])
            self.token = new

    def test_tokens_that_are_always_new_and_never_good_end_it(self) -> None:
        def token() -> str:
            asked.append(f"bad-{len(asked)}")
            return asked[-1]

        async def main() -> None:
            async with timecached.aio.Client(self.server.address, token=token) as client:
                with self.assertRaises(timecached.UnauthenticatedError):
                    await client.watch().next(30)

        asked: list[str] = []
        with timecached.Client(self.server.address, token=token) as client:
            with self.assertRaises(timecached.UnauthenticatedError):
                client.watch().next(30)
        self.assertEqual(len(asked), 2)
        asyncio.run(main())
        self.assertEqual(len(asked), 4)


if __name__ == "__main__":
    unittest.main()
