"""The placement call: checks the request, runs a method, checks and times its answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.placement.contiguous import contiguous
from frostline.placement.heavy_edge import heavy_edge
from frostline.placement.local_search import local_search
from frostline.placement.packing import best_fit
from frostline.placement.request import Objective, Request, columns_of, fewest_servers, rank
from frostline.placement.result import PlacementResult
from frostline.problem.cluster import Cluster
from frostline.problem.placement import Placement
from frostline.status import Status
from frostline.timing.contention import ContentionTime
from frostline.timing.iteration_time import IterationTime, Matrix, cut_bytes, iteration_ns
from frostline.timing.stage_graph import StageGraph
from frostline.units import as_finite, as_int

__all__ = ["METHODS", "Answer", "Method", "place"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a method found.

    Parameters
    ----------
    matrix : ndarray of int64, shape (rows, stages)
        Replicas of each stage on each row of the request.
    source : str
        What found it.
    bound_ns : int
        Lower bound on the iteration time on the rows of the request; 0 if the method proves none.
    bound : str
        What proved the bound.
    """

    matrix: Matrix
    source: str
    bound_ns: int = 0
    bound: str = ""


Method = Callable[[Request], Answer]
"""A placement method."""


def _heuristic(name: str, search: Callable[[Request], Matrix]) -> Method:
    return lambda request: Answer(matrix=search(request), source=name)


METHODS: dict[str, Method] = {
    "auto": _heuristic("local-search", local_search),
    "best-fit": _heuristic("best-fit", best_fit),
    "contiguous": _heuristic("contiguous", contiguous),
    "heavy-edge": _heuristic("heavy-edge", heavy_edge),
    "local-search": _heuristic("local-search", local_search),
}
"""Placement methods by name."""


def place(
    work: StageGraph | IterationTime,
    free: Sequence[int] | npt.NDArray[Any],
    *,
    method: str = "auto",
    objective: str = "time",
    time_limit_s: float = 10.0,
    seed: int = 0,
    cluster: Cluster | None = None,
) -> PlacementResult:
    """Place the replicas of a job on free GPUs so that an iteration takes as little time as possible.

    Equal iteration times are told apart by fewer servers, then best fit (large holes stay whole), then lower server
    indices. The problem is strongly NP-hard; the result says whether its placement is proved optimal.

    Parameters
    ----------
    work : StageGraph or IterationTime
        The job's stages, timed by :class:`~frostline.timing.contention.ContentionTime` on the servers of ``cluster``
        (servers of the default bandwidths without one), or a model of its iteration time.
    free : sequence of int, shape (servers,)
        Free GPUs of each server.
    method : str
        One of :data:`METHODS`.
    objective : {"time", "consolidate"}
        ``consolidate`` takes the fewest servers first, and then the least iteration time.
    time_limit_s : float
        Seconds after which a search stops with the best so far; a few milliseconds may pass beyond it.
    seed : int
        Seed of random choices. The same seed gives the same placement, unless the time limit cuts the search short.
    cluster : Cluster, optional
        The servers.

    Raises
    ------
    DoesNotFitError
        More replicas than free GPUs.
    InvalidValueError
        A bad argument.
    UnknownNameError
        Unknown method or objective.

    Examples
    --------
    >>> path = StageGraph(replicas=[1] * 4, compute_s=[0.1] * 4, edges={(0, 1): 10**9, (1, 2): 10**8, (2, 3): 10**9})
    >>> result = place(path, [2, 2])
    >>> result.placement.matrix(2).tolist(), result.cut_bytes, result.servers_used
    ([[0, 0, 1, 1], [1, 1, 0, 0]], 100000000, 2)
    >>> place(StageGraph.rigid(3), [8, 4, 8]).placement.loads
    ((1, 3),)
    """
    started_s = time.perf_counter()
    if method not in METHODS:
        raise UnknownNameError("placement method", str(method), METHODS)
    limit_s = as_finite(time_limit_s, "placement", "time_limit_s", 0.0)
    request = Request(
        timing=_timing(work, cluster),
        free=_checked_free(free, cluster),
        objective=_objective(objective),
        seed=as_int(seed, "placement", "seed", 0),
        deadline_s=started_s + limit_s,
    )
    answers = [(part, METHODS[method](part)) for part in _parts(request)]
    part, answer = min(answers, key=lambda pair: rank(pair[0], pair[1].matrix))
    return _result(part, answer, method, started_s)


def _timing(work: StageGraph | IterationTime, cluster: Cluster | None) -> IterationTime:
    if isinstance(work, StageGraph):
        return ContentionTime(graph=work) if cluster is None else ContentionTime.of_cluster(work, cluster)
    if not isinstance(work, IterationTime):
        raise InvalidValueError("placement", "work", work, "must be a stage graph or a model of its iteration time")
    return work


def _objective(name: str) -> Objective:
    if name not in set(Objective):
        raise UnknownNameError("placement objective", str(name), Objective)
    return Objective(name)


def _checked_free(free: Sequence[int] | npt.NDArray[Any], cluster: Cluster | None) -> tuple[int, ...]:
    if not isinstance(free, Iterable):
        raise InvalidValueError("placement", "free", free, "must be a sequence with one entry per server")
    counts = tuple(as_int(value, f"server {m}", "free", 0) for m, value in enumerate(free))
    if cluster is None:
        return counts
    if len(counts) != len(cluster.servers):
        rule = f"must have one entry for each of {len(cluster.servers)} servers"
        raise InvalidValueError("placement", "free", counts, rule)
    for server, value in zip(cluster.servers, counts, strict=True):
        if value > server.gpus:
            raise InvalidValueError(f"server {server.id!r}", "free", value, f"must be at most its {server.gpus} GPUs")
    return counts


def _parts(request: Request) -> Iterator[Request]:
    """The request itself, or for ``consolidate`` the request on sets of as few servers as possible."""
    if request.objective is Objective.TIME:
        yield request
        return
    fewest = fewest_servers(request)
    largest = tuple(range(fewest))
    yield request.restricted(largest)
    fastest = _fastest_rows(request, fewest) if request.classes.any() else largest
    if fastest != largest:
        yield request.restricted(fastest)


def _fastest_rows(request: Request, fewest: int) -> tuple[int, ...]:
    """So many rows that hold the job, each in turn of the fastest class that leaves enough for the rest."""
    left = list(range(len(request.rows)))
    chosen: list[int] = []
    for missing in range(fewest - 1, -1, -1):
        by_speed = sorted(left, key=lambda row: (int(request.classes[row]), row))
        row = next(row for row in by_speed if _enough(request, [*chosen, row], left, missing))
        chosen.append(row)
        left.remove(row)
    return tuple(sorted(chosen))


def _enough(request: Request, chosen: list[int], left: list[int], missing: int) -> bool:
    """Whether chosen rows and the ``missing`` largest of the rest hold the job."""
    rest = [row for row in left if row != chosen[-1]][:missing]
    return bool(request.room[[*chosen, *rest]].sum() >= request.need)


def _result(request: Request, answer: Answer, method: str, started_s: float) -> PlacementResult:
    timing = request.timing
    placement = Placement(columns_of(request, answer.matrix), timing.graph.gpus_per_replica)
    value_ns = iteration_ns(timing, placement)
    base_ns = timing.bound_ns
    bound_ns, bound = max((base_ns, "base"), (answer.bound_ns, answer.bound))
    return PlacementResult(
        placement=placement,
        iteration_ns=value_ns,
        bound_ns=bound_ns,
        cut_bytes=cut_bytes(timing.graph, placement),
        status=Status(valid=True, proved_optimal=value_ns == bound_ns, source=answer.source, bound=bound),
        method=method,
        runtime_s=time.perf_counter() - started_s,
    )
