"""The loops of the choice, compiled where numba is installed."""

from __future__ import annotations

import os
from functools import cache
from types import ModuleType

from frostline.freezing.optimizer import kernel
from frostline.placement.jit import compiled

__all__ = ["loops"]


@cache
def loops() -> ModuleType | None:
    """Loops of :mod:`frostline.freezing.optimizer.kernel` compiled, or None without the extra ``fast``.

    With ``FROSTLINE_JIT=0`` in the environment nothing is compiled.
    """
    if os.environ.get("FROSTLINE_JIT", "1") == "0":
        return None
    try:
        return compiled(kernel)
    except ImportError:
        return None
