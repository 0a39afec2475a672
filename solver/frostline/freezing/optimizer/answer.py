"""The best choice so far of a search, with the bound proved so far, and what it believes of a solver's claims."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from frostline.freezing.optimizer.knapsack import Knapsack
from frostline.freezing.optimizer.menus import Ints

__all__ = ["Answer", "believed", "bounded", "log"]

log = logging.getLogger("frostline.freezing")
log.addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answer:
    """A choice that keeps within all rows, and a bound.

    Parameters
    ----------
    chosen : ndarray of int64, shape (jobs,)
        Option of each job.
    value, bound : int
        What it is worth, and what any choice is worth at most.
    source, bound_source : str
        What found the choice, and what proved the bound.
    interrupted : bool
        Whether Ctrl-C ended the search.
    """

    chosen: Ints
    value: int
    bound: int
    source: str
    bound_source: str
    interrupted: bool = False

    @property
    def proved(self) -> bool:
        """Whether no choice is worth more."""
        return self.value == self.bound


def believed(knapsack: Knapsack, answer: Answer, found: Ints, source: str) -> Answer:
    """The better of an incumbent and a choice that a solver claims, if that is valid; equal ones change nothing."""
    if not knapsack.fits(found):
        log.error("%s claims a choice that breaks a rule; it is left out", source)
        return answer
    value = knapsack.worth(found)
    return replace(answer, chosen=found, value=value, source=source) if value > answer.value else answer


def bounded(answer: Answer, bound: int | None, source: str) -> Answer:
    """Answer with a bound if it is the best one, unless the answer itself proves it wrong."""
    if bound is None or bound >= answer.bound:
        return answer
    if bound < answer.value:
        log.error("%s claims a bound of %d, below a valid choice of %d; it is left out", source, bound, answer.value)
        return answer
    return replace(answer, bound=bound, bound_source=source)
