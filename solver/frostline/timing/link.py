"""Iteration time where every GPU has its own share of the network card."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from frostline.problem.cluster import Cluster
from frostline.timing.bandwidths import ServerClasses, bandwidth, check_total, to_ns
from frostline.timing.contention import local_s
from frostline.timing.iteration_time import IterationTime
from frostline.timing.stage_graph import StageGraph

__all__ = ["LinkTime"]


@dataclass(frozen=True, slots=True)
class _LinkCosts:
    """Nanoseconds of each stage when local, and what each replica elsewhere and a split ring add."""

    local: tuple[int, ...]
    remote: tuple[tuple[tuple[int, int], ...], ...]
    split: tuple[int, ...]
    far: npt.NDArray[np.int64]
    remote_matrix: npt.NDArray[np.int64]
    split_vector: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]

    @classmethod
    def of(cls, graph: StageGraph, inside: float, link: float) -> _LinkCosts:
        counts = graph.replicas
        slower = 1 / link - 1 / inside
        local = tuple(to_ns(time_s) for time_s in local_s(graph, inside))
        remote = tuple(
            tuple((t, to_ns(amount / (counts[s] * counts[t]) * slower)) for t, amount in pairs)
            for s, pairs in enumerate(graph.neighbours())
        )
        split = tuple(to_ns(float(ring) * slower) for ring in graph.ring_bytes)
        for stage, pairs in enumerate(remote):
            check_total(local[stage] + abs(split[stage]) + sum(abs(ns) * counts[t] for t, ns in pairs))
        matrix = np.zeros((len(counts), len(counts)), np.int64)
        for s, pairs in enumerate(remote):
            for t, ns in pairs:
                matrix[s, t] = ns
        replicas = np.array(counts, np.int64)
        far = np.array(local, np.int64) + matrix @ replicas
        return cls(local, remote, split, far, matrix, np.array(split, np.int64), replicas)

    def bound(self, counts: Sequence[int]) -> int:
        return max(
            local + sum(min(ns, 0) * counts[t] for t, ns in remote) + min(split, 0)
            for local, remote, split in zip(self.local, self.remote, self.split, strict=True)
        )

    def one(self, column: Sequence[int], counts: Sequence[int]) -> int:
        slowest = 0
        for s, held in enumerate(column):
            if held:
                time_ns = self.local[s] + sum(ns * (counts[t] - column[t]) for t, ns in self.remote[s])
                slowest = max(slowest, time_ns + (self.split[s] if held < counts[s] else 0))
        return slowest

    def many(self, columns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        time_ns = self.far - columns @ self.remote_matrix.T + self.split_vector * (columns < self.counts)
        slowest: npt.NDArray[np.int64] = np.where(columns > 0, time_ns, 0).max(axis=1)
        return slowest


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
    _links: tuple[_LinkCosts, ...] = field(compare=False, repr=False)

    def __init__(
        self,
        *,
        graph: StageGraph,
        nvlink_bytes_per_s: float = 300e9,
        link_bytes_per_s: float | Sequence[float] = 3.125e9,
    ) -> None:
        classes = ServerClasses(link_bytes_per_s, "link_bytes_per_s")
        inside = bandwidth(nvlink_bytes_per_s, "nvlink_bytes_per_s")
        links = tuple(_LinkCosts.of(graph, inside, link) for link in classes.distinct)
        values = {
            "graph": graph,
            "nvlink_bytes_per_s": inside,
            "link_bytes_per_s": classes.values,
            "bound_ns": min((costs.bound(graph.replicas) for costs in links), default=0),
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

    def column_ns(self, column: Sequence[int], server: int) -> int:
        """Nanoseconds of the slowest stage among those that a server holds."""
        return self._links[self._classes.of(server)].one(column, self.graph.replicas)

    def columns_ns(self, columns: npt.NDArray[np.int64], server: int) -> npt.NDArray[np.int64]:
        """Nanoseconds of many columns of one server, shape (columns, stages) to shape (columns,)."""
        return self._links[self._classes.of(server)].many(columns)
