"""What it costs to spread a namespace, and to call a node that does not own it.

One server beside itself: a namespace of one partition and one of sixteen. A cluster of two
nodes and one slot, each called in turn: the owner, and the other one, which forwards. And a
cluster of three nodes that share sixteen slots, beside one server. Both also by callers of
one client, in turns with a client that goes to the owners itself. The namespaces are MEMORY,
so that nothing but these is measured; brokers keep the cluster's membership alone. All run
for the whole time, on the same cores.
"""

import contextlib
import dataclasses
import re

from .. import clusters, figures, loads, servers
from . import Outcome

NAME = "spread"
TITLE = "Partitions of a namespace, and calls that a node forwards to the owner"
PARTITIONS = 16
CALLERS = 16
DEPTHS = (100, 1)
KEYS = 100_000
LEASE = "10s"
ONE = "1 partition"
SEVERAL = f"{PARTITIONS} partitions"
DIRECT = "the owner"
FORWARDED = "the other node"
# Of the direct one's CPU, both nodes together.
FORWARDED_BATCH_CPU = 1.6
ROUTED = "a client with owner routing"
# Of the direct client's CPU, all nodes, or the clients.
ROUTED_CPU = 1.1
NODES = 3
ALONE = "one server, 16 partitions"
ANY = "any of three nodes"
SENT = 'timecache_cluster_peer_messages_sent_total{cluster="bench"}'
RECEIVED = 'timecache_cluster_peer_messages_received_total{cluster="bench"}'


def _seconds(bench):
    return bench.pick(5, 2)


def estimate_seconds(bench):
    turns = len(DEPTHS) * 2 * (3 * 2 + 2 * 3)
    return 80 + bench.repeats * turns * (_seconds(bench) + 1)


class _Called:
    """A node of a cluster, to be loaded, and the CPU of both."""
    name = servers.Timecached.name

    def __init__(self, node, nodes):
        self._node = node
        self._nodes = nodes
        self.load_command = node.load_command

    def cpu_seconds(self):
        return sum(node.cpu_seconds() for node in self._nodes)

    def messages(self):
        return sum(node.metric(re.escape(name)) for node in self._nodes
                   for name in (SENT, RECEIVED))


def _messages(bench, rows, target):
    """Between the nodes, for an operation."""
    for depth in DEPTHS:
        load = loads.Load(put_percent=100, keys=KEYS, depth=depth, connections=CALLERS,
                          seconds=_seconds(bench))
        before = target.messages()
        run = loads.drive(bench, target, load)
        rows.append(figures.alone(
            f"{ANY}: put x {depth}, messages between nodes", "for an operation",
            [(target.messages() - before) / run["operations"]]))


def _turns(bench, rows, data, targets, goals):
    """Each load on both of the targets, the first of which is the measure."""
    (base, _), (name, _) = targets.items()
    for depth in DEPTHS:
        for put_percent, verb in ((100, "put"), (0, "get")):
            what = f"{verb} x {depth}"
            load = loads.Load(put_percent=put_percent, keys=KEYS, depth=depth,
                              connections=CALLERS, seconds=_seconds(bench))
            runs = data[f"{name}, {what}"] = bench.turns(what, {
                each: lambda server=server: loads.drive(bench, server, load)
                for each, server in targets.items()})
            rows.append(figures.compared(f"{name}: {what}", "operations/s",
                                         loads.rates(runs[name]), base,
                                         loads.rates(runs[base])))
            used = "server_cpu_us_per_operation"
            rows.append(figures.compared(
                f"{name}: {what}, server CPU", "us/operation",
                [run[used] for run in runs[name]], base,
                [run[used] for run in runs[base]], goals.get(depth)))


def _routed_turns(bench, rows, data, targets):
    """Calls of one client at each of the targets, the first of which is the measure, and
    of one with owner routing at the last."""
    base, name = targets
    for depth in DEPTHS:
        for put_percent, verb in ((100, "put"), (0, "get")):
            what = f"{verb} x {depth} by {CALLERS} callers"
            load = loads.Load(put_percent=put_percent, keys=KEYS, depth=depth,
                              callers=CALLERS, seconds=_seconds(bench))
            routed = dataclasses.replace(load, owner_routing=True)
            each = {target: (server, load) for target, server in targets.items()}
            each[ROUTED] = (targets[name], routed)
            runs = data[f"{name} and {ROUTED}, {what}"] = bench.turns(what, {
                which: lambda with_load=with_load: loads.drive(bench, *with_load)
                for which, with_load in each.items()})
            for which in (name, ROUTED):
                rows.append(figures.compared(f"{which}: {what}", "operations/s",
                                             loads.rates(runs[which]), base,
                                             loads.rates(runs[base])))
                for side in ("server", "client"):
                    used = f"{side}_cpu_us_per_operation"
                    rows.append(figures.compared(
                        f"{which}: {what}, {side} CPU", "us/operation",
                        [run[used] for run in runs[which]], base,
                        [run[used] for run in runs[base]],
                        figures.at_most(ROUTED_CPU) if which == ROUTED else None))


def run(bench):
    rows, data = [], {}
    with servers.Timecached(bench) as server:
        targets = {ONE: server,
                   SEVERAL: server.create("spread", "memory", "--partitions", PARTITIONS)}
        for each in targets.values():
            loads.fill(bench, each, KEYS)
        _turns(bench, rows, data, targets, {})
    with contextlib.ExitStack() as stack:
        # One slot: what a call costs that is forwarded, and one that is not.
        brokers = stack.enter_context(clusters.Brokers(bench, partitions=1))
        owner, other = (stack.enter_context(
            clusters.Node(bench, brokers, name, LEASE, forwards=True))
            for name in ("node-1", "node-2"))
        owner.await_ready()
        other.await_ready()
        nodes = (owner, other)
        # Whichever has come to own the slot.
        owner, other = sorted(nodes, key=lambda node: -node.metric(clusters.OWNED_SLOTS))
        named = owner.create("memory", "memory")
        targets = {DIRECT: _Called(named, nodes),
                   FORWARDED: _Called(other.other_namespace("memory"), nodes)}
        loads.fill(bench, targets[DIRECT], KEYS)
        _turns(bench, rows, data, targets,
               {DEPTHS[0]: figures.at_most(FORWARDED_BATCH_CPU)})
        _routed_turns(bench, rows, data, targets)
    with contextlib.ExitStack() as stack:
        alone = stack.enter_context(servers.Timecached(bench))
        brokers = stack.enter_context(clusters.Brokers(bench))
        nodes = [stack.enter_context(
            clusters.Node(bench, brokers, f"node-{i}", LEASE, forwards=True))
            for i in range(NODES)]
        for node in nodes:
            node.await_ready()
        clusters.await_balance(nodes)
        named = nodes[0].create("spread", "memory", "--partitions", PARTITIONS)
        targets = {ALONE: alone.create("spread", "memory", "--partitions", PARTITIONS),
                   ANY: _Called(named, nodes)}
        for each in targets.values():
            loads.fill(bench, each, KEYS)
        _turns(bench, rows, data, targets, {})
        _routed_turns(bench, rows, data, targets)
        _messages(bench, rows, targets[ANY])
    return Outcome(rows, data)


def plot(data, canvas):
    with canvas.figure(NAME, TITLE, columns=1, width=8) as (axes,):
        series = {}
        for i, runs in enumerate(data.values()):
            base, *_, name = runs
            series.setdefault("CPU beside one partition, or the owner", {})[i] = (
                figures.Spread.of_ratios(
                    [run["server_cpu_us_per_operation"] for run in runs[name]],
                    [run["server_cpu_us_per_operation"] for run in runs[base]]))
        canvas.bars(axes, [name.replace(", ", "\n") for name in data], series)
        axes.set_xlabel("server CPU of an operation, as a ratio")
