"""A store of web sessions that end half an hour after their last request.

usage: sessions.py [ADDRESS]
"""

from __future__ import annotations

import secrets
import sys
from datetime import timedelta
from typing import Any

import timecached

IDLE_TIME = timedelta(minutes=30)


class Sessions:
    """Sessions by their id. Each read renews the session's time, as the namespace is sliding."""

    def __init__(self, client: timecached.Client) -> None:
        self._entries = client.namespace("sessions")
        try:
            client.create_namespace(
                "sessions", timecached.NamespaceOptions(ttl=IDLE_TIME, sliding=True)
            )
        except timecached.AlreadyExistsError:
            pass

    def open(self, data: Any) -> str:
        """The id of a new session."""
        session_id = secrets.token_urlsafe(16)
        self._entries.put(session_id, timecached.encode_json(data))
        return session_id

    def read(self, session_id: str) -> tuple[Any, int] | None:
        """A session's data and version; None: it is over."""
        entry = self._entries.get(session_id)
        return None if entry is None else (entry.json(), entry.version)

    def write(self, session_id: str, data: Any, version: int) -> int | None:
        """The new version; None: another request has changed the session, or it is over."""
        try:
            put = self._entries.put(session_id, timecached.encode_json(data), if_version=version)
            return put.version
        except timecached.FailedPreconditionError:
            return None

    def close(self, session_id: str) -> None:
        """Logs out."""
        self._entries.remove(session_id)

    def ended(self) -> timecached.Watcher:
        """Tells of the sessions that have run out, with their data."""
        return self._entries.watch()


def main() -> None:
    address = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:7171"
    with timecached.Client(address) as client:
        sessions = Sessions(client)
        session_id = sessions.open({"user": "ada", "basket": []})
        read = sessions.read(session_id)
        assert read is not None
        data, version = read
        data["basket"].append("book")
        sessions.write(session_id, data, version)
        print(sessions.read(session_id))
        sessions.close(session_id)


if __name__ == "__main__":
    main()
