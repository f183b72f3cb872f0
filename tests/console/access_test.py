"""Who may do what: with access rules the page offers what the caller may do, and no more."""

import pathlib
import tempfile

from page_case import PageCase
from world import Console, Ctl, token_file, virtual_server

ACCESS = """
principals:
  - {{name: operator, token_sha256: ["{operator}"]}}
  - {{name: reader, token_sha256: ["{reader}"]}}
  - {{name: stranger, token_sha256: ["{stranger}"]}}
rules:
  - {{principals: [operator], namespaces: ["*"], verbs: [read, write, watch, settle, admin]}}
  - {{principals: [reader], namespaces: [orders, failed], verbs: [read, watch]}}
"""
CONFIG = """
access: {{file: {access}}}
"""
CHANGING = {"Settle", "Deliver again", "Extend", "Put back", "Dead-letter", "Seek", "Pause",
            "Return", "Return all", "Drop", "Put", "Remove", "Touch", "Delete", "Edit", "Start",
            "Create namespace"}


class AccessTest(PageCase):
    def make_server(self):
        directory = self.start(tempfile.TemporaryDirectory(prefix="timecached-access-"))
        self.tokens, hashes = {}, {}
        for name in "operator", "reader", "stranger", "unknown":
            self.tokens[name], hashes[name] = token_file(directory, name)
        access, config = pathlib.Path(directory, "access"), pathlib.Path(directory, "config")
        access.write_text(ACCESS.format(**hashes))
        config.write_text(CONFIG.format(access=access))
        return virtual_server("--config", str(config))

    def setUp(self):
        super().setUp()
        self.ctl = Ctl(self.server.address, *self.options("operator"))
        self.ctl("ns", "create", "failed", "--ttl", "30d", "--max-ttl", "30d")
        self.ctl("ns", "create", "orders", "--ttl", "10s", "--dead-letter", "failed")
        self.ctl("ns", "group-create", "orders", "billing")
        for key in "order-1", "order-2":
            self.ctl("put", "-n", "orders", key, "pending")
        self.ctl.advance("11s")
        self.ctl("ns", "group-settle", "orders", "billing", "--key", "order-2", "--terminate", "bad")
        self.ctl("put", "-n", "orders", "order-3", "alive")

    def options(self, principal):
        return "--token-file", self.tokens[principal], "--allow-plaintext-token"

    def console_of(self, principal, *flags):
        return self.start(Console(self.server.address, *flags, options=self.options(principal)))

    def expect_a_readers_view(self, console):
        """All is shown, and nothing offers to change it."""
        views = [("/groups/orders", "billing"), ("/groups/orders/billing", "order-1"),
                 ("/groups/orders/billing", "order-2"), ("/ns/orders", "order-3"),
                 ("/tape/orders", "Rewind"), ("/try", "you may not"), ("/", "orders")]
        for hash_, text in views:
            self.open(hash_, console)
            self.page.wait_for_text(text)
            if hash_.startswith("/tape"):
                continue  # Its buttons stop the tape, not the group.
            self.assertEqual(CHANGING & set(self.page.buttons("//main")), set(), hash_)
            self.assertEqual(self.page.find_all("//input[@data-choose]"), [], hash_)

    def test_a_reader_sees_no_buttons(self):
        self.expect_a_readers_view(self.console_of("reader"))

    def test_a_read_only_console_has_no_buttons(self):
        self.expect_a_readers_view(self.console_of("operator", "--read-only"))

    def test_an_operator_has_them(self):
        self.open("/groups/orders/billing", self.console_of("operator"))
        self.page.wait_for_row("order-1")
        self.page.wait_for_row("order-2", "terminated: bad")
        self.assertLessEqual({"Settle", "Seek", "Return all"}, set(self.page.buttons("//main")))

    def test_a_stranger_sees_nothing(self):
        console = self.console_of("stranger")
        for hash_ in "/tape/orders", "/groups/orders", "/ns/orders", "/key/orders/b3JkZXItMw", "/":
            self.open(hash_, console)
            self.page.wait_for_text("stranger")
            self.page.wait(lambda: self.page.find_all("//main//*[contains(@class, 'view')]/*"), "a view")
            for secret in "order-1", "alive", "billing", "pending":
                self.assertNotIn(secret, self.page.text())
            self.assertEqual(CHANGING & set(self.page.buttons("//main")), set(), hash_)

    def test_one_that_the_server_does_not_know_is_told(self):
        self.open("/", self.console_of("unknown"))
        self.page.wait_for_text("No access")
