"""Status of an answer: four facts that must not be mixed up."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Status"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What is known about an answer.

    Parameters
    ----------
    valid : bool
        It was checked and keeps every rule.
    proved_optimal : bool
        Its value equals a proved bound.
    source : str
        What found it.
    bound : str
        What proved the bound.

    Examples
    --------
    >>> Status(valid=True, proved_optimal=False, source="heavy-edge", bound="base").proved_optimal
    False
    """

    valid: bool
    proved_optimal: bool
    source: str
    bound: str
