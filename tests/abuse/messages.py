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


def put(key, value, ttl=None, namespace=wire.NAMESPACE):
    return (field(1, namespace) + field(2, key) + field(3, value) +
            (b"" if ttl is None else field(4, duration(ttl))))


def get(key):
    return field(1, wire.NAMESPACE) + field(2, key)


def scan():
    return field(1, wire.NAMESPACE)


def watch(heartbeat=0.2):
    return field(1, wire.NAMESPACE) + field(5, duration(heartbeat))


def execute(puts):
    """A batch of (key, value)."""
    return field(1, wire.NAMESPACE) + b"".join(
        field(2, field(1, field(2, key) + field(3, value))) for key, value in puts)
