"""A job as the scheduler sees it: everything a policy may ask, in whole microseconds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from frostline.placement.free_gpus import Loads, Shape
from frostline.problem.job import Job

__all__ = ["Running", "Task"]


@dataclass(slots=True, eq=False, kw_only=True)
class Task:
    """A submitted job.

    Parameters
    ----------
    job : Job
        The job as submitted.
    release_us : int
        Release time.
    shape : Shape
        GPUs it asks for and on how many servers at most.
    duration_us : int
        Shortest duration over all placements; the duration itself where placement does not matter.
    steady : bool
        Whether the duration is the same on any GPUs.
    number : int
        Position in the order (release, id) of arrival, -1 before it; it breaks every tie.
    """

    job: Job
    release_us: int
    shape: Shape
    duration_us: int
    steady: bool = True
    number: int = -1
    priority: Any = None
    due_us: int | None = field(default=None)
    """Virtual completion, rounded up, once it has passed; None before."""

    @property
    def gpus(self) -> int:
        """GPUs it asks for."""
        return self.shape.gpus

    @property
    def work(self) -> int:
        """GPU-microseconds of its shortest run: its size on the virtual machine."""
        return self.shape.gpus * self.duration_us


class Running(NamedTuple):
    """A task that holds GPUs; sorted by (expected end, number)."""

    end_us: int
    number: int
    task: Task
    loads: Loads
    gpus: int
    on_budget: bool = False
    """Whether it was started out of order on the budget."""
