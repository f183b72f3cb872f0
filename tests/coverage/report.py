#!/usr/bin/env python3
"""How much of server/ and client/ the tests run, by llvm-cov's count of lines.

report.py BUILD SOURCE prints a table, writes BUILD/coverage/index.html, and exits 1
if a part that must be covered is not. ./dev coverage calls it.
"""

import collections
import glob
import json
import os
import re
import subprocess
import sys

# Parts that a mistake in costs data or access: at least so many per cent of lines.
REQUIRED_PERCENT = 95.0
REQUIRED = re.compile(
    r"server/engine/|server/edge/access_|server/api/access|server/rpc/call/call_gate")

# Together they link all that is counted.
PROGRAMS = ["server/timecached", "client/cli/timecachectl",
            "client/examples/sessionize"]


def merge(build):
    """All that the tests' processes left behind, as one profile."""
    raw = glob.glob(f"{build}/profiles/*.profraw")
    if not raw:
        sys.exit("coverage: no test has run: ./dev coverage")
    profile = f"{build}/coverage/all.profdata"
    os.makedirs(os.path.dirname(profile), exist_ok=True)
    # One that was cut off by a test that kills a server is left out.
    subprocess.run(["llvm-profdata-14", "merge", "-sparse", "-failure-mode=all",
                    *raw, "-o", profile], check=True)
    return profile


def llvm_cov(command, build, source, profile, *arguments):
    programs = [f"{build}/{program}" for program in PROGRAMS]
    objects = [programs[0], *(f"-object={program}" for program in programs[1:])]
    # A source is named as its compiler was given it, also from the build's directory.
    roots = "|".join(re.escape(path) for path in (source, build, f"{build}/../.."))
    others = rf"^/usr/|^({roots})/(proto|tests)/"
    return subprocess.run(
        ["llvm-cov-14", command, f"-instr-profile={profile}", f"-compilation-dir={build}",
         f"-ignore-filename-regex={others}", *arguments, *objects],
        check=True, stdout=subprocess.PIPE, text=True).stdout


def percent(covered, count):
    return 100.0 * covered / count if count else 100.0


def print_table(files, uncovered):
    directories = collections.defaultdict(lambda: [0, 0])
    for name, (covered, count) in files.items():
        for key in (os.path.dirname(name), "all"):
            directories[key][0] += covered
            directories[key][1] += count
    print(f"{'lines':>7} {'not run':>8} {'':>7}")
    for name, (covered, count) in sorted(files.items()):
        if covered < count:
            print(f"{count:7} {count - covered:8} {percent(covered, count):6.1f}%  {name}"
                  f"  {uncovered.get(name, '')}")
    print()
    for name, (covered, count) in sorted(directories.items()):
        print(f"{count:7} {count - covered:8} {percent(covered, count):6.1f}%  {name}")


def ranges(numbers):
    """[1, 2, 3, 7] as "1-3 7"."""
    spans = []
    for number in numbers:
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)


def lines_not_run(build, source, profile):
    """By file, from llvm-cov's lcov form."""
    name, found = None, collections.defaultdict(list)
    for line in llvm_cov("export", build, source, profile, "-format=lcov").splitlines():
        if line.startswith("SF:"):
            name = os.path.relpath(line[3:], source)
        elif line.startswith("DA:") and line.endswith(",0"):
            found[name].append(int(line[3:-2]))
    return {name: ranges(sorted(set(numbers))) for name, numbers in found.items()}


def main():
    build, source = (os.path.abspath(path) for path in sys.argv[1:3])
    profile = merge(build)
    summary = json.loads(llvm_cov("export", build, source, profile, "-summary-only"))
    files = {}
    for file in summary["data"][0]["files"]:
        lines = file["summary"]["lines"]
        files[os.path.relpath(file["filename"], source)] = (
            lines["covered"], lines["count"])
    print_table(files, lines_not_run(build, source, profile))
    llvm_cov("show", build, source, profile, "-format=html",
             f"-output-dir={build}/coverage")
    print(f"\neach line: {build}/coverage/index.html")

    parts = collections.defaultdict(lambda: [0, 0])
    for name, (covered, count) in files.items():
        if REQUIRED.match(name):
            part = "server/engine" if name.startswith("server/engine/") else "access"
            parts[part][0] += covered
            parts[part][1] += count
    failed = False
    for part, (covered, count) in sorted(parts.items()):
        share = percent(covered, count)
        print(f"{part}: {share:.1f} % of lines, at least {REQUIRED_PERCENT} asked for")
        failed = failed or share < REQUIRED_PERCENT
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
