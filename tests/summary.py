"""Counts the tests that ctest has run: summary.py JUNIT GTEST_DIRECTORY

JUNIT is what ctest --output-junit wrote, with an entry for each process; GTEST_DIRECTORY
has, for each process that was a shard of a GoogleTest program, NAME.xml with its tests.
Prints what the tests that failed wrote, their names, and "N passed, M failed, K skipped".
"""

import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

BEGIN = re.compile(r"^\[ RUN +\] (\S+)")
END = re.compile(r"^\[ +(OK|FAILED|SKIPPED) +\] (\S+?)(?:, .*)? \(\d+ ms\)")
MAX_LINES = 200


def failures_in(output):
    """{test: its lines}, of GoogleTest's output; also the one that did not end."""
    found, name, lines = {}, None, []
    for line in output.splitlines():
        if begin := BEGIN.match(line):
            name, lines = begin[1], []
        elif (end := END.match(line)) and name:
            if end[1] == "FAILED":
                found[name] = lines
            name = None
        elif name:
            lines.append(line)
    if name:
        found[name] = lines + ["(did not end)"]
    return found


def tests_of(path):
    """(passed, failed names, skipped) of one program's file."""
    passed, failed, skipped = 0, [], 0
    for case in ElementTree.parse(path).iter("testcase"):
        if case.find("failure") is not None:
            failed.append(f"{case.get('classname')}.{case.get('name')}")
        elif case.get("result") == "skipped":
            skipped += 1
        elif case.get("status") == "run":
            passed += 1
    return passed, failed, skipped


def main():
    junit, directory = sys.argv[1:]
    passed, skipped, failed = 0, 0, {}
    for entry in ElementTree.parse(junit).iter("testcase"):
        name, status = entry.get("name"), entry.get("status")
        output = entry.findtext("system-out") or ""
        path = pathlib.Path(directory, f"{name}.xml")
        names = []
        if path.exists():
            run, names, ignored = tests_of(path)
            passed, skipped = passed + run, skipped + ignored
        elif status == "run":
            passed += 1
        elif status in ("notrun", "disabled"):
            skipped += 1
        if status == "fail" or names:
            outputs = failures_in(output)
            # One that ended the whole process, or was stopped, is in no file.
            for test in names or outputs or [""]:
                said = outputs.get(test, output.splitlines())
                failed[f"{name}: {test}" if test else name] = said
    for name, lines in failed.items():
        print(f"\n-- failed: {name}")
        print("\n".join(lines[-MAX_LINES:]))
    if failed:
        print("\nfailed:", *failed, sep="\n  ")
    print(f"{passed} passed, {len(failed)} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
