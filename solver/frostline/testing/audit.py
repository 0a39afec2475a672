"""One instance under one policy, with every step looked at: which rules are broken, and how."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from heapq import heappop
from types import MappingProxyType

from frostline.policies.base import Policy
from frostline.policies.guarantee import check_guarantee
from frostline.problem.instance import Instance
from frostline.problem.job import Elastic, Job
from frostline.problem.refusal import Refusal, never_fits
from frostline.problem.schedule import Schedule, Segment
from frostline.scheduler.scheduler import Decision, Scheduler
from frostline.simulation.truth import Truth
from frostline.testing.watched import Watched, counted_gpus
from frostline.units import instant_us, seconds
from frostline.verify.schedule import FaultKind, check_schedule

__all__ = ["RULES", "Auditor", "SchedulerFactory"]

RULES: Mapping[str, str] = MappingProxyType(
    {
        "legal": "nothing is raised, and the scheduler can do all that is decided",
        "read-only": "deciding leaves the view as it was",
        "stateless": "asked twice about the same, the answer is the same",
        "fixed-point": "with nothing new, nothing is started and nobody evicted",
        "completion": "every job that fits the cluster runs to its end",
        "refusals": "a job that never fits is refused and never started, and no other is",
        "gang": "a job holds all its GPUs, on servers that its locality allows, or none",
        "durations": "a run ends when its work is done where it was placed, and that end is announced",
        "schedule": "no GPU is given away twice, nobody starts before its release: the checker finds no fault",
        "deterministic": "asked again or more often, in another order or under other names, it makes the same schedule",
        "fewest-victims": "nobody is evicted who could be spared",
        "no-ping-pong": "with nothing new, nobody is evicted twice before it has done anything, or moved to and fro",
        "strict": "nobody overtakes the first job in order",
        "work-conserving": "nobody waits who fits",
        "guarantee": "the bound that the policy promises holds for every job",
    }
)
"""What is checked, by name. The last three are claims that a policy need not make."""

SchedulerFactory = Callable[..., Scheduler]
"""Called as ``Scheduler(cluster, policy, expected=jobs)``."""

_MOST_STEPS = 1000
_MOST_IDLE_STEPS = 100
_RULE_OF = {
    FaultKind.MISSING_JOB: "completion",
    FaultKind.REFUSED_BUT_FITS: "refusals",
    FaultKind.REFUSED_BUT_RAN: "refusals",
    FaultKind.WRONG_GPUS: "gang",
    FaultKind.UNKNOWN_SERVER: "gang",
    FaultKind.LOCALITY: "gang",
    FaultKind.WRONG_DURATION: "durations",
}


class _BrokenError(Exception):
    """A rule is broken in a way that leaves nothing to go on with."""

    def __init__(self, rule: str, text: str) -> None:
        super().__init__(text)
        self.rule, self.text = rule, text


@dataclass(frozen=True, slots=True, kw_only=True)
class Auditor:
    """Runs instances under a policy and tells the rules that are broken.

    Parameters
    ----------
    policy : Policy
        The policy.
    claims : frozenset of str
        ``strict`` and ``work-conserving``, where it claims to be.
    scheduler : callable
        Makes schedulers.

    Examples
    --------
    >>> from frostline.policies import make_policy
    >>> from frostline.problem import Cluster, Fixed
    >>> gpus = {"a": 1, "b": 2, "c": 1}
    >>> jobs = [Job(id=i, release_s=0, work=Fixed(duration_s=1), gpus=gpus[i]) for i in gpus]
    >>> auditor = Auditor(policy=make_policy("sjf"), claims=frozenset({"strict", "work-conserving"}))
    >>> auditor.broken(Instance(cluster=Cluster.pool(2), jobs=jobs))
    {'strict': "at 0 s it starts job 'c' although job 'b' is before it"}
    """

    policy: Policy
    claims: frozenset[str] = frozenset()
    scheduler: SchedulerFactory = Scheduler

    def broken(self, instance: Instance, *, one_run: bool = False) -> dict[str, str]:
        """Rules that are broken on an instance, and how; those that one run cannot show only where no other is."""
        policy = _copy(self.policy)
        watched = Watched(policy, strict="strict" in self.claims, work_conserving="work-conserving" in self.claims)
        try:
            schedule = self._run(instance, watched, looks=True)
        except _BrokenError as broken:
            watched.note(broken.rule, broken.text)
            return watched.found
        for rule, text in _faults(policy, instance, schedule):
            watched.note(rule, text)
        if not watched.found and not one_run:
            for rule, text in self._differences(policy, instance, schedule):
                watched.note(rule, text)
        return watched.found

    def _run(
        self, instance: Instance, policy: Policy, *, looks: bool = False, order: Callable[[Job], int] | None = None
    ) -> Schedule:
        watched = policy if isinstance(policy, Watched) else None
        try:
            scheduler = self.scheduler(instance.cluster, policy, expected=instance.jobs)
            return _Player(instance, scheduler, watched).play(looks, order)
        except _BrokenError:
            raise
        except Exception as error:
            raise _BrokenError("legal", f"{type(error).__name__}: {error}") from error

    def _differences(self, policy: Policy, instance: Instance, schedule: Schedule) -> Iterator[tuple[str, str]]:
        """Runs that ought to be the same and are not."""
        names = {f"x{number}": job.id for number, job in enumerate(instance.jobs, start=1)}
        renamed = instance.replace(jobs=[job.replace(id=name) for name, job in zip(names, instance.jobs, strict=True)])
        backwards = {job.id: -number for number, job in enumerate(instance.jobs)}
        attempts: list[tuple[str, Callable[[], Schedule]]] = [
            ("in a second run", lambda: self._run(instance, policy)),
            (
                "where all jobs are handed in at once, the last one first,",
                lambda: self._run(instance, policy, order=lambda job: backwards[job.id]),
            ),
            ("where the jobs have other names", lambda: _under(names, self._run(renamed, policy))),
        ]
        try:
            plain = self._run(instance, policy)
            for when, attempt in attempts:
                difference = _difference(plain, attempt())
                if difference is not None:
                    yield "deterministic", f"{when} {difference}"
                    return
        except _BrokenError as broken:
            yield "deterministic", f"in a second run {broken.text}"
            return
        difference = _difference(plain, schedule)
        if difference is not None:
            yield "deterministic", f"where it is asked half-way between events, too, {difference}"


def _faults(policy: Policy, instance: Instance, schedule: Schedule) -> Iterator[tuple[str, str]]:
    """What is wrong with a schedule."""
    for fault in check_schedule(instance, schedule).faults:
        yield _RULE_OF.get(fault.kind, "schedule"), fault.text
    report = check_guarantee(policy, instance, schedule)
    if report is not None and not report.holds and report.worst_slack_s is not None:
        late_s = f"{-report.worst_slack_s:.15g}"
        yield "guarantee", f"job {report.worst_job!r} is {late_s} s later than the {report.form} form promises"


def _copy(policy: Policy) -> Policy:
    """A policy without what it may have kept from other instances, where it can be copied."""
    try:
        return deepcopy(policy)
    except Exception:
        return policy


class _Player:
    """Feeds a scheduler an instance, event by event."""

    def __init__(self, instance: Instance, scheduler: Scheduler, watched: Watched | None) -> None:
        self._instance, self._scheduler, self._watched = instance, scheduler, watched
        self._jobs = {job.id: job for job in instance.jobs}
        self._elastic = bool(getattr(scheduler.policy, "elastic", False))
        self._truth = Truth(instance, scheduler)
        self._refused: list[Refusal] = []
        self._wake_us: int | None = None

    def play(self, looks: bool, order: Callable[[Job], int] | None) -> Schedule:
        """Schedule of the instance.

        Parameters
        ----------
        looks : bool
            Whether the scheduler is asked for more between the events, too.
        order : callable, optional
            Key of the order in which the jobs are handed in before the start; by default at their release.
        """
        coming = [(instant_us(job.release_s), job) for job in reversed(self._instance.jobs)]
        if order is not None:
            for _, job in sorted(coming, key=lambda item: order(item[1])):
                self._submit(job)
        ends, idle = self._truth.ends, 0
        for _ in range(_MOST_STEPS):
            now_us = self._next_us(coming)
            if now_us is None:
                return self._schedule()
            idle = 0 if ends or coming else idle + 1
            if idle > _MOST_IDLE_STEPS:
                raise _BrokenError("completion", f"it waits {idle} times although nothing runs and nobody will come")
            while ends and ends[0][0] == now_us:
                self._truth.finish(heappop(ends)[2])
            while coming and coming[-1][0] == now_us:
                job = coming.pop()[1]
                if order is None:
                    self._submit(job)
            self._follow(self._ask(now_us), now_us)
            if looks:
                self._look_again(now_us, coming)
        raise _BrokenError("completion", f"after {_MOST_STEPS} decisions not all jobs have ended")

    def _next_us(self, coming: list[tuple[int, Job]]) -> int | None:
        """When something happens next."""
        ends = self._truth.ends
        times = [self._wake_us, ends[0][0] if ends else None, coming[-1][0] if coming else None]
        return min((time_us for time_us in times if time_us is not None), default=None)

    def _submit(self, job: Job) -> None:
        refusal, never = self._truth.submit(job), never_fits(job, self._instance.cluster)
        if never is not None and refusal is None:
            raise _BrokenError("refusals", f"{never.text}, and yet it is not refused")
        if refusal is not None:
            self._refused.append(refusal)

    def _ask(self, now_us: int, *, again: bool = False) -> Decision:
        """Decision of an instant, or another one of the same; what is raised breaks a rule."""
        scheduler = self._scheduler
        try:
            decision = scheduler.decide() if again else scheduler.advance(seconds(now_us))
        except Exception as error:
            self._give_up()
            raise _BrokenError("legal", f"at {seconds(now_us):.15g} s {type(error).__name__}: {error}") from error
        self._give_up()
        self._wake_us = None if decision.wake_s is None else instant_us(decision.wake_s)
        return decision

    def _give_up(self) -> None:
        """End the run where nothing sound can come of it any more, or no end."""
        for rule in ("legal", "read-only", "stateless", "no-ping-pong"):
            if self._watched is not None and rule in self._watched.found:
                raise _BrokenError(rule, self._watched.found[rule])

    def _follow(self, decision: Decision, now_us: int) -> None:
        """Do what is decided."""
        for start in decision.starts:
            self._check_gang(start)
        segments = self._truth.segments
        before = len(segments)
        try:
            self._truth.follow(decision.starts, decision.evictions, now_us)
        except (KeyError, IndexError, ValueError) as error:
            text = f"at {seconds(now_us):.15g} s a job is evicted that does not run, or placed where it cannot run"
            raise _BrokenError("schedule", f"{text}: {error}") from error
        for start, truth in zip(decision.starts, segments[before:], strict=True):
            if start.end_us != truth.end_us or start.start_us != now_us:
                text = f"at {seconds(now_us):.15g} s job {start.job!r} is announced to run from {start.start_s:.15g} s"
                until = f"to {start.end_s:.15g} s, and would end at {truth.end_s:.15g} s"
                raise _BrokenError("durations", f"{text} {until}")

    def _check_gang(self, start: Segment) -> None:
        """A start is of a job there is, on as many GPUs as it asks for or may take, of servers that there are."""
        job, held, servers = self._jobs.get(start.job), start.placement.gpus, len(self._instance.cluster.servers)
        if job is None:
            raise _BrokenError("schedule", f"job {start.job!r} is started, which there is not")
        if self._elastic and isinstance(job.work, Elastic):
            if held not in job.work.widths:
                widths = ", ".join(map(str, job.work.widths))
                text = f"at {start.start_s:.15g} s job {job.id!r} is given {counted_gpus(held)}, and can have {widths}"
                raise _BrokenError("gang", text)
        elif held != job.gpus:
            text = f"at {start.start_s:.15g} s job {job.id!r} is given {held} of the {counted_gpus(job.gpus)}"
            raise _BrokenError("gang", f"{text} that it asks for")
        if any(not 0 <= server < servers for server, _ in start.placement.loads):
            raise _BrokenError(
                "gang", f"at {start.start_s:.15g} s job {job.id!r} is placed on a server that there is not"
            )

    def _look_again(self, now_us: int, coming: list[tuple[int, Job]]) -> None:
        """Ask once more at once, and half-way to the next event."""
        self._check_quiet(self._ask(now_us, again=True), f"at {seconds(now_us):.15g} s, asked once more,")
        next_us = self._next_us(coming)
        half_us = now_us if next_us is None else (now_us + next_us) // 2
        if half_us > now_us:
            self._check_quiet(self._ask(half_us), f"at {seconds(half_us):.15g} s, with nothing new,")

    def _check_quiet(self, decision: Decision, when: str) -> None:
        for job in decision.evictions:
            raise _BrokenError("fixed-point", f"{when} job {job!r} is evicted")
        for start in decision.starts:
            raise _BrokenError("fixed-point", f"{when} job {start.job!r} is started")

    def _schedule(self) -> Schedule:
        scheduler = self._scheduler
        return Schedule.of(
            [piece for segment in self._truth.segments for piece in scheduler.pieces(segment)],
            self._refused,
            scheduler.policy.name,
            scheduler.restart_us,
            level_change_us=scheduler.level_change_us,
        )


def _difference(expected: Schedule, found: Schedule) -> str | None:
    """Where a schedule differs from another one, in words."""
    if expected.segments == found.segments:
        return None
    for one, two in zip(expected.segments, found.segments, strict=False):
        if one != two:
            return f"{_told(two)}, where otherwise {_told(one)}"
    return f"there are {len(found.segments)} runs in place of {len(expected.segments)}"


def _told(segment: Segment) -> str:
    servers = ", ".join(f"{counted_gpus(gpus)} of server {server}" for server, gpus in segment.placement.loads)
    return f"job {segment.job!r} runs from {segment.start_s:.15g} s to {segment.end_s:.15g} s on {servers}"


def _under(names: Mapping[str, str], schedule: Schedule) -> Schedule:
    """A schedule with other names of the jobs."""
    segments = [segment._replace(job=names[segment.job]) for segment in schedule.segments]
    return Schedule.of(segments, schedule.refused, schedule.policy, schedule.restart_us)
