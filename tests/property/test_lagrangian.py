"""Every bound by prices is below every schedule and the optimum; compiled and uncompiled loops agree; trees prove."""

from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frostline.certify import check_certificate
from frostline.policies import make_policy
from frostline.relaxation import BOUNDS, METHODS, bound_certificate, lower_bound
from frostline.relaxation.lagrangian import (
    PriceProblem,
    Prices,
    Windows,
    best_prices,
    certificate_of,
    evaluate,
    one_shot,
    price_problem,
    prove,
    whole_arrays,
)
from frostline.relaxation.lagrangian import kernel as plain
from frostline.relaxation.lagrangian.jit import loops
from frostline.relaxation.lagrangian.start import finer, mean_busy_prices
from frostline.relaxation.srpt import virtual_completions
from frostline.simulation import run
from frostline.testing import instances, schedules
from frostline.verify import check_bound

Rows = list[tuple[int, list[tuple[int, int, int]]]]


@st.composite
def rows(draw: st.DrawFn, gpus: int, most_jobs: int = 5, most_options: int = 1) -> Rows:
    """Release, and options of GPUs, duration and penalty."""
    width, length = st.integers(1, gpus), st.integers(1, 9)
    penalty = st.integers(0, 4) if most_options > 1 else st.just(0)
    options = st.lists(st.tuples(width, length, penalty), min_size=1, max_size=most_options)
    return draw(st.lists(st.tuples(st.integers(-3, 12), options), min_size=1, max_size=most_jobs))


@st.composite
def problems(draw: st.DrawFn, most_jobs: int = 5, most_options: int = 1, weighted: bool = False) -> PriceProblem:
    gpus = draw(st.integers(1, 6))
    drawn = draw(rows(gpus, most_jobs, most_options))
    weights = [draw(st.integers(1, 4)) if weighted else 1 for _ in drawn]
    return PriceProblem.of_rows(gpus, drawn, weights)


@st.composite
def priced(draw: st.DrawFn, problem: PriceProblem) -> Prices:
    """Any prices at any breakpoints, by GPU, by width or by option."""
    times = sorted(draw(st.sets(st.integers(-2, 40), min_size=2, max_size=8)))
    by = draw(st.sampled_from(["gpu", "width", "option"]))
    kinds = {"gpu": 1, "width": len(problem.kinds), "option": len(problem.width)}[by]
    row = st.lists(st.integers(0, 9), min_size=len(times) - 1, max_size=len(times) - 1)
    numerators = np.array([draw(row) for _ in range(kinds)])
    return Prices(np.array(times), numerators[0] if by == "gpu" else numerators, draw(st.integers(1, 4)), by)


def optimum(problem: PriceProblem) -> int:
    """Least weighted total: in some order with some options, each job as early as it fits."""
    first = problem.first.tolist()
    choices: list[list[int]] = [[]]
    for j in range(problem.jobs):
        choices = [[*chosen, option] for chosen in choices for option in range(first[j], first[j + 1])]
    return min(_placed(problem, order, chosen) for order in permutations(range(problem.jobs)) for chosen in choices)


def _placed(problem: PriceProblem, order: tuple[int, ...], chosen: list[int]) -> int:
    busy: list[tuple[int, int, int]] = []  # (start, end, GPUs)
    total = 0
    for job in order:
        option, release = chosen[job], int(problem.release[job])
        width, length = int(problem.width[option]), int(problem.duration[option])
        for start in sorted({release, *(end for _, end, _ in busy if end > release)}):
            marks = {start, *(b for b, _, _ in busy if start < b < start + length)}
            if all(sum(g for b, e, g in busy if b <= t < e) + width <= problem.gpus for t in marks):
                busy.append((start, start + length, width))
                total += int(problem.weight[job]) * (start + length) + int(problem.penalty[option])
                break
    return total


def least_by_trying(problem: PriceProblem, windows: Windows, prices: Prices) -> float:
    """What all jobs cost at least under prices of GPUs, from every start one after another."""
    horizon = int(max(prices.times[-1], windows.earliest.max())) + 1
    price = np.zeros(horizon + 60)
    for k, (begin, end) in enumerate(pairwise(prices.times.tolist())):
        price[begin:end] = prices.numerators[k] / prices.denominator
    total = 0.0
    for job in range(problem.jobs):
        costs = []
        for option in range(problem.first[job], problem.first[job + 1]):
            width, length, penalty = (int(c[option]) for c in (problem.width, problem.duration, problem.penalty))
            for start in range(int(windows.earliest[job]), min(int(windows.latest[job]), horizon) + 1):
                paid = width * price[start : start + length].sum()
                costs.append(int(problem.weight[job]) * (start + length) + penalty + paid)
        total += min(costs)
    return total


@given(st.data())
def test_any_prices_prove_a_bound(data: st.DataObject) -> None:
    problem = data.draw(problems(4, 2, weighted=True))
    prices = data.draw(priced(problem))
    found = evaluate(problem, Windows.of(problem), prices)
    assert found.bound <= optimum(problem)
    certificate = certificate_of(problem, found)
    assert check_certificate(certificate).bound_us == found.bound
    certificate["bound"] += 1
    assert "unproved" in [fault.kind for fault in check_certificate(certificate).faults]


@given(st.data())
def test_cheapest_starts_are_those_of_trying_all(data: st.DataObject) -> None:
    problem = data.draw(problems(3, 2, weighted=True))
    times = np.array(sorted(data.draw(st.sets(st.integers(0, 30), min_size=2, max_size=8))))
    numerators = np.array(data.draw(st.lists(st.integers(0, 9), min_size=len(times) - 1, max_size=len(times) - 1)))
    prices, windows = Prices(times, numerators, data.draw(st.integers(1, 4))), Windows.of(problem)
    for job in range(problem.jobs):
        if data.draw(st.booleans()):
            windows = windows.by(job, int(windows.earliest[job]) + data.draw(st.integers(0, 9)))
    found = evaluate(problem, windows, prices)
    charge = problem.reach * float((numerators * np.diff(times)).sum()) / prices.denominator
    origin = problem.origin * int(problem.weight.sum())
    assert float(found.value) == pytest.approx(least_by_trying(problem, windows, prices) - charge + origin)


@given(problems(most_options=2, weighted=True))
def test_every_kind_of_prices_is_below_the_optimum(problem: PriceProblem) -> None:
    best = optimum(problem)
    found = [best_prices(problem, prices=kind, iterations=60).best for kind in ("pool", "width", "job")]
    assert one_shot(problem).value <= found[0].value
    assert all(evaluation.bound <= best for evaluation in found)


@given(st.data())
def test_bounds_by_prices_are_below_every_schedule(data: st.DataObject) -> None:
    instance = data.draw(instances(localities=("any", "server", "fewest"), works=("fixed", "profiled", "training")))
    total_us = sum(data.draw(schedules(instance)).completion_us.values())
    assert all(lower_bound(instance, name).completion_us <= total_us for name in METHODS)


@given(instances(works=("fixed", "elastic")))
def test_elastic_bounds_are_below_rigid_ones_and_every_policy(instance) -> None:
    total_us = sum(run(instance, make_policy("asrpt")).completion_us.values())
    problem = price_problem(instance, elastic=True)
    if problem.jobs:
        bound = best_prices(problem, iterations=40).best.bound * problem.tick_us
        assert bound <= total_us
        certificate = certificate_of(problem, best_prices(problem, iterations=40).best)
        assert check_bound(instance, certificate).valid


@given(instances(pool=True, max_jobs=6), st.sampled_from(["pointwise", "one-shot", "lagrangian", "best"]))
def test_certificates_of_bounds_are_accepted(instance, method: str) -> None:
    bound = lower_bound(instance, method)
    if bound.jobs:
        report = check_bound(instance, bound_certificate(instance, bound))
        assert report.valid
        assert report.bound_us is not None
        assert bound.completion_us <= report.bound_us < bound.completion_us + price_problem(instance).tick_us


@given(instances(pool=True, max_jobs=8))
def test_prices_without_rounding_reach_mean_busy_times(instance) -> None:
    problem = price_problem(instance)
    if problem.jobs:
        ticks = np.arange(200)
        prices = Prices.rounded(problem, ticks, mean_busy_prices(problem, ticks))
        value = evaluate(problem, Windows.of(problem), prices).value * problem.tick_us
        horizon = int((problem.release - problem.origin).max() + problem.duration.sum())
        assert horizon >= 200 or value <= lower_bound(instance, "lagrangian").completion_us


@given(problems(most_jobs=4))
def test_tree_proves_the_optimum_and_nothing_above_it(problem: PriceProblem) -> None:
    best = optimum(problem)
    tree = prove(problem, best, most_nodes=400)
    assert tree.complete
    report = check_certificate(certificate_of(problem, tree))
    assert report.valid
    assert report.bound_us == best
    above = prove(problem, best + 1, most_nodes=20)
    assert not above.complete
    assert above.bound <= best


@given(problems(most_jobs=12, most_options=3, weighted=True), st.data())
def test_compiled_and_whole_array_loops_agree(problem: PriceProblem, data: st.DataObject) -> None:
    prices, windows = data.draw(priced(problem)), Windows.of(problem)
    problem = problem.by_option() if prices.by == "option" else problem
    for job in range(problem.jobs):
        if data.draw(st.booleans()):
            windows = windows.by(job, int(windows.earliest[job]) + data.draw(st.integers(0, 9)))
    price, paid = prices.columns(problem)
    columns = (problem.first, windows.earliest, windows.latest, problem.weight, problem.kind, problem.duration)
    rest = (problem.penalty, prices.times, price, paid, prices.denominator)
    expected = whole_arrays.cheapest_starts(*columns, *rest)
    start, option = expected[1:]
    shape = (len(problem.kinds), problem.kind[option], start, start + problem.duration[option], prices.times)
    held = whole_arrays.held_time(*shape)
    for run_ in [plain, *([loops()] if loops() else [])]:
        for one, two in zip(expected, run_.cheapest_starts(*columns, *rest), strict=True):
            np.testing.assert_array_equal(one, two)
        np.testing.assert_array_equal(held, run_.held_time(*shape))


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 9)), min_size=1, max_size=12), st.data())
def test_compiled_and_plain_machines_agree(jobs: list[tuple[int, int]], data: st.DataObject) -> None:
    jobs.sort()
    release, work = (np.array(column) for column in zip(*jobs, strict=True))
    assert plain.shortest_remaining(release, work).tolist() == virtual_completions(jobs, gpus=1)
    priority = np.array([data.draw(st.integers(1, 4)) / 3 for _ in jobs])
    pieces = plain.static_priority(release, work, priority)
    prices = plain.piece_prices(*pieces, 1.0 / work)
    assert sum((pieces[1] - pieces[0]).tolist()) == work.sum()
    if (run_ := loops()) is not None:
        assert run_.shortest_remaining(release, work).tolist() == virtual_completions(jobs, gpus=1)
        for one, two in zip(pieces, run_.static_priority(release, work, priority), strict=True):
            np.testing.assert_array_equal(one, two)
        for one, two in zip(prices, run_.piece_prices(*pieces, 1.0 / work), strict=True):
            np.testing.assert_array_equal(one, two)


@given(problems(most_jobs=6, weighted=True), st.data())
def test_finer_prices_prove_the_same(problem: PriceProblem, data: st.DataObject) -> None:
    times = np.array(sorted(data.draw(st.sets(st.integers(0, 60), min_size=2, max_size=8))))
    numerators = np.array(data.draw(st.lists(st.integers(0, 9), min_size=len(times) - 1, max_size=len(times) - 1)))
    prices, windows = Prices(times, numerators, 2), Windows.of(problem)
    assert evaluate(problem, windows, finer(prices)).value == evaluate(problem, windows, prices).value


def test_six_hundred_random_instances() -> None:
    """Every bound is at most the optimum, which brute force finds; prices of jobs come close to it."""
    rng = np.random.default_rng(20261130)
    ratios = []
    for _ in range(600):
        gpus, jobs = int(rng.integers(1, 7)), int(rng.integers(1, 6))
        drawn: Rows = [
            (int(rng.integers(0, 10)), [(int(rng.integers(1, gpus + 1)), int(rng.integers(1, 9)), 0)])
            for _ in range(jobs)
        ]
        problem = PriceProblem.of_rows(gpus, drawn)
        best = optimum(problem)
        bounds = [best_prices(problem, prices=kind, iterations=80).best for kind in ("pool", "job")]
        assert one_shot(problem).bound <= best
        assert all(bound.bound <= best for bound in bounds)
        ratios.append([float(bound.value / best) for bound in bounds])
    pool, job = np.mean(ratios, axis=0)
    assert pool >= 0.96
    assert job >= 0.99


def test_every_bound_is_tried() -> None:
    assert set(METHODS) == {*BOUNDS, "one-shot", "lagrangian", "best"}
