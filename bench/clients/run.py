"""Measures the clients beside the Redis clients of the same languages, with the same keys,
values, times to live and depths; prints one table, of medians where it repeats.

Both servers and one client share the machine. Keys have 16 B, 100,000 of them; values 64 B;
entries live 10 minutes. The rows, each once with puts (SET with EX) and once with gets:

    1 to 256    plain calls, one after the other, by so many threads, goroutines or tasks
    unary 16    the same with batching off
    batch       100 operations in one call, and the next when all are answered; Redis: a
                pipeline of 100, which redis-py and go-redis send so, too
    pipeline    the same by a pipeline that stays open, 100 begun and all awaited
    stream      100 under way all the time, where the Redis client can do so
    asyncio     tasks of an event loop (Python); futures: 100 calls as futures (Java)

CPU is that of the client's process, and of each server's, in microseconds for one operation.
Before each figure a quarter of its time is run and not counted."""

import argparse
import os
import pathlib
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests/clients"))
import run as clients  # Which tools each needs, and where it works.

PEERS = {"cpp": "hiredis", "python": "redis-py", "go": "go-redis", "java": "Lettuce",
         "node": "node-redis"}
START_SECONDS = 30
# C++ is built with the server.
assert set(PEERS) == {"cpp", *clients.TOOLS}


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

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2]
        user, system = fields.split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def measure(language, arguments, rows):
    """Adds the figures of a language to its rows, by their names. Returns whether it ran to
    its end."""
    environment, reason = None, ""
    if language in clients.TOOLS:
        environment = clients.environment_of(language, arguments)
        reason = clients.lacking(language, environment)
    if reason:
        print(f"{language}: {reason}", file=sys.stderr)
        return False
    ports = free_port(), free_port()
    with tempfile.TemporaryDirectory() as directory, open(f"{directory}/log", "wb") as log, \
            Program([arguments.server, "--listen", f"127.0.0.1:{ports[0]}"], log,
                    ports[0]) as server, \
            Program([arguments.redis, "--port", str(ports[1]), "--bind", "127.0.0.1", "--save",
                     "", "--appendonly", "no", "--dir", directory], log, ports[1]) as redis, \
            subprocess.Popen([ROOT / "client" / language / "bench", f"127.0.0.1:{ports[0]}",
                              str(ports[1]), str(arguments.seconds)], env=environment,
                             text=True, stdout=subprocess.PIPE) as bench:
        before = [each.cpu_seconds() for each in (server, redis)]
        for line in bench.stdout:
            # Maven ends its colours, also where it shows none.
            name, *figures = re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip("\n").split("\t")
            now = [each.cpu_seconds() for each in (server, redis)]
            if len(figures) != 4:
                before = now  # After a warm-up.
                continue
            rate, cpu, peer_rate, peer_cpu = map(float, figures)
            # Also of what was run and not counted.
            operations = [each * arguments.seconds * 1.25 for each in (rate, peer_rate)]
            servers = [(b - a) / count * 1e6 for a, b, count in zip(before, now, operations)]
            before = now
            rows.setdefault((language, name), []).append(
                (rate, peer_rate, rate / peer_rate, cpu, peer_cpu, cpu / peer_cpu, *servers))
            print(f"{language}, {name}: {rate / 1e3:.1f} k/s, {rate / peer_rate:.2f} x",
                  file=sys.stderr, flush=True)
    return bench.returncode == 0


def show(language, name, runs):
    rate, peer_rate, ratio, cpu, peer_cpu, cpu_ratio, server_cpu, peer_server_cpu = (
        statistics.median(each) for each in zip(*runs))
    ratios = [run[2] for run in runs]
    spread = f" [{min(ratios):.2f}, {max(ratios):.2f}]" if len(runs) > 1 else ""
    print(f"| {language} | {name} | {cpu:.1f} | {peer_cpu:.1f} | {cpu_ratio:.2f} "
          f"| {rate / 1e3:.1f} | {peer_rate / 1e3:.1f} | {ratio:.2f}{spread} "
          f"| {server_cpu:.1f} | {peer_server_cpu:.1f} |")


def main():
    parser = argparse.ArgumentParser(prog="./dev bench clients", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("languages", nargs="*", metavar="LANGUAGE",
                        help=f"some of {', '.join(PEERS)}; default: all")
    parser.add_argument("--seconds", type=float, default=2, help="for each figure (2)")
    parser.add_argument("--repeat", type=int, default=1,
                        help="how often all is run, one language after the other (1)")
    parser.add_argument("--redis", required=True, help="Redis's program (of build/peers)")
    parser.add_argument("--server", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--timecachectl", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--build", required=True, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    unknown = set(arguments.languages) - set(PEERS)
    if unknown:
        parser.error(f"no such client: {', '.join(sorted(unknown))}")
    languages = arguments.languages or list(PEERS)
    rows = {}
    ran = [measure(language, arguments, rows)
           for _ in range(arguments.repeat) for language in languages]
    print("timecached beside", ", ".join(PEERS[language] for language in languages))
    print("\n| client | row | us of CPU | Redis us | ratio | k/s | Redis k/s | ratio "
          "| server us | Redis server us |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for (language, name), runs in rows.items():
        show(language, name, runs)
    return 0 if all(ran) else 1


if __name__ == "__main__":
    sys.exit(main())
