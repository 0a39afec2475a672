"""Seconds and microseconds, bytes, and numbers taken from callers.

The public interface speaks seconds (float) and bytes (int); inside, time is whole microseconds. A duration is
rounded up once, a release time to the nearest microsecond.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

from frostline.errors import InvalidValueError

__all__ = ["US_PER_S", "as_bytes", "as_finite", "as_int", "duration_us", "instant_us", "seconds"]

US_PER_S = 1_000_000
"""Microseconds per second."""

# Latest instant whose microseconds a float of seconds still tells apart to better than one part in 2^53 / 1e6.
_MAX_SECONDS = 9.0e9

_BYTES = {"B": 1, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_BYTES |= {"KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
_BYTES |= {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_BYTES |= {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_QUANTITY = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*")


def instant_us(instant_s: float) -> int:
    """Microsecond nearest to an instant in seconds.

    Examples
    --------
    >>> instant_us(0.1), instant_us(1.0000004)
    (100000, 1000000)
    """
    return round(instant_s * US_PER_S)


def duration_us(duration_s: float) -> int:
    """Microseconds of a duration in seconds, rounded up; the last bits of the product are not a microsecond.

    Examples
    --------
    >>> duration_us(1.1), duration_us(1e-9), duration_us(0.25)
    (1100000, 1, 250000)
    """
    exact = duration_s * US_PER_S
    nearest = round(exact)
    if abs(exact - nearest) <= 4 * math.ulp(exact):
        return nearest
    return math.ceil(exact)


def seconds(time_us: int) -> float:
    """Seconds of a whole number of microseconds.

    Examples
    --------
    >>> seconds(1_500_000)
    1.5
    """
    return time_us / US_PER_S


def as_int(value: object, subject: str, field: str, minimum: int | None = None) -> int:
    """Whole number given as int, numpy integer, 8.0 or Decimal("8"); truth values, text and fractions are refused.

    Raises
    ------
    InvalidValueError
        The value is not a whole number or lies below ``minimum``.

    Examples
    --------
    >>> as_int(8.0, "job 'a'", "gpus", 1)
    8
    """
    if type(value) is int:
        number = value
    elif isinstance(value, bool) or type(value).__name__ == "bool" or not isinstance(value, (Integral, Real, Decimal)):
        raise InvalidValueError(subject, field, value, "must be a whole number")
    else:
        number = _whole(value, subject, field)
    if minimum is not None and number < minimum:
        raise InvalidValueError(subject, field, value, f"must be at least {minimum}")
    return number


def _whole(value: Any, subject: str, field: str) -> int:
    if not math.isfinite(_float(value)) or value != int(value):
        raise InvalidValueError(subject, field, value, "must be a whole number")
    return int(value)


def as_finite(
    value: object, subject: str, field: str, minimum: float | None = None, maximum: float = _MAX_SECONDS
) -> float:
    """Finite number as a float, at least ``minimum`` and at most ``maximum``.

    Raises
    ------
    InvalidValueError
        The value is no number, is not finite, or lies outside the bounds.

    Examples
    --------
    >>> as_finite(3, "job 'a'", "duration_s", 0)
    3.0
    """
    if type(value) is float:
        number = value
    elif isinstance(value, bool) or not isinstance(value, (Real, Decimal)):
        raise InvalidValueError(subject, field, value, "must be a number")
    else:
        number = _float(value)
    if not math.isfinite(number):
        raise InvalidValueError(subject, field, value, "must be finite")
    if minimum is not None and number < minimum:
        raise InvalidValueError(subject, field, value, f"must be at least {minimum:g}")
    if number > maximum:
        raise InvalidValueError(subject, field, value, f"must be at most {maximum:g}")
    return number


def _float(value: Real | Decimal) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf
    except ValueError:  # a signalling NaN
        return math.nan


def as_bytes(value: object, subject: str = "memory", field: str = "value") -> int:
    """Bytes of a size with an explicit unit; bare numbers and one-letter lower-case units are refused.

    Raises
    ------
    InvalidValueError
        No unit, an ambiguous unit, or not a size at all.

    Examples
    --------
    >>> as_bytes("16GiB"), as_bytes("16GB"), as_bytes("16Gi")
    (17179869184, 16000000000, 17179869184)
    """
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    if match is None or match[2] not in _BYTES:
        raise InvalidValueError(subject, field, value, "must be a size with a unit, such as 16GiB or 16GB")
    return int(Decimal(match[1]) * int(_BYTES[match[2]]))
