"""The placement that an exact method starts from, and what it believes of a solver's claims."""

from __future__ import annotations

import logging
from dataclasses import replace

from frostline.errors import InvalidValueError
from frostline.placement.answer import Answer
from frostline.placement.consolidate import by_parts
from frostline.placement.local_search import local_search, merged
from frostline.placement.request import Objective, Request, rank
from frostline.timing.column_costs import ColumnCosts
from frostline.timing.iteration_time import Matrix

__all__ = ["believed", "bounded", "check_horizon", "close_enough", "heuristic", "log"]

log = logging.getLogger("frostline.placement")
log.addHandler(logging.NullHandler())

_WORST_NS = 1 << 53
"""Longest time that a solver is given, 104 days: beyond it floats no longer tell nanoseconds apart."""

heuristic = by_parts(lambda request: Answer(matrix=local_search(request), source="local-search"))
"""Answer of local search for both objectives."""


def check_horizon(costs: ColumnCosts) -> None:
    """Refuse times that a solver might overflow on, which it would not always tell.

    Examples
    --------
    >>> from frostline.timing.column_costs import ColumnKind
    >>> traffic = {"pairs": ((0, 1, 10**15),), "rings": (0, 0), "local": (0, 0)}
    >>> check_horizon(ColumnCosts(kind=ColumnKind.EGRESS, counts=(9, 9), **traffic))
    Traceback (most recent call last):
    frostline.errors.InvalidValueError: placement: worst column_ns=162000000000000000 is too large a horizon ...
    """
    counts = costs.counts
    worst = sum(abs(ns) * 2 * counts[s] * counts[t] for s, t, ns in costs.pairs)
    worst += sum(map(abs, costs.rings)) + max(map(abs, costs.local))
    if worst > _WORST_NS:
        rule = f"is too large a horizon for whole nanoseconds, at most {_WORST_NS}"
        raise InvalidValueError("placement", "worst column_ns", worst, rule)


def believed(request: Request, start: Answer, found: Matrix, most_servers: int, source: str) -> Answer:
    """The better of an incumbent and a placement that a solver claims, if that is valid; times are computed anew.

    Where time comes first, the placement is put on fewer servers if that costs nothing.
    """
    if not _valid(request, found, most_servers):
        log.error("%s claims a placement that breaks a rule; it is left out", source)
        return start
    if request.objective is Objective.TIME:
        found = merged(request, found)
    if rank(request, found) < rank(request, start.matrix):
        return replace(start, matrix=found, source=source)
    return start


def bounded(request: Request, answer: Answer, bound_ns: int, bound: str) -> Answer:
    """Answer with a solver's bound if it is the best one, unless the answer itself proves it wrong."""
    if bound_ns > request.value_ns(answer.matrix):
        log.error("%s claims a bound of %d ns, above a valid placement; it is left out", bound, bound_ns)
        return answer
    return replace(answer, bound_ns=bound_ns, bound=bound) if bound_ns > answer.bound_ns else answer


def close_enough(request: Request, answer: Answer) -> bool:
    """Whether an answer is as close to its bound as was asked for."""
    value_ns, bound_ns = request.value_ns(answer.matrix), max(answer.bound_ns, request.timing.bound_ns)
    return value_ns - bound_ns <= request.gap * bound_ns


def _valid(request: Request, matrix: Matrix, most_servers: int) -> bool:
    """Whether a matrix places every replica once within the room of the rows, on no more rows than allowed."""
    return bool(
        (matrix >= 0).all()
        and (matrix.sum(axis=0) == request.counts).all()
        and (request.loads(matrix) <= request.room).all()
        and matrix.any(axis=1).sum() <= most_servers
    )
