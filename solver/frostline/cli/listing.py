"""``frostline list``: the names that frostline knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from frostline.cli.options import ConfigOption, JsonOption, QuietOption, examples
from frostline.cli.output import Output
from frostline.errors import UnknownNameError
from frostline.policies import make_policy, policy_names
from frostline.problem.cluster import gpu_types
from frostline.problem.library import network_names, shipped_network
from frostline.report.numbers import number_text
from frostline.report.pictures import PLOT_KINDS
from frostline.report.table import Table
from frostline.traces import TRACE_FORMATS
from frostline.traces.library import instance_entry, instance_names

__all__ = ["EXAMPLES", "run"]

EXAMPLES = examples("list", "list policies", "list models --json")

Row = dict[str, Any]


def run(
    kind: Annotated[
        str | None,
        typer.Argument(metavar="[KIND]", help="policies, models, instances, formats, gpus or plots."),
    ] = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    config: ConfigOption = None,
) -> int:
    """List policies, networks, instances, trace formats, GPU types and kinds of plots that have a name."""
    output = Output(command="list", as_json=json, quiet=quiet)
    if kind is not None and kind not in _LISTS:
        raise UnknownNameError("list", kind, _LISTS)
    chosen = [name for name in _LISTS if kind in (None, name)]
    lists = {name: _LISTS[name][0]() for name in chosen}
    output.document(lists)
    for i, (name, rows) in enumerate(lists.items()):
        output.remark(*([""] if i else []), f"{name}:")
        output.table(_LISTS[name][1](rows))
    return 0


def _policies() -> list[Row]:
    names = policy_names(offline=True)
    made = [make_policy(name) for name in names]
    return [
        {"name": name, "parameters": dict(policy.parameters), "guarantee": hasattr(policy, "promise")}
        for name, policy in zip(names, made, strict=True)
    ]


def _policy_table(rows: list[Row]) -> Table:
    cells = (
        (
            row["name"],
            ":".join(f"{name}={value}" for name, value in row["parameters"].items()) or "-",
            "per job" if row["guarantee"] else "-",
        )
        for row in rows
    )
    return Table(["name", "parameters", "guarantee"], cells, left=range(3))


def _models() -> list[Row]:
    networks = [(name, shipped_network(name)) for name in network_names()]
    return [
        {
            "name": name,
            "params": network.params,
            "forward_flops": network.forward_flops,
            "layers": len(network.layers),
            "sample": network.sample,
        }
        for name, network in networks
    ]


def _model_table(rows: list[Row]) -> Table:
    header = ["name", "parameters", "forward GFLOP", "layers", "sample"]
    cells = (
        (r["name"], f"{r['params']:,}", number_text(r["forward_flops"] / 1e9), str(r["layers"]), r["sample"])
        for r in rows
    )
    return Table(header, cells, left=(0, 4))


def _instances() -> list[Row]:
    entries = [instance_entry(name) for name in instance_names()]
    return [{"name": entry.name, "description": entry.description, "source": entry.source} for entry in entries]


def _instance_table(rows: list[Row]) -> Table:
    return Table(["name", "description"], ((row["name"], row["description"]) for row in rows), left=range(2))


def _formats() -> list[Row]:
    return [
        {
            "name": form.name,
            "origin": form.origin,
            "columns": {field: list(names) for field, names in form.columns.items()},
        }
        for form in TRACE_FORMATS.values()
    ]


def _format_table(rows: list[Row]) -> Table:
    cells = ((row["name"], ", ".join(names[0] for names in row["columns"].values()), row["origin"]) for row in rows)
    return Table(["name", "columns", "origin"], cells, left=range(3))


def _gpus() -> list[Row]:
    return [
        {"name": name, "memory_bytes": kind.memory_bytes, "peak_flops": dict(kind.peak_flops)}
        for name, kind in sorted(gpu_types().items())
    ]


def _gpu_table(rows: list[Row]) -> Table:
    cells = (
        (
            row["name"],
            "unknown" if row["memory_bytes"] is None else f"{row['memory_bytes'] / 2**30:.4g} GiB",
            ", ".join(f"{precision} {flops / 1e12:.4g}" for precision, flops in row["peak_flops"].items()),
        )
        for row in rows
    )
    return Table(["name", "memory", "peak TFLOP/s"], cells, left=(0, 2))


def _plots() -> list[Row]:
    return [{"name": name, "shows": text} for name, text in PLOT_KINDS.items()]


def _plot_table(rows: list[Row]) -> Table:
    return Table(["name", "shows"], ((row["name"], row["shows"]) for row in rows), left=range(2))


_LISTS: Mapping[str, tuple[Callable[[], list[Row]], Callable[[list[Row]], Table]]] = {
    "policies": (_policies, _policy_table),
    "models": (_models, _model_table),
    "instances": (_instances, _instance_table),
    "formats": (_formats, _format_table),
    "gpus": (_gpus, _gpu_table),
    "plots": (_plots, _plot_table),
}
