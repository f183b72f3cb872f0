"""What a build of the package writes into src/timecached; `python hatch_build.py` does it alone.

- v1 and testing/v1 from the protos, by grpcio-tools.
- reasons.py from the enum ErrorReason.
- The blocking client, with its calls, pipeline, watcher, worker and virtual clock, from those for
  asyncio, without async and await.

A source distribution has all of it, and no protos: from it nothing is written, and nothing needed.
"""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
import tempfile
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

HERE = pathlib.Path(__file__).resolve().parent
PROTO = HERE.parent.parent / "proto"
PROTOS = PROTO / "timecache"
PACKAGE = HERE / "src" / "timecached"
PARTS = ["v1", "testing/v1"]
BLOCKING = {
    "calls.py": "aio/calls.py",
    "admin.py": "aio/admin.py",
    "client.py": "aio/client.py",
    "pipeline.py": "aio/pipeline.py",
    "settles.py": "aio/settles.py",
    "watcher.py": "aio/watcher.py",
    "worker.py": "aio/worker.py",
    "testing/blocking.py": "testing/aio.py",
    **{
        f"recipes/{path.name}": f"aio/recipes/{path.name}"
        for path in sorted((PACKAGE / "aio/recipes").glob("*.py"))
    },
}

REASONS_HEAD = '''"""Why a call was refused. Written by hatch_build.py from errors.proto."""

import enum


class ErrorReason(str, enum.Enum):
    """The reasons of google.rpc.ErrorInfo: what TimecacheError.reason may be.

    Members are strings: ``error.reason == ErrorReason.KEY_EXISTS``. A later server may have more
    of them; ``reason`` is then a string that is not here.
    """
'''

# What stands in the place of what in the blocking form: first what differs in words.
WORDS = {
    "aio/calls.py": {"authorization_async": "authorization"},
    "aio/client.py": {
        "token: str | Callable[[], str | Awaitable[str]] |": "token: str | Callable[[], str] |",
        "open_async": "open_sync",
        "grpc.aio.Channel": "grpc.Channel",
    },
    "aio/pipeline.py": {
        "For one event loop.": """Thread-safe. Callbacks of
    futures run on the pipeline's thread: they must not wait for it. Costs three threads.""",
    },
    "aio/watcher.py": {
        ", as it does if this is cancelled": "",
        "For one task at a time. The": """For one thread at a time; ``close`` may be called by any.
    The""",
        "at most one unread message (about 1 MiB, more only for a larger value).": """at most two
    unread messages (about 1 MiB each, more only for a larger value). Costs a thread.""",
    },
    "aio/worker.py": {
        """Its methods belong to one event loop. The
    handler may be a plain function, too: it must not wait.""": """Thread-safe. The handler is
    called by `concurrency` threads; a handler may call ``request_stop``.""",
        " To cancel this\n        does not stop the worker.": "",
    },
    "aio/recipes/calls.py": {
        "Callable[[], Awaitable[BytesLike]]": "Callable[[], BytesLike]",
    },
    "aio/recipes/lock.py": {
        "nor\n          call this Lock.": """nor
          call this Lock. Costs a thread while a lease is held, which calls it in the end.""",
    },
    "testing/aio.py": {
        "The clock for asyncio.": "The clock for the blocking client.",
        "..aio.client": "..client",
    },
}
CODE = [
    (r", for asyncio\.", "."),
    (r"\basync (def|for|with) ", r"\1 "),
    (r"\bawait ", ""),
    (r"Awaitable\[Settle \| None\] \| ", ""),
    (r"Awaitable\[Any\]", "Any"),
    (r"\bAwaitable, |, Awaitable\b", ""),
    (r"\bAsync(Connection|Iterator|VirtualClock)\b", r"\1"),
    (r"\b__a(enter|exit|iter|next)__\b", r"__\1__"),
    (r"\bStopAsyncIteration\b", "StopIteration"),
]


def blocking(name: str) -> str:
    text = (PACKAGE / name).read_text()
    for words, instead in WORDS.get(name, {}).items():
        if words not in text:
            raise ValueError(f"{name} does not have {words!r}: see hatch_build.py")
        text = text.replace(words, instead)
    # Recipes are one level deeper, in both forms.
    if name.startswith("aio/recipes/"):
        text = text.replace("from ...", "from ..")
    elif name.startswith("aio/"):
        text = text.replace("from ..", "from .")
    for pattern, replacement in CODE:
        text = re.sub(pattern, replacement, text)
    left = re.search(r"(?i)async|await", re.sub(r'"""(.|\n)*?"""', "", text))
    if left:
        raise ValueError(f"{name}: the blocking form would have {left[0]!r}")
    return f"# Written by hatch_build.py from {name}.\n{text}"


def reasons() -> str:
    text = (PROTO / "timecache/v1/errors.proto").read_text()
    body = re.search(r"^enum ErrorReason {\n(.*?)^}", text, re.M | re.S)
    assert body
    lines = []
    for line in body[1].splitlines():
        value = re.fullmatch(r"  ([A-Z_]+) = \d+;", line)
        comment = re.fullmatch(r"  //( .*)", line)
        if value and value[1] != "ERROR_REASON_UNSPECIFIED":
            lines.append(f'    {value[1]} = "{value[1]}"')
        elif comment and comment[1] != " Not a reason.":
            lines.append(f"    #{comment[1]}")
        elif not line:
            lines.append("")
    return REASONS_HEAD + re.sub(r"\n{3,}", "\n\n", "\n".join(["", *lines])).rstrip() + "\n"


def stubs() -> dict[str, str]:
    names = [
        str(path.relative_to(PROTO))
        for part in PARTS
        for path in sorted((PROTOS / part).glob("*.proto"))
    ]
    written = {}
    with tempfile.TemporaryDirectory() as out:
        outputs = [f"--{kind}_out={out}" for kind in ("python", "pyi", "grpc_python")]
        protoc = [sys.executable, "-m", "grpc_tools.protoc", f"-I{PROTO}"]
        subprocess.run([*protoc, *outputs, *names], check=True)
        for part in PARTS:
            written[f"{part}/__init__.py"] = '"""Generated from proto/timecache."""\n'
            for path in (pathlib.Path(out) / "timecache" / part).iterdir():
                written[f"{part}/{path.name}"] = in_package(path.read_text())
    return written


def in_package(text: str) -> str:
    """Generated code as a part of the package: protoc imports by the paths of the protos."""
    text = re.sub(r"^from timecache\.", "from timecached.", text, flags=re.M)
    return re.sub(r"'timecache\.(testing\.)?(v1\.\w+_pb2)'", r"'timecached.\1\2'", text)


def generate() -> None:
    written = {
        **stubs(),
        "reasons.py": reasons(),
        **{name: blocking(source) for name, source in BLOCKING.items()},
    }
    for part in PARTS:
        for path in (PACKAGE / part).glob("*.py*"):
            if f"{part}/{path.name}" not in written:
                path.unlink()
    for name, text in written.items():
        path = PACKAGE / name
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


class Hook(BuildHookInterface):
    """Found by hatchling."""

    def dependencies(self) -> list[str]:
        """The one of requirements-dev.txt, where something is generated."""
        if not PROTOS.exists():
            return []
        lines = (HERE / "requirements-dev.txt").read_text().splitlines()
        return [line for line in lines if line.startswith("grpcio-tools==")]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Before each build, an editable one, too."""
        if PROTOS.exists():
            generate()


if __name__ == "__main__":
    generate()
