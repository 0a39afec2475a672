"""Formats of public traces: tiny files by hand, and the public samples, every row of which is accounted for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from frostline.errors import TraceError
from frostline.problem.job import Fixed, Job
from frostline.traces import Trace, read_trace


def rows(jobs: Sequence[Job]) -> list[tuple[str, float, int, float]]:
    return [(job.id, job.release_s, job.gpus, duration_s(job)) for job in jobs]


def duration_s(job: Job) -> float:
    assert isinstance(job.work, Fixed)
    return job.work.duration_s


def texts(job: Job) -> tuple[str, str, str, str]:
    return job.user, job.group, job.name, job.status


def counts(trace: Trace) -> tuple[str, int, int, dict[str, int], dict[str, int]]:
    """Format, rows read and kept, and what was dropped and repaired, after the check that they add up."""
    report = trace.report
    assert report.rows_read == report.rows_kept + sum(report.dropped.values())
    assert report.rows_kept == len(trace.jobs)
    return report.format, report.rows_read, report.rows_kept, dict(report.dropped), dict(report.repaired)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "trace"


def read(file: Path, text: str | bytes, **options: Any) -> Trace:
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_trace(file, **options)


@pytest.fixture
def traces(shared: Path) -> Path:
    return shared / "data/traces"


class TestPhillyJson:
    @staticmethod
    def attempt(start: str | None, end: str | None, *gpus: int) -> dict[str, Any]:
        detail = [{"ip": f"m{i}", "gpus": [f"gpu{gpu}" for gpu in range(n)]} for i, n in enumerate(gpus)]
        return {"start_time": start, "end_time": end, "detail": detail}

    @staticmethod
    def job(name: str, *attempts: dict[str, Any], **more: Any) -> dict[str, Any]:
        given = {"status": "Pass", "vc": "v", "user": "u", "submitted_time": "2017-10-07 01:00:00"}
        return {"jobid": name, "attempts": list(attempts)} | given | more

    def test_from_the_first_start_to_the_last_end(self, file: Path) -> None:
        first = self.attempt("2017-10-07 01:00:30", "2017-10-07 01:01:00", 8, 8)
        middle, last = self.attempt("None", "", 4), self.attempt(None, "2017-10-07 01:10:30", 2)
        jobs = [self.job("b", last | {"start_time": "2017-10-07 01:10:00"}), self.job("a", first, middle, last)]
        trace = read(file, json.dumps(jobs))
        assert counts(trace) == ("philly-json", 2, 2, {}, {})
        assert rows(trace.jobs) == [("a", 0, 16, 600), ("b", 0, 2, 30)]
        assert texts(trace.jobs[0]) == ("u", "v", "", "Pass")
        assert dict(trace.start_s) == {"a": 30, "b": 600}

    def test_lines_of_jobs(self, file: Path) -> None:
        late = self.job("late", self.attempt("2017-10-07 01:00:30", "None", 1))
        jobs = [self.job("never"), late, self.job("bare", {"start_time": "x", "end_time": "y", "detail": []})]
        with pytest.raises(TraceError) as caught:
            read(file, "\n[" + ",\n".join(map(json.dumps, jobs)) + "]")
        assert caught.value.faults == (
            "line 2: attempts='0' must have been started (never_started)",
            "line 3: end_time='None' must be known (missing_end)",
            "line 4: gpus='' must not be missing (missing_value)",
            "line 4: start_time='x' must be a date and time such as 2017-10-09 07:01:55, with an offset everywhere or "
            "nowhere (bad_timestamp)",
            "line 4: end_time='y' must be a date and time such as 2017-10-09 07:01:55, with an offset everywhere or "
            "nowhere (bad_timestamp)",
        )

    def test_the_public_sample(self, traces: Path) -> None:
        trace = read_trace(traces / "philly-2017/cluster_job_log.sample.json", mode="repair")
        assert counts(trace) == ("philly-json", 3, 2, {"never_started": 1}, {})
        assert rows(trace.jobs) == [
            ("application_1506638472019_14199", 0, 8, 2 * 86400 + 5 * 3600 + 41 * 60 + 3),
            ("application_1506638472019_16565", 2 * 86400 + 1 * 3600 + 52 * 60 + 37, 1, 469),
        ]
        assert list(trace.start_s.values()) == [30, 179744]
