"""A job as the scheduler sees it: everything a policy may ask, in whole microseconds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

from frostline.placement.free_gpus import Loads, Shape
from frostline.problem.job import Job
from frostline.problem.placement import Placement

__all__ = ["Belief", "Offer", "Past", "Running", "StartKind", "Task"]


class Offer(NamedTuple):
    """GPUs for a task, and how long it would run on them, as believed, at a freeze level."""

    placement: Placement
    duration_us: int
    level: int = 0


class StartKind(IntEnum):
    """How a start stands to the order that a policy keeps; false for the plain one."""

    IN_ORDER = 0
    """In order, or while no order is kept."""
    BACKFILL = 1
    """Out of order, because it should end before the blocked head can start."""
    ON_BUDGET = 2
    """Out of order, on the budget."""


class Belief(NamedTuple):
    """What is believed of a job whose size is predicted; the median is the task's own ``duration_us``.

    Parameters
    ----------
    low_us, high_us : int
        Shortest duration over all placements if the job is small, and if it is large.
    virtual_work : int
        GPU-microseconds that the virtual machine is fed, at least 1.
    cold_start : bool
        Whether nothing was known of jobs like it.
    """

    low_us: int
    high_us: int
    virtual_work: int
    cold_start: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What a task has gone through in all its runs but the present one. From then on its job tells what is left.

    Parameters
    ----------
    first_start_us, evicted_us : int
        When it first started, and when it last lost its GPUs or changed its freeze level.
    evictions : int
        How often it has lost its GPUs.
    held_us : int
        GPU-microseconds that it has held.
    done : int
        Useful work that is kept: whole iterations, or microseconds where its work is ``Fixed``.
    frozen : tuple of (int, int, int)
        Stretches of training with frozen layers: iterations done at its start and at its end, and the level.
    """

    first_start_us: int
    evicted_us: int
    evictions: int
    held_us: int
    done: int
    frozen: tuple[tuple[int, int, int], ...] = ()


@dataclass(slots=True, eq=False, init=False)
class Task:
    """A submitted job.

    Parameters
    ----------
    job : Job
        The job as submitted; where sizes are predicted, with the size that is believed.
    release_us : int
        Release time.
    shape : Shape
        GPUs it asks for and on how many servers at most.
    duration_us : int
        Shortest duration over all placements; the duration itself where placement does not matter. The median of what
        is believed where sizes are predicted.
    steady : bool
        Whether the duration is the same on any GPUs.
    number : int
        Position in the order (release, id) of arrival, -1 before it; it breaks every tie.
    """

    job: Job
    release_us: int
    shape: Shape
    duration_us: int
    steady: bool
    number: int
    priority: Any
    due_us: int | None
    """Virtual completion, rounded up, once it has passed; None before."""
    belief: Belief | None
    """None where sizes are taken as they are submitted."""
    high_us: int
    """Duration that is surely, or very likely, enough."""
    past: Past | None
    """What it went through before its present run; None in its first one."""

    def __init__(
        self,
        *,
        job: Job,
        release_us: int,
        shape: Shape,
        duration_us: int,
        steady: bool = True,
        number: int = -1,
        priority: Any = None,
    ) -> None:
        self.job = job
        self.release_us = release_us
        self.shape = shape
        self.duration_us = self.high_us = duration_us
        self.steady = steady
        self.number = number
        self.priority = priority
        self.due_us = self.belief = self.past = None

    @property
    def gpus(self) -> int:
        """GPUs it asks for."""
        return self.shape.gpus

    @property
    def done(self) -> int:
        """Useful work of all its runs but the present one."""
        return 0 if self.past is None else self.past.done

    @property
    def work(self) -> int:
        """GPU-microseconds of its shortest run."""
        return self.shape.gpus * self.duration_us

    def low_of(self, duration_us: int) -> int:
        """How short a run may be that would take so long at the median, at least a microsecond."""
        belief = self.belief
        return duration_us if belief is None else max(duration_us * belief.low_us // self.duration_us, 1)

    def high_of(self, duration_us: int) -> int:
        """How long a run may be that would take so long at the median."""
        belief = self.belief
        return duration_us if belief is None else -(duration_us * belief.high_us // -self.duration_us)


class Running(NamedTuple):
    """A task that holds GPUs; sorted by (expected end, number)."""

    end_us: int
    """When it ends at the earliest, by what is believed."""
    number: int
    task: Task
    loads: Loads
    gpus: int
    kind: StartKind = StartKind.IN_ORDER
    start_us: int = 0
    offer: Offer | None = None
    """Where it runs, and for how long by the median of what is believed, without its restart."""
    restart_us: int = 0
    """How long it takes at first to be where it was when it was evicted, or to change its freeze level."""

    def held_us(self, now_us: int) -> int:
        """GPU-microseconds that its task has held in all its runs."""
        past = self.task.past
        return self.gpus * (now_us - self.start_us) + (0 if past is None else past.held_us)

    def left_us(self, now_us: int) -> int:
        """How long it still runs, at least a microsecond: what is known, or the median of what is believed."""
        end_us = self.end_us
        if self.task.belief is not None and self.offer is not None:
            end_us = max(end_us, self.start_us + self.restart_us + self.offer.duration_us)
        return max(end_us - now_us, 1)
