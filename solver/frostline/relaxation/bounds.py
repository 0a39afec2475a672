"""Lower bounds on the total completion time and the total flow time of every schedule.

Each bound holds against schedules that know the future. Those of :data:`BOUNDS` hold even where these preempt and
migrate at will; those by prices, ``lagrangian`` and ``one-shot``, where they run every job in one piece. All are in
exact integers over the instance whose times are whole microseconds, which is the instance that schedules are made for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from heapq import heappop, heappush
from math import ceil
from types import MappingProxyType
from typing import Any

import numpy as np

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.problem.instance import Instance
from frostline.relaxation.lagrangian.ascent import best_prices, one_shot
from frostline.relaxation.lagrangian.certificate import certificate_of
from frostline.relaxation.lagrangian.jit import loops
from frostline.relaxation.lagrangian.kernel import Ints
from frostline.relaxation.lagrangian.prices import Evaluation, exact_sum
from frostline.relaxation.lagrangian.problem import price_problem
from frostline.relaxation.rigid import Rigid, RigidColumns, rigid_columns, rigid_jobs
from frostline.relaxation.srpt import virtual_completions
from frostline.timing.options import Choices
from frostline.units import US_PER_S

__all__ = ["BOUNDS", "METHODS", "Bound", "Rigid", "bound_certificate", "lower_bound", "rigid_jobs", "virtual_times"]

_MOST = 2**62
_MANY = 10_000  # jobs from which on loading compiled code pays


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A proved lower bound.

    Parameters
    ----------
    method : str
        Name of the bound.
    jobs : int
        Number of jobs it is over.
    completion_us : Fraction
        Bound on the sum of completion times, in microseconds.
    release_us : int
        Sum of release times; the bound on total flow is the difference.
    prices : Evaluation or None
        Prices of GPUs that prove it, of a bound by prices: it holds for schedules that run every job in one piece.
    choices : Choices
        What elastic work may choose in the schedules that it holds for.
    """

    method: str
    jobs: int
    completion_us: Fraction
    release_us: int
    prices: Evaluation | None = field(default=None, repr=False, compare=False)
    choices: Choices = Choices.ASKED

    @property
    def allows_interruptions(self) -> bool:
        """Whether the bound holds for schedules that interrupt jobs, too."""
        return self.prices is None

    @property
    def total_completion_s(self) -> float:
        """Bound on the sum of completion times in seconds."""
        return float(self.completion_us / US_PER_S)

    @property
    def total_flow_s(self) -> float:
        """Bound on the sum of flow times in seconds."""
        return float((self.completion_us - self.release_us) / US_PER_S)

    @property
    def mean_flow_s(self) -> float | None:
        """Bound on the mean flow time in seconds; None without jobs."""
        return self.total_flow_s / self.jobs if self.jobs else None

    @property
    def certificate(self) -> dict[str, object]:
        """The exact value, for a check by recomputation."""
        numerator, denominator = self.completion_us.as_integer_ratio()
        return {
            "format": "frostline/bound",
            "version": 1,
            "method": self.method,
            "jobs": self.jobs,
            "total_completion_us": [numerator, denominator],
            "total_release_us": self.release_us,
        }


def trivial(jobs: RigidColumns, gpus: int) -> Fraction:
    """No job completes before release + shortest duration."""
    return Fraction(exact_sum(jobs.release_us) + exact_sum(jobs.duration_us))


def srpt(jobs: RigidColumns, gpus: int) -> Fraction:
    """The virtual machine finishes no later than any schedule, k-th completion by k-th completion."""
    virtual = virtual_times(jobs, gpus)
    return Fraction(sum(virtual) if isinstance(virtual, list) else exact_sum(virtual), gpus)


def pointwise(jobs: RigidColumns, gpus: int) -> Fraction:
    """Both counting bounds at once: the k-th completion is at least the k-th of either."""
    virtual = virtual_times(jobs, gpus)
    single = (jobs.release_us + jobs.duration_us).tolist()
    if not isinstance(virtual, list):
        kth = np.maximum(np.sort(virtual), np.sort(jobs.release_us + jobs.duration_us) * gpus)
        return Fraction(exact_sum(kth), gpus)
    return Fraction(sum(map(max, sorted(virtual), sorted(at * gpus for at in single))), gpus)


def mean_busy(jobs: RigidColumns, gpus: int) -> Fraction:
    """Completion is at least the mean busy time plus half the duration.

    On the virtual machine the sum of mean busy times is least when the job of least *original* work has priority
    (M. X. Goemans, *Improved approximation algorithms for scheduling with release dates*, SODA 1997). Each mean is
    floored to 1/G microseconds, which keeps the bound valid.
    """
    rows = jobs.rows
    twice = sum(moment // work for moment, work in _busy_moments(rows, gpus))
    twice += sum(job.duration_us * gpus for job in rows)
    return Fraction(twice, 2 * gpus)


def virtual_times(jobs: RigidColumns, gpus: int) -> list[int] | Ints:
    """Virtual completions: compiled where that is possible and the numbers are small enough, to the same values."""
    run = loops() if len(jobs.ids) >= _MANY and jobs.least_work is None else None
    last = int(jobs.release_us.max(initial=0)) * gpus + float(jobs.gpus.astype(float) @ jobs.duration_us)
    if run is None or max(last, -int(jobs.release_us.min(initial=0)) * gpus) > _MOST:
        return virtual_completions(zip(jobs.release_us.tolist(), jobs.work, strict=True), gpus)
    completions: Ints = run.shortest_remaining(jobs.release_us * gpus, jobs.gpus * jobs.duration_us)
    return completions


def _busy_moments(jobs: list[Rigid], gpus: int) -> Iterable[tuple[int, int]]:
    """For each job ∫ 2t dt over the time it is served, in squared units of 1/G microseconds, and its work.

    The machine serves the job of least original work among those released; ties go to the earlier one.
    """
    alive: list[tuple[int, int]] = []
    left = [job.work for job in jobs]
    moment = [0] * len(jobs)
    clock = coming = 0
    while alive or coming < len(jobs):
        if not alive:
            clock = max(clock, jobs[coming].release_us * gpus) if coming else jobs[0].release_us * gpus
        while coming < len(jobs) and jobs[coming].release_us * gpus <= clock:
            heappush(alive, (jobs[coming].work, coming))
            coming += 1
        served = alive[0][1]
        until = clock + left[served]
        if coming < len(jobs):
            until = min(until, jobs[coming].release_us * gpus)
        moment[served] += until * until - clock * clock
        left[served] -= until - clock
        clock = until
        if not left[served]:
            heappop(alive)
    return zip(moment, (job.work for job in jobs), strict=True)


BOUNDS: Mapping[str, Callable[[RigidColumns, int], Fraction]] = MappingProxyType(
    {"trivial": trivial, "srpt": srpt, "mean_busy": mean_busy, "pointwise": pointwise}
)
"""Bounds against all schedules, those that interrupt jobs included."""

_COUNTING = ("trivial", "srpt", "pointwise")
"""Bounds that need no more of a job than its least duration and its least GPU-time."""

METHODS = (*BOUNDS, "one-shot", "lagrangian", "best")
"""What :func:`lower_bound` can be asked for."""


def lower_bound(instance: Instance, method: str = "pointwise", *, choices: Choices | str = Choices.ASKED) -> Bound:
    """Lower bound on the total completion time of the jobs that can run at all.

    Parameters
    ----------
    instance : Instance
        Cluster and jobs; jobs that never fit are left out.
    method : str
        ``trivial``, ``srpt``, ``mean_busy`` or ``pointwise``; ``lagrangian``, by the best prices of GPUs that some
        iterations find, or ``one-shot``, by prices without iterations; ``best``: the greater of ``pointwise`` and
        ``lagrangian``, which leave certificates, under its own name.
    choices : Choices
        What elastic work may choose, at any time, in the schedules that the bound is to hold for. Where it is
        ``levels``, bounds by prices are not known; where it is ``elastic``, only ``trivial``, ``srpt`` and
        ``pointwise`` are: they count completions by the least duration and the least GPU-time of every job ([T7]).

    Raises
    ------
    UnknownNameError
        No such method or choice.
    InvalidValueError
        The method does not hold for such schedules.

    Examples
    --------
    >>> from frostline.problem.cluster import Cluster
    >>> from frostline.problem.job import Fixed, Job
    >>> jobs = [Job(id="a", release_s=0, work=Fixed(duration_s=10), gpus=8),
    ...         Job(id="b", release_s=0, work=Fixed(duration_s=2), gpus=4)]
    >>> instance = Instance(cluster=Cluster.pool(8), jobs=jobs)
    >>> [f"{name} {lower_bound(instance, name).total_completion_s:g}" for name in METHODS]
    ['trivial 12', 'srpt 12', 'mean_busy 12.5', 'pointwise 13', 'one-shot 14', 'lagrangian 14', 'best 14']
    """
    if method not in METHODS:
        raise UnknownNameError("bound", method, METHODS)
    if choices not in set(Choices):
        raise UnknownNameError("choice", str(choices), [choice.value for choice in Choices])
    chosen = Choices(choices)
    known = {Choices.ASKED: METHODS, Choices.LEVELS: tuple(BOUNDS), Choices.ELASTIC: _COUNTING}[chosen]
    if method not in known:
        rule = f"must be {' or '.join(known)} where elastic work has the choices {chosen.value!r}"
        raise InvalidValueError("bound", "method", method, rule)
    jobs = rigid_columns(instance, chosen)
    names = ["pointwise", "lagrangian"] if method == "best" else [method]
    bounds = [replace(_bound(instance, jobs, name), choices=chosen) for name in names]
    return max(bounds, key=lambda bound: bound.completion_us)


def _bound(instance: Instance, jobs: RigidColumns, method: str) -> Bound:
    count, release_us = len(jobs.ids), exact_sum(jobs.release_us)
    if not count:
        return Bound(method=method, jobs=0, completion_us=Fraction(0), release_us=0)
    if method in BOUNDS:
        value = BOUNDS[method](jobs, instance.cluster.gpus)
        return Bound(method=method, jobs=count, completion_us=value, release_us=release_us)
    problem = price_problem(instance)
    found = one_shot(problem) if method == "one-shot" else best_prices(problem).best
    value = Fraction(found.bound * problem.tick_us)
    return Bound(method=method, jobs=count, completion_us=value, release_us=release_us, prices=found)


def bound_certificate(instance: Instance, bound: Bound) -> dict[str, Any]:
    """Certificate of a bound by prices or of the pointwise bound, for :func:`frostline.certify.check_certificate`.

    Parameters
    ----------
    instance : Instance
        The instance that the bound is for.
    bound : Bound
        The bound.

    Raises
    ------
    InvalidValueError
        The method leaves no certificate, or elastic work may choose.

    Examples
    --------
    >>> from frostline.problem.cluster import Cluster
    >>> from frostline.problem.job import Fixed, Job
    >>> jobs = [Job(id=i, release_s=0, work=Fixed(duration_s=10), gpus=8) for i in "ab"]
    >>> instance = Instance(cluster=Cluster.pool(8), jobs=jobs)
    >>> certificate = bound_certificate(instance, lower_bound(instance))
    >>> certificate["bound"], certificate["problem"]["tick_us"], certificate["proof"]
    (3, 10000000, 'pointwise')
    """
    if bound.choices is not Choices.ASKED:
        raise InvalidValueError("bound", "choices", bound.choices.value, "leaves no certificate")
    problem = price_problem(instance)
    if bound.prices is not None:
        return certificate_of(problem, bound.prices)
    if bound.method != "pointwise" or not bound.jobs:
        rule = "leaves no certificate; pointwise, one-shot and lagrangian do, where there are jobs"
        raise InvalidValueError("bound", "method", bound.method, rule)
    ticks = RigidColumns(ids=problem.ids, release_us=problem.release, duration_us=problem.duration, gpus=problem.width)
    return certificate_of(problem, "pointwise", ceil(pointwise(ticks, problem.gpus)))
