"""The processes of a run: the server under attack and its honest client."""

import ctypes
import json
import os
import random
import resource
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time

PATIENCE_SECONDS = 60
PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
HERE = os.path.dirname(os.path.abspath(__file__))

CONFIG = """\
listeners:
  - address: 127.0.0.1:0
namespaces:
  - name: abuse
    options: {ttl: 5s, num_buckets: 101}
log: {level: info, format: json}
"""


class Failed(Exception):
    """What was promised did not hold."""


def expect(holds, what):
    if not holds:
        raise Failed(what)


def wait_until(holds, what, patience=PATIENCE_SECONDS):
    """Looks every 20 ms; the last value."""
    until = time.monotonic() + patience
    while True:
        value = holds()
        if value:
            return value
        if time.monotonic() > until:
            raise Failed(f"not within {patience} s: {what}")
        time.sleep(0.02)


def end_with_parent():
    """For preexec_fn: who is killed leaves no process behind."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def free_port():
    """Below those that the system gives to connections, which come and go."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


class Server:
    """One timecached. `wrapper` runs it, as in ["prlimit", "--nofile=64"]."""

    def __init__(self, binary, config="", wrapper=(), environment=None, stderr=None):
        self.directory = tempfile.TemporaryDirectory(prefix="timecached-abuse-")
        path = os.path.join(self.directory.name, "timecached.yaml")
        # Whose standard error cannot be read gets a port that is free just now.
        port = 0 if stderr is None else free_port()
        with open(path, "w", encoding="utf-8") as file:
            file.write(config if "listeners:" in config
                       else CONFIG.replace(":0", f":{port}") + config)
        self.log_path = os.path.join(self.directory.name, "log")
        self.log = open(self.log_path, "wb")
        self.process = subprocess.Popen(
            [*wrapper, binary, "--config", path], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=self.log if stderr is None else stderr,
            env={**os.environ, **(environment or {})}, preexec_fn=end_with_parent)
        self.pid = self.process.pid
        if stderr is None:
            self.started = wait_until(self._started, "the server starts")
            self.address = self.started["address"].split(",")[0]
        else:
            self.address = f"127.0.0.1:{port}"
            wait_until(self._listens, "the server listens")

    def _started(self):
        if self.process.poll() is not None:
            raise Failed(f"the server does not start: {self.log_text()[-500:]}")
        for line in self.log_text().splitlines():
            if '"server_started"' in line and line.endswith("}"):
                return json.loads(line)
        return None

    def _listens(self):
        expect(self.alive(), "the server does not start")
        try:
            host, port = self.address.rsplit(":", 1)
            socket.create_connection((host, int(port)), 1).close()
            return True
        except OSError:
            return False

    def log_text(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def alive(self):
        return self.process.poll() is None

    def expect_alive(self):
        expect(self.alive(), f"the server ended with {self.process.returncode}: "
                             f"{self.log_text()[-500:]}")

    def usage(self):
        """Resident MiB, file descriptors, threads, CPU seconds; None if it has ended."""
        try:
            with open(f"/proc/{self.pid}/status", encoding="ascii") as file:
                status = dict(line.split(":", 1) for line in file)
            with open(f"/proc/{self.pid}/stat", encoding="ascii") as file:
                ticks = file.read().rsplit(")", 1)[1].split()[11:13]
            return {
                "rss_mib": int(status["VmRSS"].split()[0]) // 1024,
                "peak_mib": int(status["VmHWM"].split()[0]) // 1024,
                "fds": len(os.listdir(f"/proc/{self.pid}/fd")),
                "threads": int(status["Threads"]),
                "cpu_s": sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK"),
            }
        except (OSError, KeyError):
            return None

    def stop(self):
        """Its exit code after SIGTERM; killed if it takes too long."""
        try:
            if self.alive():
                self.process.send_signal(signal.SIGCONT)
                self.process.terminate()
                try:
                    self.process.wait(PATIENCE_SECONDS)
                except subprocess.TimeoutExpired:
                    self.process.kill()
                    self.process.wait()
                    raise Failed("the server does not end on SIGTERM") from None
            return self.process.returncode
        finally:
            self.log.close()
            self.directory.cleanup()


class Honest:
    """honest.py in a process of its own, so that the attack does not slow it."""

    def __init__(self, address, tls=None, token=None):
        self.process = subprocess.Popen(
            [sys.executable, "-B", "-m", "abuse.honest", address,
             json.dumps({"tls": tls, "token": token})],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.path.dirname(HERE)},
            preexec_fn=end_with_parent)

    def check(self):
        """Fails unless a fresh put, get and death reach the client."""
        self.process.stdin.write(b"check\n")
        self.process.stdin.flush()
        ready, _, _ = select.select([self.process.stdout], [], [], 2 * PATIENCE_SECONDS)
        expect(ready, "the honest client says nothing")
        line = self.process.stdout.readline()
        expect(line, "the honest client has ended")
        answer = json.loads(line)
        expect(not answer["problems"], f"the honest client: {answer['problems'][:3]}")
        expect(answer["alive"], f"the honest client is not served: {answer}")
        return answer

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def raise_open_files(wanted):
    """As many open files as wanted, or as allowed."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    return limit
