"""Lines of a file, plain or gzipped, and the rows of comma-separated ones, each with the line on which it begins."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TextIO

from frostline.errors import FileError
from frostline.problem.documents import file_problem

__all__ = [
    "TRACE_VERSION",
    "VERSION_LINE",
    "Table",
    "csv_table",
    "first_lines",
    "open_table",
    "open_text",
    "text_fault",
]

TRACE_VERSION = 1
"""Newest version of frostline's own traces that can be read, and the one that is written."""

VERSION_LINE = f"# frostline/trace version={TRACE_VERSION}"

_GZIP_MAGIC = b"\x1f\x8b"
_VERSION = re.compile(r"#\s*frostline/trace\s+version=(\d{1,9})\s*")


@dataclass(frozen=True, slots=True)
class Table:
    """Header of a file and its rows, to be read once.

    Parameters
    ----------
    header : list of str
        The first row.
    rows : iterator of (int, list of str)
        The other rows but blank ones, with the line on which each begins, counted from 1. Bytes that are no UTF-8
        come as lone surrogates.
    """

    header: list[str]
    rows: Iterator[tuple[int, list[str]]]


@contextmanager
def open_text(path: Path | str) -> Iterator[TextIO]:
    """Text of a file, with its line ends; bytes that are no UTF-8 come as lone surrogates.

    Raises
    ------
    FileError
        The file is missing or damaged; also while it is read.
    """
    try:
        with (
            Path(path).open("rb") as raw,
            io.TextIOWrapper(_decompressed(raw), encoding="utf-8-sig", errors="surrogateescape", newline="") as text,
        ):
            yield text
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise FileError(path, "is gzip data that is truncated or damaged") from None
    except OSError as error:
        raise FileError(path, file_problem(error)) from None


@contextmanager
def open_table(path: Path | str) -> Iterator[Table]:
    """Table of a comma-separated file.

    Raises
    ------
    FileError
        The file is missing, empty, damaged, no text, quoted wrongly or of a newer version; also while rows are read.
    """
    with open_text(path) as text:
        yield csv_table(text, path)


def text_fault(text: str) -> str:
    """Rule that a text breaks by the characters in it, empty if none.

    Examples
    --------
    >>> text_fault("naïve"), text_fault("\\udcff"), text_fault("\\0")
    ('', 'invalid_bytes', 'nul_bytes')
    """
    if "\0" in text:
        return "nul_bytes"
    try:
        text.isascii() or text.encode("utf-8")
    except UnicodeEncodeError:
        return "invalid_bytes"
    return ""


def _decompressed(raw: io.BufferedReader) -> io.BufferedReader | gzip.GzipFile:
    packed = raw.peek(2).startswith(_GZIP_MAGIC) or Path(raw.name).suffix == ".gz"
    return gzip.GzipFile(fileobj=raw, mode="rb") if packed else raw


def first_lines(lines: Iterable[str]) -> list[str]:
    """Lines up to the first that is not blank, taken from an iterator.

    Examples
    --------
    >>> first_lines(["\\n", "a\\n", "b\\n"])
    ['\\n', 'a\\n']
    """
    head: list[str] = []
    for line in lines:
        head.append(line)
        if line.strip():
            break
    return head


def csv_table(lines: Iterable[str], path: Path | str, header: Sequence[str] | None = None) -> Table:
    """Table of comma-separated lines, the first of which may tell the version of frostline's own format.

    Parameters
    ----------
    lines : iterable of str
        The lines.
    path : Path or str
        Their file, for errors.
    header : sequence of str, optional
        Names of the columns where the lines do not begin with them.

    Raises
    ------
    FileError
        There is no header or it is no text, or the version is newer; while rows are read, one is quoted wrongly.

    Examples
    --------
    >>> list(csv_table(["id,note\\n", 'a,"b\\n', 'c"\\n', "d,e\\n"], "t.csv").rows)
    [(2, ['a', 'b\\nc']), (4, ['d', 'e'])]
    """
    lines = iter(lines)
    if header is not None:
        return Table(list(header), _rows(lines, 0, path))
    first = next(lines, "")
    if first.startswith("#"):
        _check_version(first, path)
        rows = _rows(lines, 1, path)
    else:
        rows = _rows(chain([first], lines), 0, path)
    line, names = next(rows, (0, []))
    if not names:
        raise FileError(path, "is empty")
    if broken := text_fault("".join(names)):
        raise FileError(path, f"line {line}: the header is not text ({broken})")
    return Table(names, rows)


def _rows(lines: Iterator[str], before: int, path: Path | str) -> Iterator[tuple[int, list[str]]]:
    """Rows that are not blank; ``before`` lines were read already."""
    reader = csv.reader(lines, strict=True)
    line = before + 1
    try:
        for cells in reader:
            if cells:
                yield line, cells
            line = before + reader.line_num + 1
    except csv.Error as error:
        raise FileError(path, f"line {line}: is quoted wrongly or too long: {error}") from None


def _check_version(line: str, path: Path | str) -> None:
    match = _VERSION.fullmatch(line)
    if match is None:
        raise FileError(path, f"line 1: is neither a header nor {VERSION_LINE!r}")
    version = int(match[1])
    if version > TRACE_VERSION:
        raise FileError(path, f"version {version} is newer than the {TRACE_VERSION} this frostline reads")
    if version < 1:
        raise FileError(path, f"line 1: {version} is no version")
