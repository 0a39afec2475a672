"""Sia-like: an integer program over configurations, round after round.

The rule is that of S. Jayaram Subramanya et al., *Sia: Heterogeneity-aware, goodput-optimized ML-cluster scheduling*,
SOSP 2023, as its published code states it, for one GPU type.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from frostline.policies.base import Share, View
from frostline.policies.elastic.allocate import best_options, changes
from frostline.policies.elastic.menu import RoundMenu, round_menu
from frostline.policies.elastic.options import Flags, Floats
from frostline.policies.elastic.pollux import restart_factors
from frostline.policies.elastic.rounds import RoundPolicy
from frostline.problem.cluster import Cluster
from frostline.units import as_finite

__all__ = ["Sia", "configurations", "sia_costs"]

_DEAREST = 200.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sia(RoundPolicy):
    """Sia-like: in each round the configurations minimise the sum of the ``goodput^p``, each over its job's least.

    Configurations are powers of 2 within a server, and whole servers, as far as the work knows these widths. A task
    that holds GPUs counts ``max(age - 30 s × restarts, 0) / (age + 30 s)`` times the goodput where these change. Each
    task without GPUs costs ``waiting_cost``, and each configuration that is left or taken ``change_cost``. The batch is
    as the work was measured, so that goodput is throughput. The integer program is a multiple-choice knapsack and
    solved exactly; placements are made by best fit. Nothing is frozen.

    Parameters
    ----------
    power : float
        Exponent p, below 0. -0.5 in Sia.
    waiting_cost : float
        λ_n, 1.1 in Sia.
    change_cost : float
        λ_a, 0.01 in Sia.
    round_s, event_driven, restart_s, level_change_s, most_evictions
        See :class:`~frostline.policies.elastic.rounds.RoundPolicy`.

    Raises
    ------
    InvalidValueError
        A parameter is out of its range.
    """

    name: str = "sia"
    power: float = -0.5
    waiting_cost: float = 1.1
    change_cost: float = 0.01

    def __post_init__(self) -> None:
        RoundPolicy.__post_init__(self)
        subject = f"policy {self.name!r}"
        object.__setattr__(self, "power", as_finite(self.power, subject, "power", -100.0, 0.0))
        object.__setattr__(self, "waiting_cost", as_finite(self.waiting_cost, subject, "waiting_cost", 0.0, 1e6))
        object.__setattr__(self, "change_cost", as_finite(self.change_cost, subject, "change_cost", 0.0, 1e6))

    def shares(self, view: View) -> tuple[Share, ...]:
        """What changes."""
        menu = round_menu(view, self.most_evictions)
        if not menu.tasks:
            return ()
        return changes(menu, best_options(menu, -sia_costs(menu, configurations(menu, view.cluster), self)))


def configurations(menu: RoundMenu, cluster: Cluster) -> Flags:
    """Options that Sia would choose from, shape (options,): powers of 2 within a server, and whole servers.

    All options of tasks that have no such one, and of clusters whose servers differ.
    """
    size = cluster.largest
    whole = (menu.gpus % size == 0) | ((menu.gpus < size) & (menu.gpus & (menu.gpus - 1) == 0))
    if set(cluster.capacities) - {0, size}:
        whole[:] = True
    some = np.bincount(menu.job[whole & (menu.gpus > 0)], minlength=len(menu.tasks)) > 0
    offered: Flags = whole | ~some[menu.job]
    return offered


def sia_costs(menu: RoundMenu, offered: Flags, policy: Sia) -> Floats:
    """What each option costs in the objective of Sia, shape (options,).

    As in the published code, powers are rounded to two digits and at most 200, which is what others cost.
    """
    slowest = np.zeros(len(menu.tasks))
    np.maximum.at(slowest, menu.job, np.where(offered & (menu.gpus > 0), menu.seconds, 0.0))
    holds, kept = menu.running[menu.job], menu.kept
    factor = np.where(holds & ~kept, restart_factors(menu, policy.restart_s)[menu.job], 1.0)
    with np.errstate(divide="ignore"):
        powers = np.round((factor * slowest[menu.job] / menu.seconds) ** policy.power, 2)
    costs: Floats = np.minimum(np.where(offered | kept, powers, _DEAREST), _DEAREST)
    costs[menu.first[:-1]] = policy.waiting_cost
    left, taken = holds & ~kept, (menu.gpus > 0) & ~kept
    return costs + policy.change_cost * (left.astype(float) + taken)
