"""Simple models of job sizes: what a job's group did before, or what its user asked for."""

from __future__ import annotations

import math
from collections.abc import Sequence

from frostline.errors import InvalidValueError
from frostline.prediction.distribution import SizeDistribution
from frostline.prediction.history import COLD_LEVELS, History, Key, Window, keys_of, median_of
from frostline.prediction.model import Estimate, Finished
from frostline.problem.job import Fixed, Job
from frostline.units import as_int

__all__ = [
    "ExponentialAverage",
    "GlobalMedian",
    "GroupMedian",
    "GroupModel",
    "LastFinished",
    "RecentMedian",
    "ScaledEstimate",
    "UserEstimate",
    "WidthMedian",
    "asked_for",
]


class GroupModel:
    """A model that goes by the finished jobs of the most specific key that has any.

    Keys are tried from (user, name, GPUs) over (user), (group) and (GPUs) to all jobs, see
    :func:`~frostline.prediction.history.keys_of`. The estimate spreads as the sizes of that key do, and its median is
    the model's centre.

    Parameters
    ----------
    history : History, optional
        A history that someone else teaches; by default the model keeps its own, of the other parameters.
    min_jobs, min_unnamed : int
        A key with a name in it, and one without, counts once so many of its jobs have finished.
    window : int
        Sizes kept per key.

    Raises
    ------
    InvalidValueError
        A parameter is out of its range.
    """

    name = "group"
    levels: int | None = None
    """Which of a job's keys are tried: all, or so many of the last, written negative."""

    def __init__(
        self, *, history: History | None = None, min_jobs: int = 1, min_unnamed: int = 1, window: int = 200
    ) -> None:
        made = History(min_jobs=min_jobs, min_unnamed=min_unnamed, window=window) if history is None else history
        self.history = made
        self._teaches = history is None

    def learn(self, finished: Sequence[Finished], now_s: float) -> None:
        """See :class:`~frostline.prediction.model.SizeModel`."""
        if self._teaches:
            self.history.learn(finished)

    def predict(self, jobs: Sequence[Job], now_s: float) -> list[Estimate | None]:
        """See :class:`~frostline.prediction.model.SizeModel`."""
        return [self.estimate(job, now_s) for job in jobs]

    def estimate(self, job: Job, now_s: float) -> Estimate | None:
        """What is believed of one job; None where nothing is known."""
        found = self.history.best(keys_of(job)[self.levels :])
        if found is None:
            return None
        key, window = found
        sizes = window.spread(self.centre_of(key, window))
        return Estimate(sizes=sizes, source=f"{self.name}: {key[0]}", cold_start=key[0] in COLD_LEVELS)

    def centre(self, job: Job, keys: Sequence[Key], now_s: float) -> float | None:
        """Median of the estimate alone, for the keys of the job."""
        found = self.history.best(keys[self.levels :])
        return None if found is None else self.centre_of(*found)

    def centre_at(self, key: Key, window: Window, now_s: float) -> float:
        """Median of the estimate alone, for the key that was found."""
        return self.centre_of(key, window)

    def centre_of(self, key: Key, window: Window) -> float:
        """Centre of the estimate from the window of a key."""
        raise NotImplementedError


class LastFinished(GroupModel):
    """The size of the last job of the group to finish; the median of all jobs where nothing else is known.

    Examples
    --------
    >>> from frostline.prediction.model import Finished
    >>> job = Job(id="a", release_s=0, work=Fixed(duration_s=60), gpus=8, user="u1", name="bert")
    >>> model = LastFinished()
    >>> model.learn([Finished(job, 60.0, 60.0), Finished(job, 30.0, 65.0)], 70.0)
    >>> estimate = model.predict([job], 70.0)[0]
    >>> estimate.median, estimate.source, estimate.cold_start
    (30.0, 'last-finished: user+name+gpus', False)
    """

    name = "last-finished"

    def centre_of(self, key: Key, window: Window) -> float:
        """Last size."""
        return window.last if key[0] != "all" else window.median


class GroupMedian(GroupModel):
    """The running median of the group.

    Examples
    --------
    >>> from frostline.prediction.model import Finished
    >>> job = Job(id="a", release_s=0, work=Fixed(duration_s=60), gpus=8, user="u1")
    >>> model = GroupMedian()
    >>> model.learn([Finished(job, size, 60.0) for size in (10.0, 20.0, 30.0, 40.0, 1000.0)], 70.0)
    >>> estimate = model.predict([job.replace(user="u9")], 70.0)[0]
    >>> estimate.median, estimate.source, estimate.cold_start
    (30.0, 'median: gpus', True)
    """

    name = "median"

    def centre_of(self, key: Key, window: Window) -> float:
        """Median size."""
        return window.median


class RecentMedian(GroupModel):
    """The median of the last few jobs of the group to finish.

    Parameters
    ----------
    jobs : int
        How many.
    history, min_jobs, min_unnamed, window
        See :class:`GroupModel`.

    Raises
    ------
    InvalidValueError
        A parameter is out of its range.

    Examples
    --------
    >>> from frostline.prediction.model import Finished
    >>> job = Job(id="a", release_s=0, work=Fixed(duration_s=60), gpus=8, user="u1")
    >>> model = RecentMedian(jobs=3)
    >>> model.learn([Finished(job, size, 60.0) for size in (10.0, 20.0, 30.0, 40.0, 1000.0)], 70.0)
    >>> model.predict([job], 70.0)[0].median
    40.0
    """

    name = "recent-median"

    def __init__(
        self,
        *,
        jobs: int = 20,
        history: History | None = None,
        min_jobs: int = 1,
        min_unnamed: int = 1,
        window: int = 200,
    ) -> None:
        super().__init__(history=history, min_jobs=min_jobs, min_unnamed=min_unnamed, window=window)
        self._jobs = as_int(jobs, "recent median", "jobs", 1)

    def centre_of(self, key: Key, window: Window) -> float:
        """Median of the last sizes."""
        jobs = self._jobs
        return window.median if len(window) <= jobs else median_of(sorted(window.latest(jobs)))


class WidthMedian(GroupModel):
    """The median of all jobs of as many GPUs, whoever they belong to.

    Examples
    --------
    >>> from frostline.prediction.model import Finished
    >>> job = Job(id="a", release_s=0, work=Fixed(duration_s=60), gpus=8, user="u1")
    >>> model = WidthMedian()
    >>> model.learn([Finished(job.replace(gpus=size), float(size), 60.0) for size in (1, 8, 8)], 70.0)
    >>> model.predict([job.replace(user="u2")], 70.0)[0].median
    8.0
    """

    name = "width-median"
    levels = -2

    def centre_of(self, key: Key, window: Window) -> float:
        """Median size."""
        return window.median


class ExponentialAverage(GroupModel):
    """The exponentially weighted average of the group, of logarithms, so that a job twice as long weighs as one half.

    Parameters
    ----------
    alpha : float
        Weight of the job that finished last, above 0 and at most 1.
    history, min_jobs, min_unnamed, window
        See :class:`GroupModel`.

    Raises
    ------
    InvalidValueError
        A parameter is out of its range.

    Examples
    --------
    >>> from frostline.prediction.model import Finished
    >>> job = Job(id="a", release_s=0, work=Fixed(duration_s=60), gpus=8, user="u1")
    >>> model = ExponentialAverage(alpha=0.5)
    >>> model.learn([Finished(job, size, 60.0) for size in (10.0, 1000.0)], 70.0)
    >>> model.predict([job], 70.0)[0].median
    100.0
    """

    name = "ewma"

    def __init__(
        self,
        *,
        alpha: float = 0.3,
        history: History | None = None,
        min_jobs: int = 1,
        min_unnamed: int = 1,
        window: int = 200,
    ) -> None:
        if history is not None and history.alpha is None:
            raise InvalidValueError("ewma", "history", history, "must keep running averages, by its alpha")
        own = History(alpha=alpha, min_jobs=min_jobs, min_unnamed=min_unnamed, window=window)
        super().__init__(history=own if history is None else history)
        self._teaches = history is None

    def centre_of(self, key: Key, window: Window) -> float:
        """Weighted geometric average."""
        return math.exp(window.log_average)


class GlobalMedian(GroupModel):
    """The median of all finished jobs, whoever they belong to.

    Examples
    --------
    >>> from frostline.prediction.model import Finished
    >>> job = Job(id="a", release_s=0, work=Fixed(duration_s=60), gpus=8, user="u1")
    >>> model = GlobalMedian()
    >>> model.learn([Finished(job, size, 60.0) for size in (10.0, 20.0, 30.0)], 70.0)
    >>> model.predict([job.replace(gpus=1)], 70.0)[0].source
    'global-median: all'
    """

    name = "global-median"
    levels = -1

    def centre_of(self, key: Key, window: Window) -> float:
        """Median size."""
        return window.median


def asked_for(job: Job) -> float | None:
    """What the user of a job without iterations asked for, in seconds; None where that is unknown.

    Examples
    --------
    >>> asked_for(Job(id="a", release_s=0, work=Fixed(duration_s=60), gpus=8)) is None
    True
    """
    if not isinstance(job.work, Fixed):
        return None
    asked = job.estimate_s
    return asked if asked is not None and 0.0 < asked < math.inf else None


class UserEstimate:
    """What the user declared: the run time asked for, or the number of iterations where it was told by :meth:`declare`.

    The size that a job of a trace turned out to have is never looked at.

    Examples
    --------
    >>> job = Job(id="a", release_s=0, work=Fixed(duration_s=60), gpus=8)
    >>> model = UserEstimate()
    >>> model.predict([job], 0.0)
    [None]
    >>> model.declare("a", 90.0)
    >>> model.predict([job], 0.0)[0].median
    90.0
    """

    name = "user-estimate"

    def __init__(self) -> None:
        self._declared: dict[str, float] = {}

    def declare(self, job_id: str, size: float) -> None:
        """The user says how large the job will be, in iterations or seconds as its work goes."""
        self._declared[job_id] = size

    def withdrawn(self, job_id: str) -> None:
        """The job will not finish: forget it."""
        self._declared.pop(job_id, None)

    def learn(self, finished: Sequence[Finished], now_s: float) -> None:
        """See :class:`~frostline.prediction.model.SizeModel`; there is nothing to learn."""
        for done in finished:
            self._declared.pop(done.job.id, None)

    def predict(self, jobs: Sequence[Job], now_s: float) -> list[Estimate | None]:
        """See :class:`~frostline.prediction.model.SizeModel`."""
        return [self._estimate(self.centre(job, (), now_s)) for job in jobs]

    def centre(self, job: Job, keys: Sequence[Key], now_s: float) -> float | None:
        """The declared size alone."""
        declared = self._declared.get(job.id)
        return asked_for(job) if declared is None else declared

    def _estimate(self, size: float | None) -> Estimate | None:
        if size is None:
            return None
        return Estimate(sizes=SizeDistribution((size,)), source=f"{self.name}: declared", cold_start=False)


class ScaledEstimate:
    """What the user asked for, times the share of it that the jobs of the group have used.

    The idea of correcting user estimates is that of Tsafrir, Etsion, Feitelson, *Backfilling Using System-Generated
    Predictions Rather Than User Runtime Estimates*, IEEE TPDS 18(6), 2007.

    Parameters
    ----------
    min_jobs : int
        A key counts once so many of its jobs have finished.
    window : int
        Ratios kept per key.

    Examples
    --------
    >>> model = ScaledEstimate()
    >>> model.predict([Job(id="a", release_s=0, work=Fixed(duration_s=60), gpus=8)], 0.0)
    [None]
    """

    name = "scaled-estimate"

    def __init__(self, *, min_jobs: int = 1, window: int = 200) -> None:
        self._ratios = History(min_jobs=min_jobs, window=window)

    def learn(self, finished: Sequence[Finished], now_s: float) -> None:
        """See :class:`~frostline.prediction.model.SizeModel`; jobs without an estimate teach nothing."""
        asked = [(done, asked_s) for done in finished if (asked_s := asked_for(done.job)) is not None]
        if asked:
            self._ratios.learn([done._replace(size=done.size / asked_s) for done, asked_s in asked])

    def predict(self, jobs: Sequence[Job], now_s: float) -> list[Estimate | None]:
        """See :class:`~frostline.prediction.model.SizeModel`."""
        return [self._estimate(job) for job in jobs]

    def centre(self, job: Job, keys: Sequence[Key], now_s: float) -> float | None:
        """Median of the estimate alone."""
        asked_s = asked_for(job)
        found = None if asked_s is None else self._ratios.best(keys)
        return None if found is None or asked_s is None else asked_s * found[1].median

    def _estimate(self, job: Job) -> Estimate | None:
        keys = keys_of(job)
        centre, found = self.centre(job, keys, 0.0), self._ratios.best(keys)
        if centre is None or found is None:
            return None
        (level, *_), window = found
        return Estimate(sizes=window.spread(centre), source=f"{self.name}: {level}", cold_start=level in COLD_LEVELS)
