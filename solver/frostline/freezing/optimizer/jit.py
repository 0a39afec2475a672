"""The loops of the choice, compiled where numba is installed."""

from __future__ import annotations

from functools import cache
from types import ModuleType

from frostline.freezing.optimizer import kernel
from frostline.placement.jit import compiled_or_none

__all__ = ["loops"]


@cache
def loops() -> ModuleType | None:
    """Loops of :mod:`frostline.freezing.optimizer.kernel` compiled, or None; see ``compiled_or_none``."""
    return compiled_or_none(kernel)
