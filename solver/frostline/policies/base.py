"""What a policy is: it looks at a view of the cluster and names the next job to start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

from frostline.placement.free_gpus import FreeGpus
from frostline.policies.reservation import Reservation
from frostline.policies.task import Task
from frostline.policies.waiting import WaitingQueue
from frostline.problem.placement import Placement

__all__ = ["WAIT", "Decision", "Offer", "Policy", "Start", "View", "Wait"]


class Offer(NamedTuple):
    """GPUs for a task on the free GPUs of this instant, and how long it would run on them."""

    placement: Placement
    duration_us: int


class Start(NamedTuple):
    """Start a waiting task that fits, at once; ``on_budget`` charges its GPUs to the out-of-order budget."""

    task: Task
    on_budget: bool = False


class Wait(NamedTuple):
    """Start nothing more; ask again at the next event, and at ``until_us`` at the latest."""

    until_us: int | None = None


WAIT = Wait()
"""Wait for the next event, whatever it is."""

Decision = Start | Wait


class View(Protocol):
    """Read-only view of the scheduler's state at one instant.

    A policy is asked again after each start, so that every decision sees the effect of the last.
    """

    @property
    def now_us(self) -> int:
        """The present."""
        ...

    @property
    def free(self) -> FreeGpus:
        """Free GPUs; do not change."""
        ...

    @property
    def waiting(self) -> WaitingQueue:
        """Waiting tasks in the order of :meth:`Policy.priority`."""
        ...

    @property
    def due(self) -> Task | None:
        """First waiting task, in virtual order, whose virtual completion has passed."""
        ...

    @property
    def next_due_us(self) -> int | None:
        """Next virtual completion if nothing arrives."""
        ...

    @property
    def saturation(self) -> int:
        """B: GPUs surely busy while a task is blocked, over the shapes that are expected."""
        ...

    @property
    def budget_gpus(self) -> int:
        """GPUs held by running tasks that were started on the out-of-order budget."""
        ...

    @property
    def arrived(self) -> int:
        """Number of tasks that have arrived."""
        ...

    @property
    def arrived_work(self) -> int:
        """Their GPU-microseconds together."""
        ...

    @property
    def longest_us(self) -> int:
        """Longest duration among the tasks that have arrived."""
        ...

    def offer(self, task: Task) -> Offer | None:
        """GPUs on offer for a task now; None when it does not fit."""
        ...

    def reservation(self, task: Task, headroom: int = 0) -> Reservation:
        """Earliest start of a blocked task, with so many GPUs free beside its own, if nothing new starts."""
        ...


@runtime_checkable
class Policy(Protocol):
    """A scheduling policy: an order of the waiting tasks and a rule that picks from them. It keeps no state."""

    @property
    def name(self) -> str:
        """Registered name."""
        ...

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Parameters and their values, for reports."""
        ...

    @property
    def uses_virtual_machine(self) -> bool:
        """Whether tasks become due at their virtual completions."""
        ...

    def priority(self, task: Task) -> Any:
        """Key of a task in the waiting order, least first; it is asked once, at arrival."""
        ...

    def decide(self, view: View) -> Decision:
        """Next start, or how long to wait."""
        ...
