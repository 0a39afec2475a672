"""One GPU type per job: the choices of servers that a job has, each with its iteration time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from frostline.errors import InvalidValueError
from frostline.problem.cluster import Cluster, GpuType
from frostline.problem.plan import TrainingPlan
from frostline.timing.contention import ContentionTime
from frostline.timing.duration import training_time
from frostline.timing.iteration_time import IterationTime
from frostline.timing.link import LinkTime
from frostline.timing.stage_graph import StageGraph

__all__ = ["Choice", "able_types", "choices", "servers_of"]


class Choice(NamedTuple):
    """Iteration time on some servers, and the free GPUs of all servers, 0 for those that are left out."""

    timing: IterationTime
    free: tuple[int, ...]


def choices(
    work: StageGraph | IterationTime | TrainingPlan, free: Sequence[int], cluster: Cluster | None
) -> list[Choice]:
    """Choices of servers for a job: one for each GPU type of the cluster.

    A training plan is timed on each type; types without its precision are left out unless none has it.

    Parameters
    ----------
    work : StageGraph, IterationTime or TrainingPlan
        The job.
    free : sequence of int, shape (servers,)
        Free GPUs of each server.
    cluster : Cluster or None
        The servers; needed for a training plan.

    Raises
    ------
    InvalidValueError
        The work is of another kind, or a plan has no cluster.
    UnknownNameError
        No GPU type has the precision of the plan.

    Examples
    --------
    >>> from frostline.problem.cluster import Server
    >>> types = [GpuType(name=name, peak_flops={"fp16": peak}) for name, peak in [("old", 1e12), ("new", 4e12)]]
    >>> servers = [Server(id=f"s{i}", gpus=8, gpu_type=types[i % 2]) for i in range(3)]
    >>> cluster = Cluster(servers=servers)
    >>> [choice.free for choice in choices(StageGraph.rigid(4), [8, 6, 7], cluster)]
    [(8, 0, 7), (0, 6, 0)]
    """
    if isinstance(work, TrainingPlan):
        if cluster is None or not cluster.servers:
            raise InvalidValueError("placement", "cluster", cluster, "must have the servers that a plan is timed on")
        kinds = able_types(work, cluster)
        timings: list[IterationTime] = [training_time(work, cluster, servers_of(cluster, kind)) for kind in kinds]
    else:
        kinds = () if cluster is None else cluster.gpu_types
        timings = [_timing(work, cluster)] * max(len(kinds), 1)
    if cluster is None or len(cluster.gpu_types) < 2:
        return [Choice(timings[0], tuple(free))]
    return [
        Choice(timing, _on_servers(free, servers_of(cluster, kind)))
        for timing, kind in zip(timings, kinds, strict=True)
    ]


def servers_of(cluster: Cluster, kind: GpuType) -> tuple[int, ...]:
    """Indices of the servers of a GPU type."""
    return tuple(m for m, server in enumerate(cluster.servers) if server.gpu_type == kind)


def able_types(plan: TrainingPlan, cluster: Cluster) -> tuple[GpuType, ...]:
    """GPU types that have the precision of a plan, all where none has, for the error that follows."""
    return tuple(kind for kind in cluster.gpu_types if plan.precision in kind.peak_flops) or cluster.gpu_types


def _timing(work: StageGraph | IterationTime, cluster: Cluster | None) -> IterationTime:
    if isinstance(work, StageGraph):
        return ContentionTime(graph=work) if cluster is None else ContentionTime.of_cluster(work, cluster)
    if not isinstance(work, (ContentionTime, LinkTime)) and not isinstance(work, IterationTime):
        rule = "must be a stage graph, a model of its iteration time or a training plan"
        raise InvalidValueError("placement", "work", work, rule)
    return work


def _on_servers(free: Sequence[int], servers: Sequence[int]) -> tuple[int, ...]:
    """Free GPUs of some servers, 0 of the others."""
    kept = set(servers)
    return tuple(count if m in kept else 0 for m, count in enumerate(free))
