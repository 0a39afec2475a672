"""Rows of Gavel's traces, and the run times of their jobs, which count steps.

Traces of ten fields count steps by Gavel's throughputs on V100 GPUs; those of seven fields, made from Philly, by
throughputs that were not published and are inferred from the run times of the same jobs in Philly.
``gavel_rates.json`` holds both, ``benchmarks/gavel_rates.py`` makes it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from frostline.traces.cells import duration, number
from frostline.traces.rules import BrokenRuleError
from frostline.traces.table import Table

__all__ = [
    "begins_as_gavel",
    "begins_as_gavel_philly",
    "gavel_duration",
    "gavel_philly_duration",
    "gavel_philly_table",
    "gavel_table",
]

_FIRST = ("job_type", "command")
_STEPS = ("steps_flag", "needs_data_dir", "total_steps")
_SEVEN = (*_FIRST, *_STEPS, "arrival_time", "gpus")
_TEN = (*_FIRST, "working_directory", *_STEPS, "gpus", "priority_weight", "slo", "arrival_time")


def begins_as_gavel(line: str) -> bool:
    """Whether a line has the ten fields of a job.

    Examples
    --------
    >>> begins_as_gavel("\\t".join(["A3C", "python3 main.py", "rl", "-n", "1", "9000", "1", "1", "-1.0", "0"]))
    True
    """
    return _begins(line, _TEN)


def begins_as_gavel_philly(line: str) -> bool:
    """Whether a line has the seven fields of a job.

    Examples
    --------
    >>> begins_as_gavel_philly("\\t".join(["A3C", "python3 main.py", "-n", "1", "9000", "6.0", "1"]))
    True
    """
    return _begins(line, _SEVEN)


def _begins(line: str, header: Sequence[str]) -> bool:
    cells = line.rstrip("\r\n").split("\t")
    return len(cells) == len(header) and cells[header.index("total_steps")].strip().isdecimal()


def gavel_table(lines: Iterable[str], path: Path | str) -> Table:
    """Table of lines of ten fields."""
    return Table(list(_TEN), _rows(lines))


def gavel_philly_table(lines: Iterable[str], path: Path | str) -> Table:
    """Table of lines of seven fields."""
    return Table(list(_SEVEN), _rows(lines))


def gavel_duration(steps: str, job_type: str, gpus: str, unit: tuple[float, float]) -> float:
    """Run time on V100 GPUs of one server, in seconds.

    Examples
    --------
    >>> round(gavel_duration("2931", "ResNet-50 (batch size 64)", "1", (1.0, 1.0)), 1)
    666.9
    """
    return _run_s(steps, _rates()["v100"].get(job_type, {}).get(gpus.strip()))


def gavel_philly_duration(steps: str, job_type: str, unit: tuple[float, float]) -> float:
    """Run time that a job of Philly had, in seconds.

    Examples
    --------
    >>> round(gavel_philly_duration("9588142", "Transformer (batch size 16)", (1.0, 1.0)))
    746411
    """
    return _run_s(steps, _rates()["philly"].get(job_type))


def _run_s(steps: str, steps_per_s: float | None) -> float:
    if steps_per_s is None:
        raise BrokenRuleError("unknown_throughput")
    return duration(repr(number(steps) / steps_per_s), (1.0, 1.0))


@cache
def _rates() -> Mapping[str, Any]:
    text = files("frostline.traces").joinpath("gavel_rates.json").read_text("utf-8")
    rates: dict[str, Any] = json.loads(text)
    return rates


def _rows(lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    for line, text in enumerate(lines, 1):
        if cells := text.rstrip("\r\n"):
            yield line, cells.split("\t")
