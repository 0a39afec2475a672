"""What freezing truly does to a job's accuracy: known to a simulation, never to the scheduler."""

from __future__ import annotations

import dataclasses
import json
import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.freezing.penalty import MAX_POINTS, as_history
from frostline.problem.frozen import FrozenMap
from frostline.units import as_finite

__all__ = [
    "ExponentialLoss",
    "LossSurface",
    "MeasuredLoss",
    "PowerLoss",
    "TrainingCurve",
    "training_curve",
    "training_curves",
]


class LossSurface(Protocol):
    """Accuracy lost by freezing a share from some progress on to the end."""

    def points(self, share: float, start: float) -> float:
        """Percentage points lost: 0 at share 0 and at start 1, rising with the share, falling with the start."""
        ...


def _positive(surface: object, subject: str, names: Sequence[str], high: float) -> None:
    for name in names:
        value = as_finite(getattr(surface, name), subject, name, 0.0, high)
        if value == 0.0:
            raise InvalidValueError(subject, name, value, "must be above 0")
        object.__setattr__(surface, name, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExponentialLoss:
    """Loss ``share^a (A (e^(-c f) - e^(-c)) + B_0 (1 - f))`` from progress f on, the form that schedulers believe.

    Examples
    --------
    >>> round(ExponentialLoss(a=1, A=10, c=5, B_0=1).points(0.5, 0.2), 3)
    2.206
    """

    a: float
    A: float
    c: float
    B_0: float = 0.0

    def __post_init__(self) -> None:
        _positive(self, "exponential loss", ("a", "c"), 1e4)
        for name in ("A", "B_0"):
            object.__setattr__(self, name, as_finite(getattr(self, name), "exponential loss", name, 0.0, MAX_POINTS))

    def points(self, share: float, start: float) -> float:
        """Percentage points lost."""
        left = -self.A * math.exp(-self.c * start) * math.expm1(-self.c * (1.0 - start))
        return float(share**self.a * (left + self.B_0 * (1.0 - start)))


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerLoss:
    """Loss ``share^a · A ((1 + f/half)^(-p) - (1 + 1/half)^(-p))`` from progress f on: a heavier tail than a law's.

    Parameters
    ----------
    a, p : float
        Exponents of the share and of the progress, above 0.
    A : float
        Scale in percentage points, at least 0.
    half : float
        Progress by which the loss has begun to fall, above 0.

    Examples
    --------
    >>> round(PowerLoss(a=1, p=2, A=10, half=0.1).points(1, 0.4), 3)
    0.317
    """

    a: float
    A: float
    p: float
    half: float

    def __post_init__(self) -> None:
        _positive(self, "power loss", ("a", "p", "half"), 1e3)
        object.__setattr__(self, "A", as_finite(self.A, "power loss", "A", 0.0, MAX_POINTS))

    def points(self, share: float, start: float) -> float:
        """Percentage points lost."""
        fall = (1.0 + start / self.half) ** -self.p - (1.0 + 1.0 / self.half) ** -self.p
        return float(share**self.a * self.A * fall)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredLoss:
    """Losses measured on a grid of shares and starts, interpolated linearly; 0 at share 0 and at start 1.

    Parameters
    ----------
    shares, starts : iterable of float
        Rising; shares above 0 up to 1, starts from 0 on and below 1.
    table : iterable of iterables of float
        Percentage points lost: a row for each start, a column for each share; not falling with the share, not rising
        with the start.

    Raises
    ------
    InvalidValueError
        The grid does not rise, the table does not fit it, or a loss is on the wrong side of its neighbour.

    Examples
    --------
    >>> MeasuredLoss(shares=[0.5, 1], starts=[0, 0.5], table=[[2, 4], [1, 1]]).points(0.75, 0.25)
    2.0
    """

    shares: tuple[float, ...]
    starts: tuple[float, ...]
    table: tuple[tuple[float, ...], ...]
    _cells: tuple[tuple[float, ...], tuple[float, ...], tuple[tuple[float, ...], ...]] = field(
        init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        subject = "measured loss"
        shares = tuple(as_finite(share, subject, "shares", 0.0, 1.0) for share in self.shares)
        starts = tuple(as_finite(start, subject, "starts", 0.0, 1.0) for start in self.starts)
        table = tuple(tuple(as_finite(x, subject, "table", 0.0, MAX_POINTS) for x in row) for row in self.table)
        for name, value in (("shares", shares), ("starts", starts), ("table", table)):
            object.__setattr__(self, name, value)
        _check_grid((0.0, *shares), (*starts, 1.0))
        if [len(row) for row in table] != [len(shares)] * len(starts):
            raise InvalidValueError(subject, "table", table, "must have a row per start and a column per share")
        whole = (*((0.0, *row) for row in table), (0.0,) * (len(shares) + 1))
        _check_slopes(whole)
        object.__setattr__(self, "_cells", ((0.0, *shares), (*starts, 1.0), whole))

    def points(self, share: float, start: float) -> float:
        """Percentage points lost."""
        shares, starts, table = self._cells
        row, down = _cell(starts, start)
        column, right = _cell(shares, share)
        upper, lower = ((1 - right) * line[column] + right * line[column + 1] for line in table[row : row + 2])
        return (1 - down) * upper + down * lower


def _check_grid(shares: Sequence[float], starts: Sequence[float]) -> None:
    for name, grid in (("shares", shares), ("starts", starts)):
        if len(grid) < 2 or any(later <= earlier for earlier, later in pairwise(grid)):
            raise InvalidValueError(
                "measured loss", name, tuple(grid), "must rise, shares from above 0, starts to below 1"
            )
    if starts[0] != 0.0 or shares[-1] != 1.0:
        raise InvalidValueError("measured loss", "grid", (starts[0], shares[-1]), "must hold start 0 and share 1")


def _check_slopes(table: Sequence[Sequence[float]]) -> None:
    rising = all(left <= right for row in table for left, right in pairwise(row))
    if not rising or any(x < y for above, below in pairwise(table) for x, y in zip(above, below, strict=True)):
        raise InvalidValueError("measured loss", "table", table, "must rise with the share and fall with the start")


def _cell(grid: Sequence[float], value: float) -> tuple[int, float]:
    """Cell of a grid that a value lies in, and how far into it."""
    cell = min(max(bisect_right(grid, value) - 1, 0), len(grid) - 2)
    return cell, (value - grid[cell]) / (grid[cell + 1] - grid[cell])


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingCurve:
    """True accuracy debt of a job: what a simulation charges, whatever law the scheduler believes.

    Parameters
    ----------
    name : str
        Name of the curve.
    surface : LossSurface
        Loss of freezing from some progress on. A phase costs what starting at its beginning does above starting at
        its end.
    factor : float, default 1
        What the losses are multiplied by; 2 or 4 for jobs that a scheduler misjudges.
    noise_points, noise_share : float, default 0
        Standard deviation of a run's loss: ``noise_points + noise_share · loss``; none where nothing was frozen.
    source : mapping of str to str
        Where the figures come from.

    Examples
    --------
    >>> curve = TrainingCurve(name="steep", surface=ExponentialLoss(a=1, A=10, c=5), factor=2)
    >>> round(curve.debt_points([(0.2, 1, 0.5)]), 3), curve.realised_points([(0, 1, 0)], seed=1)
    (3.611, 0.0)
    """

    name: str
    surface: LossSurface
    factor: float = 1.0
    noise_points: float = 0.0
    noise_share: float = 0.0
    source: Mapping[str, str] = field(default_factory=lambda: FrozenMap({}))

    def __post_init__(self) -> None:
        for name, high in (("factor", 1e6), ("noise_points", 100.0), ("noise_share", 100.0)):
            value = as_finite(getattr(self, name), f"training curve {self.name!r}", name, 0.0, high)
            object.__setattr__(self, name, value)
        object.__setattr__(self, "source", FrozenMap(self.source))

    def debt_points(self, history: Iterable[tuple[float, float, float]]) -> float:
        """Expected loss of final accuracy after phases (start, end, share), in percentage points."""
        parts = (self._phase_points(*phase) for phase in as_history(history) if phase.share > 0.0)
        return self.factor * math.fsum(parts)

    def _phase_points(self, start: float, end: float, share: float) -> float:
        return self.surface.points(share, start) - self.surface.points(share, end)

    def realised_points(
        self, history: Iterable[tuple[float, float, float]], seed: int | np.random.SeedSequence
    ) -> float:
        """Loss of one run, noise included: the same for the same seed; exactly 0 where nothing was frozen."""
        phases = as_history(history)
        if not any(phase.share > 0.0 and phase.end > phase.start for phase in phases):
            return 0.0
        expected = self.debt_points(phases)
        spread = self.noise_points + self.noise_share * expected
        return expected + spread * float(np.random.default_rng(seed).standard_normal())

    def misjudged(self, factor: float) -> TrainingCurve:
        """Curve of a job to which freezing does ``factor`` times as much."""
        return dataclasses.replace(self, factor=self.factor * factor)


@cache
def training_curves() -> Mapping[str, TrainingCurve]:
    """Curves of measured tasks, by name; ``freezing/curves.json`` holds the figures and their sources.

    Examples
    --------
    >>> sorted(training_curves())
    ['cnn-digits', 'mlp-digits', 'mlp-mnist', 'transformer-digits', 'vit-fine-tuning']
    """
    data = json.loads(files("frostline.freezing").joinpath("curves.json").read_text("utf-8"))
    return FrozenMap({entry["name"]: _curve(entry) for entry in data["curves"]})


def training_curve(name: str) -> TrainingCurve:
    """Curve of a measured task.

    Raises
    ------
    UnknownNameError
        No such curve; a near miss is suggested.

    Examples
    --------
    >>> round(training_curve("mlp-mnist").debt_points([(0.4, 1, 1)]), 2)
    0.69
    """
    try:
        return training_curves()[name]
    except KeyError:
        raise UnknownNameError("training curve", name, training_curves()) from None


_FORMS: Mapping[str, Any] = {"exponential": ExponentialLoss, "power": PowerLoss, "measured": MeasuredLoss}


def _curve(entry: Mapping[str, Any]) -> TrainingCurve:
    figures = {name: value for name, value in entry.items() if name not in ("form", "surface")}
    return TrainingCurve(surface=_FORMS[entry["form"]](**entry["surface"]), **figures)
