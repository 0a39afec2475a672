"""Simulated annealing over lists where all GPUs are one pool: many changes at a time, compiled where numba is there."""

from __future__ import annotations

import time
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from frostline.offline import kernel
from frostline.offline.listing import list_of, listed
from frostline.offline.search import Search
from frostline.offline.tasks import Objective, Plan, Problem
from frostline.placement.jit import compiled_or_none

__all__ = ["PoolWalk"]

_STEPS_AT_ONCE, _MOST_AT_ONCE = 500_000, 1000
_LARGEST = 2**62
_MODE_SHARE = 0.3
_COOLING = 0.05


class PoolWalk:
    """One annealing of a list; the temperature falls from half of the mean duration to a twentieth of that.

    Parameters
    ----------
    search : Search
        The search; its plan gives the list to begin with.
    run : int
        Number of the annealing, for its random numbers.
    """

    runs = 4
    """Annealings of a search: one long one is no better than the best of several."""

    steps_per_work, steps_per_cube, most_steps = 15_000_000, 2000, 60_000_000
    faster = 10
    """By how much more is done in the same time where loops are compiled."""

    def __init__(self, search: Search, run: int) -> None:
        problem = search.problem
        begun_s = time.perf_counter()
        compiled = compiled_or_none(kernel)
        search.forget_time(time.perf_counter() - begun_s)
        self._search, self._problem, self._loops = search, problem, compiled or kernel
        self._rng = np.random.default_rng([search.seed, run])
        self._release, self._first, self._modes = _arrays(problem)
        order = list_of(problem, search.plan)
        self._lists = np.full((2, 2, len(order)), -1, np.int64)
        self._lists[:, 0] = order
        self._several = np.flatnonzero(np.diff(self._first) > 1)
        self._values = np.full(2, self._begun(order), np.int64)
        self._hottest = sum(task.least_duration for task in problem.tasks) / len(problem.tasks) / 2
        self._count = min(_MOST_AT_ONCE, max(1, _STEPS_AT_ONCE // len(order) ** 2))

    @staticmethod
    def serves(problem: Problem) -> bool:
        """Whether all GPUs are one pool, no deadline counts, and no number is too large."""
        small = 2 * len(problem.tasks) * (problem.horizon + max(_penalties(problem))) < _LARGEST
        return small and len(problem.capacities) == 1 and all(task.deadline is None for task in problem.tasks)

    @staticmethod
    def compiled() -> bool:
        """Whether its loops are compiled."""
        return compiled_or_none(kernel) is not None

    def step(self, share: float) -> int:
        """Try a number of changes, after a share of the annealing; the steps it took."""
        temperature = self._hottest * _COOLING**share
        allowed = -temperature * np.log(1.0 - self._rng.random(self._count))
        before = int(self._values[1])
        steps = int(
            self._loops.annealed(
                self._lists,
                self._values,
                self._release,
                self._first,
                self._modes,
                self._problem.gpus,
                self._problem.objective is Objective.MAKESPAN,
                self._changes(),
                allowed,
            )
        )
        self._search.work += steps / self.steps_per_work
        if self._values[1] < before:
            self._offer(self._best())
        return steps

    def _changes(self) -> npt.NDArray[np.int64]:
        """Exchanges, moves, and where tasks have several modes, changes of these."""
        rng, count, several = self._rng, self._count, self._several
        tasks = len(self._release)
        changes = np.column_stack([rng.integers(2, size=count), rng.integers(tasks, size=(count, 2))])
        if len(several):
            of_mode = np.flatnonzero(rng.random(count) < _MODE_SHARE)
            chosen = several[rng.integers(len(several), size=len(of_mode))]
            modes = np.diff(self._first)[chosen]
            changes[of_mode] = np.column_stack([np.full_like(chosen, 2), chosen, rng.integers(-1, modes)])
        return changes

    def _offer(self, plan: Plan) -> None:
        if self._search.offer(plan, "local-search"):
            self._search.report()

    def _best(self) -> Plan:
        """Plan of the best list."""
        order, fixed = self._lists[1].tolist()
        return listed(self._problem, order, [mode if mode >= 0 else None for mode in fixed])[0]

    def _begun(self, order: list[int]) -> int:
        """Value of the list to begin with, in the units of the loops: ends, and not flows."""
        plan, _ = listed(self._problem, order)
        self._offer(plan)
        releases = 0 if self._problem.objective is Objective.MAKESPAN else int(self._release.sum())
        return self._problem.value(plan) + releases


def _penalties(problem: Problem) -> list[int]:
    return [0, *(mode.penalty for task in problem.tasks for mode in task.modes)]


def _arrays(problem: Problem) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Releases, first modes, and GPUs, durations, costs and areas of the modes."""
    modes = [mode for task in problem.tasks for mode in task.modes]
    rows = [[mode.gpus, mode.duration, mode.cost, mode.area] for mode in modes]
    first = [0, *accumulate(len(task.modes) for task in problem.tasks)]
    release = [task.release for task in problem.tasks]
    return np.array(release, np.int64), np.array(first, np.int64), np.array(rows, np.int64).T.copy()
