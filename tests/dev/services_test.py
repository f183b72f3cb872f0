"""./dev installs packages of services without starting them, by a policy that it
writes to the system for the time of the installation."""

import contextlib
import os
import pathlib
import signal
import stat
import subprocess
import tempfile
import unittest

from dev_script import bash, command

ADMINISTRATOR_S = "#!/bin/sh\n# Of the administrator.\nexit 104\n"

# ./dev, where nothing is installed yet and apt-get is a script.
INSTALL = """
service_policy={policy}
apt_get() {{ [[ $1 == update ]] || {apt_get}; }}
missing_packages() {{ printf '%s\\n' "$@"; }}
is_debian_12() {{ true; }}
install_without_services promtool prometheus
"""


PATIENCE_SECONDS = 60


def take_signals():
    """Signals that this test may have been started without."""
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        signal.signal(number, signal.SIG_DFL)


class ServicesTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="timecached-services-")
        self.addCleanup(scratch.cleanup)
        self.directory = pathlib.Path(scratch.name)
        self.policy = self.directory / "policy-rc.d"
        self.seen = self.directory / "seen"
        self.environment = {**os.environ, "PATH": f"{self.directory}:{os.environ['PATH']}"}
        for program in "sudo", "apt-get":
            path = self.directory / program
            path.write_text('#!/bin/sh\nexec "$@"\n')
            path.chmod(0o755)

    def script(self, apt_get):
        return INSTALL.format(policy=self.policy, apt_get=apt_get)

    def install(self, apt_get):
        return bash(self.script(apt_get), env=self.environment)

    def copy_of_the_policy(self):
        return f'cp --preserve=mode "$service_policy" "{self.seen}"'

    def expect_forbidding(self):
        """While apt-get ran, the policy was executable and forbade everything."""
        self.assertTrue(self.seen.stat().st_mode & stat.S_IXOTH)
        self.assertEqual(subprocess.run([self.seen, "prometheus", "start"], check=False)
                         .returncode, 101)

    def expect_nothing_left(self):
        self.assertEqual(list(self.directory.glob("policy-rc.d*")), [])

    def expect_the_administrator_s(self):
        self.assertEqual(list(self.directory.glob("policy-rc.d*")), [self.policy])
        self.assertEqual(self.policy.read_text(), ADMINISTRATOR_S)
        self.assertEqual(stat.S_IMODE(self.policy.stat().st_mode), 0o750)

    def write_the_administrator_s(self):
        self.policy.write_text(ADMINISTRATOR_S)
        self.policy.chmod(0o750)

    def test_no_service_is_started_and_it_says_so(self):
        result = self.install(self.copy_of_the_policy())
        self.assertEqual(result.returncode, 0, result.stderr)
        self.expect_forbidding()
        self.expect_nothing_left()
        self.assertIn(f"{self.policy} keeps services from starting", result.stderr)
        self.assertIn(f"{self.policy} is as it was", result.stderr)

    def test_a_policy_that_was_there_comes_back(self):
        self.write_the_administrator_s()
        result = self.install(self.copy_of_the_policy())
        self.assertEqual(result.returncode, 0, result.stderr)
        self.expect_forbidding()
        self.expect_the_administrator_s()

    def test_a_failed_installation_leaves_nothing(self):
        self.write_the_administrator_s()
        result = self.install(f"{{ {self.copy_of_the_policy()}; false; }}")
        self.assertEqual(result.returncode, 1)
        self.assertIn("could not install", result.stderr)
        self.expect_forbidding()
        self.expect_the_administrator_s()

    def test_an_interrupted_installation_leaves_nothing(self):
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
            with self.subTest(number.name):
                self.write_the_administrator_s()
                result = self.interrupted(number)
                self.assertNotEqual(result.returncode, 0)
                self.expect_forbidding()
                self.expect_the_administrator_s()

    def interrupted(self, number):
        """Installs, and is sent a signal as by a terminal: with all that it started."""
        # One process, which says so once signals reach it.
        installing = "sh -c 'echo installing; exec sleep 600'"
        apt_get = f"{{ {self.copy_of_the_policy()}; {installing}; }}"
        with subprocess.Popen(
                command(self.script(apt_get)), env=self.environment, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                preexec_fn=take_signals) as process:
            try:
                self.assertEqual(process.stdout.readline(), "installing\n")
                os.killpg(process.pid, number)
                process.communicate(timeout=PATIENCE_SECONDS)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        return process

    def test_what_a_killed_run_left_behind_is_put_back_by_the_next(self):
        self.write_the_administrator_s()
        self.assertNotEqual(self.interrupted(signal.SIGKILL).returncode, 0)
        self.assertNotEqual(self.policy.read_text(), ADMINISTRATOR_S)
        result = self.install(self.copy_of_the_policy())
        self.assertEqual(result.returncode, 0, result.stderr)
        self.expect_forbidding()
        self.expect_the_administrator_s()

    def test_nothing_is_written_where_nothing_is_missing(self):
        result = bash(
            f'service_policy={self.policy}\nmissing_packages() {{ :; }}\n'
            'install_without_services promtool prometheus', env=self.environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "")
        self.expect_nothing_left()


if __name__ == "__main__":
    unittest.main()
