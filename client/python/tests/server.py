"""A timecached of a test's own, on a free port of the loopback."""

from __future__ import annotations

import hashlib
import os
import pathlib
import re
import socket
import subprocess
import tempfile
import time

PROGRAM = os.environ["TIMECACHED"]


class Server:
    """Runs from its construction until stop(); may be started again at the same address."""

    def __init__(
        self, *flags: str, virtual_clock: bool = True, listens: bool = True, starts: bool = True
    ) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="timecached-python-")
        self.directory = pathlib.Path(self._directory.name)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        clock = ["--virtual-clock"] if virtual_clock else []
        listen = ["--listen", self.address] if listens else []
        self._arguments = [PROGRAM, *listen, *clock]
        self._arguments += [flag.replace("DIRECTORY", str(self.directory)) for flag in flags]
        self._process: subprocess.Popen[bytes] | None = None
        if starts:
            self.start()

    def start(self) -> None:
        log_path = self.directory / "log"
        with open(log_path, "wb") as log:
            self._process = subprocess.Popen(self._arguments, stdin=subprocess.DEVNULL, stderr=log)
        until = time.monotonic() + 30
        while self._process.poll() is None and time.monotonic() < until:
            if re.search(r"server_started", log_path.read_text()):
                return
            time.sleep(0.01)
        self.stop()
        raise RuntimeError(f"the server did not start: {log_path.read_text()}")

    def configure(self, config: str) -> None:
        """Writes what `--config DIRECTORY/config.yaml` reads, of a server without `listens`."""
        config = config.replace("PORT", self.address.split(":")[1])
        config = config.replace("DIRECTORY", str(self.directory))
        (self.directory / "config.yaml").write_text(config)

    def allow(self, tokens: dict[str, list[str]]) -> None:
        """Writes DIRECTORY/access.yaml: tokens, and what each may do in every namespace.

        A server that runs sees it within a second.
        """
        lines = ["principals:"]
        for number, token in enumerate(tokens):
            digest = hashlib.sha256(token.encode()).hexdigest()
            lines.append(f'  - {{name: p{number}, token_sha256: ["{digest}"]}}')
        lines.append("rules:")
        for number, verbs in enumerate(tokens.values()):
            lines.append(
                f'  - {{principals: [p{number}], namespaces: ["*"], verbs: [{", ".join(verbs)}]}}'
            )
        written = self.directory / "access.yaml.new"
        written.write_text("\n".join(lines) + "\n")
        written.rename(self.directory / "access.yaml")

    def kill(self) -> None:
        """Ends it at once, without a word to anybody."""
        self._end(kill=True)

    def stop(self) -> None:
        self._end(kill=False)

    def _end(self, kill: bool) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if kill:
            process.kill()
        else:
            process.terminate()
        process.wait(30)

    def close(self) -> None:
        self.stop()
        self._directory.cleanup()
