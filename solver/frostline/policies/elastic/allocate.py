"""The most valuable options of all tasks within the GPUs, and what that changes."""

from __future__ import annotations

import math

import numpy as np

from frostline.freezing.optimizer import Menus, choose
from frostline.policies.base import Share
from frostline.policies.elastic.menu import RoundMenu
from frostline.policies.elastic.options import Floats, Ints

__all__ = ["best_options", "changes"]

_BITS = 30


def best_options(menu: RoundMenu, value: Floats) -> Ints:
    """Option of each task, such that all together are worth most within the GPUs; of equal ones what they have.

    Parameters
    ----------
    menu : RoundMenu
        The tasks.
    value : ndarray of float64, shape (options,)
        What each option is worth.

    Returns
    -------
    ndarray of int64, shape (tasks,)
        An optimum of the multiple-choice knapsack of values that are rounded to 30 bits of the largest.
    """
    largest = float(np.abs(value).max(initial=0.0))
    unit = math.ldexp(1.0, max(math.frexp(largest)[1] - _BITS, -1000)) if largest else 1.0
    steps = np.rint(value / unit).astype(np.int64)
    best = _best_alone(menu, steps)
    if menu.gpus[best].sum() <= menu.capacity:
        return best
    menus = Menus(first=menu.first, gpus=menu.gpus, value=steps, value_unit=unit)
    choice = choose(menus, menu.capacity, start=(menu.held - menu.first[:-1]).tolist())
    return menu.first[:-1] + np.array(choice.selected, np.int64)


def _best_alone(menu: RoundMenu, steps: Ints) -> Ints:
    """Option of each task that is worth most if GPUs do not run short; of equal ones what it has, else the first."""
    most = np.maximum.reduceat(steps, menu.first[:-1])
    hits = np.flatnonzero(steps == most[menu.job])[::-1]
    best = menu.first[:-1].copy()
    best[menu.job[hits]] = hits
    return np.where(steps[menu.held] == most, menu.held, best)


def changes(menu: RoundMenu, chosen: Ints, level: Ints | None = None) -> tuple[Share, ...]:
    """Tasks whose GPUs or levels change, with what they are to have.

    Parameters
    ----------
    menu : RoundMenu
        The tasks.
    chosen : ndarray of int64, shape (tasks,)
        Option of each.
    level : ndarray of int64, shape (tasks,), optional
        Freeze level of each, 0 by default.
    """
    levels = [0] * len(chosen) if level is None else level.tolist()
    gpus = menu.gpus[chosen].tolist()
    shares = []
    for task, run, wide, deep in zip(menu.tasks, menu.runs, gpus, levels, strict=True):
        deep = deep if wide else 0
        held = (0, 0) if run is None or run.offer is None else (run.gpus, run.offer.level)
        if (wide, deep) != held:
            shares.append(Share(task, wide, deep))
    return tuple(shares)
