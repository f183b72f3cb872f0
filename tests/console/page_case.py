"""What the tests of views have in common: one browser, whose errors are failures."""

import contextlib
import unittest

from browser import Browser
from world import Console, Ctl, virtual_server

_browsers = []


def close_browser():
    while _browsers:
        _browsers.pop().close()


class PageCase(unittest.TestCase):
    """A server on a virtual clock, `ctl` for it, and a page of it in `page`."""

    @classmethod
    def setUpClass(cls):
        if not _browsers:
            _browsers.append(Browser())
        cls.page = _browsers[0]

    def setUp(self):
        # What the test starts ends last: the page would note it.
        self.programs = contextlib.ExitStack()
        self.addCleanup(self.programs.close)
        self.addCleanup(self.page.open, "about:blank")
        self.addCleanup(self.expect_no_errors)
        self.page.errors()
        self.page.resize(1280, 900)
        self.server = self.start(self.make_server())
        self.ctl = Ctl(self.server.address)

    def make_server(self):
        return virtual_server()

    def expect_no_errors(self):
        self.assertEqual(self.page.errors(), [], "the browser's console")

    def start(self, program):
        return self.programs.enter_context(program)

    def open(self, hash_, console=None):
        """This view of a console, which is started unless it is given."""
        console = console or self.start(Console(self.server.address))
        self.page.open(f"{console.url}&to={hash_}")
        return console
