"""The connection to a server, with the settings that timecached's clients want."""

from __future__ import annotations

import dataclasses
import ipaddress
import os
import random
from collections.abc import Callable, Sequence
from typing import Any

import grpc
import grpc.aio

from .errors import UnavailableError
from .types import RetryPolicy
from .v1 import data_pb2_grpc, groups_pb2_grpc, namespaces_pb2_grpc, server_pb2_grpc

MAX_MESSAGE_BYTES = 64 << 20
"""Largest message taken: a value of 16 MiB with its key, or a list of the most namespaces."""

PathLike = str | os.PathLike[str]

_OPTIONS: list[tuple[str, Any]] = [
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", -1),
    # A server that is gone without a word is noticed after the sum of these.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
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
    token: str | Callable[[], str] | None = None
    allow_plaintext_token: bool = False

    @property
    def wants_tls(self) -> bool:
        """Whether any of its options asks for TLS."""
        named = (self.ca_file, self.certificate_file, self.key_file, self.server_name)
        return self.tls or any(named)

    def credentials(self) -> grpc.ChannelCredentials:
        """Reads the files. OSError: one cannot be read; ValueError: one of a pair is missing."""
        if (self.certificate_file is None) != (self.key_file is None):
            raise ValueError("certificate_file and key_file go together: name both")
        return grpc.ssl_channel_credentials(
            _read(self.ca_file), _read(self.key_file), _read(self.certificate_file)
        )

    def check(self, address: str) -> None:
        """ValueError: the token would go over plain text to another machine."""
        if self.token is None or self.wants_tls or self.allow_plaintext_token:
            return
        if not _is_local(address):
            raise ValueError(
                f"a token is not sent to {address} in plain text: use TLS, or allow it explicitly"
            )

    def authorization(self) -> tuple[tuple[str, str], ...]:
        """What each call shows to the server."""
        if self.token is None:
            return ()
        if isinstance(self.token, str):
            token = self.token
        else:
            try:
                token = self.token()
            except Exception as error:
                # As gRPC takes it. It may pass, as where a file is just being replaced.
                raise UnavailableError(
                    grpc.StatusCode.UNAVAILABLE, f"the token function raised {error!r}"
                ) from error
        return (("authorization", f"Bearer {token.strip()}"),)


def _read(path: PathLike | None) -> bytes | None:
    if path is None:
        return None
    with open(path, "rb") as file:
        return file.read()


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


def open_sync(
    address: str,
    security: Security,
    options: Sequence[tuple[str, Any]],
    interceptors: Sequence[Any],
) -> grpc.Channel:
    """A channel for the blocking client; connects at its first call."""
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
        data = self.data
        self.operations: dict[str, Any] = {
            "put": data.Put,
            "get": data.Get,
            "remove": data.Remove,
            "contains": data.Contains,
            "touch": data.Touch,
            "append": data.Append,
            "combine": data.Combine,
            "gather": data.Gather,
        }


@dataclasses.dataclass(frozen=True)
class Settings:
    """What the calls of one client have in common."""

    namespace: str = "default"
    timeout: float | None = 5.0
    retry: RetryPolicy = dataclasses.field(default_factory=RetryPolicy)
    metadata: tuple[tuple[str, str | bytes], ...] = ()
    repeatable: bool = False


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
