"""Clients in several languages meet on one server: what each of them puts, appends, adds and
gathers the others read, byte for byte, also as events; and members in each share one stream
of events, of which each comes once. timecachectl, with the C++ client, is one of them.

usage: cross_test.py PROGRAMS: JSON, of each language the commands of its examples/member and
of its peer. TIMECACHED and TIMECACHECTL are the programs. The Python client moves the clock."""

import collections
import json
import os
import shlex
import signal
import sys

from peers import CommandLineMember, CommandLinePeer, Member, Peer, wait_until

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "support"))
from server import Server

EVENTS = 500
# Keys and values of all bytes, of none that are text, and of what languages treat differently.
BYTES = [bytes(range(256)), b"\xff\xfe\x80", b"\x00", b"\xed\xa0\x80", "größe".encode(),
         b" \r\n\t\"\\%="]


def value_of(number):
    """Bytes that are no UTF-8, of many lengths."""
    return bytes((number * 7 + i * 31) % 256 for i in range(number % 50)) + b"\xff\x00"


def check_same(got, want, what):
    assert got == want, f"{what}: {got!r} in place of {want!r}"


def check_values(peers):
    """Each puts, each reads."""
    entries = {}
    for writer in peers:
        for i, key in enumerate(BYTES):
            key = writer.name.encode() + b"/" + key
            entries[key] = b"" if i == 0 else bytes(range(256)) * 9 + key
            writer.put(key, entries[key])
    for reader in peers:
        for key, value in entries.items():
            check_same(reader.get(key), value, f"{key!r}, read by {reader.name}")
        check_same(reader.get(b"absent\xff"), None, f"what is not there, read by {reader.name}")
    return entries


def rotated(peers):
    """Each of them is the first once."""
    return [peers[i:] + peers[:i] for i in range(len(peers))]


def check_changes(peers):
    """Each begins what the others add to, and each finds what all have made."""
    entries = {}
    for order in rotated(peers):
        name = order[0].name.encode()
        log, number = b"log \xff\x00" + name, b"number \xfe" + name
        text, total = b"", 0
        for i, peer in enumerate(order):
            text += BYTES[i % len(BYTES)]
            check_same(peer.append(log, BYTES[i % len(BYTES)]), len(text), f"append by {peer.name}")
            total += (-1) ** i * 10 ** (3 * i + 2)
            check_same(peer.combine(number, (-1) ** i * 10 ** (3 * i + 2)), total,
                       f"combine by {peer.name}")
        entries |= {log: text, number: str(total).encode()}
        for peer in peers:
            check_same(peer.get(log), text, f"what was appended, read by {peer.name}")
            check_same(peer.get(number), str(total).encode(), f"the sum, read by {peer.name}")
    return entries


def check_gathers(peers):
    """Each brings the last part once, and gets those of all. What lacks the last is read by all."""
    entries = {}
    for order in rotated(peers):
        key = b"gather \xff\x00" + order[0].name.encode()
        parts = [(peer.part_of(i), BYTES[i % len(BYTES)]) for i, peer in enumerate(order)]
        for peer, (name, value) in zip(order, parts):
            got = peer.gather(key, name, value, len(order))
            check_same(got, parts if peer is order[-1] else None, f"gather by {peer.name}")
        key = b"incomplete " + key
        for peer, (name, value) in zip(order[:-1], parts):
            peer.gather(key, name, value, len(order))
        for peer in peers:
            check_same(peer.get(key), parts[:-1], f"parts, read by {peer.name}")
        entries[key] = parts[:-1]
    return entries


def check_bytes(client, clock, new_peers):
    """All of the above in one namespace, which expires in the end."""
    client.create_namespace("bytes", options(ttl=10))
    peers = new_peers("bytes")
    entries = check_values(peers) | check_changes(peers) | check_gathers(peers)
    clock.advance(11)
    for peer in peers:
        check_same(dict(peer.expired(len(entries))), entries, f"events of {peer.name}")
    codes = {peer.name: peer.stop() for peer in peers}
    assert not any(codes.values()), f"exit codes {codes}"
    print(f"clients: {len(entries)} entries of {[peer.name for peer in peers]}, read by each")


def check_group(client, clock, new_members):
    """A member in each language; each event comes to one of them."""
    import timecached
    client.create_namespace("shared", options(ttl=10))
    shared = client.namespace("shared")
    shared.create_group("all")

    def statistics():
        return shared.get_group("all", include_statistics=True).statistics

    members = new_members("shared", "all")
    try:
        wait_until(lambda: statistics().members == len(members), "all are members")
        expected = {f"key-{i}": value_of(i) for i in range(EVENTS)}
        items = list(expected.items())
        for begin in range(0, EVENTS, 20):
            shared.execute([timecached.Operation.put(key, value, ttl=1)
                            for key, value in items[begin:begin + 20]])
            clock.advance(1)
        wait_until(lambda: statistics().acked == EVENTS, "all is acknowledged")
        said = statistics()
    finally:
        codes = {member.language: member.stop() for member in members}
    # A Java machine that SIGTERM ends says so, also after an end in good order.
    ended = {0, 128 + signal.SIGTERM}
    assert ended.issuperset(codes.values()), f"exit codes {codes}"
    assert (said.lost, said.timed_out, said.nacked) == (0, 0, 0), said
    told = collections.Counter(line for member in members for line in member.lines)
    want = collections.Counter({(key, value, 1): 1 for key, value in expected.items()})
    assert told == want, sorted((told - want).items())[:5]
    shares = {member.language: len(member.lines) for member in members}
    assert min(shares.values()) > 0, f"one was given nothing: {shares}"
    print(f"clients: {EVENTS} events among {shares}")


def options(ttl):
    import timecached
    return timecached.NamespaceOptions(ttl=ttl, num_buckets=11)


def main():
    programs = json.loads(sys.argv[1])
    # The package of the Python client, as its tests have installed it.
    python = shlex.split(programs["python"]["member"])[0]
    if os.path.realpath(sys.prefix) == os.path.realpath(sys.base_prefix):
        os.execv(python, [python, "-B", *sys.argv])
    import timecached
    from timecached import testing
    command_line = os.environ["TIMECACHECTL"]

    with (Server(os.environ["TIMECACHED"], "--virtual-clock") as server,
          timecached.Client(server.address) as client):
        clock = testing.VirtualClock(client)

        def new_peers(namespace):
            return [*(Peer(language, commands["peer"], server.address, namespace)
                      for language, commands in sorted(programs.items())),
                    CommandLinePeer(command_line, server.address, namespace)]

        def new_members(namespace, group):
            return [*(Member(language, commands["member"], server.address, namespace, group,
                             str(EVENTS))
                      for language, commands in sorted(programs.items())),
                    CommandLineMember(command_line, server.address, namespace, group)]

        check_bytes(client, clock, new_peers)
        check_group(client, clock, new_members)
    return 0


if __name__ == "__main__":
    sys.exit(main())
