"""Best contiguous placement: the replicas in stage order are cut into blocks, one block per server."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from frostline.placement.jit import search_loops, start_loops
from frostline.placement.request import Request
from frostline.placement.tables import Array, Kinds, Problem, problem_of
from frostline.timing.iteration_time import Matrix

__all__ = ["Blocks", "best_blocks", "blocks_of", "contiguous"]

_NEVER = 1 << 62
_EXACT_WORK = 60_000
_LARGE_JOB = 256
_ORDERS = 3
_NO_ORDER = np.zeros(0, np.int64)


def contiguous(request: Request) -> Matrix:
    """Contiguous placement with the least iteration time.

    Replicas stand in the order of their stages; each server gets a block of consecutive ones. Whether there is a
    placement within a time is found by dynamic programming over the number of servers used of every kind (class and
    room) and the sets of positions that they reach: that is exact over all orders of the servers, and the least time is
    found by bisection. Where it has too many states, a few orders are tried, each solved exactly. Contiguous placements
    are usually close to optimal, and always optimal for a path of single replicas with equal traffic under network
    contention; with unequal traffic they need not be.

    Parameters
    ----------
    request : Request
        Stage graph and free GPUs.

    Returns
    -------
    ndarray of int64, shape (rows, stages)
        Where no contiguous placement of replicas of several GPUs was found, some placement that fits.

    Examples
    --------
    >>> from frostline.timing.contention import ContentionTime
    >>> from frostline.timing.stage_graph import StageGraph
    >>> path = StageGraph(replicas=[1] * 4, compute_s=[0] * 4, edges={(0, 1): 1, (1, 2): 10, (2, 3): 10})
    >>> timing = ContentionTime(graph=path, nic_bytes_per_s=1)
    >>> contiguous(Request(timing=timing, free=(3, 2))).tolist()
    [[0, 1, 1, 1], [1, 0, 0, 0]]
    """
    return best_blocks(request, problem_of(request))


class Blocks(NamedTuple):
    """Blocks of consecutive replicas."""

    tables: Array
    """Nanoseconds by class, start and length."""
    filled: Array
    """GPUs of the replicas before each position."""
    stage_of: Array
    """Stage of each replica."""
    kinds: Kinds


def blocks_of(request: Request, problem: Problem | None) -> Blocks:
    """Blocks of a request; a model without tables is asked for the time of each."""
    stage_of = np.repeat(np.arange(len(request.counts)), request.counts)
    filled = np.concatenate([[0], request.sizes[stage_of].cumsum()])
    kinds = _kinds(request, problem)
    tables = [
        _times(request, problem, stage_of, number, _longest(request, filled, number, kinds))
        for number in range(int(kinds.classes.max()) + 1)
    ]
    widest = max(table.shape[1] for table in tables)
    padded = np.full((len(tables), len(stage_of), widest), _NEVER)
    for table, into in zip(tables, padded, strict=True):
        into[:, : table.shape[1]] = table
    return Blocks(padded, filled, stage_of, kinds)


def _longest(request: Request, filled: Array, number: int, kinds: Kinds) -> int:
    """Most consecutive replicas that a server of a class has room for."""
    room = int(kinds.room[kinds.classes == number].max())
    starts = np.arange(len(filled))
    return int((np.searchsorted(filled, filled + room, side="right") - 1 - starts).max())


def _times(request: Request, problem: Problem | None, stage_of: Array, number: int, longest: int) -> Array:
    if problem is not None:
        table: Array = search_loops().block_times(problem, stage_of, number, longest)
        return table
    one_hot = np.zeros((len(stage_of) + 1, len(request.counts)), np.int64)
    one_hot[np.arange(1, len(stage_of) + 1), stage_of] = 1
    prefix = one_hot.cumsum(axis=0)
    table = np.full((len(stage_of), longest + 1), _NEVER)
    server_class = np.unique(request.classes)[number]
    for length in range(1, longest + 1):
        columns = prefix[length:] - prefix[:-length]
        table[: len(columns), length] = request.columns_ns(columns, np.full(len(columns), server_class))
    return table


def _kinds(request: Request, problem: Problem | None) -> Kinds:
    """Kinds of rows, by class and room."""
    classes = problem.rows[:, 1] if problem is not None else np.unique(request.classes, return_inverse=True)[1]
    keys = list(zip(classes.tolist(), request.room.tolist(), strict=True))
    distinct = sorted(set(keys))
    number = {key: kind for kind, key in enumerate(distinct)}
    of = [number[key] for key in keys]
    rows = sorted(range(len(keys)), key=lambda row: (of[row], row))
    counts = [of.count(kind) for kind in range(len(distinct))]
    strides, begin, states = [], [], 1
    for kind, count in enumerate(counts):
        strides.append(states)
        begin.append(sum(counts[:kind]))
        states *= count + 1
    if states > _EXACT_WORK:
        strides = [0] * len(strides)  # not used, and out of reach of 64 bits
    kind_classes, room = zip(*distinct, strict=True)
    return Kinds(
        classes=np.array(kind_classes, np.int64),
        room=np.array(room, np.int64),
        number=np.array(counts, np.int64),
        stride=np.array(strides, np.int64),
        rows=np.array(rows, np.int64),
        begin=np.array(begin, np.int64),
        of=np.array(of, np.int64),
        states=min(states, _EXACT_WORK + 1),
    )


def best_blocks(request: Request, problem: Problem | None) -> Matrix:
    """Contiguous placement of a request whose arrays are known, see :func:`contiguous`."""
    loops, blocks = start_loops(), blocks_of(request, problem)
    words = len(blocks.stage_of) // loops.BITS + 1
    exact = blocks.kinds.states * len(blocks.kinds.room) * blocks.tables.shape[2] * words <= _EXACT_WORK
    best_ns, best = _NEVER, None
    for order in [_NO_ORDER] if exact else _orders(request):
        if best is not None and request.late:
            break
        matrix = request.empty()
        found_ns = loops.contiguous(*blocks, order, best_ns, matrix)
        if found_ns >= 0:
            best_ns, best = found_ns, matrix
    return request.fallback() if best is None else best


def _orders(request: Request) -> list[Array]:
    """Orders of the rows to try: most room first, least room first, and for smaller jobs some random ones."""
    rows = np.arange(len(request.rows))
    orders = [rows, rows[::-1].copy()]
    if request.need <= _LARGE_JOB:
        random = request.random(1)
        for _ in range(_ORDERS):
            order = rows.copy()
            search_loops().shuffle(order, random)
            orders.append(order)
    return orders
