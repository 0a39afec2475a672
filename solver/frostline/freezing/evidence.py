"""What a running job reports about itself: its metric's progress, and the gradients of its units."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

from frostline.errors import InvalidValueError
from frostline.freezing.penalty import as_shares
from frostline.units import as_finite, as_int

__all__ = [
    "GradientEvidence",
    "ProgressScale",
    "UnitGradient",
    "differenced_moments",
    "gradient_moments",
]

_MAX = 1e150  # squares stay finite
_SCALE_LIMIT = 4.0
_MAX_AGE = 50.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressScale:
    """Moving average κ of realised over expected progress of the metric, within 1/4 and 4.

    A job that improves half as fast as expected (κ = 1/2) is earlier in its training than its steps say; what freezing
    costs it is then divided by κ.

    Parameters
    ----------
    value : float, default 1
        The average κ.
    weight : float, default 0.3
        Weight of a new report, above 0 and at most 1.

    Examples
    --------
    >>> slow = ProgressScale(weight=0.5).observe(realised=1, expected=2)
    >>> slow.value, round(slow.debt_factor, 4)
    (0.75, 1.3333)
    """

    value: float = 1.0
    weight: float = 0.3

    def __post_init__(self) -> None:
        value = as_finite(self.value, "progress scale", "value", 1.0 / _SCALE_LIMIT, _SCALE_LIMIT)
        weight = as_finite(self.weight, "progress scale", "weight", 0.0, 1.0)
        if weight == 0.0:
            raise InvalidValueError("progress scale", "weight", weight, "must be above 0")
        object.__setattr__(self, "value", value)
        object.__setattr__(self, "weight", weight)

    @property
    def debt_factor(self) -> float:
        """What the debt is multiplied by: 1/κ."""
        return 1.0 / self.value

    def observe(self, realised: float, expected: float) -> ProgressScale:
        """Scale after one more report of how much the metric improved since the last.

        Where no improvement was expected, the report says nothing. A metric that got worse counts as 1/4.

        Raises
        ------
        InvalidValueError
            A value is not finite.
        """
        made = as_finite(realised, "progress scale", "realised", -math.inf, math.inf)
        hoped = as_finite(expected, "progress scale", "expected", -math.inf, math.inf)
        if hoped <= 0.0:
            return self
        ratio = min(max(made / hoped, 1.0 / _SCALE_LIMIT), _SCALE_LIMIT)
        return dataclasses.replace(self, value=self.value + self.weight * (ratio - self.value))


def gradient_moments(
    mean_square: float, square_of_mean: float, replicas: int, batch_scale: float = 1.0
) -> tuple[float, float]:
    """Unbiased square of the true gradient, and its variance at the base batch, from one step of n replicas.

    ``g = (n |Ḡ|² - mean |G_i|²) / (n - 1)`` and ``v = (mean |G_i|² - |Ḡ|²) · scale / (n - 1)``, the estimators of
    AdaScale (Johnson et al. 2020) as Pollux (Qiao et al., OSDI 2021) uses them. Noise can make g of one step negative.

    Parameters
    ----------
    mean_square : float
        Mean over the replicas of the squared norm of their gradient.
    square_of_mean : float
        Squared norm of the averaged gradient.
    replicas : int
        Number n of independent gradients, replicas times accumulated micro-batches, at least 2.
    batch_scale : float, default 1
        Batch over base batch.

    Raises
    ------
    InvalidValueError
        Fewer than two gradients (see :func:`differenced_moments`), or a value that is no square.

    Examples
    --------
    >>> gradient_moments(mean_square=10, square_of_mean=4, replicas=4)
    (2.0, 2.0)
    """
    local = as_finite(mean_square, "gradient", "mean_square", 0.0, _MAX)
    total = as_finite(square_of_mean, "gradient", "square_of_mean", 0.0, _MAX)
    n = as_int(replicas, "gradient", "replicas", 2)
    scale = as_finite(batch_scale, "gradient", "batch_scale", 0.0, 1e9)
    return (n * total - local) / (n - 1), max(local - total, 0.0) * scale / (n - 1)


def differenced_moments(
    previous_square: float, square: float, square_of_mean: float, batch_scale: float = 1.0
) -> tuple[float, float]:
    """As :func:`gradient_moments`, for a single replica: two consecutive gradients stand for two replicas.

    Parameters
    ----------
    previous_square, square : float
        Squared norms of the previous and of the present gradient.
    square_of_mean : float
        Squared norm of the mean of the two.
    batch_scale : float, default 1
        Batch of one step over base batch.

    Examples
    --------
    >>> differenced_moments(5, 7, 4)
    (2.0, 4.0)
    """
    mean_square = (as_finite(previous_square, "gradient", "previous_square", 0.0, _MAX) + square) / 2
    return gradient_moments(mean_square, square_of_mean, 2, 2 * batch_scale)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitGradient:
    """Moving averages of the gradient moments of one unit, corrected for their start at 0.

    Parameters
    ----------
    square, variance : float, default 0
        Averages as accumulated.
    weight : float, default 0
        Weight of all observations so far, below 1.
    step : int, default 0
        Step of the last observation.
    """

    square: float = 0.0
    variance: float = 0.0
    weight: float = 0.0
    step: int = 0

    def observe(self, step: int, moments: tuple[float, float], decay: float) -> UnitGradient:
        """Averages after one more observation, earlier ones being weighed down by ``decay``."""
        fresh = 1.0 - decay
        return UnitGradient(
            square=decay * self.square + fresh * moments[0],
            variance=decay * self.variance + fresh * moments[1],
            weight=decay * self.weight + fresh,
            step=step,
        )

    @property
    def mean_square(self) -> float:
        """Bias-corrected square of the gradient, at least 0."""
        return max(self.square / self.weight, 0.0) if self.weight else 0.0

    @property
    def mean_variance(self) -> float:
        """Bias-corrected variance of the gradient."""
        return self.variance / self.weight if self.weight else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientEvidence:
    """Gradients of all units of a job, in order; they may raise the debt of a level, never lower it.

    ρ is the share of the squared gradient that the frozen units hold. Frozen units have no gradient: their last value
    is kept, and grows with its age.

    Parameters
    ----------
    units : tuple of UnitGradient
        The units; ``GradientEvidence.of(L)`` has L that were never observed.
    smoothing : float, default 0.999
        Decay of the averages per step, at least 0 and below 1.
    age_steps : float, default 10,000
        Steps after which the value of a frozen unit has grown by a factor e.

    Examples
    --------
    >>> evidence = GradientEvidence.of(2).observe(1, [(3, 1), (1, 1)])
    >>> evidence.gradient_shares(1), evidence.factors((0, 0.5), (0, 1), 1)
    ((0.0, 0.75, 1.0), (1.0, 1.5))
    """

    units: tuple[UnitGradient, ...]
    smoothing: float = 0.999
    age_steps: float = 10_000.0

    def __post_init__(self) -> None:
        smoothing = as_finite(self.smoothing, "gradient evidence", "smoothing", 0.0, 1.0)
        age = as_finite(self.age_steps, "gradient evidence", "age_steps", 0.0, 1e15)
        if smoothing == 1.0:
            raise InvalidValueError("gradient evidence", "smoothing", smoothing, "must be below 1")
        if age == 0.0:
            raise InvalidValueError("gradient evidence", "age_steps", age, "must be above 0")
        object.__setattr__(self, "units", tuple(self.units))
        object.__setattr__(self, "smoothing", smoothing)
        object.__setattr__(self, "age_steps", age)

    @classmethod
    def of(cls, units: int, smoothing: float = 0.999, age_steps: float = 10_000.0) -> GradientEvidence:
        """Evidence on so many units, of which nothing is known yet."""
        count = as_int(units, "gradient evidence", "units", 1)
        return cls(units=(UnitGradient(),) * count, smoothing=smoothing, age_steps=age_steps)

    def observe(self, step: int, moments: Sequence[tuple[float, float] | None], steps: float = 1.0) -> GradientEvidence:
        """Evidence after one more report.

        Parameters
        ----------
        step : int
            Step of the training, not before that of an earlier report.
        moments : sequence of (float, float) or None
            Square and variance of each unit's gradient; None where the unit is frozen.
        steps : float, default 1
            Steps that the report stands for.

        Raises
        ------
        InvalidValueError
            Another number of units, a step that was before, or a value that is not finite.
        """
        now = as_int(step, "gradient evidence", "step", max(unit.step for unit in self.units))
        if len(moments) != len(self.units):
            raise InvalidValueError("gradient evidence", "moments", len(moments), f"must be {len(self.units)}")
        decay = self.smoothing ** as_finite(steps, "gradient evidence", "steps", 0.0)
        units = tuple(
            unit if pair is None else unit.observe(now, _pair(pair), decay)
            for unit, pair in zip(self.units, moments, strict=True)
        )
        return dataclasses.replace(self, units=units)

    def gradient_shares(self, step: int) -> tuple[float, ...]:
        """Share ρ of the squared gradient in the leading 0, 1, ..., L units; all 0 while nothing is known."""
        squares = [unit.mean_square * self._age_factor(unit, step) for unit in self.units]
        total = math.fsum(squares)
        if total <= 0.0:
            return (0.0,) * (len(squares) + 1)
        return tuple(min(math.fsum(squares[:k]) / total, 1.0) for k in range(len(squares) + 1))

    def _age_factor(self, unit: UnitGradient, step: int) -> float:
        return math.exp(min(max(step - unit.step, 0) / self.age_steps, _MAX_AGE))

    def factors(self, shares: Sequence[float], frozen_units: Sequence[int], step: int) -> tuple[float, ...]:
        """What the debt of each level is multiplied by: ``max(1, ρ_k / x_k)``.

        Parameters
        ----------
        shares : sequence of float
            Frozen share x_k of the compute at each level.
        frozen_units : sequence of int
            Leading units frozen at each level.
        step : int
            Present step of the training.
        """
        known = self.gradient_shares(step)
        pairs = zip(as_shares(shares, "gradient evidence"), frozen_units, strict=True)
        return tuple(max(1.0, known[count] / x) if x > 0 else 1.0 for x, count in pairs)

    def noise_scale(self, base_batch: float) -> float:
        """Pollux's noise scale φ = M_0 v / g of the whole network, in samples; infinite where no gradient is seen."""
        batch = as_finite(base_batch, "gradient evidence", "base_batch", 0.0)
        square = math.fsum(unit.mean_square for unit in self.units)
        variance = math.fsum(unit.mean_variance for unit in self.units)
        return batch * variance / square if square > 0 else math.inf


def _pair(pair: tuple[float, float]) -> tuple[float, float]:
    square = as_finite(pair[0], "gradient evidence", "square", -_MAX, _MAX)
    return square, as_finite(pair[1], "gradient evidence", "variance", 0.0, _MAX)
