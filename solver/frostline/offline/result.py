"""What a solve returns: a schedule, a bound, and how both came about."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from frostline.offline.explain import Explanation
from frostline.offline.search import Termination
from frostline.offline.stop import gap_of
from frostline.offline.tasks import Objective
from frostline.problem.instance import Instance
from frostline.problem.schedule import Schedule
from frostline.units import seconds

__all__ = ["SolveResult", "SolveStatus"]


class SolveStatus(StrEnum):
    """What is known of the schedule."""

    OPTIMAL = "optimal"  # it is valid and its objective equals a proved bound
    FEASIBLE = "feasible"  # it is valid
    INFEASIBLE = "infeasible"  # there is none; the explanations say why
    UNKNOWN = "unknown"  # none was found


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveResult:
    """A schedule of a whole instance, a bound on every schedule, and how both came about.

    Parameters
    ----------
    instance : Instance
        The instance that the schedule is of: the one that was asked for, pooled in the variant ``pool``, and with the
        chosen option of every job that has several.
    schedule : Schedule or None
        The schedule; None where there is none. Jobs that never fit are refused in it.
    goal : Objective
        What was made small.
    objective_us : int or None
        Objective of the schedule in microseconds, penalties of options included.
    bound_us : int
        Lower bound on it in microseconds.
    status : SolveStatus
        Optimal, feasible, infeasible or unknown.
    termination : Termination
        Why the search ended.
    source : str
        What found the schedule: ``hint``, ``list``, ``local-search`` or a method; empty without one.
    bound_source : str
        What proved the bound: a relaxation or a method.
    method : str
        Method that was asked for.
    runtime_s, work : float
        Seconds, and deterministic work, that it took.
    explanations : tuple of Explanation
        Smallest families of constraints that exclude each other, one for each job that never fits.
    """

    instance: Instance
    schedule: Schedule | None
    goal: Objective
    objective_us: int | None
    bound_us: int
    status: SolveStatus
    termination: Termination
    source: str
    bound_source: str
    method: str
    runtime_s: float = field(compare=False)
    work: float = field(compare=False)
    explanations: tuple[Explanation, ...] = ()

    @property
    def objective(self) -> float | None:
        """Objective of the schedule in seconds."""
        return None if self.objective_us is None else seconds(self.objective_us)

    @property
    def bound(self) -> float:
        """Lower bound on the objective in seconds."""
        return seconds(self.bound_us)

    @property
    def gap(self) -> float | None:
        """Distance to the bound as a share of the objective; None without a schedule, or where that means nothing."""
        return gap_of(self.objective_us, self.bound_us)
