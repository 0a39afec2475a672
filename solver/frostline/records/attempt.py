"""One attempt at an instance: the best schedule that a given effort finds, and the best bound that it proves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from frostline.errors import InvalidValueError
from frostline.offline import SolveResult, Termination, WorkLimit, solve
from frostline.problem.instance import Instance
from frostline.problem.job import Elastic, Job
from frostline.problem.schedule import Schedule
from frostline.records.evidence import total_us
from frostline.relaxation import bound_certificate, lower_bound
from frostline.relaxation.lagrangian import PriceProblem, Tree, best_prices, certificate_of, price_problem, prove
from frostline.simulation import simulate
from frostline.units import as_finite, as_int

__all__ = [
    "POLICIES",
    "WIDTH_RULES",
    "Effort",
    "FoundBound",
    "FoundSchedule",
    "best_bound",
    "best_schedule",
    "choices_of",
    "policy_schedule",
]

POLICIES = ("asrpt", "easy", "sjf", "smallest-area")
"""Policies whose schedules a search starts from."""

_MOST_SOLVED, _MOST_EXACT, _MOST_IN_TREE = 1000, 250, 60
_HALVINGS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How long to search; equal efforts find equal results.

    Parameters
    ----------
    work : float
        Deterministic work of the search for a schedule, roughly seconds; see :class:`~frostline.offline.WorkLimit`.
    nodes : int
        Most nodes of an optimality tree.
    """

    work: float = 20.0
    nodes: int = 500

    def __post_init__(self) -> None:
        object.__setattr__(self, "work", as_finite(self.work, "effort", "work", 0.0))
        object.__setattr__(self, "nodes", as_int(self.nodes, "effort", "nodes", 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSchedule:
    """A schedule, the sum of its completion times, what found it, and what a solver says of it.

    Parameters
    ----------
    schedule : Schedule
        The schedule.
    method : str
        What found it.
    solver_bound_us : int or None
        Bound that the solver claims; None where none ran.
    interrupted : bool
        Whether Ctrl-C ended the search.
    """

    schedule: Schedule
    method: str
    solver_bound_us: int | None = None
    interrupted: bool = False

    @property
    def us(self) -> int:
        """Sum of completion times in microseconds."""
        return total_us(self.schedule)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundBound:
    """A certificate, the bound on the sum of completion times that it proves in microseconds, and how."""

    certificate: dict[str, Any]
    us: int
    method: str


def choices_of(instance: Instance) -> str:
    """``"elastic"`` where some job may choose its GPUs and its freeze level, else ``"asked"``."""
    return "elastic" if any(isinstance(job.work, Elastic) for job in instance.jobs) else "asked"


# Elastic work that may be frozen from the start is best frozen as far as it goes: no level takes less time. So the
# schedules that are looked for are those of jobs that have their last level only.


def at_last_level(instance: Instance) -> Instance:
    """The instance in which elastic jobs have no level but their last."""
    return instance.replace(jobs=tuple(map(_last_level, instance.jobs)))


def _last_level(job: Job) -> Job:
    work = job.work
    if not isinstance(work, Elastic) or work.levels == 1:
        return job
    if work.warm_up:
        raise InvalidValueError(f"job {job.id!r}", "warm_up", work.warm_up, "must be 0 in an instance of the library")
    table = {
        where: {gpus: row[-1:] for gpus, row in rows.items()} for where, rows in work.seconds_per_iteration.items()
    }
    return job.replace(work=Elastic(iterations=work.iterations, widths=work.widths, seconds_per_iteration=table))


def _with_levels(instance: Instance, schedule: Schedule) -> Schedule:
    """Schedule of :func:`at_last_level` as one of the instance."""
    levels = {job.id: job.work.levels - 1 for job in instance.jobs if isinstance(job.work, Elastic)}
    segments = tuple(part._replace(freeze_level=levels.get(part.job, 0)) for part in schedule.segments)
    return Schedule(segments=segments, refused=schedule.refused, policy=schedule.policy)


def policy_schedule(instance: Instance, method: str) -> Schedule:
    """Schedule of a method that is a policy, alone or with one of :data:`WIDTH_RULES`.

    Elastic jobs run on the GPUs they ask for, or on those of the rule, and are frozen as far as they may be.
    """
    policy, _, rule = method.partition(" at ")
    plain = at_last_level(instance)
    return _with_levels(instance, simulate(WIDTH_RULES[rule](plain) if rule else plain, policy).schedule)


def _at_priced_widths(instance: Instance) -> Instance:
    """The instance in which each elastic job asks for the width that is cheapest by the best prices of GPUs."""
    problem = price_problem(instance, elastic=True)
    found = dict(zip(problem.ids, problem.width[best_prices(problem).best.option].tolist(), strict=True))
    return instance.replace(jobs=[job.replace(gpus=found.get(job.id, job.gpus)) for job in instance.jobs])


def _at_twice_the_widths(instance: Instance) -> Instance:
    return instance.replace(jobs=[job.replace(gpus=_twice(job)) for job in instance.jobs])


def _twice(job: Job) -> int:
    """The least width of an elastic job that is twice what it asks for, or the widest."""
    if not isinstance(job.work, Elastic):
        return job.gpus
    return next((width for width in job.work.widths if width >= 2 * job.gpus), job.work.widths[-1])


WIDTH_RULES: Mapping[str, Callable[[Instance], Instance]] = MappingProxyType(
    {"priced widths": _at_priced_widths, "twice the widths": _at_twice_the_widths}
)
"""Other widths for elastic jobs than those they ask for."""


def _methods(instance: Instance) -> list[str]:
    """Policies, and where there are elastic jobs the same with each rule of widths."""
    rules = [f" at {rule}" for rule in WIDTH_RULES] if choices_of(instance) == "elastic" else []
    return [policy + rule for rule in ("", *rules) for policy in POLICIES]


def best_schedule(instance: Instance, effort: Effort, known: Schedule | None = None) -> FoundSchedule:
    """Schedule of the least sum of completion times that an effort finds.

    Those of four policies come first, with several widths of elastic jobs. Of up to 1,000 jobs,
    :func:`~frostline.offline.solve` goes on from the best, with lists alone where there are more than 250.

    Parameters
    ----------
    instance : Instance
        The instance; elastic work has no warm-up.
    effort : Effort
        How long to search.
    known : Schedule, optional
        A schedule that the result is not worse than.

    Examples
    --------
    >>> from frostline.traces.library import load_named_instance
    >>> found = best_schedule(load_named_instance("q06"), Effort(work=1))
    >>> found.us, found.solver_bound_us
    (138000000, 138000000)
    """
    plain = at_last_level(instance)
    tried = [(policy_schedule(instance, name), name) for name in _methods(instance)]
    tried += [] if known is None else [(known, "known")]
    first, name = min(tried, key=lambda pair: total_us(pair[0]))
    if len(instance.jobs) > _MOST_SOLVED:
        return FoundSchedule(schedule=first, method=name)
    hints = [schedule for schedule, _ in tried]
    method, widths = "auto" if len(instance.jobs) <= _MOST_EXACT else "list", choices_of(instance) == "elastic"
    result = solve(plain, method=method, stop=WorkLimit(effort.work), hints=hints, widths=widths)
    return _solved(instance, result, first, name)


def _solved(instance: Instance, result: SolveResult, first: Schedule, name: str) -> FoundSchedule:
    """What a search found, unless it began with that."""
    schedule = first if result.schedule is None else _with_levels(instance, result.schedule)
    method = f"{name}, shifted left" if result.source == "hint" else result.source
    if total_us(schedule) >= total_us(first):
        schedule, method = first, name
    interrupted = result.termination is Termination.INTERRUPTED
    return FoundSchedule(schedule=schedule, method=method, solver_bound_us=result.bound_us, interrupted=interrupted)


def best_bound(instance: Instance, target_us: int, effort: Effort) -> FoundBound:
    """Best bound on the sum of completion times that an effort proves, with its certificate.

    Of up to 60 jobs an optimality tree is tried: for the target, else for what lies between its root and the target.
    Prices and the pointwise bound come next.

    Parameters
    ----------
    instance : Instance
        The instance; elastic work may choose its GPUs and its freeze level, once for its whole run.
    target_us : int
        Sum of completion times of a schedule, in microseconds.
    effort : Effort
        How long to search.

    Examples
    --------
    >>> from frostline.traces.library import load_named_instance
    >>> bound = best_bound(load_named_instance("q06"), 138_000_000, Effort())
    >>> bound.us, bound.method
    (138000000, 'tree')
    """
    problem = price_problem(instance, elastic=choices_of(instance) == "elastic")
    found = []
    if problem.jobs <= _MOST_IN_TREE:
        found.append(_tree(problem, -(-target_us // problem.tick_us), effort))
        if found[0].us >= target_us:
            return found[0]
    prices = best_prices(problem).best
    found.append(_found(problem, certificate_of(problem, prices), "lagrangian"))
    if choices_of(instance) == "asked":
        found.append(_found(problem, bound_certificate(instance, lower_bound(instance, "pointwise")), "pointwise"))
    return max(found, key=lambda bound: bound.us)


def _found(problem: PriceProblem, certificate: dict[str, Any], method: str) -> FoundBound:
    return FoundBound(certificate=certificate, us=certificate["bound"] * problem.tick_us, method=method)


def _tree(problem: PriceProblem, target: int, effort: Effort) -> FoundBound:
    """Tree of the target, else the best one of some targets below it, by halves; the root alone is prices."""
    best = prove(problem, target, most_nodes=effort.nodes)
    low, high = best.bound, target
    for _ in range(0 if best.complete else _HALVINGS):
        middle = (low + high) // 2
        if middle <= low:
            break
        tree = prove(problem, middle, most_nodes=max(effort.nodes // _HALVINGS, 1))
        if tree.complete:
            low, best = middle, tree
        else:
            high = middle
    return _found(problem, certificate_of(problem, best), _name(best))


def _name(tree: Tree) -> str:
    return "tree" if tree.complete else "lagrangian"
