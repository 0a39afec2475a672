"""Networks: graphs in and out, their order, their totals and their JSON."""

from __future__ import annotations

import copy
import itertools
import json
import math
import pickle
from typing import Any

import networkx as nx
import numpy as np
import pytest

from frostline.errors import FrostlineWarning, InvalidValueError
from frostline.problem.layer import layer_key
from frostline.problem.network import Edge, Layer, Network, SharedParams, network_from_dict, network_to_dict


def layer(identifier: Any, **figures: int) -> Layer:
    base = {"params": 1, "forward_flops": 2, "backward_flops": 4, "output_elements": 3, "saved_bytes": 5}
    return Layer(id=identifier, **(base | figures))


def chain(*identifiers: Any, **fields: Any) -> Network:
    edges = [Edge(source=a, target=b, elements=3) for a, b in itertools.pairwise(identifiers)]
    return Network(name="chain", layers=[layer(i) for i in identifiers], edges=edges, **fields)


def graph_of(edges: Any, kind: type[nx.DiGraph[Any]] = nx.DiGraph) -> nx.DiGraph[Any]:
    graph = kind()
    for source, target, elements in edges:
        for node in (source, target):
            graph.add_node(node, params=1, forward_flops=2, output_elements=3, saved_bytes=4)
        graph.add_edge(source, target, elements=elements)
    return graph


def ids(network: Network) -> list[Any]:
    return [part.id for part in network.layers]


def document(**changes: Any) -> dict[str, Any]:
    return network_to_dict(chain("a", "b")) | changes


# --- graphs


def test_order_of_insertion_never_matters() -> None:
    edges = [(1, 3, 1), (2, 4, 1), (3, 5, 1), (4, 5, 1)]
    first, second = graph_of(edges), graph_of(edges[::-1])
    assert ids(Network.from_graph(first, name="n")) == [1, 2, 3, 4, 5]
    assert Network.from_graph(first, name="n") == Network.from_graph(second, name="n")


def test_identifiers_order_as_people_read_them() -> None:
    network = Network.from_graph(graph_of([(f"b{i}", "z", 1) for i in (10, 9, 2, 1, 11, 0)]), name="n")
    assert ids(network) == ["b0", "b1", "b2", "b9", "b10", "b11", "z"]


def test_path_of_twelve_numbers_keeps_order_and_types_in_json() -> None:
    network = chain(*range(12))
    back = network_from_dict(json.loads(json.dumps(network_to_dict(network))))
    assert ids(back) == list(range(12))
    assert all(type(identifier) is int for identifier in ids(back))
    assert back == network


def test_numbers_texts_and_tuples_stay_apart() -> None:
    network = chain(1, "1", (1,), ("1",), (0, ("x", 2)))
    back = network_from_dict(json.loads(json.dumps(network_to_dict(network))))
    assert sorted(ids(back), key=layer_key) == sorted([1, "1", (1,), ("1",), (0, ("x", 2))], key=layer_key)
    assert Network.from_graph(back.to_graph()) == network


def test_numpy_scalars_are_taken_and_written_as_plain_numbers() -> None:
    graph: nx.DiGraph[Any] = nx.DiGraph()
    for node in (np.int64(0), (0, np.int32(1))):
        graph.add_node(
            node, params=np.int64(3), forward_flops=np.float64(4), output_elements=np.uint8(5), saved_bytes=0
        )
    graph.add_edge(np.int64(0), (0, np.int32(1)), elements=np.float32(0.5))
    network = Network.from_graph(graph, name="numpy")
    assert ids(network) == [0, (0, 1)]
    assert network.edges[0].elements == 0.5
    assert network_from_dict(json.loads(json.dumps(network_to_dict(network)))) == network


def test_parallel_edges_add_up() -> None:
    graph = graph_of([("a", "b", 3), ("a", "b", 4)], nx.MultiDiGraph)
    assert Network.from_graph(graph, name="n").edges == (Edge(source="a", target="b", elements=7),)


def test_fractions_add_up_the_same_in_any_order() -> None:
    parts = [Edge(source="a", target="b", elements=e) for e in (0.1, 1e16, 0.2, 7)]
    layers = [layer("a"), layer("b")]
    sums = {Network(name="n", layers=layers, edges=edges).edges[0].elements for edges in (parts, parts[::-1])}
    assert sums == {math.fsum([0.1, 1e16, 0.2, 7])}


@pytest.mark.parametrize(
    ("edges", "cycle"),
    [
        ([("c", "a"), ("a", "b"), ("b", "c")], "'a' -> 'b' -> 'c' -> 'a'"),
        ([("a", "b"), ("b", "a")], "'a' -> 'b' -> 'a'"),
        ([("a", "b"), ("a", "a")], "'a' -> 'a'"),
        ([("s", "x"), ("x", "y2"), ("y2", "x"), ("x", "y10"), ("y10", "x"), ("x", "t")], "'x' -> 'y2' -> 'x'"),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_cycles_are_named(edges: list[tuple[str, str]], cycle: str, turned: bool) -> None:
    graph = graph_of([(a, b, 1) for a, b in (edges[::-1] if turned else edges)])
    with pytest.raises(InvalidValueError, match="must not form a cycle") as caught:
        Network.from_graph(graph, name="n")
    assert caught.value.value == cycle


def test_an_edge_without_weight_is_named() -> None:
    graph = graph_of([("a", "b", 1), ("b", "c", 1)])
    del graph.edges["b", "c"]["elements"]
    with pytest.raises(InvalidValueError, match=r"edge 'b' -> 'c': elements=None is missing"):
        Network.from_graph(graph, name="n")


@pytest.mark.parametrize("bad", [None, math.nan, -1, math.inf, "3", True, 2e18, 10**400, 1j])
def test_a_bad_weight_names_its_edge(bad: Any) -> None:
    with pytest.raises(InvalidValueError, match=r"edge 'a' -> 'b': elements="):
        Network.from_graph(graph_of([("a", "b", bad)]), name="n")


@pytest.mark.parametrize("field", ["params", "forward_flops", "output_elements", "saved_bytes"])
@pytest.mark.parametrize("bad", [None, math.nan, -1, math.inf, 0.5, "3", True, np.True_, 10**19])
def test_a_bad_figure_names_its_layer(field: str, bad: Any) -> None:
    graph = graph_of([("a", "b", 1)])
    graph.nodes["b"][field] = bad
    with pytest.raises(InvalidValueError, match=rf"layer 'b': {field}="):
        Network.from_graph(graph, name="n")


@pytest.mark.parametrize("field", ["params", "forward_flops", "output_elements", "saved_bytes"])
def test_a_missing_figure_names_its_layer(field: str) -> None:
    graph = graph_of([("a", "b", 1)])
    del graph.nodes["a"][field]
    with pytest.raises(InvalidValueError, match=rf"layer 'a': {field}=None is missing"):
        Network.from_graph(graph, name="n")


@pytest.mark.parametrize("bad", [True, 1.5, "", (), None, ("a", None), frozenset("a")])
def test_identifiers_of_other_types_are_refused(bad: Any) -> None:
    with pytest.raises(InvalidValueError, match="must be a non-empty string, a whole number or a tuple"):
        layer(bad)


def test_attribute_names_are_arguments() -> None:
    graph: nx.DiGraph[Any] = nx.DiGraph()
    graph.add_node("a", p=1, f=2, o=3, s=4, b=5, k="Conv")
    graph.add_node("b", p=1, f=2, o=3, s=4)
    graph.add_edge("a", "b", w=6)
    names = {"params": "p", "forward_flops": "f", "output_elements": "o", "saved_bytes": "s", "elements": "w"}
    network = Network.from_graph(graph, name="n", backward_flops="b", kind="k", **names)
    assert network.layers[0] == Layer(
        id="a", kind="Conv", params=1, forward_flops=2, output_elements=3, saved_bytes=4, backward_flops=5
    )
    assert network.edges == (Edge(source="a", target="b", elements=6),)
    back = network.to_graph(backward_flops="b", kind="k", **names)
    assert back.nodes["a"] == graph.nodes["a"]
    assert dict(back.edges) == dict(graph.edges)


def test_what_a_graph_does_not_have_is_zero_or_the_output() -> None:
    graph: nx.DiGraph[Any] = nx.DiGraph([("a", "b")])
    nx.set_node_attributes(graph, 9, "output_elements")
    network = Network.from_graph(graph, params=None, forward_flops=None, saved_bytes=None, elements=None)
    assert network.edges[0].elements == 9
    assert (network.params, network.forward_flops, network.saved_bytes) == (0, 0, 0)


def test_a_graph_carries_all_fields() -> None:
    tied = SharedParams(layers=("b", "a"), params=1)
    network = chain("a", "b", shared_params=[tied], sample="word", backward_ratio=3.0, provenance={"tool": "hand"})
    assert Network.from_graph(network.to_graph()) == network
    changed = Network.from_graph(network.to_graph(), name="other", sample="image", shared_params=())
    assert (changed.name, changed.sample, changed.params) == ("other", "image", 2)


def test_backward_flops_follow_the_ratio_where_not_given() -> None:
    graph = graph_of([("a", "b", 1)])
    graph.nodes["b"]["backward_flops"] = 1
    network = Network.from_graph(graph, name="n", backward_ratio=1.5)
    assert [part.backward_flops for part in network.layers] == [3, 1]
    assert network.backward_flops == 4


@pytest.mark.parametrize("graph", [nx.Graph(), {"a": ["b"]}, None])
def test_only_directed_graphs_will_do(graph: Any) -> None:
    with pytest.raises(InvalidValueError, match="must be a directed networkx graph"):
        Network.from_graph(graph, name="n")


def test_unknown_fields_are_refused() -> None:
    with pytest.raises(InvalidValueError, match="colour='red' is not a field"):
        Network.from_graph(graph_of([("a", "b", 1)]), name="n", colour="red")


# --- the network itself


def test_layers_without_an_edge_warn() -> None:
    with pytest.warns(FrostlineWarning, match="2 layers and no edge"):
        Network(name="n", layers=[layer("a"), layer("b")], edges=[])


def test_one_layer_needs_no_edge() -> None:
    assert Network(name="n", layers=[layer("a")], edges=[]).params == 1


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"layers": []}, "must have at least one layer"),
        ({"layers": [layer("a"), layer("a")]}, "layers='a' is the id of two layers"),
        ({"edges": [Edge(source="a", target="c", elements=1)]}, "edge 'a' -> 'c': layer='c' is not a layer"),
        ({"shared_params": [SharedParams(layers=("a", "c"), params=1)]}, "shared_params='c' is not a layer"),
        ({"shared_params": [SharedParams(layers=("a", "b"), params=2)]}, "shared_params=2 must be at most the 1"),
        ({"shared_params": [SharedParams(layers=("a", "b"), params=1)] * 2}, "shared_params=2 must be at most the 1"),
        ({"name": 3}, "name=3 must be text"),
        ({"sample": None}, "sample=None must be text"),
        ({"backward_ratio": math.nan}, "backward_ratio=nan must be finite"),
        ({"backward_ratio": -1}, "backward_ratio=-1 must be at least 0"),
        ({"provenance": {"tool": 3}}, r"provenance.tool=3 must be text"),
        ({"provenance": "hand"}, "provenance='hand' must map text to text"),
    ],
)
def test_a_network_is_validated(fields: dict[str, Any], message: str) -> None:
    good = {"name": "n", "layers": [layer("a"), layer("b")], "edges": [Edge(source="a", target="b", elements=1)]}
    with pytest.raises(InvalidValueError, match=message):
        Network(**(good | fields))


@pytest.mark.parametrize("layers", [("a",), ("a", "a"), ()])
def test_parameters_are_shared_by_at_least_two_layers(layers: tuple[str, ...]) -> None:
    with pytest.raises(InvalidValueError, match="at least two different layers"):
        SharedParams(layers=layers, params=1)


def test_parameters_in_common_count_once_wherever_they_lie_together() -> None:
    tied = [SharedParams(layers=("c", "a", "b"), params=4), SharedParams(layers=("b", "a"), params=1)]
    layers = [layer(i, params=5) for i in "abc"]
    edges = [Edge(source="a", target="b", elements=1), Edge(source="b", target="c", elements=1)]
    network = Network(name="n", layers=layers, edges=edges, shared_params=tied)
    assert network.params == 15 - 2 * 4 - 1
    assert [network.params_of(p) for p in ([0], [0, 1], [0, 2], range(3), [])] == [5, 5, 6, network.params, 0]


def test_an_output_goes_to_a_stage_once() -> None:
    layers = [layer(i, output_elements=10) for i in range(4)]
    edges = [Edge(source=0, target=t, elements=10) for t in (1, 2, 3)] + [Edge(source=1, target=2, elements=0.5)]
    network = Network(name="n", layers=layers, edges=edges)
    assert network.traffic([[0], [1, 2, 3]]) == {(0, 1): 10}
    assert network.traffic([[0, 1], [2, 3]]) == {(0, 1): 10.5}
    assert network.traffic([range(4)]) == {}


def test_parts_of_an_output_add_up() -> None:
    edges = [Edge(source=0, target=1, elements=4), Edge(source=0, target=2, elements=6)]
    for output, expected in ((10, 10), (8, 8), (5, 6), (0, 10)):
        network = Network(name="n", layers=[layer(i, output_elements=output) for i in range(3)], edges=edges)
        assert network.traffic([[0], [1, 2]]) == {(0, 1): expected}


def test_a_copy_is_equal_and_hashes_alike() -> None:
    network = chain("a", (1, "b"), provenance={"tool": "hand"})
    for twin in (pickle.loads(pickle.dumps(network)), copy.deepcopy(network), network.replace()):
        assert twin == network
        assert hash(twin) == hash(network)
    assert network.replace(name="other").name == "other"


def test_fields_cannot_be_set() -> None:
    with pytest.raises(AttributeError):
        chain("a", "b").name = "c"  # type: ignore[misc]
    with pytest.raises(TypeError):
        chain("a", "b").positions["a"] = 1  # type: ignore[index]


# --- JSON


def test_a_file_with_links_is_an_error() -> None:
    data = document()
    data["links"] = data.pop("edges")
    with pytest.raises(InvalidValueError, match=r"links=.*edges are called 'edges'"):
        network_from_dict(data)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"format": "frostline/instance"}, "format"),
        ({"version": 2}, "version"),
        ({"version": "1"}, "version"),
        ({"color": 1}, "color"),
        ({"layers": {}}, "layers"),
        ({"layers": [3]}, "layers[0]"),
        ({"edges": None}, "edges"),
        ({"name": 1}, "name"),
        ({"backward_ratio": "2"}, "backward_ratio"),
        ({"provenance": []}, "provenance"),
        ({"shared_params": [{"layers": ["a", True], "params": 1}]}, "shared_params[0].layers[1]"),
        ({"shared_params": [{"layers": "ab", "params": 1}]}, "shared_params[0].layers"),
        ({"shared_params": [{"layers": ["a", "b"], "params": 0}]}, "shared_params[0].params"),
        ({"edges": [{"source": "a", "target": "b", "weight": 3}]}, "edges[0].weight"),
        ({"edges": [{"source": "a", "target": "b"}]}, "edges[0].elements"),
        ({"edges": [{"source": "a", "target": "b", "elements": math.nan}]}, "edges[0].elements"),
        ({"edges": [{"source": [], "target": "b", "elements": 1}]}, "edges[0].source"),
    ],
)
def test_errors_of_a_file_name_the_path(change: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        network_from_dict(document(**change))
    assert (caught.value.subject, caught.value.field) == ("network file", path)


@pytest.mark.parametrize("field", ["format", "version", "name", "layers", "edges"])
def test_required_fields_of_a_file(field: str) -> None:
    data = document()
    del data[field]
    with pytest.raises(InvalidValueError, match=f"{field}=None is missing"):
        network_from_dict(data)


@pytest.mark.parametrize("field", ["id", "params", "forward_flops", "output_elements", "saved_bytes"])
@pytest.mark.parametrize("bad", [None, "gone", -1.5])
def test_figures_of_a_file_name_their_path(field: str, bad: Any) -> None:
    data = document()
    if bad == "gone":
        del data["layers"][1][field]
    else:
        data["layers"][1][field] = bad
    with pytest.raises(InvalidValueError) as caught:
        network_from_dict(data)
    assert caught.value.field == f"layers[1].{field}"


def test_a_file_is_an_object() -> None:
    with pytest.raises(InvalidValueError, match="must be an object"):
        network_from_dict([])


def test_backward_flops_are_written_where_they_differ() -> None:
    layers = [layer("a", backward_flops=4), layer("b", backward_flops=3)]
    network = Network(name="n", layers=layers, edges=[Edge(source="a", target="b", elements=1)])
    assert ["backward_flops" in entry for entry in network_to_dict(network)["layers"]] == [False, True]
    assert network_from_dict(network_to_dict(network)) == network
