"""The least time limit under which the linear relaxation over columns places everything, with a proof in integers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from frostline.placement.column_master import ColumnMaster, Relaxed
from frostline.placement.pattern_problem import Limits, PatternProblem, Prices

__all__ = ["Generation", "RootBound", "root_bound"]

_SCALES = (1 << 20, 1 << 36)


@dataclass(frozen=True, slots=True)
class Generation:
    """Column generation: either prices that prove limits too tight, or a relaxed solution within them.

    Parameters
    ----------
    problem : PatternProblem
        The columns there are.
    master : ColumnMaster
        Those that are known; it grows.
    late : callable
        Whether to stop.
    """

    problem: PatternProblem
    master: ColumnMaster
    late: Callable[[], bool]

    def run(self, limit_ns: int, limits: Limits | None = None) -> Prices | Relaxed | None:
        """Prices or a relaxed solution; None where time ran out, pricing is too hard, or floats decide nothing."""
        for scale in _SCALES:
            while not self.late():
                relaxed = self.master.relax(limit_ns, scale, limits)
                if relaxed.feasible:
                    return relaxed
                prices = self.problem.price(relaxed.worth, limit_ns, relaxed.extra, limits)
                if prices is None:
                    return None
                if prices.surplus > 0:
                    return replace(prices, columns={})
                if not self._grown(relaxed, prices):
                    break
        return None

    def _grown(self, relaxed: Relaxed, prices: Prices) -> bool:
        """Whether columns were found that help the relaxed solution; they are added."""
        added = 0
        for kind, columns in prices.columns.items():
            added += self.master.add(kind, self.master.improving(relaxed, kind, columns))
        return added > 0


@dataclass(frozen=True, slots=True)
class RootBound:
    """No placement has a slowest column below ``least_ns``, since the prices prove that none keeps a lower limit."""

    least_ns: int
    prices: Prices | None


def root_bound(generation: Generation, floor_ns: int, known_ns: int) -> RootBound:
    """Bound between a known one and the slowest column of a known placement.

    The limit just below the placement comes first, since it often is the best there is; then the limit is bisected.
    """
    low, high, best = floor_ns, known_ns, None
    limit_ns = high - 1
    while low < high:
        found = _still_proved(generation, best, limit_ns) or generation.run(limit_ns)
        if isinstance(found, Prices):
            low, best = limit_ns + 1, found
        elif found is None:
            break
        else:
            high = max(found.slowest_ns, low)
        limit_ns = (low + high) // 2
    return RootBound(low, best)


def _still_proved(generation: Generation, prices: Prices | None, limit_ns: int) -> Prices | None:
    """Prices that prove a lower limit too low, if they prove this one too low as well."""
    if prices is None or generation.late():
        return None
    again = generation.problem.price(prices.worth, limit_ns)
    return replace(again, columns={}) if again is not None and again.surplus > 0 else None
