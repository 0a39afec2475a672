"""The placement of a whole job, by hand."""

from __future__ import annotations

import pytest

from frostline.placement.free_gpus import FreeGpus, shape_of
from frostline.placement.offer import place_job
from frostline.problem import Cluster, Job, Network, Placement, Training, TrainingPlan
from frostline.problem.network import Edge, Layer
from frostline.timing.duration import job_duration_us


def training(replicas: tuple[int, int], locality: str = "any") -> Job:
    """Two stages that exchange much and train little."""
    layers = [
        Layer(id=i, params=0, forward_flops=1, backward_flops=2, output_elements=10**9, saved_bytes=0) for i in range(2)
    ]
    network = Network(name="n", layers=layers, edges=[Edge(source=0, target=1, elements=10**9)])
    stages = (range(1), range(1, 2))
    plan = TrainingPlan(network=network, stages=stages, replicas=replicas, global_batch=max(replicas))
    return Job(id="t", release_s=0, gpus=sum(replicas), work=Training(plan=plan, iterations=5), locality=locality)


@pytest.mark.parametrize("locality", ["any", "fewest"])
def test_a_training_job_takes_the_fewest_servers_even_if_more_were_faster(locality: str) -> None:
    cluster = Cluster.uniform(4, gpus=4)
    job = training((4, 4), locality)
    placed = place_job(job, cluster, FreeGpus(cluster.capacities), shape_of(job, cluster))
    assert placed is not None
    placement, duration_us = placed
    assert len(placement.servers) == 2
    assert duration_us == job_duration_us(job, cluster, placement)
    faster = Placement((m, (1, 1)) for m in range(4))
    assert job_duration_us(job, cluster, faster) < duration_us


def test_a_training_job_that_fits_one_server_goes_there_by_best_fit() -> None:
    cluster = Cluster.uniform(3, gpus=4)
    free = FreeGpus(cluster.capacities)
    free.take(((1, 1),))
    job = training((1, 2))
    placed = place_job(job, cluster, free, shape_of(job, cluster))
    assert placed is not None
    assert placed[0].columns == ((1, (1, 2)),)


def test_no_offer_where_a_job_does_not_fit() -> None:
    cluster = Cluster.uniform(2, gpus=4)
    free = FreeGpus(cluster.capacities)
    free.take(((0, 2),))
    job = training((4, 3))
    assert place_job(job, cluster, free, shape_of(job, cluster)) is None
