"""Schrage's theorem for a fixed number of jobs of any sizes at any times, by one step of induction in an SMT solver.

Remaining sizes of the jobs under SRPT are a, those under any other schedule on one machine are b. The invariant: for
every k, what is left of a without its k largest is at most what is left of b without its k largest. It holds where
nothing has been released. Each unit of time SRPT serves a job with least left, the other schedule serves any job or
none, and jobs may arrive. If the invariant holds before, it holds after, and then SRPT has no more unfinished jobs.
"""

from __future__ import annotations

import importlib
import os
from itertools import combinations
from typing import Any

import pytest

z3: Any = importlib.import_module("z3") if os.environ.get("CI") else pytest.importorskip("z3")


class Step:
    """Two schedules of so many jobs before and after one unit of time, as formulas over integers."""

    def __init__(self, count: int) -> None:
        self.jobs = range(count)
        self.a, self.b = z3.IntVector("a", count), z3.IntVector("b", count)
        size = z3.IntVector("size", count)
        released, arriving = z3.BoolVector("released", count), z3.BoolVector("arriving", count)
        served, other = z3.Ints("served other")
        alive = [z3.And(released[j], self.a[j] > 0) for j in self.jobs]
        self.rules = [z3.And(self.a[j] >= 0, self.b[j] >= 0, size[j] >= 1) for j in self.jobs]
        self.rules += [z3.Implies(z3.Not(released[j]), z3.And(self.a[j] == 0, self.b[j] == 0)) for j in self.jobs]
        self.rules += [z3.Implies(arriving[j], z3.Not(released[j])) for j in self.jobs]
        self.rules += [served >= -1, served < count, other >= -1, other < count]
        self.never_idle = (served == -1) == z3.Not(z3.Or(alive))
        self.shortest = [
            z3.Implies(served == j, z3.And([z3.Implies(alive[i], self.a[j] <= self.a[i]) for i in self.jobs]))
            for j in self.jobs
        ]
        self.rules += [z3.Implies(served == j, alive[j]) for j in self.jobs]
        self.rules += [z3.Implies(other == j, z3.And(released[j], self.b[j] > 0)) for j in self.jobs]
        self.a_after = [z3.If(arriving[j], size[j], self.a[j] - z3.If(served == j, 1, 0)) for j in self.jobs]
        self.b_after = [z3.If(arriving[j], size[j], self.b[j] - z3.If(other == j, 1, 0)) for j in self.jobs]

    def invariant(self, a: Any, b: Any) -> Any:
        """For every k, a without its k largest is at most b without its k largest."""
        return z3.And([self.without_largest(a, k) <= self.without_largest(b, k) for k in self.jobs])

    def without_largest(self, left: Any, k: int) -> Any:
        """Sum without the k largest: the least sum of so many fewer."""
        sums = [z3.Sum([left[j] for j in chosen]) for chosen in combinations(self.jobs, len(self.jobs) - k)]
        least = sums[0]
        for one in sums[1:]:
            least = z3.If(one < least, one, least)
        return least

    def refutes(self, *formulas: Any) -> bool:
        """Whether the formulas contradict the rules; a solver that gives up is a failure."""
        solver = z3.Solver()
        solver.add(*self.rules, *formulas)
        answer = solver.check()
        assert answer != z3.unknown
        return bool(answer == z3.unsat)


COUNTS = [1, 2, 3]


@pytest.mark.parametrize("count", COUNTS)
def test_the_invariant_is_inductive(count: int) -> None:
    step = Step(count)
    before, after = step.invariant(step.a, step.b), step.invariant(step.a_after, step.b_after)
    assert step.refutes(step.never_idle, *step.shortest, before, z3.Not(after))


@pytest.mark.parametrize("count", COUNTS)
def test_the_invariant_bounds_the_unfinished_jobs(count: int) -> None:
    step = Step(count)
    unfinished = [z3.Sum([z3.If(left[j] > 0, 1, 0) for j in step.jobs]) for left in (step.a, step.b)]
    assert step.refutes(step.invariant(step.a, step.b), unfinished[0] > unfinished[1])


@pytest.mark.parametrize("count", COUNTS)
def test_the_invariant_holds_before_anything_is_released(count: int) -> None:
    step = Step(count)
    nothing = [left[j] == 0 for left in (step.a, step.b) for j in step.jobs]
    assert step.refutes(*nothing, z3.Not(step.invariant(step.a, step.b)))


def test_both_halves_of_the_rule_are_needed() -> None:
    """Without them the invariant breaks: the formulas are not empty."""
    step = Step(2)
    before, after = step.invariant(step.a, step.b), step.invariant(step.a_after, step.b_after)
    assert not step.refutes(step.never_idle, before, z3.Not(after))
    assert not step.refutes(*step.shortest, before, z3.Not(after))
    assert not step.refutes(step.never_idle, *step.shortest, before, after)
