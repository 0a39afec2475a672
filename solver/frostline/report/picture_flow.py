"""Plot of the distribution of flow times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from frostline.report.columns import Timeline
from frostline.report.curves import flow_curve, flows_s
from frostline.report.numbers import number_text
from frostline.report.picture_style import GREY, figure_of, grid, legend, legend_in, line_style, shown_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["FLOW_HEIGHT_IN", "plot_flow"]

FLOW_HEIGHT_IN = 3.6


def plot_flow(
    schedules: Mapping[str, Timeline], bounds_s: Iterable[float] = (), *, figure: Figure | SubFigure | None = None
) -> Figure | SubFigure:
    """Plot the share of the jobs whose flow time (completion − release) is at most so long, one line a schedule.

    Parameters
    ----------
    schedules : mapping of str to Timeline
        Schedules by the names in the legend.
    bounds_s : iterable of float
        Lower bounds on the mean flow time in seconds, drawn as vertical lines. A dot marks the mean of each schedule.
    figure : Figure or SubFigure, optional
        Where to plot; a new figure by default.

    Raises
    ------
    MissingExtraError
        matplotlib is not installed.
    """
    chosen = figure_of(FLOW_HEIGHT_IN, figure)
    bounds = list(dict.fromkeys(bounds_s))
    axes = chosen.add_subplot(grid(chosen, top_in=legend_in(len(schedules) + len(bounds), 2))[0])
    handles = [_line(axes, place, label, columns) for place, (label, columns) in enumerate(schedules.items())]
    for bound_s in bounds:
        text = f"lower bound of the mean, {number_text(bound_s)} s"
        handles.append(axes.axvline(bound_s, color=GREY, linewidth=1.2, linestyle=(0, (2, 2)), label=text))
    if any(columns.completed.any() for columns in schedules.values()):
        axes.set_xscale("log")
    else:
        axes.text(0.5, 0.5, "no job was completed", ha="center", va="center", transform=axes.transAxes, color=GREY)
    axes.set(xlabel="flow time, s", ylabel="share of completed jobs", ylim=(0, 1.02))
    axes.grid(alpha=0.25, linewidth=0.6)
    legend(axes, handles, 2)
    return chosen


def _line(axes: Axes, place: int, label: str, columns: Timeline) -> Any:
    """Line of one schedule, and the dot of its mean; what stands for it in the legend."""
    flow_s, style = flows_s(columns), line_style(place)
    if not flow_s.size:
        (line,) = axes.plot([], [], **style, label=f"{shown_text(label)} (no job completed)")
        return line
    at_s, share = flow_curve(flow_s)
    mean_s = float(flow_s.mean())
    text = f"{shown_text(label)} (mean {number_text(mean_s)} s)"
    starts, ends = np.concatenate([at_s[:1], at_s]), np.concatenate([[0.0], share])
    (line,) = axes.plot(starts, ends, drawstyle="steps-post", **style, label=text, marker="o", markevery=[])
    within = float(np.searchsorted(flow_s, mean_s, "right")) / flow_s.size
    axes.plot([mean_s], [within], "o", color=style["color"], markeredgecolor="white", markersize=7, zorder=4)
    return line
