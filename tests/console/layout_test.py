"""Every view, on a telephone, a desk and a wall: nothing makes the page wider than its window, and
whatever can be pressed or filled in has a name."""

from page_case import PageCase
from world import Console

WIDTHS = 360, 1280, 1920
# A key that has no place to break, and a long value.
KEY = "k" * 400
VALUE = '{"of": "' + "v" * 5000 + '"}'


class LayoutTest(PageCase):
    def setUp(self):
        super().setUp()
        self.ctl("ns", "create", "failed", "--ttl", "30d", "--max-ttl", "30d")
        self.ctl("ns", "create", "orders", "--ttl", "10s", "--dead-letter", "failed")
        self.ctl("ns", "group-create", "orders", "billing")
        for key in KEY, KEY + "given-up":
            self.ctl("put", "-n", "orders", key, VALUE)
        self.ctl.advance("11s")
        self.ctl("ns", "group-settle", "orders", "billing", "--key", KEY + "given-up",
                 "--terminate", "because " * 30)
        self.ctl("put", "-n", "orders", KEY, VALUE)

    def expect_names(self, hash_):
        for each in self.page.find_all("//button | //input | //select | //textarea | //a"):
            self.assertTrue(each.accessible_name, f"{hash_}: {each.get_attribute('outerHTML')}")

    def expect_fits(self, hash_):
        for width in WIDTHS:
            self.page.resize(width, 800)
            self.page.wait(lambda: self.page.run(  # It may be drawing itself anew.
                "return document.documentElement.scrollWidth <= innerWidth"), f"{hash_} in {width} px")

    def test_views_fit_their_windows(self):
        console = self.start(Console(self.server.address))
        self.open("/tape/orders", console)
        self.page.show_values()
        for hash_, text in (("/", "orders"), ("/ns/orders", KEY[:100]), ("/groups/orders", "billing"),
                            ("/groups/orders/billing", KEY), ("/key/orders", "The life of a key"),
                            ("/tape/orders", "Rewind"), ("/try", "Start")):
            self.page.go("#" + hash_)
            self.page.wait_for_text(text)
            if hash_.startswith("/tape"):
                self.page.run("document.querySelector('[aria-label=\"How far to rewind\"]').value = '0'")
                self.page.click("Rewind")
                self.page.wait_for_row(KEY)
            self.expect_names(hash_)
            self.expect_fits(hash_)
