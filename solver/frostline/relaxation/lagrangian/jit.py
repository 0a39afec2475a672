"""The loops of the price bound, compiled where numba is installed."""

from __future__ import annotations

from functools import cache
from types import ModuleType

from frostline.placement.jit import compiled_or_none
from frostline.relaxation.lagrangian import kernel

__all__ = ["loops"]


@cache
def loops() -> ModuleType | None:
    """Loops of :mod:`frostline.relaxation.lagrangian.kernel` compiled, or None; see ``compiled_or_none``."""
    return compiled_or_none(kernel)
