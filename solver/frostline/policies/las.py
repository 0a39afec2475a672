"""Preemptive policies that know nothing of a task but what it has held: discretised least attained service.

The rule is that of Tiresias (J. Gu et al., *Tiresias: A GPU Cluster Manager for Distributed Deep Learning*, NSDI
2019), "discretized two-dimensional LAS": the service of a task is its GPUs times its time, a few queues are told apart
by thresholds of service, and a task moves down a queue when it crosses one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from frostline.errors import InvalidValueError
from frostline.policies.base import WAIT, Decision, Preempt, Start, View, Wait
from frostline.policies.eviction import fewest_victims
from frostline.policies.service_order import ServiceOrder
from frostline.policies.service_queues import service_queues
from frostline.policies.task import Task
from frostline.units import as_finite, as_int, duration_us

__all__ = ["Las"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Las:
    """Tiresias-like: queues by GPU-time held, first come first served within a queue, eviction between queues only.

    Waiting tasks are gone through queue by queue; within a queue those that have run before come first, by their first
    start, then the others as they arrived. Each starts if it fits, or if it fits once tasks of lower queues are
    evicted: the lowest queue first, there the last to have started first, and nobody who could be spared. What cannot
    start is passed over. Nothing that is believed of durations is looked at.

    Parameters
    ----------
    thresholds : str or iterable of float
        GPU-seconds at which a task moves to the next queue, rising; ``"3600/7200/18000"`` as in the simulator that the
        authors published.
    starvation : float
        The PROMOTEKNOB of Tiresias: an evicted task that has waited so many times as long as it has run starts afresh
        in the first queue. 0, the default there too, for never.
    restart_s : float
        Seconds that an evicted task takes to be where it was when it runs again.
    most_evictions : int
        A task that was evicted so often is left alone.

    Raises
    ------
    InvalidValueError
        A parameter is out of its range.

    Examples
    --------
    >>> Las(thresholds="60/3600").parameters["thresholds"]
    '60/3600'
    """

    name: str = "las"
    thresholds: str | Iterable[float] = "3600/7200/18000"
    starvation: float = 0.0
    restart_s: float = 30.0
    most_evictions: int = 100
    _limits_us: tuple[int, ...] = field(init=False, repr=False, compare=False)
    _order: ServiceOrder = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        subject = f"policy {self.name!r}"
        limits = _limits(self.thresholds, subject)
        object.__setattr__(self, "thresholds", "/".join(f"{limit:.15g}" for limit in limits))
        object.__setattr__(self, "_limits_us", tuple(map(duration_us, limits)))
        object.__setattr__(self, "_order", ServiceOrder(len(limits) + 1))
        for name in ("starvation", "restart_s"):
            object.__setattr__(self, name, as_finite(getattr(self, name), subject, name, 0.0))
        object.__setattr__(self, "most_evictions", as_int(self.most_evictions, subject, "most_evictions", 0))

    @property
    def parameters(self) -> Mapping[str, Any]:
        """All parameters."""
        names = ("thresholds", "starvation", "restart_s", "most_evictions")
        return {name: getattr(self, name) for name in names}

    @property
    def uses_virtual_machine(self) -> bool:
        """Never."""
        return False

    def priority(self, task: Task) -> tuple[int, int, int]:
        """Queue, then those that have run before by their first start, then the others by arrival."""
        past = task.past
        if past is None:
            return 0, 1, task.number
        return bisect_right(self._limits_us, past.held_us), 0, past.first_start_us

    def renewal_us(self, task: Task) -> int | None:
        """How long a task waits after an eviction until it starts afresh."""
        past = task.past
        if not self.starvation or past is None or past.held_us < self._limits_us[0]:
            return None
        return int(self.starvation * (past.held_us // task.gpus))

    def order(self, view: View) -> ServiceOrder:
        """Which queue goes first, and which gives way."""
        return self._order

    def decide(self, view: View) -> Decision:
        """First waiting task that fits, or that fits if lower queues give way.

        Without one it is asked again when a task moves to a queue below that of a waiting one, or a waiting task
        starts afresh.
        """
        order = self.order(view)
        heads = order.heads(view.waiting)
        if not heads:
            return WAIT
        free, queues = view.free, None
        for (queue, *_), _, task in heads:
            if free.fits(task.shape):
                return Start(task)
            if queues is None:
                queues = service_queues(view, self._limits_us, self.most_evictions)
            lower = order.lower(queue, task)
            if free.total + queues.gpus_in(lower) >= task.shape.gpus:
                victims = fewest_victims(view, task, queues.members(lower))
                if victims:
                    return Preempt(task, victims)
        assert queues is not None
        times_us = (view.next_renewal_us, queues.next_move_us(order.exits(heads[0][0][0])))
        return Wait(min((time_us for time_us in times_us if time_us is not None), default=None))


def _limits(thresholds: object, subject: str) -> list[float]:
    """Thresholds as rising numbers above 0, at least one."""
    parts = thresholds.split("/") if isinstance(thresholds, str) else thresholds
    if not isinstance(parts, Iterable):
        parts = [parts]
    limits = [as_finite(_number(part), subject, "thresholds") for part in parts]
    if not limits or limits[0] <= 0 or any(a >= b for a, b in pairwise(limits)):
        raise InvalidValueError(subject, "thresholds", thresholds, "must be rising numbers above 0")
    return limits


def _number(part: object) -> object:
    try:
        return float(part) if isinstance(part, str) else part
    except ValueError:
        return part
