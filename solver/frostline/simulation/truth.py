"""How large the jobs really are, how much of them is done, and when they end: what the scheduler need not know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heappop, heappush

from frostline.policies.guarantee import planned_instance
from frostline.prediction.size import blinded, size_of
from frostline.problem.instance import Instance
from frostline.problem.job import Fixed, Job
from frostline.problem.refusal import Refusal, never_fits
from frostline.problem.schedule import Segment
from frostline.scheduler.progress import clipped
from frostline.scheduler.scheduler import Scheduler
from frostline.timing.duration import iterations_within, job_duration_us, left_after, slowest_us
from frostline.timing.lost_work import Stint, left_after_failure

__all__ = ["Truth"]


class Truth:
    """The jobs of an instance as they are, between a scheduler that predicts or evicts and what happens.

    Parameters
    ----------
    instance : Instance
        Cluster and jobs.
    scheduler : Scheduler
        The scheduler. If it predicts sizes, it must not see them.

    Attributes
    ----------
    segments : list of Segment
        What has run or runs, each with its true end if it is not evicted before.
    ends : list of (int, int, str)
        Heap of (completion, index of the segment, job); the first one will happen, if nothing comes in between.
    """

    __slots__ = (
        "_blind",
        "_change_us",
        "_cluster",
        "_frozen",
        "_jobs",
        "_left",
        "_parts",
        "_pauses",
        "_restart_us",
        "_running",
        "_scheduler",
        "ends",
        "segments",
    )

    def __init__(self, instance: Instance, scheduler: Scheduler) -> None:
        self._scheduler, self._cluster = scheduler, instance.cluster
        self._restart_us, self._blind = scheduler.restart_us or 0, scheduler.outlook is not None
        self._change_us = scheduler.level_change_us
        self.segments: list[Segment] = []
        self.ends: list[tuple[int, int, str]] = []
        self._jobs = {job.id: job for job in planned_instance(scheduler.policy, instance).jobs}
        self._left: dict[str, Job] = {}  # jobs that were evicted, as large as what is left of them
        self._running: dict[str, int] = {}  # index of its segment for every job that runs
        self._frozen: dict[str, list[tuple[int, int, int]]] = {}  # frozen stretches: iterations from and to, level
        self._parts: dict[str, list[Stint]] = {}  # of runs that have changed their level, those before the present one
        self._pauses: dict[str, int] = {}  # microseconds at the start of its last segment in which a job does nothing

    def submit(self, job: Job) -> Refusal | None:
        """Hand in what the scheduler may know of a job; raises what its slowest run could not bear."""
        if not self._blind:
            return self._scheduler.submit(job)
        if not isinstance(job.work, Fixed) and never_fits(job, self._cluster) is None:
            slowest_us(job, self._cluster)
        return self._scheduler.submit(blinded(job))

    def follow(
        self, starts: Iterable[Segment], evictions: Iterable[str], now_us: int, failed: Iterable[str] = ()
    ) -> None:
        """Cut the segments of the failed and the evicted jobs, then give each start its true end.

        That end will come, if nothing comes in between.
        """
        for job_id in failed:
            self._lose(job_id, now_us)
        for job_id in evictions:
            self._cut(job_id, now_us)
            self._parts.pop(job_id, None)
        for start in starts:
            pause_us = self._restart_us if start.job in self._left else 0
            if start.job in self._running:
                self._parts.setdefault(start.job, []).append(self._cut(start.job, now_us))
                pause_us = self._change_us
            index = self._running[start.job] = len(self.segments)
            job = self._left.get(start.job) or self._jobs[start.job]
            duration_us = job_duration_us(job, self._cluster, start.placement, start.freeze_level)
            self._pauses[start.job] = pause_us
            end_us = start.start_us + pause_us + duration_us
            self.segments.append(start._replace(end_us=end_us))
            heappush(self.ends, (end_us, index, start.job))
        self._drop_evicted()

    def _drop_evicted(self) -> None:
        """Leave a completion that will happen at the head of the heap."""
        ends, running = self.ends, self._running
        while ends and running.get(ends[0][2]) != ends[0][1]:
            heappop(ends)

    def _lose(self, job_id: str, now_us: int) -> None:
        """A server of a job has failed: its segment ends now, and the work since its last checkpoint is lost."""
        part = self._cut(job_id, now_us)
        left = self._left[job_id] = left_after_failure([*self._parts.pop(job_id, ()), part], self._cluster)
        if job_id in self._frozen:
            self._frozen[job_id] = clipped(self._frozen[job_id], self._done(job_id, left))

    def _cut(self, job_id: str, now_us: int) -> Stint:
        """A job loses its GPUs or changes its level: its segment ends now, and what it has done is kept."""
        index = self._running.pop(job_id)
        segment = self.segments[index]
        self.segments[index] = segment._replace(end_us=now_us)
        useful_us = max(now_us - segment.start_us - self._pauses[job_id], 0)
        job = self._left.get(job_id) or self._jobs[job_id]
        left = self._left[job_id] = left_after(job, self._cluster, segment.placement, useful_us, segment.freeze_level)
        if segment.freeze_level:
            stretch = self._done(job_id, job), self._done(job_id, left), segment.freeze_level
            self._frozen.setdefault(job_id, []).append(stretch)
        return Stint(job, segment.placement, segment.freeze_level, useful_us)

    @property
    def running(self) -> Mapping[str, int]:
        """Jobs that run, each with the index of its segment."""
        return self._running

    def training(self, job_id: str, now_us: int) -> tuple[int, list[tuple[int, int, int]]]:
        """Iterations that a running job has done by now, and its frozen stretches: start, end and level."""
        segment = self.segments[self._running[job_id]]
        job, level = self._left.get(job_id) or self._jobs[job_id], segment.freeze_level
        before, frozen = self._done(job_id, job), self._frozen.get(job_id, [])
        useful_us = max(now_us - segment.start_us - self._pauses[job_id], 0)
        done = before + iterations_within(job, self._cluster, segment.placement, useful_us, level)
        return done, [*frozen, (before, done, level)] if level and done > before else frozen

    def _done(self, job_id: str, left: Job) -> int:
        """Iterations that a job has done once so much of it is left; 0 where its work has none."""
        work, whole = left.work, self._jobs[job_id].work
        return 0 if isinstance(work, Fixed) or isinstance(whole, Fixed) else whole.iterations - work.iterations

    def finish(self, job_id: str) -> None:
        """Tell the scheduler that a job has completed, and if it predicts, how large it was and how it ended."""
        del self._running[job_id]
        self._parts.pop(job_id, None)
        job = self._jobs[job_id]
        if self._blind:
            self._scheduler.finish(job_id, size_of(job), job.status)
        else:
            self._scheduler.finish(job_id)
        self._drop_evicted()
