"""All columns that a server can hold, counted before they are listed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from frostline.timing.iteration_time import Matrix

__all__ = ["column_count", "columns_within"]


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
