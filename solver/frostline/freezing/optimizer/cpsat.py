"""Model of a choice with OR-Tools CP-SAT: one literal for every option."""

from __future__ import annotations

import math
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from frostline.errors import TooLargeError
from frostline.freezing.optimizer.answer import Answer, believed, bounded, log
from frostline.freezing.optimizer.knapsack import Knapsack
from frostline.freezing.optimizer.menus import Ints
from frostline.placement.interruptible import run_interruptibly
from frostline.placement.solvers import Outcome

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

__all__ = ["EFFORT", "MOST_LITERALS", "cpsat"]

EFFORT = 10.0
"""Deterministic time of a search without a deadline, roughly seconds: equal searches stop at the same point."""

MOST_LITERALS = 2_000_000
"""Most options of a model."""

_METHOD = "cpsat"
_EXACT = 1 << 53

_OUTCOMES = {
    "OPTIMAL": Outcome.OPTIMAL,
    "FEASIBLE": Outcome.FEASIBLE,
    "INFEASIBLE": Outcome.INFEASIBLE,
    "MODEL_INVALID": Outcome.INVALID_MODEL,
}


def cpsat(knapsack: Knapsack, start: Answer, deadline_s: float = math.inf, seed: int = 0) -> Answer:
    """Best choice by CP-SAT, never worse than where it starts.

    The incumbent is the hint. The search runs on one thread; without a deadline it stops after :data:`EFFORT` of the
    solver's deterministic time, so that equal searches have equal answers. Loading the solver for the first time is not
    counted. What the solver claims is checked: its choice is added up anew, and a claim that the incumbent contradicts
    is logged with the model and not believed.

    Parameters
    ----------
    knapsack : Knapsack
        Jobs and rows.
    start : Answer
        Incumbent.
    deadline_s : float
        Instant of :func:`time.perf_counter` at which to stop.
    seed : int
        Seed of the solver.

    Raises
    ------
    TooLargeError
        More options than :data:`MOST_LITERALS`.
    """
    if len(knapsack.value) > MOST_LITERALS:
        raise TooLargeError("choice", _METHOD, "literals", len(knapsack.value), MOST_LITERALS)
    deadline_s += _load()
    model = _Model(knapsack, start.chosen)
    if deadline_s <= time.perf_counter():
        return start
    solver, outcome, interrupted = _run(model, deadline_s - time.perf_counter(), seed)
    answer = start
    if outcome in (Outcome.INFEASIBLE, Outcome.INVALID_MODEL):
        _report_fault(model.proto, outcome)
    else:
        if outcome is not Outcome.NOTHING_FOUND:
            answer = believed(knapsack, answer, model.chosen(solver), _METHOD)
        answer = bounded(answer, _bound(solver.best_objective_bound), _METHOD)
    return replace(answer, interrupted=interrupted)


def _load() -> float:
    """Seconds that loading the solver takes."""
    started_s = time.perf_counter()
    from ortools.sat.python import cp_model  # noqa: F401

    return time.perf_counter() - started_s


def _bound(bound: float) -> int | None:
    """Whole number that a bound tells; beyond 2^53 the next float is as good."""
    if not math.isfinite(bound):
        return None
    return round(bound) if abs(bound) < _EXACT else math.ceil(math.nextafter(bound, math.inf))


def _run(model: _Model, left_s: float, seed: int) -> tuple[cp_model.CpSolver, Outcome, bool]:
    """Search for so many seconds, or with the usual effort where they are infinite; whether Ctrl-C ended it."""
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    parameters = solver.parameters
    parameters.num_workers = 1
    parameters.random_seed = seed % (1 << 31)
    parameters.catch_sigint_signal = False
    if math.isinf(left_s):
        parameters.max_deterministic_time = EFFORT
    else:
        parameters.max_time_in_seconds = left_s
    status, interrupted = run_interruptibly(lambda: solver.solve(model.proto), solver.stop_search)
    return solver, _OUTCOMES.get(solver.status_name(status), Outcome.NOTHING_FOUND), interrupted


def _report_fault(proto: cp_model.CpModel, outcome: Outcome) -> None:
    with tempfile.NamedTemporaryFile(prefix="frostline-fault-", suffix=".pbtxt", delete=False) as file:
        name = file.name
    Path(name).unlink()
    proto.export_to_file(name)
    log.error("CP-SAT calls a model with a valid choice %s, which is not believed; the model is in %s", outcome, name)


class _Model:
    """Literals of the options, one true for each job, and the rows."""

    def __init__(self, knapsack: Knapsack, start: Ints) -> None:
        from ortools.sat.python import cp_model

        self._knapsack = knapsack
        self.proto = cp_model.CpModel()
        self._literals = [self.proto.new_bool_var("") for _ in range(len(knapsack.value))]
        for low, high in zip(knapsack.first.tolist(), knapsack.first[1:].tolist(), strict=False):
            self.proto.add_exactly_one(self._literals[low:high])
        for row in range(knapsack.coupled):
            self._add_row(knapsack.weight(row), int(knapsack.capacity[row]))
        self.proto.maximize(cp_model.LinearExpr.weighted_sum(self._literals, knapsack.value.tolist()))
        held = np.zeros(len(knapsack.value), bool)
        held[start] = True
        for literal, value in zip(self._literals, held.tolist(), strict=True):
            self.proto.add_hint(literal, value)

    def _add_row(self, weight: Ints, most: int) -> None:
        from ortools.sat.python import cp_model

        used = np.flatnonzero(weight).tolist()
        literals = [self._literals[option] for option in used]
        self.proto.add(cp_model.LinearExpr.weighted_sum(literals, weight[used].tolist()) <= most)

    def chosen(self, solver: cp_model.CpSolver) -> Ints:
        """Choice of a solution."""
        taken = [option for option, literal in enumerate(self._literals) if solver.boolean_value(literal)]
        return np.array(taken, np.int64)
