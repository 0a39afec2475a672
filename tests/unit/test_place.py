"""Placement by hand: known optima, tie rules, refusals, determinism."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from decimal import Decimal
from itertools import permutations, product
from typing import Any

import networkx as nx
import numpy as np
import pytest

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.placement.descent import Descent
from frostline.placement.heavy_edge import heavy_edge
from frostline.placement.local_search import merged
from frostline.placement.packing import best_fit, whole_stages
from frostline.placement.place import METHODS, Answer, place
from frostline.placement.request import DoesNotFitError, Request, columns_of
from frostline.problem.cluster import Cluster, Server
from frostline.timing.contention import ContentionTime
from frostline.timing.iteration_time import cut_bytes
from frostline.timing.link import LinkTime
from frostline.timing.stage_graph import StageGraph

SEARCHES = ["auto", "local-search"]


def unit_graph(edges: dict[tuple[int, int], int], stages: int) -> StageGraph:
    return StageGraph(replicas=[1] * stages, compute_s=[0.0] * stages, edges=edges)


def slow_card(graph: StageGraph, **fields: Any) -> ContentionTime:
    """A byte per second, so that every byte counts."""
    return ContentionTime(graph=graph, nic_bytes_per_s=1.0, **fields)


def least_cut(graph: StageGraph, free: list[int]) -> int:
    """Least cut of a graph of single replicas, over all placements."""
    cuts = []
    for where in product(range(len(free)), repeat=graph.stages):
        matrix = np.zeros((len(free), graph.stages), int)
        matrix[where, range(graph.stages)] = 1
        if (matrix.sum(axis=1) <= free).all():
            cuts.append(cut_bytes(graph, matrix))
    return min(cuts)


class TestKnownCuts:
    """On two servers the time of the card is half the cut, so that the fastest placement has the least cut."""

    def test_opposite_edges_both_cross(self) -> None:
        graph = nx.DiGraph([("a", "b", {"bytes": 3}), ("b", "a", {"bytes": 2})])
        nx.set_node_attributes(graph, {n: {"replicas": 1, "compute_s": 0, "gradient_bytes": 0} for n in graph})
        assert place(StageGraph.from_networkx(graph), [1, 1]).cut_bytes == 5

    @pytest.mark.parametrize("method", [*SEARCHES, "heavy-edge", "contiguous"])
    def test_path(self, method: str) -> None:
        path = unit_graph({(0, 1): 10, (1, 2): 1, (2, 3): 10}, 4)
        result = place(slow_card(path), [2, 2], method=method)
        assert result.cut_bytes == 1 == least_cut(path, [2, 2])
        assert result.placement.columns == ((0, (0, 0, 1, 1)), (1, (1, 1, 0, 0)))

    @pytest.mark.parametrize("method", SEARCHES)
    def test_star_leaves_the_lightest_leaf_alone(self, method: str) -> None:
        star = unit_graph({(0, 1): 4, (0, 2): 3, (0, 3): 2, (0, 4): 1}, 5)
        result = place(slow_card(star), [4, 4], method=method)
        assert result.cut_bytes == 1 == least_cut(star, [4, 4])
        assert sorted(count for _, count in result.placement.loads) == [1, 4]

    @pytest.mark.parametrize("method", SEARCHES)
    def test_ring_keeps_the_heavy_edges(self, method: str) -> None:
        """On three servers time is the busiest card, not the cut; here one placement is best for both."""
        ring = nx.Graph([(n, (n + 1) % 6, {"bytes": w}) for n, w in enumerate((7, 1, 6, 2, 5, 3))])
        nx.set_node_attributes(ring, {n: {"replicas": 1, "compute_s": 0, "gradient_bytes": 0} for n in ring})
        graph = StageGraph.from_networkx(ring)
        result = place(slow_card(graph), [2, 2, 2], method=method)
        assert result.cut_bytes == 6 == least_cut(graph, [2, 2, 2])
        assert result.seconds == (2 + 3) / 2

    @pytest.mark.parametrize("method", SEARCHES)
    @pytest.mark.parametrize(("free", "cut"), [([2, 2], 0), ([3, 1], 10)])
    def test_two_parts(self, method: str, free: list[int], cut: int) -> None:
        parts = unit_graph({(0, 1): 10, (2, 3): 10}, 4)
        result = place(slow_card(parts), free, method=method)
        assert result.cut_bytes == cut == least_cut(parts, free)
        assert result.status.proved_optimal == (cut == 0)


class TestTies:
    def test_tightest_hole_of_one_server(self) -> None:
        assert place(StageGraph.rigid(3), [8, 4, 3, 8, 3]).placement.loads == ((2, 3),)

    def test_fewest_servers_then_tightest_holes(self) -> None:
        assert place(StageGraph.rigid(10), [8, 1, 4, 2, 8, 3]).placement.loads == ((0, 8), (3, 2))

    def test_one_server_for_stages_too(self) -> None:
        graph = StageGraph(replicas=[2, 2], compute_s=[1, 1], gradient_bytes=[9, 9], edges={(0, 1): 9})
        for method in METHODS:
            result = place(slow_card(graph), [8, 3, 5], method=method)
            assert result.placement.columns == ((2, (2, 2)),)
            assert result.status.proved_optimal

    def test_consolidate_before_time(self) -> None:
        """Ends of a path on cards of their own are faster, but take a third server."""
        path = StageGraph(replicas=[2, 2, 2], compute_s=[0] * 3, edges={(0, 1): 8, (1, 2): 8})
        fast, few = (place(slow_card(path), [4, 2, 2], objective=objective) for objective in ("time", "consolidate"))
        assert fast.seconds <= few.seconds
        assert few.servers_used == 2

    def test_no_server_more_than_time_asks_for(self) -> None:
        """With overlap the cards are idle half the time: no reason to spread."""
        path = StageGraph(replicas=[2, 2, 2], compute_s=[100] * 3, edges={(0, 1): 8, (1, 2): 8})
        result = place(slow_card(path, overlap=True), [4, 2, 2])
        assert result.servers_used == 2
        assert result.status.proved_optimal

    def test_merging_keeps_the_time(self) -> None:
        path = unit_graph({(0, 1): 10, (2, 3): 10}, 4)
        request = Request(timing=slow_card(path), free=(2, 2, 2))
        apart = np.array([[1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1]])
        assert merged(request, apart).any(axis=1).sum() == 2
        assert request.value_ns(merged(request, apart)) <= request.value_ns(apart)

    def test_columns_stay_in_their_class(self) -> None:
        graph = StageGraph.rigid(5)
        timing = ContentionTime(graph=graph, nic_bytes_per_s=[1, 2, 1, 2, 2])
        request = Request(timing=timing, free=(4, 3, 3, 8, 2))
        assert request.rows == (3, 0, 1, 2, 4)
        matrix = np.array([[2], [3], [0], [0], [0]])
        assert columns_of(request, matrix) == ((2, (3,)), (4, (2,)))


class TestServersThatDiffer:
    def test_faster_card_for_the_busy_column(self) -> None:
        graph = unit_graph({(0, 1): 10, (1, 2): 10, (0, 2): 10}, 3)
        timing = ContentionTime(graph=graph, nic_bytes_per_s=[1, 1, 4, 4])
        for objective in ("time", "consolidate"):
            result = place(timing, [2, 2, 2, 2], objective=objective)
            assert result.placement.servers == (2, 3)
            assert result.seconds == 10 / 4

    def test_few_fast_servers_rather_than_a_large_slow_one(self) -> None:
        path = unit_graph({(0, 1): 8, (1, 2): 8, (2, 3): 8}, 4)
        timing = ContentionTime(graph=path, nic_bytes_per_s=[1, 4, 4])
        result = place(timing, [3, 2, 2], objective="consolidate")
        assert result.placement.servers == (1, 2)
        assert result.seconds == 1.0

    def test_slow_large_server_holds_all(self) -> None:
        graph = unit_graph({(0, 1): 10}, 2)
        timing = ContentionTime(graph=graph, nic_bytes_per_s=[1, 4, 4])
        assert place(timing, [2, 1, 1]).placement.servers == (0,)

    def test_of_a_cluster(self) -> None:
        servers = (Server(id="a", gpus=2, nic_bytes_per_s=1), Server(id="b", gpus=2, nic_bytes_per_s=4))
        graph = unit_graph({(0, 1): 8}, 2)
        assert place(graph, [1, 1], cluster=Cluster(servers=servers)).seconds == pytest.approx(4.0)

    def test_link_shares(self) -> None:
        graph = StageGraph(replicas=[2, 1], compute_s=[1, 1], gradient_bytes=[9, 0], edges={(0, 1): 4})
        timing = LinkTime(graph=graph, link_bytes_per_s=[1, 1])
        result = place(timing, [2, 2])
        assert result.placement.columns == ((0, (2, 0)), (1, (0, 1)))
        assert result.bound_ns <= result.iteration_ns


class TestRefusals:
    @pytest.mark.parametrize("method", METHODS)
    def test_too_few_gpus(self, method: str) -> None:
        with pytest.raises(DoesNotFitError, match="gpus=9 but all servers together have 8 free") as caught:
            place(StageGraph.rigid(9), [3, 5, 0], method=method)
        assert (caught.value.need_gpus, caught.value.offer_gpus) == (9, 8)

    def test_no_servers(self) -> None:
        with pytest.raises(DoesNotFitError):
            place(StageGraph.rigid(1), [])
        with pytest.raises(DoesNotFitError):
            place(StageGraph.rigid(1), [], cluster=Cluster(servers=()))

    @pytest.mark.parametrize("value", [True, np.True_, -1, 2.5, math.nan, "2", None])
    def test_bad_counts_name_the_server(self, value: Any) -> None:
        with pytest.raises(InvalidValueError, match="server 1: free="):
            place(StageGraph.rigid(1), [4, value])

    @pytest.mark.parametrize("free", [[8.0, 4], np.array([8, 4]), np.array([8.0, 4.0]), (np.int32(8), Decimal(4))])
    def test_counts_of_other_types(self, free: Any) -> None:
        assert place(StageGraph.rigid(3), free).placement.loads == ((1, 3),)

    @pytest.mark.parametrize("free", [None, 8, np.zeros((2, 2), int)])
    def test_no_counts_at_all(self, free: Any) -> None:
        with pytest.raises(InvalidValueError, match="free="):
            place(StageGraph.rigid(1), free)

    def test_counts_of_another_cluster(self) -> None:
        cluster = Cluster.uniform(2, gpus=4)
        with pytest.raises(InvalidValueError, match="one entry for each of 2 servers"):
            place(StageGraph.rigid(1), [4], cluster=cluster)
        with pytest.raises(InvalidValueError, match="server 's1': free=5 must be at most its 4 GPUs"):
            place(StageGraph.rigid(1), [4, 5], cluster=cluster)

    def test_unknown_names(self) -> None:
        with pytest.raises(UnknownNameError, match="placement method 'heavy_edge'; did you mean 'heavy-edge'"):
            place(StageGraph.rigid(1), [1], method="heavy_edge")
        with pytest.raises(UnknownNameError, match="placement objective 'speed'"):
            place(StageGraph.rigid(1), [1], objective="speed")

    @pytest.mark.parametrize(("field", "value"), [("time_limit_s", -1), ("time_limit_s", math.nan), ("seed", 0.5)])
    def test_bad_options(self, field: str, value: Any) -> None:
        with pytest.raises(InvalidValueError, match=f"{field}="):
            place(StageGraph.rigid(1), [1], **{field: value})

    def test_no_graph(self) -> None:
        with pytest.raises(InvalidValueError, match="must be a stage graph, a model of its iteration time"):
            place(8, [8])  # type: ignore[arg-type]


class TestMethods:
    @pytest.fixture
    def request_of_two(self) -> Request:
        graph = StageGraph(
            replicas=[3, 2, 2], compute_s=[0] * 3, gradient_bytes=[9, 9, 9], edges={(0, 1): 6, (1, 2): 600}
        )
        return Request(timing=slow_card(graph), free=(4, 4))

    def test_best_fit_ignores_traffic(self, request_of_two: Request) -> None:
        assert best_fit(request_of_two).tolist() == [[3, 1, 0], [0, 1, 2]]

    def test_heavy_edge(self, request_of_two: Request) -> None:
        assert heavy_edge(request_of_two).tolist() == [[0, 2, 2], [3, 0, 0]]

    def test_heavy_edge_with_no_room_for_an_edge(self) -> None:
        path = unit_graph({(0, 1): 5, (1, 2): 7}, 3)
        matrix = heavy_edge(Request(timing=slow_card(path), free=(1, 1, 1)))
        assert matrix.tolist() == [[1, 0, 0], [0, 0, 1], [0, 1, 0]]

    def test_whole_stages(self, request_of_two: Request) -> None:
        assert whole_stages(request_of_two).tolist() == [[3, 0, 0], [0, 2, 2]]

    def test_whole_stages_split_what_fits_nowhere(self) -> None:
        request = Request(timing=slow_card(StageGraph(replicas=[5, 1], compute_s=[0, 0])), free=(4, 3))
        assert whole_stages(request).tolist() == [[4, 0], [1, 1]]

    @pytest.mark.parametrize("replicas", [20, 40])
    def test_contiguous_on_servers_of_many_sizes(self, replicas: int) -> None:
        """Too many states for all orders of the servers; fewer orders for large jobs."""
        path = StageGraph(replicas=[replicas] * 8, compute_s=[0] * 8, edges={(s, s + 1): 10**9 for s in range(7)})
        result = place(path, [1, 2, 3, 4, 5, 6, 7, 8] * 10, method="contiguous")
        packed = place(path, [1, 2, 3, 4, 5, 6, 7, 8] * 10, method="best-fit")
        assert result.placement.gpus == 8 * replicas
        assert result.iteration_ns <= packed.iteration_ns

    def test_descent_leaves_its_start_alone(self, request_of_two: Request) -> None:
        start = np.array([[2, 1, 1], [1, 1, 1]])
        found = Descent(request_of_two).run(start)
        assert start.tolist() == [[2, 1, 1], [1, 1, 1]]
        assert request_of_two.value_ns(found) < request_of_two.value_ns(start)

    def test_a_method_is_one_entry(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def proving(request: Request) -> Answer:
            value_ns = request.value_ns(best_fit(request))
            return Answer(matrix=best_fit(request), source="packed", bound_ns=value_ns, bound="told")

        monkeypatch.setitem(METHODS, "proving", proving)
        result = place(slow_card(unit_graph({(0, 1): 4}, 2)), [1, 1], method="proving")
        assert (result.method, result.status.source, result.status.bound) == ("proving", "packed", "told")
        assert result.status.proved_optimal and result.bound_s == result.seconds == 2.0

    @pytest.mark.parametrize("method", METHODS)
    def test_no_time_at_all_still_places(self, method: str) -> None:
        graph = StageGraph(replicas=[4] * 6, compute_s=[0] * 6, edges={(s, s + 1): 10**9 for s in range(5)})
        result = place(graph, [8, 6, 5, 4, 3], method=method, time_limit_s=0)
        assert result.status.valid
        assert result.placement.gpus == 24

    def test_result(self) -> None:
        result = place(slow_card(unit_graph({(0, 1): 4}, 2)), [1, 1])
        assert (result.iteration_ns, result.bound_ns, result.seconds, result.bound_s) == (2 * 10**9, 0, 2.0, 0.0)
        assert (result.cut_bytes, result.servers_used, result.method, result.gap) == (4, 2, "auto", 2 * 10**9)
        assert (result.status.source, result.status.bound) == ("local-search", "base")
        assert not result.status.proved_optimal and result.runtime_s >= 0


HEURISTICS = ["auto", "best-fit", "contiguous", "heavy-edge", "local-search"]


class TestReplicasOfSeveralGpus:
    """A replica that fills several GPUs stays inside one server."""

    @pytest.mark.parametrize("method", HEURISTICS)
    @pytest.mark.parametrize("pieces", sorted(set(permutations([8, 16, 16]))))
    @pytest.mark.parametrize("free", [[8, 16, 16], [16, 8, 16], [16, 16, 8]])
    def test_pieces_as_large_as_servers(self, method: str, pieces: tuple[int, ...], free: list[int]) -> None:
        graph = unit_graph({(0, 1): 5, (1, 2): 7}, 3).replace(gpus_per_replica=pieces)
        result = place(slow_card(graph), free, method=method)
        assert result.placement.loads == tuple(enumerate(free))

    @pytest.mark.parametrize("method", HEURISTICS)
    @pytest.mark.parametrize("tasks", [[30, 50], [50, 30]])
    @pytest.mark.parametrize("free", [[53, 31], [31, 53]])
    def test_only_one_way_round(self, method: str, tasks: list[int], free: list[int]) -> None:
        graph = unit_graph({(0, 1): 5}, 2).replace(gpus_per_replica=tasks)
        result = place(slow_card(graph), free, method=method)
        home = {gpus: free[server] for server, gpus in result.placement.loads}
        assert home == {50: 53, 30: 31}

    @pytest.mark.parametrize("method", HEURISTICS)
    def test_where_the_tightest_hole_is_a_trap(self, method: str) -> None:
        """Largest first into the tightest hole fills the six with a four; only threes fill it whole."""
        graph = StageGraph(replicas=[2, 2], compute_s=[0, 0], edges={(0, 1): 9}, gpus_per_replica=[4, 3])
        assert place(slow_card(graph), [6, 8], method=method).placement.columns == ((0, (0, 2)), (1, (2, 0)))

    @pytest.mark.parametrize("method", HEURISTICS)
    @pytest.mark.parametrize("objective", ["time", "consolidate"])
    def test_servers_with_broken_gpus(self, method: str, objective: str) -> None:
        graph = StageGraph(replicas=[3, 4], compute_s=[0, 0], edges={(0, 1): 9}, gpus_per_replica=[4, 2])
        result = place(slow_card(graph), [7, 8, 5, 7], method=method, objective=objective)
        matrix = result.placement.matrix(4)
        assert matrix.sum(axis=0).tolist() == [3, 4]
        assert (matrix @ [4, 2] <= [7, 8, 5, 7]).all()

    def test_fewest_servers_are_counted_by_packing(self) -> None:
        """Two servers have the GPUs, but each only one of the fives."""
        graph = StageGraph(replicas=[3], compute_s=[0], gpus_per_replica=[5])
        timing = slow_card(graph)
        assert place(timing, [9, 8, 6], objective="consolidate").servers_used == 3
        assert place(timing, [9, 10, 6], objective="consolidate").servers_used == 2

    def test_an_exchange_of_one_for_two(self) -> None:
        """One replica of two GPUs for two of one: no single replica can move."""
        graph = StageGraph(
            replicas=[2, 2], compute_s=[0, 0], edges={(0, 1): 8}, gradient_bytes=[100, 100], gpus_per_replica=[2, 1]
        )
        assert place(slow_card(graph), [4, 2], method="local-search").placement.columns == ((0, (2, 0)), (1, (0, 2)))

    @pytest.mark.parametrize("method", HEURISTICS)
    def test_a_replica_larger_than_any_server(self, method: str) -> None:
        graph = StageGraph(replicas=[1], compute_s=[0], names=["a"], gpus_per_replica=[5])
        rule = "gpus=5 of 8 free, but a replica of stage 'a' needs 5 in one server, the most is 4"
        with pytest.raises(DoesNotFitError, match=rule) as caught:
            place(graph, [4, 4], method=method)
        assert (caught.value.need_gpus, caught.value.offer_gpus) == (5, 8)

    @pytest.mark.parametrize("method", HEURISTICS)
    def test_enough_gpus_in_the_wrong_places(self, method: str) -> None:
        graph = StageGraph(replicas=[3], compute_s=[0], gpus_per_replica=[3])
        with pytest.raises(DoesNotFitError, match="of 10 free, but there is no way to keep every replica inside one"):
            place(graph, [5, 5], method=method)

    def test_a_search_that_gives_up_says_so(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("frostline.problem.bin_packing.MAX_STEPS", 0)
        graph = StageGraph(replicas=[2, 2], compute_s=[0, 0], gpus_per_replica=[4, 3])
        with pytest.raises(DoesNotFitError, match="no way to keep every replica inside one server was found in"):
            place(graph, [6, 8])


PROGRAM = """
from frostline.placement.place import place
from frostline.timing.stage_graph import StageGraph
edges = {(s, t): 10**7 * (s + 3 * t) for t in range(7) for s in range(t) if (s + t) % 3}
graph = StageGraph(replicas=[3, 1, 4, 1, 5, 2, 6], compute_s=[0.1] * 7, gradient_bytes=[10**7] * 7, edges=edges)
for method in ("local-search", "contiguous"):
    for seed in (0, 1):
        print(place(graph, [8, 3, 5, 2, 7, 4, 6], method=method, seed=seed).placement.columns)
"""


def test_same_placement_whatever_the_hash_seed() -> None:
    answers = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(answers) == 1
    assert answers.pop().count("((") == 4
