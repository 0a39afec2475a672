"""Run times of jobs: rounding, placement classes, GPU types, the shortest run time."""

from __future__ import annotations

from typing import Any

import pytest

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.problem.cluster import Cluster, GpuType, Server
from frostline.problem.job import Fixed, Job, PlacementClass, Profiled, Training, Work
from frostline.problem.network import Edge, Layer, Network
from frostline.problem.placement import Placement
from frostline.problem.plan import TrainingPlan
from frostline.timing.duration import fastest_us, job_duration_us, training_time

ONE, MANY = PlacementClass.ONE_SERVER, PlacementClass.MANY_SERVERS
SLOW = GpuType(name="slow", peak_flops={"fp32": 100})
FAST = GpuType(name="fast", peak_flops={"fp32": 400, "fp16": 800})


def job_of(work: Work, gpus: int = 2, **fields: Any) -> Job:
    return Job(id="j", release_s=0, work=work, gpus=gpus, **fields)


def profiled(iterations: int, **table: float) -> Profiled:
    return Profiled(iterations=iterations, seconds_per_iteration={PlacementClass(k): v for k, v in table.items()})


@pytest.fixture
def plan() -> TrainingPlan:
    """Two stages of one replica: 300 FLOPs each for the batch, 1000 bytes between them."""
    layers = tuple(
        Layer(id=i, params=0, forward_flops=100, backward_flops=200, output_elements=1, saved_bytes=0) for i in range(2)
    )
    edges = (Edge(source=0, target=1, elements=125),)
    network = Network(name="two", layers=layers, edges=edges)
    return TrainingPlan(
        network=network,
        stages=(range(1), range(1, 2)),
        replicas=(1, 1),
        global_batch=1,
        precision="fp32",
        utilisation=1.0,
    )


def cluster_of(*kinds: GpuType, gpus: int = 1, **fields: Any) -> Cluster:
    return Cluster(servers=tuple(Server(id=f"s{m}", gpus=gpus, gpu_type=k, **fields) for m, k in enumerate(kinds)))


class TestProfiled:
    @pytest.mark.parametrize(
        ("iterations", "seconds", "expected_us"),
        [(10, 0.1, 1_000_000), (3, 0.1, 300_000), (3, 1e-7, 1), (30, 1e-7, 3), (31, 1e-7, 4), (7, 1.5, 10_500_000)],
    )
    def test_rounded_up_once(self, iterations: int, seconds: float, expected_us: int) -> None:
        job = job_of(profiled(iterations, one_server=seconds))
        assert job_duration_us(job, Cluster.uniform(1), Placement([(0, (2,))])) == expected_us
        assert fastest_us(job, Cluster.uniform(1)) == expected_us

    def test_by_class_of_placement(self) -> None:
        job = job_of(profiled(1, one_server=2.0, many_servers=3.0))
        where = [Placement([(1, (2,))]), Placement([(0, (1,)), (1, (1,))])]
        assert [job_duration_us(job, Cluster.uniform(2), p) for p in where] == [2_000_000, 3_000_000]

    def test_the_only_figure_there_is(self) -> None:
        job = job_of(profiled(1, many_servers=3.0))
        assert job_duration_us(job, Cluster.uniform(2), Placement([(1, (2,))])) == 3_000_000

    @pytest.mark.parametrize(
        ("gpus", "locality", "servers", "expected"),
        [
            (4, "any", 2, MANY),
            (4, "any", 1, ONE),
            (1, "any", 2, ONE),
            (4, "server", 2, ONE),
            (4, "fewest", 2, ONE),
            (9, "fewest", 2, MANY),
            (9, "any", 2, MANY),
        ],
    )
    def test_fastest_among_the_classes_within_reach(
        self, gpus: int, locality: str, servers: int, expected: PlacementClass
    ) -> None:
        work = profiled(1, one_server=2.0, many_servers=1.0)
        job = job_of(work, gpus, locality=locality)
        assert fastest_us(job, Cluster.uniform(servers)) == work.seconds_per_iteration[expected] * 1_000_000

    def test_many_servers_slower(self) -> None:
        job = job_of(profiled(1, one_server=2.0, many_servers=3.0), 12)
        assert fastest_us(job, Cluster.uniform(2)) == 3_000_000

    def test_too_long(self) -> None:
        job = job_of(profiled(10**9, one_server=10.0))
        with pytest.raises(InvalidValueError, match="job 'j': duration_us="):
            fastest_us(job, Cluster.uniform(1))


class TestTraining:
    def test_by_hand(self, plan: TrainingPlan) -> None:
        cluster = cluster_of(FAST, FAST, gpus=2, nvlink_bytes_per_s=4000, nic_bytes_per_s=500)
        job = job_of(Training(plan=plan, iterations=3))
        base_s = 300 / 400 * 2 + 1000 / 4000  # compute × pipeline fill, exchange inside a server
        together, apart = Placement([(1, (1, 1))]), Placement([(0, (1, 0)), (1, (0, 1))])
        assert job_duration_us(job, cluster, together) == 3 * base_s * 1_000_000
        assert job_duration_us(job, cluster, apart) == 3 * (base_s + 500 / 500) * 1_000_000
        assert fastest_us(job, cluster) == 3 * base_s * 1_000_000

    def test_the_whole_job_is_rounded_up(self, plan: TrainingPlan) -> None:
        cluster = cluster_of(GpuType(name="g", peak_flops={"fp32": 3e9}), gpus=2, nvlink_bytes_per_s=1e18)
        together = Placement([(0, (1, 1))])  # 200 ns an iteration
        times = [job_duration_us(job_of(Training(plan=plan, iterations=n)), cluster, together) for n in (1, 5, 6)]
        assert times == [1, 1, 2]

    def test_slowest_type_that_is_used(self, plan: TrainingPlan) -> None:
        cluster = cluster_of(FAST, SLOW, FAST, nvlink_bytes_per_s=1e18, nic_bytes_per_s=1e18)
        job = job_of(Training(plan=plan, iterations=1))
        where = [Placement([(a, (1, 0)), (b, (0, 1))]) for a, b in [(0, 2), (0, 1)]]
        assert [job_duration_us(job, cluster, p) for p in where] == [1_500_000, 6_000_000]
        assert fastest_us(job, cluster) == 1_500_000
        assert training_time(plan, cluster).base_ns == 6_000_000_000

    def test_types_that_share_a_name(self, plan: TrainingPlan) -> None:
        cluster = cluster_of(GpuType(name="slow", peak_flops={"fp32": 50}), SLOW, gpus=2, nvlink_bytes_per_s=1e18)
        job = job_of(Training(plan=plan, iterations=1))
        assert [job_duration_us(job, cluster, Placement([(m, (1, 1))])) for m in (0, 1)] == [12_000_000, 6_000_000]

    def test_models_are_kept(self, plan: TrainingPlan) -> None:
        cluster = cluster_of(FAST, gpus=2)
        assert training_time(plan, cluster) is training_time(plan, cluster)
        assert training_time(plan, cluster).graph is training_time(plan, cluster_of(FAST)).graph

    def test_placement_of_another_job(self, plan: TrainingPlan) -> None:
        with pytest.raises(InvalidValueError, match="must equal"):
            job_duration_us(job_of(Training(plan=plan, iterations=1)), cluster_of(FAST), Placement([(0, (2,))]))

    def test_no_servers(self, plan: TrainingPlan) -> None:
        job = job_of(Training(plan=plan, iterations=1))
        with pytest.raises(InvalidValueError, match="must not be empty"):
            fastest_us(job, cluster_of())
        with pytest.raises(InvalidValueError, match="must not be empty"):
            training_time(plan, cluster_of())

    def test_unknown_server(self, plan: TrainingPlan) -> None:
        job = job_of(Training(plan=plan, iterations=1))
        for cluster in (cluster_of(FAST), cluster_of(FAST, SLOW)):
            with pytest.raises(InvalidValueError, match="server=7 must be below"):
                job_duration_us(job, cluster, Placement([(7, (1, 1))]))

    def test_precision_that_a_type_lacks(self, plan: TrainingPlan) -> None:
        job = job_of(Training(plan=plan.replace(precision="fp16"), iterations=1))
        with pytest.raises(UnknownNameError, match="precision of GPU type 'slow'"):
            fastest_us(job, cluster_of(SLOW))


def test_fixed_work_takes_its_duration_anywhere() -> None:
    job = job_of(Fixed(duration_s=1.1))
    assert job_duration_us(job, Cluster.uniform(1), Placement([(0, (2,))])) == 1_100_000
    assert fastest_us(job, Cluster.uniform(1)) == 1_100_000
