"""Rows of ``cluster_job_log``, the JSON log of jobs of the Microsoft Philly trace.

A job that was restarted has several attempts. It runs from the start of the first to the end of the last, on the GPUs
of the first that tells them, as in the analysis that its authors published with the trace.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from frostline.errors import FileError
from frostline.traces.table import Table

__all__ = ["begins_as_json_list", "job_log_table"]

_TEXTS = ("jobid", "submitted_time", "user", "vc", "status")
_HEADER = [*_TEXTS, "attempts", "gpus", "start_time", "end_time"]
_BLANKS = re.compile(r"[ \t\r\n]*")


class _BadLogError(ValueError):
    """Something of a log is not as it must be."""


def begins_as_json_list(line: str) -> bool:
    """Whether a line may be the first of a job log.

    Examples
    --------
    >>> begins_as_json_list("[{"), begins_as_json_list("id,submit")
    (True, False)
    """
    return line.startswith("[")


def job_log_table(lines: Iterable[str], path: Path | str) -> Table:
    """Table of a job log; the line of a job is the one on which its object begins.

    Raises
    ------
    FileError
        The text is no JSON, or no list of jobs with attempts; while rows are read.

    Examples
    --------
    >>> attempt = '{"start_time": "S", "end_time": "E", "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}]}'
    >>> table = job_log_table(['[{"jobid": "a", "vc": "v",', f'"attempts": [{attempt}]}}]'], "log")
    >>> next(table.rows)
    (1, ['a', '', '', 'v', '', '1', '2', 'S', 'E'])
    """
    return Table(list(_HEADER), _rows("".join(lines), path))


def _rows(text: str, path: Path | str) -> Iterator[tuple[int, list[str]]]:
    line, before = 1, 0
    try:
        for at, job in _elements(text):
            line, before = line + text.count("\n", before, at), at
            yield line, _row(job)
    except json.JSONDecodeError as error:
        raise FileError(path, f"is not JSON: {error.msg} at line {error.lineno} column {error.colno}") from None
    except RecursionError:
        raise FileError(path, "is nested too deeply") from None
    except _BadLogError as error:
        raise FileError(path, f"line {line}: {error}") from None
    except ValueError:
        raise FileError(path, "holds a whole number with too many digits") from None


def _elements(text: str) -> Iterator[tuple[int, Any]]:
    """Elements of a list and where each begins, one after the other."""
    decode = json.JSONDecoder(object_pairs_hook=_object).raw_decode
    at = _behind_blanks(text, 0)
    if text[at : at + 1] != "[":
        raise json.JSONDecodeError("Expecting a list of jobs", text, at)
    at = _behind_blanks(text, at + 1)
    more = text[at : at + 1] != "]"
    while more:
        value, end = decode(text, at)
        yield at, value
        at = _behind_blanks(text, end)
        more = text[at : at + 1] == ","
        if more:
            at = _behind_blanks(text, at + 1)
    if text[at : at + 1] != "]":
        raise json.JSONDecodeError("Expecting ',' or ']'", text, at)
    if (rest := _behind_blanks(text, at + 1)) != len(text):
        raise json.JSONDecodeError("Extra data", text, rest)


def _behind_blanks(text: str, at: int) -> int:
    match = _BLANKS.match(text, at)
    return at if match is None else match.end()


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise _BadLogError("an object names a member twice")
    return members


def _row(job: object) -> list[str]:
    if not isinstance(job, dict):
        raise _BadLogError("a job must be an object")
    attempts = _objects(job.get("attempts", []), "attempts")
    texts = [_text(job.get(name, "")) for name in _TEXTS]
    if not attempts:
        return [*texts, "0", "", "", ""]
    ends = (_text(attempts[0].get("start_time", "")), _text(attempts[-1].get("end_time", "")))
    told = list(map(_gpus, attempts))
    gpus = next((count for count in told if count not in ("", "0")), told[0])
    return [*texts, str(len(attempts)), gpus, *ends]


def _gpus(attempt: dict[str, Any]) -> str:
    """Number of GPUs of an attempt, empty where it does not tell."""
    held: list[Any] = [server.get("gpus") for server in _objects(attempt.get("detail", []), "detail")]
    if not all(isinstance(gpus, list) for gpus in held):
        raise _BadLogError("gpus must be a list")
    return str(sum(map(len, held))) if held else ""


def _objects(value: object, name: str) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(element, dict) for element in value):
        raise _BadLogError(f"{name} must be a list of objects")
    return value


def _text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)
