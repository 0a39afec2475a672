"""Exact methods for whole instances against each other: one optimum, no bound above it, no schedule below it."""

from __future__ import annotations

import os

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from frostline.offline import Option, TimeLimit, TooLargeError, WorkLimit, solve
from frostline.offline.brute_force import brute_force
from frostline.offline.build import case_of
from frostline.offline.check import keeps_rules
from frostline.offline.cpsat import cpsat
from frostline.offline.listing import listed, shifted
from frostline.offline.milp import milp
from frostline.offline.schedules import schedule_of
from frostline.offline.search import Search
from frostline.offline.tasks import Objective
from frostline.problem import Fixed, Instance, Locality
from frostline.relaxation import BOUNDS, lower_bound
from frostline.simulation import simulate
from frostline.testing import assert_feasible, instances, schedules
from frostline.verify import check_schedule

THOROUGH = os.environ.get("FROSTLINE_PROFILE") == "thorough"
FEW = settings(max_examples=600 if THOROUGH else 25)
OBJECTIVES = ("completion", "flow", "makespan")


def whole(instance: Instance) -> Instance:
    """Releases and durations in few whole seconds, so that a time-indexed model is small."""
    jobs = [
        job.replace(release_s=job.release_s // 3, work=Fixed(duration_s=job.work.duration_s // 4 + 1))
        if isinstance(job.work, Fixed)
        else job.replace(release_s=job.release_s // 3)
        for job in instance.jobs
    ]
    return instance.replace(jobs=jobs)


def by_all_methods(instance: Instance, objective: str, **fields) -> dict[str, int | None]:
    """Objective by method, each checked."""
    found = {}
    for method in ("brute-force", "cpsat", "milp-highs"):
        try:
            result = solve(instance, objective=objective, method=method, **fields)
        except TooLargeError:
            continue
        found[method] = result.objective_us
        if result.schedule is None:
            continue
        assert result.status == "optimal"
        assert result.bound_us == result.objective_us
        assert_feasible(result.instance, result.schedule)
    return found


@FEW
@given(instances(max_jobs=5, pool=True), st.sampled_from(OBJECTIVES))
def test_methods_agree_on_a_pool(instance, objective):
    found = by_all_methods(whole(instance), objective)
    assert len(found) == 3
    assert len(set(found.values())) == 1


@FEW
@given(
    instances(max_jobs=4, max_gpus=3, max_servers=2, localities=[*Locality], works=("fixed", "profiled")),
    st.sampled_from(OBJECTIVES),
)
def test_methods_agree_on_servers(instance, objective):
    found = by_all_methods(whole(instance), objective)
    assert {"brute-force", "cpsat"} <= set(found)
    assert len(set(found.values())) == 1


@FEW
@given(st.data(), instances(max_jobs=4, max_gpus=4, max_servers=2), st.sampled_from(OBJECTIVES))
def test_methods_agree_on_options(data, instance, objective):
    instance = whole(instance)
    option = st.builds(Option, gpus=st.integers(1, 4), duration_s=st.integers(1, 6), penalty_s=st.integers(0, 3))
    chosen = st.dictionaries(
        st.sampled_from([job.id for job in instance.jobs]), st.lists(option, min_size=1, max_size=2)
    )
    options = data.draw(chosen) if instance.jobs else {}
    assert len(set(by_all_methods(instance, objective, options=options).values())) == 1


@FEW
@given(st.data(), instances(max_jobs=4, max_gpus=4, max_servers=2))
def test_methods_agree_on_deadlines(data, instance):
    instance = whole(instance)
    due = {job.id: float(data.draw(st.integers(1, 20))) for job in instance.jobs}
    found = by_all_methods(instance, "flow", deadlines_s=due)
    assert len(set(found.values())) == 1


@FEW
@given(instances(max_jobs=6, localities=[*Locality], works=("fixed", "profiled", "elastic"), impossible=True))
def test_bounds_are_below_and_policies_above_the_optimum(instance):
    result = solve(instance, stop=WorkLimit(1))
    if result.schedule is None:
        assert not instance.jobs or result.explanations
        return
    assert_feasible(result.instance, result.schedule)
    assert result.bound_us <= result.objective_us
    for name in BOUNDS:
        assert lower_bound(instance, name).completion_us <= result.objective_us
    for policy in ("fifo", "sjf", "easy"):
        completion_us = sum(simulate(instance, policy).schedule.completion_us.values())
        assert result.bound_us <= completion_us


@FEW
@given(
    st.data(), instances(max_jobs=6, localities=[*Locality], works=("fixed", "profiled")), st.sampled_from(OBJECTIVES)
)
def test_never_worse_than_any_hint(data, instance, objective):
    assume(instance.jobs)
    hint = data.draw(schedules(instance))
    result = solve(instance, objective=objective, stop=TimeLimit(0), hints=[hint])
    completion_us = hint.completion_us
    total_us = sum(completion_us.values())
    first_us = min(round(job.release_s * 1e6) for job in instance.jobs)
    value_us = {
        "completion": total_us,
        "flow": total_us - sum(round(job.release_s * 1e6) for job in instance.jobs),
        "makespan": max(completion_us.values()) - first_us,
    }[objective]
    assert result.objective_us <= value_us
    assert check_schedule(instance, result.schedule).valid


@FEW
@given(st.data(), instances(max_jobs=6, max_servers=2, localities=[*Locality], works=("fixed", "profiled")))
def test_lists_keep_every_rule_and_cannot_be_shifted(data, instance):
    problem = case_of(instance, Objective.FLOW, {}, {}).problem
    order = data.draw(st.permutations(range(len(problem.tasks))))
    plan, _ = listed(problem, order)
    assert keeps_rules(problem, plan)
    late = tuple(run._replace(start=run.start + problem.horizon * (order.index(i) + 1)) for i, run in enumerate(plan))
    early = shifted(problem, late, order)
    assert keeps_rules(problem, early)
    assert problem.value(early) <= problem.value(late)
    assert shifted(problem, early, sorted(range(len(early)), key=lambda i: early[i].start)) == early or (
        problem.value(shifted(problem, early)) <= problem.value(early)
    )


@FEW
@given(
    instances(max_jobs=4, max_gpus=3, max_servers=2, localities=[*Locality], works=("fixed", "profiled", "elastic")),
    st.sampled_from(OBJECTIVES),
)
def test_every_method_alone_finds_and_proves_the_optimum(instance, objective):
    """Without a start, a local search or a bound of a relaxation."""
    case = case_of(whole(instance), Objective(objective), {}, {})
    found = []
    for run in (brute_force, cpsat, milp):
        search = Search(case.problem)
        try:
            run(search)
        except TooLargeError:
            continue
        assert search.closed
        assert check_schedule(case.instance, schedule_of(case, search.plan)).valid
        found.append(search.value)
    assert len(found) >= 2
    assert len(set(found)) == 1


@pytest.mark.parametrize("variant", ["servers", "pool"])
@FEW
@given(instance=instances(max_jobs=5, max_gpus=4, max_servers=2))
def test_any_free_gpus_are_a_pool(variant, instance):
    """Where any GPUs will do for jobs of one speed, servers change nothing."""
    instance = whole(instance)
    result = solve(instance, objective="flow", variant=variant)
    other = solve(instance, objective="flow", method="brute-force", variant="pool")
    assert result.objective_us == other.objective_us
    assert check_schedule(result.instance, result.schedule).valid
