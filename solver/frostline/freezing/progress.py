"""Effective progress of a training job that freezes units, and what is known of its freezing so far."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from frostline.errors import InvalidValueError
from frostline.freezing.efficiency import FullRate, RateEfficiency, rates_of
from frostline.freezing.evidence import GradientEvidence, ProgressScale
from frostline.freezing.penalty import MAX_POINTS, DebtLaw, as_shares, level_debts_points
from frostline.units import as_finite, as_int

__all__ = [
    "FreezeMode",
    "FreezeState",
    "FreezeTerms",
    "batch_efficiency",
    "effective_progress",
    "remaining_time_s",
    "worth_changing",
]

_MAX_RATE = 1e18
_CLOSE = 1e-9  # progress that is as good as reached


class FreezeMode(StrEnum):
    """What a job keeps fixed while units are frozen.

    ``FIXED_STEPS``: its number of steps; the final accuracy may fall by the quality budget, and a step is worth a step.
    ``FIXED_QUALITY``: its final quality; steps are stretched by 1/η, and there is no debt.
    """

    FIXED_STEPS = "fixed-steps"
    FIXED_QUALITY = "fixed-quality"


def batch_efficiency(
    batch: float | None = None, base_batch: float | None = None, noise_scale: float | None = None
) -> float:
    """What one sample of a larger batch is worth: ``(φ + M_0) / (φ + M)`` (Qiao et al., Pollux, OSDI 2021).

    Parameters
    ----------
    batch, base_batch : float, optional
        Batch M in use and base batch M_0 in samples, M at least M_0.
    noise_scale : float, optional
        Noise scale φ in samples. Without all three the batch is fixed, and the efficiency 1.

    Raises
    ------
    InvalidValueError
        A batch is not positive, M is below M_0, or φ is negative.

    Examples
    --------
    >>> batch_efficiency(), batch_efficiency(64, 32, noise_scale=32)
    (1.0, 0.6666666666666666)
    """
    if batch is None or base_batch is None or noise_scale is None:
        return 1.0
    base = as_finite(base_batch, "batch efficiency", "base_batch", 0.0)
    if base == 0.0:
        raise InvalidValueError("batch efficiency", "base_batch", base_batch, "must be above 0")
    size = as_finite(batch, "batch efficiency", "batch", base)
    if noise_scale == math.inf:
        return 1.0
    noise = as_finite(noise_scale, "batch efficiency", "noise_scale", 0.0, _MAX_RATE)
    return (noise + base) / (noise + size)


def effective_progress(samples_per_s: float, batch_efficiency: float = 1.0, rate_efficiency: float = 1.0) -> float:
    """Useful samples per second: throughput times batch efficiency times rate efficiency.

    Examples
    --------
    >>> effective_progress(1000, 0.5, 0.9)
    450.0
    """
    throughput = as_finite(samples_per_s, "effective progress", "samples_per_s", 0.0, _MAX_RATE)
    batch = as_finite(batch_efficiency, "effective progress", "batch_efficiency", 0.0, 1.0)
    return throughput * batch * as_finite(rate_efficiency, "effective progress", "rate_efficiency", 0.0, 1.0)


def remaining_time_s(remaining_samples: float, effective_samples_per_s: float) -> float:
    """Seconds that the remaining work takes, in samples as worth as those of the base batch without freezing.

    Raises
    ------
    InvalidValueError
        The work is negative, or there is no progress.

    Examples
    --------
    >>> remaining_time_s(900, effective_progress(1000, 0.5, 0.9))
    2.0
    """
    work = as_finite(remaining_samples, "effective progress", "remaining_samples", 0.0, _MAX_RATE)
    progress = as_finite(effective_samples_per_s, "effective progress", "effective_samples_per_s", 0.0, _MAX_RATE)
    if progress == 0.0:
        raise InvalidValueError("effective progress", "effective_samples_per_s", 0.0, "must be above 0")
    return work / progress


def worth_changing(saving_s: float, change_cost_s: float, remaining_s: float = 0.0, hysteresis: float = 0.03) -> bool:
    """Whether a change saves more than it costs, and more than a share of the remaining time.

    Parameters
    ----------
    saving_s : float
        Seconds that the job ends earlier, the change itself not counted.
    change_cost_s : float
        Seconds that the change takes.
    remaining_s : float, default 0
        Seconds that are left without a change.
    hysteresis : float, default 0.03
        Share of them that must be saved.

    Examples
    --------
    >>> [worth_changing(0.5 * iterations, 20) for iterations in (30, 40, 50)]
    [False, False, True]
    """
    return saving_s > max(change_cost_s, hysteresis * remaining_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezeTerms:
    """What a job allows to be frozen, and what that may cost it.

    Parameters
    ----------
    shares : iterable of float
        Frozen share of the compute at each level, 0 first; see :func:`~frostline.freezing.frozen_shares`.
    law : DebtLaw
        Accuracy debt, as believed by the scheduler.
    quality_budget_points : float
        Percentage points of final accuracy that freezing may cost in all.
    mode : FreezeMode, default fixed steps
        What is kept fixed.
    efficiency : RateEfficiency, default FullRate()
        What a step is worth at each level, for fixed quality.
    frozen_units : iterable of int, optional
        Leading units frozen at each level, for gradient evidence; by default as many as the level.
    phases : int, default 20
        Parts of equal progress, after the warm-up, at whose starts the level may change.
    change_cost_s : float, default 0.1
        Seconds that a change of level takes.
    hysteresis : float, default 0.03
        Share of the remaining time that a change must save.

    Raises
    ------
    InvalidValueError
        A value lies outside its bounds.

    Examples
    --------
    >>> law = DebtLaw(a=1, A=10, c=5, B_0=1)
    >>> FreezeTerms(shares=[0, 0.5, 1], law=law, quality_budget_points=1).rates
    (1.0, 1.0, 1.0)
    """

    shares: tuple[float, ...]
    law: DebtLaw
    quality_budget_points: float
    mode: FreezeMode = FreezeMode.FIXED_STEPS
    efficiency: RateEfficiency = field(default_factory=FullRate)
    frozen_units: tuple[int, ...] = ()
    phases: int = 20
    change_cost_s: float = 0.1
    hysteresis: float = 0.03

    def __post_init__(self) -> None:
        subject = "freezing"
        shares = as_shares(self.shares, subject)
        units = tuple(self.frozen_units) or range(len(shares))
        values: dict[str, object] = {
            "shares": shares,
            "frozen_units": tuple(as_int(count, subject, "frozen_units", 0) for count in units),
            "quality_budget_points": as_finite(
                self.quality_budget_points, subject, "quality_budget_points", 0.0, MAX_POINTS
            ),
            "mode": _mode(self.mode),
            "phases": as_int(self.phases, subject, "phases", 1),
            "change_cost_s": as_finite(self.change_cost_s, subject, "change_cost_s", 0.0),
            "hysteresis": as_finite(self.hysteresis, subject, "hysteresis", 0.0, 1.0),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        if len(self.frozen_units) != len(shares):
            raise InvalidValueError(subject, "frozen_units", self.frozen_units, "must have one entry a level")
        rates_of(self.efficiency, shares)

    @property
    def rates(self) -> tuple[float, ...]:
        """Rate efficiency η at each level: all 1 where the steps are fixed."""
        efficiency = self.efficiency if self.mode is FreezeMode.FIXED_QUALITY else FullRate()
        return rates_of(efficiency, self.shares)

    def level(self, value: object) -> int:
        """A level, checked.

        Raises
        ------
        InvalidValueError
            It is no whole number from 0 to the highest level.
        """
        level = as_int(value, "freezing", "level", 0)
        if level >= len(self.shares):
            raise InvalidValueError("freezing", "level", value, f"must be at most {len(self.shares) - 1}")
        return level

    def boundaries(self, progress: float = 0.0) -> tuple[float, ...]:
        """Progress at which the phases from here on start, and 1: the warm-up, then phases of equal length."""
        warm, count = self.law.warm_up, self.phases
        grid = [warm + (1.0 - warm) * i / count for i in range(count)] if warm < 1.0 else []
        return (progress, *(edge for edge in grid if edge > progress + _CLOSE), 1.0)

    def may_freeze(self, progress: float) -> bool:
        """Whether the warm-up is over, but for the last bits of the progress."""
        return progress >= self.law.warm_up - _CLOSE

    def debts_points(self, boundaries: Sequence[float], state: FreezeState) -> npt.NDArray[np.float64]:
        """Debt of each phase (row) at each level (column) as believed in a state; nothing where quality is fixed."""
        if self.mode is FreezeMode.FIXED_QUALITY:
            return np.zeros((len(boundaries) - 1, len(self.shares)))
        law = self.law.scaled(state.scale.debt_factor)
        return level_debts_points(law, self.shares, boundaries, state.debt_factors(self))


def _mode(value: str) -> FreezeMode:
    try:
        return FreezeMode(value)
    except ValueError:
        known = " or ".join(mode.value for mode in FreezeMode)
        raise InvalidValueError("freezing", "mode", value, f"must be {known}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezeState:
    """What is known of the freezing of a running job; methods return another state, or this one if nothing is new.

    Parameters
    ----------
    level : int, default 0
        Present level.
    progress : float, default 0
        Share of the training done.
    spent_points : float, default 0
        Debt so far, as it was believed when it was made.
    scale : ProgressScale
        How the metric progressed so far.
    gradients : GradientEvidence, optional
        Gradients of the units so far.
    step : int, default 0
        Steps of training done, the clock of the gradients.

    Examples
    --------
    >>> terms = FreezeTerms(shares=[0, 1], law=DebtLaw(a=1, A=0, c=1, B_0=2), quality_budget_points=1)
    >>> state = FreezeState().advanced(terms, 0.5).moved(terms, 1).advanced(terms, 0.75)
    >>> state.spent_points, state.remaining_points(terms), state.moved(terms, 1) is state
    (0.5, 0.5, True)
    """

    level: int = 0
    progress: float = 0.0
    spent_points: float = 0.0
    scale: ProgressScale = field(default_factory=ProgressScale)
    gradients: GradientEvidence | None = None
    step: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", as_int(self.level, "freezing", "level", 0))
        object.__setattr__(self, "progress", as_finite(self.progress, "freezing", "progress", 0.0, 1.0))
        spent = as_finite(self.spent_points, "freezing", "spent_points", 0.0, MAX_POINTS)
        object.__setattr__(self, "spent_points", spent)
        object.__setattr__(self, "step", as_int(self.step, "freezing", "step", 0))

    def advanced(self, terms: FreezeTerms, progress: float, step: int | None = None) -> FreezeState:
        """State after training on at the present level, whose debt is booked.

        Raises
        ------
        InvalidValueError
            The progress or the step lies before the present one, or the level is not among the terms.
        """
        reached = as_finite(progress, "freezing", "progress", self.progress, 1.0)
        clock = self.step if step is None else as_int(step, "freezing", "step", self.step)
        if (reached, clock) == (self.progress, self.step):
            return self
        debt = float(terms.debts_points((self.progress, reached), self)[0, terms.level(self.level)])
        return dataclasses.replace(self, progress=reached, step=clock, spent_points=self.spent_points + debt)

    def moved(self, terms: FreezeTerms, level: int) -> FreezeState:
        """State at another level.

        Raises
        ------
        InvalidValueError
            The level is not among the terms, or something would be frozen before the end of the warm-up.
        """
        target = terms.level(level)
        if target == self.level:
            return self
        if target and not terms.may_freeze(self.progress):
            raise InvalidValueError("freezing", "level", level, f"must be 0 before progress {terms.law.warm_up:g}")
        return dataclasses.replace(self, level=target)

    def reported(self, realised: float, expected: float) -> FreezeState:
        """State after a report that the metric improved by ``realised`` where ``expected`` was."""
        scale = self.scale.observe(realised, expected)
        return self if scale == self.scale else dataclasses.replace(self, scale=scale)

    def observed(self, moments: Sequence[tuple[float, float] | None], steps: float = 1.0) -> FreezeState:
        """State after a report of the gradient moments of every unit, None for frozen ones, at the present step."""
        evidence = GradientEvidence.of(len(moments)) if self.gradients is None else self.gradients
        return dataclasses.replace(self, gradients=evidence.observe(self.step, moments, steps))

    def debt_factors(self, terms: FreezeTerms) -> tuple[float, ...] | None:
        """What gradient evidence multiplies the debt of each level by; None without evidence."""
        if self.gradients is None:
            return None
        return self.gradients.factors(terms.shares, terms.frozen_units, self.step)

    def remaining_points(self, terms: FreezeTerms) -> float:
        """Quality budget that is left, at least 0."""
        return max(terms.quality_budget_points - self.spent_points, 0.0)
