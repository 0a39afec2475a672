"""What a placement method gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from frostline.placement.certificate import Evidence
from frostline.problem.placement import Placement
from frostline.status import Status
from frostline.timing.iteration_time import NS_PER_S

__all__ = ["PlacementResult"]


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
    evidence : Evidence, optional
        What the certificate is made from.
    """

    placement: Placement
    iteration_ns: int
    bound_ns: int
    cut_bytes: int
    status: Status
    method: str
    runtime_s: float
    evidence: Evidence | None = field(default=None, compare=False, repr=False)

    @property
    def certificate(self) -> dict[str, Any] | None:
        """Document of integers that proves the placement, its time and a bound; None without integer tables.

        :func:`frostline.verify.placement.check_placement_certificate` checks it. The bound it proves is that of the
        base time or of prices; ``bound_ns`` may be higher, where a solver branched.
        """
        return None if self.evidence is None else self.evidence.certificate(self.placement, self.iteration_ns)

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
