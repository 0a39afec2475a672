"""What is believed of the freezing of elastic work: its terms, and where a job is, from its frozen stretches."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from frostline.errors import InvalidValueError
from frostline.freezing.penalty import DebtLaw
from frostline.freezing.priors import debt_prior, debt_priors
from frostline.freezing.progress import FreezeState, FreezeTerms
from frostline.problem.job import Elastic
from frostline.units import as_int

__all__ = ["believed_law", "spent_points", "state_of", "terms_of"]

Stretch = tuple[int, int, int]
"""Stretch of training with frozen layers: iterations done at its start and end, and the level."""


@lru_cache(maxsize=1024)
def believed_law(family: str, warm_up: float = 0.0) -> DebtLaw:
    """Debt law that is believed of a family: its prior, that of ``unknown`` where there is none.

    The law holds from the later of its own warm-up and that of the work on.

    Examples
    --------
    >>> believed_law("cnn").warm_up, believed_law("cnn", 0.5).warm_up
    (0.2, 0.5)
    >>> believed_law("gru") == believed_law("unknown")
    True
    """
    law = debt_prior(family if family in debt_priors() else "unknown")
    return law if law.warm_up >= warm_up else replace(law, warm_up=warm_up)


def terms_of(work: Elastic, **settings: Any) -> FreezeTerms:
    """What elastic work allows to be frozen, by the law that is believed of its family.

    Terms are kept, so that the work of equal jobs has the same ones.

    Parameters
    ----------
    work : Elastic
        The work.
    **settings
        Other fields of :class:`~frostline.freezing.FreezeTerms`, such as ``phases`` or ``hysteresis``.

    Examples
    --------
    >>> table = {"one_server": {1: (0.4, 0.2)}}
    >>> work = Elastic(iterations=9, widths=[1], seconds_per_iteration=table, compute_shares=[0, 1],
    ...                family="cnn", quality_budget_points=0.5)
    >>> terms = terms_of(work, phases=8)
    >>> terms.shares, terms.quality_budget_points, terms.phases, terms is terms_of(work, phases=8)
    ((0.0, 1.0), 0.5, 8, True)
    """
    rest = tuple(sorted(settings.items()))
    return _terms(work.compute_shares, work.family, work.warm_up, work.quality_budget_points, rest)


@lru_cache(maxsize=4096)
def _terms(
    shares: tuple[float, ...], family: str, warm_up: float, budget_points: float, settings: tuple[tuple[str, Any], ...]
) -> FreezeTerms:
    law = believed_law(family, warm_up)
    return FreezeTerms(shares=shares, law=law, quality_budget_points=budget_points, **dict(settings))


def spent_points(total: int, frozen: Iterable[Stretch], terms: FreezeTerms) -> float:
    """Debt of the frozen stretches of a job of so many iterations, as believed, in percentage points.

    Raises
    ------
    InvalidValueError
        Stretches overlap or are out of order, end after the last iteration, or have a level that there is not.

    Examples
    --------
    >>> terms = FreezeTerms(shares=[0, 1], law=DebtLaw(a=1, A=0, c=1, B_0=2), quality_budget_points=1)
    >>> spent_points(100, [(50, 60, 1), (75, 90, 1)], terms)
    0.5
    """
    count = as_int(total, "frozen stretches", "total", 1)
    phases = [(start / count, end / count, terms.shares[terms.level(level)]) for start, end, level in frozen]
    return terms.law.history_points(phases)


def state_of(total: int, frozen: Iterable[Stretch], done: int, level: int, terms: FreezeTerms) -> FreezeState:
    """Where a job is in its training: its level, its progress, and the debt of its frozen stretches so far.

    Parameters
    ----------
    total : int
        Iterations of the job, all its runs together.
    frozen : iterable of (int, int, int)
        Stretches of training with frozen layers: iterations done at the start and end, and the level.
    done : int
        Iterations done.
    level : int
        Present level.
    terms : FreezeTerms
        What the job allows, see :func:`terms_of`.

    Raises
    ------
    InvalidValueError
        More iterations done than there are, or a stretch or level that cannot be.

    Examples
    --------
    >>> terms = FreezeTerms(shares=[0, 1], law=DebtLaw(a=1, A=0, c=1, B_0=2), quality_budget_points=1)
    >>> state = state_of(100, [(50, 75, 1)], 80, 0, terms)
    >>> state.progress, state.spent_points, state.remaining_points(terms)
    (0.8, 0.5, 0.5)
    """
    count = as_int(total, "frozen stretches", "total", 1)
    if not 0 <= as_int(done, "frozen stretches", "done", 0) <= count:
        raise InvalidValueError("frozen stretches", "done", done, f"must be at most {count}")
    spent = spent_points(count, frozen, terms)
    return FreezeState(level=terms.level(level), progress=done / count, spent_points=spent, step=done)
