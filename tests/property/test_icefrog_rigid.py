"""Planned freeze levels at random: plans keep to budget and warm-up, schedules are exact, and T7 holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import groupby, pairwise, product
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from frostline.freezing import plan_levels, spent_points, terms_of
from frostline.policies import IceFrogRigid, make_policy
from frostline.policies.guarantee import check_guarantee, planned_instance
from frostline.policies.icefrog_rigid import FORMS
from frostline.problem import Cluster, Elastic, Instance, Job, Placement, PlacementClass, Schedule
from frostline.problem.files import save
from frostline.relaxation import lower_bound, virtual_completions
from frostline.simulation import choices_made, frozen_stretches, run
from frostline.testing import instances
from frostline.testing.strategies import clusters, elastic_works
from frostline.timing import Choices, fastest_us, iteration_ns_of, job_duration_us, least_of
from frostline.timing.duration import left_after
from frostline.units import instant_us
from frostline.verify import check_schedule

LENGTHS = st.sampled_from([1, 3, 40, 1000])
BUDGETS = st.sampled_from([0.0, 0.5, 2.0, 30.0])
CLASSES = st.sampled_from(PlacementClass)
PROBLEMS = instances(max_jobs=7, localities=("any", "server", "fewest"), works=("elastic", "elastic", "fixed"))


@st.composite
def works(draw: st.DrawFn, **options: int) -> Elastic:
    work = draw(elastic_works(**options))
    return replace(work, iterations=work.iterations * draw(LENGTHS), quality_budget_points=draw(BUDGETS))


@st.composite
def problems(draw: st.DrawFn, budgets: st.SearchStrategy[float] = BUDGETS) -> Instance:
    """Instances whose elastic jobs are long enough, and may lose enough, to be frozen."""
    instance: Instance = draw(PROBLEMS)
    jobs = []
    for job in instance.jobs:
        work = job.work
        if isinstance(work, Elastic):
            work = replace(
                work,
                iterations=work.iterations * draw(LENGTHS),
                quality_budget_points=draw(budgets),
                compute_shares=(0.0, *(max(share, 0.125) for share in work.compute_shares[1:])),
            )
        jobs.append(job.replace(work=work))
    return instance.replace(jobs=jobs)


@st.composite
def policies(draw: st.DrawFn, **fixed: object) -> IceFrogRigid:
    settings: dict[str, object] = {
        "form": draw(st.sampled_from(list(FORMS))),
        "level_change_s": draw(st.sampled_from([0.0, 0.1, 2.0])),
        "phases": draw(st.sampled_from([1, 4, 20])),
    }
    return IceFrogRigid(**settings | fixed)


@given(works(), CLASSES, st.integers(1, 6), st.sampled_from([0, 1, 100_000, 3_000_000]))
def test_a_plan_keeps_to_the_budget_and_the_warm_up(
    work: Elastic, where: PlacementClass, phases: int, change_us: int
) -> None:
    gpus = work.widths[-1]
    plan = plan_levels(work, gpus, where, level_change_us=change_us, phases=phases)
    assert sum(phase.iterations for phase in plan.phases) == work.iterations
    assert all(work.may_freeze(start, work.iterations) for start, _, _ in plan.stretches)
    assert spent_points(work.iterations, plan.stretches, terms_of(work)) <= work.quality_budget_points + 1e-9
    none = plan_levels(replace(work, compute_shares=(0,), seconds_per_iteration=level_0(work)), gpus, where)
    assert not none.frozen
    assert plan.duration_us <= none.duration_us
    assert plan.frozen == (plan.duration_us < none.duration_us)
    assert all(one.level != two.level for one, two in pairwise(plan.phases))
    assert [phase.pause_us for phase in plan.phases] == [0] + [change_us] * (len(plan.phases) - 1)
    left = [plan.left_us(done) for done in range(work.iterations + 1)]
    assert left[0] == plan.duration_us
    assert left[-1] == 0
    assert left == sorted(left, reverse=True)


def level_0(work: Elastic) -> dict[PlacementClass, dict[int, tuple[float, ...]]]:
    table = work.seconds_per_iteration.items()
    return {where: {width: row[:1] for width, row in rows.items()} for where, rows in table}


@given(works(max_levels=3), CLASSES, st.sampled_from([0, 100_000, 3_000_000]))
def test_no_levels_within_the_budget_are_faster(work: Elastic, where: PlacementClass, change_us: int) -> None:
    gpus, phases, total = work.widths[0], 3, work.iterations
    plan = plan_levels(work, gpus, where, level_change_us=change_us, phases=phases)
    terms = terms_of(work, phases=phases)
    warm_up = Fraction(repr(terms.law.warm_up))
    starts = [warm_up + (1 - warm_up) * i / phases for i in range(phases)]
    edges = sorted({-(start * total // -1) for start in starts} | {total})
    for levels in product(range(work.levels), repeat=len(edges) - 1):
        spans = [(int(start), int(end), level) for (start, end), level in zip(pairwise(edges), levels, strict=True)]
        if spent_points(total, [span for span in spans if span[2]], terms) > work.quality_budget_points:
            continue
        changes = len([level for level, _ in groupby((0, *levels))]) - 1
        ns = edges[0] * plan.iteration_ns[0] + sum((b - a) * plan.iteration_ns[level] for a, b, level in spans)
        assert plan.duration_us <= ns / 1000 + changes * change_us + len(plan.phases) + 1


@given(problems(), policies())
def test_schedules_are_exact_and_keep_the_guarantee(instance: Instance, policy: IceFrogRigid) -> None:
    schedule = run(instance, policy)
    assert check_schedule(instance, schedule).faults == ()
    assert set(schedule.completion_us) | {refusal.job for refusal in schedule.refused} == {j.id for j in instance.jobs}
    assert schedule.evictions == 0
    report = check_guarantee(policy, instance, schedule)
    assert report is not None
    assert report.holds


@given(problems(), policies())
def test_what_was_frozen_is_what_was_planned(instance: Instance, policy: IceFrogRigid) -> None:
    schedule = run(instance, policy)
    where = {segment.job: segment.placement for segment in schedule.segments}
    planned = {}
    for job in instance.jobs:
        plan = policy._plan_of(job, instance.cluster, where[job.id]) if job.id in where else None
        if plan is not None and plan.frozen:
            planned[job.id] = plan.stretches
    assert frozen_stretches(instance, schedule) == planned


def stored(schedule: Schedule, instance: Instance) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "schedule.json"
        save(schedule, path, instance=instance)
        return path.read_bytes()


@given(problems(budgets=st.just(0.0)), policies())
def test_without_anything_to_freeze_it_is_asrpt_byte_for_byte(instance: Instance, policy: IceFrogRigid) -> None:
    assert planned_instance(policy, instance) is instance
    ours, theirs = run(instance, policy), run(instance, make_policy(policy.form))
    assert stored(replace(ours, policy=""), instance) == stored(replace(theirs, policy=""), instance)


def sizes(instance: Instance) -> list[tuple[int, int]]:
    return [(instant_us(job.release_s), job.gpus * fastest_us(job, instance.cluster)) for job in instance.jobs]


@given(problems(), policies())
def test_the_virtual_machine_is_never_slower(instance: Instance, policy: IceFrogRigid) -> None:
    """T7, first form: planned jobs are no longer, so the virtual optimum is no larger."""
    planned, gpus = planned_instance(policy, instance), instance.cluster.gpus
    for job, other in zip(instance.jobs, planned.jobs, strict=True):
        assert fastest_us(other, instance.cluster) <= fastest_us(job, instance.cluster)
    assert sum(virtual_completions(sizes(planned), gpus)) <= sum(virtual_completions(sizes(instance), gpus))


@given(problems(), policies(form="asrpt-strict", kappa=0.0))
def test_the_sum_is_within_the_factor_of_the_unfrozen_optimum(instance: Instance, policy: IceFrogRigid) -> None:
    """T7 with T1 (c): what OPT without freezing must take bounds the planned schedule by the factor of T1."""
    schedule, gpus = run(instance, policy), instance.cluster.gpus
    if not schedule.segments:
        return
    report = check_guarantee(policy, instance, schedule)
    assert report is not None
    planned, ends, starts = planned_instance(policy, instance), schedule.completion_us, schedule.start_us
    shortest = {job.id: fastest_us(job, instance.cluster) for job in planned.jobs}
    rho = max(Fraction(ends[job] - starts[job], shortest[job]) for job in ends)
    theta = rho * gpus / report.parameters["B"]
    origin, count = min(release for release, _ in sizes(instance)), len(instance.jobs)
    virtual = Fraction(sum(virtual_completions(sizes(instance), gpus)), gpus) - origin * count
    lengths = sum(fastest_us(job, instance.cluster) for job in instance.jobs)
    extra = max(Fraction(0), rho - theta * min(job.gpus for job in instance.jobs) / gpus)
    total = sum(ends.values()) - origin * count
    # Both terms are at most OPT without freezing; virtual completions are rounded up to a microsecond each.
    assert total <= (1 + theta) * (virtual + count) + extra * lengths


@given(problems(), policies(), st.sampled_from(["trivial", "srpt", "pointwise"]))
def test_bounds_over_choices_hold(instance: Instance, policy: IceFrogRigid, method: str) -> None:
    schedule = run(instance, policy)
    choices = choices_made(instance, schedule)
    assert choices is not Choices.ELASTIC
    total = sum(schedule.completion_us.values())
    bounds = [lower_bound(instance, method, choices=chosen).completion_us for chosen in Choices]
    assert bounds[2] <= bounds[1] <= bounds[0]
    assert bounds[list(Choices).index(choices)] <= total


@given(works(), st.sampled_from(["any", "server", "fewest"]), st.data())
def test_no_run_takes_less_than_the_least(work: Elastic, locality: str, data: st.DataObject) -> None:
    """Runs of any pieces: other GPUs and levels at any time, at no cost."""
    cluster = data.draw(clusters())
    widths = [w for w in work.widths if w <= (cluster.largest if locality == "server" else cluster.gpus)]
    if not widths:
        return
    job = Job(id="a", release_s=0, gpus=widths[0], work=work, locality=locality)
    left, ran_us, held_us = job, 0, 0
    for count in [*data.draw(st.lists(st.integers(1, max(work.iterations // 2, 1)), max_size=4)), work.iterations]:
        assert isinstance(left.work, Elastic)
        done = work.iterations - left.work.iterations
        level = data.draw(st.integers(0, work.levels - 1)) if work.may_freeze(done, work.iterations) else 0
        gpus = data.draw(st.sampled_from(widths))
        placement = Placement(list(placed(gpus, cluster)))
        assert left.locality != "fewest" or len(placement.loads) <= cluster.servers_needed(gpus)
        whole_us = job_duration_us(left, cluster, placement, level)
        piece_us = -(count * iteration_ns_of(left, cluster, placement, level) // -1000)
        ran_us += min(piece_us, whole_us)
        held_us += min(piece_us, whole_us) * gpus
        if piece_us >= whole_us:
            break
        left = left_after(left, cluster, placement, piece_us, level)
    least = least_of(job, cluster)
    assert least.duration_us <= ran_us
    assert least.gpu_us <= held_us


def placed(gpus: int, cluster: Cluster) -> Iterator[tuple[int, tuple[int]]]:
    """GPUs on the largest servers first."""
    largest = sorted(range(len(cluster.servers)), key=lambda m: -cluster.servers[m].gpus)
    for m in largest:
        held = min(gpus, cluster.servers[m].gpus)
        gpus -= held
        if held:
            yield m, (held,)
