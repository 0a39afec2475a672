"""List scheduling: tasks one after another, each as early as its GPUs stay free.

Every plan that cannot be shifted left comes from some list, so that lists are what heuristics search and what turns
the order of a hint into a plan (R. Kolisch, *Serial and parallel resource-constrained project scheduling methods
revisited*, European Journal of Operational Research 90(2), 1996, doi:10.1016/0377-2217(95)00357-6).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush

from frostline.offline.tasks import Loads, Mode, Plan, Problem, Run

__all__ = ["Calendar", "dispatched", "fitted", "list_of", "listed", "orders", "shifted"]


def fitted(mode: Mode, free: Sequence[int]) -> Loads | None:
    """GPUs for a mode among those free by server, or None: the tightest server that will do, else the fewest.

    Examples
    --------
    >>> fitted(Mode(3, 1, (0, 1, 2)), [8, 2, 4]), fitted(Mode(9, 1, (0, 1, 2), 2, 3), [8, 2, 4])
    (((2, 3),), ((0, 8), (2, 1)))
    """
    gpus = mode.gpus
    if mode.least == 1:
        large = [m for m in mode.servers if free[m] >= gpus]
        if large:
            return ((min(large, key=lambda m: free[m]), gpus),)
        if mode.most == 1:
            return None
    widest = sorted((m for m in mode.servers if free[m]), key=lambda m: -free[m])[: mode.most]
    if len(widest) < mode.least:
        return None
    loads = []
    most = gpus - mode.least + 1  # leaves a GPU for each of the others
    for m in widest:
        taken = min(free[m], gpus, most)
        if taken:
            loads.append((m, taken))
            gpus -= taken
            most = gpus
    return None if gpus else tuple(sorted(loads))


class Calendar:
    """Free GPUs of every server over time, in stretches.

    Parameters
    ----------
    capacities : sequence of int
        GPUs of every server.

    Examples
    --------
    >>> calendar = Calendar([8])
    >>> calendar.take(0, 10, ((0, 6),))
    >>> calendar.earliest(Mode(4, 5), 0), calendar.earliest(Mode(2, 5), 1)
    ((10, ((0, 4),)), (1, ((0, 2),)))
    """

    def __init__(self, capacities: Sequence[int]) -> None:
        self._starts = [0]
        self._free = [list(capacities)]
        self._pool = len(capacities) == 1
        self.steps = 0

    def earliest(self, mode: Mode, release: int) -> tuple[int, Loads]:
        """First instant from a release on from which GPUs for a mode stay free, and those."""
        if self._pool:
            start = self._first_in_pool(mode.gpus, mode.duration, release)
            return start, ((0, mode.gpus),)
        starts, free = self._starts, self._free
        at = bisect_right(starts, release) - 1
        while True:
            start = max(starts[at], release)
            until, last = start + mode.duration, at + 1
            window = free[at]
            loads = fitted(mode, window)
            while loads is not None and last < len(starts) and starts[last] < until:
                window = [*map(min, window, free[last])]
                loads = fitted(mode, window)
                last += 1
            self.steps += last - at
            if loads is not None:
                return start, loads
            at += 1

    def take(self, start: int, end: int, loads: Loads) -> None:
        """Hold GPUs from a start to an end."""
        first, last = self._cut(start), self._cut(end)
        for stretch in self._free[first:last]:
            for m, gpus in loads:
                stretch[m] -= gpus

    def first(self, loads: Loads, duration: int, release: int) -> int:
        """First instant from a release on from which some GPUs stay free for a duration."""
        starts, free = self._starts, self._free
        at = bisect_right(starts, release) - 1
        start = release
        while at < len(starts) and starts[at] < start + duration:
            held = free[at]
            at += 1
            if any(held[m] < gpus for m, gpus in loads):
                start = starts[at]  # the last stretch has all GPUs free
        return start

    def _first_in_pool(self, gpus: int, duration: int, release: int) -> int:
        starts, free = self._starts, self._free
        first = at = bisect_right(starts, release) - 1
        start, end, last = release, release + duration, len(starts)
        while at < last and starts[at] < end:
            if free[at][0] < gpus:
                start = starts[at + 1]
                end = start + duration
            at += 1
        self.steps += at - first
        return start

    def _cut(self, at: int) -> int:
        """Index of the stretch that begins at an instant, which now there is."""
        index = bisect_right(self._starts, at) - 1
        if self._starts[index] == at:
            return index
        self._starts.insert(index + 1, at)
        self._free.insert(index + 1, [*self._free[index]])
        return index + 1


def listed(problem: Problem, order: Iterable[int], modes: Sequence[int | None] = ()) -> tuple[Plan, int]:
    """Plan of tasks taken in an order, each in the mode in which it ends first, and the steps it took.

    Parameters
    ----------
    problem : Problem
        The problem; a deadline that is missed is not seen.
    order : iterable of int
        All tasks.
    modes : sequence of (int or None)
        For each task its mode, None for any; any by default.

    Examples
    --------
    >>> from frostline.offline.tasks import Objective, Task
    >>> problem = Problem((8,), (Task(0, (Mode(8, 10),)), Task(0, (Mode(4, 2),))), Objective.FLOW)
    >>> [run.start for run in listed(problem, [1, 0])[0]]
    [2, 0]
    """
    calendar = Calendar(problem.capacities)
    runs: list[Run | None] = [None] * len(problem.tasks)
    for number in order:
        task = problem.tasks[number]
        only = modes[number] if modes else None
        best: tuple[int, int, int] | None = None
        for index, mode in enumerate(task.modes):
            if only is not None and index != only:
                continue
            start, loads = calendar.earliest(mode, task.release)
            rank = (start + mode.cost, mode.area, index)
            if best is None or rank < best:
                best, run, end = rank, Run(index, start, loads), start + mode.duration
        calendar.take(run.start, end, run.loads)
        runs[number] = run
    return tuple(run for run in runs if run is not None), calendar.steps


def shifted(problem: Problem, plan: Plan, order: Iterable[int] = ()) -> Plan:
    """Plan whose runs, in the order of their starts or another, start as early as their GPUs allow: none starts later.

    Those that started before end no later than they did, and so leave each run its GPUs from its old start on.

    Examples
    --------
    >>> from frostline.offline.tasks import Objective, Task
    >>> problem = Problem((8,), (Task(0, (Mode(8, 10),)), Task(0, (Mode(4, 2),))), Objective.FLOW)
    >>> [run.start for run in shifted(problem, (Run(0, 7, ((0, 8),)), Run(0, 3, ((0, 4),))))]
    [2, 0]
    """
    calendar = Calendar(problem.capacities)
    starts: dict[int, int] = {}
    for number in order or list_of(problem, plan):
        run, task = plan[number], problem.tasks[number]
        duration = task.modes[run.mode].duration
        starts[number] = calendar.first(run.loads, duration, task.release)
        calendar.take(starts[number], starts[number] + duration, run.loads)
    return tuple(run._replace(start=starts[number]) for number, run in enumerate(plan))


def orders(problem: Problem) -> list[list[int]]:
    """Orders that lists begin with: by release, duration, area, deadline, and least slack."""
    tasks = problem.tasks
    never = problem.horizon

    def due(i: int) -> int:
        deadline = tasks[i].deadline
        return never if deadline is None else deadline

    keys = [
        lambda i: (tasks[i].release, i),
        lambda i: (tasks[i].least_area, i),
        lambda i: (tasks[i].release + tasks[i].least_cost, i),
        lambda i: (tasks[i].least_duration, tasks[i].least_area, i),
        lambda i: (-tasks[i].least_area, i),
    ]
    if any(task.deadline is not None for task in tasks):
        keys += [lambda i: (due(i), i), lambda i: (due(i) - tasks[i].least_duration, i)]
    found = [sorted(range(len(tasks)), key=key) for key in keys]
    return [order for i, order in enumerate(found) if order not in found[:i]]


def list_of(problem: Problem, plan: Plan | None) -> list[int]:
    """List to begin with: the tasks in the order in which a plan starts them, or without one in the last of the orders.

    Examples
    --------
    >>> from frostline.offline.tasks import Objective, Task
    >>> problem = Problem((8,), (Task(0, (Mode(8, 10),)), Task(0, (Mode(4, 2),))), Objective.FLOW)
    >>> list_of(problem, (Run(0, 2, ((0, 8),)), Run(0, 0, ((0, 4),))))
    [1, 0]
    """
    if plan is None:
        return orders(problem)[-1]
    return sorted(range(len(plan)), key=lambda i: (plan[i].start, i))


def dispatched(problem: Problem, priority: Sequence[int]) -> list[int]:
    """Order in which tasks start where at every instant those that are there start by priority, if they fit.

    A task takes its mode of least area. As a list the order gives a plan that is no later.

    Parameters
    ----------
    problem : Problem
        The problem.
    priority : sequence of int
        All tasks, the first one first.
    """
    rank = {number: place for place, number in enumerate(priority)}
    modes = [min(task.modes, key=lambda mode: (mode.area, mode.duration)) for task in problem.tasks]
    coming = sorted(range(len(modes)), key=lambda i: (problem.tasks[i].release, rank[i]), reverse=True)
    free, running = list(problem.capacities), list[tuple[int, int, Loads]]()
    waiting, started = list[int](), list[int]()
    while coming or waiting:
        ends = [running[0][0]] if running else []
        now = min(ends + [problem.tasks[number].release for number in coming[-1:]])
        while running and running[0][0] <= now:
            for m, gpus in heappop(running)[2]:
                free[m] += gpus
        while coming and problem.tasks[coming[-1]].release <= now:
            waiting.append(coming.pop())
        waiting.sort(key=rank.__getitem__)
        left = []
        for number in waiting:
            loads = fitted(modes[number], free) if any(free) else None
            if loads is None:
                left.append(number)
                continue
            for m, gpus in loads:
                free[m] -= gpus
            heappush(running, (now + modes[number].duration, number, loads))
            started.append(number)
        waiting = left
    return started
