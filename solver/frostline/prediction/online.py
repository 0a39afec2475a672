"""Prediction as a scheduler uses it: jobs are asked about as they come, and learned from once they have finished."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from time import perf_counter
from typing import NamedTuple

from frostline.errors import InvalidValueError
from frostline.prediction.baselines import asked_for
from frostline.prediction.distribution import SizeDistribution
from frostline.prediction.history import Window, evenly, is_usable, usable
from frostline.prediction.model import Estimate, Finished, SizeModel
from frostline.prediction.registry import make_model
from frostline.prediction.scores import Distortion, distortion
from frostline.prediction.size import SMALLEST_S, blinded
from frostline.prediction.survival import Watcher
from frostline.problem.job import Fixed, Job
from frostline.problem.order import natural_key
from frostline.units import as_finite, as_int

__all__ = ["OnlinePredictor", "PredictorStatistics"]

_LATEST_S = 1e18
_LARGEST_S, _LARGEST_ITERATIONS = 8.9e9, 1e15
_WINDOW_ALL = 10_000
_LEAST_BEYOND = 5
_FINISH, _START, _PROGRESS = range(3)
_WHEN = itemgetter(slice(4))


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictorStatistics:
    """What an :class:`OnlinePredictor` has done so far.

    Parameters
    ----------
    predictions : int
        Estimates that were computed; those answered from memory do not count.
    cold_starts : int
        Those that knew nothing of the job's user or group.
    fallbacks : int
        Those about which the model had nothing to say.
    learned : int
        Finished jobs that were learned from.
    dropped_targets : int
        Finished jobs whose size was no positive number.
    predicting_s, learning_s : float
        Time spent.
    """

    predictions: int
    cold_starts: int
    fallbacks: int
    learned: int
    dropped_targets: int
    predicting_s: float
    learning_s: float


class _Known:
    """A job that was asked about, and what has been heard of it since."""

    __slots__ = ("done", "end_s", "estimate", "first", "job", "start_s", "total", "version")

    def __init__(self, job: Job) -> None:
        self.job = job
        self.first: Estimate | None = None
        self.estimate: Estimate | None = None
        self.version = -1
        self.start_s: float | None = None
        self.end_s: float | None = None
        self.done: float | None = None
        self.total: float | None = None


class _Report(NamedTuple):
    """Something that was reported and is not yet passed on; sorted, reports are in the order of what happened."""

    at_s: float
    kind: int
    release_s: float
    key: tuple[tuple[int, int, str], ...]
    value: float
    status: str
    known: _Known


class OnlinePredictor:
    """Predicts sizes of jobs from those that have finished.

    Jobs are told apart by their identifiers. A job is blinded before a model sees it: its own size and end do not
    matter. Reports of one instant may come in any order; they are passed on in the order (time, finish before start
    before progress, release, id) when something is next asked. Time does not run backwards.

    Parameters
    ----------
    model : SizeModel or str
        A model, or its name with parameters, such as ``"combined"`` or ``"ewma:alpha=0.5"``.
    seed : int
        Seed of a model that is given by name.
    window : int
        Finished jobs by which :attr:`deflation` and :meth:`distortion` are measured.
    default_s, default_iterations : float
        The estimate where the model has nothing to say, the user asked for nothing, and nothing has finished.

    Raises
    ------
    UnknownNameError
        Unknown model.
    InvalidValueError
        A parameter is out of its range.

    Examples
    --------
    >>> jobs = [Job(id=text, release_s=0, work=Fixed(duration_s=60), gpus=8, user="u1") for text in "abc"]
    >>> predictor = OnlinePredictor("last-finished")
    >>> predictor.predict(jobs[:2], 0.0)[0].source
    'default'
    >>> predictor.start("a", 0.0)
    >>> predictor.finish("a", 60.0, 60.0)
    >>> predictor.predict(jobs[2:], 60.0)[0].median
    60.0
    >>> predictor.remaining("c", 20.0).points, predictor.deflation
    ((40.0,), 60.0)
    """

    def __init__(
        self,
        model: SizeModel | str = "combined",
        *,
        seed: int = 0,
        window: int = 1000,
        default_s: float = 3600.0,
        default_iterations: float = 1000.0,
    ) -> None:
        self.model = make_model(model, seed=seed) if isinstance(model, str) else model
        self._watcher = self.model if isinstance(self.model, Watcher) else None
        self._ratios = Window(as_int(window, "predictor", "window", 1))
        self._default_s = as_finite(default_s, "predictor", "default_s", SMALLEST_S)
        self._default_iterations = as_finite(default_iterations, "predictor", "default_iterations", 1.0)
        self._jobs: dict[str, _Known] = {}
        self._declared: dict[str, float] = {}
        self._reports: list[_Report] = []
        self._sizes = {unit: Window(_WINDOW_ALL) for unit in (False, True)}  # by whether the unit is seconds
        self._now_s = -math.inf
        self._version = 0
        self._deflation: tuple[int, float] = (0, 1.0)
        self._predictions = self._cold_starts = self._fallbacks = self._learned = self._dropped = 0
        self._predicting_s = self._learning_s = 0.0

    @property
    def statistics(self) -> PredictorStatistics:
        """Counts and times."""
        return PredictorStatistics(
            predictions=self._predictions,
            cold_starts=self._cold_starts,
            fallbacks=self._fallbacks,
            learned=self._learned,
            dropped_targets=self._dropped,
            predicting_s=self._predicting_s,
            learning_s=self._learning_s,
        )

    def predict(self, jobs: Sequence[Job], now_s: float) -> list[Estimate]:
        """What is believed of each job at ``now_s``; ask about all jobs of an instant at once.

        The answer to a job is kept until something new has been learned. The first one is what the model is scored by.

        Raises
        ------
        InvalidValueError
            ``now_s`` lies before what was reported or asked last, or the model answers with what is no estimate.
        """
        self._move(now_s)
        self._pass_on(now_s)
        all_known, version = self._jobs, self._version
        asked: list[_Known] = []
        stale: dict[str, _Known] = {}
        for job in jobs:
            known = all_known.get(job.id)
            if known is None:
                known = all_known[job.id] = _Known(blinded(job))
            if known.version != version:
                stale[job.id] = known
            asked.append(known)
        if stale:
            self._renew(list(stale.values()), now_s)
        return [_answer(known) for known in asked]

    def _renew(self, known: Sequence[_Known], now_s: float) -> None:
        """Estimate these jobs afresh."""
        before = perf_counter()
        estimates = self.model.predict([one.job for one in known], now_s)
        if len(estimates) != len(known):
            rule = f"must be one for each of the {len(known)} jobs"
            raise InvalidValueError(f"model {self.model.name!r}", "estimates", len(estimates), rule)
        checked: dict[int, Estimate] = {}  # models may give one to many jobs
        version = self._version
        for one, said in zip(known, estimates, strict=True):
            same = id(said) if isinstance(one.job.work, Fixed) else ~id(said)
            estimate = checked.get(same)
            if estimate is None or said is None:
                estimate = checked[same] = self._fallback(one.job) if said is None else self._checked(said, one.job)
                self._fallbacks += said is None
            one.estimate, one.version = estimate, version
            if one.first is None:
                one.first = estimate
            if estimate.cold_start:
                self._cold_starts += 1
        self._predictions += len(known)
        self._predicting_s += perf_counter() - before

    def _checked(self, estimate: Estimate, job: Job) -> Estimate:
        """An estimate of positive sizes, none of them below one iteration or a microsecond."""
        if not isinstance(estimate, Estimate):
            raise InvalidValueError(f"model {self.model.name!r}", "estimate", estimate, "must be an Estimate or None")
        sizes = estimate.sizes
        foreign: tuple[float, ...] = () if type(sizes) is SizeDistribution else sizes.points
        for point in foreign:
            if not 0.0 < point < math.inf:
                subject = f"model {self.model.name!r}, job {job.id!r}"
                raise InvalidValueError(subject, "size", point, "must be positive and finite")
        least, most = _range(job)
        if sizes.within(least, most):
            return estimate
        sizes = SizeDistribution([min(max(point, least), most) for point in sizes.points])
        return Estimate(sizes=sizes, source=estimate.source, cold_start=estimate.cold_start, outside_range=True)

    def _fallback(self, job: Job) -> Estimate:
        """User estimate, else the median of all jobs, else the default."""
        asked = self._declared.get(job.id) or asked_for(job)
        seen = self._sizes[isinstance(job.work, Fixed)]
        if asked is not None:
            return Estimate(sizes=SizeDistribution((asked,)), source="user-estimate: declared", cold_start=True)
        if len(seen):
            return Estimate(sizes=seen.spread(seen.median), source="global-median: all", cold_start=True)
        default = self._default_s if isinstance(job.work, Fixed) else self._default_iterations
        return Estimate(sizes=SizeDistribution((default,)), source="default", cold_start=True)

    def declare(self, job_id: str, size: float) -> None:
        """The user says how large a job will be, in iterations or seconds as its work goes; tell it before asking.

        Raises
        ------
        InvalidValueError
            The size is not above 0.
        """
        self._declared[job_id] = declared = _above_0(size, job_id, "declared size")
        declare = getattr(self.model, "declare", None)
        if declare is not None:
            declare(job_id, declared)

    def start(self, job_id: str, now_s: float) -> None:
        """A job that was asked about has started.

        Raises
        ------
        InvalidValueError
            The job is unknown, or ``now_s`` lies in the past.
        """
        known = self._known(job_id, "start")
        self._move(now_s)
        if known.start_s is None:
            known.start_s = now_s
            if self._watcher is not None:
                self._report(now_s, _START, known)

    def progress(
        self,
        job_id: str,
        iterations: float,
        now_s: float,
        seconds_per_iteration: float | None = None,
        *,
        total: float | None = None,
    ) -> None:
        """A running job has done so many iterations.

        Parameters
        ----------
        job_id : str
            A job that was asked about.
        iterations : float
            Iterations done.
        now_s : float
            The present.
        seconds_per_iteration : float, optional
            How long one takes; without it the report tells nothing of a job whose size is in seconds.
        total : float, optional
            Iterations after which the job will certainly end.

        Raises
        ------
        InvalidValueError
            The job is unknown, ``now_s`` lies in the past, or a number is negative.
        """
        known = self._known(job_id, "progress")
        done = as_finite(iterations, f"job {job_id!r}", "iterations", 0.0, _LARGEST_ITERATIONS)
        unit = 1.0
        if seconds_per_iteration is not None:
            unit = _above_0(seconds_per_iteration, job_id, "seconds_per_iteration")
        whole = None if total is None else _above_0(total, job_id, "total")
        self._move(now_s)
        if not isinstance(known.job.work, Fixed):
            unit = 1.0
        elif seconds_per_iteration is None:
            return
        known.done = done * unit
        known.total = known.total if whole is None else whole * unit
        if self._watcher is not None:
            self._report(now_s, _PROGRESS, known, known.done)

    def finish(self, job_id: str, size: float, now_s: float, status: str = "") -> None:
        """A job that was asked about has finished.

        Parameters
        ----------
        job_id : str
            The job.
        size : float
            Iterations done, or seconds run where its work has no iterations; what is no positive number is counted as
            dropped and not learned from.
        now_s : float
            The present, when it finished.
        status : str
            How it ended, where that is known.

        Raises
        ------
        InvalidValueError
            The job is unknown, or ``now_s`` lies in the past.
        """
        known = self._known(job_id, "finish")
        self._move(now_s)
        del self._jobs[job_id]
        self._declared.pop(job_id, None)
        known.end_s = now_s
        self._report(now_s, _FINISH, known, size, status)

    def learn(self, finished: Iterable[Finished], now_s: float) -> None:
        """Jobs that finished until ``now_s``, whether or not they were asked about.

        Raises
        ------
        InvalidValueError
            A job finished after ``now_s``, or ``now_s`` lies in the past.
        """
        batch = list(finished)
        for done in batch:
            end_s = as_finite(done.end_s, f"job {done.job.id!r}", "end_s", maximum=_LATEST_S)
            if end_s > now_s:
                raise InvalidValueError(f"job {done.job.id!r}", "end_s", end_s, f"lies after the present {now_s!r}")
        self._move(now_s)
        for done in batch:
            known = self._jobs.pop(done.job.id, None) or _Known(blinded(done.job))
            self._declared.pop(done.job.id, None)
            known.end_s = done.end_s
            self._report(done.end_s, _FINISH, known, done.size, done.status)

    def withdraw(self, job_id: str) -> None:
        """A job will not finish: it is forgotten, and nothing is learned from it.

        Raises
        ------
        InvalidValueError
            The job is unknown.
        """
        known = self._known(job_id, "withdraw")
        del self._jobs[job_id]
        self._declared.pop(job_id, None)
        self._reports = [report for report in self._reports if report.known is not known]
        self._forget(job_id)

    def remaining(self, job_id: str, done: float | None = None) -> SizeDistribution:
        """What is left of a job that has done ``done``, in the unit of its size.

        A total that the job has reported is exact. A job that has outlived its estimate is estimated anew from all
        finished jobs that were larger; where there are few, it is believed to be half done.

        Parameters
        ----------
        job_id : str
            A job that was asked about.
        done : float, optional
            How much it has done; by default what it last reported.

        Raises
        ------
        InvalidValueError
            The job is unknown, or ``done`` is negative.
        """
        known = self._known(job_id, "remaining")
        so_far = (known.done or 0.0) if done is None else done
        so_far = as_finite(so_far, f"job {job_id!r}", "done", 0.0, _LARGEST_ITERATIONS)
        if known.total is not None and known.total > so_far:
            return SizeDistribution((known.total - so_far,))
        sizes = _answer(known).sizes
        if so_far >= sizes.quantile(1.0):
            larger = self._sizes[isinstance(known.job.work, Fixed)].beyond(so_far)
            sizes = SizeDistribution.scaled(evenly(larger), 1.0) if len(larger) >= _LEAST_BEYOND else sizes
        return sizes.left_after(so_far)

    @property
    def deflation(self) -> float:
        """b: nine of ten predictions were at most b times the size; 1 until something has finished.

        Measured when something was last asked.
        Dividing predictions by b keeps the virtual machine from lagging behind: its ratio then depends on the
        distortion alone.
        """
        if self._deflation[0] != self._version:
            ratios = self._ratios.ordered
            largest = ratios[-1 - math.floor(0.1 * len(ratios) + 1e-9)] if ratios else 1.0
            self._deflation = (self._version, largest)
        return self._deflation[1]

    def distortion(self, share: float = 0.1) -> Distortion | None:
        """Measured bounds a, b on predicted / actual and D = b / a, with a share left out at either end.

        None until something has finished. Only first answers count, and only those about jobs of the last ``window``
        to finish.

        Raises
        ------
        InvalidValueError
            The share is out of its range.
        """
        return distortion(self._ratios.ordered, share)

    def _known(self, job_id: str, field: str) -> _Known:
        known = self._jobs.get(job_id)
        if known is None:
            raise InvalidValueError("predictor", field, job_id, "is no job that was asked about and has not finished")
        return known

    def _move(self, now_s: float) -> None:
        now_s = as_finite(now_s, "predictor", "now_s", maximum=_LATEST_S)
        if now_s < self._now_s:
            raise InvalidValueError("predictor", "now_s", now_s, f"lies before the present {self._now_s}")
        self._now_s = now_s

    def _report(self, at_s: float, kind: int, known: _Known, value: float = 0.0, status: str = "") -> None:
        job = known.job
        self._reports.append(_Report(at_s, kind, job.release_s, natural_key(job.id), value, status, known))

    def _pass_on(self, now_s: float) -> None:
        """Tell the model what was reported, in order; finishes in a row are told at once."""
        if not self._reports:
            return
        before = perf_counter()
        self._reports.sort(key=_WHEN)
        finished: list[Finished] = []
        for report in self._reports:
            if report.kind == _FINISH:
                finished.append(self._finished(report))
                continue
            if finished:
                self._teach(finished, now_s)
                finished = []
            self._watch(report)
        if finished:
            self._teach(finished, now_s)
        self._reports.clear()
        self._learning_s += perf_counter() - before

    def _finished(self, report: _Report) -> Finished:
        done = Finished(report.known.job, report.value, report.at_s, report.status)
        if report.known.first is not None and is_usable(done):
            self._ratios.add(report.known.first.median / done.size)
        return done

    def _watch(self, report: _Report) -> None:
        """Pass on a start or a progress of a job that had not finished by then."""
        known = report.known
        if self._watcher is None or (known.end_s is not None and known.end_s <= report.at_s):
            return
        if report.kind == _START:
            self._watcher.started(known.job, report.at_s)
        else:
            self._watcher.progressed(known.job.id, report.value)

    def _teach(self, finished: Sequence[Finished], now_s: float) -> None:
        good = usable(finished)
        self._dropped += len(finished) - len(good)
        if len(good) < len(finished):
            for done in finished:
                if not is_usable(done):
                    self._forget(done.job.id)
        if good:
            self._learned += len(good)
            self._version += 1
            for done in good:
                self._sizes[isinstance(done.job.work, Fixed)].add(done.size)
            self.model.learn(good, now_s)

    def _forget(self, job_id: str) -> None:
        withdrawn = getattr(self.model, "withdrawn", None)
        if withdrawn is not None:
            withdrawn(job_id)


def _answer(known: _Known) -> Estimate:
    if known.estimate is None:
        raise InvalidValueError(f"job {known.job.id!r}", "estimate", None, "is missing, because the model failed")
    return known.estimate


def _range(job: Job) -> tuple[float, float]:
    """Least and largest size a job can be predicted to have."""
    return (SMALLEST_S, _LARGEST_S) if isinstance(job.work, Fixed) else (1.0, _LARGEST_ITERATIONS)


def _above_0(value: float, job_id: str, field: str) -> float:
    number = as_finite(value, f"job {job_id!r}", field, 0.0, _LARGEST_ITERATIONS)
    if number == 0.0:
        raise InvalidValueError(f"job {job_id!r}", field, value, "must be above 0")
    return number
