"""The price bound: prices in one shot, then a level subgradient method that raises the bound they prove."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.relaxation.lagrangian import whole_arrays
from frostline.relaxation.lagrangian.jit import loops
from frostline.relaxation.lagrangian.kernel import Floats, Ints
from frostline.relaxation.lagrangian.packing import Packing
from frostline.relaxation.lagrangian.prices import Evaluation, Prices, evaluate
from frostline.relaxation.lagrangian.problem import PriceProblem
from frostline.relaxation.lagrangian.start import breakpoints, finer, mean_busy_prices
from frostline.relaxation.lagrangian.windows import Windows

__all__ = ["SCALES", "Ascent", "PriceKind", "best_prices", "one_shot"]

SCALES = (1.0, 0.8, 0.6, 0.4, 0.2, 0.1)
"""Multiples of the prices of mean busy times that the one-shot bound tries."""

_WORK = 20_000_000
_MOST_ITERATIONS, _FEWEST_ITERATIONS = 400, 30
_FIRST_LEVEL, _HASTY_LEVEL, _LAST_LEVEL = 0.05, 0.01, 1e-5
_HASTY = 100  # iterations below which the first level is lower, as there is no time to come down from a high one
_PATIENCE = 5
_MOST_REFINED = 300_000

PriceKind = Literal["auto", "pool", "width", "job"]
"""What has a price of its own: a GPU, a width, or a job."""


@dataclass(frozen=True)
class Ascent:
    """The best prices that were found.

    Parameters
    ----------
    best : Evaluation
        What they prove.
    first : Evaluation
        What the method began with.
    iterations : int
        Evaluations of it.
    stopped : str
        ``target`` reached, ``level`` too low to gain anything, ``iterations`` used up, ``callback`` said so, or
        ``flat``: the prices are optimal.
    starts : tuple of array of int64
        Cheapest starts of the last evaluations.
    """

    best: Evaluation
    first: Evaluation
    iterations: int
    stopped: str
    starts: tuple[Ints, ...] = ()


def one_shot(
    problem: PriceProblem,
    *,
    times: Ints | None = None,
    scales: tuple[float, ...] = SCALES,
    windows: Windows | None = None,
) -> Evaluation:
    """Best bound among multiples of the prices of mean busy times, without any iteration.

    Parameters
    ----------
    problem : PriceProblem
        At least one job.
    times : array of int64, optional
        Breakpoints, by default those of :func:`breakpoints`.
    scales : tuple of float
        The multiples.
    windows : Windows, optional
        When jobs may start, by default from their release on.

    Examples
    --------
    >>> problem = PriceProblem.of_rows(1, [(0, [(1, length, 0)]) for length in (1, 2, 3)])
    >>> one_shot(problem).bound
    10
    """
    grid = breakpoints(problem) if times is None else times
    prices, window = mean_busy_prices(problem, grid), windows or Windows.of(problem)
    tried = (evaluate(problem, window, Prices.rounded(problem, grid, scale * prices)) for scale in scales)
    return max(tried, key=lambda evaluation: evaluation.value)


def best_prices(
    problem: PriceProblem,
    *,
    prices: PriceKind = "auto",
    iterations: int | None = None,
    target: int | None = None,
    start: Evaluation | None = None,
    windows: Windows | None = None,
    intervals: int | None = None,
    callback: Callable[[int, Evaluation], bool] | None = None,
) -> Ascent:
    """Prices whose bound is as high as the iterations allow.

    The level method aims at the best bound so far plus a share of its distance from the sum of the releases, steps
    along a deflected subgradient as far as that level is away (B. T. Polyak, *Minimization of unsmooth functionals*,
    1969), and lowers the share where no better bound is found. It stops when the share is 1e-5.

    Parameters
    ----------
    problem : PriceProblem
        At least one job.
    prices : {"auto", "pool", "width", "job"}
        ``pool``: one price for every GPU. ``width``: then a price for each width, which is stronger where wide jobs do
        not fit side by side, and slower. ``job``: then a price for each job, stronger and slower again. ``auto``: the
        strongest of them that is cheap.
    iterations : int, optional
        Most evaluations; by default 400, and fewer where there are over 50,000 jobs, but at least 30.
    target : int, optional
        Total of a known schedule in ticks: no bound is above it, and one that reaches it ends the search.
    start : Evaluation, optional
        Prices to start from, by default those of :func:`one_shot`.
    windows : Windows, optional
        When jobs may start, by default from their release on.
    intervals : int, optional
        How many intervals of constant prices to make; see :func:`breakpoints`. By default those on which much is
        paid are divided half-way through, up to 300,000 jobs.
    callback : function of (int, Evaluation), optional
        Is told the number of every iteration and the best bound; stops the search by returning true.

    Raises
    ------
    InvalidValueError
        The problem has no job.
    UnknownNameError
        No such kind of prices.

    Examples
    --------
    Jobs of three and of two GPUs on four: only one runs at a time, which a price of single GPUs does not see.

    >>> problem = PriceProblem.of_rows(4, [(0, [(width, 4, 0)]) for width in (3, 2, 3, 3)])
    >>> [best_prices(problem, prices=prices).best.bound for prices in ("pool", "width", "job")]
    [36, 40, 40]
    """
    if not problem.jobs:
        raise InvalidValueError("price problem", "jobs", 0, "must be at least one")
    if prices not in get_args(PriceKind):
        raise UnknownNameError("kind of prices", prices, get_args(PriceKind))
    window = windows or Windows.of(problem)
    times = start.prices.times if start is not None else breakpoints(problem, intervals)
    begun = start or one_shot(problem, times=times, windows=window)
    limit = iterations if iterations is not None else _iterations(problem)
    kind = _affordable(problem, len(times) - 1) if prices == "auto" else prices
    if not begun.prices.pooled:
        sets = Packing.of(problem, window, times)
        return _Level(problem, window, begun, sets, target).run(limit, callback)
    first = _Level(problem, window, begun, None, target).run(limit // 2, callback)
    if first.stopped in ("target", "callback"):
        return first
    packing: Packing | None = None
    again = first.best.prices
    if kind != "pool":
        problem = problem.by_option() if kind == "job" else problem
        packing = Packing.of(problem, window, times)
    elif start is None and intervals is None and len(times) <= times[-1] and problem.jobs <= _MOST_REFINED:
        again = finer(again)
    resumed = evaluate(problem, window, again)
    second = _Level(problem, window, resumed, packing, target).run(limit - first.iterations, callback)
    best = max(first.best, second.best, key=lambda evaluation: evaluation.value)
    return replace(second, best=best, first=first.first, iterations=first.iterations + second.iterations)


def _affordable(problem: PriceProblem, intervals: int) -> Literal["pool", "width", "job"]:
    """The strongest prices whose knapsacks are cheap."""
    if Packing.is_cheap(problem.by_option(), intervals):
        return "job"
    return "width" if Packing.is_cheap(problem, intervals) else "pool"


def _iterations(problem: PriceProblem) -> int:
    return int(np.clip(_WORK // problem.jobs, _FEWEST_ITERATIONS, _MOST_ITERATIONS))


class _Level:
    """State of the level method: prices as floats, the best evaluation and the level."""

    def __init__(
        self,
        problem: PriceProblem,
        windows: Windows,
        start: Evaluation,
        packing: Packing | None,
        target: int | None,
    ) -> None:
        self.problem, self.windows, self.packing, self.target = problem, windows, packing, target
        self.times, self.length = start.prices.times, np.diff(start.prices.times)
        prices = start.prices.numerators / start.prices.denominator
        spread = packing is not None and start.prices.pooled
        self.prices: Floats = problem.kinds[:, None] * prices if spread else prices
        self.direction = np.zeros_like(self.prices)
        self.first = self.best = self._evaluate()
        self.best_prices = self.prices
        self.floor = float(problem.total_release)
        self.share, self.stalled = _FIRST_LEVEL, 0
        self.starts: list[Ints] = []

    def run(self, iterations: int, callback: Callable[[int, Evaluation], bool] | None) -> Ascent:
        number, latest = 0, self.first
        self.share = _HASTY_LEVEL if iterations < _HASTY else _FIRST_LEVEL
        while True:
            if self.target is not None and self.best.bound >= self.target:
                return self._ended(number, "target")
            if number >= iterations:
                return self._ended(number, "iterations")
            if self.share < _LAST_LEVEL:
                return self._ended(number, "level")
            if not self._step(latest):
                return self._ended(number, "flat")
            latest = self._evaluate()
            number += 1
            self._judge(latest)
            if callback is not None and callback(number, self.best):
                return self._ended(number, "callback")

    def _ended(self, iterations: int, stopped: str) -> Ascent:
        return Ascent(self.best, self.first, iterations, stopped, tuple(self.starts[-30:]))

    def _evaluate(self) -> Evaluation:
        prices = Prices.rounded(self.problem, self.times, self.prices)
        return evaluate(self.problem, self.windows, prices, self.packing)

    def _judge(self, latest: Evaluation) -> None:
        """Keep the better bound, and aim lower where there was none for some time."""
        self.starts.append(latest.start)
        if latest.value > self.best.value:
            gain = latest.value - self.best.value
            self.best, self.best_prices = latest, self.prices
            if gain > self.share * self._height / 20:
                self.stalled = 0
                return
        self.stalled += 1
        if self.stalled >= _PATIENCE:
            self.share *= 0.6
            self.stalled = 0
            self.prices = self.best_prices
            self.direction[:] = 0.0

    @property
    def _height(self) -> float:
        return max(float(self.best.value) - self.floor, 1.0)

    def _step(self, latest: Evaluation) -> bool:
        """Move the prices; false where no direction raises the bound."""
        gradient = self._gradient(latest)
        self.direction = 0.5 * self.direction + gradient
        move = np.where((self.prices <= 0) & (self.direction < 0), 0.0, self.direction)
        norm = float((move * move * self.length).sum())
        if norm <= 0.0:
            return False
        level = float(self.best.value) + self.share * self._height
        if self.target is not None:
            level = min(level, float(self.target))
        away = max(level - float(latest.value), 0.0)
        self.prices = np.maximum(self.prices + away / norm * move, 0.0)
        return True

    def _gradient(self, latest: Evaluation) -> Floats:
        """GPUs in demand beyond those there are, or jobs of each width beyond those that earn the most."""
        problem, option = self.problem, latest.option
        end = latest.start + problem.duration[option]
        kinds = len(problem.kinds)
        search = (loops() or whole_arrays).held_time
        held = search(kinds, problem.kind[option], latest.start, end, self.times) / self.length
        if self.packing is None:
            demand: Floats = (problem.kinds[:, None] * held).sum(axis=0) - problem.reach
            return demand
        beyond: Floats = held - self.packing.counts(latest.prices.numerators)
        return beyond
