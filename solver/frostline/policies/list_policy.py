"""Policies that are an order and a discipline: fifo, sjf, smallest-area, ljf, easy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from frostline.errors import UnknownNameError
from frostline.policies.base import Decision, View
from frostline.policies.disciplines import DISCIPLINES, Discipline
from frostline.policies.orders import ORDERS, Order
from frostline.policies.task import Task

__all__ = ["ListPolicy", "easy", "fifo", "ljf", "sjf", "smallest_area"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPolicy:
    """The waiting tasks in a fixed order, under a queue discipline.

    Parameters
    ----------
    name : str
        Registered name.
    order : str
        One of :data:`~frostline.policies.orders.ORDERS`.
    discipline : str
        ``strict`` (nobody overtakes), ``backfill`` (the first blocked task is protected by a reservation) or
        ``fit-anything`` (scan in order, start what fits).

    Raises
    ------
    UnknownNameError
        No such order or discipline.
    """

    name: str
    order: str
    discipline: str
    _key: Order = field(init=False, repr=False, compare=False)
    _rule: Discipline = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise UnknownNameError("order", self.order, ORDERS)
        if self.discipline not in DISCIPLINES:
            raise UnknownNameError("discipline", self.discipline, DISCIPLINES)
        object.__setattr__(self, "_key", ORDERS[self.order])
        object.__setattr__(self, "_rule", DISCIPLINES[self.discipline])

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The discipline."""
        return {"discipline": self.discipline}

    @property
    def uses_virtual_machine(self) -> bool:
        """Never."""
        return False

    def priority(self, task: Task) -> int:
        """Key of the order."""
        return self._key(task)

    def decide(self, view: View) -> Decision:
        """What the discipline says."""
        return self._rule(view)


def fifo(discipline: str = "strict") -> ListPolicy:
    """First come, first served; nobody overtakes unless the discipline says so."""
    return ListPolicy(name="fifo", order="arrival", discipline=discipline)


def sjf(discipline: str = "fit-anything") -> ListPolicy:
    """Shortest job first, starting whatever fits."""
    return ListPolicy(name="sjf", order="shortest", discipline=discipline)


def smallest_area(discipline: str = "fit-anything") -> ListPolicy:
    """Least GPU-time first, starting whatever fits."""
    return ListPolicy(name="smallest-area", order="smallest-area", discipline=discipline)


def ljf(discipline: str = "fit-anything") -> ListPolicy:
    """Longest job first, starting whatever fits."""
    return ListPolicy(name="ljf", order="longest", discipline=discipline)


def easy(discipline: str = "backfill") -> ListPolicy:
    """First come, first served with EASY backfilling."""
    return ListPolicy(name="easy", order="arrival", discipline=discipline)
