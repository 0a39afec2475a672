"""All columns that a server can hold, counted before they are listed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from frostline.errors import FrostlineError
from frostline.timing.iteration_time import Matrix

__all__ = ["TooLargeError", "column_count", "columns_within"]


class TooLargeError(FrostlineError, ValueError):
    """A case that is beyond an exact method, by an estimate made before any work.

    Parameters
    ----------
    method : str
        The method.
    what : str
        What is counted.
    estimate, limit : int
        How many there are, and the most that the method takes.

    Examples
    --------
    >>> str(TooLargeError("brute-force", "steps", 12_345_678_901, 10**9))
    'placement: method brute-force would take about 1.2e+10 steps, at most 1e+09 are allowed'
    """

    def __init__(self, method: str, what: str, estimate: int, limit: int) -> None:
        text = f"would take about {estimate:.2g} {what}, at most {limit:.2g} are allowed"
        super().__init__(f"placement: method {method} {text}")
        self.method, self.what, self.estimate, self.limit = method, what, estimate, limit


def column_count(counts: Sequence[int], sizes: Sequence[int], room: int) -> int:
    """Number of columns within a server's room, the empty one included.

    Parameters
    ----------
    counts : sequence of int, shape (stages,)
        Replicas of each stage.
    sizes : sequence of int, shape (stages,)
        GPUs that one replica of each stage fills.
    room : int
        Free GPUs.

    Examples
    --------
    >>> column_count([2, 2], [1, 2], 3)
    5
    """
    ways = [1] + [0] * room  # columns of the stages so far by load
    for count, size in zip(counts, sizes, strict=True):
        for load in range(room, 0, -1):
            ways[load] += sum(ways[load - size * held] for held in range(1, min(count, load // size) + 1))
    return sum(ways)


def columns_within(counts: Sequence[int], sizes: Sequence[int], room: int) -> Matrix:
    """All columns within a server's room in lexicographic order, the empty one first, shape (columns, stages).

    Examples
    --------
    >>> columns_within([2, 2], [1, 2], 3).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1], [2, 0]]
    """
    columns = np.zeros((1, 0), np.int64)
    loads = np.zeros(1, np.int64)
    for count, size in zip(counts, sizes, strict=True):
        held = np.arange(min(count, room // size) + 1)
        after = loads[:, None] + size * held
        which, more = np.nonzero(after <= room)
        columns = np.hstack([columns[which], held[more][:, None]])
        loads = after[which, more]
    return columns
