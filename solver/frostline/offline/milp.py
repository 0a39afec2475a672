"""Time-indexed linear model, built with PuLP and solved by HiGHS or CBC, for small horizons and to check by."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from frostline.errors import TooLargeError
from frostline.offline.search import Search, Termination, log
from frostline.offline.tasks import Mode, Objective, Plan, Problem, Run
from frostline.placement.solvers import SOLVERS, Effort, MipAnswer, Outcome, solve_mip, solver_named

if TYPE_CHECKING:
    import pulp

__all__ = ["LIMIT_S", "MOST_CELLS", "NODES_PER_WORK", "TimeIndexedModel", "cells", "check_cells", "milp"]

LIMIT_S = 60.0
"""Seconds of a search without a time limit."""

MOST_CELLS = 300_000
"""Most non-zeros of a model."""

NODES_PER_WORK = 1000
"""Nodes of the search tree in one unit of work."""

_METHOD = "milp"
_TOLERANCE = 1e-6


def cells(problem: Problem, most: int | None = None) -> int:
    """Non-zeros that the model of a problem would have, counted without building it.

    Examples
    --------
    >>> from frostline.offline.tasks import Task
    >>> tasks = (Task(0, (Mode(8, 10),)), Task(0, (Mode(4, 2),)))
    >>> cells(Problem((8,), tasks, Objective.FLOW))
    80
    """
    count = 0
    for task, latest in zip(problem.tasks, problem.latest(most), strict=True):
        for mode in task.modes:
            starts = max(latest - mode.duration - task.release + 1, 0)
            count += starts * (mode.duration + 2) * (1 if len(problem.capacities) == 1 else len(mode.servers) + 1)
    return count


def check_cells(search: Search) -> None:
    """Refuse a model of more than :data:`MOST_CELLS`, with what it would have."""
    count = cells(search.problem, search.value)
    if count > MOST_CELLS:
        raise TooLargeError("solve", _METHOD, "non-zeros", count, MOST_CELLS)


def milp(search: Search, solver: str = "") -> None:
    """Search for the best plan by a linear model with a binary for every task, mode, server and start.

    Its relaxation is the strongest among the usual ones, and grows with the horizon (M. E. Dyer, L. A. Wolsey,
    *Formulating the single machine sequencing problem with release dates as a mixed integer program*, Discrete Applied
    Mathematics 26(2–3), 1990, doi:10.1016/0166-218X(90)90104-K). Values are whole numbers; the bound of a solver is
    lowered by its tolerances before it is rounded up to one.

    Parameters
    ----------
    search : Search
        The search.
    solver : str
        ``"cbc"`` or ``"highs"``; by default the first of :data:`~frostline.placement.solvers.SOLVERS` that is there.

    Raises
    ------
    TooLargeError
        More than :data:`MOST_CELLS`.
    SolverUnavailableError
        No solver can be run.

    Examples
    --------
    >>> from frostline.offline.tasks import Task
    >>> tasks = (Task(0, (Mode(8, 10),)), Task(0, (Mode(4, 2),)))
    >>> search = Search(Problem((8,), tasks, Objective.FLOW))
    >>> milp(search)
    >>> search.value, search.bound, search.source
    (14, 14, 'milp-highs')
    """
    check_cells(search)
    if not search.problem.tasks:
        search.offer((), _METHOD)
    if search.over():
        return
    search.forget_time(_load(solver))
    model = TimeIndexedModel(search.problem, search.value)
    most = search.value if search.value is not None else max(search.problem.horizon * len(search.problem.tasks), 1)
    time_s = min(search.left_s, LIMIT_S) if math.isfinite(search.left_s) else LIMIT_S
    nodes = int(min(search.left_work, 1e6) * NODES_PER_WORK)
    if time_s <= 0 or nodes <= 0:
        search.over()
        return
    try:
        effort = Effort(time_limit_s=time_s, nodes=nodes, threads=search.workers)
        answer, used = solve_mip(model.problem, effort, solver)
    except KeyboardInterrupt:
        search.termination = Termination.INTERRUPTED
        return
    _conclude(search, model, answer, f"{_METHOD}-{used.name}", most)


def _load(solver: str) -> float:
    """Seconds that loading a solver takes."""
    started_s = time.perf_counter()
    for known in [solver_named(solver)] if solver else SOLVERS:
        if known.available:
            break
    return time.perf_counter() - started_s


def _conclude(search: Search, model: TimeIndexedModel, answer: MipAnswer, name: str, most: int) -> None:
    """Take over what a solver claims, as far as it is believed."""
    if answer.outcome in (Outcome.OPTIMAL, Outcome.FEASIBLE):
        if search.offer(model.plan(answer), name):
            search.report()
        slack = _TOLERANCE * max(1, most)
        search.prove(math.ceil(answer.bound - slack) if math.isfinite(answer.bound) else answer.bound, name)
    elif answer.outcome is Outcome.INFEASIBLE and search.plan is None:
        search.infeasible = True
        search.termination = Termination.COMPLETE
    elif answer.outcome in (Outcome.INFEASIBLE, Outcome.INVALID_MODEL):
        log.error("%s calls a model %s that has a valid plan; it is not believed", name, answer.outcome)
    if answer.interrupted:
        search.termination = Termination.INTERRUPTED
    if not search.over():
        search.termination = Termination.GAVE_UP if answer.outcome is Outcome.OPTIMAL else Termination.TIME_LIMIT


class TimeIndexedModel:
    """PuLP model of a problem: a binary for every task, mode, server and start.

    Parameters
    ----------
    problem : Problem
        The problem.
    most : int or None
        Value of the best plan; no task ends later than it could in one as good.
    """

    def __init__(self, problem: Problem, most: int | None = None) -> None:
        import pulp

        self._problem, self._sum = problem, pulp.lpSum
        self.problem = pulp.LpProblem("p")
        self._count = 0
        self._held: dict[tuple[int, int], list[Any]] = defaultdict(list)
        self._starts: list[dict[tuple[int, int, int], Any]] = []
        self._amounts: dict[tuple[int, int, int, int], Any] = {}
        for number, latest in enumerate(problem.latest(most)):
            self._task(number, latest)
        for (m, _), held in sorted(self._held.items()):
            self.problem += self._sum(held) <= problem.capacities[m]
        self._aim()

    def plan(self, answer: MipAnswer) -> Plan:
        """Plan of a solution."""
        values = answer.values
        runs = []
        for number, starts in enumerate(self._starts):
            index, m, start = max(starts, key=lambda key: values[starts[key].name])
            mode = self._problem.tasks[number].modes[index]
            if m >= 0:
                runs.append(Run(index, start, ((m, mode.gpus),)))
                continue
            on = ((server, round(values[self._amounts[number, index, server, start].name])) for server in mode.servers)
            runs.append(Run(index, start, tuple((server, gpus) for server, gpus in on if gpus)))
        return tuple(runs)

    def _variable(self, high: int) -> pulp.LpVariable:
        import pulp

        self._count += 1
        return self.problem.add_variable(f"v{self._count}", 0, high, pulp.LpInteger)

    def _task(self, number: int, latest: int) -> None:
        """Starts of a task, of which it has one."""
        task = self._problem.tasks[number]
        starts: dict[tuple[int, int, int], Any] = {}
        for index, mode in enumerate(task.modes):
            window = range(task.release, latest - mode.duration + 1)
            if mode.most > 1:
                used = self._used(mode)
                for start in window:
                    starts[index, -1, start] = self._variable(1)
                    self._spread(number, index, start, starts[index, -1, start], used)
            else:
                for m in mode.servers:
                    for start in window:
                        starts[index, m, start] = self._variable(1)
                        self._hold(m, start, mode.duration, mode.gpus * starts[index, m, start])
        self._starts.append(starts)
        self.problem += self._sum(starts.values()) == 1

    def _used(self, mode: Mode) -> dict[int, Any]:
        """Whether a mode uses each server, where it may not use all."""
        if mode.most >= min(len(mode.servers), mode.gpus):
            return {}
        used = {m: self._variable(1) for m in mode.servers}
        self.problem += self._sum(used.values()) <= mode.most
        return used

    def _spread(self, number: int, index: int, start: int, taken: Any, used: dict[int, Any]) -> None:
        """Amounts on every server of a mode that starts at an instant."""
        mode = self._problem.tasks[number].modes[index]
        amounts = []
        for m in mode.servers:
            most = min(mode.gpus - mode.least + 1, self._problem.capacities[m])
            amount = self._variable(most)
            self._amounts[number, index, m, start] = amount
            amounts.append(amount)
            self._hold(m, start, mode.duration, amount)
            if used:
                self.problem += amount <= most * used[m]
        self.problem += self._sum(amounts) == mode.gpus * taken

    def _hold(self, m: int, start: int, duration: int, gpus: Any) -> None:
        for at in range(start, start + duration):
            self._held[m, at].append(gpus)

    def _aim(self) -> None:
        tasks = self._problem.tasks
        makespan = self._problem.objective is Objective.MAKESPAN
        costs = []
        for task, starts in zip(tasks, self._starts, strict=True):
            since = 0 if makespan else task.release  # in the coefficients: solvers lose constants
            terms = ((start + task.modes[index].cost - since) * taken for (index, _, start), taken in starts.items())
            costs.append(self._sum(terms))
        if not makespan:
            self.problem += self._sum(costs)
            return
        import pulp

        top = 2 * self._problem.horizon + max((mode.penalty for task in tasks for mode in task.modes), default=0)
        last = self.problem.add_variable("last", 0, top, pulp.LpContinuous)
        self.problem += last
        for cost in costs:
            self.problem += last >= cost
