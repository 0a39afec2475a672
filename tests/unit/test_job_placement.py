"""The placement method that a scheduler or a simulation is given is the one that places its training jobs."""

from __future__ import annotations

import pytest

from frostline.errors import UnknownNameError
from frostline.placement.place import place
from frostline.problem import Cluster, Fixed, Instance, Job, Training, TrainingPlan, shipped_network
from frostline.scheduler import Scheduler
from frostline.simulation import simulate
from frostline.timing.duration import job_duration_us, training_time
from frostline.verify import check_schedule

CLUSTER = Cluster.uniform(4, gpus=8, nic_bytes_per_s=1e9)
PLAN = TrainingPlan.balanced(shipped_network("bert_large"), 12, stages=4)


def instance() -> Instance:
    """Three jobs leave 3, 5, 6 and 8 GPUs free; then comes one that no server holds."""
    small = [Job(id=f"small{n}", release_s=0, work=Fixed(duration_s=9e5), gpus=n, locality="server") for n in (5, 3, 2)]
    wide = Job(id="wide", release_s=1, work=Training(plan=PLAN, iterations=1000), gpus=12)
    return Instance(cluster=CLUSTER, jobs=[*small, wide])


@pytest.mark.parametrize("method", ["heavy-edge", "best-fit", "local-search"])
def test_jobs_are_placed_by_the_method_that_was_asked_for(method):
    problem = instance()
    schedule = simulate(problem, "fifo", placement=method).schedule
    assert check_schedule(problem, schedule).valid
    segments = {segment.job: segment for segment in schedule.segments}
    free = list(CLUSTER.capacities)
    for name in ("small5", "small3", "small2"):
        for server, gpus in segments[name].placement.loads:
            free[server] -= gpus
    expected = place(training_time(PLAN, CLUSTER), free, method=method, objective="consolidate").placement
    wide = segments["wide"]
    assert wide.placement == expected
    assert wide.end_us - wide.start_us == job_duration_us(problem.jobs[-1], CLUSTER, expected)


def test_local_search_is_the_default_and_no_slower_than_heavy_edge():
    ends = {
        method: simulate(instance(), "fifo", **words).schedule.completion_us["wide"]
        for method, words in {
            "default": {},
            **{name: {"placement": name} for name in ("local-search", "heavy-edge")},
        }.items()
    }
    assert ends["default"] == ends["local-search"] <= ends["heavy-edge"]


def test_unknown_methods_are_refused_at_once():
    with pytest.raises(UnknownNameError, match="did you mean 'heavy-edge'"):
        simulate(instance(), "fifo", placement="heavy")
    with pytest.raises(UnknownNameError, match="placement method"):
        Scheduler(CLUSTER, "fifo", placement="")
