"""The order of equals: identifiers compare as people read them, digits as numbers."""

from __future__ import annotations

import re

__all__ = ["natural_key"]

# Longer runs of digits compare as text: Python refuses to read them as numbers.
_DIGITS = re.compile(r"([0-9]{1,4000})")


def natural_key(identifier: str) -> tuple[tuple[int, int, str], ...]:
    """Sort key under which ``job2`` comes before ``job10``; distinct identifiers have distinct keys.

    Examples
    --------
    >>> sorted(["10", "9", "b", "07", "7"], key=natural_key)
    ['07', '7', '9', '10', 'b']
    """
    if len(identifier) <= 4000 and identifier.isascii() and identifier.isdigit():
        return ((0, int(identifier), identifier),)
    parts = _DIGITS.split(identifier)
    return tuple((0, int(part), part) if i % 2 else (1, 0, part) for i, part in enumerate(parts) if part)
