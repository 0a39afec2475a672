"""What a trace is like: its size, its load, its jobs and how they arrive."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from frostline.problem.job import Job
from frostline.traces.trace import ReadReport, Trace
from frostline.traces.workload import Floats, Ints, in_order, job_arrays
from frostline.units import US_PER_S, as_int

__all__ = ["TraceSummary", "summarise"]

_QUANTILES = (5, 25, 50, 75, 95, 99)
_TEXTS = ("user", "group", "name", "status")


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSummary:
    """Figures of a trace; those that the jobs do not determine are None.

    Parameters
    ----------
    jobs : int
        Number of jobs.
    span_s : float
        Time from the first to the last submission, in seconds.
    gpu_hours : float
        GPUs times duration, over all jobs.
    mean_busy_gpus : float or None
        GPU-seconds over ``span_s``.
    peak_busy_gpus : int
        Most GPUs busy at once if every job ran from its submission.
    gpus : int or None
        Size of the cluster that ``load`` refers to.
    load : float or None
        ``mean_busy_gpus`` over ``gpus``.
    gpu_histogram : mapping of int to int
        Number of jobs by GPUs they hold, ascending.
    duration_s : mapping of str to float
        ``mean``, ``max`` and the quantiles ``p5`` to ``p99`` of the durations, in seconds.
    interarrival_cv : float or None
        Standard deviation of the gaps between submissions over their mean.
    same_second_share : float or None
        Share of those gaps that are shorter than a second.
    estimates : int
        Number of jobs with an estimate of the user.
    median_overestimate : float or None
        Median of estimate over duration, of those jobs.
    coverage : mapping of str to float
        Share of rows in which a column is filled; of jobs, where there is no report of a reading.
    report : ReadReport or None
        What became of the rows of the file.
    """

    jobs: int
    span_s: float
    gpu_hours: float
    mean_busy_gpus: float | None
    peak_busy_gpus: int
    gpus: int | None
    load: float | None
    gpu_histogram: Mapping[int, int]
    duration_s: Mapping[str, float]
    interarrival_cv: float | None
    same_second_share: float | None
    estimates: int
    median_overestimate: float | None
    coverage: Mapping[str, float]
    report: ReadReport | None

    def as_dict(self) -> dict[str, Any]:
        """The summary as plain data for JSON; jobs that were not read from a file count as rows kept."""
        figures = {
            "jobs": self.jobs,
            "span_s": self.span_s,
            "gpu_hours": self.gpu_hours,
            "mean_busy_gpus": self.mean_busy_gpus,
            "peak_busy_gpus": self.peak_busy_gpus,
            "gpus": self.gpus,
            "load": self.load,
            "gpu_histogram": {str(width): count for width, count in self.gpu_histogram.items()},
            "duration_s": dict(self.duration_s),
            "interarrival_cv": self.interarrival_cv,
            "same_second_share": self.same_second_share,
            "estimates": self.estimates,
            "median_overestimate": self.median_overestimate,
            "coverage": dict(self.coverage),
        }
        if self.report is not None:
            return self.report.as_dict() | figures
        return {"rows_read": self.jobs, "rows_kept": self.jobs, "dropped": {}, "repaired": {}} | figures


def summarise(trace: Trace | Sequence[Job], gpus: int | None = None) -> TraceSummary:
    """Summary of a trace, or of any jobs of known duration.

    Parameters
    ----------
    trace : Trace or sequence of Job
        The jobs.
    gpus : int, optional
        Size of a cluster, for the load that the jobs offer to it.

    Raises
    ------
    InvalidValueError
        A job's work is not ``Fixed``.

    Examples
    --------
    >>> from frostline.problem.job import Fixed
    >>> jobs = [Job(id=str(i), release_s=i, work=Fixed(duration_s=3), gpus=2) for i in range(4)]
    >>> summary = summarise(jobs, gpus=16)
    >>> summary.mean_busy_gpus, summary.load, summary.peak_busy_gpus, summary.gpu_histogram
    (8.0, 0.5, 6, {2: 4})
    """
    report = trace.report if isinstance(trace, Trace) else None
    jobs = in_order(trace.jobs if isinstance(trace, Trace) else trace)
    size = None if gpus is None else as_int(gpus, "cluster", "gpus", 1)
    release_s, width, duration_s = job_arrays(jobs)
    span_s = float(release_s[-1] - release_s[0]) if jobs else 0.0
    gpu_s = float((width * duration_s).sum())
    mean_busy = gpu_s / span_s if span_s > 0 else None
    cv, same_second = _gaps(release_s)
    over = _overestimates(jobs, duration_s)
    return TraceSummary(
        jobs=len(jobs),
        span_s=span_s,
        gpu_hours=gpu_s / 3600,
        mean_busy_gpus=mean_busy,
        peak_busy_gpus=_peak(release_s, width, duration_s),
        gpus=size,
        load=None if size is None or mean_busy is None else mean_busy / size,
        gpu_histogram=_histogram(width),
        duration_s=_durations(duration_s),
        interarrival_cv=cv,
        same_second_share=same_second,
        estimates=over.size,
        median_overestimate=float(np.median(over)) if over.size else None,
        coverage=_filled(jobs) if report is None else report.coverage,
        report=report,
    )


def _peak(release_s: Floats, width: Ints, duration_s: Floats) -> int:
    """Largest number of GPUs held at once; at one instant, ends come before starts."""
    start_us = np.rint(release_s * US_PER_S).astype(np.int64)
    end_us = start_us + np.maximum(np.rint(duration_s * US_PER_S).astype(np.int64), 1)
    change = np.concatenate([width, -width])
    order = np.lexsort((change, np.concatenate([start_us, end_us])))
    return int(np.cumsum(change[order]).max(initial=0))


def _gaps(release_s: Floats) -> tuple[float | None, float | None]:
    gaps = np.diff(release_s)
    mean = float(gaps.mean()) if gaps.size else 0.0
    if mean == 0:
        return None, 1.0 if gaps.size else None
    return float(gaps.std()) / mean, float((gaps < 1).mean())


def _histogram(width: Ints) -> dict[int, int]:
    values, counts = np.unique(width, return_counts=True)
    return dict(zip(values.tolist(), counts.tolist(), strict=True))


def _durations(duration_s: Floats) -> dict[str, float]:
    if not duration_s.size:
        return {}
    levels = np.quantile(duration_s, np.array(_QUANTILES) / 100).tolist()
    quantiles = {f"p{level}": value for level, value in zip(_QUANTILES, levels, strict=True)}
    return {"mean": float(duration_s.mean()), "max": float(duration_s.max())} | quantiles


def _overestimates(jobs: Sequence[Job], duration_s: Floats) -> Floats:
    """Estimate over duration of the jobs that have one."""
    estimate_s = np.array([math.nan if job.estimate_s is None else job.estimate_s for job in jobs], np.float64)
    known = ~np.isnan(estimate_s)
    over: Floats = estimate_s[known] / duration_s[known]
    return over


def _filled(jobs: Sequence[Job]) -> dict[str, float]:
    return {field: sum(bool(getattr(job, field)) for job in jobs) / len(jobs) for field in _TEXTS if jobs}
