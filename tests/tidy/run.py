#!/usr/bin/env python3
"""The checks of .clang-tidy over all sources of a build.

run.py BUILD ROOT [PATH...] prints what is wrong, with the sources at or below these
paths, and exits 1 if something is. ./dev tidy calls it.

clang-tidy itself looks at each header of gRPC again with each check, which takes
twenty seconds a source. clangd runs the same checks over the source's own lines
alone, in two (but not the static analyzer's: the compilers' warnings and the
sanitizers are there for those). It sees each source without the headers that the build
has parsed for it, so that an include that is missing is found, too. What passed once is
remembered by its content, in $XDG_CACHE_HOME/timecached/tidy, and not looked at again.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

# What CMake adds for precompiled headers.
PRECOMPILED = re.compile(r" -Winvalid-pch| -include \S+/cmake_pch\.hxx")
# Of a source that CMake makes of several.
UNITY = re.compile(r"/Unity/unity_\d+_cxx\.cxx$")
INCLUDED = re.compile(r'^#include "(.*)"$', re.M)
DIAGNOSTIC = re.compile(r"^[EW]\[[\d:.]+\] \[([\w.,-]+)\] Line (\d+): (.*)$", re.M)


def headers_of(build):
    """What each object was compiled from: {object: [file]}, as ninja knows it."""
    text = subprocess.run(["ninja", "-C", build, "-t", "deps"], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    found, current = {}, None
    for line in text.splitlines():
        if line.startswith("    "):
            found[current].append(os.path.normpath(os.path.join(build, line.strip())))
        elif ": #deps" in line:
            current = line.partition(":")[0]
            found[current] = []
    return found


def own_sources(entries):
    """Each source by itself, with the command and the object of what it is compiled in."""
    for entry in entries:
        if not UNITY.search(entry["file"]):
            yield entry
            continue
        for source in INCLUDED.findall(pathlib.Path(entry["file"]).read_text("utf-8")):
            command = entry["command"].replace(f" -c {entry['file']}", f" -c {source}")
            yield entry | {"file": source, "command": command}


def is_below(file, paths):
    return any(os.path.commonpath([file, path]) == os.path.normpath(path) for path in paths)


class Tidy:
    # `commands` is the directory of a compile_commands.json.
    def __init__(self, commands, root):
        self.commands, self.root = commands, root
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        self.passed = pathlib.Path(cache, "timecached/tidy")
        self.passed.mkdir(parents=True, exist_ok=True)
        self.hashes = {}
        version = subprocess.run(["clangd", "--version"], check=True,
                                 stdout=subprocess.PIPE, text=True).stdout
        self.common = version + pathlib.Path(root, ".clang-tidy").read_text("utf-8")

    def hash_of(self, path):
        if path not in self.hashes:
            self.hashes[path] = hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
        return self.hashes[path]

    def key(self, source, command, dependencies):
        """By what the checks see, wherever the checkout is."""
        digest = hashlib.sha256(self.common.encode())
        digest.update(command.replace(self.root, "").encode())
        for path in sorted({source, *dependencies}):
            if path.startswith(self.root + os.sep):
                digest.update(f"{path[len(self.root):]} {self.hash_of(path)}\n".encode())
        return digest.hexdigest()

    def check(self, source, command, dependencies):
        """What is wrong with a source, as lines of text."""
        stamp = self.passed / self.key(source, command, dependencies)
        if stamp.exists():
            return []
        done = subprocess.run(
            ["clangd", f"--check={source}", "--check-lines=1-1", "--log=error",
             f"--compile-commands-dir={self.commands}", "--enable-config=false"],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        name = os.path.relpath(source, self.root)
        wrong = [f"{name}:{line}: {text} [{check}]"
                 for check, line, text in DIAGNOSTIC.findall(done.stderr)]
        if not wrong and done.returncode != 0:
            wrong = [f"{name}: clangd failed:\n{done.stderr}"]
        if not wrong:
            stamp.touch()
        return wrong


def main(build, root, *only):
    build, root = os.path.realpath(build), os.path.realpath(root)
    built = pathlib.Path(build, "compile_commands.json").read_text("utf-8")
    entries = [entry | {"command": PRECOMPILED.sub("", entry["command"])}
               for entry in own_sources(json.loads(built))]
    plain = pathlib.Path(build, "tidy/compile_commands.json")
    plain.parent.mkdir(exist_ok=True)
    plain.write_text(json.dumps(entries), "utf-8")
    commands = {entry["file"]: entry for entry in entries}
    dependencies = headers_of(build)
    sources = sorted(file for file in commands if not file.startswith(build + os.sep)
                     and (not only or is_below(os.path.relpath(file, root), only)))
    if not sources:
        sys.exit(f"tidy: no source at or below {' '.join(only)}")
    tidy = Tidy(str(plain.parent), root)
    wrong = 0
    jobs = int(os.environ.get("JOBS") or os.cpu_count())
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        def check(source):
            entry = commands[source]
            output = entry["output"] if "output" in entry else re.search(
                r" -o (\S+)", entry["command"])[1]
            return tidy.check(source, entry["command"], dependencies.get(output, []))
        for done, lines in enumerate(pool.map(check, sources), 1):
            for line in lines:
                print(line, flush=True)
            wrong += len(lines)
            if done % 50 == 0 or done == len(sources):
                print(f"tidy: {done} of {len(sources)} sources", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
