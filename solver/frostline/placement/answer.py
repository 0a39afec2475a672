"""What a placement method is given and gives back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from frostline.placement.pattern_tree import Proof
from frostline.placement.request import Request
from frostline.timing.iteration_time import Matrix

__all__ = ["Answer", "Method"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a method found.

    Parameters
    ----------
    matrix : ndarray of int64, shape (rows, stages)
        Replicas of each stage on each row of the request.
    source : str
        What found it.
    bound_ns : int
        Lower bound on the iteration time on the rows of the request, with ``consolidate`` on the fewest of them; 0 if
        the method proves none.
    bound : str
        What proved the bound.
    proof : Proof, optional
        Prices that prove a bound, for a certificate.
    """

    matrix: Matrix
    source: str
    bound_ns: int = 0
    bound: str = ""
    proof: Proof | None = None


Method = Callable[[Request], Answer]
"""A placement method."""
