"""IceFrog-style: GPUs and freeze levels together, by what the effective progress of each task is worth.

IceFrog (W. Gao et al., IEEE TPDS 36 (6), 2025, doi 10.1109/TPDS.2025.3553137) freezes layers cluster-wide by effective
progress. Its formulas are not public: those here are frostline's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from frostline.errors import UnknownNameError
from frostline.freezing.optimizer import UTILITIES, JobScale
from frostline.policies.base import Share, View
from frostline.policies.elastic.allocate import best_options, changes
from frostline.policies.elastic.levels import LevelRules, OptionLevels, option_levels
from frostline.policies.elastic.menu import RoundMenu, round_menu
from frostline.policies.elastic.options import Floats
from frostline.policies.elastic.pollux import fair_rates
from frostline.policies.elastic.prices import completion_order, work_prices
from frostline.policies.elastic.rounds import RoundPolicy, as_flag
from frostline.units import as_finite

__all__ = ["IceFrog"]

_FLOW = "flow"


@dataclass(frozen=True, slots=True, kw_only=True)
class IceFrog(RoundPolicy):
    """IceFrog-style: GPUs and freeze levels maximise the utility of effective progress, a knapsack for each decision.

    Each task takes one option: a number of GPUs, with the class of placement that the cluster offers for it and the
    level that is fastest there within its debt budget, or to wait. An option is worth its utility, times
    ``H / (H + restart_s)`` where a task that has run before changes its GPUs for it; H is the time it would take to
    complete, ``horizon_s`` at most. To wait costs a running task what its restart will cost later.

    Parameters
    ----------
    utility : str
        ``"flow"``: progress times the price of work for which the mean completion time is least, see
        :mod:`frostline.policies.elastic.prices`. Or one of :data:`~frostline.freezing.optimizer.UTILITIES`.
    freeze : bool
        Whether layers are frozen; tasks without a debt budget never freeze any.
    horizon_s : float
        Seconds for which a decision is expected to last at most, above 0.
    hysteresis : float
        Share of the time left that another level on the same GPUs must save.
    round_s, event_driven, restart_s, level_change_s, most_evictions
        See :class:`~frostline.policies.elastic.rounds.RoundPolicy`.

    Raises
    ------
    InvalidValueError
        A parameter is out of its range.
    UnknownNameError
        No such utility.
    """

    name: str = "icefrog"
    utility: str = _FLOW
    freeze: bool = True
    horizon_s: float = 300.0
    hysteresis: float = 0.03

    def __post_init__(self) -> None:
        RoundPolicy.__post_init__(self)
        subject = f"policy {self.name!r}"
        if self.utility not in (known := (_FLOW, *UTILITIES)):
            raise UnknownNameError(f"utility of {subject}", str(self.utility), known)
        object.__setattr__(self, "freeze", as_flag(self.freeze, subject, "freeze"))
        object.__setattr__(self, "horizon_s", as_finite(self.horizon_s, subject, "horizon_s", 1e-6, 1e9))
        object.__setattr__(self, "hysteresis", as_finite(self.hysteresis, subject, "hysteresis", 0.0, 1.0))

    def shares(self, view: View) -> tuple[Share, ...]:
        """What changes."""
        menu = round_menu(view, self.most_evictions)
        if not menu.tasks:
            return ()
        levels = OptionLevels(np.zeros(len(menu.gpus), np.int64), menu.seconds)
        if self.freeze:
            levels = option_levels(menu, view, LevelRules(self.hysteresis, self.level_change_s))
        rates = 1.0 / levels.seconds
        value = _kept(menu, _utilities(self.utility, menu, rates, view.free.capacity), rates, self)
        chosen = best_options(menu, value)
        return changes(menu, chosen, levels.level[chosen])


def _utilities(name: str, menu: RoundMenu, rates: Floats, gpus: int) -> Floats:
    """Utility of the progress of each option, shape (options,); 0 where it waits."""
    if name == _FLOW:
        each = [rates[start + 1 : stop] for start, stop in pairwise(menu.first.tolist())]
        gpu_s = np.array([options.gpu_s for options in menu.options])
        order = completion_order(menu.left, each, gpu_s, gpus)
        prices = work_prices(order, each, [options.gpus for options in menu.options], gpus)
        return prices[menu.job] * rates
    utility, found, fair, left = UTILITIES[name], np.zeros(len(rates)), fair_rates(menu, gpus), menu.left
    for job, (task, options) in enumerate(zip(menu.tasks, menu.options, strict=True)):
        own = rates[menu.first[job] + 1 : menu.first[job + 1]]
        asked = int(np.searchsorted(options.gpus, task.gpus))
        scale = JobScale(
            reference_per_s=1.0 / float(options.seconds[asked, 0]),
            least_per_s=float(own.min()),
            remaining=float(left[job]),
            fair_remaining_s=float(left[job] / fair[job]),
        )
        found[menu.first[job] + 1 : menu.first[job + 1]] = utility(own, scale)
    return found


def _kept(menu: RoundMenu, utility: Floats, rates: Floats, policy: IceFrog) -> Floats:
    """Utilities less what a change of GPUs costs."""
    with np.errstate(divide="ignore"):
        lasts_s = np.minimum(menu.left[menu.job] / rates, policy.horizon_s)
    moves = menu.again[menu.job] & ~menu.kept
    value = np.where(moves, utility * (lasts_s / (lasts_s + policy.restart_s)), utility)
    waits = np.where(menu.running, -value[menu.held] * (policy.restart_s / policy.horizon_s), 0.0)
    value[menu.first[:-1]] = waits
    return value
