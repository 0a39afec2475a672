"""Loops that build placements, see :mod:`frostline.placement.kernel`: Heavy-Edge, whole stages, contiguous blocks."""

from __future__ import annotations

import numpy as np

from frostline.placement.tables import Array, Kinds, Traffic

BITS = 62
COUNT, SIZE = 0, 1

INLINED = ("extend", "has")


def heavy_edge(traffic: Traffic, stages: Array, room: Array, by_total: bool, matrix: Array) -> bool:
    """Fill a matrix of zeros by Heavy-Edge; whether everything found a place."""
    left = stages[COUNT].copy()
    for row in range(len(room)):
        if (left * stages[SIZE]).sum() <= room[row]:
            matrix[row] = left
            return True
        fill(traffic, stages, room[row], by_total, left, matrix[row])
    return False


def fill(traffic: Traffic, stages: Array, room: int, by_total: bool, left: Array, column: Array) -> None:
    """Column of one server; what it takes is taken from ``left``."""
    while room > 0:
        first, second = grown(traffic.edge, stages, room, by_total, left, column), -1
        if first < 0:
            first, second = seeded(traffic.ends, traffic.total, stages, room, left)
        if first < 0:
            break
        for stage in (first, second):
            if stage >= 0:
                column[stage] += 1
                left[stage] -= 1
                room -= stages[SIZE, stage]


def grown(edge: Array, stages: Array, room: int, by_total: bool, left: Array, column: Array) -> int:
    """Stage of the replica with the heaviest edge, or total weight, to a column; among equals the stage held most."""
    best, best_weight, best_held = -1, 0, 0
    for stage in range(len(left)):
        if left[stage] > 0 and stages[SIZE, stage] <= room:
            weight = 0
            for other in range(len(left)):
                if column[other] > 0 and edge[stage, other] > 0:
                    if not by_total:
                        weight = max(weight, edge[stage, other])
                    elif other != stage:
                        weight += edge[stage, other] * column[other]
                    else:
                        closes = stages[COUNT, stage] > 2 and column[stage] == stages[COUNT, stage] - 1
                        weight += edge[stage, stage] * (2 if closes else 1)
            if weight > best_weight or (weight == best_weight and weight > 0 and column[stage] > best_held):
                best, best_weight, best_held = stage, weight, column[stage]
    return best


def seeded(ends: Array, total: Array, stages: Array, room: int, left: Array) -> tuple[int, int]:
    """Both ends of the heaviest edge left; the replica of least total weight where there is no edge or no room."""
    for i in range(len(ends)):
        s, t = ends[i, 0], ends[i, 1]
        if left[s] > 0 and left[t] > (1 if s == t else 0) and stages[SIZE, s] + stages[SIZE, t] <= room:
            return s, t
    lightest = -1
    for s in range(len(left)):
        if left[s] > 0 and stages[SIZE, s] <= room and (lightest < 0 or total[s] < total[lightest]):
            lightest = s
    return lightest, -1


def whole_stages(traffic: Traffic, stages: Array, room: Array, matrix: Array) -> bool:
    """Fill a matrix of zeros stage by stage, whole where that is possible; whether everything found a place."""
    room, left = room.copy(), stages[COUNT].copy()
    for stage in traffic.largest:
        row = beside_most(traffic.amount, stages, room, matrix, stage)
        if row >= 0:
            matrix[row, stage] = left[stage]
            room[row] -= left[stage] * stages[SIZE, stage]
            left[stage] = 0
    for stage in traffic.widest:
        while left[stage] > 0:
            row = int(room.argmax())
            taken = min(left[stage], room[row] // stages[SIZE, stage])
            if taken == 0:
                return False
            matrix[row, stage] += taken
            left[stage] -= taken
            room[row] -= taken * stages[SIZE, stage]
    return True


def beside_most(amount: Array, stages: Array, room: Array, matrix: Array, stage: int) -> int:
    """Row with room for a whole stage, beside most of its traffic, then the tightest; -1 if there is none."""
    best, best_beside, load = -1, -1, stages[COUNT, stage] * stages[SIZE, stage]
    for row in range(len(room)):
        if room[row] >= load:
            beside = 0
            for other in range(stages.shape[1]):
                if matrix[row, other] == stages[COUNT, other]:
                    beside += amount[stage, other]
            if beside > best_beside or (beside == best_beside and room[row] < room[best]):
                best, best_beside = row, beside
    return best


def contiguous(
    tables: Array, filled: Array, stage_of: Array, kinds: Kinds, order: Array, below: int, matrix: Array
) -> int:
    """Contiguous placement with the least time below a limit, added to the matrix; its time, -1 if there is none.

    ``tables[class]`` are :func:`~frostline.placement.kernel.block_times`, ``filled`` the GPUs before each position. A
    state has a set of positions that it can reach by blocks that are quick enough; the least limit that lets one reach
    the end is found by bisection. Without an order a state says how many rows of each kind hold a block, else that the
    first rows of the order may hold one.
    """
    need, words = len(stage_of), len(stage_of) // BITS + 1
    states = len(order) + 1 if len(order) else kinds.states
    reached = np.zeros((states, words), np.int64)
    quick = np.zeros((len(kinds.room), tables.shape[2], words), np.int64)
    mark(tables, filled, kinds, below - 1, quick)
    if reach(kinds, quick, need, order, reached, True) < 0:
        return -1
    times = tables.ravel()
    limits = np.unique(times[times < below])
    lowest, highest = 0, len(limits) - 1
    while lowest < highest:
        middle = (lowest + highest) // 2
        mark(tables, filled, kinds, limits[middle], quick)
        if reach(kinds, quick, need, order, reached, True) >= 0:
            highest = middle
        else:
            lowest = middle + 1
    mark(tables, filled, kinds, limits[highest], quick)
    last = reach(kinds, quick, need, order, reached, False)
    if len(order):
        trace_order(kinds, quick, stage_of, order, reached, matrix)
    else:
        trace(kinds, quick, stage_of, reached, last, matrix)
    return int(limits[highest])


def mark(tables: Array, filled: Array, kinds: Kinds, limit: int, quick: Array) -> None:
    """Starts of the blocks of each kind of row and length that fit and are quick enough, as bits of words."""
    need, longest = tables.shape[1], tables.shape[2] - 1
    classes, rooms = kinds.classes, kinds.room
    quick[:] = 0
    for kind in range(len(rooms)):
        number, room = classes[kind], rooms[kind]
        for start in range(need):
            for length in range(1, min(longest, need - start) + 1):
                if filled[start + length] - filled[start] > room:
                    break
                if tables[number, start, length] <= limit:
                    quick[kind, length, start // BITS] |= 1 << (start % BITS)


def reach(kinds: Kinds, quick: Array, need: int, order: Array, reached: Array, any_will_do: bool) -> int:
    """Positions that every state reaches; the state that places all on the fewest rows, -1 if none does."""
    reached[:] = 0
    reached[0, 0] = 1
    if len(order):
        for place in range(len(order)):
            reached[place + 1] = reached[place]
            extend(reached, quick, place, kinds.of[order[place]], place + 1)
        return len(order) if has(reached, len(order), need) else -1
    number, stride = kinds.number, kinds.stride
    best = fewest = -1
    for state in range(len(reached)):
        if has(reached, state, need):
            rows = 0
            for kind in range(len(number)):
                rows += state // stride[kind] % (number[kind] + 1)
            if best < 0 or rows < fewest:
                best, fewest = state, rows
            if any_will_do:
                break
        else:
            for kind in range(len(number)):
                if state // stride[kind] % (number[kind] + 1) < number[kind]:
                    extend(reached, quick, state, kind, state + stride[kind])
    return best


def extend(reached: Array, quick: Array, state: int, kind: int, target: int) -> None:
    """Add to the positions of a target the ends of the quick blocks that start at a position of a state."""
    words = reached.shape[1]
    for word in range(words):
        if reached[state, word]:
            for length in range(1, quick.shape[1]):
                starts = reached[state, word] & quick[kind, length, word]
                into, part = word + length // BITS, length % BITS
                if starts and into < words:
                    reached[target, into] |= (starts & ((1 << (BITS - part)) - 1)) << part
                    if part and into + 1 < words:
                        reached[target, into + 1] |= starts >> (BITS - part)


def has(reached: Array, state: int, position: int) -> bool:
    """Whether a state reaches a position."""
    return bool(reached[state, position // BITS] >> (position % BITS) & 1)


def trace(kinds: Kinds, quick: Array, stage_of: Array, reached: Array, state: int, matrix: Array) -> None:
    """Add the blocks that lead to a state to the matrix."""
    end = len(stage_of)
    while end > 0:
        for kind in range(len(kinds.room)):
            digit = state // kinds.stride[kind] % (kinds.number[kind] + 1)
            before = state - kinds.stride[kind]
            start = block_start(quick[kind], reached, before, end) if digit > 0 else -1
            if start >= 0:
                row = kinds.rows[kinds.begin[kind] + digit - 1]
                for position in range(start, end):
                    matrix[row, stage_of[position]] += 1
                state, end = before, start
                break


def trace_order(kinds: Kinds, quick: Array, stage_of: Array, order: Array, reached: Array, matrix: Array) -> None:
    """Add the blocks of an order of rows that lead to the end to the matrix."""
    end = len(stage_of)
    for place in range(len(order) - 1, -1, -1):
        if not has(reached, place, end):
            start = block_start(quick[kinds.of[order[place]]], reached, place, end)
            for position in range(start, end):
                matrix[order[place], stage_of[position]] += 1
            end = start


def block_start(quick: Array, reached: Array, state: int, end: int) -> int:
    """Start of the shortest quick block from a position that a state reaches to an end; -1 if there is none."""
    for length in range(1, min(len(quick) - 1, end) + 1):
        if has(reached, state, end - length) and has(quick, length, end - length):
            return end - length
    return -1
