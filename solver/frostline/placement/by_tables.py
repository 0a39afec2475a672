"""Descent, kicks and merging in the loops of :mod:`frostline.placement.kernel`, for models that have tables."""

from __future__ import annotations

import numpy as np

from frostline.placement.jit import search_loops
from frostline.placement.request import Request
from frostline.placement.tables import Problem
from frostline.timing.iteration_time import Matrix

__all__ = ["ByTables"]

_STEPS = 1 << 30
_STEPS_OF_LARGE_JOBS = 8
_LARGE_JOB = 256
_DIVISIONS = 1000


class ByTables:
    """Moves of local search for one request, see :class:`~frostline.placement.by_columns.ByColumns`.

    Parameters
    ----------
    request : Request
        Stage graph and free GPUs.
    problem : Problem
        The same as arrays.
    """

    def __init__(self, request: Request, problem: Problem) -> None:
        self._request, self._problem = request, problem
        self._loops = search_loops()
        self._large = request.need > _LARGE_JOB

    def slowest_ns(self, matrix: Matrix) -> int:
        """Time of the slowest row."""
        return int(self._loops.slowest_time(self._problem, matrix))

    def descended(self, matrix: Matrix) -> tuple[int, Matrix]:
        """Matrix from which no step improves, after its time; an earlier one once the deadline has passed."""
        nothing, slowest_ns = np.zeros(1, np.int64), -1
        steps = _STEPS_OF_LARGE_JOBS if self._large else _STEPS
        while slowest_ns < 0:
            slowest_ns, matrix = self._loops.descended(self._problem, matrix, nothing, steps)
            if slowest_ns < 0 and self._request.late:
                slowest_ns = self.slowest_ns(matrix)
        return int(slowest_ns), matrix

    def kicked(self, matrix: Matrix, kicks: int) -> tuple[int, Matrix]:
        """Best matrix after so many kicks, each followed by descent, after its time; fewer once the deadline passes."""
        random, budget = self._request.random(2), np.array([_DIVISIONS], np.int64)
        while self._large and kicks and not self._request.late:
            kicks -= 1
            _, matrix = self._loops.kicked(self._problem, matrix, random, 1, np.zeros(1, np.int64))
        slowest_ns, matrix = self._loops.kicked(self._problem, matrix, random, 0 if self._large else kicks, budget)
        return int(slowest_ns), matrix

    def merged(self, matrix: Matrix, limit_ns: int) -> Matrix:
        """Same placement on fewer rows: whole columns join others, the smallest first, while none exceeds a limit."""
        fewer: Matrix = self._loops.merged(self._problem, matrix, limit_ns)
        return fewer
