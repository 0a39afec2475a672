"""A run of the compiled twin, from an instance to a schedule."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import repeat
from types import ModuleType

import numpy as np
import numpy.typing as npt

from frostline.errors import InvalidValueError
from frostline.policies.base import Policy
from frostline.problem.instance import Instance
from frostline.problem.job import Fixed
from frostline.problem.placement import Placement
from frostline.problem.schedule import Schedule, Segment
from frostline.relaxation.bounds import virtual_times
from frostline.simulation.compiled import kernel
from frostline.simulation.compiled.columns import Columns, columns_of
from frostline.simulation.compiled.rule import Rule
from frostline.simulation.compiled.rules import keys_of, rule_of
from frostline.simulation.compiled.state import State, state_of

__all__ = ["NotCoveredError", "Twin"]

Ints = npt.NDArray[np.int64]

_INSTANTS = 1 << 18
"""Instants between two reports of the progress."""


class NotCoveredError(InvalidValueError):
    """The compiled twin does not cover a case.

    Examples
    --------
    >>> str(NotCoveredError("outages"))
    "simulation: engine='compiled' does not cover outages"
    """

    def __init__(self, what: str) -> None:
        super().__init__("simulation", "engine", "compiled", f"does not cover {what}")


class Twin:
    """One simulation by compiled loops.

    Parameters
    ----------
    instance : Instance
        Cluster and jobs.
    policy : Policy
        The policy.
    loops : module
        :mod:`frostline.simulation.compiled.kernel`, compiled or as it is.

    Raises
    ------
    NotCoveredError
        The twin does not know the policy, a job is of other work than ``Fixed``, or a sum may leave 64 bits.

    Examples
    --------
    >>> from frostline.policies import make_policy
    >>> from frostline.problem import Cluster, Job
    >>> jobs = [Job(id=name, release_s=0, work=Fixed(duration_s=s), gpus=8) for name, s in (("a", 20), ("b", 10))]
    >>> twin = Twin(Instance(cluster=Cluster.uniform(1), jobs=jobs), make_policy("sjf"), kernel)
    >>> twin.run()
    >>> [(segment.job, segment.end_s) for segment in twin.schedule().segments]
    [('b', 10.0), ('a', 30.0)]
    """

    def __init__(self, instance: Instance, policy: Policy, loops: ModuleType) -> None:
        if not all(type(job.work) is Fixed for job in instance.jobs):
            raise NotCoveredError("work that is not fixed")
        self.columns, self._loops = columns_of(instance), loops
        rule, key = rule_of(policy, instance.cluster, self.columns), keys_of(policy, self.columns)
        if rule is None or key is None:
            raise NotCoveredError(f"policy {policy.name!r}" if rule is None else f"the order of policy {policy.name!r}")
        self._rule, self._state = rule, self._begun(instance, policy, rule, key)

    def _begun(self, instance: Instance, policy: Policy, rule: Rule, key: Ints) -> State | None:
        """State before the first job arrives; None where there is none."""
        columns = self.columns
        if not len(columns.line):
            return None
        if not _is_small(columns, rule):
            raise NotCoveredError("numbers that may leave 64 bits")
        virtual_at = np.empty(0, np.int64)
        if policy.uses_virtual_machine:
            virtual_at = np.asarray(virtual_times(columns.jobs, instance.cluster.gpus), np.int64)
        return state_of(columns, key, virtual_at, instance.cluster.capacities)

    def run(self, on_progress: Callable[[int], None] | None = None) -> None:
        """Run all jobs; what ``on_progress`` raises, which is told of the jobs that have ended, reaches the caller."""
        state = self._state
        while state is not None and self._loops.play(*state, self._rule, _INSTANTS):
            if on_progress is not None:
                figures = state.figures
                on_progress(int(figures[kernel.COMING] - figures[kernel.WAITING] - figures[kernel.RUNNING]))

    @property
    def start_us(self) -> Ints:
        """Starts of the jobs, in order of arrival."""
        return np.empty(0, np.int64) if self._state is None else self._state.jobs[:, kernel.START]

    @property
    def end_us(self) -> Ints:
        """Ends of the jobs, in order of arrival."""
        return self.start_us + self.columns.jobs.duration_us

    def schedule(self, policy: str = "") -> Schedule:
        """Who ran where, and who was refused, under the name of the policy with its parameters."""
        with _no_collection():
            return Schedule.of(self._segments(), self.columns.refused, policy)

    def _segments(self) -> Iterator[Segment]:
        """What ran, sorted by start and end."""
        if self._state is None:
            return iter(())
        ids, start_us, end_us = self.columns.jobs.ids, self.start_us, self.end_us
        order = np.lexsort((end_us, start_us))
        who = [ids[job] for job in order.tolist()]
        when = start_us[order].tolist(), end_us[order].tolist()
        rows = zip(who, *when, _placements(self._state, order), repeat(0), strict=False)
        return map(partial(tuple.__new__, Segment), rows)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Put off the search for cycles: while many objects without any are made, it takes most of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _placements(state: State, order: Ints) -> list[Placement]:
    """Where jobs run; those on one server share what there is of its placements."""
    first, last = state.jobs[order][:, [kernel.FIRST_LOAD, kernel.LAST_LOAD]].T
    server, gpus = state.loads[first].T
    _, examples, which = np.unique(server * (gpus.max() + 1) + gpus, return_index=True, return_inverse=True)
    single = [
        Placement.of_loads([load]) for load in zip(server[examples].tolist(), gpus[examples].tolist(), strict=True)
    ]
    placements = [single[load] for load in which.tolist()]
    for job in np.flatnonzero(last - first > 1).tolist():
        placements[job] = Placement.of_loads(list(map(tuple, state.loads[first[job] : last[job]].tolist())))
    return placements


def _is_small(columns: Columns, rule: Rule) -> bool:
    """Whether no sum of the loops leaves 64 bits."""
    jobs, longest = columns.jobs, float(columns.jobs.duration_us.max())
    last = float(np.abs(jobs.release_us).max()) + float(jobs.duration_us.astype(float).sum())
    work = float(jobs.gpus.astype(float) @ jobs.duration_us) + float(np.abs(jobs.release_us).max()) * rule.gpus
    scaled = rule.gpus * float(rule.share[0]) * 8 * 256
    others = (*map(float, rule.small), float(rule.share[1]) * 8, scaled)
    return 4 * max(last + rule.patience * longest, work, *others) < kernel.NEVER
