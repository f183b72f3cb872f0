"""CMake configures the same whether or not the tools of the tests are installed yet:
`./dev run` on a new machine configures without them, and `./dev test` installs them."""

import os
import pathlib
import subprocess
import tempfile
import unittest

from dev_script import ROOT, bash

PROGRAM_DIRECTORIES = [
    "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"]
# Beside what the packages hold: other ways in which these get onto a machine.
LATE_PROGRAMS = {"python3", "go", "node", "java", "ccache", "helm", "buildah", "runc"}
# What decides how things are built, and which tests there are and how they are run.
CONFIGURED = ["CMakeCache.txt", "build.ninja", "**/CTestTestfile.cmake"]
# Tests of something that is not built, with a program that was not there.
LATE_TESTS = ["Alerts.AreRulesOfPrometheus", "Alerts.FireForWhatTheyAreFor", "BenchPeers"]


def late_programs():
    """The programs of every package that ./dev knows and does not build with."""
    listed = bash(
        'for array in $(compgen -v | grep "_packages$"); do\n'
        '  [[ $array == build_packages ]] && continue\n'
        '  declare -n packages=$array\n'
        '  printf "%s\\n" "${packages[@]}"\n'
        'done')
    assert listed.returncode == 0, listed.stderr
    packages = set(listed.stdout.split())
    assert {"prometheus", "haproxy", "python3", "clang"} <= packages, packages
    # Exits 1 for one that is not installed, and lists the others.
    files = subprocess.run(["dpkg-query", "--listfiles", *sorted(packages)],
                           capture_output=True, text=True, check=False).stdout
    return LATE_PROGRAMS | {
        os.path.basename(path) for path in files.splitlines()
        if os.path.dirname(path) in PROGRAM_DIRECTORIES}


def link_programs(directory, but):
    """Makes a directory of links to all programs, without those."""
    directory.mkdir()
    for source in filter(os.path.isdir, reversed(PROGRAM_DIRECTORIES)):
        for name in os.listdir(source):
            link = directory / name
            if name not in but and not link.is_symlink():
                link.symlink_to(os.path.join(source, name))


def configured(build):
    return {
        str(path.relative_to(build)): path.read_text()
        for pattern in CONFIGURED for path in sorted(build.glob(pattern))}


class ConfigureTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="timecached-configure-")
        self.addCleanup(scratch.cleanup)
        self.build = pathlib.Path(scratch.name) / "build"
        self.programs = pathlib.Path(scratch.name) / "programs"

    def configure(self, without=frozenset()):
        """Configures anew with these programs alone, and returns what came out."""
        if self.programs.exists():
            self.programs.rename(f"{self.programs}.before")
        link_programs(self.programs, without)
        result = subprocess.run(
            [self.programs / "cmake", "--preset", "release", "--fresh", "-B", self.build,
             f"-DCMAKE_IGNORE_PATH={';'.join(PROGRAM_DIRECTORIES)}",
             f"-DCMAKE_PROGRAM_PATH={self.programs}"],
            cwd=ROOT, env={**os.environ, "PATH": str(self.programs)},
            capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return configured(self.build)

    def test_tools_of_the_tests_may_come_later(self):
        late = late_programs()
        # Those that ./dev test has installed: clang++ may still be missing.
        self.assertLessEqual({"promtool", "haproxy", "openssl", "faketime"}, late)
        before = self.configure(without=late)
        self.assertFalse((self.programs / "promtool").exists())
        with self.subTest("are found by the tests"):
            names = "|".join(LATE_TESTS)
            result = subprocess.run(
                ["ctest", "--test-dir", self.build, "-R", f"^({names})$"],
                capture_output=True, text=True, check=False)
            self.assertIn(f"tests failed out of {len(LATE_TESTS)}", result.stdout)
            self.assertEqual(result.returncode, 0, result.stdout)
        with self.subTest("change nothing"):
            after = self.configure()
            self.assertEqual(before.keys(), after.keys())
            for name, text in after.items():
                self.assertEqual(before[name].splitlines(), text.splitlines(), name)


if __name__ == "__main__":
    unittest.main()
