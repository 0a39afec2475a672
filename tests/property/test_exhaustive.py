"""All small instances, without exception, and the family on which the bound of the strict list is reached."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations, combinations_with_replacement

import pytest

from frostline.policies import Asrpt, AsrptBudget, AsrptGuard, AsrptStrict
from frostline.policies.guarantee import check_guarantee
from frostline.problem import Cluster, Fixed, Instance, Job, Placement, Schedule, Segment
from frostline.relaxation import virtual_completions
from frostline.simulation import run
from frostline.testing import assert_feasible, assert_within_guarantee
from frostline.units import US_PER_S

Sized = tuple[int, int]
"""Release and size of a job."""


def single_machine(most_jobs: int) -> Iterator[tuple[Sized, ...]]:
    """All instances of so many jobs of sizes 1 to 4, released from 0 to 4, up to the order of the jobs."""
    kinds = [(release, size) for release in range(5) for size in range(1, 5)]
    for count in range(1, most_jobs + 1):
        yield from combinations_with_replacement(kinds, count)


def done_by(jobs: Iterable[Sized]) -> int:
    """When one machine can have finished all the jobs: those released from some time on fit between it and then."""
    chosen = list(jobs)
    return max(start + sum(size for release, size in chosen if release >= start) for start, _ in chosen)


def test_srpt_finishes_the_most_jobs_by_every_instant_on_all_instances_of_four_jobs() -> None:
    """Schrage's theorem: its k-th completion is the earliest instant by which any k jobs can be done."""
    instances = list(single_machine(4))
    assert len(instances) == 10_625
    for jobs in instances:
        earliest = [min(map(done_by, combinations(jobs, count))) for count in range(1, len(jobs) + 1)]
        assert sorted(virtual_completions(jobs, 1)) == earliest, jobs


def least_total(jobs: tuple[Sized, ...]) -> int:
    """Least sum of completions of any schedule in unit steps that does not idle in vain, by trying them all."""

    @cache
    def least(now: int, left: tuple[int, ...]) -> int:
        alive = [j for j, (release, _) in enumerate(jobs) if release <= now and left[j]]
        unfinished = sum(work > 0 for work in left)
        if not unfinished:
            return 0
        after = [left, *((*left[:j], left[j] - 1, *left[j + 1 :]) for j in alive)]
        return unfinished + min(least(now + 1, step) for step in after[bool(alive) :])

    return least(0, tuple(size for _, size in jobs))


def test_srpt_has_the_least_total_completion_on_all_instances_of_four_jobs() -> None:
    """The same against a search that knows no theorem. A job counts in every step before its completion."""
    for jobs in single_machine(4):
        assert sum(virtual_completions(jobs, 1)) == least_total(jobs), jobs


UNIT_S = 6
"""Seconds that divide by every G, so that virtual completions are whole microseconds and nothing is rounded."""

POLICIES = [
    AsrptStrict(),
    AsrptBudget(share=1.0),
    AsrptGuard(patience=0.0),
    AsrptGuard(patience=1.0, order="longest", discipline="fit-anything"),
    Asrpt(patience=0.5),
]


def small_clusters() -> Iterator[Instance]:
    """All instances of up to 3 jobs of 1 to 3 units, released from 0 to 2, on pools of up to 3 GPUs."""
    for gpus in (1, 2, 3):
        kinds = [(r, g, p) for r in range(3) for g in range(1, gpus + 1) for p in range(1, 4)]
        for count in (1, 2, 3):
            for drawn in combinations_with_replacement(kinds, count):
                jobs = [
                    Job(id=f"J{i}", release_s=UNIT_S * r, work=Fixed(duration_s=UNIT_S * p), gpus=g)
                    for i, (r, g, p) in enumerate(drawn, start=1)
                ]
                yield Instance(cluster=Cluster.pool(gpus), jobs=jobs)


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_guarantee_on_all_instances_of_three_jobs(policy: Asrpt | AsrptBudget | AsrptGuard | AsrptStrict) -> None:
    """The bound of every job; and with virtual order, the ratio of the sums to a bound on every schedule."""
    instances = list(small_clusters())
    assert len(instances) == 5_607
    for instance in instances:
        schedule = run(instance, policy)
        report = check_guarantee(policy, instance, schedule)
        assert report is not None
        assert report.holds, (instance, report)
        if report.form == "budget":
            assert total(schedule) <= ratio(instance, report.parameters["E"]) * lower_bound(instance), instance


def total(schedule: Schedule) -> int:
    return sum(schedule.completion_us.values())


def lower_bound(instance: Instance) -> Fraction:
    """ΣC of every schedule is at least ΣC^V, and at least Σ(r + p)."""
    gpus = instance.cluster.gpus
    times = [(int(job.release_s) * US_PER_S, int(job.work.duration_s) * US_PER_S) for job in instance.jobs]  # type: ignore[union-attr]
    sizes = [(release, job.gpus * length) for job, (release, length) in zip(instance.jobs, times, strict=True)]
    return max(Fraction(sum(virtual_completions(sizes, gpus)), gpus), Fraction(sum(map(sum, times))))


def ratio(instance: Instance, budget: int) -> Fraction:
    """1 + θ + max(0, 1 − θ g_min/G), with θ = G/(B − E): all jobs are as long as they can be, ρ = 1."""
    gpus, widths = instance.cluster.gpus, [job.gpus for job in instance.jobs]
    theta = Fraction(gpus, gpus - max(widths) + 1 - budget)
    return 1 + theta + max(Fraction(0), 1 - theta * Fraction(min(widths), gpus))


@pytest.mark.parametrize(("gpus", "tiny"), [(4, 1000), (8, 2000), (16, 4000)])
def test_bound_of_the_strict_list_is_reached(gpus: int, tiny: int) -> None:
    """[T1] is tight for jobs as wide as the cluster: one long job of one GPU, and many tiny ones just too late.

    At its virtual completion the long job starts; the tiny ones have arrived just after and wait for all of it.
    """
    long_us = gpus * US_PER_S
    jobs = [Job(id="long", release_s=0, work=Fixed(duration_s=float(gpus)), gpus=1)]
    jobs += [Job(id=f"t{i}", release_s=1.000001, work=Fixed(duration_s=1e-6), gpus=gpus) for i in range(tiny)]
    instance = Instance(cluster=Cluster.pool(gpus), jobs=jobs)
    listed = run(instance, AsrptStrict())
    assert_within_guarantee(instance, listed, AsrptStrict())
    rival = tiny_first(instance, US_PER_S + 1, long_us)
    assert_feasible(instance, rival)
    reached = Fraction(total(listed), total(rival))
    assert ratio(instance, 0) == gpus + 1
    assert gpus + 1 - Fraction(1, 10) <= reached <= gpus + 1


def tiny_first(instance: Instance, at_us: int, long_us: int) -> Schedule:
    """The tiny jobs one after the other as they arrive, then the long one."""
    whole, one = Placement([(0, (instance.cluster.gpus,))]), Placement([(0, (1,))])
    names = [job.id for job in instance.jobs if job.id != "long"]
    segments = [Segment(name, at_us + i, at_us + i + 1, whole) for i, name in enumerate(names)]
    end_us = at_us + len(names)
    return Schedule(segments=(*segments, Segment("long", end_us, end_us + long_us, one)))
