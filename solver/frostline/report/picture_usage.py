"""Plot of GPUs in use and of jobs waiting, over time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from frostline.report.columns import Timeline
from frostline.report.curves import Steps, capacity_steps, gpu_steps, waiting_steps
from frostline.report.picture_style import GREY, figure_of, grid, legend, legend_in, line_style, shown_text, time_unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["USAGE_HEIGHT_IN", "plot_usage"]

USAGE_HEIGHT_IN = 4.6
_BINS = 300
"""Bins of time whose means are drawn where there are many more steps."""


def plot_usage(schedules: Mapping[str, Timeline], *, figure: Figure | SubFigure | None = None) -> Figure | SubFigure:
    """Plot the GPUs in use, under the capacity, and below them the jobs that wait, one line a schedule.

    Where there are many steps, means over 300 equal bins of time are drawn.

    Parameters
    ----------
    schedules : mapping of str to Timeline
        Schedules of one instance by the names in the legend. GPUs of servers that are down are taken off the capacity.
    figure : Figure or SubFigure, optional
        Where to plot; a new figure by default.

    Raises
    ------
    MissingExtraError
        matplotlib is not installed.
    """
    chosen = figure_of(USAGE_HEIGHT_IN, figure)
    from matplotlib.ticker import MaxNLocator  # after the figure, which says so where matplotlib is missing

    place = grid(chosen, (3, 2), top_in=legend_in(1 + len(schedules), 3))
    above = chosen.add_subplot(place[0])
    below = chosen.add_subplot(place[1], sharex=above)
    above.tick_params(labelbottom=False)
    spans = [columns.span_s for columns in schedules.values()] or [(0.0, 1.0)]
    start_s, end_s = min(start for start, _ in spans), max(end for _, end in spans)
    unit, length_s = time_unit(end_s - start_s)
    handles = _draw_capacity(above, schedules, start_s, end_s, length_s)
    for number, (label, columns) in enumerate(schedules.items()):
        style = line_style(number)
        handles.append(_draw(above, gpu_steps(columns), start_s, end_s, length_s, style, shown_text(label)))
        _draw(below, waiting_steps(columns), start_s, end_s, length_s, style, shown_text(label))
    above.set(ylabel="GPUs in use", xlim=(start_s / length_s, end_s / length_s))
    above.set_ylim(bottom=0)
    below.set(ylabel="jobs waiting", xlabel=f"time, {unit}")
    below.set_ylim(bottom=0, top=None if any(columns.ids for columns in schedules.values()) else 1)
    for axes in (above, below):
        axes.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
        axes.grid(alpha=0.25, linewidth=0.6)
    legend(above, handles, 3)
    return chosen


def _draw(
    axes: Axes, steps: Steps, start_s: float, end_s: float, length_s: float, style: dict[str, Any], label: str
) -> Any:
    """Steps in a span of time, or their means where there are many."""
    part = steps.between(start_s, end_s)
    edges_s = np.append(part.at_s, end_s)
    values = part.values.astype(np.float64)
    if edges_s.size > 2 * _BINS:
        edges_s = np.linspace(start_s, end_s, _BINS + 1)
        values = steps.means(edges_s)
    at, level = np.repeat(edges_s / length_s, 2)[1:-1], np.repeat(values, 2)
    (line,) = axes.plot(at, level, **style, label=label)
    return line


def _draw_capacity(
    axes: Axes, schedules: Mapping[str, Timeline], start_s: float, end_s: float, length_s: float
) -> list[Any]:
    """Capacity under each list of outages that a schedule has."""
    style = {"color": GREY, "linewidth": 1.0, "linestyle": (0, (2, 2))}
    different = {columns.outages: columns.cluster for columns in schedules.values()}
    lines = [
        _draw(axes, capacity_steps(cluster, outages, start_s), start_s, end_s, length_s, style, "GPUs that are up")
        for outages, cluster in different.items()
    ]
    return lines[:1]
