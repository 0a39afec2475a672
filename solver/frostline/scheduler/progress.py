"""How far a running job is: in whole iterations, or in microseconds where its work is fixed."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

from frostline.policies.task import Offer, Running, Task
from frostline.problem.cluster import Cluster
from frostline.problem.job import Fixed, Job
from frostline.timing.duration import LONGEST_US, fastest_us, iterations_within, job_duration_us
from frostline.units import seconds

__all__ = ["Report", "done_by", "iterations_of", "keep", "left_us", "offer_of", "with_iterations"]


class Report(NamedTuple):
    """Progress that a running job has reported: iterations done, when, and the microseconds of one from then on."""

    iterations: int
    at_us: int
    iteration_us: Fraction


def iterations_of(job: Job) -> int:
    """Iterations of a job whose work has some."""
    assert not isinstance(job.work, Fixed)
    return job.work.iterations


def with_iterations(job: Job, iterations: int) -> Job:
    """The job with so many iterations, at least one."""
    assert not isinstance(job.work, Fixed)
    return job.replace(work=replace(job.work, iterations=max(iterations, 1)))


def offer_of(run: Running) -> Offer:
    """GPUs that a running job was offered."""
    assert run.offer is not None
    return run.offer


def done_by(run: Running, report: Report | None, now_us: int, cluster: Cluster) -> int:
    """What a job has done by now, all its runs together, as far as can be known."""
    task = run.task
    useful_us = max(now_us - run.start_us - run.restart_us, 0)
    if isinstance(task.job.work, Fixed):
        return task.done + useful_us
    if report is not None:
        return report.iterations + int((now_us - report.at_us) / report.iteration_us)
    offer = offer_of(run)
    return task.done + iterations_within(task.job, cluster, offer.placement, useful_us, offer.level)


def keep(task: Task, done: int, cluster: Cluster) -> None:
    """Take what a task has done in a run off its size, which is known; something is always left."""
    if isinstance(task.job.work, Fixed):
        task.duration_us = max(task.duration_us - done, 1)
        task.job = task.job.replace(work=Fixed(duration_s=seconds(task.duration_us)))
    else:
        task.job = with_iterations(task.job, iterations_of(task.job) - done)
        task.duration_us = fastest_us(task.job, cluster)
    task.high_us = task.duration_us


def left_us(job: Job, offer: Offer, report: Report | None, cluster: Cluster) -> int:
    """Microseconds that iterations still take: at the reported speed, else at that of the placement."""
    if report is None:
        return job_duration_us(job, cluster, offer.placement, offer.level)
    return min(-(iterations_of(job) * report.iteration_us // -1), LONGEST_US)
