"""One HTML file on a simulation: what was simulated, how the policies did, what is proved, pictures, sources."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from frostline.errors import FileError
from frostline.problem.cluster import Cluster
from frostline.problem.documents import write_bytes
from frostline.problem.instance import Instance
from frostline.problem.refusal import never_fits
from frostline.report.columns import Timeline
from frostline.report.html import facts, figure, html_table, items, page, section
from frostline.report.numbers import number_text
from frostline.report.pictures import PLOT_KINDS, panel_png, panels
from frostline.report.simulation import (
    accuracy_text,
    guarantee_text,
    jobs_text,
    outage_text,
    prediction_text,
    result_table,
)
from frostline.report.workload import cluster_summary, refusal_text, trace_lines, trace_summary
from frostline.timing.options import Choices

__all__ = ["bound_lines", "html_report", "save_report"]

Row = Mapping[str, Any]

_OF_CHOICES = {
    Choices.ASKED.value: "",
    Choices.LEVELS.value: ", freezing included",
    Choices.ELASTIC.value: ", other numbers of GPUs and freezing included",
}
_CAPTION = (
    "Flow time is completion minus submission; slack is the least distance of a job from what is guaranteed for it."
)


def html_report(
    instance: Instance,
    schedules: Mapping[str, Timeline],
    rows: Sequence[Row],
    *,
    kinds: Sequence[str] = tuple(PLOT_KINDS),
    trace: Mapping[str, Any] | None = None,
    sources: Mapping[str, str] | None = None,
) -> str:
    """Text of one HTML page that needs nothing else: no script, no style, font or picture from outside.

    Parameters
    ----------
    instance : Instance
        What was simulated.
    schedules : mapping of str to Timeline
        Schedules of the instance by name.
    rows : sequence of mapping
        Outcomes as :func:`~frostline.report.simulation.result_summary` gives them, for the table and the bounds.
    kinds : sequence of str
        Kinds of pictures, of :data:`~frostline.report.pictures.PLOT_KINDS`.
    trace : mapping, optional
        Summary of the trace, as :func:`~frostline.report.workload.trace_summary` gives it; by default that of the jobs.
    sources : mapping of str to str, optional
        Digests of what the report was made from, by name.

    Raises
    ------
    MissingExtraError
        matplotlib is not installed.
    UnknownNameError, InvalidValueError
        A kind is unknown or named twice, or there is none.
    """
    drawn = panels(kinds, schedules, rows)
    name = instance.name or "an instance without a name"
    cluster = cluster_summary(instance.cluster)
    lead = f"{len(schedules):,} schedules of {len(instance.jobs):,} jobs on {cluster['gpus']:,} GPUs"
    return page(
        f"frostline: {name} on {cluster['text']}",
        f"{lead} in {cluster['servers']:,} servers.",
        [
            section("What was simulated", _simulated(instance, cluster, trace)),
            section("Policies", html_table(result_table(rows), _CAPTION), items(_notes(rows))),
            section("Pictures", *(figure(panel_png(panel), panel.text) for panel in drawn)),
            section("How it was made", facts(_made(schedules, rows, sources or {}))),
        ],
    )


def save_report(path: Path, text: str) -> None:
    """Write the text of a page to a file that ends in .html: all of it or nothing.

    Raises
    ------
    FileError
        The name has another ending, or the file cannot be written.

    Examples
    --------
    >>> save_report(Path("report.txt"), "")
    Traceback (most recent call last):
    frostline.errors.FileError: report.txt: must end in .html
    """
    if path.suffix.lower() != ".html":
        raise FileError(path, "must end in .html")
    write_bytes(path, text.encode("utf-8"))


def bound_lines(rows: Iterable[Row]) -> list[str]:
    """Sentences on the lower bounds of outcomes, each once.

    Examples
    --------
    >>> row = {"policy": "fifo", "bound_method": "pointwise", "bound_choices": "asked", "bound_mean_flow_s": 2.5,
    ...        "submitted": 3, "refused": 1}
    >>> bound_lines([row, row])
    ['lower bound (pointwise): no schedule of these 2 jobs has a mean flow time below 2.5 s']
    """
    return list(dict.fromkeys(map(_bound_line, rows)))


def _bound_line(row: Row) -> str:
    jobs, bound_s = row["submitted"] - row["refused"], row["bound_mean_flow_s"]
    if bound_s is None:
        return f"lower bound ({row['bound_method']}): no job can run"
    choices = _OF_CHOICES.get(row["bound_choices"], "")
    what = f"no schedule of these {jobs:,} jobs{choices}"
    return f"lower bound ({row['bound_method']}): {what} has a mean flow time below {number_text(bound_s)} s"


def _simulated(instance: Instance, cluster: Mapping[str, Any], trace: Mapping[str, Any] | None) -> str:
    """Jobs, cluster and refusals as a table of facts."""
    summary = trace_summary(instance.jobs, instance.cluster) if trace is None else trace
    read, size, *notes = trace_lines(summary)
    refusals = [refusal for job in instance.jobs if (refusal := never_fits(job, instance.cluster)) is not None]
    rows = [
        ("instance", instance.name or "(no name)"),
        *((f"source: {key}", text) for key, text in instance.provenance.items()),
        ("reading", read),
        ("workload", size),
        *(("remark", note) for note in notes),
        ("cluster", _cluster_line(instance.cluster, cluster)),
        *([("refused", refusal_text(refusals))] if refusals else []),
    ]
    return facts(rows)


def _cluster_line(cluster: Cluster, summary: Mapping[str, Any]) -> str:
    types = f" ({', '.join(summary['gpu_types'])})" if summary["gpu_types"] else ""
    return f"{summary['text']}: {summary['servers']:,} servers, {cluster.gpus:,} GPUs{types}"


def _notes(rows: Sequence[Row]) -> list[str]:
    """Bounds, guarantees, outages, accuracy, predictions and the account of the jobs, as sentences."""
    kinds: tuple[Callable[[Row], str | None], ...] = (guarantee_text, outage_text, accuracy_text, prediction_text)
    found = [text for kind in kinds for row in rows if (text := kind(row)) is not None]
    return [*bound_lines(rows), *found, *dict.fromkeys(map(jobs_text, rows))]


def _made(schedules: Mapping[str, Timeline], rows: Sequence[Row], sources: Mapping[str, str]) -> list[tuple[str, str]]:
    """Version, policies in full with the seeds they drew from, and digests."""
    from importlib.metadata import version

    made = [("frostline", version("frostline"))]
    made += [(f"policy {label}", _policy_line(label, columns, rows)) for label, columns in schedules.items()]
    return made + [(f"SHA-256 of {name}", digest) for name, digest in sources.items()]


def _policy_line(label: str, columns: Timeline, rows: Sequence[Row]) -> str:
    prediction = next((row.get("prediction") for row in rows if row["policy"] == label), None)
    sizes = f", sizes predicted by {prediction['predictor']}" if prediction else ""
    return (columns.policy or "not named") + sizes
