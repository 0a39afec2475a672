"""The page of the command line, from what the commands say with ``--help``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer

from frostline.cli.app import app


def page() -> str:
    """Page with a section for each command, in the order of the help."""
    group: Any = typer.main.get_command(app)
    with group.make_context("frostline", ["list"], resilient_parsing=True) as context:
        title, _, rest = group.help.partition("\n\n")
        lines = ["Command line", "============", "", title, "", rest, ""]
        for name in group.list_commands(context):
            lines += _section(group.get_command(context, name), name, context)
    return "\n".join(lines)


def _section(command: Any, name: str, parent: Any) -> Iterator[str]:
    with command.make_context(name, [], parent=parent, resilient_parsing=True) as context:
        yield from (name, "-" * len(name), "", command.help, "")
        yield from (".. code-block:: text", "", f"   {command.get_usage(context).removeprefix('Usage: ')}", "")
        yield from (f".. program:: frostline {name}", "")
        for parameter in command.get_params(context):
            record = parameter.get_help_record(context)
            if record is not None and "--help" not in record[0]:
                yield from _option(*record)
    yield from ("Examples:", "", ".. code-block:: console", "")
    yield from (f"   $ {line.strip()}" for line in command.epilog.splitlines() if line.startswith("  frostline"))
    yield ""


def _option(names: str, text: str) -> Iterator[str]:
    names = re.sub(r" <\w+>$", "", names).replace(" / ", ", ")
    escaped = re.sub(r"([*`\\|_])", r"\\\1", text)
    yield from (f".. option:: {names}", "", f"   {escaped}", "")
