"""Descent: move or swap single replicas until no pair of servers gets better."""

from __future__ import annotations

from typing import NamedTuple

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
        self._nothing = stages
        self._unit = np.vstack([np.eye(stages, dtype=np.int64), np.zeros((1, stages), np.int64)])

    def run(self, matrix: Matrix) -> Matrix:
        """Matrix from which no step improves; the argument is left as it is."""
        state = _State(self._request, matrix)
        while any(self._step(state, row) for row in state.slowest()):
            pass
        return state.matrix

    def _step(self, state: _State, row: int) -> bool:
        """Best step between a slowest row and any other, done in place; False if none improves."""
        slowest = state.times[row]
        others = state.partners(row)
        moves, here = self._moves_of(state, row)
        if not len(here) or not len(others) or self._request.late:
            return False
        there = self._times_there(state, others, moves)
        high, low = np.maximum(here, there), np.minimum(here, there)
        improves = (high < slowest) | ((high == slowest) & (low < state.times[others][:, None]))
        if not improves.any():
            return False
        high = np.where(improves, high, _NEVER)
        low = np.where(high == high.min(), low, _NEVER)
        best_other, best_move = divmod(int(low.argmin()), len(here))
        change, other = moves.change[best_move], int(others[best_other])
        state.apply(row, change, here[best_move])
        state.apply(other, -change, there[best_other, best_move])
        return True

    def _moves_of(self, state: _State, row: int) -> tuple[_Moves, Matrix]:
        """Moves that the row can make without becoming slower, and its time after each."""
        request, column = self._request, state.matrix[row]
        leaves = np.append(np.flatnonzero(column), self._nothing)
        enters = np.arange(self._nothing + 1)
        leaves, enters = np.repeat(leaves, len(enters)), np.tile(enters, len(leaves))
        sizes = np.append(request.sizes, 0)
        growth = sizes[enters] - sizes[leaves]
        able = (leaves != enters) & (state.loads[row] + growth <= request.room[row])
        leaves, enters, growth = leaves[able], enters[able], growth[able]
        change = self._unit[enters] - self._unit[leaves]
        times = request.columns_ns(column + change, np.full(len(change), request.classes[row]))
        kept = times <= state.times[row]
        return _Moves(enters[kept], change[kept], growth[kept]), times[kept]

    def _times_there(self, state: _State, others: npt.NDArray[np.int64], moves: _Moves) -> Matrix:
        """Time of every other row after every move, shape (others, moves); out of reach where it cannot take part."""
        request = self._request
        columns = state.matrix[others]
        padded = np.hstack([columns, np.ones((len(others), 1), np.int64)])
        fits = (state.loads[others] - request.room[others])[:, None] <= moves.growth
        able = fits & (padded[:, moves.enters] > 0)
        which, move = np.nonzero(able)
        times = np.full(able.shape, _NEVER)
        times[which, move] = request.columns_ns(columns[which] - moves.change[move], request.classes[others[which]])
        return times


class _Moves(NamedTuple):
    """Moves of one row: the stage that enters (one past the last for none), change of its column and of its load."""

    enters: npt.NDArray[np.int64]
    change: Matrix
    growth: npt.NDArray[np.int64]


class _State:
    """A matrix with the time and load of each row. Rows that are alike in all respects are looked at once."""

    def __init__(self, request: Request, matrix: Matrix) -> None:
        self.matrix = matrix.copy()
        self.times = request.rows_ns(matrix)
        self._sizes = request.sizes
        self.loads = request.loads(matrix)
        self._kinds = list(zip(request.classes.tolist(), request.room.tolist(), strict=True))
        self._keys = [(*kind, column.tobytes()) for kind, column in zip(self._kinds, self.matrix, strict=True)]

    def apply(self, row: int, change: Matrix, time_ns: np.int64) -> None:
        """Change a column whose time is known."""
        self.matrix[row] += change
        self.loads[row] += change @ self._sizes
        self.times[row] = time_ns
        self._keys[row] = (*self._kinds[row], self.matrix[row].tobytes())

    def slowest(self) -> list[int]:
        """Slowest rows, of rows that are alike the first."""
        rows = np.flatnonzero(self.times == self.times.max()).tolist()
        return list({self._keys[row]: row for row in reversed(rows)}.values())[::-1]

    def partners(self, row: int) -> npt.NDArray[np.int64]:
        """All other rows, of rows that are alike the first."""
        first: dict[tuple[int, int, bytes], int] = {}
        for other, key in enumerate(self._keys):
            if other != row:
                first.setdefault(key, other)
        return np.fromiter(first.values(), np.int64, len(first))
