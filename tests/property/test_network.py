"""Networks and plans of any shape."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction
from typing import Any

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frostline.errors import InvalidValueError
from frostline.problem.layer import layer_key
from frostline.problem.network import Network, network_from_dict, network_to_dict
from frostline.problem.plan import TrainingPlan, balanced_ranges, balanced_replicas

names = st.text("ab01.", min_size=1, max_size=4)
identifiers = st.recursive(
    st.integers(-20, 20) | names, lambda inner: st.lists(inner, min_size=1, max_size=2).map(tuple), max_leaves=3
)
figures = st.integers(0, 10**15)
weights = st.integers(0, 10**12) | st.floats(0, 1e12, allow_nan=False)


@st.composite
def graphs(draw: st.DrawFn) -> nx.MultiDiGraph[Any]:
    """Acyclic multigraphs, nodes in random order."""
    nodes = draw(st.lists(identifiers, min_size=1, max_size=8, unique=True))
    graph: nx.MultiDiGraph[Any] = nx.MultiDiGraph()
    for node in draw(st.permutations(nodes)):
        values = {field: draw(figures) for field in ("params", "forward_flops", "output_elements", "saved_bytes")}
        graph.add_node(node, **values)
    pairs = list(itertools.combinations(nodes, 2))
    if pairs:
        for source, target in draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=16)):
            graph.add_edge(source, target, elements=draw(weights))
    return graph


def shuffled(graph: nx.MultiDiGraph[Any], draw: st.DataObject) -> nx.MultiDiGraph[Any]:
    copy: nx.MultiDiGraph[Any] = nx.MultiDiGraph()
    copy.add_nodes_from(draw.draw(st.permutations(list(graph.nodes(data=True)))))
    copy.add_edges_from(draw.draw(st.permutations(list(graph.edges(data=True)))))
    return copy


@given(graphs(), st.data())
def test_insertion_order_never_matters(graph: nx.MultiDiGraph[Any], data: st.DataObject) -> None:
    assert Network.from_graph(graph, name="n") == Network.from_graph(shuffled(graph, data), name="n")


@given(graphs())
def test_order_is_topological_and_smallest_first(graph: nx.MultiDiGraph[Any]) -> None:
    network = Network.from_graph(graph, name="n")
    before = {node: set(graph.predecessors(node)) for node in graph}
    done: set[Any] = set()
    for layer in network.layers:
        ready = [node for node in graph if node not in done and before[node] <= done]
        assert layer.id == min(ready, key=layer_key)
        done.add(layer.id)


@given(graphs())
def test_round_trips(graph: nx.MultiDiGraph[Any]) -> None:
    network = Network.from_graph(graph, name="n", sample="word", provenance={"tool": "hypothesis"})
    assert Network.from_graph(network.to_graph()) == network
    back = network_from_dict(json.loads(json.dumps(network_to_dict(network))))
    assert back == network
    assert [type(layer.id) for layer in back.layers] == [type(layer.id) for layer in network.layers]


@given(graphs(), st.data())
def test_an_edge_back_is_refused_and_all_its_layers_named(graph: nx.MultiDiGraph[Any], data: st.DataObject) -> None:
    source, target = data.draw(st.sampled_from([(n, n) for n in graph] + [(u, v) for u, v, _ in graph.edges]))
    graph.add_edge(target, source, elements=1)
    with pytest.raises(InvalidValueError, match="must not form a cycle") as caught:
        Network.from_graph(graph, name="n")
    named = str(caught.value.value).split(" -> ")
    assert named[0] == named[-1]
    known = {repr(node): node for node in graph}
    assert all(graph.has_edge(known[a], known[b]) for a, b in itertools.pairwise(named))


@given(graphs(), st.data())
def test_traffic_is_at_most_what_the_edges_carry(graph: nx.MultiDiGraph[Any], data: st.DataObject) -> None:
    network = Network.from_graph(graph, name="n")
    n = len(network.layers)
    stages = balanced_ranges([1] * n, data.draw(st.integers(1, n)))
    stage_of = {i: s for s, stage in enumerate(stages) for i in stage}
    summed: dict[tuple[int, int], Fraction] = {}
    for edge in network.edges:
        ends = (stage_of[network.positions[edge.source]], stage_of[network.positions[edge.target]])
        if ends[0] != ends[1]:
            summed[ends] = summed.get(ends, Fraction(0)) + Fraction(edge.elements)
    traffic = network.traffic(stages)
    assert set(traffic) == set(summed)
    assert all(traffic[ends] <= summed[ends] * (1 + Fraction(1, 2**50)) for ends in summed)


@given(graphs(), st.data())
def test_balanced_plans_are_valid(graph: nx.MultiDiGraph[Any], data: st.DataObject) -> None:
    network = Network.from_graph(graph, name="n")
    stages = data.draw(st.integers(1, len(network.layers)))
    gpus = data.draw(st.integers(stages, 40))
    plan = TrainingPlan.balanced(network, gpus, stages=stages, micro_batches=data.draw(st.integers(1, 50)))
    assert (len(plan.stages), plan.gpus) == (stages, gpus)
    assert [i for stage in plan.stages for i in stage] == list(range(len(network.layers)))


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8), st.data())
def test_no_split_has_a_smaller_bottleneck(loads: list[int], data: st.DataObject) -> None:
    parts = data.draw(st.integers(1, len(loads)))
    ranges = balanced_ranges(loads, parts)
    assert [i for part in ranges for i in part] == list(range(len(loads)))
    assert all(ranges)
    cuts = itertools.combinations(range(1, len(loads)), parts - 1)
    best = min(max(sum(loads[a:b]) for a, b in itertools.pairwise((0, *cut, len(loads)))) for cut in cuts)
    assert max(sum(loads[i] for i in part) for part in ranges) == best


@given(st.lists(st.integers(0, 50), min_size=1, max_size=4), st.integers(0, 6))
def test_no_counts_have_a_smaller_share(compute: list[int], spare: int) -> None:
    gpus = len(compute) + spare
    replicas = balanced_replicas(compute, gpus)
    assert sum(replicas) == gpus
    choices = (c for c in itertools.product(range(1, spare + 2), repeat=len(compute)) if sum(c) == gpus)
    best = min(max(Fraction(c, k) for c, k in zip(compute, counts, strict=True)) for counts in choices)
    assert max(Fraction(c, k) for c, k in zip(compute, replicas, strict=True)) == best
