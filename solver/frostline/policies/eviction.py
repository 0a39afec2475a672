"""Whom to evict for a newcomer: never more than needed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from frostline.placement.free_gpus import FreeGpus
from frostline.policies.base import Preempt, Start, View
from frostline.policies.task import Running, Task

__all__ = ["divisible", "fewest_victims", "first_with_room", "may_be_evicted"]


def may_be_evicted(run: Running, now_us: int, most_evictions: int) -> bool:
    """Whether a running task started before this instant and was evicted less than so often."""
    past = run.task.past
    return run.start_us < now_us and (0 if past is None else past.evictions) < most_evictions


def divisible(view: View, most_evictions: int) -> tuple[list[Running], int]:
    """Running tasks that may lose their GPUs some time, and the GPUs that there are for these and others.

    Who was evicted so often keeps its GPUs, and so does who holds GPUs of servers that take no starts.
    """
    free, runs = view.free, []
    gpus = free.capacity
    for run in view.runs.values():
        past, open_gpus = run.task.past, free.open_gpus(run.loads) if free.closed else run.gpus
        if open_gpus == run.gpus and (0 if past is None else past.evictions) < most_evictions:
            runs.append(run)
        else:
            gpus -= open_gpus
    return runs, gpus


def first_with_room(view: View, chosen: Sequence[Task | Running], others: Iterable[Running]) -> Start | Preempt | None:
    """Start of the first chosen task that waits and fits, or fits once others give way.

    Parameters
    ----------
    view : View
        The present.
    chosen : sequence of Task or Running
        Tasks that are to run, waiting or running, the first ones before all.
    others : iterable of Running
        Who gives way to them, the dearest last; nobody who has started at this instant does. If these are not enough,
        because servers are apart, those give way that were chosen later.
    """
    now_us, going = view.now_us, None
    for at, task in enumerate(chosen):
        if isinstance(task, Running):
            continue
        if view.free.fits(task.shape):
            return Start(task)
        going = [run for run in others if run.start_us < now_us] if going is None else going
        later = (each for each in reversed(chosen[at + 1 :]) if isinstance(each, Running) and each.start_us < now_us)
        victims = fewest_victims(view, task, chain(going, later))
        if victims:
            return Preempt(task, victims)
    return None


def fewest_victims(view: View, task: Task, candidates: Iterable[Running]) -> tuple[Task, ...] | None:
    """Tasks to evict so that another one fits, none of which could be spared; None where all are not enough.

    Parameters
    ----------
    view : View
        The present; the task does not fit now.
    task : Task
        The newcomer.
    candidates : iterable of Running
        Who may be evicted, the dearest last; no more are looked at than needed.

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
    shape, gpus = task.shape, view.free.total
    chosen: list[Running] = []
    rest = iter(candidates)
    for run in rest:
        chosen.append(run)
        gpus += run.gpus
        if gpus >= shape.gpus:
            break
    else:
        return None
    free = view.free.copy()
    for run in chosen:
        free.give(run.loads)
    while not free.fits(shape):
        more = next(rest, None)
        if more is None:
            return None
        free.give(more.loads)
        chosen.append(more)
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
