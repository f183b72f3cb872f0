"""A lock that processes compete for, for asyncio."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

from ...errors import FailedPreconditionError
from ...recipe_types import new_id, require_unmet
from ...types import BytesLike, Duration, WatchBatch, to_bytes
from ..client import Client
from ..tasks import Condition, Task

_FREE = b""  # The value of a lock that was released.
_SHORTEST_TTL = timedelta(milliseconds=1)
_TRIES_MAX = 4  # A lock that changes hands so often while it is asked for is taken.


class Lock:
    """A contender for a lock: a lease with a fencing token, in an entry of the client's namespace.

    ::

        lock = Lock(client, "lock/report", ttl=10)
        token = await lock.acquire(timeout=30)
        if token is not None:
            storage.write(report, fencing_token=token)
            await lock.release()

    Guarantee: of two owners, the later one has the larger token. A lease is not mutual exclusion
    by itself: an owner that is suspended beyond its time to live notices too late. What the lock
    protects must remember the largest token that it has seen, and refuse smaller ones. Holds over
    restarts in a durable namespace; in another one a restart frees the lock, and tokens still grow.

    A call without an answer (``TimecacheError.maybe_applied``) may have happened. After an
    acquisition the next ``try_acquire`` of the same Lock finds its own mark in the entry and takes
    the lease over; without one the lock is free after at most `ttl`. Renew and release again.

    Cost: one round trip to acquire a lock that is free, three for one that was just released, two
    to find it taken; one to renew and to release. A waiter has one watch, and tries when the lock
    expires. A release leaves an empty value that lives 1 ms: the lock is free at once for the next
    attempt, and waiters receive the expiry at most a bucket width later. So give locks a namespace
    of narrow buckets, which must not be `sliding`: reads would renew leases. Waiters are not
    ordered.

    For one user at a time: each contender has a Lock of its own.
    """

    def __init__(
        self,
        client: Client,
        key: BytesLike,
        *,
        ttl: Duration = 10.0,
        owner: str = "",
        recheck: float = 5.0,
        on_lost: Callable[[], object] | None = None,
    ) -> None:
        """Makes a contender; no call.

        - `ttl`: of a lease that is not renewed, 1 ms to the namespace's max_ttl. Another owner
          gets the lock at most a bucket width of the namespace later.
        - `owner`: this owner's name, for people who read the entry: at most some 100 B.
        - `recheck`: seconds. ``acquire`` tries at least this often while it waits, for a lock that
          ended without an event: removed by hand, or with its namespace.
        - `on_lost`: called once for each lease that ends without ``release``: as soon as a call
          finds it another's, and at the latest when ``remaining`` is over. The lease is then given
          up: ``renew`` returns false. Stop the work that the lock protects. It must not wait, nor
          call this Lock.
        """
        self._client = client
        self._key = to_bytes(key)
        self._ttl = ttl
        self._seconds = ttl.total_seconds() if isinstance(ttl, timedelta) else float(ttl)
        self._recheck = recheck
        self._on_lost = on_lost
        # The value of the entry while this Lock has it: no other Lock writes it.
        name = f"{owner} " if owner else ""
        self._mark = f"{name}{new_id():016x}{new_id():016x}".encode()
        self._changed = Condition()
        self._token: int | None = None
        self._safe_until = 0.0
        self._watched: object | None = None  # The lease whose loss is to be reported.

    @property
    def token(self) -> int | None:
        """The lease's token, as last known here."""
        return self._token

    @property
    def remaining(self) -> float:
        """The seconds that the lease lasts for certain; 0 when it may be over.

        On this machine's clock, from before the last successful call was sent.
        """
        return 0.0 if self._token is None else max(0.0, self._safe_until - time.monotonic())

    async def try_acquire(self) -> int | None:
        """The fencing token; None: another owner has the lock. Renews a lease that this has."""
        for _ in range(_TRIES_MAX):
            token = await self._put(None)
            if token is not None:
                return token
            entry = await self._client.get(self._key)
            if entry is None:
                continue
            if entry.value == self._mark:
                token = await self._touch(entry.version, renews=False)
            elif entry.value == _FREE:
                token = await self._put(entry.version)
            else:
                break
            if token is not None:
                return token
        self._lose()
        return None

    async def acquire(self, timeout: float | None = None) -> int | None:
        """As ``try_acquire``, but waits for the lock; None: not within `timeout` seconds."""
        give_up_at = None if timeout is None else time.monotonic() + timeout
        token = await self.try_acquire()
        if token is not None or timeout == 0:
            return token
        async with self._client.watch(key_prefix=self._key, keys_only=True) as watcher:
            # A lock that ends before the watch stands has no event: its first batch is a reason.
            stands = False
            recheck_at = time.monotonic() + self._recheck
            while give_up_at is None or time.monotonic() < give_up_at:
                until = recheck_at if give_up_at is None else min(recheck_at, give_up_at)
                may_be_free = False
                try:
                    batch = await watcher.next(max(0.0, until - time.monotonic()))
                    may_be_free = not stands or self._may_free(batch)
                    stands = True
                except TimeoutError:
                    pass
                if may_be_free or time.monotonic() >= recheck_at:
                    token = await self.try_acquire()
                    if token is not None:
                        return token
                    recheck_at = time.monotonic() + self._recheck
        return None

    async def renew(self) -> bool:
        """Renews the lease; its token does not change. False: it is not held, or was lost."""
        token = self._token
        return token is not None and await self._touch(token, renews=True) is not None

    async def release(self) -> bool:
        """Frees the lock, if this owner still has it. False: it did not."""
        if self._token is None:
            return False
        with self._changed:
            self._watched = None
            self._changed.notify_all()
        released = True
        try:
            await self._client.put(self._key, _FREE, ttl=_SHORTEST_TTL, if_version=self._token)
        except FailedPreconditionError as error:
            require_unmet(error)
            released = False
        self._token = None
        return released

    def _may_free(self, batch: WatchBatch) -> bool:
        return (
            batch.lost > 0
            or batch.log_changed
            or any(event.key == self._key for event in batch.events)
        )

    # None: the key is there, or not with this version.
    async def _put(self, if_version: int | None) -> int | None:
        sent_at = time.monotonic()
        try:
            put = await self._client.put(
                self._key,
                self._mark,
                ttl=self._ttl,
                if_absent=if_version is None,
                if_version=if_version,
            )
        except FailedPreconditionError as error:
            require_unmet(error)
            return None
        return self._own(put.version, sent_at)

    # The lease's time begins anew; of an acquisition that was not answered it is not known.
    async def _touch(self, version: int, renews: bool) -> int | None:
        sent_at = time.monotonic()
        try:
            await self._client.touch(self._key, if_version=version)
        except FailedPreconditionError as error:
            require_unmet(error)
            self._lose()
            return None
        with self._changed:
            # Meanwhile on_lost was called.
            if renews and self._token is None:
                return None
            return self._own(version, sent_at)

    def _own(self, version: int, sent_at: float) -> int:
        with self._changed:
            self._token = version
            self._safe_until = sent_at + self._seconds
            if self._on_lost is not None and self._watched is None:
                lease = self._watched = object()
                Task(lambda: self._watch(lease), "timecached-lock")
        return version

    async def _watch(self, lease: object) -> None:
        with self._changed:
            while self._watched is lease and self.remaining > 0:
                await self._changed.wait_for(lambda: self._watched is not lease, self.remaining)
            if self._watched is not lease:
                return
        self._lose()

    def _lose(self) -> None:
        with self._changed:
            tells = self._watched is not None
            self._token = self._watched = None
            self._changed.notify_all()
        if tells and self._on_lost is not None:
            self._on_lost()
