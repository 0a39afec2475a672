"""From the cells of one row to what a job needs, with every fault of the row on the way."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import tzinfo
from functools import partial
from operator import itemgetter
from typing import NamedTuple, TypeVar

from frostline.traces import cells
from frostline.traces.layout import Layout, TraceFormat
from frostline.traces.rules import BrokenRuleError, Fault
from frostline.traces.table import text_fault

__all__ = ["Record", "RowReader"]

T = TypeVar("T")

_TEXTS = ("user", "group", "name", "status")
# A run may differ from its end minus its start by the rounding of two whole seconds.
_ROUNDING_S = 1.0
_SURROGATE = re.compile("[\ud800-\udfff]")


class Record(NamedTuple):
    """A row whose faults, if any, can be mended; times as in the file, in seconds, None where they are not told."""

    line: int
    id: str
    submit_s: float
    gpus: int
    duration_s: float
    texts: tuple[str, ...]
    repairs: tuple[str, ...]
    start_s: float | None = None
    estimate_s: float | None = None


class RowReader:
    """Reads rows of one layout; afterwards ``faults`` holds the faults of the last row.

    Parameters
    ----------
    fmt : TraceFormat
        Format of the file.
    layout : Layout
        Its columns.
    unit : (float, float)
        Factor and divisor that make seconds.
    zone : tzinfo or None
        Zone of timestamps without offset.
    by_instance : bool
        Whether the fraction of a GPU that one instance of a job asks for is rounded up, instead of the job's total.
    """

    def __init__(
        self,
        fmt: TraceFormat,
        layout: Layout,
        unit: tuple[float, float],
        zone: tzinfo | None,
        by_instance: bool = False,
    ) -> None:
        self.faults: list[Fault] = []
        self._layout, self._unit, self._numbered = layout, unit, fmt.numbered
        self._part, self._by_instance = fmt.part, by_instance
        self._computed = {
            key: (value, [layout.at.get(field, -1) for field in fields])
            for key, (fields, value) in fmt.computed.items()
        }
        self._ruled_out = [(key, rules) for key, rules in fmt.ruled_out.items() if key in layout.at]
        texts = (layout.at[field] for field in _TEXTS if field in layout.at)
        self._free = {*range(len(layout.header))}.difference(layout.at.values()).union(texts)
        self._instant: Callable[[str], float] = (
            cells.Timestamps(zone) if fmt.timestamps else partial(cells.instant, unit=unit)
        )
        self._timed = "duration" in layout.at
        self._starts, self._waits = "start" in layout.at, "wait" in layout.at
        self._ends = self._starts and "end" in layout.at
        self._estimates = "estimate" in layout.at
        # The cell that is added behind the last one is what absent columns hold.
        self._texts = itemgetter(*(layout.at.get(field, -1) for field in _TEXTS))
        self._line, self._row = 0, [""]

    @property
    def local_times(self) -> bool:
        """Whether timestamps without offset were read, and in no zone."""
        return isinstance(self._instant, cells.Timestamps) and self._instant.local

    def is_part(self, row: list[str]) -> bool:
        """Whether a row tells of a part of a job that has a row of its own."""
        if self._part is None or len(row) != len(self._layout.header):
            return False
        field, pattern = self._part
        return field in self._layout.at and pattern.fullmatch(row[self._layout.at[field]]) is not None

    def identifier(self, row: list[str]) -> str:
        """Cell of the identifier of a row, empty where there is none."""
        at = self._layout.at.get("id", -1)
        return row[at].strip() if 0 <= at < len(row) else ""

    def read(self, number: int, line: int, row: list[str]) -> Record | None:
        """Record of a row, or None where a fault cannot be mended.

        Parameters
        ----------
        number : int
            Number of the row, counted from 1, for formats without identifiers.
        line : int
            Line on which it begins.
        row : list of str
            Its cells; one is added.
        """
        self._line, self._row = line, row
        self.faults = faults = self._broken_row()
        if not all(fault.fixable for fault in faults):
            return None
        row.append("")
        if self._ruled_out and self._is_ruled_out():
            return None
        job = str(number) if self._numbered else self._parse("id", cells.identifier)
        submit_s = self._parse("submit", self._instant)
        gpus = self._gpus()
        duration_s = self._parse("duration", cells.duration, self._unit) if self._timed else None
        start_s = estimate_s = None
        if self._starts:
            start_s, duration_s = self._run(submit_s, duration_s)
        if self._waits and start_s is None and submit_s is not None:
            wait_s = self._optional("wait", cells.wait, self._unit)
            start_s = None if wait_s is None else submit_s + wait_s
        if self._estimates:
            estimate_s = self._optional("estimate", cells.estimate, self._unit)
        if job is None or submit_s is None or gpus is None or duration_s is None:
            return None
        if faults and not all(fault.fixable for fault in faults):
            return None
        repairs = tuple(fault.rule for fault in faults) if faults else ()
        return Record(line, job, submit_s, gpus, duration_s, self._texts(row), repairs, start_s, estimate_s)

    def _broken_row(self) -> list[Fault]:
        row, header = self._row, self._layout.header
        if len(row) != len(header):
            note = f" ({len(header)})"
            return [Fault(self._line, "fields", str(len(row)), "field_count", note=note)]
        if text_fault("".join(row)):
            return [self._mended(i, rule) for i, cell in enumerate(row) if (rule := text_fault(cell))]
        return []

    def _mended(self, at: int, rule: str) -> Fault:
        """Fault of a cell of broken text, which is mended where nothing is parsed from it."""
        cell, fixable = self._row[at], rule == "invalid_bytes" and at in self._free
        if fixable:
            self._row[at] = _SURROGATE.sub("\ufffd", cell)
        return Fault(self._line, self._layout.header[at], cell, rule, fixable)

    def _is_ruled_out(self) -> bool:
        """Whether a field says that the row is no job to read; that it asks for no GPU is told as well."""
        before = len(self.faults)
        for field, rules in self._ruled_out:
            word = self._row[self._layout.at[field]].split(maxsplit=1)[:1]
            if word and word[0] in rules:
                self._fault(field, rules[word[0]], fixable=False)
        after = len(self.faults)
        if after > before:
            self._gpus()
            self.faults[after:] = [fault for fault in self.faults[after:] if fault.rule == "cpu_only"]
        return after > before

    def _gpus(self) -> int | None:
        if "gpus" in self._computed:
            return self._parse("gpus", cells.gpu_count, self._by_instance)
        return self._parse("gpus", cells.gpu_count)

    def _parse(self, field: str, parse: Callable[..., T], *arguments: object) -> T | None:
        try:
            if field in self._computed:
                compute, places = self._computed[field]
                computed: T = compute(*(self._row[at] for at in places), *arguments)
                return computed
            return parse(self._row[self._layout.at[field]], *arguments)
        except BrokenRuleError as broken:
            self._fault(field, broken.rule, fixable=broken.fix is not None)
            fix: T | None = broken.fix
            return fix

    def _fault(self, field: str, rule: str, *, fixable: bool) -> None:
        at = self._layout.at[field]
        self.faults.append(Fault(self._line, self._layout.header[at], self._row[at], rule, fixable))

    def _optional(self, field: str, parse: Callable[..., float], *arguments: object) -> float | None:
        """Value of a cell that can be forgotten; None where there is none."""
        value = self._parse(field, parse, *arguments)
        return None if value is None or math.isnan(value) else value

    def _run(self, submit_s: float | None, duration_s: float | None) -> tuple[float | None, float | None]:
        """Start and duration of a row with a start."""
        if not self._ends:
            return self._optional("start", cells.lone_start, self._instant, submit_s), duration_s
        start_s = self._optional("start", cells.start, self._instant, self._timed)
        end_s = self._optional("end", cells.end, self._instant, -math.inf if start_s is None else start_s, self._timed)
        if start_s is not None and end_s is not None:
            duration_s = self._length(start_s, end_s, duration_s)
        if start_s is not None and submit_s is not None and start_s < submit_s:
            self._fault("start", "start_before_submit", fixable=True)
            start_s = None
        return start_s, duration_s

    def _length(self, start_s: float, end_s: float, duration_s: float | None) -> float | None:
        """Duration, checked against the ends or taken from them."""
        run_s = round(end_s - start_s, 6)
        if self._timed:
            if duration_s is not None and abs(run_s - duration_s) > _ROUNDING_S:
                self._fault("duration", "duration_mismatch", fixable=True)
            return duration_s
        if run_s <= 0:
            self._fault("end", "inverted" if run_s < 0 else "zero_duration", fixable=False)
            return None
        return run_s
