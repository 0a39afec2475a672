"""Snapshots of a live scheduler, by hand."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

import pytest

from frostline.errors import InvalidValueError
from frostline.policies import Start, Task, View, Wait
from frostline.policies.base import Decision
from frostline.problem import Cluster, Fixed, Job, Profiled
from frostline.scheduler import Scheduler
from frostline.simulation import Replay


def job(name: str, release_s: float, gpus: int, duration_s: float) -> Job:
    return Job(id=name, release_s=release_s, gpus=gpus, work=Fixed(duration_s=duration_s))


class Turns:
    """Starts the first and the last waiting job in turns: a policy with a state."""

    name, uses_virtual_machine = "turns", False

    def __init__(self) -> None:
        self.starts = 0

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {}

    def priority(self, task: Task) -> int:
        return task.number

    def decide(self, view: View) -> Decision:
        waiting = list(view.waiting)
        if not waiting or not view.free.total:
            return Wait()
        self.starts += 1
        return Start(waiting[0 if self.starts % 2 else -1])


def order(scheduler: Scheduler, now_s: int) -> list[str]:
    """Jobs of one GPU and one second in the order in which they run."""
    found: list[str] = []
    while len(found) < 10:
        starts = scheduler.advance(now_s).starts
        if not starts:
            return found
        found.append(starts[0].job)
        scheduler.finish(starts[0].job)
        now_s += 1
    return found


def test_the_state_of_the_policy_is_part_of_a_snapshot() -> None:
    scheduler = Scheduler(Cluster.pool(1), Turns())
    for name in "abcdef":
        scheduler.submit(job(name, 0, 1, 1))
    assert [start.job for start in scheduler.advance(0).starts] == ["a"]
    scheduler.finish("a")
    snapshot = scheduler.snapshot()
    runs = [order(each, 1) for each in (scheduler, Scheduler.restore(snapshot), Scheduler.restore(snapshot))]
    assert runs == [["f", "b", "e", "c", "d"]] * 3


def test_what_was_reported_and_has_not_taken_effect_is_part_of_a_snapshot() -> None:
    work = Profiled(iterations=100, seconds_per_iteration={"one_server": 1})
    scheduler = Scheduler(Cluster.uniform(3, gpus=4), "fifo")
    for name in "abc":
        scheduler.submit(Job(id=name, release_s=0, gpus=4, work=work, checkpoint_s=10))
    scheduler.submit(job("d", 25, 4, 1))
    scheduler.advance(0)
    scheduler.fail("s0")
    scheduler.drain("s1")
    scheduler.finish("c")
    scheduler.progress("b", 50)
    snapshot = pickle.dumps(scheduler.snapshot())
    told = scheduler.advance(25)
    assert (told.failed, [start.job for start in told.starts]) == (("a",), ["a"])
    assert (scheduler.down, scheduler.drained, scheduler.waiting) == (("s0",), ("s1",), ("d",))
    again = Scheduler.restore(pickle.loads(snapshot))
    assert again.advance(25) == told
    assert (again.down, again.drained, again.waiting) == (("s0",), ("s1",), ("d",))


def test_a_restored_scheduler_goes_its_own_way() -> None:
    scheduler = Scheduler(Cluster.pool(1), "fifo")
    scheduler.submit(job("a", 0, 1, 10))
    snapshot = scheduler.snapshot()
    one, two = Scheduler.restore(snapshot), Scheduler.restore(snapshot)
    one.submit(job("b", 0, 1, 10))
    one.advance(5)
    assert (one.waiting, two.waiting) == (("b",), ())
    assert [start.start_s for start in two.advance(1).starts] == [1.0]
    assert [start.start_s for start in scheduler.advance(0).starts] == [0.0]


def test_a_replay_can_be_put_back() -> None:
    jobs = [job("a", 0, 8, 10), job("b", 1, 4, 2)]
    replay = Replay(Cluster.uniform(1), "offline-optimal", jobs)
    for each in jobs:
        replay.submit(each)
    replay.advance(0)
    again = Replay.restore(pickle.loads(pickle.dumps(replay.snapshot())))
    assert isinstance(again, Replay)
    for now_s in (1, 3):
        told = replay.advance(now_s)
        assert again.advance(now_s) == told
        for each in (replay, again):
            each.finish(told.starts[0].job)


def test_shapes_that_are_expected_are_looked_at_by_then() -> None:
    expected = (job(name, 0, gpus, 1) for name, gpus in [("a", 1), ("b", 8)])
    scheduler = Scheduler(Cluster.uniform(2), "asrpt-budget", expected)
    again = Scheduler.restore(scheduler.snapshot())
    for each in (scheduler, again):
        each.submit(job("c", 0, 4, 1))
        assert [start.job for start in each.advance(0).starts] == ["c"]


def test_what_is_no_snapshot_or_of_another_version_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="scheduler: snapshot='fifo' must be a Snapshot"):
        Scheduler.restore("fifo")  # type: ignore[arg-type]
    snapshot = Scheduler(Cluster.pool(1), "fifo").snapshot()
    snapshot._form = 0
    with pytest.raises(InvalidValueError, match="snapshot: form=0 must be 1, that of this version"):
        Scheduler.restore(snapshot)
