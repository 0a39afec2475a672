"""Stage graph: the stages of a training job, what each computes and what they send each other."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from heapq import heappop, heappush
from typing import Any

import networkx as nx

from frostline.errors import InvalidValueError
from frostline.problem.cluster import GpuType
from frostline.problem.frozen import FrozenMap
from frostline.problem.order import natural_key
from frostline.problem.plan import TrainingPlan
from frostline.units import as_finite, as_int

__all__ = ["StageGraph", "StageWork", "stage_graph"]

Edge = tuple[int, int]
_MAX_BYTES = 10**18


@dataclass(frozen=True, slots=True)
class StageGraph:
    """Stages of a job with their replicas, compute time, gradients and traffic; checked once, never changed.

    Traffic has no direction when it comes to time: what counts is the bytes between two stages. Opposite edges of one
    pair are therefore legal, say activations one way and gradients the other: they add up and order nothing. A cycle of
    other edges is an error.

    Parameters
    ----------
    replicas : sequence of int
        Replicas of each stage, K_s, at least 1.
    compute_s : sequence of float
        Seconds that one replica of each stage computes per iteration, pipeline fill included.
    gradient_bytes : sequence of int, optional
        Bytes of the gradients of each stage, H_s; none by default.
    edges : mapping of (int, int) to int
        Bytes per iteration between two stages, D_st, both ways together, by (sender, receiver).
    names : sequence of str, optional
        Names of the stages for messages; their indices by default.
    gpus_per_replica : sequence of int, optional
        GPUs that one replica of each stage fills, all in one server (tensor parallelism); 1 by default.

    Attributes
    ----------
    traffic : mapping of (int, int) to int
        Bytes per iteration of each pair of stages (lower index first), opposite edges added up, in sorted order.

    Raises
    ------
    InvalidValueError
        No stage, a value that breaks its rule, a self-loop or a cycle; the message names the stage, edge or cycle.

    Examples
    --------
    >>> graph = StageGraph(replicas=[2, 2], compute_s=[0.1, 0.2], gradient_bytes=[10, 0], edges={(0, 1): 3, (1, 0): 2})
    >>> graph.gpus, dict(graph.traffic), graph.ring_bytes
    (4, {(0, 1): 5}, (Fraction(10, 1), Fraction(0, 1)))
    """

    replicas: tuple[int, ...]
    compute_s: tuple[float, ...]
    gradient_bytes: tuple[int, ...]
    edges: Mapping[Edge, int] = field(hash=False)
    names: tuple[str, ...]
    gpus_per_replica: tuple[int, ...]
    traffic: Mapping[Edge, int] = field(compare=False, repr=False)

    def __init__(
        self,
        *,
        replicas: Sequence[int],
        compute_s: Sequence[float],
        gradient_bytes: Sequence[int] | None = None,
        edges: Mapping[Edge, int] | None = None,
        names: Sequence[str] | None = None,
        gpus_per_replica: Sequence[int] | None = None,
    ) -> None:
        stages = _stages(replicas)
        labels = _names(names, stages)
        subjects = [f"stage {name!r}" for name in labels]
        gradients = [0] * stages if gradient_bytes is None else gradient_bytes
        _same_length("compute_s", compute_s, stages)
        _same_length("gradient_bytes", gradients, stages)
        sizes = [1] * stages if gpus_per_replica is None else gpus_per_replica
        _same_length("gpus_per_replica", sizes, stages)
        checked = _checked_edges(edges or {}, labels)
        _topological(stages, checked, labels)
        values = {
            "replicas": tuple(as_int(k, s, "replicas", 1) for k, s in zip(replicas, subjects, strict=True)),
            "compute_s": tuple(as_finite(p, s, "compute_s", 0.0) for p, s in zip(compute_s, subjects, strict=True)),
            "gradient_bytes": tuple(_bytes(h, s, "gradient_bytes") for h, s in zip(gradients, subjects, strict=True)),
            "edges": FrozenMap(checked),
            "names": labels,
            "gpus_per_replica": tuple(
                as_int(g, s, "gpus_per_replica", 1) for g, s in zip(sizes, subjects, strict=True)
            ),
            "traffic": FrozenMap(_undirected(checked)),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def rigid(cls, gpus: int) -> StageGraph:
        """Graph of a job that has no stages of its own: one stage of so many replicas, without traffic.

        Examples
        --------
        >>> StageGraph.rigid(8).replicas
        (8,)
        """
        return cls(replicas=(gpus,), compute_s=(0.0,))

    @classmethod
    def from_networkx(
        cls,
        graph: nx.Graph[Any],
        *,
        replicas: str = "replicas",
        compute_s: str = "compute_s",
        gradient_bytes: str = "gradient_bytes",
        weight: str = "bytes",
    ) -> StageGraph:
        """Stage graph of a networkx graph: nodes are stages, edges carry bytes per iteration.

        Parallel edges add up, and so do opposite ones. Stages are numbered in topological order, among equals by the
        natural order of their names, whatever the order of insertion. Edges of an undirected graph run from the lower
        name to the higher.

        Parameters
        ----------
        graph : networkx.Graph, DiGraph, MultiGraph or MultiDiGraph
            The graph.
        replicas, compute_s, gradient_bytes : str
            Names of the node attributes.
        weight : str
            Name of the edge attribute.

        Raises
        ------
        InvalidValueError
            A missing or bad attribute, a self-loop or a cycle.

        Examples
        --------
        >>> import networkx as nx
        >>> g = nx.MultiDiGraph()
        >>> g.add_nodes_from("ba", replicas=1, compute_s=0.5, gradient_bytes=0)
        >>> _ = g.add_edge("a", "b", bytes=3), g.add_edge("a", "b", bytes=4)
        >>> stages = StageGraph.from_networkx(g)
        >>> stages.names, dict(stages.edges)
        (('a', 'b'), {(0, 1): 7})
        """
        nodes = sorted(graph, key=lambda node: natural_key(str(node)))
        labels = _names([str(node) for node in nodes], len(nodes))
        index = {node: i for i, node in enumerate(nodes)}
        edges: dict[Edge, int] = {}
        for sender, receiver, data in graph.edges(data=True):
            pair = (index[sender], index[receiver])
            pair = pair if graph.is_directed() else (min(pair), max(pair))
            subject = _edge_subject(pair, labels)
            edges[pair] = edges.get(pair, 0) + _bytes(data.get(weight), subject, weight)
        order = _topological(len(nodes), _checked_edges(edges, labels), labels)
        position = {old: new for new, old in enumerate(order)}
        columns = [
            [_attribute(graph.nodes[nodes[old]], name, labels[old]) for old in order]
            for name in (replicas, compute_s, gradient_bytes)
        ]
        return cls(
            replicas=columns[0],
            compute_s=columns[1],
            gradient_bytes=columns[2],
            edges={(position[s], position[t]): amount for (s, t), amount in edges.items()},
            names=[labels[old] for old in order],
        )

    @property
    def stages(self) -> int:
        """Number of stages."""
        return len(self.replicas)

    @property
    def gpus(self) -> int:
        """GPUs that the replicas of all stages fill."""
        return sum(k * g for k, g in zip(self.replicas, self.gpus_per_replica, strict=True))

    @property
    def ring_bytes(self) -> tuple[Fraction, ...]:
        """Bytes that one link of each stage's ring all-reduce carries per iteration, R_s = 2 (K_s - 1) / K_s · H_s."""
        return tuple(Fraction(2 * (k - 1) * h, k) for k, h in zip(self.replicas, self.gradient_bytes, strict=True))

    def neighbours(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """For each stage, the stages it shares traffic with and the bytes of each, by index."""
        lists: list[list[tuple[int, int]]] = [[] for _ in self.replicas]
        for (s, t), amount in self.traffic.items():
            lists[s].append((t, amount))
            lists[t].append((s, amount))
        return tuple(tuple(sorted(pairs)) for pairs in lists)

    def replace(self, **changes: Any) -> StageGraph:
        """Copy with some fields changed, checked again."""
        fields = ("replicas", "compute_s", "gradient_bytes", "edges", "names", "gpus_per_replica")
        return StageGraph(**({name: getattr(self, name) for name in fields} | changes))


@dataclass(frozen=True, slots=True, kw_only=True)
class StageWork:
    """What the stages of a training plan do in one iteration: all of it, or what freezing leaves.

    Parameters
    ----------
    flops : tuple of int
        FLOPs per sample of each stage, both passes together.
    params : tuple of int
        Parameters of each stage whose gradients are exchanged.
    elements : mapping of (int, int) to Fraction
        Elements per sample that pass between two stages, both ways together, by (sender, receiver) of the forward pass.
    read_elements : tuple of Fraction, optional
        Elements per sample that each stage reads from a store in place of computing them; nothing by default.
    read_bytes_per_s : float
        Bandwidth of that store for one replica.
    """

    flops: tuple[int, ...]
    params: tuple[int, ...]
    elements: Mapping[Edge, Fraction] = field(hash=False)
    read_elements: tuple[Fraction, ...] = ()
    read_bytes_per_s: float = 1.0

    @classmethod
    def of(cls, plan: TrainingPlan) -> StageWork:
        """All the work of a plan."""
        network, stages = plan.network, plan.stages
        layers = network.layers
        return cls(
            flops=tuple(sum(layers[i].forward_flops + layers[i].backward_flops for i in stage) for stage in stages),
            params=tuple(network.params_of(stage) for stage in stages),
            elements={ends: 2 * Fraction(elements) for ends, elements in network.traffic(stages).items()},
        )


def stage_graph(plan: TrainingPlan, gpu_type: GpuType, work: StageWork | None = None) -> StageGraph:
    """Stage graph of a training plan on GPUs of one type.

    A replica of stage s computes the forward and backward FLOPs of its 1/K_s of the global batch at ``utilisation`` of
    the peak, times the pipeline fill (b + S - 1) / b for b micro-batches on S stages. An edge carries the activations
    of the global batch forward and their gradients back; the ring of a stage carries the gradients of its parameters.

    A replica of several GPUs is taken to share its layers evenly: it computes as many times faster. What its GPUs say
    to each other stays in the server and is not counted, nor is it that they exchange gradients side by side.

    Parameters
    ----------
    plan : TrainingPlan
        Network, stages and replicas.
    gpu_type : GpuType
        Type of all GPUs.
    work : StageWork, optional
        What the stages do; all the work of the plan by default.

    Raises
    ------
    UnknownNameError
        The GPU type has no such precision.

    Examples
    --------
    >>> from frostline.problem.network import Edge, Layer, Network
    >>> layers = [Layer(id=i, params=8, forward_flops=10, backward_flops=20, output_elements=2, saved_bytes=8)
    ...           for i in "ab"]
    >>> network = Network(name="pair", layers=layers, edges=[Edge(source="a", target="b", elements=2)])
    >>> plan = TrainingPlan(network=network, stages=[range(1), range(1, 2)], replicas=[2, 1], global_batch=4,
    ...                     micro_batches=1, precision="fp32", utilisation=0.5)
    >>> graph = stage_graph(plan, GpuType(name="tiny", peak_flops={"fp32": 240}))
    >>> graph.compute_s, graph.gradient_bytes, dict(graph.edges)
    ((1.0, 2.0), (32, 32), {(0, 1): 64})
    """
    done = StageWork.of(plan) if work is None else work
    rate = gpu_type.peak(plan.precision) * plan.utilisation
    fill = (plan.micro_batches + len(plan.stages) - 1) / plan.micro_batches
    sent = plan.activation_bytes * plan.global_batch
    reads = [float(elements) * sent / done.read_bytes_per_s for elements in done.read_elements]
    return StageGraph(
        replicas=plan.replicas,
        compute_s=[
            total * plan.global_batch / (count * gpus * rate) * fill + read / count * fill
            for total, count, gpus, read in zip(
                done.flops, plan.replicas, plan.replica_gpus, reads or [0.0] * len(plan.stages), strict=True
            )
        ],
        gradient_bytes=[params * plan.gradient_bytes for params in done.params],
        edges={ends: math.ceil(elements * sent) for ends, elements in done.elements.items()},
        gpus_per_replica=plan.replica_gpus,
    )


def _stages(replicas: Sequence[int]) -> int:
    if not len(replicas):
        raise InvalidValueError("stage graph", "replicas", (), "must name at least one stage")
    return len(replicas)


def _same_length(name: str, values: Sequence[object], stages: int) -> None:
    if len(values) != stages:
        raise InvalidValueError("stage graph", name, list(values), f"must have one entry for each of {stages} stages")


def _names(names: Sequence[str] | None, stages: int) -> tuple[str, ...]:
    if names is None:
        return tuple(str(s) for s in range(stages))
    _same_length("names", names, stages)
    for earlier, name in enumerate(names):
        if name in names[:earlier]:
            raise InvalidValueError("stage graph", "names", name, "is the name of two stages")
    return tuple(names)


def _bytes(value: object, subject: str, name: str) -> int:
    amount = as_int(value, subject, name, 0)
    if amount > _MAX_BYTES:
        raise InvalidValueError(subject, name, value, f"must be at most {_MAX_BYTES:.0e}")
    return amount


def _attribute(attributes: Mapping[str, Any], name: str, label: str) -> Any:
    value = attributes.get(name)
    if value is None:
        raise InvalidValueError(f"stage {label!r}", name, value, "must be given")
    return value


def _edge_subject(edge: Edge, labels: Sequence[str]) -> str:
    return f"edge {labels[edge[0]]!r} -> {labels[edge[1]]!r}"


def _checked_edges(edges: Mapping[Edge, int], labels: Sequence[str]) -> dict[Edge, int]:
    checked: dict[Edge, int] = {}
    for key, amount in edges.items():
        s, t = (_endpoint(end, key, len(labels)) for end in key)
        if s == t:
            raise InvalidValueError(f"stage {labels[s]!r}", "edges", key, "must not send to itself")
        checked[s, t] = _bytes(amount, _edge_subject((s, t), labels), "bytes")
    return dict(sorted(checked.items()))


def _endpoint(end: object, edge: Edge, stages: int) -> int:
    stage = as_int(end, f"edge {edge!r}", "stage", 0)
    if stage >= stages:
        raise InvalidValueError(f"edge {edge!r}", "stage", end, f"must be below {stages}, the number of stages")
    return stage


def _undirected(edges: Mapping[Edge, int]) -> dict[Edge, int]:
    traffic: dict[Edge, int] = {}
    for (s, t), amount in edges.items():
        pair = (min(s, t), max(s, t))
        traffic[pair] = traffic.get(pair, 0) + amount
    return dict(sorted(traffic.items()))


def _topological(stages: int, edges: Iterable[Edge], labels: Sequence[str]) -> list[int]:
    """Topological order of the edges that go one way, lowest index first among equals; a cycle is an error."""
    known = set(edges)
    before: list[list[int]] = [[] for _ in range(stages)]
    after: list[list[int]] = [[] for _ in range(stages)]
    for s, t in sorted(known):
        if (t, s) not in known:
            before[t].append(s)
            after[s].append(t)
    waiting = [len(senders) for senders in before]
    ready = [s for s in range(stages) if not waiting[s]]
    order: list[int] = []
    while ready:
        stage = heappop(ready)
        order.append(stage)
        for following in after[stage]:
            waiting[following] -= 1
            if not waiting[following]:
                heappush(ready, following)
    if len(order) < stages:
        text = " -> ".join(labels[s] for s in _cycle(before, set(range(stages)) - set(order)))
        raise InvalidValueError("stage graph", "edges", text, "must not close a cycle")
    return order


def _cycle(before: Sequence[Sequence[int]], left: set[int]) -> list[int]:
    """A cycle among stages that each have a sender among them, its lowest stage at both ends."""
    path = [min(left)]
    while path[-1] not in path[:-1]:
        path.append(min(s for s in before[path[-1]] if s in left))
    cycle = path[path.index(path[-1]) + 1 :][::-1]
    first = cycle.index(min(cycle))
    return [*cycle[first:], *cycle[:first], cycle[first]]
