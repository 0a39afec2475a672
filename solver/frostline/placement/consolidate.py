"""Fewest servers first: a request on sets of as few rows as possible, and heuristics that know nothing of servers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from frostline.placement.answer import Answer, Method
from frostline.placement.request import Objective, Request, fewest_servers, holds, rank

__all__ = ["by_parts", "on_fewest"]


def by_parts(method: Method) -> Method:
    """Method for both objectives, from one that only minimises the iteration time on all rows it is given.

    With ``consolidate`` it runs on sets of as few rows as can hold the job: the largest, and where servers differ in
    speed also fast ones. Servers of one class are best taken by size, so that the bound holds for any set of them;
    where there are several classes it holds for the sets that were tried only, and is left out.

    Examples
    --------
    >>> from frostline.placement.packing import best_fit
    >>> from frostline.timing.contention import ContentionTime
    >>> from frostline.timing.stage_graph import StageGraph
    >>> timing = ContentionTime(graph=StageGraph.rigid(5))
    >>> request = Request(timing=timing, free=(3, 3, 4), objective=Objective.CONSOLIDATE)
    >>> by_parts(lambda part: Answer(matrix=best_fit(part), source="best-fit"))(request).matrix.tolist()
    [[4], [1], [0]]
    """

    def on_parts(request: Request) -> Answer:
        if request.objective is Objective.TIME:
            return method(request)
        parts = list(_parts(request))
        answers = [_lifted(request, rows, method(request.restricted(rows))) for rows in parts]
        best = min(answers, key=lambda answer: rank(request, answer.matrix))
        if not request.classes.any():
            return best
        return Answer(matrix=best.matrix, source=best.source)

    return on_parts


def on_fewest(request: Request) -> tuple[Request, tuple[int, ...], int]:
    """Rows that an exact method has to look at, with their positions, and on how many of them the job may be."""
    everything = tuple(range(len(request.rows)))
    if request.objective is Objective.TIME:
        return request, everything, len(everything)
    fewest = fewest_servers(request)
    if request.classes.any():
        return request, everything, fewest
    return request.restricted(everything[:fewest]), everything[:fewest], fewest


def _lifted(request: Request, rows: tuple[int, ...], answer: Answer) -> Answer:
    """Answer for some rows of a request, for all of them."""
    matrix = request.empty()
    matrix[list(rows)] = answer.matrix
    return replace(answer, matrix=matrix)


def _parts(request: Request) -> Iterator[tuple[int, ...]]:
    """Sets of as few rows as possible that hold the job."""
    fewest = fewest_servers(request)
    largest = tuple(range(fewest))
    yield largest
    fastest = _fastest_rows(request, fewest) if request.classes.any() else largest
    if fastest != largest:
        yield fastest


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
    return holds(request, request.room[[*chosen, *rest]].tolist())
