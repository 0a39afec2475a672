"""Replicas of several GPUs, from the plan to the checked schedule."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frostline.errors import FileError, InvalidValueError
from frostline.placement.free_gpus import FreeGpus, Shape, shape_of
from frostline.placement.place import place
from frostline.placement.request import DoesNotFitError
from frostline.placement.saturation import busy_when_blocked
from frostline.policies.reservation import reserve
from frostline.policies.task import Running
from frostline.problem import Cluster, Instance, Job, Placement, Schedule, Segment, Server, Training, TrainingPlan
from frostline.problem.files import load_instance, load_schedule, save
from frostline.problem.network import Edge, Layer, Network
from frostline.problem.pieces import pieces_hold, servers_needed
from frostline.problem.refusal import Reason, never_fits
from frostline.simulation import simulate
from frostline.timing.duration import training_time
from frostline.timing.stage_graph import StageGraph, stage_graph
from frostline.verify import check_schedule

LAYERS = [
    Layer(id=i, params=10**8, forward_flops=10**12, backward_flops=2 * 10**12, output_elements=10**6, saved_bytes=0)
    for i in range(4)
]
NETWORK = Network(name="chain", layers=LAYERS, edges=[Edge(source=i, target=i + 1, elements=10**6) for i in range(3)])


def plan_of(replicas, sizes, **changes) -> TrainingPlan:
    stages = [range(2 * s, 2 * s + 2) for s in range(2)]
    fields = {"network": NETWORK, "stages": stages, "replicas": replicas, "global_batch": 64} | changes
    return TrainingPlan(gpus_per_replica=sizes, **fields)


def job_of(plan: TrainingPlan, name: str = "a", **fields) -> Job:
    return Job(id=name, release_s=0, work=Training(plan=plan, iterations=10), gpus=plan.gpus, **fields)


class TestPlan:
    def test_gpus(self):
        plan = plan_of([2, 3], [4, 1])
        assert (plan.gpus, plan.replica_gpus, plan.gpus_per_replica) == (11, (4, 1), (4, 1))
        assert plan_of([2, 3], [1, 1]) == plan_of([2, 3], ())
        assert plan_of([2, 3], ()).replica_gpus == (1, 1)
        assert plan_of([2, 3], ()).gpus == 5

    @pytest.mark.parametrize(
        ("sizes", "message"),
        [
            ([2], r"gpus_per_replica=\(2,\) must be one per stage, 2 in all"),
            ([2, 0], r"gpus_per_replica\[1\]=0 must be at least 1"),
            ([2, 1.5], r"gpus_per_replica\[1\]=1.5 must be a whole number"),
            (2, "gpus_per_replica=2 must be a sequence"),
        ],
    )
    def test_rules(self, sizes, message):
        with pytest.raises(InvalidValueError, match=message):
            plan_of([2, 3], sizes)

    def test_balanced(self):
        plan = TrainingPlan.balanced(NETWORK, 16, stages=2, gpus_per_replica=4)
        assert (plan.replicas, plan.gpus_per_replica, plan.gpus) == ((2, 2), (4, 4), 16)
        with pytest.raises(InvalidValueError, match="gpus=6 must be a multiple of 4, the GPUs of a replica"):
            TrainingPlan.balanced(NETWORK, 6, gpus_per_replica=4)
        with pytest.raises(InvalidValueError, match=r"stages=3 must be at most 2 \(its replicas\) and 4"):
            TrainingPlan.balanced(NETWORK, 8, stages=3, gpus_per_replica=4)

    def test_a_replica_has_the_memory_of_its_gpus(self):
        limit = 16 * 2 * 10**8
        assert len(TrainingPlan.balanced(NETWORK, 8, memory_bytes=limit).stages) == 2
        assert len(TrainingPlan.balanced(NETWORK, 8, memory_bytes=limit, gpus_per_replica=2).stages) == 1

    def test_stage_graph_shares_the_compute_of_a_replica(self):
        gpu = Cluster.uniform(1).gpu_types[0]
        single, double = stage_graph(plan_of([2, 2], ()), gpu), stage_graph(plan_of([2, 2], [2, 1]), gpu)
        assert double.gpus_per_replica == (2, 1)
        assert double.compute_s == (single.compute_s[0] / 2, single.compute_s[1])
        assert (double.edges, double.gradient_bytes) == (single.edges, single.gradient_bytes)

    def test_a_job_holds_the_gpus_of_its_plan(self):
        with pytest.raises(InvalidValueError, match="gpus=5 must equal the 11 GPUs of its plan"):
            job_of(plan_of([2, 3], [4, 1])).replace(gpus=5)


class TestFiles:
    def test_round_trip(self, tmp_path):
        plan = plan_of([2, 3], [4, 1])
        instance = Instance(cluster=Cluster.uniform(2), jobs=[job_of(plan), job_of(plan_of([1, 1], ()), "b")])
        save(instance, tmp_path / "instance.json")
        text = (tmp_path / "instance.json").read_text()
        assert text.count("gpus_per_replica") == 1
        assert load_instance(tmp_path / "instance.json") == instance
        schedule = simulate(instance, "fifo").schedule
        assert check_schedule(instance, schedule).valid
        save(schedule, tmp_path / "schedule.json")
        again = load_schedule(tmp_path / "schedule.json")
        assert again == schedule
        assert check_schedule(instance, again).valid

    @pytest.mark.parametrize(
        ("placement", "message"),
        [
            ('{"columns": [[0, [1, 1]]]}', "must have columns and gpus_per_replica, and nothing else"),
            ('{"columns": [[0, [1, 1]]], "gpus_per_replica": [2]}', "must have one entry for each of 2 stages"),
            ('{"columns": [[0, [1, 1]]], "gpus_per_replica": [2, "x"]}', "placement: 'x' must be a whole number"),
            ('{"columns": 3, "gpus_per_replica": [2]}', "placement: 3 must be a list"),
        ],
    )
    def test_bad_placements(self, tmp_path, placement, message):
        segment = f'{{"job": "a", "start_us": 0, "end_us": 1, "placement": {placement}}}'
        path = tmp_path / "bad.json"
        path.write_text(f'{{"format": "frostline/schedule", "version": 1, "segments": [{segment}]}}')
        with pytest.raises(FileError, match=message):
            load_schedule(path)


class TestChecker:
    def test_sizes_of_replicas(self):
        """As many GPUs as asked for, but not in the replicas of the plan."""
        instance = Instance(cluster=Cluster.uniform(2), jobs=[job_of(plan_of([2, 4], [2, 1]))])
        schedule = simulate(instance, "fifo").schedule
        assert check_schedule(instance, schedule).valid
        (segment,) = schedule.segments
        other = Placement([(0, (2, 4))], [1, 1])
        report = check_schedule(instance, self.with_placement(segment, other))
        assert [fault.kind.value for fault in report.faults] == ["wrong_gpus"]
        report = check_schedule(instance, self.with_placement(segment, Placement([(0, (2, 1)), (1, (0, 1))], [2, 2])))
        assert "has [2, 2] replicas of its stages but its plan has [2, 4]" in report.faults[0].text
        report = check_schedule(instance, self.with_placement(segment, Placement([(0, (2, 4))], [1, 2])))
        assert [fault.text for fault in report.faults if fault.kind.value == "wrong_gpus"] == [
            "job 'a' holds 10 GPUs but asks for 8"
        ]

    def test_equal_gpus_other_replicas(self):
        instance = Instance(cluster=Cluster.uniform(2), jobs=[job_of(plan_of([2, 2], [3, 1]))])
        (segment,) = simulate(instance, "fifo").schedule.segments
        report = check_schedule(instance, self.with_placement(segment, Placement([(0, (2, 2))], [2, 2])))
        assert [fault.text for fault in report.faults] == [
            "job 'a' has replicas of [2, 2] GPUs but its plan has [3, 1]"
        ]

    @staticmethod
    def with_placement(segment: Segment, placement: Placement) -> Schedule:
        return Schedule(segments=[Segment(segment.job, segment.start_us, segment.end_us, placement)])


class TestFit:
    def test_shape(self):
        job, cluster = job_of(plan_of([3, 3], [2, 1])), Cluster.uniform(4, gpus=3)
        assert shape_of(job, cluster) == Shape(9, 4, ((2, 3), (1, 3)))
        assert shape_of(job.replace(locality="server"), cluster) == Shape(9, 1)
        assert shape_of(job.replace(locality="fewest"), cluster) == Shape(9, 3, ((2, 3), (1, 3)))
        assert servers_needed(job_of(plan_of([3, 1], [2, 2])), cluster) == 4

    def test_free_gpus(self):
        free, halves = FreeGpus([3, 3, 3]), Shape(8, 3, ((2, 4),))
        assert not free.fits(halves)
        assert free.best_fit(halves) is None
        assert free.fits(Shape(6, 3, ((2, 3),)))
        assert not free.fits(Shape(6, 2, ((2, 3),)))
        assert FreeGpus([3, 3, 8]).fits(halves)

    def test_reservation_waits_for_the_pieces(self):
        free = FreeGpus([4, 4])
        free.take(((0, 3), (1, 3)))
        running = [Running(5, 0, None, ((0, 1),), 1), Running(9, 1, None, ((1, 2),), 2)]
        assert reserve(Shape(3, 2), 0, free, running).time_us == 5
        assert reserve(Shape(4, 2, ((2, 2),)), 0, free, running).time_us == 9

    @pytest.mark.parametrize(
        ("replicas", "sizes", "gpus", "reason", "text"),
        [
            ([1, 1], [9, 1], 8, Reason.REPLICA_TOO_LARGE, "gpus=9 of one replica, but the largest server has 8"),
            ([2, 1], [5, 5], 8, Reason.NO_PACKING, "gpus=15 of 16, but there is no way to keep every replica inside"),
            ([4, 2], [4, 1], 8, Reason.CLUSTER_TOO_SMALL, "gpus=18 but the whole cluster has 16"),
        ],
    )
    def test_never(self, replicas, sizes, gpus, reason, text):
        job, cluster = job_of(plan_of(replicas, sizes)), Cluster.uniform(2, gpus=gpus)
        refusal = never_fits(job, cluster)
        assert refusal.reason is reason
        assert text in refusal.text
        schedule = simulate(Instance(cluster=cluster, jobs=[job]), "fifo").schedule
        assert schedule.refused == (refusal,)

    def test_a_packing_that_greed_misses(self):
        """4 + 4 and 3 + 3 GPUs, not 4 + 3."""
        job, cluster = job_of(plan_of([2, 2], [4, 3])), Cluster(servers=[Server(id=f"s{g}", gpus=g) for g in (6, 8)])
        assert never_fits(job, cluster) is None
        schedule = simulate(Instance(cluster=cluster, jobs=[job]), "fifo").schedule
        assert schedule.segments[0].placement.columns == ((0, (0, 2)), (1, (2, 0)))

    def test_place(self):
        plan, cluster = plan_of([2, 2], [4, 3]), Cluster.uniform(2, gpus=8)
        timing = training_time(plan, cluster)
        assert place(timing, [6, 8]).placement.columns == ((0, (0, 2)), (1, (2, 0)))
        with pytest.raises(DoesNotFitError, match="no way to keep every replica inside one server"):
            place(timing, [9, 5], method="cpsat")


@given(
    capacities=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    pieces=st.dictionaries(st.integers(1, 3), st.integers(1, 3), min_size=1, max_size=2),
    most_servers=st.integers(1, 3),
)
def test_saturation_is_safe(capacities, pieces, most_servers):
    """No state in which a shape does not fit has fewer busy GPUs."""
    pairs = tuple(sorted(pieces.items(), reverse=True))
    gpus = sum(size * count for size, count in pairs)
    shape = Shape(gpus, most_servers, pairs if pairs[0][0] > 1 else ())
    cluster = Cluster(servers=[Server(id=f"s{i}", gpus=count) for i, count in enumerate(capacities)])
    least = busy_when_blocked(shape, cluster)
    assert least >= FreeGpus(capacities).fits(shape)
    for free in product(*(range(count + 1) for count in capacities)):
        if not FreeGpus(free).fits(shape):
            assert sum(capacities) - sum(free) >= least


def test_saturation_of_a_shape_that_fits_is_above_nothing():
    """3 + 2 GPUs on two servers of 3."""
    assert busy_when_blocked(Shape(5, 2, ((3, 1), (2, 1))), Cluster.uniform(2, gpus=3)) == 1


@given(room=st.lists(st.integers(0, 6), max_size=3), counts=st.lists(st.integers(0, 2), min_size=3, max_size=3))
def test_pieces_hold(room, counts):
    """The same as trying everything."""
    pieces = tuple((size, count) for size, count in zip((4, 3, 2), counts, strict=True) if count)
    assert pieces_hold(room, pieces) == _holds(tuple(room), [size for size, count in pieces for _ in range(count)])


def _holds(room: tuple[int, ...], sizes: list[int]) -> bool:
    if not sizes:
        return True
    rests = ((*room[:i], free - sizes[0], *room[i + 1 :]) for i, free in enumerate(room) if free >= sizes[0])
    return any(_holds(rest, sizes[1:]) for rest in rests)


def test_fewest_servers_are_not_proved_where_the_search_for_a_packing_was_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = StageGraph(replicas=[4, 1], compute_s=[0.1, 0.1], gpus_per_replica=[3, 2])
    sure = place(graph, [7, 7, 7], method="brute-force", objective="consolidate")
    assert (sure.servers_used, sure.status.proved_optimal) == (3, True)
    monkeypatch.setattr("frostline.problem.bin_packing.MAX_STEPS", 0)
    given_up = place(graph, [7, 7, 7], method="brute-force", objective="consolidate")
    assert (given_up.servers_used, given_up.status.proved_optimal) == (3, False)
