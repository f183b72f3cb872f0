"""That nothing which was started is left behind."""

import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

from peers import processes

FOREVER = "import time\nwhile True: time.sleep(60)"
PATIENCE_SECONDS = 60


def is_alive(pid):
    """A zombie, whose parent has not asked yet, has ended."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def ends(pid):
    give_up = time.monotonic() + PATIENCE_SECONDS
    while is_alive(pid):
        if time.monotonic() > give_up:
            return False
        os.sched_yield()
    return True


class ProcessesTest(unittest.TestCase):
    def test_a_process_ends_with_its_context_also_by_an_exception(self):
        with self.assertRaises(RuntimeError):
            with processes.started([sys.executable, "-c", FOREVER], subprocess.DEVNULL,
                                   subprocess.DEVNULL) as process:
                raise RuntimeError
        self.assertTrue(ends(process.pid))

    def test_what_a_process_started_ends_with_it(self):
        parent = ("import subprocess, sys, time\n"
                  f"child = subprocess.Popen([sys.executable, '-c', {FOREVER!r}])\n"
                  "print(child.pid, flush=True)\n" + FOREVER)
        with processes.started([sys.executable, "-c", parent], subprocess.PIPE,
                               subprocess.DEVNULL) as process:
            child = int(process.stdout.readline())
            process.stdout.close()
            self.assertTrue(is_alive(child))
        self.assertTrue(ends(child))

    def test_a_process_does_not_outlive_a_killed_benchmark(self):
        here = pathlib.Path(__file__).resolve().parents[2]
        with tempfile.TemporaryDirectory() as directory:
            told = pathlib.Path(directory) / "pid"
            child = (f"import os, pathlib\npath = pathlib.Path({str(told)!r})\n"
                     "part = path.with_suffix('.part')\n"
                     "part.write_text(str(os.getpid()))\nos.replace(part, path)\n"
                     + FOREVER)
            benchmark = ("import sys\n"
                         f"sys.path.insert(0, {str(here)!r})\n"
                         "from peers import processes\n"
                         f"processes.run([sys.executable, '-c', {child!r}], 600)")
            killed = subprocess.Popen([sys.executable, "-B", "-c", benchmark])
            try:
                give_up = time.monotonic() + PATIENCE_SECONDS
                while not told.exists() and time.monotonic() < give_up:
                    os.sched_yield()
                pid = int(told.read_text(encoding="ascii"))
                self.assertTrue(is_alive(pid))
            finally:
                killed.kill()
                killed.wait()
            self.assertTrue(ends(pid))

    def test_output_and_processor_time_of_a_program(self):
        done = processes.run([sys.executable, "-c", "print('said')"], 600)
        self.assertEqual(done.output, "said\n")
        self.assertGreater(done.cpu_seconds, 0)

    def test_a_failure_says_what_the_program_said(self):
        program = "import sys\nsys.exit('no such luck')"
        with self.assertRaisesRegex(processes.CommandFailed, "(?s)exit code 1.*no such luck"):
            processes.run([sys.executable, "-c", program], 600)

    def test_a_program_that_hangs_is_ended(self):
        with self.assertRaisesRegex(processes.CommandFailed, "took more than 0 s"):
            processes.run([sys.executable, "-c", FOREVER], 0)


if __name__ == "__main__":
    unittest.main()
