"""Eviction by hand: who goes, what is kept, what it costs, and what a policy may not do."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from frostline.errors import FileError, InvalidValueError
from frostline.policies import Las, Preempt, Start, Task, View, Wait, make_policy
from frostline.policies.base import Decision
from frostline.problem import Cluster, Fixed, Instance, Job, Profiled, Schedule, Segment
from frostline.problem.files import load_schedule, save
from frostline.scheduler import Scheduler
from frostline.simulation import Result, simulate
from frostline.simulation.engine import policy_text
from frostline.testing import ScriptedPredictor
from frostline.verify import check_schedule


def job(name: str, release_s: float, gpus: int, duration_s: float, locality: str = "any") -> Job:
    return Job(id=name, release_s=release_s, gpus=gpus, work=Fixed(duration_s=duration_s), locality=locality)


def profiled(name: str, release_s: float, gpus: int, iterations: int, one: float, many: float) -> Job:
    table = {"one_server": one, "many_servers": many}
    work = Profiled(iterations=iterations, seconds_per_iteration=table)
    return Job(id=name, release_s=release_s, gpus=gpus, work=work)


def play(cluster: Cluster, policy: str, *jobs: Job) -> Result:
    instance = Instance(cluster=cluster, jobs=jobs)
    result = simulate(instance, policy)
    assert check_schedule(instance, result.schedule).valid
    return result


def pieces(result: Result) -> list[tuple[str, float, float]]:
    return [(segment.job, segment.start_s, segment.end_s) for segment in result.schedule.segments]


# -- shortest remaining time first -----------------------------------------------------------------------------

THREE = (job("J1", 0, 1, 10), job("J2", 1, 1, 2), job("J3", 2, 1, 0.5))


def test_shortest_remaining_time_first_on_one_machine() -> None:
    result = play(Cluster.pool(1), "srtf:restart_s=0", *THREE)
    ends = {name: end_us / 1e6 for name, end_us in result.schedule.completion_us.items()}
    assert ends == {"J1": 12.5, "J2": 3.5, "J3": 2.5}
    assert result.metrics.evictions == 2
    assert result.metrics.mean_flow_s == 15.5 / 3


def test_a_restart_is_charged_once_for_each_eviction_when_the_job_runs_again() -> None:
    result = play(Cluster.pool(1), "srtf:restart_s=0.25", *THREE)
    assert pieces(result) == [
        ("J1", 0.0, 1.0),
        ("J2", 1.0, 2.0),
        ("J3", 2.0, 2.5),
        ("J2", 2.5, 3.75),
        ("J1", 3.75, 13.0),
    ]
    assert result.schedule.restart_us == 250_000


def test_what_is_not_longer_by_a_restart_is_left_alone() -> None:
    # When s comes, b has 10 left: a newcomer of 6 is worth a restart of 4, one of more is not.
    for length, evictions in ((5.999999, 1), (6.0, 0)):
        assert play(
            Cluster.pool(1), "srtf:restart_s=4", job("b", 0, 1, 12), job("s", 2, 1, length)
        ).metrics.evictions == (evictions)


def test_evicted_within_its_restart_a_job_keeps_what_it_had() -> None:
    # a keeps 1 s of work; from 2 to 3 it restarts in vain.
    jobs = (job("a", 0, 1, 20), job("b", 1, 1, 1), job("c", 3, 1, 1))
    result = play(Cluster.pool(1), "srtf:restart_s=2", *jobs)
    assert pieces(result) == [("a", 0.0, 1.0), ("b", 1.0, 2.0), ("a", 2.0, 3.0), ("c", 3.0, 4.0), ("a", 4.0, 25.0)]


def test_victims_are_those_with_most_left_and_nobody_is_evicted_in_vain() -> None:
    # b alone frees too little, c alone is enough; a has more left than b, but is not needed then.
    jobs = (job("a", 0, 1, 100), job("b", 0, 1, 50), job("c", 0, 2, 80), job("s", 1, 2, 1))
    result = play(Cluster.pool(4), "srtf:restart_s=0", *jobs)
    assert [name for name, _, end in pieces(result) if end == 1.0] == ["c"]


def test_nobody_is_evicted_if_that_would_not_be_enough() -> None:
    # The wide job needs all four GPUs, but a has less left than it.
    jobs = (job("a", 0, 1, 5), job("b", 0, 3, 50), job("w", 1, 4, 10))
    result = play(Cluster.pool(4), "srtf:restart_s=0", *jobs)
    assert pieces(result)[:2] == [("a", 0.0, 5.0), ("b", 0.0, 5.0)]


def test_a_job_that_was_evicted_often_enough_is_left_alone() -> None:
    jobs = (job("long", 0, 1, 100), *(job(f"s{i}", 10 * i, 1, 1) for i in range(1, 6)))
    counts = [
        play(Cluster.pool(1), f"srtf:restart_s=0:most_evictions={most}", *jobs).metrics.evictions for most in (0, 2)
    ]
    assert counts == [0, 2]


# -- least attained service ------------------------------------------------------------------------------------


def test_a_task_gives_way_once_it_has_held_enough() -> None:
    """a crosses 60 GPU-s at 30, when b, that waits, takes its place; b crosses at 60: a has started first."""
    result = play(Cluster.pool(2), "las:thresholds=60:restart_s=5", job("a", 0, 2, 100), job("b", 10, 2, 100))
    assert pieces(result) == [("a", 0.0, 30.0), ("b", 30.0, 130.0), ("a", 130.0, 205.0)]


def test_queues_are_served_in_order_and_within_a_queue_by_first_start() -> None:
    """Between queues only: when b joins a in the second queue it is not evicted, when c comes it is."""
    jobs = (job("a", 0, 1, 50), job("b", 5, 1, 50), job("c", 70, 1, 3))
    result = play(Cluster.pool(1), "las:thresholds=10/1000:restart_s=0", *jobs)
    assert pieces(result) == [
        ("a", 0.0, 10.0),
        ("b", 10.0, 60.0),
        ("a", 60.0, 70.0),
        ("c", 70.0, 73.0),
        ("a", 73.0, 103.0),
    ]


def test_lower_queues_give_way_first_and_there_the_last_to_have_started() -> None:
    # At 40 a and b are in the third queue, c in the second.
    jobs = (job("a", 0, 1, 99), job("b", 1, 1, 99), job("c", 25, 1, 99), job("n", 40, 1, 5))
    result = play(Cluster.pool(3), "las:thresholds=10/30:restart_s=0", *jobs)
    assert [name for name, _, end in pieces(result) if end == 40.0] == ["b"]


def test_service_is_gpus_times_time() -> None:
    # The wide one crosses at 5 and gives way to n; the thin one has not crossed.
    jobs = (job("wide", 0, 4, 99), job("thin", 0, 1, 99), job("n", 1, 2, 50))
    result = play(Cluster.pool(5), "las:thresholds=20:restart_s=0", *jobs)
    assert [run for run in pieces(result) if run[0] != "thin"][:2] == [("wide", 0.0, 5.0), ("n", 5.0, 55.0)]


def test_a_starving_task_starts_afresh() -> None:
    """a has run for 10 s when it gives way to b at 10; with knob 2 it starts afresh at 30, and b has crossed."""
    jobs = (job("a", 0, 1, 15), job("b", 0, 1, 200))
    patient = play(Cluster.pool(1), "las:thresholds=10:restart_s=0", *jobs)
    assert pieces(patient) == [("a", 0.0, 10.0), ("b", 10.0, 210.0), ("a", 210.0, 215.0)]
    result = play(Cluster.pool(1), "las:thresholds=10:restart_s=0:starvation=2", *jobs)
    assert pieces(result) == [("a", 0.0, 10.0), ("b", 10.0, 30.0), ("a", 30.0, 35.0), ("b", 35.0, 215.0)]


def test_a_task_that_runs_again_before_it_starves_keeps_what_it_held() -> None:
    # a would start afresh at 10 + 10 · 10, but runs again at 20.
    jobs = (job("a", 0, 1, 300), job("b", 1, 1, 10), job("c", 115, 1, 20))
    result = play(Cluster.pool(1), "las:thresholds=10:restart_s=0:starvation=10", *jobs)
    assert pieces(result)[2:4] == [("a", 20.0, 115.0), ("c", 115.0, 135.0)]


def test_the_name_and_the_parameters_of_las() -> None:
    policy = make_policy("las:thresholds=60/3600.5:starvation=2")
    assert policy_text(policy) == "las:thresholds=60/3600.5:starvation=2.0:restart_s=30.0:most_evictions=100"
    assert policy == Las(thresholds=[60, 3600.5], starvation=2)
    assert make_policy("las:thresholds=60").parameters["thresholds"] == "60"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("las:thresholds=60/60", "policy 'las': thresholds='60/60' must be rising numbers above 0"),
        ("las:thresholds=0", "thresholds=0 must be rising"),
        ("las:thresholds=a/b", "thresholds='a' must be a number"),
        ("las:thresholds=60/", "thresholds='' must be a number"),
        ("las:thresholds=nan/1", "thresholds=nan must be finite"),
        ("las:starvation=-1", "starvation=-1 must be at least 0"),
        ("las:restart_s=-1", "restart_s=-1 must be at least 0"),
        ("las:most_evictions=1.5", "most_evictions=1.5 must be a whole number"),
        ("srtf:restart_s=x", "policy 'srtf': restart_s='x' must be a number"),
        ("srtf:most_evictions=-1", "most_evictions=-1 must be at least 0"),
    ],
)
def test_bad_parameters_are_named(text: str, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        make_policy(text)


# -- the live scheduler ----------------------------------------------------------------------------------------


class Evicting:
    """A policy that decides by a given function, in order of arrival."""

    name = "evicting"
    uses_virtual_machine = False

    def __init__(self, decide: Callable[[View], Decision], restart_s: float | None = 7.0) -> None:
        self.decide = decide
        if restart_s is not None:
            self.restart_s = restart_s

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {}

    def priority(self, task: Task) -> int:
        return task.number


def running(view: View) -> dict[str, Task]:
    return {run.task.job.id: run.task for run in view.running}


def by_plan(plan: Sequence[tuple[str, Sequence[str]]]) -> Callable[[View], Decision]:
    """Each (newcomer, victims) in turn, as soon as the newcomer waits."""
    steps = list(plan)

    def decide(view: View) -> Decision:
        waiting = {task.job.id: task for task in view.waiting}
        if not steps or steps[0][0] not in waiting:
            return Wait()
        if not steps[0][1] and not view.free.fits(waiting[steps[0][0]].shape):
            return Wait()
        name, victims = steps.pop(0)
        return Preempt(waiting[name], tuple(running(view)[v] for v in victims)) if victims else Start(waiting[name])

    return decide


def test_evictions_are_told_with_the_starts_they_make_room_for() -> None:
    scheduler = Scheduler(Cluster.pool(4), Evicting(by_plan([("a", ()), ("b", ()), ("c", ("a",)), ("a", ("b",))])))
    for each in (job("a", 0, 2, 10), job("b", 0, 2, 10), job("c", 3, 2, 10)):
        scheduler.submit(each)
    first = scheduler.advance(0)
    assert ([start.job for start in first.starts], first.evictions) == (["a", "b"], ())
    second = scheduler.advance(3)
    assert second.evictions == ("a", "b")
    # a has done 3 of its 10 s, and takes 7 s to be back there.
    assert [(start.job, start.start_s, start.end_s) for start in second.starts] == [("c", 3.0, 13.0), ("a", 3.0, 17.0)]
    with pytest.raises(InvalidValueError, match="scheduler: finish='b' is not a running job"):
        scheduler.finish("b")
    scheduler.finish("c")


def refused(decide: Callable[[View], Decision], message: str, **more: Any) -> None:
    """One GPU, on which a runs: the decision is refused, and nothing has changed."""
    plain, asked = by_plan([("a", ())]), []

    def at_first(view: View) -> Decision:
        if view.now_us == 0:
            return plain(view)
        if asked:
            return Wait()
        asked.append(view.now_us)
        return decide(view)

    scheduler = Scheduler(Cluster.pool(1), Evicting(at_first, **more))
    for each in (job("a", 0, 1, 10), job("b", 0, 1, 10)):
        scheduler.submit(each)
    scheduler.advance(0)
    with pytest.raises(InvalidValueError, match=message):
        scheduler.advance(1)
    again = scheduler.advance(2)
    assert (again.starts, again.evictions) == ((), ())
    scheduler.finish("a")


def first(view: View) -> Task:
    task = view.waiting.first
    assert task is not None
    return task


def test_an_eviction_that_cannot_be_done_as_a_whole_is_refused() -> None:
    refused(
        lambda view: Preempt(first(view), ()), "policy 'evicting': preempt='b' was to evict others but names no vict"
    )
    refused(lambda view: Preempt(first(view), (first(view),)), "policy 'evicting': victim='b' is not running")
    refused(lambda view: Preempt(running(view)["a"], (running(view)["a"],)), "preempt='a' was to evict others but")
    refused(
        lambda view: Preempt(first(view), (running(view)["a"],)),
        "because the policy tells no restart_s",
        restart_s=None,
    )


def test_a_newcomer_that_would_not_fit_all_the_same_evicts_nobody() -> None:
    plan = by_plan([("a", ()), ("b", ()), ("w", ("a",))])
    scheduler = Scheduler(Cluster.pool(2), Evicting(plan))
    for each in (job("a", 0, 1, 10), job("b", 0, 1, 10), job("w", 1, 2, 10)):
        scheduler.submit(each)
    scheduler.advance(0)
    with pytest.raises(InvalidValueError, match=r"preempt='w' was to evict others but .* does not fit even then"):
        scheduler.advance(1)
    scheduler.finish("a")
    scheduler.finish("b")


def test_nobody_is_evicted_at_the_instant_it_starts() -> None:
    scheduler = Scheduler(Cluster.pool(1), Evicting(by_plan([("a", ()), ("b", ("a",))])))
    for name in "ab":
        scheduler.submit(job(name, 0, 1, 10))
    decision = scheduler.advance(0)
    assert ([start.job for start in decision.starts], decision.wake_s) == (["a"], 0.0)


def test_a_victim_counts_once() -> None:
    scheduler = Scheduler(Cluster.pool(1), Evicting(by_plan([("a", ()), ("b", ("a", "a"))])))
    for each in (job("a", 0, 1, 10), job("b", 1, 1, 10)):
        scheduler.submit(each)
    scheduler.advance(0)
    assert scheduler.advance(1).evictions == ("a",)


def test_an_order_that_fails_at_an_eviction_loses_no_job() -> None:
    class Fussy(Evicting):
        def priority(self, task: Task) -> int:
            if task.past is not None and task.past.evictions == 1 and self.broken:
                raise ZeroDivisionError("no order")
            return task.number

        broken = True

    policy = Fussy(by_plan([("a", ()), ("b", ("a",)), ("b", ()), ("a", ())]))
    scheduler = Scheduler(Cluster.pool(2), policy)
    for each in (job("a", 0, 2, 10), job("b", 1, 1, 10)):
        scheduler.submit(each)
    scheduler.advance(0)
    decision = scheduler.advance(1)
    assert (decision.starts, decision.evictions, decision.wake_s) == ((), ("a",), 1.0)
    assert [start.job for start in scheduler.advance(1).starts] == ["b"]
    scheduler.finish("b")
    (again,) = scheduler.advance(5).starts
    assert (again.job, again.end_s) == ("a", 5 + 7 + 9.0)


def test_whole_iterations_are_kept_and_the_rest_runs_at_the_speed_of_the_new_place() -> None:
    """p has done two iterations of 3 s at 8; the other two take 5 s each on two servers, after a restart of 7 s."""
    plan = by_plan([("x", ()), ("p", ()), ("w", ("p",)), ("y", ()), ("z", ()), ("p", ())])
    jobs = [
        job("x", 0, 1, 10),
        profiled("p", 0, 2, 4, 3.0, 5.0),
        job("w", 8, 2, 1),
        job("y", 9, 1, 99),
        job("z", 9, 1, 9),
    ]
    instance = Instance(cluster=Cluster.uniform(2, gpus=2), jobs=jobs)
    result = simulate(instance, Evicting(plan))
    assert check_schedule(instance, result.schedule).valid
    runs = [segment for segment in result.schedule.segments if segment.job == "p"]
    assert [(run.start_s, run.end_s, run.placement.servers) for run in runs] == [(0, 8, (1,)), (10, 27, (0, 1))]


def test_progress_counts_over_all_runs() -> None:
    plan = by_plan([("p", ()), ("c", ("p",)), ("p", ())])
    scheduler = Scheduler(Cluster.pool(1), Evicting(plan))
    for each in (profiled("p", 0, 1, 20, 1.0, 1.0), job("c", 4.5, 1, 1)):
        scheduler.submit(each)
    scheduler.advance(0)
    scheduler.advance(4.5)
    scheduler.finish("c")
    (again,) = scheduler.advance(6).starts
    assert again.end_s == 6 + 7 + 16.0
    with pytest.raises(InvalidValueError, match="job 'p': iterations=21 must be at most 20"):
        scheduler.progress("p", 21)
    scheduler.progress("p", 12, 0.5)
    scheduler.advance(15)


def test_reported_iterations_are_kept_at_an_eviction() -> None:
    plan = by_plan([("p", ()), ("c", ("p",)), ("p", ())])
    scheduler = Scheduler(Cluster.pool(1), Evicting(plan))
    for each in (profiled("p", 0, 1, 20, 1.0, 1.0), job("c", 10, 1, 1)):
        scheduler.submit(each)
    scheduler.advance(0)
    scheduler.progress("p", 2, 4.0)
    scheduler.advance(5)
    scheduler.advance(10)
    scheduler.finish("c")
    # 2 iterations at 5 and one of 4 s since; the other 17 take a second each where it is placed.
    (again,) = scheduler.advance(12).starts
    assert again.end_s == 12 + 7 + 17.0


def test_a_predicted_job_is_believed_anew_of_what_is_left() -> None:
    predictor = ScriptedPredictor({"a": [10, 30, 80], "c": [1]})
    scheduler = Scheduler(
        Cluster.pool(1), Evicting(by_plan([("a", ()), ("c", ("a",)), ("a", ())])), predictor=predictor
    )
    for each in (job("a", 0, 1, 99), job("c", 20, 1, 99)):
        scheduler.submit(each)
    (start,) = scheduler.advance(0).starts
    assert start.end_s == 30.0
    scheduler.advance(20)
    scheduler.finish("c")
    # Above 20, it is 30 or 80; the lower one has 10 left.
    (again,) = scheduler.advance(21).starts
    assert again.end_s == 21 + 7 + 10.0
    scheduler.finish("a")
    scheduler.advance(50)
    assert predictor.heard[-1] == ("finish", "a", 20 + 29 - 7.0, "", 50.0)
    assert [event[:2] for event in predictor.heard].count(("start", "a")) == 1


# -- schedules -------------------------------------------------------------------------------------------------

BOTH = Instance(cluster=Cluster.pool(1), jobs=[job("a", 0, 1, 10), job("b", 2, 1, 3)])


def cut(*lengths: tuple[float, float], restart_us: int | None = 1_000_000) -> Schedule:
    """Pieces of a from when to when, b from 2 to 5."""
    gang = simulate(BOTH, "fifo").schedule.segments[0].placement
    spans = [("a", *span) for span in lengths] + [("b", 2, 5)]
    segments = [Segment(name, round(begin * 1e6), round(end * 1e6), gang) for name, begin, end in spans]
    return Schedule.of(segments, restart_us=restart_us)


def test_pieces_must_be_exactly_as_long_as_their_work() -> None:
    assert check_schedule(BOTH, cut((0, 2), (5, 14))).valid
    assert check_schedule(BOTH, cut((0, 2), (5, 5.5), (6, 15))).valid  # half a restart is lost
    assert not check_schedule(BOTH, cut((0, 2), (5, 14), restart_us=0)).valid
    assert not check_schedule(BOTH, cut((0, 2), (5, 14), restart_us=None)).valid


@pytest.mark.parametrize(
    ("schedule", "text"),
    [
        (cut((0, 2), (5, 13)), "job 'a' runs for 8000000 µs in its piece 2 of 2 but takes 9000000 µs there"),
        (cut((0, 2), (5, 15)), "job 'a' runs for 10000000 µs in its piece 2 of 2 but takes 9000000 µs there"),
        (
            cut((0, 2), (5, 14), (20, 21)),
            "job 'a' runs for 9000000 µs in its piece 2 of 3 but would be complete after 9000000",
        ),
    ],
)
def test_faults_of_pieces_are_told(schedule: Schedule, text: str) -> None:
    faults = check_schedule(BOTH, schedule).faults
    assert [fault.kind.value for fault in faults] == ["wrong_duration"]
    assert text in faults[0].text


def test_one_piece_must_be_as_long_as_the_job_in_any_schedule() -> None:
    (fault,) = check_schedule(BOTH, cut((5, 14))).faults
    assert fault.kind.value == "wrong_duration"


def test_a_preemptive_schedule_keeps_its_restart_in_its_file(tmp_path: Path) -> None:
    result = simulate(BOTH, "srtf:restart_s=0.5")
    path = tmp_path / "schedule.json"
    save(result.schedule, path)
    document = json.loads(path.read_text())
    assert document["restart_us"] == 500_000
    assert "predictor" not in document
    assert load_schedule(path) == result.schedule
    plain = tmp_path / "plain.json"
    save(simulate(BOTH, "fifo").schedule, plain)
    assert set(json.loads(plain.read_text())) == {"format", "version", "policy", "segments", "refused"}


@pytest.mark.parametrize("restart_us", [-1, 0.5, "1"])
def test_a_restart_must_be_whole_microseconds(tmp_path: Path, restart_us: object) -> None:
    with pytest.raises(InvalidValueError, match="schedule: restart_us="):
        Schedule(segments=(), restart_us=restart_us)  # type: ignore[arg-type]
    path = tmp_path / "schedule.json"
    save(simulate(BOTH, "srtf").schedule, path)
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "restart_us": restart_us}))
    with pytest.raises(FileError, match=r"\$.*restart_us"):
        load_schedule(path)
