"""What a cell of a trace says: numbers, counts of GPUs, durations, timestamps, identifiers.

Every function takes the text of a cell and returns its value or raises ``BrokenRuleError``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from functools import lru_cache

from frostline.traces.rules import BrokenRuleError

__all__ = [
    "LATEST_S",
    "LONGEST_S",
    "MISSING",
    "MOST_GPUS",
    "TIME_UNITS",
    "Timestamps",
    "clock_duration",
    "clock_estimate",
    "duration",
    "end",
    "estimate",
    "gpu_count",
    "identifier",
    "instant",
    "lone_start",
    "number",
    "start",
    "wait",
]

MISSING = frozenset({"", "None", "none", "null", "NULL", "NA", "N/A", "Unknown", "unknown"})
"""Cells that stand for no value in the public traces."""

TIME_UNITS = {"s": (1.0, 1.0), "ms": (1.0, 1000.0), "min": (60.0, 1.0)}
"""Factor and divisor that turn a number of a time unit into seconds."""

LONGEST_S = 9.0e9
"""No job can hold a longer time, in seconds."""

LATEST_S = 4.4e9
"""Instants lie within it, so that any two of them differ by less than ``LONGEST_S``."""

MOST_GPUS = 1_000_000
"""No job can hold more GPUs."""

_EPOCH = datetime(1970, 1, 1)
_EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)
_CLOCK = re.compile(r"(?:([0-9]{1,9})-)?(?:([0-9]{1,9}):)?([0-9]{1,9}):([0-9]{1,2}(?:\.[0-9]+)?)")
_NO_LIMIT = frozenset({"UNLIMITED", "Partition_Limit"})
_SHORTEST_TIMESTAMP = len("2017-10-09 07:01")


def identifier(text: str) -> str:
    """Identifier as text: ``7``, ``07`` and ``7.0`` differ; blanks around it are a fault.

    Examples
    --------
    >>> identifier("007")
    '007'
    """
    if not (stripped := text.strip()):
        raise BrokenRuleError("missing_value")
    if stripped != text:
        raise BrokenRuleError("id_blanks", stripped)
    return text


@lru_cache(maxsize=4096)
def gpu_count(text: str) -> int:
    """Whole number of GPUs, at least 1; -1 stands for a missing value, as in the Standard Workload Format.

    Examples
    --------
    >>> gpu_count(" 8 "), gpu_count("8.0"), gpu_count("1e3")
    (8, 8, 1000)
    """
    value = number(text, "bad_gpus", "bad_gpus")
    if value == -1:
        raise BrokenRuleError("missing_value")
    if value == 0:
        raise BrokenRuleError("cpu_only")
    if not 0 < value <= MOST_GPUS:
        raise BrokenRuleError("bad_gpus")
    if value != int(value):
        raise BrokenRuleError("fractional_gpus", math.ceil(value))
    return int(value)


def duration(text: str, unit: tuple[float, float]) -> float:
    """Run time in seconds, above 0.

    Examples
    --------
    >>> duration("90", TIME_UNITS["min"])
    5400.0
    """
    value = number(text, infinite="not_finite_duration") * unit[0] / unit[1]
    if value < 0:
        raise BrokenRuleError("negative_duration")
    if value == 0:
        raise BrokenRuleError("zero_duration")
    if value >= LONGEST_S:
        raise BrokenRuleError("out_of_range")
    return value


def instant(text: str, unit: tuple[float, float]) -> float:
    """Time in seconds since an origin that the file does not tell.

    Examples
    --------
    >>> instant("-1500", TIME_UNITS["ms"])
    -1.5
    """
    return _within_range(number(text) * unit[0] / unit[1])


def start(text: str, read: Callable[[str], float], optional: bool = False) -> float:
    """Start of a run in seconds, as ``read`` takes it; where it is missing, nan if it is optional and else a fault."""
    return _missing("missing_start", optional) if _is_missing(text) else read(text)


def lone_start(text: str, read: Callable[[str], float], submit_s: float | None) -> float:
    """Start of a run whose end the file does not tell, nan where it is missing; repair forgets one that is wrong.

    Examples
    --------
    >>> lone_start("70", float, 10.0), lone_start("None", float, 10.0)
    (70.0, nan)
    """
    if _is_missing(text):
        return math.nan
    try:
        value = read(text)
    except BrokenRuleError as broken:
        if broken.fix is not None:
            raise
        raise BrokenRuleError("bad_start", math.nan) from broken
    if submit_s is not None and value < submit_s:
        raise BrokenRuleError("start_before_submit", math.nan)
    return value


def wait(text: str, unit: tuple[float, float]) -> float:
    """Time from submission to start in seconds, nan where it is missing or -1; repair forgets one that is wrong.

    Examples
    --------
    >>> wait("1.5", TIME_UNITS["min"]), wait("-1", TIME_UNITS["s"])
    (90.0, nan)
    """
    value = _optional(text, unit, "bad_wait")
    if value < 0:
        raise BrokenRuleError("bad_wait", math.nan)
    return value


def estimate(text: str, unit: tuple[float, float]) -> float:
    """Run time asked for in seconds, nan where it is missing or -1; repair forgets one that is wrong.

    Examples
    --------
    >>> estimate("2", TIME_UNITS["min"]), estimate("", TIME_UNITS["s"])
    (120.0, nan)
    """
    value = _optional(text, unit, "bad_estimate")
    if value <= 0:
        raise BrokenRuleError("bad_estimate", math.nan)
    return value


def _optional(text: str, unit: tuple[float, float], rule: str) -> float:
    """Number of seconds, nan where the cell or -1 says that there is none."""
    if _is_missing(text):
        return math.nan
    try:
        value = number(text)
    except BrokenRuleError as broken:
        raise BrokenRuleError(rule, math.nan) from broken
    if abs(value * unit[0] / unit[1]) >= LONGEST_S:
        raise BrokenRuleError(rule, math.nan)
    return math.nan if value == -1 else value * unit[0] / unit[1]


def clock_duration(text: str, unit: tuple[float, float]) -> float:
    """Run time in seconds, as a number or as days, hours, minutes and seconds.

    Examples
    --------
    >>> clock_duration("1-02:00:30", TIME_UNITS["s"]), clock_duration("02:00.5", TIME_UNITS["s"])
    (93630.0, 120.5)
    """
    return duration(text, unit) if (clock_s := _clock_s(text)) is None else duration(str(clock_s), TIME_UNITS["s"])


def clock_estimate(text: str, unit: tuple[float, float]) -> float:
    """Run time asked for in seconds, nan where it is missing or without limit; otherwise as :func:`clock_duration`.

    Examples
    --------
    >>> clock_estimate("2-00:00:00", TIME_UNITS["s"]), clock_estimate("UNLIMITED", TIME_UNITS["s"])
    (172800.0, nan)
    """
    if text.strip() in _NO_LIMIT:
        return math.nan
    return estimate(text, unit) if (clock_s := _clock_s(text)) is None else estimate(str(clock_s), TIME_UNITS["s"])


def _clock_s(text: str) -> float | None:
    match = _CLOCK.fullmatch(text.strip())
    if match is None:
        return None
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def end(text: str, read: Callable[[str], float], start_s: float, optional: bool = False) -> float:
    """End of a run in seconds, treated like its start; 0 after a later start stands for no end.

    Examples
    --------
    >>> end("70", float, 10.0)
    70.0
    """
    if _is_missing(text):
        return _missing("missing_end", optional)
    value = read(text)
    if value == 0 < start_s:
        return _missing("missing_end", optional)
    if value < start_s:
        raise BrokenRuleError("inverted")
    return value


def _is_missing(text: str) -> bool:
    return text.strip() in MISSING or text.strip().casefold() == "nan"


def _missing(rule: str, optional: bool) -> float:
    if optional:
        return math.nan
    raise BrokenRuleError(rule)


class Timestamps:
    """Reader of the timestamps of one file, as seconds since 1970.

    The first timestamp decides whether the file gives offsets from UTC; one of the other kind is a fault. Times
    without offset are read in ``zone``, or, without one, as the hands of a clock that is never put back or forward.

    Examples
    --------
    >>> read = Timestamps(None)
    >>> read("2017-10-09 07:02:55") - read("2017-10-09 07:01:55")
    60.0
    """

    def __init__(self, zone: tzinfo | None) -> None:
        self._zone = zone
        self._aware: bool | None = None

    @property
    def local(self) -> bool:
        """Whether times without offset were read, and in no zone."""
        return self._zone is None and self._aware is False

    def __call__(self, text: str) -> float:
        """Seconds since 1970 of a timestamp."""
        moment = _datetime(text)
        aware = moment.tzinfo is not None
        if self._aware is None:
            self._aware = aware
        if self._aware is not aware:
            raise BrokenRuleError("bad_timestamp")
        if aware:
            return (moment - _EPOCH_UTC).total_seconds()
        return (moment - _EPOCH).total_seconds() if self._zone is None else _in_zone(moment, self._zone)


def _datetime(text: str) -> datetime:
    text = text.strip()
    if text in MISSING:
        raise BrokenRuleError("missing_value")
    if len(text) < _SHORTEST_TIMESTAMP:
        raise BrokenRuleError("bad_timestamp")
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise BrokenRuleError("bad_timestamp") from None


def _in_zone(moment: datetime, zone: tzinfo) -> float:
    first, second = moment.replace(tzinfo=zone, fold=0), moment.replace(tzinfo=zone, fold=1)
    earliest = min(first.timestamp(), second.timestamp())
    if first.utcoffset() != second.utcoffset():
        raise BrokenRuleError("ambiguous_timestamp", earliest)
    return earliest


def number(text: str, word: str = "not_a_number", infinite: str = "not_a_number") -> float:
    """Finite number of a plain literal; ``word`` and ``infinite`` name the rules that other text breaks.

    Examples
    --------
    >>> number(" 2.5 ")
    2.5
    """
    try:
        value = float(text)
    except ValueError:
        raise BrokenRuleError("missing_value" if text.strip() in MISSING else word) from None
    if not math.isfinite(value):
        raise BrokenRuleError(infinite)
    if "_" in text or not text.isascii():
        raise BrokenRuleError(word)
    return value


def _within_range(seconds: float) -> float:
    if not -LATEST_S < seconds < LATEST_S:
        raise BrokenRuleError("out_of_range")
    return seconds
