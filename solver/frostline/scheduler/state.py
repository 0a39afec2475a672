"""State of the live scheduler; policies see it through the read-only :class:`~frostline.policies.base.View`."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable

from frostline.placement.free_gpus import FreeGpus, Shape, shape_of
from frostline.placement.offer import place_job
from frostline.placement.saturation import saturation
from frostline.policies.base import Offer, Policy
from frostline.policies.reservation import Reservation, reserve
from frostline.policies.task import Running, Task
from frostline.policies.waiting import WaitingQueue
from frostline.problem.cluster import Cluster
from frostline.problem.job import Fixed, Job
from frostline.problem.placement import Placement
from frostline.scheduler.virtual_order import VirtualOrder
from frostline.timing.duration import fastest_us, slowest_us
from frostline.units import instant_us

__all__ = ["State"]


class State:
    """Who waits, who runs where, and the virtual machine. Every change goes through a method that keeps it whole.

    Parameters
    ----------
    cluster : Cluster
        The servers.
    policy : Policy
        Gives the waiting order, and says whether the virtual machine is used.
    shapes : iterable of Shape
        Shapes of the jobs that are expected; with those that arrive, they set the saturation B.
    placement : str
        Placement method for training jobs that no server can hold alone.
    """

    __slots__ = (
        "_offers",
        "_placement",
        "_reservation",
        "_run_of",
        "_saturation",
        "_shapes",
        "_shapes_seen",
        "_virtual",
        "arrived",
        "arrived_work",
        "budget_gpus",
        "cluster",
        "free",
        "longest_us",
        "now_us",
        "policy",
        "running",
        "waiting",
    )

    def __init__(self, cluster: Cluster, policy: Policy, shapes: Iterable[Shape], placement: str) -> None:
        self.cluster, self.policy = cluster, policy
        self._placement = placement
        self.now_us = 0
        self.free = FreeGpus(cluster.capacities)
        self.waiting = WaitingQueue()
        self.running: list[Running] = []  # sorted by expected end
        self._shapes = shapes
        self._saturation: int | None = None
        self._shapes_seen = 0
        self.budget_gpus = 0
        self.longest_us = 0
        self.arrived = 0
        self.arrived_work = 0
        self._virtual = VirtualOrder(cluster.gpus, self._delay_us) if policy.uses_virtual_machine else None
        self._run_of: dict[str, Running] = {}
        self._reservation: Reservation | None = None
        self._offers: dict[int, Offer | None] = {}

    # -- what a policy may ask ---------------------------------------------------------------------------------

    @property
    def due(self) -> Task | None:
        """First waiting task in virtual order whose virtual completion has passed."""
        return None if self._virtual is None else self._virtual.first

    @property
    def next_due_us(self) -> int | None:
        """When the next task becomes due if nothing arrives."""
        return None if self._virtual is None else self._virtual.next_due_us

    @property
    def saturation(self) -> int:
        """B of the shapes that are expected or have arrived."""
        lines = self.waiting.lines
        if self._saturation is None:
            self._saturation = saturation(self._shapes, self.cluster)
        if len(lines) > self._shapes_seen:
            arrived = (line.shape for line in lines[self._shapes_seen :])
            self._saturation = min(self._saturation, saturation(arrived, self.cluster))
            self._shapes_seen = len(lines)
        return self._saturation

    def offer(self, task: Task) -> Offer | None:
        """GPUs on offer for a task now; None when it does not fit."""
        if task.steady:
            loads = self.free.best_fit(task.shape)
            return None if loads is None else Offer(Placement.of_loads(loads), task.duration_us)
        if task.number not in self._offers:
            placed = self._place(task, self.free)
            self._offers[task.number] = None if placed is None else Offer(*placed)
        return self._offers[task.number]

    def reservation(self, task: Task, headroom: int = 0) -> Reservation:
        """Earliest start of a blocked task, with headroom, if nothing new starts.

        It is kept until a start, a finish, or its time: before that, jobs that have outlived their expected end do not
        change it.
        """
        kept = self._reservation
        same = kept is not None and kept.shape == task.shape and kept.headroom == headroom
        if kept is None or not same or kept.time_us <= self.now_us:
            kept = self._reservation = reserve(task.shape, self.now_us, self.free, self.running, headroom)
        return kept

    # -- changes -----------------------------------------------------------------------------------------------

    def task(self, job: Job) -> Task:
        """What the scheduler needs to know of a job; raises what its arrival or its slowest run could not bear."""
        steady = isinstance(job.work, Fixed)
        if not steady:
            slowest_us(job, self.cluster)
        return Task(
            job=job,
            release_us=instant_us(job.release_s),
            shape=shape_of(job, self.cluster),
            duration_us=fastest_us(job, self.cluster),
            steady=steady,
        )

    def arrive(self, task: Task) -> None:
        """A task arrives: it waits, and its work goes to the virtual machine."""
        task.number = self.arrived
        task.priority = self.policy.priority(task)
        self.waiting.add(task)
        self.arrived += 1
        self.arrived_work += task.work
        self.longest_us = max(self.longest_us, task.duration_us)
        if self._virtual is not None:
            self._virtual.arrive(self.now_us, task)

    def advance(self, now_us: int) -> None:
        """Move the clock; virtual completions on the way become due."""
        self.now_us = now_us
        if self._virtual is not None:
            self._virtual.advance(now_us)

    def start(self, task: Task, offer: Offer, on_budget: bool) -> None:
        """A waiting task takes the GPUs of an offer."""
        self.waiting.remove(task)
        if self._virtual is not None:
            self._virtual.leave(task)
        loads = offer.placement.loads
        self.free.take(loads)
        run = Running(self.now_us + offer.duration_us, task.number, task, loads, task.shape.gpus, on_budget)
        insort(self.running, run)
        self._run_of[task.job.id] = run
        self.budget_gpus += run.gpus * on_budget
        self._forget()

    def finish(self, job: str) -> Running:
        """A running job gives its GPUs back."""
        run = self._run_of.pop(job)
        del self.running[bisect_left(self.running, run)]
        self.free.give(run.loads)
        self.budget_gpus -= run.gpus * run.on_budget
        self._forget()
        return run

    def _forget(self) -> None:
        """Drop what was worked out for the free GPUs before."""
        self._reservation = None
        if self._offers:
            self._offers.clear()

    def _delay_us(self, task: Task) -> int:
        """By how much a task enters late because the GPUs on offer are slow for it, in the hope of a better hole."""
        kappa, tau = getattr(self.policy, "late_entry", (0.0, 0.0))
        offer = self.offer(task) if kappa > 0 else None
        if offer is None:
            return 0
        empty = FreeGpus(self.cluster.capacities)
        best = self._place(task, empty)
        slow = best is not None and offer.duration_us > (1 + tau) * best[1]
        return int(kappa * task.duration_us) if slow else 0

    def _place(self, task: Task, free: FreeGpus) -> tuple[Placement, int] | None:
        return place_job(task.job, self.cluster, free, task.shape, self._placement)

    def is_running(self, job: str) -> bool:
        """Whether a job holds GPUs."""
        return job in self._run_of
