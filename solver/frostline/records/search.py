"""Prove again and improve what is known of instances; what is done is kept, whenever it is stopped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from time import process_time

from frostline.errors import FrostlineError
from frostline.problem.files import digest, load_schedule
from frostline.problem.instance import Instance
from frostline.problem.schedule import Schedule
from frostline.records.attempt import Effort, FoundBound, FoundSchedule, best_bound, best_schedule, choices_of
from frostline.records.evidence import (
    bound_faults,
    faults_of,
    store_certificate,
    store_schedule,
    value_faults,
)
from frostline.records.record import Evidence, Record, read_records, write_records
from frostline.traces.library import instance_names, load_named_instance
from frostline.units import instant_us

__all__ = ["Outcome", "Verdict", "improve"]


class Verdict(StrEnum):
    """What became of an instance."""

    NEW = "new"  # nothing was known of it, or what was known was wrong
    BETTER = "better"  # its schedule or its bound is better than before
    SAME = "same"  # nothing better was found
    SKIPPED = "skipped"  # proved optimal, or searched before with no less effort


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What an attempt came to.

    Parameters
    ----------
    record : Record
        What is known now.
    verdict : Verdict
        What became of it.
    faults : tuple of str
        What was wrong with the record before.
    """

    record: Record
    verdict: Verdict
    faults: tuple[str, ...] = ()


def improve(
    names: Iterable[str], folder: Path | str, effort: Effort | None = None, *, again: bool = False
) -> Iterator[Outcome]:
    """Check the record of each instance, search for a better one, and keep that if its evidence is checked.

    The file of records is written after every instance. A record that is right gives way only to a better one.

    Parameters
    ----------
    names : iterable of str
        Names of shipped instances.
    folder : Path or str
        Where records, schedules and certificates are read and written.
    effort : Effort, optional
        How long to search.
    again : bool
        Whether to search even where the instance is proved, or was searched before with no less effort.

    Yields
    ------
    Outcome
        One for each name, in order. Ctrl-C passes through after what was found so far has been kept.

    Raises
    ------
    FileError
        A file of the folder cannot be read or written.
    """
    home, chosen = Path(folder), effort or Effort()
    for name in names:
        instance = load_named_instance(name)
        old = read_records(home).get(name)
        faults = () if old is None else faults_of(old, instance, home)
        known = None if faults else old
        if known is not None and not again and _settled(known, chosen):
            yield Outcome(record=known, verdict=Verdict.SKIPPED)
            continue
        attempt = _Attempt(instance, home, chosen, known)
        new = attempt.record()
        _keep(home, new)
        if attempt.interrupted:
            raise KeyboardInterrupt
        yield Outcome(record=new, verdict=_verdict(known, new), faults=faults)


def _keep(folder: Path, record: Record) -> None:
    """Write a record into the file as it is now."""
    records = read_records(folder) | {record.name: record}
    places = {name: place for place, name in enumerate(instance_names())}
    write_records(folder, sorted(records.values(), key=lambda one: places.get(one.name, len(places))))


def _settled(record: Record, effort: Effort) -> bool:
    """Whether another search would find nothing new."""
    enough = record.work >= effort.work and record.nodes >= effort.nodes and record.searched_by == version("frostline")
    return record.proved or enough


def _verdict(old: Record | None, new: Record) -> Verdict:
    if old is None:
        return Verdict.NEW
    better = new.value.us < old.value.us or new.bound.us > old.bound.us
    return Verdict.BETTER if better else Verdict.SAME


class _Attempt:
    """One search for a better record of an instance."""

    def __init__(self, instance: Instance, folder: Path, effort: Effort, known: Record | None) -> None:
        self.instance, self.folder, self.effort, self.known = instance, folder, effort, known
        self.interrupted = False

    def record(self) -> Record:
        """The record after the search. Ctrl-C ends it with what is known and, if it is better, the schedule found."""
        begun = process_time()
        found = best_schedule(self.instance, self.effort, self._schedule())
        value = self._value(found, process_time() - begun)
        self.interrupted = found.interrupted
        begun = process_time()
        try:
            proof = None if self.interrupted else best_bound(self.instance, value.us, self.effort)
        except KeyboardInterrupt:
            self.interrupted, proof = True, None
        if proof is None:
            if self.known is None:
                raise KeyboardInterrupt
            return replace(self.known, value=value)
        return self._whole(value, self._bound(proof, process_time() - begun), found.solver_bound_us)

    def _whole(self, value: Evidence, bound: Evidence, claim_us: int | None) -> Record:
        claims = [claim_us, None if self.known is None else self.known.solver_bound_us]
        claim = max((us for us in claims if us is not None), default=bound.us)
        return Record(
            name=self.instance.name,
            sha256=digest(self.instance),
            choices=choices_of(self.instance),
            jobs=len(self.instance.jobs),
            release_us=sum(instant_us(job.release_s) for job in self.instance.jobs),
            value=value,
            bound=bound,
            solver_bound_us=claim if bound.us < claim <= value.us else None,
            work=self.effort.work,
            nodes=self.effort.nodes,
            searched_by=version("frostline"),
        )

    def _schedule(self) -> Schedule | None:
        """The schedule that is known, if it is stored."""
        if self.known is None or self.known.value.file is None:
            return None
        return load_schedule(self.folder / self.known.value.file, self.instance)

    def _value(self, found: FoundSchedule, time_s: float) -> Evidence:
        """The better of what was found, if it is right, and what was known."""
        if self.known is not None and self.known.value.us <= found.us:
            return self.known.value
        self._refuse(value_faults(self.instance, found.schedule, found.us))
        file = store_schedule(self.instance, found.schedule, self.folder)
        return _evidence(found.us, found.method, time_s, file)

    def _bound(self, found: FoundBound, time_s: float) -> Evidence:
        """The better of what was proved, if it is right, and what was known; of equals the one that is stored."""
        if self.known is not None and self.known.bound.us >= found.us + (self.known.bound.file is None):
            return self.known.bound
        self._refuse(bound_faults(self.instance, found.certificate, found.us, choices_of(self.instance)))
        file = store_certificate(self.instance, found.certificate, self.folder)
        return _evidence(found.us, found.method, time_s, file)

    def _refuse(self, faults: Iterable[str]) -> None:
        for fault in faults:
            raise FrostlineError(f"instance {self.instance.name!r}: what was found is wrong: {fault}")


def _evidence(us: int, method: str, time_s: float, file: str | None) -> Evidence:
    today = date.today().isoformat()
    return Evidence(us=us, method=method, date=today, version=version("frostline"), time_s=round(time_s, 2), file=file)
