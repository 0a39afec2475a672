"""Reading a trace: every row is kept, mended or set aside by a named rule, and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from itertools import chain, pairwise
from pathlib import Path
from typing import Literal
from zoneinfo import ZoneInfo

from frostline.errors import FileError, InvalidValueError, TraceError, UnknownNameError
from frostline.problem.frozen import FrozenMap
from frostline.problem.job import Fixed, Job, Locality
from frostline.traces.cells import MISSING, TIME_UNITS
from frostline.traces.formats import format_of_line, recognise, trace_format
from frostline.traces.layout import Layout, TraceFormat, lay_out
from frostline.traces.rows import Record, RowReader
from frostline.traces.rules import Fault
from frostline.traces.table import Table, csv_table, first_lines, open_text
from frostline.traces.trace import ReadReport, Trace
from frostline.traces.workload import in_order
from frostline.units import as_int

__all__ = ["read_trace"]

_MODES = ("strict", "repair")
_DUPLICATES = ("keep", "drop")
_FRACTIONS = ("ceil_total", "ceil_per_instance")
# A column whose two halves differ by more than this share of their rows is filled in only part of the file.
_UNEVEN = 0.5


def read_trace(
    path: Path | str,
    *,
    format: str = "auto",  # noqa: A002
    mode: Literal["strict", "repair"] = "strict",
    time_unit: Literal["s", "ms", "min"] | None = None,
    locality: Locality | str = Locality.ANY,
    limit: int | None = None,
    rebase: bool = True,
    duplicates: Literal["keep", "drop"] = "keep",
    zone: str | None = None,
    fractions: Literal["ceil_total", "ceil_per_instance"] = "ceil_total",
) -> Trace:
    """Jobs of a trace file.

    A row that asks for no GPU is a fault, and ``repair`` sets it aside as ``cpu_only``, whatever else is wrong with it.
    Identifiers are text and never numbers. In a format of array jobs, the tasks that share an identifier get ``_1``,
    ``_2``, … behind it in the order of the rows kept, in both modes, and are counted as ``array_task``; in one of gangs
    they are one job, and all but the first count as dropped ``merged_task``. Starts, waits and estimates are extra:
    ``repair`` forgets one that is wrong and keeps the row. ``docs/traces.md`` tells what each format takes.

    Parameters
    ----------
    path : Path or str
        The file, plain or gzipped.
    format : str
        Name of a format, see ``TRACE_FORMATS``, or ``"auto"`` to go by the first line.
    mode : {"strict", "repair"}
        Whether a fault is an error, or its row is mended or dropped by a rule of ``RULES`` and counted.
    time_unit : {"s", "ms", "min"}, optional
        Unit of submissions, starts, waits, ends, durations and estimates that are numbers; by default the format's own.
    locality : Locality or str
        Locality of all jobs.
    limit : int, optional
        Number of rows to read, from the first of the file.
    rebase : bool
        Whether the first submission becomes time 0.
    duplicates : {"keep", "drop"}
        Whether a row equal to an earlier one, in every cell, is another job or is dropped as ``duplicate_row``.
    zone : str, optional
        Zone of timestamps without offset, such as ``"America/Los_Angeles"``. Without it they are taken as the hands of
        a clock that is never put back or forward, which the report warns of.
    fractions : {"ceil_total", "ceil_per_instance"}
        Whether ``repair`` rounds up the GPUs of all instances of a task together, or those of each.

    Returns
    -------
    Trace
        The jobs by release time, when each started as far as the file tells, and the account of all rows.

    Raises
    ------
    TraceError
        In strict mode, rows with faults; all of them are in ``faults``.
    FileError
        In both modes, a file that is missing, empty, damaged or without a column it needs, holds no job to keep, or
        has other times than the unit or the zone are for.
    UnknownNameError
        An unknown format, mode, unit, locality or zone.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "trace.csv"
    >>> _ = path.write_text("id,submit,n_gpu,duration\\na,5,8,60\\nb,9,0.5,60\\nc,9,1,-1\\n", encoding="utf-8")
    >>> trace = read_trace(path, mode="repair")
    >>> [(job.id, job.release_s, job.gpus) for job in trace.jobs]
    [('a', 0.0, 8), ('b', 4.0, 1)]
    >>> trace.report.dropped, trace.report.repaired
    ({'negative_duration': 1}, {'fractional_gpus': 1})
    """
    _known("mode", mode, _MODES)
    _known("time unit", time_unit or "s", TIME_UNITS)
    _known("treatment of duplicates", duplicates, _DUPLICATES)
    _known("treatment of fractions", fractions, _FRACTIONS)
    _known("locality", locality, Locality)
    rows_at_most = None if limit is None else as_int(limit, "trace", "limit", 1)
    clock = None if zone is None else _zone(zone)
    named = None if format == "auto" else trace_format(format)
    with open_text(path) as text:
        fmt, table = _table(named, text, path)
        layout = lay_out(fmt, table.header, path)
        unit = time_unit or fmt.time_unit
        _check_unit(layout, unit, path)
        if zone is not None:
            _check_zone(fmt, layout, path)
        intake = _Intake(layout, strict=mode == "strict", unique=duplicates == "drop")
        reader = RowReader(fmt, layout, TIME_UNITS[unit], clock, by_instance=fractions == "ceil_per_instance")
        intake.take(table, reader, rows_at_most)
    intake.settle_ids(fmt)
    intake.require_jobs(path)
    origin_s = min(record.submit_s for record in intake.records) if rebase else 0.0
    jobs = in_order(_jobs(intake.records, origin_s, Locality(locality)))
    report = _report(path, fmt, mode, intake, origin_s, reader.local_times)
    return Trace(jobs=jobs, report=report, start_s=_starts(jobs, intake.records, origin_s))


def _table(named: TraceFormat | None, text: Iterator[str], path: Path | str) -> tuple[TraceFormat, Table]:
    """Format and table of a file; where no format is named, the first line that is not blank tells it."""
    head = first_lines(text)
    fmt = named or format_of_line("".join(head).lstrip())
    if fmt is not None:
        return fmt, fmt.table(chain(head, text), path)
    table = csv_table(chain(head, text), path)
    return recognise(table.header), table


@dataclass(slots=True)
class _Intake:
    """What has been taken in of a file: records to keep, faults, and counts."""

    layout: Layout
    strict: bool
    unique: bool
    rows: int = 0
    records: list[Record] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    filled: list[bytearray] = field(default_factory=list)
    unread: set[str] = field(default_factory=set)

    def take(self, table: Table, reader: RowReader, limit: int | None) -> None:
        """Read the rows of a table, at most ``limit`` of them."""
        self.filled = [bytearray() for _ in table.header]
        seen: set[tuple[str, ...]] = set()
        for line, row in table.rows:
            self.rows += 1
            for column, cell in zip(self.filled, row, strict=False):
                column.append(cell not in MISSING)
            if self.unique and (key := tuple(row)) in seen:
                self.dropped["duplicate_row"] += 1
            elif reader.is_part(row):
                self.dropped["job_part"] += 1
            else:
                if self.unique:
                    seen.add(key)
                self._sort_out(reader.read(self.rows, line, row), reader.faults, reader.identifier(row))
            if self.rows == limit:
                break

    def _sort_out(self, record: Record | None, faults: list[Fault], job: str) -> None:
        if not faults and record is not None:
            self.records.append(record)
        elif self.strict:
            self.faults += faults
        elif any(fault.rule == "cpu_only" for fault in faults):
            self.dropped["cpu_only"] += 1
        elif record is not None:
            self.records.append(record)
        else:
            self.dropped[next(fault.rule for fault in faults if not fault.fixable)] += 1
            self.unread.add(job)

    def settle_ids(self, fmt: TraceFormat) -> None:
        """Number, merge or set aside the records that share an identifier."""
        if fmt.same_id == "numbered":
            self._number_tasks()
        elif fmt.same_id == "merged":
            self._merge_tasks()
        if not fmt.numbered:
            self._set_repeats_aside()

    def _number_tasks(self) -> None:
        """Give the records that share an identifier their numbers behind it."""
        sizes = Counter(record.id for record in self.records)
        place: Counter[str] = Counter()
        for i, record in enumerate(self.records):
            if sizes[record.id] > 1:
                place[record.id] += 1
                name = f"{record.id}_{place[record.id]}"
                self.records[i] = record._replace(id=name, repairs=(*record.repairs, "array_task"))

    def _merge_tasks(self) -> None:
        """Make one record of those that share an identifier, unless some task of theirs could not be read."""
        jobs: dict[str, list[Record]] = {}
        for record in self.records:
            jobs.setdefault(record.id, []).append(record)
        for job in self.unread & jobs.keys():
            self.dropped["incomplete_job"] += len(jobs.pop(job))
        self.dropped["merged_task"] += sum(len(tasks) - 1 for tasks in jobs.values())
        self.dropped = +self.dropped
        self.records = [tasks[0] if len(tasks) == 1 else _gang(tasks) for tasks in jobs.values()]

    def _set_repeats_aside(self) -> None:
        """Set aside the records whose identifier belongs to another one too."""
        whole = Counter(record.id for record in self.records if "id_blanks" not in record.repairs)
        stripped = Counter(record.id for record in self.records if "id_blanks" in record.repairs)
        if len(whole) == len(self.records):
            return
        lines: dict[str, list[int]] = {}
        kept: list[Record] = []
        for record in self.records:
            if "id_blanks" in record.repairs:
                rule = "id_blanks" if whole[record.id] + stripped[record.id] > 1 else ""
            else:
                rule = "repeated_id" if whole[record.id] > 1 else ""
            if not rule:
                kept.append(record)
                continue
            self.dropped[rule] += 1
            lines.setdefault(record.id, []).append(record.line)
        self.records = kept
        if self.strict:
            self.faults += _repeats(lines, self.layout)

    def require_jobs(self, path: Path | str) -> None:
        """Raise the faults of strict mode, or that nothing is left."""
        if self.faults:
            raise TraceError(path, map(str, sorted(self.faults, key=lambda fault: fault.line)))
        if not self.rows:
            raise FileError(path, "holds no jobs: there is no row under the header")
        if not self.records:
            why = ", ".join(f"{rule}: {count}" for rule, count in sorted(self.dropped.items()))
            raise FileError(path, f"holds no job that can be kept: {self.rows} rows, {why}")


def _gang(tasks: Sequence[Record]) -> Record:
    """Record of a job whose tasks run together, from the first submission to the last end."""
    submit_s = min(task.submit_s for task in tasks)
    end_s = max(task.submit_s + task.duration_s for task in tasks)
    return tasks[0]._replace(
        submit_s=submit_s,
        gpus=sum(task.gpus for task in tasks),
        duration_s=round(end_s - submit_s, 6),
        repairs=tuple(rule for task in tasks for rule in task.repairs),
        start_s=min((task.start_s for task in tasks if task.start_s is not None), default=None),
    )


def _repeats(lines: dict[str, list[int]], layout: Layout) -> Iterator[Fault]:
    column = layout.header[layout.at["id"]]
    for job, where in lines.items():
        for line in where:
            others = ", ".join(str(other) for other in where if other != line)
            yield Fault(line, column, job, "repeated_id", note=f"; it is also on line {others}")


def _jobs(records: Iterable[Record], origin_s: float, locality: Locality) -> Iterator[Job]:
    for _, job, submit_s, gpus, duration_s, (user, group, name, status), _, _, estimate_s in records:
        yield Job(
            id=job,
            release_s=_rebased(submit_s, origin_s),
            work=Fixed(duration_s=duration_s),
            gpus=gpus,
            user=user,
            group=group,
            name=name,
            status=status,
            locality=locality,
            estimate_s=estimate_s,
        )


def _starts(jobs: Iterable[Job], records: Iterable[Record], origin_s: float) -> FrozenMap[str, float]:
    told = {record.id: record.start_s for record in records if record.start_s is not None}
    return FrozenMap({job.id: _rebased(told[job.id], origin_s) for job in jobs if job.id in told} if told else {})


def _rebased(time_s: float, origin_s: float) -> float:
    return round(time_s - origin_s, 6) if origin_s else time_s


def _report(
    path: Path | str, fmt: TraceFormat, mode: str, intake: _Intake, origin_s: float, local_times: bool
) -> ReadReport:
    repaired = Counter(rule for record in intake.records for rule in record.repairs)
    filled = {column: flags for column, flags in zip(intake.layout.header, intake.filled, strict=True) if flags}
    halves = {column: _halves(flags) for column, flags in filled.items()}
    censored = () if fmt.timestamps else tuple(record.id for record in intake.records if record.submit_s < 0)
    return ReadReport(
        path=str(path),
        format=fmt.name,
        mode=mode,
        rows_read=intake.rows,
        rows_kept=len(intake.records),
        dropped=dict(sorted(intake.dropped.items())),
        repaired=dict(sorted(repaired.items())),
        coverage={column: flags.count(1) / len(flags) for column, flags in filled.items()},
        coverage_by_half=halves,
        ignored_columns=intake.layout.ignored,
        left_censored=censored,
        origin_s=origin_s,
        warnings=tuple(_warnings(fmt, intake, local_times, censored, halves)),
    )


def _halves(filled: bytearray) -> tuple[float, float]:
    middle = len(filled) // 2
    second = filled.count(1, middle) / (len(filled) - middle)
    return (filled.count(1, 0, middle) / middle if middle else second, second)


def _warnings(
    fmt: TraceFormat,
    intake: _Intake,
    local_times: bool,
    censored: tuple[str, ...],
    halves: dict[str, tuple[float, float]],
) -> Iterator[str]:
    records = intake.records
    if intake.layout.ignored:
        yield f"ignored columns: {', '.join(intake.layout.ignored)}"
    if local_times:
        yield "timestamps are local times without offset; name their zone to account for changes of the clock"
    if any(later.submit_s < earlier.submit_s for earlier, later in pairwise(records)):
        yield "rows are not in the order of submission; the jobs are"
    if fmt.numbered and (equal := len(records) - len({record[2:6] for record in records})):
        yield f"{equal} rows equal an earlier one and are kept as jobs of their own unless duplicates are dropped"
    if censored:
        yield f"left-censored: {len(censored)} jobs were submitted before time zero, the first {censored[0]!r}"
    for column, (first, second) in halves.items():
        if abs(first - second) > _UNEVEN:
            yield f"column {column!r} is filled in {first:.1%} of the first half of rows, {second:.1%} of the second"


def _known(kind: str, value: str, known: Iterable[str]) -> None:
    if value not in set(known):
        raise UnknownNameError(kind, str(value), known)


def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        raise InvalidValueError("trace", "zone", name, "is no time zone known here, such as Europe/Berlin") from None


def _check_unit(layout: Layout, unit: str, path: Path | str) -> None:
    told = [name for at in layout.at.values() if (name := layout.header[at].strip().casefold()).endswith("_s")]
    if unit != "s" and told:
        raise FileError(path, f"column {told[0]!r} holds seconds, so the time unit cannot be {unit!r}")


def _check_zone(fmt: TraceFormat, layout: Layout, path: Path | str) -> None:
    if not fmt.timestamps:
        column = layout.header[layout.at["submit"]]
        raise FileError(path, f"column {column!r} holds times relative to an origin, so no zone goes with it")
