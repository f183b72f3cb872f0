"""The overview: the wheel of a namespace, storms, the cards of many namespaces, the journal."""

import tempfile

from page_case import PageCase
from support.server import Server
from world import Console, TIMECACHED, base64


def puts(console, name, count, ttl):
    """Entries that die together."""
    console.call("TimeCacheService/Execute", {"namespace": name, "operations": [
        {"put": {"key": base64(f"key-{i}"), "value": base64("v"), "ttl": ttl}}
        for i in range(count)]})


class OverviewTest(PageCase):
    def setUp(self):
        super().setUp()
        self.ctl("ns", "create", "carts", "--ttl", "10s", "--buckets", "11")
        self.ctl("put", "-n", "carts", "cart-1", "v")
        self.ctl("put", "-n", "carts", "cart-2", "v")

    def wheel(self):
        return self.page.run("return document.querySelector('.hero svg')?.getAttribute('aria-label') ?? ''")

    def wait_for_wheel(self, label):
        self.page.wait(lambda: self.wheel().startswith(label), f"the wheel: {label}")

    def degrees(self):
        return float(self.page.run(
            "return (document.querySelector('.hero svg g').getAttribute('transform') ?? 'rotate(0)')"
            ".match(/[-\\d.]+/)[0]"))

    def test_the_wheel_turns_with_the_servers_clock(self):
        self.open("/")
        self.wait_for_wheel("carts: 2 entries")
        first = self.page.run("return document.querySelector('.hero .wheel-bar[d^=M]').getAttribute('d')")
        self.ctl.advance("5s")
        # What is five of eleven seconds nearer is drawn elsewhere, or the wheel is turned.
        self.page.wait(lambda: self.degrees() < -100 or self.page.run(
            "return document.querySelector('.hero .wheel-bar[d^=M]')?.getAttribute('d')") not in (None, first),
                       "a turn of the wheel")
        self.ctl.advance("6s")
        self.wait_for_wheel("carts: no entries")
        self.page.wait_for_text("nothing to die")

    def test_says_what_a_bar_of_the_wheel_is(self):
        self.open("/")
        self.wait_for_wheel("carts: 2 entries")
        self.page.run("document.querySelector('.hero svg').focus()")
        self.page.run("document.querySelector('.hero svg').dispatchEvent("
                      "new KeyboardEvent('keydown', {key: 'ArrowRight'}))")
        self.page.wait_for_text("within 1s: 2 entries, 14 B")

    def test_announces_a_storm(self):
        console = self.open("/")
        puts(console, "carts", 1_500, "4s")
        self.page.wait_for_text("1,500 entries")
        self.page.wait_for_text("times the mean")
        # Only the wheels that are on the screen ask.
        self.page.run("document.querySelector('article').scrollIntoView()")
        self.page.wait_for_text("storm in 3s")

    def test_shows_another_namespace_at_a_click(self):
        self.ctl("ns", "create", "locks", "--ttl", "5s")
        self.open("/")
        self.wait_for_wheel("carts")
        self.page.click("Show the wheel of locks")
        self.wait_for_wheel("locks: no entries")
        self.page.click("Open namespace")
        self.page.wait_for_text("There are no entries")

    def test_pages_and_filters_many_namespaces(self):
        console = self.start(Console(self.server.address))
        for i in range(50):
            console.call("NamespaceService/CreateNamespace",
                         {"name": f"tenant-{i:02}", "options": {"numShards": 1}})
        self.open("/", console)
        self.page.wait_for_text("1–24 of 52")
        self.assertEqual(len(self.page.find_all("//article")), 24)
        self.page.click("Next page")
        self.page.click("Next page")
        self.page.wait_for_text("49–52 of 52")
        self.page.type("Filter by name", "nt-07")
        self.page.wait(lambda: len(self.page.find_all("//article")) == 1, "one card")
        self.page.type("Filter namespaces", "nt-1")
        self.page.wait_for_text("10 of 52")

    def test_makes_a_namespace(self):
        self.open("/")
        self.page.click("New namespace")
        self.page.type("Name", "made-here")
        self.page.type("Time to live", "soon")
        self.page.click("Make it")
        self.page.wait_for_text("is no duration")
        self.page.type("Time to live", "1h30m")
        self.page.click("Make it")
        self.page.wait_for_text("made-here is made")
        self.assertEqual(self.ctl.json("ns", "get", "made-here")["options"]["ttl_ms"], 5_400_000)


class JournalTest(PageCase):
    def make_server(self):
        directory = self.programs.enter_context(tempfile.TemporaryDirectory())
        return Server(TIMECACHED, "--journal", directory, listen="127.0.0.1:0")

    def test_shows_the_journal(self):
        self.ctl("ns", "create", "orders", "--durability", "sync")
        self.open("/")
        self.page.wait_for_text("Appends a commit")
        self.page.wait_for_text("writing")
