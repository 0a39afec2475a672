"""Preemptive shortest remaining time first."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from frostline.policies.base import WAIT, Decision, Preempt, Start, View
from frostline.policies.eviction import fewest_victims, may_be_evicted
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
            least_us = left_us + self._restart_us
            if ranking is None:
                ranking = self._ranking(view, least_us)
            victims = ranking.victims(view, task, least_us)
            if victims:
                return Preempt(task, victims)
        return WAIT

    def _ranking(self, view: View, least_us: int) -> _Ranking:
        """Running tasks that may be evicted and have more than so much left."""
        now_us, most, running = view.now_us, self.most_evictions, _by_time_left(view)
        first = bisect_right(running, least_us, key=lambda run: run.left_us(now_us))
        return _Ranking([run for run in reversed(running[first:]) if may_be_evicted(run, now_us, most)], now_us)


def _by_time_left(view: View) -> Sequence[Running]:
    """Running tasks by the time that they have left, equal ones by number.

    Those that have outlived their end, who have a microsecond left, may go by their ends: nobody is evicted for less.
    """
    if not view.uncertain:
        return view.running
    now_us = view.now_us
    return sorted(view.running, key=lambda run: (run.left_us(now_us), run.number))


class _Ranking:
    """Running tasks by the time that they have left, the one with most first."""

    __slots__ = ("_gpus", "_now_us", "_runs")

    def __init__(self, runs: list[Running], now_us: int) -> None:
        self._runs, self._now_us = runs, now_us
        self._gpus = [0, *accumulate(run.gpus for run in runs)]

    def victims(self, view: View, task: Task, least_us: int) -> tuple[Task, ...] | None:
        """Whom of those with more than so much left to evict for a task; None where all are not enough."""
        needed, now_us = task.shape.gpus - view.free.total, self._now_us
        if self._gpus[-1] < needed:
            return None
        count = bisect_left(self._runs, -least_us, key=lambda run: -run.left_us(now_us))
        return None if self._gpus[count] < needed else fewest_victims(view, task, self._runs[:count])
