"""As much of Protocol Buffers as the service's messages need."""

from abuse import wire


def varint(value):
    out = bytearray()
    while value >= 128:
        out.append(value % 128 | 128)
        value //= 128
    out.append(value)
    return bytes(out)


def field(number, value):
    """An integer, or what has a length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, str):
        value = value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value


def duration(seconds):
    whole = int(seconds)
    return field(1, whole) + field(2, int((seconds - whole) * 1e9))


def parse(data):
    """[(number, value)] of a message."""
    fields, at = [], 0

    def read_varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = read_varint()
        if key & 7 == 0:
            fields.append((key >> 3, read_varint()))
        elif key & 7 == 2:
            length = read_varint()
            fields.append((key >> 3, data[at:at + length]))
            at += length
        else:
            raise ValueError(f"wire type {key & 7}")
    return fields


def seconds(timestamp):
    """Of a google.protobuf.Timestamp."""
    fields = dict(parse(timestamp))
    return fields.get(1, 0) + fields.get(2, 0) / 1e9


def put(key, value, ttl=None, namespace=wire.NAMESPACE):
    return (field(1, namespace) + field(2, key) + field(3, value) +
            (b"" if ttl is None else field(4, duration(ttl))))


def get(key):
    return field(1, wire.NAMESPACE) + field(2, key)


def scan(prefix=b""):
    return field(1, wire.NAMESPACE) + (field(2, prefix) if prefix else b"")


def _namespaces(names):
    return b"".join(field(1, name) for name in names)


def watch(heartbeat=0.2, namespaces=(wire.NAMESPACE,), earliest=False, prefix=b""):
    """Of WatchExpired."""
    return (_namespaces(namespaces) + (field(2, 2) if earliest else b"") +
            (field(5, prefix) if prefix else b"") + field(7, duration(heartbeat)))


def consume(namespace, group, max_in_flight):
    """Of ConsumeExpired, without values."""
    return (_namespaces([namespace]) + field(2, group) + field(4, max_in_flight) +
            field(5, 1) + field(6, duration(0.2)))


def expiring(heartbeat, namespaces, lead_time, prefix):
    """Of WatchExpiring."""
    return (_namespaces(namespaces) + field(2, duration(lead_time)) + field(3, prefix) +
            field(5, duration(heartbeat)))


def execute(puts, namespace=wire.NAMESPACE):
    """A batch of (key, value) or (key, value, ttl)."""
    return field(1, namespace) + b"".join(
        field(2, field(1, field(2, put[0]) + field(3, put[1]) +
                       (field(4, duration(put[2])) if len(put) > 2 else b"")))
        for put in puts)
