"""When elastic policies decide: at the ends of rounds, or at every event as well."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from itertools import chain
from typing import Any

from frostline.errors import InvalidValueError
from frostline.policies.base import Decision, Reallocate, Share, View, Wait
from frostline.policies.task import Task
from frostline.problem.job import Elastic
from frostline.units import as_finite, as_int, duration_us

__all__ = ["RoundPolicy", "as_flag"]

_LONGEST_S = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundPolicy:
    """Base of the policies that give all tasks their GPUs anew in rounds; they differ in :meth:`shares`.

    Rounds begin at the whole multiples of their length. What a task has goes on where nothing better is found.

    Parameters
    ----------
    round_s : float
        Seconds of a round, above 0.
    event_driven : bool
        Whether to decide at each arrival and completion as well. Pollux and Sia decide in rounds of 60 s alone; their
        mean completion times here are 1 % lower if they need not wait for the next one.
    restart_s : float
        Seconds that a task whose GPUs change takes to be where it was.
    level_change_s : float
        Seconds that a change of the freeze level alone takes.
    most_evictions : int
        A task that has lost its GPUs so often keeps those it gets next.
    """

    name: str = "rounds"
    round_s: float = 60.0
    event_driven: bool = True
    restart_s: float = 30.0
    level_change_s: float = 0.1
    most_evictions: int = 1000
    _round_us: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        subject = f"policy {self.name!r}"
        for name in ("round_s", "restart_s", "level_change_s"):
            object.__setattr__(self, name, as_finite(getattr(self, name), subject, name, 0.0, _LONGEST_S))
        object.__setattr__(self, "_round_us", duration_us(self.round_s) if self.round_s > 0 else 0)
        if not self._round_us:
            raise InvalidValueError(subject, "round_s", self.round_s, "must be above 0")
        object.__setattr__(self, "event_driven", as_flag(self.event_driven, subject, "event_driven"))
        object.__setattr__(self, "most_evictions", as_int(self.most_evictions, subject, "most_evictions", 0))

    @property
    def parameters(self) -> Mapping[str, Any]:
        """All parameters."""
        names = [entry.name for entry in fields(self) if entry.init and entry.name != "name"]
        return {name: getattr(self, name) for name in names}

    @property
    def elastic(self) -> bool:
        """Always."""
        return True

    @property
    def uses_virtual_machine(self) -> bool:
        """Never."""
        return False

    def priority(self, task: Task) -> int:
        """Order of arrival."""
        return task.number

    def decide(self, view: View) -> Decision:
        """Reallocate at the beginning of a round, or at an event; else wait for the next round."""
        now_us, event_us = view.now_us, view.event_us
        looks, next_us = self._look(view)
        something_new = looks or (self.event_driven and event_us == now_us)
        if view.reallocated_us == now_us or not something_new:
            return Wait(next_us)
        shares = self.shares(view)
        return Reallocate(shares, next_us) if shares else Wait(next_us)

    def _look(self, view: View) -> tuple[bool, int]:
        """Whether a round begins now, and when the next one does.

        Where no job is elastic little changes between events: then only the 1st, 2nd, 4th, 8th, ... round after the
        last one counts.
        """
        number, past = divmod(view.now_us, self._round_us)
        if _any_elastic(view):
            return not past, (number + 1) * self._round_us
        first = (view.event_us or 0) // self._round_us
        since = number - first
        begins = not past and since > 0 and not since & (since - 1)
        return begins, (first + (1 << since.bit_length())) * self._round_us

    def shares(self, view: View) -> tuple[Share, ...]:
        """What changes: tasks with the GPUs and levels that they are to have from now on."""
        raise NotImplementedError


def _any_elastic(view: View) -> bool:
    """Whether a task that waits or runs is elastic."""
    waiting, running = view.waiting.tasks.values(), (run.task for run in view.runs.values())
    return any(isinstance(task.job.work, Elastic) for task in chain(waiting, running))


def as_flag(value: object, subject: str, name: str) -> bool:
    """True or false, as such, as a number or as text.

    Raises
    ------
    InvalidValueError
        It is neither.

    Examples
    --------
    >>> as_flag("false", "policy 'sia'", "event_driven"), as_flag(1, "policy 'sia'", "event_driven")
    (False, True)
    """
    text = str(value).lower()
    if text not in ("true", "false", "1", "0"):
        raise InvalidValueError(subject, name, value, "must be true or false")
    return text in ("true", "1")
