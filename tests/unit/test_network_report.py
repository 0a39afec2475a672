"""Tables of a network."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console, RenderableType

from frostline.problem.library import network_names, shipped_network
from frostline.problem.network import Edge, Layer, Network
from frostline.report.network import network_report, network_summary, network_table


def text(renderable: RenderableType, width: int = 100) -> str:
    console = Console(width=width, file=io.StringIO(), color_system=None)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()


def pair(first: int, second: int) -> Network:
    layers = [
        Layer(id=i, params=7, forward_flops=f, backward_flops=2 * f, output_elements=1500, saved_bytes=999_999)
        for i, f in ((0, first), ((1, "x"), second))
    ]
    return Network(name="[red]pair", layers=layers, edges=[Edge(source=0, target=(1, "x"), elements=1)])


def bars(network: Network) -> list[int]:
    return [line.count("#") for line in text(network_table(network)).splitlines() if "7 " in line]


def test_bars_are_shares_of_the_largest_layer() -> None:
    assert bars(pair(10**9, 3 * 10**9))[:2] == [4, 12]
    assert bars(pair(1, 10**9))[:2] == [1, 12]
    assert bars(pair(0, 10**9))[:2] == [0, 12]
    assert bars(pair(0, 0))[:2] == [0, 0]


def test_markup_in_names_is_printed_as_it_is() -> None:
    assert "[red]pair" in text(network_table(pair(1, 1)))


def test_numbers_are_short_and_right() -> None:
    lines = text(network_table(pair(10**9, 3 * 10**9))).splitlines()
    first = next(line for line in lines if line.startswith("0 ")).split()
    assert first == ["0", "7", "1.000", "1.5k", "1M", "25.0%", "####"]
    assert next(line for line in lines if line.startswith("total")).split() == ["total", "14", "4.000", "2M"]


@pytest.mark.parametrize("name", network_names())
def test_tables_fit_eighty_columns_whole(name: str) -> None:
    shown = text(network_table(shipped_network(name)), 80)
    assert "…" not in shown
    assert f"{shipped_network(name).params:,}" in shown
    assert shown.isascii()


def test_the_report_names_what_is_counted_once() -> None:
    shown = text(network_report(shipped_network("gpt2")), 200)
    assert "in common: 38,597,376 parameters of lm_head, transformer.wte, counted once" in shown
    assert "tool: torch 2.13.0+cpu" in shown


def test_the_summary_is_plain_json_with_stable_keys() -> None:
    summary = network_summary(shipped_network("gpt2"))
    assert json.loads(json.dumps(summary)) == summary
    assert list(summary) == [
        "name",
        "sample",
        "params",
        "shared_params",
        "forward_flops",
        "backward_flops",
        "saved_bytes",
        "edges",
        "layers",
        "provenance",
    ]
    assert summary["shared_params"] == 38_597_376
    assert sum(layer["forward_share"] for layer in summary["layers"]) == pytest.approx(1)
    assert network_summary(pair(0, 0))["layers"][1]["id"] == "(1, 'x')"
