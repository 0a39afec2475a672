"""A table as data, drawn by rich on a terminal and as aligned plain text elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from rich.table import Table as RichTable
from rich.text import Text

__all__ = ["Table"]

_GAP = "  "


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text under a header; the first column is aligned left, all others right.

    Parameters
    ----------
    header : sequence of str
        Names of the columns.
    rows : iterable of sequence of str
        The rows, each as long as the header.
    left : collection of int
        Indices of the columns that are aligned left.

    Examples
    --------
    >>> table = Table(["policy", "mean flow s"], [["fifo", "322"], ["easy", "214"]])
    >>> print(table.text())
    policy  mean flow s
    fifo            322
    easy            214
    >>> print(table.transposed().text())
    policy       fifo  easy
    mean flow s   322   214
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: frozenset[int]

    def __init__(self, header: Sequence[str], rows: Iterable[Sequence[str]], left: Iterable[int] = (0,)) -> None:
        object.__setattr__(self, "header", tuple(header))
        object.__setattr__(self, "rows", tuple(tuple(row) for row in rows))
        object.__setattr__(self, "left", frozenset(left))

    @property
    def width(self) -> int:
        """Characters of the widest line as plain text."""
        return sum(self._widths()) + len(_GAP) * (len(self.header) - 1)

    def text(self) -> str:
        """Lines of aligned text, without trailing blanks."""
        widths = self._widths()
        return "\n".join(self._line(row, widths) for row in (self.header, *self.rows))

    def transposed(self) -> Table:
        """Same table with rows and columns exchanged; the first column becomes the header."""
        first, *rest = zip(self.header, *self.rows, strict=True)
        return Table(first, rest)

    def rich(self, width: int) -> RichTable:
        """Table for a terminal of so many columns.

        Where it does not fit, texts are wrapped; a table of numbers is transposed if that makes it narrower.
        """
        if self.width > width and self.rows and self.left == {0}:
            return min(self, self.transposed(), key=lambda table: table.width)._drawn()
        return self._drawn()

    def _drawn(self) -> RichTable:
        drawn = RichTable(box=None, pad_edge=False, header_style="bold")
        for column, name in enumerate(self.header):
            text = column in self.left
            wraps = text and len(self.left) > 1
            drawn.add_column(Text(name), justify="left" if text else "right", no_wrap=not wraps, overflow="fold")
        for row in self.rows:
            drawn.add_row(*map(Text, row))
        return drawn

    def _widths(self) -> list[int]:
        columns = zip_longest(self.header, *self.rows, fillvalue="")
        return [max(map(len, column)) for column in columns]

    def _line(self, row: Sequence[str], widths: Sequence[int]) -> str:
        cells = (
            cell.ljust(width) if column in self.left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        return _GAP.join(cells).rstrip()
