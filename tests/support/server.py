"""A timecached for the tests of what is built around it."""

import pathlib
import re
import subprocess
import tempfile
import time

PATIENCE_SECONDS = 120


class Server:
    """Runs `program` with these flags until the block ends; its address is `address`."""

    def __init__(self, program, *flags, listen="127.0.0.1:0"):
        self.command = [program, "--listen", listen, *flags]

    def __enter__(self):
        self.log = tempfile.NamedTemporaryFile(prefix="timecached-log-")
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stderr=self.log)
        try:
            self.address = self._wait_for_address()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(PATIENCE_SECONDS)
        finally:
            self.process.kill()
            self.log.close()

    def _wait_for_address(self):
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            log = pathlib.Path(self.log.name).read_text("utf-8")
            started = re.search(r"server_started.* address=(\S+) ", log)
            if started:
                return started[1]
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"the server did not start: {log}")
            time.sleep(0.01)
