"""Measured step times of data-parallel training, in the form that Pollux gave them and Titan took over.

``placements.csv`` has a column ``placement``, the replicas of each server as one digit, and ``scalability.csv`` the
columns ``num_nodes`` and ``num_replicas`` instead, for more servers. Both have ``local_bsz``, samples per replica, and
``step_time`` and ``sync_time`` in seconds: a step, and the part of it in which replicas wait for gradients.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from frostline.errors import FileError
from frostline.problem.job import PlacementClass
from frostline.traces.table import open_table
from frostline.traces.workload import Floats

__all__ = ["MeasuredSteps", "StepCurve", "read_columns", "read_steps", "table_path"]

_GAMMAS = np.arange(10, 101) / 10
_STEP = ("local_bsz", "step_time", "sync_time")
_Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class StepCurve:
    """Step times on one number of servers and replicas, by samples per replica.

    Parameters
    ----------
    samples : array of float, shape (points,)
        Samples per replica, ascending.
    compute_s, step_s : array of float, shape (points,)
        Seconds of computing, and of the whole step.
    """

    samples: Floats
    compute_s: Floats
    step_s: Floats

    def at(self, samples: int) -> tuple[float, float] | None:
        """Seconds of computing and of the step, interpolated linearly; None outside the measurements.

        Examples
        --------
        >>> StepCurve(np.array([4.0, 8.0]), np.array([0.1, 0.2]), np.array([0.2, 0.3])).at(6)
        (0.15..., 0.25)
        """
        if not self.samples[0] <= samples <= self.samples[-1]:
            return None
        compute, step = (float(np.interp(samples, self.samples, part)) for part in (self.compute_s, self.step_s))
        return compute, step


@dataclass(frozen=True, slots=True)
class MeasuredSteps:
    """Step times of one application; :func:`read_steps` reads them.

    Parameters
    ----------
    curves : mapping of (int, int) to StepCurve
        By servers and replicas, mean over the placements of these.
    """

    curves: Mapping[_Place, StepCurve]

    @property
    def samples(self) -> tuple[int, int]:
        """Least and most samples per replica that were measured."""
        return (
            int(min(curve.samples[0] for curve in self.curves.values())),
            int(max(curve.samples[-1] for curve in self.curves.values())),
        )

    def curve(self, gpus: int, where: PlacementClass) -> StepCurve | None:
        """Curve of a width in a class of placement: on many servers that of the fewest measured, two at least."""
        if where is PlacementClass.ONE_SERVER:
            return self.curves.get((1, gpus))
        servers = [m for m, replicas in self.curves if m > 1 and replicas == gpus]
        return self.curves[min(servers), gpus] if servers else None

    def gamma(self) -> tuple[float, float]:
        """Overlap γ of computing and exchanging, from 1 to 10, and the error that is left.

        Of each placement one exchange time is taken to hold for all batches, in ``T = (C^γ + N^γ)^(1/γ)``: the median
        of those that its batches imply. γ minimises the mean square of ``log`` of fitted over measured T and the term
        ``1e-3 (γ - 1)²`` of the fit of Pollux; the error is the root of the former.

        References
        ----------
        Qiao et al., *Pollux*, OSDI 2021, section 3.2 and the fit of its public code.
        """
        shared = [curve for (_, replicas), curve in sorted(self.curves.items()) if replicas > 1]
        if not shared:
            return 1.0, 0.0
        errors = [math.fsum(float(np.sum(_misfit(curve, gamma) ** 2)) for curve in shared) for gamma in _GAMMAS]
        mean = np.array(errors) / sum(curve.samples.size for curve in shared)
        best = int(np.argmin(mean + 1e-3 * (_GAMMAS - 1) ** 2))
        return float(_GAMMAS[best]), math.sqrt(mean[best])


def _misfit(curve: StepCurve, gamma: float) -> Floats:
    """Logarithm of fitted over measured step times."""
    compute, step = curve.compute_s, curve.step_s
    exchange = np.median((1 - (compute / step) ** gamma) ** (1 / gamma) * step)
    longest = np.maximum(compute, exchange)
    fitted = longest * ((compute / longest) ** gamma + (exchange / longest) ** gamma) ** (1 / gamma)
    ratio: Floats = np.log(fitted / step)
    return ratio


def table_path(folder: Path | str, name: str) -> Path:
    """Path of a table ``NAME.csv`` or ``NAME.csv.gz`` of a folder.

    Raises
    ------
    FileError
        Neither is there.
    """
    for ending in (".csv", ".csv.gz"):
        path = Path(folder) / f"{name}{ending}"
        if path.is_file():
            return path
    raise FileError(Path(folder) / f"{name}.csv", "is missing, and so is its .gz")


def read_steps(placements: Path | str, scalability: Path | str | None = None) -> MeasuredSteps:
    """Step times of the tables of one application.

    Parameters
    ----------
    placements, scalability : Path or str
        The tables, plain or gzipped; the second one is optional.

    Raises
    ------
    FileError
        A table cannot be read, lacks a column, holds a value that is none, a step that is shorter than its exchange, or
        one placement and batch twice.
    """
    points: dict[_Place, dict[int, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    for path, columns, place in ((placements, ("placement",), _placed), (scalability, _COUNTS, _counted)):
        if path is not None:
            for where, samples, point in _steps(path, columns, place):
                points[where][samples].append(point)
    return MeasuredSteps({where: _curve(points[where]) for where in sorted(points)})


def _curve(points: Mapping[int, list[tuple[float, float]]]) -> StepCurve:
    samples = sorted(points)
    means = np.array([np.mean(points[count], axis=0) for count in samples])
    return StepCurve(np.array(samples, np.float64), means[:, 0], means[:, 1])


_COUNTS = ("num_nodes", "num_replicas")


def _steps(
    path: Path | str, columns: tuple[str, ...], place: Callable[[list[str]], _Place]
) -> Iterator[tuple[_Place, int, tuple[float, float]]]:
    """Servers and replicas, samples per replica, and seconds of computing and of the step, row by row."""
    seen = set()
    for line, cells in read_columns(path, (*columns, *_STEP)):
        count = len(columns)
        key = tuple(cells[: count + 1])
        if key in seen:
            raise FileError(path, f"line {line}: repeats {', '.join(key)}")
        seen.add(key)
        try:
            where, samples = place(cells), _whole(cells[count], "local_bsz")
            step, exchange = _number(cells[count + 1], "step_time"), _number(cells[count + 2], "sync_time")
            if step == 0:
                raise ValueError(f"step_time: {cells[count + 1]!r} must be above 0")
            if exchange >= step:
                raise ValueError(f"sync_time: {cells[count + 2]!r} must be below step_time, {cells[count + 1]}")
        except ValueError as error:
            raise FileError(path, f"line {line}: {error}") from None
        yield where, samples, (step - exchange, step)


def _placed(cells: list[str]) -> _Place:
    text = cells[0]
    if not text or not set(text) <= set("123456789"):
        raise ValueError(f"placement: {text!r} must be one digit above 0 per server")
    return len(text), sum(map(int, text))


def _counted(cells: list[str]) -> _Place:
    servers, replicas = _whole(cells[0], "num_nodes"), _whole(cells[1], "num_replicas")
    if replicas < servers:
        raise ValueError(f"num_replicas: {cells[1]!r} must be at least num_nodes, {servers}")
    return servers, replicas


def _whole(text: str, name: str) -> int:
    value = _number(text, name)
    if value < 1 or value != int(value):
        raise ValueError(f"{name}: {text!r} must be a whole number above 0")
    return int(value)


def _number(text: str, name: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < 1e9 or "_" in text or not text.isascii():
        raise ValueError(f"{name}: {text!r} must be a number from 0 to below 1e9")
    return value


def read_columns(path: Path | str, columns: tuple[str, ...]) -> Iterator[tuple[int, list[str]]]:
    """Line and cells of some columns, row by row; other columns are passed over.

    Raises
    ------
    FileError
        The file cannot be read, lacks one of the columns or holds no row, or a row is short.
    """
    with open_table(path) as table:
        header = [name.strip() for name in table.header]
        for name in columns:
            if header.count(name) != 1:
                raise FileError(path, f"must have one column {name!r}; it has {', '.join(header)}")
        at = [header.index(name) for name in columns]
        line = 0
        for line, cells in table.rows:
            if len(cells) != len(header):
                raise FileError(path, f"line {line}: has {len(cells)} cells where the header has {len(header)}")
            yield line, [cells[i].strip() for i in at]
        if not line:
            raise FileError(path, "holds no row")
