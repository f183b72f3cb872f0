"""A server, and a console beside it, for the tests of the page."""

from base64 import b64encode
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from support.server import PATIENCE_SECONDS, Server

BUILD = pathlib.Path(os.environ.get("TIMECACHED_BUILD", "build/release"))
TIMECACHED = os.environ.get("TIMECACHED", str(BUILD / "server/timecached"))
TIMECACHECTL = os.environ.get("TIMECACHECTL", str(BUILD / "client/cli/timecachectl"))
# No contexts of the user's own, no address from the environment.
ENVIRONMENT = {name: value for name, value in os.environ.items()
               if not name.startswith("TIMECACHED_")}
ENVIRONMENT["XDG_CONFIG_HOME"] = "/nonexistent"


# Not by a proxy of the environment.
LOCAL = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Console:
    """`timecachectl OPTIONS console FLAGS` for this server, until the block ends. `url` has its
    token."""

    def __init__(self, address, *flags, options=()):
        self.command = [TIMECACHECTL, "--address", address, *options, "console",
                        "--listen", "127.0.0.1:0", *flags]

    def __enter__(self):
        self.log = tempfile.NamedTemporaryFile(prefix="timecached-console-")
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=self.log, env=ENVIRONMENT)
        try:
            self.url = self._wait_for_url()
        except BaseException:
            self.__exit__()
            raise
        self.origin = self.url.partition("/#")[0]
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(PATIENCE_SECONDS)
        finally:
            self.process.kill()
            self.log.close()

    def call(self, method, request):
        """As the page makes it: "TimeCacheService/Get", and its request as proto3 JSON."""
        with self.stream(method, request) as answer:
            return json.load(answer)

    def stream(self, method, request):
        """The answer, which has begun; to be closed."""
        token = self.url.partition("#token=")[2]
        call = urllib.request.Request(
            f"{self.origin}/api/rpc/timecache.v1.{method}", json.dumps(request).encode(),
            {"authorization": f"Bearer {token}", "content-type": "application/json"})
        return LOCAL.open(call, timeout=PATIENCE_SECONDS)

    def _wait_for_url(self):
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            log = pathlib.Path(self.log.name).read_text("utf-8")
            found = re.search(r"http://\S+#token=\S+", log)
            if found:
                return found[0]
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"the console did not start: {log}")
            time.sleep(0.01)


class Ctl:
    """Runs timecachectl against a server."""

    def __init__(self, address, *flags):
        self.command = [TIMECACHECTL, "--address", address, *flags]

    def __call__(self, *arguments):
        done = subprocess.run([*self.command, *arguments], stdin=subprocess.DEVNULL, check=False,
                              env=ENVIRONMENT, text=True, capture_output=True)
        if done.returncode != 0:
            raise RuntimeError(f"timecachectl {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stdout

    def json(self, *arguments):
        return json.loads(self(*arguments, "--json"))

    def advance(self, duration):
        """Of the virtual clock; all that is due is published when it returns."""
        self("clock", "advance", duration)


def base64(text):
    return b64encode(text.encode()).decode()


def virtual_server(*flags, listen="127.0.0.1:0"):
    """Its clock stands still until it is advanced."""
    return Server(TIMECACHED, "--virtual-clock", *flags, listen=listen)


def token_file(directory, name):
    """Writes a principal's token for --token-file, and returns its path and its hash."""
    token = f"token-of-{name}"
    path = pathlib.Path(directory, name)
    path.write_text(token)
    path.chmod(0o600)
    return str(path), hashlib.sha256(token.encode()).hexdigest()
