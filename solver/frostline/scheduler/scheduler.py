"""The live scheduler: jobs and completions go in, starts come out.

The same object serves a real cluster and the simulator, which only feeds it events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.placement.free_gpus import Shape, shape_of
from frostline.placement.place import METHODS
from frostline.policies.base import WAIT, Policy, Start, Wait
from frostline.policies.registry import make_policy
from frostline.policies.task import Task
from frostline.problem.cluster import Cluster
from frostline.problem.job import Job
from frostline.problem.order import natural_key
from frostline.problem.refusal import Refusal, never_fits
from frostline.problem.schedule import Segment
from frostline.scheduler.state import State
from frostline.units import as_finite, as_int, instant_us, seconds

__all__ = ["Decision", "Scheduler"]

_LATEST_S = 1e18


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to do now.

    Parameters
    ----------
    starts : tuple of Segment
        Jobs to start at once, with their GPUs and the expected end.
    wake_s : float or None
        Call :meth:`Scheduler.advance` by then, even if nothing happens before.
    """

    starts: tuple[Segment, ...]
    wake_s: float | None


class Scheduler:
    """Schedules jobs on a cluster as they come.

    Events of one instant may be reported in any order before :meth:`advance`; they are handled in the order finish,
    arrive, virtual completion, decide, and equal ones by (release, id).

    Parameters
    ----------
    cluster : Cluster
        The servers.
    policy : Policy or str
        A policy, or its name with parameters, such as ``"asrpt"`` or ``"sjf:discipline=strict"``.
    expected : iterable of Job
        Jobs that stand for the shapes to expect; policies with a budget need them to know how many GPUs are surely
        busy while a job is blocked. Without them a job may be as wide as the cluster. Shapes that arrive unexpected
        count from then on.
    placement : str
        Placement method for training jobs that no server can hold alone, one of
        :data:`~frostline.placement.place.METHODS`.

    Raises
    ------
    UnknownNameError
        Unknown policy or placement method.

    Examples
    --------
    >>> from frostline.problem import Fixed
    >>> scheduler = Scheduler(Cluster.uniform(1, gpus=8), "fifo")
    >>> scheduler.submit(Job(id="a", release_s=0, work=Fixed(duration_s=10), gpus=8))
    >>> scheduler.submit(Job(id="b", release_s=5, work=Fixed(duration_s=10), gpus=8))
    >>> scheduler.submit(Job(id="wide", release_s=5, work=Fixed(duration_s=10), gpus=9)).text
    "job 'wide': gpus=9 but the whole cluster has 8"
    >>> [(start.job, start.end_s) for start in scheduler.advance(0).starts]
    [('a', 10.0)]
    >>> scheduler.advance(5).starts
    ()
    >>> scheduler.finish("a")
    >>> [(start.job, start.start_s) for start in scheduler.advance(10).starts]
    [('b', 10.0)]
    """

    def __init__(
        self, cluster: Cluster, policy: Policy | str, expected: Iterable[Job] = (), *, placement: str = "local-search"
    ) -> None:
        if placement not in METHODS:
            raise UnknownNameError("placement method", str(placement), METHODS)
        self.cluster = cluster
        self.policy = make_policy(policy) if isinstance(policy, str) else policy
        self._state = State(cluster, self.policy, _shapes(cluster, expected), placement)
        self._coming: list[tuple[int, int, Task]] = []  # heap of (release, order of submission, task)
        self._arriving: list[Task] = []  # whose release time has come, the first one last
        self._finished: dict[str, None] = {}
        self._known: set[str] = set()
        self._begun = False

    def submit(self, job: Job) -> Refusal | None:
        """Hand in a job; it arrives with the next :meth:`advance` at or after its release time.

        Returns
        -------
        Refusal or None
            Why the job can never run; None when it is accepted.

        Raises
        ------
        InvalidValueError
            The id was submitted before, or the job might run for over 9e9 s on GPUs that it may be given.
        UnknownNameError
            A GPU type of the cluster does not have the precision of a training job.
        """
        if job.id in self._known:
            raise InvalidValueError(f"job {job.id!r}", "id", job.id, "was submitted before")
        refusal = never_fits(job, self.cluster)
        if refusal is None:
            task = self._state.task(job)
            heappush(self._coming, (task.release_us, len(self._known), task))
            self._known.add(job.id)
        return refusal

    def finish(self, job: str) -> None:
        """Report that a running job has completed; its GPUs are free from the next :meth:`advance` on.

        Raises
        ------
        InvalidValueError
            The job is not running.
        """
        if not self._state.is_running(job) or job in self._finished:
            raise InvalidValueError("scheduler", "finish", job, "is not a running job")
        self._finished[job] = None

    def advance(self, now_s: float) -> Decision:
        """Move the clock to ``now_s``, handle what was reported, and decide.

        Whatever a policy raises reaches the caller, but never instead of a start: then the decision says to wake at
        once, and the next call raises.

        Raises
        ------
        InvalidValueError
            ``now_s`` lies before the last call, or is no time, or the policy decides what cannot be done.
        """
        starts, wake_us = self.advance_us(instant_us(as_finite(now_s, "scheduler", "now_s", maximum=_LATEST_S)))
        return Decision(starts=tuple(starts), wake_s=None if wake_us is None else seconds(wake_us))

    def decide(self) -> Decision:
        """Decide again at the present instant; with nothing new there is nothing to start."""
        starts, wake_us = self._decide()
        return Decision(starts=tuple(starts), wake_s=None if wake_us is None else seconds(wake_us))

    def advance_us(self, now_us: int) -> tuple[list[Segment], int | None]:
        """:meth:`advance` in whole microseconds: starts, and when to wake."""
        state = self._state
        if type(now_us) is not int:
            now_us = as_int(now_us, "scheduler", "now_us")
        if self._begun and now_us < state.now_us:
            raise InvalidValueError("scheduler", "now_us", now_us, f"lies before the present {state.now_us}")
        self._begun = True
        if self._finished:
            for job in self._finished:
                state.finish(job)
            self._finished.clear()
        state.advance(now_us)
        if self._coming or self._arriving:
            self._arrive()
        return self._decide()

    def _arrive(self) -> None:
        """Let the submitted jobs whose release time has come arrive, in order."""
        coming, state = self._coming, self._state
        while coming and coming[0][0] <= state.now_us:
            self._arriving.append(heappop(coming)[2])
        if len(self._arriving) > 1:
            self._arriving.sort(key=lambda task: (task.release_us, natural_key(task.job.id)), reverse=True)
        while self._arriving:
            state.arrive(self._arriving[-1])
            self._arriving.pop()

    def _decide(self) -> tuple[list[Segment], int | None]:
        """Ask the policy until it waits; each decision sees the last."""
        state, decide = self._state, self.policy.decide
        starts: list[Segment] = []
        try:
            while state.waiting.tasks:
                decision = decide(state)
                if isinstance(decision, Start):
                    starts.append(self._start(decision))
                elif decision is WAIT:
                    break
                else:
                    return starts, self._wake_us(decision)
        except Exception:
            if not starts:
                raise
            return starts, state.now_us
        return starts, self._coming[0][0] if self._coming else None

    def _start(self, decision: Start) -> Segment:
        """Start a task if it waits and fits; else nothing has changed."""
        state, task = self._state, decision.task
        waits = task in state.waiting
        offer = state.offer(task) if waits else None
        if offer is None:
            rule = f"was started by the policy but {'does not fit' if waits else 'is not waiting'}"
            raise InvalidValueError(f"policy {self.policy.name!r}", "start", task.job.id, rule)
        state.start(task, offer, decision.on_budget)
        return Segment(task.job.id, state.now_us, state.now_us + offer.duration_us, offer.placement)

    def _wake_us(self, wait: Wait) -> int | None:
        """Earliest of the policy's wish and the next release of a submitted job."""
        if not isinstance(wait, Wait):
            raise InvalidValueError(f"policy {self.policy.name!r}", "decision", wait, "must be Start or Wait")
        until_us, now_us = wait.until_us, self._state.now_us
        if until_us is not None and until_us <= now_us:
            rule = f"must lie after the present {now_us}"
            raise InvalidValueError(f"policy {self.policy.name!r}", "until_us", until_us, rule)
        if not self._coming:
            return until_us
        release_us = self._coming[0][0]
        return release_us if until_us is None else min(until_us, release_us)


def _shapes(cluster: Cluster, expected: Iterable[Job]) -> Iterator[Shape]:
    """Shapes of the expected jobs that fit; without any, of a job as wide as the cluster."""
    shapes = {shape_of(job, cluster) for job in expected if never_fits(job, cluster) is None}
    if not shapes and cluster.gpus:
        shapes = {Shape(cluster.gpus, len(cluster.servers))}
    yield from shapes
