"""What an option is worth: a utility of effective progress, less what a change costs.

``v = U(EP) max(0, 1 - δ/Δ) - λ 1[changed]`` for a round of Δ seconds in which a change takes δ of them. Where nothing
changes, a choice is worth the sum of its utilities, and elsewhere no more than that. So a choice that is taken because
it is worth more than to stay has a larger sum of utilities than the one before: rounds in which nothing is new can
change their minds a limited number of times, and never go back.

Sources: effective progress is goodput (Qiao et al., *Pollux: Co-adaptive Cluster Scheduling for Goodput-Optimized Deep
Learning*, OSDI 2021) of the active layers; the power -1/2 and the penalty for waiting are Sia's (Jayaram Subramanya et
al., *Sia: Heterogeneity-aware, goodput-optimized ML-cluster scheduling*, SOSP 2023); fair over predicted remaining time
is Titan's (Gao et al., *Titan: A Scheduler for Foundation Model Fine-tuning Workloads*, SoCC 2022).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.freezing.optimizer.menus import Menu, Option
from frostline.units import as_finite, as_int

__all__ = [
    "UTILITIES",
    "Candidate",
    "JobScale",
    "RoundRules",
    "Utility",
    "progress_utility",
    "round_menu",
    "round_values",
    "sia_utility",
    "srpt_utility",
    "titan_utility",
]

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

_LARGEST_RATE = 1e18


@dataclass(frozen=True, slots=True, kw_only=True)
class JobScale:
    """What the progress of a job is measured by.

    Parameters
    ----------
    reference_per_s : float
        Effective progress in samples per second that counts as 1, such as that on the GPUs asked for, nothing frozen.
    least_per_s : float
        Least effective progress of its options.
    remaining : float
        Samples left.
    fair_remaining_s : float
        Seconds left with a fair share of the cluster.

    Examples
    --------
    >>> JobScale(reference_per_s=100, least_per_s=60, remaining=1e6, fair_remaining_s=9e3).remaining
    1000000.0
    """

    reference_per_s: float
    least_per_s: float
    remaining: float
    fair_remaining_s: float

    def __post_init__(self) -> None:
        for name in self.__slots__:
            number = as_finite(getattr(self, name), "job scale", name, maximum=_LARGEST_RATE)
            if number <= 0:
                raise InvalidValueError("job scale", name, number, "must be above 0")
            object.__setattr__(self, name, number)


Utility = Callable[[Floats, JobScale], Floats]
"""Utility of effective progress in samples per second, for a job; 0 is that of waiting, and none is below."""


def progress_utility(progress_per_s: Floats, scale: JobScale) -> Floats:
    """Progress over that of reference, ``EP / EP_ref``: the speedup of Pollux, with frozen layers.

    Examples
    --------
    >>> scale = JobScale(reference_per_s=100, least_per_s=50, remaining=1e6, fair_remaining_s=2e4)
    >>> progress_utility(np.array([50.0, 200.0]), scale).tolist()
    [0.5, 2.0]
    """
    return progress_per_s / scale.reference_per_s


def sia_utility(progress_per_s: Floats, scale: JobScale, *, power: float = -0.5, waiting: float = 1.1) -> Floats:
    """Sia's loss that is saved, ``1.1 - (EP / EP_least)^(-1/2)``: waiting loses 1.1, the slowest option 1.

    Sia minimises the sum of the losses; it takes what a restart costs off the progress, not off the utility.

    Examples
    --------
    >>> scale = JobScale(reference_per_s=100, least_per_s=50, remaining=1e6, fair_remaining_s=2e4)
    >>> sia_utility(np.array([50.0, 200.0]), scale).round(3).tolist()
    [0.1, 0.6]
    """
    return np.maximum(waiting - (progress_per_s / scale.least_per_s) ** power, 0.0)


def titan_utility(progress_per_s: Floats, scale: JobScale) -> Floats:
    """Titan's weight, the time left with a fair share over the time left with the option.

    Examples
    --------
    >>> scale = JobScale(reference_per_s=100, least_per_s=50, remaining=1e6, fair_remaining_s=2e4)
    >>> titan_utility(np.array([50.0, 200.0]), scale).tolist()
    [1.0, 4.0]
    """
    return scale.fair_remaining_s * progress_per_s / scale.remaining


def srpt_utility(progress_per_s: Floats, scale: JobScale) -> Floats:
    """Progress over the work left, ``EP / W``: the reciprocal of the time left, so that short jobs come first.

    Examples
    --------
    >>> scale = JobScale(reference_per_s=100, least_per_s=50, remaining=1e6, fair_remaining_s=2e4)
    >>> srpt_utility(np.array([50.0, 200.0]), scale).tolist()
    [5e-05, 0.0002]
    """
    return progress_per_s / scale.remaining


UTILITIES: dict[str, Utility] = {
    "progress": progress_utility,
    "sia": sia_utility,
    "titan": titan_utility,
    "srpt": srpt_utility,
}
"""Utilities by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRules:
    """What a change costs in a round.

    Parameters
    ----------
    round_s : float
        Seconds of a round.
    restart_s : float
        Seconds that a job loses where its allocation changes, or it starts; 30 in Pollux and Sia.
    level_s : float
        Seconds that it loses where the freeze level alone changes.
    change_cost : float
        What any change costs, in units of the utility.
    hysteresis : float
        Share by which another level must be better on the same allocation.

    Examples
    --------
    >>> RoundRules(round_s=60).restart_s
    30.0
    """

    round_s: float
    restart_s: float = 30.0
    level_s: float = 0.1
    change_cost: float = 0.01
    hysteresis: float = 0.03

    def __post_init__(self) -> None:
        for name in self.__slots__:
            object.__setattr__(self, name, as_finite(getattr(self, name), "round rules", name, 0.0))
        if self.round_s <= 0:
            raise InvalidValueError("round rules", "round_s", self.round_s, "must be above 0")


def round_values(utility: Floats, moved: Flags, relevelled: Flags, rules: RoundRules) -> Floats:
    """Values of options from their utilities and what they change.

    Parameters
    ----------
    utility : ndarray of float64, shape (options,)
        Utility of each option, from 0.
    moved : ndarray of bool, shape (options,)
        Whether the allocation changes.
    relevelled : ndarray of bool, shape (options,)
        Whether the freeze level changes.
    rules : RoundRules
        What that costs.

    Examples
    --------
    >>> rules = RoundRules(round_s=60, level_s=0, hysteresis=0.25)
    >>> moved, relevelled = np.array([False, False, True]), np.array([False, True, True])
    >>> round_values(np.ones(3), moved, relevelled, rules).round(3).tolist()
    [1.0, 0.79, 0.49]
    """
    lost_s = np.where(moved, rules.restart_s, np.where(relevelled, rules.level_s, 0.0))
    must_beat = np.where(relevelled & ~moved, 1.0 + rules.hysteresis, 1.0)
    values: Floats = utility * np.maximum(0.0, 1.0 - lost_s / rules.round_s) / must_beat
    return values - rules.change_cost * (moved | relevelled)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An allocation and a freeze level that a job may have in a round.

    Parameters
    ----------
    gpus : int
        GPUs, at least 1.
    progress_per_s : float
        Effective progress in samples per second.
    level : int
        Freeze level.
    debt : float
        Accuracy debt that a round adds.
    gpu_type, placement : str
        Type of the GPUs, and class of the placement.

    Examples
    --------
    >>> Candidate(gpus=4, progress_per_s=220.0, level=3, debt=0.02).allocation
    (4, '', '')
    """

    gpus: int
    progress_per_s: float
    level: int = 0
    debt: float = 0.0
    gpu_type: str = ""
    placement: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "gpus", as_int(self.gpus, "candidate", "gpus", 1))
        object.__setattr__(self, "level", as_int(self.level, "candidate", "level", 0))
        rate = as_finite(self.progress_per_s, "candidate", "progress_per_s", 0.0, _LARGEST_RATE)
        if not rate:
            raise InvalidValueError("candidate", "progress_per_s", self.progress_per_s, "must be above 0")
        object.__setattr__(self, "progress_per_s", rate)

    @property
    def allocation(self) -> tuple[int, str, str]:
        """What makes it another allocation."""
        return self.gpus, self.gpu_type, self.placement


def round_menu(
    candidates: Sequence[Candidate],
    scale: JobScale,
    rules: RoundRules,
    *,
    held: Candidate | None = None,
    utility: str = "progress",
    tenant: str = "",
) -> Menu:
    """Menu of a job for a round: option i is candidate i - 1.

    Parameters
    ----------
    candidates : sequence of Candidate
        What the job may have.
    scale : JobScale
        What its progress is measured by.
    rules : RoundRules
        What a change costs.
    held : Candidate, optional
        What it has; nothing by default. Allocation and level count.
    utility : str
        One of :data:`UTILITIES`.
    tenant : str
        Whose debt budget counts.

    Examples
    --------
    >>> scale = JobScale(reference_per_s=100, least_per_s=100, remaining=1e6, fair_remaining_s=1e4)
    >>> small, large = Candidate(gpus=1, progress_per_s=100), Candidate(gpus=2, progress_per_s=180)
    >>> menu = round_menu([small, large], scale, RoundRules(round_s=300), held=small)
    >>> [round(option.value, 3) for option in menu.options], menu.wait_value
    ([1.0, 1.61], -0.01)
    """
    if utility not in UTILITIES:
        raise UnknownNameError("utility", str(utility), UTILITIES)
    progress = np.array([candidate.progress_per_s for candidate in candidates], float)
    moved = np.array([held is None or candidate.allocation != held.allocation for candidate in candidates], bool)
    relevelled = np.array([held is not None and candidate.level != held.level for candidate in candidates], bool)
    values = round_values(UTILITIES[utility](progress, scale), moved, relevelled, rules)
    options = [
        Option(gpus=candidate.gpus, value=value, debt=candidate.debt, gpu_type=candidate.gpu_type)
        for candidate, value in zip(candidates, values.tolist(), strict=True)
    ]
    return Menu(options=options, tenant=tenant, wait_value=0.0 if held is None else -rules.change_cost)
