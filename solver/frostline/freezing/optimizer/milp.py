"""Mixed-integer linear model of a choice, built with PuLP and solved by HiGHS or CBC, to check the other methods by."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from frostline.errors import TooLargeError
from frostline.freezing.optimizer.answer import Answer, believed, bounded, log
from frostline.freezing.optimizer.knapsack import Knapsack
from frostline.freezing.optimizer.menus import Ints
from frostline.placement.solvers import SOLVERS, Effort, MipAnswer, Outcome, solve_mip, solver_named

if TYPE_CHECKING:
    import pulp

__all__ = ["LIMIT_S", "MOST_BINARIES", "milp"]

LIMIT_S = 60.0
"""Seconds of a search without a deadline."""

MOST_BINARIES = 500_000
"""Most binary variables of a model."""

_METHOD = "milp"
_LARGEST = 1e6
_TOLERANCE = 1e-7


def milp(knapsack: Knapsack, start: Answer, deadline_s: float = math.inf, solver: str = "") -> Answer:
    """Best choice by a mixed-integer linear program, as far as floats tell; never worse than where it starts.

    Solvers of such models work with floats and tolerances. Values are scaled so that the largest is at most a million;
    the choice is added up anew in whole steps, and the bound is raised by what tolerances may hide, which leaves it
    exact for values of at most a million steps and up to about a million jobs. Loading a solver for the first time is
    not counted.

    Parameters
    ----------
    knapsack : Knapsack
        Jobs and rows.
    start : Answer
        Incumbent.
    deadline_s : float
        Instant of :func:`time.perf_counter` at which to stop; :data:`LIMIT_S` from now at the latest.
    solver : str
        ``"highs"`` or ``"cbc"``; by default the first of :data:`~frostline.placement.solvers.SOLVERS` that is there.

    Raises
    ------
    TooLargeError
        More options than :data:`MOST_BINARIES`.
    SolverUnavailableError
        No solver can be run.
    """
    if len(knapsack.value) > MOST_BINARIES:
        raise TooLargeError("choice", _METHOD, "binary variables", len(knapsack.value), MOST_BINARIES)
    deadline_s += _load(solver)
    model = _Model(knapsack)
    left_s = min(deadline_s - time.perf_counter(), LIMIT_S)
    if left_s <= 0:
        return start
    try:
        found, used = solve_mip(model.problem, Effort(time_limit_s=left_s), solver)
    except KeyboardInterrupt:
        return replace(start, interrupted=True)
    name = f"{_METHOD}-{used.name}"
    answer = start
    if found.outcome in (Outcome.INFEASIBLE, Outcome.INVALID_MODEL):
        log.error("%s calls a model %s that has a valid choice; it is not believed", name, found.outcome)
    else:
        if found.outcome is not Outcome.NOTHING_FOUND:
            answer = believed(knapsack, answer, model.chosen(found), name)
        answer = bounded(answer, model.bound(found, answer.value), name)
    return replace(answer, interrupted=found.interrupted)


def _load(prefer: str) -> float:
    """Seconds that loading a solver takes."""
    started_s = time.perf_counter()
    (solver_named(prefer) if prefer else SOLVERS[0]).why_not()
    return time.perf_counter() - started_s


class _Model:
    """PuLP model: a binary for every option, and what all of them are worth to be lost at least."""

    def __init__(self, knapsack: Knapsack) -> None:
        import pulp

        self._knapsack = knapsack
        self._step = max(float(np.abs(knapsack.value).max(initial=0)) / _LARGEST, 1.0)
        self.problem = pulp.LpProblem("p")
        self._names = [f"v{option}" for option in range(len(knapsack.value))]
        taken = [self.problem.add_variable(name, 0, 1, pulp.LpInteger) for name in self._names]
        self.problem += self._sum(taken, -knapsack.value / self._step)
        for low, high in zip(knapsack.first.tolist(), knapsack.first[1:].tolist(), strict=False):
            self.problem += self._sum(taken[low:high], np.ones(high - low)) == 1
        for row in range(knapsack.coupled):
            weight = knapsack.weight(row)
            unit = max(float(weight.max()) / _LARGEST, 1.0)
            self.problem += self._sum(taken, weight / unit) <= int(knapsack.capacity[row]) / unit

    def _sum(self, taken: list[pulp.LpVariable], weights: npt.NDArray[np.float64]) -> pulp.LpAffineExpression:
        import pulp

        pairs = zip(taken, weights.tolist(), strict=True)
        return pulp.LpAffineExpression([(variable, weight) for variable, weight in pairs if weight])

    def chosen(self, answer: MipAnswer) -> Ints:
        """Choice of a solution."""
        values = answer.values
        taken = np.array([values[name] for name in self._names])
        return np.flatnonzero(np.rint(taken) == 1)

    def bound(self, answer: MipAnswer, value: int) -> int | None:
        """Bound on the value in steps, raised by what tolerances may hide; at least a value that is reached."""
        if not math.isfinite(answer.bound):
            return None
        hidden = _TOLERANCE * max(self._knapsack.jobs, 1)
        return max(math.floor((hidden - answer.bound) * self._step), value)
