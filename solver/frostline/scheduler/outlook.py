"""What is believed of the jobs whose sizes are predicted, from their arrival to their end.

The truth stays outside: a job is blinded before anything looks at its size, and what is put in its place is the
median of its prediction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Protocol

from frostline.errors import InvalidValueError
from frostline.policies.guarantee import Believed
from frostline.policies.task import Belief, Running, Task
from frostline.prediction.distribution import SizeDistribution
from frostline.prediction.model import HIGH, LOW, Estimate
from frostline.prediction.size import SMALLEST_S, blinded, with_size
from frostline.problem.cluster import Cluster
from frostline.problem.job import Fixed, Job
from frostline.scheduler.progress import Report, done_by, left_us, offer_of
from frostline.timing.duration import LONGEST_US, fastest_us, slowest_us
from frostline.units import US_PER_S, as_finite, duration_us, seconds

__all__ = ["Outlook", "Predictor"]

_LARGEST_S = 8.9e9


class Predictor(Protocol):
    """What a scheduler asks of a predictor of sizes: iterations, or seconds where the work has no iterations.

    One that has a ``withdraw(job_id)`` besides is told of jobs that have arrived and are taken back.
    """

    @property
    def deflation(self) -> float:
        """b of [T4]: predicted work is divided by it before the virtual machine sees it; above 0."""
        ...

    def predict(self, jobs: Sequence[Job], now_s: float) -> list[Estimate]:
        """What is believed of each of the jobs that arrive now."""
        ...

    def start(self, job_id: str, now_s: float) -> None:
        """A job that was predicted starts to run."""
        ...

    def finish(self, job_id: str, size: float, now_s: float, status: str = "") -> None:
        """A job that was predicted has finished, and this was its size."""
        ...

    def progress(
        self, job_id: str, iterations: float, now_s: float, seconds_per_iteration: float | None = None
    ) -> None:
        """A running job has done so many iterations."""
        ...

    def remaining(self, job_id: str, done: float) -> SizeDistribution:
        """What is believed to be left of a job that has done ``done`` and not finished."""
        ...


class Outlook:
    """Beliefs about the jobs of a scheduler, and what has become of them.

    Parameters
    ----------
    predictor : Predictor
        Gives the predictions.
    cluster : Cluster
        The servers.

    Attributes
    ----------
    believed : dict of str to Believed
        What the virtual machine and the policy were told of each job that has arrived.
    longest : list of (int, int)
        Instants at which the longest duration that was believed or observed grew, and to how much.
    cold_starts, repredictions : int
        Jobs of which nothing was known at arrival, and expected ends that had to be put off.
    outlived, overrun : set of str
        Jobs that outlived what was believed of them at its highest: all, and those that still run since.
    """

    __slots__ = (
        "_cluster",
        "_limits",
        "believed",
        "cold_starts",
        "longest",
        "outlived",
        "overrun",
        "predictor",
        "repredictions",
    )

    def __init__(self, predictor: Predictor, cluster: Cluster) -> None:
        self.predictor, self._cluster = predictor, cluster
        self.believed: dict[str, Believed] = {}
        self.longest: list[tuple[int, int]] = []
        self.cold_starts = self.repredictions = 0
        self.outlived: set[str] = set()
        self.overrun: set[str] = set()
        self._limits: list[tuple[int, int, str]] = []  # heap of (end at the highest, number, running job)

    def arrive(self, tasks: Sequence[Task], now_us: int) -> None:
        """Predict the tasks that arrive at one instant, in one batch.

        Raises
        ------
        InvalidValueError
            The predictor answers for another number of jobs, or its deflation is no positive number.
        """
        if not tasks:
            return
        estimates = self.predictor.predict([task.job for task in tasks], seconds(now_us))
        if len(estimates) != len(tasks):
            rule = f"must hold one estimate for each of {len(tasks)} jobs"
            raise InvalidValueError("predictor", "predict", f"{len(estimates)} estimates", rule)
        deflation = as_finite(self.predictor.deflation, "predictor", "deflation")
        if deflation <= 0:
            raise InvalidValueError("predictor", "deflation", deflation, "must be above 0")
        times, over = deflation.as_integer_ratio()  # exact
        for task, estimate in zip(tasks, estimates, strict=True):
            low_us, high_us = self._believe(task, (estimate.low, estimate.median, estimate.high))
            work = max(task.work * over // times, 1)
            task.belief = Belief(low_us, high_us, work, estimate.cold_start)
            self.believed[task.job.id] = Believed(work, task.duration_us)
            self.cold_starts += estimate.cold_start

    def _believe(self, task: Task, sizes: tuple[float, float, float]) -> tuple[int, int]:
        """Put the median of three sizes in the place of the job's own; shortest durations at the low and the high."""
        task.job = self._sized(task.job, sizes[1])
        low_us, task.duration_us, task.high_us = [self._shortest_us(task.job, size) for size in sizes]
        return low_us, task.high_us

    def _sized(self, job: Job, size: float) -> Job:
        """A job with another size, no larger than the longest run allows."""
        if not isinstance(job.work, Fixed):
            size = min(size, max(LONGEST_US // slowest_us(blinded(job), self._cluster), 1))
        return with_size(job, size)

    def _shortest_us(self, job: Job, size: float) -> int:
        """Shortest duration of a job with another size."""
        if isinstance(job.work, Fixed):
            return duration_us(min(max(size, SMALLEST_S), _LARGEST_S))
        return fastest_us(self._sized(job, size), self._cluster)

    # -- running jobs ------------------------------------------------------------------------------------------

    def start(self, run: Running) -> None:
        """A task has started."""
        task = run.task
        self.expect_by(run, self._limit_us(run))
        if task.past is None:
            self.predictor.start(task.job.id, seconds(run.start_us))

    def expect_by(self, run: Running, end_us: int) -> None:
        """A running job is believed to end by then."""
        heappush(self._limits, (end_us, run.number, run.task.job.id))

    def _limit_us(self, run: Running) -> int:
        """When a running job ends at the latest, by what is believed."""
        return run.start_us + run.restart_us + run.task.high_of(offer_of(run).duration_us)

    def late(self, now_us: int) -> list[str]:
        """Jobs whose latest end may have passed since the last call; some of them may no longer run."""
        limits, jobs = self._limits, []
        while limits and limits[0][0] <= now_us:
            jobs.append(heappop(limits)[2])
        return jobs

    def outlives(self, run: Running, now_us: int) -> bool:
        """Whether a running job has outlived what was believed of it at its highest when it started."""
        return now_us >= self._limit_us(run)

    def overruns(self, run: Running) -> bool:
        """Count a running job that has outlived its latest end; whether it had not been counted."""
        job_id, counted = run.task.job.id, len(self.overrun)
        self.overrun.add(job_id)
        self.outlived.add(job_id)
        return len(self.overrun) > counted

    def later_us(self, run: Running, report: Report | None, now_us: int, share: float = LOW) -> int:
        """New end of a running job that has outlived the old one, at a quantile of what is believed now."""
        job = run.task.job
        left = self._left(job, done_by(run, report, now_us, self._cluster), (share,))[0]
        if isinstance(job.work, Fixed):
            return now_us + self._shortest_us(job, left)
        return now_us + max(left_us(self._sized(job, left), offer_of(run), report, self._cluster), 1)

    def report(self, run: Running, report: Report, now_us: int) -> int:
        """New earliest end of a running job that has reported its progress."""
        pace_s = float(report.iteration_us) / US_PER_S
        self.predictor.progress(run.task.job.id, report.iterations, seconds(now_us), pace_s)
        return self.later_us(run, report, now_us)

    def _left(self, job: Job, done: int, shares: Sequence[float]) -> list[float]:
        """What is left of a job that has done so much, at some quantiles."""
        past = seconds(done) if isinstance(job.work, Fixed) else float(done)
        sizes = self.predictor.remaining(job.id, past)
        return [sizes.quantile(share) for share in shares]

    def evict(self, run: Running) -> None:
        """A running job has lost its GPUs; from now on the belief is of what is left of it."""
        task = run.task
        assert task.belief is not None
        self.overrun.discard(task.job.id)
        low, median, high = self._left(task.job, task.done, (LOW, 0.5, HIGH))
        low_us, high_us = self._believe(task, (low, median, high))
        task.belief = task.belief._replace(low_us=low_us, high_us=high_us)

    def withdraw(self, job_id: str) -> None:
        """A job that waits is taken back; a predictor that cares is told."""
        tell: Callable[[str], None] | None = getattr(self.predictor, "withdraw", None)
        if tell is not None:
            tell(job_id)

    def finish(self, run: Running, size: float | None, status: str, now_us: int) -> None:
        """A job has finished; without a size, one of fixed duration is as large as its runs were long."""
        job_id = run.task.job.id
        if now_us > self._limit_us(run):
            self.outlived.add(job_id)
        self.overrun.discard(job_id)
        if size is None:
            size = seconds(max(done_by(run, None, now_us, self._cluster), 1))
        self.predictor.finish(job_id, size, seconds(now_us), status)
