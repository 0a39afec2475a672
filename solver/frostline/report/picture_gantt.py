"""Plot of servers over time: who holds which GPUs, or how much of each server is in use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from frostline.report.columns import Timeline
from frostline.report.curves import busy_shares, down_shares, level_shares
from frostline.report.lanes import Bar, bars
from frostline.report.picture_style import COLOURS, figure_of, grid, legend, legend_in, room_in, shown_text, time_unit
from frostline.units import US_PER_S

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["gantt_height_in", "plot_gantt", "readable"]

Span = tuple[float, float]

_MOST_LANES, _MOST_PIECES = 64, 600
_BINS, _MOST_ROWS, _MOST_OUTAGES = 400, 100, 300
_LANE_IN, _WIDTH_IN, _LETTER_IN = 0.13, 5.8, 0.055
_HATCHES = ("", "////", "....", "xxxx", "++++", "oooo", "\\\\\\\\", "****")
_DOWN: dict[str, Any] = {"facecolor": "0.8", "edgecolor": "black", "hatch": "\\\\\\", "linewidth": 0.5}
_DOWN_CELL = COLOURS[1]
_TINTS = (*COLOURS[:3], *COLOURS[4:], "#F0E442")


def readable(columns: Timeline) -> bool:
    """Whether there are few enough GPUs and pieces for each to be drawn."""
    return columns.cluster.gpus <= _MOST_LANES and columns.segment.size <= _MOST_PIECES


def gantt_height_in(columns: Timeline) -> float:
    """Height of the picture in inches."""
    if readable(columns):
        return 1.3 + _LANE_IN * max(columns.cluster.gpus, 4)
    rows = min(len(columns.cluster.servers), _MOST_ROWS)
    return 1.6 + max(0.035 * rows, 0.5) + (1.0 if columns.level.any() else 0.0)


def plot_gantt(
    columns: Timeline,
    title: str | None = None,
    *,
    span_s: tuple[float, float] | None = None,
    figure: Figure | SubFigure | None = None,
) -> Figure | SubFigure:
    """Plot a schedule over time: a bar for each job on the GPUs it holds, or a heat map of the servers if it is large.

    Bars are drawn for at most 64 GPUs and 600 pieces; their hatching tells the freeze level. The heat map shows the
    share of the GPUs of each server, or group of servers, that is in use, and below it the GPUs by freeze level where
    some is above 0. Servers that are down are hatched in both.

    Parameters
    ----------
    columns : Timeline
        The schedule.
    title : str, optional
        Title; by default its policy.
    span_s : (float, float), optional
        From when to when, in seconds; by default the span of the schedule.
    figure : Figure or SubFigure, optional
        Where to plot; a new figure by default.

    Raises
    ------
    MissingExtraError
        matplotlib is not installed.
    """
    chosen = figure_of(gantt_height_in(columns), figure)
    span = columns.span_s if span_s is None else span_s
    unit, length_s = time_unit(span[1] - span[0])
    last = (_draw_bars if readable(columns) else _draw_heat)(chosen, columns, span, length_s)
    last.set(xlim=(span[0] / length_s, span[1] / length_s), xlabel=f"time, {unit}")
    top = 1 - 0.08 * chosen.dpi / chosen.bbox.height
    chosen.text(0.02, top, shown_text(title or columns.policy or "schedule"), fontsize="medium", va="top")
    return chosen


def _draw_bars(figure: Figure | SubFigure, columns: Timeline, span_s: Span, length_s: float) -> Axes:
    from matplotlib.patches import Patch

    names = [shown_text(server.id) for server in columns.cluster.servers]
    axes = figure.add_subplot(grid(figure, left_in=room_in(names), top_in=_top_in(columns))[0])
    drawn, first = bars(columns), np.concatenate([[0], np.cumsum(columns.cluster.capacities, dtype=np.int64)])
    levels = sorted(set(columns.level.tolist())) if columns.level.any() else []
    _add_outages(axes, columns, span_s, length_s, first)
    for level in levels or [0]:
        chosen = [bar for bar in drawn if int(columns.level[bar.segment]) == level]
        _add_bars(axes, columns, chosen, length_s, _hatch(level, levels))
    _add_names(axes, columns, drawn, span_s, length_s)
    for lane in first[1:-1].tolist():
        axes.axhline(lane, color="0.5", linewidth=0.6)
    axes.set_yticks((first[:-1] + first[1:]) / 2, names, fontsize="small")
    axes.tick_params(axis="y", length=0)
    axes.set(ylim=(max(int(first[-1]), 1), 0), ylabel="server, one row per GPU")
    looks: list[tuple[str, dict[str, Any]]] = [
        (f"freeze level {level}", {"facecolor": "white", "hatch": _hatch(level, levels)}) for level in levels
    ]
    handles = [Patch(edgecolor="black", linewidth=0.5, label=label, **look) for label, look in looks]
    legend(axes, [*handles, *([Patch(**_DOWN, label="server down")] if columns.outages else [])], 4)
    return axes


def _hatch(level: int, levels: list[int]) -> str:
    """Hatching of a level: none for level 0, and the same for one level in all bars of a picture."""
    above = [other for other in levels if other]
    return _HATCHES[1 + above.index(level) % (len(_HATCHES) - 1)] if level else ""


def _add_bars(axes: Axes, columns: Timeline, drawn: list[Bar], length_s: float, hatch: str) -> None:
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import to_rgba

    if not drawn:
        return
    segment, lane, lanes = np.array(drawn, np.int64).T
    left, right = (times[segment] / US_PER_S / length_s for times in (columns.start_us, columns.end_us))
    corners = np.stack([[left, left, right, right], [lane, lane + lanes, lane + lanes, lane]], axis=-1)
    tints = np.array([to_rgba(colour, 0.65) for colour in _TINTS])
    look: dict[str, Any] = {"edgecolors": "black", "linewidths": 0.4, "hatch": hatch or None}
    colours = tints[columns.job[segment] % len(tints)]
    axes.add_collection(PolyCollection(list(corners.transpose(1, 0, 2)), facecolors=colours, **look))


def _add_names(axes: Axes, columns: Timeline, drawn: list[Bar], span_s: Span, length_s: float) -> None:
    """Identifiers of jobs on the bars that are long enough."""
    for segment, lane, lanes in drawn:
        left, right = columns.start_us[segment] / US_PER_S, columns.end_us[segment] / US_PER_S
        name = shown_text(columns.ids[columns.job[segment]])
        if (right - left) / (span_s[1] - span_s[0]) * _WIDTH_IN > _LETTER_IN * (len(name) + 1):
            box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.3}
            place = (left + right) / 2 / length_s, lane + lanes / 2
            axes.text(*place, name, ha="center", va="center", fontsize=6, bbox=box, clip_on=True)


def _add_outages(axes: Axes, columns: Timeline, span_s: Span, length_s: float, first: npt.NDArray[np.int64]) -> None:
    """Hatched rectangles where servers are down, between the first lanes of each server and the next."""
    from matplotlib.patches import Rectangle

    number = {server.id: m for m, server in enumerate(columns.cluster.servers)}
    start_s, end_s = span_s
    for outage in columns.outages:
        left, right = max(outage.start_s, start_s), end_s if outage.end_s is None else min(outage.end_s, end_s)
        if outage.server in number and left < right:
            low, high = first[number[outage.server]], first[number[outage.server] + 1]
            axes.add_patch(Rectangle((left / length_s, low), (right - left) / length_s, high - low, **_DOWN))


def _draw_heat(figure: Figure | SubFigure, columns: Timeline, span_s: Span, length_s: float) -> Axes:
    """Heat map of the servers, and the GPUs by freeze level where there are some; the lowest axes."""
    frozen = bool(columns.level.any())
    servers = columns.cluster.servers
    edges_s = np.linspace(*span_s, _BINS + 1)
    group = -(-len(servers) // _MOST_ROWS)
    low = np.arange(0, len(servers), group)
    every = -(-len(low) // 12)
    names = [shown_text(servers[m].id) for m in low[::every]]
    ratios = (gantt_height_in(columns) - 2.1, 0.8) if frozen else (1.0,)
    place = grid(figure, ratios, left_in=max(room_in(names), 0.85), top_in=_top_in(columns), gap_in=0.4, bar=True)
    axes = figure.add_subplot(place[0, 0])
    weight = np.array(columns.cluster.capacities, np.float64)[:, None]
    shares = np.add.reduceat(busy_shares(columns, edges_s) * weight, low) / np.add.reduceat(weight, low)
    left, right = edges_s[0] / length_s, edges_s[-1] / length_s
    look: dict[str, Any] = {"aspect": "auto", "interpolation": "nearest", "extent": (left, right, len(low), 0)}
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1, **look)
    figure.colorbar(image, cax=figure.add_subplot(place[0, 1]), label="share of GPUs in use")
    _mark_down(axes, columns, edges_s, length_s, group)
    axes.set_yticks(np.arange(0, len(low), every) + 0.5, names)
    axes.set(ylabel="server" if group == 1 else f"servers, {group} a row", ylim=(len(low), 0))
    if not frozen:
        return axes
    below = figure.add_subplot(place[1, 0], sharex=axes)
    axes.tick_params(labelbottom=False)
    _draw_levels(below, columns, edges_s, length_s)
    return below


def _top_in(columns: Timeline) -> float:
    """Inches for the title and, where there is one, the legend."""
    many = readable(columns) and bool(columns.level.any())
    entries = len(set(columns.level.tolist())) if many else 0
    return 0.3 + (legend_in(entries + bool(columns.outages), 4) - 0.1 if entries or columns.outages else 0.0)


def _mark_down(axes: Axes, columns: Timeline, edges_s: npt.NDArray[np.float64], length_s: float, group: int) -> None:
    """Hatched rectangles where servers are down; where servers are grouped or fail often, cells of another colour.

    The more servers of a group are down, the denser the colour.
    """
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Patch

    if not columns.outages:
        return
    if group == 1 and len(columns.outages) <= _MOST_OUTAGES:
        span_s = float(edges_s[0]), float(edges_s[-1])
        _add_outages(axes, columns, span_s, length_s, np.arange(len(columns.cluster.servers) + 1))
        legend(axes, [Patch(**_DOWN, label="server down")])
        return
    low = np.arange(0, len(columns.cluster.servers), group)
    servers = np.diff(np.append(low, len(columns.cluster.servers)))
    down = np.add.reduceat(down_shares(columns, edges_s), low) / servers[:, None]
    cells = np.broadcast_to(to_rgba(_DOWN_CELL), (*down.shape, 4)).copy()
    cells[..., 3] = np.where(down > 0, 0.3 + 0.7 * down, 0)
    extent = (edges_s[0] / length_s, edges_s[-1] / length_s, down.shape[0], 0)
    axes.imshow(cells, aspect="auto", interpolation="nearest", extent=extent)
    label = "server down" if group == 1 else "servers down, the more the denser"
    legend(axes, [Patch(facecolor=_DOWN_CELL, label=label)])


def _draw_levels(axes: Axes, columns: Timeline, edges_s: npt.NDArray[np.float64], length_s: float) -> None:
    """GPUs in use by freeze level, one on top of the other, darker for higher levels."""
    from matplotlib.patches import Patch

    levels, gpus = level_shares(columns, edges_s)
    shades = [f"{shade:.3f}" for shade in np.linspace(0.9, 0.2, len(levels))]
    middle = (edges_s[:-1] + edges_s[1:]) / 2 / length_s
    axes.set_ylim(0, max(float(gpus.sum(axis=0).max(initial=0.0)) * 1.05, 1.0))
    axes.stackplot(middle, gpus, colors=shades, linewidth=0)
    axes.set_ylabel("GPUs by\nfreeze level")
    handles = [Patch(facecolor=shade, label=str(level)) for level, shade in zip(levels, shades, strict=True)]
    legend(axes, handles, 8)
