"""Fair shares of the GPUs by taking turns in rounds: least attained service as Gavel understands it.

Gavel (D. Narayanan et al., *Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads*, OSDI 2020)
computes how much of the time each job should run, here such that the least weighted share of GPU-time is as large as
can be, and lets in each round those run that have had least of what they should have had. This is its policy of one GPU
type.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any
from weakref import WeakKeyDictionary

from frostline.errors import InvalidValueError
from frostline.policies.base import WAIT, Decision, View, Wait
from frostline.policies.disciplines import fit_anything
from frostline.policies.eviction import divisible, first_with_room
from frostline.policies.task import Task
from frostline.policies.waiting import WaitingQueue
from frostline.units import as_finite, duration_us

__all__ = ["LasFair", "fair_shares"]

_LONGEST_S = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class LasFair:
    """Gavel-like: in each round those run that have had least of their fair share of the GPUs.

    The fair share is max-min: as many GPUs for each unit of weight as for any other, but nobody more than it asks for.
    At the beginning of a round tasks are gone through by the share of GPUs that they have held since their release
    over the fair one, and chosen as far as the GPUs go. Each chosen one that waits starts if it fits, or if it fits
    once others are evicted that are not chosen or, where servers are apart, were chosen later: those that have had most
    first, and nobody who could be spared. Whatever else fits starts at any time, by the GPU-time that it has held for
    each unit of weight, least first.

    Gavel counts what was held since the shares last changed; this policy keeps nothing in mind and counts all. Rounds
    begin at the whole multiples of their length. Nothing that is believed of durations is looked at.

    Parameters
    ----------
    round_s : float
        Seconds of a round; 360 in Gavel.
    restart_s : float
        Seconds that an evicted task takes to be where it was when it runs again, less than a round.

    Raises
    ------
    InvalidValueError
        A parameter is out of its range.
    """

    name: str = "las-fair"
    round_s: float = 360.0
    restart_s: float = 30.0
    _round_us: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        subject = f"policy {self.name!r}"
        object.__setattr__(self, "restart_s", as_finite(self.restart_s, subject, "restart_s", 0.0, _LONGEST_S))
        object.__setattr__(self, "round_s", as_finite(self.round_s, subject, "round_s", 0.0, _LONGEST_S))
        if self.round_s <= self.restart_s:
            raise InvalidValueError(subject, "round_s", self.round_s, f"must be above restart_s={self.restart_s:g}")
        object.__setattr__(self, "_round_us", duration_us(self.round_s))

    @property
    def parameters(self) -> Mapping[str, Any]:
        """All parameters."""
        return {"round_s": self.round_s, "restart_s": self.restart_s}

    @property
    def uses_virtual_machine(self) -> bool:
        """Never."""
        return False

    def priority(self, task: Task) -> float:
        """GPU-time that it has held for each unit of weight."""
        return 0.0 if task.past is None else task.past.held_us / task.job.weight

    def decide(self, view: View) -> Decision:
        """First chosen task that waits, if there is room for it, at the beginning of a round; else what fits."""
        number, past = divmod(view.now_us, self._round_us)
        decision = (None if past else _turn(view)) or fit_anything(view)
        return Wait((number + 1) * self._round_us) if decision is WAIT else decision


def _turn(view: View) -> Decision | None:
    """Start of a chosen task that there is room for."""
    chosen, others = _turns(view)
    waiting, runs = view.waiting.tasks, {run.number: run for run in view.runs.values()}
    wanted = [waiting.get(number) or runs[number] for number in chosen]
    return first_with_room(view, wanted, (runs[number] for number in reversed(others) if number in runs))


_Turns = tuple[Sequence[int], Sequence[int]]
"""Numbers of the tasks that are chosen, and of the others, those that have had least of their shares first."""

_KNOWN: WeakKeyDictionary[WaitingQueue, tuple[object, _Turns]] = WeakKeyDictionary()
"""Turns of an instant, by the waiting tasks of a view; who waits and who runs of the same tasks does not matter."""


def _turns(view: View) -> _Turns:
    """Whose turn it is."""
    key = view.now_us, view.arrived, len(view.waiting) + len(view.runs), view.free.closed
    known = _KNOWN.get(view.waiting)
    if known is None or known[0] != key:
        known = _KNOWN[view.waiting] = key, _chosen(view)
    return known[1]


def _chosen(view: View) -> _Turns:
    """Tasks by the share of GPUs that they have held over the fair one, as far as the GPUs go, and the others."""
    now_us = view.now_us
    runs, gpus = divisible(view, sys.maxsize)
    held_us = {run.task: run.held_us(now_us) for run in runs}
    for task in view.waiting.tasks.values():
        if task.gpus <= gpus and view.free.could_hold(task.shape):
            held_us[task] = 0 if task.past is None else task.past.held_us
    tasks = sorted(held_us, key=lambda task: task.number)
    had = [held_us[task] / (now_us - task.release_us) if held_us[task] else 0.0 for task in tasks]
    fair = fair_shares([task.gpus for task in tasks], [task.job.weight for task in tasks], gpus)
    chosen: list[int] = []
    others: list[int] = []
    for _, number, wanted in sorted(
        (h / f, task.number, task.gpus) for h, f, task in zip(had, fair, tasks, strict=True)
    ):
        (chosen if wanted <= gpus else others).append(number)
        gpus -= wanted if wanted <= gpus else 0
    return chosen, others


def fair_shares(wanted: Sequence[int], weights: Sequence[float], gpus: int) -> list[float]:
    """Max-min fair shares of GPUs: as many for each unit of weight, but for nobody more than it asks for.

    Parameters
    ----------
    wanted : sequence of int
        GPUs that each asks for.
    weights : sequence of float
        Their weights, above 0.
    gpus : int
        GPUs to be shared.

    Examples
    --------
    >>> fair_shares([1, 8, 8], [1, 1, 2], 8)
    [1.0, 2.3333333333333335, 4.666666666666667]
    >>> fair_shares([1, 2], [1, 1], 8)
    [1.0, 2.0]
    """
    order = sorted(range(len(wanted)), key=lambda i: (wanted[i] / weights[i], i))
    unserved = [*accumulate(weights[i] for i in reversed(order))][::-1]
    level, left = math.inf, gpus
    for i, together in zip(order, unserved, strict=True):
        if wanted[i] * together > left * weights[i]:
            level = left / together
            break
        left -= wanted[i]
    return [min(float(gpus), level * weight) for gpus, weight in zip(wanted, weights, strict=True)]
