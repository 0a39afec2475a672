"""Synthetic traces that resemble public ones: widths, heavy-tailed durations, recurring jobs, bursts.

The defaults follow the Philly trace (Jeon et al., *Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training
Workloads*, USENIX ATC 2019). Durations come from a mixture of lognormals, fitted by expectation maximisation to its
jobs: the same components for all jobs, their shares by width.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.problem.job import Fixed, Job, Locality
from frostline.traces.workload import Floats, Ints
from frostline.units import as_finite, as_int

__all__ = ["GPU_HISTOGRAMS", "generate_jobs"]

_PHILLY = {1: 76627, 2: 1818, 4: 1870, 8: 1643, 12: 7, 16: 199, 24: 7, 32: 67, 64: 6, 128: 3}
_ITP = {1: 0.8324, 2: 0.021, 4: 0.034, 8: 0.101, 16: 0.0055, 32: 0.0051, 64: 0.001}
_MIXED = {1: 0.40, 2: 0.14, 4: 0.16, 8: 0.20, 16: 0.06, 32: 0.03, 64: 0.01}

GPU_HISTOGRAMS: Mapping[str, Mapping[int, float]] = MappingProxyType(
    {"philly": MappingProxyType(_PHILLY), "itp": MappingProxyType(_ITP), "mixed": MappingProxyType(_MIXED)}
)
"""Weights of the numbers of GPUs: as in the Philly and the ITP trace, and with many more wide jobs."""

# Lognormal components: mean and standard deviation of the logarithm of seconds.
_LOG_MEAN = np.array([4.169, 2.895, 6.997, 7.669, 11.431])
_LOG_SIGMA = np.array([0.173, 0.419, 1.789, 0.513, 1.213])
# Shares of the components among jobs of 1 GPU, of 2 to 7 and of 8 or more.
_SHARES = np.array(
    [
        [0.1870, 0.0000, 0.5789, 0.2114, 0.0227],
        [0.0130, 0.3649, 0.2717, 0.0000, 0.3504],
        [0.0128, 0.0000, 0.4050, 0.0000, 0.5822],
    ]
)
_LONGEST_S = 4_628_226.0  # the longest job of the Philly trace
_DAY_S = 86_400.0

_SMALLEST_GROUP = 5
_LARGEST_GROUP = 500
_GROUP_SIZE_TAIL = 1.5  # exponent of the Pareto law of group sizes
_JOBS_PER_USER = 60
_VIRTUAL_CLUSTERS = 15


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
    longest_s: float = _LONGEST_S,
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
    wanted = _within("load", load, 1e-6, 1e6)
    cv = _within("interarrival_cv", interarrival_cv, 0.1, 20.0)
    swing = _within("diurnal", diurnal, 0.0, 0.999)
    share = _within("recurring_share", recurring_share, 0.0, 1.0)
    alike = _within("likeness", likeness, 0.0, 1.0)
    cap = _within("longest_s", longest_s, 1.0, 8.9e9)
    widths, weights = _weights(histogram, size)
    roots = np.random.SeedSequence(as_int(seed, "generator", "seed", 0)).spawn(4)
    group_rng, kind_rng, duration_rng, arrival_rng = map(np.random.default_rng, roots)

    groups = _groups(group_rng, count, share)
    of_group, component = _kinds(kind_rng, np.bincount(groups.of), widths, weights)
    width = of_group[groups.of]
    duration_s = _durations(duration_rng, component, groups.of, alike, cap)
    span_s = float((width * duration_s).sum()) / (wanted * size)
    release_s = _releases(arrival_rng, count, cv, swing, span_s)
    return _jobs(release_s, width, duration_s, groups, locality)


class _Groups(NamedTuple):
    """Group of every job, shape (jobs,); groups below ``recurring`` recur, the others are of one job."""

    of: Ints
    recurring: int
    total: int
    user: Ints
    cluster_of_user: Ints


def _groups(rng: np.random.Generator, jobs: int, share: float) -> _Groups:
    many = round(share * jobs)
    many = many if many >= _SMALLEST_GROUP else 0
    labels = _recurring_labels(rng, many, max(_SMALLEST_GROUP, min(jobs // 50, _LARGEST_GROUP)))
    recurring = int(labels[-1]) + 1 if many else 0
    total = recurring + jobs - many
    of = rng.permutation(np.concatenate([labels, np.arange(recurring, total)]))
    users = max(1, jobs // _JOBS_PER_USER)
    # Squaring a uniform number makes some users busier than others.
    user = (users * rng.random(total) ** 2).astype(np.int64)
    return _Groups(of, recurring, total, user, rng.integers(_VIRTUAL_CLUSTERS, size=users))


def _recurring_labels(rng: np.random.Generator, jobs: int, largest: int) -> Ints:
    """Ascending group labels of ``jobs`` jobs, in groups of at least the smallest size; the last one may be larger."""
    sizes = _SMALLEST_GROUP * rng.random(jobs // _SMALLEST_GROUP + 1) ** (-1 / _GROUP_SIZE_TAIL)
    ends = np.cumsum(np.minimum(sizes, largest).astype(np.int64))
    labels = np.searchsorted(ends, np.arange(jobs), side="right")
    short = int(np.sum(labels == labels[-1])) if jobs else 0
    if 0 < short < _SMALLEST_GROUP and labels[-1] > 0:
        labels[-short:] -= 1
    return labels.astype(np.int64)


def _kinds(rng: np.random.Generator, sizes: Ints, widths: Ints, weights: Floats) -> tuple[Ints, Ints]:
    """Number of GPUs and duration component of each group, drawn by systematic sampling in proportion to group size.

    Every group has the wanted distribution, and the shares of the jobs stay close to it even where groups are large.
    """
    order = rng.permutation(sizes.size)
    middles = np.cumsum(sizes[order]) - sizes[order] / 2
    position = np.empty(sizes.size)
    position[order] = (middles / sizes.sum() + rng.random()) % 1.0
    shares = _SHARES[np.searchsorted([2, 8], widths, side="right")]
    table = (weights[:, None] * shares / shares.sum(axis=1, keepdims=True)).T.ravel()
    cumulative = np.cumsum(table)
    kind = np.searchsorted(cumulative / cumulative[-1], position, side="right")
    return widths[kind % widths.size], kind // widths.size


def _durations(rng: np.random.Generator, component: Ints, of: Ints, likeness: float, longest_s: float) -> Floats:
    """Durations in whole seconds; group and job deviate so that together they have the variance of the component."""
    group_deviation = rng.standard_normal(component.size)[of] * math.sqrt(likeness)
    deviation = group_deviation + rng.standard_normal(of.size) * math.sqrt(1 - likeness)
    logarithm = _LOG_MEAN[component][of] + _LOG_SIGMA[component][of] * deviation
    seconds: Floats = np.clip(np.rint(np.exp(np.minimum(logarithm, 30.0))), 1.0, math.floor(longest_s))
    return seconds


def _releases(rng: np.random.Generator, jobs: int, cv: float, swing: float, span_s: float) -> Floats:
    """Ascending release times from 0 to ``span_s``."""
    if jobs == 1:
        return np.zeros(1)
    if span_s >= 8.9e9:
        raise InvalidValueError("generator", "span_s", span_s, "must be below 8.9e9; raise the load or the gpus")
    clock = np.concatenate([[0.0], np.cumsum(rng.weibull(_weibull_shape(cv), jobs - 1))])
    release_s: Floats = clock * (span_s / clock[-1])
    if swing:
        release_s = _by_day(release_s, swing, span_s)
    release_s = np.minimum(np.round(release_s, 3), span_s)
    release_s[-1] = span_s
    return release_s


def _weibull_shape(cv: float) -> float:
    """Shape k of the Weibull law whose coefficient of variation is cv: cv² + 1 = Γ(1 + 2/k) / Γ(1 + 1/k)²."""
    low, high = 0.05, 20.0
    for _ in range(60):
        shape = math.sqrt(low * high)
        if math.lgamma(1 + 2 / shape) - 2 * math.lgamma(1 + 1 / shape) > math.log1p(cv * cv):
            low = shape
        else:
            high = shape
    return high


def _by_day(uniform_s: Floats, swing: float, span_s: float) -> Floats:
    """Times at which the rate 1 + swing * sin(2π t / day) has accumulated the shares ``uniform_s / span_s``."""
    grid_s = np.linspace(0.0, span_s, max(1024, math.ceil(span_s / _DAY_S * 288)) + 1)
    turn = 2 * math.pi / _DAY_S
    mass = grid_s + swing / turn * (1 - np.cos(turn * grid_s))
    times_s: Floats = np.interp(uniform_s * (mass[-1] / span_s), mass, grid_s)
    return times_s


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


def _weights(histogram: str | Mapping[int, float], gpus: int) -> tuple[Ints, Floats]:
    """Numbers of GPUs that fit the cluster, ascending, and their probabilities."""
    if isinstance(histogram, str):
        if histogram not in GPU_HISTOGRAMS:
            raise UnknownNameError("GPU histogram", histogram, GPU_HISTOGRAMS)
        histogram = GPU_HISTOGRAMS[histogram]
    pairs = sorted(
        (as_int(width, "generator", "histogram", 1), as_finite(weight, "generator", f"histogram[{width}]", 0.0))
        for width, weight in histogram.items()
    )
    fitting = [(width, weight) for width, weight in pairs if width <= gpus and weight > 0]
    if not fitting:
        raise InvalidValueError("generator", "histogram", dict(histogram), f"must hold a width of at most {gpus} GPUs")
    weights = np.array([weight for _, weight in fitting], np.float64)
    return np.array([width for width, _ in fitting], np.int64), weights / weights.sum()


def _within(field: str, value: float, low: float, high: float) -> float:
    return as_finite(value, "generator", field, low, high)
