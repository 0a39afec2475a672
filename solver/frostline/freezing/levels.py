"""Freeze levels: the few prefixes of units that a job may freeze."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from frostline.errors import InvalidValueError
from frostline.freezing.units import FreezeUnits
from frostline.units import as_int

__all__ = ["MOST_LEVELS", "FreezeLevels"]

MOST_LEVELS = 8
"""Most levels above 0: with few options per job, exact methods stay exact."""

_SUBJECT = "freeze levels"


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezeLevels:
    """The freeze levels that a job offers: level 0 freezes nothing, each further one more of the first units.

    Parameters
    ----------
    units : FreezeUnits
        The units.
    frozen_units : sequence of int
        Units that each level freezes: 0 first, then rising, at most eight more. The head, the last unit, is never
        frozen: a network that learns nothing makes no progress.

    Raises
    ------
    InvalidValueError
        Numbers that break these rules.

    Examples
    --------
    >>> from frostline.freezing.units import FreezeUnit
    >>> units = FreezeUnits([FreezeUnit(forward=1)] * 12)
    >>> FreezeLevels.evenly(units).frozen_units, FreezeLevels.evenly(units, 3).frozen_units
    ((0, 2, 3, 4, 6, 7, 8, 10, 11), (0, 4, 7, 11))
    >>> FreezeLevels(units=units, frozen_units=[0, 6, 12])
    Traceback (most recent call last):
    frostline.errors.InvalidValueError: freeze levels: frozen_units[2]=12 must be at most 11, all units but the head
    """

    units: FreezeUnits
    frozen_units: tuple[int, ...]

    def __post_init__(self) -> None:
        if isinstance(self.frozen_units, str) or not isinstance(self.frozen_units, Sequence):
            rule = "must be a sequence of numbers of units; what cannot be frozen has level 0 only"
            raise InvalidValueError(_SUBJECT, "frozen_units", self.frozen_units, rule)
        counts = tuple(as_int(k, _SUBJECT, f"frozen_units[{i}]", 0) for i, k in enumerate(self.frozen_units))
        if not counts or counts[0] != 0:
            raise InvalidValueError(_SUBJECT, "frozen_units", counts, "must begin with 0, nothing frozen")
        if len(counts) > MOST_LEVELS + 1:
            raise InvalidValueError(_SUBJECT, "frozen_units", counts, f"must have at most {MOST_LEVELS} levels above 0")
        for level in range(1, len(counts)):
            if counts[level] >= len(self.units):
                rule = f"must be at most {len(self.units) - 1}, all units but the head"
                raise InvalidValueError(_SUBJECT, f"frozen_units[{level}]", counts[level], rule)
            if counts[level] <= counts[level - 1]:
                rule = f"must be above {counts[level - 1]}, that of the level before"
                raise InvalidValueError(_SUBJECT, f"frozen_units[{level}]", counts[level], rule)
        object.__setattr__(self, "frozen_units", counts)

    @classmethod
    def evenly(cls, units: FreezeUnits, most: int = MOST_LEVELS) -> FreezeLevels:
        """Levels at the cuts nearest to equal steps of the compute share, the last one all but the head.

        Of two cuts equally near the earlier one is taken; steps that share a cut become one level. A cut that saves
        neither work nor parameters over the one before is left out, such as one after a tied embedding.

        Parameters
        ----------
        units : FreezeUnits
            The units.
        most : int
            Most levels above 0, from 0 to 8.
        """
        steps = as_int(most, _SUBJECT, "most", 0)
        if steps > MOST_LEVELS:
            raise InvalidValueError(_SUBJECT, "most", most, f"must be at most {MOST_LEVELS}")
        useful = [frozen for frozen in range(1, len(units)) if _saves(units, frozen)]
        if len(useful) <= steps:
            return cls(units=units, frozen_units=(0, *useful))
        if steps == 0:
            return cls(units=units, frozen_units=(0,))
        shares = units.compute_shares()
        targets = [shares[useful[-1]] * step / steps for step in range(1, steps)]
        cuts = {min(useful, key=lambda cut: abs(shares[cut] - target)) for target in targets}
        return cls(units=units, frozen_units=(0, *sorted(cuts | {useful[-1]})))

    def __len__(self) -> int:
        return len(self.frozen_units)

    def frozen_at(self, level: object) -> int:
        """Number of units that a level freezes.

        Raises
        ------
        InvalidValueError
            None, no whole number, or not one of the levels.

        Examples
        --------
        >>> from frostline.freezing.units import FreezeUnit
        >>> levels = FreezeLevels.evenly(FreezeUnits([FreezeUnit(forward=1)] * 12), 3)
        >>> levels.frozen_at(2)
        7
        """
        if level is None:
            rule = "must be a level; what cannot be frozen has level 0 only"
            raise InvalidValueError(_SUBJECT, "level", None, rule)
        number = as_int(level, _SUBJECT, "level", 0)
        if number >= len(self.frozen_units):
            raise InvalidValueError(_SUBJECT, "level", level, f"must be at most {len(self.frozen_units) - 1}")
        return self.frozen_units[number]

    @property
    def compute_shares(self) -> tuple[float, ...]:
        """Share of the work of all units but the head that the frozen units of each level do, shape (levels,)."""
        shares = self.units.compute_shares()
        return tuple(shares[frozen] for frozen in self.frozen_units)


def _saves(units: FreezeUnits, frozen: int) -> bool:
    """Whether so many frozen units save work or parameters over one less."""
    last, following = units.units[frozen - 1], units.units[frozen]
    return bool(last.weight_gradient or last.optimizer or last.params or following.input_gradient)
