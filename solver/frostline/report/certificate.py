"""What the checker and the bounds say of a schedule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from frostline.certify.document import CertificateFault
from frostline.certify.tree import BoundReport
from frostline.policies.guarantee import GuaranteeReport
from frostline.problem.instance import Instance
from frostline.problem.schedule import Schedule
from frostline.relaxation.bounds import Bound
from frostline.report.numbers import number_text
from frostline.report.table import Table
from frostline.simulation.metrics import choices_made
from frostline.timing.options import Choices
from frostline.units import instant_us
from frostline.verify.schedule import Fault

__all__ = [
    "bound_fault_summary",
    "certified_text",
    "fault_summary",
    "fault_table",
    "flow_text",
    "guarantee_fault",
    "guarantee_proof",
]


def fault_summary(fault: Fault) -> dict[str, Any]:
    """A fault as plain JSON values."""
    return {
        "kind": fault.kind.value,
        "job": fault.job,
        "server": fault.server,
        "at_s": fault.at_s,
        "text": fault.text,
    }


def fault_table(faults: Iterable[Mapping[str, Any]]) -> Table:
    """Table of faults: when, which rule, and what is wrong.

    Examples
    --------
    >>> print(fault_table([{"kind": "missing_job", "at_s": None, "text": "job 'a' never runs"}]).text())
    at s  fault        text
       -  missing_job  job 'a' never runs
    """
    rows = [(number_text(fault["at_s"]), fault["kind"], fault["text"]) for fault in faults]
    return Table(["at s", "fault", "text"], rows, left=(1, 2))


def flow_text(instance: Instance, schedule: Schedule, bound: Bound) -> str | None:
    """How far the mean flow time of a valid schedule is from a lower bound; None without jobs, or if some never end.

    Examples
    --------
    >>> from frostline.problem import Cluster, Fixed, Job
    >>> from frostline.relaxation import lower_bound
    >>> from frostline.simulation import simulate
    >>> jobs = [Job(id=i, release_s=0, work=Fixed(duration_s=10), gpus=8) for i in "ab"]
    >>> instance = Instance(cluster=Cluster.uniform(1), jobs=jobs)
    >>> flow_text(instance, simulate(instance, "fifo").schedule, lower_bound(instance))
    'mean flow is optimal: it equals the lower bound pointwise'
    """
    completion_us = schedule.completion_us
    if not completion_us or schedule.unfinished:
        return None
    release_us = sum(instant_us(job.release_s) for job in instance.jobs if job.id in completion_us)
    flow, least = Fraction(sum(completion_us.values()) - release_us), bound.completion_us - bound.release_us
    if flow == least:
        return f"mean flow is optimal: it equals the lower bound {bound.method}"
    return f"mean flow within {100 * float(flow / least - 1):.3g} % of the lower bound {bound.method}"


def bound_fault_summary(fault: CertificateFault) -> dict[str, Any]:
    """A fault of a bound certificate as plain JSON values."""
    return {"kind": fault.kind.value, "job": fault.job, "server": None, "at_s": None, "text": fault.text}


def certified_text(instance: Instance, schedule: Schedule, report: BoundReport) -> str:
    """How far a valid schedule is from the bound of a valid certificate of its instance.

    Parameters
    ----------
    instance : Instance
        The instance.
    schedule : Schedule
        The schedule.
    report : BoundReport
        What the check of the certificate gave.

    Examples
    --------
    >>> from frostline.verify import check_bound
    >>> from frostline.problem import Cluster, Fixed, Job
    >>> from frostline.relaxation import bound_certificate, lower_bound
    >>> from frostline.simulation import simulate
    >>> jobs = [Job(id=i, release_s=0, work=Fixed(duration_s=10), gpus=5) for i in "ab"]
    >>> instance = Instance(cluster=Cluster.uniform(1), jobs=jobs)
    >>> certificate = bound_certificate(instance, lower_bound(instance, "best"))
    >>> report = check_bound(instance, certificate)
    >>> certified_text(instance, simulate(instance, "fifo").schedule, report)
    'mean flow is optimal: the certificate proves that none is smaller'
    """
    completion_us, problem = schedule.completion_us, report.problem
    if problem is None or report.bound_us is None:
        return "the certificate proves nothing"
    if schedule.unfinished:
        return "the certificate says nothing of schedules that leave jobs unfinished, as this one does"
    if schedule.evictions:
        return "the certificate says nothing of schedules that interrupt jobs, as this one does"
    if problem["choices"] == "asked" and choices_made(instance, schedule) is not Choices.ASKED:
        return "the certificate says nothing of schedules that freeze layers or choose GPUs, as this one does"
    if problem["penalty"] is not None or not completion_us:
        return "the certificate cannot be compared with this schedule"
    what, objective, offset = _objective(instance, completion_us, problem)
    flow, least = objective - offset, report.bound_us - offset
    if flow == least:
        return f"{what} is optimal: the certificate proves that none is smaller"
    if least <= 0:
        return f"the certificate proves nothing of the {what}"
    return f"{what} within {100 * float(flow / least - 1):.3g} % of the least that the certificate allows"


def _objective(
    instance: Instance, completion_us: Mapping[str, int], problem: Mapping[str, Any]
) -> tuple[str, Fraction, Fraction]:
    """What a certificate bounds, its value in a schedule, and what of that no schedule can change."""
    release_us = {job.id: instant_us(job.release_s) for job in instance.jobs}
    if problem["weight"] == "last":
        return (
            "makespan",
            Fraction(max(completion_us.values())),
            Fraction(min(release_us[job] for job in completion_us)),
        )
    unit, weights = Fraction(*problem["weight_unit"]), problem["weight"] or [1] * len(problem["ids"])
    weight = {job: unit * units for job, units in zip(problem["ids"], weights, strict=True)}
    released = sum((weight[job] * release_us[job] for job in completion_us), Fraction(0))
    total = sum((weight[job] * at for job, at in completion_us.items()), Fraction(0))
    return "mean flow" if problem["weight"] is None and unit == 1 else "weighted flow", total, released


def guarantee_proof(policy: str, guarantee: GuaranteeReport) -> str:
    """What a guarantee that holds says of a schedule."""
    slack = "" if guarantee.worst_slack_s is None else f", least slack {number_text(guarantee.worst_slack_s)} s"
    return f"the {guarantee.form} guarantee of {policy} holds for every job{slack}"


def guarantee_fault(policy: str, guarantee: GuaranteeReport) -> dict[str, Any]:
    """The breach of a guarantee as a fault."""
    slack = 0.0 if guarantee.worst_slack_s is None else -guarantee.worst_slack_s
    text = f"job {guarantee.worst_job!r} misses the {guarantee.form} guarantee of {policy} by {number_text(slack)} s"
    return {"kind": "guarantee", "job": guarantee.worst_job, "server": None, "at_s": None, "text": text}
