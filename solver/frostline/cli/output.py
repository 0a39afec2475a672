"""What a command writes: one JSON object, tables on a terminal, plain text elsewhere; progress on the error stream."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import RenderableType

    from frostline.report.table import Table

__all__ = ["Output", "json_text"]

_WIDE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Output of one command.

    Parameters
    ----------
    command : str
        Name of the command, for the format of the JSON object.
    as_json : bool
        Whether the standard output is one JSON object and nothing else.
    quiet : bool
        Whether remarks and progress are left out, so that only the result is written.
    """

    command: str
    as_json: bool = False
    quiet: bool = False

    def document(self, members: Mapping[str, Any]) -> None:
        """The JSON object of this command, if that was asked for."""
        if self.as_json:
            typer.echo(json_text(self.command, members))

    def tell(self, *lines: str) -> None:
        """Lines of the result."""
        if not self.as_json:
            for line in lines:
                typer.echo(line)

    def remark(self, *lines: str) -> None:
        """Lines that ``--quiet`` leaves out."""
        if not self.quiet:
            self.tell(*lines)

    def table(self, table: Table) -> None:
        """A table of the result."""
        if self.as_json:
            return
        if not sys.stdout.isatty():
            typer.echo(table.text())
            return
        from rich.console import Console

        console = Console()
        console.print(table.rich(console.width))

    def draw(self, drawing: RenderableType) -> None:
        """Anything that rich can draw; elsewhere than on a terminal without colours and trailing blanks."""
        if self.as_json:
            return
        from rich.console import Console

        if sys.stdout.isatty():
            Console().print(drawing, highlight=False)
            return
        console = Console(width=_WIDE, color_system=None, force_terminal=False)
        with console.capture() as capture:
            console.print(drawing, highlight=False)
        for line in capture.get().splitlines():
            typer.echo(line.rstrip())

    @contextmanager
    def progress(self, label: str, total: int) -> Iterator[Callable[[int, int], None] | None]:
        """Progress bar on the error stream, as a function of (done, total); None where nobody would see it."""
        if self.quiet or not sys.stderr.isatty():
            yield None
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(label, total=total)
            yield lambda done, jobs: bar.update(task, completed=done, total=jobs)


def json_text(command: str, members: Mapping[str, Any]) -> str:
    """Text of a versioned JSON object; a number that is not finite is an error.

    Examples
    --------
    >>> json_text("toy", {"valid": True})
    '{\\n  "format": "frostline/toy",\\n  "version": 1,\\n  "valid": true\\n}'
    """
    return json.dumps({"format": f"frostline/{command}", "version": 1, **members}, indent=2, allow_nan=False)
