"""tests/tidy/run.py says where what clangd finds stands, in sources and headers."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from dev_script import ROOT

ABSOLUTE = """\
inline int Absolute(int value) {
  if (value < 0) {
    return -value;
  } else {
    return value;
  }
}
"""
FILES = {
    "CMakeLists.txt": """\
cmake_minimum_required(VERSION 3.25)
project(tidied CXX)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
add_library(tidied one.cc two.cc)
target_include_directories(tidied PRIVATE ${PROJECT_SOURCE_DIR})
""",
    ".clang-tidy": "Checks: '-*,readability-else-after-return'\nWarningsAsErrors: '*'\n",
    "one.h": "#ifndef ONE_H_\n#define ONE_H_\n#include \"inner.h\"\n#endif\n",
    # Of no source: the first unit that includes it looks at it.
    "inner.h": f"#ifndef INNER_H_\n#define INNER_H_\n\n{ABSOLUTE}#endif\n",
    "one.cc": "#include \"one.h\"\nint One() { return Absolute(-1); }\n",
    # Compiles with one.cc before it, but not by itself.
    "two.cc": "int Two(int value) {\n  if (value > 2) return 2;\n  else return Absolute(value);\n}\n",
}


@unittest.skipUnless(shutil.which("clangd"), "./dev tidy installs clangd, and has not yet")
class TidyTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="timecached-tidy-")
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name, "project")
        self.cache = pathlib.Path(scratch.name, "cache")
        self.root.mkdir()
        for name, text in FILES.items():
            (self.root / name).write_text(text, "utf-8")
        self.build()

    def build(self):
        directory = self.root / "build"
        for command in (["cmake", "-G", "Ninja", "-S", self.root, "-B", directory,
                         "-DCMAKE_UNITY_BUILD=ON"], ["ninja", "-C", directory]):
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    def tidy(self, *arguments):
        done = subprocess.run(
            [sys.executable, "-B", ROOT / "tests/tidy/run.py", *arguments, self.root,
             self.root / "build"],
            env=os.environ | {"XDG_CACHE_HOME": str(self.cache)}, capture_output=True,
            text=True, check=False)
        return done.returncode, done.stdout

    def test_findings_stand_where_they_are(self):
        status, found = self.tidy()
        self.assertEqual(status, 1)
        lines = [line.partition(": ")[0] for line in found.splitlines()]
        self.assertEqual(lines, ["inner.h:7", "two.cc:3"], found)
        self.assertIn("[readability-else-after-return]", found)

    def test_findings_of_a_path(self):
        status, found = self.tidy("--only", "two.cc")
        self.assertEqual(status, 1)
        self.assertEqual([line.partition(": ")[0] for line in found.splitlines()], ["two.cc:3"])
        self.assertEqual(self.tidy("--only", "one.cc"), (0, ""))

    def test_what_has_changed_since_a_commit_and_what_includes_it(self):
        def git(*arguments):
            subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *arguments],
                           cwd=self.root, check=True)

        (self.root / ".gitignore").write_text("/build/\n", "utf-8")
        git("init", "--quiet")
        git("add", "-A")
        git("commit", "--quiet", "-m", "All.")
        self.assertEqual(self.tidy("--since", "HEAD"), (0, ""))
        with open(self.root / "inner.h", "a", encoding="utf-8") as file:
            file.write("// Changed.\n")
        status, found = self.tidy("--since", "HEAD")
        self.assertEqual(status, 1)
        self.assertIn("inner.h:7", found)
        git("commit", "--quiet", "-am", "A comment.")
        self.assertEqual(self.tidy("--since", "HEAD"), (0, ""))
        (self.root / ".clang-tidy").write_text(FILES[".clang-tidy"] + "# All.\n", "utf-8")
        self.assertEqual(self.tidy("--since", "HEAD")[0], 1)

    def test_apart_finds_an_include_that_is_missing(self):
        status, found = self.tidy("--apart", "--only", "two.cc")
        self.assertEqual(status, 1)
        self.assertIn("two.cc:3: use of undeclared identifier 'Absolute'", found)

    def test_what_passed_is_remembered_until_it_changes(self):
        clean = FILES["inner.h"].replace("} else {\n    return value;\n  }", "}\n  return value;")
        (self.root / "inner.h").write_text(clean, "utf-8")
        (self.root / "two.cc").write_text("int Two(int value) { return Absolute(value); }\n", "utf-8")
        self.build()
        self.assertEqual(self.tidy(), (0, ""))
        passed = list(self.cache.rglob("tidy/*"))
        self.assertEqual(len(passed), 1)
        # Written again: known by its content, not by its time.
        self.assertEqual(self.tidy(), (0, ""))
        self.assertEqual(list(self.cache.rglob("tidy/*")), passed)
        (self.root / "inner.h").write_text(FILES["inner.h"], "utf-8")
        self.build()
        self.assertEqual(self.tidy()[0], 1)


if __name__ == "__main__":
    unittest.main()
