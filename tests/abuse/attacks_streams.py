"""Streams that are asked for and never read."""

import time

from abuse import messages, wire
from abuse.attack import attack
from abuse.honest import Channel
from abuse.processes import expect, wait_until
from abuse.wire import Closed, frame

VALUE = b"v" * 100


def ask(connection, method, body, end=True, stream=1):
    connection.send(frame(wire.HEADERS, wire.END_HEADERS, stream, wire.block(
        wire.request_headers(method if method.startswith("/") else wire.SERVICE + method))) +
        frame(wire.DATA, wire.END_STREAM if end else 0, stream, wire.message(body)))


def fill(world, count, prefix=b"fill"):
    """Puts so many entries of 100 B, in batches, as an honest writer would."""
    size = 1_000
    channel = Channel(world.server.address)
    try:
        for at in range(0, count, size):
            batch = messages.execute((b"%s%d" % (prefix, at + i), VALUE) for i in range(size))
            stream = channel.http.get_next_available_stream_id()
            channel.http.send_headers(stream, wire.request_headers(wire.SERVICE + "Execute"))
            send_all(channel, stream, wire.message(batch))
            for _ in channel.messages(stream):
                pass
    finally:
        channel.close()


def send_all(channel, stream, data):
    while data:
        room = min(channel.http.local_flow_control_window(stream), len(data),
                   channel.http.max_outbound_frame_size)
        if room:
            channel.http.send_data(stream, data[:room], end_stream=room == len(data))
            data = data[room:]
        channel.socket.sendall(channel.http.data_to_send())
        if not room:
            channel.http.receive_data(channel.socket.recv(1 << 16))
            channel.socket.sendall(channel.http.data_to_send())


# Lets the first message of a watch pass, which has no event, and no second one.
ONE_MESSAGE_WINDOW = 250


@attack(max_more_mib=1024)
def stalled_watchers(world):
    """Each takes its first message, and no other, while many entries die."""
    watchers, deaths = world.scale(100, 1_000), world.scale(20_000, 1_000_000)
    connections = []
    for _ in range(watchers // 10):
        connection = world.connect(window=ONE_MESSAGE_WINDOW)
        for stream in range(1, 21, 2):
            ask(connection, "WatchExpired", messages.watch(60), stream=stream)
        connections.append(connection)
    fill(world, deaths)
    # They die within 5 s and a bucket.
    time.sleep(6)
    rss = world.server.usage()["rss_mib"]
    for connection in connections:
        connection.close()
    return f"{watchers} watchers that read one message while {deaths:,} died: RSS {rss} MiB"


@attack(max_more_mib=1024)
def stalled_scans(world):
    entries, scans = world.scale(20_000, 200_000), world.scale(50, 500)
    fill(world, entries)
    connections = []
    for _ in range(scans):
        connection = world.connect(window=0)
        ask(connection, "Scan", messages.scan())
        connections.append(connection)
    time.sleep(1)
    usage = world.server.usage()
    for connection in connections:
        connection.close()
    return f"{scans} scans that never read: RSS {usage['rss_mib']} MiB, " \
           f"{usage['threads']} threads meanwhile"


@attack(max_more_mib=1024)
def stalled_pipelines(world):
    """Batches are sent as far as windows go, and no answer is read."""
    count = world.scale(20, 200)
    batch = wire.message(messages.execute([(b"p%d" % i, VALUE) for i in range(100)]))
    connections = []
    for _ in range(count):
        connection = world.connect(window=0)
        connection.send(frame(wire.HEADERS, wire.END_HEADERS, 1, wire.block(
            wire.request_headers(wire.SERVICE + "Pipeline"))))
        for _ in range(4):
            connection.send(frame(wire.DATA, 0, 1, batch))
        connections.append(connection)
    time.sleep(1)
    usage = world.server.usage()
    for connection in connections:
        connection.close()
    return f"{count} pipelines whose answers are never read: RSS {usage['rss_mib']} MiB, " \
           f"{usage['threads']} threads meanwhile"


@attack(config="limits: {max_watchers: 20}\n")
def too_many_watchers(world):
    with world.connect() as connection:
        connection.wait_for_settings()
        for stream in range(1, 101, 2):
            ask(connection, "WatchExpired", messages.watch(), stream=stream)
        refused = 0
        for _ in range(31):
            while True:
                kind, _, _, body = connection.read_frame()
                if kind == wire.HEADERS:
                    headers = dict(connection.decoder.decode(body))
                    if headers.get("grpc-status") == "8":
                        refused += 1
                        break
    expect(refused == 31, f"{refused} refused")
    return "50 watches at max_watchers 20, one honest: 31 refused"


@attack(max_more_mib=512, max_p99_ratio=0, max_wait_ms=1_000)
def answers_unread(world):
    """Gets, as many as windows take, and none is read: a burst of half a second, which is
    some fifty calls of the honest client."""
    fill(world, 1_000)
    count, calls = world.scale(20, 200), 100
    connections = []
    for _ in range(count):
        connection = world.connect(window=0)
        for i in range(calls):
            ask(connection, "Get", messages.get(b"fill1"), stream=2 * i + 1)
        connections.append(connection)
    time.sleep(1)
    usage = world.server.usage()
    for connection in connections:
        connection.close()
    return f"{count * calls:,} gets whose answers are never read: RSS {usage['rss_mib']} MiB, " \
           f"{usage['threads']} threads meanwhile"


MIB = 1 << 20
# Of responses that are not read, at max_memory_bytes 256 MiB: the bound and its reserve,
# calls that wait, and what the heap keeps of it. In full tens of thousands of calls come
# within a second: gRPC holds 10 to 18 KiB for each until the server sees it.
MAX_UNREAD_MIB = 160
MAX_BURST_MIB = 768
SMALL_SERVER = "limits: {max_memory_bytes: 256MiB}\n"


def put_large(world, key, size):
    channel = Channel(world.server.address)
    try:
        stream = channel.http.get_next_available_stream_id()
        channel.http.send_headers(stream, wire.request_headers(wire.SERVICE + "Put"))
        send_all(channel, stream, wire.message(messages.put(key, b"v" * size, 600)))
        for _ in channel.messages(stream):
            pass
    finally:
        channel.close()


def ask_unread(world, method, body, calls, end=True, acknowledge=True):
    """A connection with a window of 0 and so many calls; fewer, if it is closed."""
    connection = world.connect(window=0)
    try:
        if acknowledge:
            connection.wait_for_settings()
        for i in range(calls):
            ask(connection, method, body, end, 2 * i + 1)
    except Closed:
        pass
    return connection


def expect_unread_bound(world, quiet_mib):
    peak = world.server.usage()["peak_mib"]
    most = world.scale(MAX_UNREAD_MIB, MAX_BURST_MIB)
    expect(peak - quiet_mib <= most, f"RSS {quiet_mib} -> {peak} MiB")
    wait_until(lambda: world.server.usage()["rss_mib"] - quiet_mib <= MAX_UNREAD_MIB,
               f"at most {MAX_UNREAD_MIB} MiB stay", 15)
    return peak


@attack(config=SMALL_SERVER, max_more_mib=MAX_UNREAD_MIB)
def large_responses_unread(world):
    """1 MiB each, a thousand on a connection, by every kind of call."""
    put_large(world, b"large", MIB)
    quiet_mib = world.server.usage()["peak_mib"]
    batch = messages.field(1, wire.NAMESPACE) + messages.field(
        2, messages.field(2, messages.field(2, b"large"))) * 3
    kinds = (("Get", messages.get(b"large"), True), ("Execute", batch, True),
             ("Pipeline", batch, False), ("Scan", messages.scan(), True))
    connections = []
    for _ in range(world.scale(1, 10)):
        for method, body, end in kinds:
            connections.append(ask_unread(world, method, body, 1_000, end))
    time.sleep(world.scale(1, 10))
    for connection in connections:
        connection.close()
    peak_mib = expect_unread_bound(world, quiet_mib)
    return f"{1_000 * len(connections):,} gets, batches, pipelines and scans of 1 MiB and " \
           f"more, never read: RSS {peak_mib} MiB at most"


@attack(max_p99_ratio=30, config=SMALL_SERVER, max_more_mib=MAX_UNREAD_MIB, may_disturb=True)
def small_responses_unread(world):
    """1 kB each, on connections that never acknowledge how many calls they may have. gRPC
    then uses up its memory quota and closes idle connections, honest ones, too."""
    put_large(world, b"small", 1_000)
    quiet_mib = world.server.usage()["peak_mib"]
    calls = world.scale(20_000, 1_000_000)
    asked = 0
    while asked < calls:
        connection = ask_unread(world, "Get", messages.get(b"small"), 10_000,
                                acknowledge=False)
        asked += 10_000
        # Twice as many calls as a connection may have end it.
        said = connection.drain()
        expect("open" not in said, f"a connection that does not read: {said}")
        connection.close()
    peak_mib = expect_unread_bound(world, quiet_mib)
    return f"{calls:,} gets of 1 kB, never read: RSS {peak_mib} MiB at most"


@attack(max_p99_ratio=20, config=SMALL_SERVER, max_more_mib=MAX_UNREAD_MIB)
def small_streams_unread(world):
    """Health, which asks for no credentials, pipelines and scans, whose answers are a few
    bytes each."""
    put_large(world, b"small", 10)
    quiet_mib = world.server.usage()["peak_mib"]
    get = messages.field(1, wire.NAMESPACE) + messages.field(
        2, messages.field(2, messages.field(2, b"small")))
    kinds = (("/grpc.health.v1.Health/Check", b"", True), ("Pipeline", get, False),
             ("Scan", messages.scan(b"small"), True))
    connections = []
    for _ in range(world.scale(3, 30)):
        for method, body, end in kinds:
            connections.append(ask_unread(world, method, body, 1_000, end))
    time.sleep(world.scale(1, 10))
    for connection in connections:
        connection.close()
    peak_mib = expect_unread_bound(world, quiet_mib)
    return f"{1_000 * len(connections):,} checks of health, pipelines and scans of some " \
           f"bytes, never read: RSS {peak_mib} MiB at most"


LISTED = SMALL_SERVER + """\
listeners: [{address: '127.0.0.1:0'}]
log: {level: info, format: json}
namespaces: [{name: abuse, options: {ttl: 5s, num_buckets: 101}}, %s]
""" % ", ".join(f"{{name: n{i}, options: {{num_shards: 1}}}}" for i in range(900))


@attack(config=LISTED, max_p99_ratio=0, max_more_mib=MAX_UNREAD_MIB)
def lists_unread(world):
    """Descriptions of 900 namespaces, which do not wait for room."""
    quiet_mib = world.server.usage()["peak_mib"]
    body = messages.field(3, 1)
    connections = [ask_unread(world, "/timecache.v1.NamespaceService/ListNamespaces", body, 1_000)
                   for _ in range(world.scale(4, 10))]
    time.sleep(3)
    for connection in connections:
        connection.close()
    peak_mib = expect_unread_bound(world, quiet_mib)
    return f"{1_000 * len(connections):,} lists of 900 namespaces, never read: RSS {peak_mib} " \
           f"MiB at most"
