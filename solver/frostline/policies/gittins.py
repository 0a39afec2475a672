"""Preemptive, by the Gittins index of the service that a task has had: who is worth most of what is invested next.

Without its size, a task of attained service a completes within the next Δ with a chance that those of finished tasks
tell. The index is the largest ratio of that chance to the service that is expected to be spent on it,

    ``G(a) = max over Δ of  P(S ≤ a + Δ | S > a) / E[min(S, a + Δ) - a | S > a]``,

and to serve the largest index first minimises the mean flow time on one machine (J. C. Gittins, *Bandit Processes and
Dynamic Allocation Indices*, Journal of the Royal Statistical Society B 41, 1979; S. Aalto, U. Ayesta, R. Righter, *On
the Gittins index in the M/G/1 queue*, Queueing Systems 63, 2009). Tiresias (J. Gu et al., NSDI 2019) has it as its
two-dimensional Gittins index: service is GPUs times time, and queues tell tasks apart.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any
from weakref import WeakKeyDictionary

from frostline.policies.base import View
from frostline.policies.las import Las
from frostline.policies.service_order import CostOrder, ServiceOrder
from frostline.policies.waiting import WaitingQueue
from frostline.units import as_int, duration_us

__all__ = ["Gittins", "costs_of_completion"]

_BITS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Gittins(Las):
    """Tiresias-like: queues by GPU-time held, the one of the largest Gittins index first.

    The index of a queue is that of a task that has just come into it, stopped at a threshold or not at all, by the
    GPU-time that finished tasks have held. It is learnt anew when the number of these has grown by a sixteenth to an
    eighth. Before enough of them have finished it is :class:`~frostline.policies.las.Las`. Within a queue, tasks go as
    there. A task of a queue whose 1 / index, the GPU-time spent for each completion, is larger by ``restart_s`` on
    each GPU of the newcomer may be evicted: the last of the queue of least index first.

    Parameters
    ----------
    thresholds : str or iterable of float
        GPU-seconds at which a task moves to the next queue, rising; by default six, each four times the one before.
    least_finished : int
        Tasks that must have finished, 1 at least.
    starvation, restart_s, most_evictions
        See :class:`~frostline.policies.las.Las`.

    Raises
    ------
    InvalidValueError
        A parameter is out of its range.

    Examples
    --------
    >>> Gittins(thresholds="60/3600").parameters["least_finished"]
    100
    """

    name: str = "gittins"
    thresholds: str | Iterable[float] = "600/2400/9600/38400/153600/614400"
    least_finished: int = 100

    def __post_init__(self) -> None:
        Las.__post_init__(self)
        subject = f"policy {self.name!r}"
        object.__setattr__(self, "least_finished", as_int(self.least_finished, subject, "least_finished", 1))

    @property
    def parameters(self) -> Mapping[str, Any]:
        """All parameters."""
        return {**Las.parameters.__get__(self), "least_finished": self.least_finished}

    @property
    def learns_service(self) -> bool:
        """Always."""
        return True

    def order(self, view: View) -> ServiceOrder:
        """By index, once it is known."""
        finished = len(view.served)
        if finished < self.least_finished:
            return Las.order(self, view)
        return _order(view, _leading(finished), self._limits_us, duration_us(self.restart_s))


def _leading(number: int) -> int:
    """A number with only its leading bits.

    Examples
    --------
    >>> [_leading(number) for number in (1, 15, 16, 17, 100)]
    [1, 15, 16, 16, 96]
    """
    spare = max(number.bit_length() - _BITS, 0)
    return number >> spare << spare


_LEARNT: WeakKeyDictionary[WaitingQueue, tuple[object, CostOrder]] = WeakKeyDictionary()
"""What was learnt last, by the waiting tasks of a view; it could be learnt from the view alone at any time."""


def _order(view: View, count: int, limits_us: tuple[int, ...], restart_us: int) -> CostOrder:
    """Order by what the first so many tasks to finish have held."""
    key = (count, limits_us, restart_us)
    known = _LEARNT.get(view.waiting)
    if known is None or known[0] != key:
        costs_us = costs_of_completion((held_us for _, held_us in view.served[:count]), limits_us)
        known = _LEARNT[view.waiting] = key, CostOrder(costs_us, restart_us)
    return known[1]


def costs_of_completion(sizes: Iterable[int], limits: Sequence[int]) -> list[float]:
    """1 / Gittins index at 0 and at each limit, for service that stops at limits or not at all.

    It is the least ratio of the service that is spent, all together on the sizes beyond, to those of them completed.

    Parameters
    ----------
    sizes : iterable of int
        Sizes that are expected alike.
    limits : sequence of int
        Rising, above 0.

    Returns
    -------
    list of float
        Infinite where no size lies beyond.

    Examples
    --------
    Of four jobs half end after 1 and the others after 9; beyond 1 there is nothing but to go on to the end.

    >>> costs_of_completion([1, 1, 9, 9], [1, 5])
    [2.0, 8.0, 4.0]
    """
    starts = [0, *limits]
    counts, sums = [0] * len(starts), [0] * len(starts)
    for size in sizes:
        stretch = bisect_left(limits, size)
        counts[stretch] += 1
        sums[stretch] += size
    beyond = [*accumulate(reversed(counts))][::-1]
    return [_least_cost(first, starts, counts, sums, beyond) for first in range(len(starts))]


def _least_cost(
    first: int, starts: Sequence[int], counts: Sequence[int], sums: Sequence[int], beyond: Sequence[int]
) -> float:
    """Least ratio of service to completions from one start on, over all stretches at whose end service may stop."""
    best, completed, spent = math.inf, 0, 0
    for last in range(first, len(starts)):
        completed += counts[last]
        spent += sums[last] - counts[last] * starts[first]
        if completed:
            stopped = beyond[last + 1] * (starts[last + 1] - starts[first]) if last + 1 < len(starts) else 0
            best = min(best, (spent + stopped) / completed)
    return best
