"""What a client of one server administers, for asyncio: groups, namespaces and the server."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable

from ..admin_types import (
    BackupPiece,
    CallerInfo,
    ClusterInfo,
    ConnectionInfo,
    DeathsAhead,
    Group,
    GroupMember,
    GroupOptions,
    HotKeys,
    Namespace,
    NamespaceOptions,
    SeekResult,
    ServerInfo,
    SlowCalls,
    UnsettledEvent,
    cluster_from,
    deaths_from,
    fill_options,
    fill_position,
    from_proto,
    group_from,
    namespace_from,
    server_from,
    unsettled_from,
)
from ..errors import TimecacheError
from ..tracing import call_span
from ..types import BytesLike, Duration, GroupPosition, WatchStart, to_bytes, to_duration, to_names
from ..v1 import groups_pb2, namespaces_pb2, server_pb2
from .calls import Calls
from .tasks import sleep

# A HealthCheckResponse with the status SERVING.
_SERVING = b"\x08\x01"


class Administration(Calls):
    """The part of Client that administers."""

    # --- groups ---

    async def create_group(
        self,
        name: str,
        options: GroupOptions | None = None,
        *,
        start: GroupPosition = WatchStart.NOW,
    ) -> Group:
        """Makes a consumer group of the namespace, which begins at `start`.

        AlreadyExistsError (GROUP_EXISTS); ResourceExhaustedError (MAX_GROUPS). A resume token of
        another log, or one that the log has not reached: as of ``watch`` with fail_on_loss.
        """
        request = groups_pb2.CreateGroupRequest(namespace=self._settings.namespace, name=name)
        fill_position(request.start, start)
        fill_options(request.options, options or GroupOptions())
        response = await self._call("groups.CreateGroup", request)
        return group_from(response.group)

    async def get_group(self, name: str, *, include_statistics: bool = False) -> Group:
        """Describes a group. NotFoundError (GROUP_NOT_FOUND)."""
        request = groups_pb2.GetGroupRequest(
            namespace=self._settings.namespace, name=name, include_statistics=include_statistics
        )
        response = await self._call("groups.GetGroup", request, safe=True)
        return group_from(response.group)

    async def list_groups(self, *, include_statistics: bool = False) -> list[Group]:
        """Describes all groups of the namespace, ordered by name."""
        request = groups_pb2.ListGroupsRequest(
            namespace=self._settings.namespace, include_statistics=include_statistics
        )
        groups: list[Group] = []
        async for page in self._pages("groups.ListGroups", request):
            groups += map(group_from, page.groups)
        return groups

    async def update_group(
        self, name: str, options: GroupOptions, *, to_default: Iterable[str] = ()
    ) -> Group:
        """Changes the options that are set, and sets those that `to_default` names to defaults."""
        request = groups_pb2.UpdateGroupRequest()
        request.group.namespace = self._settings.namespace
        request.group.name = name
        names = [*fill_options(request.group.options, options), *to_names(to_default)]
        request.update_mask.paths.extend(f"options.{option}" for option in names)
        response = await self._call("groups.UpdateGroup", request)
        return group_from(response.group)

    async def delete_group(self, name: str) -> None:
        """Deletes a group with all that it has not settled."""
        request = groups_pb2.DeleteGroupRequest(namespace=self._settings.namespace, name=name)
        await self._call("groups.DeleteGroup", request)

    async def seek_group(
        self, name: str, position: GroupPosition, *, drop_unsettled: bool = False
    ) -> SeekResult:
        """Moves a group: it goes on with the retained events from `position` on.

        Those that it has settled come again, too, as first attempts. What members hold comes back:
        to settle a delivery from before is STALE_ATTEMPT. Events before the position that are not
        settled stay the group's, with their attempts, unless `drop_unsettled`. NotFoundError
        (GROUP_NOT_FOUND); a resume token of another log, or one that the log has not reached: as of
        ``watch`` with fail_on_loss.
        """
        request = groups_pb2.SeekGroupRequest(
            namespace=self._settings.namespace, name=name, drop_unsettled=drop_unsettled
        )
        fill_position(request.position, position)
        response = await self._call("groups.SeekGroup", request)
        return SeekResult(unsettled=response.unsettled, dropped=response.dropped)

    async def list_unsettled(
        self, name: str, *, key_prefix: BytesLike = b"", include_values: bool = False
    ) -> AsyncIterator[UnsettledEvent]:
        """Iterates over the events that a group has not settled, the oldest first, in pages.

        ``settle`` with the token of one settles it, whoever holds it. `key_prefix`: only keys that
        begin so, at most 4 KiB. `include_values`: with values and parts; one that does not fit says
        its size in omitted_value_bytes. Each page (100 events, with values at most 1 MiB) is a
        call, and shows its events as they are then. NotFoundError (GROUP_NOT_FOUND).
        """
        request = groups_pb2.ListUnsettledRequest(
            namespace=self._settings.namespace,
            name=name,
            key_prefix=to_bytes(key_prefix),
            include_values=include_values,
        )
        async for page in self._pages("groups.ListUnsettled", request):
            for event in page.events:
                yield unsettled_from(event)

    async def list_members(self, name: str) -> list[GroupMember]:
        """Describes the streams that are members of a group, the oldest first.

        NotFoundError (GROUP_NOT_FOUND).
        """
        request = groups_pb2.ListMembersRequest(namespace=self._settings.namespace, name=name)
        response = await self._call("groups.ListMembers", request, safe=True)
        return [from_proto(GroupMember, member) for member in response.members]

    # --- namespaces and the server ---

    async def create_namespace(
        self, name: str, options: NamespaceOptions | None = None
    ) -> Namespace:
        """Makes a namespace. AlreadyExistsError (NAMESPACE_EXISTS)."""
        request = namespaces_pb2.CreateNamespaceRequest(name=name)
        fill_options(request.options, options or NamespaceOptions())
        response = await self._call("namespaces.CreateNamespace", request)
        return namespace_from(response.namespace, response.warnings)

    async def get_namespace(self, name: str, *, include_statistics: bool = False) -> Namespace:
        """Describes a namespace. NotFoundError (NAMESPACE_NOT_FOUND)."""
        request = namespaces_pb2.GetNamespaceRequest(
            name=name, include_statistics=include_statistics
        )
        response = await self._call("namespaces.GetNamespace", request, safe=True)
        return namespace_from(response.namespace)

    async def list_namespaces(self, *, include_statistics: bool = False) -> list[Namespace]:
        """Describes all namespaces, ordered by name: a round trip for each thousand."""
        request = namespaces_pb2.ListNamespacesRequest(include_statistics=include_statistics)
        namespaces: list[Namespace] = []
        async for page in self._pages("namespaces.ListNamespaces", request):
            namespaces += map(namespace_from, page.namespaces)
        return namespaces

    async def update_namespace(
        self, name: str, options: NamespaceOptions, *, to_default: Iterable[str] = ()
    ) -> Namespace:
        """Changes the options that are set, and sets those that `to_default` names to defaults."""
        request = namespaces_pb2.UpdateNamespaceRequest()
        request.namespace.name = name
        names = [*fill_options(request.namespace.options, options), *to_names(to_default)]
        request.update_mask.paths.extend(f"options.{option}" for option in names)
        response = await self._call("namespaces.UpdateNamespace", request)
        return namespace_from(response.namespace, response.warnings)

    async def delete_namespace(self, name: str) -> None:
        """Deletes a namespace with everything in it; its entries make no events."""
        request = namespaces_pb2.DeleteNamespaceRequest(name=name)
        await self._call("namespaces.DeleteNamespace", request)

    async def rotate_namespace(self, name: str) -> int:
        """Kills the oldest bucket now, and returns how many entries died with it."""
        request = namespaces_pb2.RotateNamespaceRequest(name=name)
        response = await self._call("namespaces.RotateNamespace", request)
        return int(response.entries)

    async def get_deaths(
        self, name: str, *, max_bars: int = 60, within: Duration | None = None
    ) -> DeathsAhead:
        """Counts the live entries of a namespace by the time of their death.

        In at most `max_bars` bars; `within`: only what dies within this time from now is in them.
        """
        request = namespaces_pb2.GetDeathsRequest(name=name, max_bars=max_bars)
        if within is not None:
            request.within.CopyFrom(to_duration(within))
        response = await self._call("namespaces.GetDeaths", request, safe=True)
        return deaths_from(response)

    async def get_hot_keys(self, name: str, *, max_keys: int = 10) -> HotKeys:
        """Names the keys of a namespace that are used most: at most `max_keys`, 1 to 64.

        By a sample of its operations: one of 256, of about the last minute.
        """
        request = namespaces_pb2.GetHotKeysRequest(name=name, max_keys=max_keys)
        response = await self._call("namespaces.GetHotKeys", request, safe=True)
        return from_proto(HotKeys, response)

    async def get_server(self) -> ServerInfo:
        """The server itself: version, age, limits and how far they are used."""
        response = await self._call("server.GetServer", server_pb2.GetServerRequest(), safe=True)
        return server_from(response)

    async def get_cluster(self) -> ClusterInfo:
        """The cluster as the node that calls go to now sees it, whether it owns or not.

        FailedPreconditionError (NO_CLUSTER): the server is no node of a cluster.
        """
        response = await self._call("server.GetCluster", server_pb2.GetClusterRequest(), safe=True)
        return cluster_from(response)

    async def hand_over(self, to: str = "") -> str:
        """Makes the owner hand the ownership over to the standby of this name.

        Without one, to the one that has replayed most. Returns its name once the ownership is
        released; calls and streams then go on there by themselves. FailedPreconditionError:
        NO_CLUSTER, or NO_SUCCESSOR (no such standby has caught up, and the owner goes on).
        """
        request = server_pb2.HandOverRequest(to=to)
        response = await self._call("server.HandOver", request)
        return str(response.to)

    async def who_am_i(self) -> CallerInfo:
        """Who this client is to the server, and what it may do."""
        response = await self._call("server.WhoAmI", server_pb2.WhoAmIRequest(), safe=True)
        return from_proto(CallerInfo, response)

    async def list_connections(self) -> list[ConnectionInfo]:
        """Describes the connections of all clients, the oldest first.

        PermissionDeniedError: with access rules it takes ADMIN on "*".
        """
        connections: list[ConnectionInfo] = []
        async for page in self._pages(
            "server.ListConnections", server_pb2.ListConnectionsRequest()
        ):
            connections += [from_proto(ConnectionInfo, each) for each in page.connections]
        return connections

    async def close_connection(self, id: int) -> None:
        """Closes a connection: its calls end with UNAVAILABLE, and its client may connect again.

        NotFoundError (CONNECTION_NOT_FOUND). Permission as of ``list_connections``.
        """
        await self._call("server.CloseConnection", server_pb2.CloseConnectionRequest(id=id))

    async def list_slow_calls(self) -> SlowCalls:
        """The last 256 calls that took longer than the server's log.slow_call.

        Permission as of ``list_connections``.
        """
        request = server_pb2.ListSlowCallsRequest()
        response = await self._call("server.ListSlowCalls", request, safe=True)
        return from_proto(SlowCalls, response)

    async def is_serving(self) -> bool:
        """Whether the server serves, by grpc.health.v1; needs no right."""
        answer = await self._call("health.Check", b"", safe=True)
        return bool(answer == _SERVING)

    async def backup_journal(self, *, timeout: float | None = None) -> AsyncIterator[BackupPiece]:
        """Iterates over a backup of the server's journal: a tar archive, in pieces.

        Only an iteration that ends without an error has given all of it. The server waits for who
        is slow, but not longer than 30 s for a piece. Never repeated; `timeout`: of the whole, in
        seconds. FailedPreconditionError (NO_JOURNAL), ResourceExhaustedError (MAX_BACKUPS).
        """
        request = server_pb2.BackupJournalRequest()
        give_up_at = None if timeout is None else time.monotonic() + timeout
        failover = self._endpoints.failover()
        begun = False
        address = self._endpoints.current.address
        with call_span("server.BackupJournal", request, self._settings, address) as span:
            while True:
                connection = self._endpoints.current
                try:
                    with connection.errors():
                        call = await self._open(
                            connection, "server.BackupJournal", request, give_up_at, span
                        )
                        try:
                            async for piece in call:
                                begun = True
                                yield BackupPiece(piece.total_bytes, piece.data)
                            return
                        finally:
                            call.cancel()
                except TimecacheError as error:
                    self._endpoints.move_on(connection, error)
                    pause = failover.pause(error)
                    if begun or pause is None:
                        raise
                    span.retry(error, pause, self._endpoints.current.address)
                await sleep(pause)
