"""What is known of an instance, and the file ``bounds.json`` that keeps it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any

from frostline.errors import FileError, UnknownNameError
from frostline.problem.documents import document_text, read_document, write_text

__all__ = ["BOUNDS_FILE", "Evidence", "Record", "best_known", "library_folder", "read_records", "write_records"]

BOUNDS_FILE = "bounds.json"
_KIND = "bounds"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A total completion time or a bound on it, how it was found, and what proves it.

    Parameters
    ----------
    us : int
        Sum of completion times in microseconds.
    method : str
        What found it: of a schedule a policy or a method of :func:`~frostline.offline.solve`, of a bound ``tree``,
        ``lagrangian`` or ``pointwise``.
    date : str
        Day on which it was found.
    version : str
        Version of frostline that found it.
    time_s : float
        Seconds of CPU that the search took.
    file : str or None
        Schedule or certificate, in the folder of the instances; None where it is large and made again by the method.
    """

    us: int
    method: str
    date: str
    version: str
    time_s: float
    file: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What is known of an instance: of the sum of completion times over schedules that run each job in one piece.

    Parameters
    ----------
    name : str
        Name of the instance.
    sha256 : str
        Digest of the instance.
    choices : {"asked", "elastic"}
        Whether jobs run on the GPUs they ask for, or elastic ones on one width at one freeze level of their choice.
    jobs : int
        Number of jobs.
    release_us : int
        Sum of the release times in microseconds: total flow is total completion less this.
    value, bound : Evidence
        The best schedule, and the best bound that a checked certificate proves.
    solver_bound_us : int or None
        Bound that a solver claims beyond that, without a certificate.
    work, nodes : float and int
        Effort of the last search.
    searched_by : str
        Version of frostline that searched last.
    """

    name: str
    sha256: str
    choices: str
    jobs: int
    release_us: int
    value: Evidence
    bound: Evidence
    solver_bound_us: int | None
    work: float
    nodes: int
    searched_by: str

    @property
    def proved(self) -> bool:
        """Whether the certificate proves that the schedule is optimal."""
        return self.value.us == self.bound.us

    @property
    def flow_s(self) -> float:
        """Total flow time of the schedule in seconds."""
        return (self.value.us - self.release_us) / 1e6

    @property
    def bound_flow_s(self) -> float:
        """Bound on the total flow time in seconds."""
        return (self.bound.us - self.release_us) / 1e6

    @property
    def gap(self) -> float:
        """What the bound on total flow lacks, as a share of the total flow."""
        return 1 - (self.bound.us - self.release_us) / (self.value.us - self.release_us)


def library_folder() -> Path:
    """Folder of the shipped instances.

    Examples
    --------
    >>> (library_folder() / "index.json").is_file()
    True
    """
    return Path(str(files("frostline").joinpath("instances")))


def read_records(folder: Path | str) -> dict[str, Record]:
    """Records in a folder of instances by name, none where there is no file of them.

    Raises
    ------
    FileError
        The file cannot be read, or a row of it lacks a field, has one too many, or one of the wrong type.
    """
    path = Path(folder) / BOUNDS_FILE
    if not path.exists():
        return {}
    _, data = read_document(path, [_KIND])
    rows = data.get("records")
    if set(data) != {"records"} or not isinstance(rows, list):
        raise FileError(path, "$.records: must be a list, and nothing else")
    records = [_record(row, f"$.records[{i}]", path) for i, row in enumerate(rows)]
    return {record.name: record for record in records}


def write_records(folder: Path | str, records: Iterable[Record]) -> None:
    """Write the records of a folder of instances, one a line, all or nothing."""
    write_text(Path(folder) / BOUNDS_FILE, document_text(_KIND, [], [("records", map(asdict, records))]))


@cache
def _shipped() -> Mapping[str, Record]:
    return MappingProxyType(read_records(library_folder()))


def best_known(name: str) -> Record:
    """What is known of a shipped instance.

    Raises
    ------
    UnknownNameError
        No such instance.

    Examples
    --------
    >>> record = best_known("q06")
    >>> record.flow_s, record.bound_flow_s, record.proved, record.bound.method
    (135.0, 135.0, True, 'tree')
    """
    try:
        return _shipped()[name]
    except KeyError:
        raise UnknownNameError("instance", str(name), _shipped()) from None


_TYPES: Mapping[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (float, int),
    "str | None": (str, type(None)),
    "int | None": (int, type(None)),
    "Evidence": (dict,),
}


def _record(row: object, where: str, path: Path) -> Record:
    values = _values(row, Record, where, path)
    found = {name: Evidence(**_values(values[name], Evidence, f"{where}.{name}", path)) for name in ("value", "bound")}
    return Record(**{**values, **found})


def _values(row: object, kind: type[Record] | type[Evidence], where: str, path: Path) -> dict[str, Any]:
    known = {field.name: str(field.type) for field in fields(kind)}
    if not isinstance(row, dict) or set(row) != set(known):
        raise FileError(path, f"{where}: must be an object with the fields {', '.join(known)}")
    for name, value in row.items():
        if type(value) not in _TYPES[known[name]]:
            raise FileError(path, f"{where}.{name}: is {value!r}; expected {known[name]}")
    return row
