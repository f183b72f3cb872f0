"""The journal's disk: full, and then not."""

import errno
import os
import subprocess
import tempfile
import time

from abuse import messages
from abuse.attack import attack
from abuse.attacks_machine import DURABLE, TTL_SECONDS, deaths_of
from abuse.honest import CallFailed, Channel
from abuse.processes import Failed, Server, expect, wait_until

# A file system of its own, which goes with the server.
SMALL_DISK = ("unshare", "-m", "sh", "-c",
              "mount -t tmpfs -o size=$0 tmpfs $1 && shift && exec \"$@\"")


def _fill_disk(path):
    with open(path, "wb", buffering=0) as file:
        try:
            while file.write(bytes(64 << 10)):
                pass
        except OSError as error:
            expect(error.errno == errno.ENOSPC, f"the disk does not get full: {error}")


def _refused_put(channel):
    """Why a put is refused, sooner or later."""
    for _ in range(1_000):
        try:
            channel.call("Put", messages.put(b"large", bytes(16 << 10), ttl=600))
        except CallFailed as error:
            return str(error)
    raise Failed("a full disk takes 16 MiB")


def _is_taken(address):
    channel = Channel(address)
    try:
        channel.call("Put", messages.put(b"later", b"tick", ttl=600))
        return True
    except CallFailed:
        return False
    finally:
        channel.close()


@attack(alone=True)
def journal_on_full_disk(world):
    """The journal's disk gets full: writes are refused, all else goes on; then there is room."""
    if subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode:
        return "not tried: no file system may be mounted here"
    directory = tempfile.TemporaryDirectory(prefix="timecached-abuse-")
    server = channel = None
    try:
        config = DURABLE.format(ttl=TTL_SECONDS, journal=directory.name)
        server = Server(world.binary, config.replace("journal: {", "journal: {reserve_bytes: 2097152, "),
                        wrapper=(*SMALL_DISK, "24m", directory.name))
        filler = f"/proc/{server.pid}/root{directory.name}/filler"
        channel = Channel(server.address)
        channel.call("Put", messages.put(b"stays", b"tick", ttl=600))
        channel.call("Put", messages.put(b"dies", b"tick"))
        _fill_disk(filler)
        why = _refused_put(channel)
        expect(why.startswith("status 8") and "disk" in why, f"refused otherwise: {why}")
        channel.close()
        expect(deaths_of(server.address, {b"dies"}), "no event while the disk is full")
        channel = Channel(server.address)
        expect(channel.call("Get", messages.get(b"stays")), "an entry is not there")
        server.expect_alive()
        expect(not _is_taken(server.address), "a put is taken while the disk is full")
        os.unlink(filler)
        began = time.monotonic()
        wait_until(lambda: _is_taken(server.address), "writes are taken once there is room")
        return f"refused by {why[:60]}; deaths told, reads answered; writes taken again " \
               f"{time.monotonic() - began:.1f} s after there was room"
    finally:
        if channel is not None:
            channel.close()
        if server is not None:
            server.stop()
        directory.cleanup()
