"""tests/summary.py counts tests, not processes, and names those that failed."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

from dev_script import ROOT

JUNIT = """<testsuite>
<testcase name="one_test.1" status="run"><system-out>[ RUN      ] A.Holds
noise
[       OK ] A.Holds (1 ms)
[ RUN      ] A.Fails
expected 1
[  FAILED  ] A.Fails, where GetParam() = 2 (3 ms)
</system-out></testcase>
<testcase name="one_test.2" status="fail"><system-out>[ RUN      ] A.Aborts
core dumped
</system-out></testcase>
<testcase name="Docs.samples" status="run"/>
<testcase name="Clients.go" status="notrun"/>
<testcase name="Alerts" status="fail"><system-out>no such rule</system-out></testcase>
</testsuite>"""
SHARD = """<testsuites><testsuite>
<testcase name="Holds" classname="A" status="run" result="completed"/>
<testcase name="Fails" classname="A" status="run" result="completed"><failure/></testcase>
<testcase name="IsLeftOut" classname="A" status="run" result="skipped"/>
<testcase name="IsOfAnotherShard" classname="A" status="notrun" result="suppressed"/>
</testsuite></testsuites>"""


class SummaryTest(unittest.TestCase):
    def test_tests_are_counted_and_named(self):
        with tempfile.TemporaryDirectory() as name:
            directory = pathlib.Path(name)
            (directory / "junit.xml").write_text(JUNIT, "utf-8")
            (directory / "one_test.1.xml").write_text(SHARD, "utf-8")
            done = subprocess.run(
                [sys.executable, "-B", ROOT / "tests/summary.py", directory / "junit.xml", directory],
                capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(done.stdout, """
-- failed: one_test.1: A.Fails
expected 1

-- failed: one_test.2: A.Aborts
core dumped
(did not end)

-- failed: Alerts
no such rule

failed:
  one_test.1: A.Fails
  one_test.2: A.Aborts
  Alerts
2 passed, 3 failed, 2 skipped
""")


if __name__ == "__main__":
    unittest.main()
