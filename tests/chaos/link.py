"""A network between two programs that a test breaks: a TCP proxy."""

import collections
import contextlib
import socket
import struct
import threading

HOST = "127.0.0.1"
CHUNK_BYTES = 1 << 16
# Requests that are kept to be sent again.
KEPT = 50


class Link:
    """Forwards what connects to `port` to `target`, a (host, port), until close().

    Thread-safe; two threads for each connection. At most CHUNK_BYTES of a direction are
    here, the others in the system's buffers."""

    def __init__(self, target):
        self.target = target
        self.connections = set()
        self.mutex = threading.Lock()
        self.is_cut = False
        self.requests = threading.Event()  # set while bytes to the target go on
        self.answers = threading.Event()  # set while bytes from it do
        self.produced = collections.deque(maxlen=KEPT)  # Kafka's Produce requests
        self.heal()
        self.listener = socket.create_server((HOST, 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self):
        """Ends all connections, and new ones at once. Bytes on their way are lost."""
        with self.mutex:
            self.is_cut = True
            for connection in self.connections:
                shut(connection)

    def hold(self, requests=True, answers=True):
        """Keeps connections, also new ones, and the bytes of these directions, up to what
        the buffers hold: the sender is not told. heal() delivers them, even if their sender
        has closed its end."""
        if requests:
            self.requests.clear()
        if answers:
            self.answers.clear()

    def heal(self):
        with self.mutex:
            self.is_cut = False
        self.requests.set()
        self.answers.set()

    def close(self):
        self.cut()
        shut(self.listener)
        self.requests.set()
        self.answers.set()

    def _accept(self):
        with self.listener:
            while True:
                try:
                    client, _ = self.listener.accept()
                except OSError:  # close()
                    return
                threading.Thread(target=self._forward, args=(client,), daemon=True).start()

    def _forward(self, client):
        with client, self._cuttable(client) as connected:
            if not connected:
                return
            try:
                server = socket.create_connection(self.target)
            except OSError:
                return
            with server, self._cuttable(server) as connected:
                if not connected:
                    return
                # As those that use it: what came in two parts would wait for 40 ms.
                for end in (client, server):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                back = threading.Thread(
                    target=pump, args=(server, client, self.answers), daemon=True)
                back.start()
                pump(client, server, self.requests, Recorder(self.produced).feed)
                back.join()

    @contextlib.contextmanager
    def _cuttable(self, connection):
        """cut() ends it within the block; False if it already has."""
        with self.mutex:
            self.connections.add(connection)
            connected = not self.is_cut
        yield connected
        with self.mutex:
            self.connections.remove(connection)


class Recorder:
    """Keeps the Produce requests among those that a client of Kafka sends on a connection."""

    def __init__(self, produced):
        self.produced = produced
        self.unread = bytearray()

    def feed(self, data):
        self.unread += data
        while len(self.unread) >= 4:
            size = 4 + struct.unpack_from(">i", self.unread)[0]
            if len(self.unread) < size:
                return
            request = bytes(self.unread[:size])
            del self.unread[:size]
            if request[4:6] == b"\0\0":  # its kind
                self.produced.append(request)


def replay(requests, target):
    """Sends them to (host, port), each once the one before has been answered."""
    with socket.create_connection(target) as connection, connection.makefile("rb") as answers:
        for request in requests:
            connection.sendall(request)
            answers.read(struct.unpack(">i", answers.read(4))[0])


def pump(source, sink, going_on, see=lambda data: None):
    """Until the end of the source, or an error: the other direction goes on."""
    try:
        while data := source.recv(CHUNK_BYTES):
            see(data)
            going_on.wait()
            sink.sendall(data)
        going_on.wait()
    except OSError:
        pass
    shut(source, socket.SHUT_RD)
    shut(sink, socket.SHUT_WR)


def shut(connection, direction=socket.SHUT_RDWR):
    """Whoever waits for it gets an error or its end; the thread that uses it closes it."""
    try:
        connection.shutdown(direction)
    except OSError:  # not connected any more
        pass
