"""With ccache, what one checkout has compiled another does not compile again."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from dev_script import ROOT

# Several sources as one, which CMake includes by their absolute paths.
OBJECT = "server/base/CMakeFiles/timecache_base.dir/Unity/unity_0_cxx.cxx.o"
# Neither is needed to compile it.
LEFT_OUT = shutil.ignore_patterns("build", ".git", "corpus")


@unittest.skipUnless(shutil.which("ccache"), "./dev uses ccache where it is, and it is not")
class CcacheTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="timecached-ccache-")
        self.addCleanup(scratch.cleanup)
        self.directory = pathlib.Path(scratch.name)
        self.environment = {
            name: value for name, value in os.environ.items() if not name.startswith("CCACHE_")}
        self.environment["CCACHE_DIR"] = str(self.directory / "cache")

    def build(self, name):
        """Builds the object in a checkout of this name."""
        checkout = self.directory / name
        shutil.copytree(ROOT, checkout, ignore=LEFT_OUT)
        result = subprocess.run([checkout / "dev", "build", OBJECT], env=self.environment,
                                capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertTrue((checkout / "build/release" / OBJECT).exists())

    def compiled(self):
        """How often ccache had to run the compiler."""
        lines = subprocess.run(["ccache", "--print-stats"], env=self.environment,
                               capture_output=True, text=True, check=True).stdout
        return int(dict(line.split("\t") for line in lines.splitlines())["cache_miss"])

    def test_a_second_checkout_elsewhere_compiles_nothing(self):
        self.build("one")
        self.assertEqual(self.compiled(), 1)
        self.build("another/further/down")
        self.assertEqual(self.compiled(), 1)


if __name__ == "__main__":
    unittest.main()
