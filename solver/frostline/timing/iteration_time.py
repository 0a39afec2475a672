"""Iteration time of a placement: what every model offers, and the sums that follow from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import mul
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from frostline.errors import InvalidValueError
from frostline.problem.placement import Placement
from frostline.timing.column_costs import ColumnCosts
from frostline.timing.stage_graph import StageGraph

__all__ = ["NS_PER_S", "IterationTime", "cut_bytes", "iteration_ns", "total_ns"]

NS_PER_S = 1_000_000_000

Column = Sequence[int]
Matrix = npt.NDArray[np.int64]


@runtime_checkable
class IterationTime(Protocol):
    """Iteration time as a function of one server's column.

    Under every model, ``alpha(x) = base + max over used servers m of f_m(x[m, :])``, or the larger of the two where
    communication overlaps computation; x[m, s] counts the replicas of stage s on server m. All placement methods ask
    for nothing else. Times are whole nanoseconds, so that all methods optimise the same function.
    """

    @property
    def graph(self) -> StageGraph:
        """The stage graph that is timed."""

    @property
    def base_ns(self) -> int:
        """Nanoseconds that no placement avoids and that do not depend on it."""

    @property
    def bound_ns(self) -> int:
        """Lower bound on the iteration time of any placement."""

    @property
    def overlap(self) -> bool:
        """Whether ``base_ns`` and the slowest server overlap (the larger counts) or add up."""

    def server_class(self, server: int) -> int:
        """Class of a server: servers of one class have the same column function, class 0 is the fastest."""

    def column_ns(self, column: Column, server: int) -> int:
        """Nanoseconds f_m of a server that holds a column, replicas by stage."""

    def columns_ns(self, columns: Matrix, server: int) -> Matrix:
        """Nanoseconds of many columns of one server, shape (columns, stages) to shape (columns,)."""
        return np.array([self.column_ns(column, server) for column in columns.tolist()], np.int64)

    def costs(self, server: int) -> ColumnCosts | None:
        """Integer tables of the column function of a server; None for a model that has none.

        Exact methods look into them. A model without tables is placed all the same, by its column function.
        """
        return None


def total_ns(timing: IterationTime, slowest_ns: int) -> int:
    """Iteration time in nanoseconds where the slowest used server needs ``slowest_ns``."""
    return max(timing.base_ns, slowest_ns) if timing.overlap else timing.base_ns + slowest_ns


def iteration_ns(timing: IterationTime, placement: Placement | npt.ArrayLike) -> int:
    """Iteration time of a placement in nanoseconds.

    Parameters
    ----------
    timing : IterationTime
        The model, which knows the stage graph and the servers.
    placement : Placement or array_like of int, shape (servers, stages)
        Where the replicas are.

    Raises
    ------
    InvalidValueError
        The placement does not place every replica of every stage exactly once.

    Examples
    --------
    >>> from frostline.timing.contention import ContentionTime
    >>> graph = StageGraph(replicas=[1, 1], compute_s=[0.25, 0.5], edges={(0, 1): 3_000_000_000})
    >>> timing = ContentionTime(graph=graph, nvlink_bytes_per_s=300e9, nic_bytes_per_s=25e9)
    >>> iteration_ns(timing, [[1, 1]]), iteration_ns(timing, [[1, 0], [0, 1]])
    (510000000, 570000000)
    """
    where = _placement(placement)
    _check_counts(timing.graph, where)
    return total_ns(timing, max(timing.column_ns(column, server) for server, column in where.columns))


def cut_bytes(graph: StageGraph, placement: Placement | npt.ArrayLike) -> int:
    """Bytes that cross between servers per iteration, each counted once, rounded up to a whole byte.

    They are the traffic between replicas of neighbouring stages on different servers and, for each stage spread over n
    servers, the n links of its all-reduce ring that join two of them.

    Parameters
    ----------
    graph : StageGraph
        The stages.
    placement : Placement or array_like of int, shape (servers, stages)
        Where the replicas are.

    Raises
    ------
    InvalidValueError
        The placement does not place every replica of every stage exactly once.

    Examples
    --------
    >>> path = StageGraph(replicas=[1] * 4, compute_s=[0] * 4, edges={(0, 1): 10, (1, 2): 1, (2, 3): 10})
    >>> cut_bytes(path, [[1, 1, 0, 0], [0, 0, 1, 1]])
    1
    """
    where = _placement(placement)
    _check_counts(graph, where)
    counts, held = graph.replicas, _held(where)
    pairs = {ends: counts[ends[0]] * counts[ends[1]] for ends in graph.traffic}
    shares = math.lcm(*counts, *pairs.values())
    cut = 0
    for ends, amount in graph.traffic.items():
        inside = sum(map(mul, held[ends[0]], held[ends[1]]))
        cut += amount * (pairs[ends] - inside) * (shares // pairs[ends])
    for parts, count, gradient in zip(held, counts, graph.gradient_bytes, strict=True):
        links = sum(0 < part < count for part in parts)
        cut += links * 2 * (count - 1) * gradient * (shares // count)
    return -(-cut // shares)


def _placement(placement: Placement | npt.ArrayLike) -> Placement:
    return placement if isinstance(placement, Placement) else Placement.from_matrix(placement)


def _held(placement: Placement) -> list[tuple[int, ...]]:
    """Replicas of each stage by used server."""
    return list(zip(*(column for _, column in placement.columns), strict=True))


def _check_counts(graph: StageGraph, placement: Placement) -> None:
    if placement.stages not in (0, graph.stages):
        rule = f"must equal the {graph.stages} stages of the stage graph"
        raise InvalidValueError("placement", "stages", placement.stages, rule)
    placements = map(sum, _held(placement) or [()] * graph.stages)
    for name, count, placed in zip(graph.names, graph.replicas, placements, strict=True):
        if placed != count:
            raise InvalidValueError(f"stage {name!r}", "placed replicas", placed, f"must equal its {count} replicas")
