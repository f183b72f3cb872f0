"""A client of timecached: state that expires on schedule, and is streamed to subscribers.

::

    with timecached.Client("127.0.0.1:7171") as client:
        client.put("session:7", "basket=3", ttl=1800)
        entry = client.get("session:7")

``timecached.aio`` has the same for asyncio, ``timecached.recipes`` locks, tables and joins,
``timecached.testing`` the clock of a server that was started with --virtual-clock,
``timecached.v1`` the generated messages and stubs.
"""

from . import aio, errors, recipes, types
from .admin_types import (
    BackupPiece,
    CheckpointState,
    ClusterInfo,
    ClusterNode,
    DeathBar,
    DeathsAhead,
    Durability,
    Group,
    GroupOptions,
    GroupStatistics,
    JournalStatus,
    LimitPolicy,
    LimitUse,
    MemoryShares,
    Namespace,
    NamespaceOptions,
    NamespaceStatistics,
    NodeRole,
    RestartPolicy,
    ServerInfo,
    TopicSetting,
)
from .client import Client
from .errors import *  # noqa: F403
from .operation import MAX_OPERATIONS, MAX_REQUEST_BYTES, Operation
from .pipeline import Pipeline
from .reasons import ErrorReason
from .types import (
    Ack,
    AppendResult,
    BytesLike,
    CombineResult,
    DeadLetter,
    DeadLetterReason,
    Duration,
    Entry,
    ExpiredEvent,
    ExpiryCause,
    Extend,
    GatheredParts,
    GatherResult,
    Nack,
    Part,
    PutBack,
    PutResult,
    RemoveResult,
    RetryPolicy,
    Settle,
    Settlement,
    SizeResult,
    Terminate,
    WatchBatch,
    decode_dead_letter,
    encode_json,
)
from .watcher import Watcher
from .worker import GroupWorker
from .working import WorkerCounters

__version__ = "0.1.0"

__all__ = [
    "MAX_OPERATIONS",
    "MAX_REQUEST_BYTES",
    "Ack",
    "AppendResult",
    "BackupPiece",
    "BytesLike",
    "Client",
    "CheckpointState",
    "ClusterInfo",
    "ClusterNode",
    "CombineResult",
    "DeadLetter",
    "DeadLetterReason",
    "DeathBar",
    "DeathsAhead",
    "Durability",
    "Duration",
    "Entry",
    "ErrorReason",
    "ExpiredEvent",
    "ExpiryCause",
    "Extend",
    "GatherResult",
    "GatheredParts",
    "Group",
    "GroupOptions",
    "GroupStatistics",
    "GroupWorker",
    "JournalStatus",
    "LimitPolicy",
    "LimitUse",
    "MemoryShares",
    "Nack",
    "Namespace",
    "NamespaceOptions",
    "NamespaceStatistics",
    "NodeRole",
    "Operation",
    "Part",
    "Pipeline",
    "PutBack",
    "PutResult",
    "RemoveResult",
    "RestartPolicy",
    "RetryPolicy",
    "ServerInfo",
    "Settle",
    "Settlement",
    "SizeResult",
    "Terminate",
    "TopicSetting",
    "WatchBatch",
    "Watcher",
    "WorkerCounters",
    "aio",
    "decode_dead_letter",
    "encode_json",
    "errors",
    "recipes",
    "types",
    *errors.__all__,
]
