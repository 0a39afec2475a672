"""Optimality trees: splits of the windows in which jobs may start, with prices at the leaves, that prove a value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from frostline.relaxation.lagrangian.ascent import Ascent, best_prices
from frostline.relaxation.lagrangian.kernel import Ints
from frostline.relaxation.lagrangian.prices import Evaluation, Prices, evaluate
from frostline.relaxation.lagrangian.problem import PriceProblem
from frostline.relaxation.lagrangian.windows import NEVER, Windows

__all__ = ["Leaf", "Node", "Split", "Tighten", "Tree", "prove"]

_ROOT_ITERATIONS, _ITERATIONS = 600, 150
_MOST_LEFT = 0.9


@dataclass(frozen=True, slots=True)
class Split:
    """Either a job starts by an instant, or it starts later: the two nodes that follow, each with its own subtree.

    Parameters
    ----------
    job : int
        Number of the job.
    at : int
        Latest start of the first branch, in ticks after the origin.
    """

    job: int
    at: int


@dataclass(frozen=True, slots=True)
class Tighten:
    """Prices that prove the target where a job starts outside of a narrower window; the node that follows is inside.

    Parameters
    ----------
    prices : Prices
        The prices.
    windows : tuple of (int, int, int)
        Job, and its new earliest and latest start, in ticks after the origin.
    """

    prices: Prices
    windows: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, slots=True)
class Leaf:
    """Prices that prove the target where it stands, or None where a window is empty."""

    prices: Prices | None


Node = Split | Tighten | Leaf


@dataclass(frozen=True, slots=True)
class Tree:
    """A proof that no schedule is better than a target, as far as it got.

    Parameters
    ----------
    target : int
        Total, or last completion, in ticks that is to be proved.
    bound : int
        What is proved: the target if ``complete``.
    nodes : tuple of Split, Tighten or Leaf
        The tree in preorder; of an incomplete one only the root, as a leaf.
    complete : bool
        Whether the target is proved.
    explored : int
        Nodes that were looked at.
    last_only : bool
        Whether only the last completion counts.
    """

    target: int
    bound: int
    nodes: tuple[Node, ...]
    complete: bool
    explored: int
    last_only: bool = False


def prove(
    problem: PriceProblem,
    target: int,
    *,
    most_nodes: int = 2000,
    callback: Callable[[int], bool] | None = None,
) -> Tree:
    """Try to prove that no schedule has a smaller weighted total than a known one.

    Parameters
    ----------
    problem : PriceProblem
        At least one job.
    target : int
        Total of the known schedule in ticks, penalties included.
    most_nodes : int
        Nodes after which it gives up.
    callback : function of int, optional
        Is told how many nodes were explored; gives up by returning true.

    Raises
    ------
    InvalidValueError
        The problem has no job.

    Examples
    --------
    >>> problem = PriceProblem.of_rows(2, [(0, [(2, 1, 0)]), (0, [(2, 2, 0)]), (0, [(1, 3, 0)])])
    >>> tree = prove(problem, 10)
    >>> tree.complete, tree.bound
    (True, 10)
    >>> prove(problem, 11, most_nodes=50).complete
    False
    """
    root = best_prices(problem, prices="job", target=target, iterations=_ROOT_ITERATIONS)
    search = _Search(problem.by_option(), target, most_nodes, callback)
    if search.run(root):
        return Tree(target, target, tuple(search.nodes), True, search.explored)
    return Tree(target, root.best.bound, (Leaf(root.best.prices),), False, search.explored)


class _Search:
    """Depth first search; nodes in preorder."""

    def __init__(
        self, problem: PriceProblem, target: int, most_nodes: int, callback: Callable[[int], bool] | None
    ) -> None:
        self.problem, self.target, self.most_nodes, self.callback = problem, target, most_nodes, callback
        self.nodes: list[Node] = []
        self.explored = 0

    def run(self, root: Ascent) -> bool:
        """Whether the tree is complete."""
        open_nodes: list[tuple[Windows, Ascent]] = [(Windows.of(self.problem), root)]
        while open_nodes:
            windows, above = open_nodes.pop()
            if self.explored >= self.most_nodes or (self.callback is not None and self.callback(self.explored)):
                return False
            self.explored += 1
            if windows.empty:
                self.nodes.append(Leaf(None))
                continue
            here = above if self.explored == 1 else self._ascent(windows, above)
            if here.best.bound >= self.target:
                self.nodes.append(Leaf(here.best.prices))
                continue
            narrow = narrowed(self.problem, windows, here.best, self.target)
            if _width(narrow, here) < _MOST_LEFT * _width(windows, here):
                self.nodes.append(Tighten(here.best.prices, _changes(windows, narrow)))
                open_nodes.append((narrow, here))
                continue
            split = self._split(windows, here)
            if split is None:
                return False
            self.nodes.append(split)
            open_nodes += [(windows.after(split.job, split.at), here), (windows.by(split.job, split.at), here)]
        return True

    def _ascent(self, windows: Windows, above: Ascent) -> Ascent:
        start = evaluate(self.problem, windows, above.best.prices)
        return best_prices(self.problem, target=self.target, iterations=_ITERATIONS, start=start, windows=windows)

    def _split(self, windows: Windows, here: Ascent) -> Split | None:
        """The job whose cheapest starts vary most, between its early and its late ones."""
        starts = np.stack([*here.starts, here.best.start])
        low = np.maximum(starts.min(axis=0), windows.earliest)
        high = np.minimum(starts.max(axis=0), windows.latest)
        spread = np.where(high > low, starts.var(axis=0) * self.problem.weight, 0.0)
        if not spread.any():
            low, high = windows.earliest, np.minimum(windows.latest, int(here.best.prices.times[-1]))
            spread = np.maximum(high - low, 0).astype(np.float64)
        job = int(spread.argmax())
        if not spread[job]:
            return None
        at = int(starts[:, job].mean())
        return Split(job, int(np.clip(at, low[job], high[job] - 1)))


def narrowed(problem: PriceProblem, windows: Windows, here: Evaluation, target: int) -> Windows:
    """Windows outside of which no start belongs to a schedule better than a target, by the prices of an evaluation.

    If a job starts where it costs more than its least by as much as the bound lacks, the bound reaches the target.
    """
    problem = problem.by_option() if here.prices.by == "option" else problem
    price, paid = here.prices.columns(problem)
    slack = (target - 1) * here.prices.denominator - here.scaled
    earliest, latest = windows.earliest.copy(), windows.latest.copy()
    for job in range(problem.jobs):
        kept = []
        for option in range(problem.first[job], problem.first[job + 1]):
            starts = _kinks(here.prices.times, windows, job, int(problem.duration[option]))
            kind = problem.kind[option]
            cost = here.prices.denominator * problem.weight[job] * (starts + problem.duration[option])
            cost += here.prices.denominator * problem.penalty[option]
            cost += _paid(here.prices.times, price[kind], paid[kind], starts + problem.duration[option])
            cost -= _paid(here.prices.times, price[kind], paid[kind], starts)
            kept.append((starts, cost))
        least = min(int(cost.min()) for _, cost in kept)
        hulls = [_hull(starts, cost <= least + slack) for starts, cost in kept]
        earliest[job] = min(low for low, _ in hulls)
        latest[job] = max(high for _, high in hulls)
    return Windows(np.maximum(earliest, windows.earliest), np.minimum(latest, windows.latest))


def _kinks(times: Ints, windows: Windows, job: int, duration: int) -> Ints:
    """Starts of a window between which the cost is linear, its ends included."""
    low, high = int(windows.earliest[job]), min(int(windows.latest[job]), int(times[-1]))
    starts = np.concatenate([times, times - duration])
    kinks: Ints = np.unique(np.concatenate([[low, max(high, low)], starts[(low < starts) & (starts < high)]]))
    return kinks


def _paid(times: Ints, price: Ints, paid: Ints, at: Ints) -> Ints:
    place = np.searchsorted(times, at, side="right")
    begin = np.concatenate([times[:1], times])
    result: Ints = paid[place] + price[place] * (at - begin[place])
    return result


def _hull(starts: Ints, kept: npt.NDArray[np.bool_]) -> tuple[int, int]:
    """First and last start that may be kept: between two kinks that are not, nothing is; a last kink has no end."""
    places = np.flatnonzero(kept)
    if not len(places):
        return NEVER, -NEVER
    first, last = int(places[0]), int(places[-1])
    low = int(starts[first - 1]) + 1 if first else int(starts[0])
    return low, int(starts[last + 1]) - 1 if last + 1 < len(starts) else NEVER


def _width(windows: Windows, here: Ascent) -> int:
    latest = np.minimum(windows.latest, int(here.best.prices.times[-1]))
    return int(np.maximum(latest - windows.earliest + 1, 0).sum())


def _changes(old: Windows, new: Windows) -> tuple[tuple[int, int, int], ...]:
    changed = np.flatnonzero((old.earliest != new.earliest) | (old.latest != new.latest))
    return tuple((int(job), int(new.earliest[job]), int(new.latest[job])) for job in changed)
