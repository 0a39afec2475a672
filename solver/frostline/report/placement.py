"""A placement on a cluster: servers × stages, and the stages themselves."""

from __future__ import annotations

from typing import Any

from frostline.placement.result import PlacementResult
from frostline.problem.cluster import Cluster
from frostline.problem.placement import Placement
from frostline.problem.plan import TrainingPlan
from frostline.report.numbers import bytes_text, number_text
from frostline.report.stage_traffic import traffic_summary
from frostline.report.table import Table
from frostline.timing.stage_graph import StageGraph

__all__ = [
    "infeasible_summary",
    "placement_lines",
    "placement_summary",
    "placement_table",
    "stage_summary",
    "stage_table",
]


def stage_summary(plan: TrainingPlan, graph: StageGraph) -> list[dict[str, Any]]:
    """Stages of a plan as plain JSON values: layers, replicas, their GPUs, seconds of compute, bytes of gradients."""
    return [
        {
            "layers": [stage.start, stage.stop],
            "replicas": graph.replicas[s],
            "gpus_per_replica": graph.gpus_per_replica[s],
            "compute_s": graph.compute_s[s],
            "gradient_bytes": graph.gradient_bytes[s],
        }
        for s, stage in enumerate(plan.stages)
    ]


def stage_table(plan: TrainingPlan, graph: StageGraph) -> Table:
    """Table of the stages of a plan, with the bytes each sends on per iteration.

    Examples
    --------
    >>> from frostline.problem import gpu_type, shipped_network
    >>> from frostline.timing.stage_graph import stage_graph
    >>> plan = TrainingPlan.balanced(shipped_network("gpt2"), 4, stages=2)
    >>> print(stage_table(plan, stage_graph(plan, gpu_type("A100-SXM-80"))).text().splitlines()[0])
    stage  layers  replicas  compute ms  gradients  sends on
    """
    layers = plan.network.layers
    rows = [
        (
            graph.names[s],
            f"{layers[stage.start].id} .. {layers[stage.stop - 1].id}",
            _replicas_text(graph.replicas[s], graph.gpus_per_replica[s]),
            number_text(1000 * graph.compute_s[s]),
            bytes_text(graph.gradient_bytes[s]),
            bytes_text(sum(amount for (sender, _), amount in graph.edges.items() if sender == s)),
        )
        for s, stage in enumerate(plan.stages)
    ]
    return Table(["stage", "layers", "replicas", "compute ms", "gradients", "sends on"], rows, left=(0, 1))


def _replicas_text(count: int, gpus: int) -> str:
    return str(count) if gpus == 1 else f"{count} of {gpus} GPUs"


def placement_table(placement: Placement, cluster: Cluster, stages: tuple[str, ...]) -> Table:
    """Table of the used servers × the stages, with the replicas in each cell.

    Examples
    --------
    >>> table = placement_table(Placement([(0, (2, 0)), (3, (1, 4))]), Cluster.uniform(4), ("0", "1"))
    >>> print(table.text())
    server  stage 0  stage 1  GPUs
    s0            2        .     2
    s3            1        4     5
    """
    rows = [
        (cluster.servers[server].id, *(str(count) if count else "." for count in column), str(load))
        for (server, column), (_, load) in zip(placement.columns, placement.loads, strict=True)
    ]
    return Table(["server", *(f"stage {name}" for name in stages), "GPUs"], rows)


def placement_summary(result: PlacementResult, cluster: Cluster, graph: StageGraph) -> dict[str, Any]:
    """Outcome of a placement as plain JSON values, with stable keys."""
    return {
        "feasible": True,
        "why": None,
        "placement": result.placement.matrix(len(cluster.servers)).tolist(),
        "iteration_s": result.seconds,
        "bound_s": result.bound_s,
        "gap": result.gap,
        "proved_optimal": result.status.proved_optimal,
        "method": result.method,
        "source": result.status.source,
        "bound": result.status.bound,
        "cut_bytes": result.cut_bytes,
        "traffic": traffic_summary(graph, result.placement),
        "servers_used": result.servers_used,
        "runtime_s": result.runtime_s,
    }


def infeasible_summary(method: str, why: str) -> dict[str, Any]:
    """What is said where nothing fits: the keys of :func:`placement_summary` without values.

    Examples
    --------
    >>> infeasible_summary("auto", "no free GPU")["proved_optimal"]
    False
    """
    unknown = ("iteration_s", "bound_s", "gap", "source", "bound", "cut_bytes", "traffic", "servers_used", "runtime_s")
    known = {"feasible": False, "why": why, "placement": None, "method": method, "proved_optimal": False}
    return known | dict.fromkeys(unknown)


def placement_lines(result: PlacementResult) -> list[str]:
    """Lines for people: time and bound, what crosses between servers, and whether the placement is proved optimal."""
    proved = "proved optimal" if result.status.proved_optimal else f"not proved optimal, gap {100 * result.gap:.3g} %"
    time_ms, bound_ms = (f"{1000 * value:.6g} ms" for value in (result.seconds, result.bound_s))
    servers = f"{result.servers_used} server" + ("" if result.servers_used == 1 else "s")
    return [
        f"iteration {time_ms}, lower bound {bound_ms} ({result.status.bound}): {proved}",
        f"{servers}, {bytes_text(result.cut_bytes)} between servers per iteration; found by {result.status.source}",
    ]
