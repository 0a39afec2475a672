"""``frostline generate``: synthetic traces and instances."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from frostline.cli.clusters import required_cluster
from frostline.cli.convert import check_ending, write_workload
from frostline.cli.inputs import Workload, as_locality
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
from frostline.report.workload import trace_lines
from frostline.traces import generate_jobs

__all__ = ["EXAMPLES", "run"]

EXAMPLES = examples(
    "generate --jobs 5000 --cluster 64x8 --load 0.9 --seed 1 --out trace.csv.gz",
    "generate --jobs 200 --pool 64 --histogram mixed --cv 1 --out instance.json",
)


def run(
    jobs: Annotated[int, typer.Option("--jobs", parser=whole_number, metavar="N", help="Number of jobs.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="*.csv or *.csv.gz, *.json or *.json.gz.")],
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
    locality: LocalityOption = None,
    seed: SeedOption = 0,
    json: JsonOption = False,
    quiet: QuietOption = False,
    config: ConfigOption = None,
) -> int:
    """Generate jobs like those of public traces: a CSV trace, or an instance with its cluster, by the ending of OUT."""
    output = Output(command="generate", as_json=json, quiet=quiet)
    check_ending(out)
    servers = required_cluster(cluster, pool)
    figures = {"load": load, "interarrival_cv": cv, "diurnal": diurnal}
    made = generate_jobs(
        jobs, seed=seed, gpus=servers.gpus, histogram=histogram, locality=as_locality(locality), **figures
    )
    provenance = {"made": "frostline generate", "seed": str(seed), "histogram": histogram}
    provenance |= {name: f"{value:g}" for name, value in figures.items()}
    workload = Workload(name=f"generated-{jobs}-{seed}", jobs=made, cluster=servers, provenance=provenance)
    write_workload(workload, out)
    trace = workload.summary
    output.document({"trace": trace, "jobs": len(made), "seed": seed, "out": str(out)})
    output.remark(*trace_lines(trace), f"written to {out}")
    return 0
