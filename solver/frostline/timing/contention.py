"""Iteration time where the replicas of a server share its network card."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from frostline.problem.cluster import Cluster
from frostline.timing.bandwidths import ServerClasses, bandwidth, check_total, to_ns
from frostline.timing.column_costs import ColumnCosts, ColumnKind
from frostline.timing.iteration_time import IterationTime
from frostline.timing.stage_graph import StageGraph

__all__ = ["ContentionTime", "local_s"]


@dataclass(frozen=True, slots=True, init=False)
class ContentionTime(IterationTime):
    """Iteration time where all bytes that leave a server pass its full-duplex network card one after another.

    ``alpha(x) = base + max_m f_m(x[m, :])``, or the larger of the two with ``overlap``, where

    - ``base = max_s (p_s + sum_t D_st / (K_s B_in) + R_s / B_in)``, all replicas within one server, and
    - ``f_m(c) = (sum_(s,t) ½ w_st (c_s (K_t - c_t) + c_t (K_s - c_s)) + sum_s R_s [0 < c_s < K_s]) / B_out,m``.

    Every pair of replicas of neighbouring stages carries ``w_st = D_st / (K_s K_t)``, half of it each way; the ring of
    a stage visits servers one by one, so that one link leaves each server that holds a proper part of it. Each
    coefficient is rounded to a nanosecond.

    Parameters
    ----------
    graph : StageGraph
        The stages.
    nvlink_bytes_per_s : float
        Bandwidth B_in inside a server.
    nic_bytes_per_s : float or sequence of float
        Bandwidth B_out of the card of all servers, or of each.
    overlap : bool
        Whether communication between servers overlaps computation.

    Examples
    --------
    >>> graph = StageGraph(replicas=[2, 2], compute_s=[0.1, 0.1], edges={(0, 1): 8_000_000_000})
    >>> timing = ContentionTime(graph=graph, nvlink_bytes_per_s=400e9, nic_bytes_per_s=(40e9, 20e9))
    >>> timing.base_ns, timing.column_ns((2, 1), 0), timing.column_ns((2, 1), 1)
    (110000000, 50000000, 100000000)
    """

    graph: StageGraph
    nvlink_bytes_per_s: float
    nic_bytes_per_s: float | tuple[float, ...]
    overlap: bool
    base_ns: int = field(compare=False)
    _classes: ServerClasses = field(compare=False, repr=False)
    _cards: tuple[ColumnCosts, ...] = field(compare=False, repr=False)

    def __init__(
        self,
        *,
        graph: StageGraph,
        nvlink_bytes_per_s: float = 300e9,
        nic_bytes_per_s: float | Sequence[float] = 25e9,
        overlap: bool = False,
    ) -> None:
        classes = ServerClasses(nic_bytes_per_s, "nic_bytes_per_s")
        inside = bandwidth(nvlink_bytes_per_s, "nvlink_bytes_per_s")
        base_ns = to_ns(max(local_s(graph, inside)))
        check_total(base_ns)
        values = {
            "graph": graph,
            "nvlink_bytes_per_s": inside,
            "nic_bytes_per_s": classes.values,
            "overlap": bool(overlap),
            "base_ns": base_ns,
            "_classes": classes,
            "_cards": tuple(_card(graph, nic) for nic in classes.distinct),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def of_cluster(cls, graph: StageGraph, cluster: Cluster, *, overlap: bool = False) -> ContentionTime:
        """Model for the servers of a cluster; B_in is that of the slowest server."""
        return cls(
            graph=graph,
            nvlink_bytes_per_s=min((server.nvlink_bytes_per_s for server in cluster.servers), default=300e9),
            nic_bytes_per_s=tuple(server.nic_bytes_per_s for server in cluster.servers),
            overlap=overlap,
        )

    @property
    def bound_ns(self) -> int:
        """The base: no server sends less than nothing."""
        return self.base_ns

    def server_class(self, server: int) -> int:
        """Class of a server, equal for equal cards, 0 for the fastest."""
        return self._classes.of(server)

    def costs(self, server: int) -> ColumnCosts:
        """Integer tables of the column function of a server."""
        return self._cards[self._classes.of(server)]

    def column_ns(self, column: Sequence[int], server: int) -> int:
        """Nanoseconds that the card of a server is busy where it holds a column."""
        return self.costs(server).column_ns(column)

    def columns_ns(self, columns: npt.NDArray[np.int64], server: int) -> npt.NDArray[np.int64]:
        """Nanoseconds of many columns of one server, shape (columns, stages) to shape (columns,)."""
        return self.costs(server).columns_ns(columns)


def _card(graph: StageGraph, nic_bytes_per_s: float) -> ColumnCosts:
    counts = graph.replicas
    pairs = tuple(
        (s, t, to_ns(amount / (2 * counts[s] * counts[t] * nic_bytes_per_s)))
        for (s, t), amount in graph.traffic.items()
    )
    rings = tuple(to_ns(float(ring) / nic_bytes_per_s) for ring in graph.ring_bytes)
    check_total(sum(2 * ns * counts[s] * counts[t] for s, t, ns in pairs) + sum(rings))
    return ColumnCosts(kind=ColumnKind.EGRESS, counts=counts, pairs=pairs, rings=rings, local=(0,) * len(counts))


def local_s(graph: StageGraph, nvlink_bytes_per_s: float) -> list[float]:
    """Seconds per iteration of one replica of each stage where all replicas share one server."""
    own = [p + float(ring) / nvlink_bytes_per_s for p, ring in zip(graph.compute_s, graph.ring_bytes, strict=True)]
    exchanged = [sum(amount for _, amount in pairs) for pairs in graph.neighbours()]
    return [
        time_s + amount / (count * nvlink_bytes_per_s)
        for time_s, amount, count in zip(own, exchanged, graph.replicas, strict=True)
    ]
