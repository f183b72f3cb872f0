"""Does what tests/clients/cross_test.py says, so that clients in several languages meet.

usage: peer.py ADDRESS NAMESPACE

Reads one operation a line, words with a space between, and answers with a line. KEY, VALUE and
PART are in hexadecimal, "-" if they are empty. A key that collects parts has PART:VALUE of each,
with commas between, for its value.

    put KEY VALUE                   -> done
    get KEY                         -> VALUE, or none
    append KEY VALUE                -> the new length
    combine KEY NUMBER              -> the sum
    gather KEY PART VALUE EXPECTED  -> waiting, or PART=VALUE of all parts
    expired COUNT                   -> KEY=VALUE of so many events, from the oldest on
"""

from __future__ import annotations

import sys

import timecached


def to_hex(value: bytes) -> str:
    return value.hex() or "-"


def from_hex(word: str) -> bytes:
    return b"" if word == "-" else bytes.fromhex(word)


def shown(value: bytes, parts: timecached.GatheredParts | None) -> str:
    if parts is None:
        return to_hex(value)
    return ",".join(f"{to_hex(p.name)}:{to_hex(p.value)}" for p in parts.parts)


def perform(client: timecached.Client, name: str, words: list[str]) -> str:
    if name == "expired":
        events: list[str] = []
        with client.watch(from_earliest=True) as watcher:
            while len(events) < int(words[0]):
                batch = watcher.next(60)
                events += [f"{to_hex(e.key)}={shown(e.value, e.parts)}" for e in batch.events]
        return " ".join(events)
    key = from_hex(words[0])
    if name == "put":
        client.put(key, from_hex(words[1]))
        return "done"
    if name == "get":
        entry = client.get(key)
        return "none" if entry is None else shown(entry.value, entry.parts)
    if name == "append":
        return str(client.append(key, from_hex(words[1])).value_bytes)
    if name == "combine":
        return str(client.combine(key, add=int(words[1])).result)
    if name == "gather":
        result = client.gather(
            key, from_hex(words[1]), from_hex(words[2]), expected_parts=int(words[3])
        )
        if result.parts is None:
            return "waiting"
        return " ".join(f"{to_hex(p.name)}={to_hex(p.value)}" for p in result.parts.parts)
    raise ValueError(name)


def main() -> None:
    with timecached.Client(sys.argv[1], namespace=sys.argv[2], timeout=60) as client:
        for line in sys.stdin:
            name, *words = line.split()
            print(perform(client, name, words), flush=True)


if __name__ == "__main__":
    main()
