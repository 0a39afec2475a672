"""The compiled search over lists on a pool: against list scheduling task by task, and compiled against plain loops."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frostline.offline import kernel
from frostline.offline.improve import local_search
from frostline.offline.listing import listed
from frostline.offline.pool_walk import PoolWalk, _arrays
from frostline.offline.search import Search
from frostline.offline.stop import WorkLimit
from frostline.offline.tasks import Mode, Objective, Problem, Task
from frostline.placement import jit

GPUS = 8


@st.composite
def problems(draw: st.DrawFn, most: int = 8) -> Problem:
    numbers = st.tuples(st.integers(1, GPUS), st.integers(1, 9), st.just(0) | st.integers(0, 5))
    modes = numbers.map(lambda row: Mode(row[0], row[1], penalty=row[2]))
    tasks = st.tuples(st.integers(0, 12), st.lists(modes, min_size=1, max_size=3)).map(
        lambda row: Task(row[0], tuple(row[1]))
    )
    return Problem(
        (GPUS,), tuple(draw(st.lists(tasks, min_size=2, max_size=most))), draw(st.sampled_from([*Objective]))
    )


def value_of(loops: ModuleType, problem: Problem, order: list[int], fixed: list[int]) -> int:
    release, first, modes = _arrays(problem)
    last_only = problem.objective is Objective.MAKESPAN
    calendar = np.empty((2, 2 * len(order) + 2), np.int64)
    arrays = np.array(order, np.int64), np.array(fixed, np.int64), release, first, modes
    value, _ = loops.list_value(*arrays, GPUS, last_only, calendar)
    return int(value) - (0 if last_only else int(release.sum()))


@given(problems(), st.data())
def test_a_list_is_worth_what_its_plan_is(problem: Problem, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(problem.tasks))))
    fixed = [data.draw(st.integers(-1, len(task.modes) - 1)) for task in problem.tasks]
    plan, _ = listed(problem, order, [mode if mode >= 0 else None for mode in fixed])
    assert value_of(kernel, problem, order, fixed) == problem.value(plan)
    assert value_of(jit.compiled(kernel), problem, order, fixed) == problem.value(plan)


@given(problems(), st.integers(0, 3))
def test_compiled_and_plain_loops_find_the_same(problem: Problem, seed: int) -> None:
    def found(compiled: bool) -> object:
        search = Search(problem, WorkLimit(0.02), seed=seed)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("FROSTLINE_JIT", "1" if compiled else "0")
            local_search(search)
        return search.plan, search.value, search.work

    assert found(True) == found(False)


@given(problems(most=5))
def test_the_best_list_is_kept(problem: Problem) -> None:
    """What is offered is the best plan that was seen, and never worse than the one to begin with."""
    search = Search(problem, WorkLimit(0.05))
    start, _ = listed(problem, range(len(problem.tasks)))
    search.offer(start, "list")
    walk = PoolWalk(search, 0)
    walk.step(0.0)
    assert search.value is not None
    assert search.value <= problem.value(start)
    releases = 0 if problem.objective is Objective.MAKESPAN else sum(task.release for task in problem.tasks)
    assert search.value == min(problem.value(start), int(walk._values[1]) - releases)


@pytest.mark.parametrize(
    ("change", "order", "fixed"),
    [
        ((0, 1, 3), "ADCBE", "-----"),
        ((1, 1, 3), "ACDBE", "-----"),
        ((1, 3, 1), "ADBCE", "-----"),
        ((1, 2, 2), "ABCDE", "-----"),
        ((2, 3, 1), "ABCDE", "---1-"),
    ],
)
def test_changes(change: tuple[int, int, int], order: str, fixed: str) -> None:
    """An exchange, a move to a later and to an earlier place, one to its own, and a mode."""
    expected = [["ABCDE".index(task) for task in order], [-1 if mode == "-" else int(mode) for mode in fixed]]
    for loops in (kernel, jit.compiled(kernel)):
        new = np.empty((2, 5), np.int64)
        loops.changed(np.arange(5), np.full(5, -1), new[0], new[1], np.array(change))
        assert new.tolist() == expected


def test_deadlines_servers_and_large_numbers_are_left_to_the_other_search() -> None:
    task = Task(0, (Mode(2, 5),))
    assert PoolWalk.serves(Problem((8,), (task, task), Objective.FLOW))
    assert not PoolWalk.serves(Problem((8,), (task, task._replace(deadline=20)), Objective.FLOW))
    assert not PoolWalk.serves(Problem((4, 4), (task, task), Objective.FLOW))
    assert not PoolWalk.serves(Problem((8,), (task, Task(0, (Mode(2, 2**61),))), Objective.FLOW))
