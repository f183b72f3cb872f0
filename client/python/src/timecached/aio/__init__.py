"""The client for asyncio: the same calls as in ``timecached``, to be awaited.

::

    async with timecached.aio.Client("127.0.0.1:7171") as client:
        await client.put("session:7", "basket=3", ttl=1800)
        entry = await client.get("session:7")

Make a Client where an event loop runs; it belongs to that loop. A call whose task is cancelled
raises asyncio.CancelledError, and what it did is not known.
"""

from . import recipes
from .client import Client
from .pipeline import Pipeline
from .watcher import ChangeWatcher, Watcher
from .worker import GroupWorker

__all__ = ["ChangeWatcher", "Client", "GroupWorker", "Pipeline", "Watcher", "recipes"]
