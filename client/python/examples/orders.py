"""Orders that are cancelled if they are not paid within 15 minutes.

usage: orders.py [ADDRESS]

Places an order that nobody pays, and runs a worker until it is interrupted. Any number of workers
may run: each order is cancelled by one of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import timecached

PAYMENT_TIME = timedelta(minutes=15)


class Orders:
    """Orders that wait for their payment: one entry each, which dies if it does not come."""

    def __init__(self, client: timecached.Client, cancel: Callable[[str, Any], None]) -> None:
        """`cancel` is called by workers, with the order's id and what was placed."""
        self._pending = client.namespace("pending-orders")
        self._cancel = cancel
        try:
            client.create_namespace(
                "pending-orders", timecached.NamespaceOptions(ttl=PAYMENT_TIME, num_buckets=901)
            )
        except timecached.AlreadyExistsError:
            pass
        # Before the first order: the group keeps it, however late the first worker comes.
        try:
            self._pending.create_group("cancel")
        except timecached.AlreadyExistsError:
            pass

    def place(self, order_id: str, order: Any) -> None:
        """Waits for the payment from now on."""
        self._pending.put(order_id, timecached.encode_json(order), if_absent=True)

    def pay(self, order_id: str) -> bool:
        """False: too late, the order is being cancelled."""
        return bool(self._pending.remove(order_id))

    def worker(self) -> timecached.GroupWorker:
        """Cancels what was not paid. An exception of `cancel`: again in a second."""
        return self._pending.worker("cancel", self._handle)

    def _handle(self, event: timecached.ExpiredEvent) -> None:
        self._cancel(event.key_text, event.json())


def main() -> None:
    address = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:7171"
    with timecached.Client(address) as client:
        orders = Orders(client, lambda order_id, order: print("cancelled:", order_id, order))
        orders.place("17", {"total": 42})
        with orders.worker() as worker:
            try:
                worker.wait()
            except KeyboardInterrupt:
                print("stopping")


if __name__ == "__main__":
    main()
