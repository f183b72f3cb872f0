"""The examples, on the virtual clock."""

from __future__ import annotations

import asyncio
import contextlib
import pathlib
import signal
import subprocess
import sys
import unittest
from datetime import timedelta
from typing import Any

from server import Server
from test_watch import await_

import timecached
from timecached import testing

EXAMPLES = pathlib.Path(__file__).parents[1] / "examples"
sys.path.insert(0, str(EXAMPLES))

import join  # noqa: E402
import orders  # noqa: E402
import sessions  # noqa: E402


def has(client: timecached.Client, key: str) -> bool:
    """Whether a key is there, in a namespace that may not be there yet."""
    try:
        return client.contains(key)
    except timecached.NotFoundError:
        return False


def acked(client: timecached.Client, group: str) -> int:
    statistics = client.get_group(group, include_statistics=True).statistics
    assert statistics is not None
    return statistics.acked


class ExamplesTest(unittest.TestCase):
    def setUp(self) -> None:
        self.server = Server()
        self.addCleanup(self.server.close)
        self.client = timecached.Client(self.server.address)
        self.addCleanup(self.client.close)
        self.clock = testing.VirtualClock(self.client)

    def test_orders_that_are_not_paid_are_cancelled(self) -> None:
        cancelled: list[Any] = []
        shop = orders.Orders(self.client, lambda *order: cancelled.append(order))
        shop.place("paid", {"total": 1})
        shop.place("unpaid", {"total": 2})
        with shop.worker():
            self.clock.advance(timedelta(minutes=14, seconds=59))
            self.assertTrue(shop.pay("paid"))
            self.clock.advance(timedelta(seconds=1))
            self.assertFalse(shop.pay("unpaid"))
            await_(lambda: cancelled)
        self.assertEqual(cancelled, [("unpaid", {"total": 2})])

    def test_orders_wait_for_the_first_worker(self) -> None:
        cancelled: list[Any] = []
        shop = orders.Orders(self.client, lambda *order: cancelled.append(order))
        shop.place("unpaid", {"total": 2})
        self.clock.advance(timedelta(minutes=16))
        self.clock.advance(timedelta(days=1))  # Longer than events are retained.
        with shop.worker():
            await_(lambda: cancelled)

    def test_sessions_end_when_they_are_idle(self) -> None:
        store = sessions.Sessions(self.client)
        with store.ended() as ended:
            ended.next(30)
            session_id = store.open({"user": "ada"})
            self.clock.advance(timedelta(minutes=29))
            read = store.read(session_id)
            assert read is not None
            self.assertEqual(read[0], {"user": "ada"})
            version = store.write(session_id, {"user": "ada", "seen": 1}, read[1])
            self.assertIsNotNone(version)
            self.assertIsNone(store.write(session_id, {}, read[1]))
            self.clock.advance(timedelta(minutes=29))
            self.assertIsNotNone(store.read(session_id))
            now = self.clock.advance(timedelta(minutes=31))
            self.assertIsNone(store.read(session_id))
            events: list[timecached.ExpiredEvent] = []
            while (batch := ended.next(30)).watermark < now:
                events += batch.events
            events += batch.events
            self.assertEqual([event.json() for event in events], [{"user": "ada", "seen": 1}])

    def test_a_join_gives_pairs_and_tells_what_stayed_alone(self) -> None:
        async def run() -> None:
            async with timecached.aio.Client(self.server.address) as client:
                rows = join.Join(client, "ads")
                await rows.prepare()
                await rows.prepare()
                left_over = rows.incomplete()
                first = asyncio.ensure_future(anext(left_over))
                while (
                    await client.get_namespace("ads", include_statistics=True)
                ).statistics.watchers == 0:  # type: ignore[union-attr]
                    await asyncio.sleep(0.005)
                self.assertIsNone(await rows.add("1", "impression", b"page"))
                self.assertIsNone(await rows.add("2", "impression", b"alone"))
                pair = await rows.add("1", "click", b"button")
                self.assertEqual(pair, {b"impression": b"page", b"click": b"button"})
                await asyncio.to_thread(self.clock.advance, timedelta(minutes=2))
                self.assertEqual(await first, ("2", {b"impression": b"alone"}))
                await left_over.aclose()  # type: ignore[attr-defined]

        asyncio.run(run())

    def test_the_program_of_orders_runs_until_it_is_interrupted(self) -> None:
        # What a shell runs in the background ignores interrupts, and so would this program.
        program = subprocess.Popen(
            ["env", "--default-signal=INT", sys.executable, "-B", EXAMPLES / "orders.py",
             self.server.address], stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        with contextlib.ExitStack() as cleanup:
            cleanup.callback(program.communicate)
            cleanup.callback(program.kill)
            pending = self.client.namespace("pending-orders")
            await_(lambda: has(pending, "17"))
            self.clock.advance(timedelta(minutes=15))
            await_(lambda: acked(pending, "cancel") == 1)
            program.send_signal(signal.SIGINT)
            shown, _ = program.communicate(timeout=30)
            self.assertEqual(shown, "cancelled: 17 {'total': 42}\nstopping\n")
            self.assertEqual(program.returncode, 0)

    def run_program(self, name: str, *arguments: str) -> str:
        return subprocess.run(
            [sys.executable, "-B", EXAMPLES / name, *arguments],
            check=True, text=True, stdout=subprocess.PIPE, timeout=60,
        ).stdout  # fmt: skip

    def test_programs_run(self) -> None:
        self.assertIn("book", self.run_program("sessions.py", self.server.address))
        shown = self.run_program("join.py", self.server.address)
        self.assertEqual(shown, "None\n{b'impression': b'page 7', b'click': b'button 3'}\n")

    def test_a_member_prints_what_it_is_given(self) -> None:
        self.client.create_group("g")
        self.client.put("a", b"\xff\x00", ttl=1)
        self.client.put("b", "1", ttl=2)
        self.clock.advance(10)
        shown = self.run_program("member.py", self.server.address, "default", "g", "2")
        self.assertEqual(shown, "a\tff00\t1\nb\t31\t1\n")
        self.assertEqual(acked(self.client, "g"), 2)


if __name__ == "__main__":
    unittest.main()
