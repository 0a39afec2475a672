"""CP-SAT: one interval for every task and mode, a cumulative resource for the pool and one for every server."""

from __future__ import annotations

import math
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frostline.errors import TooLargeError
from frostline.offline.bounds import priced
from frostline.offline.check import keeps_rules
from frostline.offline.search import Search, Termination, log
from frostline.offline.tasks import Loads, Mode, Objective, Plan, Problem, Run, Task
from frostline.offline.watch import watched

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

__all__ = ["MOST_INTERVALS", "IntervalModel", "check_intervals", "cpsat", "intervals"]

MOST_INTERVALS = 20_000
"""Most intervals of a model, about 2 GiB and a minute before the search begins."""

_METHOD = "cpsat"
_TOLERANCE = 1e-4
_PRICES_SHARE, _PRICES_WORK = 0.1, 0.01  # of the time that is left; work for each task, roughly seconds


def intervals(problem: Problem) -> int:
    """Intervals and amounts of GPUs that a model of the problem would have.

    Examples
    --------
    >>> tasks = (Task(0, (Mode(8, 10),)), Task(0, (Mode(4, 2),)))
    >>> intervals(Problem((8,), tasks, Objective.FLOW))
    2
    """
    one = len(problem.capacities) == 1
    return sum(1 if one else 1 + len(mode.servers) for task in problem.tasks for mode in task.modes)


def check_intervals(search: Search) -> None:
    """Refuse a model of more than :data:`MOST_INTERVALS`, with what it would have."""
    count = intervals(search.problem)
    if count > MOST_INTERVALS:
        raise TooLargeError("solve", _METHOD, "intervals", count, MOST_INTERVALS)


def cpsat(search: Search) -> None:
    """Search for the best plan and bound by CP-SAT, from the plan that there is.

    Every task has an interval, optional where it has several modes. All of them share the GPUs of the pool, which
    servers only divide; on servers a mode on one server has an optional interval for each, and one that spreads an
    amount of GPUs on each. No task may end later than it could in a plan as good as the best one.

    The search runs on one thread unless asked otherwise, and stops after deterministic work where there is no time
    limit, so that equal calls have equal answers. The plans of the solver are checked by us and its claims are
    believed only as far as the best plan does not contradict them.

    Parameters
    ----------
    search : Search
        The search.

    Raises
    ------
    TooLargeError
        More than :data:`MOST_INTERVALS`.

    Examples
    --------
    >>> tasks = (Task(0, (Mode(8, 10),)), Task(0, (Mode(4, 2),)))
    >>> search = Search(Problem((8,), tasks, Objective.FLOW))
    >>> cpsat(search)
    >>> search.value, search.bound, search.termination.value
    (14, 14, 'complete')
    """
    check_intervals(search)
    started_s = time.perf_counter()
    from ortools.sat.python import cp_model  # noqa: F401

    search.forget_time(time.perf_counter() - started_s)
    if search.over():
        return
    windows = _priced(search)
    if search.over():
        return
    model = IntervalModel(search.problem, search.value, search.bound, windows)
    if search.plan is not None:
        model.hint(search.plan)
    _Solve(model, search).run()


def _priced(search: Search) -> tuple[tuple[int, int], ...] | None:
    """Starts that prices leave to plans as good as the best one; the bound that they prove is taken over."""
    if search.value is None:
        return None
    end_s = search.state.runtime_s + _PRICES_SHARE * search.left_s
    found = priced(search.problem, search.value, lambda: search.state.runtime_s >= end_s)
    if found is None:
        return None
    search.work += _PRICES_WORK * len(search.problem.tasks)
    if search.prove(found.bound, "lagrangian"):
        search.report()
    return found.windows


class _Solve:
    """One run of the solver for a search."""

    def __init__(self, model: IntervalModel, search: Search) -> None:
        from ortools.sat.python import cp_model

        self._model, self._search = model, search
        self._solver = cp_model.CpSolver()
        self._lock = threading.Lock()
        self._news = False
        self._errors: list[BaseException] = []
        parameters = self._solver.parameters
        parameters.num_workers = search.workers
        parameters.random_seed = search.seed % 2**31
        parameters.catch_sigint_signal = False  # there may be several threads, but signal handlers are one
        parameters.linearization_level = 2
        parameters.use_rins_lns = False  # of several threads: it proposes plans that break rules, and says so on stderr
        if math.isfinite(search.left_work):
            parameters.max_deterministic_time = search.left_work

    def run(self) -> None:
        """Search until the rule says so or nothing is left to find."""
        search, solver = self._search, self._solver
        if math.isfinite(search.left_s):
            solver.parameters.max_time_in_seconds = search.left_s
        before = search.work
        status: list[str] = []
        solver.best_bound_callback = self._on_bound
        callback = _callback(self)

        def solve() -> None:
            status.append(solver.status_name(solver.solve(self._model.proto, callback)))

        interrupted = watched(solve, solver.stop_search, self._asked)
        search.work = before + solver.deterministic_time
        if self._errors:
            raise self._errors[0]
        self._conclude(status[0])
        if interrupted:
            search.termination = Termination.INTERRUPTED
        self._asked()

    def _conclude(self, status: str) -> None:
        """Take over what the solver claims at its end, as far as it is believed."""
        search, solver = self._search, self._solver
        if status in ("OPTIMAL", "FEASIBLE"):
            search.offer(self._model.plan(solver.value), _METHOD)
            search.prove(_whole(solver.best_objective_bound), _METHOD)
        elif status == "UNKNOWN":
            search.prove(_whole(solver.best_objective_bound), _METHOD)
        elif status == "INFEASIBLE" and search.plan is None:
            search.infeasible = True
            search.termination = Termination.COMPLETE
        else:
            _report_fault(self._model.proto, status)
        if not search.over():
            limits = ((search.left_s <= 0, Termination.TIME_LIMIT), (search.left_work <= 0, Termination.WORK_LIMIT))
            search.termination = next((end for reached, end in limits if reached), Termination.GAVE_UP)

    # Called by the solver, in its thread.

    def found(self, value: Any, bound: float) -> bool:
        """A plan was found; whether to stop by what is the same on every machine."""
        try:
            with self._lock:
                plan = self._model.plan(value)
                if keeps_rules(self._search.problem, plan):
                    self._news |= self._search.offer(plan, _METHOD)
                self._news |= self._search.prove(_whole(bound), _METHOD)
                return self._search.over(asks=False)
        except BaseException as error:
            self._errors.append(error)
            return True

    def _on_bound(self, bound: float) -> None:
        with self._lock:
            self._news |= self._search.prove(_whole(bound), _METHOD)
            if self._search.over(asks=False):
                self._solver.stop_search()

    # Called in the thread of the caller.

    def _asked(self) -> bool:
        with self._lock:
            news, self._news = self._news, False
        if news:
            self._search.report()
        return self._search.asks and self._search.over()


def _callback(solve: _Solve) -> cp_model.CpSolverSolutionCallback:
    from ortools.sat.python import cp_model

    class Callback(cp_model.CpSolverSolutionCallback):
        def on_solution_callback(self) -> None:
            if solve.found(self.value, self.best_objective_bound):
                self.stop_search()

    return Callback()


def _report_fault(proto: cp_model.CpModel, status: str) -> None:
    with tempfile.NamedTemporaryFile(prefix="frostline-fault-", suffix=".pbtxt", delete=False) as file:
        name = file.name
    Path(name).unlink()
    proto.export_to_file(name)
    log.error("CP-SAT calls a model with a valid plan %s, which is not believed; the model is in %s", status, name)


def _whole(bound: float) -> float:
    """Bound on a whole number, of which the solver has a float."""
    return math.ceil(bound - _TOLERANCE) if math.isfinite(bound) else bound


class IntervalModel:
    """CP-SAT model of a problem.

    Parameters
    ----------
    problem : Problem
        The problem.
    most : int or None
        Value of the best plan, which no plan of the model exceeds.
    least : int
        Lower bound on the value.
    windows : sequence of (int, int), optional
        Earliest and latest start of every task in plans that are not worse than the best.
    """

    def __init__(
        self,
        problem: Problem,
        most: int | None = None,
        least: int = 0,
        windows: Sequence[tuple[int, int]] | None = None,
    ) -> None:
        from ortools.sat.python import cp_model

        self._problem, self._model = problem, cp_model
        self.proto = cp_model.CpModel()
        self._starts: list[Any] = []
        self._chosen: list[list[Any]] = []
        self._held: list[list[dict[int, Any]]] = []
        self._pool: list[tuple[Any, Any]] = []
        self._servers: dict[int, list[tuple[Any, Any]]] = defaultdict(list)
        starts = windows or [(task.release, problem.horizon) for task in problem.tasks]
        rows = zip(problem.tasks, starts, problem.latest(most), strict=True)
        ends = [self._task(task, window, latest) for task, window, latest in rows]
        self._capacity()
        self._order_equals()
        self._aim(ends, most, least)

    def hint(self, plan: Plan) -> None:
        """Start the search at a plan."""
        self.proto.clear_hints()  # type: ignore[no-untyped-call]
        for number, run in enumerate(plan):
            self.proto.add_hint(self._starts[number], run.start)
            for index, literal in enumerate(self._chosen[number]):
                self._hint(literal, int(index == run.mode))
            held = dict(run.loads)
            for index, on in enumerate(self._held[number]):
                for m, amount in on.items():
                    gpus = held.get(m, 0) if index == run.mode else 0
                    single = self._problem.tasks[number].modes[index].most == 1
                    self._hint(amount, int(gpus > 0) if single else gpus)

    def plan(self, value: Any) -> Plan:
        """Plan of a solution, given by the value of any variable."""
        runs = []
        for number, task in enumerate(self._problem.tasks):
            index = next((k for k, literal in enumerate(self._chosen[number]) if value(literal)), 0)
            runs.append(
                Run(index, int(value(self._starts[number])), self._loads(number, index, task.modes[index], value))
            )
        return tuple(runs)

    def _loads(self, number: int, index: int, mode: Mode, value: Any) -> Loads:
        held = self._held[number][index]
        if not held:
            return ((0, mode.gpus),)
        each = mode.gpus if mode.most == 1 else 1
        return tuple((m, int(value(amount)) * each) for m, amount in sorted(held.items()) if value(amount))

    def _hint(self, variable: Any, value: int) -> None:
        if not isinstance(variable, int):
            self.proto.add_hint(variable, value)

    # Variables.

    def _task(self, task: Task, window: tuple[int, int], latest: int) -> Any:
        """Variables of a task that starts in a window and ends by some instant; its end with its penalty."""
        proto = self.proto
        first, last = window[0], min(window[1], latest - task.least_duration)
        if last < first:  # no room: a model without a solution
            proto.add_bool_or([])
            last = first
        start = proto.new_int_var(first, last, "")
        several = len(task.modes) > 1
        chosen = [proto.new_bool_var("") if several else 1 for _ in task.modes]
        if several:
            proto.add_exactly_one(chosen)
        held = []
        for mode, literal in zip(task.modes, chosen, strict=True):
            if several:
                interval = proto.new_optional_fixed_size_interval_var(start, mode.duration, literal, "")
                proto.add(start <= latest - mode.duration).only_enforce_if(literal)
            else:
                interval = proto.new_fixed_size_interval_var(start, mode.duration, "")
            self._pool.append((interval, mode.gpus))
            one = len(self._problem.capacities) == 1
            held.append({} if one else self._on_servers(start, mode, literal, interval))
        self._starts.append(start)
        self._chosen.append(chosen)
        self._held.append(held)
        return start + sum(mode.cost * literal for mode, literal in zip(task.modes, chosen, strict=True))

    def _on_servers(self, start: Any, mode: Mode, chosen: Any, interval: Any) -> dict[int, Any]:
        if mode.most > 1:
            return self._spread(mode, chosen, interval)
        proto = self.proto
        literals = {m: proto.new_bool_var("") for m in mode.servers}
        proto.add(sum(literals.values()) == chosen)
        for m, literal in literals.items():
            on = proto.new_optional_fixed_size_interval_var(start, mode.duration, literal, "")
            self._servers[m].append((on, mode.gpus))
        return literals

    def _spread(self, mode: Mode, chosen: Any, interval: Any) -> dict[int, Any]:
        """Amounts on every server, of which some number may be above 0."""
        proto, capacities = self.proto, self._problem.capacities
        largest = mode.gpus - mode.least + 1
        amounts = {m: proto.new_int_var(0, min(largest, capacities[m]), "") for m in mode.servers}
        proto.add(sum(amounts.values()) == mode.gpus * chosen)
        if mode.most < min(len(mode.servers), mode.gpus):
            used = {m: proto.new_bool_var("") for m in mode.servers}
            for m, amount in amounts.items():
                proto.add(amount <= min(largest, capacities[m]) * used[m])
            proto.add(sum(used.values()) <= mode.most)
        for m, amount in amounts.items():
            self._servers[m].append((interval, amount))
        return amounts

    # Rules.

    def _capacity(self) -> None:
        self._cumulative(self._pool, self._problem.gpus)
        for m, capacity in enumerate(self._problem.capacities):
            if self._servers[m]:
                self._cumulative(self._servers[m], capacity)

    def _cumulative(self, held: list[tuple[Any, Any]], capacity: int) -> None:
        self.proto.add_cumulative([interval for interval, _ in held], [gpus for _, gpus in held], capacity)

    def _order_equals(self) -> None:
        """Tasks that differ in their release at most start in its order: exchanging them changes nothing."""
        last: dict[tuple[Mode, ...], int] = {}
        for number, task in enumerate(self._problem.tasks):
            if task.deadline is None:
                if task.modes in last:
                    self.proto.add(self._starts[last[task.modes]] <= self._starts[number])
                last[task.modes] = number

    def _aim(self, ends: list[Any], most: int | None, least: int) -> None:
        proto, problem = self.proto, self._problem
        top = 2 * problem.horizon * max(len(ends), 1) + sum(mode.penalty for t in problem.tasks for mode in t.modes)
        value = proto.new_int_var(least, top if most is None else most, "value")
        if problem.objective is Objective.MAKESPAN:
            for end in ends:
                proto.add(value >= end)
        else:
            proto.add(value == sum(ends) - sum(task.release for task in problem.tasks))
        proto.minimize(value)
