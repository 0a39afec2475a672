"""The choice of a round: by hand, against each other at larger sizes, on bad input, and what solvers may claim."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.freezing.optimizer import (
    METHODS,
    UTILITIES,
    Candidate,
    JobScale,
    Menu,
    Menus,
    Option,
    RoundRules,
    TooLargeError,
    choice_problem,
    choose,
    jit,
    kernel,
    menus_of,
    round_menu,
    round_values,
    sia_utility,
)
from frostline.freezing.optimizer import cpsat as cpsat_module
from frostline.freezing.optimizer import milp as milp_module
from frostline.freezing.optimizer.answer import Answer, bounded
from frostline.freezing.optimizer.core import core_of
from frostline.freezing.optimizer.cpsat import cpsat
from frostline.freezing.optimizer.dp import dp, table_cells
from frostline.freezing.optimizer.knapsack import knapsack_of
from frostline.freezing.optimizer.menus import grid_steps
from frostline.freezing.optimizer.milp import milp
from frostline.placement.solvers import SOLVERS, MipAnswer, Outcome
from frostline.verify.choice import ChoiceFaultKind, check_choice_certificate

ONE_ROW = [name for name in METHODS if name != "price"]
SOLVER_METHODS = ("cpsat", "milp-highs", "milp-cbc")


def elastic(jobs: int, seed: int, *, most: int = 10**6) -> tuple[Menus, int]:
    """Jobs of 1, 2, 4 or 8 GPUs at six levels, whose speed falls short of their GPUs; GPUs for half of all."""
    rng = np.random.default_rng(np.random.SeedSequence([20, seed, jobs]))
    gpus, active = (grid.ravel() for grid in np.meshgrid([1, 2, 4, 8], 1 - np.arange(6) * 0.15, indexing="ij"))
    fixed, part, power = rng.uniform(0.02, 0.2, (3, jobs, 1))
    step = fixed + (0.3 + active * (1 + part)) / gpus + np.where(gpus > 1, 0.3 + power, 0.01) * (0.3 + 0.7 * active)
    harm = rng.beta(1.2, 3, (jobs, 1)) * (1 - active) ** rng.uniform(1.2, 4, (jobs, 1))
    speed = (1 - harm) / step
    value = np.rint(speed / speed[:, :1] / 20 * most)
    wait = np.zeros((jobs, 1))
    menus = Menus(
        first=np.arange(jobs + 1) * 25,
        gpus=np.hstack([wait, np.broadcast_to(gpus, value.shape)]).ravel(),
        value=np.hstack([wait, value]).ravel(),
        debt=np.hstack([wait, np.ceil(harm * 1e4)]).ravel(),
    )
    return menus, 2 * jobs


def by_hand() -> list[Menu]:
    """Three jobs; the best six GPUs are 2, 2 and 2."""
    return [Menu(options=[Option(gpus=1, value=1.0), Option(gpus=2, value=1.8), Option(gpus=4, value=2.6)])] * 3


# By hand.


@pytest.mark.parametrize("method", METHODS)
def test_three_jobs(method):
    choice = choose(by_hand(), 6, method=method)
    assert choice.selected == (2, 2, 2)
    assert choice.value * choice.value_unit == pytest.approx(5.4)
    assert choice.gpus_used == (6,)
    assert choice.gap == 0
    assert choice.status.valid
    assert choice.status.proved_optimal
    assert choice.method == method
    assert choice.runtime_s >= 0


@pytest.mark.parametrize("method", ONE_ROW)
def test_a_step_is_left_out_for_two_that_fit(method):
    """By worth per GPU the job of 3 comes first and leaves one of 4 GPUs; the two others are worth more."""
    menus = Menus(first=[0, 2, 4, 6], gpus=[0, 3, 0, 2, 0, 2], value=[0, 30, 0, 19, 0, 19])
    choice = choose(menus, 4, method=method)
    assert (choice.selected, choice.value, choice.bound) == ((0, 1, 1), 38, 38)
    assert choose(menus, 4, method="price").value == 38  # the second start: with the step that did not fit


@pytest.mark.parametrize("method", METHODS)
def test_ties_go_to_the_earlier_job_and_option(method):
    menus = Menus(first=[0, 3, 6], gpus=[0, 2, 2, 0, 2, 2], value=[0, 7, 7, 0, 7, 7])
    assert choose(menus, 2, method=method).selected == (1, 0)


@pytest.mark.parametrize("method", METHODS)
def test_nothing_to_choose(method):
    for menus, gpus in ((menus_of([]), 8), (menus_of([Menu(options=[])] * 2), 8), (menus_of(by_hand()), 0)):
        choice = choose(menus, gpus, method=method)
        assert choice.selected == (0,) * menus.jobs
        assert (choice.value, choice.bound, choice.gap) == (0, 0, 0)
        assert choice.status.proved_optimal
        assert check_choice_certificate(choice.certificate).valid


def test_waiting_may_cost_and_options_may_be_worth_less():
    running = Menu(options=[Option(gpus=2, value=0.5), Option(gpus=4, value=-1.0)], wait_value=-0.25)
    both = choose([running, running], 2)
    assert both.selected == (1, 0)
    assert both.value * both.value_unit == 0.25


def test_options_too_large_alone_do_not_count():
    """Without them the price is that of the others, and the bound is reached."""
    menus = Menus(first=[0, 2, 4], gpus=[0, 9, 0, 8], value=[0, 1000, 0, 8])
    choice = choose(menus, 8, method="price")
    assert (choice.selected, choice.bound) == ((0, 1), 8)


def test_each_gpu_type_has_a_row():
    job = Menu(options=[Option(gpus=4, value=4.0, gpu_type="h100"), Option(gpus=4, value=3.0, gpu_type="v100")])
    for method in ("price", "cpsat", "milp"):
        choice = choose([job, job, job], {"h100": 4, "v100": 4, "a100": 64}, method=method)
        assert sorted(choice.selected) == [0, 1, 2]
        assert choice.gpus_used == (4, 4)
    assert choose([job, job], {"h100": 8, "v100": 0}).selected == (1, 1)


def test_a_budget_of_debt_is_kept_for_its_tenant_alone():
    options = [Option(gpus=1, value=1.0), Option(gpus=1, value=2.0, debt=0.3)]
    jobs = [Menu(options=options, tenant=tenant) for tenant in ("vision", "vision", "language")]
    free = choose(jobs, 3)
    assert free.selected == (2, 2, 2)
    for method in METHODS:
        if method != "dp":
            tight = choose(jobs, 3, method=method, debt_budgets={"vision": 0.3, "audio": 0.0})
            assert (sum(tight.selected[:2]), tight.selected[2]) == (3, 2)
    assert choose(jobs, 3, debt_budgets={"vision": 0.6, "language": 0.3}).selected == (2, 2, 2)


def test_a_budget_alone_is_one_row_for_the_table():
    options = [Option(gpus=1, value=1.0), Option(gpus=1, value=2.0, debt=0.5)]
    choice = choose([Menu(options=options)] * 3, 8, method="dp", debt_budgets={"": 1.2})
    assert sorted(choice.selected) == [1, 2, 2]
    assert choice.status.proved_optimal


def test_a_table_of_several_rows_is_refused():
    options = [Option(gpus=2, value=1.0), Option(gpus=2, value=2.5, debt=0.5), Option(gpus=1, value=0.9)]
    with pytest.raises(InvalidValueError, match="needs at most one row that couples the jobs; there are 2"):
        choose([Menu(options=options)] * 5, 5, method="dp", debt_budgets={"": 1.2})


def test_a_start_as_good_is_kept_and_a_worse_one_or_one_that_does_not_fit_is_not():
    menus = Menus(first=[0, 2, 4], gpus=[0, 2, 0, 2], value=[0, 7, 0, 7])
    kept = choose(menus, 2, start=(0, 1))
    assert (kept.selected, kept.status.source) == ((0, 1), "start")
    for start in ((0, 0), (1, 1)):
        assert choose(menus, 2, start=start).selected == (1, 0)
    assert choose(menus, 1, start=(1, 0)).selected == (0, 0)


def test_tables_divide_by_what_weights_have_in_common():
    menus = Menus(first=[0, 3, 6], gpus=[0, 8, 16] * 2, value=[0, 5, 9] * 2)
    knapsack = knapsack_of(menus, [24], [-1])
    assert table_cells(knapsack) == 2 * 4
    assert knapsack.worth(dp(knapsack)) == 14


# Methods against each other.


@pytest.mark.parametrize(("jobs", "seeds"), [(10, 6), (50, 3), (200, 2)])
def test_exact_methods_agree(jobs, seeds):
    for seed in range(seeds):
        menus, gpus = elastic(jobs, seed)
        knapsack = knapsack_of(menus, [gpus], [-1])
        best = knapsack.worth(dp(knapsack))
        start = Answer(chosen=knapsack.waiting(), value=0, bound=10**15, source="", bound_source="")
        for answer in (cpsat(knapsack, start), milp(knapsack, start)):
            assert (answer.value, answer.bound) == (best, best)
        assert choose(menus, gpus).value == best


@pytest.mark.parametrize("jobs", [10, 40])
def test_exact_methods_agree_on_several_rows(jobs):
    for seed in range(3):
        menus, gpus = elastic(jobs, seed, most=10**4)
        spent = debt_of(menus, choose(menus, gpus).selected)
        knapsack = knapsack_of(menus, [gpus], [spent // 2])
        start = Answer(chosen=knapsack.waiting(), value=0, bound=10**15, source="", bound_source="")
        linear, exact = milp(knapsack, start), cpsat(knapsack, start)
        assert (linear.value, linear.bound) == (exact.value, exact.bound)
        budgets = {"": spent // 2}
        price = choose(menus, gpus, method="price", debt_budgets=budgets)
        assert price.value <= exact.value <= price.bound
        limited = choose(menus, gpus, debt_budgets=budgets, time_limit_s=60)
        assert limited.value == limited.bound == exact.value
        assert debt_of(menus, limited.selected) <= spent // 2


def debt_of(menus: Menus, selected) -> int:
    return int(menus.debt[menus.first[:-1] + np.array(selected)].sum())


@pytest.mark.parametrize(("jobs", "seeds", "mean_gap"), [(10, 40, 2e-3), (100, 20, 1e-4), (1000, 2, 1e-4)])
def test_prices_alone_are_close(jobs, seeds, mean_gap):
    gaps = []
    for seed in range(seeds):
        menus, gpus = elastic(jobs, seed)
        price, best = choose(menus, gpus, method="price"), choose(menus, gpus, method="dp")
        assert price.value <= best.value <= price.bound
        gaps.append(1 - price.value / best.value)
    assert np.mean(gaps) <= mean_gap


@pytest.mark.parametrize("jobs", [10, 100])
def test_prices_of_two_rows_are_close(jobs):
    for seed in range(5):
        menus, gpus = elastic(jobs, seed)
        spent = debt_of(menus, choose(menus, gpus).selected)
        assert choose(menus, gpus, method="price", debt_budgets={"": spent // 2}).gap <= 0.2 / jobs


def test_large_and_compiled():
    """From so many options on compiled loops choose, if there are any; all of them are certain of it."""
    menus, gpus = elastic(5000, 1)
    choice = choose(menus, gpus)
    assert choice.status.proved_optimal
    priced = choose(menus, gpus, method="price", debt_budgets={"": debt_of(menus, choice.selected) // 2})
    assert priced.status.valid
    assert priced.gap < 1e-4


def test_equal_jobs_are_filled_one_after_another():
    menus = Menus(first=np.arange(301) * 2, gpus=[0, 3] * 300, value=[0, 5] * 300, debt=[0, 7] * 300)
    choice = choose(menus, 500, method="price", debt_budgets={"": 1000})
    assert sum(choice.selected) == 142


def test_only_what_may_be_in_an_optimum_is_looked_at():
    menus, gpus = elastic(200, 3)
    knapsack = knapsack_of(menus, [gpus], [-1])
    price = choose(menus, gpus, method="price")
    prices = price.certificate["prices"]
    core = core_of(knapsack, knapsack.dual(prices["gpus"], prices["denominator"]), price.value)
    assert len(core.value) < len(knapsack.value) / 10
    assert core.worth(dp(core)) == knapsack.worth(dp(knapsack))


# Determinism.

RUN = """
from frostline.freezing.optimizer import Menu, Option, choose
names = {f"t{i}" for i in range(6)}
jobs = [Menu(options=[Option(gpus=1 + i % 3, value=1.0 + i % 4, debt=i % 2 * 0.5)], tenant=t)
        for i in range(30) for t in sorted(names)]
for method in ("price", "cpsat"):
    print(choose(jobs, 99, method=method, debt_budgets=dict.fromkeys(names, 1.5)).selected)
"""


def test_the_same_in_every_process():
    runs = [
        subprocess.run([sys.executable, "-c", RUN], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True)
        for seed in ("0", "1")
    ]
    assert runs[0].stdout == runs[1].stdout
    assert len(runs[0].stdout.split()) == 2 * 180


def test_solvers_are_loaded_when_they_are_needed():
    code = "import frostline.freezing.optimizer, sys; print({'numba', 'ortools', 'pulp', 'highspy'} & {*sys.modules})"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"


def test_without_numba_or_where_that_is_wanted_nothing_is_compiled(monkeypatch):
    def missing(_module):
        raise ImportError

    monkeypatch.setattr("frostline.placement.jit.compiled", missing)
    assert jit.loops.__wrapped__() is None
    monkeypatch.setattr("frostline.placement.jit.compiled", lambda module: module)
    monkeypatch.setenv("FROSTLINE_JIT", "1")
    assert jit.loops.__wrapped__() is kernel
    monkeypatch.setenv("FROSTLINE_JIT", "0")
    assert jit.loops.__wrapped__() is None


# Limits and claims.


def hard() -> tuple[Menus, int, dict[str, float]]:
    """Two rows, and a gap that prices leave."""
    menus, gpus = elastic(100, 4)
    return menus, gpus, {"": debt_of(menus, choose(menus, gpus).selected) // 2}


@pytest.mark.parametrize("method", [*SOLVER_METHODS, "auto"])
def test_no_time_leaves_the_choice_by_prices(method):
    menus, gpus, budgets = hard()
    choice = choose(menus, gpus, method=method, debt_budgets=budgets, time_limit_s=0)
    assert choice.status.source == choice.status.bound == "price"
    assert not choice.status.proved_optimal


def test_no_time_for_a_table():
    menus, gpus = elastic(10, 9)
    knapsack = knapsack_of(menus, [gpus], [-1])
    assert dp(knapsack, time.perf_counter() - 1) is None


def test_a_table_too_large_is_refused_before_it_is_made():
    menus, gpus = elastic(100, 1)
    with pytest.raises(TooLargeError, match="method dp would take about 2e"):
        dp(knapsack_of(menus, [gpus], [-1]), most_cells=1000)


def test_models_too_large_are_refused(monkeypatch):
    menus, gpus, budgets = hard()
    monkeypatch.setattr(cpsat_module, "MOST_LITERALS", 9)
    monkeypatch.setattr(milp_module, "MOST_BINARIES", 9)
    for method in ("cpsat", "milp"):
        with pytest.raises(TooLargeError):
            choose(menus, gpus, method=method, debt_budgets=budgets)


@pytest.mark.parametrize("outcome", [Outcome.INFEASIBLE, Outcome.INVALID_MODEL])
def test_infeasible_is_not_believed(monkeypatch, caplog, tmp_path, outcome):
    menus, gpus, budgets = hard()
    monkeypatch.setattr(cpsat_module, "_run", lambda *_: (None, outcome, False))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    choice = choose(menus, gpus, method="cpsat", debt_budgets=budgets)
    assert (choice.status.valid, choice.status.proved_optimal, choice.status.source) == (True, False, "price")
    (model,) = tmp_path.iterdir()
    assert str(model) in caplog.text


@pytest.mark.parametrize("outcome", [Outcome.INFEASIBLE, Outcome.INVALID_MODEL, Outcome.NOTHING_FOUND])
def test_linear_claims_are_not_believed(monkeypatch, caplog, outcome):
    menus, gpus, budgets = hard()
    claim = MipAnswer(outcome=outcome)
    monkeypatch.setattr(milp_module, "solve_mip", lambda *_: (claim, SOLVERS[0]))
    choice = choose(menus, gpus, method="milp", debt_budgets=budgets)
    assert (choice.status.source, choice.status.bound) == ("price", "price")
    assert (outcome is Outcome.NOTHING_FOUND) == (not caplog.records)


def test_a_choice_that_breaks_a_rule_is_not_believed(monkeypatch, caplog):
    menus, gpus, budgets = hard()
    monkeypatch.setattr(cpsat_module._Model, "chosen", lambda self, solver: self._knapsack.first[1:] - 1)
    choice = choose(menus, gpus, method="cpsat", debt_budgets=budgets)
    assert choice.status.source == "price"
    assert "breaks a rule" in caplog.text


def test_a_bound_below_a_choice_is_not_believed(caplog):
    answer = Answer(chosen=np.zeros(0, np.int64), value=10, bound=12, source="price", bound_source="price")
    assert bounded(answer, 9, "cpsat") is answer
    assert "below a valid choice" in caplog.text
    assert bounded(answer, 13, "cpsat") is answer
    assert bounded(answer, None, "cpsat") is answer
    assert (bounded(answer, 10, "cpsat").proved, bounded(answer, 11, "cpsat").proved) == (True, False)


def test_bounds_beyond_what_floats_tell_apart_are_raised():
    assert cpsat_module._bound(math.inf) is None
    assert cpsat_module._bound(7.0) == 7
    assert cpsat_module._bound(float(1 << 60)) > 1 << 60


def interrupted(*_args, **_kwargs):
    raise KeyboardInterrupt


@pytest.mark.parametrize("method", ["dp", "auto", "milp", "cpsat"])
def test_ctrl_c_gives_back_the_best_so_far(monkeypatch, method):
    menus, gpus = next(
        case
        for case in (elastic(10, seed) for seed in range(40))
        if not choose(*case, method="price").status.proved_optimal
    )

    package = sys.modules["frostline.freezing.optimizer.choose"]
    for name in ("dp", "cpsat"):
        monkeypatch.setattr(package, name, interrupted)
    monkeypatch.setattr(milp_module, "solve_mip", interrupted)
    choice = choose(menus, gpus, method=method)
    assert choice.status.source == "price"
    assert not choice.status.proved_optimal


def test_ctrl_c_inside_a_solver_keeps_what_it_found(monkeypatch):
    menus, gpus, budgets = hard()
    run = cpsat_module.run_interruptibly
    monkeypatch.setattr(cpsat_module, "run_interruptibly", lambda *args: (run(*args)[0], True))
    choice = choose(menus, gpus, method="cpsat", debt_budgets=budgets)
    assert choice.status.bound == "cpsat"


def test_ctrl_c_in_one_turn_leaves_out_the_next(monkeypatch):
    menus, gpus, budgets = hard()
    price = choose(menus, gpus, method="price", debt_budgets=budgets)
    found = MipAnswer(outcome=Outcome.NOTHING_FOUND, interrupted=True)
    monkeypatch.setattr(milp_module, "solve_mip", lambda *_: (found, SOLVERS[0]))
    assert choose(menus, gpus, debt_budgets=budgets, time_limit_s=60) == replace(price, method="auto")
    monkeypatch.setattr(sys.modules["frostline.freezing.optimizer.choose"], "milp", interrupted)
    assert choose(menus, gpus, debt_budgets=budgets, time_limit_s=60) == replace(price, method="auto")


def test_the_second_turn_finishes_what_the_first_does_not(monkeypatch):
    menus, gpus, budgets = hard()
    nothing = MipAnswer(outcome=Outcome.NOTHING_FOUND)
    monkeypatch.setattr(milp_module, "solve_mip", lambda *_: (nothing, SOLVERS[0]))
    choice = choose(menus, gpus, debt_budgets=budgets, time_limit_s=60)
    assert (choice.status.proved_optimal, choice.status.bound) == (True, "cpsat")


def test_a_turn_that_is_refused_is_left_out(monkeypatch):
    menus, gpus, budgets = hard()
    monkeypatch.setattr(milp_module, "MOST_BINARIES", 9)
    monkeypatch.setattr(cpsat_module, "MOST_LITERALS", 9)
    choice = choose(menus, gpus, debt_budgets=budgets, time_limit_s=60)
    assert choice.status.source == choice.status.bound == "price"


# Certificates.


def certificate() -> dict:
    menus, gpus, budgets = hard()
    found = choose(menus, gpus, method="price", debt_budgets=budgets).certificate
    return json.loads(json.dumps(found))


def signed(document: dict) -> dict:
    """The document after a change, with the digest that goes with it."""
    from frostline.freezing.optimizer.certificate import _digest

    content = {name: value for name, value in document.items() if name != "sha256"}
    return {**content, "sha256": _digest(content)}


def kinds(document: object, problem=None) -> list[ChoiceFaultKind]:
    return [fault.kind for fault in check_choice_certificate(document, problem).faults]


def test_a_certificate_proves_the_bound_of_prices_alone():
    document = certificate()
    report = check_choice_certificate(document)
    assert report.valid
    assert f"no choice is worth more than {document['bound']} steps" in report.proved
    assert "optimal" not in report.proved


def test_changed_certificates_are_found_out():
    document = certificate()
    assert kinds({**document, "bound": document["bound"] - 1}) == ["damaged", "unproved"]
    assert kinds(signed({**document, "value": document["value"] + 1})) == ["wrong_value"]
    assert kinds(signed({**document, "bound": document["bound"] + 1})) == []
    free = {**document["prices"], "gpus": [0], "debt": [0]}
    assert kinds(signed({**document, "prices": free})) == ["unproved"]
    greedy = signed({**document, "selected": [24] * 100})
    assert kinds(greedy) == ["over_limit", "over_limit", "wrong_value"]
    assert kinds(signed({**document, "selected": [25] * 100})) == ["over_limit"] * 100
    assert kinds(document, {**document["problem"], "gpus": [1]}) == ["other_problem"]


def test_malformed_certificates_are_refused():
    document = certificate()
    problem, prices = document["problem"], document["prices"]
    job = problem["jobs"][0]
    bad = [
        None,
        {},
        {**document, "version": 2},
        {**document, "format": "frostline/placement-certificate"},
        {**document, "selected": [0]},
        {**document, "selected": [-1] * 100},
        {**document, "value": 1.5},
        {**document, "prices": {**prices, "denominator": 0}},
        {**document, "prices": {**prices, "gpus": [-1]}},
        {**document, "prices": {**prices, "gpus": []}},
        {**document, "problem": {**problem, "budgets": [None]}},
        {**document, "problem": {**problem, "budgets": []}},
        {**document, "problem": {**problem, "gpus": [-1]}},
        {**document, "problem": {**problem, "jobs": [{**job, "tenant": 1}] * 100}},
        {**document, "problem": {**problem, "jobs": [{**job, "options": []}] * 100}},
        {**document, "problem": {**problem, "jobs": [{**job, "options": [[0, 1, 0, 0]]}] * 100}},
        {**document, "problem": {**problem, "jobs": [{**job, "options": [[0, 0, 0, 0], [1, 1, 1, 1]]}] * 100}},
        {**document, "problem": {**problem, "jobs": [{**job, "options": [[0, 0, 0]]}] * 100}},
        {**document, "problem": {**problem, "jobs": 3}},
    ]
    for other in bad:
        assert kinds(other) == ["malformed"], other


def test_an_exact_bound_may_be_lower_than_prices_prove():
    menus, gpus = next(
        case
        for case in (elastic(10, seed) for seed in range(40))
        if not choose(*case, method="price").status.proved_optimal
    )
    choice = choose(menus, gpus)
    assert choice.bound < choice.certificate["bound"]
    assert check_choice_certificate(choice.certificate, choice_problem(menus, [gpus], [-1])).valid


# Bad input.


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"first": [], "gpus": [0], "value": [0]}, "must begin with 0"),
        ({"first": [1, 2], "gpus": [0, 1], "value": [0, 1]}, "must begin with 0 and end with 2"),
        ({"first": [0, 0, 2], "gpus": [0, 1], "value": [0, 1]}, "job 0: options=0 must be at least 1"),
        ({"first": [0, 2], "gpus": [1, 1], "value": [0, 1]}, "job 0, option 0: gpus=1 must be 0"),
        ({"first": [0, 2], "gpus": [0, 1], "value": [0, 1], "debt": [2, 1]}, "job 0, option 0: debt=2 must be 0"),
        ({"first": [0, 2], "gpus": [0, -1], "value": [0, 1]}, "entry 1: gpus=-1 must be from 0"),
        ({"first": [0, 2], "gpus": [0, 1.5], "value": [0, 1]}, "entry 1: gpus=1.5 must be a whole number"),
        ({"first": [0, 2], "gpus": [0, 1], "value": [0, math.nan]}, "entry 1: value=nan must be a whole number"),
        ({"first": [0, 2], "gpus": [0, 1], "value": [0, True, 3]}, "value.shape"),
        ({"first": [0, 2], "gpus": [False, True], "value": [0, 1]}, "entry 0: gpus=False must be a whole number"),
        ({"first": [0, 2], "gpus": ["a", "b"], "value": [0, 1]}, "entry 0: gpus='a' must be a whole number"),
        ({"first": [0, 2], "gpus": [[0, 1]], "value": [0, 1]}, "must begin with 0 and end with 1"),
        ({"first": [0, 2], "gpus": [0, 1], "value": [0, 1 << 50]}, "entry 1: value=1125899906842624"),
        ({"first": [0, 2], "gpus": [0, 1], "value": [0, 1], "gpu_type": [0, 1]}, "entry 1: gpu_type=1 must be from 0"),
        ({"first": [0, 2], "gpus": [0, 1], "value": [0, 1], "tenant": [1]}, "entry 0: tenant=1 must be from 0"),
        ({"first": [0, 2], "gpus": [0, 1], "value": [0, 1], "tenants": ["a", "a"]}, "must be different names"),
        ({"first": [0, 2], "gpus": [0, 1], "value": [0, 1], "value_unit": 0}, "value_unit=0 must be above 0"),
        ({"first": [0, 2], "gpus": [0, 1], "value": [0, 1], "debt_unit": "x"}, "debt_unit='x' must be a number"),
        ({"first": [0, 2], "gpus": [0, 1 << 20], "value": [0, 1 << 39]}, "must be at most 2^58; take a coarser unit"),
    ],
)
def test_bad_arrays_are_refused(arrays, words):
    with pytest.raises(InvalidValueError, match="^" if words == "" else words.replace("^", r"\^")):
        Menus(**arrays)


def test_whole_numbers_of_any_type_are_taken():
    for kind in (np.int32, np.float64, np.uint8, object):
        menus = Menus(first=np.array([0, 2], kind), gpus=np.array([0, 4], kind), value=[0, Decimal(9)])
        assert (menus.gpus.dtype, menus.value.tolist()) == (np.int64, [0, 9])
    with pytest.raises(ValueError, match="read-only"):
        menus.gpus[0] = 1


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Option(gpus=-1, value=0), "option: gpus=-1 must be at least 0"),
        (lambda: Option(gpus=1, value=math.inf), "option: value=inf must be finite"),
        (lambda: Option(gpus=1, value=1, debt=-0.1), "option: debt=-0.1 must be at least 0"),
        (lambda: Menu(options=[1]), "menu: options=1 must be of Option"),
        (lambda: Menu(options=[], wait_value="x"), "menu: wait_value='x' must be a number"),
        (lambda: menus_of([1]), "menus: menus=1 must be of Menu"),
        (lambda: menus_of(by_hand(), value_unit=-1), "value_unit=-1 must be above 0"),
        (lambda: menus_of(by_hand(), value_unit=1e-30), "entry 1: value="),
        (lambda: JobScale(reference_per_s=0, least_per_s=1, remaining=1, fair_remaining_s=1), "must be above 0"),
        (lambda: RoundRules(round_s=0), "round_s=0.0 must be above 0"),
        (lambda: RoundRules(round_s=60, hysteresis=-1), "hysteresis=-1 must be at least 0"),
        (lambda: Candidate(gpus=0, progress_per_s=1), "candidate: gpus=0 must be at least 1"),
        (lambda: Candidate(gpus=1, progress_per_s=0), "progress_per_s=0 must be above 0"),
        (lambda: Candidate(gpus=1, progress_per_s=1, level=1.5), "level=1.5 must be a whole number"),
        (lambda: choose(by_hand(), -1), "choice: gpus=-1 must be at least 0"),
        (lambda: choose(by_hand(), 1 << 60), "must be at most"),
        (lambda: choose(by_hand(), "8"), "choice: gpus='8' must be a whole number"),
        (lambda: choose(by_hand(), 8, time_limit_s=-1), "time_limit_s=-1 must be at least 0"),
        (lambda: choose(by_hand(), 8, seed=-1), "seed=-1 must be at least 0"),
        (lambda: choose(by_hand(), 8, debt_budgets=3), "debt_budgets=3 must be a mapping"),
        (lambda: choose(by_hand(), 8, debt_budgets={"": -1}), "tenant '': debt_budget=-1 must be at least 0"),
        (lambda: choose(by_hand(), 8, start=[0]), "must have one entry for each of 3 jobs"),
        (lambda: choose(by_hand(), 8, start=[0, 4, 0]), "job 1: start=4 must be below its 4 options"),
        (lambda: choose(by_hand(), 8, start=[0, 0.5, 0]), "job 1: start=0.5 must be a whole number"),
    ],
)
def test_bad_values_are_refused(make, words):
    with pytest.raises(InvalidValueError, match=words):
        make()


def test_bad_names_are_refused():
    typed = [Menu(options=[Option(gpus=1, value=1, gpu_type=name) for name in ("h100", "v100")])]
    with pytest.raises(InvalidValueError, match="must name each GPU type: h100, v100"):
        choose(typed, 8)
    with pytest.raises(UnknownNameError, match="unknown GPU type of an option 'v100'"):
        choose(typed, {"h100": 8, "v10": 3})
    with pytest.raises(UnknownNameError, match="unknown choice method 'prize'; did you mean 'price'"):
        choose(typed, {"h100": 8, "v100": 8}, method="prize")
    with pytest.raises(UnknownNameError, match="unknown utility 'srtp'; did you mean 'srpt'"):
        round_menu([], SCALE, RoundRules(round_s=60), utility="srtp")


# Grids, utilities and what changes cost.

SCALE = JobScale(reference_per_s=100, least_per_s=50, remaining=1e6, fair_remaining_s=2e4)


def test_steps_of_a_grid():
    assert grid_steps(0.7, 0.1, up=True) == grid_steps(0.7, 0.1, up=False) == 7
    assert (grid_steps(0.71, 0.1, up=True), grid_steps(0.71, 0.1, up=False)) == (8, 7)
    menus = menus_of([Menu(options=[Option(gpus=1, value=1e-12)])])
    assert 1 << 29 <= menus.value[1] < 1 << 30
    assert menus.value[1] * menus.value_unit == pytest.approx(1e-12)
    assert menus_of([Menu(options=[Option(gpus=1, value=0)])]).value_unit == 1.0


@pytest.mark.parametrize("name", UTILITIES)
def test_utilities_rise_with_progress_and_are_never_below_that_of_waiting(name):
    utility = UTILITIES[name](np.array([50.0, 100.0, 400.0]), SCALE)
    assert (np.diff(utility) > 0).all()
    assert utility[0] > 0


def test_utilities_by_hand():
    progress = np.array([100.0])
    found = {name: round(float(utility(progress, SCALE)[0]), 6) for name, utility in UTILITIES.items()}
    assert found == {"progress": 1.0, "sia": round(1.1 - 2**-0.5, 6), "titan": 2.0, "srpt": 1e-4}
    assert sia_utility(np.array([1.0]), SCALE).tolist() == [0.0]


def test_what_changes_cost_by_hand():
    rules = RoundRules(round_s=100, restart_s=30, level_s=10, change_cost=0.05, hysteresis=0.25)
    no, yes = np.array([False]), np.array([True])
    values = [float(round_values(np.ones(1), moved, level, rules)[0]) for moved in (no, yes) for level in (no, yes)]
    assert values == pytest.approx([1.0, 0.9 / 1.25 - 0.05, 0.65, 0.65])
    short = replace(rules, round_s=20)
    assert round_values(np.ones(1), yes, no, short).tolist() == [-0.05]


def test_another_level_must_be_better_by_the_hysteresis():
    rules = RoundRules(round_s=600, change_cost=0, level_s=0)
    held = Candidate(gpus=2, level=0, progress_per_s=100)
    for gain, expected in ((1.02, 1), (1.04, 2)):
        frozen = Candidate(gpus=2, level=2, progress_per_s=100 * gain)
        assert choose([round_menu([held, frozen], SCALE, rules, held=held)], 2).selected == (expected,)
    elsewhere = Candidate(gpus=2, level=0, placement="one server", progress_per_s=104)
    assert choose([round_menu([held, elsewhere], SCALE, rules, held=held)], 2).selected == (1,)  # 5 % are lost
    assert choose([round_menu([held, elsewhere], SCALE, rules)], 2).selected == (2,)


def test_a_job_keeps_its_gpus_unless_another_gains_more_than_the_change_costs():
    rules = RoundRules(round_s=300)
    same = [Candidate(gpus=4, progress_per_s=100)]
    held = round_menu(same, SCALE, rules, held=same[0])
    assert choose([round_menu(same, SCALE, rules), held], 4).selected == (0, 1)
    faster = [Candidate(gpus=4, progress_per_s=150)]
    assert choose([round_menu(faster, SCALE, rules), held], 4).selected == (1, 0)
