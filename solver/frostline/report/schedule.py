"""What a schedule holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from frostline.problem.schedule import Schedule
from frostline.report.numbers import duration_text, number_text
from frostline.units import US_PER_S, seconds

__all__ = ["schedule_lines", "schedule_summary"]


def schedule_summary(schedule: Schedule) -> dict[str, Any]:
    """Size of a schedule as plain JSON values.

    Examples
    --------
    >>> from frostline.problem import Placement, Segment
    >>> schedule = Schedule(segments=[Segment("a", 0, 1_800_000_000, Placement([(0, (4,))]))], policy="fifo")
    >>> summary = schedule_summary(schedule)
    >>> summary["jobs"], summary["gpu_hours"], summary["end_s"], summary["peak_gpus"]
    (1, 2.0, 1800.0, 4)
    """
    segments = schedule.segments
    return {
        "policy": schedule.policy,
        "segments": len(segments),
        "jobs": len({segment.job for segment in segments}),
        "refused": len(schedule.refused),
        "evictions": schedule.evictions,
        "start_s": seconds(segments[0].start_us) if segments else None,
        "end_s": seconds(max(segment.end_us for segment in segments)) if segments else None,
        "gpu_hours": schedule.gpu_us / US_PER_S / 3600,
        "peak_gpus": _peak(schedule),
        "servers": len({server for segment in segments for server in segment.placement.servers}),
    }


def _peak(schedule: Schedule) -> int:
    """Most GPUs held at once; at one instant, ends come before starts."""
    ends = [(segment.end_us, -segment.placement.gpus) for segment in schedule.segments]
    starts = [(segment.start_us, segment.placement.gpus) for segment in schedule.segments]
    held = most = 0
    for _, change in sorted(ends + starts):
        held += change
        most = max(most, held)
    return most


def schedule_lines(summary: Mapping[str, Any]) -> list[str]:
    """Lines for people on a :func:`schedule_summary`.

    Examples
    --------
    >>> print(*schedule_lines(schedule_summary(Schedule(segments=()))), sep="\\n")
    schedule of an unnamed policy: 0 jobs in 0 segments, 0 refused, 0 evictions
    """
    jobs = f"{summary['jobs']:,} jobs in {summary['segments']:,} segments"
    policy = summary["policy"] or "an unnamed policy"
    lines = [f"schedule of {policy}: {jobs}, {summary['refused']:,} refused, {summary['evictions']:,} evictions"]
    if summary["jobs"]:
        span = duration_text(summary["end_s"] - summary["start_s"])
        when = f"from {number_text(summary['start_s'])} s to {number_text(summary['end_s'])} s, {span}"
        use = f"{number_text(summary['gpu_hours'])} GPU-hours, at most {summary['peak_gpus']:,} GPUs at once"
        lines.append(f"{when}; {use}, {summary['servers']:,} servers used")
    return lines
