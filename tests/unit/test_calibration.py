"""Calibrations: what they do to a plan, and that the shipped ones are near published step times."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.problem import TrainingPlan, gpu_type, shipped_network
from frostline.timing.calibration import Calibration, Saturation, calibration, calibrations
from frostline.timing.iteration_time import iteration_ns
from frostline.timing.stage_graph import stage_graph

NS = 1e9


def plan(replicas: int, samples: int = 20, **fields: object) -> TrainingPlan:
    network = shipped_network("resnet50")
    return TrainingPlan.balanced(network, replicas, stages=1, global_batch=replicas * samples, **fields)


@pytest.mark.parametrize(
    ("replicas", "placement", "published_s"),
    [(1, [[1]], 0.147), (4, [[4]], 0.161), (4, [[1]] * 4, 0.334)],
)
def test_t4_is_near_the_published_steps_of_resnet50(replicas, placement, published_s):
    t4 = calibration("t4-fp32")
    timing = t4.timing(plan(replicas), t4.cluster(len(placement), gpus=4))
    assert iteration_ns(timing, placement) / NS == pytest.approx(published_s, rel=0.15)


def test_compute_follows_the_saturation():
    t4 = calibration("t4-fp32")
    network = shipped_network("resnet50")
    flops = sum(layer.forward_flops + layer.backward_flops for layer in network.layers)
    found = t4.networks["resnet50"]
    graph = stage_graph(t4.plan(plan(3, samples=7)), gpu_type("T4"))
    expected_s = flops * (7 + found.half_batch) / (8.1e12 * found.utilisation)
    assert graph.compute_s[0] == pytest.approx(expected_s)


def test_the_batch_is_that_of_the_stage_with_most_replicas_in_one_micro_batch():
    network = shipped_network("resnet50")
    stages = TrainingPlan.balanced(network, 6, stages=2).stages
    wide = TrainingPlan(network=network, stages=stages, replicas=[4, 2], global_batch=64, micro_batches=2)
    t4 = calibration("t4-fp32")
    assert t4.plan(wide).utilisation == t4.networks["resnet50"].at(64 / 4 / 2)


def test_precision_and_bandwidths_are_the_measured_ones():
    v100 = calibration("v100-fp16")
    assert v100.plan(plan(2, precision="fp32"), like="vit_b_16").precision == "fp16"
    cluster = v100.cluster(3, gpus=4)
    assert cluster.capacities == (4, 4, 4)
    assert {server.nic_bytes_per_s for server in cluster.servers} == {v100.nic_bytes_per_s}
    assert {server.nvlink_bytes_per_s for server in cluster.servers} == {v100.nvlink_bytes_per_s}
    assert cluster.servers[0].gpu_type.name == "V100-SXM2-32"


def test_overlap_takes_the_larger_of_the_two():
    t4 = calibration("t4-fp32")
    cluster = t4.cluster(2, gpus=4)
    timings = {mode: copy_of(t4, overlap=mode).timing(plan(8), cluster) for mode in (False, True)}
    spread = [[4], [4]]
    base_ns, card_ns = timings[True].base_ns, timings[True].column_ns((4,), 0)
    assert iteration_ns(timings[True], spread) == max(base_ns, card_ns)
    assert iteration_ns(timings[False], spread) == base_ns + card_ns


def test_networks_that_were_not_measured_are_refused():
    t4 = calibration("t4-fp32")
    gpt2 = TrainingPlan.balanced(shipped_network("gpt2"), 2)
    with pytest.raises(UnknownNameError, match="bert_base"):
        t4.plan(gpt2)
    assert t4.plan(gpt2, like="bert_base").utilisation < t4.networks["bert_base"].utilisation
    with pytest.raises(UnknownNameError, match="did you mean 't4-fp32'"):
        calibration("t4_fp32")


def test_shipped_calibrations_have_plausible_figures_and_a_source():
    entries = json.loads(files("frostline.timing").joinpath("calibrations.json").read_text("utf-8"))["calibrations"]
    assert [entry["name"] for entry in entries] == list(calibrations())
    for found in calibrations().values():
        assert {"tables", "rows", "holdout_error", "date", "command"} <= set(found.source)
        assert 1e9 < found.nvlink_bytes_per_s < 300e9
        assert 0.1e9 < found.nic_bytes_per_s < found.nvlink_bytes_per_s
        assert all(0.1 < network.utilisation < 1 for network in found.networks.values())


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"utilisation": 0}, "utilisation"),
        ({"utilisation": 1.5}, "utilisation"),
        ({"half_batch": -1}, "half_batch"),
        ({"half_batch": float("nan")}, "half_batch"),
    ],
)
def test_bad_saturation(change, field):
    with pytest.raises(InvalidValueError) as caught:
        Saturation(**({"utilisation": 0.5, "half_batch": 1.0} | change))
    assert caught.value.field == field


@pytest.mark.parametrize("samples", [0, -1, float("inf")])
def test_bad_samples(samples):
    with pytest.raises(InvalidValueError, match="samples"):
        Saturation(utilisation=0.5, half_batch=1.0).at(samples)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"nic_bytes_per_s": 0}, InvalidValueError),
        ({"nvlink_bytes_per_s": float("inf")}, InvalidValueError),
        ({"networks": {}}, InvalidValueError),
        ({"precision": "fp8"}, UnknownNameError),
        ({"precision": "bf16"}, UnknownNameError),
        ({"gpu_type": "T5"}, UnknownNameError),
    ],
)
def test_bad_calibration(change, error):
    with pytest.raises(error):
        copy_of(calibration("t4-fp32"), **change)


def copy_of(found: Calibration, **changes: object) -> Calibration:
    fields = ("name", "gpu_type", "precision", "nvlink_bytes_per_s", "nic_bytes_per_s", "overlap", "networks", "source")
    return Calibration(**({name: getattr(found, name) for name in fields} | changes))
