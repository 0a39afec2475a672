"""How good predictions were: ratios between what was predicted and what came."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from frostline.errors import InvalidValueError
from frostline.units import as_finite

__all__ = ["DISTORTION_SHARES", "Distortion", "Scores", "distortion", "score"]

DISTORTION_SHARES = (0.0, 0.01, 0.05, 0.1)
"""Shares of the predictions that are left out at either end when the distortion is measured; 0 is the worst case."""


class Distortion(NamedTuple):
    """Bounds a · size ≤ prediction ≤ b · size, and D = b / a.

    Only D matters for the guarantee of shortest-remaining-first order on predictions that are divided by b.
    """

    a: float
    b: float
    D: float


def distortion(ratios: Sequence[float] | npt.NDArray[np.float64], share: float = 0.0) -> Distortion | None:
    """Bounds on predicted / actual that all but a share of the predictions keep, at either end.

    Parameters
    ----------
    ratios : sequence of float
        Predicted over actual sizes.
    share : float
        Share of the predictions that may lie below ``a``, and that may lie above ``b``, from 0 to below 0.5.

    Returns
    -------
    Distortion or None
        None where there is no ratio.

    Raises
    ------
    InvalidValueError
        The share is out of its range.

    Examples
    --------
    >>> distortion([0.5, 1.0, 1.0, 4.0])
    Distortion(a=0.5, b=4.0, D=8.0)
    >>> distortion([0.5, 1.0, 1.0, 4.0], 0.25)
    Distortion(a=1.0, b=1.0, D=1.0)
    """
    left_out = as_finite(share, "distortion", "share", 0.0)
    if left_out >= 0.5:
        raise InvalidValueError("distortion", "share", share, "must be below 0.5")
    ordered = sorted(map(float, ratios))  # fast where they are in order
    if not ordered:
        return None
    skipped = math.floor(left_out * len(ordered) + 1e-9)
    a, b = ordered[skipped], ordered[-1 - skipped]
    return Distortion(a, b, b / a)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """Scores of a model on a trace. Where there are no jobs, all but their number is None.

    Parameters
    ----------
    jobs : int
        Predictions that were scored.
    median_abs_log_ratio : float or None
        Median of ``|ln(predicted / actual)|``.
    share_within_2x : float or None
        Share of predictions from half to twice the size.
    distortion : mapping of float to Distortion
        Bounds on predicted / actual with the shares of ``DISTORTION_SHARES`` left out at either end.
    coverage : float or None
        Share of sizes from the low to the high quantile of their prediction; 0.8 is aimed at.
    cold_start_share : float or None
        Share of predictions that knew nothing of the job's user or group.
    """

    jobs: int
    median_abs_log_ratio: float | None
    share_within_2x: float | None
    distortion: Mapping[float, Distortion]
    coverage: float | None
    cold_start_share: float | None

    def as_dict(self) -> dict[str, Any]:
        """The scores as plain data for JSON."""
        bounds = {f"{share:g}": dict(found._asdict()) for share, found in self.distortion.items()}
        names = ("jobs", "median_abs_log_ratio", "share_within_2x", "coverage", "cold_start_share")
        return {name: getattr(self, name) for name in names} | {"distortion": bounds}


def score(
    predicted: npt.ArrayLike,
    actual: npt.ArrayLike,
    low: npt.ArrayLike | None = None,
    high: npt.ArrayLike | None = None,
    cold_start: npt.ArrayLike | None = None,
) -> Scores:
    """Scores of predictions.

    Parameters
    ----------
    predicted, actual : array_like, shape (jobs,)
        Medians of the predictions and the sizes that came, positive and finite, in one unit.
    low, high : array_like, shape (jobs,), optional
        Low and high quantiles of the predictions; by default ``predicted``.
    cold_start : array_like of bool, shape (jobs,), optional
        Which predictions knew nothing; by default none.

    Raises
    ------
    InvalidValueError
        Shapes differ, or a size is not positive and finite.

    Examples
    --------
    >>> scores = score([10, 10, 40], [10, 20, 10], low=[5, 5, 5], high=[10, 10, 50])
    >>> scores.jobs, round(scores.share_within_2x, 3), round(scores.coverage, 3), scores.distortion[0.0]
    (3, 0.667, 0.667, Distortion(a=0.5, b=4.0, D=8.0))
    >>> score([], []).median_abs_log_ratio is None
    True
    """
    said, came = _sizes("predicted", predicted), _sizes("actual", actual)
    lows = said if low is None else _sizes("low", low)
    highs = said if high is None else _sizes("high", high)
    cold = np.zeros(said.shape, bool) if cold_start is None else np.asarray(cold_start, bool)
    if not said.shape == came.shape == lows.shape == highs.shape == cold.shape:
        raise InvalidValueError("scores", "shape", said.shape, f"must be that of the actual sizes {came.shape}")
    if not said.size:
        return Scores(
            jobs=0,
            median_abs_log_ratio=None,
            share_within_2x=None,
            distortion=MappingProxyType({}),
            coverage=None,
            cold_start_share=None,
        )
    ratios = said / came
    errors = np.abs(np.log(ratios))
    found = {share: distortion(ratios, share) for share in DISTORTION_SHARES}
    return Scores(
        jobs=said.size,
        median_abs_log_ratio=float(np.median(errors)),
        share_within_2x=float(np.mean(errors <= math.log(2) * (1 + 1e-12))),
        distortion=MappingProxyType({share: bounds for share, bounds in found.items() if bounds is not None}),
        coverage=float(np.mean((lows <= came) & (came <= highs))),
        cold_start_share=float(np.mean(cold)),
    )


def _sizes(field: str, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    array = np.asarray(values, np.float64)
    bad = array[~((array > 0.0) & (array < math.inf))]
    if bad.size:
        raise InvalidValueError("scores", field, float(bad[0]), "must be positive and finite")
    return array
