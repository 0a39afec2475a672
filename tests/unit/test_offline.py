"""The offline optimum by hand: known values, limits, claims that are not believed, explanations."""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.offline import (
    METHODS,
    AnyOf,
    Callback,
    GapLimit,
    Option,
    SearchState,
    Termination,
    TimeLimit,
    TooLargeError,
    WorkLimit,
    solve,
)
from frostline.offline.check import faults
from frostline.offline.cpsat import IntervalModel
from frostline.offline.improve import heuristics
from frostline.offline.search import Search
from frostline.offline.tasks import Mode, Objective, Problem, Run, Task
from frostline.offline.watch import watched
from frostline.placement.solvers import SOLVERS, MipAnswer, Outcome
from frostline.problem import (
    Cluster,
    Elastic,
    Fixed,
    GpuType,
    Instance,
    Job,
    Placement,
    Profiled,
    Schedule,
    Segment,
    Server,
    Training,
    TrainingPlan,
    shipped_network,
)
from frostline.simulation import simulate
from frostline.traces.library import load_named_instance
from frostline.verify import check_schedule

# The package has functions of the same names.
brute_force_module, cpsat_module, explain_module, milp_module, solve_module = (
    import_module(f"frostline.offline.{name}") for name in ("brute_force", "cpsat", "explain", "milp", "solve")
)
PATH = os.pathsep.join([str(Path(__file__).parent), *sys.path])
EXACT = ("brute-force", "cpsat", "milp-cbc", "milp-highs")


def fixed(name: str, release_s: float, duration_s: float, gpus: int, **fields) -> Job:
    return Job(id=name, release_s=release_s, work=Fixed(duration_s=duration_s), gpus=gpus, **fields)


def crowd(jobs: int = 25, seed: int = 1, gpus: int = 8) -> Instance:
    """Too much for a proof in a second."""
    rng = np.random.default_rng(seed)
    drawn = [
        fixed(f"J{i}", float(rng.integers(0, jobs)), float(rng.integers(1, 21)), int(rng.integers(1, gpus + 1)))
        for i in range(jobs)
    ]
    return Instance(cluster=Cluster.pool(gpus), jobs=drawn)


def tiny() -> Instance:
    return Instance(cluster=Cluster.pool(8), jobs=[fixed("a", 0, 10, 8), fixed("b", 1, 2, 4), fixed("c", 1, 3, 6)])


# Known values.


@pytest.mark.parametrize("method", EXACT)
@pytest.mark.parametrize(("name", "flow_s"), [("q06", 135.0), ("q09", 17.0), ("p14", 30.0)])
def test_known_optima(method, name, flow_s):
    result = solve(load_named_instance(name), objective="flow", method=method)
    assert (result.objective, result.bound, result.status) == (flow_s, flow_s, "optimal")
    assert check_schedule(result.instance, result.schedule).valid


@pytest.mark.parametrize("method", EXACT)
def test_the_refuted_formula(method):
    """The optimum of the counterexample to SRPT plus half of the difference."""
    jobs = [fixed("wide0", 0, 1, 3), fixed("long", 0, 4, 1), *(fixed(f"w{i}", i, 1, 3) for i in (1, 2, 3))]
    result = solve(Instance(cluster=Cluster.pool(4), jobs=jobs), method=method)
    assert (result.objective, result.status) == (14.0, "optimal")


@pytest.mark.parametrize("method", EXACT)
def test_objectives_and_offsets(method):
    """Releases may be negative; completion is flow plus releases; makespan counts from the first release."""
    jobs = [fixed("a", -5, 4, 8), fixed("b", -4.5, 0.5, 8)]
    instance = Instance(cluster=Cluster.pool(8), jobs=jobs)
    found = {goal: solve(instance, objective=goal, method=method).objective for goal in Objective}
    assert found == {"completion": -4, "flow": 5.5, "makespan": 4.5}


@pytest.mark.parametrize("method", EXACT)
def test_servers_divide_the_pool(method):
    """Two GPUs are free on each server, but four in one are not."""
    jobs = [fixed("a", 0, 10, 2, locality="server"), fixed("b", 0, 10, 2, locality="server"), fixed("c", 0, 1, 4)]
    instance = Instance(cluster=Cluster.uniform(2, gpus=4), jobs=jobs)
    one_server = instance.replace(jobs=[job.replace(locality="server") for job in jobs])
    assert solve(instance, objective="flow", method=method).objective == 21
    apart = solve(one_server, objective="flow", method=method)
    assert apart.objective == 21  # a and b share a server
    wide = one_server.replace(jobs=[*one_server.jobs, fixed("d", 0, 1, 3, locality="server")])
    pool = solve(wide, objective="flow", method=method, variant="pool")
    servers = solve(wide, objective="flow", method=method)
    assert (pool.objective, servers.objective) == (23, 23)
    assert pool.instance.cluster.capacities == (8,)
    assert check_schedule(pool.instance, pool.schedule).valid
    assert check_schedule(wide, servers.schedule).valid


@pytest.mark.parametrize("method", EXACT)
def test_slower_on_several_servers(method):
    """The others share a server, so that the slow one need not spread."""
    table = {"one_server": 1.0, "many_servers": 3.0}
    work = Profiled(iterations=10, seconds_per_iteration=table)
    jobs = [fixed("a", 0, 5, 2, locality="server"), fixed("b", 0, 8, 2, locality="server")]
    spread = Job(id="c", release_s=0, work=work, gpus=3)
    instance = Instance(cluster=Cluster.uniform(2, gpus=3), jobs=[*jobs, spread])
    result = solve(instance, objective="makespan", method=method)
    assert result.objective == 13
    assert len(next(s for s in result.schedule.segments if s.job == "c").placement.servers) == 1
    fast = instance.replace(jobs=[*jobs, spread.replace(work=Profiled(iterations=1, seconds_per_iteration=table))])
    assert check_schedule(fast, solve(fast, method=method).schedule).valid


# Options.


@pytest.mark.parametrize("method", EXACT)
def test_options_and_penalties(method):
    instance = Instance(cluster=Cluster.pool(4), jobs=[fixed("a", 0, 8, 2), fixed("b", 0, 8, 2)])
    wide = [Option(gpus=2, duration_s=8), Option(gpus=4, duration_s=3)]
    result = solve(instance, objective="flow", method=method, options={"a": wide, "b": wide})
    assert result.objective == 9  # one after the other on all GPUs
    assert [job.gpus for job in result.instance.jobs] == [4, 4]
    assert check_schedule(result.instance, result.schedule).valid
    dear = [wide[0], Option(gpus=4, duration_s=3, penalty_s=6)]
    paid = solve(instance, objective="flow", method=method, options={"a": dear, "b": dear})
    assert (paid.objective, paid.status) == (16, "optimal")
    assert [job.gpus for job in paid.instance.jobs] == [2, 2]


@pytest.mark.parametrize("method", EXACT)
def test_widths_of_elastic_jobs(method):
    table = {"one_server": {1: (4.0,), 2: (1.5,)}}
    work = Elastic(iterations=2, widths=[1, 2], seconds_per_iteration=table)
    jobs = [Job(id=name, release_s=0, work=work, gpus=1) for name in "ab"]
    instance = Instance(cluster=Cluster.pool(2), jobs=jobs)
    assert solve(instance, objective="flow", method=method).objective == 16
    free = solve(instance, objective="flow", method=method, widths=True)
    assert (free.objective, free.status) == (3 + 6, "optimal")
    assert check_schedule(free.instance, free.schedule).valid


def test_an_option_that_never_fits_is_left_out():
    instance = Instance(cluster=Cluster.pool(4), jobs=[fixed("a", 0, 8, 9)])
    some = solve(instance, options={"a": [Option(gpus=9, duration_s=1), Option(gpus=4, duration_s=2)]})
    assert some.objective == 2
    none = solve(instance, options={"a": [Option(gpus=9, duration_s=1)]})
    assert (none.status, none.schedule) == ("infeasible", None)


@pytest.mark.parametrize(
    ("options", "word"), [({"x": [Option(gpus=1, duration_s=1)]}, "'x'"), ({"a": []}, "empty")], ids=["who", "none"]
)
def test_bad_options(options, word):
    with pytest.raises(InvalidValueError, match=word):
        solve(tiny(), options=options)


# Training work.


def training(locality: str, gpus: int = 4) -> Job:
    plan = TrainingPlan.balanced(shipped_network("resnet50"), gpus=gpus, stages=1, global_batch=128)
    return Job(id="t", release_s=0, work=Training(plan=plan, iterations=100), gpus=gpus, locality=locality)


@pytest.mark.parametrize("method", ["brute-force", "cpsat"])
def test_training_inside_one_server(method):
    """On two types of GPU the faster one is worth a wait that is short enough."""
    slow, fast = (
        Server(id=name, gpus=4, gpu_type=kind) for name, kind in [("slow", _type(1e13)), ("fast", _type(1e14))]
    )
    cluster = Cluster(servers=(slow, fast))
    instance = Instance(cluster=cluster, jobs=[training("server"), training("server").replace(id="u")])
    result = solve(instance, objective="flow", method=method)
    assert (result.status, len(result.schedule.segments)) == ("optimal", 2)
    assert {s.placement.servers for s in result.schedule.segments} == {(1,)}
    assert check_schedule(instance, result.schedule).valid


def _type(flops: float) -> GpuType:
    return GpuType(name=f"g{flops:g}", peak_flops={"fp16": flops})


def test_training_runs_on_types_with_its_precision():
    other = GpuType(name="old", peak_flops={"fp32": 1e15})
    servers = (Server(id="old", gpus=4, gpu_type=other), Server(id="new", gpus=4, gpu_type=_type(1e13)))
    result = solve(Instance(cluster=Cluster(servers=servers), jobs=[training("server")]), objective="flow")
    assert (result.status, result.schedule.segments[0].placement.servers) == ("optimal", (1,))


def test_training_that_may_spread_is_refused():
    with pytest.raises(InvalidValueError, match=r"job 't': locality='any' of training work must be 'server'"):
        solve(Instance(cluster=Cluster.uniform(2, gpus=4), jobs=[training("any")]))
    with pytest.raises(InvalidValueError, match="depends on the placement"):
        solve(Instance(cluster=Cluster.uniform(2, gpus=4), jobs=[training("fewest", 8)]))
    assert solve(Instance(cluster=Cluster.uniform(1, gpus=4), jobs=[training("any")])).status == "optimal"


def test_training_on_a_pool_of_several_types_is_refused():
    servers = (Server(id="a", gpus=4, gpu_type=_type(1e13)), Server(id="b", gpus=4, gpu_type=_type(1e14)))
    with pytest.raises(InvalidValueError, match="one type"):
        solve(Instance(cluster=Cluster(servers=servers), jobs=[training("server")]), variant="pool")


# Nothing, too much, impossible.


@pytest.mark.parametrize("method", [*METHODS])
def test_no_jobs(method):
    for servers in (0, 2):
        result = solve(Instance(cluster=Cluster.uniform(servers), jobs=()), method=method, objective="makespan")
        assert (result.status, result.objective, result.bound) == ("optimal", 0.0, 0.0)
        assert result.schedule.segments == ()


def test_jobs_that_never_fit_are_refused_and_explained():
    instance = Instance(cluster=Cluster.uniform(2), jobs=[fixed("x", 0, 1, 17), fixed("y", 0, 1, 9, locality="server")])
    result = solve(instance)
    assert (result.status, result.schedule, result.objective) == ("infeasible", None, None)
    assert [one.text for one in result.explanations] == [
        "job 'x': gpus=17 but the whole cluster has 16",
        "job 'y': gpus=9 but the largest server has 8",
    ]
    some = solve(instance.replace(jobs=[*instance.jobs, fixed("z", 0, 1, 1)]))
    assert (some.status, len(some.schedule.refused), len(some.explanations)) == ("optimal", 2, 2)
    assert check_schedule(some.instance, some.schedule).valid


def test_no_servers():
    assert solve(Instance(cluster=Cluster.uniform(0), jobs=[fixed("a", 0, 1, 1)])).status == "infeasible"


@pytest.mark.parametrize(
    ("name", "value"),
    [("objective", "speed"), ("method", "cpsatt"), ("variant", "cloud")],
    ids=["goal", "how", "where"],
)
def test_unknown_names(name, value):
    with pytest.raises(UnknownNameError, match=value):
        solve(tiny(), **{name: value})


def test_size_is_estimated_before_anything_is_built():
    rng = np.random.default_rng(0)
    jobs = [
        fixed(f"J{i}", i % 7, int(rng.integers(1, 10**6)), int(rng.integers(1, 9)), locality="server")
        for i in range(300)
    ]
    instance = Instance(cluster=Cluster.uniform(100), jobs=jobs)
    for method, what in [("cpsat", "intervals"), ("milp", "non-zeros"), ("brute-force", "steps")]:
        with pytest.raises(TooLargeError, match=what):
            solve(instance, method=method, stop=WorkLimit(0))
    result = solve(instance, stop=WorkLimit(0.5))
    assert result.status == "feasible"
    assert check_schedule(instance, result.schedule).valid


def test_too_long_for_the_step():
    jobs = [fixed("a", 0, 1e-6, 8), fixed("b", 8.9e9, 8.9e9, 8)]
    with pytest.raises(InvalidValueError, match="too large a horizon for a time step of 1 µs"):
        solve(Instance(cluster=Cluster.pool(8), jobs=jobs))


# Limits and incumbents.


@pytest.mark.parametrize("limit_s", [0, 1e-6, 0.01])
@pytest.mark.parametrize("method", ["auto", "cpsat", "milp-cbc", "milp-highs"])
def test_a_schedule_in_no_time(limit_s, method):
    instance = crowd(30)
    result = solve(instance, objective="flow", method=method, stop=TimeLimit(limit_s))
    assert (result.status, result.termination) == ("feasible", "time_limit")
    assert 0 < result.gap < 1
    assert check_schedule(instance, result.schedule).valid


@pytest.mark.parametrize("method", ["auto", "list", "cpsat", "milp"])
def test_never_worse_than_a_hint(method):
    instance = crowd(20)
    best = solve(instance, objective="flow", stop=WorkLimit(0.3))
    for stop in (TimeLimit(0), TimeLimit(0.5)):
        result = solve(instance, objective="flow", method=method, stop=stop, hints=[best.schedule])
        assert result.objective_us <= best.objective_us
    first = solve(instance, objective="flow", stop=TimeLimit(0), hints=[best.schedule])
    assert first.source == "hint"


def test_hints_of_the_simulator():
    instance = crowd(20).replace(cluster=Cluster.uniform(2, gpus=4))
    for name in ("sjf", "easy", "asrpt"):
        schedule = simulate(instance, name).schedule
        flow_us = sum(schedule.completion_us.values())
        result = solve(instance, stop=TimeLimit(0), hints=[schedule])
        assert result.objective_us <= flow_us
        assert check_schedule(instance, result.schedule).valid
        pool = solve(instance, variant="pool", stop=TimeLimit(0), hints=[schedule])
        assert pool.objective_us <= flow_us


def test_a_hint_of_other_speeds_gives_its_order():
    instance = tiny()
    gang = Placement([(0, (1,))])
    hint = Schedule(segments=[Segment(name, at, at + 7, gang) for name, at in [("b", 0), ("c", 9), ("a", 99)]])
    assert solve(instance, hints=[hint], method="list", stop=TimeLimit(0)).status != "unknown"


@pytest.mark.parametrize(
    ("segments", "word"),
    [([("a", 0, 5)], "'b' does not run"), ([("a", 0, 5), ("a", 6, 9), ("b", 0, 1)], "'a' runs in several")],
    ids=["missing", "pieces"],
)
def test_bad_hints(segments, word):
    gang = Placement([(0, (8,))])
    hint = Schedule(segments=[Segment(*segment, gang) for segment in segments])
    with pytest.raises(InvalidValueError, match=word):
        solve(tiny(), hints=[hint])


def test_a_gap_is_no_proof():
    result = solve(crowd(), objective="flow", stop=GapLimit(0.9))
    assert (result.status, result.termination) == ("feasible", "gap")
    assert 0 < result.gap <= 0.9


def test_asked_to_stop_is_no_proof():
    states: list[SearchState] = []
    result = solve(crowd(), objective="flow", stop=Callback(lambda state: bool(states)), on_progress=states.append)
    assert (result.status, result.termination) == ("feasible", "callback")
    assert states[0].objective_us >= result.objective_us


def test_stopped_while_the_solver_runs():
    begun = time.perf_counter()
    result = solve(crowd(40), objective="flow", stop=Callback(lambda state: state.runtime_s > 2.5))
    assert (result.status, result.termination) == ("feasible", "callback")
    assert time.perf_counter() - begun < 60


@pytest.mark.parametrize("method", ["cpsat", "milp", "list", "brute-force"])
def test_an_error_of_the_callback_reaches_the_caller(method):
    def fail(state: SearchState) -> None:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        solve(tiny(), method=method, on_progress=fail)


def test_an_error_of_the_rule_stops_the_solver():
    calls = []

    def fail(state: SearchState) -> bool:
        calls.append(state)
        if state.runtime_s > 2:
            raise ZeroDivisionError("mine")
        return False

    with pytest.raises(ZeroDivisionError, match="mine"):
        solve(crowd(40), objective="flow", stop=fail)
    assert calls


def test_rules_are_checked():
    with pytest.raises(InvalidValueError, match="seconds=-1"):
        TimeLimit(-1)
    with pytest.raises(InvalidValueError, match="gap=2"):
        GapLimit(2)
    with pytest.raises(InvalidValueError, match="callable"):
        AnyOf(3)  # type: ignore[arg-type]


def test_equal_calls_have_equal_results():
    def once() -> tuple[object, ...]:
        result = solve(crowd(16), objective="flow", stop=WorkLimit(0.3))
        return result.schedule, result.bound_us, result.source, result.termination

    assert once() == once() == once()


def test_equal_results_in_every_process():
    code = """
        import test_offline
        from frostline.offline import WorkLimit, solve
        result = solve(test_offline.crowd(14), objective="flow", stop=WorkLimit(0.2))
        print(result.bound_us, [(s.job, s.start_us) for s in result.schedule.segments])
    """
    found = set()
    for seed in "012":
        environment = dict(os.environ, PYTHONHASHSEED=seed, PYTHONPATH=PATH)
        command = [sys.executable, "-c", textwrap.dedent(code)]
        found.add(subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout)
    assert len(found) == 1


def test_a_model_is_solved_twice_with_two_hints():
    tasks = (Task(0, (Mode(8, 10),)), Task(0, (Mode(4, 2),)))
    problem = Problem((8,), tasks, Objective.FLOW)
    model = IntervalModel(problem)
    for _ in range(2):
        search = Search(problem)
        heuristics(search)
        model.hint(search.plan)
        cpsat_module._Solve(model, search).run()
        assert search.closed


def test_ctrl_c_returns_the_best_so_far():
    code = """
        import test_offline
        from frostline.offline import TimeLimit, solve
        print("begin", flush=True)
        result = solve(test_offline.crowd(40), objective="flow", stop=TimeLimit(120))
        print(result.status.value, result.termination.value, result.schedule is not None)
    """
    environment = dict(os.environ, PYTHONPATH=PATH)
    command = [sys.executable, "-c", textwrap.dedent(code)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout.readline() == "begin\n"
    time.sleep(4)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert output == "feasible interrupted True\n"


# Claims that are not believed.


@pytest.mark.parametrize("status", ["INFEASIBLE", "MODEL_INVALID"])
def test_infeasible_is_not_believed(monkeypatch, caplog, tmp_path, status):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    tasks = (Task(0, (Mode(8, 10),)), Task(0, (Mode(4, 2),)))
    search = Search(Problem((8,), tasks, Objective.FLOW))
    heuristics(search)
    before = search.plan
    with caplog.at_level(logging.ERROR, "frostline.offline"):
        cpsat_module._Solve(IntervalModel(search.problem), search)._conclude(status)
    assert (search.plan, search.infeasible, search.closed) == (before, False, False)
    assert "not believed" in caplog.text
    (model,) = tmp_path.iterdir()
    assert model.stat().st_size


def test_wrong_plans_and_bounds_are_left_out(caplog):
    tasks = (Task(3, (Mode(8, 10),)), Task(0, (Mode(4, 2),)))
    search = Search(Problem((8,), tasks, Objective.FLOW))
    heuristics(search)
    value, plan = search.value, search.plan
    with caplog.at_level(logging.ERROR, "frostline.offline"):
        assert not search.offer(tuple(run._replace(start=0) for run in plan), "cpsat")
        assert not search.prove(value + 1, "cpsat")
    assert (search.value, search.plan) == (value, plan)
    assert "breaks a rule" in caplog.text
    assert "above a plan" in caplog.text


# Deadlines.


@pytest.mark.parametrize("method", EXACT)
def test_a_deadline_changes_the_order(method):
    free = solve(tiny(), objective="flow", method=method)
    assert max(free.schedule.completion_us, key=free.schedule.completion_us.get) == "a"
    due = solve(tiny(), objective="flow", method=method, deadlines_s={"a": 10})
    assert due.status == "optimal"
    assert due.schedule.completion_us["a"] == 10_000_000
    assert due.objective > free.objective


def test_a_deadline_of_one_job():
    result = solve(tiny(), deadlines_s={"a": 9, "b": 100})
    assert (result.status, result.schedule) == ("infeasible", None)
    (family,) = result.explanations
    assert (family.jobs, family.proof, [*family.kinds]) == (("a",), "arithmetic", ["deadline"])
    assert "job 'a' runs for at least 10 s" in family.text


def test_more_work_than_gpus():
    jobs = [fixed("a", 0, 4, 4), fixed("b", 0, 4, 4), fixed("c", 1, 3, 8), fixed("d", 0, 1, 1)]
    result = solve(Instance(cluster=Cluster.pool(8), jobs=jobs), deadlines_s=dict.fromkeys("abcd", 5.5))
    (family,) = result.explanations
    assert (result.status, family.proof) == ("infeasible", "arithmetic")
    assert family.jobs == ("a", "c")  # ends are whole seconds, so that the deadline is as good as 5 s
    assert [*family.kinds] == ["capacity", "deadline"]
    assert "need 36 GPU-seconds from 1 s to 5 s, but 8 GPUs have 32" in family.text
    assert "multiples of 1 s" in family.text
    smaller = Instance(cluster=Cluster.pool(8), jobs=[job for job in jobs if job.id != "c"])
    assert solve(smaller, deadlines_s=dict.fromkeys("abd", 5.5)).status == "optimal"


def clash() -> Instance:
    """Three gangs of three GPUs, of which only two fit at once; there is work for less than all GPUs."""
    return Instance(cluster=Cluster.pool(8), jobs=[fixed(name, 0, 4, 3) for name in "abc"] + [fixed("d", 0, 1, 1)])


@pytest.mark.parametrize("method", EXACT)
def test_a_family_that_only_a_search_finds(method):
    result = solve(clash(), method=method, deadlines_s=dict.fromkeys("abcd", 6))
    assert (result.status, result.schedule, result.termination) == ("infeasible", None, "complete")
    (family,) = result.explanations
    assert (family.jobs, family.proof) == (("a", "b", "c"), "brute-force")
    assert solve(clash(), method=method, deadlines_s=dict.fromkeys("abcd", 8)).status == "optimal"


def test_a_family_that_brute_force_refutes_is_not_believed(monkeypatch, caplog):
    monkeypatch.setattr(explain_module, "_impossible", lambda problem: True)
    with caplog.at_level(logging.ERROR, "frostline.offline"):
        case = _case(clash(), dict.fromkeys("abcd", 8.0))
        assert explain_module.isolated(case) is None
    assert "not believed" in caplog.text


def _case(instance: Instance, deadlines_s: dict[str, float]):
    from frostline.offline.build import case_of

    return case_of(instance, Objective.FLOW, {}, deadlines_s)


def test_a_precision_that_no_server_has_or_none_that_is_large_enough():
    old = Server(id="old", gpus=4, gpu_type=GpuType(name="old", peak_flops={"fp32": 1e15}))
    small = Server(id="new", gpus=2, gpu_type=_type(1e13))
    jobs = [training("server"), fixed("f", 0, 5, 1)]
    for servers, kinds, text in (
        ((old,), ["type"], "precision 'fp16' is none of GPU type 'old', and the cluster has no other"),
        ((old, small), ["capacity", "type"], "with precision 'fp16', but the largest such server has 2"),
    ):
        result = solve(Instance(cluster=Cluster(servers=servers), jobs=jobs))
        assert (result.status, result.schedule, result.termination) == ("infeasible", None, "complete")
        (family,) = result.explanations
        assert (family.jobs, [*family.kinds], family.proof) == (("t",), kinds, "arithmetic")
        assert text in family.text


def two_types(fast_gpus: int) -> Instance:
    """Two training jobs of four GPUs on a slow and a fast server."""
    slow, fast = Server(id="slow", gpus=4, gpu_type=_type(1e13)), Server(id="fast", gpus=4, gpu_type=_type(1e14))
    cluster = Cluster(servers=(slow, fast if fast_gpus == 4 else Server(id="fast", gpus=2, gpu_type=_type(1e14))))
    return Instance(cluster=cluster, jobs=[training("server"), training("server").replace(id="u")])


def test_a_deadline_that_only_a_server_too_small_could_meet():
    fast_s, slow_s = (seconds_on(server) for server in ("fast", "slow"))
    assert fast_s < slow_s
    (family,) = solve(two_types(2), deadlines_s={"t": (fast_s + slow_s) / 2}).explanations
    assert (family.jobs, [*family.kinds]) == (("t",), ["capacity", "deadline", "type"])
    assert "server 'fast' of GPU type 'g1e+14' is fast enough, but has 2 of the 4 GPUs" in family.text
    (family,) = solve(two_types(2), deadlines_s={"t": fast_s / 2}).explanations
    assert [*family.kinds] == ["deadline"]


def seconds_on(server: str) -> float:
    """Run time of a training job alone on one of the two servers."""
    instance = two_types(4)
    servers = [one for one in instance.cluster.servers if one.id == server]
    return solve(instance.replace(cluster=Cluster(servers=servers), jobs=instance.jobs[:1]), objective="flow").objective


def test_deadlines_that_types_exclude():
    """Both meet the deadline on the fast server alone, one after the other on it they do not."""
    fast_s, slow_s = (seconds_on(server) for server in ("fast", "slow"))
    due_s = min(1.5 * fast_s, 0.9 * slow_s)
    (family,) = solve(two_types(4), deadlines_s={"t": due_s, "u": due_s}).explanations
    assert (family.jobs, [*family.kinds]) == (("t", "u"), ["capacity", "deadline", "type"])
    assert "were all servers of the GPU type that is best for each" in family.text
    assert solve(two_types(4), deadlines_s={"t": due_s, "u": max(slow_s, 2 * fast_s)}).status == "optimal"


def test_deadlines_that_types_do_not_matter_for():
    """Three of the jobs need more GPU-time than all eight GPUs have, were all of them of the fast type."""
    instance = two_types(4)
    crowd = instance.replace(jobs=[instance.jobs[0].replace(id=name) for name in "tuvw"])
    due_s = min(1.4 * seconds_on("fast"), 0.9 * seconds_on("slow"))
    (family,) = solve(crowd, deadlines_s=dict.fromkeys("tuvw", due_s)).explanations
    assert (family.jobs, [*family.kinds]) == (("t", "u", "v"), ["capacity", "deadline"])


def test_deadlines_of_unknown_jobs():
    with pytest.raises(InvalidValueError, match="'x' is not the id of a job"):
        solve(tiny(), deadlines_s={"x": 1})


# What ends a search.


def pair() -> Search:
    """Two tasks, 14 at best."""
    return Search(Problem((8,), (Task(0, (Mode(8, 10),)), Task(0, (Mode(4, 2),))), Objective.FLOW))


def test_ctrl_c_in_the_caller_stops_the_run():
    stopped, asked = threading.Event(), []

    def ask() -> bool:
        asked.append(None)
        if len(asked) == 1:
            raise KeyboardInterrupt
        return False

    assert watched(lambda: stopped.wait(30), stopped.set, ask)
    assert stopped.is_set()


def test_errors_of_a_run_are_raised_here():
    def fail() -> None:
        raise ZeroDivisionError("inside")

    with pytest.raises(ZeroDivisionError, match="inside"):
        watched(fail, lambda: None, lambda: False)


def interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("brute-force", (brute_force_module._Tree, "best")),
        ("milp", (milp_module, "solve_mip")),
        ("auto", (solve_module, "local_search")),
    ],
)
def test_ctrl_c_in_any_part(monkeypatch, method, target):
    module, name = target
    monkeypatch.setattr(module, name, interrupt)
    result = solve(load_named_instance("q06"), objective="flow", method=method, stop=WorkLimit(50))
    assert (result.termination, result.status) == ("interrupted", "feasible")
    assert check_schedule(result.instance, result.schedule).valid


def test_brute_force_listens_to_the_rule():
    search = pair()
    heuristics(search)
    stopping = Search(search.problem, lambda state: True)
    brute_force_module.brute_force(stopping)
    assert (stopping.termination, stopping.plan) == (Termination.CALLBACK, None)


@pytest.mark.parametrize("outcome", [Outcome.INFEASIBLE, Outcome.INVALID_MODEL, Outcome.NOTHING_FOUND, Outcome.OPTIMAL])
def test_claims_of_a_linear_solver(monkeypatch, caplog, outcome):
    answer = MipAnswer(outcome=outcome, interrupted=True)
    monkeypatch.setattr(milp_module, "solve_mip", lambda *_: (answer, SOLVERS[0]))
    monkeypatch.setattr(milp_module.TimeIndexedModel, "plan", lambda *_: ())
    search = pair()
    heuristics(search)
    with caplog.at_level(logging.ERROR, "frostline.offline"):
        milp_module.milp(search)
    assert (search.infeasible, search.closed, search.value) == (False, False, 14)
    assert search.termination is Termination.INTERRUPTED
    expected = {Outcome.OPTIMAL: "breaks a rule", Outcome.NOTHING_FOUND: ""}.get(outcome, "not believed")
    assert expected in caplog.text


def test_auto_without_an_exact_method(monkeypatch):
    monkeypatch.setattr(solve_module, "MOST_INTERVALS", 3)
    result = solve(crowd(12), objective="flow")
    assert (result.status, result.termination) == ("feasible", "too_large")


def test_a_plan_below_a_bound_drops_the_bound(caplog):
    search = pair()
    search.prove(99, "wrong")
    with caplog.at_level(logging.ERROR, "frostline.offline"):
        heuristics(search)
    assert (search.value, search.bound) == (14, 0)
    assert "below the bound 99 of wrong" in caplog.text


@pytest.mark.parametrize(
    ("runs", "text"),
    [
        ([Run(0, 0, ((0, 4),))], "1 runs of 2 tasks"),
        ([Run(7, 0, ((0, 4),)), Run(0, 9, ((1, 2),))], "task 0 has no mode 7"),
        ([Run(0, 1, ((0, 4),)), Run(0, 9, ((1, 2),))], "before its release at 2"),
        ([Run(0, 3, ((0, 4),)), Run(0, 9, ((1, 2),))], "after its deadline at 5"),
        ([Run(0, 2, ((0, 3),)), Run(0, 9, ((1, 2),))], r"may not hold \(\(0, 3\),\)"),
        ([Run(0, 2, ((0, 2), (1, 2))), Run(0, 9, ((1, 2),))], "task 0 may not hold"),
        ([Run(0, 2, ((0, 4),)), Run(0, 4, ((0, 2),))], "server 0 holds 6 of its 4 GPUs at 4"),
    ],
)
def test_the_own_check(runs, text):
    tasks = (Task(2, (Mode(4, 3, (0, 1)),), 5), Task(0, (Mode(2, 1, (0, 1)),)))
    found = [*faults(Problem((4, 4), tasks, Objective.FLOW), tuple(runs))]
    assert re.search(text, found[0])
    assert len(found) == 1
