"""The policy that replays an offline schedule: the same flow and places, and nothing without the whole instance."""

from __future__ import annotations

import numpy as np
import pytest

from frostline.errors import InvalidValueError, TooLargeError, UnknownNameError
from frostline.offline import Objective, SolveResult, Termination, WorkLimit, solve
from frostline.policies import OfflineOptimal, make_policy, policy_names
from frostline.policies.offline_optimal import MOST_JOBS
from frostline.problem import (
    Cluster,
    Fixed,
    Instance,
    Job,
    Locality,
    PlacementClass,
    Profiled,
    Server,
    Training,
    TrainingPlan,
    shipped_network,
)
from frostline.scheduler import Scheduler
from frostline.simulation import Replay, run, simulate
from frostline.testing import assert_conforms, check_policy
from frostline.traces.library import load_named_instance
from frostline.verify import check_schedule


def fixed(name: str, release_s: float, duration_s: float, gpus: int, locality: str = "any") -> Job:
    return Job(id=name, release_s=release_s, work=Fixed(duration_s=duration_s), gpus=gpus, locality=locality)


def divided(seed: int) -> Instance:
    """Jobs of all localities on unequal servers, some of them slower on several servers."""
    rng = np.random.default_rng(seed)
    cluster = Cluster(servers=[Server(id=f"s{i}", gpus=int(g)) for i, g in enumerate(rng.integers(2, 5, 3))])
    jobs = []
    for i in range(7):
        locality = [*Locality][int(rng.integers(3))]
        gpus = int(rng.integers(1, (cluster.largest if locality is Locality.SERVER else 6) + 1))
        table = {PlacementClass.ONE_SERVER: 1.0, PlacementClass.MANY_SERVERS: float(rng.choice([1.0, 1.5]))}
        work = Profiled(iterations=int(rng.integers(1, 9)), seconds_per_iteration=table)
        jobs.append(Job(id=f"J{i}", release_s=float(rng.integers(0, 6)), work=work, gpus=gpus, locality=locality))
    return Instance(cluster=cluster, jobs=jobs)


@pytest.mark.parametrize("name", ["q06", "q09", "p14"])
@pytest.mark.parametrize("objective", [*Objective])
def test_it_replays_what_solve_found(name: str, objective: Objective) -> None:
    instance = load_named_instance(name)
    planned = solve(instance, objective=objective)
    result = simulate(instance, f"offline-optimal:objective={objective}")
    assert result.schedule.segments == planned.schedule.segments
    assert result.schedule.policy == f"offline-optimal:objective={objective}:work=10.0:seed=0"
    assert check_schedule(instance, result.schedule).valid


@pytest.mark.parametrize("seed", range(6))
def test_every_job_is_where_the_plan_has_it(seed: int) -> None:
    instance = divided(seed)
    planned = solve(instance, objective="flow", stop=WorkLimit(2))
    schedule = run(instance, make_policy("offline-optimal:work=2"))
    assert schedule.segments == planned.schedule.segments
    assert check_schedule(instance, schedule).valid
    flow_us = sum(schedule.completion_us.values()) - sum(round(job.release_s * 1e6) for job in instance.jobs)
    assert flow_us == planned.objective_us


def test_no_other_policy_is_better() -> None:
    instance = divided(1)
    best = simulate(instance, "offline-optimal").metrics.mean_flow_s
    for name in ("fifo", "sjf", "easy", "asrpt", "smallest-area"):
        assert best <= simulate(instance, name).metrics.mean_flow_s + 1e-9


def test_training_inside_one_server() -> None:
    plan = TrainingPlan.balanced(shipped_network("resnet50"), gpus=4, stages=1, global_batch=128)
    job = Job(id="t", release_s=1, work=Training(plan=plan, iterations=9), gpus=4, locality="server")
    instance = Instance(cluster=Cluster.uniform(2, gpus=4), jobs=[job, job.replace(id="u"), job.replace(id="v")])
    assert check_schedule(instance, simulate(instance, "offline-optimal").schedule).valid
    with pytest.raises(InvalidValueError, match="locality='any' of training work"):
        simulate(instance.replace(jobs=[job.replace(locality="any")]), "offline-optimal")


def test_jobs_that_never_fit_are_refused() -> None:
    instance = Instance(cluster=Cluster.pool(4), jobs=[fixed("x", 0, 1, 5), fixed("y", 0, 1, 4)])
    schedule = simulate(instance, "offline-optimal").schedule
    assert [refusal.job for refusal in schedule.refused] == ["x"]
    assert schedule.start_us == {"y": 0}
    assert simulate(instance.replace(jobs=instance.jobs[:1]), "offline-optimal").schedule.segments == ()
    assert simulate(instance.replace(jobs=()), "offline-optimal").schedule.segments == ()


def test_too_many_jobs_are_refused_before_anything_is_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("frostline.policies.offline_optimal.solve", lambda *_, **__: pytest.fail("was planned"))
    jobs = [fixed(f"J{i}", 0, 1, 1) for i in range(MOST_JOBS + 1)]
    with pytest.raises(TooLargeError, match="method offline-optimal would take about 2e\\+02 jobs"):
        simulate(Instance(cluster=Cluster.pool(4), jobs=jobs), "offline-optimal")


def test_it_needs_all_jobs_beforehand() -> None:
    scheduler = Scheduler(Cluster.pool(4), "offline-optimal")
    scheduler.submit(fixed("a", 0, 1, 1))
    with pytest.raises(InvalidValueError, match="job='a' is not planned: the policy must be told all jobs beforehand"):
        scheduler.advance(0)
    told = Replay(Cluster.pool(4), "offline-optimal", [fixed("a", 0, 1, 1)])
    told.submit(fixed("b", 0, 1, 1))
    with pytest.raises(InvalidValueError, match="job='b' is not planned"):
        told.advance(0)


def test_gpus_of_the_plan_that_are_not_free() -> None:
    told = Replay(Cluster.pool(4), "offline-optimal", [fixed("a", 0, 2, 4), fixed("b", 0, 3, 4)])
    told.submit(fixed("a", 0, 2, 4))
    told.submit(fixed("b", 0, 3, 4))
    assert [start.job for start in told.advance(0).starts] == ["a"]
    with pytest.raises(InvalidValueError, match="start='b' was started by the policy but does not fit"):
        told.advance(3)  # nobody has told that a has ended


def test_what_a_replay_refuses() -> None:
    with pytest.raises(InvalidValueError, match="policy='fifo' must plan a whole instance"):
        Replay(Cluster.pool(4), "fifo")
    instance = load_named_instance("q06")
    with pytest.raises(InvalidValueError, match="policy 'offline-optimal' must know the sizes"):
        simulate(instance, "offline-optimal", predictor="median")


def test_ctrl_c_while_it_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = load_named_instance("q06")
    found = solve(instance)

    def interrupted(*_: object, **__: object) -> SolveResult:
        object.__setattr__(found, "termination", Termination.INTERRUPTED)
        return found

    monkeypatch.setattr("frostline.policies.offline_optimal.solve", interrupted)
    with pytest.raises(KeyboardInterrupt):
        simulate(instance, "offline-optimal")


def test_parameters() -> None:
    assert make_policy("offline-optimal:objective=makespan:work=3:seed=4") == OfflineOptimal(
        objective="makespan", work=3, seed=4
    )
    with pytest.raises(UnknownNameError, match="unknown objective 'speed'"):
        make_policy("offline-optimal:objective=speed")
    with pytest.raises(InvalidValueError, match="work=-1"):
        make_policy("offline-optimal:work=-1")
    with pytest.raises(InvalidValueError, match="seed=-1"):
        make_policy("offline-optimal:seed=-1")


def test_it_is_listed_apart() -> None:
    assert "offline-optimal" not in policy_names()
    assert "offline-optimal" in policy_names(offline=True)
    with pytest.raises(UnknownNameError, match="did you mean 'offline-optimal'"):
        make_policy("offline-optima")


def test_it_conforms_where_it_is_told_all_jobs() -> None:
    assert_conforms("offline-optimal:work=1", scheduler=Replay, examples=40)
    report = check_policy("offline-optimal:work=1", examples=20)
    assert [outcome.rule for outcome in report.broken] == ["legal"]
    assert "must be told all jobs beforehand" in str(report)
