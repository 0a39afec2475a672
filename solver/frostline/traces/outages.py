"""A list of outages of servers, from a comma-separated file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

from frostline.errors import FileError, InvalidValueError, TraceError
from frostline.problem.cluster import Cluster
from frostline.problem.order import natural_key
from frostline.problem.outage import Outage, in_order
from frostline.traces.table import open_table

__all__ = ["OUTAGE_COLUMNS", "read_outages"]

OUTAGE_COLUMNS = ("server", "start_s", "end_s")
"""Columns of a file of outages, in any order."""


def read_outages(path: Path | str, cluster: Cluster) -> tuple[Outage, ...]:
    """Outages of a file with the columns ``server``, ``start_s`` and ``end_s``.

    Times are seconds, on the clock of the jobs. A server whose ``end_s`` is empty never comes back.

    Parameters
    ----------
    path : Path or str
        CSV file, plain or gzipped.
    cluster : Cluster
        The servers.

    Returns
    -------
    tuple of Outage
        By start and server.

    Raises
    ------
    TraceError
        Rows with faults: an unknown server, a time that is none, an end not after the start, outages of one server that
        overlap. Each is named with its line, field, value and rule.
    FileError
        The file cannot be read, or lacks a column or has another one.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "outages.csv"
    >>> _ = path.write_text("server,start_s,end_s\\ns1,50,80\\ns0,10,\\n", encoding="utf-8")
    >>> [(outage.server, outage.end_s) for outage in read_outages(path, Cluster.uniform(2))]
    [('s0', None), ('s1', 80.0)]
    """
    faults: list[str] = []
    found: list[tuple[int, Outage]] = []
    known = {server.id for server in cluster.servers}
    with open_table(path) as table:
        columns = _columns(table.header, path)
        for line, cells in table.rows:
            if len(cells) != len(table.header):
                faults.append(f"line {line}: row={','.join(cells)!r} must have as many fields as the header")
                continue
            row = {name: cells[at].strip() for name, at in columns.items()}
            row_faults = [f"line {line}: {fault}" for fault in _faults(row, known)]
            if not row_faults:
                found.append((line, _outage(row)))
            faults += row_faults
    faults += _overlaps(found)
    if faults:
        raise TraceError(path, faults)
    return in_order(outage for _, outage in found)


def _columns(header: list[str], path: Path | str) -> dict[str, int]:
    names = [name.strip() for name in header]
    if sorted(names) != sorted(OUTAGE_COLUMNS):
        raise FileError(path, f"has the columns {', '.join(names)} but must have {', '.join(OUTAGE_COLUMNS)}")
    return {name: at for at, name in enumerate(names)}


def _faults(row: Mapping[str, str], known: set[str]) -> Iterator[str]:
    """What is wrong with one row."""
    if row["server"] not in known:
        yield f"server={row['server']!r} must be a server of the cluster"
    fields = ["start_s", *(["end_s"] if row["end_s"] else [])]
    bad = [name for name in fields if not _is_number(row[name])]
    yield from (f"{name}={row[name]!r} must be a finite number" for name in bad)
    if not bad and row["server"]:
        try:
            _outage(row)
        except InvalidValueError as error:
            yield f"{error.field}={row[error.field]!r} {error.rule}"


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text)) and "_" not in text
    except ValueError:
        return False


def _outage(row: Mapping[str, str]) -> Outage:
    end_s = float(row["end_s"]) if row["end_s"] else None
    return Outage(server=row["server"], start_s=float(row["start_s"]), end_s=end_s)


def _overlaps(found: list[tuple[int, Outage]]) -> Iterator[str]:
    """Rows whose outage begins before another one of the server has ended."""
    for (first, before), (line, after) in pairwise(sorted(found, key=_by_server)):
        if before.server == after.server and (before.end_us is None or after.start_us < before.end_us):
            yield f"line {line}: start_s={after.start_s!r} must not lie before the end of the outage of line {first}"


def _by_server(entry: tuple[int, Outage]) -> tuple[object, int]:
    return natural_key(entry[1].server), entry[1].start_us
