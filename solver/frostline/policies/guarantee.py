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
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from frostline.placement.free_gpus import shape_of
from frostline.placement.saturation import saturation
from frostline.policies.base import Policy
from frostline.problem.instance import Instance
from frostline.problem.job import Fixed
from frostline.problem.refusal import never_fits
from frostline.problem.schedule import Schedule
from frostline.relaxation.srpt import virtual_completions
from frostline.timing.duration import fastest_us
from frostline.units import US_PER_S, instant_us

__all__ = ["BudgetPromise", "GuaranteeReport", "GuardPromise", "Promise", "check_guarantee"]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class GuaranteeReport:
    """Outcome of checking a guarantee for every job.

    Parameters
    ----------
    form : str
        ``budget`` or ``guard``.
    parameters : mapping
        G, B, ρ, θ, and E or Γ at the end.
    holds : bool
        Whether the inequality holds for every job.
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


def check_guarantee(policy: Policy, instance: Instance, schedule: Schedule) -> GuaranteeReport | None:
    """Check the guarantee that a policy promises on a schedule it made; None where it promises nothing.

    Jobs of the instance that are not in the schedule are left out of the check, not of the virtual machine.
    """
    promise_of = getattr(policy, "promise", None)
    if promise_of is None:
        return None
    shapes = {shape_of(job, instance.cluster) for job in instance.jobs if never_fits(job, instance.cluster) is None}
    saturated = max(saturation(shapes, instance.cluster), 1)  # 0 on a cluster without GPUs, where no job runs
    promise: Promise = promise_of(saturated)
    jobs = _jobs(instance, schedule, promise.kappa)
    rho = max((Fraction(job.end - job.start, job.shortest) for job in jobs), default=Fraction(1))
    facts: dict[str, Any] = {"G": instance.cluster.gpus, "B": saturated, "rho": float(rho)}
    if isinstance(promise, BudgetPromise):
        theta = rho * instance.cluster.gpus / (saturated - promise.budget_gpus)
        slacks = _budget_slacks(jobs, theta, rho, instance.cluster.gpus)
        facts |= {"theta": float(theta), "E": promise.budget_gpus}
    else:
        theta = rho * instance.cluster.gpus / saturated
        late = 0.0 if all(isinstance(job.work, Fixed) for job in instance.jobs) else promise.kappa
        slacks = _guard_slacks(jobs, theta, promise.patience, late, instance.cluster.gpus)
        longest = max((job.shortest for job in jobs), default=0)
        facts |= {
            "theta": float(theta),
            "gamma_s": promise.patience(longest) / US_PER_S,
            "longest_s": longest / US_PER_S,
        }
    worst, job = min(slacks, default=(None, None))
    return GuaranteeReport(
        form="budget" if isinstance(promise, BudgetPromise) else "guard",
        parameters=facts,
        holds=worst is None or worst >= 0,
        worst_slack_s=None if worst is None else float(worst / US_PER_S),
        worst_job=job,
    )


def _jobs(instance: Instance, schedule: Schedule, kappa: float) -> list[_Job]:
    """Jobs that ran, with the latest time each is due."""
    fitting = [job for job in instance.jobs if never_fits(job, instance.cluster) is None]
    releases = [instant_us(job.release_s) for job in fitting]
    shortest = [fastest_us(job, instance.cluster) for job in fitting]
    sizes = ((release, job.gpus * p) for release, job, p in zip(releases, fitting, shortest, strict=True))
    gpus = instance.cluster.gpus
    virtual = virtual_completions(sizes, gpus)
    start_us, end_us = schedule.start_us, schedule.completion_us
    origin = releases[0] if releases else 0
    return [
        _Job(
            job.id,
            release - origin,
            -(at // -gpus) - origin + (0 if isinstance(job.work, Fixed) else int(kappa * p)),
            start_us[job.id] - origin,
            end_us[job.id] - origin,
            p,
            job.gpus,
        )
        for job, release, at, p in zip(fitting, releases, virtual, shortest, strict=True)
        if job.id in start_us
    ]


def _budget_slacks(jobs: list[_Job], theta: Fraction, rho: Fraction, gpus: int) -> Iterable[tuple[Fraction, str]]:
    """(1 + θ) E_j − θ w_j + ρ p_j − C_j for every job, in microseconds."""
    scale = theta.denominator * gpus * rho.denominator
    due = int((1 + theta) * scale)
    work = int(theta * scale) // gpus if gpus else 0  # on a cluster without GPUs there are no jobs
    duration = int(rho * scale)
    for job in jobs:
        slack = due * job.due - work * job.gpus * job.shortest + duration * job.shortest - scale * job.end
        yield Fraction(slack, scale), job.id


def _guard_slacks(
    jobs: list[_Job], theta: Fraction, patience: Callable[[int], int], kappa: float, gpus: int
) -> Iterable[tuple[Fraction, str]]:
    """Bound on the start of every job − its start, in microseconds."""
    seen = _Longest(jobs)
    periods = _strict_periods(jobs, seen, patience)
    begins = [begin for begin, _ in periods]
    scale = theta.denominator * gpus
    beyond = max(theta.numerator - theta.denominator, 0) * gpus
    for job in jobs:
        p_max, w_max = seen.at(job.start)
        latest = job.due + patience(p_max)
        slack = scale * (latest - job.start)
        if slack < 0:
            slack += beyond * (latest - periods[bisect_right(begins, job.start) - 1][0])
        slack += theta.numerator * (gpus * (p_max + int(kappa * p_max) + 1) + w_max - job.gpus * job.shortest)
        yield Fraction(slack, scale), job.id


class _Longest:
    """Longest duration and most work among the jobs released so far, as step functions of time."""

    def __init__(self, jobs: Iterable[_Job]) -> None:
        self.times: list[int] = []
        self.values: list[tuple[int, int]] = []
        longest = most = 0
        for job in jobs:
            work = job.gpus * job.shortest
            if job.shortest > longest or work > most:
                longest, most = max(longest, job.shortest), max(most, work)
                self.times.append(job.release)
                self.values.append((longest, most))

    def at(self, time: int) -> tuple[int, int]:
        """Longest duration and most work at a time."""
        return self.values[bisect_right(self.times, time) - 1]


def _strict_periods(jobs: list[_Job], seen: _Longest, patience: Callable[[int], int]) -> list[tuple[int, int]]:
    """Maximal periods in which some due job has waited longer than Γ, as closed intervals in order."""
    urgent = []
    for job in jobs:
        if job.start <= job.due:
            continue
        for i, (longest, _) in enumerate(seen.values):
            until = min(job.start, seen.times[i + 1]) if i + 1 < len(seen.times) else job.start
            begin = max(seen.times[i], job.due + patience(longest))
            if begin <= until:
                urgent.append((begin, until))
    periods: list[tuple[int, int]] = []
    for begin, until in sorted(urgent):
        if periods and begin <= periods[-1][1]:
            periods[-1] = (periods[-1][0], max(periods[-1][1], until))
        else:
            periods.append((begin, until))
    return periods
