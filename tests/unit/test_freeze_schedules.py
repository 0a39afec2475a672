"""Published freezing schedules, against levels that were trained and worked by hand."""

from __future__ import annotations

import csv
import math

import pytest

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.freezing.schedules import (
    FREEZE_SCHEDULES,
    AutoFreeze,
    FreezeOut,
    PipeTransformer,
    freeze_schedule,
    schedule_levels,
)


@pytest.mark.parametrize(
    ("name", "schedule"),
    [
        ("freezeout linear t0=.5", FreezeOut(units=8, t_0=0.5)),
        ("freezeout cubic t0=.8", FreezeOut(units=8, t_0=0.8, power=3)),
        ("pipetransformer a=1/15", PipeTransformer(units=8, alpha=1 / 15)),
        ("pipetransformer a=1/5", PipeTransformer(units=8, alpha=1 / 5)),
    ],
)
def test_levels_of_the_trained_schedules(shared, name, schedule):
    with (shared / "data" / "freezing" / "validate_sched.csv").open(encoding="utf-8") as file:
        rows = {row["schedule"]: row["levels"] for row in csv.DictReader(file)}
    assert "-".join(map(str, schedule_levels(schedule, 15))) == rows[name]


def test_pipetransformer_is_its_recursion():
    frozen, units, alpha = 0.0, 24, 0.3
    for epoch in range(12):
        assert PipeTransformer(units=units, alpha=alpha).units_frozen(epoch, 12) == min(math.floor(frozen + 1e-9), 23)
        frozen += alpha * (units - frozen)


@pytest.mark.parametrize("name", sorted(FREEZE_SCHEDULES))
def test_levels_never_fall_and_never_reach_the_head(name):
    levels = schedule_levels(freeze_schedule(name, 5), 40)
    assert list(levels) == sorted(levels)
    assert levels[0] == 0
    assert max(levels) <= 4


def test_autofreeze_freezes_before_the_first_unit_above_the_percentile():
    rule = AutoFreeze()
    assert rule.next_level(0, [10, 10, 10, 10], [9.9, 9.8, 5, 4]) == 2
    assert rule.next_level(1, [0, 10, 10, 10], [0, 1, 9.9, 9.8]) == 1
    assert rule.next_level(3, [1, 1, 1, 1], [1, 1, 1, 1]) == 3
    assert AutoFreeze(percentile=100).next_level(0, [10] * 4, [9.9, 9.8, 9.7, 1]) == 3
    assert AutoFreeze(percentile=0).next_level(0, [10] * 4, [1, 9, 9, 9.9]) == 0


@pytest.mark.parametrize(
    ("level", "before", "after"),
    [(-1, [1], [1]), (1, [1], [1]), (0, [1, 2], [1]), (0, [1], [math.nan]), (0, [-1], [1]), (0.5, [1], [1])],
)
def test_autofreeze_refuses_odd_norms(level, before, after):
    with pytest.raises(InvalidValueError, match="AutoFreeze"):
        AutoFreeze().next_level(level, before, after)


def test_odd_parameters_are_refused():
    for make in (
        lambda: FreezeOut(units=1),
        lambda: FreezeOut(units=4, t_0=1.5),
        lambda: FreezeOut(units=4, power=0),
        lambda: PipeTransformer(units=4, alpha=-0.1),
        lambda: PipeTransformer(units=2.5),
        lambda: AutoFreeze(percentile=101),
        lambda: schedule_levels(FreezeOut(units=4), 0),
        lambda: FreezeOut(units=4).units_frozen(5, 5),
    ):
        with pytest.raises(InvalidValueError):
            make()
    with pytest.raises(UnknownNameError, match="freezeout-cubic"):
        freeze_schedule("freezeout-cubik", 4)
