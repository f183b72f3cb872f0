"""An entry's way through all views: put, dead on the tape, settled or given up, returned."""

from page_case import PageCase
from world import Console


class LifeTest(PageCase):
    def test_an_entry_is_put_dies_is_given_up_and_returns(self):
        self.ctl("ns", "create", "failed", "--ttl", "30d", "--max-ttl", "30d")
        self.ctl("ns", "create", "orders", "--ttl", "10s", "--dead-letter", "failed")
        self.ctl("ns", "group-create", "orders", "billing")
        console = self.start(Console(self.server.address))
        self.open("/ns/orders", console)
        self.page.click("Put an entry")
        self.page.type("Key", "order-1")
        self.page.type("Value", "pending")
        self.page.click("Put it")
        self.page.wait_for_row("order-1", "10s")
        self.page.go("#/key/orders/b3JkZXItMQ")
        self.page.wait_for_text("Deadline")
        self.page.go("#/tape/orders")
        self.page.wait_for_text("Live")
        self.ctl.advance("11s")
        self.page.wait_for_row("order-1", "expired")
        self.page.click("order-1")
        self.page.wait_for_text("Died: expired")
        self.page.wait_for_text("1 unsettled event")
        self.page.go("#/groups/orders/billing")
        self.page.element("//input[@aria-label='Choose order-1']", "its box").click()
        self.page.click("Dead-letter")
        self.page.click("Dead-letter", within="//dialog")
        letters = "//section[@aria-label='Dead letters']"
        self.page.element(f"{letters}//input[@aria-label='Choose order-1']", "its box").click()
        self.page.click("Return", within=letters)
        self.page.click("Return", within="//dialog")
        self.page.wait_for_text("No dead letters.")
        self.page.go("#/ns/orders")
        self.page.wait_for_row("order-1", "10s")
