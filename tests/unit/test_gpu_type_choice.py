"""One GPU type per job: which one, and what is proved by it."""

from __future__ import annotations

import pytest

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.placement import cpsat as cpsat_module
from frostline.placement.answer import Answer
from frostline.placement.free_gpus import FreeGpus, shape_of
from frostline.placement.offer import place_job
from frostline.placement.packing import best_fit
from frostline.placement.place import METHODS, place
from frostline.placement.request import DoesNotFitError
from frostline.problem import Cluster, GpuType, Instance, Job, Server, Training, TrainingPlan, shipped_network
from frostline.simulation import simulate
from frostline.timing.contention import ContentionTime
from frostline.timing.duration import training_time
from frostline.timing.stage_graph import StageGraph
from frostline.verify import check_schedule

OLD = GpuType(name="old", peak_flops={"fp16": 50e12})
NEW = GpuType(name="new", peak_flops={"fp16": 300e12})
EVEN = GpuType(name="even", peak_flops={"fp32": 20e12})
PLAN = TrainingPlan.balanced(shipped_network("bert_large"), 12, stages=4)


def cluster_of(*kinds: GpuType, **fields) -> Cluster:
    return Cluster(servers=[Server(id=f"s{i}", gpus=8, gpu_type=kind, **fields) for i, kind in enumerate(kinds)])


MIXED = cluster_of(OLD, NEW, OLD, NEW)


def test_types_of_a_cluster():
    assert MIXED.gpu_types == (OLD, NEW)
    assert Cluster(servers=()).gpu_types == ()


@pytest.mark.parametrize("method", ["local-search", "patterns", "cpsat", "brute-force"])
def test_a_plan_goes_to_the_faster_type(method):
    result = place(PLAN, [8] * 4, method=method, cluster=MIXED)
    assert result.placement.servers == (1, 3)
    expected = place(training_time(PLAN, MIXED, [1, 3]), [0, 8, 0, 8], method=method)
    assert (result.iteration_ns, result.placement) == (expected.iteration_ns, expected.placement)


def test_or_to_the_one_with_room():
    assert place(PLAN, [8, 8, 8, 3], cluster=MIXED).placement.servers == (0, 2)


def test_the_bound_holds_for_all_types():
    """A stage graph computes as fast on both types; the bound of the worse one must not count as proof."""
    result = place(PATH, [2, 4, 6, 4], method="cpsat", cluster=MIXED)
    separately = [place(PATH, alone, method="cpsat") for alone in ([2, 0, 6, 0], [0, 4, 0, 4])]
    assert result.iteration_ns == min(one.iteration_ns for one in separately)
    assert result.bound_ns == min(one.bound_ns for one in separately)
    assert result.status.proved_optimal


def test_fewest_servers_over_all_types():
    free = [8, 4, 4, 8]
    result = place(PLAN, free, objective="consolidate", method="cpsat", cluster=cluster_of(OLD, NEW, NEW, OLD))
    assert result.servers_used == 2
    assert place(PLAN, [8, 4, 4, 4], objective="consolidate", cluster=cluster_of(OLD, NEW, OLD, NEW)).servers_used == 2
    only_old = cluster_of(OLD, NEW, NEW, OLD)
    assert place(PLAN, [8, 5, 5, 8], objective="consolidate", cluster=only_old).placement.servers == (0, 3)


def test_no_type_has_room():
    with pytest.raises(DoesNotFitError, match="gpus=12 of 20 free, but at most 11 are of one GPU type"):
        place(PLAN, [8, 4, 3, 5], cluster=MIXED)


def test_types_without_the_precision_are_left_out():
    cluster = cluster_of(EVEN, OLD, EVEN, OLD)
    assert place(PLAN, [8] * 4, cluster=cluster).placement.servers == (1, 3)
    with pytest.raises(UnknownNameError, match="precision of GPU type 'even'"):
        place(PLAN, [8] * 2, cluster=cluster_of(EVEN, EVEN))


@pytest.mark.parametrize("cluster", [None, Cluster(servers=())])
def test_a_plan_needs_servers(cluster):
    with pytest.raises(InvalidValueError, match="must have the servers that a plan is timed on"):
        place(PLAN, [], cluster=cluster)


PATH = StageGraph(replicas=[2, 4, 2], compute_s=[0, 0, 0], edges={(0, 1): 10**9, (1, 2): 10**9})


def test_interrupted_on_the_first_type(monkeypatch):
    """What is optimal on one type need not be on the other, which nobody has looked at."""
    monkeypatch.setattr(cpsat_module, "run_interruptibly", lambda run, stop: (run(), True))
    result = place(PATH, [6, 4, 2, 4], method="cpsat", cluster=MIXED)
    assert result.placement.servers == (0, 2)
    assert result.bound_ns == training_bound_ns(PATH)
    assert not result.status.proved_optimal


def training_bound_ns(graph: StageGraph) -> int:
    return ContentionTime.of_cluster(graph, MIXED).bound_ns


def test_interrupted_before_the_second_type_has_a_placement(monkeypatch):
    seen = []

    def method(request):
        seen.append(request)
        if len(seen) > 1:
            raise KeyboardInterrupt
        return Answer(matrix=best_fit(request), source="first")

    monkeypatch.setitem(METHODS, "first", method)
    result = place(PATH, [8, 8, 0, 0], method="first", cluster=MIXED)
    assert (result.status.source, len(seen)) == ("first", 2)
    assert not result.status.proved_optimal


def test_time_is_shared_between_the_types(monkeypatch):
    limits = []

    def method(request):
        limits.append(request.left_s)
        return Answer(matrix=best_fit(request), source="timed")

    monkeypatch.setitem(METHODS, "timed", method)
    place(PATH, [8, 8, 8, 8], method="timed", cluster=MIXED, time_limit_s=1000)
    assert 400 < limits[0] <= 500
    assert 800 < limits[1] <= 1000


class TestJobs:
    job = Job(id="a", release_s=0, work=Training(plan=PLAN, iterations=100), gpus=12)

    def placed(self, free: list[int], cluster: Cluster = MIXED, job: Job = job):
        now = FreeGpus(cluster.capacities)
        now.take(tuple((m, 8 - count) for m, count in enumerate(free) if count < 8))
        return place_job(job, cluster, now, shape_of(job, cluster))

    def test_one_server(self):
        small = TrainingPlan.balanced(shipped_network("bert_large"), 4, stages=2)
        job = Job(id="b", release_s=0, work=Training(plan=small, iterations=100), gpus=4)
        placement, duration_us = self.placed([4, 8, 8, 8], job=job)
        assert placement.servers == (1,)
        assert self.placed([4, 1, 8, 2], job=job)[0].servers == (0,)
        assert duration_us < self.placed([4, 1, 8, 2], job=job)[1]

    def test_several_servers_of_one_type(self):
        assert self.placed([8, 6, 8, 6])[0].servers == (1, 3)
        assert self.placed([8, 6, 8, 5])[0].servers == (0, 2)

    def test_several_types_where_none_has_room(self):
        placement, duration_us = self.placed([6, 3, 5, 8])
        assert placement.gpus == 12
        slow = training_time(PLAN, MIXED)
        assert {MIXED.servers[m].gpu_type for m in placement.servers} == {OLD, NEW}
        assert duration_us >= 100 * slow.bound_ns // 1000

    def test_no_room(self):
        assert self.placed([1, 2, 3, 4]) is None

    def test_simulated(self):
        jobs = [self.job.replace(id=f"j{i}", release_s=float(i)) for i in range(5)]
        instance = Instance(cluster=MIXED, jobs=jobs)
        schedule = simulate(instance, "asrpt").schedule
        assert check_schedule(instance, schedule).valid
