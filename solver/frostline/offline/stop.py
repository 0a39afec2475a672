"""Stop rules: when a search ends with the best it has."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from frostline.errors import InvalidValueError
from frostline.units import as_finite

__all__ = ["AnyOf", "Callback", "GapLimit", "SearchState", "StopRule", "TimeLimit", "WorkLimit", "gap_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchState:
    """How far a search has come.

    Parameters
    ----------
    runtime_s : float
        Seconds since it began.
    work : float
        Deterministic work so far: equal searches do equal work. One unit takes roughly a second.
    objective_us : int or None
        Objective of the best schedule so far in microseconds; None without one.
    bound_us : int
        Best lower bound so far in microseconds.
    """

    runtime_s: float = 0.0
    work: float = 0.0
    objective_us: int | None = None
    bound_us: int = 0

    @property
    def gap(self) -> float | None:
        """See :func:`gap_of`."""
        return gap_of(self.objective_us, self.bound_us)


def gap_of(objective_us: int | None, bound_us: int) -> float | None:
    """Distance of an objective to a bound as a share of the objective; None where that means nothing.

    Examples
    --------
    >>> gap_of(200, 150), gap_of(0, 0), gap_of(None, 3)
    (0.25, 0.0, None)
    """
    if objective_us is None:
        return None
    if objective_us <= bound_us:
        return 0.0
    return (objective_us - bound_us) / objective_us if objective_us > 0 else None


class StopRule(Protocol):
    """Says of a search whether it should end; called often, from the thread that called the solver."""

    def __call__(self, state: SearchState, /) -> bool:
        """Whether the search should end now."""
        ...  # pragma: no cover


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """Stop after so many seconds of wall time; loading a solver for the first time is not counted.

    Examples
    --------
    >>> TimeLimit(2)(SearchState(runtime_s=1.0)), TimeLimit(2)(SearchState(runtime_s=2.0))
    (False, True)
    """

    seconds: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "seconds", as_finite(self.seconds, "stop rule", "seconds", 0.0))

    def __call__(self, state: SearchState, /) -> bool:
        """Whether the time is over."""
        return state.runtime_s >= self.seconds


@dataclass(frozen=True, slots=True)
class WorkLimit:
    """Stop after so much deterministic work, so that equal searches end at the same point on any machine.

    One unit is a unit of CP-SAT's deterministic time, a thousand nodes of a linear solver, or a million and a half
    steps of the list scheduler.

    Examples
    --------
    >>> WorkLimit(10)(SearchState(work=9.5))
    False
    """

    work: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "work", as_finite(self.work, "stop rule", "work", 0.0))

    def __call__(self, state: SearchState, /) -> bool:
        """Whether the work is done."""
        return state.work >= self.work


@dataclass(frozen=True, slots=True)
class GapLimit:
    """Stop as soon as the objective is proved to be within a share of itself from the optimum.

    Examples
    --------
    >>> GapLimit(0.3)(SearchState(objective_us=200, bound_us=150)), GapLimit(0.3)(SearchState())
    (True, False)
    """

    gap: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "gap", as_finite(self.gap, "stop rule", "gap", 0.0, 1.0))

    def __call__(self, state: SearchState, /) -> bool:
        """Whether the gap is small enough."""
        gap = state.gap
        return gap is not None and gap <= self.gap


@dataclass(frozen=True, slots=True)
class Callback:
    """Stop when a function says so; the functions of other rules are rules themselves, this one only names it.

    Examples
    --------
    >>> Callback(lambda state: state.objective_us == 7)(SearchState(objective_us=7))
    True
    """

    asked: Callable[[SearchState], bool] = field(hash=False)

    def __call__(self, state: SearchState, /) -> bool:
        """What the function says."""
        return bool(self.asked(state))


@dataclass(frozen=True, slots=True, init=False)
class AnyOf:
    """Stop as soon as one of several rules does.

    Examples
    --------
    >>> rule = AnyOf(TimeLimit(60), GapLimit(0.01))
    >>> rule(SearchState(runtime_s=60.0))
    True
    """

    rules: tuple[StopRule, ...]

    def __init__(self, *rules: StopRule) -> None:
        for rule in rules:
            if not callable(rule):
                raise InvalidValueError("stop rule", "rules", rule, "must be callable")
        object.__setattr__(self, "rules", rules)

    def __call__(self, state: SearchState, /) -> bool:
        """Whether one of them says so."""
        return any(rule(state) for rule in self.rules)


def parts_of(rule: StopRule | None) -> tuple[StopRule, ...]:
    """The rules that a rule is made of.

    Examples
    --------
    >>> len(parts_of(AnyOf(TimeLimit(1), AnyOf(GapLimit(0), WorkLimit(2))))), parts_of(None)
    (3, ())
    """
    if rule is None:
        return ()
    return tuple(part for inner in rule.rules for part in parts_of(inner)) if isinstance(rule, AnyOf) else (rule,)


def limits_of(rule: StopRule | None) -> tuple[float, float]:
    """Seconds and work at which a rule stops at the latest, infinite where it does not tell.

    Examples
    --------
    >>> limits_of(AnyOf(TimeLimit(5), TimeLimit(3)))
    (3.0, inf)
    """
    parts = parts_of(rule)
    time_s = min((part.seconds for part in parts if isinstance(part, TimeLimit)), default=math.inf)
    work = min((part.work for part in parts if isinstance(part, WorkLimit)), default=math.inf)
    return time_s, work
