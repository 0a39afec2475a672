"""Lower bounds on the value of every plan, from the relaxations and by counting."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import NamedTuple

from frostline.errors import UnknownNameError
from frostline.offline.build import Case
from frostline.offline.tasks import Objective, Problem
from frostline.relaxation.bounds import lower_bound
from frostline.relaxation.lagrangian.ascent import best_prices
from frostline.relaxation.lagrangian.packing import Packing
from frostline.relaxation.lagrangian.problem import PriceProblem
from frostline.relaxation.lagrangian.start import breakpoints
from frostline.relaxation.lagrangian.tree import narrowed
from frostline.relaxation.lagrangian.windows import Windows
from frostline.relaxation.srpt import virtual_completions

__all__ = ["Priced", "counted", "priced", "relaxed"]

_MOST_PRICED = 100
_LONGEST_PRICED = 2**40
_ITERATIONS = 300


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


class Priced(NamedTuple):
    """What prices prove of a problem.

    ``windows`` are the earliest and the latest start of every task in plans that are no worse than a known one.
    """

    bound: int
    windows: tuple[tuple[int, int], ...]


def priced(problem: Problem, most: int, stops: Callable[[], bool] = lambda: False) -> Priced | None:
    """Bound by a price of every task, and the starts that prices leave to plans of at most some value.

    If a task starts where it costs more than its least by over what the bound lacks to that value, the bound for such
    plans is above it. None for the makespan, and for problems on which that takes long.

    Parameters
    ----------
    problem : Problem
        The problem; servers and deadlines are left out.
    most : int
        Value of a plan, in units.
    stops : callable
        Asked now and then whether to make do with the prices so far.

    Examples
    --------
    >>> from frostline.offline.tasks import Mode, Task
    >>> tasks = (Task(0, (Mode(8, 10),)), Task(0, (Mode(4, 2),)))
    >>> priced(Problem((8,), tasks, Objective.FLOW), 14)
    Priced(bound=14, windows=((2, 2), (0, 0)))
    """
    tasks, released = problem.tasks, sum(task.release for task in problem.tasks)
    small = 2 <= len(tasks) <= _MOST_PRICED and problem.horizon <= _LONGEST_PRICED
    if problem.objective is Objective.MAKESPAN or not small:
        return None
    rows = [(task.release, [(mode.gpus, mode.duration, mode.penalty) for mode in task.modes]) for task in tasks]
    prices = PriceProblem.of_rows(problem.gpus, rows).by_option()
    if not Packing.is_cheap(prices, len(breakpoints(prices)) - 1):
        return None
    beyond = most + released + 1
    found = best_prices(
        prices, prices="job", target=beyond, iterations=_ITERATIONS, callback=lambda number, best: stops()
    ).best
    windows = narrowed(prices, Windows.of(prices), found, beyond)
    starts = zip((windows.earliest + prices.origin).tolist(), (windows.latest + prices.origin).tolist(), strict=True)
    return Priced(found.bound - released, tuple(starts))
