"""``frostline generate``: synthetic traces and instances."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from frostline.cli.clusters import required_cluster
from frostline.cli.convert import check_ending, write_workload
from frostline.cli.families import write_families
from frostline.cli.group import UsageError
from frostline.cli.inputs import CSV_ENDINGS, Workload, as_locality
from frostline.cli.options import (
    ClusterOption,
    ConfigOption,
    JsonOption,
    LocalityOption,
    PoolOption,
    QuietOption,
    SeedOption,
    examples,
    number,
    whole_number,
)
from frostline.cli.output import Output
from frostline.problem.job import Job
from frostline.report.workload import trace_lines
from frostline.traces import generate_jobs, generate_recurring_jobs

__all__ = ["EXAMPLES", "run"]

EXAMPLES = examples(
    "generate --jobs 5000 --cluster 64x8 --load 0.9 --seed 1 --out trace.csv.gz",
    "generate --jobs 200 --pool 64 --histogram mixed --cv 1 --out instance.json",
    "generate --family tiny,small --out library/",
    "generate --recurring --jobs 20000 --cluster 64x8 --estimate-factor 2 --out recurring.csv.gz",
)


def _share(option: str, text: str) -> Any:
    return typer.Option(option, parser=number, metavar="X", help=text)


def run(
    out: Annotated[
        Path,
        typer.Option("--out", metavar="FILE", help="*.csv or *.csv.gz, *.json or *.json.gz; a folder of families."),
    ],
    jobs: Annotated[
        int | None, typer.Option("--jobs", parser=whole_number, metavar="N", help="Number of jobs.")
    ] = None,
    family: Annotated[
        str | None,
        typer.Option(
            "--family", metavar="A,B,...|all", help="Make shipped families anew: tiny, small, medium, online."
        ),
    ] = None,
    stored: Annotated[
        bool, typer.Option("--stored", help="With --family: only the instances that are shipped as files.")
    ] = False,
    cluster: ClusterOption = None,
    pool: PoolOption = None,
    load: Annotated[
        float, typer.Option("--load", parser=number, metavar="X", help="Offered load of the cluster.")
    ] = 0.9,
    cv: Annotated[
        float,
        typer.Option("--cv", parser=number, metavar="X", help="Coefficient of variation of the time between jobs."),
    ] = 2.3,
    diurnal: Annotated[
        float,
        typer.Option(
            "--diurnal", parser=number, metavar="X", help="Daily swing of the rate of arrivals, from 0 to below 1."
        ),
    ] = 0.0,
    histogram: Annotated[
        str, typer.Option("--histogram", metavar="NAME", help="Widths of the jobs: philly, itp or mixed.")
    ] = "philly",
    recurring: Annotated[
        bool,
        typer.Option("--recurring", help="Runs of templates that users repeat, with names, estimates and statuses."),
    ] = False,
    recurring_share: Annotated[
        float | None, _share("--recurring-share", "Share of jobs in groups of at least 5; by default 0.65.")
    ] = None,
    new_users: Annotated[float | None, _share("--new-users", "Share of users who come later; by default 0.3.")] = None,
    drift: Annotated[
        float | None, _share("--drift", "How much templates change over the trace, as a logarithm; by default 0.3.")
    ] = None,
    killed: Annotated[float | None, _share("--killed", "Share of jobs that are killed; by default 0.09.")] = None,
    failed: Annotated[float | None, _share("--failed", "Share of jobs that fail; by default 0.305.")] = None,
    estimate_factor: Annotated[
        float | None, _share("--estimate-factor", "Estimates over typical run times, before rounding; by default 1.5.")
    ] = None,
    work: Annotated[
        str | None,
        typer.Option(
            "--work", metavar="fixed|profiled", help="What is known of a job: its duration or its iterations."
        ),
    ] = None,
    locality: LocalityOption = None,
    seed: SeedOption = 0,
    json: JsonOption = False,
    quiet: QuietOption = False,
    config: ConfigOption = None,
) -> int:
    """Generate jobs like those of public traces: a CSV trace, or an instance with its cluster, by the ending of OUT."""
    output = Output(command="generate", as_json=json, quiet=quiet)
    if family is not None:
        given = {"--jobs": jobs, "--cluster": cluster, "--pool": pool, "--locality": locality}
        given |= {"--recurring": recurring or None, "--seed": seed or None}
        return write_families(family, out, stored, given, output)
    if stored or jobs is None:
        raise UsageError("--stored goes with --family" if stored else "give --jobs, or --family")
    check_ending(out)
    servers = required_cluster(cluster, pool)
    figures: dict[str, Any] = {"histogram": histogram, "load": load, "interarrival_cv": cv, "diurnal": diurnal}
    figures |= {} if recurring_share is None else {"recurring_share": recurring_share}
    special = {
        "--new-users": ("new_users", new_users),
        "--drift": ("drift", drift),
        "--killed": ("killed_share", killed),
        "--failed": ("failed_share", failed),
        "--estimate-factor": ("estimate_factor", estimate_factor),
        "--work": ("work", work),
    }
    figures |= _asked(special, recurring)
    if work == "profiled" and out.name.endswith(CSV_ENDINGS):
        raise UsageError("a CSV trace holds durations only; write --work profiled to *.json or *.json.gz")
    generate = generate_recurring_jobs if recurring else generate_jobs
    made: tuple[Job, ...] = generate(jobs, seed=seed, gpus=servers.gpus, locality=as_locality(locality), **figures)
    provenance = {"made": "frostline generate --recurring" if recurring else "frostline generate", "seed": str(seed)}
    provenance |= {name: f"{value:g}" if isinstance(value, float) else value for name, value in figures.items()}
    workload = Workload(name=f"generated-{jobs}-{seed}", jobs=made, cluster=servers, provenance=provenance)
    write_workload(workload, out)
    trace = workload.summary
    output.document({"trace": trace, "jobs": len(made), "seed": seed, "out": str(out)})
    output.remark(*trace_lines(trace), f"written to {out}")
    return 0


def _asked(special: Mapping[str, tuple[str, Any]], recurring: bool) -> dict[str, Any]:
    """Arguments that only go with recurring jobs, as far as they were asked for."""
    asked = {option: pair for option, pair in special.items() if pair[1] is not None}
    if asked and not recurring:
        raise UsageError(f"{next(iter(asked))} goes with --recurring")
    return dict(asked.values())
