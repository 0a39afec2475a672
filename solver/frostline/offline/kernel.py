"""Loops of the search over lists on one pool of GPUs, over whole numbers in arrays.

The functions are plain Python and run compiled where numba is there, see :func:`frostline.placement.jit.compiled`. A
list gives the plan that :func:`frostline.offline.listing.listed` makes of it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

INLINED = ("stretch_at", "earliest", "cut", "changed")
"""Functions that compiled code takes into their callers."""


def stretch_at(begin: Ints, count: int, at: int) -> int:
    """Number of the stretch of time that holds an instant."""
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if begin[middle] <= at:
            low = middle + 1
        else:
            high = middle
    return low - 1


def earliest(begin: Ints, free: Ints, count: int, width: int, duration: int, release: int) -> tuple[int, int]:
    """First instant from a release on from which GPUs stay free for a duration, and how many stretches were seen."""
    first = stretch_at(begin, count, release)
    at, start, end = first, release, release + duration
    while at < count and begin[at] < end:
        if free[at] < width:
            start = begin[at + 1]  # the last stretch has all GPUs free
            end = start + duration
        at += 1
    return start, at - first


def cut(begin: Ints, free: Ints, count: int, at: int) -> tuple[int, int]:
    """Number of the stretch that begins at an instant, which now there is, and how many there are."""
    i = stretch_at(begin, count, at)
    if begin[i] == at:
        return i, count
    for k in range(count, i + 1, -1):
        begin[k], free[k] = begin[k - 1], free[k - 1]
    begin[i + 1], free[i + 1] = at, free[i]
    return i + 1, count + 1


def list_value(
    order: Ints, fixed: Ints, release: Ints, first: Ints, modes: Ints, gpus: int, last_only: bool, calendar: Ints
) -> tuple[int, int]:
    """Value of the plan of a list, and the stretches that were seen.

    Parameters
    ----------
    order : ndarray of int64, shape (tasks,)
        All tasks.
    fixed : ndarray of int64, shape (tasks,)
        Mode of each, below 0 for the one in which it ends first.
    release : ndarray of int64, shape (tasks,)
        Releases.
    first : ndarray of int64, shape (tasks + 1,)
        First mode of each.
    modes : ndarray of int64, shape (4, modes)
        GPUs, duration, cost and area of each.
    gpus : int
        GPUs of the pool.
    last_only : bool
        Whether the last end counts, else the sum of all.
    calendar : ndarray of int64, shape (2, 2 tasks + 2)
        Room to work in.
    """
    begin, free = calendar[0], calendar[1]
    begin[0], free[0], count = 0, gpus, 1
    value = seen = 0
    for task in order:
        best_end = best_mode = best_start = -1
        for mode in range(first[task], first[task + 1]):
            if fixed[task] >= 0 and first[task] + fixed[task] != mode:
                continue
            start, steps = earliest(begin, free, count, modes[0, mode], modes[1, mode], release[task])
            seen += steps
            end = start + modes[2, mode]
            if best_mode < 0 or end < best_end or (end == best_end and modes[3, mode] < modes[3, best_mode]):
                best_end, best_mode, best_start = end, mode, start
        i, count = cut(begin, free, count, best_start)
        j, count = cut(begin, free, count, best_start + modes[1, best_mode])
        for k in range(i, j):
            free[k] -= modes[0, best_mode]
        value = max(value, best_end) if last_only else value + best_end
    return value, seen


def changed(order: Ints, fixed: Ints, new_order: Ints, new_fixed: Ints, change: Ints) -> None:
    """Copy a list with a change: 0 exchanges two tasks, 1 moves one to the place of another, 2 fixes a mode."""
    kind, i, j = change[0], change[1], change[2]
    new_order[:] = order
    new_fixed[:] = fixed
    if kind == 2:
        new_fixed[i] = j
    elif kind == 0:
        new_order[i], new_order[j] = order[j], order[i]
    elif i < j:
        new_order[i:j] = order[i + 1 : j + 1]
        new_order[j] = order[i]
    else:
        new_order[j + 1 : i + 1] = order[j:i]
        new_order[j] = order[i]


def annealed(
    lists: Ints,
    values: Ints,
    release: Ints,
    first: Ints,
    modes: Ints,
    gpus: int,
    last_only: bool,
    changes: Ints,
    allowed: Floats,
) -> int:
    """Try changes of a list one after another; the stretches that were seen.

    Parameters
    ----------
    lists : ndarray of int64, shape (2, 2, tasks)
        Order and fixed modes of the present list and of the best one; taken further.
    values : ndarray of int64, shape (2,)
        Their values; taken further.
    release, first, modes, gpus, last_only
        See :func:`list_value`.
    changes : ndarray of int64, shape (changes, 3)
        See :func:`changed`.
    allowed : ndarray of float64, shape (changes,)
        By how much the value may rise with each.
    """
    tasks = len(release)
    trial = np.empty((2, tasks), np.int64)
    calendar = np.empty((2, 2 * tasks + 2), np.int64)
    seen = 0
    for k in range(len(changes)):
        changed(lists[0, 0], lists[0, 1], trial[0], trial[1], changes[k])
        value, steps = list_value(trial[0], trial[1], release, first, modes, gpus, last_only, calendar)
        seen += steps
        if value - values[0] <= allowed[k]:
            lists[0], values[0] = trial, value
            if value < values[1]:
                lists[1], values[1] = trial, value
    return seen
