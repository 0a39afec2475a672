"""Plot of mean, median and p99 flow times by policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from frostline.report.picture_style import COLOURS, GREY, figure_of, grid, legend, legend_in, room_in, shown_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

__all__ = ["compare_height_in", "flow_figures", "plot_compare"]

Row = Mapping[str, Any]

_FIGURES = (("mean_flow_s", "mean", "o"), ("median_flow_s", "median", "s"), ("p99_flow_s", "p99", "D"))


def compare_height_in(rows: Sequence[Row]) -> float:
    """Height of the picture in inches."""
    return 1.2 + 0.28 * max(len(rows), 1)


def flow_figures(rows: Sequence[Row]) -> tuple[list[dict[str, float | None]], bool]:
    """Mean, median and p99 of each row, over the lower bound of the mean if all rows have one, else in seconds.

    Parameters
    ----------
    rows : sequence of mapping
        Outcomes as :func:`~frostline.report.simulation.result_summary` gives them.

    Returns
    -------
    (list of dict, bool)
        Figures by name for each row, and whether they are over the bound.

    Examples
    --------
    >>> row = {"mean_flow_s": 6.0, "median_flow_s": 3.0, "p99_flow_s": 9.0, "bound_mean_flow_s": 3.0}
    >>> flow_figures([row])
    ([{'mean': 2.0, 'median': 1.0, 'p99': 3.0}], True)
    """
    bounded = bool(rows) and all(row["bound_mean_flow_s"] for row in rows)
    scales = [row["bound_mean_flow_s"] if bounded else 1.0 for row in rows]
    figures = [
        {name: None if row[field] is None else row[field] / scale for field, name, _ in _FIGURES}
        for row, scale in zip(rows, scales, strict=True)
    ]
    return figures, bounded


def plot_compare(rows: Sequence[Row], *, figure: Figure | SubFigure | None = None) -> Figure | SubFigure:
    """Plot mean, median and p99 flow time of each policy as dots, over the lower bound of the mean where there is one.

    Parameters
    ----------
    rows : sequence of mapping
        Outcomes as :func:`~frostline.report.simulation.result_summary` gives them; the first is on top.
    figure : Figure or SubFigure, optional
        Where to plot; a new figure by default.

    Raises
    ------
    MissingExtraError
        matplotlib is not installed.
    """
    chosen = figure_of(compare_height_in(rows), figure)
    names = [shown_text(row["policy"]) for row in rows]
    axes = chosen.add_subplot(grid(chosen, left_in=room_in(names), top_in=legend_in(4, 4))[0])
    figures, bounded = flow_figures(rows)
    handles: list[Any] = []
    for place, (_, name, marker) in enumerate(_FIGURES):
        points = [(one[name], line) for line, one in enumerate(figures) if one[name] is not None]
        at, lines = zip(*points, strict=True) if points else ((), ())
        look: dict[str, Any] = {
            "markersize": 6,
            "color": COLOURS[place],
            "markeredgecolor": "white",
            "markeredgewidth": 0.6,
        }
        handles += axes.plot(at, lines, marker, linestyle="none", label=name, zorder=3, **look)
    if bounded:
        style: dict[str, Any] = {"color": GREY, "linewidth": 1.2, "linestyle": (0, (2, 2))}
        handles.append(axes.axvline(1.0, label="lower bound of the mean", **style))
    if any(value is not None for one in figures for value in one.values()):
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:,.6g}")
    axes.set_yticks(range(len(rows)), names)
    axes.set(ylim=(max(len(rows), 1) - 0.5, -0.5), ylabel="policy")
    axes.set_xlabel("flow time / lower bound of the mean flow time" if bounded else "flow time, s")
    axes.grid(alpha=0.25, linewidth=0.6)
    legend(axes, handles, 4)
    return chosen
