"""The steps `recipe` and `do` of the scenarios in tests/conformance/recipes."""

from __future__ import annotations

from typing import Any


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
        if name in ("window", "work_time", "remembered", "chunk", "ttl"):
            return self.runner.argument("ttl", value)
        if name in (
            "member",
            "caller",
            "request",
            "answer",
            "value",
            "key",
            "data",
            "source",
            "root",
        ):
            return self.runner.argument("key", value)
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
