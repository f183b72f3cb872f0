"""The experiments, in the order in which they run.

Each is a module with NAME, TITLE, estimate_seconds(bench), run(bench) -> Outcome, and
plot(data, canvas), which draws from the data of an outcome alone.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Rows for the table, and all single measurements as plain data for the JSON."""
    rows: list
    data: dict


def all_experiments():
    # Not at the top: they import Outcome from here.
    from . import (atomic, batch, death, durable, echo, etcd, fanout, groups, memory,
                   replicated, scale, spread, stalled, storm, twitter, watchers)
    return (batch, echo, memory, storm, death, scale, watchers, fanout, groups, stalled,
            twitter, etcd, durable, atomic, spread, replicated)
