"""Traces under random jobs, random rows and random seeds."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frostline.errors import FileError, TraceError
from frostline.problem.job import Fixed, Job, PlacementClass, Profiled
from frostline.traces import (
    RULES,
    generate_jobs,
    generate_recurring_jobs,
    in_order,
    offered_load,
    read_trace,
    rescale_load,
    summarise,
    take,
    template_of,
    write_trace,
)
from frostline.traces.workload import known_duration_s

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
JOBS = st.lists(
    st.builds(
        Job,
        id=TEXTS.map(str.strip).filter(bool),
        release_s=st.floats(-4e9, 4e9),
        work=st.builds(Fixed, duration_s=st.floats(0, 9e9, exclude_min=True, exclude_max=True)),
        gpus=st.integers(1, 1_000_000),
        user=TEXTS,
        group=TEXTS,
        name=TEXTS,
        status=TEXTS,
        estimate_s=st.none() | st.floats(0, 9e9, exclude_min=True, exclude_max=True),
    ),
    min_size=1,
    max_size=12,
    unique_by=lambda job: job.id,
)
NUMBERS = ["0", "1", "8", " 2 ", "1e3", "-1", "-5", "0.5", "nan", "inf", "", "None", "x", "1_0", "1e400", "3e9", "٣"]
CELLS = st.sampled_from(["a", "b", " a", "c", "j\0", "\udcff", *NUMBERS])
STARTS = [
    b";\n",
    b"JobID|Submit|Start|End|AllocTRES\n1|",
    b"",
    b"id,submit,gpus,duration\n",
    b"\x1f\x8b",
    b"[",
    b'[{"jobid":"a","attempts":[',
]
NUMBER_CELLS = st.sampled_from(NUMBERS)


@given(JOBS, st.sampled_from(["trace.csv", "trace.csv.gz"]))
def test_a_written_trace_reads_the_same(jobs: list[Job], name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        write_trace(path, jobs)
        first = path.read_bytes()
        trace = read_trace(path, rebase=False)
        write_trace(path, jobs)
        assert path.read_bytes() == first
    assert trace.jobs == in_order(jobs)
    assert trace.report.rows_read == trace.report.rows_kept == len(jobs)


@given(
    st.lists(st.tuples(CELLS, *[NUMBER_CELLS] * 7), max_size=12),
    st.sampled_from([("end", "duration"), ("end", "other"), ("other", "duration")]),
    st.booleans(),
)
def test_every_row_is_accounted_for(rows: list[tuple[str, ...]], timed: tuple[str, str], drop: bool) -> None:
    columns = ["id", "submit", "gpus", "start", *timed, "wait", "estimate"]
    text = "\n".join(map(",".join, [columns, ("sound", "5", "1", "6", "9", "3", "1", ""), *rows])) + "\n"
    duplicates = "drop" if drop else "keep"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.csv"
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        trace = read_trace(path, mode="repair", duplicates=duplicates)
        report = trace.report
        assert report.rows_read == 1 + len(rows)
        assert report.rows_read == report.rows_kept + sum(report.dropped.values())
        assert report.rows_kept == len(trace.jobs) == len({job.id for job in trace.jobs})
        assert set(report.dropped) | set(report.repaired) <= set(RULES)
        assert min(job.release_s for job in trace.jobs) == 0
        assert [job.id for job in trace.jobs if job.id in trace.start_s] == list(trace.start_s)
        assert all(job.release_s <= trace.start_s.get(job.id, job.release_s) for job in trace.jobs)
        faultless = not report.repaired and set(report.dropped) <= {"duplicate_row"}
        if faultless:
            assert read_trace(path, duplicates=duplicates).jobs == trace.jobs
        else:
            with pytest.raises(TraceError):
                read_trace(path, duplicates=duplicates)


@given(st.binary(max_size=200), st.sampled_from(STARTS))
def test_any_bytes_are_a_trace_or_a_file_error(data: bytes, before: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.csv"
        path.write_bytes(before + data)
        try:
            trace = read_trace(path, mode="repair")
        except FileError as error:
            assert str(path) in str(error)
        else:
            assert trace.jobs


@given(
    st.integers(0, 2**64),
    st.integers(2, 400),
    st.sampled_from([1, 8, 100, 1024]),
    st.floats(0.05, 5),
    st.floats(0.1, 20),
    st.sampled_from(["philly", "itp", "mixed"]),
    st.floats(0, 0.9),
)
def test_generated_jobs_offer_the_load(
    seed: int, jobs: int, gpus: int, load: float, cv: float, histogram: str, diurnal: float
) -> None:
    trace = generate_jobs(
        jobs, seed=seed, gpus=gpus, load=load, interarrival_cv=cv, histogram=histogram, diurnal=diurnal
    )
    assert offered_load(trace, gpus) == pytest.approx(load, rel=1e-12)
    assert [job.id for job in trace] == [str(number) for number in range(1, jobs + 1)]
    assert all(earlier.release_s <= later.release_s for earlier, later in pairwise(trace))
    assert max(job.gpus for job in trace) <= gpus
    assert all(isinstance(job.work, Fixed) and job.work.duration_s.is_integer() for job in trace)
    assert trace == generate_jobs(
        jobs, seed=seed, gpus=gpus, load=load, interarrival_cv=cv, histogram=histogram, diurnal=diurnal
    )


@given(st.integers(0, 2**32), st.integers(5, 600), st.floats(0, 1))
def test_groups_have_at_least_five_jobs(seed: int, jobs: int, share: float) -> None:
    trace = generate_jobs(jobs, seed=seed, gpus=64, recurring_share=share)
    sizes = Counter(job.name for job in trace)
    recurring = [size for name, size in sizes.items() if name.startswith("recurring")]
    assert all(size >= 5 for size in recurring)
    assert all(size == 1 for name, size in sizes.items() if name.startswith("once"))
    many = round(share * jobs)
    assert sum(recurring) == (many if many >= 5 else 0)
    assert len({(job.name, job.user, job.gpus) for job in trace}) == len(sizes)


@given(
    st.integers(0, 2**64),
    st.integers(1, 400),
    st.sampled_from([1, 8, 100, 1024]),
    st.fixed_dictionaries(
        {
            "load": st.floats(0.05, 5),
            "interarrival_cv": st.floats(0.1, 20),
            "diurnal": st.floats(0, 0.9),
            "histogram": st.sampled_from(["philly", "itp", "mixed"]),
            "recurring_share": st.floats(0, 1),
            "new_users": st.floats(0, 1),
            "drift": st.floats(0, 2),
            "jumps": st.floats(0, 1),
            "killed_share": st.floats(0, 0.5),
            "failed_share": st.floats(0, 0.5),
            "estimate_factor": st.none() | st.floats(1, 1e6),
            "longest_s": st.floats(1, 1e7),
        }
    ),
)
def test_recurring_jobs_are_as_asked(seed: int, jobs: int, gpus: int, options: dict[str, Any]) -> None:
    trace = generate_recurring_jobs(jobs, seed=seed, gpus=gpus, **options)
    assert trace == generate_recurring_jobs(jobs, seed=seed, gpus=gpus, **options)
    assert [job.id for job in trace] == [str(number) for number in range(1, jobs + 1)]
    assert jobs == 1 or offered_load(trace, gpus) == pytest.approx(options["load"], rel=1e-12)
    assert all(earlier.release_s <= later.release_s for earlier, later in pairwise(trace))
    assert max(job.gpus for job in trace) <= gpus
    assert all(1 <= known_duration_s(job) <= options["longest_s"] for job in trace)
    assert all((job.estimate_s is None) == (options["estimate_factor"] is None) for job in trace)
    sizes = Counter(map(template_of, trace))
    many = round(options["recurring_share"] * jobs)
    assert sum(size for size in sizes.values() if size >= 5) == (many if many >= 5 else 0)
    assert len({(*template_of(job), job.gpus, job.group) for job in trace}) == len(sizes)
    statuses = Counter(job.status for job in trace)
    for status, share in (("Killed", options["killed_share"]), ("Failed", options["failed_share"])):
        assert abs(statuses[status] - share * jobs) <= 1
    for job in generate_recurring_jobs(jobs, seed=seed, gpus=gpus, work="profiled", **options):
        assert isinstance(job.work, Profiled)
        one = job.work.seconds_per_iteration[PlacementClass.ONE_SERVER]
        assert job.work.iterations * one <= options["longest_s"] * (1 + 1e-9) or job.work.iterations == 1


def test_other_seeds_give_other_jobs() -> None:
    assert generate_jobs(50, seed=1, gpus=64) != generate_jobs(50, seed=2, gpus=64)


def test_same_seed_same_bytes_in_any_process(tmp_path: Path) -> None:
    code = "import sys; from frostline.traces import *; write_trace(sys.argv[1], generate_jobs(500, seed=3, gpus=64))"
    contents = []
    for hash_seed in ("0", "4711"):
        path = tmp_path / f"{hash_seed}.csv.gz"
        environment = os.environ | {"PYTHONHASHSEED": hash_seed}
        subprocess.run([sys.executable, "-c", code, str(path)], env=environment, check=True)
        contents.append(path.read_bytes())
    assert contents[0] == contents[1]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_default_resembles_philly(seed: int) -> None:
    summary = summarise(generate_jobs(50_000, seed=seed, gpus=472))
    philly = {"p5": 48, "p25": 115, "p50": 1144, "p75": 2932, "p95": 43_646, "p99": 254_758, "mean": 13_136}
    for key, value in philly.items():
        assert 0.6 < summary.duration_s[key] / value < 1.6, key
    assert summary.gpu_histogram[1] / summary.jobs == pytest.approx(0.932, abs=0.01)
    assert summary.gpu_hours / summary.jobs == pytest.approx(978_079 / 82_247, rel=0.35)
    assert summary.interarrival_cv == pytest.approx(2.3, rel=0.1)


def test_likeness_shows_within_groups() -> None:
    def spread(likeness: float) -> float:
        groups: dict[str, list[float]] = {}
        for job in generate_jobs(20_000, seed=5, gpus=64, likeness=likeness, recurring_share=1.0):
            assert isinstance(job.work, Fixed)
            groups.setdefault(job.name, []).append(job.work.duration_s)
        return float(np.median([abs(np.log(times[0] / times[1])) for times in groups.values()]))

    assert spread(0.999) < 0.1 < spread(0.9) < spread(0.0)


@given(JOBS, st.integers(1, 15))
def test_taking_is_a_prefix_of_the_order(jobs: list[Job], n: int) -> None:
    assert take(jobs, n) == in_order(jobs)[:n]
    assert in_order(in_order(jobs)) == in_order(jobs)


@given(st.integers(0, 2**32), st.integers(2, 50), st.floats(0.01, 10), st.integers(1, 2000))
def test_rescaling_meets_the_load_and_keeps_the_order(seed: int, jobs: int, load: float, gpus: int) -> None:
    trace = generate_jobs(jobs, seed=seed, gpus=64)
    scaled = rescale_load(trace, gpus, load)
    assert offered_load(scaled, gpus) == pytest.approx(load, rel=1e-9)
    assert all(earlier.release_s <= later.release_s for earlier, later in pairwise(scaled))
