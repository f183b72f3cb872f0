"""Measures the clients in Python, Go, Java and Node beside the Redis clients of the same
languages, with the same keys, values, times to live and depths; prints one table.

Both servers and one client share the machine. Keys have 16 B, 100,000 of them; values 64 B;
entries live 10 minutes. The rows, each once with puts (SET with EX) and once with gets:

    1, 16       one call after the other, by so many threads, goroutines or tasks
    batch       100 operations in one call, and the next when all are answered; Redis: a
                pipeline of 100, which redis-py and go-redis send so, too
    pipeline    the same by a pipeline that stays open, 100 begun and all awaited
    stream      100 under way all the time, where the Redis client can do so
    asyncio     16 tasks of an event loop (Python); futures: 100 calls as futures (Java)

CPU is the client's process, for one operation. Before each figure a quarter of its time is
run and not counted."""

import argparse
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests/clients"))
import run as clients  # Which tools each needs, and where it works.

PEERS = {"python": "redis-py", "go": "go-redis", "java": "Lettuce", "node": "node-redis"}
START_SECONDS = 30
assert set(PEERS) == set(clients.TOOLS)


class Program:
    """A server, until the end of the block."""

    def __init__(self, command, log, port):
        self.log = log
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                                        stderr=log)
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until and self.process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError:
                time.sleep(0.02)
        self.__exit__()
        raise SystemExit(f"{command[0]} did not start")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def measure(language, arguments):
    """Prints the rows of a language as they come. Returns whether it ran to its end."""
    environment = clients.environment_of(language, arguments)
    reason = clients.lacking(language, environment)
    if reason:
        print(f"{language}: {reason}", file=sys.stderr)
        return False
    ports = free_port(), free_port()
    with tempfile.TemporaryDirectory() as directory, open(f"{directory}/log", "wb") as log, \
            Program([arguments.server, "--listen", f"127.0.0.1:{ports[0]}"], log, ports[0]), \
            Program([arguments.redis, "--port", str(ports[1]), "--bind", "127.0.0.1", "--save",
                     "", "--appendonly", "no", "--dir", directory], log, ports[1]), \
            subprocess.Popen([ROOT / "client" / language / "bench", f"127.0.0.1:{ports[0]}",
                              str(ports[1]), str(arguments.seconds)], env=environment,
                             text=True, stdout=subprocess.PIPE) as bench:
        for line in bench.stdout:
            # Maven ends its colours, also where it shows none.
            name, *figures = re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip("\n").split("\t")
            if len(figures) == 4:
                show(language, name, *map(float, figures))
    return bench.returncode == 0


def show(language, name, rate, cpu, peer_rate, peer_cpu):
    print(f"| {language} | {name} | {rate / 1e3:.1f} | {peer_rate / 1e3:.1f} "
          f"| {rate / peer_rate:.2f} | {cpu:.1f} | {peer_cpu:.1f} | {cpu / peer_cpu:.2f} |",
          flush=True)


def main():
    parser = argparse.ArgumentParser(prog="./dev bench clients", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("languages", nargs="*", metavar="LANGUAGE",
                        help=f"some of {', '.join(PEERS)}; default: all")
    parser.add_argument("--seconds", type=float, default=2, help="for each figure (2)")
    parser.add_argument("--redis", default=os.environ.get("REDIS_SERVER", "redis-server"),
                        help="Redis's program (redis-server)")
    parser.add_argument("--server", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--timecachectl", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--build", required=True, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    unknown = set(arguments.languages) - set(PEERS)
    if unknown:
        parser.error(f"no such client: {', '.join(sorted(unknown))}")
    languages = arguments.languages or list(PEERS)
    print("timecached beside", ", ".join(PEERS[language] for language in languages))
    print("\n| client | row | k/s | Redis k/s | ratio | us of CPU | Redis us | ratio |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    ran = [measure(language, arguments) for language in languages]
    return 0 if all(ran) else 1


if __name__ == "__main__":
    sys.exit(main())
