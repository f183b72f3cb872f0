"""server/service reaches the engine through Store, and sees nothing behind it; the clients see
of the server only what they share with it, and the journal's tools."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The store's face and its value types; errors, checks, time and the memory of the process.
ALLOWED = {
    "server/engine/" + name + ".h" for name in (
        "check", "clock", "error", "memory_budget", "namespace_options", "operation", "readers",
        "scan", "store", "store_types",
        "expiry/event_batch", "expiry/expiry_types", "groups/group_types",
        "map/gathered_parts")
}
# What stands behind it.
HIDDEN = re.compile(
    r"\b(TimeCacheMap|Shard|Registry|Reaper|ExpiryLog|ConsumerGroups?|GroupMember"
    r"|ExpiringCursor|ExpiringFeed|LocalStore)\b")
# What of the server timecachectl uses besides server/common: what works on the
# files of a journal or of a dump, without a server.
TOOLS = {f"server/journal/{name}.h"
         for name in ("coding", "backup/backup_archive", "local/crc32c", "local/file_system",
                      "backup/journal_copy", "local/journal_directory",
                      "local/journal_tools")}


def server_includes_of(path):
    return set(re.findall(r'^#include "(server/[^"]+)"', path.read_text(), re.MULTILINE))


def includes_of(path):
    return {header for header in server_includes_of(path) if header.startswith("server/engine/")}


def hidden_in(path):
    code = re.sub(r"//.*", "", path.read_text())
    return {f"{path.relative_to(ROOT)}: {name}" for name in HIDDEN.findall(code)}


class LayersTest(unittest.TestCase):
    def test_the_service_includes_only_the_face_of_the_store(self):
        folder = ROOT / "server" / "service"
        sources = [*folder.rglob("*.h"), *folder.rglob("*.cc")]
        self.assertGreater(len(sources), 100)
        wrong = {f"{path.relative_to(ROOT)}: {header}"
                 for path in sources for header in includes_of(path) - ALLOWED}
        self.assertEqual(wrong, set())

    def test_the_clients_include_only_what_they_share_with_the_server(self):
        folder = ROOT / "client"
        sources = [*folder.rglob("*.h"), *folder.rglob("*.cc")]
        self.assertGreater(len(sources), 100)
        wrong = {f"{path.relative_to(ROOT)}: {header}"
                 for path in sources for header in server_includes_of(path)
                 if not header.startswith("server/common/")
                 and not (header in TOOLS and folder / "cli" in path.parents)}
        self.assertEqual(wrong, set())

    def test_the_journal_and_its_tools_include_nothing_of_the_engine(self):
        seen = set()
        left = set(TOOLS)
        while left:
            header = left.pop()
            seen.add(header)
            left |= server_includes_of(ROOT / header) - seen
        self.assertEqual({header for header in seen if "/journal/" not in header
                          and "/common/" not in header}, set())

    def test_the_face_and_what_it_includes_name_nothing_behind_it(self):
        seen = set()
        left = set(ALLOWED)
        while left:
            header = left.pop()
            seen.add(header)
            left |= includes_of(ROOT / header) - seen
        self.assertEqual(set().union(*(hidden_in(ROOT / header) for header in seen)), set())


if __name__ == "__main__":
    unittest.main()
