"""The checker on schedules made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from frostline.problem import (
    Cluster,
    Fixed,
    Instance,
    Job,
    Locality,
    Network,
    Placement,
    Reason,
    Refusal,
    Schedule,
    Segment,
    Training,
    TrainingPlan,
)
from frostline.problem.network import Layer
from frostline.testing import assert_bound_valid, assert_feasible
from frostline.timing.duration import job_duration_us
from frostline.verify import FaultKind, check_schedule

S = 1_000_000


def job(id_: str, release_s: float, gpus: int, duration_s: float, locality: Locality = Locality.ANY) -> Job:
    return Job(id=id_, release_s=release_s, gpus=gpus, work=Fixed(duration_s=duration_s), locality=locality)


def run(id_: str, start_s: int, end_s: int, *loads: tuple[int, int]) -> Segment:
    return Segment(id_, start_s * S, end_s * S, Placement((m, (gpus,)) for m, gpus in loads))


def on(servers: int, *jobs: Job) -> Instance:
    return Instance(cluster=Cluster.uniform(servers), jobs=jobs)


def kinds(instance: Instance, *segments: Segment, refused: tuple[Refusal, ...] = ()) -> list[str]:
    report = check_schedule(instance, Schedule(segments=segments, refused=refused))
    return [fault.kind.value for fault in report.faults]


def test_s22_three_planted_faults_are_three_findings() -> None:
    jobs = [
        job("a", 0, 6, 10),
        job("b", 0, 6, 10),
        job("c", 7, 2, 5),
        job("d", 0, 4, 3),
        job("e", 20, 8, 1),
    ]
    segments = [
        run("a", 0, 10, (0, 6)),
        run("b", 4, 14, (0, 6)),  # double booking
        run("c", 5, 10, (1, 2)),  # before its release
        run("d", 12, 15, (1, 3)),  # three GPUs of four
        run("e", 20, 21, (0, 8)),
    ]
    report = check_schedule(on(2, *jobs), Schedule(segments=segments))
    assert not report.valid
    assert [(fault.kind, fault.job, fault.server, fault.at_s) for fault in report.faults] == [
        (FaultKind.OVER_CAPACITY, "b", "s0", 4.0),
        (FaultKind.STARTS_BEFORE_RELEASE, "c", "s1", 5.0),
        (FaultKind.WRONG_GPUS, "d", "s1", 12.0),
    ]
    assert [fault.text for fault in report.faults] == [
        "server 's0' holds up to 12 of its 8 GPUs from 4.0 s to 10.0 s: jobs 'a', 'b'",
        "job 'c' starts at 5.0 s, before its release at 7.0 s",
        "job 'd' holds 3 GPUs but asks for 4",
    ]


def test_a_consequence_is_listed_too() -> None:
    instance = on(1, job("a", 0, 4, 10), job("b", 0, 4, 10))
    assert kinds(instance, run("a", 0, 10, (0, 5)), run("b", 0, 10, (0, 4))) == ["over_capacity", "wrong_gpus"]


def test_gpus_released_at_an_instant_are_free_at_that_instant() -> None:
    instance = on(1, job("a", 0, 8, 10), job("b", 0, 8, 5))
    assert kinds(instance, run("a", 0, 10, (0, 8)), run("b", 10, 15, (0, 8))) == []
    one_early = Segment("b", 10 * S - 1, 15 * S - 1, Placement([(0, (8,))]))
    assert kinds(instance, run("a", 0, 10, (0, 8)), one_early) == ["over_capacity"]


def test_each_server_and_each_stretch_is_a_fault_of_its_own() -> None:
    jobs = [job("long", 0, 16, 30), *(job(f"j{i}", 0, 2, 5) for i in range(3))]
    segments = [run("long", 0, 30, (0, 8), (1, 8)), run("j0", 2, 7, (0, 2)), run("j1", 7, 12, (0, 2))]
    report = check_schedule(on(2, *jobs), Schedule(segments=[*segments, run("j2", 20, 25, (1, 2))]))
    assert [(fault.server, fault.job, fault.at_s) for fault in report.faults] == [
        ("s0", "j0", 2.0),
        ("s0", "j1", 7.0),
        ("s1", "j2", 20.0),
    ]


def test_many_jobs_on_a_full_server_are_counted_not_listed() -> None:
    jobs = [job(f"j{i}", 0, 1, 5) for i in range(1, 13)]
    segments = [run(f"j{i}", 0, 5, (0, 1)) for i in range(1, 13)]
    (fault,) = check_schedule(on(1, *jobs), Schedule(segments=segments)).faults
    assert fault.text.endswith("jobs 'j1', 'j2', 'j3', 'j4', 'j5', 'j6', 'j7', 'j8', 'j9', 'j10' and 2 more")
    assert "holds up to 12 of its 8 GPUs" in fault.text


@pytest.mark.parametrize(("locality", "gpus", "allowed"), [("server", 4, 1), ("fewest", 9, 2), ("fewest", 17, 3)])
def test_locality(locality: str, gpus: int, allowed: int) -> None:
    instance = on(4, job("a", 0, gpus, 10, Locality(locality)))
    loads = [(m, gpus // allowed + (m < gpus % allowed)) for m in range(allowed)]
    assert kinds(instance, run("a", 0, 10, *loads)) == []
    spread = [*loads[:-1], (allowed - 1, loads[-1][1] - 1), (allowed, 1)]
    assert kinds(instance, run("a", 0, 10, *spread)) == ["locality"]


def test_replicas_of_each_stage_must_be_those_of_the_plan() -> None:
    layers = [
        Layer(id=i, params=8, forward_flops=6, backward_flops=12, output_elements=2, saved_bytes=8) for i in range(1)
    ]
    plan = TrainingPlan(
        network=Network(name="n", layers=layers, edges=()), stages=(range(1),), replicas=(2,), global_batch=2
    )
    training = Job(id="a", release_s=0, gpus=2, work=Training(plan=plan, iterations=3))
    instance = on(1, training)
    right = Placement([(0, (2,))])
    end_us = job_duration_us(training, instance.cluster, right)
    assert kinds(instance, Segment("a", 0, end_us, right)) == []
    assert kinds(instance, Segment("a", 0, end_us, Placement([(0, (1, 1))]))) == ["wrong_gpus"]
    assert kinds(instance, Segment("a", 0, end_us + 1, right)) == ["wrong_duration"]


def test_refusals() -> None:
    instance = on(1, job("small", 0, 1, 5), job("large", 0, 9, 5), job("lost", 0, 1, 5), job("ran", 0, 9, 5))
    refused = [Refusal(job=name, need_gpus=9, largest_offer_gpus=8, reason=Reason.CLUSTER_TOO_SMALL)
               for name in ("small", "large", "ran", "nobody")]  # fmt: skip
    report = check_schedule(instance, Schedule(segments=[run("ran", 1, 6, (0, 9))], refused=tuple(refused)))
    assert [(fault.kind.value, fault.job, fault.at_s) for fault in report.faults] == [
        ("missing_job", "lost", None),
        ("refused_but_fits", "small", None),
        ("unknown_job", "nobody", None),
        ("over_capacity", "ran", 1.0),
        ("refused_but_ran", "ran", 1.0),
    ]


def test_an_unknown_server_is_named_by_its_number_and_holds_no_capacity() -> None:
    report = check_schedule(on(1, job("a", 0, 9, 5)), Schedule(segments=[run("a", 0, 5, (0, 8), (7, 1))]))
    assert [(fault.kind.value, fault.server) for fault in report.faults] == [("unknown_server", "7")]


def test_pieces_of_an_unknown_job() -> None:
    pieces = Schedule(segments=[run("x", 0, 1, (0, 1)), run("x", 2, 3, (0, 1))])
    report = check_schedule(on(1), pieces, allow_interruptions=True)
    assert [(fault.kind.value, fault.at_s) for fault in report.faults] == [("unknown_job", 0.0), ("unknown_job", 2.0)]


def test_an_unknown_job_takes_its_gpus_all_the_same() -> None:
    assert kinds(on(1, job("a", 0, 4, 5)), run("a", 0, 5, (0, 4)), run("x", 0, 5, (0, 5))) == [
        "over_capacity",
        "unknown_job",
    ]


@pytest.mark.parametrize(
    ("start_us", "end_us"),
    [(5, 5), (6, 5), (0, float("inf")), (0.0, 5.0), (float("nan"), 5), (np.int64(0), np.int64(5)), (False, True)],
)
def test_no_interval(start_us: int, end_us: int) -> None:
    instance = on(1, job("a", 0, 4, 5e-6))
    assert kinds(instance, Segment("a", start_us, end_us, Placement([(0, (4,))]))) == ["bad_interval"]


def test_pieces() -> None:
    instance = on(1, job("a", 0, 4, 10))
    pieces = [run("a", 0, 4, (0, 4)), run("a", 3, 6, (0, 4)), run("a", 8, 9, (0, 4))]
    report = check_schedule(instance, Schedule(segments=pieces))
    assert [(fault.kind.value, fault.at_s) for fault in report.faults] == [
        ("double_booking", 3.0),
        ("interrupted", 3.0),
    ]
    report = check_schedule(instance, Schedule(segments=pieces), allow_interruptions=True)
    assert [fault.kind.value for fault in report.faults] == ["wrong_duration", "double_booking"]
    assert report.faults[0].text == "job 'a' runs for 8000000 µs in all but takes at least 10000000 µs"


def test_an_empty_instance_has_the_empty_schedule() -> None:
    assert check_schedule(Instance(cluster=Cluster(servers=()), jobs=()), Schedule(segments=())).valid


def test_assert_feasible_lists_the_faults() -> None:
    with pytest.raises(AssertionError, match=r"(?s)policy 'p'.*missing_job: job 'a'.*missing_job: job 'b'"):
        assert_feasible(on(1, job("a", 0, 1, 1), job("b", 0, 1, 1)), Schedule(segments=(), policy="p"))


def test_assert_bound_valid_is_exact() -> None:
    instance = on(1, job("a", 2, 8, 10))
    schedule = Schedule(segments=[run("a", 3, 13, (0, 8))])
    assert_bound_valid(13 * S, instance, schedule)
    assert_bound_valid(11 * S, instance, schedule, objective="flow")
    with pytest.raises(AssertionError, match="exceeds"):
        assert_bound_valid(13 * S + 1, instance, schedule)
    with pytest.raises(AssertionError, match="exceeds"):
        assert_bound_valid(11 * S + 1, instance, schedule, objective="flow")
    with pytest.raises(ValueError, match="must be 'completion' or 'flow'"):
        assert_bound_valid(0, instance, schedule, objective="makespan")
    with pytest.raises(AssertionError, match="starts at"):
        assert_bound_valid(0, instance, Schedule(segments=[run("a", 1, 11, (0, 8))]))
