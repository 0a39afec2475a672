"""The whole run of elastic work on GPUs that it keeps, its freeze levels planned ahead, exact to the microsecond."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, groupby, pairwise
from typing import NamedTuple

import numpy as np

from frostline.freezing.belief import terms_of
from frostline.freezing.progress import FreezeState, FreezeTerms
from frostline.freezing.trajectory import plan_trajectory
from frostline.problem.job import Elastic, PlacementClass
from frostline.timing.duration import elastic_iteration_ns
from frostline.units import as_int

__all__ = ["LONGEST_PLAN_US", "LevelPhase", "LevelPlan", "plan_levels"]

LONGEST_PLAN_US = 10**15
"""Runs this long without freezing, about 32 years, are not planned: up to here seconds as floats tell microseconds."""

_NS_PER_US = 1000
_NS_PER_S = 1e9


class LevelPhase(NamedTuple):
    """A part of a run at one freeze level.

    Parameters
    ----------
    iterations : int
        Iterations that it does.
    level : int
        Freeze level.
    pause_us : int
        Microseconds at its start that the change of level takes.
    duration_us : int
        Its microseconds, the pause included.
    """

    iterations: int
    level: int
    pause_us: int
    duration_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelPlan:
    """Freeze levels of a whole run.

    Parameters
    ----------
    phases : tuple of LevelPhase
        The parts, each at another level than the one before.
    iteration_ns : tuple of int
        Nanoseconds of one iteration at each level.
    debt_points : float
        Accuracy debt that is believed of it.
    """

    phases: tuple[LevelPhase, ...]
    iteration_ns: tuple[int, ...]
    debt_points: float = 0.0

    @property
    def duration_us(self) -> int:
        """Microseconds of the run."""
        return sum(phase.duration_us for phase in self.phases)

    @property
    def frozen(self) -> bool:
        """Whether anything is frozen at any time."""
        return any(phase.level for phase in self.phases)

    @property
    def stretches(self) -> tuple[tuple[int, int, int], ...]:
        """Frozen stretches: iterations done at the start and end, and the level."""
        ends = accumulate(phase.iterations for phase in self.phases)
        spans = zip(self.phases, ends, strict=True)
        return tuple((end - phase.iterations, end, phase.level) for phase, end in spans if phase.level)

    def left_us(self, done: int) -> int:
        """Microseconds that the run still takes once so many iterations are done, changes of level included.

        Examples
        --------
        >>> phases = (LevelPhase(4, 0, 0, 40), LevelPhase(6, 1, 5, 35))
        >>> plan = LevelPlan(phases=phases, iteration_ns=(10_000, 5_000))
        >>> [plan.left_us(done) for done in (0, 3, 4, 5, 10)]
        [75, 45, 35, 25, 0]
        """
        left_us = 0
        for phase in self.phases:
            if done <= 0:
                left_us += phase.duration_us
            elif done < phase.iterations:
                left_us += _whole_us(phase.iterations - done, self.iteration_ns[phase.level])
            done -= phase.iterations
        return left_us


def plan_levels(
    work: Elastic, gpus: int, where: PlacementClass, *, level_change_us: int = 100_000, phases: int = 20
) -> LevelPlan:
    """Freeze levels that make the run of elastic work shortest, within the accuracy debt that it allows.

    The levels of phases of equal progress are those of :func:`~frostline.freezing.plan_trajectory`, with the debt that
    is believed of the family of the work. Phases begin at whole iterations, nothing is frozen before the warm-up of the
    work and of the law. The run is at most as long as one without freezing; where none is shorter, nothing is frozen.

    Parameters
    ----------
    work : Elastic
        The work.
    gpus : int
        GPUs that it runs on.
    where : PlacementClass
        Class of their placement.
    level_change_us : int
        Microseconds by which the run is longer for each change of level.
    phases : int
        Phases after the warm-up.

    Raises
    ------
    InvalidValueError
        The work has no such width, or a number is out of its range.

    Notes
    -----
    Levels whose iterations take less than a microsecond are left out: a run changes its level at whole microseconds.

    Examples
    --------
    >>> work = Elastic(iterations=100, widths=[1], seconds_per_iteration={"one_server": {1: (2, 1.5, 1)}},
    ...                compute_shares=[0, 0.5, 1], family="fine-tuning", quality_budget_points=1)
    >>> plan = plan_levels(work, 1, PlacementClass.ONE_SERVER)
    >>> [(phase.iterations, phase.level) for phase in plan.phases], plan.duration_us, round(plan.debt_points, 3)
    ([(20, 0), (28, 1), (52, 2)], 134200000, 0.999)
    """
    change_us = as_int(level_change_us, "level plan", "level_change_us", 0)
    count = as_int(phases, "level plan", "phases", 1)
    levels = range(work.levels)
    iteration_ns = tuple(elastic_iteration_ns(work, gpus, where, level) for level in levels)
    unfrozen_us = _whole_us(work.iterations, iteration_ns[0])
    none = LevelPlan(phases=(LevelPhase(work.iterations, 0, 0, unfrozen_us),), iteration_ns=iteration_ns)
    usable = sum(ns >= _NS_PER_US for ns in iteration_ns)
    if usable < 2 or iteration_ns[usable - 1] == iteration_ns[0] or unfrozen_us >= LONGEST_PLAN_US:
        return none
    terms = terms_of(work, phases=count)
    plan = _shortest(work.iterations, iteration_ns, usable, terms, change_us)
    return plan if plan.duration_us < unfrozen_us else none


@lru_cache(maxsize=8192)
def _shortest(
    iterations: int, iteration_ns: tuple[int, ...], usable: int, terms: FreezeTerms, change_us: int
) -> LevelPlan:
    """Plan of the levels below ``usable`` that takes the least time, as far as debts and times in floats can tell."""
    edges = _edges(iterations, terms)
    progress = [edge / iterations for edge in edges]
    debts = terms.debts_points(progress, FreezeState())[:, :usable]
    warm_up = Fraction(repr(terms.law.warm_up)) * iterations
    debts[[edge < warm_up for edge in edges[:-1]], 1:] = np.inf
    spans_s = np.multiply.outer(np.diff(edges), np.array(iteration_ns[:usable])) / _NS_PER_S
    found = plan_trajectory(
        spans_s, debts, terms.quality_budget_points, change_cost_s=change_us / 1e6, boundaries=progress
    )
    phases = tuple(_phases(edges, found.levels, iteration_ns, change_us))
    return LevelPlan(phases=phases, iteration_ns=iteration_ns, debt_points=found.debt_points)


def _edges(iterations: int, terms: FreezeTerms) -> list[int]:
    """Iterations done where the phases begin, the warm-up first, and at the end; no phase is empty."""
    warm_up = Fraction(repr(terms.law.warm_up))
    starts = (warm_up + (1 - warm_up) * i / terms.phases for i in range(terms.phases))
    return sorted({0, iterations, *(-(start * iterations // -1) for start in starts)})


def _phases(
    edges: Sequence[int], levels: Sequence[int], iteration_ns: Sequence[int], change_us: int
) -> Iterator[LevelPhase]:
    """Parts of a run; those at one level are one."""
    pause_us = 0
    spans = zip(levels, (end - start for start, end in pairwise(edges)), strict=True)
    for level, parts in groupby(spans, key=lambda span: span[0]):
        iterations = sum(count for _, count in parts)
        yield LevelPhase(iterations, level, pause_us, pause_us + _whole_us(iterations, iteration_ns[level]))
        pause_us = change_us


def _whole_us(iterations: int, iteration_ns: int) -> int:
    return -(iterations * iteration_ns // -_NS_PER_US)
