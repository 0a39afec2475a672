"""One row: the most valuable choice of every weight, job after job."""

from __future__ import annotations

import math
import time

import numpy as np
import numpy.typing as npt

from frostline.errors import TooLargeError
from frostline.freezing.optimizer.frontier import Frontier, frontier_of
from frostline.freezing.optimizer.knapsack import Knapsack
from frostline.freezing.optimizer.menus import Ints

__all__ = ["MOST_CELLS", "dp", "table_cells"]

MOST_CELLS = 200_000_000
"""Most jobs times weights of a table."""


def dp(knapsack: Knapsack, deadline_s: float = math.inf, most_cells: int = MOST_CELLS) -> Ints | None:
    """An optimal choice where one row couples the jobs, by dynamic programming over what is left of it.

    ``best_j(b) = max_c best_{j-1}(b - a_jc) + v_jc`` over the options c of job j that are worth their weight; of equal
    ones the lightest counts. Weights are taken relative to the lightest option of each job, and divided by what they
    have in common. One step is one operation over all b, so that a table of n jobs takes ``O(n m)`` of these.

    Parameters
    ----------
    knapsack : Knapsack
        Jobs and at most one row.
    deadline_s : float
        Instant of :func:`time.perf_counter` at which to give up.
    most_cells : int
        Most jobs times weights.

    Returns
    -------
    ndarray of int64, shape (jobs,), or None
        Option of each job; None where the deadline passed or no choice fits.

    Raises
    ------
    TooLargeError
        The table has more cells than that.

    Examples
    --------
    >>> from frostline.freezing.optimizer.knapsack import knapsack_of
    >>> from frostline.freezing.optimizer.menus import Menus
    >>> menus = Menus(first=[0, 3, 6], gpus=[0, 1, 2, 0, 2, 3], value=[0, 10, 18, 0, 19, 21])
    >>> dp(knapsack_of(menus, [3], [-1])).tolist()
    [1, 4]
    """
    frontier, loads, room = _relative(knapsack)
    if room < 0:
        return None
    cells = _cells(frontier, room)
    if cells > most_cells:
        raise TooLargeError("choice", "dp", "jobs × weights", cells, most_cells)
    worths = frontier.value - frontier.value[frontier.first[:-1]][frontier.job]
    best, table = np.zeros(room + 1, np.int64), []
    for job in range(knapsack.jobs):
        options = range(int(frontier.first[job]) + 1, int(frontier.first[job + 1]))
        if len(options):
            if time.perf_counter() > deadline_s:
                return None
            best, taken = _with_job(best, loads[options], worths[options])
            table.append((job, taken))
    return _read(frontier, loads, room, table)


def table_cells(knapsack: Knapsack) -> int:
    """Jobs times weights of the table that :func:`dp` would fill; 0 where no choice fits."""
    frontier, _, room = _relative(knapsack)
    return _cells(frontier, room)


def _relative(knapsack: Knapsack) -> tuple[Frontier, Ints, int]:
    """Options worth their weight, their weights over the lightest of the job in common parts, and what is left then."""
    frontier = frontier_of(knapsack.first, knapsack.job, knapsack.weight(), knapsack.value)
    lightest = frontier.weight[frontier.first[:-1]]
    loads = frontier.weight - lightest[frontier.job]
    room = int(knapsack.capacity[0] - lightest.sum()) if knapsack.coupled else 0
    part = int(np.gcd.reduce(loads)) or 1
    heaviest = np.maximum.reduceat(loads, frontier.first[:-1]).sum() if knapsack.jobs else 0
    return frontier, loads // part, min(room // part, int(heaviest) // part)


def _cells(frontier: Frontier, room: int) -> int:
    return int((np.diff(frontier.first) > 1).sum()) * (room + 1)


def _with_job(best: Ints, loads: Ints, worths: Ints) -> tuple[Ints, npt.NDArray[np.uint32]]:
    """Best values with one more job, and which of its heavier options they take, 0 for none."""
    taken = np.zeros(len(best), np.min_scalar_type(len(loads)))
    after = best.copy()
    for number, (load, worth) in enumerate(zip(loads.tolist(), worths.tolist(), strict=True), 1):
        if load >= len(best):
            break
        found = best[: len(best) - load] + worth
        better = found > after[load:]
        np.copyto(after[load:], found, where=better)
        taken[load:][better] = number
    return after, taken


def _read(frontier: Frontier, loads: Ints, room: int, table: list[tuple[int, npt.NDArray[np.uint32]]]) -> Ints:
    """Choice that the table gives for all there is."""
    at = frontier.first[:-1].copy()
    for job, taken in reversed(table):
        at[job] += int(taken[room])
        room -= int(loads[at[job]])
    return frontier.option[at]
