"""One row: one price by the concave hull, whole steps at that price, and the rest filled greedily.

The linear relaxation of a multiple-choice knapsack takes steps along the concave hulls of the jobs by falling worth per
unit of weight until one no longer fits (Sinha and Zoltners, *The multiple-choice knapsack problem*, Operations Research
27, 1979). That step's worth per unit is the price, and the best bound that any price proves. Two choices are made
of it: the steps before it, and those with it, where others are taken back. Both are filled up, and the better one is
the answer. It is worth at least half of the best one over everyone waiting, for the step that no longer fits and
those before it are each worth no more than one of the two.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from frostline.freezing.optimizer.frontier import Frontier, Steps, frontier_of, hull_steps
from frostline.freezing.optimizer.jit import loops
from frostline.freezing.optimizer.kernel import best_step
from frostline.freezing.optimizer.menus import Ints

__all__ = ["COMPILED_FROM", "Priced", "one_price", "one_price_arrays"]

COMPILED_FROM = 100_000
"""Options from which on compiled loops take over, where numba is there: they must be worth loading it."""


class Priced(NamedTuple):
    """Option of each job, and the price of a unit of weight, ``price / denominator``."""

    chosen: Ints
    price: int
    denominator: int


def one_price(first: Ints, job: Ints, weight: Ints, value: Ints, capacity: int) -> Priced:
    """Choice and price, by compiled loops or whole arrays: the same to the last bit.

    Parameters
    ----------
    first : ndarray of int64, shape (jobs + 1,)
        First option of each job, which weighs nothing.
    job, weight, value : ndarray of int64, shape (options,)
        Job, weight from 0, and value of each option.
    capacity : int
        Most weight of a choice.

    Examples
    --------
    >>> first, job = np.array([0, 3, 6]), np.repeat([0, 1], 3)
    >>> weight, value = np.array([0, 1, 2] * 2), np.array([0, 10, 18, 0, 9, 16])
    >>> priced = one_price(first, job, weight, value, 3)
    >>> priced.chosen.tolist(), priced.price, priced.denominator
    ([2, 4], 7, 1)
    """
    fast = loops() if len(weight) >= COMPILED_FROM else None
    if fast is None:
        return one_price_arrays(first, job, weight, value, capacity)
    chosen, price, denominator = fast.one_price(first, weight, value, capacity)
    return Priced(chosen, int(price), int(denominator))


def one_price_arrays(first: Ints, job: Ints, weight: Ints, value: Ints, capacity: int) -> Priced:
    """Choice and price over whole arrays."""
    frontier = frontier_of(first, job, weight, value)
    steps = hull_steps(frontier)
    order = np.argsort(-(steps.value / steps.weight), kind="stable")
    loads = np.cumsum(steps.weight[order])
    taken = int(np.searchsorted(loads, capacity, side="right"))
    at = frontier.first[:-1].copy()
    at[steps.job[order[:taken]]] = steps.to[order[:taken]]  # of a job's steps the last one counts
    if taken == len(order):
        return Priced(frontier.option[at], 0, 1)
    last = int(order[taken])
    left = capacity - int(loads[taken - 1] if taken else 0)
    above, room = _above(at, steps, order[:taken], last, left, frontier)
    _fill(at, frontier, left)
    _fill(above, frontier, room)
    better = frontier.value[above].sum() > frontier.value[at].sum()
    return Priced(frontier.option[above if better else at], int(steps.value[last]), int(steps.weight[last]))


def _above(at: Ints, steps: Steps, taken: Ints, last: int, left: int, frontier: Frontier) -> tuple[Ints, int]:
    """Places with the step that no longer fits, where as many as must be are taken back, and the weight left then."""
    above, keep = at.copy(), int(steps.job[last])
    above[keep] = steps.to[last]
    left -= int(steps.weight[last])
    for step in taken[::-1].tolist():
        if left >= 0:
            break
        if steps.job[step] != keep:
            above[steps.job[step]] = _before(frontier, int(steps.to[step]), int(steps.weight[step]))
            left += int(steps.weight[step])
    return above, left


def _before(frontier: Frontier, to: int, weight: int) -> int:
    """Place from which a step leads to another."""
    place = to - 1
    while frontier.weight[to] - frontier.weight[place] < weight:
        place -= 1
    return place


def _fill(at: Ints, frontier: Frontier, left: int) -> None:
    """Give what is left to the jobs that gain most per unit of weight, one after another."""
    density, best = _best_steps(at, frontier, left)
    load, worth = frontier.weight, frontier.value
    while left > 0 and len(at):
        job = int(density.argmax())
        if best[job] < 0:
            return
        needed = int(load[best[job]] - load[at[job]])
        if needed <= left:
            at[job] = best[job]
            left -= needed
        density[job], best[job] = best_step(int(at[job]), int(frontier.first[job + 1]), load, worth, left)


def _best_steps(at: Ints, frontier: Frontier, left: int) -> tuple[npt.NDArray[np.float64], Ints]:
    """For each job the most that a unit of weight gains by a step that fits, and the place it leads to, or -1."""
    here = at[frontier.job]
    load, gain = frontier.weight - frontier.weight[here], frontier.value - frontier.value[here]
    fits = (load > 0) & (load <= left)
    density = np.divide(gain, load, out=np.zeros(len(load)), where=fits)
    most = np.maximum.reduceat(density, frontier.first[:-1])
    hits = np.flatnonzero(fits & (density == most[frontier.job]))
    best = np.full(len(at), -1)
    best[frontier.job[hits[::-1]]] = hits[::-1]  # of equal ones the first counts
    return most, best
