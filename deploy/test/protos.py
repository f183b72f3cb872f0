"""The messages of the protos, by their text."""

import re

import chart

CONFIG = "config/v1/config.proto"
NAMESPACES = "v1/namespaces.proto"


def proto_fields(file, message):
    """The names of a message's fields."""
    text = (chart.DEPLOY.parent / "proto/timecache" / file).read_text()
    body = re.search(rf"^message {message} {{\n(.*?)^}}", text, re.M | re.S)[1]
    return set(re.findall(r"^  [\w. ]+ (\w+) = \d+;", body, re.M))
