"""What calls ask a server for, and how they read its answers: without a server of ours."""

from __future__ import annotations

import asyncio
import concurrent.futures
import unittest
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import grpc
from fake import refusal
from google.protobuf import text_format

import timecached
from timecached import Operation, aio
from timecached.v1 import data_pb2, groups_pb2, namespaces_pb2, server_pb2, watch_pb2

MODULES = (data_pb2, groups_pb2, namespaces_pb2, server_pb2, watch_pb2)
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def message(name: str) -> Any:
    (kind,) = (getattr(module, name) for module in MODULES if hasattr(module, name))
    return kind


class Handler(grpc.GenericRpcHandler):
    """Answers each method as the test says, and notes the requests."""

    def __init__(self) -> None:
        self.answers: dict[str, list[str | grpc.StatusCode]] = {}
        self.requests: list[tuple[str, Any]] = []

    def service(self, details: Any) -> Any:
        method = details.method.split("/")[-1]
        shape: dict[str, Any] = {
            "response_serializer": lambda response: response.SerializeToString(),
        }
        if method == "Pipeline":
            shape["request_deserializer"] = data_pb2.ExecuteRequest.FromString
            return grpc.stream_stream_rpc_method_handler(self.pipeline, **shape)
        if method == "Check":
            return None
        shape["request_deserializer"] = message(f"{method}Request").FromString
        if method.startswith("Watch"):
            return grpc.unary_stream_rpc_method_handler(
                lambda request, context: self.stream(method, request, context), **shape
            )
        return grpc.unary_unary_rpc_method_handler(
            lambda request, context: self.answer(method, request, context), **shape
        )

    def answer(self, method: str, request: Any, context: Any) -> Any:
        self.requests.append((method, request))
        said = self.answers.get(method, [""])
        answer = said.pop(0) if len(said) > 1 else said[0]
        if not isinstance(answer, str):
            context.abort(answer, "broken")
            raise AssertionError
        kind = "ExecuteResponse" if method == "Pipeline" else f"{method}Response"
        return text_format.Parse(answer, message(kind)())

    def stream(self, method: str, request: Any, context: Any) -> Iterator[Any]:
        yield self.answer(method, request, context)

    def pipeline(self, requests: Any, context: Any) -> Iterator[Any]:
        for request in requests:
            if not request.independent:
                yield self.answer("Pipeline", request, context)
                continue
            response = data_pb2.ExecuteResponse()
            for each in request.operations:
                kind = each.WhichOneof("request")
                inner = getattr(each, kind)
                answer = self.answer(kind.capitalize(), inner, context)
                getattr(response.results.add(), kind).CopyFrom(answer)
            yield response


class RequestsTest(unittest.TestCase):
    def setUp(self) -> None:
        self.handler = Handler()
        server = grpc.server(concurrent.futures.ThreadPoolExecutor(8), [self.handler])
        self.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        server.start()
        self.addCleanup(lambda: server.stop(0).wait(20))
        retry = timecached.RetryPolicy(max_attempts=3, min_pause=0.001, max_pause=0.002)
        self.client = timecached.Client(self.address, namespace="ns", timeout=60, retry=retry)
        self.addCleanup(self.client.close)

    def asked(self, index: int = -1) -> str:
        """The request, as text."""
        method, request = self.handler.requests[index]
        return " ".join([method, text_format.MessageToString(request, as_one_line=True)]).strip()

    def test_fetch_expired(self) -> None:
        self.handler.answers["FetchExpired"] = [
            f"""events {{ namespace: "ns" key: "a" event_id: 7 attempt: 1 traceparent: "{TRACE}" }}
            watermark {{ seconds: 1 }} lost: 3 delivered_watermark {{ seconds: 2 }}"""
        ]
        fetched = self.client.fetch_expired("g", wait=1.5, max_events=7, from_earliest=True)
        self.assertEqual(
            self.asked(),
            'FetchExpired namespace: "ns" group: "g" start: WATCH_START_EARLIEST max_events: 7 '
            "wait { seconds: 1 nanos: 500000000 } max_message_bytes: 67108864",
        )
        self.assertEqual((fetched.events[0].key, fetched.events[0].traceparent), (b"a", TRACE))
        self.assertEqual((fetched.lost, fetched.watermark), (3, EPOCH + timedelta(seconds=1)))
        self.assertEqual(fetched.delivered_watermark, EPOCH + timedelta(seconds=2))
        self.client.fetch_expired("g", keys_only=True)
        self.assertIn("keys_only: true", self.asked())
        self.assertNotIn("wait", self.asked())
        self.assertNotIn("max_events", self.asked())

    def test_fetch_expired_is_not_repeated(self) -> None:
        self.handler.answers["FetchExpired"] = [grpc.StatusCode.UNAVAILABLE]
        with self.assertRaises(timecached.UnavailableError):
            self.client.fetch_expired("g")
        self.assertEqual(len(self.handler.requests), 1)

    def test_a_wait_is_not_a_part_of_the_timeout(self) -> None:
        limits: list[float] = []

        def answer(request: Any, timeout: float, metadata: Any) -> Any:
            limits.append(timeout)
            return watch_pb2.FetchExpiredResponse()

        self.client._endpoints.current.stubs.data.FetchExpired = answer
        self.client.fetch_expired("g", wait=timedelta(seconds=30))
        self.assertTrue(89 < limits[0] <= 90, limits)

    def test_a_position_is_a_start_a_time_or_a_token(self) -> None:
        self.handler.answers["SeekGroup"] = ["unsettled: 5 dropped: 2"]
        result = self.client.seek_group("g", timecached.WatchStart.EARLIEST, drop_unsettled=True)
        self.assertEqual((result.unsettled, result.dropped), (5, 2))
        self.assertEqual(
            self.asked(),
            'SeekGroup namespace: "ns" name: "g" position { start: WATCH_START_EARLIEST } '
            "drop_unsettled: true",
        )
        self.client.seek_group("g", EPOCH + timedelta(seconds=5))
        self.assertIn("position { time { seconds: 5 } }", self.asked())
        self.client.seek_group("g", b"token")
        self.assertIn('position { resume_token: "token" }', self.asked())
        self.client.create_group("g")
        self.assertIn("start { start: WATCH_START_NOW }", self.asked())
        self.client.create_group("g", start=b"token")
        self.assertIn('start { resume_token: "token" }', self.asked())
        wrong: Any = "EARLIEST"
        with self.assertRaises(TypeError):
            self.client.seek_group("g", wrong)
        with self.assertRaises(ValueError):
            self.client.seek_group("g", datetime(2026, 1, 1))

    def test_group_options(self) -> None:
        delays = (timedelta(seconds=1), timedelta(seconds=60))
        self.handler.answers["CreateGroup"] = [
            """group { name: "g" options { key_prefix: "a" single_active: true
            retry_delays { seconds: 1 } retry_delays { seconds: 60 } }
            statistics { fetched: 4 } }"""
        ]
        options = timecached.GroupOptions(key_prefix="a", single_active=True, retry_delays=delays)
        group = self.client.create_group("g", options)
        self.assertIn(
            'options { key_prefix: "a" single_active: true retry_delays { seconds: 1 } '
            "retry_delays { seconds: 60 } }",
            self.asked(),
        )
        self.assertEqual(group.options.key_prefix, b"a")
        self.assertEqual((group.options.single_active, group.options.retry_delays), (True, delays))
        assert group.statistics
        self.assertEqual(group.statistics.fetched, 4)
        self.client.update_group("g", timecached.GroupOptions(retry_delays=()))
        self.assertIn('update_mask { paths: "options.retry_delays" }', self.asked())

    def test_unsettled_events_come_from_all_pages(self) -> None:
        self.handler.answers["ListUnsettled"] = [
            """events { event { key: "a" delivery_token: "t" } state: UNSETTLED_STATE_IN_FLIGHT
            member_id: 3 since { seconds: 1 } due { seconds: 31 } } next_page_token: "p" """,
            grpc.StatusCode.UNAVAILABLE,
            """events { event { key: "b" } state: UNSETTLED_STATE_READY } events { state: 77 }""",
        ]
        events = list(self.client.list_unsettled("g", key_prefix="a", include_values=True))
        self.assertEqual(
            self.asked(),
            'ListUnsettled namespace: "ns" name: "g" page_token: "p" key_prefix: "a" '
            "include_values: true",
        )
        first, second, third = events
        self.assertEqual((first.event.delivery_token, first.member_id), (b"t", 3))
        self.assertEqual(first.state, timecached.UnsettledState.IN_FLIGHT)
        self.assertEqual(first.due, EPOCH + timedelta(seconds=31))
        self.assertEqual((second.state, second.due), (timecached.UnsettledState.READY, None))
        self.assertIsNone(third.state)

    def test_members_are_listed(self) -> None:
        self.handler.answers["ListMembers"] = [
            """members { id: 1 principal: "p" peer: "ipv4:10.0.0.7:1" since { seconds: 9 }
            in_flight: 2 max_in_flight: 10 window: 1 unresponsive: true active: true }"""
        ]
        (member,) = self.client.list_members("g")
        self.assertEqual((member.id, member.principal, member.window), (1, "p", 1))
        self.assertEqual((member.unresponsive, member.active), (True, True))
        self.assertEqual(member.since, EPOCH + timedelta(seconds=9))

    def test_a_batch_may_be_atomic(self) -> None:
        aborted = refusal(10, "NOT_APPLIED")
        self.handler.answers["Execute"] = ["results { put { version: 4 } } results { contains {} }"]
        self.client.execute(
            [Operation.put("a", "1"), Operation.contains("b", if_version=3)], atomic=True
        )
        self.assertIn("if_version: 3", self.asked())
        self.assertIn("atomic: true", self.asked())
        response = data_pb2.ExecuteResponse(results=[data_pb2.OperationResult(error=aborted)])
        self.handler.answers["Execute"] = [text_format.MessageToString(response)]
        (result,) = self.client.execute([Operation.put("a", "1")], atomic=True)
        self.assertIsInstance(result, timecached.AbortedError)
        self.assertEqual(result.reason, timecached.ErrorReason.NOT_APPLIED)

    def test_contains_takes_conditions(self) -> None:
        self.client.contains("a", if_absent=True)
        self.assertIn("condition: PUT_CONDITION_IF_ABSENT", self.asked())
        self.client.contains("a", if_present=True)
        self.assertIn("condition: PUT_CONDITION_IF_PRESENT", self.asked())
        with self.assertRaises(ValueError):
            self.client.contains("a", if_present=True, if_version=1)

    def test_a_traceparent_is_kept_with_an_entry(self) -> None:
        self.client.put("a", "1", traceparent=TRACE)
        self.client.append("a", "1", traceparent=TRACE)
        self.client.combine("a", add=1, traceparent=TRACE)
        self.client.gather("a", "p", "1", expected_parts=2, traceparent=TRACE)
        self.assertEqual([request.traceparent for _, request in self.handler.requests], [TRACE] * 4)

    def test_changes_are_watched(self) -> None:
        self.handler.answers["WatchChanges"] = [
            """namespace: "ns" watermark { seconds: 5 } lost: 2 resume_token: "t"
            changes { kind: CHANGE_KIND_PUT key: "a" value: "{}" version: 3 time { seconds: 4 }
            deadline { seconds: 9 } }
            changes { kind: CHANGE_KIND_REMOVED key: "b" version: 2 }
            changes { kind: 77 }"""
        ]
        with self.client.watch_changes(
            key_prefix="a", resume_tokens={"ns": b"s"}, fail_on_loss=True, heartbeat_interval=2
        ) as watcher:
            batch = watcher.next(60)
        self.assertEqual(
            self.asked(),
            'WatchChanges namespaces: "ns" resume_tokens: "s" fail_on_loss: true key_prefix: "a" '
            "heartbeat_interval { seconds: 2 } max_message_bytes: 67108864",
        )
        put, removed, unknown = batch.changes
        self.assertEqual((batch.lost, batch.resume_token), (2, b"t"))
        self.assertEqual((put.kind, put.json()), (timecached.ChangeKind.PUT, {}))
        self.assertEqual(put.deadline, EPOCH + timedelta(seconds=9))
        self.assertEqual((removed.kind, removed.deadline), (timecached.ChangeKind.REMOVED, None))
        self.assertEqual(unknown.kind, timecached.ChangeKind.UNKNOWN)

    def test_a_watch_on_changes_resumes(self) -> None:
        message = 'namespace: "ns" watermark { seconds: 5 } resume_token: "t"'
        self.handler.answers["WatchChanges"] = [message, grpc.StatusCode.UNAVAILABLE, message]
        with self.client.watch_changes(min_pause=0.001) as watcher:
            watcher.next(60)
            self.assertTrue(watcher.next(60).reconnected)
        self.assertIn('resume_tokens: "t"', self.asked())

    def test_the_server_is_asked(self) -> None:
        answers = {
            "GetHotKeys": """keys { key: "a" reads_per_second: 1.5 value_bytes: 9 }
                window { seconds: 60 } sampled: 8 operations_per_second: 34.5""",
            "WhoAmI": """principal: "p" peer: "ipv4:10.0.0.7:1" access_rules: true
                permissions { pattern: "team.*" verbs: "READ" verbs: "WRITE" }""",
            "ListSlowCalls": """calls { method: "m" duration { nanos: 5000000 } code: "OK" }
                threshold { seconds: 1 }""",
        }
        self.handler.answers = {method: [answer] for method, answer in answers.items()}
        hot = self.client.get_hot_keys("ns", max_keys=3)
        self.assertEqual(self.asked(), 'GetHotKeys name: "ns" max_keys: 3')
        self.assertEqual((hot.keys[0].key, hot.keys[0].reads_per_second), (b"a", 1.5))
        self.assertEqual((hot.window, hot.operations_per_second), (timedelta(minutes=1), 34.5))
        caller = self.client.who_am_i()
        self.assertEqual((caller.principal, caller.access_rules), ("p", True))
        self.assertEqual(caller.permissions[0].verbs, ("READ", "WRITE"))
        slow = self.client.list_slow_calls()
        self.assertEqual(slow.threshold, timedelta(seconds=1))
        self.assertEqual(slow.calls[0].duration, timedelta(milliseconds=5))
        self.handler.answers["ListSlowCalls"] = [""]
        self.assertIsNone(self.client.list_slow_calls().threshold)

    def test_connections_are_listed_and_closed(self) -> None:
        self.handler.answers["ListConnections"] = [
            'connections { id: 1 peer: "10.0.0.7:1" open_calls: 2 } next_page_token: "p"',
            'connections { id: 2 idle { seconds: 3 } user_agent: "u" }',
        ]
        first, second = self.client.list_connections()
        self.assertEqual((first.id, first.open_calls, first.idle), (1, 2, None))
        self.assertEqual((second.idle, second.user_agent), (timedelta(seconds=3), "u"))
        self.client.close_connection(2)
        self.assertEqual(self.asked(), "CloseConnection id: 2")

    def test_namespaces_keep_changes(self) -> None:
        options = timecached.NamespaceOptions(
            change_retention=timedelta(minutes=1), change_retention_bytes=1 << 20
        )
        self.client.create_namespace("ns", options)
        self.assertIn(
            "change_retention { seconds: 60 } change_retention_bytes: 1048576", self.asked()
        )

    def test_namespaces_have_partitions(self) -> None:
        self.client.create_namespace("ns", timecached.NamespaceOptions(num_partitions=4))
        self.assertIn("num_partitions: 4", self.asked())

    def test_a_batch_is_repeated_if_all_of_it_is_safe(self) -> None:
        broken = grpc.StatusCode.UNAVAILABLE
        safe: list[Operation[Any]] = [
            Operation.get("a"), Operation.touch("a"), Operation.contains("a"),
            Operation.put("a", "1", idempotency_id="1"), Operation.remove("a", idempotency_id="2"),
            Operation.append("a", "1", idempotency_id="3"),
            Operation.combine("a", add=1, idempotency_id="4"),
            Operation.gather("a", "p", "1", idempotency_id="5"),
        ]  # fmt: skip
        self.handler.answers["Execute"] = [broken, broken, "results {} " * len(safe)]
        self.client.execute([Operation.get("a").map(lambda _: None) for _ in safe])
        self.assertEqual(len(self.handler.requests), 3)
        self.assertTrue(all(operation.is_safe() for operation in safe))
        self.handler.answers["Execute"] = [broken]
        for unsafe in (
            Operation.put("a", "1"), Operation.remove("a"), Operation.append("a", "1"),
            Operation.combine("a", add=1), Operation.gather("a", "p", "1"),
        ):  # fmt: skip
            self.handler.requests.clear()
            with self.assertRaises(timecached.UnavailableError):
                self.client.execute([*safe, unsafe])
            self.assertEqual(len(self.handler.requests), 1)

    def test_a_condition_that_changes_is_not_checked_again_for_an_atomic_batch(self) -> None:
        put = Operation.put("a", "1", idempotency_id="1")
        self.handler.answers["Execute"] = [grpc.StatusCode.UNAVAILABLE]
        for condition in (
            Operation.contains("b", if_version=1),
            Operation.touch("b", if_version=1),
        ):
            self.handler.requests.clear()
            with self.assertRaises(timecached.UnavailableError):
                self.client.execute([put, condition], atomic=True)
            self.assertEqual(len(self.handler.requests), 1)

    def test_a_pipeline_does_again_what_is_safe(self) -> None:
        broken = grpc.StatusCode.UNAVAILABLE
        self.handler.answers["Pipeline"] = [
            broken, broken, "results { put { version: 1 } }", broken, "results { get {} }",
        ]  # fmt: skip
        with self.client.pipeline() as pipeline:
            future = pipeline.add(Operation.put("a", "1", idempotency_id="1"))
            self.assertEqual(future.result(60).version, 1)
            self.assertIsNone(pipeline.add(Operation.get("a")).result(60))
        self.assertEqual(len(self.handler.requests), 5)

    def test_a_pipeline_ends_with_what_is_not_safe(self) -> None:
        self.handler.answers["Pipeline"] = [grpc.StatusCode.UNAVAILABLE]
        unsafe: list[Operation[Any]] = [Operation.put("a", "1"), Operation.remove("a")]
        for operation in unsafe:
            self.handler.requests.clear()
            with self.assertRaises(timecached.UnavailableError) as caught:
                with self.client.pipeline() as pipeline:
                    pipeline.add(operation)
            self.assertTrue(caught.exception.maybe_applied)
            self.assertEqual(len(self.handler.requests), 1)
        self.handler.requests.clear()
        with self.assertRaises(timecached.UnavailableError):
            with self.client.pipeline() as pipeline:
                pipeline.add(Operation.get("a"))
        self.assertEqual(len(self.handler.requests), 3)

    def test_for_asyncio_the_same(self) -> None:
        broken = grpc.StatusCode.UNAVAILABLE
        self.handler.answers = {
            "Pipeline": [broken, "results { get {} }"],
            "ListUnsettled": ['events {} next_page_token: "p"', "events {}"],
            "WatchChanges": ['namespace: "ns" changes { key: "a" }'],
        }

        async def main() -> None:
            async with aio.Client(self.address, namespace="ns", timeout=60) as client:
                async with client.pipeline() as pipeline:
                    future = await pipeline.add(Operation.get("a"))
                self.assertIsNone(future.result())
                self.assertEqual(len([event async for event in client.list_unsettled("g")]), 2)
                async with client.watch_changes() as watcher:
                    async for batch in watcher:
                        self.assertEqual(batch.changes[0].key, b"a")
                        break
                self.assertEqual((await client.fetch_expired("g", wait=0)).events, ())
                await client.seek_group("g", timecached.WatchStart.NOW)

        asyncio.run(main())


if __name__ == "__main__":
    unittest.main()
