"""The waiting jobs, in the order of a policy.

Jobs of one shape wait in one line. Whatever fits now, fits for the whole shape, so that a policy that scans the
waiting jobs "in order, whatever fits" only has to compare the heads of a few lines.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Any

from frostline.placement.free_gpus import Shape
from frostline.policies.task import Task

__all__ = ["Entry", "Line", "WaitingQueue"]

Entry = tuple[Any, int, Task]
"""A waiting task with its place in the order: (priority, number, task); numbers differ, so tasks are never compared."""

_BLOCK = 512


class Line:
    """Waiting tasks of one shape, sorted, in ``blocks`` of bounded length, none of them empty.

    Each block knows a lower bound on the durations inside, at their highest, so that the first task short enough is
    found without a walk over all of them. ``blocks`` is for reading only; the head of the line is ``blocks[0][0]``.
    """

    __slots__ = ("_ends", "_shortest_us", "blocks", "shape")

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.blocks: list[list[Entry]] = []
        self._ends: list[Entry] = []  # last entry of each block
        self._shortest_us: list[int] = []

    def __bool__(self) -> bool:
        return bool(self.blocks)

    def __iter__(self) -> Iterator[Task]:
        return (entry[2] for block in self.blocks for entry in block)

    @property
    def head(self) -> Entry:
        """First entry; the line is not empty."""
        return self.blocks[0][0]

    def heads(self, groups: int) -> Iterator[Entry]:
        """First entries of the groups that the first item of their priorities, from 0 on, tells apart."""
        group = 0
        while group < groups:
            i = bisect_left(self._ends, ((group,),))
            if i == len(self.blocks):
                return
            block = self.blocks[i]
            head = block[bisect_left(block, ((group,),))]
            yield head
            group = head[0][0] + 1

    def add(self, entry: Entry) -> None:
        """Insert an entry at its place."""
        high_us = entry[2].high_us
        if not self.blocks:
            self.blocks, self._ends, self._shortest_us = [[entry]], [entry], [high_us]
            return
        i = min(bisect_left(self._ends, entry), len(self.blocks) - 1)
        block = self.blocks[i]
        insort(block, entry)
        self._ends[i] = block[-1]
        if high_us < self._shortest_us[i]:
            self._shortest_us[i] = high_us
        if len(block) > 2 * _BLOCK:
            self._split(i)

    def _split(self, i: int) -> None:
        block = self.blocks[i]
        halves = [block[:_BLOCK], block[_BLOCK:]]
        self.blocks[i : i + 1] = halves
        self._ends[i : i + 1] = [half[-1] for half in halves]
        self._shortest_us[i : i + 1] = [self._shortest_us[i]] * 2

    def remove(self, entry: Entry) -> None:
        """Remove an entry that is in the line."""
        i = bisect_left(self._ends, entry)
        block = self.blocks[i]
        del block[bisect_left(block, entry)]
        if block:
            self._ends[i] = block[-1]
        else:
            del self.blocks[i], self._ends[i], self._shortest_us[i]

    def first_within(self, limit_us: int) -> Entry | None:
        """First entry whose duration, at its highest, is at most ``limit_us``."""
        for i, shortest_us in enumerate(self._shortest_us):
            if shortest_us > limit_us:
                continue
            block = self.blocks[i]
            for entry in block:
                if entry[2].high_us <= limit_us:
                    return entry
            self._shortest_us[i] = min(entry[2].high_us for entry in block)
        return None


class WaitingQueue:
    """All waiting tasks: one :class:`Line` for each shape; ``lines`` keeps the lines of all shapes ever seen,
    ``tasks`` the waiting tasks by number.

    Examples
    --------
    >>> from frostline.problem import Fixed, Job
    >>> queue = WaitingQueue()
    >>> for number, (gpus, seconds) in enumerate([(8, 30), (1, 20), (1, 10)]):
    ...     job = Job(id=str(number), release_s=0, work=Fixed(duration_s=seconds), gpus=gpus)
    ...     queue.add(Task(job=job, number=number, release_us=0, shape=Shape(gpus, 1), duration_us=seconds))
    >>> queue.first.number, len(queue), [line.first_within(15) is None for line in queue.lines]
    (0, 3, [True, False])
    """

    __slots__ = ("__weakref__", "_first", "_line_of", "lines", "tasks")

    def __init__(self) -> None:
        self._line_of: dict[Shape, Line] = {}
        self.tasks: dict[int, Task] = {}
        self.lines: list[Line] = []
        self._first: Entry | None = None  # None where it is not known

    def __len__(self) -> int:
        return len(self.tasks)

    def __contains__(self, task: Task) -> bool:
        return self.tasks.get(task.number) is task

    def __iter__(self) -> Iterator[Task]:
        return iter(sorted(self.tasks.values(), key=lambda task: (task.priority, task.number)))

    def add(self, task: Task) -> None:
        """Let a task wait."""
        line = self._line_of.get(task.shape)
        if line is None:
            line = self._line_of[task.shape] = Line(task.shape)
            self.lines.append(line)
        entry = (task.priority, task.number, task)
        line.add(entry)
        if self._first is not None and entry < self._first:
            self._first = entry
        self.tasks[task.number] = task

    def remove(self, task: Task) -> None:
        """Take a waiting task out."""
        self._line_of[task.shape].remove((task.priority, task.number, task))
        del self.tasks[task.number]
        if self._first is not None and self._first[2] is task:
            self._first = None

    @property
    def first(self) -> Task | None:
        """First task in the policy's order."""
        if self._first is None and self.tasks:
            self._first = min(line.blocks[0][0] for line in self.lines if line.blocks)
        return None if self._first is None else self._first[2]
