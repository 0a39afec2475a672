"""Rules that a row of a trace can break, and the fault that says where and how it did."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

__all__ = ["RULES", "BrokenRuleError", "Fault"]

RULES: Mapping[str, str] = MappingProxyType(
    {
        "ambiguous_timestamp": "must occur exactly once in its zone; repair takes the earlier reading",
        "array_task": "shares its id with other tasks of its array; each gets a number behind it, which is no fault",
        "bad_estimate": "must be a run time above 0; repair forgets it",
        "bad_gpus": "must be a whole number of GPUs",
        "bad_start": "must be a time; repair forgets it",
        "bad_timestamp": "must be a date and time such as 2017-10-09 07:01:55, with an offset everywhere or nowhere",
        "bad_wait": "must be a time of at least 0; repair forgets it",
        "cpu_only": "must be at least 1; repair sets aside a row that asks for no GPU",
        "duplicate_row": "equals an earlier row",
        "duration_mismatch": "must be the time from start to end; repair keeps the duration",
        "field_count": "must be as many as in the header",
        "fractional_gpus": "must be a whole number of GPUs; repair rounds it up",
        "id_blanks": "must not begin or end with a blank; repair strips it where no other job has that id",
        "invalid_bytes": "must be UTF-8; repair replaces the bytes in texts by U+FFFD",
        "incomplete_job": "runs together with a task that cannot be read; repair keeps none of the job",
        "inverted": "must not lie before the start",
        "job_part": "tells of a part of a job that has a row of its own, which is no fault",
        "merged_task": "runs together with other tasks of its job, which gets the sum of their GPUs; no fault",
        "missing_end": "must be known",
        "missing_start": "must be known",
        "missing_value": "must not be missing",
        "negative_duration": "must be above 0",
        "never_started": "must have been started",
        "not_a_number": "must be a finite number",
        "not_finite_duration": "must be finite",
        "nul_bytes": "must not hold NUL characters",
        "out_of_range": "lies outside the range of times; is the time unit right?",
        "repeated_id": "must belong to one job only; repair keeps none of them",
        "start_before_submit": "must not lie before the submission; repair keeps the duration and forgets the start",
        "unfinished": "must have ended",
        "unknown_throughput": "must be steps of a job whose steps per second are known",
        "zero_duration": "must be above 0",
    }
)
"""Requirement behind each rule, by the name under which reports count it."""

_LONGEST_VALUE = 60


class BrokenRuleError(Exception):
    """A cell breaks a rule; ``fix`` is the value with which repair goes on, or None if it drops the row.

    Examples
    --------
    >>> BrokenRuleError("fractional_gpus", 2).fix
    2
    """

    def __init__(self, rule: str, fix: object = None) -> None:
        super().__init__(rule)
        self.rule = rule
        self.fix: Any = fix


class Fault(NamedTuple):
    """One fault of one row.

    Parameters
    ----------
    line : int
        Line of the file on which the row begins, counted from 1.
    column : str
        Column as the header spells it.
    value : str
        The cell as the file spells it.
    rule : str
        Name of the broken rule, a key of ``RULES``.
    fixable : bool
        Whether repair mends the row instead of dropping it.
    note : str
        What else helps to find the fault.

    Examples
    --------
    >>> str(Fault(3, "end", "40", "inverted"))
    "line 3: end='40' must not lie before the start (inverted)"
    """

    line: int
    column: str
    value: str
    rule: str
    fixable: bool = False
    note: str = ""

    def __str__(self) -> str:
        value = self.value if len(self.value) <= _LONGEST_VALUE else self.value[:_LONGEST_VALUE] + "…"
        requirement = RULES[self.rule].partition("; repair ")[0]
        return f"line {self.line}: {self.column}={value!r} {requirement}{self.note} ({self.rule})"
