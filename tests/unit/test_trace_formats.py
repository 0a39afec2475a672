"""Formats of public traces: tiny files by hand, and the public samples, every row of which is accounted for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from frostline.errors import FileError, TraceError
from frostline.problem.job import Fixed, Job
from frostline.traces import RULES, TRACE_FORMATS, Trace, read_trace


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


def test_the_documentation_knows_every_format_and_rule() -> None:
    text = (Path(__file__).parents[2] / "docs/traces.md").read_text(encoding="utf-8")
    assert [name for name in [*TRACE_FORMATS, *RULES] if f"`{name}`" not in text] == []


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

    @pytest.mark.parametrize("first", [(), (0,)])
    def test_gpus_of_the_first_attempt_that_tells_them(self, file: Path, first: tuple[int, ...]) -> None:
        begin = self.attempt("2017-10-07 01:00:30", None, *first)
        attempts = [begin, self.attempt(None, None, 4, 2), self.attempt(None, "2017-10-07 01:01:30", 1)]
        assert rows(read(file, json.dumps([self.job("a", *attempts)])).jobs) == [("a", 0, 6, 60)]

    def test_a_job_on_no_gpu(self, file: Path) -> None:
        jobs = [
            self.job(name, self.attempt("2017-10-07 01:00:30", "2017-10-07 01:01:30", n))
            for n, name in [(1, "a"), (0, "b")]
        ]
        assert counts(read(file, json.dumps(jobs), mode="repair")) == ("philly-json", 2, 1, {"cpu_only": 1}, {})

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


class TestHelios:
    HEAD = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"

    def test_columns(self, file: Path) -> None:
        row = "7,u,v,2,9,1,TIMEOUT,2020-06-09 18:41:01,2020-06-09 18:41:11,2020-06-09 18:42:11,60,10\n"
        trace = read(file, f"{self.HEAD}{row}" + row.replace("7,u,v,2", "8,u,v,0"), mode="repair")
        assert counts(trace) == ("helios", 2, 1, {"cpu_only": 1}, {})
        assert rows(trace.jobs) == [("7", 0, 2, 60)]
        assert texts(trace.jobs[0]) == ("u", "v", "", "TIMEOUT")
        assert dict(trace.start_s) == {"7": 10}

    def test_the_public_sample(self, traces: Path) -> None:
        trace = read_trace(traces / "helios-2020/cluster_log.sample.csv")
        assert counts(trace) == ("helios", 3, 3, {}, {})
        assert rows(trace.jobs) == [("1425511", 0, 1, 36848), ("1425512", 26, 4, 249), ("1425513", 27, 1, 675_233)]


class TestAcme:
    def test_runs_are_ends_minus_starts(self, traces: Path) -> None:
        trace = read_trace(traces / "acme-2023/trace_kalos.sample.csv")
        assert counts(trace) == ("acme", 2, 2, {}, {})
        assert rows(trace.jobs) == [("dlctk696s0jbvitv", 0, 64, 8), ("dlc1t2ypl09b8qtp", 1664, 64, 70)]
        assert dict(trace.start_s) == {"dlctk696s0jbvitv": 10, "dlc1t2ypl09b8qtp": 1676}
        assert texts(trace.jobs[1]) == ("uf794", "Other", "", "CANCELLED")
        assert not any("zone" in warning for warning in trace.report.warnings)

    def test_seren(self, traces: Path) -> None:
        trace = read_trace(traces / "acme-2023/trace_seren.sample.csv")
        assert counts(trace) == ("acme", 2, 2, {}, {})
        assert rows(trace.jobs) == [("5778432", 0, 8, 117), ("5778469", 336, 8, 2693)]
        assert trace.report.origin_s == 1677601102  # 2023-02-28 16:18:22 UTC

    def test_a_job_that_did_not_run(self, file: Path) -> None:
        head = "job_id,user,gpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time\n"
        stamps = [f"2023-03-01 00:0{minute}:00+08:00" for minute in range(3)]
        text = f"{head}a,u,8,SFT,FAILED,{','.join(stamps)},9,9,9\nb,u,8,SFT,CANCELLED,{stamps[0]},,{stamps[1]},0,0,0\n"
        trace = read(file, text, mode="repair")
        assert counts(trace) == ("acme", 2, 1, {"missing_start": 1}, {})
        assert rows(trace.jobs) == [("a", 0, 8, 60)]


class TestPai:
    HEAD = "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type\n"

    def task(self, job: str, instances: object, percent: object, times: str = "494319.0,494419.0", **more: str) -> str:
        status = more.get("status", "Terminated")
        return f"{job},{more.get('name', 'worker')},{instances},{status},{times},600.0,29.3,{percent},MISC\n"

    def test_percent_times_instances(self, file: Path) -> None:
        tasks = [(4, 100), (4, 50), (3, 25), (2, 800), (10, 10), (4, 25), (3, 34)]
        text = "".join(self.task(f"j{i}", float(n), float(percent)) for i, (n, percent) in enumerate(tasks))
        trace = read(file, text, mode="repair")
        assert [job.gpus for job in trace.jobs] == [4, 2, 1, 16, 1, 1, 2]
        assert counts(trace) == ("pai", 7, 7, {}, {"fractional_gpus": 2})
        each = read(file, text, mode="repair", fractions="ceil_per_instance")
        assert [job.gpus for job in each.jobs] == [4, 4, 3, 16, 10, 4, 3]
        assert each.report.repaired == {"fractional_gpus": 5}

    @pytest.mark.parametrize("before", ["", HEAD, "\n", f"\n{HEAD}"])
    def test_with_and_without_header(self, file: Path, before: str) -> None:
        text = before + self.task("a", 1.0, 100.0) + self.task("b", 1.0, -5)
        for options in ({}, {"format": "pai"}):
            with pytest.raises(TraceError, match=rf"line {2 + before.count(chr(10))}: plan_gpu='-5'"):
                read(file, text, **options)
        trace = read(file, text, mode="repair")
        assert (rows(trace.jobs), trace.report.origin_s) == ([("a", 0, 1, 100)], 494319)

    def test_tasks_of_a_job_run_together(self, file: Path) -> None:
        text = self.task("a", 2, 100, "10,60") + self.task("b", 1, 100, "5,9") + self.task("a", 1, 50, "7,90")
        text += self.task("a", 3, "", "0,99", name="ps") + self.task("c", 1, 0.0, name="ps")
        trace = read(file, text, mode="repair")
        assert rows(trace.jobs) == [("b", 0, 1, 4), ("a", 2, 3, 83)]
        assert counts(trace) == ("pai", 5, 2, {"cpu_only": 2, "merged_task": 1}, {"fractional_gpus": 1})
        assert dict(trace.start_s) == {"b": 0, "a": 2}

    def test_a_job_with_a_task_that_cannot_be_read(self, file: Path) -> None:
        text = self.task("a", 2, 100) + self.task("a", 1, 100, "494319.0,", status="Running") + self.task("b", 1, 100)
        trace = read(file, text + self.task("c", 1, 100, ",", status="Waiting"), mode="repair")
        assert [job.id for job in trace.jobs] == ["b"]
        assert counts(trace) == ("pai", 4, 1, {"incomplete_job": 1, "never_started": 1, "unfinished": 1}, {})

    @pytest.mark.parametrize("percent", ["1e999", "nan", "50%", "-25", "1e12", "1/2", "5_0"])
    def test_bad_percentages(self, file: Path, percent: str) -> None:
        trace = read(file, self.task("a", 1, 100) + self.task("b", 1, percent), mode="repair")
        assert trace.report.dropped == {"bad_gpus": 1}

    @pytest.mark.parametrize(("instances", "rule"), [("", "missing_value"), ("2.5", "bad_gpus"), ("-1", "bad_gpus")])
    def test_bad_instances(self, file: Path, instances: str, rule: str) -> None:
        text = self.task("a", 1, 100) + self.task("b", instances, 100)
        with pytest.raises(TraceError, match=f"line 2: plan_gpu='100' .*{rule}"):
            read(file, text)
        assert read(file, text, mode="repair").report.dropped == {rule: 1}


class TestOpenb:
    HEAD = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,"

    def pod(self, name: str, gpus: object, milli: object, times: str = "Running,0,90,5") -> str:
        return f"{name},6000,9,{gpus},{milli},,LS,{times}\n"

    def test_columns(self, file: Path) -> None:
        pods = [self.pod("a", 8, 1000), self.pod("b", 1, 460), self.pod("c", 0, 0), self.pod("d", 1, 1000)]
        text = f"{self.HEAD}scheduled_time\n" + "".join([*pods, self.pod("e", 1, 500, "Pending,3,4,")])
        trace = read(file, text, mode="repair")
        assert counts(trace) == ("openb", 5, 3, {"cpu_only": 1, "never_started": 1}, {"fractional_gpus": 1})
        assert rows(trace.jobs) == [("a", 0, 8, 85), ("b", 0, 1, 85), ("d", 0, 1, 85)]
        assert dict(trace.start_s) == {"a": 5, "b": 5, "d": 5}
        assert texts(trace.jobs[0]) == ("", "LS", "", "Running")

    @pytest.mark.parametrize("milli", ["1001", "-5", "half", "nan"])
    def test_bad_shares(self, file: Path, milli: str) -> None:
        text = f"{self.HEAD}scheduled_time\n" + self.pod("a", 1, 1000) + self.pod("b", 1, milli)
        assert read(file, text, mode="repair").report.dropped == {"bad_gpus": 1}

    @pytest.mark.parametrize(
        ("name", "dropped", "repaired"),
        [
            ("default", {"cpu_only": 1088, "never_started": 861}, 2573),
            ("gpuspec33", {"cpu_only": 1088, "never_started": 861}, 2573),
            ("gpushare100", {"cpu_only": 1088, "never_started": 1173}, 5891),
        ],
    )
    def test_the_public_lists(self, traces: Path, name: str, dropped: dict[str, int], repaired: int) -> None:
        trace = read_trace(traces / f"alibaba-openb-2023/openb_pod_list_{name}.csv.gz", mode="repair")
        kept = 8152 - sum(dropped.values())
        assert counts(trace) == ("openb", 8152, kept, dropped, {"fractional_gpus": repaired})

    def test_a_list_without_times_is_refused(self, traces: Path) -> None:
        with pytest.raises(FileError, match="no column 'creation_time'; no column 'scheduled_time'"):
            read_trace(traces / "alibaba-openb-2023/openb_pod_list_multigpu50.csv.gz", mode="repair")


MODELS = {
    "tiresias": ("job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n", "a,2,5,9,vgg11,60,1\n", 1),
    "muri": (
        "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,resource_time_0\n",
        "a,2,5,9,vgg11,64,60,1,1,1\n",
        0.001,
    ),
    "chronus": (
        "job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,expect_time_list\n",
        "a,vc,2,5,9,vgg11,60,1,1-2\n",
        60,
    ),
    "elasticflow": (
        "job_id,submit_time,real_iteration,model_name,ddl,batch_size,num_gpu,real_duration,duration,iteration\n",
        "a,5,9,vgg11,9,64,2,60,60,9\n",
        1,
    ),
}


class TestTracesWithModels:
    @pytest.mark.parametrize("name", MODELS)
    def test_units(self, file: Path, name: str) -> None:
        head, row, unit_s = MODELS[name]
        trace = read(file, head + row, rebase=False)
        assert counts(trace) == (name, 1, 1, {}, {})
        assert rows(trace.jobs) == [("a", 5 * unit_s, 2, 60 * unit_s)]
        assert texts(trace.jobs[0]) == ("", "vc" if name == "chronus" else "", "vgg11", "")
        assert rows(read(file, head + row, rebase=False, time_unit="s").jobs) == [("a", 5, 2, 60)]

    @pytest.mark.parametrize(
        ("path", "expected", "longest_s"),
        [
            ("tiresias-nsdi19/60_job.csv", ("tiresias", 60, 60, {}, {}), 1800),
            ("muri-sigcomm22/trace1.csv.gz", ("muri", 1494, 1494, {}, {}), 4_628_239),
            ("muri-sigcomm22/trace4.csv.gz", ("muri", 2638, 2638, {}, {}), 4_014_063),
            ("chronus-socc21/trace_job_Philly_SLO.csv.gz", ("chronus", 30940, 30735, {"cpu_only": 205}, {}), 4317 * 60),
            ("chronus-socc21/trace_job_Philly_MIX2.csv.gz", ("chronus", 30940, 30746, {"cpu_only": 194}, {}), 259_020),
            ("elasticflow-asplos23/philly_103959.csv", ("elasticflow", 876, 876, {}, {}), 1_792_395),
        ],
    )
    def test_the_public_traces(self, traces: Path, path: str, expected: tuple[Any, ...], longest_s: float) -> None:
        trace = read_trace(traces / path, mode="repair")
        assert counts(trace) == expected
        assert max(map(duration_s, trace.jobs)) == longest_s


class TestSwf:
    LINE = "{job} {submit} {wait} {run} {allocated} -1 -1 {requested} {time} -1 {status} 7 -1 3 -1 -1 -1 -1\n"

    def job(self, **cells: object) -> str:
        usual = {"job": 1, "submit": 5, "wait": 10, "run": 60, "allocated": 8, "requested": 8, "time": 90, "status": 1}
        return self.LINE.format(**usual | cells)

    def test_columns(self, file: Path) -> None:
        lines = [
            "; Version: 2.2\n",
            ";\n",
            "\n",
            self.job(),
            self.job(job=2, wait=-1, allocated=-1, requested=4, time=-1),
        ]
        trace = read(file, "".join(lines) + "  " + self.job(job=3, submit=7.5, wait="-0.0", run="0.25", status=0))
        assert counts(trace) == ("swf", 3, 3, {}, {})
        assert rows(trace.jobs) == [("1", 0, 8, 60), ("2", 0, 4, 60), ("3", 2.5, 8, 0.25)]
        assert [texts(job) for job in trace.jobs[::2]] == [("7", "", "3", "completed"), ("7", "", "3", "failed")]
        assert [job.estimate_s for job in trace.jobs] == [90, None, 90]
        assert dict(trace.start_s) == {"1": 10, "3": 2.5}
        assert trace.report.coverage["average_cpu_time"] == 0

    def test_minus_one_is_missing(self, file: Path) -> None:
        text = self.job() + self.job(job=2, run=-1, status=5) + self.job(job=3, allocated=-1, requested=-1)
        with pytest.raises(TraceError) as caught:
            read(file, text)
        assert caught.value.faults == (
            "line 2: run_time='' must not be missing (missing_value)",
            "line 3: allocated_processors='' must not be missing (missing_value)",
        )

    @pytest.mark.parametrize("mode", ["strict", "repair"])
    def test_parts_of_a_run_are_no_jobs(self, file: Path, mode: str) -> None:
        text = self.job() + "".join(self.job(status=status) for status in (2, 3, 4))
        assert counts(read(file, text, mode=mode)) == ("swf", 4, 1, {"job_part": 3}, {})

    def test_the_public_sample(self, traces: Path) -> None:
        trace = read_trace(traces / "swf-evalys/easy_mediumWL_smallPF.swf.gz")
        assert counts(trace) == ("swf", 800, 800, {}, {})
        first = next(job for job in trace.jobs if job.id == "2050")
        assert (first.release_s, first.gpus, duration_s(first), first.estimate_s) == (2739.599152, 2, 6.609, 67)
        assert len(trace.start_s) == 800
        assert {job.status for job in trace.jobs} == {"completed"}


class TestSacct:
    HEAD = "JobID|User|Account|JobName|State|Submit|Start|End|Elapsed|Timelimit|AllocTRES|ReqTRES\n"
    STAMPS = "2023-01-01T00:00:00|2023-01-01T00:00:10|2023-01-02T01:00:10"

    def row(self, job: str = "1", state: str = "COMPLETED", name: str = "n", held: str = "gres/gpu=2,node=1") -> str:
        return f"{job}|u|acc|{name}|{state}|{self.STAMPS}|1-01:00:00|2-00:00:00|billing=1,{held}|cpu=1,gres/gpu=9\n"

    def test_columns(self, file: Path) -> None:
        steps = self.row("1.batch", name="batch") + self.row("1.extern") + self.row("1.0")
        trace = read(file, self.HEAD + self.row() + steps + self.row("2_7", "CANCELLED by 1000", held="gres/gpu:a=4"))
        assert counts(trace) == ("sacct", 5, 2, {"job_part": 3}, {})
        assert rows(trace.jobs) == [("1", 0, 2, 90_000), ("2_7", 0, 4, 90_000)]
        assert texts(trace.jobs[1]) == ("u", "acc", "n", "CANCELLED")
        assert [job.estimate_s for job in trace.jobs] == [172_800, 172_800]
        assert dict(trace.start_s) == {"1": 10, "2_7": 10}

    @pytest.mark.parametrize("delimiter", ["|", "|#", "||"])
    @pytest.mark.parametrize("newline", ["\n", "\r\n"])
    def test_texts_with_line_breaks(self, file: Path, delimiter: str, newline: str) -> None:
        text = self.HEAD + self.row("1", name="a\n\nb,\"c'") + self.row("2") + self.row("3", name="\n")
        trace = read(file, text.replace("|", delimiter).replace("\n", newline))
        assert [(job.id, job.name) for job in trace.jobs] == [("1", "a\n\nb,\"c'"), ("2", "n"), ("3", "\n")]

    def test_bars_at_the_ends_of_lines(self, file: Path) -> None:
        trace = read(file, (self.HEAD + self.row()).replace("\n", "|\n"))
        assert (rows(trace.jobs), trace.report.ignored_columns) == ([("1", 0, 2, 90_000)], ("",))

    def test_lines_of_records(self, file: Path) -> None:
        text = self.HEAD + self.row("1", name="a\nb") + "4|u\n" + self.row("2", name="a|b") + self.row("3") + "5|cut"
        with pytest.raises(TraceError) as caught:
            read(file, text)
        assert caught.value.faults == (
            "line 4: fields='2' must be as many as in the header (12) (field_count)",
            "line 5: fields='13' must be as many as in the header (12) (field_count)",
            "line 7: fields='2' must be as many as in the header (12) (field_count)",
        )
        assert counts(read(file, text, mode="repair")) == ("sacct", 5, 2, {"field_count": 3}, {})

    def test_bytes_that_are_no_text(self, file: Path) -> None:
        text = (self.HEAD + self.row("1", name="a*b") + self.row("2*")).encode().replace(b"*", b"\xcf")
        with pytest.raises(
            TraceError, match=r"line 2: JobName='a\\udccfb' must be UTF-8 \(invalid_bytes\); line 3: JobID"
        ):
            read(file, text)
        trace = read(file, text, mode="repair")
        assert counts(trace) == ("sacct", 2, 1, {"invalid_bytes": 1}, {"invalid_bytes": 1})
        assert trace.jobs[0].name == "a�b"

    def test_gpus(self, file: Path) -> None:
        held = ["gres/gpu=8,gres/gpu:a100=8", "gres/gpu:a100=2,gres/gpu:h100=1,gres/gpu:v100=0", "node=1"]
        held += ["gres/gpu=x", "gres/gpu:a100=1.5,gres/gpu:h100=8"]
        text = self.HEAD + "".join(self.row(str(i), held=told) for i, told in enumerate(held))
        asked = self.row("asked").replace("billing=1,gres/gpu=2,node=1", "")
        trace = read(file, text + asked + asked.replace("asked", "none").replace("cpu=1,gres/gpu=9", ""), mode="repair")
        assert {job.id: job.gpus for job in trace.jobs} == {"0": 8, "1": 3, "asked": 9}
        assert trace.report.dropped == {"bad_gpus": 2, "cpu_only": 1, "missing_value": 1}

    @pytest.mark.parametrize(
        ("state", "rule"), [("RUNNING", "unfinished"), ("PENDING", "never_started"), ("REQUEUED", "unfinished")]
    )
    def test_jobs_that_have_not_ended(self, file: Path, state: str, rule: str) -> None:
        text = self.HEAD + self.row() + self.row("2", state).replace("2023-01-02T01:00:10", "Unknown")
        assert counts(read(file, text, mode="repair")) == ("sacct", 2, 1, {rule: 1}, {})
        with pytest.raises(TraceError) as caught:
            read(file, text)
        assert len(caught.value.faults) == 1

    @pytest.mark.parametrize(
        ("cell", "seconds"),
        [
            ("01:00:30", 3630),
            ("2-00:00:00", 172_800),
            ("02:30", 150),
            ("00:01.5", 1.5),
            ("90", 90),
            ("UNLIMITED", None),
        ],
    )
    def test_limits(self, file: Path, cell: str, seconds: float | None) -> None:
        trace = read(file, self.HEAD + self.row().replace("2-00:00:00", cell))
        assert trace.jobs[0].estimate_s == seconds

    @pytest.mark.parametrize("column", ["ElapsedRaw", "Elapsed|ElapsedRaw", ""])
    def test_other_columns_of_run_times(self, file: Path, column: str) -> None:
        run = {"ElapsedRaw": "90000|", "Elapsed|ElapsedRaw": "1-01:00:00|90000|", "": ""}[column]
        text = self.HEAD.replace("Elapsed|", f"{column}|" if column else "") + self.row().replace("1-01:00:00|", run)
        assert rows(read(file, text).jobs) == [("1", 0, 2, 90_000)]

    def test_the_public_samples(self, traces: Path) -> None:
        def sample(name: str) -> Path:
            return traces / f"slurm-gcm/sample-sacct-{name}.txt.gz"

        broken = read_trace(sample("output-invalid-utf8"))
        assert counts(broken) == ("sacct", 11, 2, {"job_part": 9}, {})
        assert rows(broken.jobs) == [("3557891", 0, 8, 99), ("3557892", 598, 1, 7212)]
        assert [job.estimate_s for job in broken.jobs] == [5400, 7200]
        several = read_trace(sample("multiple-multiline"), mode="repair")
        assert counts(several) == ("sacct", 6, 1, {"job_part": 2, "unfinished": 3}, {})
        assert rows(several.jobs) == [("201729", 0, 1024, 79_396)]
        assert dict(several.start_s) == {"201729": 16_356}
        for name, steps in (("output", 68), ("running-first300", 300)):
            with pytest.raises(FileError, match=f"holds no job that can be kept: {steps} rows, job_part: {steps}"):
                read_trace(sample(name))
        with pytest.raises(FileError, match=r"no column 'submit'; no column 'alloctres' \(or reqtres\)"):
            read_trace(sample("output-midnight-edge-case"), mode="repair")


class TestGavel:
    def test_ten_fields(self, file: Path) -> None:
        jobs = [("A3C", 7176, 1, 5), ("LM (batch size 10)", 6151, 8, 2.5), ("A3C", 7176, 2, 9), ("GPT", 7, 1, 9)]
        lines = [
            f"{name}\tpython3 main.py\trl\t-n\t1\t{steps}\t{gpus}\t1\t-1.0\t{at}\n" for name, steps, gpus, at in jobs
        ]
        trace = read(file, "".join(lines), mode="repair")
        assert counts(trace) == ("gavel", 4, 2, {"unknown_throughput": 2}, {})
        assert [(job.id, job.release_s, job.gpus, job.name) for job in trace.jobs] == [
            ("2", 0, 8, "LM (batch size 10)"),
            ("1", 2.5, 1, "A3C"),
        ]
        assert list(map(duration_s, trace.jobs)) == pytest.approx([6151 / 615.0934647748222, 7176 / 7.175767179667988])
        with pytest.raises(TraceError, match=r"line 4: total_steps='7' .* \(unknown_throughput\)$"):
            read(file, "".join(lines[:2] + lines[:1] + lines[3:]))

    def test_a_header_behind_tabs_is_not_taken_for_a_job(self, file: Path) -> None:
        with pytest.raises(FileError, match="no column 'id'"):
            read(file, "\t".join(["id", "submit_s", "gpus", "duration_s", "user", "group", "name"]) + "\n")

    def test_gpus_that_cannot_be_read_leave_no_run_time(self, file: Path) -> None:
        good = "A3C\tpython3 main.py\trl\t-n\t1\t90\t1\t1\t-1.0\t5\n"
        trace = read(file, good + good.replace("\t90\t1\t", "\t90\t1.5\t"), mode="repair")
        assert (len(trace.jobs), trace.report.dropped) == (1, {"unknown_throughput": 1})

    def test_seven_fields_do_not_mix_with_ten(self, file: Path) -> None:
        lines = [
            "A3C\tpython3 main.py\t-n\t1\t823303\t6.0\t7\n",
            "A3C\tpython3 main.py\trl\t-n\t1\t90\t1\t1\t-1.0\t5\n",
        ]
        trace = read(file, "".join(lines), mode="repair")
        assert counts(trace) == ("gavel-philly", 2, 1, {"field_count": 1}, {})
        assert rows(trace.jobs) == [("1", 0, 7, pytest.approx(100_000, abs=0.1))]

    def test_run_times_of_round_hours(self, traces: Path) -> None:
        trace = read_trace(traces / "gavel-osdi20/physical/debug.trace")
        assert counts(trace) == ("gavel", 14, 14, {}, {})
        times = sorted(map(duration_s, trace.jobs))
        assert sum(round(time_s + 0.1) % 100 == 0 for time_s in times) >= 8

    def test_run_times_are_those_of_philly(self, traces: Path) -> None:
        philly = read_trace(traces / "philly-2017/philly.csv.gz")
        same = agreeing = read_rows = 0
        for path in sorted((traces / "gavel-osdi20/msr-seed0").glob("*.trace.gz")):
            trace = read_trace(path)
            assert counts(trace)[0] == "gavel-philly"
            read_rows += counts(trace)[1]
            cluster = [job for job in philly.jobs if job.group == path.name.split(".")[0]]
            times: dict[tuple[float, int], list[float]] = {}
            for job in cluster:
                times.setdefault((job.release_s - cluster[0].release_s, job.gpus), []).append(duration_s(job))
            for job in trace.jobs:
                if len(known := times.get((job.release_s, job.gpus), [])) == 1:
                    same += 1
                    agreeing += abs(duration_s(job) - known[0]) <= 3.1
        assert read_rows == 15_264
        assert (same, agreeing) == (1803, 1636)
