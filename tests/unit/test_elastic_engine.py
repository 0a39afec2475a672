"""Reallocation by hand: who goes on, who is interrupted, what that costs, and what a policy may not do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from frostline.errors import InvalidValueError
from frostline.policies import Reallocate, Share, Start, Task, View, Wait
from frostline.policies.base import Decision
from frostline.problem import Cluster, Elastic, Fixed, Instance, Job, Placement, Schedule, Segment
from frostline.scheduler import Scheduler
from frostline.simulation import measure, run
from frostline.testing import ScriptedPredictor
from frostline.verify import FaultKind, check_schedule

TABLE = {"one_server": {1: (1.0, 0.5), 2: (0.6, 0.4)}, "many_servers": {2: (0.8, 0.7)}}
S = 1_000_000


def elastic(iterations: int = 10, warm_up: float = 0.2) -> Elastic:
    return Elastic(
        iterations=iterations, widths=(1, 2), seconds_per_iteration=TABLE, compute_shares=(0, 1), warm_up=warm_up
    )


def job(name: str = "a", release_s: float = 0, gpus: int = 1, locality: str = "any", **work: Any) -> Job:
    return Job(id=name, release_s=release_s, gpus=gpus, work=elastic(**work), locality=locality)


Wishes = Mapping[float, Mapping[str, tuple[int, int]]]


class Scripted:
    """At each instant of a script, shares by job; between them, whoever waits and fits starts if told so."""

    name = "scripted"
    uses_virtual_machine = False
    elastic = True

    def __init__(self, script: Wishes, restart_s: float = 2, level_change_s: float = 0.5) -> None:
        self.script, self.restart_s, self.level_change_s = dict(script), restart_s, level_change_s
        self.parameters: Mapping[str, Any] = {}

    def priority(self, task: Task) -> int:
        return task.number

    def decide(self, view: View) -> Decision:
        now_s = view.now_us / S
        later = [int(at_s * S) for at_s in self.script if at_s > now_s]
        until_us = min(later, default=None)
        wishes = self.script.pop(now_s, None)
        if wishes is None:
            return Wait(until_us)
        tasks = {task.job.id: task for task in (*view.waiting, *(run.task for run in view.running))}
        shares = (Share(tasks[name], *wish) for name, wish in wishes.items())
        return Reallocate(tuple(shares), until_us)


def play(cluster: Cluster, script: Wishes, *jobs: Job) -> Schedule:
    instance = Instance(cluster=cluster, jobs=jobs)
    schedule = run(instance, Scripted(script))
    assert check_schedule(instance, schedule).faults == ()
    return schedule


def pieces(schedule: Schedule) -> list[tuple[str, float, float, int, int]]:
    return [(s.job, s.start_s, s.end_s, s.placement.gpus, s.freeze_level) for s in schedule.segments]


def test_a_change_of_level_keeps_the_gpus_and_costs_little() -> None:
    schedule = play(Cluster.pool(2), {0: {"a": (1, 0)}, 3.5: {"a": (1, 1)}}, job())
    # Three whole iterations are kept; after half a second the seven others take half a second each.
    assert pieces(schedule) == [("a", 0.0, 3.5, 1, 0), ("a", 3.5, 7.5, 1, 1)]
    assert (schedule.evictions, schedule.level_changes) == (0, 1)


def test_another_width_is_an_interruption() -> None:
    schedule = play(Cluster.pool(2), {0: {"a": (1, 0)}, 3: {"a": (2, 1)}}, job())
    assert pieces(schedule) == [("a", 0.0, 3.0, 1, 0), ("a", 3.0, pytest.approx(3 + 2 + 7 * 0.4), 2, 1)]
    assert (schedule.evictions, schedule.level_changes) == (1, 0)


def test_a_job_without_gpus_waits_and_pays_one_restart() -> None:
    script = {0: {"a": (2, 0)}, 3: {"a": (0, 0), "b": (2, 0)}, 9: {"a": (2, 0)}}
    schedule = play(Cluster.pool(2), script, job(), job("b"))
    assert pieces(schedule) == [("a", 0.0, 3.0, 2, 0), ("b", 3.0, 9.0, 2, 0), ("a", 9.0, 14.0, 2, 0)]


def test_who_is_given_what_it_has_goes_on_undisturbed() -> None:
    script = {0: {"a": (1, 0), "b": (1, 0)}, 2: {"a": (1, 0)}, 4: {"b": (1, 0), "a": (1, 0)}}
    schedule = play(Cluster.pool(2), script, job(), job("b"))
    assert pieces(schedule) == [("a", 0.0, 10.0, 1, 0), ("b", 0.0, 10.0, 1, 0)]


def test_the_widest_are_placed_first_so_that_they_share_a_server() -> None:
    script = {0: {"a": (1, 0), "b": (2, 0), "c": (1, 0)}}
    schedule = play(Cluster.uniform(2, gpus=2), script, job(), job("b"), job("c"))
    where = {segment.job: segment.placement.servers for segment in schedule.segments}
    assert where == {"b": (0,), "a": (1,), "c": (1,)}


def test_what_its_locality_forbids_waits() -> None:
    script = {0: {"a": (2, 0), "b": (2, 0), "c": (2, 0)}, 6: {"c": (2, 0)}}
    schedule = play(Cluster.uniform(2, gpus=3), script, job(), job("b"), job("c", locality="server"))
    assert pieces(schedule)[-1] == ("c", 6.0, 12.0, 2, 0)


def test_a_job_reports_what_it_has_done_and_where_it_was_frozen() -> None:
    scheduler = Scheduler(Cluster.pool(2), Scripted({0: {"a": (1, 0)}, 3.5: {"a": (1, 1)}}))
    scheduler.submit(job())
    scheduler.advance(0)
    decision = scheduler.advance(3.5)
    assert [(start.job, start.end_s, start.freeze_level) for start in decision.starts] == [("a", 7.5, 1)]
    assert decision.evictions == ()
    state = scheduler._state
    task = state.runs["a"].task
    state.advance(5_000_000)
    assert (state.done(task), state.frozen(task)) == (5, ((3, 5, 1),))
    assert (task.past.evictions, task.past.held_us) == (0, 3_500_000)


def test_work_that_is_not_elastic_takes_its_own_gpus() -> None:
    rigid = Job(id="r", release_s=0, gpus=2, work=Fixed(duration_s=4))
    schedule = play(Cluster.pool(3), {0: {"r": (2, 0), "a": (1, 0)}, 2: {"r": (0, 0)}, 3: {"r": (2, 0)}}, job(), rigid)
    assert [piece for piece in pieces(schedule) if piece[0] == "r"] == [("r", 0.0, 2.0, 2, 0), ("r", 3.0, 7.0, 2, 0)]


BAD: dict[str, tuple[Wishes, str]] = {
    "too many GPUs": ({0: {"a": (2, 0), "b": (1, 0)}}, "GPUs of all shares=3 must be at most 2"),
    "no such width": (
        {0: {"a": (3, 0)}},
        "share=\\(3, 0\\) of policy 'scripted' must be 1, 2 GPUs at a level from 0 to 1",
    ),
    "no such level": ({0: {"a": (1, 2)}}, "at a level from 0 to 1"),
    "negative": ({0: {"a": (-1, 0)}}, "must be 1, 2 GPUs"),
    "too early": ({0: {"a": (1, 1)}}, "job 'a': level=1 of policy 'scripted' must be 0 until 0.2 of the iterations"),
    "rigid": ({0: {"r": (1, 0)}}, "job 'r': share=\\(1, 0\\) of policy 'scripted' must be 2 GPUs at level 0"),
}


@pytest.mark.parametrize(("script", "message"), BAD.values(), ids=BAD)
def test_what_cannot_be_is_refused_and_changes_nothing(script: Wishes, message: str) -> None:
    scheduler = Scheduler(Cluster.pool(2), Scripted(script))
    for submitted in (job(), job("b"), Job(id="r", release_s=0, gpus=2, work=Fixed(duration_s=4))):
        scheduler.submit(submitted)
    with pytest.raises(InvalidValueError, match=message):
        scheduler.advance(0)
    assert (scheduler._state.free.total, len(scheduler._state.waiting), scheduler._state.reallocated_us) == (2, 3, None)


class Once(Scripted):
    """Answers with what a function of the view says, each time it is asked."""

    def __init__(self, answer: Callable[[View], Decision], **attributes: Any) -> None:
        super().__init__({})
        self.answer = answer
        for name, value in attributes.items():
            setattr(self, name, value)

    def decide(self, view: View) -> Decision:
        return self.answer(view)


def _all(view: View) -> Decision:
    return Reallocate(tuple(Share(task, 1) for task in view.waiting))


def test_only_an_elastic_policy_reallocates() -> None:
    scheduler = Scheduler(Cluster.pool(2), Once(_all, elastic=False))
    scheduler.submit(job())
    with pytest.raises(InvalidValueError, match="reallocate=1 must not be"):
        scheduler.advance(0)


def test_nobody_reallocates_twice_at_one_instant() -> None:
    scheduler = Scheduler(Cluster.pool(2), Once(_all))
    scheduler.submit(job())
    assert len(scheduler.advance(0).starts) == 1
    with pytest.raises(InvalidValueError, match="has reallocated at this instant"):
        scheduler.decide()


def test_a_task_is_named_once_and_not_after_its_end() -> None:
    ended: list[Task] = []

    def twice(view: View) -> Decision:
        ended.extend(view.waiting)
        return Reallocate((Share(ended[0], 1), Share(ended[0], 1)))

    scheduler = Scheduler(Cluster.pool(2), Once(twice))
    scheduler.submit(job())
    with pytest.raises(InvalidValueError, match="share='a' is named twice"):
        scheduler.advance(0)
    scheduler = Scheduler(Cluster.pool(2), Once(lambda _: Reallocate((Share(ended[0], 1),))))
    scheduler.submit(job("b"))
    with pytest.raises(InvalidValueError, match="share='a' neither waits nor runs"):
        scheduler.advance(0)


def test_a_start_of_this_instant_stays() -> None:
    def start_then_move(view: View) -> Decision:
        if view.waiting.first is not None:
            return Start(view.waiting.first)
        return Reallocate((Share(view.running[0].task, 2),))

    scheduler = Scheduler(Cluster.pool(2), Once(start_then_move))
    scheduler.submit(job())
    assert [start.job for start in scheduler.advance(0).starts] == ["a"]  # never instead of a start
    with pytest.raises(InvalidValueError, match="has started at this very instant"):
        scheduler.advance(0)


def test_sizes_must_be_known() -> None:
    with pytest.raises(InvalidValueError, match="predictor='ScriptedPredictor' must be None: policy 'scripted'"):
        Scheduler(Cluster.pool(2), Scripted({}), predictor=ScriptedPredictor({}))


ONE, TWO = Placement([(0, (1,))]), Placement([(0, (2,))])
GOOD = (Segment("a", 0, 3 * S, ONE), Segment("a", 3 * S, 7 * S, ONE, 1))
FAULTS: dict[str, tuple[tuple[Segment, ...], FaultKind, str]] = {
    "too long": ((GOOD[0], GOOD[1]._replace(end_us=7 * S + 1)), FaultKind.WRONG_DURATION, "in its piece 2 of 2"),
    "no pause": ((GOOD[0], GOOD[1]._replace(end_us=6_500_000)), FaultKind.WRONG_DURATION, "takes 4000000 µs"),
    "too early": (
        (GOOD[0]._replace(end_us=S), Segment("a", S, 6 * S, ONE, 1)),
        FaultKind.WRONG_LEVEL,
        "at freeze level 1 after 1 of 10 iterations, before the end of its warm-up, 0.2",
    ),
    "at once": ((Segment("a", 0, 5 * S, ONE, 1),), FaultKind.WRONG_LEVEL, "after 0 of 10 iterations"),
    "no level": ((GOOD[0], GOOD[1]._replace(freeze_level=2)), FaultKind.WRONG_LEVEL, "has levels 0 to 1"),
    "no width": ((Segment("a", 0, S, Placement([(0, (3,))])),), FaultKind.WRONG_GPUS, "holds 3 GPUs but runs on 1, 2"),
    "interrupted": ((GOOD[0], Segment("a", 4 * S, 8 * S, ONE, 1)), FaultKind.INTERRUPTED, "runs in 2 pieces"),
    "moved": ((GOOD[0], Segment("a", 3 * S, 7 * S, TWO, 1)), FaultKind.INTERRUPTED, "runs in 2 pieces"),
}


@pytest.mark.parametrize(("segments", "kind", "text"), FAULTS.values(), ids=FAULTS)
def test_the_checker_names_what_is_wrong(segments: tuple[Segment, ...], kind: FaultKind, text: str) -> None:
    instance = Instance(cluster=Cluster.pool(4), jobs=(job(),))
    faults = check_schedule(instance, Schedule.of(segments, level_change_us=500_000)).faults
    assert [(fault.kind, text in fault.text) for fault in faults] == [(kind, True)]


def test_levels_alone_need_no_restart() -> None:
    instance = Instance(cluster=Cluster.pool(4), jobs=(job(),))
    schedule = Schedule.of(GOOD, level_change_us=500_000)
    assert check_schedule(instance, schedule).faults == ()
    assert measure(instance, schedule).evictions == 0


def test_interruptions_that_nobody_counts_leave_a_job_the_time_of_its_best_choices() -> None:
    instance = Instance(cluster=Cluster.pool(4), jobs=(job(),))
    # Two of ten iterations at 0.6 s on two GPUs, then eight at 0.4 s with frozen layers: 4.4 s are enough.
    halves = (Segment("a", 0, 2 * S, TWO), Segment("a", 3 * S, 5_400_000, TWO, 1))
    assert check_schedule(instance, Schedule.of(halves), allow_interruptions=True).faults == ()
    shorter = Schedule.of((halves[0], halves[1]._replace(end_us=5_399_999)))
    (fault,) = check_schedule(instance, shorter, allow_interruptions=True).faults
    assert (fault.kind, "takes at least 4400000 µs" in fault.text) == (FaultKind.WRONG_DURATION, True)
