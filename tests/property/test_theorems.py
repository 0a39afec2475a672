"""Theorems of ``proofs/`` that no other test states as they are proved, on schedules that frostline makes, exactly.

Jobs last whole seconds, in multiples that every width divides, so that nothing is rounded but virtual completions, up
to the microsecond at which a job is due.
"""

from __future__ import annotations

import math
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from frostline.placement.free_gpus import shape_of
from frostline.placement.saturation import saturation
from frostline.policies import AsrptStrict, make_policy
from frostline.problem import Cluster, Fixed, Instance, Job, Locality, Schedule
from frostline.relaxation import virtual_completions
from frostline.simulation import run
from frostline.testing import ScriptedPredictor, assert_feasible, clusters, schedules
from frostline.units import US_PER_S

STRICT = AsrptStrict()
UNIT_S = 12
"""Seconds that all widths up to 4 divide."""


def duration_s(job: Job) -> int:
    assert isinstance(job.work, Fixed)
    return int(job.work.duration_s)


def lasting(instance: Instance, durations_s: list[float]) -> Instance:
    """The instance with other durations."""
    works = [Fixed(duration_s=duration) for duration in durations_s]
    jobs = [job.replace(work=work) for job, work in zip(instance.jobs, works, strict=True)]
    return instance.replace(jobs=jobs)


@st.composite
def problems(draw: st.DrawFn, unit_s: int = UNIT_S, min_jobs: int = 1) -> Instance:
    """Up to 6 jobs of 1 to 9 units on a pool or on servers, of locality ``any`` or ``server``."""
    cluster = draw(clusters(max_servers=2, max_gpus=4, pool=draw(st.booleans())))
    jobs = []
    for number in range(draw(st.integers(min_jobs, 6))):
        locality = draw(st.sampled_from([Locality.ANY, Locality.SERVER]))
        gpus = draw(st.integers(1, min(4, cluster.gpus if locality is Locality.ANY else cluster.largest)))
        work = Fixed(duration_s=unit_s * draw(st.integers(1, 9)))
        jobs.append(Job(id=f"J{number}", release_s=draw(st.integers(0, 60)), work=work, gpus=gpus, locality=locality))
    return Instance(cluster=cluster, jobs=jobs)


def busy(instance: Instance) -> int:
    """B."""
    return saturation({shape_of(job, instance.cluster) for job in instance.jobs}, instance.cluster)


def by_work(instance: Instance, work_s: list[int]) -> list[int]:
    """Virtual completions, in microseconds rounded up, where job j brings so many GPU-seconds."""
    gpus = instance.cluster.gpus
    sizes = [(int(job.release_s) * US_PER_S, work * US_PER_S) for job, work in zip(instance.jobs, work_s, strict=True)]
    return [math.ceil(Fraction(done, gpus)) for done in virtual_completions(sizes, gpus)]


def areas_s(instance: Instance) -> list[int]:
    return [job.gpus * duration_s(job) for job in instance.jobs]


def completions_us(instance: Instance, schedule: Schedule) -> list[int]:
    done = schedule.completion_us
    return [done[job.id] for job in instance.jobs]


def as_if(instance: Instance, believed_s: list[float]) -> Schedule:
    """The strict list where the virtual machine is fed other durations than the jobs turn out to have."""
    sizes = {job.id: [size] for job, size in zip(instance.jobs, believed_s, strict=True)}
    schedule = run(instance, STRICT, predictor=ScriptedPredictor(sizes))
    assert_feasible(instance, schedule)
    return schedule


# ---------- [L2] and the local form of [T1] ----------

SIZED = st.lists(st.tuples(st.integers(0, 20), st.integers(1, 9)), min_size=1, max_size=7)
"""Releases and works of jobs on one machine of unit speed."""


@given(SIZED)
def test_service_to_unfinished_jobs_is_at_most_the_work_of_one(jobs: list[tuple[int, int]]) -> None:
    """``attained_service``, step by step on a machine that is written here."""
    left = {j: work for j, (_, work) in enumerate(jobs)}
    done = {}
    for now in range(200):
        alive = [j for j, work in left.items() if work and jobs[j][0] <= now]
        if alive:
            assert sum(jobs[j][1] - left[j] for j in alive) <= max(jobs[j][1] for j in alive)
            served = min(alive, key=lambda j: (left[j], j))
            left[served] -= 1
            if not left[served]:
                done[served] = now + 1
    assert sorted(done.values()) == sorted(virtual_completions(sorted(jobs), 1))


@given(SIZED, st.integers(0, 60), st.integers(0, 60))
def test_work_completed_in_an_interval_is_little_more_than_its_length(
    jobs: list[tuple[int, int]], one: int, other: int
) -> None:
    """``work_completed_between``: Σ w over completions in [a, b] is at most b − a, and the work of one."""
    begin, end = sorted([one, other])
    completed = zip(virtual_completions(sorted(jobs), 1), sorted(jobs), strict=True)
    works = [work for at, (_, work) in completed if begin <= at <= end]
    assert sum(works) <= end - begin + max(works, default=0)


@given(problems())
def test_strict_list_locally(instance: Instance) -> None:
    """``strict_list_local_guarantee``: C ≤ max(1, θ) C^V + θ (p_max + w_max − w) + p."""
    theta = Fraction(instance.cluster.gpus, busy(instance))
    work = [Fraction(area * US_PER_S, instance.cluster.gpus) for area in areas_s(instance)]
    length = [duration_s(job) * US_PER_S for job in instance.jobs]
    done = completions_us(instance, run(instance, STRICT))
    for C, due, w, p in zip(done, by_work(instance, areas_s(instance)), work, length, strict=True):
        # One microsecond more, by which those that became due in the period may be late.
        bound = max(1, theta) * due + theta * (max(length) + 1 + max(work) - w) + p
        assert bound >= C


# ---------- [T7] ----------


@given(problems(), st.data())
def test_freezing_that_shortens_jobs_keeps_the_guarantee_without_it(instance: Instance, data: st.DataObject) -> None:
    """``freezing_keeps_guarantee``: jobs turn out shorter than the virtual machine was told, by any part of each.

    The bound of every job stays that of the jobs as they were; so does the ratio to any schedule of them.
    """
    told = [duration_s(job) for job in instance.jobs]
    frozen = lasting(instance, [float(data.draw(st.integers(1, length))) for length in told])
    done = completions_us(frozen, as_if(frozen, [float(length) for length in told]))
    gpus, theta = instance.cluster.gpus, Fraction(instance.cluster.gpus, busy(instance))
    for C, due, area, p in zip(done, by_work(instance, areas_s(instance)), areas_s(instance), told, strict=True):
        bound = (1 + theta) * due - theta * Fraction(area * US_PER_S, gpus) + p * US_PER_S
        assert bound >= C
    rival = completions_us(instance, data.draw(schedules(instance)))
    ratio = 1 + theta + max(Fraction(0), 1 - theta * Fraction(min(job.gpus for job in instance.jobs), gpus))
    assert sum(done) <= ratio * sum(rival) + (1 + theta) * len(done)  # due up to a microsecond late


@st.composite
def with_choices(draw: st.DrawFn) -> tuple[Instance, Instance, list[int], list[int]]:
    """An instance, the same where jobs have chosen otherwise, and the least GPU-time and length of the choices."""
    instance = draw(problems())
    ours, theirs, area, shortest = [], [], [], []
    for job in instance.jobs:
        most = instance.cluster.gpus if job.locality is Locality.ANY else instance.cluster.largest
        choice = st.tuples(st.integers(1, min(4, most)), st.integers(1, 9).map(lambda units: UNIT_S * units))
        options = draw(st.lists(choice, min_size=1, max_size=3))
        for kept, (gpus, length) in zip((ours, theirs), draw(st.tuples(*[st.sampled_from(options)] * 2)), strict=True):
            kept.append(job.replace(gpus=gpus, work=Fixed(duration_s=length)))
        area.append(min(gpus * length for gpus, length in options))
        shortest.append(min(length for _, length in options))
    return instance.replace(jobs=ours), instance.replace(jobs=theirs), area, shortest


@given(with_choices(), st.data())
def test_a_rival_that_chooses_gpus_and_levels_is_within_the_ratio(
    problem: tuple[Instance, Instance, list[int], list[int]], data: st.DataObject
) -> None:
    """``choices_guarantee``: ΣC ≤ [1 + κ_a G/B + κ_p] ΣC of any schedule of any choices.

    The virtual machine is fed the least GPU-time of each job; κ_a and κ_p are what the choices made cost beyond that.
    """
    ours, theirs, area, shortest = problem
    made = [(job.gpus * duration_s(job), duration_s(job)) for job in ours.jobs]
    kappa_area = max(Fraction(held, least) for (held, _), least in zip(made, area, strict=True))
    kappa_length = max(Fraction(length, least) for (_, length), least in zip(made, shortest, strict=True))
    believed = [least / job.gpus for least, job in zip(area, ours.jobs, strict=True)]
    done = completions_us(ours, as_if(ours, believed))
    rival = completions_us(theirs, data.draw(schedules(theirs)))
    theta = kappa_area * Fraction(ours.cluster.gpus, busy(ours))
    assert sum(done) <= (1 + theta + kappa_length) * sum(rival) + (1 + theta) * len(done)


# ---------- [T10] ----------


def flow_bound(instance: Instance, rival: list[int], rho: Fraction) -> Fraction:
    """(1 + ρ) ΣF of the rival, and (1 + g_max/G) p_max for each job; a microsecond each for late dues."""
    releases_us = sum(int(job.release_s) * US_PER_S for job in instance.jobs)
    longest_us = max(map(duration_s, instance.jobs)) * US_PER_S
    widest = Fraction(max(job.gpus for job in instance.jobs), instance.cluster.gpus)
    beyond = (1 + widest) * longest_us + 2
    return (1 + rho) * (sum(rival) - releases_us) + beyond * len(instance.jobs)


def total_flow_us(instance: Instance, done: list[int]) -> int:
    return sum(done) - sum(int(job.release_s) * US_PER_S for job in instance.jobs)


@given(problems(), st.fractions(1, 3, max_denominator=4), st.data())
def test_flow_time_on_fast_gpus(instance: Instance, faster: Fraction, data: st.DataObject) -> None:
    """``flow_with_speed``: GPUs that are s ≥ G/B times as fast as those of the rival, who may be any schedule."""
    speed = faster * Fraction(instance.cluster.gpus, busy(instance))
    told = [float(duration_s(job)) for job in instance.jobs]
    fast = lasting(instance, [math.floor(length * US_PER_S / speed) / US_PER_S for length in told])
    done = completions_us(fast, as_if(fast, told))
    rival = completions_us(instance, data.draw(schedules(instance)))
    assert total_flow_us(instance, done) <= flow_bound(instance, rival, 1 / speed)


@given(problems(), st.data())
def test_flow_time_needs_no_speed_where_one_width_fills_the_pool(instance: Instance, data: st.DataObject) -> None:
    """The same with s = 1: a head is blocked only by a full pool, B = G."""
    width = data.draw(st.integers(1, 3))
    cluster = Cluster.pool(width * data.draw(st.integers(1, 3)))
    instance = Instance(cluster=cluster, jobs=[job.replace(gpus=width, locality="any") for job in instance.jobs])
    done = completions_us(instance, run(instance, STRICT))
    rival = completions_us(instance, data.draw(schedules(instance)))
    assert total_flow_us(instance, done) <= flow_bound(instance, rival, Fraction(1))


def test_without_speed_the_bound_on_flow_fails() -> None:
    """Narrow long jobs and wide short ones in turn: the strict list runs one at a time, and the queue grows."""
    narrow = [Job(id=f"a{i}", release_s=7 * i, work=Fixed(duration_s=12), gpus=1) for i in range(40)]
    wide = [Job(id=f"b{i}", release_s=7 * i, work=Fixed(duration_s=3), gpus=4) for i in range(40)]
    instance = Instance(cluster=Cluster.pool(4), jobs=[*narrow, *wide])
    rival = completions_us(instance, run(instance, make_policy("easy")))
    slow = completions_us(instance, run(instance, STRICT))
    assert total_flow_us(instance, slow) > flow_bound(instance, rival, Fraction(1))
    told = [float(duration_s(job)) for job in instance.jobs]
    fast = lasting(instance, [length / 4 for length in told])
    done = completions_us(fast, as_if(fast, told))
    assert total_flow_us(instance, done) <= flow_bound(instance, rival, Fraction(1, 4))
