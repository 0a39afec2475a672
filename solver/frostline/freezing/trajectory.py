"""The levels a job should freeze over the rest of its training: an exact shortest path under a debt budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from frostline.errors import InvalidValueError
from frostline.freezing.penalty import FrozenPhase, phases_of
from frostline.freezing.progress import FreezeState, FreezeTerms, worth_changing
from frostline.units import as_finite, as_int

__all__ = ["FreezeDecision", "Trajectory", "choose_level", "freeze_trajectory", "plan_trajectory"]

Array = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]

_UNITS_PER_POINT = 10**12  # debts are whole numbers of these, rounded up, so that no sum exceeds the budget
_MAX_BUDGET_POINTS = 1e6
_NEVER = np.iinfo(np.int64).max // 4
_MOST_LABELS = (256, 20_000)  # states per phase that are tried first, and at last
_TOLERANCE = 1e-9  # relative slack of the bound that discards paths; the paths themselves are compared exactly


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """Fastest levels under a debt budget.

    Parameters
    ----------
    levels : tuple of int
        Level of each phase.
    boundaries : tuple of float
        Progress at which the phases start, and the end.
    time_s : float
        Time of all phases and changes.
    bound_s : float
        No levels within the budget take less time than this; the time itself where it is proved to be least.
    debt_points : float
        Debt of all phases, at most the budget.
    changes : int
        Changes of level, that from the initial level included.
    """

    levels: tuple[int, ...]
    boundaries: tuple[float, ...]
    time_s: float
    bound_s: float
    debt_points: float
    changes: int

    @property
    def optimal(self) -> bool:
        """Whether the time is proved to be least."""
        return self.bound_s == self.time_s

    def history(self, shares: Sequence[float]) -> tuple[FrozenPhase, ...]:
        """Phases (start, end, share), given the frozen share at each level."""
        return phases_of(self.levels, shares, self.boundaries)


def plan_trajectory(
    times_s: npt.ArrayLike,
    debts_points: npt.ArrayLike,
    budget_points: float,
    *,
    change_cost_s: float = 0.0,
    initial_level: int = 0,
    boundaries: Sequence[float] | None = None,
) -> Trajectory:
    """Levels that minimise time plus the cost of changes, with a debt of at most the budget.

    An exact dynamic program over phases, whose states are the level and the debt so far. Only undominated states are
    kept, and of those only such as a Lagrangian bound on what is still to come allows to be optimal (Handler and Zang
    1980; Dumitrescu and Boland 2003). Debts are rounded up to 10^-12 points, so the budget is never exceeded. Of equal
    times the less indebted wins, then the one with fewer changes.

    If phases take equal times and a debt is a product of a factor that rises with the level and one that falls with
    progress, then an optimum from level 0 never lowers the level; it is the one returned.

    Parameters
    ----------
    times_s : array of (phases, levels), or of (levels,) for equal phases
        Time of each phase at each level, at least 0.
    debts_points : array of (phases, levels)
        Debt of each phase at each level, at least 0; 0 at level 0. Infinite where a level is not allowed.
    budget_points : float
        Debt allowed, at least 0.
    change_cost_s : float, default 0
        Time of one change of level.
    initial_level : int, default 0
        Level before the first phase.
    boundaries : sequence of float, optional
        Progress at which the phases start, and the end; by default equal phases.

    Raises
    ------
    InvalidValueError
        Shapes do not agree, or a value lies outside its bounds.

    Examples
    --------
    >>> debts = [[0, 4], [0, 2], [0, 1]]
    >>> plan_trajectory([10, 6], debts, 3).levels, plan_trajectory([10, 6], debts, 3, change_cost_s=9).levels
    ((0, 1, 1), (0, 0, 0))
    """
    debts = _debts(debts_points)
    times = _times(times_s, debts.shape)
    budget = as_finite(budget_points, "trajectory", "budget_points", 0.0, _MAX_BUDGET_POINTS)
    cost = as_finite(change_cost_s, "trajectory", "change_cost_s", 0.0)
    initial = as_int(initial_level, "trajectory", "initial_level", 0)
    if initial >= debts.shape[1]:
        raise InvalidValueError("trajectory", "initial_level", initial_level, f"must be at most {debts.shape[1] - 1}")
    count = len(debts)
    edges = tuple(i / count for i in range(count + 1)) if boundaries is None else tuple(boundaries)
    if len(edges) != count + 1:
        raise InvalidValueError("trajectory", "boundaries", edges, f"must be {count + 1} for {count} phases")
    search = _Search(times, debts, _budget(budget), cost, initial)
    return search.result(edges)


def _debts(debts_points: npt.ArrayLike) -> Array:
    try:
        debts = np.array(debts_points, float)
    except (TypeError, ValueError):
        raise InvalidValueError("trajectory", "debts_points", debts_points, "must be a table of numbers") from None
    if debts.ndim != 2 or 0 in debts.shape:
        raise InvalidValueError("trajectory", "debts_points", debts.shape, "must be phases by levels, one at least")
    if not (debts >= 0).all():
        raise InvalidValueError("trajectory", "debts_points", float(np.min(debts)), "must be at least 0")
    if debts[:, 0].any():
        raise InvalidValueError("trajectory", "debts_points", float(debts[:, 0].max()), "must be 0 at level 0")
    return debts


def _times(times_s: npt.ArrayLike, shape: tuple[int, ...]) -> Array:
    try:
        times = np.array(times_s, float)
    except (TypeError, ValueError):
        raise InvalidValueError("trajectory", "times_s", times_s, "must be a table of numbers") from None
    if times.shape not in (shape, shape[1:]):
        raise InvalidValueError("trajectory", "times_s", times.shape, f"must have the shape {shape} of the debts")
    if not (np.isfinite(times) & (times >= 0)).all():
        raise InvalidValueError("trajectory", "times_s", times.tolist(), "must be finite and at least 0")
    return np.broadcast_to(times, shape)


def _budget(points: float) -> int:
    """Budget in whole units, rounded down, but for the last bits of the product."""
    scaled = min(points, _MAX_BUDGET_POINTS) * _UNITS_PER_POINT
    nearest = round(scaled)
    return nearest if abs(scaled - nearest) <= 4 * math.ulp(scaled) else math.floor(scaled)


def _whole_units(debts: Array) -> Whole:
    """Debts in whole units, rounded up, but for the last bits of the product; too large ones never fit."""
    scaled = debts * _UNITS_PER_POINT
    allowed = scaled < _MAX_BUDGET_POINTS * _UNITS_PER_POINT
    scaled = np.where(allowed, scaled, 0.0)
    nearest = np.rint(scaled)
    rounded = np.where(np.abs(scaled - nearest) <= 4 * np.spacing(scaled), nearest, np.ceil(scaled))
    return np.where(allowed, rounded, _NEVER).astype(np.int64)


@dataclass(slots=True)
class _Labels:
    """Undominated states after a phase: debt, time, changes, level, and the state each came from."""

    debt: Whole
    time: Array
    changes: Whole
    level: Whole
    parent: Whole

    def take(self, kept: Whole) -> _Labels:
        """Some of the states."""
        return _Labels(self.debt[kept], self.time[kept], self.changes[kept], self.level[kept], self.parent[kept])


class _Search:
    """One instance of the problem; debts and the budget are whole numbers."""

    def __init__(self, times: Array, debts: Array, budget: int, cost: float, initial: int) -> None:
        self.times, self.debts = times, _whole_units(debts)
        self.budget, self.cost, self.initial = budget, cost, initial
        self.phases, self.levels = times.shape
        self.weights = np.where(self.debts >= _NEVER, np.inf, self.debts.astype(float))

    def best(self) -> tuple[list[int], float | None]:
        """Levels of the best path found, and a lower bound on the time of any; None where it is the best."""
        price, path = self._dual()
        togo = self._to_go(price)
        for most in _MOST_LABELS:
            best, whole = self._search(price, togo, self._time(path), most)
            path = min((best, path), key=self._time) if best else path
            if whole:
                return path, None
        return path, float(togo[0, self.initial]) - price * self.budget

    def _search(self, price: float, togo: Array, limit: float, most: int) -> tuple[list[int], bool]:
        """Best path of at most that time, none if all were lost, and whether so many states were enough for all."""
        start = np.zeros(1, np.int64)
        labels, whole = _Labels(start, np.zeros(1), start, np.full(1, self.initial), np.full(1, -1)), True
        trail = []
        for phase in range(self.phases):
            labels, bound = self._step(phase, labels, togo[phase + 1], price, limit * (1 + _TOLERANCE))
            if len(bound) > most:
                labels, whole = labels.take(np.argsort(bound, kind="stable")[:most]), False
            trail.append(labels)
        if not len(labels.time):
            return [], whole
        choice = np.lexsort((labels.changes, labels.debt, labels.time))[0]
        return _walk(trail, int(choice)), whole

    def _dual(self) -> tuple[float, list[int]]:
        """Price of debt that maximises the Lagrangian bound, and a feasible path; no price where none is needed."""
        over = self._cheapest(0.0)
        if self._debt(over) <= self.budget:
            return 0.0, over
        under = [0] * self.phases
        for _ in range(64):
            fall = float(self._debt(over) - self._debt(under))
            price = (self._time(under) - self._time(over)) / fall
            middle = self._cheapest(price)
            value = self._time(middle) + price * self._debt(middle)
            if value >= (self._time(under) + price * self._debt(under)) * (1 - 1e-12):
                return price, under
            if self._debt(middle) <= self.budget:
                under = middle
            else:
                over = middle
        return price, under

    def _to_go(self, price: float) -> Array:
        """Least time plus priced debt from the start of each phase (row) on, by the level before it."""
        togo = np.zeros((self.phases + 1, self.levels))
        priced = self.times + _priced(price, self.weights)
        for phase in range(self.phases - 1, -1, -1):
            ahead = priced[phase] + togo[phase + 1]
            togo[phase] = np.minimum(ahead, ahead.min() + self.cost)
        return togo

    def _cheapest(self, price: float) -> list[int]:
        """Path of least time plus priced debt; of equals it stays, else takes the lowest level."""
        togo, priced = self._to_go(price), self.times + _priced(price, self.weights)
        level, path = self.initial, []
        for phase in range(self.phases):
            ahead = priced[phase] + togo[phase + 1]
            other = int(ahead.argmin())
            level = level if ahead[level] <= ahead[other] + self.cost else other
            path.append(level)
        return path

    def result(self, edges: tuple[float, ...]) -> Trajectory:
        """Best path, with its figures."""
        path, bound = self.best()
        return self.figures(self.rising(path), edges, bound)

    def figures(self, path: Sequence[int], edges: tuple[float, ...], bound: float | None) -> Trajectory:
        """A path with its figures."""
        changes = sum(later != earlier for earlier, later in zip((self.initial, *path), path, strict=False))
        spans = [float(self.times[phase, level]) for phase, level in enumerate(path)]
        total = math.fsum([*spans, *[self.cost] * changes])
        return Trajectory(
            levels=tuple(path),
            boundaries=edges,
            time_s=total,
            bound_s=total if bound is None else min(bound, total),
            debt_points=self._debt(path) / _UNITS_PER_POINT,
            changes=changes,
        )

    def _time(self, path: Sequence[int]) -> float:
        total, before = 0.0, self.initial
        for phase, level in enumerate(path):
            total += float(self.times[phase, level]) + (self.cost if level != before else 0.0)
            before = level
        return total

    def allows(self, path: Sequence[int]) -> bool:
        """Whether a path keeps to the budget."""
        return self._debt(path) <= self.budget

    def _debt(self, path: Sequence[int]) -> int:
        return sum(int(self.debts[phase, level]) for phase, level in enumerate(path))

    def _step(self, phase: int, labels: _Labels, togo: Array, price: float, limit: float) -> tuple[_Labels, Array]:
        """States after one more phase, and a lower bound on the time of any path through each."""
        every = np.arange(self.levels)
        moves = (labels.level[:, None] != every).astype(np.int64)
        debt = labels.debt[:, None] + self.debts[phase]
        time = labels.time[:, None] + (self.times[phase] + self.cost * moves)
        bound = time + togo + price * (debt - float(self.budget))
        fit = (debt <= self.budget) & (bound <= limit)
        parent, level = np.nonzero(fit)
        grown = _Labels(debt[fit], time[fit], labels.changes[parent] + moves[fit], level, parent)
        kept = _undominated(grown, self.cost)
        return grown.take(kept), bound[fit][kept]

    def rising(self, path: list[int]) -> list[int]:
        """The path with its levels in rising order where that is as good: of equals the one that never unfreezes."""
        rising = sorted(path)
        return rising if self.allows(rising) and self._time(rising) <= self._time(path) * (1 + 1e-14) else path


def _priced(price: float, weights: Array) -> Array:
    """Priced debts; what is not allowed stays so at price 0."""
    return np.where(np.isinf(weights), np.inf, price * np.where(np.isinf(weights), 0.0, weights))


def _undominated(labels: _Labels, cost: float) -> Whole:
    """Positions of the states that none beats in debt and in time, even after one more change of level."""
    group = labels.level if cost else np.zeros_like(labels.level)
    order = np.lexsort((labels.changes, labels.time, labels.debt, group))
    rank = np.unique(labels.time, return_inverse=True)[1][order]
    key = rank - group[order] * (len(rank) + 1)  # a later group starts below every earlier one
    least = np.minimum.accumulate(key)
    first = np.ones(len(order), bool)
    first[1:] = key[1:] < least[:-1]
    kept = np.asarray(order[first], np.int64)
    if not cost:
        return kept
    kept = kept[np.argsort(labels.debt[kept], kind="stable")]
    time = labels.time[kept]
    return kept[time <= np.minimum.accumulate(time) + cost]


def _walk(trail: Sequence[_Labels], choice: int) -> list[int]:
    path = []
    for labels in reversed(trail):
        path.append(int(labels.level[choice]))
        choice = int(labels.parent[choice])
    return path[::-1]


def freeze_trajectory(terms: FreezeTerms, state: FreezeState, times_s: Sequence[float]) -> Trajectory:
    """Fastest levels for the rest of a job's training, within what is left of its budget.

    Parameters
    ----------
    terms : FreezeTerms
        What the job allows.
    state : FreezeState
        Where it is.
    times_s : sequence of float
        Time of the whole training at each level, on the job's present placement: steps times step time.

    Raises
    ------
    InvalidValueError
        Not one time per level, or a time that is negative or not finite.

    Examples
    --------
    >>> from frostline.freezing.penalty import DebtLaw
    >>> law = DebtLaw(a=2, A=40, c=8, B_0=1)
    >>> terms = FreezeTerms(shares=[0, 0.5, 1], law=law, quality_budget_points=1, phases=8)
    >>> freeze_trajectory(terms, FreezeState(), [1000, 700, 400]).levels
    (0, 0, 0, 0, 1, 2, 2, 2, 2)
    """
    search, edges = _search(terms, state, times_s)
    return search.result(edges)


def _search(terms: FreezeTerms, state: FreezeState, times_s: Sequence[float]) -> tuple[_Search, tuple[float, ...]]:
    """The problem that a state of a job poses, and the boundaries of its phases."""
    times = np.array([as_finite(time, "trajectory", "times_s", 0.0) for time in times_s])
    if len(times) != len(terms.shares):
        raise InvalidValueError("trajectory", "times_s", list(times_s), f"must be {len(terms.shares)}, one a level")
    edges = terms.boundaries(state.progress)
    debts = terms.debts_points(edges, state)
    debts[[not terms.may_freeze(edge) for edge in edges[:-1]], 1:] = np.inf
    spans = np.multiply.outer(_lengths(edges, terms), times / np.array(terms.rates))
    budget = _budget(state.remaining_points(terms))
    return _Search(spans, debts, budget, terms.change_cost_s, terms.level(state.level)), edges


def _lengths(edges: Sequence[float], terms: FreezeTerms) -> Array:
    """Lengths of the phases; all whole ones have the very same, so that equal levels take equal times."""
    whole = (1.0 - terms.law.warm_up) / terms.phases
    lengths = np.diff(np.array(edges))
    return np.where(np.abs(lengths - whole) <= 1e-12, whole, lengths)


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezeDecision:
    """Level to train at next.

    Parameters
    ----------
    level : int
        The level.
    until : float
        Progress up to which the decision holds if nothing new becomes known.
    plan : Trajectory
        The plan it belongs to.
    """

    level: int
    until: float
    plan: Trajectory


def choose_level(terms: FreezeTerms, state: FreezeState, times_s: Sequence[float]) -> FreezeDecision:
    """Level to train at next: that of the fastest plan, if it is worth a change; else the present one.

    The best plan is followed if staying for good would exceed the budget, or if it saves more than the changes cost and
    more than the hysteresis asks for. Asked again after the change, with nothing new, the answer is the same level.

    Parameters
    ----------
    terms, state, times_s
        As for :func:`freeze_trajectory`.

    Examples
    --------
    A change costs 20 s and saves 0.5 s an iteration of 1.5 s; with 30 iterations left it does not pay, with 50 it does.

    >>> from frostline.freezing.penalty import DebtLaw
    >>> law = DebtLaw(a=1, A=0, c=1, B_0=0)
    >>> terms = FreezeTerms(shares=[0, 1], law=law, quality_budget_points=1, phases=1, change_cost_s=20)
    >>> times = [100 * 1.5, 100 * 1.0]
    >>> [choose_level(terms, FreezeState(progress=1 - left / 100), times).level for left in (30, 50)]
    [0, 1]
    """
    search, edges = _search(terms, state, times_s)
    plan = search.result(edges)
    if search.allows([state.level] * len(plan.levels)):
        stay = search.figures([state.level] * len(plan.levels), edges, plan.bound_s)
        costs = plan.changes * terms.change_cost_s
        if not worth_changing(stay.time_s - plan.time_s + costs, costs, stay.time_s, terms.hysteresis):
            plan = stay
    return FreezeDecision(level=plan.levels[0], until=edges[1], plan=plan)
