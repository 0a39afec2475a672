"""Local search: several starts, descent, kicks, and a last look at the number of servers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from frostline.placement.by_columns import ByColumns
from frostline.placement.by_tables import ByTables
from frostline.placement.contiguous import best_blocks
from frostline.placement.heavy_edge import heavy_edge
from frostline.placement.packing import best_fit, whole_stages
from frostline.placement.request import Request, rank
from frostline.placement.tables import Problem, problem_of
from frostline.timing.iteration_time import Matrix

__all__ = ["local_search", "merged"]

_KICKS = 10


def local_search(request: Request) -> Matrix:
    """Best placement of several starts after descent, kicks and merging of servers.

    Starts are best fit, Heavy-Edge, the best contiguous placement and whole stages. A kick moves a few replicas at
    random, the first from the slowest server, and descends again. The number of kicks is fixed, so that the answer
    depends on the seed only, unless the deadline passes.

    Parameters
    ----------
    request : Request
        Stage graph and free GPUs.

    Returns
    -------
    ndarray of int64, shape (rows, stages)

    Examples
    --------
    >>> from frostline.timing.contention import ContentionTime
    >>> from frostline.timing.stage_graph import StageGraph
    >>> star = StageGraph(replicas=[1] * 5, compute_s=[0] * 5, edges={(0, 1): 4, (0, 2): 3, (0, 3): 2, (0, 4): 1})
    >>> local_search(Request(timing=ContentionTime(graph=star, nic_bytes_per_s=1), free=(4, 4))).tolist()
    [[1, 1, 1, 1, 0], [0, 0, 0, 0, 1]]
    """
    problem = problem_of(request)
    steps = _steps(request, problem)
    packed = _packed(request)
    packed_ns = steps.slowest_ns(packed)
    if packed_ns <= request.floor_ns:
        return packed
    found = [(packed_ns, packed), *_searched(request, problem, steps, packed)]
    limit_ns = max(request.floor_ns, min(slowest_ns for slowest_ns, _ in found))
    return _first(request, [steps.merged(matrix, limit_ns) for slowest_ns, matrix in found if slowest_ns <= limit_ns])


def _steps(request: Request, problem: Problem | None) -> ByTables | ByColumns:
    return ByColumns(request) if problem is None else ByTables(request, problem)


def _packed(request: Request) -> Matrix:
    """Best fit; a job that fits one server goes to the server where it is fastest, the largest of equals."""
    fitting = np.flatnonzero(request.room == request.need)
    if not len(fitting):
        return best_fit(request)
    matrix = request.empty()
    matrix[fitting[np.argmin(request.classes[fitting])]] = request.counts
    return matrix


def _searched(
    request: Request, problem: Problem | None, steps: ByTables | ByColumns, packed: Matrix
) -> Iterator[tuple[int, Matrix]]:
    """Placements worth a look, after their times: the local optimum of each start, and the best after kicks."""
    if request.late:
        return
    best_ns, best = steps.descended(packed)
    yield best_ns, best
    for start in _starts(request, problem):
        found_ns, found = steps.descended(start)
        yield found_ns, found
        if found_ns < best_ns:
            best_ns, best = found_ns, found
        if best_ns <= request.floor_ns:
            return
    if not request.late:
        yield steps.kicked(best, _KICKS)


def _starts(request: Request, problem: Problem | None) -> Iterator[Matrix]:
    starts = (
        partial(best_blocks, request, problem),
        partial(heavy_edge, request),
        partial(heavy_edge, request, by_total=True),
        partial(whole_stages, request),
    )
    for start in starts:
        if request.late:
            return
        yield start()


def _first(request: Request, matrices: list[Matrix]) -> Matrix:
    """First of equally fast matrices by the tie rules."""
    used = [matrix.any(axis=1) for matrix in matrices]
    fewest = min(int(rows.sum()) for rows in used)
    distinct: dict[bytes, Matrix] = {}
    for matrix, rows in zip(matrices, used, strict=True):
        if rows.sum() == fewest:
            loads = np.sort((request.loads(matrix) * (1 << 32) + request.classes)[rows])
            distinct.setdefault(loads.tobytes(), matrix)
    few = list(distinct.values())
    return few[0] if len(few) == 1 else min(few, key=lambda matrix: rank(request, matrix))


def merged(request: Request, matrix: Matrix) -> Matrix:
    """Same placement on fewer servers where that makes it no slower: whole columns move, the smallest first."""
    steps = _steps(request, problem_of(request))
    return steps.merged(matrix, max(steps.slowest_ns(matrix), request.floor_ns))
