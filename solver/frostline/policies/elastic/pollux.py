"""Pollux-like: the power mean of the speedups, round after round.

The rule is that of A. Qiao et al., *Pollux: Co-adaptive Cluster Scheduling for Goodput-Optimized Deep Learning*, OSDI
2021, as its published code states it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from frostline.policies.base import Share, View
from frostline.policies.elastic.allocate import best_options, changes
from frostline.policies.elastic.menu import RoundMenu, round_menu
from frostline.policies.elastic.options import Floats
from frostline.policies.elastic.rounds import RoundPolicy
from frostline.units import as_finite

__all__ = ["Pollux", "fair_rates", "power_mean_values", "restart_factors"]

_LEAST = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Pollux(RoundPolicy):
    """Pollux-like: in each round the GPUs maximise the power mean of the speedups of all tasks.

    The speedup of a task is its goodput over that with a fair share of the GPUs, all of them over the number of tasks,
    rounded up. Where a task that has run before changes its GPUs, it counts ``max(age - 30 s × restarts, 0) / (age +
    30 s)`` times as much; in the published code also where it first starts, so that one just submitted never would.
    For an exponent p below 0 the mean is largest where the sum of the ``speedup^p`` is least, which is separable: an
    exact knapsack takes the place of the genetic search over placements that Pollux makes, and placements are made by
    best fit. The batch is as the work was measured, so that goodput is throughput and nothing is learnt of it while a
    task runs. Nothing is frozen.

    Parameters
    ----------
    power : float
        Exponent p of the mean, below 0 for fairness; 0 for the geometric mean. -1 in Pollux.
    round_s, event_driven, restart_s, level_change_s, most_evictions
        See :class:`~frostline.policies.elastic.rounds.RoundPolicy`.

    Raises
    ------
    InvalidValueError
        A parameter is out of its range.
    """

    name: str = "pollux"
    power: float = -1.0

    def __post_init__(self) -> None:
        RoundPolicy.__post_init__(self)
        object.__setattr__(self, "power", as_finite(self.power, f"policy {self.name!r}", "power", -100.0, 1.0))

    def shares(self, view: View) -> tuple[Share, ...]:
        """What changes."""
        menu = round_menu(view, self.most_evictions)
        if not menu.tasks:
            return ()
        moves = menu.again[menu.job] & ~menu.kept
        factor = np.where(moves, restart_factors(menu, self.restart_s)[menu.job], 1.0)
        speedup = factor / (menu.seconds * fair_rates(menu, view.free.capacity)[menu.job])
        # A whole server counts as a speedup of 1 in the published code, which sets the weight of waiting.
        speedup *= (len(view.cluster.servers) - view.free.closed.bit_count()) / view.free.capacity
        return changes(menu, best_options(menu, power_mean_values(speedup, self.power)))


def fair_rates(menu: RoundMenu, gpus: int) -> Floats:
    """Units of work a second with a fair share of the GPUs, shape (tasks,); linear between the widths.

    A share that is narrower than the least width is that part of it.
    """
    fair = -(-gpus // len(menu.tasks))
    return np.array(
        [np.interp(fair, [0, *each.gpus], [0.0, *(1.0 / each.seconds[:, 0])]) for each in menu.options], float
    )


def restart_factors(menu: RoundMenu, restart_s: float) -> Floats:
    """Pollux's factor ``max(age - restarts × 30 s, 0) / (age + 30 s)`` of another allocation, shape (tasks,)."""
    lost = np.maximum(menu.age_s - menu.evictions * restart_s, 0.0)
    whole = menu.age_s + restart_s
    return np.divide(lost, whole, out=np.ones(len(whole)), where=whole > 0)


def power_mean_values(speedup: Floats, power: float) -> Floats:
    """What speedups add to a power mean: the mean is largest where the sum of these is.

    A speedup counts 0.001 more than it is, so that waiting is worth something.

    Examples
    --------
    >>> power_mean_values(np.array([0.0, 0.999, 1.999]), -1.0).round(9).tolist()
    [-1000.0, -1.0, -0.5]
    """
    if power == 0.0:
        return np.log(np.maximum(speedup, _LEAST))
    values: Floats = np.copysign((speedup + _LEAST) ** power, power)
    return values
