"""A name with parameters in one text, as policies and models are asked for."""

from __future__ import annotations

from typing import Any

from frostline.errors import InvalidValueError

__all__ = ["named_settings"]


def named_settings(kind: str, text: str) -> tuple[str, dict[str, Any]]:
    """Name and parameters of ``name:parameter=value:parameter=value``.

    Parameters
    ----------
    kind : str
        What is named, for errors.
    text : str
        The text.

    Raises
    ------
    InvalidValueError
        A parameter is no pair, or is given twice.

    Examples
    --------
    >>> named_settings("policy", "asrpt:patience=2:late=false:order=sjf")
    ('asrpt', {'patience': 2, 'late': False, 'order': 'sjf'})
    """
    name, *settings = text.split(":")
    parameters: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key:
            raise InvalidValueError(f"{kind} {name!r}", "parameter", setting, "must read name=value")
        if key in parameters:
            raise InvalidValueError(f"{kind} {name!r}", "parameter", key, "is given twice")
        parameters[key] = _value(value)
    return name, parameters


def _value(text: str) -> Any:
    """Truth value or number where the text reads as one, else the text."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text
