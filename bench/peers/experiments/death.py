"""What puts and gets feel when a great many entries die in one instant."""

import time

from .. import figures, loads, servers
from . import Outcome

NAME = "death"
TITLE = "Puts and gets while entries die"
MOST_OF_QUIET = 1.5
LONGEST_STALL_MS = 5
CONNECTIONS, RATE = 4, 10_000
LOAD_KEYS = 100_000
# Of a load's seconds, how many lie before the death.
BEFORE_SECONDS = 3
MOST_WIDTHS = 100_000


def _entries(bench):
    return bench.pick(10_000_000, 500_000)


def _load_seconds(bench):
    return bench.pick(10, 6)


def _width_seconds(bench, kind):
    """From the start of filling to the death: a filling, at most, and the quiet load."""
    fill_seconds = {servers.Timecached: 12, servers.Redis: 30}[kind]
    return bench.pick(fill_seconds, 5) + _load_seconds(bench) + BEFORE_SECONDS + 1


def _peer_repeats(bench):
    return min(bench.repeats, bench.pick(2, 1))


def estimate_seconds(bench):
    return sum(
        repeats * (_width_seconds(bench, kind) + _load_seconds(bench) - BEFORE_SECONDS)
        for kind, repeats in ((servers.Timecached, bench.repeats),
                              (servers.Redis, _peer_repeats(bench))))


def _wait_until(unix_seconds):
    time.sleep(max(0, unix_seconds - time.time()))


def _bucket_that_begins_now(least_seconds):
    """A bucket width, in seconds, of which a multiple is hardly past: what is put now
    with a short ttl dies a width from now. Buckets die at multiples of their width."""
    now_us = time.time_ns() // 1000
    first_us = int(least_seconds * 1e6)
    return min(range(first_us, first_us + MOST_WIDTHS), key=lambda us: now_us % us) / 1e6


def _loads(bench, server, death, load):
    """The same load twice: while nothing dies, and over the death."""
    if time.time() > death - load.seconds - BEFORE_SECONDS:
        bench.progress(f"{server.name} was filled too late for a quiet load before it")
    quiet = loads.drive(bench, server, load, with_timeline=True)
    _wait_until(death - BEFORE_SECONDS)
    begin = time.time()
    dying = loads.drive(bench, server, load, with_timeline=True)
    return {"quiet": quiet, "dying": dying, "death_after_seconds": death - begin}


def _load(bench):
    return loads.Load(put_percent=50, keys=LOAD_KEYS, own_ttl=True, connections=CONNECTIONS,
                      rate=RATE, seconds=_load_seconds(bench))


def _ours(bench):
    # The width is found last: it is of this moment. The server starts within it.
    width = _bucket_that_begins_now(_width_seconds(bench, servers.Timecached))
    now = time.time()
    death = now - now % width + width
    with servers.Timecached(bench, ttl=f"{width:.6f}s", num_buckets=2) as server:
        loads.fill(bench, server, _entries(bench), ttl_ms=1, own_ttl=True)
        return _loads(bench, server, death, _load(bench))


def _redis(bench):
    with servers.Redis(bench) as server:
        death = int(time.time()) + _width_seconds(bench, servers.Redis)
        loads.fill(bench, server, _entries(bench), deadline_unix_ms=death * 1000)
        return _loads(bench, server, death, _load(bench))


def run(bench):
    what = f"{_entries(bench):,} entries die"
    runs = {}
    runs.update(bench.turns(what, {"timecached": lambda: _ours(bench)}))
    runs.update(bench.turns(what, {"Redis": lambda: _redis(bench)}, _peer_repeats(bench)))
    rows = []
    for name, results in runs.items():
        goal = figures.at_most(MOST_OF_QUIET) if name == "timecached" else None
        rows.append(figures.compared(
            f"p99.9, {name}", "us", [run["dying"]["latency_us"]["p99_9"] for run in results],
            "no death", [run["quiet"]["latency_us"]["p99_9"] for run in results], goal))
        stalls = [run["dying"]["latency_us"]["max"] / 1e3 for run in results]
        goal = figures.at_most(LONGEST_STALL_MS) if name == "timecached" else None
        rows.append(figures.alone(f"longest, {name}", "ms", stalls, goal))
        rows.append(figures.alone(f"longest with no death, {name}", "ms",
                                  [run["quiet"]["latency_us"]["max"] / 1e3 for run in results]))
    return Outcome(rows, {"entries": _entries(bench), "runs": runs})


def plot(data, canvas):
    title = f"{TITLE}: {data['entries']:,} die at 0 s"
    with canvas.figure("death", title) as axes:
        for name, results in data["runs"].items():
            for i, result in enumerate(results):
                for which, style in (("dying", "-"), ("quiet", ":")):
                    # The last second is not a whole one.
                    seconds = result[which]["timeline"][:-1]
                    axes.plot(
                        [n + 0.5 - result["death_after_seconds"]
                         for n in range(len(seconds))],
                        [second["p99_9_us"] for second in seconds], style,
                        color=canvas.color(name), linewidth=1.2, alpha=0.8,
                        label=f"{name}, {which}" if i == 0 else None)
        axes.axvline(0, color="0.6", linewidth=0.8)
        axes.set_yscale("log")
        axes.set_xlabel("seconds after the death (a line for each run)")
        axes.set_ylabel(f"p99.9 of a second, us, at {RATE:,}/s")
