"""The live scheduler: events in, starts out."""

from __future__ import annotations

from typing import ClassVar

import pytest

from frostline.errors import InvalidValueError
from frostline.policies import Start, Wait, make_policy
from frostline.policies.base import Decision, View
from frostline.policies.task import Task
from frostline.problem import Cluster, Fixed, Job
from frostline.scheduler import Scheduler


def job(name: str, release_s: float, gpus: int, duration_s: float, locality: str = "any") -> Job:
    return Job(id=name, release_s=release_s, gpus=gpus, work=Fixed(duration_s=duration_s), locality=locality)


def started(scheduler: Scheduler, now_s: float) -> list[str]:
    return [start.job for start in scheduler.advance(now_s).starts]


def test_finish_comes_before_arrival_at_one_instant() -> None:
    scheduler = Scheduler(Cluster.uniform(1), "fifo")
    scheduler.submit(job("A", 0, 8, 10))
    assert started(scheduler, 0) == ["A"]
    scheduler.submit(job("B", 10, 8, 5))
    scheduler.finish("A")
    decision = scheduler.advance(10)
    assert [(start.job, start.start_s, start.end_s) for start in decision.starts] == [("B", 10.0, 15.0)]


def test_two_jobs_of_one_instant_get_different_servers() -> None:
    scheduler = Scheduler(Cluster.uniform(2), "fifo")
    scheduler.submit(job("a", 0, 8, 10))
    scheduler.submit(job("b", 0, 8, 10))
    starts = scheduler.advance(0).starts
    assert [start.placement.servers for start in starts] == [(0,), (1,)]


def test_order_of_submission_does_not_matter_within_an_instant() -> None:
    for names in (["x", "y", "z"], ["z", "x", "y"], ["y", "z", "x"]):
        scheduler = Scheduler(Cluster.pool(1), "fifo")
        for name in names:
            scheduler.submit(job(name, 0, 1, 10))
        assert started(scheduler, 0) == ["x"]
        scheduler.finish("x")
        assert started(scheduler, 10) == ["y"]


def test_numbers_in_ids_count_as_numbers() -> None:
    scheduler = Scheduler(Cluster.pool(1), "fifo")
    scheduler.submit(job("job10", 0, 1, 1))
    scheduler.submit(job("job2", 0, 1, 1))
    assert started(scheduler, 0) == ["job2"]


def test_a_job_submitted_ahead_arrives_at_its_release() -> None:
    scheduler = Scheduler(Cluster.pool(1), "fifo")
    scheduler.submit(job("later", 7, 1, 1))
    decision = scheduler.advance(0)
    assert (decision.starts, decision.wake_s) == ((), 7.0)
    assert started(scheduler, 7) == ["later"]


def test_deciding_again_changes_nothing() -> None:
    for policy in ("fifo", "sjf", "easy", "asrpt-strict", "asrpt-budget", "asrpt-guard"):
        scheduler = Scheduler(Cluster.uniform(2), policy)
        for i in range(9):
            scheduler.submit(job(f"j{i}", 0, 3, 10 + i))
        scheduler.advance(3)
        assert all(scheduler.decide().starts == () for _ in range(100))


def test_strict_virtual_order_asks_to_be_woken() -> None:
    scheduler = Scheduler(Cluster.pool(8), "asrpt-strict")
    scheduler.submit(job("a", 0, 4, 10))
    decision = scheduler.advance(0)
    assert (decision.starts, decision.wake_s) == ((), 5.0)
    assert started(scheduler, 5) == ["a"]


def test_job_that_never_fits_is_refused_and_the_rest_goes_on() -> None:
    scheduler = Scheduler(Cluster.uniform(2), "fifo")
    refusal = scheduler.submit(job("X", 0, 17, 1))
    assert refusal is not None
    assert refusal.text == "job 'X': gpus=17 but the whole cluster has 16"
    assert scheduler.submit(job("S", 0, 9, 1, "server")) is not None
    assert scheduler.submit(job("Y", 0, 8, 10)) is None
    assert started(scheduler, 0) == ["Y"]


def test_nothing_runs_on_no_servers() -> None:
    scheduler = Scheduler(Cluster(servers=()), "asrpt-budget")
    refusal = scheduler.submit(job("a", 0, 1, 1))
    assert refusal is not None
    assert refusal.largest_offer_gpus == 0
    assert scheduler.advance(0).starts == ()


def test_bad_calls_are_refused_and_leave_the_state_whole() -> None:
    scheduler = Scheduler(Cluster.pool(1), "fifo")
    scheduler.submit(job("a", 0, 1, 10))
    with pytest.raises(InvalidValueError, match="was submitted before"):
        scheduler.submit(job("a", 5, 1, 1))
    with pytest.raises(InvalidValueError, match="'a' is not a running job"):
        scheduler.finish("a")
    assert started(scheduler, 5) == ["a"]
    with pytest.raises(InvalidValueError, match="lies before the present"):
        scheduler.advance(4)
    scheduler.finish("a")
    with pytest.raises(InvalidValueError, match="is not a running job"):
        scheduler.finish("a")
    scheduler.submit(job("b", 5, 1, 1))
    assert started(scheduler, 6) == ["b"]


def test_a_job_may_outlive_its_expected_end() -> None:
    scheduler = Scheduler(Cluster.pool(2), "easy")
    scheduler.submit(job("long", 0, 2, 10))
    scheduler.submit(job("gang", 1, 2, 10))
    scheduler.submit(job("thin", 1, 1, 1))
    assert started(scheduler, 1) == ["long"]
    assert started(scheduler, 50) == []
    scheduler.finish("long")
    assert started(scheduler, 60) == ["gang"]


class Careless:
    """A policy that starts its first task whether or not it fits."""

    name = "careless"
    parameters: ClassVar[dict[str, object]] = {}
    uses_virtual_machine = False

    def priority(self, task: Task) -> int:
        return task.number

    def decide(self, view: View) -> Decision:
        first = view.waiting.first
        return Wait() if first is None else Start(first)


def test_a_careless_policy_cannot_book_a_gpu_twice() -> None:
    scheduler = Scheduler(Cluster.pool(1), Careless())
    scheduler.submit(job("a", 0, 1, 10))
    scheduler.submit(job("b", 0, 1, 10))
    with pytest.raises(InvalidValueError, match="policy 'careless': start='b' was started by the policy but does not"):
        scheduler.advance(0)


def test_budget_without_expected_jobs_is_nothing() -> None:
    policy = make_policy("asrpt-budget:share=1")
    blind = Scheduler(Cluster.pool(8), policy)
    told = Scheduler(Cluster.pool(8), policy, expected=[job("a", 0, 4, 10)])
    for scheduler in (blind, told):
        scheduler.submit(job("a", 0, 4, 10))
    assert started(blind, 0) == []
    assert started(told, 0) == ["a"]
