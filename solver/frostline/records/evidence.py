"""Whether a record is so: its schedule and its certificate, checked by what made neither."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from frostline.errors import FileError
from frostline.problem.documents import document_text, read_document, write_text
from frostline.problem.files import digest, load_schedule, save
from frostline.problem.instance import Instance
from frostline.problem.schedule import Schedule
from frostline.records.record import Record
from frostline.verify import check_bound, check_schedule

__all__ = [
    "bound_faults",
    "faults_of",
    "read_certificate",
    "store_certificate",
    "store_schedule",
    "total_us",
    "value_faults",
]

_MOST_BYTES = 300_000
_SCHEDULES, _CERTIFICATES = "schedules", "certificates"
_CERTIFICATE = "certificate"


def total_us(schedule: Schedule) -> int:
    """Sum of the completion times of a schedule in microseconds."""
    return sum(schedule.completion_us.values())


def value_faults(instance: Instance, schedule: Schedule, value_us: int) -> Iterator[str]:
    """Why a schedule does not show that a sum of completion times can be had, one sentence each.

    Examples
    --------
    >>> from frostline.problem import Cluster, Fixed, Job, Placement, Segment
    >>> job = Job(id="a", release_s=0, work=Fixed(duration_s=2), gpus=1)
    >>> schedule = Schedule(segments=[Segment("a", 0, 2_000_000, Placement([(0, (1,))]))])
    >>> list(value_faults(Instance(cluster=Cluster.pool(1), jobs=[job]), schedule, 1_000_000))
    ['the schedule completes jobs in 2000000 µs, not in 1000000']
    """
    yield from (fault.text for fault in check_schedule(instance, schedule).faults)
    if len(schedule.segments) != len(instance.jobs):
        yield f"the schedule runs {len(instance.jobs)} jobs in {len(schedule.segments)} pieces"
    if total_us(schedule) != value_us:
        yield f"the schedule completes jobs in {total_us(schedule)} µs, not in {value_us}"


def bound_faults(instance: Instance, certificate: dict[str, Any], bound_us: int, choices: str) -> Iterator[str]:
    """Why a certificate does not prove a bound on the sum of completion times, one sentence each."""
    report = check_bound(instance, certificate)
    yield from (fault.text for fault in report.faults)
    if not report.valid:
        return
    if report.bound_us != bound_us:
        yield f"the certificate proves {report.bound_us} µs, not {bound_us}"
    stated = certificate["problem"]
    if stated["choices"] != choices or stated["weight"] is not None:
        yield f"the certificate is about {stated['choices']!r} jobs of weights {stated['weight']}, not {choices!r} ones"


def faults_of(record: Record, instance: Instance, folder: Path | str) -> tuple[str, ...]:
    """Everything that is wrong with a record; nothing in it is taken on trust.

    Parameters
    ----------
    record : Record
        What is claimed.
    instance : Instance
        The instance that it is about.
    folder : Path or str
        The folder with its schedule and its certificate. Evidence that is not stored is not looked at.
    """
    return tuple(_faults(record, instance, Path(folder)))


def _faults(record: Record, instance: Instance, folder: Path) -> Iterator[str]:
    if record.sha256 != digest(instance):
        yield "the record is about another instance"
        return
    if record.jobs != len(instance.jobs) or record.bound.us > record.value.us:
        figures = f"{record.jobs} jobs, a bound of {record.bound.us} µs and a value of {record.value.us}"
        yield f"{figures} do not go together"
    try:
        if record.value.file is not None:
            yield from value_faults(instance, load_schedule(folder / record.value.file, instance), record.value.us)
        if record.bound.file is not None:
            certificate = read_certificate(folder / record.bound.file)
            yield from bound_faults(instance, certificate, record.bound.us, record.choices)
    except FileError as error:
        yield str(error)


def read_certificate(path: Path) -> dict[str, Any]:
    """Certificate of a file, as it is checked."""
    kind, content = read_document(path, [_CERTIFICATE])
    return {"format": f"frostline/{kind}", "version": 1, **content}


def store_schedule(instance: Instance, schedule: Schedule, folder: Path) -> str | None:
    """Keep a schedule; its name in the folder, None where it is too large to be kept."""
    path = _path(folder, _SCHEDULES, instance.name)
    save(schedule, path, instance=instance)
    return _kept(path, folder)


def store_certificate(instance: Instance, certificate: dict[str, Any], folder: Path) -> str | None:
    """Keep a certificate; its name in the folder, None where it is too large to be kept."""
    path = _path(folder, _CERTIFICATES, instance.name)
    members = [(name, value) for name, value in certificate.items() if name not in ("format", "version")]
    write_text(path, document_text(_CERTIFICATE, members, []))
    return _kept(path, folder)


def _path(folder: Path, kind: str, name: str) -> Path:
    path = folder / kind / f"{name}.json.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _kept(path: Path, folder: Path) -> str | None:
    if path.stat().st_size > _MOST_BYTES:
        path.unlink()
        return None
    return path.relative_to(folder).as_posix()
