"""Answers that independent simulators agree on, and figures known for public traces."""

from __future__ import annotations

from pathlib import Path

import pytest

from frostline.problem import Cluster, Instance, Job
from frostline.relaxation import lower_bound
from frostline.simulation import simulate
from frostline.traces import read_trace
from frostline.verify import check_schedule


@pytest.mark.parametrize(
    ("name", "policy", "mean_flow_s", "makespan_s"),
    [
        # Tiresias (count) and a reference heap
        ("philly-480", "fifo", "5823.26", 239_685.0),
        # Tiresias (count), AccaSim and a reference heap
        ("philly-5000", "fifo", "23713.06", 695_106.0),
        # the Alibaba simulator, whose clock ticks once more after the last job: it prints 695,107
        ("philly-5000", "fifo:discipline=fit-anything", "22639.01", 695_106.0),
    ],
)
def test_independent_simulators_agree(
    shared: Path, name: str, policy: str, mean_flow_s: str, makespan_s: float
) -> None:
    jobs = read_trace(shared / "data" / "traces" / "oracles" / f"{name}.csv.gz").jobs
    metrics = simulate(Instance(cluster=Cluster.pool(128), jobs=jobs), policy).metrics
    assert f"{metrics.mean_flow_s:.2f}" == mean_flow_s
    assert metrics.makespan_s == makespan_s
    assert metrics.unfinished == 0


def test_last_job_of_the_oracle_ends_as_soon_as_it_can(shared: Path) -> None:
    """The makespan 695,106 cannot be 695,107: the job that ends last starts at its release."""
    jobs = read_trace(shared / "data" / "traces" / "oracles" / "philly-5000.csv.gz").jobs
    result = simulate(Instance(cluster=Cluster.pool(128), jobs=jobs), "fifo:discipline=fit-anything")
    last = max(result.schedule.segments, key=lambda segment: segment.end_us)
    job = next(job for job in jobs if job.id == last.job)
    assert last.start_s == job.release_s
    assert last.end_s == 695_106.0


@pytest.fixture(scope="module")
def itp_04(shared: Path) -> tuple[Job, ...]:
    return read_trace(shared / "data" / "traces" / "itp-2021" / "cluster04.csv.gz").jobs


def test_default_beats_or_nearly_meets_the_size_orders_on_a_real_trace(itp_04: tuple[Job, ...]) -> None:
    instance = Instance(cluster=Cluster.pool(456), jobs=itp_04)
    flow_s = {}
    for policy in ("asrpt", "sjf", "smallest-area", "fifo"):
        result = simulate(instance, policy)
        assert check_schedule(instance, result.schedule).valid
        assert result.guarantee is None or result.guarantee.holds
        flow_s[policy] = result.metrics.mean_flow_s
    assert flow_s["asrpt"] <= 1.03 * min(flow_s["sjf"], flow_s["smallest-area"])
    assert flow_s["fifo"] > 5 * flow_s["asrpt"]


@pytest.mark.parametrize(
    ("policy", "ratio"),
    [
        ("fifo", 6.1),
        ("fifo:discipline=fit-anything", 2.8),
        ("sjf", 1.35),
        ("smallest-area", 1.38),
        ("asrpt-strict", 3.2),
        ("asrpt-budget", 1.54),
    ],
)
def test_known_ratios_to_the_pointwise_bound(itp_04: tuple[Job, ...], policy: str, ratio: float) -> None:
    instance = Instance(cluster=Cluster.pool(520), jobs=itp_04)
    bound_s = lower_bound(instance).mean_flow_s
    assert simulate(instance, policy).metrics.mean_flow_s / bound_s == pytest.approx(ratio, rel=0.1)
