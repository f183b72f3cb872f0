"""Structures of timecached's operations, for asyncio.

Locks, tables, joins: docs/RECIPES.md says what each is for. Other languages' clients have the same
ones, with the same keys and bytes.
"""

from ...recipe_types import *  # noqa: F403
from ...recipe_types import __all__ as _types
from .acker import Acker
from .array import Array
from .calls import answer_once, may_call
from .event_log import EventLog
from .join import Join
from .lock import Lock
from .table import Table

__all__ = [
    "Acker",
    "Array",
    "EventLog",
    "Join",
    "Lock",
    "Table",
    "answer_once",
    "may_call",
    *_types,
]
