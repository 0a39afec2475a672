"""A list scheduler driven by given choices: every valid schedule without interruptions is one of its outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from frostline.problem.bin_packing import pack_replicas
from frostline.problem.cluster import Cluster
from frostline.problem.instance import Instance
from frostline.problem.job import Job, Locality, Training
from frostline.problem.pieces import servers_needed
from frostline.problem.placement import Placement
from frostline.problem.plan import TrainingPlan
from frostline.problem.refusal import never_fits
from frostline.problem.schedule import Schedule, Segment
from frostline.timing.duration import job_duration_us
from frostline.units import instant_us

__all__ = ["Choice", "list_schedule"]

Load = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """How one job is to be scheduled.

    Parameters
    ----------
    job : int
        Index of the job in the instance.
    delay_us : int
        It starts no earlier than so many microseconds after its release.
    servers : sequence of int
        All servers, those preferred first.
    spread : bool
        Take GPUs from the servers in turn, instead of all that one has.
    """

    job: int
    delay_us: int = 0
    servers: Sequence[int]
    spread: bool = False


def list_schedule(instance: Instance, choices: Sequence[Choice]) -> Schedule:
    """Schedule that takes jobs in the order of their choices, each at the first instant from which its GPUs stay free.

    Parameters
    ----------
    instance : Instance
        The problem.
    choices : sequence of Choice
        One for each job.

    Returns
    -------
    Schedule
        A valid schedule; jobs that never fit are refused.

    Examples
    --------
    >>> from frostline.problem import Fixed
    >>> jobs = [Job(id=i, release_s=0, work=Fixed(duration_s=5), gpus=6) for i in "ab"]
    >>> instance = Instance(cluster=Cluster.uniform(1), jobs=jobs)
    >>> list_schedule(instance, [Choice(job=1, servers=[0]), Choice(job=0, servers=[0])]).start_us
    {'a': 5000000, 'b': 0}
    """
    segments: list[Segment] = []
    refused = []
    for choice in choices:
        job = instance.jobs[choice.job]
        refusal = never_fits(job, instance.cluster)
        if refusal is not None:
            refused.append(refusal)
        else:
            segments.append(_first_fit(job, choice, instance.cluster, segments))
    return Schedule(segments=tuple(segments), refused=tuple(refused), policy="list")


def _first_fit(job: Job, choice: Choice, cluster: Cluster, segments: Sequence[Segment]) -> Segment:
    earliest_us = instant_us(job.release_s) + choice.delay_us
    ends_us = sorted({segment.end_us for segment in segments if segment.end_us > earliest_us})
    for start_us in (earliest_us, *ends_us):
        free = list(cluster.capacities)
        for segment in segments:
            if segment.end_us > start_us:
                for m, gpus in segment.placement.loads:
                    free[m] -= gpus
        placement = _placement(job, choice, cluster, free)
        if placement is not None:
            return Segment(job.id, start_us, start_us + job_duration_us(job, cluster, placement), placement)
    raise AssertionError(f"job {job.id!r} does not fit the empty cluster")


def _placement(job: Job, choice: Choice, cluster: Cluster, free: Sequence[int]) -> Placement | None:
    """Placement on free GPUs, None where the job does not fit."""
    if isinstance(job.work, Training) and job.work.plan.gpus_per_replica and job.locality is not Locality.SERVER:
        return _packed(job, job.work.plan, choice, cluster, free)
    loads = _loads(job, choice, cluster, free)
    return _filled(job, loads) if loads else None


def _packed(job: Job, plan: TrainingPlan, choice: Choice, cluster: Cluster, free: Sequence[int]) -> Placement | None:
    """Replicas of several GPUs on the servers that the locality allows."""
    servers = choice.servers
    if job.locality is Locality.FEWEST:
        servers = sorted(servers, key=lambda m: -free[m])[: servers_needed(job, cluster)]
    matrix, _ = pack_replicas([free[m] for m in servers], plan.gpus_per_replica, plan.replicas)
    if matrix is None:
        return None
    return Placement(zip(servers, matrix.tolist(), strict=True), plan.gpus_per_replica)


def _loads(job: Job, choice: Choice, cluster: Cluster, free: Sequence[int]) -> list[Load]:
    """GPUs to take from each server, none if the job does not fit."""
    if job.locality is Locality.SERVER:
        return next(([(m, job.gpus)] for m in choice.servers if free[m] >= job.gpus), [])
    if job.locality is Locality.FEWEST:
        largest_first = sorted(choice.servers, key=lambda m: -free[m])
        return _fill(job.gpus, free, largest_first[: cluster.servers_needed(job.gpus)])
    return (_deal if choice.spread else _fill)(job.gpus, free, choice.servers)


def _fill(gpus: int, free: Sequence[int], servers: Sequence[int]) -> list[Load]:
    loads: list[Load] = []
    for m in servers:
        taken = min(free[m], gpus - sum(count for _, count in loads))
        if taken > 0:
            loads.append((m, taken))
    return loads if sum(count for _, count in loads) == gpus else []


def _deal(gpus: int, free: Sequence[int], servers: Sequence[int]) -> list[Load]:
    seats = sorted((turn, position) for position, m in enumerate(servers) for turn in range(free[m]))
    taken = [servers[position] for _, position in seats[:gpus]]
    return [(m, taken.count(m)) for m in sorted(set(taken))] if len(taken) == gpus else []


def _filled(job: Job, loads: Sequence[Load]) -> Placement:
    """Replicas of a plan fill the GPUs stage by stage; those of several GPUs are all in one server here."""
    if not isinstance(job.work, Training):
        return Placement((m, (count,)) for m, count in loads)
    replicas = job.work.plan.replicas
    if job.work.plan.gpus_per_replica:
        return Placement([(loads[0][0], replicas)], job.work.plan.gpus_per_replica)
    stages = iter([stage for stage, count in enumerate(replicas) for _ in range(count)])
    on_server = [(m, [next(stages) for _ in range(count)]) for m, count in loads]
    return Placement((m, [held.count(stage) for stage in range(len(replicas))]) for m, held in on_server)
