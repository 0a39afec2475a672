"""Run time of a job where it is placed, and the shortest and the longest that any placement allows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Generic, TypeVar

from frostline.errors import InvalidValueError
from frostline.problem.cluster import Cluster, GpuType
from frostline.problem.job import Elastic, Fixed, Job, Locality, PlacementClass, Profiled
from frostline.problem.placement import Placement
from frostline.problem.plan import TrainingPlan
from frostline.timing.contention import ContentionTime
from frostline.timing.iteration_time import iteration_ns
from frostline.timing.stage_graph import StageGraph, stage_graph
from frostline.units import US_PER_S, duration_us

__all__ = [
    "LONGEST_US",
    "elastic_iteration_ns",
    "fastest_us",
    "iteration_ns_of",
    "iterations_within",
    "job_duration_us",
    "left_after",
    "placement_class",
    "reachable_classes",
    "slowest_type",
    "slowest_us",
    "training_time",
]

LONGEST_US = 9_000_000_000 * US_PER_S
"""Longest run of a job, 9e9 s."""

_NS_PER_US = 1000
_NS_PER_S = 1_000_000_000


def job_duration_us(job: Job, cluster: Cluster, placement: Placement, level: int = 0) -> int:
    """Microseconds that a job runs on a placement, rounded up once, from the whole job.

    ``Fixed`` work takes its duration anywhere. ``Profiled`` work takes its measured seconds per iteration in one or on
    many servers (the only figure there is, if there is one). ``Elastic`` work takes that of the GPUs of the placement,
    at a freeze level, in nanoseconds rounded up. ``Training`` work takes the iteration time of its stage
    graph under :class:`~frostline.timing.contention.ContentionTime`, on the slowest GPU type among the servers it uses.

    Parameters
    ----------
    job : Job
        The job.
    cluster : Cluster
        The servers.
    placement : Placement
        Where its replicas are.
    level : int
        Freeze level, 0 where work has no levels.

    Raises
    ------
    InvalidValueError
        The placement does not place every replica of a training plan once, elastic work has no such width, the work no
        such level, or the job would run for over 9e9 s.
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
    if level and not isinstance(work, Elastic):
        raise InvalidValueError(f"job {job.id!r}", "level", level, "must be 0: its work has no freeze levels")
    if isinstance(work, Fixed):
        return duration_us(work.duration_s)
    if isinstance(work, Profiled):
        return _profiled_us(job, work, [placement_class(placement)])
    return _checked(job, -(-work.iterations * iteration_ns_of(job, cluster, placement, level) // _NS_PER_US))


def iteration_ns_of(job: Job, cluster: Cluster, placement: Placement, level: int = 0) -> int:
    """Nanoseconds of one iteration of a job on a placement, at a freeze level.

    Those of ``Profiled`` and ``Elastic`` work are rounded up. The run time of ``Elastic`` and ``Training`` work is made
    of them, that of ``Profiled`` work of the seconds as they are written. ``Fixed`` work has no iterations. See
    :func:`job_duration_us` for the parameters and the errors.

    Examples
    --------
    >>> table = {"one_server": {1: (0.4, 0.2), 2: (0.25, 0.15)}, "many_servers": {2: (0.3, 0.2)}}
    >>> work = Elastic(iterations=100, widths=[1, 2], seconds_per_iteration=table, compute_shares=[0, 1])
    >>> job, cluster = Job(id="a", release_s=0, gpus=2, work=work), Cluster.uniform(2)
    >>> where = [Placement([(0, (1,))]), Placement([(0, (1,)), (1, (1,))])]
    >>> [iteration_ns_of(job, cluster, placement, level=1) for placement in where]
    [200000000, 200000000]
    """
    work = job.work
    if level and not isinstance(work, Elastic):
        raise InvalidValueError(f"job {job.id!r}", "level", level, "must be 0: its work has no freeze levels")
    if isinstance(work, Fixed):
        raise InvalidValueError(f"job {job.id!r}", "work", work, "has no iterations")
    if isinstance(work, Profiled):
        return int(-(-_iteration_s(work, [placement_class(placement)]) * _NS_PER_S // 1))
    if isinstance(work, Elastic):
        return elastic_iteration_ns(work, placement.gpus, placement_class(placement), level)
    return iteration_ns(training_time(work.plan, cluster, placement.servers), placement)


def iterations_within(job: Job, cluster: Cluster, placement: Placement, time_us: int, level: int = 0) -> int:
    """Whole iterations that a job does in so many microseconds on a placement, whatever its own number of iterations.

    It is less than the iterations of the job before :func:`job_duration_us`. See there for the parameters and the
    errors; ``Fixed`` work has no iterations.

    Examples
    --------
    >>> job = Job(id="a", release_s=0, gpus=1, work=Profiled(iterations=9, seconds_per_iteration={"one_server": 0.1}))
    >>> [iterations_within(job, Cluster.uniform(1), Placement([(0, (1,))]), us) for us in (99_999, 100_000, 899_999)]
    [0, 1, 8]
    """
    if isinstance(job.work, Profiled) and not level:
        return int(time_us / (_iteration_s(job.work, [placement_class(placement)]) * US_PER_S))
    return time_us * _NS_PER_US // iteration_ns_of(job, cluster, placement, level)


def left_after(job: Job, cluster: Cluster, placement: Placement, time_us: int, level: int = 0) -> Job:
    """The job with what is left of it after so many microseconds on a placement, less than it takes there.

    Of ``Fixed`` work every microsecond is kept, of other work whole iterations.

    Examples
    --------
    >>> job = Job(id="a", release_s=0, gpus=1, work=Profiled(iterations=9, seconds_per_iteration={"one_server": 0.1}))
    >>> left_after(job, Cluster.uniform(1), Placement([(0, (1,))]), 250_000).work.iterations
    7
    """
    work = job.work
    if isinstance(work, Fixed):
        left_us = duration_us(work.duration_s) - time_us
        return job.replace(work=Fixed(duration_s=left_us / US_PER_S))
    done = iterations_within(job, cluster, placement, time_us, level)
    return job.replace(work=replace(work, iterations=work.iterations - done))


def fastest_us(job: Job, cluster: Cluster) -> int:
    """Lower bound in microseconds on the run time of a job over all its allowed placements on the empty cluster.

    It is exact for ``Fixed`` and ``Profiled`` work, for ``Elastic`` work on the GPUs it asks for at level 0, and for
    ``Training`` work that fits one server of the fastest type. For other training work it leaves out what crosses
    between servers.

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
        return _profiled_us(job, work, reachable_classes(job, cluster))
    if isinstance(work, Elastic):
        return min(_elastic_us(job, work, where) for where in reachable_classes(job, cluster))
    fastest_ns = _fastest_ns(_Same(work.plan), _Same(cluster))
    return _checked(job, -(-work.iterations * fastest_ns // _NS_PER_US))


def slowest_us(job: Job, cluster: Cluster) -> int:
    """Upper bound in microseconds on the run time of a job over all its allowed placements on the cluster.

    It is exact for ``Fixed`` and ``Profiled`` work, and for ``Elastic`` work on the GPUs it asks for at level 0.
    Training work that may spread is taken to send all its traffic through the slowest card, on the slowest GPU type.

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
    classes = reachable_classes(job, cluster)
    if isinstance(work, Profiled):
        return max(_profiled_us(job, work, [where]) for where in classes)
    if isinstance(work, Elastic):
        return max(_elastic_us(job, work, where) for where in classes)
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
    slowest = slowest_type(plan, cluster, servers)
    return _model(_Same(plan), slowest, _Same(cluster))


def slowest_type(plan: TrainingPlan, cluster: Cluster, servers: Iterable[int] | None = None) -> GpuType:
    """GPU type that sets the pace of a training plan: the slowest in its precision among some servers (default all).

    Parameters
    ----------
    plan : TrainingPlan
        The plan.
    cluster : Cluster
        The servers.
    servers : iterable of int, optional
        Indices of the servers that are used.

    Raises
    ------
    InvalidValueError
        No servers, or one that the cluster does not have.
    UnknownNameError
        Several GPU types, one of which has no such precision.
    """
    types = _gpu_types(_Same(cluster))
    if len(types) != 1:
        indices = range(len(cluster.servers)) if servers is None else servers
        chosen = (_server_type(cluster, m) for m in indices)
        types = tuple(sorted(chosen, key=lambda kind: (kind.peak(plan.precision), kind.name)))
    if not types:
        raise InvalidValueError("training time", "servers", (), "must not be empty")
    return types[0]


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


def _server_type(cluster: Cluster, server: int) -> GpuType:
    if not 0 <= server < len(cluster.servers):
        raise InvalidValueError("placement", "server", server, f"must be below {len(cluster.servers)}")
    return cluster.servers[server].gpu_type


def reachable_classes(job: Job, cluster: Cluster) -> list[PlacementClass]:
    """Classes of placement that the locality of a job allows on the empty cluster, never none.

    Examples
    --------
    >>> job = Job(id="a", release_s=0, gpus=4, work=Fixed(duration_s=1), locality="fewest")
    >>> [where.value for where in reachable_classes(job, Cluster.uniform(2))]
    ['one_server']
    """
    classes = []
    fits_one = job.gpus <= cluster.largest
    if fits_one:
        classes.append(PlacementClass.ONE_SERVER)
    spreads = job.locality is Locality.ANY or (job.locality is Locality.FEWEST and not fits_one)
    if spreads and job.gpus > 1 and len(cluster.servers) > 1:
        classes.append(PlacementClass.MANY_SERVERS)
    return classes or list(PlacementClass)


def _profiled_us(job: Job, work: Profiled, classes: Iterable[PlacementClass]) -> int:
    return _checked(job, -(-work.iterations * _iteration_s(work, classes) * US_PER_S // 1))


def placement_class(placement: Placement) -> PlacementClass:
    """Whether a placement is in one server or on many."""
    return PlacementClass.ONE_SERVER if len(placement.loads) == 1 else PlacementClass.MANY_SERVERS


def _elastic_us(job: Job, work: Elastic, where: PlacementClass) -> int:
    return _checked(job, -(-work.iterations * elastic_iteration_ns(work, job.gpus, where, 0) // _NS_PER_US))


def elastic_iteration_ns(work: Elastic, gpus: int, where: PlacementClass, level: int = 0) -> int:
    """Nanoseconds of one reference iteration, rounded up; see :meth:`~frostline.problem.Elastic.seconds`."""
    return int(-(-_written(work.seconds(gpus, where, level)) * _NS_PER_S // 1))


def _iteration_s(work: Profiled, classes: Iterable[PlacementClass]) -> Fraction:
    """Measured seconds of an iteration in the fastest of some classes of placement."""
    table = work.seconds_per_iteration
    known = [table[where] for where in classes if where in table] or list(table.values())
    return _written(min(known))


@lru_cache(maxsize=4096)
def _written(value: float) -> Fraction:
    """The number as it is written: 0.1 is one tenth, not the binary fraction next to it."""
    return Fraction(repr(value))


def _checked(job: Job, time_us: int) -> int:
    if time_us > LONGEST_US:
        raise InvalidValueError(f"job {job.id!r}", "duration_us", time_us, f"must be at most {LONGEST_US}")
    return max(time_us, 1)
