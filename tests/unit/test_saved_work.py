"""What a job has saved when a server of it fails, by what was reported of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from frostline.errors import InvalidValueError
from frostline.placement.free_gpus import Shape
from frostline.policies.task import Offer, Past, Running, Task
from frostline.problem import Cluster, Elastic, Job, Placement, Profiled
from frostline.scheduler import Decision, Scheduler
from frostline.scheduler.progress import Part, saved_by

TWO = Cluster.uniform(2, gpus=4)


def started(decision: Decision) -> list[tuple[str, float, tuple[int, ...]]]:
    return [(start.job, start.end_s, start.placement.servers) for start in decision.starts]


@pytest.mark.parametrize("pace_s", [0.01, 1, 100])
def test_a_pace_that_is_reported_says_nothing_of_the_time_before(pace_s: float) -> None:
    work = Profiled(iterations=100, seconds_per_iteration={"one_server": 1})
    scheduler = Scheduler(TWO, "fifo")
    scheduler.submit(Job(id="a", release_s=0, gpus=4, work=work, checkpoint_s=60))
    scheduler.advance(0)
    scheduler.progress("a", 70, seconds_per_iteration=pace_s)
    scheduler.fail("s0")
    # 60 of the 70 iterations by the checkpoint at 60, with 40 to go.
    assert started(scheduler.advance(70)) == [("a", 110, (1,))]


@pytest.mark.parametrize("reported", [False, True])
def test_what_a_late_job_has_saved_is_less_than_its_work(reported: bool) -> None:
    work = Profiled(iterations=100, seconds_per_iteration={"one_server": 1})
    scheduler = Scheduler(TWO, "fifo")
    scheduler.submit(Job(id="a", release_s=0, gpus=4, work=work, checkpoint_s=30))
    scheduler.advance(0)
    if reported:
        scheduler.progress("a", 90)
        scheduler.advance(90)
    scheduler.fail("s0")
    assert started(scheduler.advance(150)) == [("a", 151, (1,))]  # it should have ended long ago
    scheduler.progress("a", 95)
    scheduler.fail("s1")
    scheduler.recover("s0")
    # Nothing of the second run is saved, and the report tells that fewer were before than was believed.
    assert started(scheduler.advance(151)) == [("a", 156, (0,))]
    with pytest.raises(InvalidValueError, match="iterations=101 must be at most 100"):
        scheduler.progress("a", 101)


def test_a_job_that_has_reported_while_it_restarts_has_saved_nothing_since() -> None:
    work = Profiled(iterations=100, seconds_per_iteration={"one_server": 1})
    scheduler = Scheduler(TWO, "fifo", restart_s=30)
    scheduler.submit(Job(id="a", release_s=0, gpus=4, work=work, checkpoint_s=10))
    scheduler.advance(0)
    scheduler.fail("s0")
    assert started(scheduler.advance(50)) == [("a", 130, (1,))]
    scheduler.progress("a", 50)
    scheduler.advance(55)
    scheduler.fail("s1")
    scheduler.recover("s0")
    # It would have begun to work now, at 80.
    assert started(scheduler.advance(80)) == [("a", 160, (0,))]


def test_what_was_saved_at_a_level_is_no_more_than_was_done_at_it() -> None:
    """A slow job changes its level after 10 iterations where 40 were expected, then it fails."""
    table = {"one_server": {1: (1, 0.5)}}
    work = Elastic(iterations=100, widths=[1], seconds_per_iteration=table, compute_shares=[0, 1])
    task = Task(
        job=Job(id="a", release_s=0, gpus=1, work=replace(work, iterations=90), checkpoint_s=30),
        release_us=0,
        shape=Shape(1, 1),
        duration_us=90_000_000,
    )
    task.past = Past(first_start_us=0, evicted_us=40_000_000, evictions=0, held_us=0, done=10)
    offer = Offer(Placement([(0, (1,))]), 45_000_000, 1)
    run = Running(85_000_000, 0, task, ((0, 1),), 1, start_us=40_000_000, offer=offer)
    part = Part(0, offer._replace(level=0), 40_000_000)
    assert saved_by(run, [part], None, 50_000_000, Cluster.uniform(1)) == 10
