"""Commands, flags, files and tests that the documents name exist."""

import os
import pathlib
import re
import subprocess
import unittest

from abuse import __main__ as abuse  # Registers all attacks.
from docs import markdown
from docs.markdown import DOCUMENTS

BUILD = pathlib.Path(os.environ["BUILD"])
PROGRAMS = {
    "timecached": [BUILD / "server" / "timecached"],
    "timecachectl": [BUILD / "client" / "cli" / "timecachectl"],
    "tc": [BUILD / "client" / "cli" / "timecachectl"],
}
WITH_LINKS = DOCUMENTS + [
    "CHANGELOG.md", "docs/BENCHMARKS.md", "docs/DESIGN.md", "docs/EDGE.md",
    "deploy/prometheus/METRICS.md",
    "deploy/prometheus/RUNBOOK.md"]
# Words of the documents that stand for names.
PLACEHOLDER = re.compile(r"[A-Z_]+$|\[.*\]$")


def help_of(*command):
    result = subprocess.run([*command, "--help"], capture_output=True, text=True, check=False)
    return result.stdout if result.returncode == 0 else None


def has_flag(text, flag):
    return re.search(rf"(?<![\w-]){re.escape(flag)}(?![\w-])", text) is not None


def subcommands(text):
    """Names of the commands that a help lists."""
    listed = text.partition("\nSubcommands:\n")[2].partition("\n\n")[0]
    return re.findall(r"^  ([a-z][\w-]*) ", listed, re.M)


def all_helps(command):
    """What --help says of a command and of those below it."""
    text = help_of(*command)
    return [text, *(below for name in subcommands(text)
                    for below in all_helps([*command, name]))]


class ReferencesTest(unittest.TestCase):
    def commands(self):
        """Of inline code: (document, words) of those that begin with a program, or are
        a command of timecachectl with a flag."""
        known = subcommands(help_of(*PROGRAMS["tc"]))
        self.assertIn("put", known)
        for document in DOCUMENTS:
            for code in markdown.inline_code(document):
                words = re.split(r"\s+", code.strip())
                if words[0] in PROGRAMS or words[0] == "./dev":
                    yield document, words
                elif words[0] in known and any(word.startswith("-") for word in words):
                    yield document, ["tc", *words]

    def test_commands_in_the_text_exist_with_their_flags(self):
        dev = subprocess.run([markdown.ROOT / "dev", "help"], capture_output=True, text=True,
                             check=True).stdout
        found = 0
        for document, words in self.commands():
            with self.subTest(f"{document}: {' '.join(words)}"):
                if words[0] == "./dev":
                    if len(words) > 1:
                        self.assertRegex(dev, rf"(?m)^  {re.escape(words[1])}\b")
                    for flag in words[2:]:
                        if flag.startswith("-") and words[1] not in ("run", "ctl"):
                            self.assertTrue(has_flag(dev, flag), flag)
                else:
                    self.check_program(words)
                found += 1
        self.assertGreaterEqual(found, 15)

    def check_program(self, words):
        program = PROGRAMS[words[0]]
        texts, command = [help_of(*program)], list(program)
        for word in words[1:]:
            if word.startswith("-"):
                self.assertTrue(any(has_flag(text, word) for text in texts), word)
            elif not PLACEHOLDER.match(word):
                text = help_of(*command, word)
                # What is no command of it is a name.
                if text is not None and text not in texts:
                    command.append(word)
                    texts.append(text)
                elif len(texts) == 1:
                    self.assertTrue(words[words.index(word) - 1].startswith("-"), word)

    def test_flags_in_the_text_are_those_of_a_program(self):
        texts = [text for program in PROGRAMS.values() for text in all_helps(program)]
        for document in DOCUMENTS:
            for code in markdown.inline_code(document):
                flag = re.match(r"--[a-z-]+", code)
                if flag:
                    with self.subTest(f"{document}: {code}"):
                        self.assertTrue(any(has_flag(text, flag[0]) for text in texts))

    def test_links_lead_to_files(self):
        for document in WITH_LINKS:
            directory = (markdown.ROOT / document).parent
            for link in markdown.links(document):
                if not re.match(r"https?://", link):
                    with self.subTest(f"{document}: {link}"):
                        self.assertTrue((directory / link).exists())

    def test_attacks_in_the_table_can_be_run(self):
        section = markdown.prose("SECURITY.md").split("## What happens when")[1]
        rows = re.findall(r"^\|.*\| ([^|]*) \|$", section, re.M)
        names = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
        self.assertGreater(len(names), 30)
        for name in names:
            with self.subTest(name):
                self.assertIn(name, abuse.attack.ATTACKS)

    def test_files_in_the_text_are_there(self):
        for document in DOCUMENTS:
            for code in markdown.inline_code(document):
                if re.fullmatch(r"(deploy|client|server|tests|proto)/[\w./-]+", code):
                    with self.subTest(f"{document}: {code}"):
                        self.assertTrue((markdown.ROOT / code).exists())

    def test_sources_in_the_design_are_there(self):
        sources = {f"/{path.relative_to(markdown.ROOT)}" for folder in ("client", "proto", "server")
                   for path in (markdown.ROOT / folder).rglob("*.*")}
        for code in markdown.inline_code("docs/DESIGN.md"):
            if re.fullmatch(r"[\w./]+\.(h|cc|proto)", code):
                with self.subTest(code):
                    self.assertTrue(any(path.endswith(f"/{code}") for path in sources))


class OwnConfigurationsTest(unittest.TestCase):
    def test_shipped_configurations_are_valid(self):
        for path in "deploy/container/timecached.yaml", "deploy/systemd/timecached.yaml":
            with self.subTest(path):
                result = subprocess.run(
                    [*PROGRAMS["timecached"], "--config", markdown.ROOT / path,
                     "--check-config"], capture_output=True, text=True, check=False)
                self.assertEqual(result.returncode, 0, result.stderr)

    def test_the_image_and_the_chart_have_the_version_of_the_project(self):
        version = re.search(r"project\(timecached VERSION ([\d.]+)", self.text("CMakeLists.txt"))[1]
        chart = self.text("deploy/helm/timecached/Chart.yaml")
        self.assertEqual(re.findall(r"(?m)^(?:version|appVersion): (.+)$", chart), [version] * 2)
        self.assertIn(f"\nARG VERSION={version}\n", self.text("deploy/Dockerfile"))

    def text(self, path):
        return (markdown.ROOT / path).read_text()

    def test_prometheus_takes_the_scrape_configuration(self):
        (block,) = [block for block in markdown.blocks("deploy/prometheus/METRICS.md")
                    if block.language == "yaml"]
        result = subprocess.run(
            ["promtool", "check", "config", "/dev/stdin"], input=block.text.replace(
                "[alerts.yaml]", f"[{markdown.ROOT}/deploy/helm/timecached/files/alerts.yaml]"),
            capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)


if __name__ == "__main__":
    unittest.main()
