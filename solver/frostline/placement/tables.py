"""Arrays that the loops of the placement search work on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from frostline.placement.request import Request
from frostline.timing.column_costs import ColumnCosts, ColumnKind
from frostline.timing.stage_graph import StageGraph

__all__ = ["Array", "Kinds", "Problem", "State", "Traffic", "problem_of", "traffic_of"]

Array = npt.NDArray[np.int64]

_HEAVIEST = 1 << 40


class Problem(NamedTuple):
    """Stages, rows and the nanoseconds of columns.

    A replica of stage s on a server of class k costs ``net = cost[k, s, LINEAR] - Σ_t cost[k, s, t] c_t`` beside the
    column c, and ``cost[k, s, SPLIT]`` is added once where the server holds a proper part of the stage.
    """

    summed: bool
    """Whether the costs of a column add up, ``c_s net_s + split_s``, or the largest ``net_s + split_s`` counts."""
    stages: Array
    """Replicas of each stage and the GPUs that one fills, shape (2, stages)."""
    cost: Array
    """What one replica beside a stage saves, then ``LINEAR`` and ``SPLIT``; shape (classes, stages, stages + 2)."""
    first: Array
    """The stages that share traffic with stage s are ``near[first[s]:first[s + 1]]``."""
    near: Array
    rows: Array
    """Room and class of each row, shape (rows, 2); classes are counted from 0 over those there are."""
    floor: int
    """Nanoseconds of the slowest row that are not worth going below."""


class State(NamedTuple):
    """A placement with what each replica, row and server of it takes; see :mod:`frostline.placement.kernel`."""

    cells: Array
    """Replicas of each stage and the net time of one, shape (rows, 2, stages)."""
    figures: Array
    """Time and load of each row, shape (rows, 2)."""


class Kinds(NamedTuple):
    """Rows grouped by class and room; a state counts rows used of each kind, in mixed radix."""

    classes: Array
    room: Array
    number: Array
    stride: Array
    rows: Array
    """Rows sorted by kind; those of kind k begin at ``begin[k]``."""
    begin: Array
    of: Array
    """Kind of each row."""
    states: int


class Traffic(NamedTuple):
    """Edges between replicas as integers in proportion to their bytes, for heuristics that do not look at times."""

    edge: Array
    """Weight of an edge between one replica of each of two stages; on the diagonal that of a ring link."""
    ends: Array
    """Ends of the edges with a weight, heaviest first."""
    total: Array
    """Weight of all edges of one replica of a stage."""
    amount: Array
    """Traffic between two stages."""
    largest: Array
    """Stages by GPUs that they fill, most first, then by their rings."""
    widest: Array
    """Stages by GPUs of one replica, most first."""


@lru_cache(maxsize=256)
def traffic_of(graph: StageGraph) -> Traffic:
    """Edges of a stage graph.

    Examples
    --------
    >>> graph = StageGraph(replicas=[2, 1], compute_s=[0, 0], gradient_bytes=[4, 0], edges={(0, 1): 4})
    >>> traffic_of(graph).ends.tolist(), (traffic_of(graph).edge * 8 >> 40).tolist()
    ([[0, 0], [0, 1]], [[8, 2], [2, 0]])
    """
    counts = graph.replicas
    edges = {(s, t): amount / (counts[s] * counts[t]) for (s, t), amount in graph.traffic.items()}
    for s, ring in enumerate(graph.ring_bytes):
        if counts[s] > 1:
            edges[s, s] = float(2 * ring if counts[s] == 2 else ring)
    edge = _scaled(edges, len(counts))
    replicas = np.array(counts, np.int64)
    rings = edge.diagonal() * np.minimum(2, replicas - 1)
    ends = sorted((pair for pair in edges if edge[pair]), key=lambda pair: (-int(edge[pair]), pair))
    load = [-count * gpus for count, gpus in zip(counts, graph.gpus_per_replica, strict=True)]
    largest = sorted(range(len(counts)), key=lambda s: (load[s], -graph.ring_bytes[s], s))
    return Traffic(
        edge=edge,
        ends=np.array(ends, np.int64).reshape(-1, 2),
        total=(edge - np.diag(edge.diagonal())) @ replicas + rings,
        amount=_scaled(dict(graph.traffic), len(counts)),
        largest=np.array(largest, np.int64),
        widest=np.argsort(-np.array(graph.gpus_per_replica), kind="stable"),
    )


def _scaled(weights: dict[tuple[int, int], float] | dict[tuple[int, int], int], stages: int) -> Array:
    """Symmetric matrix of weights as integers, the heaviest 2^40."""
    matrix = np.zeros((stages, stages), np.int64)
    heaviest = max(weights.values(), default=0)
    for (s, t), weight in weights.items():
        if weight:
            matrix[s, t] = matrix[t, s] = round(weight / heaviest * _HEAVIEST)
    return matrix


class _Costs(NamedTuple):
    summed: bool
    stages: Array
    cost: Array
    first: Array
    near: Array


@lru_cache(maxsize=256)
def _costs(classes: tuple[ColumnCosts, ...], gpus_per_replica: tuple[int, ...]) -> _Costs:
    stages, near = np.array([classes[0].counts, gpus_per_replica], np.int64), classes[0].remote
    cost = np.zeros((len(classes), len(near), len(near) + 2), np.int64)
    for table, costs in zip(cost, classes, strict=True):
        for s, t, ns in costs.pairs:
            table[s, t] = table[t, s] = ns
        table[:, -2] = table[:, :-2] @ stages[0] + costs.local
        table[:, -1] = costs.rings
    return _Costs(
        summed=classes[0].kind is ColumnKind.EGRESS,
        stages=stages,
        cost=cost,
        first=np.cumsum([0, *map(len, near)], dtype=np.int64),
        near=np.array([t for pairs in near for t, _ in pairs], np.int64),
    )


def problem_of(request: Request) -> Problem | None:
    """Arrays of a request; None for a model of the iteration time that has no tables."""
    timing = request.timing
    found, classes = _distinct(request.classes)
    costs = [timing.costs(request.rows[row]) for row in found]
    tables = tuple(table for table in costs if table is not None)
    if len(tables) < len(costs):
        return None
    return Problem(
        *_costs(tables, timing.graph.gpus_per_replica),
        rows=np.stack([request.room, classes], axis=1),
        floor=request.floor_ns,
    )


def _distinct(classes: Array) -> tuple[Sequence[int], Array]:
    """A row of each class, and the number of each row's class among them."""
    if not classes.any():
        return (0,), classes
    _, first, number = np.unique(classes, return_index=True, return_inverse=True)
    return first.tolist(), number.astype(np.int64)
