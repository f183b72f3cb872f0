"""python3 -m abuse --build DIR [--full] [--list] [NAME or GROUP...]"""

import argparse
import os
import sys

from abuse import attack, processes
# Each registers its attacks.
from abuse import (  # noqa: F401 pylint: disable=unused-import
    attacks_batches, attacks_calls, attacks_churn, attacks_connections, attacks_disk,
    attacks_frames, attacks_groups, attacks_headers, attacks_http, attacks_machine, attacks_memory,
    attacks_proxy, attacks_stop, attacks_streams, attacks_tls, attacks_watches)


def main():
    parser = argparse.ArgumentParser(
        prog="./dev abuse", description="Attack a timecached of its own over real sockets.")
    parser.add_argument("--build", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--full", action="store_true",
                        help="10,000 connections, 100,000 resets, ... (minutes)")
    parser.add_argument("--list", action="store_true", help="say which there are")
    parser.add_argument("names", nargs="*", metavar="NAME",
                        help="an attack or a group of them; default: all")
    arguments = parser.parse_args()
    known = attack.ATTACKS.values()
    if arguments.list:
        for one in known:
            print(f"{one.group.removeprefix('attacks_')}: {one.name}")
        return 0
    chosen = [one for one in known if not arguments.names or one.name in arguments.names
              or one.group.removeprefix("attacks_") in arguments.names]
    if not chosen:
        parser.error("no such attack or group; --list says which there are")
    processes.raise_open_files(20_000)
    binary = os.path.join(arguments.build, "server", "timecached")
    failed = 0
    for one in chosen:
        try:
            print(attack.run(one, binary, arguments.full), flush=True)
        except Exception as error:  # pylint: disable=broad-except
            failed += 1
            print(f"{one.name}: FAILED: {type(error).__name__}: {error}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
