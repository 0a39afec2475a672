"""Exact placement by column generation over what one server can hold."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from frostline.placement.answer import Answer
from frostline.placement.column_master import ColumnMaster, Picked
from frostline.placement.column_space import Columns
from frostline.placement.consolidate import on_fewest
from frostline.placement.incumbent import believed, bounded, close_enough, heuristic
from frostline.placement.interruptible import InterruptedSearchError
from frostline.placement.pattern_bound import Generation, root_bound
from frostline.placement.pattern_problem import PatternProblem
from frostline.placement.pattern_tree import PriceTree
from frostline.placement.request import Request
from frostline.timing.iteration_time import Matrix, total_ns

__all__ = ["MOST_COLUMNS", "patterns"]

MOST_COLUMNS = 5_000
"""Most columns that an integer program is given; with more, single steps of HiGHS take seconds."""

_METHOD = "patterns"
_PRICES, _TREE, _PROGRAM = "patterns: prices", "patterns: tree of prices", "patterns: integer program"
_FEW_NODES, _MANY_NODES = 200, 5_000
# Shares of the way from the bound to the incumbent at which known columns are tried where there are too many in all.
_SHARES = (1 / 16, 1 / 4, 1 / 2, 1)


def patterns(request: Request, start: Answer | None = None) -> Answer:
    """Best placement by column generation, never worse than where it starts.

    The slowest server sets the pace, so that the question is: which is the least T for which columns with f(c) <= T
    place everything? The linear relaxation over columns answers it from below, with prices of replicas as proof; its
    columns are found by dynamic programming. Integer programs over the columns, first those found so far and then all,
    answer it from above. Where a gap is left, the search branches (:mod:`~frostline.placement.pattern_tree`). HiGHS
    solves all programs on one thread. Its prices are rounded to integers and priced out exactly, its placements are
    timed anew; its word that an integer program has no solution is taken only where branching comes to no end, and
    ``bound`` says so. The method follows Gilmore and Gomory (1961) for cutting stock.

    Parameters
    ----------
    request : Request
        Stage graph and free GPUs.
    start : Answer, optional
        Incumbent; that of local search by default.

    Returns
    -------
    Answer
        Where pricing is too hard for the stage graph or time runs out, the bound is what was proved by then.

    Examples
    --------
    >>> from frostline.timing.contention import ContentionTime
    >>> from frostline.timing.stage_graph import StageGraph
    >>> path = StageGraph(replicas=[1] * 4, compute_s=[0] * 4, edges={(0, 1): 10, (1, 2): 1, (2, 3): 10})
    >>> answer = patterns(Request(timing=ContentionTime(graph=path, nic_bytes_per_s=1), free=(2, 2)))
    >>> answer.bound_ns, answer.bound
    (500000000, 'patterns: prices')
    """
    start = heuristic(request) if start is None else start
    if request.late or close_enough(request, start):
        return start
    search = _Search(request, start)
    try:
        search.run()
    except KeyboardInterrupt:
        raise InterruptedSearchError(search.answer) from None
    return search.answer


class _Search:
    """One search: the problem, the columns known so far, and the best answer."""

    def __init__(self, request: Request, start: Answer) -> None:
        self._request, self.answer = request, start
        self._part, self._rows, self._most_servers = on_fewest(request)
        limited = self._most_servers if self._most_servers < len(self._rows) else None
        self._problem = PatternProblem(self._part, limited)
        self._master = ColumnMaster(self._problem)
        self._generation = Generation(self._problem, self._master, lambda: self._request.late)

    def run(self) -> None:
        """Bound, then integer programs over known columns, then over all."""
        self._learn(self.answer.matrix)
        floor_ns = self._slowest_ns(max(self._request.timing.bound_ns, self.answer.bound_ns))
        root = root_bound(self._generation, floor_ns, self._known_ns)
        if root.prices is not None:
            self.answer = replace(self.answer, proof=root.prices)
            self._prove(root.least_ns, _PRICES)
        if not (self._stop() or self._try(root.least_ns) or self._stop() or self._branch(_FEW_NODES) or self._stop()):
            self._search(root.least_ns)

    def _search(self, least_ns: int) -> None:
        """Integer programs over all columns if there are not too many, and a large tree if these come to no end."""
        everything = self._problem.all(self._known_ns - 1, MOST_COLUMNS)
        if everything is None:
            self._search_known(least_ns)
        else:
            self._search_all(least_ns, everything)
        if not self._stop():
            self._branch(_MANY_NODES)

    def _branch(self, most_nodes: int) -> bool:
        """Whether a tree of prices proves the best placement optimal, in half of the time that is left."""
        request = self._request
        deadline_s = time.perf_counter() + request.left_s / 2

        def stop() -> bool:
            return time.perf_counter() >= deadline_s or self._stop()

        known_ns, left_s = lambda: self._known_ns, lambda: request.left_s / 2
        proof = PriceTree(self._generation, known_ns, self._accept, stop, left_s, most_nodes).run()
        if proof is not None:
            self.answer = replace(self.answer, proof=proof)
            self._prove(self._known_ns, _TREE)
        return proof is not None

    @property
    def _known_ns(self) -> int:
        """Slowest column of the best placement."""
        return self._slowest_ns(self._request.value_ns(self.answer.matrix))

    def _slowest_ns(self, value_ns: int) -> int:
        timing = self._request.timing
        return value_ns if timing.overlap else value_ns - timing.base_ns

    def _stop(self) -> bool:
        return self._request.late or close_enough(self._request, self.answer) or self._asked_to_stop()

    def _asked_to_stop(self) -> bool:
        request, answer = self._request, self.answer
        if request.progress is None:
            return False
        bound_ns = max(answer.bound_ns, request.timing.bound_ns)
        return bool(request.progress(request.value_ns(answer.matrix), bound_ns))

    def _learn(self, matrix: Matrix) -> None:
        """Make the columns of a placement known."""
        matrix = matrix[list(self._rows)]
        for kind in self._problem.spaces:
            held = matrix[matrix.any(axis=1) & (self._part.classes == kind)]
            times = self._part.columns_ns(held, np.full(len(held), kind))
            self._master.add(kind, Columns(held, held @ self._problem.sizes, times, np.zeros(len(held), np.int64)))

    def _prove(self, least_ns: int, bound: str) -> None:
        self.answer = bounded(self._request, self.answer, total_ns(self._request.timing, least_ns), bound)

    def _try(self, limit_ns: int) -> bool | None:
        """Whether known columns place everything within a limit; None if the search was cut short."""
        picked, finished = self._master.pick(limit_ns, self._request.left_s / 2)
        if picked is None:
            return False if finished else None
        known_ns = self._known_ns
        self._accept(picked)
        return True if self._known_ns < known_ns else None

    def _accept(self, picked: Picked) -> None:
        self.answer = believed(self._request, self.answer, self._placed(picked), self._most_servers, _METHOD)

    def _placed(self, picked: Picked) -> Matrix:
        """Matrix of picked columns, the largest first, each in the tightest room of its class."""
        matrix = self._request.empty()
        room, classes = self._part.room.copy(), self._part.classes
        columns = np.array([column for _, column in picked], np.int64)
        loads = columns @ self._problem.sizes
        for i in np.argsort(-loads, kind="stable").tolist():
            fitting = np.flatnonzero((classes == picked[i][0]) & (room >= loads[i]))
            if len(fitting):
                row = fitting[np.argmin(room[fitting])]
                matrix[self._rows[row]] = columns[i]
                room[row] = -1
        return matrix

    def _search_known(self, least_ns: int) -> None:
        """Try known columns on the way from the bound to the incumbent, until some do."""
        gap_ns = self._known_ns - 1 - least_ns
        for share in _SHARES:
            if self._stop() or self._try(least_ns + int(share * gap_ns)):
                return

    def _search_all(self, least_ns: int, everything: dict[int, Columns]) -> None:
        """Bisect the time limit over all columns, from just below the incumbent: often it is the best there is."""
        for kind, columns in everything.items():
            self._master.add(kind, columns)
        times = np.unique(np.concatenate([columns.times for columns in everything.values()]))
        limits = times[times >= least_ns].tolist()
        low, high = 0, len(limits)
        probe = high - 1
        while low < high and not self._stop():
            found = self._try(limits[probe])
            if found is None:
                return
            if found:
                high = int(np.searchsorted(limits, self._known_ns))
            else:
                low = probe + 1
            self._prove(limits[low] if low < high else self._known_ns, _PROGRAM)
            probe = (low + high) // 2
