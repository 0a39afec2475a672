"""Outages of servers, by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from frostline.errors import FileError, InvalidValueError, UnknownNameError
from frostline.placement.free_gpus import FreeGpus, Shape
from frostline.policies import Reallocate, Share, Start, Task, View, Wait
from frostline.policies.base import Decision
from frostline.policies.reservation import NEVER_US, reserve
from frostline.policies.task import Running
from frostline.problem import (
    Cluster,
    Elastic,
    Fixed,
    Instance,
    Job,
    Outage,
    Placement,
    Profiled,
    Schedule,
    Segment,
    Server,
)
from frostline.problem.files import load_instance, load_schedule, save
from frostline.problem.outage import Downtimes, in_order
from frostline.scheduler import Scheduler
from frostline.scheduler.virtual_order import VirtualOrder
from frostline.simulation import Replay, Result, frozen_stretches, simulate
from frostline.verify import check_schedule

TWO, THREE = Cluster.uniform(2, gpus=4), Cluster.uniform(3, gpus=8)


def job(name: str, release_s: float, gpus: int, duration_s: float, **more: Any) -> Job:
    return Job(id=name, release_s=release_s, gpus=gpus, work=Fixed(duration_s=duration_s), **more)


def down(server: str, start_s: float, end_s: float | None = None) -> Outage:
    return Outage(server=server, start_s=start_s, end_s=end_s)


def play(cluster: Cluster, policy: Any, jobs: Iterable[Job], *outages: Outage, **more: Any) -> Result:
    instance = Instance(cluster=cluster, jobs=tuple(jobs))
    result = simulate(instance, policy, outages=outages, **more)
    assert check_schedule(instance, result.schedule).faults == ()
    return result


def pieces(result: Result) -> list[tuple[str, float, float, tuple[int, ...]]]:
    return [(s.job, s.start_s, s.end_s, s.placement.servers) for s in result.schedule.segments]


def started(scheduler: Scheduler, now_s: float) -> list[tuple[str, float, tuple[int, ...]]]:
    return [(start.job, start.end_s, start.placement.servers) for start in scheduler.advance(now_s).starts]


# -- the type ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"server": ""}, "outage: server='' must be a non-empty string"),
        ({"server": 3}, "outage: server=3 must be a non-empty string"),
        ({"start_s": "soon"}, "outage of server 's0': start_s='soon' must be a number"),
        ({"start_s": float("nan")}, "start_s=nan must be finite"),
        ({"end_s": 5}, "end_s=5 must lie after start_s=5.0"),
        ({"end_s": 5.0000001}, "must lie after start_s=5.0"),
        ({"end_s": float("inf")}, "end_s=inf must be finite"),
    ],
)
def test_bad_outages_are_named(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        Outage(**{"server": "s0", "start_s": 5, **fields})


def test_outages_of_one_server_may_meet_but_not_overlap() -> None:
    assert in_order([down("b", 3), down("a", 5, 8), down("a", 8, 9)])[0] == down("b", 3)
    with pytest.raises(InvalidValueError, match=r"server 'a': start_s=7.0 .* from 5.0 s, which lasts until 8.0 s"):
        in_order([down("a", 7, 9), down("a", 5, 8)])
    with pytest.raises(InvalidValueError, match="which never ends"):
        in_order([down("a", 7, 9), down("a", 5)])
    with pytest.raises(InvalidValueError, match="outage='s0' must be an Outage"):
        in_order(["s0"])  # type: ignore[list-item]


def test_downtimes_begin_at_a_failure_and_end_before_the_recovery() -> None:
    times = Downtimes(in_order([down("s1", 2, 4), down("s1", 6), down("elsewhere", 0)]), TWO)
    free = [(0, 2), (4, 6)]
    taken = [(0, 3), (1, 9), (3, 4), (5, 7), (8, 9)]
    assert [times.first_down([0, 1], a * 10**6, b * 10**6) for a, b in free] == [None, None]
    assert [times.first_down([0, 1], a * 10**6, b * 10**6) for a, b in taken] == [1] * len(taken)
    assert times.first_down([0], 0, 10**9) is None


@pytest.mark.parametrize(("value", "rule"), [(0, "above 0"), (-1, "above 0"), ("x", "a number"), (True, "a number")])
def test_bad_checkpoints_are_named(value: Any, rule: str) -> None:
    with pytest.raises(InvalidValueError, match=rf"job 'a': checkpoint_s={value!r} must be {rule}"):
        job("a", 0, 1, 1, checkpoint_s=value)


# -- free GPUs and reservations ------------------------------------------------------------------------------------


def test_a_closed_server_counts_for_nothing_until_it_is_open() -> None:
    free = FreeGpus([4, 8])
    free.take(((0, 1), (1, 5)))
    free.close(1, 8)
    assert (free.by_server, free.total, free.capacity, free.largest) == ([3, 0], 3, 4, 3)
    twin = free.copy()
    free.give(((0, 1), (1, 5)))
    assert (free.by_server, free.total) == ([4, 0], 4)
    assert not free.fits(Shape(5, 2))
    assert free.best_fit(Shape(1, 2)) == ((0, 1),)
    free.take(((1, 2),))
    free.open(1, 8)
    assert (free.by_server, free.total, free.capacity) == ([4, 6], 10, 12)
    twin.open(1, 8)
    assert twin.by_server == [3, 3]


def test_a_reservation_that_needs_a_closed_server_has_no_time_and_spares_all() -> None:
    for shape in (Shape(6, 2), Shape(4, 1)):
        free = FreeGpus([4, 3])
        free.take(((1, 1),))
        free.close(0, 4)
        reservation = reserve(shape, 0, free, [Running(9, 0, None, ((1, 1),), 1)])  # type: ignore[arg-type]
        assert reservation.time_us == NEVER_US
        assert reservation.spares(((1, 2),))


def test_a_reservation_counts_what_ends_on_open_servers_only() -> None:
    free = FreeGpus([4, 4])
    free.take(((0, 4), (1, 4)))
    free.close(0, 4)
    runs = [Running(5, 0, None, ((0, 4),), 4), Running(9, 1, None, ((1, 4),), 4)]  # type: ignore[arg-type]
    assert [reserve(Shape(3, most), 0, free, runs).time_us for most in (1, 2)] == [9, 9]


# -- failures in a simulation --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("checkpoint_s", "end_s", "lost_gpu_s"), [(30, 110, 40), (None, 170, 280)])
def test_f01_a_job_resumes_elsewhere_from_its_last_checkpoint(
    checkpoint_s: float | None, end_s: float, lost_gpu_s: float
) -> None:
    result = play(TWO, "fifo", [job("J", 0, 4, 100, checkpoint_s=checkpoint_s)], down("s0", 70))
    assert pieces(result) == [("J", 0, 70, (0,)), ("J", 70, end_s, (1,))]
    assert result.metrics.lost_gpu_hours * 3600 == pytest.approx(lost_gpu_s)
    assert (result.metrics.failed_runs, result.metrics.evictions, result.metrics.jobs) == (1, 1, 1)


def test_f02_a_gang_never_holds_half_of_its_gpus() -> None:
    result = play(TWO, "fifo", [job("J", 0, 8, 100)], down("s1", 50, 80))
    assert pieces(result) == [("J", 0, 50, (0, 1)), ("J", 80, 180, (0, 1))]
    assert result.metrics.mean_flow_s == 180


def test_f03_what_has_finished_stays_finished() -> None:
    result = play(TWO, "fifo", [job("J", 0, 4, 20), job("K", 40, 1, 1)], down("s0", 30))
    assert pieces(result) == [("J", 0, 20, (0,)), ("K", 40, 41, (1,))]
    assert result.metrics.lost_gpu_hours == 0


def test_f03_what_finishes_as_its_server_fails_has_finished() -> None:
    result = play(TWO, "fifo", [job("J", 0, 4, 20)], down("s0", 20))
    assert pieces(result) == [("J", 0, 20, (0,))]
    assert result.metrics.failed_runs == 0


def test_f04_failure_and_recovery_at_one_instant_is_one_restart() -> None:
    scheduler = Scheduler(Cluster.pool(4), "fifo")
    scheduler.submit(job("J", 0, 4, 100))
    scheduler.advance(0)
    scheduler.fail("pool")
    scheduler.recover("pool")
    decision = scheduler.advance(40)
    assert (decision.failed, decision.evictions) == (("J",), ())
    assert [(start.job, start.start_s, start.end_s) for start in decision.starts] == [("J", 40, 140)]
    assert (scheduler.down, scheduler.failed) == ((), ("J",))
    again = scheduler.advance(41)
    assert (again.failed, again.starts, scheduler.failed) == ((), (), ())


def test_whole_iterations_are_kept_up_to_the_checkpoint() -> None:
    work = Profiled(iterations=20, seconds_per_iteration={"one_server": 8})
    one = Job(id="J", release_s=0, gpus=4, work=work, checkpoint_s=30)
    # By 60 s 7 iterations are done; 13 are left.
    assert pieces(play(TWO, "sjf", [one], down("s0", 70)))[1] == ("J", 70, 174, (1,))


def test_a_stated_restart_is_a_pause_from_whose_end_checkpoints_count() -> None:
    outages = down("s0", 70), down("s1", 105, 106)
    result = play(TWO, "easy", [job("J", 0, 4, 100, checkpoint_s=30)], *outages, restart_s=10)
    # From 70 to 80 it does nothing, so that at 105 it has worked for 25 s since: all of that is lost.
    assert pieces(result)[1:] == [("J", 70, 105, (1,)), ("J", 106, 156, (1,))]
    assert result.schedule.restart_us == 10_000_000


def test_a_preemptive_policy_charges_its_own_restart() -> None:
    result = play(TWO, "las:restart_s=7", [job("J", 0, 4, 100, checkpoint_s=30)], down("s0", 70))
    assert pieces(result)[1] == ("J", 70, 117, (1,))
    with pytest.raises(InvalidValueError, match="restart_s=3 must be None: policy 'las' tells its own"):
        simulate(Instance(cluster=TWO, jobs=()), "las", restart_s=3)


def test_evictions_by_choice_keep_all_and_failures_what_is_saved() -> None:
    # On one GPU b evicts a at 10, which has done 10 s by then and no checkpoint; what it does from 15 on is lost at 20.
    jobs = [job("a", 0, 1, 100), job("b", 10, 1, 5)]
    result = play(Cluster.pool(1), "srtf:restart_s=0", jobs, down("pool", 20, 30))
    assert pieces(result)[2:] == [("a", 15, 20, (0,)), ("a", 30, 120, (0,))]
    assert result.metrics.failed_runs == 1
    assert result.metrics.evictions == 2


def test_no_guarantee_is_claimed_where_there_was_an_outage() -> None:
    assert simulate(Instance(cluster=TWO, jobs=[job("a", 0, 1, 1)]), "asrpt").guarantee is not None
    assert play(TWO, "asrpt", [job("a", 0, 1, 1)], down("s1", 500, 501)).guarantee is None


def test_a_server_may_be_down_from_before_the_first_job() -> None:
    result = play(TWO, "asrpt", [job("J", 0, 8, 10), job("K", -3, 4, 1)], down("s0", -5, 2), down("s1", -6, -4))
    assert pieces(result) == [("K", -3, -2, (1,)), ("J", 2, 12, (0, 1))]


def test_outages_that_meet_are_one() -> None:
    result = play(TWO, "fifo", [job("J", 0, 8, 100)], down("s1", 50, 60), down("s1", 60, 80))
    assert pieces(result) == [("J", 0, 50, (0, 1)), ("J", 80, 180, (0, 1))]


# -- who runs while servers are down -------------------------------------------------------------------------------


WIDE, SMALL = job("wide", 1, 8, 10), job("small", 2, 2, 100)


@pytest.mark.parametrize(
    "policy",
    [
        "easy",
        "sjf",
        "sjf:discipline=backfill",
        "asrpt",
        "asrpt-budget",
        "las",
        "gittins",
        "las-fair",
        "srtf",
        "serverfilling-srpt",
    ],
)
def test_who_needs_a_server_that_is_down_holds_nobody_up(policy: str) -> None:
    result = play(TWO, policy, [job("late", 60, 1, 1), WIDE, SMALL], down("s0", 0, 50))
    # A budget has room for a job out of order only once the wide one is due, at 11.
    start_s = 11 if policy == "asrpt-budget" else 2
    assert ("small", start_s) in {piece[:2] for piece in pieces(result)}


@pytest.mark.parametrize(
    "policy", ["easy", "sjf", "smallest-area", "las", "las-fair", "srtf", "serverfilling-srpt", "asrpt"]
)
def test_c11_whoever_fits_starts_at_once_however_many_need_a_server_that_is_down(policy: str) -> None:
    scheduler = Scheduler(TWO, policy)
    scheduler.fail("s1")
    for number in range(1000):
        scheduler.submit(job(f"wide{number}", 0, 5 + number % 4, 1))
    scheduler.submit(job("fits", 1, 4, 10))
    assert started(scheduler, 0) == []
    assert started(scheduler, 1) == [("fits", 11, (0,))]
    assert len(scheduler.stranded) == 1000


@pytest.mark.parametrize("policy", ["fifo", "asrpt-strict"])
def test_where_nobody_overtakes_all_wait_for_the_server(policy: str) -> None:
    result = play(TWO, policy, [WIDE, SMALL], down("s0", 0, 50))
    assert [piece[:3] for piece in pieces(result)] == [("wide", 50, 60), ("small", 60, 160)]


def test_the_guard_lets_others_run_before_a_due_job_that_needs_a_server_that_is_down() -> None:
    result = play(TWO, "asrpt-guard:patience=0", [WIDE, SMALL], down("s0", 0, 50))
    # The wide job is due at 11 by the virtual machine; the small one has started by its own due time.
    assert pieces(result)[0][0] == "small"


def test_a_job_that_comes_back_after_its_virtual_completion_is_due_at_once_and_before_later_ones() -> None:
    # On one GPU the virtual machine is the real one: a is due at 10 and b at 30.
    jobs = [job("a", 0, 1, 10), job("b", 0, 1, 20)]
    result = play(Cluster.pool(1), "asrpt-strict", jobs, down("pool", 15, 35))
    assert [piece[:3] for piece in pieces(result)] == [("a", 10, 15), ("a", 35, 45), ("b", 45, 65)]


def test_tasks_come_back_to_the_virtual_order_at_their_places() -> None:
    order = VirtualOrder(1, lambda _: 0)
    tasks = [
        Task(job=job(str(n), 0, 1, 1), number=n, release_us=0, shape=Shape(1, 1), duration_us=10 * (n + 1))
        for n in range(3)
    ]
    for task in tasks:
        order.arrive(0, task)
    order.leave(tasks[1])  # out of order, before it is due at 30
    order.advance(40)
    assert order.first is tasks[0]
    order.leave(tasks[0])
    order.come_back(tasks[1])
    order.come_back(tasks[0])
    order.advance(60)
    assert [task.due_us for task in tasks] == [10, 30, 60]
    for task in tasks:
        assert order.first is task
        order.leave(task)
    order.come_back(tasks[2])
    order.advance(61)
    assert order.first is tasks[2]
    order.leave(tasks[2])
    order.forget(2)
    assert order.first is None


def test_elastic_jobs_share_what_is_up() -> None:
    table = {"one_server": {1: (4.0,), 2: (2.0,), 4: (1.0,)}, "many_servers": {8: (0.5,)}}
    work = Elastic(iterations=100, widths=[1, 2, 4, 8], seconds_per_iteration=table)
    one = Job(id="J", release_s=0, gpus=4, work=work)
    for policy in ("icefrog:restart_s=0", "pollux:restart_s=0", "sia:restart_s=0"):
        result = play(TWO, policy, [one], down("s1", 0, 20))
        assert pieces(result)[0][2:] == (20.0, (0,))
        assert pieces(result)[-1][3] == (0, 1)


def test_elastic_jobs_take_no_width_that_the_servers_left_do_not_hold() -> None:
    table = {"one_server": {4: (2.0,), 8: (1.0,)}}
    work = Elastic(iterations=10, widths=[4, 8], seconds_per_iteration=table)
    one = Job(id="J", release_s=0, gpus=8, work=work, locality="server")
    cluster = Cluster(servers=[*Cluster.uniform(2, gpus=4).servers, Cluster.pool(8).servers[0]])
    for policy in ("icefrog", "optimus", "pollux", "sia"):
        assert pieces(play(cluster, policy, [one], down("pool", 0, 1000)))[0][:3] == ("J", 0, 20)


# -- servers that never come back ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "policy", ["fifo", "easy", "asrpt", "las", "las-fair", "icefrog", "optimus", "pollux", "sia", "icefrog-rigid"]
)
def test_where_all_servers_are_gone_for_good_the_jobs_are_unfinished(policy: str) -> None:
    jobs = [job("a", 0, 4, 100), job("b", 80, 2, 5), job("c", 0, 40, 5), job("d", 0, 1, 1)]
    result = play(TWO, policy, jobs, down("s0", 50), down("s1", 60))
    assert result.schedule.unfinished == ("a", "b")
    assert [refusal.job for refusal in result.schedule.refused] == ["c"]
    metrics = result.metrics
    assert (metrics.submitted, metrics.jobs, metrics.refused, metrics.unfinished) == (4, 1, 1, 2)
    assert set(result.schedule.completion_us) == {"d"}
    assert metrics.evictions == metrics.failed_runs > 0


def test_those_behind_a_job_that_waits_for_ever_are_unfinished_too() -> None:
    result = play(TWO, "fifo", [WIDE, SMALL], down("s0", 0))
    assert result.schedule.unfinished == ("wide", "small")


# -- the live scheduler --------------------------------------------------------------------------------------------


def test_c06_a_job_that_needs_a_drained_server_waits_and_one_that_never_fits_is_refused() -> None:
    scheduler = Scheduler(THREE, "fifo")
    scheduler.drain("s2")
    assert scheduler.submit(job("twenty", 0, 20, 10)) is None
    assert scheduler.submit(job("more", 0, 25, 10)) is not None
    assert scheduler.advance(0).starts == ()
    assert (scheduler.waiting, scheduler.stranded, scheduler.drained) == (("twenty",), ("twenty",), ("s2",))
    scheduler.recover("s2")
    assert [(name, end_s) for name, end_s, _ in started(scheduler, 50)] == [("twenty", 60)]
    assert (scheduler.stranded, scheduler.drained) == ((), ())


def test_c07_the_jobs_of_a_drained_server_stay_and_nothing_new_starts_there() -> None:
    scheduler = Scheduler(THREE, "sjf")
    for one in (job("a", 0, 8, 100), job("b", 0, 2, 100), job("c", 0, 7, 20)):
        scheduler.submit(one)
    assert {name: servers for name, _, servers in started(scheduler, 0)} == {"c": (0,), "a": (1,), "b": (2,)}
    scheduler.drain("s0")
    scheduler.submit(job("d", 5, 7, 10))
    assert started(scheduler, 5) == []
    scheduler.submit(job("e", 6, 6, 10))
    assert started(scheduler, 6) == [("e", 16, (2,))]
    scheduler.finish("c")
    assert started(scheduler, 20) == []
    scheduler.finish("e")
    assert started(scheduler, 21) == []
    scheduler.recover("s0")
    assert started(scheduler, 22) == [("d", 32, (0,))]


def test_a_drained_server_may_fail_and_recovers_as_if_it_had_not_been_drained() -> None:
    scheduler = Scheduler(TWO, "fifo")
    scheduler.submit(job("a", 0, 4, 100))
    scheduler.advance(0)
    scheduler.drain("s0")
    assert scheduler.advance(1).failed == ()
    scheduler.fail("s0")
    assert [start.placement.servers for start in scheduler.advance(2).starts] == [(1,)]
    assert (scheduler.down, scheduler.drained) == (("s0",), ())
    scheduler.recover("s0")
    scheduler.submit(job("b", 3, 4, 1))
    assert started(scheduler, 3) == [("b", 4, (0,))]


def test_an_elastic_policy_leaves_the_jobs_of_a_drained_server_alone() -> None:
    table = {"one_server": {1: (4.0,), 2: (2.0,), 4: (1.0,)}, "many_servers": {8: (0.5,)}}
    work = Elastic(iterations=100, widths=[1, 2, 4, 8], seconds_per_iteration=table)
    scheduler = Scheduler(TWO, "icefrog:restart_s=0")
    scheduler.submit(Job(id="a", release_s=0, gpus=4, work=work))
    assert started(scheduler, 0) == [("a", 50, (0, 1))]
    scheduler.drain("s1")
    scheduler.submit(Job(id="b", release_s=1, gpus=4, work=work))
    decision = scheduler.advance(1)
    assert (decision.starts, decision.evictions, decision.failed) == ((), (), ())


@pytest.mark.parametrize(
    ("reports", "message"),
    [
        (["fail s9"], "unknown server 's9'"),
        (["recover s0"], "recover='s0' must be a server that is down or drained"),
        (["fail s1"], "fail='s1' must be a server that is not down already"),
        (["fail s0", "fail s0"], "fail='s0' must be a server that is not down already"),
        (["recover s1", "recover s1"], "recover='s1' must be a server that is down or drained"),
        (["drain s1"], "drain='s1' must be a server that is up"),
        (["drain s0", "drain s0"], "drain='s0' must be a server that is up"),
        (["drain s0", "recover s0"], "recover='s0' must be a server that is down or drained"),
    ],
)
def test_reports_that_cannot_be_are_refused_and_change_nothing(reports: list[str], message: str) -> None:
    scheduler = Scheduler(THREE, "fifo")
    scheduler.submit(job("a", 0, 8, 100))
    scheduler.fail("s1")
    assert [start.placement.servers for start in scheduler.advance(0).starts] == [(0,)]
    *legal, illegal = (report.split() for report in reports)
    for event, server in legal:
        getattr(scheduler, event)(server)
    with pytest.raises((InvalidValueError, UnknownNameError), match=message):
        getattr(scheduler, illegal[0])(illegal[1])
    before = scheduler.snapshot()
    expected = {"fail s0": ("s0", "s1"), "recover s1": (), "drain s0": ("s1",)}
    decision = scheduler.advance(1)
    assert scheduler.down == (expected[reports[0]] if legal else ("s1",))
    assert decision.failed == (("a",) if legal == [["fail", "s0"]] else ())
    assert Scheduler.restore(before).advance(1) == decision


@pytest.mark.parametrize("before", ["up", "down", "drained"])
@pytest.mark.parametrize("last", ["fail", "recover"])
def test_of_failures_and_recoveries_of_one_instant_the_last_counts(before: str, last: str) -> None:
    scheduler = Scheduler(TWO, "fifo")
    scheduler.submit(job("a", 0, 8, 100))
    scheduler.advance(0)
    reports = {"up": [], "down": ["fail"], "drained": ["drain"]}[before]
    for report in reports:
        getattr(scheduler, report)("s0")
    scheduler.advance(1)
    for report in (["recover"] if reports else []) + ["fail", "recover"] * 2 + [last] * (last == "fail"):
        getattr(scheduler, report)("s0")
    decision = scheduler.advance(2)
    assert (decision.failed, scheduler.drained) == (() if before == "down" else ("a",), ())
    assert scheduler.down == (("s0",) if last == "fail" else ())
    assert [start.job for start in decision.starts] == ([] if last == "fail" else ["a"])


def test_a_server_that_is_no_text_is_unknown() -> None:
    with pytest.raises(UnknownNameError, match="unknown server"):
        Scheduler(TWO, "fifo").fail(0)  # type: ignore[arg-type]


def test_reported_progress_counts_up_to_the_checkpoint() -> None:
    work = Profiled(iterations=100, seconds_per_iteration={"one_server": 1})
    scheduler = Scheduler(TWO, "fifo")
    scheduler.submit(Job(id="a", release_s=0, gpus=4, work=work, checkpoint_s=30))
    scheduler.advance(0)
    scheduler.progress("a", 20, seconds_per_iteration=2)
    scheduler.advance(40)
    scheduler.fail("s0")
    # 20 iterations by 40 and one each 2 s: 30 by the checkpoint at 60, with 70 to go.
    assert started(scheduler, 70) == [("a", 140, (1,))]


def test_progress_of_the_instant_of_a_failure_counts() -> None:
    work = Profiled(iterations=100, seconds_per_iteration={"one_server": 1})
    scheduler = Scheduler(TWO, "fifo")
    scheduler.submit(Job(id="a", release_s=0, gpus=4, work=work, checkpoint_s=30))
    scheduler.advance(0)
    scheduler.progress("a", 90)
    scheduler.fail("s0")
    # 90 by 60, done evenly: by 30, 45.
    assert started(scheduler, 59) == [("a", 114, (1,))]


def test_a_job_that_fails_as_it_starts_is_remembered_where_it_starts_again() -> None:
    scheduler = Scheduler(Cluster.uniform(3, gpus=4), "las:thresholds=5:restart_s=0")
    for name, gpus in [("1", 4), ("2", 4), ("3", 2), ("4", 4)]:
        scheduler.submit(job(name, 0, gpus, 100))
    assert [servers for *_, servers in started(scheduler, 0)] == [(0,), (1,), (2,)]
    scheduler.fail("s1")
    scheduler.finish("3")
    assert started(scheduler, 0) == [("2", 100, (2,))]
    # Of those that have held more than 5 GPU-seconds the last one is evicted: it runs on the third server now.
    decision = scheduler.advance(10)
    assert decision.evictions == ("2",)
    assert [(start.job, start.placement.servers) for start in decision.starts] == [("4", (2,))]


class Broken:
    """Cannot tell the order of a job that comes back."""

    name, uses_virtual_machine, parameters = "broken", False, Wait()._asdict()

    def __init__(self) -> None:
        self.fails = False

    def priority(self, task: Task) -> int:
        if self.fails and task.past is not None:
            raise RuntimeError("no idea")
        return task.number

    def decide(self, view: View) -> Decision:
        first = view.waiting.first
        if self.fails and view.now_us == 2_000_000:
            raise RuntimeError("at a loss")
        return Start(first) if first is not None and view.free.fits(first.shape) else Wait()


def test_what_a_policy_raises_loses_no_job_and_no_failure() -> None:
    policy = Broken()
    scheduler = Scheduler(TWO, policy)
    for name in "ab":
        scheduler.submit(job(name, 0, 4, 100))
    scheduler.advance(0)
    policy.fails = True
    for server in ("s0", "s1"):
        scheduler.fail(server)
        scheduler.recover(server)
    with pytest.raises(RuntimeError, match="no idea"):
        scheduler.advance(1)
    assert scheduler.waiting == ("a", "b")
    told = scheduler.advance(2)
    assert (told.failed, told.starts, told.wake_s) == (("a", "b"), (), 2.0)
    with pytest.raises(RuntimeError, match="at a loss"):
        scheduler.advance(2)
    assert [start.job for start in scheduler.advance(3).starts] == ["a", "b"]


class BrokenGuess(Broken):
    """Keeps a virtual order, too."""

    uses_virtual_machine = True


@pytest.mark.parametrize("make", [Broken, BrokenGuess])
def test_a_job_that_starts_again_after_an_error_is_told_to_have_failed(make: type[Broken]) -> None:
    policy = make()
    scheduler = Scheduler(TWO, policy)
    scheduler.submit(job("a", 0, 4, 100))
    scheduler.advance(0)
    policy.fails = True
    scheduler.fail("s0")
    with pytest.raises(RuntimeError, match="no idea"):
        scheduler.advance(1)
    decision = scheduler.decide()
    assert (decision.failed, [start.job for start in decision.starts]) == (("a",), ["a"])
    assert scheduler.advance(3).failed == ()
    policy.fails = False
    scheduler.fail("s1")
    scheduler.recover("s0")
    decision = scheduler.advance(4)
    assert (decision.failed, [start.job for start in decision.starts]) == (("a",), ["a"])


# -- freeze levels -------------------------------------------------------------------------------------------------


class Freezing:
    """Starts what fits at level 0, and freezes it at a given time."""

    name, uses_virtual_machine, elastic, restart_s, level_change_s = "freezing", False, True, 0.0, 1.0

    def __init__(self, at_us: int) -> None:
        self.at_us = at_us

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {}

    def priority(self, task: Task) -> int:
        return task.number

    def decide(self, view: View) -> Decision:
        run = next(iter(view.runs.values()), None)
        if run is not None and view.now_us == self.at_us and view.reallocated_us != self.at_us:
            return Reallocate((Share(run.task, run.gpus, 1),))
        for task in view.waiting:
            if view.free.fits(task.shape):
                return Start(task)
        return Wait(self.at_us if view.now_us < self.at_us else None)


@pytest.mark.parametrize(
    ("fails_s", "checkpoint_s", "kept"), [(70, 30, 45), (45, 30, 15), (45, 28, 14), (45, None, 0), (34, 10, 15)]
)
def test_checkpoints_count_over_the_whole_run_whatever_its_levels(
    fails_s: float, checkpoint_s: float | None, kept: int
) -> None:
    # 2 s an iteration up to 30 s, a second of pause, then 1 s an iteration.
    table = {"one_server": {4: (2.0, 1.0)}}
    work = Elastic(iterations=100, widths=[4], seconds_per_iteration=table, compute_shares=[0, 0.5], warm_up=0.1)
    one = Job(id="J", release_s=0, gpus=4, work=work, checkpoint_s=checkpoint_s)
    policy = Freezing(30_000_000)
    result = play(TWO, policy, [one], down("s0", fails_s))
    assert pieces(result)[-1] == ("J", fails_s, fails_s + 2 * (100 - kept), (1,))
    frozen = frozen_stretches(Instance(cluster=TWO, jobs=[one]), result.schedule)
    assert frozen == ({"J": ((15, kept, 1),)} if kept > 15 else {})


def test_a_planned_job_begins_its_plan_anew() -> None:
    table = {"one_server": {1: (2, 1.5, 1)}}
    work = Elastic(
        iterations=100,
        widths=[1],
        seconds_per_iteration=table,
        compute_shares=[0, 0.5, 1],
        family="fine-tuning",
        quality_budget_points=1,
    )
    one = Job(id="a", release_s=0, gpus=1, work=work)
    result = play(Cluster.pool(1), "icefrog-rigid", [one], down("pool", 60, 70))
    shown = [(s.start_s, s.end_s, s.freeze_level) for s in result.schedule.segments]
    assert shown == [(0, 40, 0), (40, 60, 1), (70, 110, 0), (110, 152.1, 1), (152.1, 204.2, 2)]
    result = play(Cluster.pool(1), "icefrog-rigid", [one], down("pool", 60, 70), down("pool", 75, 80), restart_s=9)
    shown = [(s.start_s, s.end_s, s.freeze_level) for s in result.schedule.segments]
    assert shown == [(0, 40, 0), (40, 60, 1), (70, 75, 0), (80, 129, 0), (129, 171.1, 1), (171.1, 223.2, 2)]
    with pytest.raises(InvalidValueError, match=r"job 'a': checkpoint_s=9.0 must be None where there are outages"):
        play(Cluster.pool(1), "icefrog-rigid", [one.replace(checkpoint_s=9)], down("pool", 60, 70))


# -- what is refused -----------------------------------------------------------------------------------------------


def test_simulations_refuse_outages_that_cannot_be() -> None:
    with pytest.raises(UnknownNameError, match="unknown server 's7'"):
        play(TWO, "fifo", [], down("s7", 1))
    with pytest.raises(InvalidValueError, match="must not lie before the end"):
        play(TWO, "fifo", [], down("s0", 1), down("s0", 2))
    with pytest.raises(InvalidValueError, match="policy 'offline-optimal' plans for servers that do not fail"):
        play(TWO, "offline-optimal", [job("a", 0, 1, 1)], down("s0", 1))


def test_a_replay_takes_no_failures() -> None:
    replay = Replay(TWO, "offline-optimal", [job("a", 0, 1, 1)])
    for event in (replay.fail, replay.drain):
        with pytest.raises(InvalidValueError, match="'s0' must not be reported: the plan needs all servers"):
            event("s0")


# -- the checker ---------------------------------------------------------------------------------------------------


def faults(instance: Instance, *segments: Segment, **more: Any) -> list[tuple[str, str]]:
    report = check_schedule(instance, Schedule(segments=segments, **more))
    return [(fault.kind.value, fault.text) for fault in report.faults]


def gang(name: str, start_s: float, end_s: float, server: int) -> Segment:
    return Segment(name, round(start_s * 1e6), round(end_s * 1e6), Placement([(server, (4,))]))


def test_the_checker_finds_who_is_on_a_server_that_is_down() -> None:
    instance = Instance(cluster=TWO, jobs=[job("J", 0, 4, 100)])
    found = faults(instance, gang("J", 0, 100, 0), outages=[down("s0", 99.5)])
    text = "job 'J' holds GPUs of server 's0' from 0.0 s to 100.0 s, and the server is down at some of that time"
    assert found == [("server_down", text)]
    assert faults(instance, gang("J", 0, 100, 0), outages=[down("s0", 100), down("s1", 5)]) == []
    assert faults(instance, gang("J", 5, 105, 0), outages=[down("s0", 4, 5)]) == []
    assert faults(instance, gang("J", 5, 105, 0), outages=[down("s0", 4, 5.1)])[0][0] == "server_down"


@pytest.mark.parametrize(("end_s", "kind"), [(110, None), (109, "wrong_duration"), (100, "wrong_duration")])
def test_the_checker_knows_what_the_last_checkpoint_kept(end_s: float, kind: str | None) -> None:
    instance = Instance(cluster=TWO, jobs=[job("J", 0, 4, 100, checkpoint_s=30)])
    found = faults(instance, gang("J", 0, 70, 0), gang("J", 70, end_s, 1), outages=[down("s0", 70)])
    assert [name for name, _ in found] == ([] if kind is None else [kind])


def test_the_checker_finds_interruptions_for_which_there_is_no_outage() -> None:
    instance = Instance(cluster=TWO, jobs=[job("J", 0, 4, 100, checkpoint_s=30)])
    segments = gang("J", 0, 70, 0), gang("J", 70, 90, 1), gang("J", 90, 110, 0)
    found = faults(instance, *segments, outages=[down("s0", 70, 80)])
    assert found == [("interrupted", "job 'J' runs in 3 pieces")]


def test_the_checker_finds_jobs_that_are_left_without_a_reason() -> None:
    instance = Instance(cluster=TWO, jobs=[job("J", 0, 4, 100), job("K", 0, 40, 1)])
    refused = simulate(instance, "fifo").schedule.refused
    cut, other = gang("J", 0, 70, 0), down("s1", 0)
    assert faults(instance, cut, refused=refused, outages=[down("s0", 70), other], unfinished=["J"]) == []
    assert faults(instance, refused=refused, outages=[down("s0", 0), other], unfinished=["J"]) == []
    found = faults(instance, cut, refused=refused, outages=[down("s0", 70, 80)], unfinished=["J"])
    assert found == [("unfinished", "job 'J' is left unfinished although every server comes back")]
    found = faults(instance, gang("J", 0, 60, 0), refused=refused, outages=[down("s0", 70), other], unfinished=["J"])
    assert found == [("interrupted", "job 'J' is unfinished although no outage cuts off its last piece")]
    found = faults(instance, gang("J", 0, 100, 0), refused=refused, outages=[down("s0", 100), other], unfinished=["J"])
    assert found[0][0] == "wrong_duration"
    found = faults(instance, cut, refused=refused, outages=[down("s0", 70), other], unfinished=["J", "K", "L"])
    assert [name for name, _ in found] == ["unfinished", "unknown_job"]


@pytest.mark.parametrize(
    ("gpus", "locality", "lost", "needs"),
    [
        (4, "any", ("s0",), True),
        (3, "any", ("s1",), False),
        (3, "any", ("s0", "s1"), True),
        (2, "server", ("s0",), True),
        (2, "server", ("s1", "s2"), False),
        (2, "fewest", ("s0",), True),
        (2, "fewest", ("s1", "s2"), False),
        (1, "fewest", ("s0",), False),
    ],
)
def test_somebody_who_is_left_must_need_a_lost_server(
    gpus: int, locality: str, lost: tuple[str, ...], needs: bool
) -> None:
    cluster = Cluster(servers=[*Cluster.uniform(1, gpus=2).servers, *map(one_gpu, ("s1", "s2"))])
    jobs = [job("a", 0, gpus, 10, locality=locality), job("b", 0, 1, 10)]
    outages = [down(server, 0) for server in lost]
    found = faults(Instance(cluster=cluster, jobs=jobs), outages=outages, unfinished=["a", "b"])
    assert [name for name, _ in found] == ([] if needs else ["unfinished", "unfinished"])
    result = simulate(Instance(cluster=cluster, jobs=jobs), "fifo", outages=outages)
    assert result.schedule.unfinished == (("a", "b") if needs else ())


def one_gpu(name: str) -> Server:
    return Server(id=name, gpus=1)


def test_who_is_unfinished_is_told_by_name() -> None:
    with pytest.raises(InvalidValueError, match="schedule: unfinished=1 must be the identifier of a job"):
        Schedule(segments=(), unfinished=[1])  # type: ignore[arg-type]


def test_the_checker_finds_outages_of_unknown_servers() -> None:
    found = faults(Instance(cluster=TWO, jobs=()), outages=[down("s5", 1)])
    assert found == [("unknown_server", "server 's5' fails at 1.0 s, but the cluster does not have it")]


# -- files ---------------------------------------------------------------------------------------------------------


def test_schedules_with_outages_survive_their_file(tmp_path: Any) -> None:
    schedule = play(TWO, "fifo", [WIDE, SMALL], down("s1", 0, 4), down("s0", 5)).schedule
    assert schedule.unfinished
    save(schedule, tmp_path / "schedule.json")
    assert load_schedule(tmp_path / "schedule.json") == schedule
    plain = simulate(Instance(cluster=TWO, jobs=[SMALL]), "fifo").schedule
    save(plain, tmp_path / "plain.json")
    text = (tmp_path / "plain.json").read_text()
    assert "outages" not in text
    assert "unfinished" not in text


def test_instances_with_checkpoints_survive_their_file(tmp_path: Any) -> None:
    instance = Instance(cluster=TWO, jobs=[job("a", 0, 1, 1, checkpoint_s=0.5), job("b", 0, 1, 1)])
    save(instance, tmp_path / "instance.json")
    assert load_instance(tmp_path / "instance.json") == instance
    text = (tmp_path / "instance.json").read_text()
    assert text.count("checkpoint_s") == 1
    (tmp_path / "bad.json").write_text(text.replace("0.5", "-0.5"), encoding="utf-8")
    with pytest.raises(FileError, match=r"\$.jobs\[0\]: job 'a': checkpoint_s=-0.5 must be above 0"):
        load_instance(tmp_path / "bad.json")


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ('"outages": [{"server": "s0", "start_s": 1, "stop_s": 2}]', r"\$.outages\[0\].stop_s: unknown field"),
        ('"outages": [{"server": "s0", "start_s": 2, "end_s": 1}]', r"\$.outages\[0\]: .*must lie after"),
        ('"outages": [{"server": "s0"}]', r"\$.outages\[0\]"),
        ('"outages": [{"server": "s0", "start_s": 1}, {"server": "s0", "start_s": 2}]', r"\$: .*which never ends"),
        ('"unfinished": [7]', r"\$.unfinished\[0\]: 7 must be text"),
    ],
)
def test_files_with_bad_outages_are_refused(tmp_path: Any, field: str, message: str) -> None:
    path = tmp_path / "schedule.json"
    path.write_text('{"format": "frostline/schedule", "version": 1, "segments": [], ' + field + "}", encoding="utf-8")
    with pytest.raises(FileError, match=message):
        load_schedule(path)
