"""``frostline place``: which server holds which replica of one training job."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from frostline.cli.clusters import bandwidth, free_gpus, required_cluster
from frostline.cli.group import INFEASIBLE, UsageError, fail
from frostline.cli.options import (
    ConfigOption,
    FreeOption,
    GlobalBatchOption,
    GpusOption,
    GpuTypeOption,
    JsonOption,
    MicroBatchesOption,
    ModelArgument,
    NicOption,
    NvlinkOption,
    PrecisionOption,
    QuietOption,
    ReplicaGpusOption,
    ReplicasOption,
    SeedOption,
    ServersOption,
    StagesOption,
    TimeLimitOption,
    UtilisationOption,
    examples,
    number,
)
from frostline.cli.output import Output
from frostline.cli.plans import PlanOptions, network_of
from frostline.errors import UnknownNameError
from frostline.placement.place import METHODS, place
from frostline.placement.request import DoesNotFitError
from frostline.placement.result import PlacementResult
from frostline.problem import Cluster, GpuType, TrainingPlan
from frostline.problem.documents import check_ending, document_text, write_text
from frostline.report.picture import check_plot
from frostline.report.placement import (
    infeasible_summary,
    placement_lines,
    placement_summary,
    placement_table,
    stage_summary,
    stage_table,
)
from frostline.report.placement_drawing import placement_drawing
from frostline.report.plot_placement import save_plot
from frostline.report.stage_traffic import traffic_lines
from frostline.report.workload import cluster_summary
from frostline.timing.contention import ContentionTime
from frostline.timing.iteration_time import IterationTime
from frostline.timing.link import LinkTime
from frostline.timing.stage_graph import StageGraph, stage_graph

__all__ = ["EXAMPLES", "run"]

EXAMPLES = examples(
    "place bert_large --stages 4 --replicas 2,2,2,2 --cluster 4x8 --free 4,2,2,8",
    "place bert_large --stages 4 --replicas 4,4,4,4 --cluster 4x8 --free 8,5,3,8 --exact --plot placement.png",
    "place gpt2_xl --gpus 16 --cluster 4x8 --nic 12.5GB/s --timing overlap",
    "place my-network.json --stages 3 --gpus 12 --cluster cluster.json --objective consolidate --json",
)

_TIMINGS = ("contention", "overlap", "link")
_HEURISTICS = ("best-fit", "contiguous", "heavy-edge", "local-search")
_EXACT_LIMIT_S = 300.0
_PLAN = ("stages", "global_batch", "micro_batches", "precision", "utilisation")


def run(
    model: ModelArgument,
    cluster: ServersOption,
    stages: StagesOption = None,
    replicas: ReplicasOption = None,
    gpus_per_replica: ReplicaGpusOption = None,
    gpus: GpusOption = None,
    free: FreeOption = None,
    method: Annotated[
        str,
        typer.Option("--method", metavar="NAME", help=f"{', '.join(METHODS)}."),
    ] = "auto",
    exact: Annotated[
        bool,
        typer.Option(
            "--exact", help=f"Search until the placement is proved optimal, for {_EXACT_LIMIT_S:g} s unless told."
        ),
    ] = False,
    objective: Annotated[
        str, typer.Option("--objective", metavar="time|consolidate", help="What counts first: time, or few servers.")
    ] = "time",
    time_limit: TimeLimitOption = None,
    gap: Annotated[
        float,
        typer.Option("--gap", parser=number, metavar="X", help="Share of the bound at which a search may stop."),
    ] = 0.0,
    global_batch: GlobalBatchOption = None,
    micro_batches: MicroBatchesOption = 1,
    precision: PrecisionOption = "fp16",
    utilisation: UtilisationOption = 0.4,
    timing: Annotated[
        str,
        typer.Option(
            "--timing",
            metavar="NAME",
            help="contention: a server's replicas share its network card; overlap: and that while they compute; "
            "link: every GPU has its own share of the card.",
        ),
    ] = "contention",
    gpu_type: GpuTypeOption = None,
    nic: NicOption = None,
    nvlink: NvlinkOption = None,
    certificate: Annotated[
        Path | None,
        typer.Option("--certificate", metavar="FILE.json", help="Write what proves the bound (frostline check FILE)."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw the placement to a PNG, PDF or SVG file.")
    ] = None,
    seed: SeedOption = 0,
    json: JsonOption = False,
    quiet: QuietOption = False,
    config: ConfigOption = None,
) -> int:
    """Place the replicas of a training job on free GPUs so that an iteration takes as little time as possible."""
    output = Output(command="place", as_json=json, quiet=quiet)
    network = network_of(model)
    cards = {"nic_bytes_per_s": bandwidth(nic, "--nic"), "nvlink_bytes_per_s": bandwidth(nvlink, "--nvlink")}
    servers = required_cluster(cluster, None, gpu_type=gpu_type, **cards)
    room = free_gpus(free, servers)
    options = PlanOptions.of(replicas=replicas, gpus=gpus, sizes=gpus_per_replica, stages=stages)
    need = options.need
    setting = {"model": network.name, "gpus": need, "cluster": cluster_summary(servers), "free": list(room)}
    setting |= {"timing": timing, "objective": objective, "seed": seed}
    if plot is not None:
        check_plot(plot)
    if certificate is not None:
        check_ending(certificate)
    if need > sum(room):
        return _does_not_fit(output, setting, method, DoesNotFitError(need, sum(room)))
    fields = {"micro_batches": micro_batches, "precision": precision, "utilisation": utilisation}
    plan = options.plan(network, global_batch, fields)
    limit_s = _limit_s(method, exact, time_limit)
    search: dict[str, Any] = {"method": method, "objective": objective, "time_limit_s": limit_s, "seed": seed}
    try:
        result = place(_work(timing, plan, servers), room, cluster=servers, gap=gap, **search)
    except DoesNotFitError as error:
        return _does_not_fit(output, setting, method, error)
    graph = _graph_of(timing, plan, servers, result)
    if plot is not None:
        save_plot(plot, result, graph, servers, room)
    if certificate is not None:
        _save_certificate(certificate, result)
    described = {name: getattr(plan, name) for name in _PLAN} | {"stages": stage_summary(plan, graph)}
    output.document({**setting, **described, **placement_summary(result, servers, graph)})
    _report(plan, graph, servers, room, result, output)
    if plot is not None:
        output.remark(f"drawn to {plot}")
    if certificate is not None:
        output.remark(f"certificate written to {certificate}")
    return 0


def _save_certificate(path: Path, result: PlacementResult) -> None:
    document = result.certificate
    if document is None:
        raise UsageError(f"the method {result.method} leaves no certificate")
    members = [(name, value) for name, value in document.items() if name not in ("format", "version")]
    write_text(path, document_text("placement-certificate", members, []))


def _does_not_fit(output: Output, setting: Mapping[str, Any], method: str, error: DoesNotFitError) -> int:
    output.document({**setting, **dict.fromkeys(_PLAN), **infeasible_summary(method, str(error))})
    return fail(str(error), INFEASIBLE)


def _limit_s(method: str, exact: bool, time_limit: float | None) -> float | None:
    """Seconds that a search may take; an exact search asks for a method that proves something."""
    if exact and method in _HEURISTICS:
        others = ", ".join(name for name in METHODS if name not in _HEURISTICS)
        raise UsageError(f"--exact cannot go with --method {method}, which proves nothing; try {others}")
    return _EXACT_LIMIT_S if exact and time_limit is None else time_limit


def _slowest_gpu(cluster: Cluster, precision: str) -> GpuType:
    """Slowest type of GPU in a cluster, which sets the pace of the job."""
    return min(cluster.gpu_types, key=lambda kind: (kind.peak(precision), kind.name))


def _work(timing: str, plan: TrainingPlan, cluster: Cluster) -> IterationTime | TrainingPlan:
    """What is placed: a plan, which is timed on each GPU type, or a model on the slowest."""
    if timing not in _TIMINGS:
        raise UnknownNameError("timing model", timing, _TIMINGS)
    if timing == "contention":
        return plan
    graph = stage_graph(plan, _slowest_gpu(cluster, plan.precision))
    if timing == "link":
        return LinkTime.of_cluster(graph, cluster)
    return ContentionTime.of_cluster(graph, cluster, overlap=True)


def _graph_of(timing: str, plan: TrainingPlan, cluster: Cluster, result: PlacementResult) -> StageGraph:
    """Stages as they were timed for a result."""
    if timing == "contention":
        return stage_graph(plan, cluster.servers[result.placement.servers[0]].gpu_type)
    return stage_graph(plan, _slowest_gpu(cluster, plan.precision))


def _report(
    plan: TrainingPlan,
    graph: StageGraph,
    cluster: Cluster,
    room: tuple[int, ...],
    result: PlacementResult,
    output: Output,
) -> None:
    output.remark(f"{plan.network.name} on {plan.gpus} GPUs, global batch {plan.global_batch}, {plan.precision}")
    if not output.quiet:
        output.table(stage_table(plan, graph))
        output.tell("", *placement_drawing(result.placement, cluster, room))
        output.tell("", *traffic_lines(graph, result.placement), "")
    output.table(placement_table(result.placement, cluster, graph.names))
    output.tell(*placement_lines(result))
