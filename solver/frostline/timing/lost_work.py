"""What a failure leaves of a job: the work up to the last checkpoint of its run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from frostline.problem.cluster import Cluster
from frostline.problem.job import Job
from frostline.problem.outage import Downtimes
from frostline.problem.placement import Placement
from frostline.problem.schedule import Segment, goes_on
from frostline.timing.duration import left_after

__all__ = ["Stint", "WorkLeft", "last_checkpoint", "left_after_failure"]


class Stint(NamedTuple):
    """A part of a run at one freeze level.

    Parameters
    ----------
    left : Job
        The job with what was left of it when the part began.
    placement : Placement
        Where it ran.
    level : int
        Its freeze level.
    worked_us : int
        How long it worked, without the pause at the start.
    """

    left: Job
    placement: Placement
    level: int
    worked_us: int


def left_after_failure(run: Sequence[Stint], cluster: Cluster) -> Job:
    """The job with what is left of it after a run that a failure has cut off, before it was complete.

    Checkpoints are counted over the whole run, whatever the freeze levels on the way: of ``Fixed`` work the
    microseconds up to the last one are kept, of other work the whole iterations done by then.

    Parameters
    ----------
    run : sequence of Stint
        The parts of the run, at least one.
    cluster : Cluster
        The servers.

    Examples
    --------
    >>> from frostline.problem import Profiled
    >>> work = Profiled(iterations=10, seconds_per_iteration={"one_server": 8})
    >>> job = Job(id="a", release_s=0, gpus=1, work=work, checkpoint_s=30)
    >>> stint = Stint(job, Placement([(0, (1,))]), 0, 70_000_000)
    >>> left_after_failure([stint], Cluster.uniform(1)).work.iterations
    3
    """
    part, saved_us = last_checkpoint(run[0].left, [stint.worked_us for stint in run])
    return _left(run[part], saved_us, cluster)


def last_checkpoint(job: Job, worked_us: Sequence[int]) -> tuple[int, int]:
    """In which part of a run a job has last saved its state, and after how many microseconds of work there.

    Parameters
    ----------
    job : Job
        The job.
    worked_us : sequence of int
        How long it has worked in each part of the run, at least one.

    Examples
    --------
    >>> from frostline.problem import Fixed
    >>> job = Job(id="a", release_s=0, gpus=1, work=Fixed(duration_s=100), checkpoint_s=30)
    >>> last_checkpoint(job, [40_000_000, 25_000_000]), last_checkpoint(job, [40_000_000, 5_000_000])
    ((1, 20000000), (0, 30000000))
    """
    saved_us = job.saved_us(sum(worked_us))
    for part, part_us in enumerate(worked_us[:-1]):
        if saved_us <= part_us:
            return part, saved_us
        saved_us -= part_us
    return len(worked_us) - 1, saved_us


def _left(stint: Stint, saved_us: int, cluster: Cluster) -> Job:
    return left_after(stint.left, cluster, stint.placement, saved_us, stint.level)


class WorkLeft:
    """What is left of a job from piece to piece of a schedule.

    Parameters
    ----------
    job : Job
        The job.
    cluster : Cluster
        The servers.
    downtimes : Downtimes
        When they are down.

    Attributes
    ----------
    left : Job
        The job with what is left of it.
    """

    __slots__ = ("_cluster", "_downtimes", "_run", "left")

    def __init__(self, job: Job, cluster: Cluster, downtimes: Downtimes) -> None:
        self.left, self._cluster, self._downtimes = job, cluster, downtimes
        self._run: list[Stint] = []

    def end(self, piece: Segment, pause_us: int, after: Segment | None) -> None:
        """A piece, which began with a pause, ends before the job is complete; the job loses what a failure costs it.

        Parameters
        ----------
        piece, after : Segment
            The piece, and the one after it, None if there is none.
        pause_us : int
            How long it did nothing at first.
        """
        worked_us = max(piece.end_us - piece.start_us - pause_us, 0)
        self._run.append(Stint(self.left, piece.placement, piece.freeze_level, worked_us))
        if self._downtimes.fails(piece.placement.servers, piece.end_us):
            self.left = left_after_failure(self._run, self._cluster)
        else:
            self.left = _left(self._run[-1], worked_us, self._cluster)
        if after is None or not goes_on(piece, after):
            self._run.clear()
