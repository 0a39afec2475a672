"""``frostline show``: what a file or a named network or instance holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

import typer

from frostline.cli.group import UsageError
from frostline.cli.inputs import CSV_ENDINGS, JSON_ENDINGS, Reading, Workload, is_trace_file, read_workload
from frostline.cli.options import (
    ClusterOption,
    ConfigOption,
    DuplicatesOption,
    FormatOption,
    FractionsOption,
    JsonOption,
    ModeOption,
    PoolOption,
    QuietOption,
    TimeUnitOption,
    ZoneOption,
    examples,
    mode_of,
)
from frostline.cli.output import Output
from frostline.cli.plans import network_of
from frostline.errors import UnknownNameError
from frostline.problem.documents import read_document
from frostline.problem.files import load_cluster, load_schedule
from frostline.problem.library import network_names
from frostline.report.network import network_report, network_summary
from frostline.report.schedule import schedule_lines, schedule_summary
from frostline.report.workload import cluster_summary, histogram_table, instance_summary, trace_lines
from frostline.traces.library import instance_names

__all__ = ["EXAMPLES", "KINDS", "run"]

KINDS = ("model", "trace", "instance", "schedule", "cluster")
EXAMPLES = examples(
    "show philly.csv --cluster 128x8", "show model bert_large", "show instance q06", "show run/schedule-fifo.json.gz"
)


def run(
    what: Annotated[list[str], typer.Argument(metavar="[KIND] NAME|FILE", help=f"KIND: {', '.join(KINDS)}.")],
    cluster: ClusterOption = None,
    pool: PoolOption = None,
    strict: ModeOption = None,
    trace_format: FormatOption = None,
    time_unit: TimeUnitOption = None,
    zone: ZoneOption = None,
    duplicates: DuplicatesOption = None,
    fractions: FractionsOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    config: ConfigOption = None,
) -> int:
    """Show a network, trace, instance, schedule or cluster; without KIND it follows from the file or the name."""
    output = Output(command="show", as_json=json, quiet=quiet)
    if len(what) > 2:
        raise UsageError("show takes a kind and a name, or a name alone")
    kind, name = what if len(what) == 2 else (_kind_of(what[0]), what[0])
    if kind not in KINDS:
        raise UnknownNameError("kind", kind, KINDS)
    reading = Reading(
        format=trace_format,
        mode=mode_of(strict),
        time_unit=time_unit,
        zone=zone,
        duplicates=duplicates,
        fractions=fractions,
    )
    if kind in ("trace", "instance"):
        _show_workload(kind, read_workload(name, cluster, pool, reading), output)
        return 0
    if cluster is not None or pool is not None or reading != Reading():
        raise UsageError(f"the options for traces do not go with a {kind}")
    _SHOW[kind](name, output)
    return 0


def _kind_of(name: str) -> str:
    """Kind of a file by what it holds, or of a name by who knows it."""
    is_file = bool(name) and Path(name).exists()
    if is_file or name.endswith((*JSON_ENDINGS, *CSV_ENDINGS)) or Path(name).name != name:
        return _kind_of_file(name)
    if name in network_names():
        return "model"
    if name in instance_names():
        return "instance"
    raise UnknownNameError("file, network or instance", name, [*network_names(), *instance_names()])


def _kind_of_file(path: str) -> str:
    if not path.endswith(JSON_ENDINGS) or (Path(path).exists() and is_trace_file(path)):
        return "trace"
    kind, _ = read_document(path, ["cluster", "instance", "network", "schedule"])
    return "model" if kind == "network" else kind


def _show_workload(kind: str, workload: Workload, output: Output) -> None:
    found = "trace" if workload.report is not None else "instance"
    if kind != found:
        raise UsageError(f"{workload.name} is a {found}, not a {kind}".replace("a instance", "an instance"))
    if kind == "trace":
        summary = workload.summary
        output.document({"trace": summary})
        output.tell(f"trace {workload.name}")
    else:
        summary = instance_summary(workload.instance())
        output.document({"instance": summary})
        output.tell(f"instance {workload.name or '(no name)'} on {summary['cluster']['text']}")
        output.remark(*(f"{key}: {text}" for key, text in workload.provenance.items()))
    output.tell(*trace_lines(summary), "")
    output.table(histogram_table(summary))


def _show_model(name: str, output: Output) -> None:
    network = network_of(name)
    output.document({"model": network_summary(network)})
    output.draw(network_report(network))


def _show_schedule(path: str, output: Output) -> None:
    schedule = load_schedule(path)
    summary = schedule_summary(schedule)
    output.document({"schedule": summary})
    output.tell(*schedule_lines(summary))


def _show_cluster(path: str, output: Output) -> None:
    cluster = load_cluster(path)
    summary = cluster_summary(cluster)
    output.document({"cluster": summary})
    output.tell(f"cluster {summary['text']}: {summary['servers']:,} servers, {summary['gpus']:,} GPUs")
    output.tell(f"GPU types: {', '.join(summary['gpu_types'])}")


_SHOW: Mapping[str, Callable[[str, Output], None]] = {
    "model": _show_model,
    "schedule": _show_schedule,
    "cluster": _show_cluster,
}
