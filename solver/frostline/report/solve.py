"""What a solve found, as data and as lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from frostline.offline import Certified, Explanation, Objective, SolveResult, SolveStatus
from frostline.offline.stop import gap_of
from frostline.report.numbers import number_text, percent_text
from frostline.report.table import Table
from frostline.units import seconds

__all__ = ["certified_line", "certified_summary", "solve_lines", "solve_summary", "start_table"]

_GOALS = {
    Objective.COMPLETION: "total completion time",
    Objective.FLOW: "total flow time",
    Objective.MAKESPAN: "makespan",
}


def solve_summary(result: SolveResult) -> dict[str, Any]:
    """A result as plain JSON values, with stable keys; times in seconds.

    Examples
    --------
    >>> from frostline.offline import solve
    >>> from frostline.problem import Cluster, Fixed, Instance, Job
    >>> job = Job(id="a", release_s=1, work=Fixed(duration_s=2), gpus=1)
    >>> summary = solve_summary(solve(Instance(cluster=Cluster.uniform(1), jobs=[job]), objective="flow"))
    >>> {key: summary[key] for key in ("status", "objective", "bound", "gap", "source", "termination")}
    {'status': 'optimal', 'objective': 2.0, 'bound': 2.0, 'gap': 0.0, 'source': 'list', 'termination': 'complete'}
    """
    return {
        "status": result.status.value,
        "objective": result.objective,
        "bound": result.bound,
        "gap": result.gap,
        "source": result.source,
        "runtime_s": result.runtime_s,
        "goal": result.goal.value,
        "method": result.method,
        "bound_source": result.bound_source,
        "termination": result.termination.value,
        "work": result.work,
        "jobs": 0 if result.schedule is None else len(result.schedule.segments),
        "refused": 0 if result.schedule is None else len(result.schedule.refused),
        "explanations": [_explanation(one) for one in result.explanations],
    }


def _explanation(explanation: Explanation) -> dict[str, Any]:
    return {
        "kinds": [kind.value for kind in explanation.kinds],
        "jobs": list(explanation.jobs),
        "proof": explanation.proof,
        "text": explanation.text,
    }


def solve_lines(result: SolveResult) -> Iterator[str]:
    """Lines for people on a result.

    Examples
    --------
    >>> from frostline.offline import solve
    >>> from frostline.problem import Cluster, Fixed, Instance, Job
    >>> job = Job(id="a", release_s=1, work=Fixed(duration_s=2), gpus=1)
    >>> print(*solve_lines(solve(Instance(cluster=Cluster.uniform(1), jobs=[job]), objective="flow")), sep="\\n")
    total flow time 2 s, proved optimal
    schedule by list, bound by trivial
    """
    goal = _GOALS[result.goal]
    if result.status is SolveStatus.OPTIMAL:
        yield f"{goal} {number_text(result.objective)} s, proved optimal"
    elif result.status is SolveStatus.FEASIBLE:
        bound = f"no schedule has less than {number_text(result.bound)} s"
        yield f"{goal} {number_text(result.objective)} s; {bound}, gap {percent_text(result.gap)}"
    elif result.status is SolveStatus.INFEASIBLE:
        yield "no schedule keeps every rule"
    else:
        yield "no schedule was found, and none is proved impossible"
    if result.source:
        ended = (
            "" if result.status is SolveStatus.OPTIMAL else f"; ended by {result.termination.value.replace('_', ' ')}"
        )
        yield f"schedule by {result.source}, bound by {result.bound_source}{ended}"


def certified_summary(proof: Certified) -> dict[str, Any]:
    """What a certificate proves, as plain JSON values; the bound is on the objective, in seconds."""
    bound = seconds(proof.bound_us)
    return {"method": proof.method, "bound": bound, "optimal": proof.optimal, "nodes": proof.nodes}


def certified_line(result: SolveResult, proof: Certified | None, path: Path) -> str:
    """Line for people on the certificate of a result, None where there is no schedule.

    Examples
    --------
    >>> from frostline.offline import certified, solve
    >>> from frostline.problem import Cluster, Fixed, Instance, Job
    >>> job = Job(id="a", release_s=1, work=Fixed(duration_s=2), gpus=1)
    >>> result = solve(Instance(cluster=Cluster.uniform(1), jobs=[job]), objective="makespan")
    >>> certified_line(result, certified(result), Path("proof.json"))
    'certificate in proof.json: no schedule has a smaller makespan'
    """
    if proof is None:
        return "no certificate: there is no schedule"
    goal = _GOALS[result.goal]
    if proof.optimal:
        return f"certificate in {path}: no schedule has a smaller {goal}"
    text = f"certificate in {path}: no schedule has a {goal} below {number_text(seconds(proof.bound_us))} s"
    gap = gap_of(result.objective_us, proof.bound_us)
    text += "" if gap is None else f", gap {percent_text(gap)}"
    if result.bound_us > proof.bound_us:
        text += f"; what {result.bound_source} proved beyond that, it does not"
    return text


def start_table(result: SolveResult) -> Table:
    """Table of the schedule: when each job starts and ends, and on which servers.

    Examples
    --------
    >>> from frostline.offline import solve
    >>> from frostline.problem import Cluster, Fixed, Instance, Job
    >>> job = Job(id="a", release_s=1, work=Fixed(duration_s=2), gpus=3)
    >>> print(start_table(solve(Instance(cluster=Cluster.uniform(1), jobs=[job]))).text())
    job  start s  end s  GPUs  servers
    a          1      3     3  s0:3
    """
    servers = result.instance.cluster.servers
    rows = []
    for segment in () if result.schedule is None else result.schedule.segments:
        where = " ".join(f"{servers[m].id}:{gpus}" for m, gpus in segment.placement.loads)
        times = (number_text(seconds(at_us)) for at_us in (segment.start_us, segment.end_us))
        rows.append([segment.job, *times, str(segment.placement.gpus), where])
    return Table(["job", "start s", "end s", "GPUs", "servers"], rows, left=(0, 4))
