"""Lower bounds on the value of every plan, from the relaxations and by counting."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from frostline.errors import UnknownNameError
from frostline.offline.build import Case
from frostline.offline.tasks import Objective, Problem
from frostline.relaxation.bounds import lower_bound
from frostline.relaxation.srpt import virtual_completions

__all__ = ["counted", "relaxed"]


def relaxed(case: Case, method: str = "best") -> tuple[Fraction, str]:
    """Best bound of the relaxations in units, and its name.

    Those of :func:`~frostline.relaxation.bounds.lower_bound` are about jobs of one width and one length; where jobs
    have options, or some GPU type cannot be timed, the bounds of :func:`counted` are taken.
    """
    problem = case.problem
    found = counted(problem)
    if problem.objective is not Objective.MAKESPAN and problem.tasks and not case.choices:
        try:
            bound = lower_bound(case.instance, method)
        except UnknownNameError:  # a GPU type without the precision of a job, which then runs on others
            return found
        flow = Fraction(bound.completion_us - bound.release_us) / case.unit_us
        return max(found, (flow, bound.method), key=lambda pair: pair[0])
    return found


def counted(problem: Problem) -> tuple[Fraction, str]:
    """Bound that counts ends, or for the makespan the work after each release, in units, and its name.

    Examples
    --------
    >>> from frostline.offline.tasks import Mode, Task
    >>> tasks = (Task(0, (Mode(8, 10),)), Task(0, (Mode(4, 2),)))
    >>> counted(Problem((8,), tasks, Objective.FLOW)), counted(Problem((8,), tasks, Objective.MAKESPAN))
    ((Fraction(13, 1), 'pointwise'), (Fraction(11, 1), 'work'))
    """
    tasks = problem.tasks
    if not tasks:
        return Fraction(0), "trivial"
    if problem.objective is Objective.MAKESPAN:
        single = max(task.release + task.least_cost for task in tasks)
        work = max(_work(problem), default=Fraction(0))
        return (work, "work") if work > single else (Fraction(single), "trivial")
    penalties = sum(min(mode.penalty for mode in task.modes) for task in tasks)
    virtual = virtual_completions(((task.release, task.least_area) for task in tasks), problem.gpus)
    alone = sorted((task.release + task.least_duration) * problem.gpus for task in tasks)
    pointwise = Fraction(sum(map(max, sorted(virtual), alone)), problem.gpus)
    released = sum(task.release for task in tasks)
    trivial = Fraction(sum(task.least_cost for task in tasks))
    return max((trivial, "trivial"), (pointwise + penalties - released, "pointwise"), key=lambda pair: pair[0])


def _work(problem: Problem) -> Iterator[Fraction]:
    """For each release, when the work from then on could end on all GPUs at once."""
    area = 0
    for task in reversed(problem.tasks):
        area += task.least_area
        yield task.release + Fraction(area, problem.gpus)
