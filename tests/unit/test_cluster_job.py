"""Cluster, job, instance, placement, schedule: their rules, and the errors that name what broke them."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from decimal import Decimal
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frostline.errors import FrostlineError, InvalidValueError, UnknownNameError
from frostline.problem import (
    Cluster,
    Fixed,
    GpuType,
    Instance,
    Job,
    Locality,
    Placement,
    PlacementClass,
    Profiled,
    Reason,
    Refusal,
    Schedule,
    Segment,
    Server,
    gpu_type,
    natural_key,
    never_fits,
)


def job(**changes: Any) -> Job:
    return Job(**{"id": "a", "release_s": 0, "gpus": 4, "work": Fixed(duration_s=5), **changes})


# Cluster.


def test_uniform_and_pool() -> None:
    cluster = Cluster.uniform(np.int64(3), gpus=8, nic_bytes_per_s=1e9)
    assert [server.id for server in cluster.servers] == ["s0", "s1", "s2"]
    assert (cluster.gpus, cluster.capacities, cluster.largest) == (24, (8, 8, 8), 8)
    assert all(server.nic_bytes_per_s == 1e9 for server in cluster.servers)
    assert Cluster.pool(100).capacities == (100,)


def test_the_empty_cluster_is_legal() -> None:
    cluster = Cluster(servers=())
    assert (cluster.gpus, cluster.largest, cluster.servers_needed(1)) == (0, 0, 1)


def test_servers_needed_takes_the_largest_first() -> None:
    cluster = Cluster(servers=tuple(Server(id=f"s{i}", gpus=g) for i, g in enumerate([2, 16, 8])))
    assert [cluster.servers_needed(g) for g in (0, 1, 16, 17, 24, 25, 26, 27)] == [1, 1, 1, 2, 2, 3, 3, 4]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id": ""}, "server: id='' must be a non-empty string"),
        ({"id": 7}, "server: id=7 must be a non-empty string"),
        ({"gpus": 0}, "server 's': gpus=0 must be at least 1"),
        ({"gpus": 1.5}, "server 's': gpus=1.5 must be a whole number"),
        ({"gpus": True}, "server 's': gpus=True must be a whole number"),
        ({"nic_bytes_per_s": 0}, "server 's': nic_bytes_per_s=0 must be at least 1"),
        ({"nvlink_bytes_per_s": float("nan")}, "server 's': nvlink_bytes_per_s=nan must be finite"),
        ({"rack": 3}, "server 's': rack=3 must be text or None"),
    ],
)
def test_bad_servers(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValueError) as error:
        Server(**{"id": "s", "gpus": 8, **changes})
    assert str(error.value) == message


def test_servers_of_one_id() -> None:
    with pytest.raises(InvalidValueError, match="cluster: servers='s' is the id of two servers"):
        Cluster(servers=(Server(id="s", gpus=1), Server(id="s", gpus=2)))


def test_gpu_types() -> None:
    with pytest.raises(UnknownNameError, match="unknown GPU type 'A100-SXM-8'; did you mean 'A100-SXM-80'"):
        gpu_type("A100-SXM-8")
    with pytest.raises(UnknownNameError, match="unknown precision of GPU type 'x' 'fp8'"):
        GpuType(name="x", peak_flops={"fp16": 1}).peak("fp8")
    with pytest.raises(InvalidValueError, match="GPU type: name='' must be a non-empty string"):
        GpuType(name="", peak_flops={})
    with pytest.raises(InvalidValueError, match=r"GPU type 'x': peak_flops\[fp16\]=0 must be at least 1"):
        GpuType(name="x", peak_flops={"fp16": 0})
    with pytest.raises(InvalidValueError, match="GPU type 'x': memory_bytes=0 must be at least 1"):
        GpuType(name="x", peak_flops={}, memory_bytes=0)
    assert GpuType(name="x", peak_flops={"fp16": 1}).memory_bytes is None


# Job and work.


@pytest.mark.parametrize("gpus", [8, 8.0, np.int64(8), np.int32(8), np.float64(8.0), Decimal("8")])
def test_s12_gpus_of_any_number_type(gpus: Any) -> None:
    made = job(gpus=gpus, release_s=np.float32(0.5), work=Fixed(duration_s=np.int64(3)))
    assert made == job(gpus=8, release_s=0.5, work=Fixed(duration_s=3.0))
    assert (type(made.gpus), type(made.release_s)) == (int, float)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id": ""}, "job: id='' must be a non-empty string"),
        ({"id": 7}, "job: id=7 must be a non-empty string"),
        ({"gpus": 0}, "job 'a': gpus=0 must be at least 1"),
        ({"gpus": np.True_}, f"job 'a': gpus={np.True_!r} must be a whole number"),
        ({"gpus": "4"}, "job 'a': gpus='4' must be a whole number"),
        ({"release_s": float("inf")}, "job 'a': release_s=inf must be finite"),
        ({"release_s": "0"}, "job 'a': release_s='0' must be a number"),
        ({"release_s": -1e10}, "job 'a': release_s=-10000000000.0 must be at least -9e+09"),
        ({"weight": 0}, "job 'a': weight=0 must be above 0"),
        ({"weight": float("nan")}, "job 'a': weight=nan must be finite"),
        ({"estimate_s": 0}, "job 'a': estimate_s=0 must be above 0"),
        ({"estimate_s": -1.5}, "job 'a': estimate_s=-1.5 must be above 0"),
        ({"estimate_s": float("inf")}, "job 'a': estimate_s=inf must be finite"),
        ({"estimate_s": "60"}, "job 'a': estimate_s='60' must be a number"),
        ({"estimate_s": True}, "job 'a': estimate_s=True must be a number"),
        ({"user": None}, "job 'a': user=None must be text"),
        ({"status": 3}, "job 'a': status=3 must be text"),
        ({"locality": "rack"}, "job 'a': locality='rack' must be one of any, server, fewest"),
    ],
)
def test_bad_jobs(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValueError) as error:
        job(**changes)
    assert str(error.value) == message


def test_numbers_are_kept_as_floats() -> None:
    made = job(weight=Decimal(2), release_s=-3, estimate_s=np.int64(60))
    assert (made.weight, type(made.weight), made.release_s, type(made.release_s)) == (2.0, float, -3.0, float)
    assert (made.estimate_s, type(made.estimate_s), job().estimate_s) == (60.0, float, None)


def test_texts_may_be_of_a_kind_of_str() -> None:
    assert job(user=np.str_("u"), status=np.str_("Pass")) == job(user="u", status="Pass")


def test_locality_may_be_text() -> None:
    assert job(locality="server").locality is Locality.SERVER


@pytest.mark.parametrize("duration_s", [0, -1, float("nan"), float("inf"), "5", True, None, 1e17])
def test_bad_durations(duration_s: Any) -> None:
    with pytest.raises(InvalidValueError, match="work: duration_s="):
        Fixed(duration_s=duration_s)


def test_bad_profiles() -> None:
    one = PlacementClass.ONE_SERVER
    for iterations, table, message in [
        (0, {one: 1}, "work: iterations=0 must be at least 1"),
        (1.5, {one: 1}, "work: iterations=1.5 must be a whole number"),
        (1, {}, "work: seconds_per_iteration={} must name at least one placement class"),
        (1, {"rack": 1}, "work: seconds_per_iteration='rack' is not a placement class"),
        (1, {one: 0}, "work: seconds_per_iteration[one_server]=0 must be above 0"),
        (1, {one: "1"}, "work: seconds_per_iteration[one_server]='1' must be a number"),
    ]:
        with pytest.raises(InvalidValueError) as error:
            Profiled(iterations=iterations, seconds_per_iteration=table)  # type: ignore[arg-type]
        assert str(error.value) == message


def test_replace_validates_again_and_leaves_the_original() -> None:
    original = job()
    assert original.replace(gpus=8.0) == job(gpus=8)
    assert original == job()
    with pytest.raises(InvalidValueError, match="gpus=-1"):
        original.replace(gpus=-1)
    assert Cluster.uniform(1).replace(servers=()).gpus == 0
    with pytest.raises(FrozenInstanceError):
        original.gpus = 3  # type: ignore[misc]


def test_errors_are_errors_of_frostline_and_of_python() -> None:
    with pytest.raises(FrostlineError):
        job(gpus=0)
    with pytest.raises(ValueError, match="gpus"):
        job(gpus=0)


# Order and instance.


def test_ids_compare_as_people_read_them() -> None:
    ordered = ["3start", "007", "07", "7", "9", "10", "a" * 300, "job1", "job2", "job10", "job 7/µ-α", "x+", "x-", "x_"]
    assert sorted(sorted(ordered), key=natural_key) == ordered


@given(st.lists(st.text(st.sampled_from("0123789aé² +"), max_size=5), unique=True))
def test_distinct_ids_have_distinct_keys(ids: list[str]) -> None:
    assert len({natural_key(name) for name in ids}) == len(ids)
    backwards = [*reversed(ids)]
    assert sorted(ids, key=natural_key) == sorted(backwards, key=natural_key)


def test_t08_the_order_of_jobs_does_not_matter() -> None:
    jobs = [job(id=name, release_s=release) for name, release in [("A", 20), ("B", 0), ("C10", 0), ("C9", 0)]]
    for order in permutations(jobs):
        instance = Instance(cluster=Cluster.uniform(1), jobs=order)
        assert [made.id for made in instance.jobs] == ["B", "C9", "C10", "A"]


def test_releases_within_one_microsecond_are_one_instant() -> None:
    jobs = [job(id="b", release_s=1.0), job(id="a", release_s=1.0 + 1e-8)]
    assert [made.id for made in Instance(cluster=Cluster.uniform(1), jobs=jobs).jobs] == ["a", "b"]


def test_t10_ids_are_never_merged_as_numbers() -> None:
    ids = ["007", "7", "7.0", " 7"]
    instance = Instance(cluster=Cluster.uniform(1), jobs=[job(id=name) for name in ids])
    assert sorted(made.id for made in instance.jobs) == sorted(ids)


def test_bad_instances() -> None:
    with pytest.raises(InvalidValueError, match="instance: jobs='a' is the id of two jobs"):
        Instance(cluster=Cluster.uniform(1), jobs=[job(), job(gpus=1)])
    with pytest.raises(InvalidValueError, match="instance: name or provenance=3 must be text"):
        Instance(cluster=Cluster.uniform(1), jobs=(), provenance={"a": 3})  # type: ignore[dict-item]


# What can never run.


def test_c01_more_gpus_than_the_cluster() -> None:
    assert never_fits(job(gpus=17), Cluster.uniform(2)) == Refusal(
        job="a", need_gpus=17, largest_offer_gpus=16, reason=Reason.CLUSTER_TOO_SMALL
    )
    assert never_fits(job(gpus=8), Cluster.uniform(2)) is None


def test_c02_more_gpus_than_any_server() -> None:
    refusal = never_fits(job(gpus=5, locality=Locality.SERVER), Cluster.uniform(2, gpus=4))
    assert refusal is not None
    assert refusal.reason is Reason.SERVER_TOO_SMALL
    assert refusal.text == "job 'a': gpus=5 but the largest server has 4"


def test_c05_it_is_the_shape_that_counts() -> None:
    eight = job(gpus=8, locality=Locality.SERVER)
    assert never_fits(eight, Cluster.uniform(1, gpus=8)) is None
    assert never_fits(eight, Cluster.uniform(2, gpus=4)) is not None
    assert never_fits(eight.replace(locality=Locality.FEWEST), Cluster.uniform(2, gpus=4)) is None


def test_nothing_fits_the_empty_cluster() -> None:
    refusal = never_fits(job(gpus=1), Cluster(servers=()))
    assert refusal is not None
    assert refusal.text == "job 'a': gpus=1 but the whole cluster has 0"


# Placement and schedule.


def test_placements_are_kept_sparse_and_sorted() -> None:
    placement = Placement([(3, [2, 1]), (1, [0, 0]), (0, np.array([0, 4]))])  # type: ignore[list-item]
    assert placement.columns == ((0, (0, 4)), (3, (2, 1)))
    assert (placement.gpus, placement.servers, placement.stages) == (7, (0, 3), 2)
    assert Placement.from_matrix([[0, 4], [0, 0], [0, 0], [2, 1]]) == placement
    assert Placement.from_matrix(placement.matrix(5)) == placement
    assert Placement.of_loads([(2, 8)]) == Placement([(2, (8,))])
    assert (Placement([]).gpus, Placement([]).stages) == (0, 0)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([(0, [1]), (0, [2])], "names a server twice"),
        ([(0, [1]), (1, [1, 1])], "must all have one entry per stage"),
        ([(-1, [1])], "placement: server=-1 must be at least 0"),
        ([(0, [-1])], "placement: replicas=-1 must be at least 0"),
        ([(0, [0.5])], "placement: replicas=0.5 must be a whole number"),
    ],
)
def test_bad_placements(columns: Any, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        Placement(columns)


def test_schedules_sum_up_their_segments() -> None:
    gang = Placement([(0, (2,)), (1, (1,))])
    segments = [Segment("a", 5, 9, gang), Segment("b", 0, 4, gang), Segment("a", 0, 3, gang)]
    schedule = Schedule.of(iter(segments))
    assert [segment.job for segment in schedule.segments] == ["a", "b", "a"]
    assert schedule.start_us == {"a": 0, "b": 0}
    assert schedule.completion_us == {"a": 9, "b": 4}
    assert (schedule.gpu_us, schedule.evictions) == (33, 1)
    assert (Segment("a", 0, 1_500_000, gang).start_s, Segment("a", 0, 1_500_000, gang).end_s) == (0.0, 1.5)
