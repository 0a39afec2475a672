"""What the pictures of schedules share: lines that differ in grey too, units of time, and texts that are only texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from frostline.report.picture import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.gridspec import GridSpec

__all__ = [
    "COLOURS",
    "GREY",
    "WIDTH_IN",
    "figure_of",
    "grid",
    "legend",
    "legend_in",
    "line_style",
    "plain_text",
    "room_in",
    "shown_text",
    "time_unit",
]

WIDTH_IN = 7.0
GREY = "0.35"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#000000", "#CC79A7", "#E69F00", "#56B4E9")
"""Colours that people who confuse red and green tell apart (Okabe and Ito, *Color Universal Design*, 2008)."""

_DASHES: tuple[Any, ...] = ("solid", (0, (5, 1.5)), (0, (1, 1)), (0, (6, 1.5, 1, 1.5)))
_LONGEST = 40


def figure_of(height_in: float, figure: Figure | SubFigure | None) -> Figure | SubFigure:
    """The figure that was given, or a new one of the common width."""
    if figure is not None:
        return figure
    return new_figure(WIDTH_IN, height_in)


def grid(
    figure: Figure | SubFigure,
    ratios: Sequence[float] = (1.0,),
    *,
    left_in: float = 0.75,
    top_in: float = 0.4,
    gap_in: float = 0.2,
    bar: bool = False,
) -> GridSpec:
    """Rows of axes in a figure, with room in inches for what stands beside them, and a narrow second column for a bar.

    Plain arithmetic: a solver of constraints would not always give the same last digits.
    """
    width_in, height_in = figure.bbox.width / figure.dpi, figure.bbox.height / figure.dpi
    mean_in = (height_in - 0.5 - top_in - gap_in * (len(ratios) - 1)) / len(ratios)
    return figure.add_gridspec(
        len(ratios),
        2 if bar else 1,
        left=min(left_in / width_in, 0.5),
        right=max(1 - (0.65 if bar else 0.15) / width_in, 0.6),
        bottom=min(0.5 / height_in, 0.4),
        top=max(1 - top_in / height_in, 0.6),
        height_ratios=ratios,
        width_ratios=(30, 1) if bar else (1,),
        wspace=0.06,
        hspace=gap_in / max(mean_in, 0.2),
    )


def room_in(labels: Iterable[str]) -> float:
    """Inches for labels left of an axis and its name."""
    return 0.5 + 0.08 * max(map(len, labels), default=0)


def legend_in(handles: int, columns: int) -> float:
    """Inches for a legend of so many entries."""
    return 0.1 + 0.2 * -(-handles // columns)


def line_style(place: int) -> dict[str, Any]:
    """Colour and dashes of the line of the policy at a place; 28 of them differ.

    Examples
    --------
    >>> line_style(0)["color"], line_style(1)["color"], line_style(0)["linestyle"]
    ('#0072B2', '#D55E00', 'solid')
    """
    return {"color": COLOURS[place % len(COLOURS)], "linestyle": _DASHES[place % len(_DASHES)], "linewidth": 1.5}


def plain_text(text: str) -> str:
    """Text in one line of characters that can be shown and written; what cannot be becomes a question mark.

    Examples
    --------
    >>> plain_text("a\\nb\\x00\\udcff")
    'a b??'
    """
    return "".join(letter if letter.isprintable() else "?" for letter in " ".join(text.split()))


def shown_text(text: str) -> str:
    """Text for a picture: in one line, not too long, and never read as a formula or as no text at all.

    Examples
    --------
    >>> print(shown_text("cost$ of $x"))
    cost\\$ of \\$x
    """
    line = plain_text(text)
    short = line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
    return (" " if short.startswith("_") else "") + short.replace("$", r"\$")


def time_unit(span_s: float) -> tuple[str, float]:
    """Name and length in seconds of the unit for an axis of time so long.

    Examples
    --------
    >>> time_unit(90), time_unit(86400), time_unit(1e6)
    (('s', 1.0), ('h', 3600.0), ('days', 86400.0))
    """
    for name, length_s in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if span_s >= 3 * length_s:
            return name, length_s
    return "s", 1.0


def legend(axes: Axes, handles: Sequence[Any], columns: int = 3) -> None:
    """Legend above the axes."""
    if handles:
        place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.3}
        axes.legend(handles=handles, ncols=columns, frameon=False, fontsize="small", **place)
