"""``frostline freeze``: what freezing the first layers of a training job saves and costs, level by level."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from frostline.cli.clusters import bandwidth, free_gpus, required_cluster
from frostline.cli.group import INFEASIBLE, fail
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
from frostline.errors import InvalidValueError
from frostline.freezing import DebtLaw, FreezablePlan, FreezeLevels, debt_prior, freeze_menu, freeze_units
from frostline.freezing.frozen_graph import as_exchange
from frostline.freezing.penalty import MAX_POINTS
from frostline.placement.request import DoesNotFitError
from frostline.problem import Network, TrainingPlan
from frostline.report.freeze import (
    FreezeAdvice,
    advice_lines,
    advice_summary,
    freeze_advice,
    freeze_remarks,
    freeze_table,
    level_summary,
)
from frostline.report.picture import check_plot
from frostline.report.placement import stage_summary
from frostline.report.plot_freeze import save_freeze_plot
from frostline.report.workload import cluster_summary
from frostline.timing.stage_graph import stage_graph
from frostline.units import as_finite

__all__ = ["EXAMPLES", "run"]

EXAMPLES = examples(
    "freeze resnet50 --gpus 8 --cluster 2x4 --family cnn",
    "freeze bert_large --gpus 8 --cluster 2x4 --family fine-tuning --comm rebuild --budget 0.5 --plot menu.png",
    "freeze gpt2 --stages 2 --replicas 4,4 --cluster 2x4 --family transformer --progress 0.7 --json",
)

_PLAN = ("stages", "global_batch", "micro_batches", "precision", "utilisation")
_TOO_LARGE = "without freezing the job does not fit the memory of its GPUs, and nothing may be frozen in the warm-up"


def run(
    model: ModelArgument,
    cluster: ServersOption,
    stages: StagesOption = None,
    replicas: ReplicasOption = None,
    gpus_per_replica: ReplicaGpusOption = None,
    gpus: GpusOption = None,
    free: FreeOption = None,
    comm: Annotated[
        str,
        typer.Option(
            "--comm",
            metavar="static|rebuild",
            help="Gradients exchanged once units are frozen: all (static), or those of trained units (rebuild).",
        ),
    ] = "static",
    family: Annotated[
        str,
        typer.Option(
            "--family",
            metavar="NAME",
            help="Whose prior tells the accuracy debt: cnn, fine-tuning, mlp, transformer or unknown, the costliest.",
        ),
    ] = "unknown",
    budget: Annotated[
        float,
        typer.Option(
            "--budget",
            parser=number,
            metavar="POINTS",
            help="Points of final accuracy that freezing may cost from now on; best is the level now on the "
            "fastest plan within them for the rest of the training.",
        ),
    ] = 1.0,
    progress: Annotated[
        float | None,
        typer.Option(
            "--progress",
            parser=number,
            metavar="S",
            help="Share of the training that is done, from 0 to 1; by default the end of the warm-up.",
        ),
    ] = None,
    warm_up: Annotated[
        float | None,
        typer.Option(
            "--warm-up",
            parser=number,
            metavar="S",
            help="Progress before which nothing may be frozen; by default that of the family.",
        ),
    ] = None,
    time_limit: TimeLimitOption = None,
    global_batch: GlobalBatchOption = None,
    micro_batches: MicroBatchesOption = 1,
    precision: PrecisionOption = "fp16",
    utilisation: UtilisationOption = 0.4,
    gpu_type: GpuTypeOption = None,
    nic: NicOption = None,
    nvlink: NvlinkOption = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw menu and plan to a PNG, PDF or SVG file.")
    ] = None,
    seed: SeedOption = 0,
    json: JsonOption = False,
    quiet: QuietOption = False,
    config: ConfigOption = None,
) -> int:
    """Menu of the freeze levels of a job, and the level now on the fastest plan whose debt stays within the budget."""
    output = Output(command="freeze", as_json=json, quiet=quiet)
    network = network_of(model)
    cards = {"nic_bytes_per_s": bandwidth(nic, "--nic"), "nvlink_bytes_per_s": bandwidth(nvlink, "--nvlink")}
    servers = required_cluster(cluster, None, gpu_type=gpu_type, **cards)
    room = free_gpus(free, servers)
    options = PlanOptions.of(replicas=replicas, gpus=gpus, sizes=gpus_per_replica, stages=stages)
    need = options.need
    law = _law(family, warm_up)
    terms = _terms(law, budget, progress)
    levels = _levels(network)
    setting = {"model": network.name, "gpus": need, "cluster": cluster_summary(servers), "free": list(room)}
    setting |= {"comm": as_exchange(comm).value, "family": family, "law": _law_summary(law), **terms, "seed": seed}
    setting |= {"units": [unit.name for unit in levels.units]}
    if plot is not None:
        check_plot(plot)
    if need > sum(room):
        return _does_not_fit(output, setting, DoesNotFitError(need, sum(room)))
    fields = {"micro_batches": micro_batches, "precision": precision, "utilisation": utilisation}
    plan = options.plan(network, global_batch, fields)
    search: dict[str, Any] = {"time_limit_s": time_limit, "seed": seed}
    try:
        rows = freeze_menu(FreezablePlan.of(plan, comm=comm), servers, levels=levels, free=room, **search)
    except DoesNotFitError as error:
        return _does_not_fit(output, setting, error)
    advice = freeze_advice(rows, law, global_batch=plan.global_batch, **terms)
    if plot is not None:
        save_freeze_plot(plot, advice, title=f"{network.name} on {need} GPUs, {comm} exchange, family {family}")
    graph = stage_graph(plan, servers.servers[rows[0].placement.servers[0]].gpu_type)
    described = {name: getattr(plan, name) for name in _PLAN} | {"stages": stage_summary(plan, graph)}
    described |= {"why": None if advice.plan else _TOO_LARGE, "levels": level_summary(advice, servers)}
    output.document({**setting, **described, **advice_summary(advice)})
    return _report(plan, advice, family, output, plot)


def _law(family: str, warm_up: float | None) -> DebtLaw:
    """Prior of a family, with another warm-up where one was asked for."""
    law = debt_prior(family)
    if warm_up is None:
        return law
    return replace(law, warm_up=as_finite(warm_up, "option --warm-up", "progress", 0.0, 1.0))


def _terms(law: DebtLaw, budget: float, progress: float | None) -> dict[str, float]:
    """Budget and progress, checked; without a progress it is that at which freezing may begin."""
    points = as_finite(budget, "option --budget", "points", 0.0, MAX_POINTS)
    done = law.warm_up if progress is None else as_finite(progress, "option --progress", "progress", 0.0, 1.0)
    if done == 1.0:
        option = "--warm-up" if progress is None else "--progress"
        raise InvalidValueError(f"option {option}", "progress", done, "must be below 1: nothing is left to train")
    return {"budget_points": points, "progress": done}


def _levels(network: Network) -> FreezeLevels:
    """Levels of a network, at least one above 0."""
    levels = FreezeLevels.evenly(freeze_units(network).units)
    subject, count = f"network {network.name!r}", len(levels.units)
    if count == 1:
        rule = "must be at least 2, the last of which is never frozen: no layer lies on every path but the last one"
        raise InvalidValueError(subject, "freeze units", count, rule)
    if len(levels) == 1:
        rule = "must have a level above 0: freezing all units but the last saves neither work nor gradients"
        raise InvalidValueError(subject, "freeze levels", levels.frozen_units, rule)
    return levels


def _law_summary(law: DebtLaw) -> dict[str, float]:
    return {name: getattr(law, name) for name in ("a", "A", "c", "B_0", "warm_up")}


def _does_not_fit(output: Output, setting: Mapping[str, Any], error: DoesNotFitError) -> int:
    nothing = dict.fromkeys(_PLAN) | {"why": str(error), "levels": [], "best": None, "plan": None}
    output.document({**setting, **nothing})
    return fail(str(error), INFEASIBLE)


def _report(plan: TrainingPlan, advice: FreezeAdvice, family: str, output: Output, plot: Path | None) -> int:
    output.remark(f"{plan.network.name} on {plan.gpus} GPUs, global batch {plan.global_batch}, {plan.precision}")
    output.table(freeze_table(advice))
    output.tell(*advice_lines(advice))
    output.remark(*freeze_remarks(advice, family))
    if plot is not None:
        output.remark(f"drawn to {plot}")
    return fail(_TOO_LARGE, INFEASIBLE) if advice.plan is None else 0
