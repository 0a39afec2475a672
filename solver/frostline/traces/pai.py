"""Rows of ``pai_task_table`` of the Alibaba PAI trace, which is published without its header."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from frostline.traces.table import Table, csv_table, first_lines

__all__ = ["begins_as_task", "task_table"]

_HEADER = (
    "job_name",
    "task_name",
    "inst_num",
    "status",
    "start_time",
    "end_time",
    "plan_cpu",
    "plan_mem",
    "plan_gpu",
    "gpu_type",
)
_STATES = frozenset({"Running", "Terminated", "Failed", "Waiting"})


def begins_as_task(line: str) -> bool:
    """Whether a line is a row of the task table.

    Examples
    --------
    >>> begins_as_task("j1,worker,4.0,Terminated,10.0,90.0,600.0,29.3,50.0,MISC"), begins_as_task("a,b,c")
    (True, False)
    """
    cells = line.rstrip("\r\n").split(",")
    return len(cells) == len(_HEADER) and cells[3] in _STATES


def task_table(lines: Iterable[str], path: Path | str) -> Table:
    """Table of a task table with or without its header.

    Raises
    ------
    FileError
        As of comma-separated lines.

    Examples
    --------
    >>> task_table(["j1,worker,4.0,Terminated,10.0,90.0,600.0,29.3,50.0,MISC"], "tasks.csv").header[:3]
    ['job_name', 'task_name', 'inst_num']
    """
    lines = iter(lines)
    head = first_lines(lines)
    bare = begins_as_task("".join(head).lstrip())
    return csv_table(chain(head, lines), path, _HEADER if bare else None)
