"""What recipes give, and the keys and ids of both of their forms."""

from __future__ import annotations

import secrets

from .errors import FailedPreconditionError
from .reasons import ErrorReason
from .types import BytesLike, to_bytes

__all__: list[str] = []


def new_id() -> int:
    """A random number of 64 bits, not 0: two are equal with a probability of 2^-64."""
    return secrets.randbelow(2**64 - 1) + 1


def prefix_of(name: BytesLike) -> bytes:
    """What the keys of a structure begin with. For the client itself."""
    return to_bytes(name) + b"/"


def member_of(prefix: bytes, key: BytesLike) -> bytes | None:
    """The member of a key; None if it is not of this structure. For the client itself."""
    data = to_bytes(key)
    return data[len(prefix) :] if data.startswith(prefix) else None


_UNMET = (ErrorReason.KEY_EXISTS, ErrorReason.KEY_NOT_FOUND, ErrorReason.VERSION_MISMATCH)


def require_unmet(error: FailedPreconditionError) -> None:
    """Raises it again, unless a condition of the call did not hold. For the client itself."""
    if error.reason not in _UNMET:
        raise error
