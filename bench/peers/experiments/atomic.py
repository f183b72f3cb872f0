"""Append, Combine and Gather beside Redis's APPEND, INCRBY and a script.

Both clients are of equal care, and send the same keys and bytes. timecached's entries
live by their namespace's ttl; APPEND and INCRBY give Redis's none, as another command
would have to. A Gather expects three parts; which of them a call brings, goes in turn,
and its key is random: so some parts come twice, which changes nothing.
"""

from .. import figures, loads, servers
from . import Outcome

NAME = "atomic"
TITLE = "Append, Combine and Gather, a batch at a time and one by one"
KEYS = 100_000
CONNECTIONS = 16
DEPTHS = (100, 1)

# What Gather does: the same part again is no error, the last one gets all, and the first
# one begins the time to live.
GATHER = """
if redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2]) == 0 then
  if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then
    return redis.error_reply('PART_EXISTS')
  end
  return redis.call('HLEN', KEYS[1])
end
local count = redis.call('HLEN', KEYS[1])
if count == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[4]) end
if count < tonumber(ARGV[3]) then return count end
local parts = redis.call('HGETALL', KEYS[1])
redis.call('DEL', KEYS[1])
return parts
"""

# timecached's operation, and what Redis has for it.
OPERATIONS = {"append": "APPEND", "combine": "INCRBY", "gather": "Lua script"}


def _operations(bench, depth):
    return bench.pick({100: 2_000_000, 1: 200_000}, {100: 300_000, 1: 50_000})[depth]


def estimate_seconds(bench):
    return bench.repeats * len(OPERATIONS) * len(DEPTHS) * bench.pick(9, 4)


def _load(bench, write, depth, script_sha=None):
    return loads.Load(write=write, keys=KEYS, connections=CONNECTIONS, depth=depth,
                      operations=_operations(bench, depth), script_sha=script_sha)


def _ours(bench, write, depth):
    with servers.Timecached(bench) as server:
        return loads.drive(bench, server, _load(bench, write, depth))


def _redis(bench, write, depth):
    with servers.Redis(bench) as server:
        sha = None
        if write == "gather":
            done = bench.run(["redis-cli", "-p", server.port, "SCRIPT", "LOAD", GATHER])
            sha = done.output.strip()
        return loads.drive(bench, server, _load(bench, write, depth, sha))


def run(bench):
    rows, cases = [], []
    for depth in DEPTHS:
        for write, peer in OPERATIONS.items():
            what = f"{write} x {depth}"
            runs = bench.turns(what, {
                "timecached": lambda write=write, depth=depth: _ours(bench, write, depth),
                "Redis": lambda write=write, depth=depth: _redis(bench, write, depth)})
            name = f"Redis, {peer}"
            rows.append(figures.compared(
                what, "operations/s", loads.rates(runs["timecached"]), name,
                loads.rates(runs["Redis"])))
            cpu = "server_cpu_us_per_operation"
            rows.append(figures.compared(
                f"{what}: server CPU", "us/operation",
                [run[cpu] for run in runs["timecached"]], name,
                [run[cpu] for run in runs["Redis"]]))
            cases.append({"what": what, "depth": depth, "runs": runs})
    return Outcome(rows, {"cases": cases})


def plot(data, canvas):
    with canvas.figure("atomic", TITLE, columns=len(DEPTHS), width=10) as all_axes:
        for axes, depth in zip(all_axes, DEPTHS):
            cases = [case for case in data["cases"] if case["depth"] == depth]
            series = {}
            for i, case in enumerate(cases):
                for name, runs in case["runs"].items():
                    series.setdefault(name, {})[i] = figures.Spread.of(loads.rates(runs))
            canvas.bars(axes, [case["what"] for case in cases], series)
            axes.set_xlabel("operations per second")
            axes.set_xlim(left=0)
            axes.xaxis.set_major_formatter(lambda value, _: figures.count(value))
