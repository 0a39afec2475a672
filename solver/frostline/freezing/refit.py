"""Debt laws from finished runs: an upper quantile, pulled towards a prior while runs are few."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from frostline.errors import InvalidValueError
from frostline.freezing.penalty import MAX_A, MAX_POINTS, DebtLaw, FrozenPhase, as_history
from frostline.units import as_finite

__all__ = ["FinishedRun", "fit_law", "refit_law"]

Array = npt.NDArray[np.float64]
Point = tuple[float, float, float, float]

# Parameters of a fit: a, what the decaying part costs from the warm-up w to the end, A (e^(-c w) - e^(-c)), c, and B_0.
_BOUNDS = ((0.1, 6.0), (0.001, 100.0), (0.5, 40.0), (0.001, 100.0))
_STARTS = ((0.5, 2.0, 12.0, 0.5), (3.0, 2.0, 12.0, 0.5), (1.0, 12.0, 6.0, 0.5), (1.0, 1.0, 4.0, 0.5))
_REACH = 3.0  # a refit moves c and a by at most this factor
_SMOOTH_POINTS = 0.05  # the kink of the loss is rounded off over this many points
_CENTRE = 1e-4  # weight of the pull towards the start, so that what no run shows stays there
_PRIOR_SHARES = (0.25, 0.5, 0.75, 1.0)
_PRIOR_STARTS = (0.0, 0.25, 0.5, 0.75)  # between the warm-up and the end


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRun:
    """A finished training run: when which share was frozen, and what that cost.

    Parameters
    ----------
    history : iterable of (float, float, float)
        Phases (start, end, share).
    loss_points : float
        Accuracy without freezing minus accuracy reached, in percentage points; negative where the run did better.

    Examples
    --------
    >>> FinishedRun(history=[(0.5, 1, 1)], loss_points=0.3).history
    (FrozenPhase(start=0.5, end=1.0, share=1.0),)
    """

    history: tuple[FrozenPhase, ...]
    loss_points: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "history", as_history(self.history))
        loss = as_finite(self.loss_points, "finished run", "loss_points", -MAX_POINTS, MAX_POINTS)
        object.__setattr__(self, "loss_points", loss)


def fit_law(runs: Iterable[FinishedRun], quantile: float = 0.9, warm_up: float = 0.2) -> DebtLaw:
    """Law that about this share of the runs stays below.

    The smoothed pinball loss of the runs is minimised: falling short of a loss by a point weighs
    ``quantile / (1 - quantile)`` times as much as exceeding it by one. A least-squares fit, in the middle of the runs
    and with a tail that is too thin, breaks the budgets planned with it.

    Parameters
    ----------
    runs : iterable of FinishedRun
        Runs of one task, at least 4, with several shares and starts.
    quantile : float, default 0.9
        Above 0 and below 1.
    warm_up : float, default 0.2
        Warm-up of the law.

    Raises
    ------
    InvalidValueError
        Fewer than 4 runs, or a quantile outside its bounds.

    Examples
    --------
    >>> truth = DebtLaw(a=1, A=20, c=8, B_0=1)
    >>> histories = [[(f / 10, 1, x / 4)] for f in (1, 2, 4, 6) for x in (1, 2, 3, 4)]
    >>> runs = [FinishedRun(history=h, loss_points=truth.history_points(h)) for h in histories]
    >>> abs(fit_law(runs).debt_points(1, 0.3, 1) - truth.debt_points(1, 0.3, 1)) < 0.1
    True
    """
    known = tuple(runs)
    if len(known) < 4:
        raise InvalidValueError("debt law", "runs", len(known), "must be at least 4")
    start = as_finite(warm_up, "debt law", "warm_up", 0.0, 1.0)
    law = _Fit(known, np.ones(len(known)), _share(quantile), min(start, 0.9)).law(_STARTS, _BOUNDS)
    return dataclasses.replace(law, warm_up=start)


def refit_law(
    prior: DebtLaw,
    runs: Iterable[FinishedRun],
    quantile: float = 0.8,
    prior_runs: float = 2.0,
    floor: float = 0.25,
    floor_tail_points: float = 0.1,
) -> DebtLaw:
    """Law of a recurring job after some finished runs, starting from a prior.

    The prior counts as ``prior_runs`` runs, spread over shares and starts, each of which lost what it says. With an
    upper quantile one bad run thus raises the law at once, while it takes several good ones to lower it, and the prior
    stays where a job never froze.

    Parameters
    ----------
    prior : DebtLaw
        Law believed so far.
    runs : iterable of FinishedRun
        Finished runs of the same recurring job; those that never froze say nothing.
    quantile : float, default 0.8
        Above 0 and below 1.
    prior_runs : float, default 2
        Weight of the prior, above 0.
    floor : float, default 0.25
        Share of the prior's debt that freezing everything but the head from the warm-up on costs at least; B_0 keeps at
        least this share of the prior's, too.
    floor_tail_points : float, default 0.1
        Least B_0 of the result, whatever the prior.

    Raises
    ------
    InvalidValueError
        A value lies outside its bounds.

    Examples
    --------
    >>> prior = DebtLaw(a=0.5, A=30, c=10, B_0=1)
    >>> refit_law(prior, []) == prior
    True
    >>> bad = FinishedRun(history=[(0.5, 1, 1)], loss_points=4)
    >>> refit_law(prior, [bad, bad]).debt_points(1, 0.5, 1) > 3.5 > prior.debt_points(1, 0.5, 1)
    True
    """
    share = _share(quantile)
    weight = as_finite(prior_runs, "refit", "prior_runs", 1e-9, 1e9)
    least = as_finite(floor, "refit", "floor", 0.0, 1.0)
    tail = as_finite(floor_tail_points, "refit", "floor_tail_points", 0.0, 100.0)
    known = [run for run in runs if any(phase.share > 0 and phase.end > phase.start for phase in run.history)]
    if not known or prior.warm_up == 1.0:
        return prior
    believed = _prior_runs(prior)
    weights = np.concatenate([np.ones(len(known)), np.full(len(believed), weight / len(believed))])
    fit = _Fit([*known, *believed], weights, share, prior.warm_up)
    left = dataclasses.replace(prior, B_0=0.0).debt_points(1.0, prior.warm_up, 1.0)
    most, low_tail = max(100.0, 2.0 * left), max(least * prior.B_0, tail, 1e-6)
    fastest = min(
        prior.c * _REACH, math.log(1e-3 * MAX_A / most) / max(prior.warm_up, 1e-9)
    )  # so that A stays a number
    bounds = (
        (prior.a / _REACH, prior.a * _REACH),
        (max(least * left, 1e-6), most),
        (min(prior.c / _REACH, fastest), fastest),
        (low_tail, max(100.0, 2.0 * low_tail)),
    )
    starts = [(prior.a, factor * left, prior.c, factor * prior.B_0) for factor in (1.0, 0.3, 5.0)]
    return fit.law(starts, bounds)


def _share(quantile: float) -> float:
    share = as_finite(quantile, "debt law", "quantile", 0.0, 1.0)
    if not 0.0 < share < 1.0:
        raise InvalidValueError("debt law", "quantile", quantile, "must be above 0 and below 1")
    return share


def _prior_runs(prior: DebtLaw) -> list[FinishedRun]:
    starts = [prior.warm_up + part * (1 - prior.warm_up) for part in _PRIOR_STARTS]
    histories = [(FrozenPhase(start, 1.0, share),) for start in starts if start < 1 for share in _PRIOR_SHARES]
    return [FinishedRun(history=history, loss_points=prior.history_points(history)) for history in histories]


class _Fit:
    """Weighted pinball loss of runs, as a function of the logarithms of the parameters, with its gradient."""

    def __init__(self, runs: Sequence[FinishedRun], weights: Array, quantile: float, warm_up: float) -> None:
        phases = [(i, *phase) for i, run in enumerate(runs) for phase in run.history if phase.share > 0]
        table = np.array(phases, float).reshape(len(phases), 4)
        self._run = table[:, 0].astype(np.int64)
        self._start, self._end, self._log_share = table[:, 1] - warm_up, table[:, 2] - warm_up, np.log(table[:, 3])
        self._loss = np.array([run.loss_points for run in runs])
        self._weights, self._quantile = weights / weights.sum(), quantile
        self._warm_up, self._rest = warm_up, 1.0 - warm_up

    def law(self, starts: Sequence[Point], bounds: Sequence[tuple[float, float]]) -> DebtLaw:
        """Law of least loss within bounds that is found from one of the starts."""
        found = [self._minimise(start, bounds) for start in starts]
        a, left, c, tail = (float(x) for x in min(found, key=lambda pair: pair[0])[1])
        early = left * math.exp(c * self._warm_up) / -math.expm1(-c * self._rest)
        return DebtLaw(a=a, A=early, c=c, B_0=tail, warm_up=self._warm_up)

    def _minimise(self, start: Point, bounds: Sequence[tuple[float, float]]) -> tuple[float, Array]:
        from scipy.optimize import minimize

        limits = [(math.log(low), math.log(high)) for low, high in bounds]
        centre = np.log([min(max(x, low), high) for x, (low, high) in zip(start, bounds, strict=True)])
        options: Any = {"maxiter": 500, "ftol": 1e-10}
        value: Any = self._value
        found = minimize(value, centre, (centre,), method="L-BFGS-B", jac=True, bounds=limits, options=options)
        inside = np.clip(np.asarray(found.x, float), [low for low, _ in limits], [high for _, high in limits])
        return float(found.fun), np.exp(inside)

    def _value(self, logs: Array, centre: Array) -> tuple[float, Array]:
        debts, slopes = self._debts(logs)
        residual = self._loss - debts
        root = np.sqrt(residual**2 + _SMOOTH_POINTS**2)
        tilt = self._quantile - 0.5
        away = logs - centre
        value = float(self._weights @ (tilt * residual + 0.5 * root) + _CENTRE * (away @ away))
        gradient = -slopes @ (self._weights * (tilt + 0.5 * residual / root)) + 2 * _CENTRE * away
        return value, gradient

    def _debts(self, logs: Array) -> tuple[Array, Array]:
        """Debt of each run, and its derivative by the logarithm of each parameter."""
        a, left, c, tail = np.exp(logs)
        power = np.exp(a * self._log_share)
        at_start, at_end, whole = np.exp(-c * self._start), np.exp(-c * self._end), -np.expm1(-c * self._rest)
        decaying, constant = power * left * (at_start - at_end) / whole, power * tail * (self._end - self._start)
        by_decay = power * left * c * (self._end * at_end - self._start * at_start) / whole
        by_decay -= decaying * c * self._rest * np.exp(-c * self._rest) / whole
        by_share = a * self._log_share * (decaying + constant)
        parts = (by_share, decaying, by_decay, constant)
        sums = np.array([np.bincount(self._run, part, len(self._loss)) for part in parts], float)
        return np.asarray(sums[1] + sums[3], float), sums
