"""Why a request is impossible: the smallest family of constraints that we can isolate, and the jobs in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from operator import attrgetter

from frostline.offline.brute_force import MOST_STEPS, brute_force, steps
from frostline.offline.build import Case
from frostline.offline.cpsat import cpsat
from frostline.offline.search import Search, log
from frostline.offline.stop import WorkLimit
from frostline.offline.tasks import Problem, Task
from frostline.problem.cluster import Cluster, Server
from frostline.problem.job import Job, Training
from frostline.problem.placement import Placement
from frostline.problem.refusal import Refusal
from frostline.timing.duration import job_duration_us
from frostline.units import instant_us, seconds

__all__ = ["ConstraintKind", "Explanation", "impossible_deadlines", "isolated", "missing_type", "refusal_explanation"]

_WORK = 2.0
_SUMS = "arithmetic"


class ConstraintKind(StrEnum):
    """The kinds of constraints of a family."""

    CAPACITY = "capacity"  # GPUs of the cluster, or of a server
    DEADLINE = "deadline"  # instants by which jobs must complete
    TYPE = "type"  # GPU types of servers: the precisions that they have, and their speeds


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Constraints that exclude each other.

    Parameters
    ----------
    kinds : tuple of ConstraintKind
        Kinds of constraints in the family.
    jobs : tuple of str
        Jobs whose constraints are in it.
    text : str
        One sentence for people.
    proof : str
        What shows it: ``arithmetic``, ``brute-force`` or ``cpsat``.
    """

    kinds: tuple[ConstraintKind, ...]
    jobs: tuple[str, ...]
    text: str
    proof: str


def refusal_explanation(refusal: Refusal) -> Explanation:
    """Explanation of a job that never fits.

    Examples
    --------
    >>> from frostline.problem import Cluster, Fixed, Job, never_fits
    >>> job = Job(id="x", release_s=0, work=Fixed(duration_s=1), gpus=17)
    >>> refusal_explanation(never_fits(job, Cluster.uniform(2))).text
    "job 'x': gpus=17 but the whole cluster has 16"
    """
    return Explanation(kinds=(ConstraintKind.CAPACITY,), jobs=(refusal.job,), text=refusal.text, proof=_SUMS)


def missing_type(job: Job, cluster: Cluster) -> Explanation:
    """Explanation of training work that no server large enough can run in its precision.

    Examples
    --------
    >>> from frostline.problem import GpuType, Server, Training, TrainingPlan, shipped_network
    >>> plan = TrainingPlan.balanced(shipped_network("resnet50"), gpus=4, stages=1, precision="bf16")
    >>> job = Job(id="x", release_s=0, work=Training(plan=plan, iterations=1), gpus=4, locality="server")
    >>> old, new = (GpuType(name=n, peak_flops={p: 1e14}) for n, p in [("old", "fp16"), ("new", "bf16")])
    >>> servers = [Server(id="a", gpus=8, gpu_type=old), Server(id="b", gpus=2, gpu_type=new)]
    >>> print(missing_type(job, Cluster(servers=servers)).text)
    job 'x': gpus=4 in one server of a GPU type with precision 'bf16', but the largest such server has 2
    >>> print(missing_type(job, Cluster(servers=servers[:1])).text)
    job 'x': precision 'bf16' is none of GPU type 'old', and the cluster has no other
    """
    assert isinstance(job.work, Training)
    precision = job.work.plan.precision
    rooms = [server.gpus for server in cluster.servers if precision in server.gpu_type.peak_flops]
    if rooms:
        where = (
            f"in one server of a GPU type with precision {precision!r}, but the largest such server has {max(rooms)}"
        )
        kinds: tuple[ConstraintKind, ...] = (ConstraintKind.CAPACITY, ConstraintKind.TYPE)
        return Explanation(kinds=kinds, jobs=(job.id,), text=f"job {job.id!r}: gpus={job.gpus} {where}", proof=_SUMS)
    names = [kind.name for kind in cluster.gpu_types]
    types = f"type {names[0]!r}" if len(names) == 1 else f"types {', '.join(map(repr, names))}"
    text = f"job {job.id!r}: precision {precision!r} is none of GPU {types}, and the cluster has no other"
    return Explanation(kinds=(ConstraintKind.TYPE,), jobs=(job.id,), text=text, proof=_SUMS)


def impossible_deadlines(case: Case) -> list[Explanation]:
    """Deadlines that arithmetic shows to be impossible: of one job alone, or more work than GPUs in some interval.

    In an interval a job must do at least what is left of it however early or late it runs, between its release and its
    deadline (J. Erschler, P. Lopez, C. Thuriot, *Raisonnement temporel sous contraintes de ressource et problèmes
    d'ordonnancement*, Revue d'Intelligence Artificielle 5(3), 1991).
    """
    problem = case.problem
    due = [i for i, task in enumerate(problem.tasks) if task.deadline is not None]
    for number in due:
        task = problem.tasks[number]
        if task.release + task.least_duration > _deadline(task):
            return [_alone(case, number)]
    families = list(_overfull(problem, due))
    if not families:
        return []
    _, begin, end, family, energy = min(families)
    jobs = tuple(case.jobs[i].id for i in family)
    begin_s, end_s = (seconds(case.origin_us + at * case.unit_us) for at in (begin, end))
    needed = seconds(energy * case.unit_us)
    offered = seconds(problem.gpus * (end - begin) * case.unit_us)
    text = (
        f"by their deadlines jobs {', '.join(map(repr, jobs))} need {needed:g} GPU-seconds "
        f"from {begin_s:g} s to {end_s:g} s, but {problem.gpus} GPUs have {offered:g}"
        f"{_rounding(case, jobs)}"
    )
    kinds = (ConstraintKind.CAPACITY, ConstraintKind.DEADLINE)
    return [Explanation(kinds=kinds, jobs=jobs, text=text, proof=_SUMS)]


def _deadline(task: Task) -> int:
    assert task.deadline is not None
    return task.deadline


def _alone(case: Case, number: int) -> Explanation:
    job, task = case.jobs[number], case.problem.tasks[number]
    length_s = seconds(task.least_duration * case.unit_us)
    due_s = seconds(case.deadlines_us[job.id])
    when = f"from its release at {job.release_s:g} s, past its deadline at {due_s:g} s"
    text = f"job {job.id!r} runs for at least {length_s:g} s {when}"
    kinds: tuple[ConstraintKind, ...] = (ConstraintKind.DEADLINE,)
    small = _fast_but_small(job, case)
    if small is not None:
        kinds = (ConstraintKind.CAPACITY, ConstraintKind.DEADLINE, ConstraintKind.TYPE)
        why = f"is fast enough, but has {small.gpus} of the {job.gpus} GPUs"
        text += f"; server {small.id!r} of GPU type {small.gpu_type.name!r} {why}"
    return Explanation(kinds=kinds, jobs=(job.id,), text=text, proof=_SUMS)


def _fast_but_small(job: Job, case: Case) -> Server | None:
    """A server on whose GPU type a job would meet its deadline, if it only had enough GPUs."""
    if not isinstance(job.work, Training):
        return None
    plan, left_us = job.work.plan, case.deadlines_us[job.id] - instant_us(job.release_s)
    for server in case.instance.cluster.servers:
        if server.gpus < job.gpus and plan.precision in server.gpu_type.peak_flops:
            large = Cluster(servers=(replace(server, gpus=job.gpus),))
            if job_duration_us(job, large, Placement([(0, plan.replicas)], plan.gpus_per_replica)) <= left_us:
                return server
    return None


def _rounding(case: Case, jobs: Sequence[str]) -> str:
    """What to add where deadlines lie between two units of time."""
    if all((case.deadlines_us[job] - case.origin_us) % case.unit_us == 0 for job in jobs):
        return ""
    return f"; jobs that start as early as they can end after whole multiples of {seconds(case.unit_us):g} s"


def _overfull(problem: Problem, due: Sequence[int]) -> Iterator[tuple[int, int, int, tuple[int, ...], int]]:
    """Smallest families of tasks with more work in an interval than it holds: their size, interval and work."""
    tasks = problem.tasks
    for begin in sorted({tasks[i].release for i in due}):
        for end in sorted({_deadline(tasks[i]) for i in due}):
            if end <= begin:
                continue
            needs = sorted((-_energy(tasks[i], begin, end), i) for i in due)
            energy, family = 0, list[int]()
            for need, number in needs:
                energy -= need
                family.append(number)
                if need == 0 or energy > problem.gpus * (end - begin):
                    break
            if energy > problem.gpus * (end - begin):
                yield len(family), begin, end, tuple(sorted(family)), energy


def _energy(task: Task, begin: int, end: int) -> int:
    """GPU-time that a task takes at least in an interval, in any mode and wherever its window lets it run."""
    return min(
        mode.gpus
        * max(
            0,
            min(
                mode.duration,
                end - begin,
                task.release + mode.duration - begin,
                end - (_deadline(task) - mode.duration),
            ),
        )
        for mode in task.modes
    )


def isolated(case: Case) -> Explanation | None:
    """Smallest family of deadlines that CP-SAT shows to be impossible, by leaving out one job after another.

    None where it cannot show it again, or where brute force finds a plan of the family: then the solver is at fault.
    """
    problem = case.problem
    family = [i for i, task in enumerate(problem.tasks) if task.deadline is not None]
    if not _impossible(problem.only(family)):
        return None
    for number in sorted(family, key=lambda i: (-_deadline(problem.tasks[i]), i)):
        fewer = [i for i in family if i != number]
        if _impossible(problem.only(fewer)):
            family = fewer
    proof = "cpsat"
    if steps(problem.only(family)) <= MOST_STEPS:
        search = Search(problem.only(family))
        brute_force(search)
        if search.plan is not None:
            log.error("CP-SAT calls deadlines impossible that a plan of brute force meets; it is not believed")
            return None
        proof = "brute-force"
    jobs = tuple(case.jobs[i].id for i in family)
    text = (
        f"jobs {', '.join(map(repr, jobs))} cannot all meet their deadlines on {problem.gpus} GPUs; "
        "without any one of them the others can, or it is not known"
    )
    kinds: tuple[ConstraintKind, ...] = (ConstraintKind.CAPACITY, ConstraintKind.DEADLINE)
    alike = _of_one_type(case, family)
    if alike is not None and not _impossible(alike):
        kinds += (ConstraintKind.TYPE,)
        text += "; were all servers of the GPU type that is best for each, they could, or it is not known"
    return Explanation(kinds=kinds, jobs=jobs, text=text, proof=proof)


def _of_one_type(case: Case, family: Sequence[int]) -> Problem | None:
    """Some tasks, if every server that has the GPUs for one ran it at its shortest; None where types do not matter."""
    if len(case.instance.cluster.gpu_types) == 1 or not any(isinstance(case.jobs[i].work, Training) for i in family):
        return None
    problem = case.problem
    tasks = []
    for number in family:
        task = problem.tasks[number]
        if isinstance(case.jobs[number].work, Training):
            best = min(task.modes, key=attrgetter("duration"))
            servers = tuple(m for m, gpus in enumerate(problem.capacities) if gpus >= best.gpus)
            task = task._replace(modes=(best._replace(servers=servers),))
        tasks.append(task)
    return Problem(problem.capacities, tuple(tasks), problem.objective)


def _impossible(problem: Problem) -> bool:
    """Whether CP-SAT finds no plan at all."""
    search = Search(problem, WorkLimit(_WORK))
    cpsat(search)
    return search.infeasible
