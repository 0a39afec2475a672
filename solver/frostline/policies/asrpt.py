"""A-SRPT: the completions of a virtual single machine guide the real cluster.

The idea is that of Z. Luo, J. Liu, M. Lee, N. B. Shroff, *Prediction-Assisted Online Distributed Deep Learning
Workload Scheduling in GPU Clusters*, INFOCOM 2025 (arXiv:2501.05563); models, rules and theorems are our own. The
virtual machine serves all jobs preemptively, shortest remaining work first; a job is *due* at its virtual
completion. Three forms keep a guarantee for every job (:mod:`frostline.policies.guarantee`):

- strict: due jobs start in virtual order, nobody overtakes;
- budget: besides, a job that surely ends before the blocked head can start may run, and jobs started out of order
  may hold a bounded number of GPUs;
- guard: any order at all, until a due job has waited too long; then strict order with backfill.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cache
from typing import Any

from frostline.errors import UnknownNameError
from frostline.policies.base import WAIT, Decision, Start, View, Wait
from frostline.policies.disciplines import DISCIPLINES, backfill_before, first_harmless, fit_anything, harmless
from frostline.policies.guarantee import BudgetPromise, GuardPromise
from frostline.policies.headroom import headroom_gpus
from frostline.policies.orders import ORDERS
from frostline.policies.reservation import Reservation
from frostline.policies.task import StartKind, Task
from frostline.policies.waiting import Entry
from frostline.units import as_finite

__all__ = ["Asrpt", "AsrptBudget", "AsrptGuard", "AsrptStrict", "in_virtual_order", "out_of_order_room", "rational"]

_BACKFILL, _ON_BUDGET = StartKind.BACKFILL, StartKind.ON_BUDGET  # looked up once: it counts in the loops below


def in_virtual_order(view: View) -> Start | None:
    """Start of the first due task if it fits; else of a task that surely ends before it can start; else None.

    Due tasks that need servers that are down or drained are passed over.
    """
    head = view.possible_due
    if head is None:
        return None
    if view.free.fits(head.shape):
        return Start(head)
    room = out_of_order_room(view) if view.uncertain else None
    candidate = backfill_before(view, view.reservation(head), lend=False, most_gpus=room)
    return None if candidate is None else Start(candidate, _BACKFILL)


def out_of_order_room(view: View) -> int:
    """GPUs that one more task started out of order may hold where durations are uncertain.

    A backfill whose duration is predicted may outlast the head's start, so that it counts as long as it runs: all
    tasks started out of order together hold less than B GPUs, and some of those that are surely busy are in order.
    """
    return min(view.free.total, view.saturation - 1 - view.out_of_order_gpus)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asrpt:
    """What all forms share: the virtual machine, and late entry where the GPUs on offer are slow ([T6]).

    Parameters
    ----------
    kappa, tau : float
        A training job that would run more than 1 + τ times as long on the GPUs on offer at its virtual completion as
        on the empty cluster becomes due κ times its shortest duration later, once.
    """

    name: str
    kappa: float = 0.1
    tau: float = 0.1

    def __post_init__(self) -> None:
        self._check("kappa")
        self._check("tau")

    def _check(self, field: str, minimum: float = 0.0, maximum: float = 9e9) -> None:
        """Keep a parameter as a float, if it lies within bounds."""
        number = as_finite(getattr(self, field), f"policy {self.name!r}", field, minimum, maximum)
        object.__setattr__(self, field, number)

    @property
    def parameters(self) -> Mapping[str, Any]:
        """All parameters."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "name"}

    @property
    def uses_virtual_machine(self) -> bool:
        """Always."""
        return True

    @property
    def late_entry(self) -> tuple[float, float]:
        """κ and τ."""
        return self.kappa, self.tau


@dataclass(frozen=True, slots=True, kw_only=True)
class AsrptStrict(_Asrpt):
    """The literal form: due tasks start in virtual order, and nobody overtakes ([T1])."""

    name: str = "asrpt-strict"

    def promise(self, saturation: int) -> BudgetPromise:
        """No GPUs out of order."""
        return BudgetPromise(0, self.kappa)

    def priority(self, task: Task) -> int:
        """Order of arrival; only the virtual order matters."""
        return task.number

    def decide(self, view: View) -> Decision:
        """Start the first due task as soon as it fits."""
        head = view.due
        if head is not None and view.free.fits(head.shape):
            return Start(head)
        return Wait(view.next_due_us if head is None else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class AsrptBudget(_Asrpt):
    """Virtual order with backfill, and a budget of GPUs for tasks started out of order ([T2]).

    Parameters
    ----------
    share : float
        Budget E as a share of B − 1, at least 0 and at most 1; E is rounded down.
    order : str
        Priority among the candidates, one of :data:`~frostline.policies.orders.ORDERS`.
    """

    name: str = "asrpt-budget"
    share: float = 0.75
    order: str = "smallest-area"

    def __post_init__(self) -> None:
        _Asrpt.__post_init__(self)
        self._check("share", maximum=1.0)
        if self.order not in ORDERS:
            raise UnknownNameError("order", self.order, ORDERS)

    def priority(self, task: Task) -> int:
        """Key of the order."""
        return ORDERS[self.order](task)

    def promise(self, saturation: int) -> BudgetPromise:
        """E GPUs out of order."""
        return BudgetPromise(self.budget(saturation), self.kappa)

    def budget(self, saturation: int) -> int:
        """E for a saturation B; always below B."""
        return int(self.share * (saturation - 1))

    def decide(self, view: View) -> Decision:
        """First due task; else a backfill or a start on the budget, in the order of the candidates.

        A due task that needs servers that are down or drained is passed over while there are others.
        """
        head = view.possible_due
        if head is not None and view.free.fits(head.shape):
            return Start(head)
        blocked = view.due if head is None else head
        reservation = None if blocked is None else view.reservation(blocked)
        left = self.budget(view.saturation) - view.budget_gpus
        room = out_of_order_room(view) if view.uncertain else view.free.total
        best: Entry | None = None
        kind = _BACKFILL
        for line in view.waiting.lines:
            if not line or line.shape.gpus > room or not view.free.fits(line.shape):
                continue
            free_of_charge = None if reservation is None else first_harmless(view, line, reservation, lend=False)
            entry = line.head if line.shape.gpus <= left else free_of_charge
            if entry is not None and (best is None or entry < best):
                best, kind = entry, _BACKFILL if entry is free_of_charge else _ON_BUDGET
        if best is not None:
            return Start(best[2], kind)
        return Wait(view.next_due_us if head is None else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Guarded(_Asrpt, ABC):
    """Any rule at all, until a due task has waited too long; then virtual order with backfill ([T3]).

    Parameters
    ----------
    patience : float
        Γ, as a multiple of the longest duration among the tasks that have arrived.
    """

    patience: float = 4.0

    def __post_init__(self) -> None:
        _Asrpt.__post_init__(self)
        self._check("patience")

    def promise(self, saturation: int) -> GuardPromise:
        """Γ grows with the longest job seen."""
        return GuardPromise(self.patience_us, self.kappa)

    def patience_us(self, longest_us: int) -> int:
        """Γ in microseconds, given the longest duration seen."""
        return int(self.patience * longest_us)

    @abstractmethod
    def unguarded(self, view: View) -> Start | None:
        """Next start while no due task has waited too long."""

    def decide(self, view: View) -> Decision:
        """What the rule says, or virtual order while the guard is up."""
        head = view.possible_due
        gamma_us = self.patience_us(view.longest_us)
        if head is not None and head.due_us is not None and head.due_us + gamma_us <= view.now_us:
            return in_virtual_order(view) or WAIT
        start = self.unguarded(view)
        if start is not None or not view.waiting.tasks:
            return start or WAIT
        due_us = head.due_us if head is not None else view.next_due_us
        return Wait(None if due_us is None else due_us + gamma_us)


@dataclass(frozen=True, slots=True, kw_only=True)
class AsrptGuard(_Guarded):
    """The guard around a plain order and discipline.

    Parameters
    ----------
    order, discipline : str
        What runs while no due task has waited too long.
    """

    name: str = "asrpt-guard"
    order: str = "smallest-area"
    discipline: str = "backfill"

    def __post_init__(self) -> None:
        _Guarded.__post_init__(self)
        if self.order not in ORDERS:
            raise UnknownNameError("order", self.order, ORDERS)
        if self.discipline not in DISCIPLINES:
            raise UnknownNameError("discipline", self.discipline, DISCIPLINES)

    def priority(self, task: Task) -> int:
        """Key of the order."""
        return ORDERS[self.order](task)

    def unguarded(self, view: View) -> Start | None:
        """What the discipline says."""
        decision = DISCIPLINES[self.discipline](view)
        return decision if isinstance(decision, Start) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asrpt(_Guarded):
    """The default: smallest area first with graded headroom and one reservation, inside the guard.

    Smallest area first is what the virtual machine does. To start a large task is the one act that a non-preemptive
    scheduler cannot take back, so a task starts only if some GPUs stay free beside it: a share ``headroom`` of the
    others for each doubling of its area above ``small`` times the mean area seen. The first task in order that is
    blocked in this sense is protected by a reservation, as in EASY backfilling. Where sizes are predicted there is
    neither headroom nor reservation, because what they protect rests on predictions that are often wrong.

    Parameters
    ----------
    headroom : float
        Share of the other GPUs to be left free per doubling, from 0 to 1.
    small : float
        Areas up to this multiple of the mean area need no headroom, above 0.
    """

    name: str = "asrpt"
    headroom: float = 0.01
    small: float = 0.25

    def __post_init__(self) -> None:
        _Guarded.__post_init__(self)
        self._check("headroom", maximum=1.0)
        self._check("small", 1e-6, 1e6)

    def priority(self, task: Task) -> int:
        """GPU-time."""
        return task.shape.gpus * task.duration_us

    def headroom_of(self, task: Task, view: View) -> int:
        """GPUs to be left free beside a task.

        Within a shape it grows with the area, so that only the first task of a line has to be looked at.
        """
        small, others = rational(self.small), max(view.free.capacity - task.shape.gpus, 0)
        size = task.priority * view.arrived * small.denominator
        return headroom_gpus(size, small.numerator * view.arrived_work, rational(self.headroom), others)

    def unguarded(self, view: View) -> Start | None:
        """First task in order that fits with headroom and cannot delay the first one that does not."""
        if view.uncertain:
            decision = fit_anything(view)
            return decision if isinstance(decision, Start) else None
        free = view.free
        blocked: Task | None = None
        for _, _, task in sorted(line.blocks[0][0] for line in view.waiting.lines if line.blocks) if free.total else ():
            spare = free.total - task.shape.gpus
            if spare >= 0 and spare >= self.headroom_of(task, view) and free.fits(task.shape):
                if blocked is None or harmless(view, task, self._reservation(blocked, view)):
                    return Start(task)
            elif blocked is None and free.could_hold(task.shape):
                blocked = task
        return None

    def _reservation(self, task: Task, view: View) -> Reservation:
        """Of a task that is blocked, with its headroom."""
        return view.reservation(task, self.headroom_of(task, view))


@cache
def rational(value: float) -> Fraction:
    """The number as it is written."""
    return Fraction(repr(value))
