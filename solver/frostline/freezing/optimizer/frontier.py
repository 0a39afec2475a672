"""One row: the options worth their weight, and the steps between those on the concave hull, over whole arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from frostline.freezing.optimizer.menus import Ints

__all__ = ["Frontier", "Steps", "frontier_of", "hull_steps"]


class Frontier(NamedTuple):
    """Options that no option of the same job beats with less weight or as much, by rising weight and value.

    ``first[j]`` is the place of the first one of job j; the others are given by place.
    """

    first: Ints
    option: Ints
    job: Ints
    weight: Ints
    value: Ints


class Steps(NamedTuple):
    """Steps from one option on the hull to the next: the job, the place it leads to, and what it adds."""

    job: Ints
    to: Ints
    weight: Ints
    value: Ints


def frontier_of(first: Ints, job: Ints, weight: Ints, value: Ints) -> Frontier:
    """Options worth their weight; of equal ones the first.

    Parameters
    ----------
    first : ndarray of int64, shape (jobs + 1,)
        First option of each job, of which there is at least one.
    job, weight, value : ndarray of int64, shape (options,)
        Job, weight from 0, and value of each option.

    Examples
    --------
    >>> first, job = np.array([0, 5]), np.zeros(5, np.int64)
    >>> weight, value = np.array([0, 4, 1, 2, 2]), np.array([0, 6, 3, 3, 7])
    >>> frontier_of(first, job, weight, value).option.tolist()
    [0, 2, 4]
    """
    if len(first) == 1:
        return Frontier(np.zeros(1, np.int64), *(np.zeros(0, np.int64) for _ in range(4)))
    order = _by_weight(job, weight)
    best = _best_of_equal(order, job[order], weight[order], value[order])
    rising = _rising(job[best], value[best])
    option = best[rising]
    starts = np.searchsorted(job[option], np.arange(len(first)))
    return Frontier(starts, option, job[option], weight[option], value[option])


def _by_weight(job: Ints, weight: Ints) -> Ints:
    """Options by job and weight, equal ones in their order."""
    key = job * (int(weight.max()) + 1) + weight
    if (key[1:] >= key[:-1]).all():
        return np.arange(len(key))
    return key.argsort(kind="stable")


def _best_of_equal(order: Ints, job: Ints, weight: Ints, value: Ints) -> Ints:
    """The first most valuable option of each job and weight, from options in order of these."""
    new = np.ones(len(order), bool)
    new[1:] = (job[1:] != job[:-1]) | (weight[1:] != weight[:-1])
    starts = np.flatnonzero(new)
    group = np.cumsum(new) - 1
    hits = np.flatnonzero(value == np.maximum.reduceat(value, starts)[group])
    leads = np.ones(len(hits), bool)
    leads[1:] = group[hits[1:]] != group[hits[:-1]]
    return order[hits[leads]]


def _rising(job: Ints, value: Ints) -> Ints:
    """Places of options more valuable than all before them of their job."""
    low = int(value.min())
    height = value - low + job * (int(value.max()) - low + 1)  # any option of a job is above all of the jobs before
    rising = np.ones(len(height), bool)
    rising[1:] = height[1:] > np.maximum.accumulate(height)[:-1]
    return np.flatnonzero(rising)


def hull_steps(frontier: Frontier) -> Steps:
    """Steps along the upper concave hull of each job: what the next unit of weight is worth falls along them.

    An option on or below the chord between two others is no corner of the hull, and it stays so whatever else is left
    out; so all such are left out at once, as long as there are any.

    Examples
    --------
    >>> first, job = np.array([0, 4]), np.zeros(4, np.int64)
    >>> steps = hull_steps(frontier_of(first, job, np.array([0, 1, 2, 3]), np.array([0, 1, 8, 9])))
    >>> steps.to.tolist(), steps.weight.tolist(), steps.value.tolist()
    ([2, 3], [2, 1], [8, 1])
    """
    corner = np.arange(len(frontier.option))
    while True:
        job, weight, value = frontier.job[corner], frontier.weight[corner], frontier.value[corner]
        load, gain, same = np.diff(weight), np.diff(value), job[1:] == job[:-1]
        below = same[1:] & same[:-1] & (gain[:-1] * load[1:] <= gain[1:] * load[:-1])
        if not below.any():
            return Steps(job[1:][same], corner[1:][same], load[same], gain[same])
        kept = np.ones(len(corner), bool)
        kept[1:-1] = ~below
        corner = corner[kept]
