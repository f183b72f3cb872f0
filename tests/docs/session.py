"""A terminal in which the commands of a document are typed, beside a server."""

import os
import re
import subprocess
import tempfile
import time

from abuse.processes import PATIENCE_SECONDS, end_with_parent

# ./dev without the installation and the build.
DEV = """\
#!/bin/sh
[ "$1" = ctl ] || { echo "only ctl is stood in for: $1" >&2; exit 2; }
shift
exec "%s/client/cli/timecachectl" "$@"
"""
# What differs from run to run: longer numbers (versions), times, and durations.
VOLATILE = [
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"),
    (r"[+-]\d+(\.\d+)?(us|ms|s)\b", r"[+-]?\d+(\.\d+)?(us|ms|s)"),
    (r"\b\d{10,}\b", r"\d+"),
]


def pattern(line):
    """A regular expression of a line that is shown."""
    for volatile, expression in VOLATILE:
        match = re.search(volatile, line)
        if match:
            return pattern(line[:match.start()]) + expression + pattern(line[match.end():])
    return re.escape(line)


class Session:
    """One bash, with ./dev and files of its own; its output is written to a file, as
    commands that it leaves in the background go on writing."""

    def __init__(self, build, address):
        self.directory = tempfile.TemporaryDirectory(prefix="timecached-docs-")
        self.path = self.directory.name
        dev = os.path.join(self.path, "dev")
        with open(dev, "w", encoding="utf-8") as file:
            file.write(DEV % build)
        os.chmod(dev, 0o755)
        self.output_path = os.path.join(self.path, "output")
        with open(self.output_path, "wb") as output:
            self.bash = subprocess.Popen(
                ["bash", "--norc", "-O", "expand_aliases"], stdin=subprocess.PIPE,
                stdout=output, stderr=output, cwd=self.path, text=True,
                env={**os.environ, "TIMECACHED_ADDRESS": address, "TERM": "dumb"},
                preexec_fn=end_with_parent)
        self.address = address
        self.commands = 0
        self.watches = 0

    def output(self):
        with open(self.output_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def wait_for(self, expression, after):
        """The match in what was written after so many characters."""
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            match = re.search(expression, self.output()[after:], re.M)
            if match:
                return match
            if time.monotonic() > until or self.bash.poll() is not None:
                raise AssertionError(
                    f"not shown: {expression!r}; shown: {self.output()[after:]!r}")
            time.sleep(0.02)

    def type(self, command):
        """Types a command, waits for the prompt, and returns its exit code."""
        self.commands += 1
        after = len(self.output())
        end = f"end of command {self.commands}:"
        self.bash.stdin.write(f"{command}\necho '{end}' $?\n")
        self.bash.stdin.flush()
        return int(self.wait_for(rf"{end} (\d+)$", after)[1])

    def close(self):
        # What it has left in the background is ended with it.
        self.bash.stdin.write("kill $(jobs -p) 2>/dev/null; wait\n")
        self.bash.stdin.close()
        try:
            self.bash.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.bash.kill()
            self.bash.wait()
        self.directory.cleanup()
