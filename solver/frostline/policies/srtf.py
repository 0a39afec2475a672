"""Preemptive shortest remaining time first."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from frostline.policies.base import WAIT, Decision, Preempt, Start, View
from frostline.policies.eviction import evictable, fewest_victims
from frostline.policies.task import Running, Task
from frostline.units import as_finite, as_int, duration_us

__all__ = ["Srtf"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Srtf:
    """Shortest remaining time first: what has less left evicts what has more.

    Waiting tasks are gone through by the time they have left. Each starts if it fits, or if it fits once tasks are
    evicted that have more than ``restart_s`` longer left: the longest first, and nobody who could be spared. What
    cannot start is passed over.

    Parameters
    ----------
    restart_s : float
        Seconds that an evicted task takes to be where it was when it runs again.
    most_evictions : int
        A task that was evicted so often is left alone.

    Raises
    ------
    InvalidValueError
        A parameter is out of its range.
    """

    name: str = "srtf"
    restart_s: float = 30.0
    most_evictions: int = 100
    _restart_us: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        subject = f"policy {self.name!r}"
        object.__setattr__(self, "restart_s", as_finite(self.restart_s, subject, "restart_s", 0.0))
        object.__setattr__(self, "_restart_us", duration_us(self.restart_s))
        object.__setattr__(self, "most_evictions", as_int(self.most_evictions, subject, "most_evictions", 0))

    @property
    def parameters(self) -> Mapping[str, Any]:
        """All parameters."""
        return {"restart_s": self.restart_s, "most_evictions": self.most_evictions}

    @property
    def uses_virtual_machine(self) -> bool:
        """Never."""
        return False

    def priority(self, task: Task) -> int:
        """Time that it has left, with its restart if it was evicted."""
        return task.duration_us + (0 if task.past is None else self._restart_us)

    def decide(self, view: View) -> Decision:
        """First waiting task that fits, or that fits if tasks with more left give way."""
        heads = sorted(line.blocks[0][0] for line in view.waiting.lines if line.blocks)
        free, ranking = view.free, None
        for left_us, _, task in heads:
            if free.fits(task.shape):
                return Start(task)
            if ranking is None:
                ranking = self._ranking(view)
            victims = ranking.victims(view, task, left_us + self._restart_us)
            if victims:
                return Preempt(task, victims)
        return WAIT

    def _ranking(self, view: View) -> _Ranking:
        """Running tasks that may be evicted."""
        now_us = view.now_us
        return _Ranking(
            sorted((-run.left_us(now_us), -run.number, run) for run in evictable(view, self.most_evictions))
        )


class _Ranking:
    """Running tasks as (−time left, −number, run), the one with most left first."""

    __slots__ = ("_gpus", "_runs")

    def __init__(self, runs: list[tuple[int, int, Running]]) -> None:
        self._runs = runs
        self._gpus = [0, *accumulate(run.gpus for _, _, run in runs)]

    def victims(self, view: View, task: Task, least_us: int) -> tuple[Task, ...] | None:
        """Whom of those with more than so much left to evict for a task; None where all are not enough."""
        count = bisect_left(self._runs, (-least_us,))
        if view.free.total + self._gpus[count] < task.shape.gpus:
            return None
        return fewest_victims(view, task, [run for _, _, run in self._runs[:count]])
