"""Best contiguous placement: the replicas in stage order are cut into blocks, one block per server."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from frostline.placement.request import Request
from frostline.timing.iteration_time import Matrix

__all__ = ["contiguous"]

_NEVER = np.int64(1 << 62)
_EXACT_CELLS = 400_000
_LARGE_JOB = 256


def contiguous(request: Request) -> Matrix:
    """Contiguous placement with the least iteration time.

    Replicas stand in the order of their stages; each server gets a block of consecutive ones. Dynamic programming over
    the number of replicas placed and, for every kind of server (class and room), the number of servers used: that is
    exact over all orders of the servers. Where it has too many states, a few orders are tried, each solved exactly.
    Contiguous placements are usually close to optimal, and always optimal for a path of single replicas with equal
    traffic under network contention; with unequal traffic they need not be.

    Parameters
    ----------
    request : Request
        Stage graph and free GPUs.

    Returns
    -------
    ndarray of int64, shape (rows, stages)

    Examples
    --------
    >>> from frostline.timing.contention import ContentionTime
    >>> from frostline.timing.stage_graph import StageGraph
    >>> path = StageGraph(replicas=[1] * 4, compute_s=[0] * 4, edges={(0, 1): 1, (1, 2): 10, (2, 3): 10})
    >>> timing = ContentionTime(graph=path, nic_bytes_per_s=1)
    >>> contiguous(Request(timing=timing, free=(3, 2))).tolist()
    [[0, 1, 1, 1], [1, 0, 0, 0]]
    """
    blocks = _Blocks(request)
    kinds = _Kinds.of(request)
    if _exact_is_cheap(request, kinds):
        return blocks.matrix(_over_kinds(blocks, kinds))
    solved = (_over_order(blocks, request, order) for order in _orders(request))
    best = min(solved, key=lambda answer: answer[0])
    return blocks.matrix(best[1])


class _Step(NamedTuple):
    """One block more, by (end, length - 1), shape (need + 1, room).

    ``earlier`` is the position before the block, or ``need + 1``, which is never reached; ``table`` its nanoseconds.
    """

    earlier: npt.NDArray[np.int64]
    table: Matrix

    def after(self, best: Matrix) -> tuple[Matrix, npt.NDArray[np.int64]]:
        """Least slowest time by end, and the length of the last block, from those before it, shape (..., need + 2)."""
        reached = np.maximum(best[..., self.earlier], self.table)
        length = reached.argmin(axis=-1)
        return np.take_along_axis(reached, length[..., None], axis=-1)[..., 0], length + 1


class _Blocks:
    """Nanoseconds of every block: of ``length`` consecutive replicas that end before position ``end``."""

    def __init__(self, request: Request) -> None:
        self._request = request
        stage_of = np.repeat(np.arange(len(request.counts)), request.counts)
        one_hot = np.zeros((request.need + 1, len(request.counts)), np.int64)
        one_hot[np.arange(1, request.need + 1), stage_of] = 1
        self.prefix = one_hot.cumsum(axis=0)
        self._steps: dict[tuple[int, int], _Step] = {}

    def step(self, kind: int, room: int) -> _Step:
        """Step of one block of up to ``room`` replicas on a server class."""
        if (kind, room) not in self._steps:
            need = self._request.need
            table = np.full((need + 1, room), _NEVER)
            for length in range(1, room + 1):
                columns = self.prefix[length:] - self.prefix[:-length]
                classes = np.full(len(columns), kind, np.int64)
                table[length:, length - 1] = self._request.columns_ns(columns, classes)
            start = np.arange(need + 1)[:, None] - np.arange(1, room + 1)[None, :]
            self._steps[kind, room] = _Step(np.where(start < 0, need + 1, start), table)
        return self._steps[kind, room]

    def matrix(self, blocks: Iterable[tuple[int, int, int]]) -> Matrix:
        """Matrix of blocks given by (row, start, end)."""
        matrix = self._request.empty()
        for row, start, end in blocks:
            matrix[row] = self.prefix[end] - self.prefix[start]
        return matrix


@dataclass(frozen=True, slots=True)
class _Kinds:
    """Rows grouped by server class and room; a state says how many of each kind are used, in mixed radix."""

    classes: tuple[int, ...]
    room: tuple[int, ...]
    rows: tuple[tuple[int, ...], ...]
    strides: tuple[int, ...]
    states: int

    @classmethod
    def of(cls, request: Request) -> _Kinds:
        groups: dict[tuple[int, int], list[int]] = {}
        for row, key in enumerate(zip(request.classes.tolist(), request.room.tolist(), strict=True)):
            groups.setdefault(key, []).append(row)
        keys = sorted(groups)
        strides, states = [], 1
        for key in keys:
            strides.append(states)
            states *= len(groups[key]) + 1
        return cls(
            tuple(kind for kind, _ in keys),
            tuple(room for _, room in keys),
            tuple(tuple(groups[key]) for key in keys),
            tuple(strides),
            states,
        )


def _exact_is_cheap(request: Request, kinds: _Kinds) -> bool:
    """Whether all orders of the servers cost little, or no more than two of them."""
    cells = (request.need + 1) * int(request.room.max())
    return kinds.states * len(kinds.room) * cells <= max(_EXACT_CELLS, 2 * len(request.rows) * cells)


def _over_kinds(blocks: _Blocks, kinds: _Kinds) -> list[tuple[int, int, int]]:
    """Blocks of the best contiguous placement over all orders of the servers."""
    need = len(blocks.prefix) - 1
    digits = np.stack(
        [
            np.arange(kinds.states) // stride % (len(rows) + 1)
            for stride, rows in zip(kinds.strides, kinds.rows, strict=True)
        ]
    )
    servers = digits.sum(axis=0)
    best = np.full((kinds.states, need + 2), _NEVER)
    best[0, 0] = 0
    last_kind = np.zeros((kinds.states, need + 1), np.int64)
    last_length = np.zeros((kinds.states, need + 1), np.int64)
    steps = [blocks.step(kind, room) for kind, room in zip(kinds.classes, kinds.room, strict=True)]
    for used in range(min(int(servers.max()), need)):
        level = servers == used
        for k, step in enumerate(steps):
            states = np.flatnonzero(level & (digits[k] < len(kinds.rows[k])))
            value, length = step.after(best[states])
            after = states + kinds.strides[k]
            better = value < best[after, : need + 1]
            best[after, : need + 1] = np.where(better, value, best[after, : need + 1])
            last_kind[after] = np.where(better, k, last_kind[after])
            last_length[after] = np.where(better, length, last_length[after])
    final = best[:, need]
    state = int(np.lexsort((np.arange(kinds.states), servers, final))[0])
    return _traced(kinds, state, last_kind, last_length, digits)


def _traced(
    kinds: _Kinds,
    state: int,
    last_kind: npt.NDArray[np.int64],
    last_length: npt.NDArray[np.int64],
    digits: npt.NDArray[np.int64],
) -> list[tuple[int, int, int]]:
    end = last_kind.shape[1] - 1
    blocks = []
    while end:
        k, length = int(last_kind[state, end]), int(last_length[state, end])
        row = kinds.rows[k][int(digits[k, state]) - 1]
        blocks.append((row, end - length, end))
        state, end = state - kinds.strides[k], end - length
    return blocks


def _orders(request: Request) -> list[npt.NDArray[np.int64]]:
    """Orders of the rows to try: most room first, least room first, and for smaller jobs two random ones."""
    rows = np.arange(len(request.rows))
    orders = [rows, rows[::-1]]
    if request.need <= _LARGE_JOB:
        rng = np.random.default_rng(np.random.SeedSequence([request.seed, 1]))
        orders += [rng.permutation(rows) for _ in range(2)]
    return orders


def _over_order(
    blocks: _Blocks, request: Request, order: Sequence[int] | npt.NDArray[np.int64]
) -> tuple[int, list[tuple[int, int, int]]]:
    """Largest column time and blocks of the best contiguous placement on servers in a fixed order."""
    need = request.need
    best = np.full(need + 2, _NEVER)
    best[0] = 0
    lengths = []
    for row in order:
        value, length = blocks.step(int(request.classes[row]), int(request.room[row])).after(best)
        better = value < best[: need + 1]
        best[: need + 1] = np.where(better, value, best[: need + 1])
        lengths.append(np.where(better, length, 0))
    end, found = need, []
    for row, length in zip(reversed(list(order)), reversed(lengths), strict=True):
        if length[end]:
            found.append((int(row), end - int(length[end]), end))
            end -= int(length[end])
    return int(best[need]), found
