"""What is asked of a cluster: summaries of clusters, traces and instances."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from frostline.problem.cluster import Cluster
from frostline.problem.instance import Instance
from frostline.problem.job import Fixed, Job
from frostline.problem.refusal import Refusal
from frostline.report.numbers import counts_text, duration_text, number_text
from frostline.report.table import Table
from frostline.timing.duration import fastest_us
from frostline.traces.summary import summarise
from frostline.traces.trace import ReadReport, Trace
from frostline.units import seconds

__all__ = [
    "cluster_summary",
    "histogram_table",
    "instance_summary",
    "refusal_summary",
    "refusal_text",
    "trace_lines",
    "trace_summary",
]

_REFUSED_SHOWN = 3


def cluster_summary(cluster: Cluster) -> dict[str, Any]:
    """Size of a cluster as plain JSON values.

    Examples
    --------
    >>> cluster_summary(Cluster.uniform(4, gpus=8))
    {'text': '4x8', 'servers': 4, 'gpus': 32, 'servers_by_gpus': {'8': 4}, 'gpu_types': ['A100-SXM-80']}
    """
    sizes = Counter(cluster.capacities)
    return {
        "text": " + ".join(f"{count}x{gpus}" for gpus, count in sorted(sizes.items(), reverse=True)) or "0x0",
        "servers": len(cluster.servers),
        "gpus": cluster.gpus,
        "servers_by_gpus": {str(gpus): sizes[gpus] for gpus in sorted(sizes)},
        "gpu_types": sorted({server.gpu_type.name for server in cluster.servers}),
    }


def trace_summary(
    jobs: Sequence[Job], cluster: Cluster | None = None, report: ReadReport | None = None
) -> dict[str, Any]:
    """Summary of jobs, and of how their file was read, as plain JSON values.

    Work whose duration depends on where it runs counts with the shortest that the cluster allows.

    Parameters
    ----------
    jobs : sequence of Job
        The jobs.
    cluster : Cluster, optional
        The cluster, for the load; needed where work is not ``Fixed``.
    report : ReadReport, optional
        What became of the rows of the file.

    Examples
    --------
    >>> jobs = [Job(id=str(i), release_s=i, work=Fixed(duration_s=3), gpus=2) for i in range(4)]
    >>> summary = trace_summary(jobs, Cluster.uniform(2))
    >>> summary["rows_read"], summary["rows_kept"], summary["jobs"], summary["load"]
    (4, 4, 4, 0.5)
    """
    known = tuple(_of_known_duration(job, cluster) for job in jobs)
    gpus = cluster.gpus if cluster is not None and cluster.gpus else None
    return summarise(known if report is None else Trace(jobs=known, report=report), gpus).as_dict()


def _of_known_duration(job: Job, cluster: Cluster | None) -> Job:
    if isinstance(job.work, Fixed) or cluster is None:
        return job
    return job.replace(work=Fixed(duration_s=seconds(fastest_us(job, cluster))))


def trace_lines(trace: Mapping[str, Any]) -> list[str]:
    """Lines for people on a :func:`trace_summary`: what was read, what it is like, and what deserves a second look.

    Examples
    --------
    >>> jobs = [Job(id=str(i), release_s=i, work=Fixed(duration_s=3), gpus=2) for i in range(4)]
    >>> print(*trace_lines(trace_summary(jobs, Cluster.uniform(2))), sep="\\n")
    rows read 4 = kept 4 + dropped 0; repaired 0
    jobs 4, submitted over 3 s, 0.006667 GPU-hours, load 0.5 of 16 GPUs, at most 6 busy at once if none waits
    """
    counts = f"kept {trace['rows_kept']:,} + dropped {counts_text(trace['dropped'])}"
    read = f"rows read {trace['rows_read']:,} = {counts}; repaired {counts_text(trace['repaired'])}"
    if "format" in trace:
        read += f"; format {trace['format']}, {trace['mode']}"
    load = "" if trace["load"] is None else f", load {trace['load']:.4g} of {trace['gpus']:,} GPUs"
    size = f"submitted over {duration_text(trace['span_s'])}, {number_text(trace['gpu_hours'])} GPU-hours"
    peak = f"at most {trace['peak_busy_gpus']:,} busy at once if none waits"
    lines = [read, f"jobs {trace['jobs']:,}, {size}{load}, {peak}"]
    if trace.get("estimates"):
        over = number_text(trace["median_overestimate"])
        lines.append(f"estimates of users {trace['estimates']:,}, median {over} times the run time")
    return lines + [f"note: {warning}" for warning in trace.get("warnings", ())]


def histogram_table(trace: Mapping[str, Any]) -> Table:
    """Table of the jobs of a :func:`trace_summary` by the GPUs they hold.

    Examples
    --------
    >>> print(histogram_table({"jobs": 4, "gpu_histogram": {"1": 3, "8": 1}}).text())
    GPUs  jobs   share
    1        3  75.0 %
    8        1  25.0 %
    """
    total = trace["jobs"]
    rows = [(gpus, f"{n:,}", f"{100 * n / total:.1f} %") for gpus, n in trace["gpu_histogram"].items()]
    return Table(["GPUs", "jobs", "share"], rows)


def instance_summary(instance: Instance) -> dict[str, Any]:
    """Name, provenance, cluster and jobs of an instance as plain JSON values.

    Examples
    --------
    >>> job = Job(id="a", release_s=0, work=Fixed(duration_s=3600), gpus=2)
    >>> summary = instance_summary(Instance(cluster=Cluster.uniform(2), jobs=[job], name="one"))
    >>> summary["name"], summary["cluster"]["text"], summary["jobs"], summary["gpu_hours"]
    ('one', '2x8', 1, 2.0)
    """
    summary = {
        "name": instance.name,
        "provenance": dict(instance.provenance),
        "cluster": cluster_summary(instance.cluster),
    }
    return summary | trace_summary(instance.jobs, instance.cluster)


def refusal_summary(refusals: Iterable[Refusal]) -> list[dict[str, Any]]:
    """Refused jobs, what they need and the most on offer, as plain JSON values."""
    return [
        {
            "job": refusal.job,
            "need_gpus": refusal.need_gpus,
            "largest_offer_gpus": refusal.largest_offer_gpus,
            "reason": refusal.reason.value,
        }
        for refusal in refusals
    ]


def refusal_text(refusals: Sequence[Refusal]) -> str:
    """Line for people on the jobs that can never run, the first few with their reasons.

    Examples
    --------
    >>> from frostline.problem.refusal import never_fits
    >>> job = Job(id="x", release_s=0, work=Fixed(duration_s=1), gpus=17)
    >>> refusal_text([never_fits(job, Cluster.uniform(2))])
    "refused 1, never to fit: job 'x': gpus=17 but the whole cluster has 16"
    """
    shown = "; ".join(refusal.text for refusal in refusals[:_REFUSED_SHOWN])
    more = f"; and {len(refusals) - _REFUSED_SHOWN:,} more" if len(refusals) > _REFUSED_SHOWN else ""
    return f"refused {len(refusals):,}, never to fit: {shown}{more}"
