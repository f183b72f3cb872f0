"""A member of a consumer group that acknowledges what it is given.

usage: member.py ADDRESS NAMESPACE GROUP COUNT

Prints a line for each event: its key, its value in hexadecimal and the attempt, with tabs between.
Ends after COUNT events, or on SIGTERM.
"""

from __future__ import annotations

import signal
import sys
import threading

import timecached


def main() -> None:
    address, namespace, group, count = sys.argv[1:]
    lock = threading.Lock()
    handled = 0

    def handle(event: timecached.ExpiredEvent) -> None:
        nonlocal handled
        with lock:
            handled += 1
            if handled >= int(count):
                worker.request_stop()
            print(event.key_text, event.value.hex(), event.attempt, sep="\t", flush=True)

    with timecached.Client(address, namespace=namespace) as client:
        worker = client.worker(group, handle, concurrency=1)
        signal.signal(signal.SIGTERM, lambda *_: worker.request_stop())
        worker.wait()


if __name__ == "__main__":
    main()
