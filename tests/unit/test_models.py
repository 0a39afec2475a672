"""The networks that come with frostline, against the tables they were made from, and against closed forms."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.problem.convolutions import resnet
from frostline.problem.families import bert, gpt, llama
from frostline.problem.library import network_names, shipped_network
from frostline.problem.network import Network, network_to_dict

# Parameters, forward GFLOP and saved MB per sample as published with the tables, with their printed digits.
PRINTED = {
    "vgg19": (143_667_240, "39.264", "78.5"),
    "resnet50": (25_557_032, "8.178", "86.1"),
    "resnet152": (60_192_808, "23.027", "178.0"),
    "inception_v3": (27_161_264, "11.438", "98.4"),
    "vit_b_16": (86_567_656, "35.128", "154.9"),
    "bert_large": (336_226_108, "368.088", "1218.7"),
    "roberta_large": (355_412_057, "388.788", "1218.7"),
    "gpt2": (124_439_808, "291.65", "1667"),
    "gpt2_medium": (354_823_168, "826.95", "4438"),
    "gpt2_xl": (1_557_611_200, "3506.70", "13855"),
    "t5_large": (737_668_096, "493.22", "2640"),
    "xlnet_large": (360_300_800, "445.87", "1466"),
    "llama_7b": (6_738_415_616, "29261.6", "39563"),
    "dlrm_kaggle": (540_677_217, "0.000972", "0.01"),
}
ADDED = {"dlrm_kaggle": {"interaction"}, "vit_b_16": {"encoder.pos_embedding"}}
CORRECTED = {("xlnet_large", "transformer.word_embedding", "params")}
GENERATED = {
    "gpt2": lambda: gpt(12, 768),
    "gpt2_medium": lambda: gpt(24, 1024, heads=16),
    "gpt2_xl": lambda: gpt(48, 1600, heads=25),
    "bert_large": lambda: bert(24, 1024, heads=16),
    "llama_7b": lambda: llama(32, 4096, heads=32, feed_forward=11008),
    "resnet50": lambda: resnet(50),
    "resnet152": lambda: resnet([3, 8, 36, 3]),
}


@pytest.fixture(params=sorted(PRINTED))
def network(request: pytest.FixtureRequest) -> Network:
    return shipped_network(request.param)


def rounded(value: float, printed: str) -> str:
    digits = len(printed.partition(".")[2])
    return f"{value:.{digits}f}"


def test_the_library_holds_these_networks() -> None:
    assert network_names() == tuple(sorted(PRINTED))


def test_totals_have_the_printed_digits(network: Network) -> None:
    params, gflop, saved_mb = PRINTED[network.name]
    assert network.params == params
    assert rounded(network.forward_flops / 1e9, gflop) == gflop
    assert rounded(network.saved_bytes / 1e6, saved_mb) == saved_mb


def test_totals_and_layers_are_those_of_the_tables(network: Network, shared: Path) -> None:
    table = json.loads((shared / "data" / "models" / f"{network.name}.json").read_text())
    assert network.params == table["params"]
    assert network.forward_flops == table["fwd_flops_per_sample"]
    assert network.saved_bytes == table["saved_activation_bytes_fp32_per_sample"]
    pooler = 4_202_496 if network.name == "bert_large" else 0
    assert network.backward_flops == table["bwd_flops_per_sample"] + pooler
    units = {unit["name"]: unit for unit in table["units"]}
    added = ADDED.get(network.name, set())
    assert {layer.id for layer in network.layers} == set(units) | added
    for layer in network.layers:
        if layer.id not in added:
            same_figures(network.name, layer, units[str(layer.id)])


def same_figures(name: str, layer: Any, unit: dict[str, Any]) -> None:
    names = {"params": "params", "forward_flops": "fwd_flops", "saved_bytes": "saved_bytes", "kind": "kind"}
    if name != "xlnet_large":  # its table has elements per position
        names["output_elements"] = "out_elems"
    for ours, theirs in names.items():
        if (name, layer.id, ours) not in CORRECTED:
            assert getattr(layer, ours) == unit[theirs], (layer.id, ours)


def test_provenance_names_tool_and_model(network: Network) -> None:
    assert "torch" in network.provenance["tool"]
    assert {"model", "run", "checked"} <= set(network.provenance)


def test_all_layers_are_connected(network: Network) -> None:
    linked = {end for edge in network.edges for end in (edge.source, edge.target)}
    assert linked == {layer.id for layer in network.layers}
    order = [layer.id for layer in network.layers]
    assert order[-1] in {"lm_head", "cls", "lm_loss", "avgpool", "heads", "classifier.6", "top"}


def test_shipped_files_are_what_the_writer_writes(network: Network) -> None:
    text = (files("frostline") / "models" / f"{network.name}.json").read_text("utf-8")
    assert json.loads(text) == json.loads(json.dumps(network_to_dict(network)))


def test_unknown_names_suggest_a_near_one() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown network 'resnet5'; did you mean 'resnet50'"):
        shipped_network("resnet5")
    with pytest.raises(UnknownNameError):
        shipped_network("../models/gpt2")


def test_dlrm_meets_in_the_interaction() -> None:
    dlrm = shipped_network("dlrm_kaggle")
    into = [edge.source for edge in dlrm.edges if edge.target == "interaction"]
    assert into == ["bot", *(f"emb.{i}" for i in range(26))]
    assert dlrm.layers[dlrm.positions["interaction"]].forward_flops == 23_328


def test_every_decoder_block_of_t5_reads_the_encoder() -> None:
    t5 = shipped_network("t5_large")
    read = {edge.target: edge.elements for edge in t5.edges if edge.source == "encoder.final_layer_norm"}
    assert read == {f"decoder.block.{i}": 512 * 1024 for i in range(24)}
    cut = t5.positions["decoder.block.0"]
    traffic = t5.traffic([range(cut), range(cut, len(t5.layers))])
    assert traffic == {(0, 1): 512 * 1024 + 128 * 1024}


def test_tied_embeddings_count_once() -> None:
    gpt2 = shipped_network("gpt2")
    assert sum(layer.params for layer in gpt2.layers) - gpt2.params == 38_597_376
    assert gpt2.shared_params[0].layers == ("lm_head", "transformer.wte")


# --- generators


@pytest.mark.parametrize("name", sorted(GENERATED))
def test_closed_forms_equal_the_measured_tables(name: str) -> None:
    made, shipped = GENERATED[name](), shipped_network(name)
    assert made.layers == shipped.layers
    assert made.edges == shipped.edges
    assert made.shared_params == shipped.shared_params
    assert made.sample == shipped.sample


@pytest.mark.parametrize(
    ("depth", "params", "gmac"),
    [(18, 11_689_512, "1.814"), (34, 21_797_672, "3.664"), (50, 25_557_032, "4.089"), (101, 44_549_160, "7.801")],
)
def test_residual_networks_equal_torchvision(depth: int, params: int, gmac: str) -> None:
    network = resnet(depth)
    assert (network.params, rounded(network.forward_flops / 2e9, gmac)) == (params, gmac)


def test_forward_flops_are_the_closed_forms() -> None:
    T, d, L, V, f = 96, 256, 3, 1000, 640
    dense = L * (24 * T * d**2 + 4 * T**2 * d) + 2 * T * d * V
    assert gpt(L, d, sequence=T, vocabulary=V).forward_flops == dense
    heads = 2 * T * d**2 + 2 * d**2 + 4 * d
    assert bert(L, d, sequence=T, vocabulary=V).forward_flops == dense + heads
    gated = L * (8 * T * d**2 + 6 * T * d * f + 4 * T**2 * d) + 2 * T * d * V
    assert llama(L, d, sequence=T, vocabulary=V, feed_forward=f).forward_flops == gated


@pytest.mark.parametrize(
    ("network", "params"),
    [
        (bert(12, 768), 110_106_428),
        (llama(40, 5120), 13_015_864_320),
        (gpt(36, 1280), 774_030_080),
        (llama(80, 8192, sequence=8, vocabulary=32000, feed_forward=22016), 65_285_660_672),
    ],
)
def test_parameters_of_published_sizes(network: Network, params: int) -> None:
    assert network.params == params


def test_positions_may_exceed_the_tokens() -> None:
    assert gpt(sequence=128, positions=1024).params == gpt().params
    assert bert(sequence=128).params == bert().params


def test_names() -> None:
    assert [n.name for n in (gpt(), bert(), llama(2, 256), resnet(18), resnet([1], name="x"))] == [
        "gpt-12x768",
        "bert-24x1024",
        "llama-2x256",
        "resnet18",
        "x",
    ]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: gpt(0), "gpt: layers=0 must be at least 1"),
        (lambda: gpt(2, 10, heads=3), "gpt: heads=3 must divide the width 10"),
        (lambda: gpt(sequence=2000, positions=1024), "gpt: sequence=2000 must be at most the 1024 positions"),
        (lambda: bert(sequence=513), "bert: sequence=513 must be at most the 512 positions"),
        (lambda: llama(vocabulary=1.5), "llama: vocabulary=1.5 must be a whole number"),
        (lambda: llama(2, 10**9), "llama: width=1000000000 must be at most"),
        (lambda: llama(2, 256, feed_forward=0), "llama: feed_forward=0 must be at least 1"),
        (lambda: resnet(51), "resnet: depth=51 must be one of 18, 34, 50, 101, 152"),
        (lambda: resnet([]), r"resnet: depth=\[\] must have 1 to 16 groups"),
        (lambda: resnet([2, 0]), r"resnet: depth\[1\]=0 must be at least 1"),
        (lambda: resnet([10**6]), "must have at most 100000 blocks"),
        (lambda: resnet(image=0), "resnet: image=0 must be at least 1"),
        (lambda: resnet(classes=10**6), "resnet: classes=1000000 must be at most"),
    ],
)
def test_generators_refuse_bad_sizes(make: Any, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        make()


@pytest.mark.parametrize("size", [1, 2, 33, 225])
def test_odd_images_shrink_to_at_least_one_pixel(size: int) -> None:
    network = resnet(18, image=size)
    assert min(layer.output_elements for layer in network.layers) >= 1
    assert network.params == resnet(18).params
