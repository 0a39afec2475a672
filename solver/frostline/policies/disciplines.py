"""Queue disciplines: exact rules for who may overtake whom."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from frostline.policies.base import WAIT, Decision, Start, View
from frostline.policies.reservation import Reservation
from frostline.policies.task import Task
from frostline.policies.waiting import Entry, Line

__all__ = [
    "DISCIPLINES",
    "Discipline",
    "backfill",
    "backfill_before",
    "first_harmless",
    "fit_anything",
    "harmless",
    "strict",
]

Discipline = Callable[[View], Decision]


def strict(view: View) -> Decision:
    """Nobody overtakes: the first task starts as soon as it fits."""
    first = view.waiting.first
    return Start(first) if first is not None and view.free.fits(first.shape) else WAIT


def fit_anything(view: View) -> Decision:
    """Scan in order, start what fits, no depth limit.

    Free GPUs only shrink during a scan, so the scan starts, one after the other, the first task that fits.
    """
    free = view.free
    total, fits = free.total, free.fits
    best: Entry | None = None
    for line in view.waiting.lines:
        if line.blocks and line.shape.gpus <= total:
            head = line.blocks[0][0]
            if (best is None or head < best) and fits(line.shape):
                best = head
    return WAIT if best is None else Start(best[2])


def backfill(view: View) -> Decision:
    """The first blocked task is protected: others may start if they cannot delay its earliest start.

    One that needs servers that are down or drained is passed over.
    """
    first = view.waiting.first if not view.free.closed else _first_possible(view)
    if first is None:
        return WAIT
    if view.free.fits(first.shape):
        return Start(first)
    candidate = backfill_before(view, view.reservation(first), lend=True)
    return WAIT if candidate is None else Start(candidate)


def _first_possible(view: View) -> Task | None:
    """First waiting task that the servers that take starts could hold."""
    free, lines = view.free, view.waiting.lines
    heads = [line.blocks[0][0] for line in lines if line.blocks and free.could_hold(line.shape)]
    return min(heads)[2] if heads else None


def backfill_before(view: View, reservation: Reservation, *, lend: bool, most_gpus: int | None = None) -> Task | None:
    """First task in order that fits now and cannot delay a reservation, or None.

    Parameters
    ----------
    view : View
        The present.
    reservation : Reservation
        Of a blocked task.
    lend : bool
        Whether a task may run past the reserved time on GPUs that are spare then.
    most_gpus : int, optional
        Most GPUs that it may hold.
    """
    best: Entry | None = None
    for line in view.waiting.lines:
        if line and (most_gpus is None or line.shape.gpus <= most_gpus) and view.free.fits(line.shape):
            entry = first_harmless(view, line, reservation, lend=lend)
            if entry is not None and (best is None or entry < best):
                best = entry
    return None if best is None else best[2]


def first_harmless(view: View, line: Line, reservation: Reservation, *, lend: bool) -> Entry | None:
    """First entry of a line that fits now, if it cannot delay a reservation; see :func:`backfill_before`.

    Where the duration depends on the GPUs, a later entry that could not delay it either may be overlooked.
    """
    if lend and _spared(view, line.head[2], reservation):
        return line.head
    entry = line.first_within(reservation.time_us - view.now_us)
    return entry if entry is not None and _ends_by(view, entry[2], reservation) else None


def harmless(view: View, task: Task, reservation: Reservation) -> bool:
    """Whether a task that fits now cannot delay a reservation: it ends by then, or its GPUs are spare then."""
    return _ends_by(view, task, reservation) or _spared(view, task, reservation)


def _ends_by(view: View, task: Task, reservation: Reservation) -> bool:
    """Whether a task that starts now surely, or very likely, ends by the reserved time."""
    limit_us = reservation.time_us - view.now_us
    if task.steady or task.high_us > limit_us:
        return task.high_us <= limit_us
    offer = view.offer(task)
    return offer is not None and task.high_of(offer.duration_us) <= limit_us


def _spared(view: View, task: Task, reservation: Reservation) -> bool:
    """Whether the GPUs on offer for a task are spare at the reserved time."""
    if task.shape.gpus > reservation.spare_gpus:
        return False
    if reservation.free is None:
        return True
    offer = view.offer(task)
    return offer is not None and reservation.spares(offer.placement.loads)


DISCIPLINES: Mapping[str, Discipline] = MappingProxyType(
    {"strict": strict, "backfill": backfill, "fit-anything": fit_anything}
)
