"""Run time of a job where it is placed, and the shortest and the longest that any placement allows."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from typing import Generic, TypeVar

from frostline.errors import InvalidValueError
from frostline.problem.cluster import Cluster, GpuType
from frostline.problem.job import Fixed, Job, Locality, PlacementClass, Profiled
from frostline.problem.placement import Placement
from frostline.problem.plan import TrainingPlan
from frostline.timing.contention import ContentionTime
from frostline.timing.iteration_time import iteration_ns
from frostline.timing.stage_graph import StageGraph, stage_graph
from frostline.units import US_PER_S, duration_us

__all__ = ["fastest_us", "job_duration_us", "slowest_us", "training_time"]

_MAX_US = 9_000_000_000 * US_PER_S
_NS_PER_US = 1000


def job_duration_us(job: Job, cluster: Cluster, placement: Placement) -> int:
    """Microseconds that a job runs on a placement, rounded up once, from the whole job.

    ``Fixed`` work takes its duration anywhere. ``Profiled`` work takes its measured seconds per iteration in one or on
    many servers (the only figure there is, if there is one). ``Training`` work takes the iteration time of its stage
    graph under :class:`~frostline.timing.contention.ContentionTime`, on the slowest GPU type among the servers it uses.

    Parameters
    ----------
    job : Job
        The job.
    cluster : Cluster
        The servers.
    placement : Placement
        Where its replicas are.

    Raises
    ------
    InvalidValueError
        The placement does not place every replica of a training plan once, or the job would run for over 9e9 s.
    UnknownNameError
        A GPU type that is used has no such precision.

    Examples
    --------
    >>> table = {PlacementClass.ONE_SERVER: 0.1, PlacementClass.MANY_SERVERS: 0.15}
    >>> job = Job(id="a", release_s=0, gpus=4, work=Profiled(iterations=3, seconds_per_iteration=table))
    >>> cluster = Cluster.uniform(2)
    >>> [job_duration_us(job, cluster, Placement(where)) for where in ([(0, (4,))], [(0, (2,)), (1, (2,))])]
    [300000, 450000]
    """
    work = job.work
    if isinstance(work, Fixed):
        return duration_us(work.duration_s)
    if isinstance(work, Profiled):
        where = PlacementClass.ONE_SERVER if len(placement.loads) == 1 else PlacementClass.MANY_SERVERS
        return _profiled_us(job, work, [where])
    model = training_time(work.plan, cluster, placement.servers)
    return _checked(job, -(-work.iterations * iteration_ns(model, placement) // _NS_PER_US))


def fastest_us(job: Job, cluster: Cluster) -> int:
    """Lower bound in microseconds on the run time of a job over all its allowed placements on the empty cluster.

    It is exact for ``Fixed`` and ``Profiled`` work, and for ``Training`` work that fits one server of the fastest
    type. For other training work it leaves out what crosses between servers.

    Parameters
    ----------
    job : Job
        The job.
    cluster : Cluster
        The servers.

    Raises
    ------
    InvalidValueError
        Training work and no servers, or the job would run for over 9e9 s.
    UnknownNameError
        A GPU type of the cluster has no such precision.

    Examples
    --------
    >>> job = Job(id="a", release_s=0, gpus=4, work=Fixed(duration_s=1.5))
    >>> fastest_us(job, Cluster.uniform(2))
    1500000
    """
    work = job.work
    if isinstance(work, Fixed):
        return duration_us(work.duration_s)
    if isinstance(work, Profiled):
        return _profiled_us(job, work, _reachable(job, cluster))
    fastest_ns = _fastest_ns(_Same(work.plan), _Same(cluster))
    return _checked(job, -(-work.iterations * fastest_ns // _NS_PER_US))


def slowest_us(job: Job, cluster: Cluster) -> int:
    """Upper bound in microseconds on the run time of a job over all its allowed placements on the cluster.

    It is exact for ``Fixed`` and ``Profiled`` work. Training work that may spread is taken to send all its traffic
    through the slowest card, on the slowest GPU type.

    Parameters
    ----------
    job : Job
        The job.
    cluster : Cluster
        The servers.

    Raises
    ------
    InvalidValueError
        Training work and no servers, or the job may run for over 9e9 s.
    UnknownNameError
        A GPU type of the cluster has no such precision.

    Examples
    --------
    >>> table = {PlacementClass.ONE_SERVER: 0.1, PlacementClass.MANY_SERVERS: 0.15}
    >>> job = Job(id="a", release_s=0, gpus=4, work=Profiled(iterations=3, seconds_per_iteration=table))
    >>> slowest_us(job, Cluster.uniform(2)), slowest_us(job, Cluster.uniform(1))
    (450000, 300000)
    """
    work = job.work
    if isinstance(work, Fixed):
        return duration_us(work.duration_s)
    classes = _reachable(job, cluster)
    if isinstance(work, Profiled):
        return max(_profiled_us(job, work, [where]) for where in classes)
    slowest_ns = _slowest_ns(_Same(work.plan), _Same(cluster), PlacementClass.MANY_SERVERS in classes)
    return _checked(job, -(-work.iterations * slowest_ns // _NS_PER_US))


def training_time(plan: TrainingPlan, cluster: Cluster, servers: Iterable[int] | None = None) -> ContentionTime:
    """Iteration time model of a training plan on a cluster, on the slowest GPU type among some servers (default all).

    Models are kept, so that asking again costs little as long as plan and cluster are the same objects.

    Parameters
    ----------
    plan : TrainingPlan
        Network, stages and replicas.
    cluster : Cluster
        The servers.
    servers : iterable of int, optional
        Indices of the servers that are used.

    Raises
    ------
    InvalidValueError
        No servers, or one that the cluster does not have.
    UnknownNameError
        A GPU type has no such precision.
    """
    slowest = _slowest_type(plan, cluster, servers)
    return _model(_Same(plan), slowest, _Same(cluster))


T = TypeVar("T")


class _Same(Generic[T]):
    """Key of a cache that holds for one object, not for its equals; it keeps the object alive."""

    __slots__ = ("it",)

    def __init__(self, it: T) -> None:
        self.it = it

    def __hash__(self) -> int:
        return id(self.it)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.it is other.it


@lru_cache(maxsize=4096)
def _stages(plan: _Same[TrainingPlan], gpu_type: GpuType) -> StageGraph:
    return stage_graph(plan.it, gpu_type)


@lru_cache(maxsize=4096)
def _model(plan: _Same[TrainingPlan], gpu_type: GpuType, cluster: _Same[Cluster]) -> ContentionTime:
    return ContentionTime.of_cluster(_stages(plan, gpu_type), cluster.it)


@lru_cache(maxsize=4096)
def _fastest_ns(plan: _Same[TrainingPlan], cluster: _Same[Cluster]) -> int:
    servers = cluster.it.servers
    nvlink = max((server.nvlink_bytes_per_s for server in servers), default=300e9)
    types = _gpu_types(cluster)
    if not types:
        raise InvalidValueError("cluster", "servers", (), "must not be empty where training work is timed")
    return min(ContentionTime(graph=_stages(plan, gpu_type), nvlink_bytes_per_s=nvlink).bound_ns for gpu_type in types)


@lru_cache(maxsize=4096)
def _slowest_ns(plan: _Same[TrainingPlan], cluster: _Same[Cluster], spreads: bool) -> int:
    model = training_time(plan.it, cluster.it)
    servers = {model.server_class(m): m for m in range(len(cluster.it.servers) if spreads else 0)}
    tables, counts = map(model.costs, servers.values()), model.graph.replicas
    sent = (sum(ns * counts[s] * counts[t] for s, t, ns in table.pairs) + sum(table.rings) for table in tables)
    return model.base_ns + max(sent, default=0)


@lru_cache(maxsize=64)
def _gpu_types(cluster: _Same[Cluster]) -> tuple[GpuType, ...]:
    return tuple(dict.fromkeys(server.gpu_type for server in cluster.it.servers))


def _slowest_type(plan: TrainingPlan, cluster: Cluster, servers: Iterable[int] | None) -> GpuType:
    types = _gpu_types(_Same(cluster))
    if len(types) != 1:
        indices = range(len(cluster.servers)) if servers is None else servers
        chosen = (_server_type(cluster, m) for m in indices)
        types = tuple(sorted(chosen, key=lambda kind: (kind.peak(plan.precision), kind.name)))
    if not types:
        raise InvalidValueError("training time", "servers", (), "must not be empty")
    return types[0]


def _server_type(cluster: Cluster, server: int) -> GpuType:
    if not 0 <= server < len(cluster.servers):
        raise InvalidValueError("placement", "server", server, f"must be below {len(cluster.servers)}")
    return cluster.servers[server].gpu_type


def _reachable(job: Job, cluster: Cluster) -> list[PlacementClass]:
    """Classes of placement that the locality of a job allows on the empty cluster, never none."""
    classes = []
    fits_one = job.gpus <= cluster.largest
    if fits_one:
        classes.append(PlacementClass.ONE_SERVER)
    spreads = job.locality is Locality.ANY or (job.locality is Locality.FEWEST and not fits_one)
    if spreads and job.gpus > 1 and len(cluster.servers) > 1:
        classes.append(PlacementClass.MANY_SERVERS)
    return classes or list(PlacementClass)


def _profiled_us(job: Job, work: Profiled, classes: Iterable[PlacementClass]) -> int:
    table = work.seconds_per_iteration
    known = [table[where] for where in classes if where in table] or list(table.values())
    return _checked(job, -(-work.iterations * _written(min(known)) * US_PER_S // 1))


@lru_cache(maxsize=4096)
def _written(value: float) -> Fraction:
    """The number as it is written: 0.1 is one tenth, not the binary fraction next to it."""
    return Fraction(repr(value))


def _checked(job: Job, time_us: int) -> int:
    if time_us > _MAX_US:
        raise InvalidValueError(f"job {job.id!r}", "duration_us", time_us, f"must be at most {_MAX_US}")
    return max(time_us, 1)
