"""The Gittins index by hand: what a completion costs, who gives way for it, and what is learnt when."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from frostline import check_schedule
from frostline.errors import InvalidValueError
from frostline.policies import Gittins, Las, Policy, make_policy
from frostline.policies.gittins import costs_of_completion
from frostline.problem import Cluster, Fixed, Instance, Job
from frostline.scheduler import Scheduler
from frostline.simulation import simulate
from frostline.simulation.engine import policy_text


def job(name: str, release_s: float, gpus: int, duration_s: float) -> Job:
    return Job(id=name, release_s=release_s, gpus=gpus, work=Fixed(duration_s=duration_s))


def pieces(policy: str | Policy, gpus: int, *jobs: Job) -> list[tuple[str, float, float]]:
    instance = Instance(cluster=Cluster.pool(gpus), jobs=jobs)
    result = simulate(instance, policy)
    assert check_schedule(instance, result.schedule).valid
    return [(segment.job, segment.start_s, segment.end_s) for segment in result.schedule.segments]


class TestIndex:
    def test_equal_sizes_cost_ever_less(self) -> None:
        assert costs_of_completion([10] * 5, [2, 8]) == [10.0, 8.0, 2.0]

    def test_a_limit_belongs_to_the_queue_above_it(self) -> None:
        # A size of 2 is complete when the limit of 2 is reached: nothing of it lies beyond.
        assert costs_of_completion([2, 4], [2]) == [3.0, 2.0]
        assert costs_of_completion([2, 2], [2]) == [2.0, math.inf]

    def test_to_stop_is_worth_it_where_the_rest_takes_long(self) -> None:
        # 9 of 10 end after 1: a try costs 10 for 9; without a stop it would be 109 for 10.
        assert costs_of_completion([1] * 9 + [100], [1]) == [10 / 9, 99.0]

    def test_nothing_is_known_of_what_outlives_all(self) -> None:
        assert costs_of_completion([], [5]) == [math.inf, math.inf]

    def test_it_is_the_best_of_all_stops(self) -> None:
        dice = np.random.default_rng(2)
        sizes, limits = dice.integers(1, 60, 40).tolist(), [4, 9, 25, 40]
        starts = [0, *limits]
        for first, found in zip(starts, costs_of_completion(sizes, limits), strict=True):
            left = [size - first for size in sizes if size > first]
            stops = [limit - first for limit in limits if limit > first] + [max(left)]
            tries = [(sum(min(size, stop) for size in left), sum(size <= stop for size in left)) for stop in stops]
            assert found == float(min(Fraction(spent, ended) for spent, ended in tries if ended))


# Thresholds of 10 and 40 GPU-s; what has finished decides which of the queues gives way.
RULE = "thresholds=10/40:restart_s=0"


def test_what_has_begun_goes_on_where_all_sizes_are_equal() -> None:
    """Once first has taken 60, a task that has begun is nearer to its end than one that has not."""
    jobs = job("first", 0, 1, 60), job("a", 70, 1, 60), job("b", 75, 1, 60)
    begun = [("first", 0.0, 60.0), ("a", 70.0, 130.0), ("b", 130.0, 190.0)]
    assert pieces(f"gittins:{RULE}:least_finished=1", 1, *jobs) == begun
    assert pieces(f"las:{RULE}", 1, *jobs)[1:3] == [("a", 70.0, 80.0), ("b", 80.0, 120.0)]


def test_it_is_as_las_until_enough_have_finished() -> None:
    jobs = job("first", 0, 1, 60), job("a", 70, 1, 60), job("b", 75, 1, 60)
    assert pieces(f"gittins:{RULE}:least_finished=2", 1, *jobs) == pieces(f"las:{RULE}", 1, *jobs)


def test_what_outlives_the_short_ones_gives_way_and_is_gone_back_to() -> None:
    """A start costs (9 + 10) / 9 GPU-s, to go on 90 at 10 and 60 at 40: at 10 y gives way to x at 50."""
    assert costs_of_completion([1] * 9 + [100], [10, 40]) == [19 / 9, 90.0, 60.0]
    jobs = [job(f"s{i}", 0, 1, 1) for i in range(9)] + [job("long", 0, 1, 100)]
    told = pieces(f"gittins:{RULE}:least_finished=10", 10, *jobs, job("x", 200, 10, 50), job("y", 205, 10, 5))
    assert told[10:] == [("x", 200.0, 205.0), ("y", 205.0, 206.0), ("x", 206.0, 251.0), ("y", 251.0, 255.0)]


def test_a_middle_queue_may_go_last() -> None:
    """Sizes of 5 and of 100: to go on costs 90 at 10, 60 at 40, and at the start (5 · 6 + 10 · 2) / 6 GPU-s."""
    assert costs_of_completion([5] * 6 + [100] * 2, [10, 40]) == [50 / 6, 90.0, 60.0]
    jobs = [job(f"s{i}", 0, 1, 5) for i in range(6)] + [job(f"l{i}", 0, 1, 100) for i in range(2)]
    # At 214 u has held 56 GPU-s and n 12: v, of the first queue, evicts n, and is of its queue once it has held 10.
    later = job("u", 200, 4, 99), job("n", 211, 4, 99), job("v", 214, 4, 99)
    told = pieces(f"gittins:{RULE}:least_finished=8", 8, *jobs, *later)
    assert [piece for piece in told if piece[0] in "unv"][:3] == [
        ("u", 200.0, 299.0),
        ("n", 211.0, 214.0),
        ("v", 214.0, 313.0),
    ]


@pytest.mark.parametrize(("restart_s", "evicted"), [(0, True), (9.9, True), (10.1, False)])
def test_a_restart_of_the_newcomers_gpus_must_pay(restart_s: float, evicted: bool) -> None:
    """Sizes of 8 and 38: at the start 18 for 1, beyond 10 28 for 1. On 1 GPU a restart of 10 is worth it."""
    assert costs_of_completion([8, 38], [10]) == [18.0, 28.0]
    jobs = job("s", 0, 1, 8), job("l", 0, 1, 38), job("x", 100, 2, 99), job("y", 150, 1, 5)
    told = pieces(f"gittins:thresholds=10:restart_s={restart_s}:least_finished=2", 2, *jobs)
    assert (("y", 150.0, 155.0) in told) is evicted


def test_only_its_leading_bits_of_the_number_finished_count() -> None:
    """Of 17 finished tasks the first 16 are looked at: the long one that ended last is not."""
    policy = Gittins(thresholds=[10], restart_s=0, least_finished=1)
    scheduler = Scheduler(Cluster.pool(17), policy)
    for i in range(16):
        scheduler.submit(job(f"s{i}", 0, 1, 5))
    scheduler.submit(job("long", 0, 1, 50))
    scheduler.advance(0)
    for i in range(16):
        scheduler.finish(f"s{i}")
    scheduler.advance(5)
    scheduler.finish("long")
    scheduler.advance(50)
    order = policy.order(scheduler._state)
    assert scheduler._state.served == [(5_000_000, 5_000_000)] * 16 + [(50_000_000, 50_000_000)]
    assert list(order.lower(0, scheduler._state.task(job("next", 60, 1, 1)))) == [1]
    assert order._costs_us == [5e6, math.inf]


def test_reports_of_one_instant_may_come_in_any_order() -> None:
    def served(names: str) -> object:
        scheduler = Scheduler(Cluster.pool(3), Gittins())
        for gpus, name in enumerate("ab", 1):
            scheduler.submit(job(name, 0, gpus, 5))
        scheduler.advance(0)
        for name in names:
            scheduler.finish(name)
        scheduler.advance(5)
        return scheduler._state.served

    assert served("ab") == served("ba") == [(5_000_000, 5_000_000), (5_000_000, 10_000_000)]


def test_others_learn_nothing() -> None:
    scheduler = Scheduler(Cluster.pool(1), Las())
    scheduler.submit(job("a", 0, 1, 5))
    scheduler.advance(0)
    scheduler.finish("a")
    scheduler.advance(5)
    assert scheduler._state.served == []


def test_service_counts_over_all_runs_and_with_restarts() -> None:
    policy = Gittins(thresholds=[10], restart_s=2)
    scheduler = Scheduler(Cluster.pool(1), policy)
    for made in (job("a", 0, 1, 12), job("b", 0, 1, 3)):
        scheduler.submit(made)
    assert scheduler.advance(0).wake_s == 10.0
    assert scheduler.advance(10).evictions == ("a",)
    scheduler.finish("b")
    scheduler.advance(13)
    scheduler.finish("a")
    scheduler.advance(17)
    assert scheduler._state.served == [(13_000_000, 3_000_000), (17_000_000, 14_000_000)]


def test_the_name_and_the_parameters() -> None:
    policy = make_policy("gittins:thresholds=60/3600:least_finished=7")
    text = "gittins:thresholds=60/3600:starvation=0.0:restart_s=30.0:most_evictions=100:least_finished=7"
    assert policy_text(policy) == text
    assert policy == Gittins(thresholds=[60, 3600], least_finished=7)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("least_finished=0", "policy 'gittins': least_finished=0 must be at least 1"),
        ("least_finished=1.5", "policy 'gittins': least_finished=1.5 must be a whole number"),
        ("thresholds=60/60", "policy 'gittins': thresholds='60/60' must be rising numbers above 0"),
        ("restart_s=-1", "policy 'gittins': restart_s=-1 must be at least 0"),
    ],
)
def test_bad_parameters_are_named(text: str, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        make_policy(f"gittins:{text}")


def test_all_orders_are_transitive() -> None:
    """Who gives way to one gives way to all that evict it, whatever the restarts cost."""
    policy = Gittins(thresholds=[10, 40], least_finished=1)
    scheduler = Scheduler(Cluster.pool(4), policy)
    scheduler._state.served += [(0, 5_000_000)] * 6 + [(0, 100_000_000)] * 2
    order = policy.order(scheduler._state)
    tasks = [scheduler._state.task(job(str(gpus), 0, gpus, 1)) for gpus in (1, 2, 4)]
    for (first, one), (second, two) in product(product(range(3), tasks), repeat=2):
        if second in order.lower(first, one):
            assert set(order.lower(second, two)) < set(order.lower(first, one))
