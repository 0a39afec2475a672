"""Heuristics: lists in several orders, and a local search over lists."""

from __future__ import annotations

import math

import numpy as np

from frostline.offline.listing import dispatched, list_of, listed, orders
from frostline.offline.pool_walk import PoolWalk
from frostline.offline.search import Search
from frostline.offline.tasks import Plan

__all__ = ["MOST_TASKS", "STEPS_PER_WORK", "heuristics", "local_search"]

STEPS_PER_WORK = 1_500_000
"""Steps of the list scheduler in one unit of work."""

MOST_TASKS = 400
"""Most tasks of a local search."""

_SHARE = 0.4
_COOLING = 0.1
_MODE_SHARE = 0.3
_SERIAL_TASKS = 2000


def heuristics(search: Search) -> None:
    """Offer the plans of all orders, as lists and as dispatched by event; the first one whatever the rule says."""
    problem = search.problem
    for number, order in enumerate(orders(problem)):
        if number and search.over():
            return
        for start in (dispatched(problem, order), order)[: 2 if len(order) <= _SERIAL_TASKS else 1]:
            plan, steps = listed(problem, start)
            search.work += steps / STEPS_PER_WORK
            if search.offer(plan, "list"):
                search.report()


def local_search(search: Search) -> None:
    """Anneal the list of the best plan: move and swap tasks and change their modes, at first also for the worse.

    The temperature falls from a share of the mean duration to a small part of that (S. Kirkpatrick, C. D. Gelatt,
    M. P. Vecchi, *Optimization by simulated annealing*, Science 220, 1983, doi:10.1126/science.220.4598.671); on one
    pool of GPUs this is done several times over. Where deadlines are missed, less lateness counts before the value. It
    takes two fifths of the time and work that are left, and no more steps than the problem is worth.
    """
    count = len(search.problem.tasks)
    if not 2 <= count <= MOST_TASKS or search.over():
        return
    walks: type[PoolWalk] | type[_Walk] = PoolWalk if PoolWalk.serves(search.problem) else _Walk
    steps, time_s = _most_steps(search, walks), _SHARE * search.left_s
    taken, share, begun_s = 0, 0.0, search.state.runtime_s
    for run in range(walks.runs):
        walk = walks(search, run)
        while share * walks.runs < run + 1 and not search.over():
            taken += walk.step(share * walks.runs - run)
            share = taken / steps
            if math.isfinite(time_s):
                share = max(share, (search.state.runtime_s - begun_s) / time_s)


def _most_steps(search: Search, walks: type[PoolWalk] | type[_Walk]) -> float:
    """Steps that a problem is worth: by its size, and by the work that is left or, under a limit of time, by speed."""
    worth = walks.steps_per_cube * len(search.problem.tasks) ** 3
    if math.isfinite(search.left_s) and not math.isfinite(search.left_work) and walks.compiled():
        return worth * walks.faster
    return min(walks.most_steps, worth, _SHARE * search.left_work * walks.steps_per_work)


class _Walk:
    """A list of tasks, the modes that are fixed, and how good their plan is."""

    runs = faster = 1
    steps_per_work, steps_per_cube, most_steps = STEPS_PER_WORK, 200, 6_000_000

    def __init__(self, search: Search, run: int = 0) -> None:
        problem = search.problem
        self._search, self._problem = search, problem
        self._rng = np.random.default_rng(search.seed)
        self._order = list_of(problem, search.plan)
        self._modes: list[int | None] = [None] * len(self._order)
        self._several = [i for i, task in enumerate(problem.tasks) if len(task.modes) > 1]
        self._rank = self._ranked(listed(problem, self._order)[0])
        self._hottest = sum(task.least_duration for task in problem.tasks) / len(problem.tasks) / 4

    @staticmethod
    def compiled() -> bool:
        """Whether its loops are compiled."""
        return False

    def step(self, share: float) -> int:
        """Try one change, after a share of the search; the steps it took."""
        order, modes = list(self._order), list(self._modes)
        if self._several and self._rng.random() < _MODE_SHARE:
            number = self._several[int(self._rng.integers(len(self._several)))]
            mode = int(self._rng.integers(-1, len(self._problem.tasks[number].modes)))
            modes[number] = None if mode < 0 else mode
        else:
            _moved(order, self._rng)
        plan, steps = listed(self._problem, order, modes if self._several else ())
        self._search.work += steps / STEPS_PER_WORK
        rank = self._ranked(plan)
        if self._accepts(rank, share):
            self._order, self._modes, self._rank = order, modes, rank
        if rank[0] == 0 and self._search.offer(plan, "local-search"):
            self._search.report()
        return steps

    def _accepts(self, rank: tuple[int, int], share: float) -> bool:
        if rank <= self._rank:
            return True
        if rank[0] != self._rank[0]:
            return False
        temperature = self._hottest * _COOLING**share
        return bool(self._rng.random() < math.exp((self._rank[1] - rank[1]) / temperature))

    def _ranked(self, plan: Plan) -> tuple[int, int]:
        """Lateness against deadlines, and the value."""
        problem = self._problem
        late = sum(
            max(0, problem.end(i, run) - task.deadline)
            for i, (task, run) in enumerate(zip(problem.tasks, plan, strict=True))
            if task.deadline is not None
        )
        return late, problem.value(plan)


def _moved(order: list[int], rng: np.random.Generator) -> None:
    """Move one task of a list elsewhere, or exchange two."""
    i, j = rng.integers(len(order), size=2).tolist()
    if rng.random() < 0.5:
        order[i], order[j] = order[j], order[i]
    else:
        order.insert(j, order.pop(i))
