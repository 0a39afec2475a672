"""Freeze units: the parts of a network that are frozen or trained whole, and what freezing the first ones saves."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from statistics import fmean
from typing import Any

from frostline.errors import InvalidValueError
from frostline.problem.layer import as_count, as_elements, as_text
from frostline.units import as_int

__all__ = ["FreezeUnit", "FreezeUnits"]

_SUBJECT = "freeze units"
_WORK = ("forward", "weight_gradient", "input_gradient", "optimizer")


@dataclass(frozen=True, slots=True, init=False)
class FreezeUnit:
    """A part of a network that is frozen or trained whole.

    Work is in one measure for all units of a network: FLOPs per sample, or seconds of a step. Whole numbers stay
    exact.

    Parameters
    ----------
    forward : int or float
        Work of the forward pass, at least 0.
    weight_gradient : int or float, optional
        Work of the backward pass where the gradient of the unit's input is not needed: where no unit before it is
        trained. By default that of the forward pass.
    input_gradient : int or float, optional
        What the gradient of the unit's input adds; by default the work of the forward pass.
    optimizer : int or float
        Work of the optimizer on its parameters.
    params : int
        Parameters that stay trained no longer than the unit is.
    saved_bytes : int
        Activations kept for its backward pass, bytes per sample at fp32.
    output_elements : int
        Elements of its output per sample.
    name : str
        Name for messages.

    Raises
    ------
    InvalidValueError
        A figure is negative, not finite or over 10^18.

    Examples
    --------
    >>> unit = FreezeUnit(forward=4, name="block")
    >>> unit.weight_gradient, unit.input_gradient, unit.optimizer
    (4, 4, 0)
    """

    forward: float
    weight_gradient: float
    input_gradient: float
    optimizer: float
    params: int
    saved_bytes: int
    output_elements: int
    name: str

    def __init__(
        self,
        *,
        forward: float,
        weight_gradient: float | None = None,
        input_gradient: float | None = None,
        optimizer: float = 0,
        params: int = 0,
        saved_bytes: int = 0,
        output_elements: int = 0,
        name: str = "",
    ) -> None:
        subject = f"freeze unit {as_text(name, 'freeze unit', 'name')!r}" if name else "freeze unit"
        work = {
            "forward": forward,
            "weight_gradient": forward if weight_gradient is None else weight_gradient,
            "input_gradient": forward if input_gradient is None else input_gradient,
            "optimizer": optimizer,
        }
        sizes = {"params": params, "saved_bytes": saved_bytes, "output_elements": output_elements}
        values = {field: as_elements(value, subject, field) for field, value in work.items()}
        values |= {field: as_count(value, subject, field) for field, value in sizes.items()}
        for field, value in values.items():
            object.__setattr__(self, field, value)
        object.__setattr__(self, "name", str(name))


@dataclass(frozen=True, slots=True)
class FreezeUnits:
    """The freeze units of a network in the order of its forward pass.

    Freezing is by prefix: the first k of L units are frozen, the others trained. Any other set saves the weight
    gradients of its units only, since the gradients of inputs pass through them all the same; it is not offered.

    Parameters
    ----------
    units : sequence of FreezeUnit
        The units, at least one; the last one is the head.

    Raises
    ------
    InvalidValueError
        No units, or something else among them.

    Examples
    --------
    >>> units = FreezeUnits([FreezeUnit(forward=1)] * 12)
    >>> units.compute(0), units.compute(6), units.compute(0) / units.compute(6)
    (35, 23, 1.5217391304347827)
    """

    units: tuple[FreezeUnit, ...]

    def __post_init__(self) -> None:
        units = tuple(self.units)
        if not units or not all(isinstance(unit, FreezeUnit) for unit in units):
            raise InvalidValueError(_SUBJECT, "units", units, "must be at least one FreezeUnit, and nothing else")
        object.__setattr__(self, "units", units)

    def __len__(self) -> int:
        return len(self.units)

    def __iter__(self) -> Iterator[FreezeUnit]:
        return iter(self.units)

    def averaged(self, kinds: Sequence[Hashable]) -> FreezeUnits:
        """Units of one kind with the mean of their work: measured times of equal units differ by noise alone.

        Parameters
        ----------
        kinds : sequence of hashable, one for each unit
            Equal for units that do equal work, such as the blocks of a transformer.

        Raises
        ------
        InvalidValueError
            Not one kind for each unit.

        Examples
        --------
        >>> units = FreezeUnits([FreezeUnit(forward=seconds) for seconds in (2, 4, 9)])
        >>> [unit.forward for unit in units.averaged(["block", "block", "head"])]
        [3, 3, 9]
        """
        if len(kinds) != len(self.units):
            raise InvalidValueError(_SUBJECT, "kinds", len(kinds), f"must be {len(self.units)}, one for each unit")
        alike: dict[Hashable, list[FreezeUnit]] = defaultdict(list)
        for kind, unit in zip(kinds, self.units, strict=True):
            alike[kind].append(unit)
        means = {kind: _mean_work(units) for kind, units in alike.items()}
        return FreezeUnits(tuple(replace(unit, **means[kind]) for kind, unit in zip(kinds, self.units, strict=True)))

    def checked(self, frozen: object) -> int:
        """Number of frozen units as an int.

        Raises
        ------
        InvalidValueError
            None, no whole number, negative, or more than there are units.

        Examples
        --------
        >>> FreezeUnits([FreezeUnit(forward=1)] * 12).checked(13)
        Traceback (most recent call last):
        frostline.errors.InvalidValueError: freeze units: frozen=13 must be at most 12, the number of units
        """
        if frozen is None:
            rule = "must be a number of units; what cannot be frozen has no freeze levels"
            raise InvalidValueError(_SUBJECT, "frozen", None, rule)
        count = as_int(frozen, _SUBJECT, "frozen", 0)
        if count > len(self.units):
            rule = f"must be at most {len(self.units)}, the number of units"
            raise InvalidValueError(_SUBJECT, "frozen", frozen, rule)
        return count

    def prefix(self, chosen: Iterable[int]) -> int:
        """Number of frozen units that a set of units amounts to.

        Parameters
        ----------
        chosen : iterable of int
            Units by position, from 0.

        Raises
        ------
        InvalidValueError
            They are not the first units.

        Examples
        --------
        >>> FreezeUnits([FreezeUnit(forward=1)] * 12).prefix({2, 0, 1})
        3
        """
        members = {as_int(unit, _SUBJECT, "unit", 0) for unit in chosen}
        count = self.checked(len(members))
        if members != set(range(count)):
            raise InvalidValueError(_SUBJECT, "frozen", sorted(members), "must be the first units: a gap saves little")
        return count

    def forward(self, frozen: int = 0, read: float | None = None) -> float:
        """Work of the forward pass with so many units frozen: all of it, or that of the others and a read.

        Parameters
        ----------
        frozen : int
            Number k of frozen units.
        read : int or float, optional
            Work of reading the output of the frozen units from a cache, which then are not computed.
        """
        count = self.checked(frozen)
        if read is None or count == 0:
            return _sum(unit.forward for unit in self.units)
        return _sum([as_elements(read, _SUBJECT, "read"), *(unit.forward for unit in self.units[count:])])

    def backward(self, frozen: int = 0) -> float:
        """Work of the backward pass: the weight gradients of units above k, the input gradients of those above k + 1.

        The first trained unit passes no gradient on. A FLOP counter gives the same to the FLOP.
        """
        active = self.units[self.checked(frozen) :]
        return _sum([*(unit.weight_gradient for unit in active), *(unit.input_gradient for unit in active[1:])])

    def optimizer(self, frozen: int = 0) -> float:
        """Work of the optimizer on the units above k."""
        return _sum(unit.optimizer for unit in self.units[self.checked(frozen) :])

    def compute(self, frozen: int = 0, read: float | None = None) -> float:
        """Work of one step with so many units frozen, see :meth:`forward`; it never rises with them, without a cache.

        Examples
        --------
        >>> FreezeUnits([FreezeUnit(forward=f) for f in (4, 3, 2, 1)]).compute(2)
        14
        """
        return self.forward(frozen, read) + self.backward(frozen) + self.optimizer(frozen)

    def compute_shares(self) -> tuple[float, ...]:
        """Share of the work of all units but the head that the first 0, 1, …, L - 1 units do, shape (L,).

        Work is that of both passes and the optimizer; without any before the head it is their share of those units.

        Examples
        --------
        >>> FreezeUnits([FreezeUnit(forward=f) for f in (4, 3, 1, 2)]).compute_shares()
        (0.0, 0.4, 0.85, 1.0)
        """
        work = [
            _sum((unit.forward, unit.weight_gradient, unit.input_gradient if i else 0, unit.optimizer))
            for i, unit in enumerate(self.units[:-1])
        ]
        done = [0, *accumulate(work)]
        if done[-1] == 0:
            return tuple(i / max(len(work), 1) for i in range(len(work) + 1))
        return tuple(float(part / done[-1]) for part in done)

    def params(self, frozen: int = 0) -> int:
        """Parameters of the units above k, those that units hold in common counted once."""
        return sum(unit.params for unit in self.units[self.checked(frozen) :])


def _sum(numbers: Iterable[float]) -> float:
    """Sum of non-negative numbers, exact where all are whole, else correctly rounded: it never falls as terms join."""
    terms = list(numbers)
    return sum(terms) if all(isinstance(number, int) for number in terms) else math.fsum(terms)


def _mean_work(units: Sequence[FreezeUnit]) -> dict[str, Any]:
    """Mean of each kind of work, by field."""
    return {name: fmean(getattr(unit, name) for unit in units) for name in _WORK}
