"""Distance of the choice of a round from its optimum, and its time, by method and number of jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple

import numpy as np

from frostline.freezing.optimizer import Menus, choose
from frostline.freezing.optimizer.answer import Answer
from frostline.freezing.optimizer.cpsat import cpsat
from frostline.freezing.optimizer.dp import dp
from frostline.freezing.optimizer.jit import loops
from frostline.freezing.optimizer.knapsack import UNLIMITED, Knapsack, knapsack_of
from frostline.freezing.optimizer.milp import milp
from frostline.freezing.optimizer.price import one_price_arrays

_GPUS = (1, 2, 4, 8)
_FROZEN = (0.0, 0.15, 0.3, 0.45, 0.6, 0.75)
_STEPS = 1e6
_LARGE = 10_000
_SOLVERS = ("highs", "cpsat")
_NO_BOUND = 1 << 60


@dataclass(frozen=True, kw_only=True)
class Round:
    """Menus of all jobs, the GPUs there are, and the debt budget, if there is one."""

    menus: Menus
    gpus: int
    budget: int = UNLIMITED

    @property
    def budgets(self) -> dict[str, float]:
        return {} if self.budget == UNLIMITED else {"": self.budget}

    def half_debt(self) -> Round:
        """The same with half of the debt that the best choice without a budget adds."""
        selected = np.array(choose(self.menus, self.gpus).selected)
        debt = int(self.menus.debt[self.menus.first[:-1] + selected].sum())
        return Round(menus=self.menus, gpus=self.gpus, budget=debt // 2)


class Found(NamedTuple):
    """Value and bound of a method, and its seconds."""

    value: int
    bound: int
    time_s: float


Method = Callable[[Round], tuple[int, int]]


def freeze_optimizer(quick: bool) -> None:
    """One row and two rows: gap to the optimum and to the certificate, how often it is proved, and times."""
    sizes = {10: 2, 100: 1} if quick else {10: 40, 100: 40, 1000: 10, _LARGE: 3}
    limit_s = 1.0 if quick else 20.0
    print("25 options per job: 1, 2, 4 or 8 GPUs at six freeze levels, or to wait; GPUs for half of full demand.")
    print(
        "Gaps in ppm: to the lowest bound of all methods, and to the method's own. price and auto are whole calls, auto"
    )
    print(
        f"with {limit_s / 4:g} s for two rows; the others solve the full model from everyone waiting, highs and cpsat"
    )
    print(f"for {limit_s:g} s at most. Times in ms.\n")
    for two_rows, title in (
        (False, "one row: GPUs"),
        (True, "two rows: GPUs, and half of the debt that they would add"),
    ):
        print(f"### {title}\n")
        print("| jobs | method | rounds | gap mean | max | own gap mean | max | proved % | ms median | max |")
        print("|---|---|---|---|---|---|---|---|---|---|")
        for jobs, count in sizes.items():
            drawn = list(rounds(jobs, count))
            _compare(
                jobs, [case.half_debt() for case in drawn] if two_rows else drawn, _methods(jobs, two_rows, limit_s)
            )
        print()
    _prices_alone(sizes)


def _methods(jobs: int, two_rows: bool, limit_s: float) -> dict[str, Method]:
    """Methods that are compared at a size: general solvers up to a thousand jobs."""
    methods = {"price": _facade("price", None), "auto": _facade("auto", limit_s / 4 if two_rows else None)}
    if jobs < _LARGE:
        methods |= {} if two_rows else {"dp": _table}
        methods |= {"highs": _solver(milp, limit_s), "cpsat": _solver(cpsat, limit_s)}
    return methods


def _facade(method: str, limit_s: float | None) -> Method:
    def run(case: Round) -> tuple[int, int]:
        choice = choose(case.menus, case.gpus, method=method, debt_budgets=case.budgets, time_limit_s=limit_s)
        return choice.value, choice.bound

    return run


def _table(case: Round) -> tuple[int, int]:
    knapsack = _knapsack(case)
    value = knapsack.worth(dp(knapsack))
    return value, value


def _solver(solve: Callable[[Knapsack, Answer, float], Answer], limit_s: float) -> Method:
    def run(case: Round) -> tuple[int, int]:
        knapsack = _knapsack(case)
        waiting = knapsack.waiting()
        start = Answer(chosen=waiting, value=knapsack.worth(waiting), bound=_NO_BOUND, source="", bound_source="")
        answer = solve(knapsack, start, perf_counter() + limit_s)
        return answer.value, answer.bound

    return run


def _knapsack(case: Round) -> Knapsack:
    return knapsack_of(case.menus, [case.gpus], [case.budget])


def _compare(jobs: int, drawn: list[Round], methods: dict[str, Method]) -> None:
    """Print the rows of the table for one size."""
    found: dict[str, list[Found]] = {}
    for name, method in methods.items():
        slow = name in _SOLVERS or (name == "auto" and drawn[0].budgets)
        few = drawn[:2] if jobs >= 1000 and slow else drawn
        method(few[0] if not slow else next(rounds(10, 1)).half_debt())  # loads solvers, compiles loops
        found[name] = [_timed(method, case) for case in few]
    bounds = [min(results[i].bound for results in found.values() if i < len(results)) for i in range(len(drawn))]
    for name, results in found.items():
        gaps = [1e6 * (1 - each.value / bound) for each, bound in zip(results, bounds, strict=False)]
        own = [1e6 * (1 - each.value / each.bound) for each in results]
        times_ms = [1000 * each.time_s for each in results]
        proved = 100 * np.mean([each.value == each.bound for each in results])
        print(
            f"| {jobs} | {name} | {len(results)} | {np.mean(gaps):.3g} | {max(gaps):.3g} | {np.mean(own):.3g} "
            f"| {max(own):.3g} | {proved:.0f} | {np.median(times_ms):.2f} | {max(times_ms):.2f} |",
            flush=True,
        )


def _timed(method: Method, case: Round) -> Found:
    """Answer of a method and its seconds, the fewest of three where that takes less than one."""
    times_s: list[float] = []
    while len(times_s) < 3 and sum(times_s) < 1.0:
        begin = perf_counter()
        value, bound = method(case)
        times_s.append(perf_counter() - begin)
    return Found(value, bound, min(times_s))


def _prices_alone(sizes: Iterable[int]) -> None:
    """Print how long hull, price and fill take over whole arrays and in compiled loops."""
    print("### hull, price and fill alone, ms\n\n| jobs | whole arrays | compiled loops |\n|---|---|---|")
    for jobs in sizes:
        arrays_ms, loops_ms = _price_ms(next(rounds(jobs, 1)))
        print(f"| {jobs} | {arrays_ms:.2f} | {loops_ms:.2f} |", flush=True)


def _price_ms(case: Round) -> tuple[float, float]:
    """Milliseconds over whole arrays, and in compiled loops; nan without numba."""
    knapsack, fast = _knapsack(case), loops()
    first, weight, value = knapsack.first, knapsack.weight(), knapsack.value
    arrays_ms = _fastest_ms(lambda: one_price_arrays(first, knapsack.job, weight, value, case.gpus))
    if fast is None:
        return arrays_ms, float("nan")
    return arrays_ms, _fastest_ms(lambda: fast.one_price(first, weight, value, case.gpus))


def _fastest_ms(call: Callable[[], object]) -> float:
    times_s = []
    for _ in range(5):
        begin = perf_counter()
        call()
        times_s.append(perf_counter() - begin)
    return 1000 * min(times_s)


def rounds(jobs: int, count: int) -> Iterator[Round]:
    """Rounds of elastic jobs; one depends on its number and not on those before it.

    The step time has the form of Pollux with the compute of the active share alone, and three tenths of the exchange
    that no freezing saves; levels slow the training down by a power of the frozen share, and those that cost a job more
    than it allows are out. Values are speeds over that of one GPU with nothing frozen, in millionths.
    """
    for number in range(count):
        rng = np.random.default_rng(np.random.SeedSequence([4242, jobs, number]))
        gpus, frozen = (grid.ravel() for grid in np.meshgrid(_GPUS, _FROZEN, indexing="ij"))
        fixed, by_level, per_sample = (
            rng.uniform(*span, (jobs, 1)) for span in ((5e-3, 0.03), (0.02, 0.2), (2e-3, 0.01))
        )
        backward, far, slope, near = (
            rng.uniform(*span, (jobs, 1)) for span in ((0.6, 2), (0.02, 0.3), (1e-3, 0.01), (0.1, 0.6))
        )
        gamma, batch = rng.uniform(1.2, 4, (jobs, 1)), 2.0 ** rng.integers(5, 8, (jobs, 1))
        active = 1 - frozen
        compute = fixed + by_level * active + batch / gpus * per_sample * (1 + backward * active)
        exchange = np.where(gpus > 4, far + slope * (gpus - 2), np.where(gpus > 1, far * near, 1e-9)) * (
            0.3 + 0.7 * active
        )
        debt = rng.beta(1.2, 3, (jobs, 1)) * frozen ** rng.uniform(1.2, 4, (jobs, 1))
        allowed = debt <= rng.choice([0.0, 0.02, 0.05, 0.1], (jobs, 1), p=[0.2, 0.3, 0.3, 0.2])
        speed = batch * (1 - debt) / (compute**gamma + exchange**gamma) ** (1 / gamma)
        value = np.where(allowed, np.rint(speed / speed[:, :1] * _STEPS), 0)
        wait = np.zeros((jobs, 1))
        menus = Menus(
            first=np.arange(jobs + 1) * (len(gpus) + 1),
            gpus=np.hstack([wait, np.where(allowed, gpus, 0)]).ravel(),
            value=np.hstack([wait, value]).ravel(),
            debt=np.hstack([wait, np.where(allowed, np.ceil(debt * _STEPS), 0)]).ravel(),
        )
        yield Round(menus=menus, gpus=jobs * max(_GPUS) // 4)
