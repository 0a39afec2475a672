"""``frostline convert``: from traces and instances to frostline's own CSV and instance files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from frostline.cli.inputs import CSV_ENDINGS, JSON_ENDINGS, Reading, Workload, read_workload
from frostline.cli.options import (
    ClusterOption,
    ConfigOption,
    DuplicatesOption,
    FormatOption,
    FractionsOption,
    JobsOption,
    JsonOption,
    LoadOption,
    LocalityOption,
    ModeOption,
    PoolOption,
    QuietOption,
    TimeUnitOption,
    ZoneOption,
    examples,
    mode_of,
)
from frostline.cli.output import Output
from frostline.errors import FileError
from frostline.problem.files import save
from frostline.report.workload import trace_lines
from frostline.traces import write_trace

__all__ = ["EXAMPLES", "check_ending", "run", "write_workload"]

EXAMPLES = examples(
    "convert philly.csv trace.csv.gz --repair",
    "convert itp.csv instance.json.gz --cluster 128x8 --load 0.9",
    "convert instance.json.gz trace.csv",
)


def run(
    source: Annotated[str, typer.Argument(metavar="IN", help="Trace file, instance file, or name of an instance.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="*.csv or *.csv.gz, *.json or *.json.gz.")],
    cluster: ClusterOption = None,
    pool: PoolOption = None,
    strict: ModeOption = None,
    trace_format: FormatOption = None,
    time_unit: TimeUnitOption = None,
    zone: ZoneOption = None,
    duplicates: DuplicatesOption = None,
    fractions: FractionsOption = None,
    locality: LocalityOption = None,
    load: LoadOption = None,
    jobs: JobsOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    config: ConfigOption = None,
) -> int:
    """Convert a trace or an instance to a trace in frostline's own CSV or to an instance, by the ending of OUT."""
    output = Output(command="convert", as_json=json, quiet=quiet)
    check_ending(target)
    reading = Reading(
        format=trace_format,
        mode=mode_of(strict),
        time_unit=time_unit,
        zone=zone,
        duplicates=duplicates,
        fractions=fractions,
        locality=locality,
        jobs=jobs,
        load=load,
    )
    workload = read_workload(source, cluster, pool, reading)
    write_workload(workload, target)
    trace = workload.summary
    output.document({"trace": trace, "jobs": len(workload.jobs), "out": str(target)})
    output.remark(*trace_lines(trace), f"written to {target}")
    return 0


def check_ending(target: Path) -> None:
    """Refuse a file name from which no format follows."""
    if not target.name.endswith((*CSV_ENDINGS, *JSON_ENDINGS)):
        raise FileError(target, f"must end in {', '.join((*CSV_ENDINGS, *JSON_ENDINGS))}")


def write_workload(workload: Workload, target: Path) -> None:
    """Write jobs as a trace or, with their cluster, as an instance, by the ending of the name."""
    if target.name.endswith(JSON_ENDINGS):
        save(workload.instance(), target)
    else:
        write_trace(target, workload.jobs)
