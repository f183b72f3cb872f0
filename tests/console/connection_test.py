"""The console's own login, and servers and consoles that go away."""

import contextlib

from page_case import PageCase
from world import Console, Ctl, virtual_server


class ConnectionTest(PageCase):
    def test_without_a_token_the_page_asks_for_one(self):
        console = self.start(Console(self.server.address))
        self.page.open(console.origin + "/")
        self.page.run("sessionStorage.clear()")
        self.page.open(console.origin + "/")
        self.page.wait_for_text("Login token")
        self.page.type("Login token", "wrong")
        self.page.click("Log in")
        self.page.wait_for_text("does not accept this token")
        self.page.type("Login token", console.url)
        self.page.click("Log in")
        self.page.wait_for_text("default")
        self.assertNotIn("token", self.page.run("return location.href"))

    def test_a_server_that_dies_and_returns(self):
        address = self.server.address
        self.ctl("ns", "create", "orders", "--ttl", "10s")
        self.open("/tape/orders")
        self.page.wait_for_text("Live")
        self.ctl("put", "-n", "orders", "order-1", "pending")
        self.ctl.advance("11s")
        self.page.wait_for_row("order-1")
        self.server.process.kill()
        self.server.process.wait()
        self.page.wait_for_text("Not reachable, trying again.")
        self.page.wait_for_text("Waiting for the server")
        self.page.wait_for_row("order-1")
        self.start(virtual_server(listen=address))
        Ctl(address)("ns", "create", "orders", "--ttl", "10s")
        self.page.wait_without_text("Not reachable")
        self.page.wait_for_text("Another log begins here")
        self.ctl("put", "-n", "orders", "order-2", "pending")
        self.ctl.advance("11s")
        self.page.wait_for_row("order-2")

    def test_groups_go_on_after_a_restart(self):
        address = self.server.address
        self.ctl("ns", "create", "orders", "--ttl", "10s")
        self.ctl("ns", "group-create", "orders", "billing")
        self.open("/groups/orders/billing")
        self.page.wait_for_text("All is settled")
        self.server.process.kill()
        self.server.process.wait()
        self.page.wait_for_text("Not reachable, trying again.")
        self.start(virtual_server(listen=address))
        ctl = Ctl(address)
        ctl("ns", "create", "orders", "--ttl", "10s")
        ctl("ns", "group-create", "orders", "billing")
        ctl("put", "-n", "orders", "order-1", "pending")
        ctl.advance("11s")
        self.page.wait_for_row("order-1", "ready")

    def test_a_tape_beyond_the_streams_that_a_console_has(self):
        console = self.start(Console(self.server.address))
        with contextlib.ExitStack() as others:
            for _ in range(24):
                others.enter_context(console.stream(
                    "TimeCacheService/WatchExpired", {"namespaces": ["default"]}))
            self.open("/tape/default", console)
            self.page.wait_for_text("close other tabs of it")
        self.page.wait_for_text("Live")
        self.page.wait_without_text("close other tabs of it")

    def test_a_console_that_ends_is_said(self):
        console = self.open("/")
        self.page.wait_for_text("default")
        console.process.terminate()
        self.page.wait_for_text("Is it still running?")
