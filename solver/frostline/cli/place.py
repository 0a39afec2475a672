"""``frostline place``: which server holds which replica of one training job."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from frostline.cli.clusters import bandwidth, required_cluster, whole_numbers
from frostline.cli.group import INFEASIBLE, UsageError, fail
from frostline.cli.options import ConfigOption, JsonOption, QuietOption, SeedOption, examples, number, whole_number
from frostline.cli.output import Output
from frostline.errors import InvalidValueError, UnknownNameError
from frostline.placement.place import place
from frostline.placement.result import DoesNotFitError, PlacementResult
from frostline.problem import Cluster, GpuType, Network, TrainingPlan
from frostline.problem.files import load_network
from frostline.problem.library import shipped_network
from frostline.report.placement import (
    infeasible_summary,
    placement_lines,
    placement_summary,
    placement_table,
    stage_summary,
    stage_table,
)
from frostline.report.workload import cluster_summary
from frostline.timing.contention import ContentionTime
from frostline.timing.iteration_time import IterationTime
from frostline.timing.link import LinkTime
from frostline.timing.stage_graph import StageGraph, stage_graph
from frostline.units import as_int

__all__ = ["EXAMPLES", "network_of", "run"]

EXAMPLES = examples(
    "place bert_large --stages 4 --replicas 2,2,2,2 --cluster 4x8 --free 4,2,2,8",
    "place gpt2_xl --gpus 16 --cluster 4x8 --nic 12.5GB/s --timing overlap",
    "place my-network.json --stages 3 --gpus 12 --cluster cluster.json --objective consolidate --json",
)

_TIMINGS = ("contention", "overlap", "link")
_PLAN = ("stages", "global_batch", "micro_batches", "precision", "utilisation")


def run(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Network file or name (frostline list models).")],
    cluster: Annotated[
        str, typer.Option("--cluster", metavar="SERVERSxGPUS|FILE", help="Servers, such as 4x8, or a JSON file.")
    ],
    stages: Annotated[
        int | None,
        typer.Option("--stages", parser=whole_number, metavar="N", help="Contiguous stages of balanced compute."),
    ] = None,
    replicas: Annotated[
        str | None, typer.Option("--replicas", metavar="A,B,...", help="Replicas of each stage, one GPU each.")
    ] = None,
    gpus: Annotated[
        int | None,
        typer.Option(
            "--gpus", parser=whole_number, metavar="N", help="GPUs to spread over the stages, in place of --replicas."
        ),
    ] = None,
    free: Annotated[
        str | None, typer.Option("--free", metavar="A,B,...", help="Free GPUs by server; by default all.")
    ] = None,
    method: Annotated[
        str,
        typer.Option("--method", metavar="NAME", help="auto, local-search, contiguous, heavy-edge or best-fit."),
    ] = "auto",
    objective: Annotated[
        str, typer.Option("--objective", metavar="time|consolidate", help="What counts first: time, or few servers.")
    ] = "time",
    time_limit: Annotated[
        float,
        typer.Option(
            "--time-limit", parser=number, metavar="SECONDS", help="When a search stops with the best so far."
        ),
    ] = 10.0,
    global_batch: Annotated[
        int | None,
        typer.Option(
            "--global-batch", parser=whole_number, metavar="N", help="Samples per iteration; by default 32 per GPU."
        ),
    ] = None,
    micro_batches: Annotated[
        int,
        typer.Option("--micro-batches", parser=whole_number, metavar="N", help="Micro-batches that fill the pipeline."),
    ] = 1,
    precision: Annotated[str, typer.Option("--precision", metavar="NAME", help="fp32, tf32, fp16 or bf16.")] = "fp16",
    utilisation: Annotated[
        float,
        typer.Option("--utilisation", parser=number, metavar="X", help="Share of the peak FLOPs that a GPU reaches."),
    ] = 0.4,
    timing: Annotated[
        str,
        typer.Option(
            "--timing",
            metavar="NAME",
            help="contention: a server's replicas share its network card; overlap: and that while they compute; "
            "link: every GPU has its own share of the card.",
        ),
    ] = "contention",
    gpu_type: Annotated[
        str | None, typer.Option("--gpu-type", metavar="NAME", help="GPU type of SERVERSxGPUS (frostline list gpus).")
    ] = None,
    nic: Annotated[
        str | None, typer.Option("--nic", metavar="25GB/s", help="Network card of each server, one way.")
    ] = None,
    nvlink: Annotated[
        str | None, typer.Option("--nvlink", metavar="300GB/s", help="Bandwidth between GPUs of a server, one way.")
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
    room = _room(free, servers)
    counts = whole_numbers(replicas, "--replicas", 1)
    need = _need(counts, gpus)
    setting = {"model": network.name, "gpus": need, "cluster": cluster_summary(servers), "free": list(room)}
    setting |= {"timing": timing, "objective": objective, "seed": seed}
    if need > sum(room):
        why = str(DoesNotFitError(need, sum(room)))
        output.document({**setting, **dict.fromkeys(_PLAN), **infeasible_summary(method, why)})
        return fail(why, INFEASIBLE)
    fields = {"micro_batches": micro_batches, "precision": precision, "utilisation": utilisation}
    plan = _plan(network, need, stages, counts, global_batch, fields)
    graph = stage_graph(plan, _slowest_gpu(servers, precision))
    search: dict[str, Any] = {"method": method, "objective": objective, "time_limit_s": time_limit, "seed": seed}
    result = place(_model(timing, graph, servers), room, cluster=servers, **search)
    described = {name: getattr(plan, name) for name in _PLAN} | {"stages": stage_summary(plan, graph)}
    output.document({**setting, **described, **placement_summary(result, servers)})
    _report(plan, graph, servers, result, output)
    return 0


def _room(free: str | None, cluster: Cluster) -> tuple[int, ...]:
    """Free GPUs of every server; all where nothing was said."""
    room = whole_numbers(free, "--free", 0)
    if room is None:
        return cluster.capacities
    if len(room) != len(cluster.servers):
        rule = f"must have one entry for each of {len(cluster.servers)} servers"
        raise InvalidValueError("option --free", "free", free, rule)
    return room


def _need(replicas: tuple[int, ...] | None, gpus: int | None) -> int:
    """GPUs of the job."""
    if replicas is None:
        if gpus is None:
            raise UsageError("give --replicas or --gpus")
        return as_int(gpus, "option --gpus", "gpus", 1)
    if gpus not in (None, sum(replicas)):
        raise InvalidValueError("option --gpus", "gpus", gpus, f"must be the {sum(replicas)} of --replicas")
    return sum(replicas)


def network_of(model: str) -> Network:
    """Network of a file or of a name."""
    is_file = Path(model).exists() or model.endswith((".json", ".json.gz")) or Path(model).name != model
    return load_network(model) if is_file else shipped_network(model)


def _plan(
    network: Network,
    gpus: int,
    stages: int | None,
    replicas: tuple[int, ...] | None,
    global_batch: int | None,
    fields: Mapping[str, Any],
) -> TrainingPlan:
    """Plan with stages of balanced compute and the replicas that were asked for, else balanced ones."""
    if replicas is not None and stages is None:
        stages = len(replicas)
    plan = TrainingPlan.balanced(network, gpus, stages=stages, **fields)
    changes = {"replicas": replicas, "global_batch": global_batch}
    return plan.replace(**{name: value for name, value in changes.items() if value is not None})


def _slowest_gpu(cluster: Cluster, precision: str) -> GpuType:
    """Slowest type of GPU in a cluster, which sets the pace of the job."""
    kinds = {server.gpu_type for server in cluster.servers}
    return min(kinds, key=lambda kind: (kind.peak(precision), kind.name))


def _model(timing: str, graph: StageGraph, cluster: Cluster) -> IterationTime:
    if timing not in _TIMINGS:
        raise UnknownNameError("timing model", timing, _TIMINGS)
    if timing == "link":
        return LinkTime.of_cluster(graph, cluster)
    return ContentionTime.of_cluster(graph, cluster, overlap=timing == "overlap")


def _report(plan: TrainingPlan, graph: StageGraph, cluster: Cluster, result: PlacementResult, output: Output) -> None:
    output.remark(f"{plan.network.name} on {plan.gpus} GPUs, global batch {plan.global_batch}, {plan.precision}")
    if not output.quiet:
        output.table(stage_table(plan, graph))
        output.tell("")
    output.table(placement_table(result.placement, cluster, graph.names))
    output.tell(*placement_lines(result))
