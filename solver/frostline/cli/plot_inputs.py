"""The schedules that ``frostline plot`` draws: of folders that ``simulate --out`` wrote, or of single files."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from frostline.cli.check import beside, guarantee_of
from frostline.cli.group import UsageError
from frostline.cli.inputs import JSON_ENDINGS, shipped_instance
from frostline.cli.simulate import file_name
from frostline.errors import FileError, InvalidValueError, UnknownNameError
from frostline.problem import Instance, Schedule
from frostline.problem.documents import file_problem
from frostline.problem.files import digest, load_instance, load_schedule
from frostline.problem.order import natural_key
from frostline.relaxation import Bound, lower_bound
from frostline.report.columns import Timeline, timeline
from frostline.report.results_file import Results, read_results
from frostline.report.simulation import schedule_result
from frostline.simulation import choices_made, measure
from frostline.timing import Choices
from frostline.verify import check_schedule

__all__ = ["Runs", "read_runs"]

_PREFIX, _INSTANCE, _SUMMARY = "schedule-", "instance.json.gz", "summary.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """Schedules of one instance, and what is known of their outcomes.

    Parameters
    ----------
    instance : Instance
        The instance.
    schedules : mapping of str to Timeline
        The schedules by name.
    rows : list of mapping
        Outcomes in the same order, as :func:`~frostline.report.simulation.result_summary` gives them.
    trace : mapping or None
        Summary of the trace, where a summary tells it.
    sources : mapping of str to str
        SHA-256 of the instance and of each file of a schedule.
    """

    instance: Instance
    schedules: Mapping[str, Timeline]
    rows: Sequence[Mapping[str, Any]]
    trace: Mapping[str, Any] | None
    sources: Mapping[str, str]


class _Entry(NamedTuple):
    """A schedule to read: its name, its file, its instance, and the row of a summary if there is one."""

    name: str
    path: Path
    instance: str
    row: Mapping[str, Any] | None = None
    results: Results | None = None


def read_runs(paths: Sequence[Path], instance: str | None, policies: Sequence[str] | None) -> Runs:
    """Schedules of folders and files.

    Parameters
    ----------
    paths : sequence of Path
        Folders that ``simulate --out`` wrote, and files of schedules.
    instance : str or None
        File or name of their instance; by default ``instance.json.gz`` in or beside each.
    policies : sequence of str or None
        Names of the schedules to keep, in this order; all by default.

    Raises
    ------
    FrostlineError
        Something cannot be read or drawn, there is nothing, or the schedules are not of one instance.
    """
    entries = _named([entry for path in paths for entry in _entries(path, instance)])
    if policies is not None:
        for name in policies:
            if name not in entries:
                raise UnknownNameError("policy among the schedules", name, entries)
        entries = {name: entries[name] for name in policies}
    problem, sha256 = _instance_of(entries.values())
    schedules: dict[str, Timeline] = {}
    rows: list[Mapping[str, Any]] = []
    sources = {"the instance": sha256}
    bounds: dict[Choices, Bound] = {}
    for name, entry in entries.items():
        schedule = load_schedule(entry.path, problem)
        schedules[name] = _timeline(entry.path, problem, schedule)
        rows.append({**_row(entry, problem, schedule, bounds), "policy": name})
        sources[f"schedule {name}"] = hashlib.sha256(entry.path.read_bytes()).hexdigest()
    traces = [entry.results.trace for entry in entries.values() if entry.results is not None]
    return Runs(instance=problem, schedules=schedules, rows=rows, trace=traces[0] if traces else None, sources=sources)


def _entries(path: Path, instance: str | None) -> Iterator[_Entry]:
    try:
        names = sorted((found.name for found in path.iterdir()), key=natural_key) if path.is_dir() else None
    except OSError as error:
        raise FileError(path, file_problem(error)) from None
    if names is None:
        if not path.exists():
            raise FileError(path, "no such file or folder")
        yield _Entry(_stem(path), path, instance or str(beside(path)))
    else:
        yield from _folder(path, names, instance or str(path / _INSTANCE))


def _folder(path: Path, names: Sequence[str], instance: str) -> Iterator[_Entry]:
    """Schedules of a folder: those that its summary tells of, else all that are there."""
    files = [name for name in names if name.startswith(_PREFIX) and name.endswith(JSON_ENDINGS)]
    if not files:
        raise FileError(
            path, f"there is nothing to draw: it holds no {_PREFIX}*.json.gz, as simulate --out writes them"
        )
    if _SUMMARY not in names:
        yield from (_Entry(_stem(path / name), path / name, instance) for name in files)
        return
    results = read_results(path / _SUMMARY)
    if not results.rows:
        raise FileError(path / _SUMMARY, "there is nothing to draw: it tells of no policy")
    for row in results.rows:
        yield _Entry(row["policy"], path / file_name(row["policy"]), instance, row, results)


def _stem(path: Path) -> str:
    """Name of a schedule file without what all of them have."""
    ending = next((ending for ending in sorted(JSON_ENDINGS, key=len, reverse=True) if path.name.endswith(ending)), "")
    return path.name.removesuffix(ending).removeprefix(_PREFIX) or path.name


def _named(entries: Sequence[_Entry]) -> dict[str, _Entry]:
    """Entries by names that differ: with their folder, or their whole path, where they would not."""
    named = [entry.name for entry in entries]
    for longer in (_with_folder, _whole_path):
        counts = Counter(named)
        named = [longer(entry) if counts[name] > 1 else name for name, entry in zip(named, entries, strict=True)]
    for name, count in Counter(named).items():
        if count > 1:
            raise UsageError(f"{name} is given twice")
    return dict(zip(named, entries, strict=True))


def _with_folder(entry: _Entry) -> str:
    return f"{entry.path.parent.name}/{entry.name}"


def _whole_path(entry: _Entry) -> str:
    return str(entry.path)


def _instance_of(entries: Iterable[_Entry]) -> tuple[Instance, str]:
    """The one instance of all entries, and its digest."""
    sources = list(dict.fromkeys(entry.instance for entry in entries))
    problem = shipped_instance(sources[0]) or load_instance(sources[0])
    sha256 = digest(problem)
    for source in sources[1:]:
        if digest(load_instance(source)) != sha256:
            raise UsageError(f"all schedules must be of one instance, but {source} is not {sources[0]}")
    return problem, sha256


def _timeline(path: Path, instance: Instance, schedule: Schedule) -> Timeline:
    try:
        return timeline(instance, schedule)
    except InvalidValueError as error:
        raise FileError(path, f"cannot be drawn: {error}") from None


def _row(entry: _Entry, instance: Instance, schedule: Schedule, bounds: dict[Choices, Bound]) -> Mapping[str, Any]:
    """Outcome of a schedule: as the summary tells it, if that is of this schedule, else found out."""
    if entry.row is not None:
        mean_s = measure(instance, schedule).mean_flow_s
        if mean_s != entry.row["mean_flow_s"]:
            told = f"{_SUMMARY} beside it says {entry.row['mean_flow_s']} s"
            raise FileError(
                entry.path, f"has a mean flow time of {mean_s} s, but {told}: they are not of one simulation"
            )
        return entry.row
    choices = choices_made(instance, schedule)
    if choices not in bounds:
        bounds[choices] = lower_bound(instance, choices=choices)
    report = check_schedule(instance, schedule)
    guarantee = guarantee_of(instance, schedule) if report.valid else None
    return schedule_result(entry.name, instance, schedule, bounds[choices], report, guarantee)
