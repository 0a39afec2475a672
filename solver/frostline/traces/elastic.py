"""Workloads of elastic jobs: arrivals and GPU-time of Philly, work of measured applications."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.problem.job import Elastic, Job, Locality, PlacementClass
from frostline.traces.draws import DAY_S
from frostline.traces.elastic_profile import ElasticProfile
from frostline.traces.generate import generate_jobs
from frostline.traces.workload import Floats, Ints, in_order, job_arrays
from frostline.units import as_finite, as_int

__all__ = ["elastic_jobs", "elastic_load", "tuned_widths"]

_SUBJECT = "elastic jobs"
_HOUR_S = 3600.0
_SHORTEST_S, _LARGEST_GPU_S = 60.0, 1000.0 * _HOUR_S
_CHOICES = {"requests": ("trace", "tuned"), "sizes": ("trace", "application"), "scale": ("durations", "releases")}
_EFFICIENT = (0.5, 0.8)
_MOST_ITERATIONS = 1e15


def elastic_jobs(
    count: int,
    *,
    seed: int,
    gpus: int,
    profiles: Iterable[ElasticProfile] | Mapping[str, ElasticProfile],
    load: float = 0.9,
    arrivals: Sequence[Job] | None = None,
    hours: tuple[float, float] = (2.0, 10.0),
    requests: Literal["trace", "tuned"] = "trace",
    sizes: Literal["trace", "application"] = "trace",
    scale: Literal["durations", "releases"] = "durations",
    quality_budget_points: float = 0.5,
    warm_up: float = 0.2,
    locality: Locality = Locality.ANY,
) -> tuple[Job, ...]:
    """Elastic jobs that offer a given load to a cluster, in order of release.

    As in Pollux, jobs of a trace that run for at least a minute and less than 1,000 GPU-hours become jobs of measured
    applications: each gets one of the profiles whose GPU-time class holds its GPU-time, all with equal chance, or of
    those nearest to it. The load is that of all jobs on the GPUs they ask for, without freezing, in one server where
    that was measured.

    Parameters
    ----------
    count : int
        Number of jobs.
    seed : int
        Seed; the same seed gives the same jobs.
    gpus : int
        Size of the cluster; no job asks for more.
    profiles : iterable of ElasticProfile, or mapping with such values
        Applications, at least one.
    load : float
        Offered load, above 0.
    arrivals : sequence of Job, optional
        ``Fixed`` jobs of a trace, of which ``count`` are drawn and released at their time of day, as Pollux does with
        Philly; times are taken modulo a day. By default jobs of :func:`~frostline.traces.generate.generate_jobs`,
        which resemble Philly, gaps and all.
    hours : tuple of float
        Hours of the day, from and below, within which jobs of ``arrivals`` are drawn.
    requests : {"trace", "tuned"}
        Whether a job asks for the GPUs it had in the trace, the largest width at most that; or for one of
        :func:`tuned_widths`, all with equal chance.
    sizes : {"trace", "application"}
        Whether a job has the GPU-time it had in the trace, or the iterations of a whole training of its application.
    scale : {"durations", "releases"}
        What is multiplied by a common factor to meet the load: iterations, rounded to whole ones, or the gaps between
        releases.
    quality_budget_points : float
        Accuracy that freezing may cost a job, in percentage points.
    warm_up : float
        Share of the progress before which nothing is frozen.
    locality : Locality
        Locality of all jobs.

    Returns
    -------
    tuple of Job
        Jobs ``"1"``, ``"2"``, … with the name of their profile as name.

    Raises
    ------
    InvalidValueError
        An argument is out of its range, a profile is wider than the cluster or has no iterations that ``sizes`` asks
        for, too few jobs of the trace are within bounds, or all are released at one instant.
    UnknownNameError
        An unknown choice of ``requests``, ``sizes`` or ``scale``.

    References
    ----------
    Qiao et al., *Pollux*, OSDI 2021, section 5.1 and the workload generator of its public code; Jeon et al., *Analysis
    of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads*, USENIX ATC 2019.
    """
    for name, chosen in (("requests", requests), ("sizes", sizes), ("scale", scale)):
        if chosen not in _CHOICES[name]:
            raise UnknownNameError(f"choice of {name}", str(chosen), _CHOICES[name])
    total, size = as_int(count, _SUBJECT, "count", 1), as_int(gpus, _SUBJECT, "gpus", 1)
    wanted = as_finite(load, _SUBJECT, "load", 1e-6, 1e6)
    offered = _profiles(profiles, size)
    seeds = np.random.SeedSequence(as_int(seed, _SUBJECT, "seed", 0)).spawn(3)
    draw = _Draw(size, *map(np.random.default_rng, seeds[1:]))
    rows = _generated(seeds[0], total, size, wanted) if arrivals is None else _drawn(seeds[0], total, arrivals, hours)
    of = draw.applications(rows, offered)
    width = draw.widths(rows, of, offered, requests == "tuned")
    second = np.array([offered[i].best_s(w) for i, w in zip(of, width.tolist(), strict=True)])
    if sizes == "trace":
        iterations = rows.gpu_s / (width * second)
    else:
        iterations = np.array([float(_own_iterations(offered[i])) for i in of])
    whole, release_s = _scaled(iterations, width * second, rows.release_s, wanted * size, scale)
    budget = as_finite(quality_budget_points, _SUBJECT, "quality_budget_points", 0.0)
    works = [offered[i].work(n, quality_budget_points=budget, warm_up=warm_up) for i, n in zip(of, whole, strict=True)]
    columns = zip(release_s.tolist(), width.tolist(), works, of, rows.jobs, strict=True)
    return tuple(
        Job(
            id=str(number),
            release_s=release,
            work=work,
            gpus=wide,
            user=job.user,
            group=job.group,
            name=offered[i].name,
            locality=locality,
        )
        for number, (release, wide, work, i, job) in enumerate(columns, 1)
    )


def elastic_load(jobs: Sequence[Job], gpus: int) -> float | None:
    """Load that elastic jobs offer on the GPUs they ask for, without freezing, in one server where that was measured.

    Returns
    -------
    float or None
        None where all jobs are released at one instant.

    Raises
    ------
    InvalidValueError
        A job's work is not ``Elastic``.

    Examples
    --------
    >>> work = Elastic(iterations=30, widths=[2], seconds_per_iteration={"one_server": {2: [0.1]}})
    >>> elastic_load([Job(id=str(i), release_s=i, work=work, gpus=2) for i in range(4)], 16)
    0.5
    """
    gpu_s = []
    for job in jobs:
        if not isinstance(job.work, Elastic):
            raise InvalidValueError(f"job {job.id!r}", "work", type(job.work).__name__, "must be Elastic")
        gpu_s.append(job.gpus * job.work.iterations * job.work.seconds(job.gpus, PlacementClass.ONE_SERVER))
    span_s = max(job.release_s for job in jobs) - min(job.release_s for job in jobs) if jobs else 0.0
    return math.fsum(gpu_s) / (span_s * as_int(gpus, "cluster", "gpus", 1)) if span_s > 0 else None


def tuned_widths(profile: ElasticProfile, gpus: int) -> tuple[int, ...]:
    """Widths up to ``gpus`` at which each GPU does between 0.5 and 0.8 of what one alone does; the least if none.

    These are the requests of well-tuned jobs in Pollux (section 5.1).
    """
    first, *wider = profile.widths
    alone = first * profile.best_s(first)
    efficient = [w for w in wider if w <= gpus and _EFFICIENT[0] < alone / (w * profile.best_s(w)) < _EFFICIENT[1]]
    return tuple(efficient) or (first,)


class _Rows(NamedTuple):
    """Jobs of a trace by release: release times and GPU-seconds, shape (jobs,), and the jobs."""

    release_s: Floats
    gpu_s: Floats
    jobs: Sequence[Job]


def _profiles(given: Iterable[ElasticProfile] | Mapping[str, ElasticProfile], gpus: int) -> list[ElasticProfile]:
    profiles = list(given.values() if isinstance(given, Mapping) else given)
    if not profiles:
        raise InvalidValueError(_SUBJECT, "profiles", profiles, "must be at least one")
    for profile in profiles:
        if profile.widths[0] > gpus:
            rule = f"must offer a width of at most {gpus} GPUs"
            raise InvalidValueError(_SUBJECT, "profiles", profile.name, rule)
    return profiles


def _own_iterations(profile: ElasticProfile) -> int:
    return profile.work().iterations


def _generated(seed: np.random.SeedSequence, count: int, gpus: int, load: float) -> _Rows:
    """Jobs that resemble Philly and are within bounds, with gaps that offer the load."""
    number, sample = int(seed.generate_state(1)[0]), count
    kept: list[Job] = []
    while len(kept) < count:
        sample += max(16, sample // 4)
        kept = _within_bounds(generate_jobs(sample, seed=number, gpus=gpus))
    rows = _rows(kept[:count])
    span_s, first_s = float(np.ptp(rows.release_s)), rows.release_s[0]
    factor = float(rows.gpu_s.sum()) / (load * gpus * span_s) if span_s > 0 else 1.0
    return rows._replace(release_s=(rows.release_s - first_s) * factor)


def _drawn(seed: np.random.SeedSequence, count: int, arrivals: Sequence[Job], hours: tuple[float, float]) -> _Rows:
    """Jobs of a trace drawn without replacement, at their time of day, the first at 0."""
    low, high = (as_finite(hour, _SUBJECT, "hours", 0.0, DAY_S / _HOUR_S) for hour in hours)
    inside = [job for job in _within_bounds(in_order(arrivals)) if low <= job.release_s % DAY_S / _HOUR_S < high]
    if len(inside) < count:
        rule = f"must hold {count} jobs of a minute or more and below 1,000 GPU-hours from hour {low:g} to {high:g}"
        raise InvalidValueError(_SUBJECT, "arrivals", len(inside), rule)
    picks = np.random.default_rng(seed).choice(len(inside), size=count, replace=False)
    chosen = [inside[i] for i in sorted(picks.tolist())]
    rows = _rows(in_order(job.replace(release_s=job.release_s % DAY_S) for job in chosen))
    return rows._replace(release_s=rows.release_s - rows.release_s[0])


def _within_bounds(jobs: Iterable[Job]) -> list[Job]:
    known = list(jobs)
    _, width, duration_s = job_arrays(known)
    fits = (duration_s >= _SHORTEST_S) & (width * duration_s < _LARGEST_GPU_S)
    return [job for job, good in zip(known, fits.tolist(), strict=True) if good]


def _rows(jobs: Sequence[Job]) -> _Rows:
    release_s, width, duration_s = job_arrays(jobs)
    return _Rows(release_s, width * duration_s, jobs)


class _Draw:
    """What is drawn for each job: its application, and the GPUs it asks for."""

    def __init__(self, gpus: int, kind: np.random.Generator, request: np.random.Generator) -> None:
        self._gpus, self._kind, self._request = gpus, kind, request

    def applications(self, rows: _Rows, profiles: Sequence[ElasticProfile]) -> list[int]:
        """Index of the profile of each job."""
        low, high = (np.array([profile.gpu_hours[i] for profile in profiles]) for i in (0, 1))
        chance = self._kind.random(rows.gpu_s.size).tolist()
        found = []
        for hours, uniform in zip((rows.gpu_s / _HOUR_S).tolist(), chance, strict=True):
            # Distance of the GPU-time to each class as a factor, 1 inside.
            apart = np.maximum(np.maximum(low / hours, hours / np.nextafter(high, 0.0)), 1.0)
            nearest = np.flatnonzero(apart == apart.min())
            found.append(int(nearest[int(uniform * nearest.size)]))
        return found

    def widths(self, rows: _Rows, of: Sequence[int], profiles: Sequence[ElasticProfile], tuned: bool) -> Ints:
        """GPUs that each job asks for."""
        options = [tuned_widths(profile, self._gpus) for profile in profiles]
        chance = self._request.random(len(of)).tolist()
        asked = []
        for i, job, uniform in zip(of, rows.jobs, chance, strict=True):
            if tuned:
                asked.append(options[i][int(uniform * len(options[i]))])
            else:
                fitting = [w for w in profiles[i].widths if w <= min(job.gpus, self._gpus)]
                asked.append(fitting[-1] if fitting else profiles[i].widths[0])
        return np.array(asked, np.int64)


def _scaled(iterations: Floats, gpu_s: Floats, release_s: Floats, busy: float, scale: str) -> tuple[list[int], Floats]:
    """Whole iterations and releases that keep ``busy`` GPUs busy on average; ``gpu_s`` is that of one iteration."""
    span_s = float(np.ptp(release_s))
    if scale == "durations" and span_s > 0:
        iterations = iterations * (busy * span_s / float((iterations * gpu_s).sum()))
    if iterations.max() > _MOST_ITERATIONS:
        raise InvalidValueError(
            _SUBJECT, "iterations", float(iterations.max()), f"must be at most {_MOST_ITERATIONS:g}"
        )
    whole = np.maximum(np.rint(iterations), 1.0)
    if scale == "releases" and span_s > 0:
        release_s = release_s * (float((whole * gpu_s).sum()) / (busy * span_s))
    return [int(count) for count in whole.tolist()], release_s
