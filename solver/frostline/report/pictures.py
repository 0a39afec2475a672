"""Pictures of schedules by kind: which there are, the panels of each, and one file that holds them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.report.columns import Timeline
from frostline.report.picture import check_plot, figure_bytes, new_figure, write_figure
from frostline.report.picture_compare import compare_height_in, plot_compare
from frostline.report.picture_flow import FLOW_HEIGHT_IN, plot_flow
from frostline.report.picture_gantt import gantt_height_in, plot_gantt
from frostline.report.picture_style import WIDTH_IN
from frostline.report.picture_usage import USAGE_HEIGHT_IN, plot_usage

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

__all__ = ["PLOT_KINDS", "Panel", "check_kinds", "panel_png", "panels", "save_plots"]

Row = Mapping[str, Any]

PLOT_KINDS: Mapping[str, str] = {
    "compare": "mean, median and p99 flow time over the lower bound, by policy",
    "flow": "distribution of flow times",
    "usage": "GPUs in use and jobs waiting over time",
    "gantt": "servers over time: who holds which GPUs",
}
"""What each kind of picture shows."""

_MOST_HEIGHT_IN = 400.0


class Panel(NamedTuple):
    """One picture: its kind, what it shows in words, its height in inches and how it is drawn into a figure."""

    kind: str
    text: str
    height_in: float
    draw: Callable[[Figure | SubFigure], object]


def check_kinds(kinds: Sequence[str]) -> tuple[str, ...]:
    """The kinds, if all are known and none is named twice.

    Raises
    ------
    UnknownNameError, InvalidValueError
        One is unknown, or named twice, or there is none.

    Examples
    --------
    >>> check_kinds(["flow", "gantt"])
    ('flow', 'gantt')
    """
    if not kinds:
        raise InvalidValueError("plot", "kinds", list(kinds), "must be at least one")
    for i, kind in enumerate(kinds):
        if kind not in PLOT_KINDS:
            raise UnknownNameError("kind of plot", kind, PLOT_KINDS)
        if kind in kinds[:i]:
            raise InvalidValueError("plot", "kind", kind, "is named twice")
    return tuple(kinds)


def panels(kinds: Sequence[str], schedules: Mapping[str, Timeline], rows: Sequence[Row]) -> list[Panel]:
    """Panels of some kinds, in their order; ``gantt`` has one for each schedule.

    Parameters
    ----------
    kinds : sequence of str
        Kinds of :data:`PLOT_KINDS`.
    schedules : mapping of str to Timeline
        Schedules of one instance by name.
    rows : sequence of mapping
        Outcomes as :func:`~frostline.report.simulation.result_summary` gives them, for the bounds and for ``compare``.

    Raises
    ------
    UnknownNameError, InvalidValueError
        A kind is unknown or named twice, or there is none.
    """
    found: list[Panel] = []
    for kind in check_kinds(kinds):
        found += _PANELS[kind](schedules, rows)
    return found


def panel_png(panel: Panel) -> bytes:
    """A panel alone, as the content of a PNG file.

    Raises
    ------
    MissingExtraError
        matplotlib is not installed.
    """
    figure = new_figure(WIDTH_IN, panel.height_in)
    panel.draw(figure)
    return figure_bytes(figure)


def save_plots(
    path: Path,
    schedules: Mapping[str, Timeline],
    rows: Sequence[Row] = (),
    kinds: Sequence[str] = ("flow", "usage"),
) -> None:
    """Write pictures, one below the other, to a file in the format that its ending names; the whole file or none.

    Parameters
    ----------
    path : Path
        Name that ends in .png, .pdf or .svg.
    schedules : mapping of str to Timeline
        Schedules of one instance by name.
    rows : sequence of mapping
        Outcomes as :func:`~frostline.report.simulation.result_summary` gives them, for the bounds and for ``compare``.
    kinds : sequence of str
        Kinds of :data:`PLOT_KINDS`.

    Raises
    ------
    MissingExtraError
        matplotlib is not installed.
    FileError
        The ending is another one, or the file cannot be written.
    UnknownNameError, InvalidValueError
        A kind is unknown or named twice, there is none, or there are too many schedules for one picture.
    """
    check_plot(path)
    drawn = panels(kinds, schedules, rows)
    heights = [panel.height_in for panel in drawn]
    if sum(heights) > _MOST_HEIGHT_IN:
        raise InvalidValueError("plot", "schedules", len(schedules), "are too many for one picture; choose some")
    figure = new_figure(WIDTH_IN, sum(heights) or 1.0)
    if drawn:
        parts = figure.subfigures(len(drawn), 1, height_ratios=heights, squeeze=False)[:, 0]
        for panel, part in zip(drawn, parts, strict=True):
            panel.draw(part)
    write_figure(path, figure)


def _flow(schedules: Mapping[str, Timeline], rows: Sequence[Row]) -> list[Panel]:
    bounds_s = [row["bound_mean_flow_s"] for row in rows if row["bound_mean_flow_s"]]
    text = "Share of the completed jobs whose flow time is at most so long; a dot marks the mean."
    return [Panel("flow", text, FLOW_HEIGHT_IN, _into(partial(plot_flow, schedules, bounds_s)))]


def _usage(schedules: Mapping[str, Timeline], rows: Sequence[Row]) -> list[Panel]:
    text = "GPUs in use and jobs waiting over time."
    return [Panel("usage", text, USAGE_HEIGHT_IN, _into(partial(plot_usage, schedules)))]


def _compare(schedules: Mapping[str, Timeline], rows: Sequence[Row]) -> list[Panel]:
    text = "Mean, median and p99 flow time by policy, over the lower bound of the mean where there is one."
    return [Panel("compare", text, compare_height_in(rows), _into(partial(plot_compare, rows)))]


def _gantt(schedules: Mapping[str, Timeline], rows: Sequence[Row]) -> list[Panel]:
    """One panel a schedule, all over the same stretch of time."""
    spans = [columns.span_s for columns in schedules.values()]
    span_s = (min(start for start, _ in spans), max(end for _, end in spans)) if spans else (0.0, 1.0)
    return [_gantt_panel(label, columns, span_s) for label, columns in schedules.items()]


def _gantt_panel(label: str, columns: Timeline, span_s: tuple[float, float]) -> Panel:
    draw = partial(plot_gantt, columns, label, span_s=span_s)
    return Panel("gantt", f"Servers over time under {label}.", gantt_height_in(columns), _into(draw))


def _into(draw: Callable[..., object]) -> Callable[[Figure | SubFigure], object]:
    return lambda figure: draw(figure=figure)


_PANELS: Mapping[str, Callable[[Mapping[str, Timeline], Sequence[Row]], list[Panel]]] = {
    "compare": _compare,
    "flow": _flow,
    "usage": _usage,
    "gantt": _gantt,
}
