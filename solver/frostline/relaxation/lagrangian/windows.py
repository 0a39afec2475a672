"""When jobs may start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from frostline.relaxation.lagrangian.kernel import Ints
from frostline.relaxation.lagrangian.problem import PriceProblem

__all__ = ["NEVER", "Windows"]

NEVER = 2**60
"""Latest start of a job that may start at any time."""


@dataclass(frozen=True, slots=True)
class Windows:
    """Earliest and latest start of every job, in ticks after the origin of its problem."""

    earliest: Ints
    latest: Ints

    @classmethod
    def of(cls, problem: PriceProblem) -> Windows:
        """From release to any time."""
        return cls(problem.release - problem.origin, np.full(problem.jobs, NEVER))

    @property
    def empty(self) -> bool:
        """Whether some job cannot start at all."""
        return bool((self.earliest > self.latest).any())

    def by(self, job: int, at: int) -> Windows:
        """The same, and a job starts by an instant."""
        return Windows(self.earliest, _with(self.latest, job, min, at))

    def after(self, job: int, at: int) -> Windows:
        """The same, and a job starts after an instant."""
        return Windows(_with(self.earliest, job, max, at + 1), self.latest)


def _with(values: Ints, job: int, pick: Callable[[int, int], int], value: int) -> Ints:
    changed = values.copy()
    changed[job] = pick(int(changed[job]), value)
    return changed
