"""``frostline bound``: a proved lower bound on the flow time of every schedule."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from frostline.cli.inputs import Reading, read_instance
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
from frostline.problem.documents import check_ending, document_text, write_text
from frostline.problem.job import Elastic
from frostline.relaxation import METHODS, bound_certificate, lower_bound
from frostline.report.numbers import number_text
from frostline.report.simulation import bound_summary, bound_text

__all__ = ["EXAMPLES", "run", "save_certificate"]

EXAMPLES = examples(
    "bound philly.csv --cluster 128x8", "bound run/instance.json.gz --method lagrangian --certificate bound.json"
)


def run(
    source: Annotated[str, typer.Argument(metavar="INSTANCE|TRACE", help="Instance file or name, or trace file.")],
    method: Annotated[
        str, typer.Option("--method", metavar="NAME", help=f"{', '.join(METHODS[:-1])} or {METHODS[-1]}.")
    ] = "best",
    certificate: Annotated[
        Path | None,
        typer.Option(
            "--certificate", metavar="FILE.json", help="Write what proves it (frostline check --certificate)."
        ),
    ] = None,
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
    """Lower bound on the total completion and flow time of every schedule, even of one that knows the future."""
    output = Output(command="bound", as_json=json, quiet=quiet)
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
    if certificate is not None:
        check_ending(certificate)
    _, instance = read_instance(source, cluster, pool, reading)
    bound = lower_bound(instance, method)
    if certificate is not None:
        save_certificate(certificate, bound_certificate(instance, bound))
    refused = len(instance.jobs) - bound.jobs
    output.document({**bound_summary(bound), "refused": refused, "certificate": bound.certificate})
    output.tell(bound_text(bound, any(isinstance(job.work, Elastic) for job in instance.jobs)))
    output.tell(f"total completion {number_text(bound.total_completion_s)} s")
    output.tell(f"total flow {number_text(bound.total_flow_s)} s")
    if refused:
        output.remark(f"{refused:,} jobs that never fit are left out")
    if certificate is not None:
        output.remark(f"certificate written to {certificate}")
    return 0


def save_certificate(path: Path, document: Mapping[str, Any]) -> None:
    """Write the certificate of a bound."""
    members = [(name, value) for name, value in document.items() if name not in ("format", "version")]
    write_text(path, document_text("certificate", members, []))
