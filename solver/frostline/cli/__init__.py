"""The command line: ``frostline``."""

from __future__ import annotations

import sys
from typing import NoReturn

__all__ = ["main"]


def main() -> NoReturn:
    """Run the command line of this process and exit: 0 ok, 1 violated or infeasible, 2 usage or bad input."""
    from frostline.cli.app import app

    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    app()
    raise AssertionError("unreachable: the application exits")
