"""What proves the bound of a result to a checker that trusts no solver: an optimality tree, or the best prices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from frostline.errors import InvalidValueError
from frostline.offline.result import SolveResult
from frostline.offline.tasks import Objective
from frostline.problem.instance import Instance
from frostline.relaxation.bounds import bound_certificate, lower_bound
from frostline.relaxation.lagrangian.ascent import best_prices
from frostline.relaxation.lagrangian.certificate import certificate_of
from frostline.relaxation.lagrangian.last import prove_last
from frostline.relaxation.lagrangian.packing import Packing
from frostline.relaxation.lagrangian.problem import PriceProblem, price_problem
from frostline.relaxation.lagrangian.start import breakpoints
from frostline.relaxation.lagrangian.tree import Tree, prove
from frostline.units import instant_us

__all__ = ["Certified", "certified"]

_MOST_JOBS = 60
_MOST_NODES, _MOST_LAST_NODES = 400, 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Certified:
    """A certificate, and what it proves.

    Parameters
    ----------
    document : dict
        The certificate, for :func:`frostline.verify.check_bound` with the instance of the result.
    method : str
        ``tree`` of a complete one, else ``prices`` or ``pointwise``.
    bound_us : int
        Bound that it proves on the objective, in microseconds.
    optimal : bool
        Whether it proves that the schedule is optimal.
    nodes : int
        Nodes of trees that were looked at, 0 where none was tried.
    """

    document: dict[str, Any] = field(repr=False)
    method: str
    bound_us: int
    optimal: bool
    nodes: int


def certified(result: SolveResult, *, widths: bool = False, callback: Callable[[int], bool] | None = None) -> Certified:
    """Certificate of a result: that its schedule is optimal, if that can be proved, else of the best bound.

    Up to 60 jobs an optimality tree is tried, with the objective of the schedule as its target. It sees a pool of all
    GPUs, each job at its fastest, and no deadlines. Where these matter, or the tree grows too large, the
    certificate proves less than the solver did. What of the instance the bound is about says
    :func:`frostline.verify.stated_problem`.

    Parameters
    ----------
    result : SolveResult
        What was found. Of options that were given the certificate is about the chosen ones alone.
    widths : bool
        Whether elastic jobs were free to run on any of their widths; the certificate allows them any level, too.
    callback : function of int, optional
        Is told how many nodes of a tree were looked at; gives it up by returning true.

    Raises
    ------
    InvalidValueError
        There is no schedule, or no job in it.

    Examples
    --------
    >>> from frostline.verify import check_bound
    >>> from frostline.offline import solve
    >>> from frostline.problem import Cluster, Fixed, Instance, Job
    >>> jobs = [Job(id=i, release_s=0, work=Fixed(duration_s=d), gpus=g) for i, d, g in [("a", 10, 8), ("b", 2, 4)]]
    >>> result = solve(Instance(cluster=Cluster.pool(8), jobs=jobs), objective="flow")
    >>> found = certified(result)
    >>> found.method, found.optimal, found.bound_us
    ('tree', True, 14000000)
    >>> check_bound(result.instance, found.document).proved
    'no schedule without interruptions has a total completion time below 14 s'
    """
    if result.schedule is None:
        raise InvalidValueError("certificate", "schedule", None, "must have been found")
    problem = price_problem(result.instance, elastic=widths)
    if not problem.jobs:
        raise InvalidValueError("certificate", "jobs", 0, "must be at least one")
    ends_us = result.schedule.completion_us
    makespan = result.goal is Objective.MAKESPAN
    known_us = max(ends_us.values()) if makespan else sum(ends_us.values())
    tree = _tree(problem, makespan, known_us // problem.tick_us, callback)
    best = None if tree is None else _Proof("tree" if tree.complete else "prices", certificate_of(problem, tree))
    if best is None or (best.method != "tree" and not makespan):
        best = max(filter(None, [_simple(result.instance, problem, widths), best]), key=lambda proof: proof.bound)
    proved_us = best.bound * problem.tick_us
    return Certified(
        document=best.document,
        method=best.method,
        bound_us=proved_us - _offset_us(result, ends_us),
        optimal=proved_us == known_us,
        nodes=0 if tree is None else tree.explored,
    )


class _Proof(NamedTuple):
    """How a bound was found, and its certificate."""

    method: str
    document: dict[str, Any]

    @property
    def bound(self) -> int:
        """The bound in ticks."""
        return int(self.document["bound"])


def _tree(problem: PriceProblem, makespan: bool, target: int, callback: Callable[[int], bool] | None) -> Tree | None:
    """Tree that proves a target or, if that takes too long, less; None where it would be too large from the start."""
    small = problem.jobs <= _MOST_JOBS
    if makespan:
        return prove_last(problem, target, most_nodes=_MOST_LAST_NODES if small else 1, callback=callback)
    if not small or not Packing.is_cheap(problem.by_option(), len(breakpoints(problem)) - 1):
        return None
    return prove(problem, target, most_nodes=_MOST_NODES, callback=callback)


def _simple(instance: Instance, problem: PriceProblem, widths: bool) -> _Proof:
    """The best bound without a tree."""
    if widths:
        return _Proof("prices", certificate_of(problem, best_prices(problem).best))
    bound = lower_bound(instance, "best")
    return _Proof("pointwise" if bound.prices is None else "prices", bound_certificate(instance, bound))


def _offset_us(result: SolveResult, ends_us: Mapping[str, int]) -> int:
    """What the sum of completions, or the last one, has above the objective."""
    releases_us = [instant_us(job.release_s) for job in result.instance.jobs if job.id in ends_us]
    if result.goal is Objective.MAKESPAN:
        return min(releases_us)
    return sum(releases_us) if result.goal is Objective.FLOW else 0
