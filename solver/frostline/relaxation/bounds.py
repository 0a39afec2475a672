"""Lower bounds on the total completion time and the total flow time of every schedule.

Each bound holds against schedules that know the future, preempt and migrate at will. All are computed in exact
integers over the instance whose times are whole microseconds, which is the instance that schedules are made for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from heapq import heappop, heappush
from types import MappingProxyType
from typing import NamedTuple

from frostline.errors import UnknownNameError
from frostline.problem.cluster import Cluster
from frostline.problem.instance import Instance
from frostline.problem.job import Job
from frostline.problem.refusal import never_fits
from frostline.relaxation.srpt import virtual_completions
from frostline.timing.duration import fastest_us
from frostline.units import US_PER_S, instant_us

__all__ = ["BOUNDS", "Bound", "Rigid", "lower_bound", "rigid_jobs"]


class Rigid(NamedTuple):
    """What a relaxation keeps of a job: release, shortest duration, GPUs; times in microseconds."""

    release_us: int
    duration_us: int
    gpus: int

    @property
    def work(self) -> int:
        """GPU-microseconds, the work it brings to the virtual machine."""
        return self.gpus * self.duration_us


def rigid_jobs(jobs: Iterable[Job], cluster: Cluster) -> list[Rigid]:
    """Relaxed jobs, in the order given, without those that never fit."""
    return [
        Rigid(instant_us(job.release_s), fastest_us(job, cluster), job.gpus)
        for job in jobs
        if never_fits(job, cluster) is None
    ]


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
    """

    method: str
    jobs: int
    completion_us: Fraction
    release_us: int

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


def trivial(jobs: list[Rigid], gpus: int) -> Fraction:
    """No job completes before release + shortest duration."""
    return Fraction(sum(job.release_us + job.duration_us for job in jobs))


def srpt(jobs: list[Rigid], gpus: int) -> Fraction:
    """The virtual machine finishes no later than any schedule, k-th completion by k-th completion."""
    return Fraction(sum(_virtual(jobs, gpus)), gpus)


def pointwise(jobs: list[Rigid], gpus: int) -> Fraction:
    """Both counting bounds at once: the k-th completion is at least the k-th of either."""
    single = sorted((job.release_us + job.duration_us) * gpus for job in jobs)
    return Fraction(sum(map(max, sorted(_virtual(jobs, gpus)), single)), gpus)


def mean_busy(jobs: list[Rigid], gpus: int) -> Fraction:
    """Completion is at least the mean busy time plus half the duration.

    On the virtual machine the sum of mean busy times is least when the job of least *original* work has priority
    (M. X. Goemans, *Improved approximation algorithms for scheduling with release dates*, SODA 1997). Each mean is
    floored to 1/G microseconds, which keeps the bound valid.
    """
    twice = sum(moment // work for moment, work in _busy_moments(jobs, gpus))
    twice += sum(job.duration_us * gpus for job in jobs)
    return Fraction(twice, 2 * gpus)


def _virtual(jobs: list[Rigid], gpus: int) -> list[int]:
    return virtual_completions(((job.release_us, job.work) for job in jobs), gpus)


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


BOUNDS: Mapping[str, Callable[[list[Rigid], int], Fraction]] = MappingProxyType(
    {"trivial": trivial, "srpt": srpt, "mean_busy": mean_busy, "pointwise": pointwise}
)


def lower_bound(instance: Instance, method: str = "pointwise") -> Bound:
    """Lower bound on the total completion time of the jobs that can run at all.

    Parameters
    ----------
    instance : Instance
        Cluster and jobs; jobs that never fit are left out.
    method : str
        ``trivial``, ``srpt``, ``mean_busy``, ``pointwise``, or ``best``: the greatest of them, under its own name.

    Raises
    ------
    UnknownNameError
        No such method.

    Examples
    --------
    >>> from frostline.problem.job import Fixed
    >>> jobs = [Job(id="a", release_s=0, work=Fixed(duration_s=10), gpus=8),
    ...         Job(id="b", release_s=0, work=Fixed(duration_s=2), gpus=4)]
    >>> instance = Instance(cluster=Cluster.pool(8), jobs=jobs)
    >>> {name: lower_bound(instance, name).total_completion_s for name in BOUNDS}
    {'trivial': 12.0, 'srpt': 12.0, 'mean_busy': 12.5, 'pointwise': 13.0}
    """
    jobs = rigid_jobs(instance.jobs, instance.cluster)
    if method == "best":
        values = {name: bound(jobs, instance.cluster.gpus) if jobs else Fraction(0) for name, bound in BOUNDS.items()}
        method = max(values, key=lambda name: values[name])
        value = values[method]
    elif method in BOUNDS:
        value = BOUNDS[method](jobs, instance.cluster.gpus) if jobs else Fraction(0)
    else:
        raise UnknownNameError("bound", method, [*BOUNDS, "best"])
    return Bound(method=method, jobs=len(jobs), completion_us=value, release_us=sum(job.release_us for job in jobs))
