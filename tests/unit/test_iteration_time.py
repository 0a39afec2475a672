"""Iteration time by hand: both models, the cut, and what they refuse."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from frostline.errors import InvalidValueError
from frostline.problem.cluster import Cluster, Server
from frostline.problem.placement import Placement
from frostline.timing.contention import ContentionTime
from frostline.timing.iteration_time import IterationTime, cut_bytes, iteration_ns
from frostline.timing.link import LinkTime
from frostline.timing.stage_graph import StageGraph

S = 1_000_000_000


@pytest.fixture
def diamond() -> StageGraph:
    """0 → 1 → 3 and 0 → 2 → 3; stage 0 has two replicas and gradients."""
    return StageGraph(
        replicas=[2, 1, 1, 2],
        compute_s=[1, 2, 3, 4],
        gradient_bytes=[6, 0, 0, 0],
        edges={(0, 1): 8, (0, 2): 4, (1, 3): 12, (2, 3): 16},
    )


class TestContention:
    def test_base_is_the_slowest_stage_within_one_server(self, diamond: StageGraph) -> None:
        timing = ContentionTime(graph=diamond, nvlink_bytes_per_s=2, nic_bytes_per_s=1)
        by_stage = [1 + 12 / 4 + 6 / 2, 2 + 20 / 2, 3 + 20 / 2, 4 + 28 / 4]
        assert timing.base_ns == timing.bound_ns == round(max(by_stage) * S)

    def test_egress_of_a_column(self, diamond: StageGraph) -> None:
        timing = ContentionTime(graph=diamond, nvlink_bytes_per_s=2, nic_bytes_per_s=(1, 2))
        # One replica of stage 0 and stage 1. To the other replica of 0: ring 6. Stage 1 with the other 0: 8 / 2 / 2;
        # own 0 with stage 2: 4 / 2 / 2; stage 1 with both of 3: 12 / 2.
        column = (1, 1, 0, 0)
        assert timing.column_ns(column, 0) == (6 + 2 + 1 + 6) * S
        assert timing.column_ns(column, 1) == (6 + 2 + 1 + 6) * S // 2
        assert timing.column_ns((2, 1, 1, 2), 0) == 0

    def test_sum_and_overlap(self, diamond: StageGraph) -> None:
        both: list[IterationTime] = [
            ContentionTime(graph=diamond, nvlink_bytes_per_s=2, nic_bytes_per_s=1, overlap=overlap)
            for overlap in (False, True)
        ]
        split = [[1, 1, 0, 0], [1, 0, 1, 2]]
        whole = [[2, 1, 1, 2], [0, 0, 0, 0]]
        # The second server sends ring 6, own 0 with stage 1: 2, own 2 with the other 0: 1, and 3 with stage 1: 6.
        assert [iteration_ns(timing, split) for timing in both] == [(13 + 15) * S, 15 * S]
        assert [iteration_ns(timing, whole) for timing in both] == [13 * S, 13 * S]

    def test_of_cluster(self, diamond: StageGraph) -> None:
        servers = (
            Server(id="a", gpus=4, nvlink_bytes_per_s=8, nic_bytes_per_s=1),
            Server(id="b", gpus=2, nvlink_bytes_per_s=2, nic_bytes_per_s=4),
        )
        timing = ContentionTime.of_cluster(diamond, Cluster(servers=servers))
        assert timing == ContentionTime(graph=diamond, nvlink_bytes_per_s=2, nic_bytes_per_s=(1, 4))
        assert [timing.server_class(m) for m in (0, 1)] == [1, 0]
        assert ContentionTime.of_cluster(diamond, Cluster(servers=())).nic_bytes_per_s == ()


class TestLink:
    def test_slowest_stage_of_a_column(self, diamond: StageGraph) -> None:
        timing = LinkTime(graph=diamond, nvlink_bytes_per_s=2, link_bytes_per_s=(1, 0.5 + 0.5))
        # Stage 0: 1 s, inside 8/2 bytes at 2, outside 4/2 at 1, ring 6 at 1. Stage 1: 2 s, inside 4, outside 16.
        assert timing.column_ns((1, 1, 0, 0), 0) == max(1 + 2 + 2 + 6, 2 + 2 + 16) * S
        assert timing.column_ns((0, 1, 0, 0), 0) == (2 + 20) * S
        assert timing.column_ns((0, 0, 0, 0), 0) == 0

    def test_one_server_reaches_the_bound(self, diamond: StageGraph) -> None:
        timing = LinkTime(graph=diamond, nvlink_bytes_per_s=2, link_bytes_per_s=1)
        assert iteration_ns(timing, [[2, 1, 1, 2]]) == timing.bound_ns == 13 * S
        assert iteration_ns(timing, [[2, 1, 0, 0], [0, 0, 1, 2]]) > timing.bound_ns

    def test_of_cluster_shares_the_card(self, diamond: StageGraph) -> None:
        servers = (Server(id="a", gpus=4, nic_bytes_per_s=8), Server(id="b", gpus=2, nic_bytes_per_s=4))
        timing = LinkTime.of_cluster(diamond, Cluster(servers=servers))
        assert timing.link_bytes_per_s == (2, 2)
        assert timing.server_class(1) == 0

    def test_card_faster_than_the_link_inside(self) -> None:
        graph = StageGraph(replicas=[1, 1], compute_s=[1, 1], gradient_bytes=[0, 0], edges={(0, 1): 8})
        timing = LinkTime(graph=graph, nvlink_bytes_per_s=1, link_bytes_per_s=4)
        assert iteration_ns(timing, [[1, 0], [0, 1]]) == timing.bound_ns == 3 * S
        assert iteration_ns(timing, [[1, 1]]) == 9 * S


class Flat(IterationTime):
    """A model of its own: a nanosecond for every replica on a server."""

    def __init__(self, graph: StageGraph) -> None:
        self._graph = graph

    graph = property(lambda self: self._graph)  # type: ignore[assignment]
    base_ns = property(lambda self: 5)  # type: ignore[assignment]
    bound_ns = property(lambda self: 6)  # type: ignore[assignment]
    overlap = property(lambda self: False)  # type: ignore[assignment]

    def server_class(self, server: int) -> int:
        return 0

    def column_ns(self, column: Sequence[int], server: int) -> int:
        return sum(column)


def test_a_model_needs_the_column_function_only() -> None:
    timing = Flat(StageGraph.rigid(4))
    assert iteration_ns(timing, [[3], [1]]) == 8
    assert timing.columns_ns(np.array([[3], [1]]), 0).tolist() == [3, 1]


class TestCut:
    def test_pairs_on_different_servers(self, diamond: StageGraph) -> None:
        # 0–1: half of 8; 0–2: half of 4; 1–3: all 12; 2–3 inside; the ring of 0 crosses twice.
        assert cut_bytes(diamond, [[1, 1, 0, 0], [1, 0, 1, 2]]) == 4 + 2 + 12 + 2 * 6
        assert cut_bytes(diamond, Placement([(3, (2, 1, 1, 2))])) == 0

    def test_it_is_the_egress_of_all_servers(self, diamond: StageGraph) -> None:
        timing = ContentionTime(graph=diamond, nic_bytes_per_s=1)
        matrix = [[1, 0, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1]]
        assert cut_bytes(diamond, matrix) * S == sum(timing.column_ns(column, 0) for column in matrix)

    def test_a_fraction_is_rounded_up(self) -> None:
        graph = StageGraph(replicas=[3, 1], compute_s=[0, 0], edges={(0, 1): 1})
        assert cut_bytes(graph, [[2, 1], [1, 0]]) == 1


class TestRefusals:
    @pytest.mark.parametrize("matrix", [[[1, 1, 1, 2]], [[2, 1, 1, 2], [1, 0, 0, 0]], np.zeros((2, 4), int)])
    def test_not_every_replica_once(self, diamond: StageGraph, matrix: Any) -> None:
        for call in (lambda: iteration_ns(ContentionTime(graph=diamond), matrix), lambda: cut_bytes(diamond, matrix)):
            with pytest.raises(InvalidValueError, match=r"stage '0': placed replicas=. must equal its 2 replicas"):
                call()

    def test_other_number_of_stages(self, diamond: StageGraph) -> None:
        with pytest.raises(InvalidValueError, match="stages=1 must equal the 4 stages"):
            iteration_ns(ContentionTime(graph=diamond), [[6]])

    @pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, "fast", True])
    def test_bad_bandwidths(self, diamond: StageGraph, value: Any) -> None:
        with pytest.raises(InvalidValueError, match="nvlink_bytes_per_s="):
            ContentionTime(graph=diamond, nvlink_bytes_per_s=value)
        with pytest.raises(InvalidValueError, match=r"nic_bytes_per_s\[1\]="):
            ContentionTime(graph=diamond, nic_bytes_per_s=[1, value])
        with pytest.raises(InvalidValueError, match=r"link_bytes_per_s\[0\]="):
            LinkTime(graph=diamond, link_bytes_per_s=[value])

    def test_unknown_server(self, diamond: StageGraph) -> None:
        timing = ContentionTime(graph=diamond, nic_bytes_per_s=[1, 1])
        with pytest.raises(InvalidValueError, match="server=2 must be below 2"):
            iteration_ns(timing, Placement([(2, (2, 1, 1, 2))]))

    def test_iterations_too_long_for_nanoseconds(self) -> None:
        graph = StageGraph(replicas=[1, 1], compute_s=[0, 0], edges={(0, 1): 10**18})
        for model in (ContentionTime, LinkTime):
            with pytest.raises(InvalidValueError, match="worst iteration_ns"):
                model(graph=graph, nvlink_bytes_per_s=1.0)
        with pytest.raises(InvalidValueError, match="worst iteration_ns"):
            ContentionTime(graph=graph, nic_bytes_per_s=1, nvlink_bytes_per_s=1e18)
