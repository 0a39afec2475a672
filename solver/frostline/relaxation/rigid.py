"""What a relaxation keeps of a job: release, shortest duration, GPUs."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from frostline.problem.cluster import Cluster
from frostline.problem.instance import Instance
from frostline.problem.job import Fixed, Job, Locality
from frostline.problem.refusal import never_fits
from frostline.timing.duration import fastest_us
from frostline.timing.options import Choices, least_of
from frostline.units import US_PER_S, instant_us

__all__ = ["Rigid", "RigidColumns", "durations_us", "instants_us", "rigid_columns", "rigid_jobs"]

Ints = npt.NDArray[np.int64]


class Rigid(NamedTuple):
    """What a relaxation keeps of a job: release, shortest duration, GPUs; times in microseconds."""

    release_us: int
    duration_us: int
    gpus: int

    @property
    def work(self) -> int:
        """GPU-microseconds, the work it brings to the virtual machine."""
        return self.gpus * self.duration_us


@dataclass(frozen=True, slots=True, kw_only=True)
class RigidColumns:
    """Relaxed jobs column by column, in order of release; times in microseconds.

    Parameters
    ----------
    ids : tuple of str
        Identifiers.
    release_us, duration_us, gpus : array of int64, shape (n,)
        Release, shortest duration and GPUs.
    least_work : tuple of int or None
        Least GPU-microseconds of the jobs where they may choose their GPUs; else their GPUs times their durations.
    """

    ids: tuple[str, ...]
    release_us: Ints
    duration_us: Ints
    gpus: Ints
    least_work: tuple[int, ...] | None = None

    @property
    def work(self) -> list[int]:
        """GPU-microseconds that each job brings to the virtual machine, as numbers without bounds."""
        if self.least_work is not None:
            return list(self.least_work)
        return list(map(operator.mul, self.gpus.tolist(), self.duration_us.tolist()))

    @property
    def rows(self) -> list[Rigid]:
        """The same job by job."""
        columns = (self.release_us, self.duration_us, self.gpus)
        return [Rigid(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def rigid_columns(instance: Instance, choices: Choices = Choices.ASKED) -> RigidColumns:
    """Relaxed jobs of an instance, without those that never fit; elastic work takes the least that it may choose.

    Examples
    --------
    >>> jobs = [Job(id=i, release_s=0, work=Fixed(duration_s=2), gpus=g) for i, g in [("a", 4), ("wide", 9)]]
    >>> columns = rigid_columns(Instance(cluster=Cluster.uniform(1), jobs=jobs))
    >>> columns.ids, columns.rows
    (('a',), [Rigid(release_us=0, duration_us=2000000, gpus=4)])
    """
    cluster = instance.cluster
    largest, anywhere = cluster.largest, Locality.ANY
    kept = [
        job
        for job in instance.jobs
        if (job.gpus <= largest and job.locality is anywhere) or never_fits(job, cluster) is None
    ]
    least = [] if choices is Choices.ASKED else [least_of(job, cluster, choices) for job in kept]
    return RigidColumns(
        ids=tuple([job.id for job in kept]),
        release_us=instants_us(np.array([job.release_s for job in kept], np.float64)),
        duration_us=np.array([job.duration_us for job in least], np.int64) if least else _durations_us(kept, cluster),
        gpus=np.array([job.gpus for job in kept], np.int64),
        least_work=tuple(job.gpu_us for job in least) if least and choices is Choices.ELASTIC else None,
    )


def _durations_us(jobs: Sequence[Job], cluster: Cluster) -> Ints:
    """Shortest duration of each job."""
    fixed = [job.work.duration_s for job in jobs if isinstance(job.work, Fixed)]
    if len(fixed) == len(jobs):
        return durations_us(np.array(fixed, np.float64))
    return np.array([fastest_us(job, cluster) for job in jobs], np.int64)


def instants_us(instants_s: npt.NDArray[np.float64]) -> Ints:
    """:func:`~frostline.units.instant_us` of whole columns.

    Examples
    --------
    >>> instants_us(np.array([0.1, 1.0000004])).tolist()
    [100000, 1000000]
    """
    return np.rint(instants_s * US_PER_S).astype(np.int64)


def durations_us(durations_s: npt.NDArray[np.float64]) -> Ints:
    """:func:`~frostline.units.duration_us` of whole columns.

    Examples
    --------
    >>> durations_us(np.array([1.1, 1e-9, 0.25])).tolist()
    [1100000, 1, 250000]
    """
    exact = durations_s * US_PER_S
    nearest = np.rint(exact)
    close = np.abs(exact - nearest) <= 4 * np.spacing(exact)
    return np.where(close, nearest, np.ceil(exact)).astype(np.int64)


def rigid_jobs(jobs: Iterable[Job], cluster: Cluster) -> list[Rigid]:
    """Relaxed jobs, in the order given, without those that never fit."""
    return [
        Rigid(instant_us(job.release_s), fastest_us(job, cluster), job.gpus)
        for job in jobs
        if never_fits(job, cluster) is None
    ]
