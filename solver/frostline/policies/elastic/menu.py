"""The tasks of a round with all that they may have, in flat arrays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from frostline.policies.base import View
from frostline.policies.elastic.options import Flags, Floats, Ints, Options, options_of, units_of
from frostline.policies.eviction import may_be_evicted
from frostline.policies.task import Running, Task
from frostline.problem.job import Elastic, Locality
from frostline.units import US_PER_S

__all__ = ["RoundMenu", "round_menu"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RoundMenu:
    """Tasks by number, and their options: those of task j are ``first[j]`` to ``first[j + 1] - 1``, the first to wait.

    Tasks that run and were evicted too often, or hold GPUs of a server that is drained, are left out, with their GPUs;
    so are waiting ones that need servers that are down or drained.

    Parameters
    ----------
    tasks : list of Task
        The tasks.
    runs : list of Running or None
        The run of each, None where it waits.
    options : list of Options
        What each may run on.
    first : ndarray of int64, shape (tasks + 1,)
        First option of each task.
    job, gpus : ndarray of int64, shape (options,)
        Task and GPUs of each option.
    spread : ndarray of bool, shape (options,)
        Whether an option is on many servers although one could hold it: the one that a task has, where it runs so; of
        the others those that would be if this task alone moved now. Where others must make room, the best is hoped for.
    seconds : ndarray of float64, shape (options,)
        Seconds of a unit of work at level 0 there, infinite where it waits.
    held : ndarray of int64, shape (tasks,)
        Option that each task has now.
    done, total : list of int, shape (tasks,)
        Units of work done by now, and all of them.
    age_s : ndarray of float64, shape (tasks,)
        Seconds since the release.
    evictions : ndarray of int64, shape (tasks,)
        How often each has lost its GPUs.
    capacity : int
        GPUs to be shared out.
    """

    tasks: list[Task]
    runs: list[Running | None]
    options: list[Options]
    first: Ints
    job: Ints
    gpus: Ints
    spread: Flags
    seconds: Floats
    held: Ints
    done: list[int]
    total: list[int]
    age_s: Floats
    evictions: Ints
    capacity: int

    @property
    def again(self) -> Flags:
        """Whether each task has run before, or does, shape (tasks,)."""
        pairs = zip(self.runs, self.tasks, strict=True)
        return np.array([run is not None or task.past is not None for run, task in pairs], bool)

    @property
    def running(self) -> Flags:
        """Whether each task runs, shape (tasks,)."""
        return np.array([run is not None for run in self.runs], bool)

    @property
    def kept(self) -> Flags:
        """Whether each option is the one that its task has, shape (options,)."""
        kept = np.zeros(len(self.gpus), bool)
        kept[self.held] = True
        return kept

    @property
    def left(self) -> Floats:
        """Units of work left, at least one, shape (tasks,)."""
        return np.array([max(total - done, 1) for total, done in zip(self.total, self.done, strict=True)], float)


def round_menu(view: View, most_evictions: int) -> RoundMenu:
    """Menu of the tasks that wait or run.

    Parameters
    ----------
    view : View
        The present.
    most_evictions : int
        Tasks that have lost their GPUs so often, and run, are left alone.
    """
    free, capacity = view.free, view.free.capacity
    entries: list[tuple[int, Task, Running | None]] = [(task.number, task, None) for task in _placeable(view)]
    for run in view.runs.values():
        open_gpus = free.open_gpus(run.loads) if free.closed else run.gpus
        if open_gpus == run.gpus and may_be_evicted(run, view.now_us, most_evictions):
            entries.append((run.number, run.task, run))
        else:
            capacity -= open_gpus
    entries.sort(key=lambda entry: entry[0])
    tasks, runs = [task for _, task, _ in entries], [run for *_, run in entries]
    options = [options_of(task, view.cluster, free.closed) for task in tasks]
    counts = [1 + len(each.gpus) for each in options]
    first = np.cumsum([0, *counts])
    job = np.repeat(np.arange(len(tasks)), counts)
    gpus = _flat([each.gpus.tolist() for each in options], 0).astype(np.int64)
    held = _held(runs, options, first)
    spread = _spread(view, tasks, runs, gpus, job, held)
    many = _flat([each.spread[:, 0].tolist() for each in options], np.inf)
    best = _flat([each.seconds[:, 0].tolist() for each in options], np.inf)
    done = [view.done(task) for task in tasks]
    return RoundMenu(
        tasks=tasks,
        runs=runs,
        options=options,
        first=first,
        job=job,
        gpus=gpus,
        spread=spread,
        seconds=np.where(spread, many, best),
        held=held,
        done=done,
        total=[task.done + units_of(task) for task in tasks],
        age_s=np.array([(view.now_us - task.release_us) / US_PER_S for task in tasks]),
        evictions=np.array([0 if task.past is None else task.past.evictions for task in tasks], np.int64),
        capacity=capacity,
    )


def _placeable(view: View) -> Iterable[Task]:
    """Waiting tasks that the servers that are up could hold."""
    waiting = view.waiting.tasks.values()
    if not view.free.closed:
        return waiting
    return (task for task in waiting if _has_option(task, view))


def _has_option(task: Task, view: View) -> bool:
    if isinstance(task.job.work, Elastic):
        return len(options_of(task, view.cluster, view.free.closed).gpus) > 0
    return view.free.could_hold(task.shape)


def _flat(rows: list[list[float]], waiting: float) -> Floats:
    """Values of all options, after one to wait for each task."""
    return np.array([value for row in rows for value in (waiting, *row)], float)


def _held(runs: list[Running | None], options: list[Options], first: Ints) -> Ints:
    """Option that each task has now."""
    held = first[:-1].copy()
    for job, (run, each) in enumerate(zip(runs, options, strict=True)):
        if run is not None:
            held[job] += 1 + int(np.searchsorted(each.gpus, run.gpus))
    return held


def _spread(view: View, tasks: list[Task], runs: list[Running | None], gpus: Ints, job: Ints, held: Ints) -> Flags:
    """Options that are on many servers, or would be if one task alone moved now."""
    holes = [_hole(view, task, run) for task, run in zip(tasks, runs, strict=True)]
    largest, together = np.array(holes, np.int64).reshape(-1, 2).T
    spread: Flags = (gpus > largest[job]) & (gpus <= together[job])
    spread[held] = [run is not None and len(run.loads) > 1 for run in runs]
    return spread


def _hole(view: View, task: Task, run: Running | None) -> tuple[int, int]:
    """Most GPUs that a task could have in one server, and in all, beside those that others have."""
    free = view.free
    if task.job.locality is not Locality.ANY:
        return free.capacity, free.capacity  # where it may be depends on its GPUs alone
    loads = () if run is None else run.loads
    own = max((free.by_server[server] + gpus for server, gpus in loads), default=0)
    return max(free.largest, own), free.total + sum(gpus for _, gpus in loads)
