"""The tape: deaths as they come, stopped, wound back, filtered, lost."""

from page_case import PageCase

MARKUP = "<img src=x onerror=document.title='run'><b>bold</b>"


class TapeTest(PageCase):
    def setUp(self):
        super().setUp()
        self.ctl("ns", "create", "orders", "--ttl", "10s", "--buckets", "11")

    def open_tape(self, name):
        self.open(f"/tape/{name}")
        self.page.show_values()
        self.page.wait_for_text("Live")

    def put(self, key, value="pending"):
        self.ctl("put", "-n", "orders", key, value)

    def test_an_entry_comes_on_the_tape_when_it_dies(self):
        self.open_tape("orders")
        self.put("order-1", '{"state": "pending"}')
        self.ctl.advance("5s")
        self.put("order-2")
        self.assertNotIn("order-1", self.page.text())
        self.ctl.advance("5s")
        row = self.page.wait_for_row("order-1", '{"state": "pending"}', "expired")
        self.assertIn("00:00:10.000", row.text)
        self.assertNotIn("order-2", self.page.text())
        self.ctl.advance("5s")
        self.page.wait_for_row("order-2")
        self.page.click('{"state": "pending"}')
        self.page.wait_for_text('{\n  "state": "pending"\n}')
        self.page.click("Close")
        self.page.field("Show values").click()
        self.page.wait_without_text("pending")

    def test_markup_in_keys_and_values_is_shown_as_text(self):
        self.open_tape("orders")
        self.put(MARKUP, MARKUP)
        self.ctl.advance("10s")
        self.page.wait_for_row(MARKUP)
        self.page.click(MARKUP, within="//td[3]")
        self.page.wait_for_text("Published")
        self.assertIn(MARKUP, self.page.text())
        self.assertEqual(self.page.run("return document.querySelectorAll('main img, dialog img').length"), 0)
        self.assertNotEqual(self.page.run("return document.title"), "run")

    def test_a_paused_tape_goes_on_where_it_was(self):
        self.open_tape("orders")
        self.put("order-1")
        self.ctl.advance("10s")
        self.page.wait_for_row("order-1")
        self.page.click("Pause")
        self.page.wait_for_text("Paused")
        self.put("order-2")
        self.ctl.advance("10s")
        self.page.click("Resume")
        self.page.wait_for_row("order-2")
        self.assertEqual(len(self.page.find_all("//tbody/tr")), 2)

    def test_a_tape_that_is_not_seen_leaves_the_stream_and_loses_nothing(self):
        self.open_tape("orders")
        self.watched_by(1)
        with self.page.another_tab():
            self.watched_by(0)
            self.put("order-1")
            self.ctl.advance("10s")
        self.page.wait_for_row("order-1")
        self.watched_by(1)

    def watched_by(self, count):
        def watchers():
            return self.ctl.json("ns", "get", "orders")["statistics"]["watchers"]
        self.page.wait(lambda: watchers() == count, f"{count} streams on the namespace")

    def test_rewinds_within_what_is_retained(self):
        self.put("order-1")
        self.ctl.advance("60s")
        self.put("order-2")
        self.ctl.advance("15s")
        self.open_tape("orders")
        self.assertNotIn("order-2", self.page.text())
        self.page.click("Rewind")
        self.page.wait_for_row("order-2")
        self.assertNotIn("order-1", self.page.text())
        self.page.run("document.querySelector('[aria-label=\"How far to rewind\"]').value = '0'")
        self.page.click("Rewind")
        self.page.wait_for_row("order-1")
        self.page.wait_for_row("order-2")
        self.assertEqual(len(self.page.find_all("//tbody/tr")), 2)

    def test_filters_by_prefix_text_and_cause(self):
        self.open_tape("orders")
        for key in "a-1", "a-2", "b-1":
            self.put(key, f"value of {key}")
        self.ctl.advance("10s")
        self.page.wait_for_row("b-1")
        self.page.type("Contains", "OF A-")
        self.page.wait_without_text("b-1")
        self.page.wait_for_row("a-1")
        self.page.type("Contains", "")
        self.page.wait_for_row("b-1")
        self.page.type("Key prefix", "b-\t")
        self.page.wait_for_text("Live")
        for key in "a-3", "b-2":
            self.put(key)
        self.ctl.advance("10s")
        self.page.wait_for_row("b-2")
        self.assertNotIn("a-3", self.page.text())

    def test_says_how_many_events_were_lost(self):
        self.ctl("ns", "create", "short", "--ttl", "1s", "--event-retention", "5s")
        self.open_tape("short")
        self.page.click("Pause")
        for i in range(7):
            self.ctl("put", "-n", "short", f"lost-{i}", "v")
        self.ctl.advance("20s")
        self.ctl.advance("20s")
        self.ctl("put", "-n", "short", "seen", "v")
        self.page.click("Resume")
        self.page.wait_for_text("7 events were lost here")
        self.ctl.advance("2s")
        self.page.wait_for_row("seen")
