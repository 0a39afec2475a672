"""Rows of what ``sacct --parsable2`` of Slurm prints: no quotes, so that a text may hold line breaks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from frostline.errors import FileError
from frostline.traces.layout import plain
from frostline.traces.table import Table, first_lines, text_fault

__all__ = ["begins_as_sacct", "sacct_table"]

_BETWEEN_NAMES = re.compile(r"\w+(\W+?)\w")


def begins_as_sacct(line: str) -> bool:
    """Whether a line is the header of such a file, whatever stands behind the bars.

    Examples
    --------
    >>> begins_as_sacct("JobID|State|Start"), begins_as_sacct("Account|#JobID|#State"), begins_as_sacct("job_id,state")
    (True, True, False)
    """
    return "|" in line and "jobid" in map(plain, line.split(_delimiter(line)))


def sacct_table(lines: Iterable[str], path: Path | str) -> Table:
    """Table of such a file; a line with too few fields goes on with the next, unless that has all of them.

    States are cut before who cancelled: ``CANCELLED by 1000`` is ``CANCELLED``.

    Raises
    ------
    FileError
        There is no header, or it is no text.

    Examples
    --------
    >>> table = sacct_table(["JobID|JobName|State\\n", "1|two\\n", "lines|CANCELLED by 7\\n"], "jobs.txt")
    >>> next(table.rows)
    (2, ['1', 'two\\nlines', 'CANCELLED'])
    """
    lines = iter(lines)
    head = first_lines(lines)
    first = "".join(head).strip()
    if not first:
        raise FileError(path, "is empty")
    if broken := text_fault(first):
        raise FileError(path, f"line {len(head)}: the header is not text ({broken})")
    delimiter = _delimiter(first)
    header = first.split(delimiter)
    return Table(header, _rows(lines, len(head), header, delimiter))


def _delimiter(header: str) -> str:
    match = _BETWEEN_NAMES.match(header.strip())
    return "|" if match is None else match[1]


def _rows(lines: Iterator[str], before: int, header: list[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    names = [plain(name) for name in header]
    state = names.index("state") if "state" in names else None
    for line, text in _records(lines, before, delimiter, len(header) - 1):
        cells = text.split(delimiter)
        if state is not None and len(cells) == len(header):
            cells[state] = cells[state].partition(" by ")[0]
        yield line, cells


def _records(lines: Iterator[str], before: int, delimiter: str, bars: int) -> Iterator[tuple[int, str]]:
    """Texts that hold as many delimiters as the header, and those that cannot be completed."""
    begin, record = 0, ""
    for number, line in enumerate(lines, before + 1):
        text = line.rstrip("\r\n")
        if record and text.count(delimiter) >= bars:
            yield begin, record
            record = ""
        if not record:
            begin, record = number, text
        else:
            record += "\n" + text
        if record and record.count(delimiter) >= bars:
            yield begin, record
            record = ""
    if record:
        yield begin, record
