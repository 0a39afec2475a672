"""What freezing costs in final accuracy: a density over training progress, added up over the phases of a run."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from frostline.errors import InvalidValueError
from frostline.units import as_finite

__all__ = [
    "MAX_A",
    "MAX_POINTS",
    "DebtLaw",
    "FrozenPhase",
    "as_history",
    "as_shares",
    "frozen_shares",
    "level_debts_points",
    "phases_of",
]

Array = npt.NDArray[np.float64]

MAX_POINTS = 1e6  # percentage points; accuracy itself has 100
MAX_A = 1e12  # A is extrapolated to a start at which nothing may be frozen


class FrozenPhase(NamedTuple):
    """Part of a training run during which the same share of its compute was frozen.

    Parameters
    ----------
    start, end : float
        Progress of the training, from 0 to 1, at which the phase starts and ends.
    share : float
        Share of the compute of the units that may be frozen, from 0 (none) to 1 (all but the head).
    """

    start: float
    end: float
    share: float


def as_history(phases: Iterable[tuple[float, float, float]]) -> tuple[FrozenPhase, ...]:
    """Phases of a run, checked: in order, without overlap, within 0 and 1. What no phase covers was not frozen.

    Raises
    ------
    InvalidValueError
        A phase ends before it starts or before an earlier one ends, or a value lies outside 0 to 1.

    Examples
    --------
    >>> as_history([(0, 0.5, 0), (0.5, 1, 0.25)])[1]
    FrozenPhase(start=0.5, end=1.0, share=0.25)
    """
    checked: list[FrozenPhase] = []
    reached = 0.0
    for number, phase in enumerate(phases):
        subject = f"frozen phase {number}"
        if len(phase) != 3:
            raise InvalidValueError(subject, "phase", phase, "must be start, end and share")
        start = as_finite(phase[0], subject, "start", reached, 1.0)
        reached = as_finite(phase[1], subject, "end", start, 1.0)
        checked.append(FrozenPhase(start, reached, as_finite(phase[2], subject, "share", 0.0, 1.0)))
    return tuple(checked)


def as_shares(shares: Iterable[float], subject: str = "freezing") -> tuple[float, ...]:
    """Frozen share at each level, checked: 0 at level 0, not falling, at most 1.

    Raises
    ------
    InvalidValueError
        The first share is not 0, a share falls, or one lies outside 0 to 1.

    Examples
    --------
    >>> as_shares([0, 0.25, 1])
    (0.0, 0.25, 1.0)
    """
    checked: list[float] = []
    for share in shares:
        checked.append(as_finite(share, subject, "shares", checked[-1] if checked else 0.0, 1.0))
    if not checked or checked[0] != 0.0:
        raise InvalidValueError(subject, "shares", tuple(checked), "must start with 0 for level 0")
    return tuple(checked)


def frozen_shares(unit_costs: Sequence[float]) -> tuple[float, ...]:
    """Frozen share when the leading 0, 1, ..., L-1 of L units are frozen; the last unit, the head, never is.

    Parameters
    ----------
    unit_costs : sequence of float
        Compute of each unit, in any one unit of measure.

    Raises
    ------
    InvalidValueError
        A cost is negative or not finite, or those of the units before the head add up to nothing.

    Examples
    --------
    >>> frozen_shares([4, 3, 1, 2])
    (0.0, 0.5, 0.875, 1.0)
    """
    costs = [as_finite(cost, "freeze units", "unit_costs", 0.0, math.inf) for cost in unit_costs]
    total = math.fsum(costs[:-1])
    if not 0.0 < total < math.inf:
        raise InvalidValueError("freeze units", "unit_costs", costs, "must add up to a positive number before the head")
    return tuple(min(math.fsum(costs[:k]) / total, 1.0) for k in range(len(costs)))


def phases_of(
    levels: Sequence[int], shares: Sequence[float], boundaries: Sequence[float] | None = None
) -> tuple[FrozenPhase, ...]:
    """History of a run that trains phase i at ``levels[i]``.

    Parameters
    ----------
    levels : sequence of int
        Level of each phase.
    shares : sequence of float
        Frozen share at each level.
    boundaries : sequence of float, optional
        Progress at which the phases start, and the end; by default phases of equal length from 0 to 1.

    Raises
    ------
    InvalidValueError
        A level has no share, or the boundaries do not fit the levels.

    Examples
    --------
    >>> phases_of([0, 2], [0, 0.5, 1])
    (FrozenPhase(start=0.0, end=0.5, share=0.0), FrozenPhase(start=0.5, end=1.0, share=1.0))
    """
    count = len(levels)
    edges = [i / count for i in range(count + 1)] if boundaries is None else list(boundaries)
    if len(edges) != count + 1:
        raise InvalidValueError("freezing", "boundaries", edges, f"must be {count + 1} for {count} phases")
    for level in levels:
        if not 0 <= level < len(shares):
            raise InvalidValueError("freezing", "levels", level, f"must lie between 0 and {len(shares) - 1}")
    return as_history((edges[i], edges[i + 1], shares[level]) for i, level in enumerate(levels))


@dataclass(frozen=True, slots=True, kw_only=True)
class DebtLaw:
    """Accuracy debt density ``q(x, s) = x^a (A c e^(-c s) + B_0)`` at frozen share x and training progress s.

    Freezing a share x from progress f to the end thus costs ``x^a (A (e^(-c f) - e^(-c)) + B_0 (1 - f))`` percentage
    points of final accuracy, the shape that measured runs of a fixed number of steps have; see
    ``docs/freezing_debt.md``. Debts of phases add up. The law holds from ``warm_up`` on; earlier it is too low.

    Parameters
    ----------
    a : float
        Exponent of the frozen share, above 0. Below 1 the first units cost most, above 1 they are nearly free.
    A : float
        Points that freezing everything from the very start would cost by the decaying part.
    c : float
        Decay over the training, above 0.
    B_0 : float
        Points that freezing everything costs by the constant part: the linear tail.
    warm_up : float, default 0.2
        Progress before which nothing may be frozen.

    Raises
    ------
    InvalidValueError
        A parameter lies outside its bounds.

    Examples
    --------
    >>> law = DebtLaw(a=0.5, A=30, c=10, B_0=1)
    >>> round(law.debt_points(1, 0.3, 1), 3), law.debt_points(0, 0, 1)
    (2.192, 0.0)
    """

    a: float
    A: float
    c: float
    B_0: float
    warm_up: float = 0.2

    def __post_init__(self) -> None:
        for name, low, high in (
            ("a", 0.0, 100.0),
            ("A", 0.0, MAX_A),
            ("c", 0.0, 1e4),
            ("B_0", 0.0, MAX_POINTS),
            ("warm_up", 0.0, 1.0),
        ):
            value = as_finite(getattr(self, name), "debt law", name, low, high)
            if name in ("a", "c") and value <= 0:
                raise InvalidValueError("debt law", name, value, "must be above 0")
            object.__setattr__(self, name, value)

    def density_points(self, share: float, progress: float) -> float:
        """Debt per unit of progress, in percentage points, while a share is frozen."""
        x = as_finite(share, "debt law", "share", 0.0, 1.0)
        s = as_finite(progress, "debt law", "progress", 0.0, 1.0)
        return float(x**self.a * (self.A * self.c * math.exp(-self.c * s) + self.B_0))

    def debt_points(self, share: float, start: float, end: float) -> float:
        """Debt of freezing a share from one progress to another, in percentage points."""
        return self.history_points([(start, end, share)])

    def history_points(self, history: Iterable[tuple[float, float, float]]) -> float:
        """Debt of a run, in percentage points: the sum over its phases (start, end, share)."""
        return math.fsum(share**self.a * self._whole_points(start, end) for start, end, share in as_history(history))

    def _whole_points(self, start: float, end: float) -> float:
        length = end - start
        return -self.A * math.exp(-self.c * start) * math.expm1(-self.c * length) + self.B_0 * length

    def scaled(self, factor: float) -> DebtLaw:
        """Law of a job to which freezing does ``factor`` times as much."""
        factor = as_finite(factor, "debt law", "factor", 0.0, MAX_POINTS)
        return dataclasses.replace(self, A=self.A * factor, B_0=self.B_0 * factor)


def level_debts_points(
    law: DebtLaw, shares: Sequence[float], boundaries: Sequence[float], factors: Sequence[float] | None = None
) -> Array:
    """Debt of each phase (row) at each level (column), in percentage points.

    Parameters
    ----------
    law : DebtLaw
        The law.
    shares : sequence of float
        Frozen share at each level, from :func:`as_shares`.
    boundaries : sequence of float
        Progress at which the phases start, and the end.
    factors : sequence of float, optional
        What the debt of each level is multiplied by, each at least 1. A level then costs no less than those below
        it, and no more than freezing everything but the head.

    Examples
    --------
    >>> law = DebtLaw(a=1, A=0, c=1, B_0=2)
    >>> level_debts_points(law, (0, 0.25, 1), (0, 0.5, 1)).tolist()
    [[0.0, 0.25, 1.0], [0.0, 0.25, 1.0]]
    """
    whole = np.array([law.debt_points(1.0, start, end) for start, end in pairwise(boundaries)])
    weights = np.array([share**law.a for share in shares])
    if factors is not None:
        weights = np.maximum.accumulate(np.minimum(weights * np.array(factors, float), 1.0))
    debts: Array = np.outer(whole, weights)
    return debts
