"""The application."""

from __future__ import annotations

from typing import Annotated

import typer

from frostline.cli.group import CommandGroup

__all__ = ["app"]

app = typer.Typer(
    name="frostline",
    cls=CommandGroup,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"frostline {version('frostline')}")
        raise typer.Exit


@app.callback()
def frostline(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Decide how deep-learning training jobs share a GPU cluster: placement, order, proof.

    Exit codes: 0 ok; 1 violated, infeasible or invalid; 2 usage or bad input.
    """
