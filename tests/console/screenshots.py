"""Draws the console for the documents: screenshots.py [DIRECTORY]

Without a directory: the figures of docs/figures, on a server with some seconds of a shop's
life. With one: all views in it, at 360, 1280 and 1920 px, to look for what is cut off,
overlapping or unreadable."""

import base64
import contextlib
import pathlib
import subprocess
import sys
import time

from browser import Browser, lacking
from world import Console, Ctl, ENVIRONMENT, Server, TIMECACHED
from world import base64 as base64text

FIGURES = pathlib.Path(__file__).resolve().parents[2] / "docs/figures"
WIDTHS = (360, 1280, 1920)
HEIGHTS = {360: 780, 1280: 800, 1920: 1080}
# Name of the figure: view, width, theme.
DOCUMENTED = {
    "console-overview": ("overview", 1280, "light"),
    "console-tape": ("tape", 1280, "light"),
    "console-groups": ("groups", 1280, "dark"),
    "console-try": ("try", 1280, "light"),
}
# What a view is drawn for: its hash, and a text that it shows once it is complete.
VIEWS = {
    "overview": ("/", "sessions"),
    "namespace": ("/ns/carts", "cart-"),
    "tape": ("/tape/carts", "Live"),
    "groups": ("/groups/orders/billing", "bank is closed"),
    "key": ("/key/orders/" + base64.urlsafe_b64encode(b"order-9001").decode().rstrip("="), "order-9001"),
    "try": ("/try", "released"),
}
# For rates and charts to have something to show.
LIFE_SECONDS = 20


class Shop:
    """A server with namespaces that are used."""

    def __init__(self, programs):
        self.programs = programs
        self.server = programs.enter_context(Server(TIMECACHED))
        self.ctl = Ctl(self.server.address)
        for name, *options in (("sessions", "--ttl", "30m"), ("presence", "--ttl", "5s"),
                               ("orders-failed", "--ttl", "30d", "--max-ttl", "30d"),
                               ("orders", "--ttl", "20s", "--dead-letter", "orders-failed"),
                               ("carts", "--ttl", "8s", "--buckets", "41")):
            self.ctl("ns", "create", name, *options)
        self.ctl("ns", "group-create", "orders", "billing", "--retry-delay", "10m")
        self.ctl("ns", "group-create", "orders", "mail")
        self._background("watch", "orders", "--group", "billing", "--jobs", "4", "--exec", "sleep 60")
        self._orders()
        self._load("presence", "--rate", "300", "--keys", "900")
        self._background("watch", "orders", "--group", "mail", "--exec", "true")
        self._carts()
        self.console = programs.enter_context(Console(self.server.address))
        self._sessions()
        self._load("sessions", "--rate", "400", "--keys", "4000", "--value-bytes", "220")

    def _sessions(self):
        """More of them soon, and a storm."""
        for batch in range(8):
            puts = [{"put": {"key": base64text(f"session-{batch}-{i}"), "value": base64text("x" * 200),
                             "ttl": f"{60 + (i * i * 1700 // 250000) + batch}s"}} for i in range(500)]
            puts += [{"put": {"key": base64text(f"guest-{batch}-{i}"), "value": base64text("guest"),
                              "ttl": "1080s"}} for i in range(90)]
            self.console.call("TimeCacheService/Execute",
                              {"namespace": "sessions", "operations": puts})

    def _background(self, *arguments):
        process = subprocess.Popen([*self.ctl.command, *arguments], env=ENVIRONMENT,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        self.programs.callback(process.wait)
        self.programs.callback(process.terminate)

    def _load(self, name, *options):
        self._background("bench", "-n", name, "--batch", "1", "--seconds", "600",
                         "--mix", "put=60,get=40", *options)

    def _put(self, name, key, value, ttl):
        self.ctl("put", "-n", name, key, value, "--ttl", ttl)

    def _orders(self):
        for i in range(12):
            self._put("orders", f"order-{4100 + i}", '{"customer":"Ada","amount":%d}' % (40 + i), "1s")
        self._put("orders", "order-9001", '{"customer":"Ben","amount":12}', "1h")
        while self.ctl("ns", "group-unsettled", "orders", "billing").count("in-flight") < 4:
            time.sleep(0.1)
        self.ctl("ns", "group-settle", "orders", "billing", "--key", "order-4101", "--key", "order-4102",
                 "--nack", "--reason", "bank is closed")
        self.ctl("ns", "group-settle", "orders", "billing", "--key", "order-4103", "--key",
                 "order-4104", "--terminate", "card was stolen")

    def _carts(self):
        """A cart every half a second, for a minute."""
        lines = "".join(f'cart-{1000 + i}\t{{"customer":"{name}","items":{i % 7 + 1}}}\n'
                        for i, name in enumerate(["Ada", "Ben", "Cleo", "Dan", "Eva"] * 40))
        for i, line in enumerate(lines.splitlines()):
            key, value = line.split("\t")
            self._put("carts", key, value, f"{4000 + 250 * i}ms")


class Camera:
    def __init__(self, page, console):
        self.page, self.console = page, console

    def show(self, view):
        hash_, text = VIEWS[view]
        # What the overview has seen, it has seen in this page.
        self.page.go("#" + hash_)
        if view == "try":
            self.page.click("Start")
        self.page.wait_for_text(text)
        if view in ("tape", "groups"):
            self.page.show_values()
        if view == "tape":
            self.page.click("Rewind")
            self.page.wait(lambda: len(self.page.find_all("//tbody/tr")) > 12, "some deaths")

    def take(self, path, width, theme):
        """At its width, scrolled to the top. Of a page that is wider than its window nothing is
        drawn: that is an error."""
        self.page.run("document.documentElement.dataset.theme = arguments[0];"
                      "document.dispatchEvent(new Event('themechange'))", theme)
        self.page.resize(width, HEIGHTS[width])
        self.page.run("window.scrollTo(0, 0)")
        # Two frames later all is drawn at its size.
        self.page.driver.execute_async_script(
            "const done = arguments[0];"
            "requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 300)))")
        wide = self.page.run("return document.documentElement.scrollWidth")
        if wide > width:
            raise RuntimeError(f"{path}: the page is {wide} px wide in a window of {width}")
        shot = self.page.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
        path.write_bytes(base64.b64decode(shot["data"]))
        print(f"{path}  {path.stat().st_size // 1024} KiB")


def main():
    packages = lacking()
    if packages:
        sys.exit(f"not installed: apt-get install {' '.join(packages)}")
    with contextlib.ExitStack() as programs:
        page = Browser()
        programs.callback(page.close)
        shop = Shop(programs)
        camera = Camera(page, shop.console)
        page.open(f"{camera.console.url}&to=/")
        page.wait_for_text("sessions")
        time.sleep(LIFE_SECONDS)
        if len(sys.argv) == 1:
            for name, (view, width, theme) in DOCUMENTED.items():
                camera.show(view)
                camera.take(FIGURES / f"{name}.png", width, theme)
            return
        directory = pathlib.Path(sys.argv[1])
        directory.mkdir(parents=True, exist_ok=True)
        for view in VIEWS:
            camera.show(view)
            for width in WIDTHS:
                camera.take(directory / f"{view}-{width}.png", width, "dark" if width == 1280 else "light")


if __name__ == "__main__":
    main()
