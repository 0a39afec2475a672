"""Brute force: every order of starts, every mode and every set of GPUs. The oracle of the other methods.

Some optimal plan is found this way. Take an optimal plan whose starts have the least sum, and go through its tasks by
start. Each starts at the first instant, no earlier than its release and the start of the task before it, from which
the GPUs it holds are not held by tasks that started before: an earlier start would be a plan of no greater value and
a smaller sum of starts, because all objectives rise with the ends of tasks only and deadlines stay met. That instant
is the release, the start before, or an end. Going through all orders, modes and GPUs meets this plan.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from frostline.errors import TooLargeError
from frostline.offline.search import Search, Termination
from frostline.offline.tasks import Loads, Mode, Objective, Plan, Problem, Run

__all__ = ["MOST_STEPS", "brute_force", "check_steps", "loads_of", "steps"]

MOST_STEPS = 400_000
"""Most steps of a brute-force search, a few seconds' worth."""

_METHOD = "brute-force"
_NEVER = 1 << 62


def loads_of(mode: Mode, capacities: Sequence[int]) -> Iterator[Loads]:
    """Every set of GPUs that a mode may hold.

    Examples
    --------
    >>> [*loads_of(Mode(3, 1, (0, 1), 1, 2), [2, 3])]
    [((1, 3),), ((0, 1), (1, 2)), ((0, 2), (1, 1))]
    """

    def rest(servers: Sequence[int], gpus: int) -> Iterator[Loads]:
        if not servers:
            if not gpus:
                yield ()
            return
        for taken in range(min(gpus, capacities[servers[0]]) + 1):
            for others in rest(servers[1:], gpus - taken):
                yield (((servers[0], taken), *others) if taken else others)

    for loads in rest(mode.servers, mode.gpus):
        if mode.least <= len(loads) <= mode.most:
            yield loads


def steps(problem: Problem) -> int:
    """Upper bound on the steps of the search: orders of starts times choices, without what it remembers.

    Examples
    --------
    >>> from frostline.offline.tasks import Task
    >>> steps(Problem((8,), (Task(0, (Mode(1, 1),)),) * 5, Objective.FLOW))
    326
    """
    count, product = 1, 1
    choices = sorted((_choices(problem, number) for number in range(len(problem.tasks))), reverse=True)
    for left, choice in zip(range(len(choices), 0, -1), choices, strict=True):
        product *= left * choice
        count += product
    return count


def _choices(problem: Problem, number: int) -> int:
    """Upper bound on the modes and sets of GPUs of a task, counted without listing them."""
    count = 0
    for mode in problem.tasks[number].modes:
        several = math.prod(min(mode.gpus, problem.capacities[m]) + 1 for m in mode.servers[1:])
        count += len(mode.servers) if mode.most == 1 else several
    return count


def check_steps(search: Search) -> None:
    """Refuse a search of more than :data:`MOST_STEPS`, with what it would take."""
    count = steps(search.problem)
    if count > MOST_STEPS:
        raise TooLargeError("solve", _METHOD, "steps", count, MOST_STEPS)


def brute_force(search: Search) -> None:
    """Search all plans in which tasks start one after another as early as they can, for tiny problems.

    What is left of a search depends on the tasks that have not started, on the last start and on the runs that go on
    then; equal rests are solved once.

    Parameters
    ----------
    search : Search
        The search.

    Raises
    ------
    TooLargeError
        More than :data:`MOST_STEPS`.

    Examples
    --------
    >>> from frostline.offline.tasks import Task
    >>> tasks = (Task(0, (Mode(8, 10),)), Task(0, (Mode(4, 2),)))
    >>> search = Search(Problem((8,), tasks, Objective.FLOW))
    >>> brute_force(search)
    >>> search.value, search.bound, search.plan[0].start
    (14, 14, 2)
    """
    check_steps(search)
    try:
        value, plan = _Tree(search).best()
    except KeyboardInterrupt:
        search.termination = Termination.INTERRUPTED
        return
    except _StoppedError:
        return
    if plan is None:
        search.infeasible = search.plan is None
    else:
        search.offer(plan, _METHOD)
        search.prove(value, _METHOD)
        search.report()
    search.termination = Termination.COMPLETE


class _StoppedError(Exception):
    """The rule of the search says to stop."""


_Running = tuple[tuple[int, Loads], ...]
_Rest = tuple[int, int, _Running]
_Step = tuple[int, Run, _Rest]


class _Tree:
    """All ways to go on from a set of tasks that have not started, a last start, and runs that go on."""

    def __init__(self, search: Search) -> None:
        self._search, self._problem = search, search.problem
        self._known: dict[_Rest, tuple[int, _Step | None]] = {}
        sets = [
            [(k, loads) for k, mode in enumerate(task.modes) for loads in loads_of(mode, self._problem.capacities)]
            for task in self._problem.tasks
        ]
        self._sets = sets

    def best(self) -> tuple[int, Plan | None]:
        """Least value and a plan that has it; no plan where deadlines allow none."""
        rest: _Rest = ((1 << len(self._problem.tasks)) - 1, 0, ())
        value = self._solve(rest)
        if value >= _NEVER:
            return value, None
        runs: dict[int, Run] = {}
        while (step := self._known[rest][1]) is not None:
            number, run, rest = step
            runs[number] = run
        return value, tuple(runs[number] for number in range(len(runs)))

    def _solve(self, rest: _Rest) -> int:
        """Least value of the tasks that have not started."""
        if not rest[0]:
            self._known[rest] = (0, None)
            return 0
        if rest in self._known:
            return self._known[rest][0]
        if len(self._known) % 256 == 0 and self._search.over():
            raise _StoppedError
        best: tuple[int, _Step | None] = (_NEVER, None)
        for number, run, cost, after in self._next(rest):
            value = self._joined(cost, self._solve(after))
            if value < best[0]:
                best = (value, (number, run, after))
        self._known[rest] = best
        return best[0]

    def _joined(self, cost: int, others: int) -> int:
        if others >= _NEVER:
            return _NEVER
        return max(cost, others) if self._problem.objective is Objective.MAKESPAN else cost + others

    def _next(self, rest: _Rest) -> Iterator[tuple[int, Run, int, _Rest]]:
        """Every task that may start next, how, at what cost, and what is left after it."""
        left, floor, running = rest
        makespan = self._problem.objective is Objective.MAKESPAN
        for number, task in enumerate(self._problem.tasks):
            if not left >> number & 1:
                continue
            for index, loads in self._sets[number]:
                mode = task.modes[index]
                start = self._first(max(floor, task.release), loads, running)
                end = start + mode.duration
                if task.deadline is not None and end > task.deadline:
                    continue
                others = [run for run in running if run[0] > start]
                after = (left & ~(1 << number), start, tuple(sorted([*others, (end, loads)])))
                yield number, Run(index, start, loads), start + mode.cost - (0 if makespan else task.release), after

    def _first(self, floor: int, loads: Loads, running: _Running) -> int:
        """First instant from which some GPUs are not held by runs that go on: these only end."""
        for start in [floor, *(end for end, _ in running if end > floor)]:
            held = dict.fromkeys((m for m, _ in loads), 0)
            for end, others in running:
                if end > start:
                    for m, gpus in others:
                        if m in held:
                            held[m] += gpus
            if all(held[m] + gpus <= self._problem.capacities[m] for m, gpus in loads):
                return start
        raise AssertionError("a task does not fit the empty servers")
