"""Rows of the Standard Workload Format: 18 numbers a line, -1 where one is not known, comments behind semicolons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from frostline.traces.table import Table

__all__ = ["begins_as_swf", "swf_table"]

_HEADER = (
    "job",
    "submit",
    "wait",
    "run_time",
    "allocated_processors",
    "average_cpu_time",
    "used_memory",
    "requested_processors",
    "requested_time",
    "requested_memory",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "preceding_job",
    "think_time",
)
_STATUS = _HEADER.index("status")
_STATES = {"0": "failed", "1": "completed", "5": "cancelled"}
_UNKNOWN = frozenset({"-1", "-1.0", "-1.00"})


def begins_as_swf(line: str) -> bool:
    """Whether a line is a comment or a job of this format.

    Examples
    --------
    >>> begins_as_swf("; Version: 2.2"), begins_as_swf("1 0 5 60 8" + 13 * " -1"), begins_as_swf("id,submit")
    (True, True, False)
    """
    return line.startswith(";") or (len(cells := line.split()) == len(_HEADER) and all(map(_is_number, cells)))


def swf_table(lines: Iterable[str], path: Path | str) -> Table:
    """Table of such lines, with empty cells for what is not known and words for the states of jobs.

    Examples
    --------
    >>> line, cells = next(swf_table(["; a comment", "1 0 5 60 8 -1 -1 8 90 -1 1 7 -1 -1 -1 -1 -1 -1"], "log.swf").rows)
    >>> line, cells[:12]
    (2, ['1', '0', '5', '60', '8', '', '', '8', '90', '', 'completed', '7'])
    """
    return Table(list(_HEADER), _rows(lines))


def _rows(lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(lines, 1):
        cells = line.partition(";")[0].split()
        if not cells:
            continue
        row = ["" if cell in _UNKNOWN else cell for cell in cells]
        if len(row) == len(_HEADER):
            row[_STATUS] = _STATES.get(row[_STATUS], row[_STATUS])
        yield number, row


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
