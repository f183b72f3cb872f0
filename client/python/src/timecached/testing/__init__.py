"""The clock of a server that was started with --virtual-clock: time stands still until it is told.

::

    clock = timecached.testing.VirtualClock(client)
    client.put("order:17", "42 EUR", ttl=900)
    clock.advance(timedelta(minutes=20))
"""

from .aio import AsyncVirtualClock
from .blocking import VirtualClock

__all__ = ["AsyncVirtualClock", "VirtualClock"]
