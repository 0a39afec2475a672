"""The live scheduler: events in, starts out."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import ClassVar

import pytest

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.policies import Start, Wait, make_policy
from frostline.policies.base import Decision, View
from frostline.policies.task import Task
from frostline.prediction import OnlinePredictor
from frostline.problem import Cluster, Fixed, GpuType, Job, Network, Profiled, Training, TrainingPlan, Work
from frostline.problem.network import Layer
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


def test_the_earlier_of_release_and_virtual_completion_wakes() -> None:
    for release_s, wake_s in ((100, 5.0), (2, 2.0)):
        scheduler = Scheduler(Cluster.pool(8), "asrpt-strict")
        scheduler.submit(job("a", 0, 4, 10))
        scheduler.submit(job("later", release_s, 1, 1))
        assert scheduler.advance(0).wake_s == wake_s


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


def test_who_runs_or_has_ended_cannot_be_withdrawn() -> None:
    scheduler = Scheduler(Cluster.uniform(1), "fifo")
    for name in "abc":
        scheduler.submit(job(name, 0, 8, 10))
    scheduler.submit(job("late", 50, 8, 10))
    scheduler.advance(0)
    with pytest.raises(InvalidValueError, match=r"withdraw='a'.*waits or is yet to arrive"):
        scheduler.withdraw("a")
    scheduler.finish("a")
    scheduler.advance(10)
    for name in ("a", "nobody"):
        with pytest.raises(InvalidValueError, match="waits or is yet to arrive"):
            scheduler.withdraw(name)
    scheduler.withdraw("c")
    scheduler.withdraw("late")
    with pytest.raises(InvalidValueError, match="withdraw='c'"):
        scheduler.withdraw("c")
    assert scheduler.waiting == ("c",)
    decision = scheduler.advance(11)
    assert (scheduler.waiting, decision.starts, decision.wake_s) == ((), (), None)
    with pytest.raises(InvalidValueError, match="was submitted before"):
        scheduler.submit(job("c", 11, 8, 10))


def test_a_withdrawn_job_is_no_longer_due() -> None:
    scheduler = Scheduler(Cluster.uniform(1), "asrpt-strict")
    for name, seconds in (("a", 10), ("b", 20), ("c", 30)):
        scheduler.submit(job(name, 0, 8, seconds))
    scheduler.advance(0)
    assert [start.job for start in scheduler.advance(10).starts] == ["a"]
    scheduler.advance(30)
    scheduler.withdraw("b")
    scheduler.finish("a")
    assert scheduler.advance(31).starts == ()
    assert [start.job for start in scheduler.advance(60).starts] == ["c"]


def test_a_predictor_forgets_who_is_withdrawn() -> None:
    predictor = OnlinePredictor("median")
    scheduler = Scheduler(Cluster.uniform(1), "sjf", predictor=predictor)
    for name in ("a", "b"):
        scheduler.submit(job(name, 0, 8, 10))
    scheduler.submit(job("late", 50, 8, 10))
    scheduler.advance(0)
    scheduler.withdraw("b")
    scheduler.withdraw("late")
    assert scheduler.advance(1).wake_s is None
    with pytest.raises(InvalidValueError, match="'b'"):
        predictor.remaining("b")
    assert predictor.remaining("a", 1.0).quantile(0.5) > 0


def test_a_job_may_outlive_its_expected_end() -> None:
    scheduler = Scheduler(Cluster.pool(2), "easy")
    scheduler.submit(job("long", 0, 2, 10))
    scheduler.submit(job("gang", 1, 2, 10))
    scheduler.submit(job("thin", 1, 1, 1))
    assert started(scheduler, 1) == ["long"]
    assert started(scheduler, 50) == []
    scheduler.finish("long")
    assert started(scheduler, 60) == ["gang"]


class Scripted:
    """A policy that decides by a given function, in order of arrival."""

    name = "scripted"
    parameters: ClassVar[dict[str, object]] = {}
    uses_virtual_machine = False

    def __init__(self, decide: Callable[[View], Decision]) -> None:
        self.decide = decide

    def priority(self, task: Task) -> int:
        return task.number


def first_task(view: View) -> Task:
    first = view.waiting.first
    assert first is not None
    return first


def scripted(decide: Callable[[View], Decision], *names: str, gpus: int = 1) -> Scheduler:
    scheduler = Scheduler(Cluster.pool(gpus), Scripted(decide))
    for name in names:
        scheduler.submit(job(name, 0, 1, 10))
    return scheduler


def test_a_careless_policy_cannot_book_a_gpu_twice() -> None:
    scheduler = scripted(lambda view: Start(first_task(view)), "a", "b")
    decision = scheduler.advance(0)
    assert ([start.job for start in decision.starts], decision.wake_s) == (["a"], 0.0)
    with pytest.raises(InvalidValueError, match="policy 'scripted': start='b' was started by the policy but does not"):
        scheduler.advance(0)
    scheduler.finish("a")
    assert started(scheduler, 10) == ["b"]


def test_a_policy_cannot_start_a_job_twice() -> None:
    seen: list[Task] = []

    def again(view: View) -> Decision:
        seen.append(first_task(view))
        return Start(seen[0])

    scheduler = scripted(again, "a", "b", "c", gpus=8)
    assert started(scheduler, 0) == ["a"]
    with pytest.raises(InvalidValueError, match="start='a' was started by the policy but is not waiting"):
        scheduler.advance(1)
    seen[0] = seen[-1]
    assert started(scheduler, 2) == ["b"]


def test_what_a_policy_raises_comes_after_what_it_has_started() -> None:
    def failing(view: View) -> Decision:
        if view.free.total < 2:
            raise ZeroDivisionError("broken")
        return Start(first_task(view))

    scheduler = scripted(failing, "a", "b", gpus=2)
    assert started(scheduler, 0) == ["a"]
    with pytest.raises(ZeroDivisionError, match="broken"):
        scheduler.advance(0)
    scheduler.finish("a")
    assert started(scheduler, 10) == ["b"]


@pytest.mark.parametrize("until_us", [-1, 0, 3_000_000])
def test_a_policy_must_not_ask_to_be_woken_in_the_past(until_us: int) -> None:
    scheduler = scripted(lambda _: Wait(until_us), "a")
    with pytest.raises(InvalidValueError, match=f"policy 'scripted': until_us={until_us} must lie after the present"):
        scheduler.advance(3)


def test_a_policy_that_does_not_decide_is_named() -> None:
    scheduler = scripted(lambda _: None, "a")  # type: ignore[arg-type, return-value]
    with pytest.raises(InvalidValueError, match="policy 'scripted': decision=None must be Start, Preempt, Reallo"):
        scheduler.advance(0)


def test_reservation_of_a_task_that_fits_an_idle_cluster_is_now() -> None:
    asked: list[int] = []

    def ask(view: View) -> Decision:
        asked.extend(view.reservation(first_task(view)).time_us for _ in range(2))
        return Wait()

    scheduler = scripted(ask, "a")
    scheduler.advance(3)
    scheduler.advance(7)
    assert asked == [3_000_000, 3_000_000, 7_000_000, 7_000_000]


def test_reservation_follows_the_headroom() -> None:
    asked: list[int] = []

    def ask(view: View) -> Decision:
        if view.free.total > 1:
            return Start(first_task(view))
        asked.extend(view.reservation(first_task(view), headroom).time_us for headroom in (0, 2, 0))
        return Wait()

    scheduler = Scheduler(Cluster.pool(4), Scripted(ask))
    for name, gpus, duration_s in (("a", 2, 10), ("b", 1, 20), ("c", 2, 1)):
        scheduler.submit(job(name, 0, gpus, duration_s))
    scheduler.advance(0)
    assert asked == [10_000_000, 20_000_000, 10_000_000]


def test_a_job_that_ends_early_moves_the_reservation() -> None:
    scheduler = Scheduler(Cluster.pool(4), "easy")
    for row in (("a", 0, 3, 100), ("b", 0, 1, 50), ("h", 1, 4, 10)):
        scheduler.submit(job(*row))
    assert started(scheduler, 1) == ["a", "b"]
    scheduler.finish("a")
    scheduler.submit(job("c", 5, 1, 60))
    scheduler.submit(job("d", 5, 1, 45))
    assert started(scheduler, 5) == ["d"]


def test_work_that_cannot_be_timed_is_refused_at_submission() -> None:
    layer = Layer(id=0, params=8, forward_flops=6, backward_flops=12, output_elements=2, saved_bytes=8)
    network = Network(name="n", layers=[layer], edges=())
    plan = TrainingPlan(network=network, stages=(range(1),), replicas=(1,), global_batch=1, precision="bf16")
    old = GpuType(name="old", peak_flops={"fp32": 1e12})
    scheduler = Scheduler(Cluster.pool(4, gpu_type=old), "fifo")
    assert scheduler.submit(job("a", 0, 1, 10)) is None
    for _ in range(2):
        with pytest.raises(UnknownNameError, match="unknown precision of GPU type 'old' 'bf16'"):
            scheduler.submit(Job(id="b", release_s=0, gpus=1, work=Training(plan=plan, iterations=2)))
    assert started(scheduler, 0) == ["a"]
    assert started(scheduler, 1) == []


def test_a_policy_without_an_order_loses_no_job() -> None:
    class Fussy(Scripted):
        broken = True

        def priority(self, task: Task) -> int:
            if self.broken and task.job.id == "b":
                raise ZeroDivisionError("no order")
            return task.number

    policy = Fussy(lambda view: Start(first_task(view)))
    scheduler = Scheduler(Cluster.pool(8), policy)
    for name in "abc":
        scheduler.submit(job(name, 0, 1, 10))
    with pytest.raises(ZeroDivisionError):
        scheduler.advance(0)
    policy.broken = False
    assert started(scheduler, 1) == ["a", "b", "c"]


@pytest.mark.parametrize("now_s", [float("nan"), float("inf"), "5", None, True, Decimal("sNaN")])
def test_an_instant_must_be_a_number_of_seconds(now_s: float) -> None:
    with pytest.raises(InvalidValueError, match="scheduler: now_s="):
        Scheduler(Cluster.pool(1), "fifo").advance(now_s)


@pytest.mark.parametrize("now_us", [0.5, "5", None])
def test_an_instant_in_microseconds_must_be_whole(now_us: int) -> None:
    with pytest.raises(InvalidValueError, match="scheduler: now_us="):
        Scheduler(Cluster.pool(1), "fifo").advance_us(now_us)


def test_a_job_may_finish_at_the_instant_it_started() -> None:
    scheduler = Scheduler(Cluster.pool(1), "asrpt")
    scheduler.submit(job("a", 0, 1, 10))
    scheduler.submit(job("b", 0, 1, 10))
    assert started(scheduler, 3) == ["a"]
    scheduler.finish("a")
    assert started(scheduler, 3) == ["b"]


def test_jobs_released_long_ago_and_submitted_in_any_order_start_by_release() -> None:
    scheduler = Scheduler(Cluster.pool(1), "fifo")
    scheduler.advance(100)
    for name, release_s in [("late", 90), ("old", -1e9), ("now", 100), ("future", 101)]:
        scheduler.submit(job(name, release_s, 1, 1))
    order = []
    for now_s in (100, 101, 102, 103):
        order += started(scheduler, now_s)
        scheduler.finish(order[-1])
    assert order == ["old", "late", "now", "future"]


def test_budget_without_expected_jobs_is_nothing() -> None:
    policy = make_policy("asrpt-budget:share=1")
    blind = Scheduler(Cluster.pool(8), policy)
    told = Scheduler(Cluster.pool(8), policy, expected=[job("a", 0, 4, 10)])
    for scheduler in (blind, told):
        scheduler.submit(job("a", 0, 4, 10))
    assert started(blind, 0) == []
    assert started(told, 0) == ["a"]


def test_a_job_wider_than_expected_shrinks_the_budget() -> None:
    # Told of narrow jobs only, B is 8 and a stream of them could keep the wide job out for ever.
    narrow = job("n", 0, 1, 10)
    scheduler = Scheduler(Cluster.pool(8), "asrpt-budget:share=1", expected=[narrow])
    scheduler.submit(job("wide", 0, 8, 1))
    assert started(scheduler, 0) == []
    for name in ("a", "b"):
        scheduler.submit(job(name, 0, 1, 1000))
    assert started(scheduler, 0.5) == []
    assert started(scheduler, 1) == ["wide"]


@pytest.mark.parametrize("work", ["profiled", "slow network", "slower network"])
def test_a_job_that_would_run_too_long_somewhere_is_refused_before_it_waits(work: str) -> None:
    """One server is fast enough for it, but it may be offered two."""
    layer = Layer(id=0, params=10**12, forward_flops=1, backward_flops=1, output_elements=1, saved_bytes=0)
    plan = TrainingPlan(
        network=Network(name="n", layers=(layer,), edges=()), stages=[range(1)], replicas=[2], global_batch=2
    )
    works: dict[str, Work] = {
        "profiled": Profiled(iterations=10**9, seconds_per_iteration={"one_server": 1, "many_servers": 10}),
        "slow network": Training(plan=plan, iterations=10**6),
        "slower network": Training(plan=plan, iterations=1),
    }
    nic = 1.0 if work == "slower network" else 1e8
    wide = Job(id="wide", release_s=0, gpus=2, work=works[work])
    scheduler = Scheduler(Cluster.uniform(2, gpus=2, nic_bytes_per_s=nic), "fifo")
    for name in ("a", "b"):
        scheduler.submit(job(name, 0, 1, 10, locality="server"))
    with pytest.raises(InvalidValueError, match="must be at most 9"):
        scheduler.submit(wide)
    assert started(scheduler, 0) == ["a", "b"]
    alone = Scheduler(Cluster.uniform(1, gpus=2), "fifo")
    alone.submit(wide)
    assert started(alone, 0) == ["wide"]
