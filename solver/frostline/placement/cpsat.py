"""Compact model with OR-Tools CP-SAT: one integer variable for every row and stage."""

from __future__ import annotations

import math
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from frostline.errors import TooLargeError
from frostline.placement.answer import Answer
from frostline.placement.columns import column_count, columns_within
from frostline.placement.consolidate import on_fewest
from frostline.placement.incumbent import believed, bounded, check_horizon, close_enough, heuristic, log
from frostline.placement.interruptible import InterruptedSearchError, run_interruptibly
from frostline.placement.request import Progress, Request
from frostline.placement.solvers import Outcome
from frostline.timing.column_costs import ColumnCosts, ColumnKind
from frostline.timing.iteration_time import Matrix

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

__all__ = ["EFFORT", "MOST_CELLS", "MOST_TUPLES", "cpsat"]

EFFORT = 10.0
"""Deterministic time of a search without a deadline, roughly seconds: equal searches stop at the same point."""

MOST_CELLS = 20_000
"""Most rows × stages of a model."""

MOST_TUPLES = 200_000
"""Most columns listed in a model for a timing model without tables."""

_METHOD = "cpsat"


_OUTCOMES = {
    "OPTIMAL": Outcome.OPTIMAL,
    "FEASIBLE": Outcome.FEASIBLE,
    "INFEASIBLE": Outcome.INFEASIBLE,
    "MODEL_INVALID": Outcome.INVALID_MODEL,
}


def cpsat(request: Request, start: Answer | None = None) -> Answer:
    """Best placement by CP-SAT, never worse than where it starts.

    ``x[m, s]`` counts the replicas of stage s on row m; T is the time of the slowest row in whole nanoseconds. Traffic
    inside a row is the product of two of them, stated as such: sums of unary bits took two to three times as long.
    Models of the iteration time without tables (``costs``) are given by all their columns. The incumbent is the hint,
    and T may not exceed it.

    The search runs on one thread unless ``request.workers`` says otherwise. Without a deadline it stops after
    :data:`EFFORT` of the solver's deterministic time, so that equal requests have equal answers. Loading the solver
    for the first time takes about a second, which is not counted.

    What the solver claims is checked: its placement is timed anew, and a claim that the incumbent contradicts is
    logged with the model and not believed.

    Parameters
    ----------
    request : Request
        Stage graph and free GPUs.
    start : Answer, optional
        Incumbent; that of local search by default.

    Raises
    ------
    TooLargeError
        More than :data:`MOST_CELLS` or :data:`MOST_TUPLES`.
    InvalidValueError
        Times too long for whole nanoseconds.
    InterruptedSearchError
        Ctrl-C; it has the best so far.

    Examples
    --------
    >>> from frostline.timing.contention import ContentionTime
    >>> from frostline.timing.stage_graph import StageGraph
    >>> graph = StageGraph(replicas=[2, 3, 2], compute_s=[0] * 3, edges={(0, 1): 6, (1, 2): 12, (0, 2): 8})
    >>> request = Request(timing=ContentionTime(graph=graph, nic_bytes_per_s=1), free=(4, 3))
    >>> answer = cpsat(request)
    >>> answer.bound_ns == request.value_ns(answer.matrix), answer.bound
    (True, 'cpsat')
    """
    start = heuristic(request) if start is None else start
    if request.late or close_enough(request, start):
        return start
    cells = len(request.rows) * len(request.counts)
    if cells > MOST_CELLS:
        raise TooLargeError("placement", _METHOD, "rows × stages", cells, MOST_CELLS)
    return _searched(request, start, request.deadline_s + _load())


def _load() -> float:
    """Seconds that loading the solver takes."""
    started_s = time.perf_counter()
    from ortools.sat.python import cp_model  # noqa: F401

    return time.perf_counter() - started_s


def _searched(request: Request, start: Answer, deadline_s: float) -> Answer:
    """Best placement found by a deadline, with what was proved."""
    part, rows, most_servers = on_fewest(request)
    model = CompactModel(part, most_servers, request.value_ns(start.matrix))
    model.hint(start.matrix[list(rows)])
    search = _Search(model, request)
    interrupted = search.run(deadline_s - time.perf_counter())
    if search.outcome in (Outcome.INFEASIBLE, Outcome.INVALID_MODEL):
        _report_fault(model.proto, search.outcome)
        return start
    answer = start
    if search.outcome is not Outcome.NOTHING_FOUND:
        found = request.empty()
        found[list(rows)] = model.matrix(search.solver)
        answer = believed(request, start, found, most_servers, _METHOD)
    answer = bounded(request, answer, search.bound_ns, _METHOD)
    if interrupted:
        raise InterruptedSearchError(answer)
    return answer


def _report_fault(proto: cp_model.CpModel, outcome: Outcome) -> None:
    with tempfile.NamedTemporaryFile(prefix="frostline-fault-", suffix=".pbtxt", delete=False) as file:
        name = file.name
    Path(name).unlink()
    proto.export_to_file(name)
    log.error(
        "CP-SAT calls a model with a valid placement %s, which is not believed; the model is in %s", outcome, name
    )


class _Search:
    """One run of the solver."""

    def __init__(self, model: CompactModel, request: Request) -> None:
        from ortools.sat.python import cp_model

        self.solver = cp_model.CpSolver()
        self.outcome = Outcome.NOTHING_FOUND
        self.bound_ns = 0
        self._model, self._progress = model, request.progress
        parameters = self.solver.parameters
        parameters.num_workers = request.workers
        parameters.relative_gap_limit = request.gap / (1 + request.gap)
        parameters.catch_sigint_signal = False  # there may be several threads, but signal handlers are one

    def run(self, left_s: float) -> bool:
        """Search for so many seconds, or with the usual effort where they are infinite; whether Ctrl-C ended it."""
        if left_s <= 0:
            return False
        if math.isinf(left_s):
            self.solver.parameters.max_deterministic_time = EFFORT
        else:
            self.solver.parameters.max_time_in_seconds = left_s
        status, interrupted = run_interruptibly(self._solve, self.solver.stop_search)
        self.outcome = _OUTCOMES.get(self.solver.status_name(status), Outcome.NOTHING_FOUND)
        bound = self.solver.best_objective_bound
        self.bound_ns = round(bound) if math.isfinite(bound) else 0
        return interrupted

    def _solve(self) -> cp_model.CpSolverStatus:
        callback = None if self._progress is None else _callback(self._progress)
        return self.solver.solve(self._model.proto, callback)


def _callback(progress: Progress) -> cp_model.CpSolverSolutionCallback:
    from ortools.sat.python import cp_model

    class Callback(cp_model.CpSolverSolutionCallback):
        def on_solution_callback(self) -> None:
            if progress(round(self.objective_value), max(round(self.best_objective_bound), 0)):
                self.stop_search()

    return Callback()


class CompactModel:
    """CP-SAT model of a request: variables by row and stage, and the iteration time as objective.

    Parameters
    ----------
    request : Request
        Stage graph and free GPUs.
    most_servers : int
        Most rows that may hold replicas.
    worst_ns : int
        Iteration time of the incumbent.
    """

    def __init__(self, request: Request, most_servers: int, worst_ns: int) -> None:
        from ortools.sat.python import cp_model

        timing = request.timing
        self._request = request
        self.proto = cp_model.CpModel()
        base_ns = 0 if timing.overlap else timing.base_ns
        least_ns = min(timing.base_ns if timing.overlap else max(timing.bound_ns - base_ns, 0), worst_ns - base_ns)
        self.slowest = self.proto.new_int_var(least_ns, worst_ns - base_ns, "slowest")
        most = [
            [min(count, int(room) // int(size)) for count, size in zip(request.counts, request.sizes, strict=True)]
            for room in request.room
        ]
        self.x = [[self.proto.new_int_var(0, top, "") for top in row] for row in most]
        self._place()
        if most_servers < len(self.x):
            self._limit_servers(most_servers, most)
        for row, tops in enumerate(most):
            self._time(row, tops)
        self.proto.minimize(self.slowest + base_ns)

    def hint(self, matrix: Matrix) -> None:
        """Start the search at a matrix."""
        self.proto.clear_hints()  # type: ignore[no-untyped-call]
        for row, counts in zip(self.x, matrix.tolist(), strict=True):
            for variable, count in zip(row, counts, strict=True):
                self.proto.add_hint(variable, count)

    def matrix(self, solver: cp_model.CpSolver) -> Matrix:
        """Matrix of a solution."""
        return np.array([[solver.value(variable) for variable in row] for row in self.x], np.int64)

    def _place(self) -> None:
        request, sizes = self._request, self._request.sizes.tolist()
        for stage, count in enumerate(request.counts):
            self.proto.add(sum(row[stage] for row in self.x) == count)
        for row, room in zip(self.x, request.room.tolist(), strict=True):
            self.proto.add(sum(size * variable for size, variable in zip(sizes, row, strict=True)) <= room)

    def _limit_servers(self, most_servers: int, most: list[list[int]]) -> None:
        used = []
        for row, tops in zip(self.x, most, strict=True):
            used.append(self.proto.new_bool_var(""))
            for variable, top in zip(row, tops, strict=True):
                self.proto.add(variable <= top * used[-1])
        self.proto.add(sum(used) <= most_servers)

    def _time(self, row: int, most: list[int]) -> None:
        """The slowest time is at least that of a row."""
        costs = self._request.timing.costs(self._request.rows[row])
        if costs is None:
            self._listed(row)
            return
        check_horizon(costs)
        terms = _Row(self.proto, self.x[row], most, costs)
        if costs.kind is ColumnKind.EGRESS:
            self.proto.add(self.slowest >= terms.egress())
        else:
            for stage, held in enumerate(terms.held):
                if most[stage]:
                    self.proto.add(self.slowest >= terms.stage_ns(stage)).only_enforce_if(held)

    def _listed(self, row: int) -> None:
        """The row holds one of the columns that there are, and takes its time."""
        request = self._request
        counts, sizes, room = request.counts, request.sizes.tolist(), int(request.room[row])
        columns = column_count(counts, sizes, room) * len(request.rows)
        if columns > MOST_TUPLES:
            raise TooLargeError("placement", _METHOD, "columns", columns, MOST_TUPLES)
        table = columns_within(counts, sizes, room)
        times = request.columns_ns(table, np.full(len(table), request.classes[row]))
        times[0] = 0  # an empty row takes no time
        allowed = np.hstack([table, times[:, None]])
        taken = self.proto.new_int_var(0, int(times.max()), "")
        self.proto.add_allowed_assignments([*self.x[row], taken], allowed.tolist())
        self.proto.add(self.slowest >= taken)


class _Row:
    """Parts of the time of one row: literals for held and whole stages, and products."""

    def __init__(self, proto: cp_model.CpModel, x: list[Any], most: list[int], costs: ColumnCosts) -> None:
        self._proto, self._x, self._most, self._costs = proto, x, most, costs
        self.held = [self._at_least(stage, 1) for stage in range(len(x))]
        self._whole = [self._at_least(stage, count) for stage, count in enumerate(costs.counts)]

    def _at_least(self, stage: int, count: int) -> Any:
        """Literal that says whether a row holds so many replicas of a stage; 0 where it cannot."""
        x, top = self._x[stage], self._most[stage]
        if count > top:
            return 0
        if top == 1:
            return x
        literal = self._proto.new_bool_var("")
        self._proto.add(x >= count).only_enforce_if(literal)
        self._proto.add(x <= count - 1).only_enforce_if(~literal)
        return literal

    def egress(self) -> Any:
        """Nanoseconds that the card of the row is busy."""
        costs, x = self._costs, self._x
        terms = [
            ns * (costs.counts[t] * x[s] + costs.counts[s] * x[t] - 2 * self._product(s, t)) for s, t, ns in costs.pairs
        ]
        terms += [ring * (held - whole) for ring, held, whole in zip(costs.rings, self.held, self._whole, strict=True)]
        return sum(terms)

    def stage_ns(self, stage: int) -> Any:
        """Nanoseconds of a stage that the row holds."""
        costs = self._costs
        far = sum(ns * (costs.counts[t] - self._x[t]) for t, ns in costs.remote[stage])
        return costs.local[stage] + far + costs.rings[stage] * (1 - self._whole[stage])

    def _product(self, s: int, t: int) -> Any:
        if not self._most[s] or not self._most[t]:
            return 0
        product = self._proto.new_int_var(0, self._most[s] * self._most[t], "")
        if self._most[s] == self._most[t] == 1:
            # The time falls with the product, so that no more is needed.
            self._proto.add_implication(product, self._x[s])
            self._proto.add_implication(product, self._x[t])
        else:
            self._proto.add_multiplication_equality(product, [self._x[s], self._x[t]])
        return product
