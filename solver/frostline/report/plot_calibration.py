"""Plot of predictions against what came, and of how often sizes stayed below the predicted quantiles."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from frostline.errors import InvalidValueError
from frostline.prediction.model import HIGH, LOW
from frostline.prediction.replay import ReplayResult
from frostline.report.numbers import number_text, percent_text
from frostline.report.picture import check_plot, new_figure, write_figure
from frostline.report.prediction import calibration_by_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_calibration", "plot_quantiles", "save_calibration"]

_POINTS = 1000
"""Jobs above which their density is drawn in place of points."""
_COLUMNS = 4
_WIDTH_IN, _HEIGHTS_IN = 4.6, (4.0, 2.6)
_LINE = "tab:red"


def plot_calibration(
    result: ReplayResult, *, unit: str = "s", title: str | None = None, ax: Axes | None = None
) -> Axes:
    """Plot predicted against actual sizes, both logarithmic, with the diagonal and twice and half of it.

    Parameters
    ----------
    result : ReplayResult
        Replay of a model, of at least one job.
    unit : str
        Unit of the sizes.
    title : str, optional
        Title; by default the name of the model.
    ax : Axes, optional
        Where to plot; a new figure by default.

    Raises
    ------
    MissingExtraError
        matplotlib is not installed.
    InvalidValueError
        There are no jobs.
    """
    _require_jobs(result)
    axes = new_figure(_WIDTH_IN, _HEIGHTS_IN[0]).add_subplot() if ax is None else ax
    actual, predicted = result.actual, result.predicted
    least, most = min(actual.min(), predicted.min()) / 2, max(actual.max(), predicted.max()) * 2
    if len(result.jobs) > _POINTS:
        low, high = float(np.log10(least)), float(np.log10(most))
        drawn = axes.hexbin(
            actual,
            predicted,
            gridsize=60,
            bins="log",
            xscale="log",
            yscale="log",
            extent=(low, high, low, high),
            mincnt=1,
            linewidths=0.1,
        )
        axes.figure.colorbar(drawn, ax=axes, label="jobs")
    else:
        axes.loglog(actual, predicted, ".", markersize=4, alpha=0.6)
    ends = np.array([least, most])
    for factor, style in ((1.0, "-"), (2.0, ":"), (0.5, ":")):
        axes.plot(ends, factor * ends, style, color=_LINE, linewidth=1)
    axes.set(xlim=ends, ylim=ends, xlabel=f"actual, {unit}", ylabel=f"predicted, {unit}")
    axes.set_aspect("equal")
    scores = result.scores
    error, near = number_text(scores.median_abs_log_ratio), percent_text(scores.share_within_2x)
    axes.set_title(f"{title or result.model}\nmedian |ln ratio| {error}, {near} within 2×", fontsize="medium")
    return axes


def plot_quantiles(result: ReplayResult, *, ax: Axes | None = None) -> Axes:
    """Plot :func:`~frostline.report.prediction.calibration_by_size`, with what is aimed at as dashed lines.

    Raises
    ------
    MissingExtraError
        matplotlib is not installed.
    InvalidValueError
        There are no jobs.
    """
    _require_jobs(result)
    axes = new_figure(_WIDTH_IN, _HEIGHTS_IN[1]).add_subplot() if ax is None else ax
    middle, shares = calibration_by_size(result)
    for nominal, share, name in zip((LOW, 0.5, HIGH), shares, ("low", "median", "high"), strict=True):
        (line,) = axes.plot(middle, share, ".-", label=name)
        axes.axhline(nominal, color=line.get_color(), linestyle="--", linewidth=0.8)
    axes.set(xlim=(0, 1), ylim=(-0.03, 1.03), xlabel="predictions, from small to large", ylabel="sizes not above")
    axes.set_title(f"{percent_text(result.scores.coverage)} from low to high (aim 80 %)", fontsize="medium")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.25), ncols=3, frameon=False, fontsize="small")
    return axes


def save_calibration(path: Path, results: Mapping[str, ReplayResult], *, unit: str = "s") -> None:
    """Write both plots of several models to a file, in the format that its ending names; the whole file or none.

    Parameters
    ----------
    path : Path
        Name that ends in .png, .pdf or .svg.
    results : mapping of str to ReplayResult
        Replays by the title of their plot, at least one, each of at least one job.
    unit : str
        Unit of the sizes.

    Raises
    ------
    MissingExtraError
        matplotlib is not installed.
    FileError
        The ending is another one, or the file cannot be written.
    InvalidValueError
        There is nothing to plot.
    """
    check_plot(path)
    if not results:
        raise InvalidValueError("calibration plot", "models", 0, "must be at least 1")
    columns = min(len(results), _COLUMNS)
    lines = -(-len(results) // columns)
    figure = new_figure(_WIDTH_IN * columns, sum(_HEIGHTS_IN) * lines)
    figure.set_layout_engine("constrained")
    grid = figure.subplots(2 * lines, columns, squeeze=False, height_ratios=_HEIGHTS_IN * lines)
    for place, (title, result) in enumerate(results.items()):
        line, column = divmod(place, columns)
        plot_calibration(result, unit=unit, title=title, ax=grid[2 * line][column])
        plot_quantiles(result, ax=grid[2 * line + 1][column])
    for axes in chain.from_iterable(grid):
        if not axes.has_data():
            axes.remove()
    write_figure(path, figure)


def _require_jobs(result: ReplayResult) -> None:
    if not result.jobs:
        raise InvalidValueError("calibration plot", "jobs", 0, "must be at least 1")
