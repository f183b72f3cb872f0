"""Checks the types of the programs of README.md, as a user of the installed package does.

usage: readme_types.py PYTHON: the interpreter that has the package. Needs mypy in $PATH.
"""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
import tempfile

README = pathlib.Path(__file__).parents[1] / "README.md"


def main() -> int:
    failed = 0
    samples = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)
    for number, program in enumerate(samples):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory) / "sample.py"
            path.write_text(program)
            # Away from this package's sources and settings.
            done = subprocess.run(
                ["mypy", "--strict", "--python-executable", sys.argv[1], path.name],
                cwd=directory, text=True, capture_output=True, timeout=300, check=False,
            )  # fmt: skip
        if done.returncode != 0:
            failed += 1
            print(f"README.md, program {number}: {done.stdout}{done.stderr}")
    print(f"readme-types: {len(samples) - failed} passed, {failed} failed")
    return 1 if failed or not samples else 0


if __name__ == "__main__":
    sys.exit(main())
