"""A running search: the best plan and the best bound, kept outside of every solver, and when to stop."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from enum import StrEnum
from fractions import Fraction

from frostline.offline.check import faults
from frostline.offline.stop import Callback, GapLimit, SearchState, StopRule, TimeLimit, WorkLimit, limits_of, parts_of
from frostline.offline.tasks import Plan, Problem

__all__ = ["Search", "Termination", "log"]

log = logging.getLogger("frostline.offline")
log.addHandler(logging.NullHandler())


class Termination(StrEnum):
    """Why a search ended."""

    COMPLETE = "complete"  # nothing is left to find
    TIME_LIMIT = "time_limit"
    WORK_LIMIT = "work_limit"
    GAP = "gap"
    CALLBACK = "callback"
    INTERRUPTED = "interrupted"  # Ctrl-C
    TOO_LARGE = "too_large"  # for every exact method
    GAVE_UP = "gave_up"  # the solver ended by itself without a proof


_ENDS = ((TimeLimit, Termination.TIME_LIMIT), (WorkLimit, Termination.WORK_LIMIT), (GapLimit, Termination.GAP))


class Search:
    """Best plan and bound of one problem.

    Parameters
    ----------
    problem : Problem
        The problem.
    rule : StopRule or None
        When to stop.
    unit_us, offset_us : int
        Microseconds of a unit, and of the objective of value 0.
    on_progress : callable, optional
        Called with the state whenever plan or bound improve; what it raises reaches the caller.
    seed : int
        Seed of random choices.
    workers : int
        Threads of a solver.
    """

    def __init__(
        self,
        problem: Problem,
        rule: StopRule | None = None,
        *,
        unit_us: int = 1,
        offset_us: int = 0,
        on_progress: Callable[[SearchState], object] | None = None,
        seed: int = 0,
        workers: int = 1,
    ) -> None:
        self.problem, self.seed, self.workers = problem, seed, workers
        self.plan: Plan | None = None
        self.value: int | None = None
        self.source = ""
        self.bound, self.bound_source = 0, "trivial"
        self.work = 0.0
        self.termination: Termination | None = None
        self.infeasible = False
        self._rule, self._unit_us, self._offset_us = rule, unit_us, offset_us
        self._on_progress = on_progress
        self._time_s, self._most_work = limits_of(rule)
        self._started_s = time.perf_counter()

    # What is known.

    def offer(self, plan: Plan, source: str) -> bool:
        """Take a plan if it keeps every rule and is better; whether it was."""
        fault = next(faults(self.problem, plan), None)
        if fault is not None:
            if source not in _LISTS:
                log.error("%s claims a plan that breaks a rule, which is left out: %s", source, fault)
            return False
        value = self.problem.value(plan)
        if self.value is not None and value >= self.value:
            return False
        if value < self.bound:
            log.error(
                "%s has a plan of %d below the bound %d of %s, which is dropped",
                source,
                value,
                self.bound,
                self.bound_source,
            )
            self.bound, self.bound_source = 0, "trivial"
        self.plan, self.value, self.source = plan, value, source
        return True

    def prove(self, bound: float | Fraction, source: str) -> bool:
        """Take a lower bound on the value if it is higher; whether it was. None above the best plan is believed."""
        if not math.isfinite(bound):
            return False
        whole = math.ceil(bound)
        if self.value is not None and whole > self.value:
            log.error("%s claims a bound of %d above a plan of %d, which is left out", source, whole, self.value)
            return False
        if whole <= self.bound:
            return False
        self.bound, self.bound_source = whole, source
        return True

    @property
    def closed(self) -> bool:
        """Whether the best plan is proved optimal."""
        return self.value is not None and self.value == self.bound

    # When to stop.

    @property
    def state(self) -> SearchState:
        """How far it has come."""
        objective_us = None if self.value is None else self.value * self._unit_us + self._offset_us
        return SearchState(
            runtime_s=time.perf_counter() - self._started_s,
            work=self.work,
            objective_us=objective_us,
            bound_us=self.bound * self._unit_us + self._offset_us,
        )

    @property
    def left_s(self) -> float:
        """Seconds that are left, infinite without a limit."""
        return max(0.0, self._time_s - (time.perf_counter() - self._started_s))

    @property
    def left_work(self) -> float:
        """Work that is left, infinite without a limit."""
        return max(0.0, self._most_work - self.work)

    def forget_time(self, seconds: float) -> None:
        """Leave so many seconds out of the account, such as those of loading a solver."""
        self._started_s += seconds

    def report(self) -> None:
        """Tell the caller of an improvement."""
        if self._on_progress is not None:
            self._on_progress(self.state)

    def over(self, *, asks: bool = True) -> bool:
        """Whether to stop now, and why; without ``asks`` by what is the same on every machine alone."""
        if self.termination is not None:
            return True
        if self.closed:
            self.termination = Termination.COMPLETE
            return True
        state = self.state
        for part in parts_of(self._rule):
            certain = isinstance(part, GapLimit | WorkLimit)
            if (asks or certain) and part(state):
                ends = (end for kind, end in _ENDS if isinstance(part, kind))
                self.termination = next(ends, Termination.CALLBACK)
                return True
        return False

    @property
    def asks(self) -> bool:
        """Whether some rule must be asked again and again, because a solver cannot be told it."""
        known = (TimeLimit, WorkLimit, GapLimit)
        return any(isinstance(part, Callback) or not isinstance(part, known) for part in parts_of(self._rule))


_LISTS = ("list", "local-search", "hint")
