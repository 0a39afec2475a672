"""The simulator on cases with known answers."""

from __future__ import annotations

import pytest

from frostline.policies import make_policy
from frostline.problem import Cluster, Fixed, Instance, Job
from frostline.simulation import Result, run, simulate
from frostline.verify import check_schedule


def job(name: str, release_s: float, gpus: int, duration_s: float, locality: str = "any") -> Job:
    return Job(id=name, release_s=release_s, gpus=gpus, work=Fixed(duration_s=duration_s), locality=locality)


def play(cluster: Cluster, *jobs: Job, policy: str = "fifo") -> Result:
    """Simulate, with every schedule checked."""
    instance = Instance(cluster=cluster, jobs=jobs)
    result = simulate(instance, policy)
    assert check_schedule(instance, result.schedule).valid
    assert result.metrics.submitted == result.metrics.jobs + result.metrics.refused
    return result


def starts(result: Result) -> dict[str, float]:
    return {name: start_us / 1e6 for name, start_us in result.schedule.start_us.items()}


def test_gangs_start_whole() -> None:
    result = play(Cluster.uniform(1), job("A", 0, 6, 10), job("B", 0, 6, 10))
    assert (result.metrics.makespan_s, result.metrics.mean_flow_s) == (20.0, 15.0)
    assert all(segment.placement.gpus == 6 for segment in result.schedule.segments)


def test_sixty_jobs_under_strict_order() -> None:
    jobs = [job(str(i), 15 * i, 1 + i % 8, 60, "server") for i in range(60)]
    strict = play(Cluster.uniform(2), *jobs)
    assert strict.metrics.jobs == 60
    assert strict.metrics.makespan_s == 1365.0
    assert max(start - 15 * int(name) for name, start in starts(strict).items()) == 420.0
    loose = play(Cluster.uniform(2), *jobs, policy="fifo:discipline=fit-anything")
    assert loose.metrics.makespan_s == 1185.0
    assert max(start - 15 * int(name) for name, start in starts(loose).items()) == 270.0


def test_master_and_worker_that_never_fit_together_never_run() -> None:
    result = play(Cluster.pool(8), job("both", 0, 16, 10))
    assert (result.metrics.jobs, result.metrics.refused) == (0, 1)
    assert result.metrics.mean_flow_s is None


def test_wide_gang_holds_nothing_while_it_waits() -> None:
    result = play(Cluster.pool(10), job("a", 0, 1, 100), job("gang", 0, 10, 10), job("Z", 1, 5, 10), policy="easy")
    assert starts(result) == {"a": 0.0, "Z": 1.0, "gang": 100.0}


@pytest.mark.parametrize(
    ("policy", "begun", "total_flow", "makespan"),
    [
        ("fifo", [0, 100, 110], 322, 115),
        ("easy", [0, 100, 2], 214, 110),
    ],
)
def test_gang_of_six(policy: str, begun: list[float], total_flow: float, makespan: float) -> None:
    result = play(Cluster.uniform(1), job("J1", 0, 6, 100), job("J2", 1, 8, 10), job("J3", 2, 2, 5), policy=policy)
    at = starts(result)
    assert [at[name] for name in ("J1", "J2", "J3")] == begun
    assert result.metrics.mean_flow_s == pytest.approx(total_flow / 3)
    assert result.metrics.makespan_s == makespan


def test_protected_head_is_not_delayed_by_a_long_job() -> None:
    jobs = (job("J1", 0, 6, 100), job("J2", 1, 8, 10), job("J3", 2, 2, 200))
    protected = play(Cluster.uniform(1), *jobs, policy="easy")
    assert (protected.metrics.mean_flow_s, protected.metrics.makespan_s) == (517 / 3, 310.0)
    loose = play(Cluster.uniform(1), *jobs, policy="fifo:discipline=fit-anything")
    assert loose.metrics.mean_flow_s == 511 / 3


def test_two_waves() -> None:
    result = play(Cluster.pool(12), *(job(f"j{i}", 0, 1, 10) for i in range(24)))
    assert (result.metrics.makespan_s, result.metrics.mean_flow_s, result.metrics.evictions) == (20.0, 15.0, 0)


def test_finish_frees_gpus_for_an_arrival_of_the_same_instant() -> None:
    result = play(Cluster.uniform(1), job("A", 0, 8, 10), job("B", 10, 8, 5))
    assert starts(result)["B"] == 10.0


def test_time_is_not_rounded_up_to_rounds() -> None:
    result = play(Cluster.pool(1), job("a", 0, 1, 371))
    assert result.metrics.makespan_s == 371.0
    assert result.metrics.gpu_hours == pytest.approx(371 / 3600)


def test_tenths_of_seconds_add_up() -> None:
    result = play(Cluster.pool(1), *(job(f"j{i}", 0, 1, 0.1) for i in range(10)))
    assert max(segment.end_s for segment in result.schedule.segments) == 1.0


def test_shifted_arrivals_shift_the_schedule() -> None:
    rows = [("a", 0.0, 3, 10.5), ("b", 1.25, 8, 3.0), ("c", 2.5, 2, 7.0)]
    for policy in ("fifo", "easy", "asrpt-strict", "asrpt-budget", "asrpt-guard"):
        near = play(Cluster.uniform(1), *(job(i, r, g, p) for i, r, g, p in rows), policy=policy)
        far = play(Cluster.uniform(1), *(job(i, r + 1e9, g, p) for i, r, g, p in rows), policy=policy)
        assert {name: at + 1e9 for name, at in starts(near).items()} == starts(far)


def test_consolidation_leaves_room() -> None:
    result = play(Cluster.uniform(2), job("J1", 0, 4, 10), job("J2", 0, 4, 10), job("J3", 0, 6, 10, "server"))
    assert (result.metrics.makespan_s, result.metrics.mean_flow_s) == (10.0, 10.0)


def test_small_jobs_share_a_server_and_the_wide_one_starts() -> None:
    jobs = [job(f"s{i}", 0, 1, 100) for i in range(8)]
    result = play(Cluster.uniform(2), *jobs, job("K", 1, 8, 10, "server"))
    assert starts(result)["K"] == 1.0


@pytest.mark.parametrize(("cluster", "refused"), [(Cluster.uniform(1), 0), (Cluster.uniform(2, gpus=4), 1)])
def test_shape_counts_not_totals(cluster: Cluster, refused: int) -> None:
    result = play(cluster, job("a", 0, 8, 10, "server"))
    assert result.metrics.refused == refused


def test_metrics_cover_all_jobs() -> None:
    result = play(Cluster.uniform(2), job("J1", 0, 8, 10), job("J2", 5, 4, 15))
    assert result.schedule.gpu_us == 140_000_000
    assert result.metrics.utilisation == 0.4375


def test_known_flow_times() -> None:
    flows = [6153.535, 6241.215, 5961.997, 5696.253, 5661.478, 5093.098, 5943.596, 6198.878, 6073.242, 6350.500]
    flows += [5383.215, 6251.401, 5828.123, 5683.144, 5817.296]
    metrics = play(Cluster.pool(15), *(job(f"j{i}", 0, 1, p) for i, p in enumerate(flows))).metrics
    assert metrics.mean_flow_s is not None
    assert round(metrics.mean_flow_s, 3) == 5889.131
    assert (metrics.median_flow_s, metrics.max_flow_s) == (5943.596, 6350.500)


def test_no_jobs() -> None:
    result = play(Cluster.pool(1))
    assert (result.metrics.jobs, result.metrics.mean_flow_s, result.metrics.makespan_s) == (0, None, None)


def test_policies_do_not_disturb_each_other() -> None:
    instance = Instance(cluster=Cluster.uniform(1), jobs=[job("a", 0, 6, 9), job("b", 1, 8, 3), job("c", 2, 2, 5)])
    alone = {name: run(instance, make_policy(name)) for name in ("sjf", "asrpt-guard")}
    for names in (("sjf", "asrpt-guard"), ("asrpt-guard", "sjf")):
        for name in names:
            assert run(instance, make_policy(name)) == alone[name]


def test_progress_is_reported_and_its_errors_reach_the_caller() -> None:
    instance = Instance(cluster=Cluster.pool(50), jobs=[job(f"j{i}", i, 1, 1) for i in range(2500)])
    calls: list[tuple[int, int]] = []
    simulate(instance, "fifo", on_progress=lambda done, total: calls.append((done, total)))
    assert calls == [(1000, 2500), (2000, 2500), (2500, 2500)]

    def angry(done: int, total: int) -> None:
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        simulate(instance, "fifo", on_progress=angry)


def test_centuries_of_work() -> None:
    jobs = [job(str(i), 0, 1, 9e9) for i in range(600)]
    assert play(Cluster.pool(1), *jobs).metrics.makespan_s == 600 * 9e9
