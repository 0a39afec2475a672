"""Units: seconds and microseconds, bytes with a unit, numbers from callers."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frostline.errors import InvalidValueError
from frostline.units import US_PER_S, as_bytes, as_finite, as_int, duration_us, instant_us, seconds


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("16Gi", 17_179_869_184),
        ("16GiB", 17_179_869_184),
        ("16GB", 16_000_000_000),
        ("16G", 16_000_000_000),
        (" 1.5 GiB ", 1_610_612_736),
        ("0B", 0),
        ("46068 MiB", 48_305_799_168),
        ("3 TB", 3_000_000_000_000),
    ],
)
def test_t14_sizes_with_a_unit(text: str, size: int) -> None:
    assert as_bytes(text) == size


@pytest.mark.parametrize(
    "text", ["400m", "16g", "16", "", "GiB", "-1GB", "1e3GB", "16 Gib", "16 gb", 16, None, "1GB 2GB"]
)
def test_t14_sizes_without_a_clear_unit_are_refused(text: Any) -> None:
    with pytest.raises(InvalidValueError, match="must be a size with a unit, such as 16GiB or 16GB"):
        as_bytes(text)


def test_the_error_of_a_size_names_what_carries_it() -> None:
    with pytest.raises(InvalidValueError, match="GPU type 'x': memory='16'"):
        as_bytes("16", "GPU type 'x'", "memory")


def test_q19_ten_tenths_of_a_second_are_one() -> None:
    clock_us = sum(duration_us(0.1) for _ in range(10))
    assert seconds(clock_us) == 1.0
    left_us = duration_us(3 * 0.1)
    for _ in range(3):
        left_us -= duration_us(0.1)
    assert left_us == 0


@pytest.mark.parametrize(
    ("duration_s", "expected_us"),
    [(0.1, 100_000), (0.3, 300_000), (0.1 + 0.2, 300_000), (1.1, 1_100_000), (2**-20, 1), (1e-6, 1), (1.0000001e-6, 2)],
)
def test_durations_round_up_once(duration_s: float, expected_us: int) -> None:
    assert duration_us(duration_s) == expected_us


@given(st.integers(1, 10**15))
def test_whole_microseconds_are_kept(time_us: int) -> None:
    assert duration_us(seconds(time_us)) == time_us
    assert instant_us(seconds(time_us)) == time_us
    assert instant_us(seconds(-time_us)) == -time_us


@given(st.floats(1e-9, 1e9))
def test_a_duration_is_never_cut_by_more_than_its_last_bits(duration_s: float) -> None:
    exact_us = Fraction(duration_s) * US_PER_S
    slack = Fraction(5 * math.ulp(duration_s * US_PER_S))
    assert exact_us - slack <= duration_us(duration_s) < exact_us + 1


@given(st.floats(-8e9, 8e9))
def test_an_instant_is_the_nearest_microsecond(instant_s: float) -> None:
    error_us = abs(instant_us(instant_s) - Fraction(instant_s) * US_PER_S)
    assert error_us <= Fraction(1, 2) + Fraction(math.ulp(instant_s * US_PER_S))


EIGHTS = [8, 8.0, np.int64(8), np.int32(8), np.uint8(8), np.float64(8.0), np.float32(8.0), Decimal(8), Fraction(8)]


@pytest.mark.parametrize("value", EIGHTS, ids=lambda value: type(value).__name__)
def test_s12_whole_numbers_of_any_type(value: Any) -> None:
    number = as_int(value, "job 'a'", "gpus", 1)
    assert number == 8
    assert type(number) is int
    assert type(as_finite(value, "job 'a'", "x")) is float


@pytest.mark.parametrize(
    "value",
    [
        True,
        np.True_,
        "8",
        b"8",
        None,
        [8],
        7.9999999,
        math.nan,
        math.inf,
        Decimal("NaN"),
        Fraction(1, 2),
        8 + 0j,
        Decimal("sNaN"),
    ],
)
def test_s12_what_is_no_whole_number(value: Any) -> None:
    with pytest.raises(InvalidValueError, match=r"job 'a': gpus=.* must be a whole number"):
        as_int(value, "job 'a'", "gpus")


@pytest.mark.parametrize("value", [True, np.True_, "8", None, [8], 8 + 0j])
def test_what_is_no_number(value: Any) -> None:
    with pytest.raises(InvalidValueError, match=r"job 'a': weight=.* must be a number"):
        as_finite(value, "job 'a'", "weight")


@pytest.mark.parametrize(
    "value", [math.nan, -math.inf, np.float64("inf"), Decimal("NaN"), Decimal("sNaN"), 10**400, -(10**400)]
)
def test_what_is_not_finite(value: Any) -> None:
    with pytest.raises(InvalidValueError, match="must be finite"):
        as_finite(value, "job 'a'", "weight")


def test_bounds_are_named() -> None:
    with pytest.raises(InvalidValueError, match="gpus=0 must be at least 1"):
        as_int(0, "job 'a'", "gpus", 1)
    with pytest.raises(InvalidValueError, match=r"x=0.5 must be at least 1"):
        as_finite(0.5, "job 'a'", "x", 1)
    with pytest.raises(InvalidValueError, match=r"x=1e\+17 must be at most 9e\+09"):
        as_finite(1e17, "job 'a'", "x")
