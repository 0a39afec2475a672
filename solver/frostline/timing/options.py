"""The least that a job takes over all the ways in which it may run."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from frostline.problem.cluster import Cluster
from frostline.problem.job import Elastic, Job
from frostline.problem.refusal import never_fits
from frostline.timing.duration import elastic_iteration_ns, fastest_us, reachable_classes

__all__ = ["Choices", "Least", "least_of"]

_NS_PER_US = 1000


class Choices(StrEnum):
    """What elastic work may choose, at any time of its run."""

    ASKED = "asked"  # nothing: it runs on the GPUs that it asks for, at freeze level 0
    LEVELS = "levels"  # its freeze level, on the GPUs that it asks for
    ELASTIC = "elastic"  # its GPUs and its freeze level


class Least(NamedTuple):
    """Least duration and least GPU-time of a job, each in whole microseconds; no one run need have both."""

    duration_us: int
    gpu_us: int


def least_of(job: Job, cluster: Cluster, choices: Choices = Choices.ELASTIC) -> Least:
    """Least duration and GPU-time of a job over all its runs on the empty cluster.

    A run may change what it may choose as often as it likes, at no cost. Nothing is frozen before the warm-up of the
    work. What accuracy freezing may cost is left out, which only lowers both.

    Parameters
    ----------
    job : Job
        The job.
    cluster : Cluster
        The servers.
    choices : Choices
        What elastic work may choose. Other work has no choice.

    Examples
    --------
    Two of ten iterations are the warm-up.

    >>> table = {"one_server": {1: (1.0, 0.5), 2: (0.6, 0.4)}}
    >>> work = Elastic(iterations=10, widths=[1, 2], seconds_per_iteration=table, compute_shares=[0, 1])
    >>> job = Job(id="a", release_s=0, gpus=2, work=work)
    >>> for choices in Choices:
    ...     print(choices, *least_of(job, Cluster.uniform(1), choices))
    asked 6000000 12000000
    levels 4400000 8800000
    elastic 4400000 6000000
    """
    work = job.work
    if choices is Choices.ASKED or not isinstance(work, Elastic):
        duration_us = fastest_us(job, cluster)
        return Least(duration_us, job.gpus * duration_us)
    warm_up = work.warm_up_iterations(work.iterations)
    ways = list(_ways(job, work, cluster, choices))
    parts = [(warm_up, [(gpus, row[0]) for gpus, row in ways])]
    parts.append((work.iterations - warm_up, [(gpus, row[-1]) for gpus, row in ways]))
    duration_ns = sum(count * min(ns for _, ns in part) for count, part in parts)
    gpu_ns = sum(count * min(gpus * ns for gpus, ns in part) for count, part in parts)
    return Least(max(-(duration_ns // -_NS_PER_US), 1), max(-(gpu_ns // -_NS_PER_US), 1))


def _ways(job: Job, work: Elastic, cluster: Cluster, choices: Choices) -> Iterator[tuple[int, tuple[int, int]]]:
    """GPUs that a job may have, and nanoseconds of its iterations on them at the first and at the last level."""
    for gpus in work.widths if choices is Choices.ELASTIC else [job.gpus]:
        resized = job if gpus == job.gpus else job.replace(gpus=gpus)
        if gpus == job.gpus or never_fits(resized, cluster) is None:
            for where in reachable_classes(resized, cluster):
                first, last = (elastic_iteration_ns(work, gpus, where, level) for level in (0, work.levels - 1))
                yield gpus, (first, last)
