"""Formats of public traces under random rows, and workloads written and read."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from frostline.errors import TraceError
from frostline.problem.job import Fixed, Job
from frostline.traces import RULES, in_order, read_trace
from frostline.traces.workload import known_duration_s

NUMBERS = ["0", "1", "8", " 2 ", "1e3", "-1", "-5", "0.5", "nan", "inf", "", "None", "x", "1_0", "1e400", "3e9"]
STAMPS = ["2023-01-01T00:00:00", "2023-01-01 00:00:09", "2023-01-02 00:00:00", "Unknown", "9999-12-31 23:59:59"]
STATES = ["RUNNING", "PENDING", "CANCELLED by 7", "Waiting", "Failed", "1", "2", "-1"]
CLOCKS = ["00:00:09", "1-00:00:00", "00:00:00", "99:99", "gres/gpu=2", "gres/gpu:a=0,gres/gpu:b=3", "node=1"]
CELLS = st.sampled_from(["a", "b", "a.0", "\udcff", *NUMBERS, *STAMPS, *STATES, *CLOCKS])

# What stands between cells, the header of a format if it has one, and a sound row.
FORMATS = {
    "helios": (
        ",",
        "job_id,user,vc,gpu_num,cpu_num,state,submit_time,start_time,end_time,duration,queue",
        "sound,u,v,1,1,FAILED,2023-01-01 00:00:00,2023-01-01 00:00:00,2023-01-01 00:00:09,9,0",
    ),
    "acme": (
        ",",
        "job_id,user,gpu_num,type,state,submit_time,start_time,end_time,gpu_time",
        "sound,u,1,SFT,FAILED,2023-01-01 00:00:00,2023-01-01 00:00:00,2023-01-01 00:00:09,9",
    ),
    "pai": (
        ",",
        "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type",
        "sound,t,1,Failed,0,9,1,1,100,T4",
    ),
    "openb": (
        ",",
        "name,num_gpu,gpu_milli,qos,pod_phase,creation_time,deletion_time,scheduled_time",
        "sound,1,1000,LS,Failed,0,9,0",
    ),
    "chronus": (",", "job_id,user,num_gpu,submit_time,model_name,duration,expect_time_list", "sound,v,1,0,m,9,1"),
    "sacct": (
        "|",
        "JobID|JobName|State|Submit|Start|End|Elapsed|Timelimit|AllocTRES|ReqTRES",
        "sound|n|FAILED|2023-01-01 00:00:00|2023-01-01 00:00:00|2023-01-01T00:00:09|00:00:09||gres/gpu=1|",
    ),
    "swf": (" ", "", "1 0 0 9 1 -1 -1 1 9 -1 1 1 -1 -1 -1 -1 -1 -1"),
    "gavel": ("\t", "", "A3C\tpython\trl\t-n\t1\t900\t1\t1\t-1\t0"),
    "gavel-philly": ("\t", "", "A3C\tpython\t-n\t1\t900\t6.0\t7"),
}


@given(st.sampled_from(sorted(FORMATS)), st.data())
def test_every_row_is_accounted_for(name: str, data: st.DataObject) -> None:
    bar, header, sound = FORMATS[name]
    cells = CELLS.filter(lambda cell: bar not in cell and (name != "swf" or cell != ""))
    width = sound.count(bar) + 1
    rows = data.draw(st.lists(st.lists(cells, min_size=width, max_size=width).map(bar.join), max_size=8))
    lines = [header, sound, *rows] if header else [sound, *rows]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace"
        path.write_bytes("".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"))
        trace = read_trace(path, format=data.draw(st.sampled_from(["auto", name])), mode="repair")
        report = trace.report
        assert (report.format, report.rows_read) == (name, 1 + len(rows))
        assert report.rows_read == report.rows_kept + sum(report.dropped.values())
        assert report.rows_kept == len(trace.jobs)
        assert set(report.dropped) | set(report.repaired) <= set(RULES)
        if not report.repaired and set(report.dropped) <= {"job_part", "merged_task"}:
            assert read_trace(path).jobs == trace.jobs
        else:
            with pytest.raises(TraceError):
                read_trace(path)


NUMBERS_AS_TEXT = st.just("") | st.integers(0, 10**6).map(str)
WORKLOADS = st.lists(
    st.builds(
        Job,
        id=st.integers(0, 10**9).map(str),
        release_s=st.floats(-4e9, 4e9),
        work=st.builds(Fixed, duration_s=st.floats(0, 9e9, exclude_min=True, exclude_max=True)),
        gpus=st.integers(1, 1_000_000),
        user=NUMBERS_AS_TEXT,
        group=NUMBERS_AS_TEXT,
        name=NUMBERS_AS_TEXT,
        status=st.sampled_from(["", "failed", "completed", "cancelled"]),
        estimate_s=st.none() | st.floats(0, 9e9, exclude_min=True, exclude_max=True),
    ),
    min_size=1,
    max_size=12,
    unique_by=lambda job: job.id,
)


@given(WORKLOADS)
def test_a_workload_in_the_standard_format_reads_the_same(jobs: list[Job]) -> None:
    assume(all(job.release_s != -1 for job in jobs))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.swf"
        path.write_text("; Version: 2.2\n" + "".join(map(swf_line, jobs)), encoding="utf-8")
        assert read_trace(path, rebase=False).jobs == in_order(jobs)


def swf_line(job: Job) -> str:
    code = {"": "-1", "failed": "0", "completed": "1", "cancelled": "5"}[job.status]
    estimate = "-1" if job.estimate_s is None else repr(job.estimate_s)
    run = f"{job.id} {job.release_s!r} -1 {known_duration_s(job)!r} {job.gpus} -1 -1 -1 {estimate} -1 {code}"
    return f"{run} {job.user or -1} {job.group or -1} {job.name or -1} -1 -1 -1 -1\n"


@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0|\r"), max_size=12), min_size=1, max_size=6),
    st.sampled_from(["|", "|#"]),
)
def test_names_of_slurm_jobs_hold_any_text(names: list[str], bar: str) -> None:
    head = ["JobID", "JobName", "State", "Submit", "Elapsed", "AllocTRES"]
    jobs = [
        [str(i), name, "COMPLETED", "2023-01-01T00:00:00", "00:01:00", "gres/gpu=1"] for i, name in enumerate(names)
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "jobs.txt"
        path.write_bytes("".join(bar.join(row) + "\n" for row in [head, *jobs]).encode())
        assert [job.name for job in read_trace(path).jobs] == names
