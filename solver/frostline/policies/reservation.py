"""When a blocked job can start, and what may run before it without delaying it.

The rule of EASY backfilling (A. W. Mu'alem, D. G. Feitelson, IEEE TPDS 12(6), 2001, doi:10.1109/71.932708).
"""

from __future__ import annotations

from collections.abc import Sequence

from frostline.placement.free_gpus import FreeGpus, Loads, Shape
from frostline.policies.task import Running

__all__ = ["NEVER_US", "Reservation", "reserve"]

NEVER_US = 1 << 62
"""Time of a reservation that cannot be made while servers are down."""


class Reservation:
    """The earliest time a blocked shape fits if nothing new starts, and the GPUs that are free then.

    Parameters
    ----------
    shape : Shape
        Shape of the blocked job.
    headroom : int
        GPUs that must be free beside its own.
    time_us : int
        Earliest time it fits; jobs that end by then cannot delay it.
    spare_gpus : int
        GPUs free at that time beyond those it needs and the headroom; they can be lent where any GPUs will do for it.
    free : FreeGpus or None
        Free GPUs at that time, kept only where servers matter for the shape.
    """

    __slots__ = ("free", "headroom", "shape", "spare_gpus", "time_us")

    def __init__(self, shape: Shape, headroom: int, time_us: int, spare_gpus: int, free: FreeGpus | None) -> None:
        self.shape, self.headroom, self.time_us = shape, headroom, time_us
        self.spare_gpus, self.free = spare_gpus, free

    def spares(self, loads: Loads) -> bool:
        """Whether the job still fits at its time if these GPUs are held beyond it."""
        if sum(gpus for _, gpus in loads) > self.spare_gpus:
            return False
        if self.free is None:
            return True
        self.free.take(loads)
        fits = self.free.fits(self.shape)
        self.free.give(loads)
        return fits


def reserve(shape: Shape, now_us: int, free: FreeGpus, running: Sequence[Running], headroom: int = 0) -> Reservation:
    """Reservation of a blocked shape.

    Where it needs servers that are down nobody can tell its time, and nobody delays it: the time is :data:`NEVER_US`,
    and all GPUs are spare.

    Parameters
    ----------
    shape : Shape
        Shape of a job that does not fit now, but fits the empty cluster.
    now_us : int
        The present; a running job that has outlived its expected end is taken to end just after it.
    free : FreeGpus
        Free GPUs now.
    running : sequence of Running
        Running jobs sorted by expected end.
    headroom : int
        GPUs that must be free beside those of the job when it starts.

    Examples
    --------
    >>> from frostline.policies.task import Running
    >>> free = FreeGpus([4, 4])
    >>> free.take(((0, 3), (1, 2)))
    >>> running = [Running(5, 0, None, ((0, 3),), 3), Running(9, 1, None, ((1, 2),), 2)]
    >>> [reserve(shape, 0, free, running).time_us for shape in (Shape(4, 2), Shape(4, 1), Shape(7, 2))]
    [5, 5, 9]
    >>> reserve(Shape(4, 1), 0, free, running).spares(((0, 1),))
    False
    """
    if shape.most_servers >= len(free.by_server) and not shape.pieces:
        return _reserve_anywhere(shape, now_us, free, running, headroom)
    future, need = free.copy(), shape.gpus + headroom
    time_us = now_us
    for run in running:
        if run.end_us > time_us and future.total >= need and future.fits(shape):
            break
        time_us = max(run.end_us, now_us + 1)
        future.give(run.loads)
    if free.closed and (future.total < need or not future.fits(shape)):
        return _unmade(shape, headroom, free)
    return Reservation(shape, headroom, time_us, future.total - need, future)


def _unmade(shape: Shape, headroom: int, free: FreeGpus) -> Reservation:
    """Reservation of a shape that needs servers that are down."""
    return Reservation(shape, headroom, NEVER_US, free.capacity, None)


def _reserve_anywhere(
    shape: Shape, now_us: int, free: FreeGpus, running: Sequence[Running], headroom: int
) -> Reservation:
    """Reservation where any free GPUs will do: only their number counts."""
    total, time_us, need = free.total, now_us, shape.gpus + headroom
    for run in running:
        if total >= need and run.end_us > time_us:
            break
        time_us = max(run.end_us, now_us + 1)
        total += free.open_gpus(run.loads) if free.closed else run.gpus
    if free.closed and total < need:
        return _unmade(shape, headroom, free)
    return Reservation(shape, headroom, time_us, total - need, None)
