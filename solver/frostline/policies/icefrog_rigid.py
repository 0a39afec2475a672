"""IceFrog-style freezing of jobs that keep their GPUs: every job's levels are planned, A-SRPT orders the planned jobs.

The idea to schedule with frozen layers is that of W. Gao, Z. Ouyang, P. Sun, T. Zhang, Y. Wen, *IceFrog: A
Layer-Elastic Scheduling System for Deep Learning Training in GPU Clusters*, TPDS 2025; its formulas are not public,
and the models here are our own. Where no job changes its GPUs, nothing couples the freezing of one job with that of
another, so that the best levels of each can be planned alone, and the sizes that result go to A-SRPT.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.freezing.plan import LevelPlan, plan_levels
from frostline.policies.asrpt import Asrpt, AsrptBudget, AsrptGuard, AsrptStrict
from frostline.policies.base import Decision, View
from frostline.policies.guarantee import Promise
from frostline.policies.task import Task
from frostline.problem.cluster import Cluster
from frostline.problem.job import Elastic, Job, PlacementClass, Profiled
from frostline.problem.placement import Placement
from frostline.problem.schedule import Segment
from frostline.timing.duration import placement_class, reachable_classes
from frostline.units import US_PER_S, as_finite, as_int, duration_us

__all__ = ["FORMS", "IceFrogRigid"]

FORMS: Mapping[str, type[Asrpt] | type[AsrptStrict] | type[AsrptBudget] | type[AsrptGuard]] = {
    "asrpt": Asrpt,
    "asrpt-strict": AsrptStrict,
    "asrpt-budget": AsrptBudget,
    "asrpt-guard": AsrptGuard,
}
"""Forms of A-SRPT that may order the planned jobs."""

_OF_FORM = ("kappa", "tau", "patience", "headroom", "small", "share", "order", "discipline")


@dataclass(frozen=True, slots=True, kw_only=True)
class IceFrogRigid:
    """A-SRPT on jobs whose freeze levels are planned for their whole run, on the GPUs that they ask for.

    Elastic work that may be frozen is planned when it is submitted, for one server and for many: the fastest levels
    whose accuracy debt, as believed, is within the budget of the job (:func:`~frostline.freezing.plan_levels`). The
    *planned job* takes as long as the plan, to the microsecond, and A-SRPT schedules it. Where it runs, it changes its
    levels by the plan. Other work, and work that no plan makes shorter, is scheduled as it is.

    The guarantee of the form holds on the planned jobs. They are no longer than those without freezing, so that it
    also holds against the optimum without freezing, theorem T7 (``proofs/theorems.md``).

    Parameters
    ----------
    form : str
        Form of A-SRPT, one of :data:`FORMS`.
    kappa, tau, patience, headroom, small, share, order, discipline
        Parameters of the form, by default as it has them; None where it has none.
    level_change_s : float
        Seconds that a change of level takes, at least 0.
    phases : int
        Phases of equal progress, after the warm-up, at whose starts the level may change.

    Raises
    ------
    UnknownNameError
        No such form, order or discipline.
    InvalidValueError
        A parameter is out of its range, or the form has no such parameter.

    Examples
    --------
    >>> work = Elastic(iterations=100, widths=[1], seconds_per_iteration={"one_server": {1: (2, 1.5, 1)}},
    ...                compute_shares=[0, 0.5, 1], family="fine-tuning", quality_budget_points=1)
    >>> job, cluster = Job(id="a", release_s=0, gpus=1, work=work), Cluster.uniform(1)
    >>> policy = IceFrogRigid()
    >>> policy.planned(job, cluster).work.seconds_per_iteration[PlacementClass.ONE_SERVER]
    134.2
    >>> run = Segment("a", 0, 134_200_000, Placement([(0, (1,))]))
    >>> [(piece.start_s, piece.end_s, piece.freeze_level) for piece in policy.pieces(job, cluster, run)]
    [(0.0, 40.0, 0), (40.0, 82.1, 1), (82.1, 134.2, 2)]
    """

    name: str = "icefrog-rigid"
    form: str = "asrpt"
    kappa: float | None = None
    tau: float | None = None
    patience: float | None = None
    headroom: float | None = None
    small: float | None = None
    share: float | None = None
    order: str | None = None
    discipline: str | None = None
    level_change_s: float = 0.1
    phases: int = 20
    _base: Asrpt | AsrptStrict | AsrptBudget | AsrptGuard = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        subject = f"policy {self.name!r}"
        if self.form not in FORMS:
            raise UnknownNameError(f"form of {subject}", str(self.form), FORMS)
        make = FORMS[self.form]
        known = {parameter.name for parameter in fields(make)}
        given = {name: value for name in _OF_FORM if (value := getattr(self, name)) is not None}
        for name, value in given.items():
            if name not in known:
                raise InvalidValueError(subject, name, value, f"must not be given: form {self.form!r} has none")
        base: Any = make
        object.__setattr__(self, "_base", base(name=self.name, **given))
        for name, value in self._base.parameters.items():
            object.__setattr__(self, name, value)
        change_s = as_finite(self.level_change_s, subject, "level_change_s", 0.0, 9e9)
        object.__setattr__(self, "level_change_s", change_s)
        object.__setattr__(self, "phases", as_int(self.phases, subject, "phases", 1))

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The form, all its parameters, and those of the plans."""
        plans = {"level_change_s": self.level_change_s, "phases": self.phases}
        return {"form": self.form, **self._base.parameters, **plans}

    @property
    def uses_virtual_machine(self) -> bool:
        """Always."""
        return True

    @property
    def late_entry(self) -> tuple[float, float]:
        """κ and τ."""
        return self._base.late_entry

    def priority(self, task: Task) -> Any:
        """That of the form."""
        return self._base.priority(task)

    def decide(self, view: View) -> Decision:
        """What the form decides."""
        return self._base.decide(view)

    def promise(self, saturation: int) -> Promise:
        """That of the form, for the planned jobs."""
        return self._base.promise(saturation)

    def planned(self, job: Job, cluster: Cluster) -> Job:
        """The job as it is scheduled: one iteration as long as its plan; itself where nothing is frozen."""
        work = job.work
        if not isinstance(work, Elastic) or work.levels < 2 or job.gpus not in work.widths:
            return job
        plans = {where: self._plan(work, job.gpus, where) for where in reachable_classes(job, cluster)}
        if not any(plan.frozen for plan in plans.values()):
            return job
        table = {where: plan.duration_us / US_PER_S for where, plan in plans.items()}
        return job.replace(work=Profiled(iterations=1, seconds_per_iteration=table))

    def pieces(self, job: Job, cluster: Cluster, segment: Segment) -> tuple[Segment, ...]:
        """The run of a job, cut where its level changes.

        Parameters
        ----------
        job : Job
            The job as submitted.
        cluster : Cluster
            The servers.
        segment : Segment
            Its run as planned.
        """
        plan = self._plan_of(job, cluster, segment.placement)
        return (segment,) if plan is None else tuple(_cut(segment, plan))

    def left_us(self, job: Job, cluster: Cluster, placement: Placement, done: int) -> int:
        """Microseconds that a planned job still takes where it runs, once so many iterations are done."""
        plan = self._plan_of(job, cluster, placement)
        if plan is None:
            raise InvalidValueError(f"job {job.id!r}", "work", type(job.work).__name__, "is not planned")
        return plan.left_us(done)

    def _plan_of(self, job: Job, cluster: Cluster, placement: Placement) -> LevelPlan | None:
        """Plan of a job where it is placed; None where it is scheduled as it is."""
        if not isinstance(job.work, Elastic) or self.planned(job, cluster) is job:
            return None
        return self._plan(job.work, job.gpus, placement_class(placement))

    def _plan(self, work: Elastic, gpus: int, where: PlacementClass) -> LevelPlan:
        return plan_levels(work, gpus, where, level_change_us=duration_us(self.level_change_s), phases=self.phases)


def _cut(segment: Segment, plan: LevelPlan) -> Iterator[Segment]:
    """Pieces of a run, one for each phase of its plan."""
    at_us = segment.start_us
    for phase in plan.phases:
        end_us = at_us + phase.duration_us
        yield segment._replace(start_us=at_us, end_us=end_us, freeze_level=phase.level)
        at_us = end_us
