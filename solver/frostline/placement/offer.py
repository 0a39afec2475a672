"""The placement of a whole job on the free GPUs of a cluster."""

from __future__ import annotations

from frostline.placement.free_gpus import FreeGpus, Loads, Shape
from frostline.placement.place import place
from frostline.problem.cluster import Cluster
from frostline.problem.job import Job, Training
from frostline.problem.placement import Placement
from frostline.problem.plan import TrainingPlan
from frostline.timing.duration import job_duration_us, training_time

__all__ = ["place_job"]


def place_job(
    job: Job, cluster: Cluster, free: FreeGpus, shape: Shape, method: str = "local-search"
) -> tuple[Placement, int] | None:
    """Placement of a job on free GPUs and its duration in microseconds; None when it does not fit.

    A job that one server can hold goes there by best fit: no traffic crosses the network. A training job that no
    server can hold alone is placed by its stage graph, on the fewest servers that have room.

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
    loads = free.best_fit(shape)
    if loads is None:
        return None
    if isinstance(job.work, Training):
        placement = _place_training(job.work.plan, cluster, free, loads, method)
    else:
        placement = Placement.of_loads(loads)
    return placement, job_duration_us(job, cluster, placement)


def _place_training(plan: TrainingPlan, cluster: Cluster, free: FreeGpus, loads: Loads, method: str) -> Placement:
    if len(loads) == 1:
        return Placement([(loads[0][0], plan.replicas)])
    timing = training_time(plan, cluster)
    return place(timing, free.by_server, method=method, objective="consolidate").placement
