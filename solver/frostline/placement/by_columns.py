"""Descent, kicks and merging for models of the iteration time that have no tables: by the times of whole columns."""

from __future__ import annotations

import numpy as np

from frostline.placement.descent import Descent
from frostline.placement.request import Request
from frostline.timing.iteration_time import Matrix

__all__ = ["ByColumns"]


class ByColumns:
    """Moves of local search for one request.

    Parameters
    ----------
    request : Request
        Stage graph and free GPUs.
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        self._descent = Descent(request)

    def slowest_ns(self, matrix: Matrix) -> int:
        """Time of the slowest row."""
        return int(self._request.rows_ns(matrix).max())

    def descended(self, matrix: Matrix) -> tuple[int, Matrix]:
        """Matrix from which no step improves, after its time."""
        matrix = self._descent.run(matrix)
        return self.slowest_ns(matrix), matrix

    def kicked(self, matrix: Matrix, kicks: int) -> tuple[int, Matrix]:
        """Best matrix after so many kicks, each followed by descent, after its time."""
        request = self._request
        rng = np.random.default_rng(np.random.SeedSequence([request.seed, 2]))
        slowest_ns, floor_ns = self.slowest_ns(matrix), request.floor_ns
        for _ in range(kicks if len(request.rows) > 1 else 0):
            if request.late or slowest_ns <= floor_ns:
                break
            found_ns, found = self.descended(self._kick(matrix, rng))
            if found_ns <= slowest_ns:
                slowest_ns, matrix = found_ns, found
        return slowest_ns, matrix

    def _kick(self, matrix: Matrix, rng: np.random.Generator) -> Matrix:
        """Copy with one to three random exchanges between two rows, the first with the slowest."""
        request, matrix = self._request, matrix.copy()
        rows = len(matrix)
        slowest = int(np.argmax(request.rows_ns(matrix)))
        for exchange in range(int(rng.integers(1, 4))):
            first = slowest if exchange == 0 else int(rng.integers(rows))
            second = (first + int(rng.integers(1, rows))) % rows
            draws = rng.random(4)
            given = _some(matrix[first], draws[0], draws[1])
            taken = _some(matrix[second], draws[2], draws[3])
            changed = matrix[[first, second]] + [taken - given, given - taken]
            if (changed @ request.sizes <= request.room[[first, second]]).all():
                matrix[[first, second]] = changed
        return matrix

    def merged(self, matrix: Matrix, limit_ns: int) -> Matrix:
        """Same placement on fewer rows: whole columns join others, the smallest first, while none exceeds a limit."""
        request, matrix = self._request, matrix.copy()
        loads = request.loads(matrix)
        moved = True
        while moved:
            moved = False
            for row in np.argsort(loads, kind="stable").tolist():
                other = self._home(matrix, loads, row, limit_ns) if loads[row] else -1
                if other >= 0:
                    matrix[other] += matrix[row]
                    loads[other] += loads[row]
                    matrix[row], loads[row], moved = 0, 0, True
        return matrix

    def _home(self, matrix: Matrix, loads: Matrix, row: int, limit_ns: int) -> int:
        """First other used row that can hold the column of a row too within a limit; -1 if there is none."""
        request = self._request
        fits = (loads > 0) & (loads + loads[row] <= request.room)
        fits[row] = False
        others = np.flatnonzero(fits)
        quick = request.columns_ns(matrix[others] + matrix[row], request.classes[others]) <= limit_ns
        return int(others[np.argmax(quick)]) if quick.any() else -1


def _some(column: Matrix, which: float, share: float) -> Matrix:
    """One replica, or all, of a random stage of a column."""
    part = np.zeros_like(column)
    held = np.flatnonzero(column)
    if len(held):
        stage = held[int(which * len(held))]
        part[stage] = column[stage] if share < 0.5 else 1
    return part
