"""A trace that has been read: its jobs, and an account of every row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from frostline.problem.frozen import FrozenMap
from frostline.problem.job import Job

__all__ = ["ReadReport", "Trace"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadReport:
    """What became of the rows of a file.

    Parameters
    ----------
    path, format, mode : str
        The file, the format it was read as, and ``strict`` or ``repair``.
    rows_read, rows_kept : int
        Rows under the header, and those that became jobs; the others are counted in ``dropped``.
    dropped : mapping of str to int
        Rows set aside, by the first rule that they broke for good.
    repaired : mapping of str to int
        How often a rule was mended in the rows kept; a row can be mended more than once. Tasks of array jobs, which
        are no fault, are counted here in both modes.
    coverage : mapping of str to float
        Share of rows in which a column is filled, for every column of the file.
    coverage_by_half : mapping of str to (float, float)
        The same for the first and the second half of the rows, in the order of the file.
    ignored_columns : tuple of str
        Columns of which nothing was taken.
    left_censored : tuple of str
        Jobs submitted before time zero of the file, as far as it counts from a zero of its own.
    origin_s : float
        Time in the file, in seconds, that became time 0; for timestamps, seconds since 1970.
    warnings : tuple of str
        Sentences on what deserves a second look.
    """

    path: str
    format: str
    mode: str
    rows_read: int
    rows_kept: int
    dropped: Mapping[str, int]
    repaired: Mapping[str, int]
    coverage: Mapping[str, float]
    coverage_by_half: Mapping[str, tuple[float, float]]
    ignored_columns: tuple[str, ...]
    left_censored: tuple[str, ...]
    origin_s: float
    warnings: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """The report as plain data for JSON, under the names of its fields."""
        return {
            "path": self.path,
            "format": self.format,
            "mode": self.mode,
            "rows_read": self.rows_read,
            "rows_kept": self.rows_kept,
            "dropped": dict(self.dropped),
            "repaired": dict(self.repaired),
            "coverage": dict(self.coverage),
            "coverage_by_half": {column: list(halves) for column, halves in self.coverage_by_half.items()},
            "ignored_columns": list(self.ignored_columns),
            "left_censored": len(self.left_censored),
            "origin_s": self.origin_s,
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Jobs of a file, sorted by release time and then by identifier, and the report of the reading.

    Parameters
    ----------
    jobs : tuple of Job
        The jobs.
    report : ReadReport
        The account of all rows.
    start_s : mapping of str to float
        When the job of an identifier started, in seconds on the clock of the releases; only jobs whose row tells it.
    """

    jobs: tuple[Job, ...]
    report: ReadReport
    start_s: Mapping[str, float] = field(default_factory=lambda: FrozenMap({}))
