"""The size of a job, the quantity that is predicted: iterations, or seconds where the work has no iterations."""

from __future__ import annotations

import math
from dataclasses import replace

from frostline.errors import InvalidValueError
from frostline.problem.job import Fixed, Job, with_work

__all__ = ["SMALLEST_S", "blinded", "on_grid", "size_of", "with_size"]

SMALLEST_S = 1e-6
"""Least size of a job without iterations: a microsecond."""

_LARGEST_S = 8.9e9
_LARGEST_ITERATIONS = 10**15
_BLIND = Fixed(duration_s=1.0)


def size_of(job: Job) -> float:
    """Iterations of a job, or its duration in seconds where its work is ``Fixed``.

    Examples
    --------
    >>> size_of(Job(id="a", release_s=0, work=Fixed(duration_s=60), gpus=1))
    60.0
    """
    return job.work.duration_s if isinstance(job.work, Fixed) else float(job.work.iterations)


def with_size(job: Job, size: float) -> Job:
    """The job with another size, clamped to at least one iteration (a microsecond where it has none).

    Raises
    ------
    InvalidValueError
        The size is NaN.

    Examples
    --------
    >>> with_size(Job(id="a", release_s=0, work=Fixed(duration_s=60), gpus=1), -5).work
    Fixed(duration_s=1e-06)
    """
    if math.isnan(size):
        raise InvalidValueError(f"job {job.id!r}", "predicted size", size, "must be a number")
    if isinstance(job.work, Fixed):
        return with_work(job, Fixed(duration_s=min(max(size, SMALLEST_S), _LARGEST_S)), job.status)
    return job.replace(work=replace(job.work, iterations=round(min(max(size, 1.0), _LARGEST_ITERATIONS))))


def blinded(job: Job) -> Job:
    """The job with everything hidden that only its future can tell: its size and how it ended.

    Examples
    --------
    >>> blinded(Job(id="a", release_s=0, work=Fixed(duration_s=60), gpus=1, status="Failed"))
    Job(id='a', release_s=0.0, work=Fixed(duration_s=1.0), gpus=1, ...)
    """
    if isinstance(job.work, Fixed):
        return job if job.work is _BLIND and not job.status else with_work(job, _BLIND, "")
    return job.replace(work=replace(job.work, iterations=1), status="")


def on_grid(size: float) -> float:
    """A size rounded to six significant digits, so that rounding errors of a model cannot decide a tie.

    Examples
    --------
    >>> on_grid(1234.56789), on_grid(1234.5678900000002)
    (1234.57, 1234.57)
    """
    return float(f"{size:.6g}")
