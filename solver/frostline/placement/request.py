"""A placement request as the methods see it, and the tie rules that all of them share."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from frostline.errors import FrostlineError
from frostline.problem.bin_packing import MAX_STEPS, pack_replicas
from frostline.timing.iteration_time import IterationTime, Matrix, total_ns

__all__ = [
    "Columns",
    "DoesNotFitError",
    "Objective",
    "Progress",
    "Rank",
    "Request",
    "columns_of",
    "fewest_is_certain",
    "fewest_servers",
    "holds",
    "rank",
]

Columns = tuple[tuple[int, tuple[int, ...]], ...]
"""Used servers, ascending, with the replicas of each stage that they hold."""

Rank = tuple[int, int, int, tuple[int, ...]]
"""Order of placements, lower is better: the objective's two figures, GPUs free before on used servers, the servers."""

Progress = Callable[[int, int], object]
"""Told of the best iteration time and the best bound so far, in nanoseconds; a true answer stops the search."""


class DoesNotFitError(FrostlineError, ValueError):
    """The GPUs on offer do not hold all replicas: too few, or of the wrong shape for replicas of several GPUs.

    Parameters
    ----------
    need_gpus : int
        GPUs asked for, by all replicas together.
    offer_gpus : int
        GPUs on offer, on all servers together.
    why : str
        What is wrong with their shape; empty where they are too few.

    Examples
    --------
    >>> str(DoesNotFitError(17, 16))
    'placement: gpus=17 but all servers together have 16 free'
    >>> str(DoesNotFitError(5, 8, "a replica of stage 'a' needs 5 in one server, the most is 4"))
    "placement: gpus=5 of 8 free, but a replica of stage 'a' needs 5 in one server, the most is 4"
    """

    def __init__(self, need_gpus: int, offer_gpus: int, why: str = "") -> None:
        short = f" but all servers together have {offer_gpus} free"
        super().__init__(f"placement: gpus={need_gpus}" + (f" of {offer_gpus} free, but {why}" if why else short))
        self.need_gpus, self.offer_gpus, self.why = need_gpus, offer_gpus, why


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
    gap : float
        Distance to the bound, as a share of it, at which an exact search may stop.
    workers : int
        Threads of an exact search; with more than one, equal searches may end in different placements.
    progress : callable, optional
        Told of every step forward of an exact search, see :data:`Progress`.
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
    packing : ndarray of int64, shape (rows, stages), or None
        Some placement that fits, where replicas fill several GPUs; where all fill one, there is none to look for.

    Raises
    ------
    DoesNotFitError
        The free GPUs do not hold all replicas.
    """

    timing: IterationTime
    free: tuple[int, ...]
    objective: Objective = Objective.TIME
    seed: int = 0
    deadline_s: float = float("inf")
    gap: float = 0.0
    workers: int = 1
    progress: Progress | None = None
    rows: tuple[int, ...] = ()
    need: int = field(init=False)
    sizes: npt.NDArray[np.int64] = field(init=False, compare=False)
    room: npt.NDArray[np.int64] = field(init=False, compare=False)
    classes: npt.NDArray[np.int64] = field(init=False, compare=False)
    packing: Matrix | None = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        graph = self.timing.graph
        need = graph.gpus
        if need > sum(self.free):
            raise DoesNotFitError(need, sum(self.free))
        rows = self.rows or _rows_that_matter(self.timing, self.free)
        room = [min(self.free[m], need) for m in rows]
        object.__setattr__(self, "need", need)
        object.__setattr__(self, "sizes", np.array(graph.gpus_per_replica, np.int64))
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "room", np.array(room, np.int64))
        object.__setattr__(self, "classes", np.array([self.timing.server_class(m) for m in rows], np.int64))
        object.__setattr__(self, "packing", None if need == sum(graph.replicas) else _packing(self, room))

    @property
    def counts(self) -> tuple[int, ...]:
        """Replicas of each stage."""
        return self.timing.graph.replicas

    @property
    def stages(self) -> Matrix:
        """Replicas of each stage and GPUs that one fills, shape (2, stages)."""
        return np.array([self.counts, self.timing.graph.gpus_per_replica], np.int64)

    def fallback(self) -> Matrix:
        """Some placement that fits, for a method that finds none."""
        assert self.packing is not None
        return self.packing.copy()

    def random(self, stream: int) -> npt.NDArray[np.int64]:
        """State of a random generator of whole numbers, different for every seed and stream."""
        mixed = (self.seed * 0x9E3779B97F4A7C15 + stream) * 0xBF58476D1CE4E5B9 & 0xFFFFFFFFFFFFFFFF
        return np.array([1 + (mixed ^ mixed >> 31) % 2147483646], np.int64)

    @property
    def floor_ns(self) -> int:
        """Nanoseconds of the slowest row below which no placement gets faster."""
        timing = self.timing
        return timing.bound_ns if timing.overlap else timing.bound_ns - timing.base_ns

    @property
    def late(self) -> bool:
        """Whether the deadline has passed."""
        return time.perf_counter() >= self.deadline_s

    @property
    def left_s(self) -> float:
        """Seconds before the deadline, at least 0."""
        return max(self.deadline_s - time.perf_counter(), 0.0)

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


def _rows_that_matter(timing: IterationTime, free: Sequence[int]) -> tuple[int, ...]:
    """Servers with room for a replica, of each class no more than there are replicas."""
    replicas, smallest = sum(timing.graph.replicas), min(timing.graph.gpus_per_replica)
    kinds = {m: timing.server_class(m) for m, count in enumerate(free) if count >= smallest}
    kept: dict[int, int] = {}
    rows = []
    for server in sorted(kinds, key=lambda m: (-free[m], kinds[m], m)):
        kind = kinds[server]
        kept[kind] = kept.get(kind, 0) + 1
        if kept[kind] <= replicas:
            rows.append(server)
    return tuple(rows)


def _packing(request: Request, room: Sequence[int]) -> Matrix:
    """A placement that fits, or the reason why there is none."""
    graph = request.timing.graph
    matrix, certain = pack_replicas(room, graph.gpus_per_replica, graph.replicas)
    if matrix is not None:
        return matrix
    stage = int(np.argmax(request.sizes))
    largest = max(request.free)
    if request.sizes[stage] > largest:
        needed = f"a replica of stage {graph.names[stage]!r} needs {request.sizes[stage]} in one server"
        why = f"{needed}, the most is {largest}"
    elif certain:
        why = "there is no way to keep every replica inside one server"
    else:
        why = f"no way to keep every replica inside one server was found in {MAX_STEPS} steps"
    raise DoesNotFitError(request.need, sum(request.free), why)


def fewest_servers(request: Request) -> int:
    """Fewest rows that hold all replicas."""
    room = np.sort(request.room)[::-1]
    fewest = int(np.searchsorted(np.cumsum(room), request.need)) + 1
    while not holds(request, room[:fewest].tolist()):
        fewest += 1
    return fewest


def fewest_is_certain(request: Request) -> bool:
    """Whether it is certain that fewer than :func:`fewest_servers` rows cannot hold all replicas.

    It may not be where replicas fill several GPUs and the search for a packing on fewer servers was given up.
    """
    if request.objective is Objective.TIME or request.packing is None:
        return True
    graph, room = request.timing.graph, np.sort(request.room)[::-1].tolist()
    fewer = room[: fewest_servers(request) - 1]
    return pack_replicas(fewer, graph.gpus_per_replica, graph.replicas)[1]


def holds(request: Request, room: Sequence[int]) -> bool:
    """Whether servers with so much room hold all replicas."""
    if request.packing is None:
        return sum(room) >= request.need
    graph = request.timing.graph
    return pack_replicas(room, graph.gpus_per_replica, graph.replicas)[0] is not None


def columns_of(request: Request, matrix: Matrix) -> Columns:
    """Columns of a matrix on servers of the same classes, by best fit: large holes stay whole, then lower server ids.

    The iteration time stays the same, since it depends on the classes of the servers only. Columns are taken from the
    largest to the smallest; each gets the server with the fewest free GPUs that hold it. Every server that holds a
    column holds the smaller ones too, so that none is left without a server.
    """
    loads = request.loads(matrix)
    used = loads.nonzero()[0]
    kinds = request.classes[used].tolist()
    holes = _holes(request, kinds)
    columns = zip((-loads[used]).tolist(), map(tuple, matrix[used].tolist()), used.tolist(), kinds, strict=True)
    placed = []
    for load, column, _, kind in sorted(columns):
        kind_holes = holes[kind]
        placed.append((kind_holes.pop(bisect_left(kind_holes, (-load,)))[1], column))
    return tuple(sorted(placed))


def _holes(request: Request, kinds: Sequence[int]) -> dict[int, list[tuple[int, int]]]:
    """Free GPUs and index of the servers of some classes, smallest hole first."""
    holes = sorted([(count, server) for server, count in enumerate(request.free) if count])
    if not request.classes.any():
        return {0: holes}
    by_kind: dict[int, list[tuple[int, int]]] = {kind: [] for kind in kinds}
    for hole in holes:
        kind = request.timing.server_class(hole[1])
        if kind in by_kind:
            by_kind[kind].append(hole)
    return by_kind


def rank(request: Request, matrix: Matrix) -> Rank:
    """Rank of a matrix: time and servers in the order of the objective, then best fit, then lower server ids."""
    columns = columns_of(request, matrix)
    figures = (request.value_ns(matrix), len(columns))
    if request.objective is Objective.CONSOLIDATE:
        figures = (figures[1], figures[0])
    servers = tuple(server for server, _ in columns)
    return *figures, sum(request.free[m] for m in servers), servers
