"""Writing a trace as frostline's own CSV."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from frostline.errors import InvalidValueError
from frostline.problem.documents import write_text
from frostline.problem.job import Job
from frostline.traces.cells import LATEST_S, LONGEST_S
from frostline.traces.table import VERSION_LINE, text_fault
from frostline.traces.workload import known_duration_s

__all__ = ["TRACE_COLUMNS", "write_trace"]

TRACE_COLUMNS = ("id", "submit_s", "gpus", "duration_s", "user", "group", "name", "status")
"""Columns of frostline's own traces; ``estimate_s`` follows them where some job has an estimate."""

_SPECIAL = frozenset(',"\r\n')


def write_trace(path: Path | str, jobs: Iterable[Job]) -> None:
    """Write jobs of known duration as CSV, in the given order: the whole file or nothing, and always the same bytes.

    ``read_trace(path, rebase=False)`` gives the jobs back, but for their locality, which is chosen at reading.

    Parameters
    ----------
    path : Path or str
        A name that ends in ``.csv`` or ``.csv.gz``.
    jobs : iterable of Job
        At least one job.

    Raises
    ------
    InvalidValueError
        Something that the file could not give back: no job, an identifier used twice or with blanks around it, a
        weight other than 1, work that is not ``Fixed``, a text with NUL or lone surrogates, a time out of range.
    FileError
        The name ends otherwise, or the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from frostline.problem.job import Fixed
    >>> path = Path(tempfile.mkdtemp()) / "trace.csv"
    >>> write_trace(path, [Job(id="a", release_s=0.5, work=Fixed(duration_s=60), gpus=8, user="ann")])
    >>> print(path.read_text(encoding="utf-8"), end="")
    # frostline/trace version=1
    id,submit_s,gpus,duration_s,user,group,name,status
    a,0.5,8,60,ann,,,
    """
    jobs = tuple(jobs)
    _check(jobs)
    estimates = any(job.estimate_s is not None for job in jobs)
    header = ",".join([*TRACE_COLUMNS, "estimate_s"] if estimates else TRACE_COLUMNS)
    lines = [VERSION_LINE, header, *map(_row_with_estimate if estimates else _row, jobs)]
    write_text(path, "\n".join(lines) + "\n", (".csv", ".csv.gz"))


def _check(jobs: Sequence[Job]) -> None:
    if not jobs:
        raise InvalidValueError("trace", "jobs", 0, "must be at least 1")
    seen: set[str] = set()
    for job in jobs:
        if job.id in seen:
            raise InvalidValueError("trace", "jobs", job.id, "is the id of two jobs")
        seen.add(job.id)
        subject = f"job {job.id!r}"
        if job.id.strip() != job.id:
            raise InvalidValueError(subject, "id", job.id, "must not begin or end with a blank")
        if job.weight != 1.0:
            raise InvalidValueError(subject, "weight", job.weight, "must be 1, for a trace has no weights")
        if job.estimate_s is not None and job.estimate_s >= LONGEST_S:
            raise InvalidValueError(subject, "estimate_s", job.estimate_s, f"must be below {LONGEST_S:g} in a trace")
        if not -LATEST_S < job.release_s < LATEST_S:
            raise InvalidValueError(subject, "release_s", job.release_s, f"must lie within ±{LATEST_S:g} in a trace")
        if text_fault(job.id + job.user + job.group + job.name + job.status):
            raise InvalidValueError(subject, "text", (job.user, job.group, job.name, job.status), "must be plain text")


def _row(job: Job) -> str:
    numbers = f"{_number(job.release_s)},{job.gpus},{_number(known_duration_s(job))}"
    texts = ",".join(map(_quoted, (job.user, job.group, job.name, job.status)))
    return f"{_quoted(job.id)},{numbers},{texts}"


def _row_with_estimate(job: Job) -> str:
    return f"{_row(job)},{'' if job.estimate_s is None else _number(job.estimate_s)}"


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)


def _quoted(text: str) -> str:
    """Cell of a text; ``csv.writer`` leaves a lone carriage return bare on some versions of Python."""
    if _SPECIAL.isdisjoint(text):
        return text
    return '"' + text.replace('"', '""') + '"'
