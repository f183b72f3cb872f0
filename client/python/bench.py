"""Measures this client beside redis-py, at the same depth; prints one table.

usage: bench [SECONDS]: of each row; 2 unless it is given

TIMECACHED and REDIS_SERVER are the server programs. Keys have 16 bytes, values 64, entries a time
to live of a minute. Client and server share the machine.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import redis
import redis.asyncio

import timecache
from timecache import Operation, aio

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
KEYS = [b"key-%012d" % i for i in range(10_000)]
VALUE = b"v" * 64
DEPTH = 100
THREADS = 16


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def start(*command: str, port: int) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    until = time.monotonic() + 30
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return process
        except OSError:
            time.sleep(0.02)
    process.kill()
    raise RuntimeError(f"{command[0]} did not start")


def rate(call: Callable[[int], object], threads: int = 1, each: int = 1) -> float:
    """Operations a second of calls that do `each` of them, from so many threads."""
    call(0)
    counts = [0] * threads
    over = time.perf_counter() + SECONDS
    begin = time.perf_counter()

    def run(thread: int) -> None:
        i = thread * 997
        while time.perf_counter() < over:
            call(i % len(KEYS))
            counts[thread] += each
            i += each

    workers = [threading.Thread(target=run, args=(thread,)) for thread in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(counts) / (time.perf_counter() - begin)


async def async_rate(call: Callable[[int], Awaitable[object]], tasks: int, each: int = 1) -> float:
    await call(0)
    over = time.perf_counter() + SECONDS
    begin = time.perf_counter()

    async def run(task: int) -> int:
        count, i = 0, task * 997
        while time.perf_counter() < over:
            await call(i % len(KEYS))
            count += each
            i += each
        return count

    counts = await asyncio.gather(*(run(task) for task in range(tasks)))
    return sum(counts) / (time.perf_counter() - begin)


def some(i: int) -> list[bytes]:
    return [KEYS[(i + j) % len(KEYS)] for j in range(DEPTH)]


def show(name: str, ours: float, theirs: float | None = None) -> None:
    beside = "" if theirs is None else f"{theirs:>12,.0f}{ours / theirs:>9.2f} x"
    print(f"{name:<40}{ours:>12,.0f}{beside}", flush=True)


def measure_blocking(client: timecache.Client, peer: redis.Redis) -> None:
    def put(i: int) -> object:
        return client.put(KEYS[i], VALUE, ttl=60)

    def get(i: int) -> object:
        return client.get(KEYS[i])

    for threads in (1, THREADS):
        what = f"{threads} thread{'s' if threads > 1 else ''}"
        show(
            f"put, {what}",
            rate(put, threads),
            rate(lambda i: peer.set(KEYS[i], VALUE, ex=60), threads),
        )
        show(f"get, {what}", rate(get, threads), rate(lambda i: peer.get(KEYS[i]), threads))

    def redis_puts(i: int) -> object:
        batch = peer.pipeline(transaction=False)
        for key in some(i):
            batch.set(key, VALUE, ex=60)
        return batch.execute()

    def redis_gets(i: int) -> object:
        batch = peer.pipeline(transaction=False)
        for key in some(i):
            batch.get(key)
        return batch.execute()

    puts, gets = rate(redis_puts, each=DEPTH), rate(redis_gets, each=DEPTH)
    show(
        f"put, execute of {DEPTH}",
        rate(
            lambda i: client.execute([Operation.put(key, VALUE, ttl=60) for key in some(i)]),
            each=DEPTH,
        ),
        puts,
    )
    show(
        f"get, execute of {DEPTH}",
        rate(lambda i: client.execute([Operation.get(key) for key in some(i)]), each=DEPTH),
        gets,
    )
    with client.pipeline(batch_operations_max=DEPTH) as pipeline:

        def pipelined(make: Callable[[bytes], Operation[Any]]) -> Callable[[int], object]:
            def call(i: int) -> None:
                futures = [pipeline.add(make(key)) for key in some(i)]
                pipeline.flush()
                for future in futures:
                    future.result(30)

            return call

        show(
            f"put, pipeline, depth {DEPTH}",
            rate(pipelined(lambda key: Operation.put(key, VALUE, ttl=60)), each=DEPTH),
            puts,
        )
        show(f"get, pipeline, depth {DEPTH}", rate(pipelined(Operation.get), each=DEPTH), gets)


async def measure_asyncio(address: str, redis_port: int) -> None:
    peer = redis.asyncio.Redis(port=redis_port)
    async with aio.Client(address) as client:
        show(
            f"put, asyncio, {THREADS} tasks",
            await async_rate(lambda i: client.put(KEYS[i], VALUE, ttl=60), THREADS),
            await async_rate(lambda i: peer.set(KEYS[i], VALUE, ex=60), THREADS),
        )
        show(
            f"get, asyncio, {THREADS} tasks",
            await async_rate(lambda i: client.get(KEYS[i]), THREADS),
            await async_rate(lambda i: peer.get(KEYS[i]), THREADS),
        )
    await peer.aclose()


def main() -> None:
    ports = free_port(), free_port()
    address = f"127.0.0.1:{ports[0]}"
    with tempfile.TemporaryDirectory() as directory:
        servers = [
            start(os.environ["TIMECACHED"], "--listen", address, port=ports[0]),
            start(
                os.environ.get("REDIS_SERVER", "redis-server"), "--port", str(ports[1]),
                "--bind", "127.0.0.1", "--save", "", "--dir", directory, port=ports[1],
            ),
        ]  # fmt: skip
        try:
            print(f"{'operations a second':<40}{'timecache':>12}{'redis-py':>12}")
            with timecache.Client(address) as client:
                measure_blocking(client, redis.Redis(port=ports[1]))
            asyncio.run(measure_asyncio(address, ports[1]))
        finally:
            for server in servers:
                server.terminate()
                server.wait(30)


if __name__ == "__main__":
    main()
