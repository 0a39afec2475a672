"""Freeze units and levels: what is cut, what freezing saves, and which levels are offered or refused."""

from __future__ import annotations

import csv
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.freezing.levels import FreezeLevels
from frostline.freezing.network_units import NetworkUnits, freeze_units
from frostline.freezing.profiled import LevelTimes, frozen_work
from frostline.freezing.units import FreezeUnit, FreezeUnits
from frostline.problem.job import PlacementClass, Profiled
from frostline.problem.library import shipped_network
from frostline.problem.network import Edge, Layer, Network, SharedParams

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
COUNTED_BATCH = {"mlp": 64, "resnet": 4, "tfm": 2}
"""Samples of which the FLOP counter counted one step."""


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The three measured networks, layer by layer."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    import freeze_networks

    return freeze_networks


def equal_units(count: int = 12) -> FreezeUnits:
    return FreezeUnits(tuple(FreezeUnit(forward=1) for _ in range(count)))


def chain(params: str, skips: tuple[tuple[int, int], ...] = (), flops: int = 1, **fields: Any) -> Network:
    """Layers ``0``, ``1``, …, one for each digit of ``params``; the first computes no input gradient."""
    layers = [
        Layer(id=i, params=int(p), forward_flops=flops, backward_flops=2 * flops if i else flops, output_elements=1,
              saved_bytes=8)
        for i, p in enumerate(params)
    ]  # fmt: skip
    pairs = [(i, i + 1) for i in range(len(params) - 1)] + list(skips)
    edges = [Edge(source=s, target=t, elements=1) for s, t in pairs]
    return Network(name="chain", layers=tuple(layers), edges=tuple(edges), **fields)


def rows(shared: Path, kind: str) -> list[dict[str, str]]:
    with (shared / "data" / "freezing" / "flops.csv").open(newline="") as file:
        return [row for row in csv.DictReader(file) if row["kind"] == kind]


class TestLaw:
    def test_half_of_twelve_equal_units(self) -> None:
        units = equal_units()
        assert (units.compute(0), units.compute(6)) == (35, 23)
        assert units.compute(0) / units.compute(6) == pytest.approx(1.5217, abs=5e-5)

    def test_all_of_twelve_equal_units_is_work_without_progress(self) -> None:
        units = equal_units()
        assert units.compute(12) == 12
        assert units.compute(0) / units.compute(12) == pytest.approx(2.917, abs=5e-4)
        assert max(FreezeLevels.evenly(units).frozen_units) == 11
        with pytest.raises(InvalidValueError, match=r"frozen_units\[1\]=12 must be at most 11, all units but the head"):
            FreezeLevels(units=units, frozen_units=(0, 12))

    def test_unequal_units(self) -> None:
        units = FreezeUnits([FreezeUnit(forward=f, params=p) for f, p in [(4, 1), (3, 1), (2, 2), (1, 6)]])
        assert (units.compute(0), units.compute(2)) == (26, 14)
        assert units.compute(0) / units.compute(2) == pytest.approx(1.857, abs=5e-4)
        assert units.params(2) / units.params(0) == 0.8

    def test_parts(self) -> None:
        units = FreezeUnits([FreezeUnit(forward=5, weight_gradient=3, input_gradient=2, optimizer=7)] * 3)
        assert [units.forward(k) for k in range(4)] == [15, 15, 15, 15]
        assert [units.backward(k) for k in range(4)] == [13, 8, 3, 0]
        assert [units.optimizer(k) for k in range(4)] == [21, 14, 7, 0]

    def test_a_cache_turns_the_frozen_forward_pass_into_a_read(self) -> None:
        units = equal_units(4)
        assert [units.compute(k, 0.5) for k in range(4)] == [11, 8.5, 5.5, 2.5]

    def test_equal_units_are_averaged(self) -> None:
        units = FreezeUnits(
            [FreezeUnit(forward=f, weight_gradient=2 * f, input_gradient=0, optimizer=1, params=f) for f in (1, 3, 8)]
        )
        averaged = units.averaged(["a", "a", "b"])
        assert [unit.forward for unit in averaged] == [2, 2, 8]
        assert [unit.weight_gradient for unit in averaged] == [4, 4, 16]
        assert [unit.params for unit in averaged] == [1, 3, 8]
        assert averaged.compute(0) == units.compute(0)
        with pytest.raises(InvalidValueError, match="kinds=2 must be 3, one for each unit"):
            units.averaged("ab")

    @pytest.mark.parametrize("variant", ["plain", "cached"])
    def test_measured_steps_between_two_points(
        self, shared: Path, monkeypatch: pytest.MonkeyPatch, variant: str
    ) -> None:
        """Of all runs, every level between the first and the last: 8 % on average and 16 % at worst."""
        monkeypatch.syspath_prepend(BENCHMARKS)
        import freeze_validation

        monkeypatch.setattr(freeze_validation, "FREEZING", shared / "data" / "freezing")
        found = [dict(freeze_validation.by_source(*run, variant)) for run in freeze_validation.RUNS]
        sizes = [abs(error) for one in found for error in one["profile, equal units averaged"]]
        assert len(sizes) == 31
        assert sum(sizes) / len(sizes) <= 0.08
        assert max(sizes) <= 0.16

    def test_whole_numbers_stay_exact(self) -> None:
        units = FreezeUnits([FreezeUnit(forward=10**17 + 1)] * 9)
        assert units.compute(0) == 26 * (10**17 + 1)

    @pytest.mark.parametrize("name", ["mlp", "resnet", "tfm"])
    def test_counted_units_add_up_to_every_counted_step(self, shared: Path, name: str) -> None:
        units = FreezeUnits(
            tuple(
                FreezeUnit(
                    forward=int(row["fwd_flops"]),
                    weight_gradient=int(row["bwd_w"]),
                    input_gradient=int(row["bwd_total"]) - int(row["bwd_w"]),
                )
                for row in rows(shared, "unit")
                if row["model"] == name
            )
        )
        steps = [row for row in rows(shared, "prefix") if row["model"] == name]
        assert len(steps) == len(units)
        for row in steps:
            frozen = int(row["k_or_unit"])
            assert (units.forward(frozen), units.backward(frozen)) == (int(row["fwd_flops"]), int(row["bwd_total"]))
            total = units.compute(frozen) / units.compute(0)
            assert total == pytest.approx(float(row["total_share"]), abs=5.1e-5)

    @pytest.mark.parametrize("name", ["mlp", "resnet", "tfm"])
    def test_networks_add_up_to_every_counted_step(self, shared: Path, measured: ModuleType, name: str) -> None:
        network = measured.MAKERS[name]()
        units, batch = freeze_units(network.network), COUNTED_BATCH[name]
        for row in rows(shared, "prefix"):
            if row["model"] == name:
                frozen = network.frozen(units, int(row["k_or_unit"]))
                assert units.units.backward(frozen) * batch == int(row["bwd_total"])
                assert sum(units.backward_flops(frozen)) * batch == int(row["bwd_total"])

    def test_freezing_an_embedding_saves_nothing(self, measured: ModuleType) -> None:
        units = freeze_units(measured.MAKERS["tfm"]().network).units
        assert units.compute(1) == units.compute(0)
        assert freeze_units(shipped_network("gpt2")).units.compute(1) == shipped_network("gpt2").forward_flops * 3


class TestRefusals:
    @pytest.mark.parametrize(("level", "rule"), [(-1, "at least 0"), (13, "at most 12"), (2.5, "whole number"),
                                                 (None, "has no freeze levels"), (True, "whole number")])  # fmt: skip
    def test_numbers_of_units(self, level: Any, rule: str) -> None:
        for call in (equal_units().compute, equal_units().params, equal_units().backward):
            with pytest.raises(InvalidValueError, match=rule):
                call(level)

    @pytest.mark.parametrize(("level", "rule"), [(-1, "at least 0"), (9, "at most 8"), (2.5, "whole number"),
                                                 (None, "level 0 only")])  # fmt: skip
    def test_levels(self, level: Any, rule: str) -> None:
        with pytest.raises(InvalidValueError, match=rule):
            FreezeLevels.evenly(equal_units()).frozen_at(level)

    @pytest.mark.parametrize(("frozen", "rule"), [
        ((), "must begin with 0"), ((1, 2), "must begin with 0"), ((0, 2, 2), "must be above 2"),
        ((0, 3, 2), "must be above 3"), ((0, -1), "at least 0"), ((0, 1.5), "whole number"), (None, "level 0 only"),
        (tuple(range(10)), "at most 8 levels above 0"),
    ])  # fmt: skip
    def test_menus(self, frozen: Any, rule: str) -> None:
        with pytest.raises(InvalidValueError, match=rule):
            FreezeLevels(units=equal_units(), frozen_units=frozen)

    def test_sets_that_are_no_prefix(self) -> None:
        units = equal_units()
        assert units.prefix([1, 0]) == 2 and units.prefix([]) == 0
        for chosen in ({1}, {0, 2}, {11}):
            with pytest.raises(InvalidValueError, match="must be the first units"):
                units.prefix(chosen)

    def test_layers_that_are_no_prefix_of_units(self) -> None:
        units = freeze_units(chain("1111", skips=((1, 3),)))
        assert [units.frozen_by(range(count)) for count in (0, 1, 2, 4)] == [0, 1, 2, 3]
        with pytest.raises(InvalidValueError, match=r"frozen layers=\[0, 1, 2\] must be all layers of the first units"):
            units.frozen_by([0, 1, 2])  # half of what the skip connection spans
        with pytest.raises(InvalidValueError, match="frozen layers='x' is not a layer"):
            units.frozen_by(["x"])

    @pytest.mark.parametrize("field", ["forward", "weight_gradient", "input_gradient", "optimizer"])
    @pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), "1"])
    def test_work(self, field: str, value: Any) -> None:
        with pytest.raises(InvalidValueError, match=f"freeze unit 'u': {field}="):
            FreezeUnit(**{"forward": 1, "name": "u", field: value})

    @pytest.mark.parametrize("units", [(), (1,)])
    def test_no_units(self, units: Any) -> None:
        with pytest.raises(InvalidValueError, match="at least one FreezeUnit"):
            FreezeUnits(units)

    def test_a_network_without_parameters(self) -> None:
        with pytest.raises(InvalidValueError, match="network 'chain': params=0"):
            freeze_units(chain("000"))

    def test_bad_input_gradients(self) -> None:
        for given, rule in [({9: 1}, "is not a layer"), ({1: 3}, "at most its 2 backward FLOPs"), ({1: -1}, "least 0")]:
            with pytest.raises(InvalidValueError, match=rule):
                freeze_units(chain("11"), input_gradient_flops=given)


def layers_of(units: NetworkUnits) -> list[list[Any]]:
    starts = (0, *units.ends[:-1])
    return [
        [layer.id for layer in units.network.layers[start:end]]
        for start, end in zip(starts, units.ends, strict=True)
    ]  # fmt: skip


class TestCuts:
    def test_a_chain_is_cut_at_each_layer(self) -> None:
        assert layers_of(freeze_units(chain("1111"))) == [[0], [1], [2], [3]]

    def test_what_a_skip_connection_spans_stays_whole(self) -> None:
        assert layers_of(freeze_units(chain("11111", skips=((1, 3),)))) == [[0], [1], [2, 3], [4]]

    def test_layers_without_parameters_join_those_before(self) -> None:
        assert layers_of(freeze_units(chain("0100100"))) == [[0, 1, 2, 3], [4, 5, 6]]

    def test_what_depends_on_no_parameters_cuts_no_path(self) -> None:
        llama = freeze_units(shipped_network("llama_7b"))
        assert layers_of(llama)[:2] == [["model.embed_tokens"], ["model.rotary_emb", "model.layers.0"]]

    def test_after_a_branch_to_a_second_output_there_is_no_cut(self) -> None:
        inception = freeze_units(shipped_network("inception_v3"))
        assert layers_of(inception)[-2] == ["Mixed_6e"] and "AuxLogits" in layers_of(inception)[-1]

    def test_encoder_and_decoder_are_one_unit(self) -> None:
        assert [len(unit) for unit in layers_of(freeze_units(shipped_network("t5_large")))] == [1, 51, 1, 1]

    def test_two_networks_side_by_side_are_one_unit(self) -> None:
        layers = chain("1111").layers
        edges = (Edge(source=0, target=1, elements=1), Edge(source=2, target=3, elements=1))
        units = freeze_units(Network(name="two", layers=layers, edges=edges))
        assert len(units.units) == 1 and FreezeLevels.evenly(units.units).frozen_units == (0,)

    @pytest.mark.parametrize("name", ["resnet50", "vgg19", "bert_large", "gpt2", "xlnet_large", "dlrm_kaggle"])
    def test_units_add_up_to_the_network(self, name: str) -> None:
        network = shipped_network(name)
        units = freeze_units(network).units
        assert units.compute(0) == network.forward_flops + network.backward_flops
        assert units.params(0) == network.params
        assert sum(unit.saved_bytes for unit in units) == network.saved_bytes

    def test_shared_parameters_are_trained_as_long_as_a_layer_that_holds_them(self) -> None:
        tied = freeze_units(chain("313", shared_params=[SharedParams(layers=(0, 2), params=2)])).units
        assert [tied.params(k) for k in range(4)] == [5, 4, 3, 0]

    def test_inner_layers_need_input_gradients_where_the_unit_is_the_first_one_trained(self) -> None:
        units = freeze_units(chain("11111", skips=((1, 4),)))  # units 0 | 1 | 2, 3, 4
        assert [unit.input_gradient for unit in units.units] == [0, 1, 1]
        assert units.backward_flops(2) == (0, 0, 1, 2, 2)
        assert units.backward_flops(1) == (0, 1, 2, 2, 2)
        assert units.backward_flops(3) == (0,) * 5

    def test_known_input_gradients(self) -> None:
        units = freeze_units(chain("111"), input_gradient_flops={1: 0}).units
        assert [(unit.weight_gradient, unit.input_gradient) for unit in units] == [(1, 0), (2, 0), (1, 1)]


class TestLevels:
    def test_all_cuts_where_they_are_few(self) -> None:
        assert FreezeLevels.evenly(equal_units(9)).frozen_units == tuple(range(9))

    def test_equal_steps_of_compute(self) -> None:
        units = FreezeUnits([FreezeUnit(forward=f) for f in (9, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)])
        levels = FreezeLevels.evenly(units, 3)
        assert levels.frozen_units == (0, 1, 6, 11)
        assert levels.compute_shares == pytest.approx((0, 18 / 48, 33 / 48, 1))

    def test_a_tied_embedding_is_no_level(self) -> None:
        assert 1 not in FreezeLevels.evenly(freeze_units(shipped_network("gpt2")).units).frozen_units
        assert FreezeLevels.evenly(freeze_units(shipped_network("t5_large")).units).frozen_units == (0, 2, 3)

    def test_none_on_request(self) -> None:
        assert len(FreezeLevels.evenly(equal_units(), 0)) == 1
        with pytest.raises(InvalidValueError, match="most=9 must be at most 8"):
            FreezeLevels.evenly(equal_units(), 9)

    def test_shares_without_work(self) -> None:
        units = FreezeUnits([FreezeUnit(forward=0, params=1)] * 3)
        assert units.compute_shares() == (0.0, 0.5, 1.0)
        assert FreezeUnits([FreezeUnit(forward=0)]).compute_shares() == (0.0,)


class TestLevelTimes:
    levels = FreezeLevels(units=FreezeUnits([FreezeUnit(forward=1, params=1)] * 4), frozen_units=(0, 1, 3))

    def test_both_points_are_met(self) -> None:
        for exchange_s, gamma, comm in [(0.0, 1.0, "static"), (0.05, 1.0, "static"), (0.1, 2.5, "rebuild")]:
            times = LevelTimes.two_point(self.levels, 0.4, 0.2, exchange_s=exchange_s, gamma=gamma, comm=comm)
            assert (times.seconds(0), times.seconds(2)) == (pytest.approx(0.4), pytest.approx(0.2))

    def test_between_them_it_goes_by_compute(self) -> None:
        times = LevelTimes.two_point(self.levels, 1.1, 0.5)  # 11, 9 and 5 units of work
        assert times.seconds(1) == pytest.approx(0.9)

    def test_a_rebuilt_exchange_goes_with_the_parameters(self) -> None:
        times = LevelTimes.two_point(self.levels, 0.4, 0.2, exchange_s=0.1, comm="rebuild")
        assert times.exchange_s == pytest.approx((0.1, 0.075, 0.025))
        assert LevelTimes.two_point(self.levels, 0.4, 0.2, exchange_s=0.1).exchange_s == (0.1, 0.1, 0.1)

    def test_overlap(self) -> None:
        assert LevelTimes(compute_s=[3.0], exchange_s=[4.0], gamma=2).seconds(0) == pytest.approx(5)
        assert LevelTimes(compute_s=[0.0]).seconds(0) == 0

    def test_one_level(self) -> None:
        one = FreezeLevels(units=self.levels.units, frozen_units=(0,))
        assert LevelTimes.two_point(one, 0.4, 0.4).compute_s == (0.4,)

    @pytest.mark.parametrize(("fields", "rule"), [
        ({"compute_s": []}, "at least level 0"), ({"compute_s": [1.0], "exchange_s": [1.0, 1.0]}, "each of 1 levels"),
        ({"compute_s": [-1.0]}, "at least 0"), ({"compute_s": [1.0], "gamma": 0.5}, "at least 1"),
        ({"compute_s": [1.0], "gamma": 11}, "at most 10"),
    ])  # fmt: skip
    def test_bad_times(self, fields: dict[str, Any], rule: str) -> None:
        with pytest.raises(InvalidValueError, match=rule):
            LevelTimes(**fields)

    @pytest.mark.parametrize("level", [-1, 3, 1.0, None])
    def test_bad_level(self, level: Any) -> None:
        with pytest.raises(InvalidValueError, match="must be a level, from 0 to 2"):
            LevelTimes(compute_s=[3.0, 2.0, 1.0]).seconds(level)

    def test_a_step_shorter_than_its_exchange(self) -> None:
        with pytest.raises(InvalidValueError, match=r"last_s=0.2 must be at least 0.3, that of its exchange"):
            LevelTimes.two_point(self.levels, 0.4, 0.2, exchange_s=0.3)
        with pytest.raises(UnknownNameError, match="did you mean 'static'"):
            LevelTimes.two_point(self.levels, 0.4, 0.2, comm="statik")

    def test_work_of_a_job(self) -> None:
        table = {PlacementClass.ONE_SERVER: 0.4, PlacementClass.MANY_SERVERS: 0.6}
        work = Profiled(iterations=7, seconds_per_iteration=table)
        times = {
            PlacementClass.ONE_SERVER: LevelTimes(compute_s=[0.4, 0.2]),
            PlacementClass.MANY_SERVERS: LevelTimes(compute_s=[0.4, 0.2], exchange_s=[0.2, 0.2]),
        }
        assert frozen_work(work, times, 0) is work
        assert dict(frozen_work(work, times, 1).seconds_per_iteration) == pytest.approx(
            {PlacementClass.ONE_SERVER: 0.2, PlacementClass.MANY_SERVERS: 0.4}
        )
        with pytest.raises(InvalidValueError, match="must have those of 'many_servers'"):
            frozen_work(work, {PlacementClass.ONE_SERVER: times[PlacementClass.ONE_SERVER]}, 1)
