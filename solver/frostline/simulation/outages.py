"""Outages of a simulation: reported to the scheduler when they come, and what they cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from frostline.errors import InvalidValueError
from frostline.policies.base import PlanningPolicy, Policy
from frostline.problem.instance import Instance
from frostline.problem.order import natural_key
from frostline.problem.outage import Downtimes, Outage, check_servers, in_order
from frostline.problem.schedule import Schedule, Segment, goes_on
from frostline.scheduler.scheduler import Scheduler

__all__ = ["NEVER_US", "Losses", "OutageFeed", "checked_outages", "losses"]

NEVER_US = 1 << 100


class OutageFeed:
    """Tells a scheduler when servers fail and come back.

    Parameters
    ----------
    scheduler : Scheduler
        The scheduler.
    outages : sequence of Outage
        Outages as :func:`~frostline.problem.outage.in_order` gives them.

    Attributes
    ----------
    next_us : int
        When the next server fails or comes back, :data:`NEVER_US` for never.
    """

    __slots__ = ("_events", "_scheduler", "next_us")

    def __init__(self, scheduler: Scheduler, outages: Iterable[Outage]) -> None:
        self._scheduler = scheduler
        self._events = sorted(_events(outages), key=lambda event: (-event[0], event[1]))  # the next one last
        self._settle()

    def _settle(self) -> None:
        self.next_us = self._events[-1][0] if self._events else NEVER_US

    def report(self, now_us: int) -> None:
        """Report what happens at this instant."""
        while self._events and self._events[-1][0] == now_us:
            _, fails, server = self._events.pop()
            (self._scheduler.fail if fails else self._scheduler.recover)(server)
        self._settle()

    def goes_on(self, wake_us: int | None) -> bool:
        """Whether something may happen although nothing runs or is to come.

        Not where all waiting jobs need servers that never come back, even if the policy wants to be asked again.
        """
        if self._events:
            return wake_us is not None or bool(self._scheduler.waiting)
        return wake_us is not None and not self._hopeless

    @property
    def _hopeless(self) -> bool:
        return bool(self._scheduler.down) and len(self._scheduler.stranded) == len(self._scheduler.waiting)


def _events(outages: Iterable[Outage]) -> Iterator[tuple[int, bool, str]]:
    """Failures and recoveries as (instant, whether it fails, server); outages that meet are one."""
    merged: dict[str, list[tuple[int, int | None]]] = defaultdict(list)
    for outage in outages:
        stretches = merged[outage.server]
        if stretches and stretches[-1][1] == outage.start_us:
            stretches[-1] = stretches[-1][0], outage.end_us
        else:
            stretches.append((outage.start_us, outage.end_us))
    for server in sorted(merged, key=natural_key):
        for start_us, end_us in merged[server]:
            yield start_us, True, server
            if end_us is not None:
                yield end_us, False, server


def checked_outages(outages: Iterable[Outage], instance: Instance, policy: Policy) -> tuple[Outage, ...]:
    """Outages in order, if an instance can be simulated with them under a policy.

    Raises
    ------
    UnknownNameError
        The cluster has no such server.
    InvalidValueError
        Two outages of a server overlap, or the policy has a plan that no failure may upset.
    """
    ordered = in_order(outages)
    check_servers(ordered, instance.cluster)
    if ordered and hasattr(policy, "whole_plan"):
        rule = f"must be none: policy {policy.name!r} plans for servers that do not fail"
        raise InvalidValueError("simulation", "outages", len(ordered), rule)
    if ordered and isinstance(policy, PlanningPolicy):
        for job in instance.jobs:
            if job.checkpoint_s is not None and policy.planned(job, instance.cluster) is not job:
                rule = f"must be None where there are outages: policy {policy.name!r} plans whole runs"
                raise InvalidValueError(f"job {job.id!r}", "checkpoint_s", job.checkpoint_s, rule)
    return ordered


class Losses(NamedTuple):
    """What failures of servers have cost: runs that they have cut off, and GPU-microseconds of work."""

    runs: int
    gpu_us: int


def losses(instance: Instance, schedule: Schedule) -> Losses:
    """What failures have cost: of each run that was cut off, the work since its last checkpoint.

    Examples
    --------
    >>> from frostline.problem import Cluster, Fixed, Job, Placement
    >>> jobs = [Job(id="a", release_s=0, work=Fixed(duration_s=100), gpus=4, checkpoint_s=30)]
    >>> segments = [Segment("a", 0, 70_000_000, Placement([(0, (4,))])),
    ...             Segment("a", 70_000_000, 110_000_000, Placement([(1, (4,))]))]
    >>> schedule = Schedule(segments=segments, outages=[Outage(server="s0", start_s=70)])
    >>> losses(Instance(cluster=Cluster.uniform(2, gpus=4), jobs=jobs), schedule)
    Losses(runs=1, gpu_us=40000000)
    """
    if not schedule.outages:
        return Losses(0, 0)
    jobs = {job.id: job for job in instance.jobs}
    downtimes, completion_us = Downtimes(schedule.outages, instance.cluster), schedule.completion_us
    last: dict[str, Segment] = {}
    worked: dict[str, int] = {}
    runs = lost = 0
    for segment in schedule.segments:
        before = last.get(segment.job)
        if before is None or not goes_on(before, segment):
            worked[segment.job] = 0
        pause_us = schedule.pause_us(before, segment)
        worked_us = worked[segment.job] = worked[segment.job] + max(segment.end_us - segment.start_us - pause_us, 0)
        last[segment.job] = segment
        if downtimes.fails(segment.placement.servers, segment.end_us):
            if completion_us.get(segment.job) == segment.end_us:
                continue
            runs += 1
            lost += segment.placement.gpus * (worked_us - jobs[segment.job].saved_us(worked_us))
    return Losses(runs, lost)
