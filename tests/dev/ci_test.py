""".ci/run leaves out a step only where it knows that nothing of its inputs has changed."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from dev_script import ROOT

ALL = {"attacks", "clients", "cluster", "console", "install", "sanitize", "coverage", "fuzz",
       "proto", "deploy", "stubs", "tidy"}
# Stands in for the whole of ./dev: notes what it is called for, and with which tests.
DEV = """#!/bin/sh
[ "$1" = install ] || echo "$1 $2" "${TEST_LABELS-}" >>"$LOG"
"""


def inputs():
    """{name: its paths}, of .ci/inputs."""
    lines = (ROOT / ".ci/inputs").read_text("utf-8").splitlines()
    return {words[0]: words[1:] for words in map(str.split, lines) if words and words[0] != "#"}


class CiTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="timecached-ci-")
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name, "project")
        self.cache = pathlib.Path(scratch.name, "cache")
        self.log = pathlib.Path(scratch.name, "log")
        shutil.copytree(ROOT / ".ci", self.root / ".ci")
        self.change("dev", DEV)
        (self.root / "dev").chmod(0o755)
        self.git("init", "--quiet", "--initial-branch=work")
        for name in {path for paths in inputs().values() for path in paths}:
            self.change(f"{name}/file" if (ROOT / name).is_dir() else name, "0")
        self.commit()

    def change(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")

    def git(self, *arguments):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *arguments],
                       cwd=self.root, check=True)

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "--quiet", "-m", "A change.")

    def steps(self, **environment):
        """Those of ALL that it runs."""
        self.log.unlink(missing_ok=True)
        # Without those that the run around this test has chosen.
        around = {name: value for name, value in os.environ.items() if name != "TEST_LABELS"}
        done = subprocess.run([self.root / ".ci/run"], capture_output=True, text=True, check=False,
                              env=around | {"XDG_CACHE_HOME": str(self.cache), "CI_BASE": "",
                                                "LOG": str(self.log)} | environment)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return ALL & set(self.log.read_text("utf-8").split())

    def test_what_the_table_names_is_there(self):
        for name, paths in inputs().items():
            for path in paths:
                self.assertTrue((ROOT / path).exists(), f"{name}: {path}")

    def test_without_a_landed_commit_all_runs_once(self):
        self.assertEqual(self.steps(), ALL)
        self.assertEqual(self.steps(), set())
        self.change("client/go/file", "1")
        self.commit()
        self.assertEqual(self.steps(), {"clients"})
        self.change("dev", DEV + "# Changed.\n")
        self.commit()
        self.assertEqual(self.steps(), ALL)

    def test_what_is_not_committed_is_not_known(self):
        self.steps()
        self.change("new", "1")
        self.assertEqual(self.steps(), ALL)

    def test_only_what_has_changed_since_the_landed_commit_runs(self):
        self.change("tests/stubs/file", "1")
        self.commit()
        changed = ALL - {"attacks", "clients", "cluster", "console", "install", "proto", "deploy",
                         "fuzz"}
        self.assertEqual(self.steps(CI_BASE="HEAD~1"), changed)
        self.git("update-ref", "refs/remotes/origin/main", "HEAD~1")
        shutil.rmtree(self.cache)
        self.assertEqual(self.steps(), changed)
        # What is checked out may be new as a whole.
        self.git("update-ref", "refs/remotes/origin/main", "HEAD")
        shutil.rmtree(self.cache)
        self.assertEqual(self.steps(), ALL)


if __name__ == "__main__":
    unittest.main()
