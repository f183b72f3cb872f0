#!/usr/bin/env python3
"""The checks of .clang-tidy over all sources and headers of some builds.

run.py [--apart] [--only PATH]... ROOT BUILD... prints what is wrong, with what is at or
below these paths, and exits 1 if something is. A source that several builds have is
looked at as the first of them compiles it. ./dev tidy calls it.

clang-tidy itself looks at each header of gRPC again with each check, which takes
twenty seconds a source. clangd runs the same checks over a file's own lines alone (but
not the static analyzer's: the compilers' warnings and the sanitizers are there for
those). Most of what it takes is to parse the headers of others, so what the build
compiles as one it gets as one file: its sources, and before them those headers of ours
that no earlier one had. --apart looks at each source by itself, which takes longer and
finds an include that is missing, too; headers are not looked at then.

What passed once is remembered by its content, in $XDG_CACHE_HOME/timecached/tidy, and
not looked at again.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading

# What CMake adds for precompiled headers, for gcc or clang.
PRECOMPILED = re.compile(
    r" -Winvalid-pch|( -Xclang)? -include(-pch)?( -Xclang)? \S+/cmake_pch\.hxx(\.pch)?")
# What says how sources are compiled and looked at; of a proto sources are made.
EVERYBODYS = re.compile(r"^CMakeLists\.txt$|^CMakePresets\.json$|\.clang-tidy$|^tests/tidy/|"
                        r"\.proto$")
# Of a source that CMake makes of several.
UNITY = re.compile(r"/Unity/unity_\d+_cxx\.cxx$")
INCLUDED = re.compile(r'^#include "(.*)"$', re.M)
DIAGNOSTIC = re.compile(r"^[EW]\[[\d:.]+\] \[([\w.,-]+)\] Line (\d+): (.*)$", re.M)
# What clangd says when its checks are done. It goes on with what an editor asks for at each
# word, which takes nearly as long again in the largest files.
CHECKED = "] Testing features at each token"
# One that hangs has found a fault of clangd's.
TIMEOUT_SECONDS = 600


class Unit:
    """Files that are looked at together, with the command that compiles their sources."""

    def __init__(self, entry, sources, dependencies):
        self.entry, self.sources, self.dependencies = entry, sources, dependencies
        self.headers = []

    def files(self):
        return self.headers + self.sources


def dependencies_of(build):
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


def units_of(build):
    """What the build compiles, but for what it generates itself."""
    dependencies = dependencies_of(build)
    for entry in json.loads(pathlib.Path(build, "compile_commands.json").read_text("utf-8")):
        file = entry["file"]
        sources = [file]
        if UNITY.search(file):
            sources = INCLUDED.findall(pathlib.Path(file).read_text("utf-8"))
        sources = [source for source in sources if not source.startswith(build + os.sep)]
        output = re.search(r" -o (\S+)", entry["command"])[1]
        if sources:
            entry["command"] = PRECOMPILED.sub("", entry["command"])
            yield Unit(entry, sources, dependencies.get(output, []))


def give_headers(units, root):
    """Each header goes with its source, or else to the first unit that includes it, behind
    those that it includes itself."""
    given = set()

    def give(header, unit):
        if header in given or not os.path.exists(header):
            return
        given.add(header)
        for name in INCLUDED.findall(pathlib.Path(header).read_text("utf-8")):
            included = os.path.join(root, name)
            if included in wanted:
                give(included, unit)
        unit.headers.append(header)

    own = [{file for file in unit.dependencies
            if file.startswith(root + os.sep) and file.endswith(".h")
            and not file.startswith(os.path.join(root, "build") + os.sep)} for unit in units]
    for unit, wanted in zip(units, own):
        for source in unit.sources:
            header = os.path.splitext(source)[0] + ".h"
            if header in wanted:
                give(header, unit)
    for unit, wanted in zip(units, own):
        for header in sorted(wanted):
            give(header, unit)


def changed_since(commit, root):
    """The files that differ from a commit's; None where all are concerned."""
    def git(*arguments):
        return subprocess.run(["git", "-C", root, *arguments], check=True,
                              stdout=subprocess.PIPE, text=True).stdout.splitlines()

    names = git("diff", "--name-only", commit, "--") + git(
        "ls-files", "--others", "--exclude-standard")
    if any(EVERYBODYS.search(name) for name in names):
        return None
    return {os.path.join(root, name) for name in names}


def is_concerned(unit, changed):
    """Whether what it is made of has changed, or how that is compiled."""
    described = [os.path.dirname(name) for name in changed if name.endswith("/CMakeLists.txt")]
    return not changed.isdisjoint(unit.files() + unit.dependencies) or any(
        is_below(source, described) for source in unit.sources)


def is_below(file, paths):
    return any(os.path.commonpath([file, path]) == os.path.normpath(path) for path in paths)


class Tidy:
    # Files of several are written to `directory`.
    def __init__(self, root, directory):
        self.root, self.directory = root, directory
        directory.mkdir(parents=True, exist_ok=True)
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        self.passed = pathlib.Path(cache, "timecached/tidy")
        self.passed.mkdir(parents=True, exist_ok=True)
        self.hashes = {}
        self.version = subprocess.run(["clangd", "--version"], check=True,
                                      stdout=subprocess.PIPE, text=True).stdout

    def hash_of(self, path):
        if path not in self.hashes:
            self.hashes[path] = hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
        return self.hashes[path]

    def stamp(self, unit):
        """By what the checks see, wherever the checkout is."""
        digest = hashlib.sha256(self.version.encode())
        digest.update(unit.entry["command"].replace(self.root, "").encode())
        others = {*unit.dependencies, *self.configurations(unit)} - {*unit.files()}
        for path in unit.files() + sorted(others):
            # One that is gone since the last build is nobody's.
            if path.startswith(self.root + os.sep) and os.path.exists(path):
                digest.update(f"{path[len(self.root):]} {self.hash_of(path)}\n".encode())
        return self.passed / digest.hexdigest()

    def configurations(self, unit):
        """The files that say which checks apply to it, the nearest first."""
        found = []
        directory = os.path.dirname(unit.files()[0])
        while is_below(directory, [self.root]):
            if os.path.exists(os.path.join(directory, ".clang-tidy")):
                found.append(os.path.join(directory, ".clang-tidy"))
            directory = os.path.dirname(directory)
        return found

    def write(self, name, unit):
        """What clangd is given: the file, and where each of its lines is from."""
        lines, origins = [], []
        for file in unit.files():
            text = pathlib.Path(file).read_text("utf-8").splitlines()
            lines += text
            origins += [(os.path.relpath(file, self.root), number + 1)
                        for number in range(len(text))]
        directory = self.directory / str(name)
        directory.mkdir(exist_ok=True)
        shutil.copyfile(self.configurations(unit)[0], directory / ".clang-tidy")
        joined = directory / "unit.cc"
        joined.write_text("\n".join(lines) + "\n", "utf-8")
        compiled = unit.entry["file"]
        entry = unit.entry | {
            "file": str(joined),
            "command": unit.entry["command"].replace(f" -c {compiled}", f" -c {joined}")}
        (directory / "compile_commands.json").write_text(json.dumps([entry]), "utf-8")
        return joined, origins

    @staticmethod
    def clangd(file):
        """What it says of the file, and whether it has come to the end of its checks."""
        said, is_done = [], False
        with subprocess.Popen(
                ["clangd", f"--check={file}", "--check-lines=1-1", "--log=info",
                 f"--compile-commands-dir={file.parent}", "--enable-config=false"],
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            timer = threading.Timer(TIMEOUT_SECONDS, process.kill)
            timer.start()
            for line in process.stderr:
                said.append(line)
                if CHECKED in line:
                    is_done = True
                    break
            timer.cancel()
            process.kill()
        return "".join(said), is_done

    def check(self, name, unit):
        """What is wrong with a unit, as lines of text."""
        stamp = self.stamp(unit)
        if stamp.exists():
            return []
        file, origins = self.write(name, unit)
        said, is_done = self.clangd(file)
        wrong = []
        for check, line, text in DIAGNOSTIC.findall(said):
            source, number = origins[int(line) - 1]
            wrong.append(f"{source}:{number}: {text} [{check}]")
        if not wrong and not is_done:
            wrong = [f"{unit.entry['file']}: clangd failed:\n{said}"]
        # Of what was never built, the headers are not known.
        if not wrong and unit.dependencies:
            stamp.touch()
        return sorted(set(wrong))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--apart", action="store_true", help="look at each source by itself")
    parser.add_argument("--only", action="append", metavar="PATH",
                        help="what is at this path of the root, or below it")
    parser.add_argument("--since", metavar="COMMIT",
                        help="what has changed since this commit, and what includes it")
    parser.add_argument("root", type=os.path.realpath)
    parser.add_argument("builds", nargs="+", type=os.path.realpath, metavar="BUILD")
    arguments = parser.parse_args()
    root = arguments.root

    units, seen = [], set()
    for build in arguments.builds:
        for unit in units_of(build):
            unit.sources = [source for source in unit.sources if source not in seen]
            seen.update(unit.sources)
            units.append(unit)
    if arguments.apart:
        units = [Unit(unit.entry, [source], unit.dependencies)
                 for unit in units for source in unit.sources]
    else:
        give_headers(units, root)
    if arguments.only:
        units = [unit for unit in units if any(
            is_below(os.path.relpath(file, root), arguments.only) for file in unit.files())]
    units = [unit for unit in units if unit.files()]
    if arguments.since:
        changed = changed_since(arguments.since, root)
        if changed is not None:
            units = [unit for unit in units if is_concerned(unit, changed)]
            print(f"tidy: {sum(len(unit.files()) for unit in units)} files have changed since "
                  f"{arguments.since}, or include one that has", file=sys.stderr)
            if not units:
                return 0
    if not units:
        sys.exit(f"tidy: no source at or below {' '.join(arguments.only or [root])}")

    tidy = Tidy(root, pathlib.Path(arguments.builds[0], "tidy"))
    wrong = done = 0
    total = sum(len(unit.files()) for unit in units)
    # The long ones first, so that no core waits for one in the end.
    units.sort(key=lambda unit: -len(unit.files()))
    with concurrent.futures.ThreadPoolExecutor(
            int(os.environ.get("JOBS") or os.cpu_count())) as pool:
        for unit, lines in zip(units, pool.map(tidy.check, range(len(units)), units)):
            for line in lines:
                if not arguments.only or is_below(line.partition(":")[0], arguments.only):
                    print(line, flush=True)
                    wrong += 1
            done += len(unit.files())
            print(f"tidy: {done} of {total} files", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
