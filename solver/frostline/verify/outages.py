"""Outages of a schedule: nobody is on a server that is down, and nobody waits for ever for one that comes back."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from frostline.problem.cluster import Cluster
from frostline.problem.instance import Instance
from frostline.problem.job import Job, Locality
from frostline.problem.order import natural_key
from frostline.problem.outage import Downtimes
from frostline.problem.pieces import servers_needed
from frostline.problem.refusal import never_fits
from frostline.problem.schedule import Schedule, Segment
from frostline.units import seconds
from frostline.verify.fault import Fault, FaultKind

__all__ = ["outage_faults"]


def outage_faults(instance: Instance, schedule: Schedule) -> Iterator[Fault]:
    """What is wrong with the outages of a schedule, with who runs through them, and with who is left waiting."""
    known = {server.id for server in instance.cluster.servers}
    for outage in schedule.outages:
        if outage.server not in known:
            text = f"server {outage.server!r} fails at {outage.start_s} s, but the cluster does not have it"
            kind = FaultKind.UNKNOWN_SERVER
            yield Fault(kind=kind, job="", server=outage.server, at_s=outage.start_s, text=text)
    downtimes = Downtimes(schedule.outages, instance.cluster)
    for segment in schedule.segments:
        yield from _down(instance, segment, downtimes)
    yield from _left_waiting(instance, schedule)


def _down(instance: Instance, segment: Segment, downtimes: Downtimes) -> Iterator[Fault]:
    """A job that holds GPUs of a server while it is down, which begins when the server fails."""
    start_us, end_us = segment.start_us, segment.end_us
    whole = type(start_us) is type(end_us) is int
    m = downtimes.first_down(segment.placement.servers, start_us, end_us) if whole else None
    if m is not None:
        server, start_s = instance.cluster.servers[m].id, seconds(segment.start_us)
        text = f"job {segment.job!r} holds GPUs of server {server!r} from {start_s} s to {segment.end_s} s"
        rule = f"{text}, and the server is down at some of that time"
        yield Fault(kind=FaultKind.SERVER_DOWN, job=segment.job, server=server, at_s=start_s, text=rule)


def _left_waiting(instance: Instance, schedule: Schedule) -> Iterator[Fault]:
    """Jobs that are left unfinished without a reason."""
    jobs = {job.id: job for job in instance.jobs}
    refused = {refusal.job for refusal in schedule.refused}
    lost = {outage.server for outage in schedule.outages if outage.end_s is None}
    why = "the servers that are left can hold all such jobs" if lost else "every server comes back"
    names = sorted(set(schedule.unfinished), key=natural_key)
    hopeless = any(_needs(jobs[job], lost, instance.cluster) for job in names if job in jobs)
    for job in names:
        if job not in jobs:
            text, kind = f"job {job!r} is unfinished but not in the instance", FaultKind.UNKNOWN_JOB
        elif job in refused:
            text, kind = f"job {job!r} is unfinished and refused", FaultKind.UNFINISHED
        elif not hopeless:
            text, kind = f"job {job!r} is left unfinished although {why}", FaultKind.UNFINISHED
        else:
            continue
        yield Fault(kind=kind, job=job, text=text)


def _needs(job: Job, lost: Collection[str], cluster: Cluster) -> bool:
    """Whether a job that the servers of a cluster can hold needs some that are lost."""
    if never_fits(job, cluster) is not None:
        return False
    left = Cluster(servers=tuple(server for server in cluster.servers if server.id not in lost))
    most = {Locality.SERVER: 1, Locality.FEWEST: servers_needed(job, cluster)}.get(job.locality, len(left.servers))
    return servers_needed(job, left) > min(most, len(left.servers))
