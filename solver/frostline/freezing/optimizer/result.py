"""What a choice gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from frostline.freezing.optimizer.certificate import Evidence
from frostline.status import Status

__all__ = ["Choice"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One option of each job, what they are worth together, and a bound on what any choice is worth.

    Parameters
    ----------
    selected : tuple of int, shape (jobs,)
        Number of the option within the menu of each job; 0 is to wait.
    value, bound : int
        Value of the choice, and a bound on that of any, in steps of ``value_unit``.
    value_unit : float
        Size of a step.
    gpus_used : tuple of int, shape (GPU types,)
        GPUs that the choice takes of each type.
    status : Status
        Valid; proved optimal; which method found the choice; which one proved the bound.
    method : str
        Method that was asked for.
    runtime_s : float
        Seconds it took.
    evidence : Evidence, optional
        What the certificate is made from.
    """

    selected: tuple[int, ...]
    value: int
    bound: int
    value_unit: float
    gpus_used: tuple[int, ...]
    status: Status
    method: str
    runtime_s: float = field(compare=False)
    evidence: Evidence | None = field(default=None, compare=False, repr=False)

    @property
    def gap(self) -> float:
        """Distance to the bound as a share of it; 0 where both are 0."""
        return (self.bound - self.value) / max(abs(self.bound), 1)

    @property
    def certificate(self) -> dict[str, Any] | None:
        """Document of whole numbers that proves the choice, its value, and the bound that prices prove.

        :func:`frostline.verify.choice.check_choice_certificate` checks it. ``bound`` may be lower, where an exact
        method proved more than prices can.
        """
        return None if self.evidence is None else self.evidence.certificate()
