"""What generators of traces draw: widths, durations, sizes of groups, releases.

Widths and durations follow the Philly trace (Jeon et al., *Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN
Training Workloads*, USENIX ATC 2019). Durations come from a mixture of lognormals, fitted by expectation maximisation
to its jobs: the same components for all jobs, their shares by width.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.traces.workload import Floats, Ints
from frostline.units import as_finite, as_int

__all__ = [
    "DAY_S",
    "GPU_HISTOGRAMS",
    "JOBS_PER_USER",
    "PHILLY_LONGEST_S",
    "SMALLEST_GROUP",
    "VIRTUAL_CLUSTERS",
    "group_labels",
    "kinds",
    "log_durations",
    "releases",
    "whole_seconds",
    "widths_and_weights",
    "within",
]

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

PHILLY_LONGEST_S = 4_628_226.0
"""The longest job of the Philly trace, in seconds."""

DAY_S = 86_400.0
"""A day in seconds."""

SMALLEST_GROUP = 5
"""Least number of jobs of a recurring group."""

JOBS_PER_USER = 60
"""Mean number of jobs of a user."""

VIRTUAL_CLUSTERS = 15
"""Number of groups of users."""

_LARGEST_GROUP = 500
_GROUP_SIZE_TAIL = 1.5  # exponent of the Pareto law of group sizes


def widths_and_weights(histogram: str | Mapping[int, float], gpus: int) -> tuple[Ints, Floats]:
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


def within(field: str, value: float, low: float, high: float) -> float:
    """Argument of a generator as a finite number from ``low`` to ``high``."""
    return as_finite(value, "generator", field, low, high)


def group_labels(rng: np.random.Generator, jobs: int, share: float) -> Ints:
    """Ascending labels, from 0, of the groups of a share of the jobs.

    Sizes follow a Pareto law from the smallest size to a hundred times it, or to a fiftieth of the jobs; the last group
    may be larger. There is no label where the share of the jobs is less than one group.
    """
    many = round(share * jobs)
    many = many if many >= SMALLEST_GROUP else 0
    largest = max(SMALLEST_GROUP, min(jobs // 50, _LARGEST_GROUP))
    sizes = SMALLEST_GROUP * rng.random(many // SMALLEST_GROUP + 1) ** (-1 / _GROUP_SIZE_TAIL)
    ends = np.cumsum(np.minimum(sizes, largest).astype(np.int64))
    labels = np.searchsorted(ends, np.arange(many), side="right")
    short = int(np.sum(labels == labels[-1])) if many else 0
    if 0 < short < SMALLEST_GROUP and labels[-1] > 0:
        labels[-short:] -= 1
    return labels.astype(np.int64)


def kinds(rng: np.random.Generator, sizes: Ints, widths: Ints, weights: Floats) -> tuple[Ints, Ints]:
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


def log_durations(component: Ints, deviation: Floats) -> Floats:
    """Logarithms of durations in seconds: the deviation is in standard deviations of the component of each."""
    logarithm: Floats = _LOG_MEAN[component] + _LOG_SIGMA[component] * deviation
    return logarithm


def whole_seconds(logarithm: Floats, longest_s: float) -> Floats:
    """Durations of those logarithms in whole seconds, at least 1 and at most the longest."""
    seconds: Floats = np.clip(np.rint(np.exp(np.minimum(logarithm, 30.0))), 1.0, math.floor(longest_s))
    return seconds


def releases(rng: np.random.Generator, jobs: int, cv: float, swing: float, span_s: float) -> Floats:
    """Ascending release times from 0 to ``span_s``, of shape (jobs,).

    Gaps are Weibull distributed with coefficient of variation ``cv``; ``swing`` is the amplitude of the daily rate.
    """
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
    grid_s = np.linspace(0.0, span_s, max(1024, math.ceil(span_s / DAY_S * 288)) + 1)
    turn = 2 * math.pi / DAY_S
    mass = grid_s + swing / turn * (1 - np.cos(turn * grid_s))
    times_s: Floats = np.interp(uniform_s * (mass[-1] / span_s), mass, grid_s)
    return times_s
