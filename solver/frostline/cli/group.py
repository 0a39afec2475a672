"""The group of all commands: each is loaded when it is called, and every error becomes one line and an exit code."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from frostline.errors import FrostlineError, FrostlineWarning, UnknownNameError

__all__ = ["BAD_INPUT", "COMMANDS", "INFEASIBLE", "CommandGroup", "UsageError", "fail"]

INFEASIBLE, BAD_INPUT, INTERRUPTED = 1, 2, 130

COMMANDS: Mapping[str, tuple[str, str]] = {
    "simulate": ("simulate", "Run a trace or an instance under policies, check every schedule, compare with a bound."),
    "place": ("place", "Place the replicas of a training job on free GPUs, for the least iteration time."),
    "predict": ("predict", "Predict the size of every job of a trace from those that have finished, and score it."),
    "freeze": ("freeze", "Show what each freeze level of a training job saves and costs, and which is best now."),
    "solve": ("solve", "Find the best schedule of a whole instance, and prove how good it is."),
    "bound": ("bound", "Prove a lower bound on the flow time of every schedule."),
    "check": ("check", "Check a schedule against every rule, and say what is proved of it."),
    "convert": ("convert", "Convert traces and instances."),
    "generate": ("generate", "Generate a trace or an instance like public ones."),
    "bench": ("bench", "Show, check or improve what is known of the shipped instances; compare policies with it."),
    "plot": ("plot", "Draw schedules, or report on a simulation in one HTML file."),
    "show": ("show", "Show a network, trace, instance, schedule or cluster."),
    "list": ("listing", "List policies, networks, instances, trace formats, GPU types and kinds of plots."),
}
"""Module in this package and one line of help, by command."""

_ClickError: type[Any] = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


class UsageError(FrostlineError):
    """Options and arguments that do not go together."""


class CommandGroup(TyperGroup):
    """Commands return their exit code; what they raise on purpose ends in one line on the error stream."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of the commands, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Command of a name, loaded now; an error with a suggestion where there is none."""
        if cmd_name not in COMMANDS:
            raise UnknownNameError("command", cmd_name, COMMANDS)
        return _load(cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Section of the help on the commands, which loads none of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def main(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Run a command line and exit."""
        kwargs["standalone_mode"] = False
        try:
            with _warnings_in_one_line():
                code = super().main(*args, **kwargs) or 0
        except FrostlineError as error:
            code = fail(str(error))
        except _ClickError as error:
            code = fail(f"{error.format_message()}{_where_to_look(error)}")
        except (KeyboardInterrupt, typer.Abort):
            code = INTERRUPTED
        except MemoryError:
            code = fail("this needs more memory than there is")
        except OSError as error:
            code = fail(f"{error.filename or 'input or output'}: {error.strerror or error}")
        sys.exit(code)


@cache
def _load(name: str) -> Any:
    module, text = COMMANDS[name]
    loaded = import_module(f"frostline.cli.{module}")
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(name, help=text, epilog=loaded.EXAMPLES)(loaded.run)
    return typer.main.get_command(alone)


def fail(message: str, code: int = BAD_INPUT) -> int:
    """Say what was wrong in one line on the error stream; the exit code."""
    typer.echo(f"error: {' '.join(message.split())}", err=True)
    return code


def _where_to_look(error: Any) -> str:
    context = getattr(error, "ctx", None)
    return f" (see {context.command_path} --help)" if context is not None else ""


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("default", FrostlineWarning)
        warnings.showwarning = lambda message, *_: typer.echo(f"warning: {message}", err=True)
        yield
