"""Trees that prove how late the last job completes at the earliest.

Of n jobs that all complete by T − 1 the total completion is n (T − 1) at most. Where prices prove a greater one for the
starts that allow that, no schedule ends before T. A price for all GPUs between two instants, high enough, does so where
the jobs must hold more GPU-time between them than there is (J. Erschler, P. Lopez, C. Thuriot, *Raisonnement temporel
sous contraintes de ressource et problèmes d'ordonnancement*, Revue d'Intelligence Artificielle 5(3), 1991).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from frostline.errors import InvalidValueError
from frostline.relaxation.lagrangian.kernel import Ints
from frostline.relaxation.lagrangian.prices import Prices
from frostline.relaxation.lagrangian.problem import PriceProblem
from frostline.relaxation.lagrangian.tree import Leaf, Node, Split, Tree
from frostline.relaxation.lagrangian.windows import Windows

__all__ = ["prove_last"]

_MOST_PRICE = 2**62
_MOST_ENTRIES = 2_000_000


def prove_last(
    problem: PriceProblem,
    target: int,
    *,
    most_nodes: int = 10_000,
    callback: Callable[[int], bool] | None = None,
) -> Tree:
    """Try to prove that no schedule completes its last job before an instant.

    Parameters
    ----------
    problem : PriceProblem
        Jobs without weights and penalties, at least one.
    target : int
        The instant, in ticks.
    most_nodes : int
        Nodes after which it gives up; the tree then proves what one of a twentieth of them does.
    callback : function of int, optional
        Is told how many nodes were explored; gives up by returning true.

    Raises
    ------
    InvalidValueError
        The problem has no job, or weights or penalties.

    Examples
    --------
    >>> problem = PriceProblem.of_rows(2, [(0, [(2, 1, 0)]), (0, [(2, 2, 0)]), (0, [(1, 3, 0)])])
    >>> [(tree.complete, tree.bound) for tree in (prove_last(problem, last) for last in (6, 7))]
    [(True, 6), (False, 6)]
    """
    if not problem.jobs:
        raise InvalidValueError("price problem", "jobs", 0, "must be at least one")
    if (problem.weight != 1).any() or problem.penalty.any():
        raise InvalidValueError(
            "price problem", "weight or penalty", "given", "must not be: the last completion counts"
        )
    best = search = _Search(problem, target, most_nodes, callback)
    if search.run():
        return Tree(target, target, tuple(search.nodes), True, search.explored, True)
    low, high = int((problem.release + _shortest(problem)).max()), target - 1
    while low < high or best is search:
        attempt = _Search(problem, (low + high + 1) // 2, 1 + most_nodes // 20, None)
        if attempt.run():
            low, best = attempt.target, attempt
        else:
            high = attempt.target - 1
    return Tree(target, low, tuple(best.nodes), False, search.explored, True)


def _shortest(problem: PriceProblem) -> Ints:
    """Shortest duration of every job."""
    shortest: Ints = np.minimum.reduceat(problem.duration, problem.first[:-1])
    return shortest


def _windows(problem: PriceProblem, target: int) -> Windows:
    """Starts that allow all jobs to complete before a target."""
    return Windows(problem.release - problem.origin, target - 1 - problem.origin - _shortest(problem))


class _Search:
    """Depth first search; nodes in preorder."""

    def __init__(
        self, problem: PriceProblem, target: int, most_nodes: int, callback: Callable[[int], bool] | None
    ) -> None:
        self.problem, self.target, self.most_nodes, self.callback = problem, target, most_nodes, callback
        self.shortest, self.job = _shortest(problem), np.repeat(np.arange(problem.jobs), np.diff(problem.first))
        self.nodes: list[Node] = []
        self.explored = 0

    def run(self) -> bool:
        """Whether the tree is complete."""
        open_nodes = [_windows(self.problem, self.target)]
        while open_nodes:
            windows = open_nodes.pop()
            if self.explored >= self.most_nodes or (self.callback is not None and self.callback(self.explored)):
                return False
            self.explored += 1
            node: Node | None = self.leaf(windows)
            if node is None:
                node = self._split(windows)
                if node is None:
                    return False
                open_nodes += [windows.after(node.job, node.at), windows.by(node.job, node.at)]
            self.nodes.append(node)
        return True

    def leaf(self, windows: Windows) -> Leaf | None:
        """Prices that prove it for the windows, if an empty window does not."""
        if windows.empty:
            return Leaf(None)
        begin, end, beyond = self._most_crowded(windows)
        if beyond <= 0:
            return None
        alone = int((windows.earliest + self.problem.origin + self.shortest).sum())
        price = -((self.problem.jobs * (self.target - 1) + 1 - alone) // -beyond)
        if price > _MOST_PRICE:
            return None
        return Leaf(Prices(np.array([begin, end]), np.array([max(price, 0)]), 1))

    def _most_crowded(self, windows: Windows) -> tuple[int, int, int]:
        """Two instants and the GPU-ticks that jobs must hold between them beyond those there are, the most."""
        problem, duration = self.problem, self.problem.duration
        earliest, latest = windows.earliest[self.job], windows.latest[self.job]
        begins, ends = np.unique(windows.earliest), np.unique(windows.latest + self.shortest)
        if len(begins) * len(ends) * len(duration) > _MOST_ENTRIES:
            ends = ends[-1:]
            begins = begins[:: -(len(begins) * len(duration) // -_MOST_ENTRIES)]
        begin, end = begins[:, None, None], ends[None, :, None]
        early = np.minimum(earliest + duration, end) - np.maximum(earliest, begin)
        late = np.minimum(latest + duration, end) - np.maximum(latest, begin)
        held = problem.width * np.maximum(np.minimum(early, late), 0)
        needed = np.minimum.reduceat(held, problem.first[:-1], axis=2).sum(axis=2)
        beyond = needed - problem.reach * np.maximum(ends[None, :] - begins[:, None], 0)
        beyond[begins[:, None] >= ends[None, :]] = 0
        row, column = np.unravel_index(int(beyond.argmax()), beyond.shape)
        return int(begins[row]), int(ends[column]), int(beyond[row, column])

    def _split(self, windows: Windows) -> Split | None:
        """The job whose start decides most: of most GPUs, times what its window and its length have in common."""
        problem = self.problem
        width = np.minimum.reduceat(problem.width, problem.first[:-1])
        starts = windows.latest - windows.earliest
        score = np.where(starts > 0, width * np.minimum(starts + 1, self.shortest) + 1, 0)
        job = int(score.argmax())
        if not score[job]:
            return None
        return Split(job, int(windows.earliest[job] + windows.latest[job]) // 2)
