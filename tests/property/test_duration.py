"""The shortest and the longest run time bound the run time of every allowed placement."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from frostline.problem.cluster import Cluster, GpuType, Server
from frostline.problem.job import Fixed, Job, Locality, PlacementClass, Profiled, Training, Work
from frostline.problem.placement import Placement
from frostline.problem.plan import TrainingPlan
from frostline.testing import durations_s, elastic_works, plans
from frostline.timing.duration import fastest_us, job_duration_us, slowest_us, training_time
from frostline.timing.iteration_time import iteration_ns

GPUS = 4
TYPES = tuple(
    GpuType(name=name, peak_flops=dict.fromkeys(("fp32", "tf32", "fp16", "bf16"), peak))
    for name, peak in [("slow", 1e12), ("fast", 3e12)]
)


@st.composite
def servers(draw: st.DrawFn) -> Cluster:
    bandwidths = st.sampled_from([1e8, 1e10, 1e12])
    count = draw(st.integers(1, 3))
    return Cluster(
        servers=tuple(
            Server(
                id=f"s{m}",
                gpus=GPUS,
                gpu_type=draw(st.sampled_from(TYPES)),
                nvlink_bytes_per_s=draw(bandwidths),
                nic_bytes_per_s=draw(bandwidths),
            )
            for m in range(count)
        )
    )


def works() -> st.SearchStrategy[Work]:
    tables = st.dictionaries(st.sampled_from(list(PlacementClass)), durations_s(), min_size=1)
    iterations = st.integers(1, 50)
    return (
        st.builds(Fixed, duration_s=durations_s())
        | st.builds(Profiled, iterations=iterations, seconds_per_iteration=tables)
        | elastic_works(gpus=GPUS, max_iterations=50)
        | st.builds(Training, plan=plans(gpus=GPUS), iterations=iterations)
    )


@given(st.data(), servers(), works(), st.sampled_from(Locality))
def test_no_placement_is_faster_or_slower_than_the_bounds(
    data: st.DataObject, cluster: Cluster, work: Work, locality: Locality
) -> None:
    job = Job(id="j", release_s=0, work=work, gpus=GPUS, locality=locality)
    last = len(cluster.servers) - 1 if locality is Locality.ANY else 0
    shift = data.draw(st.integers(0, len(cluster.servers) - 1))
    where = data.draw(st.lists(st.integers(0, last), min_size=GPUS, max_size=GPUS))
    replicas = work.plan.replicas if isinstance(work, Training) else (GPUS,)
    matrix = [[0] * len(replicas) for _ in cluster.servers]
    stages = [s for s, count in enumerate(replicas) for _ in range(count)]
    for stage, server in zip(stages, where, strict=True):
        matrix[(server + shift) % len(matrix)][stage] += 1
    placement = Placement.from_matrix(matrix)
    duration_us = job_duration_us(job, cluster, placement)
    assert 1 <= fastest_us(job, cluster) <= duration_us <= slowest_us(job, cluster)
    if isinstance(work, Training):
        ns = iteration_ns(training_time(work.plan, cluster, placement.servers), placement)
        assert 0 <= duration_us - Fraction(work.iterations * ns, 1000) < 1


@given(plans(gpus=GPUS), st.integers(1, 50), st.sampled_from(TYPES))
def test_one_server_of_equals_is_fastest(plan: TrainingPlan, iterations: int, kind: GpuType) -> None:
    cluster = Cluster.uniform(2, gpus=GPUS, gpu_type=kind)
    job = Job(id="j", release_s=0, work=Training(plan=plan, iterations=iterations), gpus=GPUS)
    assert fastest_us(job, cluster) == job_duration_us(job, cluster, Placement([(1, plan.replicas)]))
