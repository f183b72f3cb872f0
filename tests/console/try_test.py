"""Try it: the saga, from its namespace to the end of it."""

from page_case import PageCase


class TryTest(PageCase):
    def namespaces(self):
        return [each["name"] for each in self.ctl.json("ns", "list")["namespaces"]]

    def test_orders_are_paid_or_expire_and_are_settled(self):
        self.open("/try")
        self.page.click("Start")
        self.page.wait_for_row("order-3", "Cleo", "waits")
        self.page.wait_for_row("order-3", "paid")
        [name] = [name for name in self.namespaces() if name.startswith("try-")]
        self.assertIn(name, self.page.text())
        self.page.wait_for_text("stands still")
        self.ctl.advance("11s")
        for order in "order-1", "order-2", "order-4", "order-5":
            self.page.wait_for_row(order, "released")
            self.page.wait_for_row(order, "customer")
        self.page.wait_for_text("Done: 4 orders expired")
        self.assertEqual(self.namespaces(), ["default"])

    def test_cleans_up_when_it_is_left(self):
        self.open("/try")
        self.page.click("Start")
        self.page.wait_for_row("order-1", "waits")
        self.page.go("#/tape/default")
        self.page.wait(lambda: self.namespaces() == ["default"], "the end of the namespace")

    def test_cleans_up_when_the_tab_is_closed(self):
        self.open("/try")
        self.page.click("Start")
        self.page.wait_for_row("order-1", "waits")
        self.page.open("about:blank")
        self.page.wait(lambda: self.namespaces() == ["default"], "the end of the namespace")
