"""Sizes where some jobs still run: survival curves of a group, and jobs that stop before their declared end."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, runtime_checkable

from frostline.prediction.baselines import asked_for
from frostline.prediction.distribution import SizeDistribution
from frostline.prediction.history import COLD_LEVELS, MOST_POINTS, History, Key, Window, is_usable, keys_of
from frostline.prediction.model import Estimate, Finished
from frostline.problem.job import Fixed, Job
from frostline.units import as_int

__all__ = ["EarlyStop", "Survival", "Watcher", "kaplan_meier", "surviving_sizes"]


@runtime_checkable
class Watcher(Protocol):
    """A size model that is also told of jobs that have not finished."""

    def declare(self, job_id: str, size: float) -> None:
        """The user says how large a job will be."""
        ...

    def started(self, job: Job, now_s: float) -> None:
        """A job has started."""
        ...

    def progressed(self, job_id: str, done: float) -> None:
        """A running job has done so much of its size, and is not finished."""
        ...

    def withdrawn(self, job_id: str) -> None:
        """A job will not finish."""
        ...


def kaplan_meier(finished: Iterable[float], running: Iterable[float]) -> list[tuple[float, float]]:
    """Kaplan-Meier estimate of the survival function of sizes.

    S(t) is the product over finished sizes u ≤ t of 1 - d/n, where d jobs finished at u and n had come that far; a job
    that runs counts for as far as it has come, and is taken to go beyond. From E. L. Kaplan, P. Meier, *Nonparametric
    Estimation from Incomplete Observations*, Journal of the American Statistical Association 53, 1958.

    Parameters
    ----------
    finished : iterable of float
        Sizes of finished jobs.
    running : iterable of float
        How far running jobs have come.

    Returns
    -------
    list of (float, float)
        Finished sizes in ascending order, and the share of all jobs that is larger. The last share is above 0 where a
        job runs that has come further than all finished ones.

    Examples
    --------
    >>> kaplan_meier([10, 20, 20], [15])
    [(10.0, 0.75), (20.0, 0.0)]
    """
    steps = sorted([(float(size), 0) for size in finished] + [(float(done), 1) for done in running])
    curve: list[tuple[float, float]] = []
    share, left = 1.0, len(steps)
    for value, runs in steps:
        if not runs:
            share *= 1.0 - 1.0 / left
            if curve and curve[-1][0] == value:
                curve.pop()
            curve.append((value, share))
        left -= 1
    return curve


def surviving_sizes(
    finished: Sequence[float], running: Sequence[float], beyond: Callable[[float], Sequence[float]]
) -> SizeDistribution:
    """Distribution of sizes by the Kaplan-Meier estimate.

    Its median is the least size that at least half of the jobs do not exceed.

    Parameters
    ----------
    finished, running : sequence of float
        See :func:`kaplan_meier`; at least one of them is not empty.
    beyond : callable
        Sizes, ascending, that are believed of a job that has come further than all finished ones: the share that the
        estimate leaves is spread over them.

    Returns
    -------
    SizeDistribution
        At most ``MOST_POINTS`` points.

    Examples
    --------
    >>> surviving_sizes([10, 20], [15], lambda done: [2 * done]).points
    (10.0, 20.0, 20.0)
    >>> surviving_sizes([10], [40, 40], lambda done: [2 * done]).median
    80.0
    """
    curve = kaplan_meier(finished, running)
    tail = beyond(max(running)) if not curve or curve[-1][1] > 1e-12 else ()
    points = min((len(finished) + len(running)) // 2 * 2 + 1, MOST_POINTS)
    return SizeDistribution([_quantile(curve, tail, (i + 0.5) / points) for i in range(points)])


def _median_of(finished: list[float], running: list[float], beyond: Callable[[float], Sequence[float]]) -> float:
    """Least size that at least half of the jobs do not exceed, as by :func:`kaplan_meier`; sorts both lists."""
    finished.sort()
    if not running:
        return finished[(len(finished) - 1) // 2]
    running.sort()
    share, left, passed = 1.0, len(finished) + len(running), 0
    for value in finished:
        while passed < len(running) and running[passed] < value:
            passed += 1
            left -= 1
        share *= 1.0 - 1.0 / left
        left -= 1
        if 1.0 - share >= 0.5 - 1e-12:
            return value
    return _of_tail(beyond(running[-1]), share, 0.5)


def _quantile(curve: Sequence[tuple[float, float]], tail: Sequence[float], share: float) -> float:
    """Least size such that at least this share of the jobs is not larger."""
    at = bisect_left(curve, share - 1e-12, key=lambda step: 1.0 - step[1])
    if at < len(curve):
        return curve[at][0]
    return _of_tail(tail, curve[-1][1] if curve else 1.0, share)


def _of_tail(tail: Sequence[float], left: float, share: float) -> float:
    """The same, where a share of the jobs is left that is larger than all finished ones."""
    rank = math.ceil((share - (1.0 - left)) / left * len(tail) - 1e-9)
    return tail[min(max(rank, 1), len(tail)) - 1]


class _Run:
    """One job that has started: how far it has come, and its size once that is known."""

    __slots__ = ("done", "size", "start_s", "status", "unit")

    def __init__(self, start_s: float, unit: float) -> None:
        self.start_s = start_s
        self.unit = unit  # what counts as 1
        self.done: float | None = None
        self.size: float | None = None
        self.status = ""


class _Runs:
    """The jobs that started last, by key, in the order of their starts."""

    def __init__(self, most: int, most_keys: int) -> None:
        self._most, self._most_keys = most, most_keys
        self._by_key: dict[Key, deque[_Run]] = {}
        self._running: dict[str, _Run] = {}

    def start(self, job: Job, now_s: float, unit: float = 1.0) -> _Run:
        """A job starts; a second start changes nothing."""
        run = self._running.get(job.id)
        if run is None:
            # Seconds pass by themselves, iterations only count once they are reported.
            run = self._running[job.id] = _Run(now_s if isinstance(job.work, Fixed) else math.inf, unit)
            for key in keys_of(job):
                self._at(key).append(run)
        return run

    def _at(self, key: Key) -> deque[_Run]:
        runs = self._by_key.pop(key, None)
        if runs is None:
            runs = deque(maxlen=self._most)
            if len(self._by_key) >= self._most_keys:
                del self._by_key[next(iter(self._by_key))]
        self._by_key[key] = runs
        return runs

    def progress(self, job_id: str, done: float) -> None:
        """A running job has come so far."""
        run = self._running.get(job_id)
        if run is not None:
            run.done = done

    def finish(self, job: Job, size: float, end_s: float, status: str, unit: float = 1.0) -> None:
        """A job has finished, whether or not its start was told."""
        run = self._running.get(job.id) or self.start(job, end_s, unit)
        run.size, run.status = size / run.unit, status
        del self._running[job.id]

    def forget(self, job_id: str) -> None:
        """A job that will not finish counts no more."""
        run = self._running.pop(job_id, None)
        if run is not None:
            run.start_s, run.done = math.inf, None

    def known(self, key: Key, now_s: float, status: str = "") -> tuple[list[float], list[float]]:
        """Sizes of finished jobs of a key, and how far its running jobs have come."""
        runs = self._by_key.get(key, ())
        finished = [size for run in runs if (size := run.size) is not None]
        running: list[float] = []
        if len(finished) < len(runs):
            running = [
                done / run.unit
                for run in runs
                if run.size is None and (done := now_s - run.start_s if run.done is None else run.done) > 0.0
            ]
        if status:
            finished = [run.size for run in runs if run.size is not None and run.status == status]
        return finished, running


class Survival:
    """Kaplan-Meier estimate over the jobs of the group that started last, finished or not.

    A group whose recent jobs all still run is known to hold no short jobs; models that go by finished jobs alone learn
    of the short ones first. How far a running job has come is the time since its start, or what it last reported.

    Parameters
    ----------
    jobs : int
        How many of the group's last jobs to start are looked at.
    history : History, optional
        A history that someone else teaches; by default the model keeps its own, of the other parameters.
    min_jobs : int
        A key counts once so many of its jobs have finished.

    Raises
    ------
    InvalidValueError
        A parameter is out of its range.

    Examples
    --------
    >>> from frostline.prediction.model import Finished
    >>> jobs = [Job(id=text, release_s=0, work=Fixed(duration_s=60), gpus=8, user="u1") for text in "abcd"]
    >>> model = Survival()
    >>> for job in jobs[:3]:
    ...     model.started(job, 0.0)
    >>> model.learn([Finished(jobs[0], 10.0, 10.0)], 10.0)
    >>> [model.predict(jobs[3:], now_s)[0].median for now_s in (10.0, 100.0)]
    [20.0, 200.0]
    """

    name = "survival"
    levels: int | None = None
    """Which of a job's keys are tried: all."""

    def __init__(self, *, jobs: int = 30, history: History | None = None, min_jobs: int = 1) -> None:
        self.history = History(min_jobs=min_jobs) if history is None else history
        self._teaches = history is None
        self._runs = _Runs(as_int(jobs, "survival model", "jobs", 1), self.history.most_keys)

    def declare(self, job_id: str, size: float) -> None:
        """What the user says is not looked at."""

    def started(self, job: Job, now_s: float) -> None:
        """A job has started."""
        self._runs.start(job, now_s)

    def progressed(self, job_id: str, done: float) -> None:
        """A running job has done so much of its size."""
        self._runs.progress(job_id, done)

    def withdrawn(self, job_id: str) -> None:
        """A job will not finish."""
        self._runs.forget(job_id)

    def learn(self, finished: Sequence[Finished], now_s: float) -> None:
        """See :class:`~frostline.prediction.model.SizeModel`."""
        if self._teaches:
            self.history.learn(finished)
        for done in finished:
            if is_usable(done):
                self._runs.finish(done.job, done.size, done.end_s, done.status)
            else:
                self._runs.forget(done.job.id)

    def predict(self, jobs: Sequence[Job], now_s: float) -> list[Estimate | None]:
        """See :class:`~frostline.prediction.model.SizeModel`."""
        return [self._estimate(job, now_s) for job in jobs]

    def _estimate(self, job: Job, now_s: float) -> Estimate | None:
        found = self.history.best(keys_of(job))
        if found is None:
            return None
        key, window = found
        sizes = surviving_sizes(*self._known(key, window, now_s), window.beyond)
        return Estimate(sizes=sizes, source=f"{self.name}: {key[0]}", cold_start=key[0] in COLD_LEVELS)

    def centre(self, job: Job, keys: Sequence[Key], now_s: float) -> float | None:
        """Median of the estimate alone, for the keys of the job."""
        found = self.history.best(keys)
        return None if found is None else self.centre_at(*found, now_s)

    def centre_at(self, key: Key, window: Window, now_s: float) -> float:
        """Median of the estimate alone, for the key that was found."""
        return _median_of(*self._known(key, window, now_s), window.beyond)

    def _known(self, key: Key, window: Window, now_s: float) -> tuple[list[float], list[float]]:
        finished, running = self._runs.known(key, now_s)
        return (finished, running) if finished or running else (window.latest(1), running)


class EarlyStop:
    """How much of its declared size a job will do, where jobs are killed, fail or reach a plateau before the end.

    The share that the jobs of the group did of what they had declared is estimated by :func:`kaplan_meier`, running
    jobs counting for as far as they have come; what is left over is taken to reach the end. A job never does more than
    it declared.

    Parameters
    ----------
    jobs : int
        How many of the group's last jobs to start are looked at.
    min_jobs : int
        A key counts once so many of its jobs have finished.

    Raises
    ------
    InvalidValueError
        A parameter is out of its range.

    Examples
    --------
    >>> from frostline.prediction.model import Finished
    >>> jobs = [Job(id=text, release_s=0, work=Fixed(duration_s=60), gpus=8, user="u1") for text in "abcd"]
    >>> model = EarlyStop()
    >>> for job in jobs:
    ...     model.declare(job.id, 100.0)
    >>> ends = [("Killed", 10.0), ("Pass", 100.0), ("Pass", 100.0)]
    >>> model.learn([Finished(job, size, 0.0, status) for job, (status, size) in zip(jobs, ends)], 0.0)
    >>> model.predict(jobs[3:], 0.0)[0].sizes.points, model.shares(jobs[3], 0.0, status="Killed").points
    ((10.0, 100.0, 100.0), (0.1,))
    """

    name = "early-stop"

    def __init__(self, *, jobs: int = 200, min_jobs: int = 1) -> None:
        self._history = History(min_jobs=min_jobs)
        self._runs = _Runs(as_int(jobs, "early-stop model", "jobs", 1), self._history.most_keys)
        self._declared: dict[str, float] = {}

    def declare(self, job_id: str, size: float) -> None:
        """The user says how large a job will be."""
        self._declared[job_id] = size

    def _size_declared(self, job: Job) -> float | None:
        declared = self._declared.get(job.id)
        return asked_for(job) if declared is None else declared

    def started(self, job: Job, now_s: float) -> None:
        """A job has started."""
        declared = self._size_declared(job)
        if declared is not None:
            self._runs.start(job, now_s, declared)

    def progressed(self, job_id: str, done: float) -> None:
        """A running job has done so much of its size."""
        self._runs.progress(job_id, done)

    def withdrawn(self, job_id: str) -> None:
        """A job will not finish."""
        self._declared.pop(job_id, None)
        self._runs.forget(job_id)

    def learn(self, finished: Sequence[Finished], now_s: float) -> None:
        """See :class:`~frostline.prediction.model.SizeModel`; jobs that declared nothing teach nothing."""
        for done in finished:
            declared = self._size_declared(done.job)
            self._declared.pop(done.job.id, None)
            if not is_usable(done):
                self._runs.forget(done.job.id)
            elif declared is not None:
                self._history.learn([done._replace(size=done.size / declared)])
                self._runs.finish(done.job, done.size, done.end_s, done.status, declared)

    def predict(self, jobs: Sequence[Job], now_s: float) -> list[Estimate | None]:
        """See :class:`~frostline.prediction.model.SizeModel`; None for jobs that declared nothing."""
        return [self._estimate(job, now_s) for job in jobs]

    def centre(self, job: Job, keys: Sequence[Key], now_s: float) -> float | None:
        """Median of the estimate alone."""
        estimate = self._estimate(job, now_s)
        return None if estimate is None else estimate.median

    def shares(self, job: Job, now_s: float, *, status: str = "") -> SizeDistribution | None:
        """Shares of the declared size that jobs of the job's group do, of one status where one is given.

        None where no job of that group and status has finished.
        """
        found = self._history.best(keys_of(job))
        if found is None:
            return None
        finished, running = self._runs.known(found[0], now_s, status)
        if status:
            running = []
        if not finished and not running:
            return None
        return surviving_sizes(_at_most_one(finished), _at_most_one(running), lambda _: (1.0,))

    def _estimate(self, job: Job, now_s: float) -> Estimate | None:
        declared = self._size_declared(job)
        if declared is None:
            return None
        found, shares = self._history.best(keys_of(job)), self.shares(job, now_s)
        if found is None or shares is None:
            return Estimate(sizes=SizeDistribution((declared,)), source=f"{self.name}: declared", cold_start=True)
        level = found[0][0]
        sizes = SizeDistribution([declared * share for share in shares.points])
        return Estimate(sizes=sizes, source=f"{self.name}: {level}", cold_start=level in COLD_LEVELS)


def _at_most_one(shares: Iterable[float]) -> list[float]:
    return [min(share, 1.0) for share in shares]
