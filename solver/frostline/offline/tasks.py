"""What an exact method sees of an instance: tasks with their modes, in whole units of time from the first release.

A *mode* is one way to run a task: so many GPUs, for so long, on so few or so many servers. Times are whole multiples
of the greatest common divisor of all times of the instance, which loses nothing: some optimal schedule starts every
task at a release or when others end, and such instants are releases plus sums of durations.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

__all__ = ["Loads", "Mode", "Objective", "Plan", "Problem", "Run", "Task"]

Loads = tuple[tuple[int, int], ...]
"""Pairs of server and GPUs held there, in the order of the servers."""


class Objective(StrEnum):
    """What is made as small as possible."""

    COMPLETION = "completion"  # sum of completion times
    FLOW = "flow"  # sum of completion minus release
    MAKESPAN = "makespan"  # last completion minus first release


class Mode(NamedTuple):
    """One way to run a task.

    ``servers`` are those it may use, ``least`` and ``most`` the number of them that it may hold at once. ``penalty``
    is added to its completion time, ``option`` says which option of its job it belongs to.
    """

    gpus: int
    duration: int
    servers: tuple[int, ...] = (0,)
    least: int = 1
    most: int = 1
    penalty: int = 0
    option: int = 0

    @property
    def cost(self) -> int:
        """Duration and penalty."""
        return self.duration + self.penalty

    @property
    def area(self) -> int:
        """GPUs times duration."""
        return self.gpus * self.duration


class Task(NamedTuple):
    """A job that must run: its release, its modes, and the instant by which it must end, if there is one."""

    release: int
    modes: tuple[Mode, ...]
    deadline: int | None = None

    @property
    def least_cost(self) -> int:
        """Least duration and penalty."""
        return min(mode.cost for mode in self.modes)

    @property
    def least_duration(self) -> int:
        """Shortest duration."""
        return min(mode.duration for mode in self.modes)

    @property
    def least_area(self) -> int:
        """Least GPUs times duration."""
        return min(mode.area for mode in self.modes)


class Run(NamedTuple):
    """One task of a plan: number of its mode, when it starts, and the GPUs it holds."""

    mode: int
    start: int
    loads: Loads


Plan = tuple[Run, ...]
"""One run for each task, in the order of the tasks."""


@dataclass(frozen=True)
class Problem:
    """Tasks on servers, and what is made small.

    Parameters
    ----------
    capacities : tuple of int
        GPUs of every server.
    tasks : tuple of Task
        The tasks, by release.
    objective : Objective
        What is made small.

    Examples
    --------
    >>> tasks = (Task(0, (Mode(8, 10),)), Task(0, (Mode(4, 2),)))
    >>> problem = Problem((8,), tasks, Objective.FLOW)
    >>> plan = (Run(0, 2, ((0, 8),)), Run(0, 0, ((0, 4),)))
    >>> problem.value(plan), problem.horizon
    (14, 12)
    """

    capacities: tuple[int, ...]
    tasks: tuple[Task, ...]
    objective: Objective

    @property
    def gpus(self) -> int:
        """GPUs of all servers together."""
        return sum(self.capacities)

    @cached_property
    def horizon(self) -> int:
        """Instant by which every plan that cannot be shifted left has ended: after the last release none idles."""
        last = max((task.release for task in self.tasks), default=0)
        return last + sum(max(mode.duration for mode in task.modes) for task in self.tasks)

    def end(self, task: int, run: Run) -> int:
        """When a run ends."""
        return run.start + self.tasks[task].modes[run.mode].duration

    def value(self, plan: Plan) -> int:
        """Objective of a plan in units; of completion times what they are above the sum of releases."""
        flows = (
            run.start + task.modes[run.mode].cost - task.release for task, run in zip(self.tasks, plan, strict=True)
        )
        if self.objective is Objective.MAKESPAN:
            ends = (run.start + task.modes[run.mode].cost for task, run in zip(self.tasks, plan, strict=True))
            return max(ends, default=0)
        return sum(flows)

    def latest(self, most: int | None) -> list[int]:
        """Last instant at which each task may end in a plan of at most this value: by any other it is worse."""
        ends = [self.horizon if task.deadline is None else min(self.horizon, task.deadline) for task in self.tasks]
        if most is None:
            return ends
        if self.objective is Objective.MAKESPAN:
            return [min(end, most) for end in ends]
        others = most - sum(task.least_cost for task in self.tasks)
        return [min(end, task.release + others + task.least_cost) for end, task in zip(ends, self.tasks, strict=True)]

    def only(self, tasks: Iterable[int]) -> Problem:
        """The problem of some of its tasks alone."""
        return Problem(self.capacities, tuple(self.tasks[i] for i in tasks), self.objective)
