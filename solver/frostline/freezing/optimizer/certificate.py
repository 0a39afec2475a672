"""What proves a choice, as a document of whole numbers that can be checked without this package."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from frostline.freezing.optimizer.knapsack import UNLIMITED, Knapsack
from frostline.freezing.optimizer.menus import Ints, Menus

__all__ = ["CERTIFICATE_FORMAT", "Evidence", "choice_problem"]

CERTIFICATE_FORMAT = "frostline/choice-certificate"


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """A choice, and prices of the rows over a denominator that bound the value of any."""

    knapsack: Knapsack
    chosen: Ints
    prices: tuple[int, ...]
    denominator: int

    def certificate(self) -> dict[str, Any]:
        """The document; it has all menus in it."""
        knapsack = self.knapsack
        gpus, budgets = knapsack.limits
        prices = dict(zip(knapsack.names, self.prices, strict=True))
        content = {
            "format": CERTIFICATE_FORMAT,
            "version": 1,
            "problem": choice_problem(knapsack.menus, gpus, budgets),
            "selected": list(knapsack.selected(self.chosen)),
            "value": knapsack.worth(self.chosen),
            "bound": knapsack.dual(self.prices, self.denominator).bound,
            "prices": {
                "denominator": self.denominator,
                "gpus": [prices.get((0, row), 0) for row in range(len(gpus))],
                "debt": [prices.get((1, row), 0) for row in range(len(budgets))],
            },
        }
        return {**content, "sha256": _digest(content)}


def choice_problem(menus: Menus, gpus: Sequence[int], budgets: Sequence[int]) -> dict[str, Any]:
    """A choice as certificates state it: limits, and for each job its tenant and its options.

    An option is a list of the number of its GPU type, its GPUs, its value and its debt.

    Parameters
    ----------
    menus : Menus
        Options of all jobs.
    gpus : sequence of int, shape (GPU types,)
        GPUs of each type.
    budgets : sequence of int, shape (tenants,)
        Debt budget of each tenant in steps, or -1 for none.

    Examples
    --------
    >>> menus = Menus(first=[0, 2], gpus=[0, 4], value=[0, 9], debt=[0, 3])
    >>> choice_problem(menus, [8], [-1])
    {'gpus': [8], 'budgets': [None], 'jobs': [{'tenant': 0, 'options': [[0, 0, 0, 0], [0, 4, 9, 3]]}]}
    """
    columns = (menus.gpu_type, menus.gpus, menus.value, menus.debt)
    options = [list(option) for option in zip(*(column.tolist() for column in columns), strict=True)]
    first = menus.first.tolist()
    jobs = [
        {"tenant": tenant, "options": options[low:high]}
        for tenant, low, high in zip(menus.tenant.tolist(), first, first[1:], strict=False)
    ]
    limits = [None if budget == UNLIMITED else budget for budget in budgets]
    return {"gpus": list(gpus), "budgets": limits, "jobs": jobs}


def _digest(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
