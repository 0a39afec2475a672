"""The loops of the price bound, compiled where numba is installed."""

from __future__ import annotations

import os
from functools import cache
from types import ModuleType

from frostline.placement.jit import compiled
from frostline.relaxation.lagrangian import kernel

__all__ = ["loops"]


@cache
def loops() -> ModuleType | None:
    """Loops of :mod:`frostline.relaxation.lagrangian.kernel` compiled, or None without the extra ``fast``.

    With ``FROSTLINE_JIT=0`` in the environment nothing is compiled.
    """
    if os.environ.get("FROSTLINE_JIT", "1") == "0":
        return None
    try:
        return compiled(kernel)
    except ImportError:
        return None
