"""Synthetic workloads of recurring jobs: users who submit the same training again and again, with what changes.

What is taken from public sources: widths and lengths from the Philly trace (see :mod:`frostline.traces.draws`); 65 % of
the jobs in groups of at least five (published for Alibaba PAI 2020, alibaba/clusterdata issue 114); how iterations vary
from one run to the next from repeated runs to a target (You, Chung, Chowdhury, *Zeus*, NSDI 2023: last epoch at which a
target was met, over the seeds of 61 configurations); the shares of killed and failed jobs of Philly by number, 9 and
30.5 %, from the table of AcmeTrace (Hu et al., NSDI 2024). Everything else is an assumption: how users come, drift,
sweep and repeat, how much of a run is done when it stops early, and how users estimate; but the median of an estimate
over the run time, about 3 for jobs that pass, is near the 2.9 of the 1,000 public jobs of NREL Eagle.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import repeat
from typing import Any, Literal, NamedTuple

import numpy as np

from frostline.errors import UnknownNameError
from frostline.problem.job import Fixed, Job, Locality, PlacementClass, Profiled, Work
from frostline.traces.draws import (
    JOBS_PER_USER,
    PHILLY_LONGEST_S,
    SMALLEST_GROUP,
    VIRTUAL_CLUSTERS,
    group_labels,
    kinds,
    log_durations,
    releases,
    widths_and_weights,
    within,
)
from frostline.traces.job_names import FAMILIES, HASHES, SUFFIXES, run_name, stems
from frostline.traces.workload import Floats, Ints
from frostline.units import as_int

__all__ = ["generate_recurring_jobs"]

# Coefficient of variation of the iterations over runs: quantiles over the configurations of Zeus.
_CV_LEVELS = [0.0, 0.13, 0.25, 0.5, 0.75, 0.9, 0.95, 1.0]
_CV_VALUES = [0.0, 0.0, 0.046, 0.12, 0.227, 0.374, 0.466, 1.16]
# Templates that do not recur: shares of those with 1, 2, 3 and 4 jobs.
_FEW = [0.6, 0.2, 0.12, 0.08]
# Habits of recurring templates, and their shares: now and then, at a rhythm, all within a short while; then the few.
_HABITS = [0.3, 0.3, 0.4]
_RHYTHM, _RARE = 1, 3
# Half the time in which a template is run, as a share of its user's time: least and most, by habit.
_HALF_WINDOW = np.array([[0.05, 0.05, 0.0002, 0.001], [0.5, 0.5, 0.005, 0.05]])
_JUMP = (math.log(1.5), math.log(4.0))
_STEP_SPREAD, _STEP_JITTER = 0.5, 0.02
_LEAST_ITERATIONS = 50
_SLOWEST = 2.0
_PASS, _KILLED, _FAILED = range(3)
_STATUSES = ("Pass", "Killed", "Failed")
# Exponents of the rank of a template by length, in the odds that a run is killed or fails.
_KILLED_RANK, _FAILED_RANK = 4.0, 1.0
_ESTIMATE_SPREAD = 0.6
_LEAST_FACTOR = 1.05
_ROUND_HOURS = [1 / 12, 1 / 6, 0.25, 0.5, 1, 2, 3, 4, 6, 8, 12, 18, 24, 36, 48, 72, 96, 120, 168, 240, 336, 480]
_ROUND_S = np.array(_ROUND_HOURS) * 3600
_MONTH_S = 720 * 3600.0
_LONGEST_ESTIMATE_S = 8.9e9
_WORKS = ("fixed", "profiled")


def generate_recurring_jobs(
    jobs: int,
    *,
    seed: int,
    gpus: int,
    load: float = 0.9,
    interarrival_cv: float = 2.3,
    diurnal: float = 0.0,
    histogram: str | Mapping[int, float] = "philly",
    recurring_share: float = 0.65,
    new_users: float = 0.3,
    drift: float = 0.3,
    jumps: float = 0.15,
    killed_share: float = 0.09,
    failed_share: float = 0.305,
    estimate_factor: float | None = 1.5,
    work: Literal["fixed", "profiled"] = "fixed",
    longest_s: float = PHILLY_LONGEST_S,
    locality: Locality = Locality.ANY,
) -> tuple[Job, ...]:
    """Recurring jobs that offer a given load to a cluster, in order of release.

    Every job is a run of a template, which has a user, a stem of a name, a number of GPUs, typical iterations and
    seconds per iteration. Releases are those of :func:`~frostline.traces.generate.generate_jobs`. The iterations of a
    run are lognormal around the template's, with a coefficient of variation of the template: over all templates its
    median is 0.12 and its maximum 1.16, as over the configurations of Zeus. Runs that stop early do a part of them.
    Seconds per iteration vary by 2 %. The module tells what is published and what is assumed.

    Parameters
    ----------
    jobs : int
        Number of jobs.
    seed : int
        Seed; the same seed gives the same jobs.
    gpus : int
        Size of the cluster; no job is wider.
    load : float
        Offered load, above 0; that of one server's speed where work is profiled.
    interarrival_cv, diurnal, histogram, longest_s, locality
        As of :func:`~frostline.traces.generate.generate_jobs`.
    recurring_share : float
        Share of jobs whose template has at least 5 jobs.
    new_users : float
        Share of users, from 0 to 1, who come one by one in the course of the trace; the others are there from the
        start.
    drift : float
        Standard deviation of the change of a template's iterations over the whole trace, as a logarithm.
    jumps : float
        Share of templates whose iterations change once, by a factor between 1.5 and 4 up or down.
    killed_share, failed_share : float
        Shares of jobs that stop early, together at most 1; runs of long templates do so more often.
    estimate_factor : float or None
        Median over templates of the user's estimate over the typical run time, at least 1, before it is rounded up to
        a time such as 15 minutes, 8 hours or 3 days. None for jobs without estimates.
    work : {"fixed", "profiled"}
        Jobs of known duration in whole seconds, or of known iterations, slower on many servers by up to 2 times.

    Returns
    -------
    tuple of Job
        Jobs ``"1"``, ``"2"``, …; ``group`` is a virtual cluster, ``status`` one of ``Pass``, ``Killed`` and ``Failed``.
        :func:`~frostline.traces.job_names.template_of` tells which are runs of one template.

    Raises
    ------
    InvalidValueError
        An argument is out of its range, or no number of GPUs of the histogram fits the cluster.
    UnknownNameError
        An unknown histogram or kind of work.

    Examples
    --------
    >>> from frostline.traces.workload import offered_load
    >>> trace = generate_recurring_jobs(1000, seed=7, gpus=128, load=0.8)
    >>> round(offered_load(trace, 128), 9), trace == generate_recurring_jobs(1000, seed=7, gpus=128, load=0.8)
    (0.8, True)
    """
    count, size = as_int(jobs, "generator", "jobs", 1), as_int(gpus, "generator", "gpus", 1)
    wanted = within("load", load, 1e-6, 1e6)
    cv, swing = within("interarrival_cv", interarrival_cv, 0.1, 20.0), within("diurnal", diurnal, 0.0, 0.999)
    share, late = within("recurring_share", recurring_share, 0.0, 1.0), within("new_users", new_users, 0.0, 1.0)
    change = within("drift", drift, 0.0, 10.0), within("jumps", jumps, 0.0, 1.0)
    killed, failed = within("killed_share", killed_share, 0.0, 1.0), within("failed_share", failed_share, 0.0, 1.0)
    within("killed_share + failed_share", killed + failed, 0.0, 1.0 + 1e-9)
    factor = None if estimate_factor is None else within("estimate_factor", estimate_factor, 1.0, 1e6)
    cap = within("longest_s", longest_s, 1.0, 8.9e9)
    if work not in _WORKS:
        raise UnknownNameError("kind of work", work, _WORKS)
    widths, weights = widths_and_weights(histogram, size)
    rngs = map(np.random.default_rng, np.random.SeedSequence(as_int(seed, "generator", "seed", 0)).spawn(9))
    size_rng, user_rng, template_rng, run_rng, stop_rng, work_rng, estimate_rng, arrival_rng, name_rng = rngs

    sizes = _sizes(size_rng, count, share)
    users = _users(user_rng, count, late)
    templates = _templates(template_rng, sizes, users, kinds(size_rng, sizes, widths, weights), change, cap)
    runs = _runs(run_rng, templates)
    status, done = _early_stops(stop_rng, templates, runs.of, round(killed * count), round(failed * count))
    iterations, step_s = _work(work_rng, templates, runs, done, cap)
    duration_s = iterations * step_s
    if work == "fixed":
        duration_s = np.clip(np.rint(duration_s), 1.0, math.floor(cap))
    width = templates.gpus[runs.of]
    release_s = releases(arrival_rng, count, cv, swing, float((width * duration_s).sum()) / (wanted * size))
    slowdown = templates.slowdown[runs.of]
    works = _fixed(duration_s) if work == "fixed" else _profiled(iterations, step_s, slowdown, width)
    user = templates.user[runs.of]
    columns = zip(
        *(column.tolist() for column in (release_s, width, user, users.cluster[user], status)),
        _names(name_rng, templates, runs, release_s),
        _estimates(estimate_rng, templates, runs, factor),
        works,
        strict=True,
    )
    return tuple(_job(number, row, locality) for number, row in enumerate(columns, 1))


class _Users(NamedTuple):
    """When each user comes, as a share of the trace, how much each does, and the virtual cluster, of shape (users,)."""

    joined: Floats
    weight: Floats
    cluster: Ints


class _Templates(NamedTuple):
    """What the runs of a template share; all of shape (templates,), times as shares of the trace."""

    size: Ints
    user: Ints
    gpus: Ints
    log_s: Floats  # logarithm of the typical run time in seconds
    family: Ints
    step_s: Floats
    slowdown: Floats
    cv: Floats
    habit: Ints
    begin: Floats
    end: Floats
    slope: Floats
    jump: Floats
    jump_at: Floats


class _Runs(NamedTuple):
    """Template of each job in order of release, its time as a share of the trace, and its number in its template."""

    of: Ints
    at: Floats
    number: Ints


def _sizes(rng: np.random.Generator, jobs: int, share: float) -> Ints:
    """Number of jobs of each template: of those that recur, then of the others."""
    many = group_labels(rng, jobs, share)
    few = jobs - many.size
    ends = np.cumsum(1 + rng.choice(len(_FEW), size=few, p=_FEW))
    labels = np.searchsorted(ends, np.arange(few), side="right")
    return np.concatenate([np.bincount(many), np.bincount(labels)]).astype(np.int64)


def _users(rng: np.random.Generator, jobs: int, late: float) -> _Users:
    """Users, the new ones last; how much they do falls off like the root of their rank, and with the time they have."""
    count = max(1, jobs // JOBS_PER_USER)
    new = min(round(late * count), count - 1)
    joined = np.concatenate([np.zeros(count - new), (np.arange(new) + 0.5) / max(new, 1)])
    weight = (1 - joined) / np.sqrt(1 + rng.permutation(count))
    return _Users(joined, weight, rng.integers(VIRTUAL_CLUSTERS, size=count))


def _templates(
    rng: np.random.Generator,
    sizes: Ints,
    users: _Users,
    kind: tuple[Ints, Ints],
    change: tuple[float, float],
    cap: float,
) -> _Templates:
    count = sizes.size
    cumulative = np.cumsum(users.weight)
    user = np.searchsorted(cumulative / cumulative[-1], rng.random(count), side="right")
    gpus, component = kind
    log_s = np.minimum(log_durations(component, rng.standard_normal(count)), math.log(cap))
    family = rng.integers(len(FAMILIES), size=count)
    step_s = np.array(list(FAMILIES.values()))[family] * np.exp(_STEP_SPREAD * rng.standard_normal(count))
    habit, begin, end = _windows(rng, sizes, users.joined[user])
    drift, jumps = change
    jump = rng.choice([-1.0, 1.0], size=count) * rng.uniform(*_JUMP, size=count) * (rng.random(count) < jumps)
    return _Templates(
        size=sizes,
        user=user,
        gpus=gpus,
        log_s=log_s,
        family=family,
        step_s=np.minimum(step_s, np.exp(log_s) / _LEAST_ITERATIONS),
        slowdown=rng.uniform(1.0, _SLOWEST, size=count),
        cv=_variations(rng, sizes),
        habit=habit,
        begin=begin,
        end=end,
        slope=drift * rng.standard_normal(count),
        jump=jump,
        jump_at=begin + (end - begin) * rng.uniform(0.2, 0.8, size=count),
    )


def _variations(rng: np.random.Generator, sizes: Ints) -> Floats:
    """Coefficients of variation of the iterations; those of the recurring templates spread evenly over their law."""
    level = np.empty(sizes.size)
    for part in (sizes >= SMALLEST_GROUP, sizes < SMALLEST_GROUP):
        count = int(part.sum())
        level[part] = (rng.permutation(count) + rng.random(count)) / max(count, 1)
    cv: Floats = np.interp(level, _CV_LEVELS, _CV_VALUES)
    return cv


def _windows(rng: np.random.Generator, sizes: Ints, joined: Floats) -> tuple[Ints, Floats, Floats]:
    """Habit, and first and last moment of each template, which lie within the time of its user."""
    count = sizes.size
    habit = np.where(sizes >= SMALLEST_GROUP, rng.choice(len(_HABITS), size=count, p=_HABITS), _RARE)
    left = 1 - joined
    half = left * rng.uniform(*_HALF_WINDOW[:, habit])
    centre = joined + left * rng.random(count)
    return habit, np.maximum(joined, centre - half), np.minimum(1.0, centre + half)


def _runs(rng: np.random.Generator, templates: _Templates) -> _Runs:
    labels = np.repeat(np.arange(templates.size.size), templates.size)
    first = np.cumsum(templates.size) - templates.size
    place = np.arange(labels.size) - first[labels]
    uniform = rng.random(labels.size)
    regular = (place + 0.3 * uniform) / templates.size[labels]
    within_window = np.where(templates.habit[labels] == _RHYTHM, regular, uniform)
    at = templates.begin[labels] + (templates.end - templates.begin)[labels] * within_window
    order = np.argsort(at, kind="stable")
    of = labels[order]
    number = np.empty_like(of)
    number[np.argsort(of, kind="stable")] = place + 1
    return _Runs(of, at[order], number)


def _growth(templates: _Templates, runs: _Runs) -> Floats:
    """Change of the typical iterations of each run since the first of its template, as a logarithm."""
    since = runs.at - templates.begin[runs.of]
    growth: Floats = templates.slope[runs.of] * since + templates.jump[runs.of] * (
        runs.at >= templates.jump_at[runs.of]
    )
    return growth


def _early_stops(
    rng: np.random.Generator, templates: _Templates, of: Ints, killed: int, failed: int
) -> tuple[Ints, Floats]:
    """Status of each run, and the part of it that is done.

    Some templates fail often and most hardly ever. With the odds chosen here GPU time is shared by passed, killed and
    failed jobs somewhat as in Philly (32, 29 and 39 % in the table of Hu et al.).
    """
    order = np.argsort(templates.log_s, kind="stable")
    rank = np.empty(order.size)
    rank[order] = (np.cumsum(templates.size[order]) - templates.size[order] / 2) / of.size
    status = np.full(of.size, _PASS)
    fragile = rng.gamma(0.5, size=order.size) * rank**_FAILED_RANK
    status[_choose(rng, fragile[of], failed)] = _FAILED
    status[_choose(rng, rank[of] ** _KILLED_RANK * (status == _PASS), killed)] = _KILLED
    uniform = rng.random(of.size)
    done = np.where(status == _PASS, 1.0, uniform)
    return status, np.maximum(done, 0.001)


def _choose(rng: np.random.Generator, weight: Floats, count: int) -> Ints:
    """Indices of so many elements, drawn without replacement by weight (Efraimidis and Spirakis, 2006)."""
    key = rng.exponential(size=weight.size) / np.maximum(weight, 1e-300)
    return np.argsort(key, kind="stable")[:count]


def _work(
    rng: np.random.Generator, templates: _Templates, runs: _Runs, done: Floats, cap: float
) -> tuple[Floats, Floats]:
    """Iterations of each run, and its seconds per iteration."""
    of = runs.of
    sigma = np.sqrt(np.log1p(templates.cv**2))[of]
    step_s = templates.step_s[of] * np.exp(_STEP_JITTER * rng.standard_normal(of.size))
    noise = sigma * rng.standard_normal(of.size) - sigma**2 / 2
    logarithm = (templates.log_s - np.log(templates.step_s))[of] + _growth(templates, runs) + noise + np.log(done)
    iterations = np.rint(np.exp(np.minimum(logarithm, 50.0)))
    return np.clip(iterations, 1.0, np.maximum(np.floor(cap / step_s), 1.0)), step_s


def _estimates(
    rng: np.random.Generator, templates: _Templates, runs: _Runs, factor: float | None
) -> Iterable[float | None]:
    """Estimate of each run in seconds: what is typical at that time, times the caution of the user, rounded up."""
    if factor is None:
        return repeat(None, runs.of.size)
    caution = np.maximum(factor * np.exp(_ESTIMATE_SPREAD * rng.standard_normal(templates.size.size)), _LEAST_FACTOR)
    logarithm = (templates.log_s + np.log(caution))[runs.of] + _growth(templates, runs)
    asked_s = np.exp(np.minimum(logarithm, math.log(_LONGEST_ESTIMATE_S)))
    at = np.searchsorted(_ROUND_S, asked_s)
    rounded = np.append(_ROUND_S, np.inf)[at]
    months = np.minimum(np.ceil(asked_s / _MONTH_S) * _MONTH_S, _LONGEST_ESTIMATE_S)
    estimates: list[float | None] = np.where(at < _ROUND_S.size, rounded, months).tolist()
    return estimates


def _fixed(duration_s: Floats) -> Iterator[Work]:
    return (Fixed(duration_s=duration) for duration in duration_s.tolist())


def _profiled(iterations: Floats, step_s: Floats, slowdown: Floats, gpus: Ints) -> Iterator[Work]:
    for count, one, slower, width in zip(*map(np.ndarray.tolist, (iterations, step_s, slowdown, gpus)), strict=True):
        many = {PlacementClass.MANY_SERVERS: one * slower} if width > 1 else {}
        yield Profiled(iterations=int(count), seconds_per_iteration={PlacementClass.ONE_SERVER: one, **many})


def _names(rng: np.random.Generator, templates: _Templates, runs: _Runs, release_s: Floats) -> Iterator[str]:
    count = templates.size.size
    suffix = rng.integers(SUFFIXES, size=count).tolist()
    stem = stems(templates.user.tolist(), templates.family.tolist(), rng.integers(1 << 16, size=count).tolist())
    bits = rng.integers(HASHES, size=runs.of.size).tolist()
    rows = zip(runs.of.tolist(), runs.number.tolist(), release_s.tolist(), bits, strict=True)
    return (run_name(stem[of], suffix[of], number, release, bit) for of, number, release, bit in rows)


def _job(number: int, row: tuple[Any, ...], locality: Locality) -> Job:
    release_s, gpus, user, cluster, status, name, estimate_s, work = row
    return Job(
        id=str(number),
        release_s=release_s,
        work=work,
        gpus=gpus,
        user=f"user{user}",
        group=f"vc{cluster}",
        name=name,
        status=_STATUSES[status],
        locality=locality,
        estimate_s=estimate_s,
    )
