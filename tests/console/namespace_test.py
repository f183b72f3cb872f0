"""The view of a namespace: entries, their values, options, load and download."""

import json
import pathlib
import tempfile

from page_case import PageCase
from world import base64

MARKUP = "<img src=x onerror=document.title='run'>"


class NamespaceTest(PageCase):
    def setUp(self):
        super().setUp()
        self.ctl("ns", "create", "carts", "--ttl", "1m", "--buckets", "61")

    def put(self, key, value="pending"):
        self.ctl("put", "-n", "carts", key, value)

    def keys(self):
        return self.page.run("return [...document.querySelectorAll('.entries .link')].map((each) => each.textContent)")

    def search(self, how, text):
        # The driver types no choice of a select.
        self.page.run("const select = arguments[0]; select.value = arguments[1]",
                      self.page.field("How to search"), how)
        self.page.type("Search keys", text)
        self.page.click("Search")

    def test_lists_entries_with_what_remains_of_their_lives(self):
        self.put("cart:1")
        self.ctl.advance("15s")
        self.open("/ns/carts")
        row = self.page.wait_for_row("cart:1")
        self.assertIn("45s", row.text)
        self.assertIn("1970-01-01 00:01:00", row.text)
        self.ctl.advance("20s")
        self.page.wait_for_row("cart:1", "25s")

    def test_puts_touches_and_removes_after_a_confirmation(self):
        self.open("/ns/carts")
        self.page.wait_for_text("There are no entries")
        self.page.click("Put an entry")
        self.page.type("Key", MARKUP)
        self.page.type("Value", '{"a":12345678901234567890}')
        self.page.click("Put it")
        self.page.wait_for_row(MARKUP)
        self.ctl.advance("10s")
        self.page.click(MARKUP)
        self.page.wait_for_text("Remaining")
        self.assertNotIn("12345678901234567890", self.page.text())
        self.page.click("Show value")
        self.page.wait_for_text('"a": 12345678901234567890')
        self.page.click("Hex")
        self.page.wait_for_text("7b 22 61 22")
        self.page.click("Touch")
        self.page.type("Its own time to live", "20s")
        self.page.click("Touch it")
        self.page.wait_for_text("20s, its own")
        self.assertEqual(self.ctl.json("get", "-n", "carts", MARKUP)["own_ttl"], "20s")
        self.page.click("Remove")
        self.page.wait_for_text("Remove this entry?")
        self.page.click("Cancel")
        self.page.click("Remove")
        self.page.click("Remove it")
        self.page.wait_for_text("not there any more")
        self.page.click("Close")
        self.page.wait_for_text("There are no entries")
        self.assertEqual(self.page.run("return document.querySelectorAll('img[src=x]').length"), 0)

    def test_a_look_renews_nothing(self):
        self.ctl("ns", "update", "carts", "--sliding")
        self.put("cart:1")
        self.ctl.advance("30s")
        self.open("/ns/carts")
        self.page.click("cart:1")
        self.page.wait_for_text("Remaining")
        self.page.click("Close")
        self.ctl.advance("31s")
        self.search("exact", "cart:1")
        self.page.wait_for_text("No such key")

    def test_searches_and_shows_prefixes(self):
        for i in range(4):
            self.put(f"eu:cart:{i}")
        self.put("us:cart:9")
        self.open("/ns/carts")
        self.page.wait_for_row("us:cart:9")
        self.search("contains", "cart:9")
        self.page.wait_for_text("1 key found in 5 of 5 keys")
        self.search("prefix", "eu:")
        self.page.wait_for_text("4 shown")
        self.search("exact", "eu:cart:1")
        self.page.wait_for_text("1 shown")
        self.page.click("us:")
        self.page.wait(lambda: len(self.page.find_all("//table[@class='entries']/tbody/tr")) == 1
                       and self.page.find_all(self.page.row("us:cart:9")), "what begins with us:")

    def test_lists_all_entries_in_pages(self):
        console = self.open("/ns/carts")
        for i in range(0, 1_200, 400):
            console.call("TimeCacheService/Execute", {"namespace": "carts", "operations": [
                {"put": {"key": base64(f"cart:{n}"), "value": base64("v" * 3_000)}} for n in range(i, i + 400)]})
        self.search("prefix", "cart:")
        keys = set()
        shown = []
        while True:
            before = shown
            self.page.wait(lambda: before != self.keys() and "Reading" not in self.page.text(), "the next page")
            shown = self.keys()
            keys.update(shown)
            if not self.page.find_all("//button[normalize-space()='Next ›' and not(@disabled)]"):
                break
            self.page.click("Next ›")
        self.assertEqual(len(keys), 1_200)

    def test_explains_a_change_of_options_before_it_is_made(self):
        self.put("cart:1")
        self.open("/ns/carts")
        self.page.click("Edit")
        self.page.type("Time to live", "2m")
        self.page.type("Most entries", "many")
        self.page.click("Review the change")
        self.page.wait_for_text("is no whole number")
        self.page.type("Most entries", "0")
        self.page.click("Review the change")
        self.page.wait_for_text("1 entry that is there keeps its deadline")
        self.page.wait_for_text("Bucket width: 1s → 2s")
        self.assertEqual(self.ctl.json("ns", "get", "carts")["options"]["ttl_ms"], 60_000)
        self.page.click("Change it")
        self.page.wait_for_text("The options are changed")
        options = self.ctl.json("ns", "get", "carts")["options"]
        self.assertEqual((options["ttl_ms"], options["num_buckets"]), (120_000, 61))

    def test_downloads_what_it_loads(self):
        with tempfile.TemporaryDirectory() as directory:
            self.page.driver.execute_cdp_cmd("Browser.setDownloadBehavior",
                                             {"behavior": "allow", "downloadPath": directory})
            source = pathlib.Path(directory, "source.ndjson")
            lines = [{"key": f"cart:{i}", "value": "v", "ttl": "30s"} for i in range(1_200)]
            lines += [{"key_hex": "00ff", "value_base64": "/w=="}, {"key": "no value"}]
            source.write_text("\n".join(json.dumps(line) for line in lines))
            self.open("/ns/carts")
            self.page.wait_for_text("Load and download")
            self.page.driver.find_element("css selector", "input[type=file]").send_keys(str(source))
            self.page.click("Load it")
            self.page.wait_for_text("1,201 entries put, 1 error.")
            self.page.wait_for_text("Line 1202: no value")
            # A dialog of the system, which no driver can answer.
            self.page.run("window.showSaveFilePicker = undefined")
            self.page.click("Download")
            file = pathlib.Path(directory, "carts.ndjson")
            self.page.wait(file.exists, "the file")
            found = [json.loads(line) for line in file.read_text().splitlines()]
            self.assertEqual(found[0]["dump"]["namespace"], "carts")
            self.assertEqual(found[-1], {"dump_end": {"entries": 1_201}})
            self.assertIn({"key_base64": "AP8=", "value_base64": "/w==",
                           "deadline": "1970-01-01T00:01:00Z"}, found)
            self.ctl("ns", "create", "copy")
            self.ctl("load", "-n", "copy", str(file))
            self.assertEqual(self.ctl.json("size", "-n", "copy")["entries"], 1_201)

    def test_deletes_only_what_is_named(self):
        self.open("/ns/carts")
        self.page.click("Delete the namespace")
        self.page.type("Write carts to confirm", "cart")
        self.page.click("Delete it")
        self.page.wait_for_text("That is not its name")
        self.page.type("Write carts to confirm", "carts")
        self.page.click("Delete it")
        self.page.wait_for_text("carts is deleted")
        self.page.go("#/ns/carts")
        self.page.wait_for_text("There is no such namespace")
