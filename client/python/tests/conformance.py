"""Runs the scenarios of tests/conformance with this client: README.md there has their format.

usage: conformance.py [--aio] [--unary] [NAME...]

--unary: each call is an RPC of its own.
"""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import inspect
import json
import os
import pathlib
import sys
import threading
import time
from datetime import datetime, timedelta
from typing import Any

from recipe_steps import Recipes
from server import Server

import timecached
from timecached import Operation, Settlement, testing

DIRECTORY = pathlib.Path(
    os.environ.get("CONFORMANCE", pathlib.Path(__file__).parents[3] / "tests" / "conformance")
)
TIMEOUT = 60.0
ENUMS: dict[str, type[enum.Enum]] = {
    "limit_policy": timecached.LimitPolicy,
    "durability": timecached.Durability,
    "restart_policy": timecached.RestartPolicy,
}
DURATIONS = {
    "ttl", "max_ttl", "event_retention", "unused_group_ttl", "ack_timeout", "unused_ttl", "delay",
    "heartbeat_interval", "lead_time", "retry_delay", "max_retry_delay", "max_life", "within",
    "remember", "idempotency_window", "change_retention", "wait",
}  # fmt: skip
BYTES = {
    "key", "value", "part", "key_prefix", "idempotency_id", "delivery_token", "resume_token",
}  # fmt: skip
FIELDS = dataclasses.fields(timecached.ExpiredEvent)
PLACES = {"create_group": ("start",), "seek_group": ("position",)}
NUMBERS = {"if_version", "add", "xor", "initial"}


class Mismatch(Exception):
    pass


def check(condition: object, what: str) -> None:
    if not condition:
        raise Mismatch(what)


def seconds(text: str) -> timedelta:
    check(text.endswith("s"), f"{text!r} is no duration")
    return timedelta(microseconds=round(float(text[:-1]) * 1e6))


def data(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if set(value) == {"hex"}:
        return bytes.fromhex(value["hex"])
    check(set(value) == {"repeat", "times"}, f"{value!r} are no bytes")
    return str(value["repeat"]).encode() * int(value["times"])


class Runner:
    def __init__(self, aio: bool, batching: bool) -> None:
        self.server = Server()
        self.batching = batching
        self.loop = asyncio.new_event_loop() if aio else None
        self.module: Any = timecached.aio if aio else timecached
        self.client = self.wait(self.connect())
        clock: Any = testing.AsyncVirtualClock if aio else testing.VirtualClock
        self.clock = clock(self.client)

    def connect(self) -> Any:
        if self.loop is None:
            return self.module.Client(self.server.address, batching=self.batching)

        async def connect() -> Any:
            return self.module.Client(self.server.address, batching=self.batching)

        return connect()

    def wait(self, value: Any) -> Any:
        """What a call of either client comes to."""
        if self.loop is None:
            return value
        if inspect.isasyncgen(value):

            async def collect() -> list[Any]:
                return [item async for item in value]

            return self.loop.run_until_complete(collect())
        return self.loop.run_until_complete(value) if inspect.isawaitable(value) else value

    def sleep(self, pause: float) -> None:
        self.wait(asyncio.sleep(pause)) if self.loop else time.sleep(pause)

    def close(self) -> None:
        self.wait(self.client.close())
        self.server.close()

    def run(self, scenario: dict[str, Any]) -> None:
        unknown = set(scenario) - {"name", "about", "namespaces", "steps"}
        check(not unknown, f"unknown keys {unknown}")
        now = self.wait(self.clock.now())
        hour = timedelta(hours=1)
        epoch = datetime.fromtimestamp(0, now.tzinfo)
        self.start = self.wait(self.clock.advance_to(epoch + -(-(now - epoch) // hour) * hour))
        self.now = self.start
        self.saved: dict[str, Any] = {}
        self.open: dict[str, Watch | Worker] = {}
        self.recipes = Recipes(self)
        namespaces = scenario.get("namespaces", {"main": {}})
        for name, options in namespaces.items():
            self.delete(name)
            self.wait(self.client.create_namespace(name, self.options(options, "Namespace")))
        try:
            for number, step in enumerate(scenario["steps"]):
                try:
                    self.step(step)
                except (Mismatch, timecached.TimecacheError, TimeoutError) as error:
                    raise Mismatch(f"step {number}: {error!r}\n    {json.dumps(step)}") from error
        finally:
            for name in list(self.open):
                self.close_one(name)
            for name in namespaces:
                self.delete(name)

    def delete(self, name: str) -> None:
        try:
            self.wait(self.client.delete_namespace(name))
        except timecached.NotFoundError:
            pass

    def options(self, values: dict[str, Any], kind: str) -> Any:
        cls: Any = getattr(timecached, f"{kind}Options")
        return cls(**{name: self.argument(name, value) for name, value in values.items()})

    def argument(self, name: str, value: Any) -> Any:
        if isinstance(value, dict) and set(value) == {"var"}:
            return self.saved[value["var"]]
        if isinstance(value, dict) and set(value) == {"at"}:
            return self.start + seconds(value["at"])
        if name in ENUMS:
            return ENUMS[name][value]
        if name in DURATIONS:
            return seconds(value)
        if name in BYTES:
            return data(value)
        if name == "expected_names":
            return [data(item) for item in value]
        if name == "retry_delays":
            return tuple(map(seconds, value))
        return int(value) if name in NUMBERS else value

    def arguments(self, args: dict[str, Any]) -> dict[str, Any]:
        values = {name: self.argument(name, value) for name, value in args.items()}
        condition = values.pop("condition", None)
        if condition is not None:
            values[condition.lower()] = True
        if values.pop("start", "NOW") == "EARLIEST":
            values["from_earliest"] = True
        return values

    def position(self, value: dict[str, Any]) -> timecached.GroupPosition:
        ((kind, at),) = value.items() or (("start", "NOW"),)
        if kind == "start":
            return timecached.WatchStart[at]
        check(kind in ("time", "resume_token"), f"{value!r} is no position")
        where: timecached.GroupPosition = self.argument(kind, at)
        return where

    # --- steps ---

    def step(self, step: dict[str, Any]) -> None:
        kinds = {
            "call": ("args", "expect", "error", "save", "eventually"),
            "advance": (),
            "watch": ("args", "error"),
            "watch_expiring": ("args", "error"),
            "watch_changes": ("args", "error"),
            "member": ("args",),
            "worker": ("args", "handler"),
            "events": ("expect", "lost", "save", "error", "delivered"),
            "handled": ("expect",),
            "close": (),
            "recipe": ("as", "args"),
            "do": ("args", "expect", "error", "save"),
        }
        kind, *others = [kind for kind in kinds if kind in step]
        check(not others and set(step) <= {kind, *kinds[kind]}, f"unknown keys in {set(step)}")
        getattr(self, f"do_{kind}")(step)

    def do_advance(self, step: dict[str, Any]) -> None:
        self.now = self.wait(self.clock.advance(seconds(step["advance"])))

    def do_call(self, step: dict[str, Any]) -> None:
        until = time.monotonic() + TIMEOUT
        while True:
            try:
                answer = self.call(step["call"], dict(step.get("args", {})))
            except timecached.TimecacheError as error:
                if "error" not in step:
                    raise
                self.match_error(error, step["error"])
                return
            check("error" not in step, f"succeeded with {answer!r}")
            try:
                self.match(answer, step.get("expect", {}), "answer")
                break
            except Mismatch:
                if not step.get("eventually") or time.monotonic() >= until:
                    raise
                self.sleep(0.01)
        self.save(answer, step)

    def save(self, answer: Any, step: dict[str, Any]) -> None:
        for name, path in step.get("save", {}).items():
            self.saved[name] = look_up(answer, path)

    def call(self, name: str, args: dict[str, Any]) -> Any:
        client = self.client.namespace(args.pop("namespace", "main"))
        if name in ("execute", "pipeline"):
            operations = [self.operation(item) for item in args.pop("operations")]
            check(not set(args) - ({"atomic"} if name == "execute" else set()), f"unknown {args}")
            results = getattr(self, name)(client, [op for _, op in operations], **args)
            return {
                "results": [
                    {"error": result}
                    if isinstance(result, timecached.TimecacheError)
                    else {kind: answer_of(kind, result)}
                    for (kind, _), result in zip(operations, results, strict=True)
                ]
            }
        if name == "settle":
            settlements = [self.settlement(item) for item in args["settlements"]]
            results = self.wait(client.settle(args["group"], settlements))
            return {
                "results": [
                    {"version": result, "error": None}
                    if isinstance(result, int)
                    else {"error": result}
                    for result in results
                ]
            }
        if name == "dead_letters":
            return {"letters": list(map(letter_of, self.wait(client.scan(**self.arguments(args)))))}
        if name == "scan":
            return {"entries": list(self.wait(client.scan(**self.arguments(args))))}
        options = args.pop("options", {})
        places = {key: args.pop(key, {}) for key in PLACES.get(name, ())}
        values = self.arguments(args)
        for key, place in places.items():
            values[key] = self.position(place)
        if name == "list_unsettled":
            return {"events": list(self.wait(client.list_unsettled(**values)))}
        if name.endswith(("_group", "_namespace")):
            kind = name.split("_")[1].capitalize()
            if name.startswith(("create", "update")):
                values["options"] = self.options(options, kind)
                options = {}
        check(not options, "no call with options")
        return answer_of(name, self.wait(getattr(client, name)(**values)))

    def operation(self, item: dict[str, Any]) -> tuple[str, Operation[Any]]:
        ((kind, args),) = item.items()
        return kind, getattr(Operation, kind)(**self.arguments(args))

    def execute(
        self, client: Any, operations: list[Operation[Any]], atomic: bool = False
    ) -> list[Any]:
        return list(self.wait(client.execute(operations, atomic=atomic)))

    def pipeline(self, client: Any, operations: list[Operation[Any]]) -> list[Any]:
        pipeline = client.pipeline()
        futures = [self.wait(pipeline.add(operation)) for operation in operations]
        self.wait(pipeline.close())
        return [future.exception() or future.result() for future in futures]

    def settlement(self, item: dict[str, Any]) -> Settlement:
        values = {name: self.argument(name, value) for name, value in item.items()}
        return Settlement(values.pop("delivery_token"), self.how(values))

    def how(self, action: dict[str, Any]) -> Any:
        ((kind, args),) = action.items()
        values = {name: self.argument(name, value) for name, value in args.items()}
        kinds: Any = {
            "ack": timecached.Ack,
            "nack": timecached.Nack,
            "put_back": timecached.PutBack,
            "extend": timecached.Extend,
            "terminate": timecached.Terminate,
        }
        return kinds[kind](**values)

    def do_watch(self, step: dict[str, Any], method: str = "watch") -> None:
        args = dict(step.get("args", {}))
        tokens = {
            name: self.argument("key", token)
            for name, token in args.pop("resume_tokens", {}).items()
        }
        self.begin(step, method, args, resume_tokens=tokens)

    def do_watch_changes(self, step: dict[str, Any]) -> None:
        self.do_watch(step, "watch_changes")

    def do_watch_expiring(self, step: dict[str, Any]) -> None:
        self.begin(step, "watch_expiring", dict(step.get("args", {})))

    def do_member(self, step: dict[str, Any]) -> None:
        self.begin(step, "consume", dict(step.get("args", {})))

    def begin(self, step: dict[str, Any], method: str, args: dict[str, Any], **more: Any) -> None:
        args.setdefault("namespaces", ["main"])
        watcher = getattr(self.client, method)(**self.arguments(args), **more)
        watch = Watch(self, watcher, args["namespaces"], method)
        name = step["member" if method == "consume" else method]
        self.open[name] = watch
        try:
            watch.read_until(lambda: set(watch.watermarks) == set(args["namespaces"]))
        except timecached.TimecacheError as error:
            if "error" not in step:
                raise
            self.match_error(error, step["error"])
        else:
            check("error" not in step, "the watch stands")

    def do_events(self, step: dict[str, Any]) -> None:
        watch = self.open[step["events"]]
        assert isinstance(watch, Watch)
        expected = step.get("expect", [])
        try:
            if watch.method == "consume":
                delivered = self.argument("", step.get("delivered"))
                watch.read_until(
                    lambda: (
                        len(watch.events) >= len(list_of(expected))
                        and (delivered is None or watch.is_delivered(delivered))
                    )
                )
            else:
                check("delivered" not in step, "only of a member")
                watch.read_until(lambda: min(watch.watermarks.values()) >= self.now)
        except timecached.TimecacheError as error:
            if "error" not in step:
                raise
            self.match_error(error, step["error"])
            return
        check("error" not in step, "the watch goes on")
        events = [event for name in watch.namespaces for at, event in watch.events if at == name]
        self.match(events, expected, "events")
        self.match(watch.lost, step.get("lost", 0), "lost")
        answer = {
            "events": events,
            "resume_token": watch.tokens.get(watch.namespaces[0]),
            "resume_tokens": watch.tokens,
        }
        self.save(answer, step)
        watch.events, watch.lost = [], 0

    def do_worker(self, step: dict[str, Any]) -> None:
        args = dict(step.get("args", {}))
        client = self.client.namespace(args.pop("namespace", "main"))
        worker = Worker(self, step.get("handler", {}))
        worker.worker = client.worker(handler=worker.handler(), **self.arguments(args))
        self.wait(start(worker.worker))
        self.open[step["worker"]] = worker
        get = {
            "name": args["group"],
            "include_statistics": True,
            "namespace": client.namespace_name,
        }
        until = time.monotonic() + TIMEOUT
        while True:
            try:
                if self.call("get_group", dict(get)).statistics.members:
                    return
            except timecached.NotFoundError:
                pass
            check(time.monotonic() < until, "the group has no member")
            self.sleep(0.01)

    def do_handled(self, step: dict[str, Any]) -> None:
        worker = self.open[step["handled"]]
        assert isinstance(worker, Worker)
        until = time.monotonic() + TIMEOUT
        while len(worker.handled) < len(list_of(step["expect"])) and time.monotonic() < until:
            self.sleep(0.002)
        handled, worker.handled = worker.handled, []
        self.match(handled, step["expect"], "handled")

    def do_recipe(self, step: dict[str, Any]) -> None:
        self.recipes.make(step["recipe"], step["as"], dict(step.get("args", {})))

    def do_do(self, step: dict[str, Any]) -> None:
        try:
            answer = self.recipes.do(step["do"], dict(step.get("args", {})))
        except timecached.TimecacheError as error:
            if "error" not in step:
                raise
            self.match_error(error, step["error"])
            return
        check("error" not in step, f"succeeded with {answer!r}")
        self.match(answer, step.get("expect", {}), "answer")
        self.save(answer, step)

    def take_events(self, name: str) -> list[timecached.ExpiredEvent]:
        """What a watch has got up to now."""
        watch = self.open[name]
        assert isinstance(watch, Watch)
        watch.read_until(lambda: min(watch.watermarks.values()) >= self.now)
        events, watch.events = watch.events, []
        return [event for _, event in events]

    def do_close(self, step: dict[str, Any]) -> None:
        self.close_one(step["close"])

    def close_one(self, name: str) -> None:
        opened = self.open.pop(name)
        if isinstance(opened, Watch):
            opened.watcher.close()
        else:
            self.wait(opened.worker.stop())

    # --- comparing ---

    def match_error(self, error: timecached.TimecacheError | None, expected: Any) -> None:
        check(error is not None, f"no error, expected {expected}")
        assert error is not None
        answer = {
            "code": error.code.name,
            "reason": error.reason,
            "field": error.field,
            "metadata": dict(error.metadata),
            "retry_delay": error.retry_delay,
        }
        check(set(expected) <= set(answer), f"unknown keys in {expected}")
        self.match(answer, expected, "error")

    def match(self, got: Any, expected: Any, where: str) -> None:
        if isinstance(expected, dict):
            if set(expected) == {"var"}:
                expected = self.saved[expected["var"]]
                return check(got == expected, f"{where} is {got!r}, not {expected!r}")
            if set(expected) == {"any"}:
                return check(got, f"{where} is {got!r}")
            if set(expected) == {"gt"}:
                bound = self.argument("", expected["gt"])
                return check(got > bound, f"{where} is {got!r}, not above {bound!r}")
            if set(expected) == {"at"}:
                moment = self.start + seconds(expected["at"])
                return check(got == moment, f"{where} is {got!r}, not {moment!r}")
            if set(expected) in ({"hex"}, {"repeat", "times"}):
                return check(got == data(expected), f"{where} is {got!r:.200}")
            if set(expected) == {"begins", "size"}:
                fits = got.startswith(data(expected["begins"])) and len(got) == expected["size"]
                return check(fits, f"{where} is {got!r:.200}")
            if set(expected) == {"unordered"}:
                return self.match_unordered(got, expected["unordered"], where)
            if isinstance(got, timecached.TimecacheError):
                return self.match_error(got, expected)
            check(got is not None, f"{where} is not set")
            for name, value in expected.items():
                self.match(field_of(got, name), value, f"{where}.{name}")
            return None
        if isinstance(expected, list):
            got = list(got)
            check(len(got) == len(expected), f"{where} are {len(got)}: {got!r:.500}")
            for number, value in enumerate(expected):
                self.match(got[number], value, f"{where}[{number}]")
            return None
        if expected is None:
            return check(got is None or got in (0, "", b"", ()), f"{where} is set: {got!r}")
        if isinstance(got, bytes):
            expected = data(expected)
        elif isinstance(got, timedelta):
            expected = seconds(expected)
        elif isinstance(got, enum.Enum):
            expected = type(got)[expected]
        elif isinstance(got, int) and isinstance(expected, str):
            expected = int(expected)
        elif got is None and expected in (0, False, ""):
            return None
        return check(got == expected, f"{where} is {got!r}, not {expected!r}")

    def match_unordered(self, got: Any, expected: list[Any], where: str) -> None:
        left = list(got)
        check(len(left) == len(expected), f"{where} are {len(left)}: {left!r:.500}")
        for value in expected:
            for item in left:
                try:
                    self.match(item, value, where)
                except Mismatch:
                    continue
                left.remove(item)
                break
            else:
                raise Mismatch(f"{where}: none is {value!r} among {left!r:.500}")


class Watch:
    def __init__(self, runner: Runner, watcher: Any, namespaces: list[str], method: str) -> None:
        self.runner = runner
        self.watcher = watcher
        self.namespaces = namespaces
        self.method = method
        self.watermarks: dict[str, datetime] = {}
        self.tokens: dict[str, bytes] = {}
        self.delivered: dict[str, datetime] = {}
        self.events: list[tuple[str, Any]] = []  # Each with its namespace.
        self.told: set[Any] = set()
        self.lost = 0

    def read_until(self, is_enough: Any) -> None:
        while not is_enough():
            batch = self.runner.wait(self.watcher.next(timeout=TIMEOUT))
            self.watermarks[batch.namespace] = batch.watermark
            self.tokens[batch.namespace] = batch.resume_token
            self.lost += batch.lost
            if isinstance(batch, timecached.ChangeBatch):
                self.events += [(batch.namespace, change) for change in batch.changes]
                continue
            if batch.delivered_watermark is not None:
                self.delivered[batch.namespace] = batch.delivered_watermark
            for event in batch.events:
                told = (event.namespace, event.key, event.version, event.deadline)
                if self.method == "watch_expiring" and told in self.told:
                    continue
                self.told.add(told)
                self.events.append((event.namespace, event))

    def is_delivered(self, moment: datetime) -> bool:
        return all(
            name in self.delivered and self.delivered[name] >= moment for name in self.namespaces
        )


class Worker:
    worker: Any

    def __init__(self, runner: Runner, script: dict[str, list[dict[str, Any]]]) -> None:
        self.runner = runner
        self.script = {key.encode(): list(actions) for key, actions in script.items()}
        self.handled: list[timecached.ExpiredEvent] = []
        self.lock = threading.Lock()

    def handler(self) -> Any:
        if self.runner.loop is None:
            return self.handle

        async def handle(event: timecached.ExpiredEvent) -> timecached.Settle:
            return self.handle(event)

        return handle

    def handle(self, event: timecached.ExpiredEvent) -> timecached.Settle:
        with self.lock:
            self.handled.append(event)
            actions = self.script.get(event.key, [{"ack": {}}])
            action = actions.pop(0) if len(actions) > 1 else actions[0]
        if "throw" in action:
            raise RuntimeError(action["throw"])
        how: timecached.Settle = self.runner.how(action)
        return how


async def start_async(worker: Any) -> None:
    worker.start()


def start(worker: Any) -> Any:
    if isinstance(worker, timecached.GroupWorker):
        return worker.start()
    return start_async(worker)


def list_of(expected: Any) -> list[Any]:
    return list(expected["unordered"] if isinstance(expected, dict) else expected)


def answer_of(call: str, result: Any) -> Any:
    """The answer by the names of the proto."""
    if call == "get":
        return {"entry": result}
    if call == "contains":
        return {"contains": result}
    if call == "touch":
        return {"touched": result is not None, "version": result or 0}
    if call == "hand_over":
        return {"to": result}
    if call == "rotate_namespace":
        return {"entries": result}
    if call in ("list_groups", "list_namespaces", "list_connections", "list_members"):
        return {call[len("list_") :]: result}
    return result if result is not None else {}


def letter_of(entry: timecached.Entry) -> dict[str, Any]:
    """As the event, with its dead_letter."""
    letter = timecached.decode_dead_letter(entry)
    fields = {field.name: getattr(letter.event, field.name) for field in FIELDS}
    return {**fields, "dead_letter": letter}


def field_of(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        check(name in value, f"no {name} in {value!r}")
        return value[name]
    check(
        name in {field.name for field in dataclasses.fields(value)},
        f"{type(value).__name__} has no {name}",
    )
    return getattr(value, name)


def look_up(answer: Any, path: str) -> Any:
    for name in path.replace("[", ".[").split("."):
        answer = answer[int(name[1:-1])] if name.startswith("[") else field_of(answer, name)
    return answer


def main() -> int:
    names = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    runner = Runner(aio="--aio" in sys.argv, batching="--unary" not in sys.argv)
    passed = failed = 0
    try:
        for path in sorted([*DIRECTORY.glob("*.json"), *DIRECTORY.glob("recipes/*.json")]):
            for scenario in json.loads(path.read_text())["scenarios"]:
                if names and scenario["name"] not in names:
                    continue
                try:
                    runner.run(scenario)
                    passed += 1
                except Exception as error:
                    failed += 1
                    print(f"{path.name}: {scenario['name']}: {error}")
    finally:
        runner.close()
    print(f"conformance: {passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
