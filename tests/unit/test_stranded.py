"""A job that needs servers that are down takes nothing from those behind it: who is next is protected."""

from __future__ import annotations

import pytest

from frostline.placement.free_gpus import FreeGpus, Shape
from frostline.problem import Cluster, Fixed, Instance, Job, Outage
from frostline.scheduler import Scheduler
from frostline.simulation import simulate

TWO = Cluster.uniform(2, gpus=8)
DOWN = [Outage(server="s1", start_s=0, end_s=1000)]


def job(name: str, release_s: float, gpus: int, duration_s: float) -> Job:
    return Job(id=name, release_s=release_s, gpus=gpus, work=Fixed(duration_s=duration_s))


@pytest.mark.parametrize(
    ("policy", "latest_s"),
    [("easy", 9), ("asrpt", 58), ("asrpt:patience=0.5", 27), ("asrpt-guard:patience=0.5", 27), ("asrpt-budget", 23)],
)
def test_a_stream_of_small_jobs_does_not_overtake_who_is_next_for_ever(policy: str, latest_s: float) -> None:
    """Small jobs that overlap leave no server empty unless the job that needs a whole one is protected."""
    stream = [job(f"small{i}", 4 * i, 4, 9) for i in range(60)]
    jobs = [job("both servers", 0.5, 16, 2), job("one server", 1, 8, 10), *stream]
    start_us = simulate(Instance(cluster=TWO, jobs=jobs), policy, outages=DOWN).schedule.start_us
    assert start_us["one server"] <= latest_s * 1e6
    assert start_us["both servers"] >= 1000e6


def test_easy_passes_a_stranded_job_as_if_it_were_not_there() -> None:
    stream = [job(f"small{i}", 4 * i, 1 + i % 4, 9) for i in range(60)]
    jobs = [job("one server", 1, 8, 10), *stream]
    plain = simulate(Instance(cluster=TWO, jobs=jobs), "easy", outages=DOWN).schedule.start_us
    jobs.insert(0, job("both servers", 0.5, 16, 2))
    start_us = simulate(Instance(cluster=TWO, jobs=jobs), "easy", outages=DOWN).schedule.start_us
    assert {name: at for name, at in start_us.items() if name != "both servers"} == plain


def test_without_anybody_who_could_run_all_wait() -> None:
    scheduler = Scheduler(TWO, "easy")
    scheduler.drain("s0")
    scheduler.submit(job("a", 0, 16, 1))
    scheduler.submit(job("b", 0, 12, 1))
    assert scheduler.advance(0).starts == ()
    assert scheduler.stranded == ("a", "b")


def test_what_open_servers_could_hold_follows_the_servers() -> None:
    free = FreeGpus([8, 4])
    shapes = [Shape(gpus, servers) for gpus, servers in ((12, 2), (8, 1), (5, 2), (4, 1))]
    held = {
        (): [True, True, True, True],
        (0,): [False, False, False, True],
        (0, 1): [False, False, False, False],
        (1,): [False, True, True, True],
    }
    free.take(((0, 8), (1, 4)))
    for closed, answers in held.items():
        for server, gpus in enumerate((8, 4)):
            if (server in closed) != bool(free.closed >> server & 1):
                (free.close if server in closed else free.open)(server, gpus)
        assert [free.could_hold(shape) for shape in shapes] == answers
        assert [free.copy().could_hold(shape) for shape in shapes] == answers
    free.open(1, 4)
    assert all(map(free.could_hold, shapes))
