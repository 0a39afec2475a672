"""Effective progress, rate efficiencies, and the state of a freezing job, worked by hand."""

from __future__ import annotations

import math

import pytest

from frostline.errors import InvalidValueError
from frostline.freezing.efficiency import FullRate, PowerRate, RateEfficiency, TableRate, rates_of
from frostline.freezing.evidence import ProgressScale
from frostline.freezing.penalty import DebtLaw
from frostline.freezing.progress import (
    FreezeMode,
    FreezeState,
    FreezeTerms,
    batch_efficiency,
    effective_progress,
    remaining_time_s,
    worth_changing,
)

LAW = DebtLaw(a=1, A=0, c=1, B_0=2)


def terms(**changes):
    return FreezeTerms(**({"shares": [0, 0.5, 1], "law": LAW, "quality_budget_points": 1.0} | changes))


def test_batch_efficiency_is_that_of_pollux():
    """(v + g) / (v / s + g) over s, at s = M / M_0, is (φ + M_0) / (φ + M) with φ = M_0 v / g."""
    g, v, base, s = 2.0, 6.0, 32, 4
    gain = (v + g) / (v / s + g)
    assert batch_efficiency(base * s, base, base * v / g) == pytest.approx(gain / s)
    assert batch_efficiency(base, base, 50) == 1.0
    assert batch_efficiency() == 1.0
    assert batch_efficiency(64, 32, math.inf) == 1.0
    assert batch_efficiency(64, 32, 0) == 0.5


@pytest.mark.parametrize("values", [(16, 32, 1), (0, 0, 1), (64, 32, -1), (64, 32, math.nan), (math.inf, 32, 1)])
def test_odd_batches_are_refused(values):
    with pytest.raises(InvalidValueError):
        batch_efficiency(*values)


def test_effective_progress_at_level_0_is_the_goodput():
    goodput = 800 * batch_efficiency(64, 32, 32)
    assert effective_progress(800, batch_efficiency(64, 32, 32), rates_of(FullRate(), [0, 1])[0]) == goodput
    assert remaining_time_s(1600, effective_progress(800)) == 2.0
    with pytest.raises(InvalidValueError, match="effective_samples_per_s"):
        remaining_time_s(1, 0)


def test_a_change_must_pay():
    """F09: a change costs 20 s and saves 0.5 s an iteration."""
    assert not worth_changing(30 * 0.5, 20)
    assert worth_changing(50 * 0.5, 20)
    assert not worth_changing(25, 20, remaining_s=1000, hysteresis=0.03)


def test_built_in_efficiencies():
    shares = (0.0, 0.5, 1.0)
    assert rates_of(FullRate(), shares) == (1, 1, 1)
    assert rates_of(TableRate([1, 0.9, 0.6]), shares) == (1, 0.9, 0.6)
    assert rates_of(PowerRate(loss=0.4, exponent=2), shares) == (1, 0.9, 0.6)
    assert isinstance(TableRate([1]), RateEfficiency)


@pytest.mark.parametrize(
    "rates", [[0.9, 0.8, 0.7], [1, 1.1, 0.9], [1, 0.5, 0], [1, 0.5, 0.6], [1, math.nan, 0.1], [1, 0.5]]
)
def test_a_plug_in_that_breaks_the_rules_is_refused(rates):
    class Plugin:
        def rates(self, shares):
            return rates

    with pytest.raises(InvalidValueError, match="Plugin: rates"):
        rates_of(Plugin(), [0, 0.5, 1])
    with pytest.raises(InvalidValueError, match="Plugin: rates"):
        terms(efficiency=Plugin())


@pytest.mark.parametrize("bad", [{"loss": 1}, {"loss": -0.1}, {"loss": 0.5, "exponent": 0}])
def test_power_rates_out_of_bounds_are_refused(bad):
    with pytest.raises(InvalidValueError, match="power rate"):
        PowerRate(**bad)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("shares", [0.5, 1]),
        ("quality_budget_points", -1),
        ("quality_budget_points", None),
        ("mode", "fixed-speed"),
        ("phases", 0),
        ("phases", 2.5),
        ("change_cost_s", -1),
        ("hysteresis", 2),
        ("frozen_units", [0, 1]),
    ],
)
def test_terms_out_of_bounds_are_refused(field, value):
    with pytest.raises(InvalidValueError, match=field):
        terms(**{field: value})


@pytest.mark.parametrize("level", [-1, 3, 1.5, None, "1", True])
def test_a_level_that_is_none_is_refused(level):
    """F10: one error for each, naming the level."""
    with pytest.raises(InvalidValueError, match="level"):
        FreezeState(progress=0.5).moved(terms(), level)


def test_efficiency_counts_for_fixed_quality_only():
    rate = PowerRate(loss=0.5)
    assert terms(efficiency=rate).rates == (1, 1, 1)
    fixed = terms(efficiency=rate, mode="fixed-quality")
    assert fixed.mode is FreezeMode.FIXED_QUALITY
    assert fixed.rates == (1, 0.75, 0.5)
    state = FreezeState(progress=0.2, level=2).advanced(fixed, 1)
    assert state.spent_points == 0.0


def test_nothing_may_be_frozen_before_the_warm_up():
    with pytest.raises(InvalidValueError, match=r"must be 0 before progress 0\.2"):
        FreezeState(progress=0.1).moved(terms(), 1)
    assert FreezeState(progress=0.2).moved(terms(), 1).level == 1


def test_debt_is_booked_at_the_level_it_is_made_at():
    state = FreezeState().advanced(terms(), 0.2)
    assert state.spent_points == 0.0
    state = state.moved(terms(), 1).advanced(terms(), 0.5)
    assert state.spent_points == pytest.approx(0.3)
    state = state.moved(terms(), 2).advanced(terms(), 0.75)
    assert state.spent_points == pytest.approx(0.8)
    assert state.remaining_points(terms()) == pytest.approx(0.2)
    assert state.moved(terms(), 0).advanced(terms(), 1).spent_points == pytest.approx(0.8)


def test_with_nothing_new_nothing_changes():
    state = FreezeState(progress=0.5, level=1)
    assert state.advanced(terms(), 0.5) is state
    assert state.moved(terms(), 1) is state
    assert state.reported(1, 0) is state
    assert state.reported(1, 1) is state


def test_progress_does_not_go_back():
    with pytest.raises(InvalidValueError, match="progress"):
        FreezeState(progress=0.5).advanced(terms(), 0.4)
    with pytest.raises(InvalidValueError, match="step"):
        FreezeState(progress=0.5, step=10).advanced(terms(), 0.6, step=9)


def test_a_job_that_improves_half_as_fast_makes_debt_twice_as_fast():
    slow = FreezeState(progress=0.5, level=2, scale=ProgressScale(value=0.5))
    assert slow.advanced(terms(), 0.6).spent_points == pytest.approx(0.4)


def test_gradients_raise_the_debt_of_the_present_level():
    state = FreezeState(progress=0.5, level=1, step=10).observed([(9, 1), (1, 1), (0, 1)])
    assert state.debt_factors(terms()) == pytest.approx((1, 1.8, 1))
    assert state.advanced(terms(), 0.6).spent_points == pytest.approx(0.1 * 2 * 0.9)


def test_phases_are_the_warm_up_and_then_equal():
    assert terms(phases=4).boundaries() == pytest.approx((0, 0.2, 0.4, 0.6, 0.8, 1))
    assert terms(phases=4).boundaries(0.5) == pytest.approx((0.5, 0.6, 0.8, 1))
    assert terms(phases=4).boundaries(1.0) == (1.0, 1.0)
