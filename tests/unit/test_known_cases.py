"""Situations that users of schedulers have stumbled on, with the right answer worked out by hand."""

from __future__ import annotations

import random
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest

from frostline.errors import FileError
from frostline.freezing import FreezablePlan, debt_priors, freeze_menu
from frostline.placement.free_gpus import FreeGpus
from frostline.placement.place import place
from frostline.policies import policy_names
from frostline.problem import (
    Cluster,
    Fixed,
    Instance,
    Job,
    Placement,
    Schedule,
    Segment,
    Server,
    TrainingPlan,
    load_instance,
    load_schedule,
    save,
    shipped_network,
)
from frostline.relaxation import lower_bound
from frostline.scheduler import Scheduler
from frostline.simulation import Result, measure, simulate
from frostline.timing.contention import ContentionTime
from frostline.timing.stage_graph import StageGraph
from frostline.traces import generate_jobs, read_trace, summarise, write_trace
from frostline.verify import check_schedule

S = 1_000_000
HEAD = "id,submit_s,gpus,duration_s\n"
# Not strictly sorted, not a file name, markup, longer than a name may be, and other alphabets.
ODD_IDS = ("x+", "x-", "x ", "x_", "a" * 300, "3start", "job 7/µ-α", "../../etc/x", "[red]", '"', "a,b", "作业")


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
    return {name: start_us / S for name, start_us in result.schedule.start_us.items()}


def servers_of(result: Result) -> dict[str, tuple[int, ...]]:
    return {segment.job: segment.placement.servers for segment in result.schedule.segments}


def cluster_of(*gpus: int) -> Cluster:
    return Cluster(servers=tuple(Server(id=f"s{i}", gpus=size) for i, size in enumerate(gpus)))


class TestTraces:
    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        return tmp_path / "trace.csv"

    def test_mean_duration_leaves_rows_without_an_end_out(self, file: Path) -> None:
        # Taking the 0 for an end would make it −33.3 s.
        rows = "a,0,10,70,1\nb,90,100,0,1\nc,90,100,40,1\n"
        file.write_text("id,submit,start,end,n_gpu\n" + rows, encoding="utf-8")
        trace = read_trace(file, mode="repair")
        assert trace.report.dropped == {"missing_end": 1, "inverted": 1}
        assert summarise(trace).duration_s["mean"] == 60

    def test_a_row_without_gpus_changes_no_schedule(self, file: Path) -> None:
        file.write_text(HEAD + "a,0,6,100\nb,1,8,10\nc,2,2,5\n", encoding="utf-8")
        without = read_trace(file, mode="repair")
        file.write_text(HEAD + "a,0,6,100\nidle,0,0,3600\nb,1,8,10\nc,2,2,5\n", encoding="utf-8")
        trace = read_trace(file, mode="repair")
        assert trace.report.dropped == {"cpu_only": 1}
        for name in policy_names():
            schedules = [play(Cluster.uniform(1), *read.jobs, policy=name).schedule for read in (without, trace)]
            assert schedules[0] == schedules[1]

    def test_jobs_run_in_the_order_of_submission_not_of_the_file(self, file: Path) -> None:
        file.write_text(HEAD + "A,20,1,5\nB,0,1,5\nC,10,1,5\n", encoding="utf-8")
        result = play(Cluster.pool(1), *read_trace(file).jobs)
        assert [(s.job, s.start_s, s.end_s) for s in result.schedule.segments] == [
            ("B", 0.0, 5.0),
            ("C", 10.0, 15.0),
            ("A", 20.0, 25.0),
        ]

    @pytest.mark.parametrize("policy", ["fifo", "sjf", "smallest-area", "ljf", "easy", "asrpt", "asrpt-guard"])
    def test_equal_jobs_run_by_name_whatever_the_order_of_rows(self, file: Path, policy: str) -> None:
        for rows in permutations(["x,0,1,10\n", "y,0,1,10\n", "z,0,1,10\n"]):
            file.write_text(HEAD + "".join(rows), encoding="utf-8")
            completion_us = play(Cluster.pool(1), *read_trace(file).jobs, policy=policy).schedule.completion_us
            assert completion_us == {"x": 10 * S, "y": 20 * S, "z": 30 * S}

    def test_a_zone_is_refused_where_times_count_from_an_origin(self, file: Path) -> None:
        # Read as seconds since 1970 it would be 7 January 1970 in Shanghai.
        file.write_text(HEAD + "a,494319.0,1,5\n", encoding="utf-8")
        with pytest.raises(FileError, match="column 'submit_s' holds times relative to an origin, so no zone"):
            read_trace(file, zone="Asia/Shanghai")
        assert read_trace(file).jobs[0].release_s == 0

    @pytest.mark.parametrize("cell", ["nan", "NaN", "NAN", " nan "])
    def test_an_end_that_is_not_a_number_is_a_missing_end(self, file: Path, cell: str) -> None:
        file.write_text(f"id,submit,start,end,n_gpu\na,0,0,9,1\nb,0,5,{cell},1\n", encoding="utf-8")
        assert read_trace(file, mode="repair").report.dropped == {"missing_end": 1}
        file.write_text(f"id,submit,start,end,n_gpu,duration\nb,0,{cell},{cell},1,7\n", encoding="utf-8")
        assert read_trace(file).jobs == (job("b", 0, 1, 7),)


class TestFeasibility:
    def test_what_is_too_wide_is_refused_and_the_rest_runs(self) -> None:
        result = play(Cluster.uniform(2), job("X", 0, 17, 5), job("Y", 0, 8, 10))
        assert [refusal.text for refusal in result.schedule.refused] == [
            "job 'X': gpus=17 but the whole cluster has 16"
        ]
        assert [(s.job, s.start_s, s.end_s) for s in result.schedule.segments] == [("Y", 0.0, 10.0)]

    @pytest.mark.parametrize("pieces", sorted(set(permutations((8, 16, 16)))))
    def test_pieces_match_servers_of_unequal_size_exactly(self, pieces: tuple[int, ...]) -> None:
        # Three pieces that must each stay inside a server fit only if the small one takes the small server.
        graph = StageGraph(replicas=pieces, compute_s=[0] * 3, gradient_bytes=[10**9] * 3, edges={(0, 1): 1, (1, 2): 1})
        for free in permutations((8, 16, 16)):
            for method in ("auto", "contiguous"):
                timing = ContentionTime(graph=graph, nic_bytes_per_s=1e9)
                placement = place(timing, free, method=method).placement
                assert all(sum(count > 0 for count in counts) == 1 for _, counts in placement.columns)
                assert all(free[server] == sum(counts) for server, counts in placement.columns)

    @pytest.mark.parametrize(("first", "free"), list(product((30, 50), ((53, 31), (31, 53)))))
    def test_two_jobs_find_the_only_way_to_fit_together(self, first: int, free: tuple[int, int]) -> None:
        # 30 of 53 would leave no room for 50; the tightest hole is the right one, in both orders.
        tasks = [job("t0", 0, first, 10, "server"), job("t1", 0, 80 - first, 10, "server")]
        for policy in policy_names():
            result = play(cluster_of(*free), *tasks, policy=policy)
            where = servers_of(result)
            assert free[where["t0" if first == 50 else "t1"][0]] == 53
            if not policy.startswith("asrpt-"):  # those wait for the virtual machine
                assert starts(result) == {"t0": 0.0, "t1": 0.0}

    @pytest.mark.parametrize("order", list(permutations((0, 1))))
    def test_two_stages_find_the_only_way_to_fit_together(self, order: tuple[int, int]) -> None:
        replicas = [(30, 50)[i] for i in order]
        graph = StageGraph(replicas=replicas, compute_s=[0] * 2, gradient_bytes=[10**9] * 2, edges={(0, 1): 1})
        for free in ((53, 31), (31, 53)):
            placement = place(ContentionTime(graph=graph, nic_bytes_per_s=1e9), free).placement
            held = {free[server]: counts for server, counts in placement.columns}
            assert max(held[53]) == 50 and min(held[53]) == 0

    def test_many_jobs_that_cannot_run_cost_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The step that starts the one job that fits asks as few questions whether 1 or 10,000 others are blocked."""

        def questions(blocked: int) -> int:
            scheduler = Scheduler(Cluster.uniform(2), "sjf")
            scheduler.submit(job("first", 0, 15, 1000))
            scheduler.advance(0)
            for i in range(blocked):
                scheduler.submit(job(f"wide{i}", 1, 16, 1 + i % 7))
            scheduler.advance(1)
            scheduler.submit(job("fits", 2, 1, 50))
            asked = []
            plain = FreeGpus.fits
            monkeypatch.setattr(FreeGpus, "fits", lambda self, shape: asked.append(shape) or plain(self, shape))
            assert [start.job for start in scheduler.advance(2).starts] == ["fits"]
            monkeypatch.undo()
            return len(asked)

        assert 1 <= questions(10_000) <= 2 * questions(1)


class TestQueue:
    @pytest.mark.parametrize("policy", [name for name in policy_names() if not name.startswith("asrpt-")])
    def test_a_group_starts_at_once_on_both_servers_or_not_at_all(self, policy: str) -> None:
        result = play(Cluster.uniform(2), job("busy", 0, 8, 50), job("pair", 0, 16, 10), policy=policy)
        (pair,) = [segment for segment in result.schedule.segments if segment.job == "pair"]
        assert pair.placement.loads == ((0, 8), (1, 8))
        shorter_first = (
            "sjf",
            "smallest-area",
            "asrpt",
            "icefrog-rigid",
            "srtf",
            "serverfilling-srpt",
            "icefrog",
            "pollux",
        )
        assert pair.start_s == (0 if policy in shorter_first else 50)

    def test_a_group_of_ten_holds_nothing_while_nine_are_free(self) -> None:
        busy, group, later = job("busy", 0, 1, 100), job("group", 0, 10, 10), job("Z", 1, 5, 10)
        assert starts(play(Cluster.pool(10), busy, group, later)) == {"busy": 0.0, "group": 100.0, "Z": 110.0}
        backfilled = play(Cluster.pool(10), busy, group, later, policy="easy")
        assert starts(backfilled) == {"busy": 0.0, "Z": 1.0, "group": 100.0}

    def test_preemption_on_one_machine_and_first_come_first_served(self) -> None:
        jobs = (job("J1", 0, 1, 10), job("J2", 1, 1, 2), job("J3", 2, 1, 0.5))
        assert lower_bound(Instance(cluster=Cluster.pool(1), jobs=jobs), "srpt").total_flow_s == 15.5
        assert play(Cluster.pool(1), *jobs).metrics.mean_flow_s == 31.5 / 3

    def test_distance_of_both_disciplines_to_the_relaxation(self) -> None:
        jobs = (job("J1", 0, 6, 100), job("J2", 1, 8, 10), job("J3", 2, 2, 5))
        bound_s = lower_bound(Instance(cluster=Cluster.uniform(1), jobs=jobs), "srpt").total_flow_s
        flows = [
            3 * (play(Cluster.uniform(1), *jobs, policy=name).metrics.mean_flow_s or 0) for name in ("easy", "fifo")
        ]
        assert [round(flow / bound_s, 3) for flow in flows] == [2.167, 3.261]

    @pytest.mark.parametrize("policy", policy_names())
    def test_a_finish_makes_room_for_an_arrival_of_the_same_instant(self, policy: str) -> None:
        result = play(Cluster.uniform(1), job("A", 0, 8, 10), job("B", 10, 8, 5), policy=policy)
        late = 10 if policy in ("asrpt-strict", "asrpt-budget") else 0  # A waits for its virtual completion
        assert starts(result) == {"A": 0.0 + late, "B": 10.0 + late}

    @pytest.mark.parametrize("policy", policy_names())
    def test_asking_again_without_an_event_starts_nothing(self, policy: str) -> None:
        scheduler = Scheduler(Cluster.uniform(2), policy)
        for i in range(12):
            scheduler.submit(job(f"j{i}", 0, 1 + i % 5, 10 + i))
        scheduler.advance(2)
        wake_s = scheduler.decide().wake_s
        assert all((again.starts, again.wake_s) == ((), wake_s) for again in (scheduler.decide() for _ in range(100)))

    @pytest.mark.parametrize("policy", policy_names())
    def test_far_away_times_give_the_same_schedule(self, policy: str) -> None:
        jobs = generate_jobs(60, seed=4, gpus=16, load=1.5, histogram="mixed")
        # Rounds begin at multiples of a minute.
        far = tuple(made.replace(release_s=made.release_s + 9e8) for made in jobs)
        near_us, far_us = (play(Cluster.uniform(2), *rows, policy=policy).schedule.start_us for rows in (jobs, far))
        assert {name: at + 9 * 10**8 * S for name, at in near_us.items()} == far_us


class TestPlacement:
    def test_reported_cut_is_that_of_the_placement_whatever_the_order_of_servers(self) -> None:
        edges = {(0, 1): 7, (1, 2): 1, (2, 3): 6, (3, 4): 2, (4, 5): 5, (0, 5): 3}
        graph, times = StageGraph(replicas=[1] * 6, compute_s=[0] * 6, edges=edges), set()
        for free in sorted(set(permutations((3, 2, 1)))):
            result = place(ContentionTime(graph=graph, nic_bytes_per_s=1.0), free)
            matrix = result.placement.matrix(3)
            assert (matrix.sum(axis=0) == 1).all() and (matrix.sum(axis=1) <= free).all()
            where = matrix.argmax(axis=0)
            assert result.cut_bytes == sum(size for (a, b), size in edges.items() if where[a] != where[b])
            times.add(result.iteration_ns)
        assert len(times) == 1

    def test_spreading_costs_what_consolidating_saves(self) -> None:
        # J1 and J2 on one server leave the other whole for J3, which needs six GPUs of one server.
        jobs = (job("J1", 0, 4, 10), job("J2", 0, 4, 10), job("J3", 0, 6, 10, "server"))
        instance = Instance(cluster=Cluster.uniform(2), jobs=jobs)
        result = simulate(instance, "fifo")
        where = servers_of(result)
        assert where["J1"] == where["J2"] != where["J3"]
        spread = [Segment(f"J{i}", s * S, s * S + 10 * S, Placement.of_loads([load])) for i, s, load in
                  [(1, 0, (0, 4)), (2, 0, (1, 4)), (3, 10, (0, 6))]]  # fmt: skip
        assert check_schedule(instance, Schedule(segments=spread)).valid
        figures = [measure(instance, schedule) for schedule in (result.schedule, Schedule(segments=spread))]
        assert [(f.makespan_s, f.mean_flow_s) for f in figures] == [(10.0, 30 / 3), (20.0, 40 / 3)]
        assert lower_bound(instance, "srpt").total_flow_s == 16.25


class TestFreezing:
    @pytest.mark.parametrize("comm", ["static", "rebuild"])
    @pytest.mark.parametrize(("network", "stages"), [("resnet50", 1), ("gpt2", 2), ("t5_large", 3)])
    def test_level_0_is_the_job_without_freezing(self, network: str, stages: int, comm: str) -> None:
        plan, cluster = TrainingPlan.balanced(shipped_network(network), 8, stages=stages), Cluster.uniform(2, gpus=4)
        placed = place(plan, cluster.capacities, cluster=cluster)
        for prior in debt_priors().values():
            for progress in (0.0, 0.2, 1.0):
                rows = freeze_menu(
                    FreezablePlan.of(plan, comm=comm),
                    cluster,
                    placed.placement,
                    debt_of=lambda row, law=prior.law, s=progress: law.density_points(row.compute_share, s),
                )
                assert rows[0].debt == 0.0 < min(row.debt for row in rows[1:])
                assert placed.iteration_ns / rows[0].iteration_ns == 1.0 <= placed.iteration_ns / rows[-1].iteration_ns
        anew = freeze_menu(FreezablePlan.of(plan, comm=comm), cluster)[0]
        assert (anew.placement, anew.iteration_ns) == (placed.placement, placed.iteration_ns)


class TestMetrics:
    def test_a_job_that_has_not_finished_has_no_flow_time(self) -> None:
        # Cut at 12 s: one job has finished after 10 s, the other has run from 5 s on.
        jobs = (job("1", 0, 8, 10), job("2", 5, 4, 15))
        instance = Instance(cluster=Cluster.uniform(2), jobs=jobs)
        done = Schedule(segments=[Segment("1", 0, 10 * S, Placement([(0, (8,))]))])
        metrics = measure(instance, done)
        assert (metrics.jobs, metrics.unfinished, metrics.mean_flow_s, metrics.max_flow_s) == (1, 1, 10.0, 10.0)

    def test_least_and_greatest_of_known_flow_times(self) -> None:
        flows = [6153.535, 6241.215, 5961.997, 5696.253, 5661.478, 5093.098, 5943.596, 6198.878, 6073.242, 6350.500]
        flows += [5383.215, 6251.401, 5828.123, 5683.144, 5817.296]
        result = play(Cluster.pool(15), *(job(f"j{i}", 0, 1, p) for i, p in enumerate(flows)))
        assert min(result.schedule.completion_us.values()) == 5_093_098_000
        assert result.metrics.p99_flow_s == 6350.500


class TestLibrary:
    def test_calls_print_nothing_and_leave_global_random_states_alone(self, capsys: pytest.CaptureFixture[str]) -> None:
        random.seed(5)
        np.random.seed(5)  # noqa: NPY002
        before = random.getstate(), np.random.get_state()[1].tolist()  # type: ignore[index, union-attr] # noqa: NPY002
        jobs = generate_jobs(200, seed=1, gpus=16, load=1.2)
        instance = Instance(cluster=Cluster.uniform(2), jobs=jobs)
        for name in policy_names():
            check_schedule(instance, simulate(instance, name).schedule)
        lower_bound(instance, "best")
        place(StageGraph(replicas=[3, 2], compute_s=[1, 1], edges={(0, 1): 9}), [2, 2, 2])
        shipped_network("gpt2")
        assert random.getstate() == before[0]
        assert np.random.get_state()[1].tolist() == before[1]  # type: ignore[index, union-attr] # noqa: NPY002
        assert capsys.readouterr() == ("", "")

    def test_odd_identifiers_come_back_one_to_one(self, tmp_path: Path) -> None:
        jobs = [job(name, i, 1 + i % 3, 5) for i, name in enumerate(ODD_IDS)]
        result = play(Cluster.uniform(2, gpus=2), *jobs, policy="asrpt")
        assert set(result.schedule.completion_us) == set(ODD_IDS)
        instance = Instance(cluster=Cluster.uniform(2, gpus=2), jobs=jobs)
        save(instance, tmp_path / "i.json.gz")
        save(result.schedule, tmp_path / "s.json", instance=instance)
        back = load_instance(tmp_path / "i.json.gz")
        assert back == instance
        assert load_schedule(tmp_path / "s.json", back) == result.schedule
        clean = [made for made in jobs if made.id.strip() == made.id]
        write_trace(tmp_path / "t.csv", clean)
        assert list(read_trace(tmp_path / "t.csv").jobs) == clean

    def test_servers_without_jobs_and_jobs_without_servers(self) -> None:
        for policy in policy_names():
            nothing = play(Cluster.uniform(3), policy=policy).metrics
            assert (nothing.jobs, nothing.total_completion_s, nothing.makespan_s) == (0, 0.0, None)
            nowhere = play(Cluster(servers=()), job("a", 0, 1, 5), policy=policy)
            assert [refusal.text for refusal in nowhere.schedule.refused] == [
                "job 'a': gpus=1 but the whole cluster has 0"
            ]

    @pytest.mark.parametrize("work", [None, 5.0, "fixed", Fixed])
    def test_work_of_no_kind_is_refused(self, work: object) -> None:
        with pytest.raises(ValueError, match=r"job 'a': work=.* must be Fixed, Profiled, Elastic or Training"):
            Job(id="a", release_s=0, gpus=1, work=work)  # type: ignore[arg-type]

    @pytest.mark.parametrize("cluster", [None, 8, "4x8", [8, 8]])
    def test_an_instance_needs_a_cluster(self, cluster: object) -> None:
        with pytest.raises(ValueError, match=r"instance: cluster=.* must be a Cluster"):
            Instance(cluster=cluster, jobs=())  # type: ignore[arg-type]
