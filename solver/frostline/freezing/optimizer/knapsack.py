"""The multiple-choice knapsack of a round: options that fit alone, and the rows that couple jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from frostline.freezing.optimizer.menus import Ints, Menus

__all__ = ["UNLIMITED", "Dual", "Knapsack", "first_of_best", "knapsack_of"]

UNLIMITED = -1
"""Stands for no budget."""

_ENDLESS = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Knapsack:
    """One option per job, as valuable as possible together, within the rows.

    Rows are GPU types and debt budgets of tenants that can run short at all. An option takes ``amounts[0]`` (GPUs) of
    row ``rows[0]`` and ``amounts[1]`` (debt) of row ``rows[1]``; the last row of ``capacity`` has no end and takes what
    no row counts. Options are those that fit alone: no other one is part of any choice.

    Parameters
    ----------
    menus : Menus
        Where the options are from.
    limits : tuple of two tuples of int
        GPUs of each type, and the debt budget of each tenant or :data:`UNLIMITED`.
    first, job, value, origin : ndarray of int64
        First option of each job; job, value, and number in the menus of each option.
    amounts, rows : ndarray of int64, shape (2, options)
        What an option takes, and of which row.
    capacity : ndarray of int64, shape (rows + 1,)
        How much there is.
    names : tuple of tuple of int
        What each row is: (0, GPU type) or (1, tenant).
    """

    menus: Menus
    limits: tuple[tuple[int, ...], tuple[int, ...]]
    first: Ints
    job: Ints
    value: Ints
    origin: Ints
    amounts: Ints
    rows: Ints
    capacity: Ints
    names: tuple[tuple[int, int], ...]

    @property
    def jobs(self) -> int:
        """Number of jobs."""
        return len(self.first) - 1

    @property
    def coupled(self) -> int:
        """Number of rows."""
        return len(self.names)

    def weight(self, row: int = 0) -> Ints:
        """What each option takes of a row; nothing where there is no such row."""
        counted = self.rows == (row if row < self.coupled else -1)
        weight: Ints = np.where(counted, self.amounts, 0).sum(axis=0)
        return weight

    def used(self, chosen: Ints) -> list[int]:
        """What a choice takes of every row."""
        taken = np.zeros(len(self.capacity), np.int64)
        np.add.at(taken, self.rows[:, chosen], self.amounts[:, chosen])
        return [int(amount) for amount in taken[:-1]]

    def worth(self, chosen: Ints) -> int:
        """Value of a choice."""
        return int(self.value[chosen].sum())

    def fits(self, chosen: Ints) -> bool:
        """Whether a choice has one option of each job and keeps within all rows."""
        right = len(chosen) == self.jobs and bool((self.job[chosen] == np.arange(self.jobs)).all())
        return right and all(
            used <= most for used, most in zip(self.used(chosen), self.capacity.tolist(), strict=False)
        )

    def waiting(self) -> Ints:
        """The choice that everyone waits."""
        return self.first[:-1].copy()

    def selected(self, chosen: Ints) -> tuple[int, ...]:
        """Number of the option of each job within its menu."""
        return tuple((self.origin[chosen] - self.menus.first[:-1]).tolist())

    def chosen(self, selected: Sequence[int]) -> Ints | None:
        """The choice of options by their numbers in the menus; None where one does not fit alone."""
        wanted = self.menus.first[:-1] + np.asarray(selected, np.int64)
        places = np.searchsorted(self.origin, wanted)
        if (places >= len(self.origin)).any() or (self.origin[places] != wanted).any():
            return None
        return places.astype(np.int64)

    def dual(self, prices: Sequence[int], denominator: int) -> Dual:
        """What everyone would choose at prices, and the bound that follows; exact.

        For prices p ≥ 0 over a denominator q no choice is worth more than
        ``Σ_j max_c (v_jc - Σ_r p_r/q a_rjc) + Σ_r p_r/q capacity_r``.
        """
        row_prices = np.array([*prices, 0], np.int64)
        score = self.value * denominator
        for amounts, rows in zip(self.amounts, self.rows, strict=True):
            score = score - row_prices[rows] * amounts
        chosen = first_of_best(score, self.first, self.job)
        pairs = zip(prices, self.capacity.tolist(), self.used(chosen), strict=False)
        total = denominator * self.worth(chosen) + sum(price * (most - used) for price, most, used in pairs)
        return Dual(chosen=chosen, score=score, total=total, denominator=denominator)

    def only(self, kept: npt.NDArray[np.bool_]) -> Knapsack:
        """The same with some options only, at least one of each job."""
        return Knapsack(
            menus=self.menus,
            limits=self.limits,
            first=_first(self.job[kept], self.jobs),
            job=self.job[kept],
            value=self.value[kept],
            origin=self.origin[kept],
            amounts=np.ascontiguousarray(self.amounts[:, kept]),
            rows=np.ascontiguousarray(self.rows[:, kept]),
            capacity=self.capacity,
            names=self.names,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dual:
    """Value of the Lagrangian dual at prices.

    Parameters
    ----------
    chosen : ndarray of int64, shape (jobs,)
        Best option of each job; of equal ones the first.
    score : ndarray of int64, shape (options,)
        Value less price of each option, in parts of a step.
    total : int
        The dual, in parts of a step.
    denominator : int
        Parts of a step.
    """

    chosen: Ints
    score: Ints
    total: int
    denominator: int

    @property
    def bound(self) -> int:
        """Most that a choice is worth."""
        return self.total // self.denominator

    def loss(self, job: Ints) -> Ints:
        """How much the best option of the job scores more than each option, in parts of a step."""
        loss: Ints = self.score[self.chosen][job] - self.score
        return loss


def first_of_best(score: npt.NDArray[np.number], first: Ints, job: Ints) -> Ints:
    """The first option of each job that scores highest.

    Examples
    --------
    >>> first_of_best(np.array([0, 3, 3, 1, 0]), np.array([0, 3, 5]), np.array([0, 0, 0, 1, 1])).tolist()
    [1, 3]
    """
    if len(first) == 1:
        return np.zeros(0, np.int64)
    best = np.maximum.reduceat(score, first[:-1])
    hits = np.flatnonzero(score == best[job])
    starts = np.ones(len(hits), bool)
    starts[1:] = job[hits[1:]] != job[hits[:-1]]
    return hits[starts]


def _first(job: Ints, jobs: int) -> Ints:
    return np.searchsorted(job, np.arange(jobs + 1)).astype(np.int64)


def knapsack_of(menus: Menus, gpus: Sequence[int], budgets: Sequence[int]) -> Knapsack:
    """Knapsack of menus within limits.

    Parameters
    ----------
    menus : Menus
        Options of all jobs.
    gpus : sequence of int, shape (GPU types,)
        GPUs of each type.
    budgets : sequence of int, shape (tenants,)
        Debt budget of each tenant in steps, or :data:`UNLIMITED`.

    Examples
    --------
    >>> menus = Menus(first=[0, 2, 4], gpus=[0, 1, 0, 8], value=[0, 5, 0, 9])
    >>> knapsack = knapsack_of(menus, [4], [UNLIMITED])
    >>> knapsack.origin.tolist(), knapsack.coupled
    ([0, 1, 2], 0)
    """
    job = np.repeat(np.arange(menus.jobs), np.diff(menus.first))
    most = np.array([*gpus, *(_ENDLESS if budget == UNLIMITED else budget for budget in budgets)], np.int64)
    amounts = np.stack([menus.gpus, menus.debt])
    rows = np.stack([menus.gpu_type, len(gpus) + menus.tenant[job]])
    alone = (amounts <= most[rows]).all(axis=0)
    origin = np.flatnonzero(alone)
    if len(origin) < menus.options:
        job, amounts, rows = job[origin], np.ascontiguousarray(amounts[:, origin]), rows[:, origin]
    first = _first(job, menus.jobs)
    scarce = _scarce(first, amounts, rows, most, len(gpus))
    numbers = np.full(len(most), len(scarce))
    numbers[scarce] = np.arange(len(scarce))
    return Knapsack(
        menus=menus,
        limits=(tuple(gpus), tuple(budgets)),
        first=first,
        job=job,
        value=menus.value[origin],
        origin=origin,
        amounts=amounts,
        rows=np.ascontiguousarray(numbers[rows]),
        capacity=np.append(most[scarce], _ENDLESS),
        names=tuple((0, row) if row < len(gpus) else (1, row - len(gpus)) for row in scarce.tolist()),
    )


def _scarce(first: Ints, amounts: Ints, rows: Ints, most: Ints, gpu_types: int) -> npt.NDArray[np.intp]:
    """Rows of which all jobs together could take more than there is."""
    wanted = np.zeros(len(most), np.int64)
    if len(first) > 1:
        starts = first[:-1]
        for row in range(gpu_types):
            wanted[row] = np.maximum.reduceat(np.where(rows[0] == row, amounts[0], 0), starts).sum()
        np.add.at(wanted, rows[1, starts], np.maximum.reduceat(amounts[1], starts))
    return np.flatnonzero(wanted > most)
