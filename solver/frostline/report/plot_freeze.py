"""Plot of a freeze menu: what each level takes and costs, and the levels of the plan over the training."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from frostline.errors import InvalidValueError
from frostline.report.freeze import FreezeAdvice
from frostline.report.numbers import number_text
from frostline.report.picture import check_plot, new_figure, write_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_freeze_levels", "plot_freeze_plan", "save_freeze_plot"]

_WIDTH_IN, _HEIGHTS_IN = 7.0, (3.4, 2.2)
_TIME, _BEST, _DEBT, _GREY = "tab:blue", "tab:green", "tab:red", "0.85"


def plot_freeze_levels(advice: FreezeAdvice, *, title: str | None = None, ax: Axes | None = None) -> Axes:
    """Plot the iteration time of each level as a bar under its speed-up, and its debt rate as a line on the right.

    Parameters
    ----------
    advice : FreezeAdvice
        The menu. Its best level has another colour; bars of levels that do not fit the memory are hatched.
    title : str, optional
        Title.
    ax : Axes, optional
        Where to plot; a new figure by default.

    Raises
    ------
    MissingExtraError
        matplotlib is not installed.
    """
    axes = new_figure(_WIDTH_IN, _HEIGHTS_IN[0]).add_subplot() if ax is None else ax
    for row, speed_up in zip(advice.rows, advice.speed_ups, strict=True):
        colour = _BEST if row.level == advice.best else _TIME
        hatch = None if row.fits else "///"
        bars = axes.bar(row.level, 1000 * row.iteration_s, color=colour, edgecolor="white", hatch=hatch)
        if speed_up is not None:
            axes.bar_label(bars, [f"×{number_text(speed_up)}"], fontsize="small")
    axes.set(xlabel="freeze level (units frozen)", ylabel="iteration time, ms")
    axes.set_xticks([row.level for row in advice.rows], [f"{row.level} ({row.frozen_units})" for row in advice.rows])
    axes.margins(y=0.12)
    _plot_rates(axes, advice)
    _legend(axes, advice)
    if title:
        axes.set_title(title, fontsize="medium")
    return axes


def plot_freeze_plan(advice: FreezeAdvice, *, ax: Axes | None = None) -> Axes:
    """Plot the level of the plan over the progress of the training; where nothing may be frozen the ground is grey.

    Parameters
    ----------
    advice : FreezeAdvice
        The menu and its plan.
    ax : Axes, optional
        Where to plot; a new figure by default.

    Raises
    ------
    MissingExtraError
        matplotlib is not installed.
    InvalidValueError
        There is no plan.
    """
    if advice.plan is None:
        raise InvalidValueError("freeze plot", "plan", None, "must be a plan: without freezing the memory is too small")
    axes = new_figure(_WIDTH_IN, _HEIGHTS_IN[1]).add_subplot() if ax is None else ax
    axes.axvspan(0, advice.law.warm_up, color=_GREY, label="warm-up: nothing may be frozen")
    axes.stairs(advice.plan.levels, advice.plan.boundaries, baseline=None, color=_BEST, linewidth=2, label="plan")
    axes.axvline(advice.progress, color="0.25", linestyle=":", label="now")
    top = len(advice.rows) - 1
    axes.set(xlim=(0, 1), ylim=(-0.3, top + 0.3), xlabel="progress of the training", ylabel="freeze level")
    axes.set_yticks(range(top + 1))
    debt, budget = number_text(advice.plan.debt_points), number_text(advice.budget_points)
    speed_up = number_text(advice.rest_speed_up)
    axes.set_title(f"debt {debt} of {budget} points, the rest {speed_up} times as fast", fontsize="medium")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.3), ncols=3, frameon=False, fontsize="small")
    return axes


def save_freeze_plot(path: Path, advice: FreezeAdvice, *, title: str | None = None) -> None:
    """Write both plots to a file, in the format that its ending names; the whole file or none.

    Without a plan there is the menu alone.

    Raises
    ------
    MissingExtraError
        matplotlib is not installed.
    FileError
        The ending is not .png, .pdf or .svg, or the file cannot be written.
    """
    check_plot(path)
    heights = _HEIGHTS_IN if advice.plan is not None else _HEIGHTS_IN[:1]
    figure = new_figure(_WIDTH_IN, sum(heights))
    figure.set_layout_engine("constrained")
    panels = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
    plot_freeze_levels(advice, title=title, ax=panels[0])
    if advice.plan is not None:
        plot_freeze_plan(advice, ax=panels[1])
    write_figure(path, figure)


def _plot_rates(axes: Axes, advice: FreezeAdvice) -> None:
    """Debt rates on an axis of their own; nothing where freezing is not allowed yet."""
    if not advice.may_freeze:
        return
    right = axes.twinx()
    rates = [rate or 0.0 for rate in advice.rates_points]
    right.plot([row.level for row in advice.rows], rates, ".-", color=_DEBT)
    right.set_ylabel("debt, points per unit of progress", color=_DEBT)
    right.set_ylim(bottom=0)


def _legend(axes: Axes, advice: FreezeAdvice) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [Patch(facecolor=_TIME, label="iteration time")]
    if advice.best is not None:
        handles.append(Patch(facecolor=_BEST, label="of the best level"))
    if not all(row.fits for row in advice.rows):
        handles.append(Patch(facecolor=_TIME, edgecolor="white", hatch="///", label="too large for the memory"))
    if advice.may_freeze:
        handles.append(Line2D([], [], color=_DEBT, marker=".", label="debt rate"))
    axes.legend(
        handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=4, frameon=False, fontsize="small"
    )
