"""``frostline check``: whether a schedule or a certificate keeps every rule, and what is proved of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from frostline.certify import check_certificate
from frostline.cli.group import UsageError
from frostline.cli.inputs import shipped_instance
from frostline.cli.options import ConfigOption, InstanceOption, JsonOption, QuietOption, examples
from frostline.cli.output import Output
from frostline.errors import FileError, FrostlineError
from frostline.policies import make_policy
from frostline.policies.guarantee import GuaranteeReport, check_guarantee
from frostline.problem import Instance, Schedule
from frostline.problem.documents import Document, read_document
from frostline.problem.files import load_instance, load_schedule
from frostline.relaxation import lower_bound
from frostline.report.certificate import (
    bound_fault_summary,
    certified_text,
    fault_summary,
    fault_table,
    flow_text,
    guarantee_fault,
    guarantee_proof,
)
from frostline.report.numbers import counted, number_text
from frostline.simulation import choices_made
from frostline.units import US_PER_S
from frostline.verify import check_bound, check_schedule
from frostline.verify.placement import check_placement_certificate

__all__ = ["EXAMPLES", "beside", "guarantee_of", "run"]

EXAMPLES = examples(
    "check run/schedule-fifo.json.gz",
    "check mine.json --instance run/instance.json.gz --json",
    "check placement-certificate.json",
    "check run/instance.json.gz --certificate bound.json run/schedule-fifo.json.gz",
    "check q06 --certificate q06-bound.json",
)

_CERTIFICATE, _BOUND = "placement-certificate", "certificate"
_NOWHERE: Mapping[str, None] = {"job": None, "server": None, "at_s": None}
_RULES = "every job runs once, after its release, on its own GPUs and for as long as its work takes, or never fits"
_PIECES = (
    "every job runs, after its release, on its own GPUs and in pieces exactly as long as its work takes, or never fits"
)


def run(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="Schedule, certificate, or the instance (or its name) that --certificate is about."
        ),
    ],
    schedule: Annotated[
        Path | None, typer.Argument(metavar="[SCHEDULE]", help="Schedule, where FILE is its instance.")
    ] = None,
    instance: InstanceOption = None,
    certificate: Annotated[
        Path | None,
        typer.Option("--certificate", metavar="FILE", help="Certificate of a bound (bound --certificate)."),
    ] = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    config: ConfigOption = None,
) -> int:
    """Check a schedule against every rule, or a certificate, list every fault, and say what is proved."""
    output = Output(command="check", as_json=json, quiet=quiet)
    shipped = shipped_instance(file)
    kinds = ["schedule", _CERTIFICATE, _BOUND, "instance"]
    kind, document = ("instance", {}) if shipped is not None else read_document(file, kinds)
    if kind == _CERTIFICATE:
        if instance is not None:
            raise UsageError("--instance goes with a schedule; the certificate of a placement states its problem")
        return _check_certificate(document, output)
    if kind == _BOUND:
        return _check_bound(document, None if instance is None else _instance(instance), None, output)
    if kind == "instance":
        if certificate is None or instance is not None:
            raise UsageError("an instance is checked with --certificate; a schedule of it comes after it, or first")
        problem = shipped or load_instance(file)
    else:
        if schedule is not None:
            raise UsageError("give one schedule")
        problem, schedule = _instance(instance or beside(Path(file))), Path(file)
    solution = None if schedule is None else load_schedule(schedule, problem)
    if certificate is not None:
        return _check_bound(read_document(certificate, [_BOUND])[1], problem, solution, output)
    assert solution is not None
    return _check_schedule(problem, solution, output)


def _instance(source: str | Path) -> Instance:
    """Instance of a file, or a shipped one by name."""
    return shipped_instance(str(source)) or load_instance(source)


def _check_schedule(problem: Instance, solution: Schedule, output: Output) -> int:
    faults, proved = _judged(problem, solution)
    return _tell(output, faults, proved, solution.policy)


def _judged(problem: Instance, solution: Schedule) -> tuple[list[Mapping[str, Any]], list[str]]:
    """Faults of a schedule, and what is proved of it where it has none."""
    faults: list[Mapping[str, Any]] = [fault_summary(fault) for fault in check_schedule(problem, solution).faults]
    if faults:
        return faults, []
    guarantee = guarantee_of(problem, solution)
    if guarantee is not None and not guarantee.holds:
        faults.append(guarantee_fault(solution.policy, guarantee))
    return faults, _proved(problem, solution, guarantee)


def _check_bound(document: Document, problem: Instance | None, solution: Schedule | None, output: Output) -> int:
    """Check the certificate of a bound, in integers, and compare a schedule with it."""
    stated = {"format": f"frostline/{_BOUND}", "version": 1, **document}
    report = check_certificate(stated) if problem is None else check_bound(problem, stated)
    faults: list[Mapping[str, Any]] = [bound_fault_summary(fault) for fault in report.faults]
    proved = [report.proved] if report.valid else []
    if problem is not None and solution is not None:
        more, told = _judged(problem, solution)
        faults, proved = faults + more, proved + told
        if not faults:
            proved.append(certified_text(problem, solution, report))
    return _tell(output, faults, proved, None if solution is None else solution.policy)


def _check_certificate(document: Document, output: Output) -> int:
    """Check the certificate of a placement, in integers and without a solver."""
    report = check_placement_certificate({"format": f"frostline/{_CERTIFICATE}", "version": 1, **document})
    faults = [{"kind": fault.kind.value, **_NOWHERE, "text": fault.text} for fault in report.faults]
    return _tell(output, faults, [report.proved] if report.valid else [], None)


def _tell(output: Output, faults: Sequence[Mapping[str, Any]], proved: Sequence[str], policy: str | None) -> int:
    valid = not faults
    output.document({"valid": valid, "faults": list(faults), "proved": list(proved), "policy": policy})
    output.tell("valid" if valid else f"not valid: {len(faults):,} faults")
    if faults:
        output.table(fault_table(faults))
    output.remark(*(f"proved: {text}" for text in proved))
    return 0 if valid else 1


def beside(schedule: Path) -> Path:
    """The instance beside a schedule, if there is one."""
    instance = schedule.with_name("instance.json.gz")
    if not instance.exists():
        raise FileError(instance, "no such file; give the instance of the schedule with --instance")
    return instance


def guarantee_of(instance: Instance, schedule: Schedule) -> GuaranteeReport | None:
    """Guarantee of the policy that the schedule names, checked; None where that policy is unknown or gives none.

    What a schedule by predicted sizes guarantees depends on what was predicted, which its file does not tell.
    """
    if schedule.predictor:
        return None
    try:
        policy = make_policy(schedule.policy)
    except FrostlineError:
        return None
    return check_guarantee(policy, instance, schedule)


def _rules(schedule: Schedule) -> str:
    """The rules that a valid schedule keeps."""
    costs = []
    if schedule.restart_us is not None:
        restart = f"{number_text(schedule.restart_us / US_PER_S)} s of restart after each eviction"
        costs.append(f"{schedule.evictions:,} evictions, {restart}")
    if schedule.level_changes:
        change = f"{number_text(schedule.level_change_us / US_PER_S)} s for each"
        costs.append(f"{schedule.level_changes:,} changes of freeze level, {change}")
    if schedule.outages:
        costs.append(f"{counted(len(schedule.outages), 'outage')}, which leave the work up to the last checkpoint")
    if schedule.unfinished:
        costs.append(
            f"{counted(len(schedule.unfinished), 'job never ends', 'jobs never end')}, because servers never come back"
        )
    return "; ".join([_PIECES, *costs]) if costs else _RULES


def _proved(instance: Instance, schedule: Schedule, guarantee: GuaranteeReport | None) -> list[str]:
    flow = flow_text(instance, schedule, lower_bound(instance, choices=choices_made(instance, schedule)))
    proved = [_rules(schedule), *([flow] if flow else [])]
    if guarantee is not None and guarantee.holds:
        proved.append(guarantee_proof(schedule.policy, guarantee))
    return proved
