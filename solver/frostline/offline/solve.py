"""The solve call: makes the problem, starts from hints and heuristics, runs an exact method, checks its answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

from frostline.errors import UnknownNameError
from frostline.offline.bounds import relaxed
from frostline.offline.brute_force import brute_force, check_steps
from frostline.offline.build import Case, Option, case_of, pooled
from frostline.offline.cpsat import MOST_INTERVALS, check_intervals, cpsat, intervals
from frostline.offline.explain import Explanation, impossible_deadlines, isolated, missing_type, refusal_explanation
from frostline.offline.improve import heuristics, local_search
from frostline.offline.listing import shifted
from frostline.offline.milp import check_cells, milp
from frostline.offline.result import SolveResult, SolveStatus
from frostline.offline.schedules import plan_of, schedule_of
from frostline.offline.search import Search, Termination
from frostline.offline.stop import SearchState, StopRule, WorkLimit
from frostline.offline.tasks import Objective, Plan
from frostline.problem.instance import Instance
from frostline.problem.schedule import Schedule
from frostline.units import as_int

__all__ = ["EFFORT", "METHODS", "VARIANTS", "solve"]

EFFORT = 10.0
"""Deterministic work of a search without a stop rule, roughly seconds."""

VARIANTS = ("servers", "pool")
"""What is solved: the instance as it stands, or the same jobs on one pool of all GPUs."""

_MOST_WORKERS = 1024


def _auto(search: Search) -> None:
    """Local search, then CP-SAT where its model is not too large."""
    local_search(search)
    if intervals(search.problem) > MOST_INTERVALS:
        if not search.over():
            search.termination = Termination.TOO_LARGE
        return
    cpsat(search)


def _cpsat(search: Search) -> None:
    local_search(search)
    cpsat(search)


def _milp(search: Search, solver: str = "") -> None:
    local_search(search)
    milp(search, solver)


def _lists(search: Search) -> None:
    local_search(search)
    if not search.over():
        search.termination = Termination.GAVE_UP


METHODS: Mapping[str, Callable[[Search], None]] = MappingProxyType(
    {
        "auto": _auto,
        "brute-force": brute_force,
        "cpsat": _cpsat,
        "list": _lists,
        "milp": _milp,
        "milp-cbc": partial(_milp, solver="cbc"),
        "milp-highs": partial(_milp, solver="highs"),
    }
)
"""Methods by name; ``list`` is heuristics alone."""

_GUARDS: Mapping[str, Callable[[Search], None]] = MappingProxyType(
    {"brute-force": check_steps, "cpsat": check_intervals}
    | dict.fromkeys(("milp", "milp-cbc", "milp-highs"), check_cells)
)


def solve(
    instance: Instance,
    *,
    objective: str = "completion",
    method: str = "auto",
    variant: str = "servers",
    stop: StopRule | None = None,
    hints: Iterable[Schedule] = (),
    options: Mapping[str, Sequence[Option]] | None = None,
    widths: bool = False,
    deadlines_s: Mapping[str, float] | None = None,
    seed: int = 0,
    workers: int = 1,
    on_progress: Callable[[SearchState], object] | None = None,
) -> SolveResult:
    """Best schedule of a whole instance, known from the start, in which no job is interrupted.

    The problem is strongly NP-hard. The result has the best schedule found, a lower bound on every schedule, and says
    whether they meet. Lists and a local search come first; an exact method starts from their schedule and never
    returns a worse one. Times are whole microseconds, divided by what they have in common.

    Jobs of any work may run where their speed does not depend on what else is placed: ``Fixed`` work anywhere,
    ``Profiled`` and ``Elastic`` work on one server or on several, ``Training`` work inside one server. Training work
    that may spread over servers is refused.

    Parameters
    ----------
    instance : Instance
        Cluster and jobs; jobs that never fit are refused in the schedule.
    objective : {"completion", "flow", "makespan"}
        Sum of completion times; sum of completion minus release; last completion minus first release.
    method : str
        One of :data:`METHODS`.
    variant : {"servers", "pool"}
        The instance as it stands, or the same jobs on one pool of all its GPUs.
    stop : StopRule, optional
        When to stop with the best so far; by default after :data:`EFFORT` of deterministic work. Without a rule of
        wall time equal calls have equal results.
    hints : iterable of Schedule
        Schedules to start from, each of all jobs that fit, uninterrupted. The result is not worse than one that is a
        schedule of this problem; of others their order is used.
    options : mapping of str to sequence of Option, optional
        Jobs that may run in one of several ways; by job.
    widths : bool
        Whether elastic jobs may run on any of their widths, at freeze level 0, instead of the GPUs they ask for.
    deadlines_s : mapping of str to float, optional
        Instants in seconds by which jobs must complete; by job.
    seed : int
        Seed of all random choices.
    workers : int
        Threads of a solver; with more than one equal calls may have different results.
    on_progress : callable, optional
        Called with a :class:`~frostline.offline.stop.SearchState` whenever schedule or bound improve. What it raises
        reaches the caller.

    Returns
    -------
    SolveResult
        After Ctrl-C it has the best so far.

    Raises
    ------
    UnknownNameError
        No such objective, method or variant.
    InvalidValueError
        Training work that may spread, a hint that leaves out a job, or times too long for their step.
    TooLargeError
        The method would take too long or too much memory, by an estimate made before.

    Examples
    --------
    >>> from frostline.problem import Cluster, Fixed, Job
    >>> jobs = [Job(id="a", release_s=0, work=Fixed(duration_s=10), gpus=8),
    ...         Job(id="b", release_s=1, work=Fixed(duration_s=2), gpus=4)]
    >>> result = solve(Instance(cluster=Cluster.uniform(2, gpus=4), jobs=jobs), objective="flow")
    >>> result.status.value, result.objective, result.bound, result.schedule.start_us
    ('optimal', 15.0, 15.0, {'a': 3000000, 'b': 1000000})
    """
    goal = Objective(_known("objective", objective, [*Objective]))
    _known("method", method, METHODS)
    chosen = pooled(instance) if _known("variant", variant, VARIANTS) == "pool" else instance
    case = case_of(chosen, goal, options or {}, deadlines_s or {}, widths)
    search = Search(
        case.problem,
        WorkLimit(EFFORT) if stop is None else stop,
        unit_us=case.unit_us,
        offset_us=case.offset_us,
        on_progress=on_progress,
        seed=as_int(seed, "solve", "seed", 0),
        workers=min(as_int(workers, "solve", "workers", 1), _MOST_WORKERS),
    )
    plans = [plan for hint in hints for plan in plan_of(case, hint)]
    explanations = [refusal_explanation(refusal) for refusal in case.refused]
    try:
        families = [missing_type(job, chosen.cluster) for job in case.untyped] or impossible_deadlines(case)
        if families:
            search.infeasible, search.termination = True, Termination.COMPLETE
            explanations += families
        else:
            _searched(case, search, method, plans)
            if search.infeasible:
                explanations += _believed(case, search)
    except KeyboardInterrupt:
        search.termination = Termination.INTERRUPTED
    return _result(case, search, method, tuple(explanations))


def _known(kind: str, name: str, known: Iterable[str]) -> str:
    names = [*map(str, known)]
    if name not in names:
        raise UnknownNameError(kind, name, names)
    return name


def _searched(case: Case, search: Search, method: str, hints: Sequence[Plan]) -> None:
    search.prove(*relaxed(case))
    for plan in hints:
        if search.offer(plan, "hint"):
            search.report()
    heuristics(search)
    if method in _GUARDS and not search.closed:
        _GUARDS[method](search)
    if not search.over() or search.plan is None:
        METHODS[method](search)
    if search.plan is not None:
        search.offer(shifted(case.problem, search.plan), search.source)


def _believed(case: Case, search: Search) -> list[Explanation]:
    """Explanation of a solver's claim that there is no schedule; without one it is not believed."""
    family = isolated(case)
    if family is None:
        search.infeasible, search.termination = False, Termination.GAVE_UP
        return []
    return [family]


def _result(case: Case, search: Search, method: str, explanations: tuple[Explanation, ...]) -> SolveResult:
    plan = None if search.infeasible or (not case.jobs and case.refused) else search.plan
    if plan is None:
        none = search.infeasible or not case.jobs
        status = SolveStatus.INFEASIBLE if none else SolveStatus.UNKNOWN
    else:
        status = SolveStatus.OPTIMAL if search.closed else SolveStatus.FEASIBLE
    state = search.state
    return SolveResult(
        instance=case.chosen(plan),
        schedule=None if plan is None else schedule_of(case, plan),
        goal=case.problem.objective,
        objective_us=None if plan is None else state.objective_us,
        bound_us=state.bound_us,
        status=status,
        termination=search.termination or Termination.COMPLETE,
        source=search.source if plan is not None else "",
        bound_source=search.bound_source,
        method=method,
        runtime_s=state.runtime_s,
        work=search.work,
        explanations=explanations,
    )
