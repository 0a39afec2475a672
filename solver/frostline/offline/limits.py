"""The refusal of what an exact method would not finish, or not even build."""

from __future__ import annotations

import math

from frostline.errors import FrostlineError

__all__ = ["TooLargeError"]

_FLOATS = 10**300


class TooLargeError(FrostlineError, ValueError):
    """An instance that is beyond an exact method, by an estimate made before any work.

    Parameters
    ----------
    method : str
        The method.
    what : str
        What is counted.
    estimate, limit : int
        How many there would be, and the most that the method takes.

    Examples
    --------
    >>> str(TooLargeError("milp", "cells", 5_000_000_000, 10**6))
    'solve: method milp would take about 5e+09 cells, at most 1e+06 are allowed'
    """

    def __init__(self, method: str, what: str, estimate: int, limit: int) -> None:
        about = f"{estimate:.2g}" if estimate < _FLOATS else f"1e+{math.floor(math.log10(estimate))}"
        text = f"would take about {about} {what}, at most {limit:.2g} are allowed"
        super().__init__(f"solve: method {method} {text}")
        self.method, self.what, self.estimate, self.limit = method, what, estimate, limit
