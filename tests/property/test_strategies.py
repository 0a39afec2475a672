"""The strategies keep their promises, reach what they should, and shrink to small cases."""

from __future__ import annotations

from typing import Any

from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from frostline.problem import Cluster, Instance, Job, Locality, Training, TrainingPlan, never_fits
from frostline.testing import clusters, instances, jobs, networks, plans, schedules, stage_graphs
from frostline.timing.stage_graph import StageGraph

SHRUNK = settings(max_examples=2000, database=None, derandomize=True)
DRAWN = settings(SHRUNK, phases=[Phase.generate])


@given(clusters(max_servers=4, max_gpus=5), clusters(max_gpus=9, pool=True), clusters(uniform=True))
def test_clusters(any_: Cluster, pool: Cluster, uniform: Cluster) -> None:
    assert 1 <= len(any_.servers) <= 4
    assert any_.largest <= 5
    assert (len(pool.servers), pool.gpus <= 9) == (1, True)
    assert len(set(uniform.capacities)) == 1


@given(jobs(max_gpus=3, localities=(Locality.SERVER, Locality.FEWEST), works=("profiled", "training")))
def test_jobs(job: Job) -> None:
    assert job.gpus <= 3
    assert job.locality is not Locality.ANY


@given(instances(max_jobs=4, max_gpus=6, localities=tuple(Locality), works=("fixed", "profiled", "training")))
def test_every_job_of_an_instance_fits(instance: Instance) -> None:
    assert len(instance.jobs) <= 4
    assert instance.cluster.largest <= 6
    assert all(never_fits(job, instance.cluster) is None for job in instance.jobs)


@given(st.integers(1, 12).flatmap(lambda gpus: st.tuples(st.just(gpus), plans(gpus=gpus))))
def test_plans(drawn: tuple[int, TrainingPlan]) -> None:
    gpus, plan = drawn
    assert plan.gpus == gpus


@given(stage_graphs(max_stages=3, max_gpus=5))
def test_stage_graphs(graph: StageGraph) -> None:
    assert len(graph.replicas) <= 3
    assert graph.gpus <= 5


def test_what_can_be_drawn() -> None:
    find(instances(impossible=True), lambda i: any(never_fits(job, i.cluster) for job in i.jobs), settings=DRAWN)
    find(networks(), lambda network: len(network.edges) >= len(network.layers), settings=DRAWN)
    find(stage_graphs(), lambda graph: len(graph.edges) > len(graph.traffic), settings=DRAWN)
    find(instances(), lambda i: len({job.release_s for job in i.jobs}) < len(i.jobs), settings=DRAWN)
    find(instances(works=("training",)), lambda i: any(_stages(job) > 1 for job in i.jobs), settings=DRAWN)


def _stages(job: Job) -> int:
    assert isinstance(job.work, Training)
    return len(job.work.plan.stages)


def test_a_late_job_may_start_first() -> None:
    def overtaken(drawn: tuple[Instance, Any]) -> bool:
        instance, schedule = drawn
        starts = [schedule.start_us[job.id] for job in instance.jobs]
        return starts != sorted(starts)

    pairs = instances(max_jobs=3).flatmap(lambda i: st.tuples(st.just(i), schedules(i)))
    find(pairs, overtaken, settings=DRAWN)


def test_small_counterexamples() -> None:
    instance = find(instances(), lambda i: sum(job.gpus for job in i.jobs) > i.cluster.gpus, settings=SHRUNK)
    assert (len(instance.jobs), instance.cluster.gpus) == (2, 1)
    assert {(job.release_s, job.work.duration_s, job.gpus) for job in instance.jobs} == {(0.0, 1.0, 1)}  # type: ignore[union-attr]
