"""Numbers as people read them."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["bytes_text", "counted", "counts_text", "duration_text", "number_text", "percent_text"]

_NONE = "-"


def number_text(value: float | None) -> str:
    """Number with four digits that count, or whole with thousands apart; a dash for None.

    Examples
    --------
    >>> [number_text(value) for value in (None, 0.25, 3.14159, 1234567.8)]
    ['-', '0.25', '3.142', '1,234,568']
    """
    if value is None:
        return _NONE
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.4g}"


def percent_text(value: float | None) -> str:
    """Share as a percentage; a dash for None.

    Examples
    --------
    >>> percent_text(0.4375)
    '43.8 %'
    """
    return _NONE if value is None else f"{100 * value:.1f} %"


def duration_text(value_s: float) -> str:
    """Duration in the largest unit of which it has two.

    Examples
    --------
    >>> [duration_text(value) for value in (0.5, 90, 7200, 864000)]
    ['0.5 s', '90 s', '2 h', '10 days']
    """
    for unit, length in (("days", 86400), ("h", 3600), ("min", 60)):
        if value_s >= 2 * length:
            return f"{value_s / length:.3g} {unit}"
    return f"{value_s:.3g} s"


def bytes_text(value: float) -> str:
    """Bytes with three digits that count and a decimal prefix.

    Examples
    --------
    >>> [bytes_text(value) for value in (0, 999, 1_500_000, 10**12)]
    ['0 B', '999 B', '1.5 MB', '1 TB']
    """
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= size:
            return f"{value / size:.4g} {unit}"
    return f"{value:.4g} B"


def counted(count: int, one: str, many: str = "") -> str:
    """A number with what it counts.

    Examples
    --------
    >>> counted(1, "outage"), counted(2000, "outage"), counted(0, "job waits", "jobs wait")
    ('1 outage', '2,000 outages', '0 jobs wait')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def counts_text(counts: Mapping[str, int]) -> str:
    """Total of named counts, and each in parentheses.

    Examples
    --------
    >>> counts_text({}), counts_text({"cpu_only": 3, "inverted": 1})
    ('0', '4 (cpu_only: 3, inverted: 1)')
    """
    total = f"{sum(counts.values()):,}"
    return total + (f" ({', '.join(f'{name}: {count:,}' for name, count in counts.items())})" if counts else "")
