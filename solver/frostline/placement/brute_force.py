"""Brute force: every column of every server against every rest of the job. The oracle for all other methods."""

from __future__ import annotations

import math
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from frostline.errors import TooLargeError
from frostline.placement.answer import Answer
from frostline.placement.columns import column_count, columns_within
from frostline.placement.consolidate import on_fewest
from frostline.placement.request import Request
from frostline.timing.iteration_time import Matrix

__all__ = ["MOST_STEPS", "brute_force", "steps"]

MOST_STEPS = 200_000_000
"""Most table entries that brute force computes, a few seconds' worth."""

_NEVER = np.int64(1 << 62)
_METHOD = "brute-force"


def brute_force(request: Request) -> Answer:
    """Best placement, by looking at all of them; for tiny cases.

    Server by server, for every number of servers used and every set of replicas placed so far, it keeps the least
    time of the slowest server. It asks the timing model for nothing but the time of columns, so that it serves as the
    oracle of the other methods. Of equally fast placements it finds one on the fewest servers.

    Parameters
    ----------
    request : Request
        Stage graph and free GPUs.

    Raises
    ------
    TooLargeError
        The case is not tiny: more than :data:`MOST_STEPS`.

    Examples
    --------
    >>> from frostline.timing.contention import ContentionTime
    >>> from frostline.timing.stage_graph import StageGraph
    >>> path = StageGraph(replicas=[1] * 4, compute_s=[0] * 4, edges={(0, 1): 10, (1, 2): 1, (2, 3): 10})
    >>> answer = brute_force(Request(timing=ContentionTime(graph=path, nic_bytes_per_s=1), free=(2, 2)))
    >>> answer.matrix.tolist(), answer.bound_ns
    ([[1, 1, 0, 0], [0, 0, 1, 1]], 500000000)
    """
    part, rows, most_servers = on_fewest(request)
    estimate = steps(part, most_servers)
    if estimate > MOST_STEPS:
        raise TooLargeError("placement", _METHOD, "steps", estimate, MOST_STEPS)
    matrix = request.empty()
    matrix[list(rows)] = _Tables(part, most_servers).best()
    return Answer(matrix=matrix, source=_METHOD, bound_ns=request.value_ns(matrix), bound=_METHOD)


def steps(request: Request, most_servers: int) -> int:
    """Table entries that brute force computes for a request."""
    states = math.prod(count + 1 for count in request.counts)
    columns = {room: column_count(request.counts, request.sizes.tolist(), room) for room in set(request.room.tolist())}
    return states * sum(columns[room] * min(row + 1, most_servers) for row, room in enumerate(request.room.tolist()))


class _Tables:
    """Least slowest time by (servers used, replicas placed in mixed radix) after each row."""

    def __init__(self, request: Request, most_servers: int) -> None:
        self._request, self._most = request, most_servers
        radix = [count + 1 for count in request.counts]
        self._strides = np.array(list(accumulate(radix[:-1], int.__mul__, initial=1)), np.int64)
        self._placed = np.stack(
            [np.arange(np.prod(radix)) // stride % base for stride, base in zip(self._strides, radix, strict=True)]
        )
        self._columns = {room: self._columns_of(room) for room in set(request.room.tolist())}

    def best(self) -> Matrix:
        """A best matrix."""
        tables = [self._start()]
        for row in range(len(self._request.rows)):
            tables.append(self._after(tables[-1], row))
        full = len(self._placed[0]) - 1
        used = int(tables[-1][:, full].argmin())  # the fewest servers of equally fast ones
        return self._traced(tables, used, full)

    def _start(self) -> Matrix:
        table = np.full((self._most + 1, len(self._placed[0])), _NEVER)
        table[0, 0] = 0
        return table

    def _columns_of(self, room: int) -> Matrix:
        request = self._request
        return columns_within(request.counts, request.sizes.tolist(), room)[1:]

    def _times(self, row: int) -> tuple[Matrix, npt.NDArray[np.int64]]:
        """Columns of a row and their nanoseconds."""
        request = self._request
        columns = self._columns[int(request.room[row])]
        return columns, request.columns_ns(columns, np.full(len(columns), request.classes[row]))

    def _after(self, table: Matrix, row: int) -> Matrix:
        """Table with one row more."""
        after = table.copy()
        columns, times = self._times(row)
        for column, time_ns, step in zip(columns, times, columns @ self._strides, strict=True):
            able = np.flatnonzero((self._placed >= column[:, None]).all(axis=0))
            reached = np.maximum(table[:-1, able - step], time_ns)
            after[1:, able] = np.minimum(after[1:, able], reached)
        return after

    def _traced(self, tables: list[Matrix], used: int, state: int) -> Matrix:
        """Matrix that leads to an entry of the last table."""
        matrix = self._request.empty()
        for row in range(len(matrix) - 1, -1, -1):
            value = tables[row + 1][used, state]
            if tables[row][used, state] == value:
                continue
            columns, times = self._times(row)
            able = np.flatnonzero((columns <= self._placed[:, state]).all(axis=1))
            reached = np.maximum(tables[row][used - 1, state - columns[able] @ self._strides], times[able])
            matrix[row] = columns[able[int(np.argmax(reached == value))]]
            used, state = used - 1, state - int(matrix[row] @ self._strides)
        return matrix
