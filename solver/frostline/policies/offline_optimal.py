"""The schedule of :func:`frostline.offline.solve`, replayed: what a scheduler could do that knew all jobs before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from frostline.errors import InvalidValueError, TooLargeError, UnknownNameError
from frostline.offline.search import Termination
from frostline.offline.solve import EFFORT, solve
from frostline.offline.stop import WorkLimit
from frostline.offline.tasks import Objective
from frostline.policies.base import WAIT, Decision, Start, View, Wait
from frostline.policies.task import Task
from frostline.problem.instance import Instance
from frostline.problem.schedule import Segment
from frostline.units import as_finite, as_int

__all__ = ["MOST_JOBS", "OfflineOptimal"]

MOST_JOBS = 200
"""Most jobs of an instance that is planned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineOptimal:
    """Starts every job when and where a schedule of the whole instance has it.

    The schedule is the best that a fixed amount of work finds, optimal where that is enough: compare its flow with
    the bound, or ask :func:`frostline.offline.solve`. No scheduler has this knowledge; it is a yardstick for others.
    It needs a scheduler that is told all jobs beforehand, as :func:`frostline.simulation.simulate` makes one; where
    jobs come unannounced it raises an error.

    Parameters
    ----------
    objective : {"flow", "completion", "makespan"}
        What the schedule makes small.
    work : float
        Deterministic work of the search, roughly seconds.
    seed : int
        Seed of the search.

    Raises
    ------
    UnknownNameError
        No such objective.
    InvalidValueError
        A number is out of its range.

    Examples
    --------
    >>> from frostline.problem import Cluster, Fixed, Job
    >>> jobs = [Job(id="a", release_s=0, work=Fixed(duration_s=10), gpus=8),
    ...         Job(id="b", release_s=1, work=Fixed(duration_s=2), gpus=4)]
    >>> plan = OfflineOptimal().whole_plan(Instance(cluster=Cluster.uniform(1), jobs=jobs))
    >>> {job: segment.start_s for job, segment in plan.items()}
    {'b': 1.0, 'a': 3.0}
    """

    objective: str = "flow"
    work: float = EFFORT
    seed: int = 0

    def __post_init__(self) -> None:
        if self.objective not in [*Objective]:
            raise UnknownNameError("objective", str(self.objective), [*Objective])
        object.__setattr__(self, "work", as_finite(self.work, "policy 'offline-optimal'", "work", 0.0))
        object.__setattr__(self, "seed", as_int(self.seed, "policy 'offline-optimal'", "seed", 0))

    @property
    def name(self) -> str:
        """``offline-optimal``."""
        return "offline-optimal"

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Objective, work and seed."""
        return {"objective": self.objective, "work": self.work, "seed": self.seed}

    @property
    def uses_virtual_machine(self) -> bool:
        """Never."""
        return False

    def whole_plan(self, instance: Instance) -> Mapping[str, Segment]:
        """Run of every job that fits, by job, in the order of starts.

        Parameters
        ----------
        instance : Instance
            The whole instance.

        Raises
        ------
        TooLargeError
            More than :data:`MOST_JOBS` jobs.
        InvalidValueError
            Training work that may spread over servers: its speed depends on the placement.
        """
        if len(instance.jobs) > MOST_JOBS:
            raise TooLargeError("policy", self.name, "jobs", len(instance.jobs), MOST_JOBS)
        found = solve(instance, objective=self.objective, stop=WorkLimit(self.work), seed=self.seed)
        if found.termination is Termination.INTERRUPTED:
            raise KeyboardInterrupt
        if found.schedule is None:
            return MappingProxyType({})
        return MappingProxyType({segment.job: segment for segment in found.schedule.segments})

    def priority(self, task: Task) -> int:
        """Order of arrival; the plan alone tells who starts."""
        return task.number

    def decide(self, view: View) -> Decision:
        """Start what the plan starts by now, else wait for its next start.

        Raises
        ------
        InvalidValueError
            There is no plan, or a job that waits is not in it.
        """
        plan: Mapping[str, Segment] | None = getattr(view, "plan", None)
        best: tuple[int, int, Task] | None = None
        for task in view.waiting.tasks.values():
            if plan is None or task.job.id not in plan:
                rule = "is not planned: the policy must be told all jobs beforehand, as in a simulation"
                raise InvalidValueError(f"policy {self.name!r}", "job", task.job.id, rule)
            entry = plan[task.job.id].start_us, task.number, task
            best = entry if best is None or entry < best else best
        if best is None:
            return WAIT
        start_us, _, task = best
        return Start(task) if start_us <= view.now_us else Wait(until_us=start_us)
