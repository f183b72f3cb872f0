"""A rate limit and an idempotency key, for asyncio."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import grpc

from ...errors import AbortedError, FailedPreconditionError
from ...reasons import ErrorReason
from ...types import BytesLike, Duration, to_bytes
from ..client import Client


async def may_call(client: Client, caller: BytesLike, limit: int, window: Duration) -> bool:
    """Whether this caller may call once more: `limit` times in a window, from all clients together.

    The window begins with the caller's first call, and lasts a bucket width of the namespace longer
    at most; a call that is refused does not make it longer. It is the entry calls/CALLER. One round
    trip. A call without an answer may have counted: decide whether to let it pass.
    """
    calls = await client.combine(b"calls/" + to_bytes(caller), add=1, ttl=window)
    return calls.result <= limit


async def answer_once(
    client: Client,
    request: BytesLike,
    work: Callable[[], Awaitable[BytesLike]],
    *,
    work_time: Duration,
    remembered: Duration,
) -> bytes:
    """The answer to a request, which is worked on once, however often it comes.

    Calls `work` for the answer, in the call that comes first; later ones get the same answer for
    as long as it is `remembered`. It is in the entry request/REQUEST. Two round trips.

    - AbortedError: the request is being worked on, now or before a crash less than `work_time`
      ago: try again. A claim without an answer is such a crash, and so is `work` that raises: what
      it raised is raised here.
    - FailedPreconditionError: the work took longer than `work_time`, and may have been done again.
    """
    key = b"request/" + to_bytes(request)
    try:
        claim = await client.put(key, b"", ttl=work_time, if_absent=True)
    except FailedPreconditionError as error:
        if error.reason != ErrorReason.KEY_EXISTS:
            raise
    else:
        answer = to_bytes(await work())
        await client.put(key, b"=" + answer, ttl=remembered, if_version=claim.version)
        return answer
    entry = await client.get(key)
    if entry is None or not entry.value:
        raise AbortedError(
            grpc.StatusCode.ABORTED, "the request is being worked on", maybe_applied=False
        )
    return entry.value[1:]
