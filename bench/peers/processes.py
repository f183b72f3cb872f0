"""Processes that never outlive the benchmark.

Every process is started here, in a group of its own, and ended by its id: when its
context closes, on Ctrl-C and SIGTERM (see end_on_signals), and, should this program
itself be killed, by the kernel (setpriv --pdeathsig).
"""

import contextlib
import dataclasses
import os
import pathlib
import resource
import shlex
import signal
import subprocess
import tempfile
import time

KEEP_FROM_ORPHANING = ("setpriv", "--pdeathsig", "KILL", "--")
STOP_SECONDS = 15
SAMPLE_SECONDS = 0.25
MAX_SHOWN_BYTES = 2_000
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class CommandFailed(Exception):
    """A program that a measurement needs did not do its work."""


def end_on_signals():
    """Turns SIGTERM and SIGHUP into an exception, as Ctrl-C is one already."""
    def end(number, _frame):
        raise KeyboardInterrupt(signal.Signals(number).name)
    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGHUP, end)


def text(command):
    return shlex.join(str(part) for part in command)


def tail(path):
    content = pathlib.Path(path).read_bytes()[-MAX_SHOWN_BYTES:]
    return content.decode(errors="replace").strip()


@contextlib.contextmanager
def started(command, output, errors, environment=None):
    """Runs `command` for as long as the context is open. Yields a Popen."""
    command = [*KEEP_FROM_ORPHANING, *map(str, command)]
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors,
        env={**os.environ, **(environment or {})}, start_new_session=True)
    try:
        yield process
    finally:
        stop(process)


def stop(process):
    """Ends a process, politely first, and whatever it left in its group."""
    try:
        if process.poll() is None:
            process.terminate()
            process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        pass
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@dataclasses.dataclass(frozen=True)
class Completed:
    output: str
    seconds: float
    cpu_seconds: float


def run(command, timeout_seconds, sample=None, environment=None):
    """Runs a program to its end. `sample` is called again and again meanwhile.

    Raises CommandFailed, with what the program said, if it fails or takes too long.
    """
    with tempfile.TemporaryFile() as output, tempfile.NamedTemporaryFile() as errors:
        began = time.monotonic()
        cpu_before = children_cpu_seconds()
        with started(command, output, errors, environment) as process:
            while True:
                try:
                    status = process.wait(SAMPLE_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    if time.monotonic() - began > timeout_seconds:
                        raise CommandFailed(
                            f"took more than {timeout_seconds:.0f} s: {text(command)}"
                        ) from None
                    if sample:
                        sample()
        seconds = time.monotonic() - began
        if status != 0:
            raise CommandFailed(f"exit code {status}: {text(command)}\n{tail(errors.name)}")
        output.seek(0)
        return Completed(output.read().decode(errors="replace"), seconds,
                         children_cpu_seconds() - cpu_before)


def children_cpu_seconds():
    """Of those that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def cpu_seconds(pid):
    """What a running process has used, to a hundredth of a second."""
    stat = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def resident_bytes(pid, field="VmRSS"):
    """Now; with VmHWM the most that it ever was."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    for line in status.splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise CommandFailed(f"process {pid} has ended")
