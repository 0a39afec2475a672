"""Reading, writing, summarising and generating traces, by hand."""

from __future__ import annotations

import csv
import gzip
import json
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from frostline.errors import FileError, FrostlineError, InvalidValueError, UnknownNameError
from frostline.problem.cluster import Cluster
from frostline.problem.instance import Instance
from frostline.problem.job import Fixed, Job, Locality, Profiled
from frostline.report.workload import trace_lines, trace_summary
from frostline.traces import (
    TRACE_FORMATS,
    Trace,
    generate_jobs,
    offered_load,
    read_trace,
    rescale_load,
    summarise,
    take,
    write_trace,
)

HEAD = "id,submit_s,gpus,duration_s\n"


def job(id_: str, release_s: float = 0, gpus: int = 1, duration_s: float = 60, **more: str) -> Job:
    return Job(id=id_, release_s=release_s, work=Fixed(duration_s=duration_s), gpus=gpus, **more)


def duration_s(job: Job) -> float:
    assert isinstance(job.work, Fixed)
    return job.work.duration_s


def rows(jobs: Sequence[Job]) -> list[tuple[str, float, int, float]]:
    return [(job.id, job.release_s, job.gpus, duration_s(job)) for job in jobs]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "trace.csv"


def read(file: Path, text: str | bytes, **options: object) -> Trace:
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_trace(file, **options)


class TestOurFormat:
    def test_all_columns(self, file: Path) -> None:
        text = 'id,submit_s,gpus,duration_s,user,group,name,status\na,0,8,1.5,ann,vc1,"bert, large",Pass\n'
        trace = read(file, text)
        assert trace.jobs == (job("a", 0, 8, 1.5, user="ann", group="vc1", name="bert, large", status="Pass"),)
        assert trace.report.ignored_columns == trace.report.warnings == ()

    @pytest.mark.parametrize(
        "header",
        [
            "job_id,submit,gpus,duration,vc",
            " ID , Submit_S ,N_GPU,Duration_s,Group",
            "id,submit_time,num_gpus,run_time,vc",
        ],
    )
    def test_other_names_of_columns(self, file: Path, header: str) -> None:
        assert read(file, f"{header}\na,0,2,9,g\n").jobs == (job("a", 0, 2, 9, group="g"),)

    @pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
    def test_line_ends_and_byte_order_mark(self, file: Path, newline: str) -> None:
        text = f"{HEAD}a,0,1,9\n\nb,5,1,9".replace("\n", newline)
        assert rows(read(file, text.encode("utf-8-sig")).jobs) == [("a", 0, 1, 9), ("b", 5, 1, 9)]

    @pytest.mark.parametrize("name", ["trace.csv.gz", "trace.csv", "trace"])
    def test_gzip_is_seen_by_content(self, tmp_path: Path, name: str) -> None:
        assert rows(read(tmp_path / name, gzip.compress(f"{HEAD}a,0,1,9\n".encode())).jobs) == [("a", 0, 1, 9)]

    def test_version_line(self, file: Path) -> None:
        assert len(read(file, f"# frostline/trace version=1\n{HEAD}a,0,1,9\n").jobs) == 1

    def test_duration_from_start_and_end(self, file: Path) -> None:
        trace = read(file, "job_id,submit,start,end,n_gpu\na,0,10.1,70.2,1\n")
        assert rows(trace.jobs) == [("a", 0, 1, 60.1)]

    def test_ends_that_agree_with_the_duration_within_a_second(self, file: Path) -> None:
        trace = read(file, "id,submit,start,end,duration,gpus\na,0,10,70,60.9,1\nb,0,10,0,5,1\nc,0,,,5,1\n")
        assert rows(trace.jobs) == [("a", 0, 1, 60.9), ("b", 0, 1, 5), ("c", 0, 1, 5)]

    def test_start_without_end_where_there_is_a_duration(self, file: Path) -> None:
        trace = read(file, "id,submit,start,duration,gpus\na,0,5,60,1\nb,0,,60,1\nc,0,nan,60,1\n")
        assert trace.jobs == (job("a"), job("b"), job("c"))
        assert trace.start_s == {"a": 5}

    def test_negative_times_are_rebased(self, file: Path) -> None:
        trace = read(file, "job_id,submit,start,end,n_gpu\na,-792,-792,-788,1\nb,0,0,5,1\n")
        assert rows(trace.jobs) == [("a", 0, 1, 4), ("b", 792, 1, 5)]
        assert (trace.report.left_censored, trace.report.origin_s) == (("a",), -792)
        assert any("left-censored" in warning for warning in trace.report.warnings)

    def test_end_at_zero_is_an_end_after_a_negative_start(self, file: Path) -> None:
        assert rows(read(file, "id,submit,start,end,gpus\na,-9,-5,0,1\n").jobs) == [("a", 0, 1, 5)]

    def test_large_offset_is_rebased_without_noise(self, file: Path) -> None:
        trace = read(file, f"{HEAD}a,494319.1,1,9\nb,494319.4,1,9\n")
        assert [job.release_s for job in trace.jobs] == [0, 0.3]
        assert trace.report.origin_s == 494319.1
        assert trace.report.left_censored == ()

    def test_rebasing_can_be_left_out(self, file: Path) -> None:
        assert rows(read(file, f"{HEAD}a,-5,1,9\n", rebase=False).jobs) == [("a", -5, 1, 9)]

    def test_jobs_without_gpus_are_set_aside_by_repair(self, file: Path) -> None:
        trace = read(file, f"{HEAD}none,-100,0,3600\na,0,1,9\nzero,0,0.0,-1\n", mode="repair")
        assert rows(trace.jobs) == [("a", 0, 1, 9)]
        assert (trace.report.rows_read, trace.report.rows_kept, trace.report.dropped) == (3, 1, {"cpu_only": 2})

    @pytest.mark.parametrize(("cell", "gpus"), [("8", 8), (" 8 ", 8), ("8.0", 8), ("1e3", 1000)])
    def test_cells_of_gpus(self, file: Path, cell: str, gpus: int) -> None:
        assert read(file, f"{HEAD}a,0,{cell},9\n").jobs[0].gpus == gpus

    @pytest.mark.parametrize(("cell", "gpus"), [("0.5", 1), ("7.9999999", 8), ("2.25", 3)])
    def test_fractions_are_rounded_up_by_repair(self, file: Path, cell: str, gpus: int) -> None:
        assert read(file, f"{HEAD}a,0,{cell},9\n", mode="repair").jobs[0].gpus == gpus

    def test_identifiers_are_text(self, file: Path) -> None:
        trace = read(file, f"{HEAD}007,0,1,9\n7,0,1,9\n7.0,0,1,9\nNone,0,1,9\n")
        assert {job.id for job in trace.jobs} == {"007", "7", "7.0", "None"}

    def test_order_of_rows_does_not_matter(self, file: Path) -> None:
        lines = ["j10,0,1,5\n", "j9,0,1,5\n", "b,20,1,5\n", "c,10,1,5\n"]
        jobs = read(file, HEAD + "".join(lines)).jobs
        assert [job.id for job in jobs] == ["j9", "j10", "c", "b"]
        assert read(file, HEAD + "".join(reversed(lines))).jobs == jobs
        assert Instance(cluster=Cluster.uniform(1), jobs=jobs).jobs == jobs

    def test_unknown_columns_are_told(self, file: Path) -> None:
        report = read(file, "id,submit,gpus,duration,gpu_type\na,0,1,9,V100\n").report
        assert report.ignored_columns == ("gpu_type",)
        assert "ignored columns: gpu_type" in report.warnings

    def test_coverage_by_column_and_half(self, file: Path) -> None:
        lines = [f"j{i},{i},1,9,{5 if i < 3 or i >= 500 else ''}\n" for i in range(1000)]
        report = read(file, "id,submit,gpus,duration,cpu_util\n" + "".join(lines)).report
        assert report.coverage["cpu_util"] == 0.503
        assert report.coverage_by_half["cpu_util"] == (0.006, 1.0)
        assert report.coverage_by_half["gpus"] == (1.0, 1.0)
        assert any("'cpu_util' is filled in 0.6% of the first half" in warning for warning in report.warnings)


class TestStarts:
    HEAD = "id,submit,start,end,gpus\n"

    def test_rebased_like_the_releases(self, file: Path) -> None:
        text = f"{self.HEAD}b,1000.2,1000.5,1010,1\na,1000.1,1000.1,1001,1\n"
        assert dict(read(file, text).start_s) == {"a": 0, "b": 0.4}
        assert list(read(file, text).start_s) == ["a", "b"]
        assert dict(read(file, text, rebase=False).start_s) == {"a": 1000.1, "b": 1000.5}

    @pytest.mark.parametrize("column", ["wait", "queue_s", "Wait_Time"])
    def test_from_waits(self, file: Path, column: str) -> None:
        trace = read(file, f"id,submit,{column},gpus,duration\na,10,2.5,1,9\nb,10,0,1,9\nc,10,,1,9\nd,10,-1,1,9\n")
        assert dict(trace.start_s) == {"a": 2.5, "b": 0}
        assert trace.report.repaired == {}

    def test_waits_in_the_unit_of_the_file(self, file: Path) -> None:
        text = "id,submit,wait,gpus,duration,walltime\na,1,2,1,9,10\n"
        trace = read(file, text, time_unit="min")
        assert (dict(trace.start_s), trace.jobs[0].estimate_s) == ({"a": 120}, 600)

    def test_a_start_goes_before_a_wait(self, file: Path) -> None:
        trace = read(file, "id,submit,start,wait,gpus,duration\na,0,7,5,1,9\nb,0,,5,1,9\n")
        assert dict(trace.start_s) == {"a": 7, "b": 5}

    def test_start_with_a_missing_end(self, file: Path) -> None:
        trace = read(file, "id,submit,start,end,duration,gpus\na,0,10,,5,1\nb,0,,70,5,1\n")
        assert dict(trace.start_s) == {"a": 10}

    def test_wrong_starts_are_forgotten_by_repair(self, file: Path) -> None:
        text = "id,submit,start,end,wait,duration,gpus\na,50,5,9,-3,4,1\nb,50,x,9,1,4,1\nc,0,2,9,1,7,1\n"
        trace = read(file, text, mode="repair")
        assert (dict(trace.start_s), rows(trace.jobs)) == ({"c": 2}, [("c", 0, 1, 7), ("a", 50, 1, 4)])
        assert trace.report.repaired == {"start_before_submit": 1, "bad_wait": 1}
        assert trace.report.dropped == {"not_a_number": 1}

    def test_none_where_nothing_tells(self, file: Path) -> None:
        trace = read(file, f"{HEAD}a,0,1,9\n")
        assert (dict(trace.start_s), trace.jobs[0].estimate_s) == ({}, None)


class TestEstimates:
    @pytest.mark.parametrize("column", ["estimate_s", "wallclock_req", "Walltime", "requested_time"])
    def test_columns(self, file: Path, column: str) -> None:
        trace = read(file, f"id,submit,gpus,duration,{column}\na,0,1,9,3600.0\nb,0,1,9,\nc,0,1,9,-1\nd,0,1,9,Unknown\n")
        assert [job.estimate_s for job in trace.jobs] == [3600, None, None, None]
        assert trace.report.ignored_columns == trace.report.warnings == ()

    def test_two_columns(self, file: Path) -> None:
        with pytest.raises(FileError, match="columns 'walltime' and 'estimate_s' both hold the field estimate"):
            read(file, "id,submit,gpus,duration,walltime,estimate_s\na,0,1,9,1,1\n")

    @pytest.mark.parametrize("cell", ["0", "-5", "inf", "1e12", "1-00:00:00", "UNLIMITED", "1_0"])
    def test_bad_ones(self, file: Path, cell: str) -> None:
        text = f"id,submit,gpus,duration,walltime\na,0,1,9,{cell}\nb,0,1,9,60\n"
        says = rf"line 2: walltime='{cell}' must be a run time above 0 \(bad_estimate\)$"
        with pytest.raises(FileError, match=says):
            read(file, text)
        trace = read(file, text, mode="repair")
        assert [job.estimate_s for job in trace.jobs] == [None, 60]
        assert (trace.report.rows_kept, trace.report.dropped) == (2, {})
        assert trace.report.repaired == {"bad_estimate": 1}

    def test_summary(self) -> None:
        jobs = [job("a", 0).replace(estimate_s=30), job("b", 9).replace(estimate_s=240), job("c", 9)]
        summary = summarise(jobs)
        assert (summary.estimates, summary.median_overestimate) == (2, 2.25)
        assert summarise(jobs[2:]).as_dict()["median_overestimate"] is None
        assert "estimates of users 2, median 2.25 times the run time" in trace_lines(trace_summary(jobs))
        assert not any("estimates" in line for line in trace_lines(trace_summary(jobs[2:])))


class TestOptions:
    @pytest.mark.parametrize(("unit", "factor"), [("s", 1), ("ms", 0.001), ("min", 60)])
    def test_time_units(self, file: Path, unit: str, factor: float) -> None:
        jobs = read(file, "id,submit,gpus,duration\na,0,1,90\nb,30,1,90\n", time_unit=unit).jobs
        assert rows(jobs) == [("a", 0, 1, 90 * factor), ("b", 30 * factor, 1, 90 * factor)]

    def test_column_in_seconds_has_no_other_unit(self, file: Path) -> None:
        with pytest.raises(FileError, match="column 'submit_s' holds seconds, so the time unit cannot be 'ms'"):
            read(file, f"{HEAD}a,0,1,9\n", time_unit="ms")

    def test_limit_counts_rows_of_the_file(self, file: Path) -> None:
        report = read(file, f"{HEAD}a,9,1,9\nb,5,0,9\nc,1,1,9\n", limit=2, mode="repair").report
        assert (report.rows_read, report.rows_kept) == (2, 1)

    def test_locality(self, file: Path) -> None:
        assert read(file, f"{HEAD}a,0,1,9\n", locality="server").jobs[0].locality is Locality.SERVER

    def test_equal_rows_can_be_dropped(self, file: Path) -> None:
        trace = read(file, f"{HEAD}a,0,1,9\nb,0,1,9\na,0,1,9\n", duplicates="drop")
        assert [job.id for job in trace.jobs] == ["a", "b"]
        assert trace.report.dropped == {"duplicate_row": 1}

    @pytest.mark.parametrize(
        ("options", "says"),
        [
            ({"format": "itpp"}, "unknown trace format 'itpp'; did you mean 'itp'"),
            ({"mode": "lenient"}, "unknown mode 'lenient'"),
            ({"time_unit": "h"}, "unknown time unit 'h'"),
            ({"locality": "rack"}, "unknown locality 'rack'"),
            ({"duplicates": "merge"}, "unknown treatment of duplicates 'merge'"),
        ],
    )
    def test_unknown_names(self, file: Path, options: dict[str, str], says: str) -> None:
        with pytest.raises(UnknownNameError, match=says):
            read(file, f"{HEAD}a,0,1,9\n", **options)

    @pytest.mark.parametrize("options", [{"limit": 0}, {"limit": 1.5}, {"zone": "Mars/Base"}, {"zone": "../etc"}])
    def test_bad_values(self, file: Path, options: dict[str, object]) -> None:
        with pytest.raises(InvalidValueError):
            read(file, f"{HEAD}a,0,1,9\n", **options)


class TestPhilly:
    HEAD = "timestamp,duration,num_gpus,gpu_time,cluster\n"

    def lines(self, *stamps: str) -> str:
        return self.HEAD + "".join(f"{stamp},{60.0 + i},1,0,vc{i}\n" for i, stamp in enumerate(stamps))

    def test_rows_are_numbered_and_sorted(self, file: Path) -> None:
        trace = read(file, self.lines("2017-10-09 07:01:55", "2017-10-08 07:01:55", "2017-10-09 07:01:50"))
        assert rows(trace.jobs) == [("2", 0, 1, 61), ("3", 86395, 1, 62), ("1", 86400, 1, 60)]
        assert [job.group for job in trace.jobs] == ["vc1", "vc2", "vc0"]
        assert trace.report.format == "philly"
        assert "rows are not in the order of submission; the jobs are" in trace.report.warnings

    def test_numbers_stay_when_rows_are_dropped(self, file: Path) -> None:
        trace = read(file, self.lines("2017-10-09 07:01:55", "never", "2017-10-09 07:01:59"), mode="repair")
        assert rows(trace.jobs) == [("1", 0, 1, 60), ("3", 4, 1, 62)]

    def test_equal_rows_are_jobs_of_their_own(self, file: Path) -> None:
        text = self.HEAD + "2017-10-09 07:01:55,66.0,1,66.0,11cb48\n" * 3
        trace = read(file, text)
        assert [job.id for job in trace.jobs] == ["1", "2", "3"]
        assert any("2 rows equal an earlier one" in warning for warning in trace.report.warnings)
        assert [job.id for job in read(file, text, duplicates="drop").jobs] == ["1"]

    def test_zone_accounts_for_the_change_of_clocks(self, file: Path) -> None:
        text = self.lines("2017-11-05 00:30:00", "2017-11-05 03:30:00")
        without, within = read(file, text), read(file, text, zone="America/Los_Angeles")
        assert [job.release_s for job in without.jobs] == [0, 3 * 3600]
        assert [job.release_s for job in within.jobs] == [0, 4 * 3600]
        assert any("name their zone" in warning for warning in without.report.warnings)
        assert not any("name their zone" in warning for warning in within.report.warnings)

    @pytest.mark.parametrize(
        ("stamp", "release_s"), [("2017-11-05 01:30:00", 3600), ("2017-03-12 02:30:00", -20556000)]
    )
    def test_times_that_are_not_unique_in_their_zone(self, file: Path, stamp: str, release_s: int) -> None:
        text = self.lines("2017-11-05 00:30:00", stamp)
        with pytest.raises(FileError, match=r"line 3: .* must occur exactly once in its zone \(ambiguous_timestamp\)"):
            read(file, text, zone="America/Los_Angeles")
        trace = read(file, text, zone="America/Los_Angeles", mode="repair", rebase=False)
        first, second = sorted(trace.jobs, key=lambda job: int(job.id))
        assert second.release_s - first.release_s == release_s
        assert trace.report.repaired == {"ambiguous_timestamp": 1}

    def test_offsets_are_obeyed(self, file: Path) -> None:
        trace = read(file, self.lines("2017-11-05T01:30:00-07:00", "2017-11-05T01:30:00-08:00"))
        assert [job.release_s for job in trace.jobs] == [0, 3600]
        assert not any("name their zone" in warning for warning in trace.report.warnings)


class TestEagle:
    HEAD = "job_id,user,account,partition,wallclock_req,processors_req,gpus_req,submit_time,start_time,end_time,"

    def text(self, *cells: str) -> str:
        fixed = "u,acc,part,3600.0,36,0,2019-01-01 00:00:00,2019-01-01 00:01:00,2019-01-01 00:02:00,60.0,COMPLETED,n"
        return f"{self.HEAD}run_time,state,name\n" + "".join(f"{cell},{fixed}\n" for cell in cells)

    def test_by_its_header(self, file: Path) -> None:
        trace = read(file, self.text("7", "8"))
        assert trace.report.format == "eagle"
        expected = job("7", 0, 36, 60, user="u", group="acc", name="n", status="COMPLETED").replace(estimate_s=3600)
        assert trace.jobs == (expected, expected.replace(id="8"))
        assert dict(trace.start_s) == {"7": 60, "8": 60}
        assert "ignored columns: partition, gpus_req" in trace.report.warnings

    @pytest.mark.parametrize("mode", ["strict", "repair"])
    def test_tasks_of_arrays_are_numbered(self, file: Path, mode: str) -> None:
        trace = read(file, self.text("7", "8", "7", "7"), mode=mode)
        assert [job.id for job in trace.jobs] == ["7_1", "7_2", "7_3", "8"]
        assert list(trace.start_s) == ["7_1", "7_2", "7_3", "8"]
        assert (trace.report.repaired, trace.report.dropped) == ({"array_task": 3}, {})

    def test_a_number_that_is_taken(self, file: Path) -> None:
        text = self.text("7", "7", "7_1")
        with pytest.raises(FileError, match=r"line 2: job_id='7_1' .* it is also on line 4 \(repeated_id\)"):
            read(file, text)
        trace = read(file, text, mode="repair")
        assert [job.id for job in trace.jobs] == ["7_2"]
        assert trace.report.dropped == {"repeated_id": 2}

    def test_equal_tasks_can_be_dropped(self, file: Path) -> None:
        trace = read(file, self.text("7", "7"), duplicates="drop")
        assert ([job.id for job in trace.jobs], trace.report.dropped) == (["7"], {"duplicate_row": 1})

    def test_a_run_of_no_length(self, file: Path) -> None:
        text = self.text("7", "8").replace("60.0", "0.0", 1).replace("00:02:00", "00:01:00", 1)
        with pytest.raises(FileError, match=r"line 2: run_time='0.0' must be above 0 \(zero_duration\)"):
            read(file, text)
        assert read(file, text, mode="repair").report.dropped == {"zero_duration": 1}

    def test_zone(self, file: Path) -> None:
        text = self.text("7").replace("2019-01-01 00:02:00,60.0", "2019-03-10 03:00:00,5871600.0")
        with pytest.raises(FileError, match="duration_mismatch"):
            read(file, text)
        text = text.replace("2019-01-01 00:01:00", "2019-03-10 01:00:00").replace("5871600.0", "3600.0")
        assert dict(read(file, text, zone="America/Denver").start_s) == {"7": (68 * 24 + 1) * 3600}

    def test_ends_that_the_clock_turns_round(self, file: Path) -> None:
        text = self.text("7", "8").replace(",60.0,", ",,")
        text = text.replace("run_time", "rt").replace("2019-01-01 00:01:00,2019-01-01 00:02:00", "{0},{1}", 1)
        text = text.format("2019-11-03 00:59:00", "2019-11-03 01:30:00")
        trace = read(file, text, zone="America/Denver", mode="repair")
        assert [duration_s(job) for job in trace.jobs] == [31 * 60, 60]
        assert trace.report.repaired == {"ambiguous_timestamp": 1}


class TestFormats:
    def test_itp(self, file: Path) -> None:
        trace = read(file, "job_id,submission_time,duration,num_gpu\nx,10,600,4\n")
        assert (trace.report.format, rows(trace.jobs)) == ("itp", [("x", 0, 4, 600)])

    def test_a_format_can_be_named(self, file: Path) -> None:
        with pytest.raises(FileError, match=r"no column 'timestamp'; .*format 'philly'"):
            read(file, f"{HEAD}a,0,1,9\n", format="philly")

    def test_every_format_names_what_it_needs(self) -> None:
        for name, fmt in TRACE_FORMATS.items():
            assert fmt.name == name
            assert {"submit", "gpus"} <= set(fmt.columns)
            assert "duration" in fmt.columns or {"start", "end"} <= set(fmt.columns)
            assert fmt.numbered or "id" in fmt.columns


class TestWriter:
    def test_text(self, file: Path) -> None:
        write_trace(file, [job("b", 0.25, 2, 1e-7, name='say "hi"\r'), job("a,", -3, user="x")])
        assert file.read_bytes().decode() == (
            "# frostline/trace version=1\nid,submit_s,gpus,duration_s,user,group,name,status\n"
            'b,0.25,2,1e-07,,,"say ""hi""\r",\n"a,",-3,1,60,x,,,\n'
        )
        assert {job.name for job in read_trace(file).jobs} == {'say "hi"\r', ""}

    def test_estimates_only_where_there_are_any(self, file: Path) -> None:
        write_trace(file, [job("a"), job("b").replace(estimate_s=90.5)])
        assert file.read_bytes().decode() == (
            "# frostline/trace version=1\nid,submit_s,gpus,duration_s,user,group,name,status,estimate_s\n"
            "a,0,1,60,,,,,\nb,0,1,60,,,,,90.5\n"
        )
        assert [job.estimate_s for job in read_trace(file).jobs] == [None, 90.5]

    def test_gzip_has_the_same_bytes_whatever_the_name(self, tmp_path: Path) -> None:
        paths = [tmp_path / "one.csv.gz", tmp_path / "two.csv.gz"]
        for path in paths:
            write_trace(path, [job("a")])
        assert paths[0].read_bytes() == paths[1].read_bytes()
        assert read_trace(paths[0]).jobs == (job("a"),)

    @pytest.mark.parametrize(
        ("jobs", "says"),
        [
            ([], "jobs=0 must be at least 1"),
            ([job("a"), job("a", 5)], "jobs='a' is the id of two jobs"),
            ([job(" a")], "must not begin or end with a blank"),
            ([job("a").replace(weight=2)], "weight=2.0 must be 1"),
            ([job("a", name="\0")], "must be plain text"),
            ([job("a", user="\udcff")], "must be plain text"),
            ([job("a").replace(estimate_s=9e9)], r"estimate_s=9000000000.0 must be below 9e\+09 in a trace"),
            ([job("a", 5e9)], r"release_s=5000000000.0 must lie within ±4.4e\+09"),
            (
                [
                    Job(
                        id="p",
                        release_s=0,
                        gpus=1,
                        work=Profiled(iterations=1, seconds_per_iteration={"one_server": 1}),
                    )
                ],
                "job 'p': work='Profiled' has no duration of its own",
            ),
        ],
    )
    def test_what_could_not_be_read_back_is_refused(self, file: Path, jobs: list[Job], says: str) -> None:
        with pytest.raises(InvalidValueError, match=says):
            write_trace(file, jobs)
        assert not file.exists()

    def test_ending(self, tmp_path: Path) -> None:
        with pytest.raises(FileError, match=r"must end in \.csv or \.csv\.gz"):
            write_trace(tmp_path / "trace.txt", [job("a")])

    def test_all_or_nothing(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write_trace(file, [job("a")])

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(Path, "replace", full)
        with pytest.raises(FileError, match="No space left"):
            write_trace(file, [job("b")])
        assert rows(read_trace(file).jobs) == [("a", 0, 1, 60)]
        assert [path.name for path in file.parent.iterdir()] == ["trace.csv"]


class TestSummary:
    JOBS = (job("a", 0, 4, 10), job("b", 10, 8, 5), job("c", 10.5, 1, 100), job("d", 20, 1, 5))

    def test_by_hand(self) -> None:
        summary = summarise(self.JOBS, gpus=10)
        assert (summary.jobs, summary.span_s) == (4, 20)
        assert summary.gpu_hours * 3600 == 40 + 40 + 100 + 5
        assert (summary.mean_busy_gpus, summary.load) == (185 / 20, 185 / 200)
        assert summary.peak_busy_gpus == 9  # a ends when b starts
        assert dict(summary.gpu_histogram) == {1: 2, 4: 1, 8: 1}
        assert (summary.duration_s["mean"], summary.duration_s["p50"], summary.duration_s["max"]) == (30, 7.5, 100)
        gaps = np.array([10, 0.5, 9.5])
        assert summary.interarrival_cv == pytest.approx(gaps.std() / gaps.mean())
        assert summary.same_second_share == pytest.approx(1 / 3)

    def test_order_does_not_matter(self) -> None:
        assert summarise(self.JOBS[::-1]) == summarise(self.JOBS)

    def test_what_jobs_do_not_determine_is_none(self) -> None:
        one, same = summarise([job("a")], gpus=4), summarise([job("a"), job("b")], gpus=4)
        assert (one.span_s, one.mean_busy_gpus, one.load, one.interarrival_cv, one.same_second_share) == (
            0,
            *[None] * 4,
        )
        assert (same.load, same.interarrival_cv, same.same_second_share) == (None, None, 1.0)
        assert summarise(self.JOBS).load is None

    def test_no_jobs(self) -> None:
        summary = summarise([], gpus=4)
        assert (summary.jobs, summary.gpu_hours, summary.peak_busy_gpus, summary.duration_s) == (0, 0, 0, {})

    def test_json(self, file: Path) -> None:
        trace = read(file, f"{HEAD}a,0,0,9\nb,3,0.5,9\nc,5,1,9\n", mode="repair")
        data = json.loads(json.dumps(summarise(trace, gpus=2).as_dict(), allow_nan=False))
        assert {key: data[key] for key in ("rows_read", "rows_kept", "dropped", "repaired", "jobs", "span_s")} == {
            "rows_read": 3,
            "rows_kept": 2,
            "dropped": {"cpu_only": 1},
            "repaired": {"fractional_gpus": 1},
            "jobs": 2,
            "span_s": 2.0,
        }
        assert data["gpu_histogram"] == {"1": 2}
        assert data["coverage"]["id"] == 1.0

    def test_json_of_jobs_alone(self) -> None:
        data = summarise(self.JOBS).as_dict()
        assert (data["rows_read"], data["rows_kept"], data["dropped"], data["repaired"]) == (4, 4, {}, {})
        assert data["coverage"] == {"user": 0.0, "group": 0.0, "name": 0.0, "status": 0.0}


class TestWorkload:
    def test_take_goes_by_release(self) -> None:
        jobs = [job("c", 5), job("b10", 0), job("b9", 0)]
        assert [job.id for job in take(jobs, 2)] == ["b9", "b10"]
        assert len(take(jobs, 10)) == 3

    def test_rescaling_keeps_the_first_release_and_the_durations(self) -> None:
        jobs = [job("a", 100, 4), job("b", 110, 2), job("c", 400, 2)]
        scaled = rescale_load(jobs, gpus=8, load=0.5)
        assert offered_load(scaled, 8) == pytest.approx(0.5, rel=1e-12)
        assert [job.release_s for job in scaled] == pytest.approx([100, 104, 220])
        assert [job.work for job in scaled] == [job.work for job in jobs]

    @pytest.mark.parametrize("load", [0, -1, float("nan"), float("inf"), True, "1"])
    def test_bad_load(self, load: float) -> None:
        with pytest.raises(InvalidValueError, match="load="):
            rescale_load([job("a"), job("b", 9)], 8, load)

    @pytest.mark.parametrize("jobs", [[], [job("a")], [job("a"), job("b")]])
    def test_no_span_no_load(self, jobs: list[Job]) -> None:
        assert offered_load(jobs, 8) is None
        with pytest.raises(InvalidValueError, match=r"span_s=0\.0 must be above 0"):
            rescale_load(jobs, 8, 0.9)


class TestGenerator:
    def test_single_job(self) -> None:
        (only,) = generate_jobs(1, seed=0, gpus=8)
        assert (only.id, only.release_s) == ("1", 0)

    def test_widths_fit_the_cluster(self) -> None:
        assert {job.gpus for job in generate_jobs(2000, seed=0, gpus=3, histogram="mixed")} == {1, 2}
        assert {job.gpus for job in generate_jobs(50, seed=0, gpus=8, histogram={8: 1.0, 16: 1e9, 2: 0})} == {8}

    def test_durations_are_capped(self) -> None:
        assert max(map(duration_s, generate_jobs(2000, seed=0, gpus=8, longest_s=1000.5))) == 1000

    def test_days_show_in_the_releases(self) -> None:
        jobs = generate_jobs(20_000, seed=0, gpus=64, diurnal=0.9)
        phase = np.array([job.release_s for job in jobs]) % 86400
        day, night = np.sum(phase < 43200), np.sum(phase >= 43200)
        assert day > 2 * night
        assert offered_load(jobs, 64) == pytest.approx(0.9, rel=1e-9)

    def test_locality(self) -> None:
        assert generate_jobs(3, seed=0, gpus=8, locality=Locality.FEWEST)[0].locality is Locality.FEWEST

    @pytest.mark.parametrize(
        "options",
        [
            {"jobs": 0},
            {"jobs": 2.5},
            {"seed": -1},
            {"gpus": 0},
            {"load": 0},
            {"load": float("nan")},
            {"interarrival_cv": 0},
            {"diurnal": 1},
            {"recurring_share": 1.1},
            {"likeness": -0.1},
            {"longest_s": 0.5},
            {"histogram": {64: 1.0}},
            {"histogram": {1: -1.0}},
            {"histogram": {0: 1.0}},
            {"histogram": {}},
            {"histogram": "phily"},
            {"histogram": {8: 1.0}, "load": 1e-6, "jobs": 1000},
        ],
    )
    def test_bad_arguments(self, options: dict[str, object]) -> None:
        with pytest.raises(FrostlineError):
            generate_jobs(**({"jobs": 10, "seed": 0, "gpus": 8} | options))


class TestPublicTraces:
    def test_philly(self, shared: Path) -> None:
        trace = read_trace(shared / "data/traces/philly-2017/philly.csv.gz", mode="repair")
        summary = summarise(trace, gpus=472)
        assert (trace.report.rows_read, trace.report.rows_kept, trace.report.dropped) == (82247, 82247, {})
        assert any("65 rows equal an earlier one" in warning for warning in trace.report.warnings)
        assert summary.gpu_hours == pytest.approx(978_079, abs=1)
        assert summary.load == pytest.approx(0.79, abs=0.005)
        assert summary.interarrival_cv == pytest.approx(15.1, abs=0.05)
        assert {key: summary.duration_s[key] for key in ("p5", "p25", "p50", "p75", "max")} == {
            "p5": 48,
            "p25": 115,
            "p50": 1144,
            "p75": 2932,
            "max": 4_628_226,
        }
        assert list(summary.gpu_histogram) == [1, 2, 4, 8, 12, 16, 24, 32, 64, 128]

    def test_philly_in_its_zone(self, shared: Path) -> None:
        path = shared / "data/traces/philly-2017/philly.csv.gz"
        trace = read_trace(path, mode="repair", zone="America/Los_Angeles", duplicates="drop")
        assert trace.report.dropped == {"duplicate_row": 65}
        assert trace.report.repaired == {"ambiguous_timestamp": 7}

    def test_itp(self, shared: Path) -> None:
        paths = sorted((shared / "data/traces/itp-2021").glob("cluster*.csv.gz"))
        summaries = [summarise(read_trace(path)) for path in paths]
        assert sum(summary.jobs for summary in summaries) == 69_351
        assert sum(summary.gpu_hours for summary in summaries) == pytest.approx(1_632_719.7, abs=0.05)
        assert [round(summary.mean_busy_gpus or 0) for summary in summaries] == [
            28,
            86,
            140,
            495,
            10,
            87,
            257,
            66,
            31,
            5,
        ]
        peaks = [330, 346, 1379, 2025, 341, 516, 1903, 282, 118, 52]
        assert [summary.peak_busy_gpus for summary in summaries] == peaks

    def test_philly_does_not_tell_starts_or_estimates(self, shared: Path) -> None:
        trace = read_trace(shared / "data/traces/philly-2017/philly.csv.gz", limit=1000)
        assert dict(trace.start_s) == {}
        assert {job.estimate_s for job in trace.jobs} == {None}

    def test_eagle(self, shared: Path) -> None:
        path = shared / "data/traces/nrel-eagle-2019/sample_eagle_data.csv.gz"
        with gzip.open(path, "rt", encoding="utf-8", newline="") as text:
            lines = list(csv.DictReader(text))
        trace = read_trace(path)
        report = trace.report
        assert (report.format, report.rows_read, report.rows_kept, report.dropped) == ("eagle", 1000, 1000, {})
        repeated = {name: count for name, count in Counter(line["job_id"] for line in lines).items() if count > 1}
        assert (repeated, report.repaired) == ({"532939": 452}, {"array_task": 452})
        assert {f"532939_{number}" for number in range(1, 453)} < {job.id for job in trace.jobs}
        assert {job.id for job in trace.jobs if "_" not in job.id} == {x["job_id"] for x in lines} - set(repeated)
        for field, column in (("user", "user"), ("group", "account"), ("name", "name"), ("status", "state")):
            assert Counter(getattr(job, field) for job in trace.jobs) == Counter(line[column] for line in lines)
        numbers = (("gpus", "processors_req"), ("estimate_s", "wallclock_req"))
        for field, column in numbers:
            assert Counter(getattr(job, field) for job in trace.jobs) == Counter(float(line[column]) for line in lines)
        assert Counter(map(duration_s, trace.jobs)) == Counter(float(line["run_time"]) for line in lines)
        first = min(line["submit_time"] for line in lines)
        stamps = [(line["start_time"], line["submit_time"]) for line in lines]
        seconds = [(datetime.fromisoformat(a) - datetime.fromisoformat(b)).total_seconds() for a, b in stamps]
        waits = [trace.start_s[job.id] - job.release_s for job in trace.jobs]
        assert Counter(waits) == Counter(seconds)
        assert datetime(1970, 1, 1) + timedelta(seconds=report.origin_s) == datetime.fromisoformat(first)
        summary = summarise(trace)
        assert summary.span_s == pytest.approx(2.06 * 86400, rel=0.005)
        assert (summary.duration_s["p50"], round(summary.duration_s["mean"])) == (14_010, 9_872)
        assert summary.estimates == 1000
        assert summary.median_overestimate == pytest.approx(2.943, abs=0.001)

    def test_eagle_without_equal_rows(self, shared: Path) -> None:
        path = shared / "data/traces/nrel-eagle-2019/sample_eagle_data.csv.gz"
        report = read_trace(path, duplicates="drop", zone="America/Denver").report
        assert (report.dropped, report.repaired) == ({"duplicate_row": 41}, {"array_task": 411})
        assert not any("zone" in warning for warning in report.warnings)

    @pytest.mark.parametrize("jobs", [480, 5000])
    def test_oracles(self, shared: Path, jobs: int) -> None:
        trace = read_trace(shared / f"data/traces/oracles/philly-{jobs}.csv.gz")
        assert (trace.report.format, len(trace.jobs), trace.report.ignored_columns) == ("frostline", jobs, ())
        assert summarise(trace, gpus=128).load == pytest.approx(0.9, abs=1e-5)
        assert [job.id for job in trace.jobs] == [str(number) for number in range(jobs)]
