"""When waiting tasks become due, and in which order: the virtual machine beside the real cluster."""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from operator import attrgetter

from frostline.policies.task import Task
from frostline.relaxation.srpt import VirtualMachine

__all__ = ["VirtualOrder"]

_DUE_US = attrgetter("due_us")


class VirtualOrder:
    """Due tasks in the order (due time, virtual completion, release, id).

    A task is due at its virtual completion, rounded up to a microsecond; ``delay_us`` may put that off once, so that a
    task enters late, but never holds the head of the queue.

    Parameters
    ----------
    gpus : int
        G, the speed of the virtual machine.
    delay_us : callable
        Microseconds by which a task that is about to become due is put off.
    """

    __slots__ = ("_away", "_back", "_delay_us", "_due", "_late", "_machine", "_waiting")

    def __init__(self, gpus: int, delay_us: Callable[[Task], int]) -> None:
        self._machine = VirtualMachine(gpus)
        self._delay_us = delay_us
        self._waiting: dict[int, Task] = {}
        self._due: deque[Task] = deque()
        self._late: list[tuple[int, int]] = []  # (due time, number) of tasks that enter late
        self._away: dict[int, int | None] = {}  # tasks that have started, and their virtual completion if it came since
        self._back: dict[int, int | None] = {}  # those of them that have come back since the machine last moved

    def arrive(self, now_us: int, task: Task) -> None:
        """Add a task's work to the machine."""
        self._waiting[task.number] = task
        work = task.shape.gpus * task.duration_us if task.belief is None else task.belief.virtual_work
        self._machine.arrive(now_us, task.number, work)

    def leave(self, task: Task) -> None:
        """A task has started: it is no longer due, though the machine still serves its work."""
        del self._waiting[task.number]
        self._away[task.number] = self._back.pop(task.number, None)

    def forget(self, number: int) -> None:
        """A task that has started is complete."""
        self._away.pop(number, None)

    def come_back(self, task: Task) -> None:
        """A task that has started waits again, at the place that it had: the machine is not told of lost work."""
        self._waiting[task.number] = task
        self._back[task.number] = self._away.pop(task.number, None)

    def advance(self, now_us: int) -> None:
        """Move the machine; tasks whose time has come become due."""
        done = self._machine.advance(now_us)
        if not done and not self._late and not self._back:
            return
        gpus = self._machine.gpus
        entering: list[tuple[int, int, int]] = []
        for at, number in done:
            task = self._waiting.get(number)
            if task is None:
                if number in self._away:
                    self._away[number] = at
                continue
            task.due_us = -(at // -gpus)
            delay_us = 0 if task.steady else self._delay_us(task)
            if delay_us:
                task.due_us += delay_us
                heappush(self._late, (task.due_us, number))
            else:
                entering.append((task.due_us, at, number))
        while self._late and self._late[0][0] <= now_us:
            due_us, number = heappop(self._late)
            entering.append((due_us, due_us * gpus, number))
        if len(self._due) > 2 * len(self._waiting):  # most have started behind a first one that waits
            self._due = deque(self.due)
        self._due.extend(self._waiting[number] for _, _, number in sorted(entering) if number in self._waiting)
        if self._back:
            self._put_back(now_us)

    def _put_back(self, now_us: int) -> None:
        """Those that have come back after their due times go among the due ones, behind those of the same time."""
        waiting, back = self._waiting, self._back
        due = [task for task in self._due if task.number in waiting and task.number not in back]
        for number in sorted(back):
            task, at = waiting[number], back[number]
            if at is not None:
                task.due_us = -(at // -self._machine.gpus)
            if task.due_us is not None and task.due_us <= now_us:
                insort(due, task, key=_DUE_US)
        self._due = deque(due)
        back.clear()

    @property
    def first(self) -> Task | None:
        """First due task that still waits."""
        due = self._due
        while due and due[0].number not in self._waiting:
            due.popleft()
        return due[0] if due else None

    @property
    def due(self) -> Iterator[Task]:
        """Due tasks that still wait, in order."""
        return (task for task in self._due if task.number in self._waiting)

    @property
    def next_due_us(self) -> int | None:
        """When the next task becomes due if nothing arrives."""
        machine_us = self._machine.next_completion_us
        late_us = self._late[0][0] if self._late else None
        if late_us is None or machine_us is None:
            return machine_us if late_us is None else late_us
        return min(late_us, machine_us)
