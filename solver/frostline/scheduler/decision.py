"""What a scheduler answers: whom to start, to stop, and when to ask again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from frostline.policies.task import Offer, Running
from frostline.problem.schedule import Segment
from frostline.units import seconds

__all__ = ["Decision", "decision_of", "segment_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to do now.

    Parameters
    ----------
    starts : tuple of Segment
        Jobs to start at once, with their GPUs, their freeze level and the expected end: the median where sizes are
        predicted. A job that runs and is not evicted goes on where it is, at that level.
    wake_s : float or None
        Call :meth:`Scheduler.advance` by then, even if nothing happens before.
    evictions : tuple of str
        Running jobs that lose their GPUs, before the first start. They wait, and may be started again at once.
    failed : tuple of str
        Jobs that have lost all their GPUs, on every server, because a server of theirs has failed, and all work since
        their last checkpoint. Stop what is left of them before anything else; like the evicted ones they wait.
    """

    starts: tuple[Segment, ...]
    wake_s: float | None
    evictions: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


def decision_of(
    starts: Iterable[Segment], wake_us: int | None, evictions: Iterable[str], failed: tuple[str, ...] = ()
) -> Decision:
    """Decision with the time to wake in seconds."""
    wake_s = None if wake_us is None else seconds(wake_us)
    return Decision(starts=tuple(starts), wake_s=wake_s, evictions=tuple(evictions), failed=failed)


def segment_of(run: Running, offer: Offer) -> Segment:
    """What a run is expected to be."""
    start_us = run.start_us
    end_us = start_us + run.restart_us + offer.duration_us
    return Segment(run.task.job.id, start_us, end_us, offer.placement, offer.level)
