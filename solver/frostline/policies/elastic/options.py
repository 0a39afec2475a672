"""What a task may run on: one option for each number of GPUs that the cluster holds within its locality."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from frostline.placement.free_gpus import FreeGpus, shape_of
from frostline.policies.task import Task
from frostline.problem.cluster import Cluster
from frostline.problem.job import Elastic, Fixed, Job, PlacementClass
from frostline.units import US_PER_S

__all__ = ["Flags", "Floats", "Ints", "Options", "options_of", "units_of"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Options:
    """Options of a task, the narrowest first.

    Parameters
    ----------
    gpus : ndarray of int64, shape (options,)
        GPUs of each.
    seconds : ndarray of float64, shape (options, levels)
        Seconds of one unit of work at each freeze level, in one server where it holds the GPUs.
    spread : ndarray of float64, shape (options, levels)
        The same on many servers.
    shares : tuple of float, shape (levels,)
        Share of the work frozen at each level.
    """

    gpus: Ints
    seconds: Floats
    spread: Floats
    shares: tuple[float, ...] = (0.0,)

    @property
    def gpu_s(self) -> float:
        """GPU-seconds of one unit of work without freezing, where they are fewest."""
        return float((self.gpus * self.seconds[:, 0]).min())


def units_of(task: Task) -> int:
    """Units of work that all runs of a task but those before the present one have to do.

    A unit is an iteration, or a microsecond where the work is fixed.
    """
    work = task.job.work
    return task.duration_us if isinstance(work, Fixed) else work.iterations


def options_of(task: Task, cluster: Cluster, closed: int = 0) -> Options:
    """Options of a task; work that is not elastic has one, the GPUs it asks for.

    Parameters
    ----------
    task : Task
        The task.
    cluster : Cluster
        The servers.
    closed : int
        Servers that take no starts, as bits; elastic work has no options that need them.

    Examples
    --------
    >>> from frostline.placement.free_gpus import Shape
    >>> table = {"one_server": {1: [8.0], 2: [5.0]}, "many_servers": {2: [6.0], 4: [4.0]}}
    >>> work = Elastic(iterations=9, widths=[1, 2, 4], seconds_per_iteration=table)
    >>> job = Job(id="a", release_s=0, gpus=1, work=work)
    >>> task = Task(job=job, release_us=0, shape=Shape(1, 1), duration_us=72_000_000)
    >>> options = options_of(task, Cluster.uniform(3, gpus=2))
    >>> options.gpus.tolist(), options.seconds.ravel().tolist(), options.gpu_s
    ([1, 2, 4], [8.0, 5.0, 4.0], 8.0)
    """
    if isinstance(task.job.work, Elastic):
        return _elastic(_Key(task.job, cluster, closed))
    seconds = np.array([[task.duration_us / (units_of(task) * US_PER_S)]])
    return Options(gpus=np.array([task.gpus], np.int64), seconds=seconds, spread=seconds)


class _Key:
    """Key of a cache: jobs of one application on one cluster have the same; it keeps what it stands for alive."""

    __slots__ = ("_key", "closed", "cluster", "job", "work")

    def __init__(self, job: Job, cluster: Cluster, closed: int) -> None:
        assert isinstance(job.work, Elastic)
        self.job, self.work, self.cluster, self.closed = job, job.work, cluster, closed
        self._key = (id(job.work.seconds_per_iteration), job.work.compute_shares, job.locality, id(cluster), closed)

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self._key == other._key


@lru_cache(maxsize=4096)
def _elastic(key: _Key) -> Options:
    """Options of elastic work; while all servers are up the GPUs that a job asks for are one."""
    job, work, cluster = key.job, key.work, key.cluster
    empty = FreeGpus(cluster.capacities)
    for server, gpus in enumerate(cluster.capacities):
        if key.closed >> server & 1:
            empty.close(server, gpus)
    held = {gpus: empty.best_fit(shape_of(job, cluster, gpus)) for gpus in work.widths}
    widths = [gpus for gpus in work.widths if held[gpus] is not None]
    one, many = PlacementClass.ONE_SERVER, PlacementClass.MANY_SERVERS
    best = [one if len(held[gpus] or ()) == 1 else many for gpus in widths]
    return Options(
        gpus=np.array(widths, np.int64),
        seconds=np.array([_row(work, gpus, where) for gpus, where in zip(widths, best, strict=True)]),
        spread=np.array([_row(work, gpus, many) for gpus in widths]),
        shares=work.compute_shares,
    )


def _row(work: Elastic, gpus: int, where: PlacementClass) -> list[float]:
    return [work.seconds(gpus, where, level) for level in range(work.levels)]
