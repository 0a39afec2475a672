"""A placement request as the methods see it, and the tie rules that all of them share."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from frostline.placement.result import DoesNotFitError
from frostline.timing.iteration_time import IterationTime, Matrix, total_ns

__all__ = ["Columns", "Objective", "Rank", "Request", "columns_of", "fewest_servers", "rank"]

Columns = tuple[tuple[int, tuple[int, ...]], ...]
"""Used servers, ascending, with the replicas of each stage that they hold."""

Rank = tuple[int, int, int, tuple[int, ...]]
"""Order of placements, lower is better: the objective's two figures, GPUs free before on used servers, the servers."""


class Objective(StrEnum):
    """What is minimised first."""

    TIME = "time"  # iteration time, then number of servers
    CONSOLIDATE = "consolidate"  # number of servers, then iteration time


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Where may the replicas of a job go, and how is a placement judged?

    Methods work on the *rows*: servers that can matter, those with most free GPUs first. Servers of one class of the
    timing model differ in their free GPUs only, so of each class the ``need`` largest are enough.

    Parameters
    ----------
    timing : IterationTime
        Model of the iteration time.
    free : tuple of int
        Free GPUs by server.
    objective : Objective
        What is minimised first.
    seed : int
        Seed of random choices.
    deadline_s : float
        Instant of the performance counter after which a search stops.
    rows : tuple of int
        Servers the methods may use; those that can matter by default.

    Attributes
    ----------
    need : int
        GPUs that all replicas fill.
    sizes : ndarray of int64, shape (stages,)
        GPUs that one replica of each stage fills.
    room : ndarray of int64, shape (rows,)
        Free GPUs of each row, at most ``need``.
    classes : ndarray of int64, shape (rows,)
        Server class of each row.
    """

    timing: IterationTime
    free: tuple[int, ...]
    objective: Objective = Objective.TIME
    seed: int = 0
    deadline_s: float = float("inf")
    rows: tuple[int, ...] = ()
    need: int = field(init=False)
    sizes: npt.NDArray[np.int64] = field(init=False, compare=False)
    room: npt.NDArray[np.int64] = field(init=False, compare=False)
    classes: npt.NDArray[np.int64] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        need = self.timing.graph.gpus
        if need > sum(self.free):
            raise DoesNotFitError(need, sum(self.free))
        rows = self.rows or _rows_that_matter(self.timing, self.free, need)
        object.__setattr__(self, "need", need)
        object.__setattr__(self, "sizes", np.array(self.timing.graph.gpus_per_replica, np.int64))
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "room", np.array([min(self.free[m], need) for m in rows], np.int64))
        object.__setattr__(self, "classes", np.array([self.timing.server_class(m) for m in rows], np.int64))

    @property
    def counts(self) -> tuple[int, ...]:
        """Replicas of each stage."""
        return self.timing.graph.replicas

    @property
    def late(self) -> bool:
        """Whether the deadline has passed."""
        return time.perf_counter() >= self.deadline_s

    def loads(self, matrix: Matrix) -> npt.NDArray[np.int64]:
        """GPUs that a matrix fills on each row."""
        return matrix @ self.sizes

    def empty(self) -> Matrix:
        """Matrix of zeros, shape (rows, stages)."""
        return np.zeros((len(self.rows), len(self.counts)), np.int64)

    def restricted(self, rows: Iterable[int]) -> Request:
        """Same request on fewer rows, given by their positions."""
        return replace(self, rows=tuple(self.rows[row] for row in sorted(rows)))

    def rows_ns(self, matrix: Matrix) -> Matrix:
        """Nanoseconds f of each row of a matrix, shape (rows, stages) to shape (rows,)."""
        return self.columns_ns(matrix, self.classes)

    def columns_ns(self, columns: Matrix, classes: npt.NDArray[np.int64]) -> Matrix:
        """Nanoseconds of columns on servers of given classes, shape (n, stages) and (n,) to shape (n,)."""
        if len(columns) and (classes == classes[0]).all():
            return self.timing.columns_ns(columns, self._server_of(int(classes[0])))
        value = np.zeros(len(columns), np.int64)
        for kind in np.unique(classes).tolist():
            chosen = classes == kind
            value[chosen] = self.timing.columns_ns(columns[chosen], self._server_of(kind))
        return value

    def value_ns(self, matrix: Matrix) -> int:
        """Iteration time of a matrix that places everything."""
        return total_ns(self.timing, int(self.rows_ns(matrix)[matrix.any(axis=1)].max()))

    def _server_of(self, kind: int) -> int:
        return self.rows[int(np.argmax(self.classes == kind))]


def _rows_that_matter(timing: IterationTime, free: Sequence[int], need: int) -> tuple[int, ...]:
    kinds = {m: timing.server_class(m) for m, count in enumerate(free) if count}
    kept: dict[int, int] = {}
    rows = []
    for server in sorted(kinds, key=lambda m: (-free[m], kinds[m], m)):
        kind = kinds[server]
        kept[kind] = kept.get(kind, 0) + 1
        if kept[kind] <= need:
            rows.append(server)
    return tuple(rows)


def fewest_servers(request: Request) -> int:
    """Fewest rows that hold all replicas."""
    held = np.cumsum(np.sort(request.room)[::-1])
    return int(np.searchsorted(held, request.need)) + 1


def columns_of(request: Request, matrix: Matrix) -> Columns:
    """Columns of a matrix on servers of the same classes, by best fit: large holes stay whole, then lower server ids.

    The iteration time stays the same, since it depends on the classes of the servers only. Columns are taken from the
    largest to the smallest; each gets the server with the fewest free GPUs that hold it. Every server that holds a
    column holds the smaller ones too, so that none is left without a server.
    """
    holes = _holes(request)
    loads = request.loads(matrix)
    used = [row for row in range(len(request.rows)) if loads[row]]
    columns = {row: tuple(matrix[row].tolist()) for row in used}
    placed = []
    for row in sorted(used, key=lambda r: (-int(loads[r]), columns[r], r)):
        kind_holes = holes[int(request.classes[row])]
        index = next(i for i, (count, _) in enumerate(kind_holes) if count >= loads[row])
        placed.append((kind_holes.pop(index)[1], columns[row]))
    return tuple(sorted(placed))


def _holes(request: Request) -> dict[int, list[tuple[int, int]]]:
    """Free GPUs and index of all servers by class, smallest hole first."""
    holes: dict[int, list[tuple[int, int]]] = {}
    for server in sorted(range(len(request.free)), key=lambda m: (request.free[m], m)):
        if request.free[server]:
            holes.setdefault(request.timing.server_class(server), []).append((request.free[server], server))
    return holes


def rank(request: Request, matrix: Matrix) -> Rank:
    """Rank of a matrix: time and servers in the order of the objective, then best fit, then lower server ids."""
    columns = columns_of(request, matrix)
    figures = (request.value_ns(matrix), len(columns))
    if request.objective is Objective.CONSOLIDATE:
        figures = (figures[1], figures[0])
    servers = tuple(server for server, _ in columns)
    return *figures, sum(request.free[m] for m in servers), servers
