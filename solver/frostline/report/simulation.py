"""Outcomes of simulations: one row a policy, as data and as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from frostline.policies.guarantee import GuaranteeReport
from frostline.problem.instance import Instance
from frostline.problem.schedule import Schedule
from frostline.relaxation.bounds import Bound
from frostline.report.numbers import counted, number_text, percent_text
from frostline.report.table import Table
from frostline.simulation.engine import Result
from frostline.simulation.metrics import Metrics, measure
from frostline.simulation.predictions import PredictionFacts
from frostline.timing.options import Choices
from frostline.verify.schedule import Report

__all__ = [
    "accuracy_text",
    "bound_summary",
    "bound_text",
    "guarantee_summary",
    "guarantee_text",
    "jobs_text",
    "outage_text",
    "passed",
    "prediction_summary",
    "prediction_text",
    "result_summary",
    "result_table",
    "schedule_result",
]

Row = Mapping[str, Any]

_OF_CHOICES = {
    Choices.ASKED: " on the GPUs asked for, without freezing,",
    Choices.LEVELS: " on the GPUs asked for, freezing included,",
    Choices.ELASTIC: ", other GPUs and freezing included,",
}
_SYMBOLS = {"rho": "ρ", "theta": "θ", "E_measured": "E′", "virtual_share": "planned / unfrozen virtual flow"}
_FREEZING = ("evictions", "level changes", "lost, mean", "lost, max", "over budget")


def bound_summary(bound: Bound) -> dict[str, Any]:
    """A lower bound as plain JSON values, in seconds.

    Examples
    --------
    >>> from fractions import Fraction
    >>> bound = Bound(method="srpt", jobs=2, completion_us=Fraction(5_000_000), release_us=1_000_000)
    >>> bound_summary(bound)["mean_flow_s"]
    2.0
    """
    return {
        "method": bound.method,
        "jobs": bound.jobs,
        "total_completion_s": bound.total_completion_s,
        "total_flow_s": bound.total_flow_s,
        "mean_flow_s": bound.mean_flow_s,
    }


def bound_text(bound: Bound, elastic: bool = False) -> str:
    """Line on a lower bound, its name and its value.

    Parameters
    ----------
    bound : Bound
        The bound.
    elastic : bool
        Whether there is elastic work, so that schedules differ in what they may choose for it.

    Examples
    --------
    >>> from fractions import Fraction
    >>> bound_text(Bound(method="srpt", jobs=2, completion_us=Fraction(5_000_000), release_us=1_000_000))
    'lower bound (srpt): no schedule of these 2 jobs has a mean flow time below 2 s'
    """
    if not bound.jobs:
        return f"lower bound ({bound.method}): no job can run"
    value = f"{number_text(bound.mean_flow_s)} s"
    kind = "schedule" if bound.allows_interruptions else "schedule without interruptions"
    if elastic:
        kind += _OF_CHOICES[bound.choices]
    return f"lower bound ({bound.method}): no {kind} of these {bound.jobs:,} jobs has a mean flow time below {value}"


def guarantee_summary(guarantee: GuaranteeReport | None) -> dict[str, Any] | None:
    """Outcome of checking a guarantee as plain JSON values; None where nothing is promised."""
    if guarantee is None:
        return None
    return {
        "form": guarantee.form,
        "parameters": dict(guarantee.parameters),
        "holds": guarantee.holds,
        "worst_slack_s": guarantee.worst_slack_s,
        "worst_job": guarantee.worst_job,
    }


def prediction_summary(facts: PredictionFacts | None, predictor: str) -> dict[str, Any] | None:
    """Figures of the predictions as plain JSON values, after the name of the predictor; None where sizes were known."""
    return None if facts is None else {"predictor": predictor, **facts.as_dict()}


def result_summary(text: str, result: Result, bound: Bound, report: Report) -> dict[str, Any]:
    """Outcome of one policy as plain JSON values, with stable keys.

    Parameters
    ----------
    text : str
        The policy as it was asked for.
    result : Result
        What the simulation gave.
    bound : Bound
        Lower bound of the instance, for the choices that the schedule makes.
    report : Report
        What the checker says of the schedule.

    Examples
    --------
    >>> from frostline.verify import check_schedule
    >>> from frostline.problem import Cluster, Fixed, Instance, Job
    >>> from frostline.relaxation import lower_bound
    >>> from frostline.simulation import simulate
    >>> jobs = [Job(id=i, release_s=0, work=Fixed(duration_s=10), gpus=8) for i in "ab"]
    >>> instance = Instance(cluster=Cluster.uniform(1), jobs=jobs)
    >>> result = simulate(instance, "fifo")
    >>> row = result_summary("fifo", result, lower_bound(instance), check_schedule(instance, result.schedule))
    >>> row["mean_flow_s"], row["flow_over_bound"], row["guarantee"], row["valid"]
    (15.0, 1.0, None, True)
    """
    return {
        "policy": text,
        "parameters": dict(result.policy.parameters),
        **_flow_summary(result.schedule, result.metrics, bound),
        "guarantee": guarantee_summary(result.guarantee),
        "prediction": prediction_summary(result.prediction, result.schedule.predictor),
        "evictions": result.metrics.evictions,
        "level_changes": result.metrics.level_changes,
        **({} if result.accuracy is None else {"accuracy": result.accuracy.as_dict()}),
        **_outage_summary(result.schedule, result.metrics),
        "valid": report.valid,
        "faults": len(report.faults),
        "runtime_s": result.runtime_s,
    }


def schedule_result(
    text: str, instance: Instance, schedule: Schedule, bound: Bound, report: Report, guarantee: GuaranteeReport | None
) -> dict[str, Any]:
    """What a schedule alone tells of the outcome of its policy, with the keys of :func:`result_summary`.

    Parameters
    ----------
    text : str
        Name of the schedule.
    instance : Instance
        The instance.
    schedule : Schedule
        The schedule.
    bound : Bound
        Lower bound of the instance, for the choices that the schedule makes.
    report : Report
        What the checker says of the schedule.
    guarantee : GuaranteeReport or None
        Check of what its policy promises.

    Examples
    --------
    >>> from frostline.verify import check_schedule
    >>> from frostline.problem import Cluster, Fixed, Job, Placement, Segment
    >>> from frostline.relaxation import lower_bound
    >>> job = Job(id="a", release_s=0, work=Fixed(duration_s=10), gpus=8)
    >>> instance = Instance(cluster=Cluster.uniform(1), jobs=[job])
    >>> schedule = Schedule(segments=[Segment("a", 5_000_000, 15_000_000, Placement([(0, (8,))]))])
    >>> report = check_schedule(instance, schedule)
    >>> row = schedule_result("mine", instance, schedule, lower_bound(instance), report, None)
    >>> row["policy"], row["mean_flow_s"], row["flow_over_bound"], row["valid"]
    ('mine', 15.0, 1.5, True)
    """
    metrics = measure(instance, schedule)
    return {
        "policy": text,
        "parameters": {},
        **_flow_summary(schedule, metrics, bound),
        "guarantee": guarantee_summary(guarantee),
        "prediction": None,
        "evictions": metrics.evictions,
        "level_changes": metrics.level_changes,
        **_outage_summary(schedule, metrics),
        "valid": report.valid,
        "faults": len(report.faults),
        "runtime_s": None,
    }


def _flow_summary(schedule: Schedule, metrics: Metrics, bound: Bound) -> dict[str, Any]:
    """Counts of jobs, flow times and their bound."""
    flow_s, bound_s = metrics.mean_flow_s, bound.mean_flow_s
    return {
        "submitted": metrics.submitted,
        "jobs": metrics.jobs,
        "refused": metrics.refused,
        "refused_jobs": [refusal.job for refusal in schedule.refused],
        "unfinished": metrics.unfinished,
        "mean_flow_s": flow_s,
        "median_flow_s": metrics.median_flow_s,
        "p99_flow_s": metrics.p99_flow_s,
        "max_flow_s": metrics.max_flow_s,
        "mean_wait_s": metrics.mean_wait_s,
        "makespan_s": metrics.makespan_s,
        "utilisation": metrics.utilisation,
        "gpu_hours": metrics.gpu_hours,
        "bound_mean_flow_s": bound_s,
        "bound_method": bound.method,
        "bound_choices": bound.choices.value,
        "flow_over_bound": flow_s / bound_s if flow_s is not None and bound_s and not metrics.unfinished else None,
    }


def _outage_summary(schedule: Schedule, metrics: Metrics) -> dict[str, Any]:
    """Outages and what they cost; nothing where there were none."""
    if not schedule.outages:
        return {}
    return {
        "outages": len(schedule.outages),
        "failed_runs": metrics.failed_runs,
        "lost_gpu_hours": metrics.lost_gpu_hours,
        "unfinished_jobs": list(schedule.unfinished),
    }


def outage_text(row: Row) -> str | None:
    """Line on what outages cost one policy; None where there were none.

    Examples
    --------
    >>> facts = {"outages": 2, "failed_runs": 3, "lost_gpu_hours": 1.5, "unfinished_jobs": ["a", "b"]}
    >>> outage_text({"policy": "fifo", **facts})
    'fifo: 2 outages cut off 3 runs, 1.5 GPU-hours lost; 2 jobs wait for servers that never come back'
    """
    if "outages" not in row:
        return None
    cut = f"{counted(row['outages'], 'outage')} cut off {counted(row['failed_runs'], 'run')}"
    left = len(row["unfinished_jobs"])
    waiting = f"; {counted(left, 'job waits', 'jobs wait')} for servers that never come back" if left else ""
    return f"{row['policy']}: {cut}, {number_text(row['lost_gpu_hours'])} GPU-hours lost{waiting}"


def result_table(rows: Sequence[Row]) -> Table:
    """Table of policies: flow times in seconds, utilisation, distance to the bound, worst slack, validity.

    Where something was frozen, also evictions, level changes, and the points of accuracy that jobs truly lost.
    """
    freezes = any(row.get("accuracy") for row in rows)
    header = ["policy", "mean flow s", "median s", "p99 s", "max s", "mean wait s", "makespan s", "utilisation"]
    header += ["flow/bound", "worst slack s", *(_FREEZING if freezes else ()), "valid"]
    return Table(header, [_cells(row, freezes) for row in rows])


def _cells(row: Row, freezes: bool) -> Sequence[str]:
    names = ("mean_flow_s", "median_flow_s", "p99_flow_s", "max_flow_s", "mean_wait_s", "makespan_s")
    ratio, guarantee = row["flow_over_bound"], row["guarantee"]
    return (
        row["policy"],
        *(number_text(row[name]) for name in names),
        percent_text(row["utilisation"]),
        "-" if ratio is None else f"{ratio:.4f}",
        number_text(guarantee["worst_slack_s"] if guarantee else None),
        *(_freezing_cells(row) if freezes else ()),
        "yes" if row["valid"] else f"no: {row['faults']} faults",
    )


def _freezing_cells(row: Row) -> Sequence[str]:
    """Evictions, level changes, points lost in the mean and at most, and the share of frozen jobs over their budget."""
    facts = row.get("accuracy")
    lost = (number_text(facts[name]) for name in ("mean_lost_points", "max_lost_points")) if facts else ("-", "-")
    over = percent_text(facts["over_budget_share"]) if facts else "-"
    return f"{row['evictions']:,}", f"{row['level_changes']:,}", *lost, over


def accuracy_text(row: Row) -> str | None:
    """Line on what freezing truly cost under one policy; None where nothing was frozen.

    Examples
    --------
    >>> facts = {"jobs": 9, "frozen": 4, "mean_lost_points": 0.25, "p90_lost_points": 0.4, "max_lost_points": 0.75,
    ...          "mean_believed_points": 0.5, "over_budget_share": 0.25, "max_overspent_points": 0.25}
    >>> accuracy_text({"policy": "icefrog-rigid", "accuracy": facts})
    'icefrog-rigid: froze 4 of 9 jobs, which lost 0.25 points, believed 0.5, at most 0.75; 25.0 % over their budget'
    """
    facts = row.get("accuracy")
    if not facts:
        return None
    lost = (
        f"lost {number_text(facts['mean_lost_points'])} points, believed {number_text(facts['mean_believed_points'])}"
    )
    most = (
        f"at most {number_text(facts['max_lost_points'])}; {percent_text(facts['over_budget_share'])} over their budget"
    )
    return f"{row['policy']}: froze {facts['frozen']:,} of {facts['jobs']:,} jobs, which {lost}, {most}"


def guarantee_text(row: Row) -> str | None:
    """Line on the guarantee of one policy, its parameters and whether it holds; None where there is none.

    Examples
    --------
    >>> guarantee = {"form": "budget", "parameters": {"G": 8, "B": 7, "rho": 1.0, "theta": 1.25, "E": 0},
    ...              "holds": True, "worst_slack_s": 2.5, "worst_job": "a"}
    >>> guarantee_text({"policy": "asrpt-strict", "guarantee": guarantee})
    "asrpt-strict: budget guarantee, G = 8, B = 7, ρ = 1, θ = 1.25, E = 0; holds, least slack 2.5 s (job 'a')"
    """
    guarantee = row["guarantee"]
    if guarantee is None:
        return None
    facts = ", ".join(_fact(name, value) for name, value in guarantee["parameters"].items())
    outcome = "holds" if guarantee["holds"] else "is VIOLATED"
    slack = guarantee["worst_slack_s"]
    worst = "" if slack is None else f", least slack {number_text(slack)} s (job {guarantee['worst_job']!r})"
    return f"{row['policy']}: {guarantee['form']} guarantee, {facts}; {outcome}{worst}"


def prediction_text(row: Row) -> str | None:
    """Line on what the predictions of one policy were like, and what became of them; None where sizes were known.

    Examples
    --------
    >>> facts = {"predictor": "median", "jobs": 40, "cold_start_share": 0.25, "overruns": 3, "repredictions": 7,
    ...          "most_out_of_order_gpus": 2, "a": 0.5, "b": 2.0, "D": 4.0}
    >>> prediction_text({"policy": "sjf", "prediction": facts})
    'sjf: 40 jobs predicted by median, 25.0 % cold starts, distortion 4 (a = 0.5, b = 2), 3 overruns, 7 new beliefs'
    """
    facts = row["prediction"]
    if facts is None or not facts["jobs"]:
        return None
    cold = f"{percent_text(facts['cold_start_share'])} cold starts"
    ratios = f"distortion {number_text(facts['D'])} (a = {number_text(facts['a'])}, b = {number_text(facts['b'])})"
    later = f"{facts['overruns']:,} overruns, {facts['repredictions']:,} new beliefs"
    return f"{row['policy']}: {facts['jobs']:,} jobs predicted by {facts['predictor']}, {cold}, {ratios}, {later}"


def _fact(name: str, value: object) -> str:
    unit = " s" if name.endswith("_s") else ""
    base = name.removesuffix("_s")
    symbol = "Γ" if base == "gamma" else _SYMBOLS.get(base, base)
    shown = number_text(value) if isinstance(value, (int, float)) else str(value)
    return f"{symbol} = {shown}{unit}"


def jobs_text(row: Row) -> str:
    """Line that accounts for every job that was submitted.

    Examples
    --------
    >>> jobs_text({"submitted": 5, "jobs": 4, "refused": 1, "unfinished": 0})
    'submitted 5 = finished 4 + refused 1'
    """
    unfinished = f" + UNFINISHED {row['unfinished']:,}" if row["unfinished"] else ""
    return f"submitted {row['submitted']:,} = finished {row['jobs']:,} + refused {row['refused']:,}{unfinished}"


def passed(row: Row) -> bool:
    """Whether a policy finished all jobs with a valid schedule, within its guarantee if it gives one."""
    guarantee = row["guarantee"]
    return row["valid"] and not row["unfinished"] and (guarantee is None or guarantee["holds"])
