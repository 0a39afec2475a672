"""Loops of the choice, over whole numbers in arrays.

The functions are plain Python and run compiled where numba is there, see :mod:`frostline.freezing.optimizer.jit`.
:func:`one_price` gives what :mod:`frostline.freezing.optimizer.price` computes over whole arrays, to the last bit.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from frostline.freezing.optimizer.menus import Ints

INLINED = ("exchange", "extra", "is_below")
"""Functions that compiled code takes into their callers."""

Floats = npt.NDArray[np.float64]


def frontier(first: Ints, weight: Ints, value: Ints) -> tuple[Ints, Ints]:
    """Where each job begins among the options worth their weight, and these options."""
    jobs = len(first) - 1
    head = np.zeros(jobs + 1, np.int64)
    kept = np.empty(len(weight), np.int64)
    count = 0
    for job in range(jobs):
        low, high = first[job], first[job + 1]
        order = np.arange(high - low)
        if not is_sorted(weight, low, high):
            order = np.argsort(weight[low:high], kind="mergesort")
        for place in order:
            option = low + place
            last = kept[count - 1] if count > head[job] else -1
            if last >= 0 and value[option] <= value[last]:
                continue
            if last < 0 or weight[option] > weight[last]:
                count += 1
            kept[count - 1] = option
        head[job + 1] = count
    return head, kept[:count].copy()


def is_sorted(weight: Ints, low: int, high: int) -> bool:
    """Whether weights do not fall from one place to another."""
    place = low + 1
    while place < high and weight[place] >= weight[place - 1]:
        place += 1
    return place >= high


def hull(head: Ints, weight: Ints, value: Ints) -> tuple[Ints, Ints]:
    """Job and place of the options on the concave hull, from the weights and values of those worth their weight."""
    places = np.empty(len(weight), np.int64)
    jobs = np.empty(len(weight), np.int64)
    count = 0
    for job in range(len(head) - 1):
        start = count
        for place in range(head[job], head[job + 1]):
            while count - start >= 2 and is_below(weight, value, places[count - 2], places[count - 1], place):
                count -= 1
            places[count], jobs[count] = place, job
            count += 1
    return jobs[:count].copy(), places[:count].copy()


def is_below(weight: Ints, value: Ints, a: int, b: int, c: int) -> bool:
    """Whether b lies on or below the chord from a to c."""
    return bool((value[b] - value[a]) * (weight[c] - weight[b]) <= (value[c] - value[b]) * (weight[b] - weight[a]))


def one_price(first: Ints, weight: Ints, value: Ints, capacity: int) -> tuple[Ints, int, int]:
    """Option of each job, and the price of a unit of weight as a fraction."""
    head, kept = frontier(first, weight, value)
    load, worth = weight[kept], value[kept]
    jobs, places = hull(head, load, worth)
    ends = np.flatnonzero(jobs[1:] == jobs[:-1]) + 1
    job, to = jobs[ends], places[ends]
    step, gain = load[to] - load[places[ends - 1]], worth[to] - worth[places[ends - 1]]
    order = np.argsort(-(gain / step), kind="mergesort")
    at = head[:-1].copy()
    left = capacity
    taken = 0
    while taken < len(order) and step[order[taken]] <= left:
        at[job[order[taken]]] = to[order[taken]]
        left -= step[order[taken]]
        taken += 1
    if taken == len(order):
        return kept[at], 0, 1
    last = order[taken]
    above = at.copy()
    above[job[last]] = to[last]
    room = undo(above, job, places[ends - 1], step, order[:taken], job[last], left - step[last])
    fill(at, head, load, worth, left)
    fill(above, head, load, worth, room)
    if worth[above].sum() > worth[at].sum():
        at = above
    return kept[at], gain[last], step[last]


def undo(at: Ints, job: Ints, back: Ints, step: Ints, taken: Ints, keep: int, left: int) -> int:
    """Take steps back, the last one first and none of one job, until no weight is missing; what is left then."""
    for last in taken[::-1]:
        if left >= 0:
            break
        if job[last] != keep:
            at[job[last]] = back[last]
            left += step[last]
    return left


def fill(at: Ints, head: Ints, load: Ints, worth: Ints, left: int) -> None:
    """Give what is left to the jobs that gain most per unit of weight, one after another."""
    density = np.empty(len(at))
    best = np.empty(len(at), np.int64)
    for job in range(len(at)):
        density[job], best[job] = best_step(at[job], head[job + 1], load, worth, left)
    while left > 0 and len(at):
        job = int(np.argmax(density))
        if best[job] < 0:
            return
        needed = load[best[job]] - load[at[job]]
        if needed <= left:
            at[job] = best[job]
            left -= needed
        density[job], best[job] = best_step(at[job], head[job + 1], load, worth, left)


def best_step(at: int, end: int, load: Ints, worth: Ints, left: int) -> tuple[float, int]:
    """Most that a unit of weight gains by a step of a job that fits, and the place it leads to, or -1."""
    density, best = 0.0, -1
    for place in range(at + 1, end):
        if load[place] - load[at] > left:
            break
        gain = (worth[place] - worth[at]) / (load[place] - load[at])
        if gain > density:
            density, best = gain, place
    return density, best


def repair(chosen: Ints, left: Ints, order: Ints, job: Ints, amounts: Ints, rows: Ints) -> None:
    """Take options in order, where that lessens what rows lack and none lacks more, until none lacks anything."""
    for option in order:
        if left.min() >= 0:
            return
        held = chosen[job[option]]
        lessens = False
        for kind in range(2):
            row = rows[kind, held]
            if left[row] < 0 and amounts[kind, held] > (amounts[kind, option] if rows[kind, option] == row else 0):
                lessens = True
        for kind in range(2):
            needed = extra(kind, held, option, amounts, rows)
            if needed > 0 and needed > left[rows[kind, option]]:
                lessens = False
        if lessens:
            exchange(left, held, option, amounts, rows)
            chosen[job[option]] = option


def improve(chosen: Ints, left: Ints, order: Ints, job: Ints, value: Ints, amounts: Ints, rows: Ints) -> bool:
    """Take options in order, each where it is worth more than the one held and fits; whether any was taken."""
    improved = False
    for option in order:
        held = chosen[job[option]]
        if value[option] <= value[held]:
            continue
        fits = True
        for kind in range(2):
            needed = extra(kind, held, option, amounts, rows)
            if needed > 0 and needed > left[rows[kind, option]]:
                fits = False
        if fits:
            exchange(left, held, option, amounts, rows)
            chosen[job[option]] = option
            improved = True
    return improved


def extra(kind: int, held: int, option: int, amounts: Ints, rows: Ints) -> int:
    """How much more of its row an option takes than the one held."""
    needed: int = amounts[kind, option]
    if rows[kind, option] == rows[kind, held]:
        needed -= amounts[kind, held]
    return needed


def exchange(left: Ints, held: int, option: int, amounts: Ints, rows: Ints) -> None:
    """Put an option in place of another in what is left."""
    for kind in range(2):
        left[rows[kind, held]] += amounts[kind, held]
        left[rows[kind, option]] -= amounts[kind, option]
