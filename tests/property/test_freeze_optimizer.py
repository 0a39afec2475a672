"""The choice of a round: against all choices there are, within what prices prove, and loops against arrays."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from importlib.util import find_spec
from unittest import mock

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from frostline.freezing.optimizer import (
    UTILITIES,
    Candidate,
    JobScale,
    Menus,
    RoundRules,
    choice_problem,
    choose,
    menus_of,
    round_menu,
)
from frostline.freezing.optimizer import kernel as plain
from frostline.freezing.optimizer import prices as prices_module
from frostline.freezing.optimizer.core import core_of
from frostline.freezing.optimizer.dp import dp
from frostline.freezing.optimizer.frontier import frontier_of, hull_steps
from frostline.freezing.optimizer.jit import loops
from frostline.freezing.optimizer.knapsack import UNLIMITED, Knapsack, knapsack_of
from frostline.freezing.optimizer.price import one_price, one_price_arrays
from frostline.freezing.optimizer.prices import prices_of
from frostline.verify.choice import check_choice_certificate

UNIT = 2.0**-30
TYPES, TENANTS = ("a100", "h100"), ("vision", "language")


@dataclass(frozen=True)
class Case:
    """Menus, GPUs of each type, and the budget of each tenant that has one."""

    menus: Menus
    gpus: dict[str, int]
    budgets: dict[str, float]

    def choose(self, method: str, **options):
        return choose(self.menus, self.gpus, method=method, debt_budgets=self.budgets, **options)

    @property
    def knapsack(self) -> Knapsack:
        budgets = [int(self.budgets.get(tenant, UNLIMITED)) for tenant in self.menus.tenants]
        return knapsack_of(self.menus, list(self.gpus.values()), budgets)

    def optimum(self) -> int:
        """Largest value of all choices there are."""
        menus = self.menus
        options = [range(low, high) for low, high in itertools.pairwise(menus.first.tolist())]
        return max(int(menus.value[list(c)].sum()) for c in itertools.product(*options) if self.fits(c))

    def fits(self, options) -> bool:
        menus, listed = self.menus, list(options)
        types, debts = dict.fromkeys(range(len(TYPES)), 0), dict.fromkeys(range(len(TENANTS)), 0)
        for job, option in enumerate(listed):
            types[int(menus.gpu_type[option])] += int(menus.gpus[option])
            debts[int(menus.tenant[job])] += int(menus.debt[option])
        enough = all(types[kind] <= self.gpus[name] for kind, name in enumerate(menus.gpu_types))
        return enough and all(debts[i] <= self.budgets.get(name, 1e9) for i, name in enumerate(menus.tenants))


@st.composite
def cases(draw: st.DrawFn, *, rows: bool = True, max_jobs: int = 5) -> Case:
    """Small cases, most of them scarce; with one GPU type and no budget where there is to be one row."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    jobs = draw(st.sampled_from([*range(2, max_jobs + 1), *range(max_jobs + 1)]))
    types = int(rng.integers(1, 3)) if rows else 1
    first = np.append(0, np.cumsum(rng.integers(1, 7, jobs)))
    options, waits = int(first[-1]), first[:-1]
    gpus, debt = rng.integers(0, 5, options), rng.integers(0, 6, options) * rows
    gpus[waits] = debt[waits] = 0
    worth = draw(st.sampled_from([0, 5, 20])) * gpus + draw(st.sampled_from([0, 3])) * debt
    menus = Menus(
        first=first,
        gpus=gpus,
        value=worth + rng.integers(-8, draw(st.sampled_from([2, 40])), options),
        debt=debt,
        gpu_type=rng.integers(0, types, options),
        tenant=rng.integers(0, 2, jobs),
        gpu_types=TYPES[:types],
        tenants=TENANTS,
    )
    budgets = {name: int(rng.integers(jobs, 2 * jobs + 2)) for name in TENANTS if rows and rng.random() < 0.6}
    return Case(menus, {name: int(rng.integers(jobs // 2, 3 * jobs // types + 1)) for name in TYPES[:types]}, budgets)


@given(cases())
def test_prices_bound_every_choice_and_solvers_find_the_best(case: Case) -> None:
    optimum = case.optimum()
    price = case.choose("price")
    assert price.value <= optimum <= price.bound
    assert price.status.proved_optimal == (price.value == price.bound)
    for method in ("cpsat", "milp"):
        exact = case.choose(method)
        assert exact.value == exact.bound == optimum, method
        assert exact.status.proved_optimal


@given(cases(rows=False))
def test_a_table_is_exact_with_and_without_what_prices_rule_out(case: Case) -> None:
    optimum, knapsack = case.optimum(), case.knapsack
    assert knapsack.worth(dp(knapsack)) == optimum
    for method in ("dp", "auto"):
        choice = case.choose(method)
        assert choice.value == choice.bound == optimum


@given(cases(), st.sampled_from(["price", "auto"]))
def test_a_choice_keeps_all_rules_and_its_certificate_says_so(case: Case, method: str) -> None:
    choice = case.choose(method)
    assert choice.status.valid
    options = case.menus.first[:-1] + np.array(choice.selected, np.int64)
    assert case.fits(options.tolist())
    assert choice.value == int(case.menus.value[options].sum())
    gpus, budgets = case.knapsack.limits
    problem = choice_problem(case.menus, gpus, budgets)
    report = check_choice_certificate(choice.certificate, problem)
    assert report.valid, report.faults
    assert case.optimum() <= choice.certificate["bound"]


@given(cases(rows=False))
def test_half_of_what_can_be_gained_is(case: Case) -> None:
    knapsack = case.knapsack
    free = np.where(knapsack.weight() == 0, knapsack.value, -100)
    base = sum(free[low:high].max() for low, high in itertools.pairwise(knapsack.first.tolist()))
    assert 2 * (case.choose("price").value - base) >= case.optimum() - base


@given(cases(rows=False), st.integers(1, 6))
def test_more_gpus_are_never_worse(case: Case, more: int) -> None:
    larger = Case(case.menus, {name: count + more for name, count in case.gpus.items()}, {})
    assert larger.choose("dp").value >= case.choose("dp").value
    assert larger.choose("price").bound >= case.choose("price").bound


@given(cases(), st.sampled_from(["price", "auto", "cpsat"]))
def test_with_nothing_new_nothing_changes(case: Case, method: str) -> None:
    first = case.choose(method)
    again = case.choose(method, start=first.selected)
    assert again.selected == first.selected
    assert (again.value, again.bound) == (first.value, first.bound)
    assert case.choose(method) == first


@given(cases(), st.data())
def test_a_choice_is_never_worse_than_where_it_starts(case: Case, data: st.DataObject) -> None:
    sizes = np.diff(case.menus.first).tolist()
    start = [data.draw(st.integers(0, size - 1)) for size in sizes]
    choice = case.choose("price", start=start)
    options = case.menus.first[:-1] + np.array(start, np.int64)
    if case.fits(options.tolist()):
        assert choice.value >= int(case.menus.value[options].sum())
    assert choice.value >= case.choose("price").value


@given(cases(), st.lists(st.integers(0, 20), min_size=4, max_size=4), st.integers(1, 5))
def test_any_prices_bound_and_what_they_rule_out_is_in_no_better_choice(case, prices, denominator) -> None:
    knapsack, optimum = case.knapsack, case.optimum()
    dual = knapsack.dual(prices[: knapsack.coupled], denominator)
    assert dual.bound >= optimum
    value = case.choose("price").value
    core = core_of(knapsack, dual, value)
    kept = Case(case.menus, case.gpus, case.budgets)
    best = cpsat_value(core) if core.coupled > 1 else core.worth(dp(core))
    assert best == kept.optimum()


def cpsat_value(core: Knapsack) -> int:
    """Largest value of all choices of a knapsack."""
    options = [range(low, high) for low, high in itertools.pairwise(core.first.tolist())]
    choices = (np.array(choice, np.int64) for choice in itertools.product(*options))
    return max(core.worth(choice) for choice in choices if core.fits(choice))


# Compiled loops, plain loops and whole arrays.


@st.composite
def weighted(draw: st.DrawFn):
    """Menus of up to a hundred jobs with one weight, from a seed; many of equal weights and values."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    jobs, most, heaviest = draw(st.integers(0, 100)), draw(st.integers(1, 12)), draw(st.integers(1, 30))
    sizes = rng.integers(1, most + 1, jobs)
    first = np.append(0, np.cumsum(sizes))
    weight = rng.integers(0, heaviest + 1, first[-1])
    value = rng.integers(-5, draw(st.sampled_from([3, 40, 10**6])), first[-1])
    if draw(st.booleans()):
        value += weight * 4
    weight[first[:-1]] = 0
    capacity = int(draw(st.floats(0, 1.1)) * jobs * heaviest / 2)
    return first, np.repeat(np.arange(jobs), sizes), weight, value, capacity


@given(weighted())
def test_loops_and_arrays_choose_the_same(case) -> None:
    first, job, weight, value, capacity = case
    arrays = one_price_arrays(*case)
    chosen, price, denominator = plain.one_price(first, weight, value, capacity)
    assert arrays.chosen.tolist() == chosen.tolist()
    assert (arrays.price, arrays.denominator) == (price, denominator)
    head, kept = plain.frontier(first, weight, value)
    frontier = frontier_of(first, job, weight, value)
    assert frontier.first.tolist() == head.tolist()
    assert frontier.option.tolist() == kept.tolist()
    jobs, places = plain.hull(head, weight[kept], value[kept])
    assert hull_steps(frontier).to.tolist() == places[1:][jobs[1:] == jobs[:-1]].tolist()


@pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")
@given(weighted())
def test_compiled_loops_choose_the_same(case) -> None:
    first, _, weight, value, capacity = case
    fast = loops()
    assume(fast is not None)
    chosen, price, denominator = fast.one_price(first, weight, value, capacity)
    arrays = one_price(*case)
    assert arrays.chosen.tolist() == chosen.tolist()
    assert (arrays.price, arrays.denominator) == (price, denominator)


@given(weighted())
def test_the_hull_is_concave_and_above_all_options(case) -> None:
    first, job, weight, value, _ = case
    frontier = frontier_of(first, job, weight, value)
    steps = hull_steps(frontier)
    same = steps.job[1:] == steps.job[:-1]
    slopes = steps.value[:-1] * steps.weight[1:] > steps.value[1:] * steps.weight[:-1]
    assert slopes[same].all()
    for price in (0, 1, 7):
        score = value - price * weight
        corners = np.append(frontier.option[frontier.first[:-1]], frontier.option[steps.to])
        for number in range(len(first) - 1):
            best = score[first[number] : first[number + 1]].max()
            assert score[corners[job[corners] == number]].max() == best


# Several rows, larger.


@given(st.integers(0, 2**32 - 1), st.integers(2, 60), st.sampled_from([1, 2, 3]), st.floats(0.05, 0.9))
def test_prices_of_several_rows_keep_within_all(seed: int, jobs: int, types: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, jobs)
    first = np.append(0, np.cumsum(sizes))
    gpus, debt = rng.integers(0, 9, first[-1]), rng.integers(0, 100, first[-1])
    gpus[first[:-1]] = debt[first[:-1]] = 0
    menus = Menus(
        first=first,
        gpus=gpus,
        value=gpus * 10 + debt + rng.integers(0, 30, first[-1]),
        debt=debt,
        gpu_type=rng.integers(0, types, first[-1]),
        tenant=rng.integers(0, 3, jobs),
        gpu_types=tuple("abc"[:types]),
        tenants=tuple("xyz"),
    )
    limits = [int(share * jobs * 6 / types)] * types
    knapsack = knapsack_of(menus, limits, [int(share * jobs * 20), UNLIMITED, 0])
    assume(knapsack.coupled > 1)
    priced = prices_of(knapsack)
    assert knapsack.fits(priced.chosen)
    assert min(priced.prices) >= 0
    dual = knapsack.dual(priced.prices, priced.denominator)
    assert knapsack.worth(priced.chosen) <= dual.bound <= knapsack.dual([0] * knapsack.coupled, 1).bound
    with mock.patch.object(prices_module, "COMPILED_FROM", 0):
        assert prices_of(knapsack).chosen.tolist() == priced.chosen.tolist()


# Rounds.


@st.composite
def candidates(draw: st.DrawFn) -> list[Candidate]:
    drawn = draw(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 2)), min_size=1, max_size=6, unique=True))
    return [
        Candidate(gpus=gpus, level=level, progress_per_s=draw(st.integers(50, 400)), debt=draw(st.integers(0, 3)))
        for gpus, level in drawn
    ]


@given(
    st.lists(candidates(), min_size=1, max_size=6),
    st.integers(1, 10),
    st.integers(0, 6),
    st.sampled_from(sorted(UTILITIES)),
    st.sampled_from([31, 60, 600]),
)
def test_rounds_without_news_come_to_rest(jobs, gpus, budget, utility, round_s) -> None:
    """Each change raises the sum of utilities, so that no choice comes back."""
    rules = RoundRules(round_s=round_s)
    scales = [scale_of(job) for job in jobs]
    held: list[Candidate | None] = [None] * len(jobs)
    start, last, rest = [0] * len(jobs), -1, False
    for _ in range(40):
        menus = menus_of(
            [
                round_menu(job, scale, rules, held=now, utility=utility)
                for job, scale, now in zip(jobs, scales, held, strict=True)
            ],
            value_unit=UNIT,
        )
        choice = choose(menus, gpus, debt_budgets={"": budget}, start=start)
        if list(choice.selected) == start:
            rest = True
            break
        start = list(choice.selected)
        held = [job[number - 1] if number else None for job, number in zip(jobs, start, strict=True)]
        pairs = zip(held, scales, strict=True)
        utilities = (UTILITIES[utility](np.array([now.progress_per_s]), scale)[0] for now, scale in pairs if now)
        total = sum(round(each / UNIT) for each in utilities)
        assert total > last
        last = total
    assert rest


def scale_of(job: list[Candidate]) -> JobScale:
    least = min(candidate.progress_per_s for candidate in job)
    return JobScale(reference_per_s=100, least_per_s=least, remaining=1e4, fair_remaining_s=90)
