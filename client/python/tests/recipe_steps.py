"""The steps `recipe` and `do` of the scenarios in tests/conformance/recipes."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
DURATIONS = {"window", "work_time", "remembered", "chunk", "ttl"}
BYTES = {
    "member", "caller", "request", "answer", "value", "key", "data", "source", "root",
}  # fmt: skip


def micros(time: datetime) -> int:
    return (time - EPOCH) // timedelta(microseconds=1)


class Recipes:
    """The objects that a scenario has made."""

    def __init__(self, runner: Any) -> None:
        self.runner = runner
        self.module: Any = runner.module.recipes
        self.made: dict[str, tuple[str, Any]] = {}

    @property
    def client(self) -> Any:
        return self.runner.client.namespace("main")

    def make(self, kind: str, name: str, args: dict[str, Any]) -> None:
        values = self.arguments(args)
        cls = getattr(self.module, kind.title().replace("_", ""))
        self.made[name] = kind, cls(self.client, **values)

    def do(self, what: str, args: dict[str, Any]) -> dict[str, Any]:
        name, _, method = what.rpartition(".")
        kind, made = self.made[name] if name else ("", None)
        call: Any = getattr(self, f"{kind}_{method}" if name else what)
        values = self.arguments(args)
        answer: dict[str, Any] = call(made, **values) if name else call(**values)
        return answer

    def arguments(self, args: dict[str, Any]) -> dict[str, Any]:
        return {name: self.argument(name, value) for name, value in args.items()}

    def argument(self, name: str, value: Any) -> Any:
        if name in DURATIONS:
            return self.runner.argument("ttl", value)
        if name in BYTES:
            return self.runner.argument("key", value)
        if name in ("sources", "fields"):
            return [self.runner.argument("key", each) for each in value]
        if name == "emitted":
            return [int(each) for each in value]
        if name.endswith("_us"):
            return EPOCH + timedelta(microseconds=int(value))
        return value

    def wait(self, value: Any) -> Any:
        return self.runner.wait(value)

    # --- functions ---

    def may_call(self, caller: bytes, limit: int, window: Any) -> dict[str, Any]:
        return {"allowed": self.wait(self.module.may_call(self.client, caller, limit, window))}

    def answer_once(self, request: bytes, answer: bytes, **times: Any) -> dict[str, Any]:
        calls = 0

        def work() -> bytes:
            nonlocal calls
            calls += 1
            return answer

        async def work_async() -> bytes:
            return work()

        function = work if self.runner.loop is None else work_async
        got = self.wait(self.module.answer_once(self.client, request, function, **times))
        return {"answer": got, "worked": calls == 1}

    def join_id(self, fields: list[bytes]) -> dict[str, Any]:
        return {"id": self.module.join_id(fields)}

    # --- methods ---

    def lock_try_acquire(self, lock: Any) -> dict[str, Any]:
        return {"token": self.wait(lock.try_acquire())}

    def lock_renew(self, lock: Any) -> dict[str, Any]:
        return {"held": self.wait(lock.renew())}

    def lock_release(self, lock: Any) -> dict[str, Any]:
        return {"held": self.wait(lock.release())}

    def table_add(self, table: Any, member: bytes) -> dict[str, Any]:
        return {"new": self.wait(table.add(member))}

    def table_remove(self, table: Any, member: bytes) -> dict[str, Any]:
        return {"removed": self.wait(table.remove(member))}

    def table_contains(self, table: Any, member: bytes) -> dict[str, Any]:
        return {"contains": self.wait(table.contains(member))}

    def table_list(self, table: Any) -> dict[str, Any]:
        return {"members": self.wait(table.members())}

    def table_left(self, table: Any, events: str) -> dict[str, Any]:
        return {"members": self.of_events(events, lambda event: table.member_of(event.key))}

    def of_events(self, watch: str, recipe: Any) -> list[Any]:
        found = map(recipe, self.runner.take_events(watch))
        return [one for one in found if one is not None]

    def array_add(self, array: Any, id: Any, value: bytes) -> dict[str, Any]:
        return {"id": self.wait(array.add(value, id=int(id)))}

    def array_remove(self, array: Any, id: Any) -> dict[str, Any]:
        self.wait(array.remove(int(id)))
        return {}

    def array_compact(self, array: Any) -> dict[str, Any]:
        self.wait(array.compact())
        return {}

    def array_read(self, array: Any) -> Any:
        return self.wait(array.read())

    def join_add(self, join: Any, id: Any, source: bytes, tuple: Any) -> dict[str, Any]:
        id, tuple = (self.runner.argument("key", each) for each in (id, tuple))
        return {"row": self.wait(join.add(id, source, tuple))}

    def join_incomplete(self, join: Any, events: str) -> dict[str, Any]:
        return {"rows": self.of_events(events, join.incomplete)}

    def acker_track(self, acker: Any, root: bytes, emitted: list[int]) -> dict[str, Any]:
        return {"done": self.wait(acker.track(root, emitted))}

    def acker_ack(self, acker: Any, root: bytes, tuple: Any, **more: Any) -> dict[str, Any]:
        return {"done": self.wait(acker.ack(root, int(tuple), **more))}

    def acker_fail(self, acker: Any, root: bytes) -> dict[str, Any]:
        return {"existed": self.wait(acker.fail(root))}

    def acker_failed(self, acker: Any, events: str) -> dict[str, Any]:
        return {"roots": self.of_events(events, acker.failed_root)}

    def event_log_append(self, log: Any, id: Any, time_us: datetime, data: bytes) -> dict[str, Any]:
        return {"id": self.wait(log.append(time_us, data, id=int(id)))}

    def event_log_read(self, log: Any, from_us: datetime, to_us: datetime) -> dict[str, Any]:
        return page_answer(self.wait(log.read(from_us, to_us)))

    def event_log_position_at(self, log: Any, time_us: datetime) -> Any:
        self.position = log.position_at(time_us)
        return self.position

    def event_log_read_new(self, log: Any, now_us: datetime) -> dict[str, Any]:
        page, self.position = self.wait(log.read_new(self.position, now_us))
        return {**page_answer(page), "position": self.position}


def page_answer(page: Any) -> dict[str, Any]:
    events = [
        {"id": event.id, "time_us": micros(event.time), "data": event.data} for event in page.events
    ]
    return {"events": events, "may_have_missed": page.may_have_missed}
