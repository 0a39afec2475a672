"""Compact mixed-integer linear model, built with PuLP and solved by CBC or HiGHS, to check the other methods by."""

from __future__ import annotations

import math
import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from frostline.errors import InvalidValueError, TooLargeError
from frostline.placement.answer import Answer
from frostline.placement.consolidate import on_fewest
from frostline.placement.incumbent import believed, bounded, check_horizon, close_enough, heuristic, log
from frostline.placement.interruptible import InterruptedSearchError
from frostline.placement.request import Request
from frostline.placement.solvers import SOLVERS, Effort, MipAnswer, Outcome, solve_mip, solver_named
from frostline.timing.column_costs import ColumnCosts, ColumnKind
from frostline.timing.iteration_time import Matrix, total_ns

if TYPE_CHECKING:
    import pulp

__all__ = ["LIMIT_S", "MOST_BITS", "milp"]

LIMIT_S = 60.0
"""Seconds of a search without a deadline."""

MOST_BITS = 20_000
"""Most binary variables of a model."""

_METHOD = "milp"
_TOLERANCE = 1e-9
_UNITS = 1e4


def milp(request: Request, start: Answer | None = None, solver: str = "") -> Answer:
    """Best placement by a mixed-integer linear program, as far as floats tell; never worse than where it starts.

    Every replica count is a sum of unary bits, a product of two counts one of a bit and a count. Equal rows are put in
    order by a weighted sum of their counts. The unit of time is chosen so that the slowest row of the incumbent takes
    ten thousand of them.

    Solvers of such models work with floats and tolerances and may call a solution optimal that is some nanoseconds
    from it. Its placement is therefore timed anew in whole nanoseconds, and its bound is lowered by the tolerances of
    the solver; ``Answer.bound`` says by how much. A proof of optimality results only where times so far apart are the
    only possible ones. Loading a solver for the first time is not counted in the time.

    Parameters
    ----------
    request : Request
        Stage graph and free GPUs.
    start : Answer, optional
        Incumbent; that of local search by default.
    solver : str
        ``"cbc"`` or ``"highs"``; by default the first of :data:`~frostline.placement.solvers.SOLVERS` that is there.

    Raises
    ------
    TooLargeError
        More than :data:`MOST_BITS`.
    InvalidValueError
        Times too long for whole nanoseconds, or a timing model without tables.
    SolverUnavailableError
        No solver can be run.
    InterruptedSearchError
        Ctrl-C; it has the best so far.

    Examples
    --------
    >>> from frostline.timing.contention import ContentionTime
    >>> from frostline.timing.stage_graph import StageGraph
    >>> graph = StageGraph(replicas=[2, 3, 2], compute_s=[0] * 3, edges={(0, 1): 6, (1, 2): 12, (0, 2): 8})
    >>> answer = milp(Request(timing=ContentionTime(graph=graph, nic_bytes_per_s=1), free=(4, 3)))
    >>> answer.matrix.sum(axis=0).tolist(), answer.bound
    ([2, 3, 2], 'milp-highs, 23 ns less')
    """
    start = heuristic(request) if start is None else start
    if request.late or close_enough(request, start):
        return start
    bits = sum(min(count, room) for count in request.counts for room in request.room.tolist())
    if bits > MOST_BITS:
        raise TooLargeError("placement", _METHOD, "binary variables", bits, MOST_BITS)
    return _searched(request, start, solver, request.deadline_s + _load(solver))


def _load(prefer: str) -> float:
    """Seconds that loading a solver takes."""
    started_s = time.perf_counter()
    (solver_named(prefer) if prefer else SOLVERS[0]).why_not()
    return time.perf_counter() - started_s


def _searched(request: Request, start: Answer, prefer: str, deadline_s: float) -> Answer:
    part, rows, most_servers = on_fewest(request)
    model = LinearModel(part, most_servers, request.value_ns(start.matrix))
    left_s = min(deadline_s - time.perf_counter(), LIMIT_S)
    if left_s <= 0:
        return start
    effort = Effort(time_limit_s=left_s, gap=request.gap / (1 + request.gap), threads=request.workers)
    try:
        found, used = solve_mip(model.problem, effort, prefer)
    except KeyboardInterrupt:
        raise InterruptedSearchError(start) from None
    name = f"{_METHOD}-{used.name}"
    if found.outcome in (Outcome.INFEASIBLE, Outcome.INVALID_MODEL):
        log.error("%s calls a model %s that has a valid placement; it is not believed", name, found.outcome)
        return start
    answer = start
    if found.outcome is not Outcome.NOTHING_FOUND:
        matrix = request.empty()
        matrix[list(rows)] = model.matrix(found)
        answer = believed(request, start, matrix, most_servers, name)
    bound_ns = min(model.bound_ns(found), request.value_ns(answer.matrix))
    answer = bounded(request, answer, bound_ns, f"{name}, {model.slack_ns} ns less")
    if found.interrupted:
        raise InterruptedSearchError(answer)
    return answer


class LinearModel:
    """PuLP model of a request: unary bits by row and stage, and the time of the slowest row as objective.

    Parameters
    ----------
    request : Request
        Stage graph and free GPUs.
    most_servers : int
        Most rows that may hold replicas.
    worst_ns : int
        Iteration time of the incumbent.
    """

    def __init__(self, request: Request, most_servers: int, worst_ns: int) -> None:
        import pulp

        timing = request.timing
        self._request, self._sum = request, pulp.lpSum
        self._tables = {kind: self._costs(kind) for kind in np.unique(request.classes).tolist()}
        self._base_ns = 0 if timing.overlap else timing.base_ns
        slowest_ns = worst_ns - self._base_ns
        self._unit_ns = max(1.0, slowest_ns / _UNITS)
        self.slack_ns = math.ceil(_TOLERANCE * max(map(_weight, self._tables.values()))) + 1
        self.problem = pulp.LpProblem("p")
        self._count = 0
        self.slowest = self._variable(0, (slowest_ns + 1) / self._unit_ns, whole=False)
        self.problem += self.slowest
        self._bits = [self._row_bits(room) for room in request.room.tolist()]
        self._x = [[self._sum(bits) for bits in row] for row in self._bits]
        self._place()
        self._order_equals()
        if most_servers < len(self._x):
            self._limit_servers(most_servers)
        for row, kind in enumerate(request.classes.tolist()):
            self._time(row, self._tables[kind])

    def matrix(self, answer: MipAnswer) -> Matrix:
        """Matrix of a solution."""
        values = answer.values
        counts = [[sum(round(values[bit.name]) for bit in bits) for bits in row] for row in self._bits]
        return np.array(counts, np.int64)

    def bound_ns(self, answer: MipAnswer) -> int:
        """Bound on the iteration time, lowered by what tolerances may hide; 0 where there is none."""
        if not math.isfinite(answer.bound):
            return 0
        slowest_ns = math.ceil(answer.bound * self._unit_ns - self.slack_ns)
        return total_ns(self._request.timing, self._possible(max(slowest_ns, 0)))

    def _possible(self, slowest_ns: int) -> int:
        """Least possible time from a bound on, where all times are multiples of some number."""
        unit = math.gcd(*(ns for costs in self._tables.values() for ns in _coefficients(costs)))
        return -(-slowest_ns // unit) * unit if unit else slowest_ns

    def _costs(self, kind: int) -> ColumnCosts:
        request = self._request
        server = request.rows[int(np.argmax(request.classes == kind))]
        costs = request.timing.costs(server)
        if costs is None:
            rule = "must give tables of its costs for a linear model; take another method"
            raise InvalidValueError("placement", "timing", type(request.timing).__name__, rule)
        check_horizon(costs)
        return costs

    def _variable(self, low: float, high: float, *, whole: bool) -> pulp.LpVariable:
        import pulp

        self._count += 1
        return self.problem.add_variable(f"v{self._count}", low, high, pulp.LpInteger if whole else pulp.LpContinuous)

    def _row_bits(self, room: int) -> list[list[pulp.LpVariable]]:
        request = self._request
        row = []
        for count, size in zip(request.counts, request.sizes.tolist(), strict=True):
            bits = [self._variable(0, 1, whole=True) for _ in range(min(count, room // size))]
            for bit, following in pairwise(bits):
                self.problem += bit >= following
            row.append(bits)
        return row

    def _place(self) -> None:
        request = self._request
        sizes = request.sizes.tolist()
        for stage, count in enumerate(request.counts):
            self.problem += self._sum(row[stage] for row in self._x) == count
        for row, room in zip(self._x, request.room.tolist(), strict=True):
            self.problem += self._sum(size * held for size, held in zip(sizes, row, strict=True)) <= room

    def _order_equals(self) -> None:
        kinds = list(zip(self._request.room.tolist(), self._request.classes.tolist(), strict=True))
        for row, (kind, following) in enumerate(pairwise(kinds)):
            if kind == following:
                self.problem += self._weighted(row) >= self._weighted(row + 1)

    def _weighted(self, row: int) -> Any:
        return self._sum((100 + stage * 7919 % 37) * held for stage, held in enumerate(self._x[row]))

    def _limit_servers(self, most_servers: int) -> None:
        used = []
        for row in self._bits:
            used.append(self._variable(0, 1, whole=True))
            for bits in row:
                if bits:
                    self.problem += bits[0] <= used[-1]
        self.problem += self._sum(used) <= most_servers

    def _time(self, row: int, costs: ColumnCosts) -> None:
        """The slowest time is at least that of a row."""
        unit = self._unit_ns
        if costs.kind is ColumnKind.EGRESS:
            self.problem += self.slowest >= self._sum(ns / unit * part for ns, part in self._egress(row, costs))
            return
        for stage, bits in enumerate(self._bits[row]):
            if bits:
                # Without a replica of the stage the right side is at most 0.
                most = _most_ns(costs, stage)
                time = self._sum(ns / unit * part for ns, part in self._stage(row, stage, costs))
                self.problem += self.slowest >= time - most / unit * (1 - bits[0])

    def _egress(self, row: int, costs: ColumnCosts) -> list[tuple[int, Any]]:
        x, counts = self._x[row], costs.counts
        terms = []
        for s, t, ns in costs.pairs:
            terms.append((ns, counts[t] * x[s] + counts[s] * x[t] - 2 * self._product(row, s, t)))
        for stage, ring in enumerate(costs.rings):
            bits = self._bits[row][stage]
            if ring and bits:
                terms.append((ring, bits[0] - self._whole(row, stage, costs)))
        return terms

    def _stage(self, row: int, stage: int, costs: ColumnCosts) -> list[tuple[int, Any]]:
        terms = [(ns, costs.counts[t] - self._x[row][t]) for t, ns in costs.remote[stage]]
        return [*terms, (costs.rings[stage], 1 - self._whole(row, stage, costs)), (costs.local[stage], 1)]

    def _whole(self, row: int, stage: int, costs: ColumnCosts) -> Any:
        """1 where the row holds all replicas of a stage, else 0."""
        bits = self._bits[row][stage]
        return bits[-1] if len(bits) == costs.counts[stage] else 0

    def _product(self, row: int, s: int, t: int) -> Any:
        """At most the product of two counts; the time falls with it, so that no more is needed."""
        bits, other = sorted((self._bits[row][s], self._bits[row][t]), key=len)
        most = len(other)
        products = []
        for bit in bits:
            products.append(self._variable(0, most, whole=False))
            self.problem += products[-1] <= most * bit
            self.problem += products[-1] <= self._sum(other)
        return self._sum(products)


def _coefficients(costs: ColumnCosts) -> list[int]:
    return [*(ns for *_, ns in costs.pairs), *costs.rings, *costs.local]


def _weight(costs: ColumnCosts) -> int:
    """Nanoseconds by which a row moves when all of its variables move by one."""
    counts = costs.counts
    return (
        sum(abs(ns) * (counts[s] + counts[t] + 2 * min(counts[s], counts[t])) for s, t, ns in costs.pairs)
        + sum(map(abs, costs.rings))
        + max(map(abs, costs.local))
    )


def _most_ns(costs: ColumnCosts, stage: int) -> int:
    """Upper bound on the time of a stage."""
    far = sum(max(ns, 0) * costs.counts[t] for t, ns in costs.remote[stage])
    return costs.local[stage] + far + max(costs.rings[stage], 0)
