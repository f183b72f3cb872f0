"""A client of one server, for asyncio."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from types import EllipsisType, TracebackType
from typing import Any, TypeVar

import grpc

from ..channel import (
    PathLike,
    Security,
    Settings,
    check_metadata,
    open_async,
    receive_max,
    replaced,
    split_addresses,
)
from ..connection import AsyncConnection, Endpoints
from ..errors import TimecacheError, error_from_status, miscounted
from ..operation import Operation
from ..scanning import ScanState
from ..sharing import Streams
from ..tracing import call_span
from ..types import (
    AppendResult,
    BytesLike,
    CombineResult,
    Duration,
    Entry,
    ExpiredEvent,
    FetchedEvents,
    GatherResult,
    PutResult,
    RemoveResult,
    RetryPolicy,
    Settle,
    Settlement,
    SizeResult,
    entry_from,
    fetched_from,
    from_duration,
    to_bytes,
    to_duration,
)
from ..v1 import data_pb2, watch_pb2
from ..watching import Reconnecting, WatchState, start_of
from ..working import Listeners, in_flight, to_settlement
from .admin import Administration
from .pipeline import Pipeline
from .settles import Settles
from .streams import Stream
from .tasks import sleep
from .watcher import ChangeWatcher, Watcher
from .worker import GroupWorker

T = TypeVar("T")


class Client(Administration):
    """A client of one server, and of one of its namespaces at a time.

    Connects at its first call, and again by itself. Every call is one round trip, ends after
    ``timeout`` at the latest, and raises a TimecacheError if it fails; what each call may fail
    with stands in data.proto. Views of other namespaces or options, by ``namespace`` and
    ``with_options``, are cheap and share the connection.
    """

    def __init__(
        self,
        address: str | Sequence[str],
        *,
        namespace: str = "default",
        timeout: float | None = 5.0,
        retry: RetryPolicy | None = None,
        tls: bool = False,
        ca_file: PathLike | None = None,
        certificate_file: PathLike | None = None,
        key_file: PathLike | None = None,
        server_name: str | None = None,
        token: str | Callable[[], str | Awaitable[str]] | None = None,
        allow_plaintext_token: bool = False,
        trace_entries: bool = False,
        batching: bool = True,
        interceptors: Sequence[Any] = (),
        channel_options: Sequence[tuple[str, Any]] = (),
    ) -> None:
        """Makes a client of the server at `address`: "host:port" or "unix:/path".

        Of a cluster the addresses of its nodes, up to 16: a list, or separated by commas,
        "a:7171,b:7171". Calls go to the owner, watches and workers resume there.

        - `namespace`: of all calls. The server has one called "default", unless configured
          otherwise.
        - `timeout`: seconds that one call may take, with all its attempts. None: no limit. Not of
          scans and watches.
        - `retry`: which calls are tried again.
        - `tls`: with TLS, also asked for by the next four. `ca_file`: roots that the server's
          certificate must lead to; None: the system's. `certificate_file`, `key_file`: the client's
          own. `server_name`: that the certificate must have, if not the address's. Files are PEM,
          and read here.
        - `token`: a bearer token, or a function that returns the one to show now: called for each
          call or stream, so it must not wait; for asyncio it may be a coroutine function, which
          may. Not sent to another machine in plain text, unless `allow_plaintext_token`.
        - `trace_entries`: an entry that a put, append, combine or gather makes keeps the trace of
          the call, if that is sampled: its event then has the ``traceparent``, to which the span of
          a worker's handler is linked. 26 B more of each such entry.
        - `batching`: calls on single entries (put, get, remove, contains, touch, append, combine,
          gather) that are made at the same time go together, on a stream that the client keeps for
          each namespace, at most 64. None waits for others to come: it goes at once or, while a
          message is under way, with the next one. Results, errors, deadlines and retries are each
          call's own. False: each is an RPC of its own, as are in any case those with more than
          64 KiB or with ``metadata``, and all of a client with `interceptors`. Calls of ``settle``
          for one group share a request likewise: see there.
        - `interceptors`, `channel_options`: of gRPC's.

        ValueError, OSError: options that do not go together, files that cannot be read.
        """
        self._security = Security(
            tls, ca_file, certificate_file, key_file, server_name, token, allow_plaintext_token
        )
        self._max_message_bytes = receive_max(channel_options)
        addresses = split_addresses(address)
        for each in addresses:
            self._security.check(each)

        def connect(address: str, more: Sequence[tuple[str, Any]]) -> AsyncConnection:
            options = [*more, *channel_options]
            channel = open_async(address, self._security, options, interceptors)
            return AsyncConnection(address, channel, has_others=bool(more))

        self._endpoints = Endpoints(addresses, connect)
        self._streams = Streams(Stream)
        self._settles = Settles()
        self._settings = Settings(
            namespace,
            timeout,
            retry or RetryPolicy(),
            trace_entries=trace_entries,
            batching=batching and not interceptors,
        )

    # --- the client itself ---

    @property
    def namespace_name(self) -> str:
        """The namespace of this client's calls."""
        return self._settings.namespace

    @property
    def channel(self) -> grpc.aio.Channel:
        """The channel, for generated stubs of one's own: to the server that calls go to now."""
        channel: grpc.aio.Channel = self._endpoints.current.stubs.channel
        return channel

    def namespace(self, name: str) -> Client:
        """The same client for another namespace."""
        return self._with(namespace=name)

    def with_options(
        self,
        *,
        timeout: float | EllipsisType | None = ...,
        retry: RetryPolicy | None = None,
        repeatable: bool | None = None,
        request_id: str | None = None,
        traceparent: str | None = None,
        trace_entries: bool | None = None,
        batching: bool | None = None,
        metadata: Sequence[tuple[str, str | bytes]] = (),
    ) -> Client:
        """The same client with other options: for one call, or for many.

        - `repeatable`: repeat all calls, also those that are not safe in general: as a put that
          nobody else competes with.
        - `request_id` (1 to 128 graphic ASCII characters), `traceparent` (W3C): stand in the
          server's log lines about the call.
        - `trace_entries`: as of the client; entries keep `traceparent` if that is given, else the
          trace of the call.
        - `batching`: as of the client.
        - `metadata`: more pairs to send.

        They take the place of what this client has under the same keys; the server takes one of
        each. ValueError: gRPC would not send them.
        """
        pairs = list(metadata)
        if request_id is not None:
            pairs.append(("x-request-id", request_id))
        if traceparent is not None:
            pairs.append(("traceparent", traceparent))
        check_metadata(pairs)
        changes: dict[str, Any] = {}
        if timeout is not ...:
            changes["timeout"] = timeout
        if retry is not None:
            changes["retry"] = retry
        if repeatable is not None:
            changes["repeatable"] = repeatable
        if trace_entries is not None:
            changes["trace_entries"] = trace_entries
        if batching is not None:
            changes["batching"] = batching
        return self._with(metadata=replaced(self._settings.metadata, pairs), **changes)

    async def close(self) -> None:
        """Closes the connection, also that of all views of this client.

        Calls, watches and workers that are under way end with a ClosedError, as do later ones.
        """
        for connection in self._endpoints.close():
            await connection.close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    # --- entries ---

    async def put(
        self,
        key: BytesLike,
        value: BytesLike,
        *,
        ttl: Duration | None = None,
        if_absent: bool = False,
        if_present: bool = False,
        if_version: int | None = None,
        return_previous: bool = False,
        keep_deadline: bool = False,
        expire_at: datetime | None = None,
        allow_past: bool = False,
        idempotency_id: BytesLike | None = None,
        traceparent: str | None = None,
    ) -> PutResult:
        """Stores a value under a key, with a fresh time to live.

        - `ttl`: the entry's own, 1 ms to the namespace's max_ttl. None: the namespace's.
        - `if_absent`, `if_present`, `if_version`: store only if the key is not there, is there,
          or is there with this version; else FailedPreconditionError (KEY_EXISTS, KEY_NOT_FOUND,
          VERSION_MISMATCH).
        - `return_previous`: answer with the entry that was replaced.
        - `keep_deadline`: an entry that is there keeps its time to live. Not together with `ttl`
          or `expire_at`.
        - `expire_at`: the deadline of this life, in place of now + ttl: a datetime with a time
          zone, after now, and no later than now + max_ttl. `ttl` is then what a later renewal
          gives. `allow_past`: one that is over is no error: the entry expires at once, and its
          event is delivered.
        - `idempotency_id`: makes the call safe to repeat, so that it is repeated as RetryPolicy
          says: 1 to 64 B that no other call has. The namespace must have an idempotency_window.
          Not together with `return_previous`.
        - `traceparent`: a W3C traceparent of 55 characters, kept with the entry (26 B) and given
          with its event, so that the trace of what handles the event can link to this one: see also
          `trace_entries` of the client. Every put sets it anew; ``append``, ``combine`` and
          ``gather`` only that of an entry which they create.

        A limit that would be passed: ResourceExhaustedError.
        """
        return await self._do(
            Operation.put(
                key,
                value,
                ttl=ttl,
                if_absent=if_absent,
                if_present=if_present,
                if_version=if_version,
                return_previous=return_previous,
                keep_deadline=keep_deadline,
                expire_at=expire_at,
                allow_past=allow_past,
                idempotency_id=idempotency_id,
                traceparent=traceparent,
            )
        )

    async def get(self, key: BytesLike, *, touch: bool | None = None) -> Entry | None:
        """Reads an entry; None if it is not there.

        `touch`: renew its time to live; False: do not, in a sliding namespace, either. None: renew
        it if the namespace is sliding.
        """
        return await self._do(Operation.get(key, touch=touch))

    async def remove(
        self,
        key: BytesLike,
        *,
        if_version: int | None = None,
        return_previous: bool = False,
        idempotency_id: BytesLike | None = None,
    ) -> RemoveResult:
        """Removes an entry, without an expiry event. The result is true if it was there.

        With `if_version`, only this version; else FailedPreconditionError (KEY_NOT_FOUND,
        VERSION_MISMATCH).
        """
        return await self._do(
            Operation.remove(
                key,
                if_version=if_version,
                return_previous=return_previous,
                idempotency_id=idempotency_id,
            )
        )

    async def contains(
        self,
        key: BytesLike,
        *,
        if_absent: bool = False,
        if_present: bool = False,
        if_version: int | None = None,
    ) -> bool:
        """Whether an entry is there. Never renews its time to live.

        With a condition, as in ``put``, FailedPreconditionError where it does not hold: for an
        ``execute`` that is atomic, of a key that does not change.
        """
        return await self._do(
            Operation.contains(
                key, if_absent=if_absent, if_present=if_present, if_version=if_version
            )
        )

    async def size(self) -> SizeResult:
        """Live entries and bytes of the namespace, exact."""
        response = await self._call(
            "data.Size",
            data_pb2.SizeRequest(namespace=self._settings.namespace),
            safe=True,
        )
        return SizeResult(response.entries, response.bytes)

    async def touch(
        self,
        key: BytesLike,
        *,
        ttl: Duration | None = None,
        if_version: int | None = None,
        expire_at: datetime | None = None,
        allow_past: bool = False,
        namespace_ttl: bool = False,
    ) -> int | None:
        """Gives an entry a fresh time to live: its own again, or `ttl`, which is its own then.

        Returns its version, which stays; None if it is not there. With `if_version`, only this
        version; else FailedPreconditionError. `expire_at`, `allow_past`: as for ``put``; the
        entry's own time to live stays as it is, unless `ttl` is given, too. `namespace_ttl`: the
        entry has none of its own any more, and follows the namespace's; not together with `ttl`.
        """
        return await self._do(
            Operation.touch(
                key,
                ttl=ttl,
                if_version=if_version,
                expire_at=expire_at,
                allow_past=allow_past,
                namespace_ttl=namespace_ttl,
            )
        )

    async def append(
        self,
        key: BytesLike,
        value: BytesLike,
        *,
        ttl: Duration | None = None,
        if_absent: bool = False,
        if_present: bool = False,
        if_version: int | None = None,
        touch: bool = False,
        idempotency_id: BytesLike | None = None,
        traceparent: str | None = None,
    ) -> AppendResult:
        """Appends to a value, or creates an entry with these bytes.

        An entry that is there keeps its deadline, unless `touch`; `ttl` is for one that is
        created, and with `touch`. FailedPreconditionError: a condition as in ``put``, a value that
        would be too large (VALUE_TOO_LARGE), a key that collects parts (VALUE_KIND_MISMATCH).
        Never repeated unasked: it might be done twice.
        """
        return await self._do(
            Operation.append(
                key,
                value,
                ttl=ttl,
                if_absent=if_absent,
                if_present=if_present,
                if_version=if_version,
                touch=touch,
                idempotency_id=idempotency_id,
                traceparent=traceparent,
            )
        )

    async def combine(
        self,
        key: BytesLike,
        *,
        add: int | None = None,
        xor: int | None = None,
        initial: int = 0,
        remove_if_zero: bool = False,
        touch: bool = False,
        ttl: Duration | None = None,
        if_version: int | None = None,
        idempotency_id: BytesLike | None = None,
        traceparent: str | None = None,
    ) -> CombineResult:
        """Adds a 64-bit number to a value, or xors it with one, atomically.

        The value is a decimal number in ASCII, as ``put("n", "10")`` stores it. A key that is not
        there counts as `initial`. `remove_if_zero`: a result of 0 removes the entry. An entry that
        is there keeps its deadline, unless `touch`. FailedPreconditionError: a value that is no
        number (NOT_A_NUMBER), a sum that has no room (NUMBER_OVERFLOW), `if_version`. Never
        repeated unasked.
        """
        return await self._do(
            Operation.combine(
                key,
                add=add,
                xor=xor,
                initial=initial,
                remove_if_zero=remove_if_zero,
                touch=touch,
                ttl=ttl,
                if_version=if_version,
                idempotency_id=idempotency_id,
                traceparent=traceparent,
            )
        )

    async def gather(
        self,
        key: BytesLike,
        part: BytesLike,
        value: BytesLike,
        *,
        expected_parts: int | None = None,
        expected_names: Iterable[BytesLike] = (),
        touch: bool = False,
        ttl: Duration | None = None,
        keep_first: bool = False,
        remember: Duration | None = None,
        idempotency_id: BytesLike | None = None,
        traceparent: str | None = None,
    ) -> GatherResult:
        """Brings one part of what is collected under a key.

        The call that brings the last part gets all, and the key is gone: exactly one call does.
        What is not complete in time expires with the parts that came (``ExpiredEvent.parts``).
        Either `expected_parts` (1 to 1,024, whatever their names) or `expected_names` says what
        is complete, the same for all parts of a key; parts after the first may leave it out. The
        same part again is a `duplicate`; AlreadyExistsError (PART_EXISTS): with another value,
        unless `keep_first` keeps the one that is there. `remember`: how long a key that this part
        completes takes no parts again, but AlreadyExistsError (GATHER_COMPLETE).
        FailedPreconditionError: something else is expected (GATHER_MISMATCH), the key has a value,
        the parts would be too large. Never repeated unasked.
        """
        return await self._do(
            Operation.gather(
                key,
                part,
                value,
                expected_parts=expected_parts,
                expected_names=expected_names,
                touch=touch,
                ttl=ttl,
                keep_first=keep_first,
                remember=remember,
                idempotency_id=idempotency_id,
                traceparent=traceparent,
            )
        )

    async def execute(
        self, operations: Iterable[Operation[Any]], *, atomic: bool = False
    ) -> list[Any]:
        """Does up to 4,096 operations in one round trip: a result for each, in their order.

        Each is what the method of the same name returns, or the TimecacheError that it would
        raise. Not a transaction, unless `atomic`: each succeeds or fails by itself, and those of
        one key apply in order. Raises where none could be tried, or nobody knows. No operations: no
        call. Repeated, as RetryPolicy says, if all operations are safe to repeat.

        `atomic`: all or none. If one fails, its result says why, and each of the others is an
        AbortedError (NOT_APPLIED). No other call sees a part of them, and no crash leaves one. At
        most 128 operations, 1 MiB in all, each on a key of its own; else InvalidArgumentError.
        """
        batch = list(operations)
        if not batch:
            return []
        response = await self._call(
            "data.Execute",
            data_pb2.ExecuteRequest(
                namespace=self._settings.namespace,
                operations=[operation.message for operation in batch],
                atomic=atomic,
            ),
            safe=all(operation.is_safe(atomic) for operation in batch),
        )
        if len(response.results) != len(batch):
            raise miscounted(len(batch), len(response.results))
        return [
            operation.parse_result(result)
            for operation, result in zip(batch, response.results, strict=True)
        ]

    def pipeline(
        self,
        *,
        batch_operations_max: int = 256,
        batch_bytes_max: int = 1 << 20,
        requests_in_flight_max: int = 16,
    ) -> Pipeline:
        """A stream of operations without waiting for each answer: see Pipeline.

        It ends with DeadlineExceededError if no answer comes for this client's ``timeout``.
        """
        return Pipeline(
            self._endpoints,
            self._settings,
            self._metadata,
            batch_operations_max,
            batch_bytes_max,
            requests_in_flight_max,
        )

    async def scan(
        self,
        key_prefix: BytesLike = b"",
        *,
        keys_only: bool = False,
        timeout: float | None = None,
    ) -> AsyncIterator[Entry]:
        """Iterates over the live entries whose key begins with a prefix, in no particular order.

        An entry that lives through the whole scan comes exactly once, another at most once. Where
        the connection breaks, or the server ends a scan that is read slowly, it goes on behind the
        last page that came; not over a restart of the server, which ends it. Holds a page or two
        (1,000 entries, about 1 MiB each). `timeout`: of the whole scan, in seconds.
        """
        request = data_pb2.ScanRequest(
            namespace=self._settings.namespace,
            key_prefix=to_bytes(key_prefix),
            keys_only=keys_only,
            max_message_bytes=self._max_message_bytes,
        )
        give_up_at = None if timeout is None else time.monotonic() + timeout
        state = ScanState(self._settings.retry)
        failover = self._endpoints.failover()
        address = self._endpoints.current.address
        with call_span("data.Scan", request, self._settings, address) as span:
            while True:
                connection = self._endpoints.current
                try:
                    with connection.errors():
                        call = await self._open(connection, "data.Scan", request, give_up_at, span)
                        try:
                            async for page in call:
                                request.position = state.accept(page)
                                for entry in page.entries:
                                    yield entry_from(entry)
                            return
                        finally:
                            call.cancel()
                except TimecacheError as error:
                    self._endpoints.move_on(connection, error)
                    elsewhere = failover.pause(error)
                    pause = state.broken(error) if elsewhere is None else elsewhere
                    if give_up_at is not None and time.monotonic() + pause >= give_up_at:
                        raise
                    span.retry(error, pause, self._endpoints.current.address)
                await sleep(pause)

    # --- what expires ---

    def watch(
        self,
        namespaces: Iterable[str] | None = None,
        *,
        from_earliest: bool = False,
        resume_tokens: Mapping[str, bytes] | None = None,
        key_prefix: BytesLike = b"",
        keys_only: bool = False,
        fail_on_loss: bool = False,
        heartbeat_interval: Duration | None = None,
        wait_for_server: bool = False,
        min_pause: float = 0.1,
        max_pause: float = 1.0,
        silence_max: float | None = None,
        on_break: Callable[[TimecacheError], object] | None = None,
    ) -> Watcher:
        """Watches what expires, with a Watcher that resumes by itself.

        - `namespaces`: 1 to 64. None: this client's.
        - `from_earliest`: begin with the oldest event that is retained, not with what dies from
          now on.
        - `resume_tokens`: by namespace, WatchBatch.resume_token of the last batch that an earlier
          watch has handled.
        - `key_prefix`, `keys_only`: only keys that begin so; leave the values out.
        - `fail_on_loss`: end with an error where events are lost, in place of counting them.
        - `heartbeat_interval`: longest time between two batches of one namespace, on the server's
          clock: 10 ms to 1 h. None: 1 s.
        - `wait_for_server`: keep trying when the first attempt finds no server, too.
        - `min_pause`, `max_pause`: seconds between attempts to reconnect.
        - `silence_max`: a stream that brings nothing for so many seconds is taken for broken.
          Several heartbeats are a good value. None: with several addresses 10 s, or four heartbeats
          if that is longer; with one no limit, which suits a clock that stands still.
        - `on_break`: called for every break and every attempt that fails.
        """
        state = WatchState(
            namespaces=[self._settings.namespace] if namespaces is None else namespaces,
            from_earliest=from_earliest,
            resume_tokens=resume_tokens,
            key_prefix=key_prefix,
            keys_only=keys_only,
            fail_on_loss=fail_on_loss,
            heartbeat_interval=heartbeat_interval,
            max_message_bytes=self._max_message_bytes,
            reconnecting=Reconnecting(
                wait_for_server=wait_for_server,
                min_pause=min_pause,
                max_pause=max_pause,
                silence_max=silence_max,
                on_break=on_break,
            ),
        )
        return Watcher(self._endpoints, self._metadata, state)

    def watch_expiring(
        self,
        lead_time: Duration,
        namespaces: Iterable[str] | None = None,
        *,
        key_prefix: BytesLike = b"",
        keys_only: bool = False,
        heartbeat_interval: Duration | None = None,
        wait_for_server: bool = False,
        min_pause: float = 0.1,
        max_pause: float = 1.0,
        silence_max: float | None = None,
        on_break: Callable[[TimecacheError], object] | None = None,
    ) -> Watcher:
        """Watches what is going to expire within `lead_time`, in time to touch it.

        Choose a lead time that is shorter than the ttl by a bucket width or more. What came
        may come again, under the same version and deadline. Other arguments as for ``watch``.
        """
        state = WatchState(
            namespaces=[self._settings.namespace] if namespaces is None else namespaces,
            lead_time=lead_time,
            key_prefix=key_prefix,
            keys_only=keys_only,
            heartbeat_interval=heartbeat_interval,
            max_message_bytes=self._max_message_bytes,
            reconnecting=Reconnecting(
                wait_for_server=wait_for_server,
                min_pause=min_pause,
                max_pause=max_pause,
                silence_max=silence_max,
                on_break=on_break,
            ),
        )
        return Watcher(self._endpoints, self._metadata, state)

    def watch_changes(
        self,
        namespaces: Iterable[str] | None = None,
        *,
        from_earliest: bool = False,
        resume_tokens: Mapping[str, bytes] | None = None,
        key_prefix: BytesLike = b"",
        keys_only: bool = False,
        fail_on_loss: bool = False,
        heartbeat_interval: Duration | None = None,
        wait_for_server: bool = False,
        min_pause: float = 0.1,
        max_pause: float = 1.0,
        silence_max: float | None = None,
        on_break: Callable[[TimecacheError], object] | None = None,
    ) -> ChangeWatcher:
        """Watches puts, renewals and removals, as they happen: for a cache beside the client.

        In namespaces that keep them (change_retention); else FailedPreconditionError (NO_CHANGES).
        What dies is not among them: ``watch`` has it. Resumes by itself as ``watch`` does; the log
        of changes ends with the server (``log_changed``). Arguments as for ``watch``, with
        ChangeBatch.resume_token.
        """
        state = WatchState(
            namespaces=[self._settings.namespace] if namespaces is None else namespaces,
            changes=True,
            from_earliest=from_earliest,
            resume_tokens=resume_tokens,
            key_prefix=key_prefix,
            keys_only=keys_only,
            fail_on_loss=fail_on_loss,
            heartbeat_interval=heartbeat_interval,
            max_message_bytes=self._max_message_bytes,
            reconnecting=Reconnecting(
                wait_for_server=wait_for_server,
                min_pause=min_pause,
                max_pause=max_pause,
                silence_max=silence_max,
                on_break=on_break,
            ),
        )
        return ChangeWatcher(self._endpoints, self._metadata, state)

    async def fetch_expired(
        self,
        group: str,
        *,
        max_events: int | None = None,
        wait: Duration | None = None,
        from_earliest: bool = False,
        keys_only: bool = False,
    ) -> FetchedEvents:
        """Fetches events of a consumer group, without a stream: for jobs that come and go.

        Answers with the events that are ready, or as soon as there is one, or after `wait`. Settle
        each, with ``settle``, within the group's ack_timeout; otherwise it is given out again, to
        any member or caller. Streams and fetches share a group, which is made if it is not there.

        - `max_events`: 1 to 8,192. None: 100.
        - `wait`: 0 to 1 min, on the server's clock, for the first event. None: not at all. The call
          may take so much longer than the client's timeout.
        - `from_earliest`: where a group begins that is made by this. `keys_only`: without values.

        FailedPreconditionError (SINGLE_ACTIVE): the group gives all to one stream;
        ResourceExhaustedError (MAX_WATCHERS): too many calls wait. Never repeated unasked: events
        of an answer that was lost come again after the ack_timeout.
        """
        request = watch_pb2.FetchExpiredRequest(
            namespace=self._settings.namespace,
            group=group,
            start=start_of(from_earliest),
            max_events=max_events,
            keys_only=keys_only,
            max_message_bytes=self._max_message_bytes,
        )
        more = 0.0
        if wait is not None:
            request.wait.CopyFrom(to_duration(wait))
            more = max(0.0, from_duration(request.wait).total_seconds())
        return fetched_from(await self._call("data.FetchExpired", request, more=more))

    def consume(
        self,
        group: str,
        namespaces: Iterable[str] | None = None,
        *,
        from_earliest: bool = False,
        max_in_flight: int | None = None,
        keys_only: bool = False,
        heartbeat_interval: Duration | None = None,
        wait_for_server: bool = False,
        min_pause: float = 0.1,
        max_pause: float = 1.0,
        silence_max: float | None = None,
        on_break: Callable[[TimecacheError], object] | None = None,
    ) -> Watcher:
        """Is a member of a consumer group that settles by itself, with ``settle``.

        ``worker`` does all that with a handler. Every event that this is given must be settled
        within the group's ack_timeout; what is not is given out again. The group is made if it is
        not there. `max_in_flight`: most events of each namespace that this member holds: 1 to
        65,536; None: 1,000. Other arguments as for ``watch``.
        """
        state = WatchState(
            namespaces=[self._settings.namespace] if namespaces is None else namespaces,
            group=group,
            from_earliest=from_earliest,
            max_in_flight=max_in_flight,
            keys_only=keys_only,
            heartbeat_interval=heartbeat_interval,
            max_message_bytes=self._max_message_bytes,
            reconnecting=Reconnecting(
                wait_for_server=wait_for_server,
                min_pause=min_pause,
                max_pause=max_pause,
                silence_max=silence_max,
                on_break=on_break,
            ),
        )
        return Watcher(self._endpoints, self._metadata, state)

    def worker(
        self,
        group: str,
        handler: Callable[[ExpiredEvent], Awaitable[Settle | None] | Settle | None],
        *,
        concurrency: int = 4,
        max_in_flight: int | None = None,
        from_earliest: bool = False,
        keys_only: bool = False,
        retry_delay: Duration | None = 1.0,
        extend_max: Duration = timedelta(hours=12),
        stop_timeout: float = 10.0,
        wait_for_server: bool = False,
        min_pause: float = 0.1,
        max_pause: float = 1.0,
        silence_max: float | None = None,
        on_break: Callable[[TimecacheError], object] | None = None,
        on_error: Callable[[Exception], object] | None = None,
        on_loss: Callable[[int], object] | None = None,
    ) -> GroupWorker:
        """A member of a consumer group that calls `handler` for each event: see GroupWorker.

        - `handler` returns None or Ack() (done), Nack(delay, reason) (again later), PutBack(ttl)
          (back into the map) or Terminate(reason) (to the dead letters). If it raises an exception,
          the event is given out again after `retry_delay`; None: as the group's retry_delay says.
        - `concurrency`: handlers that run at a time. With 1, first attempts are handled in order
          of death.
        - `max_in_flight`: most events that this worker holds, those that wait for a handler
          included: no other worker gets them meanwhile. None: twice the concurrency; more hides the
          round trip of handlers that are quick. The concurrency, where a handler takes long.
        - `extend_max`: for how long the worker keeps an event by asking for another ack_timeout
          again and again, from the event's arrival until it is settled. After that, and with 0,
          the event is given out again an ack_timeout later: the bound for a handler that hangs.
        - `from_earliest`: where a group begins that is made by this.
        - `stop_timeout`: seconds that ``stop`` tries to settle, once the last handler is done.
        - `wait_for_server`, `silence_max`, `on_break`: as for ``watch``. `min_pause`, `max_pause`:
          seconds between attempts to reconnect, and between those to settle.
        - `on_error`: called with each error that is survived: what a handler raised, that an event
          was handled and could not be settled, breaks. None: it is logged by "timecached", with
          namespace, group, key and attempt. `on_loss`: called with the number of lost events.
        """
        return GroupWorker(
            self,
            group,
            handler,
            concurrency=concurrency,
            max_in_flight=in_flight(max_in_flight, concurrency),
            from_earliest=from_earliest,
            keys_only=keys_only,
            retry_delay=retry_delay,
            extend_max=extend_max,
            stop_timeout=stop_timeout,
            reconnecting=Reconnecting(
                wait_for_server=wait_for_server,
                min_pause=min_pause,
                max_pause=max_pause,
                silence_max=silence_max,
            ),
            listeners=Listeners(on_break=on_break, on_error=on_error, on_loss=on_loss),
        )

    async def settle(
        self, group: str, settlements: Iterable[Settlement]
    ) -> list[int | TimecacheError]:
        """Settles, or extends, up to 4,096 events of a group: a result for each, in their order.

        By the tokens of ``consume``, ``fetch_expired``, or ``list_unsettled``.
        Of a PutBack the entry's new version, or 0 if the key was there again; of others 0. A
        TimecacheError: it was not settled (NOT_FOUND with EVENT_NOT_UNSETTLED: it has been
        already; FAILED_PRECONDITION with STALE_ATTEMPT: the event has been given out again).
        Raises where none was settled, or nobody knows: then again.

        Calls for one group that are made while a request of it is under way go together with the
        next one. Alone go those that have more than 64 KiB, a span, ``metadata``, `request_id`,
        `traceparent` or `repeatable`, or no timeout, and all with ``batching=False``.
        """
        messages = [to_settlement(settlement) for settlement in settlements]
        if not messages:
            return []
        request = watch_pb2.SettleExpiredRequest(
            namespace=self._settings.namespace, group=group, settlements=messages
        )
        results = await self._settles.results(self, request)
        if len(results) != len(messages):
            raise miscounted(len(messages), len(results))
        return [
            error_from_status(result.error) if result.HasField("error") else result.version
            for result in results
        ]
