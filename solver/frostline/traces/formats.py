"""The formats of traces that can be read, each one entry of a table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from frostline.errors import UnknownNameError
from frostline.traces.cells import clock_duration, clock_estimate
from frostline.traces.gavel import (
    begins_as_gavel,
    begins_as_gavel_philly,
    gavel_duration,
    gavel_philly_duration,
    gavel_philly_table,
    gavel_table,
)
from frostline.traces.gpu_counts import first_gpus, percent_gpus, shared_gpus, slurm_gpus
from frostline.traces.layout import Computed, TraceFormat, plain
from frostline.traces.pai import begins_as_task, task_table
from frostline.traces.philly_json import begins_as_json_list, job_log_table
from frostline.traces.sacct import begins_as_sacct, sacct_table
from frostline.traces.swf import begins_as_swf, swf_table
from frostline.traces.table import first_lines, open_text

__all__ = ["TRACE_FORMATS", "TraceFormat", "format_of_file", "format_of_line", "recognise", "trace_format"]

_FROSTLINE = TraceFormat(
    name="frostline",
    origin="frostline's own CSV",
    columns=MappingProxyType(
        {
            "id": ("id", "job_id", "jobid"),
            "submit": ("submit_s", "submit", "submit_time", "arrival_s", "release_s"),
            "gpus": ("gpus", "n_gpu", "num_gpu", "num_gpus", "gpu_num"),
            "duration": ("duration_s", "duration", "run_time", "runtime_s"),
            "start": ("start_s", "start", "start_time"),
            "wait": ("wait_s", "wait", "wait_time", "queue_s", "queue_time"),
            "end": ("end_s", "end", "end_time"),
            "estimate": (
                "estimate_s",
                "estimate",
                "wallclock_req",
                "wallclock_req_s",
                "walltime",
                "walltime_s",
                "requested_time",
                "requested_time_s",
            ),
            "user": ("user", "user_id"),
            "group": ("group", "vc", "virtual_cluster"),
            "name": ("name", "job_name"),
            "status": ("status", "state"),
        }
    ),
)
_PHILLY = TraceFormat(
    name="philly",
    origin="Microsoft Philly 2017 as derived for Pollux: one row per job, naive local times, no identifiers",
    columns=MappingProxyType(
        {"submit": ("timestamp",), "duration": ("duration",), "gpus": ("num_gpus",), "group": ("cluster",)}
    ),
    signature=frozenset({"timestamp", "num_gpus"}),
    timestamps=True,
    numbered=True,
)
_PHILLY_JSON = TraceFormat(
    name="philly-json",
    origin=(
        "Microsoft Philly 2017, cluster_job_log: naive local times. Restarted jobs run from the start of the first "
        "attempt to the end of the last"
    ),
    columns=MappingProxyType(
        {
            "id": ("jobid",),
            "submit": ("submitted_time",),
            "gpus": ("gpus",),
            "start": ("start_time",),
            "end": ("end_time",),
            "user": ("user",),
            "group": ("vc",),
            "status": ("status",),
            "attempts": ("attempts",),
        }
    ),
    begins=begins_as_json_list,
    table=job_log_table,
    timestamps=True,
    ruled_out=MappingProxyType({"attempts": MappingProxyType({"0": "never_started"})}),
)
_ITP = TraceFormat(
    name="itp",
    origin="Microsoft ITP 2021, the traces of ElasticFlow",
    columns=MappingProxyType(
        {
            "id": ("job_id",),
            "submit": ("submission_time",),
            "duration": ("duration",),
            "gpus": ("num_gpu",),
            "name": ("model_name",),
        }
    ),
    signature=frozenset({"submission_time", "num_gpu"}),
)
_EAGLE = TraceFormat(
    name="eagle",
    origin=(
        "NREL Eagle 2019, a log of Slurm: naive local times, one row per task of an array job. A system of CPUs: "
        "processors stand for GPUs, and accounts are the groups"
    ),
    columns=MappingProxyType(
        {
            "id": ("job_id",),
            "submit": ("submit_time",),
            "gpus": ("processors_req",),
            "duration": ("run_time",),
            "start": ("start_time",),
            "end": ("end_time",),
            "estimate": ("wallclock_req",),
            "user": ("user",),
            "group": ("account",),
            "name": ("name",),
            "status": ("state",),
        }
    ),
    signature=frozenset({"processors_req", "wallclock_req"}),
    timestamps=True,
    same_id="numbered",
)
_HELIOS = TraceFormat(
    name="helios",
    origin="SenseTime Helios 2020, cluster_log.csv: naive local times",
    columns=MappingProxyType(
        {
            "id": ("job_id",),
            "submit": ("submit_time",),
            "gpus": ("gpu_num",),
            "duration": ("duration",),
            "start": ("start_time",),
            "end": ("end_time",),
            "user": ("user",),
            "group": ("vc",),
            "status": ("state",),
        }
    ),
    signature=frozenset({"gpu_num", "cpu_num", "vc", "queue"}),
    timestamps=True,
)
_ACME = TraceFormat(
    name="acme",
    origin=(
        "Shanghai AI Laboratory Acme 2023, trace_seren.csv and trace_kalos.csv: times with offset. Run times are ends "
        "minus starts, for durations of Kalos count from the submission; types of workload are the groups"
    ),
    columns=MappingProxyType(
        {
            "id": ("job_id",),
            "submit": ("submit_time",),
            "gpus": ("gpu_num",),
            "start": ("start_time",),
            "end": ("end_time",),
            "user": ("user",),
            "group": ("type",),
            "status": ("state",),
        }
    ),
    signature=frozenset({"gpu_num", "gpu_time", "type"}),
    timestamps=True,
)
_PAI = TraceFormat(
    name="pai",
    origin=(
        "Alibaba PAI 2020, pai_task_table, with or without its header: tasks of a job run together, on the instances "
        "times the hundredths of a GPU of each. Submissions are starts, for the table tells no others"
    ),
    columns=MappingProxyType(
        {
            "id": ("job_name",),
            "submit": ("start_time",),
            "gpus": ("plan_gpu",),
            "start": ("start_time",),
            "end": ("end_time",),
            "name": ("task_name",),
            "status": ("status",),
            "instances": ("inst_num",),
        }
    ),
    signature=frozenset({"plan_gpu", "inst_num"}),
    begins=begins_as_task,
    table=task_table,
    same_id="merged",
    ruled_out=MappingProxyType({"status": {"Running": "unfinished", "Waiting": "never_started"}}),
    computed=MappingProxyType({"gpus": Computed(("gpus", "instances"), percent_gpus)}),
)
_OPENB = TraceFormat(
    name="openb",
    origin=(
        "Alibaba cluster-trace-gpu-v2023, openb_pod_list: pods, some of which ask for thousandths of one GPU; classes "
        "of service are the groups"
    ),
    columns=MappingProxyType(
        {
            "id": ("name",),
            "submit": ("creation_time",),
            "gpus": ("num_gpu",),
            "start": ("scheduled_time",),
            "end": ("deletion_time",),
            "group": ("qos",),
            "status": ("pod_phase", "pod_phrase"),
            "milli": ("gpu_milli",),
        }
    ),
    signature=frozenset({"num_gpu", "gpu_milli"}),
    ruled_out=MappingProxyType({"status": {"Pending": "never_started"}}),
    computed=MappingProxyType({"gpus": Computed(("gpus", "milli"), shared_gpus)}),
)
_SWF = TraceFormat(
    name="swf",
    origin="Standard Workload Format of the Parallel Workloads Archive: processors stand for GPUs, -1 is not known",
    columns=MappingProxyType(
        {
            "id": ("job",),
            "submit": ("submit",),
            "gpus": ("allocated_processors",),
            "duration": ("run_time",),
            "wait": ("wait",),
            "estimate": ("requested_time",),
            "user": ("user",),
            "group": ("group",),
            "name": ("executable",),
            "status": ("status",),
            "requested": ("requested_processors",),
        }
    ),
    begins=begins_as_swf,
    table=swf_table,
    part=("status", re.compile("[234]")),
    computed=MappingProxyType({"gpus": Computed(("gpus", "requested"), first_gpus)}),
)
_UNFINISHED = (
    "COMPLETING",
    "CONFIGURING",
    "REQUEUED",
    "REQUEUE_FED",
    "REQUEUE_HOLD",
    "RESIZING",
    "RUNNING",
    "SUSPENDED",
)
_SACCT = TraceFormat(
    name="sacct",
    origin="Slurm, sacct --parsable2: naive local times; accounts are the groups, steps are no jobs",
    columns=MappingProxyType(
        {
            "id": ("jobid",),
            "submit": ("submit",),
            "gpus": ("alloctres", "reqtres"),
            "duration": ("elapsed", "elapsedraw"),
            "start": ("start",),
            "end": ("end",),
            "estimate": ("timelimit",),
            "user": ("user",),
            "group": ("account",),
            "name": ("jobname",),
            "status": ("state",),
            "requested": ("reqtres",),
        }
    ),
    begins=begins_as_sacct,
    table=sacct_table,
    timestamps=True,
    preferred=True,
    part=("id", re.compile(r"[^.]*\..*", re.DOTALL)),
    ruled_out=MappingProxyType({"status": dict.fromkeys(_UNFINISHED, "unfinished") | {"PENDING": "never_started"}}),
    computed=MappingProxyType(
        {
            "gpus": Computed(("gpus", "requested"), slurm_gpus),
            "duration": Computed(("duration",), clock_duration),
            "estimate": Computed(("estimate",), clock_estimate),
        }
    ),
)
_STEPS = {
    "submit": ("arrival_time",),
    "gpus": ("gpus",),
    "duration": ("total_steps",),
    "name": ("job_type",),
}
_GAVEL = TraceFormat(
    name="gavel",
    origin="Gavel 2020, traces of ten fields behind tabs: run times are steps over throughputs on V100 GPUs",
    columns=MappingProxyType(_STEPS),
    begins=begins_as_gavel,
    table=gavel_table,
    numbered=True,
    computed=MappingProxyType({"duration": Computed(("duration", "name", "gpus"), gavel_duration)}),
)
_GAVEL_PHILLY = TraceFormat(
    name="gavel-philly",
    origin="Gavel 2020, traces of seven fields behind tabs, made from Philly: run times are those of Philly",
    columns=MappingProxyType(_STEPS),
    begins=begins_as_gavel_philly,
    table=gavel_philly_table,
    numbered=True,
    computed=MappingProxyType({"duration": Computed(("duration", "name"), gavel_philly_duration)}),
)
_MODELS = {
    "id": ("job_id",),
    "submit": ("submit_time",),
    "gpus": ("num_gpu",),
    "duration": ("duration",),
    "name": ("model_name",),
}
_MURI = TraceFormat(
    name="muri",
    origin="Muri 2022, jobs of four virtual clusters of Philly with random models: milliseconds",
    columns=MappingProxyType(_MODELS),
    signature=frozenset({"num_gpu", "iteration_time", "resource_time_0"}),
    time_unit="ms",
)
_CHRONUS = TraceFormat(
    name="chronus",
    origin="Chronus 2021, jobs of Philly with deadlines: minutes, as the size of the numbers tells",
    columns=MappingProxyType(_MODELS | {"group": ("user",)}),
    signature=frozenset({"num_gpu", "expect_time_list"}),
    time_unit="min",
)
_ELASTICFLOW = TraceFormat(
    name="elasticflow",
    origin="ElasticFlow 2023, jobs of one virtual cluster of Philly with random models and deadlines",
    columns=MappingProxyType(_MODELS),
    signature=frozenset({"num_gpu", "ddl", "real_duration"}),
)
_TIRESIAS = TraceFormat(
    name="tiresias",
    origin="Tiresias 2019, jobs with models",
    columns=MappingProxyType(_MODELS),
    signature=frozenset({"num_gpu", "submit_time", "iterations", "model_name"}),
)

_ALL = (
    _FROSTLINE,
    _PHILLY,
    _PHILLY_JSON,
    _ITP,
    _HELIOS,
    _ACME,
    _PAI,
    _OPENB,
    _MURI,
    _CHRONUS,
    _ELASTICFLOW,
    _TIRESIAS,
    _EAGLE,
    _GAVEL,
    _GAVEL_PHILLY,
    _SWF,
    _SACCT,
)

TRACE_FORMATS: Mapping[str, TraceFormat] = MappingProxyType({fmt.name: fmt for fmt in _ALL})
"""The formats by name; a header is taken for the first whose signature fits it, or for frostline's own."""


def trace_format(name: str) -> TraceFormat:
    """Format of a name.

    Examples
    --------
    >>> trace_format("itp").columns["submit"]
    ('submission_time',)
    """
    try:
        return TRACE_FORMATS[name]
    except KeyError:
        raise UnknownNameError("trace format", name, TRACE_FORMATS) from None


def format_of_line(first: str) -> TraceFormat | None:
    """Format that the first line of a file shows; None where the file may be CSV with a header.

    Examples
    --------
    >>> format_of_line("id,submit_s,gpus,duration_s") is None
    True
    """
    fitting = (fmt for fmt in TRACE_FORMATS.values() if fmt.begins is not None and fmt.begins(first))
    return next(fitting, None)


def format_of_file(path: Path | str) -> TraceFormat | None:
    """Format that the first line of a file shows, as :func:`format_of_line` tells.

    Raises
    ------
    FileError
        The file is missing or damaged.
    """
    with open_text(path) as text:
        return format_of_line("".join(first_lines(text)).lstrip())


def recognise(header: Iterable[str]) -> TraceFormat:
    """Format whose signature a header fits.

    Examples
    --------
    >>> recognise(["job_id", "submission_time", "duration", "num_gpu"]).name
    'itp'
    """
    names = set(map(plain, header))
    fitting = (fmt for fmt in TRACE_FORMATS.values() if fmt.signature and fmt.signature <= names)
    return next(fitting, _FROSTLINE)
