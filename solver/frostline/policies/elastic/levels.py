"""Freeze levels of a round: the one that each option would train at, within the accuracy that a task may still lose."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from frostline.freezing.belief import spent_points, terms_of
from frostline.freezing.penalty import DebtLaw
from frostline.freezing.progress import worth_changing
from frostline.freezing.rising import Hulls, LawArrays, hulls_of, rising_vertices
from frostline.policies.base import View
from frostline.policies.elastic.menu import RoundMenu
from frostline.policies.elastic.options import Floats, Ints, Options
from frostline.problem.elastic import MOST_FREEZE_LEVELS, Elastic

__all__ = ["LevelRules", "OptionLevels", "option_levels"]

_SLACK = 1e-9  # points by which a debt may exceed a budget before a level is lowered: the last bits of sums


class LevelRules(NamedTuple):
    """When the level of a running task rises.

    Parameters
    ----------
    hysteresis : float
        Share of the time left that it must save.
    change_s : float
        Seconds that it takes, beside the iteration under way.
    """

    hysteresis: float
    change_s: float


class OptionLevels(NamedTuple):
    """Level of each option, and the seconds of a unit of work at that level, shape (options,)."""

    level: Ints
    seconds: Floats


class _Freezing(NamedTuple):
    """A task that may freeze now: its place in the menu, what is believed, and the points that it may still lose."""

    job: int
    law: DebtLaw
    progress: float
    left_points: float


def option_levels(menu: RoundMenu, view: View, rules: LevelRules) -> OptionLevels:
    """Level at which each option of a round would train.

    It is that of the fastest plan for the rest of the training, if the task stayed on the GPUs of the option: levels
    that only rise, and a debt within what is left of the budget, by the law that is believed of the family and scaled
    by the reported metric. Where a task runs, its level rises only if that pays, and falls only if to keep it would
    exceed the budget.

    Parameters
    ----------
    menu : RoundMenu
        The options.
    view : View
        The present.
    rules : LevelRules
        When a level rises.
    """
    found = OptionLevels(np.zeros(len(menu.gpus), np.int64), menu.seconds.copy())
    for job, run in enumerate(menu.runs):
        if run is not None and run.offer is not None and run.offer.level:
            held, level = int(menu.held[job]), run.offer.level
            found.level[held] = level
            found.seconds[held] = _table(menu, job)[held - menu.first[job] - 1, level]
    tasks = [task for job in range(len(menu.tasks)) if (task := _freezing(menu, view, job)) is not None]
    if tasks:
        for task, levels, seconds in _planned(menu, tasks):
            _take(menu, task, levels, seconds, found, rules)
    return found


def _spread_rows(menu: RoundMenu, job: int) -> bytes:
    """Whether each row of the options of a task is on many servers."""
    return menu.spread[menu.first[job] + 1 : menu.first[job + 1]].tobytes()


def _table(menu: RoundMenu, job: int) -> Floats:
    """Seconds of the options of a task by level, where it would have them."""
    return _seconds(menu.options[job], _spread_rows(menu, job))


@lru_cache(maxsize=4096)
def _seconds(options: Options, spread_rows: bytes) -> Floats:
    return np.where(np.frombuffer(spread_rows, bool)[:, None], options.spread, options.seconds)


@lru_cache(maxsize=4096)
def _hulls(options: Options, spread_rows: bytes, a: float) -> Hulls:
    weights = [share**a for share in options.shares]
    return hulls_of(_seconds(options, spread_rows), weights, MOST_FREEZE_LEVELS)


def _freezing(menu: RoundMenu, view: View, job: int) -> _Freezing | None:
    """What counts of a task that may freeze now."""
    task, done, total = menu.tasks[job], menu.done[job], menu.total[job]
    work = task.job.work
    if not isinstance(work, Elastic) or not work.quality_budget_points or work.levels == 1 or done >= total:
        return None
    terms = terms_of(work)
    if done < terms.law.warm_up * total or not work.may_freeze(done, total):
        return None
    factor = view.scale(task).debt_factor
    spent = spent_points(total, view.frozen(task), terms) * factor
    law = terms.law if factor == 1.0 else terms.law.scaled(factor)
    return _Freezing(job, law, done / total, work.quality_budget_points - spent)


def _planned(menu: RoundMenu, tasks: list[_Freezing]) -> list[tuple[_Freezing, Ints, Floats]]:
    """Each task with the levels of its options, and the seconds of a unit of work at them; all in one go."""
    each = [_hulls(menu.options[task.job], _spread_rows(menu, task.job), task.law.a) for task in tasks]
    counts = [len(hulls.level) for hulls in each]
    level, weight, seconds = zip(*each, strict=True)
    hulls = Hulls(np.concatenate(level), np.concatenate(weight), np.concatenate(seconds))
    A, c, B_0 = (np.repeat([getattr(task.law, name) for task in tasks], counts) for name in ("A", "c", "B_0"))
    progress = np.repeat([task.progress for task in tasks], counts)
    points = np.repeat([task.left_points for task in tasks], counts)
    rows = np.arange(len(points))
    vertex = rising_vertices(hulls, LawArrays(A, c, B_0), progress, points)
    ends = np.cumsum(counts)[:-1]
    found = (np.split(values[rows, vertex], ends) for values in (hulls.level, hulls.seconds))
    return list(zip(tasks, *found, strict=True))


def _take(
    menu: RoundMenu, task: _Freezing, levels: Ints, seconds: Floats, found: OptionLevels, rules: LevelRules
) -> None:
    """Take the levels of the options of a task, but that of the GPUs that it has only if it should change."""
    job, held = task.job, int(menu.held[task.job])
    before, before_s = int(found.level[held]), float(found.seconds[held])
    own = slice(int(menu.first[job]) + 1, int(menu.first[job + 1]))
    found.level[own], found.seconds[own] = levels, seconds
    if menu.runs[job] is None:
        return
    left = menu.total[job] - menu.done[job]
    saving_s = left * (before_s - float(found.seconds[held]))
    pays = worth_changing(saving_s, rules.change_s + before_s, left * before_s, rules.hysteresis)
    lower = found.level[held] < before
    if (lower and _may_stay(menu, task, before)) or not (lower or pays):
        found.level[held], found.seconds[held] = before, before_s


def _may_stay(menu: RoundMenu, task: _Freezing, level: int) -> bool:
    """Whether a level may be kept until the end."""
    share = menu.options[task.job].shares[level]
    return task.law.debt_points(share, task.progress, 1.0) <= task.left_points + _SLACK
