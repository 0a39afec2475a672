"""Optimus-like: GPU by GPU to the task whose remaining time drops most by it.

The rule is that of Y. Peng et al., *Optimus: An Efficient Dynamic Resource Scheduler for Deep Learning Clusters*,
EuroSys 2018, as Pollux's published code, which compares itself with it, states it for GPUs.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import pairwise

import numpy as np

from frostline.policies.base import Share, View
from frostline.policies.elastic.allocate import changes
from frostline.policies.elastic.menu import RoundMenu, round_menu
from frostline.policies.elastic.options import Floats, Ints
from frostline.policies.elastic.rounds import RoundPolicy
from frostline.units import as_finite

__all__ = ["Optimus", "greedy_options", "remaining_s"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimus(RoundPolicy):
    """Optimus-like: all tasks get their least GPUs, and then whoever's remaining time drops most per GPU gets more.

    The least GPUs are given in order of arrival, as far as they go; Pollux's code takes the narrowest first. Widths
    that are skipped count as one step, by their drop per GPU. Remaining time is that of the iterations left, times
    ``(H + restart_s) / H`` where a task that has run would run on other GPUs than it has; H is the remaining time,
    ``horizon_s`` at most. The published rule changes GPUs for any gain, so that two tasks may hand a GPU to and fro.
    The iterations must be known, where Optimus fits a curve to the loss; all GPUs are workers, where it tells workers
    from parameter servers. Nothing is frozen.

    Parameters
    ----------
    horizon_s : float
        Seconds for which a decision is expected to last at most, above 0.
    round_s, event_driven, restart_s, level_change_s, most_evictions
        See :class:`~frostline.policies.elastic.rounds.RoundPolicy`.

    Raises
    ------
    InvalidValueError
        A parameter is out of its range.
    """

    name: str = "optimus"
    horizon_s: float = 300.0

    def __post_init__(self) -> None:
        RoundPolicy.__post_init__(self)
        subject = f"policy {self.name!r}"
        object.__setattr__(self, "horizon_s", as_finite(self.horizon_s, subject, "horizon_s", 1e-6, 1e9))

    def shares(self, view: View) -> tuple[Share, ...]:
        """What changes."""
        menu = round_menu(view, self.most_evictions)
        if not menu.tasks:
            return ()
        return changes(menu, greedy_options(menu, remaining_s(menu, self.restart_s, self.horizon_s)))


def remaining_s(menu: RoundMenu, restart_s: float, horizon_s: float) -> Floats:
    """Seconds until each task would be complete with each option, shape (options,); infinite where it waits.

    Where a restart is due they count as much more as it takes of the time that a decision lasts.
    """
    moves = menu.again[menu.job] & ~menu.kept
    remaining = menu.left[menu.job] * menu.seconds
    restarts: Floats = np.where(moves, 1.0 + restart_s / np.minimum(remaining, horizon_s), 1.0)
    return remaining * restarts


def greedy_options(menu: RoundMenu, remaining: Floats) -> Ints:
    """Option of each task, shape (tasks,): its least GPUs, and more step by step where that gains most per GPU.

    Equal gains go to the earlier task, and to the narrower step.

    Parameters
    ----------
    menu : RoundMenu
        The tasks.
    remaining : ndarray of float64, shape (options,)
        Seconds that each task would take with each option.
    """
    chosen, left = menu.first[:-1].copy(), menu.capacity
    for job, (first, stop) in enumerate(pairwise(menu.first.tolist())):
        if first + 1 < stop and menu.gpus[first + 1] <= left:
            chosen[job] = first + 1
            left -= int(menu.gpus[first + 1])
    steps = [step for job in range(len(menu.tasks)) if (step := _best_step(menu, remaining, job, chosen, left))]
    heapify(steps)
    while steps:
        _, job, to = heappop(steps)
        needed = int(menu.gpus[to] - menu.gpus[chosen[job]])
        if needed <= left:
            chosen[job] = to
            left -= needed
        step = _best_step(menu, remaining, job, chosen, left)
        if step:
            heappush(steps, step)
    return chosen


def _best_step(menu: RoundMenu, remaining: Floats, job: int, chosen: Ints, left: int) -> tuple[float, int, int] | None:
    """Minus the gain per GPU of the best step of a task that holds GPUs, the task, and where the step leads."""
    now, stop = int(chosen[job]), int(menu.first[job + 1])
    if now == menu.first[job]:
        return None
    needed = menu.gpus[now + 1 : stop] - menu.gpus[now]
    gains = (remaining[now] - remaining[now + 1 : stop])[needed <= left] / needed[needed <= left]
    best = int(gains.argmax()) if len(gains) else 0
    return (-float(gains[best]), job, now + 1 + best) if len(gains) and gains[best] > 0 else None
