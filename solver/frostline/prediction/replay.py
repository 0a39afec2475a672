"""Replays of traces: what models would have said of every job when it was submitted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from frostline.errors import InvalidValueError
from frostline.prediction.model import Estimate, SizeModel
from frostline.prediction.online import OnlinePredictor, PredictorStatistics
from frostline.prediction.scores import Scores, score
from frostline.prediction.size import size_of
from frostline.problem.job import Fixed, Job, Profiled
from frostline.problem.order import natural_key
from frostline.units import as_finite, duration_us, instant_us, seconds

__all__ = ["ReplayResult", "replay"]

Floats = npt.NDArray[np.float64]

_FINISH, _SUBMIT, _START = range(3)
_STEP = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayResult:
    """What one model said of the jobs of a trace, in the order of their submission.

    Parameters
    ----------
    model : str
        The model.
    jobs : tuple of str
        Identifiers.
    predicted, low, high : ndarray of float, shape (jobs,)
        Median, low and high quantile of each prediction at submission.
    actual : ndarray of float, shape (jobs,)
        Sizes.
    cold_start : ndarray of bool, shape (jobs,)
        Which predictions knew nothing of the job's user or group.
    sources : tuple of str
        Where each prediction came from.
    scores : Scores
        How good they were.
    seconds_per_prediction : float or None
        Time spent on predicting and learning, by the number of predictions.
    statistics : PredictorStatistics
        What the predictor counted.
    """

    model: str
    jobs: tuple[str, ...]
    predicted: Floats
    low: Floats
    high: Floats
    actual: Floats
    cold_start: npt.NDArray[np.bool_]
    sources: tuple[str, ...]
    scores: Scores
    seconds_per_prediction: float | None
    statistics: PredictorStatistics

    def as_dict(self) -> dict[str, Any]:
        """Model, scores and time as plain data for JSON."""
        return {"model": self.model, **self.scores.as_dict(), "seconds_per_prediction": self.seconds_per_prediction}


def replay(
    jobs: Iterable[Job],
    models: Iterable[str | SizeModel],
    *,
    start_s: Mapping[str, float] | None = None,
    duration_s: Mapping[str, float] | None = None,
    make_predictor: Callable[[str | SizeModel], OnlinePredictor] = OnlinePredictor,
    on_progress: Callable[[str, int, int], None] | None = None,
) -> list[ReplayResult]:
    """Feed a trace to models in the order of its events, and score what each said of a job when it was submitted.

    A job finishes its duration after its start, or after its release where the start is unknown. At one instant jobs
    finish, then the jobs submitted are asked about at once, then jobs start. So no prediction knows more than a
    scheduler would have known.

    Parameters
    ----------
    jobs : iterable of Job
        The trace, in any order, identifiers unique.
    models : iterable of str or SizeModel
        Models or their names; each sees the trace alone.
    start_s : mapping of str to float, optional
        When jobs started, by id, where that is known.
    duration_s : mapping of str to float, optional
        How long jobs ran, by id; needed where the work does not tell.
    make_predictor : callable
        Makes the predictor of a model.
    on_progress : callable, optional
        Told of the model, the jobs predicted so far and all jobs.

    Raises
    ------
    InvalidValueError
        An identifier occurs twice, a job starts before its release, or a duration is missing or not above 0.
    UnknownNameError
        Unknown model.

    Examples
    --------
    >>> def job(name, release_s, duration_s):
    ...     return Job(id=name, release_s=release_s, work=Fixed(duration_s=duration_s), gpus=1, user="u")
    >>> result, = replay([job("a", 0, 10), job("b", 5, 20), job("c", 10, 30), job("d", 25, 20)], ["last-finished"])
    >>> result.predicted.tolist(), result.sources[-1]
    ([3600.0, 3600.0, 10.0, 20.0], 'last-finished: user+gpus')
    """
    ordered = sorted(jobs, key=lambda job: (job.release_s, natural_key(job.id)))
    events = _events(ordered, start_s or {}, duration_s or {})
    return [_replay_one(ordered, events, make_predictor(model), on_progress) for model in models]


Events = list[tuple[float, list[int], list[int], list[int]]]


def _events(jobs: Sequence[Job], start_s: Mapping[str, float], duration_s: Mapping[str, float]) -> Events:
    """Instants in order, each with the indices of the jobs that finish, are submitted and start."""
    seen: set[str] = set()
    flat: list[tuple[int, int, int]] = []
    for i, job in enumerate(jobs):
        if job.id in seen:
            raise InvalidValueError(f"job {job.id!r}", "id", job.id, "occurs twice")
        seen.add(job.id)
        release_us = instant_us(job.release_s)
        begin_us = instant_us(as_finite(start_s.get(job.id, job.release_s), f"job {job.id!r}", "start_s"))
        if begin_us < release_us:
            rule = f"lies before its release {job.release_s}"
            raise InvalidValueError(f"job {job.id!r}", "start_s", start_s[job.id], rule)
        end_us = begin_us + duration_us(_duration_s(job, duration_s))
        flat += ((end_us, _FINISH, i), (release_us, _SUBMIT, i), (begin_us, _START, i))
    flat.sort()
    events: Events = []
    for at_us, group in groupby(flat, key=lambda event: event[0]):
        kinds: tuple[list[int], list[int], list[int]] = ([], [], [])
        for _, kind, i in group:
            kinds[kind].append(i)
        events.append((seconds(at_us), *kinds))
    return events


def _duration_s(job: Job, duration_s: Mapping[str, float]) -> float:
    """How long a job ran."""
    known = duration_s.get(job.id)
    if known is None and isinstance(job.work, Fixed):
        known = job.work.duration_s
    if known is None and isinstance(job.work, Profiled):
        known = job.work.iterations * min(job.work.seconds_per_iteration.values())
    if known is None:
        raise InvalidValueError(f"job {job.id!r}", "duration_s", None, "must be given, for its work does not tell")
    known = as_finite(known, f"job {job.id!r}", "duration_s")
    if known <= 0:
        raise InvalidValueError(f"job {job.id!r}", "duration_s", known, "must be above 0")
    return known


def _replay_one(
    jobs: Sequence[Job],
    events: Events,
    predictor: OnlinePredictor,
    on_progress: Callable[[str, int, int], None] | None,
) -> ReplayResult:
    estimates: list[Estimate] = []
    for now_s, finishing, submitted, starting in events:
        for i in finishing:
            job = jobs[i]
            predictor.finish(job.id, size_of(job), now_s, job.status)
        if submitted:
            estimates += predictor.predict([jobs[i] for i in submitted], now_s)
            if on_progress is not None and len(estimates) // _STEP > (len(estimates) - len(submitted)) // _STEP:
                on_progress(predictor.model.name, len(estimates), len(jobs))
        for i in starting:
            predictor.start(jobs[i].id, now_s)
    return _result(jobs, estimates, predictor)


def _result(jobs: Sequence[Job], estimates: Sequence[Estimate], predictor: OnlinePredictor) -> ReplayResult:
    predicted = np.array([estimate.median for estimate in estimates], np.float64)
    low = np.array([estimate.low for estimate in estimates], np.float64)
    high = np.array([estimate.high for estimate in estimates], np.float64)
    actual = np.array([size_of(job) for job in jobs], np.float64)
    cold_start = np.array([estimate.cold_start for estimate in estimates], bool)
    statistics = predictor.statistics
    spent_s = statistics.predicting_s + statistics.learning_s
    return ReplayResult(
        model=predictor.model.name,
        jobs=tuple(job.id for job in jobs),
        predicted=predicted,
        low=low,
        high=high,
        actual=actual,
        cold_start=cold_start,
        sources=tuple(estimate.source for estimate in estimates),
        scores=score(predicted, actual, low, high, cold_start),
        seconds_per_prediction=spent_s / len(jobs) if jobs else None,
        statistics=statistics,
    )
