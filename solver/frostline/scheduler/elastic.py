"""What a reallocation comes to: who stops, who goes on at another freeze level, and who runs where."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from frostline.errors import InvalidValueError
from frostline.policies.base import Share
from frostline.policies.task import Running, Task
from frostline.problem.job import Elastic
from frostline.problem.placement import Placement
from frostline.scheduler.progress import offer_of
from frostline.scheduler.state import State

__all__ = ["Plan", "plan_shares"]


class Plan(NamedTuple):
    """Changes of a reallocation, in the order in which they are made."""

    stops: tuple[Running, ...]
    """Running tasks that lose their GPUs."""
    levels: tuple[tuple[Running, int], ...]
    """Running tasks that go on where they are, and their new levels."""
    starts: tuple[tuple[Task, Placement, int], ...]
    """Tasks that take GPUs, some of them among those that have lost theirs, with their levels."""


def plan_shares(state: State, shares: Iterable[Share]) -> Plan:
    """Plan of a reallocation; nothing is changed.

    Tasks that take GPUs are placed by best fit on what is free then, the widest first. One that the free GPUs do not
    hold within its locality waits.

    Raises
    ------
    InvalidValueError
        A task is named twice, neither waits nor runs, or has started at this very instant; it cannot run on so many
        GPUs, or at that level yet; or all together are to hold more GPUs than there are.
    """
    wishes = list(_wishes(state, shares))
    stops = tuple(run for share, run in wishes if run is not None and share.gpus != run.gpus)
    levels = tuple((run, share.level) for share, run in wishes if run is not None and share.gpus == run.gpus)
    takers = [share for share, run in wishes if share.gpus and (run is None or share.gpus != run.gpus)]
    return Plan(stops, levels, tuple(_placed(state, takers, stops)))


def _wishes(state: State, shares: Iterable[Share]) -> Iterator[tuple[Share, Running | None]]:
    """Shares that change something, each with the run of its task."""
    subject, named = f"policy {state.policy.name!r}", set[int]()
    for share in shares:
        task = share.task
        run = state.runs.get(task.job.id)
        if run is not None and run.task is not task:
            run = None
        if task.number in named or (run is None and task not in state.waiting):
            rule = "is named twice" if task.number in named else "neither waits nor runs"
            raise InvalidValueError(subject, "share", task.job.id, rule)
        named.add(task.number)
        held = (0, 0) if run is None else (run.gpus, offer_of(run).level)
        if (share.gpus, share.level if share.gpus else 0) == held:
            continue
        if run is not None and run.start_us >= state.now_us:
            raise InvalidValueError(subject, "share", task.job.id, "has started at this very instant")
        if share.gpus:
            _check(state, share, subject)
        yield share, run


def _check(state: State, share: Share, subject: str) -> None:
    """Refuse GPUs and levels that a task cannot take now."""
    task, gpus, level = share
    work, name = task.job.work, f"job {task.job.id!r}"
    if not isinstance(work, Elastic):
        if (gpus, level) != (task.gpus, 0):
            rule = f"of {subject} must be {task.gpus} GPUs at level 0: the work is not elastic"
            raise InvalidValueError(name, "share", (gpus, level), rule)
        return
    if gpus not in work.widths or not 0 <= level < work.levels:
        widths = ", ".join(map(str, work.widths))
        rule = f"of {subject} must be {widths} GPUs at a level from 0 to {work.levels - 1}"
        raise InvalidValueError(name, "share", (gpus, level), rule)
    if level and not work.may_freeze(state.done(task), task.done + work.iterations):
        rule = f"of {subject} must be 0 until {work.warm_up:g} of the iterations are done"
        raise InvalidValueError(name, "level", level, rule)


def _placed(state: State, takers: list[Share], stops: Iterable[Running]) -> Iterator[tuple[Task, Placement, int]]:
    """Tasks with the GPUs that they take."""
    free = state.free.copy()
    for run in stops:
        free.give(run.loads)
    wanted = sum(share.gpus for share in takers)
    if wanted > free.total:
        rule = f"must be at most {free.total}, what is free then"
        raise InvalidValueError(f"policy {state.policy.name!r}", "GPUs of all shares", wanted, rule)
    for share in sorted(takers, key=lambda share: (-share.gpus, share.task.number)):
        placement = state.placement_of(share.task, free, share.gpus)
        if placement is not None:
            free.take(placement.loads)
            yield share.task, placement, share.level
