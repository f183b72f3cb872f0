"""Measures this client beside redis-py, for bench/clients/run.py, which says what the rows are.

usage: bench ADDRESS REDIS_PORT SECONDS
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import redis
import redis.asyncio

import timecached
from timecached import Operation, aio

KEYS = [b"key-%012d" % i for i in range(100_000)]
VALUE = b"v" * 64
TTL = 600
DEPTH = 100
CALLERS = (1, 16, 64, 256)

Figures = tuple[float, float]
"""Operations a second, and microseconds of CPU of this process for one."""


def rate(seconds: float, call: Callable[[int], object], threads: int, each: int) -> Figures:
    """Of calls that do `each` operations, from so many threads."""
    counts = [0] * threads
    begin, cpu = time.perf_counter(), time.process_time()
    over = begin + seconds

    def run(thread: int) -> None:
        i = thread * len(KEYS) // threads
        while time.perf_counter() < over:
            call(i % len(KEYS))
            counts[thread] += each
            i += each

    workers = [threading.Thread(target=run, args=(thread,)) for thread in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return _figures(sum(counts), begin, cpu)


async def async_rate(
    seconds: float, call: Callable[[int], Awaitable[object]], tasks: int
) -> Figures:
    """Of calls from so many tasks."""
    begin, cpu = time.perf_counter(), time.process_time()
    over = begin + seconds

    async def run(task: int) -> int:
        count, i = 0, task * len(KEYS) // tasks
        while time.perf_counter() < over:
            await call(i % len(KEYS))
            count += 1
            i += 1
        return count

    counts = await asyncio.gather(*map(run, range(tasks)))
    return _figures(sum(counts), begin, cpu)


def _figures(count: int, begin: float, cpu: float) -> Figures:
    used = time.process_time() - cpu
    # A machine that stands still for long may do none.
    return count / (time.perf_counter() - begin), used / max(count, 1) * 1e6


def show(name: str, ours: Figures, peers: Figures) -> None:
    print(name, *(f"{figure:.3f}" for figure in (*ours, *peers)), sep="\t", flush=True)


def some(i: int) -> list[bytes]:
    return [KEYS[(i + j) % len(KEYS)] for j in range(DEPTH)]


class Blocking:
    """The calls of both clients that block."""

    def __init__(self, client: timecached.Client, peer: redis.Redis, seconds: float) -> None:
        """Lives as long as both."""
        self.client = client
        self.peer = peer
        self.seconds = seconds
        self.pipeline = client.pipeline(batch_operations_max=DEPTH)

    def row(
        self,
        name: str,
        ours: Callable[[int], object],
        peers: Callable[[int], object],
        threads: int = 1,
        each: int = 1,
    ) -> None:
        for call in (ours, peers):
            rate(self.seconds / 4, call, threads, each)
        show(
            name,
            rate(self.seconds, ours, threads, each),
            rate(self.seconds, peers, threads, each),
        )

    def redis_batch(self, add: Callable[[Any, bytes], object]) -> Callable[[int], object]:
        def call(i: int) -> object:
            batch = self.peer.pipeline(transaction=False)
            for key in some(i):
                add(batch, key)
            return batch.execute()

        return call

    def execute(self, make: Callable[[bytes], Operation[Any]]) -> Callable[[int], object]:
        return lambda i: self.client.execute([make(key) for key in some(i)])

    def piped(self, make: Callable[[bytes], Operation[Any]]) -> Callable[[int], object]:
        def call(i: int) -> None:
            futures = [self.pipeline.add(make(key)) for key in some(i)]
            self.pipeline.flush()
            for future in futures:
                future.result(30)

        return call

    def measure(self) -> None:
        client, peer = self.client, self.peer

        def put(i: int) -> object:
            return client.put(KEYS[i], VALUE, ttl=TTL)

        def get(i: int) -> object:
            return client.get(KEYS[i])

        def redis_set(i: int) -> object:
            return peer.set(KEYS[i], VALUE, ex=TTL)

        def redis_get(i: int) -> object:
            return peer.get(KEYS[i])

        unary = client.with_options(batching=False)
        for threads in CALLERS:
            self.row(f"put {threads}", put, redis_set, threads)
            self.row(f"get {threads}", get, redis_get, threads)
        self.row("get 16 unary", lambda i: unary.get(KEYS[i]), redis_get, 16)

        def make_put(key: bytes) -> Operation[Any]:
            return Operation.put(key, VALUE, ttl=TTL)

        sets = self.redis_batch(lambda batch, key: batch.set(key, VALUE, ex=TTL))
        gets = self.redis_batch(lambda batch, key: batch.get(key))
        self.row("put batch", self.execute(make_put), sets, each=DEPTH)
        self.row("get batch", self.execute(Operation.get), gets, each=DEPTH)
        self.row("put pipeline", self.piped(make_put), sets, each=DEPTH)
        self.row("get pipeline", self.piped(Operation.get), gets, each=DEPTH)
        self.pipeline.close()


async def measure_asyncio(address: str, port: int, seconds: float) -> None:
    peer = redis.asyncio.Redis(port=port, max_connections=max(CALLERS))
    async with aio.Client(address) as client:
        unary = client.with_options(batching=False)

        async def row(
            name: str,
            ours: Callable[[int], Awaitable[object]],
            peers: Callable[[int], Awaitable[object]],
            tasks: int,
        ) -> None:
            for call in (ours, peers):
                await async_rate(seconds / 4, call, tasks)
            figures = [await async_rate(seconds, call, tasks) for call in (ours, peers)]
            show(name, *figures)

        def put(i: int) -> Awaitable[object]:
            return client.put(KEYS[i], VALUE, ttl=TTL)

        def redis_set(i: int) -> Awaitable[object]:
            return peer.set(KEYS[i], VALUE, ex=TTL)

        def redis_get(i: int) -> Awaitable[object]:
            return peer.get(KEYS[i])

        for tasks in CALLERS:
            await row(f"put {tasks} asyncio", put, redis_set, tasks)
            await row(f"get {tasks} asyncio", lambda i: client.get(KEYS[i]), redis_get, tasks)
        await row("get 16 unary asyncio", lambda i: unary.get(KEYS[i]), redis_get, 16)
    await peer.aclose()


def main() -> None:
    address, port, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    with timecached.Client(address) as client:
        # As many connections as there are callers: of more than 100, by default, some get none.
        pool = redis.ConnectionPool(port=port, max_connections=max(CALLERS))
        Blocking(client, redis.Redis(connection_pool=pool), seconds).measure()
    asyncio.run(measure_asyncio(address, port, seconds))


if __name__ == "__main__":
    main()
