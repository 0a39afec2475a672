"""Freeze units of drawn networks against graph searches, and the work and the time that freezing leaves."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from frostline.errors import InvalidValueError
from frostline.freezing.frozen_graph import FreezablePlan, frozen_stage_graph, frozen_time
from frostline.freezing.levels import MOST_LEVELS, FreezeLevels
from frostline.freezing.memory import gpu_memory_bytes
from frostline.freezing.menu import freeze_menu
from frostline.freezing.network_units import NetworkUnits, freeze_units
from frostline.freezing.profiled import LevelTimes
from frostline.freezing.units import FreezeUnit, FreezeUnits
from frostline.problem.cluster import Cluster
from frostline.problem.network import Layer, Network
from frostline.problem.placement import Placement
from frostline.testing import networks, plans
from frostline.timing.iteration_time import iteration_ns
from frostline.timing.stage_graph import stage_graph

COMMS = st.sampled_from(["static", "rebuild"])


@st.composite
def sparse_networks(draw: st.DrawFn) -> Network:
    """Networks of up to 8 layers, about half of them without parameters and some without backward work."""
    network = draw(networks(max_layers=8))
    kept = draw(st.lists(st.booleans(), min_size=len(network.layers), max_size=len(network.layers)))
    layers = [
        Layer(
            id=layer.id,
            params=layer.params if keep else 0,
            forward_flops=layer.forward_flops // 10**9,
            backward_flops=layer.backward_flops // 10**9,
            output_elements=layer.output_elements,
            saved_bytes=layer.saved_bytes,
        )
        for layer, keep in zip(network.layers, kept, strict=True)
    ]
    return network.replace(layers=tuple(layers))


def graph_of(network: Network) -> nx.DiGraph[int]:
    """Positions and edges of the layers whose output depends on parameters."""
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(len(network.layers)))
    graph.add_edges_from((network.positions[edge.source], network.positions[edge.target]) for edge in network.edges)
    learned = {i for i, layer in enumerate(network.layers) if layer.params}
    learned |= {i for j in sorted(learned) for i in nx.descendants(graph, j)}
    return graph.subgraph(learned).copy()


def crossings(graph: nx.DiGraph[int]) -> set[int]:
    """Nodes whose removal leaves no path from a first to a last one."""
    first = [i for i in graph if not graph.in_degree(i)]
    last = [i for i in graph if not graph.out_degree(i)]
    found = set()
    for node in graph:
        left = graph.copy()
        left.remove_node(node)
        ways = (nx.has_path(left, s, t) for s in first if s in left for t in last if t in left)
        if not any(ways):
            found.add(node)
    return found


def backward(units: NetworkUnits, frozen: int) -> int:
    """Backward FLOPs layer by layer: a layer computes an input gradient below trained layers only."""
    graph, starts = graph_of(units.network), (0, *units.ends)
    trained = set(range(starts[frozen], len(units.network.layers)))
    total = 0
    for i in sorted(trained):
        layer = units.network.layers[i]
        unit = next(u for u, end in enumerate(units.ends) if i < end)
        inside = {j for j in trained if j >= starts[unit] and units.network.layers[j].params}
        above = inside & nx.ancestors(graph, i) if i in graph else set()
        weights = min(layer.forward_flops, layer.backward_flops) if layer.params else 0
        whole = unit == 0 or unit > frozen or above
        total += layer.backward_flops if whole else weights
    return total


@given(sparse_networks())
def test_units_end_at_the_crossings_and_hold_parameters(network: Network) -> None:
    assume(network.params)
    units = freeze_units(network)
    inner = [end - 1 for end in units.ends[:-1]]
    assert units.ends[-1] == len(network.layers) and list(units.ends) == sorted(set(units.ends))
    graph = graph_of(network)
    crossed = crossings(graph)
    assert set(inner) <= crossed
    parts = [range(start, end) for start, end in pairwise((0, *units.ends))]
    assert all(any(network.layers[i].params for i in part) for part in parts)
    # No unit could be cut further: each side of a crossing inside it would lack parameters.
    for part in parts:
        for node in crossed & set(part[:-1]):
            sides = (range(part.start, node + 1), range(node + 1, part.stop))
            assert not all(any(network.layers[i].params for i in side) for side in sides)


@given(sparse_networks())
def test_a_network_without_parameters_is_refused(network: Network) -> None:
    bare = network.replace(
        layers=tuple(
            Layer(id=layer.id, params=0, forward_flops=1, backward_flops=2, output_elements=1, saved_bytes=0)
            for layer in network.layers
        )
    )
    with pytest.raises(InvalidValueError, match="params=0 must be above 0"):
        freeze_units(bare)


@given(sparse_networks())
def test_the_work_of_units_is_that_of_their_layers(network: Network) -> None:
    assume(network.params)
    units = freeze_units(network)
    assert units.units.compute(0) == network.forward_flops + network.backward_flops
    assert units.units.params(0) == network.params
    for frozen in range(len(units.units) + 1):
        assert units.units.backward(frozen) == sum(units.backward_flops(frozen)) == backward(units, frozen)
        active = range(units.layers(frozen), len(network.layers))
        assert units.units.params(frozen) == network.params_of(active)
        assert units.frozen_by(layer.id for layer in network.layers[: units.layers(frozen)]) == frozen


@st.composite
def freeze_units_drawn(draw: st.DrawFn) -> FreezeUnits:
    work = st.integers(0, 50) | st.floats(0, 50)
    figures = st.fixed_dictionaries(
        dict.fromkeys(("forward", "weight_gradient", "input_gradient", "optimizer"), work)
        | {"params": st.integers(0, 5)}
    )
    return FreezeUnits(tuple(FreezeUnit(**draw(figures)) for _ in range(draw(st.integers(1, 14)))))


@given(freeze_units_drawn(), st.integers(0, MOST_LEVELS))
def test_levels_are_few_prefixes_and_never_the_head(units: FreezeUnits, most: int) -> None:
    levels = FreezeLevels.evenly(units, most)
    assert levels.frozen_units[0] == 0 and len(levels) <= most + 1
    assert all(fewer < more < len(units) for fewer, more in pairwise(levels.frozen_units))
    work = [units.compute(frozen) for frozen in levels.frozen_units]
    assert work == sorted(work, reverse=True)
    assert list(levels.compute_shares) == sorted(levels.compute_shares)
    assert 0 <= levels.compute_shares[-1] <= 1


@given(freeze_units_drawn())
def test_a_level_saves_what_its_units_and_the_next_gradient_cost(units: FreezeUnits) -> None:
    for frozen in range(1, len(units)):
        last, following = units.units[frozen - 1], units.units[frozen]
        saved = last.weight_gradient + last.optimizer + following.input_gradient
        assert units.compute(frozen - 1) - units.compute(frozen) == pytest.approx(saved, abs=1e-9)


@given(freeze_units_drawn(), st.floats(0.01, 1), st.floats(0.01, 1), st.floats(1, 10), COMMS)
def test_two_points_are_met_and_hold_the_others_between_them(
    units: FreezeUnits, first_s: float, share: float, gamma: float, comm: str
) -> None:
    levels = FreezeLevels.evenly(units)
    assume(units.compute(levels.frozen_units[-1]) < units.compute(0))
    times = LevelTimes.two_point(
        levels, first_s, first_s * share, exchange_s=first_s * share / 2, gamma=gamma, comm=comm
    )
    seconds = [times.seconds(level) for level in range(len(levels))]
    assert seconds[0] == pytest.approx(first_s) and seconds[-1] == pytest.approx(first_s * share)
    if comm == "static":
        assert all(more <= fewer * (1 + 1e-9) for fewer, more in pairwise(seconds))


@st.composite
def freezable_plans(draw: st.DrawFn) -> FreezablePlan:
    plan = draw(plans(gpus=draw(st.integers(1, 6)), max_gpus_per_replica=2))
    assume(plan.network.params)
    return FreezablePlan.of(plan, comm=draw(COMMS))


@given(freezable_plans(), st.sampled_from([None, 1e9]))
def test_level_0_is_the_plan_to_the_last_bit(freezable: FreezablePlan, cache: float | None) -> None:
    gpu = Cluster.uniform(1).servers[0].gpu_type
    cached = FreezablePlan(plan=freezable.plan, units=freezable.units, comm=freezable.comm, cache_bytes_per_s=cache)
    found, expected = frozen_stage_graph(cached, gpu, 0), stage_graph(freezable.plan, gpu)
    assert repr(found) == repr(expected) and found == expected


@given(freezable_plans(), st.data())
def test_time_never_rises_with_the_level_on_one_placement(freezable: FreezablePlan, data: st.DataObject) -> None:
    plan = freezable.plan
    servers = data.draw(st.lists(st.sampled_from([0, 1]), min_size=sum(plan.replicas), max_size=sum(plan.replicas)))
    columns = {0: [0] * len(plan.stages), 1: [0] * len(plan.stages)}
    stages = [stage for stage, count in enumerate(plan.replicas) for _ in range(count)]
    for stage, server in zip(stages, servers, strict=True):
        columns[server][stage] += 1
    placement = Placement(sorted(columns.items()), plan.replica_gpus)
    cluster = Cluster.uniform(2, gpus=16)
    graphs = [
        frozen_stage_graph(freezable, cluster.servers[0].gpu_type, frozen)
        for frozen in range(len(freezable.units.units))
    ]
    times = [
        iteration_ns(frozen_time(freezable, cluster, frozen, placement.servers), placement)
        for frozen in range(len(freezable.units.units))
    ]
    assert times == sorted(times, reverse=True)
    for fewer, more in pairwise(graphs):
        assert all(b <= a for a, b in zip(fewer.compute_s, more.compute_s, strict=True))
        assert all(b <= a for a, b in zip(fewer.gradient_bytes, more.gradient_bytes, strict=True))
        assert all(more.edges[ends] <= amount for ends, amount in fewer.edges.items())
        if freezable.comm.value == "static":
            assert fewer.gradient_bytes == more.gradient_bytes


@given(freezable_plans())
def test_a_menu_placed_anew_is_never_slower_and_tells_what_the_levels_take(freezable: FreezablePlan) -> None:
    cluster = Cluster.uniform(3, gpus=4)
    rows = freeze_menu(freezable, cluster, method="heavy-edge")
    times = [row.iteration_ns for row in rows]
    assert times == sorted(times, reverse=True)
    for row in rows:
        assert row.compute_flops == freezable.units.units.compute(row.frozen_units)
        assert row.memory_bytes == max(gpu_memory_bytes(freezable, row.frozen_units))
        assert row.placement.gpus == freezable.plan.gpus
