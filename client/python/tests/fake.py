"""A server that gives and answers what a test says."""

from __future__ import annotations

import concurrent.futures
import queue
import threading
import unittest
from collections.abc import Callable, Iterator
from typing import Any

import grpc
from google.protobuf import any_pb2
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2, status_pb2

from timecached.v1 import data_pb2, data_pb2_grpc, groups_pb2, groups_pb2_grpc, watch_pb2


def refusal(code: int, reason: str) -> status_pb2.Status:
    """An error of the server's own."""
    detail = any_pb2.Any()
    detail.Pack(error_details_pb2.ErrorInfo(reason=reason, domain="timecached"))
    return status_pb2.Status(code=code, message="refused", details=[detail])


class Data(data_pb2_grpc.TimeCacheServiceServicer):
    """`streams`: for each stream what it brings, messages or an error, one after the other."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.streams: queue.Queue[list[Any]] = queue.Queue()
        self.settled: list[watch_pb2.Settlement] = []
        self.scans: list[data_pb2.ScanRequest] = []
        self.settle: Callable[[watch_pb2.Settlement], watch_pb2.SettleResult] = lambda settlement: (
            watch_pb2.SettleResult()
        )

    def _bring(self, context: Any) -> Iterator[Any]:
        for message in self.streams.get(timeout=60):
            if isinstance(message, tuple):
                context.abort(*message)
            yield message

    def ConsumeExpired(self, request: Any, context: Any) -> Iterator[Any]:
        yield from self._bring(context)
        over = threading.Event()
        if context.add_callback(over.set):
            over.wait(60)

    WatchExpired = ConsumeExpired

    def Scan(self, request: Any, context: Any) -> Iterator[Any]:
        with self.lock:
            self.scans.append(request)
        yield from self._bring(context)

    def SettleExpired(self, request: Any, context: Any) -> Any:
        with self.lock:
            self.settled += request.settlements
        return watch_pb2.SettleExpiredResponse(results=map(self.settle, request.settlements))


class Groups(groups_pb2_grpc.GroupServiceServicer):
    """Has one group."""

    ack_timeout = Duration(nanos=60_000_000)

    def GetGroup(self, request: Any, context: Any) -> Any:
        group = groups_pb2.Group(name=request.name, namespace=request.namespace)
        group.options.ack_timeout.CopyFrom(self.ack_timeout)
        return groups_pb2.GetGroupResponse(group=group)


def serve(test: unittest.TestCase) -> tuple[Data, str]:
    """Runs until the test ends; returns the service and its address."""
    data = Data()
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(8))
    data_pb2_grpc.add_TimeCacheServiceServicer_to_server(data, server)  # type: ignore[no-untyped-call]
    groups_pb2_grpc.add_GroupServiceServicer_to_server(Groups(), server)  # type: ignore[no-untyped-call]
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    test.addCleanup(lambda: server.stop(0).wait(20))
    return data, f"127.0.0.1:{port}"
