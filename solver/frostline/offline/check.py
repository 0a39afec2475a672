"""The own check of a plan: what a solver claims is believed only after it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from frostline.offline.tasks import Mode, Plan, Problem, Run, Task

__all__ = ["faults", "keeps_rules"]


def keeps_rules(problem: Problem, plan: Plan) -> bool:
    """Whether a plan keeps every rule."""
    return next(faults(problem, plan), None) is None


def faults(problem: Problem, plan: Plan) -> Iterator[str]:
    """Every rule that a plan breaks, one sentence each.

    Examples
    --------
    >>> from frostline.offline.tasks import Objective
    >>> problem = Problem((8,), (Task(3, (Mode(6, 5),)), Task(0, (Mode(6, 5),))), Objective.FLOW)
    >>> print(*faults(problem, (Run(0, 2, ((0, 6),)), Run(0, 4, ((0, 6),)))), sep="\\n")
    task 0 starts at 2, before its release at 3
    server 0 holds 12 of its 8 GPUs at 4
    """
    if len(plan) != len(problem.tasks):
        yield f"{len(plan)} runs of {len(problem.tasks)} tasks"
        return
    changes: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for number, (task, run) in enumerate(zip(problem.tasks, plan, strict=True)):
        if not 0 <= run.mode < len(task.modes):
            yield f"task {number} has no mode {run.mode}"
            continue
        yield from _faults_of(problem, number, task, run)
        for m, gpus in run.loads:
            changes[m] += [(run.start, gpus), (problem.end(number, run), -gpus)]
    for m, capacity in enumerate(problem.capacities):
        held = 0
        for at, change in sorted(changes[m]):  # at one instant GPUs are given back first
            held += change
            if held > capacity and change > 0:
                yield f"server {m} holds {held} of its {capacity} GPUs at {at}"


def _faults_of(problem: Problem, number: int, task: Task, run: Run) -> Iterator[str]:
    mode = task.modes[run.mode]
    if run.start < task.release:
        yield f"task {number} starts at {run.start}, before its release at {task.release}"
    if task.deadline is not None and problem.end(number, run) > task.deadline:
        yield f"task {number} ends at {problem.end(number, run)}, after its deadline at {task.deadline}"
    if not _placed(mode, run):
        yield f"task {number} may not hold {run.loads}"


def _placed(mode: Mode, run: Run) -> bool:
    used = [m for m, _ in run.loads]
    return (
        sum(gpus for _, gpus in run.loads) == mode.gpus
        and all(gpus > 0 for _, gpus in run.loads)
        and len(set(used)) == len(used)
        and set(used) <= set(mode.servers)
        and mode.least <= len(used) <= mode.most
    )
