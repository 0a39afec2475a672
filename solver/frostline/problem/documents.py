"""JSON documents on disk: strict reading with one clear error, atomic writing with the same bytes every time.

A document is an object with ``"format": "frostline/<kind>"`` and ``"version"``. Nothing here knows what the kinds hold.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import secrets
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NoReturn

from frostline.errors import FileError

__all__ = [
    "Document",
    "check_ending",
    "document_text",
    "file_problem",
    "parse_document",
    "read_document",
    "write_bytes",
    "write_text",
]

Document = dict[str, Any]

_GZIP_MAGIC = b"\x1f\x8b"
_encode: Callable[[object], str] = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def read_document(path: Path | str, kinds: Iterable[str], version: int = 1) -> tuple[str, Document]:
    """Kind and content of a JSON document, plain or gzipped.

    Parameters
    ----------
    path : Path or str
        The file; gzip is recognised by its content.
    kinds : iterable of str
        Kinds that will do, such as ``"instance"`` for ``"frostline/instance"``.
    version : int
        Newest version that can be read.

    Returns
    -------
    (str, dict)
        The kind, and the members other than ``format`` and ``version``.

    Raises
    ------
    FileError
        The file is missing, empty, damaged, no JSON, of another kind or newer, or repeats a key of an object.
    """
    return parse_document(_read_text(path), kinds, version, source=path)


def parse_document(text: str, kinds: Iterable[str], version: int = 1, *, source: Path | str) -> tuple[str, Document]:
    """Kind and content of the text of a document; errors name its source.

    Examples
    --------
    >>> parse_document('{"format": "frostline/cluster", "version": 1, "servers": []}', ["cluster"], source="text")
    ('cluster', {'servers': []})
    >>> parse_document('{"format": "frostline/cluster", "version": 2}', ["cluster"], source="text")
    Traceback (most recent call last):
    frostline.errors.FileError: text: version 2 is newer than the 1 this frostline reads
    """
    if not text.strip():
        raise FileError(source, "is empty")
    try:
        data = json.loads(text, object_pairs_hook=_object, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise FileError(source, f"is not JSON: {error.msg} at line {error.lineno} column {error.colno}") from None
    except _BadTextError as error:
        raise FileError(source, str(error)) from None
    except RecursionError:
        raise FileError(source, "is nested too deeply") from None
    except ValueError:
        raise FileError(source, "holds a whole number with too many digits") from None
    return _kind(data, tuple(kinds), version, source), data


def document_text(
    kind: str, members: Iterable[tuple[str, object]], rows: Iterable[tuple[str, Iterable[object]]]
) -> str:
    """Text of a document: one member a line, and long lists with one element a line.

    Parameters
    ----------
    kind : str
        Kind, such as ``"instance"``.
    members : iterable of (str, object)
        Names and values, written in this order.
    rows : iterable of (str, iterable)
        Names and elements of the long lists that come last.

    Raises
    ------
    ValueError
        A number is not finite.

    Examples
    --------
    >>> print(document_text("toy", [("name", "t")], [("jobs", [{"id": "a"}, {"id": "b"}])]), end="")
    {"format":"frostline/toy","version":1,
    "name":"t",
    "jobs":[
    {"id":"a"},
    {"id":"b"}
    ]}
    """
    parts = [f'{{"format":"frostline/{kind}","version":1']
    parts += [f"{_encode(name)}:{_encode(value)}" for name, value in members]
    for name, elements in rows:
        lines = ",\n".join(map(_encode, elements))
        parts.append(f"{_encode(name)}:[\n{lines}\n]" if lines else f"{_encode(name)}:[]")
    return ",\n".join(parts) + "}\n"


def write_text(path: Path | str, text: str, endings: tuple[str, str] = (".json", ".json.gz")) -> None:
    """Write a text to ``*.json`` or, compressed, to ``*.json.gz``: all of it or nothing, and always the same bytes.

    Raises
    ------
    FileError
        The name has another ending, or the file cannot be written.
    """
    path = Path(path)
    check_ending(path, endings)
    data = text.encode("utf-8")
    write_bytes(path, _gzip(data) if path.suffix == ".gz" else data)


def check_ending(path: Path | str, endings: tuple[str, ...] = (".json", ".json.gz")) -> None:
    """Refuse a name without the ending of a document.

    Examples
    --------
    >>> check_ending("schedule.txt")
    Traceback (most recent call last):
    frostline.errors.FileError: schedule.txt: must end in .json or .json.gz
    """
    if not str(path).endswith(endings):
        raise FileError(path, f"must end in {' or '.join(endings)}")


def write_bytes(path: Path | str, data: bytes) -> None:
    """Write a file: all of it or nothing.

    Raises
    ------
    FileError
        The file cannot be written.
    """
    try:
        _replace_atomically(Path(os.path.realpath(path)), data)
    except (OSError, ValueError) as error:
        raise FileError(path, f"cannot be written: {file_problem(error)}") from None


def _replace_atomically(target: Path, data: bytes) -> None:
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(data)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _gzip(data: bytes) -> bytes:
    # GzipFile, because gzip.compress records the operating system in the header on some versions of Python.
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=buffer, mtime=0) as file:
        file.write(data)
    return buffer.getvalue()


class _BadTextError(Exception):
    """JSON that Python would read, but that has no single meaning."""


def _object(pairs: list[tuple[str, Any]]) -> Document:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        where = f"the object with id {members['id']!r}" if "id" in members and twice != "id" else "one object"
        raise _BadTextError(f"key {twice!r} appears twice in {where}")
    return members


def _refuse_constant(name: str) -> NoReturn:
    raise _BadTextError(f"holds {name}, which is not a number of JSON")


def _kind(data: object, kinds: tuple[str, ...], version: int, source: Path | str) -> str:
    wanted = " or ".join(f"frostline/{kind}" for kind in kinds)
    if not isinstance(data, dict):
        raise FileError(source, f"holds no JSON object; expected a {wanted}")
    if "format" not in data:
        raise FileError(source, f"$.format: is missing; expected {wanted}")
    name = data.pop("format")
    kind = name.removeprefix("frostline/") if isinstance(name, str) and name.startswith("frostline/") else None
    if kind not in kinds:
        raise FileError(source, f"$.format: is {name!r}; expected {wanted}")
    found = data.pop("version", None)
    if type(found) is not int or found < 1:
        raise FileError(source, "$.version: is missing" if found is None else f"$.version: {found!r} is no version")
    if found > version:
        raise FileError(source, f"version {found} is newer than the {version} this frostline reads")
    return kind


def _read_text(path: Path | str) -> str:
    try:
        data = Path(path).read_bytes()
        if data.startswith(_GZIP_MAGIC):
            data = gzip.decompress(data)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise FileError(path, "is gzip data that is truncated or damaged") from None
    except (OSError, ValueError) as error:
        raise FileError(path, file_problem(error)) from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError(path, f"is not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}") from None


def file_problem(error: Exception) -> str:
    """What keeps a file from being read or written, in a few words."""
    if isinstance(error, FileNotFoundError):
        return "no such file or folder"
    if isinstance(error, IsADirectoryError):
        return "is a folder"
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)
