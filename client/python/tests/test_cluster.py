"""A client with the addresses of several nodes: which one it calls, and when it goes to another."""

from __future__ import annotations

import asyncio
import concurrent.futures
import socket
import threading
import unittest
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import grpc
from fake import refusal
from google.protobuf import any_pb2, text_format
from google.rpc import error_details_pb2

import timecached
from timecached import ErrorReason, Operation, aio, errors
from timecached.v1 import data_pb2, data_pb2_grpc, server_pb2, server_pb2_grpc, watch_pb2
from timecached.watching import Reconnecting, WatchState


class Admin(server_pb2_grpc.ServerServiceServicer):
    """Describes a cluster."""

    def GetCluster(self, request: Any, context: Any) -> Any:
        return text_format.Parse(
            """
            name: "eu" owner: "a" claim: 7 lease_left { nanos: 500000000 } brokers: "kafka:9092"
            nodes { name: "a" role: NODE_ROLE_OWNER caught_up: true }
            nodes { name: "b" since_heartbeat { seconds: 1 } lag_messages: 3 }
            wrong_settings { setting: "min.insync.replicas" value: "1" wanted: "2 or more" }
            """,
            server_pb2.GetClusterResponse(),
        )

    def HandOver(self, request: Any, context: Any) -> Any:
        return server_pb2.HandOverResponse(to=request.to or "the best")


class Node(data_pb2_grpc.TimeCacheServiceServicer):
    """A node that refuses calls while it is no owner, and notes those that it answers."""

    def __init__(self, test: unittest.TestCase) -> None:
        self.owner: str | None = None  # The address of another; "": none owns.
        self.break_calls = False
        self.hangs = False
        self.refusals_left = -1  # So many, then it owns.
        self.keys: list[bytes] = []
        self.tokens: list[list[bytes]] = []
        self.settled = threading.Event()
        self._ends: list[threading.Event] = []
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(8))
        data_pb2_grpc.add_TimeCacheServiceServicer_to_server(self, self._server)  # type: ignore[no-untyped-call]
        server_pb2_grpc.add_ServerServiceServicer_to_server(Admin(), self._server)  # type: ignore[no-untyped-call]
        port = self._server.add_insecure_port("127.0.0.1:0")
        self.address = f"127.0.0.1:{port}"
        self._server.start()
        test.addCleanup(self.stop)

    def stop(self) -> None:
        for end in self._ends:
            end.set()
        self._server.stop(0).wait(20)

    def hand_over(self, owner: str) -> None:
        """From now on another one owns; streams end so."""
        self.owner = owner
        for end in self._ends:
            end.set()

    def _enter(self, context: Any) -> None:
        if self.hangs:
            over = threading.Event()
            if context.add_callback(over.set):
                over.wait(60)
            context.abort(grpc.StatusCode.ABORTED, "too late")
        if self.break_calls:
            context.abort(grpc.StatusCode.UNAVAILABLE, "Socket closed")
        if self.refusals_left > 0:
            self.refusals_left -= 1
            if self.refusals_left == 0:
                self.owner = None
        if self.owner is None:
            return
        status = refusal(14, "NOT_OWNER")
        if self.owner:
            detail = any_pb2.Any()
            detail.Pack(
                error_details_pb2.ErrorInfo(
                    reason="NOT_OWNER", domain="timecached", metadata={"owner_address": self.owner}
                )
            )
            del status.details[:]
            status.details.append(detail)
        context.set_trailing_metadata([("grpc-status-details-bin", status.SerializeToString())])
        context.abort(grpc.StatusCode.UNAVAILABLE, "refused")

    def Put(self, request: Any, context: Any) -> Any:
        self._enter(context)
        self.keys.append(request.key)
        return data_pb2.PutResponse(version=1)

    def Contains(self, request: Any, context: Any) -> Any:
        self._enter(context)
        return data_pb2.ContainsResponse(contains=True)

    def Scan(self, request: Any, context: Any) -> Iterator[Any]:
        self._enter(context)
        yield data_pb2.ScanResponse(entries=[data_pb2.Entry(key=b"scanned")])

    def Pipeline(self, requests: Any, context: Any) -> Iterator[Any]:
        if not self.break_calls:  # It breaks once there is a call.
            self._enter(context)
        for request in requests:
            self._enter(context)
            results = []
            for each in request.operations:
                if each.HasField("put"):
                    self.keys.append(each.put.key)
                    put = data_pb2.PutResponse(version=1)
                    results.append(data_pb2.OperationResult(put=put))
                else:
                    contains = data_pb2.ContainsResponse(contains=True)
                    results.append(data_pb2.OperationResult(contains=contains))
            yield data_pb2.ExecuteResponse(results=results)

    def WatchExpired(self, request: Any, context: Any) -> Iterator[Any]:
        self._enter(context)
        self.tokens.append(list(request.resume_tokens))
        end = threading.Event()
        self._ends.append(end)
        yield watch_pb2.WatchExpiredResponse(
            namespace="default",
            resume_token=self.address.encode(),
            events=[watch_pb2.ExpiredEvent(key=self.address.encode())],
        )
        if context.add_callback(end.set):
            end.wait(60)
        self._enter(context)

    def ConsumeExpired(self, request: Any, context: Any) -> Iterator[Any]:
        self._enter(context)
        yield watch_pb2.ConsumeExpiredResponse(
            namespace="default", events=[watch_pb2.ExpiredEvent(key=b"k", event_id=7, attempt=1)]
        )
        end = threading.Event()
        self._ends.append(end)
        if context.add_callback(end.set):
            end.wait(60)

    def SettleExpired(self, request: Any, context: Any) -> Any:
        self._enter(context)
        self.settled.set()
        return watch_pb2.SettleExpiredResponse(
            results=[watch_pb2.SettleResult() for _ in request.settlements]
        )


def gone() -> str:
    """An address that nothing listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


class ClusterTest(unittest.TestCase):
    def setUp(self) -> None:
        self.a = Node(self)
        self.b = Node(self)
        self.client = self.make_client(f"{self.a.address}, {self.b.address}")

    def make_client(self, address: Any) -> timecached.Client:
        client = timecached.Client(address, timeout=60)
        self.addCleanup(client.close)
        return client

    def test_calls_go_to_the_owner_that_the_node_names(self) -> None:
        self.a.owner = self.b.address
        self.client.put(b"key", b"value")
        self.assertEqual(self.b.keys, [b"key"])
        self.assertEqual([entry.key for entry in self.client.scan()], [b"scanned"])

    def test_a_scan_finds_the_owner(self) -> None:
        self.a.owner = self.b.address
        self.assertEqual([entry.key for entry in self.client.scan()], [b"scanned"])

    def test_calls_wait_until_a_node_owns(self) -> None:
        self.a.owner = self.b.owner = ""
        self.b.refusals_left = 3
        self.client.put(b"key", b"value")
        self.assertEqual(self.b.keys, [b"key"])

    def test_without_an_owner_a_call_ends_with_its_timeout(self) -> None:
        self.a.owner = self.b.owner = ""
        with self.assertRaises(timecached.TimecacheError) as raised:
            self.client.with_options(timeout=0.1).put(b"key", b"value")
        if raised.exception.reason == ErrorReason.NOT_OWNER:
            self.assertFalse(raised.exception.maybe_applied)

    def test_one_address_is_enough_to_find_the_owner(self) -> None:
        self.a.owner = self.b.address
        self.make_client(self.a.address).put(b"key", b"value")
        self.assertEqual(self.b.keys, [b"key"])

    def test_an_owner_that_cannot_be_reached_is_left_for_the_next_address(self) -> None:
        self.a.owner = gone()
        self.make_client([self.a.address, self.b.address]).put(b"key", b"value")
        self.assertEqual(self.b.keys, [b"key"])

    def test_a_node_that_is_gone_is_left_by_the_same_call(self) -> None:
        self.make_client([gone(), self.b.address]).put(b"key", b"value")
        self.assertEqual(self.b.keys, [b"key"])

    def test_a_broken_call_is_repeated_elsewhere_only_if_that_is_safe(self) -> None:
        self.a.break_calls = True
        with self.assertRaises(timecached.UnavailableError) as raised:
            self.client.put(b"key", b"value")
        self.assertTrue(raised.exception.maybe_applied)
        self.client.put(b"next", b"value")
        self.assertEqual(self.b.keys, [b"next"])
        self.a.break_calls = False
        self.b.break_calls = True
        self.assertTrue(self.client.contains(b"key"))

    def test_a_watch_resumes_at_the_owner_with_its_token(self) -> None:
        with self.client.watch(min_pause=0.001) as watcher:
            self.assertEqual(watcher.next(60).events[0].key, self.a.address.encode())
            self.a.hand_over(self.b.address)
            batch = watcher.next(60)
            self.assertTrue(batch.reconnected)
            self.assertEqual(batch.events[0].key, self.b.address.encode())
        self.assertEqual(self.b.tokens, [[self.a.address.encode()]])

    def test_a_watch_resumes_at_the_next_address_when_its_node_dies(self) -> None:
        with self.client.watch(min_pause=0.001) as watcher:
            watcher.next(60)
            # That one owns after three refusals.
            self.b.owner = self.a.address
            self.b.refusals_left = 3
            self.a.stop()
            self.assertEqual(watcher.next(60).events[0].key, self.b.address.encode())
        self.assertEqual(self.b.tokens, [[self.a.address.encode()]])

    def test_a_watch_that_begins_finds_the_owner(self) -> None:
        self.a.owner = self.b.address
        breaks: list[timecached.TimecacheError] = []
        with self.client.watch(on_break=breaks.append) as watcher:
            self.assertEqual(watcher.next(60).events[0].key, self.b.address.encode())
        self.assertEqual(breaks, [])

    def test_a_watch_that_begins_tries_each_address(self) -> None:
        client = self.make_client([gone(), self.b.address])
        with client.watch(min_pause=0.001) as watcher:
            self.assertEqual(watcher.next(60).events[0].key, self.b.address.encode())

    def test_a_worker_takes_and_settles_at_the_owner(self) -> None:
        self.a.owner = self.b.address
        worker = self.client.worker("g", lambda event: None)
        with worker:
            self.assertTrue(self.b.settled.wait(60))

    def test_a_pipeline_that_is_refused_is_opened_at_the_owner(self) -> None:
        self.a.owner = self.b.address
        with self.client.pipeline() as pipeline:
            futures = [pipeline.add(Operation.put(b"%d" % i, b"v")) for i in range(10)]
        self.assertEqual([future.result().version for future in futures], [1] * 10)
        self.assertEqual(self.b.keys, [b"%d" % i for i in range(10)])

    def test_a_pipeline_goes_on_at_the_next_owner(self) -> None:
        with self.client.pipeline() as pipeline:
            first = pipeline.add(Operation.put(b"first", b"v"))
            first.result(60)
            self.a.owner = self.b.address
            others = [pipeline.add(Operation.put(b"%d" % i, b"v")) for i in range(10)]
        self.assertEqual([future.result().version for future in others], [1] * 10)
        self.assertEqual(self.a.keys, [b"first"])
        self.assertEqual(self.b.keys, [b"%d" % i for i in range(10)])

    def test_a_pipeline_leaves_a_node_that_is_gone(self) -> None:
        client = self.make_client([gone(), self.b.address])
        with client.pipeline() as pipeline:
            future = pipeline.add(Operation.put(b"key", b"v"))
        self.assertEqual(future.result().version, 1)

    def test_a_node_that_hangs_is_left_by_the_next_call(self) -> None:
        self.a.hangs = True
        with self.assertRaises(timecached.DeadlineExceededError):
            self.client.with_options(timeout=0.1).put(b"first", b"value")
        self.client.put(b"next", b"value")
        self.assertEqual(self.b.keys, [b"next"])

    def test_a_node_that_hangs_is_left_by_the_next_pipeline(self) -> None:
        self.a.hangs = True
        with self.assertRaises(timecached.DeadlineExceededError):
            with self.client.with_options(timeout=0.1).pipeline() as pipeline:
                pipeline.add(Operation.put(b"first", b"v"))
        with self.client.pipeline() as pipeline:
            pipeline.add(Operation.put(b"next", b"v"))
        self.assertEqual(self.b.keys, [b"next"])

    def test_the_only_node_is_kept_though_it_hangs(self) -> None:
        self.a.hangs = True
        client = self.make_client(self.a.address)
        with self.assertRaises(timecached.DeadlineExceededError):
            client.with_options(timeout=0.1).put(b"first", b"value")
        self.a.hangs = False
        client.put(b"next", b"value")
        # The first may be done yet, where the node was slow to begin it.
        self.assertEqual(self.a.keys[-1], b"next")

    def test_a_watch_leaves_a_node_that_hangs(self) -> None:
        with self.client.watch(min_pause=0.001, silence_max=0.5) as watcher:
            self.assertEqual(watcher.next(60).events[0].key, self.a.address.encode())
            self.assertEqual(watcher.next(60).events[0].key, self.b.address.encode())
        self.assertEqual(self.b.tokens[0], [self.a.address.encode()])
        # It is silent from the beginning.
        self.a.hangs = True
        client = self.make_client([self.a.address, self.b.address])
        with client.watch(min_pause=0.001, silence_max=0.5) as watcher:
            self.assertEqual(watcher.next(60).events[0].key, self.b.address.encode())

    def test_silence_is_bounded_where_there_are_other_nodes(self) -> None:
        def bound(addresses: int, heartbeat: float | None, given: float | None) -> float | None:
            state = WatchState(
                namespaces=["default"],
                heartbeat_interval=heartbeat,
                max_message_bytes=1,
                reconnecting=Reconnecting(silence_max=given),
            )
            return state.silence_max(addresses)

        self.assertEqual(
            [bound(1, None, None), bound(2, None, None), bound(2, 60, None), bound(2, None, 3.0)],
            [None, 10.0, 240.0, 3.0],
        )

    def test_the_cluster_is_described_and_handed_over(self) -> None:
        cluster = self.client.get_cluster()
        self.assertEqual((cluster.owner, cluster.claim, cluster.owner_since), ("a", 7, None))
        self.assertEqual(cluster.lease_left, timedelta(seconds=0.5))
        self.assertEqual(cluster.brokers, ("kafka:9092",))
        self.assertEqual(cluster.wrong_settings[0].wanted, "2 or more")
        a, b = cluster.nodes
        self.assertEqual((a.role, a.caught_up), (timecached.NodeRole.OWNER, True))
        self.assertEqual((b.role, b.lag_messages), (None, 3))
        self.assertEqual(b.since_heartbeat, timedelta(seconds=1))
        self.assertEqual(self.client.hand_over("b"), "b")
        self.assertEqual(self.client.hand_over(), "the best")

    def test_for_asyncio_a_node_that_hangs_is_left(self) -> None:
        self.a.hangs = True

        async def run() -> None:
            addresses = [self.a.address, self.b.address]
            async with aio.Client(addresses, timeout=60) as client:
                with self.assertRaises(timecached.DeadlineExceededError):
                    async with client.with_options(timeout=0.1).pipeline() as pipeline:
                        await pipeline.add(Operation.put(b"first", b"value"))
                await client.put(b"next", b"value")
            async with aio.Client(addresses, timeout=60) as client:
                with self.assertRaises(timecached.DeadlineExceededError):
                    await client.with_options(timeout=0.1).put(b"first", b"value")
                await client.put(b"last", b"value")
                self.assertEqual((await client.get_cluster()).owner, "a")

        asyncio.run(run())
        self.assertEqual(self.b.keys, [b"next", b"last"])

    def test_for_asyncio_the_same(self) -> None:
        self.a.owner = self.b.address

        async def run() -> None:
            async with aio.Client([self.a.address, self.b.address], timeout=60) as client:
                await client.put(b"key", b"value")
                async with client.pipeline() as pipeline:
                    await pipeline.add(Operation.put(b"more", b"value"))
                async with client.watch(min_pause=0.001) as watcher:
                    await watcher.next(60)
                    self.a.owner = None
                    self.b.stop()
                    await watcher.next(60)
            async with aio.Client([gone(), self.a.address], timeout=60) as client:
                async with client.pipeline() as pipeline:
                    await pipeline.add(Operation.put(b"last", b"value"))

        asyncio.run(run())
        self.assertEqual(self.b.keys, [b"key", b"more"])
        self.assertEqual(self.a.keys, [b"last"])
        self.assertEqual(self.a.tokens, [[self.b.address.encode()]])

    def test_what_a_node_wrote_as_it_lost_the_ownership_may_be_stored(self) -> None:
        error = errors.error_from_status(refusal(14, "OWNERSHIP_LOST"))
        self.assertTrue(error.maybe_applied and error.is_connection_lost)


class AddressesTest(unittest.TestCase):
    def test_empty_and_bad_ones_are_named(self) -> None:
        for address, named in (("a:1,,b:1", "''"), ("a:1,b", "'b'"), (["a:1", "b"], "'b'")):
            with self.subTest(address), self.assertRaisesRegex(ValueError, named):
                timecached.Client(address)
        with self.assertRaisesRegex(ValueError, "17 addresses"):
            timecached.Client(",".join(["a:1"] * 17))
        with self.assertRaisesRegex(ValueError, "0 addresses"):
            timecached.Client([])

    def test_a_token_is_not_sent_in_plain_text_to_any_of_them(self) -> None:
        with self.assertRaisesRegex(ValueError, "not sent to cache:1"):
            timecached.Client("127.0.0.1:1,cache:1", token="t")


if __name__ == "__main__":
    unittest.main()
