"""Debts add up, plans keep to budgets, levels only rise, and more budget is never slower."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from frostline.freezing.curve import ExponentialLoss, TrainingCurve
from frostline.freezing.penalty import DebtLaw, level_debts_points
from frostline.freezing.progress import FreezeState, FreezeTerms
from frostline.freezing.refit import FinishedRun, refit_law
from frostline.freezing.trajectory import choose_level, freeze_trajectory, plan_trajectory

laws = st.builds(
    DebtLaw,
    a=st.floats(0.2, 5),
    A=st.floats(0, 60),
    c=st.floats(1, 25),
    B_0=st.floats(0, 3),
    warm_up=st.sampled_from([0.0, 0.1, 0.2, 0.35]),
)
units = st.floats(0, 1)
budgets = st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 50.0])


@st.composite
def menus(draw):
    """Shares and times of the whole training at each level; a higher level is never slower."""
    steps = draw(st.lists(st.integers(1, 9), min_size=1, max_size=5))
    shares = np.cumsum([0, *steps]) / sum(steps)
    spread = draw(st.floats(0.1, 0.9))
    return tuple(map(float, shares)), [float(3600 * (1 - spread * share)) for share in shares]


@given(laws, units, st.lists(units, min_size=2, max_size=6).map(sorted))
def test_debt_adds_up_over_the_parts_of_a_phase(law, share, cuts):
    whole = law.debt_points(share, cuts[0], cuts[-1])
    parts = sum(law.debt_points(share, a, b) for a, b in pairwise(cuts))
    assert parts == pytest.approx(whole, rel=1e-9, abs=1e-12)


@given(laws, units, units, units, units)
def test_debt_falls_with_the_start_and_rises_with_the_share(law, share, other, start, later):
    start, later = sorted((start, later))
    share, other = sorted((share, other))
    assert law.debt_points(share, later, 1) <= law.debt_points(share, start, 1) + 1e-12
    assert law.debt_points(share, start, 1) <= law.debt_points(other, start, 1) + 1e-12


@given(laws, menus(), st.lists(st.floats(1, 20), min_size=6, max_size=6))
def test_evidence_only_raises_and_levels_stay_in_order(law, menu, factors):
    shares, edges = menu[0], (0.2, 0.5, 1.0)
    plain = level_debts_points(law, shares, edges)
    raised = level_debts_points(law, shares, edges, factors[: len(shares)])
    assert (raised >= plain).all()
    assert (np.diff(raised, axis=1) >= 0).all()
    assert (raised[:, 0] == 0).all()


def planned(law, menu, budget, phases, cost):
    job = FreezeTerms(shares=menu[0], law=law, quality_budget_points=budget, phases=phases, change_cost_s=cost)
    return job, freeze_trajectory(job, FreezeState(), menu[1])


@given(laws, menus(), budgets, st.integers(1, 20), st.sampled_from([0.0, 0.1, 20.0, 500.0]))
def test_plans_keep_to_the_budget_and_the_warm_up_and_never_unfreeze(law, menu, budget, phases, cost):
    job, plan = planned(law, menu, budget, phases, cost)
    assert plan.debt_points <= budget
    assert law.history_points(plan.history(menu[0])) <= budget + 1e-9
    assert list(plan.levels) == sorted(plan.levels)
    for edge, level in zip(plan.boundaries[:-1], plan.levels, strict=True):
        assert level == 0 or edge >= law.warm_up
    assert job.may_freeze(law.warm_up)
    assert plan.time_s <= menu[1][0] * (1 + 1e-12)


@given(laws, menus(), budgets, budgets, st.integers(1, 12), st.sampled_from([0.0, 20.0]))
def test_more_budget_is_never_slower(law, menu, budget, other, phases, cost):
    less, more = sorted((budget, other))
    slow, fast = (planned(law, menu, points, phases, cost)[1].time_s for points in (less, more))
    assert fast <= slow * (1 + 1e-12)


@given(laws, menus(), budgets, st.integers(1, 12), st.sampled_from([0.0, 20.0]))
def test_a_costlier_law_is_never_faster(law, menu, budget, phases, cost):
    slow = planned(law.scaled(2), menu, budget, phases, cost)[1].time_s
    assert planned(law, menu, budget, phases, cost)[1].time_s <= slow * (1 + 1e-12)


@given(st.data(), st.integers(1, 4), st.integers(1, 4), st.integers(0, 60), st.sampled_from([0, 3, 25]))
def test_no_change_of_levels_is_faster_within_the_budget(data, phases, levels, budget, cost):
    """Changing one or two phases of the answer never gives a faster one that fits."""
    numbers = st.lists(st.integers(0, 40), min_size=phases * levels, max_size=phases * levels)
    times = np.array(data.draw(numbers), float).reshape(phases, levels)
    debts = np.array(data.draw(numbers), float).reshape(phases, levels)
    debts[:, 0] = 0
    plan = plan_trajectory(times, debts, budget, change_cost_s=cost)
    path = list(plan.levels)
    for phase in range(phases):
        path[phase] = data.draw(st.integers(0, levels - 1))
    assume(sum(debts[i, k] for i, k in enumerate(path)) <= budget)
    changes = sum(a != b for a, b in zip([0, *path], path, strict=False))
    assert plan.time_s <= sum(times[i, k] for i, k in enumerate(path)) + cost * changes


@given(laws, menus(), budgets, st.integers(1, 10), st.sampled_from([0.0, 0.1, 60.0]))
def test_decisions_keep_to_the_budget_and_stand_when_nothing_is_new(law, menu, budget, phases, cost):
    job = FreezeTerms(shares=menu[0], law=law, quality_budget_points=budget, phases=phases, change_cost_s=cost)
    state = FreezeState()
    while state.progress < 1:
        decision = choose_level(job, state, menu[1])
        state = state.moved(job, decision.level)
        assert choose_level(job, state, menu[1]).level == state.level
        state = state.advanced(job, decision.until)
    assert state.spent_points <= budget + 1e-9


@given(laws, st.lists(st.tuples(units, units, st.floats(-1, 30)), max_size=12))
def test_a_refit_is_a_law_above_its_floor(law, rows):
    runs = [FinishedRun(history=[(max(s, law.warm_up), 1, x)], loss_points=loss) for s, x, loss in rows]
    found = refit_law(law, runs)
    assert found.warm_up == law.warm_up
    low = 0.25 * law.debt_points(1, law.warm_up, 1)
    assert found.debt_points(1, law.warm_up, 1) >= low * (1 - 1e-6) - 1e-9
    assert found == law or found.B_0 >= 0.1 * (1 - 1e-9)


@given(laws, st.lists(st.tuples(units, units), min_size=1, max_size=4), st.integers(0, 2**32), st.sampled_from([2, 4]))
def test_the_truth_is_additive_and_scales(law, cuts, seed, factor):
    curve = TrainingCurve(
        name="t", surface=ExponentialLoss(a=law.a, A=law.A, c=law.c, B_0=law.B_0), noise_points=0.3, noise_share=0.1
    )
    edges = sorted({0.0, 1.0, *(s for s, _ in cuts)})
    history = [(a, b, cuts[i % len(cuts)][1]) for i, (a, b) in enumerate(pairwise(edges))]
    assert curve.debt_points(history) == pytest.approx(law.history_points(history), rel=1e-9, abs=1e-9)
    assert curve.misjudged(factor).debt_points(history) == pytest.approx(factor * curve.debt_points(history))
    assert curve.realised_points(history, seed) == curve.realised_points(history, seed)
