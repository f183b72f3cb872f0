#!/usr/bin/env python3
"""choose.py CONTROL_FILE MAX: of the inputs that a merge of libFuzzer's looked at, those
that together reach the most code, at most MAX, a path a line.

Greedy: each next one reaches most of what none before it does, and is the shortest of
those that do. Findings, whose names are neither a hash nor seed-N, are kept.
"""

import os
import re
import sys


def read(path):
    """[(path, size, what it reaches)]"""
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    count = int(lines[0])
    names = lines[2:2 + count]
    sizes, reached = {}, {}
    for line in lines[2 + count:]:
        kind, index, *rest = line.split()
        if kind == "STARTED":
            sizes[int(index)] = int(rest[0])
        elif kind == "FT":
            reached[int(index)] = frozenset(map(int, rest))
    return [(names[i], sizes[i], reached[i]) for i in sorted(reached)]


def choose(inputs, most):
    findings = [each for each in inputs
                if not re.fullmatch(r"[0-9a-f]{40}|seed-.*", os.path.basename(each[0]))]
    chosen, covered = list(findings), set().union(*(each[2] for each in findings))
    left = [each for each in inputs if each not in findings]
    while left and len(chosen) < most:
        best = max(left, key=lambda each: (len(each[2] - covered), -each[1]))
        if not best[2] - covered:
            break
        chosen.append(best)
        covered |= best[2]
        left.remove(best)
    return chosen


if __name__ == "__main__":
    for name, _, _ in choose(read(sys.argv[1]), int(sys.argv[2])):
        print(name)
