"""``frostline check``: whether a schedule or a certificate keeps every rule, and what is proved of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from frostline.certify import check_schedule
from frostline.certify.placement import check_placement_certificate
from frostline.cli.group import UsageError
from frostline.cli.options import ConfigOption, JsonOption, QuietOption, examples
from frostline.cli.output import Output
from frostline.errors import FileError, FrostlineError
from frostline.policies import make_policy
from frostline.policies.guarantee import GuaranteeReport, check_guarantee
from frostline.problem import Instance, Schedule
from frostline.problem.documents import Document, read_document
from frostline.problem.files import load_instance, load_schedule
from frostline.relaxation import lower_bound
from frostline.report.certificate import fault_summary, fault_table, flow_text, guarantee_fault, guarantee_proof

__all__ = ["EXAMPLES", "run"]

EXAMPLES = examples(
    "check run/schedule-fifo.json.gz",
    "check mine.json --instance run/instance.json.gz --json",
    "check placement-certificate.json",
)

_CERTIFICATE = "placement-certificate"
_NOWHERE: Mapping[str, None] = {"job": None, "server": None, "at_s": None}
_RULES = "every job runs once, after its release, on its own GPUs and for as long as its work takes, or never fits"


def run(
    schedule: Annotated[
        Path, typer.Argument(metavar="FILE", help="Schedule, or certificate of a placement (place --certificate).")
    ],
    instance: Annotated[
        Path | None,
        typer.Option("--instance", metavar="FILE", help="Its instance; by default instance.json.gz beside it."),
    ] = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    config: ConfigOption = None,
) -> int:
    """Check a schedule against every rule, list every fault, and say what is proved of it."""
    output = Output(command="check", as_json=json, quiet=quiet)
    kind, document = read_document(schedule, ["schedule", _CERTIFICATE])
    if kind == _CERTIFICATE:
        if instance is not None:
            raise UsageError("--instance goes with a schedule; the certificate of a placement states its problem")
        return _check_certificate(document, output)
    problem = load_instance(instance or _beside(schedule))
    solution = load_schedule(schedule, problem)
    faults = [fault_summary(fault) for fault in check_schedule(problem, solution).faults]
    proved: list[str] = []
    if not faults:
        guarantee = _guarantee(problem, solution)
        if guarantee is not None and not guarantee.holds:
            faults.append(guarantee_fault(solution.policy, guarantee))
        proved = _proved(problem, solution, guarantee)
    return _tell(output, faults, proved, solution.policy)


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


def _beside(schedule: Path) -> Path:
    instance = schedule.with_name("instance.json.gz")
    if not instance.exists():
        raise FileError(instance, "no such file; give the instance of the schedule with --instance")
    return instance


def _guarantee(instance: Instance, schedule: Schedule) -> GuaranteeReport | None:
    """Guarantee of the policy that the schedule names, checked; None where that policy is unknown or gives none."""
    try:
        policy = make_policy(schedule.policy)
    except FrostlineError:
        return None
    return check_guarantee(policy, instance, schedule)


def _proved(instance: Instance, schedule: Schedule, guarantee: GuaranteeReport | None) -> list[str]:
    flow = flow_text(instance, schedule, lower_bound(instance))
    proved = [_RULES, *([flow] if flow else [])]
    if guarantee is not None and guarantee.holds:
        proved.append(guarantee_proof(schedule.policy, guarantee))
    return proved
