"""From an instance to the problem that exact methods see, and back to the instance that its schedule is one of."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from frostline.errors import InvalidValueError
from frostline.offline.tasks import Mode, Objective, Plan, Problem, Task
from frostline.problem.cluster import Cluster
from frostline.problem.instance import Instance
from frostline.problem.job import Elastic, Fixed, Job, Locality, Training
from frostline.problem.pieces import servers_needed
from frostline.problem.placement import Placement
from frostline.problem.refusal import Refusal, never_fits
from frostline.timing.duration import job_duration_us
from frostline.units import as_finite, as_int, duration_us, instant_us

__all__ = ["Case", "Option", "case_of", "pooled"]

_LONGEST = 10**15
"""Most units of time, times GPUs or jobs, that the sums of a solver hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One of several ways to run a job, such as a width or a freeze level.

    A job with options is a job of fixed duration in the schedule that is found.

    Parameters
    ----------
    gpus : int
        GPUs it holds, at least 1.
    duration_s : float
        Run time in seconds on any placement that the locality of the job allows, above 0.
    penalty_s : float
        Seconds added to the completion time of the job in the objective, at least 0.

    Examples
    --------
    >>> Option(gpus=4, duration_s=60).penalty_s
    0.0
    """

    gpus: int
    duration_s: float
    penalty_s: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "gpus", as_int(self.gpus, "option", "gpus", 1))
        object.__setattr__(self, "duration_s", Fixed(duration_s=self.duration_s).duration_s)
        object.__setattr__(self, "penalty_s", as_finite(self.penalty_s, "option", "penalty_s", 0.0))


class _Way(NamedTuple):
    """A mode in microseconds."""

    gpus: int
    duration_us: int
    servers: tuple[int, ...]
    least: int = 1
    most: int = 1
    penalty_us: int = 0
    option: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A problem with what leads back to its instance.

    Parameters
    ----------
    instance : Instance
        The instance, pooled where that was asked for.
    jobs : tuple of Job
        The jobs that run, in the order of the tasks.
    refused : tuple of Refusal
        The jobs that never fit.
    untyped : tuple of Job
        The training jobs that no server large enough can run in their precision.
    problem : Problem
        What exact methods see.
    unit_us, origin_us : int
        A unit of time, and the first release, in microseconds.
    placement_free : bool
        Whether any free GPUs will do for every job, so that the problem has one server that holds all GPUs.
    deadlines_us : mapping of str to int
        Deadlines in microseconds, by job; the problem has the last whole unit before them.
    choices : mapping of str to tuple of Job
        What each job becomes by its options or widths, where it has some.
    """

    instance: Instance
    jobs: tuple[Job, ...]
    refused: tuple[Refusal, ...]
    untyped: tuple[Job, ...]
    problem: Problem
    unit_us: int
    origin_us: int
    placement_free: bool
    deadlines_us: Mapping[str, int]
    choices: Mapping[str, tuple[Job, ...]]

    @property
    def offset_us(self) -> int:
        """What the objective in microseconds has above the value of a plan in units."""
        if self.problem.objective is not Objective.COMPLETION:
            return 0
        return sum(instant_us(job.release_s) for job in self.jobs)

    def chosen(self, plan: Plan | None) -> Instance:
        """Instance in which each job with options has the one that a plan chose, or the narrowest if none fits."""
        if not self.choices or plan is None:
            return self.instance
        refused = {refusal.job for refusal in self.refused}
        chosen = {job: min(rivals, key=_gpus) for job, rivals in self.choices.items() if job in refused}
        chosen |= {job.id: self._chosen(job, task, plan) for task, job in enumerate(self.jobs)}
        return self.instance.replace(jobs=[chosen.get(job.id, job) for job in self.instance.jobs])

    def _chosen(self, job: Job, task: int, plan: Plan) -> Job:
        if job.id not in self.choices:
            return job
        return self.choices[job.id][self.problem.tasks[task].modes[plan[task].mode].option]


def pooled(instance: Instance) -> Instance:
    """The instance on one pool of all its GPUs, where servers do not matter.

    Examples
    --------
    >>> pooled(Instance(cluster=Cluster.uniform(3), jobs=())).cluster.capacities
    (24,)
    """
    servers = instance.cluster.servers
    if len(servers) < 2:
        return instance
    if len(instance.cluster.gpu_types) > 1 and any(isinstance(job.work, Training) for job in instance.jobs):
        names = ", ".join(kind.name for kind in instance.cluster.gpu_types)
        raise InvalidValueError("variant pool", "gpu_types", names, "must be one type where training work is timed")
    first = servers[0]
    pool = Cluster.pool(instance.cluster.gpus, gpu_type=first.gpu_type, nvlink_bytes_per_s=first.nvlink_bytes_per_s)
    jobs = [job.replace(locality=Locality.ANY) for job in instance.jobs]
    return instance.replace(cluster=pool, jobs=jobs)


def case_of(
    instance: Instance,
    objective: Objective,
    options: Mapping[str, Sequence[Option]],
    deadlines_s: Mapping[str, float],
    widths: bool = False,
) -> Case:
    """The problem of an instance.

    Raises
    ------
    InvalidValueError
        A job with placements of too many speeds, options or a deadline of a job that there is not, or times that are
        too long for their step.
    """
    _check_names(instance, options, "options")
    _check_names(instance, deadlines_s, "deadlines_s")
    cluster = instance.cluster
    choices = {job.id: found for job in instance.jobs if (found := _choices(job, options.get(job.id), widths))}
    ways: dict[str, tuple[_Way, ...]] = {}
    refused = []
    for job in instance.jobs:
        rivals = choices.get(job.id, (job,))
        fit = [(number, one) for number, one in enumerate(rivals) if never_fits(one, cluster) is None]
        if not fit:
            refusal = never_fits(min(rivals, key=_gpus), cluster)
            refused += [] if refusal is None else [refusal]
        penalties = [duration_us(option.penalty_s) for option in options.get(job.id, ())] or [0] * len(rivals)
        ways[job.id] = tuple(
            way._replace(option=number, penalty_us=penalties[number])
            for number, one in fit
            for way in _ways(one, cluster)
        )
    never = {refusal.job for refusal in refused}
    untyped = tuple(job for job in instance.jobs if not ways[job.id] and job.id not in never)
    return _scaled(instance, tuple(refused), untyped, ways, objective, choices, deadlines_s)


def _gpus(job: Job) -> int:
    return job.gpus


def _check_names(instance: Instance, given: Mapping[str, object], field: str) -> None:
    known = {job.id for job in instance.jobs}
    for name in given:
        if name not in known:
            raise InvalidValueError("instance", field, name, "is not the id of a job")


def _choices(job: Job, options: Sequence[Option] | None, widths: bool) -> tuple[Job, ...]:
    """What a job becomes by each of its options, or of its widths if those are free; nothing where it is rigid."""
    if options is not None:
        if not options:
            raise InvalidValueError(f"job {job.id!r}", "options", options, "must not be empty")
        return tuple(job.replace(gpus=one.gpus, work=Fixed(duration_s=one.duration_s)) for one in options)
    if widths and isinstance(job.work, Elastic):
        return tuple(job.replace(gpus=gpus) for gpus in job.work.widths)
    return ()


def _ways(job: Job, cluster: Cluster) -> tuple[_Way, ...]:
    """Every way in which a job that fits may be placed, with how long it takes there."""
    if isinstance(job.work, Training):
        return _training_ways(job, cluster)
    everywhere = tuple(range(len(cluster.servers)))
    large = tuple(m for m in everywhere if cluster.capacities[m] >= job.gpus)
    most = {Locality.ANY: len(everywhere), Locality.SERVER: 1}.get(job.locality) or servers_needed(job, cluster)
    ways = []
    if large:
        time_us = job_duration_us(job, cluster, Placement.of_loads([(0, job.gpus)]))
        ways.append(_Way(job.gpus, time_us, large))
    if most > 1 and job.gpus > 1:
        time_us = job_duration_us(job, cluster, Placement.of_loads([(0, 1), (1, job.gpus - 1)]))
        ways.append(_Way(job.gpus, time_us, everywhere, 2, min(most, job.gpus)))
    if len(ways) == 2 and ways[0].duration_us == ways[1].duration_us:
        return (ways[1]._replace(least=1),)
    return tuple(ways)


def _training_ways(job: Job, cluster: Cluster) -> tuple[_Way, ...]:
    """Ways of training work, where servers hold all of it: there its time does not depend on what else is placed."""
    assert isinstance(job.work, Training)
    large = [m for m, room in enumerate(cluster.capacities) if room >= job.gpus]
    if not large or (len(cluster.servers) > 1 and job.gpus > 1 and job.locality is Locality.ANY):
        rule = (
            "must be 'server' (or 'fewest', where one server holds it): its speed on several depends on the placement"
        )
        raise InvalidValueError(f"job {job.id!r}", "locality", job.locality.value, f"of training work {rule}")
    plan = job.work.plan
    by_time: dict[int, list[int]] = {}
    for m in large:
        if plan.precision in cluster.servers[m].gpu_type.peak_flops:
            time_us = job_duration_us(job, cluster, Placement([(m, plan.replicas)], plan.gpus_per_replica))
            by_time.setdefault(time_us, []).append(m)
    return tuple(_Way(job.gpus, time_us, tuple(servers)) for time_us, servers in by_time.items())


def _scaled(
    instance: Instance,
    refused: tuple[Refusal, ...],
    untyped: tuple[Job, ...],
    ways: Mapping[str, Sequence[_Way]],
    objective: Objective,
    choices: Mapping[str, tuple[Job, ...]],
    deadlines_s: Mapping[str, float],
) -> Case:
    jobs = tuple(job for job in instance.jobs if ways[job.id])
    release_us = [instant_us(job.release_s) for job in jobs]
    origin_us = min(release_us, default=0)
    times = [time_us for job in jobs for way in ways[job.id] for time_us in (way.duration_us, way.penalty_us)]
    unit_us = math.gcd(*times, *(at_us - origin_us for at_us in release_us)) or 1
    free = _placement_free(instance.cluster, [way for job in jobs for way in ways[job.id]])
    deadlines_us = {job.id: _deadline_us(job, deadlines_s[job.id]) for job in jobs if job.id in deadlines_s}
    tasks = []
    for job, at_us in zip(jobs, release_us, strict=True):
        modes = tuple(_mode(way, unit_us, free) for way in ways[job.id])
        due_us = deadlines_us.get(job.id)
        deadline = None if due_us is None else (due_us - origin_us) // unit_us
        tasks.append(Task((at_us - origin_us) // unit_us, modes, deadline))
    capacities = (instance.cluster.gpus,) if free else instance.cluster.capacities
    problem = Problem(capacities, tuple(tasks), objective)
    _check_horizon(problem, unit_us)
    return Case(
        instance=instance,
        jobs=jobs,
        refused=refused,
        untyped=untyped,
        problem=problem,
        unit_us=unit_us,
        origin_us=origin_us,
        placement_free=free,
        deadlines_us=deadlines_us,
        choices=choices,
    )


def _placement_free(cluster: Cluster, ways: Sequence[_Way]) -> bool:
    """Whether any free GPUs will do for every way."""
    servers = len(cluster.servers)
    return all(way.least == 1 and (way.gpus == 1 or way.most >= min(servers, way.gpus)) for way in ways) and all(
        len(way.servers) == servers for way in ways
    )


def _mode(way: _Way, unit_us: int, free: bool) -> Mode:
    duration, penalty = way.duration_us // unit_us, way.penalty_us // unit_us
    if free:
        return Mode(way.gpus, duration, penalty=penalty, option=way.option)
    return Mode(way.gpus, duration, way.servers, way.least, way.most, penalty, way.option)


def _deadline_us(job: Job, deadline_s: float) -> int:
    return instant_us(as_finite(deadline_s, f"job {job.id!r}", "deadline_s", -9e9))


def _check_horizon(problem: Problem, unit_us: int) -> None:
    longest = problem.horizon * max(problem.gpus, len(problem.tasks), 1)
    if longest > _LONGEST:
        rule = f"is too large a horizon for a time step of {unit_us} µs: times GPUs and jobs at most {_LONGEST} steps"
        raise InvalidValueError("instance", "horizon_us", problem.horizon * unit_us, rule)
