"""The placement of a whole job on the free GPUs of a cluster."""

from __future__ import annotations

from collections.abc import Iterator

from frostline.placement.free_gpus import FreeGpus, Shape
from frostline.placement.gpu_types import able_types, servers_of
from frostline.placement.place import place
from frostline.problem.cluster import Cluster
from frostline.problem.job import Job, Training
from frostline.problem.placement import Placement
from frostline.problem.plan import TrainingPlan
from frostline.timing.contention import ContentionTime
from frostline.timing.duration import job_duration_us, training_time
from frostline.timing.iteration_time import iteration_ns

__all__ = ["place_job"]


def place_job(
    job: Job, cluster: Cluster, free: FreeGpus, shape: Shape, method: str = "local-search"
) -> tuple[Placement, int] | None:
    """Placement of a job on free GPUs and its duration in microseconds; None when it does not fit.

    A job that one server can hold goes there by best fit: no traffic crosses the network. A training job that no
    server can hold alone is placed by its stage graph, on the fewest servers that have room.

    Where the cluster has several GPU types, a training job goes to servers of one type, the one where its iterations
    are shortest; only if no type has room for it alone it spreads over several, at the pace of the slowest.

    Parameters
    ----------
    job : Job
        The job.
    cluster : Cluster
        The servers.
    free : FreeGpus
        Free GPUs now.
    shape : Shape
        The job's shape on this cluster.
    method : str
        Placement method for stage graphs, one of :data:`~frostline.placement.place.METHODS`.

    Examples
    --------
    >>> from frostline.problem.job import Fixed
    >>> job = Job(id="a", release_s=0, work=Fixed(duration_s=2), gpus=3)
    >>> placement, duration_us = place_job(job, Cluster.uniform(2), FreeGpus([8, 4]), Shape(3, 2))
    >>> placement.loads, duration_us
    (((1, 3),), 2000000)
    """
    if not isinstance(job.work, Training):
        loads = free.best_fit(shape)
        if loads is None:
            return None
        placement = Placement.of_loads(loads)
    elif free.fits(shape):
        placement = _place_training(job.work.plan, cluster, free, shape, method)
    else:
        return None
    return placement, job_duration_us(job, cluster, placement)


def _place_training(plan: TrainingPlan, cluster: Cluster, free: FreeGpus, shape: Shape, method: str) -> Placement:
    if len(cluster.gpu_types) > 1:
        by_type = list(_by_type(plan, cluster, free, shape, method))
        if by_type:
            return min(by_type, key=lambda pair: (pair[0], len(pair[1].columns)))[1]
    return _spread(plan, training_time(plan, cluster), free, shape, method)


def _by_type(
    plan: TrainingPlan, cluster: Cluster, free: FreeGpus, shape: Shape, method: str
) -> Iterator[tuple[int, Placement]]:
    """Iteration time and placement on each GPU type that has room."""
    for kind in able_types(plan, cluster):
        servers = servers_of(cluster, kind)
        part = free.only(servers)
        if part.fits(shape):
            timing = training_time(plan, cluster, servers)
            placement = _spread(plan, timing, part, shape, method)
            yield iteration_ns(timing, placement), placement


def _spread(plan: TrainingPlan, timing: ContentionTime, free: FreeGpus, shape: Shape, method: str) -> Placement:
    """Placement on free GPUs that hold the job: in one server by best fit, or on the fewest by its stage graph."""
    server = free.tightest(shape.gpus)
    if server is not None:
        return Placement([(server, plan.replicas)], plan.gpus_per_replica)
    return place(timing, free.by_server, method=method, objective="consolidate").placement
