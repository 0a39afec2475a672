"""Heavy-Edge: keep the heaviest edges inside a server."""

from __future__ import annotations

from dataclasses import dataclass

from frostline.placement.request import Request
from frostline.timing.iteration_time import Matrix
from frostline.timing.stage_graph import StageGraph

__all__ = ["heavy_edge"]


def heavy_edge(request: Request) -> Matrix:
    """Endpoints of the heaviest edges first, on the server with most free GPUs; then the next server.

    Edges join replicas: those of neighbouring stages carry D_st / (K_s K_t) bytes, those in a row on the ring of a
    stage R_s (twice that where the ring has two replicas). A server starts with both ends of the heaviest edge that
    is left and grows by the replica with the heaviest edge to what it holds. The idea is that of the A-SRPT paper
    (INFOCOM 2025), of which the abstract says no more.

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
    >>> path = StageGraph(replicas=[1] * 4, compute_s=[0] * 4, edges={(0, 1): 10, (1, 2): 1, (2, 3): 10})
    >>> heavy_edge(Request(timing=ContentionTime(graph=path), free=(2, 2))).tolist()
    [[1, 1, 0, 0], [0, 0, 1, 1]]
    """
    weights = _Weights.of(request.timing.graph)
    matrix, left = request.empty(), list(request.counts)
    for row, room in enumerate(request.room.tolist()):
        if not any(left):
            break
        matrix[row] = _fill(weights, left, room)
    return matrix


@dataclass(frozen=True, slots=True)
class _Weights:
    """Edges between replicas, heaviest first, and the total weight of one replica of each stage."""

    edges: tuple[tuple[float, int, int], ...]
    near: tuple[tuple[tuple[int, float], ...], ...]
    total: tuple[float, ...]

    @classmethod
    def of(cls, graph: StageGraph) -> _Weights:
        counts = graph.replicas
        edges = [(amount / (counts[s] * counts[t]), s, t) for (s, t), amount in graph.traffic.items()]
        for s, ring in enumerate(graph.ring_bytes):
            if counts[s] > 1:
                edges.append((float(2 * ring if counts[s] == 2 else ring), s, s))
        near: list[list[tuple[int, float]]] = [[] for _ in counts]
        total = [0.0] * len(counts)
        for weight, s, t in edges:
            near[s].append((t, weight))
            if s == t:
                total[s] += weight * min(2, counts[s] - 1)
                continue
            near[t].append((s, weight))
            total[s] += weight * counts[t]
            total[t] += weight * counts[s]
        edges.sort(key=lambda edge: (-edge[0], edge[1], edge[2]))
        return cls(tuple(edges), tuple(tuple(pairs) for pairs in near), tuple(total))


def _fill(weights: _Weights, left: list[int], room: int) -> list[int]:
    """Column of one server; what it takes is taken from ``left``."""
    column = [0] * len(left)
    if sum(left) <= room:
        column, left[:] = left.copy(), column
        return column
    while room:
        for stage in _grow(weights, left, column) or _seed(weights, left, room):
            column[stage] += 1
            left[stage] -= 1
            room -= 1
    return column


def _grow(weights: _Weights, left: list[int], column: list[int]) -> tuple[int, ...]:
    """Stage of the replica with the heaviest edge to the column, if any; among equals the stage held most."""
    best, best_key = -1, (0.0, 0)
    for stage, count in enumerate(left):
        if count:
            heaviest = max((weight for other, weight in weights.near[stage] if column[other]), default=0.0)
            if heaviest and (heaviest, column[stage]) > best_key:
                best, best_key = stage, (heaviest, column[stage])
    return (best,) if best >= 0 else ()


def _seed(weights: _Weights, left: list[int], room: int) -> tuple[int, ...]:
    """Both ends of the heaviest edge left; the replica of least total weight where there is no edge or no room."""
    if room >= 2:
        for weight, s, t in weights.edges:
            if weight and left[s] and left[t] > (s == t):
                return s, t
    return (min((s for s, count in enumerate(left) if count), key=lambda s: (weights.total[s], s)),)
