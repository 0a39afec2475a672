"""Local search: several starts, descent, kicks, and a last look at the number of servers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from frostline.placement.contiguous import contiguous
from frostline.placement.descent import Descent
from frostline.placement.heavy_edge import heavy_edge
from frostline.placement.packing import best_fit, whole_stages
from frostline.placement.request import Request, rank
from frostline.timing.iteration_time import Matrix

__all__ = ["local_search"]

_KICKS = 10
_STARTS = (heavy_edge, contiguous, whole_stages)


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
    packed = _packed(request)
    if request.value_ns(packed) == request.timing.bound_ns:
        return packed
    descent = Descent(request)
    found = [merged(request, matrix) for matrix in _searched(request, descent, packed)]
    return min(found, key=lambda matrix: rank(request, matrix))


def _packed(request: Request) -> Matrix:
    """Best fit; a job that fits one server goes to the server where it is fastest, the largest of equals."""
    fitting = np.flatnonzero(request.room == request.need)
    if not len(fitting):
        return best_fit(request)
    matrix = request.empty()
    matrix[fitting[np.argmin(request.classes[fitting])]] = request.counts
    return matrix


def _searched(request: Request, descent: Descent, packed: Matrix) -> Iterator[Matrix]:
    """Placements worth ranking: the local optimum of each start, and the best after kicks."""
    yield packed
    best = descent.run(packed)
    yield best
    for start in _STARTS:
        if request.late:
            return
        found = descent.run(start(request))
        yield found
        if request.value_ns(found) < request.value_ns(best):
            best = found
    yield _kicked(request, descent, best)


def _kicked(request: Request, descent: Descent, start: Matrix) -> Matrix:
    rng = np.random.default_rng(np.random.SeedSequence([request.seed, 2]))
    current, current_ns = start, request.value_ns(start)
    for _ in range(_KICKS if len(request.rows) > 1 else 0):
        if request.late or current_ns == request.timing.bound_ns:
            break
        found = descent.run(_kick(request, current, rng))
        found_ns = request.value_ns(found)
        if found_ns <= current_ns:
            current, current_ns = found, found_ns
    return current


def _kick(request: Request, matrix: Matrix, rng: np.random.Generator) -> Matrix:
    """Copy with one to three random exchanges between two servers."""
    matrix = matrix.copy()
    rows = len(matrix)
    slowest = int(np.argmax(request.rows_ns(matrix)))
    for exchange in range(int(rng.integers(1, 4))):
        first = slowest if exchange == 0 else int(rng.integers(rows))
        second = (first + int(rng.integers(1, rows))) % rows
        draws = rng.random(4)
        given = _some(matrix[first], draws[0], draws[1])
        taken = _some(matrix[second], draws[2], draws[3])
        change = taken - given
        if _holds(request, matrix, first, change) and _holds(request, matrix, second, -change):
            matrix[first] += change
            matrix[second] -= change
    return matrix


def _some(column: Matrix, which: float, share: float) -> Matrix:
    """One replica, or all, of a random stage of a column."""
    part = np.zeros_like(column)
    held = np.flatnonzero(column)
    if len(held):
        stage = held[int(which * len(held))]
        part[stage] = column[stage] if share < 0.5 else 1
    return part


def _holds(request: Request, matrix: Matrix, row: int, change: Matrix) -> bool:
    return bool(matrix[row].sum() + change.sum() <= request.room[row])


def merged(request: Request, matrix: Matrix) -> Matrix:
    """Same placement on fewer servers where that makes it no slower: whole columns move, the smallest first."""
    matrix = matrix.copy()
    limit = int(request.rows_ns(matrix).max())
    if request.timing.overlap:
        limit = max(limit, request.timing.base_ns)
    loads = matrix.sum(axis=1)
    moved = True
    while moved:
        moved = False
        for row in np.argsort(loads, kind="stable").tolist():
            other = _merge_with(request, matrix, loads, row, limit) if loads[row] else -1
            if other >= 0:
                matrix[other] += matrix[row]
                loads[other] += loads[row]
                matrix[row], loads[row], moved = 0, 0, True
    return matrix


def _merge_with(request: Request, matrix: Matrix, loads: Matrix, row: int, limit: int) -> int:
    """First other used row that can hold the column of a row too within a time limit; -1 if there is none."""
    fits = (loads > 0) & (loads + loads[row] <= request.room)
    fits[row] = False
    others = np.flatnonzero(fits)
    quick = request.columns_ns(matrix[others] + matrix[row], request.classes[others]) <= limit
    return int(others[np.argmax(quick)]) if quick.any() else -1
