"""Freeze trajectories: by hand, and against every sequence of levels."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from frostline.errors import InvalidValueError
from frostline.freezing.efficiency import TableRate
from frostline.freezing.evidence import ProgressScale
from frostline.freezing.penalty import DebtLaw
from frostline.freezing.progress import FreezeState, FreezeTerms
from frostline.freezing.trajectory import choose_level, freeze_trajectory, plan_trajectory

FREE = DebtLaw(a=1, A=0, c=1, B_0=0)


def best_time(times, debts, budget, cost, initial):
    """Least time of every sequence of levels within the budget."""
    phases, levels = debts.shape
    found = math.inf
    for path in itertools.product(range(levels), repeat=phases):
        if sum(debts[phase, level] for phase, level in enumerate(path)) <= budget:
            changes = sum(a != b for a, b in itertools.pairwise((initial, *path)))
            found = min(found, sum(times[phase, level] for phase, level in enumerate(path)) + cost * changes)
    return found


@pytest.mark.parametrize("seed", range(40))
def test_least_time_of_all_sequences(seed):
    rng = np.random.default_rng(seed)
    for cost in (0.0, 1.0, 7.0, 40.0):
        phases, levels = int(rng.integers(1, 6)), int(rng.integers(1, 5))
        times = rng.integers(0, 40, (phases, levels)).astype(float)
        debts = rng.integers(0, 30, (phases, levels)) / 8.0
        debts[rng.random((phases, levels)) < 0.15] = math.inf
        debts[:, 0] = 0.0
        budget, initial = float(rng.integers(0, 80)) / 8, int(rng.integers(0, levels))
        plan = plan_trajectory(times, debts, budget, change_cost_s=cost, initial_level=initial)
        assert plan.time_s == best_time(times, debts, budget, cost, initial)
        assert plan.optimal
        assert plan.debt_points == sum(debts[phase, level] for phase, level in enumerate(plan.levels)) <= budget


def test_without_a_budget_nothing_that_costs_is_frozen():
    assert plan_trajectory([2, 1], [[0, 1e-9]] * 3, 0).levels == (0, 0, 0)
    assert plan_trajectory([2, 1], [[0, 0]] * 3, 0).levels == (1, 1, 1)


def test_a_budget_is_used_where_debt_is_low():
    plan = plan_trajectory([10, 6, 3], [[0, 8, 16], [0, 4, 8], [0, 2, 4], [0, 1, 2]], 5)
    assert plan.levels == (0, 0, 1, 2)
    assert (plan.time_s, plan.debt_points, plan.changes) == (29, 4, 2)


def test_of_equal_times_the_less_indebted_wins_then_fewer_changes():
    assert plan_trajectory([5, 5], [[0, 1], [0, 1]], 9, initial_level=1).levels == (0, 0)
    assert plan_trajectory([5, 5], [[0, 0], [0, 0]], 9, initial_level=1).levels == (1, 1)


def test_debts_are_rounded_up():
    """Ten debts of 0.1 + 3e-13 points fit nine times into 1.0."""
    plan = plan_trajectory([2, 1], [[0, 0.1 + 3e-13]] * 10, 1.0)
    assert sum(plan.levels) == 9


def test_a_decimal_budget_that_is_met_exactly_is_kept_to():
    assert plan_trajectory([2, 1], [[0, 0.1]] * 3, 0.3).levels == (1, 1, 1)


def test_proportional_times_and_debts_are_bounded_if_not_solved():
    """Saving and debt are proportional, so that no state dominates another: the answer keeps to the budget."""
    rng = np.random.default_rng(0)
    debts = rng.random((14, 9))
    debts[:, 0] = 0.0
    plan = plan_trajectory(100 - 50 * debts, debts, 3.0)
    assert plan.debt_points <= 3.0
    assert plan.bound_s <= plan.time_s <= plan.bound_s + 1e-3


@pytest.mark.parametrize(
    "bad",
    [
        {"times_s": [1, 2, 3]},
        {"times_s": [[1, 2]]},
        {"times_s": [1, -1]},
        {"times_s": [1, math.nan]},
        {"times_s": ["a", "b"]},
        {"debts_points": [[0, -1], [0, 1]]},
        {"debts_points": [[1, 1], [0, 1]]},
        {"debts_points": [[0, math.nan], [0, 1]]},
        {"debts_points": [0, 1]},
        {"debts_points": [[0], [0, 1]]},
        {"debts_points": []},
        {"budget_points": -1},
        {"change_cost_s": -1},
        {"initial_level": 2},
        {"initial_level": -1},
        {"boundaries": [0, 1]},
    ],
)
def test_bad_problems_are_refused(bad):
    good = {"times_s": [2, 1], "debts_points": [[0, 1], [0, 1]], "budget_points": 1}
    with pytest.raises(InvalidValueError):
        plan_trajectory(**(good | bad))


def terms(**changes):
    law = DebtLaw(a=1, A=40, c=10, B_0=1)
    return FreezeTerms(**({"shares": [0, 0.5, 1], "law": law, "quality_budget_points": 1.0, "phases": 8} | changes))


TIMES_S = [1000.0, 700.0, 400.0]


def test_the_plan_keeps_to_the_budget_and_the_warm_up():
    plan = freeze_trajectory(terms(), FreezeState(), TIMES_S)
    assert plan.levels[0] == 0
    assert plan.boundaries[:2] == (0.0, 0.2)
    assert terms().law.history_points(plan.history(terms().shares)) <= plan.debt_points + 1e-12 <= 1.0 + 1e-12
    assert list(plan.levels) == sorted(plan.levels)


def test_level_0_alone_is_the_plan_without_freezing():
    """F05: with no budget the plan is that of a job that cannot freeze: its time to the last bit."""
    plan = freeze_trajectory(terms(quality_budget_points=0.0), FreezeState(progress=0.2), TIMES_S)
    alone = freeze_trajectory(terms(shares=[0]), FreezeState(progress=0.2), TIMES_S[:1])
    assert (plan.levels, plan.time_s, plan.debt_points) == (alone.levels, alone.time_s, 0.0)


def test_with_fixed_quality_steps_are_stretched_and_debt_is_not_counted():
    """Level 2 takes 400 s at half a step's worth: 800 s; level 1 takes 700 s at full worth."""
    fixed = terms(mode="fixed-quality", efficiency=TableRate([1, 1, 0.5]), quality_budget_points=0.0)
    plan = freeze_trajectory(fixed, FreezeState(progress=0.2), TIMES_S)
    assert set(plan.levels) == {1}
    assert plan.time_s == pytest.approx(0.8 * 700 + fixed.change_cost_s)


def test_times_must_fit_the_levels():
    for times in ([1, 2], [1, 2, -3], [1, 2, math.inf]):
        with pytest.raises(InvalidValueError, match="times_s"):
            freeze_trajectory(terms(), FreezeState(), times)


@pytest.mark.parametrize(("left", "level"), [(30, 0), (50, 1)])
def test_a_change_that_costs_20_s_and_saves_half_a_second_an_iteration(left, level):
    """F09: 30 iterations left save 15 s, 50 save 25 s."""
    job = FreezeTerms(shares=[0, 1], law=FREE, quality_budget_points=1, phases=1, change_cost_s=20)
    state = FreezeState(progress=1 - left / 100)
    assert choose_level(job, state, [150, 100]).level == level


def test_no_flapping_whatever_was_chosen():
    """F09: asked at every iteration, from either level, it changes at most once."""
    job = FreezeTerms(shares=[0, 1], law=FREE, quality_budget_points=1, phases=1, change_cost_s=20)
    for level in (0, 1):
        state, chosen = FreezeState(progress=0.6, level=level), [level]
        for done in range(60, 100):
            state = state.advanced(job, done / 100)
            state = state.moved(job, choose_level(job, state, [150, 100]).level)
            chosen.append(state.level)
        assert sum(a != b for a, b in itertools.pairwise(chosen)) <= 1


def test_asked_again_with_nothing_new_it_stays():
    job = terms()
    for progress in (0.2, 0.3, 0.5, 0.7, 0.9):
        state = FreezeState(progress=progress)
        moved = state.moved(job, choose_level(job, state, TIMES_S).level)
        assert choose_level(job, moved, TIMES_S).level == moved.level


def test_a_gain_below_the_hysteresis_is_left_alone():
    job = terms(law=FREE, change_cost_s=0.0, hysteresis=0.03)
    assert choose_level(job, FreezeState(progress=0.5), [1000, 980, 980]).level == 0
    assert choose_level(job, FreezeState(progress=0.5), [1000, 960, 960]).level == 1


def test_bad_news_unfreezes_at_once():
    """A job that improves at a quarter of the expected rate cannot stay frozen within its budget."""
    job = terms(quality_budget_points=0.5)
    state = FreezeState(progress=0.6, level=2)
    assert choose_level(job, state, TIMES_S).level == 2
    worse = FreezeState(progress=0.6, level=2, scale=ProgressScale(value=0.25))
    assert choose_level(job, worse, TIMES_S).level < 2


def test_a_spent_budget_leaves_nothing_frozen():
    state = FreezeState(progress=0.6, level=1, spent_points=2.0)
    assert set(freeze_trajectory(terms(), state, TIMES_S).levels) == {0}


def test_following_the_decisions_keeps_to_the_budget():
    job = terms()
    state = FreezeState()
    levels = []
    while state.progress < 1.0:
        decision = choose_level(job, state, TIMES_S)
        state = state.moved(job, decision.level).advanced(job, decision.until)
        levels.append(decision.level)
    assert state.spent_points <= job.quality_budget_points + 1e-9
    assert levels == list(freeze_trajectory(job, FreezeState(), TIMES_S).levels)
