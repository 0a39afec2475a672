"""A network in tables: its layers with their share of the compute, and its totals."""

from __future__ import annotations

import math
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from frostline.problem.layer import Layer
from frostline.problem.network import Network

__all__ = ["network_report", "network_summary", "network_table"]

_BAR_WIDTH = 12
_PREFIXES = ("", "k", "M", "G", "T", "P", "E")


def network_summary(network: Network) -> dict[str, Any]:
    """Totals and layers of a network as plain JSON values, in FLOPs, elements and bytes per sample.

    Examples
    --------
    >>> from frostline.problem.library import shipped_network
    >>> summary = network_summary(shipped_network("gpt2"))
    >>> summary["name"], summary["params"], summary["layers"][0]["id"]
    ('gpt2', 124439808, 'transformer.wte')
    """
    return {
        "name": network.name,
        "sample": network.sample,
        "params": network.params,
        "shared_params": sum((len(shared.layers) - 1) * shared.params for shared in network.shared_params),
        "forward_flops": network.forward_flops,
        "backward_flops": network.backward_flops,
        "saved_bytes": network.saved_bytes,
        "edges": len(network.edges),
        "layers": [_layer_summary(layer, network) for layer in network.layers],
        "provenance": dict(network.provenance),
    }


def network_table(network: Network) -> Table:
    """Table of the layers in order and of their totals, fit for 80 columns.

    Shares are of the forward FLOPs; the longest bar is that of the largest layer. Parameters are those each layer
    holds; the total counts parameters in common once.

    Examples
    --------
    >>> from frostline.problem.library import shipped_network
    >>> table = network_table(shipped_network("resnet50"))
    >>> table.row_count, [column.header for column in table.columns][:2]
    (19, ['layer', 'params'])
    """
    table = Table(title=Text(f"{network.name} (per sample: {network.sample})"), box=None, pad_edge=False)
    table.add_column("layer", overflow="fold")
    for header in ("params", "forward\nGFLOP", "output\nelements", "saved\nbytes", "share"):
        table.add_column(header, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    largest = max(layer.forward_flops for layer in network.layers)
    for layer in network.layers:
        table.add_row(Text(str(layer.id)), *_cells(layer, network.forward_flops), _bar(layer.forward_flops, largest))
    table.add_section()
    totals = (f"{network.params:,}", _giga(network.forward_flops), "", _short(network.saved_bytes), "", "")
    table.add_row("total", *totals, style="bold")
    return table


def network_report(network: Network) -> RenderableType:
    """The table of layers, then a line for each group of parameters in common and for the provenance."""
    lines = [
        f"in common: {shared.params:,} parameters of {', '.join(map(str, shared.layers))}, counted once"
        for shared in network.shared_params
    ]
    lines.append(f"backward: {_giga(network.backward_flops)} GFLOP; saved activations are fp32 bytes per sample")
    lines += [f"{key}: {text}" for key, text in network.provenance.items()]
    return Group(network_table(network), *(Text(line) for line in lines))


def _share(layer: Layer, total: int) -> float:
    return layer.forward_flops / total if total else 0.0


def _layer_summary(layer: Layer, network: Network) -> dict[str, Any]:
    return {
        "id": layer.id if isinstance(layer.id, (str, int)) else str(layer.id),
        "kind": layer.kind,
        "params": layer.params,
        "forward_flops": layer.forward_flops,
        "backward_flops": layer.backward_flops,
        "output_elements": layer.output_elements,
        "saved_bytes": layer.saved_bytes,
        "forward_share": _share(layer, network.forward_flops),
    }


def _cells(layer: Layer, total: int) -> tuple[str, ...]:
    return (
        f"{layer.params:,}",
        _giga(layer.forward_flops),
        _short(layer.output_elements),
        _short(layer.saved_bytes),
        f"{_share(layer, total):.1%}",
    )


def _bar(flops: int, largest: int) -> str:
    """Bar of at least one mark for every layer that computes at all."""
    return "#" * -(-flops * _BAR_WIDTH // largest) if flops else ""


def _giga(flops: int) -> str:
    """GFLOP with enough digits for small networks."""
    return f"{flops / 1e9:,.3f}" if flops >= 10**7 or not flops else f"{flops / 1e9:.3g}"


def _short(count: float) -> str:
    """Three digits and a decimal prefix."""
    if not count:
        return "0"
    power = min(max(0, math.floor(math.log10(count)) // 3), len(_PREFIXES) - 1)
    if float(f"{count / 1000**power:.3g}") >= 1000 and power + 1 < len(_PREFIXES):
        power += 1
    return f"{count / 1000**power:.3g}{_PREFIXES[power]}"
