"""Loops of the placement search, over integers in arrays.

The functions are plain Python; where numba is there they run compiled, see :mod:`frostline.placement.jit`, with the
same results. Whatever they draw at random comes from a generator of their own, and no sum leaves 64 bits: times are at
most 2^53 nanoseconds and edge weights at most 2^40.

A *state* is a placement with what follows from it: ``cells[row, HELD, s]`` replicas of stage s on a row,
``cells[row, NET, s]`` the nanoseconds of one of them without its ring, ``figures[row, TIME]`` and
``figures[row, LOAD]`` of the whole row. So the time of a row after a move of one replica takes a constant number of
operations where costs add up, and one pass over the stages where the slowest counts. Arrays go to the innermost loops
one by one, since compiled code counts references to what it takes out of a tuple; loops that look for something stay
loops, since it knows no generators.
"""

from __future__ import annotations

import numpy as np

from frostline.placement.tables import Array, Problem, State

NEVER = 1 << 62

HELD, NET = 0, 1
TIME, LOAD = 0, 1
COUNT, SIZE = 0, 1
LINEAR, SPLIT = -2, -1
ROOM, CLASS = 0, 1
HIGH, LOW, OTHER, LEAVES, ENTERS, HERE, THERE = range(7)

INLINED = ("sum_after", "slowest_after", "time_after", "shift", "is_spare", "is_twin", "find_partner", "visit_next")
"""Functions that compiled code takes into their callers."""


def settle(p: Problem, state: State, row: int, kind: int) -> None:
    """Net times, time and load of a row, from its column, on a server of a class."""
    stages, cost, cells = p.stages, p.cost, state.cells
    load = total = slowest = 0
    for s in range(stages.shape[1]):
        held = cells[row, HELD, s]
        net = cost[kind, s, LINEAR]
        for i in range(p.first[s], p.first[s + 1]):
            net -= cost[kind, s, p.near[i]] * cells[row, HELD, p.near[i]]
        cells[row, NET, s] = net
        if held > 0:
            load += held * stages[SIZE, s]
            ring = cost[kind, s, SPLIT] if held < stages[COUNT, s] else 0
            total += held * net + ring
            slowest = max(slowest, net + ring)
    state.figures[row, TIME] = total if p.summed else slowest
    state.figures[row, LOAD] = load


def state_of(p: Problem, matrix: Array) -> State:
    """State of a matrix."""
    rows, stages = matrix.shape
    state = State(np.empty((rows, 2, stages), np.int64), np.empty((rows, 2), np.int64))
    state.cells[:, HELD] = matrix
    for row in range(rows):
        settle(p, state, row, p.rows[row, CLASS])
    return state


def time_after(
    summed: bool,
    stages: Array,
    cost: Array,
    cells: Array,
    figures: Array,
    row: int,
    kind: int,
    leaves: int,
    enters: int,
    limit: int,
) -> int:
    """Nanoseconds of a row after one replica of a stage has left it and one of another has entered; -1 for none.

    What is beyond the limit need not be exact, but is beyond it too.
    """
    if summed:
        return sum_after(stages, cost, cells, figures, row, kind, leaves, enters)
    return slowest_after(stages, cost, cells, row, kind, leaves, enters, limit)


def sum_after(
    stages: Array, cost: Array, cells: Array, figures: Array, row: int, kind: int, leaves: int, enters: int
) -> int:
    """Time after a move where the costs of a column add up."""
    time: int = figures[row, TIME]
    if leaves >= 0:
        held = cells[row, HELD, leaves]
        time -= 2 * cells[row, NET, leaves] - cost[kind, leaves, LINEAR]
        if held == stages[COUNT, leaves]:
            time += cost[kind, leaves, SPLIT]
        if held == 1:
            time -= cost[kind, leaves, SPLIT]
    if enters >= 0:
        held = cells[row, HELD, enters]
        time += 2 * cells[row, NET, enters] - cost[kind, enters, LINEAR]
        if held == 0:
            time += cost[kind, enters, SPLIT]
        if held + 1 == stages[COUNT, enters]:
            time -= cost[kind, enters, SPLIT]
        if leaves >= 0:
            time += 2 * cost[kind, leaves, enters]
    return time


def slowest_after(
    stages: Array, cost: Array, cells: Array, row: int, kind: int, leaves: int, enters: int, limit: int
) -> int:
    """Time after a move where the slowest stage counts."""
    slowest = 0
    for s in range(stages.shape[1]):
        held = cells[row, HELD, s]
        if s == leaves:
            held -= 1
        elif s == enters:
            held += 1
        if held > 0:
            time = cells[row, NET, s]
            if leaves >= 0:
                time += cost[kind, s, leaves]
            if enters >= 0:
                time -= cost[kind, s, enters]
            if held < stages[COUNT, s]:
                time += cost[kind, s, SPLIT]
            if time > slowest:
                slowest = time
                if slowest > limit:
                    break
    return slowest


def shift(
    stages: Array,
    cost: Array,
    first: Array,
    near: Array,
    cells: Array,
    figures: Array,
    row: int,
    kind: int,
    stage: int,
    change: int,
) -> None:
    """Add replicas of a stage to a row; its time is left to the caller."""
    cells[row, HELD, stage] += change
    figures[row, LOAD] += change * stages[SIZE, stage]
    for i in range(first[stage], first[stage + 1]):
        cells[row, NET, near[i]] -= change * cost[kind, stage, near[i]]


def is_spare(rows: Array, figures: Array, row: int, beside: int) -> bool:
    """Whether a row is empty and so is one of its kind just before it, which will do as well."""
    before = row - 2 if row - 1 == beside else row - 1
    if before < 0 or figures[row, LOAD] > 0 or figures[before, LOAD] > 0:
        return False
    return bool(rows[before, ROOM] == rows[row, ROOM] and rows[before, CLASS] == rows[row, CLASS])


def descended(p: Problem, matrix: Array, budget: Array, steps: int) -> tuple[int, Array]:
    """Matrix after :func:`descend`, with the time of its slowest row, or -1 where steps are left."""
    state = state_of(p, matrix)
    slowest = descend(p, state, budget, steps)
    return slowest, state.cells[:, HELD].copy()


def slowest_time(p: Problem, matrix: Array) -> int:
    """Time of the slowest row of a matrix."""
    slowest: int = state_of(p, matrix).figures[:, TIME].max()
    return slowest


def descend(p: Problem, state: State, budget: Array, steps: int) -> int:
    """Up to so many steps from the slowest row, each the best there is; its time where none is left, else -1.

    A step leaves the slower of two rows faster, or as fast and the other one faster: the times of all rows in
    descending order fall lexicographically. It moves one replica, or exchanges two, between the slowest row and
    another; where nothing of that kind helps, it divides the replicas of the two rows anew, as long as the budget of
    divisions lasts.
    """
    best = np.empty(7, np.int64)
    for _ in range(steps):
        slowest: int = state.figures[:, TIME].max()
        if slowest <= p.floor:
            return slowest
        moved = False
        for divide_too in (False, True):
            if moved or (divide_too and budget[0] <= 0):
                break
            for row in range(len(p.rows)):
                if not moved and state.figures[row, TIME] == slowest and not is_repeated(p, state, row):
                    moved = divides(p, state, row, budget) if divide_too else moves(p, state, row, best)
        if not moved:
            return slowest
    return -1


def is_repeated(p: Problem, state: State, row: int) -> bool:
    """Whether a row before it of the same kind holds the same column."""
    times = state.figures[:, TIME]
    for before in range(row):  # noqa: SIM110
        if times[before] == times[row] and is_twin(p.rows, state.cells, before, row):
            return True
    return False


def is_twin(rows: Array, cells: Array, row: int, other: int) -> bool:
    """Whether two rows of one kind hold the same column."""
    if rows[row, ROOM] != rows[other, ROOM] or rows[row, CLASS] != rows[other, CLASS]:
        return False
    for s in range(cells.shape[2]):  # noqa: SIM110
        if cells[row, HELD, s] != cells[other, HELD, s]:
            return False
    return True


def moves(p: Problem, state: State, row: int, best: Array) -> bool:
    """Best move or exchange of single replicas between a slowest row and any other, done in place."""
    summed, stages, cost, rows, cells, figures = p.summed, p.stages, p.cost, p.rows, state.cells, state.figures
    kind, spare = rows[row, CLASS], rows[row, ROOM] - figures[row, LOAD]
    best[HIGH], best[LOW], best[OTHER] = figures[row, TIME], NEVER, -1
    for leaves in range(-1, stages.shape[1]):
        if leaves >= 0 and cells[row, HELD, leaves] == 0:
            continue
        for enters in range(-1, stages.shape[1]):
            if enters == leaves or (enters >= 0 and cells[row, HELD, enters] == stages[COUNT, enters]):
                continue
            growth = (stages[SIZE, enters] if enters >= 0 else 0) - (stages[SIZE, leaves] if leaves >= 0 else 0)
            if growth <= spare:
                here = time_after(summed, stages, cost, cells, figures, row, kind, leaves, enters, best[HIGH])
                if here <= best[HIGH]:
                    find_partner(summed, stages, cost, rows, cells, figures, row, leaves, enters, here, growth, best)
    other = best[OTHER]
    if other < 0:
        return False
    if best[LEAVES] >= 0:
        shift(stages, cost, p.first, p.near, cells, figures, row, kind, best[LEAVES], -1)
        shift(stages, cost, p.first, p.near, cells, figures, other, rows[other, CLASS], best[LEAVES], 1)
    if best[ENTERS] >= 0:
        shift(stages, cost, p.first, p.near, cells, figures, row, kind, best[ENTERS], 1)
        shift(stages, cost, p.first, p.near, cells, figures, other, rows[other, CLASS], best[ENTERS], -1)
    figures[row, TIME], figures[other, TIME] = best[HERE], best[THERE]
    return True


def find_partner(
    summed: bool,
    stages: Array,
    cost: Array,
    rows: Array,
    cells: Array,
    figures: Array,
    row: int,
    leaves: int,
    enters: int,
    here: int,
    growth: int,
    best: Array,
) -> None:
    """Note the other row of a move in ``best`` where it makes the best move so far."""
    slowest = figures[row, TIME]
    for other in range(len(rows)):
        if other == row or (enters >= 0 and cells[other, HELD, enters] == 0):
            continue
        if figures[other, LOAD] - growth > rows[other, ROOM] or is_spare(rows, figures, other, row):
            continue
        kind = rows[other, CLASS]
        there = time_after(summed, stages, cost, cells, figures, other, kind, enters, leaves, best[HIGH])
        high, low = max(here, there), min(here, there)
        better = high < best[HIGH] or (high == best[HIGH] and low < best[LOW])
        if better and (high < slowest or low < figures[other, TIME]):
            best[HIGH], best[LOW], best[OTHER], best[LEAVES] = high, low, other, leaves
            best[ENTERS], best[HERE], best[THERE] = enters, here, there


def divides(p: Problem, state: State, row: int, budget: Array) -> bool:
    """Divide the replicas of a slowest row and of the first other one with which that helps anew, in place."""
    for other in range(len(p.rows)):
        if other != row and budget[0] > 0 and not is_spare(p.rows, state.figures, other, row):
            divisions = ways(state.cells, row, other, budget[0])
            if divisions <= budget[0]:
                budget[0] -= divisions
                if divide(p, state, row, other):
                    return True
    return False


def ways(cells: Array, row: int, other: int, limit: int) -> int:
    """In how many ways the replicas of two rows can be divided; more than ``limit`` is not counted to the end."""
    count = 1
    for s in range(cells.shape[2]):
        count *= 1 + cells[row, HELD, s] + cells[other, HELD, s]
        if count > limit:
            break
    return count


def divide(p: Problem, state: State, row: int, other: int) -> bool:
    """Best division of the replicas of two rows, in place; False if that is the present one.

    All divisions are visited in the order of a reflected code, so that one replica moves at a time.
    """
    summed, stages, cost, first, near = p.summed, p.stages, p.cost, p.first, p.near
    cells, figures = state.cells, state.figures
    kind, kind_of_other = p.rows[row, CLASS], p.rows[other, CLASS]
    room, room_of_other = p.rows[row, ROOM], p.rows[other, ROOM]
    high, low = max(figures[row, TIME], figures[other, TIME]), min(figures[row, TIME], figures[other, TIME])
    best, found = cells[row, HELD].copy(), False
    both = best + cells[other, HELD]
    moving = np.flatnonzero(both)
    most, change = both[moving], np.ones(len(moving), np.int64)
    if kind == kind_of_other and room == room_of_other:
        most[-1] //= 2  # the rest is the same with the rows exchanged
    cells[other, HELD] = both
    cells[row, HELD] = 0
    settle(p, state, row, kind)
    settle(p, state, other, kind_of_other)
    more = True
    while more:
        if figures[row, LOAD] <= room and figures[other, LOAD] <= room_of_other:
            slower, faster = (
                max(figures[row, TIME], figures[other, TIME]),
                min(figures[row, TIME], figures[other, TIME]),
            )
            if slower < high or (slower == high and faster < low):
                high, low, found = slower, faster, True
                best[:] = cells[row, HELD]
        more = visit_next(
            summed, stages, cost, first, near, cells, figures, row, other, kind, kind_of_other, moving, most, change
        )
    cells[row, HELD] = best
    cells[other, HELD] = both - best
    settle(p, state, row, kind)
    settle(p, state, other, kind_of_other)
    return found


def visit_next(
    summed: bool,
    stages: Array,
    cost: Array,
    first: Array,
    near: Array,
    cells: Array,
    figures: Array,
    row: int,
    other: int,
    kind: int,
    kind_of_other: int,
    moving: Array,
    most: Array,
    change: Array,
) -> bool:
    """Move the one replica that leads to the next division of the code; False after the last."""
    for i in range(len(moving)):
        stage, by = moving[i], change[i]
        if 0 <= cells[row, HELD, stage] + by <= most[i]:
            leaves, enters = (-1, stage) if by > 0 else (stage, -1)
            here = time_after(summed, stages, cost, cells, figures, row, kind, leaves, enters, NEVER)
            there = time_after(summed, stages, cost, cells, figures, other, kind_of_other, enters, leaves, NEVER)
            shift(stages, cost, first, near, cells, figures, row, kind, stage, by)
            shift(stages, cost, first, near, cells, figures, other, kind_of_other, stage, -by)
            figures[row, TIME], figures[other, TIME] = here, there
            return True
        change[i] = -by
    return False


def drawn(random: Array, below: int) -> int:
    """Number from 0 to below - 1, by the minimal standard generator of Park and Miller."""
    random[0] = random[0] * 48271 % 2147483647
    number: int = random[0] % below
    return number


def kicked(p: Problem, matrix: Array, random: Array, kicks: int, budget: Array) -> tuple[int, Array]:
    """Kick and descend so many times, or until the floor, keeping what is no slower; then descend with a budget."""
    state, trial, nothing = state_of(p, matrix), state_of(p, matrix), np.zeros(1, np.int64)
    slowest = state.figures[:, TIME].max()
    for _ in range(kicks if len(p.rows) > 1 else 0):
        if slowest <= p.floor:
            break
        exchange(p, trial, random)
        time = descend(p, trial, nothing, NEVER)
        if time <= slowest:
            state.cells[:] = trial.cells
            state.figures[:] = trial.figures
            slowest = time
        else:
            trial.cells[:] = state.cells
            trial.figures[:] = state.figures
    slowest = descend(p, state, budget, NEVER)
    return slowest, state.cells[:, HELD].copy()


def exchange(p: Problem, state: State, random: Array) -> None:
    """One to three random exchanges of two rows, the first with the slowest, where there is room."""
    rows, cells, figures, sizes = p.rows, state.cells, state.figures, p.stages[SIZE]
    first = int(figures[:, TIME].argmax())
    for _ in range(1 + drawn(random, 3)):
        second = (first + 1 + drawn(random, len(rows) - 1)) % len(rows)
        given, out = drawn_part(cells[first, HELD], random)
        taken, back = drawn_part(cells[second, HELD], random)
        growth = back * sizes[taken] - out * sizes[given]
        if figures[first, LOAD] + growth <= rows[first, ROOM] and figures[second, LOAD] - growth <= rows[second, ROOM]:
            cells[first, HELD, given] -= out
            cells[second, HELD, given] += out
            cells[first, HELD, taken] += back
            cells[second, HELD, taken] -= back
            settle(p, state, first, rows[first, CLASS])
            settle(p, state, second, rows[second, CLASS])
        first = drawn(random, len(rows))


def drawn_part(column: Array, random: Array) -> tuple[int, int]:
    """A random stage that a column holds, and one of its replicas or all; (0, 0) for an empty column."""
    held = np.flatnonzero(column)
    if len(held) == 0:
        return 0, 0
    stage = held[drawn(random, len(held))]
    return stage, column[stage] if drawn(random, 2) == 0 else 1


def merged(p: Problem, matrix: Array, limit: int) -> Array:
    """Matrix after whole columns have joined others where that takes no longer than a limit, the smallest first."""
    state = state_of(p, matrix)
    cells, loads, moved = state.cells, state.figures[:, LOAD], True
    most = p.rows[:, ROOM].max()
    while moved:
        moved = False
        order = np.argsort(loads, kind="mergesort")
        order = order[loads[order] > 0]
        least, homeless = loads[order[0]], -1
        for row in order:
            if loads[row] + least > most:
                break
            if loads[row] == 0 or (homeless >= 0 and is_twin(p.rows, cells, row, homeless)):
                continue
            other = home(p.summed, p.stages, p.cost, p.first, p.near, p.rows, cells, state.figures, row, limit)
            if other >= 0:
                cells[other, HELD] += cells[row, HELD]
                cells[row, HELD] = 0
                settle(p, state, row, p.rows[row, CLASS])
                settle(p, state, other, p.rows[other, CLASS])
                moved = True
            homeless = row if other < 0 else -1
    return cells[:, HELD].copy()


def home(
    summed: bool,
    stages: Array,
    cost: Array,
    first: Array,
    near: Array,
    rows: Array,
    cells: Array,
    figures: Array,
    row: int,
    limit: int,
) -> int:
    """First other used row that can hold the column of a row too within a limit; -1 if there is none."""
    for other in range(len(rows)):
        load = figures[other, LOAD]
        if other == row or load == 0 or load + figures[row, LOAD] > rows[other, ROOM]:
            continue
        kind, total, slowest = rows[other, CLASS], 0, 0
        for s in range(stages.shape[1]):
            held = cells[row, HELD, s] + cells[other, HELD, s]
            if held > 0:
                net = cells[other, NET, s]
                for i in range(first[s], first[s + 1]):
                    net -= cost[kind, s, near[i]] * cells[row, HELD, near[i]]
                ring = cost[kind, s, SPLIT] if held < stages[COUNT, s] else 0
                total += held * net + ring
                slowest = max(slowest, net + ring)
        if (total if summed else slowest) <= limit:
            return other
    return -1


def block_times(p: Problem, stage_of: Array, kind: int, longest: int) -> Array:
    """Nanoseconds of the block of so many replicas from a start on, shape (replicas, longest + 1)."""
    summed, stages, cost, first, near = p.summed, p.stages, p.cost, p.first, p.near
    table = np.full((len(stage_of), longest + 1), NEVER)
    cells, figures = np.zeros((1, 2, stages.shape[1]), np.int64), np.zeros((1, 2), np.int64)
    for start in range(len(stage_of)):
        cells[0, HELD] = 0
        cells[0, NET] = cost[kind, :, LINEAR]
        figures[0, TIME] = 0
        for length in range(1, min(longest, len(stage_of) - start) + 1):
            stage = stage_of[start + length - 1]
            time = time_after(summed, stages, cost, cells, figures, 0, kind, -1, stage, NEVER)
            shift(stages, cost, first, near, cells, figures, 0, kind, stage, 1)
            table[start, length] = figures[0, TIME] = time
    return table


def shuffle(order: Array, random: Array) -> None:
    """Random order, in place."""
    for last in range(len(order) - 1, 0, -1):
        other = drawn(random, last + 1)
        order[last], order[other] = order[other], order[last]
