"""What needs the server itself: dead letters, extensions, positions of scans."""

from __future__ import annotations

import unittest
from datetime import timedelta

from server import Server
from test_watch import await_

import timecached
from timecached import testing
from timecached.v1 import data_pb2


class ServerTest(unittest.TestCase):
    """Against the real one."""

    def setUp(self) -> None:
        self.server = Server()
        self.addCleanup(self.server.close)
        self.client = timecached.Client(self.server.address)
        self.addCleanup(self.client.close)
        self.clock = testing.VirtualClock(self.client)

    def test_dead_letters(self) -> None:
        self.client.create_namespace("dead", timecached.NamespaceOptions(ttl=timedelta(days=30)))
        self.client.create_namespace(
            "orders", timecached.NamespaceOptions(dead_letter_namespace="dead")
        )
        orders = self.client.namespace("orders")
        orders.create_group("g", timecached.GroupOptions(max_attempts=1))
        with orders.worker("g", lambda event: timecached.Nack()) as worker:
            orders.put("a", "1", ttl=1)
            self.clock.advance(2)
            await_(lambda: worker.counters.nacked == 1)
        dead = self.client.namespace("dead")
        await_(lambda: dead.size().entries == 1)
        (entry,) = dead.scan()
        letter = timecached.decode_dead_letter(entry)
        self.assertEqual(
            (letter.event.namespace, letter.event.key, letter.event.value, letter.group),
            ("orders", b"a", b"1", "g"),
        )
        self.assertEqual((letter.attempts, letter.reason), (1, timecached.DeadLetterReason.NACKED))

    def test_an_event_that_is_given_up_is_a_dead_letter_with_its_reason(self) -> None:
        self.client.create_namespace("dead", timecached.NamespaceOptions(ttl=timedelta(days=30)))
        self.client.create_namespace(
            "orders", timecached.NamespaceOptions(dead_letter_namespace="dead")
        )
        orders = self.client.namespace("orders")
        orders.create_group("g", timecached.GroupOptions(retry_delay=timedelta(seconds=60)))
        reasons: list[str] = []

        def handle(event: timecached.ExpiredEvent) -> timecached.Settle:
            reasons.append(event.last_reason)
            if event.attempt == 1:
                return timecached.Nack(reason="no card")
            return timecached.Terminate("expired card")

        with orders.worker("g", handle) as worker:
            orders.put("a", "1", ttl=1)
            self.clock.advance(2)
            await_(lambda: worker.counters.nacked == 1)
            self.clock.advance(59)
            self.assertEqual(len(reasons), 1)
            self.clock.advance(2)
            await_(lambda: worker.counters.terminated == 1)
        self.assertEqual(reasons, ["", "no card"])
        dead = self.client.namespace("dead")
        await_(lambda: dead.size().entries == 1)
        letter = timecached.decode_dead_letter(next(iter(dead.scan())))
        self.assertEqual(
            (letter.attempts, letter.reason, letter.reason_text),
            (2, timecached.DeadLetterReason.TERMINATED, "expired card"),
        )

    def test_an_extension_keeps_an_event(self) -> None:
        self.client.create_group("g")
        with self.client.consume("g") as member:
            member.next(30)
            self.client.put("a", "1", ttl=1)
            self.clock.advance(2)
            while not (events := member.next(30).events):
                pass
            self.clock.advance(20)
            extend = timecached.Settlement.of(events[0], timecached.Extend())
            self.assertEqual(self.client.settle("g", [extend]), [0])
            self.clock.advance(20)
            group = self.client.get_group("g", include_statistics=True)
            assert group.statistics is not None
            self.assertEqual((group.statistics.timed_out, group.statistics.extended), (0, 1))
            self.assertEqual(self.client.settle("g", [timecached.Settlement.of(events[0])]), [0])

    def test_a_scan_has_positions(self) -> None:
        self.client.execute([timecached.Operation.put(f"k{i}", "v") for i in range(2500)])
        request = data_pb2.ScanRequest(namespace="default", keys_only=True)
        seen: list[bytes] = []
        while True:
            call = self.client._endpoints.current.stubs.data.Scan(request)
            page = next(iter(call), None)
            call.cancel()
            if page is None:
                break
            self.assertTrue(page.position)
            seen += [entry.key for entry in page.entries]
            request.position = page.position
        self.assertEqual((len(seen), len(set(seen))), (2500, 2500))


if __name__ == "__main__":
    unittest.main()
