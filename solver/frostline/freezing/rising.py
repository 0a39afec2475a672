"""Levels that only rise: the fastest way to spend a debt budget when the level may change at any progress.

Without a cost of changes, and with a debt density ``q(x, s) = h(x) d(s)`` that falls with the progress s, the problem

    minimise ``∫ t(k(s)) ds`` subject to ``∫ h(k(s)) d(s) ds <= budget``

is solved by one price μ: at each s the level with the least ``t + μ h d(s)``. Only levels on the lower hull of the
points (h, t) are ever best; with the slopes ``r_1 > r_2 > …`` of that hull, level i is taken once ``μ d(s) <= r_i``, so
that levels never fall. A plan in phases is a special case, so that no plan of
:func:`~frostline.freezing.trajectory.plan_trajectory` is faster.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Hulls", "LawArrays", "hulls_of", "rising_vertices"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Hulls(NamedTuple):
    """Lower hulls of (debt weight, time), from the vertex that costs nothing to the fastest one, which is repeated.

    Parameters
    ----------
    level : ndarray of int64, shape (rows, vertices)
        Freeze level of each vertex.
    weight, seconds : ndarray of float64, shape (rows, vertices)
        Debt weight ``h = share^a``, and time.
    """

    level: Ints
    weight: Floats
    seconds: Floats

    @property
    def slope(self) -> Floats:
        """Time saved per unit of weight on the way to each vertex; infinite for the first one, 0 for repeated ones."""
        rise, fall = np.diff(self.weight), -np.diff(self.seconds)
        slope = np.divide(fall, rise, out=np.zeros_like(rise), where=rise > 0)
        return np.concatenate([np.full((len(slope), 1), np.inf), slope], axis=1)


class LawArrays(NamedTuple):
    """Parameters of :class:`~frostline.freezing.DebtLaw` by row, shape (rows,)."""

    A: Floats
    c: Floats
    B_0: Floats


def hulls_of(seconds: npt.ArrayLike, weights: npt.ArrayLike, vertices: int | None = None) -> Hulls:
    """Hulls of rows of times, one for each level.

    Parameters
    ----------
    seconds : array of float, shape (rows, levels)
        Times, not rising with the level.
    weights : array of float, shape (levels,)
        Debt weights from 0, not falling with the level.
    vertices : int, optional
        Vertices of each row, at least as many as levels and by default so many.

    Examples
    --------
    >>> hulls = hulls_of([[10, 9, 4, 3]], [0, 0.25, 0.5, 1])
    >>> hulls.level.tolist(), hulls.slope.tolist()
    ([[0, 2, 3, 3]], [[inf, 12.0, 2.0, 0.0]])
    """
    times, cost = np.asarray(seconds, float), np.asarray(weights, float)
    corners = [_corners(row, cost.tolist()) for row in times.tolist()]
    count = times.shape[1] if vertices is None else vertices
    level = np.array([row + row[-1:] * (count - len(row)) for row in corners], np.int64).reshape(-1, count)
    return Hulls(level, cost[level], np.take_along_axis(times, level, axis=1))


def _corners(times: list[float], weights: list[float]) -> list[int]:
    """Levels on the lower hull; of those that cost nothing the first of the fastest."""
    hull: list[int] = []
    for level, time in enumerate(times):
        if hull and time >= times[hull[-1]]:
            continue
        while hull and _above(hull, level, times, weights):
            hull.pop()
        hull.append(level)
    return hull


def _above(hull: list[int], level: int, times: list[float], weights: list[float]) -> bool:
    """Whether the last corner is not below the line from the one before it to a level, or costs no less than that."""
    last = hull[-1]
    if weights[last] >= weights[level]:
        return True
    if len(hull) == 1:
        return False
    before = hull[-2]
    gentle = (times[before] - times[last]) * (weights[level] - weights[before])
    return gentle <= (times[before] - times[level]) * (weights[last] - weights[before])


def rising_vertices(hulls: Hulls, law: LawArrays, progress: Floats, budget: Floats) -> Ints:
    """Vertex at which the fastest plan for the rest of the training is at once.

    Vertex i is, if the budget pays for a plan that takes it now and the later ones at the price that this implies.
    Whoever stays at it until the end keeps within the budget.

    Parameters
    ----------
    hulls : Hulls
        Hulls of the rows.
    law : LawArrays
        Their debt laws.
    progress : ndarray of float64, shape (rows,)
        Present progress, after the warm-up and below 1.
    budget : ndarray of float64, shape (rows,)
        Points of accuracy that may still be spent.

    Returns
    -------
    ndarray of int64, shape (rows,)

    Examples
    --------
    >>> hulls = hulls_of([[10.0, 6.0, 4.0]], [0, 0.5, 1])
    >>> law = LawArrays(np.array([0.0]), np.array([1.0]), np.array([2.0]))
    >>> [int(rising_vertices(hulls, law, np.array([0.5]), np.array([points]))[0]) for points in (0.4, 0.5, 1.0)]
    [0, 1, 2]
    """
    A, c, B_0 = (values[:, None, None] for values in law)
    slope, steps = hulls.slope, np.diff(hulls.weight, axis=1, prepend=0.0)
    start = progress[:, None, None]
    now = A * c * np.exp(-c * start) + B_0
    # Density at which each vertex (last axis) is taken, at the price at which one (middle axis) is taken now.
    taken, later = slope[:, :, None], slope[:, None, :]
    priced = (taken > 0.0) & np.isfinite(taken)
    share = np.divide(later, taken, out=np.zeros(np.broadcast_shapes(later.shape, taken.shape)), where=priced)
    share = np.minimum(share, 1.0)
    decay = np.exp(-c * start)
    then = np.where(share < 1.0, np.minimum(_decay(now * share, A, c, B_0), decay), decay)
    debt = (steps[:, None, :] * _to_end(then, A, c, B_0)).sum(axis=2)
    fits = (debt <= budget[:, None]) & (slope > 0.0)
    fits[:, 0] = True
    vertices: Ints = slope.shape[1] - 1 - fits[:, ::-1].argmax(axis=1)
    return vertices


def _decay(density: Floats, A: Floats, c: Floats, B_0: Floats) -> Floats:
    """``e^(-c s)`` at the progress at which the density has fallen so far, at the end where it never does."""
    scale = A * c
    shape = np.broadcast_shapes(density.shape, scale.shape)
    decay = np.divide(density - B_0, scale, out=np.zeros(shape), where=scale > 0)
    return np.maximum(decay, np.exp(-c))


def _to_end(decay: Floats, A: Floats, c: Floats, B_0: Floats) -> Floats:
    """``∫ d(s) ds`` from the progress at which ``e^(-c s)`` is so much to the end."""
    debt: Floats = A * np.maximum(decay - np.exp(-c), 0.0) + B_0 * (1.0 + np.log(decay) / c)
    return debt
