"""The error where a choice is beyond an exact method."""

from __future__ import annotations

from frostline.errors import FrostlineError

__all__ = ["ChoiceTooLargeError"]


class ChoiceTooLargeError(FrostlineError, ValueError):
    """A choice that is beyond an exact method, by an estimate made before any work.

    Parameters
    ----------
    method : str
        The method.
    what : str
        What is counted.
    estimate, limit : int
        How many there are, and the most that the method takes.

    Examples
    --------
    >>> str(ChoiceTooLargeError("dp", "jobs × weights", 12_345_678_901, 10**9))
    'choice: method dp would take about 1.2e+10 jobs × weights, at most 1e+09 are allowed'
    """

    def __init__(self, method: str, what: str, estimate: int, limit: int) -> None:
        text = f"would take about {estimate:.2g} {what}, at most {limit:.2g} are allowed"
        super().__init__(f"choice: method {method} {text}")
        self.method, self.what, self.estimate, self.limit = method, what, estimate, limit
