"""The facade: which option every job takes in a round, by any method."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from frostline.errors import InvalidValueError, TooLargeError, UnknownNameError
from frostline.freezing.optimizer.answer import Answer, believed, bounded
from frostline.freezing.optimizer.certificate import Evidence
from frostline.freezing.optimizer.core import core_of
from frostline.freezing.optimizer.cpsat import cpsat
from frostline.freezing.optimizer.dp import dp, table_cells
from frostline.freezing.optimizer.knapsack import UNLIMITED, Knapsack, knapsack_of
from frostline.freezing.optimizer.menus import Ints, Menu, Menus, grid_steps, menus_of
from frostline.freezing.optimizer.milp import milp
from frostline.freezing.optimizer.price import one_price
from frostline.freezing.optimizer.prices import prices_of
from frostline.freezing.optimizer.result import Choice
from frostline.placement.solvers import SolverUnavailableError
from frostline.status import Status
from frostline.units import as_finite, as_int

__all__ = ["AUTO_CELLS", "METHODS", "choose"]

AUTO_CELLS = 20_000_000
"""Largest table, in jobs times weights, that ``auto`` fills to make sure: some tenths of a second."""

_MODEL_S, _LOADING_S = 3e-5, 1.0
_MOST_BUDGET = 1 << 60
_MOST_GPUS = 1 << 40


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Search:
    """A knapsack, the prices known, and the limits of a search."""

    knapsack: Knapsack
    prices: tuple[int, ...]
    denominator: int
    deadline_s: float
    seed: int


def _dp(search: _Search, answer: Answer) -> Answer:
    return _with_table(search.knapsack, answer, dp(search.knapsack, search.deadline_s))


def _with_table(knapsack: Knapsack, answer: Answer, found: Ints | None) -> Answer:
    """Answer after an exact choice, which proves itself."""
    if found is None:
        return answer
    best = believed(knapsack, answer, found, "dp")
    return bounded(best, best.value, "dp")


def _auto(search: _Search, answer: Answer) -> Answer:
    """A table where that is small; with a deadline, solvers. All see only options that may still be in an optimum."""
    knapsack = search.knapsack
    core = core_of(knapsack, knapsack.dual(search.prices, search.denominator), answer.value)
    if knapsack.coupled == 1 and table_cells(core) <= AUTO_CELLS:
        found = dp(core, search.deadline_s)
        return _with_table(knapsack, answer, None if found is None else _back(knapsack, core, found))
    if math.isinf(search.deadline_s):
        return answer
    better = replace(answer, chosen=_back(core, knapsack, answer.chosen))
    for turn in _TURNS:
        if not better.proved and not better.interrupted:
            better = turn.taken(replace(search, knapsack=core), better)
    return replace(better, chosen=_back(knapsack, core, better.chosen))


@dataclass(frozen=True, slots=True)
class _Turn:
    """A solver, the module that it loads, and its share of the time that is left."""

    solver: Callable[[_Search, Answer], Answer]
    module: str
    share: float

    def taken(self, search: _Search, answer: Answer) -> Answer:
        """Answer after the turn; left out where loading the solver and writing the model would take all the time."""
        now_s = time.perf_counter()
        overhead_s = len(search.knapsack.value) * _MODEL_S + (0.0 if self.module in sys.modules else _LOADING_S)
        left_s = search.deadline_s - now_s
        if left_s <= overhead_s:
            return answer
        try:
            return self.solver(replace(search, deadline_s=now_s + self.share * left_s), answer)
        except KeyboardInterrupt:
            return replace(answer, interrupted=True)
        except (TooLargeError, SolverUnavailableError):
            return answer


def _back(knapsack: Knapsack, other: Knapsack, chosen: Ints) -> Ints:
    """A choice of one knapsack in another one over the same menus."""
    return np.searchsorted(knapsack.origin, other.origin[chosen]).astype(np.int64)


def _cpsat(search: _Search, answer: Answer) -> Answer:
    return cpsat(search.knapsack, answer, search.deadline_s, search.seed)


def _milp(solver: str) -> Callable[[_Search, Answer], Answer]:
    return lambda search, answer: milp(search.knapsack, answer, search.deadline_s, solver)


_TURNS = (_Turn(_milp(""), "pulp", 0.5), _Turn(_cpsat, "ortools.sat.python.cp_model", 1.0))

METHODS: dict[str, Callable[[_Search, Answer], Answer]] = {
    "auto": _auto,
    "price": lambda _search, answer: answer,
    "dp": _dp,
    "cpsat": _cpsat,
    "milp": _milp(""),
    "milp-highs": _milp("highs"),
    "milp-cbc": _milp("cbc"),
}
"""What is done after the choice by prices, by name."""


def choose(
    menus: Menus | Iterable[Menu],
    gpus: int | Mapping[str, int],
    *,
    method: str = "auto",
    debt_budgets: Mapping[str, float] | None = None,
    start: Sequence[int] | None = None,
    seed: int = 0,
    time_limit_s: float | None = None,
) -> Choice:
    """One option for every job, as valuable as possible together, within the GPUs and the debt budgets.

    Every method begins with prices (``"price"``): hull, one price and fill for one row, a price each for several ones.
    An exact method runs where prices leave a doubt, and only ever improves that choice or proves it. Ties go to the
    choice it started from: ``start``, where that is as good as the one by prices, so that a round in which nothing is
    new changes nothing. Without a time limit no answer depends on a clock, but for those of ``"milp"`` after a minute.
    Ctrl-C ends an exact method, and the best choice so far is given back.

    Parameters
    ----------
    menus : Menus or iterable of Menu
        Options of the jobs in order of arrival.
    gpus : int or mapping of str to int
        GPUs on offer, by type where there are several.
    method : str
        ``"auto"``: prices; where they leave a doubt, exact methods over the options that may still be in an optimum,
        namely dynamic programming if one row couples the jobs and the table is small, else, if there is a time limit,
        a linear solver and then CP-SAT.
        ``"price"``, ``"dp"`` (one row), ``"cpsat"``, ``"milp"``, ``"milp-highs"`` or ``"milp-cbc"``: that method
        on all options.
    debt_budgets : mapping of str to float, optional
        Most debt that the jobs of a tenant may add together; tenants that are not named may add any.
    start : sequence of int, optional
        A choice to keep unless there is a better one, such as that of the last round; left out where it does not fit.
    seed : int
        Seed of CP-SAT.
    time_limit_s : float, optional
        Most seconds of an exact method.

    Raises
    ------
    InvalidValueError
        Bad limits, or a method that is not made for several rows.
    UnknownNameError
        No such method, or a GPU type without a number of GPUs.
    TooLargeError
        More jobs or GPUs than an exact method takes.
    SolverUnavailableError
        ``"milp"`` without a solver.

    Examples
    --------
    >>> from frostline.freezing.optimizer.menus import Option
    >>> job = Menu(options=[Option(gpus=1, value=1.0), Option(gpus=2, value=1.8), Option(gpus=4, value=2.6)])
    >>> choice = choose([job, job, job], 6)
    >>> choice.selected, choice.gpus_used, choice.status.proved_optimal
    ((2, 2, 2), (6,), True)
    """
    started_s = time.perf_counter()
    if method not in METHODS:
        raise UnknownNameError("choice method", str(method), METHODS)
    limit_s = math.inf if time_limit_s is None else as_finite(time_limit_s, "choice", "time_limit_s", 0.0)
    arrays = menus if isinstance(menus, Menus) else menus_of(menus)
    knapsack = knapsack_of(arrays, _gpus(arrays, gpus), _budgets(arrays, debt_budgets or {}))
    if method == "dp" and knapsack.coupled > 1:
        rule = f"needs at most one row that couples the jobs; there are {knapsack.coupled}: take cpsat or milp"
        raise InvalidValueError("choice", "method", method, rule)
    kept = _start(arrays, start)
    search, answer = _priced(knapsack, started_s + limit_s, as_int(seed, "choice", "seed", 0))
    answer = _kept(knapsack, answer, kept)
    if not answer.proved:
        with suppress(KeyboardInterrupt):
            answer = METHODS[method](search, answer)
    return _choice(search, answer, method, started_s)


def _priced(knapsack: Knapsack, deadline_s: float, seed: int) -> tuple[_Search, Answer]:
    """Choice and bound by prices."""
    prices: tuple[int, ...]
    if knapsack.coupled <= 1:
        capacity = int(knapsack.capacity[0])
        chosen, price, denominator = one_price(
            knapsack.first, knapsack.job, knapsack.weight(), knapsack.value, capacity
        )
        prices = (price,) * knapsack.coupled
    else:
        chosen, prices, denominator = prices_of(knapsack, deadline_s)
    value, bound = knapsack.worth(chosen), knapsack.dual(prices, denominator).bound
    search = _Search(knapsack=knapsack, prices=prices, denominator=denominator, deadline_s=deadline_s, seed=seed)
    return search, Answer(chosen=chosen, value=value, bound=bound, source="price", bound_source="price")


def _kept(knapsack: Knapsack, answer: Answer, start: Sequence[int] | None) -> Answer:
    """The choice to start from, where it fits and is worth as much."""
    chosen = None if start is None else knapsack.chosen(start)
    if chosen is None or not knapsack.fits(chosen) or knapsack.worth(chosen) < answer.value:
        return answer
    return replace(answer, chosen=chosen, value=knapsack.worth(chosen), source="start")


def _gpus(menus: Menus, gpus: int | Mapping[str, int]) -> list[int]:
    if isinstance(gpus, Mapping):
        for name in menus.gpu_types:
            if name not in gpus:
                raise UnknownNameError("GPU type of an option", name, gpus)
        counts = [gpus[name] for name in menus.gpu_types]
    elif len(menus.gpu_types) == 1:
        counts = [gpus]
    else:
        raise InvalidValueError("choice", "gpus", gpus, f"must name each GPU type: {', '.join(menus.gpu_types)}")
    found = [as_int(count, "choice", "gpus", 0) for count in counts]
    if max(found) > _MOST_GPUS:
        raise InvalidValueError("choice", "gpus", max(found), f"must be at most {_MOST_GPUS}")
    return found


def _budgets(menus: Menus, budgets: Mapping[str, float]) -> list[int]:
    """Budgets in steps of debt, rounded down."""
    if not isinstance(budgets, Mapping):
        raise InvalidValueError("choice", "debt_budgets", budgets, "must be a mapping of tenants to budgets")
    steps = dict.fromkeys(menus.tenants, UNLIMITED)
    for tenant, budget in budgets.items():
        debt = as_finite(budget, f"tenant {tenant!r}", "debt_budget", 0.0)
        if tenant in steps:
            steps[tenant] = min(grid_steps(debt, menus.debt_unit, up=False), _MOST_BUDGET)
    return list(steps.values())


def _start(menus: Menus, start: Sequence[int] | None) -> list[int] | None:
    if start is None:
        return None
    numbers = [as_int(number, f"job {job}", "start", 0) for job, number in enumerate(start)]
    if len(numbers) != menus.jobs:
        raise InvalidValueError("choice", "start", numbers, f"must have one entry for each of {menus.jobs} jobs")
    for job, (number, options) in enumerate(zip(numbers, np.diff(menus.first).tolist(), strict=True)):
        if number >= options:
            raise InvalidValueError(f"job {job}", "start", number, f"must be below its {options} options")
    return numbers


def _choice(search: _Search, answer: Answer, method: str, started_s: float) -> Choice:
    knapsack, chosen = search.knapsack, answer.chosen
    menus, selected = knapsack.menus, knapsack.selected(chosen)
    options = menus.first[:-1] + np.array(selected, np.int64)
    used = np.zeros(len(menus.gpu_types), np.int64)
    np.add.at(used, menus.gpu_type[options], menus.gpus[options])
    return Choice(
        selected=selected,
        value=answer.value,
        bound=answer.bound,
        value_unit=menus.value_unit,
        gpus_used=tuple(used.tolist()),
        status=Status(
            valid=knapsack.fits(chosen),
            proved_optimal=answer.proved,
            source=answer.source,
            bound=answer.bound_source,
        ),
        method=method,
        runtime_s=time.perf_counter() - started_s,
        evidence=Evidence(knapsack, chosen, search.prices, search.denominator),
    )
