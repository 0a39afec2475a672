"""Descent: move or swap single replicas until no pair of servers gets better."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from frostline.placement.request import Request
from frostline.timing.iteration_time import Matrix

__all__ = ["Descent"]

_NEVER = np.int64(1 << 62)


class Descent:
    """Steepest descent from the slowest server, for one request.

    A step sends a replica of one stage from the slowest server to another server, takes one of another stage back, or
    does both. The step is chosen that leaves the slower of the two servers as fast as possible, then the other one.
    The times of all servers in descending order fall lexicographically with each step, so that it ends.

    Parameters
    ----------
    request : Request
        Stage graph and free GPUs.

    Examples
    --------
    >>> from frostline.timing.contention import ContentionTime
    >>> from frostline.timing.stage_graph import StageGraph
    >>> path = StageGraph(replicas=[1] * 4, compute_s=[0] * 4, edges={(0, 1): 10, (1, 2): 1, (2, 3): 10})
    >>> descent = Descent(Request(timing=ContentionTime(graph=path, nic_bytes_per_s=1), free=(2, 2)))
    >>> descent.run(np.array([[1, 0, 1, 0], [0, 1, 0, 1]])).tolist()
    [[0, 0, 1, 1], [1, 1, 0, 0]]
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        stages = len(request.counts)
        unit = np.vstack([np.eye(stages, dtype=np.int64), np.zeros((1, stages), np.int64)])
        leaves, enters = (index.ravel() for index in np.indices((stages + 1, stages + 1)))
        moves = leaves != enters
        self._enters = enters[moves]
        self._change = unit[enters[moves]] - unit[leaves[moves]]
        self._growth = self._change.sum(axis=1)

    def run(self, matrix: Matrix) -> Matrix:
        """Matrix from which no step improves; the argument is left as it is."""
        request = self._request
        matrix = matrix.copy()
        times, loads = request.rows_ns(matrix), matrix.sum(axis=1)
        while any(self._step(matrix, times, loads, row) for row in np.flatnonzero(times == times.max()).tolist()):
            if request.late:
                break
        return matrix

    def _step(self, matrix: Matrix, times: Matrix, loads: Matrix, row: int) -> bool:
        """Best step between a slowest row and any other, done in place; False if none improves."""
        slowest = times[row]
        moves, here = self._moves_of(matrix[row], loads[row], row, slowest)
        others = self._partners(loads, row)
        if not len(moves) or not len(others):
            return False
        there = self._times_there(matrix, loads, others, moves)
        high, low = np.maximum(here, there), np.minimum(here, there)
        improves = (high < slowest) | ((high == slowest) & (low < times[others][:, None]))
        if not improves.any():
            return False
        high = np.where(improves, high, _NEVER)
        low = np.where(high == high.min(), low, _NEVER)
        best_other, best_move = divmod(int(low.argmin()), len(moves))
        other, change = others[best_other], self._change[moves[best_move]]
        matrix[row] += change
        matrix[other] -= change
        loads[row], loads[other] = loads[row] + change.sum(), loads[other] - change.sum()
        times[row], times[other] = here[best_move], there[best_other, best_move]
        return True

    def _moves_of(
        self, column: Matrix, load: np.int64, row: int, slowest: np.int64
    ) -> tuple[npt.NDArray[np.int64], Matrix]:
        """Moves that the row can make without becoming slower, and its time after each."""
        request = self._request
        after = column + self._change
        moves = np.flatnonzero((after >= 0).all(axis=1) & (load + self._growth <= request.room[row]))
        times = request.columns_ns(after[moves], np.full(len(moves), request.classes[row]))
        kept = times <= slowest
        return moves[kept], times[kept]

    def _partners(self, loads: Matrix, row: int) -> npt.NDArray[np.int64]:
        """All other rows, but only one of empty rows that are alike."""
        request = self._request
        if loads.all():
            return np.delete(np.arange(len(loads)), row)
        seen = set()
        partners = []
        for other, load in enumerate(loads.tolist()):
            alike = (int(request.classes[other]), int(request.room[other]))
            if other != row and (load or alike not in seen):
                partners.append(other)
                if not load:
                    seen.add(alike)
        return np.array(partners, np.int64)

    def _times_there(
        self, matrix: Matrix, loads: Matrix, others: npt.NDArray[np.int64], moves: npt.NDArray[np.int64]
    ) -> Matrix:
        """Time of every other row after every move, shape (others, moves); out of reach where it cannot take part."""
        request = self._request
        enters = self._enters[moves]
        padded = np.hstack([matrix[others], np.ones((len(others), 1), np.int64)])
        fits = (loads[others] - request.room[others])[:, None] <= self._growth[moves]
        able = fits & (padded[:, enters] > 0)
        which, move = np.nonzero(able)
        times = np.full(able.shape, _NEVER)
        after = matrix[others[which]] - self._change[moves[move]]
        times[which, move] = request.columns_ns(after, request.classes[others[which]])
        return times
