"""All small instances, without exception, and the family on which the bound of the strict list is reached."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations, combinations_with_replacement, pairwise, product

import pytest

from frostline.policies import Asrpt, AsrptBudget, AsrptGuard, AsrptStrict
from frostline.policies.guarantee import check_guarantee
from frostline.problem import Cluster, Fixed, Instance, Job, Placement, Schedule, Segment, Server
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

CLUSTERS = [
    (Cluster.pool(1), "any"),
    (Cluster.pool(2), "any"),
    (Cluster.pool(3), "any"),
    (Cluster(servers=[Server(id="s0", gpus=2), Server(id="s1", gpus=1)]), "server"),
]


def small_instances() -> Iterator[Instance]:
    """All instances of up to 3 jobs of 1 to 3 units, released from 0 to 2, on up to 3 GPUs.

    Jobs that are released together come in every order, in which ties are broken.
    """
    for cluster, locality in CLUSTERS:
        widest = cluster.gpus if locality == "any" else cluster.largest
        kinds = [(r, g, p) for r in range(3) for g in range(1, widest + 1) for p in range(1, 4)]
        for count in (1, 2, 3):
            for drawn in product(kinds, repeat=count):
                if all(one[0] <= other[0] for one, other in pairwise(drawn)):
                    yield Instance(cluster=cluster, jobs=[_job(f"J{i}", locality, *row) for i, row in enumerate(drawn)])


def _job(name: str, locality: str, release: int, gpus: int, length: int) -> Job:
    work = Fixed(duration_s=UNIT_S * length)
    return Job(id=name, release_s=UNIT_S * release, work=work, gpus=gpus, locality=locality)


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_guarantee_on_all_instances_of_three_jobs(policy: Asrpt | AsrptBudget | AsrptGuard | AsrptStrict) -> None:
    """The bound of every job; and with virtual order, the ratio of the sums to a bound on every schedule."""
    count = 0
    for instance in small_instances():
        schedule = run(instance, policy)
        report = check_guarantee(policy, instance, schedule)
        assert report is not None
        assert report.holds, (instance, report)
        if report.form == "budget":
            budget = report.parameters["E"]
            assert max(late_us(instance, schedule, budget)) <= 0, instance
            assert total(schedule) <= ratio(instance, budget) * lower_bound(instance), instance
        count += 1
    assert count == sum(3 * m + 6 * m**2 + 10 * m**3 for m in (3, 6, 9, 6))  # m pairs of width and length


def theta(instance: Instance, budget: int) -> Fraction:
    """G/(B − E) for ρ = 1, with B by hand: the fewest busy GPUs beside which some job does not fit."""
    gpus, widest = instance.cluster.gpus, max(job.gpus for job in instance.jobs)
    if len(instance.cluster.servers) == 1:
        return Fraction(gpus, gpus - widest + 1 - budget)
    return Fraction(gpus, (1 if widest == 2 else 3) - budget)


def late_us(instance: Instance, schedule: Schedule, budget: int) -> Iterator[Fraction]:
    """[T1](a) and [T2]: C − (1 + θ) C^V + θ w − p of every job."""
    gpus, factor = instance.cluster.gpus, theta(instance, budget)
    sizes, done = sizes_us(instance), schedule.completion_us
    for job, (_, work), due in zip(instance.jobs, sizes, virtual_completions(sizes, gpus), strict=True):
        yield done[job.id] - ((1 + factor) * due - factor * work) / gpus - Fraction(work, job.gpus)


def sizes_us(instance: Instance) -> list[Sized]:
    """Releases, and works in GPU-microseconds."""
    lengths = [int(job.work.duration_s) for job in instance.jobs]  # type: ignore[union-attr]
    return [
        (int(job.release_s) * US_PER_S, job.gpus * length * US_PER_S)
        for job, length in zip(instance.jobs, lengths, strict=True)
    ]


def total(schedule: Schedule) -> int:
    return sum(schedule.completion_us.values())


def lower_bound(instance: Instance) -> Fraction:
    """ΣC of every schedule is at least ΣC^V, and at least Σ(r + p)."""
    gpus, sizes = instance.cluster.gpus, sizes_us(instance)
    alone = sum(release + work // job.gpus for job, (release, work) in zip(instance.jobs, sizes, strict=True))
    return max(Fraction(sum(virtual_completions(sizes, gpus)), gpus), Fraction(alone))


def ratio(instance: Instance, budget: int) -> Fraction:
    """1 + θ + max(0, 1 − θ g_min/G): all jobs are as long as they can be, ρ = 1."""
    factor, narrowest = theta(instance, budget), min(job.gpus for job in instance.jobs)
    return 1 + factor + max(Fraction(0), 1 - factor * Fraction(narrowest, instance.cluster.gpus))


@pytest.mark.parametrize(
    ("gpus", "widest", "tiny"), [(4, 4, 1000), (8, 8, 2000), (16, 16, 4000), (8, 6, 2000), (16, 12, 4000)]
)
def test_bound_of_the_strict_list_is_reached(gpus: int, widest: int, tiny: int) -> None:
    """k = G − g_max + 1 long jobs of one GPU, and many tiny ones of g_max GPUs just too late: (G + 1)/k times the best.

    At their virtual completions, 1 s to k s, the long jobs start; the tiny ones have arrived just after and wait until
    the first of the long ones ends. For g_max = G that is G + 1, the bound of [T1] itself, which therefore is tight.
    """
    k, long_us = gpus - widest + 1, gpus * US_PER_S
    jobs = [Job(id=f"long{i}", release_s=0, work=Fixed(duration_s=float(gpus)), gpus=1) for i in range(k)]
    jobs += [Job(id=f"t{i}", release_s=k + 1e-6, work=Fixed(duration_s=1e-6), gpus=widest) for i in range(tiny)]
    instance = Instance(cluster=Cluster.pool(gpus), jobs=jobs)
    listed = run(instance, AsrptStrict())
    assert_within_guarantee(instance, listed, AsrptStrict())
    rival = tiny_first(instance, k * US_PER_S + 1, long_us)
    assert_feasible(instance, rival)
    reached = Fraction(total(listed), total(rival))
    assert Fraction(gpus + 1, k) - Fraction(1, 10) <= reached <= ratio(instance, 0)
    if widest == gpus:
        assert ratio(instance, 0) == gpus + 1


def tiny_first(instance: Instance, at_us: int, long_us: int) -> Schedule:
    """The tiny jobs one after the other as they arrive, then the long ones."""
    one = Placement([(0, (1,))])
    tiny = [job for job in instance.jobs if job.id.startswith("t")]
    segments = [Segment(job.id, at_us + i, at_us + i + 1, Placement([(0, (job.gpus,))])) for i, job in enumerate(tiny)]
    end_us = at_us + len(tiny)
    names = [job.id for job in instance.jobs if job.gpus == 1]
    return Schedule(segments=(*segments, *(Segment(name, end_us, end_us + long_us, one) for name in names)))
