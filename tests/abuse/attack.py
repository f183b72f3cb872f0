"""What an attack is, and how it is run."""

import dataclasses
import time

from abuse import wire
from abuse.processes import Honest, Server, expect, wait_until
from abuse.wire import Wire

# A quiet p99 below this counts as this: a busy machine is no attack.
MIN_QUIET_P99_MS = 5
# After an attack a server may have this much more than before.
MAX_MORE_FDS = 16
MAX_MORE_MIB = 256

ATTACKS = {}


@dataclasses.dataclass
class Attack:
    """A function of a World; how its server is started; what it may cost."""
    name: str
    group: str
    run: object
    config: str = ""
    wrapper: tuple = ()
    max_more_mib: int = MAX_MORE_MIB
    # Of the attack in full alone, which has the machine to itself: how late a call is on a
    # machine that runs other tests says nothing of the server. The honest client's p99 may
    # be so many times that of the quiet before; 0: any. More than this, and any, is what
    # SECURITY.md says of the attack.
    max_p99_ratio: float = 10
    # The same: no call of the honest client may take longer, and no event come later; 0: any.
    max_wait_ms: float = 0
    # The honest client may have failed calls meanwhile.
    may_disturb: bool = False
    # Or so many of all, in a small attack: where how late the server comes to look is the
    # machine's doing, which has other tests to run.
    max_failed_share: float = 0
    # What the honest client shows.
    token: str = None
    # It starts its own servers.
    alone: bool = False


def attack(**options):
    """Registers a function under its name, in the group of its module."""
    def register(function):
        group = function.__module__.rsplit(".", 1)[1]
        ATTACKS[function.__name__] = Attack(
            name=function.__name__, group=group, run=function, **options)
        return function
    return register


class World:
    """One server, its honest client, and the scale of the attack."""

    def __init__(self, binary, full, server=None):
        self.binary, self.full, self.server = binary, full, server

    def scale(self, small, full):
        return full if self.full else small

    def connect(self, **options):
        return Wire(self.server.address, **{"source": wire.next_source(), **options})


def _wait_for_memory(server, most_mib, said):
    """Free memory of the heap goes back within some seconds."""
    wait_until(lambda: (server.usage() or {"rss_mib": 0})["rss_mib"] <= most_mib,
               f"the server has at most {most_mib} MiB after: {said}")


def _expect_latencies(found, quiet, attacked, said):
    most_p99 = found.max_p99_ratio * max(quiet["p99_ms"], MIN_QUIET_P99_MS)
    expect(not most_p99 or attacked["p99_ms"] <= most_p99,
           f"the honest client's p99 is {attacked['p99_ms']:.0f} ms, and was "
           f"{quiet['p99_ms']:.1f} ms: {said}")
    waited_ms = max(attacked["max_ms"], attacked["late_max_ms"])
    expect(not found.max_wait_ms or waited_ms <= found.max_wait_ms,
           f"the honest client waited for {waited_ms:.0f} ms: {said}")


def run(found, binary, full):
    """One line for people; raises Failed."""
    began = time.monotonic()
    if found.alone:
        said = found.run(World(binary, full))
        return f"{found.name}: {said} [{time.monotonic() - began:.1f} s]"
    server = Server(binary, found.config, found.wrapper)
    honest = None
    try:
        honest = Honest(server.address, token=found.token)
        quiet = honest.check()
        before = server.usage()
        said = found.run(World(binary, full, server))
        server.expect_alive()
        after_attack = honest.check()
        wait_until(lambda: (server.usage() or before)["fds"] <= before["fds"] + MAX_MORE_FDS,
                   "the attack's connections are closed")
        _wait_for_memory(server, before["rss_mib"] + found.max_more_mib, said)
        after = server.usage()
        server.expect_alive()
        failures = after_attack["failures"]
        may_fail = 0 if full else found.max_failed_share * after_attack["calls"]
        expect(found.may_disturb or len(failures) <= may_fail,
               f"the honest client failed {len(failures)} times ({failures[:2]}): {said}")
        if full:
            _expect_latencies(found, quiet, after_attack, said)
        line = (f"{found.name}: {said}. honest: {after_attack['calls']} puts+gets, "
                f"{len(failures)} failed, p50 {after_attack['p50_ms']:.1f} "
                f"p99 {after_attack['p99_ms']:.1f} max {after_attack['max_ms']:.0f} ms "
                f"(quiet p50 {quiet['p50_ms']:.1f} p99 {quiet['p99_ms']:.1f}), "
                f"{after_attack['events']} events, late p99 "
                f"{after_attack['late_p99_ms']:.0f} max {after_attack['late_max_ms']:.0f} ms "
                f"(quiet p99 {quiet['late_p99_ms']:.0f}). "
                f"server: RSS {before['rss_mib']} -> {after['rss_mib']} MiB "
                f"(peak {after['peak_mib']}), fds {before['fds']} -> {after['fds']}, "
                f"threads {before['threads']} -> {after['threads']}, "
                f"CPU {after['cpu_s'] - before['cpu_s']:.1f} s "
                f"[{time.monotonic() - began:.1f} s]")
    finally:
        if honest is not None:
            honest.stop()
        code = server.stop()
    expect(code == 0, f"after {found.name} the server stops with {code}")
    return line
