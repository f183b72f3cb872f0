"""Consumer groups: what they hold, settled by hand; dead letters, returned."""

from page_case import PageCase
from world import Console, base64


class GroupsTest(PageCase):
    def setUp(self):
        super().setUp()
        self.ctl("ns", "create", "failed", "--ttl", "30d", "--max-ttl", "30d")
        self.ctl("ns", "create", "orders", "--ttl", "10s", "--dead-letter", "failed")
        self.ctl("ns", "group-create", "orders", "billing")

    def let_die(self, *keys):
        for key in keys:
            self.ctl("put", "-n", "orders", key, f"value of {key}")
        self.ctl.advance("11s")

    def give_up(self, *keys):
        chosen = [argument for key in keys for argument in ("--key", key)]
        self.ctl("ns", "group-settle", "orders", "billing", *chosen, "--terminate", "bad data")

    def statistics(self):
        return self.ctl.json("ns", "group-get", "orders", "billing")["statistics"]

    def act(self, name, *keys, within="//section[@aria-label='Unsettled events']"):
        """Chooses rows, presses the button, and the one of the dialog that asks."""
        for key in keys:
            self.page.element(f"//input[@aria-label='Choose {key}']", key).click()
        self.page.click(name, within=within)
        self.page.click(name, within="//dialog")

    def test_a_group_is_listed_and_what_it_holds_is_settled(self):
        self.let_die("order-1", "order-2")
        self.open("/groups/orders")
        self.page.wait_for_row("billing", "active")
        self.page.click("billing")
        self.page.wait_for_row("order-1", "ready")
        self.assertNotIn("value of order-1", self.page.text())
        self.page.show_values()
        self.page.wait_for_row("order-1", "value of order-1")
        self.act("Settle", "order-1")
        self.page.wait_for_text("1 event settled.")
        self.page.wait(lambda: not self.page.find_all(self.page.row("order-1")), "its row's end")
        self.page.wait_for_row("order-2")
        self.assertEqual(self.statistics()["acked"], 1)

    def test_events_in_flight_are_extended_delayed_and_put_back(self):
        self.let_die("order-1", "order-2", "order-3")
        self.ctl("fetch", "orders", "--group", "billing", "--no-ack", "--json")
        self.open("/groups/orders/billing")
        self.page.wait_for_row("order-1", "in flight", "a fetch")
        self.act("Extend", "order-1")
        self.page.wait_for_text("1 event extended.")
        self.page.element("//input[@aria-label='Choose order-2']", "the box").click()
        self.page.click("Deliver again")
        self.page.type("Delay", "1h")
        self.page.type("Reason", "bank is closed")
        self.page.click("Deliver again", within="//dialog")
        self.page.wait_for_row("order-2", "delayed", "bank is closed")
        self.act("Put back", "order-3")
        self.page.wait_for_text("1 event put back.")
        self.assertIn("order-3", self.ctl("scan", "-n", "orders"))
        self.page.type("Attempts, at least", "99\t")
        self.page.wait_for_text("nothing matches")

    def test_a_dead_letter_is_made_decoded_and_returned(self):
        self.let_die("order-1", "order-2")
        self.open("/groups/orders/billing")
        self.page.wait_for_row("order-1")
        self.page.element("//input[@aria-label='Choose order-1']", "the box").click()
        self.page.click("Dead-letter")
        self.page.type("Reason", "card stolen")
        self.page.click("Dead-letter", within="//dialog")
        self.page.wait_for_row("order-1", "terminated: card stolen")
        self.page.click("order-1", within="//section[@aria-label='Dead letters']")
        self.page.click("Show value")
        self.page.wait_for_text("value of order-1")
        self.page.click("Close")
        self.act("Return", "order-1", within="//section[@aria-label='Dead letters']")
        self.page.wait_for_text("1 dead letter returned.")
        self.page.wait_for_text("No dead letters.")
        entry = self.ctl.json("get", "-n", "orders", "order-1")
        self.assertEqual(entry["value"], "value of order-1")

    def test_dead_letters_are_returned_and_dropped_in_bulk(self):
        keys = [f"order-{i}" for i in range(5)]
        self.let_die(*keys)
        self.give_up(*keys)
        self.ctl("put", "-n", "orders", "order-0", "came again")
        self.open("/groups/orders")
        self.page.wait_for_row("order-4", "orders/billing")
        self.page.click("Return all")
        self.page.click("Return all", within="//dialog")
        self.page.wait_for_text("4 dead letters returned. 1 not: ")
        self.page.wait_for_row("order-0", "terminated: bad data")
        self.act("Drop", "order-0", within="//section[@aria-label='Dead letters']")
        self.page.wait_for_text("No dead letters.")
        self.assertEqual(self.ctl("scan", "-n", "failed"), "")
        self.assertEqual(len(self.ctl("scan", "-n", "orders").splitlines()), 5)

    def test_an_incomplete_gather_is_returned_with_its_parts(self):
        console = self.start(Console(self.server.address))
        part = {"namespace": "orders", "key": base64("basket"), "part": base64("goods"),
                "value": base64("packed"), "expectedNames": [base64("goods"), base64("payment")]}
        console.call("TimeCacheService/Gather", part)
        self.ctl.advance("11s")
        self.give_up("basket")
        self.open("/groups/orders/billing", console)
        self.page.show_values()
        self.page.wait_for_row("basket", "1 part of 2: goods")
        self.act("Return", "basket", within="//section[@aria-label='Dead letters']")
        self.page.wait_for_text("No dead letters.")
        part |= {"part": base64("payment"), "value": base64("paid")}
        complete = console.call("TimeCacheService/Gather", part)["parts"]["parts"]
        self.assertEqual([each["name"] for each in complete],
                         [base64("goods"), base64("payment")])

    def test_a_group_is_moved_after_confirmation(self):
        self.let_die("order-1")
        self.ctl("fetch", "orders", "--group", "billing")
        self.assertEqual(self.statistics()["acked"], 1)
        self.open("/groups/orders/billing")
        self.page.wait_for_text("All is settled")
        self.page.click("Seek")
        self.page.click("Cancel")
        self.page.click("Seek")
        self.page.run("const select = document.querySelector('dialog select'); select.value = 'earliest';"
                      "select.dispatchEvent(new Event('change'))")
        self.page.click("Move")
        self.page.wait_for_text("Moved: 1 to deliver, 0 dropped.")
        self.page.wait_for_row("order-1", "ready")

    def test_a_group_that_is_not_there_is_said(self):
        self.open("/groups/orders/nobody")
        self.page.wait_for_text("no consumer group nobody")
