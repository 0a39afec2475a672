"""Metric reports of simulated jobs: what a validation metric would tell a scheduler about the cost of freezing.

The model is ours, and simple. The metric of a training without freezing rises with the progress s as ``gain (1 −
e^(−r s)) / (1 − e^(−r))`` percentage points. Over a stretch of progress a job gains that much, less what freezing
truly costs it there by its curve, plus noise. It reports this with what freezing is *believed* to cost added back,
next to the gain without freezing: the ratio κ of both is 1 on average where the belief is right, below 1 where
freezing costs more than believed, and above 1 where it costs less. Two things are left out: in truth part of what
freezing costs shows only at the end of a training, and a belief of the gain itself can be wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from frostline.freezing.belief import spent_points, terms_of
from frostline.freezing.curve import TrainingCurve
from frostline.problem.instance import Instance
from frostline.problem.job import Elastic, Job
from frostline.simulation.accuracy import Stretch, curve_of, history_of
from frostline.simulation.truth import Truth
from frostline.units import as_finite, as_int

__all__ = ["MetricReports", "Reporter"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricReports:
    """How simulated jobs report their metric.

    Parameters
    ----------
    gain_points : float
        Percentage points that the metric gains over a training without freezing, above 0.
    rate : float
        How early it gains them: r of ``(1 − e^(−r s)) / (1 − e^(−r))``, above 0.
    every : float
        Progress after which a job reports, at the next event, from 0 to 1.
    noise_points : float
        Standard deviation of the noise of a reported gain.
    seed : int
        Seed of the noise; each job has noise of its own.

    Raises
    ------
    InvalidValueError
        A parameter is out of its range.

    Examples
    --------
    >>> reports = MetricReports()
    >>> round(reports.gained_points(0, 0.5), 2), round(reports.gained_points(0.5, 1), 2)
    (40.88, 9.12)
    """

    gain_points: float = 50.0
    rate: float = 3.0
    every: float = 0.05
    noise_points: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        subject = "metric reports"
        bounds = {"gain_points": (1e-6, 100.0), "rate": (1e-6, 100.0), "every": (1e-6, 1.0), "noise_points": (0, 100)}
        for name, (low, high) in bounds.items():
            object.__setattr__(self, name, as_finite(getattr(self, name), subject, name, low, high))
        object.__setattr__(self, "seed", as_int(self.seed, subject, "seed", 0))

    def gained_points(self, start: float, end: float) -> float:
        """Points that the metric gains from one progress to another without freezing."""
        fall = math.exp(-self.rate * start) - math.exp(-self.rate * end)
        return self.gain_points * fall / -math.expm1(-self.rate)


class Reporter:
    """Makes the reports of the jobs of an instance that run.

    Parameters
    ----------
    instance : Instance
        The jobs.
    truth : Truth
        How far they are.
    reports : MetricReports
        How they report.
    curves : mapping of str to TrainingCurve, optional
        Curves of the truth by name of job or by family.
    """

    def __init__(
        self,
        instance: Instance,
        truth: Truth,
        reports: MetricReports,
        curves: Mapping[str, TrainingCurve] | None = None,
    ) -> None:
        self._truth, self._reports, self._curves = truth, reports, curves
        self._jobs = {job.id: job for job in instance.jobs if isinstance(job.work, Elastic) and job.work.levels > 1}
        self._numbers = {job.id: i for i, job in enumerate(instance.jobs)}
        self._told: dict[str, _Told] = {}

    def due(self, now_us: int) -> Iterator[tuple[str, float, float]]:
        """Reports of the running jobs that are due: job, realised and expected gain."""
        for job_id in list(self._truth.running):
            job = self._jobs.get(job_id)
            report = None if job is None else self._report(job, now_us)
            if report is not None:
                yield (job_id, *report)

    def _report(self, job: Job, now_us: int) -> tuple[float, float] | None:
        """Realised and expected gain of a job since its last report; None while it is too early."""
        work, reports = job.work, self._reports
        assert isinstance(work, Elastic)
        done, frozen = self._truth.training(job.id, now_us)
        told = self._told.get(job.id) or self._begin(job)
        if done - told.done < reports.every * work.iterations:
            return None
        true, believed = self._costs(job, work, frozen)
        expected = reports.gained_points(told.done / work.iterations, done / work.iterations)
        noise = reports.noise_points * float(told.noise.standard_normal())
        realised = expected - (true - told.true) + (believed - told.believed) + noise
        self._told[job.id] = _Told(done, true, believed, told.noise)
        return realised, expected

    def _begin(self, job: Job) -> _Told:
        seeds = np.random.SeedSequence([self._reports.seed, self._numbers[job.id]])
        told = self._told[job.id] = _Told(0, 0.0, 0.0, np.random.default_rng(seeds))
        return told

    def _costs(self, job: Job, work: Elastic, frozen: Iterable[Stretch]) -> tuple[float, float]:
        """What the frozen stretches cost in truth, and by what is believed."""
        stretches = list(frozen)
        true = curve_of(job, self._curves).debt_points(history_of(work, stretches))
        return true, spent_points(work.iterations, stretches, terms_of(work))


@dataclass(frozen=True, slots=True)
class _Told:
    """What a job has reported on so far: iterations, true and believed cost up to there; and its noise."""

    done: int
    true: float
    believed: float
    noise: np.random.Generator
