"""A policy as the loops of the compiled twin see it."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Rule"]


class Rule(NamedTuple):
    """A policy as numbers; parameters that it does not have are 0."""

    form: int
    """Form of the rule, as named in the kernel."""
    discipline: int = 0
    """Discipline of the order, as named in the kernel."""
    gpus: int = 0
    """GPUs of the cluster."""
    budget: int = 0
    """GPUs that may be held out of order."""
    patience: float = 0.0
    """Longest durations that a due job waits before the guard is up."""
    small: tuple[int, int] = (0, 1)
    """Mean areas that need no headroom, as a fraction."""
    share: tuple[int, int] = (0, 1)
    """Headroom for each doubling, as a fraction."""
