"""The formats of traces that can be read, each one entry of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from frostline.errors import FileError, UnknownNameError

__all__ = ["TRACE_FORMATS", "Layout", "TraceFormat", "lay_out", "recognise", "trace_format"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFormat:
    """A comma-separated format: which columns hold which fields.

    Parameters
    ----------
    name : str
        Name, as callers ask for it.
    origin : str
        Where such files come from.
    columns : mapping of str to tuple of str
        Accepted names of the column of each field, the usual one first. Fields are ``id``, ``submit``, ``gpus``,
        ``duration``, ``start``, ``wait``, ``end``, ``estimate``, ``user``, ``group``, ``name`` and ``status``.
    signature : frozenset of str
        Columns by which a header is recognised.
    timestamps : bool
        Whether submissions, starts and ends are dates and times instead of numbers.
    numbered : bool
        Whether jobs have no identifier, so that their row number is taken.
    arrays : bool
        Whether rows of one identifier are the tasks of an array job, so that each gets its number behind it.
    """

    name: str
    origin: str
    columns: Mapping[str, tuple[str, ...]]
    signature: frozenset[str]
    timestamps: bool = False
    numbered: bool = False
    arrays: bool = False


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


_FROSTLINE = TraceFormat(
    name="frostline",
    origin="frostline's own CSV",
    columns=MappingProxyType(
        {
            "id": ("id", "job_id", "jobid"),
            "submit": ("submit_s", "submit", "submit_time", "arrival_s", "release_s"),
            "gpus": ("gpus", "n_gpu", "num_gpu", "num_gpus", "gpu_num"),
            "duration": ("duration_s", "duration", "run_time", "runtime_s"),
            "start": ("start_s", "start", "start_time"),
            "wait": ("wait_s", "wait", "wait_time", "queue_s", "queue_time"),
            "end": ("end_s", "end", "end_time"),
            "estimate": (
                "estimate_s",
                "estimate",
                "wallclock_req",
                "wallclock_req_s",
                "walltime",
                "walltime_s",
                "requested_time",
                "requested_time_s",
            ),
            "user": ("user", "user_id"),
            "group": ("group", "vc", "virtual_cluster"),
            "name": ("name", "job_name"),
            "status": ("status", "state"),
        }
    ),
    signature=frozenset(),
)
_PHILLY = TraceFormat(
    name="philly",
    origin="Microsoft Philly 2017 as derived for Pollux: one row per job, naive local times, no identifiers",
    columns=MappingProxyType(
        {"submit": ("timestamp",), "duration": ("duration",), "gpus": ("num_gpus",), "group": ("cluster",)}
    ),
    signature=frozenset({"timestamp", "num_gpus"}),
    timestamps=True,
    numbered=True,
)
_ITP = TraceFormat(
    name="itp",
    origin="Microsoft ITP 2021, the traces of ElasticFlow",
    columns=MappingProxyType(
        {"id": ("job_id",), "submit": ("submission_time",), "duration": ("duration",), "gpus": ("num_gpu",)}
    ),
    signature=frozenset({"submission_time", "num_gpu"}),
)
_EAGLE = TraceFormat(
    name="eagle",
    origin=(
        "NREL Eagle 2019, a log of Slurm: naive local times, one row per task of an array job. A system of CPUs: "
        "processors stand for GPUs, and accounts are the groups"
    ),
    columns=MappingProxyType(
        {
            "id": ("job_id",),
            "submit": ("submit_time",),
            "gpus": ("processors_req",),
            "duration": ("run_time",),
            "start": ("start_time",),
            "end": ("end_time",),
            "estimate": ("wallclock_req",),
            "user": ("user",),
            "group": ("account",),
            "name": ("name",),
            "status": ("state",),
        }
    ),
    signature=frozenset({"processors_req", "wallclock_req"}),
    timestamps=True,
    arrays=True,
)

_ALL = (_FROSTLINE, _PHILLY, _ITP, _EAGLE)

TRACE_FORMATS: Mapping[str, TraceFormat] = MappingProxyType({fmt.name: fmt for fmt in _ALL})
"""The formats by name; a header that no signature fits is taken for the first."""


def trace_format(name: str) -> TraceFormat:
    """Format of a name.

    Examples
    --------
    >>> trace_format("itp").columns["submit"]
    ('submission_time',)
    """
    try:
        return TRACE_FORMATS[name]
    except KeyError:
        raise UnknownNameError("trace format", name, TRACE_FORMATS) from None


def recognise(header: Iterable[str]) -> TraceFormat:
    """Format whose signature a header fits.

    Examples
    --------
    >>> recognise(["job_id", "submission_time", "duration", "num_gpu"]).name
    'itp'
    """
    names = set(map(_plain, header))
    fitting = (fmt for fmt in TRACE_FORMATS.values() if fmt.signature and fmt.signature <= names)
    return next(fitting, _FROSTLINE)


def lay_out(fmt: TraceFormat, header: Sequence[str], path: Path | str) -> Layout:
    """Layout of a header.

    Raises
    ------
    FileError
        A column that the format needs is missing, or two columns hold the same field.

    Examples
    --------
    >>> lay_out(trace_format("frostline"), ["job_id", "submit", "gpus", "duration", "mood"], "t.csv").ignored
    ('mood',)
    """
    names = [_plain(column) for column in header]
    at: dict[str, int] = {}
    for field, accepted in fmt.columns.items():
        places = [i for i, name in enumerate(names) if name in accepted]
        if len(places) > 1:
            twice = " and ".join(repr(header[i]) for i in places)
            raise FileError(path, f"columns {twice} both hold the field {field}")
        if places:
            at[field] = places[0]
    _require(fmt, at, header, path)
    used = set(at.values())
    ignored = tuple(column for i, column in enumerate(header) if i not in used)
    return Layout(at=MappingProxyType(at), header=tuple(header), ignored=ignored)


def _require(fmt: TraceFormat, at: Mapping[str, int], header: Sequence[str], path: Path | str) -> None:
    needed = ["submit", "gpus"] if fmt.numbered else ["id", "submit", "gpus"]
    if "duration" not in at:
        needed += ["start", "end"] if "start" in at or "end" in at else ["duration"]
    missing = [field for field in needed if field not in at]
    if not missing:
        return
    wanted = "; ".join(f"no column {fmt.columns[field][0]!r}{_others(fmt.columns[field])}" for field in missing)
    raise FileError(path, f"{wanted}; format {fmt.name!r}, columns of the file: {', '.join(header)}")


def _others(accepted: Sequence[str]) -> str:
    return f" (or {', '.join(accepted[1:])})" if len(accepted) > 1 else ""


def _plain(column: str) -> str:
    return column.strip().casefold()
