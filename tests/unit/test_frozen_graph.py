"""Stage graphs of frozen plans, their time, memory and menus, and whether a job should move."""

from __future__ import annotations

import csv
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.freezing.frozen_graph import FreezablePlan, frozen_stage_graph, frozen_time
from frostline.freezing.levels import FreezeLevels
from frostline.freezing.memory import activation_bytes, fits_memory, gpu_memory_bytes
from frostline.freezing.menu import freeze_menu
from frostline.freezing.network_units import freeze_units
from frostline.freezing.relocation import change_pays, place_again, place_frozen
from frostline.placement.request import DoesNotFitError
from frostline.problem.cluster import Cluster, GpuType, Server
from frostline.problem.library import shipped_network
from frostline.problem.network import Edge, Layer, Network
from frostline.problem.placement import Placement
from frostline.problem.plan import TrainingPlan
from frostline.timing.iteration_time import iteration_ns
from frostline.timing.stage_graph import stage_graph

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
TINY = GpuType(name="tiny", peak_flops={"fp32": 1.0, "fp16": 1.0})


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The three measured networks, layer by layer."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    import freeze_networks

    return freeze_networks


def unequal() -> Network:
    """Four layers of 4, 3, 2 and 1 FLOPs forward, with 1, 1, 2 and 6 parameters and an output of 10."""
    layers = [
        Layer(id=i, params=p, forward_flops=f, backward_flops=2 * f if i else f, output_elements=10, saved_bytes=40)
        for i, (f, p) in enumerate([(4, 1), (3, 1), (2, 2), (1, 6)])
    ]
    edges = [Edge(source=i, target=i + 1, elements=10) for i in range(3)]
    return Network(name="unequal", layers=tuple(layers), edges=tuple(edges))


def planned(cuts: tuple[int, ...] = (), comm: str = "static", **fields: Any) -> FreezablePlan:
    """The unequal network with stages that end at ``cuts``, one replica each, one FLOP per second."""
    stages = [range(start, stop) for start, stop in pairwise((0, *cuts, 4))]
    defaults = {"replicas": [1] * len(stages), "global_batch": 1, "precision": "fp32", "utilisation": 1.0}
    cache = fields.pop("cache_bytes_per_s", None)
    plan = TrainingPlan(network=unequal(), stages=tuple(stages), **defaults | fields)
    return FreezablePlan.of(plan, comm=comm, cache_bytes_per_s=cache)


def rows(shared: Path, name: str) -> list[dict[str, str]]:
    with (shared / "data" / "freezing" / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


class TestGraph:
    @pytest.mark.parametrize("comm", ["static", "rebuild"])
    def test_level_0_is_the_plan(self, comm: str) -> None:
        plan = TrainingPlan.balanced(shipped_network("bert_large"), 8, stages=3, micro_batches=4)
        gpu = Cluster.uniform(1).servers[0].gpu_type
        for cache in (None, 1e9):
            graph = frozen_stage_graph(FreezablePlan.of(plan, comm=comm, cache_bytes_per_s=cache), gpu, 0)
            assert graph == stage_graph(plan, gpu)
            assert repr(graph) == repr(stage_graph(plan, gpu))

    def test_unequal_units(self) -> None:
        static, rebuilt = planned(replicas=[2], global_batch=2), planned(replicas=[2], global_batch=2, comm="rebuild")
        for freezable, gradients in ((static, [40, 40]), (rebuilt, [40, 32])):
            graphs = [frozen_stage_graph(freezable, TINY, frozen) for frozen in (0, 2)]
            assert [graph.compute_s for graph in graphs] == [(26.0,), (14.0,)]
            assert [graph.gradient_bytes for graph in graphs] == [(byte,) for byte in gradients]

    def test_each_stage_keeps_its_forward_pass_and_what_is_left_of_the_backward_pass(self) -> None:
        freezable = planned((2,))
        fill = 2.0
        found = [frozen_stage_graph(freezable, TINY, frozen).compute_s for frozen in range(4)]
        assert found == [(17 * fill, 9 * fill), (7 * fill + 3 * fill, 9 * fill), (14.0, 7 * fill), (14.0, 4 * fill)]

    def test_gradients_flow_back_only_from_trained_units(self) -> None:
        freezable = planned((1, 3))
        sent = [dict(frozen_stage_graph(freezable, TINY, frozen).edges) for frozen in range(4)]
        assert sent[0] == {(0, 1): 80, (1, 2): 80}
        assert sent[1] == sent[2] == {(0, 1): 40, (1, 2): 80}
        assert sent[3] == {(0, 1): 40, (1, 2): 40}

    def test_a_unit_cut_by_a_stage_counts_layer_by_layer(self) -> None:
        network = unequal()
        edges = (*network.edges, Edge(source=0, target=3, elements=10))  # layers 1, 2 and 3 are one unit
        plan = planned((2,)).plan.replace(network=network.replace(edges=edges))
        freezable = FreezablePlan.of(plan, comm="rebuild")
        assert freezable.units.ends == (1, 4)
        graph = frozen_stage_graph(freezable, TINY, 1)
        assert graph.compute_s == ((4 + 3 + 3) * 2.0, (3 + 3 + 3) * 2.0 - 0)
        assert graph.gradient_bytes == (4, 32)
        # Forward: layer 1 to 2 and layer 0 to 3; back: only what layer 1 sent.
        assert dict(graph.edges) == {(0, 1): 4 * (20 + 10)}

    def test_a_stage_that_is_not_the_slowest_gains_nothing(self) -> None:
        layers = [
            Layer(id=i, params=1, forward_flops=f, backward_flops=2 * f, output_elements=0, saved_bytes=0)
            for i, f in enumerate([10, 10, 90, 10])
        ]
        edges = tuple(Edge(source=i, target=i + 1, elements=0) for i in range(3))
        network = Network(name="late", layers=tuple(layers), edges=edges)
        plan = planned((2,)).plan.replace(network=network)
        freezable, cluster = FreezablePlan.of(plan), Cluster(servers=(Server(id="s", gpus=2, gpu_type=TINY),))
        times = [iteration_ns(frozen_time(freezable, cluster, frozen), [[1, 1]]) for frozen in range(4)]
        assert times[0] == times[1]  # only the first stage computes less
        assert times[2] < times[1]  # unit 3 is spared its input gradient

    def test_more_than_all_units(self) -> None:
        with pytest.raises(InvalidValueError, match="frozen=5 must be at most 4, the number of units"):
            frozen_stage_graph(planned(), TINY, 5)

    @pytest.mark.parametrize(("mode", "comm"), [
        ("freeze_after_wrap_find_unused", "static"), ("rewrap_after_freeze", "rebuild"),
    ])  # fmt: skip
    def test_counted_gradient_bytes(self, shared: Path, measured: ModuleType, mode: str, comm: str) -> None:
        network = measured.mlp(64, 256).network
        plan = TrainingPlan(
            network=network, stages=(range(len(network.layers)),), replicas=(2,), global_batch=2, precision="fp32"
        )
        freezable = FreezablePlan.of(plan, comm=comm)
        counted = [row for row in rows(shared, "ddp_bytes") if row["mode"] == mode]
        assert len(counted) == 5
        for row in counted:
            graph = frozen_stage_graph(freezable, TINY, int(row["k"]))
            assert graph.gradient_bytes == (int(row["reduced_bytes"]),)


class TestCache:
    def test_a_read_takes_the_place_of_the_forward_pass(self) -> None:
        freezable = planned((2,), cache_bytes_per_s=40.0)
        assert frozen_stage_graph(freezable, TINY, 0) == frozen_stage_graph(planned((2,)), TINY, 0)
        first = frozen_stage_graph(freezable, TINY, 1)
        assert first.compute_s == ((3 + 3 + 1) * 2.0, 9 * 2.0)  # 40 bytes in a second
        assert dict(first.edges) == {(0, 1): 80}
        second = frozen_stage_graph(freezable, TINY, 2)
        assert second.compute_s == (0.0, (3 + 2 + 2 + 1) * 2.0)
        assert dict(second.edges) == {}

    def test_replicas_read_side_by_side(self) -> None:
        one, two = (planned(replicas=[k], global_batch=4, cache_bytes_per_s=40.0) for k in (1, 2))
        assert frozen_stage_graph(one, TINY, 1).compute_s[0] == 2 * frozen_stage_graph(two, TINY, 1).compute_s[0]

    @pytest.mark.parametrize("value", [0, -1, float("nan"), "1"])
    def test_bad_bandwidth(self, value: Any) -> None:
        with pytest.raises(InvalidValueError, match="freezable plan: cache_bytes_per_s="):
            planned(cache_bytes_per_s=value)


class TestPlan:
    def test_units_of_another_network(self) -> None:
        with pytest.raises(InvalidValueError, match="units='gpt2' must be those of its network 'unequal'"):
            FreezablePlan(plan=planned().plan, units=freeze_units(shipped_network("gpt2")))

    def test_unknown_exchange(self) -> None:
        with pytest.raises(UnknownNameError, match=r"unknown gradient exchange 'ring'\. Known: rebuild, static"):
            planned(comm="ring")

    def test_an_equal_network_will_do(self) -> None:
        assert FreezablePlan(plan=planned().plan, units=freeze_units(unequal())) == planned()


class TestMemory:
    def test_one_stage(self) -> None:
        # Static: 16 bytes per trained parameter, weights and gradients of frozen ones; 40 bytes saved per layer.
        assert [gpu_memory_bytes(planned(), k) for k in range(4)] == [
            (10 * 16 + 160,),
            (9 * 16 + 8 + 120 + 40,),
            (8 * 16 + 2 * 8 + 80 + 40,),
            (6 * 16 + 4 * 8 + 40 + 40,),
        ]
        assert gpu_memory_bytes(planned(comm="rebuild"), 2) == (8 * 16 + 2 * 4 + 80 + 40,)
        assert gpu_memory_bytes(planned(comm="rebuild"), 2, state_bytes_per_param=12) == (8 * 12 + 2 * 4 + 80 + 40,)

    def test_early_stages_hold_more_micro_batches(self) -> None:
        freezable = planned((2,), global_batch=8, micro_batches=4)
        assert gpu_memory_bytes(freezable, 0) == (2 * 16 + 2 * 2 * 80, 8 * 16 + 2 * 80)

    def test_half_precision(self) -> None:
        assert gpu_memory_bytes(planned(precision="fp16"), 1) == (9 * 16 + 4 + 60 + 20,)

    def test_a_replica_of_two_gpus_shares(self) -> None:
        one, two = planned(), planned(gpus_per_replica=[2])
        assert gpu_memory_bytes(two, 0)[0] * 2 == gpu_memory_bytes(one, 0)[0]

    def test_frozen_outputs_count_where_their_unit_ends(self) -> None:
        assert gpu_memory_bytes(planned((2,), comm="rebuild"), 2) == (2 * 4 + 40, 8 * 16 + 80)
        cached = planned((2,), comm="rebuild", cache_bytes_per_s=1e9)
        assert gpu_memory_bytes(cached, 2) == (2 * 4, 8 * 16 + 80 + 40)

    def test_state_below_the_weights(self) -> None:
        with pytest.raises(
            InvalidValueError, match="state_bytes_per_param=4 must be at least 8, weights and gradients"
        ):
            gpu_memory_bytes(planned(), 0, state_bytes_per_param=4)

    def test_unknown_memory_fits(self) -> None:
        assert fits_memory(planned(), 0, TINY)
        small = GpuType(name="small", peak_flops={"fp32": 1.0}, memory_bytes=300)
        assert [fits_memory(planned(comm="rebuild"), k, small) for k in range(4)] == [False, False, True, True]

    @pytest.mark.parametrize("name", ["mlp", "resnet", "tfm"])
    def test_measured_activations(self, shared: Path, measured: ModuleType, name: str) -> None:
        network = measured.MAKERS[name]()
        units = freeze_units(network.network)
        for row in rows(shared, f"step_{name}_sgdm"):
            if row["variant"] == "plain":
                frozen, batch = network.frozen(units, int(row["k"])), int(row["batch"])
                found, counted = activation_bytes(units.units, frozen) * batch, int(row["saved_act_bytes"])
                outputs = 4 * batch * max((unit.output_elements for unit in units.units.units[:frozen]), default=0)
                assert found >= counted * 0.999
                assert found <= counted + outputs


class TestMove:
    @pytest.mark.parametrize(("left", "pays"), [(30, False), (40, False), (50, True)])
    def test_change_that_saves_half_a_second(self, left: int, pays: bool) -> None:
        assert change_pays(0.5, left, 20) is pays
        assert not change_pays(-0.5, left, 20)

    @pytest.mark.parametrize(("fields", "rule"), [
        ((0.5, -1, 20), "iterations_left=-1 must be at least 0"), ((0.5, 1, -20), "cost_s=-20 must be at least 0"),
        ((float("nan"), 1, 20), "saved_s=nan must be finite"),
    ])  # fmt: skip
    def test_bad_change(self, fields: Any, rule: str) -> None:
        with pytest.raises(InvalidValueError, match=rule):
            change_pays(*fields)

    def test_a_job_moves_where_freezing_turns_the_best_placement_over(self) -> None:
        # Two pairs of neighbours, one per server: freezing halves the traffic of the front pair only.
        layers = [
            Layer(id=i, params=1, forward_flops=1, backward_flops=2, output_elements=n, saved_bytes=0)
            for i, n in enumerate([12 * 10**8, 10**9, 10**9])
        ]
        edges = tuple(Edge(source=i, target=i + 1, elements=layers[i].output_elements) for i in range(2))
        network = Network(name="front", layers=tuple(layers), edges=edges)
        plan = TrainingPlan(network=network, stages=(range(1), range(1, 2), range(2, 3)), replicas=(1, 1, 1),
                            global_batch=1, precision="fp32")  # fmt: skip
        freezable, cluster = FreezablePlan.of(plan), Cluster.uniform(2, gpus=2)
        before = place_frozen(freezable, cluster, 0, method="brute-force").placement
        assert len({m for m, column in before.columns if column[0] or column[1]}) == 1
        kept = place_again(freezable, cluster, before, 0, iterations_left=10**6, move_s=0, free=(0, 1))
        assert (kept.placement, kept.saved_s, kept.pays) == (before, 0, False)
        moved = place_again(freezable, cluster, before, 1, iterations_left=10**6, move_s=30, free=(0, 1))
        assert moved.pays and moved.fresh_ns < moved.current_ns
        assert len({m for m, column in moved.placement.columns if column[1] or column[2]}) == 1
        again = place_again(freezable, cluster, moved.placement, 1, iterations_left=10**6, move_s=0, free=(0, 1))
        assert not again.pays

    def test_other_gpus_are_used_only_where_they_are_free(self) -> None:
        freezable = FreezablePlan.of(TrainingPlan.balanced(shipped_network("vgg19"), 4, stages=1))
        apart, cluster = Placement([(0, (2,)), (1, (2,))]), Cluster.uniform(2, gpus=4)
        alone = place_again(freezable, cluster, apart, 5, iterations_left=10**6, move_s=0)
        assert (alone.placement, alone.pays) == (apart, False)

    def test_a_placement_as_good_is_no_reason_to_move(self) -> None:
        freezable = FreezablePlan.of(TrainingPlan.balanced(shipped_network("vgg19"), 4, stages=1))
        here, cluster = Placement([(1, (4,))]), Cluster.uniform(2, gpus=4)
        assert place_frozen(freezable, cluster, 5).placement.servers == (0,)
        kept = place_again(freezable, cluster, here, 5, iterations_left=10**6, move_s=0, free=(4, 0))
        assert (kept.placement, kept.pays) == (here, False)

    def test_the_faster_type_wins(self) -> None:
        types = [GpuType(name=name, peak_flops={"fp16": peak}) for name, peak in [("old", 1e12), ("new", 4e12)]]
        cluster = Cluster(servers=tuple(Server(id=f"s{i}", gpus=4, gpu_type=types[i % 2]) for i in range(3)))
        freezable = FreezablePlan.of(TrainingPlan.balanced(shipped_network("resnet50"), 4, stages=1))
        assert place_frozen(freezable, cluster, 3).placement.servers == (1,)
        assert place_frozen(freezable, cluster, 3, free=(4, 3, 4)).placement.servers == (0,)
        with pytest.raises(DoesNotFitError):
            place_frozen(freezable, cluster, 3, free=(2, 3, 1))

    def test_bad_servers(self) -> None:
        freezable, cluster = planned(replicas=[2], global_batch=2), Cluster.uniform(2, gpus=2)
        with pytest.raises(InvalidValueError, match="server=5 must be below 2"):
            place_again(freezable, cluster, Placement([(5, (2,))]), 1, iterations_left=1, move_s=1)
        with pytest.raises(InvalidValueError, match="must have one entry for each of 2 servers"):
            place_frozen(freezable, cluster, 1, free=(2,))
        with pytest.raises(InvalidValueError, match="server 's0': free=3 must be at most its 2 GPUs"):
            place_again(freezable, cluster, Placement([(0, (2,))]), 1, iterations_left=1, move_s=1, free=(1, 0))
        with pytest.raises(InvalidValueError, match="at least one"):
            place_frozen(freezable, Cluster(servers=()), 1)


class TestMenu:
    freezable = FreezablePlan.of(TrainingPlan.balanced(shipped_network("bert_large"), 16, stages=4), comm="rebuild")
    cluster = Cluster.uniform(4, gpus=4)

    def test_on_a_placement(self) -> None:
        placement = place_frozen(self.freezable, self.cluster, 0).placement
        rows = freeze_menu(self.freezable, self.cluster, placement)
        plan = self.freezable.plan
        level_0 = rows[0]
        assert [row.level for row in rows] == list(range(9))
        assert level_0.compute_flops == plan.network.forward_flops + plan.network.backward_flops
        gpu = self.cluster.servers[0].gpu_type
        assert level_0.gradient_bytes == sum(stage_graph(plan, gpu).gradient_bytes)
        for fewer, more in pairwise(rows):
            assert more.frozen_units > fewer.frozen_units and more.compute_share > fewer.compute_share
            assert more.compute_flops < fewer.compute_flops and more.gradient_bytes < fewer.gradient_bytes
            assert more.iteration_ns <= fewer.iteration_ns
        assert {row.placement for row in rows} == {placement} and rows[-1].compute_share == 1
        assert all(row.debt is None for row in rows)

    def test_placed_anew_it_is_never_slower(self) -> None:
        fixed = place_frozen(self.freezable, self.cluster, 0).placement
        kept, anew = freeze_menu(self.freezable, self.cluster, fixed), freeze_menu(self.freezable, self.cluster)
        assert all(new.iteration_ns <= old.iteration_ns for new, old in zip(anew, kept, strict=True))
        assert all(more.iteration_ns <= fewer.iteration_ns for fewer, more in pairwise(anew))

    def test_debts_are_those_of_the_caller(self) -> None:
        levels = FreezeLevels.evenly(self.freezable.units.units, 2)
        rows = freeze_menu(self.freezable, self.cluster, levels=levels, debt_of=lambda row: 2 * row.compute_share)
        assert [row.debt for row in rows] == [2 * share for share in levels.compute_shares]
        with pytest.raises(InvalidValueError, match="freeze level 0: debt=-1"):
            freeze_menu(self.freezable, self.cluster, levels=levels, debt_of=lambda row: -1)

    def test_levels_of_other_units(self) -> None:
        with pytest.raises(InvalidValueError, match="must be levels of the plan's units"):
            freeze_menu(self.freezable, self.cluster, levels=FreezeLevels.evenly(planned().units.units))

    def test_what_does_not_fit_says_so(self) -> None:
        small = GpuType(name="small", peak_flops={"fp16": 1e14}, memory_bytes=16 * 2**30)
        cluster = Cluster(servers=(Server(id="s", gpus=1, gpu_type=small),))
        plan = TrainingPlan.balanced(shipped_network("gpt2_xl"), 1, stages=1, global_batch=2)
        found = [row.fits for row in freeze_menu(FreezablePlan.of(plan), cluster)]
        assert found == sorted(found) and not found[0] and found[-1]
