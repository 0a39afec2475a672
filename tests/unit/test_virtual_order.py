"""When tasks become due, and late entry, by hand."""

from __future__ import annotations

import pytest

from frostline.placement.free_gpus import Shape
from frostline.policies import Task, make_policy
from frostline.problem import Cluster, Fixed, Instance, Job, PlacementClass, Profiled
from frostline.scheduler.virtual_order import VirtualOrder
from frostline.simulation import run

JOB = Job(id="x", release_s=0, gpus=1, work=Fixed(duration_s=1))


def task(number: int, work: int, *, steady: bool = True) -> Task:
    return Task(job=JOB, number=number, release_us=0, shape=Shape(1, 1), duration_us=work, steady=steady)


def due(order: VirtualOrder, now_us: int) -> list[tuple[int, int | None]]:
    """Number and due time of the tasks that are due at a time, in order; they leave."""
    order.advance(now_us)
    found = []
    while order.first is not None:
        found.append((order.first.number, order.first.due_us))
        order.leave(order.first)
    return found


def test_due_times_are_rounded_up() -> None:
    order = VirtualOrder(3, lambda _: 0)
    order.arrive(0, task(0, 4))
    assert order.next_due_us == 2
    assert due(order, 1) == []
    assert due(order, 2) == [(0, 2)]
    assert order.next_due_us is None


def test_only_unsteady_tasks_enter_late_and_in_the_order_of_their_due_times() -> None:
    order = VirtualOrder(1, lambda waiting: {0: 4, 1: 0, 2: 2, 3: 99}[waiting.number])
    for number, steady in enumerate([False, False, False, True]):
        order.arrive(0, task(number, number + 1, steady=steady))
    # Virtual completions 1, 3, 6 and 10; 0 and 2 are late by 4 and 2.
    assert due(order, 10) == [(1, 3), (0, 5), (2, 8), (3, 10)]


def test_a_late_task_sets_the_next_due_time() -> None:
    order = VirtualOrder(1, lambda _: 5)
    order.arrive(0, task(0, 2, steady=False))
    order.arrive(0, task(1, 20))
    assert order.next_due_us == 2
    assert due(order, 2) == []
    assert order.next_due_us == 7
    assert due(order, 6) == []
    assert due(order, 7) == [(0, 7)]
    assert order.next_due_us == 22


def test_a_late_task_that_has_started_never_becomes_due() -> None:
    order = VirtualOrder(1, lambda _: 5)
    late = task(0, 2, steady=False)
    order.arrive(0, late)
    order.advance(2)
    order.leave(late)
    assert due(order, 7) == []


@pytest.mark.parametrize(
    ("kappa", "tau", "start_s"),
    [
        (0, 0.1, 3.75),
        (0.5, 0.1, 5.25),  # the offer takes 4.5 s, half as long again as the best 3 s
        (0.5, 0.49, 5.25),
        (0.5, 0.5, 3.75),
    ],
)
def test_a_task_enters_late_where_the_offer_is_slow(kappa: float, tau: float, start_s: float) -> None:
    # At the virtual completion of p, 3.75 s, one GPU is free on each of two servers.
    table = {PlacementClass.ONE_SERVER: 1.0, PlacementClass.MANY_SERVERS: 1.5}
    slow = Job(id="p", release_s=3, gpus=2, work=Profiled(iterations=3, seconds_per_iteration=table))
    rows = [Job(id=i, release_s=0, gpus=3, work=Fixed(duration_s=4), locality="server") for i in "ab"]
    instance = Instance(cluster=Cluster.uniform(2, gpus=4), jobs=[*rows, slow])
    starts = run(instance, make_policy(f"asrpt-strict:kappa={kappa}:tau={tau}")).start_us
    assert (starts["a"], starts["b"]) == (1_500_000, 3_000_000)
    assert starts["p"] == start_s * 1e6


def test_gpus_that_come_free_at_the_virtual_completion_are_on_offer() -> None:
    # p is due at 5.5 s, when a leaves a whole server: it need not enter late.
    table = {PlacementClass.ONE_SERVER: 1.0, PlacementClass.MANY_SERVERS: 1.5}
    slow = Job(id="p", release_s=4.75, gpus=2, work=Profiled(iterations=3, seconds_per_iteration=table))
    rows = [Job(id=i, release_s=0, gpus=3, work=Fixed(duration_s=4), locality="server") for i in "ab"]
    instance = Instance(cluster=Cluster.uniform(2, gpus=4), jobs=[*rows, slow])
    starts = run(instance, make_policy("asrpt-strict:kappa=0.5")).start_us
    assert (starts["a"], starts["p"]) == (1_500_000, 5_500_000)
