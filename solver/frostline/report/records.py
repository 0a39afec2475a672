"""What is known of the shipped instances, as data, as lines and as tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import exp, fsum, log
from typing import Any

from frostline.records import Outcome, Record
from frostline.report.numbers import number_text, percent_text
from frostline.report.table import Table

__all__ = ["gap_table", "outcome_line", "record_summary", "record_table"]


def record_summary(record: Record) -> dict[str, Any]:
    """A record as plain JSON values; times in seconds.

    Examples
    --------
    >>> from frostline.records import best_known
    >>> summary = record_summary(best_known("q06"))
    >>> {key: summary[key] for key in ("total_flow_s", "bound_flow_s", "proved", "gap")}
    {'total_flow_s': 135.0, 'bound_flow_s': 135.0, 'proved': True, 'gap': 0.0}
    """
    claim_us = record.solver_bound_us
    return {
        "name": record.name,
        "jobs": record.jobs,
        "choices": record.choices,
        "total_completion_s": record.value.us / 1e6,
        "bound_completion_s": record.bound.us / 1e6,
        "total_flow_s": record.flow_s,
        "bound_flow_s": record.bound_flow_s,
        "gap": record.gap,
        "proved": record.proved,
        "method": record.value.method,
        "bound_method": record.bound.method,
        "solver_bound_flow_s": None if claim_us is None else (claim_us - record.release_us) / 1e6,
        "schedule": record.value.file,
        "certificate": record.bound.file,
    }


def record_table(records: Iterable[Record]) -> Table:
    """Table of records: best flow, bound, what is left between them, and how both were found.

    Examples
    --------
    >>> from frostline.records import best_known
    >>> print(record_table([best_known("q06")]).text().splitlines()[0])
    instance  jobs  total flow s  bound s  gap     schedule by  bound by
    """
    rows = [
        (
            record.name,
            f"{record.jobs:,}",
            number_text(record.flow_s),
            number_text(record.bound_flow_s),
            "proved" if record.proved else percent_text(record.gap),
            record.value.method,
            record.bound.method,
        )
        for record in records
    ]
    header = ["instance", "jobs", "total flow s", "bound s", "gap", "schedule by", "bound by"]
    return Table(header, rows, left=(0, 5, 6))


def outcome_line(outcome: Outcome) -> str:
    """Line on what an attempt came to."""
    record = outcome.record
    left = "proved" if record.proved else f"gap {percent_text(record.gap)}"
    wrong = "".join(f"; before: {fault}" for fault in outcome.faults)
    methods = f"{record.value.method}, {record.bound.method}"
    return f"{record.name}: {outcome.verdict}, total flow {number_text(record.flow_s)} s, {left} ({methods}){wrong}"


def gap_table(rows: Sequence[Mapping[str, Any]], policies: Sequence[str]) -> Table:
    """Table of how much more total flow policies leave than the best known schedules, and their geometric means.

    Examples
    --------
    >>> rows = [{"name": "a", "best_flow_s": 10.0, "flow_s": {"fifo": 11.0}}]
    >>> print(gap_table(rows, ["fifo"]).text())
    instance  best flow s    fifo
    a                  10  10.0 %
    mean                -  10.0 %
    """
    cells = [
        [row["name"], number_text(row["best_flow_s"]), *(percent_text(_over(row, name)) for name in policies)]
        for row in rows
    ]
    logs = ([log(1 + _over(row, name)) for row in rows] for name in policies)
    means = [percent_text(exp(fsum(column) / len(column)) - 1 if column else None) for column in logs]
    return Table(["instance", "best flow s", *policies], [*cells, ["mean", "-", *means]])


def _over(row: Mapping[str, Any], policy: str) -> float:
    return float(row["flow_s"][policy] / row["best_flow_s"] - 1)
