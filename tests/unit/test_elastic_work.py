"""Elastic work: what is refused, what it takes, and that policies which change nothing run it as it was asked for."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from frostline.certify import check_schedule
from frostline.errors import FileError, InvalidValueError
from frostline.prediction.size import blinded, size_of, with_size
from frostline.problem import (
    Cluster,
    Elastic,
    Fixed,
    Instance,
    Job,
    Placement,
    PlacementClass,
    Profiled,
    digest,
    load_instance,
    save,
)
from frostline.simulation import simulate
from frostline.timing import fastest_us, iteration_ns_of, job_duration_us, slowest_us
from frostline.timing.duration import iterations_within

ONE, MANY = PlacementClass.ONE_SERVER, PlacementClass.MANY_SERVERS
TABLE: dict[str, dict[int, tuple[float, ...]]] = {
    "one_server": {1: (0.4, 0.3, 0.2), 2: (0.25, 0.2, 0.15)},
    "many_servers": {2: (0.3, 0.3, 0.2), 8: (0.1, 0.09, 0.08)},
}


def elastic(**changes: Any) -> Elastic:
    fields: dict[str, Any] = {
        "iterations": 100,
        "widths": (1, 2, 8),
        "seconds_per_iteration": TABLE,
        "compute_shares": (0, 0.5, 1),
    }
    return Elastic(**fields | changes)


def job_of(work: Elastic, gpus: int = 2, **fields: Any) -> Job:
    return Job(id="j", release_s=0, gpus=gpus, work=work, **fields)


class TestRules:
    def test_defaults(self) -> None:
        work = Elastic(iterations=1, widths=[4], seconds_per_iteration={"one_server": {4: [0.1]}})
        assert (work.levels, work.compute_shares, work.family) == (1, (0.0,), "unknown")
        assert (work.quality_budget_points, work.warm_up) == (0.0, 0.2)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"iterations": 0}, "work: iterations=0 must be at least 1"),
            ({"widths": ()}, r"widths=\(\) must be at least one width, ascending"),
            ({"widths": (2, 1, 8)}, r"widths=\(2, 1, 8\) must be at least one width, ascending"),
            ({"widths": (1, 1, 2, 8)}, "ascending"),
            ({"widths": (0, 1, 2, 8)}, r"widths\[0\]=0 must be at least 1"),
            ({"widths": "128"}, "widths='128' must be a sequence of numbers"),
            ({"widths": 8}, "widths=8 must be a sequence of numbers"),
            ({"widths": (1, 2, 4, 8)}, "must have a time for 4 GPUs"),
            ({"widths": (1, 2)}, r"seconds_per_iteration\[many_servers\]=8 is none of its widths 1, 2"),
            ({"compute_shares": ()}, "must begin with 0"),
            ({"compute_shares": (0.1, 0.5, 1)}, "must begin with 0"),
            ({"compute_shares": (0, 0.5, 1.5)}, r"compute_shares\[2\]=1.5 must be at most 1"),
            ({"compute_shares": (0, 1, 0.5)}, "must not fall from level to level"),
            ({"compute_shares": (0, *[1] * 9)}, "must have at most 9 levels"),
            ({"compute_shares": (0, 1)}, r"\[1\]=.* must have one entry for each of 2 levels"),
            ({"compute_shares": (0, None, 1)}, r"compute_shares\[1\]=None must be a number"),
            ({"family": ""}, "family='' must be a non-empty string"),
            ({"quality_budget_points": -1}, "quality_budget_points=-1 must be at least 0"),
            ({"warm_up": 1.1}, "warm_up=1.1 must be at most 1"),
            ({"seconds_per_iteration": 0.5}, "must be a mapping of classes"),
            ({"seconds_per_iteration": {**TABLE, "rack": {}}}, "'rack' is not a placement class"),
            ({"seconds_per_iteration": {**TABLE, "one_server": 4}}, r"\[one_server\]=4 must be a mapping of widths"),
            ({"seconds_per_iteration": {**TABLE, "one_server": {True: (1, 1, 1)}}}, "True is none of its widths"),
            ({"seconds_per_iteration": {**TABLE, "one_server": {1: 0.4}}}, "must be a sequence of numbers"),
            ({"seconds_per_iteration": {**TABLE, "one_server": {1: (0.4, 0.3, 0)}}}, r"\[1\]\[2\]=0.0 must be above 0"),
            ({"seconds_per_iteration": {**TABLE, "one_server": {1: (1, 2, 1)}}}, r"\[1\]\[1\]=2.0 must be at most 1.0"),
            ({"seconds_per_iteration": {**TABLE, "one_server": {1: (1, float("nan"), 1)}}}, "must be finite"),
        ],
    )
    def test_refused(self, changes: dict[str, Any], message: str) -> None:
        with pytest.raises(InvalidValueError, match=message):
            elastic(**changes)

    def test_a_job_asks_for_one_of_the_widths(self) -> None:
        with pytest.raises(InvalidValueError, match="job 'j': gpus=4 must be one of the widths of its work, 1, 2, 8"):
            job_of(elastic(), 4)

    def test_times_are_kept_in_order(self) -> None:
        turned = {where: dict(reversed(rows.items())) for where, rows in reversed(TABLE.items())}
        work = elastic(seconds_per_iteration=turned)
        assert work == elastic()
        assert [list(rows) for rows in work.seconds_per_iteration.values()] == [[1, 2], [2, 8]]
        assert pickle.loads(pickle.dumps(work)) == copy.deepcopy(work) == work
        assert hash(work) == hash(elastic())

    def test_a_checked_table_is_shared_but_never_misused(self) -> None:
        work = elastic()
        assert replace(work, iterations=7).seconds_per_iteration is work.seconds_per_iteration
        with pytest.raises(InvalidValueError, match="is none of its widths"):
            replace(work, widths=(1, 2))
        with pytest.raises(InvalidValueError, match="must have one entry for each of 1 levels"):
            replace(work, compute_shares=(0,))


class TestTime:
    @pytest.mark.parametrize(
        ("gpus", "where", "level", "expected"),
        [
            (1, ONE, 0, 0.4),
            (2, ONE, 1, 0.2),
            (2, MANY, 2, 0.2),
            (8, MANY, 0, 0.1),
            (8, ONE, 2, 0.08),  # the only figure there is
            (1, MANY, 1, 0.3),
        ],
    )
    def test_seconds(self, gpus: int, where: PlacementClass, level: int, expected: float) -> None:
        assert elastic().seconds(gpus, where, level) == expected

    @pytest.mark.parametrize(("gpus", "level"), [(4, 0), (2, 3), (2, -1), (2, 1.0), (2, True)])
    def test_what_was_not_measured(self, gpus: int, level: Any) -> None:
        with pytest.raises(InvalidValueError, match=r"must be one of its widths, 1, 2, 8|must be a level, from 0 to 2"):
            elastic().seconds(gpus, ONE, level)

    def test_duration_by_width_class_and_level(self) -> None:
        job, cluster = job_of(elastic()), Cluster.uniform(2)
        together, apart = Placement([(0, (2,))]), Placement([(0, (1,)), (1, (1,))])
        alone, wide = Placement([(1, (1,))]), Placement([(0, (4,)), (1, (4,))])
        found = [job_duration_us(job, cluster, where) for where in (together, apart, alone, wide)]
        assert found == [25_000_000, 30_000_000, 40_000_000, 10_000_000]
        found = [job_duration_us(job, cluster, where, 2) for where in (together, apart, alone, wide)]
        assert found == [15_000_000, 20_000_000, 20_000_000, 8_000_000]
        assert (fastest_us(job, cluster), slowest_us(job, cluster)) == (25_000_000, 30_000_000)
        assert (fastest_us(job, Cluster.uniform(1)), slowest_us(job, Cluster.uniform(1))) == (25_000_000, 25_000_000)

    def test_iterations_are_rounded_up_to_nanoseconds_and_the_job_to_microseconds(self) -> None:
        work = Elastic(iterations=3, widths=[1], seconds_per_iteration={"one_server": {1: [1.0000000001e-3, 1e-10]}},
                       compute_shares=[0, 1])  # fmt: skip
        job, cluster, where = job_of(work, 1), Cluster.uniform(1), Placement([(0, (1,))])
        assert [iteration_ns_of(job, cluster, where, level) for level in (0, 1)] == [1_000_001, 1]
        assert [job_duration_us(job, cluster, where, level) for level in (0, 1)] == [3001, 1]
        assert iterations_within(job, cluster, where, 3000) == 2
        assert iterations_within(job, cluster, where, 3001) == 3

    def test_a_tenth_is_a_tenth(self) -> None:
        work = Elastic(iterations=3, widths=[1], seconds_per_iteration={"one_server": {1: [0.1]}})
        assert job_duration_us(job_of(work, 1), Cluster.uniform(1), Placement([(0, (1,))])) == 300_000

    def test_widths_and_levels_that_there_are_not(self) -> None:
        job, cluster = job_of(elastic()), Cluster.uniform(2)
        with pytest.raises(InvalidValueError, match="gpus=3 must be one of its widths"):
            job_duration_us(job, cluster, Placement([(0, (3,))]))
        with pytest.raises(InvalidValueError, match="level=3 must be a level, from 0 to 2"):
            job_duration_us(job, cluster, Placement([(0, (2,))]), 3)

    @pytest.mark.parametrize(
        "work", [Fixed(duration_s=5), Profiled(iterations=2, seconds_per_iteration={"one_server": 0.1})]
    )
    def test_other_work_has_no_levels(self, work: Any) -> None:
        job, cluster, where = Job(id="j", release_s=0, gpus=1, work=work), Cluster.uniform(1), Placement([(0, (1,))])
        for call in (job_duration_us, iteration_ns_of):
            with pytest.raises(InvalidValueError, match="job 'j': level=1 must be 0: its work has no freeze levels"):
                call(job, cluster, where, 1)

    def test_nanoseconds_of_other_work(self) -> None:
        cluster, where = Cluster.uniform(1), Placement([(0, (1,))])
        profiled = Profiled(iterations=2, seconds_per_iteration={"one_server": 0.1})
        assert iteration_ns_of(Job(id="j", release_s=0, gpus=1, work=profiled), cluster, where) == 100_000_000
        with pytest.raises(InvalidValueError, match="has no iterations"):
            iteration_ns_of(Job(id="j", release_s=0, gpus=1, work=Fixed(duration_s=5)), cluster, where)

    def test_too_long(self) -> None:
        job = job_of(elastic(iterations=10**12))
        for bound in (fastest_us, slowest_us):
            with pytest.raises(InvalidValueError, match="job 'j': duration_us="):
                bound(job, Cluster.uniform(1))


class TestFiles:
    def document(self, tmp_path: Path) -> Any:
        save(Instance(cluster=Cluster.uniform(2), jobs=[job_of(elastic())]), tmp_path / "i.json")
        return json.loads((tmp_path / "i.json").read_text())

    def test_form(self, tmp_path: Path) -> None:
        assert self.document(tmp_path)["jobs"][0]["work"] == {
            "kind": "elastic",
            "iterations": 100,
            "widths": [1, 2, 8],
            "seconds_per_iteration": {
                "one_server": {"1": [0.4, 0.3, 0.2], "2": [0.25, 0.2, 0.15]},
                "many_servers": {"2": [0.3, 0.3, 0.2], "8": [0.1, 0.09, 0.08]},
            },
            "warm_up": 0.2,
            "compute_shares": [0.0, 0.5, 1.0],
        }

    def test_digests_tell_work_apart(self) -> None:
        def of(work: Elastic) -> str:
            return digest(Instance(cluster=Cluster.uniform(2), jobs=[job_of(work)]))

        assert len({of(elastic()), of(elastic(family="cnn")), of(elastic(quality_budget_points=0.5))}) == 3
        assert of(elastic()) == of(elastic(quality_budget_points=0.0, warm_up=0.2))

    @pytest.mark.parametrize(
        ("field", "value", "problem"),
        [
            ("iterations", "100", "$.jobs[0].work.iterations: '100' must be a whole number"),
            ("widths", [1, 2, "8"], "$.jobs[0].work.widths: '8' must be a whole number"),
            ("compute_shares", [0, True, 1], "$.jobs[0].work.compute_shares: True must be a number"),
            ("compute_shares", 0, "$.jobs[0].work.compute_shares: 0 must be a list"),
            ("width", [1], "$.jobs[0].work.width: unknown field; did you mean 'widths'?"),
            ("seconds_per_iteration", [], "$.jobs[0].work.seconds_per_iteration: [] must be an object"),
            ("one_server", 4, "$.jobs[0].work.seconds_per_iteration.one_server: 4 must be an object"),
            ("one_server", {"1": 4}, "$.jobs[0].work.seconds_per_iteration.one_server.1: 4 must be a list"),
            ("one_server", {"01": []}, "$.jobs[0].work.seconds_per_iteration.one_server.01: must be a number of GPUs"),
            ("one_server", {"²": []}, "$.jobs[0].work.seconds_per_iteration.one_server.²: must be a number of GPUs"),
            ("one_server", {"1": [1, "x"]}, ".work.seconds_per_iteration.one_server.1[1]: 'x' must be a number"),
            (
                "one_server",
                {"3": [1, 1, 1]},
                "$.jobs[0].work: work: seconds_per_iteration[one_server]=3 is none of its",
            ),
            ("one_server", {"1": [1, 2, 3]}, "seconds_per_iteration[one_server][1][1]=2.0 must be at most 1.0"),
            ("two_servers", {}, "$.jobs[0].work: work: seconds_per_iteration='two_servers' is not a placement class"),
        ],
    )
    def test_faults_have_a_path(self, tmp_path: Path, field: str, value: Any, problem: str) -> None:
        document = self.document(tmp_path)
        work = document["jobs"][0]["work"]
        (work["seconds_per_iteration"] if "server" in field else work)[field] = value
        (tmp_path / "i.json").write_text(json.dumps(document))
        with pytest.raises(FileError) as error:
            load_instance(tmp_path / "i.json")
        assert problem in error.value.problem


@pytest.mark.parametrize("policy", ["fifo", "easy", "sjf", "asrpt", "asrpt-strict"])
def test_policies_that_know_no_levels_run_it_as_asked_for(policy: str) -> None:
    jobs = [
        Job(id="a", release_s=0, gpus=8, work=elastic()),
        Job(id="b", release_s=1, gpus=2, work=elastic(iterations=10)),
        Job(id="c", release_s=2, gpus=1, work=elastic(iterations=10)),
    ]
    instance = Instance(cluster=Cluster.uniform(2, gpus=4), jobs=jobs)
    result = simulate(instance, policy)
    assert check_schedule(instance, result.schedule).valid
    ran = {s.job: (s.placement.gpus, s.freeze_level, s.end_us - s.start_us) for s in result.schedule.segments}
    assert ran == {"a": (8, 0, 10_000_000), "b": (2, 0, 2_500_000), "c": (1, 0, 4_000_000)}


def test_what_is_hidden_is_the_size_and_the_status_and_nothing_else() -> None:
    told: dict[str, Any] = {
        "user": "u",
        "group": "g",
        "name": "n",
        "weight": 2.0,
        "locality": "server",
        "status": "Pass",
    }
    job = Job(id="a", release_s=3, gpus=2, work=Fixed(duration_s=5), estimate_s=9, checkpoint_s=7, **told)
    assert blinded(job) == job.replace(work=Fixed(duration_s=1), status="")
    assert with_size(job, 8.0) == job.replace(work=Fixed(duration_s=8))


def test_predictors_see_iterations() -> None:
    job = job_of(elastic())
    assert size_of(job) == 100.0
    assert with_size(job, 7.4).work == elastic(iterations=7)
    hidden = blinded(job).work
    assert isinstance(hidden, Elastic)
    assert hidden.iterations == 1
