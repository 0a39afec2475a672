"""The live scheduler: jobs, progress and completions go in, starts come out.

The same object serves a real cluster and the simulator, which only feeds it events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from heapq import heapify, heappop, heappush
from typing import Self, TypeVar

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.placement.free_gpus import Shape, shape_of
from frostline.placement.place import METHODS
from frostline.policies.base import WAIT, PlanningPolicy, Policy, Preempt, Reallocate, Start, Wait
from frostline.policies.guarantee import Beliefs
from frostline.policies.registry import make_policy
from frostline.policies.task import Task
from frostline.problem.cluster import Cluster
from frostline.problem.job import Fixed, Job
from frostline.problem.order import natural_key
from frostline.problem.refusal import Refusal, never_fits
from frostline.problem.schedule import Segment
from frostline.scheduler.carry_out import preempt, reallocate, start
from frostline.scheduler.checks import LATEST_S, check_size, not_running, stated
from frostline.scheduler.decision import Decision, decision_of
from frostline.scheduler.outages import ServerStates, stranded
from frostline.scheduler.outlook import Outlook, Predictor
from frostline.scheduler.progress import iterations_of, offer_of
from frostline.scheduler.snapshot import Snapshot
from frostline.scheduler.state import State
from frostline.units import US_PER_S, as_finite, as_int, instant_us

__all__ = ["Decision", "Scheduler"]

_S = TypeVar("_S", bound="Scheduler")


class Scheduler:
    """Schedules jobs on a cluster as they come.

    Events of one instant may be reported in any order before :meth:`advance`; they are handled in the order finish,
    withdraw, fail, recover, drain, arrive, virtual completion, decide, and equal ones by (release, id). Only of
    failures and recoveries of one server the last one tells whether it is down then.

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
    predictor : Predictor, optional
        Predicts the size of every job when it arrives, all jobs of one instant in one batch; what a job itself says
        of its size is then not looked at. Priorities follow the median. A job that may run before a reserved start is
        taken at its largest, the running ones at their smallest, and one that outlives its expected end is predicted
        again. Without a predictor sizes are taken as they are submitted.
    restart_s : float, optional
        Seconds that a job takes to be where it was when it runs again after a failure, 0 by default; a policy that
        evicts tells its own.

    Attributes
    ----------
    failed : tuple of str
        Jobs that have lost their GPUs to failures, as the last decision told.

    Raises
    ------
    UnknownNameError
        Unknown policy or placement method.
    InvalidValueError
        A predictor, and a policy that must know the sizes; or a ``restart_s`` beside that of the policy.

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
        self,
        cluster: Cluster,
        policy: Policy | str,
        expected: Iterable[Job] = (),
        *,
        placement: str = "local-search",
        predictor: Predictor | None = None,
        restart_s: float | None = None,
    ) -> None:
        if placement not in METHODS:
            raise UnknownNameError("placement method", str(placement), METHODS)
        self.cluster = cluster
        self.policy = make_policy(policy) if isinstance(policy, str) else policy
        self._planner = self.policy if isinstance(self.policy, PlanningPolicy) else None
        if predictor is not None and (self._planner is not None or getattr(self.policy, "elastic", False)):
            rule = f"must be None: policy {self.policy.name!r} must know the sizes"
            raise InvalidValueError("scheduler", "predictor", type(predictor).__name__, rule)
        restart_s = stated(restart_s, self.policy)
        self._state = State(cluster, self.policy, _shapes(cluster, expected), placement, predictor, restart_s)
        self._servers = ServerStates(cluster)
        self.failed: tuple[str, ...] = ()
        self._coming: list[tuple[int, int, Task]] = []  # heap of (release, order of submission, task)
        self._arriving: list[Task] = []  # whose release time has come, the first one last
        self._finished: dict[str, tuple[float | None, str]] = {}
        self._progressed: dict[str, tuple[int, Fraction | None]] = {}
        self._submitted: dict[str, Job] = {}  # jobs that are scheduled as the policy has planned them, as submitted
        self._begun_us: dict[str, int] = {}  # when those of them have first started that have
        self._known: dict[str, Task | None] = {}  # by job that was accepted, without a task once it has ended
        self._withdrawn: list[Task] = []
        self._begun = False

    @property
    def outlook(self) -> Outlook | None:
        """What is believed of the jobs, and what has become of that; None where sizes are not predicted."""
        return self._state.outlook

    @property
    def restart_us(self) -> int | None:
        """By how much a job that has lost its GPUs runs longer when it runs again.

        None where the policy evicts nobody and no restart was stated, so that it is 0 after a failure.
        """
        return self._state.pause_us

    @property
    def level_change_us(self) -> int:
        """By how much a job runs longer where it goes on at another freeze level."""
        return self._state.level_change_us

    @property
    def beliefs(self) -> Beliefs | None:
        """What a guarantee depends on where sizes are predicted; None where they are not."""
        outlook = self._state.outlook
        if outlook is None:
            return None
        return Beliefs(
            jobs=outlook.believed, longest=outlook.longest, out_of_order_gpus=self._state.most_out_of_order_gpus
        )

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
            task = self._state.task(self._as_planned(job))
            heappush(self._coming, (task.release_us, len(self._known), task))
            self._known[job.id] = task
        return refusal

    def _as_planned(self, job: Job) -> Job:
        """The job as it is scheduled."""
        planned = job if self._planner is None else self._planner.planned(job, self.cluster)
        if planned is not job:
            self._submitted[job.id] = job
        return planned

    def pieces(self, start: Segment) -> tuple[Segment, ...]:
        """A start, cut where the freeze level changes if the policy has planned the whole run of the job.

        A planned job goes on from piece to piece where it is, without further decisions; at the start of every piece
        but the first it takes :attr:`level_change_us` to change its level. The first one begins with the restart of a
        job that has failed. Of a job that was not planned the start itself is the only piece.
        """
        job = self._submitted.get(start.job)
        if job is None or self._planner is None:
            return (start,)
        again = start.start_us > self._begun_us.get(start.job, start.start_us)
        works = start._replace(start_us=start.start_us + (self.restart_us or 0)) if again else start
        first, *others = self._planner.pieces(job, self.cluster, works)
        return (first._replace(start_us=start.start_us), *others)

    def finish(self, job: str, size: float | None = None, status: str = "") -> None:
        """Report that a running job has completed; its GPUs are free from the next :meth:`advance` on.

        Parameters
        ----------
        job : str
            Its identifier.
        size : float, optional
            Iterations that it did, or seconds where its work has no iterations, for the predictor to learn from. Of
            work without iterations the run time is taken where none is given.
        status : str
            How it ended, empty where unknown.

        Raises
        ------
        InvalidValueError
            The job is not running, the size is no positive number, or there is none although there is a predictor
            and the job has iterations.
        """
        runs = self._state.runs
        if job not in runs or job in self._finished:
            raise not_running(job, "finish")
        if size is not None or self._state.outlook is not None:
            check_size(runs[job].task.job, size)
        self._finished[job] = size, status

    def withdraw(self, job: str) -> None:
        """Take back a job that does not run; from the next :meth:`advance` on it waits no more.

        It may have run before and lost its GPUs, or be yet to arrive. The virtual machine of A-SRPT keeps its work, so
        that nobody becomes due earlier. The end of a running job is reported by :meth:`finish`, whoever ended it.

        Raises
        ------
        InvalidValueError
            The job runs, has ended or was withdrawn before, or was never accepted.

        Examples
        --------
        >>> from frostline.problem import Fixed
        >>> scheduler = Scheduler(Cluster.uniform(1, gpus=8), "fifo")
        >>> for name in "abc":
        ...     scheduler.submit(Job(id=name, release_s=0, work=Fixed(duration_s=10), gpus=8))
        >>> _ = scheduler.advance(0)
        >>> scheduler.withdraw("b")
        >>> scheduler.finish("a")
        >>> [start.job for start in scheduler.advance(10).starts]
        ['c']
        """
        task = self._known.get(job)
        if task is None or job in self._state.runs:
            raise InvalidValueError("scheduler", "withdraw", job, "must be a job that waits or is yet to arrive")
        self._known[job] = None
        self._withdrawn.append(task)

    def progress(self, job: str, iterations: int, seconds_per_iteration: float | None = None) -> None:
        """Report how far a running job is; its expected end moves with the next :meth:`advance`, as of that instant.

        The job then lasts as many iterations as it has left, which is known, or as are left by the low quantile of
        what is believed where sizes are predicted.

        Parameters
        ----------
        job : str
            Its identifier.
        iterations : int
            Iterations done so far, in all its runs.
        seconds_per_iteration : float, optional
            Seconds that an iteration takes from now on; by default what its placement allows.

        Raises
        ------
        InvalidValueError
            The job is not running or its work has no iterations, or the numbers are impossible.
        """
        run = self._state.runs.get(job)
        if run is None or job in self._finished:
            raise not_running(job, "progress")
        subject, task, submitted = f"job {job!r}", run.task, self._submitted.get(job, run.task.job)
        if isinstance(submitted.work, Fixed):
            raise InvalidValueError(subject, "iterations", iterations, "cannot be told of work without iterations")
        iterations = as_int(iterations, subject, "iterations", 0)
        total = task.done + iterations_of(submitted)
        if not self._state.uncertain and iterations > total:
            raise InvalidValueError(subject, "iterations", iterations, f"must be at most {total}")
        pace: Fraction | None = None
        if seconds_per_iteration is not None:
            pace = Fraction(repr(as_finite(seconds_per_iteration, subject, "seconds_per_iteration"))) * US_PER_S
            if pace <= 0:
                raise InvalidValueError(subject, "seconds_per_iteration", seconds_per_iteration, "must be above 0")
        self._progressed[job] = iterations, pace

    def report_metric(self, job: str, realised: float, expected: float) -> None:
        """Report by how much the metric of a running job has improved since its last report.

        What freezing is believed to cost it is then scaled (:class:`~frostline.freezing.ProgressScale`), by policies
        that look at :meth:`~frostline.policies.base.View.scale`.

        Parameters
        ----------
        job : str
            Its identifier.
        realised : float
            Improvement, in any one unit, positive where the metric got better, and what frozen layers are believed to
            have cost it since then, added back.
        expected : float
            Improvement that the same stretch of training brings without freezing.

        Raises
        ------
        InvalidValueError
            The job is not running, or a number is not finite.
        """
        if job not in self._state.runs or job in self._finished:
            raise not_running(job, "report_metric")
        self._state.report_metric(job, realised, expected)

    def fail(self, server: str) -> None:
        """Report that a server has failed; it takes effect with the next :meth:`advance`.

        Every job that holds GPUs of it loses all its GPUs, on every server, and the work since its last checkpoint
        (:attr:`~frostline.problem.Job.checkpoint_s`), and waits again. Nothing is started there until it recovers. One
        that is down and was to recover by the same instant stays down.

        Raises
        ------
        UnknownNameError
            There is no such server.
        InvalidValueError
            It is down already, and no recovery was reported of it before.

        Examples
        --------
        >>> from frostline.problem import Fixed
        >>> scheduler = Scheduler(Cluster.uniform(2, gpus=4), "fifo")
        >>> scheduler.submit(Job(id="a", release_s=0, work=Fixed(duration_s=100), gpus=4, checkpoint_s=30))
        >>> [scheduler.cluster.servers[m].id for m in scheduler.advance(0).starts[0].placement.servers]
        ['s0']
        >>> scheduler.fail("s0")
        >>> decision = scheduler.advance(70)
        >>> decision.failed, [(start.job, start.placement.servers, start.end_s) for start in decision.starts]
        (('a',), [('a', (1,), 110.0)])
        """
        self._servers.fail(server)

    def recover(self, server: str) -> None:
        """Report that a server that was down or drained takes jobs again, from the next :meth:`advance` on.

        One that has failed and recovered by the same instant has failed: its jobs start again, once, maybe there.

        Raises
        ------
        UnknownNameError
            There is no such server.
        InvalidValueError
            It is up, and no failure was reported of it before.
        """
        self._servers.recover(server)

    def drain(self, server: str) -> None:
        """Report that a server is to take no more starts, from the next :meth:`advance` on; its jobs stay.

        Raises
        ------
        UnknownNameError
            There is no such server.
        InvalidValueError
            It is not up.
        """
        self._servers.drain(server)

    @property
    def down(self) -> tuple[str, ...]:
        """Servers that have failed and not recovered."""
        return self._servers.names(self._servers.down)

    @property
    def drained(self) -> tuple[str, ...]:
        """Servers that are drained."""
        return self._servers.names(self._servers.drained)

    @property
    def waiting(self) -> tuple[str, ...]:
        """Jobs that have arrived and hold no GPUs, in order of arrival."""
        tasks = self._state.waiting.tasks
        return tuple(tasks[number].job.id for number in sorted(tasks))

    @property
    def stranded(self) -> tuple[str, ...]:
        """Those of them that no others could make room for: they need servers that are down or drained."""
        return stranded(self._state)

    def snapshot(self) -> Snapshot[Self]:
        """All that the scheduler knows now, its policy and predictor included; see :meth:`restore`.

        A snapshot can be pickled. Load a pickle only from a source that you trust: to load one can run any code.
        """
        self._state.settle()
        return Snapshot(self)

    @classmethod
    def restore(cls, snapshot: Snapshot[_S]) -> _S:
        """A new scheduler as another one was: from then on, the same calls give the same answers.

        Examples
        --------
        >>> from frostline.problem import Fixed
        >>> scheduler = Scheduler(Cluster.uniform(1), "fifo")
        >>> for name in "ab":
        ...     scheduler.submit(Job(id=name, release_s=0, work=Fixed(duration_s=10), gpus=8))
        >>> _ = scheduler.advance(0)
        >>> again = Scheduler.restore(scheduler.snapshot())
        >>> for either in (scheduler, again):
        ...     either.finish("a")
        ...     print([start.job for start in either.advance(10).starts])
        ['b']
        ['b']
        """
        if not isinstance(snapshot, Snapshot):
            raise InvalidValueError("scheduler", "snapshot", snapshot, "must be a Snapshot")
        return snapshot.restored()

    def advance(self, now_s: float) -> Decision:
        """Move the clock to ``now_s``, handle what was reported, and decide.

        Whatever a policy raises reaches the caller, but never instead of a start or a failure: then the decision says
        to wake at once, and the next call raises.

        Raises
        ------
        InvalidValueError
            ``now_s`` lies before the last call, or is no time, or the policy decides what cannot be done.
        """
        now_us = instant_us(as_finite(now_s, "scheduler", "now_s", maximum=LATEST_S))
        return decision_of(*self.advance_us(now_us), self.failed)

    def decide(self) -> Decision:
        """Decide again at the present instant; with nothing new there is nothing to start."""
        return decision_of(*self._told(), self.failed)

    def advance_us(self, now_us: int) -> tuple[list[Segment], int | None, Sequence[str]]:
        """:meth:`advance` in whole microseconds: starts, when to wake, and evictions; see also :attr:`failed`."""
        state = self._state
        if type(now_us) is not int:
            now_us = as_int(now_us, "scheduler", "now_us")
        if self._begun and now_us < state.now_us:
            raise InvalidValueError("scheduler", "now_us", now_us, f"lies before the present {state.now_us}")
        self._begun = True
        if self._finished:
            state.event_us = now_us
            if state.outlook is None:
                for job in self._finished:
                    state.finish(job, now_us)
                    state.forget(job)
                    self._known[job] = None
                self._finished.clear()
            else:
                self._learn(state.outlook, now_us)
        if self._progressed:
            self._progress(now_us)
        if self._withdrawn:
            self._take_back(now_us)
        servers = self._servers
        if servers.pending:
            state.now_us = now_us
            servers.apply(state)
        state.advance(now_us)
        if self._coming or self._arriving:
            self._arrive()
        return self._told()

    def _learn(self, outlook: Outlook, now_us: int) -> None:
        """Take the GPUs of the finished jobs back, and let the predictor learn from them, in order of arrival."""
        state, finished = self._state, self._finished
        for job in sorted(finished, key=lambda job: state.runs[job].number):
            size, status = finished.pop(job)
            run = state.finish(job, now_us)
            self._known[job] = None
            state.see(now_us, now_us - run.start_us)
            outlook.finish(run, size, status, now_us)

    def _take_back(self, now_us: int) -> None:
        """Let the withdrawn jobs wait no more, and those that are yet to arrive not arrive."""
        state, withdrawn = self._state, self._withdrawn
        absent = {id(task) for task in withdrawn if task not in state.waiting}
        while withdrawn:
            task = withdrawn.pop()
            self._submitted.pop(task.job.id, None)
            self._begun_us.pop(task.job.id, None)
            if id(task) not in absent:
                state.withdraw(task, now_us)
                if state.outlook is not None:
                    state.outlook.withdraw(task.job.id)
        if absent:
            self._coming = [entry for entry in self._coming if id(entry[2]) not in absent]
            heapify(self._coming)
            self._arriving = [task for task in self._arriving if id(task) not in absent]

    def _progress(self, now_us: int) -> None:
        """Move the expected ends of the jobs that have reported their progress, of those that still run."""
        while self._progressed:
            job, (iterations, pace) = self._progressed.popitem()
            if job in self._submitted and job in self._state.runs:
                self._state.ends_in(job, self._planned_left_us(job, iterations, pace), now_us)
            elif job in self._state.runs:
                self._state.report(job, iterations, pace, now_us)

    def _planned_left_us(self, job: str, done: int, pace: Fraction | None) -> int:
        """Microseconds that a planned job still takes: by its plan, or all its iterations at one pace."""
        submitted, offer = self._submitted[job], offer_of(self._state.runs[job])
        if pace is not None or self._planner is None:
            return -((iterations_of(submitted) - done) * (pace or 0) // -1)
        return self._planner.left_us(submitted, self.cluster, offer.placement, done)

    def _arrive(self) -> None:
        """Let the submitted jobs whose release time has come arrive, in order."""
        coming, arriving, state = self._coming, self._arriving, self._state
        now_us = state.now_us
        while coming and coming[0][0] <= now_us:
            arriving.append(heappop(coming)[2])
        if len(arriving) > 1:
            arriving.sort(key=lambda task: (task.release_us, natural_key(task.job.id)), reverse=True)
        if state.outlook is not None:
            state.outlook.arrive([task for task in reversed(arriving) if task.belief is None], now_us)
        while arriving:
            state.arrive(arriving[-1])
            arriving.pop()

    def _told(self) -> tuple[list[Segment], int | None, Sequence[str]]:
        """Decide; :attr:`failed` are then those of whom nobody has been told yet."""
        decided, failed = self._decide(), self._servers.failed
        if self._submitted:
            for run in decided[0]:
                if run.job in self._submitted:
                    self._begun_us.setdefault(run.job, run.start_us)
        if failed or self.failed:
            self.failed = tuple(failed)
            failed.clear()
        return decided

    def _decide(self) -> tuple[list[Segment], int | None, Sequence[str]]:
        """Ask the policy until it waits; each decision sees the last."""
        state, decide = self._state, self.policy.decide
        starts: list[Segment] = []
        evictions: list[str] | tuple[()] = ()
        try:
            while state.waiting.tasks or (state.elastic and state.runs):
                decision = decide(state)
                if isinstance(decision, Start):
                    starts.append(start(state, decision))
                elif decision is WAIT:
                    break
                elif isinstance(decision, Wait):
                    return starts, self._wake_us(decision), evictions
                elif isinstance(decision, Preempt):
                    evictions = evictions or []
                    starts.append(preempt(state, decision, evictions))
                elif isinstance(decision, Reallocate):
                    evictions = evictions or []
                    reallocate(state, decision, starts, evictions)
                    return starts, self._wake_us(decision), evictions
                else:
                    rule = "must be Start, Preempt, Reallocate or Wait"
                    raise InvalidValueError(f"policy {self.policy.name!r}", "decision", decision, rule)
        except Exception:
            if not starts and not evictions and not self._servers.failed:
                raise
            return starts, state.now_us, evictions
        return starts, self._coming[0][0] if self._coming else None, evictions

    def _wake_us(self, wait: Wait | Reallocate) -> int | None:
        """Earliest of the policy's wish and the next release of a submitted job."""
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
