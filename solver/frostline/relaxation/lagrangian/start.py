"""Breakpoints, and the prices to start from: the exact dual of the sum of mean busy times."""

from __future__ import annotations

import numpy as np

from frostline.relaxation.lagrangian import kernel
from frostline.relaxation.lagrangian.jit import loops
from frostline.relaxation.lagrangian.kernel import Floats, Ints
from frostline.relaxation.lagrangian.prices import Prices
from frostline.relaxation.lagrangian.problem import PriceProblem

__all__ = ["breakpoints", "finer", "mean_busy_prices"]

_EVERY_TICK = 1000
_FEWEST, _MOST = 1000, 2500


def breakpoints(problem: PriceProblem, intervals: int | None = None) -> Ints:
    """Breakpoints in ticks after the origin, from the first release to where prices can be 0.

    Every tick, where there are few; else ``intervals`` of them (by default 1,000 to 2,500, by the number of jobs), of
    which four in five are spread over the releases.

    Parameters
    ----------
    problem : PriceProblem
        At least one job.
    intervals : int, optional
        How many intervals to make.
    """
    release = problem.release - problem.origin
    end = _busy_until(problem) + int(problem.duration.max()) + 1
    count = intervals if intervals is not None else int(np.clip(problem.jobs // 400, _FEWEST, _MOST))
    if end <= (_EVERY_TICK if intervals is None else count):
        return np.arange(end + 1)
    early = np.linspace(0, int(release.max()) + 1, max(count * 4 // 5, 1))
    late = np.linspace(int(release.max()) + 1, end, max(count // 5, 1) + 1)
    times: Ints = np.unique(np.rint(np.concatenate([early, late])).astype(np.int64))
    return times


def finer(prices: Prices, factor: int = 3) -> Prices:
    """The same prices on more intervals: each is divided by its share of what a GPU earns.

    Parameters
    ----------
    prices : Prices
        Prices of single GPUs.
    factor : int
        How many intervals to add, as a multiple of those there are.
    """
    begin, length = prices.times[:-1], np.diff(prices.times)
    earned = prices.numerators * length.astype(np.float64)
    share = earned / max(float(earned.sum()), 1.0)
    parts = np.clip(np.rint(share * factor * len(length)), 1, length).astype(np.int64)
    owner = np.repeat(np.arange(len(length)), parts)
    number = np.arange(len(owner)) - (np.cumsum(parts) - parts)[owner]
    times = np.append(begin[owner] + number * length[owner] // parts[owner], prices.times[-1])
    return Prices(times, prices.numerators[owner], prices.denominator)


def _busy_until(problem: PriceProblem) -> int:
    """When a machine that never idles needlessly has done all work, in ticks after the origin, rounded up."""
    order = np.argsort(problem.release, kind="stable")
    release = (problem.release - problem.origin)[order] * problem.gpus
    work = problem.least_work[order]
    after = np.cumsum(work[::-1])[::-1]  # the work of a job and of those released later
    return int(-(-(release + after).max() // problem.gpus))


def mean_busy_prices(problem: PriceProblem, times: Ints) -> Floats:
    """Price of a GPU between breakpoints, the mean of that which is optimal for mean busy times.

    On one machine as fast as all GPUs, with the least work that each job may bring, the sum of weighted mean busy times
    is least when the job of least work per weight is served (M. X. Goemans, *Improved approximation algorithms for
    scheduling with release dates*, SODA 1997). The dual of that linear program is read off the machine.

    Parameters
    ----------
    problem : PriceProblem
        At least one job.
    times : array of int64, shape (k + 1,)
        Breakpoints in ticks after the origin.

    Returns
    -------
    array of float64, shape (k,)
        In weight per GPU.
    """
    order = np.argsort(problem.release, kind="stable")
    release = (problem.release - problem.origin)[order] * problem.gpus
    work = np.maximum(problem.least_work[order], 1)
    slope = problem.weight[order] / work
    run = loops() or kernel
    begin, end, piece = run.static_priority(release, work, 1.0 / slope)
    at_begin, at_end = run.piece_prices(begin, end, piece, slope)
    paid = np.concatenate([[0.0], np.cumsum(0.5 * (at_begin + at_end) * (end - begin))])
    at = times * problem.gpus
    place = np.searchsorted(begin, at, side="right") - 1
    known = np.maximum(place, 0)
    into = np.minimum(at, end[known]) - begin[known]
    up_to = np.where(place < 0, 0.0, paid[known] + (at_begin[known] - 0.5 * slope[piece[known]] * into) * into)
    prices: Floats = np.maximum(np.diff(up_to) / np.diff(at), 0.0) / problem.gpus
    return prices
