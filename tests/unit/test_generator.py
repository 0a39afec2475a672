"""Recurring jobs: what the generator promises of them, by figures of one trace or a few."""

from __future__ import annotations

import csv
import gzip
import os
import subprocess
import sys
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from frostline.errors import FrostlineError
from frostline.problem.cluster import Cluster
from frostline.problem.instance import Instance
from frostline.problem.job import Fixed, Job, Locality, PlacementClass, Profiled
from frostline.traces import (
    generate_jobs,
    generate_recurring_jobs,
    offered_load,
    read_trace,
    summarise,
    template_of,
    write_trace,
)
from frostline.traces.job_names import FAMILIES

STEADY = {"drift": 0.0, "jumps": 0.0, "killed_share": 0.0, "failed_share": 0.0}


def duration_s(job: Job) -> float:
    assert isinstance(job.work, Fixed)
    return job.work.duration_s


def iterations(job: Job) -> int:
    assert isinstance(job.work, Profiled)
    return job.work.iterations


def by_template(jobs: tuple[Job, ...], least: int = 5) -> dict[tuple[str, str], list[Job]]:
    groups: dict[tuple[str, str], list[Job]] = defaultdict(list)
    for job in jobs:
        groups[template_of(job)].append(job)
    return {key: group for key, group in groups.items() if len(group) >= least}


@pytest.fixture(scope="module")
def trace() -> tuple[Job, ...]:
    return generate_recurring_jobs(10_000, seed=3, gpus=512)


@pytest.fixture(scope="module")
def steady() -> tuple[Job, ...]:
    return generate_recurring_jobs(20_000, seed=3, gpus=512, work="profiled", **STEADY)


class TestShape:
    def test_share_in_groups_of_five(self, trace: tuple[Job, ...]) -> None:
        assert sum(map(len, by_template(trace).values())) == 6500

    @pytest.mark.parametrize(("share", "many"), [(0.0, 0), (0.3, 150), (0.001, 0), (1.0, 500)])
    def test_other_shares(self, share: float, many: int) -> None:
        jobs = generate_recurring_jobs(500, seed=1, gpus=64, recurring_share=share)
        assert sum(map(len, by_template(jobs).values())) == many

    def test_the_load_is_met(self, trace: tuple[Job, ...]) -> None:
        assert offered_load(trace, 512) == pytest.approx(0.9, rel=1e-9)

    def test_order(self, trace: tuple[Job, ...]) -> None:
        assert [job.id for job in trace] == [str(number) for number in range(1, 10_001)]
        assert all(earlier.release_s <= later.release_s for earlier, later in pairwise(trace))
        assert (trace[0].release_s, Instance(cluster=Cluster.uniform(64), jobs=trace).jobs) == (0, trace)

    def test_jobs_of_a_template_share_what_a_template_is(self, trace: tuple[Job, ...]) -> None:
        for group in by_template(trace).values():
            assert len({(job.user, job.group, job.gpus, job.name[: len(template_of(job)[1])]) for job in group}) == 1

    def test_users_keep_their_virtual_cluster(self, trace: tuple[Job, ...]) -> None:
        assert len({(job.user, job.group) for job in trace}) == len({job.user for job in trace}) > 100
        assert len({job.group for job in trace}) > 10

    def test_widths_follow_the_histogram(self, trace: tuple[Job, ...]) -> None:
        assert sum(job.gpus == 1 for job in trace) / len(trace) == pytest.approx(0.932, abs=0.01)
        assert max(job.gpus for job in generate_recurring_jobs(500, seed=0, gpus=3, histogram="mixed")) == 2

    def test_lengths_of_full_runs_follow_philly(self) -> None:
        jobs = [generate_recurring_jobs(20_000, seed=seed, gpus=472, **STEADY) for seed in range(3)]
        summary = summarise([job.replace(id=f"{i}-{job.id}") for i, some in enumerate(jobs) for job in some])
        philly = {"p5": 48, "p25": 115, "p50": 1144, "p75": 2932, "p95": 43_646, "p99": 254_758, "mean": 13_136}
        for key, value in philly.items():
            assert 0.6 < summary.duration_s[key] / value < 1.6, key

    def test_arrivals_are_those_of_the_other_generator(self) -> None:
        recurring, plain = (f(20_000, seed=5, gpus=64) for f in (generate_recurring_jobs, generate_jobs))
        cvs = [summarise(jobs).interarrival_cv for jobs in (recurring, plain)]
        assert cvs == pytest.approx([2.3, 2.3], rel=0.1)
        phase = np.array([job.release_s for job in generate_recurring_jobs(20_000, seed=0, gpus=64, diurnal=0.9)])
        assert np.sum(phase % 86400 < 43200) > 2 * np.sum(phase % 86400 >= 43200)

    def test_names(self, trace: tuple[Job, ...]) -> None:
        endings = Counter()
        for group in by_template(trace).values():
            stem = template_of(group[0])[1]
            assert stem.split("-")[0] in FAMILIES
            ends = [job.name.removeprefix(stem) for job in group]
            style = {ends[0][:2] if ends[0][:2] in ("-v", "_r") else ends[0][0]}
            endings.update(style)
            if style == {"-v"}:
                assert ends == [f"-v{number}" for number in range(1, len(group) + 1)]
            if style == {"_r"}:
                assert ends == [f"_run{number}" for number in range(1, len(group) + 1)]
        assert min(endings[style] for style in ("-v", "_r", "-")) > 50

    def test_locality_and_cap(self) -> None:
        jobs = generate_recurring_jobs(2000, seed=0, gpus=64, locality=Locality.FEWEST, longest_s=1000.5)
        assert {job.locality for job in jobs} == {Locality.FEWEST}
        assert max(map(duration_s, jobs)) == 1000
        assert all(duration_s(job).is_integer() and duration_s(job) >= 1 for job in jobs)

    def test_a_single_job(self) -> None:
        (only,) = generate_recurring_jobs(1, seed=0, gpus=8)
        assert (only.id, only.release_s, only.user) == ("1", 0, "user0")


class TestVariation:
    def test_iterations_vary_as_in_zeus(self, steady: tuple[Job, ...]) -> None:
        groups = [list(map(iterations, group)) for group in by_template(steady, least=15).values()]
        cvs = [np.std(group, ddof=1) / np.mean(group) for group in groups]
        assert len(cvs) > 150
        assert np.median(cvs) == pytest.approx(0.12, abs=0.03)
        assert 0.5 < max(cvs) < 1.16 * 1.5
        assert np.mean(np.array(cvs) < 0.03) > 0.05

    def test_the_figures_of_zeus(self, shared: Path) -> None:
        path = shared / "data/traces/zeus-nsdi23/summary_train.csv.gz"
        last: dict[tuple[str, ...], float] = defaultdict(float)
        with gzip.open(path, "rt", encoding="utf-8", newline="") as text:
            for row in csv.DictReader(text):
                fields = ("dataset", "network", "batch_size", "optimizer", "learning_rate", "run")
                key = tuple(row[field] for field in fields)
                if row["target_epoch"]:
                    last[key] = max(last[key], float(row["target_epoch"]))
        seeds: dict[tuple[str, ...], list[float]] = defaultdict(list)
        for key, epochs in last.items():
            seeds[key[:-1]].append(epochs)
        cvs = [np.std(epochs, ddof=1) / np.mean(epochs) for epochs in seeds.values() if len(epochs) > 1]
        assert (len(cvs), round(np.median(cvs), 2), round(max(cvs), 2)) == (61, 0.12, 1.16)
        quantiles = {0.25: 0.046, 0.75: 0.227, 0.9: 0.374, 0.95: 0.466}
        assert list(np.quantile(cvs, list(quantiles))) == pytest.approx(list(quantiles.values()), abs=0.001)

    def test_drift_and_jumps_add_to_it(self) -> None:
        def change(**options: float) -> float:
            jobs = generate_recurring_jobs(10_000, seed=2, gpus=512, work="profiled", **{**STEADY, **options})
            halves = []
            for group in by_template(jobs, least=20).values():
                counts = np.log(list(map(iterations, group)))
                middle = len(group) // 2
                halves.append(abs(np.median(counts[:middle]) - np.median(counts[middle:])))
            return float(np.mean(halves))

        still = change()
        assert change(drift=1.0) > 1.5 * still
        assert change(jumps=1.0) > 3 * still

    def test_profiles(self, steady: tuple[Job, ...]) -> None:
        for job in steady[:500]:
            assert isinstance(job.work, Profiled)
            table = job.work.seconds_per_iteration
            assert set(table) == (set(PlacementClass) if job.gpus > 1 else {PlacementClass.ONE_SERVER})
            one, many = table[PlacementClass.ONE_SERVER], table.get(PlacementClass.MANY_SERVERS)
            assert many is None or one <= many <= 2 * one

    def test_fixed_and_profiled_work_are_the_same_runs(self) -> None:
        fixed, profiled = (generate_recurring_jobs(300, seed=4, gpus=64, work=work) for work in ("fixed", "profiled"))
        for one, other in zip(fixed, profiled, strict=True):
            assert isinstance(other.work, Profiled)
            length_s = other.work.iterations * other.work.seconds_per_iteration[PlacementClass.ONE_SERVER]
            assert duration_s(one) == max(1, round(length_s))
            assert (one.name.split("-")[:2], one.estimate_s) == (other.name.split("-")[:2], other.estimate_s)


class TestPeople:
    @pytest.mark.parametrize("seed", range(4))
    def test_new_users_come_in_the_second_half(self, seed: int) -> None:
        jobs = generate_recurring_jobs(3000, seed=seed, gpus=64)
        first, second = ({job.user for job in half} for half in (jobs[:1500], jobs[1500:]))
        assert len(second - first) >= 3
        assert len(first & second) > 5

    def test_without_new_users(self) -> None:
        jobs = generate_recurring_jobs(3000, seed=0, gpus=64, new_users=0.0)
        first, second = ({job.user for job in half} for half in (jobs[:1500], jobs[1500:]))
        assert len(second - first) <= 2

    def test_shares_of_early_stops(self, trace: tuple[Job, ...]) -> None:
        assert Counter(job.status for job in trace) == {"Pass": 6050, "Failed": 3050, "Killed": 900}
        none = generate_recurring_jobs(100, seed=0, gpus=8, killed_share=0, failed_share=0)
        every = generate_recurring_jobs(100, seed=0, gpus=8, killed_share=0.4, failed_share=0.6)
        assert {job.status for job in none} == {"Pass"}
        assert Counter(job.status for job in every) == {"Failed": 60, "Killed": 40}

    def test_runs_that_stop_early_are_shorter(self, trace: tuple[Job, ...]) -> None:
        ratios = []
        for group in by_template(trace).values():
            full = [duration_s(job) for job in group if job.status == "Pass"]
            part = [duration_s(job) for job in group if job.status != "Pass"]
            if full and part:
                ratios.append(np.median(part) / np.median(full))
        assert np.median(ratios) < 0.7

    def test_gpu_time_by_status_resembles_philly(self) -> None:
        gpu_s: Counter[str] = Counter()
        for seed in range(6):
            for job in generate_recurring_jobs(10_000, seed=seed, gpus=512):
                gpu_s[job.status] += job.gpus * duration_s(job)
        shares = {status: gpu_s[status] / gpu_s.total() for status in gpu_s}
        assert shares == pytest.approx({"Pass": 0.321, "Killed": 0.294, "Failed": 0.386}, abs=0.12)

    def test_previous_runs_tell_more_than_the_median(self, trace: tuple[Job, ...]) -> None:
        known: dict[tuple[str, str], float] = {}
        errors, plain = [], []
        median = np.median([duration_s(job) for job in trace])
        for job in trace:
            if template_of(job) in known:
                errors.append(abs(np.log(duration_s(job) / known[template_of(job)])))
                plain.append(abs(np.log(duration_s(job) / median)))
            known[template_of(job)] = duration_s(job)
        assert np.median(errors) < 0.4 * np.median(plain)


class TestEstimates:
    def test_they_are_round_and_mostly_too_long(self, trace: tuple[Job, ...]) -> None:
        estimates = Counter(job.estimate_s for job in trace)
        assert len(estimates) < 40
        assert all(estimate % 300 == 0 for estimate in estimates)
        over = [job.estimate_s / duration_s(job) for job in trace if job.status == "Pass"]
        assert 2 < np.median(over) < 4
        assert 0 < np.mean(np.array(over) < 1) < 0.05

    def test_the_factor(self) -> None:
        def median(factor: float) -> float:
            return summarise(generate_recurring_jobs(2000, seed=0, gpus=64, estimate_factor=factor)).median_overestimate

        assert 1 < median(1) < median(3) < median(10)

    def test_none(self) -> None:
        jobs = generate_recurring_jobs(50, seed=0, gpus=64, estimate_factor=None)
        assert {job.estimate_s for job in jobs} == {None}

    def test_very_long_ones_are_whole_months(self) -> None:
        jobs = generate_recurring_jobs(2000, seed=0, gpus=64, estimate_factor=1e6)
        assert max(job.estimate_s for job in jobs) == 8.9e9
        assert any(job.estimate_s % (720 * 3600) == 0 for job in jobs)


class TestSeeds:
    def test_a_written_trace_reads_the_same(self, trace: tuple[Job, ...], tmp_path: Path) -> None:
        write_trace(tmp_path / "t.csv.gz", trace)
        assert read_trace(tmp_path / "t.csv.gz", rebase=False).jobs == trace

    def test_same_seed_same_bytes_in_any_process(self, tmp_path: Path) -> None:
        code = (
            "import sys; from frostline.traces import *; "
            "write_trace(sys.argv[1], generate_recurring_jobs(500, seed=3, gpus=64))"
        )
        contents = []
        for hash_seed in ("0", "4711"):
            path = tmp_path / f"{hash_seed}.csv.gz"
            environment = os.environ | {"PYTHONHASHSEED": hash_seed}
            subprocess.run([sys.executable, "-c", code, str(path)], env=environment, check=True)
            contents.append(path.read_bytes())
        assert contents[0] == contents[1]

    def test_other_seeds_give_other_jobs(self) -> None:
        assert generate_recurring_jobs(50, seed=1, gpus=64) != generate_recurring_jobs(50, seed=2, gpus=64)

    @pytest.mark.parametrize(
        "options",
        [
            {"jobs": 0},
            {"jobs": 2.5},
            {"seed": -1},
            {"gpus": 0},
            {"load": 0},
            {"interarrival_cv": 0},
            {"diurnal": 1},
            {"recurring_share": 1.1},
            {"new_users": -0.1},
            {"drift": -1},
            {"jumps": 2},
            {"killed_share": 0.7, "failed_share": 0.4},
            {"killed_share": -0.1},
            {"estimate_factor": 0.9},
            {"estimate_factor": float("nan")},
            {"work": "training"},
            {"longest_s": 0.5},
            {"histogram": {64: 1.0}},
            {"histogram": "phily"},
        ],
    )
    def test_bad_arguments(self, options: dict[str, object]) -> None:
        with pytest.raises(FrostlineError):
            generate_recurring_jobs(**({"jobs": 10, "seed": 0, "gpus": 8} | options))
