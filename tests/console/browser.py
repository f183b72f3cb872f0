"""Chromium without a window: one for all tests, driven as a user does it, by the names of
buttons and fields and by the text of the page."""

import contextlib
import shutil
import time

PATIENCE_SECONDS = 60

# Keys, as WebDriver sends them: Ctrl and A, and the end of Ctrl.
SELECT_ALL = "\ue009a\ue000"
BACKSPACE = "\ue003"

# Debian's packages, and what of them is needed.
PROGRAMS = {"chromium": "chromium", "chromedriver": "chromium-driver"}


def lacking():
    """The packages of Debian that are not here."""
    packages = [package for program, package in PROGRAMS.items() if not shutil.which(program)]
    try:
        import selenium  # noqa: F401 pylint: disable=import-outside-toplevel,unused-import
    except ImportError:
        packages.append("python3-selenium")
    return packages


def _start():
    # pylint: disable=import-outside-toplevel
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in ("--headless=new", "--no-sandbox", "--no-proxy-server",
                     "--disable-dev-shm-usage", "--disable-background-networking"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)


def quoted(text):
    """A string of XPath, which has no escapes."""
    parts = text.split('"')
    return "concat(" + ", '\"', ".join(f'"{part}"' for part in parts) + ', "")'


class Browser:
    """A tab."""

    def __init__(self):
        self.driver = _start()

    def close(self):
        self.driver.quit()

    def open(self, url):
        # What is after the # alone would load nothing.
        self.driver.get("about:blank")
        self.driver.get(url)

    @contextlib.contextmanager
    def another_tab(self):
        """In front of this one until the block ends."""
        own = self.driver.current_window_handle
        self.driver.switch_to.new_window("tab")
        try:
            yield
        finally:
            self.driver.close()
            self.driver.switch_to.window(own)

    def go(self, hash_):
        """To another view of the page that is open."""
        self.run("location.hash = arguments[0]", hash_)

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def resize(self, width, height):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def text(self):
        return self.run("return document.body.innerText")

    def wait(self, condition, what):
        """Until `condition()` is true, which it returns. The page may replace what it is
        about meanwhile."""
        from selenium.common.exceptions import WebDriverException  # pylint: disable=import-outside-toplevel
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            with contextlib.suppress(WebDriverException):
                found = condition()
                if found:
                    return found
            if time.monotonic() > until:
                raise AssertionError(f"not seen: {what}; the page shows:\n{self.text()}")
            time.sleep(0.02)

    def wait_for_text(self, text):
        self.wait(lambda: text in self.text(), text)

    def wait_without_text(self, text):
        self.wait(lambda: text not in self.text(), f"the end of {text}")

    def _displayed(self, xpath):
        return (element for element in self.driver.find_elements("xpath", xpath)
                if element.is_displayed())

    def find_all(self, xpath):
        """Those that are displayed."""
        return list(self._displayed(xpath))

    def element(self, xpath, what):
        return self.wait(lambda: next(self._displayed(xpath), None), what)

    def buttons(self, within=""):
        """The names of all buttons that are displayed, below this XPath."""
        return [button.accessible_name for button in self.find_all(f"{within}//button")]

    def click(self, name, within=""):
        """The button or link of this name, below this XPath; the last one, which is that of a
        dialog."""
        named = f"[normalize-space()={quoted(name)} or @aria-label={quoted(name)}]"
        xpath = f"{within}//button{named} | {within}//a{named}"
        def click():
            found = [each for each in self.find_all(xpath) if each.is_enabled()]
            if found:
                found[-1].click()
            return bool(found)
        self.wait(click, f"the button {name}")

    def field(self, label):
        """The field with this label."""
        text = quoted(label)
        labelled = f"//label[contains(normalize-space(), {text})]"
        return self.element(
            f"//*[self::input or self::select or self::textarea][@aria-label={text} or "
            f"@id={labelled}/@for] | {labelled}//*[self::input or self::select or self::textarea]",
            f"the field {label}")

    def type(self, label, text):
        # As a user does it: clear() of the driver is no input.
        self.field(label).send_keys(SELECT_ALL + (text or BACKSPACE))

    def show_values(self):
        """Which are hidden in a new tab."""
        switch = self.field("Show values")
        if not switch.is_selected():
            switch.click()

    def row(self, *texts):
        """An XPath of the rows of tables that have all of these texts."""
        return "//tr" + "".join(f"[contains(normalize-space(), {quoted(text)})]"
                                for text in texts)

    def wait_for_row(self, *texts):
        return self.element(self.row(*texts), f"a row with {texts}")

    def errors(self):
        """What its console has had since this was asked last. Not that a call of the API was
        answered with an error: the browser notes that whatever the page makes of it."""
        return [entry["message"] for entry in self.driver.get_log("browser")
                if entry["level"] in ("SEVERE", "WARNING")
                and not (entry["source"] == "network" and "/api/" in entry["message"])]
