"""The policies that the compiled twin knows, as numbers, and what it does not cover."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from frostline.placement.saturation import saturation
from frostline.policies.asrpt import Asrpt, AsrptBudget, AsrptGuard, AsrptStrict, rational
from frostline.policies.base import Policy
from frostline.policies.list_policy import ListPolicy
from frostline.problem.cluster import Cluster
from frostline.simulation.compiled import kernel
from frostline.simulation.compiled.columns import Columns
from frostline.simulation.compiled.rule import Rule

__all__ = ["keys_of", "order_of", "rule_of"]

Ints = npt.NDArray[np.int64]

_DISCIPLINES = {"strict": kernel.STRICT, "backfill": kernel.BACKFILL, "fit-anything": kernel.FIT_ANYTHING}

_KEYS: Mapping[str, Callable[[Ints, Ints], Ints]] = {
    "arrival": lambda gpus, duration: np.arange(len(gpus)),
    "shortest": lambda gpus, duration: duration,
    "smallest-area": lambda gpus, duration: gpus * duration,
    "longest": lambda gpus, duration: -duration,
}
"""Orders of :mod:`frostline.policies.orders` over whole columns."""


def rule_of(policy: Policy, cluster: Cluster, columns: Columns) -> Rule | None:
    """Rule of a policy, None where the twin does not know it.

    Examples
    --------
    >>> from frostline.policies import make_policy
    >>> from frostline.problem import Cluster, Fixed, Instance, Job
    >>> from frostline.simulation.compiled.columns import columns_of
    >>> instance = Instance(cluster=Cluster.pool(8), jobs=[Job(id="a", release_s=0, work=Fixed(duration_s=1), gpus=1)])
    >>> for name in ("sjf", "asrpt-budget", "las"):
    ...     print(rule_of(make_policy(name), instance.cluster, columns_of(instance)))
    Rule(form=0, discipline=2, gpus=8, budget=0, patience=0.0, small=(0, 1), share=(0, 1))
    Rule(form=1, discipline=1, gpus=8, budget=5, patience=0.0, small=(0, 1), share=(0, 1))
    None
    """
    if type(policy) is ListPolicy:
        return Rule(kernel.LIST, _DISCIPLINES[policy.discipline], cluster.gpus)
    if type(policy) is AsrptStrict:
        return Rule(kernel.VIRTUAL, gpus=cluster.gpus)
    if type(policy) is AsrptBudget:
        budget = policy.budget(saturation(columns.shapes, cluster))
        return Rule(kernel.VIRTUAL, kernel.BACKFILL, cluster.gpus, budget=budget)
    if type(policy) is AsrptGuard:
        return Rule(kernel.GUARDED, _DISCIPLINES[policy.discipline], cluster.gpus, patience=policy.patience)
    if type(policy) is Asrpt:
        small, share = rational(policy.small), rational(policy.headroom)
        return Rule(
            kernel.GRADED,
            gpus=cluster.gpus,
            patience=policy.patience,
            small=(small.numerator, small.denominator),
            share=(share.numerator, share.denominator),
        )
    return None


def order_of(policy: Policy) -> str:
    """Order of the waiting jobs of a policy that the twin knows."""
    if isinstance(policy, ListPolicy | AsrptBudget | AsrptGuard):
        return policy.order
    return "smallest-area" if isinstance(policy, Asrpt) else "arrival"


def keys_of(policy: Policy, columns: Columns) -> Ints | None:
    """Keys of the jobs in the order of a policy, least first; None where the twin does not know the order."""
    key = _KEYS.get(order_of(policy))
    return None if key is None else key(columns.jobs.gpus, columns.jobs.duration_us)
