"""Several rows: a price for each by cutting planes, and choices made of what jobs choose at such prices.

The dual ``D(p) = Σ_j max_c (v_jc - p a_jc) + p capacity`` is convex, and what jobs choose at p gives a plane below it
for the jobs of each debt row and one for the others. The lowest point of all known planes, within a box around the best
prices so far, is where the dual is looked at next (Kelley 1960; Marsten, Hogan and Blankenship, *The boxstep method for
large-scale optimization*, Operations Research 23, 1975). Prices are in units in which those worth looking at add up to
at most 1: they are worth no more than what all jobs could gain at most.

What jobs choose at the best prices takes about as much as there is. It is repaired, by the least loss of score for what
a row lacks, and filled up, in two orders.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from frostline.freezing.optimizer import kernel
from frostline.freezing.optimizer.jit import loops
from frostline.freezing.optimizer.knapsack import Dual, Knapsack, first_of_best
from frostline.freezing.optimizer.menus import Ints
from frostline.freezing.optimizer.price import COMPILED_FROM

__all__ = ["MOST_LOOKS", "PricedRows", "prices_of"]

MOST_LOOKS = 150
"""Most prices that the dual is looked at."""

_CLOSE = 1e-9
_SETTINGS = {
    "output_flag": False,
    "threads": 1,
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
}
_MOST_STARTS, _BUILT = 8, 200_000
_PRICE_BITS = 60

Floats = npt.NDArray[np.float64]


class PricedRows(NamedTuple):
    """Option of each job, and the price of a unit of each row, ``prices / denominator``."""

    chosen: Ints
    prices: tuple[int, ...]
    denominator: int


def prices_of(knapsack: Knapsack, deadline_s: float = math.inf) -> PricedRows:
    """Choice and prices of the rows.

    Parameters
    ----------
    knapsack : Knapsack
        Jobs and their rows.
    deadline_s : float
        Instant of :func:`time.perf_counter` at which to look at no more prices.

    Examples
    --------
    >>> from frostline.freezing.optimizer.knapsack import knapsack_of
    >>> from frostline.freezing.optimizer.menus import Menus
    >>> menus = Menus(first=[0, 3, 6], gpus=[0, 1, 2] * 2, value=[0, 10, 18, 0, 9, 16], debt=[0, 0, 4] * 2)
    >>> priced = prices_of(knapsack_of(menus, [3], [4]))
    >>> priced.chosen.tolist()
    [2, 4]
    """
    looks = _Looks(knapsack)
    _descend(looks, deadline_s)
    prices, denominator = _whole_prices(knapsack, looks.best.prices)
    dual = knapsack.dual(prices, denominator)
    nearest = sorted(looks.all, key=lambda look: look.value)[: _starts(knapsack)]
    starts = [dual.chosen, *(look.chosen for look in nearest)]
    builder = _Builder(knapsack, dual)
    found = max((builder.built(start) for start in _different(starts)), key=knapsack.worth)
    return PricedRows(found, prices, denominator)


def _starts(knapsack: Knapsack) -> int:
    """Prices whose choices are worth building on: fewer where there are many options, and gaps are small anyway."""
    return min(max(_BUILT // max(len(knapsack.value), 1), 1), _MOST_STARTS)


def _different(choices: Sequence[Ints]) -> list[Ints]:
    return list({choice.tobytes(): choice for choice in choices}.values())


def _whole_prices(knapsack: Knapsack, prices: Floats) -> tuple[tuple[int, ...], int]:
    """Prices as fractions of one denominator, as fine as products with amounts and values allow."""
    largest = max(int(np.abs(knapsack.value).max(initial=1)), 1)
    for price, row in zip(prices.tolist(), range(knapsack.coupled), strict=True):
        largest = max(largest, math.ceil(price * int(knapsack.weight(row).max(initial=0))))
    bits = max(_PRICE_BITS - largest.bit_length(), 0)
    return tuple(math.floor(price * (1 << bits)) for price in prices.tolist()), 1 << bits


class _Look(NamedTuple):
    """What jobs choose at prices, its dual value, and what each group of jobs gets and takes of each row for it."""

    prices: Floats
    chosen: Ints
    value: float
    gains: Floats
    takes: Floats


class _Looks:
    """The dual of a knapsack at all prices that have been looked at."""

    def __init__(self, knapsack: Knapsack) -> None:
        self.knapsack = knapsack
        debts = np.array([kind for kind, _ in knapsack.names]) == 1
        row = knapsack.rows[1, knapsack.first[:-1]]
        self.group = np.where(np.append(debts, False)[row], row, knapsack.coupled)
        self.capacity = knapsack.capacity[:-1].astype(float)
        self._value, self._amounts = knapsack.value.astype(float), knapsack.amounts.astype(float)
        first = self._at(np.zeros(knapsack.coupled))
        self.all, self.best = [first], first
        self.gain = max(first.value - float(knapsack.value[knapsack.waiting()].sum()), 1.0)
        self.unit = self.gain / self.capacity

    def at(self, shares: Floats) -> _Look:
        """Look at prices that are given as shares of what can be gained."""
        look = self._at(np.maximum(shares, 0.0) * self.unit)
        self.all.append(look)
        self.best = min(self.best, look, key=lambda look: look.value)
        return look

    def _at(self, prices: Floats) -> _Look:
        knapsack, every = self.knapsack, np.append(prices, 0.0)
        score = self._value.copy()
        for rows, amounts in zip(knapsack.rows, self._amounts, strict=True):
            score -= every[rows] * amounts
        chosen = first_of_best(score, knapsack.first, knapsack.job)
        gains: Floats = np.bincount(self.group, self._value[chosen], knapsack.coupled + 1).astype(float)
        takes = np.zeros((knapsack.coupled + 1, knapsack.coupled + 1))
        for rows, amounts in zip(knapsack.rows, self._amounts, strict=True):
            np.add.at(takes, (self.group, rows[chosen]), amounts[chosen])
        value = float(score[chosen].sum() + prices @ self.capacity)
        return _Look(prices, chosen, value, gains, takes[:, :-1])


def _descend(looks: _Looks, deadline_s: float) -> None:
    """Look at prices until the known planes leave the dual no room to fall."""
    planes, box = _Planes(looks), 1.0
    planes.add(looks.best)
    while len(looks.all) < MOST_LOOKS and time.perf_counter() < deadline_s:
        best, centre = looks.best, looks.best.prices / looks.unit
        shares, lowest = planes.lowest(np.maximum(centre - box, 0.0), centre + box)
        hoped = best.value - lowest * looks.gain
        look = looks.at(shares) if hoped > _CLOSE * looks.gain else best
        if not planes.add(look):
            # The planes are the dual itself here, so that it is lowest within the box.
            if box >= 1.0 or (np.abs(shares - centre) < box * (1 - 1e-6)).all():
                return
            box = min(4 * box, 1.0)
        elif best.value - look.value < 0.1 * hoped:
            box /= 2


class _Planes:
    """Lowest point of the planes below the dual, by HiGHS, in units of what can be gained."""

    def __init__(self, looks: _Looks) -> None:
        import highspy

        self._looks = looks
        rows = looks.knapsack.coupled
        self._groups = [int(group) for group in np.unique(looks.group)]
        self._lp: Any = highspy.Highs.__bases__[0]()  # the class below highspy.Highs, which prints a banner
        for name, value in _SETTINGS.items():
            self._lp.setOptionValue(name, value)
        self._known: set[bytes] = set()
        nothing, none = np.zeros(0, np.int32), np.zeros(0)
        for _ in range(rows):
            self._lp.addCol(1.0, 0.0, 1.0, 0, nothing, none)
        for _ in self._groups:
            self._lp.addCol(1.0, -np.inf, np.inf, 0, nothing, none)
        self._lp.addRow(-np.inf, 1.0, rows, np.arange(rows, dtype=np.int32), np.ones(rows))

    def add(self, look: _Look) -> bool:
        """Add the planes of a look, if they are new: a group gets at least its gain less the price of what it takes."""
        key = look.gains.tobytes() + look.takes.tobytes()
        if key in self._known:
            return False
        self._known.add(key)
        rows = self._looks.knapsack.coupled
        for place, group in enumerate(self._groups):
            slope = np.append(look.takes[group] / self._looks.capacity, 1.0)
            columns = np.append(np.arange(rows), rows + place).astype(np.int32)
            used = slope != 0
            gain = float(look.gains[group]) / self._looks.gain
            self._lp.addRow(gain, np.inf, int(used.sum()), columns[used], slope[used])
        return True

    def lowest(self, low: Floats, high: Floats) -> tuple[Floats, float]:
        """Shares within a box where the planes are lowest, and how low that is."""
        rows = len(low)
        self._lp.changeColsBounds(rows, np.arange(rows, dtype=np.int32), low, np.minimum(high, 1.0))
        self._lp.run()
        solution = np.array(self._lp.getSolution().col_value)
        return solution[:rows], float(self._lp.getInfo().objective_function_value)


class _Builder:
    """Makes choices that keep within all rows of choices that need not."""

    def __init__(self, knapsack: Knapsack, dual: Dual) -> None:
        self._knapsack, self._dual = knapsack, dual
        self._loss = dual.loss(knapsack.job)
        fast = loops() if len(knapsack.value) >= COMPILED_FROM else None
        self._loops: Any = kernel if fast is None else fast

    def built(self, start: Ints) -> Ints:
        """The better of two choices made of one: repaired, and filled in either order."""
        chosen = start.copy()
        left = self._knapsack.capacity.copy()
        left[:-1] -= self._knapsack.used(chosen)
        self._repair(chosen, left)
        found = [self._filled(chosen.copy(), left.copy(), by_loss) for by_loss in (False, True)]
        return max(found, key=self._knapsack.worth)

    def _repair(self, chosen: Ints, left: Ints) -> None:
        """Take options that need less of what is missing, those first that lose least for it."""
        knapsack = self._knapsack
        while (left < 0).any():
            missing = np.where(left < 0, 1.0 / np.maximum(knapsack.capacity, 1), 0.0)
            needs = (missing[knapsack.rows] * knapsack.amounts).sum(axis=0)
            relief = needs[chosen][knapsack.job] - needs
            useful = np.flatnonzero(relief > 0)
            loss = self._loss[useful] - self._loss[chosen][knapsack.job[useful]]
            order = useful[np.argsort(loss / relief[useful], kind="stable")]
            self._loops.repair(chosen, left, order, knapsack.job, knapsack.amounts, knapsack.rows)

    def _filled(self, chosen: Ints, left: Ints, by_loss: bool) -> Ints:
        """Choice after options worth more that fit, in the order of their losses or of their gains."""
        knapsack, dual = self._knapsack, self._dual
        changed = True
        while changed:
            gain = knapsack.value - knapsack.value[chosen][knapsack.job]
            spare = dual.total - dual.denominator * knapsack.worth(chosen)
            useful = np.flatnonzero((gain > 0) & (self._loss <= spare))
            key = self._loss[useful] if by_loss else -gain[useful]
            order = useful[np.argsort(key, kind="stable")]
            changed = self._loops.improve(
                chosen, left, order, knapsack.job, knapsack.value, knapsack.amounts, knapsack.rows
            )
        return chosen
