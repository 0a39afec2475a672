"""Synthetic traces that resemble public ones: widths, heavy-tailed durations, recurring jobs, bursts.

The defaults follow the Philly trace, see :mod:`frostline.traces.draws`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from frostline.problem.job import Fixed, Job, Locality
from frostline.traces.draws import (
    JOBS_PER_USER,
    PHILLY_LONGEST_S,
    VIRTUAL_CLUSTERS,
    group_labels,
    kinds,
    log_durations,
    releases,
    whole_seconds,
    widths_and_weights,
    within,
)
from frostline.traces.workload import Floats, Ints
from frostline.units import as_int

__all__ = ["generate_jobs"]


def generate_jobs(
    jobs: int,
    *,
    seed: int,
    gpus: int,
    load: float = 0.9,
    interarrival_cv: float = 2.3,
    diurnal: float = 0.0,
    histogram: str | Mapping[int, float] = "philly",
    recurring_share: float = 0.65,
    likeness: float = 0.95,
    longest_s: float = PHILLY_LONGEST_S,
    locality: Locality = Locality.ANY,
) -> tuple[Job, ...]:
    """Jobs that offer a given load to a cluster, in order of release.

    Gaps between releases are Weibull distributed with the wanted coefficient of variation and then scaled, so that the
    GPU-seconds of all jobs are ``load * gpus`` times the span of the releases. Recurring jobs share user, name, number
    of GPUs and duration component with the others of their group, and their durations are correlated. Groups do not
    change the distribution of single jobs. Durations are whole seconds; releases are whole milliseconds, except for
    the last one, which meets the load.

    Parameters
    ----------
    jobs : int
        Number of jobs.
    seed : int
        Seed; the same seed gives the same jobs.
    gpus : int
        Size of the cluster; no job is wider.
    load : float
        Offered load, above 0. A single job is released at 0 whatever the load.
    interarrival_cv : float
        Coefficient of variation of the gaps, from 0.1 to 20; 1 is a Poisson process. That of a sample comes out lower
        where it is large, for want of the rarest gaps.
    diurnal : float
        Amplitude, from 0 to below 1, by which the rate of releases swings around its mean every day.
    histogram : str or mapping of int to float
        Weights of the numbers of GPUs, or the name of an entry of ``GPU_HISTOGRAMS``.
    recurring_share : float
        Share of jobs that belong to groups of at least 5 jobs.
    likeness : float
        Correlation of the logarithms of the durations within a group and component, from 0 to 1.
    longest_s : float
        Cap of the durations, in seconds.
    locality : Locality
        Locality of all jobs.

    Returns
    -------
    tuple of Job
        Jobs ``"1"``, ``"2"``, …; ``group`` is a virtual cluster, (``user``, ``name``) tells recurring jobs.

    Raises
    ------
    InvalidValueError
        An argument is out of its range, or no number of GPUs of the histogram fits the cluster.
    UnknownNameError
        An unknown histogram.

    Examples
    --------
    >>> from frostline.traces.workload import offered_load
    >>> trace = generate_jobs(1000, seed=7, gpus=128, load=0.8)
    >>> round(offered_load(trace, 128), 9), trace == generate_jobs(1000, seed=7, gpus=128, load=0.8)
    (0.8, True)
    """
    count, size = as_int(jobs, "generator", "jobs", 1), as_int(gpus, "generator", "gpus", 1)
    wanted = within("load", load, 1e-6, 1e6)
    cv = within("interarrival_cv", interarrival_cv, 0.1, 20.0)
    swing = within("diurnal", diurnal, 0.0, 0.999)
    share = within("recurring_share", recurring_share, 0.0, 1.0)
    alike = within("likeness", likeness, 0.0, 1.0)
    cap = within("longest_s", longest_s, 1.0, 8.9e9)
    widths, weights = widths_and_weights(histogram, size)
    roots = np.random.SeedSequence(as_int(seed, "generator", "seed", 0)).spawn(4)
    group_rng, kind_rng, duration_rng, arrival_rng = map(np.random.default_rng, roots)

    groups = _groups(group_rng, count, share)
    of_group, component = kinds(kind_rng, np.bincount(groups.of), widths, weights)
    width = of_group[groups.of]
    duration_s = _durations(duration_rng, component, groups.of, alike, cap)
    span_s = float((width * duration_s).sum()) / (wanted * size)
    release_s = releases(arrival_rng, count, cv, swing, span_s)
    return _jobs(release_s, width, duration_s, groups, locality)


class _Groups(NamedTuple):
    """Group of every job, shape (jobs,); groups below ``recurring`` recur, the others are of one job."""

    of: Ints
    recurring: int
    total: int
    user: Ints
    cluster_of_user: Ints


def _groups(rng: np.random.Generator, jobs: int, share: float) -> _Groups:
    labels = group_labels(rng, jobs, share)
    recurring = int(labels[-1]) + 1 if labels.size else 0
    total = recurring + jobs - labels.size
    of = rng.permutation(np.concatenate([labels, np.arange(recurring, total)]))
    users = max(1, jobs // JOBS_PER_USER)
    # Squaring a uniform number makes some users busier than others.
    user = (users * rng.random(total) ** 2).astype(np.int64)
    return _Groups(of, recurring, total, user, rng.integers(VIRTUAL_CLUSTERS, size=users))


def _durations(rng: np.random.Generator, component: Ints, of: Ints, likeness: float, longest_s: float) -> Floats:
    """Durations in whole seconds; group and job deviate so that together they have the variance of the component."""
    group_deviation = rng.standard_normal(component.size)[of] * math.sqrt(likeness)
    deviation = group_deviation + rng.standard_normal(of.size) * math.sqrt(1 - likeness)
    return whole_seconds(log_durations(component[of], deviation), longest_s)


def _jobs(release_s: Floats, width: Ints, duration_s: Floats, groups: _Groups, locality: Locality) -> tuple[Job, ...]:
    user = groups.user[groups.of]
    columns = (release_s, width, duration_s, user, groups.cluster_of_user[user], groups.of)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    once = groups.recurring
    return tuple(
        Job(
            id=str(number),
            release_s=release,
            work=Fixed(duration_s=duration),
            gpus=wide,
            user=f"user{who}",
            group=f"vc{cluster}",
            name=f"recurring{group}" if group < once else f"once{group - once}",
            locality=locality,
        )
        for number, (release, wide, duration, who, cluster, group) in enumerate(rows, 1)
    )
