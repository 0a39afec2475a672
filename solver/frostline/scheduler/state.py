"""State of the live scheduler; policies see it through the read-only :class:`~frostline.policies.base.View`."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from heapq import heappop, heappush

from frostline.freezing.evidence import ProgressScale
from frostline.placement.free_gpus import FreeGpus, Shape, shape_of
from frostline.placement.offer import place_job
from frostline.placement.saturation import saturation
from frostline.policies.base import Policy
from frostline.policies.reservation import Reservation, reserve
from frostline.policies.task import Offer, Past, Running, StartKind, Task
from frostline.policies.waiting import WaitingQueue
from frostline.prediction.size import blinded
from frostline.problem.cluster import Cluster
from frostline.problem.job import Elastic, Fixed, Job
from frostline.problem.placement import Placement
from frostline.scheduler.outlook import Outlook, Predictor
from frostline.scheduler.progress import (
    Part,
    Report,
    clipped,
    done_by,
    iterations_of,
    keep,
    left_us,
    most_done,
    offer_of,
    saved_by,
    with_iterations,
    worked_us,
)
from frostline.scheduler.virtual_order import VirtualOrder
from frostline.timing.duration import fastest_us, job_duration_us, slowest_us
from frostline.units import duration_us, instant_us

__all__ = ["State"]

_AS_EXPECTED = ProgressScale()
_BACKFILL, _ON_BUDGET = StartKind.BACKFILL, StartKind.ON_BUDGET  # looked up once: that takes long


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
    predictor : Predictor, optional
        Predicts the sizes of jobs at their arrival; without one they are taken as they are submitted.
    restart_s : float, optional
        Seconds that a job takes at first when it runs again, where the policy tells none.

    Attributes
    ----------
    restart_us, pause_us : int or None
        Microseconds that the policy tells for that, which may then evict; and those that count, None for none told.
    """

    __slots__ = (
        "_learns_service",
        "_offers",
        "_parts",
        "_placement",
        "_renewal_us",
        "_renewals",
        "_reports",
        "_reservation",
        "_running",
        "_saturation",
        "_scales",
        "_shapes",
        "_shapes_seen",
        "_unsettled",
        "_virtual",
        "arrived",
        "arrived_work",
        "budget_gpus",
        "cluster",
        "elastic",
        "event_us",
        "free",
        "level_change_us",
        "longest_us",
        "most_out_of_order_gpus",
        "now_us",
        "out_of_order_gpus",
        "outlook",
        "pause_us",
        "policy",
        "reallocated_us",
        "restart_us",
        "runs",
        "served",
        "uncertain",
        "waiting",
    )

    def __init__(
        self,
        cluster: Cluster,
        policy: Policy,
        shapes: Iterable[Shape],
        placement: str,
        predictor: Predictor | None = None,
        restart_s: float | None = None,
    ) -> None:
        self.cluster, self.policy = cluster, policy
        self._placement = placement
        self.now_us = 0
        self.free = FreeGpus(cluster.capacities)
        self.waiting = WaitingQueue()
        self._running: list[Running] = []  # sorted by expected end
        self._shapes = shapes
        self._saturation: int | None = None
        self._shapes_seen = 0
        self.budget_gpus = 0
        self.out_of_order_gpus = self.most_out_of_order_gpus = 0
        self.longest_us = 0
        self.arrived = 0
        self.arrived_work = 0
        self._virtual = VirtualOrder(cluster.gpus, self._delay_us) if policy.uses_virtual_machine else None
        self.runs: dict[str, Running] = {}
        self._reservation: Reservation | None = None
        self._offers: dict[int, Offer | None] = {}
        self._reports: dict[str, Report] = {}
        self._scales: dict[str, ProgressScale] = {}
        self.uncertain = predictor is not None
        self.outlook = None if predictor is None else Outlook(predictor, cluster)
        told_s: float | None = getattr(policy, "restart_s", None)
        self.restart_us = None if told_s is None else duration_us(told_s)
        self.pause_us = self.restart_us if restart_s is None else duration_us(restart_s)
        self.elastic = bool(getattr(policy, "elastic", False))
        self.level_change_us = duration_us(getattr(policy, "level_change_s", 0.0))
        self._learns_service = bool(getattr(policy, "learns_service", False))
        self.served: list[tuple[int, int]] = []
        self.event_us: int | None = None
        self.reallocated_us: int | None = None
        self._unsettled = predictor is not None or told_s is not None  # ends are believed, or jobs come back
        self._parts: dict[str, list[Part]] = {}  # of runs that have changed their level, those before the present one
        self._renewal_us: Callable[[Task], int | None] = getattr(policy, "renewal_us", _never)
        self._renewals: list[tuple[int, int, int]] = []  # heap of (instant, number, evictions) of evicted tasks

    # -- what a policy may ask ---------------------------------------------------------------------------------

    @property
    def due(self) -> Task | None:
        """First waiting task in virtual order whose virtual completion has passed."""
        return None if self._virtual is None else self._virtual.first

    @property
    def possible_due(self) -> Task | None:
        """First of the due tasks that need no servers that are down or drained."""
        first, free = self.due, self.free
        if self._virtual is None or first is None or free.could_hold(first.shape):
            return first
        held: dict[Shape, bool] = {}
        for task in self._virtual.due:
            shape = task.shape
            if shape not in held:
                held[shape] = free.could_hold(shape)
            if held[shape]:
                return task
        return None

    @property
    def next_due_us(self) -> int | None:
        """When the next task becomes due if nothing arrives."""
        return None if self._virtual is None else self._virtual.next_due_us

    @property
    def running(self) -> Sequence[Running]:
        """Running tasks, sorted by the earliest end that is expected."""
        if self.outlook is not None:
            self._put_off(self.outlook)
        return self._running

    @property
    def saturation(self) -> int:
        """B of the shapes that are expected or have arrived."""
        lines = self.waiting.lines
        if self._saturation is None:
            self._saturation = saturation(self._shapes, self.cluster)
            self._shapes = ()
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

    def done(self, task: Task) -> int:
        """Iterations, or microseconds of fixed work, that a waiting or running task has done by now."""
        run = self.runs.get(task.job.id)
        if run is None or run.task is not task:
            return task.done
        return done_by(run, self._reports.get(task.job.id), self.now_us, self.cluster)

    def frozen(self, task: Task) -> tuple[tuple[int, int, int], ...]:
        """Stretches of training with frozen layers up to now: iterations done at its start and end, and the level."""
        past = () if task.past is None else task.past.frozen
        run = self.runs.get(task.job.id)
        if run is None or run.task is not task:
            return past
        done, level = self.done(task), offer_of(run).level
        return tuple(clipped([*past, (task.done, done, level)] if level else past, done))

    def scale(self, task: Task) -> ProgressScale:
        """How the metric of a task has improved, by its reports, over what was expected; 1 without reports."""
        return self._scales.get(task.job.id, _AS_EXPECTED)

    def placement_of(self, task: Task, free: FreeGpus, gpus: int) -> Placement | None:
        """Placement of a task on some free GPUs, elastic work on so many of them; None when it does not fit."""
        if isinstance(task.job.work, Elastic):
            loads = free.best_fit(shape_of(task.job, self.cluster, gpus))
            return None if loads is None else Placement.of_loads(loads)
        placed = self._place(task, free)
        return None if placed is None else placed[0]

    def reservation(self, task: Task, headroom: int = 0) -> Reservation:
        """Earliest start of a blocked task, with headroom, if nothing new starts.

        It is kept until a start, a finish, a new belief, or its time. Where sizes are known, jobs that have outlived
        their expected end do not change it before that.
        """
        if self.outlook is not None:
            self._put_off(self.outlook)
        kept = self._reservation
        same = kept is not None and kept.shape == task.shape and kept.headroom == headroom
        if kept is None or not same or kept.time_us <= self.now_us:
            kept = self._reservation = reserve(task.shape, self.now_us, self.free, self._running, headroom)
        return kept

    @property
    def next_renewal_us(self) -> int | None:
        """When the next evicted task that waits starts afresh."""
        renewals = self._renewals
        while renewals and not self._is_current(renewals[0]):
            heappop(renewals)
        return renewals[0][0] if renewals else None

    def _is_current(self, renewal: tuple[int, int, int]) -> bool:
        """Whether a task still waits since the eviction that a renewal is for."""
        _, number, evictions = renewal
        task = self.waiting.tasks.get(number)
        return task is not None and task.past is not None and task.past.evictions == evictions

    def settle(self) -> None:
        """Look at all expected shapes now, which may be costly, so that nothing outside is referred to."""
        self._shapes = tuple(self._shapes)

    # -- changes -----------------------------------------------------------------------------------------------

    def task(self, job: Job) -> Task:
        """What the scheduler needs to know of a job; raises what its arrival or its slowest run could not bear."""
        steady = isinstance(job.work, Fixed)
        if self.outlook is not None:
            job = blinded(job)
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
        self.event_us = self.now_us
        task.number = self.arrived
        task.priority = self.policy.priority(task)
        self.waiting.add(task)
        self.arrived += 1
        self.arrived_work += task.shape.gpus * task.duration_us
        if task.duration_us > self.longest_us:
            self.see(self.now_us, task.duration_us)
        if self._virtual is not None:
            self._virtual.arrive(self.now_us, task)

    def see(self, now_us: int, duration_us: int) -> None:
        """A duration is believed or observed."""
        if duration_us > self.longest_us:
            self.longest_us = duration_us
            if self.outlook is not None:
                self.outlook.longest.append((now_us, duration_us))

    def advance(self, now_us: int) -> None:
        """Move the clock; virtual completions on the way become due, and jobs outlive what was believed of them."""
        self.now_us = now_us
        if self._unsettled:
            self._overrun()
            self._renew()
        if self._virtual is not None:
            self._virtual.advance(now_us)

    def _renew(self) -> None:
        """Let the evicted tasks that have waited long enough count as if they had held nothing."""
        while (renewal_us := self.next_renewal_us) is not None and renewal_us <= self.now_us:
            task = self.waiting.tasks[heappop(self._renewals)[1]]
            assert task.past is not None
            self.waiting.remove(task)
            task.past = replace(task.past, held_us=0)
            self._wait(task)

    def _wait(self, task: Task) -> None:
        """Let a task wait at a place of its own; it waits at the old one where the policy cannot tell."""
        try:
            task.priority = self.policy.priority(task)
        finally:
            self.waiting.add(task)

    def _overrun(self) -> None:
        """Count the running jobs that have outlived what was believed of them at its highest; believe them longer."""
        outlook, now_us = self.outlook, self.now_us
        if outlook is None:
            return
        for job in outlook.late(now_us):
            run = self.runs.get(job)
            if run is None or not outlook.outlives(run, now_us):
                continue
            if outlook.overruns(run) and run.kind is _BACKFILL:
                self.budget_gpus += run.gpus
            end_us = outlook.later_us(run, self._reports.get(job), now_us, 0.5)
            outlook.expect_by(run, end_us)
            self.see(now_us, end_us - run.start_us)

    def _put_off(self, outlook: Outlook) -> None:
        """Believe anew of the running jobs that have outlived their expected end, when that end is asked for."""
        while self._running and self._running[0].end_us <= self.now_us:
            run = self._running[0]
            outlook.repredictions += 1
            self._expect(run, outlook.later_us(run, self._reports.get(run.task.job.id), self.now_us))

    def report(self, job: str, iterations: int, iteration_us: Fraction | None, now_us: int) -> None:
        """By now, a running job has done so many iterations; one takes as long as told, or as its placement allows."""
        run = self.runs[job]
        task, offer = run.task, offer_of(run)
        pace = iteration_us or Fraction(offer.duration_us, iterations_of(task.job))
        report = self._reports[job] = Report(iterations, now_us, pace)
        if self.outlook is not None:
            end_us = self.outlook.report(run, report, now_us)
        else:
            left = task.done + iterations_of(task.job) - iterations
            told = report if iteration_us else None
            end_us = now_us + (left_us(with_iterations(task.job, left), offer, told, self.cluster) if left else 1)
        self._expect(run, end_us)

    def report_metric(self, job: str, realised: float, expected: float) -> None:
        """The metric of a job has improved by so much where so much was expected."""
        self._scales[job] = self._scales.get(job, _AS_EXPECTED).observe(realised, expected)

    def forget(self, job: str) -> None:
        """A job is complete: its metric matters no more."""
        self._scales.pop(job, None)

    def withdraw(self, task: Task, now_us: int) -> None:
        """A waiting task is taken back."""
        self.event_us, self._reservation = now_us, None
        self.waiting.remove(task)
        self.forget(task.job.id)
        self._offers.pop(task.number, None)
        if self._virtual is not None:
            self._virtual.leave(task)
            self._virtual.forget(task.number)

    def ends_in(self, job: str, left_us: int, now_us: int) -> None:
        """A running job is expected to end so many microseconds after now."""
        self._expect(self.runs[job], now_us + max(left_us, 1))

    def _expect(self, run: Running, end_us: int) -> None:
        """Give a running job another expected end."""
        del self._running[bisect_left(self._running, run)]
        later = run._replace(end_us=end_us)
        insort(self._running, later)
        self.runs[run.task.job.id] = later
        self._reservation = None

    def start(self, task: Task, offer: Offer, kind: StartKind) -> Running:
        """A waiting task takes the GPUs of an offer."""
        self.waiting.remove(task)
        if self._virtual is not None:
            self._virtual.leave(task)
        return self._run(task, offer, kind, 0 if task.past is None else self.pause_us or 0)

    def start_at(self, task: Task, placement: Placement, level: int) -> Running:
        """A waiting task takes GPUs at a freeze level."""
        offer = Offer(placement, job_duration_us(task.job, self.cluster, placement, level), level)
        return self.start(task, offer, StartKind.IN_ORDER)

    def change_level(self, run: Running, level: int) -> Running:
        """A running task goes on where it is at another freeze level."""
        task, before = run.task, offer_of(run)
        parts = [*self._parts.get(task.job.id, ()), Part(task.done, before, worked_us(run, self.now_us))]
        self._halt(run, 0)
        duration_us = job_duration_us(task.job, self.cluster, before.placement, level)
        self._parts[task.job.id] = parts
        return self._run(task, Offer(before.placement, duration_us, level), run.kind, self.level_change_us)

    def _run(self, task: Task, offer: Offer, kind: StartKind, restart_us: int) -> Running:
        """A task runs on the GPUs of an offer from now on."""
        loads, now_us = offer.placement.loads, self.now_us
        self.free.take(loads)
        gpus, end_us = task.shape.gpus, now_us + restart_us + offer.duration_us
        if self.elastic:
            gpus = offer.placement.gpus
        if self._unsettled:
            end_us = now_us + restart_us + task.low_of(offer.duration_us)
        run = Running(end_us, task.number, task, loads, gpus, kind, now_us, offer, restart_us)
        insort(self._running, run)
        self.runs[task.job.id] = run
        if kind:
            held = self.out_of_order_gpus = self.out_of_order_gpus + gpus
            if held > self.most_out_of_order_gpus:
                self.most_out_of_order_gpus = held
            if kind is _ON_BUDGET:
                self.budget_gpus += gpus
        if self.outlook is not None:
            self.outlook.start(run)
        self._reservation = None
        if self._offers:
            self._offers.clear()
        return run

    def finish(self, job: str, now_us: int) -> Running:
        """A running job is complete by now, and gives its GPUs back."""
        run = self._release(job)
        if self._learns_service:
            insort(self.served, (now_us, run.held_us(now_us)))
        if self._virtual is not None:
            self._virtual.forget(run.number)
        return run

    def _release(self, job: str) -> Running:
        """A running job gives its GPUs back."""
        run = self.runs.pop(job)
        del self._running[bisect_left(self._running, run)]
        self.free.give(run.loads)
        if run.kind:
            self.out_of_order_gpus -= run.gpus
            if run.kind is _ON_BUDGET or (self.outlook is not None and job in self.outlook.overrun):
                self.budget_gpus -= run.gpus
        if self._reports:
            self._reports.pop(job, None)
        if self._parts:
            self._parts.pop(job, None)
        self._reservation = None
        if self._offers:
            self._offers.clear()
        return run

    def offer_without(self, task: Task, runs: Iterable[Running]) -> Offer | None:
        """GPUs on offer for a task if some runs gave theirs back; None when it does not fit even then."""
        free = self.free.copy()
        for run in runs:
            free.give(run.loads)
        placed = self._place(task, free)
        return None if placed is None else Offer(placed[0], task.duration_us if task.steady else placed[1])

    def evict(self, run: Running) -> None:
        """A running job gives its GPUs back before it is complete, and waits again for what is left of it."""
        self._halt(run, 1)
        self._come_back(run.task)

    def fail(self, run: Running) -> None:
        """A running job loses its GPUs and the work since its last checkpoint, and waits again for what is left."""
        task, job = run.task, run.task.job.id
        saved = saved_by(run, self._parts.get(job, ()), self._reports.get(job), self.now_us, self.cluster)
        self._unsettled = True
        if self._virtual is not None:
            self._virtual.come_back(task)
        try:
            self._halt(run, 1, saved)
        finally:
            self._come_back(task)

    def _come_back(self, task: Task) -> None:
        """A task that has run waits again."""
        self._wait(task)
        renewal_us = self._renewal_us(task)
        if renewal_us is not None and task.past is not None:
            heappush(self._renewals, (self.now_us + max(renewal_us, 1), task.number, task.past.evictions))

    def close(self, server: int) -> None:
        """A server takes no more starts; nothing on it counts as free until it is open again."""
        self.free.close(server, self.cluster.capacities[server])
        self._changed()

    def reopen(self, server: int) -> None:
        """A closed server takes starts again."""
        self.free.open(server, self.cluster.capacities[server])
        self._changed()

    def _changed(self) -> None:
        self.event_us, self._reservation = self.now_us, None
        self._offers.clear()

    def _halt(self, run: Running, evictions: int, saved: int | None = None) -> Past:
        """A run ends before its job is complete; the task is as large as what is left.

        It keeps what it has done by now, or so much of it as is told to be saved.
        """
        task, past, now_us = run.task, run.task.past, self.now_us
        done, frozen = self.done(task) if saved is None else saved, self.frozen(task)
        if self.outlook is None:
            done = min(done, most_done(task))
        self._release(task.job.id)
        task.past = Past(
            first_start_us=run.start_us if past is None else past.first_start_us,
            evicted_us=now_us,
            evictions=evictions + (0 if past is None else past.evictions),
            held_us=run.held_us(now_us),
            done=done,
            frozen=tuple(clipped(frozen, done)),
        )
        if self.outlook is not None:
            self.outlook.evict(run)
        else:
            keep(task, done - (0 if past is None else past.done), self.cluster)
        return task.past

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


def _never(task: Task) -> None:
    """No evicted task starts afresh."""
