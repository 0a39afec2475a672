"""Iteration time where every GPU has its own share of the network card."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from frostline.problem.cluster import Cluster
from frostline.timing.bandwidths import ServerClasses, bandwidth, check_total, to_ns
from frostline.timing.column_costs import ColumnCosts, ColumnKind
from frostline.timing.contention import local_s
from frostline.timing.iteration_time import IterationTime
from frostline.timing.stage_graph import StageGraph

__all__ = ["LinkTime"]


@dataclass(frozen=True, slots=True, init=False)
class LinkTime(IterationTime):
    """Iteration time of the bottleneck stage where every GPU has an equal share of its server's card.

    ``alpha(x) = max over servers m and stages s they hold of p_s + in / B_in + out / b_m + R_s / B``: a replica of s
    exchanges ``in = sum_t w_st c_t`` bytes inside its server and ``out = sum_t w_st (K_t - c_t)`` outside, with
    ``w_st = D_st / (K_s K_t)``; its ring runs at B = B_in if the whole stage is on the server, else at b_m, the share
    of one GPU. Each coefficient is rounded to a nanosecond.

    Parameters
    ----------
    graph : StageGraph
        The stages.
    nvlink_bytes_per_s : float
        Bandwidth B_in inside a server.
    link_bytes_per_s : float or sequence of float
        Share b of one GPU in the card of all servers, or of each.

    Examples
    --------
    >>> graph = StageGraph(replicas=[2, 2], compute_s=[0.1, 0.1], edges={(0, 1): 8_000_000_000})
    >>> timing = LinkTime(graph=graph, nvlink_bytes_per_s=400e9, link_bytes_per_s=10e9)
    >>> timing.bound_ns, timing.column_ns((2, 2), 0), timing.column_ns((2, 1), 0)
    (110000000, 110000000, 305000000)
    """

    graph: StageGraph
    nvlink_bytes_per_s: float
    link_bytes_per_s: float | tuple[float, ...]
    bound_ns: int = field(compare=False)
    _classes: ServerClasses = field(compare=False, repr=False)
    _links: tuple[ColumnCosts, ...] = field(compare=False, repr=False)

    def __init__(
        self,
        *,
        graph: StageGraph,
        nvlink_bytes_per_s: float = 300e9,
        link_bytes_per_s: float | Sequence[float] = 3.125e9,
    ) -> None:
        classes = ServerClasses(link_bytes_per_s, "link_bytes_per_s")
        inside = bandwidth(nvlink_bytes_per_s, "nvlink_bytes_per_s")
        links = tuple(_link(graph, inside, link) for link in classes.distinct)
        values = {
            "graph": graph,
            "nvlink_bytes_per_s": inside,
            "link_bytes_per_s": classes.values,
            "bound_ns": min((_least_ns(costs) for costs in links), default=0),
            "_classes": classes,
            "_links": links,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def of_cluster(cls, graph: StageGraph, cluster: Cluster) -> LinkTime:
        """Model for the servers of a cluster; B_in is that of the slowest server."""
        return cls(
            graph=graph,
            nvlink_bytes_per_s=min((server.nvlink_bytes_per_s for server in cluster.servers), default=300e9),
            link_bytes_per_s=tuple(server.nic_bytes_per_s / server.gpus for server in cluster.servers),
        )

    @property
    def base_ns(self) -> int:
        """Zero: all of the time belongs to the column of some server."""
        return 0

    @property
    def overlap(self) -> bool:
        """False: there is no base to overlap with."""
        return False

    def server_class(self, server: int) -> int:
        """Class of a server, equal for equal shares, 0 for the fastest."""
        return self._classes.of(server)

    def costs(self, server: int) -> ColumnCosts:
        """Integer tables of the column function of a server."""
        return self._links[self._classes.of(server)]

    def column_ns(self, column: Sequence[int], server: int) -> int:
        """Nanoseconds of the slowest stage among those that a server holds."""
        return self.costs(server).column_ns(column)

    def columns_ns(self, columns: npt.NDArray[np.int64], server: int) -> npt.NDArray[np.int64]:
        """Nanoseconds of many columns of one server, shape (columns, stages) to shape (columns,)."""
        return self.costs(server).columns_ns(columns)


def _link(graph: StageGraph, inside: float, link: float) -> ColumnCosts:
    counts = graph.replicas
    slower = 1 / link - 1 / inside
    pairs = tuple((s, t, to_ns(amount / (counts[s] * counts[t]) * slower)) for (s, t), amount in graph.traffic.items())
    rings = tuple(to_ns(float(ring) * slower) for ring in graph.ring_bytes)
    local = tuple(to_ns(time_s) for time_s in local_s(graph, inside))
    for stage, (own, ring) in enumerate(zip(local, rings, strict=True)):
        far = sum(abs(ns) * counts[t if s == stage else s] for s, t, ns in pairs if stage in (s, t))
        check_total(own + abs(ring) + far)
    return ColumnCosts(kind=ColumnKind.SLOWEST, counts=counts, pairs=pairs, rings=rings, local=local)


def _least_ns(costs: ColumnCosts) -> int:
    """Time of the slowest stage where each has the better of a server of its own and one with all others."""
    return max(
        local + sum(min(ns, 0) * costs.counts[t] for t, ns in remote) + min(ring, 0)
        for local, remote, ring in zip(costs.local, costs.remote, costs.rings, strict=True)
    )
