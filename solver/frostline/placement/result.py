"""What a placement method gives back, and the error where nothing fits."""

from __future__ import annotations

from dataclasses import dataclass

from frostline.errors import FrostlineError
from frostline.problem.placement import Placement
from frostline.status import Status
from frostline.timing.iteration_time import NS_PER_S

__all__ = ["DoesNotFitError", "PlacementResult"]


class DoesNotFitError(FrostlineError, ValueError):
    """More replicas than GPUs on offer.

    Parameters
    ----------
    need_gpus : int
        GPUs asked for, one per replica.
    offer_gpus : int
        GPUs on offer, on all servers together.

    Examples
    --------
    >>> str(DoesNotFitError(17, 16))
    'placement: gpus=17 but all servers together have 16 free'
    """

    def __init__(self, need_gpus: int, offer_gpus: int) -> None:
        super().__init__(f"placement: gpus={need_gpus} but all servers together have {offer_gpus} free")
        self.need_gpus, self.offer_gpus = need_gpus, offer_gpus


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementResult:
    """A placement with its iteration time, a lower bound, and how both came about.

    Parameters
    ----------
    placement : Placement
        Replicas of each stage on each used server.
    iteration_ns : int
        Iteration time of the placement in nanoseconds, recomputed from it.
    bound_ns : int
        Lower bound on the iteration time of any placement on the same free GPUs.
    cut_bytes : int
        Bytes that cross between servers per iteration.
    status : Status
        Valid; proved optimal; which method found the placement; which bound.
    method : str
        Method that was asked for.
    runtime_s : float
        Seconds it took.
    """

    placement: Placement
    iteration_ns: int
    bound_ns: int
    cut_bytes: int
    status: Status
    method: str
    runtime_s: float

    @property
    def seconds(self) -> float:
        """Iteration time in seconds."""
        return self.iteration_ns / NS_PER_S

    @property
    def bound_s(self) -> float:
        """Lower bound on the iteration time in seconds."""
        return self.bound_ns / NS_PER_S

    @property
    def gap(self) -> float:
        """Distance to the bound as a share of it; 0 where both are 0."""
        return (self.iteration_ns - self.bound_ns) / max(self.bound_ns, 1)

    @property
    def servers_used(self) -> int:
        """Number of servers that hold replicas."""
        return len(self.placement.columns)
