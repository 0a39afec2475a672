"""How far a running job is: in whole iterations, or in microseconds where its work is fixed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

from frostline.policies.task import Offer, Running, Task
from frostline.problem.cluster import Cluster
from frostline.problem.job import Fixed, Job
from frostline.timing.duration import LONGEST_US, fastest_us, iterations_within, job_duration_us
from frostline.timing.lost_work import last_checkpoint
from frostline.units import seconds

__all__ = [
    "Part",
    "Report",
    "clipped",
    "done_by",
    "iterations_of",
    "keep",
    "left_us",
    "most_done",
    "offer_of",
    "saved_by",
    "with_iterations",
    "worked_us",
]


class Report(NamedTuple):
    """Progress that a running job has reported: iterations done, when, and the microseconds of one from then on."""

    iterations: int
    at_us: int
    iteration_us: Fraction


class Part(NamedTuple):
    """An earlier part of a run, at another freeze level: what was done before it, its GPUs, how long it worked."""

    done: int
    offer: Offer
    worked_us: int


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
    useful_us = worked_us(run, now_us)
    if report is not None and not isinstance(task.job.work, Fixed):
        since_us = max(report.at_us, run.start_us + run.restart_us)
        return report.iterations + max(now_us - since_us, 0) // report.iteration_us
    return task.done + _work_within(task.job, offer_of(run), useful_us, cluster)


def worked_us(run: Running, now_us: int) -> int:
    """How long a job has worked in its present run, at its present freeze level."""
    return max(now_us - run.start_us - run.restart_us, 0)


def _work_within(job: Job, offer: Offer, time_us: int, cluster: Cluster) -> int:
    """Iterations, or microseconds of fixed work, that a job does in so many microseconds."""
    if isinstance(job.work, Fixed):
        return time_us
    return iterations_within(job, cluster, offer.placement, time_us, offer.level)


def saved_by(run: Running, parts: Sequence[Part], report: Report | None, now_us: int, cluster: Cluster) -> int:
    """What a job had done by the last checkpoint of a run, all its runs together.

    Parameters
    ----------
    run : Running
        The run, or its last part.
    parts : sequence of Part
        Its parts before, at other freeze levels.
    report : Report or None
        The progress that was reported of the last part.
    now_us : int
        The present.
    cluster : Cluster
        The servers.
    """
    task, job = run.task, run.task.job
    index, saved_us = last_checkpoint(job, [*(part.worked_us for part in parts), worked_us(run, now_us)])
    if index < len(parts):
        part, kept = parts[index], [*(part.done for part in parts[1:]), task.done][index]
        return min(part.done + _work_within(job, part.offer, saved_us, cluster), kept)
    at_us = run.start_us + run.restart_us + saved_us
    if report is None or at_us >= report.at_us:
        return done_by(run, report, at_us, cluster)
    # The pace that was reported holds from then on; before it, what was done since the start was done evenly.
    before = min(task.done, report.iterations)
    return before + (report.iterations - before) * saved_us // worked_us(run, report.at_us)


def clipped(stretches: Iterable[tuple[int, int, int]], done: int) -> list[tuple[int, int, int]]:
    """What is left of frozen stretches of training once all after so many iterations is lost.

    Examples
    --------
    >>> clipped([(0, 4, 1), (4, 9, 2)], 6), clipped([(0, 4, 1), (4, 9, 2)], 4)
    ([(0, 4, 1), (4, 6, 2)], [(0, 4, 1)])
    """
    return [(start, min(end, done), level) for start, end, level in stretches if start < done]


def most_done(task: Task) -> int:
    """The most that a task of known size can have done in all its runs: something is always left."""
    work = task.job.work
    return task.done + (task.duration_us if isinstance(work, Fixed) else work.iterations) - 1


def keep(task: Task, done: int, cluster: Cluster) -> None:
    """Take what a task has done in a run, at most :func:`most_done` in all, off its size, which is known."""
    if isinstance(task.job.work, Fixed):
        task.duration_us -= done
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
