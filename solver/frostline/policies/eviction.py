"""Whom to evict for a newcomer: never more than needed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from frostline.placement.free_gpus import FreeGpus
from frostline.policies.base import View
from frostline.policies.task import Running, Task

__all__ = ["evictable", "fewest_victims"]


def evictable(view: View, most_evictions: int) -> list[Running]:
    """Running tasks that started before this instant and were evicted less than so often."""
    now_us = view.now_us
    runs = [run for run in view.running if run.start_us < now_us]
    return [run for run in runs if (0 if run.task.past is None else run.task.past.evictions) < most_evictions]


def fewest_victims(view: View, task: Task, candidates: Sequence[Running]) -> tuple[Task, ...] | None:
    """Tasks to evict so that another one fits, none of which could be spared; None where all are not enough.

    Parameters
    ----------
    view : View
        The present; the task does not fit now.
    task : Task
        The newcomer.
    candidates : sequence of Running
        Who may be evicted, the dearest last.

    Examples
    --------
    >>> from types import SimpleNamespace as View
    >>> from frostline.placement.free_gpus import FreeGpus, Shape
    >>> free = FreeGpus([4, 4])
    >>> free.take(((0, 4), (1, 4)))
    >>> held = [("a", 0, 1), ("b", 1, 4), ("c", 0, 3)]
    >>> runs = [Running(9, i, name, ((m, gpus),), gpus) for i, (name, m, gpus) in enumerate(held)]
    >>> [fewest_victims(View(free=free), View(shape=Shape(gpus, 1)), runs) for gpus in (1, 3, 4, 5)]
    [('a',), ('b',), ('b',), None]
    """
    shape, free = task.shape, view.free
    if free.total + sum(run.gpus for run in candidates) < shape.gpus:
        return None
    free = free.copy()
    chosen: list[Running] = []
    for run in candidates:
        free.give(run.loads)
        chosen.append(run)
        if free.total >= shape.gpus and free.fits(shape):
            break
    else:
        return None
    spared = set(_spared(free, task, reversed(chosen)))
    return tuple(run.task for run in chosen if run.number not in spared)


def _spared(free: FreeGpus, task: Task, chosen: Iterable[Running]) -> Iterable[int]:
    """Numbers of those without whom the task fits all the same, one after the other."""
    for run in chosen:
        free.take(run.loads)
        if free.fits(task.shape):
            yield run.number
        else:
            free.give(run.loads)
