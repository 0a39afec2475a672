"""What the pictures of schedules share: lines that differ in grey too, units of time, and texts that are only texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from frostline.report.picture import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

__all__ = ["COLOURS", "GREY", "WIDTH_IN", "figure_of", "legend", "line_style", "plain_text", "shown_text", "time_unit"]

WIDTH_IN = 7.0
GREY = "0.35"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#000000", "#CC79A7", "#E69F00", "#56B4E9")
"""Colours that people who confuse red and green tell apart (Okabe and Ito, *Color Universal Design*, 2008)."""

_DASHES: tuple[Any, ...] = ("solid", (0, (5, 1.5)), (0, (1, 1)), (0, (6, 1.5, 1, 1.5)))
_LONGEST = 40


def figure_of(height_in: float, figure: FigureBase | None) -> FigureBase:
    """The figure that was given, or a new one of the common width, whose parts make room for each other."""
    if figure is not None:
        return figure
    made = new_figure(WIDTH_IN, height_in)
    made.set_layout_engine("constrained")
    return made


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
