"""A network: the layers of a deep neural network and what flows between them, as a directed acyclic graph."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import networkx as nx

from frostline.errors import FrostlineWarning, InvalidValueError
from frostline.problem.frozen import FrozenMap
from frostline.problem.layer import (
    BACKWARD_RATIO,
    Edge,
    Layer,
    LayerId,
    SharedParams,
    as_count,
    as_elements,
    as_layer_id,
    as_text,
    backward_flops,
    edge_name,
    layer_key,
)
from frostline.units import as_finite, as_int

__all__ = ["Edge", "Layer", "LayerId", "Network", "SharedParams", "network_from_dict", "network_to_dict"]

_FORMAT, _VERSION = "frostline/network", 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A deep neural network as a directed acyclic graph of layers.

    Parameters
    ----------
    name : str
        Name.
    layers : iterable of Layer
        The layers in any order. They are kept in topological order, and among layers that could come next the one
        with the smallest identifier (:func:`layer_key`) comes first, so the order given never matters.
    edges : iterable of Edge
        What flows between them, in any order; parallel edges add up.
    shared_params : iterable of SharedParams
        Parameters that layers hold in common; the total counts them once.
    sample : str
        What one sample is, such as ``"1024 tokens"``.
    backward_ratio : float
        Backward over forward FLOPs of the layers for which nothing else was given.
    provenance : mapping of str to str
        Where the figures come from.

    Attributes
    ----------
    params : int
        Parameters, those in common counted once.
    forward_flops, backward_flops, saved_bytes : int
        Sums over the layers, per sample.
    positions : mapping of layer identifier to int
        Position of each layer in ``layers``.

    Raises
    ------
    InvalidValueError
        A figure is missing, negative or not finite; an edge names no layer; the edges form a cycle.

    Warns
    -----
    FrostlineWarning
        Several layers and not one edge: most likely the edges were lost.

    Examples
    --------
    >>> import networkx as nx
    >>> graph = nx.DiGraph()
    >>> for node in ("tail", "head"):
    ...     graph.add_node(node, params=10, forward_flops=20, output_elements=4, saved_bytes=16)
    >>> graph.add_edge("head", "tail", elements=4)
    >>> network = Network.from_graph(graph, name="tiny")
    >>> [layer.id for layer in network.layers], network.params, network.backward_flops
    (['head', 'tail'], 20, 80)
    """

    name: str
    layers: tuple[Layer, ...]
    edges: tuple[Edge, ...]
    shared_params: tuple[SharedParams, ...] = ()
    sample: str = "sample"
    backward_ratio: float = BACKWARD_RATIO
    provenance: Mapping[str, str] = field(default_factory=dict, hash=False)
    params: int = field(init=False, repr=False, compare=False)
    forward_flops: int = field(init=False, repr=False, compare=False)
    backward_flops: int = field(init=False, repr=False, compare=False)
    saved_bytes: int = field(init=False, repr=False, compare=False)
    positions: Mapping[LayerId, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        subject = f"network {as_text(self.name, 'network', 'name')!r}"
        layers = _by_id(self.layers, subject)
        edges = _added_up(self.edges, layers, subject)
        order = _topological_order(layers, edges, subject)
        positions = {identifier: position for position, identifier in enumerate(order)}
        shared = _checked_shares(self.shared_params, layers, subject)
        ordered = tuple(layers[identifier] for identifier in order)
        values = {
            "layers": ordered,
            "edges": tuple(sorted(edges, key=lambda edge: (positions[edge.source], positions[edge.target]))),
            "shared_params": shared,
            "sample": as_text(self.sample, subject, "sample"),
            "backward_ratio": as_finite(self.backward_ratio, subject, "backward_ratio", 0.0, 1e3),
            "provenance": FrozenMap(_provenance(self.provenance, subject)),
            "positions": FrozenMap(positions),
            "params": sum(layer.params for layer in ordered) - sum((len(s.layers) - 1) * s.params for s in shared),
            "forward_flops": sum(layer.forward_flops for layer in ordered),
            "backward_flops": sum(layer.backward_flops for layer in ordered),
            "saved_bytes": sum(layer.saved_bytes for layer in ordered),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        if len(ordered) > 1 and not edges:
            text = f"{subject} has {len(ordered)} layers and no edge: nothing flows between them"
            warnings.warn(text, FrostlineWarning, stacklevel=3)

    def __reduce__(self) -> tuple[Any, ...]:
        return network_from_dict, (network_to_dict(self),)

    @classmethod
    def from_graph(
        cls,
        graph: nx.DiGraph[Any],
        *,
        name: str | None = None,
        params: str | None = "params",
        forward_flops: str | None = "forward_flops",
        output_elements: str | None = "output_elements",
        saved_bytes: str | None = "saved_bytes",
        elements: str | None = "elements",
        backward_flops: str = "backward_flops",
        kind: str = "kind",
        **attributes: Any,
    ) -> Network:
        """Network of a networkx graph; the order in which nodes and edges were inserted never matters.

        Parameters
        ----------
        graph : networkx.DiGraph or networkx.MultiDiGraph
            Nodes are layers. Parallel edges add up.
        name : str, optional
            Name; ``graph.graph["name"]`` by default.
        params, forward_flops, output_elements, saved_bytes : str or None
            Names of node attributes, which every node must have. None: the graph has none of them, they are 0.
        elements : str or None
            Name of the edge attribute, which every edge must have. None: an edge carries its source's output.
        backward_flops, kind : str
            Names of optional node attributes; backward FLOPs are ``backward_ratio`` × forward where absent.
        **attributes
            Further fields of :class:`Network`; by default those of the same names in ``graph.graph``, which
            :meth:`to_graph` writes.

        Raises
        ------
        InvalidValueError
            No directed graph, an attribute that is missing or bad (the error names the node or edge), or a cycle.
        """
        if not isinstance(graph, nx.Graph) or not graph.is_directed():
            raise InvalidValueError("network", "graph", type(graph).__name__, "must be a directed networkx graph")
        fields = _graph_fields(graph, name, attributes)
        ratio = as_finite(fields.get("backward_ratio", BACKWARD_RATIO), "network", "backward_ratio", 0.0, 1e3)
        names = {
            "params": params,
            "forward_flops": forward_flops,
            "output_elements": output_elements,
            "saved_bytes": saved_bytes,
        }
        layers = [_layer_of_node(*node, names, backward_flops, kind, ratio) for node in graph.nodes(data=True)]
        output = {layer.id: layer.output_elements for layer in layers}
        edges = [_edge_of_graph(*edge, elements, output) for edge in graph.edges(data=True)]
        return cls(layers=tuple(layers), edges=tuple(edges), **fields)

    def to_graph(
        self,
        *,
        params: str = "params",
        forward_flops: str = "forward_flops",
        output_elements: str = "output_elements",
        saved_bytes: str = "saved_bytes",
        elements: str = "elements",
        backward_flops: str = "backward_flops",
        kind: str = "kind",
    ) -> nx.DiGraph[Any]:
        """Graph whose nodes are the identifiers of the layers; :meth:`from_graph` gives the network back.

        Examples
        --------
        >>> layers = [Layer(id=i, params=1, forward_flops=2, backward_flops=4, output_elements=3, saved_bytes=0)
        ...           for i in (0, (0, 1))]
        >>> network = Network(name="pair", layers=layers, edges=[Edge(source=0, target=(0, 1), elements=3)])
        >>> Network.from_graph(network.to_graph()) == network
        True
        """
        graph: nx.DiGraph[Any] = nx.DiGraph(
            name=self.name,
            sample=self.sample,
            backward_ratio=self.backward_ratio,
            shared_params=self.shared_params,
            provenance=dict(self.provenance),
        )
        for layer in self.layers:
            attributes: dict[str, Any] = {
                params: layer.params,
                forward_flops: layer.forward_flops,
                backward_flops: layer.backward_flops,
                output_elements: layer.output_elements,
                saved_bytes: layer.saved_bytes,
                kind: layer.kind,
            }
            graph.add_node(layer.id, **attributes)
        for edge in self.edges:
            graph.add_edge(edge.source, edge.target, **{elements: edge.elements})
        return graph

    def params_of(self, positions: Iterable[int]) -> int:
        """Parameters of some layers by position, those they hold in common counted once.

        Examples
        --------
        >>> layers = [Layer(id=i, params=5, forward_flops=0, backward_flops=0, output_elements=1, saved_bytes=0)
        ...           for i in "ab"]
        >>> tied = SharedParams(layers=("a", "b"), params=4)
        >>> edge = Edge(source="a", target="b", elements=1)
        >>> network = Network(name="tied", layers=layers, edges=[edge], shared_params=[tied])
        >>> network.params_of([0]), network.params_of(range(2))
        (5, 6)
        """
        chosen = set(positions)
        twice = sum(
            max(0, sum(self.positions[layer] in chosen for layer in shared.layers) - 1) * shared.params
            for shared in self.shared_params
        )
        return sum(self.layers[position].params for position in chosen) - twice

    def traffic(self, stages: Sequence[Iterable[int]], first: int = 0) -> dict[tuple[int, int], float]:
        """Elements per sample that each stage sends to each other one in the forward pass.

        A layer that feeds several layers of a stage sends that stage no more than its whole output (or its largest
        edge): the output of an encoder goes once to a stage, however many decoder layers there read it.

        Parameters
        ----------
        stages : sequence of iterable of int
            Positions of the layers of each stage.
        first : int
            Position of the first layer whose output counts.

        Returns
        -------
        dict of (int, int) to int or float
            By (sender, receiver), in sorted order; pairs without an edge between them are left out.

        Examples
        --------
        >>> layers = [Layer(id=i, params=0, forward_flops=1, backward_flops=2, output_elements=8, saved_bytes=0)
        ...           for i in range(3)]
        >>> edges = [Edge(source=0, target=1, elements=8), Edge(source=0, target=2, elements=8)]
        >>> network = Network(name="fan", layers=layers, edges=edges)
        >>> network.traffic([range(1), range(1, 3)]), network.traffic([[0], [1], [2]])
        ({(0, 1): 8}, {(0, 1): 8, (0, 2): 8})
        """
        stage_of = {position: stage for stage, positions in enumerate(stages) for position in positions}
        sent: dict[tuple[int, int], dict[int, list[float]]] = {}
        for edge in self.edges:
            source = self.positions[edge.source]
            ends = (stage_of[source], stage_of[self.positions[edge.target]])
            if ends[0] != ends[1] and source >= first:
                sent.setdefault(ends, {}).setdefault(source, []).append(edge.elements)
        return {
            ends: _sum([self._sent_once(source, elements) for source, elements in sources.items()])
            for ends, sources in sorted(sent.items())
        }

    def _sent_once(self, source: int, elements: Sequence[float]) -> float:
        output = self.layers[source].output_elements
        return min(_sum(elements), max(output, *elements)) if output and len(elements) > 1 else _sum(elements)

    def replace(self, **changes: Any) -> Network:
        """Copy with some fields changed, validated again."""
        return replace(self, **changes)


def network_to_dict(network: Network) -> dict[str, Any]:
    """Network as plain JSON values, format ``frostline/network`` version 1.

    Backward FLOPs are written only for layers where they are not ``backward_ratio`` × forward; tuples become lists.

    Examples
    --------
    >>> layer = Layer(id=(0, "a"), params=1, forward_flops=2, backward_flops=4, output_elements=3, saved_bytes=0)
    >>> network_to_dict(Network(name="one", layers=[layer], edges=[]))["layers"]
    [{'id': [0, 'a'], 'params': 1, 'forward_flops': 2, 'output_elements': 3, 'saved_bytes': 0}]
    """
    return {
        "format": _FORMAT,
        "version": _VERSION,
        "name": network.name,
        "sample": network.sample,
        "backward_ratio": network.backward_ratio,
        "provenance": dict(network.provenance),
        "shared_params": [
            {"layers": [_plain(layer) for layer in shared.layers], "params": shared.params}
            for shared in network.shared_params
        ],
        "layers": [_layer_to_dict(layer, network.backward_ratio) for layer in network.layers],
        "edges": [
            {"source": _plain(edge.source), "target": _plain(edge.target), "elements": edge.elements}
            for edge in network.edges
        ],
    }


def network_from_dict(data: object) -> Network:
    """Network of plain JSON values, as :func:`network_to_dict` writes them.

    Raises
    ------
    InvalidValueError
        Another format, a newer version, or a field that is unknown, missing or bad; the error names its path.

    Examples
    --------
    >>> network_from_dict({"format": "frostline/network", "version": 1, "name": "x", "layers": [], "links": []})
    Traceback (most recent call last):
    frostline.errors.InvalidValueError: network file: links=[] is not a field of this format; edges are called 'edges'
    """
    table = _object(data, "", ("format", "version", "name", "layers", "edges"), _OPTIONAL)
    if table["format"] != _FORMAT:
        raise InvalidValueError(_FILE, "format", table["format"], f"must be {_FORMAT!r}")
    if as_int(table["version"], _FILE, "version", 1) > _VERSION:
        raise InvalidValueError(_FILE, "version", table["version"], f"must be at most {_VERSION}")
    ratio = as_finite(table.get("backward_ratio", BACKWARD_RATIO), _FILE, "backward_ratio", 0.0, 1e3)
    return Network(
        name=as_text(table["name"], _FILE, "name"),
        layers=tuple(_layer_from_dict(entry, f"layers[{i}]", ratio) for i, entry in _list(table, "layers")),
        edges=tuple(_edge_from_dict(entry, f"edges[{i}]") for i, entry in _list(table, "edges")),
        shared_params=tuple(_shared_from_dict(entry, f"shared_params[{i}]") for i, entry in _list(table, _SHARED)),
        sample=as_text(table.get("sample", "sample"), _FILE, "sample"),
        backward_ratio=ratio,
        provenance=_provenance(table.get("provenance", {}), _FILE),
    )


_FILE = "network file"
_SHARED = "shared_params"
_OPTIONAL = ("sample", "backward_ratio", "provenance", _SHARED)
_FIGURES = ("params", "forward_flops", "output_elements", "saved_bytes")


def _provenance(value: object, subject: str) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise InvalidValueError(subject, "provenance", value, "must map text to text")
    return {
        as_text(key, subject, "provenance"): as_text(text, subject, f"provenance.{key}") for key, text in value.items()
    }


def _by_id(layers: Iterable[Layer], subject: str) -> dict[LayerId, Layer]:
    table: dict[LayerId, Layer] = {}
    for layer in layers:
        if layer.id in table:
            raise InvalidValueError(subject, "layers", layer.id, "is the id of two layers")
        table[layer.id] = layer
    if not table:
        raise InvalidValueError(subject, "layers", (), "must have at least one layer")
    return table


def _added_up(edges: Iterable[Edge], layers: Mapping[LayerId, Layer], subject: str) -> list[Edge]:
    """One edge per pair of layers: parallel edges add up."""
    carried: dict[tuple[LayerId, LayerId], list[float]] = {}
    for edge in edges:
        for end in (edge.source, edge.target):
            if end not in layers:
                name = edge_name(edge.source, edge.target)
                raise InvalidValueError(f"{subject}, {name}", "layer", end, "is not a layer of the network")
        carried.setdefault((edge.source, edge.target), []).append(edge.elements)
    return [Edge(source=s, target=t, elements=_sum(elements)) for (s, t), elements in carried.items()]


def _sum(numbers: Sequence[float]) -> float:
    return sum(numbers) if all(isinstance(number, int) for number in numbers) else math.fsum(numbers)


def _topological_order(layers: Iterable[LayerId], edges: Iterable[Edge], subject: str) -> list[LayerId]:
    graph: nx.DiGraph[LayerId] = nx.DiGraph()
    graph.add_nodes_from(layers)
    graph.add_edges_from((edge.source, edge.target) for edge in edges)
    try:
        return list(nx.lexicographical_topological_sort(graph, key=layer_key))
    except nx.NetworkXUnfeasible:
        cycle = " -> ".join(repr(identifier) for identifier in _cycle(graph))
        raise InvalidValueError(subject, "edges", cycle, "must not form a cycle") from None


def _cycle(graph: nx.DiGraph[LayerId]) -> list[LayerId]:
    """Shortest cycle through the smallest layer that is on one; starts and ends with that layer."""
    on_cycles = [
        node
        for component in nx.strongly_connected_components(graph)
        for node in component
        if len(component) > 1 or graph.has_edge(node, node)
    ]
    first = min(on_cycles, key=layer_key)
    if graph.has_edge(first, first):
        return [first, first]
    ordered: nx.DiGraph[LayerId] = nx.DiGraph()
    ordered.add_edges_from(sorted(graph.edges, key=lambda edge: (layer_key(edge[0]), layer_key(edge[1]))))
    lengths = nx.single_source_shortest_path(ordered, first)
    back = min((node for node in ordered.predecessors(first) if node in lengths), key=lambda n: len(lengths[n]))
    return [*lengths[back], first]


def _checked_shares(
    shares: Iterable[SharedParams], layers: Mapping[LayerId, Layer], subject: str
) -> tuple[SharedParams, ...]:
    held: Counter[LayerId] = Counter()
    ordered = sorted(shares, key=lambda share: ([layer_key(layer) for layer in share.layers], share.params))
    for share in ordered:
        for identifier in share.layers:
            if identifier not in layers:
                raise InvalidValueError(subject, _SHARED, identifier, "is not a layer of the network")
            held[identifier] += share.params
            if held[identifier] > layers[identifier].params:
                rule = f"must be at most the {layers[identifier].params} parameters of layer {identifier!r}"
                raise InvalidValueError(subject, _SHARED, held[identifier], rule)
    return tuple(ordered)


def _graph_fields(graph: nx.DiGraph[Any], name: str | None, attributes: Mapping[str, Any]) -> dict[str, Any]:
    unknown = sorted(set(attributes) - set(_OPTIONAL))
    if unknown:
        rule = f"is not a field; the fields are {', '.join(_OPTIONAL)}"
        raise InvalidValueError("network", unknown[0], attributes[unknown[0]], rule)
    stored = {key: graph.graph[key] for key in _OPTIONAL if key in graph.graph}
    return {**stored, **attributes, "name": graph.graph.get("name", "") if name is None else name}


def _layer_of_node(
    node: object, data: Mapping[str, Any], names: Mapping[str, str | None], backward: str, kind: str, ratio: float
) -> Layer:
    identifier = as_layer_id(node, "layer", "id")
    subject = f"layer {identifier!r}"
    figures: dict[str, int] = {}
    for figure, name in names.items():
        if name is not None and name not in data:
            raise InvalidValueError(subject, name, None, "is missing")
        figures[figure] = 0 if name is None else as_count(data[name], subject, name)
    if backward in data:
        figures["backward_flops"] = as_count(data[backward], subject, backward)
    else:
        figures["backward_flops"] = backward_flops(figures["forward_flops"], ratio)
    return Layer(id=identifier, kind=as_text(data.get(kind, ""), subject, kind), **figures)


def _edge_of_graph(
    source: object, target: object, data: Mapping[str, Any], name: str | None, output: Mapping[LayerId, int]
) -> Edge:
    ends = as_layer_id(source, "edge", "source"), as_layer_id(target, "edge", "target")
    subject = edge_name(*ends)
    if name is None:
        return Edge(source=ends[0], target=ends[1], elements=output[ends[0]])
    if name not in data:
        raise InvalidValueError(subject, name, None, "is missing; elements=None takes the source's output")
    return Edge(source=ends[0], target=ends[1], elements=as_elements(data[name], subject, name))


def _plain(identifier: LayerId) -> Any:
    return [_plain(part) for part in identifier] if isinstance(identifier, tuple) else identifier


def _id_from_plain(value: object, path: str) -> LayerId:
    return as_layer_id(_tuple(value), _FILE, path)


def _tuple(value: object) -> object:
    return tuple(_tuple(part) for part in value) if isinstance(value, list) else value


def _layer_to_dict(layer: Layer, ratio: float) -> dict[str, Any]:
    entry: dict[str, Any] = {"id": _plain(layer.id)}
    if layer.kind:
        entry["kind"] = layer.kind
    entry |= {name: getattr(layer, name) for name in _FIGURES}
    if layer.backward_flops != backward_flops(layer.forward_flops, ratio):
        entry["backward_flops"] = layer.backward_flops
    return entry


def _layer_from_dict(data: object, path: str, ratio: float) -> Layer:
    entry = _object(data, path, ("id", *_FIGURES), ("kind", "backward_flops"))
    figures = {name: as_count(entry[name], _FILE, f"{path}.{name}") for name in _FIGURES}
    counted = entry.get("backward_flops", backward_flops(figures["forward_flops"], ratio))
    return Layer(
        id=_id_from_plain(entry["id"], f"{path}.id"),
        kind=as_text(entry.get("kind", ""), _FILE, f"{path}.kind"),
        backward_flops=as_count(counted, _FILE, f"{path}.backward_flops"),
        **figures,
    )


def _edge_from_dict(data: object, path: str) -> Edge:
    entry = _object(data, path, ("source", "target", "elements"))
    return Edge(
        source=_id_from_plain(entry["source"], f"{path}.source"),
        target=_id_from_plain(entry["target"], f"{path}.target"),
        elements=as_elements(entry["elements"], _FILE, f"{path}.elements"),
    )


def _shared_from_dict(data: object, path: str) -> SharedParams:
    entry = _object(data, path, ("layers", "params"))
    layers = tuple(_id_from_plain(layer, f"{path}.layers[{i}]") for i, layer in _list(entry, "layers", f"{path}."))
    return SharedParams(layers=layers, params=as_int(entry["params"], _FILE, f"{path}.params", 1))


def _object(data: object, path: str, required: Sequence[str], optional: Sequence[str] = ()) -> Mapping[str, Any]:
    """Object of a file with all required and no unknown fields."""
    if not isinstance(data, Mapping):
        raise InvalidValueError(_FILE, path or "file", data, "must be an object")
    prefix = f"{path}." if path else ""
    for name, value in data.items():
        if name not in required and name not in optional:
            hint = "; edges are called 'edges'" if name == "links" else ""
            raise InvalidValueError(_FILE, f"{prefix}{name}", value, f"is not a field of this format{hint}")
    for name in required:
        if name not in data:
            raise InvalidValueError(_FILE, f"{prefix}{name}", None, "is missing")
    return data


def _list(table: Mapping[str, Any], name: str, prefix: str = "") -> Iterable[tuple[int, Any]]:
    value = table.get(name, [])
    if not isinstance(value, list):
        raise InvalidValueError(_FILE, f"{prefix}{name}", value, "must be a list")
    return enumerate(value)
