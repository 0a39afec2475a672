"""Running tasks by the service that they have had, kept from one question to the next.

A policy keeps no state. What is kept here could be told from the view alone at any time, only more slowly.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping
from heapq import heapify, heappop, heappush
from weakref import WeakKeyDictionary

from frostline.policies.base import View
from frostline.policies.task import Running
from frostline.policies.waiting import WaitingQueue

__all__ = ["ServiceQueues", "service_queues"]

_SPARE = 64
_BEFORE_ALL_US = -(1 << 62)


class _Served:
    """A running task: its queue now, its place among those that may be evicted, and whether it is one of them."""

    __slots__ = ("evictable", "past", "place", "queue", "run")

    def __init__(self, run: Running, evictable: bool) -> None:
        self.past = past = run.task.past
        self.run, self.evictable, self.queue = run, evictable, 0
        self.place = (-(run.start_us if past is None else past.first_start_us), -run.number)


_Member = tuple[int, int, Running]
"""A running task that may be evicted, as (−first start, −number, run): the last to have started comes first."""


class ServiceQueues:
    """Running tasks in queues by the GPU-time that they have held.

    Queue q holds those that have held at least the first q limits. Those in it may be evicted that started before
    this instant and were evicted less than ``most_evictions`` times.

    Parameters
    ----------
    limits_us : tuple of int
        GPU-microseconds at which a task moves to the next queue, rising.
    most_evictions : int
        See above.

    Examples
    --------
    >>> from types import SimpleNamespace as Any
    >>> task = Any(job=Any(id="a"), past=None)
    >>> queues = ServiceQueues((100,), 1)
    >>> for now_us in (20, 29, 30):
    ...     queues.update({"a": Running(90, 0, task, ((0, 10),), 10, start_us=20)}, now_us)
    ...     print(queues.next_move_us([0]), queues.gpus_in([1]))
    30 0
    30 0
    None 10
    """

    __slots__ = ("_fresh", "_gpus", "_members", "_moves", "_now_us", "_served", "limits_us", "most_evictions")

    def __init__(self, limits_us: tuple[int, ...], most_evictions: int) -> None:
        self.limits_us, self.most_evictions = limits_us, most_evictions
        self._clear()

    def _clear(self) -> None:
        queues = range(len(self.limits_us) + 1)
        self._now_us = _BEFORE_ALL_US
        self._served: dict[str, _Served] = {}  # by job, in order of start
        self._fresh: list[_Served] = []  # those that have started at this very instant
        self._members: list[list[_Member]] = [[] for _ in queues]  # who may be evicted
        self._gpus = [0 for _ in queues]  # that they hold
        self._moves: list[list[tuple[int, int, int, _Served]]] = [[] for _ in self.limits_us]
        """By limit, a heap of (when it is reached, number, evictions, task), of some that no longer run, too."""

    def update(self, runs: Mapping[str, Running], now_us: int) -> None:
        """These tasks run now, in order of start."""
        if now_us < self._now_us:
            self._clear()
        if now_us > self._now_us:
            self._now_us = now_us
            self._settle()
            self._move()
        self._meet(runs)
        if len(self._served) > len(runs):
            for job in [job for job in self._served if job not in runs]:
                self._part(job)

    def _settle(self) -> None:
        """Those that have started before this instant may be evicted."""
        for served in self._fresh:
            if self._runs(served):
                self._join(served)
        self._fresh.clear()

    def _move(self) -> None:
        """Tasks that have reached a limit by now move to the next queue."""
        now_us = self._now_us
        for queue, moves in enumerate(self._moves):
            while moves and moves[0][0] <= now_us:
                served = heappop(moves)[3]
                if self._runs(served):
                    self._leave(served)
                    served.queue = queue + 1
                    self._join(served)

    def _runs(self, served: _Served) -> bool:
        return self._served.get(served.run.task.job.id) is served

    def _join(self, served: _Served) -> None:
        queue = served.queue
        if served.evictable:
            insort(self._members[queue], (*served.place, served.run))
            self._gpus[queue] += served.run.gpus

    def _leave(self, served: _Served) -> None:
        queue = served.queue
        if served.evictable:
            members = self._members[queue]
            at = bisect_left(members, served.place)
            if at < len(members) and members[at][2] is served.run:
                del members[at]
                self._gpus[queue] -= served.run.gpus

    def _meet(self, runs: Mapping[str, Running]) -> None:
        """Take in the tasks that have started since: the last ones, in order of start."""
        known, new = self._served, []
        for run in reversed([*runs.values()]):
            served = known.get(run.task.job.id)
            if served is not None and served.run.start_us == run.start_us and served.past is run.task.past:
                break
            new.append(run)
        for run in reversed(new):
            if run.task.job.id in known:
                self._part(run.task.job.id)
            self._take_in(run)

    def _take_in(self, run: Running) -> None:
        past, gpus, now_us = run.task.past, run.gpus, self._now_us
        evictions = 0 if past is None else past.evictions
        served = _Served(run, evictions < self.most_evictions)
        self._served[run.task.job.id] = served
        held_us = 0 if past is None else past.held_us
        for limit_us, moves in zip(self.limits_us, self._moves, strict=True):
            reached_us = run.start_us - (held_us - limit_us) // gpus
            if reached_us <= now_us:
                served.queue += 1
            else:
                self._tidy(moves)
                heappush(moves, (reached_us, run.number, evictions, served))
        if run.start_us < now_us:
            self._join(served)
        else:
            self._fresh.append(served)

    def _tidy(self, moves: list[tuple[int, int, int, _Served]]) -> None:
        """Forget those that no longer run before they outnumber the others by far."""
        if len(moves) > 4 * len(self._served) + _SPARE:
            moves[:] = [move for move in moves if self._runs(move[3])]
            heapify(moves)

    def _part(self, job: str) -> None:
        """A task no longer runs, or not any more in this run."""
        self._leave(self._served.pop(job))

    def gpus_in(self, queues: Iterable[int]) -> int:
        """GPUs held by those of some queues that may be evicted."""
        return sum(self._gpus[queue] for queue in queues)

    def members(self, queues: Iterable[int]) -> Iterator[Running]:
        """Those that may be evicted, queue by queue: in each the last to have started first."""
        return (member[2] for queue in queues for member in self._members[queue])

    def next_move_us(self, queues: Iterable[int]) -> int | None:
        """When a task next leaves one of some queues for the queue below it; None if none will."""
        times_us = (self._next_us(self._moves[queue]) for queue in queues)
        return min((at_us for at_us in times_us if at_us is not None), default=None)

    def _next_us(self, moves: list[tuple[int, int, int, _Served]]) -> int | None:
        while moves and not self._runs(moves[0][3]):
            heappop(moves)
        return moves[0][0] if moves else None


_KEPT: WeakKeyDictionary[WaitingQueue, ServiceQueues] = WeakKeyDictionary()
"""By the waiting tasks of a view, which are the same as long as the view is."""


def service_queues(view: View, limits_us: tuple[int, ...], most_evictions: int) -> ServiceQueues:
    """Running tasks of a view by the service that they have had; see :class:`ServiceQueues`."""
    queues = _KEPT.get(view.waiting)
    if queues is None or queues.limits_us != limits_us or queues.most_evictions != most_evictions:
        queues = _KEPT[view.waiting] = ServiceQueues(limits_us, most_evictions)
    queues.update(view.runs, view.now_us)
    return queues
