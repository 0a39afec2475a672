"""The program over columns: its linear relaxation with prices, and its integer solutions, both by HiGHS."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from frostline.placement.column_space import Columns, Vector
from frostline.placement.pattern_problem import Limits, PatternProblem, Threshold
from frostline.timing.iteration_time import Matrix

__all__ = ["MOST_NODES", "ColumnMaster", "Picked", "Relaxed"]

MOST_NODES = 20_000
"""Most branches of an integer program, so that it ends without a deadline, and always at the same point."""

_FEASIBLE = 1e-7
_WHOLE = 1e-5
_ANY = (0, math.inf)
_POLL_S = 0.05
_PER_LOAD = 4

Picked = tuple[tuple[int, tuple[int, ...]], ...]
"""Class and column of each used server."""


@dataclass(frozen=True, slots=True)
class Relaxed:
    """Solution of the linear relaxation.

    Parameters
    ----------
    missing : float
        Replicas that it cannot place, and servers that it cannot bring to a threshold.
    worth, extra
        Prices of replicas and of reaching thresholds, as in :class:`~frostline.placement.pattern_problem.Prices`.
    room_prices : ndarray of float64
        Prices of the rows of servers.
    values : ndarray of float64
        How many servers hold each known column.
    slowest_ns : int
        Slowest column in use.
    """

    missing: float
    worth: Vector
    extra: dict[Threshold, int]
    room_prices: npt.NDArray[np.float64]
    values: npt.NDArray[np.float64]
    slowest_ns: int

    @property
    def feasible(self) -> bool:
        """Whether everything is placed, as far as floats tell."""
        return self.missing < _FEASIBLE


class ColumnMaster:
    """Known columns of a problem, and the programs over those within a time limit.

    Rows are the stages, where what is placed and what is missing add up to K_s; the servers that have a room at least
    as large as that of a group, by class; and the thresholds that have been branched on. Columns within the time limit
    may be used, the others are fixed to 0.

    Parameters
    ----------
    problem : PatternProblem
        Stages and groups of servers.
    """

    def __init__(self, problem: PatternProblem) -> None:
        self._problem = problem
        self._kinds = np.zeros(0, np.int64)
        self._matrix = np.zeros((0, len(problem.counts)), np.int64)
        self._times = np.zeros(0, np.int64)
        self._places = np.zeros(0, np.int32)
        self._known: set[tuple[int, bytes]] = set()
        self._thresholds: list[Threshold] = []
        self._row_bounds = _row_bounds(problem)
        self._lp = _solver()
        for low, high in zip(*self._row_bounds, strict=True):
            self._lp.addRow(float(low), float(high), 0, np.zeros(0, np.int32), np.zeros(0))
        for stage in range(len(problem.counts)):
            self._add_missing(stage)

    def _add_missing(self, row: int) -> None:
        """Let what a row lacks be missing, at a price of 1."""
        self._lp.addCol(1.0, 0.0, np.inf, 1, np.array([row], np.int32), np.ones(1))

    def add(self, kind: int, columns: Columns) -> int:
        """Add columns of a class; how many of them were new."""
        new = [i for i, column in enumerate(columns.matrix) if self._is_new(kind, column)]
        if new:
            added, kinds = columns.some(np.array(new)), np.full(len(new), kind)
            starts, indices, values = _compressed(self._entries(kinds, added.matrix, self._thresholds))
            nothing, first = np.zeros(len(new)), self._lp.getNumCol()
            self._lp.addCols(
                len(new), nothing, nothing, np.full(len(new), np.inf), len(indices), starts[:-1], indices, values
            )
            self._kinds = np.append(self._kinds, kinds)
            self._matrix = np.concatenate([self._matrix, added.matrix])
            self._times = np.append(self._times, added.times)
            self._places = np.append(self._places, np.arange(first, first + len(new), dtype=np.int32))
        return len(new)

    def _is_new(self, kind: int, column: Vector) -> bool:
        key = (kind, column.tobytes())
        if key in self._known:
            return False
        self._known.add(key)
        return True

    def watch(self, threshold: Threshold) -> None:
        """Give a threshold a row, so that the number of servers that reach it can be limited."""
        if threshold not in self._thresholds:
            self._thresholds.append(threshold)
            reached = np.flatnonzero(self._matrix[:, threshold.stage] >= threshold.replicas)
            self._lp.addRow(-np.inf, np.inf, len(reached), self._places[reached], np.ones(len(reached)))
            self._add_missing(self._lp.getNumRow() - 1)

    def _entries(self, kinds: Vector, matrix: Matrix, thresholds: Iterable[Threshold]) -> npt.NDArray[np.float64]:
        """Coefficients of columns, shape (columns, rows)."""
        problem = self._problem
        loads = matrix @ problem.sizes
        rows = [*matrix.T]
        below: dict[int, int] = {}
        for group in problem.groups:
            rows.append((kinds == group.kind) & (loads > below.get(group.kind, 0)))
            below[group.kind] = group.room
        if problem.most_servers is not None:
            rows.append(np.ones(len(kinds), np.int64))
        rows.extend(matrix[:, stage] >= replicas for stage, replicas in thresholds)
        return np.stack(rows, axis=1).astype(float)

    def relax(self, limit_ns: int, scale: int, limits: Limits | None = None) -> Relaxed:
        """Solve the linear relaxation: place as much as possible within limits; prices are multiples of 1 / scale."""
        stages, servers = len(self._problem.counts), len(self._row_bounds[0])
        for row, threshold in enumerate(self._thresholds, servers):
            low, high = (limits or {}).get(threshold, _ANY)
            self._lp.changeRowBounds(row, low if low > 0 else -np.inf, high)
        upper = np.where(self._times <= limit_ns, np.inf, 0.0)
        if len(upper):
            self._lp.changeColsBounds(len(upper), self._places, np.zeros(len(upper)), upper)
        self._lp.run()
        solution = self._lp.getSolution()
        values, duals = np.array(solution.col_value)[self._places], np.array(solution.row_dual) * scale
        return Relaxed(
            missing=float(self._lp.getInfo().objective_function_value),
            worth=np.rint(duals[:stages]).astype(np.int64),
            extra=self._extra(duals[servers:], limits or {}),
            room_prices=-duals[stages:servers],
            values=values,
            slowest_ns=int(self._times[values > _FEASIBLE].max(initial=0)),
        )

    def _extra(self, duals: npt.NDArray[np.float64], limits: Limits) -> dict[Threshold, int]:
        """Worth of reaching thresholds, with the sign that their limits allow."""
        extra = {}
        for threshold, dual in zip(self._thresholds, np.rint(duals).astype(np.int64).tolist(), strict=True):
            low, high = limits.get(threshold, _ANY)
            if (dual > 0 and low > 0) or (dual < 0 and high < np.inf):
                extra[threshold] = dual
        return extra

    def doubtful(self, relaxed: Relaxed) -> tuple[Threshold, int] | None:
        """Threshold that a number of servers reaches which is far from whole, and that number rounded down.

        Whole stages come first: it costs most to split a stage that was whole by halves.
        """
        used = np.flatnonzero(relaxed.values > _FEASIBLE)
        matrix, values = self._matrix[used], relaxed.values[used]
        best: tuple[tuple[bool, float], Threshold, int] | None = None
        for stage, count in enumerate(self._problem.counts.tolist()):
            for replicas in sorted(set(matrix[:, stage].tolist()) - {0}):
                servers = float(values[matrix[:, stage] >= replicas].sum())
                doubt = round(min(servers % 1, 1 - servers % 1), 6)
                key = (replicas == count, doubt)
                if doubt > _WHOLE and (best is None or key > best[0]):
                    best = (key, Threshold(stage, replicas), math.floor(servers))
        return None if best is None else best[1:]

    def whole(self, relaxed: Relaxed) -> Picked | None:
        """Columns of a relaxed solution that uses each a whole number of times."""
        servers = np.rint(relaxed.values)
        if np.abs(relaxed.values - servers).max(initial=0) > _WHOLE:
            return None
        return self._picked(np.arange(len(servers)), servers.astype(np.int64))

    def _picked(self, which: npt.NDArray[np.intp], servers: Vector) -> Picked:
        held = np.repeat(which, servers)
        return tuple((int(self._kinds[i]), tuple(self._matrix[i].tolist())) for i in held)

    def improving(self, relaxed: Relaxed, kind: int, columns: Columns) -> Columns:
        """Of worthy columns those worth more than the room they need costs, the best few of each load."""
        gain = columns.worths - self._room_cost(relaxed, kind, columns.loads)
        order = np.lexsort((-gain, columns.loads))
        order = order[gain[order] > 0.5]
        loads = columns.loads[order]
        rank = np.arange(len(order)) - np.searchsorted(loads, loads)
        return columns.some(order[rank < _PER_LOAD])

    def _room_cost(self, relaxed: Relaxed, kind: int, loads: Vector) -> npt.NDArray[np.float64]:
        cost = np.zeros(len(loads))
        below = 0
        for group, price in zip(self._problem.groups, relaxed.room_prices, strict=False):
            if group.kind == kind:
                cost += price * (loads > below)
                below = group.room
        return cost + (relaxed.room_prices[-1] if self._problem.most_servers is not None else 0.0)

    def pick(
        self, limit_ns: int, time_limit_s: float, limits: Limits | None = None, most_nodes: int = MOST_NODES
    ) -> tuple[Picked | None, bool]:
        """Place everything by known columns within limits.

        The columns picked, if any were found, and whether the search came to its end.
        """
        usable = np.flatnonzero(self._times <= limit_ns)
        if not len(usable):
            return None, True
        kinds, matrix, (lower, upper) = self._kinds[usable], self._matrix[usable], self._row_bounds
        limits = limits or {}
        bounds = (
            np.append(lower, [float(low) for low, _ in limits.values()]),
            np.append(upper, [float(high) for _, high in limits.values()]),
        )
        servers, finished = _integer(self._entries(kinds, matrix, limits), bounds, time_limit_s, most_nodes)
        if servers is None:
            return None, finished
        return self._picked(usable, servers), finished


def _row_bounds(problem: PatternProblem) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Bounds of the rows: stages, then servers of a class with some room or more, then all servers."""
    servers = [
        sum(other.servers for other in problem.groups if other.kind == group.kind and other.room >= group.room)
        for group in problem.groups
    ]
    if problem.most_servers is not None:
        servers.append(problem.most_servers)
    counts = problem.counts.astype(float)
    return np.append(counts, np.full(len(servers), -np.inf)), np.append(counts, servers)


def _compressed(
    entries: npt.NDArray[np.float64],
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.float64]]:
    """Starts, rows and values of the coefficients of columns, shape (columns, rows)."""
    column, row = np.nonzero(entries)
    starts = np.searchsorted(column, np.arange(len(entries) + 1))
    return starts.astype(np.int32), row.astype(np.int32), entries[column, row]


def _solver(time_limit_s: float = math.inf, most_nodes: int = MOST_NODES) -> Any:
    """Quiet HiGHS with one thread. Its Python class writes a banner before it can be told not to; the base does not."""
    import highspy

    solver = highspy.Highs.__bases__[0]()
    options = {"output_flag": False, "threads": 1, "time_limit": time_limit_s, "mip_max_nodes": most_nodes}
    for name, value in options.items():
        solver.setOptionValue(name, value)
    return solver


def _integer(
    entries: npt.NDArray[np.float64],
    bounds: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]],
    time_limit_s: float,
    most_nodes: int,
) -> tuple[Vector | None, bool]:
    """Whole numbers of columns within row bounds, if any were found, and whether the search came to its end."""
    import highspy

    solver, program = _solver(time_limit_s, most_nodes), highspy.HighsLp()
    columns, rows = entries.shape
    program.num_col_, program.num_row_ = columns, rows
    program.col_cost_, program.col_lower_ = np.zeros(columns), np.zeros(columns)
    program.col_upper_ = np.full(columns, highspy.kHighsInf)
    program.row_lower_, program.row_upper_ = bounds
    matrix = program.a_matrix_
    matrix.format_ = highspy.MatrixFormat.kColwise
    matrix.start_, matrix.index_, matrix.value_ = _compressed(entries)
    program.integrality_ = [highspy.HighsVarType.kInteger] * columns
    solver.passModel(program)
    if not _run(solver, time_limit_s):
        return None, False
    status = solver.getModelStatus()
    if status == highspy.HighsModelStatus.kOptimal:
        return np.rint(solver.getSolution().col_value).astype(np.int64), True
    return None, bool(status == highspy.HighsModelStatus.kInfeasible)


def _run(solver: Any, time_limit_s: float) -> bool:
    """Solve an integer program; whether that ended in time. Ctrl-C ends it too.

    HiGHS looks at the clock between its steps only, and one may take seconds. So it runs on a thread of its own, which
    is left behind where it is late and ends at its next look at the clock; the interpreter waits for it before it ends.
    """
    import highspy

    stopped, ended = threading.Event(), threading.Event()

    def ask(kind: Any, message: str, told: Any, answer: Any, data: Any) -> None:
        answer.user_interrupt = stopped.is_set()

    def run() -> None:
        solver.run()
        ended.set()

    solver.setCallback(ask, None)
    solver.startCallback(highspy.cb.HighsCallbackType.kCallbackMipInterrupt)
    deadline_s = time.perf_counter() + time_limit_s + _POLL_S
    threading.Thread(target=run).start()
    try:
        # Not by joining the thread: interrupted, that would take the thread for ended.
        while not ended.wait(_POLL_S) and time.perf_counter() < deadline_s:
            pass
    finally:
        stopped.set()
    return ended.is_set()
