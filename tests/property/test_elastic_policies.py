"""What elastic policies owe on any small instance: valid schedules, all jobs, budgets kept, nothing left to chance."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from frostline.freezing import plan_trajectory
from frostline.freezing.belief import spent_points, terms_of
from frostline.freezing.penalty import DebtLaw, level_debts_points
from frostline.freezing.rising import LawArrays, hulls_of, rising_vertices
from frostline.policies import make_policy
from frostline.policies.elastic.prices import work_prices
from frostline.problem import Elastic, Instance, PlacementClass
from frostline.simulation import run
from frostline.simulation.accuracy import frozen_stretches
from frostline.testing import instances
from frostline.verify import check_schedule

UTILITIES = ("flow", "progress", "sia", "titan", "srpt")
ICEFROG = tuple(f"icefrog:utility={name}" for name in UTILITIES)
RIVALS = ("optimus:restart_s=0", "pollux", "pollux:power=0", "sia", "sia:event_driven=false:round_s=7")
SMALL_ROUNDS = ("pollux:round_s=2:restart_s=1", "sia:round_s=3:restart_s=0", "icefrog:round_s=1:restart_s=0.5")
RESTLESS = ("icefrog:round_s=1:restart_s=5:most_evictions=3", "pollux:round_s=1:restart_s=9:most_evictions=2")
NAMES = st.sampled_from([*RIVALS, *ICEFROG, *SMALL_ROUNDS, *RESTLESS])
LOCALITIES = ("any", "server", "fewest")
PROBLEMS = instances(
    max_jobs=6, localities=LOCALITIES, works=("elastic", "elastic", "elastic", "fixed", "profiled", "training")
)


@given(PROBLEMS, NAMES)
def test_every_job_ends_on_a_valid_schedule(instance: Instance, name: str) -> None:
    policy = make_policy(name)
    schedule = run(instance, policy)
    assert check_schedule(instance, schedule).faults == ()
    assert set(schedule.completion_us) == {job.id for job in instance.jobs}
    assert schedule == run(instance, make_policy(name))
    assert name.startswith("icefrog") or schedule.level_changes == 0
    for job in instance.jobs:
        pieces = sum(segment.job == job.id for segment in schedule.segments)
        levels = job.work.levels if isinstance(job.work, Elastic) else 1
        assert pieces <= (policy.most_evictions + 1) * levels  # type: ignore[attr-defined]


@given(PROBLEMS, st.sampled_from([*ICEFROG, "icefrog:round_s=1:hysteresis=0", "icefrog:round_s=2:restart_s=0"]))
def test_the_believed_debt_is_within_the_budget(instance: Instance, name: str) -> None:
    jobs = {job.id: job for job in instance.jobs}
    for job, stretches in frozen_stretches(instance, run(instance, make_policy(name))).items():
        work = jobs[job].work
        assert isinstance(work, Elastic)
        spent = spent_points(work.iterations, stretches, terms_of(work))
        assert spent <= work.quality_budget_points + 1e-9
        assert all(start >= Fraction(repr(work.warm_up)) * work.iterations for start, *_ in stretches)
        # Small instances: levels only rise where a job stays, and only when the debt that is left allows it.
        assert work.quality_budget_points > 0


@given(PROBLEMS, st.sampled_from(ICEFROG))
def test_without_budgets_freezing_changes_nothing(instance: Instance, name: str) -> None:
    jobs = tuple(
        job.replace(work=_without_budget(job.work)) if isinstance(job.work, Elastic) else job for job in instance.jobs
    )
    spared = instance.replace(jobs=jobs)
    without = run(spared, make_policy(f"{name}:freeze=false"))
    assert run(spared, make_policy(name)).segments == without.segments
    assert run(instance, make_policy(f"{name}:freeze=false")).segments == without.segments


def _without_budget(work: Elastic) -> Elastic:
    return Elastic(
        iterations=work.iterations,
        widths=work.widths,
        seconds_per_iteration=work.seconds_per_iteration,
        compute_shares=work.compute_shares,
        family=work.family,
        warm_up=work.warm_up,
    )


RATES = st.lists(st.integers(1, 50), min_size=3, max_size=3).map(lambda values: np.array(values) / 10)


@given(st.lists(RATES, min_size=1, max_size=5), st.integers(4, 9), st.randoms())
def test_at_their_prices_the_best_shares_are_worth_the_tasks_left(
    rates: list[np.ndarray], gpus: int, dice: object
) -> None:
    widths, order = np.array([1, 2, 4]), list(range(len(rates)))
    dice.shuffle(order)  # type: ignore[attr-defined]
    prices = work_prices(order, rates, [widths] * len(rates), gpus)
    assert (prices > 0).all()
    for count in range(1, len(order) + 1):
        worth = [0.0] * (gpus + 1)
        for task in order[:count]:
            each = list(zip(widths.tolist(), (prices[task] * rates[task]).tolist(), strict=True))
            worth = [max([worth[g], *(worth[g - k] + v for k, v in each if k <= g)]) for g in range(gpus + 1)]
        assert abs(worth[gpus] - count) <= 1e-9 * count


@given(
    st.builds(
        DebtLaw,
        a=st.sampled_from([0.3, 1.0, 2.5]),
        A=st.sampled_from([0.0, 5.0, 40.0]),
        c=st.sampled_from([1.0, 6.0, 14.0]),
        B_0=st.sampled_from([0.0, 0.5, 2.0]),
    ),
    st.lists(st.integers(1, 7), min_size=1, max_size=4),
    st.lists(st.integers(1, 40), min_size=5, max_size=5),
    st.integers(0, 300),
    st.sampled_from([0.2, 0.35, 0.8]),
)
def test_levels_that_rise_at_any_time_beat_every_plan_in_phases(
    law: DebtLaw, steps: list[int], times: list[int], budget_cents: int, progress: float
) -> None:
    shares = [0.0, *(float(share) for share in np.cumsum(steps) / sum(steps))]
    seconds = sorted((float(time) for time in times[: len(shares)]), reverse=True)
    budget, hulls = budget_cents / 100, hulls_of([seconds], [share**law.a for share in shares])
    phases, took, spent, edges = 100, 0.0, 0.0, np.linspace(progress, 1, 101).tolist()
    one = LawArrays(np.array([law.A]), np.array([law.c]), np.array([law.B_0]))
    before = 0
    for start, end in pairwise(edges):
        left = np.array([budget - spent])
        vertex = int(rising_vertices(hulls, one, np.array([start]), np.maximum(left, 0.0))[0])
        stay_points = law.debt_points(shares[int(hulls.level[0, before])], start, 1.0)
        assert vertex >= before or abs(stay_points - left[0]) < 1e-9  # it falls by the last bits of sums alone
        before = max(vertex, before)
        level = int(hulls.level[0, before])
        took += seconds[level] / phases
        spent += law.debt_points(shares[level], start, end)
    assert spent <= budget + 1e-9
    rows, debts = np.array(seconds) / phases, level_debts_points(law, shares, edges)
    best, plan = (plan_trajectory(rows, debts, points) for points in (budget + 1e-9, budget))
    # Asked at the starts of phases only, it is a plan in phases itself, and loses a phase for each level at most.
    assert best.bound_s - 1e-9 <= took <= plan.time_s + len(shares) * (seconds[0] - seconds[-1]) / phases + 1e-9


@given(PROBLEMS)
def test_classes_that_lack_a_width_are_served(instance: Instance) -> None:
    lacking = [
        job
        for job in instance.jobs
        if isinstance(job.work, Elastic)
        and any(set(rows) != set(job.work.widths) for rows in job.work.seconds_per_iteration.values())
    ]
    for job in lacking:
        assert isinstance(job.work, Elastic)
        assert all(job.work.seconds(gpus, PlacementClass.ONE_SERVER) > 0 for gpus in job.work.widths)
    assert check_schedule(instance, run(instance, make_policy("icefrog"))).valid
