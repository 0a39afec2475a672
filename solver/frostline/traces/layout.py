"""What a format of traces is: how its rows are found, and which columns hold which fields."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from frostline.errors import FileError
from frostline.traces.table import Table, csv_table

__all__ = ["Computed", "Layout", "TraceFormat", "lay_out", "plain"]


class Computed(NamedTuple):
    """How a field is computed where it takes more than to read the cell of its column as it is everywhere.

    Parameters
    ----------
    fields : tuple of str
        Fields whose cells it takes, the one that faults are told of first; empty text stands for an absent column.
    value : callable
        Function of these cells, and of the unit of times or, for GPUs, of whether fractions are rounded up by instance.
    """

    fields: tuple[str, ...]
    value: Callable[..., Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFormat:
    """A format: which columns hold which fields, and what else there is to know of its rows.

    Parameters
    ----------
    name : str
        Name, as callers ask for it.
    origin : str
        Where such files come from.
    columns : mapping of str to tuple of str
        Accepted names of the column of each field, the usual one first. Fields are ``id``, ``submit``, ``gpus``,
        ``duration``, ``start``, ``wait``, ``end``, ``estimate``, ``user``, ``group``, ``name`` and ``status``, and
        those that ``computed`` takes.
    signature : frozenset of str
        Columns by which a header is recognised.
    begins : callable or None
        Whether the first line of a file shows that it is one of this format; for files that are no CSV with a header.
    table : callable
        From the lines of a file and its path to its header and rows.
    time_unit : {"s", "ms", "min"}
        Unit of times that are numbers, where the caller names none.
    timestamps : bool
        Whether submissions, starts and ends are dates and times instead of numbers.
    numbered : bool
        Whether jobs have no identifier, so that their row number is taken.
    same_id : {"refused", "numbered", "merged"}
        What rows of one identifier are: a fault, the tasks of an array job, each of which gets its number behind it, or
        the tasks of one job, which run together.
    preferred : bool
        Whether the first accepted name counts where a file has several columns for a field; else that is an error.
    part : (str, pattern) or None
        Field, and the cells of it that mark a row as a part of a job that has a row of its own.
    ruled_out : mapping of str to mapping of str to str
        For a field, the rule that a row breaks by the first word of its cell.
    computed : mapping of str to Computed
        Fields that are more than the cell of a column.
    """

    name: str
    origin: str
    columns: Mapping[str, tuple[str, ...]]
    signature: frozenset[str] = frozenset()
    begins: Callable[[str], bool] | None = None
    table: Callable[[Iterable[str], Path | str], Table] = csv_table
    time_unit: Literal["s", "ms", "min"] = "s"
    timestamps: bool = False
    numbered: bool = False
    same_id: Literal["refused", "numbered", "merged"] = "refused"
    preferred: bool = False
    part: tuple[str, re.Pattern[str]] | None = None
    ruled_out: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    computed: Mapping[str, Computed] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where a header puts the fields of a format.

    Parameters
    ----------
    at : mapping of str to int
        Index of the column of each field that the file has.
    header : tuple of str
        All columns as the file spells them.
    ignored : tuple of str
        Columns that hold no field.
    """

    at: Mapping[str, int]
    header: tuple[str, ...]
    ignored: tuple[str, ...]


def lay_out(fmt: TraceFormat, header: Sequence[str], path: Path | str) -> Layout:
    """Layout of a header.

    Raises
    ------
    FileError
        A column that the format needs is missing, or two columns hold the same field.

    Examples
    --------
    >>> columns = {"id": ("job",), "submit": ("at",), "gpus": ("gpus",), "duration": ("time",)}
    >>> fmt = TraceFormat(name="toy", origin="nowhere", columns=columns)
    >>> lay_out(fmt, ["job", "at", "gpus", "time", "mood"], "t.csv").ignored
    ('mood',)
    """
    names = [plain(column) for column in header]
    at: dict[str, int] = {}
    for key, accepted in fmt.columns.items():
        places = [i for name in accepted for i, other in enumerate(names) if other == name]
        if len(places) > 1 and not fmt.preferred:
            twice = " and ".join(repr(header[i]) for i in sorted(places))
            raise FileError(path, f"columns {twice} both hold the field {key}")
        if places:
            at[key] = places[0]
    _require(fmt, at, header, path)
    used = set(at.values())
    ignored = tuple(column for i, column in enumerate(header) if i not in used)
    return Layout(at=MappingProxyType(at), header=tuple(header), ignored=ignored)


def _require(fmt: TraceFormat, at: Mapping[str, int], header: Sequence[str], path: Path | str) -> None:
    needed = ["submit", "gpus"] if fmt.numbered else ["id", "submit", "gpus"]
    if "duration" not in at:
        ends = "start" in at or "end" in at or "duration" not in fmt.columns
        needed += ["start", "end"] if ends else ["duration"]
    missing = [key for key in needed if key not in at]
    if not missing:
        return
    wanted = "; ".join(f"no column {fmt.columns[key][0]!r}{_others(fmt.columns[key])}" for key in missing)
    raise FileError(path, f"{wanted}; format {fmt.name!r}, columns of the file: {', '.join(header)}")


def _others(accepted: Sequence[str]) -> str:
    return f" (or {', '.join(accepted[1:])})" if len(accepted) > 1 else ""


def plain(column: str) -> str:
    """Name of a column as formats spell it.

    Examples
    --------
    >>> plain(" JobID")
    'jobid'
    """
    return column.strip().casefold()
