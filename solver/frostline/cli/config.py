"""Options of a command from a TOML file: a table named like the command; the command line wins."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from frostline.cli.group import COMMANDS
from frostline.errors import FileError, UnknownNameError
from frostline.problem.documents import file_problem

__all__ = ["apply_config"]

_NOT_CONFIGURABLE = ("config", "help")


def apply_config(context: typer.Context, path: Path | None) -> Path | None:
    """Make the table of a command the defaults of its options; called before any other option is read.

    Raises
    ------
    FileError
        The file cannot be read, or holds a value that no option of that name takes.
    UnknownNameError
        A table that is no command, or a key that is no option of the command.
    """
    if path is None:
        return None
    tables = _tables(path)
    for name in tables:
        if name not in COMMANDS:
            raise UnknownNameError(f"command in {path}", name, COMMANDS)
    command = str(context.info_name)
    table = tables.get(command, {})
    if not isinstance(table, dict):
        raise FileError(path, f"{command}: must be a table of options")
    context.default_map = _defaults(context, table, path)
    return path


def _tables(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n"))
    except OSError as error:
        raise FileError(path, file_problem(error)) from None
    except UnicodeDecodeError as error:
        raise FileError(path, f"is not UTF-8: byte 0x{error.object[error.start]:02x} at {error.start}") from None
    except tomllib.TOMLDecodeError as error:
        raise FileError(path, f"is not TOML: {error}") from None
    except RecursionError:
        raise FileError(path, "is nested too deeply") from None


def _defaults(context: typer.Context, table: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Values by parameter; options go by their long names, with ``-`` or ``_``."""
    options: dict[str, tuple[Any, bool]] = {}
    for parameter in context.command.params:
        if parameter.param_type_name == "option" and parameter.name not in _NOT_CONFIGURABLE:
            options |= {_key(name): (parameter, False) for name in parameter.opts}
            options |= {_key(name): (parameter, True) for name in parameter.secondary_opts}
    values: dict[str, Any] = {}
    for key, value in table.items():
        if _key(key) not in options:
            raise UnknownNameError(f"option of {context.info_name} in {path}", key, options)
        parameter, negated = options[_key(key)]
        where = f"{context.info_name}.{key}"
        if parameter.name in values:
            raise FileError(path, f"{where}: is set twice")
        values[parameter.name] = _flag(value, negated, path, where) if parameter.is_flag else _text(value, path, where)
    return values


def _key(name: str) -> str:
    return name.lstrip("-").replace("_", "-")


def _flag(value: object, negated: bool, path: Path, where: str) -> bool:
    if not isinstance(value, bool):
        raise FileError(path, f"{where}: {value!r} must be true or false")
    return value is not negated


def _text(value: object, path: Path, where: str) -> str:
    """Value as it would be typed; a list is what commas separate."""
    if isinstance(value, list) and value:
        return ",".join(_text(item, path, where) for item in value)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise FileError(path, f"{where}: {value!r} must be text, a number or a list of them")
    return str(value)
