"""Rate efficiency: how much less one step is worth while units are frozen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, runtime_checkable

from frostline.errors import InvalidValueError
from frostline.freezing.penalty import as_shares
from frostline.units import as_finite

__all__ = ["FullRate", "PowerRate", "RateEfficiency", "TableRate", "rates_of"]


@runtime_checkable
class RateEfficiency(Protocol):
    """What one step is worth at each level, relative to a step without freezing.

    Anything with this method can be passed; :func:`rates_of` checks what it returns.
    """

    def rates(self, shares: Sequence[float]) -> Iterable[float]:
        """Rate at each of the frozen shares: in (0, 1], 1 at share 0, not rising."""
        ...


@dataclass(frozen=True, slots=True)
class FullRate:
    """A step is worth as much whatever is frozen.

    Examples
    --------
    >>> list(FullRate().rates([0, 0.5]))
    [1.0, 1.0]
    """

    def rates(self, shares: Sequence[float]) -> Iterable[float]:
        """1 at every share."""
        return [1.0] * len(shares)


@dataclass(frozen=True, slots=True)
class TableRate:
    """Rates given level by level.

    Parameters
    ----------
    values : iterable of float
        Rate at each level, level 0 first.
    """

    values: Iterable[float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _checked(self.values, "rate table"))

    def rates(self, shares: Sequence[float]) -> Iterable[float]:
        """The values, whatever the shares."""
        return self.values


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerRate:
    """Rate ``1 - loss · x^exponent`` at frozen share x.

    Parameters
    ----------
    loss : float
        What is lost when everything but the head is frozen, at least 0 and below 1.
    exponent : float, default 1
        Exponent of the share, above 0.

    Examples
    --------
    >>> list(PowerRate(loss=0.5, exponent=2).rates([0, 0.5, 1]))
    [1.0, 0.875, 0.5]
    """

    loss: float
    exponent: float = 1.0

    def __post_init__(self) -> None:
        loss = as_finite(self.loss, "power rate", "loss", 0.0, 1.0)
        exponent = as_finite(self.exponent, "power rate", "exponent", 0.0, 100.0)
        if loss == 1.0:
            raise InvalidValueError("power rate", "loss", loss, "must be below 1")
        if exponent == 0.0:
            raise InvalidValueError("power rate", "exponent", exponent, "must be above 0")
        object.__setattr__(self, "loss", loss)
        object.__setattr__(self, "exponent", exponent)

    def rates(self, shares: Sequence[float]) -> Iterable[float]:
        """The rate at each share."""
        return [1.0 - self.loss * share**self.exponent for share in shares]


def rates_of(efficiency: RateEfficiency, shares: Iterable[float]) -> tuple[float, ...]:
    """Rates that an efficiency gives at each level, checked.

    Raises
    ------
    InvalidValueError
        It gives another number of rates than there are levels, a rate outside (0, 1], one that rises with the level,
        or not 1 at level 0.

    Examples
    --------
    >>> rates_of(PowerRate(loss=0.25), [0, 1])
    (1.0, 0.75)
    """
    levels = as_shares(shares)
    subject = type(efficiency).__name__
    rates = _checked(efficiency.rates(levels), subject)
    if len(rates) != len(levels):
        raise InvalidValueError(subject, "rates", rates, f"must be {len(levels)}, one a level")
    return rates


def _checked(values: Iterable[float], subject: str) -> tuple[float, ...]:
    rates = tuple(as_finite(value, subject, "rates", 0.0, 1.0) for value in values)
    if not rates or rates[0] != 1.0:
        raise InvalidValueError(subject, "rates", rates, "must be 1 at level 0")
    if min(rates) <= 0.0:
        raise InvalidValueError(subject, "rates", rates, "must be above 0")
    if any(later > earlier for earlier, later in pairwise(rates)):
        raise InvalidValueError(subject, "rates", rates, "must not rise with the level")
    return rates
