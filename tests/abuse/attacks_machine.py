"""The machine: out of descriptors, of memory, of a place to log; and its clock."""

import hashlib
import json
import os
import signal
import subprocess
import tempfile
import time

from abuse import messages, wire
from abuse.attack import attack
from abuse.attacks_streams import ask, send_all
from abuse.honest import CallFailed, Channel
from abuse.processes import Honest, Server, expect, wait_until
from abuse.wire import Closed, Wire

FAKETIME = f"/usr/lib/{os.uname().machine}-linux-gnu/faketime/libfaketimeMT.so.1"
HOUR_SECONDS = 3600
YEAR_SECONDS = 365 * 24 * HOUR_SECONDS
# Of what DURABLE keeps.
TTL_SECONDS = 2


@attack(max_p99_ratio=0, wrapper=("prlimit", "--nofile=64"), may_disturb=True)
def few_descriptors(world):
    """200 connections to a server that may have 64 files open."""
    held = [world.connect() for _ in range(200)]
    served = 0
    for connection in held:
        try:
            connection.read_frame(patience=0.02)
            served += 1
        except (Closed, TimeoutError):
            pass
    before, seconds = world.server.usage(), world.scale(2, 5)
    time.sleep(seconds)
    during = world.server.usage()
    share = (during["cpu_s"] - before["cpu_s"]) / seconds
    for connection in held:
        connection.close()
    expect(share < 0.9, f"it spins: {share:.0%} of a CPU with no descriptor left")
    # It accepts again.
    with world.connect() as connection:
        connection.wait_for_settings()
    return f"200 connections and 64 descriptors: {served} served, {share:.0%} of a CPU " \
           f"meanwhile, accepts afterwards"


def _rules(path, allowed):
    """An access file by which `caller`, whose token is "secret", may write or nothing."""
    sha256 = hashlib.sha256(b"secret").hexdigest()
    with open(path + ".new", "w", encoding="ascii") as file:
        file.write(f"principals: [{{name: caller, token_sha256: [\"{sha256}\"]}}, "
                   f"{{name: other, token_sha256: [\"{'0' * 64}\"]}}]\n"
                   f"rules: [{{principals: [{'caller' if allowed else 'other'}], "
                   "namespaces: [abuse], verbs: [write]}]\n")
    os.rename(path + ".new", path)


def _put_with_token(channel):
    """None, or why not."""
    stream = channel.http.get_next_available_stream_id()
    channel.http.send_headers(stream, wire.request_headers(
        wire.SERVICE + "Put", extra=[("authorization", "Bearer secret")]))
    channel.send(stream, messages.put(b"k", b"v"), end=True)
    try:
        for _ in channel.messages(stream):
            pass
        return None
    except CallFailed as error:
        return str(error)


@attack(alone=True)
def revoked_without_descriptors(world):
    """A right is withdrawn while strangers hold all descriptors that the server may have."""
    seconds = world.scale(8, 20)
    with tempfile.TemporaryDirectory(prefix="timecached-abuse-") as directory:
        rules = os.path.join(directory, "access.yaml")
        _rules(rules, allowed=True)
        server = Server(world.binary, config=f"access: {{file: {rules}}}\n",
                        wrapper=("prlimit", "--nofile=64"))
        try:
            channel = Channel(server.address)
            expect(_put_with_token(channel) is None, "the caller may write at first")
            # A file that has just changed is looked at again in any case.
            time.sleep(4)
            held = [Wire(server.address) for _ in range(120)]
            time.sleep(0.5)
            _rules(rules, allowed=False)
            began = time.monotonic()
            wait_until(lambda: _put_with_token(channel), "the right is gone", seconds)
            took = time.monotonic() - began
            for connection in held:
                connection.close()
            expect(_put_with_token(channel), "the right is gone for good")
            channel.close()
            server.expect_alive()
        finally:
            server.stop()
    return f"a right withdrawn with no descriptor left: gone after {took:.1f} s"


def _fill(world, megabytes):
    """Puts of 512 KiB until so many are there or one is refused: how many, why.

    They outlive the filling, however slow that is, and are removed after it.
    """
    channel, value = Channel(world.server.address), bytes(512 << 10)
    count, why = 0, "all taken"
    try:
        while count < 2 * megabytes:
            stream = channel.http.get_next_available_stream_id()
            channel.http.send_headers(stream, wire.request_headers(wire.SERVICE + "Put"))
            send_all(channel, stream,
                     wire.message(messages.put(b"big%d" % count, value, ttl=3_600)))
            for _ in channel.messages(stream):
                pass
            count += 1
    except CallFailed as error:
        why = str(error)
    finally:
        channel.close()
    channel = Channel(world.server.address)
    for i in range(count):
        channel.call("Remove", messages.get(b"big%d" % i))
    channel.close()
    return count // 2, why


@attack(max_p99_ratio=0, config="limits: {max_memory_bytes: 134217728}\n", may_disturb=True,
        max_more_mib=512)
def memory_limit(world):
    """Puts beyond max_memory_bytes: refused, and taken again when there is room."""
    taken, why = _fill(world, 400)
    expect(why.startswith("status 8"), f"{taken} MiB were taken at 128 MiB: {why}")
    peak = world.server.usage()["peak_mib"]
    return f"400 MiB of puts at max_memory_bytes 128 MiB: {taken} MiB taken, then " \
           f"{why[:60]}; peak {peak} MiB"


@attack(max_p99_ratio=0,
        wrapper=("prlimit", "--as=2147483648"), may_disturb=True, max_more_mib=1536)
def address_space_limit(world):
    """An address space of 2 GiB: the server refuses before the system does."""
    taken, why = _fill(world, 3_000)
    expect(why.startswith("status 8"), f"{taken} MiB were taken: {why}")
    return f"3,000 MiB of puts at RLIMIT_AS 2 GiB: {taken} MiB taken, then {why[:60]}"


def _log_much(address, count):
    """Each namespace that is made and deleted is logged."""
    service = "/timecache.v1.NamespaceService/"
    channel = Channel(address)
    for i in range(count):
        name = messages.field(1, f"log{i}")
        channel.call(service + "CreateNamespace", name)
        channel.call(service + "DeleteNamespace", name)
    channel.close()


def _log_to(world, stderr, count, meanwhile=None):
    """Serves as ever while its log goes nowhere."""
    server = Server(world.binary, stderr=stderr)
    honest = None
    try:
        honest = Honest(server.address)
        honest.check()
        _log_much(server.address, count)
        served = honest.check()
        expect(not served["failures"], f"{served['failures'][:2]}")
        server.expect_alive()
        if meanwhile is not None:
            meanwhile()
        return f"{2 * count:,} log lines, honest: {served['calls']} puts+gets, " \
               f"max {served['max_ms']:.0f} ms"
    finally:
        if honest is not None:
            honest.stop()
        code = server.stop()
        expect(code == 0, f"it stops with {code}")


@attack(alone=True)
def log_to_full_disk(world):
    with open("/dev/full", "wb") as full:
        return "standard error is a full disk: " + _log_to(world, full, world.scale(500, 5_000))


@attack(alone=True)
def log_to_blocked_pipe(world):
    """A pipe that nobody reads: a log collector that hangs."""
    reader, writer = os.pipe()
    try:
        return "standard error is a pipe that nobody reads: " + \
            _log_to(world, writer, world.scale(500, 5_000))
    finally:
        os.close(reader)
        os.close(writer)


@attack(alone=True)
def log_to_closed_pipe(world):
    """The log's reader has died."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        return "standard error is a pipe whose reader died: " + _log_to(world, writer, 500)
    finally:
        os.close(writer)


@attack(alone=True)
def clock_jumps(world):
    """The machine's time of day is set: nothing dies early, nothing stays."""
    jumps = (HOUR_SECONDS, -HOUR_SECONDS, YEAR_SECONDS, -YEAR_SECONDS)
    server = honest = None
    directory = tempfile.TemporaryDirectory(prefix="timecached-abuse-")
    try:
        clock = os.path.join(directory.name, "clock")
        server = _server_by(world, clock)
        honest = Honest(server.address)
        honest.check()
        for jump in jumps:
            channel = Channel(server.address)
            channel.call("Put", messages.put(b"clock", b"tick", ttl=60))
            _set_clock(clock, jump)
            for _ in range(20):
                answer = channel.call("Get", messages.get(b"clock"))
                expect(answer, f"an entry of 60 s is gone after a jump of {jump} s")
                time.sleep(0.02)
            channel.close()
            checked = honest.check()
            expect(not checked["failures"], f"after {jump} s: {checked['failures'][:2]}")
        return f"the clock jumped by {[f'{j // HOUR_SECONDS} h' for j in jumps]}: " \
               f"no entry died early, watches went on"
    finally:
        if honest is not None:
            honest.stop()
        if server is not None:
            server.stop()
        directory.cleanup()


def _server_by(world, clock, config="", offset=0):
    """A server whose time of day is what the file `clock` says: so far from the right one."""
    expect(os.path.exists(FAKETIME), f"{FAKETIME} is missing: install faketime")
    _set_clock(clock, offset)
    return Server(world.binary, config=config, environment={
        "LD_PRELOAD": FAKETIME, "FAKETIME_TIMESTAMP_FILE": clock,
        "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"})


def _drain_through(world, jump, grace_s, read_on):
    """Seconds until the server has ended, whose watcher reads on, or never, and what
    it says of its drain."""
    directory = tempfile.TemporaryDirectory(prefix="timecached-abuse-")
    server = connection = None
    try:
        clock = os.path.join(directory.name, "clock")
        server = _server_by(world, clock, f"grace_period: {grace_s}s\n")
        connection = wire.Wire(server.address, window=0)
        ask(connection, "WatchExpired", messages.watch())
        # Headers pass where messages may not: the watch stands.
        while connection.read_frame()[0] != wire.HEADERS:
            pass
        began = time.monotonic()
        server.process.terminate()
        wait_until(lambda: '"drain_started"' in server.log_text(), "the drain has begun")
        _set_clock(clock, jump)
        if read_on:
            # Long enough for a drain to be cut that goes by the time of day.
            time.sleep(1)
            connection.send(wire.frame(wire.WINDOW, 0, 1, (1 << 16).to_bytes(4, "big")))
            connection.drain()
        wait_until(lambda: not server.alive(), "the server has ended", grace_s + wire.PATIENCE_SECONDS)
        took = time.monotonic() - began
        stopped = [json.loads(line) for line in server.log_text().splitlines()
                   if '"server_stopped"' in line]
        expect(len(stopped) == 1, "it does not say how it stopped")
        return took, stopped[0]
    finally:
        if connection is not None:
            connection.close()
        if server is not None:
            server.stop()
        directory.cleanup()


@attack(alone=True)
def clock_jumps_in_drain(world):
    """The time of day is set while the server drains: the grace period stays as long."""
    took_back, back = _drain_through(world, -HOUR_SECONDS, grace_s=3, read_on=False)
    expect(back["watchers_cut"] == 1, f"set back, with a watcher that does not read: {back}")
    expect(3 <= took_back < HOUR_SECONDS / 2, f"a grace period of 3 s took {took_back:.1f} s")
    took_on, on = _drain_through(world, HOUR_SECONDS, grace_s=60, read_on=True)
    expect(on["watchers_cut"] == 0 and not on["calls_cancelled"],
           f"set ahead, with a watcher that is slow: {on}")
    expect(all(0 <= said["took_ms"] < 60_000 for said in (back, on)),
           f"it says that it took {back['took_ms']} and {on['took_ms']} ms")
    return f"an hour back: a grace period of 3 s took {took_back:.1f} s; an hour ahead: a " \
           f"slow watcher was waited for, {took_on:.1f} s of 60 s"


def _set_clock(path, offset):
    with open(path + ".new", "w", encoding="ascii") as file:
        file.write(f"{offset:+d}s\n")
    os.replace(path + ".new", path)


DURABLE = """\
listeners: [{{address: '127.0.0.1:0'}}]
namespaces: [{{name: abuse, options: {{ttl: {ttl}s, num_buckets: 101, durability: sync}}}}]
journal: {{directory: '{journal}'}}
log: {{level: info, format: json}}
"""


def deaths_of(address, known):
    """The deaths of the keys `known`, from the earliest on: (key, deadline, death)."""
    channel, found = Channel(address), []
    try:
        for message in channel.messages(channel.start("WatchExpired",
                                                      messages.watch(earliest=True))):
            for number, value in messages.parse(message):
                if number == 2:
                    event = dict(messages.parse(value))
                    found.append((event[2], messages.seconds(event[6]),
                                  messages.seconds(event[7])))
            if known <= {key for key, _, _ in found}:
                return found
    finally:
        channel.close()


def _restart(world, clock, journal, offset):
    config = DURABLE.format(ttl=TTL_SECONDS, journal=journal)
    return _server_by(world, clock, config, offset)


def _kill(server):
    os.kill(server.pid, signal.SIGKILL)
    server.process.wait()
    server.stop()


@attack(alone=True)
def clock_set_across_restarts(world):
    """The time of day is set while a durable server is down: late at most, never early."""
    directory = tempfile.TemporaryDirectory(prefix="timecached-abuse-")
    clock = os.path.join(directory.name, "clock")
    journal = os.path.join(directory.name, "journal")
    server, keys, offset, last = None, [], 0, None
    try:
        jumps = (0, -3, HOUR_SECONDS, 2, -3)
        for jump in jumps:
            offset += jump
            server = _restart(world, clock, journal, offset)
            channel = Channel(server.address)
            if keys:
                there = channel.call("Get", messages.get(keys[-1]))
                passed = time.monotonic() - last
                if jump < 0:
                    expect(there or passed > TTL_SECONDS,
                           f"set by {jump} s, an entry is gone after {passed:.1f} s")
                else:
                    expect(not there, f"set by {jump} s, an entry that has expired is there")
            keys.append(b"restart-%d" % len(keys))
            last = time.monotonic()
            channel.call("Put", messages.put(keys[-1], b"tick"))
            channel.close()
            if len(keys) == len(jumps):
                break
            _kill(server)
        events = deaths_of(server.address, set(keys))
        expect(len(events) == len(keys), f"{len(events)} events of {len(keys)} deaths: {events}")
        for dead, deadline, death in events:
            expect(deadline <= death < deadline + TTL_SECONDS / 100 + 0.001,
                   f"{dead} died {death - deadline:.3f} s after its deadline")
        _kill(server)
        # An hour behind the journal: time goes on from the journal's.
        offset -= HOUR_SECONDS
        server = _restart(world, clock, journal, offset)
        channel = Channel(server.address)
        channel.call("Put", messages.put(b"goes on", b"tick"))
        time.sleep(1.5 * TTL_SECONDS)
        expect(not channel.call("Get", messages.get(b"goes on")),
               "an hour behind the journal's time, an entry does not die")
        channel.close()
        return f"set by {jumps[1:]} s while it was down: {len(events)} deaths told once, none " \
               "early; an hour behind its journal, it goes on from there"
    finally:
        if server is not None:
            server.stop()
        directory.cleanup()


@attack(max_p99_ratio=0, may_disturb=True)
def stopped_process(world):
    """SIGSTOP and SIGCONT: a machine that was suspended."""
    seconds = world.scale(2, 10)
    os.kill(world.server.pid, signal.SIGSTOP)
    time.sleep(seconds)
    os.kill(world.server.pid, signal.SIGCONT)
    return f"the process stood still for {seconds} s"


@attack()
def two_servers_one_port(world):
    second = subprocess.run(
        [world.binary, "--listen", world.server.address], stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=wire.PATIENCE_SECONDS, check=False)
    expect(second.returncode == 1, f"it ended with {second.returncode}")
    return f"a second server on the port: {second.stderr.strip()[-90:]}"


@attack(alone=True)
def killed_and_started(world):
    """SIGKILL under load: the port is free at once."""
    server = Server(world.binary)
    honest = Honest(server.address)
    honest.check()
    os.kill(server.pid, signal.SIGKILL)
    server.process.wait()
    address = server.address
    began = time.monotonic()
    config = f"listeners: [{{address: '{address}'}}]\nnamespaces: [{{name: abuse}}]\n" \
             "log: {level: info, format: json}\n"
    again = None
    try:
        again = Server(world.binary, config=config)
        took = time.monotonic() - began
        honest.check()
        return f"killed and started on the same port in {took * 1000:.0f} ms; " \
               f"the client came back by itself"
    finally:
        honest.stop()
        if again is not None:
            again.stop()
        server.stop()
