"""Jobs of known duration as arrays, their order, and the load they offer to a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

import numpy as np
import numpy.typing as npt

from frostline.errors import InvalidValueError
from frostline.problem.job import Fixed, Job
from frostline.problem.order import natural_key
from frostline.units import as_finite, as_int

__all__ = ["in_order", "job_arrays", "known_duration_s", "offered_load", "rescale_load", "take"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def in_order(jobs: Iterable[Job]) -> tuple[Job, ...]:
    """Jobs by release time and then by natural order of identifiers.

    Examples
    --------
    >>> jobs = [Job(id=i, release_s=r, work=Fixed(duration_s=1), gpus=1) for i, r in [("b10", 0), ("b9", 0), ("a", 5)]]
    >>> [job.id for job in in_order(jobs)]
    ['b9', 'b10', 'a']
    """
    by_release = sorted(jobs, key=lambda job: job.release_s)
    result: list[Job] = []
    for _, group in groupby(by_release, key=lambda job: job.release_s):
        same = list(group)
        result += sorted(same, key=lambda job: natural_key(job.id)) if len(same) > 1 else same
    return tuple(result)


def take(jobs: Iterable[Job], n: int) -> tuple[Job, ...]:
    """First ``n`` jobs in order of release, or all where there are fewer.

    Examples
    --------
    >>> jobs = [Job(id=i, release_s=r, work=Fixed(duration_s=1), gpus=1) for i, r in [("b", 7), ("a", 0)]]
    >>> [job.id for job in take(jobs, 1)]
    ['a']
    """
    return in_order(jobs)[: as_int(n, "trace", "jobs", 1)]


def known_duration_s(job: Job) -> float:
    """Duration of a job in seconds.

    Raises
    ------
    InvalidValueError
        Its work is not ``Fixed``, so that its duration depends on where it runs.

    Examples
    --------
    >>> known_duration_s(Job(id="a", release_s=0, work=Fixed(duration_s=60), gpus=1))
    60.0
    """
    if isinstance(job.work, Fixed):
        return job.work.duration_s
    raise InvalidValueError(f"job {job.id!r}", "work", type(job.work).__name__, "has no duration of its own")


def job_arrays(jobs: Sequence[Job]) -> tuple[Floats, Ints, Floats]:
    """Release times in seconds, GPUs, and durations in seconds, each of shape (jobs,).

    Raises
    ------
    InvalidValueError
        A job's work is not ``Fixed``.

    Examples
    --------
    >>> release_s, gpus, duration_s = job_arrays([Job(id="a", release_s=3, work=Fixed(duration_s=60), gpus=2)])
    >>> float((gpus * duration_s).sum())
    120.0
    """
    count = len(jobs)
    release_s = np.fromiter((job.release_s for job in jobs), np.float64, count)
    gpus = np.fromiter((job.gpus for job in jobs), np.int64, count)
    duration_s = np.fromiter(map(known_duration_s, jobs), np.float64, count)
    return release_s, gpus, duration_s


def offered_load(jobs: Sequence[Job], gpus: int) -> float | None:
    """GPU-seconds of the jobs over those that ``gpus`` GPUs have between the first and the last release.

    Returns
    -------
    float or None
        None where all jobs are released at one instant.

    Examples
    --------
    >>> jobs = [Job(id=str(i), release_s=i, work=Fixed(duration_s=3), gpus=2) for i in range(4)]
    >>> offered_load(jobs, 16)
    0.5
    """
    release_s, width, duration_s = job_arrays(jobs)
    span_s = float(np.ptp(release_s)) if jobs else 0.0
    gpu_s = float((width * duration_s).sum())
    return gpu_s / (span_s * as_int(gpus, "cluster", "gpus", 1)) if span_s > 0 else None


def rescale_load(jobs: Sequence[Job], gpus: int, load: float) -> tuple[Job, ...]:
    """Jobs with the gaps between releases stretched by one factor, so that they offer a load to ``gpus`` GPUs.

    The first release and all durations stay.

    Raises
    ------
    InvalidValueError
        The load is not above 0, or all jobs are released at one instant.

    Examples
    --------
    >>> jobs = [Job(id=str(i), release_s=i, work=Fixed(duration_s=3), gpus=2) for i in range(4)]
    >>> [job.release_s for job in rescale_load(jobs, gpus=16, load=1.0)]
    [0.0, 0.5, 1.0, 1.5]
    """
    wanted = as_finite(load, "trace", "load")
    if wanted <= 0:
        raise InvalidValueError("trace", "load", load, "must be above 0")
    present = offered_load(jobs, gpus)
    if present is None:
        raise InvalidValueError("trace", "span_s", 0.0, "must be above 0 for a load to be set")
    factor, first_s = present / wanted, min(job.release_s for job in jobs)
    return tuple(job.replace(release_s=first_s + (job.release_s - first_s) * factor) for job in jobs)
