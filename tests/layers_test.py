"""Which folder may include which: arrows point one way, and nothing goes round."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]

# From the bottom up: a folder includes itself and those before it. A folder of folders
# stands for those of its files that are in none of them.
LAYERS = (
    "server/base",
    "server/engine/store",
    "server/engine/parts",
    "server/engine/shard",
    "server/engine/expiry",
    "server/engine/groups",
    "server/engine/map",
    "server/engine",
    "server/log",
    "server/log/local",
    "server/log/kafka",
    "server/cluster",
    "server/durable",
    "server/api",
    "server/ops",
    "server/peer",
    "server/edge/response",
    "server/edge/connection",
    "server/edge/grpc_1_51",
    "server/edge",
    "server/rpc/call",
    "server/rpc/watch",
    "server/rpc/data",
    "server/rpc/peer",
    "server/rpc/admin",
    "server/rpc",
    "server/main/config",
    "server/main",
)
# What some see of those below them: the engine's face, no log, no more than the client.
ONLY = {
    "server/rpc/": ("server/base/", "server/engine/store/", "server/api/", "server/edge/",
                    "server/peer/", "server/rpc/"),
    "server/peer/": ("server/base/", "server/engine/store/", "server/engine/parts/",
                     "server/ops/log.h", "server/peer/"),
    "server/api/": ("server/base/", "server/engine/store/", "server/api/"),
    "server/log/": ("server/base/", "server/log/"),
    "server/durable/": ("server/base/", "server/engine/", "server/log/journal.h", "server/durable/"),
    "client/": ("server/base/",),
    # What works on the files of a journal or of a dump, without a server.
    "client/cli/": ("server/base/", "server/log/local/"),
}


def sources(folder):
    return [path for path in (ROOT / folder).rglob("*") if path.suffix in (".h", ".cc")]


def includes(path):
    return re.findall(r'^#include "(server/[^"]+)"', path.read_text(), re.MULTILINE)


def layer(name):
    folder = name.rsplit("/", 1)[0]
    return LAYERS.index(folder)


class LayersTest(unittest.TestCase):
    def test_each_folder_includes_only_those_before_it(self):
        seen = sources("server")
        self.assertGreater(len(seen), 300)
        wrong = set()
        for path in seen:
            name = str(path.relative_to(ROOT))
            wrong |= {f"{name} includes {header}" for header in includes(path)
                      if layer(header) > layer(name)}
        self.assertEqual(wrong, set())

    def test_some_include_less(self):
        wrong = set()
        for path in [*sources("server"), *sources("client")]:
            name = str(path.relative_to(ROOT))
            parts = [part for part in ONLY if name.startswith(part)]
            if parts:
                wrong |= {f"{name} includes {header}" for header in includes(path)
                          if not header.startswith(ONLY[max(parts, key=len)])}
        self.assertEqual(wrong, set())


if __name__ == "__main__":
    unittest.main()
