"""One key's life: put, renewed, dead, settled."""

import base64

from page_case import PageCase


def hash_of(name, key):
    return f"/key/{name}/{base64.urlsafe_b64encode(key.encode()).decode().rstrip('=')}"


class KeyTest(PageCase):
    def setUp(self):
        super().setUp()
        self.ctl("ns", "create", "orders", "--ttl", "10s", "--buckets", "11", "--change-retention", "1h")
        self.ctl("ns", "group-create", "orders", "billing")

    def moments(self):
        return self.page.run("return [...document.querySelectorAll('.moment strong')].map((each) => each.textContent)")

    def wait_for_moments(self, *titles):
        self.page.wait(lambda: self.moments() == list(titles), f"the moments {titles}")

    def test_follows_a_key_from_its_put_to_its_settlement(self):
        self.ctl("put", "-n", "orders", "order-1", "pending")
        self.ctl("put", "-n", "orders", "order-10", "another, with the same prefix")
        self.open(hash_of("orders", "order-1"))
        self.wait_for_moments("Put", "Deadline")
        self.ctl.advance("5s")
        self.page.wait_for_text("5s left of 10s")
        self.ctl("touch", "-n", "orders", "order-1")
        self.wait_for_moments("Put", "Renewed", "Deadline")
        self.ctl.advance("10s")
        self.wait_for_moments("Put", "Renewed", "Died: expired", "Unsettled in billing")
        self.page.wait_for_text("There is no live entry of this key now")
        self.page.wait_for_text("1 unsettled event")
        self.ctl("fetch", "orders", "--group", "billing")
        self.wait_for_moments("Put", "Renewed", "Died: expired")
        self.page.wait_for_text("nothing unsettled")
        self.page.click("Put it")
        self.page.type("Value", "again")
        self.page.click("Put it", within="//dialog")
        self.wait_for_moments("Put", "Renewed", "Died: expired", "Put", "Deadline")

    def test_asks_for_a_key(self):
        self.open("/key/orders")
        self.page.type("Key", "order 7/ü")
        self.page.click("Show its life")
        self.page.wait_for_text("order 7/ü")
        self.page.wait_for_text("Nothing is known of this key")
