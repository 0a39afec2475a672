"""Stage graphs: what is refused and with which words, networkx graphs, graphs of training plans."""

from __future__ import annotations

import copy
import math
import pickle
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
import pytest

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.problem.cluster import GpuType
from frostline.problem.network import Edge, Layer, Network, SharedParams
from frostline.problem.plan import TrainingPlan
from frostline.timing.stage_graph import StageGraph, stage_graph


def graph_of(edges: dict[tuple[int, int], Any], stages: int = 3, **fields: Any) -> StageGraph:
    return StageGraph(**{"replicas": [1] * stages, "compute_s": [0.0] * stages, "edges": edges} | fields)


def stages_of(kind: type[nx.Graph[Any]], names: str) -> Any:
    graph = kind()
    graph.add_nodes_from(names, replicas=1, compute_s=0.5, gradient_bytes=8)
    return graph


class TestRefusals:
    def test_no_stage(self) -> None:
        with pytest.raises(InvalidValueError, match="must name at least one stage"):
            StageGraph(replicas=[], compute_s=[])

    def test_cycle_names_all_its_stages(self) -> None:
        with pytest.raises(InvalidValueError, match="'a -> b -> c -> a' must not close a cycle"):
            graph_of({(0, 1): 1, (1, 2): 1, (2, 0): 1, (0, 3): 1}, 4, names="abcd")

    def test_cycle_away_from_the_first_stage(self) -> None:
        edges = {(0, 3): 1, (3, 2): 1, (2, 1): 1, (1, 3): 1, (2, 4): 1}
        with pytest.raises(InvalidValueError, match="'b -> d -> c -> b'"):
            graph_of(edges, 5, names="abcde")

    def test_self_loop_names_the_stage(self) -> None:
        with pytest.raises(InvalidValueError, match=r"stage 'a': .* must not send to itself"):
            graph_of({(0, 1): 10, (0, 0): 5}, 2, names="ab")

    @pytest.mark.parametrize("amount", [None, math.nan, -1, math.inf, 0.5, True, np.True_, "3"])
    def test_bad_weight_names_the_edge(self, amount: object) -> None:
        with pytest.raises(InvalidValueError, match="edge '0' -> '2': bytes="):
            graph_of({(0, 2): amount})

    @pytest.mark.parametrize("edge", [(0, 3), (-1, 0), (0, "b"), (0, 1.5)])
    def test_unknown_stage_names_the_edge(self, edge: Any) -> None:
        with pytest.raises(InvalidValueError, match=r"edge \(.*stage="):
            graph_of({edge: 1})

    @pytest.mark.parametrize(
        ("field", "values"),
        [("replicas", [1, 0]), ("compute_s", [0, -1]), ("compute_s", [0, math.nan]), ("gradient_bytes", [0, None])],
    )
    def test_bad_figure_names_the_stage(self, field: str, values: list[Any]) -> None:
        with pytest.raises(InvalidValueError, match=f"stage 'b': {field}="):
            graph_of({}, 2, names="ab", **{field: values})

    @pytest.mark.parametrize("field", ["compute_s", "gradient_bytes", "names"])
    def test_one_entry_per_stage(self, field: str) -> None:
        with pytest.raises(InvalidValueError, match="must have one entry for each of 2 stages"):
            graph_of({}, 2, **{field: [0]})

    def test_equal_names(self) -> None:
        with pytest.raises(InvalidValueError, match="names='a' is the name of two stages"):
            graph_of({}, 2, names="aa")

    def test_too_many_bytes(self) -> None:
        with pytest.raises(InvalidValueError, match=r"must be at most 1e\+18"):
            graph_of({(0, 1): 10**18 + 1})


class TestTraffic:
    def test_opposite_edges_add_up(self) -> None:
        graph = graph_of({(0, 1): 3, (1, 0): 2}, 2)
        assert dict(graph.edges) == {(0, 1): 3, (1, 0): 2}
        assert dict(graph.traffic) == {(0, 1): 5}
        assert graph.neighbours() == (((1, 5),), ((0, 5),))

    def test_return_traffic_beside_a_skip_edge_is_no_cycle(self) -> None:
        graph = graph_of({(0, 1): 1, (1, 2): 1, (0, 2): 1, (2, 0): 4})
        assert graph.traffic[0, 2] == 5

    def test_sizes_of_other_types(self) -> None:
        graph = graph_of({(np.int64(0), 1): np.float64(8.0)}, 2, replicas=np.array([2, 1]))
        assert (graph.edges[0, 1], graph.replicas) == (8, (2, 1))
        assert all(type(count) is int for count in graph.replicas)

    def test_ring(self) -> None:
        graph = StageGraph(replicas=[1, 2, 4], compute_s=[0, 0, 0], gradient_bytes=[9, 9, 9])
        assert graph.ring_bytes == (0, 9, Fraction(27, 2))


class TestValue:
    def test_equal_and_hashed_by_value(self) -> None:
        one, other = graph_of({(0, 1): 3, (1, 2): 4}), graph_of({(1, 2): 4, (0, 1): 3})
        assert one == other and hash(one) == hash(other)
        assert one != one.replace(edges={(0, 1): 3})

    def test_copies_are_equal(self) -> None:
        graph = graph_of({(0, 1): 3}, names="abc")
        assert pickle.loads(pickle.dumps(graph)) == copy.deepcopy(graph) == graph.replace() == graph

    def test_edges_cannot_be_changed(self) -> None:
        with pytest.raises(TypeError):
            graph_of({(0, 1): 3}).edges[0, 1] = 4  # type: ignore[index]


class TestFromNetworkx:
    def test_parallel_edges_add_up(self) -> None:
        graph = stages_of(nx.MultiDiGraph, "ab")
        graph.add_edges_from([("a", "b", {"bytes": 3}), ("a", "b", {"bytes": 4})])
        assert dict(StageGraph.from_networkx(graph).edges) == {(0, 1): 7}

    def test_opposite_edges_add_up(self) -> None:
        graph = stages_of(nx.DiGraph, "ab")
        graph.add_edges_from([("a", "b", {"bytes": 3}), ("b", "a", {"bytes": 2})])
        assert dict(StageGraph.from_networkx(graph).traffic) == {(0, 1): 5}

    def test_undirected_ring(self) -> None:
        graph = stages_of(nx.Graph, "abc")
        graph.add_edges_from([("c", "a"), ("b", "a"), ("b", "c")], bytes=1)
        assert dict(StageGraph.from_networkx(graph).edges) == {(0, 1): 1, (0, 2): 1, (1, 2): 1}

    @pytest.mark.parametrize("edges", [["13", "24", "35", "45"], ["45", "35", "24", "13"]])
    def test_order_of_insertion_does_not_matter(self, edges: list[str]) -> None:
        graph: nx.DiGraph[str] = nx.DiGraph([(edge[0], edge[1], {"bytes": 1}) for edge in edges])
        nx.set_node_attributes(graph, {n: {"replicas": 1, "compute_s": 0, "gradient_bytes": 0} for n in graph})
        assert StageGraph.from_networkx(graph).names == ("1", "2", "3", "4", "5")

    def test_digits_count_as_numbers(self) -> None:
        graph: nx.DiGraph[int] = nx.path_graph(12, create_using=nx.DiGraph)
        nx.set_node_attributes(graph, {n: {"k": 1, "p": 0, "h": 0} for n in graph})
        nx.set_edge_attributes(graph, 1, "d")
        found = StageGraph.from_networkx(graph, replicas="k", compute_s="p", gradient_bytes="h", weight="d")
        assert found.names == tuple(str(n) for n in range(12))
        assert list(found.edges) == [(n, n + 1) for n in range(11)]

    def test_attributes_follow_the_order(self) -> None:
        graph: nx.DiGraph[str] = nx.DiGraph()
        graph.add_node("a", replicas=1, compute_s=0.1, gradient_bytes=1)
        graph.add_node("b", replicas=2, compute_s=0.2, gradient_bytes=2)
        graph.add_edge("b", "a", bytes=9)
        found = StageGraph.from_networkx(graph)
        assert (found.names, found.replicas, found.compute_s) == (("b", "a"), (2, 1), (0.2, 0.1))
        assert (found.gradient_bytes, dict(found.edges)) == ((2, 1), {(0, 1): 9})

    def test_cycle(self) -> None:
        graph = stages_of(nx.DiGraph, "abc")
        graph.add_edges_from([("a", "b"), ("b", "c"), ("c", "a")], bytes=1)
        with pytest.raises(InvalidValueError, match="'a -> b -> c -> a' must not close a cycle"):
            StageGraph.from_networkx(graph)

    def test_missing_weight_names_the_edge(self) -> None:
        graph = stages_of(nx.DiGraph, "ab")
        graph.add_edge("a", "b")
        with pytest.raises(InvalidValueError, match="edge 'a' -> 'b': bytes=None"):
            StageGraph.from_networkx(graph)

    def test_missing_attribute_names_the_stage(self) -> None:
        graph = stages_of(nx.DiGraph, "ab")
        del graph.nodes["b"]["compute_s"]
        with pytest.raises(InvalidValueError, match="stage 'b': compute_s=None must be given"):
            StageGraph.from_networkx(graph)

    def test_nodes_that_read_alike(self) -> None:
        graph: nx.DiGraph[Any] = nx.DiGraph()
        graph.add_nodes_from([1, "1"], replicas=1, compute_s=0, gradient_bytes=0)
        with pytest.raises(InvalidValueError, match="is the name of two stages"):
            StageGraph.from_networkx(graph)


class TestOfPlan:
    """Four layers in two stages; a skip edge and an edge inside a stage."""

    @pytest.fixture
    def network(self) -> Network:
        figures = [(5, 10, 10), (7, 30, 60), (1, 40, 80), (2, 0, 0)]
        layers = tuple(
            Layer(id=i, params=p, forward_flops=f, backward_flops=b, output_elements=4, saved_bytes=0)
            for i, (p, f, b) in enumerate(figures)
        )
        edges = [(0, 1, 4), (1, 2, 4), (2, 3, 100), (0, 2, 0.25)]
        return Network(
            name="four",
            layers=layers,
            edges=tuple(Edge(source=s, target=t, elements=e) for s, t, e in edges),
            shared_params=(SharedParams(layers=(0, 1), params=3),),
        )

    def plan(self, network: Network, **changes: Any) -> TrainingPlan:
        fields: dict[str, Any] = {
            "network": network,
            "stages": (range(2), range(2, 4)),
            "replicas": (2, 4),
            "global_batch": 8,
            "precision": "fp16",
            "utilisation": 0.5,
        }
        return TrainingPlan(**fields | changes)

    def test_by_hand(self, network: Network) -> None:
        graph = stage_graph(self.plan(network), GpuType(name="g", peak_flops={"fp16": 100}))
        fill = (1 + 2 - 1) / 1
        assert graph.replicas == (2, 4)
        assert graph.compute_s == (110 * 4 / 50 * fill, 120 * 2 / 50 * fill)
        assert graph.gradient_bytes == ((5 + 7 - 3) * 2, 3 * 2)
        assert dict(graph.edges) == {(0, 1): 136}  # 4.25 elements × 2 bytes × 8 samples, forward and back

    def test_more_micro_batches_fill_the_pipeline(self, network: Network) -> None:
        kind = GpuType(name="g", peak_flops={"fp16": 100})
        few, many = (stage_graph(self.plan(network, micro_batches=b), kind).compute_s[0] for b in (1, 2))
        assert many / few == pytest.approx(1.5 / 2)

    def test_unknown_precision(self, network: Network) -> None:
        with pytest.raises(UnknownNameError, match="precision of GPU type 'old' 'fp16'"):
            stage_graph(self.plan(network), GpuType(name="old", peak_flops={"fp32": 1}))
