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

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.policies.base import Decision, Start, View, Wait
from frostline.policies.disciplines import DISCIPLINES, backfill_before
from frostline.policies.guarantee import BudgetPromise, GuardPromise
from frostline.policies.orders import ORDERS
from frostline.policies.task import Task
from frostline.policies.waiting import Entry
from frostline.units import as_finite

__all__ = ["AsrptBudget", "AsrptGuard", "AsrptStrict", "in_virtual_order"]


def in_virtual_order(view: View) -> Start | None:
    """Start of the first due task if it fits; else of a task that surely ends before it can start; else None."""
    head = view.due
    if head is None:
        return None
    if view.free.fits(head.shape):
        return Start(head)
    candidate = backfill_before(view, view.reservation(head), lend=False)
    return None if candidate is None else Start(candidate)


@dataclass(frozen=True, slots=True, kw_only=True)
class AsrptStrict:
    """The literal form: due tasks start in virtual order, and nobody overtakes ([T1])."""

    name: str = "asrpt-strict"

    @property
    def parameters(self) -> Mapping[str, Any]:
        """None."""
        return {}

    @property
    def uses_virtual_machine(self) -> bool:
        """Always."""
        return True

    def promise(self, saturation: int) -> BudgetPromise:
        """No GPUs out of order."""
        return BudgetPromise(0)

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
class AsrptBudget:
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
        share = as_finite(self.share, "policy 'asrpt-budget'", "share", 0.0)
        if share > 1:
            raise InvalidValueError("policy 'asrpt-budget'", "share", self.share, "must be at most 1")
        if self.order not in ORDERS:
            raise UnknownNameError("order", self.order, ORDERS)

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Share and order."""
        return {"share": self.share, "order": self.order}

    @property
    def uses_virtual_machine(self) -> bool:
        """Always."""
        return True

    def priority(self, task: Task) -> int:
        """Key of the order."""
        return ORDERS[self.order](task)

    def promise(self, saturation: int) -> BudgetPromise:
        """E GPUs out of order."""
        return BudgetPromise(self.budget(saturation))

    def budget(self, saturation: int) -> int:
        """E for a saturation B; always below B."""
        return int(self.share * (saturation - 1))

    def decide(self, view: View) -> Decision:
        """First due task; else a backfill or a start on the budget, in the order of the candidates."""
        head = view.due
        if head is not None and view.free.fits(head.shape):
            return Start(head)
        limit_us = None if head is None else view.reservation(head).time_us - view.now_us
        left = self.budget(view.saturation) - view.budget_gpus
        best: Entry | None = None
        on_budget = False
        for line in view.waiting.lines:
            if not line or not view.free.fits(line.shape):
                continue
            harmless = None if limit_us is None else line.first_within(limit_us)
            entry = line.head if line.shape.gpus <= left else harmless
            if entry is not None and (best is None or entry < best):
                best, on_budget = entry, entry is not harmless
        if best is not None:
            return Start(best[2], on_budget)
        return Wait(view.next_due_us if head is None else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class AsrptGuard:
    """Any order, until a due task has waited too long; then virtual order with backfill ([T3]).

    Parameters
    ----------
    order, discipline : str
        What runs while no due task has waited too long.
    patience : float
        Γ, as a multiple of the longest duration among the tasks that have arrived.
    """

    name: str = "asrpt-guard"
    order: str = "smallest-area"
    discipline: str = "backfill"
    patience: float = 4.0

    def __post_init__(self) -> None:
        as_finite(self.patience, f"policy {self.name!r}", "patience", 0.0)
        if self.order not in ORDERS:
            raise UnknownNameError("order", self.order, ORDERS)
        if self.discipline not in DISCIPLINES:
            raise UnknownNameError("discipline", self.discipline, DISCIPLINES)

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Order, discipline and patience."""
        return {"order": self.order, "discipline": self.discipline, "patience": self.patience}

    @property
    def uses_virtual_machine(self) -> bool:
        """Always."""
        return True

    def priority(self, task: Task) -> int:
        """Key of the order."""
        return ORDERS[self.order](task)

    def promise(self, saturation: int) -> GuardPromise:
        """Γ grows with the longest job seen."""
        return GuardPromise(self.patience_us)

    def patience_us(self, longest_us: int) -> int:
        """Γ in microseconds, given the longest duration seen."""
        return int(self.patience * longest_us)

    def decide(self, view: View) -> Decision:
        """What the discipline says, or virtual order while the guard is up."""
        head = view.due
        gamma_us = self.patience_us(view.longest_us)
        if head is not None and head.due_us is not None and head.due_us + gamma_us <= view.now_us:
            return in_virtual_order(view) or Wait()
        decision = DISCIPLINES[self.discipline](view)
        if isinstance(decision, Start) or not view.waiting.lines:
            return decision
        due_us = head.due_us if head is not None else view.next_due_us
        return Wait(None if due_us is None else due_us + gamma_us)
