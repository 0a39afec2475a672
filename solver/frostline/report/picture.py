"""Pictures drawn by matplotlib: loaded when one is asked for, and written whole or not at all."""

from __future__ import annotations

import warnings
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frostline.errors import FileError, MissingExtraError
from frostline.problem.documents import write_bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["check_plot", "figure_bytes", "new_figure", "write_figure"]

_DPI = 150
_KINDS, _ENDINGS = ("png", "pdf", "svg"), ".png, .pdf or .svg"
_NO_DATE: dict[str, dict[str, Any]] = {"png": {}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}


def check_plot(path: Path) -> str:
    """Format that the ending of a file names, if it can be written here.

    Raises
    ------
    MissingExtraError
        matplotlib is not installed.
    FileError
        The ending is not .png, .pdf or .svg.

    Examples
    --------
    >>> check_plot(Path("placement.jpg"))
    Traceback (most recent call last):
    frostline.errors.FileError: placement.jpg: must end in .png, .pdf or .svg
    """
    kind = path.suffix.lower().removeprefix(".")
    if kind not in _KINDS:
        raise FileError(path, f"must end in {_ENDINGS}")
    _figure_class()
    return kind


def new_figure(width_in: float, height_in: float) -> Figure:
    """Empty figure of so many inches.

    Raises
    ------
    MissingExtraError
        matplotlib is not installed.
    """
    return _figure_class()(figsize=(width_in, height_in))


def write_figure(path: Path, figure: Figure) -> None:
    """Write a figure to a file, in the format that its ending names: always the same bytes for the same figure.

    Raises
    ------
    FileError
        The ending is not .png, .pdf or .svg, or the file cannot be written.
    """
    write_bytes(path, figure_bytes(figure, check_plot(path)))


def figure_bytes(figure: Figure, kind: str = "png") -> bytes:
    """Content of a file of a figure, as png, pdf or svg: always the same bytes for the same figure.

    Letters that the font lacks are drawn as boxes, without a warning.
    """
    from matplotlib import rc_context

    image = BytesIO()
    with rc_context({"svg.hashsalt": "frostline"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(image, format=kind, bbox_inches="tight", dpi=_DPI, metadata=_NO_DATE[kind])
    return image.getvalue()


def _figure_class() -> type[Figure]:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("a plot", "matplotlib", "plot") from None
    return Figure
