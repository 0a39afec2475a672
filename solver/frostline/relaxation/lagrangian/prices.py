"""Prices of GPUs over time, the bound that they prove, and the starts that they make cheapest."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np

from frostline.errors import InvalidValueError
from frostline.relaxation.lagrangian import whole_arrays
from frostline.relaxation.lagrangian.jit import loops
from frostline.relaxation.lagrangian.kernel import Floats, Ints
from frostline.relaxation.lagrangian.packing import Packing
from frostline.relaxation.lagrangian.problem import PriceProblem
from frostline.relaxation.lagrangian.windows import Windows

__all__ = ["Evaluation", "Prices", "evaluate", "exact_sum"]

_FINEST = 2**20
_LIMIT = 2**61


@dataclass(frozen=True)
class Prices:
    """Prices over a denominator, constant between breakpoints and 0 outside.

    Parameters
    ----------
    times : array of int64, shape (k + 1,)
        Breakpoints in ticks after the origin of the problem, ascending.
    numerators : array of int64, shape (k,) or (kinds, k)
        Prices times ``denominator``: of one GPU for a tick, or of all GPUs of a job of each kind.
    denominator : int
        A power of two.
    by : {"gpu", "width", "option"}
        What has prices of its own: the widths in ascending order, or the options in theirs.
    """

    times: Ints = field(repr=False)
    numerators: Ints = field(repr=False)
    denominator: int
    by: Literal["gpu", "width", "option"] = "gpu"

    @classmethod
    def rounded(cls, problem: PriceProblem, times: Ints, prices: Floats) -> Prices:
        """Prices of any kind as whole numbers: not below 0, and as fine as 64 bits allow all sums to be."""
        prices = np.maximum(prices, 0.0)
        paid, rest = _most_paid(problem, times, prices), _span(problem, times)
        denominator = _FINEST
        while denominator > 1 and denominator * (paid + rest) > _LIMIT:
            denominator //= 2
        prices = prices * min(1.0, max(_LIMIT / denominator - rest, 0.0) / max(paid, 1.0))
        return cls(times, np.rint(prices * denominator).astype(np.int64), denominator, _by(problem, prices))

    @property
    def pooled(self) -> bool:
        """Whether a job pays for each of its GPUs the same."""
        return self.by == "gpu"

    def columns(self, problem: PriceProblem) -> tuple[Ints, Ints]:
        """Price by width and interval, and what is paid before the interval; intervals reach beyond both ends."""
        price = problem.kinds[:, None] * self.numerators if self.pooled else self.numerators
        full = np.zeros((len(price), price.shape[1] + 2), np.int64)
        full[:, 1:-1] = price
        paid = np.zeros_like(full)
        paid[:, 2:] = np.cumsum(price * np.diff(self.times), axis=1)
        return full, paid

    def charge(self, problem: PriceProblem, windows: Windows, packing: Packing | None) -> int:
        """Most that the GPUs can earn over all time, times the denominator."""
        length = np.diff(self.times)
        if self.pooled:
            return problem.reach * exact_sum(self.numerators * length)
        sets = packing or Packing.of(problem, windows, self.times)
        return exact_sum(sets.most(self.numerators) * length)


def _by(problem: PriceProblem, prices: Floats) -> Literal["gpu", "width", "option"]:
    if prices.ndim == 1:
        return "gpu"
    return "option" if problem.apart else "width"


def _most_paid(problem: PriceProblem, times: Ints, prices: Ints | Floats) -> float:
    """No less than what all GPUs earn, or a job pays, over all time."""
    paid = (prices * np.diff(times).astype(np.float64)).sum(axis=-1)
    return float(problem.gpus * paid if prices.ndim == 1 else (np.maximum(problem.many, 1) * paid).sum())


def _span(problem: PriceProblem, times: Ints) -> float:
    """No less than weighted completion and penalty of any job that starts at its release or at a breakpoint."""
    latest = float(max(times[-1], problem.release.max() - problem.origin)) + 2.0 * float(problem.duration.max())
    return latest * float(problem.weight.max()) + float(problem.penalty.max())


def exact_sum(values: Ints) -> int:
    """Sum of whole numbers that may exceed 64 bits."""
    return (int((values >> 31).sum()) << 31) + int((values & (2**31 - 1)).sum())


@dataclass(frozen=True)
class Evaluation:
    """What prices prove, and the cheapest starts under them.

    Parameters
    ----------
    prices : Prices
        The prices.
    scaled : int
        The bound on the weighted sum of completion times and penalties in ticks, times the denominator.
    start, option : array of int64, shape (n,)
        Cheapest start of every job after the origin, and its option.
    """

    prices: Prices
    scaled: int
    start: Ints = field(repr=False)
    option: Ints = field(repr=False)

    @cached_property
    def value(self) -> Fraction:
        """The bound in ticks."""
        return Fraction(self.scaled, self.prices.denominator)

    @property
    def bound(self) -> int:
        """The bound in ticks, rounded up: the optimum is a whole number of ticks."""
        return -(-self.scaled // self.prices.denominator)


def _check(problem: PriceProblem, prices: Prices) -> None:
    """Refuse prices below 0, and such that whole numbers of 64 bits do not hold all sums."""
    least = int(prices.numerators.min())
    if least < 0:
        raise InvalidValueError("prices", "numerators", least, "must be at least 0")
    most = _most_paid(problem, prices.times, prices.numerators) + prices.denominator * _span(problem, prices.times)
    if most > 2 * _LIMIT:
        raise InvalidValueError("prices", "numerators", int(prices.numerators.max()), "must keep all sums below 2^62")


def evaluate(problem: PriceProblem, windows: Windows, prices: Prices, packing: Packing | None = None) -> Evaluation:
    """Bound that prices prove on jobs that start within their windows, exactly.

    ``Σ_j min_{o, s} [w_j (s + p_o) + penalty_o + ∫_s^{s + p_o} π_o] − ∫ charge``, where π_o is the price of the GPUs of
    option o, and the charge the most that GPUs can earn at once. Any prices that are not negative prove a bound: what
    the jobs of a schedule pay, the GPUs earn (M. L. Fisher, *Optimal solution of scheduling problems using Lagrange
    multipliers*, Operations Research 21(5), 1973).

    Parameters
    ----------
    problem : PriceProblem
        At least one job.
    windows : Windows
        When the jobs may start; no window may be empty.
    prices : Prices
        Prices that are not negative.
    packing : Packing, optional
        Sets of jobs that fit side by side, of the same problem, windows and breakpoints, if they are known already.

    Raises
    ------
    InvalidValueError
        A price is negative, or so high that sums exceed 64 bits.

    Examples
    --------
    >>> problem = PriceProblem.of_rows(1, [(0, [(1, 2, 0)]), (0, [(1, 3, 0)])])
    >>> prices = Prices(np.array([0, 2, 5]), np.array([3, 1]), 2)
    >>> evaluate(problem, Windows.of(problem), prices).value
    Fraction(7, 1)
    """
    problem = problem.by_option() if prices.by == "option" else problem
    _check(problem, prices)
    price, paid = prices.columns(problem)
    search = (loops() or whole_arrays).cheapest_starts
    costs, start, option = search(
        problem.first,
        windows.earliest,
        windows.latest,
        problem.weight,
        problem.kind,
        problem.duration,
        problem.penalty,
        prices.times,
        price,
        paid,
        prices.denominator,
    )
    origin = prices.denominator * problem.origin * exact_sum(problem.weight)
    return Evaluation(prices, exact_sum(costs) + origin - prices.charge(problem, windows, packing), start, option)
