"""The placement call: checks the request, runs a method on each GPU type, checks and times its answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy.typing as npt

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.placement.answer import Answer, Method
from frostline.placement.auto import auto
from frostline.placement.brute_force import brute_force
from frostline.placement.certificate import Evidence
from frostline.placement.consolidate import by_parts
from frostline.placement.contiguous import contiguous
from frostline.placement.cpsat import cpsat
from frostline.placement.gpu_types import Choice, choices
from frostline.placement.heavy_edge import heavy_edge
from frostline.placement.interruptible import InterruptedSearchError
from frostline.placement.local_search import local_search
from frostline.placement.milp import milp
from frostline.placement.packing import best_fit
from frostline.placement.patterns import patterns
from frostline.placement.request import (
    DoesNotFitError,
    Objective,
    Progress,
    Request,
    columns_of,
    fewest_is_certain,
    rank,
)
from frostline.placement.result import PlacementResult
from frostline.problem.cluster import Cluster
from frostline.problem.placement import Placement
from frostline.problem.plan import TrainingPlan
from frostline.status import Status
from frostline.timing.iteration_time import IterationTime, Matrix, cut_bytes, iteration_ns
from frostline.timing.stage_graph import StageGraph
from frostline.units import as_finite, as_int

__all__ = ["METHODS", "Answer", "Method", "place"]


def _heuristic(name: str, search: Callable[[Request], Matrix]) -> Method:
    return by_parts(lambda request: Answer(matrix=search(request), source=name))


METHODS: dict[str, Method] = {
    "auto": auto,
    "best-fit": _heuristic("best-fit", best_fit),
    "brute-force": brute_force,
    "contiguous": _heuristic("contiguous", contiguous),
    "cpsat": cpsat,
    "heavy-edge": _heuristic("heavy-edge", heavy_edge),
    "local-search": _heuristic("local-search", local_search),
    "milp": milp,
    "milp-cbc": partial(milp, solver="cbc"),
    "milp-highs": partial(milp, solver="highs"),
    "patterns": patterns,
}
"""Placement methods by name."""

_MOST_WORKERS = 1024


def place(
    work: StageGraph | IterationTime | TrainingPlan,
    free: Sequence[int] | npt.NDArray[Any],
    *,
    method: str = "auto",
    objective: str = "time",
    time_limit_s: float | None = None,
    gap: float = 0.0,
    seed: int = 0,
    workers: int = 1,
    cluster: Cluster | None = None,
    progress: Progress | None = None,
) -> PlacementResult:
    """Place the replicas of a job on free GPUs so that an iteration takes as little time as possible.

    Equal iteration times are told apart by fewer servers, then best fit (large holes stay whole), then lower server
    indices; exact methods prove the time and take the fewest servers they come across. The problem is strongly
    NP-hard; the result says whether its placement is proved optimal.

    Where the servers of ``cluster`` have several GPU types, all replicas go to servers of one type, the one with the
    best result; a certificate is then about the servers of that type.

    Parameters
    ----------
    work : StageGraph, IterationTime or TrainingPlan
        The job's stages, timed by :class:`~frostline.timing.contention.ContentionTime` on the servers of ``cluster``
        (servers of the default bandwidths without one); or a model of its iteration time; or its training plan, timed
        on each GPU type of ``cluster``.
    free : sequence of int, shape (servers,)
        Free GPUs of each server.
    method : str
        One of :data:`METHODS`.
    objective : {"time", "consolidate"}
        ``consolidate`` takes the fewest servers first, and then the least iteration time.
    time_limit_s : float, optional
        Seconds after which a search stops with the best so far; a few milliseconds may pass beyond it, and the time to
        load a solver for the first time. Without a limit, ``auto`` stops after local search, and exact methods after a
        fixed effort of about ten seconds, ``milp`` a minute.
    gap : float
        Distance to the bound, as a share of it, at which an exact search may stop.
    seed : int
        Seed of random choices. The same seed gives the same placement, unless a time limit cuts the search short.
    workers : int
        Threads of ``cpsat`` and ``milp-cbc``. With more than one, equal searches may end differently.
    cluster : Cluster, optional
        The servers.
    progress : callable, optional
        Told of the best iteration time and the best bound so far, in nanoseconds, as an exact search goes on (``milp``
        tells nothing on the way). A true answer stops the search; its errors reach the caller.

    Returns
    -------
    PlacementResult
        Also after Ctrl-C, with the best so far, where there is one.

    Raises
    ------
    DoesNotFitError
        More replicas than free GPUs, or no way to keep each replica inside one server and all on one GPU type.
    InvalidValueError
        A bad argument.
    UnknownNameError
        Unknown method or objective.
    TooLargeError
        The case is beyond the method, by an estimate made before any work.
    SolverUnavailableError
        No solver for ``milp`` can be run.
    KeyboardInterrupt
        Ctrl-C before there is any placement.

    Examples
    --------
    >>> path = StageGraph(replicas=[1] * 4, compute_s=[0.1] * 4, edges={(0, 1): 10**9, (1, 2): 10**8, (2, 3): 10**9})
    >>> result = place(path, [2, 2])
    >>> result.placement.matrix(2).tolist(), result.cut_bytes, result.servers_used
    ([[0, 0, 1, 1], [1, 1, 0, 0]], 100000000, 2)
    >>> place(path, [2, 2], method="patterns").status.proved_optimal
    True
    >>> place(StageGraph.rigid(3), [8, 4, 8]).placement.loads
    ((1, 3),)
    """
    started_s = time.perf_counter()
    if method not in METHODS:
        raise UnknownNameError("placement method", str(method), METHODS)
    limit_s = float("inf") if time_limit_s is None else as_finite(time_limit_s, "placement", "time_limit_s", 0.0)
    search = _Search(
        method=METHODS[method],
        deadline_s=started_s + limit_s,
        fields={
            "deadline_s": started_s + limit_s,
            "objective": _objective(objective),
            "gap": as_finite(gap, "placement", "gap", 0.0),
            "seed": as_int(seed, "placement", "seed", 0),
            "workers": _workers(workers),
            "progress": progress,
        },
    )
    outcome = search.run(choices(work, _checked_free(free, cluster), cluster))
    return _result(outcome, method, started_s)


def _workers(workers: object) -> int:
    count = as_int(workers, "placement", "workers", 1)
    if count > _MOST_WORKERS:
        raise InvalidValueError("placement", "workers", workers, f"must be at most {_MOST_WORKERS}")
    return count


def _objective(name: str) -> Objective:
    if name not in set(Objective):
        raise UnknownNameError("placement objective", str(name), Objective)
    return Objective(name)


def _checked_free(free: Sequence[int] | npt.NDArray[Any], cluster: Cluster | None) -> tuple[int, ...]:
    if not isinstance(free, Iterable):
        raise InvalidValueError("placement", "free", free, "must be a sequence with one entry per server")
    counts = tuple(
        value if type(value) is int and value >= 0 else as_int(value, f"server {m}", "free", 0)
        for m, value in enumerate(free)
    )
    if cluster is None:
        return counts
    if len(counts) != len(cluster.servers):
        rule = f"must have one entry for each of {len(cluster.servers)} servers"
        raise InvalidValueError("placement", "free", counts, rule)
    for server, value in zip(cluster.servers, counts, strict=True):
        if value > server.gpus:
            raise InvalidValueError(f"server {server.id!r}", "free", value, f"must be at most its {server.gpus} GPUs")
    return counts


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    """The best answer over all GPU types, its bound over all of them, and whether all were searched to the end."""

    request: Request
    answer: Answer
    bound_ns: int
    bound: str
    complete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """A method and its limits, to be run on each choice of servers."""

    method: Method
    deadline_s: float
    fields: dict[str, Any]

    def run(self, options: Sequence[Choice]) -> _Outcome:
        """Best answer over some choices of servers, or the error where the job fits none of them."""
        requests = _fitting(options, self.fields)
        answers: list[tuple[Request, Answer]] = []
        complete = True
        try:
            for index, request in enumerate(requests):
                answers.append((request, self.method(self._limited(request, len(requests) - index))))
        except InterruptedSearchError as stop:
            answers.append((requests[len(answers)], stop.answer))
            complete = len(answers) == len(requests)
        except KeyboardInterrupt:
            if not answers:
                raise
            complete = False
        return _best(requests, answers, complete)

    def _limited(self, request: Request, left: int) -> Request:
        """Request with an equal share of the time for each choice that is left."""
        if left == 1:
            return request
        now_s = time.perf_counter()
        return replace(request, deadline_s=now_s + (self.deadline_s - now_s) / left)


def _fitting(options: Sequence[Choice], fields: dict[str, Any]) -> list[Request]:
    requests, errors = [], []
    for timing, free in options:
        try:
            requests.append(Request(timing=timing, free=free, **fields))
        except DoesNotFitError as error:
            errors.append(error)
    if requests:
        return requests
    if len(errors) == 1:
        raise errors[0]
    # Free GPUs of each type are disjoint.
    most = max(errors, key=lambda error: error.offer_gpus)
    why = most.why or f"at most {most.offer_gpus} are of one GPU type"
    raise DoesNotFitError(most.need_gpus, sum(error.offer_gpus for error in errors), why)


def _best(requests: Sequence[Request], answers: Sequence[tuple[Request, Answer]], complete: bool) -> _Outcome:
    request, answer = answers[0]
    if len(answers) > 1:
        request, answer = min(answers, key=lambda pair: rank(pair[0], pair[1].matrix))
    rivals = [_bound(other, found) for other, found in answers if _may_win(other, found, answer)]
    rivals += [(other.timing.bound_ns, "base") for other in requests[len(answers) :]]
    bound_ns, bound = min(rivals)
    return _Outcome(request=request, answer=answer, bound_ns=bound_ns, bound=bound, complete=complete)


def _may_win(request: Request, answer: Answer, best: Answer) -> bool:
    """Whether the bound of an answer counts: not where it is on more servers and those come first."""
    consolidate = request.objective is Objective.CONSOLIDATE
    return not consolidate or answer.matrix.any(axis=1).sum() == best.matrix.any(axis=1).sum()


def _bound(request: Request, answer: Answer) -> tuple[int, str]:
    return max((request.timing.bound_ns, "base"), (answer.bound_ns, answer.bound))


def _result(outcome: _Outcome, method: str, started_s: float) -> PlacementResult:
    request, answer = outcome.request, outcome.answer
    timing = request.timing
    placement = Placement(columns_of(request, answer.matrix), timing.graph.gpus_per_replica)
    value_ns = iteration_ns(timing, placement)
    proved = outcome.complete and value_ns == outcome.bound_ns and fewest_is_certain(request)
    return PlacementResult(
        placement=placement,
        iteration_ns=value_ns,
        bound_ns=outcome.bound_ns,
        cut_bytes=cut_bytes(timing.graph, placement),
        status=Status(valid=True, proved_optimal=proved, source=answer.source, bound=outcome.bound),
        method=method,
        runtime_s=time.perf_counter() - started_s,
        evidence=Evidence(request, answer.proof),
    )
