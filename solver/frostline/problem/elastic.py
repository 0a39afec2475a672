"""Elastic work: measured at several numbers of GPUs and freeze levels, and free to change both while it runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from frostline.errors import InvalidValueError
from frostline.problem.frozen import FrozenMap
from frostline.problem.placement_class import PlacementClass
from frostline.units import as_finite, as_int

__all__ = ["MOST_FREEZE_LEVELS", "Elastic"]

MOST_FREEZE_LEVELS = 9
"""Most freeze levels of elastic work, level 0 included."""

_SUBJECT = "work"
_TABLE = "seconds_per_iteration"
_MOST_POINTS = 1e6


class _Checked(FrozenMap[PlacementClass, Mapping[int, tuple[float, ...]]]):
    """Table that was checked; jobs of one application share it."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Elastic:
    """Work that may run on several numbers of GPUs, and may freeze layers.

    The unit of work is one iteration at a reference batch. A job asks for one of the widths, its ``gpus``; a policy
    that changes neither width nor level runs it there at level 0.

    Parameters
    ----------
    iterations : int
        Number of reference iterations, at least 1.
    widths : sequence of int
        Numbers of GPUs on which it may run, ascending.
    seconds_per_iteration : mapping of PlacementClass to mapping of int to sequence of float
        Effective seconds of one reference iteration by class of placement, width and freeze level, above 0 and not
        rising with the level: the time of a step over the reference iterations that it is worth. A class may lack a
        width, but each width needs a class.
    compute_shares : sequence of float
        Share of the work frozen at each level: 0 at level 0, not falling, at most 1; at most nine levels. A single
        level, the default, is work that cannot be frozen.
    family : str
        Family of the network, by which its accuracy debt is judged at first.
    quality_budget_points : float
        Accuracy that freezing may cost, in percentage points, at least 0.
    warm_up : float
        Share of the progress before which nothing is frozen, from 0 to 1.

    Raises
    ------
    InvalidValueError
        A value breaks these rules.

    Examples
    --------
    >>> table = {"one_server": {1: (0.4, 0.2), 2: (0.25, 0.15)}, "many_servers": {2: (0.3, 0.2)}}
    >>> work = Elastic(iterations=100, widths=[1, 2], seconds_per_iteration=table, compute_shares=[0, 1])
    >>> work.levels, work.seconds(2, PlacementClass.MANY_SERVERS, 1)
    (2, 0.2)
    """

    iterations: int
    widths: tuple[int, ...]
    seconds_per_iteration: Mapping[PlacementClass, Mapping[int, tuple[float, ...]]] = field(hash=False)
    compute_shares: tuple[float, ...] = (0.0,)
    family: str = "unknown"
    quality_budget_points: float = 0.0
    warm_up: float = 0.2

    def __post_init__(self) -> None:
        object.__setattr__(self, "iterations", as_int(self.iterations, _SUBJECT, "iterations", 1))
        widths, shares = _widths(self.widths), _shares(self.compute_shares)
        object.__setattr__(self, "widths", widths)
        object.__setattr__(self, "compute_shares", shares)
        object.__setattr__(self, _TABLE, _table(self.seconds_per_iteration, widths, len(shares)))
        if not isinstance(self.family, str) or not self.family:
            raise InvalidValueError(_SUBJECT, "family", self.family, "must be a non-empty string")
        budget = as_finite(self.quality_budget_points, _SUBJECT, "quality_budget_points", 0.0, _MOST_POINTS)
        object.__setattr__(self, "quality_budget_points", budget)
        object.__setattr__(self, "warm_up", as_finite(self.warm_up, _SUBJECT, "warm_up", 0.0, 1.0))

    @property
    def levels(self) -> int:
        """Number of freeze levels, level 0 included."""
        return len(self.compute_shares)

    def warm_up_iterations(self, total: int) -> int:
        """Iterations of so many in all before which nothing is frozen, rounded up."""
        return int(-(Fraction(repr(self.warm_up)) * total // -1))

    def may_freeze(self, done: int, total: int) -> bool:
        """Whether the warm-up is over once so many of all iterations are done.

        Examples
        --------
        >>> work = Elastic(iterations=30, widths=[1], seconds_per_iteration={"one_server": {1: [1]}}, warm_up=0.1)
        >>> work.may_freeze(2, 30), work.may_freeze(3, 30)
        (False, True)
        """
        return done >= self.warm_up_iterations(total)

    def seconds(self, gpus: int, placement_class: PlacementClass, level: int = 0) -> float:
        """Effective seconds of one reference iteration.

        Parameters
        ----------
        gpus : int
            Width.
        placement_class : PlacementClass
            Class of the placement. Where it lacks the width, the figure of the other class is taken.
        level : int
            Freeze level.

        Raises
        ------
        InvalidValueError
            No such width or level.
        """
        table = self.seconds_per_iteration
        row = table[placement_class].get(gpus) if placement_class in table else None
        if row is None:
            row = next((rows[gpus] for rows in table.values() if gpus in rows), None)
        if row is None:
            rule = f"must be one of its widths, {', '.join(map(str, self.widths))}"
            raise InvalidValueError(_SUBJECT, "gpus", gpus, rule)
        if type(level) is not int or not 0 <= level < len(row):
            raise InvalidValueError(_SUBJECT, "level", level, f"must be a level, from 0 to {len(row) - 1}")
        return row[level]


def _widths(values: Sequence[int]) -> tuple[int, ...]:
    widths = tuple(as_int(gpus, _SUBJECT, f"widths[{i}]", 1) for i, gpus in enumerate(_listed(values, "widths")))
    if not widths or list(widths) != sorted(set(widths)):
        raise InvalidValueError(_SUBJECT, "widths", widths, "must be at least one width, ascending")
    return widths


def _shares(values: Sequence[float]) -> tuple[float, ...]:
    field_name = "compute_shares"
    listed = enumerate(_listed(values, field_name))
    shares = tuple(as_finite(share, _SUBJECT, f"{field_name}[{level}]", 0.0, 1.0) for level, share in listed)
    if not shares or shares[0] != 0.0:
        raise InvalidValueError(_SUBJECT, field_name, shares, "must begin with 0, nothing frozen")
    if list(shares) != sorted(shares):
        raise InvalidValueError(_SUBJECT, field_name, shares, "must not fall from level to level")
    if len(shares) > MOST_FREEZE_LEVELS:
        raise InvalidValueError(_SUBJECT, field_name, shares, f"must have at most {MOST_FREEZE_LEVELS} levels")
    return shares


def _listed(values: object, name: str) -> Iterable[object]:
    if isinstance(values, str | Mapping) or not isinstance(values, Iterable):
        raise InvalidValueError(_SUBJECT, name, values, "must be a sequence of numbers")
    return values


def _table(value: object, widths: Sequence[int], levels: int) -> _Checked:
    """Table in the order of the classes and of the widths."""
    if isinstance(value, _Checked) and _known_widths(value) == set(widths) and _levels_of(value) == levels:
        return value
    if not isinstance(value, Mapping):
        raise InvalidValueError(_SUBJECT, _TABLE, value, "must be a mapping of classes of placement")
    for name in value:
        if name not in set(PlacementClass):
            raise InvalidValueError(_SUBJECT, _TABLE, name, "is not a placement class")
    named = {where: value[where] for where in PlacementClass if where in value}
    table = _Checked({where: _by_width(rows, f"{_TABLE}[{where}]", widths, levels) for where, rows in named.items()})
    for gpus in widths:
        if gpus not in _known_widths(table):
            raise InvalidValueError(_SUBJECT, _TABLE, dict(table), f"must have a time for {gpus} GPUs")
    return table


def _known_widths(table: _Checked) -> set[int]:
    return {gpus for rows in table.values() for gpus in rows}


def _levels_of(table: _Checked) -> int:
    return next((len(row) for rows in table.values() for row in rows.values()), 0)


def _by_width(rows: object, name: str, widths: Sequence[int], levels: int) -> FrozenMap[int, tuple[float, ...]]:
    if not isinstance(rows, Mapping):
        raise InvalidValueError(_SUBJECT, name, rows, "must be a mapping of widths")
    for gpus in rows:
        if isinstance(gpus, bool) or gpus not in widths:
            raise InvalidValueError(_SUBJECT, name, gpus, f"is none of its widths {', '.join(map(str, widths))}")
    return FrozenMap({gpus: _by_level(rows[gpus], f"{name}[{gpus}]", levels) for gpus in widths if gpus in rows})


def _by_level(values: Sequence[float], name: str, levels: int) -> tuple[float, ...]:
    row = tuple(as_finite(value, _SUBJECT, f"{name}[{k}]") for k, value in enumerate(_listed(values, name)))
    if len(row) != levels:
        raise InvalidValueError(_SUBJECT, name, row, f"must have one entry for each of {levels} levels")
    for level, seconds in enumerate(row):
        if seconds <= 0:
            raise InvalidValueError(_SUBJECT, f"{name}[{level}]", seconds, "must be above 0")
        if level and seconds > row[level - 1]:
            rule = f"must be at most {row[level - 1]!r}, that of the level before"
            raise InvalidValueError(_SUBJECT, f"{name}[{level}]", seconds, rule)
    return row
