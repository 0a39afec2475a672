"""Orders of the queues of :mod:`frostline.policies.service_queues`: who goes first, and who gives way to whom."""

from __future__ import annotations

from collections.abc import Sequence

from frostline.policies.task import Task
from frostline.policies.waiting import Entry, WaitingQueue

__all__ = ["CostOrder", "ServiceOrder"]


class ServiceOrder:
    """Less service goes first, and more gives way to it.

    The key of a waiting task, by which it is sorted in its line, begins with its queue.

    Parameters
    ----------
    queues : int
        Number of queues.
    """

    __slots__ = ("_last",)

    def __init__(self, queues: int) -> None:
        self._last = queues - 1

    def heads(self, waiting: WaitingQueue) -> list[Entry]:
        """Waiting tasks in order, the first of each line."""
        return sorted(line.blocks[0][0] for line in waiting.lines if line.blocks)

    def lower(self, queue: int, task: Task) -> Sequence[int]:
        """Queues whose tasks give way to a task of a queue, those that do so first."""
        return range(self._last, queue, -1)

    def exits(self, queue: int) -> Sequence[int]:
        """Queues that a task may leave for one that gives way to a task of a queue, or of another before which that
        one goes."""
        return range(queue, self._last)


class CostOrder(ServiceOrder):
    """What costs less goes first, and what costs more by a restart of the newcomer's GPUs gives way to it.

    Of equal costs less service goes first, and nobody gives way.

    Parameters
    ----------
    costs_us : sequence of float
        GPU-microseconds for each completion, of the tasks of each queue.
    restart_us : int
        How long an evicted task takes to be where it was.

    Examples
    --------
    >>> from types import SimpleNamespace as Any
    >>> order = CostOrder([5.0, 9.0, 2.0], 1)
    >>> [order.lower(2, Any(gpus=gpus)) for gpus in (2, 3, 7)], order.exits(2), order.exits(0)
    ([[1, 0], [1], []], [0], [0])
    """

    __slots__ = ("_costs_us", "_rank", "_restart_us")

    def __init__(self, costs_us: Sequence[float], restart_us: int) -> None:
        super().__init__(len(costs_us))
        self._costs_us, self._restart_us = costs_us, restart_us
        self._rank = [(cost_us, queue) for queue, cost_us in enumerate(costs_us)]

    def heads(self, waiting: WaitingQueue) -> list[Entry]:
        """Waiting tasks in order, the first of each line and queue."""
        heads = [head for line in waiting.lines for head in line.heads(self._last + 1)]
        return sorted(heads, key=lambda head: (self._rank[head[0][0]], head))

    def lower(self, queue: int, task: Task) -> Sequence[int]:
        """Queues that cost more, the dearest first."""
        least_us = self._costs_us[queue] + self._restart_us * task.gpus
        return [queue for cost_us, queue in sorted(self._rank, reverse=True) if cost_us > least_us]

    def exits(self, queue: int) -> Sequence[int]:
        """Queues above one that costs more."""
        costs_us = self._costs_us
        return [above for above in range(self._last) if costs_us[above + 1] > costs_us[queue]]
