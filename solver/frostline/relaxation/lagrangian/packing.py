"""What GPUs can earn at once when every width has its own price: a knapsack in each interval."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from frostline.relaxation.lagrangian.kernel import Ints
from frostline.relaxation.lagrangian.problem import PriceProblem
from frostline.relaxation.lagrangian.windows import Windows

__all__ = ["Packing"]

_MOST_STEPS = 4_000_000


@dataclass(frozen=True)
class Packing:
    """Sets of widths that fit side by side.

    Prices by width cover all dual-feasible functions, which are functions f with Σ f(g) ≤ 1 over every set of widths
    that fits (C. Alves et al., *Dual-Feasible Functions for Integer Programming and Combinatorial Optimization*,
    Springer 2016): the prices λ f(g) are those of one such function.

    Parameters
    ----------
    gpus : int
        GPUs there are.
    items : array of int64, shape (items,)
        Kind of each item: each width as often as jobs of it may run side by side.
    kinds : array of int64, shape (kinds,)
        Widths.
    offered : array of bool, shape (items, intervals)
        Whether so many jobs of the kind may run in an interval.
    """

    gpus: int
    items: Ints = field(repr=False)
    kinds: Ints = field(repr=False)
    offered: npt.NDArray[np.bool_] = field(repr=False)

    @classmethod
    def of(cls, problem: PriceProblem, windows: Windows, times: Ints) -> Packing:
        """Sets of jobs of a problem that may run in each interval, if they start within their windows."""
        job = np.repeat(np.arange(problem.jobs), np.diff(problem.first))
        begins = np.searchsorted(times, windows.earliest[job], side="right") - 1
        ends = np.searchsorted(times, windows.latest[job] + problem.duration, side="left")
        places = np.arange(len(times) - 1)
        runs = (begins[:, None] <= places) & (places < ends[:, None])
        counts = np.zeros((len(problem.kinds), len(places)), np.int64)
        np.add.at(counts, problem.kind, runs)
        counts = np.minimum(counts, (problem.gpus // problem.kinds)[:, None])
        copies = np.concatenate([np.arange(most) for most in counts.max(axis=1, initial=0)] or [places[:0]])
        items = np.repeat(np.arange(len(problem.kinds)), counts.max(axis=1, initial=0))
        return cls(problem.gpus, items, problem.kinds, copies[:, None] < counts[items])

    @staticmethod
    def is_cheap(problem: PriceProblem, intervals: int) -> bool:
        """Whether the knapsacks of so many intervals are solved in a few milliseconds."""
        return intervals * int(problem.many.sum()) * problem.gpus <= _MOST_STEPS

    def most(self, price: Ints) -> Ints:
        """Most that GPUs earn in each interval, from the prices by kind and interval."""
        best = np.zeros((price.shape[1], self.gpus + 1), np.int64)
        worth = self._worth(price)
        for item, kind in enumerate(self.items):
            width = self.kinds[kind]
            np.maximum(best[:, width:], best[:, :-width] + worth[item], out=best[:, width:])
        earned: Ints = best[:, -1]
        return earned

    def counts(self, price: Ints) -> Ints:
        """A set of jobs that earns the most: how many of each kind, by kind and interval."""
        intervals = price.shape[1]
        best = np.zeros((intervals, self.gpus + 1), np.int64)
        worth = self._worth(price)
        taken = np.zeros((len(self.items), intervals, self.gpus + 1), np.bool_)
        for item, kind in enumerate(self.items):
            width = self.kinds[kind]
            more = best[:, :-width] + worth[item]
            taken[item, :, width:] = more > best[:, width:]
            np.maximum(best[:, width:], more, out=best[:, width:])
        counts = np.zeros_like(price)
        room, rows = np.full(intervals, self.gpus), np.arange(intervals)
        for item in range(len(self.items) - 1, -1, -1):
            kind = self.items[item]
            took = taken[item, rows, room]
            counts[kind] += took
            room = room - took * self.kinds[kind]
        return counts

    def _worth(self, price: Ints) -> Ints:
        """What each item pays in each interval: nothing where it cannot run."""
        worth: Ints = np.where(self.offered, price[self.items], 0)[:, :, None]
        return worth
