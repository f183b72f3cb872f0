"""The requests of Kafka's protocol that the tests of brokers need, without a client library:
Metadata (version 1), CreateTopics (version 2), DeleteTopics (version 1),
IncrementalAlterConfigs (version 0) and AlterUserScramCredentials (version 0)."""

import dataclasses
import hashlib
import socket
import struct

METADATA = 3
CREATE_TOPICS = 19
DELETE_TOPICS = 20
INCREMENTAL_ALTER_CONFIGS = 44
ALTER_USER_SCRAM_CREDENTIALS = 51
SCRAM_ITERATIONS = 4096
NO_TAGS = b"\0"
TIMEOUT_SECONDS = 10


REQUEST_TIMED_OUT = 7
TOPIC_ALREADY_EXISTS = 36
INVALID_REPLICATION_FACTOR = 38  # more than there are brokers now
NOT_CONTROLLER = 41


class KafkaError(Exception):
    """A broker refused, with an error's code of Kafka's protocol."""

    def __init__(self, text, code):
        super().__init__(text)
        self.code = code


@dataclasses.dataclass
class Partition:
    leader: int  # a broker's id; -1 if there is none
    replicas: list
    in_sync: list


@dataclasses.dataclass
class Metadata:
    brokers: dict  # id: (host, port), of those that the controller takes for alive
    topics: dict  # name: {partition's number: Partition}


class Reader:
    def __init__(self, data):
        self.data = data
        self.position = 0

    def number(self, form):
        value, = struct.unpack_from(">" + form, self.data, self.position)
        self.position += struct.calcsize(form)
        return value

    def text(self):
        size = self.number("h")
        if size < 0:
            return None
        self.position += size
        return self.data[self.position - size:self.position].decode()

    def compact(self):
        """A text of a flexible version: None, or of at most 126 bytes."""
        size = self.number("B") - 1
        self.position += max(size, 0)
        return None if size < 0 else self.data[self.position - size:self.position].decode()

    def array(self, read):
        return [read() for _ in range(self.number("i"))]


def text(value):
    return struct.pack(">h", len(value)) + value.encode()


def array(items):
    return struct.pack(">i", len(items)) + b"".join(items)


def compact(data):
    """Bytes, or a text, of a flexible version of a request."""
    data = data.encode() if isinstance(data, str) else data
    return struct.pack("B", len(data) + 1) + data


def call(address, key, version, body):
    """Sends one request on a connection of its own; a Reader of the answer. OSError if the
    broker does not answer."""
    request = struct.pack(">hhi", key, version, 0) + text("test") + body
    with socket.create_connection(address, TIMEOUT_SECONDS) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        with connection.makefile("rb") as stream:
            size = stream.read(4)
            answer = stream.read(struct.unpack(">i", size)[0]) if len(size) == 4 else b""
    if len(answer) < 4:
        raise ConnectionError(f"{address} closed the connection")
    return Reader(answer[4:])  # after the correlation id


def metadata(address):
    """What the broker at (host, port) knows of brokers and topics."""
    read = call(address, METADATA, 1, struct.pack(">i", -1))

    def broker():
        node = read.number("i"), (read.text(), read.number("i"))
        read.text()  # rack
        return node

    def partition():
        read.number("h")  # error
        return read.number("i"), Partition(
            read.number("i"), read.array(lambda: read.number("i")),
            read.array(lambda: read.number("i")))

    def topic():
        read.number("h")  # error
        name = read.text()
        read.number("b")  # internal
        return name, dict(read.array(partition))

    brokers = dict(read.array(broker))
    read.number("i")  # controller
    return Metadata(brokers, dict(read.array(topic)))


def create_topic(address, name, partitions, replicas, settings, brokers=()):
    """Makes a topic, settings as in {"retention.ms": "-1"}; with `brokers`, of one partition,
    which these have, the first as its leader. A broker may learn of it after this has
    returned. KafkaError if it is refused."""
    assignments = []
    if brokers:
        partitions = replicas = -1
        assignments = [struct.pack(">i", 0) +
                       array([struct.pack(">i", broker) for broker in brokers])]
    configs = [text(key) + text(str(value)) for key, value in settings.items()]
    topic = text(name) + struct.pack(">ih", partitions, replicas) + array(assignments) + array(configs)
    body = array([topic]) + struct.pack(">ib", TIMEOUT_SECONDS * 1000, 0)
    read = call(address, CREATE_TOPICS, 2, body)
    read.number("i")  # throttle time

    def refusal():
        return read.text(), read.number("h"), read.text()

    for topic_name, code, message in read.array(refusal):
        if code != 0:
            raise KafkaError(f"{topic_name}: {message} (error {code})", code)


def delete_topic(address, name):
    """Deletes a topic, which a broker may know for some time. KafkaError if it is refused."""
    body = array([text(name)]) + struct.pack(">i", TIMEOUT_SECONDS * 1000)
    read = call(address, DELETE_TOPICS, 1, body)
    read.number("i")  # throttle time
    for topic_name, code in read.array(lambda: (read.text(), read.number("h"))):
        if code != 0:
            raise KafkaError(f"{topic_name}: error {code}", code)


def set_topic(address, name, setting, value):
    """A broker may learn of it after this has returned. KafkaError if it is refused."""
    is_topic, is_set = 2, 0
    change = text(setting) + struct.pack("b", is_set) + text(value)
    body = array([struct.pack("b", is_topic) + text(name) + array([change])]) + b"\0"
    read = call(address, INCREMENTAL_ALTER_CONFIGS, 0, body)
    read.number("i")  # throttle time
    read.number("i")  # the number of results, 1
    code, message = read.number("h"), read.text()
    if code != 0:
        raise KafkaError(f"{name}: {setting}: {message} (error {code})", code)


def set_scram_password(address, user, password):
    """Of SCRAM-SHA-256 and SCRAM-SHA-512. KafkaError if it is refused."""
    for mechanism, hash_name in enumerate(("sha256", "sha512"), 1):
        salt = b"salt"
        salted = hashlib.pbkdf2_hmac(hash_name, password.encode(), salt, SCRAM_ITERATIONS)
        insertion = (compact(user) + struct.pack(">bi", mechanism, SCRAM_ITERATIONS) +
                     compact(salt) + compact(salted) + NO_TAGS)
        no_deletion = b"\1"
        body = NO_TAGS + no_deletion + b"\2" + insertion + NO_TAGS  # the first are the header's
        read = call(address, ALTER_USER_SCRAM_CREDENTIALS, 0, body)
        read.number("b")  # the header's tags
        read.number("i")  # throttle time
        read.number("b")  # the number of results, 1, plus 1
        read.compact()  # user
        code, message = read.number("h"), read.compact()
        if code != 0:
            raise KafkaError(f"{user}: {message} (error {code})", code)
