"""``frostline bound``: a proved lower bound on the flow time of every schedule."""

from __future__ import annotations

from typing import Annotated

import typer

from frostline.cli.inputs import Reading, read_instance
from frostline.cli.options import (
    ClusterOption,
    ConfigOption,
    DuplicatesOption,
    FormatOption,
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
from frostline.relaxation import lower_bound
from frostline.report.numbers import number_text
from frostline.report.simulation import bound_summary, bound_text

__all__ = ["EXAMPLES", "run"]

EXAMPLES = examples("bound philly.csv --cluster 128x8", "bound run/instance.json.gz --method pointwise --json")


def run(
    source: Annotated[str, typer.Argument(metavar="INSTANCE|TRACE", help="Instance file or name, or trace file.")],
    method: Annotated[
        str, typer.Option("--method", metavar="NAME", help="trivial, srpt, mean_busy, pointwise or best.")
    ] = "best",
    cluster: ClusterOption = None,
    pool: PoolOption = None,
    strict: ModeOption = None,
    trace_format: FormatOption = None,
    time_unit: TimeUnitOption = None,
    zone: ZoneOption = None,
    duplicates: DuplicatesOption = None,
    locality: LocalityOption = None,
    load: LoadOption = None,
    jobs: JobsOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    config: ConfigOption = None,
) -> int:
    """Lower bound on the total completion and flow time of every schedule, even of one that knows the future."""
    output = Output(command="bound", as_json=json, quiet=quiet)
    reading = Reading(
        format=trace_format,
        mode=mode_of(strict),
        time_unit=time_unit,
        zone=zone,
        duplicates=duplicates,
        locality=locality,
        jobs=jobs,
        load=load,
    )
    _, instance = read_instance(source, cluster, pool, reading)
    bound = lower_bound(instance, method)
    refused = len(instance.jobs) - bound.jobs
    output.document({**bound_summary(bound), "refused": refused, "certificate": bound.certificate})
    output.tell(bound_text(bound))
    output.tell(f"total completion {number_text(bound.total_completion_s)} s")
    output.tell(f"total flow {number_text(bound.total_flow_s)} s")
    if refused:
        output.remark(f"{refused:,} jobs that never fit are left out")
    return 0
