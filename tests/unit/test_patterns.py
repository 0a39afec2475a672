"""Column generation: how it starts, stops and gives up."""

from __future__ import annotations

import _thread
import json
import math
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from frostline.placement import column_master, pattern_problem, place
from frostline.placement import patterns as module
from frostline.placement.answer import Answer
from frostline.placement.column_master import ColumnMaster
from frostline.placement.column_space import Columns
from frostline.placement.incumbent import heuristic
from frostline.placement.interruptible import InterruptedSearchError
from frostline.placement.packing import best_fit
from frostline.placement.pattern_problem import PatternProblem, Threshold
from frostline.placement.patterns import patterns
from frostline.placement.request import Request
from frostline.timing import ContentionTime, LinkTime, StageGraph
from frostline.verify.placement import check_placement_certificate


def pipeline(counts: list[int], seed: int = 0) -> StageGraph:
    rng = np.random.default_rng(seed)
    stages = len(counts)
    return StageGraph(
        replicas=counts,
        compute_s=[0.1] * stages,
        gradient_bytes=rng.integers(2 * 10**7, 4 * 10**9, stages).tolist(),
        edges={(s, s + 1): int(amount) for s, amount in enumerate(rng.integers(10**8, 8 * 10**9, stages - 1))},
    )


GAP = pipeline([3, 5, 4, 4], seed=3)
"""A pipeline whose relaxation leaves a gap on full servers of four."""


def gap_request(seed: int = 3) -> Request:
    return Request(timing=LinkTime(graph=pipeline([3, 5, 4, 4, 2, 6], seed)), free=(4,) * 6)


def poor(request: Request) -> Answer:
    return Answer(matrix=best_fit(request), source="best-fit")


def bound_of(request: Request, answer: Answer) -> int:
    return max(answer.bound_ns, request.timing.bound_ns)


def test_a_large_tight_pipeline_is_proved() -> None:
    graph = pipeline([64, 16, 64, 28, 64, 4, 16], seed=1)
    for timing in (ContentionTime(graph=graph), LinkTime(graph=graph)):
        result = place(timing, [8] * 32, method="patterns")
        assert result.status.proved_optimal
        assert result.iteration_ns <= place(timing, [8] * 32, method="local-search").iteration_ns
        assert check_placement_certificate(result.certificate).valid


def test_the_bound_does_not_depend_on_the_start() -> None:
    request = gap_request()
    answers = [patterns(request, start) for start in (None, poor(request))]
    assert len({request.value_ns(answer.matrix) for answer in answers}) == 1
    assert {bound_of(request, answer) for answer in answers} == {request.value_ns(answers[0].matrix)}
    assert answers[1].source == "patterns"


def test_an_answer_that_is_good_enough_is_left_alone() -> None:
    request = Request(timing=ContentionTime(graph=GAP), free=(16,))
    start = heuristic(request)
    assert patterns(request, start) is start
    lax = replace(gap_request(), gap=1e9)
    assert patterns(lax, start := replace(poor(lax), bound_ns=1)) is start


def test_no_time() -> None:
    request = replace(gap_request(), deadline_s=time.perf_counter())
    start = poor(request)
    assert patterns(request, start) is start


@pytest.mark.parametrize("checks", range(1, 60, 7))
def test_stopped_at_any_point_it_keeps_what_it_has(checks: int) -> None:
    request = gap_request()
    optimum_ns = request.value_ns(patterns(request).matrix)
    asked = []

    def progress(value_ns: int, bound_ns: int) -> bool:
        asked.append((value_ns, bound_ns))
        return len(asked) >= checks

    start = poor(request)
    answer = patterns(replace(request, progress=progress), start)
    assert bound_of(request, answer) <= optimum_ns <= request.value_ns(answer.matrix) <= request.value_ns(start.matrix)
    assert all(bound_ns <= optimum_ns <= value_ns for value_ns, bound_ns in asked)
    assert asked == sorted(asked, key=lambda pair: (-pair[0], pair[1]))


def test_interrupted() -> None:
    def progress(value_ns: int, bound_ns: int) -> bool:
        raise KeyboardInterrupt

    request = replace(gap_request(), progress=progress)
    with pytest.raises(InterruptedSearchError) as caught:
        patterns(request, poor(request))
    assert request.value_ns(caught.value.answer.matrix) >= caught.value.answer.bound_ns > 0


def test_an_integer_program_ends_in_time_and_by_ctrl_c() -> None:
    """Market split with 6 equations and 50 binaries, which takes HiGHS far longer than anybody waits."""
    shares = np.random.default_rng(0).integers(0, 100, (50, 6))
    entries = np.hstack([shares, np.eye(50, dtype=np.int64)]).astype(float)
    halves = (shares.sum(axis=0) // 2).astype(float)
    bounds = np.append(halves, np.zeros(50)), np.append(halves, np.ones(50))
    assert column_master._integer(entries, bounds, 0.2, 10**9) == (None, False)
    interrupter = threading.Timer(0.2, _thread.interrupt_main)
    interrupter.start()
    with pytest.raises(KeyboardInterrupt):
        column_master._integer(entries, bounds, math.inf, 10**9)
    interrupter.join()


def test_where_branching_is_cut_short_integer_programs_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FEW_NODES", 0)
    proved = set()
    for seed in range(8):
        request = gap_request(seed)
        answer = patterns(request, poor(request))
        proved.add(answer.bound)
        assert bound_of(request, answer) == request.value_ns(answer.matrix)
        assert request.value_ns(answer.matrix) == request.value_ns(patterns(request).matrix)
    assert "patterns: integer program" in proved


def test_too_many_columns_for_an_integer_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FEW_NODES", 0)
    monkeypatch.setattr(module, "MOST_COLUMNS", 1)
    for seed in range(4):
        request = gap_request(seed)
        answer = patterns(request, poor(request))
        assert bound_of(request, answer) == request.value_ns(answer.matrix)


def test_pricing_that_is_too_hard_leaves_the_base(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pattern_problem, "_MOST_PARTIAL", 1)
    monkeypatch.setattr(module, "MOST_COLUMNS", 1)
    result = place(gap_request().timing, [4] * 6, method="patterns")
    assert (result.status.bound, result.status.proved_optimal) == ("base", False)
    assert check_placement_certificate(result.certificate).valid


def test_integer_programs_know_thresholds() -> None:
    graph = StageGraph(replicas=[4], compute_s=[0])
    problem = PatternProblem(Request(timing=ContentionTime(graph=graph), free=(2, 2, 2, 2)))
    master = ColumnMaster(problem)
    both = np.array([[1], [2]])
    assert master.add(0, Columns(both, both[:, 0], both[:, 0] * 0, both[:, 0] * 0)) == 2
    assert master.add(0, Columns(both, both[:, 0], both[:, 0] * 0, both[:, 0] * 0)) == 0
    two = Threshold(0, 2)
    assert master.pick(0, math.inf, {two: (2, math.inf)}) == (((0, (2,)),) * 2, True)
    assert master.pick(0, math.inf, {two: (0, 0)}) == (((0, (1,)),) * 4, True)
    assert master.pick(0, math.inf, {two: (3, math.inf)}) == (None, True)
    master.watch(two)
    assert not master.relax(0, 1, {two: (3, math.inf)}).feasible
    assert master.relax(0, 1, {two: (0, 1)}).feasible
    assert master.relax(0, 1).feasible


def test_no_known_column_is_within_the_limit() -> None:
    problem = PatternProblem(gap_request())
    assert ColumnMaster(problem).pick(0, math.inf) == (None, True)


def test_nothing_is_printed_and_the_hash_seed_does_not_matter() -> None:
    code = (
        "import json; from frostline.timing import LinkTime, StageGraph; from frostline.placement import place\n"
        "graph = StageGraph(replicas=[3, 5, 4, 4], compute_s=[0.1] * 4, gradient_bytes=[9 * 10**8] * 4,\n"
        "                   edges={(0, 1): 10**9, (1, 2): 3 * 10**9, (2, 3): 10**9})\n"
        "print(json.dumps(place(LinkTime(graph=graph), [4] * 4, method='patterns').certificate))"
    )
    outputs = []
    for seed in "01":
        run = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        assert run.stderr == ""
        outputs.append(run.stdout)
    assert outputs[0] == outputs[1]
    assert check_placement_certificate(json.loads(outputs[0])).valid


def test_highs_is_quiet(capfd: pytest.CaptureFixture[str]) -> None:
    column_master._solver().run()
    assert capfd.readouterr() == ("", "")
