"""What a task may run on: one option for each number of GPUs that the cluster holds within its locality."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from frostline.placement.free_gpus import empty_servers, shape_of
from frostline.policies.task import Task
from frostline.problem.cluster import Cluster
from frostline.problem.job import Elastic, Fixed, Job, PlacementClass
from frostline.units import US_PER_S

__all__ = ["Flags", "Floats", "Ints", "Options", "options_of", "units_of"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
_Reach = tuple[tuple[int, PlacementClass], ...]
"""Widths, each with the class of its best placement."""


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
        job, work = task.job, task.job.work
        reach = _reach(_Key(job, cluster, (id(cluster), job.locality, work.widths)), closed)
        return _elastic(_Key(job, cluster, (id(work.seconds_per_iteration), work.compute_shares)), reach)
    seconds = np.array([[task.duration_us / (units_of(task) * US_PER_S)]])
    return Options(gpus=np.array([task.gpus], np.int64), seconds=seconds, spread=seconds)


class _Key:
    """Key of a cache: what the answer depends on, and the job and the cluster, which it keeps alive."""

    __slots__ = ("cluster", "job", "key", "work")

    def __init__(self, job: Job, cluster: Cluster, key: tuple[Hashable, ...]) -> None:
        assert isinstance(job.work, Elastic)
        self.job, self.work, self.cluster, self.key = job, job.work, cluster, key

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.key == other.key


@lru_cache(maxsize=4096)
def _reach(key: _Key, closed: int) -> _Reach:
    """Widths of elastic work that the open servers hold, each with the class of its best placement."""
    empty = empty_servers(key.cluster.capacities, closed)
    held = ((gpus, empty.best_fit(shape_of(key.job, key.cluster, gpus))) for gpus in key.work.widths)
    one, many = PlacementClass.ONE_SERVER, PlacementClass.MANY_SERVERS
    return tuple((gpus, one if len(loads) == 1 else many) for gpus, loads in held if loads is not None)


@lru_cache(maxsize=4096)
def _elastic(key: _Key, reach: _Reach) -> Options:
    """Options of elastic work on some widths, each of which is in one server at best, or in many."""
    work, many = key.work, PlacementClass.MANY_SERVERS
    return Options(
        gpus=np.array([gpus for gpus, _ in reach], np.int64),
        seconds=np.array([_row(work, gpus, where) for gpus, where in reach]),
        spread=np.array([_row(work, gpus, many) for gpus, _ in reach]),
        shares=work.compute_shares,
    )


def _row(work: Elastic, gpus: int, where: PlacementClass) -> list[float]:
    return [work.seconds(gpus, where, level) for level in range(work.levels)]
