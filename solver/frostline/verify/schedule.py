"""The schedule checker: every rule that a schedule breaks, found by exact integer arithmetic.

It shares no code with what makes schedules: it reads the problem, asks :mod:`frostline.timing` how long a job takes
where it was placed, and looks at every instant of every server.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from frostline.problem.instance import Instance
from frostline.problem.job import Elastic, Job, Locality, Training
from frostline.problem.order import natural_key
from frostline.problem.outage import Downtimes
from frostline.problem.pieces import Pieces, pieces_of, servers_needed
from frostline.problem.placement import Placement
from frostline.problem.refusal import never_fits
from frostline.problem.schedule import Schedule, Segment, goes_on
from frostline.timing.duration import job_duration_us
from frostline.timing.lost_work import WorkLeft
from frostline.timing.options import least_of
from frostline.units import instant_us, seconds
from frostline.verify.fault import Fault, FaultKind, Report
from frostline.verify.outages import outage_faults

__all__ = ["Fault", "FaultKind", "Report", "check_schedule"]


def check_schedule(instance: Instance, schedule: Schedule, *, allow_interruptions: bool = False) -> Report:
    """Check a schedule against every rule; a fault that follows from another is listed too.

    Parameters
    ----------
    instance : Instance
        The problem.
    schedule : Schedule
        Its claimed solution. Where it tells a ``restart_us``, jobs may run in several pieces, each of which must be
        exactly as long as its part of the work takes: a job loses its GPUs with the whole iterations it has done (or
        the microseconds, where its work is ``Fixed``), and every piece but the first is longer by the restart. A job
        that goes on at another freeze level on the same GPUs is not interrupted; that piece is longer by the
        ``level_change_us`` of the schedule. Where a piece ends as one of its servers fails, the job keeps what it had
        done by the last checkpoint of its run, and no more.
    allow_interruptions : bool
        Whether a job may run in several pieces where the schedule tells no restart. Their total length must then be at
        least the shortest run time of the job, whatever elastic work may choose.

    Returns
    -------
    Report
        ``valid`` and ``faults``. At one instant GPUs are released before others are taken. A server that holds too
        much is one fault from the instant it does to the instant it no longer does.

    Examples
    --------
    >>> from frostline.problem import Cluster, Fixed, Job
    >>> jobs = [Job(id=i, release_s=r, work=Fixed(duration_s=5), gpus=6) for i, r in [("a", 0), ("b", 2)]]
    >>> instance = Instance(cluster=Cluster.uniform(1), jobs=jobs)
    >>> gang = Placement([(0, (6,))])
    >>> schedule = Schedule(segments=[Segment("a", 0, 5_000_000, gang), Segment("b", 1_000_000, 6_000_000, gang)])
    >>> for fault in check_schedule(instance, schedule).faults:
    ...     print(fault.kind, fault.job, fault.server, fault.at_s, "|", fault.text)
    over_capacity b s0 1.0 | server 's0' holds up to 12 of its 8 GPUs from 1.0 s to 5.0 s: jobs 'a', 'b'
    starts_before_release b s0 1.0 | job 'b' starts at 1.0 s, before its release at 2.0 s
    """
    checker = _Checker(instance, schedule, allow_interruptions)
    return Report(faults=tuple(sorted(checker.faults(), key=_order)))


def _order(fault: Fault) -> tuple[float, str, tuple[tuple[int, int, str], ...], str]:
    at_s = -math.inf if fault.at_s is None else fault.at_s
    return at_s, fault.kind.value, natural_key(fault.job), fault.server or ""


@dataclass(frozen=True)
class _Checker:
    instance: Instance
    schedule: Schedule
    allow_interruptions: bool

    def faults(self) -> Iterator[Fault]:
        """Every breach of a rule, in no order."""
        yield from self._presence()
        for segment in self.schedule.segments:
            job = self._jobs.get(segment.job)
            if job is None:
                yield self._at(FaultKind.UNKNOWN_JOB, segment, f"job {segment.job!r} is not in the instance")
            else:
                yield from self._segment(job, segment)
        for job_id, segments in self._pieces.items():
            if not self._is_whole(job_id):
                yield from self._several(job_id, segments)
        yield from self._capacity()
        yield from outage_faults(self.instance, self.schedule)

    def _is_whole(self, job_id: str) -> bool:
        """Whether a job runs in one piece to its end."""
        return len(self._pieces[job_id]) == 1 and job_id not in self._unfinished

    @cached_property
    def _unfinished(self) -> frozenset[str]:
        return frozenset(self.schedule.unfinished)

    @cached_property
    def _downtimes(self) -> Downtimes:
        return Downtimes(self.schedule.outages, self.instance.cluster)

    @cached_property
    def _jobs(self) -> dict[str, Job]:
        return {job.id: job for job in self.instance.jobs}

    @cached_property
    def _pieces(self) -> dict[str, list[Segment]]:
        pieces: dict[str, list[Segment]] = defaultdict(list)
        for segment in self.schedule.segments:
            pieces[segment.job].append(segment)
        return pieces

    @cached_property
    def _fewest(self) -> dict[tuple[int, Pieces], int]:
        jobs = {(job.gpus, pieces_of(job)): job for job in self.instance.jobs if job.locality is Locality.FEWEST}
        return {key: servers_needed(job, self.instance.cluster) for key, job in jobs.items()}

    def _allowed(self, job: Job, gpus: int) -> int:
        """Servers on which a job may be that holds so many GPUs."""
        if job.locality is Locality.SERVER:
            return 1
        if isinstance(job.work, Elastic):
            return self.instance.cluster.servers_needed(gpus)
        return self._fewest[job.gpus, pieces_of(job)]

    # Who runs and who is refused.

    def _presence(self) -> Iterator[Fault]:
        refused = {refusal.job for refusal in self.schedule.refused}
        for job_id in sorted(refused, key=natural_key):
            yield from self._refused(job_id)
        for job in self.instance.jobs:
            if job.id not in self._pieces and job.id not in refused | self._unfinished:
                text = f"job {job.id!r} neither runs nor is refused"
                yield Fault(kind=FaultKind.MISSING_JOB, job=job.id, text=text)

    def _refused(self, job_id: str) -> Iterator[Fault]:
        if job_id not in self._jobs:
            text = f"job {job_id!r} is refused but not in the instance"
            yield Fault(kind=FaultKind.UNKNOWN_JOB, job=job_id, text=text)
        elif never_fits(self._jobs[job_id], self.instance.cluster) is None:
            text = f"job {job_id!r} is refused although the empty cluster can hold its {self._jobs[job_id].gpus} GPUs"
            yield Fault(kind=FaultKind.REFUSED_BUT_FITS, job=job_id, text=text)
        if job_id in self._pieces:
            first = self._pieces[job_id][0]
            yield self._at(FaultKind.REFUSED_BUT_RAN, first, f"job {job_id!r} is refused and runs all the same")

    # One job in one place.

    def _segment(self, job: Job, segment: Segment) -> Iterator[Fault]:
        name, start_us = f"job {job.id!r}", segment.start_us
        if not _is_interval(segment):
            bounds = f"{segment.start_us!r} µs to {segment.end_us!r} µs"
            yield self._at(FaultKind.BAD_INTERVAL, segment, f"{name} runs from {bounds}, which is no interval")
        if start_us < instant_us(job.release_s):
            when = f"{seconds(start_us)} s, before its release at {job.release_s} s"
            yield self._at(FaultKind.STARTS_BEFORE_RELEASE, segment, f"{name} starts at {when}")
        misplaced = [*self._place(job, segment), *self._level(job, segment)]
        yield from misplaced
        if not misplaced and _is_interval(segment) and self._is_whole(job.id):
            yield from self._duration(job, segment)
        yield from self._locality(job, segment)

    def _place(self, job: Job, segment: Segment) -> Iterator[Fault]:
        servers = len(self.instance.cluster.servers)
        for m, _ in segment.placement.loads:
            if m >= servers:
                text = f"job {job.id!r} is on server number {m}, but the cluster has {servers}"
                yield self._at(FaultKind.UNKNOWN_SERVER, segment, text, str(m))
        if isinstance(job.work, Elastic) and segment.placement.gpus not in job.work.widths:
            text = f"job {job.id!r} holds {segment.placement.gpus} GPUs but runs on {_listed(job.work.widths)}"
            yield self._at(FaultKind.WRONG_GPUS, segment, text)
        elif segment.placement.gpus != job.gpus and not isinstance(job.work, Elastic):
            text = f"job {job.id!r} holds {segment.placement.gpus} GPUs but asks for {job.gpus}"
            yield self._at(FaultKind.WRONG_GPUS, segment, text)
        elif isinstance(job.work, Training) and _replicas(segment.placement) != tuple(job.work.plan.replicas):
            held, asked = list(_replicas(segment.placement)), list(job.work.plan.replicas)
            text = f"job {job.id!r} has {held} replicas of its stages but its plan has {asked}"
            yield self._at(FaultKind.WRONG_GPUS, segment, text)
        elif isinstance(job.work, Training) and segment.placement.gpus_per_replica != job.work.plan.gpus_per_replica:
            held, asked = list(_sizes(segment.placement)), list(job.work.plan.replica_gpus)
            text = f"job {job.id!r} has replicas of {held} GPUs but its plan has {asked}"
            yield self._at(FaultKind.WRONG_GPUS, segment, text)

    def _level(self, job: Job, segment: Segment) -> Iterator[Fault]:
        level, levels = segment.freeze_level, job.work.levels if isinstance(job.work, Elastic) else 1
        if not 0 <= level < levels:
            has = f"has levels 0 to {levels - 1}" if levels > 1 else "has no freeze levels"
            text = f"job {job.id!r} trains at freeze level {level}, but its work {has}"
            yield self._at(FaultKind.WRONG_LEVEL, segment, text)

    def _warm_up(self, job: Job, segment: Segment, left: Job) -> Iterator[Fault]:
        """A job that freezes before the warm-up of its work is over."""
        if not segment.freeze_level or not isinstance(job.work, Elastic) or not isinstance(left.work, Elastic):
            return
        done, total = job.work.iterations - left.work.iterations, job.work.iterations
        if not job.work.may_freeze(done, total):
            text = f"job {job.id!r} trains at freeze level {segment.freeze_level} after {done} of {total} iterations"
            rule = f"{text}, before the end of its warm-up, {job.work.warm_up:g}"
            yield self._at(FaultKind.WRONG_LEVEL, segment, rule)

    def _duration(self, job: Job, segment: Segment) -> Iterator[Fault]:
        yield from self._warm_up(job, segment, job)
        needed_us = job_duration_us(job, self.instance.cluster, segment.placement, segment.freeze_level)
        ran_us = segment.end_us - segment.start_us
        if ran_us != needed_us:
            text = f"job {job.id!r} runs for {ran_us} µs but takes {needed_us} µs where it is placed"
            yield self._at(FaultKind.WRONG_DURATION, segment, text)

    def _locality(self, job: Job, segment: Segment) -> Iterator[Fault]:
        if job.locality is Locality.ANY:
            return
        used, allowed = len(segment.placement.loads), self._allowed(job, segment.placement.gpus)
        if used > allowed:
            text = f"job {job.id!r} is on {used} servers, but locality {job.locality.value!r} allows {allowed}"
            yield self._at(FaultKind.LOCALITY, segment, text)

    # One job in several pieces.

    def _several(self, job_id: str, segments: Sequence[Segment]) -> Iterator[Fault]:
        yield from self._overlaps(job_id, [segment for segment in segments if _is_interval(segment)])
        ends = [before for before, after in pairwise(segments) if not goes_on(before, after)]
        ends += segments[-1:] if job_id in self._unfinished else []
        breaks = [end for end in ends if not self._downtimes.fails(end.placement.servers, end.end_us)]
        exact = self.schedule.restart_us is not None or not breaks
        if breaks and not exact and not self.allow_interruptions:
            text = f"job {job_id!r} runs in {len(segments)} pieces"
            if breaks[0] is segments[-1]:
                text = f"job {job_id!r} is unfinished although no outage cuts off its last piece"
            after = segments[segments.index(breaks[0]) + 1 :] or segments
            yield self._at(FaultKind.INTERRUPTED, after[0], text)
        elif job_id in self._jobs and exact:
            yield from self._pieces_of(self._jobs[job_id], segments)
        elif job_id in self._jobs:
            total_us = sum(segment.end_us - segment.start_us for segment in segments)
            least_us = least_of(self._jobs[job_id], self.instance.cluster).duration_us
            if total_us < least_us:
                text = f"job {job_id!r} runs for {total_us} µs in all but takes at least {least_us} µs"
                yield self._at(FaultKind.WRONG_DURATION, segments[0], text)

    def _pieces_of(self, job: Job, segments: Sequence[Segment]) -> Iterator[Fault]:
        """Go through the pieces of a job, each with what the others before have left of it."""
        work = WorkLeft(job, self.instance.cluster, self._downtimes)
        for i, segment in enumerate(segments):
            if not _is_interval(segment) or [*self._place(job, segment), *self._level(job, segment)]:
                return  # told already; how much it does there nobody knows
            yield from self._warm_up(job, segment, work.left)
            pause_us = self.schedule.pause_us(segments[i - 1] if i else None, segment)
            ran_us, where, level = segment.end_us - segment.start_us, segment.placement, segment.freeze_level
            needed_us = pause_us + job_duration_us(work.left, self.instance.cluster, where, level)
            last = i == len(segments) - 1 and job.id not in self._unfinished
            if ran_us != needed_us if last else ran_us >= needed_us:
                rule = f"takes {needed_us} µs" if last else f"would be complete after {needed_us} µs"
                text = f"job {job.id!r} runs for {ran_us} µs in its piece {i + 1} of {len(segments)} but {rule} there"
                yield self._at(FaultKind.WRONG_DURATION, segment, text)
                return
            if not last:
                work.end(segment, pause_us, segments[i + 1] if i + 1 < len(segments) else None)

    def _overlaps(self, job_id: str, segments: Sequence[Segment]) -> Iterator[Fault]:
        busy_until_us: int | None = None
        for segment in segments:
            if busy_until_us is not None and segment.start_us < busy_until_us:
                text = f"job {job_id!r} starts at {segment.start_s} s while it runs until {seconds(busy_until_us)} s"
                yield self._at(FaultKind.DOUBLE_BOOKING, segment, text)
            busy_until_us = segment.end_us if busy_until_us is None else max(busy_until_us, segment.end_us)

    # All jobs of one server.

    def _capacity(self) -> Iterator[Fault]:
        servers = self.instance.cluster.servers
        events: list[list[tuple[int, int, int]]] = [[] for _ in servers]
        segments = self.schedule.segments
        for index, segment in enumerate(segments):
            if _is_interval(segment):
                for m, gpus in segment.placement.loads:
                    if m < len(servers):
                        # Releases sort before takings of the same instant.
                        events[m].append((segment.start_us, gpus, index))
                        events[m].append((segment.end_us, -gpus, index))
        for server, on_server in zip(servers, events, strict=True):
            for stretch in _stretches(sorted(on_server), server.gpus):
                yield stretch.fault(server.id, server.gpus, segments)

    def _at(self, kind: FaultKind, segment: Segment, text: str, server: str | None = None) -> Fault:
        servers, loads = self.instance.cluster.servers, segment.placement.loads
        if server is None and len(loads) == 1 and loads[0][0] < len(servers):
            server = servers[loads[0][0]].id
        at_s = seconds(segment.start_us) if math.isfinite(segment.start_us) else None
        return Fault(kind=kind, job=segment.job, server=server, at_s=at_s, text=text)


def _is_interval(segment: Segment) -> bool:
    return type(segment.start_us) is int and type(segment.end_us) is int and segment.start_us < segment.end_us


def _listed(widths: Iterable[int]) -> str:
    return ", ".join(map(str, widths))


def _sizes(placement: Placement) -> tuple[int, ...]:
    return placement.gpus_per_replica or (1,) * placement.stages


def _replicas(placement: Placement) -> tuple[int, ...]:
    return tuple(map(sum, zip(*(column for _, column in placement.columns), strict=True)))


@dataclass(slots=True)
class _Stretch:
    """A stretch of time over which a server holds too much: the segments on it and the most GPUs they hold."""

    start_us: int
    last: int
    segments: set[int]
    peak: int = 0
    end_us: int = 0

    def fault(self, server: str, capacity: int, segments: Sequence[Segment]) -> Fault:
        """The breach that it is."""
        jobs = _names({segments[index].job for index in self.segments})
        when = f"from {seconds(self.start_us)} s to {seconds(self.end_us)} s"
        return Fault(
            kind=FaultKind.OVER_CAPACITY,
            job=segments[self.last].job,
            server=server,
            at_s=seconds(self.start_us),
            text=f"server {server!r} holds up to {self.peak} of its {capacity} GPUs {when}: jobs {jobs}",
        )


def _stretches(events: Iterable[tuple[int, int, int]], capacity: int) -> Iterator[_Stretch]:
    """Maximal stretches over which the (instant, change, segment) events, in order, sum to more than a capacity."""
    used, holding = 0, set[int]()
    stretch: _Stretch | None = None
    for at_us, change, index in events:
        used += change
        (holding.add if change > 0 else holding.remove)(index)
        if stretch is not None and used <= capacity:
            stretch.end_us = at_us
            yield stretch
            stretch = None
        elif used > capacity:
            stretch = stretch or _Stretch(at_us, index, set(holding))
            stretch.segments.add(index)
            stretch.peak = max(stretch.peak, used)


def _names(jobs: Iterable[str], shown: int = 10) -> str:
    names = sorted(jobs, key=natural_key)
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(map(repr, names[:shown])) + more
