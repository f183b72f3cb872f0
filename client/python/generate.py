"""Writes what is generated in src/timecached, or (--check) says what is not as it would be.

- v1 and testing/v1 from the protos, by grpcio-tools.
- reasons.py from the enum ErrorReason.
- client.py from aio/client.py: the same calls without async and await.

Run it as `client/python/generate`, which has the tools that it needs.
"""

import filecmp
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PROTO = HERE.parent.parent / "proto"
PACKAGE = HERE / "src" / "timecached"
PARTS = ["v1", "testing/v1"]

REASONS_HEAD = '''"""Why a call was refused. Written by client/python/generate from errors.proto."""

import enum


class ErrorReason(str, enum.Enum):
    """The reasons of google.rpc.ErrorInfo: what TimecacheError.reason may be.

    Members are strings: ``error.reason == ErrorReason.KEY_EXISTS``. A later server may have more
    of them; ``reason`` is then a string that is not here.
    """
'''

# From the asynchronous client to the other one; in this order.
TO_SYNC = [
    (r"\bimport asyncio\n", ""),
    (r"\basyncio\.sleep\b", "time.sleep"),
    (r"from \.\.", "from ."),
    (r"\bgrpc\.aio\.Channel\b", "grpc.Channel"),
    (r"\bopen_async\b", "open_sync"),
    (r"\basync (def|for|with) ", r"\1 "),
    (r"\bawait ", ""),
    (r"\bauthorization_async\b", "authorization"),
    (r"Callable\[\[\], str \| Awaitable\[str\]\]", "Callable[[], str]"),
    (r"\bAsync(Connection|Iterator|Iterable|Generator)\b", r"\1"),
    (r"__aenter__", "__enter__"),
    (r"__aexit__", "__exit__"),
    (
        r"Callable\[\[ExpiredEvent\], Awaitable\[Settle \| None\] \| Settle \| None\]",
        "Callable[[ExpiredEvent], Settle | None]",
    ),
]


def protos(out: pathlib.Path) -> None:
    names = [
        str(path.relative_to(PROTO))
        for part in PARTS
        for path in sorted((PROTO / "timecache" / part).glob("*.proto"))
    ]
    subprocess.run(
        [
            sys.executable,
            "-m",
            "grpc_tools.protoc",
            f"-I{PROTO}",
            f"--python_out={out}",
            f"--pyi_out={out}",
            f"--grpc_python_out={out}",
            *names,
        ],
        check=True,
    )
    for part in PARTS:
        directory = out / "timecache" / part
        for path in directory.iterdir():
            path.write_text(in_package(path.read_text()))
        (directory / "__init__.py").write_text('"""Generated from proto/timecache."""\n')


def in_package(text: str) -> str:
    """Generated code as a part of the package: protoc imports by the paths of the protos."""
    text = re.sub(r"^from timecache\.", "from timecached.", text, flags=re.M)
    return re.sub(r"'timecache\.(testing\.)?(v1\.\w+_pb2)'", r"'timecached.\1\2'", text)


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


def sync_client() -> str:
    text = (PACKAGE / "aio" / "client.py").read_text()
    for pattern, replacement in TO_SYNC:
        text = re.sub(pattern, replacement, text)
    head = '"""A client of one server, for asyncio."""\n\n'
    assert text.startswith(head), text[:80]
    return (
        '"""A client of one server."""\n\n'
        "# Written by client/python/generate from aio/client.py.\n\n" + text[len(head) :]
    )


def generate(out: pathlib.Path) -> list[str]:
    """Writes all below `out`, and returns the names of the files."""
    with tempfile.TemporaryDirectory() as scratch:
        protos(pathlib.Path(scratch))
        for part in PARTS:
            shutil.copytree(
                pathlib.Path(scratch) / "timecache" / part, out / part, dirs_exist_ok=True
            )
            made = {path.name for path in (pathlib.Path(scratch) / "timecache" / part).iterdir()}
            for path in (out / part).iterdir():
                if path.name not in made and path.suffix in (".py", ".pyi"):
                    path.unlink()
    (out / "reasons.py").write_text(reasons())
    (out / "client.py").write_text(sync_client())
    written = [out / "client.py", out / "reasons.py"]
    config = ["--quiet", "--no-cache", "--config", HERE / "pyproject.toml"]
    # Imports that only the asynchronous client needs go.
    subprocess.run(["ruff", "check", *config, "--fix", "--select", "I,F401", *written], check=True)
    subprocess.run(["ruff", "format", *config, *written], check=True)
    return [
        "reasons.py",
        "client.py",
        *(f"{part}/{path.name}" for part in PARTS for path in sorted((out / part).glob("*.py*"))),
    ]


def main() -> int:
    if sys.argv[1:] == []:
        generate(PACKAGE)
        return 0
    if sys.argv[1:] != ["--check"]:
        print("usage: generate [--check]", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as scratch:
        out = pathlib.Path(scratch)
        names = generate(out)
        committed = [
            "reasons.py",
            "client.py",
            *(f"{part}/{path.name}" for part in PARTS for path in (PACKAGE / part).glob("*.py*")),
        ]
        stale = sorted(set(names) ^ set(committed))
        stale += [
            name
            for name in names
            if name in committed and not filecmp.cmp(out / name, PACKAGE / name, shallow=False)
        ]
    for name in stale:
        print(
            f"stale: client/python/src/timecached/{name}; run client/python/generate",
            file=sys.stderr,
        )
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
