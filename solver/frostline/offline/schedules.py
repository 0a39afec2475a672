"""From a plan to a schedule, and from the schedule of a hint to a plan."""

from __future__ import annotations

from collections.abc import Sequence

from frostline.errors import InvalidValueError
from frostline.offline.build import Case
from frostline.offline.listing import fitted, listed, shifted
from frostline.offline.tasks import Loads, Mode, Plan, Run
from frostline.problem.job import Job, Training
from frostline.problem.placement import Placement
from frostline.problem.schedule import Schedule, Segment

__all__ = ["plan_of", "schedule_of"]


def schedule_of(case: Case, plan: Plan) -> Schedule:
    """Schedule of a plan, as a schedule of ``case.chosen(plan)``; its policy is ``offline-optimal``."""
    unit_us, origin_us = case.unit_us, case.origin_us
    segments = []
    for number, loads in enumerate(_laid_out(case, plan) if case.placement_free else [run.loads for run in plan]):
        start_us = origin_us + plan[number].start * unit_us
        end_us = origin_us + case.problem.end(number, plan[number]) * unit_us
        job = case.jobs[number]
        segments.append(Segment(job.id, start_us, end_us, _placement(job, loads)))
    return Schedule(segments=tuple(segments), refused=case.refused, policy="offline-optimal")


def _laid_out(case: Case, plan: Plan) -> list[Loads]:
    """GPUs of the servers for a plan in which any free ones will do: at every start there are enough."""
    capacities = case.instance.cluster.capacities
    servers, free = tuple(range(len(capacities))), list(capacities)
    found: dict[int, Loads] = {}
    running: list[int] = []
    for number in sorted(range(len(plan)), key=lambda i: (plan[i].start, i)):
        for ended in [i for i in running if case.problem.end(i, plan[i]) <= plan[number].start]:
            running.remove(ended)
            for m, gpus in found[ended]:
                free[m] += gpus
        gpus = case.problem.tasks[number].modes[plan[number].mode].gpus
        loads = fitted(Mode(gpus, 1, servers, 1, len(servers)), free)
        assert loads is not None
        found[number] = loads
        running.append(number)
        for m, taken in loads:
            free[m] -= taken
    return [found[number] for number in range(len(plan))]


def _placement(job: Job, loads: Loads) -> Placement:
    if isinstance(job.work, Training):
        plan = job.work.plan
        return Placement([(loads[0][0], plan.replicas)], plan.gpus_per_replica)
    return Placement.of_loads(loads)


def plan_of(case: Case, schedule: Schedule) -> list[Plan]:
    """Plans of a schedule that is a hint.

    The first is the schedule shifted left, so no worse, where it is one of the problem. Of others, on other servers or
    at other speeds, only the order of starts is used.

    Raises
    ------
    InvalidValueError
        It does not run every job that fits, once.
    """
    segments = {segment.job: segment for segment in schedule.segments}
    if len(segments) < len(schedule.segments):
        twice = next(s.job for s in schedule.segments if segments[s.job] is not s)
        raise InvalidValueError("hint", "job", twice, "runs in several pieces")
    missing = [job.id for job in case.jobs if job.id not in segments]
    if missing:
        raise InvalidValueError("hint", "job", missing[0], "does not run in it")
    runs = [_run(case, number, segments[job.id]) for number, job in enumerate(case.jobs)]
    order = sorted(range(len(runs)), key=lambda i: (segments[case.jobs[i].id].start_us, i))
    plans = [listed(case.problem, order)[0]]
    whole = tuple(run for run in runs if run is not None)
    if len(whole) == len(runs):
        plans.insert(0, shifted(case.problem, whole, order))
    return plans


def _run(case: Case, number: int, segment: Segment) -> Run | None:
    """Run of a segment at no instant in particular, None where it is none of the problem."""
    duration, rest = divmod(segment.end_us - segment.start_us, case.unit_us)
    loads: Loads = segment.placement.loads
    if len(case.problem.capacities) == 1:
        loads = ((0, segment.placement.gpus),)
    index = None if rest else _mode(case.problem.tasks[number].modes, loads, duration)
    return None if index is None else Run(index, 0, loads)


def _mode(modes: Sequence[Mode], loads: Loads, duration: int) -> int | None:
    gpus, used = sum(count for _, count in loads), {m for m, _ in loads}
    for index, mode in enumerate(modes):
        fits = mode.least <= len(used) <= mode.most and used <= set(mode.servers)
        if fits and (mode.gpus, mode.duration) == (gpus, duration):
            return index
    return None
