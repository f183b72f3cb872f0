"""The connection to a server, with the settings that timecached's clients want."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import inspect
import ipaddress
import os
import random
import re
import types
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import grpc
import grpc.aio

from .errors import UnavailableError
from .types import RetryPolicy
from .v1 import data_pb2_grpc, groups_pb2_grpc, namespaces_pb2_grpc, server_pb2_grpc

MAX_MESSAGE_BYTES = 64 << 20
"""Largest message taken: a value of 16 MiB with its key, or a list of the most namespaces."""

GRPC_MAX_MESSAGE_BYTES = 4 << 20
"""Largest message that gRPC takes by default: the least to ask a server for."""

MAX_ADDRESSES = 16
"""Most addresses of one client."""

# An attempt to connect to one of several addresses ends so soon: gRPC allows 20 s, for which calls
# would wait where another address may do.
BOUNDED: list[tuple[str, Any]] = [("grpc.min_reconnect_backoff_ms", 1_000)]

PathLike = str | os.PathLike[str]

SERVICES = {
    "data": "timecache.v1.TimeCacheService",
    "groups": "timecache.v1.GroupService",
    "namespaces": "timecache.v1.NamespaceService",
    "server": "timecache.v1.ServerService",
    "health": "grpc.health.v1.Health",
    "clock": "timecache.testing.v1.VirtualClockService",
}
"""The services by the names of their stubs in Stubs."""

_RECEIVE_MAX = "grpc.max_receive_message_length"

_OPTIONS: list[tuple[str, Any]] = [
    (_RECEIVE_MAX, MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", -1),
    # A server that is gone without a word is noticed after the sum of these.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    # gRPC's own limit for the answer to a ping, a minute, counts beside that one.
    ("grpc.http2.ping_timeout_ms", 10_000),
    # A watch may be silent for hours: without this, pings end after the second.
    ("grpc.http2.max_pings_without_data", 0),
    # A client is back about a second after its server.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    # Each client has its own connection: limits and flow control are a connection's.
    ("grpc.use_local_subchannel_pool", 1),
]


@dataclasses.dataclass(frozen=True)
class Security:
    """How a channel is secured, and who it says that calls."""

    tls: bool = False
    ca_file: PathLike | None = None
    certificate_file: PathLike | None = None
    key_file: PathLike | None = None
    server_name: str | None = None
    token: str | Callable[[], str | Awaitable[str]] | None = None
    allow_plaintext_token: bool = False

    @property
    def wants_tls(self) -> bool:
        """Whether any of its options asks for TLS."""
        named = (self.ca_file, self.certificate_file, self.key_file, self.server_name)
        return self.tls or any(named)

    def credentials(self) -> grpc.ChannelCredentials:
        """Reads the files. OSError: one cannot be read; ValueError: they are not what they must be.

        What gRPC would say of them, at the first call, names neither the file nor what is wrong.
        """
        if (self.certificate_file is None) != (self.key_file is None):
            raise ValueError("certificate_file and key_file go together: name both")
        return grpc.ssl_channel_credentials(
            _read_pem(self.ca_file, b"CERTIFICATE"),
            _read_pem(self.key_file, b"PRIVATE KEY"),
            _read_pem(self.certificate_file, b"CERTIFICATE"),
        )

    def check(self, address: str) -> None:
        """ValueError: the token cannot be sent, or would go over plain text to another machine."""
        if isinstance(self.token, str):
            _bearer(self.token)
        elif self.token is not None and not callable(self.token):
            raise TypeError("token must be a str, or a function that returns one")
        if self.token is None or self.wants_tls or self.allow_plaintext_token:
            return
        if not _is_local(address):
            raise ValueError(
                f"a token is not sent to {address} in plain text: use TLS, or allow it explicitly"
            )

    def authorization(self, limit: float | None) -> tuple[tuple[str, str], ...]:
        """What each call shows to the server. A function must not wait, whatever the limit."""
        del limit
        if self.token is None:
            return ()
        if isinstance(self.token, str):
            return _header(self.token)
        try:
            return _header(self.token())
        except Exception as error:
            raise _no_token(error) from error

    async def authorization_async(self, limit: float | None) -> tuple[tuple[str, str], ...]:
        """As authorization; a token that is awaited must come within so many seconds."""
        if self.token is None:
            return ()
        if isinstance(self.token, str):
            return _header(self.token)
        try:
            token = self.token()
            if inspect.isawaitable(token):
                token = await asyncio.wait_for(token, limit)
            return _header(token)
        except Exception as error:
            raise _no_token(error) from error


def _header(token: Any) -> tuple[tuple[str, str], ...]:
    return (("authorization", _bearer(token)),)


# As gRPC takes it. It may pass, as where a file is just being replaced.
def _no_token(error: Exception) -> UnavailableError:
    return UnavailableError(
        grpc.StatusCode.UNAVAILABLE,
        f"no token: the function failed with {error!r}",
        maybe_applied=False,
    )


def _bearer(token: str) -> str:
    if not isinstance(token, str):
        raise TypeError(f"a token must be a str, not {type(token).__name__}")
    token = token.strip()
    if not re.fullmatch(r"[!-~]+", token):
        raise ValueError("a token must be graphic ASCII characters, at least one")
    return f"Bearer {token}"


def check_metadata(pairs: Iterable[tuple[str, str | bytes]]) -> None:
    """ValueError: gRPC would not send them. It would say so at the call, but not which."""
    for key, value in pairs:
        if not re.fullmatch(r"(?!grpc-)[0-9a-z_.-]+", key):
            raise ValueError(f"metadata {key!r} cannot be sent: the key")
        if key.endswith("-bin"):
            sendable = isinstance(value, bytes)
        else:
            sendable = isinstance(value, str) and re.fullmatch(r"[ -~]*", value) is not None
        if not sendable:
            raise ValueError(f"metadata {key!r} cannot be sent: the value {value!r}")


def replaced(
    pairs: Iterable[tuple[str, str | bytes]], by: Iterable[tuple[str, str | bytes]]
) -> tuple[tuple[str, str | bytes], ...]:
    """The pairs, without those whose keys others have, and the others."""
    others = tuple(by)
    keys = {key for key, _ in others}
    return (*(pair for pair in pairs if pair[0] not in keys), *others)


def split_addresses(address: str | Sequence[str]) -> list[str]:
    """One address, or several: a list, or separated by commas. ValueError: one is none."""
    if isinstance(address, (list, tuple)):
        addresses = list(address)
    elif isinstance(address, str) and "," in address:
        addresses = [each.strip() for each in address.split(",")]
    else:
        addresses = [address]  # Checked below.
    if not 1 <= len(addresses) <= MAX_ADDRESSES:
        raise ValueError(f"{len(addresses)} addresses: 1 to {MAX_ADDRESSES} are allowed")
    for each in addresses:
        _check_address(each)
    return addresses


def _check_address(address: str) -> None:
    if not isinstance(address, str):
        raise TypeError(f'an address is a str, "host:port" or "unix:/path", not {address!r}')
    # Without a port gRPC takes that of https.
    if not re.fullmatch(r".+:\d+|(dns|ipv4|ipv6|unix|unix-abstract|vsock|xds):.+", address) or (
        address.startswith(("http://", "https://"))
    ):
        raise ValueError(f'an address is "host:port" or "unix:/path", not {address!r}')


def _read_pem(path: PathLike | None, label: bytes) -> bytes | None:
    if path is None:
        return None
    with open(path, "rb") as file:
        content = file.read()
    if not re.search(b"-----BEGIN [A-Z ]*" + label + b"-----", content):
        raise ValueError(f"{os.fspath(path)} has no {label.decode().lower()} in PEM")
    return content


def _is_local(address: str) -> bool:
    host = address.rsplit(":", 1)[0].strip("[]")
    if address.startswith("unix:") or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _options(security: Security, more: Sequence[tuple[str, Any]]) -> list[tuple[str, Any]]:
    options = [*_OPTIONS, *more]
    if security.server_name is not None:
        options.append(("grpc.ssl_target_name_override", security.server_name))
    return options


def receive_max(options: Sequence[tuple[str, Any]]) -> int:
    """Largest message to ask the server for, on a channel with these options of its user's."""
    limit: int = dict(options).get(_RECEIVE_MAX, MAX_MESSAGE_BYTES)
    # Negative: the channel has no limit.
    return MAX_MESSAGE_BYTES if limit < 0 else max(limit, GRPC_MAX_MESSAGE_BYTES)


def open_sync(
    address: str,
    security: Security,
    options: Sequence[tuple[str, Any]],
    interceptors: Sequence[Any],
) -> grpc.Channel:
    """A channel for the blocking client; connects at its first call."""
    if inspect.iscoroutinefunction(security.token):
        raise TypeError("a coroutine function as a token is for timecached.aio")
    _check_address(address)
    security.check(address)
    settings = _options(security, options)
    if security.wants_tls:
        channel = grpc.secure_channel(address, security.credentials(), settings)
    else:
        channel = grpc.insecure_channel(address, settings)
    return grpc.intercept_channel(channel, *interceptors) if interceptors else channel


def open_async(
    address: str,
    security: Security,
    options: Sequence[tuple[str, Any]],
    interceptors: Sequence[Any],
) -> grpc.aio.Channel:
    """A channel for the asyncio client; connects at its first call."""
    _check_address(address)
    security.check(address)
    settings = _options(security, options)
    if security.wants_tls:
        return grpc.aio.secure_channel(
            address, security.credentials(), settings, interceptors=list(interceptors)
        )
    return grpc.aio.insecure_channel(address, settings, interceptors=list(interceptors))


class Stubs:
    """A channel, and the generated stubs on it."""

    def __init__(self, channel: Any) -> None:
        """Of either kind of channel."""
        self.channel = channel
        self.data: Any = data_pb2_grpc.TimeCacheServiceStub(channel)  # type: ignore[no-untyped-call]
        self.namespaces: Any = namespaces_pb2_grpc.NamespaceServiceStub(channel)  # type: ignore[no-untyped-call]
        self.groups: Any = groups_pb2_grpc.GroupServiceStub(channel)  # type: ignore[no-untyped-call]
        self.server: Any = server_pb2_grpc.ServerServiceStub(channel)  # type: ignore[no-untyped-call]
        # The two messages have a field each; a package of stubs for them would be one more to need.
        check = channel.unary_unary(f"/{SERVICES['health']}/Check")
        self.health = types.SimpleNamespace(Check=check)

    @functools.cached_property
    def clock(self) -> Any:
        """Of servers on a virtual clock, for tests."""
        from .testing.v1 import virtual_clock_pb2_grpc

        return virtual_clock_pb2_grpc.VirtualClockServiceStub(self.channel)  # type: ignore[no-untyped-call]

    def method(self, name: str) -> Any:
        """By the names of stub and method: "data.Put"."""
        stub, _, method = name.partition(".")
        return getattr(getattr(self, stub), method)


@dataclasses.dataclass(frozen=True)
class Settings:
    """What the calls of one client have in common."""

    namespace: str = "default"
    timeout: float | None = 5.0
    retry: RetryPolicy = dataclasses.field(default_factory=RetryPolicy)
    metadata: tuple[tuple[str, str | bytes], ...] = ()
    repeatable: bool = False
    trace_entries: bool = False
    traced: bool = True
    batching: bool = True

    @functools.cached_property
    def shares(self) -> bool:
        """Whether plain calls may go with others, whose operations have no other metadata."""
        return self.batching and dict(self.metadata).keys() <= {"x-request-id", "traceparent"}

    @functools.cached_property
    def traceparent(self) -> str:
        """The one that the caller has given for all calls; empty: none."""
        return str(dict(self.metadata).get("traceparent", ""))

    @functools.cached_property
    def request_id(self) -> str:
        """The same of x-request-id; empty, too, where the server would not take it."""
        given = str(dict(self.metadata).get("x-request-id", ""))
        return given if re.fullmatch(r"[!-~]{1,128}", given) else ""


class Backoff:
    """Pauses that double, each shortened at random by up to half."""

    def __init__(self, min_pause: float, max_pause: float) -> None:
        """Both in seconds."""
        self._min = min_pause
        self._max = max_pause
        self._pause = min_pause

    def next(self) -> float:
        """The next pause, in seconds."""
        pause = self._pause * random.uniform(0.5, 1)
        self._pause = min(2 * self._pause, self._max)
        return pause

    def reset(self) -> None:
        """After a success."""
        self._pause = self._min
