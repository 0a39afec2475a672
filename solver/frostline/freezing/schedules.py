"""Published freezing schedules, as baselines: which leading units are frozen at which epoch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.units import as_finite, as_int

__all__ = [
    "FREEZE_SCHEDULES",
    "AutoFreeze",
    "FreezeOut",
    "FreezeSchedule",
    "NoFreezing",
    "PipeTransformer",
    "freeze_schedule",
    "schedule_levels",
]

_CLOSE = 1e-9


class FreezeSchedule(Protocol):
    """A schedule that is fixed before the training starts."""

    def units_frozen(self, epoch: int, epochs: int) -> int:
        """Leading units that are frozen during an epoch, counted from 0."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class NoFreezing:
    """Nothing is ever frozen."""

    def units_frozen(self, epoch: int, epochs: int) -> int:
        """0."""
        _check(epoch, epochs)
        return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezeOut:
    """Unit i of L is frozen from progress ``(t_0 + (1 - t_0) i / L)^power`` on (Brock et al., FreezeOut, 2017).

    Its cosine learning rate per layer is not part of the schedule here.

    Parameters
    ----------
    units : int
        Units L of the network, the head included, at least 2.
    t_0 : float, default 0.5
        When the first unit freezes, before the power is taken.
    power : int, default 1
        1 is the linear schedule, 3 the cubic one.

    Examples
    --------
    >>> schedule_levels(FreezeOut(units=4, t_0=0.5), epochs=8)
    (0, 0, 0, 0, 1, 2, 3, 3)
    """

    units: int
    t_0: float = 0.5
    power: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "units", as_int(self.units, "FreezeOut", "units", 2))
        object.__setattr__(self, "t_0", as_finite(self.t_0, "FreezeOut", "t_0", 0.0, 1.0))
        object.__setattr__(self, "power", as_int(self.power, "FreezeOut", "power", 1))

    def units_frozen(self, epoch: int, epochs: int) -> int:
        """Units whose time has come."""
        _check(epoch, epochs)
        times = ((self.t_0 + (1.0 - self.t_0) * i / self.units) ** self.power for i in range(self.units - 1))
        return sum(time * epochs <= epoch + _CLOSE for time in times)


@dataclass(frozen=True, slots=True, kw_only=True)
class PipeTransformer:
    """After T epochs ``L (1 - (1 - alpha)^T)`` of L units are frozen (He et al., PipeTransformer, ICML 2021).

    That is the closed form of ``L_T = L_(T-1) + alpha (L - L_(T-1))``; the gradient rule it is combined with there is
    :class:`AutoFreeze`.

    Parameters
    ----------
    units : int
        Units L of the network, the head included, at least 2.
    alpha : float, default 1/3
        Share of the active units that each epoch freezes.

    Examples
    --------
    >>> schedule_levels(PipeTransformer(units=8, alpha=0.25), epochs=5)
    (0, 2, 3, 4, 5)
    """

    units: int
    alpha: float = 1 / 3

    def __post_init__(self) -> None:
        object.__setattr__(self, "units", as_int(self.units, "PipeTransformer", "units", 2))
        object.__setattr__(self, "alpha", as_finite(self.alpha, "PipeTransformer", "alpha", 0.0, 1.0))

    def units_frozen(self, epoch: int, epochs: int) -> int:
        """Units that have been frozen by now, never the head."""
        _check(epoch, epochs)
        return min(math.floor(self.units * (1.0 - (1.0 - self.alpha) ** epoch) + _CLOSE), self.units - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoFreeze:
    """Freezes the units before the first whose gradient still changes much (Liu et al., AutoFreeze, 2021).

    At the end of each interval of training, the score of an active unit is the relative change of the L1 norm of its
    accumulated gradient. Frozen are all units before the first active one whose score reaches the percentile of the
    scores of the active units.

    Parameters
    ----------
    percentile : float, default 50
        Percentile of the scores, from 0 to 100.

    Examples
    --------
    >>> AutoFreeze().next_level(0, previous_norms=[10, 10, 10, 10], norms=[9.9, 9.8, 5, 4])
    2
    """

    percentile: float = 50.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "percentile", as_finite(self.percentile, "AutoFreeze", "percentile", 0.0, 100.0))

    def next_level(self, level: int, previous_norms: Sequence[float], norms: Sequence[float]) -> int:
        """Leading units frozen in the next interval.

        Parameters
        ----------
        level : int
            Units frozen in this interval.
        previous_norms, norms : sequence of float
            Gradient norm of each unit in the previous interval and in this one; those of frozen units are not read.

        Raises
        ------
        InvalidValueError
            The lengths differ, all units would be frozen, or a norm is negative or not finite.
        """
        count = len(norms)
        now = as_int(level, "AutoFreeze", "level", 0)
        if len(previous_norms) != count:
            raise InvalidValueError("AutoFreeze", "previous_norms", len(previous_norms), f"must be {count} norms")
        if now >= count:
            raise InvalidValueError("AutoFreeze", "level", level, "must leave the head active")
        scores = [_change(before, after) for before, after in zip(previous_norms[now:], norms[now:], strict=True)]
        threshold = float(np.percentile(scores, self.percentile))
        first = next(i for i, score in enumerate(scores) if score >= threshold)
        return min(now + first, count - 1)


def _change(before: float, after: float) -> float:
    """Relative change of a norm; one that was 0 has changed without bound unless it still is."""
    old = as_finite(before, "AutoFreeze", "previous_norms", 0.0, 1e300)
    new = as_finite(after, "AutoFreeze", "norms", 0.0, 1e300)
    if old == 0.0:
        return 0.0 if new == 0.0 else 1e300
    return min(abs(old - new) / old, 1e300)


def _check(epoch: int, epochs: int) -> None:
    if as_int(epoch, "schedule", "epoch", 0) >= as_int(epochs, "schedule", "epochs", 1):
        raise InvalidValueError("schedule", "epoch", epoch, f"must be below {epochs}, the number of epochs")


FREEZE_SCHEDULES: dict[str, Callable[[int], FreezeSchedule]] = {
    "none": lambda units: NoFreezing(),
    "freezeout-linear": lambda units: FreezeOut(units=units, t_0=0.5, power=1),
    "freezeout-cubic": lambda units: FreezeOut(units=units, t_0=0.8, power=3),
    "pipetransformer": lambda units: PipeTransformer(units=units, alpha=1 / 3),
}
"""Published schedules by name, each a function of the number of units."""


def freeze_schedule(name: str, units: int) -> FreezeSchedule:
    """Published schedule with its default parameters, for a network of so many units.

    Raises
    ------
    UnknownNameError
        No such schedule; a near miss is suggested.

    Examples
    --------
    >>> freeze_schedule("freezeout-cubic", 8)
    FreezeOut(units=8, t_0=0.8, power=3)
    """
    try:
        make = FREEZE_SCHEDULES[name]
    except KeyError:
        raise UnknownNameError("freeze schedule", name, FREEZE_SCHEDULES) from None
    return make(as_int(units, "schedule", "units", 2))


def schedule_levels(schedule: FreezeSchedule, epochs: int) -> tuple[int, ...]:
    """Units frozen in each epoch of a training.

    Examples
    --------
    >>> schedule_levels(NoFreezing(), 3)
    (0, 0, 0)
    """
    count = as_int(epochs, "schedule", "epochs", 1)
    return tuple(schedule.units_frozen(epoch, count) for epoch in range(count))
