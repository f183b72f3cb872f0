"""Figures with their spread, ratios, and what is wanted of them."""

import dataclasses
import statistics


@dataclasses.dataclass(frozen=True)
class Spread:
    """One figure over several runs."""
    median: float
    least: float
    greatest: float
    runs: int

    @classmethod
    def of(cls, values):
        values = list(values)
        if not values:
            raise ValueError("a figure of no run")
        return cls(statistics.median(values), min(values), max(values), len(values))

    @classmethod
    def of_ratios(cls, over, under):
        """Run by run: what was measured next to each other is compared."""
        if len(over) != len(under):
            raise ValueError(f"{len(over)} runs beside {len(under)}")
        return cls.of(a / b for a, b in zip(over, under))


@dataclasses.dataclass(frozen=True)
class Goal:
    """A bound that a median must keep."""
    bound: float
    at_least: bool

    def met(self, spread):
        if self.at_least:
            return spread.median >= self.bound
        return spread.median <= self.bound

    def __str__(self):
        return f"{'>=' if self.at_least else '<='} {self.bound:g}"


def at_least(bound):
    return Goal(bound, True)


def at_most(bound):
    return Goal(bound, False)


@dataclasses.dataclass(frozen=True)
class Row:
    """A line of the report: a figure of ours, beside a peer's or alone.

    `ratio` is ours over the peer's. The goal is the ratio's if there is one, else that
    of our own figure.
    """
    what: str
    unit: str
    ours: Spread | None
    peer_name: str = ""
    peer: Spread | None = None
    ratio: Spread | None = None
    goal: Goal | None = None

    def met(self):
        """True, False, or None where nothing is wanted."""
        if self.goal is None:
            return None
        return self.goal.met(self.ratio or self.ours)

    def as_json(self):
        return {
            "what": self.what,
            "unit": self.unit,
            "timecached": self.ours and dataclasses.asdict(self.ours),
            "peer_name": self.peer_name,
            "peer": self.peer and dataclasses.asdict(self.peer),
            "ratio": self.ratio and dataclasses.asdict(self.ratio),
            "wanted": str(self.goal) if self.goal else None,
            "met": self.met(),
        }


def compared(what, unit, ours, peer_name, peer, goal=None):
    """A row of runs that took turns."""
    return Row(what, unit, Spread.of(ours), peer_name, Spread.of(peer),
               Spread.of_ratios(ours, peer), goal)


def alone(what, unit, values, goal=None):
    return Row(what, unit, Spread.of(values), goal=goal)


def peer_alone(what, unit, peer_name, values):
    return Row(what, unit, None, peer_name, Spread.of(values))


def number(value):
    """Readable at any size: three or four digits that count."""
    for bound, divisor, suffix in ((1e9, 1e9, " G"), (1e6, 1e6, " M"), (1e4, 1e3, " k")):
        if abs(value) >= bound:
            return f"{value / divisor:.{2 if abs(value) < 10 * divisor else 1}f}{suffix}"
    if abs(value) >= 100 or value == int(value):
        return f"{value:.0f}"
    return f"{value:.{1 if abs(value) >= 10 else 2}f}"


def count(value):
    """A round number of things, as it is said: 10 M, 100 k, 64."""
    for unit, suffix in ((10**6, " M"), (10**3, " k")):
        if value >= unit:
            return f"{value / unit:.4g}{suffix}"
    return f"{value:.4g}"
