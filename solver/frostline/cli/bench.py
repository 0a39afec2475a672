"""``frostline bench``: the library of instances, what is known of them, and how policies compare with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from frostline.cli.group import INFEASIBLE, UsageError
from frostline.cli.options import ConfigOption, JsonOption, QuietOption, examples, number, whole_number
from frostline.cli.output import Output
from frostline.policies import make_policy
from frostline.records import Effort, Outcome, Record, faults_of, improve, library_folder, read_records
from frostline.records.evidence import total_us
from frostline.report.records import gap_table, outcome_line, record_summary, record_table
from frostline.simulation import simulate
from frostline.traces.library import instance_names, load_named_instance, matching_names
from frostline.units import US_PER_S

__all__ = ["EXAMPLES", "run"]

EXAMPLES = examples(
    "bench --only tiny,small",
    "bench --only small/pool-* --policy asrpt,sjf,easy",
    "bench --check",
    "bench --reprove --only tiny/pool-01 --folder instances",
)

_EFFORT = Effort()


def run(
    only: Annotated[
        str | None,
        typer.Option(
            "--only", metavar="A,B,...", help="Names, patterns such as small/pool-*, or families; all without."
        ),
    ] = None,
    policy: Annotated[
        str | None, typer.Option("--policy", metavar="A,B,...", help="Run policies, and compare with what is known.")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Check every stored schedule and certificate.")] = False,
    reprove: Annotated[
        bool, typer.Option("--reprove", help="Check, and search for better schedules and bounds; goes on where it was.")
    ] = False,
    work: Annotated[
        float,
        typer.Option("--work", parser=number, metavar="X", help="Work of a search for a schedule, about seconds."),
    ] = _EFFORT.work,
    nodes: Annotated[
        int, typer.Option("--nodes", parser=whole_number, metavar="N", help="Most nodes of an optimality tree.")
    ] = _EFFORT.nodes,
    again: Annotated[
        bool, typer.Option("--again", help="Search where that was done before with no less effort, too.")
    ] = False,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--folder", metavar="DIR", help="Folder of bounds.json and its evidence; by default the shipped one."
        ),
    ] = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    config: ConfigOption = None,
) -> int:
    """Show what is known of the shipped instances, compare policies with it, check it, or improve it."""
    output = Output(command="bench", as_json=json, quiet=quiet)
    if check + reprove + (policy is not None) > 1:
        raise UsageError("give one of --policy, --check and --reprove")
    names = instance_names() if only is None else matching_names(_listed(only))
    home = library_folder() if folder is None else folder
    if reprove:
        return _reprove(names, home, Effort(work=work, nodes=nodes), again, output)
    records = read_records(home)
    known = [records[name] for name in names if name in records]
    if check:
        return _check(known, home, output)
    if policy is not None:
        return _compare(known, _listed(policy), output)
    output.document({"records": [record_summary(record) for record in known]})
    output.table(record_table(known))
    proved = sum(record.proved for record in known)
    output.remark(f"{len(known)} instances, {proved} proved optimal by a certificate")
    return 0


def _listed(text: str) -> list[str]:
    return [name for name in map(str.strip, text.split(",")) if name]


def _check(records: list[Record], folder: Path, output: Output) -> int:
    found = list(_faults(records, folder, output))
    output.document({"valid": not found, "instances": len(records), "faults": found})
    for fault in found:
        output.tell(f"{fault['name']}: {fault['text']}")
    output.tell(f"{len(records)} instances, {len(found)} faults")
    return INFEASIBLE if found else 0


def _faults(records: list[Record], folder: Path, output: Output) -> Iterator[dict[str, str]]:
    with output.progress("checking", len(records)) as tell:
        for done, record in enumerate(records, 1):
            for text in faults_of(record, load_named_instance(record.name), folder):
                yield {"name": record.name, "text": text}
            if tell is not None:
                tell(done, len(records))


def _compare(records: list[Record], policies: list[str], output: Output) -> int:
    """Total flow of policies over that of the best known schedule; ones that interrupt jobs may be better."""
    for name in policies:
        make_policy(name)
    rows: list[dict[str, Any]] = []
    with output.progress("running", len(records)) as tell:
        for done, record in enumerate(records, 1):
            instance = load_named_instance(record.name)
            flows = {
                name: (total_us(simulate(instance, name).schedule) - record.release_us) / US_PER_S for name in policies
            }
            rows.append({"name": record.name, "best_flow_s": record.flow_s, "flow_s": flows})
            if tell is not None:
                tell(done, len(records))
    output.document({"results": rows})
    output.table(gap_table(rows, policies))
    return 0


def _reprove(names: Iterable[str], folder: Path, effort: Effort, again: bool, output: Output) -> int:
    chosen, outcomes = tuple(names), list[Outcome]()
    with output.progress("proving", len(chosen)) as tell:
        for outcome in improve(chosen, folder, effort, again=again):
            outcomes.append(outcome)
            output.remark(outcome_line(outcome))
            if tell is not None:
                tell(len(outcomes), len(chosen))
    results = [{**record_summary(one.record), "verdict": one.verdict.value} for one in outcomes]
    output.document({"results": results})
    proved = sum(outcome.record.proved for outcome in outcomes)
    output.tell(f"{len(outcomes)} instances, {proved} proved optimal by a certificate")
    return 0
