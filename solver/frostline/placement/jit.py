"""The loops of the placement search, compiled where numba is installed."""

from __future__ import annotations

import importlib.util
import os
import sys
from functools import cache
from types import FunctionType, ModuleType

from frostline.placement import kernel, kernel_starts

__all__ = ["compiled", "compiled_or_none", "search_loops", "start_loops"]


def search_loops() -> ModuleType:
    """Loops of :mod:`frostline.placement.kernel`, compiled if the extra ``fast`` is installed.

    Both ways give the same results. The first call ever takes about half a minute; compiled code is then kept on disk,
    if there is a folder for it. With ``FROSTLINE_JIT=0`` in the environment nothing is compiled.
    """
    return _fastest(kernel)


def start_loops() -> ModuleType:
    """Loops of :mod:`frostline.placement.kernel_starts`, in the same way."""
    return _fastest(kernel_starts)


@cache
def _fastest(module: ModuleType) -> ModuleType:
    return compiled_or_none(module) or module


def compiled_or_none(module: ModuleType) -> ModuleType | None:
    """Twin of a module with every function compiled; None without the extra ``fast``, or with ``FROSTLINE_JIT=0``."""
    if os.environ.get("FROSTLINE_JIT", "1") == "0":
        return None
    try:
        return compiled(module)
    except ImportError:
        return None


@cache
def compiled(module: ModuleType) -> ModuleType:
    """Twin of a module with every function compiled.

    The source is loaded once more under another name, so that the functions of the twin call each other.

    Raises
    ------
    ImportError
        Numba is not installed.
    """
    from numba import njit

    cache = _can_cache()
    inlined = njit(cache=cache, nogil=True, inline="always")
    name = f"{module.__name__}_compiled"
    spec = importlib.util.spec_from_file_location(name, module.__file__)
    assert spec is not None and spec.loader is not None
    twin = importlib.util.module_from_spec(spec)
    sys.modules[name] = twin
    spec.loader.exec_module(twin)
    for key, value in list(vars(twin).items()):
        if isinstance(value, FunctionType) and value.__module__ == name:
            setattr(twin, key, inlined(value) if key in twin.INLINED else njit(cache=cache, nogil=True)(value))
    return twin


def _can_cache() -> bool:
    """Whether there is a folder for compiled code: that of the package or one of the user's."""
    from numba import njit

    try:
        njit(cache=True)(_can_cache)
    except RuntimeError:
        return False
    return True
