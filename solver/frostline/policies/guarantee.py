"""The per-job guarantees of A-SRPT, checked on a schedule in exact integers.

Symbols: G GPUs; B the saturation (:mod:`frostline.placement.saturation`); ρ the worst duration of a job over its
shortest; w_j = g_j · p_j / G; E_j the time job j is due: its virtual completion, rounded up to a microsecond. Times
count from the first release.

- *budget* E < B, with θ = ρG / (B − E):  C_j ≤ (1 + θ) E_j − θ w_j + ρ p_j. E = 0 is the strict form.
- *guard* Γ, with θ = ρG / B and U the start of the strict period in which j starts:
  s_j ≤ E_j + Γ + (θ − 1)⁺ (E_j + Γ − U) + θ (p_max + w_max − w_j), where p_max and w_max are over the jobs released
  by s_j, and a microsecond is added to p_max for the rounding of E_j. Γ may grow with the longest job seen; its
  value at s_j counts.

Training jobs may enter late: then E_j grows by κ p_j, and p_max by κ p_max.

Where sizes are predicted, the virtual machine is fed ŵ_j, and a is the least ŵ_j / w_j. Durations are uncertain, so
that a backfill may outlast the head's start: what runs out of order then holds at most E′ GPUs, which is measured (in
the guard form, of what was started in strict periods), and E′ takes the place of E.

- *budget*, with θ = ρG / (B − E′):  C_j ≤ (1 + θ/a) E_j − (θ/a) ŵ_j + ρ p_j, because the jobs that started before j
  bring Σ w ≤ Σ ŵ / a ≤ (E_j − ŵ_j) / a.
- *guard*, with θ = ρG / (B − E′):
  s_j ≤ E_j + Γ + (θ/a − 1)⁺ (E_j + Γ − U) + θ p_max + (θ/a) (ŵ_max − ŵ_j). What runs at U brings ρ p_max in its true
  length; what starts after U was not due before U − Γ, so that Σ ŵ ≤ E_j + Γ − U + ŵ_max − ŵ_j, and Σ w ≤ Σ ŵ / a. Γ
  follows the longest duration as it was believed, and the microsecond for the rounding and κ p_max, as believed, are
  added to ŵ_max.

A policy that plans whole runs keeps its promise on the planned jobs. Against the jobs as submitted it then holds, too,
where ΣC^V is no larger by the planned sizes, which is checked: shortening jobs keeps the guarantee, [T7].
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Any, NamedTuple

from frostline.placement.free_gpus import Shape, shape_of
from frostline.placement.saturation import saturation
from frostline.policies.base import PlanningPolicy, Policy
from frostline.problem.instance import Instance
from frostline.problem.job import Fixed
from frostline.problem.refusal import never_fits
from frostline.problem.schedule import Schedule
from frostline.relaxation.bounds import virtual_times
from frostline.relaxation.rigid import rigid_columns
from frostline.relaxation.srpt import virtual_completions
from frostline.timing.duration import fastest_us
from frostline.units import US_PER_S, instant_us

__all__ = [
    "Beliefs",
    "Believed",
    "BudgetPromise",
    "GuaranteeReport",
    "GuardPromise",
    "Promise",
    "check_guarantee",
    "distortion",
    "planned_instance",
]


@dataclass(frozen=True, slots=True)
class BudgetPromise:
    """Virtual order, with at most so many GPUs held by jobs that were started out of order."""

    budget_gpus: int
    kappa: float = 0.0
    """Training jobs may enter late by κ times their shortest duration."""


@dataclass(frozen=True, slots=True)
class GuardPromise:
    """Virtual order with backfill while a due job has waited longer than a multiple of the longest job seen."""

    patience: Callable[[int], int]
    """Γ in microseconds from the longest duration seen, non-decreasing."""
    kappa: float = 0.0
    """Training jobs may enter late by κ times their shortest duration."""


Promise = BudgetPromise | GuardPromise
"""What a policy promises for every job."""


class Believed(NamedTuple):
    """What was believed of a job when it arrived.

    Parameters
    ----------
    work : int
        ŵ in GPU-microseconds, as the virtual machine was fed.
    duration_us : int
        Its shortest duration, as the policy saw it.
    """

    work: int
    duration_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Beliefs:
    """What a guarantee depends on where sizes are predicted.

    Parameters
    ----------
    jobs : mapping of str to Believed
        What was believed of every job of the instance that fits.
    longest : sequence of (int, int)
        Instants at which the longest duration seen grew, and to how much, in microseconds; see
        :attr:`~frostline.policies.base.View.longest_us`.
    out_of_order_gpus : int
        E′, the most GPUs that tasks started out of order held at one time.
    """

    jobs: Mapping[str, Believed]
    longest: Sequence[tuple[int, int]] = ()
    out_of_order_gpus: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GuaranteeReport:
    """Outcome of checking a guarantee for every job.

    Parameters
    ----------
    form : str
        ``budget`` or ``guard``.
    parameters : mapping
        G, B, ρ, θ, and E or Γ at the end; where sizes are predicted also a, b (the largest ŵ / w), D = b / a and E′;
        where runs are planned ``virtual_share``, the virtual flow of the planned jobs over that of those submitted.
    holds : bool
        Whether the inequality holds for every job, and no such share is above 1.
    worst_slack_s : float or None
        Least right side − left side over the jobs, in seconds; None without jobs.
    worst_job : str or None
        The job it belongs to.
    """

    form: str
    parameters: Mapping[str, Any]
    holds: bool
    worst_slack_s: float | None
    worst_job: str | None


class _Job(NamedTuple):
    """A job as the inequalities see it, in microseconds from the first release."""

    id: str
    release: int
    due: int
    start: int
    end: int
    shortest: int
    gpus: int
    fed: int
    """ŵ in GPU-microseconds."""


def check_guarantee(
    policy: Policy, instance: Instance, schedule: Schedule, beliefs: Beliefs | None = None
) -> GuaranteeReport | None:
    """Check the guarantee that a policy promises on a schedule it made; None where it promises nothing.

    A promise is for servers that do not fail: with outages it is None, too.

    Jobs of the instance that are not in the schedule are left out of the check, not of the virtual machine.

    Parameters
    ----------
    policy : Policy
        The policy.
    instance : Instance
        The jobs as they are.
    schedule : Schedule
        What was made of them.
    beliefs : Beliefs, optional
        What was believed of them, if their sizes were predicted.
    """
    promise_of = getattr(policy, "promise", None)
    if promise_of is None or schedule.outages:
        return None
    submitted, instance = instance, planned_instance(policy, instance)
    saturated = max(saturation(_shapes(instance), instance.cluster), 1)  # 0 without GPUs, where no job runs
    promise: Promise = promise_of(saturated)
    jobs = _jobs(instance, schedule, promise.kappa, beliefs)
    a, measured = _measured(instance, beliefs)
    rho = max((Fraction(*stretch) for stretch in _stretches(jobs)), default=Fraction(1))
    facts: dict[str, Any] = {"G": instance.cluster.gpus, "B": saturated, "rho": float(rho)}
    if isinstance(promise, BudgetPromise):
        aside = promise.budget_gpus if beliefs is None else beliefs.out_of_order_gpus
        theta = rho * instance.cluster.gpus / (saturated - aside)
        scale = (theta / a).denominator * rho.denominator * instance.cluster.gpus
        slacks = _budget_slacks(jobs, theta / a, rho, instance.cluster.gpus, scale)
        facts |= {"theta": float(theta), "E": promise.budget_gpus}
    else:
        theta = rho * instance.cluster.gpus / (saturated - (0 if beliefs is None else beliefs.out_of_order_gpus))
        late = 0.0 if all(isinstance(job.work, Fixed) for job in instance.jobs) else promise.kappa
        seen = _Longest(jobs, _as_seen(jobs, beliefs, instance))
        scale = lcm(theta.denominator, (theta / a).denominator) * instance.cluster.gpus
        slacks = _guard_slacks(jobs, (theta, theta / a), promise.patience, late, instance.cluster.gpus, seen, scale)
        longest = seen.values[-1][1] if seen.values else 0
        facts |= {
            "theta": float(theta),
            "gamma_s": promise.patience(longest) / US_PER_S,
            "longest_s": longest / US_PER_S,
        }
    slack, job = min(slacks, default=(None, None))
    worst = None if slack is None else Fraction(slack, scale)
    shorter = _virtual_share(submitted, instance)
    return GuaranteeReport(
        form="budget" if isinstance(promise, BudgetPromise) else "guard",
        parameters=facts | measured | ({} if shorter is None else {"virtual_share": float(shorter)}),
        holds=(worst is None or worst >= 0) and (shorter is None or shorter <= 1),
        worst_slack_s=None if worst is None else float(worst / US_PER_S),
        worst_job=job,
    )


def planned_instance(policy: Policy, instance: Instance) -> Instance:
    """The instance as a policy schedules it: the planned jobs of one that plans, else the instance itself."""
    if not isinstance(policy, PlanningPolicy):
        return instance
    jobs = [policy.planned(job, instance.cluster) for job in instance.jobs]
    same = all(job is other for job, other in zip(jobs, instance.jobs, strict=True))
    return instance if same else instance.replace(jobs=jobs)


def _virtual_share(submitted: Instance, planned: Instance) -> Fraction | None:
    """Flow on the virtual machine of the planned jobs over that of the jobs as submitted; None if they are the same.

    Where it is at most 1, what is promised against the former holds against the latter ([T7]).
    """
    if planned is submitted:
        return None
    totals = []
    for instance in (planned, submitted):
        fitting = [job for job in instance.jobs if never_fits(job, instance.cluster) is None]
        sizes = [(instant_us(job.release_s), job.gpus * fastest_us(job, instance.cluster)) for job in fitting]
        gpus = instance.cluster.gpus
        totals.append(sum(virtual_completions(sizes, gpus)) - sum(release for release, _ in sizes) * gpus)
    return Fraction(*totals) if totals[1] else None


def distortion(instance: Instance, beliefs: Beliefs) -> tuple[Fraction, Fraction] | None:
    """a and b: the least and the largest ŵ / w over the jobs that fit; None without jobs.

    Examples
    --------
    >>> from frostline.problem import Cluster, Job
    >>> jobs = [Job(id=i, release_s=0, work=Fixed(duration_s=1), gpus=2) for i in "xy"]
    >>> beliefs = Beliefs(jobs={"x": Believed(1_000_000, 500_000), "y": Believed(6_000_000, 3_000_000)})
    >>> [str(ratio) for ratio in distortion(Instance(cluster=Cluster.uniform(1), jobs=jobs), beliefs)]
    ['1/2', '3']
    """
    fitting = [job for job in instance.jobs if never_fits(job, instance.cluster) is None]
    works = [(beliefs.jobs[job.id].work, job.gpus * fastest_us(job, instance.cluster)) for job in fitting]
    if not works:
        return None
    floats = [fed / true for fed, true in works]
    least, largest = min(floats) * (1 + 1e-9), max(floats) * (1 - 1e-9)
    ratios = [Fraction(*work) for work, ratio in zip(works, floats, strict=True) if not least < ratio < largest]
    return min(ratios), max(ratios)


def _measured(instance: Instance, beliefs: Beliefs | None) -> tuple[Fraction, dict[str, Any]]:
    """a, and what is reported of the predictions."""
    if beliefs is None:
        return Fraction(1), {}
    a, b = distortion(instance, beliefs) or (Fraction(1), Fraction(1))
    return a, {"a": float(a), "b": float(b), "D": float(b / a), "E_measured": beliefs.out_of_order_gpus}


def _jobs(instance: Instance, schedule: Schedule, kappa: float, beliefs: Beliefs | None) -> list[_Job]:
    """Jobs that ran, with the latest time each is due."""
    columns, gpus = rigid_columns(instance), instance.cluster.gpus
    releases, shortest = columns.release_us.tolist(), columns.duration_us.tolist()
    if beliefs is None:
        fed, durations, virtual = columns.work, shortest, virtual_times(columns, gpus)
    else:
        believed = [beliefs.jobs[job] for job in columns.ids]
        fed, durations = [belief.work for belief in believed], [belief.duration_us for belief in believed]
        virtual = virtual_completions(zip(releases, fed, strict=True), gpus)
    late = {job.id for job in instance.jobs if not isinstance(job.work, Fixed)}
    start_us, end_us = schedule.start_us, schedule.completion_us
    origin = releases[0] if releases else 0
    rows = zip(columns.ids, releases, map(int, virtual), durations, shortest, columns.gpus.tolist(), fed, strict=True)
    return [
        _Job(
            job,
            release - origin,
            -(at // -gpus) - origin + (int(kappa * duration) if job in late else 0),
            start_us[job] - origin,
            end_us[job] - origin,
            p,
            width,
            work,
        )
        for job, release, at, duration, p, width, work in rows
        if job in start_us
    ]


def _shapes(instance: Instance) -> set[Shape]:
    """Shapes of the jobs that fit; those of fixed work have that of any other of their GPUs and locality."""
    alike = {(job.gpus, job.locality, "" if isinstance(job.work, Fixed) else job.id): job for job in instance.jobs}
    cluster = instance.cluster
    return {shape_of(job, cluster) for job in alike.values() if never_fits(job, cluster) is None}


def _stretches(jobs: Iterable[_Job]) -> set[tuple[int, int]]:
    """Durations of the jobs and the shortest ones; those of jobs that are as short as can be count as 1."""
    pairs = ((job.end - job.start, job.shortest) for job in jobs)
    return {(1, 1) if duration == shortest else (duration, shortest) for duration, shortest in pairs}


def _budget_slacks(
    jobs: list[_Job], theta: Fraction, rho: Fraction, gpus: int, scale: int
) -> Iterable[tuple[int, str]]:
    """(1 + θ) E_j − θ ŵ_j + ρ p_j − C_j for every job, in so many parts of a microsecond; θ is divided by a."""
    due = int((1 + theta) * scale)
    work = int(theta * scale) // gpus if gpus else 0  # on a cluster without GPUs there are no jobs
    duration = int(rho * scale)
    for job in jobs:
        yield due * job.due - work * job.fed + duration * job.shortest - scale * job.end, job.id


def _guard_slacks(
    jobs: list[_Job],
    thetas: tuple[Fraction, Fraction],
    patience: Callable[[int], int],
    kappa: float,
    gpus: int,
    seen: _Longest,
    scale: int,
) -> Iterable[tuple[int, str]]:
    """Bound on the start of every job − its start, in so many parts of a microsecond, by θ and θ/a."""
    periods = _strict_periods(jobs, seen, patience)
    begins = [begin for begin, _ in periods]
    unit = scale // gpus if gpus else 0  # on a cluster without GPUs there are no jobs
    running, queued = (int(theta * unit) for theta in thetas)
    beyond = max(queued - unit, 0) * gpus
    for job in jobs:
        p_max, believed, w_max = seen.at(job.start)
        latest = job.due + patience(believed)
        slack = scale * (latest - job.start)
        if slack < 0:
            slack += beyond * (latest - periods[bisect_right(begins, job.start) - 1][0])
        slack += running * gpus * p_max + queued * (gpus * (int(kappa * believed) + 1) + w_max - job.fed)
        yield slack, job.id


def _as_seen(jobs: Iterable[_Job], beliefs: Beliefs | None, instance: Instance) -> Iterable[tuple[int, int]]:
    """When the longest duration that the policy saw grew, from the first release, and to how much."""
    if beliefs is None:
        return [(job.release, job.shortest) for job in jobs]
    fitting = (job for job in instance.jobs if never_fits(job, instance.cluster) is None)
    origin = next((instant_us(job.release_s) for job in fitting), 0)
    return [(time - origin, longest) for time, longest in beliefs.longest]


class _Longest:
    """Longest duration, true and as seen by the policy, and most work as fed, of the jobs so far, by time."""

    def __init__(self, jobs: Iterable[_Job], seen: Iterable[tuple[int, int]]) -> None:
        self.times: list[int] = []
        self.values: list[tuple[int, int, int]] = []
        releases = ((job.release, job.shortest, 0, job.fed) for job in jobs)
        top = (0, 0, 0)
        for time, *values in sorted([*releases, *((time, 0, longest, 0) for time, longest in seen)]):
            higher = tuple(map(max, top, values))
            if higher != top:
                top = higher[0], higher[1], higher[2]
                self.times.append(time)
                self.values.append(top)

    def at(self, time: int) -> tuple[int, int, int]:
        """Longest duration, the same as seen by the policy, and most work at a time."""
        return self.values[bisect_right(self.times, time) - 1]


def _strict_periods(jobs: list[_Job], seen: _Longest, patience: Callable[[int], int]) -> list[tuple[int, int]]:
    """Maximal periods in which some due job has waited longer than Γ, as closed intervals in order."""
    urgent = []
    for job in jobs:
        if job.start <= job.due or job.due + patience(seen.at(job.due)[1]) > job.start:
            continue
        for i, (_, believed, _) in enumerate(seen.values):
            until = min(job.start, seen.times[i + 1]) if i + 1 < len(seen.times) else job.start
            begin = max(seen.times[i], job.due + patience(believed))
            if begin <= until:
                urgent.append((begin, until))
    periods: list[tuple[int, int]] = []
    for begin, until in sorted(urgent):
        if periods and begin <= periods[-1][1]:
            periods[-1] = (periods[-1][0], max(periods[-1][1], until))
        else:
            periods.append((begin, until))
    return periods
