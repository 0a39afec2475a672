"""What solvers get wrong, or say in words that mislead, and what must come of it."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from frostline.errors import InvalidValueError, TooLargeError, UnknownNameError
from frostline.placement import auto as auto_module
from frostline.placement import cpsat as cpsat_module
from frostline.placement import milp as milp_module
from frostline.placement import solvers
from frostline.placement.answer import Answer
from frostline.placement.brute_force import brute_force
from frostline.placement.cpsat import CompactModel, cpsat
from frostline.placement.incumbent import bounded, heuristic
from frostline.placement.milp import milp
from frostline.placement.packing import best_fit
from frostline.placement.place import METHODS, place
from frostline.placement.request import Request
from frostline.placement.solvers import (
    SOLVERS,
    Effort,
    MipAnswer,
    Outcome,
    SolverFailedError,
    SolverUnavailableError,
    SolverWarning,
    solve_mip,
)
from frostline.timing.column_costs import ColumnCosts, ColumnKind
from frostline.timing.contention import ContentionTime
from frostline.timing.iteration_time import IterationTime
from frostline.timing.stage_graph import StageGraph

EXACT = ("auto", "brute-force", "cpsat", "milp", "milp-cbc", "milp-highs", "patterns")
MIP = tuple(solver.name for solver in SOLVERS)


def timing_of(seed: int, gpus: int = 10, stages: int = 3) -> ContentionTime:
    """A stage graph, dense and uneven, so that nothing is optimal by luck."""
    rng = np.random.default_rng(seed)
    cuts = np.sort(rng.choice(np.arange(1, gpus), stages - 1, replace=False))
    graph = StageGraph(
        replicas=np.diff([0, *cuts, gpus]),
        compute_s=rng.uniform(0.001, 0.01, stages).tolist(),
        gradient_bytes=(rng.integers(1, 200, stages) * 1_000_003).tolist(),
        edges={(s, t): int(rng.integers(1, 200)) * 1_000_003 for t in range(stages) for s in range(t)},
    )
    return ContentionTime(graph=graph, nic_bytes_per_s=4e9)


def hard() -> tuple[ContentionTime, list[int]]:
    """A case that no exact method settles in seconds."""
    return timing_of(5, gpus=96, stages=9), [7, 5, 6, 8] * 4


def from_best_fit(request: Request) -> Answer:
    return Answer(matrix=best_fit(request), source="best-fit")


# Limits and incumbents.


@pytest.mark.parametrize("limit_s", [0, 1e-6, 0.01])
@pytest.mark.parametrize("method", EXACT)
def test_a_placement_in_no_time(method, limit_s):
    """The heuristic answers where the solver cannot."""
    timing, free = hard()
    if method == "brute-force":
        timing, free = timing_of(1), [5, 5]
    result = place(timing, free, method=method, time_limit_s=limit_s)
    assert result.placement.gpus == timing.graph.gpus
    if limit_s < 0.01 and method != "brute-force":
        assert (result.status.source, result.status.bound) == ("local-search", "base")
        assert not result.status.proved_optimal


@pytest.mark.parametrize("limit_s", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("search", [cpsat, milp])
def test_never_worse_than_the_incumbent(search, limit_s):
    timing, free = hard()
    request = Request(timing=timing, free=tuple(free))
    start = heuristic(request)
    answer = search(replace(request, deadline_s=time.perf_counter() + limit_s), start)
    assert request.value_ns(answer.matrix) <= request.value_ns(start.matrix)
    assert answer.bound_ns < request.value_ns(answer.matrix)


def test_a_model_is_solved_twice_with_two_hints():
    request = Request(timing=timing_of(1), free=(6, 5))
    start = from_best_fit(request)
    model = CompactModel(request, 2, request.value_ns(start.matrix))
    search = cpsat_module._Search(model, request)
    for matrix in (start.matrix, brute_force(request).matrix):
        model.hint(matrix)
        search.run(float("inf"))
        assert search.outcome is Outcome.OPTIMAL


@pytest.mark.parametrize("method", ["cpsat", "milp-highs", "milp-cbc"])
def test_a_gap_is_no_proof(method):
    timing, free = hard()
    result = place(timing, free, method=method, gap=1e9)
    assert result.status.source == "local-search"
    assert not result.status.proved_optimal
    assert result.gap > 0


def test_a_gap_stops_the_solver():
    request = Request(timing=timing_of(2, gpus=24, stages=5), free=(8, 8, 8), gap=0.5)
    answer = cpsat(request, from_best_fit(request))
    value_ns = request.value_ns(answer.matrix)
    assert answer.bound_ns < value_ns <= 1.5 * max(answer.bound_ns, request.timing.bound_ns)


# Claims that are not believed.


def claims(outcome: Outcome, **fields):
    """A search that claims something without looking."""

    def run(self, left_s):
        self.outcome = outcome
        for name, value in fields.items():
            setattr(self, name, value)
        return False

    return run


@pytest.mark.parametrize("outcome", [Outcome.INFEASIBLE, Outcome.INVALID_MODEL])
def test_infeasible_is_not_believed(monkeypatch, caplog, tmp_path, outcome):
    monkeypatch.setattr(cpsat_module._Search, "run", claims(outcome))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    result = place(timing_of(1), [6, 5], method="cpsat")
    assert (result.status.valid, result.status.proved_optimal) == (True, False)
    (model,) = tmp_path.iterdir()
    assert "variables" in model.read_text()
    assert str(model) in caplog.text


def test_a_bound_above_a_placement_is_not_believed(monkeypatch, caplog):
    monkeypatch.setattr(cpsat_module._Search, "run", claims(Outcome.NOTHING_FOUND, bound_ns=10**15))
    result = place(timing_of(1), [6, 5], method="cpsat")
    assert result.status.bound == "base"
    assert "above a valid placement" in caplog.text


def test_an_invalid_placement_is_not_believed(monkeypatch, caplog):
    monkeypatch.setattr(CompactModel, "matrix", lambda self, solver: np.zeros((2, 3), np.int64))
    result = place(timing_of(1), [6, 5], method="cpsat")
    assert result.status.source == "local-search"
    assert "breaks a rule" in caplog.text


@pytest.mark.parametrize("outcome", [Outcome.INFEASIBLE, Outcome.INVALID_MODEL, Outcome.NOTHING_FOUND])
def test_linear_claims_are_not_believed(monkeypatch, caplog, outcome):
    claim = replace(SOLVERS[0], run=lambda model, effort: MipAnswer(outcome=outcome))
    monkeypatch.setattr(milp_module, "solve_mip", lambda *_: (claim.run(None, None), claim))
    result = place(timing_of(1), [6, 5], method="milp")
    assert not result.status.proved_optimal
    assert (outcome is Outcome.NOTHING_FOUND) == (not caplog.records)


def test_the_word_optimal_alone_proves_nothing():
    """The bound of a linear program is lowered by its tolerances."""
    result = place(timing_of(1), [6, 5], method="milp-highs")
    assert result.iteration_ns == place(timing_of(1), [6, 5], method="cpsat").iteration_ns
    assert result.bound_ns < result.iteration_ns
    assert not result.status.proved_optimal
    assert result.status.bound.startswith("milp-highs, ")


def test_linear_bounds_prove_what_no_tolerance_can_hide():
    """All times are multiples of 0.25 s here."""
    path = StageGraph(replicas=[1] * 4, compute_s=[0] * 4, edges={(0, 1): 10**10, (1, 2): 5 * 10**9, (2, 3): 10**10})
    timing = ContentionTime(graph=path, nic_bytes_per_s=10**10)
    for method in ("milp-highs", "milp-cbc"):
        result = place(timing, [3, 1], method=method)
        assert result.status.proved_optimal
        assert result.iteration_ns == place(timing, [3, 1], method="brute-force").iteration_ns


# The adapter of linear solvers.


def lp(*rows, binaries: int = 2):
    """Model of some binaries and rows given by functions of them."""
    import pulp

    model = pulp.LpProblem("p")
    x = [model.add_variable(f"x{i}", 0, 3, pulp.LpInteger) for i in range(binaries)]
    model += pulp.lpSum(x)
    for row in rows:
        model += row(x)
    return model


@pytest.mark.parametrize("name", MIP)
def test_values_of_an_infeasible_model_cannot_be_read(name):
    answer, solver = solve_mip(lp(lambda x: x[0] >= 2, lambda x: x[0] <= 1), Effort(), name)
    assert (answer.outcome, solver.name) == (Outcome.INFEASIBLE, name)
    with pytest.raises(SolverFailedError, match="there is no solution to read: infeasible"):
        _ = answer.values


@pytest.mark.parametrize("name", MIP)
def test_optimal_values(name):
    answer, _ = solve_mip(lp(lambda x: x[0] + 2 * x[1] >= 5), Effort(), name)
    assert answer.outcome is Outcome.OPTIMAL
    assert {name: round(value) for name, value in answer.values.items()} == {"x0": 0, "x1": 3} or answer.bound == 3


def market_split(seed: int):
    """Six equations of fifty binaries: solvers find no solution in the time they have here."""
    import pulp

    rng = np.random.default_rng(seed)
    model = pulp.LpProblem("p")
    x = [model.add_variable(f"x{i}", 0, 1, pulp.LpInteger) for i in range(50)]
    model += x[0]
    for row in rng.integers(0, 100, (6, 50)).tolist():
        model += pulp.lpSum(a * v for a, v in zip(row, x, strict=True)) == sum(row) // 2
    return model


@pytest.mark.parametrize("name", MIP)
def test_no_solution_when_the_clock_stops(name):
    answer, _ = solve_mip(market_split(3), Effort(time_limit_s=0.3), name)
    assert answer.outcome is Outcome.NOTHING_FOUND
    with pytest.raises(SolverFailedError, match="nothing found"):
        _ = answer.values


@pytest.mark.parametrize("name", MIP)
def test_a_limit_is_not_optimal(name):
    """Identical machines: a schedule is found at once, its proof is not."""
    import pulp

    rng = np.random.default_rng(1)
    work = rng.integers(100, 1000, 60).tolist()
    model = pulp.LpProblem("p")
    longest = model.add_variable("t", 0, sum(work))
    model += longest
    on = [[model.add_variable(f"x{j}m{m}", 0, 1, pulp.LpInteger) for m in range(7)] for j in range(60)]
    for machines in on:
        model += pulp.lpSum(machines) == 1
    for m in range(7):
        model += pulp.lpSum(w * machines[m] for w, machines in zip(work, on, strict=True)) <= longest
    answer, _ = solve_mip(model, Effort(time_limit_s=0.7), name)
    assert answer.outcome is Outcome.FEASIBLE
    assert 0 < answer.bound < answer.values["t"]


@pytest.fixture
def without_cbc(monkeypatch, tmp_path):
    """CBC is there but may not be executed, and there is none on the PATH."""
    program = tmp_path / "cbc"
    program.write_text("no program")
    program.chmod(0o600)
    monkeypatch.setattr("pulp.apis.coin_api.pulp_cbc_path", str(program))
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    solvers._probe.cache_clear()
    yield
    solvers._probe.cache_clear()


def test_another_solver_takes_the_place_of_a_missing_one(without_cbc):
    with pytest.warns(
        SolverWarning, match=r"solver cbc \(.* may not be executed.*\) .*; highs takes its place"
    ) as told:
        result = place(timing_of(1), [6, 5], method="milp-cbc")
    assert len(told) == 1
    assert result.status.bound.startswith("milp-highs")
    assert not solvers.solver_named("cbc").available


def test_no_solver_at_all(without_cbc, monkeypatch):
    def broken(model, effort):
        raise SolverFailedError("cannot be imported")

    monkeypatch.setattr(solvers, "SOLVERS", (replace(SOLVERS[0], run=broken), SOLVERS[1]))
    with pytest.raises(SolverUnavailableError, match=r"highs \(cannot be imported\), cbc \(.* may not be executed"):
        place(timing_of(1), [6, 5], method="milp")


def test_no_folder_for_temporary_files(monkeypatch, tmp_path):
    assert solvers.solver_named("cbc").available
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nothing"))
    with pytest.warns(SolverWarning, match="cbc .*No such file or directory.*highs takes its place"):
        result = place(timing_of(1), [6, 5], method="milp-cbc")
    assert result.status.valid


def test_a_program_that_fails(monkeypatch, tmp_path):
    program = tmp_path / "cbc"
    program.write_text("#!/bin/sh\nexit 3\n")
    program.chmod(0o700)
    monkeypatch.setattr("pulp.apis.coin_api.pulp_cbc_path", str(program))
    with pytest.raises(SolverFailedError, match="ended with status 3"):
        SOLVERS[1].run(lp(), Effort())
    program.write_text("#!/bin/sh\nsleep 60\n")
    monkeypatch.setattr(solvers, "_GRACE_S", 0.1)
    assert SOLVERS[1].run(lp(), Effort(time_limit_s=0.1)).outcome is Outcome.NOTHING_FOUND


def test_unknown_solver():
    with pytest.raises(UnknownNameError, match="unknown solver 'cbd'; did you mean 'cbc'"):
        solve_mip(lp(), Effort(), "cbd")


def test_capabilities_are_data():
    assert [solver.name for solver in SOLVERS if solver.threads] == ["cbc"]
    assert all(solver.time_limit and solver.gap and solver.nodes and solver.bound for solver in SOLVERS)


@pytest.mark.parametrize(
    ("head", "outcome"),
    [
        ("Optimal - objective value 3.00000000", Outcome.OPTIMAL),
        ("Infeasible - objective value 3.00000000", Outcome.INFEASIBLE),
        ("Integer infeasible - objective value 0", Outcome.INFEASIBLE),
        ("Stopped on time - objective value 7.0", Outcome.FEASIBLE),
        ("Stopped on time (no integer solution - continuous used) - objective value 7.0", Outcome.NOTHING_FOUND),
        ("Unbounded - objective value 0", Outcome.NOTHING_FOUND),
        ("Words of a later version", Outcome.NOTHING_FOUND),
        ("", Outcome.NOTHING_FOUND),
    ],
)
def test_words_of_cbc(head, outcome):
    answer = solvers._cbc_answer(
        f"{head}\n  0 X1  2  0\n**  1 X2  5  0\n", "Lower bound: nan?\n", {"a": "X1", "b": "X2"}
    )
    assert answer.outcome is outcome
    if outcome in (Outcome.OPTIMAL, Outcome.FEASIBLE):
        assert answer.values == {"a": 2.0, "b": 5.0}


# Names and numbers.


@pytest.mark.parametrize("method", ["milp-cbc", "milp-highs", "cpsat", "patterns"])
def test_names_of_stages_reach_no_solver(method):
    names = ["x+", "x-", "x ", "x_", "a" * 300, "3start", "job 7/µ-α", "end"]
    graph = StageGraph(
        replicas=[1] * 8, compute_s=[0] * 8, edges={(s, s + 1): (s + 1) * 10**6 for s in range(7)}, names=names
    )
    result = place(graph, [3, 3, 3], method=method)
    assert result.iteration_ns == place(graph, [3, 3, 3], method="brute-force").iteration_ns


def test_numbers_of_other_types():
    timing = timing_of(1)
    expected = place(timing, [8, 4], method="cpsat").placement
    for free in (np.array([8, 4]), [np.int32(8), np.int64(4)], [np.float64(8), 4.0], [Decimal(8), Decimal("4")]):
        assert place(timing, free, method="cpsat").placement == expected
    with pytest.raises(InvalidValueError, match="free=True"):
        place(timing, [8, True, 4], method="cpsat")


@dataclass(frozen=True)
class Slow(IterationTime):
    """A timing model of enormous times: one stage of two replicas, whose ring is slow."""

    ring_ns: int

    graph = StageGraph(replicas=[2, 2], compute_s=[0, 0])
    base_ns = 0
    bound_ns = 0
    overlap = False

    def server_class(self, server):
        return 0

    def costs(self, server):
        return ColumnCosts(
            kind=ColumnKind.EGRESS, counts=(2, 2), pairs=((0, 1, self.ring_ns),), rings=(1000,) * 2, local=(0, 0)
        )

    def column_ns(self, column, server):
        return self.costs(server).column_ns(column)


@pytest.mark.parametrize("method", ["cpsat", "milp"])
def test_horizon(method):
    for ring_ns in (10**12, 10**14):
        result = place(Slow(ring_ns), [2, 2], method=method)
        assert result.iteration_ns == place(Slow(ring_ns), [2, 2], method="brute-force").iteration_ns
    with pytest.raises(InvalidValueError, match="too large a horizon for whole nanoseconds"):
        place(Slow(10**17), [2, 2], method=method)
    assert place(Slow(10**17), [2, 2], method="auto", time_limit_s=1).placement.gpus == 4


def test_size_is_estimated_before_any_work():
    timing = timing_of(5, gpus=900, stages=30)
    free = [4] * 800
    for method in ("brute-force", "cpsat", "milp"):
        with pytest.raises(TooLargeError, match=f"method {method} would take about") as error:
            place(timing, free, method=method)
        assert error.value.estimate > error.value.limit


def test_nothing_to_place():
    for method in METHODS:
        with pytest.raises(ValueError, match="all servers together have 0 free"):
            place(timing_of(1), [], method=method)


# Callers that interfere.


class StopError(Exception):
    """An error of the caller's own."""


@pytest.mark.parametrize("method", ["auto", "cpsat", "patterns"])
def test_errors_of_the_progress_reach_the_caller(method):
    def progress(value_ns, bound_ns):
        raise StopError

    timing, free = hard()
    with pytest.raises(StopError):
        place(timing, free, method=method, time_limit_s=60, progress=progress)
    assert place(timing_of(2), [6, 5], method=method, time_limit_s=60).status.proved_optimal


@pytest.mark.parametrize("method", ["auto", "cpsat", "patterns"])
def test_a_search_that_is_stopped_proves_nothing(method):
    told = []

    def progress(value_ns, bound_ns):
        told.append((value_ns, bound_ns))
        return True

    timing, free = hard()
    result = place(timing, free, method=method, time_limit_s=60, progress=progress)
    assert not result.status.proved_optimal
    assert told[-1][0] == result.iteration_ns
    assert all(bound_ns <= value_ns for value_ns, bound_ns in told)


@pytest.mark.parametrize("search", [cpsat, milp])
def test_progress_goes_on(search):
    told = []
    request = Request(timing=timing_of(2, gpus=16, stages=4), free=(8, 7, 3), progress=lambda *pair: told.append(pair))
    answer = search(request, from_best_fit(request))
    assert (told == []) == (search is milp)
    assert all(value_ns >= request.value_ns(answer.matrix) for value_ns, _ in told)


def test_interrupt_without_an_incumbent(monkeypatch):
    def interrupted(request):
        raise KeyboardInterrupt

    monkeypatch.setattr(cpsat_module, "heuristic", interrupted)
    with pytest.raises(KeyboardInterrupt):
        place(timing_of(1), [6, 5], method="cpsat")


INTERRUPTED = """
import os, signal, sys, threading, time
sys.path.insert(0, sys.argv[1])
import ortools.sat.python.cp_model
from test_solver_traps import hard, place
timing, free = hard()
place(timing, free, method="local-search")
for method in sys.argv[2:]:
    def interrupt(*_):
        os.kill(os.getpid(), signal.SIGINT)
    if method.startswith("milp"):
        threading.Timer(0.5, interrupt).start()
    progress = None if method.startswith("milp") else interrupt
    started_s = time.perf_counter()
    result = place(timing, free, method=method, time_limit_s=60, progress=progress)
    print(method, result.status.valid, result.status.proved_optimal, time.perf_counter() - started_s < 30)
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print("no child left")
"""


def test_interrupt_returns_the_best_so_far(tmp_path):
    methods = ["cpsat", "milp-highs", "milp-cbc", "auto", "patterns"]
    output = child(INTERRUPTED, Path(__file__).parent, *methods, temporary=tmp_path)
    assert output == [*(f"{method} True False True" for method in methods), "no child left"]
    assert list(tmp_path.iterdir()) == []


def child(code: str, *words: object, seed: int = 0, temporary: Path | None = None) -> list[str]:
    """Lines that code prints in a process of its own."""
    settings = {"PYTHONHASHSEED": str(seed)} | ({"TMPDIR": str(temporary)} if temporary else {})
    command = [sys.executable, "-W", "error", "-c", code, *map(str, words)]
    done = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


# Many at once, and again.

ORDERS = (
    "import pandas, frostline.placement",
    "import frostline.placement, pandas, ortools.sat.python.cp_model",
    "import sklearn.ensemble, networkx, pulp, highspy, frostline.placement",
)

AGAIN = """
import sys
sys.path.insert(0, sys.argv[1])
from test_solver_traps import place, timing_of
timing, free = timing_of(2), [6, 5]
for method in sys.argv[2:]:
    for objective in ("time", "consolidate"):
        for _ in range(2):
            result = place(timing, free, method=method, objective=objective)
            print(method, result.placement, result.iteration_ns, result.bound_ns, result.status)
"""


def test_equal_answers_in_equal_searches():
    """Whatever is imported first, whatever the hash seed, in one process and in several; and nothing is printed."""
    methods = ("auto", "cpsat", "milp-cbc", "milp-highs", "patterns")
    outputs = [child(f"{order}\n{AGAIN}", Path(__file__).parent, *methods, seed=s) for s, order in enumerate(ORDERS)]
    assert outputs[0] == outputs[1] == outputs[2]
    assert len(outputs[0]) == 4 * len(methods)
    assert outputs[0][::2] == outputs[0][1::2]


@pytest.mark.parametrize("method", ["cpsat", "milp-cbc", "milp-highs", "patterns"])
def test_threads(monkeypatch, tmp_path, method):
    """Eight at a time give what one after another gives, and leave no files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    cases = [(timing_of(seed, gpus=8), [4, 3, 3]) for seed in range(12)]

    def solve(pair):
        result = place(*pair, method=method)
        return result.placement, result.iteration_ns, result.bound_ns, result.status

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(solve, cases)) == [solve(pair) for pair in cases]
    assert list(tmp_path.iterdir()) == []


def test_workers():
    timing, free = timing_of(2, gpus=16, stages=4), [8, 7, 3]
    expected = place(timing, free, method="cpsat")
    for method in ("cpsat", "milp-cbc"):
        result = place(timing, free, method=method, workers=2)
        assert result.iteration_ns == expected.iteration_ns
    for workers in (0, 2000):
        with pytest.raises(InvalidValueError, match=f"workers={workers}"):
            place(timing, free, workers=workers)


def test_auto_leaves_out_what_refuses_the_case(monkeypatch):
    monkeypatch.setattr(auto_module, "_TURNS", ((cpsat, 1.0),))
    monkeypatch.setattr(cpsat_module, "MOST_CELLS", 1)
    result = place(timing_of(1), [6, 5], time_limit_s=60)
    assert result.status.source == "local-search"
    monkeypatch.setattr(cpsat_module, "MOST_CELLS", 100)
    assert place(timing_of(1), [6, 5], time_limit_s=60).status.bound == "cpsat"


def test_auto_loads_no_solver_that_would_take_too_long(monkeypatch):
    monkeypatch.setattr(auto_module, "_TURNS", ((cpsat, 1.0),))
    monkeypatch.delitem(sys.modules, "ortools.sat.python.cp_model", raising=False)
    assert place(timing_of(1), [6, 5], time_limit_s=0.5).status.bound == "base"


def test_auto_without_a_limit_is_local_search():
    timing, free = timing_of(2, gpus=24, stages=5), [8, 7, 6, 5]
    fast, local = place(timing, free), place(timing, free, method="local-search")
    assert (fast.placement, fast.status) == (local.placement, local.status)


@pytest.mark.parametrize("method", ["cpsat", "milp-highs", "milp-cbc", "auto"])
def test_interrupted_at_the_end(monkeypatch, method):
    """Ctrl-C is no error where there is a placement."""

    def interrupted(run, stop):
        return run(), True

    def killed(command, output, limit_s):
        raise KeyboardInterrupt

    monkeypatch.setattr(cpsat_module, "run_interruptibly", interrupted)
    monkeypatch.setattr(solvers, "run_interruptibly", interrupted)
    assert all(solver.available for solver in SOLVERS)
    monkeypatch.setattr(solvers, "_run_program", killed)
    monkeypatch.setattr(auto_module, "_TURNS", ((cpsat, 1.0), (None, 1.0)))
    result = place(timing_of(1), [6, 5], method=method, time_limit_s=60)
    assert result.placement.gpus == 10
    assert result.status.proved_optimal == (method in ("cpsat", "auto"))


def test_interrupt_while_auto_tells(monkeypatch):
    def progress(value_ns, bound_ns):
        raise KeyboardInterrupt

    assert place(timing_of(1), [6, 5], time_limit_s=60, progress=progress).status.source == "local-search"


def test_replicas_too_large_for_some_servers():
    graph = StageGraph(
        replicas=[1, 2], compute_s=[0, 0], edges={(0, 1): 10**9}, gpus_per_replica=[4, 1], gradient_bytes=[0, 10**8]
    )
    results = [place(graph, [2, 5], method=method) for method in ("cpsat", "milp", "patterns", "brute-force")]
    assert len({result.iteration_ns for result in results}) == 1
    results = [place(graph, [2, 4], method=method) for method in ("cpsat", "milp", "patterns", "brute-force")]
    assert {result.placement.columns for result in results} == {((0, (0, 2)), (1, (1, 0)))}


def test_better_bounds_win():
    request = Request(timing=timing_of(1), free=(6, 5))
    answer = bounded(request, from_best_fit(request), 5, "first")
    assert bounded(request, answer, 4, "second") is answer
    assert bounded(request, answer, 6, "second").bound == "second"


def test_the_library_says_nothing_by_itself(capfd):
    logging.getLogger("frostline.placement").error("heard only by those who listen")
    place(timing_of(1), [6, 5], method="milp-highs")
    place(timing_of(1), [6, 5], method="milp-cbc")
    assert capfd.readouterr() == ("", "")
