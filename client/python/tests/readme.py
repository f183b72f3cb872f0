"""Runs the programs of README.md word for word, but for the server's address.

usage: readme.py PYTHON [PROGRAM...]: with this interpreter, which has the package.
Time passes on the server's virtual clock, a second for every few milliseconds.
"""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
import tempfile
import threading

from server import Server

import timecached
from timecached import testing

README = pathlib.Path(__file__).parents[1] / "README.md"


def main() -> int:
    samples = re.findall(
        r"```python\n(.*?)```(?:\n\nprints\n\n```text\n(.*?)```)?", README.read_text(), re.S
    )
    server = Server()
    over = threading.Event()

    def tick() -> None:
        with timecached.Client(server.address) as client:
            clock = testing.VirtualClock(client)
            while not over.wait(0.02):
                clock.advance(0.2)

    ticker = threading.Thread(target=tick)
    ticker.start()
    passed = failed = 0
    try:
        for number, (program, expected) in enumerate(samples):
            with tempfile.TemporaryDirectory() as directory:
                path = pathlib.Path(directory) / "sample.py"
                path.write_text(program.replace("127.0.0.1:7171", server.address))
                # Not in a directory from which the sources could be imported.
                done = subprocess.run(
                    [sys.argv[1], "-I", "-W", "error", path], cwd=directory, text=True,
                    capture_output=True, timeout=120, check=False,
                )  # fmt: skip
            if done.returncode == 0 and done.stdout == expected:
                passed += 1
            else:
                failed += 1
                print(f"README.md, program {number}: {done.stdout}{done.stderr}")
    finally:
        over.set()
        ticker.join()
        server.close()
    print(f"readme: {passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
