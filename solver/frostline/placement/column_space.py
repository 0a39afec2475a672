"""All columns that one server could hold: those that are fast enough, and the worthiest of them.

Stages are decided one after another. What the rest of the way needs to know of a partial column is its *frontier*:
the counts of decided stages that undecided ones still look at, and the GPUs used. On a chain of stages that is one
stage (two where the slowest stage counts). Dynamic programming over frontiers finds columns, whatever the number of
servers and replicas; it is exact on every stage graph and fast where frontiers are small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol

import numpy as np
import numpy.typing as npt

from frostline.placement.columns import column_count, columns_within
from frostline.timing.column_costs import ColumnCosts, ColumnKind
from frostline.timing.iteration_time import Matrix

__all__ = ["ColumnSpace", "Columns", "FrontierSpace", "TableSpace", "Vector", "Worths", "elimination_order", "worth_of"]

Vector = npt.NDArray[np.int64]

Worths = Sequence[Vector]
"""For each stage, what 0, 1, 2, … of its replicas in one server are worth."""

_NEVER = np.int64(1 << 60)
_DENSE = 1 << 20


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns of one server: replicas by stage, GPUs filled, nanoseconds, and what they are worth."""

    matrix: Matrix
    loads: Vector
    times: Vector
    worths: Vector

    def some(self, which: npt.NDArray[np.intp] | npt.NDArray[np.bool_]) -> Columns:
        """Some of the columns."""
        return Columns(self.matrix[which], self.loads[which], self.times[which], self.worths[which])

    def most_worth(self, room: int) -> int:
        """Worth of the worthiest column within a room, 0 of the empty one."""
        return int(self.worths[self.loads <= room].max(initial=0))


def worth_of(matrix: Matrix, worths: Worths) -> Vector:
    """What columns are worth, shape (columns, stages) to shape (columns,).

    Examples
    --------
    >>> worth_of(np.array([[1, 0], [2, 1]]), [np.array([0, 3, 9]), np.array([0, 2])]).tolist()
    [3, 11]
    """
    total: Vector = sum(
        (worth[held] for worth, held in zip(worths, matrix.T, strict=True)), np.zeros(len(matrix), np.int64)
    )
    return total


class ColumnSpace(Protocol):
    """Columns that the servers of one class could hold."""

    def all(self, limit_ns: int, most: int) -> Columns | None:
        """All columns but the empty one that need at most so many nanoseconds; None if that takes more than ``most``.

        What counts is the number of partial columns that must be kept at once.
        """

    def worthiest(self, worths: Worths, limit_ns: int, most: int) -> Columns | None:
        """For each load, the column worth most among those that need at most so many nanoseconds, and some more."""


@dataclass(frozen=True, slots=True)
class _Step:
    """One stage in the order: what becomes known when it is decided, and what is still looked at afterwards."""

    stage: int
    size: int
    most: int
    seen: tuple[int, ...]
    kept: tuple[int, ...]
    due: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Labels:
    """Partial columns: counts of the frontier, GPUs used, cost and worth so far, and where each came from."""

    counts: dict[int, Vector]
    used: Vector
    costs: Vector
    worths: Vector
    origin: Vector
    chosen: Vector

    def some(self, which: npt.NDArray[np.intp] | npt.NDArray[np.bool_]) -> _Labels:
        return _Labels(
            {stage: counts[which] for stage, counts in self.counts.items()},
            self.used[which],
            self.costs[which],
            self.worths[which],
            self.origin[which],
            self.chosen[which],
        )


class FrontierSpace(ColumnSpace):
    """Columns of the servers of one class.

    Parameters
    ----------
    costs : ColumnCosts
        Integer tables of the column function.
    sizes : sequence of int
        GPUs that one replica of each stage fills.
    room : int
        Most free GPUs of a server.

    Examples
    --------
    >>> card = ColumnCosts(kind=ColumnKind.EGRESS, counts=(2, 2), pairs=((0, 1, 5),), rings=(0, 7), local=(0, 0))
    >>> space = FrontierSpace(card, (1, 1), 3)
    >>> space.all(10, 100).matrix.tolist()
    [[1, 0], [1, 2]]
    >>> best = space.worthiest([np.array([0, 3, 6]), np.array([0, 2, 4])], 17, 100)
    >>> best.matrix[best.worths.argmax()].tolist()
    [2, 1]
    """

    def __init__(self, costs: ColumnCosts, sizes: Sequence[int], room: int) -> None:
        self.costs, self.room = costs, room
        self._add = costs.kind is ColumnKind.EGRESS
        self._steps = tuple(_steps(costs, sizes, room))
        self._ahead = self._cost_ahead()

    def all(self, limit_ns: int, most: int) -> Columns | None:
        """All columns but the empty one within a time limit."""
        return self._search(None, limit_ns, most)

    def worthiest(self, worths: Worths, limit_ns: int, most: int) -> Columns | None:
        """For each load, the worthiest column within a time limit, and some more."""
        return self._search(worths, limit_ns, most)

    def _search(self, worths: Worths | None, limit_ns: int, most: int) -> Columns | None:
        zero = np.zeros(1, np.int64)
        labels = _Labels({}, zero, zero, zero, zero, zero)
        trail = []
        for position, step in enumerate(self._steps):
            if int(self._options(labels, step).sum()) > most:
                return None
            labels = self._extended(labels, step, None if worths is None else worths[step.stage])
            labels = labels.some(self._promising(labels, position, limit_ns))
            if worths is not None and position + 1 < len(self._steps):
                labels = labels.some(self._undominated(labels, step))
            trail.append((step.stage, labels.origin, labels.chosen))
        held = np.flatnonzero(labels.used)
        return Columns(
            _traced(trail, held, len(self._steps)), labels.used[held], labels.costs[held], labels.worths[held]
        )

    def _options(self, labels: _Labels, step: _Step) -> Vector:
        """How many counts of the next stage each partial column has room for."""
        options: Vector = np.minimum((self.room - labels.used) // step.size, step.most) + 1
        return options

    def _extended(self, labels: _Labels, step: _Step, worth: Vector | None) -> _Labels:
        """Each partial column with every count of the next stage that there is room for."""
        options = self._options(labels, step)
        origin = np.repeat(np.arange(len(options)), options)
        chosen = np.arange(len(origin)) - np.repeat(np.cumsum(options) - options, options)
        counts = {stage: held[origin] for stage, held in labels.counts.items()}
        counts[step.stage] = chosen
        costs = labels.costs[origin]
        costs = costs + self._term(step, counts) if self._add else np.maximum(costs, self._term(step, counts))
        return _Labels(
            {stage: counts[stage] for stage in step.kept},
            labels.used[origin] + chosen * step.size,
            costs,
            labels.worths[origin] + (0 if worth is None else worth[chosen]),
            origin,
            chosen,
        )

    def _term(self, step: _Step, counts: dict[int, Vector]) -> Vector:
        """What is known to be due once the stage is decided."""
        costs, total = self.costs, self.costs.counts
        if self._add:
            held = counts[step.stage]
            term = np.where((held > 0) & (held < total[step.stage]), costs.rings[step.stage], 0)
            for other, ns in costs.remote[step.stage]:
                if ns and other in step.seen:
                    there = counts[other]
                    term = term + ns * (held * (total[other] - there) + there * (total[step.stage] - held))
            return term
        slowest = np.zeros(1, np.int64)
        for stage in step.due:
            time_ns = costs.local[stage] + np.where(counts[stage] < total[stage], costs.rings[stage], 0)
            for other, ns in costs.remote[stage]:
                if ns:
                    time_ns = time_ns + ns * (total[other] - counts[other])
            slowest = np.maximum(slowest, np.where(counts[stage] > 0, time_ns, 0))
        return slowest

    def _promising(self, labels: _Labels, position: int, limit_ns: int) -> npt.NDArray[np.bool_]:
        """Which partial columns can still be completed in time."""
        ahead = self._ahead[position]
        if ahead is None:
            return labels.costs <= limit_ns
        rest = ahead[(*labels.counts.values(), labels.used)]
        total: Vector = labels.costs + rest if self._add else np.maximum(labels.costs, rest)
        return total <= limit_ns

    def _undominated(self, labels: _Labels, step: _Step) -> npt.NDArray[np.intp]:
        """Of partial columns with one frontier, those that no other beats in both cost and worth."""
        key = labels.used
        for stage, counts in labels.counts.items():
            key = key * (self._most(stage) + 1) + counts
        order = np.lexsort((-labels.worths, labels.costs, key) if self._add else (-labels.worths, key))
        key, worths = key[order], labels.worths[order]
        first = np.ones(len(order), bool)
        first[1:] = key[1:] != key[:-1]
        if not self._add:
            return order[first]
        lifted = worths + np.cumsum(first) * (int(np.abs(worths).max(initial=0)) * 2 + 1)
        best = np.maximum.accumulate(lifted)
        first[1:] |= lifted[1:] > best[:-1]
        return order[first]

    def _most(self, stage: int) -> int:
        return next(step.most for step in self._steps if step.stage == stage)

    def _cost_ahead(self) -> list[Matrix | None]:
        """After each step, the least further cost by frontier and GPUs used; None for too large a table."""
        tables: list[Matrix | None] = [np.zeros(self.room + 1, np.int64)]
        most = {step.stage: step.most for step in self._steps}
        for step in reversed(self._steps):
            after = tables[-1]
            axes = (*step.seen, step.stage)
            shape = tuple(most[stage] + 1 for stage in axes)
            if after is None or np.prod(shape, dtype=float) * (self.room + 1) > _DENSE:
                tables.append(None)
                continue
            grid = dict(zip(axes, np.indices(shape, sparse=True), strict=True))
            term = np.broadcast_to(self._term(step, grid), shape)[..., None]
            kept = tuple(slice(None) if stage in step.kept else None for stage in axes)
            after = np.broadcast_to(after[kept], (*shape, self.room + 1))
            tables.append(self._before(step, term, after))
        return tables[-2::-1]

    def _before(self, step: _Step, term: Matrix, after: Matrix) -> Matrix:
        """Least further cost before a stage is decided."""
        least = np.full((*after.shape[:-2], self.room + 1), _NEVER)
        for count in range(step.most + 1):
            left = self.room + 1 - count * step.size
            rest, now = after[..., count, count * step.size :], term[..., count, :]
            np.minimum(least[..., :left], rest + now if self._add else np.maximum(rest, now), out=least[..., :left])
        return least


class TableSpace(ColumnSpace):
    """Columns of a model that has no tables: all that there is room for, timed by the model.

    Parameters
    ----------
    timing : callable
        From columns, shape (n, stages), to their nanoseconds, shape (n,).
    counts, sizes : sequence of int
        Replicas of each stage and GPUs that one fills.
    room : int
        Most free GPUs of a server.
    """

    def __init__(
        self, timing: Callable[[Matrix], Matrix], counts: Sequence[int], sizes: Sequence[int], room: int
    ) -> None:
        self._counts, self._sizes, self._room = tuple(counts), tuple(sizes), room
        self._timing = timing
        self._known: Columns | None = None

    def all(self, limit_ns: int, most: int) -> Columns | None:
        """All columns but the empty one within a time limit."""
        if self._known is None and column_count(self._counts, self._sizes, self._room) <= most:
            matrix = columns_within(self._counts, self._sizes, self._room)[1:]
            times = self._timing(matrix)
            self._known = Columns(matrix, matrix @ np.array(self._sizes), times, np.zeros_like(times))
        return self._known and self._known.some(self._known.times <= limit_ns)

    def worthiest(self, worths: Worths, limit_ns: int, most: int) -> Columns | None:
        """All columns within a time limit, with what they are worth."""
        found = self.all(limit_ns, most)
        return found and replace(found, worths=worth_of(found.matrix, worths))


def _traced(trail: list[tuple[int, Vector, Vector]], which: npt.NDArray[np.intp], stages: int) -> Matrix:
    """Columns of final labels, followed back."""
    matrix = np.zeros((len(which), stages), np.int64)
    for stage, origin, chosen in reversed(trail):
        matrix[:, stage] = chosen[which]
        which = origin[which]
    return matrix


def _steps(costs: ColumnCosts, sizes: Sequence[int], room: int) -> Iterator[_Step]:
    order = elimination_order(costs)
    place = {stage: position for position, stage in enumerate(order)}
    groups = _groups(costs)
    seen: tuple[int, ...] = ()
    for position, stage in enumerate(order):
        due = tuple(
            owner for owner, group in groups if stage in group and max(place[other] for other in group) == position
        )
        open_groups = [group for _, group in groups if max(place[other] for other in group) > position]
        decided = (*seen, stage)
        kept = tuple(other for other in decided if any(other in group for group in open_groups))
        yield _Step(stage, sizes[stage], min(costs.counts[stage], room // sizes[stage]), seen, kept, due)
        seen = kept


def _groups(costs: ColumnCosts) -> list[tuple[int, frozenset[int]]]:
    """Sets of stages that some cost looks at together, each with the stage it belongs to."""
    if costs.kind is ColumnKind.EGRESS:
        return [(s, frozenset((s, t))) for s, t, ns in costs.pairs if ns]
    return [(s, frozenset((s, *(t for t, ns in near if ns)))) for s, near in enumerate(costs.remote)]


def elimination_order(costs: ColumnCosts) -> tuple[int, ...]:
    """Order of the stages that keeps the frontier small: from each start greedily, the best of all.

    Examples
    --------
    >>> star = ColumnCosts(kind=ColumnKind.EGRESS, counts=(1,) * 4, pairs=((0, 1, 1), (0, 2, 1), (0, 3, 1)),
    ...                    rings=(0,) * 4, local=(0,) * 4)
    >>> elimination_order(star)
    (1, 0, 2, 3)
    """
    return _order(tuple(group for _, group in _groups(costs)), len(costs.counts))


@lru_cache(maxsize=1 << 12)
def _order(groups: tuple[frozenset[int], ...], stages: int) -> tuple[int, ...]:
    least = max(map(len, groups), default=1) - 1
    best: tuple[tuple[int, int], tuple[int, ...]] | None = None
    for start in sorted(range(stages), key=lambda stage: sum(stage in group for group in groups)):
        found = _greedy(groups, stages, start)
        best = found if best is None else min(best, found)
        if best[0][0] <= least:
            break
    return best[1] if best else ()


def _greedy(groups: Sequence[frozenset[int]], stages: int, start: int) -> tuple[tuple[int, int], tuple[int, ...]]:
    """Largest and total frontier of a greedy order that starts at a stage, and the order."""
    order, widths = [start], [_width(groups, {start})]
    while len(order) < stages:
        left = [stage for stage in range(stages) if stage not in order]
        near = {other for group in groups if group & set(order) for other in group}
        width, _, stage = min((_width(groups, {*order, s}), s not in near, s) for s in left)
        order.append(stage)
        widths.append(width)
    return (max(widths), sum(widths)), tuple(order)


def _width(groups: Sequence[frozenset[int]], decided: set[int]) -> int:
    """Decided stages that an undecided one still looks at."""
    return len({stage for group in groups if not group <= decided for stage in group & decided})
