"""What a policy is: it looks at a view of the cluster and names the next job to start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from frostline.freezing.evidence import ProgressScale
from frostline.placement.free_gpus import FreeGpus
from frostline.policies.reservation import Reservation
from frostline.policies.task import Offer, Running, StartKind, Task
from frostline.policies.waiting import WaitingQueue
from frostline.problem.cluster import Cluster
from frostline.problem.job import Job
from frostline.problem.placement import Placement
from frostline.problem.schedule import Segment

__all__ = [
    "WAIT",
    "Decision",
    "Offer",
    "PlanningPolicy",
    "Policy",
    "Preempt",
    "Reallocate",
    "Share",
    "Start",
    "View",
    "Wait",
]


class Start(NamedTuple):
    """Start a waiting task that fits, at once; ``kind`` tells whether it overtakes in an order that is kept."""

    task: Task
    kind: StartKind = StartKind.IN_ORDER


class Preempt(NamedTuple):
    """Evict running tasks and start a waiting one on what is free then, at once and as a whole.

    Only a policy that tells its ``restart_s`` and keeps no virtual order may evict, and only tasks that started before
    this instant. It is the policy's duty to evict no more than needed, see
    :func:`~frostline.policies.eviction.fewest_victims`.
    """

    task: Task
    victims: tuple[Task, ...]


class Share(NamedTuple):
    """GPUs that a waiting or running task is to hold from now on, none for 0, and its freeze level."""

    task: Task
    gpus: int
    level: int = 0


class Reallocate(NamedTuple):
    """Give tasks other GPUs and freeze levels, at once and as a whole, and decide nothing more at this instant.

    Only an elastic policy may, and only once at an instant. A task that is not named keeps what it has, and one that
    has what it is to have goes on undisturbed. One whose level alone changes goes on where it is, after
    ``level_change_s``. Every other running one loses its GPUs; those that get some are placed by best fit, the widest
    first, ``restart_s`` behind where they were. Elastic work takes any of its widths, other work the GPUs it asks for,
    at level 0. Nothing is frozen before the warm-up of a job is over.
    """

    shares: tuple[Share, ...]
    until_us: int | None = None


class Wait(NamedTuple):
    """Start nothing more; ask again at the next event, and at ``until_us`` at the latest."""

    until_us: int | None = None


WAIT = Wait()
"""Wait for the next event, whatever it is."""

Decision = Start | Preempt | Reallocate | Wait
"""What a policy may decide."""


class View(Protocol):
    """Read-only view of the scheduler's state at one instant.

    A policy is asked again after each start, so that every decision sees the effect of the last.
    """

    @property
    def now_us(self) -> int:
        """The present."""
        ...

    @property
    def cluster(self) -> Cluster:
        """The servers."""
        ...

    @property
    def free(self) -> FreeGpus:
        """Free GPUs of the servers that take starts, neither down nor drained; do not change."""
        ...

    @property
    def running(self) -> Sequence[Running]:
        """Running tasks, sorted by the earliest end that is expected; do not change."""
        ...

    @property
    def runs(self) -> Mapping[str, Running]:
        """Running tasks by job, in order of start, whose ends need not be up to date; do not change."""
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
    def possible_due(self) -> Task | None:
        """First of the due tasks that need no servers that are down or drained."""
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
    def uncertain(self) -> bool:
        """Whether sizes are predicted, so that a task may outlive all that was believed of it."""
        ...

    @property
    def budget_gpus(self) -> int:
        """GPUs held by running tasks that were started on the budget, or as a backfill that has overrun."""
        ...

    @property
    def out_of_order_gpus(self) -> int:
        """GPUs held by running tasks that were started out of order, on the budget or as a backfill."""
        ...

    @property
    def arrived(self) -> int:
        """Number of tasks that have arrived."""
        ...

    @property
    def arrived_work(self) -> int:
        """Their GPU-microseconds together, as believed."""
        ...

    @property
    def longest_us(self) -> int:
        """Longest duration of a task so far; where sizes are predicted, of those believed and those observed."""
        ...

    @property
    def next_renewal_us(self) -> int | None:
        """When the next evicted task that waits starts afresh."""
        ...

    @property
    def served(self) -> Sequence[tuple[int, int]]:
        """When each completed task ended and the GPU-microseconds that it had held, in this order; do not change.

        Nothing where the policy does not tell that it ``learns_service``.
        """
        ...

    @property
    def event_us(self) -> int | None:
        """When a task last arrived or completed; None while none ever did."""
        ...

    @property
    def reallocated_us(self) -> int | None:
        """When GPUs were last reallocated; None while they never were."""
        ...

    def done(self, task: Task) -> int:
        """Iterations, or microseconds of fixed work, that a waiting or running task has done by now."""
        ...

    def frozen(self, task: Task) -> tuple[tuple[int, int, int], ...]:
        """Stretches of training with frozen layers up to now: iterations done at its start and end, and the level."""
        ...

    def scale(self, task: Task) -> ProgressScale:
        """How the metric of a task has improved, by its reports, over what was expected; 1 without reports."""
        ...

    def offer(self, task: Task) -> Offer | None:
        """GPUs on offer for a task now; None when it does not fit."""
        ...

    def reservation(self, task: Task, headroom: int = 0) -> Reservation:
        """Earliest start of a blocked task, with so many GPUs free beside its own, if nothing new starts."""
        ...


@runtime_checkable
class Policy(Protocol):
    """A scheduling policy: an order of the waiting tasks and a rule that picks from them. It keeps no state.

    More attributes are looked for. ``late_entry``: κ and τ of [T6]. ``restart_s``: the policy may evict, and an
    evicted task takes so many seconds longer when it runs again. ``elastic``: the policy may reallocate, and is asked
    even when no task waits. ``level_change_s``: what a change of the freeze level alone takes. ``renewal_us(task)``:
    after so long a wait, or never where it is None, an evicted task counts as if it had held no GPUs before.
    ``learns_service``: the policy looks at what completed tasks have held, :attr:`View.served`.
    ``planned``, ``pieces`` and ``left_us``: the policy plans whole runs, see :class:`PlanningPolicy`.
    """

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
        """Key of a task in the waiting order, least first; asked at arrival, and again when it has lost its GPUs."""
        ...

    def decide(self, view: View) -> Decision:
        """Next start, with evictions if it must be, or how long to wait."""
        ...


@runtime_checkable
class PlanningPolicy(Policy, Protocol):
    """A policy that plans the freeze levels of a whole run when a job is submitted, and schedules the planned job."""

    def planned(self, job: Job, cluster: Cluster) -> Job:
        """The job as it is scheduled; the same object where nothing is frozen."""
        ...

    def pieces(self, job: Job, cluster: Cluster, segment: Segment) -> tuple[Segment, ...]:
        """The run of a job, cut where the freeze level of the job as submitted changes."""
        ...

    def left_us(self, job: Job, cluster: Cluster, placement: Placement, done: int) -> int:
        """Microseconds that a planned job, as submitted, still takes once so many iterations are done."""
        ...
